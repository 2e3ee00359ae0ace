/*
 * qc_plan.h
 *		From what a transaction has staged to one log entry: build, credit, reserve, fill.
 *
 *	 1. qc_plan_build	no lock: groups pushes by partition, cuts them into records of about 64 KiB,
 *						compresses, encodes the entry with positions still zero
 *	 2. qc_plan_credit	state lock: promises log space and state objects; what is lacking is named, and
 *						the caller makes room without the lock and tries again
 *	 3. qc_plan_reserve	state lock, once qc_plan_has_room: seq, positions, places; applies the effects.
 *						Cannot fail.
 *	 4. qc_plan_fill	no lock: copies into the ring, seals checksums.  Cannot fail.
 *	 5. flush (qc_ring.h), then qc_open_settle (qc_open.h)
 *
 * The simulator and the PostgreSQL shell use exactly these steps.
 */
#ifndef QC_PLAN_H
#define QC_PLAN_H

#include "qc_effect.h"
#include "qc_entry.h"
#include "qc_frame.h"
#include "qc_ring.h"

#define QC_RECORD_RAW_TARGET 65536

/* Returns NULL when there is no memory; never jumps. */
typedef void *(*QcAlloc) (void *context, size_t size);

/* One staged operation of a transaction. */
typedef enum QcOpKind
{
	QC_OP_PUSH,					/* frames into a partition */
	QC_OP_DELAY,				/* frames into a delay lane, for a partition later */
	QC_OP_DEAD,					/* a push into a dead lane that ends a leased position */
	QC_OP_EFFECT				/* any other effect, encoded already */
} QcOpKind;

typedef struct QcOp
{
	QcOpKind	kind;
	uint64_t	partition;		/* where the frames go */
	uint64_t	log;
	uint32_t	count;			/* frames */
	const uint8_t *frames;		/* encoded, concatenated */
	size_t		frames_len;
	const uint8_t *hashes;		/* count x 16 bytes */
	int			level;			/* zstd, 0 = off */
	bool		moved;			/* PUSH: the queue has the messages already, elsewhere */
	QcDead		dead;			/* DEAD: lane and lane_position are filled in here */
	QcDelay		delay;			/* DELAY: lane and first are filled in here */
	const uint8_t *effect;		/* EFFECT: one encoded effect */
	size_t		effect_len;
} QcOp;

/* A message record of the plan. */
typedef struct QcPlanRecord
{
	uint8_t    *bytes;
	uint32_t	size;
	uint32_t	count;
} QcPlanRecord;

/* Messages of one partition. */
typedef struct QcPlanAppend
{
	uint64_t	partition;
	uint64_t	log;
	uint32_t	log_index;		/* in QcPlan.logs */
	uint32_t	count;
	uint32_t	record;			/* first of its records */
	uint32_t	nrecords;
	bool		moved;			/* all of it: neither pauses nor max_bytes hold it up */
	size_t		first_at;		/* where `first` stands in the payload; unused for solo */
	uint64_t	first;			/* set by the reservation */
} QcPlanAppend;

/* A dead or delay effect whose lane position is known only at the reservation. */
typedef struct QcPlanDead
{
	size_t		position_at;	/* where that position stands in the payload */
	uint32_t	append;
	uint32_t	index;			/* of the message in that append */
} QcPlanDead;

/* Objects that applying this entry may need. */
typedef struct QcPlanNeeds
{
	uint32_t	nindex;
	uint32_t	npending;
	uint32_t	nitems;			/* open items */
	uint32_t	nlane_items;
	uint32_t	ntimers;		/* of delayed messages */
	uint32_t	nqueues;		/* queue_create effects (queue, default partition, group, names
								 * ...) */
	uint32_t	npartitions;
	uint32_t	ngroups;
	uint32_t	ncursors;		/* of new partitions, and of groups new to a partition; counted by
								 * the credit, and again by the reservation */
	uint32_t	nspare;			/* ... cursors for others' pushes, whose credit is older than a new
								 * group */
	uint32_t	nsought;		/* cursors of partitions that are sought */
	uint32_t	nslots;			/* deliver */
	uint32_t	nleases;
	uint32_t	nalters;
	uint32_t	ngrants;
	uint32_t	names[4];		/* per name class */
} QcPlanNeeds;

