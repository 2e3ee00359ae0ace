/*
 * sim_server.h
 *		One life of a simulated server: its shared memory, its processes, and what they do with the core.
 *
 * Processes are fibers.	A process can be interrupted before every numbered step (a change of the disk, a flush of the
 * WAL) and wherever it calls sim_pause; in between it runs alone, which stands for holding the state lock.	The protocol
 * is that of src/pg: the same calls of the core in the same order.
 *
 *	 sim_server.c	memory, processes, the scheduler, I/O
 *	 sim_boot.c		redo and recovery
 *	 sim_commit.c	credits, room, flushes, entries, the two commit protocols
 *	 sim_guard.c	guards and PostgreSQL's checkpoints
 *	 sim_upkeep.c	qlog's checkpointer
 *	 sim_retain.c	retention
 *	 sim_reclaim.c	reclaim, and how readers get along with it
 *	 sim_client.c	what clients do
 *	 sim_push.c		... what they push, and to which queues
 *	 sim_pop.c		... with leases
 *	 sim_group.c	... with consumer groups, and purges
 *	 sim_delay.c	delayed messages
 *	 sim_look.c		everything that a server shows, for the oracle
 *	 sim_check.c	invariants of the state
 *	 sim_wait.c		invariants of waiting, after every step
 */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "qc_apply.h"
#include "qc_plan.h"
#include "qc_read.h"
#include "qc_reclaim.h"
#include "qc_recover.h"
#include "qc_rows.h"
#include "qc_snapshot.h"
#include "sim_fiber.h"
#include "sim_store.h"
#include "sim_world.h"

#define SIM_SYSTEM		4242	/* system identifier */
#define SIM_DATABASE	5
#define SIM_PROCS		14		/* of which the first boots and looks */
#define SIM_BOOT_PROC	0
#define SIM_STORE_NAME	"store"
#define SIM_CONFIRM_MAX	1000	/* bytes of a confirm with decisions */
#define SIM_DECISIONS	40		/* of one confirm */
#define SIM_REMOVE_MAX	8		/* logs removed by one checkpoint */
#define SIM_HELD_MAX	6		/* deliveries that one client holds */
#define SIM_POP_MAX		24		/* messages of one delivery */
#define SIM_END_MAX		200		/* bytes of the effects that end a client's leases */

typedef struct SimServer SimServer;
typedef struct SimProc SimProc;

/* Memory of a process that goes with its transaction. */
typedef struct SimArena
{
	uint8_t    *bytes;
	size_t		cap;
	size_t		used;
	void	  **more;			/* what did not fit */
	size_t		nmore;
	size_t		cap_more;
} SimArena;

/* The step that a process is about to take. */
typedef struct SimPending
{
	bool		waiting;		/* it stands before one */
	bool		is_write;		/* of the disk: these bytes */
	QcHandle	handle;
	const QcIoSlice *slices;
	int			nslices;
	uint64_t	position;
} SimPending;

/* A standing credit for a confirm, as every process with joint work has it. */
typedef struct SimConfirm
{
	QcSmallPlan small;
	uint8_t		buffer[QC_SMALL_BUFFER(SIM_CONFIRM_MAX)];
} SimConfirm;

struct SimProc
{
	SimServer  *server;
	SimWorld   *world;
	uint32_t	number;
	SimFiber   *fiber;			/* NULL = runs outside of fibers */
	bool		ended;
	void		(*main) (SimProc *p);
	QcIo		io;
	QcFiles		files;
	QcReadCache cache;
	SimArena	arena;
	SimPending	pending;
	QcError		err;
	uint64_t	gone;			/* files removed or rewritten that it knows of */

	/* its place in PostgreSQL's list of processes */
	bool		delay;			/* DELAY_CHKPT_START */
	uint64_t	vxid;
	SimConfirm	confirm;
};

/* A checkpoint that is not stored yet. */
typedef struct SimBatch
{
	uint8_t    *bytes;
	size_t		cap;
	size_t		len;			/* 0 = none */
	QcRowsMark	mark;
	uint64_t	logs[SIM_REMOVE_MAX];	/* whose files go once it is stored */
	uint32_t	nlogs;
} SimBatch;

struct SimServer
{
	SimWorld   *world;
	void	   *state_block;
	void	   *ring_block;
	QcState    *st;
	QcRing	   *ring;
	QsStore    *store;
	bool		store_full;		/* pushes are refused */
	SimProc		procs[SIM_PROCS];
	uint32_t	nprocs;
	bool		stopping;		/* clients begin nothing new */
	bool		leaving;		/* workers go too */

