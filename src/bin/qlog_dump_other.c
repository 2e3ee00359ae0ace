/*
 * qlog_dump_other.c
 *		Files that are not logs: indexes, the stash, and small text files.
 *
 * An index that does not fit is no damage, since it is rebuilt when it is needed; one that fits and names
 * records that are not there is.
 */
#include "qlog_dump.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "qc_dir.h"
#include "qc_entry.h"
#include "qc_walrec.h"

/* ---- .qidx ---- */

static const uint8_t *
index_entry(const DumpFile *file, uint32_t i, QcIdxEntry *entry)
{
	const uint8_t *at = file->bytes + QC_IDX_HEADER_SIZE + (size_t) i * QC_IDX_ENTRY_SIZE;

	qc_idx_entry_decode(at, entry);
	return at;
}

/* The entries of a checked index, in its order. */
static void
print_index(Dump *dump, const DumpFile *file, uint32_t count)
{
	DumpRow    *row = &dump->row;
	QcIdxEntry	entry;

	dump_row_begin(row, "index");
	dump_row_word(row, "path", file->path);
	dump_row_u64(row, "entries", count);
	dump_row_list_begin(row, "list");
	for (uint32_t i = 0; i < count; i++)
	{
		(void) index_entry(file, i, &entry);
		dump_row_item_begin(row, "indexed");
		dump_row_u64(row, "partition", entry.partition);
		dump_row_u64(row, "first", entry.first);
		dump_row_u64(row, "count", entry.count);
		dump_row_u64(row, "at", entry.position);
		dump_row_u64(row, "size", (uint64_t) entry.len + 4);
		dump_row_time(row, "created_at", entry.created_at);
		dump_row_item_end(row);
	}
	dump_row_list_end(row);
	dump_row_end(row);
}

static void
print_unfit_index(Dump *dump, const DumpFile *file, const QcError *reason)
{
	DumpRow    *row = &dump->row;

	if (dump->options.quiet)
		return;
	dump_row_begin(row, "index");
	dump_row_word(row, "path", file->path);
	dump_row_word(row, "state", "to-be-rebuilt");
	dump_row_word(row, "reason", reason->text);
	dump_row_end(row);
}

/* Does the record that the entry names stand where it says? */
static bool
entry_is_right(const DumpFile *log_file, const QcIdxEntry *entry)
{
	QcRecord	record;

	if (qc_record_decode(log_file->bytes + entry->position, log_file->len - (size_t) entry->position,
						 &record, NULL) != QC_OK)
		return false;
	return (record.kind == QC_KIND_MESSAGES || record.kind == QC_KIND_SOLO) &&
		record.len == entry->len && record.partition == entry->partition &&
		record.first == entry->first && record.count == entry->count &&
		record.created_at == entry->created_at;
}

void
dump_index(Dump *dump, const DumpFile *file, uint64_t file_id, const DumpFile *log_file,
		   uint64_t log_length)
{
	uint32_t	count;
	QcIdxEntry	entry;
	QcError		reason;

	if (log_file == NULL && file->len >= QC_IDX_HEADER_SIZE)
	{
		/* alone, it can only be compared with itself */
		file_id = qc_load_u64(file->bytes + 8);
		log_length = qc_load_u64(file->bytes + 24);
	}
	if (qc_idx_check(file->bytes, file->len, file_id, log_length, &count, &reason) != QC_OK)
	{
		print_unfit_index(dump, file, &reason);
		return;
	}
	if (dump_shows_lines(dump))
		print_index(dump, file, count);
	for (uint32_t i = 0; log_file != NULL && i < count; i++)
	{
		const uint8_t *at = index_entry(file, i, &entry);

		if (!entry_is_right(log_file, &entry))
			dump_damage(dump, &dump->total, file->path, (uint64_t) (at - file->bytes),
						QC_IDX_ENTRY_SIZE, "index names a record that is not there");
	}
}

/* ---- stash ---- */

/* The records that a carried entry brings, as far as they can be read. */
static void
print_parts(DumpRow *row, QcReader parts)
{
	uint64_t	log;
	const uint8_t *bytes;
	uint32_t	size;
	QcRecord	record;

	dump_row_list_begin(row, "parts");
	while (qc_wal_part_get(&parts, &log, &bytes, &size, NULL) == QC_OK)
	{
		dump_row_item_begin(row, "part");
		dump_row_u64(row, "log", log);
		dump_row_u64(row, "size", size);
		if (qc_record_decode(bytes, size, &record, NULL) == QC_OK)
		{
			dump_row_word(row, "kind", dump_kind_name(record.kind));
			dump_row_u64(row, "seq", record.seq);
			if (record.count > 0)
			{
				dump_row_u64(row, "partition", record.partition);
				dump_row_u64(row, "first", record.first);
				dump_row_u64(row, "count", record.count);
			}
		}
		else
			dump_row_word(row, "state", "damaged");
		dump_row_item_end(row);
	}
	dump_row_list_end(row);
}

