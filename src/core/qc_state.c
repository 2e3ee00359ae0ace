/*
 * qc_state.c
 *		Layout of the state block, hash tables, lists, look-ups and dirty lists.
 */
#include "qc_state.h"

#include <assert.h>
#include <string.h>

#include <xxhash.h>

#include "qc_answer.h"
#include "qc_cursor.h"
#include "qc_effect.h"
#include "qc_index.h"
#include "qc_log.h"
#include "qc_wait.h"

/* An object must fit the bytes that its class hands out. */
_Static_assert(sizeof(QcQueue) <= 512, "queue");
_Static_assert(sizeof(QcGroup) <= 256, "group");
_Static_assert(sizeof(QcPartition) <= 176, "partition");
_Static_assert(sizeof(QcCursor) <= 112, "cursor");
_Static_assert(sizeof(QcLease) <= 128, "lease");
_Static_assert(sizeof(QcSlot) <= 64, "slot");
_Static_assert(sizeof(QcPending) <= 48, "pending");
_Static_assert(sizeof(QcAbortedRange) <= 48, "aborted");
_Static_assert(sizeof(QcOpen) <= 80, "open");
_Static_assert(sizeof(QcOpenItem) <= 64, "open item");
_Static_assert(sizeof(QcLaneItem) <= 64, "lane item");
_Static_assert(sizeof(QcLog) <= 256, "log");
_Static_assert(sizeof(QcTimer) <= 32, "timer");
_Static_assert(sizeof(QcAlter) <= 160, "alter");
_Static_assert(sizeof(QcGrant) <= 16, "grant");
_Static_assert(sizeof(QcIndexEntry) <= 48, "index entry");
_Static_assert(sizeof(QcWaiter) % QC_REF_UNIT == 0, "waiter");

#define QC_TABLES 8

/* Buckets of each table: about one per object that fits; the last one's stand in the dedup memory. */
static void
table_sizes(const QcStateConfig *config, uint32_t sizes[QC_TABLES])
{
	static const uint32_t bytes_per_bucket[QC_TABLES] = {8192, 8192, 512, 512, 1024, 8192, 512, 64};

	for (int i = 0; i < QC_TABLES; i++)
	{
		uint64_t	bytes = i == QC_TABLES - 1 ? config->dedup_bytes : config->state_bytes;
		uint32_t	n = 64;

		while (n < (1u << 27) && (uint64_t) n * bytes_per_bucket[i] < bytes)
			n *= 2;
		sizes[i] = n;
	}
}

static uint64_t
fixed_size(const QcStateConfig *config)
{
	uint32_t	sizes[QC_TABLES];
	uint64_t	bytes = (sizeof(QcState) + QC_REF_UNIT - 1) / QC_REF_UNIT * QC_REF_UNIT;

	table_sizes(config, sizes);
	for (int i = 0; i < QC_TABLES; i++)
		bytes += (uint64_t) sizes[i] * sizeof(QcRef);
	bytes += (uint64_t) config->max_waiters * sizeof(QcWaiter);
	return bytes + qc_answers_size(config->state_bytes);
}

uint64_t
qc_state_size(const QcStateConfig *config)
{
	const uint64_t budgets[QC_BUDGET_COUNT] = {config->state_bytes, config->index_bytes, config->dedup_bytes};

	return qc_mem_block_size(fixed_size(config), budgets);
}

QcState *
qc_state_init(void *block, const QcStateConfig *config)
{
	QcState    *st = block;
	uint64_t	fixed = fixed_size(config);
	uint64_t	at = (sizeof(QcState) + QC_REF_UNIT - 1) / QC_REF_UNIT * QC_REF_UNIT;
	uint32_t	sizes[QC_TABLES];
	const uint64_t budgets[QC_BUDGET_COUNT] = {config->state_bytes, config->index_bytes, config->dedup_bytes};
	QcTable    *tables[QC_TABLES];

	memset(block, 0, fixed);
	qc_mem_init(&st->mem, qc_state_size(config), fixed, budgets);
	tables[0] = &st->queue_names;
	tables[1] = &st->queue_ids;
	tables[2] = &st->partition_names;
	tables[3] = &st->partition_ids;
	tables[4] = &st->lease_ids;
	tables[5] = &st->log_ids;
	tables[6] = &st->lane_items;
	tables[7] = &st->dedups;
	table_sizes(config, sizes);
	for (int i = 0; i < QC_TABLES; i++)
	{
		tables[i]->buckets = at;
		tables[i]->nbuckets = sizes[i];
		at += (uint64_t) sizes[i] * sizeof(QcRef);
	}
	assert(at % QC_REF_UNIT == 0);
	st->snapshot_seq = UINT64_MAX;
	st->waiters = at;
	st->nwaiters = config->max_waiters;
	at += (uint64_t) st->nwaiters * sizeof(QcWaiter);
	assert(at % sizeof(uint64_t) == 0 && at + qc_answers_size(config->state_bytes) == fixed);
	qc_answers_init(st, at, config->state_bytes);
	st->rest_until = INT64_MIN;
	st->next_queue_id = 1;
	st->next_partition_id = 1;
	st->max_slots = config->max_slots != 0 ? config->max_slots : QC_SLOTS_MAX;
	st->index_bytes_limit = config->index_bytes;
	return st;
}

