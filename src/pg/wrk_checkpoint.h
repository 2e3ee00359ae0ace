/*
 * wrk_checkpoint.h
 *		The checkpointer worker: recovery at start, then checkpoints and what keeps the directory in shape.
 */
#ifndef WRK_CHECKPOINT_H
#define WRK_CHECKPOINT_H

#include "wrk_worker.h"

#include "../core/qc_dir.h"
#include "../core/qc_snapshot.h"
#include "../store/qs_store.h"

/* _PG_init, while preloading. */
extern void qlog_checkpointer_register(void);

/*
 * wrk_recover.c: open the directory, load the checkpoint, recover, open the gate.	The store stays open.  QC_OK, or why
 * qlog must not serve.
 */
extern QcStatus qlog_recover(QlogWorker *worker, QsStore **store, QcError *err);

/*
 * wrk_load.c: what a start begins with.  Of the checkpoint store and the snapshots the first that can be used: the store
 * unless it is damaged, missing, or older than the floor; then the newest snapshot, which becomes the store; then nothing,
 * when the logs reach back to the beginning.  What is put aside is said in the log of the server.
 */
typedef struct QlogLoad
{
	QsStore    *store;			/* open, its rows are in the state */
	uint64_t	directory_id;
	uint64_t	floor;
	uint64_t	snapshots[QC_SNAPSHOT_LIST_MAX];	/* newest first */
	uint32_t	nsnapshots;
	uint32_t	tried;			/* of these */
	bool		nothing;		/* beginning with nothing has been tried */
} QlogLoad;

extern QcStatus qlog_load_first(QlogLoad *load, const QcIdentity *identity, QcError *err);

/* What was loaded does not fit the logs: the next one; QC_END, and all as it is, when there is none. */
extern QcStatus qlog_load_next(QlogLoad *load, QcError *err);

/* wrk_snapshot.c: the floor at a start, before anything is taken away. */
extern void qlog_snapshot_start(void);

/* Milliseconds until a snapshot is due, -1 = none will be, as things are. */
extern int64 qlog_snapshot_due_in(void);

/* Take one, of a store that holds all of the last checkpoint. */
extern void qlog_snapshot_take(QlogWorker *worker, QsStore *store);

/* As qlog_worker_error, telling those who wait for it. */
extern void qlog_checkpoint_failed(QlogWorker *worker, const QcError *err, const char *what);

/* Absolute path of the store's directory. */
extern void qlog_store_path(char path[MAXPGPATH]);

/* wrk_upkeep.c: what is done between checkpoints.	Each returns whether it did, or left, anything. */
extern bool qlog_upkeep_dropped(void);
extern bool qlog_upkeep_dedups(void);
extern bool qlog_upkeep_extend(QlogWorker *worker);

/* wrk_estimate.c: one step towards exact lags; true = there may be more to do. */
extern bool qlog_upkeep_estimates(QlogWorker *worker);

/*
 * wrk_index.c: write .qidx files of closed files that have none, and the one that was asked for, not for long; true = more
 * are left.  A log that goes away is forgotten.
 */
extern bool qlog_upkeep_index(QlogWorker *worker);
extern void qlog_upkeep_index_forget(uint64 log);

/* wrk_warm.c: fill the memory index after a start, not for long; true = more is left. */
extern bool qlog_upkeep_warm(QlogWorker *worker);

/*
 * Logs that nothing needs any more, taken out of the state before a dump; their directories go once that dump is
 * stored.	Returns their number.
 */
extern uint32 qlog_upkeep_removable(uint64 *logs, uint32 max);
extern void qlog_upkeep_remove(QlogWorker *worker, const uint64 *logs, uint32 n);

#endif							/* WRK_CHECKPOINT_H */
