/*
 * fn_push_batch.c
 *		queue_push_batch, queue_push_batch_bytea, queue_push_batch_json: many messages in one call, ids in the order of
 *		the input.
 *
 * Everything is staged by the first call of the set-returning function, so that a caller who stops reading early has
 * pushed all the same.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/uuid.h"

#include "qlog_lookup.h"
#include "qlog_message.h"
#include "qlog_partition.h"

/* Arguments of queue_push_batch. */
enum
{
	ARG_QUEUE,
	ARG_PAYLOADS,
	ARG_PARTITIONS,
	ARG_DEDUP_IDS,
	ARG_HEADERS,
	ARG_DELIVER_AT
};

/* Arguments of queue_push_batch_json. */
enum
{
	JSON_ARG_QUEUE,
	JSON_ARG_PAYLOADS,
	JSON_ARG_PARTITION,
	JSON_ARG_HEADERS
};

#define INTERRUPT_EVERY 256

PG_FUNCTION_INFO_V1(queue_push_batch_text);
PG_FUNCTION_INFO_V1(queue_push_batch_bytea);
PG_FUNCTION_INFO_V1(queue_push_batch_json);

/* An array argument taken apart; n = 0 when it is NULL or empty. */
typedef struct Elements
{
	Datum	   *values;
	bool	   *nulls;
	int			n;
	bool		given;			/* not NULL */
} Elements;

/* The ids that are still to be returned. */
typedef struct Ids
{
	int			n;
	int			next;
	pg_uuid_t	ids[FLEXIBLE_ARRAY_MEMBER];
} Ids;

static Elements
elements_arg(FunctionCallInfo fcinfo, int n, const char *name, Oid type)
{
	Elements	elements = {0};
	ArrayType  *array;

	if (fcinfo->args[n].isnull)
		return elements;
	array = DatumGetArrayTypeP(fcinfo->args[n].value);
	if (ARR_NDIM(array) > 1)
		qlog_arg_invalid(name, "The array must have one dimension.");
	deconstruct_array(array, type, -1, false, TYPALIGN_INT, &elements.values, &elements.nulls,
					  &elements.n);
	elements.given = true;
	return elements;
}

static void
check_length(const Elements *elements, const Elements *payloads, const char *name)
{
	if (elements->given && elements->n != payloads->n)
		qlog_arg_invalid(name, "The array must have as many elements as \"payloads\".");
}

/* Is it the partition of the message before it? */
static bool
same_text(Datum a, Datum b)
{
	text	   *x = DatumGetTextPP(a);
	text	   *y = DatumGetTextPP(b);

	return VARSIZE_ANY_EXHDR(x) == VARSIZE_ANY_EXHDR(y) &&
		memcmp(VARDATA_ANY(x), VARDATA_ANY(y), VARSIZE_ANY_EXHDR(x)) == 0;
}

/* Everything that one call works on. */
typedef struct Batch
{
	QlogName	name;
	QlogQueue	queue;
	Elements	payloads;
	Elements	partitions;
	Elements	dedup_ids;
	Elements	headers;
	NullableDatum deliver_at;
	bool		binary;
} Batch;

/* Where message i goes; target holds the answer for message i - 1. */
static void
find_target(const Batch *batch, int i, QlogTarget *target)
{
	const Elements *partitions = &batch->partitions;
	QlogName	partition = {"", 0};

	if (i > 0)
	{
		if (!partitions->given || (partitions->nulls[i] && partitions->nulls[i - 1]))
			return;
		if (!partitions->nulls[i] && !partitions->nulls[i - 1] &&
			same_text(partitions->values[i], partitions->values[i - 1]))
			return;
	}
	if (partitions->given && !partitions->nulls[i])
		partition = qlog_partition_name(partitions->values[i]);
	qlog_partition_for_push(&batch->queue, batch->name, partition, target);
}

