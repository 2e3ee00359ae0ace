/*
 * qc_state.h
 *		The state of all queues in the core's memory block: objects, tables and their links.
 *
 * Shared by every process of the server, laid out once at start, rebuilt from checkpoint and log
 * after any crash.  ONE lock, the state lock (an LWLock of the shell), guards all of it together with
 * the seq counter and the reservation of log space.  It is held for a bounded, short time, never over
 * I/O, a wait, or an allocation from elsewhere.  Exceptions, each said at its field: progress numbers
 * that are read without the lock.
 *
 * Objects and who owns whom:
 *
 *	 queue -> groups, partitions (lists); name table by (database, name), id table
 *	 group -> cursors ready to deliver, leases (lists)
 *	 partition -> pending entries (FIFO by seq), aborted ranges, cursors, index chain
 *	 cursor = (partition, group) -> slots, one per message between the cursor and `fetch` that is not
 *			  acknowledged, in order of position
 *	 lease -> its slots; open entry -> its pending entries and items
 *	 lane (a hidden partition of dead or delayed messages, without cursors) -> lane items
 *
 * A position p of a partition is, for a cursor: done (below `fetch`, no slot, or in an aborted range),
 * in flight (a slot), or not delivered (at or above `fetch`).  There are no acknowledged ranges: what
 * has no slot below `fetch` is done.  A partition may have no cursor for a group yet: then the start rule
 * of the group says where it stands (qc_group.h).
 *
 * Entries change the state in two steps: applied when reserved, in seq order (positions taken, leases
 * pinned), and settled (visible and acknowledged, or undone) when durable or decided.  Settling is
 * commutative, so its order does not matter.
 */
#ifndef QC_STATE_H
#define QC_STATE_H

#include "qc_error.h"
#include "qc_io.h"
#include "qc_mem.h"
#include "qc_options.h"

#define QC_DEFAULT_GROUP		0	/* id of a new queue's default group; a seek replaces the group
									 * and its id: find it with qc_group_default() */
#define QC_GROUPS_MAX			64	/* of a queue */
#define QC_POP_UNSCANNED_MAX	64	/* partitions that one pop step examines */
#define QC_UNSET				UINT64_MAX	/* QcCursor.fetch: not placed yet, as if there were no
											 * cursor */
#define QC_ENTRY_PARTITIONS_MAX 4096
#define QC_SLOTS_MAX			10000	/* default of max_leases_per_cursor */
#define QC_WHEEL_LEVELS			4
#define QC_WHEEL_SIZE			256
#define QC_TICK_US				10000
#define QC_WAIT_BUCKETS			64

typedef struct QcLink
{
	QcRef		prev;
	QcRef		next;
} QcLink;

typedef struct QcList
{
	QcRef		head;
	QcRef		tail;
} QcList;

/* Lists of logs for those who would otherwise look at all of them, again and again. */
typedef enum QcLogList
{
	QC_LOGS_DROPPED,			/* without queues, waiting to be removed; by the time of the drop */
	QC_LOGS_GROWN,				/* that were appended to, until who gives them room takes them off */
	QC_LOGS_ROLLED,				/* with a file that was closed, until who indexes it takes them off */
	QC_LOGS_LISTS
} QcLogList;

/*
 * Dirty bookkeeping of an object that has a checkpoint row.  A deleted object whose row is stored stays
 * allocated until the next dump has written the deletion.
 */
#define QC_DIRTY_LISTED		1	/* in the dirty list of its kind */
#define QC_DIRTY_DELETED	2	/* gone; only its ids are still good */
#define QC_DIRTY_STORED		4	/* the last checkpoint has a row of it */

typedef struct QcDirty
{
	QcRef		next;
	uint32_t	flags;
} QcDirty;

typedef enum QcQueueState
{
	QC_QUEUE_CREATING,			/* by an open entry; only its own transaction sees it */
	QC_QUEUE_LIVE,
	QC_QUEUE_DROPPING,			/* by an open entry */
	QC_QUEUE_DEAD				/* dropped; rows are being freed */
} QcQueueState;

