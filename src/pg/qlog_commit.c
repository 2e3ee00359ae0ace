/*
 * qlog_commit.c
 *		The two commit protocols and immediate entries (PROTOCOL.md 1).
 *
 * From the reservation of a seq until its bytes are filled a process is in a critical section: an entry that is reserved
 * and never filled would hold up every flush.	Nothing in it waits for another transaction, allocates or raises.
 */
#include "qlog_commit.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/memutils.h"

#include "qlog_disk.h"
#include "qlog_guard.h"
#include "qlog_guc.h"
#include "qlog_report.h"
#include "qlog_rmgr.h"
#include "qlog_stop.h"

#include "../core/qc_order.h"

/* Newest entry of this process: what it flushes when it exits after the checkpointer worker has gone. */
static uint64 last_seq;

static void
flush_at_exit(int code, Datum arg)
{
	(void) code;
	(void) arg;
	if (pg_atomic_read_u32(&qlog_shared->leaving) != 0 && qc_ring_durable(qlog_ring) < last_seq)
		qlog_flush(last_seq);
}

static void
remember(uint64 seq)
{
	static bool registered = false;

	if (!registered)
	{
		registered = true;
		before_shmem_exit(flush_at_exit, 0);
	}
	last_seq = seq;
}

/* The checkpointer worker rests while nothing is logged. */
static void
wake_checkpointer(void)
{
	if (pg_atomic_read_u32(&qlog_shared->resting) != 0 &&
		pg_atomic_exchange_u32(&qlog_shared->resting, 0) != 0)
		qlog_worker_wake(QLOG_WORKER_CHECKPOINTER);
}

void
qlog_lock_for(const QcPlan *plan)
{
	QcError		err;

	Assert(CritSectionCount > 0 && plan->credited);
	qc_plan_touch(qlog_ring, plan);
	for (;;)
	{
		uint64		seq;

		qlog_lock_state();
		if (qc_plan_has_room(qlog_ring, plan))
			return;
		seq = qlog_state->seq;
		qlog_unlock_state();
		qc_error_clear(&err);
		if (!qlog_write_noerror(seq, &err))
			qlog_report(PANIC, &err, "could not write to the log");
	}
}

void
qlog_reserve_locked(QcPlan *plan)
{
	Assert(CritSectionCount > 0);
	qc_plan_reserve(qlog_state, qlog_ring, plan, qlog_segment_bytes(), qlog_now(),
					qlog_monotonic());
}

void
qlog_fill(QcPlan *plan)
{
	QcError		err;

	qc_error_clear(&err);
	QLOG_STOP("after-reserve");
	if (qc_plan_fill(qlog_state, qlog_ring, plan, qlog_files(), &err) != QC_OK)
		qlog_report(PANIC, &err, "could not write to the log");
	qlog_filled();
	QLOG_STOP("after-fill");
	last_seq = plan->seq;
	wake_checkpointer();
}

/* Reserve when there is room in the ring, and fill. */
static void
append(QcPlan *plan)
{
	START_CRIT_SECTION();
	qlog_lock_for(plan);
	qlog_reserve_locked(plan);
	qlog_unlock_state();
	qlog_fill(plan);
	END_CRIT_SECTION();
}

static uint8 *
wal_body(const QcPlan *plan, uint64 *len)
{
	*len = qc_plan_wal_size(plan);
	if (*len > MaxAllocHugeSize || *len > UINT32_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("queue work of the transaction is too large for the WAL")));
	return MemoryContextAllocHuge(CurrentMemoryContext, *len);
}

/*
 * Take the credit of a plan that goes to the WAL, and use it up under the same hold of the state lock unless `check` (NULL =
 * none) objects.  QC_OK and plan->seq != 0: now in a critical section, and *own = this process is its own guard.  Otherwise
 * nothing is held, and without an error `check` has objected.
 */
static QcStatus
credit_and_reserve(QcPlan *plan, QlogCheck check, void *context, bool *own, QcError *err)
{
	for (;;)
	{
		QcLack		lack;
		QcExtend	extend;
		QcStatus	status;

		CHECK_FOR_INTERRUPTS();
		START_CRIT_SECTION();
		qc_plan_touch(qlog_ring, plan);
		qlog_lock_state();
		status = qc_plan_credit(qlog_state, qlog_ring, plan, qlog_segment_bytes(), &lack, &extend,
								err);
		if (status == QC_OK && (check == NULL || check(context)))
			*own = qlog_guard_reserve_locked(plan);
		else if (status == QC_OK)
			qc_plan_uncredit(qlog_state, plan);
		qlog_unlock_state();
		if (status == QC_OK && plan->seq != 0)
			return QC_OK;
		END_CRIT_SECTION();
		if (status == QC_BUSY)
			status = qlog_make_room(plan, lack, &extend, err);
		else
			return status;
		if (status != QC_OK)
			return status;
	}
}

