/*
 * qc_group.c
 *		Consumer groups: their life, where they stand in partitions they have not looked at, seeking.
 *
 * Invariants of a live group:
 *	 unscanned = messages kept (QcPartition.visible) of the partitions that lack a cursor of it; with QC_START_NEW there is
 *	 nothing to deliver in such a partition, and unscanned is 0;
 *	 a partition behind `scan` lacks a cursor only when it is empty.
 */
#include "qc_group.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "qc_catalog.h"
#include "qc_cursor.h"
#include "qc_lease.h"
#include "qc_mutant.h"
#include "qc_purge.h"
#include "qc_wait.h"

#define SLOTS_PER_ROW 16		/* of a cursor that is freed: so many cost as much as a row */

/* ---- life ---- */

QcGroup *
qc_group_make(QcState *st, QcQueue *queue, uint64_t id, const QcStr *name, uint8_t start,
			  int64_t start_at, bool promised)
{
	QcRef		ref = promised ? qc_mem_alloc_reserved(&st->mem, QC_CLASS_GROUP) :
		qc_mem_alloc(&st->mem, QC_CLASS_GROUP);
	QcGroup    *group = QC_AT(st, QcGroup, ref);

	if (group == NULL)
		return NULL;
	if (name != NULL)
	{
		group->name = qc_name_put(st, name, promised);
		group->name_len = name->len;
	}
	if (name != NULL && group->name == 0)
	{
		qc_mem_free(&st->mem, QC_CLASS_GROUP, ref);
		return NULL;
	}
	group->id = id;
	group->queue = QC_REF(st, queue);
	group->start = start;
	group->start_at = start_at;
	group->next = queue->groups;
	queue->groups = ref;
	if (queue->next_group <= id)
	{
		queue->next_group = (uint32_t) id + 1;
		qc_dirty_queue(st, queue);
	}
	qc_dirty_group(st, group);
	return group;
}

/* Nothing is left to look at: what lacks a cursor is empty, or begins with the next push. */
static void
stop_scanning(QcState *st, QcGroup *group)
{
	assert(group->unscanned == 0);
	if (group->start == QC_START_NEW)
		return;
	QC_AT(st, QcQueue, group->queue)->nscanning--;
	group->start = QC_START_NEW;
	group->scan = 0;
	qc_dirty_group(st, group);
}

void
qc_group_open(QcState *st, QcGroup *group)
{
	QcQueue    *queue = QC_AT(st, QcQueue, group->queue);

	assert(group->state == QC_GROUP_CREATING);
	group->state = QC_GROUP_LIVE;
	queue->ngroups++;
	queue->group_changes++;
	qc_dirty_queue(st, queue);
	qc_dirty_group(st, group);
	if (group->start == QC_START_NEW)
		return;
	queue->nscanning++;
	group->unscanned = queue->visible;
	group->scan = queue->partitions.head;
	if (group->scan == 0)
		stop_scanning(st, group);
	else if (qc_group_estimates(group))
		st->estimates = 1;
}

/* Take the group out of its queue's list. */
static void
unlink_group(QcState *st, QcGroup *group)
{
	QcRef	   *at = &QC_AT(st, QcQueue, group->queue)->groups;
	QcRef		ref = QC_REF(st, group);

	while (*at != ref)
	{
		assert(*at != 0);
		at = &QC_AT(st, QcGroup, *at)->next;
	}
	*at = group->next;
}

void
qc_group_kill(QcState *st, QcGroup *group)
{
	QcQueue    *queue = QC_AT(st, QcQueue, group->queue);

	assert(group->state != QC_GROUP_DEAD);
	if (group->state == QC_GROUP_LIVE)
		queue->ngroups--;
	if (qc_group_scanning(group))
		queue->nscanning--;
	group->state = QC_GROUP_DEAD;

	/* Its cursors stand in no list any more, whatever they say. */
	group->ready.head = group->ready.tail = 0;
	qc_wait_group_gone(st, group);
	unlink_group(st, group);
	group->next = st->dead_groups;
	st->dead_groups = QC_REF(st, group);
	group->scan = queue->partitions.head;
	qc_dirty_group(st, group);
}

