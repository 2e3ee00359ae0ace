/*
 * qlog_dump_main.c
 *		Running qlog_dump: which path is what, and what all parts report through.
 *
 * The I/O table is rooted at the directory given, or at the one that holds the file given.  A file is told by
 * its name: r<number>.qlog and any other name is a log file, *.qidx an index, *.qhsh its dedup ids, *.cut.* bytes that recovery cut
 * off, stash the stash.
 */
#define _POSIX_C_SOURCE 200809L

#include "qlog_dump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "qc_io_posix.h"

#define PATH_SIZE 4096

/* ---- what the other parts use ---- */

bool
dump_limit_reached(const Dump *dump)
{
	return !dump->options.verify && dump->shown >= dump->options.limit;
}

bool
dump_shows_lines(const Dump *dump)
{
	return !dump->options.quiet && !dump->options.stats && !dump->options.verify;
}

void
dump_fail(Dump *dump, const QcError *err)
{
	char		text[1024];

	qc_error_format(err, text, sizeof(text));
	fprintf(dump->errors, "qlog_dump: %s\n", text);
	dump->failed = true;
}

void
dump_damage(Dump *dump, DumpStats *stats, const char *path, uint64_t position, uint64_t bytes,
			const char *reason)
{
	DumpRow    *row = &dump->row;

	stats->damages++;
	dump_row_begin(row, "damage");
	dump_row_word(row, "path", path);
	if (position != UINT64_MAX)
		dump_row_u64(row, "at", position);
	if (bytes > 0)
		dump_row_u64(row, "bytes", bytes);
	dump_row_word(row, "reason", reason);
	dump_row_end(row);
}

/* The content of an open file. */
static QcStatus
read_whole(const QcIo *io, QcHandle handle, const char *path, DumpFile *file, QcError *err)
{
	uint64_t	size;
	size_t		done = 0;
	int			rc = io->size(io->context, handle, &size);

	if (rc != 0)
		return qc_error_sys(err, rc, path, "could not get the size of file");
	file->bytes = size < SIZE_MAX ? malloc((size_t) size + 1) : NULL;
	if (file->bytes == NULL)
		return qc_error_at(err, QC_FULL, path, UINT64_MAX, "out of memory");
	rc = io->read(io->context, handle, file->bytes, (size_t) size, 0, &done);
	if (rc != 0)
	{
		free(file->bytes);
		file->bytes = NULL;
		return qc_error_sys(err, rc, path, "could not read file");
	}
	file->len = done;
	return QC_OK;
}

QcStatus
dump_read_file(Dump *dump, const char *path, DumpFile *file, QcError *err)
{
	const QcIo *io = dump->io;
	QcHandle	handle;
	QcStatus	status;
	int			rc = io->open(io->context, path, 0, &handle);

	*file = (DumpFile)
	{
		.path = path
	};
	if (rc == ENOENT)
		return qc_error_at(err, QC_MISSING, path, UINT64_MAX, "file does not exist");
	if (rc != 0)
		return qc_error_sys(err, rc, path, "could not open file");
	status = read_whole(io, handle, path, file, err);
	io->close(io->context, handle);
	return status;
}

/* ---- one file ---- */

/* Is the text before the last '/' the directory of a log? */
static bool
log_of_directory(const char *directory, uint64_t *log)
{
	const char *name = strrchr(directory, '/');

	return qc_name_parse_log(name == NULL ? directory : name + 1, log);
}

/* What stands derived beside a log file, if it does. */
static void
dump_beside(Dump *dump, const DumpDerived *derived, const DumpFile *log_file, const char *log_name,
			uint64_t file_id, uint64_t log_length)
{
	char		name[32];
	char		path[PATH_SIZE];
	int			directory = (int) (strlen(log_file->path) - strlen(log_name));
	DumpFile	file;
	QcError		err;
	QcStatus	status;

	(void) snprintf(name, sizeof(name), "r%08" PRIu64 ".%s", file_id, derived->suffix);
	(void) snprintf(path, sizeof(path), "%.*s%s", directory, log_file->path, name);
	status = dump_read_file(dump, name, &file, &err);
	if (status == QC_MISSING)
		return;
	if (status != QC_OK)
		dump_fail(dump, &err);
	else
	{
		file.path = path;
		derived->dump(dump, &file, file_id, log_file, log_length);
	}
	free(file.bytes);
}

