/*
 * test_state.c
 *		The state machine by its rules: what exists and is visible when, what a pop takes, what leases hold and for how long,
 *		and who is refused when memory runs short.
 */
#include "machine.h"

#include "qc_catalog.h"
#include "qc_log.h"
#include "qc_timer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE	(60 * QC_SECOND)

static Machine m;

static QcPartition *
partition(uint64_t id)
{
	return qc_partition_by_id(m.st, id);
}

static QcCursor *
cursor_of(uint64_t id)
{
	QcQueue    *queue = QC_AT(m.st, QcQueue, partition(id)->queue);

	return qc_cursor_of(m.st, partition(id), qc_group_default(m.st, queue));
}

static QcGroup *
group_of(uint64_t queue)
{
	return qc_group_default(m.st, qc_queue_by_id(m.st, queue));
}

static QcLease *
lease(uint64_t id)
{
	return qc_lease_by_id(m.st, id);
}

/* An effect that acts at once. */
static void
at_once(QcEffectKind kind, const void *fixed)
{
	machine_op_effect(&m, kind, fixed, NULL, 0, 0);
	(void) machine_log(&m, 0, true, NULL);
}

static void
release(uint64_t id, uint8_t reason)
{
	QcRelease	effect = {.lease = id, .reason = reason};

	at_once(QC_EFFECT_RELEASE, &effect);
}

static void
nack(uint64_t id, uint64_t from, uint64_t first, uint32_t count, uint64_t delay_us)
{
	QcNack		effect = {.lease = id, .delay_us = delay_us};
	QcNackItem	item = {.partition = from, .first = first, .count = count};

	machine_op_effect(&m, QC_EFFECT_NACK, &effect, &item, sizeof(item), 1);
	(void) machine_log(&m, 0, true, NULL);
}

/* An acknowledgement that is not settled. */
static QcOpen *
open_ack(uint64_t xid, uint64_t id, uint64_t of, uint64_t first, uint32_t count)
{
	QcAck		ack = {.lease = id, .group = QC_DEFAULT_GROUP};
	QcAckItem	item = {.partition = of, .first = first, .count = count};

	machine_op_effect(&m, QC_EFFECT_ACK, &ack, &item, sizeof(item), 1);
	return machine_log(&m, xid, false, NULL);
}

static QcOpen *
open_push(uint64_t to, uint64_t log, uint32_t count)
{
	machine_op_push(&m, to, log, count);
	return machine_log(&m, 7, false, NULL);
}

static void
settle(QcOpen *open, bool committed)
{
	uint64_t	seq = open->seq;

	machine_settle(&m, open, committed);
	open = qc_open_by_seq(m.st, seq);
	if (open != NULL)
		qc_open_forget(m.st, open);
}

/* Time passes: leases that are over are released; returns their number. */
static uint32_t
pass(int64_t us)
{
	uint64_t	ids[16];
	uint32_t	n;

	m.monotonic += us;
	m.now += us;
	n = qc_timers_run(m.st, m.monotonic, ids, 16);
	for (uint32_t i = 0; i < n; i++)
		release(ids[i], QC_RELEASE_EXPIRED);
	return n;
}

/* The lease holds exactly these positions of the partition, at these attempts. */
static void
expect_held(uint64_t id, uint64_t of, uint64_t first, uint32_t count, uint32_t attempt)
{
	if (!CHECK(lease(id) != NULL))
		return;
	CHECK_U64(lease(id)->nslots, count);
	for (uint32_t i = 0; i < count; i++)
	{
		const QcSlot *slot = qc_lease_slot(m.st, lease(id), partition(of), first + i);

		if (CHECK(slot != NULL))
			CHECK_U64(slot->attempt, attempt);
	}
}

static void
expect_counts(uint64_t queue, uint64_t ready, uint64_t leased, uint64_t waiting)
{
	const QcGroup *group = group_of(queue);

	CHECK_U64(group->nready, ready);
	CHECK_U64(group->nleased, leased);
	CHECK_U64(group->nwaiting, waiting);
}

static void
ordered_queue(uint64_t id)
{
	QcOptions	options;

	qc_options_default(&options);
	options.set = 1u << QC_OPT_ORDERED;
	options.value[QC_OPT_ORDERED] = 1;
	machine_queue(&m, id, &options);
}

/* ---- queues ---- */

