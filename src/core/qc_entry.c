/*
 * qc_entry.c
 *		Log entries: head and validation of the payload of a kind 2 record.
 *
 * Works on memory only.  Invariant: effects of an entry that qc_entry_decode accepted can be
 * walked with qc_effect_get without meeting an error.  Called by the append path, recovery,
 * the WAL resource manager's redo and tools.
 */
#include "qc_entry.h"

#include <assert.h>

#define AT_DURABLE 8

void
qc_entry_put_head(QcWriter *w, uint16_t flags, uint64_t durable_seq, uint64_t xid,
				  const uint64_t *logs, uint32_t nlogs, uint32_t neffects)
{
	assert(nlogs > 0);
	assert((flags & ~QC_ENTRY_FLAGS_ALL) == 0 && flags != QC_ENTRY_FLAGS_ALL);
	qc_put_u16(w, QC_ENTRY_VERSION);
	qc_put_u16(w, flags);
	qc_put_u32(w, nlogs);
	qc_put_u64(w, durable_seq);
	qc_put_u64(w, xid);
	for (uint32_t i = 0; i < nlogs; i++)
	{
		assert(i == 0 || logs[i - 1] < logs[i]);
		qc_put_u64(w, logs[i]);
	}
	qc_put_u32(w, neffects);
}

void
qc_entry_patch_durable(uint8_t *payload, uint64_t durable_seq)
{
	assert(qc_load_u16(payload) == QC_ENTRY_VERSION);
	qc_store_u64(payload + AT_DURABLE, durable_seq);
}

/* Version and flags, before anything else of the payload is believed. */
static QcStatus
check_version(uint16_t version, uint16_t flags, QcError *err)
{
	if (version != QC_ENTRY_VERSION)
		return qc_error_set(err, QC_VERSION, "entry has version %u, this program knows %u",
							version, QC_ENTRY_VERSION);
	if (flags & ~QC_ENTRY_FLAGS_ALL)
		return qc_error_set(err, QC_VERSION, "entry has unknown flags 0x%04x", flags);
	if (flags == QC_ENTRY_FLAGS_ALL)
		return qc_error_set(err, QC_DAMAGED, "entry is both carried and referenced");
	return QC_OK;
}

/* Log ids ascend and there is at least one. */
static QcStatus
check_logs(const QcEntry *entry, QcError *err)
{
	if (entry->nlogs == 0)
		return qc_error_set(err, QC_DAMAGED, "entry names no log");
	for (uint32_t i = 1; i < entry->nlogs; i++)
	{
		if (qc_entry_log(entry, i - 1) >= qc_entry_log(entry, i))
			return qc_error_set(err, QC_DAMAGED, "logs of an entry are not in ascending order");
	}
	return QC_OK;
}

/* Exactly neffects well-formed effects and nothing behind them. */
static QcStatus
check_effects(const QcEntry *entry, QcError *err)
{
	QcReader	r = entry->effects;
	QcEffect	effect;
	QcStatus	status;

	for (uint32_t i = 0; i < entry->neffects; i++)
	{
		status = qc_effect_get(&r, &effect, err);
		if (status == QC_END)
			return qc_error_set(err, QC_DAMAGED, "entry has %u effects instead of %u",
								i, entry->neffects);
		if (status != QC_OK)
			return status;
	}
	if (qc_reader_left(&r) != 0)
		return qc_error_set(err, QC_DAMAGED, "entry has %zu bytes behind its effects",
							qc_reader_left(&r));
	return QC_OK;
}

QcStatus
qc_entry_decode(const uint8_t *payload, size_t len, QcEntry *entry, QcError *err)
{
	QcReader	r;
	uint16_t	version;
	QcStatus	status;

	memset(entry, 0, sizeof(*entry));
	qc_reader_init(&r, payload, len);
	version = qc_get_u16(&r);
	entry->flags = qc_get_u16(&r);
	if (r.bad)
		return qc_error_set(err, QC_DAMAGED, "head of an entry is cut off");
	status = check_version(version, entry->flags, err);
	if (status != QC_OK)
		return status;
	entry->nlogs = qc_get_u32(&r);
	entry->durable_seq = qc_get_u64(&r);
	entry->xid = qc_get_u64(&r);
	entry->logs = qc_get_bytes(&r, (size_t) entry->nlogs * 8);
	entry->neffects = qc_get_u32(&r);
	if (r.bad)
		return qc_error_set(err, QC_DAMAGED, "head of an entry is cut off");
	entry->effects = r;
	status = check_logs(entry, err);
	if (status == QC_OK)
		status = check_effects(entry, err);
	return status;
}

uint64_t
qc_entry_log(const QcEntry *entry, uint32_t i)
{
	assert(i < entry->nlogs);
	return qc_load_u64(entry->logs + (size_t) i * 8);
}
