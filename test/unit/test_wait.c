/*
 * test_wait.c
 *		Waiting: who is woken, by what, and how often; no wake-up is lost, whatever happens in whatever order.
 */
#include "../sim/sim_random.h"
#include "qc_group.h"
#include "qc_timer.h"
#include "unit.h"
#include "waiting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANY WAITING_NOBODY

static Waiting w;

/* List processes [first, first + n), which find nothing. */
static void
list(uint32_t first, uint32_t n, uint32_t partition, uint32_t batch)
{
	for (uint32_t i = first; i < first + n; i++)
	{
		CHECK_U64(waiting_pop(&w, i, partition, batch, true), 0);
		CHECK_U64(waiting_unlock(&w), 0);
	}
}

/* The lock is released: so many are woken, and everything is in order. */
static void
expect_woken(uint32_t n)
{
	const char *broken;

	CHECK_U64(waiting_unlock(&w), n);
	broken = waiting_check(&w);
	CHECK_STR(broken == NULL ? "" : broken, "");
}

/* These were woken since the last look, and no other. */
static void
expect_latches(uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < WAITING_PROCESSES; i++)
	{
		CHECK_U64(w.latch[i], i >= first && i < first + n);
		w.latch[i] = false;
	}
}

static void
each_message_wakes_one(void)
{
	waiting_begin(&w);
	list(0, 6, ANY, 1);
	waiting_push(&w, 0, 1);
	expect_woken(1);
	waiting_push(&w, 0, 2);
	expect_woken(2);
	expect_latches(0, 3);

	/* More messages than waiters. */
	w.latch[0] = w.latch[1] = w.latch[2] = true;
	waiting_push(&w, 0, 10);
	expect_woken(3);
	waiting_push(&w, 0, 1);
	expect_woken(0);
	CHECK_U64(w.group->wakeups, 6);
	waiting_end(&w);
}

static void
who_takes_many_is_one(void)
{
	waiting_begin(&w);
	list(0, 6, ANY, 10);
	waiting_push(&w, 0, 25);
	expect_woken(3);
	CHECK(waiting_pop(&w, 0, ANY, 10, true) != 0);
	expect_woken(0);
	CHECK(waiting_pop(&w, 1, ANY, 10, true) != 0);
	CHECK(waiting_pop(&w, 2, ANY, 10, true) != 0);
	expect_woken(0);

	/* One takes less than he could: the next one is woken at once for the rest. */
	waiting_push(&w, 0, 10);
	expect_woken(1);
	CHECK(waiting_pop(&w, 3, ANY, 4, false) != 0);
	expect_woken(1);
	waiting_end(&w);
}

static void
an_ordered_partition_wakes_one(void)
{
	uint64_t	lease;

	waiting_begin(&w);
	list(0, 4, ANY, 1);
	waiting_push(&w, 1, 5);
	expect_woken(1);
	waiting_push(&w, 1, 5);
	expect_woken(0);
	waiting_push(&w, 2, 1);
	expect_woken(1);

	/* The rest of the partition waits for the answer. */
	lease = waiting_pop(&w, 0, ANY, 1, true);
	expect_woken(0);
	(void) waiting_pop(&w, 1, ANY, 1, true);
	expect_woken(0);
	waiting_ack(&w, lease);
	expect_woken(1);
	waiting_end(&w);
}

static void
what_is_given_back_wakes(void)
{
	uint64_t	lease;

	waiting_begin(&w);
	waiting_push(&w, 0, 3);
	lease = waiting_pop(&w, 0, ANY, 3, false);
	list(1, 5, ANY, 1);
	waiting_nack(&w, lease, 0);
	expect_woken(3);
	waiting_end(&w);

	/* A retry time that comes, and a lease that is over. */
	waiting_begin(&w);
	waiting_push(&w, 0, 2);
	lease = waiting_pop(&w, 0, ANY, 1, false);
	CHECK(waiting_pop(&w, 0, ANY, 1, false) != 0);
	list(1, 5, ANY, 1);
	waiting_nack(&w, lease, 2000000);
	expect_woken(0);
	waiting_pass(&w, 1900000);
	expect_woken(0);
	waiting_pass(&w, 200000);
	expect_woken(1);
	CHECK(waiting_pop(&w, 1, ANY, 1, false) != 0);
	waiting_pass(&w, 58000000);
	expect_woken(1);
	waiting_end(&w);
}

