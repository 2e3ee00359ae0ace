/*
 * qlog_acl.h
 *		Who may do what with a queue.
 *
 * PostgreSQL's own ACL machinery over three of its privilege bits.	A queue without an ACL is its owner's alone; with one
 * it is what the ACL says.	Superusers may do everything, members of a role what the role may when they inherit from it.
 * Some things are the owner's whatever the ACL says: drop, rename, owner, grant.
 *
 * Reads the system catalogs: never called with a lock of qlog held, nor at commit.
 */
#ifndef QLOG_ACL_H
#define QLOG_ACL_H

#include "qlog_stage.h"

/* Privileges; the numbers are those that the log keeps (doc/format.md). */
#define QLOG_PUSH		ACL_INSERT
#define QLOG_POP		ACL_SELECT	/* also its answers, and looking into the queue */
#define QLOG_MANAGE		ACL_UPDATE	/* options, pause, purge, groups, dead letters */
#define QLOG_PRIVILEGES	(QLOG_PUSH | QLOG_POP | QLOG_MANAGE)

/* ACL out of elements as the core keeps them, palloc'ed. */
extern Acl *qlog_acl_make(const QcQueueAlterItem *items, uint32 nitems);

/* Element i of an ACL as the core keeps it. */
extern QcQueueAlterItem qlog_acl_item(const Acl *acl, uint32 i);

/* What stands for no ACL: the owner has everything.	palloc'ed. */
extern Acl *qlog_acl_default(Oid owner);

/* Has the role any (or, with ACLMASK_ALL, all) of these privileges? */
extern bool qlog_acl_has(const QlogQueue *queue, Oid role, AclMode privileges, AclMaskHow how);

/* Does the current role own the queue, or is it a member of the owner? */
extern bool qlog_acl_owns(const QlogQueue *queue);

/* Is the current role there to monitor the server? */
extern bool qlog_acl_monitors(void);

/* Does the role own the queue, or stand in its ACL? */
extern bool qlog_acl_names(const QlogQueue *queue, Oid role);

/* May the current role know about the queue: has it any privilege, or is it there to monitor the server? */
extern bool qlog_acl_sees(const QlogQueue *queue);

/* 42501 when the current role lacks the privilege; an owner may manage whatever the ACL says. */
extern void qlog_acl_check(const QlogQueue *queue, AclMode privilege, QlogName name);

/* 42501 when the current role does not own the queue. */
extern void qlog_acl_check_owner(const QlogQueue *queue, QlogName name);

/* 42501 when the current role may not create queues in this database. */
extern void qlog_acl_check_create(QlogName queue);

/* Lock the role against being dropped before a queue names it; 42704 when it is gone already. */
extern void qlog_acl_lock_role(Oid role);

#endif							/* QLOG_ACL_H */
