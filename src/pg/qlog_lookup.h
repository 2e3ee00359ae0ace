/*
 * qlog_lookup.h
 *		From names to queues and partitions, and making those that do not exist.
 *
 * Names are resolved in shared memory and remembered per backend; ids are never used again, so what is remembered can
 * only be out of date, never be somebody else's.  What the transaction itself has created or dropped comes first.
 * Who may change a name at the same time: qlog_namelock.h.
 */
#ifndef QLOG_LOOKUP_H
#define QLOG_LOOKUP_H

#include "qlog_acl.h"
#include "qlog_stage.h"

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

/* qlog_acl_sees for a queue of which this was copied out of the state. */
extern bool qlog_queue_seen(uint64 id, Oid owner, uint8 flags);

/* zstd level for pushes to the queue. */
extern int	qlog_queue_level(const QlogQueue *queue);

/*
 * Lock a committed queue so that nobody drops it while something is added to it, whose entry could not be applied then.
 * 42704 when it is gone.
 */
extern void qlog_queue_hold(const QlogQueue *queue, QlogName name);
extern void qlog_queue_release(const QlogQueue *queue);

/* Log one catalog effect at once, in the WAL too. */
extern void qlog_submit_catalog(QcEffectKind kind, const void *fixed);

/* Stage the creation: new ids, and an xid, since PostgreSQL's commit decides it. */
extern void qlog_create_queue(QlogName name, const QcOptions *options);

/* Stage the drop. */
extern void qlog_drop_queue(const QlogQueue *queue, QlogName name);

#endif							/* QLOG_LOOKUP_H */
