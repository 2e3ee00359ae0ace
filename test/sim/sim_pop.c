/*
 * sim_pop.c
 *		Clients of a simulated server as consumers: pop, nack, renew, and the end of a transaction that popped.
 */
#include "sim_server.h"

#include "qc_cursor.h"
#include "qc_group.h"
#include "qc_index.h"
#include "qc_lease.h"
#include "qc_wait.h"
#include "sim_payload.h"

#include <assert.h>
#include <string.h>

/* ---- names ---- */

QcStr
sim_queue_name(uint32_t name)
{
	static const char names[] = "q0q1q2q3q4q5q6q7";

	assert(name < SIM_NAMES_MAX);
	return (QcStr) {(const uint8_t *) names + 2 * (size_t) name, 2};
}

QcStr
sim_partition_name(uint32_t partition)
{
	static const char names[] = "p0p1p2p3";

	assert(partition < SIM_PARTITIONS_MAX);
	return (QcStr) {(const uint8_t *) names + 2 * (size_t) partition, partition == 0 ? 0 : 2};
}

QcStr
sim_group_name(uint32_t group)
{
	static const char names[] = "g0g1g2";

	assert(group < SIM_GROUPS);
	return (QcStr) {(const uint8_t *) names + 2 * (size_t) group, group == 0 ? 0 : 2};
}

uint32_t
sim_name_number(const char *name, uint16_t len)
{
	return len < 2 ? 0 : (uint32_t) (name[1] - '0');
}

/* ---- reading ---- */

void
sim_place(QcState *st, QcPartition *partition, uint64_t position, uint32_t attempt, QcRef *hint,
		  SimPlace *place)
{
	*place = (SimPlace)
	{
		.queue = QC_AT(st, QcQueue, partition->queue)->id, .partition = partition->id,
		.position = position, .attempt = attempt,
		.number = partition->lane == QC_LANE_DEAD ? SIM_DEAD_LANE :
		partition->lane == QC_LANE_DELAY ? SIM_DELAY_LANE :
		sim_name_number(qc_name_at(st, partition->name), partition->name_len)
	};
	if (!qc_index_find(st, partition, position, hint, &place->location))
		place->location.file = 0;
}

static QcStatus
read_message(SimProc *p, const SimPlace *place, bool anew, QcMessage *message, int64_t *created_at)
{
	QcLocation	location = place->location;
	QcStatus	status = QC_OK;

	if (location.file == 0 || anew)
		status = qc_read_locate(&p->cache, location.log, place->partition, place->position, 0,
								anew ? 0 : location.last_file, &location, &p->err);
	if (status == QC_OK)
		status = qc_read_message(&p->cache, &location, place->partition, place->position, message,
								 created_at, &p->err);
	return status;
}

/* As src/pg/qlog_fetch.c: what is not where it was noted is looked for again, as long as files change. */
static bool
find_message(SimProc *p, const SimPlace *place, QcMessage *message, int64_t *created_at)
{
	bool		again = false;

	for (;;)
	{
		uint64_t	gone = p->server->gone;
		QcStatus	status;

		sim_follow(p);
		status = read_message(p, place, again, message, created_at);
		if (status == QC_OK || status == QC_IO)
			return status == QC_OK;
		if (!sim_is_there(p, place) || (again && gone == p->server->gone))
		{
			if (status == QC_NOTFOUND)
				p->err.code = QC_DAMAGED;	/* the state says, or said, that it is there */
			return false;
		}
		again = true;
		sim_forget(p);
	}
}

bool
sim_read(SimProc *p, const SimPlace *place, SimSeen *seen)
{
	QcMessage	message;
	int64_t		created_at;

	if (!find_message(p, place, &message, &created_at))
		return false;
	*seen = (SimSeen)
	{
		.queue = place->queue, .partition = place->number, .position = place->position,
		.attempt = place->attempt, .at = created_at
	};
	if (sim_payload_get(message.data, message.data_len, &seen->txn, &seen->index))
		return true;
	(void) qc_error_set(&p->err, QC_INTERNAL, "a message has other bytes than were pushed");
	return false;
}

