/*
 * test_timer.c
 *		The timer wheel: deadlines are met to the tick, from the next one to years ahead, and alarms.
 */
#include "machine.h"

#include "qc_timer.h"

#define HOUR_US (INT64_C(3600) * 1000000)

static Machine m;

/* Queue 1 with n messages in its default partition, each under a lease of its own: 1 to n. */
static void
begin(uint32_t n)
{
	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	machine_push(&m, 1, 101, n);
	for (uint32_t i = 1; i <= n; i++)
		CHECK_U64(machine_pop(&m, 1, 101, i, 1, true), 1);
}

static void
arm(uint64_t lease, int64_t after)
{
	CHECK(qc_timer_arm_lease(m.st, qc_lease_by_id(m.st, lease), m.monotonic + after, m.monotonic,
							 false));
}

/* Which lease is over at this time; 0 = none; more than one is a failure. */
static uint64_t
expired_at(int64_t monotonic)
{
	uint64_t	ids[4];
	uint32_t	n = qc_timers_run(m.st, monotonic, ids, 4);

	CHECK(n <= 1);
	return n == 0 ? 0 : ids[0];
}

/* A lease is over at the first tick at or behind its deadline, not before, however far that is. */
static void
test_every_distance(void)
{
	static const int64_t distances[] = {0, 1, 10000, 15000, 2550000, 2560000, 2570000, 60000000,
		655350000, 655360000, 24 * HOUR_US, 48 * HOUR_US, 24 * 365 * HOUR_US,
		24 * 365 * 10 * HOUR_US};

	for (size_t i = 0; i < sizeof(distances) / sizeof(distances[0]); i++)
	{
		int64_t		tick;

		begin(1);
		arm(1, distances[i]);
		tick = (m.monotonic + distances[i] + QC_TICK_US - 1) / QC_TICK_US * QC_TICK_US;
		CHECK(qc_timers_next(m.st) <= tick);
		CHECK_U64(expired_at(tick - 1), 0);
		CHECK_U64(expired_at(tick), 1);
		machine_end(&m);
	}
}

/* Going from one announced time to the next meets every deadline, in order, in few steps. */
static void
test_announced_times(void)
{
	static const int64_t distances[] = {30000, 5000000, 5000000 + 256 * 10000, HOUR_US,
		HOUR_US + 20000, 1000 * HOUR_US};
	uint32_t	n = sizeof(distances) / sizeof(distances[0]);
	uint64_t	due = 1;
	uint32_t	steps = 0;

	begin(n);
	for (uint32_t i = 0; i < n; i++)
		arm(i + 1, distances[i]);
	while (due <= n && steps++ < 100)
	{
		int64_t		next = qc_timers_next(m.st);
		uint64_t	id = expired_at(next);

		if (id == 0)
			continue;
		CHECK_U64(id, due);
		CHECK(next >= m.monotonic + distances[due - 1]);
		CHECK(next < m.monotonic + distances[due - 1] + QC_TICK_US);
		qc_timer_disarm(m.st, &qc_lease_by_id(m.st, id)->timer);
		due++;
	}
	CHECK_U64(due, n + 1);
	CHECK(steps < 30);
	CHECK_U64(m.st->ntimers, 0);
	CHECK_U64(qc_timers_next(m.st), INT64_MAX);
	machine_end(&m);
}

/* A late run fires what has become due meanwhile, and what is armed after it is right, too. */
static void
test_late_run(void)
{
	uint64_t	ids[4];

	begin(3);
	arm(1, 20000);
	arm(2, 3 * HOUR_US);
	arm(3, 5 * HOUR_US);
	m.monotonic += 4 * HOUR_US;
	CHECK_U64(qc_timers_run(m.st, m.monotonic, ids, 4), 2);
	CHECK_U64(ids[0], 1);
	CHECK_U64(ids[1], 2);
	for (uint64_t id = 1; id <= 2; id++)
		qc_timer_disarm(m.st, &qc_lease_by_id(m.st, id)->timer);
	arm(1, 500000);
	CHECK_U64(expired_at(m.monotonic + 499999), 0);
	CHECK_U64(expired_at(m.monotonic + 500000), 1);
	qc_timer_disarm(m.st, &qc_lease_by_id(m.st, 1)->timer);
	CHECK_U64(expired_at(m.monotonic + HOUR_US - 1), 0);
	CHECK_U64(expired_at(m.monotonic + HOUR_US), 3);
	machine_end(&m);
}

