/*
 * qlog_fetch.h
 *		Reading messages: where they are is noted under the state lock, the bytes are read without it.
 *
 * Callers: whatever shows, delivers, answers or moves messages.
 */
#ifndef QLOG_FETCH_H
#define QLOG_FETCH_H

#include "qlog_args.h"

#include "../core/qc_read.h"

/* One message: noted under the state lock. */
typedef struct QlogSpot
{
	uint64		partition;
	uint64		position;
	QcLocation	location;		/* file 0 = not in the memory index */
	uint32		attempt;		/* deliveries so far */
} QlogSpot;

/*
 * State lock, at least shared.  hint: where the search for its record begins, e.g. of the message
 * before it; a slot's own needs the lock exclusively.  NULL: the message will not be read.
 */
extern void qlog_spot_note(QcPartition *partition, uint64 position, uint32 attempt, QcRef *hint,
						   QlogSpot *spot);

/* A read cache of one's own, for a worker: over the files of this process; ends with qc_read_end. */
extern void qlog_fetch_cache(QcReadCache *made);

/*
 * The message at a spot; pointers are valid until the next call.  No lock held.	 XX001 naming file and position when the
 * record is damaged; 40001 when the message is gone, which cannot happen to one that this transaction holds.
 */
extern void qlog_fetch(const QlogSpot *spot, QcMessage *message, int64 *created_at);

/* As qlog_fetch, without raising; QC_NOTFOUND = it is gone. */
extern QcStatus qlog_fetch_try(const QlogSpot *spot, QcMessage *message, int64 *created_at,
							   QcError *err);

/* Is a message that could not be read lost for good, rather than out of reach for the moment? */
extern bool qlog_fetch_lost(QcStatus status);

/*
 * Can the message that was read be written again, into another partition?  QC_LIMIT = it is larger than half a log file now,
 * as qlog.segment_size was lowered since it was pushed: it is not lost, and goes on when the setting has been raised.
 */
extern QcStatus qlog_fetch_movable(const QcMessage *message, QcError *err);

/*
 * The next record of a walk over a log (qc_read_walk); false = there is none.  What is in it may not be visible.	XX001 when
 * a file is damaged.
 */
extern bool qlog_fetch_walk(QcReadWalk *walk, uint64 *partition, QcLocation *location);

/* As qlog_fetch; false = the message is gone, purged or expired since its place was noted. */
extern bool qlog_fetch_if_there(const QlogSpot *spot, QcMessage *message, int64 *created_at);

/* Forget what is remembered of a file of a log (0 = all of its files), or everything (qlog_gone.h). */
extern void qlog_fetch_forget(uint64 log, uint64 file);
extern void qlog_fetch_forget_all(void);

/* size bytes of a record, from `at` on, unchecked.	false = its file was removed or rewritten; 58030 when they cannot be read. */
extern bool qlog_fetch_bytes(const QcLocation *location, uint64 at, void *bytes, Size size);

/* When the message at a spot was pushed, out of its record's header; false when that cannot be told. Never raises. */
extern bool qlog_fetch_time(const QlogSpot *spot, int64 *created_at);

/* Raise XX001 for a queue that recovery or a reader found damaged. */
extern void qlog_refuse_damaged(const QlogName queue, uint64 log, uint64 file, uint64 position)
			pg_attribute_noreturn();

/* The columns that every row of messages begins with. */
typedef enum QlogColumn
{
	QLOG_COLUMN_MESSAGE_ID,
	QLOG_COLUMN_PARTITION,
	QLOG_COLUMN_POSITION,
	QLOG_COLUMN_ATTEMPT,
	QLOG_COLUMN_PAYLOAD,
	QLOG_COLUMN_PAYLOAD_BYTES,
	QLOG_COLUMN_HEADERS,
	QLOG_COLUMN_DEDUP_ID,
	QLOG_COLUMN_PUSHED_AT,
	QLOG_COLUMN_COUNT
} QlogColumn;

/* Fill them in for a fetched message, palloc'ing copies; partition: its name. */
extern void qlog_message_row(const QlogSpot *spot, const QcMessage *message, int64 created_at,
							 QlogName partition, Datum *values, bool *nulls);

#endif							/* QLOG_FETCH_H */
