/*
 * qc_open.c
 *		Open entries: applied, not settled yet; settling them, and logging decisions.
 *
 * Settling two entries in either order gives the same state: positions were taken when they were applied, a lease is
 * pinned by one entry at a time, and visibility moves on only over a settled prefix.  Entries that change groups are the
 * exception: their own commit logs their decision, and they are settled by that.
 */
#include <assert.h>
#include <stddef.h>

#include "qc_answer.h"
#include "qc_apply.h"
#include "qc_alter.h"
#include "qc_catalog.h"
#include "qc_dedup.h"
#include "qc_delay.h"
#include "qc_group.h"
#include "qc_lane.h"
#include "qc_lease.h"
#include "qc_mutant.h"
#include "qc_purge.h"

#define ALL offsetof(QcOpen, all)

enum
{
	UNDECIDED = 0,
	COMMITTED = 1,
	ABORTED = 2
};

bool
qc_apply_begin(QcState *st, QcApply *apply)
{
	QcOpen	   *open;

	st->seq = apply->seq;
	apply->open = 0;
	if (apply->immediate)
		return true;
	apply->open = apply->recovering ? qc_mem_alloc(&st->mem, QC_CLASS_OPEN) :
		qc_mem_alloc_reserved(&st->mem, QC_CLASS_OPEN);
	open = QC_AT(st, QcOpen, apply->open);
	if (open == NULL)
		return false;
	open->seq = apply->seq;
	open->xid = apply->xid;
	open->pid = apply->pid;
	open->since = apply->created_at;
	qc_list_append(st, &st->opens, apply->open, ALL);
	st->nopens++;
	qc_dirty_open(st, open);
	return true;
}

/* The lists grow at their heads. */
void
qc_open_turn(QcState *st, QcOpen *open)
{
	QcRef		pendings = 0;
	QcRef		items = 0;
	QcRef		next;

	for (QcRef ref = open->pendings; ref != 0; ref = next)
	{
		QcPending  *pending = QC_AT(st, QcPending, ref);

		next = pending->of_open;
		pending->of_open = pendings;
		pendings = ref;
	}
	for (QcRef ref = open->items; ref != 0; ref = next)
	{
		QcOpenItem *item = QC_AT(st, QcOpenItem, ref);

		next = item->next;
		item->next = items;
		items = ref;
	}
	open->pendings = pendings;
	open->items = items;
}

/* Settle the positions that the entry took. */
static void
settle_pendings(QcState *st, QcOpen *open, bool committed)
{
	QcRef		next;

	for (QcRef ref = open->pendings; ref != 0; ref = next)
	{
		QcPending  *pending = QC_AT(st, QcPending, ref);
		QcPartition *partition = QC_AT(st, QcPartition, pending->partition);
		QcQueue    *queue = QC_AT(st, QcQueue, partition->queue);

		next = pending->of_open;
		pending->settled = committed ? COMMITTED : ABORTED;
		if (committed && partition->lane != QC_LANE_DEAD && !open->moved)
			queue->pushed += pending->count;
		for (QcRef c = committed ? 0 : partition->cursors; c != 0;
			 c = QC_AT(st, QcCursor, c)->next)
			qc_cursor_void(st, QC_AT(st, QcCursor, c), pending->first, pending->count);
		qc_dirty_queue(st, queue);
		qc_partition_advance(st, partition);
	}
	open->pendings = 0;
}

/* Positions of a lease become done, with or without the lease (whose delivery recovery may have lost). */
static void
settle_ack(QcState *st, const QcOpenItem *item)
{
	QcPartition *partition = qc_partition_by_id(st, item->partition);
	QcLease    *lease = qc_lease_by_id(st, item->lease);
	QcQueue    *queue;
	QcGroup    *group;
	QcCursor   *cursor;
	uint32_t	used;
	uint32_t	n = 0;

	if (partition == NULL)
		return;
	queue = QC_AT(st, QcQueue, partition->queue);
	if (lease != NULL)
	{
		n = qc_lease_done(st, lease, partition, item->first, item->count);
		if (item->kind == QC_OPEN_ACK)
			lease->acked += n;
		if (lease->nslots == 0 && lease->acked == lease->taken)
			qc_answer_remember(st, lease->id, queue->id, lease->acked);
		(void) qc_lease_end_if_empty(st, lease);
	}
	group = qc_group_by_id(st, queue, item->group);
	cursor = n == item->count || group == NULL ? NULL :
		qc_group_cursor(st, group, partition, false, &used);

	/* What was delivered before a seek is not what the cursor will deliver again. */
	if (cursor != NULL &&
		(item->delivered >= cursor->sought || QC_MUTATED(QC_MUTANT_ANSWER_AFTER_SEEK)))
	{
		if (item->kind == QC_OPEN_ACK)
			(void) qc_cursor_done(st, cursor, item->first, item->count);
		else
			qc_cursor_dead(st, cursor, item->first);
	}
	if (item->kind == QC_OPEN_ACK)
	{
		queue->acked += item->count;
		if (group != NULL)
			group->acked += item->count;
	}
	if (item->kind == QC_OPEN_DROP)
		queue->dropped++;
	qc_dirty_queue(st, queue);
	if (group != NULL)
		qc_dirty_group(st, group);
}

