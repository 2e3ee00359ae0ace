/*
 * qc_remove.c
 *		Taking closed files of a log away (steps in qc_remove.h).
 */
#include "qc_remove.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "qc_mutant.h"

#define LEFTOVERS_MAX	32		/* names taken from one listing of the directory */

static const char *const derived[] = {"qidx", "qhsh"};

#define DERIVED	(sizeof(derived) / sizeof(derived[0]))

/* Unlink; what is not there is fine. */
static QcStatus
unlink_if_there(const QcIo *io, const char *path, QcError *err)
{
	int			rc = io->unlink(io->context, path);

	return rc == 0 || rc == ENOENT ? QC_OK :
		qc_error_sys(err, rc, path, "could not remove file");
}

static QcStatus
sync_log(QcFiles *files, uint64_t log, QcError *err)
{
	char		path[QC_PATH_MAX];
	int			rc;

	qc_path_log(path, files->layout, log);
	rc = files->io->sync_directory(files->io->context, path);
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, path, "could not sync directory");
}

/* The name under which a file waits for its end. */
static void
dead_path(char out[QC_PATH_MAX + 8], const QcFiles *files, uint64_t log, uint64_t file)
{
	char		path[QC_PATH_MAX];

	qc_path_file(path, files->layout, log, file, "qlog");
	(void) snprintf(out, QC_PATH_MAX + 8, "%s.dead", path);
}

/* First half: out of sight. */
static QcStatus
put_aside(QcFiles *files, uint64_t log, uint64_t file, QcError *err)
{
	const QcIo *io = files->io;
	char		path[QC_PATH_MAX];
	char		dead[QC_PATH_MAX + 8];
	QcStatus	status = QC_OK;
	int			rc;

	qc_files_forget(files, log, file);
	for (size_t i = 0; i < DERIVED && status == QC_OK; i++)
	{
		qc_path_file(path, files->layout, log, file, derived[i]);
		status = unlink_if_there(io, path, err);
	}
	if (status != QC_OK)
		return status;
	qc_path_file(path, files->layout, log, file, "qlog");
	dead_path(dead, files, log, file);
	rc = io->rename(io->context, path, dead);
	return rc == 0 || rc == ENOENT ? QC_OK : qc_error_sys(err, rc, path, "could not rename");
}

/* Second half: its bytes, then its name. */
static QcStatus
destroy(const QcIo *io, const char *path, QcError *err)
{
	QcHandle	handle;
	int			rc = io->open(io->context, path, QC_OPEN_WRITE, &handle);

	if (rc == ENOENT)
		return QC_OK;
	if (rc == 0)
	{
		/* Whoever has it open keeps the name's end from giving the room back. */
		rc = io->truncate(io->context, handle, 0);
		io->close(io->context, handle);
	}
	if (rc != 0)
		return qc_error_sys(err, rc, path, "could not empty file");
	return unlink_if_there(io, path, err);
}

static void
tell(QcStepHook step, void *context, const char *what)
{
	if (step != NULL)
		step(context, what);
}

QcStatus
qc_remove_files(QcFiles *files, uint64_t log, const uint64_t *ids, uint32_t n, QcStepHook step,
				void *step_context, QcError *err)
{
	QcStatus	status = QC_OK;

	for (uint32_t i = 0; i < n && status == QC_OK; i++)
	{
		status = put_aside(files, log, ids[i], err);
		tell(step, step_context, "renamed");
	}
	if (status == QC_OK)
		status = sync_log(files, log, err);
	tell(step, step_context, "synced");
	for (uint32_t i = 0; i < n && status == QC_OK && !QC_MUTATED(QC_MUTANT_LEAVE_DEAD); i++)
	{
		char		dead[QC_PATH_MAX + 8];

		dead_path(dead, files, log, ids[i]);
		status = destroy(files->io, dead, err);
		tell(step, step_context, "unlinked");
	}
	return status;
}

/* ---- what was left behind ---- */

