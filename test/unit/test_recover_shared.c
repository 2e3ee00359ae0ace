/*
 * test_recover_shared.c
 *		Recovery where queues share logs: several queues in one log, queues that come and go in a log that stays, damage
 *		in a shared log, logs and the file SHARDS missing.
 *
 * Two shared logs, four queues: 1 and 3 in log 2, 2 and 4 in log 1.
 */
#include "fixture.h"
#include "qc_catalog.h"

#define SHARDS 2

static uint64_t
log_of(uint64_t queue)
{
	return qc_log_of_queue(SHARDS, queue);
}

/* Seq 1 begins the epoch, seq 2 makes the queues 1 .. 4. */
static void
shared_begin(QcLayout layout)
{
	static const char *const names[] = {"one", "two", "three", "four"};
	QcEpoch		epoch = {.epoch = RUN_EPOCH, .first_seq = 1, .timeline = 1};

	hand_begin_shared(&hand, layout, SHARDS, 12);
	server_begin(&server);
	hand.epoch = RUN_EPOCH;
	hand_entry(&entry, 1, 0, 0);
	hand_effect(&entry, QC_EFFECT_EPOCH, &epoch, 0);
	hand_write_entry(&hand, &entry);
	hand_entry(&entry, 2, 0, 0);
	for (uint64_t queue = 1; queue <= 4; queue++)
		hand_queue_in(&entry, queue, log_of(queue), names[queue - 1]);
	hand_write_entry(&hand, &entry);
}

static uint64_t
solo(uint64_t seq, uint64_t queue, uint64_t first, uint32_t count)
{
	return hand_solo(&hand, log_of(queue), seq, 100 + queue, first, count);
}

/* seqs 3 .. 7: a message for each queue, then an entry with two for each; it stays in `entry`. */
static void
put_five(void)
{
	for (uint64_t queue = 1; queue <= 4; queue++)
		(void) solo(2 + queue, queue, 0, 1);
	hand_entry(&entry, 7, 0, 0);
	for (uint64_t queue = 1; queue <= 4; queue++)
		hand_push(&entry, log_of(queue), 100 + queue, 1, 2);
	hand_write_entry(&hand, &entry);
}

/* The queue's messages [0, next) are there. */
static void
expect_queue(uint64_t queue, uint64_t next)
{
	expect_positions(&run, queue, next, next);
	expect_readable(&run, queue, 0, next);
}

/* Several queues in one log, in either layout; what stands behind the end goes, of whatever queue it is. */
static void
test_queues_in_one_log(void)
{
	for (int layout = 0; layout < 2; layout++)
	{
		uint64_t	cut;

		shared_begin(layout == 0 ? QC_LAYOUT_FLAT : QC_LAYOUT_HIERARCHICAL);
		put_five();
		cut = hand_log(&hand, 2)->tail;
		(void) solo(9, 1, 3, 1);	/* seq 8 is missing */
		(void) solo(10, 3, 3, 1);
		if (run_ok(&run, &hand, &server, NULL))
		{
			CHECK_U64(run.r.end, 8);
			CHECK_U64(qc_log_by_id(run.st, 2)->tail, cut);
			CHECK_U64(qc_log_by_id(run.st, 1)->nqueues, 2);
			CHECK_U64(qc_log_by_id(run.st, 2)->nqueues, 2);
			for (uint64_t queue = 1; queue <= 4; queue++)
				expect_queue(queue, 3);
			CHECK_U64(hand_size(&hand, layout == 0 ? "qlog/q2/r00000001.qlog.cut.8" :
								"qlog/00/0000/q2/r00000001.qlog.cut.8") != UINT64_MAX, 1);
			expect_stable(NULL);
		}
		fixture_end();
	}
}

