/*
 * sim_oracle.h
 *		The model that the simulation is judged by: what clients asked for, what they were told, and what follows.
 *
 * Knows nothing of qlog's code or files.  Transactions, messages and queues have numbers of its own; messages tell
 * theirs in their payload.  Each function that judges returns false and leaves a sentence in `complaint` when a promise
 * is broken:
 *
 *	 - a transaction is there with all its pushes, acknowledgements, queues and changes of queues, or with none of them;
 *	 - one whose commit was told is there; one whose rollback was told is not;
 *	 - one that changed tables is there exactly when its row is in the table, after every crash;
 *	 - a message stands in its partition once, where it was first seen, behind all that were committed before its own
 *	   commit began;
 *	 - it is done only by a transaction that is there and acknowledged it, or as a dead letter after as many deliveries as
 *	   its queue allows, of which there is one copy; and then it never comes back;
 *	 - it is removed only when every group has done it, or when it may be removed unread and nobody holds it; and then it
 *	   never comes back;
 *	 - it is not delivered while somebody else's lease on it runs, nor before its row is visible;
 *	 - its attempts never go down, as far as they were durable;
 *	 - a delayed one enters its partition once, not before its time, unless it was cancelled before; then never;
 *	 - all of this holds for every consumer group on its own.	A group begins, is sought or ends with its transaction, and
 *	   then stands where that says: what was certainly pushed before is passed over or not as the rule has it, what was
 *	   pushed afterwards is delivered, and what was acknowledged before a seek does not count behind it;
 *	 - what was committed before a purge began is gone, unless a consumer holds it, or it stands behind something that was
 *	   not decided then; what was pushed after it is not.
 *
 * After a crash the fate of a transaction whose commit nobody was told is what is seen of it, once and for all.
 */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SIM_NONE		UINT32_MAX
#define SIM_FIRST_OWNER	1		/* of a new queue */
#define SIM_OWNER(txn)	((txn) + 2) /* given by this transaction */
#define SIM_DEAD_LANE	UINT32_MAX	/* in place of a partition's number */
#define SIM_DELAY_LANE	(UINT32_MAX - 1)
#define SIM_AUTO		UINT32_MAX	/* creator of a queue that a push has made on its way */
#define SIM_GROUPS		3		/* of a queue, by number; 0 is the default one */
#define SIM_PARTITIONS_MAX	4	/* of a queue, the default one included */

typedef enum SimFate
{
	SIM_OPEN,					/* running */
	SIM_ABORTED,				/* rolled back, and told so */
	SIM_COMMITTED,				/* committed, and told so */
	SIM_WEAK,					/* told, but asynchronous: it may be lost */
	SIM_DOUBT,					/* the server died before it could tell, or after a weak commit */
	SIM_IN,						/* seen to be there after a crash */
	SIM_OUT						/* seen not to be there */
} SimFate;

typedef struct SimTxn
{
	bool		joint;
	bool		visible;		/* joint: its row is visible */
	SimFate		fate;
	uint64_t	began;			/* when its commit began; 0 = not yet */
	uint64_t	told;			/* when its commit was told */
	uint64_t	known;			/* ... or was seen after a crash; 0 = never */
	uint32_t	first_message;
	uint32_t	nmessages;
	uint32_t	creates;		/* queue, SIM_NONE = none */
	uint32_t	drops;
	uint8_t		evidence;		/* while a crash is judged: 1 = there, 2 = not there */
} SimTxn;

/* A message as its consumer group knows it. */
typedef enum SimSeenState
{
	SIM_READY,
	SIM_LEASED,
	SIM_DONE,
	SIM_UNKNOWN					/* only the messages can tell where the group begins, and nobody
								 * has asked */
} SimSeenState;

