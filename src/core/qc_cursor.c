/*
 * qc_cursor.c
 *		Cursors: which messages of a partition a group has in flight, and what a pop takes next.
 *
 * Invariants:
 *	 slots are in ascending order of position, all below `fetch`;
 *	 nleased + nwaiting <= nslots; an unordered cursor's remaining slots are exactly its retry list;
 *	 a dying slot counts as waiting and stands in QcState.dying unless it has a timer;
 *	 is_ready <=> deliverable(cursor), and then the cursor is in its group's ready list;
 *	 group->nready counts visible messages at or above fetch plus slots in state RETRY;
 *	 none of this holds for a partition that has not seen a purge of its queue yet: whoever comes here touches it first
 *	 (qc_purge.h).
 */
#include "qc_cursor.h"

#include <assert.h>
#include <stddef.h>

#include "qc_group.h"
#include "qc_lease.h"
#include "qc_log.h"
#include "qc_purge.h"
#include "qc_timer.h"
#include "qc_volume.h"
#include "qc_wait.h"

#define OF_CURSOR	offsetof(QcSlot, of_cursor)
#define OF_LEASE	offsetof(QcSlot, of_lease)
#define READY		offsetof(QcCursor, ready)
#define OF_PARTITION offsetof(QcPending, of_partition)

static bool
deliverable(const QcState *st, const QcCursor *cursor)
{
	const QcPartition *partition = QC_AT(st, QcPartition, cursor->partition);
	bool		fresh = cursor->fetch < partition->stable && cursor->nslots < st->max_slots;

	if (!qc_partition_ordered(st, partition))
		return cursor->retry.head != 0 || fresh;
	if (cursor->nleased > 0)
		return false;
	if (cursor->slots.head != 0)
		return QC_AT(st, QcSlot, cursor->slots.head)->state == QC_SLOT_RETRY;
	return fresh;
}

/* Lists of groups and queues that are gone were emptied at once: their cursors stand in none. */
static bool
listless(const QcState *st, const QcGroup *group)
{
	return group->state == QC_GROUP_DEAD ||
		QC_AT(st, QcQueue, group->queue)->state == QC_QUEUE_DEAD;
}

void
qc_cursor_refresh(QcState *st, QcCursor *cursor)
{
	QcGroup    *group = QC_AT(st, QcGroup, cursor->group);
	QcRef		ref = QC_REF(st, cursor);
	uint32_t	ready;

	if (listless(st, group))
		return;
	ready = deliverable(st, cursor);
	if (ready != cursor->is_ready)
	{
		if (ready)
			qc_list_append(st, &group->ready, ref, READY);
		else
			qc_list_remove(st, &group->ready, ref, READY);
		cursor->is_ready = ready;
	}

	/* Ready before, it may have more than before. */
	if (ready && group->nlisted > 0)
		qc_wake(st, group, cursor);
}

void
qc_cursor_reorder(QcState *st, QcCursor *cursor, bool ordered)
{
	for (QcRef ref = cursor->slots.head; ref != 0; ref = QC_AT(st, QcSlot, ref)->of_cursor.next)
	{
		if (QC_AT(st, QcSlot, ref)->state != QC_SLOT_RETRY)
			continue;
		if (ordered)
			qc_list_remove(st, &cursor->retry, ref, OF_LEASE);
		else
			qc_list_append(st, &cursor->retry, ref, OF_LEASE);
	}
	assert(!ordered || cursor->retry.head == 0);
	qc_dirty_cursor(st, cursor);
}

/* After a delivery: others' turn. */
static void
rotate(QcState *st, QcCursor *cursor)
{
	QcGroup    *group = QC_AT(st, QcGroup, cursor->group);
	QcRef		ref = QC_REF(st, cursor);

	if (!cursor->is_ready || group->ready.tail == ref)
		return;
	qc_list_remove(st, &group->ready, ref, READY);
	qc_list_append(st, &group->ready, ref, READY);
}

