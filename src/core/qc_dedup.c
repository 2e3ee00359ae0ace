/*
 * qc_dedup.c
 *		The table of dedup ids (qc_dedup.h).
 */
#include "qc_dedup.h"

#include <assert.h>
#include <string.h>

_Static_assert(sizeof(QcDedup) <= 64, "dedup entry");

/* The hash is as good as random: some of its bits choose the bucket. */
static QcRef *
bucket_of(QcState *st, uint64_t partition, const uint8_t *hash)
{
	return qc_table_bucket(st, &st->dedups, qc_load_u64(hash) ^ qc_hash_id(partition));
}

/* Has a settled entry left the window of its queue, or had it when that was made longer?  queue: NULL = gone. */
static bool
outside(const QcQueue *queue, const QcDedup *dedup, int64_t now, int64_t window)
{
	if (dedup->state != QC_DEDUP_SETTLED)
		return false;
	return now - dedup->pushed_at >= window ||
		(queue != NULL && dedup->pushed_at < queue->options.value[QC_OPT_DEDUP_SINCE]);
}

static const QcQueue *
queue_of(QcState *st, uint64_t partition)
{
	const QcPartition *found = qc_partition_by_id(st, partition);

	return found == NULL ? NULL : QC_AT(st, QcQueue, found->queue);
}

int64_t
qc_dedup_since(const QcQueue *queue, int64_t now)
{
	int64_t		since = now - queue->options.value[QC_OPT_DEDUP_WINDOW] + 1;
	int64_t		floor = queue->options.value[QC_OPT_DEDUP_SINCE];

	return since > floor ? since : floor;
}

QcDedup *
qc_dedup_find(QcState *st, uint64_t partition, const uint8_t *hash, int64_t now, int64_t window)
{
	QcDedup    *dedup = QC_AT(st, QcDedup, *bucket_of(st, partition, hash));

	for (; dedup != NULL; dedup = QC_AT(st, QcDedup, dedup->next))
	{
		if (dedup->partition == partition && memcmp(dedup->hash, hash, QC_HASH_SIZE) == 0)
			return outside(queue_of(st, partition), dedup, now, window) ? NULL : dedup;
	}
	return NULL;
}

QcRef
qc_dedup_claim(QcState *st, uint64_t partition, const uint8_t *hash, const uint8_t *id)
{
	QcRef		ref = qc_mem_alloc(&st->mem, QC_CLASS_DEDUP);
	QcDedup    *dedup = QC_AT(st, QcDedup, ref);
	QcRef	   *bucket = bucket_of(st, partition, hash);

	if (dedup == NULL)
		return 0;
	memcpy(dedup->hash, hash, QC_HASH_SIZE);
	memcpy(dedup->id, id, QC_ID_SIZE);
	dedup->partition = partition;
	dedup->state = QC_DEDUP_CLAIMED;
	dedup->next = *bucket;
	*bucket = ref;
	st->dedups.count++;
	return ref;
}

/* Take it out of its bucket and give the memory back. */
static void
destroy(QcState *st, QcRef ref)
{
	QcDedup    *dedup = QC_AT(st, QcDedup, ref);
	QcRef	   *at = bucket_of(st, dedup->partition, dedup->hash);

	while (*at != ref)
	{
		assert(*at != 0);
		at = &QC_AT(st, QcDedup, *at)->next;
	}
	*at = dedup->next;
	st->dedups.count--;
	qc_mem_free(&st->mem, QC_CLASS_DEDUP, ref);
}

void
qc_dedup_unclaim(QcState *st, QcRef ref)
{
	assert(QC_AT(st, QcDedup, ref)->state == QC_DEDUP_CLAIMED);
	destroy(st, ref);
}

int64_t
qc_dedup_time(const uint8_t *id, int64_t created_at)
{
	int64_t		made = qc_id_time(id);

	return made < created_at ? made : created_at;
}

void
qc_dedup_reserved(QcState *st, QcOpen *open, QcRef ref, int64_t created_at)
{
	QcDedup    *dedup = QC_AT(st, QcDedup, ref);
	QcPartition *partition = qc_partition_by_id(st, dedup->partition);

	assert(dedup->state == QC_DEDUP_CLAIMED);
	dedup->state = QC_DEDUP_OPEN;
	dedup->seq = open->seq & UINT64_C(0x3fffffffffffffff);
	dedup->pushed_at = qc_dedup_time(dedup->id, created_at);
	dedup->link = open->dedups;
	open->dedups = ref;
	if (partition != NULL)
		qc_dedup_note(st, QC_AT(st, QcQueue, partition->queue), created_at);
}

