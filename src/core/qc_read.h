/*
 * qc_read.h
 *		Reading messages: from (partition, position) to the decoded frame.
 *
 * Per process, no lock held.  Keeps the last record decoded, so that a run of messages costs one read and one
 * decompression per record.  Memory grows to the largest record read and is handed out by the caller's
 * allocator.
 */
#ifndef QC_READ_H
#define QC_READ_H

#include "qc_frame.h"
#include "qc_index.h"
#include "qc_plan.h"
#include "qc_record.h"

typedef struct QcReadCache
{
	QcFiles    *files;
	QcAlloc		alloc;			/* new buffer; the old one is given to release */
	void		(*release) (void *context, void *buffer);
	void	   *alloc_context;
	uint8_t    *record;			/* record as on disk */
	size_t		record_cap;
	uint8_t    *raw;			/* frames */
	size_t		raw_cap;
	size_t		raw_len;
	uint64_t	log;			/* what is cached; file 0 = nothing */
	uint64_t	file;
	uint64_t	position;
	uint64_t	first;
	uint32_t	count;
	int64_t		created_at;
	uint32_t	at;				/* frame that `frames` stands before */
	QcReader	frames;
} QcReadCache;

extern void qc_read_init(QcReadCache *cache, QcFiles *files, QcAlloc alloc,
						 void (*release) (void *context, void *buffer), void *alloc_context);

/*
 * The message at position of the partition; the record is at location (from the memory index).  Pointers in
 * *message are valid until the next call.	QC_DAMAGED names file and position: checksum, or a record that is
 * not the one the index promised.
 */
extern QcStatus qc_read_message(QcReadCache *cache, const QcLocation *location, uint64_t partition,
								uint64_t position, QcMessage *message, int64_t *created_at,
								QcError *err);

/*
 * Find a record that the memory index does not hold: .qidx of closed files (rebuilt in memory from the log file
 * when missing or wrong), header hops in the newest one.  from_file: where to begin (0 = oldest).
 * QC_NOTFOUND when no record holds the position.
 */
extern QcStatus qc_read_locate(QcReadCache *cache, uint64_t log, uint64_t partition,
							   uint64_t position, uint64_t from_file, QcLocation *location,
							   QcError *err);

/* Write the .qidx of a closed file by scanning it; tmp, sync, rename. */
extern QcStatus qc_read_build_idx(QcFiles *files, uint64_t log, uint64_t file, QcError *err);

#endif							/* QC_READ_H */
