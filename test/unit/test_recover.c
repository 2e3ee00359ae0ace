/*
 * test_recover.c
 *		Recovery of the logs themselves: the end, the cut, damage, missing and unknown things, the checkpoint.
 *
 * Every directory here is made by hand (handmade.h), with known bytes in known places.
 */
#include "recovery.h"
#include "qc_apply.h"

#include <stdlib.h>
#include <string.h>

#define EPOCH 500
#define ZEROS 64				/* kept behind what is cut */

static Hand hand;
static Server server;
static Run run;
static HandEntry entry;

/*
 * A directory with queues 1 and 2: seq 1 begins an epoch, seq 2 makes both queues.  The server has seen it, so opening
 * it has nothing to change.
 */
static void
begin(void)
{
	QcEpoch		epoch = {.epoch = EPOCH,.first_seq = 1,.timeline = 1};

	hand_begin(&hand, QC_LAYOUT_FLAT, 11);
	server_begin(&server);
	hand.epoch = EPOCH;
	hand_entry(&entry, 1, 0, 0);
	hand_effect(&entry, QC_EFFECT_EPOCH, &epoch, 0);
	hand_write_entry(&hand, &entry);
	(void) hand_log(&hand, 1);
	(void) hand_log(&hand, 2);
	hand_entry(&entry, 2, 0, 0);
	hand_queue(&entry, 1, "one");
	hand_queue(&entry, 2, "two");
	hand_write_entry(&hand, &entry);
}

static void
end(void)
{
	run_end(&run);
	hand_end(&hand);
}

/* seqs 3 .. 6: a solo record to each queue, then an entry over both and one more solo record. */
static void
put_four(void)
{
	(void) hand_solo(&hand, 1, 3, 101, 0, 2);
	(void) hand_solo(&hand, 2, 4, 102, 0, 1);
	hand_entry(&entry, 5, 0, 0);
	hand_push(&entry, 1, 101, 2, 3);
	hand_push(&entry, 2, 102, 1, 1);
	hand_write_entry(&hand, &entry);
	(void) hand_solo(&hand, 1, 6, 101, 5, 1);
}

/* Opening again changes nothing and gives the same state. */
static void
expect_stable(const RunOptions *options)
{
	uint64_t	digest = sim_disk_digest(hand.disk);
	uint64_t	state = state_digest(run.st);
	uint64_t	seq = run.st->seq;

	run_end(&run);
	if (!run_ok(&run, &hand, &server, options))
		return;
	CHECK(!run.r.changed);
	CHECK_U64(sim_disk_digest(hand.disk), digest);
	CHECK_U64(state_digest(run.st), state);
	CHECK_U64(run.st->seq, seq);
}

/* ---- what needs nothing ---- */

/* The very first start begins an epoch; the second has nothing to do. */
static void
test_first_start(void)
{
	uint8_t		head[QC_RECORD_HEADER_SIZE];

	hand_begin(&hand, QC_LAYOUT_FLAT, 11);
	server_begin(&server);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK(run.r.changed);
		CHECK_U64(run.r.end, 1);
		CHECK_U64(run.st->seq, 1);
		CHECK_U64(server.nepochs, 1);
		CHECK_U64(server.first_seq, 1);
		CHECK_U64(qc_epoch(run.st), server.new_epoch);

		/* the entry that begins the epoch belongs to it */
		hand_read(&hand, 0, 1, QC_FILE_HEADER_SIZE, head, sizeof(head));
		CHECK_U64(qc_load_u64(head + 12), 1);
		CHECK_U64(qc_load_u64(head + 28), server.new_epoch);
		expect_stable(NULL);
	}
	end();
}

static void
test_replay(void)
{
	begin();
	put_four();
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK(!run.r.changed);
		CHECK_U64(run.r.replayed, 6);
		CHECK_U64(run.r.end, 7);
		CHECK_U64(run.st->seq, 6);
		expect_positions(&run, 1, 6, 6);
		expect_positions(&run, 2, 2, 2);
		expect_readable(&run, 1, 0, 6);
		expect_readable(&run, 2, 0, 2);
		CHECK_U64(qc_queue_by_id(run.st, 1)->pushed, 6);
		CHECK_U64(qc_log_by_id(run.st, 1)->tail, hand_log(&hand, 1)->tail);
		CHECK_U64(qc_log_by_id(run.st, 1)->allocated, HAND_ALLOCATED);
		CHECK_U64(sim_disk_handles(hand.disk), 3);
		expect_stable(NULL);
	}
	end();
}

