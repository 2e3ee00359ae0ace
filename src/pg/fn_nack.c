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
#include "qlog_lease.h"

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

	/* renew */
	QcRenew		renew;
} Answer;

/* The lease when it can be answered now.  State lock. */
static QcLease *
answerable(Answer *answer)
{
	QcLease    *lease = qc_lease_by_id(qlog_state, answer->lease);

	if (lease == NULL || !qlog_lease_mine(lease, (uint32) MyProcPid))
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

Datum
queue_nack(PG_FUNCTION_ARGS)
{
	Answer		answer = {0};
	QlogLease	lease;

	qlog_enter("queue_nack()");
	qlog_require(fcinfo, ARG_LEASE_ID, "lease_id");
	answer.nack.delay_us = QC_DELAY_RULE;
	if (!PG_ARGISNULL(ARG_RETRY_AFTER))
		answer.nack.delay_us = (uint64) qlog_interval_us(PG_GETARG_INTERVAL_P(ARG_RETRY_AFTER),
														 "retry_after", 0, 365 * QC_DAY);
	if (!PG_ARGISNULL(ARG_REASON))
		answer.nack.reason = qlog_reason(PG_GETARG_DATUM(ARG_REASON));
	answer.lease = answer.nack.lease = qlog_lease_id(PG_GETARG_DATUM(ARG_LEASE_ID));
	if (!qlog_lease_look(answer.lease, !PG_ARGISNULL(ARG_MESSAGE_IDS) &&
						 !qlog_lease_remembered(answer.lease), &lease))
		PG_RETURN_INT64(0);
	qlog_lease_select(&lease, !PG_ARGISNULL(ARG_MESSAGE_IDS), PG_GETARG_DATUM(ARG_MESSAGE_IDS));
	if (lease.nspots == 0)
		PG_RETURN_INT64(0);
	answer.ranges = qlog_lease_ranges(&lease, &answer.nranges);
	if (!submit(&answer, qc_effect_size(QC_EFFECT_NACK, &answer.nack, answer.nranges), choose_nack))
		PG_RETURN_INT64(0);
	PG_RETURN_INT64(answer.nslots);
}

Datum
queue_renew(PG_FUNCTION_ARGS)
{
	Answer		answer = {0};
	QlogLease	lease;
	int64		lease_us;

	qlog_enter("queue_renew()");
	qlog_require(fcinfo, ARG_LEASE_ID, "lease_id");
	answer.lease = answer.renew.lease = qlog_lease_id(PG_GETARG_DATUM(ARG_LEASE_ID));
	if (!qlog_lease_look(answer.lease, false, &lease))
		PG_RETURN_NULL();
	lease_us = lease.queue.options.value[QC_OPT_LEASE];
	if (!PG_ARGISNULL(ARG_LEASE))
		lease_us = qlog_lease_us(PG_GETARG_INTERVAL_P(ARG_LEASE));
	answer.renew.lease_us = (uint64) lease_us;
	if (!submit(&answer, qc_effect_size(QC_EFFECT_RENEW, &answer.renew, 0), choose_renew))
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(qlog_timestamptz(answer.at + lease_us));
}