/* Bytes of so many messages, as they were last counted: qc_volume.h. */
typedef struct QcVolume
{
	uint64_t	count;
	uint64_t	bytes;
} QcVolume;

typedef struct QcQueue
{
	uint64_t	id;
	uint64_t	log_id;
	uint64_t	default_partition_id;
	uint64_t	delay_partition;	/* id of the delay lane, 0 = none yet */
	int64_t		created_at;
	uint32_t	database;
	uint32_t	owner;
	QcRef		name;
	uint16_t	name_len;
	uint8_t		state;			/* QcQueueState */
	uint8_t		damaged;		/* out of service: damage_file and damage_position say where */
	uint8_t		flags;			/* QC_QUEUE_* */
	uint8_t		dedup_rebuilt;	/* at this start its dedup ids are read from the logs */
	uint32_t	ngrants;
	QcRef		grants;			/* ACL, first; through QcGrant.next */
	uint32_t	nalters;		/* open entries that alter it */
	uint64_t	altered_seq;	/* entry whose queue_alter is in force, 0 = none */
	uint64_t	damage_file;
	uint64_t	damage_position;
	QcRef		name_next;		/* chain in names table */
	QcRef		id_next;		/* chain in ids table */
	QcLink		all;			/* list of all queues */
	QcRef		log;
	QcRef		default_partition;
	QcList		partitions;
	QcRef		groups;			/* first, through QcGroup.next; not those that are dead */
	uint32_t	npartitions;	/* without lanes */
	uint32_t	ngroups;		/* live ones */
	uint32_t	nscanning;		/* of these, with partitions they have not looked at */
	uint32_t	next_group;		/* id that the next group gets */
	uint32_t	group_changes;	/* groups that came to live so far, see QcPartition.group_changes */
	uint32_t	purges;			/* of the whole queue so far, see QcPartition.purges */
	uint32_t	creating;		/* groups promised by credits that have not come to live */
	uint32_t	coming;			/* ... those that replace another one included */
	uint32_t	pins;			/* credits held for messages or partitions of it: its rows must
								 * stay */
	uint64_t	visible;		/* messages kept in ordinary partitions */
	QcVolume	lanes;			/* messages in hidden lanes */
	QcVolume	kept;			/* messages kept in ordinary partitions, finished or not */
	uint64_t	open_bytes;		/* of messages that are not settled */
	uint64_t	promised_bytes; /* of messages that hold a credit */
	uint64_t	pushed_count;	/* messages ever visible, and their bytes: what an average one has */
	uint64_t	pushed_bytes;
	QcDirty		dirty;
	QcOptions	options;
	uint64_t	pushed;
	uint64_t	popped;			/* deliveries */
	uint64_t	acked;
	uint64_t	nacked;
	uint64_t	expired;
	uint64_t	dead;			/* messages in dead lanes */
	uint64_t	delayed;		/* messages in the delay lane */
	uint64_t	deduplicated;	/* pushes that a dedup id answered */
	uint64_t	dropped;		/* messages that would be dead letters, with dead_letters off */
	uint64_t	unread;			/* messages that retention has removed before every group had
								 * finished them */
	int64_t		last_push;
	int64_t		last_pop;
	int64_t		last_dedup;		/* newest push with a dedup id, or a later time */
	QcList		dedups;			/* settled ones, oldest first, through QcDedup.link */
	int64_t		bytes_before;	/* what was pushed before this time is too much for
								 * retention_bytes; never stored */
	int64_t		bytes_counted;	/* last_push when that was found out; never stored */
} QcQueue;

/* One element of a queue's ACL, as PostgreSQL's aclitem; in the order of the array. */
typedef struct QcGrant
{
	uint32_t	grantee;		/* role, 0 = PUBLIC */
	uint32_t	grantor;
	uint32_t	privileges;		/* bits of the shell */
	QcRef		next;
} QcGrant;

