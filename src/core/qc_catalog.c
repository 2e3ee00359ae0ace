/*
 * qc_catalog.c
 *		Queues, partitions and groups: making and removing their objects.
 */
#include "qc_catalog.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "qc_alter.h"
#include "qc_cursor.h"
#include "qc_dedup.h"
#include "qc_group.h"
#include "qc_index.h"
#include "qc_lane.h"
#include "qc_purge.h"
#include "qc_retain_pass.h"
#include "qc_wait.h"

#define ALL			offsetof(QcQueue, all)
#define OF_QUEUE	offsetof(QcPartition, of_queue)

static QcRef
take(QcState *st, QcClass class, bool promised)
{
	return promised ? qc_mem_alloc_reserved(&st->mem, class) : qc_mem_alloc(&st->mem, class);
}

QcRef
qc_name_put(QcState *st, const QcStr *name, bool promised)
{
	QcRef		ref = take(st, qc_mem_name_class(name->len), promised);

	if (ref != 0 && name->len > 0)
		memcpy(qc_mem_at(&st->mem, ref), name->bytes, name->len);
	return ref;
}

static QcStatus
full(QcError *err)
{
	return qc_error_set(err, QC_FULL, "state memory is full");
}

static void
link_bucket(QcState *st, QcTable *table, uint64_t hash, QcRef ref, QcRef *next)
{
	QcRef	   *bucket = qc_table_bucket(st, table, hash);

	*next = *bucket;
	*bucket = ref;
	table->count++;
}

static QcQueue *
queue_make(QcState *st, uint64_t id, uint32_t database, const QcStr *name, bool promised)
{
	QcRef		ref = take(st, QC_CLASS_QUEUE, promised);
	QcQueue    *queue = QC_AT(st, QcQueue, ref);

	if (queue == NULL)
		return NULL;
	queue->id = id;
	queue->database = database;
	queue->name_len = name->len;
	queue->name = qc_name_put(st, name, promised);
	if (queue->name == 0)
	{
		qc_mem_free(&st->mem, QC_CLASS_QUEUE, ref);
		return NULL;
	}
	link_bucket(st, &st->queue_names,
				qc_hash_name(database, qc_name_at(st, queue->name), name->len), ref,
				&queue->name_next);
	link_bucket(st, &st->queue_ids, qc_hash_id(id), ref, &queue->id_next);
	qc_list_append(st, &st->queues, ref, ALL);
	if (st->next_queue_id <= id)
		st->next_queue_id = id + 1;
	qc_options_default(&queue->options);
	qc_dirty_queue(st, queue);
	return queue;
}

QcQueue *
qc_queue_load(QcState *st, uint64_t id, uint32_t database, const QcStr *name)
{
	return queue_make(st, id, database, name, false);
}

static QcPartition *
partition_make(QcState *st, uint64_t id, QcQueue *queue, const QcStr *name, uint8_t lane,
			   bool promised)
{
	QcRef		ref = take(st, QC_CLASS_PARTITION, promised);
	QcPartition *partition = QC_AT(st, QcPartition, ref);

	if (partition == NULL)
		return NULL;
	partition->id = id;
	partition->queue = QC_REF(st, queue);
	partition->lane = lane;
	if (lane == QC_LANE_DELAY)
		queue->delay_partition = id;
	partition->name_len = name->len;
	partition->name = qc_name_put(st, name, promised);
	if (partition->name == 0)
	{
		qc_mem_free(&st->mem, QC_CLASS_PARTITION, ref);
		return NULL;
	}
	link_bucket(st, &st->partition_names,
				qc_hash_name(queue->id, qc_name_at(st, partition->name), name->len), ref,
				&partition->name_next);
	link_bucket(st, &st->partition_ids, qc_hash_id(id), ref, &partition->id_next);
	qc_list_append(st, &queue->partitions, ref, OF_QUEUE);
	queue->npartitions += lane == QC_LANE_NONE;
	partition->purges = queue->purges;
	if (st->next_partition_id <= id)
		st->next_partition_id = id + 1;
	qc_dirty_partition(st, partition);
	return partition;
}

QcPartition *
qc_partition_load(QcState *st, uint64_t id, QcQueue *queue, const QcStr *name, uint8_t lane)
{
	return partition_make(st, id, queue, name, lane, false);
}

/* A cursor for each group of the queue: a new partition's first message reaches all of them. */
static bool
add_cursors(QcState *st, QcQueue *queue, QcPartition *partition, bool promised)
{
	for (QcGroup *group = QC_AT(st, QcGroup, queue->groups); group != NULL;
		 group = QC_AT(st, QcGroup, group->next))
	{
		if (group->state == QC_GROUP_LIVE &&
			qc_cursor_create(st, partition, group, promised) == 0)
			return false;
	}
	partition->group_changes = queue->group_changes;
	return true;
}

