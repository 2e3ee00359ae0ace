/*
 * fn_queue.c
 *		queue_create, queue_drop, qlog_version.
 *
 * Creation and drop take effect at COMMIT, with the transaction's table changes.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "qlog_acl.h"
#include "qlog_lookup.h"
#include "qlog_namelock.h"
#include "qlog_options.h"
#include "qlog_shmem.h"

/* Arguments. */
enum
{
	ARG_QUEUE,
	ARG_OPTIONS,
	ARG_IF_NOT_EXISTS,
	ARG_IF_EXISTS = 1			/* of queue_drop */
};

PG_FUNCTION_INFO_V1(queue_create);
PG_FUNCTION_INFO_V1(queue_drop);
PG_FUNCTION_INFO_V1(qlog_version);

Datum
queue_create(PG_FUNCTION_ARGS)
{
	bool		if_not_exists = !PG_ARGISNULL(ARG_IF_NOT_EXISTS) &&
		PG_GETARG_BOOL(ARG_IF_NOT_EXISTS);
	QlogName	name;
	QlogQueue	queue;
	QcOptions	options;

	qlog_enter("queue_create()");
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	name = qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE));
	qc_options_default(&options);
	if (!PG_ARGISNULL(ARG_OPTIONS))
		qlog_options_parse(PG_GETARG_JSONB_P(ARG_OPTIONS), &options);
	qlog_acl_check_create(name);
	qlog_lock_name(name, ExclusiveLock);
	if (!qlog_queue_find(name, &queue))
	{
		qlog_create_queue(name, &options);
		PG_RETURN_BOOL(true);
	}
	if (!if_not_exists)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("queue \"%.*s\" already exists", QLOG_NAME(name))));
	PG_RETURN_BOOL(false);
}

/* The queue, which the current role may drop; false when it does not exist and need not. */
static bool
find_own(QlogName name, bool if_exists, QlogQueue *queue)
{
	if (qlog_queue_find(name, queue))
	{
		qlog_acl_check_owner(queue, name);
		return true;
	}
	if (!if_exists)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("queue \"%.*s\" does not exist", QLOG_NAME(name))));
	return false;
}

Datum
queue_drop(PG_FUNCTION_ARGS)
{
	bool		if_exists = !PG_ARGISNULL(ARG_IF_EXISTS) && PG_GETARG_BOOL(ARG_IF_EXISTS);
	QlogName	name;
	QlogQueue	queue;

	qlog_enter("queue_drop()");
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	name = qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE));

	/* Only who may drop it may wait for its lock; after the wait it may be another queue, or gone. */
	if (!find_own(name, if_exists, &queue))
		PG_RETURN_BOOL(false);
	qlog_lock_name(name, ExclusiveLock);
	if (!find_own(name, if_exists, &queue))
		PG_RETURN_BOOL(false);
	qlog_lock_queue(&queue);
	qlog_drop_queue(&queue, name);
	PG_RETURN_BOOL(true);
}

/* Also called by the extension script, so that CREATE EXTENSION fails where no function would work. */
Datum
qlog_version(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	if (qlog_shared == NULL)
		qlog_gate_check();
	qlog_encoding_check();
	PG_RETURN_TEXT_P(cstring_to_text(QLOG_VERSION));
}
