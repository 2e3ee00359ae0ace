/*
 * group_compare.c
 *		Is the state what the model of consumer groups says?
 */
#include "group_compare.h"

#include "qc_glance.h"
#include "qc_group.h"
#include "qc_purge.h"

typedef struct Compare
{
	QcState    *st;
	const Model *model;
	GroupFault	fault;			/* the first one */
} Compare;

uint64_t
group_partition_id(int partition)
{
	return partition == 0 ? 101 : 110 + (uint64_t) partition;
}

static bool
expect(Compare *c, const char *what, uint64_t actual, uint64_t expected)
{
	if (actual != expected && c->fault.what == NULL)
		c->fault = (GroupFault)
	{
		what, actual, expected
	};
	return actual == expected;
}

static void
compare_slots(Compare *c, const QcCursor *cursor, int group, int partition)
{
	const QcSlot *slot = QC_AT(c->st, QcSlot, cursor->slots.head);

	for (uint64_t p = 0; p < c->model->partitions[partition].next; p++)
	{
		const ModelDelivery *d = &c->model->groups[group].deliveries[partition][p];

		if (d->flight == MODEL_NOT_IN_FLIGHT)
			continue;
		if (!expect(c, "a message in flight", slot == NULL ? UINT64_MAX : slot->position, p))
			return;
		(void) expect(c, "its attempt", slot->attempt, d->attempt);
		(void) expect(c, "its lease",
					  slot->lease == 0 ? 0 : QC_AT(c->st, QcLease, slot->lease)->id,
					  d->flight == MODEL_LEASED ? d->lease : 0);
		slot = QC_AT(c->st, QcSlot, slot->of_cursor.next);
	}
	(void) expect(c, "a message in flight that should be none", slot != NULL, false);
}

/* Where the group stands in the partition, with or without a cursor. */
static void
compare_cursor(Compare *c, const QcGroup *group, int g, int partition)
{
	QcPartition *p = qc_partition_by_id(c->st, group_partition_id(partition));
	const QcCursor *cursor = qc_cursor_of(c->st, p, group);
	uint64_t	fetch;

	if (cursor != NULL && cursor->fetch != QC_UNSET)
	{
		fetch = cursor->fetch;
		compare_slots(c, cursor, g, partition);
	}
	else if (!qc_group_start(group, p, &fetch))
		return;					/* only the messages can tell */
	fetch = fetch < p->start ? p->start : fetch > p->next ? p->next : fetch;
	(void) expect(c, "where a group stands", model_skip(c->model, partition, fetch),
				  model_skip(c->model, partition, c->model->groups[g].fetch[partition]));
}

/* What pops can take of the partition, and the first message that is not finished: *first, UINT64_MAX = none. */
static uint64_t
count_ready(const Model *model, int g, int partition, uint64_t *first)
{
	const ModelGroup *group = &model->groups[g];
	uint64_t	n = model_visible(model, partition, group->fetch[partition]);

	*first = n == 0 ? UINT64_MAX : model_skip(model, partition, group->fetch[partition]);
	for (uint64_t i = model->partitions[partition].next; i-- > 0;)
	{
		ModelFlight flight = group->deliveries[partition][i].flight;

		if (flight != MODEL_NOT_IN_FLIGHT)
			*first = i;
		n += flight == MODEL_RETRY;
	}
	return n;
}

/* What views show, with partitions as they are. */
static void
compare_glances(Compare *c, const QcGroup *group, int g)
{
	QcGlance	oldest[3];
	uint64_t	first[MODEL_PARTITIONS];
	uint64_t	lowest = UINT64_MAX;

	/* By time, what has not been looked at counts from the oldest message on. */
	if (qc_group_scanning(group) && group->start == QC_START_TIME)
		return;
	for (int k = 0; k < MODEL_PARTITIONS; k++)
	{
		const QcPartition *p = qc_partition_by_id(c->st, group_partition_id(k));

		(void) expect(c, "messages of a partition that are ready", qc_glance_ready(c->st, group, p),
					  count_ready(c->model, g, k, &first[k]));
		if (first[k] < lowest)
			lowest = first[k];
	}
	if (!expect(c, "an oldest message", qc_glance_oldest(c->st, group, oldest),
				lowest != UINT64_MAX) || lowest == UINT64_MAX)
		return;
	for (int k = 0; k < MODEL_PARTITIONS; k++)
	{
		if (oldest[0].partition->id == group_partition_id(k))
			(void) expect(c, "the oldest message", oldest[0].position, first[k]);
	}
}

static uint64_t
count_leased(const Model *model, int g)
{
	uint64_t	n = 0;

	for (int k = 0; k < MODEL_PARTITIONS; k++)
	{
		for (uint64_t i = 0; i < model->partitions[k].next; i++)
			n += model->groups[g].deliveries[k][i].flight == MODEL_LEASED;
	}
	return n;
}

static void
compare_group(Compare *c, const QcQueue *queue, int g, bool whole)
{
	const ModelGroup *expected = &c->model->groups[g];
	const QcGroup *group = qc_group_by_id(c->st, queue, expected->id);
	uint64_t	lag;

	if (!expect(c, "a group", group != NULL && group->state == QC_GROUP_LIVE, expected->alive) ||
		!expected->alive)
		return;
	for (int k = 0; k < MODEL_PARTITIONS && whole; k++)
		compare_cursor(c, group, g, k);
	compare_glances(c, group, g);
	(void) expect(c, "leased messages", group->nleased, count_leased(c->model, g));

	/* By time or position, what has not been looked at counts from the oldest message on. */
	lag = qc_group_lag(group);
	if (!qc_group_scanning(group) || group->start == QC_START_OLDEST ||
		lag < model_lag(c->model, g))
		(void) expect(c, "the lag", lag, model_lag(c->model, g));
}

static void
compare_partition(Compare *c, int partition)
{
	QcPartition *p = qc_partition_by_id(c->st, group_partition_id(partition));

	qc_partition_touch(c->st, p);
	(void) expect(c, "next", p->next, c->model->partitions[partition].next);
	(void) expect(c, "stable", p->stable, model_stable(c->model, partition));
	(void) expect(c, "start", p->start, c->model->partitions[partition].start);
	(void) expect(c, "visible messages", p->visible, model_visible(c->model, partition, 0));
}

GroupFault
group_compare(QcState *st, const Model *model, bool whole)
{
	Compare		c = {.st = st, .model = model};
	const QcQueue *queue = qc_queue_by_id(st, 1);
	uint64_t	visible = 0;
	uint32_t	ngroups = 0;

	for (int k = 0; k < MODEL_PARTITIONS; k++)
	{
		if (whole)
			compare_partition(&c, k);
		visible += model_visible(model, k, 0);
	}
	(void) expect(&c, "visible messages of the queue", queue->visible, visible);
	for (int g = 0; g < MODEL_GROUPS; g++)
	{
		compare_group(&c, queue, g, whole);
		ngroups += model->groups[g].alive;
	}
	(void) expect(&c, "live groups", queue->ngroups, ngroups);
	return c.fault;
}
