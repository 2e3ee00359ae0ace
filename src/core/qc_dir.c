/*
 * qc_dir.c
 *		Opening and creating the data directory: IDENTITY, LANES, SHARDS, the node marker (contracts in qc_dir.h).
 *
 * A directory is created in this order, each step synced before the next: IDENTITY.tmp, sub-directories, LANES, SHARDS,
 * sites, q0 and the shared logs, the marker, and last the rename to IDENTITY.  So IDENTITY names a complete directory, and a
 * directory without it is taken for new only when IDENTITY.tmp shows that its creation was cut short and these logs hold
 * no record; everything else that is not empty is refused: missing is never new.
 *
 * Called at start, before anything is served.
 */
#include "qc_dir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qc_log.h"
#include "qc_text.h"

#define IDENTITY_PATH	"IDENTITY"
#define IDENTITY_TMP	"IDENTITY.tmp"
#define LANES_PATH		"qlog/LANES"
#define SHARDS_PATH		"qlog/SHARDS"
#define FLOOR_PATH		"FLOOR"

/* ---- small files ---- */

/* Directory part of a path; "" is the data directory. */
static void
parent_of(char out[QC_PATH_MAX], const char *path)
{
	const char *slash = strrchr(path, '/');

	(void) snprintf(out, QC_PATH_MAX, "%.*s", slash == NULL ? 0 : (int) (slash - path), path);
}

static QcStatus
sync_parent(const QcIo *io, const char *path, QcError *err)
{
	char		parent[QC_PATH_MAX];
	int			rc;

	parent_of(parent, path);
	rc = io->sync_directory(io->context, parent);
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, path, "could not sync the directory of");
}

/*
 * Write a file that nobody reads yet, over what an earlier attempt left (whose name must not go meanwhile: it may be
 * what tells of the attempt), and sync it.
 */
static QcStatus
write_new(const QcIo *io, const char *path, const void *bytes, size_t len, QcError *err)
{
	QcIoSlice	slice = {bytes, len};
	QcHandle	handle;
	int			rc = io->open(io->context, path, QC_OPEN_WRITE | QC_OPEN_CREATE, &handle);

	if (rc == EEXIST)
		rc = io->open(io->context, path, QC_OPEN_WRITE, &handle);
	if (rc != 0)
		return qc_error_sys(err, rc, path, "could not create file");
	rc = io->truncate(io->context, handle, 0);
	if (rc == 0)
		rc = io->write(io->context, handle, &slice, 1, 0);
	if (rc == 0)
		rc = io->sync(io->context, handle);
	io->close(io->context, handle);
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, path, "could not write file");
}

static QcStatus
rename_synced(const QcIo *io, const char *from, const char *to, QcError *err)
{
	int			rc = io->rename(io->context, from, to);

	if (rc != 0)
		return qc_error_sys(err, rc, from, "could not rename file");
	return sync_parent(io, to, err);
}

QcStatus
qc_dir_write_file(const QcIo *io, const char *path, const void *bytes, size_t len, QcError *err)
{
	char		tmp[QC_PATH_MAX + 8];
	QcStatus	status;

	(void) snprintf(tmp, sizeof(tmp), "%s.tmp", path);
	status = write_new(io, tmp, bytes, len, err);
	return status == QC_OK ? rename_synced(io, tmp, path, err) : status;
}

QcStatus
qc_dir_read_file(const QcIo *io, const char *path, void *buf, size_t cap, size_t *len, QcError *err)
{
	QcHandle	handle;
	uint64_t	size = 0;
	int			rc = io->open(io->context, path, 0, &handle);

	*len = 0;
	if (rc == ENOENT)
		return qc_error_at(err, QC_MISSING, path, UINT64_MAX, "file does not exist");
	if (rc != 0)
		return qc_error_sys(err, rc, path, "could not open file");
	rc = io->size(io->context, handle, &size);
	if (rc == 0 && size <= cap)
		rc = io->read(io->context, handle, buf, (size_t) size, 0, len);
	io->close(io->context, handle);
	if (rc != 0)
		return qc_error_sys(err, rc, path, "could not read file");
	if (size > cap)
		return qc_error_at(err, QC_LIMIT, path, UINT64_MAX, "file is larger than %zu bytes", cap);
	return QC_OK;
}