static void
only_what_is_visible_wakes(void)
{
	uint64_t	first;
	uint64_t	second;

	waiting_begin(&w);
	list(0, 5, ANY, 1);
	first = waiting_push_open(&w, 0, 1);
	second = waiting_push_open(&w, 0, 2);
	expect_woken(0);
	waiting_settle(&w, second, true);
	expect_woken(0);
	waiting_settle(&w, first, true);
	expect_woken(3);
	first = waiting_push_open(&w, 0, 1);
	waiting_settle(&w, first, false);
	expect_woken(0);
	waiting_end(&w);
}

static void
waiters_for_one_partition(void)
{
	waiting_begin(&w);
	list(0, 2, 1, 1);
	list(2, 2, 0, 1);
	list(4, 1, ANY, 1);

	/* Named: one of its waiters, since it is one delivery; and as if that one were of any kind. */
	waiting_push(&w, 1, 3);
	expect_woken(1);
	expect_latches(0, 1);
	CHECK(waiting_pop(&w, 0, 1, 1, true) != 0);
	expect_woken(0);
	waiting_push(&w, 2, 1);
	expect_woken(1);
	expect_latches(4, 1);

	/* The default one: as many as there are messages. */
	waiting_push(&w, 0, 5);
	expect_woken(2);
	expect_latches(2, 2);
	waiting_end(&w);
}

static void
an_unused_wake_up_is_passed_on(void)
{
	waiting_begin(&w);
	list(0, 3, ANY, 1);
	waiting_push(&w, 0, 1);
	expect_woken(1);
	qc_wait_end(w.st, 0);
	expect_woken(1);
	expect_latches(0, 2);
	qc_wait_end(w.st, 1);
	w.latch[2] = true;
	expect_woken(1);
	waiting_end(&w);

	/* One who was not woken leaves: nothing to pass on. */
	waiting_begin(&w);
	list(0, 3, 1, 1);
	qc_wait_end(w.st, 1);
	waiting_push(&w, 1, 1);
	expect_woken(1);
	expect_latches(0, 1);
	qc_wait_end(w.st, 0);
	expect_woken(1);
	expect_latches(2, 1);
	waiting_end(&w);
}

static void
a_claim_ends_in_time(void)
{
	waiting_begin(&w);
	CHECK_U64(qc_claims_next(w.st), INT64_MAX);
	list(0, 3, ANY, 1);
	CHECK_U64(qc_timers_rest(w.st), INT64_MAX);

	/* Whoever runs the timers is called. */
	waiting_push(&w, 0, 1);
	expect_woken(1);
	CHECK(w.st->alarm);
	CHECK_U64(qc_timers_rest(w.st), w.now + QC_CLAIM_US);
	CHECK_U64(qc_claims_next(w.st), w.now + QC_CLAIM_US);
	waiting_pass(&w, QC_CLAIM_US - 1);
	expect_woken(0);
	waiting_pass(&w, 1);
	expect_woken(1);
	waiting_pass(&w, QC_CLAIM_US);
	expect_woken(1);
	waiting_pass(&w, QC_CLAIM_US);
	expect_woken(0);
	CHECK_U64(qc_claims_next(w.st), INT64_MAX);
	waiting_end(&w);
}

