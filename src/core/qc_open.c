/*
 * qc_open.c
 *		Open entries: applied, not settled yet; settling them, and logging decisions.
 *
 * Settling two entries in either order gives the same state: positions were taken when they were applied, a lease is
 * pinned by one entry at a time, and visibility moves on only over a settled prefix.
 */
#include <assert.h>
#include <stddef.h>

#include "qc_answer.h"
#include "qc_apply.h"
#include "qc_alter.h"
#include "qc_catalog.h"
#include "qc_lane.h"
#include "qc_lease.h"

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
	qc_list_append(st, &st->opens, apply->open, ALL);
	st->nopens++;
	qc_dirty_open(st, open);
	return true;
}

/* The list grows at its head: turn it round, so that partitions become ready in the order of the pushes. */
static void
reverse_pendings(QcState *st, QcOpen *open)
{
	QcRef		reversed = 0;
	QcRef		next;

	for (QcRef ref = open->pendings; ref != 0; ref = next)
	{
		QcPending  *pending = QC_AT(st, QcPending, ref);

		next = pending->of_open;
		pending->of_open = reversed;
		reversed = ref;
	}
	open->pendings = reversed;
}

/* Settle the positions that the entry took. */
static void
settle_pendings(QcState *st, QcOpen *open, bool committed)
{
	QcRef		next;

	reverse_pendings(st, open);
	for (QcRef ref = open->pendings; ref != 0; ref = next)
	{
		QcPending  *pending = QC_AT(st, QcPending, ref);
		QcPartition *partition = QC_AT(st, QcPartition, pending->partition);
		QcQueue    *queue = QC_AT(st, QcQueue, partition->queue);

		next = pending->of_open;
		pending->settled = committed ? COMMITTED : ABORTED;
		if (committed && partition->lane == 0)
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
	cursor = group == NULL ? NULL : qc_cursor_of(st, partition, group);
	if (n < item->count && cursor != NULL)
		(void) qc_cursor_done(st, cursor, item->first, item->count);
	if (item->kind == QC_OPEN_ACK)
		queue->acked += item->count;
	qc_dirty_queue(st, queue);
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

static void
settle_item(QcState *st, const QcOpenItem *item, bool committed)
{
	QcQueue    *queue;

	if (item->kind == QC_OPEN_ACK || item->kind == QC_OPEN_DEAD)
	{
		if (committed)
			settle_ack(st, item);
		if (item->lane_item != 0)
			qc_lane_settle(st, QC_AT(st, QcLaneItem, item->lane_item), committed);
		return;
	}
	if (item->kind == QC_OPEN_QUEUE_ALTER)
	{
		settle_alter(st, item, committed);
		return;
	}
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

		if (item->kind == QC_OPEN_ACK || item->kind == QC_OPEN_DEAD)
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
	settle_pendings(st, open, committed);
	for (QcRef ref = open->items; ref != 0; ref = QC_AT(st, QcOpenItem, ref)->next)
		settle_item(st, QC_AT(st, QcOpenItem, ref), committed);
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
