/*
 * sim_life.c
 *		Long lives: a server works for a while, dies in one of many ways, recovers, dies in recovery, and works on.
 */
#include "sim_run.h"

#include <assert.h>
#include <errno.h>

#define STUCK			400000	/* resumed so often, everybody should have ended */
#define RECOVERY_STEPS	60

SimCrash
sim_any_crash(SimWorld *world)
{
	return (SimCrash) sim_below(world, 4);
}

void
sim_end(SimServer *server, SimCrash crash)
{
	SimWorld   *w = server->world;

	sim_server_free(server);
	sim_world_crash(w, crash);
}

/* Plan the death of the server within the next n steps. */
static void
plan_crash(SimWorld *w, uint64_t n)
{
	w->crash_step = w->steps + 1 + sim_below(w, n);
	w->crash_point = (SimPoint) sim_below(w, 3);
}

/* Calls of the disk are going to fail, of the kinds that a server makes. */
static void
plan_faults(SimWorld *w)
{
	static const SimOp ops[] = {SIM_OP_WRITE, SIM_OP_WRITE, SIM_OP_SYNC, SIM_OP_SYNC, SIM_OP_SYNC, SIM_OP_SYNC, SIM_OP_CREATE,
		SIM_OP_MKDIR, SIM_OP_SYNC_DIRECTORY, SIM_OP_RENAME, SIM_OP_UNLINK, SIM_OP_TRUNCATE,
		SIM_OP_SWAP, SIM_OP_SWAP, SIM_OP_READ};

	for (uint64_t n = 1 + sim_below(w, 4); n > 0; n--)
		sim_disk_fail(w->disk, ops[sim_below(w, sizeof(ops) / sizeof(ops[0]))],
					  1 + sim_below(w, 1u << sim_below(w, 7)), EIO);
}

/* One start after the other, until one comes through that is not to be cut short; NULL = it is refused. */
static SimServer *
start(SimWorld *w, uint32_t crashes, bool faults)
{
	SimServer  *server;
	QcStatus	status;
	QcError		err;

	for (;;)
	{
		uint64_t	bad = w->totals.bad_starts;

		w->crash_step = 0;
		if (crashes > 0)
			plan_crash(w, RECOVERY_STEPS);
		if (faults)
			plan_faults(w);
		server = sim_server_boot(w, &status, &err);
		w->crash_step = 0;
		faults = faults && sim_chance(w, 50);
		sim_disk_heal(w->disk);
		if (server != NULL || (!w->crashed && w->totals.bad_starts == bad))
			return server;
		if (w->crashed && crashes > 0)
			crashes--;
		sim_world_crash(w, sim_any_crash(w));
	}
}

SimServer *
sim_start_failing(SimWorld *w)
{
	SimServer  *server;
	QcStatus	status;
	QcError		err;

	server = sim_server_boot(w, &status, &err);
	if (server != NULL)
		return server;
	if (w->totals.bad_starts == 0)
		(void) sim_world_fail(w, "recovery failed");
	sim_world_crash(w, sim_any_crash(w));
	return NULL;
}

/* Start and judge. */
static SimServer *
boot(SimWorld *w, uint32_t crashes, bool faults)
{
	SimServer  *server = start(w, crashes, faults);

	if (server == NULL)
	{
		if (!w->allow_damage)
			(void) sim_world_fail(w, "recovery failed");
		return NULL;
	}
	if (sim_look(server))
		return server;
	sim_server_free(server);
	return NULL;
}

SimServer *
sim_boot(SimWorld *w, uint32_t crashes)
{
	return boot(w, crashes, false);
}

void
sim_start(SimServer *server)
{
	for (uint32_t i = 0; i < server->world->config.clients; i++)
		(void) sim_server_spawn(server, sim_client_main);
	(void) sim_server_spawn(server, sim_upkeep_main);
	(void) sim_server_spawn(server, sim_pg_main);
	(void) sim_server_spawn(server, sim_reclaim_main);
	for (uint32_t i = 0; i < server->world->config.guards; i++)
		(void) sim_server_spawn(server, sim_guard_main);
}

