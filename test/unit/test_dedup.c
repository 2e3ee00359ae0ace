/*
 * test_dedup.c
 *		Dedup ids (qc_dedup.h): claims, their entries' fate, the window, a full memory, queues that go away.
 */
#include "machine.h"

#include <string.h>

#include "qc_catalog.h"
#include "qc_dedup.h"
#include "unit.h"

#define WINDOW	INT64_C(3600000000)
#define Q1_PARTITION 101
#define IDS_MAX 1024			/* that fit the machine's dedup memory */

static Machine m;

/* Hash and message id of a number. */
static void
make_key(uint32_t n, uint8_t key[QC_HASH_SIZE])
{
	memset(key, 0, QC_HASH_SIZE);
	memcpy(key, &n, sizeof(n));
	key[15] = (uint8_t) (n * 7);
}

/* An id that is made now. */
static void
make_id(uint8_t id[QC_ID_SIZE])
{
	uint64_t	ms = (uint64_t) m.now / 1000;

	memset(id, 0xAB, QC_ID_SIZE);
	for (int i = 0; i < 6; i++)
		id[i] = (uint8_t) (ms >> (8 * (5 - i)));
}

static QcRef
claim(uint64_t partition, uint32_t n)
{
	uint8_t		key[QC_HASH_SIZE];
	uint8_t		id[QC_ID_SIZE];

	make_key(n, key);
	make_id(id);
	return qc_dedup_claim(m.st, partition, key, id);
}

static const QcDedup *
find(uint64_t partition, uint32_t n)
{
	uint8_t		key[QC_HASH_SIZE];

	make_key(n, key);
	return qc_dedup_find(m.st, partition, key, m.now, WINDOW);
}

/* State of a key, -1 = not known. */
static int
state_of(uint64_t partition, uint32_t n)
{
	const QcDedup *dedup = find(partition, n);

	return dedup == NULL ? -1 : (int) dedup->state;
}

/* A push of one message whose claim goes to its entry, which stays open. */
static QcOpen *
push_claimed(uint64_t queue, uint64_t partition, uint32_t n)
{
	QcRef		ref = claim(partition, n);
	QcOpen	   *open;

	machine_op_push(&m, partition, queue, 1);
	open = machine_log(&m, 77, false, NULL);
	if (CHECK(ref != 0))
		qc_dedup_reserved(m.st, open, ref, m.now);
	return open;
}

static void
begin(void)
{
	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	machine_queue(&m, 2, NULL);
}

static void
test_claim(void)
{
	QcRef		ref;

	begin();
	CHECK_U64(state_of(Q1_PARTITION, 1), -1);
	ref = claim(Q1_PARTITION, 1);
	CHECK_U64(state_of(Q1_PARTITION, 1), QC_DEDUP_CLAIMED);
	CHECK(find(Q1_PARTITION, 2) == NULL);
	CHECK(find(102, 1) == NULL);
	qc_dedup_unclaim(m.st, ref);
	CHECK(find(Q1_PARTITION, 1) == NULL);
	CHECK_U64(m.st->dedups.count, 0);
	machine_end(&m);
}

/* The same id in many partitions, more than there are buckets for: each knows its own. */
static void
test_partitions(void)
{
	begin();
	for (uint64_t p = 0; p < IDS_MAX / 2; p++)
		CHECK(claim(1000 + 2 * p, 7) != 0);
	for (uint64_t p = 0; p < IDS_MAX / 2; p++)
	{
		CHECK_U64(state_of(1000 + 2 * p, 7), QC_DEDUP_CLAIMED);
		CHECK_U64(find(1000 + 2 * p, 7)->partition, 1000 + 2 * p);
		CHECK(find(1001 + 2 * p, 7) == NULL);
	}
	machine_end(&m);
}

static void
test_fate(void)
{
	QcOpen	   *first;
	QcOpen	   *second;

	begin();
	first = push_claimed(1, Q1_PARTITION, 1);
	second = push_claimed(1, Q1_PARTITION, 2);
	CHECK_U64(state_of(Q1_PARTITION, 1), QC_DEDUP_OPEN);
	CHECK_U64(find(Q1_PARTITION, 1)->seq, first->seq);
	machine_settle(&m, second, false);
	CHECK(find(Q1_PARTITION, 2) == NULL);
	machine_settle(&m, first, true);
	CHECK_U64(state_of(Q1_PARTITION, 1), QC_DEDUP_SETTLED);
	CHECK_U64(m.st->dedups.count, 1);
	CHECK_U64(qc_queue_by_id(m.st, 1)->last_dedup, m.now);
	machine_end(&m);
}

/* Outside the window a key is free again, whether its old entry has been freed or not. */
static void
test_window(void)
{
	begin();
	machine_settle(&m, push_claimed(1, Q1_PARTITION, 1), true);
	m.now += WINDOW - 1;
	CHECK_U64(state_of(Q1_PARTITION, 1), QC_DEDUP_SETTLED);
	CHECK(!qc_dedup_sweep(m.st, m.now, 100));
	m.now++;
	CHECK(find(Q1_PARTITION, 1) == NULL);
	machine_settle(&m, push_claimed(1, Q1_PARTITION, 1), true);
	CHECK_U64(find(Q1_PARTITION, 1)->pushed_at, m.now);
	CHECK_U64(m.st->dedups.count, 2);
	CHECK(qc_dedup_sweep(m.st, m.now, 100));
	CHECK_U64(m.st->dedups.count, 1);
	CHECK_U64(state_of(Q1_PARTITION, 1), QC_DEDUP_SETTLED);
	machine_end(&m);
}

