/*
 * qc_scan.c
 *		Reading logs record by record (contracts in qc_scan.h).
 *
 * One buffer is a window on the current file.  A record is believed for its checksum alone; where one should stand and
 * none does, the rest of the file and all later files are searched byte by byte, so that damage in the middle is told
 * from a torn end.  The search believes a candidate only when kind, counts and seq are possible and the checksum is
 * right; the cheap tests come first, or random bytes would cost a checksum over megabytes at every position.
 *
 * Zeros where a record should start end the written part of a file only when zeros follow up to its end.  Files that
 * hold nothing but zeros behind the header were created ahead (or lost all they held): the scan passes over them.
 *
 * Called by recovery, .qidx building and tools; allocates.
 */
#include "qc_scan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "qc_dir.h"

#define CHUNK		32768
#define SEQ_AHEAD	(UINT64_C(1) << 40) /* a record found by searching is not further ahead than
										 * that */

/* Record header fields that the search looks at before it computes a checksum. */
#define AT_SEQ		12
#define AT_COUNT	36
#define AT_KIND		48

static void
path_of(const QcScan *scan, char path[QC_PATH_MAX])
{
	qc_path_file(path, scan->files->layout, scan->log, qc_scan_file(scan), "qlog");
}

/* Has the current file become shorter?  Its size is right then. */
static bool
follow_size(QcScan *scan)
{
	uint64_t	size;

	if (qc_files_size(scan->files, scan->log, qc_scan_file(scan), false, &size, NULL) != QC_OK ||
		size >= scan->file_size)
		return false;
	scan->file_size = size;
	return true;
}

/*
 * Bytes [position, position + len) of the current file, which has them, in place until the next call.  The zeros at the
 * end of a closed file may be given back while it is read: QC_SHORT when that was found out here, and file_size is right.
 */
static QcStatus
window(QcScan *scan, uint64_t position, size_t len, const uint8_t **bytes, QcError *err)
{
	uint64_t	left = scan->file_size - position;
	size_t		want;
	QcStatus	status;

	assert(position <= scan->file_size && len <= left);
	if (position >= scan->buf_position && position - scan->buf_position <= scan->buf_len &&
		len <= scan->buf_len - (size_t) (position - scan->buf_position))
	{
		*bytes = scan->buf + (position - scan->buf_position);
		return QC_OK;
	}
	want = len > CHUNK ? len : CHUNK;
	if (want > scan->buf_cap)
	{
		uint8_t    *more = realloc(scan->buf, want);

		if (more == NULL)
			return qc_error_set(err, QC_FULL, "out of memory");
		scan->buf = more;
		scan->buf_cap = want;
	}
	want = scan->buf_cap < left ? scan->buf_cap : (size_t) left;
	scan->buf_len = 0;
	status = qc_files_read(scan->files, scan->log, qc_scan_file(scan), position, scan->buf, want,
						   err);
	if (status == QC_SHORT && follow_size(scan) && position <= scan->file_size &&
		len <= scan->file_size - position)
		return window(scan, position, len, bytes, err);
	if (status != QC_OK)
		return status;
	scan->buf_position = position;
	scan->buf_len = want;
	*bytes = scan->buf;
	return QC_OK;
}

/* Make a file the current one. */
static QcStatus
enter(QcScan *scan, uint32_t at, QcError *err)
{
	scan->at = at;
	scan->buf_len = 0;
	return qc_files_size(scan->files, scan->log, qc_scan_file(scan), false, &scan->file_size, err);
}

/* Is everything from position to the end of the current file zero? */
static QcStatus
zeros_to_end(QcScan *scan, uint64_t position, bool *zero, QcError *err)
{
	*zero = true;
	while (position < scan->file_size && *zero)
	{
		uint64_t	left = scan->file_size - position;
		size_t		len = left < CHUNK ? (size_t) left : CHUNK;
		const uint8_t *bytes;
		QcStatus	status = window(scan, position, len, &bytes, err);

		if (status == QC_SHORT && len > scan->file_size - position)
			continue;
		if (status != QC_OK)
			return status;
		*zero = bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
		position += len;
	}
	return QC_OK;
}

/* ---- searching behind a bad place ---- */

