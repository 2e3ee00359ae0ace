/*
 * disk_use.c
 *		Short ways to use a simulated disk.
 */
#include "disk_use.h"

#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
write_at(SimDisk *disk, const char *path, uint64_t position, const void *bytes, size_t len,
		 bool sync)
{
	const QcIo *io = sim_disk_io(disk);
	QcIoSlice	slice = {bytes, len};
	QcHandle	handle;
	int			error = io->open(io->context, path, QC_OPEN_WRITE, &handle);

	if (error == ENOENT)
		error = io->open(io->context, path, QC_OPEN_WRITE | QC_OPEN_CREATE, &handle);
	if (error != 0)
		return error;
	error = io->write(io->context, handle, &slice, 1, position);
	if (error == 0 && sync)
		error = io->sync(io->context, handle);
	io->close(io->context, handle);
	return error;
}

int
sync_file(SimDisk *disk, const char *path)
{
	const QcIo *io = sim_disk_io(disk);
	QcHandle	handle;
	int			error = io->open(io->context, path, 0, &handle);

	if (error != 0)
		return error;
	error = io->sync(io->context, handle);
	io->close(io->context, handle);
	return error;
}

int
truncate_file(SimDisk *disk, const char *path, uint64_t size)
{
	const QcIo *io = sim_disk_io(disk);
	QcHandle	handle;
	int			error = io->open(io->context, path, QC_OPEN_WRITE, &handle);

	if (error != 0)
		return error;
	error = io->truncate(io->context, handle, size);
	io->close(io->context, handle);
	return error;
}

int64_t
read_file(SimDisk *disk, const char *path, void *buf, size_t cap)
{
	const QcIo *io = sim_disk_io(disk);
	QcHandle	handle;
	uint64_t	size;
	size_t		done;

	memset(buf, 0, cap);
	if (io->open(io->context, path, 0, &handle) != 0)
		return -1;
	if (io->size(io->context, handle, &size) != 0 ||
		io->read(io->context, handle, buf, cap, 0, &done) != 0)
		abort();
	io->close(io->context, handle);
	return (int64_t) size;
}

bool
exists(SimDisk *disk, const char *path)
{
	uint8_t		byte;

	return read_file(disk, path, &byte, 1) >= 0;
}

int
sync_root(SimDisk *disk)
{
	return sim_disk_io(disk)->sync_directory(disk, "");
}

/* A disk with one durable file "f" of len bytes, all of them fill. */
SimDisk *
disk_with_file(uint64_t seed, size_t len, char fill)
{
	SimDisk    *disk = sim_disk_new(seed);
	char	   *bytes = malloc(len);

	if (bytes == NULL)
		abort();
	memset(bytes, fill, len);
	CHECK_U64(write_at(disk, "f", 0, bytes, len, true), 0);
	CHECK_U64(sync_root(disk), 0);
	free(bytes);
	return disk;
}
