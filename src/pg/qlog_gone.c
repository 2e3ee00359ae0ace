/*
 * qlog_gone.c
 *		Log files that were removed or replaced.
 */
#include "qlog_gone.h"

#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procsignal.h"
#include "storage/sinval.h"

#include "qlog_compat.h"
#include "qlog_fetch.h"
#include "qlog_shmem.h"

#define RING_MAX	64			/* who is further behind forgets everything */

typedef struct Noted
{
	uint64		log;
	uint64		file;
} Noted;

typedef struct Gone
{
	pg_atomic_uint64 count;		/* noted so far */
	Noted		ring[RING_MAX];
	int			nprocs;

	/*
	 * By number of the process: 1 + how many it has followed when it opened its first file, 0 = it
	 * has none open.
	 */
	pg_atomic_uint64 followed[FLEXIBLE_ARRAY_MEMBER];
} Gone;

static Gone *gone;
static uint64 followed;			/* by this process */
static bool counted;			/* this process stands in gone->followed */

static int
nprocs(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS;
}

Size
qlog_gone_size(void)
{
	return add_size(offsetof(Gone, followed), mul_size((Size) nprocs(), sizeof(pg_atomic_uint64)));
}

void
qlog_gone_init(void *block, bool fresh)
{
	gone = block;
	if (!fresh)
		return;
	pg_atomic_init_u64(&gone->count, 0);
	gone->nprocs = nprocs();
	for (int i = 0; i < gone->nprocs; i++)
		pg_atomic_init_u64(&gone->followed[i], 0);
}

void
qlog_gone_note(uint64 log, uint64 file)
{
	uint64		count;

	qlog_lock_state();
	count = pg_atomic_read_u64(&gone->count);
	gone->ring[count % RING_MAX] = (Noted) {log, file};
	pg_write_barrier();
	pg_atomic_write_u64(&gone->count, count + 1);
	qlog_unlock_state();
}

uint64
qlog_gone_count(void)
{
	return pg_atomic_read_u64(&gone->count);
}

/* Say how far this process has followed; 0 = it has nothing open. */
static void
publish(uint64 value)
{
	int			number = MyProc == NULL ? -1 : QLOG_PROC_NUMBER();

	if (number >= 0 && number < gone->nprocs)
		pg_atomic_write_u64(&gone->followed[number], value);
	counted = value != 0;
}

void
qlog_gone_opened(void)
{
	if (gone != NULL && !counted)
		publish(followed + 1);
}

static bool
has_files(void)
{
	const QcFiles *files = qlog_files();

	for (int i = 0; i < QC_FILES_MAX; i++)
		if (files->open[i].file != 0)
			return true;
	return false;
}

void
qlog_gone_follow(void)
{
	Noted		noted[RING_MAX];
	uint64		count = pg_atomic_read_u64(&gone->count);
	uint64		n;

	if (likely(count == followed))
		return;
	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	count = pg_atomic_read_u64(&gone->count);
	n = count - followed;
	for (uint64 i = 0; i < n && n <= RING_MAX; i++)
		noted[i] = gone->ring[(followed + i) % RING_MAX];
	LWLockRelease(&qlog_shared->state_lock);
	if (n > RING_MAX)
	{
		qc_files_close(qlog_files());
		qlog_fetch_forget_all();
	}
	for (uint64 i = 0; i < n && n <= RING_MAX; i++)
	{
		qc_files_forget(qlog_files(), noted[i].log, noted[i].file);
		qlog_fetch_forget(noted[i].log, noted[i].file);
	}
	followed = count;
	publish(has_files() ? followed + 1 : 0);
}

/* Our own workers look when they wake. */
static bool
wake_worker(int number)
{
	for (int i = 0; i < QLOG_WORKER_COUNT; i++)
	{
		if (qlog_shared->workers[i].pid == 0 || qlog_shared->workers[i].pgprocno != number)
			continue;
		qlog_worker_wake((QlogWorkerKind) i);
		return true;
	}
	return false;
}

void
qlog_gone_wake(void)
{
	uint64		count = pg_atomic_read_u64(&gone->count);

	for (int i = 0; i < gone->nprocs; i++)
	{
		uint64		value = pg_atomic_read_u64(&gone->followed[i]);
		pid_t		pid = ProcGlobal->allProcs[i].pid;

		if (value == 0 || value - 1 >= count || pid == 0 || pid == MyProcPid || wake_worker(i))
			continue;
		(void) SendProcSignal(pid, PROCSIG_CATCHUP_INTERRUPT, QLOG_NO_BACKEND);
	}
}
