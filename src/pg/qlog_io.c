/*
 * qlog_io.c
 *		The core's I/O table over PostgreSQL's fd.c.
 *
 * Reads, writes and syncs go to the descriptor behind the virtual one, because fd.c of PostgreSQL 15 has no vectored
 * write.	fd.c may have closed it meanwhile to make room for another file; raw_descriptor() has it opened again.
 *
 * What lacks room is tried again as long as the process may give up pieces of the reserve (qlog_disk.h).
 */
#include "qlog_io.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/file_perm.h"
#include "port/pg_iovec.h"
#include "storage/fd.h"

#include "qlog_compat.h"
#include "qlog_disk.h"
#include "qlog_fault.h"
#include "qlog_gone.h"
#include "qlog_guc.h"
#include "qlog_report.h"
#include "qlog_shmem.h"

#include "../core/qc_mount.h"

#define CREATE_BYTES 4096		/* what a new name is taken to need on the full disk of a test */

/* Has recovery ended? */
static bool
serving(void)
{
	return pg_atomic_read_u32(&qlog_shared->gate) == QLOG_GATE_READY;
}

/* Absolute path of a path below this table's root, which is its context; false when it is too long. */
static bool
absolute(char out[MAXPGPATH], const void *context, const char *path)
{
	const char *root = context;
	int			n;

	if (path[0] == '\0' || strcmp(path, ".") == 0)
		n = snprintf(out, MAXPGPATH, "%s", root);
	else
		n = snprintf(out, MAXPGPATH, "%s/%s", root, path);
	return n > 0 && n < MAXPGPATH;
}

/* The open descriptor of a handle, or -1 with errno set. */
static int
raw_descriptor(QcHandle handle)
{
	int			fd = FileGetRawDesc((File) handle);

	if (fd >= 0)
		return fd;
	errno = 0;
	if (FileSize((File) handle) < 0)
	{
		if (errno == 0)
			errno = EIO;
		return -1;
	}
	return FileGetRawDesc((File) handle);
}

/* As PathNameOpenFile, which raises when there is no memory for one more virtual descriptor. */
static File
open_file(const char *full, int mode)
{
	MemoryContext caller = CurrentMemoryContext;
	volatile File file = -1;

	PG_TRY();
	{
		file = PathNameOpenFile(full, mode);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(caller);
		FlushErrorState();
		errno = ENOMEM;
	}
	PG_END_TRY();
	return file;
}

void
qlog_io_drop_cached(int fd)
{
#ifdef POSIX_FADV_DONTNEED
	(void) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
#else
	(void) fd;
#endif
}

void
qlog_io_drop_handle(QcHandle handle)
{
	int			fd = raw_descriptor(handle);

	if (fd >= 0)
		qlog_io_drop_cached(fd);
}

/* The error that a test has ordered for creating this name, 0 = none.  A name that exists has an error of its own. */
static int
create_fault(const char *full)
{
	struct stat st;

	if (qlog_fault(QLOG_FAULT_CREATE) == 0 || lstat(full, &st) == 0)
		return 0;
	return qlog_fault_need(QLOG_FAULT_CREATE, CREATE_BYTES);
}

/* Is it worth another try at this path after this error? */
static bool
try_again(const char *full, int rc)
{
	return qlog_disk_is_full(rc) && qlog_disk_give(qlog_disk_device(full));
}

/* The same for a file that is open. */
static bool
write_again(QcHandle handle, int rc)
{
	struct stat st;
	int			fd = qlog_disk_is_full(rc) ? raw_descriptor(handle) : -1;

	return fd >= 0 && fstat(fd, &st) == 0 && qlog_disk_give(st.st_dev);
}

static int
io_open(void *context, const char *path, int flags, QcHandle *handle)
{
	char		full[MAXPGPATH];
	int			mode = PG_BINARY | ((flags & QC_OPEN_WRITE) ? O_RDWR : O_RDONLY);
	int			rc;
	File		file = -1;

	if (!absolute(full, context, path))
		return ENAMETOOLONG;
	if (flags & QC_OPEN_CREATE)
		mode |= O_CREAT | O_EXCL;
	do
	{
		rc = (flags & QC_OPEN_CREATE) ? create_fault(full) : qlog_fault(QLOG_FAULT_OPEN);
		if (rc != 0)
			continue;
		errno = 0;
		file = open_file(full, mode);
		if (file < 0)
			rc = errno != 0 ? errno : EIO;
	} while (try_again(full, rc));
	if (rc != 0)
		return rc;
	qlog_gone_opened();
	if ((flags & QC_OPEN_CREATE) == 0 && !serving())
		qlog_io_drop_cached(FileGetRawDesc(file));
	*handle = (QcHandle) file;
	return 0;
}

