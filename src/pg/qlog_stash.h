/*
 * qlog_stash.h
 *		The stash: the file into which redo copies our WAL records for recovery (core/qc_walrec.h).
 *
 * Only the startup process writes it, and only recovery's worker removes it.  The file is opened with the first record,
 * its torn tail cut.  A failure to write or sync is FATAL and ends recovery of the server: to go on would lose committed
 * messages.
 */
#ifndef QLOG_STASH_H
#define QLOG_STASH_H

#include "postgres.h"

#include "../core/qc_walrec.h"

/* Append a record.	Startup process. */
extern void qlog_stash_append(const QcStashRecord *record);

/* Make what was appended durable. */
extern void qlog_stash_sync(void);

/* Sync and close: the end of redo. */
extern void qlog_stash_end(void);

#endif							/* QLOG_STASH_H */
