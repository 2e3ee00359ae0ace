/*
 * test_group_model.c
 *		Random work of consumer groups on the state machine, against a model without cleverness (group_model.h).
 *
 * Pushes, commits and rollbacks in any order, subscriptions, seeks, purges, drops, deliveries and answers; checkpoints; and
 * crashes, after which the checkpoint and what was logged behind it must give the state of the model again, entries that
 * were not decided being decided by a coin.  What fails names its seed: run the program with it.
 */
#include "group_compare.h"
#include "group_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qc_group.h"
#include "qc_order.h"
#include "qc_purge.h"

#define SEEDS		150
#define STEPS		500
#define OPENS		6
#define LEASES		12

typedef enum Change
{
	CHANGE_NONE,
	CHANGE_BEGIN,				/* subscribe, or seek of the whole group: begins under this id */
	CHANGE_SEEK,
	CHANGE_DROP,
	CHANGE_PURGE
} Change;

/* An entry that is not settled, and what the model makes of it then. */
typedef struct Open
{
	bool		used;
	QcPlan		plan;
	QcRef		open;
	uint64_t	seq;			/* 0 = only credited */
	int			npushes;
	int			pushed[3];
	uint64_t	xid;
	Change		change;
	int			group;
	uint64_t	id;
	uint8_t		start;
	int64_t		start_at;
	int			partition;
	uint64_t	lease;			/* what it acknowledges */
	uint64_t	first;
	uint32_t	count;
} Open;

typedef struct Held
{
	uint64_t	id;				/* 0 = free */
	int			group;
	uint64_t	group_id;
	int			partition;
	uint64_t	first;
	uint32_t	count;
	bool		answered;		/* by an entry that is not settled */
} Held;

static Machine m;
static Model model;
static Open opens[OPENS];
static Held held[LEASES];
static GroupLog journal;
static uint32_t random_state;
static uint32_t seed;
static uint64_t next_lease;
static uint64_t next_xid;
static bool good;

static uint32_t
draw(uint32_t n)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % n;
}

/* Complain once, with the seed. */
static bool
expect(const char *what, uint64_t actual, uint64_t expected)
{
	if (actual == expected || !good)
		return actual == expected;
	printf("# seed %u, seq %llu: %s is %llu instead of %llu\n", seed,
		   (unsigned long long) m.st->seq, what, (unsigned long long) actual,
		   (unsigned long long) expected);
	return good = false;
}

static QcPartition *
partition_at(int partition)
{
	return qc_partition_by_id(m.st, group_partition_id(partition));
}

static QcQueue *
queue(void)
{
	return qc_queue_by_id(m.st, 1);
}

/* ---- logging ---- */

static void
log_now(QcPlan *plan)
{
	group_log_credit(&journal, plan);
	group_log_reserve(&journal, plan);
}

/* Log one immediate effect. */
static void
log_effect(QcEffectKind kind, const void *fixed, const void *items, size_t item_size, uint32_t n,
		   uint32_t slots)
{
	QcPlan		plan;

	machine_op_effect(&m, kind, fixed, items, item_size, n);
	group_log_build(&journal, &plan, 0, true);
	plan.needs.nslots = slots;
	plan.needs.nleases = kind == QC_EFFECT_DELIVER;
	log_now(&plan);
}

static void
compare(bool whole)
{
	GroupFault	fault = group_compare(m.st, &model, whole);

	if (fault.what != NULL)
		(void) expect(fault.what, fault.actual, fault.expected);
	else if (journal.fault != NULL)
		(void) expect(journal.fault, 1, 0);
}

/* ---- settling ---- */

/* Joint entries that nobody has decided: a purge spares their messages. */
static void
purge_model(int partition)
{
	uint32_t	kept[GROUP_LOG_MAX];
	uint32_t	n = 0;

	for (QcOpen *open = QC_AT(m.st, QcOpen, m.st->opens.head); open != NULL;
		 open = QC_AT(m.st, QcOpen, open->all.next))
	{
		if (open->xid != 0 && open->decided == 0)
			kept[n++] = (uint32_t) open->seq;
	}
	model_purge(&model, partition, kept, n);
}

