/*
 * sim_scenario.c
 *		The scenarios of the simulation.
 */
#include "sim_scenario.h"

#include <stdio.h>
#include <string.h>

#define ROUNDS	12				/* server lives of one long life */

/* ---- configurations ---- */

/* Nothing but the logs decides. */
static void
queue_only(SimConfig *c)
{
	c->joint = c->catalog = 0;
}

/* The WAL decides, and holds what it decides about. */
static void
carried(SimConfig *c)
{
	c->joint = c->joint < 50 ? 50 : c->joint;
	c->carry_limit = 1000000;
}

/* The WAL decides about what stands in the logs only. */
static void
referenced(SimConfig *c)
{
	c->joint = c->joint < 50 ? 50 : c->joint;
	c->carry_limit = 0;
}

/* Every push and every answer travels in the WAL. */
static void
carry_all(SimConfig *c)
{
	c->joint = 100;
	c->carry_limit = UINT32_MAX;
}

/* Joint commits that guard themselves. */
static void
unguarded(SimConfig *c)
{
	carried(c);
	c->guards = 0;
}

/* Most transactions push into several of many logs. */
static void
several(SimConfig *c)
{
	c->names = SIM_NAMES_MAX;
	c->several = 80;
	c->clients = c->clients < 3 ? 3 : c->clients;
}

/* Queues come and go. */
static void
catalog(SimConfig *c)
{
	c->names = c->names < 3 ? 3 : c->names;
	c->catalog = 25;
	c->checkpoint = 40;
}

/* ... in logs that they share. */
static void
shared(SimConfig *c)
{
	c->names = SIM_NAMES_MAX;
	c->catalog = 10;
	c->shards = 2;
}

/* Consumer groups come, go and are sought, and queues are purged. */
static void
groups(SimConfig *c)
{
	c->groups = 30;
	c->pop = 50;
	c->names = c->names > 3 ? 3 : c->names;
	c->checkpoint = c->checkpoint > 1000 ? 200 : c->checkpoint;
	c->clients = c->clients < 3 ? 3 : c->clients;
}

/* What stands where, and what was cancelled, cannot be told when a part of the logs is lost. */
static void
no_groups(SimConfig *c)
{
	c->groups = c->delay = 0;
}

/* Much is purged, and its files go. */
static void
reclaimed(SimConfig *c)
{
	c->segment = 4096;
	c->pop = c->pop < 40 ? 40 : c->pop;
	c->names = c->names > 3 ? 3 : c->names;
	c->checkpoint = 30;
	c->groups = 30;
	c->reclaim = 4;
	c->large = 0;
}

/* All files stay, as nothing but them can make up for a checkpoint that is lost, or torn in a copy. */
static void
unreclaimed(SimConfig *c)
{
	c->reclaim = 0;
}

static void
unreclaimed_no_groups(SimConfig *c)
{
	no_groups(c);
	unreclaimed(c);
}

/* What is done is removed at once, and some of what is not. */
static void
retained(SimConfig *c)
{
	c->retain = 1;
	c->expire = 10;
	c->pop = 50;
	c->lease_us = 60000000;
	c->checkpoint = 40;
}

/* Snapshots are taken, files go that they do not need, and the checkpoint is lost. */
static void
snapshots(SimConfig *c)
{
	reclaimed(c);
	c->snapshot = 40;
	c->lost = 40;
	c->catalog = 15;
}

/* Hours of large messages, most of which are read soon. */
static void
churn(SimConfig *c)
{
	c->clients = 4;
	c->names = 4;
	c->partitions = 2;
	c->shards = 0;
	c->segment = 65536;
	c->ring = 262144;
	c->index = 524288;
	c->max_slots = 1000;
	c->joint = 20;
	c->weak = c->catalog = c->groups = c->stranger = c->several = 0;
	c->rollback = 5;
	c->pop = 60;
	c->delay = 3;
	c->large = c->noise = 100;
	c->carry_limit = 500;
	c->checkpoint = 20;
	c->pg_checkpoint = 300;
	c->lease_us = 60000000;
	c->retain = 1;
	c->ages = 1;
	c->expire = 0;
	c->pace = 400;
	c->think = 30;
	c->reclaim = 2;
	c->snapshot = 200;
	c->lost = 20;
}

static void
churn_shared(SimConfig *c)
{
	churn(c);
	c->shards = 2;
}

/* Calls of the disk fail. */
static void
failing(SimConfig *c)
{
	c->faults = 80;
	if (c->names > 1)
	{
		/* Files are extended several times while there are records in them. */
		c->segment = 262144;
		c->large = 30;
	}
}

/* ... one of them. */
static void
any_fault(SimConfig *c)
{
	c->faults = 1;
}

/* The disk gets full, and there is room again. */
static void
full(SimConfig *c)
{
	c->full = 60;
	c->segment = 65536;
}

/* ---- what is done ---- */

static bool
run_life(SimWorld *world, const SimScenario *scenario)
{
	(void) scenario;
	return sim_life(world, ROUNDS);
}

static bool
run_sweep(SimWorld *world, const SimScenario *scenario)
{
	(void) scenario;
	return sim_sweep(world);
}

static bool
run_fail_sweep(SimWorld *world, const SimScenario *scenario)
{
	(void) scenario;
	return sim_fail_sweep(world);
}

static bool
run_churn(SimWorld *world, const SimScenario *scenario)
{
	return sim_churn(world, scenario->kind);
}

static bool
run_damage(SimWorld *world, const SimScenario *scenario)
{
	return sim_damage(world, (SimDamage) scenario->kind);
}

