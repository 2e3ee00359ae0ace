/*
 * test_lane.c
 *		Lanes: dead letters as objects of the state, through settlement, checkpoint and removal.
 */
#include "machine.h"

#include <string.h>

#include "qc_catalog.h"

#define LANE 200

static Machine m;

/* Queue 1 with five messages in its default partition, all of them leased under 7, and a dead lane. */
static void
begin(void)
{
	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	machine_partition(&m, 1, LANE, "", QC_LANE_DEAD);
	machine_push(&m, 1, 101, 5);
	CHECK_U64(machine_pop(&m, 1, 101, 7, 5, true), 5);
}

static void
put_reject(uint64_t position)
{
	QcDead		dead = {.lease = 7, .group = QC_DEFAULT_GROUP, .partition = 101,
		.position = position, .attempt = 1, .lane = LANE, .cause = QC_DEAD_REJECTED};

	machine_op_dead(&m, &dead, 1);
}

/* A transaction that rejects one message, not settled. */
static QcOpen *
reject(uint64_t xid, uint64_t position)
{
	put_reject(position);
	return machine_log(&m, xid, false, NULL);
}

static QcPartition *
lane(void)
{
	return qc_partition_by_id(m.st, LANE);
}

static QcLaneItem *
item_at(uint64_t position)
{
	QcLaneItem *item = qc_lane_seek(m.st, lane(), position, 0);

	return item != NULL && item->position == position ? item : NULL;
}

static uint64_t
dead(void)
{
	return qc_queue_by_id(m.st, 1)->dead;
}

static uint32_t
objects(void)
{
	return m.st->mem.pools[QC_CLASS_LANE_ITEM].nused;
}

static void
expect_item(uint64_t position, QcLaneState state, uint64_t origin)
{
	const QcLaneItem *item = item_at(position);

	if (!CHECK(item != NULL))
		return;
	CHECK_U64(item->state, state);
	CHECK_U64(item->lane, QC_REF(m.st, lane()));
	CHECK_U64(item->target, 101);
	CHECK_U64(item->origin, origin);
	CHECK_U64(item->attempt, 1);
	CHECK_U64(item->reason, QC_DEAD_REJECTED);
}

static void
test_reject_counts_when_settled(void)
{
	QcOpen	   *open;

	begin();
	open = reject(0, 2);
	expect_item(0, QC_LANE_ITEM_OPEN, 2);
	CHECK_U64(dead(), 0);
	CHECK_U64(lane()->nitems, 0);
	CHECK(machine_slot(&m, 101, 2) != NULL);
	machine_settle(&m, open, true);
	expect_item(0, QC_LANE_ITEM_LIVE, 2);
	CHECK_U64(dead(), 1);
	CHECK_U64(lane()->nitems, 1);
	CHECK(machine_slot(&m, 101, 2) == NULL);
	CHECK(machine_slot(&m, 101, 1) != NULL);
	CHECK_U64(qc_lease_by_id(m.st, 7)->nslots, 4);
	CHECK_U64(qc_queue_by_id(m.st, 1)->acked, 0);
	machine_end(&m);
}

static void
test_aborted_reject_leaves_nothing(void)
{
	begin();
	machine_settle(&m, reject(30, 2), false);
	CHECK_U64(lane()->items.head, 0);
	CHECK_U64(dead(), 0);
	CHECK(machine_slot(&m, 101, 2) != NULL);
	CHECK_U64(lane()->next, 1);
	CHECK_U64(lane()->stable, 1);

	/* its position in the lane stays empty */
	machine_settle(&m, reject(0, 3), true);
	expect_item(1, QC_LANE_ITEM_LIVE, 3);
	machine_reload(&m);
	CHECK_U64(objects(), 1);
	machine_end(&m);
}

/* All messages of the lease in one entry: positions in the lane follow the order of the calls. */
static void
test_many_in_one_entry(void)
{
	begin();
	put_reject(4);
	put_reject(0);
	put_reject(2);
	machine_settle(&m, machine_log(&m, 0, false, NULL), true);
	expect_item(0, QC_LANE_ITEM_LIVE, 4);
	expect_item(1, QC_LANE_ITEM_LIVE, 0);
	expect_item(2, QC_LANE_ITEM_LIVE, 2);
	CHECK_U64(dead(), 3);
	CHECK_U64(qc_lease_by_id(m.st, 7)->nslots, 2);
	machine_end(&m);
}