/* ---- pop ---- */

typedef struct Pop
{
	SimClient  *client;
	uint64_t	queue;			/* id */
	uint32_t	group;			/* number */
	uint64_t	group_id;
	uint32_t	batch;
	uint64_t	partition;
	uint64_t	lease;
	bool		may_wait;
	bool		listed;
	uint64_t	seq;			/* of the delivery */
	uint64_t	moment;			/* ... the oracle's */
	uint32_t	nplaces;
	SimPlace	places[SIM_POP_MAX];
} Pop;

/* Nothing was found: wait for something, or not. */
static void
found_nothing(Pop *pop, QcState *st, const QcPopRequest *request)
{
	QcWaitFor	what = {.group = request->group, .partition = request->partition,
		.weight = pop->batch};

	pop->listed = pop->may_wait;
	if (!pop->may_wait)
	{
		qc_wait_popped(st, pop->client->p->number, request->group, false);
		return;
	}
	if (request->partition != NULL)
		what.partition_hash = qc_wait_partition(request->queue,
												qc_name_at(st, request->partition->name),
												request->partition->name_len);
	qc_wait_list(st, pop->client->p->number, &what);

	/* The group may have been sought since it was looked at. */
	if (qc_waiter(st, pop->client->p->number)->woken && !qc_group_scanning(request->group))
		(void) sim_world_fail(pop->client->p->world, "who finds nothing is woken to look again");
}

/* Choose runs of messages. */
static uint32_t
choose_runs(Pop *pop, QcState *st, QcRun *runs)
{
	QcPopRequest request = {.batch = pop->batch, .max_partitions = 3};
	uint32_t	nruns = 0;

	request.queue = qc_queue_by_id(st, pop->queue);
	if (request.queue == NULL || request.queue->state == QC_QUEUE_DEAD || request.queue->damaged)
		return 0;
	request.group = qc_group_by_name(st, request.queue, (const char *) sim_group_name(pop->group).bytes,
									 sim_group_name(pop->group).len);
	if (request.group == NULL)
		return 0;
	pop->group_id = request.group->id;
	if (pop->partition != 0)
	{
		request.partition = qc_partition_by_id(st, pop->partition);
		if (request.partition == NULL)
			return 0;
	}
	if (qc_pop_choose(st, &request, runs, SIM_POP_MAX, &nruns) > 0)
		return nruns;
	found_nothing(pop, st, &request);
	return 0;
}

/* SimChoose. */
static bool
choose_delivery(void *context, SimProc *p, QcSmallPlan *small)
{
	Pop		   *pop = context;
	QcDeliver	deliver = {.lease = pop->lease, .queue = pop->queue,
		.lease_us = (uint64_t) p->world->config.lease_us};
	QcRun		runs[SIM_POP_MAX];
	uint32_t	nruns = choose_runs(pop, p->server->st, runs);
	QcWriter	w;

	if (nruns == 0 || qc_lease_by_id(p->server->st, pop->lease) != NULL)
		return false;
	deliver.group = pop->group_id;
	w = qc_plan_small_writer(small);
	qc_effect_put(&w, QC_EFFECT_DELIVER, &deliver, nruns);
	for (uint32_t i = 0; i < nruns; i++)
	{
		QcDeliverItem item = {.partition = runs[i].partition, .first = runs[i].first,
			.count = runs[i].count, .attempt = runs[i].attempt};

		qc_effect_put_item(&w, QC_EFFECT_DELIVER, &item);
	}
	qc_plan_small_done(small, &w, 1);
	return true;
}

