/*
 * wrk_upkeep.c
 *		What the checkpointer worker does between checkpoints: dropped queues, room ahead in busy logs, indexes of closed
 *		files, directories of logs that are gone.
 */
#include "wrk_checkpoint.h"

#include "access/xact.h"

#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "qlog_commit.h"
#include "qlog_guc.h"
#include "qlog_io.h"

#include "../core/qc_catalog.h"
#include "../core/qc_dedup.h"
#include "../core/qc_group.h"

#define INDEX_MAX	32			/* closed files looked at per checkpoint */
#define SWEEP_ROWS	1000		/* rows of dropped queues freed per hold of the state lock */

bool
qlog_upkeep_dropped(void)
{
	bool		more;

	qlog_lock_state();
	more = qlog_state->dead_queues != 0 && qc_queue_sweep(qlog_state, SWEEP_ROWS);
	more = (qlog_state->dead_groups != 0 && qc_group_sweep(qlog_state, SWEEP_ROWS)) || more;
	qlog_unlock_state();
	return more;
}

bool
qlog_upkeep_dedups(void)
{
	bool		freed;

	qlog_lock_state();
	freed = qc_dedup_sweep(qlog_state, qlog_now(), SWEEP_ROWS);
	qlog_unlock_state();
	return freed;
}

/*
 * A log whose room is more than half used gets more, so that commits need not make it themselves.	Only busy logs: the
 * ones that have grown beyond their first bytes.
 */
static bool
wants_room(const QcLog *log, QcExtend *extend)
{
	uint64		segment = qlog_segment_bytes();
	uint64		step = Min(Max(log->last_allocated, QC_EXTEND_MIN), QC_EXTEND_MAX);

	if (log->last_file != log->file || log->allocated <= QC_EXTEND_MIN ||
		log->allocated - log->tail > step / 2)
		return false;
	extend->log = log->id;
	extend->create = log->allocated >= segment;
	extend->file = extend->create ? log->last_file + 1 : log->last_file;
	extend->from = extend->create ? 0 : log->last_allocated;
	extend->to = extend->create ? Min(QC_EXTEND_MAX, segment) : Min(log->last_allocated + step, segment);
	return true;
}

bool
qlog_upkeep_extend(QlogWorker *worker)
{
	QcExtend	extend;
	QcError		err;
	bool		found = false;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	for (QcLog *log = QC_AT(qlog_state, QcLog, qlog_state->logs); log != NULL && !found;
		 log = QC_AT(qlog_state, QcLog, log->next))
		found = wants_room(log, &extend);
	LWLockRelease(&qlog_shared->state_lock);
	if (!found)
		return false;
	qc_error_clear(&err);
	if (qlog_extend(&extend, &err) == QC_OK)
		return true;

	/* Whoever needs the room will try again and say so to its user. */
	qlog_worker_error(worker, &err, "could not extend a log ahead of need");
	return false;
}

/* Every file of a log below this one has its index, or had its chance. */
typedef struct Indexed
{
	uint64		log;			/* key */
	uint64		file;
} Indexed;

static HTAB *indexed = NULL;

static void
make_indexed(void)
{
	HASHCTL		ctl = {.keysize = sizeof(uint64), .entrysize = sizeof(Indexed), .hcxt = TopMemoryContext};

	indexed = hash_create("qlog indexed files", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* A log with a closed file that is not known to have an index, and the seq that closed it at the latest. */
static bool
find_closed(uint64 *log_id, uint64 *active, uint64 *seq)
{
	bool		found = false;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	for (QcLog *log = QC_AT(qlog_state, QcLog, qlog_state->logs); log != NULL && !found;
		 log = QC_AT(qlog_state, QcLog, log->next))
	{
		const Indexed *known = log->file > 1 ? hash_search(indexed, &log->id, HASH_FIND, NULL) : NULL;

		found = log->file > 1 && (known == NULL || known->file < log->file);
		*log_id = log->id;
		*active = log->file;
		*seq = qlog_state->seq;
	}
	LWLockRelease(&qlog_shared->state_lock);
	return found;
}

/*
 * Is there an index of the file, as far as its header and its size tell?  Of all closed files no more is looked at after
 * a start; a reader checks the rest, and does without an index that is wrong.
 */
static bool
has_index(uint64 log, uint64 file)
{
	const QcIo *io = qlog_io();
	char		path[QC_PATH_MAX];
	uint8		header[QC_IDX_HEADER_SIZE];
	uint64		size = 0;
	size_t		done = 0;
	uint32		count;
	QcHandle	handle;
	QcError		err;
	bool		right;

	qc_path_file(path, qlog_files()->layout, log, file, "qidx");
	if (io->open(io->context, path, 0, &handle) != 0)
		return false;
	qc_error_clear(&err);
	right = io->size(io->context, handle, &size) == 0 &&
		io->read(io->context, handle, header, sizeof(header), 0, &done) == 0 &&
		done == sizeof(header) && qc_idx_count(header, file, &count, &err) == QC_OK &&
		size == QC_IDX_HEADER_SIZE + (uint64) count * QC_IDX_ENTRY_SIZE;
	io->close(io->context, handle);
	if (!right)
		ereport(LOG,
				(errmsg("qlog: index \"%s\" is damaged and is made again", path)));
	return right;
}

/*
 * Its bytes up to seq may still stand in the ring.  A file without index is read whole when it is needed, no worse; one
 * that is missing is an error of whoever needs it.
 */
static void
make_index(QlogWorker *worker, uint64 log, uint64 file, uint64 seq)
{
	QcError		err;

	qc_error_clear(&err);
	if (has_index(log, file) ||
		(qlog_write_noerror(seq, &err) &&
		 qc_read_build_idx(qlog_files(), log, file, &err) == QC_OK) ||
		err.code == QC_MISSING)
		return;
	qlog_worker_error(worker, &err, "could not index a closed log file");
}

bool
qlog_upkeep_index(QlogWorker *worker)
{
	uint64		log;
	uint64		active;
	uint64		seq;
	Indexed    *known;
	bool		seen;

	if (indexed == NULL)
		make_indexed();
	if (!find_closed(&log, &active, &seq))
		return false;
	known = hash_search(indexed, &log, HASH_ENTER, &seen);
	if (!seen)
		known->file = 1;
	for (int i = 0; i < INDEX_MAX && known->file < active && !qlog_worker_shutdown(); i++)
		make_index(worker, log, known->file++, seq);
	return true;
}

uint32
qlog_upkeep_removable(uint64 *logs, uint32 max)
{
	uint32		n = 0;

	qlog_lock_state();
	while (n < max && (logs[n] = qc_log_remove_next(qlog_state)) != 0)
		n++;
	qlog_unlock_state();
	return n;
}

void
qlog_upkeep_remove(QlogWorker *worker, const uint64 *logs, uint32 n)
{
	for (uint32 i = 0; i < n; i++)
	{
		QcError		err;

		if (indexed != NULL)
			(void) hash_search(indexed, &logs[i], HASH_REMOVE, NULL);

		/* What is left behind is an unknown directory: the next start retires it. */
		qc_error_clear(&err);
		if (qc_log_remove_files(qlog_files(), logs[i], &err) != QC_OK)
			qlog_worker_error(worker, &err, "could not remove the log of a dropped queue");
	}
}
