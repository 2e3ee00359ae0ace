/*
 * qlog_xact.h
 *		The transaction callbacks: from what is staged (qlog_stage.h) to a committed entry.
 *
 * PRE_COMMIT checks everything that can fail, pins the leases that are acknowledged, builds the plan (qc_plan.h) and
 * runs qlog_commit_pre; COMMIT and ABORT finish it.	 A (sub)transaction that rolls back forgets what it staged and
 * releases its leases.  PREPARE TRANSACTION is refused when there is anything to do.
 */
#ifndef QLOG_XACT_H
#define QLOG_XACT_H

/*
 * _PG_init, while preloading.	The callbacks are registered here, not at first use, because PostgreSQL calls the ones
 * registered last first: the library that stands first in shared_preload_libraries commits last.
 */
extern void qlog_xact_init(void);

#endif							/* QLOG_XACT_H */