/* A live group of the queue. */
static QcGroup *
live_group(QcState *st, const QcQueue *queue, uint64_t id)
{
	QcGroup    *group = qc_group_by_id(st, queue, id);

	return group == NULL || group->state != QC_GROUP_LIVE ? NULL : group;
}

/* A group that is on its way comes to live, or does not. */
static void
settle_new_group(QcState *st, QcQueue *queue, const QcOpenItem *item, bool committed)
{
	bool		seek = item->kind == QC_OPEN_GROUP_SEEK;
	QcGroup    *group = qc_group_by_id(st, queue, seek ? item->first : item->group);
	QcGroup    *old = seek ? live_group(st, queue, item->group) : NULL;

	/* Recovery promises nothing. */
	if (queue->coming > 0)
		queue->coming--;
	if (queue->creating > 0 && !seek)
		queue->creating--;
	if (group == NULL || group->state != QC_GROUP_CREATING)
		return;
	if (!committed || (seek && old == NULL))
		qc_group_kill(st, group);
	else if (seek)
		qc_group_replace(st, old, group);
	else
		qc_group_open(st, group);
}

static void
settle_seek(QcState *st, const QcOpenItem *item)
{
	QcPartition *partition = qc_partition_by_id(st, item->partition);
	QcGroup    *group = partition == NULL ? NULL :
		live_group(st, QC_AT(st, QcQueue, partition->queue), item->group);

	if (group != NULL)
		qc_group_seek(st, group, partition, item->first, st->seq);
}

static bool
is_group_item(const QcOpenItem *item)
{
	return item->kind == QC_OPEN_GROUP_CREATE || item->kind == QC_OPEN_GROUP_DROP ||
		item->kind == QC_OPEN_GROUP_SEEK || item->kind == QC_OPEN_SEEK;
}

/* What an entry does to groups, in the order in which it was asked for. */
static void
settle_group_item(QcState *st, const QcOpenItem *item, bool committed)
{
	QcQueue    *queue;
	QcGroup    *group;

	if (item->kind == QC_OPEN_SEEK)
	{
		if (committed)
			settle_seek(st, item);
		return;
	}
	queue = qc_queue_by_id(st, item->partition);
	if (queue == NULL || queue->state == QC_QUEUE_DEAD)
		return;
	if (item->kind == QC_OPEN_GROUP_CREATE || item->kind == QC_OPEN_GROUP_SEEK)
	{
		settle_new_group(st, queue, item, committed);
		return;
	}
	group = committed ? live_group(st, queue, item->group) : NULL;
	if (group != NULL)
		qc_group_kill(st, group);
}

/*
 * A purge whose commit has not logged it (its server went down): it takes place now, and spares those that are not
 * decided yet either, as well as the messages of its own entry.
 */
static void
settle_purge(QcState *st, const QcOpenItem *item)
{
	QcQueue    *queue = qc_queue_by_id(st, item->first);
	QcPartition *partition = qc_partition_by_id(st, item->partition);

	if (queue == NULL || queue->state == QC_QUEUE_DEAD)
		return;
	if (item->partition == 0)
		qc_purge_queue(st, queue, NULL);
	else if (partition != NULL)
		qc_purge_partition(st, partition, NULL);
}

/* The definition replaces the queue's, which may be gone by now. */
static void
settle_alter(QcState *st, const QcOpenItem *item, bool committed)
{
	QcQueue    *queue = qc_queue_by_id(st, item->partition);

	if (queue != NULL)
	{
		assert(queue->nalters > 0);
		queue->nalters--;
	}
	if (queue != NULL && committed)
		qc_alter_install(st, queue, item->alter);
	else
		qc_alter_discard(st, item->alter);
}

/* Does the item end positions of a lease? */
static bool
answers(const QcOpenItem *item)
{
	return item->kind == QC_OPEN_ACK || item->kind == QC_OPEN_DEAD || item->kind == QC_OPEN_DROP;
}

