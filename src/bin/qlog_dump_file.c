/*
 * qlog_dump_file.c
 *		A log file from its header to its end, over whatever is wrong in between.
 *
 * A record is believed for its checksum alone.  Where one should stand and none does, three things are told
 * apart: zeros up to the end of the file are space filled ahead; bytes with no record behind them, in this file
 * or a later one of the log, are a torn tail, which recovery cuts; anything else is damage.  After damage the
 * walk goes on at the place the broken record's length points to, when a record stands there, and otherwise at
 * the next one found byte by byte.
 */
#include "qlog_dump.h"

#include <string.h>

#define AT_SEQ	12
#define AT_KIND	48
#define SEQ_AHEAD (UINT64_C(1) << 40)	/* a record found by searching is not further ahead than
										 * that */

/* Where the walk over a file is. */
typedef struct Walk
{
	Dump	   *dump;
	DumpLog    *log;
	const DumpFile *file;
	bool		(*later) (void *context);
	void	   *context;
	uint64_t	at;
} Walk;

/* What stands at a place. */
typedef enum Found
{
	FOUND_RECORD,
	FOUND_END,					/* of the file, to the byte */
	FOUND_ZEROS,				/* up to the end of the file */
	FOUND_BAD
} Found;

static bool
all_zero(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
	{
		if (bytes[i] != 0)
			return false;
	}
	return true;
}

/* Cheap tests of header fields, before a checksum over megabytes. */
static bool
plausible(const uint8_t *bytes, size_t left, uint64_t seq_min)
{
	uint64_t	size;
	uint64_t	seq;
	uint8_t		kind;

	if (left < QC_RECORD_HEADER_SIZE || qc_record_peek(bytes, left, &size, NULL) != QC_OK || size > left)
		return false;
	kind = bytes[AT_KIND] & (uint8_t) ~QC_RECORD_COMPRESSED;
	seq = qc_load_u64(bytes + AT_SEQ);
	return kind <= QC_KIND_SOLO && kind != 1 && seq >= seq_min && seq - seq_min <= SEQ_AHEAD;
}

static bool
record_at(const DumpFile *file, uint64_t at, uint64_t seq_min, QcRecord *record)
{
	return at < file->len && plausible(file->bytes + at, file->len - (size_t) at, seq_min) &&
		qc_record_decode(file->bytes + at, file->len - (size_t) at, record, NULL) == QC_OK;
}

/* First record at or behind from; file->len when there is none. */
static uint64_t
search(const DumpFile *file, uint64_t from, uint64_t seq_min)
{
	QcRecord	record;

	while (from < file->len && !record_at(file, from, seq_min, &record))
		from++;
	return from < file->len ? from : file->len;
}

bool
dump_holds_record(const DumpFile *file)
{
	return search(file, QC_FILE_HEADER_SIZE, 0) < file->len;
}

/* Where to go on after something bad at w->at. */
static uint64_t
next_record(const Walk *w)
{
	const DumpFile *file = w->file;
	uint64_t	size;
	QcRecord	record;

	/* a payload may hold bytes that look like a record: the broken record's own length goes first */
	if (qc_record_peek(file->bytes + w->at, file->len - (size_t) w->at, &size, NULL) == QC_OK &&
		record_at(file, w->at + size, w->log->last_seq, &record))
		return w->at + size;
	return search(file, w->at + 1, w->log->last_seq);
}

/* Look at the place w->at; reason is set when it is bad. */
static Found
look(const Walk *w, QcRecord *record, QcError *reason)
{
	const uint8_t *bytes = w->file->bytes + w->at;
	size_t		left = w->file->len - (size_t) w->at;
	QcStatus	status;

	if (left == 0)
		return FOUND_END;
	if (all_zero(bytes, left))
		return FOUND_ZEROS;
	status = qc_record_decode(bytes, left, record, reason);
	if (status == QC_END)
		(void) qc_error_set(reason, QC_DAMAGED, "bytes stand behind the end of the written part");
	else if (status == QC_SHORT)
		(void) qc_error_set(reason, QC_DAMAGED, "record exceeds its file");
	else if (status == QC_OK && record->seq < w->log->last_seq)
		(void) qc_error_set(reason, QC_DAMAGED, "record is of an older entry than the one before it");
	else if (status == QC_OK)
		return FOUND_RECORD;
	return FOUND_BAD;
}

/* Bytes from w->at to the last one that is not zero. */
static uint64_t
bytes_to_last(const Walk *w)
{
	uint64_t	end = w->file->len;

	while (end > w->at && w->file->bytes[end - 1] == 0)
		end--;
	return end - w->at;
}