/* The definition that an open entry gives to a queue; it owns its name and grants until it is settled. */
typedef struct QcAlter
{
	uint64_t	seq;
	uint32_t	owner;
	uint32_t	ngrants;
	QcRef		name;
	QcRef		grants;
	uint16_t	name_len;
	uint8_t		flags;
	QcOptions	options;
} QcAlter;
typedef enum QcGroupState
{
	QC_GROUP_CREATING,			/* by an open entry: nobody sees it */
	QC_GROUP_LIVE,
	QC_GROUP_DEAD				/* dropped, or replaced by a seek; its rows are being freed */
} QcGroupState;

typedef struct QcGroup
{
	uint64_t	id;				/* within its queue, never used again */
	QcRef		queue;
	QcRef		next;			/* of the queue, or of the dead groups */
	QcRef		name;
	uint16_t	name_len;
	uint8_t		start;			/* QC_START_*: where it stands in partitions without cursor */
	uint8_t		state;			/* QcGroupState */
	int64_t		start_at;
	uint64_t	deleted_queue_id;	/* deleted: for the key of its row */
	QcList		ready;			/* cursors with something to deliver */
	QcList		leases;			/* oldest first */
	uint64_t	nready;			/* messages visible and not delivered, retries included */
	uint64_t	nleased;		/* messages */
	uint64_t	nwaiting;		/* messages that wait for a retry time, or are dying */
	uint64_t	nfull;			/* cursors with max_slots slots, from which nothing new is
								 * delivered */
	uint64_t	unscanned;		/* messages of partitions without cursor; 0 with QC_START_NEW */
	uint64_t	acked;
	uint64_t	redelivered;	/* deliveries but the first of a message */
	int64_t		last_pop;
	QcVolume	volume;			/* of the messages that are visible and not done */
	QcRef		scan;			/* partition to look at next; dead: to free the cursor of next */
	uint64_t	dead_partition; /* id of the dead lane, 0 = none yet */
	QcDirty		dirty;

	/* Waiting (qc_wait.h), never stored. */
	QcList		waiters;		/* for any partition, first come first */
	QcList		claims;			/* processes that were woken and have not popped yet */
	uint32_t	nlisted;		/* waiters, those for one partition included */
	uint32_t	nlisted_one;	/* those for one partition, which stand in buckets */
	uint32_t	nclaims;
	uint64_t	claims_weight;
	uint64_t	wakeups;		/* since the start of the server */
} QcGroup;

typedef struct QcPartition
{
	uint64_t	id;
	QcRef		queue;
	QcRef		name;
	uint16_t	name_len;
	uint8_t		lane;			/* QC_LANE_* */
	uint8_t		unused;
	QcRef		name_next;		/* chain in (queue, name) table */
	QcRef		id_next;
	QcLink		of_queue;
	uint64_t	start;			/* lowest position kept; leases from before a purge may lie below */
	uint64_t	next;			/* position that the next message gets */
	uint64_t	stable;			/* below it everything is settled */
	uint64_t	visible;		/* messages in [start, stable) */
	uint64_t	bytes;			/* of its message records */
	int64_t		last_push;		/* created_at of the last entry that pushed to it, 0 = none */
	uint32_t	group_changes;	/* of the queue when it last looked: fewer = groups may lack a
								 * cursor */
	uint32_t	purges;			/* of the queue when it last looked: fewer = it is empty up to next */
	QcList		pending;		/* entries with positions at or above stable, by seq */
	QcList		aborted;		/* ranges without messages, by position */
	QcRef		cursors;		/* through QcCursor.next */
	QcList		index;			/* QcIndexEntry chain, by position */
	QcDirty		dirty;
	uint32_t	group;			/* QC_LANE_DEAD: the group whose dead letters these are */
	uint32_t	nitems;			/* of a lane: messages in it */
	QcList		items;			/* of a lane: QcLaneItem, by position */
	uint32_t	aimed;			/* messages in lanes that are for it, or come from it */

	/*
	 * Of what was pushed before these times nothing is left that could go by its age: finished, or
	 * whatever it is.  Microseconds since the Unix epoch, 0 = not known; never stored.
	 */
	int64_t		done_floor;
	int64_t		any_floor;
	uint64_t	idle_seq;		/* no entry after this one has touched it, 0 = not known; never
								 * stored */
} QcPartition;