/* A run stops at its budget and goes on there. */
static void
test_budget(void)
{
	uint64_t	ids[8];
	uint32_t	fired;

	begin(5);
	for (uint64_t id = 1; id <= 5; id++)
		arm(id, 10000);
	m.monotonic += 10000;
	CHECK_U64(qc_timers_step(m.st, m.monotonic, 2, &fired, ids, 8), 2);
	CHECK_U64(fired, 2);
	CHECK_U64(qc_timers_step(m.st, m.monotonic, 8, &fired, ids, 2), 2);
	CHECK_U64(ids[1], 4);
	CHECK_U64(qc_timers_step(m.st, m.monotonic, 8, &fired, ids, 8), 1);
	CHECK_U64(ids[0], 5);
	CHECK_U64(fired, 1);
	machine_end(&m);
}

/* A lease that could not be released is over again a second later. */
static void
test_expired_again(void)
{
	begin(1);
	arm(1, 10000);
	CHECK_U64(expired_at(m.monotonic + 10000), 1);
	CHECK_U64(expired_at(m.monotonic + 1009999), 0);
	CHECK_U64(expired_at(m.monotonic + 1010000), 1);
	machine_end(&m);
}

/* ... even when its new place in the wheel is the one that is being looked at: each run tells of it once. */
static void
test_expired_once_per_run(void)
{
	for (int64_t late = 140; late < 170; late++)
	{
		begin(1);
		arm(1, 10000);
		CHECK_U64(expired_at(m.monotonic + 10000 + late * QC_TICK_US), 1);
		machine_end(&m);
	}
}

/* Owned or pinned leases do not expire, and nobody wakes up for them. */
static void
test_held_leases_sleep(void)
{
	QcLease    *lease;

	begin(1);
	lease = qc_lease_by_id(m.st, 1);
	lease->owner = 4711;
	arm(1, 10000);
	CHECK_U64(expired_at(m.monotonic + 10000), 0);
	CHECK(qc_timers_next(m.st) > m.monotonic + 24 * HOUR_US);
	m.monotonic += HOUR_US;
	qc_lease_commit(m.st, lease, m.monotonic);
	CHECK_U64(expired_at(m.monotonic + 60 * QC_SECOND - 1), 0);
	CHECK_U64(expired_at(m.monotonic + 60 * QC_SECOND), 1);
	qc_lease_pin(m.st, lease, 9);
	CHECK_U64(expired_at(m.monotonic + HOUR_US), 0);
	qc_lease_unpin(m.st, lease, m.monotonic + HOUR_US);
	CHECK_U64(expired_at(m.monotonic + HOUR_US + 60 * QC_SECOND), 1);
	machine_end(&m);
}

/* Only what is due before the sleeper wakes up by himself calls him, and once is enough. */
static void
test_alarm(void)
{
	begin(3);
	for (uint64_t id = 1; id <= 3; id++)
		qc_timer_disarm(m.st, &qc_lease_by_id(m.st, id)->timer);
	CHECK_U64(m.st->alarm, 0);
	CHECK_U64(qc_timers_rest(m.st), INT64_MAX);
	arm(1, 20000);
	CHECK_U64(m.st->alarm, 1);
	m.st->alarm = 0;
	arm(2, 10000);
	CHECK_U64(m.st->alarm, 0);

	/* he looks, and goes to sleep again */
	qc_timers_awake(m.st);
	CHECK_U64(qc_timers_rest(m.st), m.monotonic + 10000);
	arm(3, 15000);
	CHECK_U64(m.st->alarm, 0);
	arm(3, 0);
	CHECK_U64(m.st->alarm, 1);
	qc_timers_awake(m.st);
	CHECK_U64(m.st->alarm, 0);
	qc_timers_call(m.st, INT64_MIN);
	CHECK_U64(m.st->alarm, 0);
	(void) qc_timers_rest(m.st);
	qc_timers_call(m.st, INT64_MIN);
	CHECK_U64(m.st->alarm, 1);
	machine_end(&m);
}

int
main(void)
{
	UNIT_RUN(test_every_distance);
	UNIT_RUN(test_announced_times);
	UNIT_RUN(test_late_run);
	UNIT_RUN(test_budget);
	UNIT_RUN(test_expired_again);
	UNIT_RUN(test_expired_once_per_run);
	UNIT_RUN(test_held_leases_sleep);
	UNIT_RUN(test_alarm);
	return unit_end();
}
