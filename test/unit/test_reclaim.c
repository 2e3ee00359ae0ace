/*
 * test_reclaim.c
 *		Reclaim: which files go, which are written anew, which stay and why, and power failures at every step.
 */
#include "reclaiming.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qc_dir.h"

#define GONE UINT64_MAX

/* Each closed file that may go is gone, what is needed is there, nothing lies about. */
static void
expect_reclaimed(void)
{
	CHECK_U64(reclaiming_size(1, 1, "qlog"), GONE);
	CHECK_U64(reclaiming_size(1, 3, "qlog"), GONE);
	CHECK_U64(reclaiming_size(0, 1, "qlog"), GONE);
	CHECK_U64(reclaiming_size(0, 2, "qlog"), GONE);
	for (uint64_t file = 1; file <= 5; file++)
	{
		CHECK_U64(reclaiming_size(1, file, "qlog.dead"), GONE);
		CHECK_U64(reclaiming_size(1, file, "qlog.tmp"), GONE);
		CHECK_U64(reclaiming_size(0, file, "qlog.dead"), GONE);
		if (reclaiming_size(1, file, "qlog") == GONE)
			CHECK_U64(reclaiming_size(1, file, "qidx"), GONE);
	}
	CHECK(reclaiming_size(1, 5, "qlog") != GONE);
	CHECK(reclaiming_size(0, 3, "qlog") != GONE);
	CHECK(reclaiming_size(2, 1, "qlog") != GONE);
}

/* ---- one pass ---- */

static void
test_pass(void)
{
	static const uint8_t zero[1];
	uint64_t	size;

	/* File 4 has an index, and zeros behind its end all the same. */
	reclaiming_begin();
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 4, &rec.err), QC_OK);
	CHECK(reclaiming_size(1, 4, "qlog") < HAND_ALLOCATED / 2);
	hand_write(&hand, 1, 4, HAND_ALLOCATED - 1, zero, 1);
	size = reclaiming_size(1, 2, "qlog");
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(rec.report.deleted, 4);
	CHECK_U64(rec.report.bad, 0);
	expect_reclaimed();
	reclaiming_expect_messages();

	/* Half of file 2 is gone: it is copied.  File 4 ends with zeros: these go. */
	CHECK_U64(rec.report.rewritten, 1);
	CHECK(reclaiming_size(1, 2, "qlog") < size / 2);
	CHECK(reclaiming_size(1, 4, "qlog") < HAND_ALLOCATED / 2);
	CHECK_U64(rec.nchanged, 5);
	CHECK(!rec.report.more);

	/* Nothing is left to do, and nothing is looked at again. */
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(rec.report.looked, 0);
	CHECK_U64(rec.report.deleted + rec.report.rewritten, 0);
	CHECK(reclaiming_restart());
	reclaiming_expect_messages();
	reclaiming_end();
}

/* Do these bytes stand somewhere in the file? */
static bool
holds(const uint8_t *file, size_t file_size, const uint8_t *bytes, size_t size)
{
	for (size_t at = 0; at + size <= file_size; at++)
		if (memcmp(file + at, bytes, size) == 0)
			return true;
	return false;
}

/* The rewritten file is exact: header, then its records as they were, then its end; its index is right. */
static void
test_rewritten(void)
{
	uint8_t		before[HAND_ALLOCATED];
	uint8_t		after[HAND_ALLOCATED];
	uint64_t	size;
	uint64_t	at = QC_FILE_HEADER_SIZE;
	QcRecord	record;

	reclaiming_begin();
	hand_read(&hand, 1, 2, 0, before, sizeof(before));
	CHECK_U64(reclaiming_pass(), QC_OK);
	size = reclaiming_size(1, 2, "qlog");
	if (!CHECK(size < sizeof(after)))
		return;
	hand_read(&hand, 1, 2, 0, after, (size_t) size);
	CHECK_BYTES(after, QC_FILE_HEADER_SIZE, before, QC_FILE_HEADER_SIZE);
	for (uint64_t first = 150; first < 200; first += 10)
	{
		uint64_t	whole;

		if (!CHECK_U64(qc_record_decode(after + at, (size_t) (size - at), &record, &rec.err), QC_OK))
			break;
		CHECK_U64(record.first, first);
		CHECK_U64(record.count, 10);
		whole = (uint64_t) record.len + 4;
		CHECK(holds(before, sizeof(before), after + at, (size_t) whole));
		at += whole;
	}
	CHECK_U64(at, size);
	CHECK(qc_read_idx_usable(&hand.files, 1, 2));
	CHECK(qc_read_idx_right(&hand.files, 1, 2));
	reclaiming_end();
}

