/*
 * sim_look.c
 *		What a simulated server shows: every message with its place and state, for the oracle to judge; and everything
 *		that it can still deliver.
 */
#include "sim_server.h"

#include "qc_cursor.h"
#include "qc_group.h"
#include "qc_lane.h"
#include "qc_lease.h"
#include "qc_purge.h"
#include "qc_timer.h"

#include <stdlib.h>
#include <string.h>

#define DRAIN_ROUNDS	6		/* leases and retries are over after so many */

typedef struct Look
{
	SimServer  *server;
	SimProc    *p;
	uint32_t	nqueues;
	SimSeenQueue queues[SIM_NAMES_MAX];
	uint32_t	nseen;
	uint32_t	cap_seen;
	SimSeen    *seen;
	uint32_t	nareas;
	uint32_t	cap_areas;
	SimArea    *areas;
} Look;

static SimSeen *
add_seen(Look *look)
{
	if (look->nseen == look->cap_seen)
	{
		look->cap_seen = look->cap_seen * 2 + 256;
		look->seen = sim_realloc(look->seen, look->cap_seen * sizeof(SimSeen));
	}
	return &look->seen[look->nseen++];
}

/* Read one position; false = it cannot be read. */
static bool
look_at(Look *look, QcPartition *partition, uint64_t position, QcRef *hint, SimSeen *seen)
{
	SimPlace	place;

	sim_place(look->server->st, partition, position, 0, hint, &place);
	return sim_read(look->p, &place, seen);
}

/* A group in a partition. */
typedef struct Standing
{
	bool		there;
	bool		known;			/* where it stands */
	uint64_t	position;
	const QcSlot *slot;			/* the next one */
} Standing;

static void
find_standing(QcState *st, const QcPartition *partition, const QcGroup *group, Standing *standing)
{
	const QcCursor *cursor = qc_cursor_of(st, partition, group);

	standing->there = standing->known = true;
	if (!qc_group_lacks(st, partition, group))
	{
		standing->position = cursor->fetch;
		standing->slot = QC_AT(st, QcSlot, cursor->slots.head);
	}
	else
		standing->known = qc_group_start(group, partition, &standing->position);
}

/* Number of a group that lives. */
static uint32_t
group_number(QcState *st, const QcGroup *group)
{
	return sim_name_number(qc_name_at(st, group->name), group->name_len);
}

static void
find_standings(QcState *st, const QcPartition *partition, Standing *standings)
{
	const QcQueue *queue = QC_AT(st, QcQueue, partition->queue);

	memset(standings, 0, SIM_GROUPS * sizeof(Standing));
	for (const QcGroup *group = QC_AT(st, QcGroup, queue->groups);
		 group != NULL && partition->lane == QC_LANE_NONE;
		 group = QC_AT(st, QcGroup, group->next))
	{
		if (group->state == QC_GROUP_LIVE)
			find_standing(st, partition, group, &standings[group_number(st, group)]);
	}
}

/* What the group shows of this position, for which it has the slot or none. */
static void
show(const Look *look, const QcPartition *partition, uint64_t position, const Standing *standing,
	 const QcSlot *slot, SimShown *shown)
{
	const QcQueue *queue = QC_AT(look->server->st, QcQueue, partition->queue);

	shown->attempt = slot == NULL ? 0 : slot->attempt;
	if (slot != NULL)
		shown->state = slot->state == QC_SLOT_LEASED ? SIM_LEASED : SIM_READY;
	else if (!standing->there || !standing->known)
		shown->state = SIM_UNKNOWN;
	else
		shown->state = position < standing->position || position < partition->start ? SIM_DONE : SIM_READY;

	/*
	 * In order, a message that comes back behind another one that failed is not charged; the queue
	 * may have been ordered.
	 */
	if (slot != NULL && slot->state != QC_SLOT_LEASED &&
		(qc_partition_ordered(look->server->st, partition) || queue->altered_seq != 0))
		shown->attempt++;
}

/* Take the slots of a position out of the standings. */
static bool
take_slots(QcState *st, Standing *standings, uint64_t position, const QcSlot **slots)
{
	bool		any = false;

	for (uint32_t g = 0; g < SIM_GROUPS; g++)
	{
		slots[g] = NULL;
		if (standings[g].slot == NULL || standings[g].slot->position != position)
			continue;
		slots[g] = standings[g].slot;
		standings[g].slot = QC_AT(st, QcSlot, slots[g]->of_cursor.next);
		any = true;
	}
	return any;
}

/* From these positions messages were removed. */
static void
add_area(Look *look, const QcPartition *partition, uint64_t first, uint64_t end)
{
	QcState    *st = look->server->st;

	if (look->nareas == look->cap_areas)
	{
		look->cap_areas = look->cap_areas * 2 + 64;
		look->areas = sim_realloc(look->areas, look->cap_areas * sizeof(SimArea));
	}
	look->areas[look->nareas++] = (SimArea)
	{
		QC_AT(st, QcQueue, partition->queue)->id,
		sim_name_number(qc_name_at(st, partition->name), partition->name_len), first, end
	};
}

