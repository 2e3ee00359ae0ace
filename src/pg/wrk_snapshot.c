/*
 * wrk_snapshot.c
 *		The checkpointer worker's snapshots (core/qc_snapshot.h), and those who wait for them.
 *
 * A snapshot is a copy of the rows of the store, read in one transaction of LMDB, so it needs no lock and nobody waits for
 * it.  It is written beside and gets its name, and older ones go, while no base backup runs.  The new one is there before an
 * old one goes, and only then the floor rises.
 */
#include "wrk_checkpoint.h"

#include "miscadmin.h"
#include "storage/procsignal.h"
#include "utils/memutils.h"

#include "qlog_args.h"
#include "qlog_backup.h"
#include "qlog_compat.h"
#include "qlog_fault.h"
#include "qlog_guc.h"
#include "qlog_io.h"
#include "qlog_report.h"
#include "qlog_snapshot.h"
#include "qlog_stop.h"

#include "../core/qc_dir.h"
#include "../core/qc_snapshot.h"

#define WISH_MS			1000	/* between two snapshots that somebody waits for to have space back */
#define COST_FACTOR		20		/* and at least this many times as long as the last one took */
#define RETRY_MS		10000	/* after one that failed */
#define SIZE_FACTOR		4		/* log bytes for each byte of the last snapshot ... */
#define SEGMENTS		4		/* ... and at least so many segments, make one due early */

/* What this process knows of the last snapshot. */
typedef struct Taken
{
	bool		known;			/* the rest is set */
	uint64		seq;			/* newest one, 0 = there is none */
	int64		at;				/* monotonic */
	int64		us;				/* that it took */
	uint64		size;
	uint64		log_bytes;		/* of the counter, then */
	bool		failed;
	uint32		failed_asked;	/* snapshots_asked when it failed */
} Taken;

static Taken last;

/* Buffer and position of one that is being written. */
static QcSnapshotWriter *writer;

/* ---- the floor ---- */

uint64
qlog_start_floor(void)
{
	uint64		floor;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	floor = qc_start_floor(qlog_state);
	LWLockRelease(&qlog_shared->state_lock);
	return floor;
}

void
qlog_snapshot_wish(void)
{
	if (pg_atomic_exchange_u32(&qlog_shared->snapshot_wish, 1) == 0 &&
		pg_atomic_exchange_u32(&qlog_shared->resting, 0) != 0)
		qlog_worker_wake(QLOG_WORKER_CHECKPOINTER);
}

/* The oldest snapshot kept holds the floor; before there is one nothing may go, unless none is wanted. */
static void
hold_floor(uint64 oldest)
{
	if (oldest == UINT64_MAX && qlog_snapshot_interval > 0)
		oldest = 0;
	qlog_lock_state();
	qlog_state->snapshot_seq = oldest;
	qlog_unlock_state();
}

/* Remove all but the newest ones and what is of no use, and have the floor follow.  No base backup runs. */
static QcStatus
trim(uint32 kept, QcError *err)
{
	uint64_t	floor;
	uint64_t	oldest;
	QcStatus	status = qc_dir_read_floor(qlog_io(), &floor, err);

	if (status == QC_OK)
		status = qc_snapshot_trim(qlog_io(), kept, floor, &oldest, err);
	if (status == QC_OK)
		hold_floor(oldest);
	return status;
}

/* What there is when this process begins. */
static void
look_around(void)
{
	uint64_t	seqs[QC_SNAPSHOT_LIST_MAX];
	uint32_t	n = 0;
	QcError		err;

	if (last.known)
		return;
	last.known = true;
	last.at = qlog_monotonic();

	if (qc_snapshot_list(qlog_io(), seqs, &n, &err) == QC_OK && n > 0)
		last.seq = seqs[0];
}

void
qlog_snapshot_start(void)
{
	uint64_t	seqs[QC_SNAPSHOT_LIST_MAX];
	uint32_t	n = 0;
	QcError		err;

	/* What cannot be told holds everything. */
	hold_floor(qc_snapshot_list(qlog_io(), seqs, &n, &err) != QC_OK ? 0 :
			   n > 0 ? seqs[n - 1] : UINT64_MAX);
}

