/*
 * qc_io.h
 *		The only door from the core to files and clocks: a table of functions.
 *
 * Three implementations: src/pg/qlog_io.c over PostgreSQL's fd.c, src/core/qc_io_posix.c for tools
 * and tests, test/sim/sim_disk.c in memory, which loses unsynced bytes and directory entries.
 *
 * Paths are relative to the data directory ("" is the directory itself, for list and
 * sync_directory), with '/' between parts, and short (QC_PATH_MAX).
 * Callbacks return 0 or an errno value and never jump.  Reads and writes are positioned and
 * complete: a short system call is continued inside.  A read past the end returns fewer bytes in
 * *done.
 * A write that fails may have been done in part.  After a failed sync what it should have saved is
 * lost, although it may still read back and later syncs may succeed: whatever others have written to
 * the file is lost with it, so a server that has callers besides the failing one must not go on.
 * The implementation sees to that (src/pg ends the server); the core passes the error on.
 *
 * Common errno values: ENOENT, EEXIST, ENOTDIR, EISDIR, ENOTEMPTY, ENOSPC, EINVAL (empty part, "."
 * or "..", absolute path).
 * Files are not found through symbolic links.  A rename replaces what has the name and stays in one
 * directory (EXDEV otherwise).  A visitor may remove the name it is shown; the order is arbitrary.
 */
#ifndef QC_IO_H
#define QC_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int32_t QcHandle;		/* of one process; negative = none */

typedef struct QcIoSlice
{
	const void *bytes;
	size_t		len;
} QcIoSlice;

#define QC_OPEN_WRITE	1		/* read and write; otherwise read only */
#define QC_OPEN_CREATE	2		/* must not exist yet (EEXIST) */

/* Called for each name in a directory, except . and ..; return false to stop. */
typedef bool (*QcNameVisitor) (void *context, const char *name, bool is_directory);

typedef struct QcIo
{
	void	   *context;		/* first argument of every callback */
	int			(*open) (void *context, const char *path, int flags, QcHandle *handle);
	void		(*close) (void *context, QcHandle handle);
	int			(*read) (void *context, QcHandle handle, void *buf, size_t len, uint64_t position,
						 size_t *done);
	int			(*write) (void *context, QcHandle handle, const QcIoSlice *slices, int nslices,
						  uint64_t position);
	int			(*sync) (void *context, QcHandle handle);	/* data and size */
	int			(*size) (void *context, QcHandle handle, uint64_t *size);
	int			(*truncate) (void *context, QcHandle handle, uint64_t size);
	int			(*make_directory) (void *context, const char *path);
	int			(*sync_directory) (void *context, const char *path);
	int			(*list) (void *context, const char *path, QcNameVisitor visit, void *visit_context);
	int			(*rename) (void *context, const char *from, const char *to);
	int			(*unlink) (void *context, const char *path);
	int			(*remove_directory) (void *context, const char *path);
} QcIo;

#endif							/* QC_IO_H */
