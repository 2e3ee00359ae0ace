/*
 * fn_grant.c
 *		queue_grant, queue_revoke, has_queue_privilege.
 *
 * The argument `role` is a regrole: '-', which is its zero, stands for PUBLIC.
 */
#include "postgres.h"

#include <ctype.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "qlog_alter.h"

/* Arguments. */
enum
{
	ARG_QUEUE,
	ARG_ROLE,
	ARG_PRIVILEGE,
	ARG_HAS_ROLE = 0,			/* of has_queue_privilege, which may come without it */
	ARG_HAS_QUEUE
};

PG_FUNCTION_INFO_V1(queue_grant);
PG_FUNCTION_INFO_V1(queue_revoke);
PG_FUNCTION_INFO_V1(has_queue_privilege);
PG_FUNCTION_INFO_V1(has_queue_privilege_current);

/* One privilege by its name; with_all: "all" is one too. */
static AclMode
privilege_by_name(const char *name, bool with_all)
{
	if (pg_strcasecmp(name, "push") == 0)
		return QLOG_PUSH;
	if (pg_strcasecmp(name, "pop") == 0)
		return QLOG_POP;
	if (pg_strcasecmp(name, "manage") == 0)
		return QLOG_MANAGE;
	if (with_all && pg_strcasecmp(name, "all") == 0)
		return QLOG_PRIVILEGES;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unrecognized queue privilege: \"%s\"", name),
			 with_all ? errhint("Valid privileges are: push, pop, manage, all.") :
			 errhint("Valid privileges are: push, pop, manage.")));
	return 0;
}

/* A list of privileges, separated by commas. */
static AclMode
privileges_by_names(Datum names, bool with_all)
{
	char	   *at = TextDatumGetCString(names);
	AclMode		privileges = 0;

	while (at != NULL)
	{
		char	   *comma = strchr(at, ',');
		char	   *end = comma != NULL ? comma : at + strlen(at);

		while (isspace((unsigned char) *at))
			at++;
		while (end > at && isspace((unsigned char) end[-1]))
			end--;
		*end = '\0';
		privileges |= privilege_by_name(at, with_all);
		at = comma == NULL ? NULL : comma + 1;
	}
	return privileges;
}

/* Change the ACL of a queue. */
static void
change_acl(FunctionCallInfo fcinfo, bool add)
{
	AclMode		privileges;
	QlogName	name;
	QlogQueue	queue;

	qlog_enter(add ? "queue_grant()" : "queue_revoke()");
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	qlog_require(fcinfo, ARG_ROLE, "role");
	qlog_require(fcinfo, ARG_PRIVILEGE, "privilege");
	privileges = privileges_by_names(PG_GETARG_DATUM(ARG_PRIVILEGE), true);
	name = qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE));
	qlog_alter_begin(name, true, ShareUpdateExclusiveLock, &queue);
	qlog_alter_acl(&queue, PG_GETARG_OID(ARG_ROLE), privileges, add);
	qlog_alter_stage(&queue, name);
}

Datum
queue_grant(PG_FUNCTION_ARGS)
{
	change_acl(fcinfo, true);
	PG_RETURN_VOID();
}

Datum
queue_revoke(PG_FUNCTION_ARGS)
{
	change_acl(fcinfo, false);
	PG_RETURN_VOID();
}

/* Has the role any of these privileges on the queue? */
static bool
has_any(Oid role, Datum queue_name, Datum names)
{
	AclMode		privileges = privileges_by_names(names, false);
	QlogQueue	queue;

	qlog_queue_require(qlog_queue_name(queue_name), &queue);
	return qlog_acl_has(&queue, role, privileges, ACLMASK_ANY);
}

Datum
has_queue_privilege(PG_FUNCTION_ARGS)
{
	qlog_enter_read("has_queue_privilege()");
	if (PG_ARGISNULL(ARG_HAS_ROLE) || PG_ARGISNULL(ARG_HAS_QUEUE) || PG_ARGISNULL(ARG_PRIVILEGE))
		PG_RETURN_NULL();
	PG_RETURN_BOOL(has_any(PG_GETARG_OID(ARG_HAS_ROLE), PG_GETARG_DATUM(ARG_HAS_QUEUE),
						   PG_GETARG_DATUM(ARG_PRIVILEGE)));
}

Datum
has_queue_privilege_current(PG_FUNCTION_ARGS)
{
	qlog_enter_read("has_queue_privilege()");
	if (PG_ARGISNULL(ARG_HAS_QUEUE - 1) || PG_ARGISNULL(ARG_PRIVILEGE - 1))
		PG_RETURN_NULL();
	PG_RETURN_BOOL(has_any(GetUserId(), PG_GETARG_DATUM(ARG_HAS_QUEUE - 1),
						   PG_GETARG_DATUM(ARG_PRIVILEGE - 1)));
}
