/*
 * qc_retain_judge.c
 *		Retention: which messages of a partition may go.
 */
#include "qc_retain.h"

#include "qc_cursor.h"
#include "qc_group.h"
#include "qc_mutant.h"
#include "qc_plan.h"
#include "qc_purge.h"

#define SLOTS_MAX 4096			/* looked at by one judgement, all groups together */

/* What a group has not finished of a partition: its slots, and everything from `reach` on. */
typedef struct Standing
{
	QcGroup    *group;
	uint64_t	reach;
	QcRef		slot;			/* next one to look at; those before it lie below */
} Standing;

typedef struct Judge
{
	QcState    *st;
	QcPartition *partition;
	uint64_t	done_to;
	uint64_t	any_to;
	uint32_t	budget;			/* slots that may still be looked at */
	uint32_t	count_budget;	/* ... to count them */
	uint32_t	n;
	Standing	standing[QC_GROUPS_MAX];
} Judge;

/* Where a live group stands. */
static uint64_t
reach_of(QcState *st, const QcPartition *partition, const QcGroup *group)
{
	const QcCursor *cursor = qc_cursor_of(st, partition, group);
	uint64_t	position;

	if (cursor != NULL && cursor->fetch != QC_UNSET)
		position = cursor->fetch;
	else if (!qc_group_start(group, partition, &position))
		position = partition->start;
	return position < partition->stable ? position : partition->stable;
}

static void
begin(Judge *j, const QcRetainBounds *bounds)
{
	const QcQueue *queue = QC_AT(j->st, QcQueue, j->partition->queue);
	uint64_t	stable = j->partition->stable;

	j->done_to = bounds->done_to < stable ? bounds->done_to : stable;
	j->any_to = bounds->any_to < stable ? bounds->any_to : stable;
	for (QcGroup *group = QC_AT(j->st, QcGroup, queue->groups); group != NULL;
		 group = QC_AT(j->st, QcGroup, group->next))
	{
		Standing   *standing = &j->standing[j->n];
		const QcCursor *cursor = qc_cursor_of(j->st, j->partition, group);

		if (group->state != QC_GROUP_LIVE || j->n == QC_GROUPS_MAX)
			continue;
		standing->group = group;
		standing->reach = reach_of(j->st, j->partition, group);
		standing->slot = cursor == NULL ? 0 : cursor->slots.head;
		if (standing->reach < j->done_to)
			j->done_to = standing->reach;
		j->n++;
	}

	/* Nobody has finished anything in a queue without groups. */
	if (j->n == 0)
		j->done_to = 0;
}

/* Does the slot keep its message? */
static bool
keeps(const Judge *j, const QcSlot *slot)
{
	if (QC_MUTATED(QC_MUTANT_RETAIN_HELD))
		return false;
	return slot->position >= j->any_to || slot->state == QC_SLOT_LEASED ||
		slot->state == QC_SLOT_DYING;
}

/* First position of a group's slots at or above p that is kept, `end` when there is none below. */
static uint64_t
next_of_group(Judge *j, Standing *standing, uint64_t p, uint64_t end)
{
	QcSlot	   *slot;

	while ((slot = QC_AT(j->st, QcSlot, standing->slot)) != NULL && slot->position < end)
	{
		if (slot->position >= p && keeps(j, slot))
			return slot->position;

		/* Too many: as if this one were kept. */
		if (j->budget == 0)
			return slot->position < p ? p : slot->position;
		j->budget--;
		standing->slot = slot->of_cursor.next;
	}
	return end;
}

/* The first kept message at or above p, `end` when there is none below. */
static uint64_t
next_kept(Judge *j, uint64_t p, uint64_t end)
{
	for (uint32_t i = 0; i < j->n; i++)
		end = next_of_group(j, &j->standing[i], p, end);
	return end;
}

/* Messages of [from, end), which are all visible. */
static uint64_t
messages(const Judge *j, uint64_t from, uint64_t end)
{
	return from >= end ? 0 : end - from - qc_range_covered(j->st, j->partition, from, end);
}

/* Slots of the group at [from, end) that no lease holds; fewer when there are too many to look at. */
static uint64_t
waiting(Judge *j, const QcGroup *group, uint64_t from, uint64_t end)
{
	const QcCursor *cursor = qc_cursor_of(j->st, j->partition, group);
	uint64_t	n = 0;

	for (QcRef ref = cursor == NULL ? 0 : cursor->slots.head; ref != 0;
		 ref = QC_AT(j->st, QcSlot, ref)->of_cursor.next)
	{
		const QcSlot *slot = QC_AT(j->st, QcSlot, ref);

		if (slot->position >= end || j->count_budget == 0)
			break;
		j->count_budget--;
		n += slot->position >= from && slot->state != QC_SLOT_LEASED;
	}
	return n;
}

/* Messages of [from, end) that the group with most of them has not finished. */
static uint64_t
unread(Judge *j, uint64_t from, uint64_t end)
{
	uint64_t	most = 0;

	if (end > j->any_to)
		end = j->any_to;
	for (uint32_t i = 0; i < j->n && from < end; i++)
	{
		const Standing *standing = &j->standing[i];
		uint64_t	n = messages(j, standing->reach > from ? standing->reach : from, end) +
			waiting(j, standing->group, from, end);

		most = n > most ? n : most;
	}

	/* With no group at all nobody has. */
	return j->n == 0 ? messages(j, from, end) : most;
}

/* Is it worth a range of its own? */
static bool
is_worth(const Judge *j, uint64_t from, uint64_t end)
{
	const QcPartition *partition = j->partition;

	return from < j->any_to || partition->next == 0 ||
		(double) partition->bytes / (double) partition->next * (double) (end - from) >=
		QC_RECORD_RAW_TARGET;
}

/* Put the parts of [from, end) that are not in ranges yet. */
static void
put_ranges(Judge *j, QcRetainVerdict *verdict, uint64_t from, uint64_t end)
{
	while ((from = qc_skip_aborted(j->st, j->partition, from)) < end && !verdict->more)
	{
		uint64_t	stop = qc_range_next(j->st, j->partition, from);
		QcRetainRange *range = &verdict->ranges[verdict->nranges];

		if (stop > end)
			stop = end;
		if (stop - from > UINT32_MAX)
			stop = from + UINT32_MAX;
		if (is_worth(j, from, stop))
		{
			verdict->more = verdict->nranges == QC_RETAIN_RANGES;
			if (verdict->more)
				return;
			range->first = from;
			range->count = (uint32_t) (stop - from);
			range->unread = (uint32_t) unread(j, from, stop);
			verdict->nranges++;
		}
		from = stop;
	}
}

bool
qc_retain_judge(QcState *st, QcPartition *partition, const QcRetainBounds *bounds,
				QcRetainVerdict *verdict)
{
	Judge		j = {.st = st, .partition = partition, .budget = SLOTS_MAX,
		.count_budget = SLOTS_MAX};
	uint64_t	end;
	uint64_t	kept;

	qc_partition_touch(st, partition);
	verdict->nranges = 0;
	verdict->more = false;
	begin(&j, bounds);
	end = j.done_to > j.any_to ? j.done_to : j.any_to;
	kept = next_kept(&j, partition->start, end);
	verdict->start = kept < partition->start ? partition->start :
		qc_skip_aborted(st, partition, kept);
	verdict->unread = unread(&j, partition->start, verdict->start);
	while (kept < end && j.budget > 0 && !verdict->more)
	{
		uint64_t	from = kept + 1;

		kept = next_kept(&j, from, end);
		put_ranges(&j, verdict, from, kept);
	}
	return verdict->start > partition->start || verdict->nranges > 0;
}