QcRef *
qc_table_bucket(QcState *st, QcTable *table, uint64_t hash)
{
	QcRef	   *buckets = (QcRef *) ((uintptr_t) st + (uintptr_t) table->buckets);

	return &buckets[hash & (table->nbuckets - 1)];
}

uint64_t
qc_hash_id(uint64_t id)
{
	id ^= id >> 33;
	id *= UINT64_C(0xff51afd7ed558ccd);
	id ^= id >> 33;
	return id;
}

uint64_t
qc_hash_name(uint64_t scope, const char *name, size_t len)
{
	return XXH3_64bits_withSeed(name, len, scope);
}

QcQueue *
qc_queue_by_name(QcState *st, uint32_t database, const char *name, size_t len)
{
	QcRef		ref = *qc_table_bucket(st, &st->queue_names, qc_hash_name(database, name, len));

	while (ref != 0)
	{
		QcQueue    *queue = QC_AT(st, QcQueue, ref);

		if (queue->database == database && queue->name_len == len &&
			(queue->state == QC_QUEUE_LIVE || queue->state == QC_QUEUE_DROPPING) &&
			memcmp(qc_name_at(st, queue->name), name, len) == 0)
			return queue;
		ref = queue->name_next;
	}
	return NULL;
}

QcQueue *
qc_queue_by_id(QcState *st, uint64_t id)
{
	QcRef		ref = *qc_table_bucket(st, &st->queue_ids, qc_hash_id(id));
	QcQueue    *queue;

	while ((queue = QC_AT(st, QcQueue, ref)) != NULL && queue->id != id)
		ref = queue->id_next;
	return queue;
}

QcPartition *
qc_partition_by_name(QcState *st, const QcQueue *queue, const char *name, size_t len)
{
	QcRef		ref = *qc_table_bucket(st, &st->partition_names, qc_hash_name(queue->id, name, len));
	QcRef		of_queue = QC_REF(st, queue);

	while (ref != 0)
	{
		QcPartition *partition = QC_AT(st, QcPartition, ref);

		if (partition->queue == of_queue && partition->lane == QC_LANE_NONE &&
			partition->name_len == len && memcmp(qc_name_at(st, partition->name), name, len) == 0)
			return partition;
		ref = partition->name_next;
	}
	return NULL;
}

QcPartition *
qc_partition_by_id(QcState *st, uint64_t id)
{
	QcRef		ref = *qc_table_bucket(st, &st->partition_ids, qc_hash_id(id));
	QcPartition *partition;

	while ((partition = QC_AT(st, QcPartition, ref)) != NULL && partition->id != id)
		ref = partition->id_next;
	return partition;
}

QcGroup *
qc_group_by_id(QcState *st, const QcQueue *queue, uint64_t id)
{
	QcGroup    *group = QC_AT(st, QcGroup, queue->groups);

	while (group != NULL && group->id != id)
		group = QC_AT(st, QcGroup, group->next);
	return group;
}

QcGroup *
qc_group_by_name(QcState *st, const QcQueue *queue, const char *name, size_t len)
{
	QcGroup    *group = QC_AT(st, QcGroup, queue->groups);

	while (group != NULL &&
		   (group->name_len != len || group->state != QC_GROUP_LIVE ||
			memcmp(qc_name_at(st, group->name), name, len) != 0))
		group = QC_AT(st, QcGroup, group->next);
	return group;
}

QcGroup *
qc_group_default(QcState *st, const QcQueue *queue)
{
	return qc_group_by_name(st, queue, "", 0);
}

QcCursor *
qc_cursor_of(QcState *st, const QcPartition *partition, const QcGroup *group)
{
	QcCursor   *cursor = QC_AT(st, QcCursor, partition->cursors);
	QcRef		of_group = QC_REF(st, group);

	while (cursor != NULL && cursor->group != of_group)
		cursor = QC_AT(st, QcCursor, cursor->next);
	return cursor;
}

QcLease *
qc_lease_listed(QcState *st, uint64_t id)
{
	QcRef		ref = *qc_table_bucket(st, &st->lease_ids, qc_hash_id(id));
	QcLease    *lease;

	while ((lease = QC_AT(st, QcLease, ref)) != NULL && lease->id != id)
		ref = lease->id_next;
	return lease;
}

