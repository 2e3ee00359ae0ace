/*
 * qc_index.c
 *		The memory index of message records.
 *
 * Invariant: the entries of a partition are in ascending, disjoint ranges of positions, and those of a log in the
 * order in which the records stand in its files, without a hole from (index_file, index_position) on.
 */
#include "qc_index.h"

#include <assert.h>
#include <stddef.h>

#define OF_PARTITION	offsetof(QcIndexEntry, of_partition)
#define OF_LOG			offsetof(QcIndexEntry, of_log)

static QcIndexEntry *
make(QcState *st, QcLog *log, QcPartition *partition, uint64_t first, uint32_t count,
	 uint64_t file, uint64_t position, uint32_t size, bool promised)
{
	QcRef		ref = promised ? qc_mem_alloc_reserved(&st->mem, QC_CLASS_INDEX) :
		qc_mem_alloc(&st->mem, QC_CLASS_INDEX);
	QcIndexEntry *entry = QC_AT(st, QcIndexEntry, ref);

	if (entry == NULL)
		return NULL;
	assert(file <= UINT32_MAX && position <= UINT32_MAX);
	entry->first = first;
	entry->partition = QC_REF(st, partition);
	entry->count = count;
	entry->file = (uint32_t) file;
	entry->position = (uint32_t) position;
	entry->size = size;
	entry->log = QC_REF(st, log);
	log->nindexed++;
	return entry;
}

bool
qc_index_add(QcState *st, QcLog *log, QcPartition *partition, uint64_t first, uint32_t count,
			 uint64_t file, uint64_t position, uint32_t size, bool promised)
{
	QcIndexEntry *entry = make(st, log, partition, first, count, file, position, size, promised);

	if (entry == NULL)
		return false;
	qc_list_append(st, &partition->index, QC_REF(st, entry), OF_PARTITION);
	qc_list_append(st, &log->index, QC_REF(st, entry), OF_LOG);
	return true;
}

bool
qc_index_add_older(QcState *st, QcLog *log, QcPartition *partition, uint64_t first, uint32_t count,
				   uint64_t file, uint64_t position, uint32_t size)
{
	QcIndexEntry *entry = make(st, log, partition, first, count, file, position, size, false);

	if (entry == NULL)
		return false;
	qc_list_prepend(st, &partition->index, QC_REF(st, entry), OF_PARTITION);
	qc_list_prepend(st, &log->index, QC_REF(st, entry), OF_LOG);
	return true;
}

static bool
holds(const QcIndexEntry *entry, uint64_t position)
{
	return position >= entry->first && position - entry->first < entry->count;
}

/* A hint may be stale: free by now (its first bytes are a list link) or of another partition. */
static QcIndexEntry *
valid_hint(const QcState *st, const QcPartition *partition, QcRef ref)
{
	QcIndexEntry *entry = QC_AT(st, QcIndexEntry, ref);

	return entry != NULL && entry->partition == QC_REF(st, partition) ? entry : NULL;
}

uint32_t
qc_index_message_size(const QcState *st, const QcPartition *partition, uint64_t position,
					  QcRef hint)
{
	const QcIndexEntry *entry = valid_hint(st, partition, hint);

	return entry != NULL && holds(entry, position) ? entry->size / entry->count : 0;
}

static uint64_t
distance(const QcIndexEntry *entry, uint64_t position)
{
	return entry->first > position ? entry->first - position : position - entry->first;
}

/* Take the other entry when it is nearer. */
static QcIndexEntry *
nearer(QcIndexEntry *entry, QcIndexEntry *other, uint64_t position)
{
	if (other == NULL || (entry != NULL && distance(entry, position) <= distance(other, position)))
		return entry;
	return other;
}

/* Walk along the partition's chain to the entry that holds the position; NULL when there is none. */
static QcIndexEntry *
walk(QcState *st, QcIndexEntry *entry, uint64_t position)
{
	while (entry != NULL && entry->first > position)
		entry = QC_AT(st, QcIndexEntry, entry->of_partition.prev);
	while (entry != NULL && entry->first <= position && !holds(entry, position))
		entry = QC_AT(st, QcIndexEntry, entry->of_partition.next);
	return entry != NULL && holds(entry, position) ? entry : NULL;
}