/* ---- IDENTITY, LANES, marker ---- */

static const char *
layout_name(QcLayout layout)
{
	return layout == QC_LAYOUT_FLAT ? "flat" : "hierarchical";
}

static QcStatus
read_identity(const QcIo *io, const char *path, QcIdentity *identity, QcError *err)
{
	QcTextField fields[3] = {{.key = "directory_id"}, {.key = "system_identifier"}, {.key = "node_id"}};
	QcStatus	status = qc_text_read(io, path, fields, 3, err);

	if (status != QC_OK)
		return status;
	if (!qc_text_number(fields[0].value, &identity->directory_id) ||
		!qc_text_number(fields[1].value, &identity->system_identifier) ||
		!qc_text_number(fields[2].value, &identity->node_id))
		return qc_text_damaged(path, err);
	return QC_OK;
}

static QcStatus
read_lanes(const QcIo *io, QcLayout *layout, QcError *err)
{
	QcTextField fields[1] = {{.key = "layout"}};
	QcStatus	status = qc_text_read(io, LANES_PATH, fields, 1, err);

	if (status != QC_OK)
		return status;
	for (int i = QC_LAYOUT_FLAT; i <= QC_LAYOUT_HIERARCHICAL; i++)
	{
		if (strcmp(fields[0].value, layout_name((QcLayout) i)) == 0)
		{
			*layout = (QcLayout) i;
			return QC_OK;
		}
	}
	return qc_text_damaged(LANES_PATH, err);
}

/* Without the file each queue has its own log. */
static QcStatus
read_shards(const QcIo *io, uint32_t *shards, QcError *err)
{
	QcTextField fields[1] = {{.key = "shards"}};
	uint64_t	number;
	bool		missing;
	QcStatus	status = qc_text_read(io, SHARDS_PATH, fields, 1, err);

	*shards = 0;
	status = qc_text_or_missing(status, &missing, err);
	if (status != QC_OK || missing)
		return status;
	if (!qc_text_number(fields[0].value, &number) || number == 0 || number > QC_SHARDS_MAX)
		return qc_text_damaged(SHARDS_PATH, err);
	*shards = (uint32_t) number;
	return QC_OK;
}

/* A marker that is missing, or names another node, was not written here: the directory is a copy. */
static QcStatus
read_marker(const QcIo *io, QcIdentity *identity, QcError *err)
{
	QcTextField fields[1] = {{.key = "node_id"}};
	uint64_t	node;
	bool		missing;
	QcStatus	status = qc_text_read(io, QC_MARKER_NAME, fields, 1, err);

	identity->copied = true;
	status = qc_text_or_missing(status, &missing, err);
	if (status != QC_OK || missing)
		return status;
	if (!qc_text_number(fields[0].value, &node))
		return qc_text_damaged(QC_MARKER_NAME, err);
	identity->copied = node != identity->node_id;
	return QC_OK;
}

QcStatus
qc_dir_read_floor(const QcIo *io, uint64_t *seq, QcError *err)
{
	QcTextField fields[1] = {{.key = "seq"}};
	bool		missing;
	QcStatus	status = qc_text_read(io, FLOOR_PATH, fields, 1, err);

	*seq = 0;
	status = qc_text_or_missing(status, &missing, err);
	if (status != QC_OK || missing)
		return status;
	return qc_text_number(fields[0].value, seq) ? QC_OK : qc_text_damaged(FLOOR_PATH, err);
}

QcStatus
qc_dir_write_floor(const QcIo *io, uint64_t seq, QcError *err)
{
	char		lines[64];

	(void) snprintf(lines, sizeof(lines), "seq = %" PRIu64 "\n", seq);
	return qc_text_write(io, FLOOR_PATH, lines, err);
}

