/*
 * qc_verify.c
 *		Looking through a log file for damage (contracts in qc_verify.h).
 */
#include "qc_verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qc_dir.h"
#include "qc_entry.h"
#include "qc_scan.h"

#define PATH_MAX_BAD	(QC_PATH_MAX + 32)

/* A file being looked through. */
typedef struct Looking
{
	const QcVerify *v;
	QcScan		scan;
	uint8_t    *raw;			/* unpacked payload */
	size_t		raw_cap;
	uint64_t	partition;		/* of the last message record */
	bool		foreign;		/* a record of another log was reported */
} Looking;

/* ---- one record ---- */

/* Unpack the payload of a message record and decode its frames: as many as it says, with these hashes. */
static QcStatus
check_messages(Looking *look, const QcRecord *record, QcError *err)
{
	size_t		size;
	QcReader	r;
	QcStatus	status = qc_record_raw_size(record, &size, err);

	if (status == QC_OK && size > look->raw_cap)
	{
		uint8_t    *more = realloc(look->raw, size);

		if (more == NULL)
			return qc_error_set(err, QC_FULL, "out of memory");
		look->raw = more;
		look->raw_cap = size;
	}
	if (status == QC_OK)
		status = qc_record_unpack(record, look->raw, size, err);
	if (status != QC_OK)
		return status;
	qc_reader_init(&r, look->raw, size);
	return qc_record_check_frames(record, r, err);
}

static QcStatus
check_entry(const QcRecord *record, QcError *err)
{
	QcEntry		entry;
	QcEffect	effect;
	QcStatus	status = qc_entry_decode(record->payload, record->payload_len, &entry, err);

	while (status == QC_OK)
		status = qc_effect_get(&entry.effects, &effect, err);
	return status == QC_END ? QC_OK : status;
}

static QcStatus
tell(const Looking *look, QcFinding *finding, const char *text, QcError *err)
{
	finding->log = look->v->log;
	finding->file = look->v->file;
	(void) snprintf(finding->text, sizeof(finding->text), "%s", text);
	return look->v->finding(look->v->context, finding) ? QC_OK :
		qc_error_set(err, QC_INTERRUPTED, "verification was interrupted");
}

static QcStatus
report(const Looking *look, uint64_t position, uint64_t bytes, uint64_t seq, uint64_t next_seq,
	   const char *text, QcError *err)
{
	QcFinding	finding = {.position = position, .bytes = bytes, .seq = seq, .next_seq = next_seq};

	return tell(look, &finding, text, err);
}

/* Is it a record of this log? */
static QcStatus
check_owner(Looking *look, const QcRecord *record, QcError *err)
{
	const QcVerify *v = look->v;
	QcFinding	finding = {.position = look->scan.position, .seq = record->seq,
		.next_seq = record->seq, .foreign = true};

	if (v->belongs == NULL || look->foreign || record->partition == look->partition)
		return QC_OK;
	look->partition = record->partition;
	if (v->belongs(v->context, record->partition))
		return QC_OK;
	look->foreign = true;
	return tell(look, &finding, "record belongs to another log", err);
}

/* Take the record that the scan stands on. */
static QcStatus
take(Looking *look, QcError *err)
{
	const QcVerify *v = look->v;
	const QcRecord *record = &look->scan.record;
	bool		messages = record->kind == QC_KIND_MESSAGES || record->kind == QC_KIND_SOLO;
	QcError		why;
	QcStatus	status = QC_OK;

	if (messages)
		status = check_owner(look, record, err);
	if (status != QC_OK)
		return status;
	if (v->deep && messages)
		status = check_messages(look, record, &why);
	else if (v->deep && record->kind == QC_KIND_ENTRY)
		status = check_entry(record, &why);
	if (status == QC_FULL)
		return qc_error_set(err, QC_FULL, "out of memory");
	if (status != QC_OK)
		return report(look, look->scan.position, 0, record->seq, record->seq, why.text, err);
	if (messages && v->record != NULL &&
		!v->record(v->context, record->partition, record->first, record->count))
		return qc_error_set(err, QC_FULL, "out of memory");
	return QC_OK;
}

/* ---- the file ---- */

/* Last byte that is not zero, in [from, to); from when there is none. */
static QcStatus
last_byte(const Looking *look, uint64_t from, uint64_t to, uint64_t *end, QcError *err)
{
	uint8_t		buf[4096];

	for (*end = to; *end > from;)
	{
		size_t		len = *end - from < sizeof(buf) ? (size_t) (*end - from) : sizeof(buf);
		QcStatus	status = qc_files_read(look->v->files, look->v->log, look->v->file, *end - len, buf,
										   len, err);

		if (status != QC_OK)
			return status;
		while (len > 0 && buf[len - 1] == 0)
		{
			len--;
			(*end)--;
		}
		if (len > 0)
			return QC_OK;
	}
	return QC_OK;
}

