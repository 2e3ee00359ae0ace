/*
 * test_recover_crash.c
 *		Recovery that is itself cut short: any number of crashes in a row gives the state that one undisturbed run gives.
 *
 * Each scenario is made once and copied for every step at which the power fails, in every way in which unsynced bytes
 * and names may be lost, with a second failure somewhere in the recovery that follows.
 */
#include "recovery.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define EPOCH 500

typedef struct Scenario
{
	Hand		hand;
	Server		server;
	HandStash	stash;
	int			nkept;			/* records that are cut and must not be lost */
	HandPiece	kept[4];
	bool		redo_finds_epoch;	/* the epoch's WAL record gets into the stash of the next start */
	uint64_t	digest;			/* of the state that must come out */
} Scenario;

static HandEntry entry;

static void
begin(Scenario *s, uint64_t seed)
{
	QcEpoch		epoch = {.epoch = EPOCH, .first_seq = 1, .timeline = 1};

	memset(s, 0, sizeof(*s));
	hand_begin(&s->hand, QC_LAYOUT_FLAT, seed);
	server_begin(&s->server);
	hand_stash_begin(&s->stash);
	s->hand.epoch = EPOCH;
	hand_entry(&entry, 1, 0, 0);
	hand_effect(&entry, QC_EFFECT_EPOCH, &epoch, 0);
	hand_write_entry(&s->hand, &entry);
	(void) hand_log(&s->hand, 1);
	(void) hand_log(&s->hand, 2);
	hand_entry(&entry, 2, 0, 0);
	hand_queue(&entry, 1, "one");
	hand_queue(&entry, 2, "two");
	hand_write_entry(&s->hand, &entry);
	(void) hand_solo(&s->hand, 1, 3, 101, 0, 2);
	(void) hand_solo(&s->hand, 2, 4, 102, 0, 3);
}

/* These bytes of the log are going to be cut. */
static void
keep(Scenario *s, uint64_t log, const void *bytes, size_t size)
{
	HandPiece  *piece = &s->kept[s->nkept++];

	piece->log = log;
	piece->size = size;
	memcpy(piece->bytes, bytes, size);
}

/* Put a solo record that is going to be cut. */
static void
put_cut_solo(Scenario *s, uint64_t log, uint64_t seq, uint64_t first)
{
	uint8_t		record[HAND_RECORD_MAX];
	size_t		size = hand_message(&s->hand, record, true, seq, 100 + log, first, 1);

	(void) hand_append(&s->hand, log, record, size);
	keep(s, log, record, size);
}

/* Queue-only work cut off: torn records, a missing part, closed files, directories of lost creations. */
static void
make_torn(Scenario *s)
{
	Hand	   *h = &s->hand;

	begin(s, 21);
	hand_entry(&entry, 5, 0, 0);
	hand_push(&entry, 1, 101, 2, 2);
	hand_push(&entry, 2, 102, 3, 2);
	hand_write_entry(h, &entry);
	hand_entry(&entry, 6, 0, 0);
	hand_push(&entry, 1, 101, 4, 2);
	hand_push(&entry, 2, 102, 5, 2);
	hand_build(h, &entry);
	hand_end_of(&entry, 2)->skip = true;
	hand_put(h, &entry);
	hand_roll(h, 1);
	put_cut_solo(s, 1, 7, 6);
	hand_roll(h, 1);
	put_cut_solo(s, 1, 8, 7);
	keep(s, 1, hand_end_of(&entry, 1)->bytes, hand_end_of(&entry, 1)->size);
	(void) hand_append(h, 2, "rubbish", 7);
	keep(s, 2, "rubbish", 7);
	(void) hand_log(h, 7);
	(void) hand_log(h, 8);
	(void) hand_solo(h, 8, 9, 108, 0, 1);
	hand_make_file(h, "qlog/q0/r00000002.qlog", "QNQ", 3);
	hand_sync(h);
}

