/*
 * qlog_backup.h
 *		Keeping still while a base backup copies the data directory.
 *
 * A copy holds files of different moments.	Logs only grow, and recovery of a copy knows what to do with that; the
 * checkpoint store is written over in place, and logs of dropped queues go.	So both stay as they are while a base
 * backup runs: the copied store is whole, and all that lies above its mark is in the copy.
 *
 * Base backups are those of walsenders (pg_basebackup), and those of tools that copy the files themselves between
 * pg_backup_start() and pg_backup_stop().
 *
 * Callers: the workers that write the store and remove files; qlog_xact.c asks whether one runs; qlog_hooks.c tells of sessions
 * that begin one.
 */
#ifndef QLOG_BACKUP_H
#define QLOG_BACKUP_H

#include "postgres.h"

extern bool qlog_backup_runs(void);

/* This session is about to call pg_backup_start(): from now on a base backup runs, until qlog_backup_follow finds it ended. */
extern void qlog_backup_session(void);

/* At the end of a transaction: has the session's base backup ended, or never begun? */
extern void qlog_backup_follow(void);

/*
 * false: a base backup runs, do not touch the store and remove nothing.	true: none runs, and one that is begun copies no
 * file before qlog_backup_let_in; call that soon, as checkpoints of PostgreSQL wait for it too.
 */
extern bool qlog_backup_keep_out(void);
extern void qlog_backup_let_in(void);

/*
 * The postmaster starts.  A data directory with a backup label was restored from a base backup, or rewound: qlog's directory in it is
 * a copy, also when the tool has copied the marker whose absence tells that.
 */
extern void qlog_backup_restored(void);

#endif							/* QLOG_BACKUP_H */