/* The scan has met something that is no record: report it and go on behind it; QC_END = nothing is behind. */
static QcStatus
step_over(Looking *look, QcError *err)
{
	const QcVerify *v = look->v;
	QcScan	   *scan = &look->scan;
	uint64_t	position = scan->position;
	uint64_t	seq = scan->last_seq;
	uint64_t	end = v->end != 0 && v->end < scan->file_size ? v->end : scan->file_size;
	char		text[sizeof(scan->fault.text)];
	QcStatus	status;
	QcStatus	told;

	memcpy(text, scan->fault.text, sizeof(text));
	status = qc_scan_resync(scan, err);
	if (status != QC_OK && status != QC_END)
		return status;
	if (status == QC_OK && scan->position < end)
		end = scan->position;
	else
		status = last_byte(look, position, end, &end, err) == QC_OK ? QC_END : err->code;
	if (status != QC_OK && status != QC_END)
		return status;
	told = report(look, position, end - position, seq, status == QC_OK ? scan->record.seq : 0, text, err);
	return told != QC_OK ? told : status;
}

/* The length that a valid .qidx of the file tells, 0 = there is none. */
static uint64_t
length_in_index(const Looking *look)
{
	const QcVerify *v = look->v;
	const QcIo *io = v->files->io;
	uint8_t		header[QC_IDX_HEADER_SIZE];
	char		path[QC_PATH_MAX];
	QcHandle	handle;
	size_t		done = 0;
	uint32_t	count;
	QcError		ignored;

	qc_path_file(path, v->files->layout, v->log, v->file, "qidx");
	if (io->open(io->context, path, 0, &handle) != 0)
		return 0;
	if (io->read(io->context, handle, header, sizeof(header), 0, &done) != 0)
		done = 0;
	io->close(io->context, handle);
	if (done < sizeof(header) || qc_idx_count(header, v->file, &count, &ignored) != QC_OK)
		return 0;
	return qc_load_u64(header + 24);
}

/* Was something written to the file?  A log passes over a file that has no room for all that is promised. */
static bool
was_taken(const Looking *look)
{
	const QcVerify *v = look->v;
	uint8_t		bytes[QC_FILE_HEADER_SIZE];
	QcFileHeader header;

	return qc_files_read(v->files, v->log, v->file, 0, bytes, sizeof(bytes), NULL) != QC_OK ||
		qc_file_header_decode(bytes, sizeof(bytes), &header, NULL) != QC_OK ||
		header.first_seq != QC_FIRST_SEQ_AHEAD;
}

/* Records end with zeros at `position`: is that where they should end? */
static QcStatus
check_end(const Looking *look, uint64_t position, QcError *err)
{
	const QcVerify *v = look->v;
	uint64_t	expected = v->end != 0 ? v->end : length_in_index(look);

	if (position < expected)
	{
		QcFinding	finding = {.position = position, .bytes = expected - position,
			.seq = look->scan.last_seq, .by_index = v->end == 0};

		return tell(look, &finding, "file ends before its written part", err);
	}
	if (expected == 0 && position == QC_FILE_HEADER_SIZE && was_taken(look))
		return report(look, QC_FILE_HEADER_SIZE, look->scan.file_size - QC_FILE_HEADER_SIZE, 0, 0,
					  "closed file holds no record", err);
	return QC_OK;
}

static QcStatus
walk(Looking *look, QcError *err)
{
	const QcVerify *v = look->v;
	QcScan	   *scan = &look->scan;
	uint64_t	told = 0;

	for (;;)
	{
		QcStatus	status;

		if (v->end != 0 && scan->next >= v->end)
			return QC_OK;
		status = qc_scan_next(scan, err);
		if (status == QC_END && scan->end == QC_SCAN_CLEAN)
			return check_end(look, scan->position, err);
		if (status == QC_END)
			status = step_over(look, err);
		if (status == QC_END)
			return QC_OK;
		if (status == QC_VERSION)
			return report(look, scan->next, 0, scan->last_seq, 0, err->text, err);
		if (status == QC_OK)
			status = take(look, err);
		if (status != QC_OK)
			return status;
		if (v->progress != NULL && !v->progress(v->context, scan->next - told))
			return qc_error_set(err, QC_INTERRUPTED, "verification was interrupted");
		told = scan->next;
	}
}

QcStatus
qc_verify_file(const QcVerify *v, QcError *err)
{
	Looking		look = {.v = v};
	uint64_t	size;
	QcStatus	status;

	/* The file may have been replaced since it was opened. */
	qc_files_forget(v->files, v->log, v->file);
	status = qc_files_size(v->files, v->log, v->file, false, &size, err);
	if (status != QC_OK)
		return status;
	if (size < QC_FILE_HEADER_SIZE)
		return report(&look, 0, size, 0, 0, "file ends within its header", err);
	status = qc_scan_begin(&look.scan, v->files, v->log, v->file, QC_FILE_HEADER_SIZE, err);
	if (status != QC_OK)
		return status;

	/* This file only. */
	look.scan.nfiles = look.scan.at + 1;
	status = walk(&look, err);
	qc_scan_end(&look.scan);
	free(look.raw);
	return status;
}

