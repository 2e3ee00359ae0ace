/*
 * sim_sweep.c
 *		Every step is the last one: before each numbered step of a short life the machine is copied, the copy crashes,
 *		recovers and is judged.	Then the copy's recovery is cut short at its own steps in the same way.
 *
 * A write can also have been done in part.  The life itself goes on undisturbed, so that no step is reached twice.	What
 * happens to the copies of one step does not depend on those of others, so one step can be looked at again alone
 * (SimWorld.sweep_step).
 */
#include "sim_run.h"

#include "sim_random.h"

#include <errno.h>

#define RESUMES		700			/* how long the life is */
#define EVERY		12			/* of so many crashes, one has every step of its recovery cut short */
#define WORK_ON		20			/* ... one works on after that */

/* Of so many steps one is looked at.  Sanitizers make everything slow. */
#ifdef SIM_SANITIZED
#define OF_STEPS	4
#else
#define OF_STEPS	1
#endif

typedef struct Sweep
{
	SimWorld   *world;
	uint64_t	salt;			/* of the copies of this step */
	uint64_t	seed;
	uint64_t	point;			/* number of the crash, two for each step */
} Sweep;

/* A copy that lives another chance. */
static SimWorld *
fork_world(Sweep *sweep, const SimWorld *world)
{
	SimWorld   *copy = sim_world_copy(world);

	copy->random = sim_random(&sweep->salt);
	sim_disk_reseed(copy->disk, sim_random(&copy->random));
	sim_world_trace(copy, sweep->world->sweep_step == 0 ? NULL : sweep->world->oracle->trace);
	return copy;
}

/* What went wrong in a copy is the sweep's failure. */
static void
report(Sweep *sweep, SimWorld *copy, const char *where, uint64_t step)
{
	if (!sim_world_failed(copy))
		return;
	(void) sim_world_fail(sweep->world, "%s (crash before step %llu, %s %llu)", copy->failure,
						  (unsigned long long) sweep->world->steps + 1, where,
						  (unsigned long long) step);
	sweep->world->failed_step = sweep->world->steps + 1;
}

static void
end_copy(Sweep *sweep, SimWorld *copy)
{
	sweep->world->totals.recoveries += copy->totals.recoveries;
	sweep->world->totals.snapshots += copy->totals.snapshots;
	sim_world_free(copy);
}

/* The machine as a crash has left it: recovery dies at its nth step, and the next one comes through. */
static void
cut_short(Sweep *sweep, const SimWorld *base, uint64_t n)
{
	SimWorld   *copy = fork_world(sweep, base);
	SimServer  *server;
	QcStatus	status;
	QcError		err;

	copy->crash_step = copy->steps + n;
	copy->crash_point = (SimPoint) sim_below(copy, 3);
	server = sim_server_boot(copy, &status, &err);
	if (server != NULL)
		sim_server_free(server);
	if (copy->crashed || server != NULL)
	{
		sim_world_crash(copy, sim_any_crash(copy));
		server = sim_boot(copy, 0);
		if (server != NULL)
			sim_server_free(server);
	}
	report(sweep, copy, "recovery cut short at step", n);
	end_copy(sweep, copy);
}

/* A copy has crashed: recover and judge it; do so again with recovery cut short. */
static void
examine(Sweep *sweep, SimWorld *copy)
{
	SimWorld   *base = fork_world(sweep, copy);
	uint64_t	steps = copy->steps;
	SimServer  *server = sim_boot(copy, 0);
	uint64_t	n = copy->steps - steps;
	bool		all = sweep->point % EVERY == 0;

	report(sweep, copy, "recovery of", n);
	if (server != NULL)
		sim_end(server, sim_any_crash(copy));
	if (!sim_world_failed(copy) && sweep->point % WORK_ON == 0)
	{
		(void) sim_life(copy, 1);
		report(sweep, copy, "working on after", n);
	}
	for (uint64_t i = 1; i <= n && all && !sim_world_failed(sweep->world); i++)
		cut_short(sweep, base, i);
	if (!all && n > 0 && !sim_world_failed(sweep->world))
		cut_short(sweep, base, 1 + sim_below(base, n));
	sim_world_free(base);
}

