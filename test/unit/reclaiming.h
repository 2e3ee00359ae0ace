/*
 * reclaiming.h
 *		Reclaim over a directory made by hand: a recovered server that takes checkpoints when it is asked for one.
 *
 * Queue 1 has its messages in closed files, of which purges have taken some; see reclaiming_begin.	 Time stands still until a test
 * moves it.
 */
#ifndef RECLAIMING_H
#define RECLAIMING_H

#include "fixture.h"
#include "qc_reclaim.h"

typedef struct Reclaiming
{
	Rows		rows;			/* the stored checkpoint */
	QcReclaim	r;
	QcReclaimReport report;
	QcError		err;
	int64_t		monotonic;
	uint64_t	snapshot;		/* mark of a snapshot that is kept; UINT64_MAX = none */
	int			snapshot_asked; /* the snapshot goes after so many questions; 0 = it stays */
	bool		backup;			/* a base backup runs */
	bool		no_checkpoint;	/* none can be stored */
	int			nchanged;
	uint32_t	changed;		/* of log 1: bit 1 << file */
	int			nreported;
	QcError		reported;		/* the last one */
	int			locked;			/* the state lock is held */
	int			go_ons;			/* questions until the answer is no; 0 = never */
} Reclaiming;

extern Reclaiming rec;

/*
 * The directory, recovered, with no checkpoint stored.	 Messages of queue 1, one hundred bytes each, in records of ten:
 *	 file 1		positions 0 .. 99, all purged
 *	 file 2		100 .. 199, purged up to 149
 *	 file 3		nothing but an aborted range 200 .. 299
 *	 file 4		300 .. 399, needed
 *	 file 5		400 .. 409, active
 * The system log has two closed files, queue 2 one file with two messages.
 */
extern void reclaiming_begin(void);
extern void reclaiming_end(void);

/* The server dies and recovers from the stored checkpoint; the memory of reclaim goes with it. */
extern bool reclaiming_restart(void);

/* Store a checkpoint. */
extern void reclaiming_checkpoint(void);

/* One pass with an ample budget. */
extern QcStatus reclaiming_pass(void);

/* Size of a file of a log, UINT64_MAX = it is not there; suffix as in qc_path_file or "qlog.dead", "qlog.tmp". */
extern uint64_t reclaiming_size(uint64_t log, uint64_t file, const char *suffix);

/* All that must be there can be read. */
extern void reclaiming_expect_messages(void);

#endif							/* RECLAIMING_H */
