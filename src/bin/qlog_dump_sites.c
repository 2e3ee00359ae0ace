/*
 * qlog_dump_sites.c
 *		Parts of the data directory that live elsewhere are read as if they stood in it.
 *
 * SITES says where they were when the server last found them.	One that is not there now is reported, and the rest is read.
 */
#include "qlog_dump.h"

#include <string.h>

#include "qc_dir.h"
#include "qc_text.h"

/* Of a directory that does not say it: flat. */
static QcLayout
layout_of(const QcIo *io)
{
	QcTextField fields[1] = {{.key = "layout"}};

	return qc_text_read(io, "qlog/LANES", fields, 1, NULL) == QC_OK &&
		strcmp(fields[0].value, "hierarchical") == 0 ? QC_LAYOUT_HIERARCHICAL : QC_LAYOUT_FLAT;
}

void
dump_sites_open(Dump *dump, DumpSites *sites)
{
	QcSitePaths paths;
	QcError		err;

	memset(sites, 0, sizeof(*sites));
	if (qc_sites_read(dump->io, &paths, &err) != QC_OK)
	{
		dump_fail(dump, &err);
		return;
	}
	qc_mounts_init(&sites->mounts, dump->io);
	for (QcSite site = 0; site < QC_SITES; site++)
	{
		char		prefix[QC_PATH_MAX];
		int			rc;

		if (paths.path[site][0] == '\0')
			continue;
		rc = qc_io_posix_open(&sites->roots[site], paths.path[site]);
		if (rc != 0)
		{
			(void) qc_error_sys(&err, rc, paths.path[site], "could not open a directory that SITES names");
			dump_fail(dump, &err);
			continue;
		}
		sites->open[site] = true;
		qc_site_prefix(layout_of(dump->io), site, prefix);
		qc_mounts_add(&sites->mounts, prefix, &sites->roots[site].io);
	}
	dump->io = &sites->mounts.io;
}

void
dump_sites_close(DumpSites *sites)
{
	for (QcSite site = 0; site < QC_SITES; site++)
		if (sites->open[site])
			qc_io_posix_close(&sites->roots[site]);
}
