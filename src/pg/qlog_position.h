/*
 * qlog_position.h
 *		Finding a position by the time at which its message was pushed.
 *
 * Times never go back within a partition, so a few records are read, without any lock.  Callers: fn_peek.c, fn_seek.c,
 * qlog_group.c.
 */
#ifndef QLOG_POSITION_H
#define QLOG_POSITION_H

#include "qlog_args.h"

/*
 * First position of [low, high) whose message was pushed at this time (microseconds since the Unix epoch) or later; high
 * when there is none, or the partition has gone.  Positions that are not settled yet count as well.  Interruptible; XX001
 * when a record cannot be read.
 */
extern uint64 qlog_position_at(uint64 partition, uint64 low, uint64 high, int64 time);

/* An instant on the core's clock, where the infinities lie outside. */
extern int64 qlog_position_time(TimestampTz instant);

#endif							/* QLOG_POSITION_H */
