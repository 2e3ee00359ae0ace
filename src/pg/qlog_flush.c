/*
 * qlog_flush.c
 *		Group commit: writing the ring to the files and syncing them, one process for all.
 *
 * Whoever needs something durable leads, or is a follower of who does (qlog_leader.h).	The leader writes out everything
 * that is filled (write lock), takes the list of dirty files, syncs each with no lock held, and publishes.	Nobody depends
 * on a worker.
 *
 * A failed sync, or a write that fails where nothing may be raised, is PANIC: the files are in an unknown state, and
 * recovery finds out what was durable.
 */
#include "qlog_leader.h"

#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/s_lock.h"

#include "qlog_commit.h"
#include "qlog_compat.h"
#include "qlog_guc.h"
#include "qlog_io.h"
#include "qlog_report.h"
#include "qlog_stop.h"

#define FILES_AT_ONCE	256
#define SYNCFS_FROM		16		/* dirty files from which syncing the file system is cheaper */
#define FILL_SPINS		2000

/*
 * An entry is reserved and its owner is still copying its bytes.  Spin first; a descheduled owner wakes us.	Write
 * lock held.
 */
static void
wait_filled(uint64 seq)
{
	for (int i = 0; i < FILL_SPINS; i++)
	{
		if (qc_ring_filled_seq(qlog_ring) >= seq)
			return;
		pg_spin_delay();
	}
	pg_atomic_write_u32(&qlog_shared->fill_waiter, (uint32) QLOG_PROC_NUMBER() + 1);
	pg_memory_barrier();
	while (qc_ring_filled_seq(qlog_ring) < seq)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_POSTMASTER_DEATH, 1,
						 QLOG_WAIT_EVENT("QlogFill"));
		ResetLatch(MyLatch);
	}
	pg_atomic_write_u32(&qlog_shared->fill_waiter, 0);

	/* What else the latch was set for is looked at by whoever waits on it next. */
	SetLatch(MyLatch);
}

void
qlog_filled(void)
{
	uint32		waiter;

	pg_memory_barrier();
	waiter = pg_atomic_read_u32(&qlog_shared->fill_waiter);
	if (waiter != 0)
		SetLatch(&ProcGlobal->allProcs[waiter - 1].procLatch);
}

/* Write out everything filled, which is everything up to seq at least.	Write lock. */
static QcStatus
write_through(uint64 seq, QcError *err)
{
	if (atomic_load(&qlog_ring->written_seq) >= seq)
		return QC_OK;
	wait_filled(seq);
	return qc_ring_write(qlog_state, qlog_ring, qlog_files(), err);
}

uint64
qlog_newest_seq(void)
{
	uint64		seq;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	seq = qlog_state->seq;
	LWLockRelease(&qlog_shared->state_lock);
	return seq;
}

bool
qlog_write_noerror(uint64 seq, QcError *err)
{
	QcStatus	status;

	if (atomic_load(&qlog_ring->written_seq) >= seq)
		return true;
	LWLockAcquire(&qlog_shared->write_lock, LW_EXCLUSIVE);
	status = write_through(seq, err);
	LWLockRelease(&qlog_shared->write_lock);
	return status == QC_OK;
}

void
qlog_write(uint64 seq)
{
	QcError		err;

	qc_error_clear(&err);
	if (!qlog_write_noerror(seq, &err))
		qlog_report(ERROR, &err, "could not write to the log");
}

static void
sync_one(const QcDirtyFile *file)
{
	QcError		err;

	qc_error_clear(&err);
	if (qc_ring_sync_file(qlog_files(), file, &err) != QC_OK)
		qlog_report(PANIC, &err, "could not sync the log");
}

