/*
 * qlog_lookup.c
 *		Names to queues, and their creation.
 *
 * A push that fills a gap in the catalog logs the creation as an entry of its own, also in the WAL: a joint transaction
 * of anybody may refer to it, and its WAL record must not come back without what it refers to.  Whoever meets the new
 * object for the first time passes through its lock, and so comes after that WAL record.
 */
#include "qlog_lookup.h"

#include "access/xact.h"
#include "miscadmin.h"

#include "qlog_acl.h"
#include "qlog_commit.h"
#include "qlog_guc.h"
#include "qlog_namelock.h"
#include "qlog_names.h"
#include "qlog_report.h"

#include "../core/qc_volume.h"


/* Copy out what functions need of a queue, without its ACL.  State lock. */
static void
describe(const QcQueue *from, QlogQueue *queue)
{
	queue->id = from->id;
	queue->log = from->log_id;
	queue->default_partition = from->default_partition_id;
	queue->owner = from->owner;
	queue->flags = from->flags;
	queue->own = false;
	queue->acl = NULL;
	queue->options = from->options;
}

/* Copy the elements of its ACL.	 State lock. */
static void
copy_grants(const QcQueue *from, QcQueueAlterItem *items)
{
	for (const QcGrant *grant = QC_AT(qlog_state, QcGrant, from->grants); grant != NULL;
		 grant = QC_AT(qlog_state, QcGrant, grant->next))
	{
		items->grantee = grant->grantee;
		items->grantor = grant->grantor;
		items->privileges = grant->privileges;
		items++;
	}
}

/* A queue of this database by name, or by id when name is NULL.	State lock. */
static const QcQueue *
find_queue(const QlogName *name, uint64 id)
{
	const QcQueue *found = name != NULL ?
		qc_queue_by_name(qlog_state, MyDatabaseId, name->text, name->len) :
		qc_queue_by_id(qlog_state, id);

	if (found == NULL || found->database != MyDatabaseId ||
		(found->state != QC_QUEUE_LIVE && found->state != QC_QUEUE_DROPPING))
		return NULL;
	return found;
}

/* Look into shared memory.	The ACL goes to the memory of names. */
static bool
read_queue(const QlogName *name, uint64 id, QlogQueue *queue)
{
	QcQueueAlterItem *items = NULL;
	uint32		max = 0;
	uint32		nitems = 0;
	bool		found;

	do
	{
		const QcQueue *from;

		if (nitems > max)
		{
			items = palloc(nitems * sizeof(QcQueueAlterItem));
			max = nitems;
		}
		LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
		from = find_queue(name, id);
		found = from != NULL;
		nitems = found ? from->ngrants : 0;
		if (found && nitems <= max)
		{
			describe(from, queue);
			copy_grants(from, items);
		}
		LWLockRelease(&qlog_shared->state_lock);
	} while (nitems > max);
	if (found && (queue->flags & QC_QUEUE_HAS_ACL) != 0)
	{
		MemoryContext caller;

		caller = MemoryContextSwitchTo(qlog_names_acl_context());
		queue->acl = qlog_acl_make(items, nitems);
		MemoryContextSwitchTo(caller);
	}
	return found;
}

bool
qlog_queue_find(QlogName name, QlogQueue *queue)
{
	const QlogChange *change = qlog_stage_find_queue(name);
	QlogNamed  *named;
	LOCKTAG		tag;
	bool		found;

	if (change != NULL)
	{
		*queue = change->queue;
		return change->kind == QLOG_CHANGE_CREATED || change->kind == QLOG_CHANGE_ALTERED;
	}
	named = qlog_names_find(QLOG_NAMES_QUEUES, name);
	if (named != NULL)
	{
		*queue = named->queue;
		return true;
	}
	tag = qlog_tag_queue(MyDatabaseId, name);
	(void) LockAcquire(&tag, RowShareLock, false, false);
	found = read_queue(&name, 0, queue);
	LockRelease(&tag, RowShareLock, false);
	if (found)
		qlog_names_enter(QLOG_NAMES_QUEUES, name)->queue = *queue;
	return found;
}

bool
qlog_queue_by_id(uint64 id, QlogQueue *queue)
{
	const QlogChange *change = qlog_stage_find_queue_id(id);
	QlogName	key = {(const char *) &id, sizeof(id)};
	QlogNamed  *named;

	if (change != NULL)
	{
		*queue = change->queue;
		return change->kind != QLOG_CHANGE_DROPPED;
	}
	named = qlog_names_find(QLOG_NAMES_BY_ID, key);
	if (named != NULL)
	{
		*queue = named->queue;
		return true;
	}
	if (!read_queue(NULL, id, queue))
		return false;
	qlog_names_enter(QLOG_NAMES_BY_ID, key)->queue = *queue;
	return true;
}

