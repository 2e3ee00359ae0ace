/*
 * fn_verify.c
 *		qlog_verify: what is wrong with the files of a queue, or of all, one row for each thing.
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "qlog_args.h"
#include "qlog_io.h"
#include "qlog_list.h"
#include "qlog_lookup.h"
#include "qlog_report.h"
#include "qlog_row.h"
#include "qlog_verify.h"

#include "../core/qc_snapshot.h"

PG_FUNCTION_INFO_V1(qlog_verify);

enum
{
	ARG_QUEUE,
	ARG_DEEP
};

/* A queue to verify. */
typedef struct Target
{
	uint64		id;
	uint64		log;
	char text[	QLOG_NAME_MAX];
	QlogName	name;
} Target;

static void
take_name(Target *target, QlogName name)
{
	memcpy(target->text, name.text, name.len);
	target->name = (QlogName) {target->text, name.len};
}

static int
compare_targets(const void *a, const void *b)
{
	const Target *x = *(Target *const *) a;
	const Target *y = *(Target *const *) b;

	return x->log != y->log ? (x->log < y->log ? -1 : 1) : (x->id > y->id) - (x->id < y->id);
}

/* The queues of this database, by log. */
static Target **
all_queues(uint32 *n)
{
	uint32		nids;
	uint64	   *ids = qlog_list_visible(&nids);
	Target	  **targets = palloc((nids + 1) * sizeof(Target *));
	QlogListed	listed;

	*n = 0;
	for (uint32 i = 0; i < nids; i++)
	{
		Target	   *target;

		if (!qlog_list_get(ids[i], &listed) || listed.queue.own)
			continue;
		target = palloc(sizeof(Target));
		target->id = ids[i];
		target->log = listed.queue.log;
		take_name(target, listed.name);
		targets[(*n)++] = target;
	}
	qsort(targets, *n, sizeof(Target *), compare_targets);
	return targets;
}

static void
put_row(ReturnSetInfo *result, const Target *target, const char *file, const QcFinding *finding,
		const QlogMissing *missing, const char *text)
{
	Datum		values[8];
	bool		nulls[8];
	QlogName	partition;

	memset(nulls, true, sizeof(nulls));
	if (target != NULL)
	{
		nulls[0] = false;
		values[0] = qlog_text_datum(target->name.text, target->name.len);
	}
	if (file != NULL)
	{
		nulls[1] = false;
		values[1] = CStringGetTextDatum(file);
	}
	if (finding != NULL)
	{
		nulls[2] = false;
		values[2] = Int64GetDatum((int64) finding->position);
		nulls[3] = finding->bytes == 0;
		values[3] = Int64GetDatum((int64) finding->bytes);
	}
	if (missing != NULL)
	{
		char		name[QLOG_NAME_MAX];

		partition.text = name;
		partition.len = qlog_verify_partition(missing->partition, name);
		nulls[4] = nulls[5] = nulls[6] = false;
		values[4] = qlog_text_datum(partition.text, partition.len);
		values[5] = Int64GetDatum((int64) missing->first);
		values[6] = Int64GetDatum((int64) (missing->end - missing->first));
	}
	nulls[7] = false;
	values[7] = CStringGetTextDatum(text);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

static void
put_findings(ReturnSetInfo *result, const QlogVerify *verify, const Target *target)
{
	for (uint32 i = 0; i < verify->nfindings; i++)
	{
		const QcFinding *finding = &verify->findings[i];
		char		path[QC_PATH_MAX];

		qc_path_file(path, qlog_files()->layout, finding->log, finding->file, "qlog");
		put_row(result, target, path, finding, NULL, finding->text);
	}
}

/* Queues [first, end), which share a log. */
static void
verify_log(ReturnSetInfo *result, QlogVerify *verify, Target **targets, uint32 first, uint32 end)
{
	qlog_verify_log(verify, targets[first]->log);
	put_findings(result, verify, end - first == 1 ? targets[first] : NULL);
	for (uint32 i = first; i < end; i++)
	{
		qlog_verify_queue(verify, targets[i]->id);
		for (uint32 k = 0; k < verify->nmissing; k++)
			put_row(result, targets[i], NULL, NULL, &verify->missing[k], "messages are in no file");
	}
}

/* Snapshots are whole, too. */
static void
verify_snapshots(ReturnSetInfo *result)
{
	uint64_t	seqs[QC_SNAPSHOT_LIST_MAX];
	uint32_t	n;
	QcError		err;

	qc_error_clear(&err);
	if (qc_snapshot_list(qlog_io(), seqs, &n, &err) != QC_OK)
		qlog_report(ERROR, &err, "could not list the snapshots");
	for (uint32 i = 0; i < n; i++)
	{
		QcSnapshotHead head;
		QcStatus	status;

		CHECK_FOR_INTERRUPTS();
		status = qc_snapshot_read(qlog_io(), seqs[i], qlog_state->directory_id, NULL, NULL, &head, &err);
		if (status == QC_DAMAGED || status == QC_FOREIGN || status == QC_VERSION)
		{
			QcFinding	finding = {.position = err.position == UINT64_MAX ? 0 : err.position};

			put_row(result, NULL, err.file, &finding, NULL, err.text);
		}
		else if (status != QC_OK && status != QC_MISSING)
			qlog_report(ERROR, &err, "could not read a snapshot");
	}
}

static void
verify_all(ReturnSetInfo *result, QlogVerify *verify)
{
	uint32		n;
	Target	  **targets = all_queues(&n);

	qlog_verify_count(verify, 0);
	for (uint32 i = 0; i < n; i++)
	{
		if (i == 0 || targets[i]->log != targets[i - 1]->log)
			qlog_verify_count(verify, targets[i]->log);
	}
	qlog_verify_log(verify, 0);
	put_findings(result, verify, NULL);
	for (uint32 i = 0; i < n;)
	{
		uint32		end = i + 1;

		while (end < n && targets[end]->log == targets[i]->log)
			end++;
		verify_log(result, verify, targets, i, end);
		i = end;
	}
	verify_snapshots(result);
}

Datum
qlog_verify(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	QlogVerify	verify;

	qlog_enter_read("qlog_verify()");
	InitMaterializedSRF(fcinfo, 0);
	qlog_verify_begin(&verify, !PG_ARGISNULL(ARG_DEEP) && PG_GETARG_BOOL(ARG_DEEP), "verify");
	if (PG_ARGISNULL(ARG_QUEUE))
		verify_all(result, &verify);
	else
	{
		Target	   *target = palloc(sizeof(Target));
		QlogQueue	queue;

		take_name(target, qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE)));
		qlog_queue_require(target->name, &queue);
		target->id = queue.id;
		target->log = queue.log;
		if (!queue.own)
		{
			qlog_verify_count(&verify, queue.log);
			verify_log(result, &verify, &target, 0, 1);
		}
	}
	qlog_verify_end(&verify);
	return (Datum) 0;
}
