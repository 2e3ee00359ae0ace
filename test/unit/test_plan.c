/*
 * test_plan.c
 *		Building plans: how staged operations are grouped, cut into records and counted, and what is refused.
 */
#include "staging.h"

#include "qc_record.h"
#include "unit.h"

#include <stdlib.h>

#define LARGE (64u << 20)		/* a segment in which anything fits */

/* One push is one record, which is the whole decoded. */
static void
test_solo(void)
{
	stage_push(101, 1, 0, 3, 100);
	CHECK_U64(build(0, 0, LARGE), QC_OK);
	CHECK(plan.solo && plan.payload == NULL);
	CHECK_U64(plan.nappends, 1);
	CHECK_U64(plan.nrecords, 1);
	CHECK_U64(plan.records[0].count, 3);
	CHECK_U64(plan.nlogs, 1);
	CHECK_U64(plan.logs[0], 1);
	CHECK_U64(plan.log_bytes[0], plan.records[0].size);
	CHECK_U64(plan.needs.nindex, 1);
	CHECK_U64(plan.needs.npending, 1);
	CHECK_U64(plan.needs.nitems, 0);
	stage_clear();

	/* with an xid, or anything else beside it, there is an entry of its own */
	stage_push(101, 1, 0, 3, 100);
	CHECK_U64(build(9, QC_ENTRY_CARRIED, LARGE), QC_OK);
	CHECK(!plan.solo && plan.payload != NULL);
	CHECK_U64(plan.log_bytes[0], plan.records[0].size + QC_RECORD_HEADER_SIZE + plan.payload_len);
	stage_clear();
}

/* Pushes are grouped by partition, in the order of the first ones; logs ascend; the lowest has the decoded. */
static void
test_grouping(void)
{
	QcEntry		decoded;
	QcEffect	effect;

	stage_push(205, 7, 0, 1, 50);
	stage_push(101, 3, 10, 2, 50);
	stage_push(205, 7, 1, 2, 50);
	stage_push(300, 5, 20, 1, 50);
	CHECK_U64(build(0, 0, LARGE), QC_OK);
	CHECK(!plan.solo);
	CHECK_U64(plan.nappends, 3);
	CHECK_U64(plan.appends[0].partition, 205);
	CHECK_U64(plan.appends[0].count, 3);
	CHECK_U64(plan.appends[1].partition, 101);
	CHECK_U64(plan.appends[2].partition, 300);
	CHECK_U64(plan.nlogs, 3);
	CHECK_U64(plan.logs[0], 3);
	CHECK_U64(plan.logs[1], 5);
	CHECK_U64(plan.logs[2], 7);
	CHECK_U64(plan.appends[0].log_index, 2);
	CHECK_U64(plan.log_bytes[0], plan.records[plan.appends[1].record].size +
			  QC_RECORD_HEADER_SIZE + plan.payload_len);
	CHECK_U64(plan.log_bytes[2], plan.records[plan.appends[0].record].size + QC_STUB_SIZE);

	CHECK_U64(qc_entry_decode(plan.payload, plan.payload_len, &decoded, &err), QC_OK);
	CHECK_U64(decoded.nlogs, 3);
	CHECK_U64(decoded.neffects, 3);
	for (uint32_t i = 0; i < 3; i++)
	{
		CHECK_U64(qc_effect_get(&decoded.effects, &effect, &err), QC_OK);
		CHECK_U64(effect.kind, QC_EFFECT_APPEND);
		CHECK_U64(effect.u.append.partition, plan.appends[i].partition);
		CHECK_U64(effect.u.append.count, plan.appends[i].count);
		CHECK_U64(effect.u.append.records, 1);
	}
	CHECK_U64(qc_effect_get(&decoded.effects, &effect, &err), QC_END);
	stage_clear();
}

