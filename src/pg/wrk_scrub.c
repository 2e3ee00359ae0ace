/*
 * wrk_scrub.c
 *		The scrub worker: every qlog.scrub_interval it reads all closed log files, qlog.scrub_rate of them a second, checks every
 *		record, and asks the state for messages that no file holds.
 *
 * What it finds is noted for the view qlog_damage and told to the server's log, once, as far as somebody still needs it.	 Queues go
 * on: damage concerns the messages that stood there (qlog_damage.h).	The worker changes nothing on disk and logs no entry;
 * killed at any moment it begins anew.
 */
#include "wrk_scrub.h"

#include "postgres.h"

#include "miscadmin.h"
#include "storage/procsignal.h"
#include "utils/memutils.h"

#include "qlog_args.h"
#include "qlog_damage.h"
#include "qlog_guc.h"
#include "qlog_logfiles.h"
#include "qlog_snapshot.h"
#include "qlog_verify.h"
#include "wrk_worker.h"

#include "../core/qc_log.h"

#define FINDINGS_MAX	64		/* of one file */
#define LOST_MAX		4096	/* records of one place */
#define LOGS_MAX		64		/* ids taken under one hold of the state lock */
#define NAP_US			20000
#define QUEUES_MAX		64		/* of a log, taken under one hold of the lock */
#define MISSING_MAX		16		/* noted of one queue */

PGDLLEXPORT void qlog_scrub_main(Datum arg);

/* A pass under way; callbacks of the core use it, so nothing in it may raise. */
typedef struct Scrub
{
	QlogWorker *worker;
	uint64		log;
	int64		began;			/* monotonic */
	uint64		bytes;			/* read since then */
	uint32		nfindings;
	QcFinding	findings[FINDINGS_MAX];
	uint32		nlost;
	bool		overflow;		/* more was lost than fits */
	QlogLost	lost[LOST_MAX];
	QlogVerify	seen;			/* records of the closed files of this log */
} Scrub;

static bool
note_finding(void *context, const QcFinding *finding)
{
	Scrub	   *scrub = context;

	if (scrub->nfindings < FINDINGS_MAX)
		scrub->findings[scrub->nfindings++] = *finding;
	return true;
}

/* Without memory for all of it nothing can be said of what is missing; the rest is done. */
static bool
note_record(void *context, uint64_t partition, uint64_t first, uint32_t count)
{
	Scrub	   *scrub = context;

	if (!scrub->seen.failed)
		(void) qlog_verify_record(&scrub->seen, partition, first, count);
	return true;
}

static bool
belongs(void *context, uint64_t partition)
{
	return qlog_damage_belongs(((const Scrub *) context)->log, partition);
}

/* Keep to the rate. */
static bool
pace(void *context, uint64_t bytes)
{
	Scrub	   *scrub = context;
	int64		due;

	scrub->bytes += bytes;
	due = scrub->began + (int64) (scrub->bytes * 1000 / ((uint64) qlog_scrub_rate * 1024)) * 1000;
	while (qlog_monotonic() < due && !qlog_worker_shutdown())
	{
		if (ProcSignalBarrierPending)
			ProcessProcSignalBarrier();
		pg_usleep(NAP_US);
	}
	return !qlog_worker_shutdown();
}

static void
note_lost(void *context, uint64_t partition, uint64_t first, uint32_t count)
{
	Scrub	   *scrub = context;

	scrub->overflow |= scrub->nlost == LOST_MAX;
	if (scrub->nlost < LOST_MAX)
		scrub->lost[scrub->nlost++] = (QlogLost) {partition, first, count};
}

/* What stood there, and does anybody need it? */
static void
judge(Scrub *scrub, const QcFinding *finding)
{
	bool		known;
	bool		needed;
	QcError		err;

	scrub->nlost = 0;
	scrub->overflow = false;
	known = qc_verify_lost(qlog_files(), finding->log, finding->file, finding->foreign ? 0 : finding->position,
						   finding->foreign ? UINT64_MAX : finding->bytes, note_lost, scrub,
						   &err) == QC_OK && !scrub->overflow;

	/* Records of another log do no harm by being there: what should be there instead does. */
	needed = !known && finding->log != 0 && (!finding->foreign || scrub->overflow);

	/* Entries that a start would replay. */
	if (finding->next_seq == 0 || finding->next_seq > qlog_start_floor())
		needed = needed || finding->log == 0;
	for (uint32 i = 0; i < scrub->nlost && !needed; i++)
		needed = qlog_damage_needs(&scrub->lost[i]);
	if (qlog_damage_note(finding, needed) && needed)
		qlog_damage_tell(finding, known && finding->log != 0 ? scrub->lost : NULL, scrub->nlost);
}

