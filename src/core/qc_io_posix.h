/*
 * qc_io_posix.h
 *		The I/O table over plain POSIX calls, rooted at one directory: for qlog_dump and tests.
 *
 * The root is opened once, following symbolic links; below it none is followed, so that a path of
 * the layout can only ever reach a file inside the root.  Paths that are absolute or hold an empty
 * part, "." or ".." are refused with EINVAL.  Files are created with mode 0600, directories 0700.
 */
#ifndef QC_IO_POSIX_H
#define QC_IO_POSIX_H

#include "qc_io.h"

typedef struct QcIoPosix
{
	QcIo		io;				/* the table; its context is this struct */
	int			root;			/* descriptor of the root directory */
} QcIoPosix;

/*
 * Open the root and fill the table.  The struct must not move while the table is in use.  Returns
 * 0 or an errno value; nothing is left open after a failure.
 */
extern int	qc_io_posix_open(QcIoPosix *self, const char *directory);

/* Close the root.  Handles that are still open stay the caller's. */
extern void qc_io_posix_close(QcIoPosix *self);

#endif							/* QC_IO_POSIX_H */