typedef enum QcLaneState
{
	QC_LANE_ITEM_OPEN = 1,		/* of an entry that is not settled: nobody sees it */
	QC_LANE_ITEM_LIVE,
	QC_LANE_ITEM_GONE			/* removed by a later entry before its own was settled (recovery) */
} QcLaneState;

/*
 * A message in a lane: dead, or delayed.  Its record stands at `position` of the lane.  The first field tells a live
 * object from a freed one, whose first bytes never name a partition.
 */
typedef struct QcLaneItem
{
	QcRef		lane;
	uint8_t		state;			/* QcLaneState */
	uint8_t		reason;			/* dead: QC_DEAD_* */
	uint16_t	unused;
	uint64_t	position;
	uint64_t	target;			/* partition id: dead, where it comes from; delayed, where it goes;
								 * deleted: the lane's id */
	uint64_t	origin;			/* dead: position there; delayed: due, wall clock microseconds */
	uint32_t	attempt;		/* dead: deliveries */
	uint32_t	hash;			/* delayed: of the message id */
	QcRef		timer;			/* delayed */
	QcDirty		dirty;
	QcLink		of_lane;
	QcRef		next;			/* in its bucket, by lane and position */
} QcLaneItem;

typedef struct QcCursor
{
	QcRef		partition;
	QcRef		group;
	QcRef		next;			/* cursor of the partition's next group */
	uint32_t	nslots;			/* deleted: group id */
	uint32_t	nleased;		/* slots under a lease */
	uint32_t	nwaiting;		/* slots that wait for a retry time, or are dying */
	uint64_t	fetch;			/* next position never delivered; deleted: partition id */
	QcList		slots;			/* by position */
	QcList		retry;			/* default partition: slots that can be taken again, FIFO */
	QcLink		ready;			/* in the group's ready list */
	uint32_t	is_ready;
	QcRef		hint;			/* index entry of `fetch`, may be stale: checked on use */
	uint64_t	sought;			/* seq that set the position; deliveries before it are void */
	QcDirty		dirty;
} QcCursor;

typedef enum QcSlotState
{
	QC_SLOT_LEASED,
	QC_SLOT_RETRY,				/* can be taken now */
	QC_SLOT_WAITING,			/* a timer makes it QC_SLOT_RETRY */
	QC_SLOT_DYING				/* has come back more often than retry_limit allows: not delivered
								 * again, waits for its way to the dead letters, in QcState.dying
								 * or for a timer that puts it there again.  Derived from attempt
								 * and option, not stored. */
} QcSlotState;

typedef struct QcSlot
{
	uint64_t	position;
	QcRef		cursor;
	QcRef		lease;
	uint32_t	attempt;		/* leased: number of this delivery; otherwise how often it has come
								 * back */
	QcRef		hint;			/* index entry */
	QcLink		of_cursor;
	QcLink		of_lease;		/* or of the cursor's retry list, or of QcState.dying */
	QcRef		timer;
	uint8_t		state;			/* QcSlotState */
	uint8_t		cause;			/* QC_DEAD_*: why it came back last */
	uint16_t	unused;
	int64_t		due;			/* QC_SLOT_WAITING: wall clock, microseconds */
} QcSlot;

typedef struct QcLease
{
	uint64_t	id;
	QcRef		id_next;
	QcRef		queue;
	QcRef		group;
	QcList		slots;
	uint32_t	nslots;
	uint32_t	owner;			/* backend whose transaction took it; 0 = its pop has committed */
	uint64_t	pin_seq;		/* open entry that acknowledges from it; 0 = none */
	int64_t		lease_us;
	int64_t		deadline;		/* monotonic microseconds; meaningful when owner = 0 */
	int64_t		leased_at;		/* wall clock */
	QcRef		timer;
	uint32_t	committed;		/* pop_commit applied */
	uint32_t	taken;			/* messages delivered under it */
	uint32_t	acked;			/* of these, acknowledged */
	uint64_t	delivered;		/* seq of its delivery */
	QcDirty		dirty;
	QcLink		all;
	QcLink		of_group;
} QcLease;