/* The same through files only: nothing is in the memory index when recovery begins at a checkpoint. */
static void
test_reading_below_the_mark(void)
{
	Rows		rows = {0};
	RunOptions	options = {.rows = &rows};

	shared_begin(QC_LAYOUT_FLAT);
	put_five();
	hand_roll(&hand, 2);
	(void) solo(8, 3, 3, 1);
	(void) solo(9, 1, 3, 1);
	if (run_ok(&run, &hand, &server, NULL))
	{
		rows_take(&rows, run.st);
		run_end(&run);
		(void) solo(10, 1, 4, 1);
		if (run_ok(&run, &hand, &server, &options))
		{
			CHECK_U64(run.r.replayed, 1);
			expect_queue(1, 5);
			expect_queue(2, 3);
			expect_queue(3, 4);
			expect_queue(4, 3);
		}
	}
	rows_free(&rows);
	fixture_end();
}

/*
 * Queues are dropped: their log stays, with the records of all, and goes on from where it was.	When the last queue of
 * it has gone the checkpoint still knows how far it is, and a new queue comes into it.
 */
static void
test_drop(void)
{
	Rows		rows = {0};
	RunOptions	options = {.rows = &rows};
	QcQueueDrop drop;
	uint64_t	tail;

	shared_begin(QC_LAYOUT_FLAT);
	put_five();
	hand_entry(&entry, 8, 0, 0);
	drop.queue = 1;
	hand_effect(&entry, QC_EFFECT_QUEUE_DROP, &drop, 0);
	hand_write_entry(&hand, &entry);
	if (run_ok(&run, &hand, &server, NULL))
	{
		(void) qc_queue_sweep(run.st, 1000);
		CHECK(qc_queue_by_id(run.st, 1) == NULL);
		expect_queue(3, 3);
		CHECK_U64(qc_log_by_id(run.st, 2)->nqueues, 1);
		rows_take(&rows, run.st);
		CHECK_U64(qc_log_remove_next(run.st), 0);
		run_end(&run);
	}
	drop.queue = 3;
	hand_entry(&entry, 9, 0, 0);
	hand_effect(&entry, QC_EFFECT_QUEUE_DROP, &drop, 0);
	hand_write_entry(&hand, &entry);
	tail = hand_log(&hand, 2)->tail;
	if (run_ok(&run, &hand, &server, &options))
	{
		CHECK_U64(run.r.replayed, 1);
		(void) qc_queue_sweep(run.st, 1000);
		CHECK_U64(qc_log_by_id(run.st, 2)->nqueues, 0);
		rows_take(&rows, run.st);
		run.st->checkpoint_seq = run.st->seq;
		CHECK_U64(qc_log_remove_next(run.st), 0);
		run_end(&run);
	}
	CHECK(run_ok(&run, &hand, &server, &options));
	CHECK(!run.r.changed);
	CHECK_U64(qc_log_by_id(run.st, 2)->tail, tail);
	expect_queue(2, 3);
	run_end(&run);

	/* its records from before are nobody's */
	hand_entry(&entry, 10, 0, 0);
	hand_queue_in(&entry, 5, log_of(5), "one");
	hand_write_entry(&hand, &entry);
	(void) solo(11, 5, 0, 1);
	if (run_ok(&run, &hand, &server, &options))
	{
		CHECK_U64(run.r.replayed, 2);
		expect_queue(5, 1);
		expect_queue(4, 3);
	}
	rows_free(&rows);
	fixture_end();
}

/* An entry tells whose message record is damaged: that queue is out of service, its neighbours in the log are not. */
static void
test_damaged_message_record(void)
{
	const HandPiece *piece;

	shared_begin(QC_LAYOUT_FLAT);
	put_five();
	hand.durable = 7;
	(void) solo(8, 2, 3, 1);

	/* of the entry's messages in log 2 those for queue 1 come first, then those for queue 3 */
	piece = hand_message_of(&entry, 2) + 1;
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q2/r00000001.qlog", piece->position + 70, 1), 0);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK(!run.r.changed);
		CHECK_U64(run.r.damaged_queues, 1);
		CHECK_U64(qc_queue_by_id(run.st, 3)->damaged, 1);
		CHECK_U64(qc_queue_by_id(run.st, 3)->damage_file, 1);
		CHECK_U64(qc_queue_by_id(run.st, 3)->damage_position, piece->position);
		expect_queue(1, 3);
		expect_queue(2, 4);
		expect_queue(4, 3);
		expect_positions(&run, 3, 3, 3);
		expect_readable(&run, 3, 0, 1);
		expect_stable(NULL);
	}
	fixture_end();
}

