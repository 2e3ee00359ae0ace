/*
 * sim_disk_int.h
 *		Inside the simulated disk: shared by sim_disk.c, sim_names.c, sim_crash.c and sim_control.c.
 *
 * Everything exists twice: `current` is what running programs see, `stable` is what no power failure
 * takes away.  Between them lies the list of changes since the last sync, in order.
 * Invariant: stable plus all of those changes is current, except in a file that is `diverged`.
 */
#ifndef SIM_DISK_INT_H
#define SIM_DISK_INT_H

#include "sim_content.h"
#include "sim_disk.h"
#include "sim_random.h"

#define SIM_NAME_MAX	64
#define SIM_FAULTS_MAX	8
#define SIM_ROOT		0		/* inode of the root directory */

/* A change of a file that is not synced yet. */
typedef struct SimChange
{
	bool		resize;			/* a truncate to `position`; otherwise a write */
	uint64_t	position;
	uint64_t	len;
	SimBuffer  *bytes;			/* NULL = zeros */
} SimChange;

typedef struct SimEntry
{
	char		name[SIM_NAME_MAX];
	uint32_t	inode;
} SimEntry;

typedef struct SimNames
{
	size_t		count;
	size_t		cap;
	SimEntry   *entries;
} SimNames;

typedef enum SimNameKind
{
	SIM_NAME_ADD,				/* to appears */
	SIM_NAME_MOVE,				/* from becomes to */
	SIM_NAME_REMOVE				/* from is gone */
} SimNameKind;

/* A change of a directory that is not synced yet. */
typedef struct SimNameChange
{
	SimNameKind kind;
	uint32_t	inode;
	char		from[SIM_NAME_MAX];
	char		to[SIM_NAME_MAX];
} SimNameChange;

typedef struct SimInode
{
	bool		is_directory;
	bool		linked;			/* has a current name */
	uint32_t	handles;
	char		last[SIM_NAME_MAX]; /* latest name, for the trace */

	/* a file */
	SimContent	current;
	SimContent	stable;
	SimChange  *changes;
	size_t		nchanges;
	size_t		cap_changes;
	bool		diverged;		/* a sync failed: current shows bytes that will never be stable */

	/* a directory */
	SimNames	names;
	SimNames	stable_names;
	SimNameChange *moves;
	size_t		nmoves;
	size_t		cap_moves;
} SimInode;

typedef struct SimHandle
{
	bool		open;
	bool		writable;
	uint32_t	inode;
	uint32_t	generation;
} SimHandle;

typedef struct SimFault
{
	SimOp		op;
	uint64_t	left;			/* 0 = free */
	int			error;
} SimFault;

typedef struct SimValue
{
	char		name[SIM_NAME_MAX];
	SimBuffer  *bytes;
} SimValue;

struct SimDisk
{
	QcIo		io;
	uint64_t	random;
	SimInode  **inodes;			/* NULL = free */
	uint32_t	ninodes;
	SimHandle	handles[SIM_HANDLES_MAX];
	SimValue   *values;
	size_t		nvalues;

	bool		crashed;
	bool		crashing;		/* the power fails when the running step ends */
	bool		halfway;		/* and the running write is to be done in part */
	uint64_t	crash_step;
	SimPoint	crash_point;

	uint64_t	steps;
	uint64_t	counts[SIM_OP_COUNT];
	uint64_t	opens;			/* of files that may be there */
	uint64_t	shown;			/* names shown to visitors of lists */
	SimFault	faults[SIM_FAULTS_MAX];
	uint64_t	capacity;
	uint64_t	used;			/* sizes of all files with a name or a handle */
	FILE	   *trace;
};

/*
 * Every step starts with sim_step_begin and, when that returns true, ends with sim_step_end, which
 * turns the call's result into the one its caller gets.  When it returns false *result is final.
 * *fault is the errno value to fail with, 0 = none.
 */
extern bool sim_step_begin(SimDisk *disk, SimOp op, const char *what, int *fault, int *result);
extern int	sim_step_end(SimDisk *disk, int result);

/* The fault planned for this call, 0 = none. */
extern int	sim_fault_due(SimDisk *disk, SimOp op);

/* The number that programs know a handle's slot by. */
static inline QcHandle
sim_handle_number(const SimDisk *disk, int slot)
{
	return (QcHandle) (disk->handles[slot].generation * SIM_HANDLES_MAX) + slot;
}

/* sim_names.c */
extern SimEntry *sim_names_find(const SimNames *names, const char *name);
extern void sim_names_set(SimNames *names, const char *name, uint32_t inode);
extern void sim_names_remove(SimNames *names, const char *name);
extern void sim_names_copy(SimNames *to, const SimNames *from);
extern void sim_names_clear(SimNames *names);

/* Walk to the directory that holds the last part of path, which is copied to name. 0 or errno. */
extern int	sim_walk(const SimDisk *disk, const char *path, uint32_t *directory,
					 char name[SIM_NAME_MAX]);

/* The inode behind a path as programs see it; "" is the root. 0 or errno. */
extern int	sim_lookup(const SimDisk *disk, const char *path, uint32_t *inode);

extern int	sim_make_directory(void *context, const char *path);
extern int	sim_sync_directory(void *context, const char *path);
extern int	sim_list(void *context, const char *path, QcNameVisitor visit, void *visit_context);
extern int	sim_rename(void *context, const char *from, const char *to);
extern int	sim_unlink(void *context, const char *path);
extern int	sim_remove_directory(void *context, const char *path);

/* Add an unsynced file or directory to a directory; returns its inode. */
extern uint32_t sim_add_inode(SimDisk *disk, uint32_t directory, const char *name,
							  bool is_directory);

/* Apply one change of names to a list of names. */
extern void sim_name_change_apply(SimNames *names, const SimNameChange *change);

extern void sim_inode_free(SimInode *inode);

/* Its last name or handle went: a file that nobody can reach any more uses no room. */
extern void sim_inode_release(SimDisk *disk, uint32_t number);

/* sim_crash.c */
extern void sim_change_apply(SimContent *content, const SimChange *change);
extern void sim_changes_clear(SimInode *inode);

#endif							/* SIM_DISK_INT_H */
