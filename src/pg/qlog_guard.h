/*
 * qlog_guard.h
 *		Guards: no checkpoint of PostgreSQL may pass joint entries that our log does not hold durably.
 *
 * A process whose DELAY_CHKPT_START flag stands keeps a checkpoint from completing.	 Two guard workers relieve each
 * other, so that while there is joint work one flag always stands; before its flag goes, a guard makes sure that every
 * joint entry that relied on it is durable and confirmed (PROTOCOL.md 2.5).  A joint commit that finds no guard's flag
 * acts as guard itself.  Only the flags of guard workers count in QlogShared.nguards: who relies on a flag must be
 * covered by the cycle that ends it, and a committing backend's cycle covers its own entry only.
 *
 * Callers: qlog_commit.c, wrk_guard.c.
 */
#ifndef QLOG_GUARD_H
#define QLOG_GUARD_H

#include "qlog_commit.h"

#include "access/xlogdefs.h"

/* Credit for a confirm and for this many decisions, held by one process between its cycles. */
#define QLOG_DECISIONS_MAX 1024

typedef struct QlogConfirm
{
	QcSmallPlan small;
	uint8	   *buffer;			/* made at first use, kept */
	size_t		effect_max;
} QlogConfirm;

/* Take the credit unless it is held. decisions: 0 or QLOG_DECISIONS_MAX, always the same one. */
extern QcStatus qlog_confirm_credit(QlogConfirm *confirm, uint32 decisions, QcError *err);
extern void qlog_confirm_release(QlogConfirm *confirm);

/*
 * A commit that inserts a WAL record of ours begins: takes the credit with which this process could be its own guard.
 * May wait and raise, never inside a critical section.  53100 when the guards have no room in the log.
 */
extern void qlog_guard_prepare(void);

/* The same for workers: says why not. */
extern QcStatus qlog_guard_try_prepare(QcError *err);

/*
 * Reserve the plan; sets the flag of this process when no guard's stands, and returns whether it did.	State lock,
 * critical section.
 */
extern bool qlog_guard_reserve_locked(QcPlan *plan);

/* The WAL record is inserted.	own: what qlog_guard_reserve returned.	Critical section. */
extern void qlog_guard_inserted(QcPlan *plan, bool own);

/* There is joint work to confirm or decisions to log: wake the guards if they sleep. */
extern void qlog_guard_wake(void);

/* Set or clear the flag of this process.  State lock. */
extern void qlog_guard_flag(bool set);

/* Wait until every joint entry up to seq has its WAL record inserted. */
extern void qlog_guard_wait_inserted(uint64 seq);

/* Insert a barrier for everything up to seq and flush the WAL through it; returns its end. */
extern XLogRecPtr qlog_guard_barrier(uint64 seq);

/*
 * Log a confirm up to seq, and decisions whose commit records lie below lsn, out of the credit; waits until it is
 * durable.	Returns the number of decisions.
 */
extern uint32 qlog_guard_confirm(QlogConfirm *confirm, uint64 seq, XLogRecPtr lsn, uint32 decisions);

#endif							/* QLOG_GUARD_H */
