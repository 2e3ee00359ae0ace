/*
 * qc_recover_stash.c
 *		Reading the stash: which WAL records count for this directory (PROTOCOL.md 2.4).
 *
 * Records of another directory and of points outside the server's history are passed over; so are, after all epochs
 * that log and stash tell of are known, records of an epoch that had ended at or below their seq.  Repeated redo leaves
 * the same record twice: what remains is one record per seq, the one with the highest LSN.
 *
 * A torn tail is what a crash during redo leaves and ends the stash.  The same in the middle is damage: a record behind
 * it may be the only copy of a committed entry.
 */
#include "qc_recover_int.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "qc_search.h"

static QcStatus
damaged(QcStatus code, uint64_t position, const QcError *why, QcError *err)
{
	return qc_error_at(err, code, QC_STASH_PATH, position, "%s", why->text);
}

/* Is there an intact record anywhere behind this place? */
static bool
record_behind(const QcRecover *r, size_t at)
{
	for (size_t i = at + 1; i + QC_STASH_HEAD_SIZE <= r->stash_len; i++)
	{
		uint32_t	type = qc_load_u32(r->stash + i + 4);
		QcStashRecord record;
		size_t		size;

		/* cheap tests first: a checksum over the rest of the stash at every byte would never end */
		if (qc_load_u32(r->stash + i) > r->stash_len - i - QC_STASH_HEAD_SIZE ||
			(type != QC_WAL_ENTRY && type != QC_WAL_BARRIER && type != QC_WAL_EPOCH))
			continue;
		if (qc_stash_get(r->stash + i, r->stash_len - i, &record, &size, NULL) == QC_OK)
			return true;
	}
	return false;
}

static QcStatus
add_entry(QcRecovery *rc, const QcStashRecord *record, QcError *err)
{
	QcStash    *stash = &rc->stash;
	QcStashEntry entry = {.end_lsn = record->end_lsn};
	QcStatus	status = qc_wal_entry_decode(record->body, record->body_len, &entry.wal, err);

	if (status != QC_OK || entry.wal.directory != rc->r->st->directory_id)
		return status;
	entry.seq = entry.wal.seq;
	status = qc_array_grow(&stash->entries, &stash->cap, stash->count + 1, sizeof(QcStashEntry),
						   err);
	if (status == QC_OK)
		stash->entries[stash->count++] = entry;
	return status;
}

static QcStatus
add_epoch(QcRecovery *rc, const QcStashRecord *record, QcError *err)
{
	QcWalMark	mark;
	bool		last = false;
	QcStatus	status = qc_wal_mark_decode(QC_WAL_EPOCH, record->body, record->body_len, &mark,
											err);

	if (status != QC_OK || mark.directory != rc->r->st->directory_id)
		return status;
	status = qc_epochs_add(rc, mark.epoch, mark.seq, &last, err);
	rc->stash.unknown_epoch |= last;

	return status;
}

/* One record of the stash. */
static QcStatus
take_record(QcRecovery *rc, const QcStashRecord *record, size_t at, QcError *err)
{
	const QcRecoverHooks *hooks = &rc->r->hooks;
	QcError		why;
	QcStatus	status = QC_OK;

	qc_error_clear(&why);
	if (!hooks->in_history(hooks->context, record->timeline, record->end_lsn))
		return QC_OK;
	if (record->kind == QC_WAL_ENTRY)
		status = add_entry(rc, record, &why);
	else if (record->kind == QC_WAL_EPOCH)
		status = add_epoch(rc, record, &why);
	return status == QC_OK ? QC_OK : damaged(status, at, &why, err);
}

/* Every record of the stash, up to a torn tail. */
static QcStatus
read_records(QcRecovery *rc, QcError *err)
{
	const QcRecover *r = rc->r;
	size_t		at = QC_STASH_MAGIC_SIZE;
	QcStatus	status = QC_OK;

	while (status == QC_OK)
	{
		QcStashRecord record;
		QcError		why;
		size_t		size;

		qc_error_clear(&why);
		status = qc_stash_get(r->stash + at, r->stash_len - at, &record, &size, &why);
		if (status == QC_END)
			return QC_OK;
		if (status == QC_VERSION)
			return damaged(status, at, &why, err);
		if (status != QC_OK)
			return record_behind(r, at) ? damaged(QC_DAMAGED, at, &why, err) : QC_OK;
		status = take_record(rc, &record, at, err);
		at += size;
	}
	return status;
}

/* By seq, the highest LSN first. */
static int
compare_entries(const void *a, const void *b)
{
	const QcStashEntry *left = a;
	const QcStashEntry *right = b;

	if (left->seq != right->seq)
		return left->seq < right->seq ? -1 : 1;
	if (left->end_lsn != right->end_lsn)
		return left->end_lsn > right->end_lsn ? -1 : 1;
	return 0;
}

/*
 * Drop what is void and all but one record per seq, and ask for the verdicts on what the log lacks.  Of the others most are decided
 * in the log, and the commit log need not reach back to them any more: qc_recover_decide() asks for what it has to know.
 */
static QcStatus
settle_entries(QcRecovery *rc, QcError *err)
{
	const QcRecoverHooks *hooks = &rc->r->hooks;
	QcStash    *stash = &rc->stash;
	uint32_t	kept = 0;

	if (stash->count > 1)
		qsort(stash->entries, stash->count, sizeof(QcStashEntry), compare_entries);
	for (uint32_t i = 0; i < stash->count; i++)
	{
		QcStashEntry *entry = &stash->entries[i];

		if (qc_epochs_ended(&rc->epochs, entry->wal.epoch, entry->seq) ||
			(kept > 0 && stash->entries[kept - 1].seq == entry->seq))
			continue;
		entry->committed = true;
		if (entry->wal.xid != 0 && entry->seq >= rc->r->end)
		{
			QcStatus	status = hooks->xid_committed(hooks->context, entry->wal.xid,
													  &entry->committed, err);

			if (status != QC_OK)
				return status;
		}
		rc->live_stash |= entry->seq >= rc->r->end;
		stash->entries[kept++] = *entry;
	}
	stash->count = kept;
	return QC_OK;
}

QcStatus
qc_recover_read_stash(QcRecovery *rc, QcError *err)
{
	const QcRecover *r = rc->r;
	QcStatus	status;

	/* A stash that did not get as far as its magic holds nothing. */
	if (r->stash == NULL || r->stash_len < QC_STASH_MAGIC_SIZE)
		return QC_OK;
	if (memcmp(r->stash, QC_STASH_MAGIC, QC_STASH_MAGIC_SIZE) != 0)
		return qc_error_at(err, QC_DAMAGED, QC_STASH_PATH, 0, "file does not begin as a stash");
	status = read_records(rc, err);
	return status == QC_OK ? settle_entries(rc, err) : status;
}

const QcStashEntry *
qc_recover_stashed(const QcRecovery *rc, uint64_t seq)
{
	uint32_t	at = QC_LOWER_BOUND(rc->stash.entries, rc->stash.count, QcStashEntry, seq, seq);

	return at < rc->stash.count && rc->stash.entries[at].seq == seq ?
		&rc->stash.entries[at] : NULL;
}
