/*
 * sim_oracle.c
 *		The model: what was asked for and told, and the judgement of what running servers deliver.
 */
#include "sim_oracle.h"

#include "sim_content.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

SimOracle *
sim_oracle_new(void)
{
	SimOracle  *o = sim_alloc(sizeof(SimOracle));

	o->clock = 1;
	return o;
}

static void *
copy_array(const void *from, uint32_t count, size_t size)
{
	void	   *copy = sim_alloc((count + 1) * size);

	if (count > 0)
		memcpy(copy, from, count * size);
	return copy;
}

SimOracle *
sim_oracle_copy(const SimOracle *from)
{
	SimOracle  *o = sim_alloc(sizeof(SimOracle));

	*o = *from;
	o->txns = copy_array(from->txns, from->ntxns, sizeof(SimTxn));
	o->cap_txns = from->ntxns;
	o->messages = copy_array(from->messages, from->nmessages, sizeof(SimMessage));
	o->cap_messages = from->nmessages;
	o->answers = copy_array(from->answers, from->nanswers, sizeof(SimAnswer));
	o->cap_answers = from->nanswers;
	o->queues = copy_array(from->queues, from->nqueues, sizeof(SimQueue));
	o->cap_queues = from->nqueues;
	o->alters = copy_array(from->alters, from->nalters, sizeof(SimAlter));
	o->cap_alters = from->nalters;
	o->changes = copy_array(from->changes, from->nchanges, sizeof(SimChange));
	o->cap_changes = from->nchanges;
	return o;
}

void
sim_oracle_free(SimOracle *o)
{
	free(o->txns);
	free(o->messages);
	free(o->answers);
	free(o->queues);
	free(o->alters);
	free(o->changes);
	free(o);
}

bool
sim_oracle_complain(SimOracle *o, const char *format,...)
{
	va_list		args;

	/* the first one is the one to look at */
	if (o->complaint[0] != '\0')
		return false;
	va_start(args, format);
	(void) vsnprintf(o->complaint, sizeof(o->complaint), format, args);
	va_end(args);
	return false;
}

void
sim_trace(const SimOracle *o, const char *format,...)
{
	va_list		args;

	if (o->trace == NULL)
		return;
	va_start(args, format);
	(void) vfprintf(o->trace, format, args);
	va_end(args);
	(void) fputc('\n', o->trace);
}

/* Room for one more item. */
static void *
grow(void *array, uint32_t *cap, uint32_t count, size_t size)
{
	if (count < *cap)
		return array;
	*cap = *cap * 2 + 32;
	return sim_realloc(array, *cap * size);
}

/* ---- what clients ask for ---- */

uint32_t
sim_oracle_begin(SimOracle *o, bool joint)
{
	o->txns = grow(o->txns, &o->cap_txns, o->ntxns, sizeof(SimTxn));
	o->txns[o->ntxns] = (SimTxn)
	{
		.joint = joint, .first_message = o->nmessages, .creates = SIM_NONE, .drops = SIM_NONE
	};
	return o->ntxns++;
}

uint32_t
sim_oracle_queue(SimOracle *o, uint32_t name, uint64_t id, bool ordered, int32_t limit,
				 uint32_t creator)
{
	o->queues = grow(o->queues, &o->cap_queues, o->nqueues, sizeof(SimQueue));
	o->queues[o->nqueues] = (SimQueue)
	{
		.name = name, .id = id, .ordered = ordered, .limit = limit, .creator = creator
	};
	for (uint32_t g = 0; g < SIM_GROUPS; g++)
		memset(o->queues[o->nqueues].groups[g].placed, 0xff, sizeof(o->queues[0].groups[0].placed));

	/* The server gives the default group this id. */
	o->queues[o->nqueues].groups[0].there = true;
	if (creator != SIM_AUTO)
		o->txns[creator].creates = o->nqueues;
	return o->nqueues++;
}

void
sim_oracle_drop(SimOracle *o, uint32_t txn, uint32_t queue)
{
	o->txns[txn].drops = queue;
}

