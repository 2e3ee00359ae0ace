/*
 * test_log.c
 *		Logs: room that is promised, files that are made, extended and removed, and what fails half way.
 */
#include "../sim/sim_random.h"
#include "handmade.h"
#include "qc_log.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT		(UINT64_C(1) << 20)
#define SMALL		(SEGMENT / 4)	/* so that promises lie many files ahead */
#define PROMISES	24

static Hand hand;
static QcState *st;
static void *block;
static QcError err;

/* A directory with log 1 of one file, and a state that knows it. */
static void
begin(uint64_t seed)
{
	QcStateConfig config = {.state_bytes = 4u << 20, .index_bytes = 1u << 20, .max_slots = 100};

	hand_begin(&hand, QC_LAYOUT_FLAT, seed);
	(void) hand_log(&hand, 1);
	hand_sync(&hand);
	block = malloc(qc_state_size(&config));
	st = qc_state_init(block, &config);
	CHECK(qc_log_add(st, 1, 1, QC_FILE_HEADER_SIZE, HAND_ALLOCATED, false) != NULL);
	qc_error_clear(&err);
}

static void
end(void)
{
	hand_end(&hand);
	free(block);
}

/* Start with the files that are there now; nothing of the process is left. */
static void
forget_handles(void)
{
	qc_files_init(&hand.files, hand.io, QC_LAYOUT_FLAT);
}

static QcLog *
the_log(void)
{
	return qc_log_by_id(st, 1);
}

/* Is the file blank, of this size, with the header of a file ahead? */
static void
expect_blank(uint64_t file, uint64_t size)
{
	char		path[QC_PATH_MAX];
	uint8_t		bytes[QC_FILE_HEADER_SIZE];
	QcFileHeader header = {0};

	qc_path_file(path, QC_LAYOUT_FLAT, 1, file, "qlog");
	if (!CHECK_U64(hand_size(&hand, path), size))
		return;
	hand_read(&hand, 1, file, 0, bytes, sizeof(bytes));
	CHECK_U64(qc_file_header_decode(bytes, sizeof(bytes), &header, &err), QC_OK);
	CHECK_U64(header.file_id, file);
	CHECK_U64(header.first_seq, QC_FIRST_SEQ_AHEAD);
	for (uint64_t at = QC_FILE_HEADER_SIZE; at < size; at += sizeof(bytes))
	{
		static const uint8_t zeros[QC_FILE_HEADER_SIZE];

		hand_read(&hand, 1, file, at, bytes, sizeof(bytes));
		if (!CHECK_BYTES(bytes, sizeof(bytes), zeros, sizeof(zeros)))
			return;
	}
}

/* Promise room, making it when there is none. */
static bool
promise(uint64_t bytes, uint64_t record, uint64_t segment)
{
	QcExtend	extend;

	while (qc_log_credit(st, the_log(), bytes, record, segment, &extend) == QC_BUSY)
	{
		if (!CHECK_U64(qc_log_extend_io(&hand.files, &extend, &err), QC_OK))
			return false;
		qc_log_extended(st, &extend, segment);
	}
	return true;
}

/* ---- promises ---- */

/* Room that was promised: what is left of it, and the largest record that may come. */
typedef struct Promise
{
	uint64_t	left;
	uint64_t	record;
} Promise;

/* Use a promise, by its largest record or a random part; the place follows the last one or begins a later file. */
static void
use_promise(Promise *promised, bool whole, uint64_t *random, QcPlace *last, uint64_t *last_size)
{
	uint64_t	most = promised->left < promised->record ? promised->left : promised->record;
	uint64_t	size = whole ? most : 1 + sim_random_below(random, most);
	QcPlace		place = qc_log_place(st, the_log(), size, SMALL);

	promised->left -= size;
	CHECK(place.file >= last->file && place.file <= the_log()->last_file);
	CHECK_U64(place.position, place.file > last->file ? QC_FILE_HEADER_SIZE :
			  last->position + *last_size);
	CHECK(place.position + size <= the_log()->allocated && the_log()->allocated <= SMALL);
	CHECK_U64(place.rolled, place.position == QC_FILE_HEADER_SIZE);
	*last = place;
	*last_size = size;
}

