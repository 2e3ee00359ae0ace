/*
 * fn_nack.c
 *		queue_nack, queue_renew: answers that take effect at once, and stay when the transaction rolls back.
 *
 * Each is an entry of its own; the lease is checked again under the same hold of the state lock that reserves it.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "qlog_commit.h"
#include "qlog_death.h"
#include "qlog_guc.h"
#include "qlog_lease.h"
#include "qlog_lookup.h"
#include "qlog_partition.h"
#include "qlog_shmem.h"

/* Arguments. */
enum
{
	ARG_LEASE_ID,
	ARG_MESSAGE_IDS,
	ARG_RETRY_AFTER,
	ARG_REASON,
	ARG_LEASE = 1				/* of queue_renew */
};

PG_FUNCTION_INFO_V1(queue_nack);
PG_FUNCTION_INFO_V1(queue_renew);

/* One answer on its way. */
typedef struct Answer
{
	uint64		lease;
	bool		pinned;			/* out: somebody's commit acknowledges from it */
	uint32		nslots;			/* out: of the lease, before; then how many it has lost */
	int64		at;				/* out: the entry's time */

	/* nack */
	QcNack		nack;
	const QcAckItem *ranges;
	uint32		nranges;
	uint32		held;			/* messages of the lease when it was looked at */
	bool		ordered;		/* option of the queue then */
	QlogDeaths *deaths;			/* those that have come back once too often; NULL = none */

	/* renew */
	QcRenew		renew;
} Answer;

/* The lease when it can be answered now.  State lock. */
static QcLease *
answerable(Answer *answer)
{
	QcLease    *lease = qc_lease_by_id(qlog_state, answer->lease);

	if (lease == NULL || lease->nslots == 0 || !qlog_lease_mine(lease, (uint32) MyProcPid))
		return NULL;
	answer->pinned = lease->pin_seq != 0;
	answer->nslots = lease->nslots;
	return answer->pinned ? NULL : lease;
}

static bool
choose_nack(void *context, QcSmallPlan *small)
{
	Answer	   *answer = context;
	QcWriter	w;

	if (answerable(answer) == NULL)
		return false;
	w = qc_plan_small_writer(small);
	qc_effect_put(&w, QC_EFFECT_NACK, &answer->nack, answer->nranges);
	for (uint32 i = 0; i < answer->nranges; i++)
	{
		QcPartition *partition = qc_partition_by_id(qlog_state, answer->ranges[i].partition);
		QcNackItem	item = {.partition = answer->ranges[i].partition,
			.first = answer->ranges[i].first, .count = answer->ranges[i].count};

		/* In order: nothing behind a message that comes again may stay with the consumer. */
		if (partition != NULL && qc_partition_ordered(qlog_state, partition))
			item.count = QC_NACK_REST;
		qc_effect_put_item(&w, QC_EFFECT_NACK, &item);
	}
	qc_plan_small_done(small, &w, 1);
	return true;
}

static bool
choose_renew(void *context, QcSmallPlan *small)
{
	Answer	   *answer = context;
	QcWriter	w;

	if (answerable(answer) == NULL)
		return false;
	w = qc_plan_small_writer(small);
	qc_effect_put(&w, QC_EFFECT_RENEW, &answer->renew, 0);
	qc_plan_small_done(small, &w, 1);
	return true;
}

static void
done(void *context, const QcPlan *plan)
{
	Answer	   *answer = context;
	QcLease    *lease = qc_lease_by_id(qlog_state, answer->lease);

	answer->at = plan->created_at;
	answer->nslots -= lease == NULL ? 0 : lease->nslots;
}

/* Log the answer and write it out.	 false = the lease is gone. */
static bool
submit(Answer *answer, size_t effect_size, QlogChoose choose)
{
	QcSmallPlan *small = palloc(sizeof(QcSmallPlan));
	uint64		seq;

	qc_plan_small(small, MemoryContextAllocHuge(CurrentMemoryContext, QC_SMALL_BUFFER(effect_size)),
				  effect_size);
	small->plan.pid = (uint32) MyProcPid;
	seq = qlog_submit(small, choose, done, answer);
	if (answer->pinned)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("lease " INT64_FORMAT " is being acknowledged by another transaction",
						(int64) answer->lease)));
	if (seq == 0)
		return false;
	qlog_write(seq);
	return true;
}

