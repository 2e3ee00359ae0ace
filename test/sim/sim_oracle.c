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
sim_oracle_push(SimOracle *o, uint32_t txn, uint32_t queue, uint32_t partition)
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
		.txn = txn, .queue = queue, .partition = partition, .position = UINT64_MAX,
		.answering = SIM_NONE
	};
	return o->nmessages++;
}

void
sim_oracle_answer(SimOracle *o, uint32_t txn, uint32_t message, bool dead)
{
	o->answers = grow(o->answers, &o->cap_answers, o->nanswers, sizeof(SimAnswer));
	sim_trace(o, "txn %u %s message %u.%u at %lld", txn, dead ? "rejects" : "acknowledges",
			  o->messages[message].txn, message - o->txns[o->messages[message].txn].first_message,
			  (long long) o->messages[message].position);
	o->answers[o->nanswers++] = (SimAnswer)
	{
		txn, message, dead
	};
}

/* ---- what becomes of it ---- */

/* The commit of this transaction holds what it acknowledges, or holds it no longer. */
static void
hold_answers(SimOracle *o, uint32_t txn, bool hold)
{
	for (uint32_t i = o->nanswers; i > 0; i--)
	{
		const SimAnswer *answer = &o->answers[i - 1];
		SimMessage *m = &o->messages[answer->message];

		if (answer->txn != txn)
			continue;
		if (hold)
			m->answering = txn;
		else if (m->answering == txn)
			m->answering = SIM_NONE;
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
	t->told = o->clock++;
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
judge_delivery(SimOracle *o, const SimMessage *m, const SimSeen *seen, int64_t now)
{
	const SimTxn *t = &o->txns[m->txn];

	if (t->began == 0 || t->fate == SIM_ABORTED || t->fate == SIM_OUT)
		return sim_oracle_complain(o, "a message of transaction %u is delivered, which has not committed",
								   m->txn);
	if (t->joint && !t->visible)
		return sim_oracle_complain(o, "a message of transaction %u is delivered before its row is visible",
								   m->txn);
	if (m->settled)
		return sim_oracle_complain(o, "message %u of transaction %u is delivered after it was acknowledged",
								   seen->index, m->txn);
	if (m->died)
		return sim_oracle_complain(o, "message %u of transaction %u is delivered after it died",
								   seen->index, m->txn);
	if (queue_of_message(o, m)->limit >= 0 &&
		seen->attempt > (uint32_t) queue_of_message(o, m)->limit + 1)
		return sim_oracle_complain(o, "message %u of transaction %u is delivered for the %u. time, beyond its limit",
								   seen->index, m->txn, seen->attempt);
	if (m->answering != SIM_NONE)
		return sim_oracle_complain(o, "message %u of transaction %u is delivered, which transaction %u acknowledges",
								   seen->index, m->txn, m->answering);
	if (m->lease != 0 && now < m->lease_until)
		return sim_oracle_complain(o, "message %u of transaction %u is delivered while it is leased",
								   seen->index, m->txn);
	if (seen->attempt == 0 || seen->attempt < m->attempt)
		return sim_oracle_complain(o, "message %u of transaction %u goes back from attempt %u to %u",
								   seen->index, m->txn, m->attempt, seen->attempt);
	return true;
}

/* In a partition that is delivered in order nothing known to stand below and not done is passed over. */
static bool
judge_order(SimOracle *o, const SimMessage *first)
{
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		const SimMessage *m = &o->messages[i];

		if (m->queue == first->queue && m->partition == first->partition &&
			m->position < first->position && !m->settled && !m->died && m->answering == SIM_NONE)
			return sim_oracle_complain(o, "position %llu is delivered and %llu below it passed over",
									   (unsigned long long) first->position,
									   (unsigned long long) m->position);
	}
	return true;
}

bool
sim_oracle_popped(SimOracle *o, const SimSeen *seen, uint32_t n, int64_t now, uint32_t *out,
				  uint32_t *lease)
{
	uint64_t	told = o->clock++;

	*lease = ++o->leases;
	for (uint32_t i = 0; i < n; i++)
	{
		SimMessage *m;

		out[i] = find_shown(o, &seen[i]);
		if (out[i] == SIM_NONE)
			return false;
		m = &o->messages[out[i]];
		if (!judge_delivery(o, m, &seen[i], now))
			return false;
		sim_trace(o, "delivery %u of message %u.%u at %llu of queue %u partition %u, attempt %u", *lease,
				  m->txn, seen[i].index, (unsigned long long) seen[i].position, m->queue,
				  m->partition, seen[i].attempt);
		m->position = seen[i].position;
		if ((i == 0 || seen[i].partition != seen[i - 1].partition) &&
			(queue_of_message(o, m)->ordered || m->partition != 0) && !judge_order(o, m))
			return false;
		if (m->attempt_told < o->sure && m->attempt > m->attempt_sure)
			m->attempt_sure = m->attempt;
		m->attempt = seen[i].attempt;
		m->attempt_told = told;
		m->lease = *lease;
		m->lease_until = INT64_MAX;
	}
	return true;
}

void
sim_oracle_lease(SimOracle *o, uint32_t lease, int64_t until)
{
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		if (o->messages[i].lease == lease)
			o->messages[i].lease_until = until;
	}
}

void
sim_oracle_given_back(SimOracle *o, uint32_t lease, uint32_t message)
{
	sim_trace(o, "delivery %u gives back message %u.%u", lease, o->messages[message].txn,
			  message - o->txns[o->messages[message].txn].first_message);
	if (o->messages[message].lease == lease)
		o->messages[message].lease = 0;
}

bool
sim_oracle_died(SimOracle *o, const SimSeen *seen)
{
	uint32_t	number = find_shown(o, seen);
	SimMessage *m = number == SIM_NONE ? NULL : &o->messages[number];

	if (m == NULL)
		return false;
	sim_trace(o, "message %u.%u dies", m->txn, seen->index);
	if (m->settled || m->died || m->answering != SIM_NONE)
		return sim_oracle_complain(o, "message %u of transaction %u dies, which is done", seen->index,
								   m->txn);
	if (m->lease != 0 && m->lease_until == INT64_MAX)
		return sim_oracle_complain(o, "message %u of transaction %u dies while it is leased",
								   seen->index, m->txn);
	m->died = true;
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
		o->messages[i].answering = SIM_NONE;
		o->messages[i].lease = 0;
		o->messages[i].died = false;
	}
}

void
sim_oracle_expected(const SimOracle *o, uint8_t *expected)
{
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		const SimMessage *m = &o->messages[i];
		const SimTxn *t = &o->txns[m->txn];

		expected[i] = !o->queues[m->queue].gone && !o->queues[m->queue].damaged && !m->settled &&
			!m->died && m->answering == SIM_NONE &&
			(t->fate == SIM_COMMITTED || t->fate == SIM_WEAK || t->fate == SIM_IN);
	}
}