void
sim_oracle_alter(SimOracle *o, uint32_t txn, uint32_t queue)
{
	o->alters = grow(o->alters, &o->cap_alters, o->nalters, sizeof(SimAlter));
	o->alters[o->nalters++] = (SimAlter)
	{
		queue, txn
	};

	/* It may come to be delivered in another way. */
	o->queues[queue].ordered = false;
}

uint32_t
sim_oracle_push(SimOracle *o, uint32_t txn, uint32_t queue, uint32_t partition, int64_t due)
{
	SimTxn	   *t = &o->txns[txn];

	if (t->nmessages == 0)
		t->first_message = o->nmessages;
	assert(t->first_message + t->nmessages == o->nmessages);
	t->nmessages++;
	o->messages = grow(o->messages, &o->cap_messages, o->nmessages, sizeof(SimMessage));
	sim_trace(o, "txn %u pushes message %u.%u into queue %u partition %u", txn, txn, t->nmessages - 1,
			  queue, partition);
	o->messages[o->nmessages] = (SimMessage)
	{
		.txn = txn, .queue = queue, .partition = partition, .position = UINT64_MAX, .due = due
	};
	return o->nmessages++;
}

void
sim_oracle_sized(SimOracle *o, uint32_t message, uint32_t bytes, uint32_t batch, int64_t now)
{
	SimMessage *m = &o->messages[message];

	m->bytes = bytes;
	m->batch = batch;
	m->pushed_at = now;
}

void
sim_oracle_answer(SimOracle *o, uint32_t txn, uint32_t message, uint32_t group, bool dead)
{
	SimMessage *m = &o->messages[message];

	m->letter |= dead;
	o->answers = grow(o->answers, &o->cap_answers, o->nanswers, sizeof(SimAnswer));
	sim_trace(o, "txn %u %s message %u.%u at %lld for group %u", txn, dead ? "rejects" : "acknowledges",
			  m->txn, message - o->txns[m->txn].first_message, (long long) m->position, group);
	o->answers[o->nanswers++] = (SimAnswer)
	{
		txn, message, group, m->uses[group].attempt_told, dead
	};
}

uint32_t
sim_oracle_change(SimOracle *o, const SimChange *change)
{
	static const char *const kinds[] = {"makes", "drops", "seeks", "purges, not"};

	o->changes = grow(o->changes, &o->cap_changes, o->nchanges, sizeof(SimChange));
	sim_trace(o, "txn %u %s group %u of queue %u, partition %d, start %d at %lld", change->txn,
			  kinds[change->kind], change->group, change->queue, (int) change->partition,
			  (int) change->start, (long long) change->start_at);
	o->changes[o->nchanges] = *change;
	return o->nchanges++;
}

/* ---- what becomes of it ---- */

/* The commit of this transaction holds what it acknowledges, unless that was sought meanwhile, or holds it no longer. */
static void
hold_answers(SimOracle *o, uint32_t txn, bool hold)
{
	for (uint32_t i = o->nanswers; i > 0; i--)
	{
		const SimAnswer *answer = &o->answers[i - 1];
		SimMessage *m = &o->messages[answer->message];

		if (answer->txn != txn ||
			answer->delivered < o->queues[m->queue].groups[answer->group].placed_at[m->partition])
			continue;
		if (hold)
			m->uses[answer->group].answering = txn + 1;
		else if (m->uses[answer->group].answering == txn + 1)
			m->uses[answer->group].answering = 0;
	}
}

void
sim_oracle_committing(SimOracle *o, uint32_t txn)
{
	o->txns[txn].began = o->clock++;
	sim_trace(o, "txn %u begins to commit", txn);
	hold_answers(o, txn, true);
}

void
sim_oracle_visible(SimOracle *o, uint32_t txn)
{
	o->txns[txn].visible = true;
}

void
sim_oracle_committed(SimOracle *o, uint32_t txn, bool sure, bool logged)
{
	SimTxn	   *t = &o->txns[txn];

	assert(t->fate == SIM_OPEN && t->began != 0);
	sim_trace(o, "txn %u is committed%s", txn, sure ? "" : " asynchronously");
	t->fate = sure ? SIM_COMMITTED : SIM_WEAK;
	t->told = t->known = o->clock++;
	if (sure && logged && t->began > o->sure)
		o->sure = t->began;
}

