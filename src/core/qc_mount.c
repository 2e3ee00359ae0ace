/*
 * qc_mount.c
 *		An I/O table that sends some paths to other tables.
 */
#include "qc_mount.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Is the path the mount's, by its name? */
static bool
covers(const char *prefix, const char *path)
{
	size_t		len = strlen(prefix);

	return strncmp(prefix, path, len) == 0 && (path[len] == '\0' || path[len] == '/' || path[len] == '.');
}

/* Where the last part of the prefix begins. */
static size_t
parent_length(const char *prefix)
{
	const char *slash = strrchr(prefix, '/');

	return slash == NULL ? 0 : (size_t) (slash + 1 - prefix);
}

/* Does the mount's name stand in this directory? */
static bool
stands_in(const QcMount *mount, const char *directory)
{
	size_t		len = parent_length(mount->prefix);

	if (len == 0)
		return directory[0] == '\0';
	return strlen(directory) == len - 1 && strncmp(mount->prefix, directory, len - 1) == 0;
}

/* The table that the path belongs to; *path becomes what it is called there. */
static const QcIo *
route(const QcMounts *self, const char **path)
{
	for (int i = 0; i < self->n; i++)
	{
		if (!covers(self->mounts[i].prefix, *path))
			continue;
		*path += parent_length(self->mounts[i].prefix);
		return self->mounts[i].io;
	}
	return self->base;
}

/* ---- paths ---- */

static int
mount_open(void *context, const char *path, int flags, QcHandle *handle)
{
	const QcIo *io = route(context, &path);

	return io->open(io->context, path, flags, handle);
}

static int
mount_make_directory(void *context, const char *path)
{
	const QcIo *io = route(context, &path);

	return io->make_directory(io->context, path);
}

static int
mount_unlink(void *context, const char *path)
{
	const QcIo *io = route(context, &path);

	return io->unlink(io->context, path);
}

static int
mount_remove_directory(void *context, const char *path)
{
	const QcIo *io = route(context, &path);

	return io->remove_directory(io->context, path);
}

static int
mount_rename(void *context, const char *from, const char *to)
{
	const QcIo *io = route(context, &from);

	if (route(context, &to) != io)
		return EXDEV;
	return io->rename(io->context, from, to);
}

static int
mount_sync_directory(void *context, const char *path)
{
	const QcMounts *self = context;
	const char *inside = path;
	const QcIo *io = route(self, &inside);
	int			rc = io->sync_directory(io->context, inside);
	bool		above = false;

	for (int i = 0; i < self->n && (rc == 0 || rc == ENOENT); i++)
	{
		const QcIo *mount = self->mounts[i].io;
		int			synced;

		if (!stands_in(&self->mounts[i], path))
			continue;
		above = true;
		synced = mount->sync_directory(mount->context, "");
		rc = synced == 0 ? rc : synced;
	}
	return rc == ENOENT && above ? 0 : rc;
}

/* ---- listing ---- */

typedef struct Listing
{
	const QcMounts *self;
	const char *directory;
	const QcMount *mount;		/* being listed, NULL = the base */
	QcNameVisitor visit;
	void	   *context;
	bool		stopped;
} Listing;

/* Does the name in the directory that is listed belong to this mount? */
static bool
is_of(const QcMount *mount, const Listing *listing, const char *name)
{
	return stands_in(mount, listing->directory) &&
		covers(mount->prefix + parent_length(mount->prefix), name);
}

static bool
visit_name(void *context, const char *name, bool is_directory)
{
	Listing    *listing = context;

	if (listing->mount != NULL && !is_of(listing->mount, listing, name))
		return true;
	for (int i = 0; i < listing->self->n && listing->mount == NULL; i++)
		if (is_of(&listing->self->mounts[i], listing, name))
			return true;
	listing->stopped = !listing->visit(listing->context, name, is_directory);
	return !listing->stopped;
}

static int
mount_list(void *context, const char *path, QcNameVisitor visit, void *visit_context)
{
	const QcMounts *self = context;
	Listing		listing = {.self = self, .directory = path, .visit = visit, .context = visit_context};
	const char *inside = path;
	const QcIo *io = route(self, &inside);
	int			rc;

	if (io != self->base)
		return io->list(io->context, inside, visit, visit_context);
	rc = io->list(io->context, path, visit_name, &listing);
	for (int i = 0; i < self->n && rc == 0 && !listing.stopped; i++)
	{
		listing.mount = &self->mounts[i];
		if (stands_in(listing.mount, path))
			rc = listing.mount->io->list(listing.mount->io->context, "", visit_name, &listing);
	}
	return rc;
}

/* ---- handles: any table understands them ---- */

static void
mount_close(void *context, QcHandle handle)
{
	const QcIo *base = ((const QcMounts *) context)->base;

	base->close(base->context, handle);
}

static int
mount_read(void *context, QcHandle handle, void *buf, size_t len, uint64_t position, size_t *done)
{
	const QcIo *base = ((const QcMounts *) context)->base;

	return base->read(base->context, handle, buf, len, position, done);
}

static int
mount_write(void *context, QcHandle handle, const QcIoSlice *slices, int nslices, uint64_t position)
{
	const QcIo *base = ((const QcMounts *) context)->base;

	return base->write(base->context, handle, slices, nslices, position);
}

static int
mount_sync(void *context, QcHandle handle)
{
	const QcIo *base = ((const QcMounts *) context)->base;

	return base->sync(base->context, handle);
}

static int
mount_size(void *context, QcHandle handle, uint64_t *size)
{
	const QcIo *base = ((const QcMounts *) context)->base;

	return base->size(base->context, handle, size);
}

static int
mount_truncate(void *context, QcHandle handle, uint64_t size)
{
	const QcIo *base = ((const QcMounts *) context)->base;

	return base->truncate(base->context, handle, size);
}

void
qc_mounts_init(QcMounts *self, const QcIo *base)
{
	memset(self, 0, sizeof(*self));
	self->base = base;
	self->io = (QcIo)
	{
		.context = self,
		.open = mount_open,
		.close = mount_close,
		.read = mount_read,
		.write = mount_write,
		.sync = mount_sync,
		.size = mount_size,
		.truncate = mount_truncate,
		.make_directory = mount_make_directory,
		.sync_directory = mount_sync_directory,
		.list = mount_list,
		.rename = mount_rename,
		.unlink = mount_unlink,
		.remove_directory = mount_remove_directory,
	};
}

void
qc_mounts_add(QcMounts *self, const char *prefix, const QcIo *io)
{
	QcMount    *mount = &self->mounts[self->n++];

	assert(self->n <= QC_MOUNTS_MAX);
	mount->io = io;
	(void) snprintf(mount->prefix, sizeof(mount->prefix), "%s", prefix);
}
