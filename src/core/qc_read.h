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

#define QC_READ_INDEXES	4

/* Index of a log file: its .qidx, or made from the headers of its records. */
typedef struct QcReadIndex
{
	uint64_t	log;
	uint64_t	file;			/* 0 = none */
	uint64_t	length;			/* of the part of the log file that it describes */
	uint64_t	bad_position;	/* headers lead no further than here; UINT64_MAX = they did */
	uint64_t	used;
	uint32_t	count;
	uint8_t    *bytes;			/* header and entries as in a .qidx */
	size_t		cap;
} QcReadIndex;

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
	uint64_t	partition;
	uint64_t	first;
	uint32_t	count;
	int64_t		created_at;
	uint32_t	at;				/* frame that `frames` stands before */
	QcReader	frames;
	uint64_t	clock;			/* of the indexes */
	QcReadIndex indexes[QC_READ_INDEXES];
	uint8_t    *hop;			/* window on a log file while its headers are read */
	uint64_t   *file_ids;		/* of one log, while it is searched */
	size_t		file_ids_cap;
	uint64_t	asked_log;		/* whose .qidx was asked last, without loading it */
	uint64_t	asked_file;
	uint64_t	lacking_log;	/* this file's index was made from its headers: its .qidx is
								 * missing or wrong, if it is closed; for the caller to note and to
								 * reset */
	uint64_t	lacking_file;	/* 0 = none */
	bool		lacking_dirx;	/* not its .qidx but a directory over it (qc_dirx.h) */
} QcReadCache;

extern void qc_read_init(QcReadCache *cache, QcFiles *files, QcAlloc alloc,
						 void (*release) (void *context, void *buffer), void *alloc_context);

/* Give all buffers back. */
extern void qc_read_end(QcReadCache *cache);

/* Forget what is cached of a log (file 0 = all of its files): its files were rewritten or removed. */
extern void qc_read_forget(QcReadCache *cache, uint64_t log, uint64_t file);

/*
 * The message at position of the partition; the record is at location (from the memory index).  Pointers in
 * *message are valid until the next call.	QC_DAMAGED names file and position: checksum, or a record that is
 * not the one the index promised.  QC_MISSING: the file is gone.  QC_FULL: the allocator has no memory.
 */
extern QcStatus qc_read_message(QcReadCache *cache, const QcLocation *location, uint64_t partition,
								uint64_t position, QcMessage *message, int64_t *created_at,
								QcError *err);

/*
 * Find a record that the memory index does not hold: .qidx of closed files (rebuilt in memory from the log file
 * when missing or wrong), header hops in the newest one.  It is in no file below from_file (0 = oldest), and most
 * likely in from_file, the next one, or one up to last_file (0 = newest): files are asked by halves, as positions of
 * a partition ascend (with last_file by directories first, qc_dirx.h), and all of them from from_file on only when that finds nothing.	The record is not checked:
 * qc_read_message does that.  QC_NOTFOUND when no record holds the position; QC_DAMAGED when none was found but
 * headers could not be followed to the end of a file.
 */
extern QcStatus qc_read_locate(QcReadCache *cache, uint64_t log, uint64_t partition,
							   uint64_t position, uint64_t from_file, uint64_t last_file,
							   QcLocation *location, QcError *err);

/*
 * A walk over the message records of a log that were written at `since` or later; zero but for log and since, file to begin
 * with a later one, and last_file.
 */
typedef struct QcReadWalk
{
	uint64_t	log;
	int64_t		since;			/* microseconds since the Unix epoch */
	uint64_t	file;			/* that is walked over, 0 = none yet */
	uint64_t	last_file;		/* the walk ends behind it; 0 = behind the newest one */
	uint32_t	entry;			/* of its index, to go on with */
	int64_t		created_at;		/* of the record found */
} QcReadWalk;

/*
 * The next record of the walk: file by file, in no order within one.  QC_END after the last; otherwise as
 * qc_read_locate.  What an unsettled or undone entry wrote is among them.
 */
extern QcStatus qc_read_walk(QcReadCache *cache, QcReadWalk *walk, uint64_t *partition,
							 QcLocation *location, QcError *err);

/*
 * When the first record of a log file was made, at or behind all records of older files; false = it has none, or it
 * cannot be read.
 */
extern bool qc_read_begun_at(QcFiles *files, uint64_t log, uint64_t file, int64_t *at);

/* Is there a .qidx of this file that fits it?  Its entries are not looked at. */
extern bool qc_read_idx_usable(QcFiles *files, uint64_t log, uint64_t file);

/* The same, and are its entries right in themselves, and the last one in the log file?	Reads it whole; allocates. */
extern bool qc_read_idx_right(QcFiles *files, uint64_t log, uint64_t file);

/*
 * Write files derived from a closed file by scanning it; tmp, sync, rename.	The zeros behind its last record are given back to the
 * file system first, so nobody may write to the file any more.
 */
#define QC_BUILD_IDX		1
#define QC_BUILD_HASHES		2	/* qc_hashes.h; all records are unpacked */
extern QcStatus qc_read_build(QcFiles *files, uint64_t log, uint64_t file, unsigned what,
							  QcError *err);

static inline QcStatus
qc_read_build_idx(QcFiles *files, uint64_t log, uint64_t file, QcError *err)
{
	return qc_read_build(files, log, file, QC_BUILD_IDX, err);
}

#endif							/* QC_READ_H */
