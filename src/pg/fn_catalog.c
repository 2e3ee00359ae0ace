/*
 * fn_catalog.c
 *		What queues there are: the view qlog_queues, and queue_definitions.
 *
 * Both show what the current transaction sees, its own uncommitted changes included, of the queues that the role may know
 * about.
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"

#include "qlog_acl.h"
#include "qlog_list.h"
#include "qlog_options.h"
#include "qlog_shmem.h"

#include "../core/qc_group.h"
#include "../core/qc_logfile.h"

PG_FUNCTION_INFO_V1(qlog_queues);
PG_FUNCTION_INFO_V1(queue_definitions);

#define QUEUE_COLUMNS 10

typedef struct GroupName
{
	uint64		id;
	uint16		len;
	char text[	QLOG_NAME_MAX];
} GroupName;

/* Calls `form` for each queue that the role may know about. */
static void
each_listed(FunctionCallInfo fcinfo, void (*form) (FunctionCallInfo, const QlogListed *))
{
	QlogListed *listed = palloc(sizeof(QlogListed));
	uint32		n;
	uint64	   *ids = qlog_list_visible(&n);

	for (uint32 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (qlog_list_get(ids[i], listed) && qlog_acl_sees(&listed->queue))
			form(fcinfo, listed);
	}
}

static void
put_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* "push", "pop", "both", or NULL. */
static const char *
paused_side(uint8 flags)
{
	switch (flags & (QC_QUEUE_NO_PUSH | QC_QUEUE_NO_POP))
	{
		case QC_QUEUE_NO_PUSH:
			return "push";
		case QC_QUEUE_NO_POP:
			return "pop";
		case QC_QUEUE_NO_PUSH | QC_QUEUE_NO_POP:
			return "both";
		default:
			return NULL;
	}
}

/* A row of qlog_queues. */
static void
form_queue(FunctionCallInfo fcinfo, const QlogListed *listed)
{
	const QlogQueue *queue = &listed->queue;
	const char *paused = paused_side(queue->flags);
	char		path[QC_PATH_MAX];
	Datum		values[QUEUE_COLUMNS];
	bool		nulls[QUEUE_COLUMNS] = {false};

	qc_path_log(path, (QcLayout) qlog_files()->layout, queue->log);
	values[0] = PointerGetDatum(cstring_to_text_with_len(listed->name.text, listed->name.len));
	values[1] = ObjectIdGetDatum(queue->owner);
	values[2] = qlog_options_show(&queue->options);
	nulls[3] = queue->acl == NULL;
	values[3] = PointerGetDatum(queue->acl);
	nulls[4] = listed->created_at == 0;
	values[4] = TimestampTzGetDatum(qlog_timestamptz(listed->created_at));
	values[5] = Int64GetDatum((int64) queue->log);
	values[6] = CStringGetTextDatum(path);
	values[7] = Int64GetDatum((int64) listed->npartitions);
	nulls[8] = !listed->damaged;
	if (listed->damaged)
		values[8] = CStringGetTextDatum(psprintf("file " UINT64_FORMAT ", byte " UINT64_FORMAT,
												 listed->damage_file, listed->damage_position));
	nulls[9] = paused == NULL;
	if (paused != NULL)
		values[9] = CStringGetTextDatum(paused);
	put_row(fcinfo, values, nulls);
}

Datum
qlog_queues(PG_FUNCTION_ARGS)
{
	qlog_enter_read("qlog_queues");
	InitMaterializedSRF(fcinfo, 0);
	each_listed(fcinfo, form_queue);
	return (Datum) 0;
}

/* A role as the text of a regrole, quoted as a literal; a role that is gone stays a number. */
static const char *
role_literal(Oid role)
{
	char	   *name = OidIsValid(role) ? GetUserNameFromId(role, true) : NULL;

	if (name != NULL)
		return quote_literal_cstr(quote_identifier(name));
	return OidIsValid(role) ? psprintf("'%u'", role) : "'-'";
}

/* "push, pop" */
static const char *
privilege_list(AclMode privileges)
{
	StringInfoData list;

	initStringInfo(&list);
	if (privileges & QLOG_PUSH)
		appendStringInfoString(&list, "push, ");
	if (privileges & QLOG_POP)
		appendStringInfoString(&list, "pop, ");
	if (privileges & QLOG_MANAGE)
		appendStringInfoString(&list, "manage, ");
	list.data[Max(list.len - 2, 0)] = '\0';
	return list.data;
}

