/*
 * qlog_dump_hashes.c
 *		.qhsh files: dedup ids of closed log files.
 *
 * One that does not fit is no damage, since it is rebuilt; one that fits, and is not what its log file's records give, is.
 */
#include "qlog_dump.h"

#include <stdlib.h>
#include <string.h>

#include "qc_hashes.h"

const DumpDerived dump_derived[DUMP_DERIVED] = {{"qidx", dump_index}, {"qhsh", dump_hashes}};

static void
print_hashes(Dump *dump, const DumpFile *file)
{
	DumpRow    *row = &dump->row;
	const uint8_t *seal = file->bytes + QC_DERIVED_HEAD_SIZE;
	QcHashesRecord record;
	size_t		at = 0;

	dump_row_begin(row, "dedup_ids");
	dump_row_word(row, "path", file->path);
	dump_row_u64(row, "records", qc_load_u64(seal + 16));
	dump_row_u64(row, "ids", qc_load_u64(seal + 24));
	dump_row_list_begin(row, "list");
	while (qc_hashes_next(file->bytes, file->len, &at, &record))
	{
		dump_row_item_begin(row, "listed");
		dump_row_u64(row, "partition", record.partition);
		dump_row_u64(row, "first", record.first);
		dump_row_u64(row, "count", record.count);
		dump_row_u64(row, "ids", record.ids);
		dump_row_time(row, "created_at", record.created_at);
		dump_row_item_end(row);
	}
	dump_row_list_end(row);
	dump_row_end(row);
}

static void
print_unfit(Dump *dump, const DumpFile *file, const QcError *reason)
{
	DumpRow    *row = &dump->row;

	if (dump->options.quiet)
		return;
	dump_row_begin(row, "dedup_ids");
	dump_row_word(row, "path", file->path);
	dump_row_word(row, "state", "to-be-rebuilt");
	dump_row_word(row, "reason", reason->text);
	dump_row_end(row);
}

/* Make it anew of the records; damaged ones are reported where they are read. */
static QcStatus
build(const DumpFile *log_file, uint64_t file_id, uint64_t log_length, QcHashesBuild *made,
	  const uint8_t **bytes, size_t *len)
{
	QcStatus	status = QC_OK;
	uint64_t	size;

	for (uint64_t at = QC_FILE_HEADER_SIZE; at < log_length && status == QC_OK; at += size)
	{
		const uint8_t *there = log_file->bytes + at;
		QcRecord	record;

		status = qc_record_decode(there, log_file->len - (size_t) at, &record, NULL);
		if (status != QC_OK)
			return status;
		size = (uint64_t) record.len + 4;
		if (record.kind != QC_KIND_PAD)
			status = qc_hashes_add(made, at, there, &record, NULL);
	}
	return status == QC_OK ? qc_hashes_seal(made, file_id, log_length, bytes, len, NULL) : status;
}

void
dump_hashes(Dump *dump, const DumpFile *file, uint64_t file_id, const DumpFile *log_file,
			uint64_t log_length)
{
	QcHashesBuild made = {0};
	const uint8_t *bytes;
	size_t		len;
	QcError		reason;

	if (log_file == NULL && file->len >= QC_DERIVED_HEAD_SIZE)
	{
		/* alone, it can only be compared with itself */
		file_id = qc_load_u64(file->bytes + 8);
		log_length = qc_derived_length(file->bytes);
	}
	if (qc_hashes_check(file->bytes, file->len, file_id, log_length, &reason) != QC_OK)
	{
		print_unfit(dump, file, &reason);
		return;
	}
	if (dump_shows_lines(dump))
		print_hashes(dump, file);
	if (log_file != NULL && build(log_file, file_id, log_length, &made, &bytes, &len) == QC_OK &&
		(len != file->len || memcmp(bytes, file->bytes, len) != 0))
		dump_damage(dump, &dump->total, file->path, UINT64_MAX, 0,
					"dedup ids are not those of the log file");
	qc_hashes_free(&made);
}
