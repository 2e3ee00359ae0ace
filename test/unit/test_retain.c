/*
 * test_retain.c
 *		Retention: what may go and what stays, and what removing does to partitions, groups and counts; over a checkpoint and
 *		in a replay where what led to it is decided later.
 */
#include "machine.h"
#include "portrait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qc_catalog.h"
#include "qc_group.h"
#include "qc_retain_pass.h"
#include "qc_volume.h"

#define ALL UINT64_MAX

static Machine m;
static QcRetainVerdict verdict;

static void
begin(void)
{
	machine_begin(&m);
	machine_queue(&m, 1, NULL);
}

static void
end(void)
{
	CHECK(portrait_counts(m.st));
	machine_end(&m);
}

static QcPartition *
partition(uint64_t id)
{
	return qc_partition_by_id(m.st, id);
}

static QcQueue *
queue(uint64_t id)
{
	return qc_queue_by_id(m.st, id);
}

static void
group_make(uint64_t id, uint8_t start, const char *name)
{
	QcGroupCreate create = {.group = id, .queue = 1, .start = start};

	create.name.bytes = (const uint8_t *) name;
	create.name.len = (uint16_t) strlen(name);
	machine_op_effect(&m, QC_EFFECT_GROUP_CREATE, &create, NULL, 0, 0);
	(void) machine_log(&m, 0, true, NULL);
}

static void
below(uint64_t id, uint64_t start, uint64_t unread)
{
	QcWatermark effect = {.queue = 1};
	QcWatermarkItem item = {.partition = id, .start = start, .unread = unread};

	machine_op_effect(&m, QC_EFFECT_WATERMARK, &effect, &item, sizeof(item), 1);
	(void) machine_log(&m, 0, true, NULL);
}

static void
gone(uint64_t id, uint64_t first, uint32_t count, uint32_t unread)
{
	QcGone		effect = {.queue = 1};
	QcGoneItem	item = {.partition = id, .first = first, .count = count, .unread = unread};

	machine_op_effect(&m, QC_EFFECT_GONE, &effect, &item, sizeof(item), 1);
	(void) machine_log(&m, 0, true, NULL);
}

static bool
judge(uint64_t id, uint64_t done_to, uint64_t any_to)
{
	QcRetainBounds bounds = {.done_to = done_to, .any_to = any_to};

	return qc_retain_judge(m.st, partition(id), &bounds, &verdict);
}

static void
nack(uint64_t lease, uint64_t id, uint64_t first, uint32_t count)
{
	QcNack		effect = {.lease = lease};
	QcNackItem	item = {.partition = id, .first = first, .count = count};

	machine_op_effect(&m, QC_EFFECT_NACK, &effect, &item, sizeof(item), 1);
	(void) machine_log(&m, 0, true, NULL);
}

/* The whole state, before and after a checkpoint. */
static void
expect_stored(void)
{
	char	   *before = portrait(m.st);
	char	   *after;

	machine_reload(&m);
	after = portrait(m.st);
	CHECK(portrait_same(after, before, "after a checkpoint"));
	CHECK(portrait_counts(m.st));
	free(before);
	free(after);
}

/* ---- judging ---- */

static void
test_finished_messages_go(void)
{
	begin();
	machine_push(&m, 1, 101, 10);
	CHECK(!judge(101, ALL, 0));
	CHECK_U64(machine_pop(&m, 1, 101, 7, 4, true), 4);
	CHECK(!judge(101, ALL, 0));
	machine_ack(&m, 7, 101, 0, 3);
	CHECK(judge(101, ALL, 0));
	CHECK_U64(verdict.start, 3);
	CHECK_U64(verdict.unread, 0);
	CHECK_U64(verdict.nranges, 0);

	/* not those that are too young */
	CHECK(judge(101, 2, 0));
	CHECK_U64(verdict.start, 2);
	machine_ack(&m, 7, 101, 3, 1);
	CHECK(judge(101, ALL, 0));
	CHECK_U64(verdict.start, 4);
	end();
}

