/*
 * qc_recover_cut.c
 *		Cutting: whatever stands behind the end goes beside the log, never away (PROTOCOL.md 2.2).
 *
 * A log is cut at its tail, which stands behind the last record below the end: other records, torn bytes and holes
 * alike.  Files that begin behind the tail are renamed whole to <file>.cut.<seq>.  The rest of the tail's own file is
 * copied there (without the zeros of the room ahead), synced together with its name, and only then truncated away,
 * replaced by zeros and synced.  A log is cut from its newest file backwards, so that being interrupted only leaves it
 * shorter.
 *
 * A log directory that the state does not know was being created when the server died, or its queue is gone: without
 * records below the end it becomes <directory>.dead, or when records stand in it <directory>.cut.<seq>.
 *
 * Crashes: cutting again finds the same end, as what made it the end is missing still.
 */
#include "qc_recover_int.h"

#include "qc_dirx.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPY_CHUNK	65536
#define NAME_TRIES	10000
#define KEPT_ZEROS	64			/* zeros kept at the end: records of entries end with some */

/* ---- names ---- */

typedef struct NameSearch
{
	const char *name;
	bool		found;
} NameSearch;

static bool
is_name(void *context, const char *name, bool is_directory)
{
	NameSearch *search = context;

	(void) is_directory;
	search->found = strcmp(name, search->name) == 0;
	return !search->found;
}

/* The first of path.suffix, path.suffix.1, path.suffix.2 ... that does not exist. */
static QcStatus
free_name(const QcIo *io, const char *path, const char *suffix, char out[QC_PATH_MAX],
		  QcError *err)
{
	const char *slash = strrchr(path, '/');
	char		parent[QC_PATH_MAX];

	(void) snprintf(parent, sizeof(parent), "%.*s", slash == NULL ? 0 : (int) (slash - path), path);
	for (int i = 0; i < NAME_TRIES; i++)
	{
		NameSearch	search = {NULL, false};
		int			len = i == 0 ? snprintf(out, QC_PATH_MAX, "%s.%s", path, suffix) :
			snprintf(out, QC_PATH_MAX, "%s.%d.%s", path, i, suffix);
		int			rc;

		if (len >= QC_PATH_MAX)
			break;
		search.name = slash == NULL ? out : out + (slash + 1 - path);
		rc = io->list(io->context, parent, is_name, &search);
		if (rc != 0)
			return qc_error_sys(err, rc, parent, "could not list directory");
		if (!search.found)
			return QC_OK;
	}
	return qc_error_at(err, QC_LIMIT, path, UINT64_MAX, "no name is free to keep what was cut");
}

static QcStatus
cut_name(QcRecovery *rc, const char *path, char out[QC_PATH_MAX], QcError *err)
{
	char		suffix[32];

	(void) snprintf(suffix, sizeof(suffix), "cut.%" PRIu64, rc->r->end);
	return free_name(rc->r->files->io, path, suffix, out, err);
}

static QcStatus
sync_directory(QcRecovery *rc, const char *path, QcError *err)
{
	const QcIo *io = rc->r->files->io;
	int			error = io->sync_directory(io->context, path);

	return error == 0 ? QC_OK : qc_error_sys(err, error, path, "could not sync directory");
}

/* ---- one file ---- */

/* An index of what is cut off must not be taken for one of what comes in its place. */
static QcStatus
drop_derived(QcRecovery *rc, uint64_t log, uint64_t file, QcError *err)
{
	static const char *const suffixes[] = {"qidx", "qhsh"};
	const QcIo *io = rc->r->files->io;
	char		path[QC_PATH_MAX];

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
	{
		int			error;

		qc_path_file(path, rc->r->files->layout, log, file, suffixes[i]);
		error = io->unlink(io->context, path);
		if (error != 0 && error != ENOENT)
			return qc_error_sys(err, error, path, "could not remove index");
	}
	return qc_dirx_forget(rc->r->files, log, file, err);
}

