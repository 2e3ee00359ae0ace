/*
 * sim_client.c
 *		Clients of a simulated server: transactions that push, pop, acknowledge, reject, create and drop queues, together
 *		with table changes or without, and roll back now and then.
 *
 * The steps of src/pg/qlog_xact.c and qlog_commit.c.
 */
#include "sim_work.h"

#include "qc_frame.h"
#include "qc_lease.h"
#include "qc_order.h"
#include "sim_payload.h"

#include <assert.h>
#include <string.h>

static void
stage_effect(SimWork *work, QcEffectKind kind, const void *fixed, uint32_t nitems, size_t size,
			 QcWriter *w)
{
	uint8_t    *bytes = sim_arena_take(&work->p->arena, size);

	qc_writer_init(w, bytes, size);
	qc_effect_put(w, kind, fixed, nitems);
	work->bytes += size;
	work->ops[work->nops++] = (QcOp)
	{
		.kind = QC_OP_EFFECT, .effect = bytes, .effect_len = size
	};
}

/* Give a queue another definition: its owner tells which, its ACL must come with it. */
static void
stage_alter(SimWork *work, uint32_t number)
{
	SimWorld   *w = work->w;
	QcState    *st = work->server->st;
	const QcQueue *queue = qc_queue_by_id(st, w->oracle->queues[number].id);
	QcQueueAlter alter = {.queue = queue->id, .owner = SIM_OWNER(work->txn),
		.flags = QC_QUEUE_HAS_ACL};
	uint32_t	ngrants = (uint32_t) sim_below(w, 5);
	QcWriter	writer;

	alter.name = sim_queue_name(w->oracle->queues[number].name);

	/* Who dies, and when, is judged by the limit that the queue was made with. */
	alter.options = sim_queue_options(work, w->oracle->queues[number].name, sim_chance(w, 50), w->oracle->queues[number].limit);
	stage_effect(work, QC_EFFECT_QUEUE_ALTER, &alter, ngrants,
				 qc_effect_size(QC_EFFECT_QUEUE_ALTER, &alter, ngrants), &writer);
	for (uint32_t i = 0; i < ngrants; i++)
	{
		QcQueueAlterItem item = {.grantee = i, .grantor = alter.owner, .privileges = ngrants};

		qc_effect_put_item(&writer, QC_EFFECT_QUEUE_ALTER, &item);
	}
	sim_oracle_alter(w->oracle, work->txn, number);
}

/* Create, alter or drop a queue; all need an xid. */
static void
stage_catalog(SimWork *work)
{
	SimWorld   *w = work->w;
	SimServer  *server = work->server;
	uint32_t	name = (uint32_t) sim_below(w, w->config.names);
	QcWriter	writer;

	if (!sim_lock_name(work, name))
		return;
	work->catalog = true;
	if (server->holders[name] > 0)
		return;
	if (server->queues[name] != SIM_NONE && sim_chance(w, 60))
	{
		stage_alter(work, server->queues[name]);
		return;
	}
	if (server->queues[name] != SIM_NONE)
	{
		QcQueueDrop drop = {.queue = w->oracle->queues[server->queues[name]].id};

		work->dropped = server->queues[name];
		sim_oracle_drop(w->oracle, work->txn, work->dropped);
		stage_effect(work, QC_EFFECT_QUEUE_DROP, &drop, 0, qc_effect_size(QC_EFFECT_QUEUE_DROP, &drop, 0),
					 &writer);
		return;
	}
	work->ordered = sim_chance(w, 30);
	work->create = sim_new_queue(work, name, work->ordered);
	work->created = sim_oracle_queue(w->oracle, name, work->create.queue, work->ordered, work->limit,
									 work->txn);
	stage_effect(work, QC_EFFECT_QUEUE_CREATE, &work->create, 0,
				 qc_effect_size(QC_EFFECT_QUEUE_CREATE, &work->create, 0), &writer);
}

/* Change a group, or purge. */
static void
stage_change(SimWork *work)
{
	SimChanging *changing = &work->changing;
	QcWriter	writer;

	if (!sim_change_begin(work->p, work->txn, changing))
		return;
	stage_effect(work, changing->kind, &changing->effect, changing->nitems,
				 qc_effect_size(changing->kind, &changing->effect, changing->nitems), &writer);
	for (uint32_t i = 0; i < changing->nitems; i++)
		qc_effect_put_item(&writer, changing->kind, &changing->item);
}