static void
who_is_told(void)
{
	waiting_begin(&w);
	waiting_push(&w, 0, 1);

	/* The second one is not told of what the first one was told of, until its time is over. */
	CHECK(waiting_tell(&w, 0));
	CHECK(!waiting_tell(&w, 1));
	CHECK(!waiting_tell(&w, 2));
	expect_woken(0);
	waiting_pass(&w, QC_CLAIM_US);
	expect_woken(1);
	CHECK(waiting_tell(&w, 1));
	expect_woken(0);

	/* It pops in another session: its claim ends, and the next message tells the next one. */
	CHECK(waiting_pop(&w, 7, ANY, 1, false) != 0);
	waiting_push(&w, 0, 1);
	expect_woken(1);
	expect_latches(1, 2);

	/* Somebody takes it before: the one that was woken waits on. */
	CHECK(waiting_pop(&w, 7, ANY, 1, false) != 0);
	CHECK(!waiting_tell(&w, 2));
	expect_woken(0);
	waiting_push(&w, 0, 1);
	expect_woken(1);
	waiting_end(&w);
}

static void
pops_elsewhere_end_claims_of_the_told(void)
{
	waiting_begin(&w);
	waiting_push(&w, 0, 3);
	for (uint32_t i = 0; i < 3; i++)
		CHECK(waiting_tell(&w, i));
	CHECK(!waiting_tell(&w, 3));

	/* Through a pooler: each pop stands for one that was told. */
	CHECK(waiting_pop(&w, 8, ANY, 1, false) != 0);
	expect_woken(0);
	waiting_push(&w, 0, 1);
	expect_woken(1);
	CHECK_U64(w.group->nclaims, 3);
	waiting_end(&w);
}

static void
a_paused_queue_wakes_nobody(void)
{
	waiting_begin(&w);
	w.queue->flags = QC_QUEUE_NO_POP;
	waiting_push(&w, 0, 2);
	list(0, 3, ANY, 1);
	list(3, 1, 1, 1);
	list(4, 1, 0, 1);
	CHECK(!waiting_tell(&w, 5));
	waiting_push(&w, 0, 1);
	waiting_push(&w, 1, 1);
	expect_woken(0);

	/* Four can take something, and those who wait for one partition look for themselves. */
	w.queue->flags = 0;
	qc_wake_resumed(w.st, w.group);
	CHECK_U64(waiting_unlock(&w), 6);
	expect_latches(0, 6);
	CHECK(waiting_pop(&w, 3, 1, 1, false) != 0);
	CHECK(waiting_pop(&w, 4, 0, 1, false) != 0);

	/* Paused again before the others have come: they wait on, and nobody is woken in their place. */
	w.queue->flags = QC_QUEUE_NO_POP;
	CHECK(!waiting_tell(&w, 5));
	list(0, 3, ANY, 1);
	waiting_pass(&w, QC_CLAIM_US);
	CHECK_U64(waiting_unlock(&w), 0);
	waiting_end(&w);
}

static void
a_group_that_has_not_looked(void)
{
	QcStr		name = {(const uint8_t *) "g", 1};
	uint64_t	asked[QC_POP_UNSCANNED_MAX];
	uint32_t	nasked;

	waiting_begin(&w);
	waiting_push(&w, 1, 1);
	waiting_push(&w, 2, 1);
	waiting_push(&w, 0, 2);
	w.group = qc_group_make(w.st, w.queue, 7, &name, QC_START_OLDEST, 0, false);
	qc_group_open(w.st, w.group);
	CHECK_U64(w.group->unscanned, 4);

	/* One looks. */
	CHECK(waiting_tell(&w, 0));
	CHECK(!waiting_tell(&w, 1));
	CHECK(!waiting_tell(&w, 2));
	CHECK_U64(waiting_unlock(&w), 0);
	qc_wait_end(w.st, 0);
	CHECK_U64(waiting_unlock(&w), 1);
	expect_latches(1, 1);
	CHECK(waiting_tell(&w, 1));

	/* What it finds wakes the others. */
	list(3, 4, ANY, 1);
	CHECK(qc_mem_reserve(&w.st->mem, QC_CLASS_CURSOR, WAITING_PARTITIONS, QC_URGENCY_DELIVERS));
	(void) qc_group_scan(w.st, w.group, asked, &nasked);
	CHECK_U64(nasked, 0);
	CHECK_U64(w.group->unscanned, 0);
	CHECK_U64(waiting_unlock(&w), 3);
	expect_latches(2, 3);
	waiting_end(&w);
}

