/*
 * test_warm.c
 *		Filling the memory index after a start: everything below the mark is found in memory again, and there is no hole.
 */
#include "fixture.h"
#include "qc_index.h"
#include "qc_retain.h"
#include "qc_warm.h"

#define RECORDS	1000			/* of two messages each, about 100 bytes: more than 64 KiB */
#define MESSAGES (RECORDS * 2)

static Rows rows;
static QcWarm warm;

/* Queue 1 with many records, all of them below the mark of a checkpoint, opened again. */
static bool
begin(uint32_t records, uint64_t index_bytes)
{
	RunOptions	options = {.rows = &rows, .index_bytes = index_bytes};

	fixture_begin();
	for (uint32_t i = 0; i < records; i++)
		(void) hand_solo(&hand, 1, 3 + i, 101, i * 2, 2);
	hand_sync(&hand);
	if (!run_ok(&run, &hand, &server, NULL))
		return false;
	rows_take(&rows, run.st);
	run_end(&run);
	return run_ok(&run, &hand, &server, &options);
}

static void
end(void)
{
	qc_warm_end(&warm);
	rows_free(&rows);
	fixture_end();
}

static QcLog *
its_log(void)
{
	return qc_log_by_id(run.st, 1);
}

/* Is the message's record in the memory index, as a record of the file that begins with it or the one before? */
static bool
in_memory(uint64_t position)
{
	QcLocation	location;
	QcRef		hint = 0;

	return qc_index_find(run.st, qc_partition_by_id(run.st, 101), position, &hint, &location) &&
		location.log == 1 && location.file == 1 && location.first == position / 2 * 2 && location.count == 2;
}

/* Exactly the messages from `first` on are in memory, and all of them can be read. */
static void
expect_from(uint64_t first)
{
	uint64_t	wrong = 0;

	for (uint64_t p = 0; p < MESSAGES; p++)
		wrong += in_memory(p) != (p >= first);
	CHECK_U64(wrong, 0);
	expect_readable(&run, 1, 0, MESSAGES);
}

static bool
load(void)
{
	return CHECK(qc_warm_wanted(its_log(), &warm)) &&
		CHECK_U64(qc_warm_load(&warm, &run.cache, &run.err), QC_OK) &&
		CHECK_U64(warm.left, RECORDS);
}

static void
test_all_of_it(void)
{
	int			steps = 0;

	if (begin(RECORDS, 0))
	{
		CHECK(!in_memory(MESSAGES - 1));
		if (load())
		{
			while (qc_warm_step(run.st, &warm, 64))
				steps++;
			CHECK_U64(steps, (RECORDS - 1) / 64);
			expect_from(0);
			CHECK_U64(its_log()->nindexed, RECORDS);
			CHECK_U64(its_log()->index_file, 1);
			CHECK(!qc_warm_wanted(its_log(), &(QcWarm) {0}));
		}
	}
	end();
}

/* Between the steps entries are evicted: what would leave a hole is not added. */
static void
test_eviction_ends_it(void)
{
	if (begin(RECORDS, 0) && load())
	{
		CHECK(qc_warm_step(run.st, &warm, 100));
		expect_from(MESSAGES - 200);
		CHECK(qc_index_evict(run.st, 30));
		CHECK(!qc_warm_step(run.st, &warm, 100));
		expect_from(MESSAGES - 140);
	}
	end();
}

/* Half of the index memory stays free for what comes. */
static void
test_half_of_the_memory(void)
{
	uint64_t	used;
	uint64_t	limit;

	if (begin(RECORDS, QC_PAGE_SIZE) && load())
	{
		while (qc_warm_step(run.st, &warm, 1))
			;
		qc_mem_usage(&run.st->mem, QC_BUDGET_INDEX, &used, &limit);
		CHECK(used >= limit / 2 && used < limit / 2 + 2 * sizeof(QcIndexEntry));
		expect_from(MESSAGES - 2 * (uint64_t) its_log()->nindexed);
	}
	end();
}

/* What retention has removed takes no memory. */
static void
test_removed_ones_are_left_out(void)
{
	if (begin(RECORDS, 0) && load())
	{
		qc_retain_below(run.st, qc_partition_by_id(run.st, 101), 1001);
		while (qc_warm_step(run.st, &warm, 64))
			;
		CHECK_U64(its_log()->nindexed, RECORDS - 500);
		expect_from(1000);
	}
	end();
}

/* A file that a reader goes through at once is not worth it. */
static void
test_small_file(void)
{
	if (begin(10, 0))
		CHECK(!qc_warm_wanted(its_log(), &(QcWarm) {0}));
	end();
}

int
main(void)
{
	UNIT_RUN(test_all_of_it);
	UNIT_RUN(test_eviction_ends_it);
	UNIT_RUN(test_half_of_the_memory);
	UNIT_RUN(test_removed_ones_are_left_out);
	UNIT_RUN(test_small_file);
	return unit_end();
}
