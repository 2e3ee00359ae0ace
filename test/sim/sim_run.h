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
extern bool sim_sweep(SimWorld *world, uint64_t *runs);

/* Damage of kind `kind` (0 .. SIM_DAMAGES - 1) to a directory after some work. */
#define SIM_DAMAGES 6
extern bool sim_damage(SimWorld *world, uint32_t kind);
extern const char *sim_damage_name(uint32_t kind);

#endif							/* SIM_RUN_H */
