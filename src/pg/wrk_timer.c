/*
 * wrk_timer.c
 *		The timer worker: releases leases whose time is over, makes messages deliverable whose retry time has come, and
 *		sends those to the dead letters that have come back once too often (wrk_dying.c), and delivers delayed ones that are due
 *		(wrk_delay.c).
 *
 * It sleeps until the next deadline, without waking up in between; a process that arms an earlier one wakes it
 * (qc_timer.h).  Everything it has to do is in the shared state: when it ends and is started again, nothing is lost, and
 * what fails is armed again a second later.
 */
#include "wrk_timer.h"

#include "postgres.h"

#include "utils/memutils.h"

#include "qlog_commit.h"
#include "wrk_worker.h"

#include "../core/qc_delay.h"
#include "../core/qc_lease.h"
#include "../core/qc_timer.h"

#define EXPIRED_MAX 256			/* leases released by one entry */
#define FIRE_MAX	1024		/* timers fired per hold of the state lock */
#define CLOCK_MS	5000		/* while messages are delayed: has the wall clock been set? */
#define STUCK_MS	1000

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
		release.messages = lease->nslots;
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

/* Fire what is due.	true = there may be more. */
static bool
fire(QlogWorker *worker)
{
	int64		began = qlog_monotonic();
	Expired		expired;
	uint32		fired;

	qlog_lock_state();
	qc_timers_awake(qlog_state);
	expired.n = qc_timers_step(qlog_state, began, FIRE_MAX, &fired, expired.ids, EXPIRED_MAX);
	qlog_unlock_state();
	if (expired.n > 0)
		release(worker, &expired);
	if (fired > 0)
	{
		worker->passes++;
		worker->last_pass_us = qlog_monotonic() - began;
		worker->last_pass_at = GetCurrentTimestamp();
	}
	return expired.n > 0 || fired == FIRE_MAX;
}

/* Sleep until the next deadline or an alarm, or for a while when something is stuck. */
static void
rest(QlogWorker *worker, bool stuck)
{
	int64		until;
	int64		left;
	bool		clock;

	qlog_worker_state(worker, "idle");
	qlog_lock_state();
	until = qc_timers_rest(qlog_state);
	if (qlog_state->dying.head != 0 && !stuck)
		until = INT64_MIN;
	clock = qc_delay_any(qlog_state);
	qlog_unlock_state();
	if (until == INT64_MAX && !stuck)
	{
		qlog_worker_sleep(-1);
		return;
	}
	left = until == INT64_MIN ? 0 : (until - qlog_monotonic()) / 1000 + 1;
	if (stuck)
		left = Min(left, STUCK_MS);
	if (clock)
		left = Min(left, CLOCK_MS);
	if (left > 0)
		qlog_worker_sleep((long) Min(left, INT_MAX));
}

/* Everything that is due. */
static void
serve(QlogWorker *worker)
{
	bool		more;
	QlogMoved	moved;

	qlog_worker_interrupts();
	more = fire(worker);
	moved = qlog_move_dying(worker);
	more = qlog_move_delayed(worker) || more;
	if (!more && moved != QLOG_MOVED_SOME)
		rest(worker, moved == QLOG_MOVED_STUCK);
}

void
qlog_timer_main(Datum arg)
{
	QlogWorker *worker = qlog_worker_begin((QlogWorkerKind) DatumGetInt32(arg));

	qlog_worker_state(worker, "idle");
	while (!qlog_worker_shutdown())
	{
		/* Recovery wakes us when it has finished. */
		if (pg_atomic_read_u32(&qlog_shared->gate) != QLOG_GATE_READY)
			qlog_worker_sleep(-1);
		else
			serve(worker);
	}
	qlog_worker_exit(worker);
}

void
qlog_timer_register(void)
{
	qlog_worker_register(QLOG_WORKER_TIMER, "qlog timer", "qlog_timer_main");
}
