/*
 * sim_group.c
 *		Clients of a simulated server change consumer groups and purge; pops look at partitions that their group has not looked
 *		at.
 *
 * The steps of src/pg/fn_group.c, fn_purge.c and qlog_group.c.
 */
#include "sim_server.h"

#include "qc_cursor.h"
#include "qc_group.h"
#include "qc_purge.h"

#define POSITION_MAX 30

/* ---- choosing a change ---- */

/* As the core numbers them. */
static const uint8_t starts[] = {
	[SIM_FROM_OLDEST] = QC_START_OLDEST,
	[SIM_FROM_NEW] = QC_START_NEW,
	[SIM_FROM_POSITION] = QC_START_POSITION,
	[SIM_FROM_TIME] = QC_START_TIME
};

/* A time at which there is something to tell apart, if there is one. */
static int64_t
some_time(SimWorld *w, uint32_t queue)
{
	const SimOracle *o = w->oracle;
	uint32_t	from = o->nmessages == 0 ? 0 : (uint32_t) sim_below(w, o->nmessages);

	for (uint32_t i = from; i < o->nmessages; i++)
	{
		if (o->messages[i].queue == queue && o->messages[i].at != 0)
			return o->messages[i].at + (int64_t) sim_below(w, 2);
	}
	return w->now + (int64_t) sim_below(w, 2000) - 1000;
}

/* Where the group shall stand in all partitions. */
static void
choose_start(SimWorld *w, SimChange *change)
{
	change->start = (SimStart) sim_below(w, 4);
	change->partition = SIM_NONE;
	if (change->start == SIM_FROM_POSITION)
		change->start_at = (int64_t) sim_below(w, POSITION_MAX);
	else if (change->start == SIM_FROM_TIME)
		change->start_at = some_time(w, change->queue);
}

/* ... or in one that there is. */
static void
choose_place(SimProc *p, const QcQueue *queue, SimChanging *changing)
{
	SimWorld   *w = p->world;
	SimChange  *change = &changing->change;
	uint32_t	number = (uint32_t) sim_below(w, w->config.partitions);
	QcStr		name = sim_partition_name(number);
	const QcPartition *partition = qc_partition_by_name(p->server->st, queue,
														(const char *) name.bytes, name.len);

	if (partition == NULL)
	{
		number = 0;
		partition = qc_partition_by_id(p->server->st, queue->default_partition_id);
	}
	change->partition = number;
	change->start = sim_chance(w, 30) ? SIM_FROM_NEW : SIM_FROM_POSITION;
	change->start_at = change->start == SIM_FROM_NEW ? INT64_MAX :
		(int64_t) sim_below(w, partition->next + 1);
	changing->item = (QcSeekItem)
	{
		.partition = partition->id, .position = (uint64_t) change->start_at
	};
	changing->nitems = 1;
}

static void
choose_seek(SimProc *p, QcQueue *queue, SimChanging *changing)
{
	SimChange  *change = &changing->change;
	QcSeek	   *seek = &changing->effect.seek;

	change->kind = SIM_SEEK;
	changing->kind = QC_EFFECT_SEEK;
	*seek = (QcSeek)
	{
		.mode = QC_SEEK_SET, .queue = queue->id, .group = change->id
	};
	if (sim_chance(p->world, 50))
	{
		choose_place(p, queue, changing);
		return;
	}
	choose_start(p->world, change);
	seek->mode = QC_SEEK_GROUP;
	seek->start = starts[change->start];
	seek->start_at = change->start_at;
	seek->successor = change->id = queue->next_group++;
}

static void
choose_group(SimProc *p, QcQueue *queue, SimChanging *changing)
{
	SimChange  *change = &changing->change;
	const SimGroup *group = &p->world->oracle->queues[change->queue].groups[change->group];

	change->id = group->id;
	if (!group->there)
	{
		change->kind = SIM_SUBSCRIBE;
		change->id = queue->next_group++;
		choose_start(p->world, change);
		changing->kind = QC_EFFECT_GROUP_CREATE;
		changing->effect.create = (QcGroupCreate)
		{
			.group = change->id, .queue = queue->id, .start = starts[change->start],
			.start_at = change->start_at, .name = sim_group_name(change->group)
		};
	}
	else if (change->group > 0 && sim_chance(p->world, 20))
	{
		change->kind = SIM_UNSUBSCRIBE;
		changing->kind = QC_EFFECT_GROUP_DROP;
		changing->effect.drop = (QcGroupDrop)
		{
			.queue = queue->id, .group = change->id
		};
	}
	else
		choose_seek(p, queue, changing);
}

static void
choose_purge(SimProc *p, const QcQueue *queue, SimChanging *changing)
{
	SimChange  *change = &changing->change;

	change->kind = SIM_PURGE;
	change->partition = SIM_NONE;
	changing->kind = QC_EFFECT_PURGE;
	changing->effect.purge = (QcPurge)
	{
		.queue = queue->id
	};
	if (sim_chance(p->world, 50))
		return;
	change->partition = 0;
	changing->effect.purge.partition = queue->default_partition_id;
}

