/*
 * qlog_group.h
 *		Consumer groups by name: finding them, making them, looking at partitions they have not looked at.
 *
 * Names are resolved in the state at every call: a queue has 64 groups at most, and a seek gives a group a new id.  What
 * the transaction itself has done to a group comes first.	Changes of one name are serialized by a heavyweight lock on
 * (queue, name), held to the end of the transaction by queue_subscribe, queue_unsubscribe and queue_seek.
 *
 * Callers: fn_pop.c, fn_wait.c, fn_group.c, fn_seek.c, fn_stat_group.c, wrk_estimate.c.
 */
#ifndef QLOG_GROUP_H
#define QLOG_GROUP_H

#include "qlog_lookup.h"

typedef enum QlogGroupFound
{
	QLOG_GROUP_MISSING,
	QLOG_GROUP_THERE,
	QLOG_GROUP_OWN				/* made by this transaction: nobody else sees it */
} QlogGroupFound;

/* Find a group as this transaction sees it; *id is the one that effects name. */
extern QlogGroupFound qlog_group_find(const QlogQueue *queue, QlogName name, uint64 *id);

/* 42704 */
extern void qlog_group_missing(QlogName name) pg_attribute_noreturn();

/*
 * For a pop: false = this transaction has made the group, so there is nothing in it yet.  42704 when this transaction has
 * dropped it.
 */
extern bool qlog_group_may_pop(const QlogQueue *queue, QlogName name);

/*
 * Make a group that a pop names and that does not exist, from the oldest message on; the creation commits at once.	42704
 * when qlog.auto_create is off, 54000 when the queue has as many groups as it can have.
 */
extern void qlog_group_make(const QlogQueue *queue, QlogName queue_name, QlogName name);

/* An id for a new group of the queue, never used again. */
extern uint64 qlog_group_take_id(const QlogQueue *queue);

/* 54000 when the queue, as this transaction sees it, has as many groups as it can have. */
extern void qlog_group_check_room(const QlogQueue *queue, QlogName queue_name);

/*
 * For the worker that makes lags exact: the next partitions of a group that lives.  false = no state memory to spare.
 * What cannot be read or logged raises.
 */
extern bool qlog_group_look_ahead(uint64 queue, uint64 group);

/*
 * Look at the next partitions that the group has not looked at, or (partition not NULL) at that one.  What only messages
 * can tell is read, and logged.  53200.
 */
extern void qlog_group_look(const QlogQueue *queue, QlogName name, const QlogName *partition);

#endif							/* QLOG_GROUP_H */
