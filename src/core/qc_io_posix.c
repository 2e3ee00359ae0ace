/*
 * qc_io_posix.c
 *		The I/O table over plain POSIX calls.
 *
 * Guards three things: a short or interrupted system call is continued here and nowhere else; no
 * symbolic link below the root is followed; no descriptor leaks into a child process.  A handle is
 * the file descriptor itself.
 */
#define _GNU_SOURCE
#include "qc_io_posix.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define SLICES_PER_CALL	64

/* Length of the first part of path; 0 when it is empty, "." or "..", or too long for a name. */
static size_t
part_length(const char *path)
{
	size_t		len = strcspn(path, "/");

	if (len > NAME_MAX || (len == 1 && path[0] == '.') ||
		(len == 2 && path[0] == '.' && path[1] == '.'))
		return 0;
	return len;
}

/* openat that is repeated after a signal.  Returns 0 or an errno value. */
static int
open_at(int directory, const char *name, int flags, int *fd)
{
	do
		*fd = openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
	while (*fd < 0 && errno == EINTR);
	return *fd < 0 ? errno : 0;
}

/*
 * Walk to the directory that holds the last part of path.  *directory is a descriptor to be closed
 * by the caller, *name the last part, inside path.
 */
static int
open_parent(const QcIoPosix *self, const char *path, int *directory, const char **name)
{
	int			error = open_at(self->root, ".", O_RDONLY | O_DIRECTORY, directory);

	while (error == 0)
	{
		char		part[NAME_MAX + 1];
		size_t		len = part_length(path);
		int			next;

		if (len == 0)
			error = EINVAL;
		else if (path[len] == '\0')
		{
			*name = path;
			return 0;
		}
		else
		{
			memcpy(part, path, len);
			part[len] = '\0';
			error = open_at(*directory, part, O_RDONLY | O_DIRECTORY, &next);
		}
		close(*directory);
		if (error == 0)
			*directory = next;
		path += len + 1;
	}
	return error;
}

/* Open a directory below the root; "" is the root itself. */
static int
open_directory(const QcIoPosix *self, const char *path, int *fd)
{
	const char *name;
	int			parent;
	int			error;

	if (path[0] == '\0')
		return open_at(self->root, ".", O_RDONLY | O_DIRECTORY, fd);
	error = open_parent(self, path, &parent, &name);
	if (error != 0)
		return error;
	error = open_at(parent, name, O_RDONLY | O_DIRECTORY, fd);
	close(parent);
	return error;
}

/* Nothing but a regular file may stand behind a handle. */
static int
check_regular(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	return S_ISREG(st.st_mode) ? 0 : EINVAL;
}

/* A regular file below the root; never through a symbolic link. */
static int
posix_open(void *context, const char *path, int flags, QcHandle *handle)
{
	/* O_NONBLOCK: a stray fifo is refused below instead of being waited for */
	int			mode = (flags & QC_OPEN_WRITE ? O_RDWR : O_RDONLY) | O_NONBLOCK |
		(flags & QC_OPEN_CREATE ? O_CREAT | O_EXCL : 0);
	const char *name;
	int			parent;
	int			fd;
	int			error = open_parent(context, path, &parent, &name);

	if (error != 0)
		return error;
	error = open_at(parent, name, mode, &fd);
	close(parent);
	if (error != 0)
		return error;
	error = check_regular(fd);
	if (error != 0)
		close(fd);
	else
		*handle = fd;
	return error;
}

static void
posix_close(void *context, QcHandle handle)
{
	(void) context;
	assert(handle >= 0);
	close(handle);
}

