/*
 * fn_files.c
 *		qlog_files: the log files of the queues that the role may use, and of the system log.
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "qlog_acl.h"
#include "qlog_args.h"
#include "qlog_io.h"
#include "qlog_shmem.h"

#include "../core/qc_dir.h"

PG_FUNCTION_INFO_V1(qlog_files_view);

/* A log to list, and the queue it belongs to. */
typedef struct Listed
{
	uint64		log;
	uint64		active;			/* file being written */
	char		queue[QLOG_NAME_MAX];
	uint16		queue_len;		/* 0 = the system log */
	Oid			owner;
} Listed;

/* The logs of this database's queues, and q0 first. */
static Listed *
collect(uint32 *n)
{
	Listed	   *logs = NULL;
	uint32		max = 0;

	for (;;)
	{
		uint32		need = 1;
		const QcLog *system;

		LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
		system = qc_log_by_id(qlog_state, 0);
		if (max > 0)
			logs[0] = (Listed) {.active = system == NULL ? 0 : system->file};
		for (QcQueue *queue = QC_AT(qlog_state, QcQueue, qlog_state->queues.head); queue != NULL;
			 queue = QC_AT(qlog_state, QcQueue, queue->all.next))
		{
			const QcLog *log = QC_AT(qlog_state, QcLog, queue->log);

			if (queue->database != MyDatabaseId || log == NULL ||
				(queue->state != QC_QUEUE_LIVE && queue->state != QC_QUEUE_DROPPING))
				continue;
			if (need < max)
			{
				logs[need] = (Listed) {.log = log->id,.active = log->file,
					.queue_len = queue->name_len,.owner = queue->owner};
				memcpy(logs[need].queue, qc_name_at(qlog_state, queue->name), queue->name_len);
			}
			need++;
		}
		LWLockRelease(&qlog_shared->state_lock);
		if (need <= max)
		{
			*n = need;
			return logs;
		}
		max = need + 64;
		logs = logs == NULL ? palloc(max * sizeof(Listed)) : repalloc(logs, max * sizeof(Listed));
	}
}

/* Bytes of a file on disk; -1 when it has gone meanwhile. */
static int64
file_size(const char *path)
{
	const QcIo *io = qlog_io();
	QcHandle	handle;
	uint64		size = 0;
	int			rc = io->open(io->context, path, 0, &handle);

	if (rc != 0)
		return -1;
	rc = io->size(io->context, handle, &size);
	io->close(io->context, handle);
	return rc == 0 ? (int64) size : -1;
}

static const char *
state_of(const Listed *listed, uint64 file)
{
	if (file == listed->active)
		return "active";
	return file < listed->active ? "closed" : "ahead";
}

static void
put_file(ReturnSetInfo *result, const Listed *listed, uint64 file)
{
	char		path[QC_PATH_MAX];
	Datum		values[5];
	bool		nulls[5] = {false};
	int64		size;

	qc_path_file(path, qlog_files()->layout, listed->log, file, "qlog");
	size = file_size(path);
	if (size < 0)
		return;
	nulls[0] = listed->queue_len == 0;
	values[0] = PointerGetDatum(cstring_to_text_with_len(listed->queue, listed->queue_len));
	values[1] = CStringGetTextDatum(path);
	values[2] = Int64GetDatum((int64) file);
	values[3] = Int64GetDatum(size);
	values[4] = CStringGetTextDatum(state_of(listed, file));
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

Datum
qlog_files_view(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Listed	   *logs;
	uint32		n;

	qlog_enter_read("qlog_files");
	InitMaterializedSRF(fcinfo, 0);
	logs = collect(&n);
	for (uint32 i = 0; i < n; i++)
	{
		uint64_t   *files;
		uint32_t	nfiles;
		QcError		err;

		CHECK_FOR_INTERRUPTS();
		if (i > 0 && !qlog_acl_allows(logs[i].owner) && !superuser())
			continue;
		qc_error_clear(&err);

		/* A log that was dropped since it was collected has no files to show. */
		if (qc_dir_files(qlog_io(), qlog_files()->layout, logs[i].log, &files, &nfiles,
						 &err) != QC_OK)
			continue;
		for (uint32 k = 0; k < nfiles; k++)
			put_file(result, &logs[i], files[k]);
		free(files);
	}
	return (Datum) 0;
}