typedef struct QcPlan
{
	uint64_t	xid;			/* 0 = queue-only */
	uint16_t	flags;			/* QC_ENTRY_* */
	bool		solo;			/* one record is the whole entry */
	bool		immediate;		/* settled when reserved: deliveries, releases, nacks, catalog of
								 * auto-create */
	bool		ordered;		/* its decision must be logged in the hold of the lock that settles
								 * it */
	bool		grows;			/* brings new messages, queues or partitions (other than dead
								 * lanes): what a full disk refuses */
	uint32_t	pid;			/* of the backend, for views */
	uint32_t	owner;			/* deliver: as QcApply.owner */

	uint32_t	nlogs;
	uint64_t   *logs;			/* ascending */
	uint32_t	nappends;
	QcPlanAppend *appends;
	uint32_t	nrecords;
	QcPlanRecord *records;
	uint32_t	ndeads;
	QcPlanDead *deads;
	uint8_t    *payload;		/* entry payload, QC_RECORD_HEADER_SIZE free bytes before it; NULL
								 * for solo */
	size_t		payload_len;
	uint32_t	neffects;
	uint32_t	nparts;			/* at most: records, entry or stubs, and a file header for every
								 * roll */
	uint64_t	bytes;			/* of all of them */
	uint64_t   *log_bytes;		/* per log */
	uint64_t   *log_record;		/* per log: largest record */
	QcPlanNeeds needs;

	/* Keys that were claimed for messages of the plan (qc_dedup.h); set by the caller. */
	QcRef	   *dedups;
	uint32_t	ndedups;

	/* credit */
	bool		credited;
	uint64_t	ring_need;
	bool		big;			/* bytes do not go through the ring: written by qc_plan_fill */

	/* reservation */
	uint64_t	seq;
	uint64_t	epoch;
	int64_t		created_at;
	QcRef		open;			/* 0 when immediate */
	QcRingEntry *entry;
} QcPlan;

/* What qc_plan_credit lacks. */
typedef enum QcLack
{
	QC_LACK_NOTHING,
	QC_LACK_RING,				/* write out the ring */
	QC_LACK_LOG					/* extend */
} QcLack;

/*
 * Build the plan of these operations.  Memory comes from alloc and lives as long as the plan.
 * QC_LIMIT: more than QC_ENTRY_PARTITIONS_MAX partitions, or a message over segment_size / 2.
 * QC_FULL: no memory.
 */
extern QcStatus qc_plan_build(QcPlan *plan, const QcOp *ops, size_t nops, uint64_t xid,
							  uint16_t flags, uint64_t segment_size, QcAlloc alloc,
							  void *alloc_context, QcError *err);

/*
 * A plan of a few effects for q0, e.g. a delivery, in the caller's memory: no allocation.	The effects may be
 * encoded under the state lock after the credit.  Set plan.needs before the credit when they make objects.
 */
typedef struct QcSmallPlan
{
	QcPlan		plan;
	uint64_t	log;			/* storage of plan.logs and so on */
	uint64_t	log_bytes;
	uint64_t	log_record;
} QcSmallPlan;

/* Bytes of the caller's buffer for a small plan with effects of up to this size. */
#define QC_SMALL_BUFFER(effect_max) \
	(QC_RECORD_HEADER_SIZE + QC_ENTRY_HEAD_SIZE(1) + (effect_max))

extern void qc_plan_small(QcSmallPlan *small, uint8_t *buffer, size_t effect_max);

/* Where the effects go: encode them here with qc_effect_put, then tell their number. */
extern QcWriter qc_plan_small_writer(QcSmallPlan *small);
extern void qc_plan_small_done(QcSmallPlan *small, const QcWriter *w, uint32_t neffects);

/*
 * Promise everything the entry needs, or nothing.  QC_BUSY with *lack (and *extend); QC_FULL (text names
 * the setting); QC_PAUSED, QC_OVERFLOW (qc_volume.h); QC_NOTFOUND when a partition's log is gone; QC_LIMIT when it fits neither ring nor log file.
 * Room in the ring is looked for and not promised: there is some when the plan is reserved under the same
 * lock; a credit may stand for as long as its owner likes.  State lock.
 */
extern QcStatus qc_plan_credit(QcState *st, QcRing *ring, QcPlan *plan, uint64_t segment_size,
							   QcLack *lack, QcExtend *extend, QcError *err);
extern void qc_plan_uncredit(QcState *st, QcPlan *plan);

/* Look at where the entry will probably stand in the ring (qc_ring_touch).	No lock. */
extern void qc_plan_touch(QcRing *ring, const QcPlan *plan);

/*
 * Has the ring room for the entry of a plan with credit?  If not: drop the lock, write the ring out, ask again; that
 * waits for nobody but those who are filling.	State lock.
 */
extern bool qc_plan_has_room(const QcRing *ring, const QcPlan *plan);

/*
 * Reserve and apply.  now: wall clock, microseconds; monotonic: for deadlines.  State lock; room in the ring;
 * credit held, which it uses up.
 */
extern void qc_plan_reserve(QcState *st, QcRing *ring, QcPlan *plan, uint64_t segment_size,
							int64_t now, int64_t monotonic);

/*
 * Copy, seal, mark as filled.  files: for big entries, which are written here by their owner (QC_IO then
 * means that the server must not go on).  No lock.
 */
extern QcStatus qc_plan_fill(QcState *st, QcRing *ring, QcPlan *plan, QcFiles *files, QcError *err);

/*
 * Body of the WAL record of a reserved and filled joint entry (qc_walrec.h): size, then encoding into out.
 * Carried or referenced as plan->flags says.
 */
extern uint64_t qc_plan_wal_size(const QcPlan *plan);
extern void qc_plan_wal_put(const QcState *st, const QcPlan *plan, QcWriter *w);

#endif							/* QC_PLAN_H */
