/*
 * test_retry.c
 *		Messages that come back: attempts, delays, and the way to the dead letters.
 */
#include "machine.h"

#include "qc_purge.h"
#include "qc_timer.h"

#define LANE 200
#define ORDERED 150				/* a named partition of queue 1 */
#define SECOND QC_SECOND

static Machine m;

/* Queue 1 with these options, a named partition, a dead lane, and n messages in the partition. */
static void
begin(int64_t limit, int64_t delay, int64_t delay_max, uint64_t partition, uint32_t n)
{
	QcOptions	options;

	machine_begin(&m);
	qc_options_default(&options);
	options.set = 1u << QC_OPT_RETRY_LIMIT | 1u << QC_OPT_RETRY_DELAY | 1u << QC_OPT_RETRY_DELAY_MAX;
	options.value[QC_OPT_RETRY_LIMIT] = limit;
	options.value[QC_OPT_RETRY_DELAY] = delay;
	options.value[QC_OPT_RETRY_DELAY_MAX] = delay_max;
	machine_queue(&m, 1, &options);
	machine_partition(&m, 1, ORDERED, "p", QC_LANE_NONE);
	machine_partition(&m, 1, LANE, "", QC_LANE_DEAD);
	machine_push(&m, 1, partition, n);
}

static void
release(uint64_t lease, uint8_t reason)
{
	QcRelease	effect = {.lease = lease, .delay_us = QC_DELAY_RULE, .reason = reason,
		.messages = qc_lease_by_id(m.st, lease)->nslots};

	machine_op_effect(&m, QC_EFFECT_RELEASE, &effect, NULL, 0, 0);
	(void) machine_log(&m, 0, true, NULL);
}

static void
nack(uint64_t lease, uint64_t partition, uint64_t first, uint32_t count, uint64_t delay)
{
	QcNack		effect = {.lease = lease, .delay_us = delay};
	QcNackItem	item = {.partition = partition, .first = first, .count = count};

	machine_op_effect(&m, QC_EFFECT_NACK, &effect, &item, sizeof(item), 1);
	(void) machine_log(&m, 0, true, NULL);
}

/* What the mover logs for a dying message; lane 0 drops it. */
static void
move(uint64_t partition, uint64_t position, uint64_t to)
{
	QcDead		dead = {.group = QC_DEFAULT_GROUP, .partition = partition, .position = position,
		.attempt = 1, .lane = to, .cause = QC_DEAD_EXPIRED};

	if (to != 0)
		machine_op_dead(&m, &dead, 1);
	else
		machine_op_effect(&m, QC_EFFECT_DEAD, &dead, NULL, 0, 0);
	(void) machine_log(&m, 0, true, NULL);
}

static void
expect_slot(uint64_t partition, uint64_t position, QcSlotState state, uint32_t attempt)
{
	const QcSlot *slot = machine_slot(&m, partition, position);

	if (!CHECK(slot != NULL))
		return;
	CHECK_U64(slot->state, state);
	CHECK_U64(slot->attempt, attempt);
}

/* Let the time of whatever waits come. */
static void
pass(int64_t us)
{
	uint64_t	ids[4];

	m.now += us;
	m.monotonic += us;
	(void) qc_timers_run(m.st, m.monotonic, ids, 4);
}

static uint32_t
dying(void)
{
	uint32_t	n = 0;

	for (QcRef ref = m.st->dying.head; ref != 0; ref = QC_AT(m.st, QcSlot, ref)->of_lease.next)
		n++;
	return n;
}

static QcGroup *
group(void)
{
	return qc_group_by_id(m.st, qc_queue_by_id(m.st, 1), QC_DEFAULT_GROUP);
}