static void
no_such_queue(QlogName name)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("queue \"%.*s\" does not exist", QLOG_NAME(name)),
			 errhint("Create it with queue_create().")));
}

void
qlog_queue_require(QlogName name, QlogQueue *queue)
{
	if (!qlog_queue_find(name, queue))
		no_such_queue(name);
}

void
qlog_queue_get(QlogName name, AclMode privilege, QlogQueue *queue)
{
	qlog_queue_require(name, queue);
	qlog_acl_check(queue, privilege, name);
}

bool
qlog_queue_seen(uint64 id, Oid owner, uint8 flags)
{
	QlogQueue	queue = {.owner = owner};

	if (qlog_acl_monitors())
		return true;
	if ((flags & QC_QUEUE_HAS_ACL) && !qlog_queue_by_id(id, &queue))
		return false;
	return qlog_acl_sees(&queue);
}

int
qlog_queue_level(const QlogQueue *queue)
{
	int64		level = queue->options.value[QC_OPT_COMPRESSION_LEVEL];

	return level >= 0 ? (int) level : qlog_compression_level;
}

static void *
plan_alloc(void *context, size_t size)
{
	return MemoryContextAllocExtended(context, size, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
}

void
qlog_submit_catalog(QcEffectKind kind, const void *fixed)
{
	size_t		size = qc_effect_size(kind, fixed, 0);
	uint8	   *bytes = palloc(size);
	QcOp		op = {.kind = QC_OP_EFFECT, .effect = bytes, .effect_len = size};
	QcPlan	   *plan = palloc(sizeof(QcPlan));
	QcWriter	w;
	QcError		err;

	qc_writer_init(&w, bytes, size);
	qc_effect_put(&w, kind, fixed, 0);
	qc_error_clear(&err);
	if (qc_plan_build(plan, &op, 1, 0, QC_ENTRY_CARRIED, (uint64) qlog_segment_size * 1024 * 1024,
					  plan_alloc, CurrentMemoryContext, &err) != QC_OK)
		qlog_report(ERROR, &err, "could not log the creation");
	plan->immediate = true;
	plan->pid = (uint32) MyProcPid;
	(void) qlog_submit_plan(plan, true);
}

/* Ids for a new queue, which are never used again whatever becomes of it. */
static void
take_queue_ids(QlogQueue *queue)
{
	qlog_lock_state();
	queue->id = qlog_state->next_queue_id++;
	queue->default_partition = qlog_state->next_partition_id++;
	qlog_unlock_state();
	queue->log = qc_log_of_queue(qlog_state->shards, queue->id);
}

/* Fill in a new queue of the current role, and the effect that makes it.  options: encoded. */
static QcQueueCreate
new_queue(QlogName name, const QcOptions *options, QcStr encoded, QlogQueue *queue)
{
	QcQueueCreate create = {.database = MyDatabaseId, .owner = GetUserId(), .options = encoded};

	qlog_acl_lock_role(GetUserId());
	take_queue_ids(queue);
	queue->owner = create.owner;
	queue->flags = 0;
	queue->acl = NULL;
	queue->options = *options;
	create.queue = queue->id;
	create.log = queue->log;
	create.default_partition = queue->default_partition;
	create.name.bytes = (const uint8_t *) name.text;
	create.name.len = name.len;
	return create;
}

void
qlog_create_queue(QlogName name, const QcOptions *options)
{
	uint8		bytes[QC_OPTIONS_ENCODED_MAX];
	QcStr		encoded = {bytes, 0};
	QcWriter	w;
	QlogQueue	queue;
	QcQueueCreate create;

	qc_writer_init(&w, bytes, sizeof(bytes));
	qc_options_put(&w, options);
	encoded.len = (uint16) w.len;
	(void) GetCurrentTransactionId();
	create = new_queue(name, options, encoded, &queue);
	queue.own = true;
	qlog_stage_effect(queue.id, QC_EFFECT_QUEUE_CREATE, &create);
	qlog_stage_change(QLOG_CHANGE_CREATED, &queue, 0, name);
}

void
qlog_drop_queue(const QlogQueue *queue, QlogName name)
{
	QcQueueDrop drop = {.queue = queue->id};

	(void) GetCurrentTransactionId();
	qlog_stage_effect(queue->id, QC_EFFECT_QUEUE_DROP, &drop);
	qlog_stage_change(QLOG_CHANGE_DROPPED, queue, 0, name);
}

/* Make a queue with default options, visible to everybody from now on. */
static void
auto_create(QlogName name, QlogQueue *queue)
{
	QcStr		nothing = {NULL, 0};
	QcOptions	options;
	QcQueueCreate create;

	qc_options_default(&options);
	create = new_queue(name, &options, nothing, queue);
	queue->own = false;
	qlog_log_make(queue->log);
	PG_TRY();
	{
		qlog_submit_catalog(QC_EFFECT_QUEUE_CREATE, &create);
	}
	PG_CATCH();
	{
		qlog_log_abandon(queue->log);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

/*
 * Refuse at the call what would be refused at COMMIT in any case.	What this and other transactions have staged is counted
 * when they commit.
 */
static void
check_full(const QlogQueue *queue, QlogName name)
{
	uint64		max = (uint64) queue->options.value[QC_OPT_MAX_BYTES];
	uint64		bytes;
	QcQueue    *found;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	found = qc_queue_by_id(qlog_state, queue->id);
	bytes = found == NULL ? 0 : qc_volume_queue(qlog_state, found);
	LWLockRelease(&qlog_shared->state_lock);
	if (bytes >= max)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("queue \"%.*s\" is full", QLOG_NAME(name)),
				 errdetail("It holds " UINT64_FORMAT " bytes of messages, its max_bytes are "
						   UINT64_FORMAT ".", bytes, max),
				 errhint("Let messages be popped and acknowledged, or raise its option max_bytes.")));
}

/* May the current role push to the queue now? */
static void
check_push(const QlogQueue *queue, QlogName name)
{
	qlog_acl_check(queue, QLOG_PUSH, name);
	if (queue->flags & QC_QUEUE_NO_PUSH)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("queue \"%.*s\" is paused", QLOG_NAME(name)),
				 errdetail("It takes no messages until queue_resume() is called.")));
	if (!queue->own && queue->options.value[QC_OPT_MAX_BYTES] != QC_FOREVER)
		check_full(queue, name);
}