void
qc_group_replace(QcState *st, QcGroup *group, QcGroup *successor)
{
	QcPartition *lane = qc_partition_by_id(st, group->dead_partition);

	successor->name = group->name;
	successor->name_len = group->name_len;
	group->name = 0;
	group->name_len = 0;
	successor->acked = group->acked;
	successor->redelivered = group->redelivered;
	successor->last_pop = group->last_pop;
	successor->dead_partition = group->dead_partition;
	group->dead_partition = 0;
	if (lane != NULL)
	{
		lane->group = (uint32_t) successor->id;
		qc_dirty_partition(st, lane);
	}
	qc_group_kill(st, group);
	qc_group_open(st, successor);
}

/* Take the group's cursor out of a partition and free it; returns what that cost. */
static uint32_t
free_cursor(QcState *st, QcPartition *partition, const QcGroup *group)
{
	QcRef		of_group = QC_REF(st, group);
	QcRef	   *at = &partition->cursors;
	QcCursor   *cursor;
	uint32_t	cost;

	qc_partition_touch(st, partition);
	while ((cursor = QC_AT(st, QcCursor, *at)) != NULL && cursor->group != of_group)
		at = &cursor->next;
	if (cursor == NULL)
		return 1;
	cost = 1 + cursor->nslots / SLOTS_PER_ROW;
	*at = cursor->next;
	qc_cursor_free(st, cursor);
	return cost;
}

/* The group's dead letters go with it; false = an entry that adds to them is not settled. */
static bool
free_lane(QcState *st, QcGroup *group, uint32_t *budget)
{
	QcPartition *lane = qc_partition_by_id(st, group->dead_partition);
	QcQueue    *queue = QC_AT(st, QcQueue, group->queue);

	if (lane == NULL)
		return true;
	if (lane->pending.head != 0 || queue->pins > 0)
		return false;
	return qc_partition_free(st, lane, budget);
}

void
qc_group_free(QcState *st, QcGroup *group)
{
	QcQueue    *queue = QC_AT(st, QcQueue, group->queue);
	QcRef		lease;

	/* What a seek ended stays listed until its time is over. */
	while ((lease = group->leases.head) != 0)
		qc_lease_destroy(st, QC_AT(st, QcLease, lease));
	group->deleted_queue_id = queue->id;
	if (group->name != 0)
		qc_mem_free(&st->mem, qc_mem_name_class(group->name_len), group->name);
	group->name = 0;
	qc_free_row(st, QC_CLASS_GROUP, QC_REF(st, group), &group->dirty);
}

/* Free rows of one dead group; true = nothing but the group itself is left. */
static bool
sweep_group(QcState *st, QcGroup *group, uint32_t *budget)
{
	QcPartition *partition;

	while ((partition = QC_AT(st, QcPartition, group->scan)) != NULL)
	{
		uint32_t	cost = free_cursor(st, partition, group);

		group->scan = partition->of_queue.next;
		*budget -= cost < *budget ? cost : *budget;
		if (*budget == 0)
			return false;
	}
	return free_lane(st, group, budget);
}

bool
qc_group_sweep(QcState *st, uint32_t budget)
{
	QcRef	   *at = &st->dead_groups;

	while (*at != 0)
	{
		QcGroup    *group = QC_AT(st, QcGroup, *at);

		/* A queue that goes away takes its groups along. */
		if (QC_AT(st, QcQueue, group->queue)->state == QC_QUEUE_DEAD ||
			!sweep_group(st, group, &budget))
		{
			if (budget == 0)
				return true;
			at = &group->next;
			continue;
		}
		*at = group->next;
		qc_group_free(st, group);
	}
	return false;
}

