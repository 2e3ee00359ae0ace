/*
 * test_recover_joint.c
 *		Recovery of joint entries that stand in the log: which decision counts, and who is asked.
 */
#include "fixture_stash.h"
#include "qc_apply.h"

#include <string.h>

/* A decision entry in the log. */
static void
put_decision(uint64_t at, uint32_t timeline, uint64_t seq, uint64_t lsn, bool committed)
{
	QcDecision	decision = {.timeline = timeline};
	QcDecisionItem item = {.seq = seq, .lsn = lsn, .committed = committed};

	hand_entry(&entry, at, 0, 0);
	hand_effect(&entry, QC_EFFECT_DECISION, &decision, 1);
	hand_item(&entry, QC_EFFECT_DECISION, &item);
	hand_write_entry(&hand, &entry);
}

static void
put_confirm(uint64_t at, uint32_t timeline, uint64_t seq, uint64_t lsn)
{
	QcConfirm	confirm = {.seq = seq, .timeline = timeline, .lsn = lsn};

	hand_entry(&entry, at, 0, 0);
	hand_effect(&entry, QC_EFFECT_CONFIRM, &confirm, 0);
	hand_write_entry(&hand, &entry);
}

/* ---- deciding ---- */

/* The commit log knows the xid as committed, but the entry's WAL record is not known to be durable: a stranger's. */
static void
test_xid_is_not_asked(void)
{
	stash_fixture_begin();
	put_push(3, 70, 0, 2);
	server_commits(&server, 70);
	if (recovers())
	{
		CHECK_U64(server.nasked, 0);
		CHECK_U64(run.r.aborted, 1);
		CHECK_U64(run.r.committed, 0);
		expect_positions(&run, 1, 2, 2);
		expect_aborted(&run, 1, 0, 2);
		CHECK_U64(qc_queue_by_id(run.st, 1)->pushed, 0);
		CHECK_U64(server.nepochs, 0);
		expect_logged();
	}
	fixture_end();
}

static void
test_stashed(void)
{
	for (int committed = 0; committed < 2; committed++)
	{
		stash_fixture_begin();
		put_push(3, 70, 0, 2);
		hand_stash_entry(&stash, &hand, &entry, 1, 800);
		if (committed)
			server_commits(&server, 70);
		if (recovers())
		{
			CHECK_U64(run.r.committed, committed);
			CHECK_U64(run.r.aborted, !committed);
			CHECK_U64(run.r.restored, 0);
			CHECK_U64(qc_queue_by_id(run.st, 1)->pushed, committed ? 2 : 0);
			if (committed)
				expect_readable(&run, 1, 0, 2);
			else
				expect_aborted(&run, 1, 0, 2);
			expect_logged();
		}
		fixture_end();
	}
}

/* The stash holds another transaction's record of that seq. */
static void
test_stashed_other_xid(void)
{
	stash_fixture_begin();
	build_push(3, 71, QC_ENTRY_CARRIED, 0, 2);
	hand_stash_entry(&stash, &hand, &entry, 1, 800);
	put_push(3, 70, 0, 2);
	server_commits(&server, 70);
	server_commits(&server, 71);
	if (recovers())
		CHECK_U64(run.r.aborted, 1);
	fixture_end();
}

/* At or below a confirmed seq the commit log is asked; above it is not. */
static void
test_confirmed(void)
{
	stash_fixture_begin();
	put_push(3, 70, 0, 2);
	put_push(4, 71, 2, 2);
	put_confirm(5, 1, 4, 900);
	put_push(6, 72, 4, 2);
	server_commits(&server, 70);
	server_commits(&server, 72);
	if (recovers())
	{
		CHECK_U64(server.nasked, 2);
		CHECK_U64(run.r.committed, 1);
		CHECK_U64(run.r.aborted, 2);
		expect_readable(&run, 1, 0, 2);
		expect_aborted(&run, 1, 2, 4);
		expect_logged();
	}
	fixture_end();
}

