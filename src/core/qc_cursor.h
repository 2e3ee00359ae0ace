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
#include "qc_range.h"
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
	bool		look;			/* nothing will be taken: the order of the ready list stays */
} QcPopRequest;

/*
 * Choose what to deliver without changing anything but the order of the ready list (not even that for a look: the same
 * request then finds the same messages again).  *nruns runs (at most max_runs) are put, *nruns set; returns the number
 * of messages, 0 = nothing to deliver now.  Only deliverable cursors stand in the ready list, so the cost depends on the
 * batch alone.
 */
extern uint32_t qc_pop_choose(QcState *st, const QcPopRequest *request, QcRun *runs,
							  uint32_t max_runs, uint32_t *nruns);

/* The slot of a position, of any lease; NULL when it is done or not delivered. */
extern QcSlot *qc_cursor_slot(QcState *st, const QcCursor *cursor, uint64_t position);

/*
 * Give position to a lease: its retry slot is taken over, or, when position is at or above `fetch`, a new slot is
 * made and fetch moves behind it.  NULL = state memory is full (never when slots were promised).
 */
extern QcSlot *qc_cursor_take(QcState *st, QcCursor *cursor, uint64_t position, uint32_t attempt,
							  bool promised);

/* How messages come back that were delivered. */
typedef struct QcReturn
{
	int64_t		delay_us;		/* (int64_t) QC_DELAY_RULE: as the queue's options have it */
	int64_t		now;
	int64_t		monotonic;
	uint8_t		cause;			/* QC_DEAD_* */
} QcReturn;

/*
 * Put a slot that lost its lease back, to be taken after the delay, or dying when the queue's retry_limit is used up.
 * charged = false: this delivery does not count, and there is no delay (ordered partitions: what stood behind the
 * message that failed).
 */
extern void qc_cursor_put_back(QcState *st, QcCursor *cursor, QcSlot *slot, const QcReturn *how,
							   bool charged);

/*
 * A dying slot cannot be moved now: it comes back into QcState.dying after a while.	false = no memory for that: it stays
 * there, behind all others.
 */
extern bool qc_slot_defer(QcState *st, QcSlot *slot, int64_t delay_us, int64_t monotonic);

/* A dying slot need not die: the option has changed.  It can be taken again. */
extern void qc_slot_revive(QcState *st, QcSlot *slot);

/* Is the limit of deliveries used up for a message that has come back so often? */
extern bool qc_queue_exhausted(const QcQueue *queue, uint32_t attempt);

/* The position ends as a dead letter, whatever holds it. */
extern void qc_cursor_dead(QcState *st, QcCursor *cursor, uint64_t position);

/* The message is done: free its slot, which has no lease any more. */
extern void qc_cursor_finish(QcState *st, QcCursor *cursor, QcSlot *slot);

/* A new cursor of (partition, group) at the partition's first position; 0 = full. */
extern QcRef qc_cursor_create(QcState *st, QcPartition *partition, QcGroup *group, bool promised);

/* Free all slots, end leases of them without an answer; a lease that holds nothing more stays until its time is over. */
extern void qc_cursor_clear(QcState *st, QcCursor *cursor);

/* Free the slots that no lease holds; the group's counts no longer hold them. */
extern void qc_cursor_drop_waiting(QcState *st, QcCursor *cursor);

/* New messages became visible, or aborted: move stable on, count, link into ready lists. */
extern void qc_partition_advance(QcState *st, QcPartition *partition);

/*
 * The cursor's partition is about to be delivered in order, or not any more: what waits in its retry list goes by
 * position, or the other way round.	Live leases go on.	The caller changes the option, then refreshes the cursor.
 */
extern void qc_cursor_reorder(QcState *st, QcCursor *cursor, bool ordered);

/* Recompute membership in the ready list. */
extern void qc_cursor_refresh(QcState *st, QcCursor *cursor);

/*
 * Positions [first, first + count) are done for the cursor whatever lease holds them: for recovery, when the
 * delivery itself was lost.  Earlier positions that were never delivered become slots to take again.
 * false = state memory is full.
 */
extern bool qc_cursor_done(QcState *st, QcCursor *cursor, uint64_t first, uint32_t count);

/* Positions that hold no message after all (their entry was undone): end what recovery had delivered of them. */
extern void qc_cursor_void(QcState *st, QcCursor *cursor, uint64_t first, uint32_t count);

/* The time of a waiting or a deferred slot has come (called by the timer wheel). */
extern void qc_slot_due(QcState *st, QcSlot *slot);

/* A partition or queue goes away: free the cursor with its slots (leases that become empty end). */
extern void qc_cursor_free(QcState *st, QcCursor *cursor);

/* A cursor has one slot more (1) or less (-1). */
static inline void
qc_cursor_count(QcState *st, QcCursor *cursor, int by)
{
	QcGroup    *group = QC_AT(st, QcGroup, cursor->group);

	group->nfull -= cursor->nslots >= st->max_slots;
	cursor->nslots += (uint32_t) by;
	group->nfull += cursor->nslots >= st->max_slots;
}

#endif							/* QC_CURSOR_H */
