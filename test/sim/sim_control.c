/*
 * sim_control.c
 *		The harness's side of the simulated disk: copies, planned failures, damage, swaps, listings.
 */
#include "sim_disk_int.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void
sim_disk_free(SimDisk *disk)
{
	for (uint32_t i = 0; i < disk->ninodes; i++)
		sim_inode_free(disk->inodes[i]);
	for (size_t i = 0; i < disk->nvalues; i++)
		sim_buffer_drop(disk->values[i].bytes);
	free(disk->inodes);
	free(disk->values);
	free(disk);
}

/* A copy of an array; NULL when it is empty. */
static void *
copy_array(const void *from, size_t count, size_t size)
{
	void	   *copy;

	if (count == 0)
		return NULL;
	copy = sim_alloc(count * size);
	memcpy(copy, from, count * size);
	return copy;
}

/* A copy that shares all pages. */
static SimInode *
copy_inode(const SimInode *from)
{
	SimInode   *to = sim_alloc(sizeof(SimInode));

	*to = *from;
	to->changes = copy_array(from->changes, from->nchanges, sizeof(SimChange));
	to->cap_changes = from->nchanges;
	for (size_t i = 0; i < to->nchanges; i++)
		if (to->changes[i].bytes != NULL)
			sim_buffer_share(to->changes[i].bytes);
	to->moves = copy_array(from->moves, from->nmoves, sizeof(SimNameChange));
	to->cap_moves = from->nmoves;
	to->current = to->stable = (SimContent) {0};
	sim_content_copy(&to->current, &from->current);
	sim_content_copy(&to->stable, &from->stable);
	to->names = to->stable_names = (SimNames) {0};
	sim_names_copy(&to->names, &from->names);
	sim_names_copy(&to->stable_names, &from->stable_names);
	return to;
}

SimDisk *
sim_disk_fork(const SimDisk *disk)
{
	SimDisk    *copy = sim_alloc(sizeof(SimDisk));

	assert(!disk->crashing);
	*copy = *disk;
	copy->io.context = copy;
	copy->trace = NULL;
	copy->crash_step = 0;
	memset(copy->faults, 0, sizeof(copy->faults));
	copy->values = copy_array(disk->values, disk->nvalues, sizeof(SimValue));
	for (size_t i = 0; i < copy->nvalues; i++)
		sim_buffer_share(copy->values[i].bytes);
	copy->inodes = sim_alloc(disk->ninodes * sizeof(SimInode *));
	for (uint32_t i = 0; i < disk->ninodes; i++)
	{
		if (disk->inodes[i] != NULL)
			copy->inodes[i] = copy_inode(disk->inodes[i]);
	}
	return copy;
}

SimDisk *
sim_disk_copy(const SimDisk *disk)
{
	SimDisk    *copy = sim_disk_fork(disk);

	for (int i = 0; i < SIM_HANDLES_MAX; i++)
	{
		if (copy->handles[i].open)
			copy->io.close(copy, sim_handle_number(copy, i));
	}
	return copy;
}

void
sim_disk_reseed(SimDisk *disk, uint64_t seed)
{
	disk->random = seed;
}

void
sim_disk_crash_at(SimDisk *disk, uint64_t step, SimPoint point)
{
	assert(step == 0 || step > disk->steps);
	disk->crash_step = step;
	disk->crash_point = point;
}

void
sim_disk_stop(SimDisk *disk)
{
	disk->crashed = true;
}

bool
sim_disk_crashed(const SimDisk *disk)
{
	return disk->crashed;
}

uint64_t
sim_disk_steps(const SimDisk *disk)
{
	return disk->steps;
}

uint64_t
sim_disk_count(const SimDisk *disk, SimOp op)
{
	return disk->counts[op];
}

uint64_t
sim_disk_opens(const SimDisk *disk)
{
	return disk->opens;
}

uint64_t
sim_disk_shown(const SimDisk *disk)
{
	return disk->shown;
}

int
sim_disk_handles(const SimDisk *disk)
{
	int			count = 0;

	for (int i = 0; i < SIM_HANDLES_MAX; i++)
		count += disk->handles[i].open;
	return count;
}

