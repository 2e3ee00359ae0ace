/*
 * test_io.c
 *		The I/O table over POSIX, and the rules that it and the simulated disk share.
 */
#define _GNU_SOURCE
#include "../sim/sim_disk.h"
#include "qc_io_posix.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* A table under test, in an empty directory; for POSIX also where that is. */
typedef struct Place
{
	const QcIo *io;
	QcIoPosix	posix;
	SimDisk    *disk;
	char		root[64];
} Place;

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void) st;
	(void) flag;
	(void) ftw;
	return remove(path);
}

static void
posix_begin(Place *place)
{
	memset(place, 0, sizeof(*place));
	strcpy(place->root, "/tmp/qlog-unit-io-XXXXXX");
	if (mkdtemp(place->root) == NULL || qc_io_posix_open(&place->posix, place->root) != 0)
		abort();
	place->io = &place->posix.io;
}

static void
posix_end(Place *place)
{
	qc_io_posix_close(&place->posix);
	(void) nftw(place->root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static QcHandle
must_open(const QcIo *io, const char *path, int flags)
{
	QcHandle	handle = -1;

	CHECK_U64(io->open(io->context, path, flags, &handle), 0);
	return handle;
}

static int
write_text(const QcIo *io, QcHandle handle, const char *text, uint64_t position)
{
	QcIoSlice	slice = {text, strlen(text)};

	return io->write(io->context, handle, &slice, 1, position);
}

/* Make a file with this text. */
static void
make_file(const QcIo *io, const char *path, const char *text)
{
	QcHandle	handle = must_open(io, path, QC_OPEN_WRITE | QC_OPEN_CREATE);

	CHECK_U64(write_text(io, handle, text, 0), 0);
	io->close(io->context, handle);
}

static void
check_text(const QcIo *io, const char *path, const char *text)
{
	char		buf[200];
	size_t		done;
	QcHandle	handle = must_open(io, path, 0);

	CHECK_U64(io->read(io->context, handle, buf, sizeof(buf), 0, &done), 0);
	CHECK_BYTES(buf, done, text, strlen(text));
	io->close(io->context, handle);
}

typedef struct Names
{
	int			files;
	int			directories;
	int			limit;
	char		all[8][64];
} Names;

static bool
note_name(void *context, const char *name, bool is_directory)
{
	Names	   *names = context;

	snprintf(names->all[(names->files + names->directories) % 8], 64, "%s", name);
	*(is_directory ? &names->directories : &names->files) += 1;
	return names->limit == 0 || names->files + names->directories < names->limit;
}

/* ---- what every implementation must do ---- */

static void
share_read_write(const QcIo *io)
{
	QcHandle	handle = must_open(io, "a", QC_OPEN_WRITE | QC_OPEN_CREATE);
	QcIoSlice	slices[3] = {{"one", 3}, {NULL, 0}, {"two", 3}};
	char		buf[32];
	uint64_t	size;
	size_t		done;

	CHECK_U64(io->write(io->context, handle, slices, 3, 5), 0);
	CHECK_U64(io->size(io->context, handle, &size), 0);
	CHECK_U64(size, 11);
	CHECK_U64(io->read(io->context, handle, buf, sizeof(buf), 3, &done), 0);
	CHECK_BYTES(buf, done, "\0\0onetwo", 8);
	CHECK_U64(io->read(io->context, handle, buf, sizeof(buf), 11, &done), 0);
	CHECK_U64(done, 0);
	CHECK_U64(io->read(io->context, handle, buf, sizeof(buf), 1000, &done), 0);
	CHECK_U64(done, 0);
	CHECK_U64(io->sync(io->context, handle), 0);
	CHECK_U64(io->truncate(io->context, handle, 7), 0);
	CHECK_U64(io->truncate(io->context, handle, 9), 0);
	CHECK_U64(io->read(io->context, handle, buf, sizeof(buf), 4, &done), 0);
	CHECK_BYTES(buf, done, "\0on\0\0", 5);
	CHECK_U64(io->write(io->context, handle, slices, 3, UINT64_MAX - 2), EINVAL);
	CHECK_U64(io->write(io->context, handle, slices, 0, 0), 0);
	io->close(io->context, handle);
}

static void
share_open_modes(const QcIo *io)
{
	QcHandle	handle = -1;

	CHECK_U64(io->open(io->context, "a", 0, &handle), ENOENT);
	CHECK_U64(io->open(io->context, "a", QC_OPEN_WRITE, &handle), ENOENT);
	make_file(io, "a", "text");
	CHECK_U64(io->open(io->context, "a", QC_OPEN_WRITE | QC_OPEN_CREATE, &handle), EEXIST);
	handle = must_open(io, "a", 0);
	CHECK_U64(write_text(io, handle, "x", 0), EBADF);
	CHECK(io->truncate(io->context, handle, 0) != 0);
	CHECK_U64(io->sync(io->context, handle), 0);
	io->close(io->context, handle);
	check_text(io, "a", "text");
	CHECK_U64(io->make_directory(io->context, "d"), 0);
	CHECK_U64(io->open(io->context, "d", 0, &handle), EISDIR);
	CHECK_U64(io->open(io->context, "d", QC_OPEN_WRITE, &handle), EISDIR);
	CHECK_U64(io->open(io->context, "a/b", 0, &handle), ENOTDIR);
	CHECK_U64(io->open(io->context, "e/b", 0, &handle), ENOENT);
}

static void
share_names(const QcIo *io)
{
	Names		names = {0};

	CHECK_U64(io->make_directory(io->context, "d"), 0);
	CHECK_U64(io->make_directory(io->context, "d"), EEXIST);
	CHECK_U64(io->make_directory(io->context, "d/e"), 0);
	make_file(io, "d/a", "A");
	make_file(io, "d/b", "B");
	CHECK_U64(io->rename(io->context, "d/a", "d/b"), 0);
	check_text(io, "d/b", "A");
	CHECK_U64(io->rename(io->context, "d/a", "d/b"), ENOENT);
	CHECK_U64(io->rename(io->context, "d/b", "b"), EXDEV);
	CHECK_U64(io->rename(io->context, "d/b", "d/e"), EISDIR);
	CHECK_U64(io->rename(io->context, "d/e", "d/b"), ENOTDIR);
	CHECK_U64(io->list(io->context, "d", note_name, &names), 0);
	CHECK_U64(names.files, 1);
	CHECK_U64(names.directories, 1);
	CHECK_U64(io->list(io->context, "x", note_name, &names), ENOENT);
	CHECK_U64(io->list(io->context, "d/b", note_name, &names), ENOTDIR);
	CHECK_U64(io->unlink(io->context, "d/e"), EISDIR);
	CHECK_U64(io->remove_directory(io->context, "d/b"), ENOTDIR);
	CHECK_U64(io->remove_directory(io->context, "d"), ENOTEMPTY);
	CHECK_U64(io->sync_directory(io->context, "d"), 0);
	CHECK_U64(io->sync_directory(io->context, ""), 0);
	CHECK_U64(io->sync_directory(io->context, "x"), ENOENT);
	CHECK_U64(io->unlink(io->context, "d/b"), 0);
	CHECK_U64(io->unlink(io->context, "d/b"), ENOENT);
	CHECK_U64(io->remove_directory(io->context, "d/e"), 0);
	CHECK_U64(io->remove_directory(io->context, "d"), 0);
}

static void
share_rename_directory(const QcIo *io)
{
	CHECK_U64(io->make_directory(io->context, "q1"), 0);
	make_file(io, "q1/r", "text");
	CHECK_U64(io->rename(io->context, "q1", "q1.dead"), 0);
	check_text(io, "q1.dead/r", "text");
	CHECK_U64(io->make_directory(io->context, "q2"), 0);
	CHECK_U64(io->rename(io->context, "q2", "q1.dead"), ENOTEMPTY);
	CHECK_U64(io->rename(io->context, "q1.dead", "q2"), 0);
	check_text(io, "q2/r", "text");
}

static void
share_list_stops(const QcIo *io)
{
	Names		names = {.limit = 2};

	make_file(io, "a", "");
	make_file(io, "b", "");
	make_file(io, "c", "");
	CHECK_U64(io->list(io->context, "", note_name, &names), 0);
	CHECK_U64(names.files, 2);
	CHECK(strcmp(names.all[0], names.all[1]) != 0);
}

static void
share_unlinked_file_lives(const QcIo *io)
{
	QcHandle	handle = must_open(io, "a", QC_OPEN_WRITE | QC_OPEN_CREATE);
	char		buf[4];
	size_t		done;

	CHECK_U64(write_text(io, handle, "text", 0), 0);
	CHECK_U64(io->unlink(io->context, "a"), 0);
	CHECK_U64(io->sync_directory(io->context, ""), 0);
	CHECK_U64(io->read(io->context, handle, buf, 4, 0, &done), 0);
	CHECK_BYTES(buf, done, "text", 4);
	io->close(io->context, handle);
}

static void
share_bad_paths(const QcIo *io)
{
	static const char *const paths[] = {"/a", "a//b", "a/", ".", "..", "a/../b", "./a", "../a", "d/.."};
	QcHandle	handle;

	CHECK_U64(io->make_directory(io->context, "a"), 0);
	CHECK_U64(io->make_directory(io->context, "d"), 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
	{
		CHECK_U64(io->open(io->context, paths[i], QC_OPEN_WRITE | QC_OPEN_CREATE, &handle), EINVAL);
		CHECK_U64(io->make_directory(io->context, paths[i]), EINVAL);
		CHECK_U64(io->unlink(io->context, paths[i]), EINVAL);
		CHECK_U64(io->sync_directory(io->context, paths[i]), EINVAL);
	}
	CHECK(io->open(io->context, "", 0, &handle) != 0);
	CHECK_U64(io->rename(io->context, "d", ".."), EINVAL);
}

typedef struct SharedTest
{
	const char *name;
	void		(*run) (const QcIo *io);
} SharedTest;

static const SharedTest shared_tests[] = {
	{"reads and writes", share_read_write},
	{"open modes", share_open_modes},
	{"names", share_names},
	{"rename of a directory", share_rename_directory},
	{"a list that is stopped", share_list_stops},
	{"an unlinked file lives while it is open", share_unlinked_file_lives},
	{"bad paths", share_bad_paths},
};

static void
run_on_posix(const void *argument)
{
	const SharedTest *test = argument;
	Place		place;

	posix_begin(&place);
	test->run(place.io);
	posix_end(&place);
}

static void
run_on_sim(const void *argument)
{
	const SharedTest *test = argument;
	SimDisk    *disk = sim_disk_new(1);

	test->run(sim_disk_io(disk));
	CHECK_U64(sim_disk_handles(disk), 0);
	sim_disk_free(disk);
}

/* ---- what only POSIX has ---- */

static void
test_symbolic_links_are_not_followed(void)
{
	Place		place;
	char		path[128];
	char		target[128];
	QcHandle	handle;
	Names		names = {0};
	const QcIo *io;

	posix_begin(&place);
	io = place.io;
	CHECK_U64(io->make_directory(io->context, "real"), 0);
	make_file(io, "real/file", "text");
	snprintf(target, sizeof(target), "%s/real", place.root);
	snprintf(path, sizeof(path), "%s/link", place.root);
	CHECK_U64(symlink(target, path), 0);
	snprintf(path, sizeof(path), "%s/flink", place.root);
	CHECK_U64(symlink("real/file", path), 0);

	CHECK_U64(io->open(io->context, "link/file", 0, &handle), ENOTDIR);
	CHECK_U64(io->open(io->context, "flink", 0, &handle), ELOOP);
	CHECK_U64(io->open(io->context, "flink", QC_OPEN_WRITE | QC_OPEN_CREATE, &handle), EEXIST);
	CHECK_U64(io->list(io->context, "link", note_name, &names), ENOTDIR);
	CHECK_U64(io->sync_directory(io->context, "link"), ENOTDIR);
	CHECK_U64(io->unlink(io->context, "link/file"), ENOTDIR);
	CHECK_U64(io->list(io->context, "", note_name, &names), 0);
	CHECK_U64(names.directories, 1);	/* a link is none */
	CHECK_U64(names.files, 2);
	CHECK_U64(io->unlink(io->context, "flink"), 0);
	check_text(io, "real/file", "text");
	posix_end(&place);
}

static void
test_root_may_be_a_link(void)
{
	Place		place;
	QcIoPosix	second;
	char		link[128];

	posix_begin(&place);
	make_file(place.io, "a", "text");
	snprintf(link, sizeof(link), "%s.link", place.root);
	CHECK_U64(symlink(place.root, link), 0);
	CHECK_U64(qc_io_posix_open(&second, link), 0);
	check_text(&second.io, "a", "text");
	qc_io_posix_close(&second);
	CHECK_U64(unlink(link), 0);
	CHECK_U64(qc_io_posix_open(&second, link), ENOENT);
	snprintf(link, sizeof(link), "%s/a", place.root);
	CHECK_U64(qc_io_posix_open(&second, link), ENOTDIR);
	posix_end(&place);
}

static void
test_modes_and_flags(void)
{
	Place		place;
	struct stat st;
	QcHandle	handle;
	char		path[128];

	posix_begin(&place);
	handle = must_open(place.io, "a", QC_OPEN_WRITE | QC_OPEN_CREATE);
	CHECK_U64(fstat(handle, &st), 0);
	CHECK_U64(st.st_mode & 0777, 0600);
	CHECK(fcntl(handle, F_GETFD) & FD_CLOEXEC);
	CHECK(fcntl(place.posix.root, F_GETFD) & FD_CLOEXEC);
	place.io->close(place.io->context, handle);
	CHECK_U64(place.io->make_directory(place.io->context, "d"), 0);
	snprintf(path, sizeof(path), "%s/d", place.root);
	CHECK_U64(stat(path, &st), 0);
	CHECK_U64(st.st_mode & 0777, 0700);
	posix_end(&place);
}

static void
test_fifo_is_refused(void)
{
	Place		place;
	QcHandle	handle;
	char		path[128];

	posix_begin(&place);
	snprintf(path, sizeof(path), "%s/fifo", place.root);
	CHECK_U64(mkfifo(path, 0600), 0);
	CHECK_U64(place.io->open(place.io->context, "fifo", 0, &handle), EINVAL);
	CHECK_U64(place.io->open(place.io->context, "fifo", QC_OPEN_WRITE, &handle), EINVAL);
	posix_end(&place);
}

/* More slices than one system call takes. */
static void
test_many_slices(void)
{
	Place		place;
	QcHandle	handle;
	static char bytes[3000];
	static char back[4000];
	QcIoSlice	slices[1500];
	size_t		done;

	posix_begin(&place);
	for (int i = 0; i < 1500; i++)
	{
		bytes[2 * i] = (char) ('a' + i % 26);
		bytes[2 * i + 1] = (char) ('0' + i % 10);
		slices[i] = (QcIoSlice) {bytes + 2 * i, 2};
	}
	handle = must_open(place.io, "a", QC_OPEN_WRITE | QC_OPEN_CREATE);
	CHECK_U64(place.io->write(place.io->context, handle, slices, 1500, 7), 0);
	CHECK_U64(place.io->read(place.io->context, handle, back, sizeof(back), 7, &done), 0);
	CHECK_BYTES(back, done, bytes, sizeof(bytes));
	place.io->close(place.io->context, handle);
	posix_end(&place);
}

/*
 * Instead of the C library's: while `chop` is set, each call writes at most that many bytes, and
 * every third one is interrupted.
 */
static size_t chop;
static int	chopped_calls;

ssize_t
pwritev(int fd, const struct iovec *iov, int niov, off_t position)
{
	if (chop == 0)
		return syscall(SYS_pwritev, fd, iov, niov, position, 0);
	if (++chopped_calls % 3 == 0)
	{
		errno = EINTR;
		return -1;
	}
	return pwrite(fd, iov->iov_base, iov->iov_len < chop ? iov->iov_len : chop, position);
}

static void
test_short_writes_are_continued(void)
{
	Place		place;
	QcHandle	handle;
	QcIoSlice	slices[4] = {{"0123456789", 10}, {"", 0}, {"abc", 3}, {"defghijklmnop", 13}};

	posix_begin(&place);
	handle = must_open(place.io, "a", QC_OPEN_WRITE | QC_OPEN_CREATE);
	for (chop = 1; chop <= 14; chop++)
	{
		int			before = chopped_calls;

		CHECK_U64(place.io->truncate(place.io->context, handle, 0), 0);
		CHECK_U64(place.io->write(place.io->context, handle, slices, 4, 0), 0);
		check_text(place.io, "a", "0123456789abcdefghijklmnop");
		CHECK(chopped_calls > before + 2);
	}
	chop = 0;
	place.io->close(place.io->context, handle);
	posix_end(&place);
}

/* The same for reading. */
ssize_t
pread(int fd, void *buf, size_t len, off_t position)
{
	if (chop > 0 && ++chopped_calls % 3 == 0)
	{
		errno = EINTR;
		return -1;
	}
	return syscall(SYS_pread64, fd, buf, chop > 0 && len > chop ? chop : len, position);
}

static void
test_short_reads_are_continued(void)
{
	Place		place;
	QcHandle	handle;
	char		buf[40];
	size_t		done;

	posix_begin(&place);
	make_file(place.io, "a", "0123456789abcdefghijklmnop");
	handle = must_open(place.io, "a", 0);
	for (chop = 1; chop <= 14; chop++)
	{
		int			before = chopped_calls;

		CHECK_U64(place.io->read(place.io->context, handle, buf, 20, 3, &done), 0);
		CHECK_BYTES(buf, done, "3456789abcdefghijklm", 20);
		CHECK_U64(place.io->read(place.io->context, handle, buf, sizeof(buf), 3, &done), 0);
		CHECK_BYTES(buf, done, "3456789abcdefghijklmnop", 23);
		CHECK(chopped_calls > before + 4);
	}
	chop = 0;
	place.io->close(place.io->context, handle);
	posix_end(&place);
}

int
main(void)
{
	char		name[128];

	for (size_t i = 0; i < sizeof(shared_tests) / sizeof(shared_tests[0]); i++)
	{
		snprintf(name, sizeof(name), "posix: %s", shared_tests[i].name);
		unit_run_with(name, run_on_posix, &shared_tests[i]);
		snprintf(name, sizeof(name), "simulated: %s", shared_tests[i].name);
		unit_run_with(name, run_on_sim, &shared_tests[i]);
	}
	UNIT_RUN(test_symbolic_links_are_not_followed);
	UNIT_RUN(test_root_may_be_a_link);
	UNIT_RUN(test_modes_and_flags);
	UNIT_RUN(test_fifo_is_refused);
	UNIT_RUN(test_many_slices);
	UNIT_RUN(test_short_writes_are_continued);
	UNIT_RUN(test_short_reads_are_continued);
	return unit_end();
}
