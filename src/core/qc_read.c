/*
 * qc_read.c
 *		From a record's place to a decoded message, with the last record kept (contracts in qc_read.h).
 *
 * A record is read whole, its checksum and what the index promised are checked, and all of its frames are walked once,
 * so that a frame that does not fit is damage of the record and not of one message.  What the cache holds is valid or
 * nothing: it is emptied before a buffer is filled.  Finding the place is in qc_read_locate.c.
 */
#include "qc_read.h"

#include <assert.h>
#include <string.h>

void
qc_read_init(QcReadCache *cache, QcFiles *files, QcAlloc alloc,
			 void (*release) (void *context, void *buffer), void *alloc_context)
{
	memset(cache, 0, sizeof(*cache));
	cache->files = files;
	cache->alloc = alloc;
	cache->release = release;
	cache->alloc_context = alloc_context;
}

static void
give_back(QcReadCache *cache, void *buffer)
{
	if (buffer != NULL)
		cache->release(cache->alloc_context, buffer);
}

void
qc_read_end(QcReadCache *cache)
{
	give_back(cache, cache->record);
	give_back(cache, cache->raw);
	give_back(cache, cache->hop);
	give_back(cache, cache->file_ids);
	for (int i = 0; i < QC_READ_INDEXES; i++)
		give_back(cache, cache->indexes[i].bytes);
	qc_read_init(cache, cache->files, cache->alloc, cache->release, cache->alloc_context);
}

void
qc_read_forget(QcReadCache *cache, uint64_t log, uint64_t file)
{
	if (cache->log == log && (file == 0 || cache->file == file))
		cache->file = 0;
	for (int i = 0; i < QC_READ_INDEXES; i++)
		if (cache->indexes[i].log == log && (file == 0 || cache->indexes[i].file == file))
			cache->indexes[i].file = 0;
}

/* Make room for at least size bytes; what was in the buffer is lost. */
static QcStatus
ensure(QcReadCache *cache, uint8_t **buffer, size_t *cap, size_t size, QcError *err)
{
	if (size <= *cap)
		return QC_OK;
	give_back(cache, *buffer);
	*cap = 0;
	*buffer = cache->alloc(cache->alloc_context, size);
	if (*buffer == NULL)
		return qc_error_set(err, QC_FULL, "out of memory");
	*cap = size;
	return QC_OK;
}

/* Name the record in an error that says only what is wrong with it; errors of I/O have their file. */
static QcStatus
locate(const QcReadCache *cache, const QcLocation *location, QcStatus status, QcError *err)
{
	char		path[QC_PATH_MAX];

	qc_path_file(path, cache->files->layout, location->log, location->file, "qlog");
	if (status == QC_SHORT)
		return qc_error_at(err, QC_DAMAGED, path, location->position,
						   "log file ends within the record");
	if (err != NULL && status == QC_DAMAGED)
		qc_error_locate(err, path, location->position);
	return status;
}

/* Read and check the record; its bytes are in cache->record. */
static QcStatus
read_record(QcReadCache *cache, const QcLocation *location, uint64_t partition, QcRecord *record,
			QcError *err)
{
	QcStatus	status = ensure(cache, &cache->record, &cache->record_cap, location->size, err);

	if (status != QC_OK)
		return status;
	status = qc_files_read(cache->files, location->log, location->file, location->position,
						   cache->record, location->size, err);
	if (status != QC_OK)
		return status;
	status = qc_record_decode(cache->record, location->size, record, err);
	if (status == QC_END)
		return qc_error_set(err, QC_DAMAGED, "no record stands here");
	if (status != QC_OK)
		return status;
	if ((record->kind != QC_KIND_MESSAGES && record->kind != QC_KIND_SOLO) ||
		(uint64_t) record->len + 4 != location->size || record->partition != partition ||
		record->first != location->first || record->count != location->count)
		return qc_error_set(err, QC_DAMAGED, "another record than the index promised stands here");
	return QC_OK;
}

/* Exactly record->count frames, and nothing behind them. */
static QcStatus
check_frames(const QcReadCache *cache, uint32_t count, QcError *err)
{
	QcReader	r;
	QcMessage	message;
	QcStatus	status = QC_OK;
	uint32_t	n = 0;

	qc_reader_init(&r, cache->raw, cache->raw_len);
	while ((status = qc_frame_get(&r, &message, err)) == QC_OK)
		n++;
	if (status != QC_END)
		return status;
	if (n != count)
		return qc_error_set(err, QC_DAMAGED, "record holds %u messages instead of %u", n, count);
	return QC_OK;
}

/* Load a record into the cache. */
static QcStatus
load(QcReadCache *cache, const QcLocation *location, uint64_t partition, QcError *err)
{
	QcRecord	record;
	size_t		raw_len = 0;
	QcStatus	status;

	cache->file = 0;
	status = read_record(cache, location, partition, &record, err);
	if (status == QC_OK)
		status = qc_record_raw_size(&record, &raw_len, err);
	if (status == QC_OK)
		status = ensure(cache, &cache->raw, &cache->raw_cap, raw_len, err);
	if (status == QC_OK)
		status = qc_record_unpack(&record, cache->raw, raw_len, err);
	if (status != QC_OK)
		return locate(cache, location, status, err);
	cache->raw_len = raw_len;
	status = check_frames(cache, record.count, err);
	if (status != QC_OK)
		return locate(cache, location, status, err);
	cache->log = location->log;
	cache->file = location->file;
	cache->position = location->position;
	cache->partition = partition;
	cache->first = record.first;
	cache->count = record.count;
	cache->created_at = record.created_at;
	cache->at = 0;
	qc_reader_init(&cache->frames, cache->raw, raw_len);
	return QC_OK;
}

QcStatus
qc_read_message(QcReadCache *cache, const QcLocation *location, uint64_t partition,
				uint64_t position, QcMessage *message, int64_t *created_at, QcError *err)
{
	QcStatus	status = QC_OK;
	uint32_t	wanted;

	assert(location->file != 0);
	if (position < location->first || position - location->first >= location->count)
		return qc_error_set(err, QC_INVALID, "record does not hold the position");
	if (cache->file != location->file || cache->log != location->log ||
		cache->position != location->position || cache->partition != partition ||
		cache->first != location->first || cache->count != location->count)
		status = load(cache, location, partition, err);
	if (status != QC_OK)
		return status;
	wanted = (uint32_t) (position - cache->first);
	if (wanted < cache->at)
	{
		qc_reader_init(&cache->frames, cache->raw, cache->raw_len);
		cache->at = 0;
	}
	while (status == QC_OK && cache->at <= wanted)
	{
		status = qc_frame_get(&cache->frames, message, err);
		cache->at++;
	}
	*created_at = cache->created_at;
	return status;
}
