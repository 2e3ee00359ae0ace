/*
 * disk_use.h
 *		Short ways to use a simulated disk, for its tests.  Each opens and closes the file.
 */
#ifndef DISK_USE_H
#define DISK_USE_H

#include "../sim/sim_disk.h"

/* Write to a file, which is made when it is not there; sync it when sync is set.  0 or errno. */
extern int	write_at(SimDisk *disk, const char *path, uint64_t position, const void *bytes,
					 size_t len, bool sync);
extern int	sync_file(SimDisk *disk, const char *path);
extern int	truncate_file(SimDisk *disk, const char *path, uint64_t size);

/* The whole file into buf (zeros above its end); its size, or -1 when there is none. */
extern int64_t read_file(SimDisk *disk, const char *path, void *buf, size_t cap);
extern bool exists(SimDisk *disk, const char *path);

/* Sync the root directory. */
extern int	sync_root(SimDisk *disk);

/* A disk with one durable file "f" of len bytes, all of them fill. */
extern SimDisk *disk_with_file(uint64_t seed, size_t len, char fill);

#endif							/* DISK_USE_H */