/* SELECT schema.function(arguments); as a row. */
static void
put_statement(FunctionCallInfo fcinfo, const char *function, const QlogListed *listed,
			  const char *more)
{
	char	   *schema = get_namespace_name(get_func_namespace(fcinfo->flinfo->fn_oid));
	char	   *queue = pnstrdup(listed->name.text, listed->name.len);
	Datum		value;
	bool		null = false;

	value = CStringGetTextDatum(psprintf("SELECT %s(%s%s);",
										 quote_qualified_identifier(schema, function),
										 quote_literal_cstr(queue), more));
	put_row(fcinfo, &value, &null);
}

static void
put_acl_statement(FunctionCallInfo fcinfo, const char *function, const QlogListed *listed, Oid role,
				  AclMode privileges)
{
	if (privileges != ACL_NO_RIGHTS)
		put_statement(fcinfo, function, listed,
					  psprintf(", %s, '%s'", role_literal(role), privilege_list(privileges)));
}

/* From the owner having everything to the queue's ACL. */
static void
put_acl_statements(FunctionCallInfo fcinfo, const QlogListed *listed)
{
	const Acl  *acl = listed->queue.acl;
	Oid			owner = listed->queue.owner;
	AclMode		owners = ACL_NO_RIGHTS;

	if (acl == NULL)
		return;
	for (int i = 0; i < ACL_NUM(acl); i++)
	{
		const AclItem *item = &ACL_DAT(acl)[i];

		if (item->ai_grantee == owner)
			owners |= ACLITEM_GET_PRIVS(*item);
		else
			put_acl_statement(fcinfo, "queue_grant", listed, item->ai_grantee,
							  ACLITEM_GET_PRIVS(*item));
	}
	put_acl_statement(fcinfo, "queue_revoke", listed, owner, QLOG_PRIVILEGES & ~owners);
}

/* Copy the names of the queue's groups but the default one, in the order in which they were made; returns how many. */
static uint32
copy_group_names(uint64 id, GroupName *names)
{
	uint32		n = 0;
	const QcQueue *queue;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	queue = qc_queue_by_id(qlog_state, id);
	for (const QcGroup *group = queue == NULL ? NULL : QC_AT(qlog_state, QcGroup, queue->groups);
		 group != NULL; group = QC_AT(qlog_state, QcGroup, group->next))
	{
		if (group->state != QC_GROUP_LIVE || group->name_len == 0)
			continue;
		Assert(n < QC_GROUPS_MAX);
		names[n].id = group->id;
		names[n].len = group->name_len;
		memcpy(names[n++].text, qc_name_at(qlog_state, group->name), group->name_len);
	}
	LWLockRelease(&qlog_shared->state_lock);
	return n;
}

static int
compare_groups(const void *a, const void *b)
{
	const GroupName *x = a;
	const GroupName *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* In a queue without messages every group stands at the oldest one. */
static void
put_group_statements(FunctionCallInfo fcinfo, const QlogListed *listed)
{
	GroupName  *names = palloc(QC_GROUPS_MAX * sizeof(GroupName));
	uint32		n = copy_group_names(listed->queue.id, names);

	qsort(names, n, sizeof(GroupName), compare_groups);
	for (uint32 i = 0; i < n; i++)
		put_statement(fcinfo, "queue_subscribe", listed,
					  psprintf(", %s, 'oldest'",
							   quote_literal_cstr(pnstrdup(names[i].text, names[i].len))));
	pfree(names);
}

/* The statements that make the queue as it is. */
static void
form_definition(FunctionCallInfo fcinfo, const QlogListed *listed)
{
	Datum		options = qlog_options_show(&listed->queue.options);
	const char *paused = paused_side(listed->queue.flags);

	put_statement(fcinfo, "queue_create", listed,
				  psprintf(", %s", quote_literal_cstr(DatumGetCString(DirectFunctionCall1(jsonb_out,
																						  options)))));
	put_statement(fcinfo, "queue_owner", listed,
				  psprintf(", %s", role_literal(listed->queue.owner)));
	put_acl_statements(fcinfo, listed);
	put_group_statements(fcinfo, listed);
	if (paused != NULL)
		put_statement(fcinfo, "queue_pause", listed, psprintf(", '%s'", paused));
}

Datum
queue_definitions(PG_FUNCTION_ARGS)
{
	qlog_enter_read("queue_definitions()");
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	each_listed(fcinfo, form_definition);
	return (Datum) 0;
}