/* Can a record start with these bytes, of which QC_RECORD_HEADER_SIZE are there and `left` are in the file? */
static bool
plausible(const QcScan *scan, const uint8_t *h, uint64_t left)
{
	uint64_t	len = qc_load_u32(h);
	uint8_t		kind = h[AT_KIND] & (uint8_t) ~QC_RECORD_COMPRESSED;
	uint64_t	count = qc_load_u32(h + AT_COUNT);
	uint64_t	seq = qc_load_u64(h + AT_SEQ);

	if (len < QC_RECORD_LEN_MIN || len > left - 4)
		return false;
	if (seq == 0 || seq < scan->last_seq || seq - scan->last_seq > SEQ_AHEAD)
		return false;
	switch (kind)
	{
		case QC_KIND_MESSAGES:
		case QC_KIND_SOLO:
			return count > 0 && count * QC_HASH_SIZE <= len;
		case QC_KIND_ENTRY:
		case QC_KIND_STUB:
		case QC_KIND_PAD:
			return count == 0 && kind == h[AT_KIND];
		default:
			return false;
	}
}

/* Is there a whole valid record at this position of the current file? */
static QcStatus
is_record(QcScan *scan, uint64_t position, bool *valid, QcError *err)
{
	const uint8_t *bytes;
	QcRecord	record;
	size_t		size;
	QcStatus	status = window(scan, position, QC_RECORD_HEADER_SIZE, &bytes, err);

	*valid = false;
	if (status != QC_OK || !plausible(scan, bytes, scan->file_size - position))
		return status;
	size = (size_t) qc_load_u32(bytes) + 4;
	status = window(scan, position, size, &bytes, err);
	if (status == QC_OK)
		*valid = qc_record_decode(bytes, size, &record, NULL) == QC_OK;
	return status;
}

/* Search the current file from position on, bytewise. */
static QcStatus
search_file(QcScan *scan, uint64_t position, QcError *err)
{
	while (position + QC_RECORD_HEADER_SIZE <= scan->file_size)
	{
		uint64_t	left = scan->file_size - position;
		size_t		len = left < CHUNK ? (size_t) left : CHUNK;
		size_t		i = 0;
		const uint8_t *bytes;
		QcStatus	status = window(scan, position, len, &bytes, err);

		if (status != QC_OK)
			return status;
		while (i + QC_RECORD_HEADER_SIZE <= len && !plausible(scan, bytes + i, left - i))
			i++;
		position += i;
		if (i + QC_RECORD_HEADER_SIZE > len)
			continue;
		status = is_record(scan, position, &scan->found, err);
		if (status != QC_OK)
			return status;
		if (scan->found)
		{
			scan->found_at = scan->at;
			scan->found_position = position;
			return QC_OK;
		}
		position++;
	}
	return QC_OK;
}

/* The scan ends at a bad place: remember why, and whether a valid record stands behind it. */
static QcStatus
end_badly(QcScan *scan, uint64_t position, const char *why, QcError *err)
{
	uint32_t	at = scan->at;
	char		path[QC_PATH_MAX];
	QcStatus	status;

	path_of(scan, path);
	(void) qc_error_at(&scan->fault, QC_DAMAGED, path, position, "%s", why);
	scan->found = false;
	status = search_file(scan, position < QC_FILE_HEADER_SIZE ? QC_FILE_HEADER_SIZE : position + 1,
						 err);
	for (uint32_t i = at + 1; i < scan->nfiles && status == QC_OK && !scan->found; i++)
	{
		status = enter(scan, i, err);
		if (status == QC_OK)
			status = search_file(scan, QC_FILE_HEADER_SIZE, err);
	}
	if (status == QC_OK)
		status = enter(scan, at, err);
	if (status != QC_OK)
		return status;
	scan->position = position;
	scan->end = scan->found ? QC_SCAN_DAMAGE : QC_SCAN_TORN;
	return QC_END;
}

/* ---- reading forward ---- */

/* Something that is no record stands at scan->next; an intact record that we do not know must not be cut. */
static QcStatus
reject(QcScan *scan, const uint8_t *bytes, size_t size, const QcError *why, QcError *err)
{
	char		path[QC_PATH_MAX];

	if (qc_digest(bytes + AT_SEQ, size - AT_SEQ) == qc_load_u64(bytes + 4))
	{
		uint8_t		kind = bytes[AT_KIND] & (uint8_t) ~QC_RECORD_COMPRESSED;

		path_of(scan, path);
		if (kind == 1 || kind > QC_KIND_SOLO)
			return qc_error_at(err, QC_VERSION, path, scan->next, "record has the unknown kind %u",
							   kind);
	}
	return end_badly(scan, scan->next, why->text, err);
}

