/*
 * qc_ring.c
 *		The shared buffer between reservation and the files.
 */
#include "qc_ring.h"

#include <assert.h>
#include <string.h>

#include "qc_mutant.h"

#define ROUND16(n) (((n) + 15) / 16 * 16)
#define SLICES_MAX 256
#define PAGE 4096

_Static_assert(sizeof(QcRingEntry) == 32 && sizeof(QcPart) == 32, "ring layout");

static uint8_t *
buffer(QcRing *ring)
{
	return (uint8_t *) ring + ROUND16(sizeof(QcRing));
}

static QcRingEntry *
entry_at(QcRing *ring, uint64_t offset)
{
	return (QcRingEntry *) (buffer(ring) + offset % ring->size);
}

uint64_t
qc_ring_block_size(uint64_t size)
{
	return ROUND16(sizeof(QcRing)) + ROUND16(size);
}

QcRing *
qc_ring_init(void *block, uint64_t size, uint64_t last_seq)
{
	QcRing	   *ring = block;

	memset(ring, 0, sizeof(*ring));
	ring->size = size / 16 * 16;
	atomic_store(&ring->written_seq, last_seq);
	atomic_store(&ring->durable_seq, last_seq);
	return ring;
}

uint64_t
qc_ring_need(const QcRing *ring, uint32_t nparts, uint64_t bytes, bool *big)
{
	uint64_t	need = sizeof(QcRingEntry) + (uint64_t) nparts * sizeof(QcPart) + ROUND16(bytes);

	*big = need > ring->size / 8;
	return *big ? need - ROUND16(bytes) : need;
}

/* An entry never wraps: one that does not fit before the end of the buffer takes the rest of it as well. */
bool
qc_ring_has_room(const QcRing *ring, uint64_t need)
{
	uint64_t	head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint64_t	used = head - atomic_load_explicit(&ring->written, memory_order_acquire);
	uint64_t	to_end = ring->size - head % ring->size;

	assert(need <= qc_ring_need_max(ring));
	return used + need + (to_end < need ? to_end : 0) <= ring->size;
}

void
qc_ring_touch(QcRing *ring, uint64_t need)
{
	uint64_t	head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	for (uint64_t at = 0; at < need; at += PAGE)
		(void) *(volatile uint8_t *) (buffer(ring) + (head + at) % ring->size);
	(void) *(volatile uint8_t *) (buffer(ring) + (head + need) % ring->size);
}

QcRingEntry *
qc_ring_take(QcRing *ring, uint64_t need, uint64_t seq, uint32_t nparts)
{
	uint64_t	head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint64_t	to_end = ring->size - head % ring->size;
	QcRingEntry *entry;

	assert(qc_ring_has_room(ring, need));
	if (to_end < need)
	{
		/*
		 * A filler has room for its header: everything is a multiple of 16 and of at least 32
		 * bytes, or it is implied.
		 */
		if (to_end >= sizeof(QcRingEntry))
		{
			entry = entry_at(ring, head);
			entry->seq = 0;
			entry->size = (uint32_t) to_end;
			entry->nparts = 0;
			atomic_store_explicit(&entry->filled, 1, memory_order_relaxed);
		}
		head += to_end;
	}
	entry = entry_at(ring, head);
	entry->seq = seq;
	entry->size = (uint32_t) need;
	entry->nparts = nparts;
	atomic_store_explicit(&entry->filled, 0, memory_order_relaxed);
	atomic_store_explicit(&ring->head, head + need, memory_order_release);
	return entry;
}

void
qc_ring_fill(QcRingEntry *entry)
{
	atomic_store_explicit(&entry->filled, 1, memory_order_release);
}

/* Walks the entries from `written` on that are filled without a gap. */
typedef struct Walk
{
	QcRing	   *ring;
	uint64_t	at;
	uint64_t	head;
} Walk;

static QcRingEntry *
walk_next(Walk *walk)
{
	for (;;)
	{
		uint64_t	to_end = walk->ring->size - walk->at % walk->ring->size;
		QcRingEntry *entry;

		if (walk->at == walk->head)
			return NULL;
		if (to_end < sizeof(QcRingEntry))
		{
			walk->at += to_end;
			continue;
		}
		entry = entry_at(walk->ring, walk->at);
		if (atomic_load_explicit(&entry->filled, memory_order_acquire) == 0)
			return NULL;
		walk->at += entry->size;
		if (entry->seq != 0)
			return entry;
	}
}

