/*
 * qc_derived.c
 *		Heads of files derived from closed log files (contract in qc_derived.h).
 */
#include "qc_derived.h"

#include "qc_record.h"

#include <inttypes.h>
#include <string.h>

#define AT_FILE_ID		8
#define AT_COUNT		16
#define AT_CELL			20
#define AT_LOG_LENGTH	24
#define AT_CELLS_SUM	32
#define AT_HEAD_SUM		40

void
qc_derived_seal(uint8_t *out, const QcDerived *kind, uint64_t file_id, uint64_t log_length,
				uint32_t count)
{
	memcpy(out, kind->magic, sizeof(kind->magic));
	qc_store_u64(out + AT_FILE_ID, file_id);
	qc_store_u32(out + AT_COUNT, count);
	qc_store_u32(out + AT_CELL, kind->cell);
	qc_store_u64(out + AT_LOG_LENGTH, log_length);
	qc_store_u64(out + AT_CELLS_SUM,
				 qc_digest(out + QC_DERIVED_HEAD_SIZE, (size_t) count * kind->cell));
	qc_store_u64(out + AT_HEAD_SUM, qc_digest(out, AT_HEAD_SUM));
}

QcStatus
qc_derived_count(const uint8_t head[QC_DERIVED_HEAD_SIZE], const QcDerived *kind, uint64_t file_id,
				 uint32_t *count, QcError *err)
{
	if (memcmp(head, kind->magic, sizeof(kind->magic)) != 0)
		return qc_error_set(err, QC_DAMAGED, "file does not begin as the %s of a log file", kind->name);
	if (qc_load_u64(head + AT_HEAD_SUM) != qc_digest(head, AT_HEAD_SUM))
		return qc_error_set(err, QC_DAMAGED, "%s header has a wrong checksum", kind->name);
	if (qc_load_u64(head + AT_FILE_ID) != file_id)
		return qc_error_set(err, QC_DAMAGED, "%s belongs to file %" PRIu64, kind->name,
							qc_load_u64(head + AT_FILE_ID));
	*count = qc_load_u32(head + AT_COUNT);
	return QC_OK;
}

QcStatus
qc_derived_check(const uint8_t *buf, size_t len, const QcDerived *kind, uint64_t file_id,
				 uint64_t log_length, uint32_t *count, QcError *err)
{
	size_t		body_len;
	QcStatus	status;

	if (len < QC_DERIVED_HEAD_SIZE)
		return qc_error_set(err, QC_DAMAGED, "file does not begin as the %s of a log file", kind->name);
	body_len = len - QC_DERIVED_HEAD_SIZE;
	status = qc_derived_count(buf, kind, file_id, count, err);
	if (status != QC_OK)
		return status;
	if (qc_derived_length(buf) != log_length)
		return qc_error_set(err, QC_DAMAGED, "%s describes a log file of %" PRIu64 " bytes",
							kind->name, qc_derived_length(buf));
	if (qc_load_u32(buf + AT_CELL) != kind->cell || body_len % kind->cell != 0 ||
		body_len / kind->cell != *count)
		return qc_error_set(err, QC_DAMAGED, "%s has a wrong size", kind->name);
	if (qc_load_u64(buf + AT_CELLS_SUM) != qc_digest(buf + QC_DERIVED_HEAD_SIZE, body_len))
		return qc_error_set(err, QC_DAMAGED, "%s entries have a wrong checksum", kind->name);
	return QC_OK;
}
