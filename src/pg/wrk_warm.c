/*
 * wrk_warm.c
 *		Once after a start: the older records of active files go into the memory index (qc_warm.h).
 *
 * Called by the checkpointer worker between checkpoints, for a short time at a time.  Until it is done, and where there is
 * no room, readers find such records in the files.
 */
#include "wrk_checkpoint.h"

#include "utils/memutils.h"

#include "qlog_commit.h"
#include "qlog_fetch.h"
#include "qlog_io.h"

#include "../core/qc_warm.h"

#define PAUSE_US	100000		/* how long the worker may be busy with this at a time */
#define STEP		200			/* records added in one hold of the state lock */

typedef struct Warming
{
	bool		begun;
	QcWarm	   *logs;			/* that are wanted */
	uint32		nlogs;
	uint32		at;
} Warming;

static Warming warming;

/* Note the logs that are wanted; false = their number has grown over max meanwhile. */
static bool
note_logs(uint32 max)
{
	uint32		n = 0;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	for (QcLog *log = QC_AT(qlog_state, QcLog, qlog_state->logs); log != NULL;
		 log = QC_AT(qlog_state, QcLog, log->next))
	{
		QcWarm		warm;

		if (qc_warm_wanted(log, &warm) && n++ < max)
			warming.logs[n - 1] = warm;
	}
	LWLockRelease(&qlog_shared->state_lock);
	warming.nlogs = n;
	return n <= max;
}

static void
begin(void)
{
	uint32		max = 0;

	warming.begun = true;
	while (!note_logs(max))
	{
		max = warming.nlogs;
		if (warming.logs != NULL)
			pfree(warming.logs);
		warming.logs = MemoryContextAlloc(TopMemoryContext, max * sizeof(QcWarm));
	}
}

/* Its records must stand in the file before they are read there. */
static QcStatus
load(QcWarm *warm, QcReadCache *cache, QcError *err)
{
	return qlog_write_noerror(qlog_newest_seq(), err) ? qc_warm_load(warm, cache, err) : err->code;
}

static void
warm_log(QlogWorker *worker, QcWarm *warm)
{
	QcReadCache cache;
	QcError		err;
	QcStatus	status;
	bool		more;

	qc_error_clear(&err);
	qlog_fetch_cache(&cache);
	status = load(warm, &cache, &err);
	if (status != QC_OK && status != QC_MISSING)
		qlog_worker_error(worker, &err, "could not index an active log file");
	for (more = status == QC_OK; more && !qlog_worker_shutdown();)
	{
		qlog_lock_state();
		more = qc_warm_step(qlog_state, warm, STEP);
		qlog_unlock_state();
	}
	qc_warm_end(warm);
	qc_read_end(&cache);
}

bool
qlog_upkeep_warm(QlogWorker *worker)
{
	int64		end = qlog_monotonic() + PAUSE_US;

	if (!warming.begun)
		begin();
	while (warming.at < warming.nlogs)
	{
		if (qlog_worker_shutdown() || qlog_monotonic() > end)
			return true;
		warm_log(worker, &warming.logs[warming.at++]);
	}
	if (warming.logs != NULL)
		pfree(warming.logs);
	warming.logs = NULL;
	return false;
}
