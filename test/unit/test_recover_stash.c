/*
 * test_recover_stash.c
 *		Recovery from the stash: what of it counts, and what is restored from it.
 */
#include "fixture_stash.h"

#include <string.h>

/* ---- the stash ---- */

/* Repeated redo, points outside the history, barriers: all passed over. */
static void
test_stash_is_sorted_out(void)
{
	QcWalMark	mark = {HAND_DIRECTORY, RUN_EPOCH, 0, 3};
	uint8_t		body[QC_WALREC_MARK_MAX];
	QcWriter	w;

	stash_fixture_begin();
	put_push(3, 70, 0, 2);
	hand_stash_entry(&stash, &hand, &entry, 1, 800);
	qc_writer_init(&w, body, sizeof(body));
	qc_wal_mark_put(&w, QC_WAL_BARRIER, &mark);
	hand_stash_add(&stash, QC_WAL_BARRIER, 1, 810, body, w.len);
	hand_stash_entry(&stash, &hand, &entry, 1, 800);

	/* from beyond the end of redo: not to be restored */
	build_push(4, 72, QC_ENTRY_CARRIED, 2, 1);
	hand_stash_entry(&stash, &hand, &entry, 1, 20000);
	server_commits(&server, 70);
	server_commits(&server, 72);
	if (recovers())
	{
		CHECK_U64(run.r.committed, 1);
		CHECK_U64(run.r.restored, 0);
		CHECK_U64(run.r.voided, 0);
		expect_readable(&run, 1, 0, 2);
	}
	fixture_end();
}

/* As above, with a committed transaction whose record names another directory. */
static void
test_stash_of_other_directory(void)
{
	HandStash	foreign;

	stash_fixture_begin();
	hand_stash_begin(&foreign);
	build_push(3, 70, QC_ENTRY_CARRIED, 0, 1);
	hand_stash_entry(&foreign, &hand, &entry, 1, 800);
	qc_store_u64(foreign.bytes + QC_STASH_MAGIC_SIZE + QC_STASH_HEAD_SIZE + 4, 99);
	hand_stash_add(&stash, QC_WAL_ENTRY, 1, 800,
				   foreign.bytes + QC_STASH_MAGIC_SIZE + QC_STASH_HEAD_SIZE,
				   foreign.len - QC_STASH_MAGIC_SIZE - QC_STASH_HEAD_SIZE);
	server_commits(&server, 70);
	if (recovers())
	{
		CHECK(!run.r.changed);
		expect_positions(&run, 1, 0, 0);
	}
	fixture_end();
}

/* A stash that ends anywhere in one of its records: that record is not there. */
static void
test_stash_torn_anywhere(void)
{
	size_t		len = 0;
	size_t		whole;

	do
	{
		size_t		first;

		stash_fixture_begin();
		put_push(3, 70, 0, 2);
		hand_stash_entry(&stash, &hand, &entry, 1, 800);
		first = stash.len;
		put_push(4, 71, 2, 1);
		hand_stash_entry(&stash, &hand, &entry, 1, 810);
		whole = stash.len;
		server_commits(&server, 70);
		server_commits(&server, 71);
		stash.len = len;
		if (recovers())
		{
			CHECK_U64(run.r.committed, (len >= first) + (len >= whole));
			CHECK_U64(run.r.aborted, (len < first) + (len < whole));
			CHECK_U64(run.r.restored, 0);
		}
		fixture_end();
		len += 7;
	}
	while (len < whole);
}

/* Damage with an intact record behind it may hide a committed entry. */
static void
test_stash_damaged_in_the_middle(void)
{
	stash_fixture_begin();
	put_push(3, 70, 0, 2);
	hand_stash_entry(&stash, &hand, &entry, 1, 800);
	stash.bytes[stash.len - 3] ^= 1;
	put_push(4, 71, 2, 1);
	hand_stash_entry(&stash, &hand, &entry, 1, 810);
	run_refused(&hand, &server, &options, QC_DAMAGED, QC_STASH_PATH, QC_STASH_MAGIC_SIZE);
	stash.bytes[0] = 'X';
	run_refused(&hand, &server, &options, QC_DAMAGED, QC_STASH_PATH, 0);
	hand_end(&hand);
}

/* ---- restoring ---- */