static QcOpen *
open_create(uint64_t id, const char *name)
{
	QcQueueCreate create = {.queue = id, .database = 5, .owner = 10, .log = id,
		.default_partition = 100 + id};

	create.name = (QcStr)
	{
		(const uint8_t *) name, (uint16_t) strlen(name)
	};
	CHECK(qc_log_add(m.st, id, 1, QC_FILE_HEADER_SIZE, 64u << 20, false) != NULL);
	machine_op_effect(&m, QC_EFFECT_QUEUE_CREATE, &create, NULL, 0, 0);
	return machine_log(&m, 7, false, NULL);
}

static QcOpen *
open_drop(uint64_t id)
{
	QcQueueDrop drop = {.queue = id};

	machine_op_effect(&m, QC_EFFECT_QUEUE_DROP, &drop, NULL, 0, 0);
	return machine_log(&m, 7, false, NULL);
}

static uint64_t
by_name(uint32_t database, const char *name)
{
	const QcQueue *queue = qc_queue_by_name(m.st, database, name, strlen(name));

	return queue == NULL ? 0 : queue->id;
}

/* A queue is there from the commit of its creation to that of its drop, for its database only. */
static void
test_queue_life(void)
{
	QcOpen	   *open;

	machine_begin(&m);
	open = open_create(1, "a");
	CHECK_U64(by_name(5, "a"), 0);
	CHECK_U64(qc_queue_by_id(m.st, 1)->state, QC_QUEUE_CREATING);
	settle(open, false);
	CHECK_U64(by_name(5, "a"), 0);
	CHECK_U64(qc_queue_by_id(m.st, 1)->state, QC_QUEUE_DEAD);
	CHECK(!qc_queue_sweep(m.st, 1000));
	CHECK(qc_queue_by_id(m.st, 1) == NULL);

	settle(open_create(2, "a"), true);
	CHECK_U64(by_name(5, "a"), 2);
	CHECK_U64(by_name(6, "a"), 0);
	CHECK_U64(by_name(5, "ab"), 0);
	CHECK_U64(by_name(5, ""), 0);
	CHECK(partition(102) != NULL);
	CHECK(partition(102) == qc_partition_by_name(m.st, qc_queue_by_id(m.st, 2), "", 0));

	open = open_drop(2);
	CHECK_U64(qc_queue_by_id(m.st, 2)->state, QC_QUEUE_DROPPING);
	CHECK_U64(by_name(5, "a"), 2);
	settle(open, false);
	CHECK_U64(qc_queue_by_id(m.st, 2)->state, QC_QUEUE_LIVE);
	settle(open_drop(2), true);
	CHECK_U64(by_name(5, "a"), 0);

	/* the name is free at once, the id never again */
	settle(open_create(3, "a"), true);
	CHECK_U64(by_name(5, "a"), 3);
	CHECK(!qc_queue_sweep(m.st, 1000));
	CHECK(qc_queue_by_id(m.st, 2) == NULL && partition(102) == NULL);
	CHECK_U64(by_name(5, "a"), 3);
	CHECK_U64(m.st->next_queue_id, 4);
	CHECK_U64(m.st->next_partition_id, 104);
	machine_end(&m);
}

/* Sweeping frees as many rows as it is allowed to, and everything in the end. */
static void
test_sweep(void)
{
	static const QcClass classes[] = {QC_CLASS_QUEUE, QC_CLASS_GROUP, QC_CLASS_PARTITION,
		QC_CLASS_CURSOR, QC_CLASS_SLOT, QC_CLASS_LEASE, QC_CLASS_PENDING, QC_CLASS_INDEX,
		QC_CLASS_TIMER, QC_CLASS_NAME32, QC_CLASS_OPEN, QC_CLASS_OPEN_ITEM};
	uint32_t	rounds = 0;

	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	for (uint64_t i = 0; i < 10; i++)
	{
		char		name[16];

		(void) snprintf(name, sizeof(name), "p%llu", (unsigned long long) i);
		machine_partition(&m, 1, 200 + i, name, QC_LANE_NONE);
		machine_push(&m, 1, 200 + i, 3);
	}
	settle(open_push(200, 1, 2), false);
	CHECK_U64(machine_pop(&m, 1, 200, 77, 2, true), 2);
	CHECK_U64(machine_pop(&m, 1, 201, 78, 1, false), 1);
	settle(open_drop(1), true);
	while (qc_queue_sweep(m.st, 3))
		rounds++;
	CHECK(rounds >= 3);

	/* the rows of a checkpoint go with the next one */
	rows_take(&m.rows, m.st);
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		CHECK_U64(m.st->mem.pools[classes[i]].nused, 0);
	CHECK(m.st->queues.head == 0 && m.st->leases.head == 0 && m.st->ntimers == 0);

	/* nobody needs its log any more once the mark is there */
	CHECK_U64(qc_log_remove_next(m.st), 0);
	m.st->checkpoint_seq = m.st->seq;
	CHECK_U64(qc_log_remove_next(m.st), 1);
	CHECK_U64(qc_log_remove_next(m.st), 0);
	CHECK(qc_log_by_id(m.st, 1) == NULL);
	machine_end(&m);
}

