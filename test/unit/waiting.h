/*
 * waiting.h
 *		A state with one queue, for the tests of waiting: what happens to messages, and the invariants of qc_wait.h.
 */
#ifndef WAITING_H
#define WAITING_H

#include "qc_apply.h"
#include "qc_cursor.h"
#include "qc_state.h"
#include "qc_wait.h"

#define WAITING_QUEUE		1
#define WAITING_DEFAULT		10	/* id of the default partition; the named ones follow */
#define WAITING_PARTITIONS	4	/* "", "a", "b", "c" */
#define WAITING_PROCESSES	12
#define WAITING_NOBODY		UINT32_MAX

typedef struct Waiting
{
	void	   *block;
	QcState    *st;
	QcQueue    *queue;
	QcGroup    *group;			/* the default one */
	uint64_t	seq;
	uint64_t	lease;			/* last id */
	int64_t		now;			/* monotonic */
	bool		latch[WAITING_PROCESSES];
} Waiting;

extern void waiting_begin(Waiting *w);
extern void waiting_end(Waiting *w);

extern QcPartition *waiting_partition(Waiting *w, uint32_t number);

/* Push so many messages that are visible at once. */
extern void waiting_push(Waiting *w, uint32_t partition, uint32_t count);

/* Push, and settle later: an open entry's seq. */
extern uint64_t waiting_push_open(Waiting *w, uint32_t partition, uint32_t count);
extern void waiting_settle(Waiting *w, uint64_t seq, bool committed);

/*
 * Pop as queue_pop does, under one hold of the lock.	partition: number, or WAITING_NOBODY for any.	With list the process
 * is listed when nothing is found.  Returns the lease, 0 = nothing.
 */
extern uint64_t waiting_pop(Waiting *w, uint32_t process, uint32_t partition, uint32_t batch, bool list);

/* queue_wait's step. */
extern bool waiting_tell(Waiting *w, uint32_t process);

extern void waiting_ack(Waiting *w, uint64_t lease);
extern void waiting_nack(Waiting *w, uint64_t lease, int64_t delay_us);
extern void waiting_drop(Waiting *w);

/* Time passes: retries fall due, leases and claims end. */
extern void waiting_pass(Waiting *w, int64_t us);

/* The lock is released: set latches.	Returns how many processes were woken. */
extern uint32_t waiting_unlock(Waiting *w);

/* NULL, or which invariant of qc_wait.h does not hold. */
extern const char *waiting_check(Waiting *w);

#endif							/* WAITING_H */
