/*
 * fn_repair.c
 *		qlog_repair: a damaged queue gives up what cannot be read, and serves again.
 *
 *	 1. the queue is put out of service, so that nothing comes or goes, and its log is verified
 *	 2. what is lost is logged (effect lost): those messages are gone in every replay
 *	 3. a checkpoint and snapshots pass that entry, so that no start has to read what stood at the damaged places
 *	 4. the damaged bytes are kept beside, and pads take their place, so that what stands behind them is reached
 *	 5. the end is logged (effect repair): the queue is in service
 *
 * Each step may be cut short by a crash; calling it again goes on.	None of it is undone by a rollback.	 Without a queue it is the way out
 * of a refused start (fn_repair_start.h).
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "fn_repair_start.h"
#include "qlog_args.h"
#include "qlog_commit.h"
#include "qlog_damage.h"
#include "qlog_lookup.h"
#include "qlog_refusal.h"
#include "qlog_report.h"
#include "qlog_row.h"
#include "qlog_snapshot.h"
#include "qlog_stop.h"
#include "qlog_verify.h"

#include "../core/qc_repair.h"

#define ITEMS_MAX	512			/* lost ranges of one entry */
#define FLOOR_US	100000		/* between two looks at the floor */

PG_FUNCTION_INFO_V1(qlog_repair);

enum
{
	ARG_QUEUE,
	ARG_DRY_RUN
};

typedef struct Repair
{
	ReturnSetInfo *result;
	QlogName	name;
	QlogQueue	queue;
	bool		dry_run;
	QlogVerify	verify;
	uint64		seq;			/* newest entry that was logged */
} Repair;

/* ---- what is said ---- */

static void
put_place(const Repair *repair, const QcFinding *finding, const char *action)
{
	Datum		values[8];
	bool		nulls[8] = {false, false, false, false, true, true, true, false};
	char		path[QC_PATH_MAX];

	qc_path_file(path, qlog_files()->layout, finding->log, finding->file, "qlog");
	values[0] = qlog_text_datum(repair->name.text, repair->name.len);
	values[1] = CStringGetTextDatum(path);
	values[2] = Int64GetDatum((int64) finding->position);
	values[3] = Int64GetDatum((int64) finding->bytes);
	nulls[3] = finding->bytes == 0;
	values[7] = CStringGetTextDatum(psprintf("%s: %s", finding->text, action));
	tuplestore_putvalues(repair->result->setResult, repair->result->setDesc, values, nulls);
}

static void
put_missing(const Repair *repair, const QlogMissing *missing)
{
	Datum		values[8];
	bool		nulls[8] = {false, true, true, true, false, false, false, false};
	char		name[QLOG_NAME_MAX];
	uint16		len = qlog_verify_partition(missing->partition, name);

	values[0] = qlog_text_datum(repair->name.text, repair->name.len);
	values[4] = qlog_text_datum(name, len);
	values[5] = Int64GetDatum((int64) missing->first);
	values[6] = Int64GetDatum((int64) (missing->end - missing->first));
	values[7] = CStringGetTextDatum(repair->dry_run ? "messages cannot be read: would be given up" :
									"messages could not be read: given up");
	tuplestore_putvalues(repair->result->setResult, repair->result->setDesc, values, nulls);
}

/* ---- the steps ---- */

static bool
is_damaged(uint64 id)
{
	const QcQueue *queue;
	bool		damaged;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	queue = qc_queue_by_id(qlog_state, id);
	damaged = queue != NULL && queue->damaged;
	LWLockRelease(&qlog_shared->state_lock);
	return damaged;
}

/* Nothing comes or goes from now on. */
static void
stop_queue(const Repair *repair)
{
	const QlogVerify *verify = &repair->verify;
	QcQueue    *queue;

	qlog_lock_state();
	queue = qc_queue_by_id(qlog_state, repair->queue.id);
	if (queue != NULL)
		(void) qc_queue_damage(qlog_state, queue, verify->nfindings > 0 ? verify->findings[0].file : verify->file,
							   verify->nfindings > 0 ? verify->findings[0].position : verify->tail);
	qlog_unlock_state();
}