QcStatus
qc_queue_create(QcState *st, const QcQueueCreate *create, int64_t created_at, bool live,
				bool promised, QcError *err)
{
	static const QcStr no_name = {NULL, 0};
	QcQueue    *queue = queue_make(st, create->queue, create->database, &create->name, promised);
	QcPartition *partition;
	QcGroup    *group;
	QcLog	   *log;
	QcStatus	status;

	if (queue == NULL)
		return full(err);
	queue->owner = create->owner;
	queue->log_id = create->log;
	queue->created_at = created_at;
	queue->state = live ? QC_QUEUE_LIVE : QC_QUEUE_CREATING;
	status = qc_options_get(create->options.bytes, create->options.len, &queue->options, err);
	if (status != QC_OK)
		return status;

	/* Every partition that the queue will ever have comes after it. */
	group = qc_group_make(st, queue, QC_DEFAULT_GROUP, &no_name, QC_START_NEW, 0, promised);
	if (group == NULL)
		return full(err);
	qc_group_open(st, group);
	queue->default_partition_id = create->default_partition;
	partition = partition_make(st, create->default_partition, queue, &no_name, QC_LANE_NONE,
							   promised);
	if (partition == NULL || !add_cursors(st, queue, partition, promised))
		return full(err);
	queue->default_partition = QC_REF(st, partition);

	/* Live, the log was added before the entry; in recovery its true extent is found later. */
	log = qc_log_by_id(st, create->log);
	if (log == NULL)
		log = qc_log_add(st, create->log, 1, QC_FILE_HEADER_SIZE, QC_EXTEND_MIN, promised);
	else if (promised)
		qc_mem_unreserve(&st->mem, QC_CLASS_LOG, 1);
	if (log == NULL)
		return full(err);
	log->nqueues++;
	qc_dirty_log(st, log);
	queue->log = QC_REF(st, log);
	return QC_OK;
}

QcStatus
qc_partition_create(QcState *st, const QcPartitionCreate *create, bool promised, QcError *err)
{
	QcQueue    *queue = qc_queue_by_id(st, create->queue);
	QcPartition *partition;

	if (queue == NULL)
		return qc_error_set(err, QC_NOTFOUND, "partition of unknown queue %llu",
							(unsigned long long) create->queue);
	partition = partition_make(st, create->partition, queue, &create->name, create->lane, promised);
	if (partition == NULL)
		return full(err);
	if (create->lane == QC_LANE_DEAD)
	{
		QcGroup    *group = qc_group_by_id(st, queue, create->group);

		partition->group = (uint32_t) create->group;
		if (group != NULL)
		{
			group->dead_partition = create->partition;
			qc_dirty_group(st, group);
		}
	}
	else if (create->lane == QC_LANE_NONE)
		return add_cursors(st, queue, partition, promised) ? QC_OK : full(err);
	return QC_OK;
}

static void
unlink_bucket(QcState *st, QcTable *table, uint64_t hash, QcRef ref, size_t next_offset)
{
	QcRef	   *at = qc_table_bucket(st, table, hash);

	while (*at != ref)
	{
		assert(*at != 0);
		at = (QcRef *) ((uintptr_t) qc_mem_at(&st->mem, *at) + next_offset);
	}
	*at = *(QcRef *) ((uintptr_t) qc_mem_at(&st->mem, ref) + next_offset);
	table->count--;
}

static void
unlink_name(QcState *st, QcQueue *queue)
{
	unlink_bucket(st, &st->queue_names,
				  qc_hash_name(queue->database, qc_name_at(st, queue->name), queue->name_len),
				  QC_REF(st, queue), offsetof(QcQueue, name_next));
}

void
qc_queue_rename(QcState *st, QcQueue *queue, QcRef *name, uint16_t *name_len)
{
	QcRef		old = queue->name;
	uint16_t	old_len = queue->name_len;

	unlink_name(st, queue);
	queue->name = *name;
	queue->name_len = *name_len;
	*name = old;
	*name_len = old_len;
	link_bucket(st, &st->queue_names,
				qc_hash_name(queue->database, qc_name_at(st, queue->name), queue->name_len),
				QC_REF(st, queue), &queue->name_next);
}

