/*
 * fixture.h
 *		The directory that most tests of recovery begin with, and the variables that they all use.
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "recovery.h"

/*
 * The fixture of most tests: a directory with queues 1 and 2.  Seq 1 begins the epoch RUN_EPOCH, seq 2 makes both
 * queues.  The server has seen it, so opening it has nothing to change.
 */
#define RUN_EPOCH	500
extern Hand hand;
extern Server server;
extern Run	run;
extern HandEntry entry;			/* for the test's use */

extern void fixture_begin(void);
extern void fixture_end(void);

/* seqs 3 .. 6: a solo record to each queue, then an entry over both (it stays in `entry`), one more solo record. */
extern void put_four(void);

/* Opening again changes nothing and gives the same state. */
extern void expect_stable(const RunOptions *options);

#endif							/* FIXTURE_H */
