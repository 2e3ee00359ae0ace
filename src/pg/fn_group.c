/*
 * fn_group.c
 *		queue_subscribe, queue_unsubscribe, queue_seek: consumer groups, and where they stand.
 *
 * They take effect at COMMIT, with the table changes of the transaction: at the seq of its decision (core/qc_order.h), so
 * that every push is either before or after them.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "qlog_group.h"
#include "qlog_namelock.h"
#include "qlog_position.h"
#include "qlog_shmem.h"

#include "../core/qc_purge.h"

/* Arguments. */
enum
{
	ARG_QUEUE,
	ARG_CONSUMER_GROUP,
	ARG_START_AT,
	ARG_PARTITION = 2,			/* of queue_seek */
	ARG_TO_POSITION,
	ARG_TO_TIME,
	ARG_TO_END
};

PG_FUNCTION_INFO_V1(queue_subscribe);
PG_FUNCTION_INFO_V1(queue_unsubscribe);
PG_FUNCTION_INFO_V1(queue_seek);

/* A group of a queue, locked. */
typedef struct Subject
{
	QlogName	queue_name;
	QlogQueue	queue;
	QlogName	name;
	QlogGroupFound found;
	uint64		id;
} Subject;

/* Where a group shall stand. */
typedef struct Place
{
	uint8		start;			/* QC_START_* */
	int64		start_at;
} Place;

/* The first two arguments must be there, whatever the others are. */
static void
require_subject(FunctionCallInfo fcinfo)
{
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	qlog_require(fcinfo, ARG_CONSUMER_GROUP, "consumer_group");
}

/* Check the first two arguments, lock the group and look for it. */
static void
find_subject(FunctionCallInfo fcinfo, Subject *subject)
{
	subject->queue_name = qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE));
	subject->name = qlog_group_name(fcinfo, ARG_CONSUMER_GROUP);
	qlog_queue_get(subject->queue_name, QLOG_MANAGE, &subject->queue);

	/* Kept to the end of the transaction: the queue cannot be dropped before. */
	if (!subject->queue.own)
		qlog_queue_hold(&subject->queue, subject->queue_name);
	qlog_group_lock(subject->queue.id, subject->name);
	subject->found = qlog_group_find(&subject->queue, subject->name, &subject->id);
}

/* The messages pushed at this time or later. */
static Place
place_at_time(TimestampTz instant)
{
	if (TIMESTAMP_IS_NOBEGIN(instant))
		return (Place) {QC_START_OLDEST, 0};
	if (TIMESTAMP_IS_NOEND(instant))
		return (Place) {QC_START_NEW, 0};
	return (Place) {QC_START_TIME, qlog_unix_us(instant)};
}

static void
explain_start(void *unused)
{
	(void) unused;
	errhint("Argument \"start_at\" is \"new\", \"oldest\" or a timestamp.");
}

static TimestampTz
start_instant(char *text)
{
	ErrorContextCallback context = {.previous = error_context_stack, .callback = explain_start};
	Datum		instant;

	error_context_stack = &context;
	instant = DirectFunctionCall3(timestamptz_in, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid),
								  Int32GetDatum(-1));
	error_context_stack = context.previous;
	return DatumGetTimestampTz(instant);
}

/* 'new', 'oldest', or a timestamp. */
static Place
start_argument(FunctionCallInfo fcinfo)
{
	char	   *start;

	if (PG_ARGISNULL(ARG_START_AT))
		return (Place) {QC_START_NEW, 0};
	start = text_to_cstring(PG_GETARG_TEXT_PP(ARG_START_AT));
	if (strcmp(start, "new") == 0)
		return (Place) {QC_START_NEW, 0};
	if (strcmp(start, "oldest") == 0)
		return (Place) {QC_START_OLDEST, 0};
	return place_at_time(start_instant(start));
}

Datum
queue_subscribe(PG_FUNCTION_ARGS)
{
	Subject		subject;
	Place		place;
	QcGroupCreate create;

	qlog_enter("queue_subscribe()");
	require_subject(fcinfo);
	place = start_argument(fcinfo);
	find_subject(fcinfo, &subject);
	if (subject.found != QLOG_GROUP_MISSING)
		PG_RETURN_BOOL(false);
	qlog_group_check_room(&subject.queue, subject.queue_name);
	(void) GetCurrentTransactionId();
	create = (QcGroupCreate)
	{
		.group = qlog_group_take_id(&subject.queue), .queue = subject.queue.id,
		.start = place.start, .start_at = place.start_at
	};
	create.name.bytes = (const uint8_t *) subject.name.text;
	create.name.len = subject.name.len;
	qlog_stage_effect(subject.queue.id, QC_EFFECT_GROUP_CREATE, &create);
	qlog_stage_group(QLOG_GROUP_CREATED, subject.queue.id, create.group, true, subject.name);
	PG_RETURN_BOOL(true);
}

