/*
 * sim_run.h
 *		Ways to torment a simulated machine.  All return false when something went wrong (world->failure).
 */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "sim_server.h"

/*
 * Boot, perhaps with crashes in the middle, and judge what is recovered.  NULL: see sim_server_boot.
 */
extern SimServer *sim_boot(SimWorld *world, uint32_t crashes);

/* Start on a disk of which a call fails; NULL = that has kept it from starting, and it has crashed. */
extern SimServer *sim_start_failing(SimWorld *world);

/* Start clients and workers. */
extern void sim_start(SimServer *server);

/* Let everybody finish, as a shutdown does.	The server must still be freed. */
extern bool sim_stop(SimServer *server);

/* The server dies, or ends, like this; it is freed. */
extern void sim_end(SimServer *server, SimCrash crash);

/* A crash of any kind. */
extern SimCrash sim_any_crash(SimWorld *world);

/* Work and crashes, over and over. */
extern bool sim_life(SimWorld *world, uint32_t rounds);

/* A short life of which every step is the last one, in copies; recovery of the copies is cut short in turn. */
extern bool sim_sweep(SimWorld *world);

/* A short life over and over, of which one step after the other fails. */
extern bool sim_fail_sweep(SimWorld *world);

/* So many segments go through the queues, of which little is there at any moment; crashes in between. */
extern bool sim_churn(SimWorld *world, uint32_t segments);

/* What is done to a directory. */
typedef enum SimDamage
{
	SIM_DAMAGE_QUEUE,			/* a byte of a queue's log is another one */
	SIM_DAMAGE_SYSTEM,			/* ... of the system log */
	SIM_DAMAGE_ONLY,			/* ... of the log of the only queue */
	SIM_DAMAGE_DIRECTORY,		/* a log directory is gone */
	SIM_DAMAGE_FILE,			/* a log file is gone */
	SIM_DAMAGE_CHECKPOINT,		/* the checkpoint is gone */
	SIM_DAMAGE_COPY				/* it is a copy, taken file by file while the server ran */
} SimDamage;

/* Damage to a directory after some work. */
extern bool sim_damage(SimWorld *world, SimDamage kind);

#endif							/* SIM_RUN_H */