/* The group that is furthest behind decides; one that begins with new messages waits for none. */
static void
test_every_group_counts(void)
{
	begin();
	machine_push(&m, 1, 101, 10);
	CHECK_U64(machine_pop(&m, 1, 101, 7, 10, true), 10);
	machine_ack(&m, 7, 101, 0, 10);
	group_make(1, QC_START_OLDEST, "old");
	CHECK(!judge(101, ALL, 0));
	group_make(2, QC_START_NEW, "new");
	CHECK(!judge(101, ALL, 0));
	CHECK(qc_group_place(m.st, qc_group_by_id(m.st, queue(1), 1), partition(101), 6, false));
	CHECK(judge(101, ALL, 0));
	CHECK_U64(verdict.start, 6);
	end();
}

/* Without a group nobody has finished anything. */
static void
test_queue_without_groups_keeps_all(void)
{
	QcGroupDrop drop = {.queue = 1, .group = QC_DEFAULT_GROUP};

	begin();
	machine_push(&m, 1, 101, 10);
	machine_op_effect(&m, QC_EFFECT_GROUP_DROP, &drop, NULL, 0, 0);
	machine_settle(&m, machine_log(&m, 50, false, NULL), true);
	CHECK_U64(queue(1)->ngroups, 0);
	CHECK(!judge(101, ALL, 0));
	CHECK(judge(101, ALL, 4));
	CHECK_U64(verdict.start, 4);
	CHECK_U64(verdict.unread, 4);
	end();
}

/* Age takes unread messages too, but not one that somebody holds. */
static void
test_age_takes_all_but_what_is_leased(void)
{
	begin();
	machine_push(&m, 1, 101, 10);
	CHECK(judge(101, ALL, 6));
	CHECK_U64(verdict.start, 6);
	CHECK_U64(verdict.unread, 6);
	CHECK_U64(machine_pop(&m, 1, 101, 7, 1, true), 1);
	CHECK_U64(machine_pop(&m, 1, 101, 8, 3, true), 3);
	nack(7, 101, 0, 1);
	machine_ack(&m, 8, 101, 1, 1);
	machine_ack(&m, 8, 101, 3, 1);

	/* 0 waits to be taken again, 1 and 3 are done, 2 is leased */
	CHECK(judge(101, ALL, 6));
	CHECK_U64(verdict.start, 2);
	CHECK_U64(verdict.unread, 1);
	if (CHECK_U64(verdict.nranges, 1))
	{
		CHECK_U64(verdict.ranges[0].first, 3);
		CHECK_U64(verdict.ranges[0].count, 3);
		CHECK_U64(verdict.ranges[0].unread, 2);
	}
	CHECK(!judge(101, ALL, 0));
	end();
}

/* What is on its way to the dead letters is read once more. */
static void
test_dying_message_stays(void)
{
	QcOptions	options;

	qc_options_default(&options);
	options.set = 1u << QC_OPT_RETRY_LIMIT;
	options.value[QC_OPT_RETRY_LIMIT] = 0;
	machine_begin(&m);
	machine_queue(&m, 1, &options);
	machine_push(&m, 1, 101, 3);
	CHECK_U64(machine_pop(&m, 1, 101, 7, 2, true), 2);
	nack(7, 101, 1, 1);
	machine_ack(&m, 7, 101, 0, 1);
	CHECK_U64(machine_slot(&m, 101, 1)->state, QC_SLOT_DYING);
	CHECK(judge(101, ALL, ALL));
	CHECK_U64(verdict.start, 1);
	CHECK_U64(verdict.ranges[0].first, 2);
	end();
}

/* An entry that is not settled holds up what is behind it. */
static void
test_open_entry_stays(void)
{
	QcOpen	   *open;

	begin();
	machine_push(&m, 1, 101, 2);
	machine_op_push(&m, 101, 1, 2);
	open = machine_log(&m, 60, false, NULL);
	machine_push(&m, 1, 101, 2);
	CHECK(judge(101, ALL, ALL));
	CHECK_U64(verdict.start, 2);
	CHECK_U64(verdict.unread, 2);
	machine_settle(&m, open, false);
	CHECK(judge(101, ALL, ALL));
	CHECK_U64(verdict.start, 6);
	CHECK_U64(verdict.unread, 4);
	end();
}

