/*
 * qlog_xact.c
 *		Transaction callbacks.
 */
#include "qlog_xact.h"

#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "qlog_backup.h"
#include "qlog_commit.h"
#include "qlog_dedup.h"
#include "qlog_gone.h"
#include "qlog_guc.h"
#include "qlog_hold.h"
#include "qlog_pushing.h"
#include "qlog_report.h"
#include "qlog_stage.h"

#include "../core/qc_lease.h"

#define PIN_BUDGET 256			/* leases pinned per hold of the state lock */

/* The plan of the current transaction, in qlog_stage_context(); NULL before PRE_COMMIT. */
static QcPlan *plan;
static QcSmallPlan *order;		/* credit for the decision of an ordered one */
static bool plan_begun;			/* qlog_commit_pre was called */
static bool catalog_changed;	/* by that plan */

/* Leases that this transaction acknowledges from, ascending, and how many of them are pinned. */
static uint64 *leases;
static uint32 nleases;
static uint32 npinned;

static void *
plan_alloc(void *context, size_t size)
{
	(void) context;
	return qlog_stage_alloc(size);
}

static int
compare_u64(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

/* By lease, partition, position. */
static int
compare_done(const void *a, const void *b)
{
	const QlogDone *x = a;
	const QlogDone *y = b;

	if (x->lease != y->lease)
		return x->lease < y->lease ? -1 : 1;
	if (x->partition != y->partition)
		return x->partition < y->partition ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/*
 * Queues that this transaction drops, ascending.  Their pushes come to nothing, and of those that it has created as
 * well nothing at all remains.
 */
typedef struct Dropped
{
	uint64	   *all;
	uint32		nall;
	uint64	   *own;
	uint32		nown;
} Dropped;

static Dropped
dropped_queues(void)
{
	Dropped		dropped = {NULL, 0, NULL, 0};
	MemoryContext context = qlog_stage_context();

	for (uint32 i = 0; i < qlog_stage.nchanges; i++)
	{
		const QlogChange *change = &qlog_stage.changes[i];

		if (change->kind != QLOG_CHANGE_DROPPED)
			continue;
		if (dropped.all == NULL)
		{
			dropped.all = MemoryContextAlloc(context, qlog_stage.nchanges * sizeof(uint64));
			dropped.own = MemoryContextAlloc(context, qlog_stage.nchanges * sizeof(uint64));
		}
		dropped.all[dropped.nall++] = change->queue.id;
		if (change->queue.own)
			dropped.own[dropped.nown++] = change->queue.id;
	}
	if (dropped.nall > 0)
	{
		qsort(dropped.all, dropped.nall, sizeof(uint64), compare_u64);
		qsort(dropped.own, dropped.nown, sizeof(uint64), compare_u64);
	}
	return dropped;
}

static bool
contains(const uint64 *ids, uint32 n, uint64 id)
{
	return n > 0 && bsearch(&id, ids, n, sizeof(uint64), compare_u64) != NULL;
}

/* Does the operation remain when the transaction drops these queues? */
static bool
remains(const QlogStaged *staged, const Dropped *dropped)
{
	if (staged->dropped)
		return false;
	if (dropped->nall == 0 || staged->queue == 0)
		return true;
	if (contains(dropped->own, dropped->nown, staged->queue))
		return false;
	return staged->op.kind == QC_OP_EFFECT ||
		!contains(dropped->all, dropped->nall, staged->queue);
}

/* By queue, then in the order of the calls. */
static int
compare_alters(const void *a, const void *b)
{
	uint32		x = *(const uint32 *) a;
	uint32		y = *(const uint32 *) b;
	int			c = compare_u64(&qlog_stage.ops[x].queue, &qlog_stage.ops[y].queue);

	return c != 0 ? c : (x > y) - (x < y);
}

/* Each new definition of a queue is a whole one: only the newest counts.	The others are marked as no effect. */
static void
supersede_alters(void)
{
	uint32	   *alters = NULL;
	uint32		n = 0;

	for (uint32 i = 0; i < qlog_stage.nops; i++)
	{
		if (qlog_stage.ops[i].effect != QC_EFFECT_QUEUE_ALTER)
			continue;
		if (alters == NULL)
			alters = MemoryContextAllocHuge(qlog_stage_context(),
											(Size) (qlog_stage.nops - i) * sizeof(uint32));
		alters[n++] = i;
	}
	if (n > 1)
		qsort(alters, n, sizeof(uint32), compare_alters);
	for (uint32 i = 1; i < n; i++)
	{
		if (qlog_stage.ops[alters[i - 1]].queue == qlog_stage.ops[alters[i]].queue)
			qlog_stage.ops[alters[i - 1]].superseded = true;
	}
}

/* The operations that the entry will hold. */
static QcOp *
collect_ops(const Dropped *dropped, size_t *nops)
{
	QcOp	   *ops = MemoryContextAllocHuge(qlog_stage_context(),
											 (Size) qlog_stage.nops * sizeof(QcOp));

	*nops = 0;
	supersede_alters();
	for (uint32 i = 0; i < qlog_stage.nops; i++)
	{
		if (!qlog_stage.ops[i].superseded && remains(&qlog_stage.ops[i], dropped))
			ops[(*nops)++] = qlog_stage.ops[i].op;
	}
	return ops;
}

/* Does the entry change the catalog of queues?	DROP DATABASE and DROP EXTENSION stage effects without a change of a name. */
static bool
changes_catalog(void)
{
	for (uint32 i = 0; i < qlog_stage.nops; i++)
	{
		if (qlog_stage.ops[i].op.kind == QC_OP_EFFECT && qlog_stage.ops[i].queue != 0)
			return true;
	}
	return false;
}

/* Are letters redriven?	What consumes them may survive in the WAL alone, and would leave them to be redriven again. */
static bool
moves_letters(void)
{
	for (uint32 i = 0; i < qlog_stage.nops; i++)
	{
		if (qlog_stage.ops[i].op.moved)
			return true;
	}
	return false;
}

/*
 * Joint work travels in the WAL: small work whole, large work as a reference to our own log, which is flushed first.
 * Catalog changes are never only referenced, with wal_carry = all nothing is, nor while a base backup runs: its copy of
 * the log may be older than the WAL that is replayed over it.
 */
static uint16
entry_flags(uint64 xid)
{
	if (xid == 0)
		return 0;
	if (catalog_changed || qlog_wal_carry == QLOG_WAL_CARRY_ALL ||
		qlog_stage.bytes <= (uint64) qlog_wal_payload_limit || qlog_backup_runs())
		return QC_ENTRY_CARRIED;
	return QC_ENTRY_REFERENCED;
}

/* Directories and first files of the queues that are to be created. */
static void
create_logs(const Dropped *dropped)
{
	for (uint32 i = 0; i < qlog_stage.nchanges; i++)
	{
		const QlogChange *change = &qlog_stage.changes[i];

		if (change->kind != QLOG_CHANGE_CREATED ||
			contains(dropped->own, dropped->nown, change->queue.id))
			continue;
		CHECK_FOR_INTERRUPTS();
		qlog_log_make(change->queue.log);
	}
}

/* Logs of queues that are not to be. */
static void
abandon_logs(void)
{
	for (uint32 i = 0; i < qlog_stage.nchanges; i++)
	{
		if (qlog_stage.changes[i].kind == QLOG_CHANGE_CREATED)
			qlog_log_abandon(qlog_stage.changes[i].queue.log);
	}
}

static void
lost_lease(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("a lease was lost before the transaction committed"),
			 errdetail("Messages that the transaction acknowledged have expired, were given back, or were acknowledged by another one."),
			 errhint("Retry the transaction with a new queue_pop().")));
}