/* A committed entry that only the WAL has, over two logs: byte for byte where it would have been. */
static void
test_restore(void)
{
	uint8_t		back[HAND_RECORD_MAX];
	uint64_t	tail1;
	uint64_t	tail2;

	stash_fixture_begin();
	(void) hand_solo(&hand, 1, 3, 101, 0, 2);
	tail1 = hand_log(&hand, 1)->tail;
	tail2 = hand_log(&hand, 2)->tail;
	hand_entry(&entry, 4, 70, QC_ENTRY_CARRIED);
	hand_push(&entry, 2, 102, 0, 3);
	hand_push(&entry, 1, 101, 2, 2);
	hand_build(&hand, &entry);
	hand_stash_entry(&stash, &hand, &entry, 1, 800);
	server_commits(&server, 70);
	if (recovers())
	{
		CHECK_U64(run.r.end, 4);
		CHECK_U64(run.r.restored, 1);
		CHECK_U64(run.r.voided, 0);
		CHECK_U64(run.r.committed, 1);
		expect_readable(&run, 1, 0, 4);
		expect_readable(&run, 2, 0, 3);
		CHECK_U64(qc_queue_by_id(run.st, 2)->pushed, 3);
		CHECK_U64(server.nepochs, 1);
		CHECK_U64(server.first_seq, 5);
		for (int i = 0; i < entry.npieces; i++)
		{
			uint64_t   *at = entry.pieces[i].log == 1 ? &tail1 : &tail2;

			hand_read(&hand, entry.pieces[i].log, 1, *at, back, entry.pieces[i].size);
			CHECK_BYTES(back, entry.pieces[i].size, entry.pieces[i].bytes, entry.pieces[i].size);
			*at += entry.pieces[i].size;
		}
		expect_logged();
	}
	fixture_end();
}

/* Lost queue-only entries below a restored one: void entries, and gaps that readers skip. */
static void
test_restore_over_lost_ones(void)
{
	stash_fixture_begin();
	(void) hand_solo(&hand, 1, 3, 101, 0, 2);

	/* 4: lost, had positions 2 .. 4; 5: restored; 6: rolled back; 7: restored */
	build_push(5, 70, QC_ENTRY_CARRIED, 5, 2);
	hand_stash_entry(&stash, &hand, &entry, 1, 800);
	build_push(6, 71, QC_ENTRY_CARRIED, 7, 4);
	hand_stash_entry(&stash, &hand, &entry, 1, 810);
	build_push(7, 72, QC_ENTRY_CARRIED, 11, 1);
	hand_stash_entry(&stash, &hand, &entry, 1, 820);
	server_commits(&server, 70);
	server_commits(&server, 72);
	if (recovers())
	{
		CHECK_U64(run.r.end, 4);
		CHECK_U64(run.r.restored, 2);
		CHECK_U64(run.r.voided, 2);
		CHECK_U64(server.first_seq, 8);
		expect_positions(&run, 1, 12, 12);
		expect_readable(&run, 1, 0, 2);
		expect_aborted(&run, 1, 2, 3);
		expect_readable(&run, 1, 5, 7);
		expect_aborted(&run, 1, 7, 4);
		expect_readable(&run, 1, 11, 12);
		CHECK_U64(qc_queue_by_id(run.st, 1)->pushed, 5);
		expect_logged();
	}
	fixture_end();
}

/* An acknowledgement of messages that were lost: new messages must not be born acknowledged. */
static void
test_restore_ack_beyond_next(void)
{
	QcAck		ack = {.lease = 77, .group = 0};
	QcAckItem	item = {.partition = 101, .first = 2, .count = 3};

	stash_fixture_begin();
	(void) hand_solo(&hand, 1, 3, 101, 0, 2);
	hand_entry(&entry, 6, 70, QC_ENTRY_CARRIED);
	hand_effect(&entry, QC_EFFECT_ACK, &ack, 1);
	hand_item(&entry, QC_EFFECT_ACK, &item);
	hand_build(&hand, &entry);
	hand_stash_entry(&stash, &hand, &entry, 1, 800);
	server_commits(&server, 70);
	if (recovers())
	{
		CHECK_U64(run.r.restored, 1);
		CHECK_U64(run.r.voided, 2);
		expect_positions(&run, 1, 5, 5);
		expect_readable(&run, 1, 0, 2);
		expect_logged();
	}
	fixture_end();
}