void
sim_oracle_aborted(SimOracle *o, uint32_t txn)
{
	assert(o->txns[txn].fate == SIM_OPEN);
	sim_trace(o, "txn %u is rolled back", txn);
	o->txns[txn].fate = SIM_ABORTED;
	hold_answers(o, txn, false);
}

/* ---- changes of groups, purges ---- */

/* Is the message certainly pushed before the change was asked for? */
static bool
pushed_before(const SimOracle *o, const SimMessage *m, const SimChange *change)
{
	const SimTxn *t = &o->txns[m->txn];

	return t->known != 0 && t->known < o->txns[change->txn].began;
}

/* ... or certainly after it took effect? */
static bool
pushed_after(const SimOracle *o, const SimMessage *m, const SimChange *change)
{
	const SimTxn *t = &o->txns[m->txn];
	uint64_t	known = o->txns[change->txn].known;

	return known != 0 && t->began > known;
}

/* Is it one of those that the change is about?  A purge leaves what its own transaction pushes. */
static bool
is_in_scope(const SimMessage *m, const SimChange *change)
{
	return m->queue == change->queue && (change->kind != SIM_PURGE || m->txn != change->txn) &&
		(change->partition == SIM_NONE || change->partition == m->partition);
}

SimPass
sim_oracle_passes(const SimOracle *o, const SimMessage *m, uint32_t group)
{
	uint32_t	placed = o->queues[m->queue].groups[group].placed[m->partition];
	const SimChange *change;
	bool		passes = true;

	if (placed == SIM_NONE)
		return SIM_STANDS;
	change = &o->changes[placed];
	if (change->start == SIM_FROM_OLDEST || pushed_after(o, m, change))
		return SIM_STANDS;
	if (m->position == UINT64_MAX && change->start != SIM_FROM_NEW)
		return SIM_MAY_PASS;
	if (change->start == SIM_FROM_POSITION)
		passes = m->position < (uint64_t) change->start_at;
	else if (change->start == SIM_FROM_TIME)
		passes = m->at < change->start_at;
	if (!passes)
		return SIM_STANDS;

	/* What was delayed may have come later. */
	if (m->due != 0)
		return SIM_MAY_PASS;
	return pushed_before(o, m, change) ? SIM_PASSES : SIM_MAY_PASS;
}

bool
sim_oracle_purgeable(const SimOracle *o, const SimMessage *m)
{
	for (uint32_t i = 0; i < o->nchanges; i++)
	{
		const SimChange *change = &o->changes[i];

		if (change->kind == SIM_PURGE && change->happened && is_in_scope(m, change) &&
			!pushed_after(o, m, change))
			return true;
	}
	return false;
}

/* Does the partition hold something that is not decided? */
static bool
is_blocked(const SimOracle *o, uint32_t queue, uint32_t partition)
{
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		const SimMessage *m = &o->messages[i];

		if (m->queue == queue && m->partition == partition && o->txns[m->txn].fate == SIM_OPEN &&
			o->txns[m->txn].began != 0)
			return true;
	}
	return false;
}

/* What was certainly there is gone, but for what is held. */
static void
purge_happens(SimOracle *o, uint32_t number)
{
	const SimChange *change = &o->changes[number];
	bool		blocked[SIM_PARTITIONS_MAX];

	/* In recovery: others were not decided then either. */
	if (o->txns[change->txn].fate != SIM_OPEN)
		return;
	for (uint32_t p = 0; p < SIM_PARTITIONS_MAX; p++)
		blocked[p] = is_blocked(o, change->queue, p);
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		SimMessage *m = &o->messages[i];

		if (!is_in_scope(m, change) || m->due != 0 || !pushed_before(o, m, change) || blocked[m->partition])
			continue;
		for (uint32_t g = 0; g < SIM_GROUPS; g++)
			m->uses[g].spared = m->uses[g].held && (m->uses[g].spared || m->purged == 0);
		if (m->purged == 0)
			m->purge = number;
		m->purged = o->clock;
	}
}

