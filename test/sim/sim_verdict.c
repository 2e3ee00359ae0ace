/*
 * sim_verdict.c
 *		The oracle's judgement of a server that has recovered.
 *
 * First everything that is shown is matched with what was pushed.	Then every transaction gets its fate: those that
 * changed tables from their row, others from what is seen of them.	Then each message must be there or not, and be done or
 * not, as the fates say.
 */
#include "sim_oracle.h"

#include <assert.h>

enum
{
	THERE = 1,
	MISSING = 2
};

/* ---- matching ---- */

/* The queue with this id that is not gone. */
static SimQueue *
live_queue(SimOracle *o, uint64_t id)
{
	for (uint32_t i = o->nqueues; i > 0; i--)
	{
		if (o->queues[i - 1].id == id && !o->queues[i - 1].gone)
			return &o->queues[i - 1];
	}
	return NULL;
}

static bool
match_queues(SimOracle *o, const SimView *view)
{
	for (uint32_t i = 0; i < o->nqueues; i++)
		o->queues[i].seen = o->queues[i].damaged = false;
	for (uint32_t i = 0; i < view->nqueues; i++)
	{
		const SimSeenQueue *shown = &view->queues[i];
		SimQueue   *queue = live_queue(o, shown->id);

		if (queue == NULL || queue->name != shown->name || queue->seen)
			return sim_oracle_complain(o, "queue %u with id %llu is shown, which nobody has made",
									   shown->name, (unsigned long long) shown->id);
		queue->seen = true;
		queue->damaged = shown->damaged;
		queue->owner = shown->owner;
	}
	return true;
}

/* Is the message in its own place, or in a dead lane of its queue? */
static bool
match_message(SimOracle *o, const SimSeen *seen)
{
	SimMessage *m;
	const SimQueue *queue;

	if (seen->txn >= o->ntxns || seen->index >= o->txns[seen->txn].nmessages)
		return sim_oracle_complain(o, "a message of an unknown transaction %u is shown", seen->txn);
	m = &o->messages[o->txns[seen->txn].first_message + seen->index];
	queue = &o->queues[m->queue];
	if (queue->gone || queue->id != seen->queue ||
		(seen->partition != SIM_DEAD_LANE && seen->partition != m->partition))
		return sim_oracle_complain(o, "message %u of transaction %u stands in another queue or partition",
								   seen->index, seen->txn);
	if (seen->partition == SIM_DEAD_LANE)
	{
		if (!seen->died)
			m->seen_dead++;
		else if (m->seen_died++ > 0 || (int64_t) seen->attempt != (int64_t) queue->limit + 1)
			return sim_oracle_complain(o, "message %u of transaction %u died at attempt %u, for the %u. time",
									   seen->index, seen->txn, seen->attempt, m->seen_died);
		return true;
	}
	if (m->seen++ > 0)
		return sim_oracle_complain(o, "message %u of transaction %u is there twice", seen->index,
								   seen->txn);
	if (m->position != UINT64_MAX && m->position != seen->position)
		return sim_oracle_complain(o, "message %u of transaction %u has moved from position %llu to %llu",
								   seen->index, seen->txn, (unsigned long long) m->position,
								   (unsigned long long) seen->position);
	sim_trace(o, "shown: message %u.%u at %llu of queue %u partition %u, state %d, attempt %u", seen->txn,
			  seen->index, (unsigned long long) seen->position, m->queue, m->partition,
			  (int) seen->state, seen->attempt);
	m->position = seen->position;
	m->seen_done = seen->state == SIM_DONE;
	return true;
}

/* The last attempt told that must have survived. */
static bool
judge_attempt(SimOracle *o, const SimView *view, const SimSeen *seen)
{
	SimMessage *m = &o->messages[o->txns[seen->txn].first_message + seen->index];
	uint32_t	bound = m->attempt_sure;

	if (seen->partition == SIM_DEAD_LANE || seen->state == SIM_DONE)
		return true;
	if ((view->machine_lived || m->attempt_told < o->sure) && m->attempt > bound)
		bound = m->attempt;
	if (seen->attempt < bound && !view->lossy)
		return sim_oracle_complain(o, "message %u of transaction %u was at attempt %u and is at %u",
								   seen->index, seen->txn, bound, seen->attempt);
	m->attempt = m->attempt_sure = seen->attempt;
	m->attempt_told = o->clock;
	return true;
}

/* Whoever was told of his commit before another one began stands before it. */
static bool
judge_positions(SimOracle *o, const SimView *view)
{
	uint64_t	latest = 0;
	uint32_t	by = 0;

	for (uint32_t i = 0; i < view->nmessages; i++)
	{
		const SimSeen *seen = &view->messages[i];
		const SimTxn *t = &o->txns[seen->txn];

		if (seen->partition == SIM_DEAD_LANE)
			continue;
		if (i == 0 || seen->queue != view->messages[i - 1].queue ||
			seen->partition != view->messages[i - 1].partition)
			latest = 0;
		else if (seen->position <= view->messages[i - 1].position)
			return sim_oracle_complain(o, "positions are shown out of order");
		if (t->told != 0 && t->told < latest)
			return sim_oracle_complain(o, "transaction %u stands behind transaction %u, which began after it was committed",
									   seen->txn, by);
		if (t->began > latest)
		{
			latest = t->began;
			by = seen->txn;
		}
	}
	return true;
}

