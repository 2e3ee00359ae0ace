/*
 * test_answer.c
 *		Remembered answers (qc_answer.h): found while they are in the ring, replaced oldest first, kept by checkpoints.
 */
#include <stdlib.h>
#include <string.h>

#include "qc_answer.h"
#include "qc_batch.h"
#include "qc_rows.h"
#include "unit.h"

static QcState *
new_state(void)
{
	QcStateConfig config = {.state_bytes = 1024 * 1024, .index_bytes = 1024 * 1024};
	void	   *block = malloc(qc_state_size(&config));

	memset(block, 0x5A, qc_state_size(&config));
	return qc_state_init(block, &config);
}

/* A lease id that looks like one, different for every n. */
static uint64_t
lease_id(uint64_t n)
{
	return (n + 1) * UINT64_C(0x9E3779B97F4A7C15);
}

/* How many of the answers [from, to) are found with what was remembered of them. */
static uint32_t
count_right(const QcState *st, uint32_t from, uint32_t to)
{
	uint32_t	right = 0;

	for (uint32_t i = from; i < to; i++)
	{
		const QcAnswer *answer = qc_answer_find(st, lease_id(i));

		right += answer != NULL && answer->lease == lease_id(i) && answer->queue == i % 7 &&
			answer->count == i;
	}
	return right;
}

static uint32_t
count_found(const QcState *st, uint32_t from, uint32_t to)
{
	uint32_t	found = 0;

	for (uint32_t i = from; i < to; i++)
		found += qc_answer_find(st, lease_id(i)) != NULL;
	return found;
}

static void
test_ring(void)
{
	QcState    *st = new_state();
	uint32_t	max = st->answers_max;

	CHECK(max >= 1024);
	CHECK(qc_answer_find(st, lease_id(0)) == NULL);
	CHECK(qc_answer_find(st, 0) == NULL);
	for (uint32_t i = 0; i < max; i++)
		qc_answer_remember(st, lease_id(i), i % 7, i);
	CHECK_U64(count_right(st, 0, max), max);

	/* More than two rounds on, the newest are there and none of the older ones. */
	for (uint32_t i = max; i < 3 * max + 5; i++)
		qc_answer_remember(st, lease_id(i), i % 7, i);
	CHECK_U64(count_right(st, 2 * max + 5, 3 * max + 5), max);
	CHECK_U64(count_found(st, 0, 2 * max + 5), 0);
	free(st);
}

/* Load what a batch puts. */
static void
load_batch(QcState *st, const uint8_t *bytes, size_t len)
{
	QcReader	r;
	QcError		err;

	qc_reader_init(&r, bytes, len);
	while (qc_reader_left(&r) > 0)
	{
		uint8_t		op = qc_get_u8(&r);
		uint16_t	key_len = qc_get_u16(&r);
		uint32_t	value_len = qc_get_u32(&r);
		const uint8_t *key = qc_get_bytes(&r, key_len);
		const uint8_t *value = qc_get_bytes(&r, value_len);

		if (!CHECK(!r.bad && op == QC_BATCH_PUT) ||
			!CHECK_U64(qc_rows_load(st, key, key_len, value, value_len, &err), QC_OK))
			return;
	}
}

/* A checkpoint keeps the newest answers, and they can be found when it has been loaded. */
static void
check_checkpoint(uint32_t n)
{
	QcState    *st = new_state();
	QcState    *loaded = new_state();
	uint32_t	stored = n < QC_ANSWERS_STORED ? n : QC_ANSWERS_STORED;
	size_t		cap;
	uint8_t    *bytes;
	QcWriter	batch;
	QcRowsMark	mark;
	QcError		err;

	for (uint32_t i = 0; i < n; i++)
		qc_answer_remember(st, lease_id(i), i % 7, i);
	st->seq = 1;
	cap = qc_rows_estimate(st);
	bytes = malloc(cap);
	qc_writer_init(&batch, bytes, cap);
	CHECK_U64(qc_rows_dump(st, &batch, &mark, &err), QC_OK);
	load_batch(loaded, bytes, batch.len);
	CHECK_U64(count_right(loaded, n - stored, n), stored);
	CHECK_U64(count_found(loaded, 0, n - stored), 0);
	free(bytes);
	free(st);
	free(loaded);
}

static void
test_checkpoint(void)
{
	check_checkpoint(0);
	check_checkpoint(3);
	check_checkpoint(QC_ANSWERS_STORED + 100);
}

int
main(void)
{
	UNIT_RUN(test_ring);
	UNIT_RUN(test_checkpoint);
	return unit_end();
}
