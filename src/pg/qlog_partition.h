/*
 * qlog_partition.h
 *		From names to partitions, and the hidden lanes of a queue; what is missing is made.
 */
#ifndef QLOG_PARTITION_H
#define QLOG_PARTITION_H

#include "qlog_lookup.h"

/* The partition to push to, made when it is missing (at once, or with the queue when that is not committed). */
extern void qlog_partition_for_push(const QlogQueue *queue, QlogName queue_name, QlogName name,
									QlogTarget *target);

/*
 * The dead lane of a group, made at once when it is missing; its id.  false = the queue or the group is gone, or, unless
 * wait is set, somebody is changing it.	Inside a transaction; may raise what a creation raises.
 */
extern bool qlog_dead_lane(Oid database, uint64 queue, QlogName name, uint64 group, bool wait,
						   uint64 *lane);

/* Id of the queue's lane for delayed messages, made when it is missing, as a partition is. */
extern uint64 qlog_delay_lane(const QlogQueue *queue, QlogName queue_name);

#endif							/* QLOG_PARTITION_H */
