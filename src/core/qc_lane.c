/*
 * qc_lane.c
 *		Lanes: their lists of items.
 *
 * Invariants: items are in ascending order of position; nitems is the number of live ones, and QcQueue.dead the sum over
 * the dead lanes of the queue.
 */
#include "qc_lane.h"

#include <assert.h>
#include <stddef.h>

#include "qc_effect.h"
#include "qc_log.h"
#include "qc_timer.h"

#define OF_LANE offsetof(QcLaneItem, of_lane)

static QcRef *
bucket_of(QcState *st, const QcPartition *lane, uint64_t position)
{
	return qc_table_bucket(st, &st->lane_items, qc_hash_id(lane->id ^ qc_hash_id(position)));
}

QcLaneItem *
qc_lane_find(QcState *st, const QcPartition *lane, uint64_t position)
{
	QcRef		of_lane = QC_REF(st, lane);
	QcLaneItem *item = QC_AT(st, QcLaneItem, *bucket_of(st, lane, position));

	while (item != NULL && (item->position != position || item->lane != of_lane))
		item = QC_AT(st, QcLaneItem, item->next);
	return item;
}

QcLaneItem *
qc_lane_add(QcState *st, QcPartition *lane, uint64_t position, bool promised)
{
	QcRef		ref = promised ? qc_mem_alloc_reserved(&st->mem, QC_CLASS_LANE_ITEM) :
		qc_mem_alloc(&st->mem, QC_CLASS_LANE_ITEM);
	QcLaneItem *item = QC_AT(st, QcLaneItem, ref);
	QcRef	   *bucket = bucket_of(st, lane, position);

	if (item == NULL)
		return NULL;
	item->next = *bucket;
	*bucket = ref;
	st->lane_items.count++;
	assert(lane->items.tail == 0 ||
		   QC_AT(st, QcLaneItem, lane->items.tail)->position < position);
	item->lane = QC_REF(st, lane);
	item->state = QC_LANE_ITEM_OPEN;
	item->position = position;
	qc_list_append(st, &lane->items, ref, OF_LANE);
	qc_dirty_lane_item(st, item);
	return item;
}

void
qc_lane_aim(QcState *st, QcLaneItem *item, uint64_t target)
{
	QcPartition *partition = qc_partition_by_id(st, target);

	assert(item->target == 0);
	item->target = target;
	if (partition != NULL)
		partition->aimed++;
}

/* Count a live item that comes (1) or goes (-1). */
static void
count(QcState *st, QcPartition *lane, int change)
{
	QcQueue    *queue = QC_AT(st, QcQueue, lane->queue);

	lane->nitems += (uint32_t) change;
	if (lane->lane == QC_LANE_DELAY)
	{
		st->ndelayed += (uint64_t) (int64_t) change;
		queue->delayed += (uint64_t) (int64_t) change;
	}
	if (lane->lane != QC_LANE_DEAD)
		return;
	queue->dead += (uint64_t) (int64_t) change;
	qc_dirty_queue(st, queue);
}

static void
destroy(QcState *st, QcLaneItem *item)
{
	QcPartition *lane = QC_AT(st, QcPartition, item->lane);
	QcRef		ref = QC_REF(st, item);
	QcRef	   *at = bucket_of(st, lane, item->position);
	QcPartition *target = qc_partition_by_id(st, item->target);

	/* One that a recovery has not found is counted nowhere. */
	if (target != NULL && target->aimed > 0)
		target->aimed--;
	while (*at != ref)
		at = &QC_AT(st, QcLaneItem, *at)->next;
	*at = item->next;
	st->lane_items.count--;
	qc_timer_disarm(st, &item->timer);
	qc_list_remove(st, &lane->items, ref, OF_LANE);
	qc_log_died(st, QC_AT(st, QcQueue, lane->queue));
	item->target = lane->id;
	item->lane = 0;
	qc_free_row(st, QC_CLASS_LANE_ITEM, ref, &item->dirty);
}

