/*
 * test_group.c
 *		Consumer groups over partitions that they have not looked at: nothing is passed over, nothing comes twice, and a
 *		checkpoint at any moment can be loaded.
 */
#include "machine.h"

#include "qc_group.h"
#include "qc_purge.h"

#include <string.h>

static Machine m;

static QcQueue *
queue(void)
{
	return qc_queue_by_id(m.st, 1);
}

static QcPartition *
partition(uint64_t id)
{
	return qc_partition_by_id(m.st, id);
}

/* A group of queue 1 that is there at once. */
static QcGroup *
make_group(uint64_t id, uint8_t start, int64_t start_at)
{
	QcGroupCreate create = {.group = id, .queue = 1, .start = start, .start_at = start_at};
	char		name[2] = {(char) ('a' + id), '\0'};

	create.name = (QcStr)
	{
		(const uint8_t *) name, 1
	};
	machine_op_effect(&m, QC_EFFECT_GROUP_CREATE, &create, NULL, 0, 0);
	(void) machine_log(&m, 0, true, NULL);
	return qc_group_by_id(m.st, queue(), id);
}

/* As a pop does; returns how many partitions must be asked. */
static uint32_t
scan(QcGroup *group)
{
	uint64_t	asked[QC_POP_UNSCANNED_MAX];
	uint32_t	n;
	uint32_t	used;

	CHECK(qc_mem_reserve(&m.st->mem, QC_CLASS_CURSOR, QC_POP_UNSCANNED_MAX, QC_URGENCY_DELIVERS));
	used = qc_group_scan(m.st, group, asked, &n);
	qc_mem_unreserve(&m.st->mem, QC_CLASS_CURSOR, QC_POP_UNSCANNED_MAX - used);
	return n;
}

static void
purge_queue(void)
{
	qc_purge_queue(m.st, queue(), NULL);
}

/* Deliver up to n messages of a partition to a group; returns how many. */
static uint32_t
deliver(QcGroup *group, uint64_t from, uint64_t lease, uint32_t n)
{
	QcPopRequest request = {.queue = queue(), .group = group, .batch = n, .max_partitions = 1};
	QcDeliver	effect = {.lease = lease, .queue = 1, .group = group->id, .lease_us = 60000000};
	QcDeliverItem items[8];
	QcRun		runs[8];
	uint32_t	nruns;
	uint32_t	got;

	request.partition = partition(from);
	got = qc_pop_choose(m.st, &request, runs, 8, &nruns);
	for (uint32_t i = 0; i < nruns; i++)
		items[i] = (QcDeliverItem)
	{
		runs[i].partition, runs[i].first, runs[i].count, runs[i].attempt, 0
	};
	if (got > 0)
	{
		machine_op_effect(&m, QC_EFFECT_DELIVER, &effect, items, sizeof(items[0]), nruns);
		(void) machine_log(&m, 0, true, NULL);
	}
	return got;
}

/*
 * A push is not decided while the queue is purged: it is kept, and a group that had not looked at the partition gets it,
 * whether it looks before the decision or after it.
 */
static void
test_purge_keeps_undecided(void)
{
	for (int before = 0; before < 2; before++)
	{
		QcGroup    *group;
		QcOpen	   *open;

		machine_begin(&m);
		machine_queue(&m, 1, NULL);
		machine_push(&m, 1, 101, 2);
		machine_op_push(&m, 101, 1, 3);
		open = machine_log(&m, 7, false, NULL);
		group = make_group(1, QC_START_OLDEST, 0);
		CHECK_U64(qc_group_lag(group), 2);
		purge_queue();
		CHECK_U64(qc_group_lag(group), 0);
		CHECK_U64(partition(101)->start, 2);
		if (before)
			CHECK_U64(scan(group), 0);
		machine_settle(&m, open, true);
		CHECK_U64(qc_group_lag(group), 3);
		if (!before)
			CHECK_U64(scan(group), 0);
		CHECK_U64(deliver(group, 101, 77, 9), 3);
		machine_end(&m);
	}
}

/*
 * A group begins by time in a partition that only the messages can tell about; they are purged before anybody has asked.
 * What is pushed then is the group's.
 */
static void
test_time_then_purge(void)
{
	QcGroup    *group;

	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	machine_push(&m, 1, 101, 2);
	group = make_group(1, QC_START_TIME, m.now);

	/* a push while it cannot be told where the group stands */
	machine_push(&m, 1, 101, 1);
	CHECK(qc_group_lacks(m.st, partition(101), group));
	CHECK_U64(scan(group), 1);
	qc_purge_partition(m.st, partition(101), NULL);
	CHECK_U64(scan(group), 0);
	CHECK_U64(qc_group_lag(group), 0);
	machine_push(&m, 1, 101, 4);
	CHECK_U64(qc_group_lag(group), 4);
	CHECK_U64(deliver(group, 101, 77, 9), 4);
	machine_end(&m);
}

