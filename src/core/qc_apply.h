/*
 * qc_apply.h
 *		The state machine: what an effect does to the state.
 *
 * Live transactions, recovery and followers all go through qc_apply_effect, in seq order, under the
 * state lock.  It is deterministic: the record's created_at is its clock.  It never fails for lack of
 * anything: live callers have promised the objects (qc_plan_credit), recovery checks the result.
 *
 * Effects of an entry that is not settled yet hang on its open entry (QcApply.open); immediate ones
 * (deliver, pop_commit, release, nack, renew, decision, confirm, epoch, what a pop found out about a start
 * rule, an auto-create's catalog, and the deaths of messages that nobody holds any more) act at once.
 *
 * Settling most entries commutes.  Those that change groups, seek or purge do not: where a group stands
 * depends on what was pushed and delivered before.  They are joint entries whose commit logs its decision
 * by itself, and settles them by that (QcPlan.ordered), so that a replay settles them at the same seq.
 */
#ifndef QC_APPLY_H
#define QC_APPLY_H

#include "qc_effect.h"
#include "qc_state.h"

typedef struct QcApply
{
	uint64_t	seq;
	uint64_t	xid;
	int64_t		created_at;
	int64_t		monotonic;		/* now */
	uint32_t	owner;			/* deliver: backend that owns the lease while its transaction is
								 * open */
	bool		recovering;		/* leases of unknown fate and unknown partitions are tolerated */
	bool		immediate;		/* settle at once */
	uint32_t	pid;			/* of the backend, for views */
	QcRef		open;			/* the entry's open object, 0 = immediate */
} QcApply;

/*
 * Begin an entry: makes the open object (unless immediate).  false = no memory, only when nothing was
 * promised.
 */
extern bool qc_apply_begin(QcState *st, QcApply *apply);

/*
 * Apply one effect.  QC_FULL in recovery when the state memory is too small; QC_DAMAGED when it does not
 * fit the state (positions do not follow, unknown objects): an entry that our own code could not have
 * written.
 */
extern QcStatus qc_apply_effect(QcState *st, const QcApply *apply, const QcEffect *effect,
								QcError *err);

/*
 * Settle an entry: committed makes its messages visible and its acks final; otherwise its positions become
 * aborted ranges and its leases are as before.  lsn = end of the commit record, 0 for queue-only.
 * A joint entry stays listed, decided, until its decision is logged; others are forgotten.
 */
extern void qc_open_settle(QcState *st, QcOpen *open, bool committed, uint64_t lsn,
						   int64_t monotonic);

/* Settle one item of an entry, on its own: what an immediate entry does. */
extern void qc_open_settle_item(QcState *st, const QcOpenItem *item, bool committed,
								int64_t monotonic);

/*
 * Turn round the lists of an open entry, which grow at their heads: partitions become ready, and groups are changed, in
 * the order of the calls.
 */
extern void qc_open_turn(QcState *st, QcOpen *open);

/* Drop an open entry whose decision stands in the log. */
extern void qc_open_forget(QcState *st, QcOpen *open);

/*
 * Encode a decision effect for decided entries whose LSN is <= flushed (aborted ones always), at most max.
 * Returns the number of items put, 0 = nothing to log.  State lock.
 */
extern uint32_t qc_open_decisions(QcState *st, uint32_t timeline, uint64_t flushed, uint32_t max,
								  QcWriter *w);

#endif							/* QC_APPLY_H */
