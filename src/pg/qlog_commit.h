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
 * Before qlog_commit_pre, for an ordered plan (qc_order.h): take the credit for its decision; memory comes from the
 * current context.	 NULL when the plan is not ordered.  Given to exactly one of qlog_commit_event and qlog_submit_cancel.
 */
extern QcSmallPlan *qlog_commit_order(const QcPlan *plan);

/*
 * XACT_EVENT_COMMIT.  Never raises.  Queue-only: reserve, fill, flush (unless synchronous_commit = off), settle.
 * Joint: settle with the LSN of the commit record, by the decision, made durable, when there is a credit for it.
 */
extern void qlog_commit_event(QcPlan *plan, QcSmallPlan *order);

/* XACT_EVENT_ABORT after qlog_commit_pre (also when that raised half way): gives back or settles as aborted. */
extern void qlog_commit_abort(QcPlan *plan);

/*
 * Log an immediate entry: credit (may wait, may raise), then under the state lock `choose` may encode the effect
 * (NULL when it is encoded already) and, after reserving, `done` may look at the state.  Returns the seq, or 0
 * when choose answered false (nothing is logged).	The entry is filled; write it out with qlog_write when the
 * caller's answer depends on it.  owner: as QcApply.owner.
 */
typedef bool (*QlogChoose) (void *context, QcSmallPlan *small);
typedef void (*QlogReserved) (void *context, const QcPlan *plan);
extern uint64 qlog_submit(QcSmallPlan *small, QlogChoose choose, QlogReserved done, void *context);

/* As qlog_submit for a plan built by qc_plan_build with plan->immediate set (auto-create). */
extern uint64 qlog_submit_plan(QcPlan *plan, bool in_wal);

/*
 * Credit now, use later where nothing may be raised (release at ABORT, pop_commit at COMMIT): small must live
 * until qlog_submit_held or qlog_submit_cancel.  The credit holds up nobody else, however long it stands.
 */
extern void qlog_submit_hold(QcSmallPlan *small);
extern uint64 qlog_submit_held(QcSmallPlan *small);
extern void qlog_submit_cancel(QcSmallPlan *small);

/* The newest entry reserved. Takes the state lock, shared, for a moment. */
extern uint64 qlog_newest_seq(void);

/* Everything up to seq is in the files (not synced). Raises 58030 on failure. */
extern void qlog_write(uint64 seq);

/* Everything up to seq is durable in every log it touches.	 Never raises: a failed sync is PANIC. */
extern void qlog_flush(uint64 seq);

/* The same, and the entry is settled as committed. */
extern void qlog_flush_and_settle(uint64 seq, QcRef open);

/* Settle an entry; lsn: where PostgreSQL's commit record ends.	 Never raises. */
extern void qlog_settle(QcRef open, bool committed, uint64 lsn);

/*
 * For workers, which do not raise for lack of room: as qlog_submit, QC_OK with small->plan.seq set, or 0 when choose
 * answered false.  Interruptible.
 */
extern QcStatus qlog_try_submit(QcSmallPlan *small, QlogChoose choose, void *context, QcError *err);

/*
 * For immediate plans that qc_plan_build has made: as qlog_try_submit, with plan->seq 0 when `check` says, under the state
 * lock, that what the plan rests on has changed.
 */
typedef bool (*QlogCheck) (void *context);
extern QcStatus qlog_try_plan(QcPlan *plan, QlogCheck check, QlogReserved done, void *context,
							  QcError *err);

/*
 * As qlog_try_plan for what joint entries may rest on, so that it must be in the WAL before they are: a plan without xid, carried,
 * not immediate.  Nobody sees its effects before its record is inserted.
 */
extern QcStatus qlog_try_in_wal(QcPlan *plan, QlogCheck check, void *context, QcError *err);

/* Take the credit of a plan: waits, makes room; QC_OK, or why there is none. Interruptible. */
extern QcStatus qlog_credit(QcPlan *plan, QcError *err);

/* Make the room that the credit of this plan lacked: write out the ring, or extend a log, from the reserve unless it grows. */
extern QcStatus qlog_make_room(const QcPlan *plan, QcLack lack, const QcExtend *extend, QcError *err);

/*
 * Make the files of a new log and add it to the state, before the entry that creates its queue. A shared log is there
 * already, and stays. May raise 53100, 53200,
 * 58030.	qlog_log_abandon undoes it when that entry does not come about; it never raises.
 */
extern void qlog_log_make(uint64 log);
extern void qlog_log_abandon(uint64 log);

/*
 * Zero-fill as told, unless somebody else has done so meanwhile; when there is no room for all of it only as much as is needed,
 * which may come from the reserve if the caller is entitled to it (qlog_disk.h).
 */
extern QcStatus qlog_extend(const QcExtend *extend, bool entitled, QcError *err);

/*
 * Between the parts of a commit (qlog_commit.c, qlog_guard.c), in one critical section: take the state lock at a moment
 * when the ring has room for the plan, which has credit; PANIC when the ring cannot be written out.
 */
extern void qlog_lock_for(const QcPlan *plan);

/* ... reserve, still under that lock. */
extern void qlog_reserve_locked(QcPlan *plan);

/* ... and fill what was reserved, without it.	PANIC when a big entry cannot be written. */
extern void qlog_fill(QcPlan *plan);

/* An entry has been filled: wake a leader that waits for it. */
extern void qlog_filled(void);

/* As qlog_write but never raises; false = failed, *err says why. */
extern bool qlog_write_noerror(uint64 seq, QcError *err);

#endif							/* QLOG_COMMIT_H */
