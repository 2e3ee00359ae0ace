/*
 * qc_look.c
 *		Looking at a log file (contract in qc_look.h).
 */
#include "qc_look.h"

#include <stdlib.h>
#include <string.h>

#include "qc_hashes.h"
#include "qc_read_int.h"

#define JUDGE_STEPS		1000	/* under one hold of the state lock: some ten microseconds */
#define HASHES_MAX		256		/* dedup hashes asked for at a time */

void
qc_look_init(QcLook *look, QcState *st, QcReadCache *cache, const QcStateLock *lock)
{
	memset(look, 0, sizeof(*look));
	look->st = st;
	look->cache = cache;
	look->lock = lock;
}

void
qc_look_end(QcLook *look)
{
	free(look->answers);
	look->answers = NULL;
	look->answers_cap = 0;
}

const char *
qc_live_name(QcLive live)
{
	static const char *const names[QC_LIVE_COUNT] = {
		[QC_LIVE_ASK] = "dedup ids",
		[QC_LIVE_DEDUP] = "dedup ids",
		[QC_LIVE_MESSAGE] = "messages",
		[QC_LIVE_HELD] = "leases",
		[QC_LIVE_DELAYED] = "delayed messages",
		[QC_LIVE_DEAD_LETTER] = "dead letters",
		[QC_LIVE_DAMAGED] = "damaged queue",
		[QC_LIVE_UNKNOWN] = "unknown records"
	};

	return names[live];
}

/* The whole index, loaded anew, so that what was checked before says nothing. */
static QcStatus
load_index(QcLook *look, QcError *err)
{
	QcReadCache *cache = look->cache;
	QcReadIndex *index;
	char		path[QC_PATH_MAX];
	QcStatus	status;

	qc_read_forget(cache, look->log, look->file);
	index = qc_read_slot(cache, look->log, look->file);
	index->used = ++cache->clock;
	cache->lacking_file = 0;
	status = qc_files_size(cache->files, look->log, look->file, false, &look->size, err);
	if (status == QC_OK)
		status = qc_read_refresh(cache, index, look->log, look->file, err);
	if (status != QC_OK)
		return status;
	look->index = index;
	look->checked = cache->lacking_file == 0;
	look->length = index->length;
	cache->lacking_file = 0;
	if (index->bad_position == QC_NO_BAD_PLACE)
		return QC_OK;
	qc_path_file(path, cache->files->layout, look->log, look->file, "qlog");
	return qc_error_at(err, QC_DAMAGED, path, index->bad_position,
					   "records cannot be followed from here on");
}

static const uint8_t *
entry_at(const QcLook *look, uint32_t i)
{
	return look->index->bytes + QC_IDX_HEADER_SIZE + (size_t) i * QC_IDX_ENTRY_SIZE;
}

/* Is one of a record's dedup ids within the window? */
static bool
dedup_needed(QcLook *look, uint64_t partition, const uint8_t *hashes, size_t stride, uint32_t n,
			 int64_t now)
{
	bool		needed;

	look->lock->share(look->lock->context);
	needed = qc_live_dedup(look->st, partition, hashes, stride, n, now);
	look->lock->unlock(look->lock->context);
	return needed;
}

/* Ask about the dedup ids of one record, which is read for it. */
static QcStatus
ask_record(QcLook *look, uint32_t i, int64_t now, QcError *err)
{
	uint8_t		hashes[HASHES_MAX * QC_HASH_SIZE];
	QcIdxEntry	entry;
	bool		needed = false;

	qc_idx_entry_decode(entry_at(look, i), &entry);
	for (uint32_t at = 0; at < entry.count && !needed; at += HASHES_MAX)
	{
		uint32_t	n = entry.count - at < HASHES_MAX ? entry.count - at : HASHES_MAX;
		QcStatus	status = qc_files_read(look->cache->files, look->log, look->file,
										   entry.position + QC_RECORD_HEADER_SIZE + (uint64_t) at * QC_HASH_SIZE, hashes,
										   (size_t) n * QC_HASH_SIZE, err);

		if (status != QC_OK)
			return status;
		needed = dedup_needed(look, entry.partition, hashes, QC_HASH_SIZE, n, now);
	}
	look->answers[i] = needed ? QC_LIVE_DEDUP : QC_LIVE_NOT;
	return QC_OK;
}

