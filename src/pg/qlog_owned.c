/*
 * qlog_owned.c
 *		DROP OWNED and REASSIGN OWNED do with the queues of the current database what they do with its tables.
 *
 * PostgreSQL finds what a role owns in pg_shdepend, where queues are not.	So these commands are followed here: when the
 * server has done its part, and thereby has checked that the user may, the queues come.	Everything else passes by.
 */
#include "qlog_owned.h"

#include "postgres.h"

#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/acl.h"

#include "qlog_alter.h"
#include "qlog_list.h"
#include "qlog_namelock.h"
#include "qlog_shmem.h"

static ProcessUtility_hook_type previous_hook = NULL;

/* What happens to a queue that names the role; it is locked. */
typedef void (*QueueAction) (QlogListed *listed, Oid role, Oid new_owner);

/* Lock the queue under the name that it has, whatever that is by then; false = it is gone. */
static bool
lock_queue(uint64 id, QlogListed *listed)
{
	QlogQueue	found;

	while (qlog_list_get(id, listed))
	{
		qlog_lock_name(listed->name, ExclusiveLock);
		if (qlog_queue_find(listed->name, &found) && found.id == id)
			return qlog_list_get(id, listed);
	}
	return false;
}

/* Call the action for each queue of this database that the role owns or has privileges on. */
static void
each_naming(Oid role, QueueAction action, Oid new_owner)
{
	QlogListed *listed = palloc(sizeof(QlogListed));
	uint32		n;
	uint64	   *ids = qlog_list_visible(&n);

	for (uint32 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (qlog_list_get(ids[i], listed) && qlog_acl_names(&listed->queue, role) &&
			lock_queue(ids[i], listed) && qlog_acl_names(&listed->queue, role))
			action(listed, role, new_owner);
	}
	pfree(ids);
	pfree(listed);
}

static void
drop_or_revoke(QlogListed *listed, Oid role, Oid new_owner)
{
	(void) new_owner;
	if (listed->queue.owner == role)
	{
		qlog_lock_queue(&listed->queue);
		qlog_drop_queue(&listed->queue, listed->name);
		return;
	}
	qlog_alter_acl(&listed->queue, role, QLOG_PRIVILEGES, false);
	qlog_alter_stage(&listed->queue, listed->name);
}

static void
reassign(QlogListed *listed, Oid role, Oid new_owner)
{
	if (listed->queue.owner != role || role == new_owner)
		return;
	qlog_alter_owner(&listed->queue, new_owner);
	qlog_alter_stage(&listed->queue, listed->name);
}

static void
each_role(List *roles, QueueAction action, Oid new_owner)
{
	ListCell   *cell;

	foreach(cell, roles)
		each_naming(get_rolespec_oid(lfirst_node(RoleSpec, cell), false), action, new_owner);
}

/* Where qlog is out of service nothing can be done; DROP ROLE is refused then. */
static bool
in_service(void)
{
	return !IsBinaryUpgrade &&
		pg_atomic_read_u32(&qlog_shared->gate) != QLOG_GATE_FAILED;
}

static void
follow(const Node *statement)
{
	qlog_gate_check();
	if (IsA(statement, DropOwnedStmt))
		each_role(((const DropOwnedStmt *) statement)->roles, drop_or_revoke, InvalidOid);
	else
	{
		const ReassignOwnedStmt *stmt = (const ReassignOwnedStmt *) statement;

		each_role(stmt->roles, reassign, get_rolespec_oid(stmt->newrole, false));
	}
}

static void
on_utility(PlannedStmt *planned, const char *text, bool read_only_tree,
		   ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *environment,
		   DestReceiver *receiver, QueryCompletion *completion)
{
	ProcessUtility_hook_type next = previous_hook != NULL ? previous_hook : standard_ProcessUtility;

	/* The statement of a COMMIT, for one, may be gone when it has been run. */
	bool		ours = IsA(planned->utilityStmt, DropOwnedStmt) ||
		IsA(planned->utilityStmt, ReassignOwnedStmt);

	next(planned, text, read_only_tree, context, params, environment, receiver, completion);
	if (ours && in_service())
		follow(planned->utilityStmt);
}

void
qlog_owned_init(void)
{
	previous_hook = ProcessUtility_hook;
	ProcessUtility_hook = on_utility;
}