/* Read the record at scan->next.  QC_END with end = QC_SCAN_RECORD: only zeros are left in this file. */
static QcStatus
read_here(QcScan *scan, QcError *err)
{
	uint64_t	left = scan->file_size - scan->next;
	uint64_t	size;
	const uint8_t *bytes;
	QcError		why;
	bool		zero;
	QcStatus	status = QC_END;

	if (left >= 4)
	{
		status = window(scan, scan->next, 4, &bytes, err);
		if (status == QC_SHORT && scan->file_size == scan->next)
			return QC_END;
		if (status != QC_OK)
			return status;
		status = qc_record_peek(bytes, 4, &size, &why);
	}
	if (status == QC_END)
	{
		status = zeros_to_end(scan, scan->next, &zero, err);
		if (status != QC_OK || !zero)
			return status != QC_OK ? status :
				end_badly(scan, scan->next, "bytes stand behind the end of the written part", err);
		return QC_END;
	}
	if (status != QC_OK)
		return end_badly(scan, scan->next, why.text, err);
	if (size > left)
		return end_badly(scan, scan->next, "record exceeds its file", err);
	status = window(scan, scan->next, (size_t) size, &bytes, err);
	if (status != QC_OK)
		return status;
	if (qc_record_decode(bytes, (size_t) size, &scan->record, &why) != QC_OK)
		return reject(scan, bytes, (size_t) size, &why, err);
	if (scan->record.seq < scan->last_seq)
		return end_badly(scan, scan->next, "record belongs to an older entry than the one before it",
						 err);
	scan->position = scan->next;
	scan->size = size;
	scan->next += size;
	scan->last_seq = scan->record.seq;
	return QC_OK;
}

/*
 * Look at the current file from its start: QC_OK and scan->next on its first record, QC_END with end = QC_SCAN_RECORD
 * when it is blank, whatever became of its header.
 */
static QcStatus
begin_file(QcScan *scan, QcError *err)
{
	QcFileHeader header;
	const uint8_t *bytes;
	bool		blank;
	QcStatus	status = zeros_to_end(scan, QC_FILE_HEADER_SIZE, &blank, err);

	scan->next = QC_FILE_HEADER_SIZE;
	if (status != QC_OK)
		return status;
	if (blank)
		return QC_END;
	status = window(scan, 0, QC_FILE_HEADER_SIZE, &bytes, err);
	if (status != QC_OK)
		return status;
	if (qc_file_header_decode(bytes, QC_FILE_HEADER_SIZE, &header, NULL) != QC_OK ||
		header.file_id != qc_scan_file(scan))
		return end_badly(scan, 0, "log file has a damaged header", err);
	return QC_OK;
}

/* Nothing is left: the scan ended where the last file with records has its zeros. */
static QcStatus
end_cleanly(QcScan *scan, uint32_t at, uint64_t position, QcError *err)
{
	QcStatus	status = enter(scan, at, err);

	scan->position = scan->next = position;
	scan->end = QC_SCAN_CLEAN;
	return status == QC_OK ? QC_END : status;
}

QcStatus
qc_scan_next(QcScan *scan, QcError *err)
{
	bool		ended = false;	/* zeros from (end_at, end_position) on */
	uint32_t	end_at = 0;
	uint64_t	end_position = 0;
	QcStatus	status;

	assert(scan->end == QC_SCAN_RECORD);
	for (;;)
	{
		status = scan->next == 0 ? begin_file(scan, err) : QC_OK;
		if (status == QC_OK)
			status = read_here(scan, err);
		if (status == QC_OK && scan->record.kind == QC_KIND_PAD)
		{
			ended = false;
			continue;
		}
		if (status != QC_END || scan->end != QC_SCAN_RECORD)
			return status;
		if (!ended)
		{
			ended = true;
			end_at = scan->at;
			end_position = scan->written_end = scan->next;
		}
		if (scan->at + 1 == scan->nfiles)
			return end_cleanly(scan, end_at, end_position, err);
		status = enter(scan, scan->at + 1, err);
		if (status != QC_OK)
			return status;
		scan->next = 0;
	}
}