/* A queue that an open entry pushes to is freed when that is settled. */
static void
test_drop_waits(void)
{
	QcOpen	   *open;

	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	open = open_push(101, 1, 2);
	settle(open_drop(1), true);
	CHECK(!qc_queue_sweep(m.st, 1000));
	CHECK(qc_queue_by_id(m.st, 1) != NULL);
	settle(open, true);
	CHECK(!qc_queue_sweep(m.st, 1000));
	CHECK(qc_queue_by_id(m.st, 1) == NULL);
	machine_end(&m);
}

/* ---- visibility ---- */

/* Messages become visible in order, over what is settled, whatever the order of settling. */
static void
test_visible_in_order(void)
{
	QcOpen	   *open[4];

	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	for (int i = 0; i < 4; i++)
		open[i] = open_push(101, 1, 2);
	CHECK_U64(partition(101)->next, 8);
	CHECK_U64(partition(101)->stable, 0);
	settle(open[1], true);
	settle(open[3], true);
	CHECK_U64(partition(101)->stable, 0);
	expect_counts(1, 0, 0, 0);
	CHECK_U64(machine_pop(&m, 1, 101, 77, 10, true), 0);
	settle(open[0], true);
	CHECK_U64(partition(101)->stable, 4);
	expect_counts(1, 4, 0, 0);
	settle(open[2], true);
	CHECK_U64(partition(101)->stable, 8);
	expect_counts(1, 8, 0, 0);
	CHECK_U64(qc_queue_by_id(m.st, 1)->pushed, 8);
	CHECK_U64(m.st->nopens, 0);
	machine_end(&m);
}

/* Positions of entries that were rolled back are skipped; neighbours are one range. */
static void
test_aborted(void)
{
	QcOpen	   *open[6];
	const QcAbortedRange *range;

	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	for (int i = 0; i < 6; i++)
		open[i] = open_push(101, 1, 2);
	settle(open[2], false);
	settle(open[1], false);
	settle(open[0], true);
	settle(open[3], true);
	settle(open[5], false);
	settle(open[4], true);
	CHECK_U64(partition(101)->stable, 12);
	range = QC_AT(m.st, QcAbortedRange, partition(101)->aborted.head);
	CHECK_U64(range->first, 2);
	CHECK_U64(range->count, 4);
	range = QC_AT(m.st, QcAbortedRange, range->next);
	CHECK_U64(range->first, 10);
	CHECK_U64(range->count, 2);
	CHECK_U64(range->next, 0);
	CHECK_U64(qc_skip_aborted(m.st, partition(101), 1), 1);
	CHECK_U64(qc_skip_aborted(m.st, partition(101), 3), 6);
	CHECK_U64(qc_skip_aborted(m.st, partition(101), 11), 12);
	expect_counts(1, 6, 0, 0);
	CHECK_U64(machine_pop(&m, 1, 101, 77, 5, true), 5);
	CHECK(machine_slot(&m, 101, 1) != NULL && machine_slot(&m, 101, 2) == NULL);
	CHECK(machine_slot(&m, 101, 8) != NULL && machine_slot(&m, 101, 9) == NULL);
	CHECK_U64(machine_pop(&m, 1, 101, 78, 5, true), 1);
	CHECK_U64(cursor_of(101)->fetch, 12);
	CHECK_U64(qc_queue_by_id(m.st, 1)->pushed, 6);
	machine_end(&m);
}

/* ---- pop ---- */

