/*
 * qlog_backup.c
 *		Keeping still while a base backup copies the data directory.
 *
 * A base backup says so in its walsender's state, then waits for a checkpoint of PostgreSQL, then copies.  A checkpoint
 * waits for every process whose delay flag stood when it took its redo pointer.  So with the flag set and no walsender
 * in that state, a backup that begins now waits until the flag is cleared; and one whose checkpoint did not see the flag
 * has been seen here.
 */
#include "qlog_backup.h"

#include "access/xact.h"
#include "port/atomics.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"

#include "qlog_guard.h"

bool
qlog_backup_runs(void)
{
	bool		found = false;

	for (int i = 0; i < max_wal_senders && !found; i++)
	{
		WalSnd	   *sender = &WalSndCtl->walsnds[i];

		SpinLockAcquire(&sender->mutex);
		found = sender->pid != 0 && sender->state == WALSNDSTATE_BACKUP;
		SpinLockRelease(&sender->mutex);
	}
	return found;
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