/* All messages of a partition that a group can have; false = one cannot be read. */
static bool
look_through(Look *look, QcPartition *partition)
{
	QcState    *st = look->server->st;
	const QcAbortedRange *range;
	Standing	standings[SIM_GROUPS];
	QcRef		hint = 0;

	qc_partition_touch(st, partition);
	range = QC_AT(st, QcAbortedRange, partition->aborted.head);
	if (partition->start > 0)
		add_area(look, partition, 0, partition->start);
	for (const QcAbortedRange *r = range; r != NULL; r = QC_AT(st, QcAbortedRange, r->next))
	{
		if (r->gone)
			add_area(look, partition, r->first, r->first + r->count);
	}
	find_standings(st, partition, standings);
	if (partition->stable != partition->next)
		return sim_world_fail(look->server->world, "a partition is blocked at %llu of %llu",
							  (unsigned long long) partition->stable,
							  (unsigned long long) partition->next);
	for (uint64_t position = 0; position < partition->stable; position++)
	{
		const QcSlot *slots[SIM_GROUPS];
		bool		in_flight = take_slots(st, standings, position, slots);
		SimSeen    *seen;

		while (range != NULL && range->first + range->count <= position)
			range = QC_AT(st, QcAbortedRange, range->next);
		if (range != NULL && range->first <= position && in_flight)
			return sim_world_fail(look->server->world, "a position without message is delivered");
		if ((range != NULL && range->first <= position) || (position < partition->start && !in_flight))
			continue;
		seen = add_seen(look);
		if (!look_at(look, partition, position, &hint, seen))
			return false;
		for (uint32_t g = 0; g < SIM_GROUPS; g++)
			show(look, partition, position, &standings[g], slots[g], &seen->shown[g]);
	}
	return true;
}

/* Messages that wait for their time. */
static bool
look_at_delayed(Look *look, QcPartition *lane)
{
	QcState    *st = look->server->st;
	QcRef		hint = 0;

	if (lane->stable != lane->next)
		return sim_world_fail(look->server->world, "a lane is blocked");
	for (QcRef ref = lane->items.head; ref != 0; ref = QC_AT(st, QcLaneItem, ref)->of_lane.next)
	{
		const QcLaneItem *item = QC_AT(st, QcLaneItem, ref);

		if (item->state != QC_LANE_ITEM_LIVE)
			return sim_world_fail(look->server->world, "a message in a delay lane does not wait");
		if (!look_at(look, lane, item->position, &hint, add_seen(look)))
			return false;
	}
	return true;
}

/* The dead letters of a group. */
static bool
look_at_letters(Look *look, QcPartition *lane)
{
	QcState    *st = look->server->st;
	const QcQueue *queue = QC_AT(st, QcQueue, lane->queue);
	const QcGroup *group = qc_group_by_id(st, queue, lane->group);
	QcRef		hint = 0;

	if (group == NULL || group->state != QC_GROUP_LIVE)
		return true;			/* they go with it */
	if (group->dead_partition != lane->id)
		return sim_world_fail(look->server->world, "a lane belongs to a group that has another one");
	if (lane->stable != lane->next)
		return sim_world_fail(look->server->world, "a lane is blocked");
	for (QcRef ref = lane->items.head; ref != 0; ref = QC_AT(st, QcLaneItem, ref)->of_lane.next)
	{
		const QcLaneItem *letter = QC_AT(st, QcLaneItem, ref);
		SimSeen    *seen = add_seen(look);

		if (letter->state != QC_LANE_ITEM_LIVE)
			return sim_world_fail(look->server->world, "a message in a dead lane is no dead letter");
		if (!look_at(look, lane, letter->position, &hint, seen))
			return false;
		seen->group = group_number(st, group);
		seen->attempt = letter->attempt;
		seen->died = letter->reason != QC_DEAD_REJECTED;
	}
	return true;
}

/* May reading have failed like this? */
static bool
may_be_damaged(const Look *look)
{
	return look->server->world->allow_damage &&
		(look->p->err.code == QC_DAMAGED || look->p->err.code == QC_MISSING);
}

static bool
look_at_queue(Look *look, QcQueue *queue)
{
	QcState    *st = look->server->st;
	SimSeenQueue *shown = &look->queues[look->nqueues];
	uint32_t	before = look->nseen;

	if (queue->state != QC_QUEUE_LIVE || look->nqueues == SIM_NAMES_MAX)
		return sim_world_fail(look->server->world, "a queue is in state %u after recovery", queue->state);
	*shown = (SimSeenQueue)
	{
		.id = queue->id, .name = sim_name_number(qc_name_at(st, queue->name), queue->name_len),
		.damaged = queue->damaged != 0, .owner = queue->owner
	};
	memset(shown->groups, 0xff, sizeof(shown->groups));
	for (const QcGroup *group = QC_AT(st, QcGroup, queue->groups); group != NULL;
		 group = QC_AT(st, QcGroup, group->next))
	{
		if (group->state != QC_GROUP_LIVE)
			return sim_world_fail(look->server->world, "a group is in state %u after recovery", group->state);
		shown->groups[group_number(st, group)] = group->id;
	}
	look->nqueues++;
	if (shown->damaged && !look->server->world->allow_damage)
		return sim_world_fail(look->server->world, "a queue is out of service");
	for (QcPartition *partition = QC_AT(st, QcPartition, queue->partitions.head);
		 partition != NULL && !shown->damaged;
		 partition = QC_AT(st, QcPartition, partition->of_queue.next))
	{
		if (partition->lane == QC_LANE_DEAD ? look_at_letters(look, partition) :
			partition->lane == QC_LANE_DELAY ? look_at_delayed(look, partition) :
			look_through(look, partition))
			continue;
		if (!may_be_damaged(look))
		{
			sim_broken(look->p, "reading a message");
			return false;
		}
		shown->damaged = true;
	}
	if (shown->damaged)
		look->nseen = before;
	return true;
}

