/*
 * qc_dir_list.c
 *		What stands in the data directory: log directories, log files, strays and leftovers.
 *
 * Names are matched exactly (qc_logfile.h); whatever is not of the layout is a stray, which nobody reads or removes.
 * A directory is listed whole before anything in it is changed.  Runs at start and in tools, allocates.
 */
#include "qc_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qc_array.h"

#define NAME_SIZE	256
#define DEPTH_MAX	8			/* directories below one that is swept */
#define PATH_SIZE	(QC_PATH_MAX + NAME_SIZE)

typedef struct Name
{
	char		text[NAME_SIZE];
	bool		is_directory;
} Name;

typedef struct Names
{
	Name	   *names;
	uint32_t	count;
	uint32_t	cap;
	bool		failed;			/* no memory */
} Names;

/* Visitor: collects names. */
static bool
add_name(void *context, const char *name, bool is_directory)
{
	Names	   *names = context;

	/* Nothing of the layout is that long. */
	if (strlen(name) >= NAME_SIZE)
		return true;
	names->failed = qc_array_grow(&names->names, &names->cap, names->count + 1, sizeof(Name), NULL) != QC_OK;
	if (names->failed)
		return false;
	memcpy(names->names[names->count].text, name, strlen(name) + 1);
	names->names[names->count++].is_directory = is_directory;
	return true;
}

/* All names of a directory; on QC_OK the caller frees names->names. */
static QcStatus
list_names(const QcIo *io, const char *path, Names *names, QcError *err)
{
	int			rc;

	memset(names, 0, sizeof(*names));
	rc = io->list(io->context, path, add_name, names);
	if (rc == 0 && !names->failed)
		return QC_OK;
	free(names->names);
	names->names = NULL;
	if (names->failed)
		return qc_error_set(err, QC_FULL, "out of memory");
	if (rc == ENOENT)
		return qc_error_at(err, QC_MISSING, path, UINT64_MAX, "directory does not exist");
	return qc_error_sys(err, rc, path, "could not list directory");
}

static bool
ends_with(const char *name, const char *suffix)
{
	size_t		len = strlen(name);
	size_t		suffix_len = strlen(suffix);

	return len > suffix_len && strcmp(name + len - suffix_len, suffix) == 0;
}

/* "name" in the directory, or "directory/name"; false when that is longer than any path of ours. */
static bool
join(char out[PATH_SIZE], const char *directory, const char *name)
{
	int			len = directory[0] == '\0' ? snprintf(out, PATH_SIZE, "%s", name) :
		snprintf(out, PATH_SIZE, "%s/%s", directory, name);

	return len > 0 && len < PATH_SIZE;
}

/* ---- log directories ---- */

typedef struct Logs
{
	const QcIo *io;
	QcLayout	layout;
	uint64_t   *ids;
	uint32_t	count;
	uint32_t	cap;
	uint32_t	strays;
} Logs;

/* A level of the hierarchical layout: two or four digits. */
static bool
is_level(const char *name)
{
	size_t		len = strlen(name);

	return (len == 2 || len == 4) && strspn(name, "0123456789") == len;
}

static QcStatus
add_log(Logs *logs, uint64_t id, QcError *err)
{
	QcStatus	status = qc_array_grow(&logs->ids, &logs->cap, logs->count + 1, sizeof(uint64_t), err);

	if (status != QC_OK)
		return status;
	logs->ids[logs->count++] = id;
	return QC_OK;
}

/* Is the directory at path, called name, the one of a log in this layout? */
static bool
is_log(QcLayout layout, const char *path, const char *name, uint64_t *id)
{
	char		expected[QC_PATH_MAX];

	if (!qc_name_parse_log(name, id))
		return false;
	qc_path_log(expected, layout, *id);
	return strcmp(expected, path) == 0;
}

/* Names that stand in qlog/ besides logs, and what a cut or an unfinished step leaves there. */
static bool
is_known(const char *name)
{
	return strcmp(name, "LANES") == 0 || strcmp(name, "SHARDS") == 0 ||
		strcmp(name, "q0.IDENTITY") == 0 || strcmp(name, "q0.LOCK") == 0 ||
		strstr(name, ".cut.") != NULL || ends_with(name, ".dead") || ends_with(name, ".tmp");
}

