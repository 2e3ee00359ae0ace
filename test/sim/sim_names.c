/*
 * sim_names.c
 *		Names of the simulated disk: path walks, and the calls that change directories.
 *
 * Each changing call alters the current names at once and adds a change to the directory's list;
 * sync_directory makes the current names the stable ones and empties the list.
 */
#include "sim_disk_int.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Copy a name of checked length. */
static void
copy_name(char to[SIM_NAME_MAX], const char *from)
{
	size_t		len = strlen(from);

	assert(len < SIM_NAME_MAX);
	memcpy(to, from, len + 1);
}

SimEntry *
sim_names_find(const SimNames *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (strcmp(names->entries[i].name, name) == 0)
			return &names->entries[i];
	return NULL;
}

void
sim_names_set(SimNames *names, const char *name, uint32_t inode)
{
	SimEntry   *entry = sim_names_find(names, name);

	if (entry == NULL)
	{
		if (names->count == names->cap)
		{
			names->cap = names->cap * 2 + 4;
			names->entries = sim_realloc(names->entries, names->cap * sizeof(SimEntry));
		}
		entry = &names->entries[names->count++];
		copy_name(entry->name, name);
	}
	entry->inode = inode;
}

void
sim_names_remove(SimNames *names, const char *name)
{
	SimEntry   *entry = sim_names_find(names, name);

	if (entry != NULL)
		*entry = names->entries[--names->count];
}

void
sim_names_copy(SimNames *to, const SimNames *from)
{
	SimNames	copy = {.count = from->count, .cap = from->count};

	if (from->count > 0)
	{
		copy.entries = sim_alloc(from->count * sizeof(SimEntry));
		memcpy(copy.entries, from->entries, from->count * sizeof(SimEntry));
	}
	sim_names_clear(to);
	*to = copy;
}

void
sim_names_clear(SimNames *names)
{
	free(names->entries);
	*names = (SimNames) {0};
}

/*
 * Changes survive a power failure one by one, so an earlier one that this one builds on may be
 * missing: a name is removed only from the inode it was of, and an inode that moves leaves
 * whatever name it has.
 */
void
sim_name_change_apply(SimNames *names, const SimNameChange *change)
{
	if (change->kind == SIM_NAME_REMOVE)
	{
		const SimEntry *entry = sim_names_find(names, change->from);

		if (entry != NULL && entry->inode == change->inode)
			sim_names_remove(names, change->from);
		return;
	}
	for (size_t i = 0; i < names->count; i++)
		if (names->entries[i].inode == change->inode)
		{
			sim_names_remove(names, names->entries[i].name);
			break;
		}
	sim_names_set(names, change->to, change->inode);
}

/* Note a change of a directory and apply it to the current names. */
static void
change_names(SimInode *directory, SimNameKind kind, uint32_t inode, const char *from,
			 const char *to)
{
	SimNameChange *change;

	if (directory->nmoves == directory->cap_moves)
	{
		directory->cap_moves = directory->cap_moves * 2 + 4;
		directory->moves = sim_realloc(directory->moves,
									   directory->cap_moves * sizeof(SimNameChange));
	}
	change = &directory->moves[directory->nmoves++];
	change->kind = kind;
	change->inode = inode;
	copy_name(change->from, from);
	copy_name(change->to, to);
	sim_name_change_apply(&directory->names, change);
}

int
sim_walk(const SimDisk *disk, const char *path, uint32_t *directory, char name[SIM_NAME_MAX])
{
	*directory = SIM_ROOT;
	for (;;)
	{
		size_t		len = strcspn(path, "/");
		const SimEntry *entry;

		if (len == 0 || (len == 1 && path[0] == '.') ||
			(len == 2 && path[0] == '.' && path[1] == '.'))
			return EINVAL;
		if (len >= SIM_NAME_MAX)
			return ENAMETOOLONG;
		memcpy(name, path, len);
		name[len] = '\0';
		if (path[len] == '\0')
			return 0;
		entry = sim_names_find(&disk->inodes[*directory]->names, name);
		if (entry == NULL)
			return ENOENT;
		if (!disk->inodes[entry->inode]->is_directory)
			return ENOTDIR;
		*directory = entry->inode;
		path += len + 1;
	}
}

int
sim_lookup(const SimDisk *disk, const char *path, uint32_t *inode)
{
	char		name[SIM_NAME_MAX];
	uint32_t	directory;
	const SimEntry *entry;
	int			error;

	*inode = SIM_ROOT;
	if (path[0] == '\0')
		return 0;
	error = sim_walk(disk, path, &directory, name);
	if (error != 0)
		return error;
	entry = sim_names_find(&disk->inodes[directory]->names, name);
	if (entry == NULL)
		return ENOENT;
	*inode = entry->inode;
	return 0;
}

