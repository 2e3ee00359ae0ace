/*
 * qlog_verify.h
 *		Verifying logs inside the server: damaged places of their files, and messages that the state says are there and that
 *		no file has.
 *
 * Callers: fn_verify.c, fn_repair.c.  Everything may raise and is interruptible.
 */
#ifndef QLOG_VERIFY_H
#define QLOG_VERIFY_H

#include "qlog_verifying.h"

#include "../core/qc_cover.h"
#include "../core/qc_verify.h"

/* Messages [first, end) of a partition are in no file. */
typedef struct QlogMissing
{
	uint64		partition;
	uint64		first;
	uint64		end;
} QlogMissing;

typedef struct QlogVerify
{
	bool		deep;
	QlogVerifying *progress;	/* may be NULL */

	/* What was found, palloc'ed, of the last log or queue. */
	QcFinding  *findings;
	uint32		nfindings;
	uint32		max_findings;
	QlogMissing *missing;
	uint32		nmissing;
	uint32		max_missing;

	/* Where the log ended when it was read, and what was seen of it. */
	uint64		log;
	uint64		file;
	uint64		tail;
	QcCover		cover;
	MemoryContext context;		/* of all of it */
	bool		failed;			/* no memory, in a callback */
	bool		forgiving;		/* what cannot be read for the moment is no error */
} QlogVerify;

extern void qlog_verify_begin(QlogVerify *verify, bool deep, const char *what);
extern void qlog_verify_end(QlogVerify *verify);

/* Read all files of a log into findings and cover.	 58030 when one cannot be read. */
extern void qlog_verify_log(QlogVerify *verify, uint64 log);

/* A QcVerify.record: a record was seen.  false = no memory, which is noted. */
extern bool qlog_verify_record(void *verify, uint64_t partition, uint64_t first, uint32_t count);

/* Once the queue's log is in cover: what is missing of the queue. */
extern void qlog_verify_queue(QlogVerify *verify, uint64 queue);

/* A file of the system log is gone that a start would read: it, and what stands behind it; false = none is. */
extern bool qlog_verify_gap(uint64 log, const uint64 *files, uint32 n, uint32 *at, QcFinding *finding);

/* Name of a partition (of a lane: what it is), at most QLOG_NAME_MAX bytes, which have room; returns its length. */
extern uint16 qlog_verify_partition(uint64 partition, char *name);

/*
 * A file ends before its index says so (QcFinding.by_index): are messages missing that stood there?  Otherwise the index is that
 * of the file before it was rewritten, which those of the system log never are.
 */
extern bool qlog_verify_ends_early(const QcFinding *finding);

/* How many files and bytes a log has, for the progress. */
extern void qlog_verify_count(QlogVerify *verify, uint64 log);

#endif							/* QLOG_VERIFY_H */