/* SimDone: what an ordered plan does has happened. */
static void
change_happens(void *context, SimProc *p)
{
	const SimWork *work = context;

	if (work->changing.staged)
		sim_oracle_happens(p->world->oracle, work->changing.number);
}

/* ---- answers ---- */

/* The dead lane of a group, made when it is not there and nobody changes the group; 0 = not to be had. */
static uint64_t
dead_lane(SimWork *work, const SimHeld *held)
{
	uint32_t	name = held->name;
	const QcQueue *queue = sim_find_queue(work, name);
	QcPartitionCreate create = {.lane = QC_LANE_DEAD, .group = held->group_id,
		.name = {(const uint8_t *) "*", 1}};
	const QcGroup *group;
	uint64_t	lane = 0;

	if (queue == NULL || queue->state != QC_QUEUE_LIVE)
		return 0;
	group = qc_group_by_id(work->server->st, queue, held->group_id);
	if (group == NULL || group->state != QC_GROUP_LIVE)
		return 0;
	if (group->dead_partition != 0)
		return group->dead_partition;
	if (work->server->group_locks[name][held->group] != NULL)
		return 0;
	work->server->group_locks[name][held->group] = work->p;
	create.queue = queue->id;
	if (sim_make_partition(work, name, &create))
		lane = create.partition;
	work->server->group_locks[name][held->group] = NULL;
	return lane;
}

/* Stage the copy of a rejected message. */
static void
stage_dead(SimWork *work, const SimReply *reply, uint64_t lane, uint64_t log)
{
	SimOracle  *o = work->w->oracle;
	const SimMessage *m = &o->messages[reply->spot.message];
	uint32_t	size = SIM_PAYLOAD_MIN + 20;
	uint8_t    *data = sim_arena_take(&work->p->arena, size);
	uint8_t    *bytes = sim_arena_take(&work->p->arena, size + 64);
	uint8_t    *hash = sim_arena_take(&work->p->arena, QC_HASH_SIZE);
	QcMessage	message = {.flags = QC_FRAME_BINARY, .data = data, .data_len = size};
	QcWriter	frame;

	/* The copy tells which message it is; its other bytes do not matter here. */
	sim_payload_put(data, size, m->txn, reply->spot.message - o->txns[m->txn].first_message, false);
	memcpy(message.id, data, QC_ID_SIZE);
	qc_writer_init(&frame, bytes, size + 64);
	qc_frame_put(&frame, &message);
	qc_frame_hash(&message, hash);
	work->bytes += frame.len;
	work->ops[work->nops] = (QcOp)
	{
		.kind = QC_OP_DEAD, .partition = lane, .log = log, .count = 1, .frames = bytes,
		.frames_len = frame.len, .hashes = hash
	};
	work->ops[work->nops++].dead = (QcDead)
	{
		.lease = reply->held->lease, .group = reply->held->group_id, .partition = reply->spot.partition,
		.position = reply->spot.position, .attempt = reply->spot.attempt,
		.cause = QC_DEAD_REJECTED
	};
}

/* Acknowledge messages of a lease. */
static void
stage_acks(SimWork *work, SimHeld *held, bool all)
{
	QcAck		ack = {.lease = held->lease, .group = held->group_id};
	uint32_t	first = work->nreplies;
	QcWriter	writer;

	for (uint32_t i = 0; i < held->n; i++)
	{
		if (all || sim_chance(work->w, 50))
			work->replies[work->nreplies++] = (SimReply)
		{
			held, held->spots[i]
		};
	}
	if (work->nreplies == first)
		return;
	stage_effect(work, QC_EFFECT_ACK, &ack, work->nreplies - first,
				 qc_effect_size(QC_EFFECT_ACK, &ack, work->nreplies - first), &writer);
	for (uint32_t i = first; i < work->nreplies; i++)
	{
		const SimSpot *spot = &work->replies[i].spot;
		QcAckItem	item = {.partition = spot->partition, .first = spot->position, .count = 1};

		sim_oracle_answer(work->w->oracle, work->txn, spot->message, held->group, false);
		qc_effect_put_item(&writer, QC_EFFECT_ACK, &item);
	}
}

