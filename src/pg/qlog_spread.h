/*
 * qlog_spread.h
 *		The different partitions that the current transaction puts messages into, lanes included: there is a limit.
 *
 * A set in the order in which they came, so that the end of a subtransaction cuts its tail.  Callers: qlog_stage.c.
 */
#ifndef QLOG_SPREAD_H
#define QLOG_SPREAD_H

#include "postgres.h"

/* One more message goes there.  Raises 54000 when that would be one partition too many. */
extern void qlog_spread_add(uint64 partition);

/* How many there are. */
extern uint32 qlog_spread_count(void);

/* Back to the first n of them. */
extern void qlog_spread_cut(uint32 n);

/* None; the memory of the transaction goes away. */
extern void qlog_spread_reset(void);

#endif							/* QLOG_SPREAD_H */