/*
 * Credit, reserve, fill and insert the WAL record; the guards are prepared.  A referenced entry must be durable in our log
 * before the record that refers to it can be.	QC_OK with plan->seq 0: `check` has objected.
 */
static QcStatus
append_in_wal(QcPlan *plan, QlogCheck check, void *context, QcError *err)
{
	uint64		len;
	uint8	   *body = wal_body(plan, &len);
	QcWriter	w;
	bool		own = false;
	QcStatus	status = credit_and_reserve(plan, check, context, &own, err);

	if (status == QC_OK && plan->seq != 0)
	{
		qlog_fill(plan);
		if (plan->flags & QC_ENTRY_REFERENCED)
			qlog_flush(plan->seq);
		QLOG_STOP("before-wal-insert");
		qc_writer_init(&w, body, len);
		qc_plan_wal_put(qlog_state, plan, &w);
		Assert(!w.full && w.len == len);
		(void) qlog_wal_entry(body, (uint32) len);
		QLOG_STOP("after-wal-insert");
		qlog_guard_inserted(plan, own);
		END_CRIT_SECTION();
	}
	pfree(body);
	return status;
}

/* The same for a backend, which raises. */
static void
commit_in_wal(QcPlan *plan)
{
	QcError		err;

	qc_error_clear(&err);
	qlog_guard_prepare();
	if (append_in_wal(plan, NULL, NULL, &err) != QC_OK)
		qlog_report(ERROR, &err, "could not commit queue work");
}

/* New messages and queues are refused while the disk is full or the state cannot be checkpointed; acknowledgements go on. */
static void
refuse_when_full(const QcPlan *plan)
{
	qlog_disk_check(plan);
	if (pg_atomic_read_u32(&qlog_shared->store_full) == 0 || !plan->grows)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DISK_FULL),
			 errmsg("could not push to a queue"),
			 errdetail("The checkpoint store of qlog cannot take more: %s",
					   qlog_shared->workers[QLOG_WORKER_CHECKPOINTER].last_error),
			 errhint("Raise qlog.checkpoint_max_size, or make room on the file system of qlog.data_directory.")));
}

void
qlog_commit_pre(QcPlan *plan)
{
	QcError		err;

	qc_error_clear(&err);
	refuse_when_full(plan);
	remember(last_seq);
	if (plan->xid != 0)
		commit_in_wal(plan);
	else if (qlog_credit(plan, &err) != QC_OK)
		qlog_report(ERROR, &err, "could not commit queue work");
}

void
qlog_settle(QcRef open, bool committed, uint64 lsn)
{
	qlog_lock_state();
	qc_open_settle(qlog_state, QC_AT(qlog_state, QcOpen, open), committed, lsn, qlog_monotonic());
	qlog_unlock_state();
}

QcSmallPlan *
qlog_commit_order(const QcPlan *plan)
{
	QcSmallPlan *order;
	size_t		size;

	if (!plan->ordered)
		return NULL;
	order = palloc(sizeof(QcSmallPlan));
	size = qc_order_size(plan, (uint32) MaxBackends);
	qc_plan_small(order, MemoryContextAllocHuge(CurrentMemoryContext, QC_SMALL_BUFFER(size)), size);
	order->plan.pid = (uint32) MyProcPid;
	qlog_submit_hold(order);

	/* The decision must not be durable before the commit record is. */
	ForceSyncCommit();
	return order;
}

/*
 * Log the decision, which settles the entry.  It is durable before the commit returns: what others commit afterwards may
 * survive a crash in the WAL alone, and recovery would settle this entry behind it.
 */
static void
settle_in_order(QcPlan *plan, QcSmallPlan *order)
{
	QcWriter	w;

	START_CRIT_SECTION();
	qlog_lock_for(&order->plan);
	w = qc_plan_small_writer(order);
	qc_plan_small_done(order, &w, qc_order_put(qlog_state, plan, qlog_shared->timeline,
											   XactLastCommitEnd, &w));
	qlog_reserve_locked(&order->plan);
	qlog_unlock_state();
	qlog_fill(&order->plan);
	END_CRIT_SECTION();
	QLOG_STOP("commit-event-after-decision");
	qlog_flush(order->plan.seq);
}

void
qlog_commit_event(QcPlan *plan, QcSmallPlan *order)
{
	if (plan->xid != 0)
	{
		QLOG_STOP("commit-event-before-settle");
		if (order != NULL)
			settle_in_order(plan, order);
		else
			qlog_settle(plan->open, true, XactLastCommitEnd);
		qlog_guard_wake();
		return;
	}
	append(plan);
	if (synchronous_commit > SYNCHRONOUS_COMMIT_OFF)
		qlog_flush_and_settle(plan->seq, plan->open);
	else
		qlog_settle(plan->open, true, 0);
}

void
qlog_commit_abort(QcPlan *plan)
{
	if (plan->seq != 0)
	{
		qlog_settle(plan->open, false, 0);
		qlog_guard_wake();
	}
	else if (plan->credited)
	{
		qlog_lock_state();
		qc_plan_uncredit(qlog_state, plan);
		qlog_unlock_state();
	}
}

