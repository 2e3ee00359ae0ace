/*
 * qlog_wait.c
 *		Sleeping until something can be popped, and waking who sleeps.
 *
 * The sleep is PostgreSQL's own wait set of a backend's connection: latch, postmaster death, and, where the platform
 * tells, the client's end of the socket.
 */
#include "qlog_wait.h"

#include "libpq/libpq.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"

#include "qlog_compat.h"

#define WAKES_AT_ONCE 64

uint32
qlog_process(void)
{
	return (uint32) QLOG_PROC_NUMBER();
}

/*
 * In between the lock is free and some latches are not set: their processes are in QcState.wakes, where the next holder
 * of the lock, be it another process, finds them.
 */
void
qlog_wake_and_unlock(void)
{
	uint32		processes[WAKES_AT_ONCE];
	uint32		n;
	bool		alarm = false;

	/* A reader may come in between; it is for the writer to go on. */
	if (!LWLockHeldByMeInMode(&qlog_shared->state_lock, LW_EXCLUSIVE))
	{
		LWLockRelease(&qlog_shared->state_lock);
		return;
	}
	for (;;)
	{
		n = qc_wakes_take(qlog_state, qlog_monotonic(), processes, WAKES_AT_ONCE);
		alarm = alarm || qlog_state->alarm != 0;
		qlog_state->alarm = 0;
		LWLockRelease(&qlog_shared->state_lock);
		for (uint32 i = 0; i < n; i++)
			SetLatch(&ProcGlobal->allProcs[processes[i]].procLatch);
		if (n < WAKES_AT_ONCE)
			break;
		qlog_lock_state();
	}
	if (alarm)
		qlog_worker_wake(QLOG_WORKER_TIMER);
}

void
qlog_wait_stop(void)
{
	qlog_lock_state();
	qc_wait_end(qlog_state, qlog_process());
	qlog_unlock_state();
}

static void
stop_at_exit(int code, Datum arg)
{
	(void) code;
	(void) arg;
	qlog_wait_stop();
}

int64
qlog_wait_begin(int64 wait_us)
{
	static bool registered = false;

	if (!registered)
	{
		registered = true;
		before_shmem_exit(stop_at_exit, 0);
	}
	return qlog_monotonic() + wait_us;
}

static void
client_gone(void)
{
	ClientConnectionLost = true;
	InterruptPending = true;
	CHECK_FOR_INTERRUPTS();
}

void
qlog_wait_check_client(void)
{
	if (MyProcPort != NULL && WaitEventSetCanReportClosed() && !pq_check_connection())
		client_gone();
}

/* Has somebody woken this process?  What he did before is seen after. */
static bool
woken(void)
{
	const volatile QcWaiter *waiter = qc_waiter(qlog_state, qlog_process());
	bool		result = waiter->woken != 0;

	pg_read_barrier();
	return result;
}

/* Until the latch is set, something happens, or the time is over. */
static void
sleep_once(long timeout_ms)
{
	WaitEvent	event;
	uint32		name = QLOG_WAIT_EVENT("QlogWaitMessage");

	if (MyProcPort == NULL)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, timeout_ms, name);
		return;
	}

	/* Every user of this set says what he waits for at the socket. */
	ModifyWaitEvent(FeBeWaitSet, FeBeWaitSetSocketPos,
					WaitEventSetCanReportClosed() ? WL_SOCKET_CLOSED : 0, NULL);
	if (WaitEventSetWait(FeBeWaitSet, timeout_ms, &event, 1, name) == 0)
		return;
	if (event.events & WL_POSTMASTER_DEATH)
		ereport(FATAL,
				(errcode(ERRCODE_ADMIN_SHUTDOWN),
				 errmsg("terminating connection due to unexpected postmaster exit")));
	if (event.events & WL_SOCKET_CLOSED)
		client_gone();
}

bool
qlog_wait_sleep(int64 deadline)
{
	for (;;)
	{
		int64		left;

		CHECK_FOR_INTERRUPTS();
		if (woken())
			break;
		left = deadline - qlog_monotonic();
		if (left <= 0)
			return false;
		sleep_once((long) Min(left / 1000 + 1, INT_MAX));
		ResetLatch(MyLatch);
	}
	qlog_wait_check_client();
	return true;
}