static void
print_wal_entry(DumpRow *row, const QcWalEntry *entry)
{
	dump_row_u64(row, "directory", entry->directory);
	dump_row_u64(row, "epoch", entry->epoch);
	dump_row_u64(row, "seq", entry->seq);
	dump_row_u64(row, "xid", entry->xid);
	dump_row_word(row, "flags", entry->flags == QC_ENTRY_CARRIED ? "carried" : "referenced");
	if (entry->flags == QC_ENTRY_CARRIED)
		print_parts(row, entry->parts);
	else
	{
		dump_row_digest(row, "entry_digest", entry->digest);
		dump_row_u64(row, "entry_bytes", entry->entry_len);
	}
}

static void
print_wal_mark(DumpRow *row, QcWalKind kind, const QcWalMark *mark)
{
	dump_row_u64(row, "directory", mark->directory);
	if (kind == QC_WAL_EPOCH)
		dump_row_u64(row, "old_epoch", mark->old_epoch);
	dump_row_u64(row, "epoch", mark->epoch);
	dump_row_u64(row, "seq", mark->seq);
}

static const char *
wal_kind_name(QcWalKind kind)
{
	if (kind == QC_WAL_ENTRY)
		return "entry";
	return kind == QC_WAL_BARRIER ? "barrier" : "epoch";
}

/* One stashed record; a body that cannot be read is damage, since its checksum is right. */
static void
dump_stashed(Dump *dump, const DumpFile *file, uint64_t at, uint64_t size,
			 const QcStashRecord *stashed)
{
	DumpRow    *row = &dump->row;
	QcWalEntry	entry;
	QcWalMark	mark;
	QcError		err;
	bool		is_entry = stashed->kind == QC_WAL_ENTRY;
	QcStatus	status = is_entry ?
		qc_wal_entry_decode(stashed->body, stashed->body_len, &entry, &err) :
		qc_wal_mark_decode(stashed->kind, stashed->body, stashed->body_len, &mark, &err);

	if (status != QC_OK)
	{
		dump_damage(dump, &dump->total, file->path, at, size, err.text);
		return;
	}
	if (!dump_shows_lines(dump))
		return;
	dump_row_begin(row, "stashed");
	dump_row_u64(row, "at", at);
	dump_row_u64(row, "size", size);
	dump_row_word(row, "kind", wal_kind_name(stashed->kind));
	dump_row_u64(row, "timeline", stashed->timeline);
	dump_row_lsn(row, "end_lsn", stashed->end_lsn);
	if (is_entry)
		print_wal_entry(row, &entry);
	else
		print_wal_mark(row, stashed->kind, &mark);
	dump_row_end(row);
}

/* The records of a stash end where the file does, or torn. */
void
dump_stash(Dump *dump, const DumpFile *file)
{
	uint64_t	at = QC_STASH_MAGIC_SIZE;
	QcStashRecord stashed;
	size_t		size = 0;
	QcError		err;
	QcStatus	status = QC_OK;

	if (file->len < QC_STASH_MAGIC_SIZE)
	{
		at = 0;
		status = qc_error_set(&err, QC_SHORT, "stash is cut off in its magic");
	}
	else if (memcmp(file->bytes, QC_STASH_MAGIC, QC_STASH_MAGIC_SIZE) != 0)
	{
		dump_damage(dump, &dump->total, file->path, 0, file->len, "file does not begin as a stash");
		return;
	}
	for (; status == QC_OK && !dump_limit_reached(dump); at += size)
	{
		status = qc_stash_get(file->bytes + at, file->len - (size_t) at, &stashed, &size, &err);
		if (status != QC_OK)
			break;
		dump_stashed(dump, file, at, size, &stashed);
		dump->shown++;
	}
	if (status == QC_VERSION)
		dump_damage(dump, &dump->total, file->path, at, 0, err.text);
	else if (status == QC_SHORT || status == QC_DAMAGED)
	{
		dump->total.torn++;
		if (dump->options.quiet)
			return;
		dump_row_begin(&dump->row, "torn");
		dump_row_word(&dump->row, "path", file->path);
		dump_row_u64(&dump->row, "at", at);
		dump_row_word(&dump->row, "reason", err.text);
		dump_row_end(&dump->row);
	}
}

/* ---- text ---- */

/* Its "key = value" lines as fields. */
void
dump_text_file(Dump *dump, const char *path)
{
	DumpRow    *row = &dump->row;
	DumpFile	file;
	QcError		err;
	QcStatus	status = dump_read_file(dump, path, &file, &err);
	char	   *rest;
	char	   *line;

	if (status == QC_MISSING)
		return;
	if (status != QC_OK)
	{
		dump_fail(dump, &err);
		return;
	}
	file.bytes[file.len] = '\0';	/* dump_read_file leaves room */
	dump_row_begin(row, "settings");
	dump_row_word(row, "path", path);
	dump_row_list_begin(row, "lines");
	for (rest = (char *) file.bytes; *rest != '\0'; rest = line + (*line != '\0'))
	{
		line = rest + strcspn(rest, "\n");
		dump_row_item_begin(row, "line");
		dump_row_text(row, "text", rest, (size_t) (line - rest));
		dump_row_item_end(row);
	}
	dump_row_list_end(row);
	dump_row_end(row);
	free(file.bytes);
}
