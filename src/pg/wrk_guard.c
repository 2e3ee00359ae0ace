/*
 * wrk_guard.c
 *		Two guard workers relieve each other while there is joint work (PROTOCOL.md 2.5).
 *
 * A guard's term: its flag stands and counts (nguards), so that joint commits may rely on it.	It ends by these steps:
 *
 *	 1. the other guard is called and sets its flag (when it is not there, commits will be their own guards meanwhile);
 *	 2. the flag stops counting, N := last seq reserved, in one hold of the state lock: whoever relied on this flag has
 *		a seq <= N;
 *	 3. every joint entry <= N has its WAL record inserted; a barrier {N} is inserted and the WAL flushed through it;
 *	 4. a confirm of N, with the decisions whose commit records are flushed by then, is logged and our log flushed: every
 *		entry <= N is durable and confirmed;
 *	 5. the flag goes, with the transaction that gave it its vxid, and a checkpoint that waited for it may complete.
 *
 * With nothing left to confirm or decide a guard ends its term without calling the other, and both sleep: an idle server
 * writes nothing.  A guard that cannot go on keeps its flag.  One that has to leave ends its term first, also in its exit
 * callback; if that fails, PANIC, because the flag would vanish.
 */
#include "wrk_guard.h"

#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"

#include "qlog_compat.h"
#include "qlog_guard.h"
#include "qlog_guc.h"
#include "wrk_worker.h"

#define RETRY_MS	1000
#define RELIEF_MS	200			/* how long a relief may take to come */

PGDLLEXPORT void qlog_guard_main(Datum arg);

static QlogConfirm confirm;
static bool in_office;			/* the flag of this process stands */
static bool counted;			/* ... and counts in nguards */

/* Set the flag, under a new vxid. */
static void
begin_term(int me)
{
	StartTransactionCommand();
	qlog_lock_state();
	qlog_guard_flag(true);
	qlog_shared->nguards++;
	qlog_shared->guard_office = me;
	if (qlog_shared->guard_called == me)
		qlog_shared->guard_called = -1;
	qlog_unlock_state();
	in_office = counted = true;
}

/* Step 2. */
static uint64
stop_counting(void)
{
	uint64		seq;

	qlog_lock_state();
	if (counted)
		qlog_shared->nguards--;
	counted = false;
	seq = qlog_state->seq;
	qlog_unlock_state();
	return seq;
}

/* Steps 2 to 5; the credit is held. */
static void
end_term(int me)
{
	uint64		seq = stop_counting();
	XLogRecPtr	lsn;

	qlog_guard_wait_inserted(seq);
	lsn = qlog_guard_barrier(seq);
	(void) qlog_guard_confirm(&confirm, seq, lsn, QLOG_DECISIONS_MAX);
	qlog_lock_state();
	qlog_guard_flag(false);
	if (qlog_shared->guard_office == me)
		qlog_shared->guard_office = -1;
	qlog_unlock_state();
	in_office = false;
}

/* Leaving by error or signal must not let the flag vanish. */
static void
leave(int code, Datum arg)
{
	(void) code;
	if (in_office)
	{
		QcError		err;

		qc_error_clear(&err);
		if (!confirm.small.plan.credited &&
			qlog_confirm_credit(&confirm, QLOG_DECISIONS_MAX, &err) != QC_OK)
			ereport(PANIC,
					(errcode(ERRCODE_DISK_FULL),
					 errmsg("a guard of qlog cannot leave its office"),
					 errdetail("%s", err.text)));
		end_term(DatumGetInt32(arg));
	}
	qlog_confirm_release(&confirm);
}

/* Is anything left that a guard has to confirm or log?	 State lock. */
static bool
work_left_locked(void)
{
	bool		left = qlog_shared->joint_seq > qlog_shared->confirmed_durable;

	for (QcOpen *open = QC_AT(qlog_state, QcOpen, qlog_state->opens.head); open != NULL && !left;
		 open = QC_AT(qlog_state, QcOpen, open->all.next))
		left = open->xid != 0 && open->decided != 0;
	return left;
}

static bool
work_left(void)
{
	bool		left;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	left = work_left_locked();
	LWLockRelease(&qlog_shared->state_lock);
	return left;
}