static void
io_close(void *context, QcHandle handle)
{
	(void) context;
	FileClose((File) handle);
}

static int
io_read(void *context, QcHandle handle, void *buf, size_t len, uint64_t position, size_t *done)
{
	int			fd = raw_descriptor(handle);

	(void) context;
	*done = 0;
	if (fd < 0)
		return errno;
	if (qlog_fault(QLOG_FAULT_READ) != 0)
		return qlog_fault(QLOG_FAULT_READ);
	while (*done < len)
	{
		ssize_t		n;

		pgstat_report_wait_start(QLOG_WAIT_EVENT("QlogRead"));
		n = pread(fd, (char *) buf + *done, len - *done, (off_t) (position + *done));
		pgstat_report_wait_end();
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0)
			break;
		*done += (size_t) n;
	}
	return 0;
}

/* Take `done` bytes off the front of the vector; returns the first piece that is left. */
static int
advance(struct iovec *iov, int first, int n, size_t done)
{
	while (first < n && done >= iov[first].iov_len)
		done -= iov[first++].iov_len;
	if (first < n)
	{
		iov[first].iov_base = (char *) iov[first].iov_base + done;
		iov[first].iov_len -= done;
	}
	return first;
}

/* Write a whole vector of at most PG_IOV_MAX pieces. */
static int
write_vector(int fd, struct iovec *iov, int n, off_t position)
{
	int			first = 0;

	while (first < n)
	{
		ssize_t		done;

		errno = 0;
		pgstat_report_wait_start(QLOG_WAIT_EVENT("QlogWrite"));
		done = pg_pwritev(fd, iov + first, n - first, position);
		pgstat_report_wait_end();
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return errno != 0 ? errno : ENOSPC;
		position += done;
		first = advance(iov, first, n, (size_t) done);
	}
	return 0;
}

/*
 * The error that a test has ordered for this write, 0 = none.  A write that lacks room has done a part; *nslices says
 * which.
 */
static int
write_fault(QcHandle handle, const QcIoSlice *slices, int *nslices, uint64_t position)
{
	uint64_t	end = position;

	if (qlog_fault(QLOG_FAULT_WRITE) != 0)
	{
		*nslices = 0;
		return qlog_fault(QLOG_FAULT_WRITE);
	}
	if (qlog_fault(QLOG_FAULT_EXTEND) == 0)
		return 0;
	for (int i = 0; i < *nslices; i++)
		end += slices[i].len;
	if (end <= (uint64_t) FileSize((File) handle) ||
		qlog_fault_need(QLOG_FAULT_EXTEND, end - (uint64_t) FileSize((File) handle)) == 0)
		return 0;
	*nslices /= 2;
	return qlog_fault(QLOG_FAULT_EXTEND);
}

static int
write_slices(QcHandle handle, const QcIoSlice *slices, int nslices, uint64_t position)
{
	int			fd = raw_descriptor(handle);
	int			fault;

	if (fd < 0)
		return errno;
	fault = write_fault(handle, slices, &nslices, position);
	for (int i = 0; i < nslices;)
	{
		struct iovec iov[PG_IOV_MAX];
		size_t		total = 0;
		int			n = 0;
		int			rc;

		for (; i < nslices && n < PG_IOV_MAX; i++)
		{
			if (slices[i].len == 0)
				continue;
			iov[n].iov_base = (void *) (uintptr_t) slices[i].bytes;
			iov[n++].iov_len = slices[i].len;
			total += slices[i].len;
		}
		rc = write_vector(fd, iov, n, (off_t) position);
		if (rc != 0)
			return rc;
		position += total;
	}
	return fault;
}

static int
io_write(void *context, QcHandle handle, const QcIoSlice *slices, int nslices, uint64_t position)
{
	int			rc;

	(void) context;
	do
		rc = write_slices(handle, slices, nslices, position);
	while (write_again(handle, rc));
	return rc;
}

/* Nobody may go on after a failed sync, see qlog_io.h. */
static int
synced(int rc, const char *path)
{
	QcError		err;

	if (rc == 0 || data_sync_retry || !serving())
		return rc;
	(void) qc_error_sys(&err, rc, path, "could not sync");
	qlog_report(PANIC, &err, "could not sync the log");
	return rc;
}

static int
io_sync(void *context, QcHandle handle)
{
	int			fd = raw_descriptor(handle);
	int			rc;

	(void) context;
	if (fd < 0)
		return errno;
	rc = qlog_fault(QLOG_FAULT_SYNC);
	pgstat_report_wait_start(QLOG_WAIT_EVENT("QlogSync"));
	if (rc == 0 && pg_fdatasync(fd) != 0)
		rc = errno;
	pgstat_report_wait_end();
	return synced(rc, FilePathName((File) handle));
}