/* Large runs of finished messages behind an unfinished one become ranges, small ones are not worth it. */
static void
test_runs_behind_a_held_message(void)
{
	begin();
	machine_push(&m, 1, 101, 9);
	for (uint64_t i = 0; i < 9; i++)
		CHECK_U64(machine_pop(&m, 1, 101, 10 + i, 1, true), 1);
	for (uint64_t i = 1; i < 9; i++)
	{
		if (i != 5)
			machine_ack(&m, 10 + i, 101, i, 1);
	}
	CHECK(!judge(101, ALL, 0));

	/* as if messages were large */
	partition(101)->bytes = 9 * 20000;
	CHECK(judge(101, ALL, 0));
	CHECK_U64(verdict.start, 0);
	if (CHECK_U64(verdict.nranges, 1))
	{
		CHECK_U64(verdict.ranges[0].first, 1);
		CHECK_U64(verdict.ranges[0].count, 4);
		CHECK_U64(verdict.ranges[0].unread, 0);
	}
	gone(101, 1, 4, 0);
	CHECK(!judge(101, ALL, 0));
	machine_ack(&m, 10, 101, 0, 1);
	CHECK(judge(101, ALL, 0));
	CHECK_U64(verdict.start, 5);
	below(101, 5, 0);
	CHECK_U64(partition(101)->aborted.head, 0);
	end();
}

/* ---- removing ---- */

static void
test_removing_below(void)
{
	QcGroup    *old;

	begin();
	machine_push(&m, 1, 101, 10);
	group_make(1, QC_START_OLDEST, "old");
	old = qc_group_by_id(m.st, queue(1), 1);
	CHECK_U64(old->unscanned, 10);
	CHECK_U64(machine_pop(&m, 1, 101, 7, 4, true), 4);
	nack(7, 101, 1, 1);
	below(101, 3, 2);
	CHECK_U64(partition(101)->start, 3);
	CHECK_U64(partition(101)->visible, 7);
	CHECK_U64(queue(1)->visible, 7);
	CHECK_U64(queue(1)->unread, 2);
	CHECK_U64(old->unscanned, 7);
	CHECK(machine_slot(&m, 101, 0) != NULL);
	CHECK(machine_slot(&m, 101, 1) == NULL);
	expect_stored();
	CHECK_U64(queue(1)->unread, 2);

	/* what was leased goes on, though its place is gone */
	machine_ack(&m, 7, 101, 0, 1);
	CHECK(machine_slot(&m, 101, 0) == NULL);

	/* never delivered: passed over */
	below(101, 6, 2);
	CHECK_U64(qc_group_default(m.st, queue(1))->nready, 4);
	CHECK_U64(machine_pop(&m, 1, 101, 8, 10, true), 4);
	CHECK(machine_slot(&m, 101, 6) != NULL);

	/* to the end, and never back */
	below(101, 10, 0);
	CHECK_U64(partition(101)->visible, 0);
	below(101, 4, 0);
	CHECK_U64(partition(101)->start, 10);
	machine_push(&m, 1, 101, 1);
	CHECK_U64(machine_pop(&m, 1, 101, 9, 10, true), 1);
	CHECK(machine_slot(&m, 101, 10) != NULL);
	expect_stored();
	end();
}

static void
test_removing_a_range(void)
{
	begin();
	machine_push(&m, 1, 101, 10);
	CHECK_U64(machine_pop(&m, 1, 101, 7, 2, true), 2);
	gone(101, 4, 3, 3);
	CHECK_U64(partition(101)->visible, 7);
	CHECK_U64(queue(1)->unread, 3);
	CHECK_U64(qc_group_default(m.st, queue(1))->nready, 5);
	expect_stored();
	CHECK_U64(qc_skip_aborted(m.st, partition(101), 4), 7);
	CHECK_U64(machine_pop(&m, 1, 101, 8, 10, true), 5);
	CHECK(machine_slot(&m, 101, 3) != NULL);
	CHECK(machine_slot(&m, 101, 4) == NULL);
	CHECK(machine_slot(&m, 101, 7) != NULL);

	/* neighbours become one, on either side and in the middle */
	gone(101, 8, 1, 0);
	gone(101, 7, 1, 0);
	CHECK_U64(QC_AT(m.st, QcAbortedRange, partition(101)->aborted.head)->count, 5);
	CHECK_U64(QC_AT(m.st, QcAbortedRange, partition(101)->aborted.head)->next, 0);
	expect_stored();
	end();
}

