/*
 * qlog_stash.c
 *		Appending to the stash file during redo.
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

#include "qlog_fault.h"
#include "qlog_guc.h"
#include "qlog_io.h"

#include "../core/qc_dir.h"

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

static void
read_whole(uint8 *buf, size_t len)
{
	size_t		done = 0;

	while (done < len)
	{
		ssize_t		n = pg_pread(stash_fd, buf + done, len - done, (off_t) done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			fail("read");
		done += (size_t) n;
	}
}

/* Bytes of the file that hold intact records; what follows is a torn tail of an earlier redo. */
static off_t
intact_size(size_t size)
{
	uint8	   *buf;
	size_t		at = QC_STASH_MAGIC_SIZE;
	QcStashRecord record;
	QcError		err;
	size_t		taken;

	if (size < QC_STASH_MAGIC_SIZE)
		return 0;
	buf = MemoryContextAllocHuge(CurrentMemoryContext, size);
	read_whole(buf, size);
	if (memcmp(buf, QC_STASH_MAGIC, QC_STASH_MAGIC_SIZE) != 0)
		at = 0;
	while (at > 0 && at < size &&
		   qc_stash_get(buf + at, size - at, &record, &taken, &err) == QC_OK)
		at += taken;
	pfree(buf);
	return (off_t) at;
}

static void
write_all(const void *bytes, size_t len)
{
	const char *from = bytes;

	while (len > 0)
	{
		ssize_t		n;

		errno = qlog_fault(QLOG_FAULT_STASH);
		if (errno != 0)
			fail("write");
		n = pg_pwrite(stash_fd, from, len, stash_end);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
		{
			if (errno == 0)
				errno = ENOSPC;
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

	snprintf(stash_path, sizeof(stash_path), "%s/%s", qlog_directory(), QC_STASH_PATH);
	stash_fd = BasicOpenFile(stash_path, O_RDWR | O_CREAT | PG_BINARY);
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
	stash_end = intact_size((size_t) st.st_size);
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
