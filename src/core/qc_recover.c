/*
 * qc_recover.c
 *		The driver of recovery: which logs there are, and the order of the steps (contract and steps in qc_recover.h).
 *
 * Nothing is written before the end is found and everything below it has been applied, so that a directory that must
 * not be opened is left as it is.  What recovery has read is synced before it writes anything that counts on it.
 *
 * Every step may be cut short by a crash and repeated: cutting finds the same end, restoring the same bytes, deciding the
 * same verdicts, as mark, logs and stash stay until the caller has seen QC_OK.
 */
#include "qc_recover_int.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "qc_catalog.h"
#include "qc_search.h"

#define TICKS	256				/* steps between two questions whether to go on */
#define SWEEP_ROWS 1000

QcStatus
qc_recover_tick(QcRecovery *rc, const char *phase, uint64_t done, uint64_t total, QcError *err)
{
	const QcRecoverHooks *hooks = &rc->r->hooks;

	bool		due = rc->ticks++ % TICKS == 0 || rc->phase != phase;

	rc->phase = phase;
	if (!due || hooks->progress == NULL ||
		hooks->progress(hooks->context, phase, done, total))
		return QC_OK;
	return qc_error_set(err, QC_INTERRUPTED, "recovery was interrupted");
}

/* ---- the list of logs ---- */

/* Index of the first log that is not below this one. */
static uint32_t
tail_index(const QcRecovery *rc, uint64_t log)
{
	return QC_LOWER_BOUND(rc->logs, rc->nlogs, QcLogTail, log, log);
}

QcLogTail *
qc_recover_tail(QcRecovery *rc, uint64_t log)
{
	uint32_t	at = tail_index(rc, log);

	return at < rc->nlogs && rc->logs[at].log == log ? &rc->logs[at] : NULL;
}

QcStatus
qc_recover_add_tail(QcRecovery *rc, uint64_t log, bool known, uint64_t file, uint64_t position,
					QcError *err)
{
	uint32_t	at = tail_index(rc, log);
	QcLogTail	tail = {.log = log, .known = known, .start_file = file, .start_position = position,
		.tail_file = file, .tail_position = position};
	QcStatus	status = qc_array_grow(&rc->logs, &rc->cap_logs, rc->nlogs + 1,
									   sizeof(QcLogTail), err);

	if (status != QC_OK)
		return status;

	/* one that was renamed away makes room for its successor */
	if (at < rc->nlogs && rc->logs[at].log == log)
	{
		assert(rc->logs[at].gone);
		rc->logs[at] = tail;
		return QC_OK;
	}
	memmove(&rc->logs[at + 1], &rc->logs[at], (rc->nlogs - at) * sizeof(QcLogTail));
	rc->logs[at] = tail;
	rc->nlogs++;
	return QC_OK;
}

/*
 * A directory that the checkpoint does not know: where its records above the mark begin.  When it begins with older ones
 * its queue was gone at the mark, so nothing in it is needed: *file = 0, as when there is no file at all.
 */
static QcStatus
look_into_unknown(QcRecovery *rc, uint64_t log, uint64_t *file, QcError *err)
{
	uint64_t   *files;
	uint32_t	n;
	QcScan		scan;
	QcStatus	status = qc_dir_files(rc->r->files->io, rc->r->files->layout, log, &files, &n, err);

	if (status != QC_OK)
		return status;
	*file = n == 0 ? 0 : files[0];
	free(files);
	if (n == 0)
		return QC_OK;
	status = qc_scan_begin(&scan, rc->r->files, log, *file, QC_FILE_HEADER_SIZE, err);
	if (status != QC_OK)
		return status;
	status = qc_scan_next(&scan, err);
	if (status == QC_OK && scan.record.seq <= rc->r->mark)
		*file = 0;
	qc_scan_end(&scan);
	return status == QC_END ? QC_OK : status;
}

