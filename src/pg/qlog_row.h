/*
 * qlog_row.h
 *		Values in the rows of views.
 */
#ifndef QLOG_ROW_H
#define QLOG_ROW_H

#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "qlog_args.h"

static inline Datum
qlog_text_datum(const void *bytes, size_t len)
{
	return PointerGetDatum(cstring_to_text_with_len(bytes, (int) len));
}

/* A moment in microseconds since the Unix epoch; NULL when it is 0. */
static inline Datum
qlog_instant_datum(int64 unix_us, bool *null)
{
	*null = unix_us == 0;
	return TimestampTzGetDatum(qlog_timestamptz(unix_us));
}

/* How long ago that was, 0 when it is to come. */
static inline Datum
qlog_age_datum(int64 unix_us, int64 now)
{
	return IntervalPGetDatum(qlog_interval_make(unix_us < now ? now - unix_us : 0));
}

#endif							/* QLOG_ROW_H */
