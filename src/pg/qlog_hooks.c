/*
 * qlog_hooks.c
 *		DROP DATABASE and DROP EXTENSION drop the queues of the database with their transaction; DROP ROLE is refused
 *		while a queue names the role; pg_backup_start() is told to qlog_backup.c.
 *
 * Where the extension is absent these hooks find no queue and do nothing.
 */
#include "qlog_hooks.h"

#include "postgres.h"

#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "catalog/pg_extension.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"

#include "qlog_backup.h"
#include "qlog_list.h"
#include "qlog_lookup.h"
#include "qlog_namelock.h"
#include "qlog_shmem.h"

static object_access_hook_type previous_hook = NULL;

/* DROP DATABASE: drop the queues of the database, which nobody is connected to, when this transaction commits. */
static void
drop_other_queues(Oid database)
{
	uint64	   *ids;
	uint32		n;

	/* Out of service: they are dropped when it is known that the database is gone (wrk_sweeper.c). */
	if (pg_atomic_read_u32(&qlog_shared->gate) == QLOG_GATE_FAILED)
		return;
	qlog_gate_check();
	qlog_lock_database(database);
	ids = qlog_list_queues(database, InvalidOid, &n);
	for (uint32 i = 0; i < n; i++)
	{
		QcQueueDrop drop = {.queue = ids[i]};

		(void) GetCurrentTransactionId();
		qlog_stage_effect(ids[i], QC_EFFECT_QUEUE_DROP, &drop);
	}
	pfree(ids);
}

/* DROP EXTENSION: drop all queues of this database, those that the transaction has made as well. */
static void
drop_own_queues(void)
{
	QlogListed *listed = palloc(sizeof(QlogListed));
	uint64	   *ids;
	uint32		n;

	qlog_gate_check();
	qlog_lock_database(MyDatabaseId);
	ids = qlog_list_visible(&n);
	for (uint32 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (qlog_list_get(ids[i], listed))
			qlog_drop_queue(&listed->queue, listed->name);
	}
	pfree(ids);
	pfree(listed);
}

/* Is this the newest thing that the transaction says about the queue? */
static bool
is_newest(uint32 i)
{
	for (uint32 k = i + 1; k < qlog_stage.nchanges; k++)
	{
		if (qlog_stage.changes[k].kind != QLOG_CHANGE_PARTITION &&
			qlog_stage.changes[k].queue.id == qlog_stage.changes[i].queue.id)
			return false;
	}
	return true;
}

/* Queues of any database that will name the role when this transaction commits. */
static uint32
count_naming(Oid role)
{
	uint32		n;
	uint64	   *ids = qlog_list_queues(InvalidOid, role, &n);
	uint32		naming = n;

	for (uint32 i = 0; i < qlog_stage.nchanges; i++)
	{
		const QlogChange *change = &qlog_stage.changes[i];

		if (change->kind == QLOG_CHANGE_PARTITION || !is_newest(i))
			continue;
		for (uint32 k = 0; k < n; k++)
			naming -= ids[k] == change->queue.id;
		naming += change->kind != QLOG_CHANGE_DROPPED && qlog_acl_names(&change->queue, role);
	}
	if (ids != NULL)
		pfree(ids);
	return naming;
}

/* Refuse to drop a role that owns queues or has privileges on some. */
static void
keep_role(Oid role)
{
	uint32		n;

	qlog_gate_check();

	/*
	 * DROP ROLE takes this lock after the hook; a queue that is being created for the role holds
	 * it shared.
	 */
	LockSharedObject(AuthIdRelationId, role, 0, AccessExclusiveLock);
	n = count_naming(role);
	if (n > 0)
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("role \"%s\" cannot be dropped because some objects depend on it",
						GetUserNameFromId(role, false)),
				 errdetail_plural("It owns or has privileges on %u queue.",
								  "It owns or has privileges on %u queues.", n, n),
				 errhint("Use DROP OWNED or REASSIGN OWNED, or queue_owner(), queue_revoke() and queue_drop(), in the database of the queues; the view qlog_queues of each database lists them.")));
}

static bool
is_ours(Oid extension)
{
	char	   *name = get_extension_name(extension);

	return name != NULL && strcmp(name, "qlog") == 0;
}

static void
on_object_access(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	if (previous_hook != NULL)
		previous_hook(access, class, object, sub, arg);
	if (access == OAT_FUNCTION_EXECUTE && object == F_PG_BACKUP_START)
		qlog_backup_session();
	if (access != OAT_DROP || IsBinaryUpgrade)
		return;
	if (class == DatabaseRelationId)
		drop_other_queues(object);
	else if (class == ExtensionRelationId && is_ours(object))
		drop_own_queues();
	else if (class == AuthIdRelationId)
		keep_role(object);
}

void
qlog_hooks_init(void)
{
	previous_hook = object_access_hook;
	object_access_hook = on_object_access;
}