/* The entry of a record of the .qhsh, if it is one of those to be asked about. */
static bool
find_asked(const QcLook *look, const QcHashesRecord *record, uint32_t *i)
{
	QcIdxEntry	entry;

	*i = qc_cells_begun(entry_at(look, 0), QC_IDX_ENTRY_SIZE, look->index->count, record->partition, record->first);
	if (*i == 0 || look->answers[--*i] != QC_LIVE_ASK)
		return false;
	qc_idx_entry_decode(entry_at(look, *i), &entry);
	return entry.partition == record->partition && entry.first == record->first &&
		entry.count == record->count;
}

/* Answer with the .qhsh: what it does not list has no dedup ids.	 QC_NOTFOUND: there is none to answer with. */
static QcStatus
ask_hashes(QcLook *look, int64_t now, QcError *err)
{
	uint8_t    *bytes;
	size_t		len;
	size_t		at = 0;
	QcHashesRecord record;
	QcStatus	status = qc_hashes_read(look->cache->files, look->log, look->file, &bytes, &len, err);

	if (status != QC_OK)
		return status == QC_DAMAGED ? QC_NOTFOUND : status;
	while (qc_hashes_next(bytes, len, &at, &record))
	{
		uint32_t	i;
		bool		needed = false;

		if (!find_asked(look, &record, &i))
			continue;
		for (uint32_t k = 0; k < record.count && !needed; k += HASHES_MAX)
			needed = dedup_needed(look, record.partition, record.cells + (size_t) k * QC_HASHES_CELL,
								  QC_HASHES_CELL, record.count - k < HASHES_MAX ? record.count - k : HASHES_MAX, now);
		look->answers[i] = needed ? QC_LIVE_DEDUP : QC_LIVE_NOT;
	}
	free(bytes);
	for (uint32_t i = 0; i < look->index->count; i++)
		if (look->answers[i] == QC_LIVE_ASK)
			look->answers[i] = QC_LIVE_NOT;
	return QC_OK;
}

/* Have all that is to be asked about answered. */
static QcStatus
ask_dedup(QcLook *look, int64_t now, QcError *err)
{
	QcStatus	status = QC_OK;

	if (memchr(look->answers, QC_LIVE_ASK, look->index->count) == NULL)
		return QC_OK;
	status = ask_hashes(look, now, err);
	if (status != QC_NOTFOUND)
		return status;
	status = QC_OK;
	for (uint32_t i = 0; i < look->index->count && status == QC_OK; i++)
		if (look->answers[i] == QC_LIVE_ASK)
			status = ask_record(look, i, now, err);
	return status;
}

static void
count(QcLook *look, uint32_t i)
{
	QcIdxEntry	entry;

	look->records++;
	if (look->answers[i] == QC_LIVE_NOT)
		return;
	qc_idx_entry_decode(entry_at(look, i), &entry);
	if (look->live_records++ == 0)
		look->held = (QcLive) look->answers[i];
	look->live_bytes += (uint64_t) entry.len + 4;
}

static QcStatus
judge_all(QcLook *look, int64_t now, QcError *err)
{
	uint32_t	n = look->index->count;
	QcStatus	status = QC_OK;

	for (uint32_t at = 0; at < n;)
	{
		look->lock->share(look->lock->context);
		at += qc_live_judge(look->st, entry_at(look, at), n - at, now, look->answers + at, JUDGE_STEPS);
		look->lock->unlock(look->lock->context);
	}
	if (n > 0)
		status = ask_dedup(look, now, err);
	for (uint32_t i = 0; i < n && status == QC_OK; i++)
		count(look, i);
	return status;
}

QcStatus
qc_look_at(QcLook *look, uint64_t log, uint64_t file, int64_t now, QcError *err)
{
	QcStatus	status;

	look->log = log;
	look->file = file;
	look->records = look->live_records = 0;
	look->live_bytes = 0;
	look->held = QC_LIVE_NOT;
	status = load_index(look, err);
	if (status != QC_OK)
		return status;
	if (look->index->count > look->answers_cap)
	{
		free(look->answers);
		look->answers = malloc(look->index->count);
		look->answers_cap = look->answers == NULL ? 0 : look->index->count;
		if (look->answers == NULL)
			return qc_error_set(err, QC_FULL, "out of memory");
	}
	return judge_all(look, now, err);
}
