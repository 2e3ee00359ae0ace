/*
 * qlog_shmem.h
 *		What all processes of a server share, and the locks that guard it.
 *
 * Lock order: state -> nothing.  write is taken holding none.  extend is taken holding none and held over I/O (only those
 * who lack room wait for it); under it the state lock is taken briefly.  The leader of group commit (qlog_leader.h) takes
 * write and state one after the other.
 *
 *	 state	everything in QcState, log tails and credits, ring->head, guard flags.	 Short,
 *			never over I/O, palloc or a wait.  Exclusive to change, shared for views.
 *	 write	writing the ring out: ring->written, written_seq, dirty logs.
 *	 extend zero-filling and creating log files.
 *	 disk	the file RESERVE, and measuring the disk (qlog_disk.h): taken last, under any other lock but state.
 *	 floor	the file FLOOR, over I/O; checkpointer and reclaim only, holding none.
 */
#ifndef QLOG_SHMEM_H
#define QLOG_SHMEM_H

#include "postgres.h"

#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
#include "utils/timestamp.h"

#include "../core/qc_files.h"
#include "../core/qc_read.h"
#include "../core/qc_ring.h"
#include "../core/qc_state.h"

/* May functions work?	Only the checkpointer worker moves it. */
typedef enum QlogGate
{
	QLOG_GATE_STARTING,			/* recovery is running or has not begun: functions wait for it */
	QLOG_GATE_READY,
	QLOG_GATE_FAILED			/* gate_error says why; functions raise it */
} QlogGate;

typedef enum QlogWorkerKind
{
	QLOG_WORKER_CHECKPOINTER,
	QLOG_WORKER_GUARD_1,
	QLOG_WORKER_GUARD_2,
	QLOG_WORKER_TIMER,
	QLOG_WORKER_SWEEPER,
	QLOG_WORKER_RETENTION,
	QLOG_WORKER_RECLAIM,
	QLOG_WORKER_SCRUB,
	QLOG_WORKER_COUNT
} QlogWorkerKind;

typedef struct QlogWorker
{
	pid_t		pid;			/* 0 = not running */
	int			pgprocno;		/* of its PGPROC, to set its latch */
	uint32		restarts;
	uint64		passes;
	int64		last_pass_us;	/* duration */
	TimestampTz last_pass_at;
	char		state[32];		/* "recovering", "idle", "checkpoint", ... */
	char		last_error[256];
} QlogWorker;

/* What a long-running worker does now, for its progress view.	Written by that worker alone. */
typedef struct QlogProgress
{
	char		phase[32];		/* "" = nothing */
	uint64		done;
	uint64		total;
	TimestampTz started_at;
} QlogProgress;

/* A damaged place, or messages that are in no file, as they were found (qlog_damage.h). */
#define QLOG_DAMAGE_MAX 256
typedef struct QlogDamageNote
{
	uint64		log;
	uint64		file;			/* 0 = messages that are in no file */
	uint64		position;		/* in the file; of the first message */
	uint64		bytes;			/* 0 = not known */
	uint64		partition;		/* of the messages */
	TimestampTz found_at;		/* 0 = before this start */
	bool		needed;			/* what stood there is still needed */
	char text[	128];
} QlogDamageNote;

/* A verification that runs, and how far it has come (qlog_verifying.h). */
#define QLOG_VERIFYING_MAX 32
typedef struct QlogVerifying
{
	pid_t		pid;			/* 0 = free */
	char		what[16];
	uint64		log;
	uint64		file;			/* 0 = none yet */
	uint64		files_done;
	uint64		files_total;
	uint64		bytes_done;
	uint64		bytes_total;
	uint64		findings;
	TimestampTz started_at;
} QlogVerifying;

/* Messages [first, end) of a partition. */
typedef struct QlogRun
{
	uint64		partition;
	uint64		first;
	uint64		end;
} QlogRun;

/* What a refused start could give up (qlog_refusal.h). */
#define QLOG_REFUSAL_RUNS 1000
typedef struct QlogRefusal
{
	bool		possible;		/* it would come up if it gave up what follows */
	uint64		seq;			/* entries from this one on; 0 = none */
	uint64		entries;		/* how many */
	uint32		logs;			/* logs whose files are gone or too short */
	uint64		messages;		/* in the entries */
	uint32		nruns;			/* of messages; only the first ones are kept */
	QlogRun		runs[QLOG_REFUSAL_RUNS];
} QlogRefusal;