static Walk
walk_begin(QcRing *ring)
{
	return (Walk)
	{
		ring, atomic_load_explicit(&ring->written, memory_order_relaxed),
			atomic_load_explicit(&ring->head, memory_order_acquire)
	};
}

uint64_t
qc_ring_filled_seq(QcRing *ring)
{
	Walk		walk = walk_begin(ring);
	uint64_t	seq = atomic_load_explicit(&ring->written_seq, memory_order_relaxed);
	QcRingEntry *entry;

	while ((entry = walk_next(&walk)) != NULL)
		seq = entry->seq;
	return seq;
}

/* Write lock: note that a file has bytes that are not synced. */
static void
note_dirty(QcState *st, QcRing *ring, QcLog *log, uint64_t file)
{
	if (log->dirty_first == 0)
	{
		log->dirty_first = log->dirty_last = file;
		log->dirty_next = ring->dirty_logs;
		ring->dirty_logs = QC_REF(st, log);
		return;
	}
	if (file < log->dirty_first)
		log->dirty_first = file;
	if (file > log->dirty_last)
		log->dirty_last = file;
}

/* One pwritev under construction: consecutive bytes of one file. */
typedef struct Run
{
	QcLog	   *log;
	uint64_t	file;
	uint64_t	position;
	uint64_t	end;
	int			n;
	QcIoSlice	slices[SLICES_MAX];
} Run;

static QcStatus
run_write(QcFiles *files, Run *run, QcError *err)
{
	QcHandle	handle;
	QcStatus	status;
	int			rc;

	if (run->n == 0)
		return QC_OK;
	status = qc_files_get(files, run->log->id, run->file, true, &handle, err);
	if (status != QC_OK)
		return status;
	rc = files->io->write(files->io->context, handle, run->slices, run->n, run->position);
	run->n = 0;
	if (rc != 0)
	{
		char		path[QC_PATH_MAX];

		qc_path_file(path, files->layout, run->log->id, run->file, "qlog");
		return qc_error_sys(err, rc, path, "could not write log file");
	}
	return QC_OK;
}

static QcStatus
run_add(QcState *st, QcFiles *files, Run *run, const QcPart *part, const uint8_t *bytes,
		QcError *err)
{
	QcLog	   *log = QC_AT(st, QcLog, part->log);
	QcStatus	status = QC_OK;

	if (run->n > 0 && (run->log != log || run->file != part->file ||
					   run->end != part->position || run->n == SLICES_MAX))
		status = run_write(files, run, err);
	if (status != QC_OK)
		return status;
	if (run->n == 0)
	{
		run->log = log;
		run->file = part->file;
		run->position = part->position;
	}
	run->slices[run->n++] = (QcIoSlice)
	{
		bytes + part->offset, part->size
	};
	run->end = part->position + part->size;
	return QC_OK;
}

/*
 * Write the parts of one log of all entries in the walk.  Parts are grouped by log so that entries of several logs,
 * interleaved in the ring, still cost one write per log.
 */
static QcStatus
write_log(QcState *st, QcRing *ring, QcFiles *files, Walk walk, uint64_t stop, QcRef log, Run *run,
		  QcError *err)
{
	QcRingEntry *entry;
	QcStatus	status = QC_OK;

	run->n = 0;
	while (walk.at < stop && status == QC_OK && (entry = walk_next(&walk)) != NULL)
	{
		QcPart	   *parts = qc_ring_parts(entry);

		for (uint32_t i = 0; i < entry->nparts && status == QC_OK; i++)
		{
			if (parts[i].log != log)
				continue;
			note_dirty(st, ring, QC_AT(st, QcLog, log), parts[i].file);
			if (!parts[i].written)
				status = run_add(st, files, run, &parts[i], qc_ring_bytes(entry), err);
		}
	}
	return status == QC_OK ? run_write(files, run, err) : status;
}

#define LOGS_AT_ONCE 64