/* Collect the logs below a directory, and count what is none of ours. */
static QcStatus
walk_logs(Logs *logs, const char *directory, int depth, QcError *err)
{
	Names		names;
	char		path[PATH_SIZE];
	uint64_t	id;
	QcStatus	status = list_names(logs->io, directory, &names, err);

	if (status != QC_OK)
		return status;
	for (size_t i = 0; i < names.count && status == QC_OK; i++)
	{
		const Name *name = &names.names[i];

		if (!join(path, directory, name->text))
			logs->strays++;
		else if (name->is_directory && is_log(logs->layout, path, name->text, &id))
			status = add_log(logs, id, err);
		else if (name->is_directory && logs->layout == QC_LAYOUT_HIERARCHICAL && depth < 4 &&
				 is_level(name->text))
			status = walk_logs(logs, path, depth + 1, err);
		else if (!is_known(name->text))
			logs->strays++;
	}
	free(names.names);
	return status;
}

static int
compare_ids(const void *a, const void *b)
{
	uint64_t	left = *(const uint64_t *) a;
	uint64_t	right = *(const uint64_t *) b;

	return left < right ? -1 : left > right;
}

static QcStatus
find_logs(Logs *logs, const QcIo *io, QcLayout layout, QcError *err)
{
	QcStatus	status;

	memset(logs, 0, sizeof(*logs));
	logs->io = io;
	logs->layout = layout;
	status = walk_logs(logs, "qlog", 0, err);
	if (status != QC_OK)
	{
		free(logs->ids);
		logs->ids = NULL;
	}
	else if (logs->count > 0)
		qsort(logs->ids, logs->count, sizeof(uint64_t), compare_ids);
	return status;
}

QcStatus
qc_dir_logs(const QcIo *io, QcLayout layout, uint64_t **ids, uint32_t *nlogs, QcError *err)
{
	Logs		logs;
	QcStatus	status = find_logs(&logs, io, layout, err);

	*ids = logs.ids;
	*nlogs = status == QC_OK ? logs.count : 0;
	return status;
}

QcStatus
qc_dir_files(const QcIo *io, QcLayout layout, uint64_t log, uint64_t **files, uint32_t *nfiles,
			 QcError *err)
{
	Names		names;
	char		path[QC_PATH_MAX];
	uint64_t	id;
	QcStatus	status;

	*files = NULL;
	*nfiles = 0;
	qc_path_log(path, layout, log);
	status = list_names(io, path, &names, err);
	if (status != QC_OK)
		return status;
	*files = malloc((names.count + 1) * sizeof(uint64_t));
	if (*files == NULL)
	{
		free(names.names);
		return qc_error_set(err, QC_FULL, "out of memory");
	}
	for (size_t i = 0; i < names.count; i++)
	{
		/* files are numbered from 1 */
		if (!names.names[i].is_directory &&
			qc_name_parse_file(names.names[i].text, "qlog", &id) && id != 0)
			(*files)[(*nfiles)++] = id;
	}
	free(names.names);
	qsort(*files, *nfiles, sizeof(uint64_t), compare_ids);
	return QC_OK;
}

/* ---- sweeping ---- */

/* Remove a directory and what is in it. */
static QcStatus
remove_tree(const QcIo *io, const char *path, int depth, QcError *err)
{
	Names		names;
	char		below[PATH_SIZE];
	int			rc = 0;
	QcStatus	status = list_names(io, path, &names, err);

	for (size_t i = 0; status == QC_OK && i < names.count; i++)
	{
		if (depth == DEPTH_MAX || !join(below, path, names.names[i].text))
			status = qc_error_at(err, QC_LIMIT, path, UINT64_MAX, "directory is nested too deep");
		else if (names.names[i].is_directory)
			status = remove_tree(io, below, depth + 1, err);
		else if ((rc = io->unlink(io->context, below)) != 0)
			status = qc_error_sys(err, rc, below, "could not remove file");
	}
	if (status == QC_OK && (rc = io->remove_directory(io->context, path)) != 0)
		status = qc_error_sys(err, rc, path, "could not remove directory");
	free(names.names);
	return status;
}

static bool
is_leftover(const char *name)
{
	return ends_with(name, ".tmp") || ends_with(name, ".dead");
}