/* How many positions of the lease lie in these ranges, which are sorted.	State lock. */
static uint64
count_held(const QcLease *lease, const QlogDone *done, uint32 ndone)
{
	uint64		n = 0;

	for (QcSlot *slot = QC_AT(qlog_state, QcSlot, lease->slots.head); slot != NULL;
		 slot = QC_AT(qlog_state, QcSlot, slot->of_lease.next))
	{
		QcCursor   *cursor = QC_AT(qlog_state, QcCursor, slot->cursor);
		QlogDone	key = {lease->id, QC_AT(qlog_state, QcPartition, cursor->partition)->id,
			slot->position, 1};
		uint32		low = 0;
		uint32		high = ndone;

		/* Last range that begins at or below the slot. */
		while (low < high)
		{
			uint32		middle = (low + high) / 2;

			if (compare_done(&done[middle], &key) <= 0)
				low = middle + 1;
			else
				high = middle;
		}
		if (low > 0 && done[low - 1].partition == key.partition &&
			slot->position - done[low - 1].first < done[low - 1].count)
			n++;
	}
	return n;
}

/*
 * Is the lease still ours with all of these positions?	 Then pin it: until this transaction has ended it can neither
 * expire nor be answered by anybody else.	State lock.
 */
static bool
pin_lease(uint64 id, const QlogDone *done, uint32 ndone)
{
	QcLease    *lease = qc_lease_by_id(qlog_state, id);
	uint64		wanted = 0;

	if (lease == NULL || lease->pin_seq != 0 ||
		(lease->owner != 0 && lease->owner != (uint32) MyProcPid))
		return false;
	for (uint32 i = 0; i < ndone; i++)
		wanted += done[i].count;
	if (count_held(lease, done, ndone) != wanted)
		return false;
	qc_lease_pin(qlog_state, lease, QC_PIN_PROMISED);
	return true;
}

