/*
 * sim_world.c
 *		Making, copying and crashing a simulated machine.
 */
#include "sim_world.h"

#include "sim_random.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_OF_TIME INT64_C(1700000000000000)

uint64_t
sim_below(SimWorld *world, uint64_t bound)
{
	return sim_random_below(&world->random, bound);
}

bool
sim_chance(SimWorld *world, uint32_t percent)
{
	return sim_below(world, 100) < percent;
}

/* One of these, each as likely as the others. */
static uint32_t
one_of(SimWorld *world, const uint32_t *choices, size_t n)
{
	return choices[sim_below(world, n)];
}

#define ONE_OF(world, ...) \
	one_of((world), (const uint32_t[]) {__VA_ARGS__}, \
		   sizeof((const uint32_t[]) {__VA_ARGS__}) / sizeof(uint32_t))

static void
choose_config(SimWorld *w)
{
	SimConfig  *c = &w->config;
	uint64_t	layout = sim_mix(w->random);

	/* drawn apart, so that what else a seed chooses does not depend on it */
	c->shards = layout % 3 == 0 ? 1 + (uint32_t) (layout / 3 % 3) : 0;
	layout = sim_mix(layout);
	c->retain = (const uint32_t[])
	{
		1, 4, 20, 1000000
	}[layout % 4];
	c->expire = layout / 4 % 2 == 0 ? 0 : 20;
	layout = sim_mix(layout);
	c->reclaim = (const uint32_t[])
	{
		5, 40, 300, 1000000
	}[layout % 4];
	layout = sim_mix(layout);
	c->snapshot = (const uint32_t[])
	{
		0, 0, 30, 300
	}[layout % 4];
	c->lost = c->snapshot > 0 ? 15 : 0;
	c->clients = ONE_OF(w, 1, 2, 3, 4, 6);
	c->names = ONE_OF(w, 1, 2, 3, 5, SIM_NAMES_MAX);
	c->partitions = ONE_OF(w, 1, 2, SIM_PARTITIONS_MAX);
	c->segment = ONE_OF(w, 4096, 8192, 16384, 65536, 262144);
	c->ring = ONE_OF(w, 8192, 16384, 65536);
	c->state = 2 * 1024 * 1024;
	c->index = ONE_OF(w, 65536, 524288);
	c->max_slots = ONE_OF(w, 3, 20, 1000);
	c->guards = ONE_OF(w, 0, 2, 2, 2);
	c->joint = ONE_OF(w, 0, 20, 50, 90);
	c->weak = ONE_OF(w, 0, 0, 10, 50);
	c->rollback = ONE_OF(w, 0, 10, 40);
	c->several = ONE_OF(w, 0, 30, 80);
	c->pop = ONE_OF(w, 0, 20, 50);
	c->catalog = ONE_OF(w, 0, 2, 10);
	c->groups = ONE_OF(w, 0, 0, 3, 15);
	c->delay = ONE_OF(w, 0, 0, 10, 40);
	c->stranger = ONE_OF(w, 0, 10, 30);
	c->large = ONE_OF(w, 0, 5, 30);
	c->noise = ONE_OF(w, 0, 50, 100);
	c->carry_limit = ONE_OF(w, 0, 500, 8192, 1000000);
	c->checkpoint = ONE_OF(w, 40, 200, 1000, 100000);
	c->pg_checkpoint = ONE_OF(w, 60, 300, 2000);
	c->lease_us = ONE_OF(w, 1000, 100000, 60000000);
}

SimWorld *
sim_world_new(uint64_t seed)
{
	SimWorld   *w = sim_alloc(sizeof(SimWorld));

	w->random = seed;
	w->disk = sim_disk_new(sim_random(&w->random));
	w->oracle = sim_oracle_new();
	sim_wal_init(&w->wal);
	w->now = START_OF_TIME;
	w->monotonic = 1000000;
	choose_config(w);
	return w;
}