/* Delivered once and `limit` times more, whatever way it comes back; then never again. */
static void
test_limit(void)
{
	static const uint8_t reasons[] = {QC_RELEASE_ABORT, QC_RELEASE_EXPIRED, QC_RELEASE_LOST};
	static const uint8_t causes[] = {QC_DEAD_ABORTED, QC_DEAD_EXPIRED, QC_DEAD_LOST, QC_DEAD_NACKED};

	for (int way = 0; way < 4; way++)
	{
		begin(2, 0, SECOND, 101, 1);
		for (uint32_t attempt = 1; attempt <= 3; attempt++)
		{
			CHECK_U64(machine_pop(&m, 1, 101, attempt, 1, true), 1);
			expect_slot(101, 0, QC_SLOT_LEASED, attempt);
			if (way < 3)
				release(attempt, reasons[way]);
			else
				nack(attempt, 101, 0, 1, QC_DELAY_RULE);
			expect_slot(101, 0, attempt < 3 ? QC_SLOT_RETRY : QC_SLOT_DYING, attempt);
		}
		CHECK_U64(machine_slot(&m, 101, 0)->cause, causes[way]);
		CHECK_U64(machine_pop(&m, 1, 0, 9, 1, true), 0);
		CHECK_U64(dying(), 1);
		CHECK_U64(group()->nready, 0);
		CHECK_U64(group()->nwaiting, 1);
		machine_end(&m);
	}
}

static void
test_no_limit(void)
{
	begin(-1, 0, SECOND, 101, 1);
	for (uint32_t attempt = 1; attempt <= 50; attempt++)
	{
		CHECK_U64(machine_pop(&m, 1, 101, attempt, 1, true), 1);
		release(attempt, QC_RELEASE_EXPIRED);
	}
	expect_slot(101, 0, QC_SLOT_RETRY, 50);
	machine_end(&m);
}

static void
test_limit_of_zero(void)
{
	begin(0, 0, SECOND, 101, 2);
	CHECK_U64(machine_pop(&m, 1, 101, 1, 2, true), 2);
	release(1, QC_RELEASE_EXPIRED);
	expect_slot(101, 0, QC_SLOT_DYING, 1);
	expect_slot(101, 1, QC_SLOT_DYING, 1);
	CHECK_U64(dying(), 2);
	machine_end(&m);
}

/* One second, two, four, and never more than five. */
static void
test_delay_doubles(void)
{
	static const int64_t delays[] = {1, 2, 4, 5, 5};

	begin(-1, SECOND, 5 * SECOND, 101, 1);
	for (uint32_t i = 0; i < 5; i++)
	{
		CHECK_U64(machine_pop(&m, 1, 101, i + 1, 1, true), 1);
		release(i + 1, QC_RELEASE_ABORT);
		CHECK_U64(machine_slot(&m, 101, 0)->due, m.now + delays[i] * SECOND);
		CHECK_U64(machine_pop(&m, 1, 101, 99, 1, true), 0);
		pass(delays[i] * SECOND - 1);
		expect_slot(101, 0, QC_SLOT_WAITING, i + 1);
		pass(1);
		expect_slot(101, 0, QC_SLOT_RETRY, i + 1);
	}
	machine_end(&m);
}

static void
test_delay_above_its_cap(void)
{
	begin(-1, 10 * SECOND, 3 * SECOND, 101, 1);
	CHECK_U64(machine_pop(&m, 1, 101, 1, 1, true), 1);
	release(1, QC_RELEASE_ABORT);
	CHECK_U64(machine_slot(&m, 101, 0)->due, m.now + 3 * SECOND);
	machine_end(&m);
}

/* A delay that the consumer names counts, zero included. */
static void
test_delay_of_a_nack(void)
{
	begin(-1, SECOND, 5 * SECOND, 101, 1);
	CHECK_U64(machine_pop(&m, 1, 101, 1, 1, true), 1);
	nack(1, 101, 0, 1, 0);
	expect_slot(101, 0, QC_SLOT_RETRY, 1);
	CHECK_U64(machine_pop(&m, 1, 101, 2, 1, true), 1);
	nack(2, 101, 0, 1, 77 * SECOND);
	CHECK_U64(machine_slot(&m, 101, 0)->due, m.now + 77 * SECOND);
	machine_end(&m);
}