/* The same in the hierarchical layout. */
static void
test_replay_hierarchical(void)
{
	QcEpoch		epoch = {.epoch = EPOCH,.first_seq = 1,.timeline = 1};

	hand_begin(&hand, QC_LAYOUT_HIERARCHICAL, 11);
	server_begin(&server);
	hand.epoch = EPOCH;
	hand_entry(&entry, 1, 0, 0);
	hand_effect(&entry, QC_EFFECT_EPOCH, &epoch, 0);
	hand_queue(&entry, 1, "one");
	hand_queue(&entry, 2, "two");
	(void) hand_log(&hand, 1);
	(void) hand_log(&hand, 2);
	hand_write_entry(&hand, &entry);
	hand_entry(&entry, 2, 0, 0);
	hand_write_entry(&hand, &entry);
	put_four();
	(void) hand_append(&hand, 2, "torn", 4);
	if (run_ok(&run, &hand, &server, NULL))
	{
		expect_positions(&run, 1, 6, 6);
		expect_readable(&run, 2, 0, 2);
		CHECK_U64(hand_size(&hand, "qlog/00/0000/q2/r00000001.qlog.cut.7"), 4 + ZEROS);
		expect_stable(NULL);
	}
	end();
}

/* Logs that roll, and files created ahead. */
static void
test_replay_over_files(void)
{
	begin();
	put_four();
	hand_roll(&hand, 1);
	(void) hand_solo(&hand, 1, 7, 101, 6, 4);
	hand_roll(&hand, 1);
	(void) hand_solo(&hand, 1, 8, 101, 10, 4);
	hand_roll(&hand, 1);
	hand_roll(&hand, 2);
	hand_sync(&hand);
	if (run_ok(&run, &hand, &server, NULL))
	{
		const QcLog *log = qc_log_by_id(run.st, 1);

		CHECK(!run.r.changed);
		expect_readable(&run, 1, 0, 14);
		CHECK_U64(log->file, 3);
		CHECK_U64(log->last_file, 4);
		CHECK_U64(log->last_allocated, HAND_ALLOCATED);
		CHECK_U64(qc_log_by_id(run.st, 2)->last_file, 2);
		expect_stable(NULL);
	}
	end();
}

/* Room in the memory index for fewer records than there are: the rest is found in the files. */
static void
test_small_index(void)
{
	RunOptions	options = {.index_bytes = 1};

	begin();
	put_four();
	for (uint64_t seq = 7; seq < 7 + 1800; seq++)
	{
		if (seq % 800 == 0 || seq % 800 == 1)
			hand_roll(&hand, 2 - seq % 2);
		(void) hand_solo(&hand, 2 - seq % 2, seq, 102 - seq % 2,
						 (seq % 2 ? 6 : 2) + (seq - 7) / 2, 1);
	}
	if (run_ok(&run, &hand, &server, &options))
	{
		/* part of them, and the newest ones */
		CHECK(qc_log_by_id(run.st, 1)->nindexed > 100);
		CHECK(qc_log_by_id(run.st, 1)->index_file > 1 ||
			  qc_log_by_id(run.st, 1)->index_position > QC_FILE_HEADER_SIZE);
		expect_readable(&run, 1, 0, 906);
		expect_readable(&run, 2, 0, 902);
	}
	end();
}

static void
test_state_memory_too_small(void)
{
	RunOptions	options = {.state_bytes = 1};

	begin();
	put_four();
	run_refused(&hand, &server, &options, QC_FULL, NULL, 0);
	hand_end(&hand);
}

/* The caller may stop it at any question; that changes nothing before anything is to be changed. */
static void
test_interrupted(void)
{
	begin();
	put_four();
	server.stop_after = 1;
	run_refused(&hand, &server, NULL, QC_INTERRUPTED, NULL, 0);
	hand_end(&hand);
}

/* ---- torn ends ---- */

