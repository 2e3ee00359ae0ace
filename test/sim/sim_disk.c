/*
 * sim_disk.c
 *		The I/O table of the simulated disk: numbered steps, and the calls on files.
 *
 * A step is checked in this order: no power, power fails before it, planned error, ordinary
 * errors (no such file, no room), the change itself, power fails after it.
 */
#include "sim_disk_int.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_names[SIM_OP_COUNT] = {
#define SIM_OP_NAME(name, text) text,
	SIM_OP_LIST(SIM_OP_NAME)
#undef SIM_OP_NAME
};

int
sim_fault_due(SimDisk *disk, SimOp op)
{
	int			error = 0;

	disk->counts[op] += op == SIM_OP_READ;
	for (int i = 0; i < SIM_FAULTS_MAX; i++)
	{
		SimFault   *fault = &disk->faults[i];

		bool		matches = fault->op == op || (fault->op == SIM_OP_COUNT && op != SIM_OP_READ);

		if (fault->left > 0 && matches && --fault->left == 0)
			error = fault->error;
	}
	return error;
}

bool
sim_step_begin(SimDisk *disk, SimOp op, const char *what, int *fault, int *result)
{
	*result = SIM_CRASHED;
	if (disk->crashed)
		return false;
	assert(!disk->crashing);
	disk->steps++;
	disk->counts[op]++;
	if (disk->trace != NULL)
		fprintf(disk->trace, "step %llu %s %s\n", (unsigned long long) disk->steps, op_names[op],
				what);
	if (disk->steps == disk->crash_step)
	{
		bool		before = disk->crash_point == SIM_BEFORE;

		disk->halfway = disk->crash_point == SIM_MIDDLE && op == SIM_OP_WRITE;
		if (disk->crash_point == SIM_MIDDLE && !disk->halfway)
			before = sim_random_bool(&disk->random);
		if (before)
		{
			disk->crashed = true;
			return false;
		}
		disk->crashing = true;
	}
	*fault = sim_fault_due(disk, op);
	return true;
}

int
sim_step_end(SimDisk *disk, int result)
{
	if (!disk->crashing)
		return result;
	disk->crashing = false;
	disk->halfway = false;
	disk->crashed = true;
	return SIM_CRASHED;
}

/* The slot behind a handle, NULL for one that is not open. */
static SimHandle *
find_handle(SimDisk *disk, QcHandle handle)
{
	SimHandle  *slot;

	if (handle < 0)
		return NULL;
	slot = &disk->handles[handle % SIM_HANDLES_MAX];
	if (!slot->open || slot->generation != (uint32_t) handle / SIM_HANDLES_MAX)
		return NULL;
	return slot;
}

/* The file behind a handle, NULL when it is not open, or not for writing where that is needed. */
static SimInode *
find_file(SimDisk *disk, QcHandle handle, bool write)
{
	const SimHandle *slot = find_handle(disk, handle);

	if (slot == NULL || (write && !slot->writable))
		return NULL;
	return disk->inodes[slot->inode];
}

/* Give a file a handle.  A number is not used again soon, so that a stale one is noticed. */
static int
open_handle(SimDisk *disk, uint32_t inode, bool writable, QcHandle *handle)
{
	for (int i = 0; i < SIM_HANDLES_MAX; i++)
	{
		SimHandle  *slot = &disk->handles[i];

		if (slot->open)
			continue;
		slot->open = true;
		slot->writable = writable;
		slot->inode = inode;
		slot->generation = (slot->generation + 1) % (INT32_MAX / SIM_HANDLES_MAX);
		disk->inodes[inode]->handles++;
		*handle = sim_handle_number(disk, i);
		return 0;
	}
	return EMFILE;
}

/* Make a file that must not exist yet. */
static int
create_file(SimDisk *disk, const char *path, uint32_t *number)
{
	char		name[SIM_NAME_MAX];
	uint32_t	directory;
	int			error = sim_walk(disk, path, &directory, name);

	if (error != 0)
		return error;
	if (sim_names_find(&disk->inodes[directory]->names, name) != NULL)
		return EEXIST;
	if (sim_disk_handles(disk) == SIM_HANDLES_MAX)
		return EMFILE;
	*number = sim_add_inode(disk, directory, name, false);
	return 0;
}

