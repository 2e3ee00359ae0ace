/*
 * qc_purge.c
 *		Purging: what waits in a partition, or in a whole queue, is gone.
 */
#include "qc_purge.h"

#include <assert.h>

#include "qc_cursor.h"
#include "qc_group.h"
#include "qc_log.h"
#include "qc_mutant.h"

/* Messages of [from, stable): all but the positions of aborted ranges. */
static uint64_t
count_from(const QcState *st, const QcPartition *partition, uint64_t from)
{
	return partition->stable - from - qc_range_covered(st, partition, from, partition->stable);
}

uint64_t
qc_partition_all(const QcState *st, const QcPartition *partition)
{
	return partition->start >= partition->stable ? 0 :
		count_from(st, partition, partition->start);
}

uint64_t
qc_partition_count(const QcState *st, const QcPartition *partition, uint64_t from)
{
	if (from <= partition->start)
		return partition->visible;
	return from >= partition->stable ? 0 : count_from(st, partition, from);
}

/* Everything below bound goes.  The groups' counts no longer hold anything of the partition. */
static void
drop_below(QcState *st, QcPartition *partition, uint64_t bound)
{
	if (partition->start < bound)
		partition->start = bound;
	qc_range_trim(st, partition);
	qc_log_died(st, QC_AT(st, QcQueue, partition->queue));
	partition->visible = qc_partition_all(st, partition);
	for (QcCursor *cursor = QC_AT(st, QcCursor, partition->cursors); cursor != NULL;
		 cursor = QC_AT(st, QcCursor, cursor->next))
	{
		qc_cursor_drop_waiting(st, cursor);
		if (cursor->fetch < partition->start)
			cursor->fetch = qc_skip_aborted(st, partition, partition->start);
		qc_dirty_cursor(st, cursor);
	}
	qc_dirty_partition(st, partition);
}

/* Bring a stale partition up to date with a purge that took everything below bound. */
static void
follow(QcState *st, QcPartition *partition, uint64_t bound)
{
	partition->purges = QC_AT(st, QcQueue, partition->queue)->purges;
	for (QcCursor *cursor = QC_AT(st, QcCursor, partition->cursors); cursor != NULL;
		 cursor = QC_AT(st, QcCursor, cursor->next))
	{
		/* The purge has emptied the lists. */
		cursor->is_ready = 0;
		cursor->ready.prev = cursor->ready.next = 0;
	}
	drop_below(st, partition, bound);
	assert(partition->visible == 0);
}

void
qc_partition_follow_purge(QcState *st, QcPartition *partition)
{
	follow(st, partition, partition->next);
}

static bool
is_undecided(const QcOpen *open)
{
	return open != NULL && open->xid != 0 && open->decided == 0;
}

/* Do the entry's messages survive the purge? */
static bool
is_kept(QcState *st, const QcEffect *kept, uint64_t seq)
{
	if (kept == NULL)
		return is_undecided(qc_open_by_seq(st, seq));
	for (uint32_t i = 0; i < kept->nitems; i++)
	{
		QcPurgeItem item;

		qc_effect_item(kept, i, &item);
		if (item.seq == seq)
			return true;
	}
	return false;
}

/* First position of the partition that a purge leaves. */
static uint64_t
bound_of(QcState *st, const QcPartition *partition, const QcEffect *kept)
{
	const QcPending *pending = QC_AT(st, QcPending, partition->pending.head);

	while (pending != NULL && (!is_kept(st, kept, pending->seq) || QC_MUTATED(QC_MUTANT_PURGE_UNDECIDED)))
		pending = QC_AT(st, QcPending, pending->of_partition.next);
	return pending == NULL ? partition->next : pending->first;
}

/* Bring those partitions of the queue up to date in which entries have messages that are kept; these end the purge. */
static void
spare(QcState *st, const QcQueue *queue, const QcEffect *kept)
{
	for (QcOpen *open = QC_AT(st, QcOpen, st->opens.head); open != NULL;
		 open = QC_AT(st, QcOpen, open->all.next))
	{
		QcRef		ref = open->pendings != 0 && is_kept(st, kept, open->seq) ? open->pendings : 0;

		for (; ref != 0; ref = QC_AT(st, QcPending, ref)->of_open)
		{
			QcPartition *partition = QC_AT(st, QcPartition, QC_AT(st, QcPending, ref)->partition);

			if (partition->queue == QC_REF(st, queue) && qc_partition_stale(st, partition))
				follow(st, partition, bound_of(st, partition, kept));
		}
	}
}

