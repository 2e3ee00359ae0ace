/*
 * test_delay.c
 *		Delayed messages (qc_delay.h): their timers, their order, clocks that are set, firing, cancelling, checkpoints.
 */
#include "machine.h"

#include "qc_delay.h"
#include "qc_timer.h"
#include "unit.h"

#define SECOND	INT64_C(1000000)
#define TARGET	101				/* default partition of queue 1 */
#define LANE	500
#define DUE_MAX 64

static Machine m;
static QcDelayed due[DUE_MAX];

static void
begin(void)
{
	machine_begin(&m);
	m.st->wall_offset = m.now - m.monotonic;
	machine_queue(&m, 1, NULL);
	machine_partition(&m, 1, LANE, "", QC_LANE_DELAY);
}

/* Push count messages that are due in so many microseconds; the entry stays open. */
static QcOpen *
delay(uint32_t count, int64_t in)
{
	machine_op_delay(&m, LANE, 1, count, TARGET, m.now + in);
	return machine_log(&m, 0, false, NULL);
}

static void
delay_settled(uint32_t count, int64_t in)
{
	machine_settle(&m, delay(count, in), true);
}

/* Both clocks go on. */
static void
go_on(int64_t us)
{
	uint64_t	expired[1];

	m.now += us;
	m.monotonic += us;
	(void) qc_timers_run(m.st, m.monotonic, expired, 1);
}

static uint32_t
ndue(void)
{
	return qc_delay_next(m.st, due, DUE_MAX);
}

/* Move the first n that are due, as the timer worker does. */
static void
fire(uint32_t n)
{
	QcFire		effect = {.lane = LANE};
	QcFireItem	items[DUE_MAX];

	(void) ndue();
	for (uint32_t i = 0; i < n; i++)
	{
		items[i] = (QcFireItem)
		{
			.position = due[i].position
		};
		machine_op_push(&m, due[i].target, 1, 1);
	}
	machine_op_effect(&m, QC_EFFECT_FIRE, &effect, items, sizeof(items[0]), n);
	(void) machine_log(&m, 0, true, NULL);
}

static uint32_t
nlane(void)
{
	return qc_partition_by_id(m.st, LANE)->nitems;
}

static void
test_due(void)
{
	begin();
	delay_settled(1, 3 * SECOND);
	delay_settled(2, SECOND);
	CHECK_U64(nlane(), 3);
	CHECK_U64(m.st->ndelayed, 3);
	CHECK_U64(ndue(), 0);
	go_on(SECOND - 20000);
	CHECK_U64(ndue(), 0);
	go_on(30000);
	CHECK_U64(ndue(), 2);
	CHECK_U64(due[0].position, 1);
	CHECK_U64(due[1].position, 2);
	CHECK_U64(due[0].target, TARGET);
	CHECK_U64(due[0].queue, 1);
	fire(2);
	CHECK_U64(nlane(), 1);
	CHECK_U64(ndue(), 0);
	CHECK_U64(qc_partition_by_id(m.st, TARGET)->stable, 2);
	go_on(2 * SECOND);
	CHECK_U64(ndue(), 1);
	fire(1);
	CHECK_U64(m.st->ndelayed, 0);
	CHECK_U64(m.st->ntimers, 0);
	CHECK_U64(m.st->lane_items.count, 0);
	CHECK_U64(qc_queue_by_id(m.st, 1)->pushed, 3);
	machine_end(&m);
}

/* Due times within one tick of the wheel, pushed in another order. */
static void
test_order(void)
{
	static const int64_t in[] = {1009000, 1002000, 1005000, 1002000, 1001000};
	static const uint64_t order[] = {4, 1, 3, 2, 0};

	begin();
	for (int i = 0; i < 5; i++)
		delay_settled(1, in[i]);
	go_on(2 * SECOND);
	CHECK_U64(ndue(), 5);
	for (int i = 0; i < 5; i++)
		CHECK_U64(due[i].position, order[i]);
	machine_end(&m);
}