/* One log directory, and where its records above the mark begin. */
static QcStatus
add_directory(QcRecovery *rc, uint64_t id, QcError *err)
{
	QcState    *st = rc->r->st;
	QcLog	   *log = qc_log_by_id(st, id);
	uint64_t	file;
	QcStatus	status;

	if (log != NULL)
		return qc_recover_add_tail(rc, id, true, log->file, log->tail, err);
	status = look_into_unknown(rc, id, &file, err);
	if (status != QC_OK)
		return status;

	/*
	 * those that stay are always the state's; before the first checkpoint they begin at their
	 * beginning
	 */
	if (qc_log_stays(st->shards, id))
	{
		char		path[QC_PATH_MAX];

		qc_path_log(path, rc->r->files->layout, id);
		if (file == 0)
			return qc_error_at(err, QC_MISSING, path, UINT64_MAX,
							   "log has no file above the checkpoint, which does not know it");
		if (qc_log_add(st, id, file, QC_FILE_HEADER_SIZE, QC_FILE_HEADER_SIZE, false) == NULL)
			return qc_error_set(err, QC_FULL, "qlog.state_memory is full");
	}
	return qc_recover_add_tail(rc, id, false, file, QC_FILE_HEADER_SIZE, err);
}

static QcStatus
missing_log(QcRecovery *rc, uint64_t log, const char *who, QcError *err)
{
	char		path[QC_PATH_MAX];
	QcError		why;
	QcStatus	status;

	qc_path_log(path, rc->r->files->layout, log);
	(void) qc_error_at(&why, QC_MISSING, path, UINT64_MAX, "log directory that %s does not exist", who);
	if (qc_log_by_id(rc->r->st, log) == NULL)
	{
		if (err != NULL)
			*err = why;
		return QC_MISSING;
	}
	status = qc_recover_add_tail(rc, log, true, 0, 0, err);
	if (status == QC_OK)
		qc_give_log(rc, qc_recover_tail(rc, log), &why);
	return status;
}

/*
 * Does a queue need the log, whose directory is missing?	 A snapshot may still have the rows of queues that were dropped before its
 * mark, while their log went with them.
 */
static bool
is_needed(QcRecovery *rc, const QcLog *log)
{
	if (log->nqueues == 0)
		return false;
	while (qc_queue_sweep(rc->r->st, SWEEP_ROWS))
		;
	return log->nqueues > 0;
}

/* Logs that the directory was made with, and those that live queues of the checkpoint need, must be there: missing is never new. */
static QcStatus
check_expected(QcRecovery *rc, QcError *err)
{
	QcState    *st = rc->r->st;

	QcStatus	status = QC_OK;

	for (uint64_t id = 0; id <= st->shards && status == QC_OK; id++)
		if (qc_recover_tail(rc, id) == NULL)
			status = missing_log(rc, id, "was made with the data directory", err);
	for (QcLog *log = QC_AT(st, QcLog, st->logs); log != NULL && status == QC_OK;
		 log = QC_AT(st, QcLog, log->next))
		if (qc_recover_tail(rc, log->id) == NULL && is_needed(rc, log))
			status = missing_log(rc, log->id, "the checkpoint expects", err);
	return status;
}

/* The queues of the checkpoint must be in the logs that the directory's number of shared ones says. */
static QcStatus
check_shards(const QcState *st, QcError *err)
{
	for (const QcQueue *queue = QC_AT(st, QcQueue, st->queues.head); queue != NULL;
		 queue = QC_AT(st, QcQueue, queue->all.next))
	{
		if (queue->log_id != qc_log_of_queue(st->shards, queue->id))
			return qc_error_at(err, QC_MISSING, "qlog/SHARDS", UINT64_MAX,
							   "file is missing or wrong: with %u shared logs queue %" PRIu64
							   " would not be in log %" PRIu64 ", where the checkpoint has it",
							   st->shards, queue->id, queue->log_id);
	}
	return QC_OK;
}

/* What lies below the floor cannot be rebuilt: logs that it needs are gone. */
static QcStatus
check_floor(const QcRecover *r, QcError *err)
{
	if (r->mark >= r->floor)
		return QC_OK;
	return qc_error_at(err, QC_MISSING, "FLOOR", UINT64_MAX,
					   "logs that entries up to %" PRIu64 " need have been removed, and the checkpoint ends at %" PRIu64,
					   r->floor, r->mark);
}

