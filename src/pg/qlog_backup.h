/*
 * qlog_backup.h
 *		Keeping still while a base backup copies the data directory.
 *
 * A copy holds files of different moments.	Logs only grow, and recovery of a copy knows what to do with that; the
 * checkpoint store is written over in place, and logs of dropped queues go.	So both stay as they are while a base
 * backup runs: the copied store is whole, and all that lies above its mark is in the copy.
 *
 * Callers: the workers that write the store and remove files; qlog_xact.c asks whether one runs.
 */
#ifndef QLOG_BACKUP_H
#define QLOG_BACKUP_H

#include "postgres.h"

extern bool qlog_backup_runs(void);

/*
 * false: a base backup runs, do not touch the store and remove nothing.	true: none runs, and one that is begun copies no
 * file before qlog_backup_let_in; call that soon, as checkpoints of PostgreSQL wait for it too.
 */
extern bool qlog_backup_keep_out(void);
extern void qlog_backup_let_in(void);

#endif							/* QLOG_BACKUP_H */
