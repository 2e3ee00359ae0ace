/*
 * qc_reclaim_int.h
 *		Inside reclaim: what its files share (qc_reclaim.h is the contract).
 *
 *	 qc_reclaim.c		the pass; which logs and files are looked at
 *	 qc_reclaim_act.c	what was found is done: waiting, deleting, rewriting
 *	 qc_reclaim_seal.c	closing the active file early
 */
#ifndef QC_RECLAIM_INT_H
#define QC_RECLAIM_INT_H

#include "qc_array.h"
#include "qc_reclaim.h"

/* A closed file that is to go, or to be rewritten. */
typedef struct QcReclaimFile
{
	uint64_t	log;
	uint64_t	file;
	uint64_t	size;
	uint64_t	length;			/* of its written part */
	uint64_t	gain;
} QcReclaimFile;

/* A growing list of them. */
typedef struct QcReclaimList
{
	uint32_t	n;
	uint32_t	cap;
	QcReclaimFile *files;
} QcReclaimList;

/* What is known of a log, copied under the lock. */
typedef struct QcLogView
{
	uint64_t	log;
	uint64_t	active;
	uint64_t	tail;
	uint64_t	allocated;
	uint64_t	last_file;
	uint64_t	deaths;
	uint64_t	first_file;
	uint64_t	seq;			/* of the state then */
	bool		shared;			/* by several queues */
} QcLogView;

/* A pass under way. */
typedef struct QcReclaimPass
{
	QcReclaim  *r;
	const QcReclaimBudget *budget;
	QcReclaimReport *report;
	int64_t		now;
	int64_t		began;			/* monotonic */
	QcLook		look;
	QcReclaimList dead;			/* by log, then by number */
	QcReclaimList partly;		/* best first */
	bool		stopped;		/* the caller said so */
} QcReclaimPass;

static inline int64_t
qc_reclaim_clock(const QcReclaim *r)
{
	return r->hooks.monotonic(r->hooks.context);
}

static inline void
qc_reclaim_share(QcReclaim *r)
{
	r->lock.share(r->lock.context);
}

static inline void
qc_reclaim_lock(QcReclaim *r)
{
	r->lock.lock(r->lock.context);
}

static inline void
qc_reclaim_unlock(QcReclaim *r)
{
	r->lock.unlock(r->lock.context);
}

/* Ask the caller whether to go on; notes a no. */
extern bool qc_reclaim_goes_on(QcReclaimPass *pass, const char *phase, uint64_t done, uint64_t total);

/* The memory of a file, made when there is none. */
extern QcStatus qc_reclaim_file(QcLogSeen *seen, uint64_t file, QcFileSeen **made, QcError *err);
extern QcLogSeen *qc_reclaim_log(QcReclaim *r, uint64_t log);	/* NULL = there is none */

/* Is the log still there?	Its queue may be dropped meanwhile, and its directory with it. */
extern bool qc_reclaim_log_lives(QcReclaim *r, uint64_t log);

/*
 * Look at a closed file with an index that is right in itself, made when it has none. QC_NOTFOUND: it is gone; otherwise a
 * fault of the file is reported and remembered, QC_DAMAGED.
 */
extern QcStatus qc_reclaim_look(QcReclaimPass *pass, uint64_t log, uint64_t file, QcError *err);

/* Do what the pass has found. */
extern QcStatus qc_reclaim_act(QcReclaimPass *pass, QcError *err);

/* Close the active file early when that is due and worth it. */
extern QcStatus qc_reclaim_seal(QcReclaimPass *pass, QcLogSeen *seen, const QcLogView *view, QcError *err);

#endif							/* QC_RECLAIM_INT_H */
