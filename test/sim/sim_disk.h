/*
 * sim_disk.h
 *		A disk in memory behind the I/O table, which fails and loses things on purpose.
 *
 * Every call that changes something (create, write, sync, truncate, make directory, sync directory,
 * rename, unlink, remove directory, swap) is one numbered step, whether or not it succeeds.  The
 * disk can be told to lose power at a step: that call and every later one return SIM_CRASHED until
 * sim_disk_reboot.
 *
 * What a power failure leaves:
 *	 file bytes		what sync covered stays.  Of what was written after, each 512-byte sector has the
 *					content of some moment since, on its own: later sectors may survive without the
 *					earlier ones.  A sector is never torn.
 *	 file size		that of some moment since the last sync; bytes above it are gone.
 *	 names			what sync_directory of the parent covered stays; every later create, rename,
 *					unlink, make or remove directory survives or not on its own.  Syncing a file
 *					does not save its name.
 *
 * The same seed and the same calls give the same outcome.  Not for several threads.  Running out
 * of memory, or a wrong use of these functions, ends the program.
 */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include <stdio.h>

#include "../../src/core/qc_io.h"

#define SIM_CRASHED		10001	/* no errno value: the power is gone */
#define SIM_SECTOR_SIZE	512
#define SIM_HANDLES_MAX	1024	/* open at a time, EMFILE beyond */

/* One list: drives the enum and the names in the trace.  Reads are counted, but are no steps. */
#define SIM_OP_LIST(X) \
	X(CREATE, "create") \
	X(WRITE, "write") \
	X(SYNC, "sync") \
	X(TRUNCATE, "truncate") \
	X(MKDIR, "mkdir") \
	X(SYNC_DIRECTORY, "sync_directory") \
	X(RENAME, "rename") \
	X(UNLINK, "unlink") \
	X(RMDIR, "rmdir") \
	X(SWAP, "swap") \
	X(READ, "read")

typedef enum SimOp
{
#define SIM_OP_ENUM(name, text) SIM_OP_##name,
	SIM_OP_LIST(SIM_OP_ENUM)
#undef SIM_OP_ENUM
	SIM_OP_COUNT
} SimOp;

/* Where in the step the power fails. */
typedef enum SimPoint
{
	SIM_BEFORE,					/* the call changes nothing */
	SIM_MIDDLE,					/* a write gets done in part: a prefix, or some of its sectors;
								 * other calls are done or not */
	SIM_AFTER					/* the call is done, its caller does not learn it */
} SimPoint;

/* What becomes of things that were not synced. */
typedef enum SimLoss
{
	SIM_KEEP_ALL,
	SIM_LOSE_ALL,
	SIM_RANDOM
} SimLoss;

typedef struct SimDisk SimDisk;

extern SimDisk *sim_disk_new(uint64_t seed);
extern void sim_disk_free(SimDisk *disk);

/*
 * A disk of its own with the same bytes, names, unsynced state, counters, seed state and swaps.
 * Handles, the planned crash, injected errors and the trace are not copied, the capacity is.
 */
extern SimDisk *sim_disk_copy(const SimDisk *disk);

/* The same with the handles, which stay good: a call that a program is about to make can be made on the copy. */
extern SimDisk *sim_disk_fork(const SimDisk *disk);

extern const QcIo *sim_disk_io(SimDisk *disk);

/* Use another stream of chance from here on. */
extern void sim_disk_reseed(SimDisk *disk, uint64_t seed);

/* Lose power at the step with this number (the first ever is 1); 0 = never. */
extern void sim_disk_crash_at(SimDisk *disk, uint64_t step, SimPoint point);

/* Lose power now. */
extern void sim_disk_stop(SimDisk *disk);
extern bool sim_disk_crashed(const SimDisk *disk);

/*
 * Power comes back (or goes and comes back, when it was not lost): what survived becomes the stable
 * content, all handles are void, no crash is planned.  The two kinds of loss are chosen apart.
 */
extern void sim_disk_reboot(SimDisk *disk, SimLoss data, SimLoss names);

/*
 * The process died, the machine did not: handles are void, unsynced things stay unsynced and are
 * still there.  The planned crash stays.  Not after a power failure.
 */
extern void sim_disk_kill(SimDisk *disk);

/* Steps done so far, and calls of one kind. */
extern uint64_t sim_disk_steps(const SimDisk *disk);
extern uint64_t sim_disk_count(const SimDisk *disk, SimOp op);

/* Attempts to open a file that may be there, and names that lists have shown. */
extern uint64_t sim_disk_opens(const SimDisk *disk);
extern uint64_t sim_disk_shown(const SimDisk *disk);

/* Handles that are open: a leak check. */
extern int	sim_disk_handles(const SimDisk *disk);

/*
 * The nth call of this kind (SIM_OP_COUNT = any step) from now on (1 = the next) fails with this errno value.  A failed
 * write has got done in part; a failed sync drops what was to be synced, as Linux does: it still
 * reads back, later syncs succeed, and a power failure loses it.  Several may be planned.
 */
extern void sim_disk_fail(SimDisk *disk, SimOp op, uint64_t nth, int error);

/* No call fails any more, and there is room. */
extern void sim_disk_heal(SimDisk *disk);

/* Forget the cached bytes that a failed sync dropped: reads now show what the disk has.  false = there are none. */
extern bool sim_disk_evict(SimDisk *disk);

/* All file sizes together may not exceed this: ENOSPC, with writes done up to it.  UINT64_MAX = no limit. */
extern void sim_disk_set_capacity(SimDisk *disk, uint64_t bytes);
extern uint64_t sim_disk_used(const SimDisk *disk);

/*
 * Damage: xor the byte at position, in what is stable and in what is cached.  Returns 0 or an errno
 * value (ERANGE above the end).
 */
extern int	sim_disk_flip(SimDisk *disk, const char *path, uint64_t position, uint8_t mask);

/* A digest of all names, sizes and bytes as they read now. */
extern uint64_t sim_disk_digest(const SimDisk *disk);

/* Show every name as programs see it, a directory before what is in it, in order of names; size 0 of a directory. */
typedef void (*SimVisitor) (void *context, const char *path, bool is_directory, uint64_t size);
extern void sim_disk_visit(const SimDisk *disk, SimVisitor visit, void *context);

/* For debugging: bytes of a file in hexadecimal; the tree; every step as it comes (NULL = none). */
extern void sim_disk_dump(const SimDisk *disk, const char *path, FILE *out);
extern void sim_disk_tree(const SimDisk *disk, FILE *out);
extern void sim_disk_trace(SimDisk *disk, FILE *out);

/*
 * Named values that are replaced as a whole, for sim_store.c.  Beside the files; a swap is one
 * step, durable when it returns.  Cut off in the middle it is done or not.
 */
extern int	sim_disk_swap(SimDisk *disk, const char *name, const void *bytes, size_t len);

/* The value, valid until the next swap of this name; NULL when there is none. */
extern const uint8_t *sim_disk_swapped(const SimDisk *disk, const char *name, size_t *len);

#endif							/* SIM_DISK_H */