/* Where the groups stand that come later: never below the start, never in a range. */
static void
test_groups_below_the_start(void)
{
	QcSeek		seek = {.mode = QC_SEEK_SET, .queue = 1, .group = QC_DEFAULT_GROUP};
	QcSeekItem	place = {.partition = 101, .position = 1};
	QcGroup    *late;
	uint32_t	used;

	begin();
	machine_push(&m, 1, 101, 10);
	CHECK_U64(machine_pop(&m, 1, 101, 7, 10, true), 10);
	machine_ack(&m, 7, 101, 0, 10);
	below(101, 3, 0);
	gone(101, 4, 2, 0);
	group_make(1, QC_START_OLDEST, "late");
	late = qc_group_by_id(m.st, queue(1), 1);
	CHECK_U64(late->unscanned, 5);
	CHECK_U64(qc_group_cursor(m.st, late, partition(101), false, &used)->fetch, 3);
	CHECK_U64(late->nready, 5);
	machine_op_effect(&m, QC_EFFECT_SEEK, &seek, &place, sizeof(place), 1);
	machine_settle(&m, machine_log(&m, 70, false, NULL), true);
	CHECK_U64(qc_cursor_of(m.st, partition(101), qc_group_default(m.st, queue(1)))->fetch, 3);
	place.position = 5;
	machine_op_effect(&m, QC_EFFECT_SEEK, &seek, &place, sizeof(place), 1);
	machine_settle(&m, machine_log(&m, 71, false, NULL), true);
	CHECK_U64(qc_cursor_of(m.st, partition(101), qc_group_default(m.st, queue(1)))->fetch, 6);
	end();
}

/*
 * A replay applies a removal before it learns that what led to it was committed: leases on what is gone stay until then, and
 * messages that come to light later are gone already.
 */
static void
test_decided_later(void)
{
	QcAck		ack = {.lease = 7, .group = QC_DEFAULT_GROUP};
	QcAckItem	item = {.partition = 101, .first = 0, .count = 2};
	QcOpen	   *pushed;
	QcOpen	   *answered;

	begin();
	machine_push(&m, 1, 101, 3);
	CHECK_U64(machine_pop(&m, 1, 101, 7, 2, true), 2);
	machine_op_effect(&m, QC_EFFECT_ACK, &ack, &item, sizeof(item), 1);
	answered = machine_log(&m, 80, false, NULL);
	machine_op_push(&m, 101, 1, 4);
	pushed = machine_log(&m, 81, false, NULL);
	below(101, 2, 0);
	gone(101, 4, 2, 0);
	CHECK(machine_slot(&m, 101, 0) != NULL);
	CHECK_U64(partition(101)->visible, 1);
	machine_settle(&m, answered, true);
	CHECK(machine_slot(&m, 101, 0) == NULL);
	machine_settle(&m, pushed, true);
	CHECK_U64(partition(101)->visible, 3);
	CHECK_U64(qc_group_default(m.st, queue(1))->nready, 3);
	CHECK_U64(machine_pop(&m, 1, 101, 9, 10, true), 3);
	CHECK(machine_slot(&m, 101, 2) != NULL && machine_slot(&m, 101, 3) != NULL &&
		  machine_slot(&m, 101, 6) != NULL);
	end();
}

static void
expect_refused(QcEffectKind kind, const void *fixed, const void *item, QcStatus status)
{
	QcApply		apply = {.seq = m.st->seq + 1, .created_at = m.now, .monotonic = m.monotonic,
		.immediate = true, .recovering = true};
	uint8_t		bytes[256];
	QcWriter	w;
	QcReader	r;
	QcEffect	effect;

	qc_writer_init(&w, bytes, sizeof(bytes));
	qc_effect_put(&w, kind, fixed, 1);
	qc_effect_put_item(&w, kind, item);
	qc_reader_init(&r, bytes, w.len);
	CHECK_U64(qc_effect_get(&r, &effect, &m.err), QC_OK);
	CHECK_U64(qc_apply_effect(m.st, &apply, &effect, &m.err), status);
}

