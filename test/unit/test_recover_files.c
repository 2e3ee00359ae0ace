/*
 * test_recover_files.c
 *		Recovery and the files of a log: where replay begins, what opening costs, empty files, a log that is too short, bytes
 *		that stand in the page cache only.
 */
#include "fixture.h"

#include "qc_catalog.h"

#include <string.h>

/* Nothing of the process is left. */
static void
restart(void)
{
	qc_files_init(&hand.files, hand.io, QC_LAYOUT_FLAT);
}

/*
 * The process is killed with records written and not synced.  They are read back and served; so they have been synced, and
 * the power failure that follows takes none of them.
 */
static void
test_unsynced_after_kill(void)
{
	static const SimLoss losses[] = {SIM_LOSE_ALL, SIM_RANDOM};
	uint64_t	digest;

	for (int i = 0; i < 2; i++)
	{
		fixture_begin();
		hand_sync(&hand);
		put_four();
		hand_roll(&hand, 1);
		(void) hand_solo(&hand, 1, 7, 101, 6, 2);
		sim_disk_kill(hand.disk);
		restart();
		if (run_ok(&run, &hand, &server, NULL))
		{
			CHECK_U64(run.r.replayed, 7);
			CHECK_U64(qc_ring_durable(run.ring), 7);
			digest = state_digest(run.st);
			run_end(&run);
			sim_disk_reboot(hand.disk, losses[i], losses[i]);
			restart();
			CHECK(run_ok(&run, &hand, &server, NULL));
			CHECK(!run.r.changed);
			CHECK_U64(state_digest(run.st), digest);
			expect_readable(&run, 1, 0, 8);
		}
		fixture_end();
	}
}

/*
 * A log that ends, at the boundary of a record, below what another one says was durable.  The other log is longer than this
 * one ever was: the length of the longest says nothing.
 */
static void
test_log_ends_below_durable(void)
{
	for (int how = 0; how < 2; how++)
	{
		QcHandle	handle;
		uint64_t	tail;

		fixture_begin();
		put_four();
		tail = hand_log(&hand, 1)->tail;
		(void) hand_solo(&hand, 1, 7, 101, 6, 1);
		hand.durable = 7;
		for (uint64_t seq = 8; seq < 40; seq++)
			(void) hand_solo(&hand, 2, seq, 102, seq - 6, 1);
		CHECK_U64(qc_files_get(&hand.files, 1, 1, true, &handle, &run.err), QC_OK);
		CHECK_U64(hand.io->truncate(hand.io->context, handle, tail), 0);
		if (how == 1)
			CHECK_U64(hand.io->truncate(hand.io->context, handle, HAND_ALLOCATED), 0);
		run_refused(&hand, &server, NULL, QC_DAMAGED, NULL, 0);
		hand_end(&hand);
	}
}

/* A large record may have left an empty file behind: it is passed over, and what follows is replayed and found. */
static void
test_empty_file_between(void)
{
	fixture_begin();
	put_four();
	hand_roll(&hand, 1);
	hand_roll(&hand, 1);
	(void) hand_solo(&hand, 1, 7, 101, 6, 2);
	hand_roll(&hand, 1);
	hand_roll(&hand, 1);
	(void) hand_solo(&hand, 1, 8, 101, 8, 2);
	hand_sync(&hand);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK(!run.r.changed);
		CHECK_U64(qc_log_by_id(run.st, 1)->file, 5);
		expect_positions(&run, 1, 10, 10);
		expect_readable(&run, 1, 0, 10);
		expect_stable(NULL);
	}
	fixture_end();
}

