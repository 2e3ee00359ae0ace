/*
 * fn_alter.c
 *		queue_set, queue_reset, queue_rename, queue_pause, queue_resume, queue_owner: changes of a queue that take effect at
 *		COMMIT.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#include "qlog_alter.h"
#include "qlog_compat.h"
#include "qlog_namelock.h"
#include "qlog_options.h"

/* Arguments behind the queue. */
enum
{
	ARG_QUEUE,
	ARG_OPTION,
	ARG_VALUE,
	ARG_NEW_NAME = 1,
	ARG_SIDE = 1,
	ARG_NEW_OWNER = 1
};

PG_FUNCTION_INFO_V1(queue_set);
PG_FUNCTION_INFO_V1(queue_reset);
PG_FUNCTION_INFO_V1(queue_rename);
PG_FUNCTION_INFO_V1(queue_pause);
PG_FUNCTION_INFO_V1(queue_resume);
PG_FUNCTION_INFO_V1(queue_owner);

Datum
queue_set(PG_FUNCTION_ARGS)
{
	QlogName	name;
	QlogQueue	queue;

	qlog_enter("queue_set()");
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	qlog_require(fcinfo, ARG_OPTION, "option");
	qlog_require(fcinfo, ARG_VALUE, "value");
	name = qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE));
	qlog_alter_begin(name, false, ShareUpdateExclusiveLock, &queue);
	qlog_options_set(&queue.options, TextDatumGetCString(PG_GETARG_DATUM(ARG_OPTION)),
					 TextDatumGetCString(PG_GETARG_DATUM(ARG_VALUE)));
	qlog_alter_stage(&queue, name);
	PG_RETURN_VOID();
}

Datum
queue_reset(PG_FUNCTION_ARGS)
{
	QlogName	name;
	QlogQueue	queue;

	qlog_enter("queue_reset()");
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	qlog_require(fcinfo, ARG_OPTION, "option");
	name = qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE));
	qlog_alter_begin(name, false, ShareUpdateExclusiveLock, &queue);
	qlog_options_reset(&queue.options, TextDatumGetCString(PG_GETARG_DATUM(ARG_OPTION)));
	qlog_alter_stage(&queue, name);
	PG_RETURN_VOID();
}

Datum
queue_rename(PG_FUNCTION_ARGS)
{
	QlogName	name;
	QlogName	new_name;
	QlogQueue	queue;
	QlogQueue	other;

	qlog_enter("queue_rename()");
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	qlog_require(fcinfo, ARG_NEW_NAME, "new_name");
	name = qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE));
	new_name = qlog_queue_name(PG_GETARG_DATUM(ARG_NEW_NAME));
	qlog_alter_begin(name, true, ExclusiveLock, &queue);
	qlog_lock_name(new_name, ExclusiveLock);
	if (qlog_queue_find(new_name, &other))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("queue \"%.*s\" already exists", QLOG_NAME(new_name))));
	qlog_alter_rename(&queue, name, new_name);
	PG_RETURN_VOID();
}

/* Flags of the side that an argument names. */
static uint8
side_flags(FunctionCallInfo fcinfo)
{
	char	   *side = PG_ARGISNULL(ARG_SIDE) ? "both" :
		TextDatumGetCString(PG_GETARG_DATUM(ARG_SIDE));

	if (pg_strcasecmp(side, "push") == 0)
		return QC_QUEUE_NO_PUSH;
	if (pg_strcasecmp(side, "pop") == 0)
		return QC_QUEUE_NO_POP;
	if (pg_strcasecmp(side, "both") != 0)
		qlog_arg_invalid("side", "It must be \"push\", \"pop\" or \"both\".");
	return QC_QUEUE_NO_PUSH | QC_QUEUE_NO_POP;
}

/* Pause a side of the queue, or let it go on. */
static void
pause_queue(FunctionCallInfo fcinfo, bool pause)
{
	uint8		flags;
	QlogName	name;
	QlogQueue	queue;

	qlog_enter(pause ? "queue_pause()" : "queue_resume()");
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	flags = side_flags(fcinfo);
	name = qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE));
	qlog_alter_begin(name, false, ShareUpdateExclusiveLock, &queue);
	if (pause)
		queue.flags |= flags;
	else
		queue.flags &= (uint8) ~flags;
	qlog_alter_stage(&queue, name);
}

Datum
queue_pause(PG_FUNCTION_ARGS)
{
	pause_queue(fcinfo, true);
	PG_RETURN_VOID();
}

Datum
queue_resume(PG_FUNCTION_ARGS)
{
	pause_queue(fcinfo, false);
	PG_RETURN_VOID();
}

Datum
queue_owner(PG_FUNCTION_ARGS)
{
	Oid			owner;
	QlogName	name;
	QlogQueue	queue;

	qlog_enter("queue_owner()");
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	qlog_require(fcinfo, ARG_NEW_OWNER, "new_owner");
	owner = PG_GETARG_OID(ARG_NEW_OWNER);
	if (!OidIsValid(owner))
		qlog_arg_invalid("new_owner", "PUBLIC cannot own a queue.");
	name = qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE));
	qlog_alter_begin(name, true, ShareUpdateExclusiveLock, &queue);
	if (queue.owner == owner)
		PG_RETURN_VOID();
	qlog_check_may_set_role(owner);
	if (!superuser() && !qlog_may_create_in_database(MyDatabaseId, owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("role \"%s\" cannot own queue \"%.*s\"", GetUserNameFromId(owner, false),
						QLOG_NAME(name)),
				 errdetail("The new owner needs the CREATE privilege on the database.")));
	qlog_alter_owner(&queue, owner);
	qlog_alter_stage(&queue, name);
	PG_RETURN_VOID();
}
