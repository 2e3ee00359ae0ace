/*
 * qlog_lookup.h
 *		From names to queues and partitions, and making those that do not exist.
 *
 * Names are resolved in shared memory and remembered per backend; ids are never used again, so what is remembered can
 * only be out of date, never be somebody else's.  What the transaction itself has created or dropped comes first.
 *
 * Concurrent creations and drops of one name are serialized by a heavyweight lock on (database, hash of the name), held
 * to the end of the transaction by queue_create and queue_drop, and only for the moment of the creation by what a push
 * makes by itself.  Its tag is of class USERLOCK, which PostgreSQL has kept unused since contrib/userlock went away: it
 * can be seen in pg_locks, takes part in deadlock detection, and never meets an advisory lock of an application
 * (class ADVISORY) or a lock of the server.	Two names with the same hash only wait for each other.
 */
#ifndef QLOG_LOOKUP_H
#define QLOG_LOOKUP_H

#include "qlog_stage.h"

/* Does the queue exist for this transaction?	Fills *queue. No privilege is checked. */
extern bool qlog_queue_find(QlogName name, QlogQueue *queue);

/* The queue, which the current role may use: 42704 with a HINT, 42501. */
extern void qlog_queue_get(QlogName name, QlogQueue *queue);

/*
 * The queue to push to, made with default options when it is missing, qlog.auto_create is on and the role may create
 * queues in the database; otherwise as qlog_queue_get.  The creation commits at once.
 */
extern void qlog_queue_for_push(QlogName name, QlogQueue *queue);

/* The partition to push to, made when it is missing (at once, or with the queue when that is not committed). */
extern void qlog_partition_for_push(const QlogQueue *queue, QlogName queue_name, QlogName name,
									QlogTarget *target);

/* The dead lane of the default group, made at once when it is missing. */
extern void qlog_dead_lane(const QlogQueue *queue, QlogName queue_name, QlogTarget *target);

/* zstd level for pushes to the queue. */
extern int	qlog_queue_level(const QlogQueue *queue);

/* queue_create and queue_drop: wait for others with this name; the lock is kept until the transaction ends. */
extern void qlog_lock_name(QlogName name);

/* Nobody else creates or drops a queue of the database until the transaction ends. */
extern void qlog_lock_database(Oid database);

/* Stage the creation: new ids, and an xid, since PostgreSQL's commit decides it. */
extern void qlog_create_queue(QlogName name, const QcOptions *options);

/* Stage the drop. */
extern void qlog_drop_queue(const QlogQueue *queue, QlogName name);

#endif							/* QLOG_LOOKUP_H */
