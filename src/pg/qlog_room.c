/*
 * qlog_room.c
 *		Credits: waiting for, and making, the room that an entry needs before it is reserved.
 *
 * Everything here may be interrupted between two steps and holds nothing meanwhile.	Room in a log is made under the
 * extend lock, which only those wait for who lack room themselves.
 */
#include "qlog_commit.h"

#include "miscadmin.h"
#include "storage/condition_variable.h"

#include "qlog_compat.h"
#include "qlog_disk.h"
#include "qlog_guc.h"
#include "qlog_report.h"
#include "qlog_stop.h"

#define EXTEND_WAIT_MS 100		/* after which the lock is tried again, called or not */

/* Is the extension still the one that the log needs?	State lock. */
static bool
still_wanted(const QcExtend *extend)
{
	const QcLog *log = qc_log_by_id(qlog_state, extend->log);

	if (log == NULL)
		return false;
	if (extend->create)
		return log->last_file + 1 == extend->file;
	return log->last_file == extend->file && log->last_allocated == extend->from;
}

/*
 * Take the extend lock.  Its holder is at its I/O, and there is no saying how long that takes: whoever waits can be
 * cancelled, which LWLockAcquire does not allow.
 */
static void
lock_extend(void)
{
	ConditionVariablePrepareToSleep(&qlog_shared->extend_cv);
	while (!LWLockConditionalAcquire(&qlog_shared->extend_lock, LW_EXCLUSIVE))
		(void) ConditionVariableTimedSleep(&qlog_shared->extend_cv, EXTEND_WAIT_MS,
										   QLOG_WAIT_EVENT("QlogExtend"));
	ConditionVariableCancelSleep();
}

/* As much as is wanted, but not from the reserve; if that fails as much as is needed, from the reserve if entitled. */
static QcStatus
extend_io(QcExtend *extend, bool entitled, QcError *err)
{
	bool		before = qlog_disk_entitle(false);
	QcStatus	status = qc_log_extend_io(qlog_files(), extend, err);

	if (status == QC_NOSPACE && extend->least > 0 && (entitled || extend->least < extend->to))
	{
		extend->to = extend->least;
		(void) qlog_disk_entitle(entitled);
		status = qc_log_extend_io(qlog_files(), extend, err);
	}
	(void) qlog_disk_entitle(before);
	return status;
}

QcStatus
qlog_extend(const QcExtend *extend, bool entitled, QcError *err)
{
	QcExtend	done = *extend;
	QcStatus	status = QC_OK;
	bool		wanted;

	lock_extend();
	qlog_lock_state();
	wanted = still_wanted(extend);
	qlog_unlock_state();
	QLOG_STOP("extend-before-io");
	if (wanted)
		status = extend_io(&done, entitled, err);
	if (wanted && status == QC_OK)
	{
		qlog_lock_state();
		qc_log_extended(qlog_state, &done, qlog_segment_bytes());
		qlog_unlock_state();
	}
	LWLockRelease(&qlog_shared->extend_lock);
	ConditionVariableBroadcast(&qlog_shared->extend_cv);
	return status;
}

QcStatus
qlog_make_room(const QcPlan *plan, QcLack lack, const QcExtend *extend, QcError *err)
{
	if (lack == QC_LACK_LOG)
		return qlog_extend(extend, !plan->grows, err);
	return qlog_write_noerror(qlog_newest_seq(), err) ? QC_OK : err->code;
}

QcStatus
qlog_credit(QcPlan *plan, QcError *err)
{
	for (;;)
	{
		QcLack		lack;
		QcExtend	extend;
		QcStatus	status;

		CHECK_FOR_INTERRUPTS();
		qlog_lock_state();
		status = qc_plan_credit(qlog_state, qlog_ring, plan, qlog_segment_bytes(), &lack, &extend,
								err);
		qlog_unlock_state();
		if (status != QC_BUSY)
			return status;
		status = qlog_make_room(plan, lack, &extend, err);
		if (status != QC_OK)
			return status;
	}
}

/* What was made of a log that is not to be goes again; where that fails, the next start retires the directory. */
static void
remove_half_made(uint64 log)
{
	QcError		ignored;

	(void) qc_log_remove_files(qlog_files(), &log, 1, &ignored);
}

void
qlog_log_make(uint64 log)
{
	QcLog	   *added = NULL;
	QcError		err;
	QcStatus	status;

	qlog_disk_check_call();
	if (qc_log_stays(qlog_state->shards, log))
		return;
	qc_error_clear(&err);
	status = qc_log_create_files(qlog_files(), log, QC_EXTEND_MIN, &err);
	if (status == QC_OK)
	{
		qlog_lock_state();
		added = qc_log_add(qlog_state, log, 1, QC_FILE_HEADER_SIZE, QC_EXTEND_MIN, false);
		qlog_unlock_state();
	}
	if (added != NULL)
		return;
	remove_half_made(log);
	if (status == QC_OK)
		(void) qc_error_set(&err, QC_FULL, "qlog.state_memory is full");
	qlog_report(ERROR, &err, "could not create the log of a queue");
}

void
qlog_log_abandon(uint64 log)
{
	QcLog	   *found;

	qlog_lock_state();
	found = qc_log_by_id(qlog_state, log);
	if (found != NULL && found->nqueues == 0)
		qc_log_abandon(qlog_state, found);
	qlog_unlock_state();
}