/* Ask the oracle. */
static bool
judge(Look *look)
{
	SimWorld   *w = look->server->world;
	uint8_t    *rows = sim_alloc(w->oracle->ntxns + 1);
	SimView		view = {look->nqueues, look->queues, look->nseen, look->seen, look->nareas, look->areas, rows,
		!w->machine_died, w->lossy};
	bool		good;

	sim_wal_rows(&w->wal, rows, w->oracle->ntxns);
	good = sim_oracle_recovered(w->oracle, &view);
	free(rows);
	return good;
}

bool
sim_look(SimServer *server)
{
	Look		look = {.server = server, .p = &server->procs[SIM_BOOT_PROC]};
	SimWorld   *w = server->world;
	QcState    *st = server->st;
	bool		good = sim_check(server, true);

	for (QcQueue *queue = QC_AT(st, QcQueue, st->queues.head); queue != NULL && good;
		 queue = QC_AT(st, QcQueue, queue->all.next))
	{
		if (queue->state != QC_QUEUE_DEAD)
			good = look_at_queue(&look, queue);
	}
	good = good && judge(&look);
	w->totals.recoveries++;
	free(look.seen);
	free(look.areas);
	if (good)
		w->machine_died = w->lossy = false;
	return good && !sim_world_failed(w);
}

/* ---- draining ---- */

/* Leases whose time is over end. */
static void
expire(SimProc *p)
{
	QcState    *st = p->server->st;
	uint64_t	ids[16];
	uint32_t	n;

	while ((n = qc_timers_run(st, p->world->monotonic, ids, 16)) > 0)
	{
		for (uint32_t i = 0; i < n; i++)
		{
			QcRelease	release = {.lease = ids[i], .reason = QC_RELEASE_EXPIRED,
				.messages = UINT32_MAX};
			size_t		size = qc_effect_size(QC_EFFECT_RELEASE, &release, 0);
			QcSmallPlan *small = sim_arena_take(&p->arena, sizeof(QcSmallPlan));
			QcWriter	w;

			qc_plan_small(small, sim_arena_take(&p->arena, QC_SMALL_BUFFER(size)), size);
			w = qc_plan_small_writer(small);
			qc_effect_put(&w, QC_EFFECT_RELEASE, &release, 0);
			qc_plan_small_done(small, &w, 1);
			(void) sim_submit(p, small, NULL, NULL, NULL);
		}
	}
}

/* Pop and acknowledge until no queue delivers anything. */
static void
drain_once(SimClient *client)
{
	SimProc    *p = client->p;
	bool		found = true;

	while (found && !sim_world_failed(p->world) && !p->world->crashed)
	{
		found = false;
		for (uint32_t name = 0; name < SIM_NAMES_MAX; name++)
		{
			for (uint32_t group = 0; group < SIM_GROUPS; group++)
			{
				sim_arena_reset(&p->arena);
				if (sim_pop(client, name, group, SIM_POP_MAX, 0, 0))
					found = sim_acknowledge(client) || found;
			}
		}
	}
}

bool
sim_drain(SimServer *server)
{
	SimWorld   *w = server->world;
	SimProc    *p = &server->procs[SIM_BOOT_PROC];
	SimClient	client = {.p = p};
	uint8_t    *expected;

	for (int i = 0; i < DRAIN_ROUNDS && !sim_world_failed(w) && !w->crashed; i++)
	{
		/* Retry times double, up to an hour. */
		int64_t		pause = INT64_C(1000000) << 3 * i;

		drain_once(&client);
		w->monotonic += 2 * w->config.lease_us + pause;
		w->now += 2 * w->config.lease_us + pause;
		expire(p);
		sim_arena_reset(&p->arena);
		while (sim_move_dying(p) || sim_move_delayed(p))
			sim_arena_reset(&p->arena);
	}
	if (w->crashed)
		return false;
	expected = sim_alloc(w->oracle->nmessages + 1);
	sim_oracle_expected(w->oracle, expected);
	for (uint32_t i = 0; i < w->oracle->nmessages; i++)
	{
		if (expected[i])
			(void) sim_world_fail(w, "a message of transaction %u is never delivered",
								  w->oracle->messages[i].txn);
	}
	free(expected);
	return !sim_world_failed(w);
}
