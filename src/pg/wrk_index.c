/*
 * wrk_index.c
 *		What is derived from closed log files: indexes (.qidx), dedup ids (.qhsh) and directories (dirx), written by the checkpointer
 *		worker.
 *
 * Never in a commit: a file gets its index in the pause behind a checkpoint, when it has been closed.	After a start every
 * closed file is looked at once, and what is missing or does not fit is made; later on that happens to what a reader found
 * wrong (QlogShared.lacking_file).	 A file without index is read whole when it is needed: slower, no worse.
 *
 * Called by wrk_checkpoint.c, in one process.
 */
#include "wrk_checkpoint.h"

#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "qlog_commit.h"
#include "qlog_guc.h"
#include "qlog_io.h"

#include "../core/qc_dedup.h"
#include "../core/qc_dirx.h"
#include "../core/qc_hashes.h"
#include "../core/qc_log.h"
#include "../core/qc_read.h"

#define LIST_LOGS	200			/* looked at under one hold of the state lock */
#define DIRX_MAX	(64 * 1024 * 1024)	/* bytes of a directory, which is made in memory */
#define PAUSE_US	200000		/* how long the worker may be busy with indexes at a time */

/* Every file of a log below this one has its index, or had its chance. */
typedef struct Indexed
{
	uint64		log;			/* key */
	uint64		file;
	uint64		covered;		/* directories were made when so many files were closed */
	bool		checked;		/* they were compared with their files */
} Indexed;

static HTAB *indexed = NULL;

