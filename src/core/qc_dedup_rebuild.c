/*
 * qc_dedup_rebuild.c
 *		Dedup ids after a start: read again from the logs.
 *
 * Only queues that had a dedup id pushed within their window are concerned, and of their logs only the records from then
 * on.  Every entry is decided by now, so a message counts when it is visible.
 */
#include "qc_dedup_rebuild.h"

#include "qc_cursor.h"
#include "qc_dedup.h"
#include "qc_lane.h"
#include "qc_log.h"

/* The partition that a delayed message is for; false when it is there already, or was cancelled. */
static bool
delayed_target(QcState *st, const QcPartition *lane, uint64_t position, uint64_t *target)
{
	const QcLaneItem *item = qc_lane_find(st, lane, position);

	if (item == NULL)
		return false;
	*target = item->target;
	return true;
}

/* Is there a message at the position that somebody may read?  What is gone may be unreadable: a repair took it. */
static bool
is_kept(const QcState *st, const QcPartition *partition, uint64_t p)
{
	return p >= partition->start && qc_skip_aborted(st, partition, p) == p;
}

/* Enter the dedup ids of one record that are within the window of its queue. */
static QcStatus
rebuild_record(QcState *st, QcReadCache *cache, QcPartition *partition,
			   const QcLocation *location, int64_t now, QcError *err)
{
	QcQueue    *queue = QC_AT(st, QcQueue, partition->queue);

	for (uint64_t p = location->first; p < location->first + location->count; p++)
	{
		QcMessage	message;
		uint8_t		hash[QC_HASH_SIZE];
		int64_t		created_at;
		uint64_t	target = partition->id;
		QcStatus	status;

		if (p >= partition->stable)
			continue;
		if (partition->lane == QC_LANE_DELAY && !delayed_target(st, partition, p, &target))
			continue;
		status = qc_read_message(cache, location, partition->id, p, &message, &created_at, err);
		if ((status == QC_DAMAGED || status == QC_MISSING) && !is_kept(st, partition, p))
			continue;
		if (status != QC_OK)
			return status;
		if (message.dedup_len == 0 || qc_dedup_time(message.id, created_at) < qc_dedup_since(queue, now))
			continue;

		/*
		 * What was undone counts here too: as long as it is within the window, it must be known as
		 * that.
		 */
		if (created_at > queue->last_dedup)
			queue->last_dedup = created_at;
		if (qc_range_undone(st, partition, p))
			continue;
		qc_frame_hash(&message, hash);
		if (!qc_dedup_load(st, queue, target, hash, message.id, created_at))
			return qc_error_set(err, QC_FULL,
								"qlog.dedup_memory is too small for the dedup ids in the logs");
	}
	return QC_OK;
}

/* Put the queue of a partition out of service, or all queues of the log. */
static void
damage(QcState *st, const QcPartition *partition, const QcLocation *location, uint32_t *damaged)
{
	for (QcQueue *queue = QC_AT(st, QcQueue, st->queues.head); queue != NULL;
		 queue = QC_AT(st, QcQueue, queue->all.next))
	{
		if (queue->log_id != location->log || queue->damaged ||
			(partition != NULL && QC_REF(st, queue) != partition->queue))
			continue;
		queue->damaged = 1;
		queue->damage_file = location->file;
		queue->damage_position = location->position;
		queue->last_dedup = st->last_created_at;
		qc_dirty_queue(st, queue);
		(*damaged)++;
	}
}

static QcStatus
rebuild_log(QcState *st, QcReadCache *cache, const QcLog *log, int64_t now, uint32_t *damaged,
			QcError *err)
{
	QcReadWalk	walk = {.log = log->id, .since = log->dedup_since};
	QcLocation	location = {.log = log->id};
	uint64_t	id;
	QcStatus	status;

	while ((status = qc_read_walk(cache, &walk, &id, &location, err)) == QC_OK)
	{
		QcPartition *partition = qc_partition_by_id(st, id);
		const QcQueue *queue = partition == NULL ? NULL : QC_AT(st, QcQueue, partition->queue);

		if (queue == NULL || partition->lane == QC_LANE_DEAD || queue->damaged ||
			queue->state == QC_QUEUE_DEAD)
			continue;
		status = rebuild_record(st, cache, partition, &location, now, err);
		if (status == QC_DAMAGED)
			damage(st, partition, &location, damaged);
		else if (status != QC_OK)
			return status;
	}
	if (status == QC_END)
		return QC_OK;
	if (status == QC_DAMAGED)
	{
		location.file = walk.file;
		location.position = err->position;
		damage(st, NULL, &location, damaged);
		return QC_OK;
	}
	return status;
}

/*
 * Since when each log may hold dedup ids that are within the window of their queue.	Their queues then learn anew when the
 * newest one was pushed, which recovery cannot tell.
 */
static void
find_windows(QcState *st, int64_t now)
{
	for (QcLog *log = QC_AT(st, QcLog, st->logs); log != NULL; log = QC_AT(st, QcLog, log->next))
		log->dedup_since = now;
	for (QcQueue *queue = QC_AT(st, QcQueue, st->queues.head); queue != NULL;
		 queue = QC_AT(st, QcQueue, queue->all.next))
	{
		QcLog	   *log = qc_log_by_id(st, queue->log_id);
		int64_t		since = qc_dedup_since(queue, now);

		if (log == NULL || queue->damaged || queue->state == QC_QUEUE_DEAD ||
			queue->last_dedup < since)
			continue;
		if (since < log->dedup_since)
			log->dedup_since = since;
		queue->last_dedup = 0;
		qc_dirty_queue(st, queue);
	}
}

QcStatus
qc_dedup_rebuild(QcState *st, QcReadCache *cache, int64_t now, uint32_t *damaged, QcError *err)
{
	QcStatus	status = QC_OK;

	*damaged = 0;
	find_windows(st, now);
	for (QcLog *log = QC_AT(st, QcLog, st->logs); log != NULL && status == QC_OK;
		 log = QC_AT(st, QcLog, log->next))
	{
		if (log->dedup_since < now)
			status = rebuild_log(st, cache, log, now, damaged, err);
	}
	return status;
}