/* Is the partition delivered in order, as far as the lease's queue was known then? */
static bool
is_ordered(const Answer *answer, const QlogLease *lease, uint64 partition)
{
	return answer->ordered || partition != lease->queue.default_partition;
}

/*
 * Note the messages of which this was one attempt too many.	In an ordered partition only the lowest one is charged.
 * State lock.
 */
static void
note_deaths(Answer *answer, const QlogLease *lease)
{
	QcQueue    *queue = qc_queue_by_id(qlog_state, lease->queue.id);
	QcGroup    *group = queue == NULL ? NULL : qc_group_by_id(qlog_state, queue, lease->group);
	uint64		last = 0;

	if (group == NULL)
		return;
	answer->ordered = queue->options.value[QC_OPT_ORDERED] != 0;
	qlog_deaths_begin(answer->deaths, queue, group);
	for (uint32 i = 0; i < lease->nspots && answer->deaths->n < QLOG_DEATHS_MAX; i++)
	{
		const QlogSpot *spot = &lease->spots[i];
		QcPartition *partition = qc_partition_by_id(qlog_state, spot->partition);
		bool		behind = spot->partition == last && is_ordered(answer, lease, last);
		QcRef		hint = 0;

		last = spot->partition;

		if (partition != NULL && !behind && qc_queue_exhausted(queue, spot->attempt))
			qlog_deaths_add(answer->deaths, partition, spot->position, spot->attempt,
							QC_DEAD_NACKED, &hint);
	}
}

/* QlogCheck: is the lease as it was looked at, and can what was noted die?	State lock. */
static bool
still_answerable(void *context)
{
	Answer	   *answer = context;
	const QcQueue *queue = qc_queue_by_id(qlog_state, answer->deaths->queue);

	if (answerable(answer) == NULL || answer->nslots != answer->held ||
		!qlog_deaths_hold(answer->deaths) ||
		(queue->options.value[QC_OPT_ORDERED] != 0) != answer->ordered)
		return false;
	for (uint32 i = 0; i < answer->deaths->n; i++)
	{
		if (!qc_queue_exhausted(queue, answer->deaths->dying[i].spot.attempt))
			return false;
	}
	return true;
}

/* The nack as the first operation of an entry. */
static void
put_nack(const Answer *answer, const QlogLease *lease, QcOp *op)
{
	size_t		size = qc_effect_size(QC_EFFECT_NACK, &answer->nack, answer->nranges);
	uint8	   *bytes = MemoryContextAllocHuge(CurrentMemoryContext, size);
	QcWriter	w;

	qc_writer_init(&w, bytes, size);
	qc_effect_put(&w, QC_EFFECT_NACK, &answer->nack, answer->nranges);
	for (uint32 i = 0; i < answer->nranges; i++)
	{
		const QcAckItem *range = &answer->ranges[i];
		QcNackItem	item = {.partition = range->partition, .first = range->first,
			.count = is_ordered(answer, lease, range->partition) ? QC_NACK_REST : range->count};

		qc_effect_put_item(&w, QC_EFFECT_NACK, &item);
	}
	*op = (QcOp)
	{
		.kind = QC_OP_EFFECT, .effect = bytes, .effect_len = size
	};
}

