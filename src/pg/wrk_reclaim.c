/*
 * wrk_reclaim.c
 *		The reclaim worker: a pass of the core's reclaim (core/qc_reclaim.h) every qlog.reclaim_naptime.
 *
 * A pass looks at 256 files or for 200 ms, and rewrites one file.	While work is left passes grow four times, up to 64 times, and follow
 * each other at once.	A copy is synced every few megabytes and rests in between, so that commits do not wait for its bytes.
 *
 * What a pass does waits for a checkpoint, which the checkpointer takes by itself as long as anything changes; with a base backup running
 * there is none, and nothing goes.
 */
#include "wrk_reclaim.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/ipc.h"

#include "qlog_backup.h"
#include "qlog_commit.h"
#include "qlog_fetch.h"
#include "qlog_floor.h"
#include "qlog_gone.h"
#include "qlog_guc.h"
#include "qlog_report.h"
#include "qlog_snapshot.h"
#include "qlog_stop.h"

#include "../core/qc_reclaim.h"
#include "../core/qc_rows.h"

#define PASS_FILES		256
#define PASS_US			200000
#define PASS_REWRITES	1
#define GROWTH			4
#define GROWTH_MAX		64
#define STORED_MS		10000	/* how long a checkpoint is waited for */
#define LOOK_US			50000	/* between looks whether it is there */
#define AGAIN_US		INT64CONST(60000000)	/* an answer about a file is good for */
#define STILL_US		INT64CONST(30000000)	/* a file in which nothing dies is at rest after */
#define COPY_REST_US	20000	/* after each piece of a copy */

PGDLLEXPORT void qlog_reclaim_main(Datum arg);

static QlogWorker *self;

/* ---- the state lock ---- */

static void
share(void *context)
{
	(void) context;
	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
}

static void
lock(void *context)
{
	(void) context;
	qlog_lock_state();
}

static void
unlock(void *context)
{
	(void) context;
	qlog_unlock_state();
}

/* ---- hooks ---- */

static bool
written(void *context, uint64_t seq)
{
	QcError		err;

	(void) context;
	qc_error_clear(&err);
	if (qlog_write_noerror(seq, &err))
		return true;
	qlog_worker_error(self, &err, "could not write what is to be reclaimed");
	return false;
}

static bool
is_stored(uint64 stamp)
{
	bool		is;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	is = qc_rows_is_stored(qlog_state, stamp);
	LWLockRelease(&qlog_shared->state_lock);
	return is;
}

static bool
stored(void *context, uint64_t stamp)
{
	int64		end = qlog_monotonic() + (int64) STORED_MS * 1000;

	(void) context;
	qlog_worker_state(self, "waiting for a checkpoint");
	while (!is_stored(stamp))
	{
		if (qlog_worker_shutdown() || qlog_monotonic() > end || qlog_backup_runs())
			return false;
		if (pg_atomic_exchange_u32(&qlog_shared->resting, 0) != 0)
			qlog_worker_wake(QLOG_WORKER_CHECKPOINTER);
		qlog_worker_sleep(LOOK_US / 1000);
	}
	qlog_worker_state(self, "reclaim");
	return true;
}

static uint64_t
floor_now(void *context)
{
	(void) context;
	return qlog_start_floor();
}

static QcStatus
raise_floor(void *context, uint64_t seq, QcError *err)
{
	(void) context;
	return qlog_floor_raise(seq, err);
}

static bool
keep_out(void *context)
{
	(void) context;
	return qlog_backup_keep_out();
}

static void
let_in(void *context)
{
	(void) context;
	qlog_backup_let_in();
}

static QcStatus
extend(void *context, const QcExtend *what, QcError *err)
{
	(void) context;
	return qlog_extend(what, true, err);
}

static void
changed(void *context, uint64_t log, uint64_t file)
{
	(void) context;
	qlog_gone_note(log, file);
}

static void
report(void *context, const QcError *err)
{
	(void) context;
	qlog_worker_error(self, err, "a log file cannot be reclaimed");
}

static bool
go_on(void *context, const char *phase, uint64_t done, uint64_t total)
{
	QlogProgress *progress = &qlog_shared->reclaim;

	(void) context;
	if (strcmp(progress->phase, phase) != 0)
		strlcpy(progress->phase, phase, sizeof(progress->phase));
	progress->done = done;
	progress->total = total;
	qlog_worker_interrupts();
	if (total == 0)
		pg_usleep(COPY_REST_US);
	return !qlog_worker_shutdown();
}