/* Partitions take turns; one pop takes from as many as it may. */
static void
test_turns(void)
{
	QcPopRequest request = {.batch = 3, .max_partitions = 2};
	QcRun		runs[8];
	uint32_t	nruns;

	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	machine_partition(&m, 1, 201, "a", QC_LANE_NONE);
	machine_partition(&m, 1, 202, "b", QC_LANE_NONE);
	machine_push(&m, 1, 201, 2);
	machine_push(&m, 1, 202, 5);
	machine_push(&m, 1, 101, 1);
	request.queue = qc_queue_by_id(m.st, 1);
	request.group = group_of(1);

	/* who only looks finds the same again */
	request.look = true;
	for (int i = 0; i < 2; i++)
	{
		CHECK_U64(qc_pop_choose(m.st, &request, runs, 8, &nruns), 3);
		CHECK_U64(nruns, 2);
		CHECK(runs[0].partition == 201 && runs[0].first == 0 && runs[0].count == 2);
		CHECK(runs[1].partition == 202 && runs[1].first == 0 && runs[1].count == 1);
		CHECK(runs[0].attempt == 1 && runs[1].attempt == 1);
	}
	request.look = false;
	CHECK_U64(qc_pop_choose(m.st, &request, runs, 8, &nruns), 3);
	CHECK_U64(qc_pop_choose(m.st, &request, runs, 8, &nruns), 3);
	CHECK(runs[0].partition == 101 && runs[0].count == 1);
	CHECK(runs[1].partition == 201 && runs[1].count == 2);

	/* less room for runs than there are */
	CHECK_U64(qc_pop_choose(m.st, &request, runs, 1, &nruns), 3);
	CHECK_U64(nruns, 1);
	CHECK(runs[0].partition == 202 && runs[0].count == 3);

	/* paused */
	request.queue->flags = QC_QUEUE_NO_POP;
	CHECK_U64(qc_pop_choose(m.st, &request, runs, 8, &nruns), 0);
	CHECK_U64(nruns, 0);
	machine_end(&m);
}

/* Not more in flight than qlog.max_leases_per_cursor allows; what comes back is not held up by that. */
static void
test_slots_limit(void)
{
	machine_begin(&m);
	m.st->max_slots = 3;
	machine_queue(&m, 1, NULL);
	machine_push(&m, 1, 101, 10);
	CHECK_U64(machine_pop(&m, 1, 101, 77, 10, true), 3);
	CHECK_U64(machine_pop(&m, 1, 101, 78, 10, true), 0);
	CHECK_U64(cursor_of(101)->is_ready, 0);
	machine_ack(&m, 77, 101, 1, 1);
	CHECK_U64(machine_pop(&m, 1, 101, 78, 10, true), 1);
	expect_held(78, 101, 3, 1, 1);
	release(77, QC_RELEASE_ABORT);
	CHECK_U64(machine_pop(&m, 1, 101, 79, 10, true), 2);
	CHECK(qc_lease_slot(m.st, lease(79), partition(101), 0) != NULL);
	CHECK(qc_lease_slot(m.st, lease(79), partition(101), 2) != NULL);
	machine_end(&m);
}

/* In order: one lease at a time, what comes back comes first, and only the lowest message is charged. */
static void
test_ordered(void)
{
	machine_begin(&m);
	ordered_queue(1);
	machine_push(&m, 1, 101, 6);
	CHECK_U64(machine_pop(&m, 1, 101, 77, 3, true), 3);
	CHECK_U64(machine_pop(&m, 1, 101, 78, 3, true), 0);
	expect_counts(1, 3, 3, 0);

	/* the first is done, the others come back */
	machine_ack(&m, 77, 101, 0, 1);
	CHECK_U64(machine_pop(&m, 1, 101, 78, 3, true), 0);
	nack(77, 101, 1, QC_NACK_REST, 0);
	CHECK(lease(77) == NULL);
	expect_counts(1, 5, 0, 0);
	CHECK_U64(machine_pop(&m, 1, 101, 78, 3, true), 3);
	CHECK_U64(machine_slot(&m, 101, 1)->attempt, 2);
	CHECK_U64(machine_slot(&m, 101, 2)->attempt, 1);
	CHECK_U64(machine_slot(&m, 101, 3)->attempt, 1);

	/* a delay of the lowest, which alone is charged with it, holds up everything */
	nack(78, 101, 1, QC_NACK_REST, (uint64_t) QC_SECOND);
	expect_counts(1, 4, 0, 1);
	CHECK_U64(machine_pop(&m, 1, 101, 79, 3, true), 0);
	CHECK_U64(pass(QC_SECOND / 2), 0);
	CHECK_U64(machine_pop(&m, 1, 101, 79, 3, true), 0);
	CHECK_U64(pass(QC_SECOND), 0);
	expect_counts(1, 5, 0, 0);
	CHECK_U64(machine_pop(&m, 1, 101, 79, 10, true), 5);
	CHECK_U64(machine_slot(&m, 101, 1)->attempt, 3);
	machine_ack(&m, 79, 101, 1, 5);
	CHECK(lease(79) == NULL);
	CHECK_U64(qc_cursor_committed(m.st, cursor_of(101)), 6);
	expect_counts(1, 0, 0, 0);
	machine_end(&m);
}

