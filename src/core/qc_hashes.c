/*
 * qc_hashes.c
 *		.qhsh files (layout and contracts in qc_hashes.h).
 *
 * The seal ties the file to its log file: one that was cut, and went on otherwise to the same length, has another last record.
 */
#include "qc_hashes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "qc_derived.h"
#include "qc_dir.h"

#define SEALED_SIZE (QC_DERIVED_HEAD_SIZE + QC_HASHES_CELL) /* head and seal */

static const QcDerived hashes_kind = {"QQHSH1\0", QC_HASHES_CELL, "dedup ids"};

static QcStatus
no_memory(QcError *err)
{
	return qc_error_set(err, QC_FULL, "out of memory");
}

/* ---- making one ---- */

/* Room for so many cells more. */
static QcStatus
grow(QcHashesBuild *build, uint64_t more, QcError *err)
{
	uint64_t	need = build->cells + more;
	uint64_t	cap = need + need / 2 + 128;
	uint8_t    *bytes;

	if (build->bytes != NULL && need <= build->cap)
		return QC_OK;
	if (cap >= UINT32_MAX)
		return no_memory(err);
	bytes = realloc(build->bytes, SEALED_SIZE + (size_t) cap * QC_HASHES_CELL);
	if (bytes == NULL)
		return no_memory(err);
	build->bytes = bytes;
	build->cap = (uint32_t) cap;
	return QC_OK;
}

/* The frames of a record. */
static QcStatus
unpack(QcHashesBuild *build, const QcRecord *record, QcReader *frames, QcError *err)
{
	size_t		len;
	QcStatus	status;

	if (!record->compressed)
	{
		qc_reader_init(frames, record->payload, record->payload_len);
		return QC_OK;
	}
	status = qc_record_raw_size(record, &len, err);
	if (status == QC_OK && len > build->raw_cap)
	{
		free(build->raw);
		build->raw_cap = 0;
		build->raw = malloc(len);
		if (build->raw == NULL)
			return no_memory(err);
		build->raw_cap = len;
	}
	if (status == QC_OK)
		status = qc_record_unpack(record, build->raw, len, err);
	qc_reader_init(frames, build->raw, status == QC_OK ? len : 0);
	return status;
}

/* Cells of the record's messages, at the end of what stands there; *ids counts those that have an id. */
static QcStatus
put_cells(QcHashesBuild *build, const QcRecord *record, uint32_t *ids, QcError *err)
{
	uint8_t    *cell = build->bytes + SEALED_SIZE + ((size_t) build->cells + 1) * QC_HASHES_CELL;
	QcReader	frames;
	QcMessage	message;
	QcStatus	status = unpack(build, record, &frames, err);

	*ids = 0;
	for (uint32_t i = 0; i < record->count && status == QC_OK; i++)
	{
		status = qc_frame_get(&frames, &message, err);
		if (status == QC_END)
			return qc_error_set(err, QC_DAMAGED, "record holds %u messages instead of %u", i, record->count);
		if (status != QC_OK)
			return status;
		memset(cell, 0, QC_HASHES_CELL);
		if (message.dedup_len > 0)
		{
			memcpy(cell, record->hashes + (size_t) i * QC_HASH_SIZE, QC_HASH_SIZE);
			memcpy(cell + QC_HASH_SIZE, message.id, QC_ID_SIZE);
			(*ids)++;
		}
		cell += QC_HASHES_CELL;
	}
	return status;
}

QcStatus
qc_hashes_add(QcHashesBuild *build, uint64_t position, const uint8_t *bytes, const QcRecord *record,
			  QcError *err)
{
	uint8_t    *at;
	uint32_t	ids;
	QcStatus	status = QC_OK;

	build->last_position = position;
	build->last_checksum = qc_load_u64(bytes + 4);
	if (record->kind != QC_KIND_MESSAGES && record->kind != QC_KIND_SOLO)
		return QC_OK;
	status = grow(build, 1 + (uint64_t) record->count, err);
	if (status == QC_OK)
		status = put_cells(build, record, &ids, err);
	if (status != QC_OK || ids == 0)
		return status;
	at = build->bytes + SEALED_SIZE + (size_t) build->cells * QC_HASHES_CELL;
	qc_store_u64(at, record->partition);
	qc_store_u64(at + 8, record->first);
	qc_store_u64(at + 16, (uint64_t) record->created_at);
	qc_store_u32(at + 24, record->count);
	qc_store_u32(at + 28, ids);
	build->cells += 1 + record->count;
	build->records++;
	build->ids += ids;
	return QC_OK;
}

