/*
 * portrait.c
 *		What a state means, as text.
 */
#include "portrait.h"

#include "qc_cursor.h"
#include "qc_group.h"
#include "qc_lane.h"
#include "qc_lease.h"
#include "qc_purge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Paper
{
	char	   *text;
	size_t		len;
	size_t		cap;
} Paper;

static void
say(Paper *paper, const char *format,...)
{
	char		line[500];
	va_list		args;
	int			n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (paper->len + (size_t) n + 1 > paper->cap)
	{
		paper->cap = paper->cap * 2 + 4096;
		paper->text = realloc(paper->text, paper->cap);
	}
	memcpy(paper->text + paper->len, line, (size_t) n + 1);
	paper->len += (size_t) n;
}

/* Where a group stands in a partition, and what it has in flight there. */
static void
draw_standing(QcState *st, Paper *paper, const QcPartition *partition, const QcGroup *group)
{
	const QcCursor *cursor = qc_cursor_of(st, partition, group);
	uint64_t	position = 0;

	if (!qc_group_lacks(st, partition, group))
		position = cursor->fetch;
	else if (!qc_group_start(group, partition, &position))
	{
		say(paper, "      group %" PRIu64 " begins by time %" PRId64 "\n", group->id, group->start_at);
		return;
	}
	if (position < partition->start)
		position = partition->start;
	if (position > partition->next)
		position = partition->next;
	position = qc_skip_aborted(st, partition, position);
	say(paper, "      group %" PRIu64 " at %" PRIu64 "\n", group->id, position);
	for (QcRef ref = cursor == NULL ? 0 : cursor->slots.head; ref != 0;
		 ref = QC_AT(st, QcSlot, ref)->of_cursor.next)
	{
		const QcSlot *slot = QC_AT(st, QcSlot, ref);

		say(paper, "        %" PRIu64 " state %u attempt %u lease %" PRIu64 "\n", slot->position,
			slot->state, slot->attempt,
			slot->lease == 0 ? 0 : QC_AT(st, QcLease, slot->lease)->id);
	}
}

static void
draw_lane(QcState *st, Paper *paper, const QcPartition *partition)
{
	for (QcRef ref = partition->items.head; ref != 0; ref = QC_AT(st, QcLaneItem, ref)->of_lane.next)
	{
		const QcLaneItem *item = QC_AT(st, QcLaneItem, ref);

		say(paper, "      message %" PRIu64 " state %u reason %u of %" PRIu64 " %" PRIu64
			" attempt %u\n", item->position, item->state, item->reason, item->target, item->origin,
			item->attempt);
	}
}

/* Positions without messages from the start on; neighbours are one, whatever the state knows of them. */
static void
draw_ranges(QcState *st, Paper *paper, const QcPartition *partition)
{
	uint64_t	p = partition->start;

	while (p < partition->next)
	{
		uint64_t	end = qc_skip_aborted(st, partition, p);

		if (end > p)
			say(paper, "      nothing at %" PRIu64 " + %" PRIu64 "\n", p, end - p);
		p = end > p ? end : p + 1;
	}
}

/* By ids, whatever the order of the lists. */
static void
draw_partitions(QcState *st, Paper *paper, const QcQueue *queue)
{
	for (uint64_t id = 1; id < st->next_partition_id; id++)
	{
		QcPartition *partition = qc_partition_by_id(st, id);

		if (partition == NULL || QC_AT(st, QcQueue, partition->queue) != queue)
			continue;
		qc_partition_touch(st, partition);
		say(paper, "    partition %" PRIu64 " '%.*s' lane %u start %" PRIu64 " next %" PRIu64
			" stable %" PRIu64 " visible %" PRIu64 "\n", id, (int) partition->name_len,
			qc_name_at(st, partition->name), partition->lane, partition->start, partition->next,
			partition->stable, partition->visible);
		draw_ranges(st, paper, partition);
		draw_lane(st, paper, partition);
		for (uint32_t g = 0; g < queue->next_group && partition->lane == 0; g++)
		{
			const QcGroup *group = qc_group_by_id(st, queue, g);

			if (group != NULL && group->state == QC_GROUP_LIVE)
				draw_standing(st, paper, partition, group);
		}
	}
}

