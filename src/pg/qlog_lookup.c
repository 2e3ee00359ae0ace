/*
 * qlog_lookup.c
 *		Names to ids, the backend's memory of them, and creations.
 *
 * A push that fills a gap in the catalog logs the creation as an entry of its own, also in the WAL: a joint transaction
 * of anybody may refer to it, and its WAL record must not come back without what it refers to.  Whoever meets the new
 * object for the first time passes through its lock, and so comes after that WAL record.
 */
#include "qlog_lookup.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "qlog_acl.h"
#include "qlog_commit.h"
#include "qlog_guc.h"
#include "qlog_report.h"

#include "../core/qc_delay.h"
#include "../core/qc_volume.h"

#define CACHE_MAX	16384		/* names that a backend remembers */
#define BY_ID		PG_UINT64_MAX	/* scope of queues by id; the name is its bytes */
#define LANE_NAME	"\001dead"	/* no partition can have it: what a dead lane's lock is hashed
								 * from, with its group */
#define DELAY_NAME	"\001delay" /* likewise, of the delay lane */

/* field 4 of our lock tags */
typedef enum LockClass
{
	LOCK_DATABASE = 0x7101,
	LOCK_QUEUE,
	LOCK_PARTITION,
	LOCK_GROUP,
	LOCK_QUEUE_ID,
	LOCK_LANE
} LockClass;

typedef struct CacheKey
{
	uint64		scope;			/* 0 = queue of this database, BY_ID; otherwise partition of that
								 * queue */
	uint32		len;
	char		name[QLOG_NAME_MAX];
} CacheKey;

typedef struct CacheEntry
{
	CacheKey	key;
	QlogQueue	queue;
	uint64		partition;
} CacheEntry;

static HTAB *cache;
static MemoryContext cache_context;
static uint32 cache_generation;
static bool cache_has_acl;		/* somebody may hold a pointer into the memory */

static uint32
cache_hash(const void *key, Size size)
{
	const CacheKey *k = key;

	(void) size;
	return (uint32) qc_hash_name(k->scope, k->name, k->len);
}

static int
cache_match(const void *a, const void *b, Size size)
{
	const CacheKey *x = a;
	const CacheKey *y = b;

	(void) size;
	return x->scope != y->scope || x->len != y->len || memcmp(x->name, y->name, x->len) != 0;
}

static void *
cache_copy(void *to, const void *from, Size size)
{
	const CacheKey *key = from;

	(void) size;
	return memcpy(to, from, offsetof(CacheKey, name) + key->len);
}

/*
 * The memory of names, emptied when a queue has changed or it is full.	Somebody may still look at an ACL of the old one:
 * it goes at the end of the transaction.
 */
static HTAB *
names(void)
{
	uint32		generation = pg_atomic_read_u32(&qlog_shared->catalog_generation);
	HASHCTL		ctl = {.keysize = sizeof(CacheKey), .entrysize = sizeof(CacheEntry),
		.hash = cache_hash, .match = cache_match, .keycopy = cache_copy};

	if (cache != NULL &&
		(generation != cache_generation || hash_get_num_entries(cache) >= CACHE_MAX))
	{
		cache = NULL;
		if (cache_has_acl)
			MemoryContextSetParent(cache_context, TopTransactionContext);
		else
			MemoryContextDelete(cache_context);
		cache_context = NULL;
		cache_has_acl = false;
	}
	if (cache == NULL)
	{
		if (cache_context == NULL)
			cache_context = AllocSetContextCreate(TopMemoryContext, "qlog names",
												  ALLOCSET_DEFAULT_SIZES);
		ctl.hcxt = cache_context;
		cache = hash_create("qlog names", 64, &ctl,
							HASH_ELEM | HASH_FUNCTION | HASH_COMPARE | HASH_KEYCOPY | HASH_CONTEXT);
		cache_generation = generation;
	}
	return cache;
}

static CacheEntry *
cached(uint64 scope, QlogName name, HASHACTION action)
{
	CacheKey	key;

	key.scope = scope;
	key.len = name.len;
	memcpy(key.name, name.text, name.len);
	return hash_search(names(), &key, action, NULL);
}

