/*
 * test_recover.c
 *		Recovery of the logs themselves: replay, torn ends, and what is cut.
 *
 * Every directory here is made by hand (handmade.h), with known bytes in known places.
 */
#include "fixture.h"

#include <string.h>

#define ZEROS 64				/* kept behind what is cut */

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
	fixture_end();
}

static void
test_replay(void)
{
	fixture_begin();
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
	fixture_end();
}

/* The same in the hierarchical layout. */
static void
test_replay_hierarchical(void)
{
	QcEpoch		epoch = {.epoch = RUN_EPOCH, .first_seq = 1, .timeline = 1};

	hand_begin(&hand, QC_LAYOUT_HIERARCHICAL, 11);
	server_begin(&server);
	hand.epoch = RUN_EPOCH;
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
	fixture_end();
}

/* Logs that roll, and files created ahead. */
static void
test_replay_over_files(void)
{
	fixture_begin();
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
	fixture_end();
}

/* Room in the memory index for fewer records than there are: the rest is found in the files. */
static void
test_small_index(void)
{
	RunOptions	options = {.index_bytes = 1};

	fixture_begin();
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
	fixture_end();
}

static void
test_state_memory_too_small(void)
{
	RunOptions	options = {.state_bytes = 1};

	fixture_begin();
	put_four();
	run_refused(&hand, &server, &options, QC_FULL, NULL, 0);
	hand_end(&hand);
}

/* The caller may stop it at any question; that changes nothing before anything is to be changed. */
static void
test_interrupted(void)
{
	fixture_begin();
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

	fixture_begin();
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
		CHECK_U64(server.old_epoch, RUN_EPOCH);
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
	fixture_end();
}

/* A name that is taken is not overwritten. */
static void
test_cut_name_is_taken(void)
{
	fixture_begin();
	put_four();
	hand_make_file(&hand, "qlog/q1/r00000001.qlog.cut.7", "before", 6);
	(void) hand_append(&hand, 1, "torn", 4);
	if (run_ok(&run, &hand, &server, NULL))
	{
		CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qlog.cut.7"), 6);
		CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qlog.1.cut.7"), 4 + ZEROS);
	}
	fixture_end();
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

		fixture_begin();
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
		fixture_end();
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

		fixture_begin();
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
		fixture_end();
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
	put_stub(e, "another", 7, 2, RUN_EPOCH);
}

static void
stub_with_other_copies(HandEntry *e)
{
	const HandPiece *whole = hand_end_of(e, 1);

	put_stub(e, whole->bytes + QC_RECORD_HEADER_SIZE,
			 (uint32_t) whole->size - QC_RECORD_HEADER_SIZE, 3, RUN_EPOCH);
}

static void
stub_of_other_epoch(HandEntry *e)
{
	const HandPiece *whole = hand_end_of(e, 1);

	put_stub(e, whole->bytes + QC_RECORD_HEADER_SIZE,
			 (uint32_t) whole->size - QC_RECORD_HEADER_SIZE, 2, RUN_EPOCH + 9);
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
part_in_a_later_log(HandEntry *e)
{
	part_in_another_log(e);
	e->pieces[e->npieces - 1].log = 5;
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
		part_in_a_later_log, message_too_many, whole_entry_twice};

	for (size_t i = 0; i < sizeof(spoils) / sizeof(spoils[0]); i++)
	{
		fixture_begin();
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
		fixture_end();
	}
}

/* A seq that is nowhere: what comes after it goes, although it is whole. */
static void
test_missing_seq(void)
{
	fixture_begin();
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
	fixture_end();
}

/* The cut goes through closed files: later ones are renamed, empty ones between stay or go. */
/* Indexes are not looked at: a right one, damaged ones, one of another file, and one of a file that is not there. */
static void
test_indexes_do_not_matter(void)
{
	uint64_t	state;
	uint64_t	digest;

	fixture_begin();
	put_four();
	for (uint64_t file = 2; file <= 5; file++)
	{
		hand_roll(&hand, 1);
		(void) hand_solo(&hand, 1, 5 + file, 101, 4 + file, 1);
	}
	hand_sync(&hand);
	if (run_ok(&run, &hand, &server, NULL))
	{
		state = state_digest(run.st);
		run_end(&run);
		CHECK_U64(qc_read_build_idx(&hand.files, 1, 1, NULL), QC_OK);
		CHECK_U64(qc_read_build_idx(&hand.files, 1, 3, NULL), QC_OK);
		CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000003.qidx", 60, 1), 0);
		CHECK_U64(qc_read_build_idx(&hand.files, 1, 4, NULL), QC_OK);
		CHECK_U64(hand.io->rename(hand.io->context, "qlog/q1/r00000004.qidx", "qlog/q1/r00000005.qidx"), 0);
		hand_make_file(&hand, "qlog/q1/r00000002.qidx", "", 0);
		hand_make_file(&hand, "qlog/q1/r00000009.qidx", "stray", 5);
		hand_sync(&hand);
		digest = sim_disk_digest(hand.disk);
		if (run_ok(&run, &hand, &server, NULL))
		{
			CHECK(!run.r.changed);
			CHECK_U64(sim_disk_digest(hand.disk), digest);
			CHECK_U64(state_digest(run.st), state);
			CHECK_U64(qc_log_by_id(run.st, 1)->last_file, 5);
			expect_readable(&run, 1, 0, 10);
		}
	}
	fixture_end();
}

static void
test_cut_over_files(void)
{
	uint64_t	tail;

	fixture_begin();
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
	fixture_end();
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

		fixture_begin();
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
		fixture_end();
	}
}

/* The write that rolled was torn: the new file's header and first record are rubbish. */
static void
test_header_torn_at_roll(void)
{
	fixture_begin();
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
	fixture_end();
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
	UNIT_RUN(test_indexes_do_not_matter);
	UNIT_RUN(test_cut_over_files);
	UNIT_RUN(test_newest_file_unfinished);
	UNIT_RUN(test_header_torn_at_roll);
	return unit_end();
}