/* SimDone: note what the lease holds and where that is. */
static void
note_delivery(void *context, SimProc *p)
{
	Pop		   *pop = context;
	QcState    *st = p->server->st;
	const QcLease *lease = qc_lease_by_id(st, pop->lease);

	for (QcSlot *slot = QC_AT(st, QcSlot, lease->slots.head); slot != NULL;
		 slot = QC_AT(st, QcSlot, slot->of_lease.next))
	{
		const QcCursor *cursor = QC_AT(st, QcCursor, slot->cursor);

		assert(pop->nplaces < SIM_POP_MAX);
		sim_place(st, QC_AT(st, QcPartition, cursor->partition), slot->position, slot->attempt,
				  &slot->hint, &pop->places[pop->nplaces++]);
	}
	pop->moment = sim_oracle_pops(p->world->oracle);
	qc_wait_popped(st, p->number, QC_AT(st, QcGroup, lease->group), true);
}

/* The credit with which this transaction's leases will end. */
static bool
take_end_credit(SimClient *client)
{
	if (client->end.plan.credited)
		return true;
	qc_plan_small(&client->end, client->end_buffer, SIM_END_MAX);
	return sim_credit(client->p, &client->end.plan) == QC_OK;
}

static SimHeld *
free_place(SimClient *client)
{
	for (int i = 0; i < SIM_HELD_MAX; i++)
	{
		if (client->held[i].lease == 0)
			return &client->held[i];
	}
	return NULL;
}

/* Read what was delivered and tell the oracle. */
static bool
receive(SimProc *p, const Pop *pop, SimHeld *held)
{
	SimSeen		seen[SIM_POP_MAX];
	uint32_t	messages[SIM_POP_MAX];
	const QcQueue *queue;

	for (uint32_t i = 0; i < pop->nplaces; i++)
	{
		if (sim_read(p, &pop->places[i], &seen[i]))
		{
			seen[i].group = pop->group;
			continue;
		}
		pop->client->failed = true;

		/* Its queue may have been dropped meanwhile, and its files have gone. */
		queue = qc_queue_by_id(p->server->st, pop->queue);
		if (queue != NULL && queue->state != QC_QUEUE_DEAD)
			sim_broken(p, "reading a message");
		return false;
	}
	if (!sim_oracle_popped(p->world->oracle, seen, pop->nplaces, pop->moment, p->world->monotonic,
						   messages, &held->delivery))
		return false;
	held->n = pop->nplaces;
	for (uint32_t i = 0; i < held->n; i++)
		held->spots[i] = (SimSpot)
	{
		messages[i], pop->places[i].partition, pop->places[i].position, pop->places[i].attempt
	};
	return true;
}

/* Take the lease.	While there is nothing to take, others run, at most so many times, or until one of them wakes us. */
static bool
wait_and_take(SimProc *p, Pop *pop, uint32_t patience)
{
	const QcWaiter *waiter = qc_waiter(p->server->st, p->number);
	QcDeliver	nothing = {0};
	size_t		room = qc_effect_size(QC_EFFECT_DELIVER, &nothing, SIM_POP_MAX);
	QcSmallPlan *small = sim_arena_take(&p->arena, sizeof(QcSmallPlan));
	uint8_t    *buffer = sim_arena_take(&p->arena, QC_SMALL_BUFFER(room));
	bool		taken;

	for (;;)
	{
		sim_group_look(p, pop->queue, pop->group);
		pop->may_wait = patience > 0 && !p->server->stopping;
		pop->listed = false;
		qc_plan_small(small, buffer, room);
		small->plan.owner = small->plan.pid = p->number;
		small->plan.needs.nslots = pop->batch;
		small->plan.needs.nleases = 1;
		taken = sim_submit(p, small, choose_delivery, note_delivery, pop);
		if (taken || !pop->listed)
			break;
		while (patience > 0 && !p->server->stopping && !waiter->woken)
		{
			patience--;
			sim_pause(p);
		}
	}
	if (!taken)
		qc_wait_end(p->server->st, p->number);
	pop->seq = small->plan.seq;
	return taken;
}

