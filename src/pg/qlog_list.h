/*
 * qlog_list.h
 *		Which queues there are, and what they are like.
 */
#ifndef QLOG_LIST_H
#define QLOG_LIST_H

#include "qlog_stage.h"

/* A queue of this database as the current transaction sees it. */
typedef struct QlogListed
{
	QlogQueue	queue;
	char text[	QLOG_NAME_MAX];
	QlogName	name;			/* in text */
	int64		created_at;		/* microseconds since the Unix epoch; 0 = not committed yet */
	uint64		npartitions;
	bool		damaged;
	uint64		damage_file;
	uint64		damage_position;
} QlogListed;

/*
 * Ids of the committed queues of a database (InvalidOid: of all) that a role owns or that its ACLs name (InvalidOid: all),
 * oldest first; *n of them, palloc'ed.	 What the current transaction has changed is not looked at.
 */
extern uint64 *qlog_list_queues(Oid database, Oid role, uint32 *n);

/* Ids of the queues of this database that the current transaction may see, its own new ones included. */
extern uint64 *qlog_list_visible(uint32 *n);

/* false = it is gone, or dropped by this transaction.  No privilege is checked. */
extern bool qlog_list_get(uint64 id, QlogListed *listed);

#endif							/* QLOG_LIST_H */
