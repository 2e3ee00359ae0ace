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
#include <string.h>

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

/* Groups are there as the transactions say that changed them. */
static bool
judge_groups(SimOracle *o, const SimView *view)
{
	for (uint32_t i = 0; i < view->nqueues; i++)
	{
		const SimSeenQueue *shown = &view->queues[i];
		const SimQueue *queue = live_queue(o, shown->id);

		for (uint32_t g = 0; g < SIM_GROUPS && queue != NULL && !queue->damaged; g++)
		{
			const SimGroup *group = &queue->groups[g];
			uint64_t	id = group->there ? group->id : UINT64_MAX;

			if (shown->groups[g] != id)
				return sim_oracle_complain(o, "group %u of queue %u has id %lld instead of %lld", g,
										   queue->name, (long long) shown->groups[g],
										   (long long) id);
		}
	}
	return true;
}

/* A dead letter. */
static bool
match_letter(SimOracle *o, SimMessage *m, const SimSeen *seen)
{
	const SimQueue *queue = &o->queues[m->queue];
	SimUse	   *use = &m->uses[seen->group];

	if (!seen->died)
		use->seen_dead++;
	else if (use->seen_died++ > use->resets || (int64_t) seen->attempt != (int64_t) queue->limit + 1)
		return sim_oracle_complain(o, "message %u of transaction %u died at attempt %u, for the %u. time",
								   seen->index, seen->txn, seen->attempt, use->seen_died);
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
		(seen->partition != SIM_DEAD_LANE && seen->partition != SIM_DELAY_LANE &&
		 seen->partition != m->partition))
		return sim_oracle_complain(o, "message %u of transaction %u stands in another queue or partition",
								   seen->index, seen->txn);
	if (seen->partition == SIM_DEAD_LANE)
		return match_letter(o, m, seen);
	if (m->cancelled || (m->due == 0 && seen->partition == SIM_DELAY_LANE))
		return sim_oracle_complain(o, "message %u of transaction %u is there, which was %s", seen->index,
								   seen->txn, m->cancelled ? "cancelled" : "not delayed");
	if (m->due > seen->at && seen->partition != SIM_DELAY_LANE)
		return sim_oracle_complain(o, "message %u of transaction %u has come before its time",
								   seen->index, seen->txn);
	if (seen->partition == SIM_DELAY_LANE)
	{
		if (m->waiting++ > 0 || m->seen > 0)
			return sim_oracle_complain(o, "delayed message %u of transaction %u is there twice",
									   seen->index, seen->txn);
		return true;
	}
	if (m->waiting > 0)
		return sim_oracle_complain(o, "message %u of transaction %u is delayed, and has come",
								   seen->index, seen->txn);
	if (m->seen++ > 0)
		return sim_oracle_complain(o, "message %u of transaction %u is there twice", seen->index,
								   seen->txn);
	if (m->position != UINT64_MAX && m->position != seen->position)
		return sim_oracle_complain(o, "message %u of transaction %u has moved from position %llu to %llu",
								   seen->index, seen->txn, (unsigned long long) m->position,
								   (unsigned long long) seen->position);
	m->position = seen->position;
	m->at = seen->at;
	for (uint32_t g = 0; g < SIM_GROUPS; g++)
	{
		sim_trace(o, "shown: message %u.%u at %llu of queue %u partition %u, group %u, state %d, attempt %u",
				  seen->txn, seen->index, (unsigned long long) seen->position, m->queue, m->partition, g,
				  (int) seen->shown[g].state, seen->shown[g].attempt);
		m->uses[g].state = seen->shown[g].state;
	}
	return true;
}

/* The last attempt told that must have survived. */
static bool
judge_attempt(SimOracle *o, const SimView *view, const SimSeen *seen, uint32_t group)
{
	SimUse	   *use = &o->messages[o->txns[seen->txn].first_message + seen->index].uses[group];
	uint32_t	attempt = seen->shown[group].attempt;
	uint32_t	bound = use->attempt_sure;

	use->untold = attempt > use->attempt;
	if (use->state == SIM_DONE || !live_queue(o, seen->queue)->groups[group].there)
		return true;
	if ((view->machine_lived || use->attempt_told < o->sure) && use->attempt > bound)
		bound = use->attempt;
	if (attempt < bound && !view->lossy)
		return sim_oracle_complain(o, "message %u of transaction %u was at attempt %u in group %u and is at %u",
								   seen->index, seen->txn, bound, group, attempt);
	use->attempt = use->attempt_sure = attempt;
	use->attempt_told = o->clock;
	use->held = use->state == SIM_LEASED;
	return true;
}