/* ---- what was lost ---- */

/* The .qidx, whole and right in itself; QC_NOTFOUND when there is none. */
static QcStatus
load_index(QcFiles *files, uint64_t log, uint64_t file, uint8_t **bytes, uint32_t *count, QcError *err)
{
	const QcIo *io = files->io;
	char		path[QC_PATH_MAX];
	QcHandle	handle;
	uint64_t	size;
	size_t		len = 0;
	QcStatus	status = QC_NOTFOUND;

	*bytes = NULL;
	qc_path_file(path, files->layout, log, file, "qidx");
	if (io->open(io->context, path, 0, &handle) != 0)
		return QC_NOTFOUND;
	if (io->size(io->context, handle, &size) == 0 && size >= QC_IDX_HEADER_SIZE)
		*bytes = malloc((size_t) size);
	if (*bytes != NULL &&
		io->read(io->context, handle, *bytes, (size_t) size, 0, &len) == 0 &&
		len >= QC_IDX_HEADER_SIZE &&
		qc_idx_check(*bytes, len, file, qc_load_u64(*bytes + 24), count, err) == QC_OK)
		status = QC_OK;
	io->close(io->context, handle);
	return status;
}

QcStatus
qc_verify_lost(QcFiles *files, uint64_t log, uint64_t file, uint64_t position, uint64_t bytes,
			   QcLostVisitor visit, void *context, QcError *err)
{
	uint8_t    *index;
	uint32_t	count;
	QcStatus	status = load_index(files, log, file, &index, &count, err);

	for (uint32_t i = 0; status == QC_OK && i < count; i++)
	{
		QcIdxEntry	entry;

		qc_idx_entry_decode(index + QC_IDX_HEADER_SIZE + (size_t) i * QC_IDX_ENTRY_SIZE, &entry);
		if (entry.position >= position && entry.position - position < (bytes == 0 ? 1 : bytes))
			visit(context, entry.partition, entry.first, entry.count);
	}
	free(index);
	return status;
}

/* ---- mending ---- */

/* Keep the bytes of a place beside the file. */
static QcStatus
keep_bytes(QcFiles *files, const QcFinding *finding, const char *path, const uint8_t *bytes,
		   size_t len, QcError *err)
{
	char		bad[PATH_MAX_BAD];
	QcHandle	handle;

	(void) snprintf(bad, sizeof(bad), "%s.bad.%" PRIu64, path, finding->position);

	/* Those of an earlier attempt are the ones to keep. */
	if (files->io->open(files->io->context, bad, 0, &handle) == 0)
	{
		files->io->close(files->io->context, handle);
		return QC_OK;
	}
	return qc_dir_write_file(files->io, bad, bytes, len, err);
}

/* Overwrite the place: header, or pad. */
static QcStatus
overwrite(QcFiles *files, const QcFinding *finding, const char *path, uint8_t *bytes, size_t len,
		  int64_t now, QcError *err)
{
	QcIoSlice	slice = {bytes, len};
	QcFileHeader header = {.file_id = finding->file, .first_seq = finding->next_seq};
	QcHandle	handle;
	QcStatus	status = qc_files_get(files, finding->log, finding->file, true, &handle, err);
	int			rc;

	if (status != QC_OK)
		return status;
	if (finding->position == 0)
		qc_file_header_encode(bytes, &header);
	else
		qc_record_put_pad(bytes, len, finding->seq != 0 ? finding->seq : finding->next_seq, now);
	rc = files->io->write(files->io->context, handle, &slice, 1, finding->position);
	if (rc == 0)
		rc = files->io->sync(files->io->context, handle);
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, path, "could not mend log file");
}

bool
qc_verify_mendable(const QcFinding *finding)
{
	if (finding->bytes == 0 || (finding->seq == 0 && finding->next_seq == 0))
		return false;
	return finding->position == 0 ||
		(finding->bytes >= QC_RECORD_HEADER_SIZE && finding->bytes <= QC_RECORD_LEN_MAX);
}

QcStatus
qc_verify_mend(QcFiles *files, const QcFinding *finding, int64_t now, QcError *err)
{
	size_t		len = finding->position == 0 ? QC_FILE_HEADER_SIZE : (size_t) finding->bytes;
	char		path[QC_PATH_MAX];
	uint8_t    *bytes;
	QcStatus	status;

	qc_path_file(path, files->layout, finding->log, finding->file, "qlog");
	if (!qc_verify_mendable(finding))
		return qc_error_at(err, QC_INVALID, path, finding->position, "place cannot be mended");
	bytes = malloc(len);
	if (bytes == NULL)
		return qc_error_set(err, QC_FULL, "out of memory");
	status = qc_files_read(files, finding->log, finding->file, finding->position, bytes, len, err);
	if (status == QC_OK)
		status = keep_bytes(files, finding, path, bytes, len, err);
	if (status == QC_OK)
		status = overwrite(files, finding, path, bytes, len, now, err);
	free(bytes);
	return status;
}
