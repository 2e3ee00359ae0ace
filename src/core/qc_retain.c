/*
 * qc_retain.c
 *		Retention: removing messages of a partition.
 */
#include "qc_retain.h"

#include <assert.h>

#include "qc_cursor.h"
#include "qc_group.h"
#include "qc_log.h"
#include "qc_purge.h"

/* Messages that are visible at [from, end). */
static uint64_t
visible_in(const QcState *st, const QcPartition *partition, uint64_t from, uint64_t end)
{
	if (from < partition->start)
		from = partition->start;
	if (end > partition->stable)
		end = partition->stable;
	return from >= end ? 0 : end - from - qc_range_covered(st, partition, from, end);
}

/* Slots at [first, end) that no lease holds are done. */
static void
finish_slots(QcState *st, QcCursor *cursor, uint64_t first, uint64_t end)
{
	QcSlot	   *slot = QC_AT(st, QcSlot, cursor->slots.head);

	while (slot != NULL && slot->position < end)
	{
		QcSlot	   *next = QC_AT(st, QcSlot, slot->of_cursor.next);

		if (slot->position >= first && slot->state != QC_SLOT_LEASED)
			qc_cursor_finish(st, cursor, slot);
		slot = next;
	}
}

/* Take the messages of [first, end) out of every count; the partition still has them. */
static void
uncount(QcState *st, QcPartition *partition, uint64_t first, uint64_t end)
{
	QcQueue    *queue = QC_AT(st, QcQueue, partition->queue);
	uint64_t	n = visible_in(st, partition, first, end);

	for (QcCursor *cursor = QC_AT(st, QcCursor, partition->cursors); cursor != NULL;
		 cursor = QC_AT(st, QcCursor, cursor->next))
	{
		uint64_t	from = cursor->fetch > first ? cursor->fetch : first;

		finish_slots(st, cursor, first, end);
		QC_AT(st, QcGroup, cursor->group)->nready -= visible_in(st, partition, from, end);
	}
	for (QcGroup *group = QC_AT(st, QcGroup, queue->groups); group != NULL && queue->nscanning > 0;
		 group = QC_AT(st, QcGroup, group->next))
	{
		if (qc_group_scanning(group) && qc_group_lacks(st, partition, group))
			group->unscanned -= n;
	}
	assert(partition->visible >= n && queue->visible >= n);
	partition->visible -= n;
	queue->visible -= n;
	qc_dirty_queue(st, queue);
}

/* Cursors go on where there are messages. */
static void
move_cursors(QcState *st, QcPartition *partition)
{
	for (QcCursor *cursor = QC_AT(st, QcCursor, partition->cursors); cursor != NULL;
		 cursor = QC_AT(st, QcCursor, cursor->next))
	{
		uint64_t	fetch = cursor->fetch;

		if (fetch == QC_UNSET)
			continue;
		if (fetch < partition->start)
			cursor->fetch = partition->start;
		cursor->fetch = qc_skip_aborted(st, partition, cursor->fetch);
		if (cursor->fetch != fetch)
			qc_dirty_cursor(st, cursor);
		qc_cursor_refresh(st, cursor);
	}
}

void
qc_retain_below(QcState *st, QcPartition *partition, uint64_t start)
{
	qc_partition_touch(st, partition);
	if (start <= partition->start)
		return;
	uncount(st, partition, 0, start);
	partition->start = start;
	qc_log_died(st, QC_AT(st, QcQueue, partition->queue));
	qc_range_trim(st, partition);
	move_cursors(st, partition);
	qc_dirty_partition(st, partition);
}

void
qc_retain_range(QcState *st, QcPartition *partition, uint64_t first, uint64_t end, bool promised)
{
	qc_partition_touch(st, partition);
	if (first < partition->start)
		first = partition->start;
	if (first >= end)
		return;
	uncount(st, partition, first, end);
	qc_range_add(st, partition, first, end, true, promised);
	move_cursors(st, partition);
}