static void
draw_groups(QcState *st, Paper *paper, const QcQueue *queue)
{
	for (uint32_t g = 0; g < queue->next_group; g++)
	{
		const QcGroup *group = qc_group_by_id(st, queue, g);

		if (group == NULL)
			continue;
		say(paper, "    group %" PRIu64 " '%.*s' state %u leased %" PRIu64 " acked %" PRIu64
			" redelivered %" PRIu64 " dead lane %" PRIu64 "\n", group->id, (int) group->name_len,
			group->name == 0 ? "" : qc_name_at(st, group->name), group->state, group->nleased,
			group->acked, group->redelivered, group->dead_partition);
	}
}

static void
draw_queue(QcState *st, Paper *paper, const QcQueue *queue)
{
	say(paper, "  queue %" PRIu64 " '%.*s' state %u damaged %u owner %u flags %u altered %" PRIu64
		" visible %" PRIu64 " pushed %" PRIu64 " popped %" PRIu64 " acked %" PRIu64 " nacked %" PRIu64
		" expired %" PRIu64 " dead %" PRIu64 "\n", queue->id, (int) queue->name_len,
		qc_name_at(st, queue->name), queue->state, queue->damaged, queue->owner, queue->flags,
		queue->altered_seq, queue->visible, queue->pushed, queue->popped, queue->acked,
		queue->nacked, queue->expired, queue->dead);
	for (int i = 0; i < QC_OPTION_COUNT_; i++)
	{
		if (queue->options.set & 1u << i)
			say(paper, "    %s = %" PRId64 "\n", qc_option_info((QcOption) i)->name,
				queue->options.value[i]);
	}
	for (QcRef ref = queue->grants; ref != 0; ref = QC_AT(st, QcGrant, ref)->next)
		say(paper, "    grant %u by %u: %u\n", QC_AT(st, QcGrant, ref)->grantee,
			QC_AT(st, QcGrant, ref)->grantor, QC_AT(st, QcGrant, ref)->privileges);
	draw_groups(st, paper, queue);
	draw_partitions(st, paper, queue);
}

static int
compare_ids(const void *a, const void *b)
{
	uint64_t	left = *(const uint64_t *) a;
	uint64_t	right = *(const uint64_t *) b;

	return (left > right) - (left < right);
}

static void
draw_leases(QcState *st, Paper *paper)
{
	uint64_t   *ids = malloc((st->lease_ids.count + 1) * sizeof(uint64_t));
	uint32_t	n = 0;

	for (QcRef ref = st->leases.head; ref != 0; ref = QC_AT(st, QcLease, ref)->all.next)
	{
		const QcLease *lease = QC_AT(st, QcLease, ref);

		if (!qc_lease_gone(st, lease) && QC_AT(st, QcQueue, lease->queue)->state != QC_QUEUE_DEAD)
			ids[n++] = lease->id;
	}
	qsort(ids, n, sizeof(ids[0]), compare_ids);
	for (uint32_t i = 0; i < n; i++)
	{
		const QcLease *lease = qc_lease_by_id(st, ids[i]);

		say(paper, "  lease %" PRIu64 " group %" PRIu64 " holds %u of %u, acked %u, committed %u, for %"
			PRId64 ", pinned by %" PRIu64 "\n", lease->id, QC_AT(st, QcGroup, lease->group)->id,
			lease->nslots, lease->taken, lease->acked, lease->committed, lease->lease_us,
			lease->pin_seq);
	}
	free(ids);
}

char *
portrait(QcState *st)
{
	Paper		paper = {0};

	say(&paper, "seq %" PRIu64 " confirmed %" PRIu64 " open %u next queue %" PRIu64
		" next partition %" PRIu64 "\n", st->seq, st->confirmed_seq, st->nopens, st->next_queue_id,
		st->next_partition_id);
	for (uint64_t id = 1; id < st->next_queue_id; id++)
	{
		const QcQueue *queue = qc_queue_by_id(st, id);

		if (queue != NULL && queue->state != QC_QUEUE_DEAD)
			draw_queue(st, &paper, queue);
	}
	draw_leases(st, &paper);
	return paper.text;
}

/* ---- counts ---- */

typedef struct Counts
{
	uint64_t	ready;
	uint64_t	leased;
	uint64_t	waiting;
	uint64_t	unscanned;
	uint64_t	full;
} Counts;

