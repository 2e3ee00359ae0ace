/*
 * qc_warm.c
 *		Filling the memory index backwards after a start.
 */
#include "qc_warm.h"

#include <stdlib.h>

#include "qc_purge.h"
#include "qc_read_int.h"

#define WANTED_BYTES 65536

bool
qc_warm_wanted(const QcLog *log, QcWarm *warm)
{
	*warm = (QcWarm)
	{
		.log = log->id, .file = log->file, .begin = log->index_position
	};
	return log->nqueues > 0 && log->index_file == log->file &&
		log->index_position >= QC_FILE_HEADER_SIZE + WANTED_BYTES;
}

static int
by_position(const void *a, const void *b)
{
	const QcIdxEntry *x = a;
	const QcIdxEntry *y = b;

	return x->position < y->position ? -1 : x->position > y->position;
}

QcStatus
qc_warm_load(QcWarm *warm, QcReadCache *cache, QcError *err)
{
	QcReadIndex *index = qc_read_slot(cache, warm->log, warm->file);
	QcStatus	status = qc_read_refresh(cache, index, warm->log, warm->file, err);

	if (status != QC_OK || index->count == 0)
		return status;
	warm->cache = cache;
	warm->entries = cache->alloc(cache->alloc_context, index->count * sizeof(QcIdxEntry));
	if (warm->entries == NULL)
		return qc_error_set(err, QC_FULL, "out of memory");
	for (uint32_t i = 0; i < index->count; i++)
	{
		QcIdxEntry *entry = &warm->entries[warm->left];

		qc_idx_entry_decode(index->bytes + QC_IDX_HEADER_SIZE + (size_t) i * QC_IDX_ENTRY_SIZE, entry);
		if (entry->position < warm->begin)
			warm->left++;
	}
	qsort(warm->entries, warm->left, sizeof(QcIdxEntry), by_position);
	return QC_OK;
}

/* Half of the budget is for what comes. */
static bool
has_room(const QcState *st)
{
	uint64_t	used;
	uint64_t	limit;

	qc_mem_usage(&st->mem, QC_BUDGET_INDEX, &used, &limit);
	return used < limit / 2;
}

/* Nobody asks for what is gone. */
static bool
is_kept(QcState *st, const QcPartition *partition, const QcIdxEntry *entry)
{
	return partition != NULL && entry->end > qc_partition_start(st, partition);
}

bool
qc_warm_step(QcState *st, QcWarm *warm, uint32_t n)
{
	QcLog	   *log = qc_log_by_id(st, warm->log);

	if (log == NULL || log->index_file != warm->file || log->index_position != warm->begin ||
		!has_room(st))
		return false;
	while (warm->left > 0 && n-- > 0)
	{
		const QcIdxEntry *entry = &warm->entries[warm->left - 1];
		QcPartition *partition = qc_partition_by_id(st, entry->partition);

		if (is_kept(st, partition, entry) &&
			!qc_index_add_older(st, log, partition, entry->first, entry->count, warm->file,
								entry->position, entry->len + 4))
			return false;
		log->index_position = warm->begin = entry->position;
		warm->left--;
	}
	return warm->left > 0;
}

void
qc_warm_end(QcWarm *warm)
{
	if (warm->entries != NULL)
		warm->cache->release(warm->cache->alloc_context, warm->entries);
	warm->entries = NULL;
	warm->left = 0;
}
