/*
 * qc_verify.h
 *		Looking through a log file for damage, and what to do about a damaged place.
 *
 * A file is read from its header to the end of what was written, record by record, each believed for its checksum; damage
 * does not end it.  Not shared, allocates: qlog_verify, qlog_repair, the scrub worker, qlog_dump.	No lock is needed: bytes
 * that were written never change, but for repairs, and a file that goes away meanwhile is QC_MISSING.
 */
#ifndef QC_VERIFY_H
#define QC_VERIFY_H

#include "qc_files.h"
#include "qc_record.h"

/* A place where the file is not what it should be. */
typedef struct QcFinding
{
	uint64_t	log;
	uint64_t	file;
	uint64_t	position;
	uint64_t	bytes;			/* that are no record; 0 = the record there is one, but its content
								 * is wrong */
	uint64_t	seq;			/* of the record before it in the file, 0 = none */
	uint64_t	next_seq;		/* of the record behind it, 0 = none */
	bool		by_index;		/* only its .qidx tells, which may be that of the file before a
								 * rewrite */
	bool		foreign;		/* the record there, and maybe more of the file, is of another log */
	char		text[160];
} QcFinding;

typedef struct QcVerify
{
	QcFiles    *files;
	uint64_t	log;
	uint64_t	file;
	uint64_t	end;			/* where its written part ends; 0 = it is closed: all of it */
	bool		deep;			/* unpack and decode messages too */
	void	   *context;		/* of these, none of which may jump */

	/* A damaged place; false = stop with QC_INTERRUPTED. */
	bool		(*finding) (void *context, const QcFinding *finding);

	/* A message record that is right (NULL: nobody wants to know). */
	bool		(*record) (void *context, uint64_t partition, uint64_t first, uint32_t count);

	/*
	 * May messages of this partition stand in the log (NULL: nobody asks)?  Told once for each
	 * file.
	 */
	bool		(*belongs) (void *context, uint64_t partition);

	/* So many bytes have been read since the last call. */
	bool		(*progress) (void *context, uint64_t bytes);
} QcVerify;

extern QcStatus qc_verify_file(const QcVerify *verify, QcError *err);

/*
 * The message records that the file's .qidx says begin inside [position, position + bytes); QC_NOTFOUND when there is no
 * index that tells.  Allocates.
 */
typedef void (*QcLostVisitor) (void *context, uint64_t partition, uint64_t first, uint32_t count);
extern QcStatus qc_verify_lost(QcFiles *files, uint64_t log, uint64_t file, uint64_t position,
							   uint64_t bytes, QcLostVisitor visit, void *context, QcError *err);

/* Is there room for what takes the place of these bytes, and is it known what seq it has?	What stands behind a cut has neither. */
extern bool qc_verify_mendable(const QcFinding *finding);

/*
 * Mend a damaged place so that the records behind it are reached: its bytes are kept in "<file>.bad.<position>", durably, then
 * a pad record (or the header that belongs there) takes their place.  QC_INVALID: it is not mendable; nothing is changed.	 May
 * be repeated after a crash.  No start may need an entry that stood there (qc_start_floor).
 */
extern QcStatus qc_verify_mend(QcFiles *files, const QcFinding *finding, int64_t now, QcError *err);

#endif							/* QC_VERIFY_H */