/* What a settled entry means to the model; it is still open in the state. */
static void
settle_model(const Open *o, bool committed)
{
	if (committed && o->change == CHANGE_PURGE)
		purge_model(o->partition);
	model_settle(&model, (uint32_t) o->seq, committed);
	for (uint32_t i = 0; committed && o->lease != 0 && i < o->count; i++)
		model_done(&model, o->group, o->partition, o->first + i, o->lease);
	if (!committed)
		return;
	if (o->change == CHANGE_BEGIN)
		model_begin(&model, o->group, o->id, o->start, o->start_at);
	else if (o->change == CHANGE_SEEK)
		model_seek(&model, o->group, o->partition, o->first);
	else if (o->change == CHANGE_DROP)
		model_drop(&model, o->group);
}

/* Leases that answer, and those of groups that have gone, are held no more. */
static void
forget_held(void)
{
	for (int i = 0; i < LEASES; i++)
	{
		const QcLease *lease = held[i].id == 0 ? NULL : qc_lease_by_id(m.st, held[i].id);

		if (lease == NULL || lease->nslots == 0)
			held[i].id = 0;
	}
}

static void
end_open(Open *o)
{
	o->used = false;
	for (int i = 0; i < LEASES; i++)
	{
		if (held[i].id == o->lease)
			held[i].answered = false;
	}
	forget_held();
}

/* The commit of a transaction that changes groups logs its decision. */
static void
settle_in_order(Open *o)
{
	size_t		size = qc_order_size(&o->plan, OPENS + 1);
	QcSmallPlan *small = group_log_take(&journal, sizeof(*small));
	QcWriter	w;

	qc_plan_small(small, group_log_take(&journal, QC_SMALL_BUFFER(size)), size);
	group_log_credit(&journal, &small->plan);
	w = qc_plan_small_writer(small);
	qc_plan_small_done(small, &w, qc_order_put(m.st, &o->plan, 1, m.st->seq, &w));
	group_log_reserve(&journal, &small->plan);
}

static void
settle(Open *o, bool committed)
{
	settle_model(o, committed);
	if (committed && o->plan.ordered)
		settle_in_order(o);
	else
		qc_open_settle(m.st, QC_AT(m.st, QcOpen, o->open), committed, committed ? m.st->seq : 0,
					   m.monotonic);
	end_open(o);
}

/* Decisions of joint entries are logged later, by somebody else. */
static void
log_decisions(void)
{
	QcSmallPlan *small = group_log_take(&journal, sizeof(*small));
	size_t		size = qc_effect_size(QC_EFFECT_DECISION, NULL, 100);
	QcWriter	w;

	qc_plan_small(small, group_log_take(&journal, QC_SMALL_BUFFER(size)), size);
	group_log_credit(&journal, &small->plan);
	w = qc_plan_small_writer(small);
	if (qc_open_decisions(m.st, 1, UINT64_MAX, 100, &w) == 0)
	{
		qc_plan_uncredit(m.st, &small->plan);
		return;
	}
	qc_plan_small_done(small, &w, 1);
	group_log_reserve(&journal, &small->plan);
}

/* ---- work ---- */

static Open *
free_open(void)
{
	for (int i = 0; i < OPENS; i++)
	{
		if (!opens[i].used)
		{
			memset(&opens[i], 0, sizeof(opens[i]));
			return &opens[i];
		}
	}
	return NULL;
}

/* The second half of logging the entry of a transaction. */
static void
reserve_open(Open *o)
{
	group_log_reserve(&journal, &o->plan);
	o->open = o->plan.open;
	o->seq = o->plan.seq;
	for (int i = 0; i < o->npushes; i++)
		model_push(&model, o->pushed[i], 2, (uint32_t) o->seq, m.now);
}

/* Take the credit of a transaction's entry; it is reserved now or by a later step, and settled by one after that. */
static void
begin_open(Open *o, bool joint)
{
	o->xid = joint ? next_xid++ : 0;
	group_log_build(&journal, &o->plan, o->xid, false);
	group_log_credit(&journal, &o->plan);
	o->used = true;
	if (draw(4) > 0)
		reserve_open(o);
}

/* Two messages for a partition. */
static void
add_push(Open *o)
{
	int			k = (int) draw(MODEL_PARTITIONS);

	if (model.partitions[k].next + 6 * OPENS > MODEL_MESSAGES)
		return;
	machine_op_push(&m, group_partition_id(k), 1, 2);
	o->pushed[o->npushes++] = k;
}