QcStatus
qc_scan_begin(QcScan *scan, QcFiles *files, uint64_t log, uint64_t file, uint64_t position,
			  QcError *err)
{
	char		path[QC_PATH_MAX];
	uint32_t	at = 0;
	QcStatus	status;

	memset(scan, 0, sizeof(*scan));
	scan->files = files;
	scan->log = log;
	status = qc_dir_files(files->io, files->layout, log, &scan->file_ids, &scan->nfiles, err);
	if (status != QC_OK)
		return status;
	while (file != 0 && at < scan->nfiles && scan->file_ids[at] != file)
		at++;
	if (at == scan->nfiles)
	{
		qc_path_file(path, files->layout, log, file == 0 ? 1 : file, "qlog");
		status = qc_error_at(err, QC_MISSING, path, UINT64_MAX, "log file does not exist");
	}
	else
		status = enter(scan, at, err);
	if (status == QC_OK && position > QC_FILE_HEADER_SIZE && position > scan->file_size)
	{
		path_of(scan, path);
		status = qc_error_at(err, QC_DAMAGED, path, scan->file_size,
							 "log file ends before its durable part");
	}
	if (status != QC_OK)
		qc_scan_end(scan);
	else if (position > QC_FILE_HEADER_SIZE)
		scan->next = position;
	return status;
}

const uint8_t *
qc_scan_bytes(const QcScan *scan)
{
	assert(scan->end == QC_SCAN_RECORD && scan->position >= scan->buf_position);
	return scan->buf + (scan->position - scan->buf_position);
}

QcStatus
qc_scan_resync(QcScan *scan, QcError *err)
{
	QcStatus	status;

	assert(scan->end == QC_SCAN_TORN || scan->end == QC_SCAN_DAMAGE);
	if (!scan->found)
		return QC_END;
	status = enter(scan, scan->found_at, err);
	if (status != QC_OK)
		return status;
	scan->next = scan->found_position;
	scan->end = QC_SCAN_RECORD;
	scan->found = false;
	status = read_here(scan, err);
	if (status == QC_OK && scan->record.kind == QC_KIND_PAD)
		return qc_scan_next(scan, err);
	return status;
}

/* Do only zeros stand behind position, in this file and all later ones? */
static QcStatus
zeros_behind(QcScan *scan, uint64_t position, bool *zero, QcError *err)
{
	uint32_t	at = scan->at;
	QcStatus	status = zeros_to_end(scan, position, zero, err);

	for (uint32_t i = at + 1; i < scan->nfiles && status == QC_OK && *zero; i++)
	{
		/* up to a record found there, which the next file would have to begin with */
		if (scan->found && i == scan->found_at)
		{
			*zero = scan->found_position == QC_FILE_HEADER_SIZE;
			break;
		}
		status = enter(scan, i, err);
		if (status == QC_OK)
			status = zeros_to_end(scan, QC_FILE_HEADER_SIZE, zero, err);
	}
	return status == QC_OK ? enter(scan, at, err) : status;
}

QcStatus
qc_scan_probe(QcScan *scan, QcScanProbe *probe, QcError *err)
{
	uint64_t	left = scan->file_size - scan->position;
	const uint8_t *bytes;
	QcStatus	status;

	assert(scan->end == QC_SCAN_TORN || scan->end == QC_SCAN_DAMAGE);
	memset(probe, 0, sizeof(*probe));
	if (scan->position < QC_FILE_HEADER_SIZE || left < QC_RECORD_HEADER_SIZE)
		return QC_OK;
	status = window(scan, scan->position, QC_RECORD_HEADER_SIZE, &bytes, err);
	if (status != QC_OK)
		return status;
	if (qc_record_peek(bytes, QC_RECORD_HEADER_SIZE, &probe->size, NULL) != QC_OK ||
		probe->size > left)
		return QC_OK;
	probe->kind = bytes[AT_KIND] & (uint8_t) ~QC_RECORD_COMPRESSED;
	if (scan->found && scan->found_at == scan->at)
		probe->reaches = scan->found_position == scan->position + probe->size;
	else
		status = zeros_behind(scan, scan->position + probe->size, &probe->reaches, err);
	return status;
}

void
qc_scan_end(QcScan *scan)
{
	free(scan->buf);
	free(scan->file_ids);
	scan->buf = NULL;
	scan->file_ids = NULL;
}