QcLease *
qc_lease_by_id(QcState *st, uint64_t id)
{
	QcLease    *lease = qc_lease_listed(st, id);

	return lease == NULL || qc_lease_gone(st, lease) ? NULL : lease;
}

QcLog *
qc_log_by_id(QcState *st, uint64_t id)
{
	QcRef		ref = *qc_table_bucket(st, &st->log_ids, qc_hash_id(id));
	QcLog	   *log;

	while ((log = QC_AT(st, QcLog, ref)) != NULL && log->id != id)
		ref = log->id_next;
	return log;
}

QcOpen *
qc_open_by_seq(QcState *st, uint64_t seq)
{
	QcOpen	   *open = QC_AT(st, QcOpen, st->opens.head);

	/* By seq, ascending, and few: one per backend that is committing. */
	while (open != NULL && open->seq < seq)
		open = QC_AT(st, QcOpen, open->all.next);
	return open != NULL && open->seq == seq ? open : NULL;
}

uint64_t
qc_cursor_committed(const QcState *st, const QcCursor *cursor)
{
	const QcSlot *first = QC_AT(st, QcSlot, cursor->slots.head);

	return first != NULL ? first->position : cursor->fetch;
}

bool
qc_partition_ordered(const QcState *st, const QcPartition *partition)
{
	const QcQueue *queue = QC_AT(st, QcQueue, partition->queue);

	return partition->id != queue->default_partition_id ||
		queue->options.value[QC_OPT_ORDERED] != 0;
}

static QcLink *
link_at(QcState *st, QcRef ref, size_t offset)
{
	return (QcLink *) ((uintptr_t) qc_mem_at(&st->mem, ref) + offset);
}

void
qc_list_insert(QcState *st, QcList *list, QcRef after, QcRef ref, size_t offset)
{
	QcLink	   *link = link_at(st, ref, offset);
	QcRef		next = after == 0 ? list->head : link_at(st, after, offset)->next;

	link->prev = after;
	link->next = next;
	if (after == 0)
		list->head = ref;
	else
		link_at(st, after, offset)->next = ref;
	if (next == 0)
		list->tail = ref;
	else
		link_at(st, next, offset)->prev = ref;
}

void
qc_list_append(QcState *st, QcList *list, QcRef ref, size_t offset)
{
	qc_list_insert(st, list, list->tail, ref, offset);
}

void
qc_list_prepend(QcState *st, QcList *list, QcRef ref, size_t offset)
{
	qc_list_insert(st, list, 0, ref, offset);
}

void
qc_list_remove(QcState *st, QcList *list, QcRef ref, size_t offset)
{
	QcLink	   *link = link_at(st, ref, offset);

	if (link->prev == 0)
	{
		assert(list->head == ref);
		list->head = link->next;
	}
	else
		link_at(st, link->prev, offset)->next = link->next;
	if (link->next == 0)
	{
		assert(list->tail == ref);
		list->tail = link->prev;
	}
	else
		link_at(st, link->next, offset)->prev = link->prev;
	link->prev = link->next = 0;
}

QcDirty *
qc_dirty_of(QcState *st, QcClass class, QcRef ref)
{
	static const size_t offsets[QC_CLASS_COUNT] = {
		[QC_CLASS_LOG] = offsetof(QcLog, dirty),
		[QC_CLASS_QUEUE] = offsetof(QcQueue, dirty),
		[QC_CLASS_GROUP] = offsetof(QcGroup, dirty),
		[QC_CLASS_PARTITION] = offsetof(QcPartition, dirty),
		[QC_CLASS_LEASE] = offsetof(QcLease, dirty),
		[QC_CLASS_CURSOR] = offsetof(QcCursor, dirty),
		[QC_CLASS_OPEN] = offsetof(QcOpen, dirty),
		[QC_CLASS_LANE_ITEM] = offsetof(QcLaneItem, dirty),
	};

	return offsets[class] == 0 ? NULL :
		(QcDirty *) ((uintptr_t) qc_mem_at(&st->mem, ref) + offsets[class]);
}

void
qc_mark_dirty(QcState *st, QcClass class, QcRef ref, QcDirty *dirty)
{
	if (dirty->flags & QC_DIRTY_LISTED)
		return;
	dirty->flags |= QC_DIRTY_LISTED;
	dirty->next = st->dirty[class];
	st->dirty[class] = ref;
	st->ndirty++;
}

void
qc_free_row(QcState *st, QcClass class, QcRef ref, QcDirty *dirty)
{
	if ((dirty->flags & (QC_DIRTY_LISTED | QC_DIRTY_STORED)) == 0)
	{
		qc_mem_free(&st->mem, class, ref);
		return;
	}
	dirty->flags |= QC_DIRTY_DELETED;
	qc_mark_dirty(st, class, ref, dirty);
}
