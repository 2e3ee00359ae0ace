/*
 * wrk_recover.c
 *		Start of qlog inside the server: what the core's recovery (core/qc_recover.h) needs to know of PostgreSQL.
 *
 * Runs in the checkpointer worker after PostgreSQL's own redo, with the gate closed, so nobody else looks at the state.
 */
#include "wrk_checkpoint.h"

#include <sys/stat.h>
#include <unistd.h>

#include "access/timeline.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "access/xlogrecovery.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/lwlock.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "qlog_compat.h"
#include "qlog_fetch.h"
#include "qlog_guc.h"
#include "qlog_io.h"
#include "qlog_refusal.h"
#include "qlog_report.h"
#include "qlog_rmgr.h"
#include "qlog_stop.h"

#include "../core/qc_dedup_rebuild.h"
#include "../core/qc_recover.h"

/* What the hooks look at. */
typedef struct Recovery
{
	QlogWorker *worker;
	List	   *history;		/* TimeLineHistoryEntry */
	TimeLineID	timeline;
	XLogRecPtr	redo_end;
	const char *phase;
} Recovery;

/*
 * The hooks are called from within the core, which must not be jumped over.  This is their PG_CATCH: the error that
 * PostgreSQL raised becomes a status, and what it held is let go of.  No lock is held when recovery calls a hook.
 */
static QcStatus
caught(MemoryContext context, QcError *err)
{
	ErrorData  *edata;
	QcStatus	status;

	MemoryContextSwitchTo(context);
	edata = CopyErrorData();
	FlushErrorState();
	LWLockReleaseAll();
	pgstat_report_wait_end();
	status = qc_error_set(err, edata->sqlerrcode == ERRCODE_DATA_CORRUPTED ? QC_DAMAGED : QC_IO, "%s%s%s",
						  edata->message, edata->detail == NULL ? "" : ": ",
						  edata->detail == NULL ? "" : edata->detail);
	FreeErrorData(edata);
	return status;
}

static QcStatus
random_id(void *context, uint64_t *id, QcError *err)
{
	(void) context;
	*id = 0;
	while (*id == 0)
	{
		if (!pg_strong_random(id, sizeof(*id)))
			return qc_error_set(err, QC_INTERNAL, "could not generate a random number");
	}
	return QC_OK;
}

/* Does the point lie in this server's history, at or before the end of redo? */
static bool
in_history(void *context, uint32_t timeline, uint64_t lsn)
{
	const Recovery *recovery = context;
	ListCell   *cell;

	foreach(cell, recovery->history)
	{
		const TimeLineHistoryEntry *entry = lfirst(cell);

		if (entry->tli != timeline)
			continue;
		if (entry->tli == recovery->timeline)
			return lsn <= recovery->redo_end;
		return XLogRecPtrIsInvalid(entry->end) || lsn <= entry->end;
	}
	return false;
}

/* What the commit log has no word on any more is given up when that is asked for. */
static QcStatus
unknown_xid(uint64_t xid, QcStatus status)
{
	if (!qlog_allow_gap)
		return status;
	ereport(LOG,
			(errmsg("qlog: queue work of transaction %llu is given up", (unsigned long long) xid),
			 errdetail("The commit log does not tell whether it committed, and \"qlog.allow_gap\" is on.")));
	return QC_OK;
}

/*
 * The commit log's word on a full xid whose WAL record was durable: redo has moved nextXid past it, so the xid was not
 * handed out again.  VACUUM may have cut the commit log since.
 */
static QcStatus
xid_committed(void *context, uint64_t xid, bool *committed, QcError *err)
{
	TransactionId short_xid = XidFromFullTransactionId(FullTransactionIdFromU64(xid));
	MemoryContext caller = CurrentMemoryContext;
	volatile QcStatus status = QC_OK;

	(void) context;
	*committed = false;
	if (xid >= qlog_shared->next_xid)
		return QC_OK;
	if (TransactionIdPrecedes(short_xid, QLOG_OLDEST_CLOG()))
		return unknown_xid(xid, qc_error_set(err, QC_DAMAGED,
											 "the commit log does not reach back to transaction %llu, whose queue work may be missing (qlog.allow_gap gives it up)",
											 (unsigned long long) xid));
	PG_TRY();
	{
		*committed = TransactionIdDidCommit(short_xid);
	}
	PG_CATCH();
	{
		status = unknown_xid(xid, caught(caller, err));
	}
	PG_END_TRY();
	return status;
}