static void
scrub_file(Scrub *scrub, uint64 log, uint64 file)
{
	QcVerify	verify = {.files = qlog_files(), .log = log, .file = file, .context = scrub,
		.finding = note_finding, .record = note_record, .belongs = belongs, .progress = pace};
	QcError		err;
	QcStatus	status;

	qc_error_clear(&err);
	scrub->log = log;
	scrub->nfindings = 0;
	status = qc_verify_file(&verify, &err);

	/* The file may have been replaced while it was read: only what is there twice counts. */
	if (status == QC_OK && scrub->nfindings > 0)
	{
		scrub->nfindings = 0;
		status = qc_verify_file(&verify, &err);
	}
	if (status == QC_OK && scrub->nfindings > 0 && scrub->findings[scrub->nfindings - 1].by_index &&
		!qlog_verify_ends_early(&scrub->findings[scrub->nfindings - 1]))
		scrub->nfindings--;
	qc_files_forget(qlog_files(), log, file);
	if (status == QC_INTERRUPTED || status == QC_MISSING)
		return;
	if (status != QC_OK)
	{
		qlog_worker_error(scrub->worker, &err, "could not scrub a log file");
		return;
	}
	qlog_damage_forget(log, file);
	for (uint32 i = 0; i < scrub->nfindings; i++)
		judge(scrub, &scrub->findings[i]);
}

/* The active file of a log; false = it is gone. */
static bool
active_file(uint64 id, uint64 *active)
{
	const QcLog *log;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	log = qc_log_by_id(qlog_state, id);
	if (log != NULL)
		*active = log->file;
	LWLockRelease(&qlog_shared->state_lock);
	return log != NULL;
}

/* Queues of a log, from one id on; returns their number.  A log that is not shared is named after its queue. */
static uint32
queues_of(uint64 log, uint64 from, uint64 *ids)
{
	uint32		n = 0;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	if (qlog_state->shards == 0 && log >= from)
		ids[n++] = log;
	for (const QcQueue *queue = qlog_state->shards == 0 ? NULL : QC_AT(qlog_state, QcQueue, qlog_state->queues.head);
		 queue != NULL && n < QUEUES_MAX;
		 queue = QC_AT(qlog_state, QcQueue, queue->all.next))
	{
		if (queue->log_id == log && queue->id >= from && queue->state != QC_QUEUE_DEAD)
			ids[n++] = queue->id;
	}
	LWLockRelease(&qlog_shared->state_lock);
	return n;
}

/* Messages of one queue that are in no file. */
static void
note_missing(Scrub *scrub, uint64 queue)
{
	const QlogVerify *seen = &scrub->seen;

	qlog_verify_queue(&scrub->seen, queue);
	for (uint32 i = 0; i < Min(seen->nmissing, MISSING_MAX); i++)
	{
		const QlogMissing *missing = &seen->missing[i];
		char		name[QLOG_NAME_MAX];
		uint16		len = qlog_verify_partition(missing->partition, name);

		if (!qlog_damage_note_missing(scrub->log, missing->partition, missing->first, missing->end))
			continue;
		ereport(WARNING,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("qlog: messages of a queue are in no file"),
				 errdetail("Log " UINT64_FORMAT ", partition \"%.*s\": " UINT64_FORMAT " messages from position " UINT64_FORMAT " on.",
						   scrub->log, (int) len, name, missing->end - missing->first, missing->first),
				 errhint("The view qlog_damage names the queue. Bring back the file before consumers come to them, or give them up with qlog_repair().")));
	}
}

/* What does the state say is there, and no closed file holds?	What came since the look began stands in the file that was active then. */
static void
find_missing(Scrub *scrub)
{
	uint64		ids[QUEUES_MAX];
	uint64		from = 0;
	uint32		n;

	qc_cover_sort(&scrub->seen.cover);
	qlog_damage_forget(scrub->log, QLOG_DAMAGE_MISSING);
	while (!scrub->seen.failed && (n = queues_of(scrub->log, from, ids)) > 0)
	{
		for (uint32 i = 0; i < n && !qlog_worker_shutdown(); i++)
		{
			note_missing(scrub, ids[i]);
			qlog_worker_interrupts();
		}
		from = qlog_worker_shutdown() ? UINT64_MAX : ids[n - 1] + 1;
	}
}

static void
begin_log(Scrub *scrub, uint64 log, uint64 active)
{
	QlogVerify *seen = &scrub->seen;

	scrub->log = seen->log = log;
	seen->file = active;
	seen->tail = QC_FILE_HEADER_SIZE;
	seen->cover.n = 0;
	seen->failed = false;
	seen->forgiving = true;
}

