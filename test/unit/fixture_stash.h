/*
 * fixture_stash.h
 *		The fixture (fixture.h) with a stash, for tests of joint entries: those in the log, and those that only the WAL has.
 */
#ifndef FIXTURE_STASH_H
#define FIXTURE_STASH_H

#include "fixture.h"

extern HandStash stash;
extern RunOptions options;		/* of the recovery: with this stash */

/* The fixture, with an empty stash. */
extern void stash_fixture_begin(void);

/* A joint entry that pushes count messages at first to queue 1, built; put: a carried one, in the log too. */
extern void build_push(uint64_t seq, uint64_t xid, uint16_t flags, uint64_t first, uint32_t count);
extern void put_push(uint64_t seq, uint64_t xid, uint64_t first, uint32_t count);

/* Recovery with the stash succeeds. */
extern bool recovers(void);

/* Once more, without the stash: all verdicts are in the log now. */
extern void expect_logged(void);

#endif							/* FIXTURE_STASH_H */