static QcStatus
new_epoch(void *context, uint64_t old_epoch, uint64_t epoch, uint64_t first_seq, QcError *err)
{
	QcWalMark	mark = {.directory = qlog_state->directory_id, .epoch = epoch,
		.old_epoch = old_epoch, .seq = first_seq};
	MemoryContext caller = CurrentMemoryContext;
	volatile QcStatus status = QC_OK;

	(void) context;
	PG_TRY();
	{
		XLogFlush(qlog_wal_mark(QC_WAL_EPOCH, &mark));
	}
	PG_CATCH();
	{
		XLogResetInsertion();
		status = caught(caller, err);
	}
	PG_END_TRY();
	return status;
}

static bool
progress(void *context, const char *phase, uint64_t done, uint64_t total)
{
	Recovery   *recovery = context;
	char		state[sizeof(recovery->worker->state)];

	if (recovery->phase == NULL || strcmp(recovery->phase, phase) != 0)
	{
		recovery->phase = phase;
		qlog_stop_at_step("recovery", phase);
	}
	if (total > 0)
		snprintf(state, sizeof(state), "recovering: %s %d%%", phase,
				 (int) (done * 100 / total));
	else
		snprintf(state, sizeof(state), "recovering: %s", phase);
	qlog_worker_state(recovery->worker, state);
	return !qlog_worker_shutdown();
}

/* As a leader of group commit does where it has many files to sync (qlog_flush.c). */
static QcStatus
sync_all(void *context, bool *done, QcError *err)
{
	int			rc = qlog_sync_method == QLOG_SYNC_FILES ? ENOSYS : qlog_io_syncfs();

	(void) context;
	*done = rc == 0;
	return rc == 0 || rc == ENOSYS ? QC_OK :
		qc_error_sys(err, rc, "", "could not sync the file system of the data directory");
}

/* Read the stash whole; NULL when there is none. */
static QcStatus
read_stash(uint8 **bytes, size_t *len, QcError *err)
{
	char		path[MAXPGPATH];
	struct stat st;

	*bytes = NULL;
	*len = 0;
	snprintf(path, sizeof(path), "%s/%s", qlog_directory(), QC_STASH_PATH);
	if (stat(path, &st) != 0)
		return errno == ENOENT ? QC_OK : qc_error_sys(err, errno, QC_STASH_PATH, "could not stat");
	*bytes = MemoryContextAllocExtended(TopMemoryContext, (Size) st.st_size + 1,
										MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (*bytes == NULL)
		return qc_error_set(err, QC_FULL, "out of memory");
	return qc_dir_read_file(qlog_io(), QC_STASH_PATH, *bytes, (size_t) st.st_size, len, err);
}

static QcStatus
remove_stash(QcError *err)
{
	const QcIo *io = qlog_io();
	int			rc = io->unlink(io->context, QC_STASH_PATH);

	if (rc == 0)
		rc = io->sync_directory(io->context, "replication");
	return rc == 0 || rc == ENOENT ? QC_OK :
		qc_error_sys(err, rc, QC_STASH_PATH, "could not remove");
}

/* Sites are locked once it is known whose they are: nothing is left in one that is not ours. */
static QcStatus
lock_sites(QcError *err)
{
	const char *which;
	int			rc = qlog_io_lock_sites(&which);

	if (rc == EAGAIN)
		return qc_error_at(err, QC_BUSY, which, UINT64_MAX, "directory is in use by another server");
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, which, "could not lock directory");
}