/* ---- leases ---- */

/* Acknowledged in any order; done is what stands below the first that is not. */
static void
test_acks(void)
{
	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	machine_push(&m, 1, 101, 6);
	CHECK_U64(machine_pop(&m, 1, 101, 77, 6, true), 6);
	CHECK_U64(lease(77)->taken, 6);
	machine_ack(&m, 77, 101, 2, 2);
	CHECK_U64(qc_cursor_committed(m.st, cursor_of(101)), 0);
	expect_counts(1, 0, 4, 0);
	machine_ack(&m, 77, 101, 0, 1);
	CHECK_U64(qc_cursor_committed(m.st, cursor_of(101)), 1);
	machine_ack(&m, 77, 101, 1, 1);
	CHECK_U64(qc_cursor_committed(m.st, cursor_of(101)), 4);
	CHECK(lease(77) != NULL);
	CHECK_U64(lease(77)->acked, 4);
	machine_ack(&m, 77, 101, 4, 2);
	CHECK(lease(77) == NULL);
	CHECK_U64(qc_cursor_committed(m.st, cursor_of(101)), 6);
	CHECK_U64(qc_queue_by_id(m.st, 1)->acked, 6);
	CHECK_U64(qc_queue_by_id(m.st, 1)->popped, 6);
	CHECK_U64(m.st->mem.pools[QC_CLASS_SLOT].nused, 0);
	CHECK_U64(m.st->ntimers, 0);
	machine_end(&m);
}

/* One lease over several partitions: an answer touches its own only. */
static void
test_lease_of_many(void)
{
	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	machine_partition(&m, 1, 201, "a", QC_LANE_NONE);
	machine_push(&m, 1, 101, 1);
	machine_push(&m, 1, 201, 2);
	CHECK_U64(machine_pop(&m, 1, 101, 77, 1, true), 1);
	CHECK_U64(machine_pop(&m, 1, 201, 78, 2, true), 2);
	CHECK_U64(qc_lease_done(m.st, lease(78), partition(101), 0, 1), 0);
	CHECK(qc_lease_slot(m.st, lease(78), partition(101), 0) == NULL);
	nack(78, 101, 0, 1, 0);
	expect_held(78, 201, 0, 2, 1);
	expect_held(77, 101, 0, 1, 1);
	nack(78, 201, 0, QC_NACK_REST, 0);
	CHECK(lease(78) == NULL);
	expect_counts(1, 2, 1, 0);
	CHECK_U64(qc_queue_by_id(m.st, 1)->nacked, 2);
	CHECK_U64(machine_pop(&m, 1, 0, 79, 5, true), 2);
	CHECK_U64(machine_slot(&m, 201, 0)->attempt, 2);
	CHECK_U64(machine_slot(&m, 201, 1)->attempt, 1);
	CHECK_U64(group_of(1)->redelivered, 1);
	machine_end(&m);
}

