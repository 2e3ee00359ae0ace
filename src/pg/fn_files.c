/*
 * fn_files.c
 *		qlog_files: the log files of the database's queues, and of the system log.
 *
 * What is needed of a file is asked as reclaim does it (core/qc_look.h): from its index, which is made from the headers of its
 * records when it has none.	For roles that monitor the server; the view's grants keep others out.
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "qlog_args.h"
#include "qlog_backup.h"
#include "qlog_commit.h"
#include "qlog_fetch.h"
#include "qlog_io.h"
#include "qlog_logfiles.h"
#include "qlog_shmem.h"

#include "../core/qc_look.h"
#include "../core/qc_record.h"

PG_FUNCTION_INFO_V1(qlog_files_view);

/* A log to list, and the queue it belongs to; the system log and shared ones belong to none. */
typedef struct Listed
{
	uint64		log;
	uint64		active;			/* file being written */
	char		queue[QLOG_NAME_MAX];
	uint16		queue_len;		/* 0 = no queue's own */
	int64		last_push;
} Listed;

/* The logs that stay, q0 first: [0, shards], with the last push of any queue in them.	 State lock. */
static void
list_staying(Listed *logs)
{
	for (uint64 id = 0; id <= qlog_state->shards; id++)
	{
		const QcLog *log = qc_log_by_id(qlog_state, id);

		logs[id] = (Listed) {.log = id, .active = log == NULL ? 0 : log->file};
	}
	for (const QcQueue *queue = QC_AT(qlog_state, QcQueue, qlog_state->queues.head); queue != NULL;
		 queue = QC_AT(qlog_state, QcQueue, queue->all.next))
		if (qc_log_stays(qlog_state->shards, queue->log_id))
			logs[queue->log_id].last_push = Max(logs[queue->log_id].last_push, queue->last_push);
}

/* The logs that stay, and those of this database's queues. */
static Listed *
collect(uint32 *n)
{
	Listed	   *logs = NULL;
	uint32		max = 0;

	for (;;)
	{
		uint32		need = qlog_state->shards + 1;

		LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
		if (need < max)
			list_staying(logs);
		for (QcQueue *queue = QC_AT(qlog_state, QcQueue, qlog_state->queues.head); queue != NULL;
			 queue = QC_AT(qlog_state, QcQueue, queue->all.next))
		{
			const QcLog *log = QC_AT(qlog_state, QcLog, queue->log);

			if (queue->database != MyDatabaseId || log == NULL ||
				qc_log_stays(qlog_state->shards, log->id) ||
				(queue->state != QC_QUEUE_LIVE && queue->state != QC_QUEUE_DROPPING))
				continue;
			if (need < max)
			{
				logs[need] = (Listed)
				{
					.log = log->id, .active = log->file,
					.queue_len = queue->name_len, .last_push = queue->last_push
				};
				memcpy(logs[need].queue, qc_name_at(qlog_state, queue->name), queue->name_len);
			}
			need++;
		}
		LWLockRelease(&qlog_shared->state_lock);
		if (need <= max)
		{
			*n = need;
			return logs;
		}
		max = need + 64;
		logs = logs == NULL ? palloc(max * sizeof(Listed)) : repalloc(logs, max * sizeof(Listed));
	}
}

/* Size of a file and its first len bytes (zeros where it is shorter); false when it is not there. */
static bool
read_head(const char *path, void *head, size_t len, uint64 *size)
{
	const QcIo *io = qlog_io();
	QcHandle	handle;
	size_t		done = 0;
	int			rc;

	memset(head, 0, len);
	if (io->open(io->context, path, 0, &handle) != 0)
		return false;
	rc = io->size(io->context, handle, size);
	if (rc == 0)
		rc = io->read(io->context, handle, head, len, 0, &done);
	io->close(io->context, handle);
	return rc == 0;
}

/* What is known of a file. */
typedef struct FileRow
{
	bool		found;
	bool		looked;			/* live_bytes and held are known */
	uint64		live_bytes;
	QcLive		held;
	char		path[QC_PATH_MAX];
	uint64		size;
	int64		oldest;			/* time of its first record, 0 = none */
	int64		records;		/* message records, -1 = not counted */
} FileRow;

static void
look_at_file(uint64 log, uint64 file, FileRow *row)
{
	uint8		head[QC_FILE_HEADER_SIZE + QC_RECORD_HEADER_SIZE];
	uint8		index[QC_IDX_HEADER_SIZE];
	char		path[QC_PATH_MAX];
	uint64		index_size;
	uint32		count;
	QcError		err;

	qc_path_file(row->path, qlog_files()->layout, log, file, "qlog");
	row->found = read_head(row->path, head, sizeof(head), &row->size);
	row->oldest = qc_record_created_at(head + QC_FILE_HEADER_SIZE);
	row->records = -1;
	qc_path_file(path, qlog_files()->layout, log, file, "qidx");
	if (read_head(path, index, sizeof(index), &index_size) &&
		qc_idx_count(index, file, &count, &err) == QC_OK)
		row->records = count;
}