static void
count_slots(QcState *st, const QcCursor *cursor, Counts *counts)
{
	for (QcRef ref = cursor->slots.head; ref != 0; ref = QC_AT(st, QcSlot, ref)->of_cursor.next)
	{
		const QcSlot *slot = QC_AT(st, QcSlot, ref);

		counts->leased += slot->state == QC_SLOT_LEASED;
		counts->waiting += slot->state == QC_SLOT_WAITING || slot->state == QC_SLOT_DYING;
		counts->ready += slot->state == QC_SLOT_RETRY;
	}
}

static uint64_t
count_visible(const QcState *st, const QcPartition *partition, uint64_t from)
{
	uint64_t	n = 0;

	for (uint64_t p = from < partition->start ? partition->start : from; p < partition->stable; p++)
		n += qc_skip_aborted(st, partition, p) == p;
	return n;
}

static bool
fits(const char *what, uint64_t queue, uint64_t group, uint64_t got, uint64_t want)
{
	if (got != want)
		printf("# queue %" PRIu64 ", group %" PRIu64 ": %s is %" PRIu64 " instead of %" PRIu64 "\n",
			   queue, group, what, got, want);
	return got == want;
}

static bool
group_counts(QcState *st, const QcQueue *queue, const QcGroup *group)
{
	Counts		counts = {0};
	bool		good;

	for (QcRef ref = queue->partitions.head; ref != 0; ref = QC_AT(st, QcPartition, ref)->of_queue.next)
	{
		QcPartition *partition = QC_AT(st, QcPartition, ref);

		if (partition->lane != QC_LANE_NONE)
			continue;
		qc_partition_touch(st, partition);
		if (!qc_group_lacks(st, partition, group))
		{
			const QcCursor *cursor = qc_cursor_of(st, partition, group);

			count_slots(st, cursor, &counts);
			counts.full += cursor->nslots >= st->max_slots;
			counts.ready += count_visible(st, partition, cursor->fetch);
		}
		else if (group->start != QC_START_NEW)
			counts.unscanned += count_visible(st, partition, 0);
	}
	good = fits("ready", queue->id, group->id, group->nready, counts.ready);
	good = fits("leased", queue->id, group->id, group->nleased, counts.leased) && good;
	good = fits("waiting", queue->id, group->id, group->nwaiting, counts.waiting) && good;
	good = fits("full", queue->id, group->id, group->nfull, counts.full) && good;
	return fits("unscanned", queue->id, group->id, group->unscanned, counts.unscanned) && good;
}

bool
portrait_counts(QcState *st)
{
	bool		good = true;

	for (uint64_t id = 1; id < st->next_queue_id; id++)
	{
		const QcQueue *queue = qc_queue_by_id(st, id);
		uint64_t	visible = 0;

		if (queue == NULL || queue->state == QC_QUEUE_DEAD)
			continue;
		for (QcRef ref = queue->groups; ref != 0; ref = QC_AT(st, QcGroup, ref)->next)
		{
			if (QC_AT(st, QcGroup, ref)->state == QC_GROUP_LIVE)
				good = group_counts(st, queue, QC_AT(st, QcGroup, ref)) && good;
		}
		for (QcRef ref = queue->partitions.head; ref != 0;
			 ref = QC_AT(st, QcPartition, ref)->of_queue.next)
		{
			if (QC_AT(st, QcPartition, ref)->lane == QC_LANE_NONE)
				visible += count_visible(st, QC_AT(st, QcPartition, ref), 0);
		}
		good = fits("visible", queue->id, 0, queue->visible, visible) && good;
	}
	return good;
}

/* ---- comparing ---- */

/* Print the line that text is in. */
static void
print_line(const char *label, const char *text)
{
	printf("#   %s: %.*s\n", label, (int) strcspn(text, "\n"), text);
}

bool
portrait_same(const char *got, const char *want, const char *what)
{
	size_t		line = 0;

	if (strcmp(got, want) == 0)
		return true;
	for (size_t i = 0; got[i] == want[i]; i++)
	{
		if (got[i] == '\n')
			line = i + 1;
	}
	printf("# %s:\n", what);
	print_line("is", got + line);
	print_line("instead of", want + line);
	return false;
}