QcRef
qc_cursor_create(QcState *st, QcPartition *partition, QcGroup *group, bool promised)
{
	QcRef		ref = promised ? qc_mem_alloc_reserved(&st->mem, QC_CLASS_CURSOR) :
		qc_mem_alloc(&st->mem, QC_CLASS_CURSOR);
	QcCursor   *cursor = QC_AT(st, QcCursor, ref);

	if (cursor == NULL)
		return 0;
	cursor->partition = QC_REF(st, partition);
	cursor->group = QC_REF(st, group);
	cursor->next = partition->cursors;
	partition->cursors = ref;
	qc_dirty_cursor(st, cursor);
	return ref;
}

/* End whatever holds this slot. */
static void
drop_slot(QcState *st, QcCursor *cursor, QcSlot *slot)
{
	QcLease    *lease = QC_AT(st, QcLease, slot->lease);

	if (lease == NULL)
	{
		qc_cursor_finish(st, cursor, slot);
		return;
	}
	(void) qc_lease_done(st, lease, QC_AT(st, QcPartition, cursor->partition), slot->position, 1);
	(void) qc_lease_end_if_empty(st, lease);
}

void
qc_cursor_free(QcState *st, QcCursor *cursor)
{
	QcGroup    *group = QC_AT(st, QcGroup, cursor->group);
	QcPartition *partition = QC_AT(st, QcPartition, cursor->partition);
	QcRef		ref;

	qc_partition_touch(st, partition);
	if (cursor->is_ready && !listless(st, group))
		qc_list_remove(st, &group->ready, QC_REF(st, cursor), READY);
	cursor->is_ready = 0;
	while ((ref = cursor->slots.head) != 0)
		drop_slot(st, cursor, QC_AT(st, QcSlot, ref));
	cursor->fetch = partition->id;
	cursor->nslots = (uint32_t) group->id;
	qc_free_row(st, QC_CLASS_CURSOR, QC_REF(st, cursor), &cursor->dirty);
}

void
qc_cursor_clear(QcState *st, QcCursor *cursor)
{
	QcPartition *partition = QC_AT(st, QcPartition, cursor->partition);
	QcRef		ref;

	while ((ref = cursor->slots.head) != 0)
	{
		QcSlot	   *slot = QC_AT(st, QcSlot, ref);
		QcLease    *lease = QC_AT(st, QcLease, slot->lease);

		if (lease != NULL)
			(void) qc_lease_done(st, lease, partition, slot->position, 1);
		else
			qc_cursor_finish(st, cursor, slot);
	}
}

/* Out of the list of those to be moved, or away from the timer that would put it there. */
static void
unlist_dying(QcState *st, QcSlot *slot)
{
	if (slot->timer != 0)
		qc_timer_disarm(st, &slot->timer);
	else
		qc_list_remove(st, &st->dying, QC_REF(st, slot), OF_LEASE);
}

void
qc_cursor_drop_waiting(QcState *st, QcCursor *cursor)
{
	for (QcRef ref = cursor->slots.head; ref != 0;)
	{
		QcSlot	   *slot = QC_AT(st, QcSlot, ref);
		QcRef		next = slot->of_cursor.next;

		if (slot->state != QC_SLOT_LEASED)
		{
			if (slot->state == QC_SLOT_DYING)
				unlist_dying(st, slot);
			qc_timer_disarm(st, &slot->timer);
			qc_list_remove(st, &cursor->slots, ref, OF_CURSOR);
			qc_cursor_count(st, cursor, -1);
			qc_mem_free(&st->mem, QC_CLASS_SLOT, ref);
		}
		ref = next;
	}
	cursor->retry.head = cursor->retry.tail = 0;
	cursor->nwaiting = 0;
}

QcSlot *
qc_cursor_slot(QcState *st, const QcCursor *cursor, uint64_t position)
{
	QcSlot	   *slot = QC_AT(st, QcSlot, cursor->slots.head);

	while (slot != NULL && slot->position < position)
		slot = QC_AT(st, QcSlot, slot->of_cursor.next);
	return slot != NULL && slot->position == position ? slot : NULL;
}