/* Nothing waits before its entry is settled, and nothing is left of one that was undone. */
static void
test_open(void)
{
	QcOpen	   *open;
	QcOpen	   *undone;

	begin();
	open = delay(2, SECOND);
	undone = delay(3, SECOND);
	go_on(2 * SECOND);
	CHECK_U64(ndue(), 0);
	CHECK_U64(m.st->ndelayed, 0);
	machine_settle(&m, undone, false);
	machine_settle(&m, open, true);
	go_on(20000);
	CHECK_U64(ndue(), 2);
	CHECK_U64(m.st->lane_items.count, 2);
	machine_end(&m);
}

static void
test_cancel(void)
{
	QcCancel	cancel = {.lane = LANE, .position = 0};

	begin();
	delay_settled(2, SECOND);
	CHECK(qc_delay_waits(m.st, LANE, 0));
	machine_op_effect(&m, QC_EFFECT_CANCEL, &cancel, NULL, 0, 0);
	(void) machine_log(&m, 0, true, NULL);
	CHECK(!qc_delay_waits(m.st, LANE, 0));
	CHECK(qc_delay_waits(m.st, LANE, 1));
	go_on(2 * SECOND);
	CHECK_U64(ndue(), 1);
	cancel.position = 1;		/* due, not moved yet */
	machine_op_effect(&m, QC_EFFECT_CANCEL, &cancel, NULL, 0, 0);
	(void) machine_log(&m, 0, true, NULL);
	CHECK_U64(ndue(), 0);
	CHECK_U64(m.st->ndelayed, 0);
	CHECK_U64(m.st->due.head, 0);
	machine_end(&m);
}

/* The wall clock is set: forward, and messages are due at once; back, and they wait for as long as they should. */
static void
test_clock(void)
{
	begin();
	for (int i = 0; i < 10; i++)
		delay_settled(1, 3600 * SECOND + i);
	m.now += 1800 * SECOND;
	CHECK(qc_delay_clock(m.st, m.now, m.monotonic, 5));
	while (qc_delay_clock(m.st, m.now, m.monotonic, 5))
		 /* a few at a time */ ;
	go_on(1800 * SECOND + 20000);
	CHECK_U64(ndue(), 10);
	fire(10);
	delay_settled(1, 10 * SECOND);
	m.now -= 3600 * SECOND;		/* not noticed before it runs out */
	go_on(11 * SECOND);
	while (qc_delay_clock(m.st, m.now, m.monotonic, 5))
		 /* now it is */ ;
	m.now += 3600 * SECOND;
	CHECK_U64(ndue(), 1);
	fire(1);
	while (qc_delay_clock(m.st, m.now, m.monotonic, 5))
		 /* and the clock is right again */ ;
	delay_settled(1, 10 * SECOND);
	m.now -= 3600 * SECOND;
	while (qc_delay_clock(m.st, m.now, m.monotonic, 5))
		 /* noticed in time */ ;
	go_on(11 * SECOND);
	CHECK_U64(ndue(), 0);
	go_on(3600 * SECOND);
	CHECK_U64(ndue(), 1);

	/* A little drift arms nothing anew. */
	m.now += 1000;
	CHECK(!qc_delay_clock(m.st, m.now, m.monotonic, 5));
	machine_end(&m);
}

/* What a checkpoint holds goes on waiting; what was due meanwhile is due at once. */
static void
test_reload(void)
{
	QcOpen	   *open;

	begin();
	delay_settled(2, SECOND);
	delay_settled(1, 100 * SECOND);
	machine_reload(&m);
	CHECK_U64(m.st->ndelayed, 3);
	m.now += 50 * SECOND;
	machine_push(&m, 1, TARGET, 1);
	machine_reload(&m);
	go_on(20000);
	CHECK_U64(ndue(), 2);
	CHECK_U64(due[0].target, TARGET);
	fire(1);
	open = delay(1, SECOND);
	machine_reload(&m);
	open = qc_open_by_seq(m.st, m.st->seq);
	CHECK_U64(m.st->ndelayed, 2);
	if (CHECK(open != NULL))
		machine_settle(&m, open, true);
	CHECK_U64(m.st->ndelayed, 3);
	go_on(200 * SECOND);
	CHECK_U64(ndue(), 3);
	machine_end(&m);
}

int
main(void)
{
	UNIT_RUN(test_due);
	UNIT_RUN(test_order);
	UNIT_RUN(test_open);
	UNIT_RUN(test_cancel);
	UNIT_RUN(test_clock);
	UNIT_RUN(test_reload);
	return unit_end();
}
