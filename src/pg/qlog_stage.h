/*
 * qlog_stage.h
 *		What the current transaction wants done to queues, per subtransaction, in backend memory.
 *
 * Nothing here is shared.  Subtransactions form a stack, and what an inner one stages stands behind what outer ones
 * have staged: rolling one back cuts the tail of every list, keeping it only lowers a number.  Each costs O(1), and
 * one that stages nothing costs nothing.
 *
 * Callers: fn_*.c and qlog_lookup.c stage; qlog_xact.c reads it all at PRE_COMMIT and drives the callbacks.
 */
#ifndef QLOG_STAGE_H
#define QLOG_STAGE_H

#include "qlog_args.h"

#include "utils/acl.h"

#include "../core/qc_plan.h"

/* A queue as the current database and transaction see it. */
typedef struct QlogQueue
{
	uint64		id;
	uint64		log;
	uint64		default_partition;
	Oid			owner;
	uint8		flags;			/* QC_QUEUE_* */
	bool		own;			/* created by this transaction: nobody else sees it */
	Acl		   *acl;			/* NULL = the owner has everything; valid to the end of the
								 * transaction */
	QcOptions	options;
} QlogQueue;

/* Where messages go. */
typedef struct QlogTarget
{
	uint64		queue;
	uint64		partition;
	uint64		log;
	int			level;			/* zstd, 0 = off */
	int64		dedup_us;		/* window within which dedup ids count, 0 = they do not */
	uint64		lane;			/* delay lane to wait in; 0 = deliver now */
	int64		due;			/* with lane: until when, microseconds since the Unix epoch */
} QlogTarget;

/* A catalog change that only this transaction sees until it commits. */
typedef enum QlogChangeKind
{
	QLOG_CHANGE_CREATED,
	QLOG_CHANGE_ALTERED,		/* the name is the new one */
	QLOG_CHANGE_RENAMED,		/* the queue does not have this name any more */
	QLOG_CHANGE_DROPPED,
	QLOG_CHANGE_PARTITION		/* of a queue that this transaction created */
} QlogChangeKind;

typedef struct QlogChange
{
	QlogChangeKind kind;
	QlogQueue	queue;			/* as it is now; DROPPED: own = created here too */
	uint64		partition;
	uint16		name_len;
	char		name[QLOG_NAME_MAX];
} QlogChange;

typedef enum QlogGroupChangeKind
{
	QLOG_GROUP_CREATED,
	QLOG_GROUP_DROPPED,
	QLOG_GROUP_SOUGHT			/* it goes on under this id */
} QlogGroupChangeKind;

/* A change of a consumer group that only this transaction sees until it commits. */
typedef struct QlogGroupChange
{
	QlogGroupChangeKind kind;
	uint64		queue;
	uint64		group;			/* id */
	bool		own;			/* created by this transaction: nobody else sees it */
	uint16		name_len;
	char		name[QLOG_NAME_MAX];
} QlogGroupChange;

/* Positions of a lease that are acknowledged or rejected; none of them: the lease had been acknowledged before. */
typedef struct QlogDone
{
	uint64		lease;
	uint64		partition;
	uint64		first;
	uint32		count;
} QlogDone;

/* Dead letters, by their positions in a lane, that leave it. */
typedef struct QlogTaken
{
	uint64		lane;
	uint64		first;
	uint32		count;
} QlogTaken;

/* A staged operation, and the queue it is for (0 = stays whatever happens to queues). */
typedef struct QlogStaged
{
	QcOp		op;
	uint64		queue;
	QcEffectKind effect;		/* of an effect without items, and of queue_alter */
	bool		superseded;		/* by a later queue_alter */
	bool		alone;			/* one message with a dedup id: no other one is put behind it */
	bool		dropped;		/* a message with this dedup id has come first */
} QlogStaged;

/* A push with a dedup id. */
typedef struct QlogDedup
{
	uint32		op;				/* its number */
	bool		strict;			/* a duplicate refuses the transaction */
	uint64		queue;
	uint64		partition;		/* for which the id counts */
	int64		window_us;
	uint8		hash[QC_HASH_SIZE];
	uint8		id[QC_ID_SIZE]; /* of the message */
} QlogDedup;

/*
 * Everything staged.	 Arrays are in the order of the calls.
 */
typedef struct QlogStage
{
	QlogStaged *ops;
	uint32		nops;
	uint32		maxops;
	QlogDone   *done;
	uint32		ndone;
	uint32		maxdone;
	QlogTaken  *taken;
	uint32		ntaken;
	uint32		maxtaken;
	QlogDedup  *dedups;
	uint32		ndedups;
	uint32		maxdedups;
	QlogChange *changes;
	uint32		nchanges;
	uint32		maxchanges;
	QlogGroupChange *groups;
	uint32		ngroups;
	uint32		maxgroups;
	uint64		bytes;			/* of frames, hashes and effects */
	uint64		effect_bytes;	/* of effects, without those of plain pushes */
	bool		closed;			/* the plan is built: nothing more can be staged */
} QlogStage;

