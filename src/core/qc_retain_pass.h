/*
 * qc_retain_pass.h
 *		Retention of a whole server: a walk over all partitions in steps, and the entry that each step logs.
 *
 * A step looks at a bounded number of partitions and notes those of which something may go.  Where an age decides, the caller
 * finds the position at which younger messages begin, without the lock.	Then, in the hold that logs the entry, every noted
 * partition is judged again.
 *
 * How old a message is says the time of its record.	So that a partition is not searched at every turn, it remembers how old
 * the oldest message can be at most (done_floor, any_floor), and a search waits until a 32nd of the age has passed beyond.
 *
 * A partition that has been empty for the partition_idle of its queue goes as a whole, unless something refers to it: a lease,
 * a delayed message, a dead letter, a dedup id within its window.	A replay must find all that was ever in it decided: so it
 * goes only when every entry from before it was seen idle has its decision in the log (idle_seq).
 *
 * All functions: state lock.
 */
#ifndef QC_RETAIN_PASS_H
#define QC_RETAIN_PASS_H

#include "qc_plan.h"
#include "qc_retain.h"

#define QC_RETAIN_LOOK		500 /* partitions that a step looks at */
#define QC_RETAIN_STEP		64	/* ... and notes */
#define QC_RETAIN_SLACK		32
#define QC_RETAIN_FULL		16	/* queues above their retention_bytes that a step notes */

/* Where messages begin that were pushed at some time or later. */
typedef struct QcRetainEdge
{
	int64_t		before;			/* that time, microseconds since the Unix epoch; INT64_MIN: none
								 * asked for */
	bool		search;			/* it must be looked for among [low, high) */
	bool		found;			/* set by the caller, with: */
	uint64_t	position;		/* the first such position, high when there is none */
	int64_t		at;				/* when its message was pushed; `before` when there is none */
} QcRetainEdge;

/* A partition of which something may go. */
typedef struct QcRetainNote
{
	uint64_t	partition;		/* id; set to 0 by the caller: not any more */
	uint64_t	low;			/* its start and stable end when it was noted */
	uint64_t	high;
	QcRetainEdge done;
	QcRetainEdge any;
	bool		drop;			/* it is empty and idle: it goes as a whole */
} QcRetainNote;

/* One step. */
typedef struct QcRetainStep
{
	int64_t		now;			/* wall clock, microseconds since the Unix epoch */
	uint32_t	looked;
	uint32_t	n;
	uint32_t	nranges;		/* that this step wants at most */
	bool		aged;			/* time alone may soon make something go */
	uint32_t	nfull;
	uint64_t	full[QC_RETAIN_FULL];	/* ids of queues that may hold more than their
										 * retention_bytes; others are noted by a later walk */
	QcRetainNote notes[QC_RETAIN_STEP];

	/*
	 * Results of qc_retain_put: partitions that go; queues that lose messages unread, and how
	 * many.
	 */
	uint32_t	ndropped;
	uint32_t	nreports;
	struct
	{
		uint64_t	queue;
		uint64_t	unread;
	}			reports[QC_RETAIN_STEP];
	QcRetainVerdict verdicts[QC_RETAIN_STEP];
} QcRetainStep;

/* Bytes of effects that one step puts at most. */
#define QC_RETAIN_EFFECTS \
	((size_t) QC_RETAIN_STEP * (3 * (QC_EFFECT_HEAD_SIZE + 8 + 4) + 24 + QC_RETAIN_RANGES * 24))

/* Begin the walk anew. */
extern void qc_retain_begin(QcState *st);

/* Go on with it: note what may go.	step->now is set.	false = the walk is over. */
extern bool qc_retain_look(QcState *st, QcRetainStep *step);

/*
 * Judge again what was noted and put the effects; returns their number, 0 = nothing goes.	The caller has promised
 * step->nranges objects (QcPlan.needs.npending).
 */
extern uint32_t qc_retain_put(QcState *st, QcRetainStep *step, QcWriter *w);

/*
 * The records of a queue were counted: `kept` bytes of them stay when about `removed` messages go, which were pushed before
 * the time (0: none goes); the walks to come see to that.
 */
extern void qc_retain_bytes(QcState *st, QcQueue *queue, uint64_t kept, uint64_t removed,
							int64_t before);

/* The walk goes on with the next queue: its present one goes away, or is done. */
extern void qc_retain_next_queue(QcState *st);

#endif							/* QC_RETAIN_PASS_H */
