/*
 * wrk_dying.c
 *		The timer worker's second duty: messages that have come back once too often go to the dead letters.
 *
 * Batches of one queue and group, from the head of QcState.dying on.  What cannot be moved now (its queue is being
 * dropped or is damaged, there is no room, its bytes are out of reach) is put off for a while and holds up nothing but
 * itself.
 */
#include "wrk_timer.h"

#include "access/xact.h"
#include "utils/memutils.h"

#include "qlog_commit.h"
#include "qlog_death.h"
#include "qlog_guc.h"
#include "qlog_lookup.h"
#include "qlog_partition.h"
#include "qlog_stop.h"

#include "../core/qc_cursor.h"
#include "../core/qc_purge.h"

#define LOOK_MAX	256			/* slots looked at per hold of the state lock */
#define SOON_US		1000000		/* until a queue is looked at again that somebody is changing */
#define PUT_OFF_US	10000000	/* until what failed is tried again */

/* Can messages of this queue and group die now?	State lock. */
static bool
can_move(const QcQueue *queue, const QcGroup *group)
{
	return queue->state == QC_QUEUE_LIVE && !queue->damaged && group->state == QC_GROUP_LIVE;
}

/* Look at this one again later; *stuck is set when that cannot be arranged.	State lock. */
static void
defer(QcSlot *slot, int64 delay, bool *stuck)
{
	if (!qc_slot_defer(qlog_state, slot, delay, qlog_monotonic()))
		*stuck = true;
}

/*
 * Note the first messages of the list that belong together.	 Those that cannot be moved are put off, those that need
 * not die any more, live.	State lock.  false = nothing to move was found among the first ones.
 */
static bool
collect(QlogDeaths *deaths, bool *stuck)
{
	QcRef		next;
	uint32		looked = 0;

	deaths->queue = 0;
	for (QcRef ref = qlog_state->dying.head; ref != 0 && looked < LOOK_MAX; ref = next, looked++)
	{
		QcSlot	   *slot = QC_AT(qlog_state, QcSlot, ref);
		QcCursor   *cursor = QC_AT(qlog_state, QcCursor, slot->cursor);
		QcPartition *partition = QC_AT(qlog_state, QcPartition, cursor->partition);
		QcQueue    *queue = QC_AT(qlog_state, QcQueue, partition->queue);
		QcGroup    *group = QC_AT(qlog_state, QcGroup, cursor->group);

		next = slot->of_lease.next;
		if (qc_partition_stale(qlog_state, partition))
		{
			/* A purge has taken it, and others with it. */
			qc_partition_touch(qlog_state, partition);
			next = qlog_state->dying.head;
			continue;
		}
		if (!qc_queue_exhausted(queue, slot->attempt))
		{
			qc_slot_revive(qlog_state, slot);
			continue;
		}
		if (!can_move(queue, group))
		{
			defer(slot, SOON_US, stuck);
			continue;
		}
		if (deaths->queue == 0)
			qlog_deaths_begin(deaths, queue, group);
		else if (deaths->queue != queue->id || deaths->group != group->id)
			break;
		qlog_deaths_add(deaths, partition, slot->position, slot->attempt, slot->cause, &slot->hint);
		if (deaths->n == QLOG_DEATHS_MAX)
			break;
	}
	return deaths->queue != 0;
}

/* QlogCheck: is the head of the list still what was noted? State lock. */
static bool
still_dying(void *context)
{
	const QlogDeaths *deaths = context;
	QcSlot	   *slot = QC_AT(qlog_state, QcSlot, qlog_state->dying.head);

	if (!qlog_deaths_hold(deaths))
		return false;
	for (uint32 i = 0; i < deaths->n; i++)
	{
		const QlogSpot *spot = &deaths->dying[i].spot;
		QcCursor   *cursor = slot == NULL ? NULL : QC_AT(qlog_state, QcCursor, slot->cursor);

		QcPartition *partition = cursor == NULL ? NULL :
			QC_AT(qlog_state, QcPartition, cursor->partition);

		if (cursor == NULL || slot->position != spot->position || slot->attempt != spot->attempt ||
			partition->id != spot->partition || qc_partition_stale(qlog_state, partition) ||
			QC_AT(qlog_state, QcGroup, cursor->group)->id != deaths->group)
			return false;
		slot = QC_AT(qlog_state, QcSlot, slot->of_lease.next);
	}
	return true;
}

