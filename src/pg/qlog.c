/*
 * qlog.c
 *		_PG_init: settings, shared memory, resource manager, hooks, workers.	Nothing else.
 *
 * Loading the library later than at start must work (pg_upgrade --check does it): then only the settings that can still
 * be defined are, and every function raises 55000.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "qlog_guc.h"
#include "qlog_hooks.h"
#include "qlog_owned.h"
#include "qlog_rmgr.h"
#include "qlog_shmem.h"
#include "qlog_xact.h"
#include "wrk_checkpoint.h"
#include "wrk_guard.h"
#include "wrk_retention.h"
#include "wrk_reclaim.h"
#include "wrk_scrub.h"
#include "wrk_sweeper.h"
#include "wrk_timer.h"

PG_MODULE_MAGIC;

extern void _PG_init(void);

void
_PG_init(void)
{
	qlog_guc_init();
	if (!process_shared_preload_libraries_in_progress)
		return;
	qlog_shmem_init();
	qlog_rmgr_init();
	qlog_xact_init();
	qlog_hooks_init();
	qlog_owned_init();

	/* pg_upgrade starts both clusters without anybody to serve. */
	if (IsBinaryUpgrade)
		return;
	qlog_worker_room();
	qlog_checkpointer_register();
	qlog_guards_register();
	qlog_timer_register();
	qlog_sweeper_register();
	qlog_retention_register();
	qlog_reclaim_register();
	qlog_scrub_register();
}
