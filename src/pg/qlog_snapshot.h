/*
 * qlog_snapshot.h
 *		Snapshots of the checkpoint, and how far they hold back what may be taken away.
 *
 * The floor itself is qc_start_floor (core/qc_state.h), under the state lock: min(mark of the checkpoint, marks of the
 * snapshots kept); nothing at or below it is needed by any start.  Snapshots are taken by the checkpointer every
 * qlog.snapshot_interval, after so many bytes of log, when space waits for the floor (qlog_snapshot_wish), and when they are
 * asked for (qlog_checkpoint).
 *
 * Callers: whoever takes entries or files away; fn_checkpoint.c.
 */
#ifndef QLOG_SNAPSHOT_H
#define QLOG_SNAPSHOT_H

#include "postgres.h"

/* qc_start_floor, for those who do not hold the state lock. */
extern uint64 qlog_start_floor(void);

/*
 * Space would be given back if the floor rose: have snapshots taken earlier, as far as that costs little.	Never raises; no
 * lock is needed; to be called again as long as it holds.
 */
extern void qlog_snapshot_wish(void);

/*
 * Have a checkpoint taken, and a snapshot of it, and wait for them, interruptibly.	 Returns the mark (of the snapshot, with one).	Raises what the
 * checkpointer could not do.
 */
extern uint64 qlog_checkpoint_now(bool snapshot);

#endif							/* QLOG_SNAPSHOT_H */