/* Make a slot at position, behind every other. */
static QcSlot *
append_slot(QcState *st, QcCursor *cursor, uint64_t position, bool promised)
{
	QcRef		ref = promised ? qc_mem_alloc_reserved(&st->mem, QC_CLASS_SLOT) :
		qc_mem_alloc(&st->mem, QC_CLASS_SLOT);
	QcSlot	   *slot = QC_AT(st, QcSlot, ref);

	if (slot == NULL)
		return NULL;
	assert(cursor->slots.tail == 0 ||
		   QC_AT(st, QcSlot, cursor->slots.tail)->position < position);
	slot->position = position;
	slot->cursor = QC_REF(st, cursor);
	qc_list_append(st, &cursor->slots, ref, OF_CURSOR);
	qc_cursor_count(st, cursor, 1);
	return slot;
}

static void
move_fetch(QcState *st, QcCursor *cursor, uint64_t to)
{
	const QcPartition *partition = QC_AT(st, QcPartition, cursor->partition);

	cursor->fetch = qc_skip_aborted(st, partition, to);
}

QcSlot *
qc_cursor_take(QcState *st, QcCursor *cursor, uint64_t position, uint32_t attempt, bool promised)
{
	QcGroup    *group = QC_AT(st, QcGroup, cursor->group);
	QcPartition *partition = QC_AT(st, QcPartition, cursor->partition);
	bool		ordered = qc_partition_ordered(st, partition);
	QcSlot	   *slot;

	if (position >= cursor->fetch)
	{
		slot = append_slot(st, cursor, position, promised);
		if (slot == NULL)
			return NULL;
		slot->hint = cursor->hint;
		slot->state = QC_SLOT_LEASED;
		move_fetch(st, cursor, position + 1);
	}
	else
	{
		if (promised)
			qc_mem_unreserve(&st->mem, QC_CLASS_SLOT, 1);
		slot = ordered ? NULL : QC_AT(st, QcSlot, cursor->retry.head);
		if (slot == NULL || slot->position != position)
			slot = qc_cursor_slot(st, cursor, position);
		if (slot == NULL || slot->lease != 0)
			return NULL;
		/* Only a replay, on a later clock or with another retry_limit, finds it not due. */
		if (slot->state == QC_SLOT_WAITING)
		{
			qc_timer_disarm(st, &slot->timer);
			qc_slot_due(st, slot);
		}
		if (slot->state == QC_SLOT_DYING)
			qc_slot_revive(st, slot);
		if (!ordered)
			qc_list_remove(st, &cursor->retry, QC_REF(st, slot), OF_LEASE);
	}
	if (slot->state == QC_SLOT_RETRY || position < partition->stable)
	{
		/* A retry slot is counted wherever it stands; a fresh one once it is visible. */
		assert(group->nready > 0);
		group->nready--;
	}
	slot->state = QC_SLOT_LEASED;
	slot->attempt = attempt;
	cursor->nleased++;
	group->nleased++;
	qc_dirty_cursor(st, cursor);
	return slot;
}

/* The slot has just left its lease: undo the counts of qc_cursor_take. */
static void
unlease(QcState *st, QcCursor *cursor, QcSlot *slot)
{
	QcGroup    *group = QC_AT(st, QcGroup, cursor->group);

	if (slot->state != QC_SLOT_LEASED)
		return;
	assert(cursor->nleased > 0 && group->nleased > 0);
	cursor->nleased--;
	group->nleased--;
}

bool
qc_queue_exhausted(const QcQueue *queue, uint32_t attempt)
{
	int64_t		limit = queue->options.value[QC_OPT_RETRY_LIMIT];

	return limit >= 0 && attempt > limit;
}