/* Positions of one entry in one partition that are not settled yet. */
typedef struct QcPending
{
	uint64_t	seq;
	uint64_t	first;
	uint32_t	count;
	uint8_t		settled;		/* 0 open, 1 visible, 2 aborted */
	uint8_t		unused[3];
	QcRef		partition;
	QcLink		of_partition;
	QcRef		of_open;		/* next one of the same entry */
	uint64_t	bytes;			/* of their records */
} QcPending;

/*
 * A range of positions without messages (qc_range.h); of class PENDING, so that undoing an entry needs no memory.
 */
typedef struct QcAbortedRange
{
	uint64_t	first;
	uint32_t	count;
	QcRef		next;
	int64_t		at;				/* aborted: no message of it was pushed later */
	uint8_t		gone;			/* it held messages, which retention has removed */
	uint8_t		unused[7];
} QcAbortedRange;

typedef enum QcOpenItemKind
{
	QC_OPEN_ACK,				/* positions of a lease become done */
	QC_OPEN_DEAD,				/* one position becomes done; its copy is in the dead lane */
	QC_OPEN_QUEUE_CREATE,
	QC_OPEN_QUEUE_DROP,
	QC_OPEN_QUEUE_ALTER,		/* alter: the new definition */
	QC_OPEN_GROUP_CREATE,		/* partition: queue id */
	QC_OPEN_GROUP_DROP,			/* partition: queue id */
	QC_OPEN_GROUP_SEEK,			/* partition: queue id, first: id of the group that takes its place */
	QC_OPEN_SEEK,				/* partition, first: position */
	QC_OPEN_PURGE,				/* partition: id or 0, first: queue id */
	QC_OPEN_NOTHING,			/* done already */
	QC_OPEN_DROP,				/* as QC_OPEN_DEAD, without a copy: dead_letters is off */
	QC_OPEN_DELAY,				/* partition, first, count: of a delay lane, whose messages begin
								 * to wait */
	QC_OPEN_LANE_LEAVE			/* messages of a lane, which partition names, leave it */
} QcOpenItemKind;

typedef struct QcOpenItem
{
	QcRef		next;
	uint32_t	kind;			/* QcOpenItemKind */
	uint64_t	lease;			/* id */
	uint64_t	partition;		/* id; for queue items the queue's id */
	uint64_t	first;
	uint32_t	count;
	uint32_t	group;			/* id */
	QcRef		lane_item;		/* QC_OPEN_DEAD: the copy; 0 = there is none */
	QcRef		alter;			/* QcAlter */
	uint64_t	delivered;		/* ACK, DEAD: as in the lease, UINT64_MAX = there was none */
} QcOpenItem;

/* An entry that is applied but not settled. */
typedef struct QcOpen
{
	uint64_t	seq;
	uint64_t	xid;			/* 0 = queue-only: settled by durability */
	uint64_t	lsn;			/* decided: end of the commit record, 0 = aborted */
	QcRef		pendings;		/* through QcPending.of_open */
	QcRef		items;
	QcLink		all;			/* by seq */
	uint8_t		decided;		/* 0 open, 1 committed, 2 aborted; kept until the decision is
								 * logged */
	_Atomic uint8_t inserted;	/* joint: its WAL record is inserted; set by its process without
								 * the lock */
	uint8_t		carried;
	uint8_t		moved;			/* recovery: its messages were in the queue before, in the delay
								 * lane */
	uint32_t	pid;			/* of its backend, for views; 0 after recovery */
	int64_t		since;			/* created_at, for views; 0 after recovery */
	QcRef		dedups;			/* through QcDedup.link */
	QcDirty		dirty;
} QcOpen;

