/*
 * sim_retain.c
 *		Retention in a simulated server: messages that are done go, and sometimes old ones that nobody has read.
 *
 * The steps of src/pg/wrk_retention.c.	 How old messages are is not simulated: where an age decides, the edge is drawn by lot,
 * as if a search had found it.
 */
#include "sim_server.h"

#include "qc_cursor.h"
#include "qc_purge.h"
#include "qc_retain_pass.h"

#define READ_MAX	24			/* unread messages that one step takes */
#define NOTES_MAX	8			/* partitions: segments are small here */
#define AGES_MAX	400			/* messages whose age one step looks at */
#define EFFECTS_MAX 1000		/* bytes for these */

typedef struct Retain
{
	QcRetainStep step;
	bool		unread;			/* the first note takes unread messages */
} Retain;

/* Read the first messages of the partition, so that the oracle knows what goes, and nothing else; false = they cannot be read. */
static bool
show(SimProc *p, const QcRetainNote *note, uint64_t *end)
{
	QcState    *st = p->server->st;
	uint64_t	position = note->low;

	*end = note->low;
	for (uint32_t i = 0; i < READ_MAX && position < note->high; i++, position++)
	{
		QcPartition *partition = qc_partition_by_id(st, note->partition);
		QcRef		hint = 0;
		SimPlace	place;
		SimSeen		seen;

		if (partition == NULL)
			return false;
		position = qc_skip_aborted(st, partition, position);
		if (position >= note->high)
			break;
		sim_place(st, partition, position, 0, &hint, &place);
		if (!sim_write(p, st->seq) || !sim_read(p, &place, &seen))
			return false;
		if (!sim_oracle_shown(p->world->oracle, &seen))
			return false;
		*end = position + 1;
	}
	return true;
}

/* Choose a partition from which anything may go, up to some position. */
static void
choose_unread(SimProc *p, Retain *retain)
{
	QcState    *st = p->server->st;
	QcRetainNote *note = &retain->step.notes[0];
	uint64_t	n = sim_below(p->world, 3);

	retain->step.n = 0;
	retain->step.nranges = QC_RETAIN_RANGES;
	for (QcQueue *queue = QC_AT(st, QcQueue, st->queues.head); queue != NULL;
		 queue = QC_AT(st, QcQueue, queue->all.next))
	{
		for (QcPartition *partition = QC_AT(st, QcPartition, queue->partitions.head);
			 partition != NULL; partition = QC_AT(st, QcPartition, partition->of_queue.next))
		{
			if (retain->step.n > 0 || partition->lane != QC_LANE_NONE || queue->damaged ||
				partition->start >= partition->stable || (n > 0 && n-- > 0))
				continue;
			*note = (QcRetainNote)
			{
				.partition = partition->id, .low = partition->start, .high = partition->stable,
				.done.before = INT64_MAX,.any.before = 1
			};
			retain->step.n = 1;
		}
	}
	if (retain->step.n == 0)
		return;
	note->any.found = show(p, note, &note->any.position);
	if (note->any.position > note->low && sim_chance(p->world, 50))
		note->any.position = note->low + sim_below(p->world, note->any.position - note->low + 1);
	retain->unread = note->any.found;
}

/* Let go no more than what the oracle knows. */
static void
limit_done(SimProc *p, QcRetainStep *step)
{
	for (uint32_t i = 0; i < step->n; i++)
	{
		QcRetainNote *note = &step->notes[i];

		note->done = (QcRetainEdge)
		{
			.before = 1
		};
		note->done.found = show(p, note, &note->done.position);
	}
}

/* The first message that was pushed at the time or later, as far as they can be read now; the oracle learns of those before. */
static void
find_edge(SimProc *p, const QcRetainNote *note, QcRetainEdge *edge)
{
	QcState    *st = p->server->st;
	uint64_t	position = note->low;
	QcRef		hint = 0;

	if (edge->before == INT64_MIN)
		return;
	edge->found = true;
	edge->position = edge->before == INT64_MAX ? note->high : note->low;
	for (uint32_t i = 0; i < AGES_MAX && edge->before != INT64_MAX; i++)
	{
		QcPartition *partition = qc_partition_by_id(st, note->partition);
		SimPlace	place;
		SimSeen		seen;

		if (partition != NULL)
			position = qc_skip_aborted(st, partition, position);
		if (partition == NULL || position >= note->high)
			break;
		sim_place(st, partition, position, 0, &hint, &place);
		if (!sim_write(p, st->seq) || !sim_read(p, &place, &seen) || seen.at >= edge->before ||
			!sim_oracle_shown(p->world->oracle, &seen))
			break;
		edge->position = ++position;
	}
	edge->before = 1;
}

