/*
 * test_room.c
 *		Room in the ring and in the logs: credits that stand for long hold up nobody.
 */
#include "fixture.h"

#include <stdlib.h>

#define RING		4096
#define HELD		500
#define RELEASES	40			/* per held entry */
#define CLOCK		2000000

/* ---- the ring alone ---- */

/* An empty ring has room for the largest entry wherever its head stands. */
static void
test_empty_ring(void)
{
	QcRing	   *ring = qc_ring_init(malloc(qc_ring_block_size(RING)), RING, 0);

	for (uint64_t at = 0; at <= 2 * RING; at += 16)
	{
		atomic_store(&ring->head, at);
		atomic_store(&ring->written, at);
		for (uint64_t need = 32; need <= qc_ring_need_max(ring); need += 16)
			CHECK(qc_ring_has_room(ring, need));
	}
	free(ring);
}

/* No entry is overwritten before it is written out, however sizes and the end of the buffer meet. */
static void
test_ring_keeps_entries(void)
{
	QcRing	   *ring = qc_ring_init(malloc(qc_ring_block_size(RING)), RING, 0);
	QcRingEntry *entries[RING / 32];
	uint64_t	ends[RING / 32];
	uint32_t	first = 0;
	uint32_t	next = 0;
	uint32_t	refused = 0;

	for (uint64_t seq = 1; seq <= 20000; seq++)
	{
		uint64_t	need = 32 + seq * 7919 % (RING / 4 / 16 - 1) * 16;

		/* Writing out the oldest one makes room in the end. */
		while (!qc_ring_has_room(ring, need))
		{
			refused++;
			if (!CHECK(first < next))
				return;
			CHECK_U64(entries[first % (RING / 32)]->seq, seq - (next - first));
			atomic_store(&ring->written, ends[first % (RING / 32)]);
			first++;
		}
		entries[next % (RING / 32)] = qc_ring_take(ring, need, seq, 0);
		ends[next % (RING / 32)] = atomic_load(&ring->head);
		CHECK(ends[next % (RING / 32)] - atomic_load(&ring->written) <= RING);
		next++;
	}
	CHECK(refused > 1000);
	free(ring);
}

/* ---- standing credits ---- */

typedef struct Held
{
	QcSmallPlan small;
	uint8_t		buffer[2048];
} Held;

static size_t
held_effects(void)
{
	QcRelease	release = {0};

	return RELEASES * qc_effect_size(QC_EFFECT_RELEASE, &release, 0);
}

/* Take credit, making what lacks; an empty ring must not lack anything. */
static bool
take_credit(QcPlan *plan)
{
	for (;;)
	{
		QcLack		lack;
		QcExtend	extend;
		QcStatus	status = qc_plan_credit(run.st, run.ring, plan, run.r.segment_size, &lack,
											&extend, &run.err);

		if (status != QC_BUSY)
			return CHECK_U64(status, QC_OK);
		if (lack == QC_LACK_LOG)
			status = qc_log_extend_io(run.r.files, &extend, &run.err);
		else if (CHECK(atomic_load(&run.ring->written) < atomic_load(&run.ring->head)))
			status = qc_ring_write(run.st, run.ring, run.r.files, &run.err);
		if (!CHECK_U64(status, QC_OK))
			return false;
		if (lack == QC_LACK_LOG)
			qc_log_extended(run.st, &extend, run.r.segment_size);
	}
}

static void
log_plan(QcPlan *plan)
{
	if (!qc_plan_has_room(run.ring, plan))
		CHECK_U64(qc_ring_write(run.st, run.ring, run.r.files, &run.err), QC_OK);
	CHECK(qc_plan_has_room(run.ring, plan));
	qc_plan_reserve(run.st, run.ring, plan, run.r.segment_size, CLOCK, CLOCK);
	CHECK_U64(qc_plan_fill(run.st, run.ring, plan, run.r.files, &run.err), QC_OK);
}