/* How long a message waits that has come back for the n-th time: doubling, up to the cap. */
static int64_t
delay_by_rule(const QcQueue *queue, uint32_t attempt)
{
	int64_t		max = queue->options.value[QC_OPT_RETRY_DELAY_MAX];
	int64_t		delay = queue->options.value[QC_OPT_RETRY_DELAY];

	for (uint32_t i = 1; i < attempt && delay > 0 && delay < max; i++)
		delay *= 2;
	return delay < max ? delay : max;
}

/* Into the list of those that are to be moved, and have somebody do it. */
static void
list_dying(QcState *st, QcSlot *slot)
{
	qc_list_append(st, &st->dying, QC_REF(st, slot), OF_LEASE);
	qc_timers_call(st, INT64_MIN);
}

void
qc_cursor_put_back(QcState *st, QcCursor *cursor, QcSlot *slot, const QcReturn *how, bool charged)
{
	QcQueue    *queue = QC_AT(st, QcQueue, QC_AT(st, QcPartition, cursor->partition)->queue);
	int64_t		delay = charged ? how->delay_us : 0;

	qc_partition_touch(st, QC_AT(st, QcPartition, cursor->partition));
	unlease(st, cursor, slot);
	slot->lease = 0;
	slot->cause = how->cause;
	if (!charged && slot->attempt > 0)
		slot->attempt--;
	if (delay == (int64_t) QC_DELAY_RULE)
		delay = delay_by_rule(queue, slot->attempt);
	slot->state = QC_SLOT_WAITING;
	slot->due = how->now + delay;
	cursor->nwaiting++;
	QC_AT(st, QcGroup, cursor->group)->nwaiting++;
	qc_dirty_cursor(st, cursor);
	if (charged && qc_queue_exhausted(queue, slot->attempt))
	{
		slot->state = QC_SLOT_DYING;
		list_dying(st, slot);
	}

	/* No memory for a timer: rather too early than never. */
	else if (delay <= 0 ||
			 !qc_timer_arm_slot(st, slot, how->monotonic + delay, how->monotonic, false))
		qc_slot_due(st, slot);
}

bool
qc_slot_defer(QcState *st, QcSlot *slot, int64_t delay_us, int64_t monotonic)
{
	assert(slot->state == QC_SLOT_DYING && slot->timer == 0);
	qc_list_remove(st, &st->dying, QC_REF(st, slot), OF_LEASE);

	if (qc_timer_arm_slot(st, slot, monotonic + delay_us, monotonic, false))
		return true;
	qc_list_append(st, &st->dying, QC_REF(st, slot), OF_LEASE);
	return false;
}

void
qc_slot_revive(QcState *st, QcSlot *slot)
{
	assert(slot->state == QC_SLOT_DYING);
	unlist_dying(st, slot);
	slot->state = QC_SLOT_WAITING;
	qc_slot_due(st, slot);
}

void
qc_slot_due(QcState *st, QcSlot *slot)
{
	QcCursor   *cursor = QC_AT(st, QcCursor, slot->cursor);
	QcGroup    *group = QC_AT(st, QcGroup, cursor->group);
	QcPartition *partition = QC_AT(st, QcPartition, cursor->partition);

	if (qc_partition_stale(st, partition))
	{
		/* A purge has taken it. */
		qc_partition_touch(st, partition);
		return;
	}
	if (slot->state == QC_SLOT_DYING)
	{
		list_dying(st, slot);
		return;
	}
	assert(slot->state == QC_SLOT_WAITING && cursor->nwaiting > 0 && group->nwaiting > 0);
	cursor->nwaiting--;
	group->nwaiting--;
	slot->state = QC_SLOT_RETRY;
	if (!qc_partition_ordered(st, partition))
		qc_list_append(st, &cursor->retry, QC_REF(st, slot), OF_LEASE);
	group->nready++;
	qc_dirty_cursor(st, cursor);
	qc_cursor_refresh(st, cursor);
}