/* An immediate entry on its way. */
typedef struct Submission
{
	QcPlan	   *plan;
	QcSmallPlan *small;			/* whose plan that is, for choose */
	QlogChoose	choose;
	QlogCheck	check;
	QlogReserved done;
	void	   *context;
} Submission;

/* Is there anything to log, now that there is room for it?	State lock. */
static bool
go_ahead(const Submission *submission)
{
	if (submission->choose != NULL)
		return submission->choose(submission->context, submission->small);
	return submission->check == NULL || submission->check(submission->context);
}

/* One try: QC_OK and seq (0 = there is nothing to log), or why not. */
static QcStatus
try_once(const Submission *submission, QcLack *lack, QcExtend *extend, QcError *err)
{
	QcPlan	   *plan = submission->plan;
	bool		reserved = false;
	QcStatus	status;

	START_CRIT_SECTION();
	qc_plan_touch(qlog_ring, plan);
	qlog_lock_state();
	status = qc_plan_credit(qlog_state, qlog_ring, plan, qlog_segment_bytes(), lack, extend, err);
	if (status == QC_OK)
	{
		reserved = go_ahead(submission);
		if (reserved)
			qlog_reserve_locked(plan);
		else
			qc_plan_uncredit(qlog_state, plan);
		if (reserved && submission->done != NULL)
			submission->done(submission->context, plan);
	}
	qlog_unlock_state();
	if (reserved)
		qlog_fill(plan);
	END_CRIT_SECTION();
	return status;
}

static QcStatus
submit(const Submission *submission, QcError *err)
{
	QcStatus	status;

	remember(last_seq);
	for (;;)
	{
		QcLack		lack;
		QcExtend	extend;

		CHECK_FOR_INTERRUPTS();
		status = try_once(submission, &lack, &extend, err);
		if (status != QC_BUSY)
			return status;
		status = qlog_make_room(submission->plan, lack, &extend, err);
		if (status != QC_OK)
			return status;
	}
}

uint64
qlog_submit(QcSmallPlan *small, QlogChoose choose, QlogReserved done, void *context)
{
	Submission	submission = {.plan = &small->plan, .small = small, .choose = choose, .done = done,
		.context = context};
	QcError		err;

	qc_error_clear(&err);
	if (submit(&submission, &err) != QC_OK)
		qlog_report(ERROR, &err, "could not log queue work");
	return small->plan.seq;
}

QcStatus
qlog_try_submit(QcSmallPlan *small, QlogChoose choose, void *context, QcError *err)
{
	Submission	submission = {.plan = &small->plan, .small = small, .choose = choose,
		.context = context};

	return submit(&submission, err);
}

QcStatus
qlog_try_plan(QcPlan *plan, QlogCheck check, QlogReserved done, void *context, QcError *err)
{
	Submission	submission = {.plan = plan, .check = check, .done = done, .context = context};

	Assert(plan->immediate);
	return submit(&submission, err);
}

/* The flag with which this process may have to be its own guard counts in a transaction. */
QcStatus
qlog_try_in_wal(QcPlan *plan, QlogCheck check, void *context, QcError *err)
{
	MemoryContext caller = CurrentMemoryContext;
	QcStatus	status;

	Assert(!plan->immediate && plan->xid == 0 && (plan->flags & QC_ENTRY_CARRIED));
	remember(last_seq);
	status = qlog_guard_try_prepare(err);
	if (status != QC_OK)
		return status;
	StartTransactionCommand();
	MemoryContextSwitchTo(caller);
	status = append_in_wal(plan, check, context, err);
	if (status == QC_OK && plan->seq != 0)
		qlog_settle(plan->open, true, 0);
	CommitTransactionCommand();
	MemoryContextSwitchTo(caller);
	return status;
}

uint64
qlog_submit_plan(QcPlan *plan, bool in_wal)
{
	QcError		err;

	Assert(plan->immediate);
	qc_error_clear(&err);
	refuse_when_full(plan);
	remember(last_seq);
	if (in_wal)
		commit_in_wal(plan);
	else if (qlog_credit(plan, &err) == QC_OK)
		append(plan);
	else
		qlog_report(ERROR, &err, "could not log queue work");
	return plan->seq;
}

void
qlog_submit_hold(QcSmallPlan *small)
{
	QcError		err;

	qc_error_clear(&err);
	remember(last_seq);
	if (qlog_credit(&small->plan, &err) != QC_OK)
		qlog_report(ERROR, &err, "could not log queue work");
}

uint64
qlog_submit_held(QcSmallPlan *small)
{
	append(&small->plan);
	return small->plan.seq;
}

void
qlog_submit_cancel(QcSmallPlan *small)
{
	qlog_lock_state();
	qc_plan_uncredit(qlog_state, &small->plan);
	qlog_unlock_state();
}
