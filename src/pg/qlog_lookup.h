/*
 * qlog_lookup.h
 *		From names to queues and partitions, and making those that do not exist.
 *
 * Names are resolved in shared memory and remembered per backend; ids are never used again, so what is remembered can
 * only be out of date, never be somebody else's.  What the transaction itself has created or dropped comes first.
 *
 * Concurrent changes of one name are serialized by a heavyweight lock on (database, hash of the name), held to the end of
 * the transaction: ExclusiveLock by whoever makes the name, drops it or takes it away, ShareUpdateExclusiveLock by whoever
 * changes anything else of the queue, so that uses of the queue (RowShareLock, for a moment) go on beside it.	What a push
 * makes by itself is locked only for the moment of the creation.  Its tag is of class USERLOCK, which PostgreSQL has kept unused since contrib/userlock went away: it
 * can be seen in pg_locks, takes part in deadlock detection, and never meets an advisory lock of an application
 * (class ADVISORY) or a lock of the server.	Two names with the same hash only wait for each other.
 */
#ifndef QLOG_LOOKUP_H
#define QLOG_LOOKUP_H

#include "qlog_acl.h"
#include "qlog_stage.h"

#include "storage/lockdefs.h"

/* Does the queue exist for this transaction?	Fills *queue. No privilege is checked. */
extern bool qlog_queue_find(QlogName name, QlogQueue *queue);

/* The queue: 42704 with a HINT. No privilege is checked. */
extern void qlog_queue_require(QlogName name, QlogQueue *queue);

/* The queue, on which the current role has the privilege (QLOG_POP ...): 42704 with a HINT, 42501. */
extern void qlog_queue_get(QlogName name, AclMode privilege, QlogQueue *queue);

/* A queue of this database by its id, as this transaction sees it.	false = it is gone.  No privilege is checked. */
extern bool qlog_queue_by_id(uint64 id, QlogQueue *queue);

/*
 * The queue to push to: 42501 without the privilege, 55000 when pushes are paused.	Made with default options when it is missing, qlog.auto_create is on and the role may create
 * queues in the database; otherwise as qlog_queue_get.  The creation commits at once.
 */
extern void qlog_queue_for_push(QlogName name, QlogQueue *queue);

/* The partition to push to, made when it is missing (at once, or with the queue when that is not committed). */
extern void qlog_partition_for_push(const QlogQueue *queue, QlogName queue_name, QlogName name,
									QlogTarget *target);

/*
 * The dead lane of a group, made at once when it is missing; its id.  false = the queue or the group is gone, or, unless
 * wait is set, somebody is changing it.	Inside a transaction; may raise what a creation raises.
 */
extern bool qlog_dead_lane(Oid database, uint64 queue, QlogName name, uint64 group, bool wait,
						   uint64 *lane);

/* Nobody else takes dead letters out of the lane until the transaction ends. */
extern void qlog_lock_lane(uint64 lane);

/* Id of the queue's lane for delayed messages, made when it is missing, as a partition is. */
extern uint64 qlog_delay_lane(const QlogQueue *queue, QlogName queue_name);

/* qlog_acl_sees for a queue of which this was copied out of the state. */
extern bool qlog_queue_seen(uint64 id, Oid owner, uint8 flags);

/* zstd level for pushes to the queue. */
extern int	qlog_queue_level(const QlogQueue *queue);

/* Wait for others that change this name; the lock is kept until the transaction ends. */
extern void qlog_lock_name(QlogName name, LOCKMODE mode);

/* Wait for those who add something to the queue, by whatever name; kept until the transaction ends: before a drop. */
extern void qlog_lock_queue(const QlogQueue *queue);

/*
 * Lock a committed queue so that nobody drops it while something is added to it, whose entry could not be applied then.
 * 42704 when it is gone.
 */
extern void qlog_queue_hold(const QlogQueue *queue, QlogName name);
extern void qlog_queue_release(const QlogQueue *queue);

/* Wait for others that change a consumer group of this name; kept until the transaction ends, or given back. */
extern void qlog_group_lock(uint64 queue, QlogName name);
extern void qlog_group_unlock(uint64 queue, QlogName name);

/* Log one catalog effect at once, in the WAL too. */
extern void qlog_submit_catalog(QcEffectKind kind, const void *fixed);

/* Nobody else creates or drops a queue of the database until the transaction ends. */
extern void qlog_lock_database(Oid database);

/* Stage the creation: new ids, and an xid, since PostgreSQL's commit decides it. */
extern void qlog_create_queue(QlogName name, const QcOptions *options);

/* Stage the drop. */
extern void qlog_drop_queue(const QlogQueue *queue, QlogName name);

#endif							/* QLOG_LOOKUP_H */
