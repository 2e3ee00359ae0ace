/*
 * qlog_wait.h
 *		Sleeping until something can be popped (core/qc_wait.h says who is woken, and why no wake-up is lost).
 *
 * A call looks, and lists its process in the same hold of the state lock when it finds nothing; then it sleeps here, and
 * looks again when it was woken.	Whatever ends the call before it has looked gives its wake-up to the next one: an error
 * by PG_CATCH and qlog_wait_stop, an exit of the process by a callback that qlog_wait_begin registers.
 *
 * Callers: fn_pop.c, fn_wait.c.
 */
#ifndef QLOG_WAIT_H
#define QLOG_WAIT_H

#include "qlog_shmem.h"

#include "../core/qc_wait.h"

/* Number of this process among those that may wait. */
extern uint32 qlog_process(void);

/* A call that may wait begins: returns when its time will be over, for this many microseconds of waiting. */
extern int64 qlog_wait_begin(int64 wait_us);

/*
 * Sleep until this process is woken (true) or the deadline has come (false).	 Raises what interrupts raise: cancel,
 * statement_timeout, termination; FATAL when the client or the postmaster has gone.	After true the client is still
 * there.
 */
extern bool qlog_wait_sleep(int64 deadline);

/* FATAL when the client has gone. */
extern void qlog_wait_check_client(void);

/* The process waits no more, and has not looked: its wake-up is passed on. */
extern void qlog_wait_stop(void);

#endif							/* QLOG_WAIT_H */