/* What no server could have logged is damage; what a later entry has dropped is passed over. */
static void
test_impossible_removals(void)
{
	QcWatermark watermark = {.queue = 1};
	QcWatermarkItem start = {.partition = 101, .start = 4};
	QcGone		effect = {.queue = 1};
	QcGoneItem	range = {.partition = 101, .first = 2, .count = 2};

	begin();
	machine_push(&m, 1, 101, 3);
	expect_refused(QC_EFFECT_WATERMARK, &watermark, &start, QC_DAMAGED);
	expect_refused(QC_EFFECT_GONE, &effect, &range, QC_DAMAGED);
	range.first = 4;
	range.count = UINT32_MAX;
	expect_refused(QC_EFFECT_GONE, &effect, &range, QC_DAMAGED);
	start.partition = range.partition = m.st->next_partition_id;
	expect_refused(QC_EFFECT_WATERMARK, &watermark, &start, QC_DAMAGED);
	expect_refused(QC_EFFECT_GONE, &effect, &range, QC_DAMAGED);
	start.partition = range.partition = 77;
	expect_refused(QC_EFFECT_WATERMARK, &watermark, &start, QC_OK);
	expect_refused(QC_EFFECT_GONE, &effect, &range, QC_OK);
	CHECK_U64(partition(101)->start, 0);
	end();
}

/* ---- ranges of undone entries ---- */

static void
undone(uint32_t count)
{
	machine_op_push(&m, 101, 1, count);
	machine_settle(&m, machine_log(&m, 90, false, NULL), false);
}

/* While a dedup id of it could be asked for, an undone entry is told apart from messages that are gone, below the start too. */
static void
test_undone_entries_are_remembered(void)
{
	begin();
	machine_push(&m, 1, 101, 2);
	undone(2);
	machine_push(&m, 1, 101, 2);
	queue(1)->last_dedup = m.now;
	CHECK_U64(machine_pop(&m, 1, 101, 7, 4, true), 4);
	machine_ack(&m, 7, 101, 0, 2);
	machine_ack(&m, 7, 101, 4, 2);
	gone(101, 4, 1, 0);
	gone(101, 0, 2, 0);
	CHECK(qc_range_undone(m.st, partition(101), 2) && qc_range_undone(m.st, partition(101), 3));
	CHECK(!qc_range_undone(m.st, partition(101), 1) && !qc_range_undone(m.st, partition(101), 4));
	expect_stored();
	below(101, 6, 0);
	expect_stored();
	CHECK(qc_range_undone(m.st, partition(101), 3));
	CHECK(!qc_range_undone(m.st, partition(101), 4));

	/* an hour later nobody asks any more */
	m.now += QC_HOUR;
	machine_push(&m, 1, 101, 1);
	CHECK_U64(machine_pop(&m, 1, 101, 8, 4, true), 1);
	machine_ack(&m, 8, 101, 6, 1);
	below(101, 7, 0);
	CHECK_U64(partition(101)->aborted.head, 0);
	CHECK_U64(partition(101)->aborted.tail, 0);
	end();
}

/* A queue without dedup ids has nothing to remember. */
static void
test_undone_entries_are_forgotten(void)
{
	begin();
	machine_push(&m, 1, 101, 2);
	undone(2);
	machine_push(&m, 1, 101, 2);
	gone(101, 0, 2, 0);
	gone(101, 4, 1, 0);
	CHECK_U64(QC_AT(m.st, QcAbortedRange, partition(101)->aborted.head)->count, 5);
	below(101, 6, 0);
	CHECK_U64(partition(101)->aborted.head, 0);
	end();
}

/* ---- the walk ---- */

static QcRetainStep step;

/* Log what the noted partitions lose; returns the number of effects. */
static uint32_t
put(void)
{
	static uint8_t buffer[QC_SMALL_BUFFER(QC_RETAIN_EFFECTS)];
	QcSmallPlan small;
	QcLack		lack;
	QcExtend	extend;
	QcWriter	w;
	uint32_t	effects;

	qc_plan_small(&small, buffer, QC_RETAIN_EFFECTS);
	small.plan.needs.npending = step.nranges;
	CHECK_U64(qc_plan_credit(m.st, m.ring, &small.plan, 64u << 20, &lack, &extend, &m.err), QC_OK);
	w = qc_plan_small_writer(&small);
	effects = qc_retain_put(m.st, &step, &w);
	CHECK(!w.full);
	if (effects == 0)
	{
		qc_plan_uncredit(m.st, &small.plan);
		return 0;
	}
	qc_plan_small_done(&small, &w, effects);
	qc_plan_reserve(m.st, m.ring, &small.plan, 64u << 20, m.now, m.monotonic);
	return effects;
}