static bool
match(SimOracle *o, const SimView *view)
{
	if (!match_queues(o, view))
		return false;
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		o->messages[i].seen = o->messages[i].seen_dead = o->messages[i].seen_died = 0;
		o->messages[i].seen_done = false;
	}
	for (uint32_t i = 0; i < view->nmessages; i++)
	{
		if (!match_message(o, &view->messages[i]) || !judge_attempt(o, view, &view->messages[i]))
			return false;
	}
	return judge_positions(o, view);
}

/* ---- fates ---- */

static bool
is_in(const SimTxn *t)
{
	return t->fate == SIM_COMMITTED || t->fate == SIM_IN;
}

/* Is there a transaction that dropped the queue for sure? */
static bool
dropped(const SimOracle *o, uint32_t queue)
{
	for (uint32_t i = 0; i < o->ntxns; i++)
	{
		if (o->txns[i].drops == queue && is_in(&o->txns[i]))
			return true;
	}
	return false;
}

/* Fates of those that changed tables. */
static bool
judge_rows(SimOracle *o, const SimView *view)
{
	for (uint32_t i = 0; i < o->ntxns; i++)
	{
		SimTxn	   *t = &o->txns[i];
		bool		row = view->rows[i] != 0;

		if (!t->joint)
			continue;
		if (t->fate == SIM_DOUBT)
			t->fate = row ? SIM_IN : SIM_OUT;
		else if (is_in(t) != row)
			return sim_oracle_complain(o, "the row of transaction %u %s", i,
									   row ? "came from nowhere" : "is lost");
		t->visible = row;
	}
	return true;
}

/* Is anything to be seen of the message, whatever its fate? */
static bool
observable(const SimOracle *o, const SimMessage *m)
{
	const SimQueue *queue = &o->queues[m->queue];

	return !queue->gone && !queue->damaged && (queue->seen || !dropped(o, m->queue));
}

/* Answers of those that are there. */
static void
count_answers(SimOracle *o)
{
	for (uint32_t i = 0; i < o->nmessages; i++)
		o->messages[i].answered = o->messages[i].rejected = 0;
	for (uint32_t i = 0; i < o->nanswers; i++)
	{
		SimMessage *m = &o->messages[o->answers[i].message];

		if (!is_in(&o->txns[o->answers[i].txn]))
			continue;
		m->answered = 1;
		m->rejected = (uint8_t) (m->rejected + o->answers[i].dead);
	}
}

/* The newest definition that is there is the one that is seen: what comes after it is not there. */
static void
evidence_of_alters(SimOracle *o)
{
	for (uint32_t i = 0; i < o->nalters; i++)
	{
		const SimQueue *queue = &o->queues[o->alters[i].queue];
		SimTxn	   *t = &o->txns[o->alters[i].txn];
		bool		later = false;

		if (t->fate != SIM_DOUBT || queue->gone || !queue->seen)
			continue;
		for (uint32_t k = 0; k < i; k++)
			later = later || (o->alters[k].queue == o->alters[i].queue &&
							  queue->owner == SIM_OWNER(o->alters[k].txn));
		if (queue->owner == SIM_OWNER(o->alters[i].txn))
			t->evidence |= THERE;
		else if (later || queue->owner == SIM_FIRST_OWNER)
			t->evidence |= MISSING;
	}
}

/* What is seen of the messages of undecided transactions, and of what they acknowledged. */
static void
collect_evidence(SimOracle *o)
{
	for (uint32_t i = 0; i < o->ntxns; i++)
	{
		SimTxn	   *t = &o->txns[i];

		t->evidence = 0;
		for (uint32_t k = 0; k < t->nmessages && t->fate == SIM_DOUBT; k++)
		{
			const SimMessage *m = &o->messages[t->first_message + k];

			if (observable(o, m))
				t->evidence |= m->seen > 0 ? THERE : MISSING;
		}
	}
	evidence_of_alters(o);
	for (uint32_t i = 0; i < o->nanswers; i++)
	{
		SimTxn	   *t = &o->txns[o->answers[i].txn];
		const SimMessage *m = &o->messages[o->answers[i].message];

		if (t->fate != SIM_DOUBT || m->seen == 0 || !observable(o, m))
			continue;
		if (!m->seen_done || m->seen_died > 0)
			t->evidence |= MISSING;
		else if (m->answered == 0)
			t->evidence |= THERE;
	}
}

