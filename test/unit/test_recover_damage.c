/*
 * test_recover_damage.c
 *		Recovery where something is wrong below what was durable; unknown and missing directories; checkpoints, copies
 *		and epochs.
 */
#include "fixture.h"
#include "qc_apply.h"

#include <stdlib.h>

/* ---- damage below what was durable ---- */

/* A whole entry missing below what a later record says was durable. */
static void
test_missing_below_durable(void)
{
	uint64_t	position;

	fixture_begin();
	put_four();
	hand.durable = 7;
	position = hand_solo(&hand, 2, 8, 102, 2, 1);
	run_refused(&hand, &server, NULL, QC_DAMAGED, "qlog/q2/r00000001.qlog", position);
	hand_end(&hand);
}

/* Each part of an entry missing below what was durable. */
static void
test_part_missing_below_durable(void)
{
	for (int skip = 0; skip < 4; skip++)
	{
		fixture_begin();
		put_four();
		hand_entry(&entry, 7, 0, 0);
		hand_push(&entry, 1, 101, 6, 3);
		hand_push(&entry, 2, 102, 2, 1);
		hand_build(&hand, &entry);
		entry.pieces[skip].skip = true;
		hand_put(&hand, &entry);
		hand.durable = 7;
		(void) hand_solo(&hand, 1, 8, 101, 9, 1);
		run_refused(&hand, &server, NULL, QC_DAMAGED, NULL, 0);
		hand_end(&hand);
	}
}

/* Zeros over a durable record, valid ones behind it: a hole, and not the end of the log. */
static void
test_hole_below_durable(void)
{
	static const uint8_t zeros[512];
	uint64_t	position;

	fixture_begin();
	put_four();
	position = hand_solo(&hand, 1, 7, 101, 6, 1);
	hand_write(&hand, 1, 1, position, zeros, hand_log(&hand, 1)->tail - position);
	hand.durable = 7;
	(void) hand_solo(&hand, 1, 8, 101, 7, 1);
	run_refused(&hand, &server, NULL, QC_DAMAGED, "qlog/q1/r00000001.qlog", position);
	hand_end(&hand);
}

/* The same when nobody says that it was durable: everything from there is cut. */
static void
test_hole_above_durable(void)
{
	static const uint8_t zeros[512];
	uint64_t	position;

	fixture_begin();
	put_four();
	position = hand_solo(&hand, 1, 7, 101, 6, 1);
	hand_write(&hand, 1, 1, position, zeros, hand_log(&hand, 1)->tail - position);
	hand.durable = 6;
	(void) hand_solo(&hand, 1, 8, 101, 7, 1);
	(void) hand_solo(&hand, 2, 9, 102, 2, 1);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK_U64(run.r.required, 6);
		CHECK_U64(run.r.end, 7);
		CHECK_U64(qc_log_by_id(run.st, 1)->tail, position);
		expect_stable(NULL);
	}
	fixture_end();
}

/* The only record that tells what was durable stands behind the damage, in a later file. */
static void
test_durable_known_behind_damage(void)
{
	uint64_t	position;

	fixture_begin();
	put_four();
	hand_entry(&entry, 7, 0, 0);
	hand_push(&entry, 1, 101, 6, 1);
	hand_build(&hand, &entry);
	hand_put(&hand, &entry);
	position = hand_end_of(&entry, 1)->position;
	hand_roll(&hand, 1);
	hand.durable = 7;
	(void) hand_solo(&hand, 1, 8, 101, 7, 1);
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qlog", position + 60, 1), 0);
	run_refused(&hand, &server, NULL, QC_DAMAGED, "qlog/q1/r00000001.qlog", position);
	hand_end(&hand);
}

/* A damaged entry record: another kind than messages refuses, in the system log as anywhere. */
static void
test_damaged_system_log(void)
{
	uint64_t	position;

	fixture_begin();
	hand_entry(&entry, 3, 0, 0);
	hand_write_entry(&hand, &entry);
	position = hand_end_of(&entry, 0)->position;
	hand.durable = 3;
	hand_entry(&entry, 4, 0, 0);
	hand_write_entry(&hand, &entry);
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q0/r00000001.qlog", position + 55, 4), 0);
	run_refused(&hand, &server, NULL, QC_DAMAGED, "qlog/q0/r00000001.qlog", position);

	/* not even when its kind reads as messages */
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q0/r00000001.qlog", position + 48, 2), 0);
	run_refused(&hand, &server, NULL, QC_DAMAGED, "qlog/q0/r00000001.qlog", position);
	hand_end(&hand);
}