typedef struct QcTimer
{
	QcLink		link;
	uint64_t	tick;
	QcRef		target;			/* a lease, a slot or a delayed message */
	uint8_t		kind;			/* QcTimerKind */
	uint8_t		level;			/* of the wheel, or QC_TIMER_* */
	uint8_t		bucket;
	uint8_t		unused;
} QcTimer;

typedef enum QcTimerKind
{
	QC_TIMER_LEASE,
	QC_TIMER_SLOT,
	QC_TIMER_ITEM
} QcTimerKind;

/* values of QcTimer.level of a timer that is not on the wheel */
#define QC_TIMER_IDLE	255		/* of a message whose entry is not settled */
#define QC_TIMER_DUE	254		/* in QcState.due */

/* Chained hash table of refs; nbuckets is a power of two, buckets stand in the block. */
typedef struct QcTable
{
	uint64_t	buckets;		/* byte offset in the block */
	uint32_t	nbuckets;
	uint32_t	count;
} QcTable;

/* Current epoch and the boundary at which each older one ended. */
#define QC_EPOCHS_MAX 64
typedef struct QcEpochRow
{
	uint64_t	epoch;
	uint64_t	first_seq;
	uint32_t	timeline;
	uint32_t	unused;
} QcEpochRow;

typedef struct QcCounters
{
	uint64_t	entries;
	uint64_t	bytes;
	uint64_t	fsyncs;
	uint64_t	fsync_us;
	uint64_t	groups;			/* flushes that made something durable */
	uint64_t	grouped;		/* entries that these made durable */
	uint64_t	group_max;
	uint64_t	waits;
	uint64_t	checkpoints;
} QcCounters;

/* A pass of qc_rows_ahead that is under way. */
typedef struct QcRowsPass
{
	QcRef		rows[QC_CLASS_COUNT];	/* what was dirty when it began and is not dumped yet, by
										 * class */
	uint32_t	phase;			/* 0 = none is under way */
	uint32_t	begun;			/* rows have been dumped for the checkpoint that comes */
	uint32_t	type;			/* whose turn it is (row_types of qc_rows.c) */
	QcRef		before;			/* last object of that list that was looked at and stays */
} QcRowsPass;