static size_t
identity_text(char out[QC_TEXT_MAX], const QcIdentity *identity)
{
	return (size_t) snprintf(out, QC_TEXT_MAX,
							 "format_version = %d\ndirectory_id = %" PRIu64
							 "\nsystem_identifier = %" PRIu64 "\nnode_id = %" PRIu64 "\n",
							 QC_DIR_VERSION, identity->directory_id,
							 identity->system_identifier, identity->node_id);
}

static QcStatus
write_marker(const QcIo *io, uint64_t node, QcError *err)
{
	char		lines[64];

	(void) snprintf(lines, sizeof(lines), "node_id = %" PRIu64 "\n", node);
	return qc_text_write(io, QC_MARKER_NAME, lines, err);
}

static QcStatus
write_lanes(const QcIo *io, QcLayout layout, QcError *err)
{
	char		lines[64];

	(void) snprintf(lines, sizeof(lines), "layout = %s\n", layout_name(layout));
	return qc_text_write(io, LANES_PATH, lines, err);
}

static QcStatus
write_shards(const QcIo *io, uint32_t shards, QcError *err)
{
	char		lines[64];

	(void) snprintf(lines, sizeof(lines), "shards = %" PRIu32 "\n", shards);
	return shards == 0 ? QC_OK : qc_text_write(io, SHARDS_PATH, lines, err);
}

QcStatus
qc_dir_adopt(const QcIo *io, uint64_t new_node, QcIdentity *identity, QcError *err)
{
	QcIdentity	adopted = *identity;
	char		text[QC_TEXT_MAX];
	QcStatus	status;

	/*
	 * Until the marker names the new node the directory still counts as a copy, whose sites may be
	 * of any node.
	 */
	adopted.node_id = new_node;
	adopted.copied = false;
	status = qc_dir_write_file(io, IDENTITY_PATH, text, identity_text(text, &adopted), err);
	if (status == QC_OK)
		status = qc_sites_adopt(io, identity->layout, identity->directory_id, new_node, err);
	if (status == QC_OK)
		status = write_marker(io, new_node, err);
	if (status == QC_OK)
		*identity = adopted;
	return status;
}

/* ---- opening and creating ---- */

/* What stands in a directory without IDENTITY. */
typedef struct Found
{
	bool		site;			/* store* lives elsewhere, and is judged there */
	bool		identity;
	bool		identity_tmp;
	bool		other;			/* anything that is not the server's lock */
} Found;

static bool
look_at(void *context, const char *name, bool is_directory)
{
	Found	   *found = context;

	(void) is_directory;
	if (strcmp(name, IDENTITY_PATH) == 0)
		found->identity = true;
	else if (strcmp(name, IDENTITY_TMP) == 0)
		found->identity_tmp = true;
	else if (found->site && strncmp(name, "store", 5) == 0 && (name[5] == '\0' || name[5] == '.'))
		return true;
	else if (strcmp(name, "LOCK") != 0)
		found->other = true;
	return true;
}

/* Does this file of a log hold no record? */
static QcStatus
check_file_is_blank(QcFiles *files, uint64_t log, uint64_t file, bool *blank, QcError *err)
{
	uint8_t		len[4] = {0};
	QcStatus	status = qc_files_read(files, log, file, QC_FILE_HEADER_SIZE, len, sizeof(len), err);

	*blank = status == QC_SHORT || qc_load_u32(len) == 0;
	return status == QC_SHORT ? QC_OK : status;
}

/* Remove a log of a creation that was cut short; one that holds a record is not from there. */
static QcStatus
remove_blank_log(const QcIo *io, QcLayout layout, uint64_t log, QcError *err)
{
	QcFiles		files;
	uint64_t   *ids;
	uint32_t	n;
	char		path[QC_PATH_MAX];
	bool		blank = true;
	int			rc = 0;
	QcStatus	status = qc_dir_files(io, layout, log, &ids, &n, err);

	qc_files_init(&files, io, layout);
	for (uint32_t i = 0; i < n && status == QC_OK && blank; i++)
		status = check_file_is_blank(&files, log, ids[i], &blank, err);
	qc_files_close(&files);
	if (status == QC_OK && !blank)
		status = qc_error_at(err, QC_MISSING, IDENTITY_PATH, UINT64_MAX,
							 "file is missing from a directory that holds records");
	for (uint32_t i = 0; i < n && status == QC_OK && rc == 0; i++)
	{
		qc_path_file(path, layout, log, ids[i], "qlog");
		rc = io->unlink(io->context, path);
	}
	free(ids);
	if (status != QC_OK)
		return status;
	qc_path_log(path, layout, log);
	if (rc == 0)
		rc = io->remove_directory(io->context, path);
	return rc == 0 ? sync_parent(io, path, err) : qc_error_sys(err, rc, path, "could not remove");
}