static void
push(void)
{
	Open	   *o = free_open();
	uint32_t	n = 1 + draw(3);

	if (o == NULL)
		return;
	while (n-- > 0)
		add_push(o);
	if (o->npushes > 0)
		begin_open(o, draw(2) == 0);
}

/* Log the entry of a transaction that changes groups, now and then with messages of its own. */
static void
begin_change(Open *o)
{
	if (draw(3) == 0)
		add_push(o);
	begin_open(o, true);
}

/* A group that no open entry changes; alive or not. */
static int
pick_group(bool alive)
{
	int			g = (int) draw(MODEL_GROUPS);

	if (model.groups[g].alive != alive)
		return -1;
	for (int i = 0; i < OPENS; i++)
	{
		if (opens[i].used && opens[i].change != CHANGE_NONE && opens[i].change != CHANGE_PURGE &&
			opens[i].group == g)
			return -1;
	}
	return g;
}

/* Somewhere to stand. */
static void
pick_place(Open *o)
{
	o->start = (uint8_t) draw(4);
	if (o->start == QC_START_TIME)
		o->start_at = m.now - (int64_t) draw(1500);
	else if (o->start == QC_START_POSITION)
		o->start_at = (int64_t) draw(60);
}

static void
subscribe(bool at_once)
{
	int			g = pick_group(false);
	Open	   *o = free_open();
	char		name[16];
	QcGroupCreate create = {.queue = 1, .group = queue()->next_group};

	if (o == NULL || g < 0)
		return;
	queue()->next_group++;
	pick_place(o);
	create.start = o->start;
	create.start_at = o->start_at;
	create.name.bytes = (const uint8_t *) name;
	create.name.len = (uint16_t) snprintf(name, sizeof(name), "g%d", g);
	o->change = CHANGE_BEGIN;
	o->group = g;
	o->id = create.group;
	if (at_once)
	{
		log_effect(QC_EFFECT_GROUP_CREATE, &create, NULL, 0, 0, 0);
		model_begin(&model, g, create.group, o->start, o->start_at);
		return;
	}
	machine_op_effect(&m, QC_EFFECT_GROUP_CREATE, &create, NULL, 0, 0);
	begin_change(o);
}

static void
seek(void)
{
	int			g = pick_group(true);
	Open	   *o = free_open();
	QcSeek		effect = {.queue = 1};
	QcSeekItem	item = {0};

	if (o == NULL || g < 0)
		return;
	o->group = g;
	effect.group = model.groups[g].id;
	if (draw(2) == 0)
	{
		pick_place(o);
		o->change = CHANGE_BEGIN;
		o->id = effect.successor = queue()->next_group++;
		effect.mode = QC_SEEK_GROUP;
		effect.start = o->start;
		effect.start_at = o->start_at;
		machine_op_effect(&m, QC_EFFECT_SEEK, &effect, NULL, 0, 0);
	}
	else
	{
		o->change = CHANGE_SEEK;
		o->partition = (int) draw(MODEL_PARTITIONS);
		o->first = draw(3) == 0 ? INT64_MAX : draw(60);
		effect.mode = QC_SEEK_SET;
		item.partition = group_partition_id(o->partition);
		item.position = o->first;
		machine_op_effect(&m, QC_EFFECT_SEEK, &effect, &item, sizeof(item), 1);
	}
	begin_change(o);
}

static void
drop(void)
{
	int			g = pick_group(true);
	Open	   *o = free_open();
	QcGroupDrop effect = {.queue = 1};

	if (o == NULL || g < 0)
		return;
	effect.group = model.groups[g].id;
	o->change = CHANGE_DROP;
	o->group = g;
	machine_op_effect(&m, QC_EFFECT_GROUP_DROP, &effect, NULL, 0, 0);
	begin_change(o);
}

static void
purge(void)
{
	Open	   *o = free_open();
	QcPurge		effect = {.queue = 1};

	if (o == NULL)
		return;
	o->change = CHANGE_PURGE;
	o->partition = draw(2) == 0 ? -1 : (int) draw(MODEL_PARTITIONS);
	effect.partition = o->partition < 0 ? 0 : group_partition_id(o->partition);
	machine_op_effect(&m, QC_EFFECT_PURGE, &effect, NULL, 0, 0);

	begin_change(o);
}