static void
a_dropped_queue_wakes_all(void)
{
	waiting_begin(&w);
	waiting_push(&w, 0, 1);
	CHECK(waiting_tell(&w, 0));
	list(1, 3, 1, 1);
	for (uint32_t i = 4; i < 9; i++)
		CHECK(!waiting_tell(&w, i));
	waiting_drop(&w);
	CHECK_U64(waiting_unlock(&w), 8);
	expect_latches(1, 8);
	CHECK_U64(w.group->nlisted + w.group->nclaims, 0);
	for (uint32_t i = 0; i < WAITING_PROCESSES; i++)
	{
		qc_wait_end(w.st, i);
		CHECK_U64(qc_waiter(w.st, i)->group, 0);
	}
	waiting_end(&w);
}

/* ---- anything in any order ---- */

#define OPEN_MAX	4
#define HELD_MAX	40
#define READY_MAX	20			/* most of the time somebody waits */
#define STEPS		10000

/* What a process is doing. */
typedef struct Process
{
	bool		waits;
	bool		tells;			/* queue_wait, otherwise queue_pop */
	uint32_t	partition;
	uint32_t	batch;
} Process;

typedef struct Chaos
{
	uint64_t	random;
	Process		processes[WAITING_PROCESSES];
	uint64_t	open[OPEN_MAX];
	uint64_t	held[HELD_MAX];
} Chaos;

static uint32_t
below(Chaos *chaos, uint32_t bound)
{
	return (uint32_t) sim_random_below(&chaos->random, bound);
}

/* A lease to answer later; one that is in the way is acknowledged. */
static void
keep(Chaos *chaos, uint64_t lease)
{
	uint64_t   *place = &chaos->held[below(chaos, HELD_MAX)];

	if (*place != 0 && qc_lease_by_id(w.st, *place) != NULL)
		waiting_ack(&w, *place);
	*place = lease;
}

/* One step of a process that is awake. */
static void
look(Chaos *chaos, uint32_t i, bool may_list)
{
	Process    *p = &chaos->processes[i];
	uint64_t	lease;

	w.latch[i] = false;
	if (p->tells && may_list)
		p->waits = !waiting_tell(&w, i);
	else
	{
		lease = waiting_pop(&w, i, p->partition, p->batch, may_list && !p->tells);
		p->waits = may_list && lease == 0;
		if (lease != 0)
			keep(chaos, lease);

		/* Or it would look again and again. */
		else if (p->waits)
			CHECK_U64(qc_waiter(w.st, i)->state, QC_WAITER_LISTED);
	}
}

static void
process_step(Chaos *chaos)
{
	uint32_t	i = below(chaos, WAITING_PROCESSES);
	Process    *p = &chaos->processes[i];

	if (p->waits && w.latch[i])
		look(chaos, i, true);
	else if (p->waits)
	{
		/* Time over, cancelled, terminated. */
		if (below(chaos, 4) != 0)
			return;
		if (below(chaos, 2) == 0)
			look(chaos, i, false);
		else
			qc_wait_end(w.st, i);
		p->waits = false;
	}
	else
	{
		p->tells = below(chaos, 3) == 0;
		p->partition = below(chaos, 3) != 0 ? ANY : below(chaos, WAITING_PARTITIONS);
		p->batch = 1 + below(chaos, 4);
		look(chaos, i, below(chaos, 4) != 0);
	}
}