/* Look at everything once; returns how many partitions were noted, of the last step. */
static uint32_t
look(void)
{
	step.now = m.now;
	qc_retain_begin(m.st);
	while (qc_retain_look(m.st, &step))
		CHECK(step.looked <= QC_RETAIN_LOOK && step.n <= QC_RETAIN_STEP);
	return step.n;
}

static void
begin_with(QcOption option, int64_t value)
{
	QcOptions	options;

	qc_options_default(&options);
	options.set = 1u << option;
	options.value[option] = value;
	machine_begin(&m);
	m.now = 1000 * QC_DAY;
	machine_queue(&m, 1, &options);
}

/* A walk in steps sees every partition once, those of several queues, and goes on when the next one is freed meanwhile. */
static void
test_walk_in_steps(void)
{
	uint32_t	noted = 0;
	uint32_t	budget = 1000;
	bool		more = true;

	begin();
	machine_queue(&m, 2, NULL);
	for (uint64_t i = 0; i < 1200; i++)
	{
		char		name[20];

		(void) snprintf(name, sizeof(name), "p%u", (unsigned) i);
		machine_partition(&m, 1 + i % 2, 1000 + i, name, QC_LANE_NONE);
		machine_push(&m, 1 + i % 2, 1000 + i, 1);
		CHECK_U64(machine_pop(&m, 1 + i % 2, 1000 + i, 5000 + i, 1, true), 1);
		if (i % 3 == 0)
			machine_ack(&m, 5000 + i, 1000 + i, 0, 1);
	}
	qc_retain_begin(m.st);
	step.now = m.now;
	while (more)
	{
		more = qc_retain_look(m.st, &step);
		CHECK(step.looked <= QC_RETAIN_LOOK && step.n <= QC_RETAIN_STEP);
		noted += step.n;
		CHECK_U64(put() > 0, step.n > 0);
		if (m.st->retain_partition != 0)
			(void) qc_partition_free(m.st, QC_AT(m.st, QcPartition, m.st->retain_partition), &budget);
	}
	CHECK(noted > 380 && noted <= 400);
	CHECK_U64(look(), 0);
	end();
}

/* An age that is enforced: what the search found, and what is too young for one. */
static void
test_ages(void)
{
	begin_with(QC_OPT_RETENTION, QC_HOUR);
	machine_push(&m, 1, 101, 4);
	m.now += QC_HOUR / 2;
	machine_push(&m, 1, 101, 3);
	CHECK_U64(look(), 0);
	CHECK(step.aged);

	/* a 32nd of the age is waited for */
	m.now += QC_HOUR / 2 + QC_HOUR / 40;
	CHECK_U64(look(), 0);
	m.now += QC_HOUR / 40;
	CHECK_U64(look(), 1);
	CHECK(step.notes[0].any.search);
	CHECK_U64(step.notes[0].low, 0);
	CHECK_U64(step.notes[0].high, 7);

	/* it was not found */
	CHECK_U64(put(), 0);
	CHECK_U64(look(), 1);
	step.notes[0].any.found = true;
	step.notes[0].any.position = 4;
	step.notes[0].any.at = m.now - QC_HOUR / 2 - QC_HOUR / 20;
	CHECK_U64(put(), 1);
	CHECK_U64(partition(101)->start, 4);
	CHECK_U64(queue(1)->unread, 4);
	CHECK_U64(step.nreports, 1);
	CHECK_U64(step.reports[0].unread, 4);
	CHECK_U64(look(), 0);

	/* all of it is older: no search */
	m.now += 2 * QC_HOUR;
	CHECK_U64(look(), 1);
	CHECK(!step.notes[0].any.search);
	CHECK_U64(put(), 1);
	CHECK_U64(partition(101)->start, 7);

	/* the next message is as old as itself */
	machine_push(&m, 1, 101, 1);
	m.now += QC_HOUR / 2;
	CHECK_U64(look(), 0);
	end();
}

/* A push between the look and the entry makes the partition younger: nothing goes that was not searched for. */
static void
test_judged_again(void)
{
	begin_with(QC_OPT_RETENTION, QC_HOUR);
	machine_push(&m, 1, 101, 4);
	m.now += 2 * QC_HOUR;
	CHECK_U64(look(), 1);
	machine_push(&m, 1, 101, 1);
	CHECK_U64(put(), 0);
	CHECK_U64(partition(101)->start, 0);
	end();
}

