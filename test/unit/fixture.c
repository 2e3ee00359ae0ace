/*
 * fixture.c
 *		The directory that most tests of recovery begin with.
 */
#include "fixture.h"

Hand		hand;
Server		server;
Run			run;
HandEntry	entry;

void
fixture_begin(void)
{
	QcEpoch		epoch = {.epoch = RUN_EPOCH, .first_seq = 1, .timeline = 1};

	hand_begin(&hand, QC_LAYOUT_FLAT, 11);
	server_begin(&server);
	hand.epoch = RUN_EPOCH;
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

void
fixture_end(void)
{
	run_end(&run);
	hand_end(&hand);
}

void
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

void
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