static void
make_indexed(void)
{
	HASHCTL		ctl = {.keysize = sizeof(uint64), .entrysize = sizeof(Indexed), .hcxt = TopMemoryContext};

	indexed = hash_create("qlog indexed files", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Directories over so many closed files can be made now. */
static uint64
coverable(uint64 active)
{
	return (active - 1) / QC_DIRX_FAN * QC_DIRX_FAN;
}

/* Closed files of one log: those below `active`, and the seq that closed them at the latest. */
typedef struct Closed
{
	uint64		log;
	uint64		active;
	uint64		seq;
	QcLog		copy;			/* of what says whether dedup ids matter */
} Closed;

/* After a start: all logs with closed files. */
static void
list_all(void)
{
	uint32_t	at = 0;
	uint64_t	ids[LIST_LOGS];
	uint32		n;

	do
	{
		qlog_lock_state();
		n = qc_log_ids(qlog_state, &at, ids, LIST_LOGS);
		for (uint32 i = 0; i < n; i++)
		{
			QcLog	   *log = qc_log_by_id(qlog_state, ids[i]);

			if (log->file > 1)
				qc_log_list(qlog_state, log, QC_LOGS_ROLLED);
		}
		qlog_unlock_state();
	} while (n > 0);
}

/* A log with a closed file that is not known to have an index, taken off the list. */
static bool
take_closed(Closed *closed)
{
	QcLog	   *log;

	qlog_lock_state();
	log = qc_log_listed(qlog_state, QC_LOGS_ROLLED);
	if (log != NULL)
	{
		*closed = (Closed) {log->id, log->file, qlog_state->seq, *log};
		qc_log_unlist(qlog_state, log, QC_LOGS_ROLLED);
	}
	qlog_unlock_state();
	return log != NULL;
}

/* ... and put there again: not all of its files had their turn. */
static void
put_back(const Closed *closed)
{
	QcLog	   *log;

	qlog_lock_state();
	log = qc_log_by_id(qlog_state, closed->log);
	if (log != NULL)
		qc_log_list(qlog_state, log, QC_LOGS_ROLLED);
	qlog_unlock_state();
}

/* Visitor: the smallest number among the names. */
static bool
note_first(void *context, const char *name, bool is_directory)
{
	uint64	   *first = context;
	uint64_t	file;

	if (!is_directory && qc_name_parse_file(name, "qlog", &file) && file != 0 && file < *first)
		*first = file;
	return true;
}

/* The oldest file of a log; `active` when that cannot be told. */
static uint64
first_file(uint64 log, uint64 active)
{
	const QcIo *io = qlog_io();
	char		path[QC_PATH_MAX];
	uint64		first = active;

	qc_path_log(path, qlog_files()->layout, log);
	(void) io->list(io->context, path, note_first, &first);
	return first;
}

/* Does the file lack its dedup ids, while a start may want to know them? */
static bool
lacks_hashes(const Closed *closed, uint64 file)
{
	int64		newest = PG_INT64_MAX;

	/* No record of it is younger than the first one of the file behind. */
	(void) qc_read_begun_at(qlog_files(), closed->log, file + 1, &newest);
	return qc_dedup_wanted(&closed->copy, newest) &&
		!qc_hashes_usable(qlog_files(), closed->log, file);
}

/* Write what a file lacks, whose bytes may still stand in the ring.	One that is missing is an error of who needs it. */
static void
write_lacking(QlogWorker *worker, const Closed *closed, uint64 file, bool index)
{
	unsigned	what = index ? QC_BUILD_IDX : 0;
	QcError		err;

	if (lacks_hashes(closed, file))
		what |= QC_BUILD_HASHES;
	qc_error_clear(&err);
	if (what == 0 || (qlog_write_noerror(closed->seq, &err) &&
					  qc_read_build(qlog_files(), closed->log, file, what, &err) == QC_OK))
		return;

	/* Reclaim may have made the index at the same moment: each takes the other's for its own. */
	if (index && qc_read_idx_right(qlog_files(), closed->log, file))
		write_lacking(worker, closed, file, false);
	else if (err.code != QC_MISSING)
		qlog_worker_error(worker, &err, "could not index a closed log file");
}

/* With qlog.drop_page_cache: a closed file gives its place in memory to others.	 What is not on the disk yet cannot. */
static void
drop_cached(uint64 log, uint64 file, uint64 seq)
{
	QcHandle	handle;

	if (!qlog_drop_page_cache)
		return;
	qlog_flush(seq);

	/* Pages that somebody uses at this moment stay: the file before it is asked for once more. */
	for (uint64 which = file; which > 0 && which + 1 >= file; which--)
	{
		if (qc_files_get(qlog_files(), log, which, false, &handle, NULL) == QC_OK)
			qlog_io_drop_handle(handle);
	}
}

/* Go on with directories? */
static bool
has_time(void *context)
{
	return !qlog_worker_shutdown() && qlog_monotonic() <= *(int64 *) context;
}

/* Make the directories of a log; false = there is more to make. */
static bool
make_directories(QlogWorker *worker, const Closed *closed, Indexed *known, int64 end)
{
	QcDirxMake	make = {.files = qlog_files(), .log = closed->log, .active = closed->active,
		.max_bytes = DIRX_MAX, .check = !known->checked, .go_on = has_time, .context = &end};
	QcError		err;
	QcStatus	status;
	uint64		first;

	if (known->covered == coverable(closed->active))
		return true;
	qc_error_clear(&err);
	make.first_file = first_file(closed->log, closed->active);
	status = qc_dirx_make(&make, &err);

	/*
	 * Files that were removed meanwhile may have got one after reclaim had trimmed those that were
	 * there.
	 */
	first = first_file(closed->log, closed->active);
	if (status != QC_MISSING && first != make.first_file)
		(void) qc_dirx_trim(qlog_files(), closed->log, first, NULL);
	if (status == QC_END)
		return false;
	if (status != QC_OK && err.code != QC_MISSING && err.sys_errno != ENOENT)
		qlog_worker_error(worker, &err, "could not make a directory of closed log files");
	known->checked = true;
	known->covered = coverable(closed->active);
	return true;
}

/* What readers asked for: the file, 0 = nothing; *dirx: its directories are wrong. */
static uint64
take_request(Closed *closed, bool *dirx)
{
	uint64		file;
	QcLog	   *log;

	qlog_lock_state();
	file = qlog_shared->lacking_file;
	*dirx = qlog_shared->lacking_dirx;
	qlog_shared->lacking_file = 0;
	log = file == 0 ? NULL : qc_log_by_id(qlog_state, qlog_shared->lacking_log);
	if (log == NULL || file >= log->file)
		file = 0;
	else
		*closed = (Closed) {log->id, log->file, qlog_state->seq, *log};
	qlog_unlock_state();
	return file;
}

bool
qlog_upkeep_index(QlogWorker *worker)
{
	int64		end = qlog_monotonic() + PAUSE_US;
	Closed		closed;
	uint64		file;
	bool		dirx;

	if (indexed == NULL)
	{
		make_indexed();
		list_all();
	}

	/* Another reader's request may have had it made by now. */
	file = take_request(&closed, &dirx);
	if (file != 0 && dirx)
	{
		(void) qc_dirx_forget(qlog_files(), closed.log, file, NULL);
		qlog_upkeep_index_forget(closed.log);
		put_back(&closed);
	}
	else if (file != 0 && !qc_read_idx_right(qlog_files(), closed.log, file))
		write_lacking(worker, &closed, file, true);
	while (take_closed(&closed))
	{
		bool		seen;
		Indexed    *known = hash_search(indexed, &closed.log, HASH_ENTER, &seen);

		if (!seen)
			*known = (Indexed) {.log = closed.log, .file = first_file(closed.log, closed.active)};
		for (; known->file < closed.active; known->file++)
		{
			if (qlog_worker_shutdown() || qlog_monotonic() > end)
			{
				put_back(&closed);
				return true;
			}
			write_lacking(worker, &closed, known->file,
						  !qc_read_idx_usable(qlog_files(), closed.log, known->file));
			drop_cached(closed.log, known->file, closed.seq);
		}
		if (!make_directories(worker, &closed, known, end))
		{
			put_back(&closed);
			return true;
		}
	}
	return false;
}

void
qlog_upkeep_index_forget(uint64 log)
{
	if (indexed != NULL)
		(void) hash_search(indexed, &log, HASH_REMOVE, NULL);
}
