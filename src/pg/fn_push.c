/*
 * fn_push.c
 *		queue_push for the four payload types.
 *
 * Hot path: no catalog look-up besides the owner's membership, one copy of the payload (into its frame), JSON is only
 * lexed and parsed, never built.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/uuid.h"

#include "qlog_lookup.h"
#include "qlog_message.h"
#include "qlog_partition.h"

/* Arguments of queue_push. */
enum
{
	ARG_QUEUE,
	ARG_PAYLOAD,
	ARG_PARTITION,
	ARG_DEDUP_ID,
	ARG_HEADERS,
	ARG_DELIVER_AT
};

PG_FUNCTION_INFO_V1(queue_push_text);
PG_FUNCTION_INFO_V1(queue_push_json);
PG_FUNCTION_INFO_V1(queue_push_jsonb);
PG_FUNCTION_INFO_V1(queue_push_bytea);

/* Checks that do not depend on the type of the payload. */
static void
begin_push(FunctionCallInfo fcinfo)
{
	qlog_enter("queue_push()");
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	qlog_require(fcinfo, ARG_PAYLOAD, "payload");
}

/* Find the target, stage the payload, return the id. */
static Datum
finish_push(FunctionCallInfo fcinfo, QlogPayload *payload)
{
	QlogName	name = qlog_queue_name(fcinfo->args[ARG_QUEUE].value);
	QlogName	partition = {"", 0};
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));
	QlogQueue	queue;
	QlogTarget	target;

	if (!fcinfo->args[ARG_PARTITION].isnull)
		partition = qlog_partition_name(fcinfo->args[ARG_PARTITION].value);
	if (!fcinfo->args[ARG_HEADERS].isnull)
	{
		text	   *headers = DatumGetTextPP(fcinfo->args[ARG_HEADERS].value);

		payload->headers = VARDATA_ANY(headers);
		payload->headers_len = VARSIZE_ANY_EXHDR(headers);
	}
	if (!fcinfo->args[ARG_DEDUP_ID].isnull)
		qlog_payload_dedup(payload, fcinfo->args[ARG_DEDUP_ID].value);
	qlog_queue_for_push(name, &queue);
	qlog_partition_for_push(&queue, name, partition, &target);
	qlog_delay_target(&queue, name, &fcinfo->args[ARG_DELIVER_AT], &target);
	qlog_push(&target, payload, id->data);
	PG_RETURN_UUID_P(id);
}

/* The payload argument as it lies in the varlena. */
static QlogPayload
payload_arg(FunctionCallInfo fcinfo)
{
	struct varlena *value = PG_DETOAST_DATUM_PACKED(fcinfo->args[ARG_PAYLOAD].value);
	QlogPayload payload = {.data = VARDATA_ANY(value), .len = VARSIZE_ANY_EXHDR(value)};

	return payload;
}

Datum
queue_push_text(PG_FUNCTION_ARGS)
{
	QlogPayload payload;

	begin_push(fcinfo);
	payload = payload_arg(fcinfo);
	qlog_json_check(payload.data, (int) payload.len);
	return finish_push(fcinfo, &payload);
}

/* A json value has been checked when it was made. */
Datum
queue_push_json(PG_FUNCTION_ARGS)
{
	QlogPayload payload;

	begin_push(fcinfo);
	payload = payload_arg(fcinfo);
	return finish_push(fcinfo, &payload);
}

Datum
queue_push_jsonb(PG_FUNCTION_ARGS)
{
	Jsonb	   *value;
	StringInfoData printed;
	QlogPayload payload = {0};

	begin_push(fcinfo);
	value = DatumGetJsonbP(fcinfo->args[ARG_PAYLOAD].value);
	initStringInfo(&printed);
	(void) JsonbToCString(&printed, &value->root, VARSIZE(value));
	payload.data = printed.data;
	payload.len = (uint32) printed.len;
	return finish_push(fcinfo, &payload);
}

Datum
queue_push_bytea(PG_FUNCTION_ARGS)
{
	QlogPayload payload;

	begin_push(fcinfo);
	payload = payload_arg(fcinfo);
	payload.binary = true;
	return finish_push(fcinfo, &payload);
}