static void
dump_one_log_file(Dump *dump, const DumpFile *file, const char *directory, const char *name)
{
	DumpLog		log = {.known = log_of_directory(directory, &log.id)};
	uint64_t	file_id;
	uint64_t	length;
	bool		named = qc_name_parse_file(name, "qlog", &file_id);

	length = dump_log_file(dump, &log, file, named ? file_id : 0, NULL, NULL);
	for (int i = 0; named && dump->options.verify && i < DUMP_DERIVED; i++)
		dump_beside(dump, &dump_derived[i], file, name, file_id, length);
	dump_stats_add(&dump->total, &log.stats);
}

/* NULL: it is no derived file. */
static const DumpDerived *
derived_by_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	for (int i = 0; dot != NULL && i < DUMP_DERIVED; i++)
		if (strcmp(dot + 1, dump_derived[i].suffix) == 0)
			return &dump_derived[i];
	return NULL;
}

/* Read a file and take it for what its name says. */
static void
dump_one_file(Dump *dump, const char *directory, const char *name)
{
	const DumpDerived *derived;
	DumpLog		log = {.known = false};
	DumpFile	file;
	QcError		err;

	if (dump_read_file(dump, name, &file, &err) != QC_OK)
	{
		dump_fail(dump, &err);
		return;
	}
	file.path = dump->options.path;
	if (strstr(name, ".cut.") != NULL)
	{
		dump_cut_file(dump, &log, &file);
		dump_stats_add(&dump->total, &log.stats);
	}
	else if ((derived = derived_by_name(name)) != NULL)
		derived->dump(dump, &file, 0, NULL, 0);
	else if (strcmp(name, "stash") == 0)
		dump_stash(dump, &file);
	else
		dump_one_log_file(dump, &file, directory, name);
	free(file.bytes);
}

/* ---- main ---- */

/* Split the path of a file; false when it is too long. */
static bool
split_path(const char *path, char directory[PATH_SIZE], const char **name)
{
	const char *slash = strrchr(path, '/');
	int			len = slash == NULL ? 1 : (int) (slash - path);

	*name = slash == NULL ? path : slash + 1;
	if (len >= PATH_SIZE)
		return false;
	(void) snprintf(directory, PATH_SIZE, "%.*s", len == 0 ? 1 : len, slash == NULL ? "." : path);
	return true;
}

/* Open the root and read what the path names. */
static void
dump_path(Dump *dump)
{
	const char *path = dump->options.path;
	char		directory[PATH_SIZE];
	const char *name = NULL;
	struct stat st;
	QcIoPosix	posix;
	DumpSites	sites;
	QcError		err;
	int			rc = stat(path, &st) == 0 ? 0 : errno;

	if (rc == 0 && !S_ISDIR(st.st_mode) && !split_path(path, directory, &name))
		rc = ENAMETOOLONG;
	if (rc == 0)
		rc = qc_io_posix_open(&posix, name == NULL ? path : directory);
	if (rc != 0)
	{
		(void) qc_error_sys(&err, rc, path, "could not open");
		dump_fail(dump, &err);
		return;
	}
	dump->io = &posix.io;
	if (name == NULL)
	{
		dump_sites_open(dump, &sites);
		dump_directory(dump);
		dump_sites_close(&sites);
	}
	else if (dump->options.summary || dump->options.follow || dump->options.queue != NULL)
	{
		(void) qc_error_at(&err, QC_INVALID, path, UINT64_MAX, "this needs a data directory");
		dump_fail(dump, &err);
	}
	else
		dump_one_file(dump, directory, name);
	qc_io_posix_close(&posix);
}

int
dump_main(int argc, char **argv, FILE *out, FILE *errors)
{
	Dump		dump = {.errors = errors};

	switch (dump_parse(argc, argv, &dump.options, out, errors))
	{
		case DUMP_PARSED_DONE:
			return DUMP_EXIT_CLEAN;
		case DUMP_PARSED_WRONG:
			return DUMP_EXIT_FAILED;
		case DUMP_PARSED_RUN:
			break;
	}
	dump.row.out = out;
	dump.row.json = dump.options.json;
	dump_path(&dump);
	if (!dump.options.quiet && (dump.options.verify || dump.options.stats) && dump.io != NULL)
		dump_stats_print(&dump, "total", NULL, &dump.total);
	free(dump.raw);
	if (fflush(out) != 0)
		dump.failed = true;
	if (dump.total.damages > 0)
		return DUMP_EXIT_DAMAGE;
	return dump.failed ? DUMP_EXIT_FAILED : DUMP_EXIT_CLEAN;
}