Datum
queue_unsubscribe(PG_FUNCTION_ARGS)
{
	Subject		subject;
	QcGroupDrop drop;

	qlog_enter("queue_unsubscribe()");
	require_subject(fcinfo);
	find_subject(fcinfo, &subject);
	if (subject.found == QLOG_GROUP_MISSING)
		PG_RETURN_BOOL(false);
	(void) GetCurrentTransactionId();
	drop = (QcGroupDrop)
	{
		.queue = subject.queue.id, .group = subject.id
	};
	qlog_stage_effect(subject.queue.id, QC_EFFECT_GROUP_DROP, &drop);
	qlog_stage_group(QLOG_GROUP_DROPPED, subject.queue.id, subject.id,
					 subject.found == QLOG_GROUP_OWN, subject.name);
	PG_RETURN_BOOL(true);
}

/* Exactly one of to_position, to_time and to_end. */
static Place
target_argument(FunctionCallInfo fcinfo)
{
	bool		to_end = !PG_ARGISNULL(ARG_TO_END) && PG_GETARG_BOOL(ARG_TO_END);
	int			n = !PG_ARGISNULL(ARG_TO_POSITION) + !PG_ARGISNULL(ARG_TO_TIME) + to_end;

	if (n != 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("queue_seek() needs exactly one of to_position, to_time and to_end"),
				 errdetail("%d of them are given.", n)));
	if (to_end)
		return (Place) {QC_START_NEW, 0};
	if (!PG_ARGISNULL(ARG_TO_TIME))
		return place_at_time(PG_GETARG_TIMESTAMPTZ(ARG_TO_TIME));
	if (PG_GETARG_INT64(ARG_TO_POSITION) < 0)
		qlog_arg_invalid("to_position", "It must not be negative.");
	if (PG_GETARG_INT64(ARG_TO_POSITION) == 0)
		return (Place) {QC_START_OLDEST, 0};
	return (Place) {QC_START_POSITION, PG_GETARG_INT64(ARG_TO_POSITION)};
}

/* The whole group begins anew elsewhere. */
static void
seek_group(const Subject *subject, const Place *place)
{
	QcSeek		seek = {.mode = QC_SEEK_GROUP, .queue = subject->queue.id, .group = subject->id,
		.successor = qlog_group_take_id(&subject->queue), .start = place->start,
		.start_at = place->start_at};

	qlog_stage_items(subject->queue.id, QC_EFFECT_SEEK, &seek, NULL, sizeof(QcSeekItem), 0);
	qlog_stage_group(QLOG_GROUP_SOUGHT, subject->queue.id, seek.successor,
					 subject->found == QLOG_GROUP_OWN, subject->name);
}

/* A partition of the queue with the positions that it has; 42704 when there is none of this name. */
static uint64
find_partition(const Subject *subject, QlogName name, uint64 *low, uint64 *high)
{
	const QlogQueue *queue = &subject->queue;
	QcQueue    *found;
	QcPartition *partition = NULL;
	uint64		id = 0;

	*low = *high = 0;
	if (queue->own)
		id = name.len == 0 ? queue->default_partition : qlog_stage_find_partition(queue->id, name);
	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	found = qc_queue_by_id(qlog_state, queue->id);
	if (found != NULL)
		partition = qc_partition_by_name(qlog_state, found, name.text, name.len);
	if (partition != NULL)
	{
		id = partition->id;
		*low = qc_partition_start(qlog_state, partition);
		*high = partition->next;
	}
	LWLockRelease(&qlog_shared->state_lock);
	if (id == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("queue \"%.*s\" has no partition \"%.*s\"",
						QLOG_NAME(subject->queue_name), QLOG_NAME(name))));
	return id;
}

/* The group stands elsewhere in one partition.	 What lies beyond its ends is brought to them when it takes effect. */
static void
seek_partition(const Subject *subject, QlogName name, const Place *place)
{
	QcSeek		seek = {.mode = QC_SEEK_SET, .queue = subject->queue.id, .group = subject->id};
	QcSeekItem	item = {0};
	uint64		low;
	uint64		high;

	item.partition = find_partition(subject, name, &low, &high);
	if (place->start == QC_START_TIME)
		item.position = qlog_position_at(item.partition, low, high, place->start_at);
	else
		item.position = place->start == QC_START_NEW ? PG_INT64_MAX : (uint64) place->start_at;
	qlog_stage_items(subject->queue.id, QC_EFFECT_SEEK, &seek, &item, sizeof(QcSeekItem), 1);
}

Datum
queue_seek(PG_FUNCTION_ARGS)
{
	Subject		subject;
	Place		place;

	qlog_enter("queue_seek()");
	require_subject(fcinfo);
	place = target_argument(fcinfo);
	find_subject(fcinfo, &subject);
	if (subject.found == QLOG_GROUP_MISSING)
		qlog_group_missing(subject.name);
	(void) GetCurrentTransactionId();
	if (PG_ARGISNULL(ARG_PARTITION))
		seek_group(&subject, &place);
	else
		seek_partition(&subject, qlog_partition_name(PG_GETARG_DATUM(ARG_PARTITION)), &place);
	PG_RETURN_VOID();
}
