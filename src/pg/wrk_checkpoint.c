/*
 * wrk_checkpoint.c
 *		The checkpointer worker's loop.
 *
 * A checkpoint: dump the changed rows (a consistent copy at seq `mark`), flush the WAL through the newest commit record
 * that the copy has taken for decided, make our log durable through the mark, store the rows in one LMDB transaction.
 * Only this process touches LMDB.
 *
 * The copy is taken under one hold of the state lock.	What makes it long is done before: as long as many rows are dirty,
 * they are dumped ahead in slices, each of which holds the lock for a fraction of a millisecond.
 *
 * Rows that were dumped are clean in the state, so a batch must be finished and stored before the next dump: when it
 * cannot be, it is kept and tried again, and new work is refused meanwhile (QlogShared.store_full).
 */
#include "wrk_checkpoint.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"

#include "utils/memutils.h"

#include "qlog_backup.h"
#include "qlog_commit.h"
#include "qlog_disk.h"
#include "qlog_fault.h"
#include "qlog_floor.h"
#include "qlog_guc.h"
#include "qlog_io.h"
#include "qlog_refusal.h"
#include "qlog_report.h"
#include "qlog_snapshot.h"
#include "qlog_stop.h"

#include "../core/qc_dir.h"
#include "../core/qc_rows.h"

#define BATCH_MIN		(1024 * 1024)
#define DIRTY_MAX		20000	/* rows from which a checkpoint is taken early */
#define SLICE_ROWS		400		/* dumped ahead under one hold of the state lock */
#define SLICE_BYTES		65536	/* free in the batch when slices begin */
#define SLICE_PAUSE_US	200		/* for those who wait for the lock */
#define COPY_ROWS		800		/* dirty rows that the consistent copy may begin with ... */
#define PASSES_MAX		20		/* ... unless this many passes have not brought it down to them */
#define REMOVE_MAX		256		/* logs removed per checkpoint */
#define RETRY_MS		1000
#define DISK_MS			1000	/* between looks at a disk that had no room */
#define ROOM_MS			5000	/* until a start that lacked room on the disk is tried again */

PGDLLEXPORT void qlog_checkpointer_main(Datum arg);

/* A dump that is not stored yet. */
typedef struct Batch
{
	uint8	   *bytes;
	size_t		cap;
	size_t		len;			/* 0 = none */
	bool		whole;			/* ends with the consistent copy */
	QcRowsMark	mark;
	uint64		removed[REMOVE_MAX];
	uint32		nremoved;
} Batch;

static QsStore *store;
static int	map_max;			/* qlog.checkpoint_max_size with which it was opened */
static Batch batch;

