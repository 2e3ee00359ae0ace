/*
 * test_alter.c
 *		New definitions of queues: in force when settled, thrown away when not, in any order, over checkpoints; the bytes that
 *		a queue holds, its pauses and its max_bytes.
 */
#include "machine.h"

#include <string.h>

#include "qc_alter.h"
#include "qc_catalog.h"
#include "qc_index.h"
#include "qc_volume.h"

static Machine m;

static QcQueue *
queue(uint64_t id)
{
	return qc_queue_by_id(m.st, id);
}

/* What a test changes of a queue: everything else is as the queue has it. */
typedef struct Change
{
	const char *name;			/* NULL = as it is */
	uint32_t	owner;			/* 0 = as it is */
	uint8_t		flags;
	QcOptions	options;
	const QcQueueAlterItem *items;
	uint32_t	nitems;
} Change;

static Change
no_change(void)
{
	Change		change = {.name = NULL};

	qc_options_default(&change.options);
	return change;
}

static void
put_alter(uint64_t id, const Change *change)
{
	const QcQueue *q = queue(id);
	QcQueueAlter alter = {.queue = id, .flags = change->flags};
	uint8_t		bytes[QC_OPTIONS_ENCODED_MAX];
	QcWriter	w;

	alter.owner = change->owner != 0 ? change->owner : q->owner;
	alter.name.bytes = (const uint8_t *) (change->name != NULL ? change->name :
										  qc_name_at(m.st, q->name));
	alter.name.len = change->name != NULL ? (uint16_t) strlen(change->name) : q->name_len;
	qc_writer_init(&w, bytes, sizeof(bytes));
	qc_options_put(&w, &change->options);
	alter.options.bytes = bytes;
	alter.options.len = (uint16_t) w.len;
	machine_op_effect(&m, QC_EFFECT_QUEUE_ALTER, &alter, change->items, sizeof(QcQueueAlterItem),
					  change->nitems);
}

static QcOpen *
alter(uint64_t id, uint64_t xid, const Change *change)
{
	put_alter(id, change);
	return machine_log(&m, xid, false, NULL);
}

static void
expect_name(uint64_t id, const char *name)
{
	const QcQueue *q = queue(id);

	CHECK_U64(q->name_len, strlen(name));
	CHECK(memcmp(qc_name_at(m.st, q->name), name, strlen(name)) == 0);
	CHECK(qc_queue_by_name(m.st, 5, name, strlen(name)) == q);
}

static void
expect_no_name(const char *name)
{
	CHECK(qc_queue_by_name(m.st, 5, name, strlen(name)) == NULL);
}

static uint32_t
objects(QcClass class)
{
	return m.st->mem.pools[class].nused;
}

/* Nothing of a definition is left but what the queues have; nothing is promised. */
static void
expect_nothing_left(uint32_t grants)
{
	CHECK_U64(objects(QC_CLASS_ALTER), 0);
	CHECK_U64(objects(QC_CLASS_GRANT), grants);
	CHECK_U64(objects(QC_CLASS_OPEN_ITEM), 0);
	CHECK_U64(m.st->mem.pools[QC_CLASS_ALTER].nreserved, 0);
	CHECK_U64(m.st->mem.pools[QC_CLASS_GRANT].nreserved, 0);
}

static const QcQueueAlterItem three[] = {{.grantee = 10, .grantor = 10, .privileges = 7},
{.grantee = 0, .grantor = 10, .privileges = 1}, {.grantee = 77, .grantor = 10, .privileges = 2}};

static void
begin(void)
{
	machine_begin(&m);
	machine_queue(&m, 1, NULL);
}

static void
expect_whole(void)
{
	const QcQueue *q = queue(1);
	const QcGrant *grant = QC_AT(m.st, QcGrant, q->grants);

	expect_name(1, "another name, which is longer than the one that it replaces");
	expect_no_name("queue 1");
	CHECK_U64(q->owner, 11);
	CHECK_U64(q->flags, QC_QUEUE_NO_POP | QC_QUEUE_HAS_ACL);
	CHECK_U64(q->options.set, 1u << QC_OPT_LEASE);
	CHECK_U64((uint64_t) q->options.value[QC_OPT_LEASE], 5 * QC_SECOND);
	CHECK_U64(q->ngrants, 3);
	for (int i = 0; i < 3; i++)
	{
		if (!CHECK(grant != NULL))
			return;
		CHECK_U64(grant->grantee, three[i].grantee);
		CHECK_U64(grant->grantor, three[i].grantor);
		CHECK_U64(grant->privileges, three[i].privileges);
		grant = QC_AT(m.st, QcGrant, grant->next);
	}
	CHECK(grant == NULL);
	CHECK(qc_queue_names_role(m.st, q, 11));
	CHECK(qc_queue_names_role(m.st, q, 77));
	CHECK(!qc_queue_names_role(m.st, q, 78));
}