static int
io_size(void *context, QcHandle handle, uint64_t *size)
{
	off_t		n = FileSize((File) handle);

	(void) context;
	if (n < 0)
		return errno;
	*size = (uint64_t) n;
	return 0;
}

static int
io_truncate(void *context, QcHandle handle, uint64_t size)
{
	int			fd = raw_descriptor(handle);

	(void) context;
	if (fd < 0)
		return errno;
	if (qlog_fault(QLOG_FAULT_TRUNCATE) != 0)
		return qlog_fault(QLOG_FAULT_TRUNCATE);
	return ftruncate(fd, (off_t) size) == 0 ? 0 : errno;
}

static int
io_make_directory(void *context, const char *path)
{
	char		full[MAXPGPATH];
	int			rc;

	if (!absolute(full, context, path))
		return ENAMETOOLONG;
	do
	{
		rc = create_fault(full);
		if (rc == 0 && MakePGDirectory(full) != 0)
			rc = errno;
	} while (try_again(full, rc));
	return rc;
}

static int
sync_absolute(const char *full)
{
	int			fd = BasicOpenFile(full, O_RDONLY | PG_BINARY);
	int			rc;

	if (fd < 0)
		return errno;
	rc = qlog_fault(QLOG_FAULT_SYNC);
	if (rc == 0 && pg_fsync(fd) != 0)
		rc = errno;
	close(fd);
	return synced(rc, full);
}

static int
io_sync_directory(void *context, const char *path)
{
	char		full[MAXPGPATH];

	return absolute(full, context, path) ? sync_absolute(full) : ENAMETOOLONG;
}

/* Is this name a directory?  A symbolic link is none. */
static bool
is_directory(const char *directory, const struct dirent *entry)
{
	char		full[MAXPGPATH * 2];
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	snprintf(full, sizeof(full), "%s/%s", directory, entry->d_name);
	return lstat(full, &st) == 0 && S_ISDIR(st.st_mode);
}

static int
io_list(void *context, const char *path, QcNameVisitor visit, void *visit_context)
{
	char		full[MAXPGPATH];
	DIR		   *dir;
	int			rc = 0;

	if (!absolute(full, context, path))
		return ENAMETOOLONG;
	if (!AcquireExternalFD())
		return errno;
	dir = opendir(full);
	if (dir == NULL)
		rc = errno;
	while (dir != NULL)
	{
		struct dirent *entry;

		errno = 0;
		entry = readdir(dir);
		if (entry == NULL)
		{
			rc = errno;
			break;
		}
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (!visit(visit_context, entry->d_name, is_directory(full, entry)))
			break;
	}
	if (dir != NULL)
		closedir(dir);
	ReleaseExternalFD();
	return rc;
}

static int
io_rename(void *context, const char *from, const char *to)
{
	char		full_from[MAXPGPATH];
	char		full_to[MAXPGPATH];
	int			rc;

	if (!absolute(full_from, context, from) || !absolute(full_to, context, to))
		return ENAMETOOLONG;
	do
	{
		rc = qlog_fault_need(QLOG_FAULT_RENAME, CREATE_BYTES);
		if (rc == 0 && rename(full_from, full_to) != 0)
			rc = errno;
	} while (try_again(full_to, rc));
	return rc;
}

static int
io_unlink(void *context, const char *path)
{
	char		full[MAXPGPATH];

	if (!absolute(full, context, path))
		return ENAMETOOLONG;
	if (qlog_fault(QLOG_FAULT_UNLINK) != 0)
		return qlog_fault(QLOG_FAULT_UNLINK);
	return unlink(full) == 0 ? 0 : errno;
}

static int
io_remove_directory(void *context, const char *path)
{
	char		full[MAXPGPATH];

	if (!absolute(full, context, path))
		return ENAMETOOLONG;
	if (qlog_fault(QLOG_FAULT_UNLINK) != 0)
		return qlog_fault(QLOG_FAULT_UNLINK);
	return rmdir(full) == 0 ? 0 : errno;
}

/* The table below a root, which stays. */
static QcIo
table_below(const char *root)
{
	return (QcIo)
	{
		.context = (void *) (uintptr_t) root,
			.open = io_open,
			.close = io_close,
			.read = io_read,
			.write = io_write,
			.sync = io_sync,
			.size = io_size,
			.truncate = io_truncate,
			.make_directory = io_make_directory,
			.sync_directory = io_sync_directory,
			.list = io_list,
			.rename = io_rename,
			.unlink = io_unlink,
			.remove_directory = io_remove_directory
	};
}

