/*
 * qlog_guard.c
 *		The steps of a guard's cycle, and a committing backend that goes through them itself.
 */
#include "qlog_guard.h"

#include "access/xlog.h"
#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/memutils.h"

#include "qlog_compat.h"
#include "qlog_guc.h"
#include "qlog_report.h"
#include "qlog_rmgr.h"
#include "qlog_stop.h"

#include "../core/qc_walrec.h"

#define INSERT_SPINS 1000

/* Of a committing backend that is its own guard. */
static QlogConfirm own_confirm;

QcStatus
qlog_confirm_credit(QlogConfirm *confirm, uint32 decisions, QcError *err)
{
	QcDecision	decision = {0};
	QcConfirm	fixed = {0};

	if (confirm->small.plan.credited)
		return QC_OK;
	if (confirm->buffer == NULL)
	{
		confirm->effect_max = qc_effect_size(QC_EFFECT_CONFIRM, &fixed, 0);
		if (decisions > 0)
			confirm->effect_max += qc_effect_size(QC_EFFECT_DECISION, &decision, decisions);
		confirm->buffer = MemoryContextAlloc(TopMemoryContext, QC_SMALL_BUFFER(confirm->effect_max));
	}
	qc_plan_small(&confirm->small, confirm->buffer, confirm->effect_max);
	return qlog_credit(&confirm->small.plan, err);
}

void
qlog_confirm_release(QlogConfirm *confirm)
{
	if (!confirm->small.plan.credited)
		return;
	qlog_lock_state();
	qc_plan_uncredit(qlog_state, &confirm->small.plan);
	qlog_unlock_state();
}

void
qlog_guard_flag(bool set)
{
	if (set)
		MyProc->delayChkptFlags |= DELAY_CHKPT_START;
	else
		MyProc->delayChkptFlags &= ~DELAY_CHKPT_START;
}

/* Is there a joint entry up to seq whose WAL record is not inserted?  Its backend is about to do so. */
static bool
insert_pending(uint64 seq)
{
	bool		found = false;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	for (QcOpen *open = QC_AT(qlog_state, QcOpen, qlog_state->opens.head);
		 open != NULL && open->seq <= seq && !found;
		 open = QC_AT(qlog_state, QcOpen, open->all.next))
		found = open->xid != 0 && open->decided == 0 && !open->inserted;
	LWLockRelease(&qlog_shared->state_lock);
	return found;
}

void
qlog_guard_wait_inserted(uint64 seq)
{
	int			pause_us = 10;

	for (int i = 0; insert_pending(seq); i++)
	{
		if (i < 10)
		{
			for (int spin = 0; spin < INSERT_SPINS; spin++)
				pg_spin_delay();
			continue;
		}
		pg_usleep(pause_us);
		pause_us = Min(pause_us * 2, 1000);
	}
}

XLogRecPtr
qlog_guard_barrier(uint64 seq)
{
	QcWalMark	mark = {.directory = qlog_state->directory_id, .epoch = qc_epoch(qlog_state), .seq = seq};
	XLogRecPtr	lsn;

	QLOG_STOP("guard-before-barrier");
	lsn = qlog_wal_mark(QC_WAL_BARRIER, &mark);
	XLogFlush(lsn);
	QLOG_STOP("guard-after-barrier");
	return lsn;
}

/* Encode decisions and, with seq, a confirm, and reserve.	State lock. */
static uint32
reserve_confirm(QlogConfirm *confirm, uint64 seq, XLogRecPtr lsn, uint32 decisions)
{
	QcConfirm	fixed = {.seq = seq, .timeline = qlog_shared->timeline, .lsn = lsn};
	QcWriter	w = qc_plan_small_writer(&confirm->small);
	uint32		n = 0;

	if (decisions > 0)
		n = qc_open_decisions(qlog_state, qlog_shared->timeline, lsn, decisions, &w);
	qc_effect_put(&w, QC_EFFECT_CONFIRM, &fixed, 0);
	qc_plan_small_done(&confirm->small, &w, n > 0 ? 2 : 1);
	qlog_reserve_locked(&confirm->small.plan);
	return n;
}

uint32
qlog_guard_confirm(QlogConfirm *confirm, uint64 seq, XLogRecPtr lsn, uint32 decisions)
{
	QcPlan	   *plan = &confirm->small.plan;
	uint32		n;

	START_CRIT_SECTION();
	qlog_lock_for(plan);
	n = reserve_confirm(confirm, seq, lsn, decisions);
	qlog_unlock_state();
	qlog_fill(plan);
	END_CRIT_SECTION();
	qlog_flush(plan->seq);
	qlog_lock_state();
	if (seq > qlog_shared->confirmed_durable)
		qlog_shared->confirmed_durable = seq;
	qlog_unlock_state();
	QLOG_STOP("guard-after-confirm");
	return n;
}

void
qlog_guard_wake(void)
{
	if (pg_atomic_read_u32(&qlog_shared->joint_work) != 0 ||
		pg_atomic_exchange_u32(&qlog_shared->joint_work, 1) != 0)
		return;
	for (int i = QLOG_WORKER_GUARD_1; i <= QLOG_WORKER_GUARD_2; i++)
		qlog_worker_wake((QlogWorkerKind) i);
}

/* A backend that exits gives its standing credit back. */
static void
release_at_exit(int code, Datum arg)
{
	(void) code;
	(void) arg;
	qlog_confirm_release(&own_confirm);
}

/*
 * Whether a guard's flag stands is known only when the entry is reserved, and then nothing may fail any more: so every
 * backend with joint work holds the credit for a confirm of its own.
 */
QcStatus
qlog_guard_try_prepare(QcError *err)
{
	static bool registered = false;
	QcStatus	status;

	if (pg_atomic_read_u32(&qlog_shared->confirm_short) != 0)
		return qc_error_set(err, QC_NOSPACE,
							"the log has no room for the records that allow PostgreSQL to complete its checkpoints");
	status = qlog_confirm_credit(&own_confirm, 0, err);
	if (status == QC_OK && !registered)
	{
		registered = true;
		before_shmem_exit(release_at_exit, 0);
	}
	return status;
}

void
qlog_guard_prepare(void)
{
	QcError		err;

	qc_error_clear(&err);
	if (qlog_guard_try_prepare(&err) != QC_OK)
		qlog_report(ERROR, &err, "could not commit queue work together with tables");
}

bool
qlog_guard_reserve_locked(QcPlan *plan)
{
	bool		own = qlog_shared->nguards == 0;

	Assert(own_confirm.small.plan.credited);
	if (own)
		qlog_guard_flag(true);
	qlog_reserve_locked(plan);
	qlog_shared->joint_seq = plan->seq;
	return own;
}

void
qlog_guard_inserted(QcPlan *plan, bool own)
{
	XLogRecPtr	lsn;

	/* An auto-create is settled when it is reserved and has no open entry. */
	if (plan->open != 0)
		QC_AT(qlog_state, QcOpen, plan->open)->inserted = 1;
	if (!own)
		return;

	/*
	 * Nobody relies on this flag but this entry; the confirm says more than that, so it waits for
	 * the others.
	 */
	qlog_guard_wait_inserted(plan->seq);
	lsn = qlog_guard_barrier(plan->seq);
	(void) qlog_guard_confirm(&own_confirm, plan->seq, lsn, 0);
	qlog_lock_state();
	qlog_guard_flag(false);
	qlog_unlock_state();
	qlog_guard_wake();
}