/* In order only the lowest message of what comes back is charged, and waits. */
static void
test_ordered_charges_the_lowest(void)
{
	begin(3, SECOND, 60 * SECOND, ORDERED, 4);
	CHECK_U64(machine_pop(&m, 1, ORDERED, 1, 4, true), 4);
	machine_ack(&m, 1, ORDERED, 0, 1);
	release(1, QC_RELEASE_EXPIRED);
	CHECK(machine_slot(&m, ORDERED, 0) == NULL);
	expect_slot(ORDERED, 1, QC_SLOT_WAITING, 1);
	expect_slot(ORDERED, 2, QC_SLOT_RETRY, 0);
	expect_slot(ORDERED, 3, QC_SLOT_RETRY, 0);

	/* nothing overtakes it */
	CHECK_U64(machine_pop(&m, 1, 0, 2, 4, true), 0);
	pass(SECOND);
	CHECK_U64(machine_pop(&m, 1, 0, 2, 4, true), 3);
	expect_slot(ORDERED, 1, QC_SLOT_LEASED, 2);
	expect_slot(ORDERED, 2, QC_SLOT_LEASED, 1);
	expect_slot(ORDERED, 3, QC_SLOT_LEASED, 1);

	/* given back from the middle on: the lowest one named is charged */
	nack(2, ORDERED, 2, QC_NACK_REST, QC_DELAY_RULE);
	expect_slot(ORDERED, 1, QC_SLOT_LEASED, 2);
	expect_slot(ORDERED, 2, QC_SLOT_WAITING, 1);
	expect_slot(ORDERED, 3, QC_SLOT_RETRY, 0);
	CHECK_U64(qc_queue_by_id(m.st, 1)->nacked, 2);
	machine_end(&m);
}

/*
 * A replay may meet the end of a lease before it knows that an entry has acknowledged from it.	The number of messages in
 * the release tells that it had: what remained is charged as it was then.
 */
static void
test_release_before_the_decision(void)
{
	QcAck		ack = {.lease = 1, .group = QC_DEFAULT_GROUP};
	QcAckItem	first = {.partition = ORDERED, .first = 0, .count = 1};
	QcRelease	effect = {.lease = 1, .delay_us = QC_DELAY_RULE, .reason = QC_RELEASE_EXPIRED};

	for (uint32_t messages = 2; messages <= 3; messages++)
	{
		QcOpen	   *open;

		begin(3, 0, SECOND, ORDERED, 3);
		CHECK_U64(machine_pop(&m, 1, ORDERED, 1, 3, true), 3);
		machine_op_effect(&m, QC_EFFECT_ACK, &ack, &first, sizeof(first), 1);
		open = machine_log(&m, 30, false, NULL);
		effect.messages = messages;
		machine_op_effect(&m, QC_EFFECT_RELEASE, &effect, NULL, 0, 0);
		(void) machine_log(&m, 0, true, NULL);

		/* two were left, so it had committed; three, so it had not */
		expect_slot(ORDERED, 0, QC_SLOT_RETRY, messages == 2 ? 0 : 1);
		expect_slot(ORDERED, 1, QC_SLOT_RETRY, messages == 2 ? 1 : 0);
		expect_slot(ORDERED, 2, QC_SLOT_RETRY, 0);
		CHECK_U64(qc_queue_by_id(m.st, 1)->expired, messages);
		machine_settle(&m, open, messages == 2);
		CHECK((machine_slot(&m, ORDERED, 0) == NULL) == (messages == 2));
		machine_end(&m);
	}
}

/* With no retry at all, a failing message takes none of those behind it along. */
/* A transaction that acknowledges one message of lease 7, not settled. */
static QcOpen *
acknowledge(uint64_t xid, uint64_t partition, uint64_t position)
{
	QcAck		ack = {.lease = 7, .group = QC_DEFAULT_GROUP};
	QcAckItem	item = {.partition = partition, .first = position, .count = 1};

	machine_op_effect(&m, QC_EFFECT_ACK, &ack, &item, sizeof(item), 1);
	return machine_log(&m, xid, false, NULL);
}

/*
 * Replay of a release after two answers, of which one was rolled back before it and the other one committed: what was not
 * acknowledged has used up its attempt.
 */