/* Replay begins at the checkpoint's mark, in an older file, and goes through all that follow. */
static void
test_replay_from_mark_over_files(void)
{
	Rows		rows = {0};
	RunOptions	options = {.rows = &rows};
	uint64_t	seq = 7;

	fixture_begin();
	put_four();
	if (run_ok(&run, &hand, &server, NULL))
	{
		rows_take(&rows, run.st);
		run_end(&run);
		for (int file = 1; file <= 4; file++)
		{
			for (int i = 0; i < 3; i++, seq++)
				(void) hand_solo(&hand, 1, seq, 101, seq - 1, 1);
			if (file < 4)
				hand_roll(&hand, 1);
		}
		CHECK(run_ok(&run, &hand, &server, &options));
		CHECK_U64(run.r.mark, 6);
		CHECK_U64(run.r.replayed, 12);
		expect_positions(&run, 1, 18, 18);
		expect_readable(&run, 1, 0, 18);
		expect_stable(&options);
	}
	rows_free(&rows);
	fixture_end();
}

/* Reads and steps on the disk that opening takes when this many closed files lie below the mark. */
static void
cost_of_opening(int files, uint64_t *reads, uint64_t *steps)
{
	Rows		rows = {0};
	RunOptions	options = {.rows = &rows};
	uint64_t	seq = 7;

	fixture_begin();
	put_four();
	for (int i = 0; i < files; i++)
	{
		for (int k = 0; k < 4; k++, seq++)
			(void) hand_solo(&hand, 1, seq, 101, seq - 1, 1);
		hand_roll(&hand, 1);
	}
	(void) hand_solo(&hand, 1, seq, 101, seq - 1, 1);
	hand_sync(&hand);
	if (run_ok(&run, &hand, &server, NULL))
	{
		rows_take(&rows, run.st);
		run_end(&run);
		(void) hand_solo(&hand, 1, seq + 1, 101, seq, 1);
		qc_files_close(&hand.files);
		*reads = sim_disk_count(hand.disk, SIM_OP_READ);
		*steps = sim_disk_steps(hand.disk);
		CHECK(run_ok(&run, &hand, &server, &options));
		CHECK_U64(run.r.replayed, 1);
		*reads = sim_disk_count(hand.disk, SIM_OP_READ) - *reads;
		*steps = sim_disk_steps(hand.disk) - *steps;
	}
	rows_free(&rows);
	fixture_end();
}

/* What opening costs follows the tail, not the history. */
static void
test_cost_of_opening(void)
{
	uint64_t	reads[2] = {0};
	uint64_t	steps[2] = {0};

	cost_of_opening(1, &reads[0], &steps[0]);
	cost_of_opening(60, &reads[1], &steps[1]);
	CHECK(reads[0] > 0);
	CHECK_U64(reads[1], reads[0]);
	CHECK_U64(steps[1], steps[0]);
}

/*
 * The log of a dropped queue is gone, and with it entries that stood nowhere else.  From a checkpoint above them all is
 * well; without one the rest must be refused and not cut, in a copy as anywhere.
 */
static void
test_below_the_floor(void)
{
	Rows		rows = {0};
	RunOptions	with = {.rows = &rows, .floor = 6};
	RunOptions	without = {.floor = 6};
	RunOptions	copied = {.copied = true, .floor = 6};
	RunOptions	copied_with = {.rows = &rows, .copied = true, .floor = 6};

	fixture_begin();
	put_four();
	if (run_ok(&run, &hand, &server, NULL))
	{
		rows_take(&rows, run.st);
		run_end(&run);
		(void) hand_solo(&hand, 1, 7, 101, 6, 1);
		run_refused(&hand, &server, &without, QC_MISSING, "FLOOR", UINT64_MAX);
		run_refused(&hand, &server, &copied, QC_MISSING, "FLOOR", UINT64_MAX);
		CHECK(run_ok(&run, &hand, &server, &with));
		expect_readable(&run, 1, 0, 7);
		run_end(&run);

		/* a copy begins at its checkpoint's mark, above which nothing is required */
		CHECK(run_ok(&run, &hand, &server, &copied_with));
		CHECK_U64(run.r.mark, 6);
		expect_readable(&run, 1, 0, 7);
	}
	rows_free(&rows);
	fixture_end();
}

