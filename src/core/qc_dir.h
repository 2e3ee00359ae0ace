/*
 * qc_dir.h
 *		The data directory: IDENTITY, LANES, the node marker, and the log directories in it.
 *
 * IDENTITY (text, "key = value" lines): format version, directory id, system identifier, node id.
 * LANES (text, in qlog/): format version, layout.	SHARDS (text, in qlog/), only where logs are shared: format version, their
 * number.	Both are chosen when the directory is made, and so is what lives elsewhere (qc_site.h).	 Shared logs q1 .. q<number> are made with it, as q0 is, and stay.
 * The marker pgsql_tmp.qlog_node holds the node id; backup and rewind tools leave it behind, so a missing
 * marker tells that this directory is a copy.
 */
#ifndef QC_DIR_H
#define QC_DIR_H

#include "qc_files.h"
#include "qc_site.h"

#define QC_DIR_VERSION 1
#define QC_SHARDS_MAX  1024
#define QC_MARKER_NAME "pgsql_tmp.qlog_node"
#define QC_STASH_PATH  "replication/stash"

/* What is chosen when the directory is made. */
typedef struct QcDirChoice
{
	QcLayout	layout;
	uint32_t	shards;			/* 0 = a log for each queue; at most QC_SHARDS_MAX */
	QcSitePaths sites;
} QcDirChoice;

typedef struct QcIdentity
{
	uint64_t	directory_id;
	uint64_t	system_identifier;
	uint64_t	node_id;
	QcLayout	layout;
	uint32_t	shards;			/* 0 = a log for each queue */
	bool		copied;			/* the marker is missing or names another node */
	bool		created;		/* made by this call */
} QcIdentity;

/*
 * Open the directory (which exists) or, when it is empty, create what belongs into it: sub-directories,
 * LANES, SHARDS, sites, q0 and shared logs with their first file, marker, IDENTITY last.  Everything is synced, what is found
 * too.  new_id and new_node are used when it is created.
 * QC_FOREIGN: IDENTITY names another system identifier.  QC_MISSING: not empty and no IDENTITY, or IDENTITY
 * without LANES or q0 (shared logs are recovery's to miss).	 QC_VERSION: newer format.  QC_CONFLICT: what is chosen is not
 * what was recorded.  QC_MISSING and QC_FOREIGN of sites: qc_site.h.	When it is refused nothing was changed.
 */
extern QcStatus qc_dir_open(const QcIo *io, uint64_t system_identifier, const QcDirChoice *choice,
							uint64_t new_id, uint64_t new_node, QcIdentity *identity, QcError *err);

/* A copy becomes a node of its own: write a new node id into IDENTITY and the marker. */
extern QcStatus qc_dir_adopt(const QcIo *io, uint64_t new_node, QcIdentity *identity, QcError *err);

/*
 * The floor: logs have been removed, so that entries up to this seq need not be whole any more.	A state can be rebuilt only
 * from a checkpoint whose mark is not below it.	0 = nothing was ever removed.  Raised, durably, before files go.
 */
extern QcStatus qc_dir_read_floor(const QcIo *io, uint64_t *seq, QcError *err);
extern QcStatus qc_dir_write_floor(const QcIo *io, uint64_t seq, QcError *err);

/* Sweep *.tmp and *.dead (at start only). Strays are left and counted. */
extern QcStatus qc_dir_sweep(const QcIo *io, QcLayout layout, uint32_t *strays, QcError *err);

/* Ids of all log directories, sorted, malloc'ed by the callee (free with free). */
extern QcStatus qc_dir_logs(const QcIo *io, QcLayout layout, uint64_t **logs, uint32_t *nlogs,
							QcError *err);

/* File ids in a log directory, sorted, malloc'ed by the callee. */
extern QcStatus qc_dir_files(const QcIo *io, QcLayout layout, uint64_t log, uint64_t **files,
							 uint32_t *nfiles, QcError *err);

/* Write a small file so that after a crash it is old or new: tmp, sync, rename, sync directory. */
extern QcStatus qc_dir_write_file(const QcIo *io, const char *path, const void *bytes, size_t len,
								  QcError *err);

/* Read a small file whole; QC_MISSING when absent, QC_LIMIT when larger than cap. */
extern QcStatus qc_dir_read_file(const QcIo *io, const char *path, void *buf, size_t cap, size_t *len,
								 QcError *err);

#endif							/* QC_DIR_H */