/* Let the group look at what it has not looked at, as pops do. */
static void
look(int g)
{
	uint64_t	asked[QC_POP_UNSCANNED_MAX];
	QcSeekItem	items[QC_POP_UNSCANNED_MAX];
	QcSeek		effect = {.mode = QC_SEEK_FOUND, .queue = 1, .group = model.groups[g].id};
	QcGroup    *group = qc_group_by_id(m.st, queue(), effect.group);
	uint32_t	nasked;
	uint32_t	made;

	if (!qc_group_scanning(group))
		return;
	(void) qc_mem_reserve(&m.st->mem, QC_CLASS_CURSOR, QC_POP_UNSCANNED_MAX, QC_URGENCY_DELIVERS);
	made = qc_group_scan(m.st, group, asked, &nasked);
	qc_mem_unreserve(&m.st->mem, QC_CLASS_CURSOR, QC_POP_UNSCANNED_MAX - made);
	for (uint32_t i = 0; i < nasked; i++)
	{
		items[i].partition = asked[i];
		for (int k = 0; k < MODEL_PARTITIONS; k++)
		{
			if (group_partition_id(k) == asked[i])
				items[i].position = model_place(&model, k, QC_START_TIME, group->start_at);
		}
	}
	if (nasked > 0)
		log_effect(QC_EFFECT_SEEK, &effect, items, sizeof(items[0]), nasked, 0);
}

static int
partition_number(uint64_t id)
{
	int			k = 0;

	while (group_partition_id(k) != id)
		k++;
	return k;
}

static Held *
free_held(void)
{
	for (int i = 0; i < LEASES; i++)
	{
		if (held[i].id == 0)
			return &held[i];
	}
	return NULL;
}

/* Pop, from one partition or any. */
static void
pop(void)
{
	int			g = pick_group(true);
	Held	   *h = free_held();
	QcDeliver	deliver = {.queue = 1, .lease_us = 1000};
	QcPopRequest request = {.queue = queue(), .batch = 1 + draw(4), .max_partitions = 1};
	QcRun		runs[16];
	QcDeliverItem items[16];
	uint32_t	nruns;
	uint32_t	n;

	if (g < 0 || h == NULL)
		return;
	look(g);
	deliver.group = model.groups[g].id;
	request.group = qc_group_by_id(m.st, queue(), deliver.group);
	if (draw(3) == 0)
		request.partition = partition_at((int) draw(MODEL_PARTITIONS));
	n = qc_pop_choose(m.st, &request, runs, 16, &nruns);
	if (n == 0)
	{
		if (request.partition == NULL && !qc_group_scanning(request.group))
			(void) expect("work that a pop does not find", model_has_work(&model, g), false);
		return;
	}
	deliver.lease = ++next_lease;
	for (uint32_t i = 0; i < nruns; i++)
		items[i] = (QcDeliverItem)
	{
		.partition = runs[i].partition, .first = runs[i].first, .count = runs[i].count,
		.attempt = runs[i].attempt
	};
	log_effect(QC_EFFECT_DELIVER, &deliver, items, sizeof(items[0]), nruns, n);
	for (uint32_t i = 0; i < nruns && good; i++)
	{
		for (uint32_t k = 0; k < runs[i].count; k++)
			(void) expect("a delivery that may be",
						  model_deliver(&model, g, partition_number(runs[i].partition),
										runs[i].first + k, runs[i].attempt, deliver.lease), true);
	}

	/* answers are about its last run */
	*h = (Held)
	{
		deliver.lease, g, deliver.group, partition_number(items[nruns - 1].partition),
		items[nruns - 1].first, items[nruns - 1].count, false
	};
}

static Held *
pick_held(void)
{
	Held	   *h = &held[draw(LEASES)];

	return h->id == 0 || h->answered ? NULL : h;
}

