/*
 * fn_transaction.c
 *		queue_transaction: pushes and acks over any queues in one call, all or nothing.
 *
 * Nothing but calls of the same code as queue_push and queue_ack, for callers that can only send one statement.	All or
 * nothing also means: an ack that finds its lease gone refuses the whole call, because whoever has the messages now will
 * do the same pushes.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "qlog_lease.h"
#include "qlog_lookup.h"
#include "qlog_message.h"
#include "qlog_partition.h"

PG_FUNCTION_INFO_V1(queue_transaction);

/* Members that an operation may have. */
typedef enum Member
{
	MEMBER_OP,
	MEMBER_QUEUE,
	MEMBER_PAYLOAD,
	MEMBER_PARTITION,
	MEMBER_HEADERS,
	MEMBER_DEDUP_ID,
	MEMBER_DELIVER_AT,
	MEMBER_LEASE_ID,
	MEMBER_MESSAGE_IDS,
	MEMBER_COUNT
} Member;

static const char *const member_names[MEMBER_COUNT] = {
	"op", "queue", "payload", "partition", "headers", "dedup_id", "deliver_at", "lease_id",
	"message_ids"
};

#define PUSH_MEMBERS ((1 << MEMBER_OP) | (1 << MEMBER_QUEUE) | (1 << MEMBER_PAYLOAD) | \
					  (1 << MEMBER_PARTITION) | (1 << MEMBER_HEADERS) | (1 << MEMBER_DEDUP_ID) | \
					  (1 << MEMBER_DELIVER_AT))
#define ACK_MEMBERS ((1 << MEMBER_OP) | (1 << MEMBER_LEASE_ID) | (1 << MEMBER_MESSAGE_IDS))

/* One operation taken apart. */
typedef struct Operation
{
	int			number;			/* from 0, for messages */
	uint32		given;			/* bit per member that is there and not null */
	uint32		present;		/* bit per member that is there */
	JsonbValue	members[MEMBER_COUNT];
} Operation;

static void refuse(const Operation *operation, const char *detail) pg_attribute_noreturn();

static void
refuse(const Operation *operation, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid operation %d of queue_transaction()", operation->number),
			 errdetail_internal("%s", detail)));
}

/* Note one member of an operation. */
static void
take_member(Operation *operation, const JsonbValue *key, const JsonbValue *value)
{
	for (int i = 0; i < MEMBER_COUNT; i++)
	{
		if (key->val.string.len == (int) strlen(member_names[i]) &&
			memcmp(key->val.string.val, member_names[i], key->val.string.len) == 0)
		{
			operation->members[i] = *value;
			operation->present |= 1u << i;
			if (value->type != jbvNull)
				operation->given |= 1u << i;
			return;
		}
	}
	refuse(operation, psprintf("Unrecognized member \"%s\".",
							   pnstrdup(key->val.string.val, key->val.string.len)));
}

static void
parse_operation(JsonbContainer *object, Operation *operation)
{
	JsonbIterator *iterator = JsonbIteratorInit(object);
	JsonbIteratorToken token;
	JsonbValue	key;
	JsonbValue	value;

	if (!JsonContainerIsObject(object))
		refuse(operation, "It must be a JSON object.");
	while ((token = JsonbIteratorNext(&iterator, &key, true)) != WJB_DONE)
	{
		if (token != WJB_KEY)
			continue;
		(void) JsonbIteratorNext(&iterator, &value, true);
		take_member(operation, &key, &value);
	}
}

static bool
is_given(const Operation *operation, Member member)
{
	return (operation->given & (1u << member)) != 0;
}

/* A member that must be a string, as a text datum. */
static Datum
string_member(const Operation *operation, Member member)
{
	const JsonbValue *value = &operation->members[member];

	if (!is_given(operation, member))
		refuse(operation, psprintf("It needs a member \"%s\".", member_names[member]));
	if (value->type != jbvString)
		refuse(operation, psprintf("Member \"%s\" must be a string.", member_names[member]));
	return PointerGetDatum(cstring_to_text_with_len(value->val.string.val,
													value->val.string.len));
}