static void
expect_release_after_rollback(uint64_t partition)
{
	QcRelease	effect = {.lease = 7, .reason = QC_RELEASE_EXPIRED, .messages = 2};
	QcOpen	   *first;
	QcOpen	   *second;

	begin(-1, 0, 0, partition, 3);
	CHECK_U64(machine_pop(&m, 1, partition, 7, 3, true), 3);
	first = acknowledge(30, partition, 0);
	second = acknowledge(31, partition, 1);
	machine_op_effect(&m, QC_EFFECT_RELEASE, &effect, NULL, 0, 0);
	(void) machine_log(&m, 0, true, NULL);
	machine_settle(&m, first, false);
	machine_settle(&m, second, true);
	expect_slot(partition, 0, QC_SLOT_RETRY, 1);
	CHECK(machine_slot(&m, partition, 1) == NULL);
	expect_slot(partition, 2, QC_SLOT_RETRY, 1);
	machine_end(&m);
}

static void
test_release_after_a_rollback(void)
{
	expect_release_after_rollback(101);
	expect_release_after_rollback(ORDERED);
}

static void
test_ordered_limit_of_zero(void)
{
	begin(0, 0, SECOND, ORDERED, 3);
	CHECK_U64(machine_pop(&m, 1, ORDERED, 1, 3, true), 3);
	release(1, QC_RELEASE_EXPIRED);
	expect_slot(ORDERED, 0, QC_SLOT_DYING, 1);
	expect_slot(ORDERED, 1, QC_SLOT_RETRY, 0);
	CHECK_U64(dying(), 1);
	CHECK_U64(machine_pop(&m, 1, 0, 2, 3, true), 0);
	move(ORDERED, 0, LANE);
	CHECK(machine_slot(&m, ORDERED, 0) == NULL);
	CHECK_U64(machine_pop(&m, 1, 0, 2, 3, true), 2);
	expect_slot(ORDERED, 1, QC_SLOT_LEASED, 1);
	machine_end(&m);
}

/* One lease over two ordered partitions: each has its lowest message. */
static void
test_lease_over_two_partitions(void)
{
	QcDeliver	deliver = {.lease = 5, .queue = 1, .lease_us = 60 * SECOND};
	QcDeliverItem runs[] = {{.partition = ORDERED, .first = 0, .count = 2, .attempt = 1},
		{.partition = ORDERED + 1, .first = 0, .count = 2, .attempt = 1}};

	begin(0, 0, SECOND, ORDERED, 2);
	machine_partition(&m, 1, ORDERED + 1, "q", QC_LANE_NONE);
	machine_push(&m, 1, ORDERED + 1, 2);
	machine_op_effect(&m, QC_EFFECT_DELIVER, &deliver, runs, sizeof(runs[0]), 2);
	(void) machine_log(&m, 0, true, NULL);
	release(5, QC_RELEASE_EXPIRED);
	expect_slot(ORDERED, 0, QC_SLOT_DYING, 1);
	expect_slot(ORDERED, 1, QC_SLOT_RETRY, 0);
	expect_slot(ORDERED + 1, 0, QC_SLOT_DYING, 1);
	expect_slot(ORDERED + 1, 1, QC_SLOT_RETRY, 0);
	machine_end(&m);
}

/* Where order does not count, a dying message holds up nobody. */
static void
test_others_go_on(void)
{
	begin(0, 0, SECOND, 101, 3);
	CHECK_U64(machine_pop(&m, 1, 101, 1, 1, true), 1);
	release(1, QC_RELEASE_EXPIRED);
	CHECK_U64(machine_pop(&m, 1, 101, 2, 5, true), 2);
	CHECK(machine_slot(&m, 101, 1)->state == QC_SLOT_LEASED);
	CHECK(machine_slot(&m, 101, 2)->state == QC_SLOT_LEASED);
	machine_end(&m);
}

static void
test_move_counts(void)
{
	QcPartition *lane;

	begin(0, 0, SECOND, 101, 2);
	CHECK_U64(machine_pop(&m, 1, 101, 1, 2, true), 2);
	release(1, QC_RELEASE_EXPIRED);

	/* not the head of the list, then the head */
	move(101, 1, LANE);
	move(101, 0, LANE);
	lane = qc_partition_by_id(m.st, LANE);
	CHECK_U64(dying(), 0);
	CHECK_U64(lane->nitems, 2);
	CHECK_U64(qc_lane_seek(m.st, lane, 0, 0)->origin, 1);
	CHECK_U64(qc_lane_seek(m.st, lane, 1, 0)->origin, 0);
	CHECK_U64(qc_lane_seek(m.st, lane, 1, 0)->reason, QC_DEAD_EXPIRED);
	CHECK_U64(qc_queue_by_id(m.st, 1)->dead, 2);
	CHECK_U64(qc_queue_by_id(m.st, 1)->dropped, 0);
	CHECK_U64(group()->nwaiting, 0);
	CHECK_U64(m.st->mem.pools[QC_CLASS_SLOT].nused, 0);
	machine_end(&m);
}