/* Put off those that were noted and are still there. */
static void
put_off(const QlogDeaths *deaths, int64 delay, bool *stuck)
{
	qlog_lock_state();
	for (uint32 i = 0; i < deaths->n; i++)
	{
		QcSlot	   *slot = QC_AT(qlog_state, QcSlot, qlog_state->dying.head);
		QcCursor   *cursor = slot == NULL ? NULL : QC_AT(qlog_state, QcCursor, slot->cursor);

		if (cursor == NULL || slot->position != deaths->dying[i].spot.position ||
			QC_AT(qlog_state, QcPartition, cursor->partition)->id != deaths->dying[i].spot.partition)
			break;
		defer(slot, delay, stuck);
	}
	qlog_unlock_state();
}

/* Make the lane of the group, which has none.  false = not now; *err says why when that is an error. */
static bool
make_lane(QlogDeaths *deaths, QcError *err)
{
	MemoryContext caller = CurrentMemoryContext;
	QlogName	name = {deaths->name, deaths->name_len};
	volatile bool made = false;

	PG_TRY();
	{
		StartTransactionCommand();
		made = qlog_dead_lane(deaths->database, deaths->queue, name, deaths->group, false,
							  &deaths->lane);
		CommitTransactionCommand();
		MemoryContextSwitchTo(caller);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		FlushErrorState();
		AbortCurrentTransaction();
		MemoryContextSwitchTo(caller);
		qc_error_set(err, QC_FULL, "%s%s%s", error->message, error->detail == NULL ? "" : ": ",
					 error->detail == NULL ? "" : error->detail);
		made = false;
	}
	PG_END_TRY();
	return made;
}

static void *
plan_alloc(void *context, size_t size)
{
	return MemoryContextAllocExtended(context, size, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
}

/* Read and log what was noted; the messages stay where they are when that fails. */
static QcStatus
bury(QlogDeaths *deaths, QcError *err)
{
	QcOp		ops[QLOG_DEATHS_MAX];
	QcPlan	   *plan = palloc(sizeof(QcPlan));
	QcStatus	status = qlog_deaths_ops(deaths, ops, err);

	QLOG_STOP("dying-after-read");
	if (status == QC_OK)
		status = qc_plan_build(plan, ops, deaths->n, 0, 0, qlog_segment_bytes(), plan_alloc,
							   CurrentMemoryContext, err);
	if (status != QC_OK)
		return status;
	plan->immediate = true;
	status = qlog_try_plan(plan, still_dying, NULL, deaths, err);
	if (status == QC_OK && plan->seq != 0)
		QLOG_STOP("dying-after-log");
	return status;
}

/* One batch. */
static void
move_batch(QlogWorker *worker, QlogDeaths *deaths, bool *stuck)
{
	QcError		err;

	qc_error_clear(&err);
	if (deaths->keep && deaths->lane == 0 && !make_lane(deaths, &err))
	{
		put_off(deaths, err.code == QC_OK ? SOON_US : PUT_OFF_US, stuck);
		if (err.code != QC_OK)
			qlog_worker_error(worker, &err, "could not make a place for dead letters");
		return;
	}
	QLOG_STOP("dying-after-lane");
	if (bury(deaths, &err) == QC_OK)
	{
		qlog_worker_error(worker, NULL, NULL);
		return;
	}
	put_off(deaths, PUT_OFF_US, stuck);
	qlog_worker_error(worker, &err, "could not move a message to the dead letters");
}

QlogMoved
qlog_move_dying(QlogWorker *worker)
{
	static MemoryContext context = NULL;
	static QlogDeaths *deaths = NULL;
	MemoryContext caller;
	bool		stuck = false;
	bool		found;
	bool		more;

	if (deaths == NULL)
	{
		deaths = MemoryContextAlloc(TopMemoryContext, sizeof(QlogDeaths));
		context = AllocSetContextCreate(TopMemoryContext, "qlog dying", ALLOCSET_DEFAULT_SIZES);
	}
	qlog_lock_state();
	found = collect(deaths, &stuck);
	more = qlog_state->dying.head != 0;
	qlog_unlock_state();
	if (found)
	{
		qlog_worker_state(worker, "dead letters");
		caller = MemoryContextSwitchTo(context);
		move_batch(worker, deaths, &stuck);
		MemoryContextSwitchTo(caller);
		MemoryContextReset(context);
	}
	return stuck ? QLOG_MOVED_STUCK : more ? QLOG_MOVED_SOME : QLOG_MOVED_NOTHING;
}