/* What a group has done with a message since it stands where it does. */
typedef struct SimUse
{
	bool		settled;		/* done by a transaction that is there for sure */
	bool		died;			/* went to the dead letters because it came back too often */
	bool		died_sure;		/* ... and was seen there after a crash */
	bool		held;			/* delivered, and not known to be given back */
	bool		spared;			/* a purge found it held */
	bool		finished;		/* an answer was there when retention removed it */
	uint32_t	resets;			/* seeks of the group */
	uint32_t	answering;		/* transaction whose commit acknowledges it just now, 0 = none,
								 * else + 1 */
	uint32_t	lease;			/* number of the delivery that holds it, 0 = none known */
	int64_t		lease_until;
	uint32_t	attempt;		/* last one told, in this life of the server */
	uint32_t	attempt_sure;	/* durable for sure */
	uint64_t	attempt_told;	/* when `attempt` was told */

	/* while a crash is judged */
	SimSeenState state;
	bool		untold;			/* it was delivered, and nobody was told of it */
	uint8_t		seen_dead;		/* times in the group's dead lane, rejected */
	uint8_t		seen_died;		/* ... and there because it came back too often */
	uint8_t		answered;		/* there is an answer of a transaction that is there */
	uint8_t		excused;		/* ... of before a late seek, which may count or not */
	uint8_t		rejected;		/* rejections of those that are there */
	uint8_t		doubtful;		/* ... and of those that may be there */
} SimUse;

typedef struct SimMessage
{
	uint32_t	txn;
	uint32_t	queue;
	uint32_t	partition;
	uint64_t	purged;			/* since when who does not hold it does not get it any more; 0 =
								 * not */
	uint32_t	purge;			/* ... by this change */
	uint64_t	position;		/* UINT64_MAX = never seen */
	int64_t		at;				/* when it was pushed, as the server has it */
	int64_t		due;			/* ... into its partition, at this time; 0 = at once */
	bool		cancelling;
	bool		cancelled;		/* ... and its client was told */
	uint8_t		seen;			/* while a crash is judged: times in its partition */
	uint8_t		waiting;		/* ... and in the delay lane */
	bool		removed;		/* by retention, in this life of the server */
	bool		unread;			/* ... though a group had not done it */
	bool		gone;			/* ... for sure */
	bool		letter;			/* somebody has asked for a copy of it in a dead lane */
	uint32_t	bytes;			/* of what was pushed, and which messages went in one push with it: */
	uint32_t	batch;			/* they have the same number */
	int64_t		pushed_at;		/* when that was asked for */
	SimUse		uses[SIM_GROUPS];
} SimMessage;

typedef struct SimAnswer
{
	uint32_t	txn;
	uint32_t	message;
	uint32_t	group;
	uint64_t	delivered;		/* when the delivery that it answers was told */
	bool		dead;			/* rejected: a copy stands in the dead lane */
} SimAnswer;

/* Where a group stands: as these changes of it say, SIM_NONE = at the first message. */
typedef struct SimGroup
{
	bool		there;
	uint64_t	id;				/* the server's */
	uint64_t	since;			/* when it came to be */
	uint32_t	placed[SIM_PARTITIONS_MAX]; /* change that placed it in a partition */
	uint64_t	placed_at[SIM_PARTITIONS_MAX];
	uint64_t	dropped_at;		/* the last time */
} SimGroup;

typedef struct SimQueue
{
	uint32_t	name;
	uint64_t	id;				/* the server's */
	uint32_t	creator;
	bool		ordered;
	int32_t		limit;			/* deliveries after the first; -1 = any number */
	bool		gone;			/* lost with its creation, or dropped for sure */
	bool		seen;			/* while a crash is judged: it is there */
	bool		damaged;		/* ... and out of service */
	uint32_t	owner;			/* ... and this is its owner */
	SimGroup	groups[SIM_GROUPS];
} SimQueue;

typedef enum SimChangeKind
{
	SIM_SUBSCRIBE,
	SIM_UNSUBSCRIBE,
	SIM_SEEK,
	SIM_PURGE
} SimChangeKind;

typedef enum SimStart
{
	SIM_FROM_OLDEST,
	SIM_FROM_NEW,				/* what comes from now on */
	SIM_FROM_POSITION,
	SIM_FROM_TIME
} SimStart;

/*
 * A transaction changes a group, which nobody else does until it has ended, or purges.	 It takes effect once, at a moment
 * that the server chooses between the beginning of its commit and the time when that is told.
 */