/* As sim_lookup, for a directory. */
static int
lookup_directory(const SimDisk *disk, const char *path, uint32_t *inode)
{
	int			error = sim_lookup(disk, path, inode);

	return error == 0 && !disk->inodes[*inode]->is_directory ? ENOTDIR : error;
}

uint32_t
sim_add_inode(SimDisk *disk, uint32_t directory, const char *name, bool is_directory)
{
	SimInode   *inode = sim_alloc(sizeof(SimInode));
	uint32_t	number = 0;

	while (number < disk->ninodes && disk->inodes[number] != NULL)
		number++;
	if (number == disk->ninodes)
	{
		uint32_t	more = disk->ninodes + 16;

		disk->inodes = sim_realloc(disk->inodes, more * sizeof(SimInode *));
		memset(disk->inodes + disk->ninodes, 0, 16 * sizeof(SimInode *));
		disk->ninodes = more;
	}
	inode->is_directory = is_directory;
	inode->linked = true;
	copy_name(inode->last, name);
	disk->inodes[number] = inode;
	if (number != SIM_ROOT)
		change_names(disk->inodes[directory], SIM_NAME_ADD, number, "", name);
	return number;
}

void
sim_inode_free(SimInode *inode)
{
	if (inode == NULL)
		return;
	sim_changes_clear(inode);
	free(inode->changes);
	free(inode->moves);
	sim_content_clear(&inode->current);
	sim_content_clear(&inode->stable);
	sim_names_clear(&inode->names);
	sim_names_clear(&inode->stable_names);
	free(inode);
}

void
sim_inode_release(SimDisk *disk, uint32_t number)
{
	SimInode   *inode = disk->inodes[number];

	if (!inode->linked && inode->handles == 0)
	{
		assert(disk->used >= inode->current.size);
		disk->used -= inode->current.size;
	}
}

int
sim_make_directory(void *context, const char *path)
{
	SimDisk    *disk = context;
	char		name[SIM_NAME_MAX];
	uint32_t	directory;
	int			error;
	int			result;

	if (!sim_step_begin(disk, SIM_OP_MKDIR, path, &error, &result))
		return result;
	if (error == 0)
		error = sim_walk(disk, path, &directory, name);
	if (error == 0 && sim_names_find(&disk->inodes[directory]->names, name) != NULL)
		error = EEXIST;
	if (error == 0)
		sim_add_inode(disk, directory, name, true);
	return sim_step_end(disk, error);
}

/* Free the inode when neither a name nor a handle leads to it any more. */
static void
free_unreachable(SimDisk *disk, uint32_t number)
{
	SimInode   *inode = disk->inodes[number];

	if (inode == NULL || inode->linked || inode->handles > 0)
		return;
	sim_inode_free(inode);
	disk->inodes[number] = NULL;
}

/*
 * Names move within one directory only, so after its sync an inode that lost its name there is
 * mentioned nowhere else.
 */
static void
make_names_stable(SimDisk *disk, SimInode *directory)
{
	SimNames	old = directory->stable_names;

	directory->stable_names = (SimNames) {0};
	sim_names_copy(&directory->stable_names, &directory->names);
	for (size_t i = 0; i < old.count; i++)
		free_unreachable(disk, old.entries[i].inode);
	for (size_t i = 0; i < directory->nmoves; i++)
		free_unreachable(disk, directory->moves[i].inode);
	directory->nmoves = 0;
	sim_names_clear(&old);
}

int
sim_sync_directory(void *context, const char *path)
{
	SimDisk    *disk = context;
	uint32_t	number;
	int			error;
	int			result;

	if (!sim_step_begin(disk, SIM_OP_SYNC_DIRECTORY, path, &error, &result))
		return result;
	if (error == 0)
		error = lookup_directory(disk, path, &number);
	if (error == 0)
		make_names_stable(disk, disk->inodes[number]);
	return sim_step_end(disk, error);
}

/*
 * The visitor may change the directory, so it is shown a copy.  The order is arbitrary, as on a
 * real disk: a caller that needs one must sort.
 */
