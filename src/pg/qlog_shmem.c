/*
 * qlog_shmem.c
 *		Shared memory of qlog: its parts, its locks, the gate and the clocks.
 *
 * Three pieces in the main segment: QlogShared, the core's state block, the ring.	They are laid out when the segment
 * is made, that is at start and after every crash of a backend, and the latter two once more by the checkpointer
 * worker before each attempt at recovery.
 */
#include "qlog_shmem.h"

#include <time.h>

#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "qlog_args.h"
#include "qlog_backup.h"
#include "qlog_compat.h"
#include "qlog_gone.h"
#include "qlog_leader.h"
#include "qlog_guc.h"
#include "qlog_io.h"
#include "qlog_pushing.h"
#include "qlog_report.h"

QlogShared *qlog_shared = NULL;
QcState    *qlog_state = NULL;
QcRing	   *qlog_ring = NULL;

static void *state_block;
static void *ring_block;

static shmem_request_hook_type previous_request_hook = NULL;
static shmem_startup_hook_type previous_startup_hook = NULL;

static QcStateConfig
state_config(void)
{
	return (QcStateConfig)
	{
		.state_bytes = (uint64) qlog_state_memory * 1024,
			.index_bytes = (uint64) qlog_index_memory * 1024,
			.dedup_bytes = (uint64) qlog_dedup_memory * 1024,
			.max_slots = (uint32) qlog_max_leases_per_cursor,
			.max_waiters = (uint32) MaxBackends
	};
}

static Size
state_size(void)
{
	QcStateConfig config = state_config();

	return (Size) qc_state_size(&config);
}

static Size
ring_size(void)
{
	return (Size) qc_ring_block_size((uint64) qlog_buffers * 1024);
}

static void
shmem_request(void)
{
	if (previous_request_hook != NULL)
		previous_request_hook();
	RequestAddinShmemSpace(MAXALIGN(sizeof(QlogShared)));
	RequestAddinShmemSpace(MAXALIGN(qlog_leader_size()));
	RequestAddinShmemSpace(MAXALIGN(qlog_gone_size()));
	RequestAddinShmemSpace(MAXALIGN(qlog_pushing_size()));
	RequestAddinShmemSpace(add_size(state_size(), PG_CACHE_LINE_SIZE));
	RequestAddinShmemSpace(add_size(ring_size(), PG_CACHE_LINE_SIZE));
}

void
qlog_shmem_reset(void)
{
	QcStateConfig config = state_config();

	qlog_state = qc_state_init(state_block, &config);
	qlog_ring = qc_ring_init(ring_block, (uint64) qlog_buffers * 1024, 0);
}

/* The next xid of the last checkpoint: right when no redo is needed, otherwise redo sets it. */
static uint64
control_file_next_xid(void)
{
	bool		crc_ok;
	ControlFileData *control = get_controlfile(DataDir, &crc_ok);
	uint64		xid = U64FromFullTransactionId(control->checkPointCopy.nextXid);

	if (!crc_ok)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("control file has a wrong checksum")));
	pfree(control);
	return xid;
}

static void
init_shared(void)
{
	memset(qlog_shared, 0, sizeof(QlogShared));
	LWLockInitialize(&qlog_shared->state_lock, LWLockNewTrancheId());
	LWLockInitialize(&qlog_shared->write_lock, LWLockNewTrancheId());
	LWLockInitialize(&qlog_shared->extend_lock, LWLockNewTrancheId());
	LWLockInitialize(&qlog_shared->disk_lock, LWLockNewTrancheId());
	LWLockInitialize(&qlog_shared->floor_lock, LWLockNewTrancheId());
	LWLockInitialize(&qlog_shared->damage_lock, LWLockNewTrancheId());
	qlog_shared->sync_tranche = LWLockNewTrancheId();
	pg_atomic_init_u32(&qlog_shared->gate, QLOG_GATE_STARTING);
	pg_atomic_init_u32(&qlog_shared->failed_starts, 0);
	pg_atomic_init_u32(&qlog_shared->refusal_granted, 0);
	ConditionVariableInit(&qlog_shared->extend_cv);
	ConditionVariableInit(&qlog_shared->gate_cv);
	ConditionVariableInit(&qlog_shared->dedup_cv);
	qlog_shared->guard_office = qlog_shared->guard_called = -1;
	pg_atomic_init_u32(&qlog_shared->joint_work, 0);
	pg_atomic_init_u32(&qlog_shared->confirm_short, 0);
	pg_atomic_init_u32(&qlog_shared->resting, 0);
	pg_atomic_init_u32(&qlog_shared->leaving, 1);
	pg_atomic_init_u32(&qlog_shared->store_full, 0);
	pg_atomic_init_u32(&qlog_shared->disk_state, 0);
	pg_atomic_init_u64(&qlog_shared->disk_looked, 0);
	pg_atomic_init_u32(&qlog_shared->catalog_generation, 0);
	pg_atomic_init_u32(&qlog_shared->checkpoints_asked, 0);
	pg_atomic_init_u32(&qlog_shared->checkpoints_done, 0);
	pg_atomic_init_u32(&qlog_shared->snapshots_asked, 0);
	pg_atomic_init_u32(&qlog_shared->snapshots_done, 0);
	pg_atomic_init_u64(&qlog_shared->snapshot_mark, 0);
	pg_atomic_init_u32(&qlog_shared->checkpoint_failures, 0);
	pg_atomic_init_u32(&qlog_shared->snapshot_wish, 0);
	pg_atomic_init_u32(&qlog_shared->backup_sessions, 0);
	ConditionVariableInit(&qlog_shared->checkpoint_cv);
	pg_atomic_init_u32(&qlog_shared->fill_waiter, 0);
	qlog_shared->next_xid = control_file_next_xid();
	qlog_shmem_reset();
}