static void *
plan_alloc(void *context, size_t size)
{
	return MemoryContextAllocExtended(context, size, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
}

/*
 * Is there a lane for the letters, if they are kept?  The first one of a group makes it, unless that could fail for lack of
 * something: giving messages back must not fail for that.
 */
static bool
have_lane(QlogDeaths *deaths, const QlogLease *lease)
{
	bool		room;

	if (!deaths->keep || deaths->lane != 0)
		return true;
	qlog_lock_state();
	room = qc_mem_reserve(&qlog_state->mem, QC_CLASS_PARTITION, 1, QC_URGENCY_ADDS);
	if (room)
		qc_mem_unreserve(&qlog_state->mem, QC_CLASS_PARTITION, 1);
	qlog_unlock_state();
	return room && pg_atomic_read_u32(&qlog_shared->store_full) == 0 &&
		qlog_dead_lane(MyDatabaseId, deaths->queue, lease->queue_name, deaths->group, false,
					   &deaths->lane);
}

/*
 * Give the messages back and send those to the dead letters that have come back too often, in one entry, with the reason
 * that the consumer gives.	false = there are none, or it cannot be done here and now: then they are only given back,
 * and the timer worker sends them.
 */
static bool
nack_with_deaths(Answer *answer, const QlogLease *lease)
{
	QcOp	   *ops = palloc((QLOG_DEATHS_MAX + 1) * sizeof(QcOp));
	QcPlan	   *plan = palloc(sizeof(QcPlan));
	QcError		err;

	answer->deaths = palloc(sizeof(QlogDeaths));
	answer->deaths->n = 0;
	qlog_lock_state();
	note_deaths(answer, lease);
	qlog_unlock_state();
	if (answer->deaths->n == 0 || !have_lane(answer->deaths, lease))
		return false;
	answer->deaths->reason = answer->nack.reason;
	put_nack(answer, lease, &ops[0]);
	if (qlog_deaths_ops(answer->deaths, ops + 1, &err) != QC_OK ||
		qc_plan_build(plan, ops, answer->deaths->n + 1, 0, 0, qlog_segment_bytes(), plan_alloc,
					  CurrentMemoryContext, &err) != QC_OK)
		return false;
	plan->immediate = true;
	plan->pid = (uint32) MyProcPid;
	if (qlog_try_plan(plan, still_answerable, done, answer, &err) != QC_OK || plan->seq == 0)
		return false;
	qlog_write(plan->seq);
	return true;
}

Datum
queue_nack(PG_FUNCTION_ARGS)
{
	Answer		answer = {0};
	QlogLease	lease;
	bool		by_id;

	qlog_enter("queue_nack()");
	qlog_require(fcinfo, ARG_LEASE_ID, "lease_id");
	by_id = qlog_ids_given(fcinfo, ARG_MESSAGE_IDS);
	answer.nack.delay_us = QC_DELAY_RULE;
	if (!PG_ARGISNULL(ARG_RETRY_AFTER))
		answer.nack.delay_us = (uint64) qlog_interval_us(PG_GETARG_INTERVAL_P(ARG_RETRY_AFTER),
														 "retry_after", 0, 365 * QC_DAY);
	if (!PG_ARGISNULL(ARG_REASON))
		answer.nack.reason = qlog_reason(PG_GETARG_DATUM(ARG_REASON));
	answer.lease = answer.nack.lease = qlog_lease_id(PG_GETARG_DATUM(ARG_LEASE_ID));
	if (!qlog_lease_look(answer.lease, by_id && !qlog_lease_remembered(answer.lease), &lease))
		PG_RETURN_INT64(0);
	answer.held = lease.nspots;
	qlog_lease_select(&lease, by_id, PG_GETARG_DATUM(ARG_MESSAGE_IDS));
	if (lease.nspots == 0)
		PG_RETURN_INT64(0);
	answer.ranges = qlog_lease_ranges(&lease, &answer.nranges);
	if (nack_with_deaths(&answer, &lease))
		PG_RETURN_INT64(answer.nslots);
	if (!submit(&answer, qc_effect_size(QC_EFFECT_NACK, &answer.nack, answer.nranges), choose_nack))
		PG_RETURN_INT64(0);
	PG_RETURN_INT64(answer.nslots);
}

Datum
queue_renew(PG_FUNCTION_ARGS)
{
	Answer		answer = {0};
	QlogLease	lease;
	int64		lease_us = 0;

	qlog_enter("queue_renew()");
	qlog_require(fcinfo, ARG_LEASE_ID, "lease_id");
	if (!PG_ARGISNULL(ARG_LEASE))
		lease_us = qlog_lease_us(PG_GETARG_INTERVAL_P(ARG_LEASE));
	answer.lease = answer.renew.lease = qlog_lease_id(PG_GETARG_DATUM(ARG_LEASE_ID));
	if (!qlog_lease_look(answer.lease, false, &lease))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(ARG_LEASE))
		lease_us = lease.queue.options.value[QC_OPT_LEASE];
	answer.renew.lease_us = (uint64) lease_us;
	if (!submit(&answer, qc_effect_size(QC_EFFECT_RENEW, &answer.renew, 0), choose_renew))
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(qlog_timestamptz(answer.at + lease_us));
}