SimWorld *
sim_world_copy(const SimWorld *world)
{
	SimWorld   *copy = sim_alloc(sizeof(SimWorld));

	*copy = *world;
	copy->totals = (SimTotals) {0};
	copy->disk = sim_disk_fork(world->disk);
	copy->oracle = sim_oracle_copy(world->oracle);
	sim_wal_copy(&copy->wal, &world->wal);
	return copy;
}

void
sim_world_free(SimWorld *world)
{
	sim_disk_free(world->disk);
	sim_oracle_free(world->oracle);
	sim_wal_free(&world->wal);
	free(world);
}

void
sim_totals_add(SimTotals *totals, const SimWorld *world, uint64_t steps)
{
	totals->steps += world->totals.steps + world->steps - steps;
	totals->transactions += world->totals.transactions + world->oracle->ntxns;
	totals->messages += world->totals.messages + world->oracle->nmessages;
	totals->recoveries += world->totals.recoveries;
	totals->deleted += world->totals.deleted;
	totals->rewritten += world->totals.rewritten;
	totals->snapshots += world->totals.snapshots;
	totals->refused += world->totals.refused;
	totals->panics += world->totals.panics;
	totals->bad_starts += world->totals.bad_starts;
}

void
sim_world_trace(SimWorld *world, FILE *out)
{
	world->oracle->trace = out;
	sim_disk_trace(world->disk, out);
}

/* How many of the records that were not flushed survive. */
static size_t
wal_survivors(SimWorld *world, SimCrash crash)
{
	size_t		unflushed = world->wal.count - world->wal.nflushed;

	if (crash == SIM_CRASH_KEEP)
		return unflushed;
	if (crash == SIM_CRASH_LOSE)
		return 0;
	return (size_t) sim_below(world, unflushed + 1);
}

void
sim_world_crash(SimWorld *world, SimCrash crash)
{
	SimLoss		loss = crash == SIM_CRASH_LOSE ? SIM_LOSE_ALL :
		crash == SIM_CRASH_RANDOM ? SIM_RANDOM : SIM_KEEP_ALL;

	sim_wal_crash(&world->wal, wal_survivors(world, crash));
	/* What a failed sync has dropped is gone when the cache is. */
	world->machine_died |= sim_disk_evict(world->disk);
	if (crash == SIM_CRASH_KILL && !sim_disk_crashed(world->disk))
		sim_disk_kill(world->disk);
	else
	{
		sim_disk_reboot(world->disk, loss, loss);
		if (crash != SIM_CRASH_KILL)
			world->monotonic = (int64_t) sim_below(world, 1000000);
	}
	world->machine_died |= crash == SIM_CRASH_LOSE || crash == SIM_CRASH_RANDOM;
	world->now += (int64_t) sim_below(world, 1000000);
	world->crashed = false;
	world->crash_step = 0;
	sim_oracle_crashed(world->oracle);
}

bool
sim_world_fail(SimWorld *world, const char *format,...)
{
	va_list		args;

	if (world->failure[0] != '\0')
		return false;
	va_start(args, format);
	(void) vsnprintf(world->failure, sizeof(world->failure), format, args);
	va_end(args);
	return false;
}

bool
sim_world_failed(SimWorld *world)
{
	if (world->failure[0] == '\0' && world->oracle->complaint[0] != '\0')
		(void) sim_world_fail(world, "%s", world->oracle->complaint);
	return world->failure[0] != '\0';
}

void
sim_world_describe(const SimWorld *world, char *out, size_t size)
{
	const SimConfig *c = &world->config;

	(void) snprintf(out, size, "%u clients, %u queues of %u partitions, %u shared logs, segments of %llu, ring of %llu, "
					"%u%% joint, %u%% weak, %u%% rolled back, carry up to %u, %s guards, "
					"%u%% change groups, %u%% delayed, checkpoint every %u, leases of %lld us",
					c->clients, c->names, c->partitions, c->shards, (unsigned long long) c->segment,
					(unsigned long long) c->ring, c->joint, c->weak, c->rollback, c->carry_limit,
					c->guards > 0 ? "with" : "without", c->groups, c->delay, c->checkpoint, (long long) c->lease_us);
}