bool
sim_change_begin(SimProc *p, uint32_t txn, SimChanging *changing)
{
	SimServer  *server = p->server;
	SimWorld   *w = p->world;
	uint32_t	name = (uint32_t) sim_below(w, w->config.names);
	uint32_t	number = server->queues[name];
	QcQueue    *queue = number == SIM_NONE ? NULL :
		qc_queue_by_id(server->st, w->oracle->queues[number].id);

	*changing = (SimChanging)
	{
		.name = name,.change =
		{
		.txn = txn, .queue = number, .group = (uint32_t) sim_below(w, SIM_GROUPS)
		}
	};
	if (queue == NULL || queue->state != QC_QUEUE_LIVE || queue->damaged ||
		server->name_locks[name] != NULL)
		return false;
	if (sim_chance(w, 25))
		choose_purge(p, queue, changing);
	else if (server->group_locks[name][changing->change.group] != NULL)
		return false;
	else
	{
		changing->locked = true;
		server->group_locks[name][changing->change.group] = p;
		choose_group(p, queue, changing);
	}
	changing->staged = true;
	changing->number = sim_oracle_change(w->oracle, &changing->change);
	server->holders[name]++;
	return true;
}

void
sim_change_end(SimProc *p, SimChanging *changing)
{
	if (!changing->staged)
		return;
	p->server->holders[changing->name]--;
	if (changing->locked)
		p->server->group_locks[changing->name][changing->change.group] = NULL;
}

/* ---- looking ---- */

/* Where the group begins in a partition: the first message that was pushed at this time or later. */
static bool
find_position(SimProc *p, uint64_t id, int64_t time, uint64_t *position)
{
	QcState    *st = p->server->st;
	QcPartition *partition = qc_partition_by_id(st, id);
	uint64_t	end = partition == NULL ? 0 : partition->next;
	QcRef		hint = 0;

	if (!sim_write(p, st->seq))
		return false;
	*position = partition == NULL ? 0 : partition->start;
	while (*position < end)
	{
		SimPlace	place;
		SimSeen		seen;

		partition = qc_partition_by_id(st, id);
		if (partition == NULL)
			return false;
		*position = qc_skip_aborted(st, partition, *position);
		if (*position >= end)
			break;
		sim_place(st, partition, *position, 0, &hint, &place);
		if (!sim_read(p, &place, &seen))
			return false;
		if (seen.at >= time)
			break;
		(*position)++;
	}
	return true;
}

/* Log where the group begins in these partitions. */
static void
log_found(SimProc *p, const QcSeek *seek, const QcSeekItem *items, uint32_t n)
{
	size_t		size = qc_effect_size(QC_EFFECT_SEEK, seek, n);
	QcSmallPlan *small = sim_arena_take(&p->arena, sizeof(QcSmallPlan));
	QcWriter	w;

	qc_plan_small(small, sim_arena_take(&p->arena, QC_SMALL_BUFFER(size)), size);
	w = qc_plan_small_writer(small);
	qc_effect_put(&w, QC_EFFECT_SEEK, seek, n);
	for (uint32_t i = 0; i < n; i++)
		qc_effect_put_item(&w, QC_EFFECT_SEEK, &items[i]);
	qc_plan_small_done(small, &w, 1);
	small->plan.needs.nsought = n;
	if (sim_submit(p, small, NULL, NULL, NULL))
		sim_flush(p, small->plan.seq);
}

void
sim_group_look(SimProc *p, uint64_t queue_id, uint32_t group_number)
{
	QcState    *st = p->server->st;
	QcStr		name = sim_group_name(group_number);
	QcQueue    *queue = qc_queue_by_id(st, queue_id);
	QcGroup    *group = queue == NULL || queue->state == QC_QUEUE_DEAD || queue->damaged ? NULL :
		qc_group_by_name(st, queue, (const char *) name.bytes, name.len);
	QcSeek		seek = {.mode = QC_SEEK_FOUND, .queue = queue_id};
	QcSeekItem	items[QC_POP_UNSCANNED_MAX];
	uint64_t	asked[QC_POP_UNSCANNED_MAX];
	uint32_t	n;
	uint32_t	made;
	int64_t		time;

	if (group == NULL || !qc_group_scanning(group) ||
		!qc_mem_reserve(&st->mem, QC_CLASS_CURSOR, QC_POP_UNSCANNED_MAX, QC_URGENCY_DELIVERS))
		return;
	seek.group = group->id;
	time = group->start_at;
	made = qc_group_scan(st, group, asked, &n);
	qc_mem_unreserve(&st->mem, QC_CLASS_CURSOR, QC_POP_UNSCANNED_MAX - made);
	for (uint32_t i = 0; i < n; i++)
	{
		items[i] = (QcSeekItem)
		{
			.partition = asked[i]
		};
		if (!find_position(p, asked[i], time, &items[i].position))
			return;
	}
	if (n > 0)
		log_found(p, &seek, items, n);
}