static int64_t
monotonic(void *context)
{
	(void) context;
	return qlog_monotonic();
}

static void
step(void *context, const char *name)
{
	(void) context;
	qlog_stop_at_step("reclaim", name);
}

/* ---- passes ---- */

static void
set_up(QcReclaim *reclaim, QcReadCache *cache)
{
	qlog_fetch_cache(cache);
	*reclaim = (QcReclaim)
	{
		.st = qlog_state, .cache = cache,.lock =
		{
		NULL, share, lock, unlock
		},
		.hooks =
		{
		.write = written, .stored = stored, .floor = floor_now, .raise_floor = raise_floor, .keep_out = keep_out,
				.let_in = let_in, .extend = extend, .changed = changed, .report = report,
				.go_on = go_on, .step = step, .monotonic = monotonic
		},
		.gain = QC_RECLAIM_GAIN
	};
}

/* The settings as they are now; short naps make everything quick, for tests and small disks. */
static void
follow_settings(QcReclaim *reclaim)
{
	int64		nap = (int64) qlog_reclaim_naptime * 1000;

	reclaim->segment_size = qlog_segment_bytes();
	reclaim->keep_old = (uint32) qlog_keep_old_files;
	reclaim->seal_us = (int64) qlog_seal_age * 1000;
	reclaim->again_us = Min(AGAIN_US, nap * 12);
	reclaim->still_us = Min(STILL_US, nap * 6);
}

/* One pass; true = work is left. */
static bool
pass(QcReclaim *reclaim, uint32 growth)
{
	QcReclaimBudget budget = {.files = PASS_FILES * growth, .us = (int64) PASS_US * growth,
		.rewrites = PASS_REWRITES * growth};
	QcReclaimReport result;
	QcError		err;
	int64		began = qlog_monotonic();
	QlogProgress *progress = &qlog_shared->reclaim;

	follow_settings(reclaim);
	qc_error_clear(&err);
	progress->started_at = GetCurrentTimestamp();
	qlog_worker_state(self, "reclaim");
	if (qc_reclaim_pass(reclaim, &budget, qlog_now(), &result, &err) != QC_OK)
		qlog_worker_error(self, &err, "could not reclaim log files");
	else if (result.bad == 0)
		qlog_worker_error(self, NULL, NULL);
	progress->phase[0] = '\0';
	if (result.held > 0)
		qlog_snapshot_wish();
	if (result.deleted + result.rewritten > 0)
	{
		qlog_gone_wake();
		ereport(DEBUG1,
				(errmsg_internal("qlog: reclaimed " UINT64_FORMAT " bytes: %u files deleted, %u rewritten",
								 result.freed, result.deleted, result.rewritten)));
	}
	self->passes++;
	self->last_pass_us = qlog_monotonic() - began;
	self->last_pass_at = GetCurrentTimestamp();
	return result.more && result.bad == 0 && result.held == 0;
}

/* Sleep for the whole time, whatever sets the latch; a reload may change it. */
static void
nap(void)
{
	int64		began = qlog_monotonic();
	int64		left;

	while (!qlog_worker_shutdown() &&
		   (left = began + (int64) qlog_reclaim_naptime * 1000 - qlog_monotonic()) > 0)
		qlog_worker_sleep((long) (left / 1000) + 1);
}

static void
leave(int code, Datum arg)
{
	(void) code;
	(void) arg;
	qlog_shared->reclaim.phase[0] = '\0';
}

void
qlog_reclaim_main(Datum arg)
{
	QcReadCache cache;
	QcReclaim	reclaim;
	uint32		growth = 1;
	bool		ready = false;

	self = qlog_worker_begin((QlogWorkerKind) DatumGetInt32(arg));
	before_shmem_exit(leave, 0);
	while (!qlog_worker_shutdown())
	{
		bool		more;

		qlog_worker_state(self, "idle");
		if (pg_atomic_read_u32(&qlog_shared->gate) != QLOG_GATE_READY)
		{
			/* Recovery wakes us when it has finished. */
			qlog_worker_sleep(-1);
			continue;
		}
		nap();
		if (qlog_worker_shutdown())
			break;
		if (!ready)
			set_up(&reclaim, &cache);
		ready = true;
		more = pass(&reclaim, growth);
		growth = !more ? 1 : Min(growth * GROWTH, GROWTH_MAX);
	}
	qlog_worker_exit(self);
}

void
qlog_reclaim_register(void)
{
	qlog_worker_register(QLOG_WORKER_RECLAIM, "qlog reclaim", "qlog_reclaim_main");
}
