/*
 * qc_glance.c
 *		What views show of consumer groups and partitions (qc_glance.h).
 */
#include "qc_glance.h"

#include "qc_cursor.h"
#include "qc_group.h"
#include "qc_index.h"
#include "qc_purge.h"

uint64_t
qc_glance_ready(QcState *st, const QcGroup *group, const QcPartition *partition)
{
	const QcCursor *cursor = qc_cursor_of(st, partition, group);
	uint64_t	start;

	/* A purge has emptied it; what is leased comes back, but is not ready now. */
	if (qc_partition_stale(st, partition))
		return 0;
	if (cursor != NULL && cursor->fetch != QC_UNSET)
		return qc_partition_count(st, partition, cursor->fetch) + cursor->nslots - cursor->nleased -
			cursor->nwaiting;
	if (!qc_group_scanning(group))
		return 0;
	return qc_group_start(group, partition, &start) ? qc_partition_count(st, partition, start) :
		partition->visible;
}

static void
at_slot(QcState *st, const QcCursor *cursor, const QcSlot *slot, QcGlance *glance)
{
	*glance = (QcGlance)
	{
		QC_AT(st, QcPartition, cursor->partition), slot->position, slot->hint
	};
}

static void
at_fetch(QcState *st, const QcCursor *cursor, QcGlance *glance)
{
	*glance = (QcGlance)
	{
		QC_AT(st, QcPartition, cursor->partition), cursor->fetch, cursor->hint
	};
}

/* The first message of the partition that the group has not finished. */
static bool
first_of(QcState *st, const QcGroup *group, QcPartition *partition, QcGlance *first)
{
	const QcCursor *cursor = qc_cursor_of(st, partition, group);
	const QcSlot *slot = cursor == NULL ? NULL : QC_AT(st, QcSlot, cursor->slots.head);
	uint64_t	position;

	/* Of a partition that a purge has emptied, only leases are left. */
	if (qc_partition_stale(st, partition))
	{
		while (slot != NULL && slot->state != QC_SLOT_LEASED)
			slot = QC_AT(st, QcSlot, slot->of_cursor.next);
	}
	if (slot != NULL)
	{
		at_slot(st, cursor, slot, first);
		return true;
	}
	if (qc_glance_ready(st, group, partition) == 0)
		return false;
	if (cursor != NULL && cursor->fetch != QC_UNSET)
	{
		at_fetch(st, cursor, first);
		return true;
	}

	/* Where only the messages can tell, it is no older than the first one. */
	if (!qc_group_start(group, partition, &position) || position < partition->start)
		position = partition->start;
	*first = (QcGlance)
	{
		partition, qc_skip_aborted(st, partition, position), 0
	};
	return true;
}

/* Was a's record written before b's?  What is not in memory is older than what is. */
static bool
is_before(QcState *st, const QcGlance *a, const QcGlance *b)
{
	QcLocation	of_a = {0};
	QcLocation	of_b = {0};
	QcRef		hint_a = a->hint;
	QcRef		hint_b = b->hint;

	(void) qc_index_find(st, a->partition, a->position, &hint_a, &of_a);
	(void) qc_index_find(st, b->partition, b->position, &hint_b, &of_b);
	return of_a.file != of_b.file ? of_a.file < of_b.file : of_a.position < of_b.position;
}

/* The oldest one among the first partitions from this one on. */
static bool
look(QcState *st, const QcGroup *group, QcRef from, QcGlance *oldest)
{
	QcPartition *partition = QC_AT(st, QcPartition, from);
	bool		found = false;

	for (int n = 0; partition != NULL && n < QC_GLANCE_PARTITIONS;
		 partition = QC_AT(st, QcPartition, partition->of_queue.next))
	{
		QcGlance	first;

		n += partition->lane == QC_LANE_NONE;
		if (partition->lane != QC_LANE_NONE || !first_of(st, group, partition, &first))
			continue;
		if (!found || is_before(st, &first, oldest))
			*oldest = first;
		found = true;
	}
	return found;
}

bool
qc_glance_next(QcState *st, const QcGroup *group, QcGlance *next)
{
	const QcCursor *cursor = QC_AT(st, QcCursor, group->ready.head);
	const QcSlot *slot;

	if (cursor == NULL)
		return group->unscanned > 0 && look(st, group, group->scan, next);
	slot = QC_AT(st, QcSlot, cursor->retry.head != 0 ? cursor->retry.head :
				 cursor->nleased == 0 ? cursor->slots.head : 0);
	if (slot != NULL)
		at_slot(st, cursor, slot, next);
	else
		at_fetch(st, cursor, next);
	return true;
}

/* The lowest message in flight where the group's oldest lease is. */
static bool
oldest_leased(QcState *st, const QcGroup *group, QcGlance *oldest)
{
	const QcLease *lease = QC_AT(st, QcLease, group->leases.head);
	const QcSlot *slot;

	/* Those that a seek or a purge has emptied wait for their time. */
	for (int n = 0; lease != NULL && lease->nslots == 0 && n < QC_GLANCE_PARTITIONS; n++)
		lease = QC_AT(st, QcLease, lease->of_group.next);
	if (lease == NULL || lease->nslots == 0)
		return false;
	slot = QC_AT(st, QcSlot, lease->slots.head);
	return first_of(st, group, QC_AT(st, QcPartition,
									 QC_AT(st, QcCursor, slot->cursor)->partition), oldest);
}

uint32_t
qc_glance_oldest(QcState *st, const QcGroup *group, QcGlance oldest[3])
{
	const QcQueue *queue = QC_AT(st, QcQueue, group->queue);
	uint32_t	n = 0;

	if (qc_group_lag(group) == 0)
		return 0;
	if (queue->npartitions <= QC_GLANCE_PARTITIONS)
		return look(st, group, queue->partitions.head, oldest);
	n += qc_glance_next(st, group, &oldest[n]);
	n += oldest_leased(st, group, &oldest[n]);
	if (n == 0 || group->nwaiting > 0)
		n += look(st, group, queue->partitions.head, &oldest[n]);
	return n;
}

const QcOpen *
qc_glance_blocker(QcState *st, const QcPartition *partition)
{
	const QcPending *pending = QC_AT(st, QcPending, partition->pending.head);

	if (pending == NULL || pending->first + pending->count == partition->next)
		return NULL;
	return qc_open_by_seq(st, pending->seq);
}
