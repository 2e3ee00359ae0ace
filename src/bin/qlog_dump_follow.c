/*
 * qlog_dump_follow.c
 *		Records as they come: what a directory has, and then what is added, until a signal or the limit ends it.
 *
 * Each log is read forward from its first file.	Where no record stands yet it waits, unless a later file holds one; then what
 * is in between is damage, or, when it is zeros, the end of a file.  Logs take turns, so records of several logs are not
 * in the order of their seqs.
 */
#define _POSIX_C_SOURCE 200809L

#include "qlog_dump.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "qc_dir.h"

#define CHUNK		(256 * 1024)
#define PAUSE_NS	100000000

/* How far a log has been read. */
typedef struct Tail
{
	QcLayout	layout;
	uint64_t	file;			/* 0 = none yet */
	uint64_t	position;
	DumpLog		log;
} Tail;

typedef struct Follow
{
	Dump	   *dump;
	Tail	   *tails;
	uint32_t	ntails;
	uint8_t    *buf;
	size_t		cap;
} Follow;

static volatile sig_atomic_t stopped;

static void
stop(int signal_number)
{
	(void) signal_number;
	stopped = 1;
}

static bool
ended(const Follow *follow)
{
	return stopped != 0 || follow->dump->failed || dump_limit_reached(follow->dump);
}

/* The log's first file behind `after`, 0 = there is none. */
static uint64_t
next_file(const Follow *follow, const Tail *tail, uint64_t after)
{
	uint64_t   *files;
	uint32_t	n;
	uint64_t	next = 0;
	QcError		err;

	if (qc_dir_files(follow->dump->io, tail->layout, tail->log.id, &files, &n, &err) != QC_OK)
		return 0;
	for (uint32_t i = n; i > 0 && files[i - 1] > after; i--)
		next = files[i - 1];
	free(files);
	return next;
}

/*
 * Read the record at a place: QC_OK with its size.	 QC_END: nothing is there yet; QC_MISSING: the file has gone; QC_DAMAGED:
 * bytes that are no record (yet).
 */
static QcStatus
read_record(Follow *follow, const char *path, uint64_t position, QcRecord *record, uint64_t *size,
			QcError *err)
{
	const QcIo *io = follow->dump->io;
	QcHandle	handle;
	size_t		done = 0;
	QcStatus	status;
	int			rc = io->open(io->context, path, 0, &handle);

	if (rc == ENOENT)
		return QC_MISSING;
	if (rc != 0)
		return qc_error_sys(err, rc, path, "could not open file");
	rc = io->read(io->context, handle, follow->buf, follow->cap, position, &done);
	status = rc != 0 ? qc_error_sys(err, rc, path, "could not read file") :
		done < 4 ? QC_END : qc_record_peek(follow->buf, done, size, err);
	if (status == QC_OK && *size > done && *size <= QC_RECORD_LEN_MAX && *size > follow->cap)
	{
		uint8_t    *more = realloc(follow->buf, (size_t) *size);

		if (more == NULL)
			status = qc_error_at(err, QC_FULL, path, position, "out of memory");
		else
		{
			follow->buf = more;
			follow->cap = (size_t) *size;
			rc = io->read(io->context, handle, follow->buf, follow->cap, position, &done);
		}
	}
	if (status == QC_OK)
		status = rc != 0 ? qc_error_sys(err, rc, path, "could not read file") :
			qc_record_decode(follow->buf, done, record, err);
	io->close(io->context, handle);
	return status == QC_SHORT ? QC_END : status;
}