/* Reject some messages of a lease. */
static void
stage_rejects(SimWork *work, SimHeld *held)
{
	uint64_t	lane = dead_lane(work, held);
	const QcQueue *queue = sim_find_queue(work, held->name);

	/* Others ran while the lane was made. */
	sim_held_refresh(work->p, held);
	if (lane == 0 || queue == NULL || held->lease == 0 ||
		work->server->queues[held->name] != held->queue)
		return;
	for (uint32_t i = 0; i < held->n; i++)
	{
		SimReply   *reply = &work->replies[work->nreplies];

		if (sim_chance(work->w, 50))
			continue;
		*reply = (SimReply)
		{
			held, held->spots[i]
		};
		work->nreplies++;
		sim_oracle_answer(work->w->oracle, work->txn, reply->spot.message, held->group, true);
		stage_dead(work, reply, lane, queue->log_id);
	}
}

/* Answer with this transaction. */
static void
stage_replies(SimWork *work, SimHeld *held)
{
	const QcQueue *queue = sim_find_queue(work, held->name);

	if (queue == NULL || queue->state != QC_QUEUE_LIVE ||
		work->server->queues[held->name] != held->queue)
		return;
	if (sim_chance(work->w, 15))
		stage_rejects(work, held);
	else
		stage_acks(work, held, sim_chance(work->w, 60));
}

/* Something with the leases that this client has: answer now, or with the transaction. */
static void
stage_leases(SimWork *work)
{
	SimWorld   *w = work->w;

	if (sim_chance(w, w->config.pop))
		(void) sim_pop(work->client, (uint32_t) sim_below(w, w->config.names),
					   w->config.groups == 0 ? 0 : (uint32_t) sim_below(w, SIM_GROUPS), 1 + (uint32_t) sim_below(w, SIM_POP_MAX), 0,
					   sim_chance(w, 30) ? (uint32_t) sim_below(w, SIM_PATIENCE_MAX) : 0);
	for (int i = 0; i < SIM_HELD_MAX; i++)
	{
		SimHeld    *held = &work->client->held[i];

		if (held->lease == 0)
			continue;
		sim_held_refresh(work->p, held);
		if (held->lease == 0 || held->n == 0)
			held->lease = 0;
		else if (sim_chance(w, 50))
			stage_replies(work, held);
		else if (sim_chance(w, 15))
			sim_nack(work->client, held);
		else if (sim_chance(w, 10))
			sim_renew(work->client, held);
	}
}

/* ---- commit ---- */

/* Are all messages that it answers still this client's?	Then nobody else can answer them until it has ended. */
static bool
pin_leases(SimWork *work)
{
	QcState    *st = work->server->st;

	for (uint32_t i = 0; i < work->nreplies; i++)
	{
		const SimReply *reply = &work->replies[i];
		QcLease    *lease = qc_lease_by_id(st, reply->held->lease);
		const QcPartition *partition = qc_partition_by_id(st, reply->spot.partition);
		bool		mine = work->npinned > 0 &&
			work->pinned[work->npinned - 1] == reply->held->lease;

		if (lease == NULL || partition == NULL || (!mine && lease->pin_seq != 0) ||
			(lease->owner != 0 && lease->owner != work->p->number) ||
			qc_lease_slot(st, lease, partition, reply->spot.position) == NULL)
			return false;
		if (mine)
			continue;
		qc_lease_pin(st, lease, QC_PIN_PROMISED);
		work->pinned[work->npinned++] = lease->id;
	}
	return true;
}

static void
unpin_leases(SimWork *work)
{
	for (uint32_t i = 0; i < work->npinned; i++)
	{
		QcLease    *lease = qc_lease_by_id(work->server->st, work->pinned[i]);

		if (lease != NULL && lease->pin_seq == QC_PIN_PROMISED)
			qc_lease_unpin(work->server->st, lease, work->w->monotonic);
	}
	work->npinned = 0;
}

static uint16_t
entry_flags(const SimWork *work)
{
	if (!work->joint)
		return 0;
	return work->catalog || work->bytes <= work->w->config.carry_limit ? QC_ENTRY_CARRIED :
		QC_ENTRY_REFERENCED;
}

/* As refuse_when_full of the shell: new messages and queues wait until a checkpoint can be stored. */
static bool
is_refused(const SimWork *work)
{
	return work->server->store_full &&
		(work->plan.nappends > 0 || work->plan.needs.nqueues > 0 || work->plan.needs.npartitions > 0);
}

