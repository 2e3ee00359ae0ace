/*
 * qlog_leader.h
 *		Group commit: who leads, who follows, and what the leader does for its followers.
 *
 * Whoever needs an entry durable leads when nobody does: it writes out and syncs what is filled, for all (qlog_flush.c).
 * Everybody else lists itself and sleeps.	A leader that has finished settles the entries of those that are durable now
 * and wakes them; of the others it wakes only one, which leads next unless somebody who was awake has been faster.
 *
 * Invariants: at most one process leads; while somebody is listed, somebody leads or is awake to lead.
 *
 * Callers: qlog_flush.c; qlog_shmem.c for the memory.
 */
#ifndef QLOG_LEADER_H
#define QLOG_LEADER_H

#include "qlog_shmem.h"

typedef enum QlogFlushRole
{
	QLOG_FLUSH_LEADS,			/* qlog_leader_end must follow */
	QLOG_FLUSH_DURABLE,			/* the entry is durable; it has not been settled */
	QLOG_FLUSH_SETTLED			/* ... and its leader has settled it */
} QlogFlushRole;

/* What a leader did, for the counters. */
typedef struct QlogFlushWork
{
	uint64		entries;
	uint32		syncs;
	int64		us;				/* in syncs */
} QlogFlushWork;

/*
 * Lead, or sleep until the entry is durable.  open: the entry to be settled as committed then, 0 = none.	Not
 * interruptible, never raises; who leads must not raise before qlog_leader_end.
 */
extern QlogFlushRole qlog_leader_join(uint64 seq, QcRef open);

/* How many others were committing when the last leader ended.  Who leads. */
extern uint32 qlog_leader_others(void);

/*
 * Before it writes and syncs, the leader waits a moment for those who were awake or listed when the last leader ended and have
 * nothing filled yet, while they come one after the other, if a sync takes so long that this pays.  Otherwise clients fall
 * into two groups that sync in turns, each waiting for the other's sync.
 */
extern void qlog_leader_gather(void);

/*
 * The leader has published what is durable: end its office, settle its own entry (open, 0 = none) and those of its
 * followers, count, wake.	Never raises.
 */
extern void qlog_leader_end(QcRef open, const QlogFlushWork *work);

/* Memory for MaxBackends processes, and laying it out. */
extern Size qlog_leader_size(void);
extern void qlog_leader_init(void *block, bool fresh);

#endif							/* QLOG_LEADER_H */