/* A lease runs from the commit of its pop, for its time; renewed, from then on; not while an entry acknowledges. */
static void
test_lease_clock(void)
{
	QcRenew		renew = {.lease = 77, .lease_us = (uint64_t) (3 * MINUTE)};
	QcPopCommit commit = {.lease = 77};
	QcOpen	   *open;

	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	machine_push(&m, 1, 101, 2);
	CHECK_U64(machine_pop(&m, 1, 101, 77, 2, false), 2);
	lease(77)->owner = 5;
	CHECK_U64(pass(5 * MINUTE), 0);
	at_once(QC_EFFECT_POP_COMMIT, &commit);
	CHECK_U64(lease(77)->owner, 0);
	CHECK_U64(lease(77)->deadline, m.monotonic + MINUTE);
	CHECK_U64(pass(MINUTE - QC_SECOND), 0);
	at_once(QC_EFFECT_RENEW, &renew);
	CHECK_U64(pass(3 * MINUTE - QC_SECOND), 0);
	expect_held(77, 101, 0, 2, 1);

	/* an open acknowledgement of one keeps both */
	open = open_ack(9, 77, 101, 0, 1);
	CHECK_U64(lease(77)->pin_seq, open->seq);
	CHECK_U64(pass(60 * MINUTE), 0);
	expect_held(77, 101, 0, 2, 1);
	settle(open, false);
	CHECK_U64(lease(77)->pin_seq, 0);
	CHECK_U64(pass(3 * MINUTE - QC_SECOND), 0);
	CHECK_U64(pass(2 * QC_SECOND), 1);
	CHECK(lease(77) == NULL);
	expect_counts(1, 2, 0, 0);
	CHECK_U64(qc_queue_by_id(m.st, 1)->expired, 2);

	/* expired, it counts as an attempt */
	CHECK_U64(machine_pop(&m, 1, 101, 77, 2, true), 2);
	expect_held(77, 101, 0, 2, 2);
	machine_end(&m);
}

/* Two entries answer the same lease: the first one holds it, the second finds nothing left to do. */
static void
test_two_answers(void)
{
	QcOpen	   *first;
	QcOpen	   *second;

	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	machine_push(&m, 1, 101, 2);
	CHECK_U64(machine_pop(&m, 1, 101, 77, 2, true), 2);
	first = open_ack(9, 77, 101, 0, 1);
	second = open_ack(10, 77, 101, 0, 1);
	CHECK_U64(lease(77)->pin_seq, first->seq);
	settle(second, false);
	CHECK_U64(lease(77)->pin_seq, first->seq);
	settle(first, true);
	expect_held(77, 101, 1, 1, 1);
	CHECK_U64(qc_cursor_committed(m.st, cursor_of(101)), 1);
	machine_end(&m);
}

/* Delayed: it waits for its time, others overtake it, and then it counts one attempt more. */
static void
test_retry(void)
{
	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	machine_push(&m, 1, 101, 3);
	CHECK_U64(machine_pop(&m, 1, 101, 77, 2, true), 2);
	nack(77, 101, 0, 1, (uint64_t) (10 * QC_SECOND));
	nack(77, 101, 1, 1, (uint64_t) (5 * QC_SECOND));
	CHECK(lease(77) == NULL);
	expect_counts(1, 1, 0, 2);
	CHECK_U64(machine_slot(&m, 101, 0)->state, QC_SLOT_WAITING);
	CHECK_U64(machine_slot(&m, 101, 0)->due, m.now + 10 * QC_SECOND);
	CHECK_U64(machine_pop(&m, 1, 101, 78, 9, true), 1);
	expect_held(78, 101, 2, 1, 1);
	(void) pass(6 * QC_SECOND);
	CHECK_U64(machine_pop(&m, 1, 101, 79, 9, true), 1);
	expect_held(79, 101, 1, 1, 2);
	(void) pass(6 * QC_SECOND);
	CHECK_U64(machine_pop(&m, 1, 101, 80, 9, true), 1);
	expect_held(80, 101, 0, 1, 2);

	/* what waits is kept by a checkpoint and is due at the same time */
	nack(80, 101, 0, 1, (uint64_t) (10 * QC_SECOND));
	(void) pass(4 * QC_SECOND);
	machine_reload(&m);
	expect_counts(1, 0, 2, 1);
	(void) pass(5 * QC_SECOND);
	expect_counts(1, 0, 2, 1);
	(void) pass(2 * QC_SECOND);
	expect_counts(1, 1, 2, 0);
	machine_end(&m);
}

