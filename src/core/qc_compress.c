/*
 * qc_compress.c
 *		zstd for the payloads of message records.
 *
 * One compression and one decompression context per process, created on first use and never
 * freed, so that a message costs no allocation.  Called by qc_record.c only.
 */
#include "qc_compress.h"

#include <zstd.h>
#include <zstd_errors.h>

static ZSTD_CCtx *compressor;
static ZSTD_DCtx *decompressor;

QcStatus
qc_compress(uint8_t *out, const uint8_t *raw, size_t raw_len, int level, size_t *packed,
			QcError *err)
{
	/* zstd gives up by itself when the result would not fit into nine tenths */
	size_t		room = raw_len - (raw_len + 9) / 10;
	size_t		result;

	*packed = 0;
	if (compressor == NULL)
		compressor = ZSTD_createCCtx();
	if (compressor == NULL)
		return qc_error_set(err, QC_FULL, "no memory for a zstd context");
	result = ZSTD_compressCCtx(compressor, out, room, raw, raw_len, level);
	if (!ZSTD_isError(result))
		*packed = result;
	else if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
		return qc_error_set(err, QC_FULL, "no memory for zstd to compress with");
	else if (ZSTD_getErrorCode(result) != ZSTD_error_dstSize_tooSmall)
		return qc_error_set(err, QC_INTERNAL, "zstd cannot compress: %s",
							ZSTD_getErrorName(result));
	return QC_OK;
}

QcStatus
qc_compressed_raw_size(const uint8_t *frame, size_t frame_len, size_t limit, size_t *raw_size,
					   QcError *err)
{
	unsigned long long size = ZSTD_getFrameContentSize(frame, frame_len);

	if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
		return qc_error_set(err, QC_DAMAGED, "compressed payload does not state its size");
	if (size > limit)
		return qc_error_set(err, QC_DAMAGED, "compressed payload states a size of %llu bytes", size);
	*raw_size = (size_t) size;
	return QC_OK;
}

QcStatus
qc_decompress(uint8_t *out, size_t raw_size, const uint8_t *frame, size_t frame_len, QcError *err)
{
	size_t		result;

	if (decompressor == NULL)
		decompressor = ZSTD_createDCtx();
	if (decompressor == NULL)
		return qc_error_set(err, QC_FULL, "no memory for a zstd context");
	result = ZSTD_decompressDCtx(decompressor, out, raw_size, frame, frame_len);
	if (ZSTD_isError(result) && ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
		return qc_error_set(err, QC_FULL, "no memory for zstd to decompress with");
	if (ZSTD_isError(result))
		return qc_error_set(err, QC_DAMAGED, "compressed payload cannot be read: %s",
							ZSTD_getErrorName(result));
	if (result != raw_size)
		return qc_error_set(err, QC_DAMAGED, "compressed payload holds %zu bytes instead of %zu",
							result, raw_size);
	return QC_OK;
}