/* Do the write that comes next on the copy, in part. */
static void
write_in_part(SimWorld *copy, const SimPending *pending)
{
	const QcIo *io = sim_disk_io(copy->disk);

	sim_disk_crash_at(copy->disk, sim_disk_steps(copy->disk) + 1, SIM_MIDDLE);
	(void) io->write(io->context, pending->handle, pending->slices, pending->nslices,
					 pending->position);
}

/* SimBefore: a step comes. */
static void
before_step(void *context, SimServer *server, const SimPending *pending)
{
	Sweep	   *sweep = context;
	SimCrash	crashes[2] = {(SimCrash) sim_below(server->world, 4), SIM_CRASH_LOSE};
	uint64_t	step = server->world->steps + 1;
	bool		chosen;

	sweep->salt = sim_mix(sweep->seed ^ step * UINT64_C(0x9e3779b97f4a7c15));
	chosen = sim_random_below(&sweep->salt, OF_STEPS) == 0;
	if (sweep->world->sweep_step != 0)
		chosen = sweep->world->sweep_step == step;
	if (!chosen)
		return;
	for (uint32_t i = 0; i < 2 && !sim_world_failed(sweep->world); i++)
	{
		SimWorld   *copy = fork_world(sweep, server->world);

		if (pending->is_write && sim_chance(copy, 50))
			write_in_part(copy, pending);
		sim_world_crash(copy, crashes[i]);
		if (sim_chance(copy, copy->config.lost))
			sim_lose_store(copy);
		sweep->point = step * 2 + i;
		examine(sweep, copy);
		end_copy(sweep, copy);
	}
}

bool
sim_sweep(SimWorld *world)
{
	Sweep		sweep = {.world = world, .seed = world->random};
	SimServer  *server = sim_boot(world, 0);

	if (server == NULL)
		return false;
	world->config.checkpoint = world->config.checkpoint / 4 + 10;
	world->config.snapshot = (world->config.snapshot + 3) / 4;
	sim_start(server);

	/* The first snapshots are not worth much. */
	if (world->config.snapshot > 0)
		(void) sim_server_run(server, RESUMES, NULL, NULL);
	(void) sim_server_run(server, RESUMES, before_step, &sweep);
	sim_server_free(server);
	return !sim_world_failed(world);
}

/* The life of this copy, in which one step fails; then it is judged, and works on.  false = it has fewer steps. */
static bool
fail_at(SimWorld *copy, uint64_t step)
{
	SimServer  *server;
	bool		reached;

	sim_disk_fail(copy->disk, SIM_OP_COUNT, step, step % 2 == 0 ? EIO : ENOSPC);
	server = sim_start_failing(copy);
	if (server != NULL)
	{
		sim_start(server);
		(void) sim_server_run(server, RESUMES, NULL, NULL);
		reached = sim_disk_steps(copy->disk) >= step;
		sim_disk_heal(copy->disk);
		if (!copy->crashed && !sim_world_failed(copy))
			(void) sim_server_run(server, RESUMES / 4, NULL, NULL);
		sim_end(server, sim_any_crash(copy));
	}
	else
		reached = true;
	if (!sim_world_failed(copy))
		(void) sim_life(copy, 1);
	return reached;
}

bool
sim_fail_sweep(SimWorld *world)
{
	bool		more = true;

	for (uint64_t step = 1; more && !sim_world_failed(world); step++)
	{
		SimWorld   *copy;

		if (world->sweep_step != 0 && world->sweep_step != step)
			continue;
		copy = sim_world_copy(world);
		sim_world_trace(copy, world->sweep_step == 0 ? NULL : world->oracle->trace);
		more = fail_at(copy, step) && world->sweep_step == 0;
		if (sim_world_failed(copy))
		{
			(void) sim_world_fail(world, "%s (step %llu failed)", copy->failure, (unsigned long long) step);
			world->failed_step = step;
		}
		sim_totals_add(&world->totals, copy, world->steps);
		sim_world_free(copy);
	}
	return !sim_world_failed(world);
}