void
qc_open_settle_item(QcState *st, const QcOpenItem *item, bool committed,
					int64_t monotonic)
{
	QcQueue    *queue;

	if (answers(item))
	{
		if (committed)
			settle_ack(st, item);
		if (item->lane_item != 0)
			qc_lane_settle(st, QC_AT(st, QcLaneItem, item->lane_item), committed);
		return;
	}
	if (item->kind == QC_OPEN_DELAY)
	{
		QcPartition *lane = qc_partition_by_id(st, item->partition);

		if (lane != NULL)
			qc_delay_settle(st, lane, item->first, item->count, committed, monotonic);
		return;
	}
	if (item->kind == QC_OPEN_LANE_LEAVE)
	{
		QcPartition *lane = committed ? qc_partition_by_id(st, item->partition) : NULL;

		if (lane != NULL)
			qc_lane_remove_range(st, lane, item->first, item->count);
		return;
	}
	if (item->kind == QC_OPEN_QUEUE_ALTER)
	{
		settle_alter(st, item, committed);
		return;
	}
	if (item->kind != QC_OPEN_QUEUE_CREATE && item->kind != QC_OPEN_QUEUE_DROP)
		return;
	queue = qc_queue_by_id(st, item->partition);
	if (queue == NULL || queue->state == QC_QUEUE_DEAD)
		return;
	if ((item->kind == QC_OPEN_QUEUE_CREATE) == committed)
	{
		queue->state = QC_QUEUE_LIVE;
		qc_dirty_queue(st, queue);
	}
	else
		qc_queue_kill(st, queue);
}

/* Leases that the entry pinned and that still hold something run again. */
static void
unpin(QcState *st, const QcOpen *open, int64_t monotonic)
{
	for (QcRef ref = open->items; ref != 0; ref = QC_AT(st, QcOpenItem, ref)->next)
	{
		QcOpenItem *item = QC_AT(st, QcOpenItem, ref);
		QcLease    *lease = NULL;

		if (answers(item))
			lease = qc_lease_by_id(st, item->lease);
		if (lease != NULL && lease->pin_seq == open->seq)
			qc_lease_unpin(st, lease, monotonic);
	}
}

void
qc_open_settle(QcState *st, QcOpen *open, bool committed, uint64_t lsn, int64_t monotonic)
{
	QcRef		next;

	assert(open->decided == UNDECIDED);
	qc_open_turn(st, open);
	for (QcRef ref = committed ? open->items : 0; ref != 0; ref = QC_AT(st, QcOpenItem, ref)->next)
	{
		if (QC_AT(st, QcOpenItem, ref)->kind == QC_OPEN_PURGE)
			settle_purge(st, QC_AT(st, QcOpenItem, ref));
	}
	settle_pendings(st, open, committed);
	qc_dedup_settle(st, open, committed);
	for (QcRef ref = open->items; ref != 0; ref = QC_AT(st, QcOpenItem, ref)->next)
		qc_open_settle_item(st, QC_AT(st, QcOpenItem, ref), committed, monotonic);
	for (QcRef ref = open->items; ref != 0; ref = QC_AT(st, QcOpenItem, ref)->next)
	{
		if (is_group_item(QC_AT(st, QcOpenItem, ref)))
			settle_group_item(st, QC_AT(st, QcOpenItem, ref), committed);
	}
	unpin(st, open, monotonic);
	for (QcRef ref = open->items; ref != 0; ref = next)
	{
		next = QC_AT(st, QcOpenItem, ref)->next;
		qc_mem_free(&st->mem, QC_CLASS_OPEN_ITEM, ref);
	}
	open->items = 0;
	open->decided = committed ? COMMITTED : ABORTED;
	open->lsn = committed ? lsn : 0;
	if (committed && lsn > st->commit_lsn)
		st->commit_lsn = lsn;
	if (open->xid == 0)
		qc_open_forget(st, open);
	else
		qc_dirty_open(st, open);
}

void
qc_open_forget(QcState *st, QcOpen *open)
{
	assert(open->pendings == 0 && open->items == 0);
	qc_list_remove(st, &st->opens, QC_REF(st, open), ALL);
	st->nopens--;
	qc_free_row(st, QC_CLASS_OPEN, QC_REF(st, open), &open->dirty);
}

static bool
loggable(const QcOpen *open, uint64_t flushed)
{
	return open->decided == ABORTED || (open->decided == COMMITTED && open->lsn <= flushed);
}

uint32_t
qc_open_decisions(QcState *st, uint32_t timeline, uint64_t flushed, uint32_t max, QcWriter *w)
{
	QcDecision	decision = {.timeline = timeline};
	uint32_t	n = 0;

	for (QcOpen *open = QC_AT(st, QcOpen, st->opens.head); open != NULL && n < max;
		 open = QC_AT(st, QcOpen, open->all.next))
		n += loggable(open, flushed);
	if (n == 0)
		return 0;
	qc_effect_put(w, QC_EFFECT_DECISION, &decision, n);
	max = n;
	for (QcOpen *open = QC_AT(st, QcOpen, st->opens.head); open != NULL && max > 0;
		 open = QC_AT(st, QcOpen, open->all.next))
	{
		QcDecisionItem item = {.seq = open->seq, .lsn = open->lsn};

		if (!loggable(open, flushed))
			continue;
		item.committed = open->decided == COMMITTED;
		qc_effect_put_item(w, QC_EFFECT_DECISION, &item);
		max--;
	}
	return n;
}