/* Sync these files, one by one or all at once. */
static void
sync_files(const QcDirtyFile *files, uint32 n, QlogFlushWork *work)
{
	bool		whole = qlog_sync_method == QLOG_SYNC_SYNCFS ||
		(qlog_sync_method == QLOG_SYNC_AUTO && n >= SYNCFS_FROM);

	if (whole && n > 1)
	{
		int			rc = qlog_io_syncfs();

		if (rc == 0)
		{
			work->syncs++;
			return;
		}
		if (rc != ENOSYS)
		{
			QcError		err;

			(void) qc_error_sys(&err, rc, "", "could not sync the file system of the log");
			qlog_report(PANIC, &err, "could not sync the log");
		}
	}
	for (uint32 i = 0; i < n; i++)
		sync_one(&files[i]);
	work->syncs += n;
}

/* Write out everything up to seq and take the first dirty files; PANIC when it cannot be written. */
static uint32
write_and_take(uint64 seq, QcDirtyFile *files, uint64 *covered, bool *more)
{
	QcError		err;
	uint32		n;

	qc_error_clear(&err);
	LWLockAcquire(&qlog_shared->write_lock, LW_EXCLUSIVE);
	if (atomic_load(&qlog_ring->written_seq) < seq)
		wait_filled(seq);

	/* Also what others have filled beyond seq: they need not sync it again. */
	if (qc_ring_write(qlog_state, qlog_ring, qlog_files(), &err) != QC_OK)
		qlog_report(PANIC, &err, "could not write to the log");
	n = qc_ring_take_dirty(qlog_state, qlog_ring, files, FILES_AT_ONCE, covered, more);
	LWLockRelease(&qlog_shared->write_lock);
	return n;
}

/*
 * Make everything up to seq durable.  Who leads, in a critical section: a failure half way would leave files that are
 * neither synced nor listed.
 */
static void
lead(uint64 seq, QlogFlushWork *work)
{
	uint64		synced;
	static QcDirtyFile files[FILES_AT_ONCE];
	uint64		before = qc_ring_durable(qlog_ring);
	int64		start = 0;
	bool		more;
	uint32		n = write_and_take(seq, files, &synced, &more);

	QLOG_STOP("after-write-before-sync");
	if (qlog_track_timing)
		start = qlog_monotonic();
	sync_files(files, n, work);
	while (more)
	{
		uint64		later;

		/*
		 * Files that became dirty meanwhile may be among them; the first answer stays the one to
		 * publish.
		 */
		n = write_and_take(seq, files, &later, &more);
		sync_files(files, n, work);
	}
	if (qlog_track_timing)
		work->us = qlog_monotonic() - start;
	work->entries = synced - before;
	QLOG_STOP("after-sync");
	qc_ring_publish(qlog_ring, synced);
}

/*
 * Give others the time to join, as CommitDelay does for the WAL.  Who commits to queues alone has no xid, so that
 * PostgreSQL's count of active backends does not see it.
 */
static void
delay_commit(void)
{
	if (qlog_commit_delay > 0 && enableFsync &&
		qlog_leader_others() >= (uint32) qlog_commit_siblings)
		pg_usleep(qlog_commit_delay);
}

/* Lead: PANIC is what any failure becomes, and nothing is raised before the office has ended. */
static void
lead_group(uint64 seq, QcRef open)
{
	QlogFlushWork work = {0};

	START_CRIT_SECTION();
	if (qc_ring_durable(qlog_ring) < seq)
	{
		delay_commit();
		qlog_leader_gather();
		QLOG_STOP("before-flush");
		lead(seq, &work);
	}
	qlog_leader_end(open, &work);
	END_CRIT_SECTION();
}

void
qlog_flush(uint64 seq)
{
	if (qlog_leader_join(seq, 0) == QLOG_FLUSH_LEADS)
		lead_group(seq, 0);
}

void
qlog_flush_and_settle(uint64 seq, QcRef open)
{
	switch (qlog_leader_join(seq, open))
	{
		case QLOG_FLUSH_LEADS:
			lead_group(seq, open);
			break;
		case QLOG_FLUSH_DURABLE:
			qlog_settle(open, true, 0);
			break;
		case QLOG_FLUSH_SETTLED:
			break;
	}
}