/* Joint work: restored, voided, rolled back, decided, acknowledged; a queue to be made; a lease to be released. */
static void
make_joint(Scenario *s)
{
	QcDeliver	deliver = {.lease = 77, .queue = 2, .group = 0, .lease_us = 60000000};
	QcDeliverItem item = {.partition = 102, .first = 0, .count = 2, .attempt = 1};
	Hand	   *h = &s->hand;

	begin(s, 22);
	hand_entry(&entry, 5, 0, 0);
	hand_effect(&entry, QC_EFFECT_DELIVER, &deliver, 1);
	hand_item(&entry, QC_EFFECT_DELIVER, &item);
	hand_write_entry(h, &entry);

	/* in the log, undecided: committed, rolled back, and one whose WAL record was lost */
	for (uint64_t seq = 6; seq < 9; seq++)
	{
		hand_entry(&entry, seq, 60 + seq, QC_ENTRY_CARRIED);
		hand_push(&entry, 1, 101, 2 + (seq - 6) * 2, 2);
		hand_write_entry(h, &entry);
		if (seq < 8)
			hand_stash_entry(&s->stash, h, &entry, 1, 800 + seq);
	}
	server_commits(&s->server, 66);
	server_commits(&s->server, 68);

	/*
	 * 9 is in the log in part; 10 was lost; 11 makes a queue; 12 and 13 push, one of them rolled
	 * back
	 */
	hand_entry(&entry, 9, 69, QC_ENTRY_CARRIED);
	hand_push(&entry, 1, 101, 8, 2);
	hand_push(&entry, 2, 102, 3, 2);
	hand_build(h, &entry);
	hand_stash_entry(&s->stash, h, &entry, 1, 809);
	hand_end_of(&entry, 2)->skip = true;
	hand_put(h, &entry);
	server_commits(&s->server, 69);
	hand_entry(&entry, 11, 0, QC_ENTRY_CARRIED);
	hand_queue(&entry, 3, "three");
	hand_build(h, &entry);
	hand_stash_entry(&s->stash, h, &entry, 1, 811);
	hand_entry(&entry, 12, 72, QC_ENTRY_CARRIED);
	hand_push(&entry, 1, 101, 14, 1);
	hand_build(h, &entry);
	hand_stash_entry(&s->stash, h, &entry, 1, 812);
	hand_entry(&entry, 13, 73, QC_ENTRY_CARRIED);
	hand_push(&entry, 1, 101, 15, 1);
	hand_push(&entry, 3, 103, 0, 3);
	hand_build(h, &entry);
	hand_stash_entry(&s->stash, h, &entry, 1, 813);
	server_commits(&s->server, 73);
	hand_sync(h);
}

/* A copy to be wrecked. */
static void
copy(Scenario *to, const Scenario *from)
{
	*to = *from;
	to->hand.disk = sim_disk_copy(from->hand.disk);
	to->hand.io = sim_disk_io(to->hand.disk);
	qc_files_init(&to->hand.files, to->hand.io, from->hand.files.layout);
	to->server.wal = to->redo_finds_epoch ? &to->stash : NULL;
}

/* Power is back: nothing of the process is left. */
static void
restart(Scenario *s, SimLoss loss)
{
	sim_disk_reboot(s->hand.disk, loss, loss);
	qc_files_init(&s->hand.files, s->hand.io, s->hand.files.layout);
}

/* One recovery, which may be cut short. */
static QcStatus
recover(Scenario *s, uint64_t *digest)
{
	RunOptions	options = {.stash = &s->stash};
	Run			run;
	QcStatus	status = run_recovery(&run, &s->hand, &s->server, &options);

	if (status == QC_OK && digest != NULL)
		*digest = state_digest(run.st);
	run_end(&run);
	return status;
}

/* Looking for bytes in every file of a directory. */
typedef struct Search
{
	Hand	   *hand;
	const char *directory;
	const HandPiece *piece;
	bool		found;
} Search;

static bool
search_file(void *context, const char *name, bool is_directory)
{
	static uint8_t content[HAND_ALLOCATED];
	Search	   *search = context;
	const QcIo *io = search->hand->io;
	char		path[QC_PATH_MAX];
	QcHandle	handle;
	size_t		done = 0;

	if (is_directory)
		return true;
	(void) snprintf(path, sizeof(path), "%s/%s", search->directory, name);
	if (io->open(io->context, path, 0, &handle) != 0)
		return true;
	CHECK_U64(io->read(io->context, handle, content, sizeof(content), 0, &done), 0);
	io->close(io->context, handle);
	for (size_t at = 0; at + search->piece->size <= done && !search->found; at++)
		search->found = memcmp(content + at, search->piece->bytes, search->piece->size) == 0;
	return !search->found;
}

