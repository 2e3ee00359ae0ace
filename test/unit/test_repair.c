/*
 * test_repair.c
 *		What a repair does to the state: lost messages are gone whoever holds them, from lanes too, the queue serves again; over
 *		a checkpoint.
 */
#include "machine.h"
#include "portrait.h"

#include <stdlib.h>
#include <string.h>

#include "qc_cursor.h"
#include "qc_lane.h"
#include "qc_repair.h"

static Machine m;

static void
begin(void)
{
	machine_begin(&m);
	machine_queue(&m, 1, NULL);
}

static void
end(void)
{
	char	   *before;
	char	   *after;

	CHECK(portrait_counts(m.st));
	before = portrait(m.st);
	machine_reload(&m);
	after = portrait(m.st);
	CHECK(portrait_same(after, before, "after a checkpoint"));
	CHECK(portrait_counts(m.st));
	free(before);
	free(after);
	machine_end(&m);
}

static void
lose(uint64_t partition, uint64_t first, uint32_t count)
{
	QcLost		effect = {.queue = 1};
	QcLostItem	item = {.partition = partition, .first = first, .count = count};

	machine_op_effect(&m, QC_EFFECT_LOST, &effect, &item, sizeof(item), 1);
	(void) machine_log(&m, 0, true, NULL);
}

static QcGroup *
group(void)
{
	return qc_group_default(m.st, qc_queue_by_id(m.st, 1));
}

/* Not delivered yet: at the begin, in the middle, at the end. */
static void
test_waiting(void)
{
	begin();
	machine_push(&m, 1, 101, 10);
	lose(101, 0, 2);
	lose(101, 4, 3);
	lose(101, 9, 1);
	CHECK_U64(group()->nready, 4);
	CHECK_U64(qc_queue_by_id(m.st, 1)->visible, 4);
	CHECK_U64(machine_pop(&m, 1, 101, 7, 10, true), 4);
	CHECK(machine_slot(&m, 101, 2) != NULL && machine_slot(&m, 101, 3) != NULL);
	CHECK(machine_slot(&m, 101, 7) != NULL && machine_slot(&m, 101, 8) != NULL);

	/* again: nothing is left to lose */
	lose(101, 0, 2);
	CHECK_U64(qc_queue_by_id(m.st, 1)->visible, 4);
	machine_push(&m, 1, 101, 1);
	CHECK_U64(group()->nready, 1);
	end();
}

/* Held by consumers: their leases go on with the rest, one that holds nothing more ends. */
static void
test_leased(void)
{
	begin();
	machine_push(&m, 1, 101, 6);
	CHECK_U64(machine_pop(&m, 1, 101, 7, 3, true), 3);
	CHECK_U64(machine_pop(&m, 1, 101, 8, 2, true), 2);
	lose(101, 1, 4);
	CHECK_U64(qc_lease_by_id(m.st, 7)->nslots, 1);
	CHECK(qc_lease_by_id(m.st, 8) == NULL);
	CHECK_U64(group()->nleased, 1);
	machine_ack(&m, 7, 101, 0, 1);
	CHECK(qc_lease_by_id(m.st, 7) == NULL);
	CHECK_U64(group()->nready, 1);
	end();
}

/* Positions that the partition never had are refused, a partition that has gone is passed over. */
static void
test_wrong(void)
{
	QcLost		fixed = {.queue = 1};
	QcLostItem	item = {.partition = 101, .first = 3, .count = 4};
	QcApply		apply = {.seq = 99, .immediate = true};
	uint8_t		buffer[256];
	QcWriter	w;
	QcReader	r;
	QcEffect	effect;
	QcError		err;

	begin();
	machine_push(&m, 1, 101, 6);
	for (int i = 0; i < 2; i++)
	{
		qc_writer_init(&w, buffer, sizeof(buffer));
		qc_effect_put(&w, QC_EFFECT_LOST, &fixed, 1);
		qc_effect_put_item(&w, QC_EFFECT_LOST, &item);
		qc_reader_init(&r, buffer, w.len);
		CHECK_U64(qc_effect_get(&r, &effect, &err), QC_OK);
		CHECK_U64(qc_apply_effect(m.st, &apply, &effect, &err), i == 0 ? QC_DAMAGED : QC_OK);
		item.partition = 4711;
	}
	CHECK_U64(qc_queue_by_id(m.st, 1)->visible, 6);
	end();
}

static void
test_in_and_out_of_service(void)
{
	QcRepair	effect = {.queue = 1};
	QcQueue    *queue;

	begin();
	queue = qc_queue_by_id(m.st, 1);
	CHECK(qc_queue_damage(m.st, queue, 3, 4000));
	CHECK(!qc_queue_damage(m.st, queue, 5, 6000));
	CHECK_U64(queue->damage_file, 3);
	CHECK_U64(queue->damage_position, 4000);
	machine_reload(&m);
	queue = qc_queue_by_id(m.st, 1);
	CHECK_U64(queue->damaged, 1);
	CHECK_U64(queue->damage_file, 3);
	machine_op_effect(&m, QC_EFFECT_REPAIR, &effect, NULL, 0, 0);
	(void) machine_log(&m, 0, true, NULL);
	CHECK_U64(queue->damaged, 0);
	machine_push(&m, 1, 101, 1);
	CHECK_U64(queue->visible, 1);
	end();
}

int
main(void)
{
	UNIT_RUN(test_waiting);
	UNIT_RUN(test_leased);
	UNIT_RUN(test_wrong);
	UNIT_RUN(test_in_and_out_of_service);
	return unit_end();
}