static LOCKTAG
lock_tag(LockClass class, Oid database, uint64 hash)
{
	LOCKTAG		tag = {.locktag_field1 = database, .locktag_field2 = (uint32) (hash >> 32),
		.locktag_field3 = (uint32) hash, .locktag_field4 = class,
		.locktag_type = LOCKTAG_USERLOCK, .locktag_lockmethodid = DEFAULT_LOCKMETHOD};

	return tag;
}

static LOCKTAG
queue_tag_in(Oid database, QlogName name)
{
	return lock_tag(LOCK_QUEUE, database, qc_hash_name(database, name.text, name.len));
}

static LOCKTAG
queue_tag(QlogName name)
{
	return queue_tag_in(MyDatabaseId, name);
}

static LOCKTAG
partition_tag(uint64 queue, QlogName name)
{
	return lock_tag(LOCK_PARTITION, MyDatabaseId, qc_hash_name(queue, name.text, name.len));
}

static LOCKTAG
group_tag(uint64 queue, QlogName name)
{
	return lock_tag(LOCK_GROUP, MyDatabaseId, qc_hash_name(queue, name.text, name.len));
}

void
qlog_group_lock(uint64 queue, QlogName name)
{
	LOCKTAG		tag = group_tag(queue, name);

	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

void
qlog_group_unlock(uint64 queue, QlogName name)
{
	LOCKTAG		tag = group_tag(queue, name);

	LockRelease(&tag, ExclusiveLock, false);
}

void
qlog_lock_database(Oid database)
{
	LOCKTAG		tag = lock_tag(LOCK_DATABASE, database, 0);

	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

void
qlog_lock_name(QlogName name, LOCKMODE mode)
{
	LOCKTAG		database = lock_tag(LOCK_DATABASE, MyDatabaseId, 0);
	LOCKTAG		tag = queue_tag(name);

	(void) LockAcquire(&database, RowExclusiveLock, false, false);
	(void) LockAcquire(&tag, mode, false, false);
}

void
qlog_lock_queue(const QlogQueue *queue)
{
	LOCKTAG		tag = lock_tag(LOCK_QUEUE_ID, MyDatabaseId, queue->id);

	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

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

		(void) names();
		caller = MemoryContextSwitchTo(cache_context);
		cache_has_acl = true;
		queue->acl = qlog_acl_make(items, nitems);
		MemoryContextSwitchTo(caller);
	}
	return found;
}

static uint64
read_partition(uint64 queue_id, QlogName name, uint8 lane)
{
	QcQueue    *queue;
	QcPartition *partition = NULL;
	uint64		id;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	queue = qc_queue_by_id(qlog_state, queue_id);
	if (queue != NULL)
		partition = lane == QC_LANE_DELAY ? qc_delay_lane(qlog_state, queue) :
			qc_partition_by_name(qlog_state, queue, name.text, name.len);
	id = partition == NULL ? 0 : partition->id;
	LWLockRelease(&qlog_shared->state_lock);
	return id;
}

bool
qlog_queue_find(QlogName name, QlogQueue *queue)
{
	const QlogChange *change = qlog_stage_find_queue(name);
	CacheEntry *entry;
	LOCKTAG		tag;
	bool		found;

	if (change != NULL)
	{
		*queue = change->queue;
		return change->kind == QLOG_CHANGE_CREATED || change->kind == QLOG_CHANGE_ALTERED;
	}
	entry = cached(0, name, HASH_FIND);
	if (entry != NULL)
	{
		*queue = entry->queue;
		return true;
	}
	tag = queue_tag(name);
	(void) LockAcquire(&tag, RowShareLock, false, false);
	found = read_queue(&name, 0, queue);
	LockRelease(&tag, RowShareLock, false);
	if (found)
		cached(0, name, HASH_ENTER)->queue = *queue;
	return found;
}

bool
qlog_queue_by_id(uint64 id, QlogQueue *queue)
{
	const QlogChange *change = qlog_stage_find_queue_id(id);
	QlogName	key = {(const char *) &id, sizeof(id)};
	CacheEntry *entry;

	if (change != NULL)
	{
		*queue = change->queue;
		return change->kind != QLOG_CHANGE_DROPPED;
	}
	entry = cached(BY_ID, key, HASH_FIND);
	if (entry != NULL)
	{
		*queue = entry->queue;
		return true;
	}
	if (!read_queue(NULL, id, queue))
		return false;
	cached(BY_ID, key, HASH_ENTER)->queue = *queue;
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

static uint64
take_partition_id(void)
{
	uint64		id;

	qlog_lock_state();
	id = qlog_state->next_partition_id++;
	qlog_unlock_state();
	return id;
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
	database = lock_tag(LOCK_DATABASE, MyDatabaseId, 0);
	tag = queue_tag(name);
	(void) LockAcquire(&database, RowExclusiveLock, false, false);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	if (!read_queue(&name, 0, queue))
		auto_create(name, queue);
	LockRelease(&tag, ExclusiveLock, false);
	LockRelease(&database, RowExclusiveLock, false);
	check_push(queue, name);
	cached(0, name, HASH_ENTER)->queue = *queue;
}

void
qlog_queue_hold(const QlogQueue *queue, QlogName name)
{
	LOCKTAG		database = lock_tag(LOCK_DATABASE, MyDatabaseId, 0);
	LOCKTAG		tag = lock_tag(LOCK_QUEUE_ID, MyDatabaseId, queue->id);
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
	LOCKTAG		database = lock_tag(LOCK_DATABASE, MyDatabaseId, 0);
	LOCKTAG		tag = lock_tag(LOCK_QUEUE_ID, MyDatabaseId, queue->id);

	LockRelease(&tag, RowShareLock, false);
	LockRelease(&database, RowExclusiveLock, false);
}

/* A partition of a committed queue: look, and make it when it is not there. */
static uint64
find_or_make_partition(const QlogQueue *queue, QlogName queue_name, QlogName name, uint8 lane)
{
	LOCKTAG		tag = partition_tag(queue->id, name);
	uint64		id;

	(void) LockAcquire(&tag, ShareLock, false, false);
	id = read_partition(queue->id, name, lane);
	LockRelease(&tag, ShareLock, false);
	if (id != 0)
		return id;
	qlog_queue_hold(queue, queue_name);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	id = read_partition(queue->id, name, lane);
	if (id == 0)
	{
		QcPartitionCreate create = {.queue = queue->id, .lane = lane};

		id = create.partition = take_partition_id();
		create.name.bytes = (const uint8_t *) name.text;
		create.name.len = lane == QC_LANE_NONE ? name.len : 0;
		qlog_submit_catalog(QC_EFFECT_PARTITION_CREATE, &create);
	}
	LockRelease(&tag, ExclusiveLock, false);
	qlog_queue_release(queue);
	return id;
}

/* A partition of a queue that this transaction creates: made with it. */
static uint64
own_partition(const QlogQueue *queue, QlogName name, uint8 lane)
{
	QcPartitionCreate create = {.queue = queue->id, .lane = lane};
	uint64		id = qlog_stage_find_partition(queue->id, name);

	if (id != 0)
		return id;
	create.partition = take_partition_id();
	create.name.bytes = (const uint8_t *) name.text;
	create.name.len = lane == QC_LANE_NONE ? name.len : 0;
	qlog_stage_effect(queue->id, QC_EFFECT_PARTITION_CREATE, &create);
	qlog_stage_change(QLOG_CHANGE_PARTITION, queue, create.partition, name);
	return create.partition;
}

/* Id of a partition that is pushed to, or of the delay lane. */
static uint64
partition_id(const QlogQueue *queue, QlogName queue_name, QlogName name, uint8 lane)
{
	CacheEntry *entry;

	if (queue->own)
		return own_partition(queue, name, lane);
	entry = cached(queue->id, name, HASH_FIND);
	if (entry == NULL)
	{
		uint64		id = find_or_make_partition(queue, queue_name, name, lane);

		entry = cached(queue->id, name, HASH_ENTER);
		entry->partition = id;
	}
	return entry->partition;
}

void
qlog_partition_for_push(const QlogQueue *queue, QlogName queue_name, QlogName name,
						QlogTarget *target)
{
	target->queue = queue->id;
	target->log = queue->log;
	target->level = qlog_queue_level(queue);
	target->dedup_us = queue->options.value[QC_OPT_DEDUP_WINDOW];
	target->partition = name.len == 0 ? queue->default_partition :
		partition_id(queue, queue_name, name, QC_LANE_NONE);
}

uint64
qlog_delay_lane(const QlogQueue *queue, QlogName queue_name)
{
	QlogName	name = {DELAY_NAME, sizeof(DELAY_NAME) - 1};

	return partition_id(queue, queue_name, name, QC_LANE_DELAY);
}

/* A group, as whoever makes its dead lane sees it. */
typedef struct LaneGroup
{
	bool		live;			/* and so is the queue, under its name */
	uint64		lane;			/* 0 = it has none */
	uint16		name_len;
	char		name[QLOG_NAME_MAX];
} LaneGroup;

static void
read_lane_group(uint64 queue_id, QlogName name, uint64 group_id, LaneGroup *found)
{
	QcQueue    *queue;
	QcGroup    *group = NULL;

	found->live = false;
	found->lane = 0;
	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	queue = qc_queue_by_id(qlog_state, queue_id);
	if (queue != NULL && queue->state == QC_QUEUE_LIVE && queue->name_len == name.len &&
		memcmp(qc_name_at(qlog_state, queue->name), name.text, name.len) == 0)
		group = qc_group_by_id(qlog_state, queue, group_id);
	if (group != NULL && group->state == QC_GROUP_LIVE)
	{
		found->live = true;
		found->lane = group->dead_partition;
		found->name_len = group->name_len;
		memcpy(found->name, qc_name_at(qlog_state, group->name), group->name_len);
	}
	LWLockRelease(&qlog_shared->state_lock);
}

/*
 * Under the lane's lock: find the lane, or make it.  Making it locks the group as well: a seek in between would give the
 * group another id, and leave the lane to none.
 */
static bool
find_or_make_lane(Oid database, uint64 queue, QlogName name, uint64 group_id, bool wait, uint64 *lane)
{
	QcPartitionCreate create = {.queue = queue, .lane = QC_LANE_DEAD, .group = group_id};
	LaneGroup	group;
	LOCKTAG		tag;

	read_lane_group(queue, name, group_id, &group);
	*lane = group.lane;
	if (!group.live || group.lane != 0)
		return group.live;
	tag = lock_tag(LOCK_GROUP, database, qc_hash_name(queue, group.name, group.name_len));
	if (LockAcquire(&tag, ExclusiveLock, false, !wait) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	read_lane_group(queue, name, group_id, &group);
	if (group.live)
	{
		*lane = create.partition = take_partition_id();
		qlog_submit_catalog(QC_EFFECT_PARTITION_CREATE, &create);
	}
	LockRelease(&tag, ExclusiveLock, false);
	return group.live;
}

void
qlog_lock_lane(uint64 lane)
{
	LOCKTAG		tag = lock_tag(LOCK_LANE, MyDatabaseId, lane);

	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

bool
qlog_dead_lane(Oid database, uint64 queue, QlogName name, uint64 group, bool wait, uint64 *lane)
{
	char		lane_name[sizeof(LANE_NAME) - 1 + sizeof(uint64)];
	LOCKTAG		tags[3] = {lock_tag(LOCK_DATABASE, database, 0), queue_tag_in(database, name)};
	static const LOCKMODE modes[3] = {RowExclusiveLock, RowShareLock, ExclusiveLock};
	int			n = 0;
	bool		found = false;

	memcpy(lane_name, LANE_NAME, sizeof(LANE_NAME) - 1);
	memcpy(lane_name + sizeof(LANE_NAME) - 1, &group, sizeof(uint64));
	tags[2] = lock_tag(LOCK_PARTITION, database, qc_hash_name(queue, lane_name, sizeof(lane_name)));

	/*
	 * A lane that is there may still have no WAL record: whoever makes it holds its lock until
	 * then.
	 */
	while (n < 3 && LockAcquire(&tags[n], modes[n], false, !wait) != LOCKACQUIRE_NOT_AVAIL)
		n++;
	if (n == 3)
		found = find_or_make_lane(database, queue, name, group, wait, lane);
	while (n-- > 0)
		LockRelease(&tags[n], modes[n], false);
	return found;
}