static Change
whole_change(void)
{
	Change		change = no_change();

	change.name = "another name, which is longer than the one that it replaces";
	change.owner = 11;
	change.flags = QC_QUEUE_NO_POP | QC_QUEUE_HAS_ACL;
	change.options.set = 1u << QC_OPT_LEASE;
	change.options.value[QC_OPT_LEASE] = 5 * QC_SECOND;
	change.items = three;
	change.nitems = 3;
	return change;
}

static void
test_in_force_when_settled(void)
{
	Change		change = whole_change();
	QcOpen	   *open;

	begin();
	open = alter(1, 0, &change);
	expect_name(1, "queue 1");
	CHECK_U64(queue(1)->owner, 10);
	CHECK_U64(queue(1)->nalters, 1);
	machine_settle(&m, open, true);
	expect_whole();
	CHECK_U64(queue(1)->nalters, 0);
	expect_nothing_left(3);
	machine_reload(&m);
	expect_whole();
	expect_nothing_left(3);
	machine_end(&m);
}

static void
test_thrown_away_when_aborted(void)
{
	Change		change = whole_change();

	begin();
	machine_settle(&m, alter(1, 40, &change), false);
	expect_name(1, "queue 1");
	CHECK_U64(queue(1)->owner, 10);
	CHECK_U64(queue(1)->altered_seq, 0);
	expect_nothing_left(0);
	machine_end(&m);
}

/* A checkpoint between the entry and its decision holds the definition. */
static void
test_open_over_a_checkpoint(void)
{
	for (int committed = 0; committed < 2; committed++)
	{
		Change		change = whole_change();
		uint64_t	seq;

		begin();
		seq = alter(1, 40, &change)->seq;
		machine_reload(&m);
		CHECK_U64(queue(1)->nalters, 1);
		expect_name(1, "queue 1");
		machine_settle(&m, qc_open_by_seq(m.st, seq), committed);
		CHECK_U64(queue(1)->nalters, 0);
		if (committed)
			expect_whole();
		else
			expect_name(1, "queue 1");
		CHECK_U64(objects(QC_CLASS_ALTER), 0);
		CHECK_U64(objects(QC_CLASS_GRANT), committed ? 3 : 0);
		machine_end(&m);
	}
}

/* The newest entry that commits decides, in whatever order they are settled. */
static void
test_newest_entry_stays(void)
{
	Change		first = no_change();
	Change		second = no_change();
	QcOpen	   *a;
	QcOpen	   *b;

	first.owner = 20;
	second.owner = 21;
	begin();
	a = alter(1, 40, &first);
	b = alter(1, 41, &second);
	machine_settle(&m, b, true);
	CHECK_U64(queue(1)->owner, 21);
	machine_settle(&m, a, true);
	CHECK_U64(queue(1)->owner, 21);
	a = alter(1, 42, &first);
	b = alter(1, 43, &second);
	machine_settle(&m, b, false);
	machine_settle(&m, a, true);
	CHECK_U64(queue(1)->owner, 20);
	expect_nothing_left(0);
	machine_end(&m);
}

static void
test_immediate(void)
{
	Change		change = whole_change();

	begin();
	put_alter(1, &change);
	(void) machine_log(&m, 0, true, NULL);
	expect_whole();
	expect_nothing_left(3);
	change = no_change();
	change.name = "queue 1";
	put_alter(1, &change);
	(void) machine_log(&m, 0, true, NULL);
	expect_name(1, "queue 1");
	CHECK_U64(queue(1)->grants, 0);
	expect_nothing_left(0);
	machine_end(&m);
}

