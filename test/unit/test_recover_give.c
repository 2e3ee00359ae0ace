/*
 * test_recover_give.c
 *		A start that is refused says what could be given up, and gives that up, and nothing else, when it is told to.
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "fixture_stash.h"

/* The run of messages that was reported as given up. */
static void
expect_given(int i, uint64_t partition, uint64_t first, uint64_t end)
{
	if (!CHECK(i < server.ngiven))
		return;
	CHECK_U64(server.given[i].partition, partition);
	CHECK_U64(server.given[i].first, first);
	CHECK_U64(server.given[i].end, end);
}

/* The start is refused, says that entries from seq on would have to be given up, and changes nothing. */
static void
expect_refused(const RunOptions *opts, uint64_t seq, uint64_t entries)
{
	uint64_t	digest = sim_disk_digest(hand.disk);

	CHECK_U64(run_recovery(&run, &hand, &server, opts), QC_DAMAGED);
	CHECK(run.r.refused);
	CHECK_U64(run.r.given_seq, seq);
	CHECK_U64(run.r.given_entries, entries);
	CHECK_U64(sim_disk_digest(hand.disk), digest);
	run_end(&run);
}

/* Entry 7 in the system log is damaged, 8 to 10 behind it are whole; all of it is known to have been durable. */
static uint64_t
damaged_system_log(void)
{
	uint64_t	position;

	fixture_begin();
	put_four();
	hand_entry(&entry, 7, 0, 0);
	hand_write_entry(&hand, &entry);
	position = hand_end_of(&entry, 0)->position;
	hand.durable = 7;
	(void) hand_solo(&hand, 1, 8, 101, 6, 2);
	(void) hand_solo(&hand, 2, 9, 102, 2, 1);
	hand.durable = 9;
	(void) hand_solo(&hand, 1, 10, 101, 8, 1);
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q0/r00000001.qlog", position + 55, 4), 0);
	return position;
}

static void
test_damaged_system_log(void)
{
	RunOptions	opts = {0};
	uint64_t	position = damaged_system_log();

	run_refused(&hand, &server, NULL, QC_DAMAGED, "qlog/q0/r00000001.qlog", position);
	expect_refused(NULL, 7, 4);
	CHECK_U64(server.ngiven, 2);
	expect_given(0, 101, 6, 9);
	expect_given(1, 102, 2, 3);

	/* another place than the one that was named */
	opts.give_up_seq = 8;
	expect_refused(&opts, 7, 4);
	hand_end(&hand);
}

/* Granted: the state is that before the entry, what stood behind it is kept, and the next start needs no grant. */
static void
test_granted(void)
{
	RunOptions	opts = {.give_up_seq = 7};

	(void) damaged_system_log();
	if (run_ok(&run, &hand, &server, &opts))
	{
		CHECK(!run.r.refused);
		CHECK_U64(run.r.end, 7);
		CHECK_U64(run.r.given_seq, 7);
		CHECK_U64(run.r.given_entries, 4);
		CHECK_U64(server.ngiven, 2);
		CHECK_U64(server.nepochs, 1);
		CHECK_U64(server.first_seq, 7);
		CHECK_U64(run.r.damaged_queues, 0);
		expect_positions(&run, 1, 6, 6);
		expect_positions(&run, 2, 2, 2);
		expect_readable(&run, 1, 0, 6);
		expect_readable(&run, 2, 0, 2);
		CHECK(hand_size(&hand, "qlog/q0/r00000001.qlog.cut.7") != UINT64_MAX);
		CHECK(hand_size(&hand, "qlog/q1/r00000001.qlog.cut.7") != UINT64_MAX);
		CHECK(hand_size(&hand, "qlog/q2/r00000001.qlog.cut.7") != UINT64_MAX);
		expect_stable(NULL);
	}
	fixture_end();
}

/* Power fails at each step of giving up: the next start, granted or not, comes to the same end, or is refused as before. */
static void
test_granted_and_cut_short(void)
{
	uint64_t	steps;

	(void) damaged_system_log();
	{
		RunOptions	opts = {.give_up_seq = 7};
		uint64_t	before;

		hand_sync(&hand);
		before = sim_disk_steps(hand.disk);
		(void) run_ok(&run, &hand, &server, &opts);
		steps = sim_disk_steps(hand.disk) - before;
	}
	fixture_end();
	for (uint64_t step = 1; step <= steps; step++)
	{
		RunOptions	opts = {.give_up_seq = 7};
		QcStatus	status;

		(void) damaged_system_log();
		hand_sync(&hand);
		sim_disk_crash_at(hand.disk, sim_disk_steps(hand.disk) + step, (SimPoint) (step % 3));
		(void) run_recovery(&run, &hand, &server, &opts);
		run_end(&run);
		qc_files_close(&hand.files);
		sim_disk_reboot(hand.disk, SIM_RANDOM, SIM_RANDOM);
		status = run_recovery(&run, &hand, &server, NULL);
		if (status != QC_OK)
		{
			CHECK_U64(status, QC_DAMAGED);
			CHECK_U64(run.r.given_seq, 7);
			run_end(&run);
			status = run_recovery(&run, &hand, &server, &opts);
		}
		if (CHECK_U64(status, QC_OK))
		{
			expect_positions(&run, 1, 6, 6);
			expect_readable(&run, 2, 0, 2);
		}
		fixture_end();
	}
}

