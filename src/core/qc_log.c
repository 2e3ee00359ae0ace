/*
 * qc_log.c
 *		Logs: credits, places, rolling, zero-filling.
 */
#include "qc_log.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "qc_mutant.h"

QcLog *
qc_log_add(QcState *st, uint64_t id, uint64_t file, uint64_t tail, uint64_t allocated,
		   bool promised)
{
	QcRef		ref = promised ? qc_mem_alloc_reserved(&st->mem, QC_CLASS_LOG) :
		qc_mem_alloc(&st->mem, QC_CLASS_LOG);
	QcLog	   *log = QC_AT(st, QcLog, ref);
	QcRef	   *bucket;

	if (log == NULL)
		return NULL;
	log->id = id;
	log->file = log->last_file = file;
	log->tail = tail;
	log->allocated = log->last_allocated = allocated;
	log->index_file = file;
	log->index_position = tail;
	bucket = qc_table_bucket(st, &st->log_ids, qc_hash_id(id));
	log->id_next = *bucket;
	*bucket = ref;
	st->log_ids.count++;
	log->next = st->logs;
	if (log->next != 0)
		QC_AT(st, QcLog, log->next)->previous = ref;
	st->logs = ref;
	qc_dirty_log(st, log);
	return log;
}

static size_t
link_of(QcLogList list)
{
	return offsetof(QcLog, links) + list * sizeof(QcLink);
}

void
qc_log_list(QcState *st, QcLog *log, QcLogList list)
{
	if (log->lists & (1u << list))
		return;
	log->lists |= 1u << list;
	st->nlisted[list]++;
	qc_list_append(st, &st->log_lists[list], QC_REF(st, log), link_of(list));
}

void
qc_log_unlist(QcState *st, QcLog *log, QcLogList list)
{
	if ((log->lists & (1u << list)) == 0)
		return;
	log->lists &= ~(1u << list);
	st->nlisted[list]--;
	qc_list_remove(st, &st->log_lists[list], QC_REF(st, log), link_of(list));
}

void
qc_log_abandon(QcState *st, QcLog *log)
{
	if (qc_log_stays(st->shards, log->id))
		return;
	assert(log->nqueues == 0);
	log->dropped_seq = st->seq > 0 ? st->seq : 1;
	qc_log_unlist(st, log, QC_LOGS_DROPPED);
	qc_log_list(st, log, QC_LOGS_DROPPED);
}

static void
unlink_log(QcState *st, QcLog *log)
{
	QcRef		ref = QC_REF(st, log);
	QcRef	   *at = qc_table_bucket(st, &st->log_ids, qc_hash_id(log->id));

	while (*at != ref)
		at = &QC_AT(st, QcLog, *at)->id_next;
	*at = log->id_next;
	st->log_ids.count--;
	if (log->previous == 0)
		st->logs = log->next;
	else
		QC_AT(st, QcLog, log->previous)->next = log->next;
	if (log->next != 0)
		QC_AT(st, QcLog, log->next)->previous = log->previous;
	for (int list = 0; list < QC_LOGS_LISTS; list++)
		qc_log_unlist(st, log, (QcLogList) list);
	assert(log->index.head == 0);
	qc_free_row(st, QC_CLASS_LOG, ref, &log->dirty);
}

static QcLog *
next_dropped(QcState *st, const QcLog *log)
{
	return QC_AT(st, QcLog, log->links[QC_LOGS_DROPPED].next);
}

uint64_t
qc_log_remove_next(QcState *st)
{
	for (QcLog *log = qc_log_listed(st, QC_LOGS_DROPPED); log != NULL; log = next_dropped(st, log))
	{
		uint64_t	id = log->id;

		/* Those behind it were dropped later. */
		if (qc_start_floor(st) < log->dropped_seq && !QC_MUTATED(QC_MUTANT_REMOVE_EARLY))
			return 0;

		/* dirty_first belongs to the write lock; a stale read only postpones the removal. */
		if (log->nqueues > 0 || log->credit > 0 || log->dirty_first != 0)
			continue;
		unlink_log(st, log);
		return id;
	}
	return 0;
}