/* Without a stored checkpoint nothing goes, however dead it is. */
static void
test_no_checkpoint(void)
{
	reclaiming_begin();
	rec.no_checkpoint = true;
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK(rec.report.more);
	CHECK_U64(rec.report.deleted + rec.report.rewritten, 0);
	CHECK(reclaiming_size(1, 1, "qlog") != GONE);
	CHECK(reclaiming_size(1, 2, "qlog") != GONE);
	CHECK_U64(reclaiming_size(1, 2, "qlog.tmp"), GONE);
	CHECK(reclaiming_restart());
	reclaiming_expect_messages();

	/* Later on it can be stored: the next pass does all of it. */
	rec.no_checkpoint = false;
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(rec.report.deleted, 4);
	expect_reclaimed();
	reclaiming_expect_messages();
	reclaiming_end();
}

/* A base backup runs: nothing is unlinked, replaced or shortened. */
static void
test_backup(void)
{
	reclaiming_begin();
	rec.backup = true;
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK(rec.report.more);
	CHECK_U64(rec.report.deleted + rec.report.rewritten, 0);
	CHECK(reclaiming_size(1, 1, "qlog") != GONE);
	CHECK(reclaiming_size(1, 2, "qlog") != GONE);
	CHECK_U64(reclaiming_size(1, 2, "qlog.tmp"), GONE);
	rec.backup = false;
	CHECK_U64(reclaiming_pass(), QC_OK);
	expect_reclaimed();
	reclaiming_end();
}

/* Entries above the mark of a snapshot that is kept must stay whole. */
static void
test_snapshot(void)
{
	reclaiming_begin();

	/* File 1 ends with seq 13, the first record of file 2 is seq 15. */
	rec.snapshot = 14;
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(rec.report.deleted, 0);
	CHECK(rec.report.held > 0);
	CHECK(rec.report.more);
	CHECK_U64(rec.report.rewritten, 0);
	CHECK_U64(rec.nreported, 0);
	for (uint64_t file = 1; file <= 5; file++)
		CHECK_U64(reclaiming_size(1, file, "qlog.tmp"), GONE);
	rec.snapshot = 15;
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(reclaiming_size(1, 1, "qlog"), GONE);
	CHECK(reclaiming_size(1, 3, "qlog") != GONE);
	CHECK(reclaiming_size(1, 2, "qlog") != GONE);
	CHECK_U64(rec.report.rewritten, 0);

	/* The floor moves on: what it held has its turn at once, the partly needed file too. */
	rec.snapshot = UINT64_MAX;
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(rec.report.rewritten, 1);
	CHECK(!rec.report.more);
	expect_reclaimed();
	reclaiming_end();
}

/* A snapshot goes in the middle of a pass, when what it held was not looked at for copying: no other file is taken for it. */
static void
test_snapshot_goes(void)
{
	uint32_t	rewritten;

	reclaiming_begin();
	rec.snapshot = 14;
	rec.snapshot_asked = 1;
	CHECK_U64(reclaiming_pass(), QC_OK);
	rewritten = rec.report.rewritten;
	rec.monotonic += rec.r.again_us;
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(rewritten + rec.report.rewritten, 1);
	CHECK_U64(rec.changed, 1 << 1 | 1 << 2 | 1 << 3);
	CHECK_U64(rec.nreported, 0);
	expect_reclaimed();
	reclaiming_expect_messages();
	reclaiming_end();
}

/* keep_old_files newest dead files of each log stay, readable as they were. */
static void
test_keep_old(void)
{
	reclaiming_begin();
	rec.r.keep_old = 1;
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(rec.report.deleted, 2);
	CHECK_U64(reclaiming_size(1, 1, "qlog"), GONE);
	CHECK(reclaiming_size(1, 3, "qlog") != GONE);
	CHECK_U64(reclaiming_size(0, 1, "qlog"), GONE);
	CHECK(reclaiming_size(0, 2, "qlog") != GONE);
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(rec.report.looked, 0);
	CHECK_U64(rec.report.deleted, 0);
	CHECK(reclaiming_restart());
	reclaiming_expect_messages();
	reclaiming_end();
}

