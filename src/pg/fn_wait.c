/*
 * fn_wait.c
 *		CALL queue_wait: sleep until a pop would find something, holding nothing.
 *
 * A function cannot give the snapshot of its caller's statement back; a procedure can, by ending the transaction, as COMMIT
 * in a procedure does.	 So it refuses to be called where that is not possible, or would commit somebody's work.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "qlog_hold.h"
#include "qlog_lookup.h"
#include "qlog_wait.h"

/* Arguments. */
enum
{
	ARG_QUEUE,
	ARG_WAIT,
	ARG_CONSUMER_GROUP
};

#define WAIT_DEFAULT (30 * USECS_PER_SEC)

PG_FUNCTION_INFO_V1(queue_wait);

typedef struct Wait
{
	uint64		queue;
	uint64		group;
	bool		dropped;		/* out */
} Wait;

/* The transaction must be this call's own. */
static void
check_transaction(FunctionCallInfo fcinfo)
{
	const char *detail = "It gives its snapshot back by ending the transaction.";

	/* A subtransaction passes for a transaction block. */
	if (IsTransactionBlock() && !IsSubTransaction())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("queue_wait() cannot run inside a transaction block"),
				 errdetail_internal("%s", detail)));
	if (IsSubTransaction() || fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		castNode(CallContext, fcinfo->context)->atomic)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
				 errmsg("queue_wait() cannot be called here"),
				 errdetail_internal("%s", detail),
				 errhint("Call it by itself, or from a procedure or DO block that may use COMMIT.")));
	if (TransactionIdIsValid(GetTopTransactionIdIfAny()) || qlog_stage.nops > 0 ||
		qlog_hold_count() > 0)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("queue_wait() cannot run in a transaction that has changed something"),
				 errdetail_internal("%s", detail),
				 errhint("COMMIT before the call.")));
}

/* End the transaction, and with it its snapshots and locks; begin one that has none. */
static void
give_back(void)
{
	(void) SPI_connect_ext(SPI_OPT_NONATOMIC);
	SPI_commit();
	(void) SPI_finish();
	InvalidateCatalogSnapshot();
	if (HaveRegisteredOrActiveSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("queue_wait() cannot run while a statement around it holds a snapshot")));
}

/* Would a pop find something?	Otherwise this process is listed, unless it only looks. */
static bool
look(Wait *wait, bool only)
{
	QcQueue    *queue;
	QcGroup    *group = NULL;
	bool		found = false;

	qlog_lock_state();
	queue = qc_queue_by_id(qlog_state, wait->queue);
	if (queue != NULL && queue->state != QC_QUEUE_DEAD)
		group = qc_group_by_id(qlog_state, queue, wait->group);
	if (group != NULL)
		found = qc_wait_tell(qlog_state, qlog_process(), group, qlog_monotonic());
	if (only && !found)
		qc_wait_end(qlog_state, qlog_process());
	qlog_unlock_state();
	wait->dropped = group == NULL;
	return found;
}

/* Sleep until a pop would find something, the queue has gone, or the time is over. */
static void
wait_for_message(Wait *wait, int64 wait_us)
{
	int64		deadline = qlog_wait_begin(wait_us);

	PG_TRY();
	{
		for (;;)
		{
			bool		in_time = qlog_monotonic() < deadline;

			if (look(wait, !in_time) || wait->dropped || !in_time)
				break;
			(void) qlog_wait_sleep(deadline);
		}
	}
	PG_CATCH();
	{
		qlog_wait_stop();
		PG_RE_THROW();
	}
	PG_END_TRY();
}

Datum
queue_wait(PG_FUNCTION_ARGS)
{
	Wait		wait = {.group = QC_DEFAULT_GROUP};
	int64		wait_us = WAIT_DEFAULT;
	char		name[QLOG_NAME_MAX];
	QlogName	given;
	QlogQueue	queue;

	qlog_enter("queue_wait()");
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	qlog_refuse_group(fcinfo, ARG_CONSUMER_GROUP);
	if (!PG_ARGISNULL(ARG_WAIT))
		wait_us = qlog_interval_us(PG_GETARG_INTERVAL_P(ARG_WAIT), "wait", 0, 365 * QC_DAY);
	check_transaction(fcinfo);
	given = qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE));
	qlog_queue_get(given, QLOG_POP, &queue);
	memcpy(name, given.text, given.len);
	wait.queue = queue.id;
	give_back();
	wait_for_message(&wait, wait_us);
	if (wait.dropped)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("queue \"%.*s\" was dropped", (int) given.len, name)));
	PG_RETURN_VOID();
}
