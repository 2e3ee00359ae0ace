/*
 * qc_index.h
 *		The memory index: where the message records of the newest files are.
 *
 * One entry per message record, chained per partition by position and per log by age.  It is derived: what
 * is not here is found through .qidx files or by scanning the file (qc_read.h).  Bounded by
 * qlog.index_memory; the oldest entries of the log that holds most go first.  State lock.
 */
#ifndef QC_INDEX_H
#define QC_INDEX_H

#include "qc_log.h"

typedef struct QcIndexEntry
{
	uint64_t	first;			/* position of its first message */
	QcRef		partition;
	uint32_t	count;
	uint32_t	file;			/* number in the name */
	uint32_t	position;		/* in the file */
	uint32_t	size;			/* whole record */
	QcRef		log;
	QcLink		of_partition;	/* by position */
	QcLink		of_log;			/* by age */
} QcIndexEntry;

/* Where a message record is. */
typedef struct QcLocation
{
	uint64_t	log;
	uint64_t	file;			/* 0 = not in memory: look it up (qc_read.h) */
	uint64_t	position;
	uint32_t	size;
	uint32_t	count;
	uint64_t	first;
	uint64_t	last_file;		/* file = 0: the record is in no file newer than this one; 0 = not
								 * known */
	uint64_t	first_file;		/* file = 0: the log has no older one; 0 = not known */
} QcLocation;

/* Add a record out of promised entries (or false when none was promised and the budget is full). */
extern bool qc_index_add(QcState *st, QcLog *log, QcPartition *partition, uint64_t first,
						 uint32_t count, uint64_t file, uint64_t position, uint32_t size,
						 bool promised);

/* Put older records, descending by position, below what the index holds of this log. */
extern bool qc_index_add_older(QcState *st, QcLog *log, QcPartition *partition, uint64_t first,
							   uint32_t count, uint64_t file, uint64_t position, uint32_t size);

/*
 * Find the record of a position.  The search begins at *hint, which may be stale or 0, when that is
 * nearer than the ends of the chain and the cursor; it is set to what was found (0 otherwise).
 * false = not in memory; *location then names only the log and where to search at the most.
 */
extern bool qc_index_find(QcState *st, QcPartition *partition, uint64_t position, QcRef *hint,
						  QcLocation *location);

/*
 * About the size of a message: its record's, shared evenly. hint as in qc_index_find, but nothing is searched: 0 = not
 * known.
 */
extern uint32_t qc_index_message_size(const QcState *st, const QcPartition *partition,
									  uint64_t position, QcRef hint);

/* Drop the oldest entries of the log that holds most, about n of them.  false = nothing to drop. */
extern bool qc_index_evict(QcState *st, uint32_t n);

/*
 * Drop entries of a log that lie in this file or in older ones, at most n of them: the file is going to be rewritten or removed.  true
 * = none is left.
 */
extern bool qc_index_evict_file(QcState *st, QcLog *log, uint64_t file, uint32_t n);

/* Drop the entries of a partition that goes away. */
extern void qc_index_forget(QcState *st, QcPartition *partition);

#endif							/* QC_INDEX_H */