/* What had left the window when that was made longer stays forgotten, of this queue alone. */
static void
test_longer(void)
{
	QcQueue    *queue;

	begin();
	queue = qc_queue_by_id(m.st, 1);
	machine_settle(&m, push_claimed(1, Q1_PARTITION, 1), true);
	machine_settle(&m, push_claimed(2, Q1_PARTITION + 1, 1), true);
	m.now += 10000;
	machine_settle(&m, push_claimed(1, Q1_PARTITION, 2), true);
	queue->options.value[QC_OPT_DEDUP_SINCE] = m.now;
	CHECK(find(Q1_PARTITION, 1) == NULL);
	CHECK_U64(state_of(Q1_PARTITION, 2), QC_DEDUP_SETTLED);
	CHECK_U64(state_of(Q1_PARTITION + 1, 1), QC_DEDUP_SETTLED);
	CHECK(qc_dedup_sweep(m.st, m.now, 100));
	CHECK_U64(m.st->dedups.count, 2);
	queue->options.value[QC_OPT_DEDUP_SINCE] = m.now + 1000;
	CHECK(find(Q1_PARTITION, 2) == NULL);
	machine_end(&m);
}

/* Fill the memory from both queues; the sweep gives it back a few at a time, whichever queue holds it. */
static void
test_full(void)
{
	uint32_t	n = 0;

	begin();
	while (n < IDS_MAX)
	{
		machine_settle(&m, push_claimed(1 + n % 2, Q1_PARTITION + n % 2, n), true);
		n++;
	}
	CHECK_U64(claim(Q1_PARTITION, n), 0);
	CHECK_U64(state_of(Q1_PARTITION, 0), QC_DEDUP_SETTLED);
	CHECK(!qc_dedup_sweep(m.st, m.now, IDS_MAX));
	m.now += WINDOW;
	CHECK(qc_dedup_sweep(m.st, m.now, 10));
	CHECK(m.st->dedups.count < IDS_MAX && m.st->dedups.count >= IDS_MAX - 10);
	CHECK(claim(Q1_PARTITION, n) != 0);
	while (qc_dedup_sweep(m.st, m.now, 100))
		 /* until all old ones are gone */ ;
	CHECK_U64(m.st->dedups.count, 1);
	machine_end(&m);
}

/* A dropped queue takes its ids along, also one whose entry was open when it was dropped. */
static void
test_drop(void)
{
	QcQueueDrop drop = {.queue = 1};
	QcOpen	   *open;

	begin();
	for (uint32_t n = 0; n < 100; n++)
		machine_settle(&m, push_claimed(1, Q1_PARTITION, n), true);
	machine_settle(&m, push_claimed(2, 102, 0), true);
	open = push_claimed(1, Q1_PARTITION, 100);
	machine_op_effect(&m, QC_EFFECT_QUEUE_DROP, &drop, NULL, 0, 0);
	(void) machine_log(&m, 0, true, NULL);
	while (qc_queue_sweep(m.st, 10))
		 /* a few at a time */ ;
	machine_settle(&m, open, true);
	while (qc_queue_sweep(m.st, 10))
		 /* now the partition can go, too */ ;
	CHECK(qc_queue_by_id(m.st, 1) == NULL);
	CHECK_U64(m.st->dedups.count, 1);
	CHECK_U64(state_of(102, 0), QC_DEDUP_SETTLED);
	machine_end(&m);
}

/* The window counts from the push, however much later the entry, or a copy, is logged. */
static void
test_late_entry(void)
{
	uint8_t		id[QC_ID_SIZE];
	QcOpen	   *open;
	QcRef		ref;

	begin();
	make_id(id);
	ref = claim(Q1_PARTITION, 1);
	m.now += WINDOW / 2;
	machine_op_push(&m, Q1_PARTITION, 1, 1);
	open = machine_log(&m, 77, false, NULL);
	qc_dedup_reserved(m.st, open, ref, m.now);
	machine_settle(&m, open, true);
	CHECK_U64(qc_dedup_time(id, m.now), m.now - WINDOW / 2);
	CHECK_U64(qc_dedup_time(id, 5), 5);
	m.now += WINDOW / 2 - 1;
	CHECK_U64(state_of(Q1_PARTITION, 1), QC_DEDUP_SETTLED);
	m.now++;
	CHECK(find(Q1_PARTITION, 1) == NULL);
	machine_end(&m);
}

int
main(void)
{
	UNIT_RUN(test_late_entry);
	UNIT_RUN(test_claim);
	UNIT_RUN(test_partitions);
	UNIT_RUN(test_fate);
	UNIT_RUN(test_window);
	UNIT_RUN(test_longer);
	UNIT_RUN(test_full);
	UNIT_RUN(test_drop);
	return unit_end();
}