	/* locks: who holds them, NULL = nobody */
	SimProc    *write_lock;
	SimProc    *sync_lock;
	SimProc    *extend_lock;
	SimProc    *floor_lock;
	SimProc    *name_locks[SIM_NAMES_MAX];
	bool		making[SIM_NAMES_MAX];	/* a partition, which others may use only when the WAL has
										 * its record */
	uint32_t	holders[SIM_NAMES_MAX]; /* transactions that change groups or purge: the queue
										 * stays */
	SimProc    *group_locks[SIM_NAMES_MAX][SIM_GROUPS];

	/* guards */
	uint32_t	nguards;
	uint32_t	guard_office;	/* number of the process, 0 = nobody */
	uint32_t	guard_called;
	uint64_t	joint_seq;
	uint64_t	confirmed_durable;

	/* from the end of redo */
	bool		redone;
	uint64_t	redo_end;
	uint64_t	next_xid;
	uint64_t	next_vxid;
	QcIdentity	identity;
	QcRecover	recover;		/* report of the recovery */

	SimBatch	batch;
	QcSnapshotWriter *snapshot; /* NULL = none was taken yet */
	uint64_t	snapshot_last;	/* mark of the newest one, 0 = there is none */
	bool		snapshot_wish;	/* reclaim waits for the floor */
	QcReclaim	reclaim;
	uint64_t	gone;			/* files removed or rewritten so far */

	/* number, by name, of the queue that the model knows; SIM_NONE = none */
	uint32_t	queues[SIM_NAMES_MAX];
};

/* ---- sim_server.c ---- */

extern SimServer *sim_server_new(SimWorld *world);
extern void sim_server_free(SimServer *server);

/* An empty state, in place of the one that it has. */
extern void sim_server_clear(SimServer *server);

/* Give back what is kept for servers to come, at the end of the program. */
extern void sim_server_cleanup(void);

/* A process that runs main. */
extern SimProc *sim_server_spawn(SimServer *server, void (*main) (SimProc *p));

/*
 * Let processes run, one step of one of them at a time, until all have ended (true), or n steps were taken or the server
 * has died or something is wrong (false).	before: called before each numbered step, may be NULL.
 */
typedef void (*SimBefore) (void *context, SimServer *server, const SimPending *pending);
extern bool sim_server_run(SimServer *server, uint64_t n, SimBefore before, void *context);

/* Others may run. */
extern void sim_pause(SimProc *p);

/* A numbered step of the WAL: false = the server has died before it.	Inside a fiber it does not return then. */
extern bool sim_wal_step(SimProc *p);

/* The same for a step of the disk that does not go through the I/O table, before it and with its result. */
extern bool sim_disk_step(SimProc *p);
extern int	sim_disk_stepped(SimProc *p, int rc);

/* Memory that lives until the arena is reset; zeroed. */
extern void *sim_arena_take(SimArena *arena, size_t size);
extern void sim_arena_reset(SimArena *arena);
extern void *sim_arena_alloc(void *arena, size_t size); /* QcAlloc */

extern void sim_lock(SimProc *p, SimProc **lock);
extern void sim_unlock(SimProc *p, SimProc **lock);

/* A core function that must not fail has failed. Nothing is wrong when the disk was told to fail. */
extern void sim_broken(SimProc *p, const char *what);

/* ... and the server cannot go on: it dies when the disk was told to fail. Inside a fiber it does not return then. */
extern void sim_panic(SimProc *p, const char *what);

/* Is p's last error one that the disk was told to make? */
extern bool sim_disk_failed(const SimProc *p);

/* ---- sim_boot.c ---- */

/*
 * Redo, then recovery.	NULL: the power failed (world->crashed), the directory was refused (*status; with allow_damage)
 * or something is wrong (world->failure).
 */
extern SimServer *sim_server_boot(SimWorld *world, QcStatus *status, QcError *err);

/* A transaction that has nothing to do with queues: it commits a row, waits for nobody, and may die in the middle. */
extern void sim_stranger(SimProc *p, bool wait);

/* ---- sim_commit.c ---- */

extern QcStatus sim_credit(SimProc *p, QcPlan *plan);
extern QcStatus sim_extend(SimProc *p, const QcExtend *extend);
extern bool sim_write(SimProc *p, uint64_t seq);
extern void sim_flush(SimProc *p, uint64_t seq);
extern void sim_wal_flush_to(SimProc *p, uint64_t lsn);