/* Nothing more is in the current file: go on in the next one that holds a record; false = there is none yet. */
static bool
go_on(Follow *follow, Tail *tail, QcStatus why, const QcError *reason)
{
	uint64_t	next = next_file(follow, tail, tail->file);
	char		path[QC_PATH_MAX];
	DumpFile	file = {.path = path};
	QcRecord	record;
	uint64_t	size;
	QcError		err;

	if (next == 0)
		return false;
	qc_path_file(path, tail->layout, tail->log.id, next, "qlog");
	if (read_record(follow, path, QC_FILE_HEADER_SIZE, &record, &size, &err) != QC_OK)
		return false;
	if (why == QC_DAMAGED)
	{
		qc_path_file(path, tail->layout, tail->log.id, tail->file, "qlog");
		dump_damage(follow->dump, &tail->log.stats, file.path, tail->position, 0, reason->text);
	}
	tail->file = next;
	tail->position = QC_FILE_HEADER_SIZE;
	return true;
}

/* Print what a log has more than before; true = it had anything. */
static bool
advance(Follow *follow, Tail *tail)
{
	bool		any = false;

	if (tail->file == 0)
		tail->file = next_file(follow, tail, 0);
	while (tail->file != 0 && !ended(follow))
	{
		char		path[QC_PATH_MAX];
		DumpFile	file = {.path = path};
		QcRecord	record;
		uint64_t	size = 0;
		QcError		err;
		QcStatus	status;

		qc_path_file(path, tail->layout, tail->log.id, tail->file, "qlog");
		status = read_record(follow, path, tail->position, &record, &size, &err);
		if (status == QC_OK)
		{
			dump_record(follow->dump, &tail->log, &file, tail->position, &record);
			tail->log.last_seq = record.seq;
			tail->position += size;
			any = true;
		}
		else if (status == QC_IO || status == QC_FULL)
			dump_fail(follow->dump, &err);
		else if (!go_on(follow, tail, status, &err))
			break;
	}
	return any;
}

static bool
is_known(const Follow *follow, QcLayout layout, uint64_t log)
{
	for (uint32_t i = 0; i < follow->ntails; i++)
	{
		if (follow->tails[i].layout == layout && follow->tails[i].log.id == log)
			return true;
	}
	return false;
}

/* Logs that have come. */
static void
find_logs(Follow *follow, QcLayout layout)
{
	const DumpOptions *options = &follow->dump->options;
	uint64_t   *logs;
	uint32_t	n;
	QcError		err;

	if (qc_dir_logs(follow->dump->io, layout, &logs, &n, &err) != QC_OK)
	{
		dump_fail(follow->dump, &err);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
	{
		Tail	   *more;

		if ((options->one_log && logs[i] != options->log) || is_known(follow, layout, logs[i]))
			continue;
		more = realloc(follow->tails, (follow->ntails + 1) * sizeof(Tail));
		if (more == NULL)
			break;
		follow->tails = more;
		follow->tails[follow->ntails++] = (Tail)
		{
			.layout = layout, .position = QC_FILE_HEADER_SIZE,
			.log =
			{
			.known = true, .id = logs[i]
			}
		};
	}
	free(logs);
}

void
dump_follow(Dump *dump)
{
	Follow		follow = {.dump = dump, .cap = CHUNK, .buf = malloc(CHUNK)};
	struct sigaction action = {.sa_handler = stop};
	struct timespec pause = {.tv_nsec = PAUSE_NS};

	stopped = 0;
	(void) sigaction(SIGINT, &action, NULL);
	(void) sigaction(SIGTERM, &action, NULL);
	dump->failed = dump->failed || follow.buf == NULL;
	while (!ended(&follow))
	{
		bool		any = false;

		find_logs(&follow, QC_LAYOUT_FLAT);
		if (!dump->failed)
			find_logs(&follow, QC_LAYOUT_HIERARCHICAL);
		for (uint32_t i = 0; i < follow.ntails; i++)
			any = advance(&follow, &follow.tails[i]) || any;
		if (fflush(dump->row.out) != 0)
			break;
		if (!any && !ended(&follow))
			(void) nanosleep(&pause, NULL);
	}
	for (uint32_t i = 0; i < follow.ntails; i++)
		dump_stats_add(&dump->total, &follow.tails[i].log.stats);
	free(follow.tails);
	free(follow.buf);
}