/* Log releases of leases that do not exist: an entry that changes nothing. */
static void
use_held(Held *held, uint64_t lease)
{
	QcWriter	w = qc_plan_small_writer(&held->small);

	for (int i = 0; i < RELEASES; i++)
	{
		QcRelease	release = {.lease = lease, .reason = QC_RELEASE_ABORT, .messages = UINT32_MAX};

		qc_effect_put(&w, QC_EFFECT_RELEASE, &release, 0);
	}
	qc_plan_small_done(&held->small, &w, RELEASES);
	log_plan(&held->small.plan);
}

static void
push_one(void)
{
	Held		other;
	QcAborted	aborted = {101, qc_partition_by_id(run.st, 101)->next, 1};
	QcWriter	w;

	qc_plan_small(&other.small, other.buffer, qc_effect_size(QC_EFFECT_ABORTED, &aborted, 0));
	other.small.plan.needs.npending = 1;
	if (!take_credit(&other.small.plan))
		return;
	w = qc_plan_small_writer(&other.small);
	qc_effect_put(&w, QC_EFFECT_ABORTED, &aborted, 0);
	qc_plan_small_done(&other.small, &w, 1);
	log_plan(&other.small.plan);
}

/* Credits for many times what the ring holds: others log meanwhile, and in the end each one is used. */
static void
test_standing_credits(void)
{
	Held	   *held = malloc(HELD * sizeof(Held));
	uint64_t	promised = 0;
	uint64_t	seq;

	fixture_begin();
	if (run_ok(&run, &hand, &server, NULL))
	{
		seq = run.st->seq;
		for (int i = 0; i < HELD; i++)
		{
			qc_plan_small(&held[i].small, held[i].buffer, held_effects());
			if (!take_credit(&held[i].small.plan))
				return;
			promised += held[i].small.plan.ring_need;
			push_one();
		}
		CHECK(promised > 8 * run.ring->size);
		CHECK_U64(run.st->seq, seq + HELD);

		/* In any order; some are given back. */
		for (int i = 0; i < HELD; i++)
		{
			Held	   *one = &held[i * 7 % HELD];

			if (i % 5 == 0)
				qc_plan_uncredit(run.st, &one->small.plan);
			else
				use_held(one, (uint64_t) i + 1);
		}
		CHECK_U64(qc_log_by_id(run.st, 0)->credit, 0);
		CHECK_U64(qc_ring_write(run.st, run.ring, run.r.files, &run.err), QC_OK);
		CHECK_U64(atomic_load(&run.ring->written_seq), seq + HELD + HELD / 5 * 4);
		hand_sync(&hand);
		run_end(&run);
		if (run_ok(&run, &hand, &server, NULL))
		{
			CHECK_U64(run.st->seq, seq + HELD + HELD / 5 * 4);
			CHECK_U64(qc_partition_by_id(run.st, 101)->next, HELD);
		}
	}
	free(held);
	fixture_end();
}

/* What fits no log file is refused when it asks for credit. */
static void
test_too_large(void)
{
	Held	   *held = malloc(sizeof(Held));
	QcLack		lack;
	QcExtend	extend;

	fixture_begin();
	if (run_ok(&run, &hand, &server, NULL))
	{
		qc_plan_small(&held->small, held->buffer, run.r.segment_size / 2);
		CHECK_U64(qc_plan_credit(run.st, run.ring, &held->small.plan, run.r.segment_size, &lack,
								 &extend, &run.err), QC_LIMIT);
		CHECK_STR(run.err.text, "log entry is larger than half a log file");
		CHECK(!held->small.plan.credited);
		CHECK_U64(qc_log_by_id(run.st, 0)->credit, 0);
	}
	free(held);
	fixture_end();
}

int
main(void)
{
	UNIT_RUN(test_empty_ring);
	UNIT_RUN(test_ring_keeps_entries);
	UNIT_RUN(test_standing_credits);
	UNIT_RUN(test_too_large);
	return unit_end();
}