/* Return at a moment when the ring has room for the plan; the next pause may end it. */
extern void sim_wait_room(SimProc *p, const QcPlan *plan);
extern void sim_append(SimProc *p, QcPlan *plan);
extern void sim_settle(SimProc *p, QcPlan *plan, bool committed, uint64_t lsn);

/*
 * As sim_settle for an ordered entry, whose decision is logged in the same step: order is the credit for it.  done: called
 * when it has taken effect, before anybody else runs.
 */
typedef void (*SimDone) (void *context, SimProc *p);
extern void sim_settle_in_order(SimProc *p, const QcPlan *plan, uint64_t lsn, QcSmallPlan *order,
								SimDone done, void *context);

/* Reserve, fill and insert the WAL record of a joint entry, or of an immediate one that the WAL carries. */
extern void sim_append_in_wal(SimProc *p, QcPlan *plan);

/*
 * An immediate entry: credit, then choose (NULL = encoded already; false = nothing to log) and reserve without anybody
 * else in between, fill.	false = nothing logged, or no room.
 */
typedef bool (*SimChoose) (void *context, SimProc *p, QcSmallPlan *small);
extern bool sim_submit(SimProc *p, QcSmallPlan *small, SimChoose choose, SimDone done, void *context);

/* Log one catalog effect at once, in the WAL too.	Not in the middle of announcing messages. */
extern bool sim_submit_catalog(SimProc *p, QcEffectKind kind, const void *fixed);

/* The files of a new log, which the state then knows. */
extern bool sim_make_log(SimProc *p, uint64_t log);

/* ---- sim_guard.c ---- */

extern QcStatus sim_confirm_credit(SimProc *p);
extern void sim_confirm_release(SimProc *p);
extern bool sim_guard_reserve(SimProc *p, QcPlan *plan);
extern void sim_guard_inserted(SimProc *p, QcPlan *plan, bool own);
extern void sim_guard_main(SimProc *p);
extern void sim_pg_main(SimProc *p);	/* PostgreSQL's checkpointer and WAL writer */
extern void sim_pg_checkpoint(SimProc *p);

/* ---- sim_upkeep.c ---- */

extern void sim_upkeep_main(SimProc *p);

/* Send the first message that has come back too often to the dead letters; false = there is none that can go now. */
extern bool sim_move_dying(SimProc *p);
extern void sim_checkpoint(SimProc *p);

/* ---- sim_snapshot.c ---- */

/* Take a snapshot when anything has changed, or let an old one go when reclaim waits for that. */
extern void sim_snapshot(SimProc *p);

/* After recovery: which snapshots are of no use, and where the floor is. */
extern QcStatus sim_snapshot_start(SimProc *p);

/* The checkpoint is loaded: is it none, or too old, and there are snapshots? */
extern bool sim_snapshot_needed(SimProc *p);

/* Make the newest snapshot the checkpoint, which is empty. */
extern QcStatus sim_snapshot_load(SimProc *p);

/* The checkpoint gets lost while no server runs, unless there is no snapshot that makes up for it. */
extern void sim_lose_store(SimWorld *w);

/* ---- sim_retain.c ---- */

/* One step of the retention worker: what is done goes, and sometimes what nobody has read. */
extern void sim_retain(SimProc *p);

/* ---- sim_reclaim.c ---- */

extern void sim_reclaim_main(SimProc *p);

/* FLOOR is at least this from then on. */
extern QcStatus sim_raise_floor(SimProc *p, uint64_t seq);

/* ---- sim_client.c, sim_pop.c ---- */

extern void sim_client_main(SimProc *p);

/* A client that holds a few messages for long. */
extern void sim_holder_main(SimProc *p);

/* How long queues of this name keep messages, where that is simulated (SimConfig.ages): at most, and those that are done. */
typedef struct SimKeep
{
	int64_t		unread_us;
	int64_t		read_us;
} SimKeep;

extern SimKeep sim_keep(uint32_t name);

/* A message that a client holds. */
typedef struct SimSpot
{
	uint32_t	message;		/* the oracle's number */
	uint64_t	partition;		/* id */
	uint64_t	position;
	uint32_t	attempt;
} SimSpot;

/* Messages that a client holds under one lease. */
typedef struct SimHeld
{
	uint64_t	lease;			/* 0 = free */
	uint32_t	delivery;		/* the oracle's number */
	uint32_t	name;			/* of the queue */
	uint32_t	queue;			/* the oracle's number */
	uint32_t	group;			/* number */
	uint64_t	group_id;
	bool		own;			/* of the transaction that runs */
	uint32_t	n;
	SimSpot		spots[SIM_POP_MAX];
} SimHeld;