/* A file with a bad record in it is reported and stays; the others go. */
static void
test_bad_file(void)
{
	uint8_t		byte;

	reclaiming_begin();
	hand_read(&hand, 1, 1, 3000, &byte, 1);
	byte ^= 4;
	hand_write(&hand, 1, 1, 3000, &byte, 1);
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(rec.nreported, 1);
	CHECK_U64(rec.report.bad, 1);
	CHECK_STR(rec.reported.file, "qlog/q1/r00000001.qlog");
	CHECK_U64(rec.reported.code, QC_DAMAGED);
	CHECK_U64(rec.report.deleted, 3);
	CHECK_U64(reclaiming_size(1, 1, "qlog"), HAND_ALLOCATED);
	CHECK_U64(reclaiming_size(1, 3, "qlog"), GONE);

	/* It is not read again in every pass. */
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(rec.report.looked, 0);
	reclaiming_expect_messages();
	reclaiming_end();
}

/* A record that is needed is damaged: its file is not written anew. */
static void
test_bad_record(void)
{
	uint8_t		byte;

	reclaiming_begin();
	for (uint64_t file = 1; file <= 4; file++)
		CHECK_U64(qc_read_build_idx(&hand.files, 1, file, &rec.err), QC_OK);
	hand_read(&hand, 1, 2, 3000, &byte, 1);
	byte ^= 4;
	hand_write(&hand, 1, 2, 3000, &byte, 1);
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(rec.nreported, 1);
	CHECK_U64(rec.report.rewritten, 0);
	CHECK(reclaiming_size(1, 2, "qlog") != GONE);
	CHECK_U64(reclaiming_size(1, 2, "qlog.tmp"), GONE);
	CHECK_U64(rec.report.deleted, 4);
	reclaiming_end();
}

/* An index that says that a file holds nothing proves nothing when it is not that file's. */
static void
test_wrong_index(void)
{
	uint8_t		idx[QC_IDX_HEADER_SIZE];

	reclaiming_begin();
	qc_idx_encode(idx, 4, QC_FILE_HEADER_SIZE, NULL, 0);
	hand_make_file(&hand, "qlog/q1/r00000004.qidx", idx, sizeof(idx));
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK(reclaiming_size(1, 4, "qlog") != GONE);
	CHECK(qc_read_idx_right(&hand.files, 1, 4));
	reclaiming_expect_messages();
	reclaiming_end();
}

/* What a crash may leave: dead files, copies that were never published, indexes without a file.  Others' files stay. */
static void
test_leftovers(void)
{
	reclaiming_begin();
	hand_make_file(&hand, "qlog/q1/r00000002.qlog.tmp", "half a copy", 11);
	hand_make_file(&hand, "qlog/q1/r00000001.qlog.dead", "dead", 4);
	hand_make_file(&hand, "qlog/q1/r00000007.qidx", "of no file yet", 14);
	hand_make_file(&hand, "qlog/q1/notes.txt", "mine", 4);
	hand_make_file(&hand, "qlog/q1/r00000001.qlog.cut.7", "cut", 3);
	CHECK_U64(reclaiming_pass(), QC_OK);
	expect_reclaimed();
	CHECK_U64(hand_size(&hand, "qlog/q1/r00000007.qidx"), 14);
	CHECK_U64(hand_size(&hand, "qlog/q1/notes.txt"), 4);
	CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qlog.cut.7"), 3);

	/* An index whose file went in a crash goes in the first pass of the next life. */
	hand_make_file(&hand, "qlog/q1/r00000001.qidx", "orphan", 6);
	CHECK(reclaiming_restart());
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qidx"), GONE);
	reclaiming_end();
}

/* The budget ends a pass; the next ones do the rest. */
static void
test_budget(void)
{
	QcReclaimBudget budget = {.files = 1, .us = 1000000, .rewrites = 1};
	uint32_t	passes = 0;
	uint32_t	deleted = 0;

	reclaiming_begin();
	do
	{
		CHECK_U64(qc_reclaim_pass(&rec.r, &budget, 2000000, &rec.report, &rec.err), QC_OK);
		CHECK(rec.report.looked <= 4);
		deleted += rec.report.deleted;
		passes++;
	}
	while (rec.report.more && CHECK(passes < 30));
	CHECK(passes > 4);
	CHECK_U64(deleted, 4);
	expect_reclaimed();
	reclaiming_expect_messages();
	reclaiming_end();
}