bool
sim_pop(SimClient *client, uint32_t name, uint32_t group, uint32_t batch, uint64_t partition,
		uint32_t patience)
{
	SimProc    *p = client->p;
	SimHeld    *held = free_place(client);
	uint32_t	number = p->server->queues[name];
	Pop		   *pop;

	if (held == NULL || number == SIM_NONE || !take_end_credit(client))
		return false;
	pop = sim_arena_take(&p->arena, sizeof(Pop));
	pop->client = client;
	pop->queue = p->world->oracle->queues[number].id;
	pop->group = group;
	pop->batch = batch < SIM_POP_MAX ? batch : SIM_POP_MAX;
	pop->partition = partition;
	pop->lease = sim_below(p->world, UINT64_MAX - 1) + 1;
	if (!wait_and_take(p, pop, patience))
	{
		client->failed |= sim_disk_failed(p);
		return false;
	}
	held->lease = pop->lease;
	held->own = true;
	held->name = name;
	held->queue = number;
	held->group = group;
	held->group_id = pop->group_id;
	held->n = 0;
	if (!sim_write(p, pop->seq))
	{
		sim_broken(p, "writing a delivery");
		client->failed = true;
		return false;
	}
	return receive(p, pop, held);
}

/* ---- the end of the transaction ---- */

void
sim_held_refresh(SimProc *p, SimHeld *held)
{
	QcState    *st = p->server->st;
	const QcLease *lease = qc_lease_by_id(st, held->lease);
	uint32_t	n = 0;

	for (uint32_t i = 0; i < held->n && lease != NULL; i++)
	{
		const QcPartition *partition = qc_partition_by_id(st, held->spots[i].partition);

		if (partition != NULL && qc_lease_slot(st, lease, partition, held->spots[i].position) != NULL)
			held->spots[n++] = held->spots[i];
	}
	held->n = n;
	if (lease == NULL)
		held->lease = 0;
}

/* Encode the end of the transaction's leases that still exist; returns their number. */
static uint32_t
put_ends(SimClient *client, QcWriter *w, bool committed)
{
	SimProc    *p = client->p;
	SimOracle  *o = p->world->oracle;
	uint32_t	n = 0;

	for (int i = 0; i < SIM_HELD_MAX; i++)
	{
		SimHeld    *held = &client->held[i];
		QcPopCommit pop_commit = {.lease = held->lease};
		QcRelease	release = {.lease = held->lease, .reason = QC_RELEASE_ABORT};
		const QcLease *lease = qc_lease_by_id(p->server->st, held->lease);

		if (held->lease == 0 || !held->own)
			continue;
		held->own = false;
		if (lease == NULL)
		{
			held->lease = 0;
			continue;
		}
		release.messages = lease->nslots;
		n++;
		if (committed)
		{
			qc_effect_put(w, QC_EFFECT_POP_COMMIT, &pop_commit, 0);
			sim_oracle_lease(o, held->delivery, p->world->monotonic + p->world->config.lease_us);
			continue;
		}
		qc_effect_put(w, QC_EFFECT_RELEASE, &release, 0);
		for (uint32_t k = 0; k < held->n; k++)
			sim_oracle_given_back(o, held->delivery, held->spots[k].message, held->group);
		held->lease = 0;
	}
	return n;
}

void
sim_pops_end(SimClient *client, bool committed)
{
	SimProc    *p = client->p;
	QcWriter	w;
	uint32_t	n;

	if (!client->end.plan.credited)
		return;
	sim_wait_room(p, &client->end.plan);
	w = qc_plan_small_writer(&client->end);
	n = put_ends(client, &w, committed);
	if (n == 0)
	{
		qc_plan_uncredit(p->server->st, &client->end.plan);
		return;
	}
	qc_plan_small_done(&client->end, &w, n);
	sim_append(p, &client->end.plan);
}

/* ---- answers that act at once ---- */

typedef struct Answer
{
	SimHeld    *held;
	int64_t		delay_us;
	uint32_t	from;			/* first of the spots that are given back */
} Answer;