typedef struct SimClient
{
	SimProc    *p;
	SimHeld		held[SIM_HELD_MAX];
	QcSmallPlan end;			/* credit for the end of this transaction's leases */
	uint8_t		end_buffer[QC_SMALL_BUFFER(SIM_END_MAX)];
	bool		failed;			/* an error was raised: the transaction rolls back */
} SimClient;

/*
 * Pop at most batch messages for a group, at most SIM_POP_MAX; partition 0 = of any.  When there is nothing, wait while others run, at
 * most `patience` times.  false = nothing was delivered.
 */
extern bool sim_pop(SimClient *client, uint32_t name, uint32_t group, uint32_t batch, uint64_t partition,
					uint32_t patience);

/* A transaction that acknowledges everything the client holds; false = that was nothing, or not to be had. */
extern bool sim_acknowledge(SimClient *client);

/* Push one message into the default partition of a queue, which is made when it is not there; waits for the flush. */
extern bool sim_push(SimClient *client, uint32_t name);

/* Answers that act at once: give some messages back, or hold all of them longer. */
extern void sim_nack(SimClient *client, SimHeld *held);
extern void sim_renew(SimClient *client, SimHeld *held);

/* End of the transaction that popped: its leases run from now on, or are released. */
extern void sim_pops_end(SimClient *client, bool committed);

/* Forget what the lease does not hold any more. */
extern void sim_held_refresh(SimProc *p, SimHeld *held);

/* Where a message is, without I/O; then read it.	false = it could not be read (p->err). */
typedef struct SimPlace
{
	uint64_t	queue;
	uint64_t	partition;
	uint64_t	position;
	uint32_t	attempt;
	uint32_t	number;			/* of the partition, from its name */
	QcLocation	location;
} SimPlace;

extern void sim_place(QcState *st, QcPartition *partition, uint64_t position, uint32_t attempt,
					  QcRef *hint, SimPlace *place);
extern bool sim_read(SimProc *p, const SimPlace *place, SimSeen *seen);

/* Let go of files that were removed or rewritten; of all that is open or remembered. */
extern void sim_follow(SimProc *p);
extern void sim_forget(SimProc *p);

/* Does the state say that the message is there? */
extern bool sim_is_there(SimProc *p, const SimPlace *place);

/* Names of queues and partitions, and back; the default partition has number 0. */
extern QcStr sim_queue_name(uint32_t name);
extern QcStr sim_partition_name(uint32_t partition);
extern uint32_t sim_name_number(const char *name, uint16_t len);

extern QcStr sim_group_name(uint32_t group);

/* ---- sim_group.c ---- */

/*
 * Choose a change of a group, or a purge, for a transaction of this client, and encode it; false = there is none to be
 * had.	What it holds until the transaction has ended is given back by sim_change_end.
 */
typedef struct SimChanging
{
	bool		staged;
	uint32_t	name;			/* of the queue */
	bool		locked;			/* the group */
	SimChange	change;
	uint32_t	number;			/* the oracle's */
	QcEffectKind kind;
	union
	{
		QcGroupCreate create;
		QcGroupDrop drop;
		QcSeek		seek;
		QcPurge		purge;
	}			effect;
	QcSeekItem	item;
	uint32_t	nitems;
} SimChanging;

extern bool sim_change_begin(SimProc *p, uint32_t txn, SimChanging *changing);
extern void sim_change_end(SimProc *p, SimChanging *changing);

/* Before a pop: the group looks at partitions that it has not looked at. */
extern void sim_group_look(SimProc *p, uint64_t queue, uint32_t group);

/* ---- sim_delay.c ---- */

/* Move the first delayed message that is due into its partition, or put it off; false = there is none. */
extern bool sim_move_delayed(SimProc *p);

/* Take back the first delayed message of a queue, if there is any. */
extern void sim_cancel(SimProc *p, uint32_t name);

/* ---- sim_look.c ---- */

/* Judge a server that has just recovered: everything it shows, and its state. */
extern bool sim_look(SimServer *server);

/* Pop and acknowledge until nothing is left: exactly what must be there is delivered, leases come back. */
extern bool sim_drain(SimServer *server);

/* ---- sim_check.c ---- */

/* Counts, lists and promises of the state agree.	idle: nobody has a credit. */
extern bool sim_check(SimServer *server, bool idle);

/* ---- sim_wait.c ---- */

/* The state lock is free: wake who must be woken; nobody waits while something is deliverable and nobody comes. */
extern bool sim_wait_check(SimServer *server);

#endif							/* SIM_SERVER_H */