const SimScenario sim_scenarios[] = {
	{"life", "work and crashes", 10, NULL, run_life, 0},
	{"life-queue-only", "... decided by the logs", 6, queue_only, run_life, 0},
	{"life-carried", "... decided by the WAL, which carries the messages", 8, carried, run_life, 0},
	{"life-referenced", "... decided by the WAL, which refers to the logs", 6, referenced, run_life, 0},
	{"life-carry-all", "... all of it in the WAL", 5, carry_all, run_life, 0},
	{"life-unguarded", "... joint commits that guard themselves", 5, unguarded, run_life, 0},
	{"life-several", "... in several logs at once", 6, several, run_life, 0},
	{"life-catalog", "... with queues that come and go", 6, catalog, run_life, 0},
	{"life-shared", "... that come and go in shared logs", 6, shared, run_life, 0},
	{"life-groups", "... with consumer groups that begin, end and are sought, and purges", 8, groups, run_life, 0},
	{"life-reclaim", "... whose files go and are rewritten", 8, reclaimed, run_life, 0},
	{"life-retained", "... that removes what is done", 8, retained, run_life, 0},
	{"life-snapshot", "... that loses its checkpoint and begins with a snapshot", 8, snapshots, run_life, 0},
	{"life-failing", "... on a disk whose calls fail", 10, failing, run_life, 0},
	{"life-full", "... on a disk that gets full", 6, full, run_life, 0},
	{"sweep", "a crash before every step, and recovery cut short", 8, NULL, run_sweep, 0},
	{"sweep-queue-only", "... decided by the logs", 6, queue_only, run_sweep, 0},
	{"sweep-carried", "... decided by the WAL, which carries the messages", 7, carried, run_sweep, 0},
	{"sweep-referenced", "... decided by the WAL, which refers to the logs", 6, referenced, run_sweep, 0},
	{"sweep-several", "... in several logs at once", 7, several, run_sweep, 0},
	{"sweep-catalog", "... with queues that come and go", 6, catalog, run_sweep, 0},
	{"sweep-shared", "... that come and go in shared logs", 6, shared, run_sweep, 0},
	{"sweep-groups", "... with consumer groups that begin, end and are sought, and purges", 8, groups, run_sweep, 0},
	{"sweep-reclaim", "... while files go and are rewritten", 6, reclaimed, run_sweep, 0},
	{"sweep-retained", "... while what is done is removed", 6, retained, run_sweep, 0},
	{"sweep-snapshot", "... while snapshots are taken, and a start with them", 6, snapshots, run_sweep, 0},
	{"sweep-failing", "every step fails once", 8, any_fault, run_fail_sweep, 0},
	{"churn", "hours in which most of 100 GB goes through small segments", 1, churn, run_churn, 1000},
	{"churn-shared", "... and the rest, in shared logs", 1, churn_shared, run_churn, 600},
	{"damage-queue", "a byte of a queue's log flipped", 2, no_groups, run_damage, SIM_DAMAGE_QUEUE},
	{"damage-system", "a byte of the system log flipped", 2, no_groups, run_damage, SIM_DAMAGE_SYSTEM},
	{"damage-only", "a byte of the only queue's log flipped", 2, no_groups, run_damage, SIM_DAMAGE_ONLY},
	{"damage-directory", "a log directory missing", 2, no_groups, run_damage, SIM_DAMAGE_DIRECTORY},
	{"damage-file", "a log file missing", 2, no_groups, run_damage, SIM_DAMAGE_FILE},
	{"damage-checkpoint", "the checkpoint lost", 3, unreclaimed, run_damage, SIM_DAMAGE_CHECKPOINT},
	{"damage-copy", "a copy taken while the server ran", 4, unreclaimed_no_groups, run_damage, SIM_DAMAGE_COPY},
	{NULL, NULL, 0, NULL, NULL, 0}
};

const SimScenario *
sim_scenario_find(const char *name)
{
	for (const SimScenario *scenario = sim_scenarios; scenario->name != NULL; scenario++)
	{
		if (strcmp(scenario->name, name) == 0)
			return scenario;
	}
	return NULL;
}

const char *
sim_program(const char *name)
{
	static char path[100];
#ifdef __clang__
	const char *compiler = "clang";
#else
	const char *compiler = "gcc";
#endif
#ifdef SIM_SANITIZED
	const char *sanitized = "-san";
#else
	const char *sanitized = "";
#endif

	(void) snprintf(path, sizeof(path), "build/%s%s/test/sim/%s", compiler, sanitized, name);
	return path;
}

/* What is wrong, and in which configuration. */
static void
tell(const SimScenario *scenario, uint64_t seed, const SimWorld *world, SimFailure *failure)
{
	char		config[400];

	sim_world_describe(world, config, sizeof(config));
	(void) snprintf(failure->text, sizeof(failure->text), "%s, seed %llu: %s\n#   (%s)", scenario->name,
					(unsigned long long) seed, world->failure, config);
	failure->step = world->failed_step;
}

bool
sim_scenario_run(const SimScenario *scenario, uint64_t seed, const SimOptions *options,
				 SimTotals *totals, SimFailure *failure)
{
	SimWorld   *world = sim_world_new(seed);
	bool		good;

	if (scenario->configure != NULL)
		scenario->configure(&world->config);
	world->sweep_step = options->step;
	sim_world_trace(world, options->trace);
	good = scenario->run(world, scenario);
	if (sim_world_failed(world) || !good)
	{
		(void) sim_world_fail(world, "it ended too early");
		tell(scenario, seed, world, failure);
		good = false;
	}
	totals->seeds++;
	sim_totals_add(totals, world, 0);
	sim_world_free(world);
	return good;
}
