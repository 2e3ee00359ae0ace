/*
 * qlog_uuid.c
 *		Message ids and other random numbers of a backend.
 *
 * Random bytes are fetched a pool at a time: one id costs no system call.  The pool is of this process; a
 * postmaster never fills it, so no two backends share bytes.
 */
#include "qlog_uuid.h"

#include <time.h>

#define POOL_SIZE		2048
#define FRACTION_STEPS	4096	/* 12 bits */

/* Smallest distance of two ids in nanoseconds: one step of the fraction, rounded up. */
#define STEP_NS			(1000000 / FRACTION_STEPS + 1)

static uint8 pool[POOL_SIZE];
static size_t pool_at = POOL_SIZE;

/* Take len (<= POOL_SIZE) random bytes, each of them once. */
static void
take_random(void *out, size_t len)
{
	if (len > POOL_SIZE - pool_at)
	{
		if (!pg_strong_random(pool, POOL_SIZE))
			ereport(ERROR,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg("could not generate random values")));
		pool_at = 0;
	}
	memcpy(out, pool + pool_at, len);
	memset(pool + pool_at, 0, len);
	pool_at += len;
}

uint64
qlog_random(void)
{
	uint64		value = 0;

	while (value == 0)
		take_random(&value, sizeof(value));
	return value;
}

/* Nanoseconds since the Unix epoch, at least a step after the last answer. */
static int64
next_instant(void)
{
	static int64 last = 0;
	struct timespec now;
	int64		instant;

	clock_gettime(CLOCK_REALTIME, &now);
	instant = (int64) now.tv_sec * 1000000000 + now.tv_nsec;
	if (instant < last + STEP_NS)
		instant = last + STEP_NS;
	last = instant;

	return instant;
}

void
qlog_uuid_make(uint8 id[QLOG_UUID_SIZE])
{
	int64		instant = next_instant();
	uint64		ms = (uint64) (instant / 1000000);
	uint32		fraction = (uint32) ((instant % 1000000) * FRACTION_STEPS / 1000000);

	take_random(id + 8, 8);
	for (int i = 0; i < 6; i++)
		id[i] = (uint8) (ms >> (8 * (5 - i)));
	id[6] = (uint8) (0x70 | (fraction >> 8));
	id[7] = (uint8) fraction;
	id[8] = (uint8) (0x80 | (id[8] & 0x3f));
}