static void
find_out(Repair *repair)
{
	qlog_verify_count(&repair->verify, repair->queue.log);
	qlog_verify_log(&repair->verify, repair->queue.log);
	qlog_verify_queue(&repair->verify, repair->queue.id);
}

/* Log that n of these messages are lost. */
static void
log_lost(Repair *repair, const QlogMissing *missing, uint32 n)
{
	QcLost		lost = {.queue = repair->queue.id};
	size_t		size = QC_EFFECT_HEAD_SIZE + 64 + n * qc_effect_item_size(QC_EFFECT_LOST);
	uint8	   *buffer = palloc(QC_SMALL_BUFFER(size));
	QcSmallPlan small;
	QcWriter	w;

	qc_plan_small(&small, buffer, size);
	small.plan.needs.npending = n;
	w = qc_plan_small_writer(&small);
	qc_effect_put(&w, QC_EFFECT_LOST, &lost, n);
	for (uint32 i = 0; i < n; i++)
	{
		QcLostItem	item = {missing[i].partition, missing[i].first,
			(uint32_t) (missing[i].end - missing[i].first), 0};

		qc_effect_put_item(&w, QC_EFFECT_LOST, &item);
	}
	qc_plan_small_done(&small, &w, 1);
	repair->seq = qlog_submit(&small, NULL, NULL, NULL);
	pfree(buffer);
}

static void
log_all_lost(Repair *repair)
{
	const QlogVerify *verify = &repair->verify;

	for (uint32 i = 0; i < verify->nmissing; i += ITEMS_MAX)
		log_lost(repair, verify->missing + i, Min(ITEMS_MAX, verify->nmissing - i));
	if (repair->seq != 0)
		qlog_flush(repair->seq);
}

/* No start reads what stands in the log up to here. */
static void
pass_floor(uint64 seq)
{
	while (qlog_start_floor() < seq)
	{
		(void) qlog_checkpoint_now(true);
		qlog_snapshot_wish();
		if (qlog_start_floor() < seq)
			pg_usleep(FLOOR_US);
		CHECK_FOR_INTERRUPTS();
	}
}

/* A finding that is looked for once more. */
typedef struct Again
{
	QcFinding	finding;
	bool		found;
} Again;

static bool
compare_finding(void *context, const QcFinding *finding)
{
	Again	   *again = context;

	again->found |= finding->position == again->finding.position &&
		finding->bytes == again->finding.bytes;
	return true;
}

/* Is the place still as it was found?	Files of a queue out of service are left alone by others, but for what had begun before. */
static bool
is_there(const Repair *repair, const QcFinding *finding)
{
	const QlogVerify *v = &repair->verify;
	Again		again = {.finding = *finding};
	QcVerify	verify = {.files = qlog_files(), .log = finding->log, .file = finding->file,
		.end = finding->file == v->file ? v->tail : 0, .deep = true, .context = &again,
		.finding = compare_finding};
	QcError		err;

	return qc_verify_file(&verify, &err) == QC_OK && again.found;
}

/* Mend one place.	Index and cached bytes of the file are of no use any more. */
static void
mend(const Repair *repair, const QcFinding *finding)
{
	char		path[QC_PATH_MAX];
	QcError		err;
	QcStatus	status = QC_INVALID;

	qc_error_clear(&err);
	if (qc_verify_mendable(finding) && is_there(repair, finding))
		status = qc_verify_mend(qlog_files(), finding, qlog_now(), &err);
	if (status != QC_OK && status != QC_INVALID)
		qlog_report(ERROR, &err, "could not repair a log file");
	put_place(repair, finding, status == QC_OK ? "bytes kept beside, place mended" : "left as it is");
	if (status != QC_OK)
		return;
	qc_path_file(path, qlog_files()->layout, finding->log, finding->file, "qidx");
	(void) qlog_files()->io->unlink(qlog_files()->io->context, path);
	qc_path_file(path, qlog_files()->layout, finding->log, finding->file, "qhsh");
	(void) qlog_files()->io->unlink(qlog_files()->io->context, path);
	qc_files_forget(qlog_files(), finding->log, finding->file);
}

