/*
 * qlog_hooks.c
 *		DROP DATABASE and DROP EXTENSION drop the queues of the database with their transaction; DROP ROLE is refused
 *		while a queue names the role.
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
#include "utils/array.h"

#include "qlog_lookup.h"
#include "qlog_shmem.h"

#include "../core/qc_alter.h"

static object_access_hook_type previous_hook = NULL;

/* Is it a queue of the database (InvalidOid: of any) that names the role (InvalidOid: any)?	State lock. */
static bool
is_wanted(const QcQueue *queue, Oid database, Oid role)
{
	return (queue->state == QC_QUEUE_LIVE || queue->state == QC_QUEUE_DROPPING) &&
		(!OidIsValid(database) || queue->database == database) &&
		(!OidIsValid(role) || qc_queue_names_role(qlog_state, queue, role));
}

/* Ids of the queues of a database (InvalidOid: of any) that a role owns or has a privilege on (InvalidOid: of all roles). */
static uint64 *
queues_of(Oid database, Oid role, uint32 *n)
{
	uint64	   *ids = NULL;
	uint32		max = 0;
	uint32		found;

	for (;;)
	{
		found = 0;
		LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
		for (QcQueue *queue = QC_AT(qlog_state, QcQueue, qlog_state->queues.head); queue != NULL;
			 queue = QC_AT(qlog_state, QcQueue, queue->all.next))
		{
			if (!is_wanted(queue, database, role))
				continue;
			if (found < max)
				ids[found] = queue->id;
			found++;
		}
		LWLockRelease(&qlog_shared->state_lock);
		if (found <= max)
			break;
		max = found + 64;
		ids = ids == NULL ? palloc(max * sizeof(uint64)) : repalloc(ids, max * sizeof(uint64));
	}
	*n = found;
	return ids;
}

/* Drop the queues of a database when this transaction commits. */
static void
drop_queues(Oid database)
{
	uint64	   *ids;
	uint32		n;

	qlog_gate_check();
	qlog_lock_database(database);
	ids = queues_of(database, InvalidOid, &n);
	for (uint32 i = 0; i < n; i++)
	{
		QcQueueDrop drop = {.queue = ids[i]};

		(void) GetCurrentTransactionId();
		qlog_stage_effect(ids[i], QC_EFFECT_QUEUE_DROP, &drop);
	}
	if (ids != NULL)
		pfree(ids);
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

static bool
names_role(const QlogQueue *queue, Oid role)
{
	if (queue->owner == role)
		return true;
	for (int i = 0; queue->acl != NULL && i < ACL_NUM(queue->acl); i++)
	{
		if (ACL_DAT(queue->acl)[i].ai_grantee == role)
			return true;
	}
	return false;
}

/* Queues of any database that will name the role when this transaction commits. */
static uint32
count_naming(Oid role)
{
	uint32		n;
	uint64	   *ids = queues_of(InvalidOid, role, &n);
	uint32		naming = n;

	for (uint32 i = 0; i < qlog_stage.nchanges; i++)
	{
		const QlogChange *change = &qlog_stage.changes[i];

		if (change->kind == QLOG_CHANGE_PARTITION || !is_newest(i))
			continue;
		for (uint32 k = 0; k < n; k++)
			naming -= ids[k] == change->queue.id;
		naming += change->kind != QLOG_CHANGE_DROPPED && names_role(&change->queue, role);
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
				 errhint("Use queue_owner(), queue_revoke() or queue_drop() first; the view qlog_queues of each database lists them.")));
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
	if (access != OAT_DROP || IsBinaryUpgrade)
		return;
	if (class == DatabaseRelationId)
		drop_queues(object);
	else if (class == ExtensionRelationId && is_ours(object))
		drop_queues(MyDatabaseId);
	else if (class == AuthIdRelationId)
		keep_role(object);
}

void
qlog_hooks_init(void)
{
	previous_hook = object_access_hook;
	object_access_hook = on_object_access;
}
