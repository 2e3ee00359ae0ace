/*
 * qlog_hooks.c
 *		DROP DATABASE and DROP EXTENSION drop the queues of the database with their transaction; DROP ROLE is refused
 *		while the role owns queues.
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

#include "qlog_lookup.h"
#include "qlog_shmem.h"

static object_access_hook_type previous_hook = NULL;

/* Ids of the queues of a database (InvalidOid: of any) that belong to a role (InvalidOid: to any). */
static uint64 *
queues_of(Oid database, Oid owner, uint32 *n)
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
			if ((OidIsValid(database) && queue->database != database) ||
				(OidIsValid(owner) && queue->owner != owner) ||
				(queue->state != QC_QUEUE_LIVE && queue->state != QC_QUEUE_DROPPING))
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

/* Queues that the role will own when this transaction commits, of any database. */
static uint32
count_owned(Oid role)
{
	uint32		n;
	uint64	   *ids = queues_of(InvalidOid, role, &n);
	uint32		owned = n;

	for (uint32 i = 0; i < qlog_stage.nchanges; i++)
	{
		const QlogChange *change = &qlog_stage.changes[i];

		if (change->queue.owner != role)
			continue;
		if (change->kind == QLOG_CHANGE_CREATED)
			owned++;
		else if (change->kind == QLOG_CHANGE_DROPPED)
			owned--;
	}
	if (ids != NULL)
		pfree(ids);
	return owned;
}

/* Refuse to drop a role that owns queues. */
static void
keep_owner(Oid role)
{
	uint32		n;

	qlog_gate_check();

	/*
	 * DROP ROLE takes this lock after the hook; a queue that is being created for the role holds
	 * it shared.
	 */
	LockSharedObject(AuthIdRelationId, role, 0, AccessExclusiveLock);
	n = count_owned(role);
	if (n > 0)
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("role \"%s\" cannot be dropped because some objects depend on it",
						GetUserNameFromId(role, false)),
				 errdetail_plural("It owns %u queue.", "It owns %u queues.", n, n),
				 errhint("Drop the queues first; the view qlog_queues of each database lists them.")));
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
		keep_owner(object);
}

void
qlog_hooks_init(void)
{
	previous_hook = object_access_hook;
	object_access_hook = on_object_access;
}
