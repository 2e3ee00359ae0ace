/*
 * fn_ack.c
 *		queue_ack, queue_reject: answers that take effect when the transaction commits.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"

#include "qlog_lease.h"
#include "qlog_lookup.h"

/* Arguments. */
enum
{
	ARG_LEASE_ID,
	ARG_MESSAGE_IDS,
	ARG_REASON					/* of queue_reject */
};

PG_FUNCTION_INFO_V1(queue_ack);
PG_FUNCTION_INFO_V1(queue_reject);

Datum
queue_ack(PG_FUNCTION_ARGS)
{
	qlog_enter("queue_ack()");
	qlog_require(fcinfo, ARG_LEASE_ID, "lease_id");
	PG_RETURN_INT64(qlog_lease_ack(qlog_lease_id(PG_GETARG_DATUM(ARG_LEASE_ID)),
								   !PG_ARGISNULL(ARG_MESSAGE_IDS),
								   PG_GETARG_DATUM(ARG_MESSAGE_IDS)));
}

/* The copy that goes to the dead lane is the message as it is, id included. */
static void
reject_message(const QlogLease *lease, const QlogSpot *spot, const QlogTarget *lane, QcStr reason)
{
	QcDead		dead = {.lease = lease->id, .group = lease->group, .partition = spot->partition,
		.position = spot->position, .attempt = spot->attempt, .lane = lane->partition,
		.cause = QC_DEAD_REJECTED, .reason = reason};
	QcMessage	message;
	int64_t		created_at;

	qlog_fetch(spot, &message, &created_at);
	qlog_stage_dead(&dead, lane, &message);
}

Datum
queue_reject(PG_FUNCTION_ARGS)
{
	QcStr		reason = {NULL, 0};
	QlogLease	lease;
	QlogTarget	lane;

	qlog_enter("queue_reject()");
	qlog_require(fcinfo, ARG_LEASE_ID, "lease_id");
	if (!PG_ARGISNULL(ARG_REASON))
		reason = qlog_reason(PG_GETARG_DATUM(ARG_REASON));
	if (!qlog_lease_look(qlog_lease_id(PG_GETARG_DATUM(ARG_LEASE_ID)), true, &lease))
		PG_RETURN_INT64(0);
	qlog_lease_select(&lease, !PG_ARGISNULL(ARG_MESSAGE_IDS), PG_GETARG_DATUM(ARG_MESSAGE_IDS));
	if (lease.nspots == 0)
		PG_RETURN_INT64(0);
	qlog_dead_lane(&lease.queue, lease.queue_name, &lane);
	for (uint32 i = 0; i < lease.nspots; i++)
	{
		CHECK_FOR_INTERRUPTS();
		reject_message(&lease, &lease.spots[i], &lane, reason);
	}
	PG_RETURN_INT64(lease.nspots);
}
