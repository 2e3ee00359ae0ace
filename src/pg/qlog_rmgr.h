/*
 * qlog_rmgr.h
 *		qlog's resource manager: our records in PostgreSQL's WAL (bodies: core/qc_walrec.h).
 */
#ifndef QLOG_RMGR_H
#define QLOG_RMGR_H

#include "qlog_shmem.h"

#include "access/xlogdefs.h"

#include "../core/qc_plan.h"
#include "../core/qc_walrec.h"

/* Experimental, until one is reserved for qlog. */
#define QLOG_RMGR_ID 128

/* _PG_init, while preloading. */
extern void qlog_rmgr_init(void);

/* Insert an entry's record, whose body stands in buf. May be called in a critical section. */
extern XLogRecPtr qlog_wal_entry(const uint8 *body, uint32 len);

/* Insert a barrier or an epoch record. May be called in a critical section. */
extern XLogRecPtr qlog_wal_mark(QcWalKind kind, const QcWalMark *mark);

#endif							/* QLOG_RMGR_H */
