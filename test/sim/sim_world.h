/*
 * sim_world.h
 *		A simulated machine: its disk, its PostgreSQL, its clocks, and the model that judges it.
 *
 * What is in here survives a crash of the server (as far as the disk and the WAL do); what a server keeps in memory is in
 * sim_server.h.  Steps on the disk and of the WAL are numbered together.	A seed decides everything: the same seed runs
 * the same way.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "sim_disk.h"
#include "sim_oracle.h"
#include "sim_wal.h"

#define SIM_NAMES_MAX		8	/* of queues */

/* What a seed chooses: no two kinds of trouble need to be likely in the same run. */
typedef struct SimConfig
{
	uint32_t	clients;
	uint32_t	names;
	uint32_t	partitions;
	uint32_t	shards;			/* shared logs, 0 = each queue has its own */
	uint64_t	segment;
	uint64_t	ring;
	uint64_t	state;			/* bytes of state memory */
	uint64_t	index;
	uint32_t	max_slots;
	uint32_t	guards;			/* 0 = joint commits guard themselves */
	uint32_t	joint;			/* per cent of transactions that change a table */
	uint32_t	weak;			/* ... that commit asynchronously */
	uint32_t	rollback;
	uint32_t	several;		/* ... that push into several queues */
	uint32_t	pop;
	uint32_t	catalog;		/* ... that create or drop a queue */
	uint32_t	delay;			/* ... of messages that are delayed */
	uint32_t	groups;			/* ... that change consumer groups or purge */
	uint32_t	stranger;		/* ... that have nothing to do with queues */
	uint32_t	large;			/* ... whose messages are large */
	uint32_t	noise;			/* ... whose messages do not shrink */
	uint32_t	carry_limit;	/* bytes of a transaction that the WAL carries */
	uint32_t	checkpoint;		/* steps between two checkpoints, about */
	uint32_t	pg_checkpoint;
	int64_t		lease_us;
	uint32_t	retain;			/* steps between two looks of the retention worker, about */
	uint32_t	ages;			/* how old messages are decides (sim_keep), not the lot */
	uint32_t	pace;			/* how much faster the time goes; 0 = as it does */
	uint32_t	think;			/* turns that a client waits between transactions, about */
	uint32_t	expire;			/* ... per cent of which take messages that nobody has read */
	uint32_t	reclaim;		/* steps between two passes of reclaim, about; 0 = none */
	uint32_t	snapshot;		/* steps between two snapshots, about; 0 = none are taken */
	uint32_t	lost;			/* per cent of starts before which the checkpoint is lost */
	uint32_t	faults;			/* per cent of rounds in which calls of the disk fail */
	uint32_t	full;			/* ... in which the disk gets full */
} SimConfig;

/* What kind of crash. */
typedef enum SimCrash
{
	SIM_CRASH_KILL,				/* the processes die, the machine lives */
	SIM_CRASH_KEEP,				/* the power fails, all of the disk's cache got written */
	SIM_CRASH_LOSE,				/* ... none of it */
	SIM_CRASH_RANDOM
} SimCrash;

/* What was done.  Steps, transactions and messages of a world itself are counted elsewhere: here are those of its copies. */
typedef struct SimTotals
{
	uint64_t	seeds;
	uint64_t	steps;
	uint64_t	transactions;
	uint64_t	messages;
	uint64_t	recoveries;		/* judged */
	uint64_t	deleted;		/* files that reclaim has removed, and written anew */
	uint64_t	rewritten;
	uint64_t	snapshots;		/* that a start began with */

	/* what a failing disk has led to */
	uint64_t	refused;		/* transactions that could not commit */
	uint64_t	panics;			/* deaths of servers */
	uint64_t	bad_starts;
} SimTotals;

typedef struct SimWorld
{
	SimConfig	config;
	uint64_t	random;
	SimDisk    *disk;
	SimWal		wal;
	SimOracle  *oracle;
	int64_t		now;			/* wall clock, microseconds */
	int64_t		monotonic;
	uint64_t	steps;			/* taken */
	uint64_t	crash_step;		/* the server dies at this one, 0 = never */
	SimPoint	crash_point;
	bool		crashed;		/* it has died */
	bool		machine_died;	/* since a server served last */
	bool		crash_free;		/* nobody has died since the last server served: it was stopped */
	bool		lossy;			/* a copy, see SimView */
	bool		allow_damage;	/* recovery may refuse, queues may be out of service */
	uint64_t	sweep_step;		/* a sweep looks at this step only, 0 = at every one */
	uint64_t	failed_step;	/* ... and found the fault there */

	SimTotals	totals;
	char		failure[500];	/* what went wrong, "" = nothing */
} SimWorld;

extern SimWorld *sim_world_new(uint64_t seed);

/* A copy of everything, with the same open handles; the running server stays with the old one. */
extern SimWorld *sim_world_copy(const SimWorld *world);
extern void sim_world_free(SimWorld *world);

/* Tell everything that clients, disk and WAL do, NULL = do not. */
extern void sim_world_trace(SimWorld *world, FILE *out);

/* Add what was done in a world, which began when `steps` were taken. */
extern void sim_totals_add(SimTotals *totals, const SimWorld *world, uint64_t steps);

/* The server is gone: what survives of disk and WAL.	*/
extern void sim_world_crash(SimWorld *world, SimCrash crash);

/* Note what went wrong, unless something did before; returns false. */
extern bool sim_world_fail(SimWorld *world, const char *format,...)
			__attribute__((format(printf, 2, 3)));

/* Has anything gone wrong? */
extern bool sim_world_failed(SimWorld *world);

/* True with this probability. */
extern bool sim_chance(SimWorld *world, uint32_t percent);
extern uint64_t sim_below(SimWorld *world, uint64_t bound);

/* Describe the configuration in one line. */
extern void sim_world_describe(const SimWorld *world, char *out, size_t size);

#endif							/* SIM_WORLD_H */
