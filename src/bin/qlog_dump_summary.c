/*
 * qlog_dump_summary.c
 *		What is in a data directory, without reading its logs: identity, checkpoint, snapshots, queues, logs.
 */
#include "qlog_dump.h"

#include <stdlib.h>
#include <string.h>

#include "qc_dir.h"
#include "qc_rows.h"
#include "qc_snapshot.h"

static void
print_kinds(DumpRow *row, const DumpRows *rows)
{
	static const struct
	{
		char		kind;
		const char *name;
	}			kinds[] =
	{
		{QC_ROW_LOG, "logs"},
		{QC_ROW_QUEUE, "queues"},
		{QC_ROW_GROUP, "groups"},
		{QC_ROW_PARTITION, "partitions"},
		{QC_ROW_LEASE, "leases"},
		{QC_ROW_CURSOR, "cursors"},
		{QC_ROW_OPEN, "open_entries"},
		{QC_ROW_LANE_ITEM, "lane_messages"}
	};

	dump_row_u64(row, "seq", rows->seq);
	dump_row_u64(row, "rows", rows->rows);
	dump_row_u64(row, "bytes", rows->bytes);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		dump_row_u64(row, kinds[i].name, rows->kinds[kinds[i].kind - 'A']);
}

/* Why something cannot be read: damage, or only a word about it. */
static void
print_unread(Dump *dump, const char *type, const char *path, QcStatus status, const QcError *err)
{
	DumpRow    *row = &dump->row;

	if (status == QC_DAMAGED || status == QC_FOREIGN || status == QC_VERSION)
	{
		dump_damage(dump, &dump->total, path, err->position, 0, err->text);
		return;
	}
	dump_row_begin(row, type);
	if (path[0] != '\0')
		dump_row_word(row, "path", path);
	dump_row_word(row, "state", status == QC_MISSING ? "missing" : status == QC_BUSY ? "in-use" : "unreadable");
	dump_row_end(row);
}

static void
print_checkpoint(Dump *dump, DumpRows *rows)
{
	QcError		err;
	QcStatus	status = dump_rows_store(dump, rows, &err);

	if (status != QC_OK)
	{
		print_unread(dump, "checkpoint", "store/data.mdb", status, &err);
		return;
	}
	dump_row_begin(&dump->row, "checkpoint");
	print_kinds(&dump->row, rows);
	dump_row_end(&dump->row);
}

static void
print_snapshot(Dump *dump, uint64_t seq)
{
	DumpRow    *row = &dump->row;
	char		path[QC_PATH_MAX];
	DumpRows	rows;
	QcSnapshotHead head;
	QcError		err;
	QcStatus	status = dump_rows_snapshot(dump, seq, &rows, &head, &err);

	qc_path_snapshot(path, seq);
	if (status != QC_OK)
		print_unread(dump, "snapshot", path, status, &err);
	else if (!dump->options.verify)
	{
		dump_row_begin(row, "snapshot");
		dump_row_word(row, "path", path);
		print_kinds(row, &rows);
		dump_row_time(row, "created_at", head.created_at);
		dump_row_end(row);
	}
	dump_rows_free(&rows);
}

void
dump_snapshots(Dump *dump)
{
	uint64_t	seqs[QC_SNAPSHOT_LIST_MAX];
	uint32_t	n;
	QcError		err;

	if (qc_snapshot_list(dump->io, seqs, &n, &err) != QC_OK)
	{
		dump_fail(dump, &err);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		print_snapshot(dump, seqs[i]);
}

static void
print_queues(Dump *dump, const DumpRows *rows)
{
	DumpRow    *row = &dump->row;

	for (uint32_t i = 0; i < rows->nqueues; i++)
	{
		const DumpQueue *queue = &rows->queues[i];
		uint64_t	partitions = 0;

		for (uint32_t k = 0; k < rows->npartitions; k++)
			partitions += rows->partitions[k].queue == queue->id;
		dump_row_begin(row, "queue");
		dump_row_u64(row, "id", queue->id);
		dump_row_u64(row, "log", queue->log);
		dump_row_u64(row, "database", queue->database);
		dump_row_u64(row, "partitions", partitions);
		dump_row_flag(row, "damaged", queue->damaged);
		dump_row_string(row, "name", queue->name, queue->name_len);
		dump_row_end(row);
	}
}

/* Files beside those of the layout that somebody may look for. */
typedef struct Beside
{
	uint64_t	indexes;
	uint64_t	hashes;
	uint64_t	cut;
	uint64_t	bad;
} Beside;

static bool
note_beside(void *context, const char *name, bool is_directory)
{
	Beside	   *beside = context;
	uint64_t	id;

	(void) is_directory;
	beside->indexes += qc_name_parse_file(name, "qidx", &id);
	beside->hashes += qc_name_parse_file(name, "qhsh", &id);
	beside->cut += strstr(name, ".cut.") != NULL;
	beside->bad += strstr(name, ".bad.") != NULL;
	return true;
}

static uint64_t
file_size(const Dump *dump, const char *path)
{
	QcHandle	handle;
	uint64_t	size = 0;

	if (dump->io->open(dump->io->context, path, 0, &handle) != 0)
		return 0;
	if (dump->io->size(dump->io->context, handle, &size) != 0)
		size = 0;
	dump->io->close(dump->io->context, handle);
	return size;
}

static void
print_log(Dump *dump, QcLayout layout, uint64_t log)
{
	DumpRow    *row = &dump->row;
	Beside		beside = {0};
	uint64_t   *files;
	uint32_t	n;
	uint64_t	bytes = 0;
	char		path[QC_PATH_MAX];
	QcError		err;

	if (qc_dir_files(dump->io, layout, log, &files, &n, &err) != QC_OK)
	{
		dump_fail(dump, &err);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
	{
		qc_path_file(path, layout, log, files[i], "qlog");
		bytes += file_size(dump, path);
	}
	qc_path_log(path, layout, log);
	(void) dump->io->list(dump->io->context, path, note_beside, &beside);
	dump_row_begin(row, "log");
	dump_row_u64(row, "id", log);
	dump_row_word(row, "path", path);
	dump_row_u64(row, "files", n);
	dump_row_u64(row, "bytes", bytes);
	if (n > 0)
	{
		dump_row_u64(row, "first_file", files[0]);
		dump_row_u64(row, "last_file", files[n - 1]);
	}
	dump_row_u64(row, "indexes", beside.indexes);
	dump_row_u64(row, "dedup_ids", beside.hashes);
	dump_row_u64(row, "cut", beside.cut);
	dump_row_u64(row, "bad", beside.bad);
	dump_row_end(row);
	free(files);
}

static void
print_logs(Dump *dump, QcLayout layout)
{
	uint64_t   *logs;
	uint32_t	n;
	QcError		err;

	if (qc_dir_logs(dump->io, layout, &logs, &n, &err) != QC_OK)
	{
		dump_fail(dump, &err);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		print_log(dump, layout, logs[i]);
	free(logs);
}

void
dump_summary(Dump *dump)
{
	DumpRows	rows;
	QcError		err;

	dump_text_file(dump, "IDENTITY");
	dump_text_file(dump, "FLOOR");
	dump_text_file(dump, "qlog/LANES");
	print_checkpoint(dump, &rows);
	dump_snapshots(dump);
	dump_rows_free(&rows);
	if (dump_rows_newest(dump, &rows, &err) == QC_OK)
		print_queues(dump, &rows);
	dump_rows_free(&rows);
	print_logs(dump, QC_LAYOUT_FLAT);
	if (!dump->failed)
		print_logs(dump, QC_LAYOUT_HIERARCHICAL);
}