/*
 * A log that the checkpoint does not know any more goes at the start: not before the floor is raised, and not above a snapshot
 * that knows it to be gone, with which a start may have to begin.
 */
static void
expect_raised(uint64_t snapshot, uint64_t expected)
{
	for (uint64_t step = 0; step < 12; step++)
	{
		Rows		rows = {0};
		RunOptions	options = {.rows = &rows, .snapshot = snapshot};
		uint64_t	floor = 0;

		fixture_begin();
		put_four();
		if (run_ok(&run, &hand, &server, NULL))
		{
			rows_take(&rows, run.st);
			run_end(&run);

			/*
			 * its queue was dropped, and the server died when only the directory was left to be
			 * removed
			 */
			(void) hand_solo(&hand, 9, 2, 50, 0, 1);
			hand_sync(&hand);
			if (step > 0)
				sim_disk_crash_at(hand.disk, sim_disk_steps(hand.disk) + step, SIM_MIDDLE);
			(void) run_recovery(&run, &hand, &server, &options);
			if (sim_disk_crashed(hand.disk))
			{
				sim_disk_reboot(hand.disk, SIM_RANDOM, SIM_RANDOM);
				restart();
			}
			CHECK_U64(qc_dir_read_floor(hand.io, &floor, &run.err), QC_OK);
			CHECK(floor == expected || hand_size(&hand, "qlog/q9/r00000001.qlog") == HAND_ALLOCATED);
			CHECK(step > 0 || (floor == expected &&
							   hand_size(&hand, "qlog/q9.dead/r00000001.qlog") == HAND_ALLOCATED));
		}
		rows_free(&rows);
		fixture_end();
	}
}

static void
test_retiring_raises_the_floor(void)
{
	expect_raised(0, 6);
	expect_raised(3, 3);
	expect_raised(7, 6);

	/* entry 2 stands in it */
	expect_raised(2, 2);
	expect_raised(1, 6);
}

/* Queue 1 is dropped by entry 7 and swept; *dead: rows taken before that. */
static void
drop_first(Rows *dead)
{
	QcQueueDrop drop = {.queue = 1};

	put_four();
	hand_entry(&entry, 7, 0, 0);
	hand_effect(&entry, QC_EFFECT_QUEUE_DROP, &drop, 0);
	hand_write_entry(&hand, &entry);
	if (!run_ok(&run, &hand, &server, NULL))
		return;
	rows_take(dead, run.st);
	CHECK_U64(qc_log_by_id(run.st, 1)->nqueues, 1);
	while (qc_queue_sweep(run.st, 1000))
		;
	CHECK_U64(qc_log_by_id(run.st, 1)->nqueues, 0);
}

/*
 * A snapshot was taken when a queue was dropped and its rows were not all freed yet; then its log went, as the snapshot's mark
 * allows it.  A start with the snapshot does not miss the log, and its removal, done once more, finds nothing to do.
 */
static void
test_dead_queue_needs_no_log(void)
{
	static const uint64_t logs[] = {1};
	Rows		dead = {0};
	RunOptions	options = {.rows = &dead};

	fixture_begin();
	drop_first(&dead);
	run.st->checkpoint_seq = run.st->seq;
	CHECK_U64(qc_log_remove_next(run.st), 1);
	run_end(&run);
	CHECK_U64(qc_log_remove_files(&hand.files, logs, 1, &run.err), QC_OK);
	CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qlog"), UINT64_MAX);
	if (run_ok(&run, &hand, &server, &options))
	{
		CHECK(qc_queue_by_id(run.st, 1) == NULL);
		expect_readable(&run, 2, 0, 2);
		run.st->checkpoint_seq = run.st->seq;
		CHECK_U64(qc_log_remove_next(run.st), 1);
		CHECK_U64(qc_log_remove_files(&hand.files, logs, 1, &run.err), QC_OK);
	}
	rows_free(&dead);
	fixture_end();
}