/* A damaged message record costs its queue; the other effects of its entry, and all others, go on. */
static void
test_damaged_message_record(void)
{
	uint64_t	position;

	fixture_begin();
	put_four();
	position = hand_message_of(&entry, 1)->position;
	hand.durable = 6;
	(void) hand_solo(&hand, 1, 7, 101, 6, 1);
	(void) hand_solo(&hand, 2, 8, 102, 2, 1);
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qlog", position + 70, 1), 0);
	if (run_ok(&run, &hand, &server, NULL))
	{
		const QcQueue *queue = qc_queue_by_id(run.st, 1);

		CHECK(!run.r.changed);
		CHECK_U64(run.r.damaged_queues, 1);
		CHECK_U64(queue->damaged, 1);
		CHECK_U64(queue->damage_file, 1);
		CHECK_U64(queue->damage_position, position);
		CHECK_U64(qc_queue_by_id(run.st, 2)->damaged, 0);
		expect_positions(&run, 1, 7, 7);
		expect_positions(&run, 2, 3, 3);
		expect_readable(&run, 2, 0, 3);
		expect_readable(&run, 1, 5, 7);
		expect_stable(NULL);
	}
	fixture_end();
}

/* A damaged solo record: its queue is out of service, what follows in it has no place, others go on. */
static void
test_damaged_solo(void)
{
	uint64_t	position;

	fixture_begin();
	put_four();
	position = hand_solo(&hand, 1, 7, 101, 6, 2);
	hand.durable = 7;
	(void) hand_solo(&hand, 1, 8, 101, 8, 1);
	(void) hand_solo(&hand, 2, 9, 102, 2, 1);
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qlog", position + 90, 1), 0);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK_U64(run.r.end, 10);
		CHECK_U64(qc_queue_by_id(run.st, 1)->damaged, 1);
		CHECK_U64(qc_queue_by_id(run.st, 1)->damage_position, position);
		CHECK_U64(qc_queue_by_id(run.st, 2)->damaged, 0);
		expect_positions(&run, 2, 3, 3);
		CHECK_U64(run.st->seq, 9);
		expect_stable(NULL);
	}
	fixture_end();
}

/* A damaged solo record at the very end of its log, known durable from another one. */
static void
test_damaged_solo_at_the_end(void)
{
	uint64_t	position;
	uint64_t	tail;

	fixture_begin();
	put_four();
	position = hand_solo(&hand, 1, 7, 101, 6, 2);
	tail = hand_log(&hand, 1)->tail;
	hand.durable = 7;
	(void) hand_solo(&hand, 2, 8, 102, 2, 1);
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qlog", position + 90, 1), 0);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK(!run.r.changed);
		CHECK_U64(qc_queue_by_id(run.st, 1)->damaged, 1);
		CHECK_U64(qc_log_by_id(run.st, 1)->tail, tail);
		expect_positions(&run, 2, 3, 3);
		expect_stable(NULL);
	}
	fixture_end();
}

/* One damaged record excuses one missing entry, not two. */
static void
test_damage_excuses_one(void)
{
	uint64_t	position;

	fixture_begin();
	put_four();
	position = hand_solo(&hand, 1, 7, 101, 6, 2);
	hand.durable = 8;
	(void) hand_solo(&hand, 1, 9, 101, 8, 1);
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qlog", position + 90, 1), 0);
	run_refused(&hand, &server, NULL, QC_DAMAGED, "qlog/q1/r00000001.qlog", position);
	hand_end(&hand);
}

/* Damage above what was durable is a torn end, whatever it looks like. */
static void
test_damaged_solo_above_durable(void)
{
	uint64_t	position;

	fixture_begin();
	put_four();
	hand.durable = 6;
	position = hand_solo(&hand, 1, 7, 101, 6, 2);
	(void) hand_solo(&hand, 1, 8, 101, 8, 1);
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qlog", position + 90, 1), 0);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK_U64(run.r.end, 7);
		CHECK_U64(run.r.damaged_queues, 0);
		CHECK_U64(qc_log_by_id(run.st, 1)->tail, position);
		expect_stable(NULL);
	}
	fixture_end();
}

