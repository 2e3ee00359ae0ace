/*
 * qc_site.h
 *		Sites: parts of the data directory that live in directories of their own, on other devices perhaps.
 *
 * There are two: the journal (the system log q0) and the checkpoint (store/).  Which live elsewhere is chosen when the data
 * directory is made and recorded, with their paths, in SITES.	A site holds beside its part a file that tells whose it is:
 * "q0.IDENTITY" or "store.IDENTITY" (text: format version, directory id, node id, role).  So a site may be moved, with this
 * file, and the setting changed; an empty directory, another one or one of somebody else is refused.
 *
 * The core reaches a site through paths of the data directory (qc_mount.h).  Called by qc_dir.c, at start.
 */
#ifndef QC_SITE_H
#define QC_SITE_H

#include "qc_logfile.h"

#include "qc_io.h"

#define QC_SITE_PATH	1024	/* longest path, terminator included */

typedef enum QcSite
{
	QC_SITE_JOURNAL,
	QC_SITE_CHECKPOINT,
	QC_SITES
} QcSite;

typedef struct QcSitePaths
{
	char		path[QC_SITES][QC_SITE_PATH];	/* "" = in the data directory */
} QcSitePaths;

/* What the paths of a site's part begin with (qc_mount.h). */
extern void qc_site_prefix(QcLayout layout, QcSite site, char out[QC_PATH_MAX]);

/* What SITES says; all "" when there is none.  QC_DAMAGED, QC_VERSION. */
extern QcStatus qc_sites_read(const QcIo *io, QcSitePaths *paths, QcError *err);

/*
 * Check the sites of a directory that is there: chosen as recorded, and each holding what it should.	node: the identity's, 0 =
 * any, in a copy.	Where one has moved SITES is rewritten.	 QC_CONFLICT: another choice than recorded.  QC_MISSING: not the
 * site of any directory.  QC_FOREIGN: of another directory, or node.	The error's file is the site's path.
 */
extern QcStatus qc_sites_check(const QcIo *io, QcLayout layout, const QcSitePaths *chosen, uint64_t directory,
							   uint64_t node, QcError *err);

/* Before anything is made: nothing may stand in a site.	QC_FOREIGN. */
extern QcStatus qc_sites_check_free(const QcIo *io, QcLayout layout, const QcSitePaths *chosen, QcError *err);

/* Write SITES, and the file of each site that is elsewhere. */
extern QcStatus qc_sites_create(const QcIo *io, QcLayout layout, const QcSitePaths *chosen, uint64_t directory,
								uint64_t node, QcError *err);

/* The sites that SITES names are this node's now. */
extern QcStatus qc_sites_adopt(const QcIo *io, QcLayout layout, uint64_t directory, uint64_t node, QcError *err);

/* Take back what an unfinished creation of the directory with this id has written of them. */
extern QcStatus qc_sites_undo(const QcIo *io, QcLayout layout, uint64_t directory, QcError *err);

#endif							/* QC_SITE_H */