/* Where the last byte that is not zero ends; `from` when there is none behind it. */
static QcStatus
content_end(QcRecovery *rc, uint64_t log, uint64_t file, uint64_t from, uint64_t size,
			uint64_t *end, QcError *err)
{
	uint8_t		buf[COPY_CHUNK];

	*end = from;
	while (size > from)
	{
		size_t		len = size - from < COPY_CHUNK ? (size_t) (size - from) : COPY_CHUNK;
		QcStatus	status = qc_files_read(rc->r->files, log, file, size - len, buf, len, err);

		if (status != QC_OK)
			return status;
		for (size_t i = len; i > 0; i--)
		{
			if (buf[i - 1] != 0)
			{
				*end = size - len + i;
				return QC_OK;
			}
		}
		size -= len;
	}
	return QC_OK;
}

/* Copy bytes [from, to) of a log file into an open file. */
static QcStatus
copy_range(QcRecovery *rc, uint64_t log, uint64_t file, uint64_t from, uint64_t to,
		   QcHandle handle, const char *path, QcError *err)
{
	const QcIo *io = rc->r->files->io;
	uint8_t		buf[COPY_CHUNK];

	for (uint64_t at = from; at < to;)
	{
		size_t		len = to - at < COPY_CHUNK ? (size_t) (to - at) : COPY_CHUNK;
		QcIoSlice	slice = {buf, len};
		QcStatus	status = qc_files_read(rc->r->files, log, file, at, buf, len, err);
		int			error;

		if (status != QC_OK)
			return status;
		error = io->write(io->context, handle, &slice, 1, at - from);
		if (error != 0)
			return qc_error_sys(err, error, path, "could not write what is cut");
		at += len;
	}
	return QC_OK;
}

/* Keep bytes [from, to) of a log file in a new file beside it, synced with its name. */
static QcStatus
keep_range(QcRecovery *rc, uint64_t log, uint64_t file, uint64_t from, uint64_t to, QcError *err)
{
	const QcIo *io = rc->r->files->io;
	char		path[QC_PATH_MAX];
	char		kept[QC_PATH_MAX];
	char		directory[QC_PATH_MAX];
	QcHandle	handle;
	QcStatus	status;
	int			error;

	qc_path_file(path, rc->r->files->layout, log, file, "qlog");
	qc_path_log(directory, rc->r->files->layout, log);
	status = cut_name(rc, path, kept, err);
	if (status != QC_OK)
		return status;
	error = io->open(io->context, kept, QC_OPEN_WRITE | QC_OPEN_CREATE, &handle);
	if (error != 0)
		return qc_error_sys(err, error, kept, "could not create file");
	status = copy_range(rc, log, file, from, to, handle, kept, err);
	if (status == QC_OK && (error = io->sync(io->context, handle)) != 0)
		status = qc_error_sys(err, error, kept, "could not sync file");
	io->close(io->context, handle);
	return status == QC_OK ? sync_directory(rc, directory, err) : status;
}

/* Write zeros over [from, to). */
static int
write_zeros(const QcIo *io, QcHandle handle, uint64_t from, uint64_t to)
{
	static const uint8_t zeros[COPY_CHUNK];
	int			error = 0;

	while (from < to && error == 0)
	{
		QcIoSlice	slice = {zeros, to - from < COPY_CHUNK ? (size_t) (to - from) : COPY_CHUNK};

		error = io->write(io->context, handle, &slice, 1, from);
		from += slice.len;
	}
	return error;
}

/* Cut the rest of the tail's own file off and put zeros in its place. */
static QcStatus
cut_file(QcRecovery *rc, uint64_t log, uint64_t file, uint64_t from, QcError *err)
{
	const QcIo *io = rc->r->files->io;
	char		path[QC_PATH_MAX];
	QcHandle	handle;
	uint64_t	size = 0;
	uint64_t	end;
	int			error;
	QcStatus	status = qc_files_size(rc->r->files, log, file, true, &size, err);

	if (status == QC_OK)
		status = content_end(rc, log, file, from, size, &end, err);
	if (status != QC_OK || end == from)
		return status;
	status = keep_range(rc, log, file, from, size - end < KEPT_ZEROS ? size : end + KEPT_ZEROS, err);
	if (status == QC_OK)
		status = drop_derived(rc, log, file, err);
	if (status == QC_OK)
		status = qc_files_get(rc->r->files, log, file, true, &handle, err);
	if (status != QC_OK)
		return status;
	error = io->truncate(io->context, handle, from);
	if (error == 0)
		error = write_zeros(io, handle, from, size);
	if (error == 0)
		error = io->sync(io->context, handle);
	rc->r->cut_bytes += end - from;
	qc_path_file(path, rc->r->files->layout, log, file, "qlog");
	return error == 0 ? QC_OK : qc_error_sys(err, error, path, "could not cut log file");
}

