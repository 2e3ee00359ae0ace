/*
 * fn_push_row.c
 *		queue_push_row: a trigger that pushes row changes, so that a table needs no outbox.
 *
 * The message is {"op", "table", "new", "old"} with the rows as row_to_json prints them.  It is staged like any push and
 * becomes visible with the row change, or never.
 */
#include "postgres.h"

#include "commands/trigger.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "qlog_lookup.h"
#include "qlog_message.h"
#include "qlog_partition.h"

PG_FUNCTION_INFO_V1(queue_push_row);

static void
misused(const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
			 errmsg("queue_push_row() cannot be called like this"),
			 errdetail_internal("%s", detail),
			 errhint("Use CREATE TRIGGER ... AFTER INSERT OR UPDATE OR DELETE ON ... FOR EACH ROW EXECUTE FUNCTION queue_push_row('queue').")));
}

/* What the trigger was fired for, as it stands in the message. */
static const char *
operation(TriggerEvent event)
{
	if (TRIGGER_FIRED_BY_INSERT(event))
		return "INSERT";
	return TRIGGER_FIRED_BY_UPDATE(event) ? "UPDATE" : "DELETE";
}

/* The row as JSON, null when there is none. */
static void
put_row(StringInfo out, HeapTuple tuple, TupleDesc desc)
{
	Datum		row;

	if (tuple == NULL)
	{
		appendStringInfoString(out, "null");
		return;
	}
	row = heap_copy_tuple_as_datum(tuple, desc);
	appendStringInfoString(out, TextDatumGetCString(DirectFunctionCall1(row_to_json, row)));
}

/* Text of the column that names the partition; NULL = the default partition. */
static char *
partition_value(const TriggerData *trigger, HeapTuple tuple)
{
	TupleDesc	desc = RelationGetDescr(trigger->tg_relation);
	const char *column = trigger->tg_trigger->tgargs[1];
	int			number = SPI_fnumber(desc, column);

	if (number == SPI_ERROR_NOATTRIBUTE)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of relation \"%s\" does not exist", column,
						RelationGetRelationName(trigger->tg_relation)),
				 errdetail("It is the second argument of queue_push_row() in trigger \"%s\".",
						   trigger->tg_trigger->tgname)));
	return SPI_getvalue(tuple, desc, number);
}

/* The message of this row change. */
static void
put_message(StringInfo out, const TriggerData *trigger, HeapTuple new, HeapTuple old)
{
	TupleDesc	desc = RelationGetDescr(trigger->tg_relation);
	char	   *schema = get_namespace_name(RelationGetNamespace(trigger->tg_relation));

	initStringInfo(out);
	appendStringInfo(out, "{\"op\": \"%s\", \"table\": ", operation(trigger->tg_event));
	escape_json(out, quote_qualified_identifier(schema,
												RelationGetRelationName(trigger->tg_relation)));
	appendStringInfoString(out, ", \"new\": ");
	put_row(out, new, desc);
	appendStringInfoString(out, ", \"old\": ");
	put_row(out, old, desc);
	appendStringInfoChar(out, '}');
}

Datum
queue_push_row(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	HeapTuple	new;
	HeapTuple	old;
	StringInfoData message;
	QlogPayload payload = {0};
	QlogName	name;
	QlogName	partition = {"", 0};
	QlogQueue	queue;
	QlogTarget	target;
	NullableDatum none = {.isnull = true};
	uint8		id[QLOG_UUID_SIZE];

	if (!CALLED_AS_TRIGGER(fcinfo))
		misused("It is a trigger function.");
	if (!TRIGGER_FIRED_AFTER(trigger->tg_event) || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
		misused("The trigger must fire AFTER the change, FOR EACH ROW.");
	if (trigger->tg_trigger->tgnargs < 1 || trigger->tg_trigger->tgnargs > 2)
		misused("It takes the name of a queue and, optionally, of the column with the partition.");
	qlog_enter("queue_push_row()");
	new = TRIGGER_FIRED_BY_DELETE(trigger->tg_event) ? NULL :
		TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple : trigger->tg_trigtuple;
	old = TRIGGER_FIRED_BY_INSERT(trigger->tg_event) ? NULL : trigger->tg_trigtuple;
	name = qlog_queue_name(CStringGetTextDatum(trigger->tg_trigger->tgargs[0]));
	if (trigger->tg_trigger->tgnargs == 2)
	{
		char	   *value = partition_value(trigger, new != NULL ? new : old);

		if (value != NULL)
			partition = qlog_partition_name(CStringGetTextDatum(value));
	}
	put_message(&message, trigger, new, old);
	payload.data = message.data;
	payload.len = (uint32) message.len;
	qlog_queue_for_push(name, &queue);
	qlog_partition_for_push(&queue, name, partition, &target);
	qlog_delay_target(&queue, name, &none, &target);
	qlog_push(&target, &payload, id);
	return PointerGetDatum(NULL);
}
