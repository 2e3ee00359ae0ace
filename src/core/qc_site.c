/*
 * qc_site.c
 *		Sites of the journal and the checkpoint: SITES, and the file that tells whose a site is.
 */
#include "qc_site.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "qc_text.h"

#define SITES_PATH	"SITES"

static const char *const roles[QC_SITES] = {"journal", "checkpoint"};

void
qc_site_prefix(QcLayout layout, QcSite site, char out[QC_PATH_MAX])
{
	if (site == QC_SITE_JOURNAL)
		qc_path_log(out, layout, 0);
	else
		(void) snprintf(out, QC_PATH_MAX, "store");
}

static void
identity_path(QcLayout layout, QcSite site, char out[QC_PATH_MAX + 16])
{
	char		prefix[QC_PATH_MAX];

	qc_site_prefix(layout, site, prefix);
	(void) snprintf(out, QC_PATH_MAX + 16, "%s.IDENTITY", prefix);
}

static bool
any_elsewhere(const QcSitePaths *paths)
{
	for (int site = 0; site < QC_SITES; site++)
		if (paths->path[site][0] != '\0')
			return true;
	return false;
}

QcStatus
qc_sites_read(const QcIo *io, QcSitePaths *paths, QcError *err)
{
	QcTextField fields[QC_SITES] = {{.key = roles[0]}, {.key = roles[1]}};
	bool		missing;
	QcStatus	status = qc_text_read(io, SITES_PATH, fields, QC_SITES, err);

	memset(paths, 0, sizeof(*paths));
	status = qc_text_or_missing(status, &missing, err);
	for (int site = 0; site < QC_SITES && status == QC_OK && !missing; site++)
		memcpy(paths->path[site], fields[site].value, QC_SITE_PATH);
	return status;
}

static QcStatus
write_sites(const QcIo *io, const QcSitePaths *paths, QcError *err)
{
	char		lines[QC_SITES * (QC_SITE_PATH + 32)];
	size_t		used = 0;

	for (int site = 0; site < QC_SITES; site++)
		used += (size_t) snprintf(lines + used, sizeof(lines) - used, "%s = %s\n", roles[site],
								  paths->path[site]);
	return qc_text_write(io, SITES_PATH, lines, err);
}

/* ---- whose a site is ---- */

typedef struct Owner
{
	uint64_t	directory;
	uint64_t	node;
	bool		role;			/* it is the site of what it is taken for */
} Owner;

/* QC_MISSING when the site has no such file. */
static QcStatus
read_owner(const QcIo *io, QcLayout layout, QcSite site, Owner *owner, QcError *err)
{
	QcTextField fields[3] = {{.key = "directory_id"}, {.key = "node_id"}, {.key = "role"}};
	char		path[QC_PATH_MAX + 16];
	QcStatus	status;

	identity_path(layout, site, path);
	status = qc_text_read(io, path, fields, 3, err);
	if (status != QC_OK)
		return status;
	owner->role = strcmp(fields[2].value, roles[site]) == 0;
	return qc_text_number(fields[0].value, &owner->directory) &&
		qc_text_number(fields[1].value, &owner->node) ? QC_OK : qc_text_damaged(path, err);
}

static QcStatus
write_owner(const QcIo *io, QcLayout layout, QcSite site, uint64_t directory, uint64_t node, QcError *err)
{
	char		path[QC_PATH_MAX + 16];
	char		lines[128];

	identity_path(layout, site, path);
	(void) snprintf(lines, sizeof(lines), "directory_id = %" PRIu64 "\nnode_id = %" PRIu64 "\nrole = %s\n",
					directory, node, roles[site]);
	return qc_text_write(io, path, lines, err);
}

/* ---- opening ---- */

static QcStatus
check_choice(QcSite site, const char *recorded, const char *chosen, QcError *err)
{
	if ((recorded[0] == '\0') == (chosen[0] == '\0'))
		return QC_OK;
	if (chosen[0] == '\0')
		return qc_error_at(err, QC_CONFLICT, recorded, UINT64_MAX,
						   "the %s is in a directory of its own, the data directory was asked for", roles[site]);
	return qc_error_at(err, QC_CONFLICT, chosen, UINT64_MAX,
					   "the %s is in the data directory, another one was asked for", roles[site]);
}

static QcStatus
check_owner(const QcIo *io, QcLayout layout, QcSite site, const char *path, uint64_t directory,
			uint64_t node, QcError *err)
{
	Owner		owner;
	QcStatus	status = read_owner(io, layout, site, &owner, err);

	if (status == QC_MISSING)
		return qc_error_at(err, QC_MISSING, path, UINT64_MAX,
						   "this is not the directory of a %s: it is empty, or another one", roles[site]);
	if (status != QC_OK)
		return status;
	if (!owner.role || owner.directory != directory)
		return qc_error_at(err, QC_FOREIGN, path, UINT64_MAX,
						   "this is the %s of data directory %" PRIu64 ", not of %" PRIu64, roles[site],
						   owner.directory, directory);
	if (node != 0 && owner.node != node)
		return qc_error_at(err, QC_FOREIGN, path, UINT64_MAX,
						   "this is the %s of another copy of the data directory", roles[site]);
	return QC_OK;
}