static void
test_bytes(void)
{
	begin_with(QC_OPT_RETENTION_BYTES, 300);
	machine_push(&m, 1, 101, 3);
	CHECK(qc_volume_kept(queue(1)) < 300);
	CHECK_U64(look(), 0);
	CHECK_U64(step.nfull, 0);
	m.now += QC_SECOND;
	machine_push(&m, 1, 101, 3);
	CHECK(qc_volume_kept(queue(1)) > 300);
	CHECK_U64(look(), 0);
	CHECK_U64(step.nfull, 1);
	CHECK_U64(step.full[0], 1);
	qc_retain_bytes(m.st, queue(1), 200, 3, m.now);
	CHECK_U64(look(), 1);
	CHECK_U64(step.nfull, 0);
	step.notes[0].any.found = true;
	step.notes[0].any.position = 3;
	step.notes[0].any.at = m.now;
	CHECK_U64(put(), 1);
	CHECK_U64(partition(101)->start, 3);
	CHECK_U64(qc_volume_kept(queue(1)), 200);
	expect_stored();
	CHECK_U64(qc_volume_kept(queue(1)), 200);
	end();
}

/* ---- partitions ---- */

static void
consume(uint64_t id, uint64_t lease)
{
	uint64_t	first = partition(id)->start;
	uint32_t	n = machine_pop(&m, 1, id, lease, 64, true);

	machine_ack(&m, lease, id, first, n);
	below(id, first + n, 0);
}

static void
begin_idle(void)
{
	begin_with(QC_OPT_PARTITION_IDLE, QC_HOUR);
	machine_partition(&m, 1, 300, "p", QC_LANE_NONE);
	machine_push(&m, 1, 300, 2);
	m.now += QC_HOUR;
	consume(300, 7);
}

/* Two walks: an empty partition is noted first, and goes when it has been so for a while. */
static void
test_idle_partition_goes(void)
{
	begin_idle();
	CHECK_U64(look(), 0);
	m.now += QC_SECOND;
	CHECK_U64(look(), 0);
	CHECK_U64(look(), 1);
	CHECK(step.notes[0].drop);
	CHECK_U64(put(), 1);
	CHECK_U64(step.ndropped, 1);
	CHECK(partition(300) == NULL);
	CHECK(qc_partition_by_name(m.st, queue(1), "p", 1) == NULL);
	CHECK_U64(queue(1)->npartitions, 1);
	expect_stored();
	CHECK(partition(300) == NULL);

	/* the default partition stays */
	m.now += QC_DAY;
	CHECK_U64(look() + look(), 0);
	end();
}

/* What keeps a partition. */
static void
test_what_keeps_a_partition(void)
{
	QcDead		dead = {.group = QC_DEFAULT_GROUP, .partition = 300, .position = 2, .attempt = 1,
		.lane = 400, .cause = QC_DEAD_REJECTED};
	QcPurgeDead purged = {.lane = 400};
	QcPurgeDeadItem range = {.first = 0, .count = 1};
	QcOpen	   *open;

	begin_idle();
	m.now += QC_SECOND;
	CHECK_U64(look() + look(), 1);

	/* a push, between the look and the entry or before */
	machine_push(&m, 1, 300, 1);
	CHECK_U64(put(), 0);
	CHECK(partition(300) != NULL);
	m.now += QC_HOUR + 1;
	CHECK_U64(machine_pop(&m, 1, 300, 8, 1, true), 1);
	CHECK_U64(look() + look(), 0);

	/* its dead letter */
	machine_partition(&m, 1, 400, "", QC_LANE_DEAD);
	dead.lease = 8;
	machine_op_dead(&m, &dead, 1);
	machine_settle(&m, machine_log(&m, 0, false, NULL), true);
	below(300, 3, 0);
	CHECK_U64(partition(300)->aimed, 1);
	CHECK_U64(look() + look(), 0);
	machine_reload(&m);
	CHECK_U64(partition(300)->aimed, 1);
	machine_op_effect(&m, QC_EFFECT_PURGE_DEAD, &purged, &range, sizeof(range), 1);
	machine_settle(&m, machine_log(&m, 0, false, NULL), true);
	CHECK_U64(partition(300)->aimed, 0);

	/* a dedup id within its window */
	queue(1)->last_dedup = m.now;
	partition(300)->last_push = m.now - QC_HOUR / 2;
	CHECK_U64(look() + look(), 0);
	m.now += QC_HOUR;

	/* an entry whose decision is not in the log */
	machine_op_push(&m, 101, 1, 1);
	open = machine_log(&m, 60, false, NULL);
	CHECK_U64(look() + look(), 0);
	machine_settle(&m, open, true);
	CHECK_U64(look(), 0);
	qc_open_forget(m.st, open);
	CHECK_U64(look(), 1);
	CHECK_U64(put(), 1);
	CHECK(partition(300) == NULL);
	end();
}