/* Of a single record that is damaged nothing is known but its log: it may have been a message of any queue there. */
static void
test_damaged_solo(void)
{
	uint64_t	position;

	shared_begin(QC_LAYOUT_FLAT);
	put_five();
	position = solo(8, 3, 3, 1);
	hand.durable = 8;
	(void) solo(9, 2, 3, 1);
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q2/r00000001.qlog", position + 90, 1), 0);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK_U64(run.r.damaged_queues, 2);
		CHECK_U64(qc_queue_by_id(run.st, 1)->damaged, 1);
		CHECK_U64(qc_queue_by_id(run.st, 1)->damage_position, position);
		CHECK_U64(qc_queue_by_id(run.st, 3)->damaged, 1);
		CHECK_U64(qc_queue_by_id(run.st, 2)->damaged, 0);
		CHECK_U64(qc_queue_by_id(run.st, 4)->damaged, 0);
		expect_queue(2, 4);
		expect_queue(4, 3);
		expect_stable(NULL);
	}
	fixture_end();
}

/* A shared log that is missing, even one without a queue, is refused, with and without a checkpoint. */
static void
test_missing_log(void)
{
	Rows		rows = {0};
	RunOptions	options = {.rows = &rows};
	QcQueueDrop drop = {.queue = 2};

	shared_begin(QC_LAYOUT_FLAT);
	put_five();
	hand_entry(&entry, 8, 0, 0);
	hand_effect(&entry, QC_EFFECT_QUEUE_DROP, &drop, 0);
	drop.queue = 4;
	hand_effect(&entry, QC_EFFECT_QUEUE_DROP, &drop, 0);
	hand_write_entry(&hand, &entry);
	if (run_ok(&run, &hand, &server, NULL))
	{
		(void) qc_queue_sweep(run.st, 1000);
		rows_take(&rows, run.st);
		run_end(&run);
		CHECK_U64(hand.io->rename(hand.io->context, "qlog/q1", "qlog/q1.away"), 0);
		qc_files_close(&hand.files);
		run_refused(&hand, &server, &options, QC_MISSING, "qlog/q1", UINT64_MAX);
		run_refused(&hand, &server, NULL, QC_MISSING, "qlog/q1", UINT64_MAX);
		CHECK_U64(hand.io->rename(hand.io->context, "qlog/q1.away", "qlog/q1"), 0);
		CHECK(run_ok(&run, &hand, &server, &options));
	}
	rows_free(&rows);
	fixture_end();
}

/* The file SHARDS is gone, or of another directory: the checkpoint knows in which logs its queues are. */
static void
test_wrong_number_of_shards(void)
{
	Rows		rows = {0};
	RunOptions	options = {.rows = &rows};

	shared_begin(QC_LAYOUT_FLAT);
	put_five();
	if (run_ok(&run, &hand, &server, NULL))
	{
		rows_take(&rows, run.st);
		run_end(&run);
		hand.identity.shards = 0;
		run_refused(&hand, &server, &options, QC_MISSING, "qlog/SHARDS", UINT64_MAX);
		hand.identity.shards = 1;
		run_refused(&hand, &server, &options, QC_MISSING, "qlog/SHARDS", UINT64_MAX);
		hand.identity.shards = SHARDS;
		CHECK(run_ok(&run, &hand, &server, &options));
	}
	rows_free(&rows);
	fixture_end();
}

int
main(void)
{
	UNIT_RUN(test_queues_in_one_log);
	UNIT_RUN(test_reading_below_the_mark);
	UNIT_RUN(test_drop);
	UNIT_RUN(test_damaged_message_record);
	UNIT_RUN(test_damaged_solo);
	UNIT_RUN(test_missing_log);
	UNIT_RUN(test_wrong_number_of_shards);
	return unit_end();
}
