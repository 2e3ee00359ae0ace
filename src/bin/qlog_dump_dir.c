/*
 * qlog_dump_dir.c
 *		A data directory, or what is left of one: every log in either layout, then the stash.
 *
 * Neither IDENTITY nor LANES is needed: the directories of logs are found by their names.
 */
#include "qlog_dump.h"

#include <stdlib.h>
#include <string.h>

#include "qc_dir.h"

/* The files of one log, and which of them is being read. */
typedef struct LogFiles
{
	Dump	   *dump;
	QcLayout	layout;
	uint64_t	log;
	uint64_t   *ids;
	uint32_t	count;
	uint32_t	at;
} LogFiles;

/* Does a file behind the current one hold a record? */
static bool
later_record(void *context)
{
	const LogFiles *files = context;
	bool		found = false;

	for (uint32_t i = files->at + 1; i < files->count && !found; i++)
	{
		char		path[QC_PATH_MAX];
		DumpFile	file;
		QcError		err;

		qc_path_file(path, files->layout, files->log, files->ids[i], "qlog");
		if (dump_read_file(files->dump, path, &file, &err) == QC_OK)
			found = dump_holds_record(&file);
		else
			dump_fail(files->dump, &err);
		free(file.bytes);
	}
	return found;
}

/* Compare what is derived from the current file with it, where there is something. */
static void
check_derived(const LogFiles *files, const DumpFile *log_file, uint64_t length)
{
	for (int i = 0; i < DUMP_DERIVED; i++)
	{
		char		path[QC_PATH_MAX];
		DumpFile	file;
		QcError		err;
		QcStatus	status;

		qc_path_file(path, files->layout, files->log, files->ids[files->at], dump_derived[i].suffix);
		status = dump_read_file(files->dump, path, &file, &err);
		if (status == QC_OK)
			dump_derived[i].dump(files->dump, &file, files->ids[files->at], log_file, length);
		else if (status != QC_MISSING)
			dump_fail(files->dump, &err);
		free(file.bytes);
	}
}

/* A number is missing in between: when nothing was ever removed that is damage, otherwise only the state knows. */
static void
report_gap(const LogFiles *files, DumpStats *stats, uint64_t first, uint64_t end)
{
	DumpRow    *row = &files->dump->row;
	char		path[QC_PATH_MAX];

	qc_path_file(path, files->layout, files->log, first, "qlog");
	if (files->dump->floor == 0)
		dump_damage(files->dump, stats, path, UINT64_MAX, 0, "log file is missing");
	else if (dump_shows_lines(files->dump))
	{
		dump_row_begin(row, "removed");
		dump_row_word(row, "path", path);
		dump_row_u64(row, "files", end - first);
		dump_row_end(row);
	}
}

static void
check_numbers(const LogFiles *files, DumpStats *stats)
{
	for (uint32_t i = 1; i < files->count; i++)
	{
		if (files->ids[i] != files->ids[i - 1] + 1)
			report_gap(files, stats, files->ids[i - 1] + 1, files->ids[i]);
	}
}

/* All files of one log, oldest first, as far as the limit lets it go. */
static void
dump_log(Dump *dump, QcLayout layout, uint64_t id)
{
	DumpLog		log = {.known = true, .id = id};
	LogFiles	files = {.dump = dump, .layout = layout, .log = id};
	QcError		err;

	if (qc_dir_files(dump->io, layout, id, &files.ids, &files.count, &err) != QC_OK)
	{
		dump_fail(dump, &err);
		return;
	}
	check_numbers(&files, &log.stats);
	if (dump->parts != NULL)
		dump_parts_log(dump->parts, id, files.count > 0 && files.ids[0] != 1);
	for (; files.at < files.count && !dump_limit_reached(dump); files.at++)
	{
		char		path[QC_PATH_MAX];
		DumpFile	file;
		uint64_t	length;

		qc_path_file(path, layout, id, files.ids[files.at], "qlog");
		if (dump_read_file(dump, path, &file, &err) != QC_OK)
		{
			dump_fail(dump, &err);
			continue;
		}
		length = dump_log_file(dump, &log, &file, files.ids[files.at], later_record, &files);
		if (dump->options.verify)
			check_derived(&files, &file, length);
		free(file.bytes);
	}
	free(files.ids);
	if (dump->options.stats && !dump->options.quiet)
		dump_stats_print(dump, "log", &log, &log.stats);
	dump_stats_add(&dump->total, &log.stats);
}

/* All logs of one layout; returns how many there are. */
static uint32_t
dump_logs(Dump *dump, QcLayout layout)
{
	const DumpOptions *options = &dump->options;
	uint64_t   *logs;
	uint32_t	count;
	uint32_t	found = 0;
	QcError		err;

	if (qc_dir_logs(dump->io, layout, &logs, &count, &err) != QC_OK)
	{
		dump_fail(dump, &err);
		return 0;
	}
	for (uint32_t i = 0; i < count && !dump_limit_reached(dump); i++)
	{
		if (options->one_log && logs[i] != options->log)
			continue;
		found++;
		dump_log(dump, layout, logs[i]);
	}
	free(logs);
	return found;
}