/* ---- is one due? ---- */

static uint64
log_bytes(uint64 *mark)
{
	uint64		bytes;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	bytes = qlog_state->counters.bytes;
	*mark = qlog_state->checkpoint_seq;
	LWLockRelease(&qlog_shared->state_lock);
	return bytes;
}

/* Milliseconds until one is due that time and bytes ask for; -1 = never as things are. */
static int64
due_in(void)
{
	int64		since = (qlog_monotonic() - last.at) / 1000;
	int64		cost = COST_FACTOR * last.us / 1000;
	int64		interval = (int64) qlog_snapshot_interval * 1000;
	uint64		mark;
	uint64		bytes = log_bytes(&mark) - last.log_bytes;

	bool		wish = pg_atomic_read_u32(&qlog_shared->snapshot_wish) != 0;

	if (last.failed)
		return Max(RETRY_MS - since, 0);
	if (mark == last.seq)
		return wish ? Max(WISH_MS - since, 0) : -1;
	if (qlog_snapshot_interval == 0)
		return -1;
	if (last.seq == 0)
		return 0;
	if (bytes > Max(SIZE_FACTOR * last.size, SEGMENTS * qlog_segment_bytes()))
		interval = Min(interval, cost);
	if (wish)
		interval = Min(interval, Max(WISH_MS, cost));
	return Max(interval - since, 0);
}

int64
qlog_snapshot_due_in(void)
{
	uint32		asked = pg_atomic_read_u32(&qlog_shared->snapshots_asked);

	/* Who asked before a failure has been told of it, and what fails is not tried without a pause. */
	if (asked != pg_atomic_read_u32(&qlog_shared->snapshots_done) &&
		(!last.failed || asked != last.failed_asked))
		return 0;
	look_around();
	return due_in();
}

/* ---- taking one ---- */

/* A QsVisitor: the row goes into the snapshot.  Barriers are answered, as nothing here waits for long. */
static QcStatus
copy_row(void *context, const uint8_t *key, size_t key_len, const uint8_t *value, size_t value_len,
		 QcError *err)
{
	if (ProcSignalBarrierPending)
		ProcessProcSignalBarrier();
	if (qlog_worker_shutdown())
		return qc_error_set(err, QC_INTERRUPTED, "the server is shutting down");
	return qc_snapshot_row(context, key, key_len, value, value_len, err);
}

/* The new one gets its name and old ones go, unless a base backup runs (QC_BUSY). */
static QcStatus
publish(QcError *err)
{
	QcStatus	status;

	QLOG_STOP("snapshot-before-publish");
	if (!qlog_backup_keep_out())
		return QC_BUSY;
	status = qc_snapshot_publish(writer, err);
	QLOG_STOP("snapshot-after-publish");
	if (status == QC_OK)
		status = trim(QC_SNAPSHOTS_KEPT, err);
	qlog_backup_let_in();
	return status;
}

/*
 * Space waits for the floor, and nothing has happened since the newest snapshot: it and the checkpoint are the same, older
 * ones may go.
 */
static QcStatus
give_way(QcError *err)
{
	QcStatus	status;

	if (!qlog_backup_keep_out())
		return QC_BUSY;
	status = trim(1, err);
	qlog_backup_let_in();
	return status;
}

static QcStatus
take(QsStore *store, uint64 mark, QcError *err)
{
	QcStatus	status;

	if (qlog_fault(QLOG_FAULT_STORE) != 0)
		return qc_error_sys(err, qlog_fault(QLOG_FAULT_STORE), "snapshots", "could not write");
	status = qc_snapshot_begin(writer, qlog_io(), qlog_state->directory_id, mark, qlog_now(), err);
	if (status == QC_OK)
		status = qs_read(store, copy_row, writer, err);
	QLOG_STOP("snapshot-before-sync");
	if (status == QC_OK)
		status = qc_snapshot_finish(writer, err);
	if (status == QC_OK)
		status = publish(err);
	if (status != QC_OK)
		qc_snapshot_abandon(writer);
	return status;
}

static void
answer(uint32 asked)
{
	pg_atomic_write_u64(&qlog_shared->snapshot_mark, last.seq);
	pg_atomic_write_u32(&qlog_shared->snapshots_done, asked);
	ConditionVariableBroadcast(&qlog_shared->checkpoint_cv);
}