/* Does this name belong into a log directory?  Sub-directories are ignored. */
static bool
belongs_to_log(const Name *name)
{
	uint64_t	id;

	return name->is_directory || qc_name_parse_file(name->text, "qlog", &id) ||
		qc_name_parse_file(name->text, "qidx", &id) ||
		qc_name_parse_file(name->text, "qhsh", &id) || strstr(name->text, ".cut.") != NULL ||
		strstr(name->text, ".bad.") != NULL ||
		(strncmp(name->text, "dirx-", 5) == 0 && ends_with(name->text, ".qdx"));
}

static bool
belongs_to_root(const Name *name)
{
	static const char *const directories[] = {"qlog", "store", "traces", "replication", "snapshots",
	"groups", NULL};
	static const char *const files[] = {"IDENTITY", "SITES", "FLOOR", "LOCK", "RESERVE", QC_MARKER_NAME,
	"store.IDENTITY", "store.LOCK", NULL};
	const char *const *list = name->is_directory ? directories : files;

	/* checkpoints that were put aside */
	if (name->is_directory && (strncmp(name->text, "store.copied.", 13) == 0 ||
							   strncmp(name->text, "store.damaged.", 14) == 0))
		return true;
	while (*list != NULL && strcmp(*list, name->text) != 0)
		list++;
	return *list != NULL;
}

/* What is at home everywhere else is not ours to judge. */
static bool
belongs_anywhere(const Name *name)
{
	(void) name;
	return true;
}

/* Remove the leftovers of one directory and count the strays among the rest. */
static QcStatus
sweep_directory(const QcIo *io, const char *path, bool (*belongs) (const Name *name),
				uint32_t *strays, QcError *err)
{
	Names		names;
	char		below[PATH_SIZE];
	int			rc;
	QcStatus	status = list_names(io, path, &names, err);

	if (status != QC_OK)
		return status;
	for (size_t i = 0; i < names.count && status == QC_OK; i++)
	{
		const Name *name = &names.names[i];

		if (!is_leftover(name->text) || !join(below, path, name->text))
			*strays += !belongs(name);
		else if (name->is_directory)
			status = remove_tree(io, below, 0, err);
		else if ((rc = io->unlink(io->context, below)) != 0)
			status = qc_error_sys(err, rc, below, "could not remove file");
	}
	free(names.names);
	return status;
}

/* The directories above the logs, whose strays walk_logs has counted. */
static QcStatus
sweep_levels(const QcIo *io, QcLayout layout, const char *path, int depth, QcError *err)
{
	Names		names;
	char		below[PATH_SIZE];
	uint32_t	ignored = 0;
	QcStatus	status = sweep_directory(io, path, belongs_anywhere, &ignored, err);

	if (status != QC_OK || layout == QC_LAYOUT_FLAT || depth == 4)
		return status;
	status = list_names(io, path, &names, err);
	if (status != QC_OK)
		return status;
	for (size_t i = 0; i < names.count && status == QC_OK; i++)
		if (names.names[i].is_directory && is_level(names.names[i].text) &&
			join(below, path, names.names[i].text))
			status = sweep_levels(io, layout, below, depth + 1, err);
	free(names.names);
	return status;
}

QcStatus
qc_dir_sweep(const QcIo *io, QcLayout layout, uint32_t *strays, QcError *err)
{
	static const char *const others[] = {"replication", "snapshots", NULL};
	Logs		logs;
	char		path[QC_PATH_MAX];
	QcStatus	status;

	*strays = 0;
	status = sweep_directory(io, "", belongs_to_root, strays, err);
	if (status == QC_OK)
		status = sweep_levels(io, layout, "qlog", 0, err);
	for (int i = 0; status == QC_OK && others[i] != NULL; i++)
	{
		status = sweep_directory(io, others[i], belongs_anywhere, strays, err);
		if (status == QC_MISSING)
			status = QC_OK;
	}
	if (status == QC_OK)
		status = find_logs(&logs, io, layout, err);
	if (status != QC_OK)
		return status;
	*strays += logs.strays;
	for (uint32_t i = 0; i < logs.count && status == QC_OK; i++)
	{
		qc_path_log(path, layout, logs.ids[i]);
		status = sweep_directory(io, path, belongs_to_log, strays, err);
	}
	free(logs.ids);
	return status;
}
