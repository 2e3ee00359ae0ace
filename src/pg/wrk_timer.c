/*
 * wrk_timer.c
 *		The timer worker: releases leases whose time is over, and makes messages deliverable whose retry time has come.
 *
 * It sleeps until the next deadline, without waking up in between; a process that arms an earlier one wakes it
 * (qc_timer.h).  Everything it has to do is in the shared state: when it ends and is started again, nothing is lost, and
 * what fails is armed again a second later.
 */
#include "wrk_timer.h"

#include "postgres.h"

#include "utils/memutils.h"

#include "qlog_commit.h"
#include "qlog_stop.h"
#include "wrk_worker.h"

#include "../core/qc_lease.h"
#include "../core/qc_timer.h"

#define EXPIRED_MAX 256			/* leases released by one entry */
#define FIRE_MAX	1024		/* timers fired per hold of the state lock */

PGDLLEXPORT void qlog_timer_main(Datum arg);

/* Leases whose time is over, for one entry of releases. */
typedef struct Expired
{
	uint64		ids[EXPIRED_MAX];
	uint32		n;
} Expired;

/* Put a release for each lease that is still over now: it may have been answered since the timer fired. */
static bool
put_releases(void *context, QcSmallPlan *small)
{
	Expired    *expired = context;
	QcWriter	w = qc_plan_small_writer(small);
	int64		now = qlog_monotonic();
	uint32		n = 0;

	for (uint32 i = 0; i < expired->n; i++)
	{
		QcRelease	release = {.lease = expired->ids[i], .delay_us = QC_DELAY_RULE,
		.reason = QC_RELEASE_EXPIRED};
		QcLease    *lease = qc_lease_by_id(qlog_state, expired->ids[i]);

		if (lease == NULL || lease->owner != 0 || lease->pin_seq != 0 || lease->deadline > now)
			continue;
		qc_effect_put(&w, QC_EFFECT_RELEASE, &release, 0);
		n++;
	}
	if (n > 0)
		qc_plan_small_done(small, &w, n);
	return n > 0;
}

/* Log the release of these leases. */
static void
release(QlogWorker *worker, Expired *expired)
{
	static uint8 *buffer = NULL;
	QcRelease	effect = {0};
	size_t		room = EXPIRED_MAX * qc_effect_size(QC_EFFECT_RELEASE, &effect, 0);
	QcSmallPlan small;
	QcError		err;

	if (buffer == NULL)
		buffer = MemoryContextAlloc(TopMemoryContext, QC_SMALL_BUFFER(room));
	qc_error_clear(&err);
	qc_plan_small(&small, buffer, room);
	if (qlog_try_submit(&small, put_releases, expired, &err) == QC_OK)
		qlog_worker_error(worker, NULL, NULL);
	else
		qlog_worker_error(worker, &err, "could not release expired leases");
}

/* Fire what is due.  Returns until when there is nothing to do; INT64_MIN = there is more now. */
static int64
fire(QlogWorker *worker)
{
	int64		began = qlog_monotonic();
	int64		next = INT64_MIN;
	Expired		expired;
	uint32		fired;
	bool		more;

	qlog_lock_state();
	qc_timers_awake(qlog_state);
	expired.n = qc_timers_step(qlog_state, began, FIRE_MAX, &fired, expired.ids, EXPIRED_MAX);
	more = expired.n > 0 || fired == FIRE_MAX;
	if (!more)
		next = qc_timers_rest(qlog_state);
	qlog_unlock_state();
	if (expired.n > 0)
		release(worker, &expired);
	if (fired > 0)
	{
		worker->passes++;
		worker->last_pass_us = qlog_monotonic() - began;
		worker->last_pass_at = GetCurrentTimestamp();
	}
	return next;
}

/* Sleep until this time, or until an alarm. */
static void
rest(QlogWorker *worker, int64 until)
{
	int64		left;

	qlog_worker_state(worker, "idle");
	if (until == INT64_MAX)
	{
		qlog_worker_sleep(-1);
		return;
	}
	left = (until - qlog_monotonic()) / 1000 + 1;
	if (left > 0)
		qlog_worker_sleep((long) Min(left, INT_MAX));
}

void
qlog_timer_main(Datum arg)
{
	QlogWorker *worker = qlog_worker_begin((QlogWorkerKind) DatumGetInt32(arg));

	qlog_worker_state(worker, "idle");
	while (!qlog_worker_shutdown())
	{
		int64		next = INT64_MAX;

		/* Recovery wakes us when it has finished. */
		if (pg_atomic_read_u32(&qlog_shared->gate) == QLOG_GATE_READY)
		{
			QLOG_STOP("timer-before-fire");
			next = fire(worker);
		}
		if (next != INT64_MIN)
			rest(worker, next);
	}
	qlog_worker_exit(worker);
}

void
qlog_timer_register(void)
{
	qlog_worker_register(QLOG_WORKER_TIMER, "qlog timer", "qlog_timer_main");
}
