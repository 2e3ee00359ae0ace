/*
 * qc_derived.h
 *		What files derived from closed log files have in common: a head with checksums, then cells of one size.
 *
 * Head, 48 bytes: 8 bytes of magic, u64 file id, u32 count of cells, u32 size of a cell, u64 length of the written part of the log
 * file, u64 XXH3_64 of the cells, u64 XXH3_64 of the 40 bytes before.  Whatever does not fit is rebuilt from the log file.
 *
 * .qidx: qc_logfile.h; .qhsh: qc_hashes.h.  Works on memory only.
 */
#ifndef QC_DERIVED_H
#define QC_DERIVED_H

#include "qc_bytes.h"
#include "qc_error.h"

#define QC_DERIVED_HEAD_SIZE	48

typedef struct QcDerived
{
	char		magic[8];
	uint32_t	cell;			/* bytes */
	const char *name;			/* for errors: "index" */
} QcDerived;

/* Write the head before `count` cells that stand in place. */
extern void qc_derived_seal(uint8_t *out, const QcDerived *kind, uint64_t file_id,
							uint64_t log_length, uint32_t count);

/* Number of cells out of the head alone; QC_DAMAGED when it is not the head of this file's. */
extern QcStatus qc_derived_count(const uint8_t head[QC_DERIVED_HEAD_SIZE], const QcDerived *kind,
								 uint64_t file_id, uint32_t *count, QcError *err);

/* Length of the log file that a head describes. */
static inline uint64_t
qc_derived_length(const uint8_t head[QC_DERIVED_HEAD_SIZE])
{
	return qc_load_u64(head + 24);
}

/* Head, sizes and both checksums of a whole file; QC_DAMAGED = rebuild. */
extern QcStatus qc_derived_check(const uint8_t *buf, size_t len, const QcDerived *kind,
								 uint64_t file_id, uint64_t log_length, uint32_t *count,
								 QcError *err);

#endif							/* QC_DERIVED_H */