static void
test_torn_tail(void)
{
	uint8_t		kept[40];
	uint8_t		zeros[40] = {0};
	uint8_t		back[40];
	uint64_t	tail;

	begin();
	put_four();
	tail = hand_log(&hand, 1)->tail;
	memset(kept, 0x5a, sizeof(kept));
	hand_write(&hand, 1, 1, tail, kept, sizeof(kept));
	if (run_ok(&run, &hand, &server, NULL))
	{
		QcHandle	handle;
		size_t		done;

		CHECK(run.r.changed);
		CHECK_U64(run.r.cut_bytes, sizeof(kept));
		CHECK_U64(run.r.end, 7);

		/* what was cut is kept, its place is zero and as large as before */
		CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qlog.cut.7"), sizeof(kept) + ZEROS);
		CHECK_U64(hand.io->open(hand.io->context, "qlog/q1/r00000001.qlog.cut.7", 0, &handle), 0);
		CHECK_U64(hand.io->read(hand.io->context, handle, back, sizeof(back), 0, &done), 0);
		CHECK_BYTES(back, done, kept, sizeof(kept));
		hand.io->close(hand.io->context, handle);
		hand_read(&hand, 1, 1, tail, back, sizeof(back));
		CHECK_BYTES(back, sizeof(back), zeros, sizeof(zeros));
		CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qlog"), HAND_ALLOCATED);

		/* and no seq is used again in the old epoch */
		CHECK_U64(server.nepochs, 1);
		CHECK_U64(server.old_epoch, EPOCH);
		CHECK_U64(server.first_seq, 7);
		CHECK_U64(run.st->seq, 7);
		CHECK_U64(qc_log_by_id(run.st, 1)->tail, tail);
		expect_readable(&run, 1, 0, 6);
		expect_stable(NULL);
	}

	/* the same place torn again: the bytes kept before stay */
	hand_write(&hand, 1, 1, tail, "x", 1);
	run_end(&run);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK_U64(run.r.end, 8);
		CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qlog.cut.7"), sizeof(kept) + ZEROS);
		CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qlog.cut.8"), 1 + ZEROS);
	}
	end();
}

/* A name that is taken is not overwritten. */
static void
test_cut_name_is_taken(void)
{
	begin();
	put_four();
	hand_make_file(&hand, "qlog/q1/r00000001.qlog.cut.7", "before", 6);
	(void) hand_append(&hand, 1, "torn", 4);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qlog.cut.7"), 6);
		CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qlog.1.cut.7"), 4 + ZEROS);
	}
	end();
}

/* The last record torn at each of its bytes: it is gone, everything before it stays. */
static void
test_last_record_torn_anywhere(void)
{
	static const uint8_t zeros[512];

	for (int i = 0; i < 60; i += 3)
	{
		uint64_t	position;
		uint64_t	tail;

		begin();
		put_four();
		position = hand_solo(&hand, 1, 7, 101, 6, 1);
		tail = hand_log(&hand, 1)->tail;
		hand_write(&hand, 1, 1, position + (uint64_t) i, zeros, tail - position - (uint64_t) i);
		if (run_ok(&run, &hand, &server, NULL))
		{
			CHECK_U64(run.r.end, 7);
			CHECK(run.r.changed == (i > 0));
			expect_positions(&run, 1, 6, 6);
			CHECK_U64(run.st->seq, i > 0 ? 7 : 6);
			expect_stable(NULL);
		}
		end();
	}
}

/* Each part of the last entry missing in turn: all of it is cut from every log. */
static void
test_part_of_last_entry_missing(void)
{
	for (int skip = 0; skip < 4; skip++)
	{
		uint64_t	tail1;
		uint64_t	tail2;

		begin();
		put_four();
		tail1 = hand_log(&hand, 1)->tail;
		tail2 = hand_log(&hand, 2)->tail;
		hand_entry(&entry, 7, 0, 0);
		hand_push(&entry, 1, 101, 6, 3);
		hand_push(&entry, 2, 102, 2, 1);
		hand_build(&hand, &entry);
		CHECK_U64(entry.npieces, 4);
		entry.pieces[skip].skip = true;
		hand_put(&hand, &entry);
		if (run_ok(&run, &hand, &server, NULL))
		{
			CHECK_U64(run.r.end, 7);
			expect_positions(&run, 1, 6, 6);
			expect_positions(&run, 2, 2, 2);
			CHECK_U64(qc_log_by_id(run.st, 1)->tail, tail1);
			CHECK_U64(qc_log_by_id(run.st, 2)->tail, tail2);
			CHECK(hand_size(&hand, "qlog/q1/r00000001.qlog.cut.7") != UINT64_MAX);
			CHECK(hand_size(&hand, "qlog/q2/r00000001.qlog.cut.7") != UINT64_MAX);
			expect_stable(NULL);
		}
		end();
	}
}