static void
log_end(Repair *repair)
{
	QcRepair	effect = {.queue = repair->queue.id};
	uint8		buffer[QC_SMALL_BUFFER(64)];
	QcSmallPlan small;
	QcWriter	w;

	qc_plan_small(&small, buffer, 64);
	w = qc_plan_small_writer(&small);
	qc_effect_put(&w, QC_EFFECT_REPAIR, &effect, 0);
	qc_plan_small_done(&small, &w, 1);
	qlog_flush(qlog_submit(&small, NULL, NULL, NULL));
}

static void
carry_out(Repair *repair)
{
	const QlogVerify *verify = &repair->verify;

	/* Once more, now that nothing changes. */
	stop_queue(repair);
	find_out(repair);
	QLOG_STOP("repair-after-verify");
	log_all_lost(repair);
	QLOG_STOP("repair-after-lost");
	pass_floor(qlog_newest_seq());
	QLOG_STOP("repair-after-floor");
	for (uint32 i = 0; i < verify->nfindings; i++)
		mend(repair, &verify->findings[i]);
	QLOG_STOP("repair-after-mend");
	log_end(repair);
	qlog_damage_forget(repair->queue.log, QLOG_DAMAGE_ALL);
}

Datum
qlog_repair(PG_FUNCTION_ARGS)
{
	Repair		repair = {.result = (ReturnSetInfo *) fcinfo->resultinfo};
	bool		damaged;

	repair.dry_run = PG_ARGISNULL(ARG_DRY_RUN) || PG_GETARG_BOOL(ARG_DRY_RUN);
	if (PG_ARGISNULL(ARG_QUEUE) && qlog_refusal_stands())
	{
		PreventCommandIfReadOnly("qlog_repair()");
		InitMaterializedSRF(fcinfo, 0);
		qlog_repair_start(repair.result, repair.dry_run);
		return (Datum) 0;
	}
	qlog_enter("qlog_repair()");
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	repair.name = qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE));
	qlog_queue_require(repair.name, &repair.queue);
	InitMaterializedSRF(fcinfo, 0);
	if (repair.queue.own)
		return (Datum) 0;
	qlog_queue_hold(&repair.queue, repair.name);
	qlog_verify_begin(&repair.verify, true, "repair");
	damaged = is_damaged(repair.queue.id);
	find_out(&repair);
	if (!repair.dry_run && (damaged || repair.verify.nfindings > 0 || repair.verify.nmissing > 0))
		carry_out(&repair);
	else
	{
		for (uint32 i = 0; i < repair.verify.nfindings; i++)
		{
			const QcFinding *finding = &repair.verify.findings[i];

			put_place(&repair, finding, qc_verify_mendable(finding) ?
					  "bytes would be kept beside, the place mended" : "would be left as it is");
		}
	}
	for (uint32 i = 0; i < repair.verify.nmissing; i++)
		put_missing(&repair, &repair.verify.missing[i]);
	if (repair.verify.nfindings == 0 && repair.verify.nmissing == 0 && damaged)
	{
		Datum		values[8];
		bool		nulls[8] = {false, true, true, true, true, true, true, false};

		values[0] = qlog_text_datum(repair.name.text, repair.name.len);
		values[7] = CStringGetTextDatum(repair.dry_run ? "nothing is damaged any more: would be in service again" :
										"nothing is damaged any more: in service again");
		tuplestore_putvalues(repair.result->setResult, repair.result->setDesc, values, nulls);
	}
	qlog_verify_end(&repair.verify);
	return (Datum) 0;
}