static void
note_taken(uint64 mark, uint64 bytes, int64 began)
{
	last.seq = mark;
	last.at = qlog_monotonic();
	last.us = last.at - began;
	last.size = writer->head.length;
	last.log_bytes = bytes;

	pg_atomic_write_u32(&qlog_shared->snapshot_wish, 0);
}

void
qlog_snapshot_take(QlogWorker *worker, QsStore *store)
{
	uint32		asked = pg_atomic_read_u32(&qlog_shared->snapshots_asked);
	int64		began = qlog_monotonic();
	uint64		mark;
	uint64		bytes = log_bytes(&mark);
	QcError		err;
	QcStatus	status = QC_OK;

	look_around();
	qc_error_clear(&err);
	if (writer == NULL)
		writer = MemoryContextAlloc(TopMemoryContext, sizeof(*writer));
	qlog_worker_state(worker, "snapshot");
	if (mark != last.seq)
		status = take(store, mark, &err);
	else if (pg_atomic_exchange_u32(&qlog_shared->snapshot_wish, 0) != 0)
		status = give_way(&err);
	if (status == QC_INTERRUPTED)
		return;
	if (status == QC_OK && mark != last.seq)
		note_taken(mark, bytes, began);
	if (status != QC_OK)
	{
		/* while a base backup runs, or after a failure: again in a while */
		last.at = qlog_monotonic();
		last.failed = true;
		last.failed_asked = asked;

		if (status != QC_BUSY)
			qlog_checkpoint_failed(worker, &err, "could not take a snapshot");
		return;
	}
	if (last.failed)
		qlog_worker_error(worker, NULL, NULL);
	last.failed = false;

	answer(asked);
}

/* ---- asking for one ---- */

void
qlog_checkpoint_failed(QlogWorker *worker, const QcError *err, const char *what)
{
	qlog_worker_error(worker, err, what);
	pg_atomic_fetch_add_u32(&qlog_shared->checkpoint_failures, 1);
	ConditionVariableBroadcast(&qlog_shared->checkpoint_cv);
}

/* Something failed since: what is asked for cannot be had now. */
static void
raise_failure(uint32 failures)
{
	QlogWorker	worker = qlog_shared->workers[QLOG_WORKER_CHECKPOINTER];

	if (pg_atomic_read_u32(&qlog_shared->checkpoint_failures) == failures)
		return;
	worker.last_error[sizeof(worker.last_error) - 1] = '\0';
	ereport(ERROR,
			(errcode(ERRCODE_IO_ERROR),
			 errmsg("the checkpoint could not be taken"),
			 worker.last_error[0] == '\0' ? 0 : errdetail("%s.", worker.last_error)));
}

/* Wait until *done has reached the number. */
static void
wait_for(pg_atomic_uint32 *done, uint32 number)
{
	uint32		failures = pg_atomic_read_u32(&qlog_shared->checkpoint_failures);

	ConditionVariablePrepareToSleep(&qlog_shared->checkpoint_cv);
	while ((int32) (pg_atomic_read_u32(done) - number) < 0)
	{
		ConditionVariableSleep(&qlog_shared->checkpoint_cv, QLOG_WAIT_EVENT("QlogCheckpoint"));
		raise_failure(failures);
	}
	ConditionVariableCancelSleep();
}

static uint32
ask(pg_atomic_uint32 *asked)
{
	uint32		number = pg_atomic_add_fetch_u32(asked, 1);

	pg_atomic_write_u32(&qlog_shared->resting, 0);
	qlog_worker_wake(QLOG_WORKER_CHECKPOINTER);
	return number;
}

uint64
qlog_checkpoint_now(bool snapshot)
{
	uint64		mark;

	wait_for(&qlog_shared->checkpoints_done, ask(&qlog_shared->checkpoints_asked));
	(void) log_bytes(&mark);
	if (!snapshot)
		return mark;
	wait_for(&qlog_shared->snapshots_done, ask(&qlog_shared->snapshots_asked));
	return pg_atomic_read_u64(&qlog_shared->snapshot_mark);
}