/* Without messages the entry goes to the system log. */
static void
test_no_messages(void)
{
	QcAck		ack = {.lease = 5};
	QcAckItem	items[3] = {{101, 0, 1, 0}, {101, 4, 2, 0}, {102, 0, 1, 0}};

	stage_effect(QC_EFFECT_ACK, &ack, items, sizeof(items[0]), 3);
	CHECK_U64(build(0, 0, LARGE), QC_OK);
	CHECK_U64(plan.nlogs, 1);
	CHECK_U64(plan.logs[0], 0);
	CHECK_U64(plan.nappends, 0);
	CHECK_U64(plan.needs.nitems, 3);
	CHECK_U64(plan.bytes, QC_RECORD_HEADER_SIZE + plan.payload_len + 2 * QC_FILE_HEADER_SIZE);
	CHECK_U64(plan.nparts, 3);
	stage_clear();
}

/* Records hold about 64 KiB of frames; a larger message has one of its own. */
static void
test_cutting(void)
{
	size_t		overhead;

	/* what a frame needs beside its data */
	stage_push(101, 1, 0, 1, 1000);
	overhead = staged[0].frames_len - 1000;
	stage_clear();

	stage_push(101, 1, 0, 2, QC_RECORD_RAW_TARGET / 2 - overhead);
	CHECK_U64(build(0, 0, LARGE), QC_OK);
	CHECK(plan.solo);
	CHECK_U64(plan.nrecords, 1);
	stage_clear();

	stage_push(101, 1, 0, 1, QC_RECORD_RAW_TARGET / 2 - overhead);
	stage_push(101, 1, 1, 1, QC_RECORD_RAW_TARGET / 2 - overhead + 1);
	CHECK_U64(build(0, 0, LARGE), QC_OK);
	CHECK(!plan.solo);
	CHECK_U64(plan.nrecords, 2);
	stage_clear();

	stage_push(101, 1, 0, 3, 20000);
	stage_push(101, 1, 3, 1, 100000);
	stage_push(101, 1, 4, 4, 20000);
	CHECK_U64(build(0, 0, LARGE), QC_OK);
	CHECK_U64(plan.nrecords, 4);
	CHECK_U64(plan.records[0].count, 3);
	CHECK_U64(plan.records[1].count, 1);
	CHECK_U64(plan.records[2].count, 3);
	CHECK_U64(plan.records[3].count, 1);
	CHECK_U64(plan.appends[0].nrecords, 4);
	CHECK_U64(plan.needs.nindex, 4);
	stage_clear();

	/* one message, however large, is a record by itself */
	stage_push(101, 1, 0, 1, 1000000);
	CHECK_U64(build(0, 0, LARGE), QC_OK);
	CHECK(plan.solo);
	stage_clear();
}

static void
test_limits(void)
{
	static QcOp many[QC_ENTRY_PARTITIONS_MAX + 1];
	QcOp		one = {.kind = QC_OP_PUSH, .log = 1};

	stage_frames(&one, 0, 1, 10);
	for (uint32_t i = 0; i <= QC_ENTRY_PARTITIONS_MAX; i++)
	{
		many[i] = one;
		many[i].partition = 1000 + i;
	}
	CHECK_U64(qc_plan_build(&plan, many, QC_ENTRY_PARTITIONS_MAX, 0, 0, LARGE, stage_alloc, NULL, &err), QC_OK);
	CHECK_U64(plan.nappends, QC_ENTRY_PARTITIONS_MAX);
	CHECK_U64(plan.nlogs, 1);
	CHECK_U64(qc_plan_build(&plan, many, QC_ENTRY_PARTITIONS_MAX + 1, 0, 0, LARGE, stage_alloc, NULL, &err),
			  QC_LIMIT);
	CHECK_STR(err.text, "a transaction can push to at most 4096 partitions");
	stage_clear();

	/* half a segment, the record's own bytes included */
	stage_push(101, 1, 0, 1, 40000);
	CHECK_U64(build(0, 0, 100000), QC_OK);
	CHECK_U64(build(0, 0, 80000), QC_LIMIT);
	CHECK_STR(err.text, "message is larger than half a log file");
	stage_clear();
}