/* A group is dropped while a consumer holds messages of it; before it has been swept there is a checkpoint. */
static void
test_checkpoint_of_dead_group(void)
{
	QcGroup    *group;

	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	group = make_group(1, QC_START_NEW, 0);
	machine_push(&m, 1, 101, 3);
	CHECK_U64(deliver(group, 101, 77, 2), 2);
	CHECK_U64(machine_pop(&m, 1, 101, 78, 1, true), 1);
	qc_group_kill(m.st, group);
	CHECK(qc_lease_by_id(m.st, 77) == NULL);
	machine_reload(&m);
	CHECK(qc_lease_by_id(m.st, 77) == NULL);
	CHECK_U64(qc_lease_by_id(m.st, 78)->nslots, 1);
	CHECK(qc_group_by_id(m.st, queue(), 1) == NULL);
	while (qc_group_sweep(m.st, 100))
		;
	CHECK_U64(m.st->mem.pools[QC_CLASS_SLOT].nused, 1);
	CHECK_U64(m.st->lease_ids.count, 1);
	machine_reload(&m);
	CHECK_U64(m.st->lease_ids.count, 1);
	machine_end(&m);
}

/* The queue is made ordered while a lease holds messages that were delivered out of order: the lowest one is charged. */
static void
test_lowest_is_charged(void)
{
	for (int reload = 0; reload < 2; reload++)
	{
		QcRelease	release = {.lease = 77, .reason = QC_RELEASE_ABORT};

		machine_begin(&m);
		machine_queue(&m, 1, NULL);
		machine_push(&m, 1, 101, 4);

		/* they come back as 3, 1 and are delivered together */
		CHECK_U64(machine_pop(&m, 1, 101, 70, 4, true), 4);
		for (int i = 1; i >= 0; i--)
		{
			QcNack		nack = {.lease = 70};
			QcNackItem	item = {101, 1 + 2 * (uint64_t) i, 1, 0};

			machine_op_effect(&m, QC_EFFECT_NACK, &nack, &item, sizeof(item), 1);
			(void) machine_log(&m, 0, true, NULL);
		}
		CHECK_U64(machine_pop(&m, 1, 101, 77, 2, true), 2);
		CHECK_U64(machine_slot(&m, 101, 1)->attempt, 2);
		CHECK_U64(machine_slot(&m, 101, 3)->attempt, 2);
		machine_ack(&m, 70, 101, 0, 1);
		machine_ack(&m, 70, 101, 2, 1);
		queue()->options.set |= 1u << QC_OPT_ORDERED;
		queue()->options.value[QC_OPT_ORDERED] = 1;
		qc_dirty_queue(m.st, queue());
		if (reload)
			machine_reload(&m);
		machine_op_effect(&m, QC_EFFECT_RELEASE, &release, NULL, 0, 0);
		(void) machine_log(&m, 0, true, NULL);
		CHECK_U64(machine_slot(&m, 101, 1)->attempt, 2);
		CHECK_U64(machine_slot(&m, 101, 3)->attempt, 1);
		machine_end(&m);
	}
}

/*
 * Groups whose lag is a bound are found, queue after queue in turn, also after a start, until they have looked at everything;
 * one that begins with the oldest message has an exact lag.
 */
static void
test_estimates(void)
{
	uint64_t	in;
	uint64_t	group;

	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	machine_queue(&m, 2, NULL);
	machine_push(&m, 1, 101, 5);
	CHECK(!qc_group_next_estimate(m.st, 0, &in, &group));
	(void) make_group(1, QC_START_OLDEST, 0);
	(void) make_group(2, QC_START_NEW, 0);
	CHECK(!qc_group_next_estimate(m.st, 0, &in, &group));
	(void) make_group(3, QC_START_POSITION, 2);
	CHECK_U64(qc_group_lag(qc_group_by_id(m.st, queue(), 3)), 5);
	for (uint64_t after = 0; after < 2; after++)
	{
		/* it is the only one, whatever came before it */
		CHECK(qc_group_next_estimate(m.st, after, &in, &group));
		CHECK_U64(in, 1);
		CHECK_U64(group, 3);
		if (after == 0)
			machine_reload(&m);
	}
	CHECK_U64(scan(qc_group_by_id(m.st, queue(), 3)), 0);
	CHECK_U64(qc_group_lag(qc_group_by_id(m.st, queue(), 3)), 3);
	CHECK(!qc_group_next_estimate(m.st, 0, &in, &group));
	CHECK_U64(m.st->estimates, 0);

	/* not while its queue is out of service, but afterwards */
	(void) make_group(4, QC_START_POSITION, 1);
	queue()->damaged = 1;
	CHECK(!qc_group_next_estimate(m.st, 0, &in, &group));
	queue()->damaged = 0;
	CHECK(qc_group_next_estimate(m.st, 0, &in, &group));
	CHECK_U64(group, 4);
	machine_end(&m);
}

int
main(void)
{
	UNIT_RUN(test_purge_keeps_undecided);
	UNIT_RUN(test_time_then_purge);
	UNIT_RUN(test_checkpoint_of_dead_group);
	UNIT_RUN(test_lowest_is_charged);
	UNIT_RUN(test_estimates);
	return unit_end();
}