void
qc_log_removal(QcState *st, bool *waits, bool *ready)
{
	const QcLog *first = qc_log_listed(st, QC_LOGS_DROPPED);
	const QcLog *last = QC_AT(st, QcLog, st->log_lists[QC_LOGS_DROPPED].tail);

	*ready = first != NULL && first->dropped_seq <= qc_start_floor(st);
	*waits = last != NULL && last->dropped_seq > qc_start_floor(st);
}

uint32_t
qc_log_ids(QcState *st, uint32_t *at, uint64_t *ids, uint32_t max)
{
	const QcRef *buckets = (const QcRef *) ((const uint8_t *) st + st->log_ids.buckets);
	uint32_t	n = 0;

	/* A bucket is taken whole, so that one number tells where to go on. */
	for (; *at < st->log_ids.nbuckets; (*at)++)
	{
		uint32_t	in_bucket = 0;

		for (QcRef ref = buckets[*at]; ref != 0; ref = QC_AT(st, QcLog, ref)->id_next)
			in_bucket++;
		if (n + in_bucket > max && n > 0)
			break;
		for (QcRef ref = buckets[*at]; ref != 0 && n < max; ref = QC_AT(st, QcLog, ref)->id_next)
			ids[n++] = QC_AT(st, QcLog, ref)->id;
	}
	return n;
}

/* Zero-filled size of a file of the log. */
static uint64_t
allocated_of(const QcLog *log, uint64_t file, uint64_t segment_size)
{
	if (file == log->last_file)
		return log->last_allocated;
	return file == log->file ? log->allocated : segment_size;
}

/* Do all outstanding credits fit into the files ahead, however much each file's end wastes? */
static bool
fits_ahead(const QcLog *log, uint64_t credit, uint64_t record, uint64_t segment_size)
{
	uint64_t	room = 0;

	for (uint64_t file = log->file + 1; file <= log->last_file; file++)
	{
		uint64_t	usable = allocated_of(log, file, segment_size) - QC_FILE_HEADER_SIZE;

		/* A record that does not fit at the end of this file wastes less than its own size. */
		if (usable >= record)
			room += file == log->last_file ? usable : usable - record;
		if (room >= credit)
			return true;
	}
	return false;
}

static uint64_t
clamp(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : value > high ? high : value;
}

/* Next size of a file that needs to hold `want` bytes: at least doubled, in steps of 64 KiB to 16 MiB. */
static void
grow_to(QcExtend *extend, uint64_t want, uint64_t segment_size)
{
	uint64_t	to = extend->from + clamp(extend->from, QC_EXTEND_MIN, QC_EXTEND_MAX);
	uint64_t	least = (want + QC_EXTEND_MIN - 1) / QC_EXTEND_MIN * QC_EXTEND_MIN;

	if (to < least)
		to = least;
	extend->to = to > segment_size ? segment_size : to;
	extend->least = least > segment_size ? segment_size : least;
}

static void
plan_extend(const QcLog *log, uint64_t credit, uint64_t segment_size, QcExtend *extend)
{
	extend->log = log->id;
	extend->file = log->last_file;
	extend->from = log->last_allocated;
	extend->create = false;
	if (log->last_file == log->file && log->tail + credit <= segment_size)
		grow_to(extend, log->tail + credit, segment_size);
	else if (log->last_file != log->file && log->last_allocated < segment_size)
		grow_to(extend, QC_FILE_HEADER_SIZE + credit, segment_size);
	else
	{
		extend->file = log->last_file + 1;
		extend->from = 0;
		extend->create = true;
		grow_to(extend, QC_FILE_HEADER_SIZE + credit, segment_size);
	}
}

QcStatus
qc_log_credit(QcState *st, QcLog *log, uint64_t bytes, uint64_t record, uint64_t segment_size,
			  QcExtend *extend)
{
	uint64_t	credit = log->credit + bytes;
	uint64_t	largest = log->credit > 0 && log->record_max > record ? log->record_max : record;

	(void) st;
	assert(record <= segment_size / 2 + QC_FILE_HEADER_SIZE);
	if (log->tail + credit <= log->allocated || fits_ahead(log, credit, largest, segment_size))
	{
		log->credit = credit;
		log->record_max = largest;
		return QC_OK;
	}
	plan_extend(log, credit, segment_size, extend);
	return QC_BUSY;
}