/* Made by a push that was rolled back: its time begins when it is seen. */
static void
test_partition_never_used(void)
{
	begin_with(QC_OPT_PARTITION_IDLE, QC_HOUR);
	machine_partition(&m, 1, 300, "p", QC_LANE_NONE);
	CHECK_U64(look() + look(), 0);
	m.now += QC_HOUR / 2;
	CHECK_U64(look() + look(), 0);
	m.now += QC_HOUR / 2 + 1;
	CHECK_U64(look() + look(), 1);
	CHECK_U64(put(), 1);
	end();
}

/* Whoever comes too late with what he staged is told to try again. */
static void
test_staged_for_a_partition_that_goes(void)
{
	QcSeek		seek = {.mode = QC_SEEK_SET, .queue = 1, .group = QC_DEFAULT_GROUP};
	QcSeekItem	place = {.partition = 300, .position = 0};
	QcStatus	status;

	begin_idle();
	machine_partition(&m, 1, 500, "", QC_LANE_DELAY);
	m.now += QC_SECOND;
	CHECK_U64(look() + look(), 1);
	CHECK_U64(put(), 1);
	machine_op_push(&m, 300, 1, 1);
	(void) machine_log(&m, 0, false, &status);
	CHECK_U64(status, QC_RETRY);
	machine_op_delay(&m, 500, 1, 1, 300, m.now + QC_HOUR);
	(void) machine_log(&m, 0, false, &status);
	CHECK_U64(status, QC_RETRY);
	machine_op_effect(&m, QC_EFFECT_SEEK, &seek, &place, sizeof(place), 1);
	machine_settle(&m, machine_log(&m, 61, false, NULL), true);
	end();
}

static void
test_impossible_drops(void)
{
	QcPartitionDrop drop = {.queue = 1};
	QcPartitionDropItem item = {.partition = 101};
	QcOpen	   *open;

	begin();
	expect_refused(QC_EFFECT_PARTITION_DROP, &drop, &item, QC_DAMAGED);
	machine_partition(&m, 1, 300, "p", QC_LANE_NONE);
	machine_op_push(&m, 300, 1, 1);
	open = machine_log(&m, 60, false, NULL);
	item.partition = 300;
	expect_refused(QC_EFFECT_PARTITION_DROP, &drop, &item, QC_DAMAGED);
	machine_settle(&m, open, true);
	item.partition = 77;
	expect_refused(QC_EFFECT_PARTITION_DROP, &drop, &item, QC_OK);
	end();
}

int
main(void)
{
	UNIT_RUN(test_finished_messages_go);
	UNIT_RUN(test_every_group_counts);
	UNIT_RUN(test_queue_without_groups_keeps_all);
	UNIT_RUN(test_age_takes_all_but_what_is_leased);
	UNIT_RUN(test_dying_message_stays);
	UNIT_RUN(test_open_entry_stays);
	UNIT_RUN(test_runs_behind_a_held_message);
	UNIT_RUN(test_removing_below);
	UNIT_RUN(test_removing_a_range);
	UNIT_RUN(test_groups_below_the_start);
	UNIT_RUN(test_decided_later);
	UNIT_RUN(test_impossible_removals);
	UNIT_RUN(test_undone_entries_are_remembered);
	UNIT_RUN(test_undone_entries_are_forgotten);
	UNIT_RUN(test_walk_in_steps);
	UNIT_RUN(test_ages);
	UNIT_RUN(test_judged_again);
	UNIT_RUN(test_bytes);
	UNIT_RUN(test_idle_partition_goes);
	UNIT_RUN(test_what_keeps_a_partition);
	UNIT_RUN(test_partition_never_used);
	UNIT_RUN(test_staged_for_a_partition_that_goes);
	UNIT_RUN(test_impossible_drops);
	return unit_end();
}
