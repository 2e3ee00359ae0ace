/*
 * qc_recover_restore.c
 *		Entries that only the stash has are appended to the logs again (PROTOCOL.md 2.6).
 *
 * Committed carried entries at or above the end keep their seq, epoch and record bytes; stubs are made anew.  Each seq
 * between them that nobody can restore gets a void entry in the system log.  Positions that void entries had taken
 * become aborted ranges when a later append is applied (qc_recover_replay.c).
 *
 * All of it is synced before the new epoch begins.  A crash before that leaves some prefix of it whole: the next
 * recovery finds its end there, cuts the rest and restores it from the same stash to the same bytes.
 */
#include "qc_recover_int.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A record to append. */
typedef struct Piece
{
	uint64_t	log;
	const uint8_t *bytes;
	uint32_t	size;
	uint32_t	order;			/* in its log */
	QcPlace		place;
} Piece;

typedef struct Pieces
{
	uint32_t	count;
	uint32_t	cap;
	Piece	   *items;
	uint8_t    *stubs;			/* memory of the stubs among them */
} Pieces;

static QcStatus
malformed(uint64_t seq, const char *why, QcError *err)
{
	return qc_error_at(err, QC_DAMAGED, QC_STASH_PATH, UINT64_MAX,
					   "entry %" PRIu64 " of the stash cannot be restored: %s", seq, why);
}

static QcStatus
add_piece(Pieces *pieces, uint64_t log, const uint8_t *bytes, uint32_t size, uint32_t order,
		  QcError *err)
{
	QcStatus	status = qc_array_grow(&pieces->items, &pieces->cap, pieces->count + 1,
									   sizeof(Piece), err);

	if (status == QC_OK)
		pieces->items[pieces->count++] = (Piece)
	{
		.log = log, .bytes = bytes, .size = size, .order = order
	};
	return status;
}

static int
compare_pieces(const void *a, const void *b)
{
	const Piece *left = a;
	const Piece *right = b;

	if (left->log != right->log)
		return left->log < right->log ? -1 : 1;
	return left->order < right->order ? -1 : left->order > right->order;
}

/* Stubs for every log of the entry but the first. */
static QcStatus
add_stubs(Pieces *pieces, const QcRecord *record, const QcEntry *entry, QcError *err)
{
	QcStatus	status = QC_OK;

	free(pieces->stubs);
	pieces->stubs = malloc((size_t) entry->nlogs * QC_STUB_SIZE);
	if (pieces->stubs == NULL)
		return qc_error_set(err, QC_FULL, "out of memory");
	for (uint32_t i = 1; i < entry->nlogs && status == QC_OK; i++)
	{
		uint8_t    *stub = pieces->stubs + (size_t) i * QC_STUB_SIZE;

		qc_record_put_stub(stub, record->payload, record->payload_len, record->seq,
						   record->copies, record->epoch, record->created_at);
		status = add_piece(pieces, qc_entry_log(entry, i), stub, QC_STUB_SIZE, UINT32_MAX, err);
	}
	return status;
}

/* The records of a carried entry, in the order in which they go to the logs. */
static QcStatus
collect(Pieces *pieces, const QcStashEntry *stashed, QcEntry *entry, QcError *err)
{
	QcReader	parts = stashed->wal.parts;
	uint64_t	log;
	const uint8_t *bytes;
	uint32_t	size;
	QcRecord	record;
	QcStatus	status;

	pieces->count = 0;
	memset(&record, 0, sizeof(record));
	while ((status = qc_wal_part_get(&parts, &log, &bytes, &size, err)) == QC_OK)
	{
		status = qc_record_decode(bytes, size, &record, err);
		if (status != QC_OK || record.seq != stashed->seq ||
			(record.kind != QC_KIND_MESSAGES && record.kind != QC_KIND_ENTRY))
			return malformed(stashed->seq, "a record in it is damaged", err);
		status = add_piece(pieces, log, bytes, size, pieces->count, err);
		if (status != QC_OK)
			return status;
	}
	if (status != QC_END)
		return status;
	if (record.kind != QC_KIND_ENTRY || record.epoch != stashed->wal.epoch)
		return malformed(stashed->seq, "it does not end with its entry", err);
	status = qc_entry_decode(record.payload, record.payload_len, entry, err);
	if (status == QC_DAMAGED || (status == QC_OK && entry->xid != stashed->wal.xid))
		return malformed(stashed->seq, "its entry is malformed", err);
	if (status == QC_OK)
		status = add_stubs(pieces, &record, entry, err);
	if (status == QC_OK && pieces->count > 1)
		qsort(pieces->items, pieces->count, sizeof(Piece), compare_pieces);
	return status;
}