/* A member that must be a string with a time, as a timestamptz datum. */
static Datum
instant_member(const Operation *operation, Member member)
{
	char	   *value = TextDatumGetCString(string_member(operation, member));

	return DirectFunctionCall3(timestamptz_in, CStringGetDatum(value),
							   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
}

/* A member of any kind printed as JSON. */
static char *
printed_member(Operation *operation, Member member, uint32 *len)
{
	Jsonb	   *json = JsonbValueToJsonb(&operation->members[member]);
	StringInfoData out;

	initStringInfo(&out);
	(void) JsonbToCString(&out, &json->root, VARSIZE(json));
	*len = (uint32) out.len;
	return out.data;
}

/* An id as a number, or as a string for readers whose numbers end at 53 bits. */
static uint64
lease_member(const Operation *operation)
{
	const JsonbValue *value = &operation->members[MEMBER_LEASE_ID];
	char	   *digits;

	if (!is_given(operation, MEMBER_LEASE_ID))
		refuse(operation, "It needs a member \"lease_id\".");
	if (value->type != jbvNumeric && value->type != jbvString)
		refuse(operation, "Member \"lease_id\" must be a number or a string.");
	if (value->type == jbvString)
		digits = pnstrdup(value->val.string.val, value->val.string.len);
	else
		digits = DatumGetCString(DirectFunctionCall1(numeric_out,
													 NumericGetDatum(value->val.numeric)));
	return qlog_lease_id(DirectFunctionCall1(int8in, CStringGetDatum(digits)));
}

/* The ids as a uuid[] datum. */
static Datum
ids_member(const Operation *operation)
{
	const JsonbValue *value = &operation->members[MEMBER_MESSAGE_IDS];
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue	element;
	ArrayBuildState *ids = initArrayResult(UUIDOID, CurrentMemoryContext, false);

	if (value->type != jbvBinary || !JsonContainerIsArray(value->val.binary.data))
		refuse(operation, "Member \"message_ids\" must be an array of strings.");
	iterator = JsonbIteratorInit(value->val.binary.data);
	while ((token = JsonbIteratorNext(&iterator, &element, true)) != WJB_DONE)
	{
		Datum		id;

		if (token != WJB_ELEM)
			continue;
		if (element.type != jbvString)
			refuse(operation, "Member \"message_ids\" must be an array of strings.");
		id = DirectFunctionCall1(uuid_in, CStringGetDatum(pnstrdup(element.val.string.val,
																   element.val.string.len)));
		ids = accumArrayResult(ids, id, false, UUIDOID, CurrentMemoryContext);
	}
	return makeArrayResult(ids, CurrentMemoryContext);
}

/* Stage a push and describe its result. */
static void
run_push(Operation *operation, StringInfo result)
{
	QlogPayload payload = {0};
	QlogName	name = qlog_queue_name(string_member(operation, MEMBER_QUEUE));
	QlogName	partition = {"", 0};
	QlogQueue	queue;
	QlogTarget	target;
	NullableDatum deliver_at;
	pg_uuid_t	id;

	if ((operation->present & (1u << MEMBER_PAYLOAD)) == 0)
		refuse(operation, "It needs a member \"payload\".");
	if (is_given(operation, MEMBER_DEDUP_ID))
		qlog_payload_dedup(&payload, string_member(operation, MEMBER_DEDUP_ID));
	payload.strict = true;
	deliver_at.isnull = !is_given(operation, MEMBER_DELIVER_AT);
	if (!deliver_at.isnull)
		deliver_at.value = instant_member(operation, MEMBER_DELIVER_AT);
	if (is_given(operation, MEMBER_PARTITION))
		partition = qlog_partition_name(string_member(operation, MEMBER_PARTITION));
	payload.data = printed_member(operation, MEMBER_PAYLOAD, &payload.len);
	if (is_given(operation, MEMBER_HEADERS))
		payload.headers = printed_member(operation, MEMBER_HEADERS, &payload.headers_len);
	qlog_queue_for_push(name, &queue);
	qlog_partition_for_push(&queue, name, partition, &target);
	qlog_delay_target(&queue, name, &deliver_at, &target);
	qlog_push(&target, &payload, id.data);
	appendStringInfo(result, "{\"op\": \"push\", \"message_id\": \"%s\"}",
					 DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(&id))));
}

static void
run_ack(Operation *operation, StringInfo result)
{
	uint64		lease = lease_member(operation);
	bool		by_id = is_given(operation, MEMBER_MESSAGE_IDS);
	int64		n = qlog_lease_ack(lease, by_id, by_id ? ids_member(operation) : (Datum) 0);

	if (n == 0)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("lease " INT64_FORMAT " does not hold the messages any more", (int64) lease),
				 errdetail("Operation %d acknowledges nothing, so none of the operations was done.",
						   operation->number)));
	appendStringInfo(result, "{\"op\": \"ack\", \"acked\": " INT64_FORMAT "}", n);
}

static void
run_operation(Operation *operation, StringInfo result)
{
	char	   *op = TextDatumGetCString(string_member(operation, MEMBER_OP));
	bool		push = strcmp(op, "push") == 0;

	if (!push && strcmp(op, "ack") != 0)
		refuse(operation, "Member \"op\" must be \"push\" or \"ack\".");
	for (int i = 0; i < MEMBER_COUNT; i++)
	{
		if ((operation->present & ~(push ? PUSH_MEMBERS : ACK_MEMBERS) & (1u << i)) != 0)
			refuse(operation, psprintf("Member \"%s\" does not belong to \"%s\".",
									   member_names[i], op));
	}
	if (push)
		run_push(operation, result);
	else
		run_ack(operation, result);
}

Datum
queue_transaction(PG_FUNCTION_ARGS)
{
	Jsonb	   *operations;
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue	element;
	StringInfoData result;
	int			number = 0;

	qlog_enter("queue_transaction()");
	qlog_require(fcinfo, 0, "operations");
	operations = PG_GETARG_JSONB_P(0);
	if (!JB_ROOT_IS_ARRAY(operations) || JB_ROOT_IS_SCALAR(operations))
		qlog_arg_invalid("operations", "It must be a JSON array of objects.");
	initStringInfo(&result);
	appendStringInfoChar(&result, '[');
	iterator = JsonbIteratorInit(&operations->root);
	while ((token = JsonbIteratorNext(&iterator, &element, true)) != WJB_DONE)
	{
		Operation	operation = {.number = number};

		if (token != WJB_ELEM)
			continue;
		if (element.type != jbvBinary)
			refuse(&operation, "It must be a JSON object.");
		parse_operation(element.val.binary.data, &operation);
		if (number++ > 0)
			appendStringInfoString(&result, ", ");
		run_operation(&operation, &result);
	}
	appendStringInfoChar(&result, ']');
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(result.data));
}