/* A file that begins behind the tail: renamed when it holds anything, otherwise removed. */
static QcStatus
take_away_file(QcRecovery *rc, uint64_t log, uint64_t file, bool blank, uint64_t bytes, QcError *err)
{
	const QcIo *io = rc->r->files->io;
	char		path[QC_PATH_MAX];
	char		kept[QC_PATH_MAX];
	char		directory[QC_PATH_MAX];
	QcStatus	status = drop_derived(rc, log, file, err);
	int			error;

	qc_files_forget(rc->r->files, log, file);
	qc_path_file(path, rc->r->files->layout, log, file, "qlog");
	qc_path_log(directory, rc->r->files->layout, log);
	if (status == QC_OK && !blank)
		status = cut_name(rc, path, kept, err);
	if (status != QC_OK)
		return status;
	error = blank ? io->unlink(io->context, path) : io->rename(io->context, path, kept);
	if (error != 0)
		return qc_error_sys(err, error, path, "could not take away log file");
	rc->r->cut_bytes += bytes;
	return sync_directory(rc, directory, err);
}

/* Does a file behind the tail hold anything?  Its header does not count when it is right. */
static QcStatus
measure_file(QcRecovery *rc, uint64_t log, uint64_t file, bool *blank, uint64_t *bytes, QcError *err)
{
	uint64_t	size = 0;
	uint64_t	end = 0;
	QcStatus	status = qc_files_size(rc->r->files, log, file, true, &size, err);

	if (status == QC_OK)
		status = content_end(rc, log, file, QC_FILE_HEADER_SIZE, size, &end, err);
	*blank = end <= QC_FILE_HEADER_SIZE;
	*bytes = *blank ? 0 : end - QC_FILE_HEADER_SIZE;
	return status;
}

/* ---- one log ---- */

/* Cut everything behind the tail of one log. */
static QcStatus
cut_log(QcRecovery *rc, const QcLogTail *tail, QcError *err)
{
	uint64_t   *files;
	uint32_t	n;
	uint32_t	lowest;			/* of the files behind the tail, the first that is not blank */
	bool		blank = true;
	uint64_t	bytes;
	QcStatus	status = qc_dir_files(rc->r->files->io, rc->r->files->layout, tail->log, &files, &n,
									  err);

	if (status != QC_OK)
		return status;
	lowest = n;
	for (uint32_t i = 0; i < n && status == QC_OK && lowest == n; i++)
	{
		if (files[i] <= tail->tail_file)
			continue;
		status = measure_file(rc, tail->log, files[i], &blank, &bytes, err);
		if (!blank)
			lowest = i;
	}
	for (uint32_t i = n; i > lowest && status == QC_OK; i--)
	{
		status = measure_file(rc, tail->log, files[i - 1], &blank, &bytes, err);
		if (status == QC_OK)
			status = take_away_file(rc, tail->log, files[i - 1], blank, bytes, err);
	}
	free(files);
	if (status == QC_OK)
		status = cut_file(rc, tail->log, tail->tail_file, tail->tail_position, err);
	return status;
}

QcStatus
qc_recover_cut(QcRecovery *rc, QcError *err)
{
	QcStatus	status = QC_OK;

	for (uint32_t i = 0; i < rc->nlogs && status == QC_OK; i++)
	{
		QcLogTail  *tail = &rc->logs[i];

		if (tail->gone || tail->clean)
			continue;
		rc->cut = rc->r->changed = true;
		status = cut_log(rc, tail, err);
		tail->clean = status == QC_OK;
		if (status == QC_OK)
			status = qc_recover_tick(rc, "cut", i, rc->nlogs, err);
	}
	return status;
}

