/*
 * qc_purge.h
 *		Purging: what waits in a partition, or in a whole queue, is gone.
 *
 * What a consumer holds is not waiting: it stays leased, can be acknowledged, and comes back when it is given back, though
 * its position now lies below the partition's start.  What is pushed and not committed is not waiting either.
 *
 * A purge of a whole queue counts up QcQueue.purges and takes everything out of the queue's and groups' counts and ready
 * lists at once.  A partition that has not seen it yet (QcPartition.purges) looks as before, and means: empty up to
 * `next`, as no push has come since.  Whoever looks at its cursors, slots or start first brings it up to date with
 * qc_partition_touch.  Entries with messages that are not decided name partitions whose purge ends before these: they are
 * brought up to date by the purge itself.
 *
 * State lock.
 */
#ifndef QC_PURGE_H
#define QC_PURGE_H

#include "qc_effect.h"
#include "qc_state.h"

/* Has the partition not seen a purge of its queue yet? */
static inline bool
qc_partition_stale(const QcState *st, const QcPartition *partition)
{
	return partition->lane == 0 &&
		partition->purges != QC_AT(st, QcQueue, partition->queue)->purges;
}

extern void qc_partition_follow_purge(QcState *st, QcPartition *partition);

/* Bring the partition up to date; frees slots that no lease holds. */
static inline void
qc_partition_touch(QcState *st, QcPartition *partition)
{
	if (qc_partition_stale(st, partition))
		qc_partition_follow_purge(st, partition);
}

/* Lowest position kept, for those who must not change anything (shared lock). */
static inline uint64_t
qc_partition_start(const QcState *st, const QcPartition *partition)
{
	return qc_partition_stale(st, partition) ? partition->next : partition->start;
}

/* Messages of [start, stable), counted. */
extern uint64_t qc_partition_all(const QcState *st, const QcPartition *partition);

/* Messages that are visible, at or above `from`; of a partition that is up to date. */
extern uint64_t qc_partition_count(const QcState *st, const QcPartition *partition, uint64_t from);

/*
 * Purge a partition, or everything, but for the messages of the entries that the effect lists; NULL: of those joint
 * entries that are not decided now.
 */
extern void qc_purge_queue(QcState *st, QcQueue *queue, const QcEffect *kept);
extern void qc_purge_partition(QcState *st, QcPartition *partition, const QcEffect *kept);

/*
 * Encode the effect for a purge that happens now: it lists the joint entries with messages in the queue that are not
 * decided, at most as many as there are transactions committing.
 */
extern void qc_purge_put(QcState *st, const QcQueue *queue, const QcPurge *purge, QcWriter *w);

/* Messages that a purge that happens now would take from the group that waits for most. */
extern uint64_t qc_purge_count_queue(QcState *st, const QcQueue *queue);
extern uint64_t qc_purge_count_partition(QcState *st, QcPartition *partition);

#endif							/* QC_PURGE_H */