/* Size of the largest record of a promise: any, or the largest there is, or the largest among small ones. */
static uint64_t
choose_record(uint64_t seed, uint64_t largest, uint64_t *random)
{
	if (seed % 3 == 0)
		return 64 + sim_random_below(random, largest - 64);
	return seed % 3 == 1 || sim_random_bool(random) ? largest : largest / 3;
}

/*
 * Whatever is promised fits, in whatever order and however often the log rolls meanwhile.  Many promises are given, then all
 * of them used; those of the largest record waste most at the ends of files.
 */
static void
test_promises_are_kept(void)
{
	for (uint64_t seed = 1; seed <= 60; seed++)
	{
		uint64_t	random = seed;
		Promise		promises[PROMISES] = {{0, 0}};
		uint64_t	largest = SMALL / (2 + seed / 3 % 5);
		QcPlace		last = {1, QC_FILE_HEADER_SIZE, false};
		uint64_t	last_size = 0;

		begin(seed);
		for (int i = 0; i < 1500; i++)
		{
			Promise    *promised = &promises[sim_random_below(&random, PROMISES)];

			if (i / 250 % 2 == 1)
			{
				if (promised->left > 0)
					use_promise(promised, seed % 3 != 0, &random, &last, &last_size);
				continue;
			}
			if (promised->left > 0)
				continue;
			promised->record = choose_record(seed, largest, &random);
			promised->left = promised->record * (1 + sim_random_below(&random, 3));
			if (!promise(promised->left, promised->record, SMALL))
				break;
		}
		CHECK(last.file > 5);
		for (int i = 0; i < PROMISES; i++)
			qc_log_uncredit(st, the_log(), promises[i].left);
		CHECK_U64(the_log()->credit, 0);
		end();
	}
}

/* Small records were promised behind large ones, which use up a file each and come first. */
static void
test_small_behind_large(void)
{
	enum
	{
		COUNT = 8
	};

	begin(1);
	for (int i = 0; i < COUNT; i++)
		CHECK(promise(SMALL / 2, SMALL / 2, SMALL));
	for (int i = 0; i < COUNT; i++)
		CHECK(promise(SMALL / 6, SMALL / 6, SMALL));
	for (int i = 0; i < COUNT; i++)
		CHECK(qc_log_place(st, the_log(), SMALL / 2, SMALL).position == QC_FILE_HEADER_SIZE);
	for (int i = 0; i < COUNT; i++)
		(void) qc_log_place(st, the_log(), SMALL / 6, SMALL);
	CHECK_U64(the_log()->credit, 0);
	end();
}

/* An empty file is not rolled over while a record fits into it once it has grown. */
static void
test_empty_file_grows(void)
{
	QcExtend	extend;

	begin(1);
	CHECK_U64(qc_log_credit(st, the_log(), 3 * HAND_ALLOCATED, HAND_ALLOCATED, SEGMENT, &extend),
			  QC_BUSY);
	CHECK(!extend.create);
	CHECK_U64(extend.file, 1);
	CHECK_U64(extend.from, HAND_ALLOCATED);
	CHECK(extend.to >= 3 * HAND_ALLOCATED + QC_FILE_HEADER_SIZE);
	CHECK(extend.least >= 3 * HAND_ALLOCATED + QC_FILE_HEADER_SIZE);
	CHECK(extend.least <= extend.to);
	CHECK(extend.least < 3 * HAND_ALLOCATED + QC_FILE_HEADER_SIZE + QC_EXTEND_MIN);
	end();
}

/* ---- room that cannot be made ---- */

/* What is to be made: more of the active file, or the next one. */
static QcExtend
what_to_make(bool create)
{
	return create ? (QcExtend)
	{
		.log = 1, .file = 2, .to = 5 * QC_EXTEND_MIN, .create = true
	} : (QcExtend)
	{
		.log = 1, .file = 1, .from = HAND_ALLOCATED, .to = 5 * QC_EXTEND_MIN
	};
}