QcStatus
qc_recover_cut_behind(QcRecovery *rc, uint64_t log, uint64_t file, QcError *err)
{
	uint64_t   *files;
	uint32_t	n;
	QcStatus	status = qc_dir_files(rc->r->files->io, rc->r->files->layout, log, &files, &n, err);

	if (status != QC_OK)
		return status;
	for (uint32_t i = n; i > 0 && files[i - 1] > file && status == QC_OK; i--)
	{
		bool		blank;
		uint64_t	bytes;

		status = measure_file(rc, log, files[i - 1], &blank, &bytes, err);
		if (status == QC_OK)
			status = take_away_file(rc, log, files[i - 1], blank, bytes, err);
	}
	free(files);
	return status;
}

/* ---- directories that the state does not know ---- */

/* Rename the directory of a log away. */
static QcStatus
retire(QcRecovery *rc, QcLogTail *tail, QcError *err)
{
	const QcIo *io = rc->r->files->io;
	char		path[QC_PATH_MAX];
	char		name[QC_PATH_MAX];
	char	   *slash;
	QcStatus	status;
	int			error;

	qc_path_log(path, rc->r->files->layout, tail->log);
	status = tail->clean ? free_name(io, path, "dead", name, err) : cut_name(rc, path, name, err);
	if (status != QC_OK)
		return status;
	qc_files_forget(rc->r->files, tail->log, 0);
	error = io->rename(io->context, path, name);
	if (error != 0)
		return qc_error_sys(err, error, path, "could not rename");
	tail->gone = true;
	rc->r->changed = true;
	rc->cut |= !tail->clean;
	slash = strrchr(path, '/');
	assert(slash != NULL);
	*slash = '\0';
	return sync_directory(rc, path, err);
}

/* Seq of the last record of a directory; 0 = it has none. */
static QcStatus
newest_record(QcRecovery *rc, uint64_t log, uint64_t *seq, QcError *err)
{
	uint64_t   *files;
	uint32_t	n;
	QcStatus	status = qc_dir_files(rc->r->files->io, rc->r->files->layout, log, &files, &n, err);

	*seq = 0;
	if (status != QC_OK)
		return status;
	while (n > 0 && *seq == 0 && status == QC_OK)
	{
		QcScan		scan;

		status = qc_scan_begin(&scan, rc->r->files, log, files[--n], QC_FILE_HEADER_SIZE, err);
		if (status != QC_OK)
			break;
		while ((status = qc_scan_next(&scan, err)) == QC_OK)
			*seq = scan.record.seq;
		qc_scan_end(&scan);
		status = status == QC_END ? QC_OK : status;
	}
	free(files);
	return status;
}

/*
 * A log that was gone at the mark goes, and with it what older entries have in it: no start may begin below its last one any
 * more.	Snapshots know that it is gone, as it went only when they all did (qc_log_remove_next), so they stay of use; should one
 * of them not, or should that not be known, it is none any more.
 */
static QcStatus
raise_floor(QcRecovery *rc, const QcLogTail *tail, QcError *err)
{
	const QcRecover *r = rc->r;
	uint64_t	to = r->mark;
	uint64_t	newest;
	QcStatus	status;

	if (tail->start_file != 0 || to <= r->floor)
		return QC_OK;
	if (r->snapshot != 0 && r->snapshot < to &&
		newest_record(rc, tail->log, &newest, NULL) == QC_OK && newest <= r->snapshot)
		to = r->snapshot;
	if (to <= r->floor)
		return QC_OK;
	status = qc_dir_write_floor(r->files->io, to, err);
	if (status == QC_OK)
		rc->r->floor = to;
	return status;
}

QcStatus
qc_recover_retire(QcRecovery *rc, QcError *err)
{
	QcStatus	status = QC_OK;

	for (uint32_t i = 0; i < rc->nlogs && status == QC_OK; i++)
	{
		QcLogTail  *tail = &rc->logs[i];

		/*
		 * With a record below the end the next recovery still needs it, until the mark has passed
		 * that.
		 */
		if (tail->gone || tail->last_seq != 0 || qc_recover_log(rc, tail) != NULL)
			continue;
		status = raise_floor(rc, tail, err);
		if (status == QC_OK)
			status = retire(rc, tail, err);
	}
	return status;
}