typedef struct QlogShared
{
	LWLock		state_lock;
	LWLock		write_lock;
	LWLock		extend_lock;
	LWLock		disk_lock;
	LWLock		floor_lock;
	LWLock		damage_lock;	/* damage, and taking a progress slot; a leaf */
	int			sync_tranche;	/* under which waiting for a sync is shown */

	pg_atomic_uint32 gate;		/* QlogGate */
	ConditionVariable extend_cv;	/* the extend lock has been released */
	ConditionVariable gate_cv;
	ConditionVariable dedup_cv; /* claims of dedup ids were given back or settled */
	QcError		gate_error;		/* valid when the gate is FAILED */
	pg_atomic_uint32 failed_starts; /* how often it became so */
	pg_atomic_uint32 refusal_granted;	/* 1 = the next start may give up what refusal says */
	QlogRefusal refusal;

	/* Guards (PROTOCOL.md 2.5, qlog_guard.h), state lock. */
	uint32		nguards;		/* guard workers whose DELAY_CHKPT_START flag stands */
	int			guard_office;	/* the one whose flag has stood longest, -1 = none */
	int			guard_called;	/* the one that is asked to set its flag, -1 = none */
	uint64		joint_seq;		/* newest entry that has, or will have, a WAL record */
	uint64		confirmed_durable;	/* a confirm up to here is durable */
	pg_atomic_uint32 joint_work;	/* set by joint commits, cleared by guards going to sleep */
	pg_atomic_uint32 confirm_short; /* guards have no room for confirms: joint commits are refused */

	/* Sleep of the checkpointer worker. */
	pg_atomic_uint32 resting;	/* 1 = it has nothing to do and sleeps: whoever reserves wakes it */
	pg_atomic_uint32 leaving;	/* 1 = it ends or has ended: processes flush what they logged when
								 * they exit */
	bool		batch_lost;		/* it ended holding a dump that it could not store */

	/* Checkpoints and snapshots that were asked for, and up to which they are done. */
	pg_atomic_uint32 checkpoints_asked;
	pg_atomic_uint32 checkpoints_done;
	pg_atomic_uint32 snapshots_asked;
	pg_atomic_uint32 snapshots_done;
	pg_atomic_uint64 snapshot_mark; /* of the last one that was asked for */
	pg_atomic_uint32 checkpoint_failures;
	pg_atomic_uint32 snapshot_wish; /* 1 = space waits for a snapshot */
	pg_atomic_uint32 backup_sessions;	/* that are between pg_backup_start() and pg_backup_stop() */
	ConditionVariable checkpoint_cv;	/* any of the above has changed */

	/*
	 * State lock: counters of the log when qlog_stat_reset() was called, and when; 0 = not since
	 * the start.
	 */
	QcCounters	counters_reset;
	TimestampTz reset_at;

	/*
	 * State lock: a closed file whose .qidx, or a directory over it, a reader found missing or
	 * wrong, 0 = none (wrk_index.c).
	 */
	uint64		lacking_log;
	uint64		lacking_file;
	bool		lacking_dirx;

	/* Store full: the checkpointer cannot write, new work is refused until it can. */
	pg_atomic_uint32 store_full;

	/* Room on the disk (qlog_disk.h). */
	pg_atomic_uint32 disk_state;	/* QlogDiskState */
	pg_atomic_uint64 disk_looked;	/* monotonic time of the last measurement, microseconds */

	pg_atomic_uint32 catalog_generation;	/* grows when a queue is dropped: backends forget names */
	pg_atomic_uint32 fill_waiter;	/* pgprocno + 1 of a leader that waits for an entry to be
									 * filled */

	uint64		end_of_redo;	/* set by rm_cleanup: end LSN of redo, 0 = none was needed */
	uint64		next_xid;		/* full xid: first one not handed out at the end of redo */
	uint32		timeline;		/* of this run, set by the checkpointer worker at start */
	uint64		recovery_us;	/* duration of our own part of the last start */
	QlogWorker	workers[QLOG_WORKER_COUNT];
	QlogProgress reclaim;		/* of its pass */
	uint32		ndamage;
	QlogDamageNote damage[QLOG_DAMAGE_MAX];
	QlogVerifying verifying[QLOG_VERIFYING_MAX];
} QlogShared;

extern QlogShared *qlog_shared; /* NULL when the library was not preloaded */
extern QcState *qlog_state;
extern QcRing *qlog_ring;

/* The configuration of the block: what the checkpointer worker lays out anew before each recovery. */
extern void qlog_shmem_reset(void);

/* Set the gate and wake who waits for it; the error belongs to QLOG_GATE_FAILED. */
extern void qlog_gate_set(QlogGate gate, const QcError *err);

/* Of this process, made at first use. */
extern QcFiles *qlog_files(void);

/* Called by _PG_init while preloading: chains shmem_request_hook and shmem_startup_hook. */
extern void qlog_shmem_init(void);

/*
 * Wait up to qlog.recovery_wait until functions may work.	55000 when not preloaded (HINT), 57P03 when still
 * recovering, the gate's error when it failed.	 Interruptible.
 */
extern void qlog_gate_check(void);

/* Have a worker look again, if it is there. */
extern void qlog_worker_wake(QlogWorkerKind kind);

#define qlog_lock_state()	LWLockAcquire(&qlog_shared->state_lock, LW_EXCLUSIVE)

/*
 * Give the exclusive lock up.	What was done under it may have woken waiters, whose latches are set after, and may have to
 * be looked at by the timer worker.	Never raises.
 */
extern void qlog_wake_and_unlock(void);

static inline void
qlog_unlock_state(void)
{
	if (unlikely(qlog_state->wakes.head != 0 || qlog_state->alarm != 0))
		qlog_wake_and_unlock();
	else
		LWLockRelease(&qlog_shared->state_lock);
}

/* Clocks for the core: wall (microseconds since the Unix epoch) and monotonic. */
extern int64 qlog_now(void);
extern int64 qlog_monotonic(void);

#endif							/* QLOG_SHMEM_H */
