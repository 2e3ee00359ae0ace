/*
 * qlog_commit.h
 *		From a built plan to a durable entry: the two commit protocols, immediate entries, flushes.
 *
 * Callers: qlog_xact.c (transaction callbacks), fn_*.c (immediate entries), workers.
 */
#ifndef QLOG_COMMIT_H
#define QLOG_COMMIT_H

#include "qlog_shmem.h"

#include "../core/qc_apply.h"
#include "../core/qc_plan.h"

/*
 * XACT_EVENT_PRE_COMMIT.  Takes every credit (waits, may raise 53100, 53200, 54000).  plan->xid = 0: that is all.
 * Joint (plan->xid != 0): then, with interrupts held, reserves, fills and inserts the WAL record: carried, or
 * referenced after our log is durable through it.	When no guard flag stands this backend acts as guard itself.
 * After it returns exactly one of qlog_commit_event and qlog_commit_abort must be called.
 */
extern void qlog_commit_pre(QcPlan *plan);

/*
 * XACT_EVENT_COMMIT.  Never raises.  Queue-only: reserve, fill, flush (unless synchronous_commit = off), settle.
 * Joint: settle with the LSN of the commit record.
 */
extern void qlog_commit_event(QcPlan *plan);

/* XACT_EVENT_ABORT after qlog_commit_pre (also when that raised half way): gives back or settles as aborted. */
extern void qlog_commit_abort(QcPlan *plan);

/*
 * Log an immediate entry: credit (may wait, may raise), then under the state lock `choose` may encode the effect
 * (NULL when it is encoded already) and, after reserving, `done` may look at the state.  Returns the seq, or 0
 * when choose answered false (nothing is logged).	The entry is filled; write it out with qlog_write when the
 * caller's answer depends on it.  owner: as QcApply.owner.
 */
typedef bool (*QlogChoose) (void *context, QcSmallPlan *small);
typedef void (*QlogDone) (void *context, const QcPlan *plan);
extern uint64 qlog_submit(QcSmallPlan *small, QlogChoose choose, QlogDone done, void *context);

/* As qlog_submit for a plan built by qc_plan_build with plan->immediate set (auto-create). */
extern uint64 qlog_submit_plan(QcPlan *plan, bool in_wal);

/*
 * Credit now, use later where nothing may be raised (release at ABORT, pop_commit at COMMIT): small must live
 * until qlog_submit_held or qlog_submit_cancel.
 */
extern void qlog_submit_hold(QcSmallPlan *small);
extern uint64 qlog_submit_held(QcSmallPlan *small);
extern void qlog_submit_cancel(QcSmallPlan *small);

/* Everything up to seq is in the files (not synced). Raises 58030 on failure. */
extern void qlog_write(uint64 seq);

/* Everything up to seq is durable in every log it touches.	 Never raises: a failed sync is PANIC. */
extern void qlog_flush(uint64 seq);

/* As qlog_write but never raises; false = failed, *err says why. */
extern bool qlog_write_noerror(uint64 seq, QcError *err);

#endif							/* QLOG_COMMIT_H */
