/*
 * qc_delay.c
 *		Delayed messages (qc_delay.h).
 */
#include "qc_delay.h"

#include <assert.h>

#include "qc_lane.h"
#include "qc_timer.h"

#define CLOCK_STEP_US INT64_C(250000)	/* the clocks may drift apart by this much */

QcPartition *
qc_delay_lane(QcState *st, const QcQueue *queue)
{
	return queue->delay_partition == 0 ? NULL : qc_partition_by_id(st, queue->delay_partition);
}

QcStatus
qc_delay_add(QcState *st, const QcEffect *effect, bool promised, QcError *err)
{
	const QcDelay *delay = &effect->u.delay;
	QcPartition *lane = qc_partition_by_id(st, delay->lane);

	for (uint32_t i = 0; lane != NULL && i < effect->nitems; i++)
	{
		QcLaneItem *item = qc_lane_add(st, lane, delay->first + i, promised);
		QcDelayItem fields;

		if (item == NULL || !qc_timer_take(st, item, promised))
			return qc_error_set(err, QC_FULL, "state memory is full");
		qc_effect_item(effect, i, &fields);
		qc_lane_aim(st, item, delay->partition);
		item->origin = (uint64_t) delay->due;
		item->hash = fields.hash;
	}
	return QC_OK;
}

/* Let the timer run; a due time in the past is one of now. */
static void
arm(QcState *st, QcLaneItem *item, int64_t monotonic)
{
	int64_t		due = (int64_t) item->origin;
	int64_t		when = due > INT64_MAX / 2 ? INT64_MAX / 2 : due - st->wall_offset;

	qc_timer_arm_item(st, item, when > monotonic ? when : monotonic, monotonic);
}

void
qc_delay_settle(QcState *st, QcPartition *lane, uint64_t first, uint32_t count, bool committed,
				int64_t monotonic)
{
	for (uint32_t i = 0; i < count; i++)
	{
		QcLaneItem *item = qc_lane_find(st, lane, first + i);
		bool		live = item != NULL && item->state == QC_LANE_ITEM_OPEN && committed;

		if (item != NULL)
			qc_lane_settle(st, item, committed);
		if (live)
			arm(st, item, monotonic);
	}
}

static QcLaneItem *
find(QcState *st, uint64_t lane_id, uint64_t position)
{
	QcPartition *lane = qc_partition_by_id(st, lane_id);

	return lane == NULL ? NULL : qc_lane_find(st, lane, position);
}

void
qc_delay_remove(QcState *st, uint64_t lane, uint64_t position)
{
	QcLaneItem *item = find(st, lane, position);

	if (item != NULL)
		qc_lane_remove(st, item);
}

bool
qc_delay_waits(QcState *st, uint64_t lane, uint64_t position)
{
	QcLaneItem *item = find(st, lane, position);

	return item != NULL && item->state == QC_LANE_ITEM_LIVE;
}

bool
qc_delay_loaded(QcState *st, QcPartition *lane, int64_t monotonic)
{
	for (QcLaneItem *item = QC_AT(st, QcLaneItem, lane->items.head); item != NULL;
		 item = QC_AT(st, QcLaneItem, item->of_lane.next))
	{
		if (!qc_timer_take(st, item, false))
			return false;
		if (item->state == QC_LANE_ITEM_LIVE)
			arm(st, item, monotonic);
	}
	return true;
}

void
qc_delay_due(QcState *st, QcLaneItem *item, int64_t monotonic)
{
	/* The wall clock was set back, and that has not been noticed yet. */
	if ((int64_t) item->origin - st->wall_offset > monotonic)
		arm(st, item, monotonic);
	else
		qc_timer_item_due(st, item);
}

uint32_t
qc_delay_next(QcState *st, QcDelayed *delayed, uint32_t max)
{
	uint32_t	n = 0;

	for (QcTimer *timer = QC_AT(st, QcTimer, st->due.head); timer != NULL && n < max;
		 timer = QC_AT(st, QcTimer, timer->link.next))
	{
		const QcLaneItem *item = QC_AT(st, QcLaneItem, timer->target);
		QcPartition *lane = QC_AT(st, QcPartition, item->lane);
		const QcQueue *queue = QC_AT(st, QcQueue, lane->queue);
		QcRef		hint = 0;

		delayed[n].queue = queue->id;
		delayed[n].lane = lane->id;
		delayed[n].position = item->position;
		delayed[n].target = item->target;
		delayed[n].due = (int64_t) item->origin;
		delayed[n].location.log = queue->log_id;
		(void) qc_index_find(st, lane, item->position, &hint, &delayed[n].location);
		n++;
	}
	return n;
}

void
qc_delay_put_off(QcState *st, uint64_t lane, uint64_t position, int64_t when, int64_t monotonic)
{
	QcLaneItem *item = find(st, lane, position);

	if (item != NULL && item->state == QC_LANE_ITEM_LIVE)
		qc_timer_arm_item(st, item, when, monotonic);
}

bool
qc_delay_any(const QcState *st)
{
	return st->ndelayed > 0;
}

/* Arm timers of a queue anew, from the last item on; false = the budget was not enough. */
static bool
arm_anew(QcState *st, QcPartition *lane, int64_t monotonic, uint32_t *budget)
{
	QcLaneItem *item = qc_lane_find(st, lane, st->clock_position);

	if (item == NULL)
		item = qc_lane_seek(st, lane, st->clock_position, 0);
	for (; item != NULL; item = QC_AT(st, QcLaneItem, item->of_lane.next))
	{
		if (*budget == 0)
		{
			st->clock_position = item->position;
			return false;
		}
		(*budget)--;
		if (item->state == QC_LANE_ITEM_LIVE && qc_timer_waits(st, item))
			arm(st, item, monotonic);
	}
	st->clock_position = 0;
	return true;
}

bool
qc_delay_clock(QcState *st, int64_t now, int64_t monotonic, uint32_t budget)
{
	int64_t		offset = now - monotonic;
	int64_t		step = offset - st->wall_offset;
	QcQueue    *queue = qc_queue_by_id(st, st->clock_queue);

	if (step > CLOCK_STEP_US || step < -CLOCK_STEP_US)
	{
		/* From the first queue on, with the new difference. */
		st->wall_offset = offset;
		st->clock_queue = st->clock_position = 0;
		queue = QC_AT(st, QcQueue, st->queues.head);
	}
	while (queue != NULL)
	{
		QcPartition *lane = qc_delay_lane(st, queue);

		if (budget == 0 || (lane != NULL && !arm_anew(st, lane, monotonic, &budget)))
		{
			st->clock_queue = queue->id;
			return true;
		}
		budget -= budget > 0;
		queue = QC_AT(st, QcQueue, queue->all.next);
	}
	st->clock_queue = 0;
	return false;
}