/* A confirm that the server's history does not hold confirms nothing. */
static void
test_confirm_outside_history(void)
{
	stash_fixture_begin();
	put_push(3, 70, 0, 2);
	put_confirm(4, 1, 3, 20000);
	server_commits(&server, 70);
	if (recovers())
	{
		CHECK_U64(server.nasked, 0);
		CHECK_U64(run.st->confirmed_seq, 0);
		CHECK_U64(run.r.aborted, 1);
	}
	fixture_end();
}

static void
test_logged_decision(void)
{
	stash_fixture_begin();
	put_push(3, 70, 0, 2);
	put_push(4, 71, 2, 3);
	put_decision(5, 1, 3, 950, true);
	put_decision(6, 1, 4, 0, false);
	if (recovers())
	{
		CHECK(!run.r.changed);
		CHECK_U64(server.nasked, 0);
		expect_positions(&run, 1, 5, 5);
		expect_readable(&run, 1, 0, 2);
		expect_aborted(&run, 1, 2, 3);
		expect_logged();
	}
	fixture_end();
}

/*
 * The stash has entries that are decided in the log, and one that is not: the commit log may not reach back to the first ones any
 * more, and is asked for the other alone.
 */
static void
test_decided_is_not_asked(void)
{
	stash_fixture_begin();
	put_push(3, 70, 0, 2);
	hand_stash_entry(&stash, &hand, &entry, 1, 800);
	put_push(4, 71, 2, 3);
	hand_stash_entry(&stash, &hand, &entry, 1, 810);
	put_push(5, 72, 5, 1);
	hand_stash_entry(&stash, &hand, &entry, 1, 820);
	put_decision(6, 1, 3, 800, true);
	put_decision(7, 1, 4, 0, false);
	server_commits(&server, 72);
	if (recovers())
	{
		CHECK_U64(server.nasked, 1);
		CHECK_U64(server.asked[0], 72);
		CHECK_U64(run.r.committed, 1);
		CHECK_U64(run.r.aborted, 0);
		expect_readable(&run, 1, 0, 2);
		expect_aborted(&run, 1, 2, 3);
		expect_readable(&run, 1, 5, 1);
		expect_logged();
	}
	fixture_end();
}

/* Restored to an earlier point: a decision from beyond it does not count, the entry is decided again. */
static void
test_decision_outside_history(void)
{
	stash_fixture_begin();
	put_push(3, 70, 0, 2);
	put_decision(4, 1, 3, 20000, true);
	if (recovers())
	{
		CHECK(run.r.changed);
		CHECK_U64(run.r.aborted, 1);
		expect_aborted(&run, 1, 0, 2);
	}
	run_end(&run);

	/* the new decision counts from now on, even where the old one would as well */
	server.redo_end = 30000;
	if (recovers())
	{
		CHECK(!run.r.changed);
		expect_aborted(&run, 1, 0, 2);
	}
	fixture_end();
}

/* Another timeline's decision counts up to the fork only. */
static void
test_decision_of_other_timeline(void)
{
	QcEpoch		epoch = {.epoch = RUN_EPOCH + 1, .previous = RUN_EPOCH, .first_seq = 7, .timeline = 2};

	stash_fixture_begin();
	put_push(3, 70, 0, 1);
	put_push(4, 71, 1, 1);
	put_decision(5, 1, 3, 400, true);
	put_decision(6, 1, 4, 600, true);
	hand.epoch = RUN_EPOCH + 1;
	hand_entry(&entry, 7, 0, 0);
	hand_effect(&entry, QC_EFFECT_EPOCH, &epoch, 0);
	hand_write_entry(&hand, &entry);
	server.timeline = 2;
	server.fork_lsn = 500;
	if (recovers())
	{
		CHECK_U64(run.r.aborted, 1);
		expect_readable(&run, 1, 0, 1);
		expect_aborted(&run, 1, 1, 1);
		expect_logged();
	}
	fixture_end();
}