void
qc_log_uncredit(QcState *st, QcLog *log, uint64_t bytes)
{
	(void) st;
	assert(log->credit >= bytes);
	log->credit -= bytes;
}

QcPlace
qc_log_place(QcState *st, QcLog *log, uint64_t size, uint64_t segment_size)
{
	QcPlace		place = {0, 0, false};

	assert(log->credit >= size);
	log->credit -= size;
	while (log->tail + size > log->allocated)
	{
		assert(log->file < log->last_file);
		log->allocated = allocated_of(log, log->file + 1, segment_size);
		log->file++;
		log->tail = QC_FILE_HEADER_SIZE;
		qc_log_list(st, log, QC_LOGS_ROLLED);
	}
	place.rolled = log->tail == QC_FILE_HEADER_SIZE;
	place.file = log->file;
	place.position = log->tail;
	log->tail += size;
	qc_log_list(st, log, QC_LOGS_GROWN);
	qc_dirty_log(st, log);
	return place;
}

bool
qc_log_seal(QcState *st, QcLog *log, uint64_t segment_size)
{
	if (log->tail == QC_FILE_HEADER_SIZE || log->last_file == log->file ||
		!fits_ahead(log, log->credit, log->credit > 0 ? log->record_max : 0, segment_size))
		return false;
	log->allocated = allocated_of(log, log->file + 1, segment_size);
	log->file++;
	log->tail = QC_FILE_HEADER_SIZE;
	qc_log_list(st, log, QC_LOGS_ROLLED);
	qc_dirty_log(st, log);
	return true;
}

void
qc_log_extended(QcState *st, const QcExtend *extend, uint64_t segment_size)
{
	QcLog	   *log = qc_log_by_id(st, extend->log);

	(void) segment_size;
	if (log == NULL)
		return;
	if (extend->file > log->last_file)
	{
		assert(extend->file == log->last_file + 1);
		log->last_file = extend->file;
		log->last_allocated = extend->to;
	}
	else if (extend->file == log->last_file && extend->to > log->last_allocated)
		log->last_allocated = extend->to;
	if (extend->file == log->file && extend->to > log->allocated)
		log->allocated = extend->to;
}

