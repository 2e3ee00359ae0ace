/*
 * qc_recover_merge.c
 *		The tails of all logs, read in parallel and merged by seq into bundles.
 *
 * A binary heap holds the logs that have a record to be taken.  Every bundle takes all records of the smallest seq, so
 * when it is taken every other log stands above that seq, and every damaged place that may have held an entry below it
 * has been seen.  Each pass sees the same bundles and the same damaged places.
 *
 * Only logs with something behind the mark keep a scanner and its buffer.
 */
#include "qc_recover_int.h"

#include <stdlib.h>
#include <string.h>

#include "qc_mutant.h"

/* ---- heap ---- */

static uint64_t
head_seq(const QcRecovery *rc, uint32_t log_index)
{
	return rc->logs[log_index].scan->record.seq;
}

/* Does log a come before log b? */
static bool
comes_before(const QcRecovery *rc, uint32_t a, uint32_t b)
{
	uint64_t	left = head_seq(rc, a);
	uint64_t	right = head_seq(rc, b);

	return left < right || (left == right && a < b);
}

static void
heap_push(QcRecovery *rc, uint32_t log_index)
{
	uint32_t	at = rc->nheap++;

	while (at > 0 && comes_before(rc, log_index, rc->heap[(at - 1) / 2]))
	{
		rc->heap[at] = rc->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	rc->heap[at] = log_index;
}

/* The log with the smallest seq leaves the heap. */
static uint32_t
heap_pop(QcRecovery *rc)
{
	uint32_t	top = rc->heap[0];
	uint32_t	moving = rc->heap[--rc->nheap];
	uint32_t	at = 0;

	for (;;)
	{
		uint32_t	child = 2 * at + 1;

		if (child >= rc->nheap)
			break;
		if (child + 1 < rc->nheap && comes_before(rc, rc->heap[child + 1], rc->heap[child]))
			child++;
		if (!comes_before(rc, rc->heap[child], moving))
			break;
		rc->heap[at] = rc->heap[child];
		at = child;
	}
	rc->heap[at] = moving;
	return top;
}

/* ---- reading one log ---- */

static void
close_scan(QcLogTail *tail)
{
	if (tail->scan != NULL)
		qc_scan_end(tail->scan);
	free(tail->scan);
	tail->scan = NULL;
}

/* Note the bad place that the scan has ended at. */
static QcStatus
note_spot(QcRecovery *rc, uint32_t log_index, QcError *err)
{
	QcLogTail  *tail = &rc->logs[log_index];
	QcScanProbe probe;
	QcSpot	   *spot;
	QcStatus	status = qc_scan_probe(tail->scan, &probe, err);

	if (status == QC_OK)
		status = qc_array_grow(&rc->spots, &rc->cap_spots, rc->nspots + 1, sizeof(QcSpot), err);
	if (status != QC_OK)
		return status;
	spot = &rc->spots[rc->nspots++];
	memset(spot, 0, sizeof(*spot));
	spot->log_index = log_index;
	spot->file = qc_scan_file(tail->scan);
	spot->position = tail->scan->position;
	spot->size = probe.size;
	spot->after = tail->last_seq;
	spot->before = QC_NO_SEQ;

	/* the system log holds no messages */
	spot->message = probe.reaches && tail->log != 0 &&
		(probe.kind == QC_KIND_MESSAGES || probe.kind == QC_KIND_SOLO);
	spot->solo = spot->message && probe.kind == QC_KIND_SOLO;
	spot->fault = tail->scan->fault;
	return QC_OK;
}

/* Read the log's next record, over bad places; *head = there is one.  Otherwise the scan is closed. */
static QcStatus
advance(QcRecovery *rc, uint32_t log_index, bool *head, QcError *err)
{
	QcLogTail  *tail = &rc->logs[log_index];
	uint32_t	first_spot = rc->nspots;
	QcStatus	status = qc_scan_next(tail->scan, err);

	*head = false;
	while (status == QC_END && tail->scan->end != QC_SCAN_CLEAN)
	{
		bool		torn = tail->scan->end == QC_SCAN_TORN || QC_MUTATED(QC_MUTANT_STOP_AT_DAMAGE);

		status = note_spot(rc, log_index, err);
		if (status != QC_OK)
			return status;
		if (torn)
		{
			close_scan(tail);
			return QC_OK;
		}
		status = qc_scan_resync(tail->scan, err);
	}
	if (status == QC_END)
	{
		tail->tail_file = qc_scan_file(tail->scan);
		tail->tail_position = tail->scan->position;
		tail->clean = true;
		close_scan(tail);
		return QC_OK;
	}
	if (status != QC_OK)
		return status;
	for (uint32_t i = first_spot; i < rc->nspots; i++)
		rc->spots[i].before = tail->scan->record.seq;
	*head = true;
	return QC_OK;
}

/*
 * The file in which the log stood at the mark is missing.	That is right when all that was in it lies below the floor: it was closed
 * early, which no entry tells, after a snapshot with this mark had noted where the log stood.  Then the next file is the
 * first.  Whatever else is missing with it leaves entries above the mark that are not whole.
 */
static bool
next_file(QcRecovery *rc, QcLogTail *tail)
{
	uint64_t   *files;
	uint32_t	n;
	uint64_t	next = 0;

	if (!tail->known || rc->r->mark > rc->r->floor ||
		qc_dir_files(rc->r->files->io, rc->r->files->layout, tail->log, &files, &n, NULL) != QC_OK)
		return false;
	for (uint32_t i = 0; i < n && next == 0; i++)
		next = files[i] > tail->start_file ? files[i] : 0;
	free(files);
	if (next == 0)
		return false;
	tail->start_file = tail->tail_file = next;
	tail->start_position = tail->tail_position = QC_FILE_HEADER_SIZE;
	return true;
}

/* Open a log's tail for a pass. */
static QcStatus
open_tail(QcRecovery *rc, uint32_t log_index, QcError *err)
{
	QcLogTail  *tail = &rc->logs[log_index];
	bool		head;
	QcError		why;
	QcStatus	status;

	tail->last_seq = 0;
	tail->tail_file = tail->start_file;
	tail->tail_position = tail->start_position;
	tail->clean = tail->start_file == 0;
	if (tail->gone || tail->start_file == 0)
		return QC_OK;
	tail->scan = calloc(1, sizeof(QcScan));
	if (tail->scan == NULL)
		return qc_error_set(err, QC_FULL, "out of memory");
	status = qc_scan_begin(tail->scan, rc->r->files, tail->log, tail->start_file,
						   tail->start_position, &why);
	if (status == QC_MISSING && next_file(rc, tail))
		status = qc_scan_begin(tail->scan, rc->r->files, tail->log, tail->start_file,
							   tail->start_position, &why);
	if (status != QC_OK)
	{
		free(tail->scan);
		tail->scan = NULL;
		if (!tail->known || (why.code != QC_MISSING && why.code != QC_DAMAGED))
		{
			if (err != NULL)
				*err = why;
			return status;
		}
		qc_give_log(rc, tail, &why);
		return QC_OK;
	}
	tail->scan->last_seq = rc->r->mark;
	status = advance(rc, log_index, &head, err);
	if (status == QC_OK && head)
		heap_push(rc, log_index);
	return status;
}

QcStatus
qc_merge_begin(QcRecovery *rc, QcError *err)
{
	QcStatus	status = QC_OK;

	rc->nspots = 0;
	rc->nheap = 0;
	free(rc->heap);
	rc->heap = malloc((rc->nlogs + 1) * sizeof(uint32_t));
	if (rc->heap == NULL)
		return qc_error_set(err, QC_FULL, "out of memory");
	for (uint32_t i = 0; i < rc->nlogs && status == QC_OK; i++)
		status = open_tail(rc, i, err);
	return status;
}

void
qc_merge_end(QcRecovery *rc)
{
	for (uint32_t i = 0; i < rc->nlogs; i++)
		close_scan(&rc->logs[i]);
	rc->nheap = 0;
}

uint64_t
qc_merge_peek(const QcRecovery *rc)
{
	return rc->nheap == 0 ? QC_NO_SEQ : head_seq(rc, rc->heap[0]);
}

/* What was durable when this record was written: something that nobody else may be left to tell. */
static void
note_durable(QcRecovery *rc, const QcRecord *record)
{
	uint64_t	durable = 0;

	if (record->kind == QC_KIND_SOLO)
		durable = record->durable_seq;
	else if (record->kind == QC_KIND_ENTRY && record->payload_len >= QC_ENTRY_HEAD_SIZE(1) &&
			 qc_load_u16(record->payload) == QC_ENTRY_VERSION)
		durable = qc_load_u64(record->payload + 8);
	if (durable < record->seq && durable > rc->durable_seq)
		rc->durable_seq = durable;
}

/* Take all records of this seq from one log. */
static QcStatus
take_run(QcRecovery *rc, uint32_t log_index, uint64_t seq, QcError *err)
{
	QcLogTail  *tail = &rc->logs[log_index];
	bool		head = true;
	QcStatus	status = QC_OK;

	while (head && tail->scan->record.seq == seq)
	{
		QcScan	   *scan = tail->scan;

		note_durable(rc, &scan->record);
		status = qc_bundle_add(&rc->bundle, log_index, tail->log, &scan->record, qc_scan_file(scan),
							   scan->position, err);
		if (status != QC_OK)
			return status;
		tail->last_seq = seq;
		tail->tail_file = qc_scan_file(scan);
		tail->tail_position = scan->position + scan->size;
		status = advance(rc, log_index, &head, err);
		if (status != QC_OK)
			return status;
	}
	if (head)
		heap_push(rc, log_index);
	return QC_OK;
}

/* Damaged message records stand before the end of their part, so the record behind them tells their seq. */
static void
assign_spots(QcRecovery *rc)
{
	for (uint32_t i = 0; i < rc->nspots; i++)
	{
		const QcSpot *spot = &rc->spots[i];
		QcBundlePart *part = rc->bundle.parts;

		if (!spot->message || spot->solo || spot->before != rc->bundle.seq)
			continue;
		while (part->log_index != spot->log_index)
			part++;
		part->ndamaged++;
		part->spot = i;
	}
}

QcStatus
qc_merge_next(QcRecovery *rc, QcError *err)
{
	uint64_t	seq = qc_merge_peek(rc);
	QcStatus	status = QC_OK;

	if (seq == QC_NO_SEQ)
		return QC_END;
	qc_bundle_clear(&rc->bundle, seq);
	while (qc_merge_peek(rc) == seq && status == QC_OK)
		status = take_run(rc, heap_pop(rc), seq, err);
	if (status != QC_OK)
		return status;
	qc_bundle_sort(&rc->bundle);
	assign_spots(rc);
	return QC_OK;
}

/* Could the spot have held this entry? */
static bool
spans(const QcSpot *spot, uint64_t seq)
{
	return spot->after < seq && seq < spot->before;
}

QcSpot *
qc_merge_excuse(QcRecovery *rc, uint64_t seq)
{
	QcSpot	   *best = NULL;
	QcLogTail  *tail;

	for (uint32_t i = 0; i < rc->nspots; i++)
	{
		QcSpot	   *spot = &rc->spots[i];

		/* the one that can serve the fewest other entries */
		if (spot->solo && !spot->used && spans(spot, seq) &&
			(best == NULL || spot->before < best->before))
			best = spot;
	}
	if (best == NULL)
		return NULL;
	best->used = true;

	/* The damaged record belongs to the log, so its end moves on behind it. */
	tail = &rc->logs[best->log_index];
	if (tail->tail_file < best->file ||
		(tail->tail_file == best->file && tail->tail_position <= best->position))
	{
		tail->tail_file = best->file;
		tail->tail_position = best->position + best->size;
		tail->clean = best->before == QC_NO_SEQ;
	}
	return best;
}

const QcSpot *
qc_merge_suspect(const QcRecovery *rc, uint64_t seq)
{
	for (uint32_t i = 0; i < rc->nspots; i++)
	{
		const QcSpot *spot = &rc->spots[i];

		if (spot->after <= seq && seq <= spot->before)
			return spot;
	}
	return NULL;
}