/* SHARDS goes last, as it is what tells the logs of the creation from others. */
static QcStatus
remove_shards(const QcIo *io, QcError *err)
{
	int			rc = io->unlink(io->context, SHARDS_PATH);

	if (rc == ENOENT)
		return QC_OK;
	return rc == 0 ? sync_parent(io, SHARDS_PATH, err) :
		qc_error_sys(err, rc, SHARDS_PATH, "could not remove");
}

/* The directory id of a creation that was cut short; 0 when it did not get so far. */
static uint64_t
unfinished_id(const QcIo *io)
{
	QcIdentity	identity;

	return read_identity(io, IDENTITY_TMP, &identity, NULL) == QC_OK ? identity.directory_id : 0;
}

/*
 * Take back a creation that was cut short: IDENTITY.tmp was seen, and nothing may have been logged.	 It may have been one
 * with other settings.
 */
static QcStatus
undo_unfinished(const QcIo *io, QcLayout layout, QcError *err)
{
	uint64_t   *logs;
	uint32_t	nlogs;
	uint32_t	shards = 0;
	QcStatus	status = read_lanes(io, &layout, err);

	if (status == QC_MISSING)
		status = QC_OK;
	if (status == QC_OK)
		status = qc_sites_undo(io, layout, unfinished_id(io), err);
	if (status == QC_OK)
		status = read_shards(io, &shards, err);
	if (status == QC_OK)
		status = qc_dir_logs(io, layout, &logs, &nlogs, err);
	if (status == QC_MISSING)
		return QC_OK;
	if (status != QC_OK)
		return status;
	if (nlogs > 0 && logs[nlogs - 1] > shards)
		status = qc_error_at(err, QC_MISSING, IDENTITY_PATH, UINT64_MAX,
							 "file is missing from a directory that holds logs");
	for (uint32_t i = 0; i < nlogs && status == QC_OK; i++)
		status = remove_blank_log(io, layout, logs[i], err);
	free(logs);
	return status == QC_OK ? remove_shards(io, err) : status;
}

static QcStatus
make_directories(const QcIo *io, QcError *err)
{
	static const char *const names[] = {"qlog", "store", "traces", "replication", "snapshots"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		int			rc = io->make_directory(io->context, names[i]);

		if (rc != 0 && rc != EEXIST)
			return qc_error_sys(err, rc, names[i], "could not create directory");
	}
	return sync_parent(io, "qlog", err);
}

/* The logs that stay as long as the directory. */
static QcStatus
make_logs(const QcIo *io, const QcIdentity *identity, QcError *err)
{
	QcFiles		files;
	QcStatus	status = QC_OK;

	qc_files_init(&files, io, identity->layout);
	for (uint64_t log = 0; log <= identity->shards && status == QC_OK; log++)
		status = qc_log_create_files(&files, log, QC_EXTEND_MIN, err);
	qc_files_close(&files);
	return status;
}

