/*
 * qlog_namelock.h
 *		Heavyweight locks on names: who may create, change and drop what at the same time.
 *
 * Concurrent changes of one name are serialized by a heavyweight lock on (database, hash of the name), held to the end of
 * the transaction: ExclusiveLock by whoever makes the name, drops it or takes it away, ShareUpdateExclusiveLock by whoever
 * changes anything else of the queue, so that uses of the queue (RowShareLock, for a moment) go on beside it. What a push
 * makes by itself is locked only for the moment of the creation.  Its tag is of class USERLOCK, which PostgreSQL has kept unused since contrib/userlock went away: it
 * can be seen in pg_locks, takes part in deadlock detection, and never meets an advisory lock of an application
 * (class ADVISORY) or a lock of the server. Two names with the same hash only wait for each other.
 */
#ifndef QLOG_NAMELOCK_H
#define QLOG_NAMELOCK_H

#include "qlog_stage.h"

#include "storage/lock.h"

/* Tags, for those who lock only for a moment.  Order: database, queue by name, queue by id, partition or group. */
extern LOCKTAG qlog_tag_database(Oid database);
extern LOCKTAG qlog_tag_queue(Oid database, QlogName name);
extern LOCKTAG qlog_tag_queue_id(uint64 queue);
extern LOCKTAG qlog_tag_partition(Oid database, uint64 queue, QlogName name);
extern LOCKTAG qlog_tag_group(Oid database, uint64 queue, QlogName name);

/* Wait for others that change this name; the lock is kept until the transaction ends. */
extern void qlog_lock_name(QlogName name, LOCKMODE mode);

/* Wait for those who add something to the queue, by whatever name; kept until the transaction ends: before a drop. */
extern void qlog_lock_queue(const QlogQueue *queue);

/* Wait for others that change a consumer group of this name; kept until the transaction ends, or given back. */
extern void qlog_group_lock(uint64 queue, QlogName name);
extern void qlog_group_unlock(uint64 queue, QlogName name);

/* Nobody else creates or drops a queue of the database until the transaction ends. */
extern void qlog_lock_database(Oid database);

/* Nobody else takes dead letters out of the lane until the transaction ends. */
extern void qlog_lock_lane(uint64 lane);

#endif							/* QLOG_NAMELOCK_H */