static void
ack(void)
{
	Held	   *h = pick_held();
	Open	   *o = free_open();
	QcAck		effect = {0};
	QcAckItem	item;

	if (h == NULL || o == NULL)
		return;
	effect.lease = h->id;
	effect.group = h->group_id;
	item = (QcAckItem)
	{
		.partition = group_partition_id(h->partition), .first = h->first, .count = h->count
	};
	machine_op_effect(&m, QC_EFFECT_ACK, &effect, &item, sizeof(item), 1);
	o->group = h->group;
	o->partition = h->partition;
	o->first = h->first;
	o->count = h->count;
	o->lease = h->id;
	h->answered = true;
	begin_open(o, draw(2) == 0);
}

static void
give_back(void)
{
	Held	   *h = pick_held();
	QcRelease	effect = {.reason = QC_RELEASE_ABORT};

	if (h == NULL)
		return;
	effect.lease = h->id;
	effect.messages = qc_lease_by_id(m.st, h->id)->nslots;
	log_effect(QC_EFFECT_RELEASE, &effect, NULL, 0, 0, 0);
	model_give_back(&model, h->group, effect.lease);
	forget_held();
}

/* A message that came back too often is dropped, as by the worker that does so. */
static void
bury(void)
{
	for (QcRef ref = m.st->dying.head; ref != 0; ref = QC_AT(m.st, QcSlot, ref)->of_lease.next)
	{
		const QcSlot *slot = QC_AT(m.st, QcSlot, ref);
		const QcCursor *cursor = QC_AT(m.st, QcCursor, slot->cursor);
		const QcGroup *group = QC_AT(m.st, QcGroup, cursor->group);
		const QcPartition *partition = QC_AT(m.st, QcPartition, cursor->partition);
		QcDead		effect = {.group = group->id, .partition = partition->id,
			.position = slot->position, .attempt = slot->attempt};
		int			g = 0;

		if (group->state != QC_GROUP_LIVE || qc_partition_stale(m.st, partition))
			continue;
		while (model.groups[g].id != group->id)
			g++;
		log_effect(QC_EFFECT_DEAD, &effect, NULL, 0, 0, 0);
		model_done(&model, g, partition_number(effect.partition), effect.position, 0);
		return;
	}
}

static void
settle_one(void)
{
	Open	   *o = &opens[draw(OPENS)];

	if (o->used && o->seq == 0)
		reserve_open(o);
	else if (o->used)
		settle(o, o->xid == 0 || draw(4) > 0);
	if (draw(3) == 0)
		log_decisions();
	while (qc_group_sweep(m.st, 1 + draw(3)) && draw(2) == 0)
		;
}

/* ---- crash ---- */

/* Entries of the model that were not decided; queue-only ones are in the log, and so they are there. */
static void
decide_model(bool *coins)
{
	for (int i = 0; i < OPENS; i++)
	{
		coins[i] = draw(2) == 0;
		if (opens[i].seq == 0)
			opens[i].used = false;
		if (opens[i].used && opens[i].xid == 0)
		{
			settle_model(&opens[i], true);
			opens[i].used = false;
		}
	}
}

/* What was settled, and whose decision no entry tells: the server's commit log does. */
typedef struct Verdict
{
	uint64_t	seq;
	bool		committed;
} Verdict;

static uint32_t
note_verdicts(Verdict *verdicts)
{
	uint32_t	n = 0;

	for (QcOpen *open = QC_AT(m.st, QcOpen, m.st->opens.head); open != NULL;
		 open = QC_AT(m.st, QcOpen, open->all.next))
	{
		if (open->decided != 0)
			verdicts[n++] = (Verdict)
		{
			open->seq, open->decided == 1
		};
	}
	return n;
}

/* The entry's transaction committed: as the server knows, or as the coin says, which the model is told. */
static bool
decide(uint64_t seq, const bool *coins, const Verdict *verdicts, uint32_t nverdicts)
{
	for (uint32_t i = 0; i < nverdicts; i++)
	{
		if (verdicts[i].seq == seq)
			return verdicts[i].committed;
	}
	for (int i = 0; i < OPENS; i++)
	{
		if (!opens[i].used || opens[i].seq != seq)
			continue;
		settle_model(&opens[i], coins[i]);
		opens[i].used = false;
		return coins[i];
	}
	return expect("an entry that nobody knows", seq, 0);
}