void
qc_queue_kill(QcState *st, QcQueue *queue)
{
	QcRef		ref = QC_REF(st, queue);

	if (queue->state == QC_QUEUE_DEAD)
		return;
	unlink_name(st, queue);
	queue->state = QC_QUEUE_DEAD;
	queue->name_next = st->dead_queues;
	st->dead_queues = ref;
	qc_dirty_queue(st, queue);
	for (QcGroup *group = QC_AT(st, QcGroup, queue->groups); group != NULL;
		 group = QC_AT(st, QcGroup, group->next))
	{
		/* Nothing of it is delivered any more, whatever its cursors say. */
		group->ready.head = group->ready.tail = 0;
		qc_wait_group_gone(st, group);
	}
}

/* Scans of groups, and sweeps of dead ones, that have come as far as this partition go on behind it. */
static void
move_scans(QcState *st, const QcPartition *partition, QcRef first)
{
	for (QcGroup *group = QC_AT(st, QcGroup, first); group != NULL;
		 group = QC_AT(st, QcGroup, group->next))
	{
		if (group->scan == QC_REF(st, partition))
			group->scan = partition->of_queue.next;
	}
}

bool
qc_partition_free(QcState *st, QcPartition *partition, uint32_t *budget)
{
	QcQueue    *queue = QC_AT(st, QcQueue, partition->queue);
	QcRef		ref = QC_REF(st, partition);
	QcRef		next;

	if (*budget == 0 || !qc_lane_sweep(st, partition, budget))
		return false;
	*budget -= *budget > 0;
	qc_partition_touch(st, partition);
	move_scans(st, partition, queue->groups);
	move_scans(st, partition, st->dead_groups);
	if (st->retain_partition == ref)
		st->retain_partition = partition->of_queue.next;
	if (partition->lane == QC_LANE_NONE)
		queue->visible -= partition->visible;
	for (QcRef c = partition->cursors; c != 0; c = next)
	{
		next = QC_AT(st, QcCursor, c)->next;
		qc_cursor_free(st, QC_AT(st, QcCursor, c));
	}
	partition->cursors = 0;
	qc_range_free(st, partition);
	qc_log_died(st, queue);
	qc_index_forget(st, partition);
	unlink_bucket(st, &st->partition_names,
				  qc_hash_name(queue->id, qc_name_at(st, partition->name), partition->name_len),
				  ref, offsetof(QcPartition, name_next));
	unlink_bucket(st, &st->partition_ids, qc_hash_id(partition->id), ref,
				  offsetof(QcPartition, id_next));
	qc_list_remove(st, &queue->partitions, ref, OF_QUEUE);
	queue->npartitions -= partition->lane == QC_LANE_NONE;
	qc_mem_free(&st->mem, qc_mem_name_class(partition->name_len), partition->name);
	partition->name = 0;
	qc_free_row(st, QC_CLASS_PARTITION, ref, &partition->dirty);
	return true;
}

static void
queue_free(QcState *st, QcQueue *queue)
{
	QcRef		ref = QC_REF(st, queue);
	QcLog	   *log = QC_AT(st, QcLog, queue->log);
	QcRef		next;

	if (log != NULL)
	{
		assert(log->nqueues > 0);
		if (--log->nqueues == 0)
			qc_log_abandon(st, log);
	}

	for (QcRef g = queue->groups; g != 0; g = next)
	{
		next = QC_AT(st, QcGroup, g)->next;
		qc_group_free(st, QC_AT(st, QcGroup, g));
	}
	queue->groups = 0;
	qc_group_free_dead(st, queue);
	qc_grants_free(st, queue->grants);
	queue->grants = 0;
	unlink_bucket(st, &st->queue_ids, qc_hash_id(queue->id), ref, offsetof(QcQueue, id_next));
	if (st->retain_queue == ref)
		qc_retain_next_queue(st);
	qc_list_remove(st, &st->queues, ref, ALL);
	qc_mem_free(&st->mem, qc_mem_name_class(queue->name_len), queue->name);
	queue->name = 0;
	qc_free_row(st, QC_CLASS_QUEUE, ref, &queue->dirty);
}

bool
qc_queue_sweep(QcState *st, uint32_t budget)
{
	QcRef	   *at = &st->dead_queues;

	while (*at != 0)
	{
		QcQueue    *queue = QC_AT(st, QcQueue, *at);
		QcPartition *partition;

		if (qc_dedup_free_all(st, queue, budget))
			return true;
		while ((partition = QC_AT(st, QcPartition, queue->partitions.head)) != NULL &&
			   partition->pending.head == 0 && queue->pins == 0)
		{
			if (!qc_partition_free(st, partition, &budget))
				return true;
		}

		/* An open entry or a credit still points at a partition: come back when it is gone. */
		if (partition != NULL || queue->pins > 0)
		{
			at = &queue->name_next;
			continue;
		}
		*at = queue->name_next;
		queue_free(st, queue);
	}
	return false;
}
