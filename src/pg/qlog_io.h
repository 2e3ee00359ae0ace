/*
 * qlog_io.h
 *		The core's I/O table (qc_io.h) over PostgreSQL's fd.c.
 *
 * Handles are virtual file descriptors, so that any number of queues lives within max_files_per_process; they belong
 * to the process, not to a transaction.  fsync = off is honoured.	No callback raises: failures are errno values, and
 * what they mean is the caller's business (a failed sync of a log is PANIC).
 */
#ifndef QLOG_IO_H
#define QLOG_IO_H

#include "postgres.h"

#include "../core/qc_io.h"

/* The table, rooted at qlog.data_directory. */
extern const QcIo *qlog_io(void);

/*
 * Sync the whole file system that holds the data directory.  0 or an errno value; ENOSYS where the system cannot do
 * it, or where it would not report failed write-back (Linux before 5.8).
 */
extern int	qlog_io_syncfs(void);

/*
 * Take the lock file LOCK of the data directory, which exists.  The lock lasts as long as this process.  0, EAGAIN
 * when another server holds it, or an errno value.
 */
extern int	qlog_io_lock(void);

/* Create the data directory unless it exists, and check that nobody else can get at it.  0 or an errno value. */
extern int	qlog_io_make_root(void);

#endif							/* QLOG_IO_H */
