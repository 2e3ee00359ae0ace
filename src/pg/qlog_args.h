/*
 * qlog_args.h
 *		What every SQL function does first: may it run here, and are its arguments sound?
 *
 * Callers: fn_*.c.	 Everything here raises on its own; nothing touches shared state.
 */
#ifndef QLOG_ARGS_H
#define QLOG_ARGS_H

#include "postgres.h"

#include "fmgr.h"
#include "utils/timestamp.h"

#include "../core/qc_effect.h"

#define QLOG_NAME_MAX 255

/* A checked name.	text is borrowed from the argument and not terminated. */
typedef struct QlogName
{
	const char *text;
	uint16		len;
} QlogName;

/* For "%.*s" in messages. */
#define QLOG_NAME(name) (int) (name).len, (name).text

/*
 * A function that changes queues begins: 55000 when not preloaded, 25006 on a standby or in a read-only transaction,
 * 25000 in a parallel worker, 0A000 in a database that is not UTF8, 57P03 when qlog is still recovering after qlog.recovery_wait.
 */
extern void qlog_enter(const char *function);

/* As qlog_enter for a function that only looks: allowed in read-only transactions. */
extern void qlog_enter_read(const char *function);

/* 0A000 unless the encoding of the database is UTF8. */
extern void qlog_encoding_check(void);

/* 22004 naming the argument. */
extern void qlog_arg_missing(const char *argument) pg_attribute_noreturn();

/* 22004 when argument n is NULL. */
static inline void
qlog_require(FunctionCallInfo fcinfo, int n, const char *argument)
{
	if (fcinfo->args[n].isnull)
		qlog_arg_missing(argument);
}

/* 22023 for a value that an argument does not take. detail: a whole sentence. */
extern void qlog_arg_invalid(const char *argument, const char *detail) pg_attribute_noreturn();

/*
 * Name of a queue or partition out of a text datum, detoasted into the current context when it must be.	Only a
 * partition's may be empty.	 42602 empty or control characters, 42622 too long, 42939
 * reserved.
 */
extern QlogName qlog_queue_name(Datum text);
extern QlogName qlog_partition_name(Datum text);

/* Why messages were given back or rejected: at most 1024 bytes, 22023 otherwise. */
extern QcStr qlog_reason(Datum text);

/* Name of a consumer group out of argument n: NULL is the default group, named ''. Errors as qlog_queue_name. */
extern QlogName qlog_group_name(FunctionCallInfo fcinfo, int n);

/* Microseconds of an interval, months counted as 30 days; 22023 outside [min, max]. */
extern int64 qlog_interval_us(const Interval *interval, const char *argument, int64 min, int64 max);

/* Duration of a lease out of an argument named "lease": the range of the queue option of that name. */
extern int64 qlog_lease_us(const Interval *lease);

/* "90 s": how a duration is shown whatever IntervalStyle is; interval_in reads it.	palloc'ed. */
extern char *qlog_interval_text(int64 us);

/* An interval of this many microseconds, palloc'ed. */
extern Interval *qlog_interval_make(int64 us);

/* The same error as a cast to json when text is not JSON. */
extern void qlog_json_check(const char *text, int len);

/* Between the core's clock (microseconds since the Unix epoch) and PostgreSQL's. */
#define QLOG_EPOCH_DIFFERENCE \
	((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

static inline TimestampTz
qlog_timestamptz(int64 unix_us)
{
	return unix_us - QLOG_EPOCH_DIFFERENCE;
}

/* The last years that PostgreSQL knows lie beyond the core's: they are the end of its time. */
static inline int64
qlog_unix_us(TimestampTz instant)
{
	return instant > PG_INT64_MAX - QLOG_EPOCH_DIFFERENCE ? PG_INT64_MAX :
		instant + QLOG_EPOCH_DIFFERENCE;
}

#endif							/* QLOG_ARGS_H */
