/*
 * qlog_names.h
 *		The backend's memory of names: queues by name and by id, partitions by queue and name.
 *
 * Ids are never used again, so what is remembered can only be out of date, never be somebody else's; everything is
 * forgotten when any queue of the server has changed (QlogShared.catalog_generation).  Callers: qlog_lookup.c,
 * qlog_partition.c.
 */
#ifndef QLOG_NAMES_H
#define QLOG_NAMES_H

#include "qlog_stage.h"

/* scopes; any other one is a queue's id, of whose partitions the names are */
#define QLOG_NAMES_QUEUES	UINT64CONST(0)	/* queues of this database */
#define QLOG_NAMES_BY_ID	PG_UINT64_MAX	/* queues by id; the name is its bytes */

typedef struct QlogNamed
{
	QlogQueue	queue;
	uint64		partition;
} QlogNamed;

/* NULL = not remembered.  Valid until the next call of either. */
extern QlogNamed *qlog_names_find(uint64 scope, QlogName name);

/* The same, a new one with undefined contents when it was not; may raise for lack of memory. */
extern QlogNamed *qlog_names_enter(uint64 scope, QlogName name);

/* Where the ACLs of remembered queues live: at least until the end of the transaction. */
extern MemoryContext qlog_names_acl_context(void);

#endif							/* QLOG_NAMES_H */