/* Check and pin every lease that the transaction acknowledges from. */
static void
pin_leases(void)
{
	uint32		ndone = qlog_stage.ndone;
	QlogDone   *done = qlog_stage.done;
	uint32		at = 0;

	if (ndone == 0)
		return;
	qsort(done, ndone, sizeof(QlogDone), compare_done);
	leases = MemoryContextAllocHuge(qlog_stage_context(), (Size) ndone * sizeof(uint64));
	nleases = npinned = 0;
	while (at < ndone)
	{
		bool		lost = false;

		qlog_lock_state();
		for (uint32 budget = PIN_BUDGET; at < ndone && budget > 0 && !lost; budget--)
		{
			uint32		end = at;

			while (end < ndone && done[end].lease == done[at].lease)
				end++;
			leases[nleases] = done[at].lease;
			lost = !pin_lease(leases[nleases], done + at, end - at);
			if (!lost)
				npinned = ++nleases;
			at = end;
		}
		qlog_unlock_state();
		if (lost)
			lost_lease();
	}
}

/* Leases whose acknowledgement was not even reserved run again. */
static void
unpin_leases(void)
{
	if (npinned == 0)
		return;
	qlog_lock_state();
	for (uint32 i = 0; i < npinned; i++)
	{
		QcLease    *lease = qc_lease_by_id(qlog_state, leases[i]);

		if (lease != NULL && lease->pin_seq == QC_PIN_PROMISED)
			qc_lease_unpin(qlog_state, lease, qlog_monotonic());
	}
	qlog_unlock_state();
	npinned = 0;
}

/*
 * The other half of a transaction that repeats an acknowledgement would happen twice: that of the first one has happened
 * with it (doc/contract.md).
 */
static void
refuse_repeated(void)
{
	if (qlog_stage.nops == 0 && !FullTransactionIdIsValid(GetTopFullTransactionIdIfAny()))
		return;
	for (uint32 i = 0; i < qlog_stage.ndone; i++)
	{
		if (qlog_stage.done[i].count == 0)
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("lease " INT64_FORMAT " has been acknowledged before",
							(int64) qlog_stage.done[i].lease),
					 errdetail("The transaction repeats an acknowledgement that has committed, and has other work as well."),
					 errhint("Do not repeat that work: it committed with the acknowledgement.")));
	}
}

