/*
 * sim_look.c
 *		What a simulated server shows: every message with its place and state, for the oracle to judge; and everything
 *		that it can still deliver.
 */
#include "sim_server.h"

#include "qc_cursor.h"
#include "qc_lane.h"
#include "qc_lease.h"
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
look_at(Look *look, QcPartition *partition, uint64_t position, QcRef *hint, const QcCursor *cursor,
		const QcSlot *slot)
{
	SimPlace	place;
	SimSeen    *seen = add_seen(look);
	const QcQueue *queue = QC_AT(look->server->st, QcQueue, partition->queue);

	sim_place(look->server->st, partition, position, slot == NULL ? 0 : slot->attempt, hint, &place);
	if (!sim_read(look->p, &place, seen))
		return false;
	if (partition->lane == QC_LANE_DEAD)
	{
		const QcLaneItem *letter = qc_lane_find(look->server->st, partition, position);

		if (letter == NULL || letter->state != QC_LANE_ITEM_LIVE)
			return sim_world_fail(look->server->world, "a message in a dead lane is no dead letter");
		seen->attempt = letter->attempt;
		seen->died = letter->reason != QC_DEAD_REJECTED;
	}
	if (slot != NULL)
		seen->state = slot->state == QC_SLOT_LEASED ? SIM_LEASED : SIM_READY;
	else
		seen->state = cursor != NULL && position < cursor->fetch ? SIM_DONE : SIM_READY;

	/*
	 * In order, a message that comes back behind another one that failed is not charged; the queue
	 * may have been ordered.
	 */
	if (slot != NULL && slot->state != QC_SLOT_LEASED &&
		(qc_partition_ordered(look->server->st, partition) || queue->altered_seq != 0))
		seen->attempt++;
	return true;
}

/* All messages of a partition; false = one cannot be read. */
static bool
look_through(Look *look, QcPartition *partition)
{
	QcState    *st = look->server->st;
	const QcCursor *cursor = QC_AT(st, QcCursor, partition->cursors);
	const QcSlot *slot = cursor == NULL ? NULL : QC_AT(st, QcSlot, cursor->slots.head);
	const QcAbortedRange *range = QC_AT(st, QcAbortedRange, partition->aborted.head);
	QcRef		hint = 0;

	if (partition->stable != partition->next)
		return sim_world_fail(look->server->world, "a partition is blocked at %llu of %llu",
							  (unsigned long long) partition->stable,
							  (unsigned long long) partition->next);
	for (uint64_t position = 0; position < partition->stable; position++)
	{
		bool		has_slot;

		while (range != NULL && range->first + range->count <= position)
			range = QC_AT(st, QcAbortedRange, range->next);
		has_slot = slot != NULL && slot->position == position;
		if (range != NULL && range->first <= position)
		{
			if (has_slot)
				return sim_world_fail(look->server->world, "a position without message is delivered");
			continue;
		}
		if (!look_at(look, partition, position, &hint, cursor, has_slot ? slot : NULL))
			return false;
		if (has_slot)
			slot = QC_AT(st, QcSlot, slot->of_cursor.next);
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
		queue->id, sim_name_number(qc_name_at(st, queue->name), queue->name_len),
		queue->damaged != 0, queue->owner
	};
	look->nqueues++;
	if (shown->damaged && !look->server->world->allow_damage)
		return sim_world_fail(look->server->world, "a queue is out of service");
	for (QcPartition *partition = QC_AT(st, QcPartition, queue->partitions.head);
		 partition != NULL && !shown->damaged;
		 partition = QC_AT(st, QcPartition, partition->of_queue.next))
	{
		if (look_through(look, partition))
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
	SimView		view = {look->nqueues, look->queues, look->nseen, look->seen, rows,
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
			sim_arena_reset(&p->arena);
			if (sim_pop(client, name, SIM_POP_MAX, 0, 0))
				found = sim_acknowledge(client) || found;
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
		drain_once(&client);
		w->monotonic += 2 * w->config.lease_us + 1000000;
		w->now += 2 * w->config.lease_us + 1000000;
		expire(p);
		sim_arena_reset(&p->arena);
		while (sim_move_dying(p))
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