/* Ways in which the parts of an entry can be intact and not belong together. */
typedef void (*Spoil) (HandEntry *e);

static void
fewer_messages(HandEntry *e)
{
	HandPiece  *piece = hand_message_of(e, 1);

	piece->size = hand_message(&hand, piece->bytes, false, 7, 101, 6, 2);
}

static void
other_partition(HandEntry *e)
{
	HandPiece  *piece = hand_message_of(e, 1);

	piece->size = hand_message(&hand, piece->bytes, false, 7, 102, 6, 3);
}

static void
other_positions(HandEntry *e)
{
	HandPiece  *piece = hand_message_of(e, 1);

	piece->size = hand_message(&hand, piece->bytes, false, 7, 101, 7, 3);
}

/* Write the stub of queue 2's log anew. */
static void
put_stub(HandEntry *e, const void *payload, uint32_t len, uint32_t copies, uint64_t epoch)
{
	qc_record_put_stub(hand_end_of(e, 2)->bytes, payload, len, 7, copies, epoch, 5);
}

static void
stub_of_other_entry(HandEntry *e)
{
	put_stub(e, "another", 7, 2, EPOCH);
}

static void
stub_with_other_copies(HandEntry *e)
{
	const HandPiece *whole = hand_end_of(e, 1);

	put_stub(e, whole->bytes + QC_RECORD_HEADER_SIZE,
			 (uint32_t) whole->size - QC_RECORD_HEADER_SIZE, 3, EPOCH);
}

static void
stub_of_other_epoch(HandEntry *e)
{
	const HandPiece *whole = hand_end_of(e, 1);

	put_stub(e, whole->bytes + QC_RECORD_HEADER_SIZE,
			 (uint32_t) whole->size - QC_RECORD_HEADER_SIZE, 2, EPOCH + 9);
}

static void
part_in_another_log(HandEntry *e)
{
	HandPiece  *piece = &e->pieces[e->npieces];

	e->npieces++;
	*piece = *hand_end_of(e, 2);
	piece->log = 0;
}

static void
message_too_many(HandEntry *e)
{
	HandPiece  *piece = hand_message_of(e, 1);

	(void) hand_append(&hand, 1, piece->bytes, piece->size);
}

static void
whole_entry_twice(HandEntry *e)
{
	*hand_end_of(e, 2) = *hand_end_of(e, 1);
	e->pieces[e->npieces - 1].log = 2;
}

static void
test_parts_do_not_agree(void)
{
	static const Spoil spoils[] = {fewer_messages, other_partition, other_positions,
		stub_of_other_entry, stub_with_other_copies, stub_of_other_epoch, part_in_another_log,
	message_too_many, whole_entry_twice};

	for (size_t i = 0; i < sizeof(spoils) / sizeof(spoils[0]); i++)
	{
		begin();
		put_four();
		hand_entry(&entry, 7, 0, 0);
		hand_push(&entry, 1, 101, 6, 3);
		hand_push(&entry, 2, 102, 2, 1);
		hand_build(&hand, &entry);
		spoils[i] (&entry);
		hand_put(&hand, &entry);
		if (run_ok(&run, &hand, &server, NULL))
		{
			CHECK_U64(run.r.end, 7);
			expect_positions(&run, 1, 6, 6);
			expect_positions(&run, 2, 2, 2);
			expect_stable(NULL);
		}
		end();
	}
}

/* A seq that is nowhere: what comes after it goes, although it is whole. */
static void
test_missing_seq(void)
{
	begin();
	put_four();
	(void) hand_solo(&hand, 2, 8, 102, 2, 1);
	(void) hand_solo(&hand, 1, 9, 101, 6, 1);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK_U64(run.r.end, 7);
		CHECK_U64(run.r.required, 0);
		expect_positions(&run, 1, 6, 6);
		expect_positions(&run, 2, 2, 2);
		expect_stable(NULL);
	}
	end();
}

