/*
 * fixture_stash.c
 *		The fixture of recovery tests with joint entries.
 */
#include "fixture_stash.h"

#include <string.h>

HandStash	stash;
RunOptions	options;

void
stash_fixture_begin(void)
{
	fixture_begin();
	hand_stash_begin(&stash);
	memset(&options, 0, sizeof(options));
	options.stash = &stash;
}

void
build_push(uint64_t seq, uint64_t xid, uint16_t flags, uint64_t first, uint32_t count)
{
	hand_entry(&entry, seq, xid, flags);
	hand_push(&entry, 1, 101, first, count);
	hand_build(&hand, &entry);
}

void
put_push(uint64_t seq, uint64_t xid, uint64_t first, uint32_t count)
{
	build_push(seq, xid, QC_ENTRY_CARRIED, first, count);
	hand_put(&hand, &entry);
}

void
expect_logged(void)
{
	uint64_t	digest = sim_disk_digest(hand.disk);
	uint64_t	state = state_digest(run.st);

	run_end(&run);
	server.ncommitted = 0;
	if (!run_ok(&run, &hand, &server, NULL))
		return;
	CHECK(!run.r.changed);
	CHECK_U64(server.nasked, 0);
	CHECK_U64(sim_disk_digest(hand.disk), digest);
	CHECK_U64(state_digest(run.st), state);
}

bool
recovers(void)
{
	return run_ok(&run, &hand, &server, &options);
}