static bool
judge_evidence(SimOracle *o)
{
	count_answers(o);
	collect_evidence(o);
	for (uint32_t i = 0; i < o->ntxns; i++)
	{
		SimTxn	   *t = &o->txns[i];

		if (t->fate != SIM_DOUBT)
			continue;
		if (t->evidence == (THERE | MISSING))
			return sim_oracle_complain(o, "transaction %u is there in part only", i);
		if (t->evidence != 0)
			t->fate = t->evidence == THERE ? SIM_IN : SIM_OUT;
	}
	return true;
}

/* ---- what follows ---- */

/* Did somebody who is there push into the queue? */
static bool
pushed_into(const SimOracle *o, uint32_t queue)
{
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		if (o->messages[i].queue == queue && is_in(&o->txns[o->messages[i].txn]))
			return true;
	}
	return false;
}

static bool
judge_queues(SimOracle *o)
{
	for (uint32_t i = 0; i < o->nqueues; i++)
	{
		SimQueue   *queue = &o->queues[i];
		bool		is_auto = queue->creator == SIM_AUTO;
		bool		made = is_auto ? pushed_into(o, i) : is_in(&o->txns[queue->creator]);
		bool		was_dropped = dropped(o, i);

		if (queue->gone)
			continue;
		if (queue->seen && ((!made && !is_auto) || was_dropped))
			return sim_oracle_complain(o, "queue %u with id %llu is there, but %s", queue->name,
									   (unsigned long long) queue->id,
									   was_dropped ? "it was dropped" : "it was not created");
		if (!queue->seen && made && !was_dropped)
			return sim_oracle_complain(o, "queue %u with id %llu is lost", queue->name,
									   (unsigned long long) queue->id);
		queue->gone = !queue->seen;
	}
	return true;
}

/* Every queue has the definition of the newest transaction that is there. */
static bool
judge_alters(SimOracle *o)
{
	for (uint32_t q = 0; q < o->nqueues; q++)
	{
		const SimQueue *queue = &o->queues[q];
		uint32_t	owner = SIM_FIRST_OWNER;

		if (queue->gone || !queue->seen)
			continue;
		for (uint32_t i = 0; i < o->nalters; i++)
		{
			if (o->alters[i].queue == q && is_in(&o->txns[o->alters[i].txn]))
				owner = SIM_OWNER(o->alters[i].txn);
		}
		if (queue->owner != owner)
			return sim_oracle_complain(o, "queue %u is as %u made it, not as %u", q, queue->owner, owner);
	}
	return true;
}

static bool
judge_message(SimOracle *o, uint32_t number, bool lossy)
{
	SimMessage *m = &o->messages[number];
	const SimTxn *t = &o->txns[m->txn];
	uint32_t	index = number - t->first_message;
	bool		answered = m->answered != 0;

	if (!observable(o, m))
		return true;
	if (is_in(t) && m->seen == 0)
		return sim_oracle_complain(o, "message %u of transaction %u is lost%s", index, m->txn,
								   t->fate == SIM_COMMITTED ? ", which was acknowledged" : "");
	if (!is_in(t) && m->seen > 0 && t->fate != SIM_DOUBT)
		return sim_oracle_complain(o, "message %u of transaction %u is there, which did not commit",
								   index, m->txn);
	if (m->seen == 0)
	{
		/* others may take its position */
		m->position = UINT64_MAX;
		return true;
	}
	if (answered && !m->seen_done)
		return sim_oracle_complain(o, "message %u of transaction %u has come back after it was acknowledged",
								   index, m->txn);
	if (answered && m->seen_died > 0)
		return sim_oracle_complain(o, "message %u of transaction %u was acknowledged, and died", index,
								   m->txn);
	if (m->seen_died > 0 && !m->seen_done)
		return sim_oracle_complain(o, "message %u of transaction %u died, and is still there", index,
								   m->txn);
	if (m->died_sure && m->seen_died == 0 && !lossy)
		return sim_oracle_complain(o, "the dead letter of message %u of transaction %u is lost", index,
								   m->txn);
	if (!answered && m->seen_done && m->seen_died == 0)
		return sim_oracle_complain(o, "message %u of transaction %u is done, and nobody acknowledged it",
								   index, m->txn);
	if (m->seen_dead != m->rejected)
		return sim_oracle_complain(o, "message %u of transaction %u has %u copies in the dead lane instead of %u",
								   index, m->txn, m->seen_dead, m->rejected);
	m->settled = answered;
	m->died = m->died_sure = m->seen_died > 0;
	return true;
}

bool
sim_oracle_recovered(SimOracle *o, const SimView *view)
{
	for (uint32_t i = 0; i < o->ntxns && view->lossy; i++)
	{
		if (is_in(&o->txns[i]))
			o->txns[i].fate = SIM_DOUBT;
	}
	if (!match(o, view) || !judge_rows(o, view) || !judge_evidence(o) || !judge_queues(o) ||
		!judge_alters(o))
		return false;
	count_answers(o);
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		if (!judge_message(o, i, view->lossy))
			return false;
	}
	return true;
}
