/*
 * qc_hashes.h
 *		.qhsh: the dedup ids of a closed log file, for who wants to know them without reading messages.
 *
 * Head as in qc_derived.h, magic "QQHSH1\0\0", then cells of 32 bytes.  First the seal:
 *
 *	  0  u64	position of the last record in the log file that is no pad; 32 when it has none
 *	  8  u64	that record's checksum; 0
 *	 16  u64	records that follow
 *	 24  u64	ids in them
 *
 * then each message record that holds an id given by an application, in the order of the log file:
 *
 *	  0  u64	partition
 *	  8  u64	position of the first message
 *	 16  i64	created at
 *	 24  u32	count of messages
 *	 28  u32	how many of them have an id
 *
 * and for each of its messages one cell: hash of the dedup id, message id; all zero where the application gave none.
 *
 * A log file that holds no such record has one with the seal alone, so that nobody reads it again to find out; but files of logs
 * into which nobody pushes with dedup ids have none at all (qc_dedup_wanted).  A .qhsh that is missing, or does not fit its log
 * file, is no error: who asks then reads the records.
 *
 * Allocates (malloc): for recovery, workers and tools.
 */
#ifndef QC_HASHES_H
#define QC_HASHES_H

#include "qc_files.h"
#include "qc_record.h"

#define QC_HASHES_CELL	32

/* A .qhsh being made, record by record; begins all zero. */
typedef struct QcHashesBuild
{
	uint8_t    *bytes;			/* head, seal, cells */
	uint32_t	cells;			/* without the seal */
	uint32_t	cap;
	uint64_t	records;
	uint64_t	ids;
	uint8_t    *raw;			/* frames of a record */
	size_t		raw_cap;
	uint64_t	last_position;	/* as in the seal */
	uint64_t	last_checksum;
} QcHashesBuild;

/*
 * The next record of the log file: its position, its bytes as they stand there, and what they say; pads are left out.
 * QC_DAMAGED: frames that do not fit.
 */
extern QcStatus qc_hashes_add(QcHashesBuild *build, uint64_t position, const uint8_t *bytes,
							  const QcRecord *record, QcError *err);

/* Seal it; *bytes are the build's, *len long. */
extern QcStatus qc_hashes_seal(QcHashesBuild *build, uint64_t file_id, uint64_t log_length,
							   const uint8_t **bytes, size_t *len, QcError *err);
extern void qc_hashes_free(QcHashesBuild *build);

/* Head, checksums, and each record for itself, against the log file that it should describe.  QC_DAMAGED = make it anew. */
extern QcStatus qc_hashes_check(const uint8_t *buf, size_t len, uint64_t file_id,
								uint64_t log_length, QcError *err);

/* A record out of a .qhsh that was checked. */
typedef struct QcHashesRecord
{
	uint64_t	partition;
	uint64_t	first;
	int64_t		created_at;
	uint32_t	count;
	uint32_t	ids;
	const uint8_t *cells;
} QcHashesRecord;

/* The record after *at bytes of it, 0 = the first; false = there is none. */
extern bool qc_hashes_next(const uint8_t *buf, size_t len, size_t *at, QcHashesRecord *record);

/* Hash and message id of its i-th message; false = it has no id of an application. */
extern bool qc_hashes_id(const QcHashesRecord *record, uint32_t i, const uint8_t **hash,
						 const uint8_t **id);

/* Is there one that fits the log file as it is now?	Its cells are not looked at. */
extern bool qc_hashes_usable(QcFiles *files, uint64_t log, uint64_t file);

/* Read it whole, checked; *bytes is malloc'ed.  QC_NOTFOUND: there is none; QC_DAMAGED: it does not fit; QC_FULL: no memory. */
extern QcStatus qc_hashes_read(QcFiles *files, uint64_t log, uint64_t file, uint8_t **bytes,
							   size_t *len, QcError *err);

/* Put it in its place. */
extern QcStatus qc_hashes_write(QcFiles *files, uint64_t log, uint64_t file, const uint8_t *bytes,
								size_t len, QcError *err);

#endif							/* QC_HASHES_H */