/* The group stands elsewhere: what it did before does not count. */
static void
place_happens(SimOracle *o, uint32_t number)
{
	const SimChange *change = &o->changes[number];
	SimGroup   *group = &o->queues[change->queue].groups[change->group];

	for (uint32_t p = 0; p < SIM_PARTITIONS_MAX; p++)
	{
		if (change->partition != SIM_NONE && change->partition != p)
			continue;
		group->placed[p] = number;
		group->placed_at[p] = o->clock;
	}
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		SimMessage *m = &o->messages[i];
		SimUse	   *use = &m->uses[change->group];

		if (is_in_scope(m, change))
			*use = (SimUse)
		{
			.resets = change->kind == SIM_SEEK ? use->resets + 1 : 0,
			.died_sure = change->kind == SIM_SEEK && use->died_sure,
			.state = use->state, .seen_dead = use->seen_dead,
			.seen_died = use->seen_died
		};
	}
}

void
sim_oracle_happens(SimOracle *o, uint32_t number)
{
	SimChange  *change = &o->changes[number];
	SimGroup   *group = &o->queues[change->queue].groups[change->group];

	assert(!change->over);
	sim_trace(o, "txn %u: its change happens", change->txn);
	change->over = change->happened = true;
	change->late = o->txns[change->txn].fate != SIM_OPEN;
	o->clock++;
	if (change->kind == SIM_PURGE)
		purge_happens(o, number);
	else if (change->kind == SIM_UNSUBSCRIBE)
	{
		group->there = false;
		group->dropped_at = o->clock;
	}
	else
	{
		if (change->kind == SIM_SUBSCRIBE)
			group->since = o->clock;
		group->there = true;
		group->id = change->id;
		place_happens(o, number);
	}
	o->clock++;
}

/* ---- judging deliveries ---- */

static const SimQueue *
queue_of_message(const SimOracle *o, const SimMessage *m)
{
	return &o->queues[m->queue];
}

/* The message that is shown, SIM_NONE when it was never pushed there. */
static uint32_t
find_shown(SimOracle *o, const SimSeen *seen)
{
	const SimTxn *t;
	const SimMessage *m;

	if (seen->txn >= o->ntxns || seen->index >= o->txns[seen->txn].nmessages)
	{
		(void) sim_oracle_complain(o, "a message of an unknown transaction %u is shown", seen->txn);
		return SIM_NONE;
	}
	t = &o->txns[seen->txn];
	m = &o->messages[t->first_message + seen->index];
	if (queue_of_message(o, m)->id != seen->queue || m->partition != seen->partition)
	{
		(void) sim_oracle_complain(o, "message %u of transaction %u stands in another queue or partition",
								   seen->index, seen->txn);
		return SIM_NONE;
	}
	if (m->position != UINT64_MAX && m->position != seen->position)
	{
		(void) sim_oracle_complain(o, "message %u of transaction %u has moved from position %llu to %llu",
								   seen->index, seen->txn, (unsigned long long) m->position,
								   (unsigned long long) seen->position);
		return SIM_NONE;
	}
	return t->first_message + seen->index;
}

