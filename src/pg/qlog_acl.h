/*
 * qlog_acl.h
 *		Who may use a queue: its owner, members of the owner's role and superusers.
 *
 * Reads the system catalogs: never called with a lock of qlog held, nor at commit.
 */
#ifndef QLOG_ACL_H
#define QLOG_ACL_H

#include "qlog_args.h"

/* May the current role use (and see) queues of this owner? */
extern bool qlog_acl_allows(Oid owner);

/* 42501 when it may not push to, take from or look into the queue. */
extern void qlog_acl_check_use(Oid owner, QlogName queue);

/* 42501 when it may not change or drop the queue. */
extern void qlog_acl_check_owner(Oid owner, QlogName queue);

/* 42501 when the current role may not create queues in this database. */
extern void qlog_acl_check_create(QlogName queue);

/* Lock the role against being dropped before a queue names it as its owner; 42704 when it is gone already. */
extern void qlog_acl_lock_owner(Oid owner);

#endif							/* QLOG_ACL_H */