/*
 * A queue was made and dropped between two checkpoints.	A snapshot from before still needs what stands in its log, so the
 * checkpoint knows that, and a start leaves it where it is.
 */
static void
test_dropped_log_stays_known(void)
{
	Rows		dead = {0};
	Rows		first = {0};
	RunOptions	options = {.rows = &first, .snapshot = 1};

	fixture_begin();
	drop_first(&dead);
	run_end(&run);
	if (run_ok(&run, &hand, &server, NULL))
	{
		while (qc_queue_sweep(run.st, 1000))
			;
		rows_take(&first, run.st);
		run_end(&run);
		CHECK(run_ok(&run, &hand, &server, &options));
		CHECK(qc_log_by_id(run.st, 1) != NULL);
		CHECK(hand_size(&hand, "qlog/q1/r00000001.qlog") != UINT64_MAX);

		/* with the snapshot at entry 1, whose rows are none */
		run_end(&run);
		CHECK(run_ok(&run, &hand, &server, NULL));
		CHECK_U64(run.r.replayed, 7);
	}
	rows_free(&dead);
	rows_free(&first);
	fixture_end();
}

/* The same for a log of a queue that was never there, as the transaction that made it did not commit. */
static void
test_undone_log_stays_known(void)
{
	Rows		rows = {0};
	RunOptions	options = {.rows = &rows, .snapshot = 1};

	fixture_begin();
	put_four();
	hand_entry(&entry, 7, 900, QC_ENTRY_REFERENCED);
	hand_queue(&entry, 3, "three");
	hand_push(&entry, 3, 103, 0, 2);
	hand_write_entry(&hand, &entry);
	(void) hand_solo(&hand, 1, 8, 101, 6, 1);
	for (int i = 0; i < 2 && run_ok(&run, &hand, &server, i == 0 ? NULL : &options); i++)
	{
		while (qc_queue_sweep(run.st, 1000))
			;
		CHECK(qc_queue_by_id(run.st, 3) == NULL);
		CHECK(qc_log_by_id(run.st, 3) != NULL);
		CHECK(hand_size(&hand, "qlog/q3/r00000001.qlog") != UINT64_MAX);
		if (i == 0)
			rows_take(&rows, run.st);
		run_end(&run);
	}
	CHECK(run_ok(&run, &hand, &server, NULL));
	rows_free(&rows);
	fixture_end();
}

/*
 * A snapshot notes that a log stands in its first file; the file is closed early, which no entry tells, and removed, as it holds
 * nothing from above the snapshot's mark.  That the file is missing is right only when the floor says so, and not when something
 * above the mark went with it.
 */
static void
test_closed_early_and_gone(void)
{
	static const uint64_t floors[] = {6, 5, 6};

	for (uint64_t how = 0; how < 3; how++)
	{
		Rows		rows = {0};
		RunOptions	options = {.rows = &rows, .floor = floors[how]};
		uint64_t	above = how == 2;

		fixture_begin();
		put_four();
		if (run_ok(&run, &hand, &server, NULL))
			rows_take(&rows, run.st);
		run_end(&run);
		if (above > 0)
			(void) hand_solo(&hand, 1, 7, 101, 6, 1);
		hand_roll(&hand, 1);
		(void) hand_solo(&hand, 1, 7 + above, 101, 6 + above, 1);
		hand.durable = 7 + above;
		(void) hand_solo(&hand, 2, 8 + above, 102, 2, 1);
		qc_files_forget(&hand.files, 1, 1);
		CHECK_U64(hand.io->unlink(hand.io->context, "qlog/q1/r00000001.qlog"), 0);
		if (how > 0)
			run_refused(&hand, &server, &options, QC_DAMAGED, NULL, 0);
		else if (run_ok(&run, &hand, &server, &options))
		{
			CHECK_U64(run.r.replayed, 2);
			expect_readable(&run, 1, 6, 7);
			run_end(&run);
		}
		rows_free(&rows);
		hand_end(&hand);
	}
}