/* Of several that count, the one logged last does. */
static void
test_last_decision_counts(void)
{
	stash_fixture_begin();
	put_push(3, 70, 0, 2);
	put_push(4, 71, 2, 2);
	put_decision(5, 1, 3, 0, false);
	put_decision(6, 1, 4, 950, true);
	put_decision(7, 1, 3, 960, true);
	put_decision(8, 1, 4, 0, false);
	put_decision(9, 1, 3, 970, true);
	if (recovers())
	{
		CHECK(!run.r.changed);
		expect_readable(&run, 1, 0, 2);
		expect_aborted(&run, 1, 2, 2);
	}
	run_end(&run);

	/* one that is cut away does not */
	put_decision(11, 1, 3, 0, false);
	if (recovers())
		expect_readable(&run, 1, 0, 2);
	fixture_end();
}

/* A decision behind the end overrides nothing, although it was read. */
static void
test_decision_behind_end(void)
{
	uint64_t	position;

	stash_fixture_begin();
	put_push(3, 70, 0, 2);
	put_decision(4, 1, 3, 950, true);
	position = hand_solo(&hand, 1, 5, 101, 2, 1);
	put_decision(6, 1, 3, 0, false);
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qlog", position + 90, 1), 0);
	if (recovers())
	{
		CHECK_U64(run.r.end, 5);
		CHECK_U64(run.r.aborted, 0);
		expect_readable(&run, 1, 0, 2);
	}
	fixture_end();
}

/* Acknowledging inside a joint entry: done when committed, otherwise the lease is as before. */
static void
test_joint_ack(void)
{
	for (int committed = 0; committed < 2; committed++)
	{
		QcDeliver	deliver = {.lease = 77, .queue = 1, .group = 0, .lease_us = 60000000};
		QcDeliverItem run_item = {.partition = 101, .first = 0, .count = 3, .attempt = 1};
		QcPopCommit commit = {.lease = 77};
		QcAck		ack = {.lease = 77, .group = 0};
		QcAckItem	item = {.partition = 101, .first = 0, .count = 3};

		stash_fixture_begin();
		(void) hand_solo(&hand, 1, 3, 101, 0, 3);
		hand_entry(&entry, 4, 0, 0);
		hand_effect(&entry, QC_EFFECT_DELIVER, &deliver, 1);
		hand_item(&entry, QC_EFFECT_DELIVER, &run_item);
		hand_effect(&entry, QC_EFFECT_POP_COMMIT, &commit, 0);
		hand_write_entry(&hand, &entry);
		hand_entry(&entry, 5, 70, QC_ENTRY_CARRIED);
		hand_effect(&entry, QC_EFFECT_ACK, &ack, 1);
		hand_item(&entry, QC_EFFECT_ACK, &item);
		hand_write_entry(&hand, &entry);
		hand_stash_entry(&stash, &hand, &entry, 1, 800);
		if (committed)
			server_commits(&server, 70);
		if (recovers())
		{
			const QcLease *lease = qc_lease_by_id(run.st, 77);

			CHECK((lease == NULL) == (committed == 1));
			CHECK_U64(qc_queue_by_id(run.st, 1)->acked, committed ? 3 : 0);
			if (lease != NULL)
			{
				CHECK_U64(lease->pin_seq, 0);
				CHECK_U64(lease->nslots, 3);
			}
			expect_logged();
		}
		fixture_end();
	}
}

