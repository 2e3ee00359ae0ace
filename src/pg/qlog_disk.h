/*
 * qlog_disk.h
 *		Room on the disk: when pushes are refused, and the reserve that lets everything else go on.
 *
 * Above qlog.disk_high_pct pushes, and what makes queues and partitions (QcPlan.grows), are refused with 53100; everything
 * else goes on.  They are accepted again at qlog.disk_low_pct.  Whoever commits a push measures, at most once a second, and
 * the checkpointer worker does while it is awake or pushes are refused; so an idle server costs nothing.
 *
 * A file RESERVE on each file system that holds a part of the data directory has qlog.disk_reserve bytes that nobody uses.  When
 * the disk is full all the same, whoever is entitled to it shortens it by a piece and tries again: acknowledgements, checkpoints, recovery, reclaim,
 * the stash of redo.  From then on pushes are refused until the file is whole again; the checkpointer worker sees to that when
 * there is room.  What others have used up meanwhile cannot be helped.
 *
 * Callers: qlog_io.c, qlog_stash.c and wrk_checkpoint.c give up pieces; qlog_commit.c, qlog_message.c refuse; fn_stat.c shows.
 */
#ifndef QLOG_DISK_H
#define QLOG_DISK_H

#include "postgres.h"

#include <sys/stat.h>

#include "../core/qc_plan.h"

typedef enum QlogDiskState
{
	QLOG_DISK_OPEN,
	QLOG_DISK_HIGH,				/* filled above qlog.disk_high_pct, and not below the low one since */
	QLOG_DISK_FULL				/* pieces of the reserve are gone */
} QlogDiskState;

/* Raise 53100 when pushes are refused.	 Reads one word: for the calls. */
extern void qlog_disk_check_call(void);

/* The same at PRE_COMMIT, for a plan that grows; measures when that is due. */
extern void qlog_disk_check(const QcPlan *plan);

/* What the processes of this worker do may use the reserve, or (false) not any more; returns what it was. */
extern bool qlog_disk_entitle(bool entitled);

/*
 * This device is full: give up a piece of its reserve, if this process may.  false = try no more.	 Those who are in a critical section
 * may always.	Never raises.  errno is kept.
 */
extern bool qlog_disk_give(dev_t device);

/* The device of a path, or of what is above it as long as it does not exist; 0 = not known. */
extern dev_t qlog_disk_device(const char *path);

/* Is this the errno value of a full disk? */
extern bool qlog_disk_is_full(int error);

/* Free bytes of the file system in use that has the fewest, -1 = not known; of the smallest reserve; are pushes refused? */
extern void qlog_disk_figures(int64 *free_bytes, int64 *reserve, bool *refused);

/* By the checkpointer worker: measure, make the reserve whole, log what has changed.	The disk is looked at once a second, or now. */
extern void qlog_disk_upkeep(bool now);

/* Are pushes refused? */
extern bool qlog_disk_short(void);

/* Must the checkpointer worker look again, although there is nothing else to do? */
extern bool qlog_disk_watch(void);

#endif							/* QLOG_DISK_H */