void
qc_group_free_dead(QcState *st, const QcQueue *queue)
{
	QcRef	   *at = &st->dead_groups;
	QcRef		of_queue = QC_REF(st, queue);

	while (*at != 0)
	{
		QcGroup    *group = QC_AT(st, QcGroup, *at);

		if (group->queue != of_queue)
		{
			at = &group->next;
			continue;
		}
		*at = group->next;
		qc_group_free(st, group);
	}
}

/* ---- standing ---- */

bool
qc_group_lacks(QcState *st, const QcPartition *partition, const QcGroup *group)
{
	const QcCursor *cursor = qc_cursor_of(st, partition, group);

	return cursor == NULL || cursor->fetch == QC_UNSET;
}

bool
qc_group_start(const QcGroup *group, const QcPartition *partition, uint64_t *position)
{
	switch (group->start)
	{
		case QC_START_OLDEST:
			*position = partition->start;
			return true;
		case QC_START_POSITION:
			*position = (uint64_t) group->start_at;
			return true;
		case QC_START_TIME:
			*position = partition->next;
			return partition->start == partition->next ||
				partition->last_push < group->start_at;
		default:
			*position = partition->next;
			return true;
	}
}

uint32_t
qc_groups_lacking(QcState *st, const QcPartition *partition)
{
	const QcQueue *queue = QC_AT(st, QcQueue, partition->queue);
	uint32_t	n = 0;

	if (partition->lane != QC_LANE_NONE || partition->group_changes == queue->group_changes)
		return 0;
	for (QcGroup *group = QC_AT(st, QcGroup, queue->groups); group != NULL;
		 group = QC_AT(st, QcGroup, group->next))
		n += group->state == QC_GROUP_LIVE && qc_cursor_of(st, partition, group) == NULL;
	return n;
}

bool
qc_group_prepare(QcState *st, QcGroup *group, QcPartition *partition, bool promised)
{
	QcCursor   *cursor;

	if (qc_cursor_of(st, partition, group) != NULL)
		return true;
	cursor = QC_AT(st, QcCursor, qc_cursor_create(st, partition, group, promised));
	if (cursor == NULL)
		return false;
	cursor->fetch = QC_UNSET;
	return true;
}

/* Nearest position that the partition has. */
static uint64_t
clamp(const QcPartition *partition, uint64_t position)
{
	if (position < partition->start)
		return partition->start;
	return position > partition->next ? partition->next : position;
}

/* Put a cursor that has no position there. */
static void
set_position(QcState *st, QcPartition *partition, QcCursor *cursor, uint64_t position)
{
	QcGroup    *group = QC_AT(st, QcGroup, cursor->group);

	cursor->fetch = qc_skip_aborted(st, partition, clamp(partition, position));
	cursor->hint = 0;
	group->nready += qc_partition_count(st, partition, cursor->fetch);
	qc_dirty_cursor(st, cursor);
	qc_cursor_refresh(st, cursor);
}

bool
qc_group_place(QcState *st, QcGroup *group, QcPartition *partition, uint64_t position, bool promised)
{
	assert(qc_group_lacks(st, partition, group) && partition->lane == QC_LANE_NONE);
	qc_partition_touch(st, partition);
	if (!qc_group_prepare(st, group, partition, promised))
		return false;
	if (qc_group_scanning(group))
	{
		assert(group->unscanned >= partition->visible);
		group->unscanned -= partition->visible;
	}
	set_position(st, partition, qc_cursor_of(st, partition, group), position);
	return true;
}

QcCursor *
qc_group_cursor(QcState *st, QcGroup *group, QcPartition *partition, bool promised, uint32_t *used)
{
	QcCursor   *cursor = qc_cursor_of(st, partition, group);
	uint64_t	position;

	*used = 0;
	qc_partition_touch(st, partition);
	if (cursor != NULL && cursor->fetch != QC_UNSET)
		return cursor;
	if (group->state != QC_GROUP_LIVE || !qc_group_start(group, partition, &position))
		return NULL;
	*used = cursor == NULL;
	if (!qc_group_place(st, group, partition, position, promised))
		return NULL;
	return qc_cursor_of(st, partition, group);
}

