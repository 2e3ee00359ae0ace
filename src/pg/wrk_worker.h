/*
 * wrk_worker.h
 *		What qlog's background workers have in common: registration, their row in qlog_stat_workers, signals.
 *
 * A worker is connected to no database, so that it blocks no DROP or ALTER DATABASE, but stands in the ProcArray and in
 * pg_stat_activity.	It always exits with code 1, so that the postmaster starts it again.
 */
#ifndef WRK_WORKER_H
#define WRK_WORKER_H

#include "qlog_shmem.h"

/*
 * Raise the default of max_worker_processes by as many as there are of ours, so that parallel queries and others keep
 * theirs.  What the configuration says stays.  In _PG_init, when PostgreSQL lets libraries change such settings.
 */
extern void qlog_worker_room(void);

/* Register a worker whose main function in this library is `function`. */
extern void qlog_worker_register(QlogWorkerKind kind, const char *name, const char *function);

/* First call of a worker's main: signals, connection, its row.	Returns the row. */
extern QlogWorker *qlog_worker_begin(QlogWorkerKind kind);

/* What the worker does now, for the view and the process title. */
extern void qlog_worker_state(QlogWorker *worker, const char *state);

/* Put an error into the row; err NULL clears it.	The same text is logged once. */
extern void qlog_worker_error(QlogWorker *worker, const QcError *err, const char *what);

/* Sleep until the latch is set or the time is over; handles reload and postmaster death. */
extern void qlog_worker_sleep(long timeout_ms);

/* Handle reload and barriers; for a worker with so much to do that it does not sleep. */
extern void qlog_worker_interrupts(void);

/* SIGTERM has come. */
extern bool qlog_worker_shutdown(void);

/* Leave, with the exit code that has the worker started again unless the server shuts down. */
extern void qlog_worker_exit(QlogWorker *worker) pg_attribute_noreturn();

#endif							/* WRK_WORKER_H */
