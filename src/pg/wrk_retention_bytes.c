/*
 * wrk_retention_bytes.c
 *		The retention worker's second duty: what a queue keeps is counted when it may be more than its retention_bytes.
 *
 * Its messages are spread over partitions; their order in time is that of the log.	So the limit becomes a time: what was
 * pushed before goes, by the same walk that ages are enforced with.	The estimate that begins a count (QcQueue.kept) is cheap
 * and may be wrong; the count reads the indexes of the queue's log files and is right.	It leaves a 32nd of the limit free, so
 * that it is not repeated at once, nor is it before something has been pushed again.
 */
#include "wrk_retention.h"

#include "utils/memutils.h"

#include "qlog_commit.h"
#include "qlog_fetch.h"

#include "../core/qc_range.h"
#include "../core/qc_retain_pass.h"

#define BATCH 256				/* records looked up per hold of the state lock */

typedef struct Record
{
	uint64		partition;
	uint64		file;
	uint64		first;
	uint32		count;
	uint32		size;
	int64		created_at;
} Record;

/* Bytes that records of the queue take in a file. */
typedef struct FileSum
{
	uint64		file;
	uint64		bytes;
	uint64		messages;
} FileSum;

typedef struct Count
{
	uint64		queue;
	uint64		log;
	uint64		limit;
	uint64		total;			/* bytes; after the cut: those that stay */
	uint64		removed;		/* messages that the cut takes */
	FileSum    *files;
	uint32		nfiles;
	uint32		max_files;
	Record		batch[BATCH];
	uint32		nbatch;

	/* Records of one file, oldest first, once it is known in which one the cut is. */
	uint64		only_file;		/* 0 = files are summed up */
	Record	   *records;
	uint64		nrecords;
	uint64		max_records;
} Count;

/* What is asked for; false = the queue has gone, or has no limit any more. */
static bool
look_up(Count *count)
{
	QcQueue    *queue;
	bool		found;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	queue = qc_queue_by_id(qlog_state, count->queue);
	found = queue != NULL && queue->state == QC_QUEUE_LIVE &&
		queue->options.value[QC_OPT_RETENTION_BYTES] != QC_FOREVER;
	if (found)
	{
		count->log = queue->log_id;
		count->limit = (uint64) queue->options.value[QC_OPT_RETENTION_BYTES];
	}
	LWLockRelease(&qlog_shared->state_lock);
	return found;
}

/* Does a record of the queue's log hold a message that it keeps?	State lock, at least shared. */
static bool
is_kept(const Count *count, const Record *record)
{
	QcPartition *partition = qc_partition_by_id(qlog_state, record->partition);
	uint64		end = record->first + record->count;

	return partition != NULL && partition->lane == QC_LANE_NONE &&
		QC_AT(qlog_state, QcQueue, partition->queue)->id == count->queue &&
		end > partition->start &&
		qc_range_covered(qlog_state, partition, record->first, end) < record->count;
}

static void
sum_up(Count *count, const Record *record)
{
	FileSum    *last = count->nfiles == 0 ? NULL : &count->files[count->nfiles - 1];

	count->total += record->size;
	if (last != NULL && last->file == record->file)
	{
		last->bytes += record->size;
		last->messages += record->count;

		return;
	}
	if (count->nfiles == count->max_files)
	{
		count->max_files = count->max_files == 0 ? 64 : 2 * count->max_files;
		count->files = count->files == NULL ? palloc(count->max_files * sizeof(FileSum)) :
			repalloc_huge(count->files, count->max_files * sizeof(FileSum));
	}
	count->files[count->nfiles++] = (FileSum) {record->file, record->size, record->count};
}

static void
gather(Count *count, const Record *record)
{
	if (count->nrecords == count->max_records)
	{
		count->max_records = count->max_records == 0 ? 1024 : 2 * count->max_records;
		count->records = count->records == NULL ? palloc(count->max_records * sizeof(Record)) :
			repalloc_huge(count->records, count->max_records * sizeof(Record));
	}
	count->records[count->nrecords++] = *record;
}