/* May this message be delivered now? */
static bool
judge_delivery(SimOracle *o, const SimMessage *m, const SimSeen *seen, uint64_t moment, int64_t now)
{
	const SimTxn *t = &o->txns[m->txn];
	const SimUse *use = &m->uses[seen->group];

	if (t->began == 0 || t->fate == SIM_ABORTED || t->fate == SIM_OUT)
		return sim_oracle_complain(o, "a message of transaction %u is delivered, which has not committed",
								   m->txn);
	if (m->cancelled || seen->at < m->due)
		return sim_oracle_complain(o, "message %u of transaction %u is delivered %s", seen->index, m->txn,
								   m->cancelled ? "after it was cancelled" : "before its time");
	if (t->joint && !t->visible)
		return sim_oracle_complain(o, "a message of transaction %u is delivered before its row is visible",
								   m->txn);
	if (use->settled)
		return sim_oracle_complain(o, "message %u of transaction %u is delivered after it was acknowledged",
								   seen->index, m->txn);
	if (use->died)
		return sim_oracle_complain(o, "message %u of transaction %u is delivered after it died",
								   seen->index, m->txn);
	if (queue_of_message(o, m)->limit >= 0 &&
		seen->attempt > (uint32_t) queue_of_message(o, m)->limit + 1)
		return sim_oracle_complain(o, "message %u of transaction %u is delivered for the %u. time, beyond its limit",
								   seen->index, m->txn, seen->attempt);
	if (m->removed || m->gone)
		return sim_oracle_complain(o, "message %u of transaction %u is delivered after it was removed",
								   seen->index, m->txn);
	if (use->answering != 0)
		return sim_oracle_complain(o, "message %u of transaction %u is delivered, which transaction %u acknowledges",
								   seen->index, m->txn, use->answering - 1);
	if (sim_oracle_passes(o, m, seen->group) == SIM_PASSES)
		return sim_oracle_complain(o, "message %u of transaction %u is delivered to group %u, which stands behind it",
								   seen->index, m->txn, seen->group);

	/* A purge may have met a consumer that was about to hear of it, and whose lease is over. */
	if (m->purged != 0 && m->purged < moment && !use->spared && seen->attempt <= use->attempt + 1)
		return sim_oracle_complain(o, "message %u of transaction %u is delivered to group %u after a purge",
								   seen->index, m->txn, seen->group);
	if (use->lease != 0 && now < use->lease_until)
		return sim_oracle_complain(o, "message %u of transaction %u is delivered while it is leased",
								   seen->index, m->txn);
	if (seen->attempt == 0 || seen->attempt < use->attempt)
		return sim_oracle_complain(o, "message %u of transaction %u goes back from attempt %u to %u",
								   seen->index, m->txn, use->attempt, seen->attempt);
	return true;
}

/* In a partition that is delivered in order nothing known to stand below and not done is passed over. */
static bool
judge_order(SimOracle *o, const SimMessage *first, uint32_t group)
{
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		const SimMessage *m = &o->messages[i];

		if (m->queue == first->queue && m->partition == first->partition &&
			m->position < first->position && !m->removed && !m->gone && !m->uses[group].settled && !m->uses[group].died &&
			m->uses[group].answering == 0 && sim_oracle_passes(o, m, group) == SIM_STANDS &&
			!sim_oracle_purgeable(o, m))
			return sim_oracle_complain(o, "position %llu is delivered and %llu below it passed over",
									   (unsigned long long) first->position,
									   (unsigned long long) m->position);
	}
	return true;
}

/* It has been delivered. */
static void
note_delivery(SimOracle *o, SimMessage *m, const SimSeen *seen, uint32_t lease, uint64_t told)
{
	SimUse	   *use = &m->uses[seen->group];

	sim_trace(o, "delivery %u of message %u.%u at %llu of queue %u partition %u to group %u, attempt %u", lease,
			  m->txn, seen->index, (unsigned long long) seen->position, m->queue, m->partition,
			  seen->group, seen->attempt);
	if (use->attempt_told < o->sure && use->attempt > use->attempt_sure)
		use->attempt_sure = use->attempt;
	use->attempt = seen->attempt;
	use->attempt_told = told;
	use->held = true;
	use->lease = lease;
	use->lease_until = INT64_MAX;
}

uint64_t
sim_oracle_pops(SimOracle *o)
{
	return o->clock++;
}

