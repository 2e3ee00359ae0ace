/*
 * fn_ack.c
 *		queue_ack, queue_reject: answers that take effect when the transaction commits.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"

#include "qlog_death.h"
#include "qlog_lease.h"
#include "qlog_lookup.h"
#include "qlog_report.h"
#include "qlog_partition.h"
#include "qlog_shmem.h"

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
								   qlog_ids_given(fcinfo, ARG_MESSAGE_IDS),
								   PG_GETARG_DATUM(ARG_MESSAGE_IDS)));
}

/* What a reject is about. */
typedef struct Reject
{
	QlogLease	lease;
	QlogTarget	lane;			/* partition 0 = dead_letters is off: dropped */
	bool		said;			/* the consumer gave a reason */
	QcStr		reason;
} Reject;

/* Name of a message's partition; it lives as long as the lease does. */
static QlogName
partition_of(const QlogSpot *spot, char name[QLOG_NAME_MAX])
{
	QlogName	result = {name, 0};
	QcPartition *partition;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	partition = qc_partition_by_id(qlog_state, spot->partition);
	if (partition != NULL)
	{
		result.len = partition->name_len;
		memcpy(name, qc_name_at(qlog_state, partition->name), partition->name_len);
	}
	LWLockRelease(&qlog_shared->state_lock);
	return result;
}

/*
 * The letter is the message as it is, id included, with where it comes from and why it died.	 One that cannot be read, not
 * any more, is rejected like the others.
 */
static void
reject_message(const Reject *reject, const QlogSpot *spot)
{
	QcDead		dead = {.lease = reject->lease.id, .group = reject->lease.group,
		.partition = spot->partition, .position = spot->position, .attempt = spot->attempt,
		.lane = reject->lane.partition, .cause = QC_DEAD_REJECTED, .reason = reject->reason};
	QcMessage	message;
	int64_t		created_at;
	char		name[QLOG_NAME_MAX];
	QcError		err;

	if (reject->lane.partition == 0)
	{
		qlog_stage_drop(&dead);
		return;
	}
	if (qlog_fetch_try(spot, &message, &created_at, &err) == QC_OK)
		qlog_dead_frame(&message, partition_of(spot, name), reject->said ? reject->reason :
						qlog_dead_reason(QC_DEAD_REJECTED));
	else if (qlog_fetch_lost(err.code))
	{
		qlog_dead_lost(&message, partition_of(spot, name), &err);
		dead.cause = QC_DEAD_UNREADABLE;
	}
	else
		qlog_report(ERROR, &err, "could not read a message");
	qlog_stage_dead(&dead, &reject->lane, &message);
}

/* The lane of the lease's group, when its queue keeps dead letters.  false = queue or group have changed meanwhile. */
static bool
find_lane(Reject *reject)
{
	const QlogLease *lease = &reject->lease;

	reject->lane.queue = lease->queue.id;
	reject->lane.log = lease->queue.log;
	reject->lane.level = qlog_queue_level(&lease->queue);
	reject->lane.partition = 0;
	reject->lane.dedup_us = 0;
	return lease->queue.options.value[QC_OPT_DEAD_LETTERS] == 0 ||
		qlog_dead_lane(MyDatabaseId, lease->queue.id, lease->queue_name, lease->group, true,
					   &reject->lane.partition);
}

Datum
queue_reject(PG_FUNCTION_ARGS)
{
	Reject		reject = {.said = !PG_ARGISNULL(ARG_REASON)};
	QlogLease  *lease = &reject.lease;
	bool		by_id;

	qlog_enter("queue_reject()");
	qlog_require(fcinfo, ARG_LEASE_ID, "lease_id");
	by_id = qlog_ids_given(fcinfo, ARG_MESSAGE_IDS);
	if (reject.said)
		reject.reason = qlog_reason(PG_GETARG_DATUM(ARG_REASON));
	do
	{
		CHECK_FOR_INTERRUPTS();
		if (!qlog_lease_look(qlog_lease_id(PG_GETARG_DATUM(ARG_LEASE_ID)), true, lease))
			PG_RETURN_INT64(0);
		qlog_lease_select(lease, by_id, PG_GETARG_DATUM(ARG_MESSAGE_IDS));
		if (lease->nspots == 0)
			PG_RETURN_INT64(0);
	} while (!find_lane(&reject));
	for (uint32 i = 0; i < lease->nspots; i++)
	{
		CHECK_FOR_INTERRUPTS();
		reject_message(&reject, &lease->spots[i]);
	}
	PG_RETURN_INT64(lease->nspots);
}