typedef struct Leftovers
{
	uint64_t	below;
	uint32_t	n;
	char		names[LEFTOVERS_MAX][64];
	bool		indexes;		/* collect indexes, otherwise what is named *.dead and *.tmp */
} Leftovers;

/* Is the name `r<digits>.qlog` with this behind it? */
static bool
is_log_file_with(const char *name, const char *suffix)
{
	size_t		len = strlen(name);
	size_t		cut = strlen(suffix);
	char		stem[64];
	uint64_t	id;

	if (len <= cut || len - cut >= sizeof(stem) || strcmp(name + len - cut, suffix) != 0)
		return false;
	memcpy(stem, name, len - cut);
	stem[len - cut] = '\0';
	return qc_name_parse_file(stem, "qlog", &id);
}

static bool
is_old_index(const Leftovers *left, const char *name)
{
	uint64_t	id;

	for (size_t i = 0; i < DERIVED; i++)
		if (qc_name_parse_file(name, derived[i], &id))
			return id < left->below;
	return false;
}

/* Visitor. */
static bool
note_leftover(void *context, const char *name, bool is_directory)
{
	Leftovers  *left = context;

	if (is_directory || strlen(name) >= sizeof(left->names[0]))
		return true;
	if (left->indexes ? is_old_index(left, name) :
		is_log_file_with(name, ".dead") || is_log_file_with(name, ".tmp"))
		(void) snprintf(left->names[left->n++], sizeof(left->names[0]), "%s", name);
	return left->n < LEFTOVERS_MAX;
}

static QcStatus
list(QcFiles *files, uint64_t log, Leftovers *left, QcError *err)
{
	char		path[QC_PATH_MAX];
	int			rc;

	left->n = 0;
	qc_path_log(path, files->layout, log);
	rc = files->io->list(files->io->context, path, note_leftover, left);
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, path, "could not list log directory");
}

static void
full_path(char out[QC_PATH_MAX + 66], const QcFiles *files, uint64_t log, const char *name)
{
	char		directory[QC_PATH_MAX];

	qc_path_log(directory, files->layout, log);
	(void) snprintf(out, QC_PATH_MAX + 66, "%s/%s", directory, name);
}

/* Of the indexes listed, remove those without a log file. */
static QcStatus
remove_orphans(QcFiles *files, uint64_t log, const Leftovers *left, QcError *err)
{
	const QcIo *io = files->io;
	QcStatus	status = QC_OK;

	for (uint32_t i = 0; i < left->n && status == QC_OK; i++)
	{
		char		path[QC_PATH_MAX + 66];
		char		log_file[QC_PATH_MAX];
		QcHandle	handle;
		uint64_t	id;
		int			rc;

		if (!qc_name_parse_file(left->names[i], "qidx", &id))
			(void) qc_name_parse_file(left->names[i], "qhsh", &id);
		qc_path_file(log_file, files->layout, log, id, "qlog");
		rc = io->open(io->context, log_file, 0, &handle);
		if (rc == 0)
			io->close(io->context, handle);
		if (rc != ENOENT)
			continue;
		full_path(path, files, log, left->names[i]);
		status = unlink_if_there(io, path, err);
	}
	return status;
}

QcStatus
qc_remove_leftovers(QcFiles *files, uint64_t log, uint64_t below, QcError *err)
{
	Leftovers	left = {.below = below};
	QcStatus	status;

	while ((status = list(files, log, &left, err)) == QC_OK && left.n > 0)
	{
		for (uint32_t i = 0; i < left.n && status == QC_OK; i++)
		{
			char		path[QC_PATH_MAX + 66];

			full_path(path, files, log, left.names[i]);
			status = destroy(files->io, path, err);
		}
		if (status != QC_OK)
			return status;
	}
	left.indexes = true;

	/* One listing is enough: a crash leaves those of one batch, and the next pass looks again. */
	if (status == QC_OK)
		status = list(files, log, &left, err);
	return status == QC_OK ? remove_orphans(files, log, &left, err) : status;
}