typedef struct SimChange
{
	SimChangeKind kind;
	uint32_t	txn;
	uint32_t	queue;
	uint32_t	group;
	uint64_t	id;				/* of the group from then on */
	uint32_t	partition;		/* SIM_NONE = all */
	SimStart	start;
	int64_t		start_at;
	bool		over;			/* it has taken effect, or never will */
	bool		happened;
	bool		late;			/* ... in recovery, and nobody had been told */
} SimChange;

/* A transaction gives the queue a new definition, which is known by its owner. */
typedef struct SimAlter
{
	uint32_t	queue;
	uint32_t	txn;
} SimAlter;

typedef struct SimOracle
{
	uint64_t	clock;			/* of things told and begun */
	uint64_t	sure;			/* commits told and durable in the logs began as late as this */
	uint32_t	ntxns;
	uint32_t	cap_txns;
	SimTxn	   *txns;
	uint32_t	nmessages;
	uint32_t	cap_messages;
	SimMessage *messages;
	uint32_t	nanswers;
	uint32_t	cap_answers;
	SimAnswer  *answers;
	uint32_t	nqueues;
	uint32_t	cap_queues;
	SimQueue   *queues;
	uint32_t	nalters;
	uint32_t	cap_alters;
	SimAlter   *alters;			/* those of one queue in the order of their commits */
	uint32_t	nchanges;
	uint32_t	cap_changes;
	SimChange  *changes;
	uint32_t	leases;
	FILE	   *trace;			/* tell everything as it comes, NULL = do not */
	char		complaint[400];
} SimOracle;

/* A message as a group shows it. */
typedef struct SimShown
{
	SimSeenState state;
	uint32_t	attempt;
} SimShown;

/* A message as the server shows it: delivered, after a crash, or as a dead letter. */
typedef struct SimSeen
{
	uint32_t	txn;			/* from its payload */
	uint32_t	index;
	uint64_t	queue;			/* the server's id */
	uint32_t	partition;		/* or SIM_DEAD_LANE, SIM_DELAY_LANE */
	uint64_t	position;
	int64_t		at;
	uint32_t	attempt;		/* delivered or dead */
	uint32_t	group;			/* ... of this group */
	bool		died;			/* in the dead lane: not rejected, it came back too often */
	SimShown	shown[SIM_GROUPS];	/* in its own place, after a crash */
} SimSeen;

typedef struct SimSeenQueue
{
	uint64_t	id;
	uint32_t	name;
	bool		damaged;		/* out of service: nothing is expected of it */
	uint32_t	owner;			/* SIM_FIRST_OWNER, or the owner of an alter */
	uint64_t	groups[SIM_GROUPS]; /* the server's ids, UINT64_MAX = not there */
} SimSeenQueue;

/* Positions of a partition from which retention has removed what was there. */
typedef struct SimArea
{
	uint64_t	queue;			/* the server's id */
	uint32_t	partition;
	uint64_t	first;
	uint64_t	end;
} SimArea;

/* Everything that a server shows after a crash: messages by queue, partition and position. */
typedef struct SimView
{
	uint32_t	nqueues;
	const SimSeenQueue *queues;
	uint32_t	nmessages;
	const SimSeen *messages;
	uint32_t	nareas;
	const SimArea *areas;
	const uint8_t *rows;		/* per transaction: its row is in the table */
	bool		machine_lived;	/* only the processes died: everything told was in the files */
	bool		lossy;			/* a copy: what did not change tables may be missing, even if told */
} SimView;

extern SimOracle *sim_oracle_new(void);
extern SimOracle *sim_oracle_copy(const SimOracle *from);
extern void sim_oracle_free(SimOracle *o);

/* ---- what clients ask for ---- */

extern uint32_t sim_oracle_begin(SimOracle *o, bool joint);
extern uint32_t sim_oracle_queue(SimOracle *o, uint32_t name, uint64_t id, bool ordered,
								 int32_t limit, uint32_t creator);
extern void sim_oracle_drop(SimOracle *o, uint32_t txn, uint32_t queue);

