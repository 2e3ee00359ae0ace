/*
 * qc_dedup_rebuild.c
 *		Dedup ids after a start: read again from the logs.
 *
 * Only queues that had a dedup id pushed within their window are concerned, and of their logs only the records from then
 * on: records of a log ascend in time, so the first file that matters is found by halves.  The ids of a closed file are in its
 * .qhsh; where there is none that fits, and in the active file, the messages are read.	Every entry is decided by now, so a message
 * counts when it is visible.
 */
#include "qc_dedup_rebuild.h"

#include <errno.h>
#include <stdlib.h>

#include "qc_cursor.h"
#include "qc_dedup.h"
#include "qc_dir.h"
#include "qc_hashes.h"
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

/* Enter the dedup id of a message, unless that is outside of its queue's window or was undone. */
static QcStatus
enter(QcState *st, QcPartition *partition, uint64_t p, uint64_t target, const uint8_t *hash,
	  const uint8_t *id, int64_t created_at, int64_t now, QcError *err)
{
	QcQueue    *queue = QC_AT(st, QcQueue, partition->queue);

	if (qc_dedup_time(id, created_at) < qc_dedup_since(queue, now))
		return QC_OK;

	/*
	 * What was undone counts here too: as long as it is within the window, it must be known as
	 * that.
	 */
	if (created_at > queue->last_dedup)
		qc_dedup_note(st, queue, created_at);
	if (!qc_range_undone(st, partition, p) && !qc_dedup_load(st, queue, target, hash, id, created_at))
		return qc_error_set(err, QC_FULL,
							"qlog.dedup_memory is too small for the dedup ids in the logs");
	return QC_OK;
}

/* May the message at the position count, and for which partition? */
static bool
may_count(QcState *st, const QcPartition *partition, uint64_t p, uint64_t *target)
{
	*target = partition->id;
	return p < partition->stable &&
		(partition->lane != QC_LANE_DELAY || delayed_target(st, partition, p, target));
}

/* Enter the dedup ids of one record, whose messages are read. */
static QcStatus
rebuild_record(QcState *st, QcReadCache *cache, QcPartition *partition,
			   const QcLocation *location, int64_t now, QcError *err)
{
	for (uint64_t p = location->first; p < location->first + location->count; p++)
	{
		QcMessage	message;
		uint8_t		hash[QC_HASH_SIZE];
		int64_t		created_at;
		uint64_t	target;
		QcStatus	status;

		if (!may_count(st, partition, p, &target))
			continue;
		status = qc_read_message(cache, location, partition->id, p, &message, &created_at, err);
		if ((status == QC_DAMAGED || status == QC_MISSING) && !is_kept(st, partition, p))
			continue;
		if (status != QC_OK)
			return status;
		if (message.dedup_len == 0)
			continue;
		qc_frame_hash(&message, hash);
		status = enter(st, partition, p, target, hash, message.id, created_at, now, err);
		if (status != QC_OK)
			return status;
	}
	return QC_OK;
}

/* The partition of a record whose dedup ids count; NULL = they do not. */
static QcPartition *
concerned(QcState *st, uint64_t id)
{
	QcPartition *partition = qc_partition_by_id(st, id);
	const QcQueue *queue = partition == NULL ? NULL : QC_AT(st, QcQueue, partition->queue);

	return queue == NULL || !queue->dedup_rebuilt || partition->lane == QC_LANE_DEAD || queue->damaged ||
		queue->state == QC_QUEUE_DEAD ? NULL : partition;
}

/* Enter the dedup ids of one record of a .qhsh. */
static QcStatus
rebuild_listed(QcState *st, const QcHashesRecord *record, int64_t now, QcError *err)
{
	QcPartition *partition = concerned(st, record->partition);
	QcStatus	status = QC_OK;

	for (uint32_t i = 0; partition != NULL && i < record->count && status == QC_OK; i++)
	{
		const uint8_t *hash;
		const uint8_t *id;
		uint64_t	target;

		if (may_count(st, partition, record->first + i, &target) && qc_hashes_id(record, i, &hash, &id))
			status = enter(st, partition, record->first + i, target, hash, id, record->created_at, now, err);
	}
	return status;
}

