/*
 * machine.h
 *		The state machine without files: plans are built, credited and reserved as the server does it, entries live in the
 *		ring only.
 *
 * Queue q has log q and default partition 100 + q.  Clocks stand still until a test moves them.
 */
#ifndef MACHINE_H
#define MACHINE_H

#include "recovery.h"

#include "qc_apply.h"
#include "qc_cursor.h"
#include "qc_lane.h"
#include "qc_lease.h"
#include "qc_plan.h"
#include "qc_rows.h"

#define MACHINE_OPS 64

typedef struct Machine
{
	QcStateConfig config;
	void	   *state_block;
	void	   *ring_block;
	QcState    *st;
	QcRing	   *ring;
	int64_t		now;			/* wall clock, microseconds */
	int64_t		monotonic;
	Rows		rows;			/* the checkpoint */
	QcError		err;
	QcOp		ops[MACHINE_OPS];	/* of the entry that is being put together */
	uint32_t	nops;
	void	   *memory[1024];	/* what plans and ops were given */
	uint32_t	nmemory;
} Machine;

extern void machine_begin(Machine *m);

/* As machine_begin with a state memory of this size. */
extern void machine_begin_small(Machine *m, uint64_t state_bytes);
extern void machine_end(Machine *m);

/* Put operations of the next entry together. */
extern void machine_op_push(Machine *m, uint64_t partition, uint64_t log, uint32_t count);
extern void machine_op_delay(Machine *m, uint64_t lane, uint64_t log, uint32_t count,
							 uint64_t target, int64_t due);
extern void machine_op_dead(Machine *m, const QcDead *dead, uint64_t log);
extern void machine_op_effect(Machine *m, QcEffectKind kind, const void *fixed, const void *items,
							  size_t item_size, uint32_t nitems);

/*
 * Log the entry.  immediate: settled at once.  xid 0: settled by machine_settle, as durability would.  Returns the open
 * entry (NULL: immediate, or the credit was refused, which *status says; NULL status: it must not be).
 */
extern QcOpen *machine_log(Machine *m, uint64_t xid, bool immediate, QcStatus *status);
extern void machine_settle(Machine *m, QcOpen *open, bool committed);

/* Whole entries of one kind, settled. */
extern void machine_queue(Machine *m, uint64_t queue, const QcOptions *options);
extern void machine_partition(Machine *m, uint64_t queue, uint64_t partition, const char *name,
							  uint8_t lane);
extern void machine_push(Machine *m, uint64_t queue, uint64_t partition, uint32_t count);

/* Pop from one partition under this lease id; returns the number of messages.  committed: the lease runs. */
extern uint32_t machine_pop(Machine *m, uint64_t queue, uint64_t partition, uint64_t lease,
							uint32_t batch, bool committed);
extern void machine_ack(Machine *m, uint64_t lease, uint64_t partition, uint64_t first,
						uint32_t count);

/* The slot of a position of the default group; NULL = done or never delivered. */
extern QcSlot *machine_slot(Machine *m, uint64_t partition, uint64_t position);

/* A new state from the rows of the last checkpoint, on these clocks. */
extern void machine_load(Machine *m);

/* Checkpoint, then a new state from it. */
extern void machine_reload(Machine *m);

#endif							/* MACHINE_H */