/* Undecided entries of the checkpoint are decided as those of the log. */
static void
test_open_in_checkpoint(void)
{
	for (int how = 0; how < 3; how++)
	{
		Rows		rows = {0};
		Server		other;
		QcRing	   *ring;

		stash_fixture_begin();
		put_push(3, 70, 0, 2);

		/* the state with the entry open, as a checkpointer would have copied it */
		server_begin(&other);
		if (recovers())
		{
			QcApply		apply = {.seq = run.st->seq + 1, .xid = 71, .created_at = 5, .recovering = true};
			QcEffect	effect = {.kind = QC_EFFECT_APPEND};

			effect.u.append = (QcAppend)
			{
				102, 2, 0, 2, 1
			};
			CHECK(qc_apply_begin(run.st, &apply));
			CHECK_U64(qc_apply_effect(run.st, &apply, &effect, &run.err), QC_OK);
			hand_log(&hand, 0)->tail = qc_log_by_id(run.st, 0)->tail;
			hand_entry(&entry, apply.seq, 71, QC_ENTRY_CARRIED);
			hand_push(&entry, 2, 102, 0, 2);
			hand_write_entry(&hand, &entry);
			qc_log_by_id(run.st, 2)->tail = hand_log(&hand, 2)->tail;
			rows_take(&rows, run.st);
			if (how == 0)
				hand_stash_entry(&stash, &hand, &entry, 1, 800);
			else if (how == 1)
				put_decision(apply.seq + 1, 1, apply.seq, 960, true);
		}
		run_end(&run);
		server_commits(&server, 71);
		options.rows = &rows;
		if (recovers())
		{
			ring = run.ring;
			CHECK_U64(qc_ring_durable(ring), run.st->seq);
			CHECK_U64(qc_queue_by_id(run.st, 2)->pushed, how < 2 ? 2 : 0);
			expect_positions(&run, 2, 2, 2);
			if (how < 2)
				expect_readable(&run, 2, 0, 2);
			else
				expect_aborted(&run, 2, 0, 2);
		}
		rows_free(&rows);
		fixture_end();
	}
}

/* ---- what the server cannot say ---- */

/* Recovery ends with the reason, changes nothing and keeps nothing open; the next one finds all as it was. */
static void
expect_failure(ServerFault fault, QcStatus code, const char *text)
{
	server.fail = fault;
	run_refused(&hand, &server, &options, code, NULL, 0);
	CHECK_U64(run_recovery(&run, &hand, &server, &options), code);
	CHECK_STR(run.err.text, text);
	run_end(&run);
	qc_files_close(&hand.files);
	CHECK_U64(sim_disk_handles(hand.disk), 0);
	server.fail = FAIL_NOTHING;
}

static void
test_commit_log_fails(void)
{
	for (int stashed = 0; stashed < 2; stashed++)
	{
		stash_fixture_begin();
		put_push(3, 70, 0, 2);
		if (stashed)
			hand_stash_entry(&stash, &hand, &entry, 1, 800);
		else
			put_confirm(4, 1, 3, 900);
		server_commits(&server, 70);
		expect_failure(FAIL_XID, QC_IO, "no commit log");
		if (recovers())
			CHECK_U64(run.r.committed, 1);
		fixture_end();
	}
}

static void
test_epoch_fails(void)
{
	stash_fixture_begin();
	put_push(3, 70, 0, 2);
	options.copied = true;
	expect_failure(FAIL_RANDOM, QC_INTERNAL, "no random numbers");
	expect_failure(FAIL_EPOCH, QC_IO, "no WAL");
	if (recovers())
		CHECK_U64(server.nepochs, 1);
	fixture_end();
}

int
main(void)
{
	UNIT_RUN(test_xid_is_not_asked);
	UNIT_RUN(test_stashed);
	UNIT_RUN(test_stashed_other_xid);
	UNIT_RUN(test_confirmed);
	UNIT_RUN(test_confirm_outside_history);
	UNIT_RUN(test_logged_decision);
	UNIT_RUN(test_decided_is_not_asked);
	UNIT_RUN(test_decision_outside_history);
	UNIT_RUN(test_decision_of_other_timeline);
	UNIT_RUN(test_last_decision_counts);
	UNIT_RUN(test_decision_behind_end);
	UNIT_RUN(test_joint_ack);
	UNIT_RUN(test_open_in_checkpoint);
	UNIT_RUN(test_commit_log_fails);
	UNIT_RUN(test_epoch_fails);
	return unit_end();
}
