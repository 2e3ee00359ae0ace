/*
 * qc_cursor.h
 *		Delivery: which messages a pop takes, leases, their answers and their end.
 *
 * A cursor is in its group's ready list exactly when it has something to deliver now.  A pop takes
 * cursors from the list's head and moves them to its tail while more is left, so its cost depends on the
 * batch alone.  All functions: state lock.
 */
#ifndef QC_CURSOR_H
#define QC_CURSOR_H

#include "qc_effect.h"
#include "qc_state.h"

/* One run of a delivery, as the deliver effect lists it. */
typedef struct QcRun
{
	uint64_t	partition;
	uint64_t	first;
	uint32_t	count;
	uint32_t	attempt;		/* of this delivery, 1 = first */
} QcRun;

typedef struct QcPopRequest
{
	QcQueue    *queue;
	QcGroup    *group;
	QcPartition *partition;		/* NULL = any */
	uint32_t	batch;			/* messages at most */
	uint32_t	max_partitions;
} QcPopRequest;

/*
 * Choose what to deliver without changing anything but the order of the ready list.  *nruns runs (at most
 * max_runs) are put; returns the number of messages.  *again = the step's budget of cursors was used up
 * with nothing found: release the lock, check interrupts, call again.
 */
extern uint32_t qc_pop_choose(QcState *st, const QcPopRequest *request, QcRun *runs,
							  uint32_t max_runs, uint32_t *nruns, bool *again);

/* Effects of a delivery, used by qc_apply_effect. */
extern QcStatus qc_lease_deliver(QcState *st, const QcDeliver *deliver, const QcRun *runs,
								 uint32_t nruns, uint32_t owner, int64_t created_at, QcError *err);
extern void qc_lease_commit(QcState *st, QcLease *lease, int64_t monotonic);
extern void qc_lease_renew(QcState *st, QcLease *lease, int64_t lease_us, int64_t monotonic);

/*
 * End a lease without an answer: its messages can be taken again, after delay_us.  due: wall clock now +
 * delay.
 */
extern void qc_lease_release(QcState *st, QcLease *lease, int64_t delay_us, int64_t now,
							 int64_t monotonic, bool expired);

/* nack: messages [first, first + count) of the lease; in an ordered partition everything above too. */
extern uint32_t qc_lease_nack(QcState *st, QcLease *lease, QcPartition *partition, uint64_t first,
							  uint32_t count, int64_t delay_us, int64_t now, int64_t monotonic);

/* Messages of the lease in [first, first + count) become done.  Ends the lease when none is left. */
extern uint32_t qc_lease_done(QcState *st, QcLease *lease, QcPartition *partition, uint64_t first,
							  uint32_t count);

/* The slot of a position in a lease; NULL when the lease does not hold it. */
extern QcSlot *qc_lease_slot(QcState *st, const QcLease *lease, const QcPartition *partition,
							 uint64_t position);

/* New messages became visible, or aborted: move stable on, count, link into ready lists. */
extern void qc_partition_advance(QcState *st, QcPartition *partition);

/* Recompute membership in the ready list. */
extern void qc_cursor_refresh(QcState *st, QcCursor *cursor);

/*
 * Fire timers that are due: waiting slots become deliverable here; leases whose time is over are returned (at
 * most max ids) for the caller to log a release for each.
 */
extern uint32_t qc_timers_run(QcState *st, int64_t monotonic, uint64_t *expired, uint32_t max);

/* Monotonic time of the next timer at the latest, INT64_MAX when there is none. */
extern int64_t qc_timers_next(const QcState *st);

/* Arm or disarm; target is a lease or a slot, whose `timer` field is set. */
extern void qc_timer_arm(QcState *st, QcRef target, bool is_slot, int64_t when);
extern void qc_timer_disarm(QcState *st, QcRef timer);

#endif							/* QC_CURSOR_H */
