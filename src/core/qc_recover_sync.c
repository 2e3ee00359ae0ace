/*
 * qc_recover_sync.c
 *		After the cut: what the state knows of each log's files, and making all of it durable (PROTOCOL.md 2.7).
 *
 * What recovery has read may stand in the page cache only.  It is synced before anything that is written afterwards can
 * say that it was durable, and before it is served.
 *
 * Files behind the active one are usable when they are blank, have their header, follow without a gap and are full (but
 * for the last), as qc_log.h wants them.  Others are left out; whoever extends the log replaces them.
 */
#include "qc_recover_int.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SYNC_ALL_FROM	64		/* logs */

static QcStatus
io_error(QcRecovery *rc, uint64_t log, uint64_t file, int error, const char *what, QcError *err)
{
	char		path[QC_PATH_MAX];

	qc_path_file(path, rc->r->files->layout, log, file, "qlog");
	return qc_error_sys(err, error, path, what);
}

/* Size of a file, whose header is written when it is not what a file without records must have. */
static QcStatus
prepare_file(QcRecovery *rc, uint64_t log, uint64_t file, bool blank, uint64_t *size, QcError *err)
{
	const QcIo *io = rc->r->files->io;
	QcFileHeader header;
	uint8_t		bytes[QC_FILE_HEADER_SIZE];
	QcIoSlice	slice = {bytes, sizeof(bytes)};
	QcHandle	handle;
	QcStatus	status = qc_files_size(rc->r->files, log, file, true, size, err);
	int			error;

	if (status != QC_OK || !blank)
		return status;
	if (*size >= QC_FILE_HEADER_SIZE)
	{
		status = qc_files_read(rc->r->files, log, file, 0, bytes, sizeof(bytes), err);
		if (status != QC_OK)
			return status;
		if (qc_file_header_decode(bytes, sizeof(bytes), &header, NULL) == QC_OK &&
			header.file_id == file)
			return QC_OK;
	}
	header = (QcFileHeader)
	{
		file, QC_FIRST_SEQ_AHEAD
	};
	qc_file_header_encode(bytes, &header);
	status = qc_files_get(rc->r->files, log, file, true, &handle, err);
	if (status != QC_OK)
		return status;
	error = io->write(io->context, handle, &slice, 1, 0);
	if (error == 0)
		error = io->sync(io->context, handle);
	if (error != 0)
		return io_error(rc, log, file, error, "could not write file header", err);
	rc->r->changed = true;
	if (*size < QC_FILE_HEADER_SIZE)
		*size = QC_FILE_HEADER_SIZE;
	return QC_OK;
}

/* Files ahead of the active one. */
static QcStatus
settle_ahead(QcRecovery *rc, QcLog *log, const uint64_t *files, uint32_t n, QcError *err)
{
	QcStatus	status = QC_OK;

	for (uint32_t i = 0; i < n && status == QC_OK; i++)
	{
		if (files[i] <= log->last_file)
			continue;
		if (files[i] != log->last_file + 1 ||
			(log->last_file != log->file && log->last_allocated < rc->r->segment_size))
			break;
		status = prepare_file(rc, log->id, files[i], true, &log->last_allocated, err);
		log->last_file = files[i];
	}
	return status;
}

static QcStatus
list_files(QcRecovery *rc, const QcLogTail *tail, uint64_t **files, uint32_t *n, QcError *err)
{
	return qc_dir_files(rc->r->files->io, rc->r->files->layout, tail->log, files, n, err);
}

/* The files of one log. */
static QcStatus
settle_log(QcRecovery *rc, const QcLogTail *tail, QcLog *log, QcError *err)
{
	uint64_t   *files;
	uint32_t	n;
	QcStatus	status = list_files(rc, tail, &files, &n, err);

	if (status != QC_OK)
		return status;
	log->file = log->last_file = tail->tail_file;
	log->tail = tail->tail_position;
	status = prepare_file(rc, log->id, log->file, log->tail == QC_FILE_HEADER_SIZE,
						  &log->allocated, err);
	log->last_allocated = log->allocated;
	if (status == QC_OK)
		status = settle_ahead(rc, log, files, n, err);
	free(files);
	if (status == QC_OK && log->index.head == 0)
	{
		log->index_file = log->file;
		log->index_position = log->tail;
	}
	return status;
}

/*
 * A copy may hold the creation of a queue, and no directory of its log, which was made after the copy had passed by.  Nothing
 * below the end has a part there, as it would not be whole: the log begins empty.
 */