/* The lease when it can be answered by this process. */
static const QcLease *
answerable(const SimProc *p, const SimHeld *held)
{
	const QcLease *lease = qc_lease_by_id(p->server->st, held->lease);

	return lease != NULL && lease->pin_seq == 0 &&
		(lease->owner == 0 || lease->owner == p->number) ? lease : NULL;
}

/* Tell the oracle what a nack gives back: in a partition that is delivered in order everything above, too. */
static void
tell_nack(SimProc *p, const SimHeld *held, const SimSpot *spot)
{
	QcState    *st = p->server->st;
	const QcPartition *partition = qc_partition_by_id(st, spot->partition);
	bool		ordered = partition != NULL && qc_partition_ordered(st, partition);

	for (uint32_t i = 0; i < held->n; i++)
	{
		const SimSpot *other = &held->spots[i];

		if (other == spot || (ordered && other->partition == spot->partition &&
							  other->position > spot->position))
			sim_oracle_given_back(p->world->oracle, held->delivery, other->message, held->group);
	}
}

static bool
choose_nack(void *context, SimProc *p, QcSmallPlan *small)
{
	const Answer *answer = context;
	const SimHeld *held = answer->held;
	QcNack		nack = {.lease = held->lease, .delay_us = (uint64_t) answer->delay_us};
	QcWriter	w;

	if (answerable(p, held) == NULL)
		return false;
	w = qc_plan_small_writer(small);
	qc_effect_put(&w, QC_EFFECT_NACK, &nack, held->n - answer->from);
	for (uint32_t i = answer->from; i < held->n; i++)
	{
		QcNackItem	item = {.partition = held->spots[i].partition,
			.first = held->spots[i].position, .count = 1};

		qc_effect_put_item(&w, QC_EFFECT_NACK, &item);
		tell_nack(p, held, &held->spots[i]);
	}
	qc_plan_small_done(small, &w, 1);
	return true;
}

static bool
choose_renew(void *context, SimProc *p, QcSmallPlan *small)
{
	const Answer *answer = context;
	QcRenew		renew = {.lease = answer->held->lease, .lease_us = (uint64_t) answer->delay_us};
	QcWriter	w;

	if (answerable(p, answer->held) == NULL)
		return false;
	w = qc_plan_small_writer(small);
	qc_effect_put(&w, QC_EFFECT_RENEW, &renew, 0);
	qc_plan_small_done(small, &w, 1);
	return true;
}

static QcSmallPlan *
answer_plan(SimProc *p, size_t room)
{
	QcSmallPlan *small = sim_arena_take(&p->arena, sizeof(QcSmallPlan));

	qc_plan_small(small, sim_arena_take(&p->arena, QC_SMALL_BUFFER(room)), room);
	return small;
}

void
sim_nack(SimClient *client, SimHeld *held)
{
	SimProc    *p = client->p;
	Answer		answer = {.held = held};
	QcNack		nack = {0};
	QcSmallPlan *small = answer_plan(p, qc_effect_size(QC_EFFECT_NACK, &nack, SIM_POP_MAX));

	if (held->n == 0)
		return;
	answer.from = (uint32_t) sim_below(p->world, held->n);
	answer.delay_us = sim_chance(p->world, 50) ? 0 : (int64_t) sim_below(p->world, 100000);
	if (sim_submit(p, small, choose_nack, NULL, &answer) && !sim_write(p, small->plan.seq))
	{
		sim_broken(p, "writing a nack");
		client->failed = true;
	}
	sim_held_refresh(p, held);
}

void
sim_renew(SimClient *client, SimHeld *held)
{
	SimProc    *p = client->p;
	Answer		answer = {.held = held, .delay_us = p->world->config.lease_us * 2};
	QcRenew		renew = {0};
	QcSmallPlan *small = answer_plan(p, qc_effect_size(QC_EFFECT_RENEW, &renew, 0));

	if (!sim_submit(p, small, choose_renew, NULL, &answer))
		sim_held_refresh(p, held);
}