static bool
judge_attempts(SimOracle *o, const SimView *view)
{
	for (uint32_t i = 0; i < view->nmessages; i++)
	{
		const SimSeen *seen = &view->messages[i];

		for (uint32_t g = 0; g < SIM_GROUPS && seen->partition < SIM_DELAY_LANE; g++)
		{
			if (!judge_attempt(o, view, seen, g))
				return false;
		}
	}
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

		if (i == 0 || seen->queue != view->messages[i - 1].queue ||
			seen->partition != view->messages[i - 1].partition)
			latest = 0;
		else if (seen->partition < SIM_DELAY_LANE && seen->position <= view->messages[i - 1].position)
			return sim_oracle_complain(o, "positions are shown out of order");
		if (seen->partition >= SIM_DELAY_LANE ||
			o->messages[o->txns[seen->txn].first_message + seen->index].due != 0)
			continue;
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

/* Has retention removed what stands where the message does? */
static bool
in_area(const SimOracle *o, const SimView *view, const SimMessage *m)
{
	for (uint32_t i = 0; i < view->nareas; i++)
	{
		const SimArea *area = &view->areas[i];

		if (area->queue == o->queues[m->queue].id && area->partition == m->partition &&
			m->position >= area->first && m->position < area->end)
			return true;
	}
	return false;
}

/*
 * What was removed is there again, or gone for good; then it counts as seen, and as done where an answer was there when it was
 * removed: nothing else can be known of it.
 */
static bool
match_removed(SimOracle *o, const SimView *view)
{
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		SimMessage *m = &o->messages[i];
		bool		observed = !o->queues[m->queue].gone && o->queues[m->queue].seen &&
			!o->queues[m->queue].damaged;

		if (m->gone && m->seen > 0)
			return sim_oracle_complain(o, "a message of transaction %u has come back after it was removed",
									   m->txn);
		if (observed && m->removed && m->seen == 0 && in_area(o, view, m))
			m->gone = true;
		m->removed = false;
		m->seen = m->gone ? 1 : m->seen;
		for (uint32_t g = 0; g < SIM_GROUPS && m->gone; g++)
			m->uses[g].state = m->uses[g].finished ? SIM_DONE : SIM_UNKNOWN;
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
		SimMessage *m = &o->messages[i];

		m->seen = m->waiting = 0;
		for (uint32_t g = 0; g < SIM_GROUPS; g++)
		{
			m->uses[g].seen_dead = m->uses[g].seen_died = 0;
			m->uses[g].state = SIM_UNKNOWN;
		}
	}
	for (uint32_t i = 0; i < view->nmessages; i++)
	{
		if (!match_message(o, &view->messages[i]))
			return false;
	}
	return match_removed(o, view) && judge_positions(o, view);
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
		{
			t->fate = row ? SIM_IN : SIM_OUT;
			if (row && t->known == 0)
				t->known = o->clock++;
		}
		else if (is_in(t) != row)
			return sim_oracle_complain(o, "the row of transaction %u %s", i,
									   row ? "came from nowhere" : "is lost");
		t->visible = row;
	}
	return true;
}

/* What the server was about to do when it died took effect at the end of recovery, or never will. */
static void
finish_changes(SimOracle *o)
{
	for (uint32_t i = 0; i < o->nchanges; i++)
	{
		SimChange  *change = &o->changes[i];

		if (change->over)
			continue;
		if (!is_in(&o->txns[change->txn]))
			change->over = true;
		else
			sim_oracle_happens(o, i);
	}
}

/* Is anything to be seen of the message, whatever its fate? */
static bool
observable(const SimOracle *o, const SimMessage *m)
{
	const SimQueue *queue = &o->queues[m->queue];

	return !queue->gone && !queue->damaged && (queue->seen || !dropped(o, m->queue)) &&
		(m->seen + m->waiting > 0 || (!m->cancelling && !sim_oracle_purgeable(o, m)));
}