/* What is durable is missing at the end: nothing but that is given up. */
static void
test_end_is_missing(void)
{
	RunOptions	opts = {.give_up_seq = 7};
	QcHandle	handle;
	uint64_t	tail;

	fixture_begin();
	put_four();
	tail = hand_log(&hand, 1)->tail;
	(void) hand_solo(&hand, 1, 7, 101, 6, 1);
	hand.durable = 7;
	(void) hand_solo(&hand, 2, 8, 102, 2, 1);
	CHECK_U64(qc_files_get(&hand.files, 1, 1, true, &handle, &run.err), QC_OK);
	CHECK_U64(hand.io->truncate(hand.io->context, handle, tail), 0);
	expect_refused(NULL, 7, 2);
	CHECK_U64(server.ngiven, 1);
	expect_given(0, 102, 2, 3);
	if (run_ok(&run, &hand, &server, &opts))
	{
		expect_positions(&run, 2, 2, 2);
		expect_readable(&run, 1, 0, 6);
		expect_stable(NULL);
	}
	fixture_end();
}

/* An entry that cannot be applied, as the state that it was made for is not this one. */
static void
test_cannot_be_applied(void)
{
	RunOptions	opts = {.give_up_seq = 7};

	fixture_begin();
	put_four();
	(void) hand_solo(&hand, 1, 7, 101, 3, 1);
	(void) hand_solo(&hand, 2, 8, 102, 2, 1);
	expect_refused(NULL, 7, 2);
	CHECK_U64(server.ngiven, 2);
	expect_given(0, 101, 3, 4);
	expect_given(1, 102, 2, 3);
	if (run_ok(&run, &hand, &server, &opts))
	{
		expect_positions(&run, 1, 6, 6);
		expect_positions(&run, 2, 2, 2);
		expect_stable(NULL);
	}
	fixture_end();
}

/* That a joint entry in front was confirmed stands in what is given up: its fate is asked for all the same. */
static void
test_confirm_is_given_up(void)
{
	QcConfirm	confirm = {.seq = 9, .timeline = 1, .lsn = 900};
	uint64_t	position;

	for (int committed = 0; committed < 2; committed++)
	{
		RunOptions	opts = {.give_up_seq = 4};

		fixture_begin();
		hand_entry(&entry, 3, 70, 0);
		hand_push(&entry, 1, 101, 0, 2);
		hand_write_entry(&hand, &entry);
		hand_entry(&entry, 4, 0, 0);
		hand_write_entry(&hand, &entry);
		position = hand_end_of(&entry, 0)->position;
		hand.durable = 4;
		hand_entry(&entry, 5, 0, 0);
		hand_effect(&entry, QC_EFFECT_CONFIRM, &confirm, 0);
		hand_write_entry(&hand, &entry);
		CHECK_U64(sim_disk_flip(hand.disk, "qlog/q0/r00000001.qlog", position + 55, 4), 0);
		if (committed)
			server_commits(&server, 70);
		expect_refused(NULL, 4, 2);
		if (run_ok(&run, &hand, &server, &opts))
		{
			CHECK_U64(server.nasked, 1);
			CHECK_U64(run.r.committed, committed);
			CHECK_U64(run.st->confirmed_seq, 3);
			if (committed)
				expect_readable(&run, 1, 0, 2);
			else
				expect_aborted(&run, 1, 0, 2);
		}
		fixture_end();
	}
}

/* Joint work behind it that the WAL carries comes back; what the WAL only refers to is given up with the rest. */
static void
test_stash_comes_back(void)
{
	RunOptions	opts = {.stash = &stash};
	uint64_t	position;

	stash_fixture_begin();
	position = hand_solo(&hand, 1, 3, 101, 0, 1);
	hand_entry(&entry, 4, 70, QC_ENTRY_REFERENCED);
	hand_push(&entry, 1, 101, 1, 1);
	hand_build(&hand, &entry);
	hand_put(&hand, &entry);
	hand_stash_entry(&stash, &hand, &entry, 1, 800);
	hand.durable = 4;
	hand_entry(&entry, 5, 71, QC_ENTRY_CARRIED);
	hand_push(&entry, 1, 101, 2, 2);
	hand_build(&hand, &entry);
	hand_put(&hand, &entry);
	hand_stash_entry(&stash, &hand, &entry, 1, 810);
	server_commits(&server, 70);
	server_commits(&server, 71);
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qlog", position, 255), 0);
	expect_refused(&opts, 3, 3);
	opts.give_up_seq = 3;
	if (run_ok(&run, &hand, &server, &opts))
	{
		CHECK_U64(run.r.restored, 1);
		CHECK_U64(run.r.voided, 2);
		expect_aborted(&run, 1, 0, 2);
		expect_readable(&run, 1, 2, 4);
		expect_positions(&run, 1, 4, 4);
	}
	fixture_end();
}