/* Cut and restored in one: a torn copy in the log gives way to the one of the stash. */
static void
test_restore_after_cut(void)
{
	stash_fixture_begin();
	(void) hand_solo(&hand, 1, 3, 101, 0, 2);
	build_push(4, 70, QC_ENTRY_CARRIED, 2, 2);
	hand_stash_entry(&stash, &hand, &entry, 1, 800);
	entry.pieces[1].skip = true;
	hand_put(&hand, &entry);
	server_commits(&server, 70);
	if (recovers())
	{
		CHECK_U64(run.r.end, 4);
		CHECK(run.r.cut_bytes > 0);
		CHECK_U64(run.r.restored, 1);
		expect_readable(&run, 1, 0, 4);
		expect_logged();
	}
	fixture_end();
}

/* A queue that only the WAL knows: its directory is made as well. */
static void
test_restore_creation(void)
{
	QcWalEntry	wal;

	stash_fixture_begin();

	/* committed by itself: xid 0 in the WAL record */
	hand_entry(&entry, 3, 0, QC_ENTRY_CARRIED);
	hand_queue(&entry, 3, "three");
	hand_build(&hand, &entry);
	hand_stash_entry(&stash, &hand, &entry, 1, 800);
	CHECK_U64(qc_wal_entry_decode(stash.bytes + QC_STASH_MAGIC_SIZE + QC_STASH_HEAD_SIZE,
								  stash.len - QC_STASH_MAGIC_SIZE - QC_STASH_HEAD_SIZE, &wal,
								  &run.err), QC_OK);
	CHECK_U64(wal.xid, 0);
	hand_entry(&entry, 4, 70, QC_ENTRY_CARRIED);
	hand_push(&entry, 3, 103, 0, 2);
	hand_build(&hand, &entry);
	hand_stash_entry(&stash, &hand, &entry, 1, 810);
	server_commits(&server, 70);
	if (recovers())
	{
		CHECK_U64(run.r.restored, 2);
		CHECK_U64(qc_queue_by_id(run.st, 3)->state, QC_QUEUE_LIVE);
		expect_readable(&run, 3, 0, 2);
		CHECK(hand_size(&hand, "qlog/q3/r00000001.qlog") >= 65536);
		expect_logged();
	}
	fixture_end();
}

/* The same where an unfinished directory stands in the way. */
static void
test_restore_creation_over_leftover(void)
{
	stash_fixture_begin();
	(void) hand_log(&hand, 3);
	(void) hand_append(&hand, 3, "rubbish", 7);
	hand_entry(&entry, 3, 0, QC_ENTRY_CARRIED);
	hand_queue(&entry, 3, "three");
	hand_build(&hand, &entry);
	hand_stash_entry(&stash, &hand, &entry, 1, 800);
	hand_entry(&entry, 4, 70, QC_ENTRY_CARRIED);
	hand_push(&entry, 3, 103, 0, 2);
	hand_build(&hand, &entry);
	hand_stash_entry(&stash, &hand, &entry, 1, 810);
	server_commits(&server, 70);
	if (recovers())
	{
		expect_readable(&run, 3, 0, 2);
		CHECK(hand_size(&hand, "qlog/q3.cut.3/r00000001.qlog") != UINT64_MAX);
		expect_logged();
	}
	fixture_end();
}

/* Too large for the WAL, committed, and not in the log: refused, unless the DBA accepts the gap. */
static void
test_referenced_is_missing(void)
{
	stash_fixture_begin();
	(void) hand_solo(&hand, 1, 3, 101, 0, 2);
	build_push(4, 70, QC_ENTRY_REFERENCED, 2, 2);
	hand_stash_entry(&stash, &hand, &entry, 1, 800);
	build_push(5, 71, QC_ENTRY_CARRIED, 4, 1);
	hand_stash_entry(&stash, &hand, &entry, 1, 810);
	server_commits(&server, 71);

	/* rolled back: nobody misses it */
	if (recovers())
	{
		CHECK_U64(run.r.voided, 1);
		CHECK_U64(run.r.restored, 1);
	}
	fixture_end();

	stash_fixture_begin();
	(void) hand_solo(&hand, 1, 3, 101, 0, 2);
	build_push(4, 70, QC_ENTRY_REFERENCED, 2, 2);
	hand_stash_entry(&stash, &hand, &entry, 1, 800);
	server_commits(&server, 70);
	run_refused(&hand, &server, &options, QC_DAMAGED, QC_STASH_PATH, UINT64_MAX);
	options.allow_gap = true;
	if (recovers())
		expect_positions(&run, 1, 2, 2);
	fixture_end();
}