/* Must the group have done what it has not done?	(It is there, and its place is known.) */
static bool
is_known(const SimOracle *o, const SimMessage *m, uint32_t group)
{
	return o->queues[m->queue].groups[group].there && m->uses[group].state != SIM_UNKNOWN;
}

/* May the message be done without anybody having answered? */
static bool
may_be_passed(const SimOracle *o, const SimMessage *m, uint32_t group)
{
	return sim_oracle_passes(o, m, group) != SIM_STANDS || sim_oracle_purgeable(o, m);
}

/* Does the answer count for where the group stands now? */
static bool
answer_counts(const SimOracle *o, const SimAnswer *answer)
{
	const SimMessage *m = &o->messages[answer->message];

	return answer->delivered >= o->queues[m->queue].groups[answer->group].placed_at[m->partition];
}

/*
 * Did the seek that the answer came before take effect in recovery only?	Then the answer may have been put behind it, as both
 * were committing at the same time.
 */
static bool
is_excused(const SimOracle *o, const SimAnswer *answer)
{
	const SimMessage *m = &o->messages[answer->message];
	uint32_t	placed = o->queues[m->queue].groups[answer->group].placed[m->partition];

	return placed != SIM_NONE && o->changes[placed].late;
}

/* Answers of those that are there. */
static void
count_answers(SimOracle *o)
{
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		for (uint32_t g = 0; g < SIM_GROUPS; g++)
			o->messages[i].uses[g].answered = o->messages[i].uses[g].rejected =
				o->messages[i].uses[g].doubtful = o->messages[i].uses[g].excused = 0;
	}
	for (uint32_t i = 0; i < o->nanswers; i++)
	{
		const SimAnswer *answer = &o->answers[i];
		const SimMessage *m = &o->messages[answer->message];
		SimUse	   *use = &o->messages[answer->message].uses[answer->group];
		bool		in = is_in(&o->txns[answer->txn]);

		/* Letters outlive a seek. */
		if (answer->dead && answer->delivered >= o->queues[m->queue].groups[answer->group].since)
		{
			use->rejected = (uint8_t) (use->rejected + in);
			use->doubtful = (uint8_t) (use->doubtful + (o->txns[answer->txn].fate == SIM_DOUBT));
		}
		if (in && answer_counts(o, answer))
			use->answered = 1;
		else if (in && is_excused(o, answer))
			use->excused = 1;
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

/* What is seen of the messages that undecided transactions acknowledged. */
static void
evidence_of_answers(SimOracle *o)
{
	for (uint32_t i = 0; i < o->nanswers; i++)
	{
		const SimAnswer *answer = &o->answers[i];
		SimTxn	   *t = &o->txns[answer->txn];
		const SimMessage *m = &o->messages[answer->message];
		const SimUse *use = &m->uses[answer->group];

		if (t->fate != SIM_DOUBT || m->seen == 0 || !observable(o, m) ||
			!is_known(o, m, answer->group) || !answer_counts(o, answer))
			continue;
		if (answer->dead && use->seen_dead == use->rejected + use->doubtful)
			t->evidence |= THERE;
		else if (answer->dead && use->seen_dead == use->rejected)
			t->evidence |= MISSING;
		if (use->state != SIM_DONE || (use->seen_died > 0 && use->resets == 0))
			t->evidence |= MISSING;
		else if (use->answered == 0 && use->seen_died == 0 && !may_be_passed(o, m, answer->group))
			t->evidence |= THERE;
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
				t->evidence |= m->seen + m->waiting > 0 ? THERE : MISSING;
		}
	}
	evidence_of_alters(o);
	evidence_of_answers(o);
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
		if (t->fate == SIM_IN && t->known == 0)
			t->known = o->clock++;
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

/* A message of which something is seen, as one group has it. */
static bool
judge_use(SimOracle *o, uint32_t number, uint32_t group, bool lossy)
{
	SimMessage *m = &o->messages[number];
	SimUse	   *use = &m->uses[group];
	uint32_t	index = number - o->txns[m->txn].first_message;
	bool		answered = use->answered != 0;
	bool		done = use->state == SIM_DONE;

	if (!is_known(o, m, group))
		return true;
	if (answered && !done)
		return sim_oracle_complain(o, "message %u of transaction %u has come back to group %u after it was acknowledged",
								   index, m->txn, group);
	if (answered && use->seen_died > 0 && use->resets == 0)
		return sim_oracle_complain(o, "message %u of transaction %u was acknowledged, and died", index,
								   m->txn);
	if (use->seen_died > 0 && !done && use->resets == 0)
		return sim_oracle_complain(o, "message %u of transaction %u died, and is still there", index,
								   m->txn);
	if (use->died_sure && use->seen_died == 0 && !lossy)
		return sim_oracle_complain(o, "the dead letter of message %u of transaction %u is lost", index,
								   m->txn);
	if (!answered && done && use->seen_died == 0 && use->excused == 0 && !may_be_passed(o, m, group))
		return sim_oracle_complain(o, "message %u of transaction %u is done in group %u, and nobody acknowledged it",
								   index, m->txn, group);
	if (use->seen_dead < use->rejected || use->seen_dead > use->rejected + use->doubtful)
		return sim_oracle_complain(o, "message %u of transaction %u has %u copies in the dead lane instead of %u",
								   index, m->txn, use->seen_dead, use->rejected);
	if (!done && sim_oracle_passes(o, m, group) == SIM_PASSES)
		return sim_oracle_complain(o, "message %u of transaction %u waits in group %u, which stands behind it",
								   index, m->txn, group);

	/* A purge may have met a consumer that was about to hear of it. */
	use->spared |= !done && m->purged != 0 && use->untold;
	if (!done && m->purged != 0 && !use->spared)
		return sim_oracle_complain(o, "message %u of transaction %u waits in group %u after a purge",
								   index, m->txn, group);
	use->settled = answered || (done && use->excused != 0);
	use->died = use->seen_died > 0 && done && !answered;
	use->died_sure = use->seen_died > 0;
	return true;
}

/* A message is in the delay lane: what is durable of it is that it never was anywhere else. */
static bool
judge_waiting(SimOracle *o, SimMessage *m, uint32_t index, bool lossy)
{
	for (uint32_t g = 0; g < SIM_GROUPS; g++)
	{
		const SimUse *use = &m->uses[g];

		if (!lossy && (use->settled || use->attempt_sure > 0 ||
					   (use->attempt > 0 && use->attempt_told < o->sure)))
			return sim_oracle_complain(o, "message %u of transaction %u was delivered, and is delayed again",
									   index, m->txn);
	}
	memset(m->uses, 0, sizeof(m->uses));
	return true;
}

static bool
judge_message(SimOracle *o, uint32_t number, bool lossy)
{
	SimMessage *m = &o->messages[number];
	const SimTxn *t = &o->txns[m->txn];
	uint32_t	index = number - t->first_message;

	if (!observable(o, m))
		return true;
	if (is_in(t) && m->seen + m->waiting == 0)
		return sim_oracle_complain(o, "message %u of transaction %u is lost%s", index, m->txn,
								   t->fate == SIM_COMMITTED ? ", which was acknowledged" : "");
	if (!is_in(t) && m->seen + m->waiting > 0 && t->fate != SIM_DOUBT)
		return sim_oracle_complain(o, "message %u of transaction %u is there, which did not commit",
								   index, m->txn);
	if (m->seen == 0)
	{
		/* others may take its position */
		m->position = UINT64_MAX;
		return m->waiting == 0 || judge_waiting(o, m, index, lossy);
	}
	for (uint32_t g = 0; g < SIM_GROUPS; g++)
	{
		if (!judge_use(o, number, g, lossy))
			return false;
	}
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
	if (!match(o, view) || !judge_rows(o, view))
		return false;
	finish_changes(o);
	if (!judge_attempts(o, view) || !judge_evidence(o) || !judge_queues(o) || !judge_alters(o) ||
		!judge_groups(o, view))
		return false;
	count_answers(o);
	for (uint32_t i = 0; i < o->nmessages; i++)
	{
		if (!judge_message(o, i, view->lossy))
			return false;
	}
	return true;
}
