/*
 * wrk_worker.c
 *		What qlog's background workers have in common.
 */
#include "wrk_worker.h"

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procsignal.h"
#include "utils/guc.h"
#include "utils/ps_status.h"
#include "utils/timestamp.h"

#include "qlog_compat.h"
#include "qlog_disk.h"
#include "qlog_gone.h"

#define RESTART_SECONDS 1
#define SERVER_WORKERS	8		/* PostgreSQL's default of max_worker_processes */

void
qlog_worker_room(void)
{
	char		number[12];

	snprintf(number, sizeof(number), "%d", SERVER_WORKERS + QLOG_WORKER_COUNT);
	SetConfigOption("max_worker_processes", number, PGC_POSTMASTER, PGC_S_DYNAMIC_DEFAULT);
}

void
qlog_worker_register(QlogWorkerKind kind, const char *name, const char *function)
{
	BackgroundWorker worker;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = RESTART_SECONDS;
	worker.bgw_main_arg = Int32GetDatum(kind);
	snprintf(worker.bgw_library_name, BGW_MAXLEN, "qlog");
	snprintf(worker.bgw_function_name, BGW_MAXLEN, "%s", function);
	snprintf(worker.bgw_name, BGW_MAXLEN, "%s", name);
	snprintf(worker.bgw_type, BGW_MAXLEN, "%s", name);
	RegisterBackgroundWorker(&worker);
}

/* However the worker ends, its row says that it is gone. */
static void
clear_row(int code, Datum arg)
{
	QlogWorker *worker = (QlogWorker *) DatumGetPointer(arg);

	(void) code;
	worker->pid = 0;
	strlcpy(worker->state, "gone", sizeof(worker->state));
}

QlogWorker *
qlog_worker_begin(QlogWorkerKind kind)
{
	QlogWorker *worker = &qlog_shared->workers[kind];

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	if (worker->passes > 0 || worker->last_error[0] != '\0')
		worker->restarts++;
	worker->pgprocno = QLOG_PROC_NUMBER();
	(void) qlog_disk_entitle(true);
	pg_write_barrier();
	worker->pid = MyProcPid;
	before_shmem_exit(clear_row, PointerGetDatum(worker));
	return worker;
}

void
qlog_worker_state(QlogWorker *worker, const char *state)
{
	strlcpy(worker->state, state, sizeof(worker->state));
	set_ps_display(state);
}

void
qlog_worker_error(QlogWorker *worker, const QcError *err, const char *what)
{
	char text[	sizeof(worker->last_error)];
	char		reason[600];

	if (err == NULL)
	{
		worker->last_error[0] = '\0';
		return;
	}
	qc_error_format(err, reason, sizeof(reason));
	snprintf(text, sizeof(text), "%s: %s", what, reason);
	if (strcmp(text, worker->last_error) == 0)
		return;
	strlcpy(worker->last_error, text, sizeof(worker->last_error));
	ereport(WARNING,
			(errmsg("qlog: %s", text),
			 errhint("The worker tries again; qlog_stat_workers shows when it has succeeded.")));
}

void
qlog_worker_interrupts(void)
{
	qlog_gone_follow();
	if (ProcSignalBarrierPending)
		ProcessProcSignalBarrier();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

void
qlog_worker_sleep(long timeout_ms)
{
	int			events = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH;

	if (timeout_ms >= 0)
		events |= WL_TIMEOUT;
	(void) WaitLatch(MyLatch, events, timeout_ms, QLOG_WAIT_EVENT("QlogWorkerMain"));
	ResetLatch(MyLatch);
	qlog_worker_interrupts();
}

bool
qlog_worker_shutdown(void)
{
	return ShutdownRequestPending;
}

void
qlog_worker_exit(QlogWorker *worker)
{
	qlog_worker_state(worker, "leaving");
	proc_exit(1);
}