static QcStatus
open_directory(QcIdentity *identity, QcError *err)
{
	const char *which;
	int			rc = qlog_io_make_root(&which);
	QcDirChoice choice = {.layout = (QcLayout) qlog_directory_layout, .shards = (uint32) qlog_shards};
	uint64		new_id = 0;
	uint64		new_node = 0;
	uint32_t	strays;
	QcStatus	status;

	if (rc != 0)
		return qc_error_sys(err, rc, which, "could not open the data directory or a part of it");
	rc = qlog_io_lock();
	if (rc == EAGAIN)
		return qc_error_set(err, QC_BUSY, "the data directory is in use by another server");
	if (rc != 0)
		return qc_error_sys(err, rc, "LOCK", "could not lock the data directory");
	for (QcSite site = 0; site < QC_SITES; site++)
		strlcpy(choice.sites.path[site], qlog_site(site), QC_SITE_PATH);
	status = random_id(NULL, &new_id, err);
	if (status == QC_OK)
		status = random_id(NULL, &new_node, err);
	if (status == QC_OK)
		status = qc_dir_open(qlog_io(), GetSystemIdentifier(), &choice, new_id, new_node, identity, err);
	if (status == QC_OK)
		status = lock_sites(err);
	if (status == QC_OK)
		status = qc_dir_sweep(qlog_io(), identity->layout, &strays, err);
	if (status == QC_OK && strays > 0)
		ereport(LOG,
				(errmsg("qlog: %u files or directories below \"%s\" are not qlog's and are left alone",
						strays, qlog_directory())));
	return status;
}

/* A copy becomes a node of its own. */
static QcStatus
adopt(QcIdentity *identity, QcError *err)
{
	uint64		node;
	QcStatus	status = random_id(NULL, &node, err);

	return status == QC_OK ? qc_dir_adopt(qlog_io(), node, identity, err) : status;
}

static QcStatus
recover_state(QlogWorker *worker, const QcIdentity *identity, QcRecover *recover, QcError *err)
{
	Recovery	recovery = {.worker = worker, .timeline = GetWALInsertionTimeLine()};
	uint8	   *stash = NULL;
	size_t		stash_len = 0;
	uint64_t	floor = 0;
	uint64_t	snapshot = 0;
	QcStatus	status = qc_dir_read_floor(qlog_io(), &floor, err);

	qlog_state->directory_id = identity->directory_id;
	qlog_state->shards = identity->shards;
	if (status == QC_OK)
		status = qc_snapshot_oldest(qlog_io(), floor, &snapshot, err);
	if (status == QC_OK)
		status = read_stash(&stash, &stash_len, err);
	if (status != QC_OK)
		return status;
	recovery.history = readTimeLineHistory(recovery.timeline);
	recovery.redo_end = qlog_shared->end_of_redo != 0 ? qlog_shared->end_of_redo :
		GetFlushRecPtr(NULL);
	qlog_shared->timeline = recovery.timeline;
	*recover = (QcRecover)
	{
		.st = qlog_state, .ring = qlog_ring, .files = qlog_files(),
		.segment_size = qlog_segment_bytes(), .stash = stash, .stash_len = stash_len,
		.timeline = recovery.timeline, .redo_end = recovery.redo_end,
		.copied = identity->copied, .floor = floor, .snapshot = snapshot, .allow_gap = qlog_allow_gap,
		.new_timeline = qlog_state->nepochs > 0 &&
		qlog_state->epochs[qlog_state->nepochs - 1].timeline != recovery.timeline,
		.now = qlog_now(), .monotonic = qlog_monotonic(),
		.hooks =
		{
		&recovery, in_history, xid_committed, new_epoch, random_id, progress, sync_all, qlog_refusal_run
		}
	};
	qlog_refusal_begin(recover);
	status = qc_recover(recover, err);
	qlog_refusal_end(recover, status);
	if (stash != NULL)
		pfree(stash);
	return status;
}

/* Dedup ids are stored nowhere but in the messages. */
static QcStatus
rebuild_dedups(QlogWorker *worker, QcError *err)
{
	QcReadCache cache;
	uint32_t	damaged;
	QcStatus	status;

	qlog_worker_state(worker, "recovering: dedup ids");
	qlog_fetch_cache(&cache);
	status = qc_dedup_rebuild(qlog_state, &cache, qlog_now(), &damaged, err);
	qc_read_end(&cache);
	if (damaged > 0)
		ereport(WARNING,
				(errmsg_plural("qlog: %u queue is out of service, because its dedup ids could not be read",
							   "qlog: %u queues are out of service, because their dedup ids could not be read",
							   damaged, damaged)));
	return status;
}