/* A log file with this one message, of partition 101, and no room behind it. */
static void
put_file(uint64_t file, uint64_t seq, uint64_t position)
{
	uint8_t		bytes[QC_FILE_HEADER_SIZE + HAND_RECORD_MAX];
	QcFileHeader header = {file, seq};
	char		path[QC_PATH_MAX];
	size_t		size = hand_message(&hand, bytes + QC_FILE_HEADER_SIZE, true, seq, 101, position, 1);

	qc_file_header_encode(bytes, &header);
	qc_path_file(path, hand.files.layout, 1, file, "qlog");
	hand_make_file(&hand, path, bytes, QC_FILE_HEADER_SIZE + size);
}

/* Eight digits do not suffice any more: files are ordered by number, not by name, over the border as anywhere. */
static void
test_ninth_digit(void)
{
	fixture_begin();
	qc_files_close(&hand.files);
	CHECK_U64(hand.io->unlink(hand.io->context, "qlog/q1/r00000001.qlog"), 0);
	for (uint64_t i = 0; i < 5; i++)
		put_file(99999998 + i, 3 + i, i);
	CHECK(hand_size(&hand, "qlog/q1/r99999999.qlog") != UINT64_MAX);
	CHECK(hand_size(&hand, "qlog/q1/r100000000.qlog") != UINT64_MAX);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK_U64(run.r.end, 8);
		CHECK_U64(qc_log_by_id(run.st, 1)->file, 100000002);
		expect_positions(&run, 1, 5, 5);
		expect_readable(&run, 1, 0, 5);
		expect_stable(NULL);
	}
	fixture_end();
}

/* Ten thousand files in one log: no more are open at a time than anywhere, and each is found without asking all. */
static void
test_ten_thousand_files(void)
{
	static const uint64_t files = 10000;
	Rows		rows = {0};
	RunOptions	options = {.rows = &rows, .index_bytes = 65536};

	fixture_begin();
	qc_files_close(&hand.files);
	CHECK_U64(hand.io->unlink(hand.io->context, "qlog/q1/r00000001.qlog"), 0);
	for (uint64_t i = 0; i < files; i++)
		put_file(1 + i, 3 + i, i);
	if (run_ok(&run, &hand, &server, &(RunOptions) {.index_bytes = 65536}))
	{
		CHECK(sim_disk_handles(hand.disk) <= 2 * QC_FILES_MAX);
		expect_positions(&run, 1, files, files);
		rows_take(&rows, run.st);
		run_end(&run);
		if (run_ok(&run, &hand, &server, &options))
		{
			CHECK_U64(run.r.replayed, 0);
			for (uint64_t position = 3; position < files; position += 1999)
				expect_readable(&run, 1, position, position + 1);
			CHECK(sim_disk_handles(hand.disk) <= 2 * QC_FILES_MAX);
		}
	}
	rows_free(&rows);
	fixture_end();
}

int
main(void)
{
	UNIT_RUN(test_ninth_digit);
	UNIT_RUN(test_ten_thousand_files);
	UNIT_RUN(test_unsynced_after_kill);
	UNIT_RUN(test_log_ends_below_durable);
	UNIT_RUN(test_empty_file_between);
	UNIT_RUN(test_replay_from_mark_over_files);
	UNIT_RUN(test_cost_of_opening);
	UNIT_RUN(test_below_the_floor);
	UNIT_RUN(test_retiring_raises_the_floor);
	UNIT_RUN(test_dead_queue_needs_no_log);
	UNIT_RUN(test_dropped_log_stays_known);
	UNIT_RUN(test_undone_log_stays_known);
	UNIT_RUN(test_closed_early_and_gone);
	return unit_end();
}