/* Tell the oracle what goes of one partition. */
static void
tell(SimProc *p, const QcPartition *partition, uint64_t first, uint64_t end, uint64_t unread_to)
{
	QcState    *st = p->server->st;
	uint32_t	number = sim_name_number(qc_name_at(st, partition->name), partition->name_len);

	for (uint64_t at = qc_skip_aborted(st, partition, first); at < end;
		 at = qc_skip_aborted(st, partition, at + 1))
		(void) sim_oracle_removed(p->world->oracle, QC_AT(st, QcQueue, partition->queue)->id,
								  number, at, at < unread_to);
}

/*
 * Is everything that has been settled in the WAL for good?	 In a server it is, as it makes joint commits synchronous; here
 * some are not, and what they have finished must not go before them.
 */
static bool
settled_for_good(const SimProc *p)
{
	QcState    *st = p->server->st;

	for (const QcOpen *open = QC_AT(st, QcOpen, st->opens.head); open != NULL;
		 open = QC_AT(st, QcOpen, open->all.next))
	{
		if (open->decided == 1 && open->lsn > sim_wal_flushed(&p->world->wal))
			return false;
	}
	return true;
}

/* SimChoose: what still goes. */
static bool
put_step(void *context, SimProc *p, QcSmallPlan *small)
{
	Retain	   *retain = context;
	QcState    *st = p->server->st;
	QcWriter	w = qc_plan_small_writer(small);
	uint32_t	effects;

	if (!settled_for_good(p))
		return false;

	/* Ages are drawn by lot. */
	for (uint32_t i = 0; i < retain->step.n; i++)
	{
		QcPartition *partition = qc_partition_by_id(st, retain->step.notes[i].partition);

		if (partition != NULL)
			partition->done_floor = partition->any_floor = 0;
	}
	effects = qc_retain_put(st, &retain->step, &w);
	if (effects == 0)
		return false;
	qc_plan_small_done(small, &w, effects);
	for (uint32_t i = 0; i < retain->step.n; i++)
	{
		const QcRetainVerdict *verdict = &retain->step.verdicts[i];
		const QcRetainNote *note = &retain->step.notes[i];
		QcPartition *partition = qc_partition_by_id(st, note->partition);
		uint64_t	unread_to = (retain->unread || p->world->config.ages) && note->any.found ? note->any.position : 0;

		tell(p, partition, partition->start, verdict->start, unread_to);
		for (uint32_t r = 0; r < verdict->nranges; r++)
			tell(p, partition, verdict->ranges[r].first,
				 verdict->ranges[r].first + verdict->ranges[r].count, unread_to);
	}
	return true;
}

void
sim_retain(SimProc *p)
{
	SimServer  *server = p->server;
	Retain	   *retain = sim_arena_take(&p->arena, sizeof(Retain));
	QcSmallPlan *small = sim_arena_take(&p->arena, sizeof(QcSmallPlan));

	retain->step.now = p->world->now;
	qc_retain_begin(server->st);
	(void) qc_retain_look(server->st, &retain->step);
	if (sim_chance(p->world, p->world->config.expire))
		choose_unread(p, retain);
	if (retain->step.n == 0)
		return;
	sim_pause(p);
	if (retain->step.n > NOTES_MAX)
		retain->step.n = NOTES_MAX;
	for (uint32_t i = 0; i < retain->step.n && p->world->config.ages; i++)
	{
		find_edge(p, &retain->step.notes[i], &retain->step.notes[i].done);
		find_edge(p, &retain->step.notes[i], &retain->step.notes[i].any);
	}
	if (!p->world->config.ages)
		limit_done(p, &retain->step);
	if (retain->step.nranges > QC_RETAIN_RANGES)
		retain->step.nranges = QC_RETAIN_RANGES;
	qc_plan_small(small, sim_arena_take(&p->arena, QC_SMALL_BUFFER(EFFECTS_MAX)), EFFECTS_MAX);
	small->plan.needs.npending = retain->step.nranges;
	(void) sim_submit(p, small, put_step, NULL, retain);
}