/* Names go round in one entry: none is lost, none stands twice. */
static void
test_names_go_round(void)
{
	Change		change = no_change();

	begin();
	machine_queue(&m, 2, NULL);
	machine_queue(&m, 3, NULL);
	change.name = "queue 2";
	put_alter(1, &change);
	change.name = "queue 3";
	put_alter(2, &change);
	change.name = "queue 1";
	put_alter(3, &change);
	machine_settle(&m, machine_log(&m, 50, false, NULL), true);
	expect_name(1, "queue 2");
	expect_name(2, "queue 3");
	expect_name(3, "queue 1");
	CHECK_U64(m.st->queue_names.count, 3);
	machine_end(&m);
}

/* The entry alters a queue that another one, or it itself, drops. */
static void
test_dropped_meanwhile(void)
{
	QcQueueDrop drop = {.queue = 1};
	Change		change = whole_change();
	QcOpen	   *open;

	begin();
	open = alter(1, 60, &change);
	machine_op_effect(&m, QC_EFFECT_QUEUE_DROP, &drop, NULL, 0, 0);
	machine_settle(&m, machine_log(&m, 61, false, NULL), true);
	machine_settle(&m, open, true);
	expect_no_name("another name, which is longer than the one that it replaces");
	(void) qc_queue_sweep(m.st, 1000);
	CHECK(queue(1) == NULL);
	expect_nothing_left(0);
	machine_end(&m);

	begin();
	put_alter(1, &change);
	machine_op_effect(&m, QC_EFFECT_QUEUE_DROP, &drop, NULL, 0, 0);
	machine_settle(&m, machine_log(&m, 61, false, NULL), true);
	CHECK_U64(m.st->queue_names.count, 0);
	(void) qc_queue_sweep(m.st, 1000);
	expect_nothing_left(0);
	machine_end(&m);
}

/* A state without room refuses before anything is logged, and gives back what was promised. */
static void
test_no_room(void)
{
	Change		change = whole_change();
	uint32_t	taken = 0;
	QcStatus	status;
	uint64_t	seq;

	/* every class has its page */
	begin();
	machine_settle(&m, alter(1, 69, &change), false);
	while (qc_mem_reserve(&m.st->mem, QC_CLASS_GRANT, 1, QC_URGENCY_EMPTIES))
		taken++;
	seq = m.st->seq;
	put_alter(1, &change);
	CHECK(machine_log(&m, 70, false, &status) == NULL);
	CHECK_U64(status, QC_FULL);
	CHECK_U64(m.st->seq, seq);
	qc_mem_unreserve(&m.st->mem, QC_CLASS_GRANT, taken);
	expect_nothing_left(0);
	machine_settle(&m, alter(1, 71, &change), true);
	expect_whole();
	machine_end(&m);
}

static void
set_ordered(bool ordered)
{
	Change		change = no_change();

	change.options.set = 1u << QC_OPT_ORDERED;
	change.options.value[QC_OPT_ORDERED] = ordered;
	machine_settle(&m, alter(1, 80, &change), true);
}

static QcCursor *
cursor(void)
{
	return QC_AT(m.st, QcCursor, qc_partition_by_id(m.st, 101)->cursors);
}

static void
give_back(uint64_t lease)
{
	QcRelease	release = {.lease = lease, .reason = QC_RELEASE_ABORT};

	machine_op_effect(&m, QC_EFFECT_RELEASE, &release, NULL, 0, 0);
	(void) machine_log(&m, 0, true, NULL);
}