/* Count the batch, or keep its records. */
static void
flush_batch(Count *count)
{
	bool		kept[BATCH];

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	for (uint32 i = 0; i < count->nbatch; i++)
		kept[i] = is_kept(count, &count->batch[i]);
	LWLockRelease(&qlog_shared->state_lock);
	for (uint32 i = 0; i < count->nbatch; i++)
	{
		if (kept[i] && count->only_file == 0)
			sum_up(count, &count->batch[i]);
		else if (kept[i])
			gather(count, &count->batch[i]);
	}
	count->nbatch = 0;
}

/* Walk over the files, or over the one that is asked for. */
static QcStatus
walk_records(Count *count, QcReadCache *cache, QcError *err)
{
	QcReadWalk	walk = {.log = count->log, .file = count->only_file};
	QcLocation	location;
	uint64_t	partition;
	QcStatus	status;

	while ((status = qc_read_walk(cache, &walk, &partition, &location, err)) == QC_OK &&
		   (count->only_file == 0 || location.file == count->only_file) && !qlog_worker_shutdown())
	{
		count->batch[count->nbatch++] = (Record)
		{
			partition, location.file, location.first, location.count, location.size, walk.created_at
		};
		if (count->nbatch < BATCH)
			continue;
		flush_batch(count);
		qlog_worker_interrupts();
	}
	flush_batch(count);
	return status == QC_END ? QC_OK : status;
}

static int
compare_times(const void *a, const void *b)
{
	const Record *left = a;
	const Record *right = b;

	return (left->created_at > right->created_at) - (left->created_at < right->created_at);
}

/* Find the time before which messages are too many, and what stays. */
static QcStatus
find_cut(Count *count, QcReadCache *cache, int64 *before, QcError *err)
{
	uint64		excess = count->total - (count->limit - count->limit / QC_RETAIN_SLACK);
	uint64		older = 0;
	uint32		n = 0;
	uint64		r = 0;
	QcStatus	status;

	while (older + count->files[n].bytes < excess && n + 1 < count->nfiles)
	{
		count->removed += count->files[n].messages;
		older += count->files[n++].bytes;
	}
	count->only_file = count->files[n].file;
	status = walk_records(count, cache, err);
	if (status != QC_OK)
		return status;
	qsort(count->records, count->nrecords, sizeof(Record), compare_times);
	count->total -= older;
	while (r < count->nrecords && older < excess)
		older += count->records[r++].size;
	if (r == 0)
		return QC_OK;

	/* What was pushed at the same time goes with what stays: rather too little than too much. */
	*before = r == count->nrecords ? count->records[r - 1].created_at + 1 :
		count->records[r].created_at;
	for (r = 0; r < count->nrecords && count->records[r].created_at < *before; r++)
	{
		count->removed += count->records[r].count;
		count->total -= count->records[r].size;
	}
	return QC_OK;
}

static QcStatus
count_and_cut(Count *count, int64 *before, QcError *err)
{
	QcReadCache cache;
	QcStatus	status;

	qlog_fetch_cache(&cache);
	status = walk_records(count, &cache, err);
	if (status == QC_OK && count->total > count->limit && !qlog_worker_shutdown())
		status = find_cut(count, &cache, before, err);
	qc_read_end(&cache);
	return status;
}

static void
tell(const Count *count, int64 before)
{
	QcQueue    *queue;

	qlog_lock_state();
	queue = qc_queue_by_id(qlog_state, count->queue);
	if (queue != NULL && queue->state == QC_QUEUE_LIVE)
		qc_retain_bytes(qlog_state, queue, count->total, count->removed, before);
	qlog_unlock_state();
}

bool
qlog_retention_bytes(QlogWorker *worker, uint64 queue)
{
	static MemoryContext context = NULL;
	MemoryContext caller;
	Count	   *count;
	int64		before = 0;
	uint64		seq;
	QcError		err;
	bool		cut = false;

	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "qlog retention", ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(context);
	count = palloc0(sizeof(Count));
	count->queue = queue;
	seq = qlog_newest_seq();
	qc_error_clear(&err);
	if (look_up(count))
	{
		if (qlog_write_noerror(seq, &err) && count_and_cut(count, &before, &err) == QC_OK)
			cut = before > 0;
		else if (!qlog_worker_shutdown())
			qlog_worker_error(worker, &err, "could not count what a queue keeps");
	}
	/* A count that was cut short says nothing. */
	cut = cut && !qlog_worker_shutdown();
	if (err.code == QC_OK && count->log != 0 && !qlog_worker_shutdown())
		tell(count, before);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(context);
	return cut;
}