void
qc_cursor_finish(QcState *st, QcCursor *cursor, QcSlot *slot)
{
	QcGroup    *group = QC_AT(st, QcGroup, cursor->group);
	QcRef		ref = QC_REF(st, slot);

	qc_partition_touch(st, QC_AT(st, QcPartition, cursor->partition));
	qc_volume_done(st, cursor, slot);
	unlease(st, cursor, slot);
	if (slot->state == QC_SLOT_WAITING || slot->state == QC_SLOT_DYING)
	{
		cursor->nwaiting--;
		group->nwaiting--;
	}
	if (slot->state == QC_SLOT_DYING)
		unlist_dying(st, slot);
	if (slot->state == QC_SLOT_RETRY)
	{
		if (!qc_partition_ordered(st, QC_AT(st, QcPartition, cursor->partition)))
			qc_list_remove(st, &cursor->retry, ref, OF_LEASE);
		if (group->nready > 0)
			group->nready--;
	}
	qc_timer_disarm(st, &slot->timer);
	qc_list_remove(st, &cursor->slots, ref, OF_CURSOR);
	qc_cursor_count(st, cursor, -1);
	if (slot->position < QC_AT(st, QcPartition, cursor->partition)->start)
		qc_log_died(st, QC_AT(st, QcQueue, QC_AT(st, QcPartition, cursor->partition)->queue));
	qc_mem_free(&st->mem, QC_CLASS_SLOT, ref);
	qc_dirty_cursor(st, cursor);
}

void
qc_cursor_void(QcState *st, QcCursor *cursor, uint64_t first, uint32_t count)
{
	QcSlot	   *slot;

	qc_partition_touch(st, QC_AT(st, QcPartition, cursor->partition));
	slot = QC_AT(st, QcSlot, cursor->slots.head);
	while (slot != NULL && slot->position < first + count)
	{
		QcSlot	   *next = QC_AT(st, QcSlot, slot->of_cursor.next);

		if (slot->position >= first)
			drop_slot(st, cursor, slot);
		slot = next;
	}
}

bool
qc_cursor_done(QcState *st, QcCursor *cursor, uint64_t first, uint32_t count)
{
	QcPartition *partition = QC_AT(st, QcPartition, cursor->partition);
	QcGroup    *group = QC_AT(st, QcGroup, cursor->group);
	uint64_t	end = first + count;

	qc_partition_touch(st, partition);

	/* What the lost delivery skipped was in other consumers' hands: it can be taken again. */
	while (cursor->fetch < first)
	{
		QcSlot	   *slot = append_slot(st, cursor, cursor->fetch, false);

		if (slot == NULL)
			return false;
		if (cursor->fetch < partition->stable && group->nready > 0)
			group->nready--;
		move_fetch(st, cursor, cursor->fetch + 1);
		slot->state = QC_SLOT_WAITING;
		cursor->nwaiting++;
		group->nwaiting++;
		qc_slot_due(st, slot);
	}
	for (uint64_t p = first; p < end; p++)
	{
		QcSlot	   *slot;

		if (p >= cursor->fetch)
		{
			if (p < partition->stable && group->nready > 0)
				group->nready--;
			move_fetch(st, cursor, p + 1);
			continue;
		}
		slot = qc_cursor_slot(st, cursor, p);
		if (slot != NULL)
			drop_slot(st, cursor, slot);
	}
	qc_dirty_cursor(st, cursor);
	qc_cursor_refresh(st, cursor);
	return true;
}

void
qc_cursor_dead(QcState *st, QcCursor *cursor, uint64_t position)
{
	QcSlot	   *slot = QC_AT(st, QcSlot, st->dying.head);

	/* They are moved from the head of the list on: mostly no search is needed. */
	if (slot == NULL || slot->position != position || slot->cursor != QC_REF(st, cursor))
	{
		(void) qc_cursor_done(st, cursor, position, 1);
		return;
	}
	qc_cursor_finish(st, cursor, slot);
	qc_cursor_refresh(st, cursor);
}

