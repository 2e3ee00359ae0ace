/*
 * qlog_io.h
 *		The core's I/O table (qc_io.h) over PostgreSQL's fd.c.
 *
 * Handles are virtual file descriptors, so that any number of queues lives within max_files_per_process; they belong
 * to the process, not to a transaction.  fsync = off is honoured.	No callback raises: failures are errno values, and
 * what they mean is the caller's business.
 *
 * But for a failed sync of a file or directory while qlog serves: it is PANIC here, as in PostgreSQL (data_sync_retry),
 * whatever it was for.  It may have dropped bytes of others, who would find their own sync successful.	While qlog
 * recovers it is an error of the recovery; the next one reads what the disk has (qlog_io_drop_cached).
 */
#ifndef QLOG_IO_H
#define QLOG_IO_H

#include "postgres.h"

#include "../core/qc_io.h"

/* The table, rooted at qlog.data_directory; what the settings put elsewhere is reached through it, too (qc_site.h). */
extern const QcIo *qlog_io(void);

/*
 * Sync the whole file system that holds the data directory, and the one that holds the journal.  0 or an errno value; ENOSYS where the system cannot do
 * it, or where it would not report failed write-back (Linux before 5.8).
 */
extern int	qlog_io_syncfs(void);

/* Can it be used: would it report failed write-back? */
extern bool qlog_io_syncfs_reliable(void);

/*
 * Take the lock file LOCK of the data directory, which exists.  The lock lasts as long as this process.  0, EAGAIN
 * when another server holds it, or an errno value.
 */
extern int	qlog_io_lock(void);

/* The same in the sites, which are this directory's (qc_dir_open).	*which is the one that failed. */
extern int	qlog_io_lock_sites(const char **which);

/*
 * Have the system forget what it caches of this file and counts as written: after a failed sync that may be bytes which
 * the disk never got.	What is still to be written stays.	Done before recovery reads a file.
 */
extern void qlog_io_drop_cached(int fd);

/* The same for a file that is open here. */
extern void qlog_io_drop_handle(QcHandle handle);

/*
 * Create the data directory unless it exists, and its sites when it is new; check that nobody else can get at them.	0 or
 * an errno value; *which is the one that failed.
 */
extern int	qlog_io_make_root(const char **which);

#endif							/* QLOG_IO_H */