/* The cut goes through closed files: later ones are renamed, empty ones between stay or go. */
static void
test_cut_over_files(void)
{
	uint64_t	tail;

	begin();
	put_four();
	tail = hand_log(&hand, 1)->tail;
	(void) hand_solo(&hand, 1, 8, 101, 6, 1);
	hand_roll(&hand, 1);
	(void) hand_solo(&hand, 1, 9, 101, 7, 1);
	hand_roll(&hand, 1);
	(void) hand_solo(&hand, 1, 10, 101, 8, 1);
	hand_roll(&hand, 1);
	hand_make_file(&hand, "qlog/q1/r00000001.qidx", "derived", 7);
	hand_make_file(&hand, "qlog/q1/r00000002.qidx", "derived", 7);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK_U64(run.r.end, 7);
		CHECK_U64(qc_log_by_id(run.st, 1)->file, 1);
		CHECK_U64(qc_log_by_id(run.st, 1)->tail, tail);
		CHECK_U64(qc_log_by_id(run.st, 1)->last_file, 1);
		CHECK(hand_size(&hand, "qlog/q1/r00000001.qlog.cut.7") != UINT64_MAX);
		CHECK_U64(hand_size(&hand, "qlog/q1/r00000002.qlog.cut.7"), HAND_ALLOCATED);
		CHECK_U64(hand_size(&hand, "qlog/q1/r00000003.qlog.cut.7"), HAND_ALLOCATED);
		CHECK_U64(hand_size(&hand, "qlog/q1/r00000002.qlog"), UINT64_MAX);
		CHECK_U64(hand_size(&hand, "qlog/q1/r00000004.qlog"), UINT64_MAX);
		CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qidx"), UINT64_MAX);
		CHECK_U64(hand_size(&hand, "qlog/q1/r00000002.qidx"), UINT64_MAX);
		expect_stable(NULL);
	}
	end();
}

/* The newest file was being made when the server died. */
static void
test_newest_file_unfinished(void)
{
	static const uint64_t lens[] = {0, 20, 32, 5000};

	for (int i = 0; i < 4; i++)
	{
		uint8_t		zeros[5000] = {0};
		uint8_t		bytes[QC_FILE_HEADER_SIZE];
		QcFileHeader header;

		begin();
		put_four();
		hand_make_file(&hand, "qlog/q1/r00000002.qlog", zeros, (size_t) lens[i]);
		if (run_ok(&run, &hand, &server, NULL))
		{
			CHECK(run.r.changed);
			CHECK_U64(server.nepochs, 0);
			hand_read(&hand, 1, 2, 0, bytes, sizeof(bytes));
			CHECK_U64(qc_file_header_decode(bytes, sizeof(bytes), &header, &run.err), QC_OK);
			CHECK_U64(header.file_id, 2);
			CHECK_U64(header.first_seq, QC_FIRST_SEQ_AHEAD);
			CHECK_U64(qc_log_by_id(run.st, 1)->last_file, 2);
			CHECK_U64(qc_log_by_id(run.st, 1)->last_allocated, lens[i] < 32 ? 32 : lens[i]);
			expect_readable(&run, 1, 0, 6);
			expect_stable(NULL);
		}
		end();
	}
}

/* The write that rolled was torn: the new file's header and first record are rubbish. */
static void
test_header_torn_at_roll(void)
{
	begin();
	put_four();
	hand_roll(&hand, 1);
	hand_write(&hand, 1, 2, 0, "rubbish rubbish rubbish rubbish rubbish", 39);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK_U64(run.r.end, 7);
		CHECK_U64(hand_size(&hand, "qlog/q1/r00000002.qlog.cut.7"), HAND_ALLOCATED);
		CHECK_U64(qc_log_by_id(run.st, 1)->last_file, 1);
		expect_readable(&run, 1, 0, 6);
		expect_stable(NULL);
	}
	end();
}

/* ---- damage below what was durable ---- */

/* A whole entry missing below what a later record says was durable. */
static void
test_missing_below_durable(void)
{
	uint64_t	position;

	begin();
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
		begin();
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

	begin();
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

	begin();
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
	end();
}

/* The only record that tells what was durable stands behind the damage, in a later file. */
static void
test_durable_known_behind_damage(void)
{
	uint64_t	position;

	begin();
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

	begin();
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

	begin();
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
	end();
}

/* A damaged solo record: its queue is out of service, what follows in it has no place, others go on. */
static void
test_damaged_solo(void)
{
	uint64_t	position;

	begin();
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
	end();
}