QcStatus
qc_sites_check(const QcIo *io, QcLayout layout, const QcSitePaths *chosen, uint64_t directory,
			   uint64_t node, QcError *err)
{
	QcSitePaths recorded;
	QcStatus	status = qc_sites_read(io, &recorded, err);
	bool		moved = false;

	for (QcSite site = 0; site < QC_SITES && status == QC_OK; site++)
	{
		status = check_choice(site, recorded.path[site], chosen->path[site], err);
		if (status == QC_OK && chosen->path[site][0] != '\0')
			status = check_owner(io, layout, site, chosen->path[site], directory, node, err);
		moved |= strcmp(recorded.path[site], chosen->path[site]) != 0;
	}
	return status == QC_OK && moved ? write_sites(io, chosen, err) : status;
}

/* ---- creating ---- */

static bool
note_name(void *context, const char *name, bool is_directory)
{
	bool	   *found = context;

	(void) name;
	(void) is_directory;
	*found = true;
	return false;
}

QcStatus
qc_sites_check_free(const QcIo *io, QcLayout layout, const QcSitePaths *chosen, QcError *err)
{
	for (QcSite site = 0; site < QC_SITES; site++)
	{
		char		prefix[QC_PATH_MAX];
		Owner		owner;
		bool		found = false;
		QcStatus	status;
		int			rc;

		if (chosen->path[site][0] == '\0')
			continue;
		status = read_owner(io, layout, site, &owner, err);
		qc_site_prefix(layout, site, prefix);
		rc = io->list(io->context, prefix, note_name, &found);
		if (rc != 0 && rc != ENOENT)
			return qc_error_sys(err, rc, chosen->path[site], "could not list directory");
		if (status != QC_MISSING || found)
			return qc_error_at(err, QC_FOREIGN, chosen->path[site], UINT64_MAX,
							   "directory holds a %s already", roles[site]);
	}
	if (err != NULL)
		qc_error_clear(err);
	return QC_OK;
}

QcStatus
qc_sites_create(const QcIo *io, QcLayout layout, const QcSitePaths *chosen, uint64_t directory,
				uint64_t node, QcError *err)
{
	QcStatus	status = QC_OK;

	if (any_elsewhere(chosen))
		status = write_sites(io, chosen, err);
	for (QcSite site = 0; site < QC_SITES && status == QC_OK; site++)
		if (chosen->path[site][0] != '\0')
			status = write_owner(io, layout, site, directory, node, err);
	return status;
}

QcStatus
qc_sites_adopt(const QcIo *io, QcLayout layout, uint64_t directory, uint64_t node, QcError *err)
{
	QcSitePaths recorded;
	QcStatus	status = qc_sites_read(io, &recorded, err);

	for (QcSite site = 0; site < QC_SITES && status == QC_OK; site++)
		if (recorded.path[site][0] != '\0')
			status = write_owner(io, layout, site, directory, node, err);
	return status;
}

/* Unlink a file, if it is there, durably. */
static QcStatus
remove_file(const QcIo *io, const char *path, const char *parent, QcError *err)
{
	int			rc = io->unlink(io->context, path);

	if (rc == 0)
		rc = io->sync_directory(io->context, parent);
	return rc == 0 || rc == ENOENT ? QC_OK : qc_error_sys(err, rc, path, "could not remove");
}

QcStatus
qc_sites_undo(const QcIo *io, QcLayout layout, uint64_t directory, QcError *err)
{
	for (QcSite site = 0; site < QC_SITES; site++)
	{
		char		path[QC_PATH_MAX + 16];
		char		parent[QC_PATH_MAX];
		char	   *slash;
		Owner		owner;
		bool		missing;
		QcStatus	status = qc_text_or_missing(read_owner(io, layout, site, &owner, err), &missing, err);

		if (status == QC_OK && missing)
			continue;
		identity_path(layout, site, path);
		if (status == QC_OK && owner.directory != directory)
			status = qc_error_at(err, QC_FOREIGN, path, UINT64_MAX, "directory holds the %s of another one",
								 roles[site]);
		qc_site_prefix(layout, site, parent);
		slash = strrchr(parent, '/');
		*(slash == NULL ? parent : slash) = '\0';
		if (status == QC_OK)
			status = remove_file(io, path, parent, err);
		if (status != QC_OK)
			return status;
	}
	return remove_file(io, SITES_PATH, "", err);
}