/* What was cut is still there, somewhere beside the log. */
static bool
expect_kept(Scenario *s)
{
	for (int i = 0; i < s->nkept; i++)
	{
		char		path[QC_PATH_MAX];
		Search		search = {&s->hand, path, &s->kept[i], false};

		qc_path_log(path, s->hand.files.layout, s->kept[i].log);
		CHECK_U64(s->hand.io->list(s->hand.io->context, path, search_file, &search), 0);
		if (!CHECK(search.found))
			return false;
	}
	return true;
}

/* The last recovery, undisturbed: the right state; and once more, with the stash gone: nothing to change. */
static bool
expect_result(Scenario *s, const char *what, uint64_t step)
{
	RunOptions	with_stash = {.stash = &s->stash};
	Run			run;
	uint64_t	disk;
	bool		good = run_ok(&run, &s->hand, &s->server, &with_stash);

	if (good)
		good = CHECK_U64(state_digest(run.st), s->digest);
	run_end(&run);
	good = good && expect_kept(s);
	if (good)
	{
		disk = sim_disk_digest(s->hand.disk);
		good = run_ok(&run, &s->hand, &s->server, NULL) && CHECK(!run.r.changed) &&
			CHECK_U64(state_digest(run.st), s->digest) &&
			CHECK_U64(sim_disk_digest(s->hand.disk), disk);
		run_end(&run);
	}
	if (!good)
	{
		printf("# %s, step %llu\n", what, (unsigned long long) step);
		sim_disk_tree(s->hand.disk, stdout);
	}
	return good;
}

/* Number of steps that an undisturbed recovery takes; sets the digest. */
static uint64_t
measure(Scenario *s)
{
	Scenario	c;
	uint64_t	before;
	uint64_t	steps;

	copy(&c, s);
	before = sim_disk_steps(c.hand.disk);
	CHECK_U64(recover(&c, &s->digest), QC_OK);
	steps = sim_disk_steps(c.hand.disk) - before;
	hand_end(&c.hand);
	CHECK(steps > 10);
	return steps;
}

/*
 * Of the ways in which the power fails at a step: all, and with sanitizers, which are there for other faults and cost ten
 * times as much, every fifth, another one at each step.
 */
#ifdef __SANITIZE_ADDRESS__
#define WAY_STRIDE 5
#else
#define WAY_STRIDE 1
#endif

/* Power fails at every step; and again in the recovery that follows. */
static void
crash_everywhere(Scenario *s, const char *what)
{
	static const SimPoint points[] = {SIM_BEFORE, SIM_MIDDLE, SIM_AFTER};
	static const SimLoss losses[] = {SIM_KEEP_ALL, SIM_LOSE_ALL, SIM_RANDOM, SIM_RANDOM};
	uint64_t	steps = measure(s);
	bool		good = true;

	for (uint64_t step = 1; step <= steps && good; step++)
	{
		for (uint64_t i = step % WAY_STRIDE; i < 24 && good; i += WAY_STRIDE)
		{
			Scenario	c;
			uint64_t	now;

			copy(&c, s);
			sim_disk_reseed(c.hand.disk, step * 64 + i);
			now = sim_disk_steps(c.hand.disk);
			sim_disk_crash_at(c.hand.disk, now + step, points[i % 3]);
			CHECK(recover(&c, NULL) != QC_OK);
			restart(&c, losses[i % 4]);
			if (i >= 12)
			{
				now = sim_disk_steps(c.hand.disk);
				sim_disk_crash_at(c.hand.disk, now + 1 + (step * 7 + i * 13) % steps, points[i / 3 % 3]);
				(void) recover(&c, NULL);
				restart(&c, losses[i / 2 % 4]);
			}
			good = expect_result(&c, what, step);
			hand_end(&c.hand);
		}
	}
}

