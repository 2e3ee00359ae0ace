/*
 * sim_crash.c
 *		What a power failure leaves of the simulated disk, and what a sync saves.
 *
 * The surviving image is built from what is stable and from the list of later changes only, never
 * from the current content.
 */
#include "sim_disk_int.h"

#include <assert.h>
#include <stdlib.h>

void
sim_change_apply(SimContent *content, const SimChange *change)
{
	if (change->resize)
	{
		sim_content_resize(content, change->position);
		return;
	}
	sim_content_put(content, change->position,
					change->bytes == NULL ? NULL : change->bytes->bytes, change->len);
	if (content->size < change->position + change->len)
		content->size = change->position + change->len;
}

void
sim_changes_clear(SimInode *inode)
{
	for (size_t i = 0; i < inode->nchanges; i++)
		sim_buffer_drop(inode->changes[i].bytes);
	inode->nchanges = 0;
}

/* How one file's changes are judged in one power failure. */
typedef struct Judge
{
	uint64_t	salt;
	size_t		nchanges;
	size_t		sizes;			/* changes of size before this one survive */
	uint64_t	lose;			/* of 16 sectors so many lose everything, */
	uint64_t	keep;			/* so many keep everything, the others stop anywhere between */
} Judge;

/* Writes before this change survive in this sector. */
static size_t
sector_limit(const Judge *judge, uint64_t sector)
{
	uint64_t	chance = sim_mix(judge->salt + sector * UINT64_C(0x9e3779b97f4a7c15));
	uint64_t	kind = chance % 16;

	if (kind < judge->lose)
		return 0;
	if (kind < judge->lose + judge->keep)
		return judge->nchanges;
	return (size_t) ((chance >> 8) % (judge->nchanges + 1));
}

static Judge
judge_new(size_t nchanges, SimLoss loss, uint64_t *random)
{
	Judge		judge = {.nchanges = nchanges};

	if (loss == SIM_KEEP_ALL)
	{
		judge.sizes = nchanges;
		judge.keep = 16;
		return judge;
	}
	judge.lose = 16;
	if (loss == SIM_LOSE_ALL)
		return judge;

	judge.salt = sim_random(random);
	judge.lose = sim_random_below(random, 17);
	judge.keep = sim_random_below(random, 17 - judge.lose);
	judge.sizes = sim_random_bool(random) ? nchanges :
		(size_t) sim_random_below(random, nchanges + 1);
	return judge;
}

/* Put those sectors of a write that survive. */
static void
put_sectors(SimContent *content, const SimChange *change, size_t number, const Judge *judge)
{
	uint64_t	end = change->position + change->len;
	uint64_t	held = (uint64_t) content->npages * SIM_PAGE_SIZE;

	if (change->bytes == NULL && end > held)
		end = held;				/* zeros above are there already */
	for (uint64_t at = change->position; at < end;)
	{
		uint64_t	sector = at / SIM_SECTOR_SIZE;
		uint64_t	stop = (sector + 1) * SIM_SECTOR_SIZE;

		if (stop > end)
			stop = end;
		if (number < sector_limit(judge, sector))
			sim_content_put(content, at, change->bytes == NULL ? NULL :
							change->bytes->bytes + (at - change->position), stop - at);
		at = stop;
	}
}

/*
 * Turn stable into what survives.  A truncate goes with the size it sets: its zeros survive when
 * the size does, and bytes whose size is lost are cut off at the end.
 */
static void
settle_file(SimInode *inode, SimLoss loss, uint64_t *random)
{
	Judge		judge = judge_new(inode->nchanges, loss, random);
	uint64_t	size = inode->stable.size;

	for (size_t i = 0; i < inode->nchanges; i++)
	{
		const SimChange *change = &inode->changes[i];
		uint64_t	end = change->position + change->len;

		if (!change->resize)
			put_sectors(&inode->stable, change, i, &judge);
		if (i >= judge.sizes)
			continue;
		if (change->resize)
		{
			sim_content_resize(&inode->stable, change->position);
			size = change->position;
		}
		else if (size < end)
			size = end;
	}
	sim_content_resize(&inode->stable, size);
	sim_changes_clear(inode);
	sim_content_copy(&inode->current, &inode->stable);
	inode->diverged = false;
}

/*
 * Turn the stable names into what survives: at random either the changes up to one of them, as a
 * file system with a journal does it, or any of them.
 */
static void
settle_names(SimInode *inode, SimLoss loss, uint64_t *random)
{
	bool		in_order = loss != SIM_RANDOM || sim_random_bool(random);
	size_t		limit = loss == SIM_KEEP_ALL ? inode->nmoves : 0;

	if (loss == SIM_RANDOM && in_order)
		limit = (size_t) sim_random_below(random, inode->nmoves + 1);
	for (size_t i = 0; i < inode->nmoves; i++)
		if (in_order ? i < limit : sim_random_bool(random))
			sim_name_change_apply(&inode->stable_names, &inode->moves[i]);
	inode->nmoves = 0;
	sim_names_copy(&inode->names, &inode->stable_names);
}

/* Mark what can be reached from this directory by its names, and count the room it takes. */
static void
mark_reachable(SimDisk *disk, uint32_t number)
{
	SimInode   *inode = disk->inodes[number];

	assert(!inode->linked);
	inode->linked = true;
	disk->used += inode->current.size;
	for (size_t i = 0; i < inode->names.count; i++)
		mark_reachable(disk, inode->names.entries[i].inode);
}

static void
void_handles(SimDisk *disk)
{
	for (int i = 0; i < SIM_HANDLES_MAX; i++)
		if (disk->handles[i].open)
			disk->io.close(disk, sim_handle_number(disk, i));
}

void
sim_disk_reboot(SimDisk *disk, SimLoss data, SimLoss names)
{
	void_handles(disk);
	for (uint32_t i = 0; i < disk->ninodes; i++)
	{
		SimInode   *inode = disk->inodes[i];

		if (inode == NULL)
			continue;
		inode->linked = false;
		if (inode->is_directory)
			settle_names(inode, names, &disk->random);
		else
			settle_file(inode, data, &disk->random);
	}
	disk->used = 0;
	mark_reachable(disk, SIM_ROOT);
	for (uint32_t i = 0; i < disk->ninodes; i++)
		if (disk->inodes[i] != NULL && !disk->inodes[i]->linked)
		{
			sim_inode_free(disk->inodes[i]);
			disk->inodes[i] = NULL;
		}
	for (int i = 0; i < SIM_FAULTS_MAX; i++)
		disk->faults[i].left = 0;
	disk->crashed = false;
	disk->crashing = false;
	disk->halfway = false;
	disk->crash_step = 0;
}

void
sim_disk_kill(SimDisk *disk)
{
	assert(!disk->crashed);
	void_handles(disk);
}

bool
sim_disk_evict(SimDisk *disk)
{
	bool		found = false;

	for (uint32_t i = 0; i < disk->ninodes; i++)
	{
		SimInode   *inode = disk->inodes[i];
		uint64_t	before;

		if (inode == NULL || !inode->diverged)
			continue;
		before = inode->current.size;
		sim_content_copy(&inode->current, &inode->stable);
		for (size_t k = 0; k < inode->nchanges; k++)
			sim_change_apply(&inode->current, &inode->changes[k]);
		if (inode->linked || inode->handles > 0)
			disk->used = disk->used - before + inode->current.size;
		inode->diverged = false;
		found = true;
	}
	return found;
}
