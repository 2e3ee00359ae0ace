/*
 * wrk_checkpoint.h
 *		The checkpointer worker: recovery at start, then checkpoints and what keeps the directory in shape.
 */
#ifndef WRK_CHECKPOINT_H
#define WRK_CHECKPOINT_H

#include "wrk_worker.h"

#include "../store/qs_store.h"

/* _PG_init, while preloading. */
extern void qlog_checkpointer_register(void);

/*
 * wrk_recover.c: open the directory, load the checkpoint, recover, open the gate.	The store stays open.  QC_OK, or why
 * qlog must not serve.
 */
extern QcStatus qlog_recover(QlogWorker *worker, QsStore **store, QcError *err);

/* Absolute path of the store's directory. */
extern void qlog_store_path(char path[MAXPGPATH]);

/* wrk_upkeep.c: what is done between checkpoints.	Each returns whether it did, or left, anything. */
extern bool qlog_upkeep_dropped(void);
extern bool qlog_upkeep_dedups(void);
extern bool qlog_upkeep_extend(QlogWorker *worker);

/*
 * wrk_index.c: write .qidx files of closed files that have none, and the one that was asked for, not for long; true = more
 * are left.  A log that goes away is forgotten.
 */
extern bool qlog_upkeep_index(QlogWorker *worker);
extern void qlog_upkeep_index_forget(uint64 log);

/*
 * Logs that nothing needs any more, taken out of the state before a dump; their directories go once that dump is
 * stored.	Returns their number.
 */
extern uint32 qlog_upkeep_removable(uint64 *logs, uint32 max);
extern void qlog_upkeep_remove(QlogWorker *worker, const uint64 *logs, uint32 n);

#endif							/* WRK_CHECKPOINT_H */
