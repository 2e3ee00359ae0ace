/*
 * qlog_fetch.c
 *		Reading messages through the backend's cache of the last record.
 */
#include "qlog_fetch.h"

#include "utils/memutils.h"
#include "utils/uuid.h"

#include "qlog_gone.h"
#include "qlog_guc.h"
#include "qlog_report.h"
#include "qlog_row.h"
#include "qlog_shmem.h"

#include "../core/qc_live.h"

/* A record that was searched in the files: the next message is mostly in it too. */
typedef struct Searched
{
	uint64		partition;
	QcLocation	location;
} Searched;

static QcReadCache cache;
static bool cache_ready;
static Searched searched;

static void *
cache_alloc(void *context, size_t size)
{
	(void) context;
	return MemoryContextAllocExtended(TopMemoryContext, size, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
}

static void
cache_release(void *context, void *buffer)
{
	(void) context;
	pfree(buffer);
}

void
qlog_spot_note(QcPartition *partition, uint64 position, uint32 attempt, QcRef *hint, QlogSpot *spot)
{
	spot->partition = partition->id;
	spot->position = position;
	spot->attempt = attempt;
	spot->location.file = 0;
	spot->location.last_file = 0;
	spot->location.first_file = 0;
	spot->location.log = QC_AT(qlog_state, QcQueue, partition->queue)->log_id;
	if (hint != NULL)
		(void) qc_index_find(qlog_state, partition, position, hint, &spot->location);
}

void
qlog_fetch_cache(QcReadCache *made)
{
	qc_read_init(made, qlog_files(), cache_alloc, cache_release, NULL);
}

static void
prepare_cache(void)
{
	if (!cache_ready)
		qlog_fetch_cache(&cache);
	cache_ready = true;
	qlog_gone_follow();
}

void
qlog_fetch_forget(uint64 log, uint64 file)
{
	if (cache_ready)
		qc_read_forget(&cache, log, file);
	if (searched.location.log == log && (file == 0 || searched.location.file == file))
		searched.location.file = 0;
}

void
qlog_fetch_forget_all(void)
{
	if (cache_ready)
		qc_read_end(&cache);
	searched.location.file = 0;
}

/* A closed file was found without a good .qidx: have it made.	While another request stands, the next search tries again. */
static void
ask_for_index(void)
{
	QcLog	   *log;
	bool		closed;
	bool		asked;

	if (cache.lacking_file == 0)
		return;
	qlog_lock_state();
	log = qc_log_by_id(qlog_state, cache.lacking_log);
	closed = log != NULL && cache.lacking_file < log->file;
	asked = closed && qlog_shared->lacking_file == 0;
	if (asked)
	{
		qlog_shared->lacking_log = cache.lacking_log;
		qlog_shared->lacking_file = cache.lacking_file;
		qlog_shared->lacking_dirx = cache.lacking_dirx;
	}
	qlog_unlock_state();
	if (asked || !closed)
		cache.lacking_file = 0;
	if (asked && pg_atomic_exchange_u32(&qlog_shared->resting, 0) != 0)
		qlog_worker_wake(QLOG_WORKER_CHECKPOINTER);
}

/* Search the files of the log for a record that the memory index does not hold. */
static QcStatus
search(const QlogSpot *spot, const QcLocation **location, QcError *err)
{
	QcStatus	status;
	uint64		from = spot->location.first_file;

	*location = &searched.location;
	if (searched.location.file != 0 && searched.partition == spot->partition &&
		spot->position >= searched.location.first)
	{
		if (spot->position - searched.location.first < searched.location.count)
			return QC_OK;

		/*
		 * Messages are asked for in ascending order: what follows the last one found cannot lie in
		 * an older file.
		 */
		from = searched.location.file;
	}
	searched.location.file = 0;
	status = qc_read_locate(&cache, spot->location.log, spot->partition, spot->position, from,
							spot->location.last_file, &searched.location, err);
	ask_for_index();
	searched.partition = spot->partition;
	if (status != QC_OK)
		searched.location.file = 0;
	return status;
}

static QcStatus
read_message(const QlogSpot *spot, const QcLocation *location, QcMessage *message, int64 *created_at,
			 QcError *err)
{
	QcStatus	status = QC_OK;

	qc_error_clear(err);
	if (location == NULL)
		status = search(spot, &location, err);
	if (status == QC_OK)
		status = qc_read_message(&cache, location, spot->partition, spot->position, message,
								 created_at, err);
	return status;
}

/* May what went wrong come from a file that was removed or replaced since the place was noted? */
static bool
may_be_moved(QcStatus status)
{
	return status == QC_NOTFOUND || status == QC_MISSING || status == QC_DAMAGED ||
		status == QC_SHORT || status == QC_VERSION;
}

/* Does the state still say that the message is there? */
static bool
is_there(const QlogSpot *spot)
{
	bool		there;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	there = qc_live_position(qlog_state, spot->partition, spot->position);
	LWLockRelease(&qlog_shared->state_lock);
	return there;
}

/*
 * A place that was noted may be stale: files are rewritten and removed meanwhile.  So what is not found there is looked for
 * again, with nothing of the log remembered, as long as files change; only then it is damage.
 */
QcStatus
qlog_fetch_try(const QlogSpot *spot, QcMessage *message, int64 *created_at, QcError *err)
{
	const QcLocation *location = spot->location.file == 0 ? NULL : &spot->location;
	bool		again = false;

	for (;;)
	{
		uint64		count = qlog_gone_count();
		QcStatus	status;

		prepare_cache();
		status = read_message(spot, location, message, created_at, err);
		if (!may_be_moved(status))
			return status;
		if (!is_there(spot))
			return qc_error_set(err, QC_NOTFOUND, "the message is gone");
		if (again && count == qlog_gone_count())
		{
			/* The state says that it is there. */
			return status == QC_NOTFOUND ? (err->code = QC_DAMAGED) : status;
		}
		again = true;
		location = NULL;
		qc_files_forget(qlog_files(), spot->location.log, 0);
		qlog_fetch_forget(spot->location.log, 0);
	}
}

bool
qlog_fetch_lost(QcStatus status)
{
	return status == QC_DAMAGED || status == QC_MISSING || status == QC_VERSION;
}

QcStatus
qlog_fetch_movable(const QcMessage *message, QcError *err)
{
	uint64		size = qc_record_size(QC_KIND_MESSAGES, 1, qc_frame_size(message));

	if (size <= qlog_segment_bytes() / 2)
		return QC_OK;
	return qc_error_set(err, QC_LIMIT,
						"message needs a record of %llu bytes, more than half a log file of %d MB (qlog.segment_size)",
						(unsigned long long) size, qlog_segment_size);
}

/* false = it is gone. */
static bool
fetch(const QlogSpot *spot, QcMessage *message, int64 *created_at)
{
	QcError		err;
	QcStatus	status = qlog_fetch_try(spot, message, created_at, &err);

	if (status != QC_OK && status != QC_NOTFOUND)
		qlog_report(ERROR, &err, "could not read a message");
	return status == QC_OK;
}

void
qlog_fetch(const QlogSpot *spot, QcMessage *message, int64 *created_at)
{
	if (!fetch(spot, message, created_at))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("a message was removed while it was read"),
				 errhint("Run the transaction again.")));
}