/* A closed file by its .qhsh.  QC_NOTFOUND: there is none that fits; a wrong one is removed, to be made anew. */
static QcStatus
rebuild_by_hashes(QcState *st, QcFiles *files, const QcLog *log, uint64_t file, int64_t now,
				  QcError *err)
{
	uint8_t    *bytes;
	size_t		len;
	size_t		at = 0;
	char		path[QC_PATH_MAX];
	QcHashesRecord record;
	QcStatus	status = qc_hashes_read(files, log->id, file, &bytes, &len, err);

	if (status == QC_DAMAGED)
	{
		qc_path_file(path, files->layout, log->id, file, "qhsh");
		(void) files->io->unlink(files->io->context, path);
		return QC_NOTFOUND;
	}
	while (status == QC_OK && qc_hashes_next(bytes, len, &at, &record))
		if (record.created_at >= log->dedup_since)
			status = rebuild_listed(st, &record, now, err);
	free(bytes);
	return status;
}

/* Put the queue of a partition out of service, or all queues of the log that have dedup ids: it may have been one of theirs. */
static void
damage(QcState *st, const QcPartition *partition, const QcLocation *location, uint32_t *damaged)
{
	for (QcQueue *queue = QC_AT(st, QcQueue, st->queues.head); queue != NULL;
		 queue = QC_AT(st, QcQueue, queue->all.next))
	{
		if (queue->log_id != location->log || !queue->dedup_rebuilt || queue->damaged ||
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

/* A file by its messages. *followed: its records could be followed to the end. */
static QcStatus
rebuild_by_messages(QcState *st, QcReadCache *cache, const QcLog *log, uint64_t file, int64_t now,
					uint32_t *damaged, bool *followed, QcError *err)
{
	QcReadWalk	walk = {.log = log->id, .since = log->dedup_since, .file = file, .last_file = file};
	QcLocation	location = {.log = log->id};
	uint64_t	id;
	QcStatus	status;

	while ((status = qc_read_walk(cache, &walk, &id, &location, err)) == QC_OK)
	{
		QcPartition *partition = concerned(st, id);

		if (partition == NULL)
			continue;
		status = rebuild_record(st, cache, partition, &location, now, err);
		if (status == QC_DAMAGED)
			damage(st, partition, &location, damaged);
		else if (status != QC_OK)
			return status;
	}
	*followed = status != QC_DAMAGED;
	if (status == QC_DAMAGED)
	{
		location.file = walk.file;
		location.position = err->position;
		damage(st, NULL, &location, damaged);
		return QC_OK;
	}
	return status == QC_END ? QC_OK : status;
}

/* The first file that may hold records made since then: the one before the first that began later. */
static uint32_t
first_file(QcFiles *files, const QcLog *log, const uint64_t *ids, uint32_t n)
{
	uint32_t	low = 0;
	uint32_t	high = n;

	while (low < high)
	{
		uint32_t	middle = low + (high - low) / 2;
		int64_t		begun;

		/* Of one that cannot tell it is supposed that earlier ones matter, too. */
		if (qc_read_begun_at(files, log->id, ids[middle], &begun) && begun < log->dedup_since)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? low - 1 : 0;
}

static QcStatus
rebuild_log(QcState *st, QcReadCache *cache, const QcLog *log, int64_t now, uint32_t *damaged,
			QcError *err)
{
	QcFiles    *files = cache->files;
	uint64_t   *ids;
	uint32_t	n;
	bool		followed = true;
	QcStatus	status = qc_dir_files(files->io, files->layout, log->id, &ids, &n, err);

	for (uint32_t i = status == QC_OK ? first_file(files, log, ids, n) : n;
		 i < n && status == QC_OK && followed; i++)
	{
		status = ids[i] >= log->file ? QC_NOTFOUND :
			rebuild_by_hashes(st, files, log, ids[i], now, err);
		if (status == QC_NOTFOUND)
			status = rebuild_by_messages(st, cache, log, ids[i], now, damaged, &followed, err);
	}
	free(ids);
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

		queue->dedup_rebuilt = log != NULL && !queue->damaged && queue->state != QC_QUEUE_DEAD &&
			queue->last_dedup >= since;
		if (!queue->dedup_rebuilt)
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