static void
push_element(const Batch *batch, int i, const QlogTarget *target, pg_uuid_t *id)
{
	struct varlena *value = PG_DETOAST_DATUM_PACKED(batch->payloads.values[i]);
	QlogPayload payload = {.data = VARDATA_ANY(value), .len = VARSIZE_ANY_EXHDR(value),
		.binary = batch->binary};

	if (!batch->binary)
		qlog_json_check(payload.data, (int) payload.len);
	if (batch->headers.given && !batch->headers.nulls[i])
	{
		text	   *headers = DatumGetTextPP(batch->headers.values[i]);

		payload.headers = VARDATA_ANY(headers);
		payload.headers_len = VARSIZE_ANY_EXHDR(headers);
		qlog_json_check(payload.headers, (int) payload.headers_len);
	}
	if (batch->dedup_ids.given && !batch->dedup_ids.nulls[i])
		qlog_payload_dedup(&payload, batch->dedup_ids.values[i]);
	qlog_push(target, &payload, id->data);
}

/* Stage all messages. */
static void
push_all(const Batch *batch, Ids *ids)
{
	QlogTarget	target = {0};

	qlog_delay_target(&batch->queue, batch->name, &batch->deliver_at, &target);
	for (int i = 0; i < batch->payloads.n; i++)
	{
		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		if (batch->payloads.nulls[i])
			qlog_arg_missing("payloads");
		find_target(batch, i, &target);
		push_element(batch, i, &target, &ids->ids[i]);
	}
}

/* Check the arguments, stage the messages. */
static Ids *
push_batch(FunctionCallInfo fcinfo, bool binary, MemoryContext result_context)
{
	Batch		batch = {.binary = binary, .deliver_at = fcinfo->args[ARG_DELIVER_AT]};
	Ids		   *ids;

	qlog_enter(binary ? "queue_push_batch_bytea()" : "queue_push_batch()");
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	qlog_require(fcinfo, ARG_PAYLOADS, "payloads");
	batch.name = qlog_queue_name(fcinfo->args[ARG_QUEUE].value);
	batch.payloads = elements_arg(fcinfo, ARG_PAYLOADS, "payloads", binary ? BYTEAOID : TEXTOID);
	batch.partitions = elements_arg(fcinfo, ARG_PARTITIONS, "partitions", TEXTOID);
	batch.headers = elements_arg(fcinfo, ARG_HEADERS, "headers", TEXTOID);
	batch.dedup_ids = elements_arg(fcinfo, ARG_DEDUP_IDS, "dedup_ids", TEXTOID);
	check_length(&batch.partitions, &batch.payloads, "partitions");
	check_length(&batch.headers, &batch.payloads, "headers");
	check_length(&batch.dedup_ids, &batch.payloads, "dedup_ids");
	ids = MemoryContextAllocHuge(result_context, offsetof(Ids, ids) +
								 (Size) batch.payloads.n * sizeof(pg_uuid_t));
	ids->n = batch.payloads.n;
	ids->next = 0;
	if (ids->n > 0)
	{
		qlog_queue_for_push(batch.name, &batch.queue);
		push_all(&batch, ids);
	}
	return ids;
}

static Ids *
push_text(FunctionCallInfo fcinfo, MemoryContext result_context)
{
	return push_batch(fcinfo, false, result_context);
}

static Ids *
push_bytea(FunctionCallInfo fcinfo, MemoryContext result_context)
{
	return push_batch(fcinfo, true, result_context);
}

static bool
json_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/*
 * The end of the element at p, of a json array that has been checked when it was made: the comma or bracket behind it.
 */
static const char *
json_element_end(const char *p, const char *end)
{
	bool		in_string = false;
	int			depth = 0;

	for (; p < end; p++)
	{
		if (in_string)
		{
			if (*p == '\\')
				p++;
			else if (*p == '"')
				in_string = false;
		}
		else if (*p == '"')
			in_string = true;
		else if (*p == '[' || *p == '{')
			depth++;
		else if ((*p == ',' || *p == ']') && depth == 0)
			return p;
		else if (*p == ']' || *p == '}')
			depth--;
	}
	return end;
}

