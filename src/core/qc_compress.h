/*
 * qc_compress.h
 *		zstd for the payloads of message records: the only file that knows the library.
 *
 * The zstd contexts are made by the library once per process, when first needed, and kept:
 * the one exception from "the core does not allocate while serving".  Not thread-safe, as
 * no process of qlog has threads.
 */
#ifndef QC_COMPRESS_H
#define QC_COMPRESS_H

#include "qc_error.h"

#include <stddef.h>

/*
 * Compress raw into out, which has at least raw_len bytes.  *packed is the size of the zstd
 * frame, 0 when it would not have saved a tenth (out is then undefined).  QC_FULL when the
 * library has no memory.
 */
extern QcStatus qc_compress(uint8_t *out, const uint8_t *raw, size_t raw_len, int level,
							size_t *packed, QcError *err);

/* Content size that the zstd frame states, QC_DAMAGED when it states none or more than limit. */
extern QcStatus qc_compressed_raw_size(const uint8_t *frame, size_t frame_len, size_t limit,
									   size_t *raw_size, QcError *err);

/* Decompress into exactly raw_size bytes; QC_DAMAGED when the frame holds anything else. */
extern QcStatus qc_decompress(uint8_t *out, size_t raw_size, const uint8_t *frame,
							  size_t frame_len, QcError *err);

#endif							/* QC_COMPRESS_H */