bool
sim_oracle_popped(SimOracle *o, const SimSeen *seen, uint32_t n, uint64_t moment, int64_t now,
				  uint32_t *out, uint32_t *lease)
{
	uint64_t	told = o->clock++;

	*lease = ++o->leases;
	for (uint32_t i = 0; i < n; i++)
	{
		SimMessage *m;
		const SimGroup *group;

		out[i] = find_shown(o, &seen[i]);
		if (out[i] == SIM_NONE)
			return false;
		m = &o->messages[out[i]];
		m->position = seen[i].position;
		m->at = seen[i].at;
		group = &queue_of_message(o, m)->groups[seen[i].group];

		/* The group has been sought or dropped meanwhile: the lease has ended. */
		if (group->placed_at[m->partition] > moment || group->dropped_at > moment)
			continue;
		if (!judge_delivery(o, m, &seen[i], moment, now))
			return false;
		m->uses[seen[i].group].spared |= m->purged != 0;
		if ((i == 0 || seen[i].partition != seen[i - 1].partition) &&
			(queue_of_message(o, m)->ordered || m->partition != 0) &&
			!judge_order(o, m, seen[i].group))
			return false;
		note_delivery(o, m, &seen[i], *lease, told);
	}
	return true;
}

void
sim_oracle_lease(SimOracle *o, uint32_t lease, int64_t until)
{
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		for (uint32_t g = 0; g < SIM_GROUPS; g++)
		{
			if (o->messages[i].uses[g].lease == lease)
				o->messages[i].uses[g].lease_until = until;
		}
	}
}

void
sim_oracle_given_back(SimOracle *o, uint32_t lease, uint32_t message, uint32_t group)
{
	SimUse	   *use = &o->messages[message].uses[group];

	sim_trace(o, "delivery %u gives back message %u.%u", lease, o->messages[message].txn,
			  message - o->txns[o->messages[message].txn].first_message);
	if (use->lease != lease)
		return;
	use->lease = 0;
	use->held = false;
}

void
sim_oracle_cancels(SimOracle *o, uint32_t message, bool told)
{
	SimMessage *m = &o->messages[message];

	sim_trace(o, "message %u.%u is %s", m->txn, message - o->txns[m->txn].first_message,
			  told ? "cancelled" : "about to be cancelled");
	if (m->position != UINT64_MAX)
		(void) sim_oracle_complain(o, "message %u of transaction %u is cancelled, which was delivered",
								   message - o->txns[m->txn].first_message, m->txn);
	m->cancelling = true;
	m->cancelled |= told;
}

uint32_t
sim_oracle_find(const SimOracle *o, uint32_t txn, uint32_t index)
{
	return txn >= o->ntxns || index >= o->txns[txn].nmessages ? SIM_NONE :
		o->txns[txn].first_message + index;
}

bool
sim_oracle_died(SimOracle *o, const SimSeen *seen)
{
	uint32_t	number = find_shown(o, seen);
	SimMessage *m = number == SIM_NONE ? NULL : &o->messages[number];
	SimUse	   *use = m == NULL ? NULL : &m->uses[seen->group];

	if (m == NULL)
		return false;
	sim_trace(o, "message %u.%u dies in group %u", m->txn, seen->index, seen->group);
	if (use->settled || use->died || use->answering != 0)
		return sim_oracle_complain(o, "message %u of transaction %u dies, which is done", seen->index,
								   m->txn);
	if (use->lease != 0 && use->lease_until == INT64_MAX)
		return sim_oracle_complain(o, "message %u of transaction %u dies while it is leased",
								   seen->index, m->txn);
	use->died = true;
	return true;
}

/* A purge that nobody was told of may take place anew, when other leases run and other entries are not decided. */
static void
forget_purge(SimOracle *o, uint32_t number)
{
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		SimMessage *m = &o->messages[i];

		if (!is_in_scope(m, &o->changes[number]))
			continue;
		if (m->purge == number)
			m->purged = 0;
		for (uint32_t g = 0; g < SIM_GROUPS; g++)
			m->uses[g].spared = true;
	}
}

bool
sim_oracle_shown(SimOracle *o, const SimSeen *seen)
{
	uint32_t	number = find_shown(o, seen);

	if (number == SIM_NONE)
		return false;
	o->messages[number].position = seen->position;
	o->messages[number].at = seen->at;
	return true;
}

