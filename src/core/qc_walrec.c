/*
 * qc_walrec.c
 *		Bodies of the resource manager's WAL records, and records of the stash file.
 *
 * Works on memory only and checks structure, not meaning: whose directory, epoch and seq a
 * record names is judged by recovery.  Called by the joint commit path, redo, recovery and tools.
 */
#include "qc_walrec.h"

/* the checksum of a stash record covers two places, which needs the streaming state by value */
#define XXH_STATIC_LINKING_ONLY
#include <assert.h>
#include <xxhash.h>

#include "qc_entry.h"
#include "qc_record.h"

static bool
is_one_flag(uint16_t flags)
{
	return flags == QC_ENTRY_CARRIED || flags == QC_ENTRY_REFERENCED;
}

void
qc_wal_entry_put(QcWriter *w, const QcWalEntry *entry)
{
	assert(is_one_flag(entry->flags));
	qc_put_u16(w, QC_WALREC_VERSION);
	qc_put_u16(w, entry->flags);
	qc_put_u64(w, entry->directory);
	qc_put_u64(w, entry->epoch);
	qc_put_u64(w, entry->seq);
	qc_put_u64(w, entry->xid);
	if (entry->flags == QC_ENTRY_CARRIED)
		qc_put_u32(w, entry->nparts);
	else
	{
		qc_put_u64(w, entry->digest);
		qc_put_u32(w, entry->entry_len);
	}
}

void
qc_wal_part_put_head(QcWriter *w, uint64_t log, uint32_t record_size)
{
	qc_put_u64(w, log);
	qc_put_u32(w, record_size);
}

void
qc_wal_mark_put(QcWriter *w, QcWalKind kind, const QcWalMark *mark)
{
	assert(kind == QC_WAL_BARRIER || kind == QC_WAL_EPOCH);
	qc_put_u16(w, QC_WALREC_VERSION);
	qc_put_u16(w, 0);
	qc_put_u64(w, mark->directory);
	if (kind == QC_WAL_EPOCH)
		qc_put_u64(w, mark->old_epoch);
	qc_put_u64(w, mark->epoch);
	qc_put_u64(w, mark->seq);
}

static QcStatus
check_version(const QcReader *r, uint16_t version, QcError *err)
{
	if (r->bad)
		return qc_error_set(err, QC_DAMAGED, "WAL record is too short");
	if (version != QC_WALREC_VERSION)
		return qc_error_set(err, QC_VERSION, "WAL record has version %u, this program knows %u",
							version, QC_WALREC_VERSION);
	return QC_OK;
}

QcStatus
qc_wal_part_get(QcReader *parts, uint64_t *log, const uint8_t **record, uint32_t *size,
				QcError *err)
{
	uint64_t	record_size;

	if (!parts->bad && qc_reader_left(parts) == 0)
		return QC_END;
	*log = qc_get_u64(parts);
	*size = qc_get_u32(parts);
	*record = qc_get_bytes(parts, *size);
	if (parts->bad)
		return qc_error_set(err, QC_DAMAGED, "part of a carried entry exceeds the WAL record");
	if (qc_record_peek(*record, *size, &record_size, NULL) != QC_OK || record_size != *size)
		return qc_error_set(err, QC_DAMAGED, "part of a carried entry is not one record");
	return QC_OK;
}

/* Exactly nparts parts and nothing behind them. */
static QcStatus
check_parts(const QcWalEntry *entry, QcError *err)
{
	QcReader	parts = entry->parts;
	uint64_t	log;
	const uint8_t *record;
	uint32_t	size;
	uint32_t	seen = 0;
	QcStatus	status;

	while ((status = qc_wal_part_get(&parts, &log, &record, &size, err)) == QC_OK)
		seen++;
	if (status != QC_END)
		return status;
	if (seen == 0 || seen != entry->nparts)
		return qc_error_set(err, QC_DAMAGED, "carried entry has %u parts instead of %u", seen,
							entry->nparts);
	return QC_OK;
}