/* An entry of a newer format stops everything and is named. */
static void
test_unknown_effect(void)
{
	HandPiece  *piece;

	fixture_begin();
	hand_entry(&entry, 3, 0, 0);
	hand_effect(&entry, QC_EFFECT_POP_COMMIT, &(QcPopCommit) {.lease = 1}, 0);
	hand_build(&hand, &entry);
	piece = hand_end_of(&entry, 0);
	piece->bytes[QC_RECORD_HEADER_SIZE + QC_ENTRY_HEAD_SIZE(1)] = 99;
	qc_store_u64(piece->bytes + 4, qc_digest(piece->bytes + 12, piece->size - 12));
	hand_put(&hand, &entry);
	run_refused(&hand, &server, NULL, QC_VERSION, "qlog/q0/r00000001.qlog", piece->position +
				piece->size);
	hand_end(&hand);
}

/* An entry that does not fit the state: our own code could not have written it. */
static void
test_positions_do_not_follow(void)
{
	fixture_begin();
	put_four();
	(void) hand_solo(&hand, 1, 7, 101, 3, 1);
	run_refused(&hand, &server, NULL, QC_DAMAGED, NULL, 0);
	hand_end(&hand);
}

/* ---- directories ---- */

static void
test_unknown_directories(void)
{
	fixture_begin();
	put_four();
	(void) hand_log(&hand, 7);	/* a creation that got no further */
	(void) hand_log(&hand, 8);	/* one whose entry was lost, with messages in it */
	(void) hand_solo(&hand, 8, 8, 108, 0, 1);
	CHECK_U64(hand.io->make_directory(hand.io->context, "qlog/q9"), 0);
	if (run_ok(&run, &hand, &server, NULL))
	{
		uint64_t   *ids;
		uint32_t	n;

		CHECK_U64(hand_size(&hand, "qlog/q7.dead/r00000001.qlog"), HAND_ALLOCATED);
		CHECK_U64(hand_size(&hand, "qlog/q8.cut.7/r00000001.qlog"), HAND_ALLOCATED);
		CHECK_U64(qc_dir_logs(hand.io, QC_LAYOUT_FLAT, &ids, &n, &run.err), QC_OK);
		CHECK_U64(n, 3);
		free(ids);
		expect_stable(NULL);
	}
	fixture_end();
}

/* A log of a queue that is gone, with parts that are needed until the mark has passed them: it stays. */
static void
test_needed_unknown_directory(void)
{
	fixture_begin();
	put_four();
	hand_entry(&entry, 7, 0, 0);
	hand_push(&entry, 2, 102, 2, 1);
	hand_push(&entry, 9, 50, 0, 1);
	hand_write_entry(&hand, &entry);
	hand.durable = 7;
	(void) hand_solo(&hand, 1, 8, 101, 6, 1);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK(qc_log_by_id(run.st, 9) == NULL);
		CHECK(!run.r.changed);
		expect_positions(&run, 2, 3, 3);
		expect_stable(NULL);
	}
	fixture_end();
}

static void
test_missing_directory(void)
{
	fixture_begin();
	put_four();
	qc_files_forget(&hand.files, 2, 0);
	CHECK_U64(hand.io->rename(hand.io->context, "qlog/q2", "qlog/q2.away"), 0);
	hand.durable = 6;
	(void) hand_solo(&hand, 1, 7, 101, 6, 1);
	run_refused(&hand, &server, NULL, QC_DAMAGED, NULL, 0);
	hand_end(&hand);

	/* nothing was ever written to it: only the queue tells that it must be there */
	fixture_begin();
	CHECK_U64(hand.io->rename(hand.io->context, "qlog/q2", "qlog/q2.away"), 0);
	run_refused(&hand, &server, NULL, QC_MISSING, "qlog/q2", UINT64_MAX);
	hand_end(&hand);
}

/* ---- with a checkpoint ---- */