void
sim_disk_fail(SimDisk *disk, SimOp op, uint64_t nth, int error)
{
	int			slot = 0;

	assert(nth > 0 && error != 0);
	while (slot < SIM_FAULTS_MAX && disk->faults[slot].left > 0)
		slot++;
	if (slot == SIM_FAULTS_MAX)
		abort();
	disk->faults[slot] = (SimFault) {.op = op, .left = nth, .error = error};
}

void
sim_disk_heal(SimDisk *disk)
{
	for (int i = 0; i < SIM_FAULTS_MAX; i++)
		disk->faults[i].left = 0;
	disk->capacity = UINT64_MAX;
}

void
sim_disk_set_capacity(SimDisk *disk, uint64_t bytes)
{
	disk->capacity = bytes;
}

uint64_t
sim_disk_used(const SimDisk *disk)
{
	return disk->used;
}

/* The file behind a path, NULL when there is none; error is set. */
static SimInode *
find_file(const SimDisk *disk, const char *path, int *error)
{
	uint32_t	number;

	*error = sim_lookup(disk, path, &number);
	if (*error == 0 && disk->inodes[number]->is_directory)
		*error = EISDIR;
	return *error != 0 ? NULL : disk->inodes[number];
}

/* Xor one byte below the size. */
static void
flip_content(SimContent *content, uint64_t position, uint8_t mask)
{
	uint8_t		byte;

	if (position >= content->size)
		return;
	sim_content_get(content, position, &byte, 1);
	byte ^= mask;
	sim_content_put(content, position, &byte, 1);
}

int
sim_disk_flip(SimDisk *disk, const char *path, uint64_t position, uint8_t mask)
{
	int			error;
	SimInode   *inode = find_file(disk, path, &error);

	if (inode == NULL)
		return error;
	if (position >= inode->current.size)
		return ERANGE;
	flip_content(&inode->current, position, mask);
	flip_content(&inode->stable, position, mask);
	return 0;
}

void
sim_disk_trace(SimDisk *disk, FILE *out)
{
	disk->trace = out;
}

void
sim_disk_dump(const SimDisk *disk, const char *path, FILE *out)
{
	int			error;
	const SimInode *inode = find_file(disk, path, &error);

	if (inode == NULL)
	{
		fprintf(out, "%s: %s\n", path, strerror(error));
		return;
	}
	for (uint64_t at = 0; at < inode->current.size; at += 16)
	{
		uint8_t		row[16];
		static const uint8_t zeros[16];

		sim_content_get(&inode->current, at, row, sizeof(row));
		if (memcmp(row, zeros, sizeof(row)) == 0)
			continue;
		fprintf(out, "%08llx:", (unsigned long long) at);
		for (int i = 0; i < 16; i++)
			fprintf(out, " %02x", row[i]);
		fputs("  ", out);
		for (int i = 0; i < 16; i++)
			fputc(row[i] >= 32 && row[i] < 127 ? row[i] : '.', out);
		fputc('\n', out);
	}
	fprintf(out, "%08llx: end\n", (unsigned long long) inode->current.size);
}

static int
compare_entries(const void *a, const void *b)
{
	return strcmp(((const SimEntry *) a)->name, ((const SimEntry *) b)->name);
}

/* Called for every name of the tree, a directory before what is in it, in order of names. */
typedef void (*TreeVisitor) (void *context, const char *name, int depth, const SimInode *inode);

static void
walk_tree(const SimDisk *disk, uint32_t directory, int depth, TreeVisitor visit, void *context)
{
	SimNames	names = {0};

	sim_names_copy(&names, &disk->inodes[directory]->names);
	if (names.count > 0)
		qsort(names.entries, names.count, sizeof(SimEntry), compare_entries);
	for (size_t i = 0; i < names.count; i++)
	{
		const SimInode *inode = disk->inodes[names.entries[i].inode];

		visit(context, names.entries[i].name, depth, inode);
		if (inode->is_directory)
			walk_tree(disk, names.entries[i].inode, depth + 1, visit, context);
	}
	sim_names_clear(&names);
}

/* A visitor's path to where the walk is. */
typedef struct Visit
{
	SimVisitor	visit;
	void	   *context;
	char		path[8 * (SIM_NAME_MAX + 1)];
	size_t		ends[8];		/* of the directories above */
} Visit;

