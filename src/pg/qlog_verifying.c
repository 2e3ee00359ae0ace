/*
 * qlog_verifying.c
 *		Slots of verifications (contract in qlog_verifying.h), and the view qlog_stat_progress_verify.
 */
#include "qlog_verifying.h"

#include "access/xact.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/builtins.h"

#include "qlog_args.h"

PG_FUNCTION_INFO_V1(qlog_stat_progress_verify);

/* Whatever slots this process has are free again; nobody else writes to these. */
static void
release_all(void)
{
	for (int i = 0; i < QLOG_VERIFYING_MAX; i++)
	{
		if (qlog_shared->verifying[i].pid == MyProcPid)
			qlog_shared->verifying[i].pid = 0;
	}
}

static void
release_at_exit(int code, Datum arg)
{
	(void) code;
	(void) arg;
	release_all();
}

static void
release_at_end(XactEvent event, void *arg)
{
	(void) arg;
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_COMMIT)
		release_all();
}

QlogVerifying *
qlog_verifying_begin(const char *what)
{
	static bool registered = false;
	QlogVerifying *found = NULL;

	if (!registered)
	{
		before_shmem_exit(release_at_exit, 0);
		RegisterXactCallback(release_at_end, NULL);
	}
	registered = true;
	LWLockAcquire(&qlog_shared->damage_lock, LW_EXCLUSIVE);
	for (int i = 0; i < QLOG_VERIFYING_MAX && found == NULL; i++)
	{
		if (qlog_shared->verifying[i].pid == 0)
			found = &qlog_shared->verifying[i];
	}
	if (found != NULL)
	{
		memset(found, 0, sizeof(*found));
		strlcpy(found->what, what, sizeof(found->what));
		found->started_at = GetCurrentTimestamp();
		found->pid = MyProcPid;
	}
	LWLockRelease(&qlog_shared->damage_lock);
	return found;
}

void
qlog_verifying_end(QlogVerifying *progress)
{
	if (progress != NULL)
		progress->pid = 0;
}

Datum
qlog_stat_progress_verify(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	if (qlog_shared == NULL)
		qlog_gate_check();
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < QLOG_VERIFYING_MAX; i++)
	{
		QlogVerifying p = qlog_shared->verifying[i];
		Datum		values[9];
		bool		nulls[9] = {false};
		char		path[QC_PATH_MAX];

		if (p.pid == 0)
			continue;
		p.what[sizeof(p.what) - 1] = '\0';
		values[0] = Int32GetDatum(p.pid);
		values[1] = CStringGetTextDatum(p.what);
		nulls[2] = p.file == 0;
		qc_path_file(path, qlog_files()->layout, p.log, p.file, "qlog");
		values[2] = CStringGetTextDatum(path);
		values[3] = Int64GetDatum((int64) p.files_done);
		values[4] = Int64GetDatum((int64) p.files_total);
		values[5] = Int64GetDatum((int64) p.bytes_done);
		values[6] = Int64GetDatum((int64) p.bytes_total);
		values[7] = Int64GetDatum((int64) p.findings);
		values[8] = TimestampTzGetDatum(p.started_at);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