/* Put the pieces together as if they had been read from the logs, and judge that. */
static QcStatus
judge(QcRecovery *rc, const Pieces *pieces, uint64_t seq, QcWhole *whole, QcError *err)
{
	QcBundleState state;
	const char *why;
	uint32_t	log_index = 0;
	QcStatus	status = QC_OK;

	qc_bundle_clear(&rc->bundle, seq);
	for (uint32_t i = 0; i < pieces->count && status == QC_OK; i++)
	{
		const Piece *piece = &pieces->items[i];
		QcRecord	record;

		log_index += i > 0 && piece->log != pieces->items[i - 1].log;
		status = qc_record_decode(piece->bytes, piece->size, &record, err);
		if (status == QC_OK)
			status = qc_bundle_add(&rc->bundle, log_index, piece->log, &record, piece->place.file,
								   piece->place.position, err);
	}
	if (status != QC_OK)
		return status;
	qc_bundle_sort(&rc->bundle);
	status = qc_bundle_judge(rc, &state, whole, &why, err);
	if (status == QC_OK && state != QC_BUNDLE_WHOLE)
		status = malformed(seq, why == NULL ? "its epoch has ended" : why, err);
	return status;
}

/* Logs of queues that the entry creates: after a restore from a backup they may not be there. */
static QcStatus
make_logs(QcRecovery *rc, const QcEntry *entry, QcError *err)
{
	QcReader	r = entry->effects;
	QcEffect	effect;
	QcStatus	status;

	while ((status = qc_effect_get(&r, &effect, err)) == QC_OK)
	{
		uint64_t	log = effect.u.queue_create.log;

		if (effect.kind != QC_EFFECT_QUEUE_CREATE || qc_log_by_id(rc->r->st, log) != NULL)
			continue;
		status = qc_log_create_files(rc->r->files, log, QC_EXTEND_MIN, err);
		if (status == QC_OK)
			status = qc_recover_add_tail(rc, log, false, 1, QC_FILE_HEADER_SIZE, err);
		if (status != QC_OK)
			return status;
		if (qc_log_add(rc->r->st, log, 1, QC_FILE_HEADER_SIZE, QC_EXTEND_MIN, false) == NULL)
			return qc_error_set(err, QC_FULL, "qlog.state_memory is full");
	}
	return status == QC_END ? QC_OK : status;
}

/* Room for one record in its log. */
static QcStatus
make_room(QcRecovery *rc, QcLog *log, uint64_t size, QcError *err)
{
	QcRecover  *r = rc->r;
	QcExtend	extend;
	QcStatus	status;

	while (qc_log_credit(r->st, log, size, size, r->segment_size, &extend) == QC_BUSY)
	{
		status = qc_log_extend_io(r->files, &extend, err);
		if (status != QC_OK)
			return status;
		qc_log_extended(r->st, &extend, r->segment_size);
	}
	return QC_OK;
}

/* Write a record at its place, and before it the header of the file that it begins. */
static QcStatus
write_piece(QcRecovery *rc, const Piece *piece, uint64_t seq, QcError *err)
{
	const QcIo *io = rc->r->files->io;
	QcFileHeader header = {piece->place.file, seq};
	uint8_t		encoded[QC_FILE_HEADER_SIZE];
	QcIoSlice	slices[2] = {{encoded, sizeof(encoded)}, {piece->bytes, piece->size}};
	int			first = piece->place.rolled ? 0 : 1;
	uint64_t	position = piece->place.position - (first == 0 ? QC_FILE_HEADER_SIZE : 0);
	char		path[QC_PATH_MAX];
	QcHandle	handle;
	QcStatus	status = qc_files_get(rc->r->files, piece->log, piece->place.file, true, &handle,
									  err);
	int			error;

	if (status != QC_OK)
		return status;
	qc_file_header_encode(encoded, &header);
	error = io->write(io->context, handle, slices + first, 2 - first, position);
	if (error == 0)
		return QC_OK;
	qc_path_file(path, rc->r->files->layout, piece->log, piece->place.file, "qlog");
	return qc_error_sys(err, error, path, "could not write log file");
}

static void
note_written(QcRecovery *rc, const Piece *piece)
{
	QcLogTail  *tail = qc_recover_tail(rc, piece->log);

	assert(tail != NULL);
	if (tail->written_first == 0)
		tail->written_first = piece->place.file;
	tail->written_last = piece->place.file;
}

/* Append the pieces to their logs. */
static QcStatus
append(QcRecovery *rc, Pieces *pieces, uint64_t seq, QcError *err)
{
	QcStatus	status = QC_OK;

	for (uint32_t i = 0; i < pieces->count && status == QC_OK; i++)
	{
		Piece	   *piece = &pieces->items[i];
		QcLog	   *log = qc_log_by_id(rc->r->st, piece->log);

		if (log == NULL || qc_recover_tail(rc, piece->log) == NULL)
			return malformed(seq, "it names a log that does not exist", err);
		if (piece->size > rc->r->segment_size / 2)
			return malformed(seq, "a record is larger than half a log file", err);
		status = make_room(rc, log, piece->size, err);
		if (status != QC_OK)
			return status;
		piece->place = qc_log_place(rc->r->st, log, piece->size, rc->r->segment_size);
		note_written(rc, piece);
		status = write_piece(rc, piece, seq, err);
	}
	return status;
}