void
qc_purge_queue(QcState *st, QcQueue *queue, const QcEffect *kept)
{
	/* What a purge before this one took is gone, whatever this one spares. */
	for (QcOpen *open = QC_AT(st, QcOpen, st->opens.head); open != NULL;
		 open = QC_AT(st, QcOpen, open->all.next))
	{
		for (QcRef ref = open->pendings; ref != 0; ref = QC_AT(st, QcPending, ref)->of_open)
			qc_partition_touch(st, QC_AT(st, QcPartition, QC_AT(st, QcPending, ref)->partition));
	}
	for (QcGroup *group = QC_AT(st, QcGroup, queue->groups); group != NULL;
		 group = QC_AT(st, QcGroup, group->next))
	{
		/* Start rules stay: they tell where a group stands among messages that are spared. */
		group->ready.head = group->ready.tail = 0;
		group->nready = group->nwaiting = group->unscanned = 0;
	}
	queue->visible = 0;
	queue->purges++;
	qc_log_died(st, queue);
	qc_dirty_queue(st, queue);
	spare(st, queue, kept);
}

/* Add to the counts of a group, or take from them, what it waits for in the partition. */
static void
count_waiting(QcState *st, const QcPartition *partition, QcGroup *group, bool add)
{
	const QcCursor *cursor = qc_cursor_of(st, partition, group);
	uint64_t	sign = add ? 1 : UINT64_MAX;

	if (cursor == NULL || cursor->fetch == QC_UNSET)
	{
		if (qc_group_scanning(group))
			group->unscanned += sign * partition->visible;
		return;
	}
	group->nready += sign * (qc_partition_count(st, partition, cursor->fetch) + cursor->nslots -
							 cursor->nleased - cursor->nwaiting);
	group->nwaiting += sign * cursor->nwaiting;
}

void
qc_purge_partition(QcState *st, QcPartition *partition, const QcEffect *kept)
{
	QcQueue    *queue = QC_AT(st, QcQueue, partition->queue);

	qc_partition_touch(st, partition);
	queue->visible -= partition->visible;
	for (QcRef ref = queue->groups; ref != 0; ref = QC_AT(st, QcGroup, ref)->next)
		count_waiting(st, partition, QC_AT(st, QcGroup, ref), false);
	drop_below(st, partition, bound_of(st, partition, kept));
	queue->visible += partition->visible;
	for (QcRef ref = queue->groups; ref != 0; ref = QC_AT(st, QcGroup, ref)->next)
		count_waiting(st, partition, QC_AT(st, QcGroup, ref), true);
	for (QcRef ref = partition->cursors; ref != 0; ref = QC_AT(st, QcCursor, ref)->next)
		qc_cursor_refresh(st, QC_AT(st, QcCursor, ref));
}

/* Has the entry, which is not decided, messages in the queue? */
static bool
is_spared(QcState *st, const QcQueue *queue, const QcOpen *open)
{
	QcRef		of_queue = QC_REF(st, queue);
	QcRef		ref = is_undecided(open) ? open->pendings : 0;

	while (ref != 0 &&
		   QC_AT(st, QcPartition, QC_AT(st, QcPending, ref)->partition)->queue != of_queue)
		ref = QC_AT(st, QcPending, ref)->of_open;
	return ref != 0;
}

void
qc_purge_put(QcState *st, const QcQueue *queue, const QcPurge *purge, QcWriter *w)
{
	uint32_t	n = 0;

	for (QcOpen *open = QC_AT(st, QcOpen, st->opens.head); open != NULL;
		 open = QC_AT(st, QcOpen, open->all.next))
		n += is_spared(st, queue, open);
	qc_effect_put(w, QC_EFFECT_PURGE, purge, n);
	for (QcOpen *open = QC_AT(st, QcOpen, st->opens.head); open != NULL;
		 open = QC_AT(st, QcOpen, open->all.next))
	{
		QcPurgeItem item = {.seq = open->seq};

		if (is_spared(st, queue, open))
			qc_effect_put_item(w, QC_EFFECT_PURGE, &item);
	}
}

uint64_t
qc_purge_count_queue(QcState *st, const QcQueue *queue)
{
	uint64_t	most = 0;

	for (QcGroup *group = QC_AT(st, QcGroup, queue->groups); group != NULL;
		 group = QC_AT(st, QcGroup, group->next))
	{
		uint64_t	n = group->nready + group->nwaiting + group->unscanned;

		if (group->state == QC_GROUP_LIVE && n > most)
			most = n;
	}
	return most;
}

uint64_t
qc_purge_count_partition(QcState *st, QcPartition *partition)
{
	const QcQueue *queue = QC_AT(st, QcQueue, partition->queue);
	uint64_t	most = 0;

	qc_partition_touch(st, partition);
	for (QcGroup *group = QC_AT(st, QcGroup, queue->groups); group != NULL;
		 group = QC_AT(st, QcGroup, group->next))
	{
		const QcCursor *cursor = qc_cursor_of(st, partition, group);
		uint64_t	n;

		if (group->state != QC_GROUP_LIVE)
			continue;
		if (cursor == NULL || cursor->fetch == QC_UNSET)
			n = qc_group_scanning(group) ? partition->visible : 0;
		else
			n = qc_partition_count(st, partition, cursor->fetch) + cursor->nslots - cursor->nleased;
		if (n > most)
			most = n;
	}
	return most;
}