/* Write zeros over [from, to). */
static int
zero_fill(QcFiles *files, QcHandle handle, uint64_t from, uint64_t to)
{
	static const uint8_t zeros[65536];

	while (from < to)
	{
		QcIoSlice	slices[16];
		int			n = 0;
		uint64_t	at = from;
		int			rc;

		while (n < 16 && from < to)
		{
			size_t		len = to - from < sizeof(zeros) ? (size_t) (to - from) : sizeof(zeros);

			slices[n++] = (QcIoSlice)
			{
				zeros, len
			};
			from += len;
		}
		rc = files->io->write(files->io->context, handle, slices, n, at);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/*
 * A file that stands where a new one is to be made may go only when it is what an attempt that failed half way has left:
 * nothing but zeros behind the header.
 */
static QcStatus
remove_leftover(const QcIo *io, const char *path, QcError *err)
{
	uint8_t		buf[16384];
	uint64_t	at = QC_FILE_HEADER_SIZE;
	size_t		done = 0;
	QcHandle	handle;
	int			rc = io->open(io->context, path, 0, &handle);

	if (rc != 0)
		return qc_error_sys(err, rc, path, "could not open log file");
	do
	{
		rc = io->read(io->context, handle, buf, sizeof(buf), at, &done);
		for (size_t i = 0; i < done && rc == 0; i++)
		{
			if (buf[i] == 0)
				continue;
			io->close(io->context, handle);
			return qc_error_at(err, QC_DAMAGED, path, at + i,
							   "log file holds something where there should be none yet");
		}
		at += done;
	}
	while (rc == 0 && done > 0);
	io->close(io->context, handle);
	if (rc == 0)
		rc = io->unlink(io->context, path);
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, path, "could not remove log file");
}

/* Create the file with a header that says it is not taken yet. */
static QcStatus
create_file(QcFiles *files, uint64_t log, uint64_t file, uint64_t first_seq, uint64_t allocated,
			QcError *err)
{
	const QcIo *io = files->io;
	QcFileHeader header = {file, first_seq};
	uint8_t		bytes[QC_FILE_HEADER_SIZE];
	QcIoSlice	slice = {bytes, sizeof(bytes)};
	char		path[QC_PATH_MAX];
	char		directory[QC_PATH_MAX];
	QcHandle	handle;
	int			rc;

	qc_path_file(path, files->layout, log, file, "qlog");
	qc_path_log(directory, files->layout, log);
	rc = io->open(io->context, path, QC_OPEN_WRITE | QC_OPEN_CREATE, &handle);
	if (rc == EEXIST)
	{
		QcStatus	status = remove_leftover(io, path, err);

		if (status != QC_OK)
			return status;
		rc = io->open(io->context, path, QC_OPEN_WRITE | QC_OPEN_CREATE, &handle);
	}
	if (rc != 0)
		return qc_error_sys(err, rc, path, "could not create log file");
	qc_file_header_encode(bytes, &header);
	rc = io->write(io->context, handle, &slice, 1, 0);
	if (rc == 0)
		rc = zero_fill(files, handle, QC_FILE_HEADER_SIZE, allocated);
	if (rc == 0)
		rc = io->sync(io->context, handle);
	io->close(io->context, handle);
	if (rc == 0)
		rc = io->sync_directory(io->context, directory);
	if (rc == 0)
		return QC_OK;

	/* What cannot go now is removed by the next attempt. */
	(void) io->unlink(io->context, path);
	return qc_error_sys(err, rc, path, "could not write log file");
}

QcStatus
qc_log_extend_io(QcFiles *files, const QcExtend *extend, QcError *err)
{
	const QcIo *io = files->io;
	char		path[QC_PATH_MAX];
	QcHandle	handle;
	QcStatus	status;
	int			rc;

	if (extend->create)
		return create_file(files, extend->log, extend->file, QC_FIRST_SEQ_AHEAD, extend->to, err);
	status = qc_files_get(files, extend->log, extend->file, true, &handle, err);
	if (status != QC_OK)
		return status;
	rc = zero_fill(files, handle, extend->from, extend->to);
	if (rc == 0)
		rc = io->sync(io->context, handle);
	else
		(void) io->truncate(io->context, handle, extend->from);
	qc_path_file(path, files->layout, extend->log, extend->file, "qlog");
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, path, "could not extend log file");
}

/* Make one directory of a path and sync its parent; one that exists is fine unless it must be new. */
static QcStatus
make_one(const QcIo *io, const char *path, bool *existed, QcError *err)
{
	char		parent[QC_PATH_MAX];
	char	   *slash;
	int			rc = io->make_directory(io->context, path);

	*existed = rc == EEXIST;
	if (rc != 0 && rc != EEXIST)
		return qc_error_sys(err, rc, path, "could not create directory");
	(void) snprintf(parent, sizeof(parent), "%s", path);
	slash = strrchr(parent, '/');
	if (slash != NULL)
		*slash = '\0';
	rc = io->sync_directory(io->context, slash == NULL ? "" : parent);
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, path, "could not sync its parent directory");
}

/* Collects one name at a time: a directory must not change while it is listed. */
typedef struct FirstName
{
	char		name[QC_PATH_MAX];
	bool		found;
} FirstName;

static bool
take_first(void *context, const char *name, bool is_directory)
{
	FirstName  *first = context;

	if (is_directory || strlen(name) >= sizeof(first->name))
		return true;
	(void) snprintf(first->name, sizeof(first->name), "%s", name);
	first->found = true;
	return false;
}