static int
sim_open(void *context, const char *path, int flags, QcHandle *handle)
{
	SimDisk    *disk = context;
	bool		writable = (flags & QC_OPEN_WRITE) != 0;
	uint32_t	number;
	int			error;
	int			result;

	if (flags & QC_OPEN_CREATE)
	{
		if (!sim_step_begin(disk, SIM_OP_CREATE, path, &error, &result))
			return result;
		if (error == 0)
			error = create_file(disk, path, &number);
		error = sim_step_end(disk, error);
	}
	else
	{
		disk->opens++;
		error = disk->crashed ? SIM_CRASHED : sim_lookup(disk, path, &number);
		if (error == 0 && disk->inodes[number]->is_directory)
			error = EISDIR;
	}
	return error != 0 ? error : open_handle(disk, number, writable, handle);
}

static void
sim_close(void *context, QcHandle handle)
{
	SimDisk    *disk = context;
	SimHandle  *slot = find_handle(disk, handle);

	assert(slot != NULL);
	slot->open = false;
	disk->inodes[slot->inode]->handles--;
	sim_inode_release(disk, slot->inode);
}

static int
sim_read(void *context, QcHandle handle, void *buf, size_t len, uint64_t position, size_t *done)
{
	SimDisk    *disk = context;
	const SimInode *inode;
	int			error = disk->crashed ? SIM_CRASHED : sim_fault_due(disk, SIM_OP_READ);

	*done = 0;
	if (error != 0)
		return error;
	inode = find_file(disk, handle, false);
	if (inode == NULL)
		return EBADF;
	if (position >= inode->current.size)
		return 0;
	if (len > inode->current.size - position)
		len = (size_t) (inode->current.size - position);
	sim_content_get(&inode->current, position, buf, len);
	*done = len;
	return 0;
}

/* Note a change of a file and apply it to the current content.  Takes over the reference to bytes. */
static void
add_change(SimDisk *disk, SimInode *inode, SimChange change)
{
	uint64_t	before = inode->current.size;

	if (inode->nchanges == inode->cap_changes)
	{
		inode->cap_changes = inode->cap_changes * 2 + 4;
		inode->changes = sim_realloc(inode->changes, inode->cap_changes * sizeof(SimChange));
	}
	inode->changes[inode->nchanges++] = change;
	sim_change_apply(&inode->current, &change);
	disk->used = disk->used - before + inode->current.size;
}

/* Write bytes, or zeros when they are NULL. */
static void
write_bytes(SimDisk *disk, SimInode *inode, const uint8_t *bytes, uint64_t position, uint64_t len)
{
	SimChange	change = {.position = position, .len = len};

	if (len == 0)
		return;
	if (bytes != NULL && (bytes[0] != 0 || memcmp(bytes, bytes + 1, (size_t) len - 1) != 0))
		change.bytes = sim_buffer_new(bytes, (size_t) len);
	add_change(disk, inode, change);
}

/* Write a part of the bytes, as when the power fails in the middle: some sectors, or a prefix. */
static void
write_partly(SimDisk *disk, SimInode *inode, const uint8_t *bytes, uint64_t position, uint64_t len)
{
	uint64_t	end = position + len;

	if (sim_random_bool(&disk->random))
	{
		write_bytes(disk, inode, bytes, position, sim_random_below(&disk->random, len + 1));
		return;
	}
	for (uint64_t at = position; at < end;)
	{
		uint64_t	stop = (at / SIM_SECTOR_SIZE + 1) * SIM_SECTOR_SIZE;

		if (stop > end)
			stop = end;
		if (sim_random_bool(&disk->random))
			write_bytes(disk, inode, bytes + (at - position), at, stop - at);
		at = stop;
	}
}

/* How many bytes of a write there is room for. */
static uint64_t
room_for(const SimDisk *disk, const SimInode *inode, uint64_t position, uint64_t len)
{
	uint64_t	room = disk->used < disk->capacity ? disk->capacity - disk->used : 0;
	uint64_t	limit = inode->current.size;

	limit = room < UINT64_MAX - limit ? limit + room : UINT64_MAX;
	if (position >= limit)
		return 0;
	return len < limit - position ? len : limit - position;
}

/* Do the write as far as faults, room and the power allow. */
static int
write_flat(SimDisk *disk, QcHandle handle, const uint8_t *bytes, uint64_t position, uint64_t len,
		   int fault)
{
	SimInode   *inode = find_file(disk, handle, true);
	uint64_t	room;

	if (inode == NULL)
		return EBADF;
	if (position > INT64_MAX || len > INT64_MAX - position)
		return EINVAL;
	room = room_for(disk, inode, position, len);
	if (fault != 0)
	{
		write_bytes(disk, inode, bytes, position, sim_random_below(&disk->random, room + 1));
		return fault;
	}
	if (disk->halfway)
		write_partly(disk, inode, bytes, position, room);
	else
		write_bytes(disk, inode, bytes, position, room);
	return room < len ? ENOSPC : 0;
}