/* The lease of a second message, so that two entries can be open at once. */
static void
begin_two(QcOpen **first, QcOpen **second)
{
	QcDead		other = {.lease = 8, .group = QC_DEFAULT_GROUP, .partition = 101, .position = 5,
		.attempt = 1, .lane = LANE, .cause = QC_DEAD_REJECTED};

	begin();
	machine_push(&m, 1, 101, 1);
	CHECK_U64(machine_pop(&m, 1, 101, 8, 1, true), 1);
	*first = reject(30, 1);
	machine_op_dead(&m, &other, 1);
	*second = machine_log(&m, 31, false, NULL);
}

static void
test_settled_in_any_order(void)
{
	QcOpen	   *first;
	QcOpen	   *second;

	begin_two(&first, &second);
	machine_settle(&m, second, true);
	expect_item(0, QC_LANE_ITEM_OPEN, 1);
	expect_item(1, QC_LANE_ITEM_LIVE, 5);
	CHECK_U64(dead(), 1);
	machine_settle(&m, first, true);
	expect_item(0, QC_LANE_ITEM_LIVE, 1);
	CHECK_U64(dead(), 2);
	machine_end(&m);
}

static void
test_checkpoint_keeps_items(void)
{
	QcOpen	   *first;
	QcOpen	   *second;
	uint64_t	seq;

	begin_two(&first, &second);
	seq = first->seq;
	machine_settle(&m, second, true);
	machine_reload(&m);
	expect_item(0, QC_LANE_ITEM_OPEN, 1);
	expect_item(1, QC_LANE_ITEM_LIVE, 5);
	CHECK_U64(dead(), 1);
	CHECK_U64(lane()->nitems, 1);

	/* the open one is still the one of its entry */
	machine_settle(&m, qc_open_by_seq(m.st, seq), true);
	expect_item(0, QC_LANE_ITEM_LIVE, 1);
	CHECK_U64(dead(), 2);

	/* a removal goes into the next checkpoint */
	qc_lane_remove(m.st, item_at(0));
	CHECK_U64(dead(), 1);
	machine_reload(&m);
	CHECK(item_at(0) == NULL);
	expect_item(1, QC_LANE_ITEM_LIVE, 5);
	CHECK_U64(objects(), 1);
	CHECK_U64(dead(), 1);
	machine_end(&m);
}

/* Recovery may meet the removal before it knows that the entry was committed. */
static void
test_removed_while_open(void)
{
	QcOpen	   *open;
	uint64_t	seq;

	begin();
	open = reject(30, 2);
	seq = open->seq;
	qc_lane_remove(m.st, item_at(0));
	CHECK_U64(item_at(0)->state, QC_LANE_ITEM_GONE);
	machine_reload(&m);
	CHECK_U64(item_at(0)->state, QC_LANE_ITEM_GONE);
	machine_settle(&m, qc_open_by_seq(m.st, seq), true);
	CHECK(item_at(0) == NULL);
	CHECK(machine_slot(&m, 101, 2) == NULL);
	CHECK_U64(dead(), 0);
	machine_reload(&m);
	CHECK_U64(objects(), 0);
	machine_end(&m);
}

static void
test_seek_with_stale_hint(void)
{
	QcRef		hint;

	begin();
	for (uint64_t p = 0; p < 4; p++)
		machine_settle(&m, reject(0, p), true);
	hint = QC_REF(m.st, item_at(1));
	CHECK(qc_lane_seek(m.st, lane(), 2, hint) == item_at(2));
	CHECK(qc_lane_seek(m.st, lane(), 0, hint) == item_at(0));
	qc_lane_remove(m.st, item_at(1));
	CHECK(qc_lane_seek(m.st, lane(), 1, hint) == item_at(2));
	CHECK(qc_lane_seek(m.st, lane(), 4, hint) == NULL);

	/* a hint of another lane */
	machine_partition(&m, 1, LANE + 1, "", QC_LANE_DEAD);
	hint = QC_REF(m.st, item_at(2));
	CHECK(qc_lane_seek(m.st, qc_partition_by_id(m.st, LANE + 1), 0, hint) == NULL);
	machine_end(&m);
}

/* A dropped queue's items are freed in steps. */
static void
test_drop_frees_items(void)
{
	QcQueueDrop drop = {.queue = 1};
	uint32_t	steps = 0;

	begin();
	for (uint64_t p = 0; p < 5; p++)
		machine_settle(&m, reject(0, p), true);
	machine_reload(&m);
	CHECK_U64(objects(), 5);
	machine_op_effect(&m, QC_EFFECT_QUEUE_DROP, &drop, NULL, 0, 0);
	machine_settle(&m, machine_log(&m, 0, false, NULL), true);
	while (qc_queue_sweep(m.st, 2))
		steps++;
	CHECK(steps >= 2);
	machine_reload(&m);
	CHECK_U64(objects(), 0);
	CHECK(lane() == NULL);
	CHECK(qc_queue_by_id(m.st, 1) == NULL);
	machine_end(&m);
}

