/*
 * fn_progress.c
 *		Views qlog_stat_progress_*: what long-running work of qlog's workers does now.
 */
#include "postgres.h"

#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "qlog_args.h"
#include "qlog_shmem.h"

PG_FUNCTION_INFO_V1(qlog_stat_progress_reclaim);

/* One row, unless the worker has nothing to do. */
static void
put_progress(ReturnSetInfo *result, const QlogWorker *worker, const QlogProgress *shared)
{
	QlogProgress progress = *shared;
	Datum		values[5];
	bool		nulls[5] = {false};

	progress.phase[sizeof(progress.phase) - 1] = '\0';
	if (progress.phase[0] == '\0' || worker->pid == 0)
		return;
	values[0] = Int32GetDatum((int32) worker->pid);
	values[1] = CStringGetTextDatum(progress.phase);
	values[2] = Int64GetDatum((int64) progress.done);
	values[3] = Int64GetDatum((int64) progress.total);
	values[4] = TimestampTzGetDatum(progress.started_at);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

Datum
qlog_stat_progress_reclaim(PG_FUNCTION_ARGS)
{
	if (qlog_shared == NULL)
		qlog_gate_check();
	InitMaterializedSRF(fcinfo, 0);
	put_progress((ReturnSetInfo *) fcinfo->resultinfo, &qlog_shared->workers[QLOG_WORKER_RECLAIM],
				 &qlog_shared->reclaim);
	return (Datum) 0;
}