bool
qlog_fetch_if_there(const QlogSpot *spot, QcMessage *message, int64 *created_at)
{
	return fetch(spot, message, created_at);
}

bool
qlog_fetch_walk(QcReadWalk *walk, uint64 *partition, QcLocation *location)
{
	QcStatus	status;
	QcError		err;

	prepare_cache();
	qc_error_clear(&err);
	status = qc_read_walk(&cache, walk, partition, location, &err);
	ask_for_index();
	if (status != QC_OK && status != QC_END)
		qlog_report(ERROR, &err, "could not search a log");
	return status == QC_OK;
}

bool
qlog_fetch_bytes(const QcLocation *location, uint64 at, void *bytes, Size size)
{
	QcError		err;
	QcStatus	status;

	qc_error_clear(&err);
	status = qc_files_read(qlog_files(), location->log, location->file, location->position + at,
						   bytes, size, &err);
	if (status != QC_OK && status != QC_MISSING && status != QC_SHORT)
		qlog_report(ERROR, &err, "could not read a message");
	return status == QC_OK;
}

/* The header of the record that holds the message; false when another one, or none, stands there. */
static bool
read_header(const QlogSpot *spot, const QcLocation *location, uint8 *header)
{
	QcError		err;

	return (location != NULL || search(spot, &location, &err) == QC_OK) &&
		qc_files_read(qlog_files(), location->log, location->file, location->position, header,
					  QC_RECORD_HEADER_SIZE, &err) == QC_OK &&
		qc_record_is_of(header, spot->partition, spot->position);
}