QcStatus
qc_hashes_seal(QcHashesBuild *build, uint64_t file_id, uint64_t log_length, const uint8_t **bytes,
			   size_t *len, QcError *err)
{
	uint8_t    *seal;
	QcStatus	status = grow(build, 0, err);

	if (status != QC_OK)
		return status;
	seal = build->bytes + QC_DERIVED_HEAD_SIZE;
	qc_store_u64(seal, build->last_position == 0 ? QC_FILE_HEADER_SIZE : build->last_position);
	qc_store_u64(seal + 8, build->last_checksum);
	qc_store_u64(seal + 16, build->records);
	qc_store_u64(seal + 24, build->ids);
	qc_derived_seal(build->bytes, &hashes_kind, file_id, log_length, build->cells + 1);
	*bytes = build->bytes;
	*len = SEALED_SIZE + (size_t) build->cells * QC_HASHES_CELL;
	return QC_OK;
}

void
qc_hashes_free(QcHashesBuild *build)
{
	free(build->bytes);
	free(build->raw);
	memset(build, 0, sizeof(*build));
}

/* ---- reading one ---- */

bool
qc_hashes_id(const QcHashesRecord *record, uint32_t i, const uint8_t **hash, const uint8_t **id)
{
	static const uint8_t none[QC_HASHES_CELL];
	const uint8_t *cell = record->cells + (size_t) i * QC_HASHES_CELL;

	assert(i < record->count);
	*hash = cell;
	*id = cell + QC_HASH_SIZE;
	return memcmp(cell, none, QC_HASHES_CELL) != 0;
}

bool
qc_hashes_next(const uint8_t *buf, size_t len, size_t *at, QcHashesRecord *record)
{
	const uint8_t *head;

	if (*at == 0)
		*at = SEALED_SIZE;
	if (len - *at < QC_HASHES_CELL)
		return false;
	head = buf + *at;
	record->partition = qc_load_u64(head);
	record->first = qc_load_u64(head + 8);
	record->created_at = (int64_t) qc_load_u64(head + 16);
	record->count = qc_load_u32(head + 24);
	record->ids = qc_load_u32(head + 28);
	record->cells = head + QC_HASHES_CELL;
	if ((len - *at) / QC_HASHES_CELL - 1 < record->count)
		return false;
	*at += (1 + (size_t) record->count) * QC_HASHES_CELL;
	return true;
}

/* Does the record say of itself what its cells say? */
static bool
record_fits(const QcHashesRecord *record)
{
	uint32_t	ids = 0;

	for (uint32_t i = 0; i < record->count; i++)
	{
		const uint8_t *hash;
		const uint8_t *id;

		ids += qc_hashes_id(record, i, &hash, &id);
	}
	return ids > 0 && ids == record->ids && record->first <= UINT64_MAX - record->count;
}

QcStatus
qc_hashes_check(const uint8_t *buf, size_t len, uint64_t file_id, uint64_t log_length, QcError *err)
{
	QcHashesRecord record;
	size_t		at = 0;
	uint64_t	records = 0;
	uint64_t	ids = 0;
	uint32_t	count;
	const uint8_t *seal = buf + QC_DERIVED_HEAD_SIZE;
	QcStatus	status = qc_derived_check(buf, len, &hashes_kind, file_id, log_length, &count, err);

	if (status != QC_OK)
		return status;
	if (count == 0 || qc_load_u64(seal) < QC_FILE_HEADER_SIZE || qc_load_u64(seal) > log_length)
		return qc_error_set(err, QC_DAMAGED, "seal of the dedup ids is impossible");
	while (qc_hashes_next(buf, len, &at, &record))
	{
		if (!record_fits(&record))
			return qc_error_set(err, QC_DAMAGED, "dedup ids of a record are impossible");
		records++;
		ids += record.ids;
	}
	if (at != len || records != qc_load_u64(seal + 16) || ids != qc_load_u64(seal + 24))
		return qc_error_set(err, QC_DAMAGED, "dedup ids are not as many as their seal says");
	return QC_OK;
}

