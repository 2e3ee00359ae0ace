/*
 * sim_work.h
 *		A transaction of a simulated client under way.
 *
 * sim_client.c runs it; sim_push.c finds or makes the queues and partitions that it pushes to, and stages its messages.
 */
#ifndef SIM_WORK_H
#define SIM_WORK_H

#include "sim_server.h"

#define SIM_PUSHES_MAX		6
#define SIM_PATIENCE_MAX	200 /* turns of others that a client waits for a message */
#define SIM_ANSWERS_MAX		(SIM_HELD_MAX * SIM_POP_MAX)
#define SIM_OPS_MAX			(SIM_PUSHES_MAX + SIM_ANSWERS_MAX + 4)

/* A message that the transaction acknowledges or rejects. */
typedef struct SimReply
{
	SimHeld    *held;
	SimSpot		spot;
} SimReply;

/* A transaction under way. */
typedef struct SimWork
{
	SimClient  *client;
	SimProc    *p;
	SimServer  *server;
	SimWorld   *w;
	uint32_t	txn;
	bool		joint;
	bool		weak;
	uint64_t	xid;
	QcPlan		plan;
	bool		planned;
	size_t		nops;
	QcOp		ops[SIM_OPS_MAX];
	uint64_t	bytes;
	uint32_t	nmessages;
	uint32_t	nreplies;
	SimReply	replies[SIM_ANSWERS_MAX];
	uint32_t	name;			/* locked, SIM_NONE = none */
	QcSmallPlan order;			/* the decision of an ordered plan */
	SimChanging changing;
	QcQueueCreate create;		/* of the queue that it creates; queue 0 = none */
	bool		ordered;
	int32_t		limit;			/* option retry_limit */
	bool		catalog;
	uint32_t	created;		/* the oracle's number, SIM_NONE */
	uint32_t	dropped;
	bool		log_made;
	uint32_t	npinned;
	uint64_t	pinned[SIM_HELD_MAX];
} SimWork;

/* Where messages go. */
typedef struct SimTarget
{
	uint32_t	queue;			/* the oracle's number */
	uint32_t	partition;		/* number */
	uint64_t	id;				/* of the partition */
	uint64_t	lane;			/* 0 = not delayed */
	int64_t		due;
	uint64_t	log;
} SimTarget;

/* Take the name's lock without waiting: who would wait might wait for ever. */
extern bool sim_lock_name(SimWork *work, uint32_t name);
extern void sim_unlock_name(SimWork *work);

/* Ids, name and options of a new queue; options of a queue, encoded. */
extern QcQueueCreate sim_new_queue(SimWork *work, uint32_t name, bool ordered);
extern QcStr sim_queue_options(SimWork *work, uint32_t name, bool ordered, int32_t limit);

/* A queue that a push makes on its way. */
extern bool sim_auto_create(SimWork *work, uint32_t name);

/* The partition with this id comes to be while nobody drops its queue. */
extern bool sim_make_partition(SimWork *work, uint32_t name, QcPartitionCreate *create);

/* The queue of this name for others, as the state knows it now; what is being made in it is waited for. */
extern QcQueue *sim_find_queue(const SimWork *work, uint32_t name);

/* Where pushes to this partition go; it is made when it is not there. */
extern bool sim_find_partition(SimWork *work, uint32_t name, uint32_t partition, SimTarget *target);

/* Stage a push of some messages; nothing else of this oracle's transaction may come in between. */
extern void sim_stage_push(SimWork *work, const SimTarget *target);

/* All pushes of the transaction: first find the targets, during which others run, then stage. */
extern void sim_stage_pushes(SimWork *work);

#endif							/* SIM_WORK_H */