/* Fails at each call in turn, for each reason: the state has not changed, and the next attempt succeeds. */
static void
test_extension_fails_anywhere(void)
{
	static const SimOp ops[] = {SIM_OP_CREATE, SIM_OP_WRITE, SIM_OP_SYNC, SIM_OP_SYNC_DIRECTORY};
	static const int errors[] = {ENOSPC, EIO, EMFILE};
	int			failed = 0;

	for (int i = 0; i < 24; i++)
		for (uint64_t nth = 1; nth <= 3; nth++)
		{
			QcExtend	extend = what_to_make(i % 2 == 1);
			QcLog		before;
			QcStatus	status;

			begin(nth);
			before = *the_log();
			sim_disk_fail(hand.disk, ops[i / 2 % 4], nth, errors[i / 8]);
			status = qc_log_extend_io(&hand.files, &extend, &err);
			if (status != QC_OK)
			{
				failed++;
				CHECK_U64(status, errors[i / 8] == ENOSPC ? QC_NOSPACE : QC_IO);
				CHECK_U64(err.sys_errno, errors[i / 8]);
				CHECK(memcmp(&before, the_log(), sizeof(before)) == 0);

				/* what was there can still be written to */
				(void) hand_solo(&hand, 1, 1, 101, 0, 1);
				CHECK_U64(qc_log_extend_io(&hand.files, &extend, &err), QC_OK);
			}
			qc_log_extended(st, &extend, SEGMENT);
			CHECK_U64(the_log()->last_file, extend.file);
			CHECK_U64(the_log()->last_allocated, extend.to);
			if (extend.create)
				expect_blank(2, extend.to);
			sim_disk_reboot(hand.disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
			forget_handles();
			if (extend.create && status != QC_OK)
				expect_blank(2, extend.to);
			end();
		}
	CHECK(failed > 20);
}

/* A disk that is full, for real: nothing is promised, and with room it goes on. */
static void
test_full_disk(void)
{
	uint64_t	used;

	begin(1);
	used = sim_disk_used(hand.disk);
	sim_disk_set_capacity(hand.disk, used + QC_EXTEND_MIN / 2);
	for (int create = 0; create < 2; create++)
	{
		QcExtend	extend = what_to_make(create == 1);

		/* nothing stays of it: what room there was is for others */
		CHECK_U64(qc_log_extend_io(&hand.files, &extend, &err), QC_NOSPACE);
		CHECK_U64(sim_disk_used(hand.disk), used);
		CHECK_U64(the_log()->last_file, 1);
		CHECK_U64(the_log()->allocated, HAND_ALLOCATED);
	}
	sim_disk_set_capacity(hand.disk, UINT64_MAX);
	CHECK(promise(SEGMENT, SEGMENT / 2, SEGMENT));
	CHECK(the_log()->last_file > 1);
	expect_blank(the_log()->last_file, the_log()->last_allocated);
	end();
}

/* A file that stands where the next one is to be: one that holds something is never replaced. */
static void
test_existing_file_is_not_replaced(void)
{
	QcExtend	extend = what_to_make(true);
	uint8_t		blank[5000] = {0};
	uint64_t	position;
	uint64_t	digest;

	begin(1);
	hand_roll(&hand, 1);
	position = hand_solo(&hand, 1, 1, 101, 0, 1);
	digest = sim_disk_digest(hand.disk);
	CHECK_U64(qc_log_extend_io(&hand.files, &extend, &err), QC_DAMAGED);
	CHECK_STR(err.file, "qlog/q1/r00000002.qlog");
	CHECK(err.position >= position && err.position < position + 8);
	CHECK_U64(sim_disk_digest(hand.disk), digest);
	end();

	/* the last byte is enough */
	begin(1);
	blank[sizeof(blank) - 1] = 1;
	hand_make_file(&hand, "qlog/q1/r00000002.qlog", blank, sizeof(blank));
	CHECK_U64(qc_log_extend_io(&hand.files, &extend, &err), QC_DAMAGED);
	CHECK_U64(err.position, sizeof(blank) - 1);
	CHECK_U64(hand_size(&hand, "qlog/q1/r00000002.qlog"), sizeof(blank));
	end();

	/* what a failed attempt has left is */
	begin(1);
	blank[sizeof(blank) - 1] = 0;
	hand_make_file(&hand, "qlog/q1/r00000002.qlog", blank, sizeof(blank));
	CHECK_U64(qc_log_extend_io(&hand.files, &extend, &err), QC_OK);
	expect_blank(2, extend.to);
	end();
}

/* ---- directories ---- */

/* Making a log is durable when it returns, its directories included, and costs 64 KiB. */
static void
test_created_logs_survive(void)
{
	enum
	{
		LOGS = 2000
	};
	uint64_t	used;
	uint64_t   *ids = NULL;
	uint32_t	n = 0;

	hand_begin(&hand, QC_LAYOUT_HIERARCHICAL, 1);
	used = sim_disk_used(hand.disk);
	for (uint64_t log = 1; log <= LOGS; log++)
		if (!CHECK_U64(qc_log_create_files(&hand.files, log, QC_EXTEND_MIN, &err), QC_OK))
			break;
	CHECK_U64(sim_disk_used(hand.disk) - used, LOGS * QC_EXTEND_MIN);

	/* reading every one of them keeps few descriptors */
	for (uint64_t log = 1; log <= LOGS; log++)
	{
		uint8_t		bytes[QC_FILE_HEADER_SIZE];

		hand_read(&hand, log, 1, 0, bytes, sizeof(bytes));
	}
	CHECK(sim_disk_handles(hand.disk) <= QC_FILES_MAX);
	sim_disk_reboot(hand.disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
	qc_files_init(&hand.files, hand.io, QC_LAYOUT_HIERARCHICAL);
	CHECK_U64(qc_dir_logs(hand.io, QC_LAYOUT_HIERARCHICAL, &ids, &n, &err), QC_OK);
	CHECK_U64(n, LOGS + 1);
	free(ids);
	CHECK_U64(sim_disk_used(hand.disk) - used, LOGS * QC_EXTEND_MIN);
	hand_end(&hand);
}

/* Making a log fails at each call in turn: the next attempt succeeds. */
static void
test_creation_fails_anywhere(void)
{
	static const SimOp ops[] = {SIM_OP_MKDIR, SIM_OP_CREATE, SIM_OP_WRITE, SIM_OP_SYNC,
		SIM_OP_SYNC_DIRECTORY};
	int			failed = 0;

	for (size_t op = 0; op < sizeof(ops) / sizeof(ops[0]); op++)
		for (uint64_t nth = 1; nth <= 6; nth++)
		{
			QcStatus	status;

			begin(nth);
			sim_disk_fail(hand.disk, ops[op], nth, ENOSPC);
			status = qc_log_create_files(&hand.files, 2, QC_EXTEND_MIN, &err);
			if (status != QC_OK)
			{
				failed++;
				CHECK_U64(status, QC_NOSPACE);
				CHECK_U64(qc_log_create_files(&hand.files, 2, QC_EXTEND_MIN, &err), QC_OK);
			}
			CHECK_U64(hand_size(&hand, "qlog/q2/r00000001.qlog"), QC_EXTEND_MIN);
			end();
		}
	CHECK(failed > 8);
}

/*
 * Removing a log is cut short at every step, in every way: its directory is there with all of its files, or its name is
 * free.  A directory of its name that lacks files would look like a log that has lost records.
 */
static void
test_removal_cut_short(void)
{
	static const SimPoint points[] = {SIM_BEFORE, SIM_MIDDLE, SIM_AFTER};
	static const SimLoss losses[] = {SIM_KEEP_ALL, SIM_LOSE_ALL, SIM_RANDOM};
	static const uint64_t logs[] = {7, 1};
	uint64_t	steps = 0;
	int			whole = 0;
	int			gone = 0;

	for (uint64_t step = 0; step <= steps; step++)
		for (int i = 0; i < 9; i++)
		{
			uint64_t	now;
			uint32_t	strays = 0;
			uint64_t   *ids;
			uint32_t	n;

			begin(step * 16 + (uint64_t) i);
			hand_roll(&hand, 1);
			hand_roll(&hand, 1);
			hand_make_file(&hand, "qlog/q1/r00000001.qidx", "derived", 7);
			(void) hand_log(&hand, 7);
			hand_sync(&hand);
			now = sim_disk_steps(hand.disk);
			if (step > 0)
				sim_disk_crash_at(hand.disk, now + step, points[i % 3]);
			CHECK_U64(qc_log_remove_files(&hand.files, logs, 2, &err), step > 0 ? QC_IO : QC_OK);
			if (step == 0)
			{
				steps = sim_disk_steps(hand.disk) - now;

				/* a start that begins with an older snapshot does it again */
				CHECK_U64(qc_log_remove_files(&hand.files, logs, 2, &err), QC_OK);
			}
			sim_disk_reboot(hand.disk, losses[i / 3], losses[i / 3]);
			forget_handles();
			CHECK_U64(qc_dir_logs(hand.io, QC_LAYOUT_FLAT, &ids, &n, &err), QC_OK);
			if (n > 1 && ids[1] == 1)
			{
				whole++;
				CHECK(hand_size(&hand, "qlog/q1/r00000001.qlog") == HAND_ALLOCATED);
				CHECK(hand_size(&hand, "qlog/q1/r00000002.qlog") == HAND_ALLOCATED);
				CHECK(hand_size(&hand, "qlog/q1/r00000003.qlog") == HAND_ALLOCATED);
			}
			else
			{
				gone++;
				CHECK(n == 1 || (n == 2 && ids[1] == 7));
			}
			free(ids);

			/* the start sweeps, and the name can be used */
			CHECK_U64(qc_dir_sweep(hand.io, QC_LAYOUT_FLAT, &strays, &err), QC_OK);
			CHECK_U64(strays, 0);
			CHECK_U64(hand_size(&hand, "qlog/q1.dead/r00000001.qlog"), UINT64_MAX);
			CHECK_U64(qc_log_create_files(&hand.files, 1, QC_EXTEND_MIN, &err), QC_OK);
			expect_blank(1, QC_EXTEND_MIN);
			CHECK_U64(hand_size(&hand, "qlog/q1/r00000002.qlog"), UINT64_MAX);
			end();
		}
	CHECK(steps > 5);
	CHECK(whole > 3 && gone > 3);
}

/* ---- closing early, listing ---- */

static void
make_ahead(uint64_t file, uint64_t size)
{
	QcExtend	extend = {.log = 1, .file = file, .to = size, .create = true};

	CHECK_U64(qc_log_extend_io(&hand.files, &extend, &err), QC_OK);
	qc_log_extended(st, &extend, SMALL);
}

/* The active file is closed only when there is a next one, something stands in it, and promises do not need its rest. */
static void
test_seal(void)
{
	QcPlace		place;

	begin(91);
	CHECK(!qc_log_seal(st, the_log(), SMALL));
	CHECK(promise(100, 100, SMALL));
	place = qc_log_place(st, the_log(), 100, SMALL);
	CHECK_U64(place.file, 1);
	CHECK(!qc_log_seal(st, the_log(), SMALL));
	CHECK(promise(SMALL - 100, 60000, SMALL));
	if (!CHECK_U64(the_log()->last_file, 2))
		return;

	/* All of it fits into the next file. */
	CHECK(qc_log_seal(st, the_log(), SMALL));
	CHECK_U64(the_log()->file, 2);
	CHECK_U64(the_log()->tail, QC_FILE_HEADER_SIZE);
	CHECK_U64(the_log()->allocated, the_log()->last_allocated);
	CHECK(!qc_log_seal(st, the_log(), SMALL));
	place = qc_log_place(st, the_log(), 60000, SMALL);
	CHECK_U64(place.file, 2);
	CHECK_U64(place.position, QC_FILE_HEADER_SIZE);
	CHECK(place.rolled);

	/* What is promised fits here, and not into a next file of this size. */
	make_ahead(3, 70000);
	CHECK(!qc_log_seal(st, the_log(), SMALL));
	qc_log_uncredit(st, the_log(), the_log()->credit - 60000);
	CHECK(qc_log_seal(st, the_log(), SMALL));
	CHECK_U64(the_log()->file, 3);
	end();
}

static uint64_t
first_listed(QcLogList list)
{
	const QcLog *log = qc_log_listed(st, list);

	return log == NULL ? 0 : log->id;
}

/* Logs that have changed stand in lists, once; those that are removed in none. */
static void
test_lists(void)
{
	bool		waits;
	bool		ready;

	begin(93);
	CHECK_U64(first_listed(QC_LOGS_GROWN), 0);
	CHECK(promise(200, 100, SMALL));
	(void) qc_log_place(st, the_log(), 100, SMALL);
	(void) qc_log_place(st, the_log(), 100, SMALL);
	CHECK_U64(first_listed(QC_LOGS_GROWN), 1);
	CHECK_U64(st->nlisted[QC_LOGS_GROWN], 1);
	CHECK_U64(first_listed(QC_LOGS_ROLLED), 0);
	qc_log_unlist(st, the_log(), QC_LOGS_GROWN);
	CHECK_U64(first_listed(QC_LOGS_GROWN), 0);

	/* Closed because it is full, and early. */
	CHECK(promise(SMALL, 60000, SMALL));
	while (the_log()->file == 1)
		(void) qc_log_place(st, the_log(), 60000, SMALL);
	CHECK_U64(first_listed(QC_LOGS_ROLLED), 1);
	qc_log_unlist(st, the_log(), QC_LOGS_ROLLED);
	qc_log_uncredit(st, the_log(), the_log()->credit);
	make_ahead(the_log()->last_file + 1, 70000);
	CHECK(qc_log_seal(st, the_log(), SMALL));
	CHECK_U64(first_listed(QC_LOGS_ROLLED), 1);

	/*
	 * Dropped ones go in their order, when the floor has passed them; one with a credit is passed
	 * over.
	 */
	st->snapshot_seq = UINT64_MAX;
	for (uint64_t id = 2; id <= 5; id++)
	{
		CHECK(qc_log_add(st, id, 1, QC_FILE_HEADER_SIZE, HAND_ALLOCATED, false) != NULL);
		st->seq = id * 10;
		qc_log_abandon(st, qc_log_by_id(st, id));
	}
	qc_log_removal(st, &waits, &ready);
	CHECK(waits && !ready);
	CHECK_U64(qc_log_remove_next(st), 0);
	st->checkpoint_seq = 40;
	qc_log_by_id(st, 2)->credit = 1;
	qc_log_removal(st, &waits, &ready);
	CHECK(waits && ready);
	CHECK_U64(qc_log_remove_next(st), 3);
	CHECK_U64(qc_log_remove_next(st), 4);
	CHECK_U64(qc_log_remove_next(st), 0);
	qc_log_by_id(st, 2)->credit = 0;
	CHECK_U64(qc_log_remove_next(st), 2);
	qc_log_list(st, qc_log_by_id(st, 5), QC_LOGS_GROWN);
	st->checkpoint_seq = 50;
	CHECK_U64(qc_log_remove_next(st), 5);
	CHECK_U64(st->nlisted[QC_LOGS_GROWN] + st->nlisted[QC_LOGS_DROPPED], 1);
	qc_log_removal(st, &waits, &ready);
	CHECK(!waits && !ready);
	end();
}

/* Every log once, in pieces, while others come and go. */
static void
test_ids(void)
{
	uint64_t	ids[7];
	uint32_t	at = 0;
	uint32_t	n;
	uint32_t	seen = 0;
	bool		found[101] = {false};

	begin(92);
	for (uint64_t id = 2; id <= 100; id++)
		CHECK(qc_log_add(st, id, 1, QC_FILE_HEADER_SIZE, HAND_ALLOCATED, false) != NULL);
	while ((n = qc_log_ids(st, &at, ids, 7)) > 0)
	{
		CHECK(n <= 7);
		for (uint32_t i = 0; i < n; i++)
		{
			CHECK(ids[i] >= 1 && ids[i] <= 100 && !found[ids[i]]);
			found[ids[i]] = true;
			seen++;
		}
	}
	CHECK_U64(seen, 100);
	end();
}

int
main(void)
{
	UNIT_RUN(test_promises_are_kept);
	UNIT_RUN(test_small_behind_large);
	UNIT_RUN(test_empty_file_grows);
	UNIT_RUN(test_extension_fails_anywhere);
	UNIT_RUN(test_full_disk);
	UNIT_RUN(test_existing_file_is_not_replaced);
	UNIT_RUN(test_created_logs_survive);
	UNIT_RUN(test_creation_fails_anywhere);
	UNIT_RUN(test_removal_cut_short);
	UNIT_RUN(test_seal);
	UNIT_RUN(test_lists);
	UNIT_RUN(test_ids);
	return unit_end();
}