/* Decide in the order of the log what is left, as recovery does. */
static void
decide_state(const bool *coins, const Verdict *verdicts, uint32_t nverdicts)
{
	for (QcRef ref = m.st->opens.head; ref != 0;)
	{
		QcOpen	   *open = QC_AT(m.st, QcOpen, ref);

		ref = open->all.next;
		if (open->decided == 0)
			qc_open_settle(m.st, open, decide(open->seq, coins, verdicts, nverdicts), m.st->seq,
						   m.monotonic);
	}
}

static void
crash(void)
{
	static Verdict verdicts[GROUP_LOG_MAX];
	uint32_t	nverdicts = note_verdicts(verdicts);
	bool		coins[OPENS];

	decide_model(coins);
	group_log_replay(&journal);
	decide_state(coins, verdicts, nverdicts);
	for (int i = 0; i < LEASES; i++)
		held[i].answered = false;
	forget_held();
	log_decisions();
}

/* ---- the run ---- */

static void
begin(void)
{
	QcOptions	options = {.set = 1u << QC_OPT_RETRY_LIMIT};

	memset(&model, 0, sizeof(model));
	memset(opens, 0, sizeof(opens));
	memset(held, 0, sizeof(held));
	next_xid = 1000;
	good = true;
	machine_begin(&m);
	group_log_begin(&journal, &m);
	model.limit = draw(4);
	options.value[QC_OPT_RETRY_LIMIT] = model.limit == 0 ? -1 : (int64_t) model.limit;
	machine_queue(&m, 1, &options);
	for (int k = 1; k < MODEL_PARTITIONS; k++)
	{
		char		name[16];

		(void) snprintf(name, sizeof(name), "p%d", k);
		machine_partition(&m, 1, group_partition_id(k), name, QC_LANE_NONE);
	}
	for (int g = 1; g < MODEL_GROUPS; g++)
		model.groups[g].id = UINT64_MAX;
	model_begin(&model, 0, QC_DEFAULT_GROUP, QC_START_OLDEST, 0);
	group_log_checkpoint(&journal);
}

static void
step(void)
{
	uint32_t	what = draw(100);

	if (what < 25)
		push();
	else if (what < 45)
		pop();
	else if (what < 55)
		ack();
	else if (what < 59)
		give_back();
	else if (what < 60)
		bury();
	else if (what < 82)
		settle_one();
	else if (what < 86)
		subscribe(draw(2) == 0);
	else if (what < 91)
		seek();
	else if (what < 92)
		drop();
	else if (what < 95)
		purge();
	else if (what < 98)
		group_log_checkpoint(&journal);
	else
		crash();
}

/* Nothing may stay promised when nobody is in the middle of anything. */
static void
check_promises(void)
{
	for (int i = 0; i < OPENS; i++)
	{
		if (opens[i].used && opens[i].seq == 0)
			reserve_open(&opens[i]);
		if (opens[i].used)
			settle(&opens[i], true);
	}
	log_decisions();
	while (qc_group_sweep(m.st, 100))
		;
	compare(true);
	for (int i = 0; i < QC_CLASS_COUNT; i++)
		(void) expect("promised objects", m.st->mem.pools[i].nreserved, 0);
	(void) expect("groups on their way", queue()->coming + queue()->creating, 0);
	(void) expect("dead groups", m.st->dead_groups, 0);
}

static void
run(const void *argument)
{
	seed = *(const uint32_t *) argument;
	random_state = seed * 2654435761u + 1;
	begin();
	for (int i = 0; i < STEPS && good && journal.n + 100 < GROUP_LOG_MAX; i++)
	{
		step();

		/* Looking at partitions brings them up to date: not after every step. */
		compare(draw(8) == 0);
	}
	if (good)
		check_promises();
	CHECK(good);
	group_log_end(&journal);
	machine_end(&m);
}

int
main(int argc, char **argv)
{
	uint32_t	first = argc > 1 ? (uint32_t) strtoul(argv[1], NULL, 10) : 1;
	uint32_t	last = argc > 2 ? (uint32_t) strtoul(argv[2], NULL, 10) :
		argc > 1 ? first : SEEDS;

	for (uint32_t i = first; i <= last; i++)
	{
		char		name[32];

		(void) snprintf(name, sizeof(name), "seed %u", i);
		unit_run_with(name, run, &i);
	}
	return unit_end();
}