int
sim_list(void *context, const char *path, QcNameVisitor visit, void *visit_context)
{
	SimDisk    *disk = context;
	SimNames	names = {0};
	uint32_t	number;
	size_t		start;
	int			error = disk->crashed ? SIM_CRASHED : sim_fault_due(disk, SIM_OP_READ);

	if (error == 0)
		error = lookup_directory(disk, path, &number);
	if (error != 0)
		return error;
	sim_names_copy(&names, &disk->inodes[number]->names);
	start = names.count > 0 ? (size_t) (sim_mix(disk->steps + names.count) % names.count) : 0;
	for (size_t i = 0; i < names.count; i++)
	{
		const SimEntry *entry = &names.entries[(start + i) % names.count];
		const SimInode *inode = disk->inodes[entry->inode];

		/* one that the visitor removed just now may be freed already */
		if (inode == NULL || sim_names_find(&disk->inodes[number]->names, entry->name) == NULL)
			continue;
		disk->shown++;
		if (!visit(visit_context, entry->name, inode->is_directory))
			break;
	}
	sim_names_clear(&names);
	return 0;
}

/* May `from` take the place of the entry that has the name now? */
static int
check_replace(const SimDisk *disk, const SimInode *from, const SimEntry *there)
{
	const SimInode *target = disk->inodes[there->inode];

	if (!from->is_directory)
		return target->is_directory ? EISDIR : 0;
	if (!target->is_directory)
		return ENOTDIR;
	return target->names.count > 0 ? ENOTEMPTY : 0;
}

/* Rename inside the directory; both names are checked. */
static int
move_name(SimDisk *disk, uint32_t directory, const char *from, const char *to)
{
	const SimNames *names = &disk->inodes[directory]->names;
	const SimEntry *entry = sim_names_find(names, from);
	const SimEntry *there = sim_names_find(names, to);
	uint32_t	number;
	uint32_t	replaced;
	int			error;

	if (entry == NULL)
		return ENOENT;
	number = entry->inode;
	if (there != NULL && there->inode == number)
		return 0;
	error = there == NULL ? 0 : check_replace(disk, disk->inodes[number], there);
	if (error != 0)
		return error;
	replaced = there == NULL ? SIM_ROOT : there->inode;
	change_names(disk->inodes[directory], SIM_NAME_MOVE, number, from, to);
	copy_name(disk->inodes[number]->last, to);
	if (replaced != SIM_ROOT)
	{
		disk->inodes[replaced]->linked = false;
		sim_inode_release(disk, replaced);
	}
	return 0;
}

int
sim_rename(void *context, const char *from, const char *to)
{
	SimDisk    *disk = context;
	char		from_name[SIM_NAME_MAX];
	char		to_name[SIM_NAME_MAX];
	uint32_t	from_directory;
	uint32_t	to_directory;
	int			error;
	int			result;

	if (!sim_step_begin(disk, SIM_OP_RENAME, from, &error, &result))
		return result;
	if (error == 0)
		error = sim_walk(disk, from, &from_directory, from_name);
	if (error == 0)
		error = sim_walk(disk, to, &to_directory, to_name);
	if (error == 0 && from_directory != to_directory)
		error = EXDEV;
	if (error == 0)
		error = move_name(disk, from_directory, from_name, to_name);
	return sim_step_end(disk, error);
}

/* Take a name away: of a file, or of an empty directory. */
static int
remove_name(SimDisk *disk, const char *path, bool is_directory)
{
	char		name[SIM_NAME_MAX];
	uint32_t	directory;
	uint32_t	number;
	SimInode   *inode;
	const SimEntry *entry;
	int			error = sim_walk(disk, path, &directory, name);

	if (error != 0)
		return error;
	entry = sim_names_find(&disk->inodes[directory]->names, name);
	if (entry == NULL)
		return ENOENT;
	number = entry->inode;
	inode = disk->inodes[number];
	if (inode->is_directory != is_directory)
		return is_directory ? ENOTDIR : EISDIR;
	if (inode->names.count > 0)
		return ENOTEMPTY;
	change_names(disk->inodes[directory], SIM_NAME_REMOVE, number, name, "");
	inode->linked = false;
	sim_inode_release(disk, number);
	return 0;
}

int
sim_unlink(void *context, const char *path)
{
	SimDisk    *disk = context;
	int			error;
	int			result;

	if (!sim_step_begin(disk, SIM_OP_UNLINK, path, &error, &result))
		return result;
	return sim_step_end(disk, error != 0 ? error : remove_name(disk, path, false));
}

int
sim_remove_directory(void *context, const char *path)
{
	SimDisk    *disk = context;
	int			error;
	int			result;

	if (!sim_step_begin(disk, SIM_OP_RMDIR, path, &error, &result))
		return result;
	return sim_step_end(disk, error != 0 ? error : remove_name(disk, path, true));
}