/* Closed files of one log. */
static void
scrub_log(Scrub *scrub, uint64 log, uint64 active)
{
	uint32		n;
	uint32		at = 0;
	uint64	   *files = qlog_log_files(log, &n);
	QcFinding	gap;

	begin_log(scrub, log, active);
	if (log == 0)
		qlog_damage_forget(log, QLOG_DAMAGE_ALL);
	while (n > 0 && files[n - 1] > active)
		n--;
	for (uint32 i = 0; i < n && files[i] < active && !qlog_worker_shutdown(); i++)
		scrub_file(scrub, log, files[i]);
	while (qlog_verify_gap(log, files, n, &at, &gap))
		judge(scrub, &gap);
	if (files != NULL)
		pfree(files);
	if (!qlog_worker_shutdown())
		find_missing(scrub);
}

/* Places in files that have gone, with their queue or by themselves, are forgotten. */
static void
forget_gone(void)
{
	QlogDamageNote note;

	for (uint32 i = 0;; i++)
	{
		uint64_t	size;
		bool		found;
		QcError		err;

		LWLockAcquire(&qlog_shared->damage_lock, LW_SHARED);
		found = i < qlog_shared->ndamage;
		if (found)
			note = qlog_shared->damage[i];
		LWLockRelease(&qlog_shared->damage_lock);
		if (!found)
			return;
		qc_files_forget(qlog_files(), note.log, note.file);
		if (note.file == QLOG_DAMAGE_MISSING || note.log == 0 ||
			qc_files_size(qlog_files(), note.log, note.file, false, &size, &err) != QC_MISSING)
			continue;
		qlog_damage_forget(note.log, note.file);
		i--;
	}
}

static void
pass(Scrub *scrub)
{
	QlogWorker *worker = scrub->worker;
	uint32_t	at = 0;
	uint64_t	ids[LOGS_MAX];
	uint32		n;
	uint64		active;

	qlog_worker_state(worker, "scrub");
	qlog_worker_error(worker, NULL, NULL);
	scrub->began = qlog_monotonic();
	scrub->bytes = 0;
	do
	{
		LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
		n = qc_log_ids(qlog_state, &at, ids, LOGS_MAX);
		LWLockRelease(&qlog_shared->state_lock);
		for (uint32 i = 0; i < n && !qlog_worker_shutdown(); i++)
		{
			MemoryContextReset(scrub->seen.context);
			scrub->seen.cover = (QcCover) {0};
			scrub->seen.missing = NULL;
			scrub->seen.nmissing = scrub->seen.max_missing = 0;
			if (active_file(ids[i], &active))
				scrub_log(scrub, ids[i], active);
			qlog_worker_interrupts();
		}
	} while (n > 0 && !qlog_worker_shutdown());
	MemoryContextReset(scrub->seen.context);
	forget_gone();
	worker->passes++;
	worker->last_pass_us = qlog_monotonic() - scrub->began;
	worker->last_pass_at = GetCurrentTimestamp();
}

/* Sleep until a pass is due; settings are looked at whenever something wakes us. */
static bool
is_due(int64 began)
{
	int64		left = began + (int64) qlog_scrub_interval * USECS_PER_SEC - qlog_monotonic();
	bool		ready = pg_atomic_read_u32(&qlog_shared->gate) == QLOG_GATE_READY;

	if (ready && qlog_scrub_interval > 0 && left <= 0)
		return true;
	qlog_worker_sleep(ready && qlog_scrub_interval > 0 ? (long) (left / 1000) + 1 : -1);
	return false;
}

void
qlog_scrub_main(Datum arg)
{
	QlogWorker *worker = qlog_worker_begin((QlogWorkerKind) DatumGetInt32(arg));
	Scrub	   *scrub = MemoryContextAllocZero(TopMemoryContext, sizeof(Scrub));
	int64		began = qlog_monotonic();

	scrub->worker = worker;
	scrub->seen.context = AllocSetContextCreate(TopMemoryContext, "qlog scrub", ALLOCSET_DEFAULT_SIZES);
	while (!qlog_worker_shutdown())
	{
		qlog_worker_state(worker, "idle");
		if (!is_due(began) || qlog_worker_shutdown())
			continue;
		began = qlog_monotonic();
		pass(scrub);
	}
	qlog_worker_exit(worker);
}

void
qlog_scrub_register(void)
{
	qlog_worker_register(QLOG_WORKER_SCRUB, "qlog scrub", "qlog_scrub_main");
}