/* ---- logs ---- */

/* A checkpoint at entry 6, whose log of queue 1 is then lost in this way: 0 = its directory, 1 = its file, 2 = the end of it. */
static void
lose_log(Rows *rows, int how, bool behind)
{
	QcHandle	handle;

	fixture_begin();
	put_four();
	CHECK(run_ok(&run, &hand, &server, NULL));
	rows_take(rows, run.st);
	run_end(&run);
	if (behind)
	{
		(void) hand_solo(&hand, 1, 7, 101, 6, 1);
		hand.durable = 7;
		(void) hand_solo(&hand, 2, 8, 102, 2, 1);
	}
	if (how == 2)
	{
		CHECK_U64(qc_files_get(&hand.files, 1, 1, true, &handle, &run.err), QC_OK);
		CHECK_U64(hand.io->truncate(hand.io->context, handle, 100), 0);
	}
	qc_files_forget(&hand.files, 1, 0);
	if (how == 1)
		CHECK_U64(hand.io->unlink(hand.io->context, "qlog/q1/r00000001.qlog"), 0);
	if (how == 0)
		CHECK_U64(hand.io->rename(hand.io->context, "qlog/q1", "qlog/q1.away"), 0);
}

/* Its queue goes out of service alone, and the log goes on in a new file. */
static void
test_lost_log(void)
{
	for (int how = 0; how < 3; how++)
	{
		Rows		rows = {0};
		RunOptions	opts = {.rows = &rows};
		uint64_t	digest;

		lose_log(&rows, how, false);
		digest = sim_disk_digest(hand.disk);
		CHECK_U64(run_recovery(&run, &hand, &server, &opts), how == 2 ? QC_DAMAGED : QC_MISSING);
		CHECK(run.r.refused);
		CHECK_U64(run.r.given_logs, 1);
		CHECK_U64(run.r.given_seq, 0);
		CHECK_U64(sim_disk_digest(hand.disk), digest);
		run_end(&run);

		opts.give_up_logs = 2;
		CHECK(run_recovery(&run, &hand, &server, &opts) != QC_OK);
		CHECK_U64(sim_disk_digest(hand.disk), digest);
		run_end(&run);

		opts.give_up_logs = 1;
		if (run_ok(&run, &hand, &server, &opts))
		{
			CHECK_U64(run.r.damaged_queues, 1);
			CHECK_U64(qc_queue_by_id(run.st, 1)->damaged, 1);
			CHECK_U64(qc_queue_by_id(run.st, 1)->damage_file, 1);
			CHECK_U64(qc_queue_by_id(run.st, 2)->damaged, 0);
			CHECK_U64(qc_log_by_id(run.st, 1)->file, 2);
			expect_positions(&run, 1, 6, 6);
			expect_positions(&run, 2, 2, 2);
			expect_readable(&run, 2, 0, 2);
			CHECK(hand_size(&hand, "qlog/q1/r00000002.qlog") != UINT64_MAX);

			/* From the next checkpoint on nobody misses anything. */
			rows_take(&rows, run.st);
			opts.give_up_logs = 0;
			expect_stable(&opts);
			CHECK_U64(qc_queue_by_id(run.st, 1)->damaged, 1);
		}
		fixture_end();
		rows_free(&rows);
	}
}

/* Entries above the checkpoint stood in it: both have to be granted, and what stood in later files of it is kept beside. */
static void
test_lost_log_and_entries(void)
{
	Rows		rows = {0};
	RunOptions	opts = {.rows = &rows};

	lose_log(&rows, 2, true);
	hand_roll(&hand, 1);
	(void) hand_solo(&hand, 1, 9, 101, 7, 1);
	expect_refused(&opts, 7, 2);
	CHECK_U64(run.r.given_logs, 1);
	opts.give_up_seq = 7;
	expect_refused(&opts, 7, 2);
	opts.give_up_seq = 0;
	opts.give_up_logs = 1;
	expect_refused(&opts, 7, 2);
	opts.give_up_seq = 7;
	if (run_ok(&run, &hand, &server, &opts))
	{
		CHECK_U64(run.r.end, 7);
		expect_positions(&run, 2, 2, 2);
		CHECK_U64(qc_log_by_id(run.st, 1)->file, 2);
		CHECK(hand_size(&hand, "qlog/q1/r00000002.qlog.cut.7") != UINT64_MAX);
		rows_take(&rows, run.st);
		opts = (RunOptions) {.rows = &rows};
		expect_stable(&opts);
	}
	fixture_end();
	rows_free(&rows);
}

int
main(void)
{
	UNIT_RUN(test_damaged_system_log);
	UNIT_RUN(test_granted);
	UNIT_RUN(test_granted_and_cut_short);
	UNIT_RUN(test_end_is_missing);
	UNIT_RUN(test_cannot_be_applied);
	UNIT_RUN(test_confirm_is_given_up);
	UNIT_RUN(test_stash_comes_back);
	UNIT_RUN(test_lost_log);
	UNIT_RUN(test_lost_log_and_entries);
	return unit_end();
}
