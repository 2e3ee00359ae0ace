/*
 * qc_warm.h
 *		After a start: the older records of the active files go into the memory index again.
 *
 * Replay indexes what stands above the checkpoint's mark.  What is below it in a file that is not closed has no .qidx, so
 * that every process would go through the file's headers by itself before it finds its first message there.  A worker does
 * it once for all: it reads the headers without lock, and adds the records from the newest to the oldest, a few at a time.
 *
 * Invariant: the memory index has no hole.  So a step goes on only while the index begins exactly where the one before
 * left it: who evicts entries meanwhile ends the warming.
 *
 * Caller: wrk_index.c, in one process.
 */
#ifndef QC_WARM_H
#define QC_WARM_H

#include "qc_read.h"

/* The records of one file below the place where the memory index begins. */
typedef struct QcWarm
{
	uint64_t	log;
	uint64_t	file;
	uint64_t	begin;			/* where the memory index begins now */
	QcReadCache *cache;			/* whose allocator gave: */
	QcIdxEntry *entries;		/* by position */
	uint32_t	left;			/* of them not added yet */
} QcWarm;

/*
 * Is there something to be added of this log?	Fills log, file and begin.	Only of active files, and only what makes a
 * difference: 64 KiB and more.	 State lock.
 */
extern bool qc_warm_wanted(const QcLog *log, QcWarm *warm);

/* Read the headers; no lock.  Ends with qc_warm_end, whatever this returns; the cache must live until then. */
extern QcStatus qc_warm_load(QcWarm *warm, QcReadCache *cache, QcError *err);

/* Add at most n records; false = there is nothing more to be done.	State lock. */
extern bool qc_warm_step(QcState *st, QcWarm *warm, uint32_t n);

extern void qc_warm_end(QcWarm *warm);

#endif							/* QC_WARM_H */
