/*
 * qlog_stash.c
 *		Appending to the stash file during redo.
 *
 * The stash is trimmed by nobody: a record could go once its entry is durable in our own log (PROTOCOL.md 2.4), and while
 * redo runs nobody writes that.	After crash recovery the checkpointer worker restores what our log lacks and removes the
 * file; on a standby that waits for its promotion, until then it grows with the joint work of the primary.
 *
 * fd.c's virtual descriptors would do, but the startup process may run for months on a standby: one plain descriptor
 * that fd.c knows of is all it needs.
 */
#include "qlog_stash.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file_perm.h"
#include "miscadmin.h"
#include "storage/fd.h"

#include "qlog_disk.h"
#include "qlog_fault.h"
#include "qlog_guc.h"
#include "qlog_io.h"

#include "../core/qc_dir.h"

#define WINDOW_SIZE (1024 * 1024)

static int	stash_fd = -1;
static off_t stash_end;
static char stash_path[MAXPGPATH];

static void
fail(const char *what)
{
	bool		full = errno == ENOSPC;

	ereport(FATAL,
			(errcode_for_file_access(),
			 errmsg("could not %s file \"%s\": %m", what, stash_path),
			 errdetail("Committed messages may stand in this record of the WAL only."),
			 full ? errhint("Make room on the file system that holds qlog.data_directory and start the server again.") :
			 errhint("Make the directory qlog.data_directory writable and start the server again.")));
}

/* Read up to len bytes at a position; returns how many there are. */
static size_t
read_at(uint8 *buf, size_t len, off_t position)
{
	size_t		done = 0;

	while (done < len)
	{
		ssize_t		n = pg_pread(stash_fd, buf + done, len - done, position + (off_t) done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			fail("read");
		if (n == 0)
			break;
		done += (size_t) n;
	}
	return done;
}

/*
 * Walks over the records of the file through a window, which grows to the largest of them: on a standby the file may be
 * larger than memory.
 */
typedef struct Window
{
	uint8	   *buf;
	size_t		cap;
	size_t		len;			/* bytes in it */
	size_t		at;				/* the next record begins here */
	off_t		position;		/* of the window's first byte in the file */
	off_t		size;			/* of the file */
} Window;

/* Have the window begin with the next record, and hold `want` bytes if the file has them. */
static void
slide(Window *w, size_t want)
{
	if (want > w->cap)
	{
		pfree(w->buf);
		w->cap = want;
		w->buf = MemoryContextAllocHuge(CurrentMemoryContext, w->cap);
	}
	w->position += (off_t) w->at;
	w->at = 0;
	w->len = read_at(w->buf, w->cap, w->position);
}

/* Step over the next record; false = the file ends, or what comes is a torn tail. */
static bool
step(Window *w)
{
	QcStashRecord record;
	size_t		taken = 0;
	QcStatus	status = qc_stash_get(w->buf + w->at, w->len - w->at, &record, &taken, NULL);

	if (status == QC_SHORT || status == QC_END)
	{
		slide(w, QC_STASH_HEAD_SIZE);
		status = qc_stash_get(w->buf, w->len, &record, &taken, NULL);
	}

	/* A record larger than the window, if the file has as much. */
	if (status == QC_SHORT && w->len >= QC_STASH_HEAD_SIZE &&
		w->position + QC_STASH_HEAD_SIZE + (off_t) record.body_len <= w->size)
	{
		slide(w, QC_STASH_HEAD_SIZE + (size_t) record.body_len);
		status = qc_stash_get(w->buf, w->len, &record, &taken, NULL);
	}

	/* One of an unknown type is intact: recovery refuses it. */
	if (status != QC_OK && status != QC_VERSION)
		return false;
	w->at += taken;
	return true;
}

/* Bytes of the file that hold intact records; what follows is a torn tail of an earlier redo. */
static off_t
intact_size(off_t file_size)
{
	Window		w = {.cap = WINDOW_SIZE, .size = file_size};
	off_t		size = 0;

	w.buf = MemoryContextAllocHuge(CurrentMemoryContext, w.cap);
	w.len = read_at(w.buf, w.cap, 0);
	if (w.len >= QC_STASH_MAGIC_SIZE && memcmp(w.buf, QC_STASH_MAGIC, QC_STASH_MAGIC_SIZE) == 0)
	{
		w.at = QC_STASH_MAGIC_SIZE;
		while (step(&w))
			continue;
		size = w.position + (off_t) w.at;
	}
	pfree(w.buf);
	return size;
}

static void
write_all(const void *bytes, size_t len)
{
	const char *from = bytes;

	while (len > 0)
	{
		ssize_t		n = -1;

		errno = qlog_fault_need(QLOG_FAULT_STASH, len);
		if (errno == 0)
			n = pg_pwrite(stash_fd, from, len, stash_end);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
		{
			if (errno == 0)
				errno = ENOSPC;
			if (qlog_disk_is_full(errno) && qlog_disk_give(qlog_disk_device(stash_path)))
				continue;
			fail("write");
		}
		from += n;
		len -= (size_t) n;
		stash_end += n;
	}
}

static void
stash_open(void)
{
	struct stat st;

	char		directory[MAXPGPATH];

	/* What the WAL has is kept, from the reserve if need be. */
	(void) qlog_disk_entitle(true);
	snprintf(stash_path, sizeof(stash_path), "%s/%s", qlog_directory(), QC_STASH_PATH);
	do
		stash_fd = BasicOpenFile(stash_path, O_RDWR | O_CREAT | PG_BINARY);
	while (stash_fd < 0 && qlog_disk_is_full(errno) && qlog_disk_give(qlog_disk_device(stash_path)));
	if (stash_fd < 0 && errno == ENOENT)
	{
		/*
		 * The data directory of qlog is missing.  The server may start; qlog will refuse to, and
		 * keep this.
		 */
		strlcpy(directory, stash_path, sizeof(directory));
		get_parent_directory(directory);
		if (pg_mkdir_p(directory, pg_dir_create_mode) == 0)
			stash_fd = BasicOpenFile(stash_path, O_RDWR | O_CREAT | PG_BINARY);
	}
	if (stash_fd < 0)
		fail("open");
	ReserveExternalFD();
	qlog_io_drop_cached(stash_fd);
	if (fstat(stash_fd, &st) != 0)
		fail("stat");
	stash_end = intact_size(st.st_size);
	if (stash_end < st.st_size && ftruncate(stash_fd, stash_end) != 0)
		fail("truncate");
	if (stash_end == 0)
		write_all(QC_STASH_MAGIC, QC_STASH_MAGIC_SIZE);
}

void
qlog_stash_append(const QcStashRecord *record)
{
	uint8		head[QC_STASH_HEAD_SIZE];

	if (stash_fd < 0)
		stash_open();
	qc_stash_put_head(head, record);
	write_all(head, sizeof(head));
	write_all(record->body, record->body_len);
}

void
qlog_stash_sync(void)
{
	if (stash_fd < 0)
		return;
	if (pg_fsync(stash_fd) != 0)
		fail("sync");
}

void
qlog_stash_end(void)
{
	char		directory[MAXPGPATH];

	if (stash_fd < 0)
		return;
	qlog_stash_sync();
	close(stash_fd);
	ReleaseExternalFD();
	stash_fd = -1;
	snprintf(directory, sizeof(directory), "%s/replication", qlog_directory());
	fsync_fname(directory, true);
}
