/*
 * qlog_namelock.c
 *		Heavyweight locks on databases, names and ids of queues, partitions and groups.
 */
#include "qlog_namelock.h"

#include "miscadmin.h"

#include "../core/qc_state.h"

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

static LOCKTAG
lock_tag(LockClass class, Oid database, uint64 hash)
{
	LOCKTAG		tag = {.locktag_field1 = database, .locktag_field2 = (uint32) (hash >> 32),
		.locktag_field3 = (uint32) hash, .locktag_field4 = class,
		.locktag_type = LOCKTAG_USERLOCK, .locktag_lockmethodid = DEFAULT_LOCKMETHOD};

	return tag;
}

LOCKTAG
qlog_tag_database(Oid database)
{
	return lock_tag(LOCK_DATABASE, database, 0);
}

LOCKTAG
qlog_tag_queue(Oid database, QlogName name)
{
	return lock_tag(LOCK_QUEUE, database, qc_hash_name(database, name.text, name.len));
}

LOCKTAG
qlog_tag_queue_id(uint64 queue)
{
	return lock_tag(LOCK_QUEUE_ID, MyDatabaseId, queue);
}

LOCKTAG
qlog_tag_partition(Oid database, uint64 queue, QlogName name)
{
	return lock_tag(LOCK_PARTITION, database, qc_hash_name(queue, name.text, name.len));
}

LOCKTAG
qlog_tag_group(Oid database, uint64 queue, QlogName name)
{
	return lock_tag(LOCK_GROUP, database, qc_hash_name(queue, name.text, name.len));
}

void
qlog_group_lock(uint64 queue, QlogName name)
{
	LOCKTAG		tag = qlog_tag_group(MyDatabaseId, queue, name);

	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

void
qlog_group_unlock(uint64 queue, QlogName name)
{
	LOCKTAG		tag = qlog_tag_group(MyDatabaseId, queue, name);

	LockRelease(&tag, ExclusiveLock, false);
}

void
qlog_lock_database(Oid database)
{
	LOCKTAG		tag = qlog_tag_database(database);

	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

void
qlog_lock_name(QlogName name, LOCKMODE mode)
{
	LOCKTAG		database = qlog_tag_database(MyDatabaseId);
	LOCKTAG		tag = qlog_tag_queue(MyDatabaseId, name);

	(void) LockAcquire(&database, RowExclusiveLock, false, false);
	(void) LockAcquire(&tag, mode, false, false);
}

void
qlog_lock_queue(const QlogQueue *queue)
{
	LOCKTAG		tag = qlog_tag_queue_id(queue->id);

	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

void
qlog_lock_lane(uint64 lane)
{
	LOCKTAG		tag = lock_tag(LOCK_LANE, MyDatabaseId, lane);

	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}
