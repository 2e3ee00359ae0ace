/*
 * qlog_alter.h
 *		Changing a queue: its name, owner, options, ACL and pauses, with the transaction.
 *
 * A function begins, changes its copy of the queue, and stages that.  The change is seen by its own transaction at once
 * and by others from COMMIT on, and undone with its savepoint.
 */
#ifndef QLOG_ALTER_H
#define QLOG_ALTER_H

#include "qlog_lookup.h"
#include "qlog_namelock.h"

#define QLOG_GRANTS_MAX 1000	/* elements of an ACL */

/*
 * The queue, locked against other changes until the transaction ends.  by_owner: only its owner may; otherwise also who
 * may manage it.  mode: ShareUpdateExclusiveLock, or ExclusiveLock to take its name away.	42704, 42501.
 */
extern void qlog_alter_begin(QlogName name, bool by_owner, LOCKMODE mode, QlogQueue *queue);

/* Stage the queue as it is in *queue now. 54000 when its ACL is too long. */
extern void qlog_alter_stage(const QlogQueue *queue, QlogName name);

/* As qlog_alter_stage, under a new name, which the caller has locked and found free. */
extern void qlog_alter_rename(const QlogQueue *queue, QlogName name, QlogName new_name);

/* Give the queue to another role, which the caller may act for: the ACL's grants of the old owner are the new one's. */
extern void qlog_alter_owner(QlogQueue *queue, Oid owner);

/* Add to (or take from) the privileges of a role, InvalidOid = PUBLIC. */
extern void qlog_alter_acl(QlogQueue *queue, Oid role, AclMode privileges, bool add);

#endif							/* QLOG_ALTER_H */