extern QlogStage qlog_stage;

/* Memory that lives until the end of the transaction, made at first use. */
extern MemoryContext qlog_stage_context(void);

/* Memory for the plan, until the end of the transaction; NULL when there is none.	Never raises. */
extern void *qlog_stage_alloc(size_t size);

/*
 * All of these may raise 54000 when qlog.max_transaction_bytes would be exceeded, or when a record of the transaction would
 * not fit into half a log file, and 25000 when the transaction has passed its PRE_COMMIT.	They copy what they are given.
 */
extern void qlog_stage_message(const QlogTarget *target, const QcMessage *message);

/* A message with a dedup id, which qlog_dedup_known() did not know; strict: as QlogDedup.strict. */
extern void qlog_stage_dedup(const QlogTarget *target, const QcMessage *message, const uint8 *hash,
							 bool strict);

/* Positions of a lease are done at COMMIT; the caller has found them in the lease. */
extern void qlog_stage_ack(uint64 lease, uint64 group, const QcAckItem *ranges, uint32 nranges);

/*
 * The transaction was told that a lease had been acknowledged before: it may commit only when it has no other work.
 */
extern void qlog_stage_repeated(uint64 lease);

/* The message goes to the lane and the leased position ends; lane and lane_position of dead are filled in here. */
extern void qlog_stage_dead(const QcDead *dead, const QlogTarget *lane, const QcMessage *message);

/* An effect with items; queue: whose ops it belongs to. */
extern void qlog_stage_items(uint64 queue, QcEffectKind kind, const void *fixed, const void *items,
							 size_t item_size, uint32 nitems);

/* The leased position ends and its message is dropped: dead->lane is 0. */
extern void qlog_stage_drop(const QcDead *dead);

/* As a push of a message that the queue has already, elsewhere: neither pauses nor max_bytes hold it up. */
extern void qlog_stage_moved(const QlogTarget *target, const QcMessage *message);

/* Dead letters leave their lane, into partitions (copies have been staged) or for good. */
extern void qlog_stage_redrive(uint64 lane, const QcRedriveItem *ranges, uint32 nranges);
extern void qlog_stage_purge_dead(uint64 lane, const QcPurgeDeadItem *ranges, uint32 nranges);

/* Has this transaction taken the dead letter out of the lane already? */
extern bool qlog_stage_is_taken(uint64 lane, uint64 position);

/* Any effect without items; queue: whose ops it belongs to. */
extern void qlog_stage_effect(uint64 queue, QcEffectKind kind, const void *fixed);

/* The queue's new definition, with the elements of its ACL. */
extern void qlog_stage_alter(const QcQueueAlter *alter, const QcQueueAlterItem *items,
							 uint32 nitems);

/* Remember a catalog change of this transaction. */
extern void qlog_stage_change(QlogChangeKind kind, const QlogQueue *queue, uint64 partition,
							  QlogName name);

/* The newest change of this queue name; NULL when there is none. */
extern const QlogChange *qlog_stage_find_queue(QlogName name);

/* The newest change of the queue with this id: CREATED, ALTERED or DROPPED; NULL when there is none. */
extern const QlogChange *qlog_stage_find_queue_id(uint64 id);

/* The id of a partition that this transaction made in its own queue; 0 when there is none. */
extern uint64 qlog_stage_find_partition(uint64 queue, QlogName name);

/* Remember a change of a consumer group. */
extern void qlog_stage_group(QlogGroupChangeKind kind, uint64 queue, uint64 group, bool own,
							 QlogName name);

/* The newest change of this group; NULL when there is none. */
extern const QlogGroupChange *qlog_stage_find_group(uint64 queue, QlogName name);

/* Groups that the queue will have more (less, when negative) than now. */
extern int64 qlog_stage_count_groups(uint64 queue);

/* An id for a group of a queue that this transaction makes. */
extern uint64 qlog_stage_next_group(uint64 queue);

/* Has this transaction acknowledged or rejected the position of the lease already? */
extern bool qlog_stage_is_done(uint64 lease, uint64 partition, uint64 position);

/* Open a level for the current subtransaction unless it has one; returns the leases held below it. */
extern uint32 qlog_stage_enter(void);

/* Subtransaction callbacks. */
extern void qlog_stage_subcommit(int nest_level);
extern void qlog_stage_subabort(int nest_level);

/* End of the transaction: forget everything and give the memory back. */
extern void qlog_stage_reset(void);

#endif							/* QLOG_STAGE_H */