/* Each allocation fails in turn: that is said, and nothing is leaked or used. */
static void
test_no_memory(void)
{
	QcQueueDrop drop = {.queue = 1};
	QcStatus	status;
	uint32_t	n = 0;
	uint32_t	first;

	stage_push(101, 1, 0, 3, 20000);
	stage_push(101, 1, 3, 4, 20000);
	stage_push(102, 2, 0, 1, 50);
	stage_effect(QC_EFFECT_QUEUE_DROP, &drop, NULL, 0, 0);
	first = stage_allocated();
	do
	{
		allocations_left = n++;
		status = build(0, 0, LARGE);
		if (status != QC_OK)
		{
			CHECK_U64(status, QC_FULL);
			CHECK_STR(err.text, "out of memory");
		}
		stage_free(first);
	}
	while (status == QC_FULL && n < 1000);
	CHECK_U64(status, QC_OK);
	CHECK(n > 15);
	stage_clear();
}

/* What each effect needs when it is applied. */
static void
test_needs(void)
{
	static const char name40[] = "a name of forty characters, not counted ";
	QcQueueCreate queue = {.queue = 9, .name = {(const uint8_t *) name40, 40}};
	QcPartitionCreate partition = {.partition = 900, .queue = 1, .name = {(const uint8_t *) "p", 1}};
	QcGroupCreate group = {.queue = 1, .group = 3, .name = {(const uint8_t *) name40, 33}};
	QcGroupDrop group_drop = {.queue = 1, .group = 3};
	QcQueueAlter alter = {.queue = 1, .name = {(const uint8_t *) "n", 1}};
	QcQueueAlterItem grants[2] = {{1, 2, 3, 0}, {4, 5, 6, 0}};
	QcQueueDrop drop = {.queue = 1};

	stage_effect(QC_EFFECT_QUEUE_CREATE, &queue, NULL, 0, 0);
	stage_effect(QC_EFFECT_PARTITION_CREATE, &partition, NULL, 0, 0);
	stage_effect(QC_EFFECT_GROUP_CREATE, &group, NULL, 0, 0);
	stage_effect(QC_EFFECT_GROUP_DROP, &group_drop, NULL, 0, 0);
	stage_effect(QC_EFFECT_QUEUE_ALTER, &alter, grants, sizeof(grants[0]), 2);
	stage_effect(QC_EFFECT_QUEUE_DROP, &drop, NULL, 0, 0);
	stage_dead(500, 1, 4);
	CHECK_U64(build(9, QC_ENTRY_CARRIED, LARGE), QC_OK);
	CHECK(plan.ordered);
	CHECK_U64(plan.needs.nqueues, 1);
	CHECK_U64(plan.needs.npartitions, 1);
	CHECK_U64(plan.needs.ngroups, 1);
	CHECK_U64(plan.needs.nalters, 1);
	CHECK_U64(plan.needs.ngrants, 2);
	CHECK_U64(plan.needs.nlane_items, 1);
	CHECK_U64(plan.needs.nitems, 6);

	/* names of the new queue, its partition and its group, of partition, group and queue */
	CHECK_U64(plan.needs.names[0], 4);
	CHECK_U64(plan.needs.names[1], 2);
	CHECK_U64(plan.needs.names[2] + plan.needs.names[3], 0);
	stage_clear();

	stage_effect(QC_EFFECT_GROUP_DROP, &group_drop, NULL, 0, 0);
	CHECK_U64(build(0, 0, LARGE), QC_OK);
	CHECK(!plan.ordered);
	stage_clear();
}

int
main(void)
{
	UNIT_RUN(test_solo);
	UNIT_RUN(test_grouping);
	UNIT_RUN(test_no_messages);
	UNIT_RUN(test_cutting);
	UNIT_RUN(test_limits);
	UNIT_RUN(test_no_memory);
	UNIT_RUN(test_needs);
	return unit_end();
}