/* The credit for the decision of an ordered plan. */
static bool
take_order_credit(SimWork *work)
{
	size_t		size = qc_order_size(&work->plan, SIM_PROCS);

	qc_plan_small(&work->order, sim_arena_take(&work->p->arena, QC_SMALL_BUFFER(size)), size);
	return sim_credit(work->p, &work->order.plan) == QC_OK;
}

/* Everything that can fail. */
static bool
prepare(SimWork *work)
{
	SimProc    *p = work->p;

	if (qc_plan_build(&work->plan, work->ops, work->nops, work->xid, entry_flags(work),
					  work->w->config.segment, sim_arena_alloc, &p->arena, &p->err) != QC_OK)
		return false;
	work->plan.pid = p->number;
	if (is_refused(work))
		return false;
	if (work->create.queue != 0)
	{
		if (!sim_make_log(work->p, work->create.log))
			return false;
		work->log_made = true;
	}
	if (!pin_leases(work))
		return false;
	if (work->joint && sim_confirm_credit(p) != QC_OK)
		return false;
	if (work->plan.ordered && !take_order_credit(work))
		return false;
	if (sim_credit(p, &work->plan) != QC_OK)
		return false;
	work->planned = true;
	return true;
}

static bool
pre_commit(SimWork *work)
{
	bool		good = prepare(work);

	work->w->totals.refused += !good && (work->server->store_full || sim_disk_failed(work->p));
	return good;
}

static void
rollback(SimWork *work)
{
	QcState    *st = work->server->st;

	sim_oracle_aborted(work->w->oracle, work->txn);
	if (work->planned && work->plan.seq != 0)
		sim_settle(work->p, &work->plan, false, 0);
	else if (work->planned)
		qc_plan_uncredit(st, &work->plan);
	if (work->order.plan.credited)
		qc_plan_uncredit(st, &work->order.plan);
	unpin_leases(work);
	if (work->log_made && qc_log_by_id(st, work->create.log)->nqueues == 0)
		qc_log_abandon(st, qc_log_by_id(st, work->create.log));
	if (work->created != SIM_NONE)
		work->w->oracle->queues[work->created].gone = true;
	sim_pops_end(work->client, false);
}

/* The catalog as others see it from now on. */
static void
publish_catalog(SimWork *work)
{
	if (work->created != SIM_NONE)
		work->server->queues[work->name] = work->created;
	else if (work->dropped != SIM_NONE)
		work->server->queues[work->name] = SIM_NONE;
}

/* PostgreSQL's commit record, then ours. */
static void
commit_joint(SimWork *work)
{
	SimProc    *p = work->p;
	SimWal	   *wal = &work->w->wal;
	uint64_t	lsn;

	sim_pause(p);
	p->delay = true;
	lsn = sim_wal_insert(wal, SIM_WAL_COMMIT, 0, work->xid, work->txn, NULL, 0);

	/*
	 * A decision is not logged before the commit record is durable; nor does a name come free
	 * before, which a queue that outlives the crash would take.
	 */
	if (!work->weak || work->plan.ordered || work->catalog)
		sim_wal_flush_to(p, lsn);
	p->delay = false;
	sim_pause(p);
	sim_oracle_visible(work->w->oracle, work->txn);
	sim_pause(p);
	if (work->planned && work->plan.ordered)
		sim_settle_in_order(p, &work->plan, lsn, &work->order, change_happens, work);
	else if (work->planned)
		sim_settle(p, &work->plan, true, lsn);
}

static void
commit_solo(SimWork *work)
{
	SimProc    *p = work->p;

	if (!work->planned)
		return;
	sim_append(p, &work->plan);
	if (!work->weak)
		sim_flush(p, work->plan.seq);
	sim_settle(p, &work->plan, true, 0);
}

static void
commit(SimWork *work)
{
	SimOracle  *o = work->w->oracle;

	if (work->joint)
		commit_joint(work);
	else
		commit_solo(work);
	publish_catalog(work);
	sim_oracle_committed(o, work->txn, !work->weak, !work->joint && work->planned);
	sim_pops_end(work->client, true);
}

/* From PRE_COMMIT to the end. */
static void
finish(SimWork *work)
{
	SimWorld   *w = work->w;

	if (sim_chance(w, w->config.rollback / 2) || work->client->failed ||
		(work->nops > 0 && !pre_commit(work)))
	{
		rollback(work);
		return;
	}
	sim_oracle_committing(w->oracle, work->txn);
	if (work->planned && work->joint)
		sim_append_in_wal(work->p, &work->plan);
	if (sim_chance(w, w->config.rollback / 2))
		rollback(work);
	else
		commit(work);
}