/* Messages of a partition that a group has not looked at became visible. */
static void
count_unscanned(QcState *st, const QcPartition *partition, uint64_t count)
{
	QcQueue    *queue = QC_AT(st, QcQueue, partition->queue);

	for (QcGroup *group = QC_AT(st, QcGroup, queue->groups); group != NULL && queue->nscanning > 0;
		 group = QC_AT(st, QcGroup, group->next))
	{
		if (qc_group_scanning(group) && qc_group_lacks(st, partition, group))
			group->unscanned += count;
	}
}

/* Messages of [first, end); recovery may know of some already that retention has removed. */
static uint64_t
messages(const QcState *st, const QcPartition *partition, uint64_t first, uint64_t end)
{
	return end - first - qc_range_covered(st, partition, first, end);
}

/* Count a range that became visible for each cursor; what recovery has delivered already is not ready. */
static void
count_visible(QcState *st, QcPartition *partition, uint64_t first, uint64_t end)
{
	uint64_t	n;

	if (first < partition->start)
		first = partition->start;
	if (first >= end)
		return;
	n = messages(st, partition, first, end);
	partition->visible += n;
	if (partition->lane != 0)
		return;
	QC_AT(st, QcQueue, partition->queue)->visible += n;
	count_unscanned(st, partition, n);
	for (QcCursor *cursor = QC_AT(st, QcCursor, partition->cursors); cursor != NULL;
		 cursor = QC_AT(st, QcCursor, cursor->next))
	{
		uint64_t	from = cursor->fetch > first ? cursor->fetch : first;

		if (from < end)
			QC_AT(st, QcGroup, cursor->group)->nready += messages(st, partition, from, end);
	}
}

void
qc_partition_advance(QcState *st, QcPartition *partition)
{
	QcRef		ref;

	qc_partition_touch(st, partition);
	while ((ref = partition->pending.head) != 0)
	{
		QcPending	pending = *QC_AT(st, QcPending, ref);
		uint64_t	end = pending.first + pending.count;

		if (pending.settled == 0)
			break;
		assert(pending.first == partition->stable);
		partition->stable = end;
		qc_list_remove(st, &partition->pending, ref, OF_PARTITION);
		qc_mem_free(&st->mem, QC_CLASS_PENDING, ref);
		qc_volume_settled(st, partition, &pending);
		if (pending.settled == 1)
			count_visible(st, partition, pending.first, end);
		else
			qc_range_add(st, partition, pending.first, end, false, false);
	}
	qc_dirty_partition(st, partition);
	for (QcCursor *cursor = QC_AT(st, QcCursor, partition->cursors); cursor != NULL;
		 cursor = QC_AT(st, QcCursor, cursor->next))
	{
		uint64_t	fetch = cursor->fetch;

		if (fetch == QC_UNSET)
			continue;
		move_fetch(st, cursor, cursor->fetch);
		if (cursor->fetch != fetch)
			qc_dirty_cursor(st, cursor);
		qc_cursor_refresh(st, cursor);
	}
}

/* Collects runs of a delivery. */
typedef struct Chosen
{
	QcRun	   *runs;
	uint32_t	max_runs;
	uint32_t	nruns;
	uint32_t	count;
	uint32_t	batch;
} Chosen;

/* Add up to count messages from first on; returns how many were added. */
static uint32_t
choose_run(Chosen *chosen, uint64_t partition, uint64_t first, uint64_t count, uint32_t attempt)
{
	uint32_t	n = chosen->batch - chosen->count;
	QcRun	   *last = chosen->nruns == 0 ? NULL : &chosen->runs[chosen->nruns - 1];

	if (count < n)
		n = (uint32_t) count;
	if (n == 0)
		return 0;
	if (last != NULL && last->partition == partition && last->first + last->count == first &&
		last->attempt == attempt)
		last->count += n;

	else if (chosen->nruns == chosen->max_runs)
		return 0;
	else
		chosen->runs[chosen->nruns++] = (QcRun) {partition, first, n, attempt};
	chosen->count += n;
	return n;
}

