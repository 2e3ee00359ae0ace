/*
 * test_live.c
 *		Which records the state still needs.
 */
#include "machine.h"

#include <string.h>

#include "qc_catalog.h"
#include "qc_dedup.h"
#include "qc_effect.h"
#include "qc_live.h"
#include "qc_logfile.h"
#include "qc_purge.h"

#define LANE	200
#define MAX		16

static Machine m;
static uint8_t entries[MAX * QC_IDX_ENTRY_SIZE];
static uint32_t nentries;
static uint8_t answers[MAX];

static void
begin(void)
{
	machine_begin(&m);
	m.now = INT64_C(1700000000000000);
	machine_queue(&m, 1, NULL);
	nentries = 0;
}

/* One more record [first, end) to be judged, in the order of a .qidx. */
static void
record_at(uint64_t partition, uint64_t first, uint64_t end, int64_t created_at)
{
	uint8_t		encoded[QC_IDX_HEADER_SIZE + QC_IDX_ENTRY_SIZE];
	QcIdxEntry	entry = {partition, first, end, created_at, 32 + nentries * 100, (uint32_t) (end - first),
		96};

	qc_idx_encode(encoded, 1, 1000, &entry, 1);
	memcpy(entries + nentries++ * QC_IDX_ENTRY_SIZE, encoded + QC_IDX_HEADER_SIZE, QC_IDX_ENTRY_SIZE);
}

static void
record(uint64_t partition, uint64_t first, uint64_t end)
{
	record_at(partition, first, end, 1);
}

/* The answers, one letter each: - not, ? ask, d dedup, m message, h held, l delayed, D dead letter, x damaged, u unknown */
static void
expect(const char *letters)
{
	char		got[MAX + 1] = "";

	CHECK_U64(qc_live_judge(m.st, entries, nentries, m.now, answers, UINT32_MAX), nentries);
	for (uint32_t i = 0; i < nentries; i++)
		got[i] = "-?dmhlDxu"[answers[i]];
	CHECK_STR(got, letters);
	for (uint32_t i = 0; i < nentries; i++)
	{
		uint8_t		alone;

		CHECK_U64(qc_live_judge(m.st, entries + i * QC_IDX_ENTRY_SIZE, 1, m.now, &alone, 1), 1);
		CHECK_U64(alone, answers[i]);
	}
}

static void
purge(uint64_t partition)
{
	QcPurge		effect = {.queue = 1, .partition = partition};

	machine_op_effect(&m, QC_EFFECT_PURGE, &effect, NULL, 0, 0);
	machine_settle(&m, machine_log(&m, 0, false, NULL), true);
}

static void
test_start(void)
{
	begin();
	machine_push(&m, 1, 101, 10);
	purge(101);
	machine_push(&m, 1, 101, 10);
	record(101, 0, 5);
	record(101, 5, 10);
	record(101, 5, 11);
	record(101, 10, 20);
	expect("--mm");
	machine_end(&m);
}

/* A purge of the whole queue that the partition has not seen yet. */
static void
test_stale(void)
{
	begin();
	machine_partition(&m, 1, 102, "p", QC_LANE_NONE);
	machine_push(&m, 1, 102, 4);
	purge(0);
	CHECK(qc_partition_stale(m.st, qc_partition_by_id(m.st, 102)));
	record(102, 0, 4);
	expect("-");
	machine_push(&m, 1, 102, 4);
	record(102, 4, 8);
	expect("-m");
	machine_end(&m);
}

/* What somebody held when it was purged is needed until he is done with it, or gives it back and it is delivered again. */
static void
test_held(void)
{
	begin();
	machine_push(&m, 1, 101, 10);
	CHECK_U64(machine_pop(&m, 1, 101, 7, 4, true), 4);
	purge(101);
	record(101, 0, 1);
	record(101, 1, 4);
	record(101, 4, 10);
	expect("hh-");
	machine_ack(&m, 7, 101, 0, 3);
	expect("-h-");
	machine_ack(&m, 7, 101, 3, 1);
	expect("---");
	machine_end(&m);
}

static void
test_held_and_stale(void)
{
	begin();
	machine_push(&m, 1, 101, 10);
	CHECK_U64(machine_pop(&m, 1, 101, 7, 4, true), 4);
	purge(0);
	record(101, 0, 4);
	record(101, 4, 10);
	expect("h-");
	machine_end(&m);
}

static void
test_aborted(void)
{
	QcOpen	   *open;

	begin();
	machine_push(&m, 1, 101, 2);
	machine_op_push(&m, 101, 1, 3);
	open = machine_log(&m, 70, false, NULL);
	machine_push(&m, 1, 101, 2);
	record(101, 0, 2);
	record(101, 2, 5);
	record(101, 5, 7);
	expect("mmm");
	machine_settle(&m, open, false);
	expect("m-m");
	nentries = 0;
	record(101, 2, 4);
	record(101, 3, 6);
	expect("-m");
	machine_end(&m);
}

