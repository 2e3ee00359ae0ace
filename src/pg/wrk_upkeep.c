/*
 * wrk_upkeep.c
 *		What the checkpointer worker does between checkpoints: dropped queues, room ahead in busy logs, directories of logs
 *		that are gone.
 */
#include "wrk_checkpoint.h"

#include "access/xact.h"


#include "qlog_commit.h"
#include "qlog_disk.h"
#include "qlog_gone.h"
#include "qlog_guc.h"

#include "../core/qc_catalog.h"
#include "../core/qc_dedup.h"
#include "../core/qc_group.h"

#define LOOK_US		50000		/* between looks at what logs are in use */
#define LOOK_LOGS	200			/* looked at under one hold of the state lock */
#define BUSY_LOOKS	3			/* looks in a row that have found a log grown */
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

/* Count how many looks in a row have found something appended.  Only this worker looks. */
static void
note_traffic(QcLog *log)
{
	uint64		stands_at = log->file * qlog_segment_bytes() + log->tail;

	log->grown = log->looked_at == stands_at ? 0 : log->grown + 1;
	log->looked_at = stands_at;
}

/*
 * A log whose room is more than half used gets more, so that commits need not make it themselves.	Only busy logs: those that
 * have grown beyond their first bytes, and go on growing.	What one burst has written costs nothing more.
 */
static bool
wants_room(const QcLog *log, QcExtend *extend)
{
	uint64		segment = qlog_segment_bytes();
	uint64		ahead = (uint64) qlog_preallocate * 1024;
	uint64		step = Min(Max(log->last_allocated, QC_EXTEND_MIN), ahead);

	if (log->grown < BUSY_LOOKS || log->last_file != log->file || log->allocated <= QC_EXTEND_MIN ||
		log->allocated - log->tail > step / 2)
		return false;
	extend->log = log->id;
	extend->least = 0;
	extend->create = log->allocated >= segment;
	extend->file = extend->create ? log->last_file + 1 : log->last_file;
	extend->from = extend->create ? 0 : log->last_allocated;
	extend->to = Min(extend->create ? Max(ahead, QC_EXTEND_MIN) : log->last_allocated + step, segment);
	return true;
}

/*
 * Look at some of the logs that have been appended to; those that stand still leave the list.  true = one that wants room was
 * found.  *left: how many have not had their turn yet.
 */
static bool
look_at_grown(uint32 *left, QcExtend *extend)
{
	bool		found = false;

	qlog_lock_state();
	for (int i = 0; i < LOOK_LOGS && *left > 0 && !found; i++)
	{
		QcLog	   *log = qc_log_listed(qlog_state, QC_LOGS_GROWN);

		if (log == NULL)
			*left = 0;
		else
		{
			(*left)--;
			note_traffic(log);
			qc_log_unlist(qlog_state, log, QC_LOGS_GROWN);
			if (log->grown > 0)
				qc_log_list(qlog_state, log, QC_LOGS_GROWN);
			found = wants_room(log, extend);
		}
	}
	qlog_unlock_state();
	return found;
}

/* Does the log that has just got room want more? */
static bool
wants_more(uint64 id, QcExtend *extend)
{
	const QcLog *log;
	bool		wants;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	log = qc_log_by_id(qlog_state, id);
	wants = log != NULL && wants_room(log, extend);
	LWLockRelease(&qlog_shared->state_lock);
	return wants;
}

/* As many as there are logs on the list. */
static uint32
count_grown(void)
{
	uint32		n;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	n = qlog_state->nlisted[QC_LOGS_GROWN];
	LWLockRelease(&qlog_shared->state_lock);
	return n;
}

bool
qlog_upkeep_extend(QlogWorker *worker)
{
	static int64 next_look = 0;
	static uint32 left = 0;		/* of the present look */
	static uint64 last = 0;		/* log that has got room */
	QcExtend	extend;
	QcError		err;
	bool		found = false;

	/* What there is on the disk is for those who need it. */
	if (qlog_disk_short() || qlog_preallocate == 0)
		return false;
	found = last != 0 && wants_more(last, &extend);
	last = 0;
	if (!found && left == 0 && qlog_monotonic() >= next_look)
	{
		next_look = qlog_monotonic() + LOOK_US;
		left = count_grown();
	}
	while (!found && left > 0)
		found = look_at_grown(&left, &extend);
	if (!found)
		return false;
	qc_error_clear(&err);
	if (qlog_extend(&extend, false, &err) == QC_OK)
	{
		last = extend.log;
		return true;
	}

	/* Whoever needs the room will try again and say so to its user. */
	qlog_worker_error(worker, &err, "could not extend a log ahead of need");
	return false;
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
	QcError		err;

	for (uint32 i = 0; i < n; i++)
	{
		qlog_upkeep_index_forget(logs[i]);
		qlog_gone_note(logs[i], 0);
	}

	/* What is left behind are unknown directories: the next start retires them. */
	qc_error_clear(&err);
	if (n > 0 && qc_log_remove_files(qlog_files(), logs, n, &err) != QC_OK)
		qlog_worker_error(worker, &err, "could not remove the logs of dropped queues");
}