/* Unlink the files of a retired directory and the directory; one that does not exist is fine. */
static QcStatus
remove_tree(const QcIo *io, const char *path, QcError *err)
{
	int			rc;

	for (;;)
	{
		FirstName	first = {"", false};
		char		file[2 * QC_PATH_MAX + 8];

		rc = io->list(io->context, path, take_first, &first);
		if (rc == ENOENT)
			return QC_OK;
		if (rc != 0 || !first.found)
			break;
		(void) snprintf(file, sizeof(file), "%s/%s", path, first.name);
		rc = io->unlink(io->context, file);
		if (rc != 0)
			break;
	}
	if (rc == 0)
		rc = io->remove_directory(io->context, path);
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, path, "could not remove directory");
}

/*
 * Rename a directory away; what an earlier attempt renamed is removed first.  It may be gone already, as a snapshot that the start
 * began with still named it.
 */
static QcStatus
retire(const QcIo *io, const char *path, QcError *err)
{
	char		dead[QC_PATH_MAX + 8];
	QcStatus	status;
	int			rc;

	(void) snprintf(dead, sizeof(dead), "%s.dead", path);
	status = remove_tree(io, dead, err);
	if (status != QC_OK)
		return status;
	rc = io->rename(io->context, path, dead);
	return rc == 0 || rc == ENOENT ? QC_OK : qc_error_sys(err, rc, path, "could not rename");
}

static QcStatus
first(QcStatus before, QcStatus status)
{
	return before == QC_OK ? status : before;
}

/* The directory that holds the log's. */
static void
parent_of(char out[QC_PATH_MAX], const QcFiles *files, uint64_t log)
{
	qc_path_log(out, files->layout, log);
	*strrchr(out, '/') = '\0';
}

QcStatus
qc_log_remove_files(QcFiles *files, const uint64_t *logs, uint32_t n, QcError *err)
{
	char		path[QC_PATH_MAX];
	char		synced[QC_PATH_MAX] = "";
	char		dead[QC_PATH_MAX + 8];
	QcStatus	failed = QC_OK;

	for (uint32_t i = 0; i < n; i++)
	{
		qc_files_forget(files, logs[i], 0);
		qc_path_log(path, files->layout, logs[i]);
		failed = first(failed, retire(files->io, path, failed == QC_OK ? err : NULL));
	}
	for (uint32_t i = 0; i < n; i++)
	{
		int			rc;

		parent_of(path, files, logs[i]);
		if (strcmp(path, synced) == 0)
			continue;
		rc = files->io->sync_directory(files->io->context, path);
		if (rc != 0)
			return qc_error_sys(err, rc, path, "could not sync directory");
		memcpy(synced, path, sizeof(synced));
	}
	for (uint32_t i = 0; i < n; i++)
	{
		qc_path_log(path, files->layout, logs[i]);
		(void) snprintf(dead, sizeof(dead), "%s.dead", path);
		failed = first(failed, remove_tree(files->io, dead, failed == QC_OK ? err : NULL));
	}
	return failed;
}

QcStatus
qc_log_make_directory(QcFiles *files, uint64_t log, bool *existed, QcError *err)
{
	char		path[QC_PATH_MAX];
	char		prefix[QC_PATH_MAX];
	QcStatus	status = QC_OK;

	qc_path_log(path, files->layout, log);
	for (char *slash = strchr(path, '/'); slash != NULL && status == QC_OK;
		 slash = strchr(slash + 1, '/'))
	{
		(void) snprintf(prefix, sizeof(prefix), "%.*s", (int) (slash - path), path);
		status = make_one(files->io, prefix, existed, err);
	}
	return status == QC_OK ? make_one(files->io, path, existed, err) : status;
}

QcStatus
qc_log_create_files(QcFiles *files, uint64_t log, uint64_t allocated, QcError *err)
{
	char		path[QC_PATH_MAX];
	bool		existed;
	QcStatus	status = qc_log_make_directory(files, log, &existed, err);

	qc_path_log(path, files->layout, log);
	if (status == QC_OK && existed)
	{
		status = retire(files->io, path, err);
		if (status == QC_OK)
			status = make_one(files->io, path, &existed, err);
	}
	if (status != QC_OK)
		return status;
	return create_file(files, log, 1, QC_FIRST_SEQ_AHEAD, allocated, err);
}