static SimWork *
begin(SimClient *client, bool joint, bool weak)
{
	SimProc    *p = client->p;
	SimWorld   *w = p->world;
	SimWork    *work = sim_arena_take(&p->arena, sizeof(SimWork));

	work->client = client;
	client->failed = false;
	work->p = p;
	work->server = p->server;
	work->w = w;
	work->name = work->created = work->dropped = SIM_NONE;
	work->joint = joint;
	work->weak = weak;
	work->txn = sim_oracle_begin(w->oracle, joint);
	p->vxid = ++p->server->next_vxid;
	if (joint)
		work->xid = w->wal.next_xid++;
	return work;
}

static void
transaction(SimClient *client)
{
	SimProc    *p = client->p;
	SimWorld   *w = p->world;
	bool		catalog = sim_chance(w, w->config.catalog);
	bool		change = sim_chance(w, w->config.groups);
	SimWork    *work = begin(client, catalog || change || sim_chance(w, w->config.joint),
							 sim_chance(w, w->config.weak));

	if (work->joint && sim_chance(w, 30))
		(void) sim_wal_insert(&w->wal, SIM_WAL_ROW, 0, work->xid, 0, NULL, 0);
	if (catalog)
		stage_catalog(work);
	stage_leases(work);
	if (change)
		stage_change(work);
	if (sim_chance(w, w->config.delay / 4))
		sim_cancel(p, (uint32_t) sim_below(w, w->config.names));
	sim_stage_pushes(work);
	sim_pause(p);
	finish(work);
	sim_change_end(p, &work->changing);
	sim_unlock_name(work);
}

bool
sim_acknowledge(SimClient *client)
{
	SimWork    *work = begin(client, false, false);

	for (int i = 0; i < SIM_HELD_MAX; i++)
	{
		if (client->held[i].lease != 0)
			stage_acks(work, &client->held[i], true);
	}
	if (work->nops == 0 || !pre_commit(work))
	{
		rollback(work);
		return false;
	}
	sim_oracle_committing(work->w->oracle, work->txn);
	commit(work);
	return true;
}

bool
sim_push(SimClient *client, uint32_t name)
{
	SimWork    *work = begin(client, false, false);
	SimTarget	target;

	if ((work->server->queues[name] == SIM_NONE && !sim_auto_create(work, name)) ||
		!sim_find_partition(work, name, 0, &target))
	{
		rollback(work);
		return false;
	}
	sim_stage_push(work, &target);
	if (!pre_commit(work))
	{
		rollback(work);
		return false;
	}
	sim_oracle_committing(work->w->oracle, work->txn);
	commit(work);
	return true;
}

void
sim_holder_main(SimProc *p)
{
	SimWorld   *w = p->world;
	SimClient	client;

	memset(&client, 0, sizeof(client));
	client.p = p;
	while (!p->server->stopping && !sim_world_failed(w))
	{
		sim_arena_reset(&p->arena);
		client.failed = false;
		if (sim_below(w, 300) == 0)
			(void) sim_pop(&client, (uint32_t) sim_below(w, w->config.names), 0, 1, 0, 0);
		sim_pops_end(&client, true);
		for (int i = 0; i < SIM_HELD_MAX; i++)
		{
			if (client.held[i].lease != 0 && sim_below(w, 40) == 0)
				sim_renew(&client, &client.held[i]);
		}
		if (sim_below(w, 3000) == 0)
			(void) sim_acknowledge(&client);
		sim_pause(p);
	}
	sim_confirm_release(p);
}

void
sim_client_main(SimProc *p)
{
	SimClient	client;

	memset(&client, 0, sizeof(client));
	client.p = p;
	while (!p->server->stopping && !sim_world_failed(p->world))
	{
		sim_arena_reset(&p->arena);
		if (sim_chance(p->world, p->world->config.stranger))
			sim_stranger(p, sim_chance(p->world, 70));
		else
			transaction(&client);
		do
			sim_pause(p);
		while (sim_below(p->world, p->world->config.think + 1) > 0 && !p->server->stopping);
	}
	sim_confirm_release(p);
}