static void
test_lanes(void)
{
	QcDead		dead = {.lease = 7, .group = QC_DEFAULT_GROUP, .partition = 101, .position = 0, .attempt = 1,
		.lane = LANE, .cause = QC_DEAD_REJECTED};

	begin();
	machine_partition(&m, 1, LANE, "", QC_LANE_DEAD);
	machine_partition(&m, 1, LANE + 1, "", QC_LANE_DELAY);
	machine_push(&m, 1, 101, 2);
	CHECK_U64(machine_pop(&m, 1, 101, 7, 1, true), 1);
	machine_op_dead(&m, &dead, 1);
	machine_settle(&m, machine_log(&m, 0, false, NULL), true);
	machine_op_delay(&m, LANE + 1, 1, 3, 101, m.now + 1000000);
	machine_settle(&m, machine_log(&m, 0, false, NULL), true);
	record(LANE, 0, 1);
	record(LANE + 1, 0, 3);
	expect("Dl");
	qc_lane_remove(m.st, qc_lane_find(m.st, qc_partition_by_id(m.st, LANE), 0));
	qc_lane_remove_range(m.st, qc_partition_by_id(m.st, LANE + 1), 0, 2);
	expect("-l");
	qc_lane_remove_range(m.st, qc_partition_by_id(m.st, LANE + 1), 2, 1);
	expect("--");
	machine_end(&m);
}

/* Neither partitions from nowhere nor positions from nowhere are taken for dead. */
static void
test_unknown(void)
{
	begin();
	machine_push(&m, 1, 101, 2);
	record(0, 0, 1);
	record(101, 0, 2);
	record(101, 2, 3);
	record(5000, 0, 2);
	expect("umuu");
	qc_queue_by_id(m.st, 1)->damaged = 1;
	expect("uxxu");
	qc_queue_by_id(m.st, 1)->damaged = 0;

	/* One that was given out and does not exist was dropped. */
	m.st->next_partition_id = 6000;
	expect("umu-");
	machine_end(&m);
}

static void
test_dropped(void)
{
	QcQueueDrop drop = {.queue = 1};

	begin();
	machine_push(&m, 1, 101, 2);
	record(101, 0, 2);
	expect("m");
	machine_op_effect(&m, QC_EFFECT_QUEUE_DROP, &drop, NULL, 0, 0);
	machine_settle(&m, machine_log(&m, 0, false, NULL), true);
	expect("-");
	machine_end(&m);
}

/* The ids of what is gone are needed while the window of the queue lasts. */
static void
test_dedup(void)
{
	uint8_t		id[QC_ID_SIZE] = {0};
	uint8_t		hashes[2 * QC_HASH_SIZE] = {0};
	QcQueue    *queue;
	int64_t		window;

	begin();
	queue = qc_queue_by_id(m.st, 1);
	window = queue->options.value[QC_OPT_DEDUP_WINDOW];
	CHECK(window > 0);
	for (int i = 0; i < 6; i++)
		id[i] = (uint8_t) (m.now / 1000 >> (40 - 8 * i));
	machine_push(&m, 1, 101, 2);
	purge(101);
	record_at(101, 0, 2, m.now);
	expect("-");
	queue->last_dedup = m.now;
	expect("?");
	hashes[QC_HASH_SIZE] = 9;
	CHECK(!qc_live_dedup(m.st, 101, hashes, QC_HASH_SIZE, 2, m.now));
	CHECK(qc_dedup_load(m.st, queue, 101, hashes + QC_HASH_SIZE, id, m.now));
	CHECK(qc_live_dedup(m.st, 101, hashes, QC_HASH_SIZE, 2, m.now));
	CHECK(!qc_live_dedup(m.st, 101, hashes, QC_HASH_SIZE, 1, m.now));
	CHECK(!qc_live_dedup(m.st, 102, hashes, QC_HASH_SIZE, 2, m.now));
	m.now += window;
	CHECK(!qc_live_dedup(m.st, 101, hashes, QC_HASH_SIZE, 2, m.now));
	expect("-");
	machine_end(&m);
}

/* Work is cut into pieces, the answers do not depend on it. */
static void
test_budget(void)
{
	uint32_t	at = 0;
	uint32_t	pieces = 0;

	begin();
	machine_push(&m, 1, 101, 20);
	for (uint32_t i = 0; i < 10; i++)
		record(101, i * 2, i * 2 + 2);
	while (at < nentries)
	{
		uint32_t	n = qc_live_judge(m.st, entries + at * QC_IDX_ENTRY_SIZE, nentries - at, m.now,
									  answers + at, 6);

		CHECK(n > 0 && n < 4);
		at += n;
		pieces++;
	}
	CHECK(pieces >= 4);
	for (uint32_t i = 0; i < nentries; i++)
		CHECK_U64(answers[i], QC_LIVE_MESSAGE);
	machine_end(&m);
}

static void
test_position(void)
{
	begin();
	machine_push(&m, 1, 101, 3);
	CHECK(qc_live_position(m.st, 101, 2));
	CHECK_U64(machine_pop(&m, 1, 101, 7, 1, true), 1);
	purge(101);
	CHECK(qc_live_position(m.st, 101, 0));
	CHECK(!qc_live_position(m.st, 101, 1));
	CHECK(qc_live_position(m.st, 101, 3));
	machine_end(&m);
}

int
main(void)
{
	UNIT_RUN(test_start);
	UNIT_RUN(test_stale);
	UNIT_RUN(test_held);
	UNIT_RUN(test_held_and_stale);
	UNIT_RUN(test_aborted);
	UNIT_RUN(test_lanes);
	UNIT_RUN(test_unknown);
	UNIT_RUN(test_dropped);
	UNIT_RUN(test_dedup);
	UNIT_RUN(test_budget);
	UNIT_RUN(test_position);
	return unit_end();
}