/* Distinct logs of the walk, up to LOGS_AT_ONCE; the walk ends before the entry that would exceed it. */
static uint32_t
collect_logs(Walk *walk, QcRef logs[LOGS_AT_ONCE], uint64_t *last_seq, QcRingEntry **wide)
{
	uint32_t	n = 0;
	Walk		ahead = *walk;
	QcRingEntry *entry;

	*wide = NULL;
	while ((entry = walk_next(&ahead)) != NULL)
	{
		QcPart	   *parts = qc_ring_parts(entry);
		uint32_t	before = n;

		for (uint32_t i = 0; i < entry->nparts; i++)
		{
			uint32_t	k = 0;

			while (k < n && logs[k] != parts[i].log)
				k++;
			if (k < n)
				continue;
			if (n == LOGS_AT_ONCE)
			{
				if (before == 0)
				{
					*wide = entry;
					*last_seq = entry->seq;
					*walk = ahead;
				}
				return before;
			}
			logs[n++] = parts[i].log;
		}
		*last_seq = entry->seq;
		*walk = ahead;
	}
	return n;
}

/* An entry over more logs than are collected at once: part by part, parts of a log stand together. */
static QcStatus
write_wide(QcState *st, QcRing *ring, QcFiles *files, QcRingEntry *entry, Run *run, QcError *err)
{
	QcPart	   *parts = qc_ring_parts(entry);
	QcStatus	status = QC_OK;

	run->n = 0;
	for (uint32_t i = 0; i < entry->nparts && status == QC_OK; i++)
	{
		note_dirty(st, ring, QC_AT(st, QcLog, parts[i].log), parts[i].file);
		if (!parts[i].written)
			status = run_add(st, files, run, &parts[i], qc_ring_bytes(entry), err);
	}
	return status == QC_OK ? run_write(files, run, err) : status;
}

QcStatus
qc_ring_write(QcState *st, QcRing *ring, QcFiles *files, QcError *err)
{
	Walk		walk = walk_begin(ring);

	for (;;)
	{
		Walk		start = walk;
		QcRef		logs[LOGS_AT_ONCE];
		uint64_t	seq = 0;
		QcRingEntry *wide;
		uint32_t	n = collect_logs(&walk, logs, &seq, &wide);
		Run			run;
		QcStatus	status = QC_OK;

		if (n == 0 && wide == NULL)
			return QC_OK;
		if (wide != NULL)
			status = write_wide(st, ring, files, wide, &run, err);
		for (uint32_t i = 0; i < n && status == QC_OK; i++)
			status = write_log(st, ring, files, start, walk.at, logs[i], &run, err);
		if (status != QC_OK)
			return status;
		atomic_store_explicit(&ring->written, walk.at, memory_order_release);
		atomic_store_explicit(&ring->written_seq, seq, memory_order_release);
		if (QC_MUTATED(QC_MUTANT_APPLY_BEFORE_DURABLE))
			qc_ring_publish(ring, seq);
	}
}

uint32_t
qc_ring_take_dirty(QcState *st, QcRing *ring, QcDirtyFile *out, uint32_t max, uint64_t *seq,
				   bool *more)
{
	uint32_t	n = 0;

	*seq = atomic_load_explicit(&ring->written_seq, memory_order_relaxed);
	if (QC_MUTATED(QC_MUTANT_ACK_PER_LOG))
		max = 1;
	while (ring->dirty_logs != 0 && n < max)
	{
		QcLog	   *log = QC_AT(st, QcLog, ring->dirty_logs);

		out[n++] = (QcDirtyFile)
		{
			log->id, log->dirty_first
		};
		if (log->dirty_first < log->dirty_last)
		{
			log->dirty_first++;
			continue;
		}
		log->dirty_first = log->dirty_last = 0;
		ring->dirty_logs = log->dirty_next;
		log->dirty_next = 0;
	}
	*more = ring->dirty_logs != 0 && !QC_MUTATED(QC_MUTANT_ACK_PER_LOG);
	return n;
}

QcStatus
qc_ring_sync_file(QcFiles *files, const QcDirtyFile *file, QcError *err)
{
	QcHandle	handle;
	QcStatus	status = qc_files_get(files, file->log, file->file, true, &handle, err);
	int			rc;

	if (status != QC_OK)
		return status;
	rc = files->io->sync(files->io->context, handle);
	if (rc != 0)
	{
		char		path[QC_PATH_MAX];

		qc_path_file(path, files->layout, file->log, file->file, "qlog");
		return qc_error_sys(err, rc, path, "could not sync log file");
	}
	return QC_OK;
}

void
qc_ring_publish(QcRing *ring, uint64_t seq)
{
	assert(seq <= atomic_load_explicit(&ring->written_seq, memory_order_relaxed));
	if (seq > atomic_load_explicit(&ring->durable_seq, memory_order_relaxed))
		atomic_store_explicit(&ring->durable_seq, seq, memory_order_release);
}