typedef struct QcState
{
	QcMem		mem;			/* first: refs count from here */

	/* Numbers that only grow. */
	uint64_t	seq;			/* last reserved */
	uint64_t	next_queue_id;
	uint64_t	next_partition_id;
	uint64_t	confirmed_seq;	/* newest confirm applied */
	uint64_t	checkpoint_seq; /* mark of the last checkpoint */
	uint64_t	snapshot_seq;	/* mark of the oldest snapshot kept (qc_snapshot.h), UINT64_MAX =
								 * none holds anything back */
	uint64_t	copies;			/* checkpoints taken, and the newest one that is stored */
	uint64_t	copies_stored;
	uint64_t	commit_lsn;		/* largest commit LSN among decisions taken */
	int64_t		last_created_at;	/* entries' clock: never goes back */

	uint64_t	directory_id;
	uint32_t	shards;			/* shared logs of the directory, 0 = each queue has its own
								 * (qc_log.h) */
	uint32_t	nepochs;
	uint32_t	max_slots;		/* qlog.max_leases_per_cursor */
	QcEpochRow	epochs[QC_EPOCHS_MAX];	/* oldest first; the last is current */

	QcTable		queue_names;
	QcTable		queue_ids;
	QcTable		partition_names;
	QcTable		partition_ids;
	QcTable		lease_ids;
	QcTable		log_ids;
	QcTable		lane_items;		/* by lane and position */
	QcTable		dedups;			/* qc_dedup.h */
	uint64_t	dedup_queue;	/* whose old ones are freed next, 0 = the first one's */

	QcList		queues;
	QcList		leases;
	QcList		dying;			/* slots to be moved to the dead letters, through of_lease */
	QcList		opens;			/* by seq */
	QcRef		logs;			/* all logs, through QcLog.next */
	QcList		log_lists[QC_LOGS_LISTS];	/* some of them */
	uint32_t	nlisted[QC_LOGS_LISTS]; /* how many */
	uint32_t	nlisted_unused;
	QcRef		dead_queues;	/* dropped, rows left to free; through QcQueue.name_next */
	QcRef		dead_groups;	/* dropped or replaced, rows left to free; through QcGroup.next */
	uint32_t	estimates;		/* 1 = there may be a group whose lag is an upper bound only */
	uint32_t	npins;			/* sum of QcQueue.pins */
	uint32_t	spare_cursors;	/* promised for pushes whose credit is older than a group */

	/* Dirty rows, deleted ones included, one list per class of objects that have rows. */
	QcRef		dirty[QC_CLASS_COUNT];
	QcRowsPass	pass;
	uint32_t	ndirty;			/* rows in these lists and those of the pass */
	uint32_t	nopens;

	/* Acknowledged leases that are remembered (qc_answer.h). */
	uint64_t	answers;		/* byte offset in the block */
	uint64_t	nanswers;		/* ever remembered */
	uint32_t	answers_max;

	/*
	 * Whoever runs the timers sleeps until `rest_until`; `alarm` = somebody armed an earlier one:
	 * wake it.
	 */
	int64_t		rest_until;		/* INT64_MIN = it does not sleep */
	uint32_t	alarm;
	uint32_t	unused;
	uint64_t	wheel_tick;		/* every timer below it has fired */
	uint32_t	ntimers;
	QcList		wheel[QC_WHEEL_LEVELS][QC_WHEEL_SIZE];

	/* Delayed messages (qc_delay.h). */
	uint64_t	ndelayed;		/* live messages in delay lanes */
	QcList		due;			/* timers of those that are due, by due time */
	int64_t		wall_offset;	/* wall minus monotonic clock, with which timers were armed */
	uint64_t	clock_queue;	/* the wall clock was set: queue and position where arming anew
								 * goes on; 0 = done */
	uint64_t	clock_position;

	/*
	 * Where the walk over all partitions stands (qc_retain_pass.h): the queue, 0 = at the end, and
	 * the partition of it that comes next, 0 = none.
	 */
	QcRef		retain_queue;
	QcRef		retain_partition;

	/* Waiting (qc_wait.h). */
	uint64_t	waiters;		/* byte offset in the block of nwaiters nodes, one per process */
	uint32_t	nwaiters;
	QcList		wakes;			/* woken, latch not set yet; empty whenever the lock is free */
	QcList		claims;			/* woken before, oldest first */
	QcList		wait_buckets[QC_WAIT_BUCKETS];	/* waiters for one partition */

	uint64_t	index_bytes_limit;
	QcCounters	counters;
} QcState;

#define QC_AT(st, type, ref) ((type *) qc_mem_at(&(st)->mem, (ref)))
#define QC_REF(st, object) qc_mem_ref(&(st)->mem, (object))

typedef struct QcStateConfig
{
	uint64_t	state_bytes;
	uint64_t	index_bytes;
	uint32_t	max_slots;
	uint32_t	max_waiters;	/* processes that may wait */
	uint64_t	dedup_bytes;
} QcStateConfig;

/* Size of the block for this configuration, and laying it out (block zeroed or not). */
extern uint64_t qc_state_size(const QcStateConfig *config);
extern QcState *qc_state_init(void *block, const QcStateConfig *config);

/* Look-ups; NULL when there is none.  By name: only queues that are LIVE or DROPPING. */
extern QcQueue *qc_queue_by_name(QcState *st, uint32_t database, const char *name, size_t len);
extern QcQueue *qc_queue_by_id(QcState *st, uint64_t id);
extern QcPartition *qc_partition_by_name(QcState *st, const QcQueue *queue, const char *name,
										 size_t len);
extern QcPartition *qc_partition_by_id(QcState *st, uint64_t id);
extern QcGroup *qc_group_by_id(QcState *st, const QcQueue *queue, uint64_t id);