/*
 * The process fails at every step and the machine goes on: what the next recovery finds stands in the page cache only.
 * Then the power fails: everything that it had found and answered for must still be there.
 */
static void
fail_everywhere(Scenario *s, const char *what)
{
	static const SimOp ops[] = {SIM_OP_WRITE, SIM_OP_SYNC, SIM_OP_CREATE, SIM_OP_RENAME,
		SIM_OP_TRUNCATE, SIM_OP_SYNC_DIRECTORY};
	uint64_t	steps = measure(s);
	bool		good = true;

	for (size_t op = 0; op < sizeof(ops) / sizeof(ops[0]); op++)
	{
		for (uint64_t nth = 1; nth <= steps && good; nth++)
		{
			Scenario	c;
			uint64_t	first;
			QcStatus	status;

			copy(&c, s);
			sim_disk_fail(c.hand.disk, ops[op], nth, EIO);
			status = recover(&c, NULL);
			if (status != QC_OK)
			{
				CHECK_U64(status, QC_IO);
				sim_disk_kill(c.hand.disk);
				sim_disk_evict(c.hand.disk);
				qc_files_init(&c.hand.files, c.hand.io, c.hand.files.layout);
				CHECK_U64(recover(&c, &first), QC_OK);
				CHECK_U64(first, s->digest);
				restart(&c, SIM_LOSE_ALL);
				good = expect_result(&c, what, nth);
			}
			else
				nth = steps;
			hand_end(&c.hand);
		}
	}
}

static void
test_torn(void)
{
	Scenario	s;

	make_torn(&s);
	crash_everywhere(&s, "torn");
	hand_end(&s.hand);
}

static void
test_torn_process_dies(void)
{
	Scenario	s;

	make_torn(&s);
	fail_everywhere(&s, "torn");
	hand_end(&s.hand);
}

static void
test_joint(void)
{
	Scenario	s;

	make_joint(&s);
	crash_everywhere(&s, "joint");
	hand_end(&s.hand);
}

/* The epoch's WAL record outlives the crash and is redone into the stash. */
static void
test_joint_epoch_redone(void)
{
	Scenario	s;

	make_joint(&s);
	s.redo_finds_epoch = true;
	crash_everywhere(&s, "joint, epoch redone");
	hand_end(&s.hand);
}

static void
test_joint_process_dies(void)
{
	Scenario	s;

	make_joint(&s);
	fail_everywhere(&s, "joint");
	hand_end(&s.hand);
}

/* The caller stops it at every question that it asks. */
static void
test_stopped(void)
{
	Scenario	s;
	QcStatus	status = QC_INTERRUPTED;
	int			questions = 0;

	make_joint(&s);
	(void) measure(&s);
	while (status == QC_INTERRUPTED)
	{
		Scenario	c;

		copy(&c, &s);
		c.server.stop_after = ++questions;
		status = recover(&c, NULL);
		c.server.stop_after = 0;
		sim_disk_kill(c.hand.disk);
		qc_files_init(&c.hand.files, c.hand.io, c.hand.files.layout);
		(void) expect_result(&c, "stopped", (uint64_t) questions);
		hand_end(&c.hand);
	}
	CHECK_U64(status, QC_OK);
	CHECK(questions > 9);
	hand_end(&s.hand);
}

/* Without space for what is cut nothing is cut; with space again it goes on. */
static void
test_no_space(void)
{
	Scenario	s;
	Scenario	c;

	make_torn(&s);
	(void) measure(&s);
	copy(&c, &s);
	sim_disk_set_capacity(c.hand.disk, sim_disk_used(c.hand.disk));
	CHECK_U64(recover(&c, NULL), QC_NOSPACE);
	sim_disk_set_capacity(c.hand.disk, UINT64_MAX);
	(void) expect_result(&c, "no space", 0);
	hand_end(&c.hand);
	hand_end(&s.hand);
}

int
main(void)
{
	UNIT_RUN(test_torn);
	UNIT_RUN(test_torn_process_dies);
	UNIT_RUN(test_joint);
	UNIT_RUN(test_joint_epoch_redone);
	UNIT_RUN(test_joint_process_dies);
	UNIT_RUN(test_stopped);
	UNIT_RUN(test_no_space);
	return unit_end();
}