static QcStatus
make_log(QcRecovery *rc, QcLog *log, QcError *err)
{
	QcStatus	status = qc_log_create_files(rc->r->files, log->id, QC_EXTEND_MIN, err);

	rc->r->changed = true;
	log->file = log->last_file = log->index_file = 1;
	log->tail = log->index_position = QC_FILE_HEADER_SIZE;
	log->allocated = log->last_allocated = QC_EXTEND_MIN;
	qc_dirty_log(rc->r->st, log);
	return status == QC_OK ?
		qc_recover_add_tail(rc, log->id, false, 1, QC_FILE_HEADER_SIZE, err) : status;
}

QcStatus
qc_recover_settle_logs(QcRecovery *rc, QcError *err)
{
	QcState    *st = rc->r->st;
	char		path[QC_PATH_MAX];
	QcStatus	status = QC_OK;

	for (QcLog *log = QC_AT(st, QcLog, st->logs); log != NULL && status == QC_OK;
		 log = QC_AT(st, QcLog, log->next))
	{
		QcLogTail  *tail = qc_recover_tail(rc, log->id);

		/* Nobody is left to say when its last queue went away: the next mark covers that. */
		if (log->nqueues == 0 && log->dropped_seq == 0)
			qc_log_abandon(st, log);
		if (tail != NULL && !tail->gone && tail->start_file != 0)
			status = settle_log(rc, tail, log, err);
		else if (tail != NULL && tail->lost)
			status = qc_give_renew_log(rc, tail, log, err);
		else if (rc->r->copied && log->nqueues > 0 && tail == NULL)
			status = make_log(rc, log, err);
		else if (log->nqueues > 0 || qc_log_stays(st->shards, log->id))
		{
			qc_path_log(path, rc->r->files->layout, log->id);
			return qc_error_at(err, QC_MISSING, path, UINT64_MAX,
							   "log directory that a queue needs does not exist");
		}
	}
	return status;
}

/* Sync one file of a log. */
static QcStatus
sync_file(QcRecovery *rc, uint64_t log, uint64_t file, QcError *err)
{
	const QcIo *io = rc->r->files->io;
	QcHandle	handle;
	QcStatus	status = qc_files_get(rc->r->files, log, file, true, &handle, err);
	int			error;

	if (status != QC_OK)
		return status;
	error = io->sync(io->context, handle);
	return error == 0 ? QC_OK : io_error(rc, log, file, error, "could not sync log file", err);
}

/* Sync the directories from the log's own upwards. */
static QcStatus
sync_directories(QcRecovery *rc, uint64_t log, bool parents, QcError *err)
{
	const QcIo *io = rc->r->files->io;
	char		path[QC_PATH_MAX];
	char	   *slash;
	int			error;

	qc_path_log(path, rc->r->files->layout, log);
	do
	{
		error = io->sync_directory(io->context, path);
		slash = strrchr(path, '/');
		if (slash != NULL)
			*slash = '\0';
	}
	while (error == 0 && parents && slash != NULL);
	return error == 0 ? QC_OK : qc_error_sys(err, error, path, "could not sync directory");
}

/* All files of a log that may hold something from above the mark, or were made since. */
static QcStatus
sync_log(QcRecovery *rc, const QcLogTail *tail, QcError *err)
{
	uint64_t   *files;
	uint32_t	n;
	QcStatus	status = list_files(rc, tail, &files, &n, err);

	if (status != QC_OK)
		return status;
	for (uint32_t i = 0; i < n && status == QC_OK; i++)
		if (files[i] >= tail->start_file)
			status = sync_file(rc, tail->log, files[i], err);
	free(files);
	return status == QC_OK ? sync_directories(rc, tail->log, !tail->known, err) : status;
}

/* With many logs, whole file systems. */
static QcStatus
sync_all(QcRecovery *rc, bool *done, QcError *err)
{
	const QcRecoverHooks *hooks = &rc->r->hooks;

	*done = false;
	if (rc->nlogs < SYNC_ALL_FROM || hooks->sync_all == NULL)
		return QC_OK;
	return hooks->sync_all(hooks->context, done, err);
}

QcStatus
qc_recover_sync(QcRecovery *rc, QcError *err)
{
	bool		done;
	QcStatus	status = sync_all(rc, &done, err);

	if (status != QC_OK || done)
		return status;
	for (uint32_t i = 0; i < rc->nlogs && status == QC_OK; i++)
	{
		if (rc->logs[i].gone || rc->logs[i].start_file == 0)
			continue;
		status = sync_log(rc, &rc->logs[i], err);
		if (status == QC_OK)
			status = qc_recover_tick(rc, "sync", i, rc->nlogs, err);
	}
	return status;
}
