/*
 * qlog_logfiles.c
 *		The files of a log (contract in qlog_logfiles.h).
 */
#include "qlog_logfiles.h"

#include <errno.h>

#include "qlog_io.h"
#include "qlog_report.h"
#include "qlog_shmem.h"

/* Ids while the directory is read; nothing in here may raise. */
typedef struct FileIds
{
	uint64	   *ids;
	uint32		n;
	uint32		max;
	bool		failed;			/* out of memory */
} FileIds;

static bool
note_file(void *context, const char *name, bool is_directory)
{
	FileIds    *files = context;
	uint64		id;

	if (is_directory || !qc_name_parse_file(name, "qlog", &id))
		return true;
	if (files->n == files->max)
	{
		uint32		max = files->max * 2 + 16;
		uint64	   *ids = palloc_extended(max * sizeof(uint64), MCXT_ALLOC_NO_OOM);

		files->failed = ids == NULL;
		if (files->failed)
			return false;
		if (files->ids != NULL)
		{
			memcpy(ids, files->ids, files->n * sizeof(uint64));
			pfree(files->ids);
		}
		files->ids = ids;
		files->max = max;
	}
	files->ids[files->n++] = id;
	return true;
}

static int
compare_u64(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

uint64 *
qlog_log_files(uint64 log, uint32 *n)
{
	const QcIo *io = qlog_io();
	FileIds		files = {0};
	char		path[QC_PATH_MAX];
	QcError		err;
	int			rc;

	qc_path_log(path, qlog_files()->layout, log);
	rc = io->list(io->context, path, note_file, &files);
	if (files.failed)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	if (rc != 0 && rc != ENOENT)
	{
		(void) qc_error_sys(&err, rc, path, "could not list directory");
		qlog_report(ERROR, &err, "could not list the files of a log");
	}
	*n = rc == 0 ? files.n : 0;
	if (*n > 0)
		qsort(files.ids, *n, sizeof(uint64), compare_u64);
	return files.ids;
}