/* The caller says stop, at any question. */
static void
test_stopped(void)
{
	bool		done = false;

	for (int n = 1; !done; n++)
	{
		reclaiming_begin();
		rec.go_ons = n;
		CHECK_U64(reclaiming_pass(), QC_OK);
		done = rec.go_ons > 1;
		rec.go_ons = 0;
		reclaiming_expect_messages();
		CHECK_U64(reclaiming_pass(), QC_OK);
		CHECK_U64(reclaiming_pass(), QC_OK);
		expect_reclaimed();
		reclaiming_expect_messages();
		reclaiming_end();
		CHECK(n < 100);
	}
}

/* ---- closing early ---- */

static void
test_seal(void)
{
	reclaiming_begin();
	CHECK_U64(reclaiming_pass(), QC_OK);
	rec.r.seal_us = 600000000;
	rec.r.gain = 20000;
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(rec.report.sealed, 0);

	/* Files of this size have nothing to give: a new one would take as much. */
	rec.monotonic += 600000000;
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(rec.report.sealed, 0);

	/* With smaller new files they have: the system log is closed, queue 1 keeps what is needed. */
	rec.r.segment_size = 16384;
	rec.r.gain = 1000;
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK(rec.report.sealed >= 1);
	CHECK_U64(qc_log_by_id(run.st, 0)->file, 4);
	CHECK(rec.report.more);
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(reclaiming_size(0, 3, "qlog"), GONE);
	CHECK_U64(reclaiming_size(0, 4, "qlog"), 16384);
	reclaiming_expect_messages();
	CHECK(reclaiming_restart());
	reclaiming_expect_messages();
	reclaiming_end();
}

/* A credit that needs the rest of the active file keeps it open. */
static void
test_seal_credit(void)
{
	QcExtend	what;
	QcLog	   *log;

	reclaiming_begin();
	log = qc_log_by_id(run.st, 0);
	CHECK_U64(qc_log_credit(run.st, log, 30000, 30000, HAND_ALLOCATED, &what), QC_OK);
	CHECK_U64(reclaiming_pass(), QC_OK);
	rec.r.seal_us = 1;
	rec.r.segment_size = 16384;
	rec.monotonic += 1;
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(log->file, 3);
	qc_log_uncredit(run.st, log, 30000);
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(log->file, 4);
	reclaiming_end();
}

/* The disk is so full that the next file cannot be made: it is tried again, though nothing more dies in the log. */
static void
test_seal_without_room(void)
{
	reclaiming_begin();
	CHECK_U64(reclaiming_pass(), QC_OK);
	rec.r.seal_us = 1;
	rec.r.segment_size = 16384;
	rec.r.gain = 1000;
	rec.monotonic += 1;
	for (uint64_t i = 1; i <= 8; i++)
		sim_disk_fail(hand.disk, SIM_OP_CREATE, i, ENOSPC);
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(rec.report.sealed, 0);
	CHECK_U64(qc_log_by_id(run.st, 1)->file, 5);
	sim_disk_heal(hand.disk);
	CHECK_U64(reclaiming_pass(), QC_OK);
	CHECK_U64(qc_log_by_id(run.st, 0)->file, 4);
	CHECK_U64(qc_log_by_id(run.st, 1)->file, 6);
	reclaiming_expect_messages();
	reclaiming_end();
}

/* ---- crashes ---- */

/* A pass during which the power fails at a step of the disk; what comes up then. */
static bool
crash_once(uint64_t step, SimPoint point, SimLoss loss, uint64_t seed)
{
	SimDisk    *disk;
	uint64_t	now;
	bool		good;

	reclaiming_begin();
	disk = hand.disk;
	sim_disk_reseed(disk, seed);
	now = sim_disk_steps(disk);
	sim_disk_crash_at(disk, now + step, point);
	(void) reclaiming_pass();
	sim_disk_reboot(disk, loss, loss);
	good = reclaiming_restart();
	if (good)
	{
		reclaiming_expect_messages();
		CHECK_U64(reclaiming_pass(), QC_OK);
		CHECK_U64(rec.report.bad, 0);
		expect_reclaimed();
		reclaiming_expect_messages();
	}
	reclaiming_end();
	return good;
}