static void
message_step(Chaos *chaos)
{
	uint32_t	partition = below(chaos, WAITING_PARTITIONS);
	uint64_t   *open = &chaos->open[below(chaos, OPEN_MAX)];
	uint64_t   *held = &chaos->held[below(chaos, HELD_MAX)];

	switch (below(chaos, 6))
	{
		case 0:
			if (w.group->nready < READY_MAX)
				waiting_push(&w, partition, 1 + below(chaos, 3));
			break;
		case 1:
			if (*open != 0)
				waiting_settle(&w, *open, below(chaos, 3) != 0);
			*open = *open != 0 ? 0 : waiting_push_open(&w, partition, 1 + below(chaos, 3));
			break;
		case 2:
		case 3:
			if (*held != 0 && qc_lease_by_id(w.st, *held) != NULL)
				waiting_ack(&w, *held);
			*held = 0;
			break;
		case 4:
			if (*held != 0 && qc_lease_by_id(w.st, *held) != NULL)
				waiting_nack(&w, *held, below(chaos, 2) == 0 ? 0 : below(chaos, 1000000));
			*held = 0;
			break;
		default:
			waiting_pass(&w, below(chaos, 20) == 0 ? 61000000 : below(chaos, 30000));
	}
}

/* Everybody who was woken does his part, those who were told pop; then nothing that can be taken has a waiter left. */
static void
come_to_rest(Chaos *chaos)
{
	for (uint32_t i = 0; i < OPEN_MAX; i++)
	{
		if (chaos->open[i] != 0)
			waiting_settle(&w, chaos->open[i], true);
		chaos->open[i] = 0;
	}
	(void) waiting_unlock(&w);
	for (uint32_t round = 0; round < 400; round++)
	{
		for (uint32_t i = 0; i < WAITING_PROCESSES; i++)
		{
			if (chaos->processes[i].waits && w.latch[i])
				look(chaos, i, true);
			else if (qc_waiter(w.st, i)->state == QC_WAITER_TOLD && (round & 1))
				look(chaos, i, false);
			(void) waiting_unlock(&w);
		}
		waiting_pass(&w, QC_CLAIM_US / 2);
		(void) waiting_unlock(&w);
	}
}

static void
chaos_of(const void *seed)
{
	Chaos		chaos = {.random = *(const uint64_t *) seed};
	const char *broken = NULL;

	waiting_begin(&w);
	for (uint32_t i = 0; i < STEPS && broken == NULL; i++)
	{
		if (below(&chaos, 2) == 0)
			process_step(&chaos);
		else
			message_step(&chaos);
		(void) waiting_unlock(&w);
		broken = waiting_check(&w);
		if (broken != NULL)
			printf("# step %u\n", i);
	}
	CHECK_STR(broken == NULL ? "" : broken, "");
	come_to_rest(&chaos);
	broken = waiting_check(&w);
	CHECK_STR(broken == NULL ? "" : broken, "");

	/* No claim is left that could hide what is deliverable from who waits for anything. */
	CHECK_U64(w.group->nclaims, 0);
	CHECK(w.group->waiters.head == 0 || w.group->ready.head == 0);
	waiting_end(&w);
}

int
main(void)
{
	UNIT_RUN(each_message_wakes_one);
	UNIT_RUN(who_takes_many_is_one);
	UNIT_RUN(an_ordered_partition_wakes_one);
	UNIT_RUN(what_is_given_back_wakes);
	UNIT_RUN(only_what_is_visible_wakes);
	UNIT_RUN(waiters_for_one_partition);
	UNIT_RUN(an_unused_wake_up_is_passed_on);
	UNIT_RUN(a_claim_ends_in_time);
	UNIT_RUN(who_is_told);
	UNIT_RUN(pops_elsewhere_end_claims_of_the_told);
	UNIT_RUN(a_paused_queue_wakes_nobody);
	UNIT_RUN(a_group_that_has_not_looked);
	UNIT_RUN(a_dropped_queue_wakes_all);
	for (uint64_t seed = 1; seed <= 20; seed++)
	{
		char		name[40];

		(void) snprintf(name, sizeof(name), "chaos_seed_%u", (unsigned) seed);
		unit_run_with(name, chaos_of, &seed);
	}
	return unit_end();
}