static void
test_checkpoint(void)
{
	Rows		rows = {0};
	RunOptions	options = {.rows = &rows};

	fixture_begin();
	put_four();
	if (run_ok(&run, &hand, &server, NULL))
	{
		rows_take(&rows, run.st);
		run_end(&run);
		(void) hand_solo(&hand, 1, 7, 101, 6, 1);
		(void) hand_solo(&hand, 2, 8, 102, 2, 1);
		CHECK(run_ok(&run, &hand, &server, &options));
		CHECK_U64(run.r.mark, 6);
		CHECK_U64(run.r.replayed, 2);
		expect_positions(&run, 1, 7, 7);
		expect_positions(&run, 2, 3, 3);
		expect_readable(&run, 1, 0, 7);
		expect_readable(&run, 2, 0, 3);
		expect_stable(&options);
	}
	rows_free(&rows);
	fixture_end();
}

/* A queue-only entry that was not settled when the checkpoint was made: durable, as all below the mark. */
static void
test_open_queue_only_in_checkpoint(void)
{
	QcApply		apply = {.seq = 7, .created_at = 5, .recovering = true};
	QcEffect	effect = {.kind = QC_EFFECT_APPEND};
	Rows		rows = {0};
	RunOptions	options = {.rows = &rows};

	fixture_begin();
	put_four();
	if (run_ok(&run, &hand, &server, NULL))
	{
		effect.u.append = (QcAppend)
		{
			101, 1, 6, 2, 1
		};
		CHECK(qc_apply_begin(run.st, &apply));
		CHECK_U64(qc_apply_effect(run.st, &apply, &effect, &run.err), QC_OK);
		expect_positions(&run, 1, 8, 6);
		(void) hand_solo(&hand, 1, 7, 101, 6, 2);
		qc_log_by_id(run.st, 1)->tail = hand_log(&hand, 1)->tail;
		rows_take(&rows, run.st);
		run_end(&run);
		if (run_ok(&run, &hand, &server, &options))
		{
			expect_positions(&run, 1, 8, 8);
			CHECK_U64(qc_queue_by_id(run.st, 1)->pushed, 8);
			expect_readable(&run, 1, 6, 8);
			expect_stable(&options);
		}
	}
	rows_free(&rows);
	fixture_end();
}

/* Damage below the mark is not recovery's affair; a file that ends there is. */
static void
test_damage_below_mark(void)
{
	Rows		rows = {0};
	RunOptions	options = {.rows = &rows};
	QcHandle	handle;

	fixture_begin();
	put_four();
	if (run_ok(&run, &hand, &server, NULL))
	{
		rows_take(&rows, run.st);
		run_end(&run);
		CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qlog", 100, 1), 0);
		CHECK(run_ok(&run, &hand, &server, &options));
		CHECK(!run.r.changed);
		run_end(&run);

		CHECK_U64(qc_files_get(&hand.files, 1, 1, true, &handle, &run.err), QC_OK);
		CHECK_U64(hand.io->truncate(hand.io->context, handle, 200), 0);
		run_refused(&hand, &server, &options, QC_DAMAGED, "qlog/q1/r00000001.qlog", 200);

		qc_files_forget(&hand.files, 1, 0);
		CHECK_U64(hand.io->unlink(hand.io->context, "qlog/q1/r00000001.qlog"), 0);
		run_refused(&hand, &server, &options, QC_MISSING, "qlog/q1/r00000001.qlog", UINT64_MAX);
		CHECK_U64(hand.io->remove_directory(hand.io->context, "qlog/q1"), 0);
		run_refused(&hand, &server, &options, QC_MISSING, "qlog/q1", UINT64_MAX);
	}
	rows_free(&rows);
	hand_end(&hand);
}

/* ---- copies and epochs ---- */

/* In a copy nothing above the mark is required: a late q0 may lie beside an early q1. */
static void
test_copy(void)
{
	RunOptions	options = {.copied = true};
	uint64_t	position;

	fixture_begin();
	put_four();
	hand.durable = 8;
	position = hand_solo(&hand, 2, 9, 102, 2, 1);
	run_refused(&hand, &server, NULL, QC_DAMAGED, "qlog/q2/r00000001.qlog", position);
	if (run_ok(&run, &hand, &server, &options))
	{
		CHECK_U64(run.r.end, 7);
		CHECK_U64(server.nepochs, 1);
		expect_positions(&run, 2, 2, 2);
	}
	fixture_end();
}