/* A damaged solo record at the very end of its log, known durable from another one. */
static void
test_damaged_solo_at_the_end(void)
{
	uint64_t	position;
	uint64_t	tail;

	begin();
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
	end();
}

/* One damaged record excuses one missing entry, not two. */
static void
test_damage_excuses_one(void)
{
	uint64_t	position;

	begin();
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

	begin();
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
	end();
}

/* An entry of a newer format stops everything and is named. */
static void
test_unknown_effect(void)
{
	HandPiece  *piece;

	begin();
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
	begin();
	put_four();
	(void) hand_solo(&hand, 1, 7, 101, 3, 1);
	run_refused(&hand, &server, NULL, QC_DAMAGED, NULL, 0);
	hand_end(&hand);
}

/* ---- directories ---- */

static void
test_unknown_directories(void)
{
	begin();
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
	end();
}

/* A log of a queue that is gone, with parts that are needed until the mark has passed them: it stays. */
static void
test_needed_unknown_directory(void)
{
	begin();
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
	end();
}

static void
test_missing_directory(void)
{
	begin();
	put_four();
	qc_files_forget(&hand.files, 2, 0);
	CHECK_U64(hand.io->rename(hand.io->context, "qlog/q2", "qlog/q2.away"), 0);
	hand.durable = 6;
	(void) hand_solo(&hand, 1, 7, 101, 6, 1);
	run_refused(&hand, &server, NULL, QC_DAMAGED, NULL, 0);
	hand_end(&hand);

	/* nothing was ever written to it: only the queue tells that it must be there */
	begin();
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

	begin();
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
	end();
}

/* A queue-only entry that was not settled when the checkpoint was made: durable, as all below the mark. */
static void
test_open_queue_only_in_checkpoint(void)
{
	QcApply		apply = {.seq = 7,.created_at = 5,.recovering = true};
	QcEffect	effect = {.kind = QC_EFFECT_APPEND};
	Rows		rows = {0};
	RunOptions	options = {.rows = &rows};

	begin();
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
	end();
}

/* Damage below the mark is not recovery's affair; a file that ends there is. */
static void
test_damage_below_mark(void)
{
	Rows		rows = {0};
	RunOptions	options = {.rows = &rows};
	QcHandle	handle;

	begin();
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

	begin();
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
	end();
}

static void
test_new_timeline(void)
{
	begin();
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
	end();
}

/* Records of an epoch that had ended below their seq are nothing, wherever they stand. */
static void
test_void_epoch(void)
{
	QcEpoch		epoch = {.epoch = EPOCH + 1,.previous = EPOCH,.first_seq = 7,.timeline = 1};

	begin();
	put_four();

	/* an old part that a cut missed, in a log that the new entries do not touch */
	hand_entry(&entry, 8, 0, 0);
	hand_push(&entry, 2, 102, 2, 1);
	hand_write_entry(&hand, &entry);

	hand.epoch = EPOCH + 1;
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
		CHECK_U64(qc_epoch(run.st), EPOCH + 1);
		expect_stable(NULL);
	}
	end();
}

/* A lease whose pop never committed is released, and the release is logged. */
static void
test_lost_lease(void)
{
	QcDeliver	deliver = {.lease = 77,.queue = 1,.group = 0,.lease_us = 60000000};
	QcDeliverItem item = {.partition = 101,.first = 0,.count = 2,.attempt = 1};
	QcPopCommit commit = {.lease = 78};

	begin();
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
	end();
}

int
main(void)
{
	UNIT_RUN(test_first_start);
	UNIT_RUN(test_replay);
	UNIT_RUN(test_replay_hierarchical);
	UNIT_RUN(test_replay_over_files);
	UNIT_RUN(test_small_index);
	UNIT_RUN(test_state_memory_too_small);
	UNIT_RUN(test_interrupted);
	UNIT_RUN(test_torn_tail);
	UNIT_RUN(test_cut_name_is_taken);
	UNIT_RUN(test_last_record_torn_anywhere);
	UNIT_RUN(test_part_of_last_entry_missing);
	UNIT_RUN(test_parts_do_not_agree);
	UNIT_RUN(test_missing_seq);
	UNIT_RUN(test_cut_over_files);
	UNIT_RUN(test_newest_file_unfinished);
	UNIT_RUN(test_header_torn_at_roll);
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
