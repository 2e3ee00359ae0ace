/*
 * qc_reclaim.h
 *		Giving the disk back: closed log files whose records nobody needs are deleted, partly needed ones are rewritten.
 *
 * A pass, within a budget of files and time, going on where the one before it stopped:
 *
 *	 1. look	at the closed files of logs in which something has died, and of those that were not looked at for long.	A file of
 *				which a record that was needed is needed still is not read again every time
 *	 2. wait	until a checkpoint that knows all that is stored.  So no crash can make anything live again, and recovery begins
 *				behind all files concerned
 *	 3. delete	after a second look: never on one answer alone.	 FLOOR is raised first, and who has the file open is told
 *	 4. rewrite files that are worth it are written anew beside the old ones; one more wait, for what has died since; they take the
 *				old ones' place
 *
 * A file goes only when it is closed, all of its entries are at or below the floor (checkpoint, snapshots), none of its records is
 * needed, its index is right in itself, and no base backup runs.  Files that cannot be looked at are reported and left, and do not
 * keep others from going.	The active file is closed early (sealed) when it is old and mostly holds what is gone.
 *
 * A file is rewritten when that frees something worth the copy:
 *	 own log	from the first message that is gone, when at least `gain` bytes and 1/64 of the file come free, and either nothing
 *				has died in it for `still_us`, or half of it is gone, or more than a segment of the log is.  A queue that is read
 *				in order has one file in which messages die at a time; copying that one would be for nothing
 *	 shared log when half of it is gone; when more than half a segment of the log is, also files at rest, and those of which an
 *				eighth is gone
 *
 * One process.	 No lock is held when it is called; the state lock is taken in pieces through `lock`.  Allocates.
 */
#ifndef QC_RECLAIM_H
#define QC_RECLAIM_H

#include "qc_log.h"
#include "qc_look.h"
#include "qc_rewrite.h"

#define QC_RECLAIM_GAIN		65536

typedef struct QcReclaimHooks
{
	void	   *context;

	/*
	 * Have entries up to this seq written into their files, as closed ones may not be yet; false =
	 * not possible now.
	 */
	bool		(*write) (void *context, uint64_t seq);

	/* Wait until what this stamp stands for is stored (qc_rows_stamp); false = not to be had now. */
	bool		(*stored) (void *context, uint64_t stamp);

	/* Entries up to this seq are not needed by any checkpoint or snapshot that is kept. */
	uint64_t	(*floor) (void *context);

	/* As qc_dir_write_floor, by whoever else raises it too. */
	QcStatus	(*raise_floor) (void *context, uint64_t seq, QcError *err);

	/* No base backup runs and none that begins copies a file before let_in; false = one runs. */
	bool		(*keep_out) (void *context);
	void		(*let_in) (void *context);

	/* Make room in a log (a next file). */
	QcStatus	(*extend) (void *context, const QcExtend *extend, QcError *err);

	/*
	 * This file was removed or replaced: who has it open, or something of it in memory, forgets
	 * it.
	 */
	void		(*changed) (void *context, uint64_t log, uint64_t file);

	/* A file cannot be looked at or copied, and stays. */
	void		(*report) (void *context, const QcError *err);

	/* What is done now; false = stop. It may sleep. */
	bool		(*go_on) (void *context, const char *phase, uint64_t done, uint64_t total);

	/* After each step on the disk, for tests; may be NULL. */
	QcStepHook	step;
	int64_t		(*monotonic) (void *context);
} QcReclaimHooks;

/* What is remembered of a file. */
typedef struct QcFileSeen
{
	uint64_t	file;
	uint64_t	size;
	uint64_t	live_bytes;
	uint64_t	closed_by;		/* entries in it end at or below this seq; 0 = not known */
	int64_t		looked_at;		/* monotonic microseconds; 0 = never */
	int64_t		died_at;		/* when something was last seen to have died in it */
	bool		dead;			/* nothing in it is needed */
	bool		bad;			/* it cannot be looked at, or copied */
	bool		due;			/* writing it anew pays; it has not had its turn */
	uint8_t		witness[QC_IDX_ENTRY_SIZE]; /* a record that was needed, as in a .qidx */
} QcFileSeen;

/* What is remembered of a log. */
typedef struct QcLogSeen
{
	uint64_t	log;
	uint64_t	deaths;			/* of the log when it was looked through last */
	uint64_t	round_deaths;	/* ... when the look began that may take several passes */
	uint64_t	trimmed;		/* directories over files that are all below this one were removed */
	uint64_t	active;
	int64_t		active_since;	/* monotonic: when something was first seen in it */
	uint64_t	seal_deaths;	/* of the log when closing it early was last thought of */
	int64_t		looked_at;
	uint64_t	next;			/* file to go on with, 0 = from the first */
	bool		complete;		/* looked through since deaths, and nothing is left to do */
	bool		swept;
	uint32_t	nfiles;
	uint32_t	cap_files;
	QcFileSeen *files;			/* by number */
} QcLogSeen;

typedef struct QcReclaim
{
	QcState    *st;
	QcReadCache *cache;
	QcStateLock lock;
	QcReclaimHooks hooks;

	/* settings, may change between passes */
	uint64_t	segment_size;
	uint32_t	keep_old;		/* newest dead files of each log that stay */
	uint64_t	gain;			/* bytes that a copy or an early close must free: QC_RECLAIM_GAIN */
	int64_t		seal_us;		/* age at which a file may be closed early; 0 = never */
	int64_t		again_us;		/* how long an answer about a file with needed records is good */
	int64_t		still_us;		/* a file in which nothing has died for so long is at rest */

	/* memory */
	uint32_t	at;				/* logs to go on with (qc_log_ids) ... */
	uint32_t	skip;			/* ... and how many of these had their turn */
	uint32_t	nlogs;
	uint32_t	cap_logs;
	QcLogSeen  *logs;			/* by id */
} QcReclaim;

typedef struct QcReclaimBudget
{
	uint32_t	files;			/* looked at */
	int64_t		us;				/* of looking */
	uint32_t	rewrites;
} QcReclaimBudget;

typedef struct QcReclaimReport
{
	uint32_t	looked;
	uint32_t	deleted;
	uint32_t	rewritten;
	uint32_t	sealed;
	uint32_t	bad;			/* files that could not be looked at or copied */
	uint32_t	held;			/* files that could go but for the floor */
	uint64_t	freed;			/* bytes */
	bool		more;			/* the budget has ended the pass, or something had to wait */
} QcReclaimReport;

/* Everything but settings and hooks, which the caller sets, begins zero. */
extern void qc_reclaim_end(QcReclaim *reclaim);

/* One pass; now: wall clock.  Errors of single files are reported, not returned. */
extern QcStatus qc_reclaim_pass(QcReclaim *reclaim, const QcReclaimBudget *budget, int64_t now,
								QcReclaimReport *report, QcError *err);

#endif							/* QC_RECLAIM_H */