static void
visit_name(void *context, const char *name, int depth, const SimInode *inode)
{
	Visit	   *v = context;
	size_t		at = depth == 0 ? 0 : v->ends[depth - 1];
	size_t		len = strlen(name);

	assert(depth < 8);
	if (depth > 0)
		v->path[at++] = '/';
	memcpy(v->path + at, name, len + 1);
	v->ends[depth] = at + len;
	v->visit(v->context, v->path, inode->is_directory, inode->is_directory ? 0 : inode->current.size);
}

void
sim_disk_visit(const SimDisk *disk, SimVisitor visit, void *context)
{
	Visit		v = {.visit = visit, .context = context};

	walk_tree(disk, SIM_ROOT, 0, visit_name, &v);
}

static void
print_name(void *context, const char *name, int depth, const SimInode *inode)
{
	FILE	   *out = context;

	fprintf(out, "%*s%s", depth * 2, "", name);
	if (inode->is_directory)
		fprintf(out, "/ (%zu unsynced)\n", inode->nmoves);
	else
		fprintf(out, " %llu (stable %llu, %zu unsynced%s)\n",
				(unsigned long long) inode->current.size, (unsigned long long) inode->stable.size,
				inode->nchanges, inode->diverged ? ", a sync failed" : "");
}

void
sim_disk_tree(const SimDisk *disk, FILE *out)
{
	walk_tree(disk, SIM_ROOT, 0, print_name, out);
}

static void
digest_add(uint64_t *digest, uint64_t value)
{
	*digest = sim_mix(*digest ^ value) + UINT64_C(0x9e3779b97f4a7c15);
}

/* Zero words are left out, so that a hole counts as the zeros it stands for. */
static void
digest_name(void *context, const char *name, int depth, const SimInode *inode)
{
	uint64_t   *digest = context;

	digest_add(digest, (uint64_t) depth * 2 + inode->is_directory);
	for (const char *c = name; *c != '\0'; c++)
		digest_add(digest, (uint8_t) *c);
	digest_add(digest, inode->current.size);
	for (size_t page = 0; page < inode->current.npages; page++)
	{
		if (inode->current.pages[page] == NULL)
			continue;
		for (size_t i = 0; i < SIM_PAGE_SIZE; i += sizeof(uint64_t))
		{
			uint64_t	word;

			memcpy(&word, inode->current.pages[page]->bytes + i, sizeof(word));
			if (word == 0)
				continue;
			digest_add(digest, page * SIM_PAGE_SIZE + i);
			digest_add(digest, word);
		}
	}
}

uint64_t
sim_disk_digest(const SimDisk *disk)
{
	uint64_t	digest = 0;

	walk_tree(disk, SIM_ROOT, 0, digest_name, &digest);
	return digest;
}

/* The value with this name, NULL when there is none. */
static SimValue *
find_value(const SimDisk *disk, const char *name)
{
	for (size_t i = 0; i < disk->nvalues; i++)
		if (strcmp(disk->values[i].name, name) == 0)
			return &disk->values[i];
	return NULL;
}

int
sim_disk_swap(SimDisk *disk, const char *name, const void *bytes, size_t len)
{
	SimValue   *value;
	int			error;
	int			result;

	assert(strlen(name) < SIM_NAME_MAX);
	if (!sim_step_begin(disk, SIM_OP_SWAP, name, &error, &result))
		return result;
	if (error != 0)
		return sim_step_end(disk, error);
	value = find_value(disk, name);
	if (value == NULL)
	{
		disk->values = sim_realloc(disk->values, (disk->nvalues + 1) * sizeof(SimValue));
		value = &disk->values[disk->nvalues++];
		*value = (SimValue) {0};
		memcpy(value->name, name, strlen(name) + 1);
	}
	sim_buffer_drop(value->bytes);
	value->bytes = sim_buffer_new(bytes, len);
	return sim_step_end(disk, 0);
}

const uint8_t *
sim_disk_swapped(const SimDisk *disk, const char *name, size_t *len)
{
	const SimValue *value = find_value(disk, name);

	*len = value == NULL ? 0 : value->bytes->len;
	return value == NULL ? NULL : value->bytes->bytes;
}