const QcIo *
qlog_io(void)
{
	static QcMounts mounts;
	static QcIo base;
	static QcIo sites[QC_SITES];

	if (mounts.base != NULL)
		return &mounts.io;
	base = table_below(qlog_directory());
	qc_mounts_init(&mounts, &base);
	for (QcSite site = 0; site < QC_SITES; site++)
	{
		char		prefix[QC_PATH_MAX];

		if (qlog_site(site)[0] == '\0')
			continue;
		sites[site] = table_below(qlog_site(site));
		qc_site_prefix((QcLayout) qlog_directory_layout, site, prefix);
		qc_mounts_add(&mounts, prefix, &sites[site]);
	}
	return &mounts.io;
}

#ifdef HAVE_SYNCFS

/* It does from Linux 5.8 on. */
bool
qlog_io_syncfs_reliable(void)
{
	static int	known = -1;
	struct utsname name;
	int			major = 0;
	int			minor = 0;

	if (known < 0)
		known = uname(&name) == 0 && strcmp(name.sysname, "Linux") == 0 &&
			sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
			(major > 5 || (major == 5 && minor >= 8));
	return known == 1;
}

static int
sync_file_system(const char *directory)
{
	int			fd = BasicOpenFile(directory, O_RDONLY | PG_BINARY);
	int			rc;

	if (fd < 0)
		return errno;
	pgstat_report_wait_start(QLOG_WAIT_EVENT("QlogSync"));
	rc = syncfs(fd) == 0 ? 0 : errno;
	pgstat_report_wait_end();
	close(fd);
	return rc;
}

/* The checkpoint's site holds no log. */
int
qlog_io_syncfs(void)
{
	const char *journal = qlog_site(QC_SITE_JOURNAL);
	int			rc;

	if (!enableFsync)
		return 0;
	if (!qlog_io_syncfs_reliable())
		return ENOSYS;
	if (qlog_fault(QLOG_FAULT_SYNC) != 0)
		return qlog_fault(QLOG_FAULT_SYNC);
	rc = sync_file_system(qlog_directory());
	return rc == 0 && journal[0] != '\0' ? sync_file_system(journal) : rc;
}

#else

bool
qlog_io_syncfs_reliable(void)
{
	return false;
}

int
qlog_io_syncfs(void)
{
	return ENOSYS;
}

#endif

/* Take a lock file, made when it is not there, for as long as the process lives. */
static int
lock_file(const char *path, int *fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (*fd < 0)
	{
		ReserveExternalFD();
		do
			*fd = BasicOpenFile(path, O_RDWR | O_CREAT | PG_BINARY);
		while (*fd < 0 && try_again(path, errno));
		if (*fd < 0)
		{
			int			rc = errno;

			ReleaseExternalFD();
			return rc;
		}
	}
	if (fcntl(*fd, F_SETLK, &lock) == 0)
		return 0;
	return errno == EACCES ? EAGAIN : errno;
}

int
qlog_io_lock(void)
{
	static int	fd = -1;
	char		path[MAXPGPATH];

	if (!absolute(path, qlog_directory(), "LOCK"))
		return ENAMETOOLONG;
	return lock_file(path, &fd);
}

int
qlog_io_lock_sites(const char **which)
{
	static const char *const names[QC_SITES] = {"q0.LOCK", "store.LOCK"};
	static int	fds[QC_SITES] = {-1, -1};
	int			rc = 0;

	for (QcSite site = 0; site < QC_SITES && rc == 0; site++)
	{
		char		path[MAXPGPATH];

		*which = qlog_site(site);
		if (*which[0] != '\0')
			rc = absolute(path, *which, names[site]) ? lock_file(path, &fds[site]) : ENAMETOOLONG;
	}
	return rc;
}

/* Make a directory unless it is there, durably, and check that nobody else can get at it. */
static int
make_private(const char *path)
{
	char		parent[MAXPGPATH];
	struct stat st;

	if (MakePGDirectory(path) == 0)
	{
		strlcpy(parent, path, sizeof(parent));
		get_parent_directory(parent);
		return sync_absolute(parent);
	}
	if (errno != EEXIST)
		return errno;
	if (stat(path, &st) != 0)
		return errno;
	if (!S_ISDIR(st.st_mode))
		return ENOTDIR;
	if (st.st_uid != geteuid() || (st.st_mode & PG_MODE_MASK_GROUP) != 0)
		return EPERM;
	return 0;
}

int
qlog_io_make_root(const char **which)
{
	char		identity[MAXPGPATH];
	struct stat st;
	bool		made;
	int			rc;

	*which = qlog_directory();
	rc = make_private(*which);
	made = rc == 0 && absolute(identity, *which, "IDENTITY") && lstat(identity, &st) == 0;
	for (QcSite site = 0; site < QC_SITES && rc == 0; site++)
	{
		*which = qlog_site(site);
		if (*which[0] == '\0')
			continue;

		/* One that has been made before and is not there may be on a disk that is not mounted. */
		rc = made && stat(*which, &st) != 0 ? errno : make_private(*which);
	}
	return rc;
}