/* The stash, which is there only between redo and recovery. */
static void
dump_stash_of_directory(Dump *dump)
{
	DumpFile	file;
	QcError		err;
	QcStatus	status = dump_read_file(dump, QC_STASH_PATH, &file, &err);

	if (status == QC_OK)
		dump_stash(dump, &file);
	else if (status != QC_MISSING)
		dump_fail(dump, &err);
	free(file.bytes);
}

static int
compare_ids(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return x < y ? -1 : x > y;
}

/* Only records of this queue: its log, and of that, when it has others too, its partitions. */
static void
select_queue(Dump *dump, const DumpRows *rows, const DumpQueue *queue, uint64_t *partitions)
{
	DumpOptions *options = &dump->options;
	uint32_t	n = 0;

	options->one_log = true;
	options->log = queue->log;
	for (uint32_t i = 0; i < rows->nqueues; i++)
		options->one_queue = options->one_queue ||
			(rows->queues[i].log == queue->log && rows->queues[i].id != queue->id);
	for (uint32_t i = 0; i < rows->npartitions; i++)
	{
		if (rows->partitions[i].queue == queue->id)
			partitions[n++] = rows->partitions[i].id;
	}
	qsort(partitions, n, sizeof(uint64_t), compare_ids);
	options->queue_id = queue->id;
	options->partitions = partitions;
	options->npartitions = n;
}

/* Look a queue up by its name; false = it cannot be told.	*partitions is malloc'ed. */
static bool
find_queue(Dump *dump, uint64_t **partitions)
{
	const char *name = dump->options.queue;
	const DumpQueue *found = NULL;
	uint32_t	n = 0;
	DumpRows	rows;
	QcError		err;
	QcStatus	status = dump_rows_newest(dump, &rows, &err);

	for (uint32_t i = 0; status == QC_OK && i < rows.nqueues; i++)
	{
		const DumpQueue *queue = &rows.queues[i];

		if (queue->name_len != strlen(name) || memcmp(queue->name, name, queue->name_len) != 0)
			continue;
		found = queue;
		n++;
	}
	if (status == QC_OK && n != 1)
		status = qc_error_at(&err, QC_NOTFOUND, dump->options.path, UINT64_MAX,
							 n == 0 ? "the checkpoint knows no queue of this name" :
							 "several databases have a queue of this name: give its log id");
	*partitions = malloc(rows.npartitions * sizeof(uint64_t) + 1);
	if (status == QC_OK && *partitions != NULL)
		select_queue(dump, &rows, found, *partitions);
	else
		dump_fail(dump, &err);
	dump_rows_free(&rows);
	return !dump->failed;
}

/* All logs, and whatever else is in the directory. */
static void
dump_everything(Dump *dump)
{
	const DumpOptions *options = &dump->options;
	bool		everything = !options->one_log && !options->one_partition &&
		options->kind == DUMP_ANY && options->effect == DUMP_ANY;
	uint32_t	found;
	QcError		err;

	if (options->verify && !options->one_log)
		dump->parts = dump_parts_create();
	if (dump_shows_lines(dump) && everything)
	{
		dump_text_file(dump, "IDENTITY");
		dump_text_file(dump, "qlog/LANES");
	}
	found = dump_logs(dump, QC_LAYOUT_FLAT);
	if (!dump->failed)
		found += dump_logs(dump, QC_LAYOUT_HIERARCHICAL);
	if (found == 0 && !dump->failed)
	{
		(void) qc_error_at(&err, QC_MISSING, options->path, UINT64_MAX,
						   options->one_log ? "directory holds no such log" : "directory holds no log");
		dump_fail(dump, &err);
	}
	if (everything && !dump_limit_reached(dump))
		dump_stash_of_directory(dump);
	if (everything && options->verify)
		dump_snapshots(dump);
	if (dump->parts != NULL)
		dump_parts_compare(dump);
	dump_parts_free(dump->parts);
	dump->parts = NULL;
}

void
dump_directory(Dump *dump)
{
	uint64_t   *partitions = NULL;
	QcError		err;

	if (qc_dir_read_floor(dump->io, &dump->floor, &err) != QC_OK)
	{
		dump_damage(dump, &dump->total, "FLOOR", UINT64_MAX, 0, err.text);
		dump->floor = UINT64_MAX;
	}
	if (dump->options.queue != NULL && !find_queue(dump, &partitions))
		dump->failed = true;
	else if (dump->options.summary)
		dump_summary(dump);
	else if (dump->options.follow)
		dump_follow(dump);
	else
		dump_everything(dump);
	free(partitions);
}