/* Make room for `more` bytes behind what is in the batch. */
static QcStatus
grow(uint64 more, QcError *err)
{
	uint64		want = batch.len + more;
	uint8	   *bytes;

	if (want <= batch.cap)
		return QC_OK;
	want = Max(Max(want, batch.cap * 2), BATCH_MIN);
	bytes = MemoryContextAllocExtended(TopMemoryContext, want, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (bytes == NULL)
		return qc_error_set(err, QC_FULL, "no memory for a checkpoint of " UINT64_FORMAT " bytes", want);
	if (batch.len > 0)
		memcpy(bytes, batch.bytes, batch.len);
	if (batch.bytes != NULL)
		pfree(batch.bytes);
	batch.bytes = bytes;
	batch.cap = (size_t) want;
	return QC_OK;
}

/* One slice of a pass, or (slice = false) the copy, behind what is in the batch. */
static QcStatus
dump_part(bool slice, QcError *err)
{
	QcWriter	w;
	QcStatus	status;

	qc_writer_init(&w, batch.bytes, batch.cap);
	w.len = batch.len;
	qlog_lock_state();
	status = slice ? qc_rows_ahead(qlog_state, &w, SLICE_ROWS, err) :
		qc_rows_dump(qlog_state, &w, &batch.mark, err);
	qlog_unlock_state();
	batch.len = w.len;
	return status;
}

static uint32
dirty_rows(void)
{
	uint32		n;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	n = qlog_state->ndirty;
	LWLockRelease(&qlog_shared->state_lock);
	return n;
}

/* Dump ahead until few rows are dirty. */
static QcStatus
dump_ahead(QcError *err)
{
	QcStatus	status = grow(SLICE_BYTES, err);

	for (int pass = 0; status == QC_OK && pass < PASSES_MAX && dirty_rows() > COPY_ROWS; pass++)
	{
		while (status == QC_OK && (status = dump_part(true, err)) != QC_END)
		{
			if (status == QC_SHORT)
				status = grow(batch.cap + 1, err);
			pg_usleep(SLICE_PAUSE_US);
		}
		if (status == QC_END)
			status = QC_OK;
		QLOG_STOP("checkpoint-after-pass");
	}
	return status;
}

/* Dump what has changed into the batch, or go on with one that could not be finished; QC_END = nothing has. */
static QcStatus
dump(QcError *err)
{
	QcStatus	status;
	uint64		want;

	if (batch.nremoved == 0)
		batch.nremoved = qlog_upkeep_removable(batch.removed, REMOVE_MAX);
	status = dump_ahead(err);
	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	want = qc_rows_estimate(qlog_state) * 2;
	LWLockRelease(&qlog_shared->state_lock);
	while (status == QC_OK && (status = grow(want, err)) == QC_OK)
	{
		status = dump_part(false, err);
		batch.whole = status == QC_OK;
		if (status != QC_SHORT)
			break;
		want *= 2;
		status = QC_OK;
	}
	return status;
}

static QcStatus
open_store(QcError *err)
{
	char		path[MAXPGPATH];
	QcStatus	status;

	qlog_store_path(path);
	map_max = qlog_checkpoint_max_size;
	do
		status = qs_open(path, (uint64) map_max * 1024 * 1024, false, false, &store, err);
	while (status == QC_NOSPACE && qlog_disk_give(qlog_disk_device(path)));
	return status;
}

/* The setting has changed: the store is opened anew with it. */
static QcStatus
follow_map_setting(QcError *err)
{
	if (store != NULL && map_max == qlog_checkpoint_max_size)
		return QC_OK;
	if (store != NULL)
		qs_close(store);
	store = NULL;
	return open_store(err);
}

/*
 * The store does not expect these logs any more: remove their files, and take what the new mark allows to go out of the
 * state, for the next dump.  What older entries have in them goes too, so no start may begin below this mark any more.
 * No base backup runs.
 */
static void
remove_logs(QlogWorker *worker)
{
	QcError		err;

	qc_error_clear(&err);
	if (batch.nremoved > 0 &&
		qlog_floor_raise(qlog_start_floor(), &err) != QC_OK)
	{
		qlog_worker_error(worker, &err, "could not remove the logs of dropped queues");
		return;
	}
	qlog_upkeep_remove(worker, batch.removed, batch.nremoved);
	batch.nremoved = qlog_upkeep_removable(batch.removed, REMOVE_MAX);
}

/* One attempt to store the batch. */
static QcStatus
apply_batch(QcError *err)
{
	QcStatus	status = follow_map_setting(err);
	int			fault = qlog_fault_need(QLOG_FAULT_STORE, batch.len);

	if (status == QC_OK && fault != 0)
		status = qc_error_sys(err, fault, "store", "could not write");
	if (status == QC_OK)
		status = qs_apply(store, batch.bytes, batch.len, err);

	/* LMDB may refuse to go on after an error of I/O: it is opened anew for the next attempt. */
	if (status == QC_IO && store != NULL)
	{
		qs_close(store);
		store = NULL;
	}
	return status;
}

/* Store the batch, if need be from the reserve; what it says is durable elsewhere.	No base backup runs. */
static QcStatus
put_batch(QlogWorker *worker, QcError *err)
{
	char		path[MAXPGPATH];
	QcStatus	status;

	qlog_store_path(path);
	do
		status = apply_batch(err);
	while (status == QC_NOSPACE && qlog_disk_give(qlog_disk_device(path)));
	if (status != QC_OK)
		return status;
	QLOG_STOP("checkpoint-after-apply");
	batch.len = 0;
	batch.whole = false;
	qlog_lock_state();
	qc_rows_stored(qlog_state, &batch.mark);
	qlog_state->counters.checkpoints++;
	qlog_unlock_state();
	remove_logs(worker);
	return QC_OK;
}

/* Make durable what the batch relies on, then store it; QC_BUSY = not now, a base backup runs. */
static QcStatus
store_batch(QlogWorker *worker, QcError *err)
{
	QcStatus	status = QC_OK;

	if (batch.whole)
	{
		if (batch.mark.commit_lsn != 0)
			XLogFlush(batch.mark.commit_lsn);
		qlog_flush(batch.mark.seq);
	}
	else if (batch.nremoved == 0)
		return QC_OK;
	QLOG_STOP("checkpoint-before-apply");
	if (!qlog_backup_keep_out())
		return QC_BUSY;
	if (batch.whole)
		status = put_batch(worker, err);
	else
		remove_logs(worker);
	qlog_backup_let_in();
	return status;
}

/* What was asked for is stored. */
static void
answer(uint32 asked)
{
	if (asked == pg_atomic_read_u32(&qlog_shared->checkpoints_done))
		return;
	pg_atomic_write_u32(&qlog_shared->checkpoints_done, asked);
	ConditionVariableBroadcast(&qlog_shared->checkpoint_cv);
}

static bool
is_asked(void)
{
	return pg_atomic_read_u32(&qlog_shared->checkpoints_asked) !=
		pg_atomic_read_u32(&qlog_shared->checkpoints_done);
}

/* One checkpoint; true = everything that was dirty is stored. */
static bool
checkpoint(QlogWorker *worker)
{
	int64		began = qlog_monotonic();
	uint32		asked = pg_atomic_read_u32(&qlog_shared->checkpoints_asked);
	QcError		err;
	QcStatus	status = QC_OK;

	qc_error_clear(&err);
	qlog_worker_state(worker, "checkpoint");
	if (batch.len == 0 && qlog_backup_runs())
		status = QC_BUSY;
	else if (!batch.whole)
		status = dump(&err);
	if (status == QC_OK || status == QC_END)
		status = store_batch(worker, &err);
	if (status == QC_BUSY)
	{
		qlog_worker_state(worker, "waiting for a base backup");
		return false;
	}
	if (status != QC_OK && status != QC_END)
	{
		qlog_checkpoint_failed(worker, &err, "could not store a checkpoint");
		pg_atomic_write_u32(&qlog_shared->store_full, 1);
		return false;
	}
	if (pg_atomic_read_u32(&qlog_shared->store_full) != 0)
	{
		pg_atomic_write_u32(&qlog_shared->store_full, 0);
		qlog_worker_error(worker, NULL, NULL);
	}
	worker->passes++;
	worker->last_pass_us = qlog_monotonic() - began;
	worker->last_pass_at = GetCurrentTimestamp();
	answer(asked);
	return true;
}

/* Is there anything that a checkpoint would store, or a reader's request, and how urgent is it? */
static bool
dirty(bool *urgent)
{
	static uint64 bytes_seen = 0;
	bool		found;
	bool		waits;
	bool		ready;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	qc_log_removal(qlog_state, &waits, &ready);
	found = ready || qlog_state->ndirty > 0 || qlog_state->seq != qlog_state->checkpoint_seq ||
		batch.nremoved > 0 || qlog_shared->lacking_file != 0 || is_asked();
	*urgent = is_asked() || qlog_state->ndirty > DIRTY_MAX ||
		qlog_state->counters.bytes - bytes_seen > (uint64) qlog_checkpoint_bytes * 1024 * 1024;
	if (*urgent)
		bytes_seen = qlog_state->counters.bytes;
	LWLockRelease(&qlog_shared->state_lock);
	if (waits)
		qlog_snapshot_wish();
	return found;
}

/* Take a snapshot when one is due and everything is stored. */
static bool
snapshot(QlogWorker *worker)
{
	if (batch.len > 0 || store == NULL || qlog_snapshot_due_in() != 0)
		return false;
	qlog_snapshot_take(worker, store);
	return true;
}

/* Nothing is left to do: sleep until somebody logs something, or a snapshot is due. */
static void
rest(QlogWorker *worker)
{
	bool		urgent;
	int64		due;

	qlog_worker_state(worker, "idle");

	/*
	 * Whoever comes from now on wakes us; what came before, a wish for a snapshot too, is seen
	 * below.
	 */
	pg_atomic_write_u32(&qlog_shared->resting, 1);
	pg_memory_barrier();
	due = qlog_snapshot_due_in();
	if (qlog_disk_watch())
		due = due < 0 ? DISK_MS : Min(due, DISK_MS);
	if (!dirty(&urgent) && due != 0)
		qlog_worker_sleep((long) due);
	pg_atomic_write_u32(&qlog_shared->resting, 0);
}

/* Sleep for the checkpoint interval, less when many rows become dirty, doing the small things meanwhile. */
static void
work_until_due(QlogWorker *worker, int64 due)
{
	bool		urgent = false;

	while (!qlog_worker_shutdown() && !urgent && qlog_monotonic() < due)
	{
		long		left = (long) ((due - qlog_monotonic()) / 1000) + 1;
		bool		busy = qlog_upkeep_dropped();

		qlog_disk_upkeep(false);
		busy = qlog_upkeep_dedups() || busy;
		busy = qlog_upkeep_extend(worker) || busy;
		busy = qlog_upkeep_estimates(worker) || busy;
		(void) dirty(&urgent);
		if (!busy && !urgent)
			qlog_worker_sleep(Min(left, 100));
	}
}

/* Snapshots and derived files: not what the reserve is for.	true = more is left to do. */
static bool
extras(QlogWorker *worker)
{
	bool		more;

	(void) qlog_disk_entitle(false);
	more = snapshot(worker);
	more = qlog_upkeep_warm(worker) || more;
	more = qlog_upkeep_index(worker) || more;
	(void) qlog_disk_entitle(true);
	return more;
}

static void
serve(QlogWorker *worker)
{
	while (!qlog_worker_shutdown())
	{
		int64		due = qlog_monotonic() + (int64) qlog_checkpoint_timeout * 1000;
		bool		urgent;

		qlog_disk_upkeep(false);
		if (!dirty(&urgent) && batch.len == 0)
		{
			/* What was dropped is freed to its end, though nobody logs anything. */
			if (!qlog_upkeep_dropped() && !extras(worker))
				rest(worker);
			continue;
		}
		qlog_worker_state(worker, "waiting");
		work_until_due(worker, due);
		if (!checkpoint(worker) && !qlog_worker_shutdown())
			qlog_worker_sleep(RETRY_MS);
		(void) extras(worker);
	}
}

/* Everybody may have left something unsynced: nobody does it after us, except themselves. */
static void
leave(int code, Datum arg)
{
	(void) code;
	(void) arg;
	pg_atomic_write_u32(&qlog_shared->leaving, 1);
	if (pg_atomic_read_u32(&qlog_shared->gate) == QLOG_GATE_READY)
		qlog_flush(qlog_newest_seq());
	if (batch.len > 0)
		qlog_shared->batch_lost = true;
	if (store != NULL)
		qs_close(store);
	store = NULL;
}

/* They have waited for the gate. */
static void
wake_workers(void)
{
	for (int i = 0; i < QLOG_WORKER_COUNT; i++)
		qlog_worker_wake((QlogWorkerKind) i);
}

/*
 * Recover and open the gate, or close it with the reason.  It is tried again, in a new process, when qlog.allow_gap is set
 * meanwhile, when qlog_repair(NULL) grants what stands in the way, and after a while when there was no room.
 */
static void
start(QlogWorker *worker)
{
	QcError		err;
	bool		allow_gap;
	int64		again = INT64_MAX;

	qc_error_clear(&err);
	map_max = qlog_checkpoint_max_size;
	if (qlog_recover(worker, &store, &err) == QC_OK)
	{
		qlog_worker_error(worker, NULL, NULL);
		qlog_disk_upkeep(true);

		/* Logs that go on in new files do so for every start from now on. */
		while (qlog_shared->refusal.logs > 0 && !checkpoint(worker) && !qlog_worker_shutdown())
			qlog_worker_sleep(RETRY_MS);
		qlog_gate_set(QLOG_GATE_READY, NULL);
		wake_workers();
		return;
	}
	if (err.code == QC_INTERRUPTED)
		return;
	qlog_report_refused(LOG, &err, qlog_shared->refusal.possible);
	qlog_worker_error(worker, &err, "could not recover");
	qlog_gate_set(QLOG_GATE_FAILED, &err);
	pg_atomic_fetch_add_u32(&qlog_shared->failed_starts, 1);
	qlog_worker_state(worker, "failed");
	allow_gap = qlog_allow_gap;
	if (err.code == QC_NOSPACE)
		again = qlog_monotonic() + (int64) ROOM_MS * 1000;
	while (!qlog_worker_shutdown() && qlog_allow_gap <= allow_gap && !qlog_refusal_granted() &&
		   qlog_monotonic() < again)
		qlog_worker_sleep(err.code == QC_NOSPACE ? ROOM_MS : -1);
}

/* This worker has ended and was started again, while the state lives on. */
static void
resume(QlogWorker *worker)
{
	QcError		err;

	if (qlog_shared->batch_lost)
		ereport(PANIC,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("the checkpointer of qlog ended with a checkpoint that it could not store"),
				 errdetail("The state in memory cannot be stored any more; it is rebuilt from the last checkpoint and the log.")));
	qc_error_clear(&err);
	if (open_store(&err) != QC_OK)
		qlog_report(ERROR, &err, "could not open the checkpoint store");
	qlog_worker_error(worker, NULL, NULL);
}

void
qlog_checkpointer_main(Datum arg)
{
	QlogWorker *worker = qlog_worker_begin((QlogWorkerKind) DatumGetInt32(arg));

	before_shmem_exit(leave, 0);
	pg_atomic_write_u32(&qlog_shared->leaving, 0);
	if (pg_atomic_read_u32(&qlog_shared->gate) == QLOG_GATE_READY)
		resume(worker);
	else
		start(worker);
	if (pg_atomic_read_u32(&qlog_shared->gate) == QLOG_GATE_READY)
		serve(worker);
	qlog_worker_exit(worker);
}

void
qlog_checkpointer_register(void)
{
	qlog_worker_register(QLOG_WORKER_CHECKPOINTER, "qlog checkpointer", "qlog_checkpointer_main");
}