void
qc_groups_follow(QcState *st, QcPartition *partition, bool promised)
{
	QcQueue    *queue = QC_AT(st, QcQueue, partition->queue);
	bool		all = true;

	qc_partition_touch(st, partition);
	if (partition->group_changes == queue->group_changes || partition->lane != QC_LANE_NONE ||
		QC_MUTATED(QC_MUTANT_GROUP_FOLLOWS_LATE))
		return;
	for (QcGroup *group = QC_AT(st, QcGroup, queue->groups); group != NULL;
		 group = QC_AT(st, QcGroup, group->next))
	{
		uint32_t	used;

		if (group->state == QC_GROUP_LIVE)
			all = qc_group_cursor(st, group, partition, promised, &used) != NULL && all;
	}

	/*
	 * One that stands where only the messages can tell has to be looked at again: these messages
	 * may be gone before it is told, and then it begins with the next push.
	 */
	if (!all)
		return;
	partition->group_changes = queue->group_changes;
	qc_dirty_partition(st, partition);
}

void
qc_group_seek(QcState *st, QcGroup *group, QcPartition *partition, uint64_t position, uint64_t seq)
{
	QcCursor   *cursor;

	qc_partition_touch(st, partition);
	cursor = qc_cursor_of(st, partition, group);
	if (cursor == NULL || cursor->fetch == QC_UNSET)
	{
		if (!qc_group_place(st, group, partition, position, false))
			return;
		cursor = qc_cursor_of(st, partition, group);
	}
	else
	{
		qc_cursor_clear(st, cursor);
		group->nready -= qc_partition_count(st, partition, cursor->fetch);
		set_position(st, partition, cursor, position);
	}
	cursor->sought = seq;
}

uint32_t
qc_group_scan(QcState *st, QcGroup *group, uint64_t asked[QC_POP_UNSCANNED_MAX], uint32_t *nasked)
{
	QcPartition *partition = QC_AT(st, QcPartition, group->scan);
	QcRef		held = 0;		/* first partition that must be asked */
	uint32_t	made = 0;

	*nasked = 0;
	for (uint32_t n = 0; partition != NULL && n < QC_POP_UNSCANNED_MAX; n++)
	{
		uint32_t	used = 0;

		qc_partition_touch(st, partition);
		if (partition->lane == QC_LANE_NONE && partition->start < partition->next &&
			qc_group_cursor(st, group, partition, true, &used) == NULL)
		{
			if (held == 0)
				held = QC_REF(st, partition);
			asked[(*nasked)++] = partition->id;
		}
		made += used;
		partition = QC_AT(st, QcPartition, partition->of_queue.next);
	}
	group->scan = held != 0 ? held : QC_REF(st, partition);
	if (group->scan == 0)
		stop_scanning(st, group);
	return made;
}

/* A group of the queue whose lag is an upper bound only. */
static const QcGroup *
estimating_group(const QcState *st, const QcQueue *queue)
{
	const QcGroup *group = queue->nscanning == 0 || queue->state == QC_QUEUE_DEAD ? NULL :
		QC_AT(st, QcGroup, queue->groups);

	while (group != NULL && !qc_group_estimates(group))
		group = QC_AT(st, QcGroup, group->next);
	return group;
}

bool
qc_group_next_estimate(QcState *st, uint64_t after, uint64_t *queue_id, uint64_t *group_id)
{
	bool		any = false;
	bool		found = false;

	if (st->estimates == 0)
		return false;
	for (const QcQueue *queue = QC_AT(st, QcQueue, st->queues.head); queue != NULL;
		 queue = QC_AT(st, QcQueue, queue->all.next))
	{
		const QcGroup *group = estimating_group(st, queue);

		any = any || group != NULL;
		if (group == NULL || queue->state != QC_QUEUE_LIVE || queue->damaged ||
			(found && queue->id <= after))
			continue;
		found = true;
		*queue_id = queue->id;
		*group_id = group->id;
		if (queue->id > after)
			return true;
	}
	st->estimates = any;
	return found;
}
