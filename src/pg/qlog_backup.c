/*
 * qlog_backup.c
 *		Keeping still while a base backup copies the data directory.
 *
 * A base backup says so in its walsender's state, then waits for a checkpoint of PostgreSQL, then copies.  A checkpoint
 * waits for every process whose delay flag stood when it took its redo pointer.  So with the flag set and no walsender
 * in that state, a backup that begins now waits until the flag is cleared; and one whose checkpoint did not see the flag
 * has been seen here.	The same holds for a session that calls pg_backup_start(): PostgreSQL keeps their number to itself, so the
 * session counts itself in before the call, and out when the transaction is over that ended the backup, or the session is.
 */
#include "qlog_backup.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/fd.h"
#include "storage/ipc.h"

#include <unistd.h>

#include "qlog_guard.h"
#include "qlog_guc.h"

#include "../core/qc_dir.h"

/* This session has counted itself in. */
static bool counted = false;

bool
qlog_backup_runs(void)
{
	bool		found = pg_atomic_read_u32(&qlog_shared->backup_sessions) > 0;

	for (int i = 0; i < max_wal_senders && !found; i++)
	{
		WalSnd	   *sender = &WalSndCtl->walsnds[i];

		SpinLockAcquire(&sender->mutex);
		found = sender->pid != 0 && sender->state == WALSNDSTATE_BACKUP;
		SpinLockRelease(&sender->mutex);
	}
	return found;
}

static void
count_out(void)
{
	if (counted)
		pg_atomic_fetch_sub_u32(&qlog_shared->backup_sessions, 1);
	counted = false;
}

static void
leave(int code, Datum arg)
{
	(void) code;
	(void) arg;
	count_out();
}

void
qlog_backup_session(void)
{
	static bool registered = false;

	if (counted || qlog_shared == NULL)
		return;
	if (!registered)
		before_shmem_exit(leave, 0);
	registered = true;
	pg_atomic_fetch_add_u32(&qlog_shared->backup_sessions, 1);
	counted = true;
}

void
qlog_backup_follow(void)
{
	if (unlikely(counted) && get_backup_status() == SESSION_BACKUP_NONE)
		count_out();
}

/* The flag counts for a process with a transaction id of its own, as for guards. */
static void
set_flag(bool set)
{
	if (set)
		StartTransactionCommand();
	qlog_lock_state();
	qlog_guard_flag(set);
	qlog_unlock_state();
	if (!set)
		CommitTransactionCommand();
}

bool
qlog_backup_keep_out(void)
{
	set_flag(true);
	pg_memory_barrier();
	if (!qlog_backup_runs())
		return true;
	set_flag(false);
	return false;
}

void
qlog_backup_let_in(void)
{
	set_flag(false);
}

void
qlog_backup_restored(void)
{
	char		marker[MAXPGPATH];

	/* Base backups have only what is inside the data directory. */
	if (is_absolute_path(qlog_data_directory) || access(BACKUP_LABEL_FILE, F_OK) != 0)
		return;
	snprintf(marker, sizeof(marker), "%s/%s/" QC_MARKER_NAME, DataDir, qlog_data_directory);
	if (access(marker, F_OK) == 0)
		(void) durable_unlink(marker, FATAL);
}