QcStatus
qc_wal_entry_decode(const uint8_t *body, size_t len, QcWalEntry *entry, QcError *err)
{
	QcReader	r;
	uint16_t	version;
	QcStatus	status;

	memset(entry, 0, sizeof(*entry));
	qc_reader_init(&r, body, len);
	version = qc_get_u16(&r);
	entry->flags = qc_get_u16(&r);
	status = check_version(&r, version, err);
	if (status != QC_OK)
		return status;
	if (!is_one_flag(entry->flags))
		return qc_error_set(err, QC_VERSION, "WAL record has unknown flags 0x%04x", entry->flags);
	entry->directory = qc_get_u64(&r);
	entry->epoch = qc_get_u64(&r);
	entry->seq = qc_get_u64(&r);
	entry->xid = qc_get_u64(&r);
	if (entry->flags == QC_ENTRY_REFERENCED)
	{
		entry->digest = qc_get_u64(&r);
		entry->entry_len = qc_get_u32(&r);
	}
	else
		entry->nparts = qc_get_u32(&r);
	if (r.bad)
		return qc_error_set(err, QC_DAMAGED, "WAL record is too short");
	if (entry->flags == QC_ENTRY_REFERENCED)
		return qc_reader_left(&r) == 0 ? QC_OK :
			qc_error_set(err, QC_DAMAGED, "WAL record is too long");
	entry->parts = r;
	return check_parts(entry, err);
}

QcStatus
qc_wal_mark_decode(QcWalKind kind, const uint8_t *body, size_t len, QcWalMark *mark, QcError *err)
{
	QcReader	r;
	uint16_t	version;
	uint16_t	zero;
	QcStatus	status;

	assert(kind == QC_WAL_BARRIER || kind == QC_WAL_EPOCH);
	memset(mark, 0, sizeof(*mark));
	qc_reader_init(&r, body, len);
	version = qc_get_u16(&r);
	zero = qc_get_u16(&r);
	status = check_version(&r, version, err);
	if (status != QC_OK)
		return status;
	if (zero != 0)
		return qc_error_set(err, QC_VERSION, "WAL record has unknown flags 0x%04x", zero);
	mark->directory = qc_get_u64(&r);
	if (kind == QC_WAL_EPOCH)
		mark->old_epoch = qc_get_u64(&r);
	mark->epoch = qc_get_u64(&r);
	mark->seq = qc_get_u64(&r);
	if (r.bad || qc_reader_left(&r) != 0)
		return qc_error_set(err, QC_DAMAGED, "WAL record has the wrong length");
	return QC_OK;
}

/* XXH3_64bits of the head's first 24 bytes followed by the body. */
static uint64_t
stash_digest(const uint8_t *head, const uint8_t *body, uint32_t body_len)
{
	XXH3_state_t state;

	XXH3_INITSTATE(&state);
	(void) XXH3_64bits_reset(&state);
	(void) XXH3_64bits_update(&state, head, QC_STASH_HEAD_SIZE - 8);
	(void) XXH3_64bits_update(&state, body, body_len);
	return XXH3_64bits_digest(&state);
}

void
qc_stash_put_head(uint8_t head[QC_STASH_HEAD_SIZE], const QcStashRecord *record)
{
	qc_store_u32(head, record->body_len);
	qc_store_u32(head + 4, (uint32_t) record->kind);
	qc_store_u32(head + 8, record->timeline);
	qc_store_u32(head + 12, 0);
	qc_store_u64(head + 16, record->end_lsn);
	qc_store_u64(head + 24, stash_digest(head, record->body, record->body_len));
}

QcStatus
qc_stash_get(const uint8_t *buf, size_t avail, QcStashRecord *record, size_t *size, QcError *err)
{
	uint32_t	kind;

	if (avail == 0)
		return QC_END;
	if (avail < QC_STASH_HEAD_SIZE)
		return qc_error_set(err, QC_SHORT, "head of a stash record is cut off");
	memset(record, 0, sizeof(*record));
	record->body_len = qc_load_u32(buf);
	kind = qc_load_u32(buf + 4);
	record->timeline = qc_load_u32(buf + 8);
	record->end_lsn = qc_load_u64(buf + 16);
	record->body = buf + QC_STASH_HEAD_SIZE;
	if (record->body_len > avail - QC_STASH_HEAD_SIZE)
		return qc_error_set(err, QC_SHORT, "body of a stash record is cut off");
	if (qc_load_u64(buf + 24) != stash_digest(buf, record->body, record->body_len))
		return qc_error_set(err, QC_DAMAGED, "stash record has a wrong checksum");
	record->kind = (QcWalKind) kind;
	*size = QC_STASH_HEAD_SIZE + (size_t) record->body_len;
	if (qc_load_u32(buf + 12) != 0 ||
		(kind != QC_WAL_ENTRY && kind != QC_WAL_BARRIER && kind != QC_WAL_EPOCH))
		return qc_error_set(err, QC_VERSION, "stash record has the unknown type 0x%x", kind);
	return QC_OK;
}