static uint64_t
steps_of_a_pass(void)
{
	uint64_t	steps;

	reclaiming_begin();
	steps = sim_disk_steps(hand.disk);
	CHECK_U64(reclaiming_pass(), QC_OK);
	steps = sim_disk_steps(hand.disk) - steps;
	reclaiming_end();
	return steps;
}

static void
test_power_fails(void)
{
	static const SimPoint points[] = {SIM_BEFORE, SIM_MIDDLE, SIM_AFTER};
	static const SimLoss losses[] = {SIM_KEEP_ALL, SIM_LOSE_ALL, SIM_RANDOM, SIM_RANDOM};
	uint64_t	steps = steps_of_a_pass();

	CHECK(steps > 30);
	for (uint64_t step = 1; step <= steps; step++)
		for (uint64_t i = 0; i < 12; i++)
			if (!crash_once(step, points[i % 3], losses[i % 4], step * 64 + i))
			{
				printf("# step %llu, %llu\n", (unsigned long long) step, (unsigned long long) i);
				return;
			}
}

/* A call fails: the pass says so or leaves it, everything is still there, and the next pass does it all. */
static void
test_call_fails(void)
{
	static const SimOp ops[] = {SIM_OP_CREATE, SIM_OP_WRITE, SIM_OP_SYNC, SIM_OP_RENAME,
		SIM_OP_TRUNCATE, SIM_OP_UNLINK, SIM_OP_SYNC_DIRECTORY, SIM_OP_READ};
	static const int errors[] = {EIO, ENOSPC};

	for (size_t op = 0; op < sizeof(ops) / sizeof(ops[0]); op++)
	{
		for (uint64_t nth = 1; nth <= 12; nth++)
		{
			reclaiming_begin();
			sim_disk_fail(hand.disk, ops[op], nth, errors[nth % 2]);
			(void) reclaiming_pass();
			reclaiming_expect_messages();
			sim_disk_heal(hand.disk);
			rec.monotonic += 60000000;
			CHECK_U64(reclaiming_pass(), QC_OK);
			CHECK_U64(reclaiming_pass(), QC_OK);
			reclaiming_expect_messages();
			CHECK(reclaiming_restart());
			CHECK_U64(reclaiming_pass(), QC_OK);
			expect_reclaimed();
			reclaiming_expect_messages();
			reclaiming_end();
		}
	}
}

/* Missing is never new: a file that holds what is needed is missed by whoever reads, and by nobody before. */
static void
test_missing(void)
{
	QcPartition *partition;
	QcLocation	location;
	uint64_t	digest;

	reclaiming_begin();
	CHECK_U64(reclaiming_pass(), QC_OK);
	reclaiming_checkpoint();
	CHECK_U64(hand.io->unlink(hand.io->context, "qlog/q1/r00000002.qlog"), 0);
	digest = state_digest(run.st);
	CHECK(reclaiming_restart());
	CHECK_U64(state_digest(run.st), digest);
	expect_readable(&run, 1, 300, 410);
	partition = qc_partition_by_id(run.st, 101);
	CHECK_U64(partition->start, 150);
	CHECK_U64(qc_read_locate(&run.cache, 1, 101, 160, 0, 0, &location, &rec.err), QC_NOTFOUND);
	CHECK_U64(reclaiming_pass(), QC_OK);
	expect_readable(&run, 1, 300, 410);
	reclaiming_end();
}

int
main(void)
{
	UNIT_RUN(test_pass);
	UNIT_RUN(test_rewritten);
	UNIT_RUN(test_no_checkpoint);
	UNIT_RUN(test_backup);
	UNIT_RUN(test_snapshot);
	UNIT_RUN(test_snapshot_goes);
	UNIT_RUN(test_keep_old);
	UNIT_RUN(test_bad_file);
	UNIT_RUN(test_bad_record);
	UNIT_RUN(test_wrong_index);
	UNIT_RUN(test_leftovers);
	UNIT_RUN(test_budget);
	UNIT_RUN(test_stopped);
	UNIT_RUN(test_seal);
	UNIT_RUN(test_seal_credit);
	UNIT_RUN(test_seal_without_room);
	UNIT_RUN(test_power_fails);
	UNIT_RUN(test_call_fails);
	UNIT_RUN(test_missing);
	return unit_end();
}