/* Stage the elements of the array behind its bracket. */
static Ids *
push_elements(const QlogTarget *target, const char *p, const char *end, QlogPayload payload,
			  MemoryContext result_context)
{
	Size		max = 64;
	Ids		   *ids = MemoryContextAlloc(result_context, offsetof(Ids, ids) + max * sizeof(pg_uuid_t));

	ids->n = ids->next = 0;
	for (;;)
	{
		const char *last;

		while (p < end && json_space(*p))
			p++;
		last = json_element_end(p, end);

		payload.data = p;
		payload.len = last - p;

		while (payload.len > 0 && json_space(p[payload.len - 1]))
			payload.len--;
		if (payload.len == 0)
			return ids;			/* an empty array: no other element is empty */
		if (ids->n % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		if ((Size) ids->n == max)
		{
			max *= 2;
			ids = repalloc_huge(ids, offsetof(Ids, ids) + max * sizeof(pg_uuid_t));
		}
		qlog_push(target, &payload, ids->ids[ids->n++].data);
		if (last >= end || *last == ']')
			return ids;
		p = last + 1;
	}
}

static Ids *
push_json(FunctionCallInfo fcinfo, MemoryContext result_context)
{
	QlogPayload payload = {0};
	QlogName	name;
	QlogName	partition = {"", 0};
	QlogQueue	queue;
	QlogTarget	target;
	NullableDatum none = {.isnull = true};
	text	   *array;
	const char *p;
	const char *end;

	qlog_enter("queue_push_batch_json()");
	qlog_require(fcinfo, JSON_ARG_QUEUE, "queue");
	qlog_require(fcinfo, JSON_ARG_PAYLOADS, "payloads");
	name = qlog_queue_name(fcinfo->args[JSON_ARG_QUEUE].value);
	if (!fcinfo->args[JSON_ARG_PARTITION].isnull)
		partition = qlog_partition_name(fcinfo->args[JSON_ARG_PARTITION].value);
	if (!fcinfo->args[JSON_ARG_HEADERS].isnull)
	{
		text	   *headers = DatumGetTextPP(fcinfo->args[JSON_ARG_HEADERS].value);

		payload.headers = VARDATA_ANY(headers);
		payload.headers_len = VARSIZE_ANY_EXHDR(headers);
	}
	array = DatumGetTextPP(fcinfo->args[JSON_ARG_PAYLOADS].value);
	p = VARDATA_ANY(array);
	end = p + VARSIZE_ANY_EXHDR(array);
	while (p < end && json_space(*p))
		p++;
	if (p == end || *p != '[')
		qlog_arg_invalid("payloads", "It must be a JSON array.");
	qlog_queue_for_push(name, &queue);
	qlog_partition_for_push(&queue, name, partition, &target);
	qlog_delay_target(&queue, name, &none, &target);
	return push_elements(&target, p + 1, end, payload, result_context);
}

static Datum
return_ids(FunctionCallInfo fcinfo, Ids *(*push) (FunctionCallInfo, MemoryContext))
{
	FuncCallContext *call;
	Ids		   *ids;

	if (SRF_IS_FIRSTCALL())
	{
		call = SRF_FIRSTCALL_INIT();
		call->user_fctx = push(fcinfo, call->multi_call_memory_ctx);
	}
	call = SRF_PERCALL_SETUP();
	ids = call->user_fctx;
	if (ids->next < ids->n)
		SRF_RETURN_NEXT(call, UUIDPGetDatum(&ids->ids[ids->next++]));
	SRF_RETURN_DONE(call);
}

Datum
queue_push_batch_text(PG_FUNCTION_ARGS)
{
	return return_ids(fcinfo, push_text);
}

Datum
queue_push_batch_bytea(PG_FUNCTION_ARGS)
{
	return return_ids(fcinfo, push_bytea);
}

Datum
queue_push_batch_json(PG_FUNCTION_ARGS)
{
	return return_ids(fcinfo, push_json);
}