/* It alters the queue, which nobody else does until it has ended. */
extern void sim_oracle_alter(SimOracle *o, uint32_t txn, uint32_t queue);

/* It changes a group, or purges; returns the number of the change. */
extern uint32_t sim_oracle_change(SimOracle *o, const SimChange *change);

/* Messages of one transaction are announced without others in between; returns the message's number. */
extern uint32_t sim_oracle_push(SimOracle *o, uint32_t txn, uint32_t queue, uint32_t partition,
								int64_t due);
extern void sim_oracle_sized(SimOracle *o, uint32_t message, uint32_t bytes, uint32_t batch, int64_t now);
extern void sim_oracle_answer(SimOracle *o, uint32_t txn, uint32_t message, uint32_t group, bool dead);

/* ---- what becomes of it ---- */

/* The commit begins; what it acknowledges belongs to it until it has ended. */
extern void sim_oracle_committing(SimOracle *o, uint32_t txn);
extern void sim_oracle_visible(SimOracle *o, uint32_t txn);

/* The change takes effect now. */
extern void sim_oracle_happens(SimOracle *o, uint32_t change);

/* Told: committed.  sure = it was waited for; logged = in the logs (not only in the WAL). */
extern void sim_oracle_committed(SimOracle *o, uint32_t txn, bool sure, bool logged);
extern void sim_oracle_aborted(SimOracle *o, uint32_t txn);

/* Something is delivered now, which sim_oracle_popped will tell: returns the moment. */
extern uint64_t sim_oracle_pops(SimOracle *o);

/* Delivered to their group at `now`, taken at this moment: numbers of the messages are put into out; *lease numbers the delivery. */
extern bool sim_oracle_popped(SimOracle *o, const SimSeen *seen, uint32_t n, uint64_t moment, int64_t now,
							  uint32_t *out, uint32_t *lease);

/* The lease runs until then, or has ended as far as these messages are concerned. */
extern void sim_oracle_lease(SimOracle *o, uint32_t lease, int64_t until);
extern void sim_oracle_given_back(SimOracle *o, uint32_t lease, uint32_t message, uint32_t group);

/* A delayed message is taken back; told: its client knows. */
extern void sim_oracle_cancels(SimOracle *o, uint32_t message, bool told);

/* The message with this payload, SIM_NONE = there is none. */
extern uint32_t sim_oracle_find(const SimOracle *o, uint32_t txn, uint32_t index);

/* The server sends the message that is shown to the dead letters. */
extern bool sim_oracle_died(SimOracle *o, const SimSeen *seen);

/* The message that is shown stands there. */
extern bool sim_oracle_shown(SimOracle *o, const SimSeen *seen);

/* Retention removes the message at this position; unread: even if it is not done. */
extern bool sim_oracle_removed(SimOracle *o, uint64_t queue, uint32_t partition, uint64_t position,
							   bool unread);

/* ---- after a crash ---- */

/* The server is gone: whatever was not told is in doubt. */
extern void sim_oracle_crashed(SimOracle *o);

/* Judge what the recovered server shows. */
extern bool sim_oracle_recovered(SimOracle *o, const SimView *view);

/* Messages that must be delivered: expected[m] = 1 when message m is there and some group has not done it. */
extern void sim_oracle_expected(const SimOracle *o, uint8_t *expected);

/* Does the group pass over the message, as it stands? */
typedef enum SimPass
{
	SIM_STANDS,					/* no: it gets it */
	SIM_MAY_PASS,
	SIM_PASSES
} SimPass;

extern SimPass sim_oracle_passes(const SimOracle *o, const SimMessage *m, uint32_t group);

/* May a purge have taken the message? */
extern bool sim_oracle_purgeable(const SimOracle *o, const SimMessage *m);

/* A line of the trace. */
extern void sim_trace(const SimOracle *o, const char *format,...)
			__attribute__((format(printf, 2, 3)));

/* Leave a complaint; returns false. */
extern bool sim_oracle_complain(SimOracle *o, const char *format,...)
			__attribute__((format(printf, 2, 3)));

#endif							/* SIM_ORACLE_H */