static void
test_drop_counts(void)
{
	begin(0, 0, SECOND, 101, 1);
	CHECK_U64(machine_pop(&m, 1, 101, 1, 1, true), 1);
	release(1, QC_RELEASE_EXPIRED);
	move(101, 0, 0);
	CHECK(machine_slot(&m, 101, 0) == NULL);
	CHECK_U64(dying(), 0);
	CHECK_U64(qc_queue_by_id(m.st, 1)->dead, 0);
	CHECK_U64(qc_queue_by_id(m.st, 1)->dropped, 1);
	machine_reload(&m);
	CHECK_U64(qc_queue_by_id(m.st, 1)->dropped, 1);
	machine_end(&m);
}

/* Attempts, causes and due times are in the checkpoint; who is dying follows from them. */
static void
test_checkpoint(void)
{
	begin(1, SECOND, SECOND, 101, 3);
	CHECK_U64(machine_pop(&m, 1, 101, 1, 1, true), 1);
	release(1, QC_RELEASE_EXPIRED);
	pass(SECOND);
	CHECK_U64(machine_pop(&m, 1, 101, 2, 3, true), 3);
	nack(2, 101, 1, 1, 10 * SECOND);
	release(2, QC_RELEASE_LOST);
	machine_reload(&m);
	expect_slot(101, 0, QC_SLOT_DYING, 2);
	CHECK_U64(machine_slot(&m, 101, 0)->cause, QC_DEAD_LOST);
	expect_slot(101, 1, QC_SLOT_WAITING, 1);
	CHECK_U64(machine_slot(&m, 101, 1)->cause, QC_DEAD_NACKED);
	CHECK_U64(machine_slot(&m, 101, 1)->due, m.now + 10 * SECOND);
	expect_slot(101, 2, QC_SLOT_WAITING, 1);
	CHECK_U64(dying(), 1);
	CHECK_U64(group()->nwaiting, 3);

	/* the limit is another one now */
	qc_queue_by_id(m.st, 1)->options.value[QC_OPT_RETRY_LIMIT] = 0;
	qc_queue_by_id(m.st, 1)->options.set |= 1u << QC_OPT_RETRY_LIMIT;
	qc_dirty_queue(m.st, qc_queue_by_id(m.st, 1));
	machine_reload(&m);
	CHECK_U64(dying(), 3);
	machine_end(&m);
}

/* One that cannot be moved comes back into the list later; it holds up neither the others nor the end of its queue. */
static void
test_defer(void)
{
	begin(0, 0, SECOND, 101, 2);
	CHECK_U64(machine_pop(&m, 1, 101, 1, 2, true), 2);
	release(1, QC_RELEASE_EXPIRED);
	CHECK(qc_slot_defer(m.st, machine_slot(&m, 101, 0), SECOND, m.monotonic));
	CHECK_U64(dying(), 1);
	CHECK(m.st->dying.head == QC_REF(m.st, machine_slot(&m, 101, 1)));
	pass(SECOND);
	CHECK_U64(dying(), 2);
	expect_slot(101, 0, QC_SLOT_DYING, 1);

	/* deferred again, and moved all the same */
	CHECK(qc_slot_defer(m.st, machine_slot(&m, 101, 0), SECOND, m.monotonic));
	move(101, 0, LANE);
	CHECK(machine_slot(&m, 101, 0) == NULL);
	CHECK_U64(m.st->ntimers, 0);
	machine_end(&m);
}

