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

#include "qlog_group.h"
#include "qlog_hold.h"
#include "qlog_lookup.h"
#include "qlog_wait.h"

#include "../core/qc_group.h"

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
	QlogQueue	queue;
	char		queue_name[QLOG_NAME_MAX];
	char		group_name[QLOG_NAME_MAX];
	QlogName	name;
	QlogName	group;

	/* out */
	bool		dropped;
	bool		no_group;
	bool		unscanned;		/* the group must look at partitions first */
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
	queue = qc_queue_by_id(qlog_state, wait->queue.id);
	wait->dropped = queue == NULL || queue->state == QC_QUEUE_DEAD;
	if (!wait->dropped)
		group = qc_group_by_name(qlog_state, queue, wait->group.text, wait->group.len);
	wait->no_group = !wait->dropped && group == NULL;
	wait->unscanned = group != NULL && group->ready.head == 0 && qc_group_scanning(group);
	if (group != NULL && !wait->unscanned)
		found = qc_wait_tell(qlog_state, qlog_process(), group, qlog_monotonic());
	if (only && !found)
		qc_wait_end(qlog_state, qlog_process());
	qlog_unlock_state();
	return found;
}

/* As look, for a group that is there and has looked at every partition, unless it has found something in one. */
static bool
make_and_look(Wait *wait, bool only)
{
	while (!look(wait, only))
	{
		CHECK_FOR_INTERRUPTS();
		if (wait->no_group)
			qlog_group_make(&wait->queue, wait->name, wait->group);
		else if (wait->unscanned)
			qlog_group_look(&wait->queue, wait->group, NULL);
		else
			return false;
	}
	return true;
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

			if (make_and_look(wait, !in_time) || wait->dropped || !in_time)
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
	Wait		wait = {0};
	int64		wait_us = WAIT_DEFAULT;

	qlog_enter("queue_wait()");
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	wait.group = qlog_group_name(fcinfo, ARG_CONSUMER_GROUP);
	if (!PG_ARGISNULL(ARG_WAIT))
		wait_us = qlog_interval_us(PG_GETARG_INTERVAL_P(ARG_WAIT), "wait", 0, 365 * QC_DAY);
	check_transaction(fcinfo);
	wait.name = qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE));
	qlog_queue_get(wait.name, QLOG_POP, &wait.queue);

	/* The arguments do not outlive the transaction. */
	memcpy(wait.queue_name, wait.name.text, wait.name.len);
	memcpy(wait.group_name, wait.group.text, wait.group.len);
	wait.name.text = wait.queue_name;
	wait.group.text = wait.group_name;
	wait.queue.acl = NULL;
	give_back();
	wait_for_message(&wait, wait_us);
	if (wait.dropped)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("queue \"%.*s\" was dropped", QLOG_NAME(wait.name))));
	PG_RETURN_VOID();
}