/* The message that stands there now. */
static SimMessage *
find_placed(SimOracle *o, uint64_t queue, uint32_t partition, uint64_t position)
{
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		SimMessage *m = &o->messages[i];

		if (m->position == position && m->partition == partition &&
			queue_of_message(o, m)->id == queue && o->txns[m->txn].fate != SIM_ABORTED &&
			o->txns[m->txn].fate != SIM_OUT)
			return m;
	}
	return NULL;
}

/* Has a group that is there, and does not pass over the message, not done it? */
static bool
is_unread(const SimOracle *o, const SimMessage *m)
{
	bool		unread = false;

	for (uint32_t g = 0; g < SIM_GROUPS; g++)
	{
		const SimUse *use = &m->uses[g];

		unread = unread || (queue_of_message(o, m)->groups[g].there && !use->settled &&
							!use->died && use->answering == 0 &&
							sim_oracle_passes(o, m, g) == SIM_STANDS);
	}
	return unread && !sim_oracle_purgeable(o, m);
}

bool
sim_oracle_removed(SimOracle *o, uint64_t queue, uint32_t partition, uint64_t position, bool unread)
{
	SimMessage *m = find_placed(o, queue, partition, position);
	const SimTxn *t;

	/* Nobody has been told of it: a group that nobody asks, or that passes over it, has let it go. */
	if (m == NULL)
		return true;
	t = &o->txns[m->txn];
	sim_trace(o, "message %u.%u at %llu is removed%s", m->txn,
			  (uint32_t) (m - o->messages) - t->first_message, (unsigned long long) position,
			  unread ? ", even if unread" : "");
	if (t->began == 0 || (t->joint && !t->visible))
		return sim_oracle_complain(o, "a message of transaction %u is removed, which has not committed",
								   m->txn);
	if (m->removed || m->gone)
		return sim_oracle_complain(o, "a message of transaction %u is removed twice", m->txn);
	m->unread = is_unread(o, m);
	if (m->unread && !unread)
		return sim_oracle_complain(o, "a message of transaction %u is removed, and nobody acknowledged it",
								   m->txn);
	for (uint32_t g = 0; g < SIM_GROUPS; g++)
		m->uses[g].finished = m->uses[g].settled || m->uses[g].answering != 0;
	m->removed = true;
	return true;
}

void
sim_oracle_crashed(SimOracle *o)
{
	sim_trace(o, "---- crash ----");
	for (uint32_t i = 0; i < o->ntxns; i++)
	{
		SimTxn	   *t = &o->txns[i];

		if (t->fate == SIM_OPEN)
			t->fate = t->began == 0 ? SIM_ABORTED : SIM_DOUBT;
		else if (t->fate == SIM_WEAK)
			t->fate = SIM_DOUBT;
	}
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		for (uint32_t g = 0; g < SIM_GROUPS; g++)
		{
			o->messages[i].uses[g].answering = 0;
			o->messages[i].uses[g].lease = 0;
			o->messages[i].uses[g].died = false;
		}
	}
	for (uint32_t i = 0; i < o->nchanges; i++)
	{
		const SimChange *change = &o->changes[i];

		if (change->kind == SIM_PURGE && change->happened && o->txns[change->txn].fate == SIM_DOUBT)
			forget_purge(o, i);
	}
}

/* Must the group still get it? */
static bool
is_expected(const SimOracle *o, const SimMessage *m, uint32_t group)
{
	const SimUse *use = &m->uses[group];

	return o->queues[m->queue].groups[group].there && !m->cancelling && !use->settled && !use->died &&
		use->answering == 0 && sim_oracle_passes(o, m, group) == SIM_STANDS &&
		!sim_oracle_purgeable(o, m);
}

void
sim_oracle_expected(const SimOracle *o, uint8_t *expected)
{
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		const SimMessage *m = &o->messages[i];
		const SimTxn *t = &o->txns[m->txn];

		expected[i] = 0;
		if (o->queues[m->queue].gone || o->queues[m->queue].damaged || m->removed || m->gone ||
			(t->fate != SIM_COMMITTED && t->fate != SIM_WEAK && t->fate != SIM_IN))
			continue;
		for (uint32_t g = 0; g < SIM_GROUPS; g++)
			expected[i] |= is_expected(o, m, g);
	}
}
