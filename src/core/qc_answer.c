/*
 * qc_answer.c
 *		The ring of remembered answers (qc_answer.h).
 */
#include "qc_answer.h"

#include <assert.h>

#define BYTES_PER_ANSWER	512 /* of state memory: about as many answers as leases fit */
#define ANSWERS_MIN			1024
#define ANSWERS_MAX			(1u << 20)

/* Number of answers, a power of two, and as many buckets. */
static uint32_t
ring_size(uint64_t state_bytes)
{
	uint32_t	n = ANSWERS_MIN;

	while (n < ANSWERS_MAX && (uint64_t) n * BYTES_PER_ANSWER < state_bytes)
		n *= 2;
	return n;
}

uint64_t
qc_answers_size(uint64_t state_bytes)
{
	return ring_size(state_bytes) * (uint64_t) (sizeof(QcAnswer) + sizeof(uint32_t));
}

void
qc_answers_init(QcState *st, uint64_t at, uint64_t state_bytes)
{
	st->answers = at;
	st->answers_max = ring_size(state_bytes);
	st->nanswers = 0;
}

static QcAnswer *
answer_at(const QcState *st, uint64_t n)
{
	return (QcAnswer *) ((uintptr_t) st + (uintptr_t) st->answers) + (n & (st->answers_max - 1));
}

static uint32_t *
bucket_of(const QcState *st, uint64_t lease)
{
	uint32_t   *buckets = (uint32_t *) ((uintptr_t) st + (uintptr_t) st->answers +
										st->answers_max * sizeof(QcAnswer));

	return &buckets[qc_hash_id(lease) & (st->answers_max - 1)];
}

/* Take an answer that is to be replaced out of its bucket. */
static void
forget(QcState *st, const QcAnswer *answer)
{
	uint32_t	self = (uint32_t) (answer - answer_at(st, 0)) + 1;
	uint32_t   *at = bucket_of(st, answer->lease);

	while (*at != self)
	{
		assert(*at != 0);
		at = &answer_at(st, *at - 1)->next;
	}
	*at = answer->next;
}

void
qc_answer_remember(QcState *st, uint64_t lease, uint64_t queue, uint32_t count)
{
	QcAnswer   *answer = answer_at(st, st->nanswers);
	uint32_t   *bucket = bucket_of(st, lease);

	assert(lease != 0);
	if (answer->lease != 0)
		forget(st, answer);
	*answer = (QcAnswer)
	{
		lease, queue, count, *bucket
	};
	*bucket = (uint32_t) (st->nanswers & (st->answers_max - 1)) + 1;
	st->nanswers++;
}

const QcAnswer *
qc_answer_find(const QcState *st, uint64_t lease)
{
	for (uint32_t n = *bucket_of(st, lease); n != 0;)
	{
		const QcAnswer *answer = answer_at(st, n - 1);

		if (answer->lease == lease)
			return answer;
		n = answer->next;
	}
	return NULL;
}

uint32_t
qc_answers_stored(const QcState *st)
{
	return st->nanswers < QC_ANSWERS_STORED ? (uint32_t) st->nanswers : QC_ANSWERS_STORED;
}

const QcAnswer *
qc_answer_stored(const QcState *st, uint32_t n)
{
	return answer_at(st, st->nanswers - qc_answers_stored(st) + n);
}
