/*
 * qc_files.h
 *		Open log files of one process: a small cache of handles over the I/O table.
 *
 * Not shared.  Every process that reads or writes log files has one; a handle stays open until it
 * is the least recently used one of QC_FILES_MAX, so thousands of queues cost no descriptors.
 */
#ifndef QC_FILES_H
#define QC_FILES_H

#include "qc_error.h"
#include "qc_io.h"
#include "qc_logfile.h"

#define QC_FILES_MAX 64

typedef struct QcOpenFile
{
	uint64_t	log;
	uint64_t	file;			/* 0 = free */
	QcHandle	handle;
	bool		writable;
	uint64_t	used;
} QcOpenFile;

typedef struct QcFiles
{
	const QcIo *io;
	QcLayout	layout;
	uint64_t	clock;
	QcOpenFile	open[QC_FILES_MAX];
} QcFiles;

extern void qc_files_init(QcFiles *files, const QcIo *io, QcLayout layout);

/* The handle of a log file, opened when necessary; QC_MISSING when the file does not exist. */
extern QcStatus qc_files_get(QcFiles *files, uint64_t log, uint64_t file, bool write,
							 QcHandle *handle, QcError *err);

/* Close the handles of one log (file 0 = all of its files), or everything. */
extern void qc_files_forget(QcFiles *files, uint64_t log, uint64_t file);
extern void qc_files_close(QcFiles *files);

/* Size of a log file.	write: as qc_files_get, for those who go on to write. */
extern QcStatus qc_files_size(QcFiles *files, uint64_t log, uint64_t file, bool write,
							  uint64_t *size, QcError *err);

/* Positioned read of exactly len bytes; QC_SHORT when the file ends before. Errors name the file. */
extern QcStatus qc_files_read(QcFiles *files, uint64_t log, uint64_t file, uint64_t position,
							  void *buf, size_t len, QcError *err);

/* Does the log file end at this length, but for zeros? */
extern bool qc_files_ends_at(QcFiles *files, uint64_t log, uint64_t file, uint64_t length);

#endif							/* QC_FILES_H */