/* Has every client ended? */
static bool
clients_ended(const SimServer *server)
{
	for (uint32_t i = 0; i < server->nprocs; i++)
	{
		if (server->procs[i].main == sim_client_main && !server->procs[i].ended)
			return false;
	}
	return true;
}

bool
sim_stop(SimServer *server)
{
	SimWorld   *w = server->world;

	server->stopping = true;
	for (uint32_t i = 0; i < STUCK && !clients_ended(server); i++)
	{
		if (!sim_server_run(server, 1, NULL, NULL) && (w->crashed || sim_world_failed(w)))
			return false;
	}
	server->leaving = true;
	if (!sim_server_run(server, STUCK, NULL, NULL))
	{
		if (!w->crashed)
			(void) sim_world_fail(w, "the server does not come to an end");
		return false;
	}
	if (!sim_check(server, true))
		return false;
	sim_pg_checkpoint(&server->procs[SIM_BOOT_PROC]);
	return !sim_world_failed(w);
}

/* Start again at once, over and over: nothing is left to do, nothing is written. */
static bool
boot_again(SimWorld *w)
{
	uint64_t	digest = 0;

	for (int i = 0; i < 3; i++)
	{
		SimServer  *server = sim_boot(w, 0);

		if (server == NULL)
			return false;
		if (i > 0 && server->recover.changed)
			(void) sim_world_fail(w, "recovery right after recovery changes something");

		/* the second one sweeps what the first has put away */
		if (i > 1 && sim_disk_digest(w->disk) != digest)
			(void) sim_world_fail(w, "recovery right after recovery writes something");
		sim_end(server, i == 1 ? SIM_CRASH_KEEP : sim_any_crash(w));
		digest = sim_disk_digest(w->disk);
	}
	return !sim_world_failed(w);
}

/* Is everything that is there delivered? Then it is acknowledged, and after a crash still is. */
static bool
drain(SimWorld *w)
{
	SimServer  *server = sim_boot(w, 0);
	bool		good = server != NULL && sim_drain(server);

	if (server != NULL)
		sim_end(server, sim_any_crash(w));
	return good;
}

/* One round of work, and its end. */
static bool
work(SimWorld *w, SimServer *server)
{
	uint64_t	steps = 1 + sim_below(w, 1u << (5 + sim_below(w, 8)));

	if (sim_chance(w, 50))
		plan_crash(w, 1 + steps / 4);
	if (sim_chance(w, w->config.faults))
		plan_faults(w);
	if (sim_chance(w, w->config.full))
		sim_disk_set_capacity(w->disk, sim_disk_used(w->disk) + sim_below(w, 200000));
	sim_start(server);
	(void) sim_server_run(server, steps, NULL, NULL);
	sim_disk_heal(w->disk);
	if (!w->crashed && !sim_world_failed(w) && sim_chance(w, w->config.faults + w->config.full))
		(void) sim_server_run(server, steps, NULL, NULL);
	if (!w->crashed && !sim_world_failed(w) && sim_chance(w, 20))
		(void) sim_stop(server);
	sim_end(server, sim_any_crash(w));
	return !sim_world_failed(w);
}

bool
sim_life(SimWorld *w, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds && !sim_world_failed(w); i++)
	{
		SimServer  *server;

		if (sim_chance(w, w->config.lost))
			sim_lose_store(w);
		if (sim_chance(w, 10) && !boot_again(w))
			break;
		if (sim_chance(w, 5) && !drain(w))
			break;
		server = boot(w, sim_chance(w, 40) ? (uint32_t) sim_below(w, 4) : 0,
					  sim_chance(w, w->config.faults / 2));
		if (server == NULL || !work(w, server))
			break;
	}
	if (!sim_world_failed(w))
		(void) drain(w);
	return !sim_world_failed(w);
}