static void
shmem_startup(void)
{
	bool		found;
	bool		listed;
	void	   *followers;
	void	   *removed;
	void	   *pushing;

	if (previous_startup_hook != NULL)
		previous_startup_hook();
	if (!IsUnderPostmaster)
		qlog_backup_restored();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	qlog_shared = ShmemInitStruct("qlog", sizeof(QlogShared), &found);
	followers = ShmemInitStruct("qlog followers", qlog_leader_size(), &listed);
	qlog_leader_init(followers, !listed);
	removed = ShmemInitStruct("qlog removed files", qlog_gone_size(), &listed);
	qlog_gone_init(removed, !listed);
	pushing = ShmemInitStruct("qlog partitions pushed to", qlog_pushing_size(), &listed);
	qlog_pushing_init(pushing, !listed);
	state_block = (void *) CACHELINEALIGN(ShmemInitStruct("qlog state",
														  state_size() + PG_CACHE_LINE_SIZE, &found));
	ring_block = (void *) CACHELINEALIGN(ShmemInitStruct("qlog buffers",
														 ring_size() + PG_CACHE_LINE_SIZE, &found));
	qlog_state = state_block;
	qlog_ring = ring_block;
	if (!found)
		init_shared();
	LWLockRelease(AddinShmemInitLock);
	LWLockRegisterTranche(qlog_shared->state_lock.tranche, "QlogState");
	LWLockRegisterTranche(qlog_shared->write_lock.tranche, "QlogWrite");
	LWLockRegisterTranche(qlog_shared->sync_tranche, "QlogSync");
	LWLockRegisterTranche(qlog_shared->extend_lock.tranche, "QlogExtend");
	LWLockRegisterTranche(qlog_shared->disk_lock.tranche, "QlogDisk");
	LWLockRegisterTranche(qlog_shared->floor_lock.tranche, "QlogFloor");
	LWLockRegisterTranche(qlog_shared->damage_lock.tranche, "QlogDamage");
}

void
qlog_shmem_init(void)
{
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = shmem_request;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = shmem_startup;
}

QcFiles *
qlog_files(void)
{
	static QcFiles files;

	if (files.io == NULL)
		qc_files_init(&files, qlog_io(), (QcLayout) qlog_directory_layout);
	return &files;
}

void
qlog_worker_wake(QlogWorkerKind kind)
{
	const QlogWorker *worker = &qlog_shared->workers[kind];

	if (worker->pid != 0)
		SetLatch(&ProcGlobal->allProcs[worker->pgprocno].procLatch);
}

void
qlog_gate_set(QlogGate gate, const QcError *err)
{
	if (err != NULL)
		qlog_shared->gate_error = *err;
	pg_write_barrier();
	pg_atomic_write_u32(&qlog_shared->gate, gate);
	ConditionVariableBroadcast(&qlog_shared->gate_cv);
}

/* Raise that qlog did not come up in time. */
static void
gate_timed_out(void)
{
	bool		running = qlog_shared->workers[QLOG_WORKER_CHECKPOINTER].pid != 0;

	ereport(ERROR,
			(errcode(ERRCODE_CANNOT_CONNECT_NOW),
			 errmsg("qlog is starting up"),
			 running ? errdetail("Recovery of the queues is still running.") :
			 errdetail("The worker that recovers the queues is not running."),
			 running ? errhint("Try again later, or raise qlog.recovery_wait.") :
			 errhint("Look for its message in the server log; max_worker_processes may be too low.")));
}

/* Wait for the gate to leave STARTING. */
static QlogGate
gate_wait(void)
{
	int64		end = qlog_monotonic() + (int64) qlog_recovery_wait * 1000;
	QlogGate	gate;

	ConditionVariablePrepareToSleep(&qlog_shared->gate_cv);
	while ((gate = pg_atomic_read_u32(&qlog_shared->gate)) == QLOG_GATE_STARTING)
	{
		int64		left = (end - qlog_monotonic()) / 1000;

		if (left <= 0)
			break;
		(void) ConditionVariableTimedSleep(&qlog_shared->gate_cv, (long) left,
										   QLOG_WAIT_EVENT("QlogRecovery"));
	}
	ConditionVariableCancelSleep();
	return gate;
}

void
qlog_gate_check(void)
{
	QlogGate	gate;

	if (qlog_shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("qlog must be loaded when the server starts"),
				 errhint("Add qlog to shared_preload_libraries and restart the server.")));
	gate = pg_atomic_read_u32(&qlog_shared->gate);
	if (likely(gate == QLOG_GATE_READY))
		return;
	if (gate == QLOG_GATE_STARTING)
		gate = gate_wait();
	if (gate == QLOG_GATE_STARTING)
		gate_timed_out();
	pg_read_barrier();
	if (gate == QLOG_GATE_FAILED)
		qlog_report_refused(ERROR, &qlog_shared->gate_error, qlog_shared->refusal.possible);
}

int64
qlog_now(void)
{
	return qlog_unix_us(GetCurrentTimestamp());
}

int64
qlog_monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