static void
log_ready(const QcRecover *recover, int64 began)
{
	qlog_shared->recovery_us = (uint64) (qlog_monotonic() - began);
	ereport(LOG,
			(errmsg("qlog: ready after %.1f ms: " UINT64_FORMAT " entries replayed from " UINT64_FORMAT
					", %u restored, %u void, %u committed and %u aborted by the commit log, " UINT64_FORMAT " bytes cut",
					(double) qlog_shared->recovery_us / 1000.0, recover->replayed, recover->mark,
					recover->restored, recover->voided, recover->committed, recover->aborted,
					recover->cut_bytes)));
}

/* A message must fit into half a log file (qlog_stage.c), whatever the other setting says. */
static void
compare_limits(void)
{
	if ((uint64) qlog_max_message_size * 1024 <= qlog_segment_bytes() / 2)
		return;
	ereport(LOG,
			(errmsg("qlog: messages are limited to less than %d kB", qlog_segment_size * 1024 / 2),
			 errdetail("\"qlog.max_message_size\" is %d kB, but a message must fit into half a log file of %d MB.",
					   qlog_max_message_size, qlog_segment_size),
			 errhint("Raise \"qlog.segment_size\", or lower \"qlog.max_message_size\".")));
}

/* Directories that this start has retired, unfinished creations among them.  What cannot go now goes at the next start. */
static void
sweep_retired(QcLayout layout)
{
	uint32_t	strays;
	QcError		ignored;

	(void) qc_dir_sweep(qlog_io(), layout, &strays, &ignored);
}

/*
 * Recover from what was loaded.  Who copied files in another way than a base backup may have taken the checkpoint later than
 * the logs: then something older is tried.  When none of it can be used, the reason is what stopped the newest.
 */
static QcStatus
recover_from_loaded(QlogWorker *worker, QlogLoad *load, const QcIdentity *identity,
					QcRecover *recover, QcError *err)
{
	QcStatus	status = recover_state(worker, identity, recover, err);
	QcError		newest = *err;

	while (identity->copied && recover->mark > 0 && (status == QC_DAMAGED || status == QC_MISSING))
	{
		QcError		why = *err;

		status = qlog_load_next(load, err);
		if (status == QC_END)
			break;
		qlog_report(WARNING, &why, "the checkpoint in this copy of qlog does not fit its logs, an older one is used");
		if (status == QC_OK)
			status = recover_state(worker, identity, recover, err);
	}
	if (status == QC_END ||
		((status == QC_DAMAGED || status == QC_MISSING) && newest.code != QC_OK))
	{
		*err = newest;
		return newest.code;
	}
	return status;
}

QcStatus
qlog_recover(QlogWorker *worker, QsStore **store, QcError *err)
{
	int64		began = qlog_monotonic();
	QcIdentity	identity;
	QlogLoad	load = {0};
	QcRecover	recover = {0};
	QcStatus	status;

	qlog_shmem_reset();
	qlog_shared->refusal.possible = false;
	qlog_worker_state(worker, "recovering");
	status = open_directory(&identity, err);
	if (status == QC_OK)
	{
		qlog_files()->layout = identity.layout;
		status = qlog_load_first(&load, &identity, err);
	}
	if (status == QC_OK)
		status = recover_from_loaded(worker, &load, &identity, &recover, err);
	*store = load.store;
	if (status == QC_OK)
		status = qc_snapshot_remove_from(qlog_io(), recover.end, err);
	if (status == QC_OK && identity.copied)
		status = adopt(&identity, err);
	if (status == QC_OK)
	{
		QLOG_STOP("recovery-before-stash-removal");
		status = remove_stash(err);
		QLOG_STOP("recovery-after-stash-removal");
	}
	if (status == QC_OK && recover.changed)
		sweep_retired(identity.layout);
	if (status == QC_OK)
		status = rebuild_dedups(worker, err);
	if (status == QC_OK)
	{
		qlog_snapshot_start();
		log_ready(&recover, began);
		compare_limits();
	}
	return status;
}