static QcStatus
restore_entry(QcRecovery *rc, Pieces *pieces, const QcStashEntry *stashed, QcError *err)
{
	QcEntry		entry;
	QcWhole		whole;
	QcStatus	status = collect(pieces, stashed, &entry, err);

	if (status == QC_OK)
		status = judge(rc, pieces, stashed->seq, &whole, err);
	if (status == QC_OK)
		status = make_logs(rc, &entry, err);
	if (status == QC_OK)
		status = append(rc, pieces, stashed->seq, err);

	/* once more, with the places that the memory index is to know */
	if (status == QC_OK)
		status = judge(rc, pieces, stashed->seq, &whole, err);
	if (status == QC_OK)
		status = qc_recover_apply(rc, &whole, err);
	rc->r->restored += status == QC_OK;
	return status;
}

/* An entry without effects for a seq that was never acknowledged. */
static QcStatus
void_entry(QcRecovery *rc, Pieces *pieces, uint64_t seq, QcError *err)
{
	static const uint64_t log = 0;
	uint8_t		record[QC_RECORD_HEADER_SIZE + QC_ENTRY_HEAD_SIZE(1)];
	QcWriter	w;
	QcWhole		whole;
	QcStatus	status;

	qc_writer_init(&w, record + QC_RECORD_HEADER_SIZE, QC_ENTRY_HEAD_SIZE(1));
	qc_entry_put_head(&w, 0, rc->r->end - 1, 0, &log, 1, 0);
	assert(!w.full && w.len == QC_ENTRY_HEAD_SIZE(1));
	qc_record_seal_entry(record, w.len, seq, 1, qc_epoch(rc->r->st), rc->r->st->last_created_at);
	pieces->count = 0;
	status = add_piece(pieces, log, record, sizeof(record), 0, err);
	if (status == QC_OK)
		status = append(rc, pieces, seq, err);
	if (status == QC_OK)
		status = judge(rc, pieces, seq, &whole, err);
	if (status == QC_OK)
		status = qc_recover_apply(rc, &whole, err);
	rc->r->voided += status == QC_OK;
	return status;
}

/* The largest seq to restore, 0 = none; a committed entry that the WAL does not carry cannot be. */
static QcStatus
find_last(QcRecovery *rc, uint64_t *last, QcError *err)
{
	*last = 0;
	for (uint32_t i = 0; i < rc->stash.count; i++)
	{
		const QcStashEntry *entry = &rc->stash.entries[i];

		if (entry->seq < rc->r->end || !entry->committed)
			continue;
		if (entry->wal.flags & QC_ENTRY_CARRIED)
			*last = entry->seq;
		else if (!rc->r->allow_gap && rc->r->given_seq == 0)
			return qc_error_at(err, QC_DAMAGED, QC_STASH_PATH, UINT64_MAX,
							   "entry %" PRIu64 " of a committed transaction is missing from the "
							   "logs and too large for the WAL to carry it", entry->seq);
	}
	return QC_OK;
}

static QcStatus
sync_written(QcRecovery *rc, QcError *err)
{
	QcStatus	status = QC_OK;

	for (uint32_t i = 0; i < rc->nlogs && status == QC_OK; i++)
	{
		QcLogTail  *tail = &rc->logs[i];

		for (uint64_t file = tail->written_first; file != 0 && file <= tail->written_last &&
			 status == QC_OK; file++)
		{
			QcDirtyFile dirty = {tail->log, file};

			status = qc_ring_sync_file(rc->r->files, &dirty, err);
		}
	}
	return status;
}

QcStatus
qc_recover_restore(QcRecovery *rc, QcError *err)
{
	Pieces		pieces = {0, 0, NULL, NULL};
	uint64_t	last;
	QcStatus	status = find_last(rc, &last, err);

	assert(rc->r->st->seq + 1 == rc->r->end);
	for (uint64_t seq = rc->r->end; seq <= last && status == QC_OK; seq++)
	{
		const QcStashEntry *stashed = qc_recover_stashed(rc, seq);

		rc->r->changed = true;
		if (stashed != NULL && stashed->committed && (stashed->wal.flags & QC_ENTRY_CARRIED))
			status = restore_entry(rc, &pieces, stashed, err);
		else
			status = void_entry(rc, &pieces, seq, err);
		if (status == QC_OK)
			status = qc_recover_tick(rc, "restore", seq, last, err);
	}
	free(pieces.items);
	free(pieces.stubs);
	return status == QC_OK ? sync_written(rc, err) : status;
}