/* Records of an epoch that ended below their seq were overtaken by another history. */
static void
test_stash_of_ended_epoch(void)
{
	QcEpoch		epoch = {.epoch = RUN_EPOCH + 1, .previous = RUN_EPOCH, .first_seq = 3, .timeline = 1};

	stash_fixture_begin();
	build_push(4, 70, QC_ENTRY_CARRIED, 0, 2);
	hand_stash_entry(&stash, &hand, &entry, 1, 800);
	hand.epoch = RUN_EPOCH + 1;
	hand_entry(&entry, 3, 0, 0);
	hand_effect(&entry, QC_EFFECT_EPOCH, &epoch, 0);
	hand_write_entry(&hand, &entry);
	server_commits(&server, 70);
	if (recovers())
	{
		CHECK(!run.r.changed);
		CHECK_U64(run.r.restored, 0);
		expect_positions(&run, 1, 0, 0);
	}
	fixture_end();
}

/* The epoch's WAL record is there, its log entry is not: the stash alone tells that the old epoch has ended. */
static void
test_epoch_known_from_stash(void)
{
	QcWalMark	mark = {HAND_DIRECTORY, RUN_EPOCH + 1, RUN_EPOCH, 3};
	uint8_t		body[QC_WALREC_MARK_MAX];
	QcWriter	w;

	stash_fixture_begin();
	build_push(4, 70, QC_ENTRY_CARRIED, 0, 2);
	hand_stash_entry(&stash, &hand, &entry, 1, 800);
	qc_writer_init(&w, body, sizeof(body));
	qc_wal_mark_put(&w, QC_WAL_EPOCH, &mark);
	hand_stash_add(&stash, QC_WAL_EPOCH, 1, 820, body, w.len);
	server_commits(&server, 70);
	if (recovers())
	{
		CHECK_U64(run.r.restored, 0);
		CHECK_U64(server.nepochs, 1);
		CHECK_U64(server.first_seq, 3);
		expect_positions(&run, 1, 0, 0);
		run_end(&run);

		/* and with the stash still there: that epoch never came to be, so nothing is to be done */
		CHECK(recovers());
		CHECK(!run.r.changed);
	}
	fixture_end();
}

/* A rolled back transaction at or above the end: its seq was used, so the epoch ends. */
static void
test_used_seq_ends_epoch(void)
{
	stash_fixture_begin();
	build_push(3, 70, QC_ENTRY_CARRIED, 0, 2);
	hand_stash_entry(&stash, &hand, &entry, 1, 800);
	if (recovers())
	{
		CHECK_U64(run.r.restored, 0);
		CHECK_U64(run.r.voided, 0);
		CHECK_U64(server.nepochs, 1);
		CHECK_U64(server.first_seq, 3);
	}
	fixture_end();
}

/* Restoring needs more room than the files have: they grow, and logs roll. */
static void
test_restore_rolls(void)
{
	stash_fixture_begin();
	for (uint64_t seq = 3; seq < 33; seq++)
		(void) hand_solo(&hand, 1, seq, 101, (seq - 3) * 30, 30);
	for (uint64_t seq = 33; seq < 68; seq++)
	{
		build_push(seq, 70 + seq, QC_ENTRY_CARRIED, (seq - 3) * 30, 30);
		hand_stash_entry(&stash, &hand, &entry, 1, 800 + seq);
		server_commits(&server, 70 + seq);
	}
	if (recovers())
	{
		CHECK_U64(run.r.restored, 35);
		CHECK(qc_log_by_id(run.st, 1)->file > 1);
		expect_readable(&run, 1, 0, 65 * 30);
		expect_logged();
	}
	fixture_end();
}

int
main(void)
{
	UNIT_RUN(test_stash_is_sorted_out);
	UNIT_RUN(test_stash_of_other_directory);
	UNIT_RUN(test_stash_torn_anywhere);
	UNIT_RUN(test_stash_damaged_in_the_middle);
	UNIT_RUN(test_restore);
	UNIT_RUN(test_restore_over_lost_ones);
	UNIT_RUN(test_restore_ack_beyond_next);
	UNIT_RUN(test_restore_after_cut);
	UNIT_RUN(test_restore_creation);
	UNIT_RUN(test_restore_creation_over_leftover);
	UNIT_RUN(test_referenced_is_missing);
	UNIT_RUN(test_stash_of_ended_epoch);
	UNIT_RUN(test_epoch_known_from_stash);
	UNIT_RUN(test_used_seq_ends_epoch);
	UNIT_RUN(test_restore_rolls);
	return unit_end();
}