bool
qlog_fetch_time(const QlogSpot *spot, int64 *created_at)
{
	uint8		header[QC_RECORD_HEADER_SIZE];

	prepare_cache();
	if (!read_header(spot, spot->location.file == 0 ? NULL : &spot->location, header))
	{
		/* Its file may have been rewritten since the place was noted. */
		qc_files_forget(qlog_files(), spot->location.log, 0);
		qlog_fetch_forget(spot->location.log, 0);
		if (!read_header(spot, NULL, header))
			return false;
	}
	*created_at = qc_record_created_at(header);
	return *created_at != 0;
}

void
qlog_refuse_damaged(const QlogName queue, uint64 log, uint64 file, uint64 position)
{
	QcError		err;
	char		path[QC_PATH_MAX];

	qc_path_file(path, qlog_files()->layout, log, file, "qlog");
	(void) qc_error_at(&err, QC_DAMAGED, path, position, "queue \"%.*s\" is out of service",
					   QLOG_NAME(queue));
	qlog_report(ERROR, &err, "queue is damaged");
	pg_unreachable();
}

void
qlog_message_row(const QlogSpot *spot, const QcMessage *message, int64 created_at,
				 QlogName partition, Datum *values, bool *nulls)
{
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));
	bool		binary = (message->flags & QC_FRAME_BINARY) != 0;
	int			payload = binary ? QLOG_COLUMN_PAYLOAD_BYTES : QLOG_COLUMN_PAYLOAD;

	memcpy(id->data, message->id, UUID_LEN);
	memset(nulls, 0, QLOG_COLUMN_COUNT * sizeof(bool));
	nulls[QLOG_COLUMN_PAYLOAD] = binary;
	nulls[QLOG_COLUMN_PAYLOAD_BYTES] = !binary;
	nulls[QLOG_COLUMN_HEADERS] = (message->flags & QC_FRAME_HEADERS) == 0;
	nulls[QLOG_COLUMN_DEDUP_ID] = message->dedup_len == 0;
	values[QLOG_COLUMN_MESSAGE_ID] = UUIDPGetDatum(id);
	values[QLOG_COLUMN_PARTITION] = qlog_text_datum(partition.text, partition.len);
	values[QLOG_COLUMN_POSITION] = Int64GetDatum((int64) spot->position);
	values[QLOG_COLUMN_ATTEMPT] = Int32GetDatum((int32) spot->attempt);
	values[payload] = qlog_text_datum(message->data, message->data_len);
	if (!nulls[QLOG_COLUMN_HEADERS])
		values[QLOG_COLUMN_HEADERS] = qlog_text_datum(message->headers, message->headers_len);
	if (!nulls[QLOG_COLUMN_DEDUP_ID])
		values[QLOG_COLUMN_DEDUP_ID] = qlog_text_datum(message->dedup_id, message->dedup_len);
	values[QLOG_COLUMN_PUSHED_AT] = TimestampTzGetDatum(qlog_timestamptz(created_at));
}