static void
test_new_timeline(void)
{
	fixture_begin();
	put_four();
	server.timeline = 2;
	server.fork_lsn = 5000;
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK(run.r.changed);
		CHECK_U64(server.nepochs, 1);
		CHECK_U64(run.st->epochs[run.st->nepochs - 1].timeline, 2);
		CHECK_U64(run.st->seq, 7);
		expect_stable(NULL);
	}
	fixture_end();
}

/* Records of an epoch that had ended below their seq are nothing, wherever they stand. */
static void
test_void_epoch(void)
{
	QcEpoch		epoch = {.epoch = RUN_EPOCH + 1, .previous = RUN_EPOCH, .first_seq = 7, .timeline = 1};

	fixture_begin();
	put_four();

	/* an old part that a cut missed, in a log that the new entries do not touch */
	hand_entry(&entry, 8, 0, 0);
	hand_push(&entry, 2, 102, 2, 1);
	hand_write_entry(&hand, &entry);

	hand.epoch = RUN_EPOCH + 1;
	hand_entry(&entry, 7, 0, 0);
	hand_effect(&entry, QC_EFFECT_EPOCH, &epoch, 0);
	hand_write_entry(&hand, &entry);
	hand_entry(&entry, 8, 0, 0);
	hand_push(&entry, 1, 101, 6, 2);
	hand_write_entry(&hand, &entry);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK(!run.r.changed);
		CHECK_U64(run.r.end, 9);
		expect_positions(&run, 1, 8, 8);
		expect_positions(&run, 2, 2, 2);
		CHECK_U64(qc_epoch(run.st), RUN_EPOCH + 1);
		expect_stable(NULL);
	}
	fixture_end();
}

/* A lease whose pop never committed is released, and the release is logged. */
static void
test_lost_lease(void)
{
	QcDeliver	deliver = {.lease = 77, .queue = 1, .group = 0, .lease_us = 60000000};
	QcDeliverItem item = {.partition = 101, .first = 0, .count = 2, .attempt = 1};
	QcPopCommit commit = {.lease = 78};

	fixture_begin();
	put_four();
	hand_entry(&entry, 7, 0, 0);
	hand_effect(&entry, QC_EFFECT_DELIVER, &deliver, 1);
	hand_item(&entry, QC_EFFECT_DELIVER, &item);
	hand_write_entry(&hand, &entry);
	deliver.lease = 78;
	item.first = 2;
	hand_entry(&entry, 8, 0, 0);
	hand_effect(&entry, QC_EFFECT_DELIVER, &deliver, 1);
	hand_item(&entry, QC_EFFECT_DELIVER, &item);
	hand_effect(&entry, QC_EFFECT_POP_COMMIT, &commit, 0);
	hand_write_entry(&hand, &entry);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK(run.r.changed);
		CHECK_U64(run.st->seq, 9);
		CHECK(qc_lease_by_id(run.st, 77) == NULL);
		CHECK(qc_lease_by_id(run.st, 78) != NULL);
		CHECK_U64(server.nepochs, 0);
		expect_stable(NULL);
	}
	fixture_end();
}

int
main(void)
{
	UNIT_RUN(test_missing_below_durable);
	UNIT_RUN(test_part_missing_below_durable);
	UNIT_RUN(test_hole_below_durable);
	UNIT_RUN(test_hole_above_durable);
	UNIT_RUN(test_durable_known_behind_damage);
	UNIT_RUN(test_damaged_system_log);
	UNIT_RUN(test_damaged_message_record);
	UNIT_RUN(test_damaged_solo);
	UNIT_RUN(test_damaged_solo_at_the_end);
	UNIT_RUN(test_damage_excuses_one);
	UNIT_RUN(test_damaged_solo_above_durable);
	UNIT_RUN(test_unknown_effect);
	UNIT_RUN(test_positions_do_not_follow);
	UNIT_RUN(test_unknown_directories);
	UNIT_RUN(test_needed_unknown_directory);
	UNIT_RUN(test_missing_directory);
	UNIT_RUN(test_checkpoint);
	UNIT_RUN(test_open_queue_only_in_checkpoint);
	UNIT_RUN(test_damage_below_mark);
	UNIT_RUN(test_copy);
	UNIT_RUN(test_new_timeline);
	UNIT_RUN(test_void_epoch);
	UNIT_RUN(test_lost_lease);
	return unit_end();
}
