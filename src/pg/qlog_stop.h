/*
 * qlog_stop.h
 *		Places at which a test can stop a process for good, to kill the server exactly there.
 *
 * The setting qlog.debug_stop (superusers only, not shown in the sample file) names a point.  A process that reaches
 * it writes one LOG line and sleeps until it is killed.  With the setting empty a point costs one load and a branch.
 */
#ifndef QLOG_STOP_H
#define QLOG_STOP_H

#include "postgres.h"

extern char *qlog_debug_stop;

/* Sleep for ever when name is the point that was asked for. */
extern void qlog_stop_at(const char *name);

/* "prefix-name", for points that are counted up at run time. */
extern void qlog_stop_at_step(const char *prefix, const char *name);

#define QLOG_STOP(name) \
	do { \
		if (unlikely(qlog_debug_stop != NULL && qlog_debug_stop[0] != '\0')) \
			qlog_stop_at(name); \
	} while (0)

#endif							/* QLOG_STOP_H */