/* Everything of a new directory, in the order that the file header tells. */
static QcStatus
create(const QcIo *io, const QcDirChoice *choice, const QcIdentity *identity, QcError *err)
{
	char		text[QC_TEXT_MAX];
	QcStatus	status;

	status = write_new(io, IDENTITY_TMP, text, identity_text(text, identity), err);
	if (status == QC_OK)
		status = sync_parent(io, IDENTITY_TMP, err);
	if (status == QC_OK)
		status = make_directories(io, err);
	if (status == QC_OK)
		status = write_lanes(io, identity->layout, err);
	if (status == QC_OK)
		status = write_shards(io, identity->shards, err);
	if (status == QC_OK)
		status = qc_sites_create(io, choice->layout, &choice->sites, identity->directory_id,
								 identity->node_id, err);
	if (status == QC_OK)
		status = make_logs(io, identity, err);
	if (status == QC_OK)
		status = write_marker(io, identity->node_id, err);
	return status == QC_OK ? rename_synced(io, IDENTITY_TMP, IDENTITY_PATH, err) : status;
}

/* The layout was chosen when the directory was made. */
static QcStatus
check_layout(const QcIo *io, const QcDirChoice *choice, QcIdentity *identity, QcError *err)
{
	QcStatus	status = read_lanes(io, &identity->layout, err);

	if (status == QC_OK)
		status = read_shards(io, &identity->shards, err);
	if (status != QC_OK)
		return status;
	if (identity->layout != choice->layout)
		return qc_error_at(err, QC_CONFLICT, LANES_PATH, UINT64_MAX,
						   "directory has the %s layout, the %s one was asked for",
						   layout_name(identity->layout), layout_name(choice->layout));
	if (identity->shards != choice->shards)
		return qc_error_at(err, QC_CONFLICT, SHARDS_PATH, UINT64_MAX,
						   "directory has %" PRIu32 " shared logs, %" PRIu32 " were asked for",
						   identity->shards, choice->shards);
	return QC_OK;
}

/* Everything that a directory with IDENTITY must have. */
static QcStatus
check_complete(const QcIo *io, uint64_t system_identifier, const QcDirChoice *choice,
			   QcIdentity *identity, QcError *err)
{
	uint64_t   *files;
	uint32_t	nfiles;
	QcStatus	status = read_identity(io, IDENTITY_PATH, identity, err);

	if (status != QC_OK)
		return status;
	if (identity->system_identifier != system_identifier)
		return qc_error_at(err, QC_FOREIGN, IDENTITY_PATH, UINT64_MAX,
						   "directory belongs to system %" PRIu64 ", this is system %" PRIu64,
						   identity->system_identifier, system_identifier);
	status = check_layout(io, choice, identity, err);
	if (status == QC_OK)
		status = read_marker(io, identity, err);
	if (status == QC_OK)
		status = qc_sites_check(io, choice->layout, &choice->sites, identity->directory_id,
								identity->copied ? 0 : identity->node_id, err);
	if (status != QC_OK)
		return status;
	status = qc_dir_files(io, choice->layout, 0, &files, &nfiles, err);
	free(files);

	/* Whoever renamed these files may have died before it could sync the directory. */
	return status == QC_OK ? sync_parent(io, IDENTITY_PATH, err) : status;
}

QcStatus
qc_dir_open(const QcIo *io, uint64_t system_identifier, const QcDirChoice *choice, uint64_t new_id,
			uint64_t new_node, QcIdentity *identity, QcError *err)
{
	Found		found = {.site = choice->sites.path[QC_SITE_CHECKPOINT][0] != '\0'};
	QcStatus	status = QC_OK;
	int			rc = io->list(io->context, "", look_at, &found);

	memset(identity, 0, sizeof(*identity));
	if (rc != 0)
		return qc_error_sys(err, rc, "", "could not list the data directory");
	if (found.identity)
		return check_complete(io, system_identifier, choice, identity, err);
	if (found.other && !found.identity_tmp)
		return qc_error_at(err, QC_MISSING, IDENTITY_PATH, UINT64_MAX,
						   "directory is not empty and has no such file");
	if (found.other)
		status = undo_unfinished(io, choice->layout, err);
	if (status == QC_OK)
		status = qc_sites_check_free(io, choice->layout, &choice->sites, err);
	if (status != QC_OK)
		return status;
	identity->directory_id = new_id;
	identity->system_identifier = system_identifier;
	identity->node_id = new_node;
	identity->layout = choice->layout;
	identity->shards = choice->shards;
	identity->created = true;
	return create(io, choice, identity, err);
}