/* A message that was put off is in no list when a purge of its queue is noticed by its timer; that of another queue is. */
static void
test_defer_and_purge(void)
{
	QcOptions	options;

	begin(0, 0, SECOND, 101, 1);
	qc_options_default(&options);
	options.set = 1u << QC_OPT_RETRY_LIMIT;
	options.value[QC_OPT_RETRY_LIMIT] = 0;
	machine_queue(&m, 2, &options);
	machine_push(&m, 2, 102, 1);
	CHECK_U64(machine_pop(&m, 1, 101, 1, 1, true), 1);
	CHECK_U64(machine_pop(&m, 2, 102, 2, 1, true), 1);
	release(1, QC_RELEASE_EXPIRED);
	CHECK(qc_slot_defer(m.st, machine_slot(&m, 101, 0), SECOND, m.monotonic));
	release(2, QC_RELEASE_EXPIRED);
	qc_purge_queue(m.st, qc_queue_by_id(m.st, 1), NULL);
	pass(SECOND);
	CHECK(machine_slot(&m, 101, 0) == NULL);
	CHECK_U64(dying(), 1);
	CHECK(m.st->dying.head == QC_REF(m.st, machine_slot(&m, 102, 0)));
	CHECK_U64(m.st->ntimers, 0);
	machine_end(&m);
}

/* After a crash the log may tell that it was delivered once more, under another limit. */
static void
test_replay_under_another_limit(void)
{
	QcDeliver	deliver = {.lease = 5, .queue = 1, .lease_us = 60 * SECOND};
	QcDeliverItem run = {.partition = 101, .first = 0, .count = 1, .attempt = 2};

	begin(0, 0, SECOND, 101, 1);
	CHECK_U64(machine_pop(&m, 1, 101, 1, 1, true), 1);
	release(1, QC_RELEASE_EXPIRED);
	machine_op_effect(&m, QC_EFFECT_DELIVER, &deliver, &run, sizeof(run), 1);
	(void) machine_log(&m, 0, true, NULL);
	expect_slot(101, 0, QC_SLOT_LEASED, 2);
	CHECK_U64(dying(), 0);
	CHECK_U64(group()->nwaiting, 0);
	CHECK_U64(group()->nready, 0);
	CHECK_U64(group()->nleased, 1);
	machine_end(&m);
}

/* The limit was raised while it was waiting: it lives. */
static void
test_revive(void)
{
	begin(0, 0, SECOND, 101, 1);
	CHECK_U64(machine_pop(&m, 1, 101, 1, 1, true), 1);
	release(1, QC_RELEASE_EXPIRED);
	qc_slot_revive(m.st, machine_slot(&m, 101, 0));
	CHECK_U64(dying(), 0);
	CHECK_U64(group()->nready, 1);
	CHECK_U64(machine_pop(&m, 1, 101, 2, 1, true), 1);
	expect_slot(101, 0, QC_SLOT_LEASED, 2);
	machine_end(&m);
}

/* Whoever runs the timers is called for it. */
static void
test_alarm(void)
{
	begin(0, 0, SECOND, 101, 1);
	CHECK_U64(machine_pop(&m, 1, 101, 1, 1, true), 1);
	(void) qc_timers_rest(m.st);
	release(1, QC_RELEASE_EXPIRED);
	CHECK_U64(m.st->alarm, 1);
	machine_end(&m);
}

int
main(void)
{
	UNIT_RUN(test_limit);
	UNIT_RUN(test_no_limit);
	UNIT_RUN(test_limit_of_zero);
	UNIT_RUN(test_delay_doubles);
	UNIT_RUN(test_delay_above_its_cap);
	UNIT_RUN(test_delay_of_a_nack);
	UNIT_RUN(test_ordered_charges_the_lowest);
	UNIT_RUN(test_release_before_the_decision);
	UNIT_RUN(test_release_after_a_rollback);
	UNIT_RUN(test_ordered_limit_of_zero);
	UNIT_RUN(test_lease_over_two_partitions);
	UNIT_RUN(test_others_go_on);
	UNIT_RUN(test_move_counts);
	UNIT_RUN(test_drop_counts);
	UNIT_RUN(test_checkpoint);
	UNIT_RUN(test_defer);
	UNIT_RUN(test_defer_and_purge);
	UNIT_RUN(test_replay_under_another_limit);
	UNIT_RUN(test_revive);
	UNIT_RUN(test_alarm);
	return unit_end();
}