void
qlog_queue_for_push(QlogName name, QlogQueue *queue)
{
	LOCKTAG		database;
	LOCKTAG		tag;

	if (qlog_queue_find(name, queue))
	{
		check_push(queue, name);
		return;
	}
	if (!qlog_auto_create)
		no_such_queue(name);
	qlog_acl_check_create(name);
	if (qlog_stage_find_queue(name) != NULL)
	{
		QcOptions	options;

		/*
		 * This transaction has dropped the queue: the new one cannot come before that is
		 * committed.
		 */
		qc_options_default(&options);
		qlog_create_queue(name, &options);
		(void) qlog_queue_find(name, queue);
		return;
	}
	database = qlog_tag_database(MyDatabaseId);
	tag = qlog_tag_queue(MyDatabaseId, name);
	(void) LockAcquire(&database, RowExclusiveLock, false, false);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	if (!read_queue(&name, 0, queue))
		auto_create(name, queue);
	LockRelease(&tag, ExclusiveLock, false);
	LockRelease(&database, RowExclusiveLock, false);
	check_push(queue, name);
	qlog_names_enter(QLOG_NAMES_QUEUES, name)->queue = *queue;
}

void
qlog_queue_hold(const QlogQueue *queue, QlogName name)
{
	LOCKTAG		database = qlog_tag_database(MyDatabaseId);
	LOCKTAG		tag = qlog_tag_queue_id(queue->id);
	QcQueue    *found;
	bool		live;

	(void) LockAcquire(&database, RowExclusiveLock, false, false);
	(void) LockAcquire(&tag, RowShareLock, false, false);
	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	found = qc_queue_by_id(qlog_state, queue->id);
	live = found != NULL && found->state == QC_QUEUE_LIVE;
	LWLockRelease(&qlog_shared->state_lock);
	if (!live)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("queue \"%.*s\" was dropped", QLOG_NAME(name))));
}

void
qlog_queue_release(const QlogQueue *queue)
{
	LOCKTAG		database = qlog_tag_database(MyDatabaseId);
	LOCKTAG		tag = qlog_tag_queue_id(queue->id);

	LockRelease(&tag, RowShareLock, false);
	LockRelease(&database, RowExclusiveLock, false);
}