/* What a delivery cannot be. */
static void
test_bad_deliveries(void)
{
	QcDeliver	deliver = {.lease = 77, .queue = 9, .lease_us = 1000};
	QcDeliverItem item = {.partition = 101, .first = 0, .count = 1, .attempt = 1};
	QcApply		apply = {.recovering = true};
	uint8_t		bytes[200];
	QcWriter	w;
	QcReader	r;
	QcEffect	effect;

	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	machine_push(&m, 1, 101, 2);
	qc_writer_init(&w, bytes, sizeof(bytes));
	qc_effect_put(&w, QC_EFFECT_DELIVER, &deliver, 1);
	qc_effect_put_item(&w, QC_EFFECT_DELIVER, &item);
	qc_reader_init(&r, bytes, w.len);
	CHECK_U64(qc_effect_get(&r, &effect, &m.err), QC_OK);

	/* unknown queue; recovery knows that it may have been dropped since */
	apply.seq = m.st->seq + 1;
	CHECK_U64(qc_lease_deliver(m.st, &deliver, &effect, &apply, &m.err), QC_NOTFOUND);
	CHECK_U64(qc_apply_effect(m.st, &apply, &effect, &m.err), QC_OK);
	apply.recovering = false;
	CHECK_U64(qc_apply_effect(m.st, &apply, &effect, &m.err), QC_NOTFOUND);

	/* the lease is there already */
	CHECK_U64(machine_pop(&m, 1, 101, 77, 1, true), 1);
	deliver.queue = 1;
	CHECK_U64(qc_lease_deliver(m.st, &deliver, &effect, &apply, &m.err), QC_EXISTS);
	expect_held(77, 101, 0, 1, 1);
	machine_end(&m);
}

/* ---- memory ---- */

/* The last memory is for those who empty the state; what adds to it is refused first. */
static void
test_urgency(void)
{
	const uint64_t budgets[QC_BUDGET_COUNT] = {
		[QC_BUDGET_STATE] = 128 * QC_PAGE_SIZE,[QC_BUDGET_INDEX] = QC_PAGE_SIZE,
		[QC_BUDGET_DEDUP] = QC_PAGE_SIZE
	};
	uint64_t	size = qc_mem_block_size(sizeof(QcMem), budgets);
	QcMem	   *mem = malloc(size);
	uint32_t	per_page = QC_PAGE_SIZE / 64;
	uint64_t	spare;
	uint32_t	n;
	uint64_t	used;
	uint64_t	limit;

	qc_mem_init(mem, size, sizeof(QcMem), budgets);
	spare = mem->spare / QC_PAGE_SIZE;
	CHECK(spare >= 4 && spare <= 32);
	for (n = 0; qc_mem_reserve(mem, QC_CLASS_SLOT, per_page, QC_URGENCY_ADDS); n++)
		;
	CHECK_U64(n, 128 - spare);
	for (n = 0; qc_mem_reserve(mem, QC_CLASS_SLOT, per_page, QC_URGENCY_DELIVERS); n++)
		;
	CHECK_U64(n, spare - (spare / 2));
	for (n = 0; qc_mem_reserve(mem, QC_CLASS_SLOT, per_page, QC_URGENCY_EMPTIES); n++)
		;
	CHECK_U64(n, spare / 2 - spare / 4);

	/* a promise is whole or none, and belongs to nobody else */
	CHECK_U64(mem->pools[QC_CLASS_SLOT].nreserved, mem->pools[QC_CLASS_SLOT].nfree);
	CHECK(qc_mem_alloc(mem, QC_CLASS_SLOT) != 0);
	qc_mem_unreserve(mem, QC_CLASS_SLOT, 5);
	CHECK(qc_mem_reserve(mem, QC_CLASS_SLOT, 5, QC_URGENCY_ADDS));
	CHECK(!qc_mem_reserve(mem, QC_CLASS_SLOT, per_page + 1, QC_URGENCY_ADDS));

	/* recovery and promised objects take all there is */
	for (n = 0; qc_mem_alloc(mem, QC_CLASS_QUEUE) != 0; n++)
		;
	CHECK(n > 0);
	CHECK_U64(mem->left[QC_BUDGET_STATE], 0);
	CHECK(qc_mem_alloc_reserved(mem, QC_CLASS_SLOT) != 0);

	/* the other budgets are their own */
	CHECK(qc_mem_alloc(mem, QC_CLASS_INDEX) != 0);
	qc_mem_usage(mem, QC_BUDGET_INDEX, &used, &limit);
	CHECK_U64(used, 48);
	CHECK(limit > QC_PAGE_SIZE - 48 && limit <= QC_PAGE_SIZE);
	qc_mem_usage(mem, QC_BUDGET_DEDUP, &used, &limit);
	CHECK_U64(used, 0);
	free(mem);
}