static int
posix_read(void *context, QcHandle handle, void *buf, size_t len, uint64_t position, size_t *done)
{
	(void) context;
	*done = 0;
	if (position > INT64_MAX || len > INT64_MAX - position)
		return EINVAL;
	while (*done < len)
	{
		ssize_t		got = pread(handle, (uint8_t *) buf + *done, len - *done,
								(off_t) (position + *done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno;
		if (got == 0)
			break;
		*done += (size_t) got;
	}
	return 0;
}

/* Write all of the vector, which is used up on the way. */
static int
write_vector(int fd, struct iovec *iov, int niov, uint64_t position)
{
	while (niov > 0)
	{
		ssize_t		put;

		if (iov->iov_len == 0)
		{
			iov++;
			niov--;
			continue;
		}
		put = pwritev(fd, iov, niov, (off_t) position);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return errno;
		if (put == 0)
			return EIO;
		position += (uint64_t) put;
		while (niov > 0 && (size_t) put >= iov->iov_len)
		{
			put -= (ssize_t) iov->iov_len;
			iov++;
			niov--;
		}
		if (put > 0)
		{
			iov->iov_base = (uint8_t *) iov->iov_base + put;
			iov->iov_len -= (size_t) put;
		}
	}
	return 0;
}

/* Slices go out in groups, as one call takes only so many. */
static int
posix_write(void *context, QcHandle handle, const QcIoSlice *slices, int nslices, uint64_t position)
{
	struct iovec iov[SLICES_PER_CALL];

	(void) context;
	for (int next = 0; next < nslices;)
	{
		uint64_t	total = 0;
		int			niov = 0;
		int			error;

		for (; niov < SLICES_PER_CALL && next < nslices; next++, niov++)
		{
			iov[niov].iov_base = (void *) (uintptr_t) slices[next].bytes;
			iov[niov].iov_len = slices[next].len;
			if (slices[next].len > INT64_MAX - total)
				return EINVAL;
			total += slices[next].len;
		}
		if (position > INT64_MAX || total > INT64_MAX - position)
			return EINVAL;
		error = write_vector(handle, iov, niov, position);
		if (error != 0)
			return error;
		position += total;
	}
	return 0;
}

static int
posix_sync(void *context, QcHandle handle)
{
	(void) context;
	while (fdatasync(handle) != 0)
		if (errno != EINTR)
			return errno;
	return 0;
}

static int
posix_size(void *context, QcHandle handle, uint64_t *size)
{
	struct stat st;

	(void) context;
	if (fstat(handle, &st) != 0)
		return errno;
	*size = (uint64_t) st.st_size;
	return 0;
}

static int
posix_truncate(void *context, QcHandle handle, uint64_t size)
{
	(void) context;
	if (size > INT64_MAX)
		return EINVAL;
	while (ftruncate(handle, (off_t) size) != 0)
		if (errno != EINTR)
			return errno;
	return 0;
}

static int
posix_make_directory(void *context, const char *path)
{
	const char *name;
	int			parent;
	int			error = open_parent(context, path, &parent, &name);

	if (error != 0)
		return error;
	if (mkdirat(parent, name, 0700) != 0)
		error = errno;
	close(parent);
	return error;
}

static int
posix_sync_directory(void *context, const char *path)
{
	int			fd;
	int			error = open_directory(context, path, &fd);

	if (error != 0)
		return error;
	while (fsync(fd) != 0)
	{
		if (errno == EINTR)
			continue;
		error = errno;
		break;
	}
	close(fd);
	return error;
}

/* Is this entry a directory?  A symbolic link is not, and an entry that is gone is nothing. */
static bool
is_directory(int directory, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return fstatat(directory, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* The directory stays open while the visitor runs. */
static int
posix_list(void *context, const char *path, QcNameVisitor visit, void *visit_context)
{
	struct dirent *entry;
	DIR		   *stream;
	int			fd;
	int			error = open_directory(context, path, &fd);

	if (error != 0)
		return error;
	stream = fdopendir(fd);
	if (stream == NULL)
	{
		error = errno;
		close(fd);
		return error;
	}
	while (errno = 0, (entry = readdir(stream)) != NULL)
	{
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (!visit(visit_context, entry->d_name, is_directory(fd, entry)))
			break;
	}
	if (entry == NULL)
		error = errno;
	closedir(stream);
	return error;
}

/* Both names lie in one directory, as everywhere in the layout: EXDEV otherwise. */
static int
posix_rename(void *context, const char *from, const char *to)
{
	const char *to_slash = strrchr(to, '/');
	size_t		to_prefix = to_slash == NULL ? 0 : (size_t) (to_slash - to) + 1;
	const char *name;
	int			parent;
	int			error = open_parent(context, from, &parent, &name);

	if (error != 0)
		return error;
	if ((size_t) (name - from) != to_prefix || memcmp(from, to, to_prefix) != 0)
		error = EXDEV;
	else if (part_length(to + to_prefix) == 0)
		error = EINVAL;
	else if (renameat(parent, name, parent, to + to_prefix) != 0)
		error = errno;
	close(parent);
	return error;
}

/* Shared by unlink (flags 0) and remove_directory (AT_REMOVEDIR). */
static int
remove_name(const QcIoPosix *self, const char *path, int flags)
{
	const char *name;
	int			parent;
	int			error = open_parent(self, path, &parent, &name);

	if (error != 0)
		return error;
	if (unlinkat(parent, name, flags) != 0)
		error = errno;
	close(parent);
	return error;
}

static int
posix_unlink(void *context, const char *path)
{
	return remove_name(context, path, 0);
}

static int
posix_remove_directory(void *context, const char *path)
{
	return remove_name(context, path, AT_REMOVEDIR);
}

int
qc_io_posix_open(QcIoPosix *self, const char *directory)
{
	do
		self->root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (self->root < 0 && errno == EINTR);
	if (self->root < 0)
		return errno;
	self->io = (QcIo)
	{
		.context = self,
		.open = posix_open,
		.close = posix_close,
		.read = posix_read,
		.write = posix_write,
		.sync = posix_sync,
		.size = posix_size,
		.truncate = posix_truncate,
		.make_directory = posix_make_directory,
		.sync_directory = posix_sync_directory,
		.list = posix_list,
		.rename = posix_rename,
		.unlink = posix_unlink,
		.remove_directory = posix_remove_directory,
	};
	return 0;
}

void
qc_io_posix_close(QcIoPosix *self)
{
	assert(self->root >= 0);
	close(self->root);
	self->root = -1;
}