/* Name of the file behind a handle, for the trace. */
static const char *
handle_name(SimDisk *disk, QcHandle handle)
{
	const SimInode *inode = find_file(disk, handle, false);

	return inode == NULL ? "?" : inode->last;
}

static int
sim_write(void *context, QcHandle handle, const QcIoSlice *slices, int nslices, uint64_t position)
{
	SimDisk    *disk = context;
	uint8_t    *flat;
	size_t		len = 0;
	int			fault;
	int			result;

	if (!sim_step_begin(disk, SIM_OP_WRITE, handle_name(disk, handle), &fault, &result))
		return result;
	for (int i = 0; i < nslices; i++)
		len += slices[i].len;
	if (disk->trace != NULL)
		fprintf(disk->trace, "\t%llu + %zu\n", (unsigned long long) position, len);
	flat = sim_alloc(len + 1);
	len = 0;
	for (int i = 0; i < nslices; i++)
	{
		if (slices[i].len > 0)
			memcpy(flat + len, slices[i].bytes, slices[i].len);
		len += slices[i].len;
	}
	result = write_flat(disk, handle, flat, position, len, fault);
	free(flat);
	return sim_step_end(disk, result);
}

/* Make stable what is current. */
static void
make_stable(SimInode *inode)
{
	for (size_t i = 0; i < inode->nchanges; i++)
	{
		const SimChange *change = &inode->changes[i];

		if (inode->diverged || change->resize)
			sim_change_apply(&inode->stable, change);
		else
			sim_content_share(&inode->stable, &inode->current, change->position, change->len);
	}
	inode->stable.size = inode->current.size;
	sim_changes_clear(inode);
}

static int
sim_sync(void *context, QcHandle handle)
{
	SimDisk    *disk = context;
	SimInode   *inode;
	int			error;
	int			result;

	if (!sim_step_begin(disk, SIM_OP_SYNC, handle_name(disk, handle), &error, &result))
		return result;
	inode = find_file(disk, handle, false);
	if (inode == NULL)
		error = EBADF;
	else if (error == 0)
		make_stable(inode);
	else if (inode->nchanges > 0)
	{
		sim_changes_clear(inode);
		inode->diverged = true;
	}
	return sim_step_end(disk, error);
}

static int
sim_size(void *context, QcHandle handle, uint64_t *size)
{
	SimDisk    *disk = context;
	const SimInode *inode = find_file(disk, handle, false);

	if (disk->crashed)
		return SIM_CRASHED;
	if (inode == NULL)
		return EBADF;
	*size = inode->current.size;
	return 0;
}

static int
sim_truncate(void *context, QcHandle handle, uint64_t size)
{
	SimDisk    *disk = context;
	SimInode   *inode;
	int			error;
	int			result;

	if (!sim_step_begin(disk, SIM_OP_TRUNCATE, handle_name(disk, handle), &error, &result))
		return result;
	inode = find_file(disk, handle, true);
	if (inode == NULL)
		error = EBADF;
	else if (error == 0 && size > INT64_MAX)
		error = EINVAL;
	else if (error == 0 && size > inode->current.size &&
			 room_for(disk, inode, inode->current.size, size - inode->current.size) <
			 size - inode->current.size)
		error = ENOSPC;
	if (error == 0)
		add_change(disk, inode, (SimChange) {.resize = true, .position = size});
	return sim_step_end(disk, error);
}

SimDisk *
sim_disk_new(uint64_t seed)
{
	SimDisk    *disk = sim_alloc(sizeof(SimDisk));

	disk->random = seed;
	disk->capacity = UINT64_MAX;
	disk->io = (QcIo)
	{
		.context = disk,
		.open = sim_open,
		.close = sim_close,
		.read = sim_read,
		.write = sim_write,
		.sync = sim_sync,
		.size = sim_size,
		.truncate = sim_truncate,
		.make_directory = sim_make_directory,
		.sync_directory = sim_sync_directory,
		.list = sim_list,
		.rename = sim_rename,
		.unlink = sim_unlink,
		.remove_directory = sim_remove_directory,
	};
	sim_add_inode(disk, SIM_ROOT, "", true);
	return disk;
}

const QcIo *
sim_disk_io(SimDisk *disk)
{
	return &disk->io;
}