void
qc_dedup_note(QcState *st, QcQueue *queue, int64_t created_at)
{
	QcLog	   *log = qc_log_by_id(st, queue->log_id);

	queue->last_dedup = created_at;
	if (log != NULL && created_at > log->last_dedup)
		log->last_dedup = created_at;
}

bool
qc_dedup_wanted(const QcLog *log, int64_t newest)
{
	return log->last_dedup != 0 && newest >= log->dedup_since;
}

void
qc_dedup_forget(QcState *st, uint64_t partition, const uint8_t *hash, const uint8_t *id,
				int64_t now, int64_t window)
{
	QcDedup    *dedup = qc_dedup_find(st, partition, hash, now, window);

	/* Outside of any window; the sweep frees it when its turn comes. */
	if (dedup != NULL && dedup->state == QC_DEDUP_SETTLED && memcmp(dedup->id, id, QC_ID_SIZE) == 0)
		dedup->pushed_at = 0;
}

/* At the young end of its queue's list. */
static void
settled(QcState *st, QcQueue *queue, QcRef ref)
{
	QcDedup    *dedup = QC_AT(st, QcDedup, ref);

	dedup->state = QC_DEDUP_SETTLED;
	dedup->link = 0;
	if (queue->dedups.tail == 0)
		queue->dedups.head = ref;
	else
		QC_AT(st, QcDedup, queue->dedups.tail)->link = ref;
	queue->dedups.tail = ref;
}

void
qc_dedup_settle(QcState *st, QcOpen *open, bool committed)
{
	QcRef		next;

	for (QcRef ref = open->dedups; ref != 0; ref = next)
	{
		QcDedup    *dedup = QC_AT(st, QcDedup, ref);
		QcPartition *partition = qc_partition_by_id(st, dedup->partition);

		assert(dedup->state == QC_DEDUP_OPEN);
		next = dedup->link;
		if (committed && partition != NULL)
			settled(st, QC_AT(st, QcQueue, partition->queue), ref);
		else
			destroy(st, ref);
	}
	open->dedups = 0;
}

static void
destroy_oldest(QcState *st, QcQueue *queue)
{
	QcRef		ref = queue->dedups.head;

	queue->dedups.head = QC_AT(st, QcDedup, ref)->link;
	if (queue->dedups.head == 0)
		queue->dedups.tail = 0;
	destroy(st, ref);
}

/* Free the old ones of one queue within the budget; how many there were. */
static uint32_t
expire(QcState *st, QcQueue *queue, int64_t now, uint32_t budget)
{
	int64_t		window = queue->options.value[QC_OPT_DEDUP_WINDOW];
	uint32_t	n = 0;

	while (n < budget && queue->dedups.head != 0 &&
		   outside(queue, QC_AT(st, QcDedup, queue->dedups.head), now, window))
	{
		destroy_oldest(st, queue);
		n++;
	}
	return n;
}

bool
qc_dedup_sweep(QcState *st, int64_t now, uint32_t budget)
{
	QcQueue    *queue = qc_queue_by_id(st, st->dedup_queue);
	uint32_t	freed = 0;

	/* Once over all queues at most. */
	for (uint32_t i = 0; i < st->queue_ids.count && budget > 0 && st->dedups.count > 0; i++)
	{
		uint32_t	n;

		if (queue == NULL)
			queue = QC_AT(st, QcQueue, st->queues.head);
		n = expire(st, queue, now, budget);
		freed += n;
		budget -= n < budget ? n + 1 : budget;
		queue = QC_AT(st, QcQueue, queue->all.next);
	}
	st->dedup_queue = queue == NULL ? 0 : queue->id;
	return freed > 0;
}

bool
qc_dedup_free_all(QcState *st, QcQueue *queue, uint32_t budget)
{
	while (queue->dedups.head != 0)
	{
		if (budget-- == 0)
			return true;
		destroy_oldest(st, queue);
	}
	return false;
}

bool
qc_dedup_load(QcState *st, QcQueue *queue, uint64_t partition, const uint8_t *hash,
			  const uint8_t *id, int64_t created_at)
{
	QcRef		ref = qc_dedup_claim(st, partition, hash, id);

	if (ref == 0)
		return false;
	QC_AT(st, QcDedup, ref)->pushed_at = qc_dedup_time(id, created_at);
	settled(st, queue, ref);
	return true;
}