void
qc_lane_settle(QcState *st, QcLaneItem *item, bool committed)
{
	assert(item->state == QC_LANE_ITEM_OPEN || item->state == QC_LANE_ITEM_GONE);
	if (!committed || item->state == QC_LANE_ITEM_GONE)
	{
		destroy(st, item);
		return;
	}
	item->state = QC_LANE_ITEM_LIVE;
	count(st, QC_AT(st, QcPartition, item->lane), 1);
	qc_dirty_lane_item(st, item);
}

void
qc_lane_remove(QcState *st, QcLaneItem *item)
{
	if (item->state == QC_LANE_ITEM_LIVE)
	{
		count(st, QC_AT(st, QcPartition, item->lane), -1);
		destroy(st, item);
		return;
	}
	item->state = QC_LANE_ITEM_GONE;
	qc_dirty_lane_item(st, item);
}

QcLaneItem *
qc_lane_seek(QcState *st, QcPartition *lane, uint64_t position, QcRef hint)
{
	QcLaneItem *item = QC_AT(st, QcLaneItem, hint);

	if (item == NULL || item->lane != QC_REF(st, lane) || item->position > position)
		item = QC_AT(st, QcLaneItem, lane->items.head);
	while (item != NULL && item->position < position)
		item = QC_AT(st, QcLaneItem, item->of_lane.next);
	return item;
}

void
qc_lane_remove_range(QcState *st, QcPartition *lane, uint64_t first, uint32_t count)
{
	QcLaneItem *item = qc_lane_seek(st, lane, first, 0);

	while (item != NULL && item->position - first < count)
	{
		QcLaneItem *next = QC_AT(st, QcLaneItem, item->of_lane.next);

		qc_lane_remove(st, item);
		item = next;
	}
}

bool
qc_lane_sweep(QcState *st, QcPartition *lane, uint32_t *budget)
{
	while (lane->items.head != 0)
	{
		QcLaneItem *item = QC_AT(st, QcLaneItem, lane->items.head);

		if (*budget == 0)
			return false;
		(*budget)--;
		if (item->state == QC_LANE_ITEM_LIVE)
			count(st, lane, -1);
		destroy(st, item);
	}
	return true;
}

/* The copy of a position whose entry is open: it stands near the end of the lane. */
static QcLaneItem *
find_open(QcState *st, const QcPartition *lane, uint64_t target, uint64_t origin)
{
	QcLaneItem *item = QC_AT(st, QcLaneItem, lane->items.tail);

	while (item != NULL && (item->state == QC_LANE_ITEM_LIVE || item->target != target ||
							item->origin != origin))
		item = QC_AT(st, QcLaneItem, item->of_lane.prev);
	return item;
}

/* The dead lane of the item's group, for rows that do not name the lane. */
static QcPartition *
lane_of_group(QcState *st, const QcOpenItem *item)
{
	QcPartition *partition = qc_partition_by_id(st, item->partition);
	QcGroup    *group = partition == NULL ? NULL :
		qc_group_by_id(st, QC_AT(st, QcQueue, partition->queue), item->group);

	return group == NULL ? NULL : qc_partition_by_id(st, group->dead_partition);
}

void
qc_lane_bind(QcState *st, QcOpen *open)
{
	for (QcRef ref = open->items; ref != 0; ref = QC_AT(st, QcOpenItem, ref)->next)
	{
		QcOpenItem *item = QC_AT(st, QcOpenItem, ref);
		QcPartition *lane;

		if (item->kind != QC_OPEN_DEAD)
			continue;
		lane = item->lane_item != 0 ? QC_AT(st, QcPartition, item->lane_item) :
			lane_of_group(st, item);
		item->lane_item = lane == NULL ? 0 :
			QC_REF(st, find_open(st, lane, item->partition, item->first));
	}
}
