/*
 * qc_files.c
 *		Open log files of one process: a least recently used cache of handles.
 *
 * Invariant: at most one slot holds a (log, file), and a free slot has file 0, which no log file has.  Every
 * process that reads or writes log files calls this; nothing here is shared.
 */
#include "qc_files.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

void
qc_files_init(QcFiles *files, const QcIo *io, QcLayout layout)
{
	memset(files, 0, sizeof(*files));
	files->io = io;
	files->layout = layout;
}

static void
close_slot(QcFiles *files, QcOpenFile *slot)
{
	assert(slot->file != 0);
	files->io->close(files->io->context, slot->handle);
	slot->file = 0;
}

/* The slot of this file, or NULL. */
static QcOpenFile *
find_slot(QcFiles *files, uint64_t log, uint64_t file)
{
	for (int i = 0; i < QC_FILES_MAX; i++)
		if (files->open[i].file == file && files->open[i].log == log)
			return &files->open[i];
	return NULL;
}

/* A free slot: one that was never used, or that of the file that was used longest ago. */
static QcOpenFile *
free_slot(QcFiles *files)
{
	QcOpenFile *oldest = &files->open[0];

	for (int i = 0; i < QC_FILES_MAX; i++)
	{
		if (files->open[i].file == 0)
			return &files->open[i];
		if (files->open[i].used < oldest->used)
			oldest = &files->open[i];
	}
	close_slot(files, oldest);
	return oldest;
}

QcStatus
qc_files_get(QcFiles *files, uint64_t log, uint64_t file, bool write, QcHandle *handle,
			 QcError *err)
{
	QcOpenFile *slot = find_slot(files, log, file);
	char		path[QC_PATH_MAX];
	int			rc;

	assert(file != 0);
	if (slot != NULL && write && !slot->writable)
	{
		close_slot(files, slot);
		slot = NULL;
	}
	if (slot == NULL)
	{
		slot = free_slot(files);
		qc_path_file(path, files->layout, log, file, "qlog");
		rc = files->io->open(files->io->context, path, write ? QC_OPEN_WRITE : 0, &slot->handle);
		if (rc == ENOENT)
			return qc_error_at(err, QC_MISSING, path, UINT64_MAX, "log file does not exist");
		if (rc != 0)
			return qc_error_sys(err, rc, path, "could not open log file");
		slot->log = log;
		slot->file = file;
		slot->writable = write;
	}
	slot->used = ++files->clock;
	*handle = slot->handle;
	return QC_OK;
}

void
qc_files_forget(QcFiles *files, uint64_t log, uint64_t file)
{
	for (int i = 0; i < QC_FILES_MAX; i++)
	{
		QcOpenFile *slot = &files->open[i];

		if (slot->file != 0 && slot->log == log && (file == 0 || slot->file == file))
			close_slot(files, slot);
	}
}

void
qc_files_close(QcFiles *files)
{
	for (int i = 0; i < QC_FILES_MAX; i++)
		if (files->open[i].file != 0)
			close_slot(files, &files->open[i]);
}

QcStatus
qc_files_size(QcFiles *files, uint64_t log, uint64_t file, bool write, uint64_t *size, QcError *err)
{
	char		path[QC_PATH_MAX];
	QcHandle	handle;
	QcStatus	status = qc_files_get(files, log, file, write, &handle, err);
	int			rc;

	if (status != QC_OK)
		return status;
	rc = files->io->size(files->io->context, handle, size);
	if (rc == 0)
		return QC_OK;
	qc_path_file(path, files->layout, log, file, "qlog");
	return qc_error_sys(err, rc, path, "could not get the size of log file");
}

QcStatus
qc_files_read(QcFiles *files, uint64_t log, uint64_t file, uint64_t position, void *buf,
			  size_t len, QcError *err)
{
	char		path[QC_PATH_MAX];
	QcHandle	handle;
	size_t		done = 0;
	QcStatus	status = qc_files_get(files, log, file, false, &handle, err);
	int			rc;

	if (status != QC_OK)
		return status;
	rc = files->io->read(files->io->context, handle, buf, len, position, &done);
	if (rc == 0 && done == len)
		return QC_OK;
	qc_path_file(path, files->layout, log, file, "qlog");
	if (rc == 0)
		return qc_error_at(err, QC_SHORT, path, position + done,
						   "log file ends before what was to be read");
	status = qc_error_sys(err, rc, path, "could not read log file");
	qc_error_locate(err, path, position);
	return status;
}

bool
qc_files_ends_at(QcFiles *files, uint64_t log, uint64_t file, uint64_t length)
{
	uint8_t		next[4];
	uint64_t	size = 0;

	if (qc_files_size(files, log, file, false, &size, NULL) != QC_OK ||
		length < QC_FILE_HEADER_SIZE || length > size)
		return false;
	return size - length < sizeof(next) ||
		(qc_files_read(files, log, file, length, next, sizeof(next), NULL) == QC_OK &&
		 qc_load_u32(next) == 0);
}