/* Switched on and off while messages are leased and given back. */
static void
test_ordered_switch(void)
{
	begin();
	machine_push(&m, 1, 101, 6);
	CHECK_U64(machine_pop(&m, 1, 101, 7, 1, true), 1);
	CHECK_U64(machine_pop(&m, 1, 101, 8, 1, true), 1);
	CHECK_U64(machine_pop(&m, 1, 101, 9, 1, true), 1);
	give_back(9);
	give_back(7);
	CHECK_U64(cursor()->is_ready, 1);
	set_ordered(true);
	CHECK_U64(cursor()->retry.head, 0);
	CHECK_U64(cursor()->is_ready, 0);
	CHECK_U64(machine_pop(&m, 1, 101, 10, 6, true), 0);
	machine_ack(&m, 8, 101, 1, 1);
	CHECK_U64(cursor()->is_ready, 1);
	machine_reload(&m);
	CHECK_U64(cursor()->is_ready, 1);
	CHECK_U64(machine_pop(&m, 1, 101, 10, 3, true), 3);
	CHECK(machine_slot(&m, 101, 0) != NULL && machine_slot(&m, 101, 3) != NULL);
	CHECK_U64(machine_pop(&m, 1, 101, 11, 6, true), 0);

	/* competing again: what comes back is found, and so is what is new */
	set_ordered(false);
	CHECK_U64(machine_pop(&m, 1, 101, 11, 1, true), 1);
	give_back(10);
	set_ordered(true);
	set_ordered(false);
	machine_reload(&m);
	CHECK_U64(machine_pop(&m, 1, 101, 12, 6, true), 4);
	CHECK_U64(machine_pop(&m, 1, 101, 13, 6, true), 0);
	machine_end(&m);
}

static void
set_limit(uint8_t flags, int64_t max_bytes)
{
	Change		change = no_change();

	change.flags = flags;
	change.options.set = 1u << QC_OPT_MAX_BYTES;
	change.options.value[QC_OPT_MAX_BYTES] = max_bytes;
	machine_settle(&m, alter(1, 90, &change), true);
}

static QcStatus
try_push(uint64_t partition, uint32_t count)
{
	QcStatus	status;
	QcOpen	   *open;

	machine_op_push(&m, partition, 1, count);
	open = machine_log(&m, 0, false, &status);
	if (open != NULL)
		machine_settle(&m, open, true);
	return status;
}

static void
test_pauses(void)
{
	begin();
	machine_partition(&m, 1, 201, "p", QC_LANE_NONE);
	machine_partition(&m, 1, 200, "", QC_LANE_DEAD);
	machine_push(&m, 1, 101, 2);
	CHECK_U64(machine_pop(&m, 1, 101, 7, 1, true), 1);
	set_limit(QC_QUEUE_NO_PUSH | QC_QUEUE_NO_POP, QC_FOREVER);
	CHECK_U64(try_push(101, 1), QC_PAUSED);
	CHECK_U64(try_push(201, 1), QC_PAUSED);
	CHECK_U64(machine_pop(&m, 1, 101, 8, 1, true), 0);
	CHECK_U64(queue(1)->promised_bytes, 0);

	/* a message may still die, and move within the queue */
	CHECK_U64(try_push(200, 1), QC_OK);
	machine_op_push(&m, 201, 1, 1);
	m.ops[0].moved = true;
	machine_settle(&m, machine_log(&m, 0, false, NULL), true);
	machine_ack(&m, 7, 101, 0, 1);
	set_limit(0, QC_FOREVER);
	CHECK_U64(try_push(101, 1), QC_OK);
	CHECK_U64(machine_pop(&m, 1, 101, 8, 9, true), 2);
	machine_end(&m);
}

/* Bytes of one record of count messages as machine_push writes it. */
static uint64_t
record_bytes(uint32_t count)
{
	uint64_t	before = qc_partition_by_id(m.st, 101)->bytes;

	machine_push(&m, 1, 101, count);
	return qc_partition_by_id(m.st, 101)->bytes - before;
}