/* Objects come back zeroed, whatever stood in them. */
static void
test_zeroed(void)
{
	static const uint8_t zeros[512];
	QcRef		ref;

	machine_begin(&m);
	ref = qc_mem_alloc(&m.st->mem, QC_CLASS_QUEUE);
	memset(qc_mem_at(&m.st->mem, ref), 0xee, 512);
	qc_mem_free(&m.st->mem, QC_CLASS_QUEUE, ref);
	qc_mem_free(&m.st->mem, QC_CLASS_QUEUE, 0);
	CHECK_U64(qc_mem_alloc(&m.st->mem, QC_CLASS_QUEUE), ref);
	CHECK_BYTES(qc_mem_at(&m.st->mem, ref), 512, zeros, 512);
	CHECK_U64(qc_mem_name_class(0), QC_CLASS_NAME32);
	CHECK_U64(qc_mem_name_class(32), QC_CLASS_NAME32);
	CHECK_U64(qc_mem_name_class(33), QC_CLASS_NAME64);
	CHECK_U64(qc_mem_name_class(65), QC_CLASS_NAME128);
	CHECK_U64(qc_mem_name_class(129), QC_CLASS_NAME256);
	CHECK_U64(qc_mem_name_class(255), QC_CLASS_NAME256);
	qc_mem_free(&m.st->mem, QC_CLASS_QUEUE, ref);
	machine_end(&m);
}

/* ---- options ---- */

static void
test_options(void)
{
	QcOptions	options;
	QcOptions	back;
	uint8_t		bytes[QC_OPTIONS_ENCODED_MAX];
	QcWriter	w;
	QcError		err;

	qc_options_default(&options);
	CHECK_U64(options.set, 0);
	CHECK_U64(options.value[QC_OPT_LEASE], 60 * QC_SECOND);
	CHECK_U64(qc_option_by_name("retry_limit"), QC_OPT_RETRY_LIMIT);
	CHECK_U64(qc_option_by_name("Retry_limit"), QC_OPTION_COUNT_);
	CHECK_U64(qc_option_by_name("dedup_since"), QC_OPTION_COUNT_);
	CHECK_STR(qc_option_info(QC_OPT_DELAY)->name, "delay");
	options.set = 1u << QC_OPT_RETRY_LIMIT | 1u << QC_OPT_RETENTION;
	options.value[QC_OPT_RETRY_LIMIT] = -1;
	options.value[QC_OPT_RETENTION] = 5;
	options.value[QC_OPT_LEASE] = 99;	/* not set: not stored */
	qc_writer_init(&w, bytes, sizeof(bytes));
	qc_options_put(&w, &options);
	CHECK_U64(w.len, 18);
	CHECK_U64(qc_options_get(bytes, w.len, &back, &err), QC_OK);
	CHECK_U64(back.set, options.set);
	CHECK_U64(back.value[QC_OPT_RETRY_LIMIT], UINT64_MAX);
	CHECK_U64(back.value[QC_OPT_RETENTION], 5);
	CHECK_U64(back.value[QC_OPT_LEASE], 60 * QC_SECOND);
	CHECK_U64(qc_options_get(bytes, 17, &back, &err), QC_DAMAGED);
	bytes[9] = QC_OPTION_COUNT_;
	CHECK_U64(qc_options_get(bytes, 18, &back, &err), QC_VERSION);
}

int
main(void)
{
	UNIT_RUN(test_queue_life);
	UNIT_RUN(test_sweep);
	UNIT_RUN(test_drop_waits);
	UNIT_RUN(test_visible_in_order);
	UNIT_RUN(test_aborted);
	UNIT_RUN(test_turns);
	UNIT_RUN(test_slots_limit);
	UNIT_RUN(test_ordered);
	UNIT_RUN(test_acks);
	UNIT_RUN(test_lease_of_many);
	UNIT_RUN(test_lease_clock);
	UNIT_RUN(test_two_answers);
	UNIT_RUN(test_retry);
	UNIT_RUN(test_bad_deliveries);
	UNIT_RUN(test_urgency);
	UNIT_RUN(test_zeroed);
	UNIT_RUN(test_options);
	return unit_end();
}