/* ---- what is needed ---- */

static void
share(void *context)
{
	(void) context;
	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
}

static void
unlock(void *context)
{
	(void) context;
	LWLockRelease(&qlog_shared->state_lock);
}

static const QcStateLock state_lock = {NULL, share, share, unlock};

/* Buffers of a look are given back when the query ends, however it does. */
static void
end_look(void *arg)
{
	QcLook	   *look = arg;

	qc_look_end(look);
	qc_read_end(look->cache);
}

static QcLook *
make_look(void)
{
	QcReadCache *cache = palloc0(sizeof(QcReadCache));
	QcLook	   *look = palloc0(sizeof(QcLook));
	MemoryContextCallback *callback = palloc0(sizeof(MemoryContextCallback));

	qlog_fetch_cache(cache);
	qc_look_init(look, qlog_state, cache, &state_lock);
	callback->func = end_look;
	callback->arg = look;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
	return look;
}

/* Ask what is needed of a file that exists; a file that cannot be followed tells nothing. */
static void
look_through(QcLook *look, const Listed *listed, uint64 file, FileRow *row)
{
	QcError		err;

	row->looked = false;
	if (file > listed->active)
		return;
	qc_error_clear(&err);
	row->looked = qc_look_at(look, listed->log, file, qlog_now(), &err) == QC_OK;
	if (row->looked)
	{
		row->live_bytes = look->live_bytes;
		row->held = look->held;
		row->records = look->records;
	}
}

/* Why the file is still there. */
static const char *
held_by(const Listed *listed, uint64 file, const FileRow *row)
{
	if (file >= listed->active)
		return "active";
	if (!row->looked)
		return "damage";
	if (row->held != QC_LIVE_NOT)
		return qc_live_name(row->held);
	return qlog_backup_runs() ? "base backup" : "reclaim";
}

static const char *
state_of(const Listed *listed, uint64 file)
{
	if (file == listed->active)
		return "active";
	return file < listed->active ? "closed" : "ahead";
}

static void
instant(Datum *value, bool *null, int64 unix_us)
{
	*null = unix_us == 0;
	*value = TimestampTzGetDatum(qlog_timestamptz(unix_us));
}

/* newest: no record of the file is younger; 0 = not known. */
static void
put_file(ReturnSetInfo *result, const Listed *listed, uint64 file, const FileRow *row, int64 newest)
{
	Datum		values[9];
	bool		nulls[9] = {false};

	nulls[0] = listed->queue_len == 0;
	values[0] = PointerGetDatum(cstring_to_text_with_len(listed->queue, listed->queue_len));
	values[1] = CStringGetTextDatum(row->path);
	values[2] = Int64GetDatum((int64) row->size);
	nulls[3] = !row->looked;
	values[3] = Int64GetDatum((int64) row->live_bytes);
	nulls[4] = row->records < 0;
	values[4] = Int64GetDatum(row->records);
	instant(&values[5], &nulls[5], row->oldest);
	instant(&values[6], &nulls[6], newest);
	values[7] = CStringGetTextDatum(state_of(listed, file));
	values[8] = CStringGetTextDatum(held_by(listed, file, row));
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* The files of one log.  A file ends where the next one begins, the active one with the queue's last push. */
static void
put_log(ReturnSetInfo *result, QcLook *look, const Listed *listed)
{
	uint32		n;
	uint64	   *files = qlog_log_files(listed->log, &n);
	FileRow		row = {0};
	FileRow		next = {0};

	for (uint32 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (i == 0)
			look_at_file(listed->log, files[0], &row);
		next.oldest = 0;
		if (i + 1 < n)
			look_at_file(listed->log, files[i + 1], &next);
		if (row.found)
			look_through(look, listed, files[i], &row);
		if (row.found)
			put_file(result, listed, files[i], &row,
					 files[i] == listed->active ? listed->last_push : next.oldest);
		row = next;
	}
	if (files != NULL)
		pfree(files);
}

Datum
qlog_files_view(PG_FUNCTION_ARGS)
{
	QcLook	   *look;
	Listed	   *logs;
	uint32		n;

	qlog_enter_read("qlog_files");
	InitMaterializedSRF(fcinfo, 0);

	/* What is in the buffer belongs to the files. */
	qlog_write(qlog_newest_seq());
	look = make_look();
	logs = collect(&n);
	for (uint32 i = 0; i < n; i++)
		put_log((ReturnSetInfo *) fcinfo->resultinfo, look, &logs[i]);
	return (Datum) 0;
}