static QcStatus
find_logs(QcRecovery *rc, QcError *err)
{
	uint64_t   *ids;
	uint32_t	n;
	QcStatus	status = qc_dir_logs(rc->r->files->io, rc->r->files->layout, &ids, &n, err);

	for (uint32_t i = 0; i < n && status == QC_OK; i++)
		status = add_directory(rc, ids[i], err);
	free(ids);
	return status == QC_OK ? check_expected(rc, err) : status;
}

/* ---- the steps ---- */

/* Queue-only entries of the checkpoint that were not settled yet: they are durable, as all that it covers. */
static void
settle_checkpoint(QcRecovery *rc)
{
	QcState    *st = rc->r->st;
	QcRef		next;

	for (QcRef ref = st->opens.head; ref != 0; ref = next)
	{
		QcOpen	   *open = QC_AT(st, QcOpen, ref);

		next = open->all.next;
		if (open->xid == 0 && open->decided == 0)
			qc_open_settle(st, open, true, 0, rc->r->monotonic);
		else if (open->seq < rc->decisions.base)
			rc->decisions.base = open->seq;
	}
}

/* Decide what is undecided, and log that with everything else that the new epoch begins with. */
static QcStatus
decide_and_finish(QcRecovery *rc, QcError *err)
{
	QcStatus	status = qc_recover_decide(rc, err);

	return status == QC_OK ? qc_recover_finish(rc, err) : status;
}

/* Replay has met an entry that cannot be applied: what would be given up with it? */
static void
explain(QcRecovery *rc)
{
	QcRecover  *r = rc->r;
	uint64_t	granted = r->give_up_seq;
	uint64_t	seq = rc->bundle.seq;

	r->give_up_seq = seq;
	rc->given.n = 0;
	rc->given_last = 0;
	(void) qc_recover_find_end(rc, NULL);
	r->refused = r->given_seq == seq;
	r->give_up_seq = granted;
}

/* All steps in order.  Files are changed from "retire" on. */
static QcStatus
run(QcRecovery *rc, QcError *err)
{
	static const struct
	{
		const char *phase;
		QcStatus	(*run) (QcRecovery *rc, QcError *err);
	}			steps[] =
	{
		{"end", qc_recover_find_end},
		{"replay", qc_recover_replay},
		{"stash", qc_recover_read_stash},
		{"retire", qc_recover_retire},
		{"cut", qc_recover_cut},
		{"settle", qc_recover_settle_logs},
		{"sync", qc_recover_sync},
		{"restore", qc_recover_restore},
		{"decide", decide_and_finish},
	};
	QcStatus	status = check_floor(rc->r, err);

	if (status == QC_OK)
		status = check_shards(rc->r->st, err);
	if (status == QC_OK)
		status = find_logs(rc, err);
	if (status != QC_OK)
		return status;
	rc->decisions.base = rc->r->mark + 1;
	settle_checkpoint(rc);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && status == QC_OK; i++)
	{
		status = qc_recover_tick(rc, steps[i].phase, 0, 0, err);
		if (status == QC_OK)
			status = steps[i].run(rc, err);
		if (status == QC_DAMAGED && steps[i].run == qc_recover_replay)
			explain(rc);
	}
	return status;
}

QcStatus
qc_recover(QcRecover *r, QcError *err)
{
	QcRecovery	rc;
	QcStatus	status;

	assert(r->redo_end != 0);
	memset(&rc, 0, sizeof(rc));
	rc.r = r;
	r->mark = r->st->seq;
	r->required = r->end = r->replayed = r->cut_bytes = 0;
	r->restored = r->voided = r->committed = r->aborted = r->damaged_queues = 0;
	r->changed = r->refused = false;
	r->given_seq = r->given_entries = r->given_logs = 0;
	status = run(&rc, err);
	qc_merge_end(&rc);
	free(rc.logs);
	free(rc.heap);
	free(rc.spots);
	free(rc.bundle.parts);
	free(rc.bundle.records);
	free(rc.bundle.bytes);
	free(rc.epochs.rows);
	free(rc.decisions.bits);
	free(rc.decisions.again);
	free(rc.stash.entries);
	free(rc.given.ranges);
	return status;
}