/* Build the plan and take what it needs; a joint one is logged here. */
static void
pre_commit(void)
{
	Dropped		dropped;
	QcOp	   *ops;
	size_t		nops;
	uint64		xid;
	MemoryContext caller;
	QcError		err;

	refuse_repeated();
	if (qlog_stage.nops == 0)
	{
		qlog_stage.closed = true;
		return;
	}
	qlog_gate_check();
	qlog_dedup_claim();
	if (qlog_wal_carry == QLOG_WAL_CARRY_ALL || moves_letters())
		(void) GetTopTransactionId();
	xid = U64FromFullTransactionId(GetTopFullTransactionIdIfAny());
	catalog_changed = changes_catalog();
	dropped = dropped_queues();
	ops = collect_ops(&dropped, &nops);
	qlog_stage.closed = true;
	if (nops == 0)
		return;
	plan = MemoryContextAlloc(qlog_stage_context(), sizeof(QcPlan));
	qc_error_clear(&err);
	if (qc_plan_build(plan, ops, nops, xid, entry_flags(xid),
					  (uint64) qlog_segment_size * 1024 * 1024, plan_alloc, NULL, &err) != QC_OK)
	{
		plan = NULL;
		qlog_report(ERROR, &err, "could not commit queue work");
	}
	plan->pid = (uint32) MyProcPid;
	qlog_dedup_attach(plan);
	create_logs(&dropped);
	caller = MemoryContextSwitchTo(qlog_stage_context());
	order = qlog_commit_order(plan);
	MemoryContextSwitchTo(caller);
	pin_leases();
	plan_begun = true;
	qlog_commit_pre(plan);
}

/* Forget everything. */
static void
end_transaction(void)
{
	plan = NULL;
	order = NULL;
	plan_begun = catalog_changed = false;
	leases = NULL;
	nleases = npinned = 0;
	qlog_dedup_forget();
	qlog_pushing_end();
	qlog_stage_reset();
}

/* Nothing may be raised: the transaction has committed, or the commit is what happens here. */
static void
commit(void)
{
	if (plan_begun)
		qlog_commit_event(plan, order);
	qlog_dedup_end(plan_begun);
	if (catalog_changed)
		pg_atomic_fetch_add_u32(&qlog_shared->catalog_generation, 1);
	qlog_hold_commit();
	end_transaction();
}

static void
rollback(void)
{
	if (plan_begun)
		qlog_commit_abort(plan);
	qlog_dedup_end(plan_begun && plan->seq != 0);
	if (order != NULL)
		qlog_submit_cancel(order);
	unpin_leases();
	abandon_logs();
	qlog_hold_abort(0);
	end_transaction();
}

static void
refuse_prepare(void)
{
	if (qlog_stage.nops > 0 || qlog_hold_count() > 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot PREPARE a transaction that has used queues"),
				 errdetail("The transaction has pushed, popped or acknowledged messages.")));
}

static void
on_transaction(XactEvent event, void *arg)
{
	(void) arg;
	if (qlog_shared == NULL)
		return;
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			pre_commit();
			break;
		case XACT_EVENT_COMMIT:
			commit();
			qlog_gone_follow();
			qlog_backup_follow();
			break;
		case XACT_EVENT_ABORT:
			rollback();
			qlog_gone_follow();
			qlog_backup_follow();
			break;
		case XACT_EVENT_PRE_PREPARE:
			refuse_prepare();
			break;
		case XACT_EVENT_PREPARE:
			end_transaction();
			break;
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PARALLEL_ABORT:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
			break;				/* workers call no function of ours */
	}
}

static void
on_subtransaction(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	(void) mine;
	(void) parent;
	(void) arg;
	if (event == SUBXACT_EVENT_COMMIT_SUB)
		qlog_stage_subcommit(GetCurrentTransactionNestLevel());
	else if (event == SUBXACT_EVENT_ABORT_SUB)
		qlog_stage_subabort(GetCurrentTransactionNestLevel());
}

void
qlog_xact_init(void)
{
	RegisterXactCallback(on_transaction, NULL);
	RegisterSubXactCallback(on_subtransaction, NULL);
}