/* Messages never delivered, from fetch on. */
static void
choose_fresh(QcState *st, const QcCursor *cursor, Chosen *chosen)
{
	QcPartition *partition = QC_AT(st, QcPartition, cursor->partition);
	uint64_t	room = st->max_slots > cursor->nslots ? st->max_slots - cursor->nslots : 0;
	uint64_t	p = cursor->fetch;

	while (room > 0 && p < partition->stable)
	{
		uint64_t	end = qc_range_next(st, partition, p);
		uint64_t	want = end - p < room ? end - p : room;
		uint32_t	n = choose_run(chosen, partition->id, p, want, 1);

		if (n == 0)
			return;
		room -= n;
		p = qc_skip_aborted(st, partition, p + n);
	}
}

/* In order: slots first, and nothing behind one that still waits, or is dying. */
static void
choose_ordered(QcState *st, const QcCursor *cursor, Chosen *chosen)
{
	QcPartition *partition = QC_AT(st, QcPartition, cursor->partition);
	QcSlot	   *slot = QC_AT(st, QcSlot, cursor->slots.head);

	for (; slot != NULL; slot = QC_AT(st, QcSlot, slot->of_cursor.next))
	{
		if (slot->state != QC_SLOT_RETRY ||
			choose_run(chosen, partition->id, slot->position, 1, slot->attempt + 1) == 0)
			return;
	}
	choose_fresh(st, cursor, chosen);
}

static void
choose_unordered(QcState *st, const QcCursor *cursor, Chosen *chosen)
{
	QcPartition *partition = QC_AT(st, QcPartition, cursor->partition);
	QcSlot	   *slot = QC_AT(st, QcSlot, cursor->retry.head);

	for (; slot != NULL; slot = QC_AT(st, QcSlot, slot->of_lease.next))
	{
		if (choose_run(chosen, partition->id, slot->position, 1, slot->attempt + 1) == 0)
			return;
	}
	choose_fresh(st, cursor, chosen);
}

static void
choose_from(QcState *st, QcCursor *cursor, Chosen *chosen)
{
	if (qc_partition_ordered(st, QC_AT(st, QcPartition, cursor->partition)))
		choose_ordered(st, cursor, chosen);
	else
		choose_unordered(st, cursor, chosen);
}

/* From the head of the ready list on; the cursors that were chosen from then go to its tail, so that others get their turn. */
static void
choose_from_list(QcState *st, const QcPopRequest *request, Chosen *chosen)
{
	uint32_t	n = 0;

	for (QcCursor *cursor = QC_AT(st, QcCursor, request->group->ready.head);
		 cursor != NULL && n < request->max_partitions && chosen->count < request->batch;
		 cursor = QC_AT(st, QcCursor, cursor->ready.next))
	{
		uint32_t	before = chosen->count;

		choose_from(st, cursor, chosen);
		if (chosen->count == before)
			break;
		n++;
	}
	while (n-- > 0 && !request->look)
		rotate(st, QC_AT(st, QcCursor, request->group->ready.head));
}

uint32_t
qc_pop_choose(QcState *st, const QcPopRequest *request, QcRun *runs, uint32_t max_runs,
			  uint32_t *nruns)
{
	Chosen		chosen = {runs, max_runs, 0, 0, request->batch};

	*nruns = 0;
	if (request->queue->flags & QC_QUEUE_NO_POP)
		return 0;
	if (request->partition == NULL)
		choose_from_list(st, request, &chosen);
	else
	{
		QcCursor   *cursor;

		qc_partition_touch(st, request->partition);
		cursor = qc_cursor_of(st, request->partition, request->group);
		if (cursor != NULL && cursor->is_ready)
		{
			choose_from(st, cursor, &chosen);
			if (!request->look)
				rotate(st, cursor);
		}
	}
	*nruns = chosen.nruns;
	return chosen.count;
}