/* Call the other guard and wait, not for long, until its flag stands. */
static void
call_relief(int other)
{
	const QlogWorker *worker = &qlog_shared->workers[other];

	if (worker->pid == 0)
		return;
	qlog_lock_state();
	qlog_shared->guard_called = other;
	qlog_unlock_state();
	qlog_worker_wake((QlogWorkerKind) other);
	for (int ms = 0; ms < RELIEF_MS && qlog_shared->guard_called == other; ms++)
		qlog_worker_sleep(1);

	/* Not there: commits are their own guards until somebody is in office again. */
	qlog_lock_state();
	if (qlog_shared->guard_called == other)
		qlog_shared->guard_called = -1;
	qlog_unlock_state();
}

/* Keep the credit of the next confirm; without it joint commits are refused. */
static bool
keep_credit(QlogWorker *worker)
{
	QcError		err;
	bool		ok;

	qc_error_clear(&err);
	ok = qlog_confirm_credit(&confirm, QLOG_DECISIONS_MAX, &err) == QC_OK;
	pg_atomic_write_u32(&qlog_shared->confirm_short, ok ? 0 : 1);
	qlog_worker_error(worker, ok ? NULL : &err, "could not take room for a confirm");
	return ok;
}

/* Serve one term. */
static void
serve(QlogWorker *worker, int me, int other)
{
	int64		began = qlog_monotonic();

	begin_term(me);
	qlog_worker_state(worker, "on guard");
	while (qlog_monotonic() - began < (int64) qlog_log_flush_interval * 1000 &&
		   !qlog_worker_shutdown())
		qlog_worker_sleep((long) (qlog_log_flush_interval -
								  (qlog_monotonic() - began) / 1000) + 1);
	if (work_left() && !qlog_worker_shutdown())
		call_relief(other);
	end_term(me);
	CommitTransactionCommand();
	worker->passes++;
	worker->last_pass_us = qlog_monotonic() - began;
	worker->last_pass_at = GetCurrentTimestamp();
	qlog_worker_state(worker, "idle");
}

/* An office that the process before this one took, and left before its flag stood, is free again. */
static void
forget_office(int me)
{
	qlog_lock_state();
	if (qlog_shared->guard_office == me)
		qlog_shared->guard_office = -1;
	qlog_unlock_state();
}

/* Has this guard been called, or is the office free and work there? Then it is ours. */
static bool
take_office(int me)
{
	bool		mine;

	qlog_lock_state();
	mine = qlog_shared->guard_called == me ||
		(qlog_shared->guard_office == -1 && qlog_shared->guard_called == -1 &&
		 work_left_locked());
	if (mine)
		qlog_shared->guard_office = me;
	qlog_unlock_state();
	return mine;
}

/* Sleep, unless work has come since we looked: joint_work is set by whoever brings some. */
static void
rest(void)
{
	if (qlog_shared->guard_office == -1)
	{
		pg_atomic_write_u32(&qlog_shared->joint_work, 0);
		pg_memory_barrier();
		if (work_left())
		{
			pg_atomic_write_u32(&qlog_shared->joint_work, 1);
			return;
		}
	}
	qlog_worker_sleep(-1);
}

void
qlog_guard_main(Datum arg)
{
	int			me = DatumGetInt32(arg);
	int			other = me == QLOG_WORKER_GUARD_1 ? QLOG_WORKER_GUARD_2 : QLOG_WORKER_GUARD_1;
	QlogWorker *worker = qlog_worker_begin((QlogWorkerKind) me);

	before_shmem_exit(leave, Int32GetDatum(me));
	forget_office(me);
	qlog_worker_state(worker, "idle");
	while (!qlog_worker_shutdown())
	{
		if (pg_atomic_read_u32(&qlog_shared->gate) != QLOG_GATE_READY)
		{
			/* Recovery wakes us when it has finished. */
			qlog_worker_sleep(-1);
			continue;
		}
		if (!confirm.small.plan.credited && !keep_credit(worker))
		{
			qlog_worker_sleep(RETRY_MS);
			continue;
		}
		if (take_office(me))
			serve(worker, me, other);
		else
			rest();
	}
	qlog_worker_exit(worker);
}

void
qlog_guards_register(void)
{
	qlog_worker_register(QLOG_WORKER_GUARD_1, "qlog guard 1", "qlog_guard_main");
	qlog_worker_register(QLOG_WORKER_GUARD_2, "qlog guard 2", "qlog_guard_main");
}
