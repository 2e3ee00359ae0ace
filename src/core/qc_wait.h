/*
 * qc_wait.h
 *		Who sleeps until something can be popped, and whom to wake.
 *
 * One node per process of the server stands in the state block.  A process that finds nothing lists its node, in the
 * same hold of the state lock, with the group that it pops from, and sleeps.  Whatever makes a cursor deliverable
 * (visible messages, nack, retry, expiry, rollback) goes through qc_cursor_refresh, which calls qc_wake.
 *
 * A process that is woken has a claim until it has popped: a wake-up that is under way.  So every message wakes one
 * waiter, not all, and one that several could take still wakes only one.
 *
 * Invariant, whenever the state lock is free:
 *	 (1) a waiter for any partition is listed => the group's claims cover what is deliverable in the group;
 *	 (2) a waiter for one partition is listed => the claims for that partition cover what is deliverable in it;
 *	 (3) a claim ends when its process has popped, at the latest QC_CLAIM_US after the wake-up; then (1) and (2) are
 *		 restored by waking the next ones.
 * Therefore no wake-up is lost: while something is deliverable and somebody waits for it, somebody else is awake and on
 * his way, or the next one is woken after QC_CLAIM_US.
 *
 * "Cover": an ordered partition is one delivery, whoever takes it; in the competing partition a claim takes as many
 * messages as its process asks for (its weight).  When both kinds are deliverable a claim counts for one, since nobody
 * knows where it will go; who has popped less than all that wakes the next one at once.
 *
 * Messages in partitions that the group has not looked at (qc_group.h) count as one delivery: one process looks, and what
 * it finds and does not take wakes others.
 *
 * While pops of a queue are paused nothing of it is deliverable.
 *
 * All functions: state lock.  Nothing here fails, allocates or is stored.
 */
#ifndef QC_WAIT_H
#define QC_WAIT_H

#include "qc_state.h"

#define QC_CLAIM_US INT64_C(50000)

typedef enum QcWaiterState
{
	QC_WAITER_IDLE,
	QC_WAITER_LISTED,			/* sleeps, or is about to */
	QC_WAITER_CLAIMED,			/* was woken and will look */
	QC_WAITER_TOLD				/* its client was told to pop, in this session or in another one */
} QcWaiterState;

typedef struct QcWaiter
{
	QcLink		of_group;		/* in the group's waiters or claims, or in a bucket */
	QcLink		of_all;			/* claims: in QcState.wakes until the latch is set, then in
								 * QcState.claims */
	int64_t		since;			/* in QcState.claims: when it was woken, monotonic */
	uint64_t	partition_hash; /* of the name of the one that it waits for, 0 = any */
	uint64_t	partition;		/* claims for one partition: its id */
	QcRef		group;			/* 0 = idle */
	uint32_t	weight;			/* messages that it would take */
	uint32_t	state;			/* QcWaiterState */
	uint32_t	woken;			/* set by who wakes, read by the process without the lock */
	uint32_t	in_wakes;		/* of_all is in QcState.wakes */
	uint32_t	unused;
} QcWaiter;

/* What a process waits for. */
typedef struct QcWaitFor
{
	QcGroup    *group;
	QcPartition *partition;		/* the one of that name, when it exists; NULL with hash 0 = any */
	uint64_t	partition_hash; /* qc_wait_partition, 0 = any */
	uint32_t	weight;
} QcWaitFor;

extern QcWaiter *qc_waiter(QcState *st, uint32_t process);

/* Names the partition that is waited for, which need not exist; never 0. */
extern uint64_t qc_wait_partition(const QcQueue *queue, const char *name, size_t len);

/* The process found nothing: list it.	What its claim, if any, was for goes to the next one. */
extern void qc_wait_list(QcState *st, uint32_t process, const QcWaitFor *what);

/*
 * The process waits no more.	Its claim ends; what it leaves deliverable wakes the next ones.  Idempotent.
 */
extern void qc_wait_end(QcState *st, uint32_t process);

/*
 * The process has popped from the group: its claim there ends.  When it had none but took something, the oldest claim of
 * a client that was told ends, since it popped through this session (a pooler) or comes too late.  When nothing is left
 * all of those end: who is told now is told of something new.
 */
extern void qc_wait_popped(QcState *st, uint32_t process, QcGroup *group, bool took);

/*
 * For who waits without popping: true = something is deliverable that others have not claimed; the process has, or keeps,
 * a claim on it and may tell its client.  false = listed, with weight 1, for any partition.
 */
extern bool qc_wait_tell(QcState *st, uint32_t process, QcGroup *group, int64_t monotonic);

/* Something of the cursor may be deliverable: wake as many as (1) and (2) demand. */
extern void qc_wake(QcState *st, QcGroup *group, QcCursor *cursor);

/* Pops of the queue were paused and are not any more. Who waits for one partition looks for himself. */
extern void qc_wake_resumed(QcState *st, QcGroup *group);

/* The group will be freed: wake everybody, and let nobody refer to it any more. */
extern void qc_wait_group_gone(QcState *st, QcGroup *group);

/*
 * Take up to max processes whose latches must be set, in the order of their wake-ups; the clocks of their claims start.
 * Whoever has changed the state takes them all before, and sets the latches after, the lock is released.
 */
extern uint32_t qc_wakes_take(QcState *st, int64_t monotonic, uint32_t *processes, uint32_t max);

/* End the claims whose time is over (called by the timers). */
extern void qc_claims_run(QcState *st, int64_t monotonic);

/* When the next claim's time will be over, INT64_MAX when there is none. */
extern int64_t qc_claims_next(const QcState *st);

#endif							/* QC_WAIT_H */
