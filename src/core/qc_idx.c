/*
 * qc_idx.c
 *		The .qidx index of a closed log file (layout and contracts in qc_logfile.h).
 *
 * Works on memory only; sorting is in place.  Invariant: entries of an index that qc_idx_check
 * accepted are sorted, do not overlap, and lie inside the log file.  Called at the roll, by
 * readers of closed files, by recovery and by tools.
 */
#include "qc_logfile.h"

#include "qc_derived.h"
#include "qc_record.h"

#include <assert.h>

static const QcDerived idx_kind = {"QQIDX1\0", QC_IDX_ENTRY_SIZE, "index"};

static bool
sorts_before(const QcIdxEntry *a, const QcIdxEntry *b)
{
	if (a->partition != b->partition)
		return a->partition < b->partition;
	return a->first < b->first;
}

/* Restore the heap below root after its entry changed. */
static void
sift_down(QcIdxEntry *entries, uint32_t root, uint32_t count)
{
	QcIdxEntry	moving = entries[root];

	for (;;)
	{
		uint64_t	child = 2 * (uint64_t) root + 1;

		if (child >= count)
			break;
		if (child + 1 < count && sorts_before(&entries[child], &entries[child + 1]))
			child++;
		if (!sorts_before(&moving, &entries[child]))
			break;
		entries[root] = entries[child];
		root = (uint32_t) child;
	}
	entries[root] = moving;
}

/* Heapsort: qsort of the C library may allocate, which the core must not do while serving. */
static void
sort_entries(QcIdxEntry *entries, uint32_t count)
{
	for (uint32_t i = count / 2; i > 0; i--)
		sift_down(entries, i - 1, count);
	for (uint32_t last = count; last > 1; last--)
	{
		QcIdxEntry	largest = entries[0];

		entries[0] = entries[last - 1];
		entries[last - 1] = largest;
		sift_down(entries, 0, last - 1);
	}
}

static void
encode_entry(uint8_t *at, const QcIdxEntry *entry)
{
	qc_store_u64(at, entry->partition);
	qc_store_u64(at + 8, entry->first);
	qc_store_u64(at + 16, entry->end);
	qc_store_u64(at + 24, (uint64_t) entry->created_at);
	qc_store_u64(at + 32, entry->position);
	qc_store_u32(at + 40, entry->count);
	qc_store_u32(at + 44, entry->len);
}

void
qc_idx_entry_decode(const uint8_t *at, QcIdxEntry *entry)
{
	entry->partition = qc_load_u64(at);
	entry->first = qc_load_u64(at + 8);
	entry->end = qc_load_u64(at + 16);
	entry->created_at = (int64_t) qc_load_u64(at + 24);
	entry->position = qc_load_u64(at + 32);
	entry->count = qc_load_u32(at + 40);
	entry->len = qc_load_u32(at + 44);
}

void
qc_idx_encode(uint8_t *out, uint64_t file_id, uint64_t log_length, QcIdxEntry *entries,
			  uint32_t count)
{
	uint8_t    *body = out + QC_IDX_HEADER_SIZE;

	sort_entries(entries, count);
	for (uint32_t i = 0; i < count; i++)
		encode_entry(body + (size_t) i * QC_IDX_ENTRY_SIZE, &entries[i]);
	qc_derived_seal(out, &idx_kind, file_id, log_length, count);
}

QcStatus
qc_idx_count(const uint8_t header[QC_IDX_HEADER_SIZE], uint64_t file_id, uint32_t *count,
			 QcError *err)
{
	return qc_derived_count(header, &idx_kind, file_id, count, err);
}

/* Is this entry possible in itself, and does its record lie inside the log file? */
static bool
entry_fits(const QcIdxEntry *entry, uint64_t log_length)
{
	return entry->count > 0 &&
		entry->end > entry->first && entry->end - entry->first == entry->count &&
		entry->len >= QC_RECORD_LEN_MIN && entry->len <= QC_RECORD_LEN_MAX &&
		entry->position >= QC_FILE_HEADER_SIZE && entry->position <= log_length &&
		(uint64_t) entry->len + 4 <= log_length - entry->position;
}

/* May b follow a in a sorted index?  Runs of one partition must not overlap. */
static bool
entries_ordered(const QcIdxEntry *a, const QcIdxEntry *b)
{
	return a->partition < b->partition || (a->partition == b->partition && a->end <= b->first);
}

QcStatus
qc_idx_check(const uint8_t *buf, size_t len, uint64_t file_id, uint64_t log_length,
			 uint32_t *count, QcError *err)
{
	QcStatus	status = qc_derived_check(buf, len, &idx_kind, file_id, log_length, count, err);
	QcIdxEntry	entry;
	QcIdxEntry	previous = {0}; /* sorts before everything */

	if (status != QC_OK)
		return status;
	for (uint32_t i = 0; i < *count; i++)
	{
		qc_idx_entry_decode(buf + QC_IDX_HEADER_SIZE + (size_t) i * QC_IDX_ENTRY_SIZE, &entry);
		if (!entry_fits(&entry, log_length))
			return qc_error_set(err, QC_DAMAGED, "index entry %u is impossible", i);
		if (!entries_ordered(&previous, &entry))
			return qc_error_set(err, QC_DAMAGED, "index entry %u is out of order", i);
		previous = entry;
	}
	return QC_OK;
}

/* Does the cell begin at or before the position? */
static bool
begins_before(const uint8_t *at, uint64_t partition, uint64_t position)
{
	uint64_t	at_partition = qc_load_u64(at);

	return at_partition < partition ||
		(at_partition == partition && qc_load_u64(at + 8) <= position);
}

uint32_t
qc_cells_begun(const uint8_t *cells, size_t size, uint32_t count, uint64_t partition,
			   uint64_t position)
{
	uint32_t	low = 0;
	uint32_t	high = count;

	while (low < high)
	{
		uint32_t	middle = low + (high - low) / 2;

		if (begins_before(cells + (size_t) middle * size, partition, position))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

QcIdxSide
qc_cells_seek(const uint8_t *cells, size_t size, uint32_t count, uint64_t partition,
			  uint64_t position, uint32_t *found)
{
	uint32_t	low = qc_cells_begun(cells, size, count, partition, position);
	bool		before = low > 0 && qc_load_u64(cells + (size_t) (low - 1) * size) == partition;
	bool		behind = low < count && qc_load_u64(cells + (size_t) low * size) == partition;

	*found = before ? low - 1 : 0;
	if (before && position < qc_load_u64(cells + (size_t) *found * size + 16))
		return QC_IDX_HERE;
	if (before)
		return behind ? QC_IDX_GAP : QC_IDX_LATER;
	return behind ? QC_IDX_EARLIER : QC_IDX_NOWHERE;
}

QcIdxSide
qc_idx_seek(const uint8_t *entries, uint32_t count, uint64_t partition, uint64_t position,
			QcIdxEntry *found)
{
	uint32_t	at;
	QcIdxSide	side = qc_cells_seek(entries, QC_IDX_ENTRY_SIZE, count, partition, position, &at);

	if (side == QC_IDX_HERE)
		qc_idx_entry_decode(entries + (size_t) at * QC_IDX_ENTRY_SIZE, found);
	return side;
}

bool
qc_idx_find(const uint8_t *entries, uint32_t count, uint64_t partition, uint64_t position,
			QcIdxEntry *found)
{
	return qc_idx_seek(entries, count, partition, position, found) == QC_IDX_HERE;
}