/* An entry that takes dead letters at these positions out of the lane, and pushes as many messages when it redrives. */
static QcOpen *
leave(uint64_t xid, bool redrive, uint64_t first, uint32_t count)
{
	QcRedrive	redriven = {.lane = LANE};
	QcRedriveItem item = {.first = first, .count = count};
	QcPurgeDead purged = {.lane = LANE};
	QcPurgeDeadItem range = {.first = first, .count = count};

	if (redrive)
	{
		machine_op_push(&m, 101, 1, count);
		machine_op_effect(&m, QC_EFFECT_REDRIVE, &redriven, &item, sizeof(item), 1);
	}
	else
		machine_op_effect(&m, QC_EFFECT_PURGE_DEAD, &purged, &range, sizeof(range), 1);
	return machine_log(&m, xid, false, NULL);
}

/* Letters leave when the entry is committed, and stay when it is not; over a checkpoint between. */
static void
test_leave(void)
{
	for (int way = 0; way < 8; way++)
	{
		bool		redrive = way & 1;
		bool		committed = way & 2;
		QcOpen	   *open;
		uint64_t	seq;

		begin();
		for (uint64_t p = 0; p < 4; p++)
			machine_settle(&m, reject(0, p), true);
		open = leave(30, redrive, 1, 2);
		seq = open->seq;
		CHECK_U64(dead(), 4);
		if (way & 4)
			machine_reload(&m);
		machine_settle(&m, qc_open_by_seq(m.st, seq), committed);
		CHECK_U64(dead(), committed ? 2 : 4);
		CHECK((item_at(1) == NULL) == committed);
		CHECK((item_at(2) == NULL) == committed);
		expect_item(0, QC_LANE_ITEM_LIVE, 0);
		expect_item(3, QC_LANE_ITEM_LIVE, 3);
		CHECK_U64(qc_queue_by_id(m.st, 1)->pushed, redrive && committed ? 7 : 5);
		machine_reload(&m);
		CHECK_U64(objects(), committed ? 2 : 4);
		machine_end(&m);
	}
}

/* A replay may settle the redrive before the rejection that made the letter: it is gone all the same, and not twice there. */
static void
test_leave_before_the_decision(void)
{
	QcOpen	   *rejected;
	QcOpen	   *redriven;

	begin();
	rejected = reject(30, 2);
	redriven = leave(0, true, 0, 1);
	machine_settle(&m, redriven, true);
	CHECK_U64(item_at(0)->state, QC_LANE_ITEM_GONE);
	machine_settle(&m, rejected, true);
	CHECK(item_at(0) == NULL);
	CHECK_U64(dead(), 0);
	CHECK(machine_slot(&m, 101, 2) == NULL);
	machine_end(&m);
}

/* What a dead letter needs is promised before anything is logged. */
static void
test_full_memory_refuses(void)
{
	QcStatus	status;
	uint64_t	seq;

	begin();
	while (qc_mem_reserve(&m.st->mem, QC_CLASS_LANE_ITEM, 1, QC_URGENCY_EMPTIES))
		continue;
	seq = m.st->seq;
	put_reject(2);
	CHECK(machine_log(&m, 0, false, &status) == NULL);
	CHECK_U64(status, QC_FULL);
	CHECK_U64(m.st->seq, seq);
	CHECK(machine_slot(&m, 101, 2) != NULL);
	CHECK_U64(qc_lease_by_id(m.st, 7)->nslots, 5);
	machine_end(&m);
}

int
main(void)
{
	UNIT_RUN(test_reject_counts_when_settled);
	UNIT_RUN(test_aborted_reject_leaves_nothing);
	UNIT_RUN(test_many_in_one_entry);
	UNIT_RUN(test_settled_in_any_order);
	UNIT_RUN(test_checkpoint_keeps_items);
	UNIT_RUN(test_removed_while_open);
	UNIT_RUN(test_seek_with_stale_hint);
	UNIT_RUN(test_drop_frees_items);
	UNIT_RUN(test_leave);
	UNIT_RUN(test_leave_before_the_decision);
	UNIT_RUN(test_full_memory_refuses);
	return unit_end();
}