/* Does the log file end where the head says, with the record that the seal names? */
static bool
seal_fits(QcFiles *files, uint64_t log, uint64_t file, const uint8_t *sealed)
{
	uint64_t	length = qc_derived_length(sealed);
	uint64_t	position = qc_load_u64(sealed + QC_DERIVED_HEAD_SIZE);
	uint64_t	checksum = qc_load_u64(sealed + QC_DERIVED_HEAD_SIZE + 8);
	uint8_t		there[12];

	if (!qc_files_ends_at(files, log, file, length) || position > length)
		return false;
	if (position == QC_FILE_HEADER_SIZE && checksum == 0)
		return true;			/* no record but pads */
	return length - position > sizeof(there) &&
		qc_files_read(files, log, file, position, there, sizeof(there), NULL) == QC_OK &&
		qc_load_u64(there + 4) == checksum;
}

/* Open it and read head and seal; false = it cannot be used. */
static bool
open_sealed(QcFiles *files, uint64_t log, uint64_t file, uint8_t sealed[SEALED_SIZE],
			QcHandle *handle, uint64_t *size, QcStatus *status)
{
	const QcIo *io = files->io;
	char		path[QC_PATH_MAX];
	size_t		done = 0;
	uint32_t	count;

	qc_path_file(path, files->layout, log, file, "qhsh");
	*status = QC_NOTFOUND;
	if (io->open(io->context, path, 0, handle) != 0)
		return false;
	*status = QC_DAMAGED;
	if (io->read(io->context, *handle, sealed, SEALED_SIZE, 0, &done) == 0 && done == SEALED_SIZE &&
		qc_derived_count(sealed, &hashes_kind, file, &count, NULL) == QC_OK &&
		io->size(io->context, *handle, size) == 0 &&
		*size == QC_DERIVED_HEAD_SIZE + (uint64_t) count * QC_HASHES_CELL &&
		seal_fits(files, log, file, sealed))
		return true;
	io->close(io->context, *handle);
	return false;
}

bool
qc_hashes_usable(QcFiles *files, uint64_t log, uint64_t file)
{
	uint8_t		sealed[SEALED_SIZE];
	QcHandle	handle;
	uint64_t	size;
	QcStatus	status;

	if (!open_sealed(files, log, file, sealed, &handle, &size, &status))
		return false;
	files->io->close(files->io->context, handle);
	return true;
}

QcStatus
qc_hashes_read(QcFiles *files, uint64_t log, uint64_t file, uint8_t **bytes, size_t *len,
			   QcError *err)
{
	const QcIo *io = files->io;
	uint8_t		sealed[SEALED_SIZE];
	QcHandle	handle;
	uint64_t	size;
	size_t		done = 0;
	QcStatus	status;

	*bytes = NULL;
	*len = 0;
	if (!open_sealed(files, log, file, sealed, &handle, &size, &status))
		return qc_error_set(err, status, "no dedup ids that fit the log file");

	/* The head was checked, and with it the size: it was written so. */
	*bytes = malloc((size_t) size);
	if (*bytes == NULL)
		status = no_memory(err);
	else if (io->read(io->context, handle, *bytes, (size_t) size, 0, &done) != 0 || done != size)
		status = qc_error_set(err, QC_DAMAGED, "dedup ids cannot be read");
	else
		status = qc_hashes_check(*bytes, done, file, qc_derived_length(sealed), err);
	io->close(io->context, handle);
	*len = done;
	if (status != QC_OK)
	{
		free(*bytes);
		*bytes = NULL;
		*len = 0;
	}
	return status;
}

QcStatus
qc_hashes_write(QcFiles *files, uint64_t log, uint64_t file, const uint8_t *bytes, size_t len,
				QcError *err)
{
	char		path[QC_PATH_MAX];

	qc_path_file(path, files->layout, log, file, "qhsh");
	return qc_dir_write_file(files->io, path, bytes, len, err);
}