/* Live groups by name; the default one is named ''. */
extern QcGroup *qc_group_by_name(QcState *st, const QcQueue *queue, const char *name, size_t len);
extern QcGroup *qc_group_default(QcState *st, const QcQueue *queue);
extern QcCursor *qc_cursor_of(QcState *st, const QcPartition *partition, const QcGroup *group);

/* A lease whose group is dead only waits to be freed: the first does not find it, the second does. */
extern QcLease *qc_lease_by_id(QcState *st, uint64_t id);
extern QcLease *qc_lease_listed(QcState *st, uint64_t id);
extern QcOpen *qc_open_by_seq(QcState *st, uint64_t seq);

static inline uint64_t
qc_epoch(const QcState *st)
{
	return st->nepochs == 0 ? 0 : st->epochs[st->nepochs - 1].epoch;
}

/*
 * No start begins below this entry: not with the checkpoint, not with a snapshot.  Entry records up to it are not needed
 * any more, and a log file may be changed or removed when a later file of its log begins with an entry up to it.
 */
static inline uint64_t
qc_start_floor(const QcState *st)
{
	return st->snapshot_seq < st->checkpoint_seq ? st->snapshot_seq : st->checkpoint_seq;
}

/* Text of a name object. */
static inline const char *
qc_name_at(const QcState *st, QcRef name)
{
	return (const char *) qc_mem_at(&st->mem, name);
}

/* Has its group been dropped or sought?  Then it only waits to be freed. */
static inline bool
qc_lease_gone(const QcState *st, const QcLease *lease)
{
	return QC_AT(st, QcGroup, lease->group)->state == QC_GROUP_DEAD;
}

/* Every position below it is done for this cursor. */
extern uint64_t qc_cursor_committed(const QcState *st, const QcCursor *cursor);

/* Is the partition delivered in order, one lease at a time? */
extern bool qc_partition_ordered(const QcState *st, const QcPartition *partition);

/* The dirty bookkeeping of an object with a row; NULL when objects of the class have none. */
extern QcDirty *qc_dirty_of(QcState *st, QcClass class, QcRef ref);

/* Put an object into its dirty list (idempotent): qc_dirty_queue(st, queue) and so on. */
extern void qc_mark_dirty(QcState *st, QcClass class, QcRef ref, QcDirty *dirty);

#define QC_MARK_DIRTY(name, Type, CLASS) \
	static inline void \
	qc_dirty_##name(QcState *st, Type *object) \
	{ \
		qc_mark_dirty(st, QC_CLASS_##CLASS, QC_REF(st, object), &object->dirty); \
	}
QC_MARK_DIRTY(queue, QcQueue, QUEUE)
QC_MARK_DIRTY(group, QcGroup, GROUP)
QC_MARK_DIRTY(partition, QcPartition, PARTITION)
QC_MARK_DIRTY(cursor, QcCursor, CURSOR)
QC_MARK_DIRTY(lease, QcLease, LEASE)
QC_MARK_DIRTY(open, QcOpen, OPEN)
QC_MARK_DIRTY(lane_item, QcLaneItem, LANE_ITEM)

/* Free an object that has a row: at once, or by the next dump when its row must be deleted first. */
extern void qc_free_row(QcState *st, QcClass class, QcRef ref, QcDirty *dirty);

/* Intrusive lists: the link stands at byte `offset` of the objects. */
extern void qc_list_append(QcState *st, QcList *list, QcRef ref, size_t offset);
extern void qc_list_prepend(QcState *st, QcList *list, QcRef ref, size_t offset);
extern void qc_list_remove(QcState *st, QcList *list, QcRef ref, size_t offset);

/* Insert ref behind `after` (0 = at the head). */
extern void qc_list_insert(QcState *st, QcList *list, QcRef after, QcRef ref, size_t offset);

/* Hash tables, by ids and by (id, name). */
extern QcRef *qc_table_bucket(QcState *st, QcTable *table, uint64_t hash);
extern uint64_t qc_hash_id(uint64_t id);
extern uint64_t qc_hash_name(uint64_t scope, const char *name, size_t len);

#endif							/* QC_STATE_H */