static void
test_volume(void)
{
	uint64_t	one;
	uint64_t	ten;
	uint64_t	all;
	QcOpen	   *open;

	begin();
	machine_partition(&m, 1, 200, "", QC_LANE_DEAD);
	CHECK_U64(qc_volume_queue(m.st, queue(1)), 0);
	one = record_bytes(1);
	ten = record_bytes(10);
	CHECK(ten > one && one > 0);
	CHECK_U64(qc_volume_queue(m.st, queue(1)), one + ten);

	/* open entries count, aborted ones no more */
	machine_op_push(&m, 101, 1, 10);
	open = machine_log(&m, 30, false, NULL);
	all = qc_partition_by_id(m.st, 101)->bytes;
	CHECK(all > one + ten);
	CHECK_U64(qc_volume_queue(m.st, queue(1)), all);
	machine_reload(&m);
	CHECK_U64(qc_volume_queue(m.st, queue(1)), all);
	open = qc_open_by_seq(m.st, m.st->seq);
	machine_settle(&m, open, false);
	CHECK_U64(qc_volume_queue(m.st, queue(1)), one + ten);

	/* leased messages are not done; done ones go, the last one with everything */
	CHECK_U64(machine_pop(&m, 1, 101, 7, 5, true), 5);
	CHECK_U64(qc_volume_queue(m.st, queue(1)), one + ten);
	machine_ack(&m, 7, 101, 0, 5);
	CHECK(qc_volume_queue(m.st, queue(1)) < one + ten);
	CHECK(qc_volume_queue(m.st, queue(1)) > ten / 2);
	machine_reload(&m);
	CHECK(qc_volume_queue(m.st, queue(1)) > ten / 2);
	CHECK_U64(machine_pop(&m, 1, 101, 8, 50, true), 6);
	machine_ack(&m, 8, 101, 5, 6);
	CHECK_U64(qc_volume_queue(m.st, queue(1)), 0);

	/* the next ones count in full again */
	CHECK_U64(record_bytes(10), ten);
	CHECK_U64(qc_volume_queue(m.st, queue(1)), ten);
	machine_end(&m);
}

/* Where the index knows the size of a record, that is what goes. */
static void
test_volume_of_known_records(void)
{
	uint64_t	one;
	uint64_t	ten;
	QcRef		hint = 0;
	QcLocation	location;

	begin();
	one = record_bytes(1);
	ten = record_bytes(10);
	CHECK_U64(machine_pop(&m, 1, 101, 7, 1, true), 1);
	CHECK(qc_index_find(m.st, qc_partition_by_id(m.st, 101), 0, &hint, &location));
	machine_slot(&m, 101, 0)->hint = hint;
	machine_ack(&m, 7, 101, 0, 1);
	CHECK_U64(qc_volume_queue(m.st, queue(1)), ten);
	CHECK(one > ten / 10);
	machine_end(&m);
}

static void
test_max_bytes(void)
{
	uint64_t	one;
	Change		change = no_change();
	QcStatus	status;

	begin();
	machine_partition(&m, 1, 201, "p", QC_LANE_NONE);
	machine_partition(&m, 1, 200, "", QC_LANE_DEAD);
	one = record_bytes(1);
	set_limit(0, (int64_t) (2 * one));
	CHECK_U64(try_push(101, 1), QC_OK);
	CHECK_U64(try_push(101, 1), QC_OVERFLOW);
	CHECK_U64(try_push(201, 1), QC_OVERFLOW);
	CHECK_U64(try_push(200, 1), QC_OK);
	CHECK_U64(queue(1)->promised_bytes, 0);
	CHECK_U64(machine_pop(&m, 1, 101, 7, 2, true), 2);
	machine_ack(&m, 7, 101, 0, 2);

	/* several partitions of one entry are counted together: all of it or nothing */
	machine_op_push(&m, 101, 1, 1);
	machine_op_push(&m, 201, 1, 10);
	CHECK(machine_log(&m, 0, false, &status) == NULL);
	CHECK_U64(status, QC_OVERFLOW);
	CHECK_U64(queue(1)->promised_bytes, 0);

	/* ... unless the entry itself raises the limit */
	change.options.set = 1u << QC_OPT_MAX_BYTES;
	change.options.value[QC_OPT_MAX_BYTES] = (int64_t) (10 * one);
	put_alter(1, &change);
	machine_op_push(&m, 101, 1, 1);
	machine_op_push(&m, 201, 1, 1);
	machine_settle(&m, machine_log(&m, 30, false, NULL), true);
	machine_end(&m);
}

int
main(void)
{
	UNIT_RUN(test_in_force_when_settled);
	UNIT_RUN(test_thrown_away_when_aborted);
	UNIT_RUN(test_open_over_a_checkpoint);
	UNIT_RUN(test_newest_entry_stays);
	UNIT_RUN(test_immediate);
	UNIT_RUN(test_names_go_round);
	UNIT_RUN(test_dropped_meanwhile);
	UNIT_RUN(test_no_room);
	UNIT_RUN(test_ordered_switch);
	UNIT_RUN(test_pauses);
	UNIT_RUN(test_volume);
	UNIT_RUN(test_volume_of_known_records);
	UNIT_RUN(test_max_bytes);
	return unit_end();
}
