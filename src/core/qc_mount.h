/*
 * qc_mount.h
 *		Parts of the data directory that lie elsewhere: an I/O table that sends their paths to other ones.
 *
 * A mount has a prefix, such as "qlog/q0", and covers this name and every name that goes on with '/' or '.': "qlog/q0/r00000001.qlog",
 * "qlog/q0.dead", "qlog/q0.IDENTITY". Below its own root such a path begins with the last part of the prefix:
 * "q0/r00000001.qlog". So a rename within one directory of the core never leaves its mount; one that would is refused
 * with EXDEV. Listing or syncing the directory above a mount lists and syncs the mount's root as well; what stands in the base
 * under a covered name is not seen.	A directory that only mounts stand in can be synced before the base has it.
 *
 * All tables must understand each other's handles, as tables of one kind do.
 */
#ifndef QC_MOUNT_H
#define QC_MOUNT_H

#include "qc_logfile.h"

#include "qc_io.h"

#define QC_MOUNTS_MAX	2

typedef struct QcMount
{
	const QcIo *io;
	char		prefix[QC_PATH_MAX];
} QcMount;

typedef struct QcMounts
{
	QcIo		io;				/* the table; its context is this struct */
	const QcIo *base;
	int			n;
	QcMount		mounts[QC_MOUNTS_MAX];
} QcMounts;

/* The struct and the tables must stay while the table is used. */
extern void qc_mounts_init(QcMounts *self, const QcIo *base);
extern void qc_mounts_add(QcMounts *self, const char *prefix, const QcIo *io);

#endif							/* QC_MOUNT_H */