static void
print_end(const Walk *w, const char *state, uint64_t bytes, const char *reason)
{
	DumpRow    *row = &w->dump->row;

	if (!dump_shows_lines(w->dump))
		return;
	dump_row_begin(row, "end");
	dump_row_u64(row, "at", w->at);
	dump_row_word(row, "state", state);
	if (bytes > 0)
		dump_row_u64(row, "bytes", bytes);
	if (reason != NULL)
		dump_row_word(row, "reason", reason);
	dump_row_end(row);
}

/* Something bad stands at w->at: report it and step over it; false = nothing is left to read. */
static bool
step_over(Walk *w, const QcError *reason)
{
	uint64_t	next = next_record(w);
	bool		more = next < w->file->len;

	if (!more && (w->later == NULL || !w->later(w->context)))
	{
		w->log->stats.torn = 1;
		print_end(w, "torn", bytes_to_last(w), reason->text);
		return false;
	}
	dump_damage(w->dump, &w->log->stats, w->file->path, w->at, next - w->at, reason->text);
	w->at = next;
	return more;
}

/* Every record from w->at to where the file has no more of them. */
static void
walk(Walk *w)
{
	QcRecord	record;
	QcError		reason;

	for (;;)
	{
		if (dump_limit_reached(w->dump))
			return;
		switch (look(w, &record, &reason))
		{
			case FOUND_RECORD:
				dump_record(w->dump, w->log, w->file, w->at, &record);
				w->log->last_seq = record.seq;
				w->at += (uint64_t) record.len + 4;
				break;
			case FOUND_END:
				print_end(w, "full", 0, NULL);
				return;
			case FOUND_ZEROS:
				print_end(w, "zeros", w->file->len - w->at, NULL);
				return;
			case FOUND_BAD:
				if (!step_over(w, &reason))
					return;
				break;
		}
	}
}

static void
print_file(Dump *dump, const DumpFile *file, const QcFileHeader *header)
{
	DumpRow    *row = &dump->row;

	if (!dump_shows_lines(dump))
		return;
	dump_row_begin(row, "file");
	dump_row_word(row, "path", file->path);
	dump_row_u64(row, "size", file->len);
	if (header != NULL)
	{
		dump_row_u64(row, "id", header->file_id);
		if (header->first_seq == QC_FIRST_SEQ_AHEAD)
			dump_row_word(row, "state", "created-ahead");
		else
			dump_row_u64(row, "first_seq", header->first_seq);
	}
	dump_row_end(row);
}

/* A file whose header cannot be read: torn at the roll when nothing is in it, damaged otherwise. */
static bool
bad_header(Walk *w, const QcError *reason)
{
	const DumpFile *file = w->file;
	bool		filled = dump_holds_record(file) || (w->later != NULL && w->later(w->context));
	uint64_t	header = file->len < QC_FILE_HEADER_SIZE ? file->len : QC_FILE_HEADER_SIZE;

	if (filled)
	{
		dump_damage(w->dump, &w->log->stats, file->path, 0, header, reason->text);
		return file->len > QC_FILE_HEADER_SIZE;
	}
	w->at = 0;
	if (all_zero(file->bytes, file->len))
		print_end(w, "zeros", file->len, NULL);
	else
	{
		w->log->stats.torn = 1;
		print_end(w, "torn", bytes_to_last(w), reason->text);
	}
	return false;
}

uint64_t
dump_log_file(Dump *dump, DumpLog *log, const DumpFile *file, uint64_t file_id,
			  bool (*later) (void *context), void *context)
{
	Walk		w = {.dump = dump, .log = log, .file = file, .later = later, .context = context,
		.at = QC_FILE_HEADER_SIZE};
	QcFileHeader header;
	QcError		reason;
	bool		readable = qc_file_header_decode(file->bytes, file->len, &header, &reason) == QC_OK;

	log->stats.files++;
	print_file(dump, file, readable ? &header : NULL);
	if (readable && file_id != 0 && header.file_id != file_id)
	{
		readable = false;
		(void) qc_error_set(&reason, QC_DAMAGED, "file header names another file");
	}
	if (readable || bad_header(&w, &reason))
		walk(&w);
	return w.at;
}

void
dump_cut_file(Dump *dump, DumpLog *log, const DumpFile *file)
{
	Walk		w = {.dump = dump, .log = log, .file = file};

	log->stats.files++;
	print_file(dump, file, NULL);
	walk(&w);
}