/*
 * Begin at whatever is nearest: the hint, either end of the chain, or where the deliveries of one
 * of its cursors stand.
 */
static QcIndexEntry *
search(QcState *st, const QcPartition *partition, uint64_t position, QcRef hint)
{
	QcIndexEntry *head = QC_AT(st, QcIndexEntry, partition->index.head);
	QcIndexEntry *start = valid_hint(st, partition, hint);
	QcCursor   *cursor = QC_AT(st, QcCursor, partition->cursors);

	if (head == NULL || position < head->first)
		return NULL;
	start = nearer(start, head, position);
	start = nearer(start, QC_AT(st, QcIndexEntry, partition->index.tail), position);
	if (cursor != NULL)
		start = nearer(start, valid_hint(st, partition, cursor->hint), position);
	return walk(st, start, position);
}

bool
qc_index_find(QcState *st, QcPartition *partition, uint64_t position, QcRef *hint,
			  QcLocation *location)
{
	QcQueue    *queue = QC_AT(st, QcQueue, partition->queue);
	QcIndexEntry *entry = search(st, partition, position, *hint);

	location->log = queue->log_id;
	location->file = 0;
	if (entry == NULL)
	{
		const QcLog *log = QC_AT(st, QcLog, queue->log);

		location->last_file = log == NULL ? 0 : log->index_file;
		location->first_file = log == NULL ? 0 : log->first_file;
		*hint = 0;
		return false;
	}
	*hint = QC_REF(st, entry);
	location->log = QC_AT(st, QcLog, entry->log)->id;
	location->file = entry->file;
	location->position = entry->position;
	location->size = entry->size;
	location->count = entry->count;
	location->first = entry->first;
	return true;
}

static void
drop(QcState *st, QcIndexEntry *entry)
{
	QcRef		ref = QC_REF(st, entry);
	QcLog	   *log = QC_AT(st, QcLog, entry->log);

	qc_list_remove(st, &QC_AT(st, QcPartition, entry->partition)->index, ref, OF_PARTITION);
	qc_list_remove(st, &log->index, ref, OF_LOG);
	log->nindexed--;

	/* So that a stale hint cannot take it for the partition's. */
	entry->partition = 0;
	qc_mem_free(&st->mem, QC_CLASS_INDEX, ref);
}

/* The next record that the index holds begins behind what was dropped. */
static void
index_begins(QcState *st, QcLog *log)
{
	QcIndexEntry *oldest = QC_AT(st, QcIndexEntry, log->index.head);

	if (oldest != NULL)
	{
		log->index_file = oldest->file;
		log->index_position = oldest->position;
		return;
	}
	log->index_file = log->file;
	log->index_position = log->tail;
}

bool
qc_index_evict(QcState *st, uint32_t n)
{
	QcLog	   *most = NULL;

	for (QcLog *log = QC_AT(st, QcLog, st->logs); log != NULL; log = QC_AT(st, QcLog, log->next))
	{
		if (log->nindexed > 0 && (most == NULL || log->nindexed > most->nindexed))
			most = log;
	}
	if (most == NULL)
		return false;
	while (n-- > 0 && most->index.head != 0)
		drop(st, QC_AT(st, QcIndexEntry, most->index.head));
	index_begins(st, most);
	return true;
}

bool
qc_index_evict_file(QcState *st, QcLog *log, uint64_t file, uint32_t n)
{
	const QcIndexEntry *oldest = QC_AT(st, QcIndexEntry, log->index.head);

	while (oldest != NULL && oldest->file <= file && n > 0)
	{
		drop(st, QC_AT(st, QcIndexEntry, log->index.head));
		oldest = QC_AT(st, QcIndexEntry, log->index.head);
		n--;
	}
	if (oldest != NULL && oldest->file <= file)
	{
		index_begins(st, log);
		return false;
	}

	/* What is not in memory may lie in any file up to the one where the index begins. */
	index_begins(st, log);
	return true;
}

void
qc_index_forget(QcState *st, QcPartition *partition)
{
	while (partition->index.head != 0)
		drop(st, QC_AT(st, QcIndexEntry, partition->index.head));
}
