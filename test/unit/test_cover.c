/*
 * test_cover.c
 *		Which positions have been seen: against a model of bits, in small and large arrays.
 */
#include "../sim/sim_random.h"
#include "qc_cover.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#define PARTITIONS	4
#define POSITIONS	300

static bool model[PARTITIONS][POSITIONS + 1];

static void
expect_gaps(const QcCover *cover, uint64_t partition)
{
	for (uint64_t first = 0; first <= POSITIONS; first += 7)
	{
		uint64_t	end = POSITIONS;
		uint64_t	gap = first;
		uint64_t	to;
		uint64_t	want_to;
		uint64_t	got_to;

		while (gap < end && model[partition][gap])
			gap++;
		want_to = gap;
		while (want_to < end && !model[partition][want_to])
			want_to++;
		to = qc_cover_gap(cover, partition + 1, first, end, &got_to);
		if (first < end)
			CHECK_U64(to, gap);
		if (gap < end)
			CHECK_U64(got_to, want_to);
	}
}

static void
test_against_a_model(void)
{
	uint64_t	random = 7;

	for (int round = 0; round < 200; round++)
	{
		QcCover		cover = {0};
		uint64_t	n = sim_random_below(&random, 400);

		memset(model, 0, sizeof(model));
		for (uint64_t i = 0; i < n; i++)
		{
			uint64_t	partition = sim_random_below(&random, PARTITIONS);
			uint64_t	first = sim_random_below(&random, POSITIONS);
			uint64_t	end = first + 1 + sim_random_below(&random, 9);

			end = end > POSITIONS ? POSITIONS : end;
			for (uint64_t p = first; p < end; p++)
				model[partition][p] = true;
			while (!qc_cover_add(&cover, partition + 1, first, end))
			{
				cover.cap = cover.cap * 2 + 5;
				cover.ranges = realloc(cover.ranges, cover.cap * sizeof(QcCoverRange));
			}
		}
		qc_cover_sort(&cover);
		for (uint64_t partition = 0; partition < PARTITIONS; partition++)
			expect_gaps(&cover, partition);
		free(cover.ranges);
	}
}

/* Messages in order, of many partitions in turn: as few ranges as partitions. */
static void
test_stays_small(void)
{
	QcCoverRange ranges[64];
	QcCover		cover = {.ranges = ranges, .cap = 64};
	uint64_t	to;

	for (uint64_t p = 0; p < 10000; p++)
		CHECK(qc_cover_add(&cover, p % 20, p / 20, p / 20 + 1));
	qc_cover_sort(&cover);
	CHECK_U64(cover.n, 20);
	CHECK_U64(qc_cover_gap(&cover, 19, 0, 501, &to), 500);
	CHECK_U64(to, 501);
	CHECK_U64(qc_cover_gap(&cover, 20, 3, 5, &to), 3);
}

int
main(void)
{
	UNIT_RUN(test_against_a_model);
	UNIT_RUN(test_stays_small);
	return unit_end();
}
