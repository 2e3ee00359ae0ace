/*
 * test_hashes.c
 *		.qhsh: the dedup ids of a closed log file, and who uses them: the start and reclaim.
 */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "qc_dedup.h"
#include "qc_dedup_rebuild.h"
#include "qc_hashes.h"
#include "qc_rewrite.h"
#include "sample.h"

#define SAMPLE_FILE	1
#define NOW			INT64_C(2000000)
#define GONE		UINT64_MAX
#define RECORDS		6			/* in each file, of MESSAGES each */
#define MESSAGES	3
#define IN_FILE		(RECORDS * MESSAGES)

static QcError err;

static uint64_t
sample_length(const uint8_t *buf)
{
	return qc_load_u64(buf + 24);
}

/* ---- the format ---- */

static void
test_sample(void)
{
	uint8_t		buf[SAMPLE_MAX];
	size_t		len = sample_hashes(buf);
	size_t		at = 0;
	QcMessage	golden = sample_golden_message();
	uint8_t		expected[QC_HASH_SIZE];
	const uint8_t *hash;
	const uint8_t *id;
	QcHashesRecord record;

	qc_frame_hash(&golden, expected);
	CHECK_U64(len, 48 + 6 * QC_HASHES_CELL);
	CHECK_U64(qc_hashes_check(buf, len, SAMPLE_FILE, sample_length(buf), &err), QC_OK);
	CHECK(qc_hashes_next(buf, len, &at, &record));
	CHECK_U64(record.partition, 1);
	CHECK_U64(record.count, 1);
	CHECK(qc_hashes_id(&record, 0, &hash, &id));
	CHECK_BYTES(hash, QC_HASH_SIZE, expected, QC_HASH_SIZE);
	CHECK_BYTES(id, QC_ID_SIZE, golden.id, QC_ID_SIZE);
	CHECK(qc_hashes_next(buf, len, &at, &record));
	CHECK_U64(record.partition, 2);
	CHECK_U64(record.count, 2);
	CHECK_U64(record.ids, 1);
	CHECK(!qc_hashes_id(&record, 0, &hash, &id));
	CHECK(qc_hashes_id(&record, 1, &hash, &id));
	CHECK_BYTES(hash, QC_HASH_SIZE, expected, QC_HASH_SIZE);
	CHECK(!qc_hashes_next(buf, len, &at, &record));
	CHECK_U64(qc_hashes_check(buf, len, 2, sample_length(buf), &err), QC_DAMAGED);
	CHECK_U64(qc_hashes_check(buf, len, SAMPLE_FILE, sample_length(buf) + 1, &err), QC_DAMAGED);
}

static QcStatus
check_exact(const uint8_t *bytes, size_t len, uint64_t length)
{
	uint8_t    *copy = malloc(len > 0 ? len : 1);
	QcStatus	status;

	memcpy(copy, bytes, len);
	status = qc_hashes_check(copy, len, SAMPLE_FILE, length, &err);
	free(copy);
	return status;
}

static void
test_every_truncation_and_flip(void)
{
	uint8_t		buf[SAMPLE_MAX];
	size_t		len = sample_hashes(buf);
	uint64_t	length = sample_length(buf);

	for (size_t cut = 0; cut < len; cut++)
		CHECK_U64(check_exact(buf, cut, length), QC_DAMAGED);
	for (size_t at = 0; at < len; at++)
	{
		buf[at] ^= 1;
		CHECK_U64(check_exact(buf, len, length), QC_DAMAGED);
		buf[at] ^= 1;
	}
	memset(buf + len, 0, QC_HASHES_CELL);
	CHECK_U64(check_exact(buf, len + QC_HASHES_CELL, length), QC_DAMAGED);
	CHECK_U64(check_exact(buf, len, length), QC_OK);
}

/* What no encoder writes, with right checksums. */
static void
test_impossible(void)
{
	static const struct
	{
		uint32_t	at;
		uint8_t		value;
		uint32_t	cells;		/* 0 = as they are */
	}			cases[] = {
		{48, 31, 0},			/* last record in the file's header */
		{48 + 7, 1, 0},			/* behind its end */
		{48 + 16, 1, 0},		/* other number of records */
		{48 + 24, 3, 0},		/* of ids */
		{48 + 32 + 24, 2, 0},	/* more messages than cells of the record */
		{48 + 32 + 28, 2, 0},	/* more ids than messages */
		{48 + 96 + 24, 3, 0},	/* more messages than there are cells */
		{48, 32, 5},			/* cut within a record */
		{48, 32, 0x100}			/* no cell, not even the seal */
	};
	uint8_t		buf[SAMPLE_MAX];
	size_t		len = sample_hashes(buf);
	const QcDerived kind = {"QQHSH1\0", QC_HASHES_CELL, ""};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		uint8_t		bad[SAMPLE_MAX];
		uint32_t	cells = cases[i].cells == 0 ? (uint32_t) ((len - 48) / QC_HASHES_CELL) :
			cases[i].cells & 0xff;

		memcpy(bad, buf, len);
		bad[cases[i].at] = cases[i].value;
		qc_derived_seal(bad, &kind, SAMPLE_FILE, sample_length(buf), cells);
		CHECK_U64(check_exact(bad, 48 + (size_t) cells * QC_HASHES_CELL, sample_length(buf)), QC_DAMAGED);
	}
}

/* ---- a log of three files, whose even messages have an id ---- */

static uint64_t next_seq;
static uint64_t rebuild_reads;	/* of the last rebuild */

static void
fill_file(uint64_t file)
{
	for (uint64_t i = 0; i < RECORDS; i++)
		(void) hand_solo(&hand, 1, next_seq++, 101, (file - 1) * IN_FILE + i * MESSAGES, MESSAGES);
}

static void
begin(void)
{
	fixture_begin();
	hand.dedup = true;
	next_seq = 3;
	fill_file(1);
	hand_roll(&hand, 1);
	fill_file(2);
	hand_roll(&hand, 1);
	fill_file(3);
	hand_sync(&hand);
}

static void
end(void)
{
	qc_files_close(&hand.files);
	hand_end(&hand);
}

/* What the window holds, whatever the order: a digest, and in *count how much. */
static uint64_t
window(uint32_t *count)
{
	const QcQueue *queue = qc_queue_by_id(run.st, 1);
	const QcDedup *dedup = QC_AT(run.st, QcDedup, queue->dedups.head);
	uint64_t	sum = 0;

	*count = 0;
	for (; dedup != NULL; dedup = QC_AT(run.st, QcDedup, dedup->link))
	{
		uint8_t		bytes[QC_HASH_SIZE + QC_ID_SIZE + 16];

		memcpy(bytes, dedup->hash, QC_HASH_SIZE);
		memcpy(bytes + QC_HASH_SIZE, dedup->id, QC_ID_SIZE);
		qc_store_u64(bytes + 32, dedup->partition);
		qc_store_u64(bytes + 40, (uint64_t) dedup->pushed_at);
		sum += qc_digest(bytes, sizeof(bytes));
		(*count)++;
	}
	return sum;
}

/* Start, and fill the window; how much it holds then. */
static uint32_t
rebuild(const Rows *rows, int64_t since, uint64_t *digest)
{
	RunOptions	options = {.rows = rows};
	uint32_t	count = 0;
	uint32_t	damaged = 0;
	QcQueue    *queue;

	*digest = 0;
	if (!run_ok(&run, &hand, &server, &options))
		return 0;
	queue = qc_queue_by_id(run.st, 1);
	queue->options.value[QC_OPT_DEDUP_WINDOW] = NOW - since + 1;
	rebuild_reads = sim_disk_count(hand.disk, SIM_OP_READ);
	CHECK_U64(qc_dedup_rebuild(run.st, &run.cache, NOW, &damaged, &err), QC_OK);
	rebuild_reads = sim_disk_count(hand.disk, SIM_OP_READ) - rebuild_reads;
	CHECK_U64(damaged, 0);
	*digest = window(&count);
	return count;
}

static void
make_derived(uint64_t file, bool idx, bool hashes)
{
	static const char *const suffixes[] = {"qidx", "qhsh"};

	for (int i = 0; i < 2; i++)
	{
		char		path[QC_PATH_MAX];

		qc_path_file(path, QC_LAYOUT_FLAT, 1, file, suffixes[i]);
		(void) hand.io->unlink(hand.io->context, path);
	}
	CHECK_U64(qc_read_build(&hand.files, 1, file, (idx ? QC_BUILD_IDX : 0) | (hashes ? QC_BUILD_HASHES : 0), &err),
			  QC_OK);
}

/*
 * Each of the three files of a number there or not: the window is the same with and without the derived ones, and without the log
 * file they stand for nothing.	 For a closed file and for the active one.
 */
static void
test_presence(void)
{
	for (uint64_t file = 2; file <= 3; file++)
		for (unsigned present = 0; present < 8; present++)
		{
			Rows		rows = {0};
			uint64_t	whole;
			uint64_t	digest;
			uint64_t	again;
			bool		qlog = (present & 1) != 0;

			begin();
			CHECK_U64(rebuild(NULL, 0, &whole), 3 * IN_FILE / 2);
			rows_take(&rows, run.st);
			run_end(&run);
			if (file == 2 || present > 1)
				make_derived(file, (present & 2) != 0, (present & 4) != 0);
			hand_sync(&hand);
			if (qlog)
			{
				CHECK_U64(rebuild(&rows, 0, &digest), 3 * IN_FILE / 2);
				CHECK_U64(digest, whole);
				expect_readable(&run, 1, 0, 3 * IN_FILE);
			}
			else
			{
				char		path[QC_PATH_MAX];
				RunOptions	options = {.rows = &rows};

				qc_path_file(path, QC_LAYOUT_FLAT, 1, file, "qlog");
				qc_files_close(&hand.files);
				CHECK_U64(hand.io->unlink(hand.io->context, path), 0);
				if (file == 2)
				{
					/* below the mark: whoever reads it finds that it is missing */
					CHECK_U64(rebuild(&rows, 0, &digest), 2 * IN_FILE / 2);
					CHECK_U64(hand_size(&hand, path), GONE);
				}
				else
					CHECK(run_recovery(&run, &hand, &server, &options) != QC_OK);
			}
			run_end(&run);
			if (qlog)
			{
				CHECK_U64(rebuild(NULL, 0, &again), 3 * IN_FILE / 2);
				CHECK_U64(again, whole);
				run_end(&run);
			}
			rows_free(&rows);
			end();
		}
}

/* A .qhsh that does not fit is not believed, and goes; no payload is read where one fits. */
static void
test_wrong_ones(void)
{
	static const char path[] = "qlog/q1/r00000002.qhsh";
	uint64_t	whole;
	uint64_t	digest;
	uint64_t	size;

	begin();
	CHECK_U64(rebuild(NULL, 0, &whole), 3 * IN_FILE / 2);
	run_end(&run);
	for (uint64_t file = 1; file <= 2; file++)
		CHECK_U64(qc_read_build(&hand.files, 1, file, QC_BUILD_IDX | QC_BUILD_HASHES, &err), QC_OK);
	size = hand_size(&hand, path);
	CHECK_U64(size, 48 + (1 + RECORDS * (1 + MESSAGES)) * QC_HASHES_CELL);
	for (uint64_t at = 0; at < size; at += 7)
	{
		CHECK_U64(sim_disk_flip(hand.disk, path, at, 0x10), 0);
		CHECK_U64(rebuild(NULL, 0, &digest), 3 * IN_FILE / 2);
		CHECK_U64(digest, whole);
		CHECK_U64(hand_size(&hand, path), GONE);
		CHECK(!qc_hashes_usable(&hand.files, 1, 2));
		run_end(&run);
		CHECK_U64(qc_read_build(&hand.files, 1, 2, QC_BUILD_HASHES, &err), QC_OK);
		CHECK(qc_hashes_usable(&hand.files, 1, 2));
	}

	/* of another file */
	CHECK_U64(hand.io->rename(hand.io->context, "qlog/q1/r00000001.qhsh", path), 0);
	CHECK_U64(rebuild(NULL, 0, &digest), 3 * IN_FILE / 2);
	CHECK_U64(digest, whole);
	CHECK_U64(hand_size(&hand, path), GONE);
	run_end(&run);
	end();
}

/* A file that went on otherwise to the same length has another last record. */
static void
test_other_content(void)
{
	uint8_t		record[HAND_RECORD_MAX];
	size_t		size;

	begin();
	CHECK_U64(qc_read_build(&hand.files, 1, 2, QC_BUILD_HASHES, &err), QC_OK);
	CHECK(qc_hashes_usable(&hand.files, 1, 2));
	size = hand_message(&hand, record, true, next_seq, 101, 2 * IN_FILE - MESSAGES, MESSAGES);
	hand_write(&hand, 1, 2, hand_size(&hand, "qlog/q1/r00000002.qlog") - size, record, size);
	CHECK(!qc_hashes_usable(&hand.files, 1, 2));
	end();
}

/* Messages whose ids are made up: the seal alone, and that it is there says that none has to be read. */
static void
test_none(void)
{
	uint64_t	digest;
	uint8_t    *bytes;
	size_t		len;
	uint64_t	reads;

	fixture_begin();
	next_seq = 3;
	fill_file(1);
	hand_roll(&hand, 1);
	hand.dedup = true;
	fill_file(2);
	hand_sync(&hand);
	CHECK_U64(rebuild(NULL, 0, &digest), IN_FILE / 2);
	reads = rebuild_reads;
	run_end(&run);
	CHECK_U64(qc_read_build(&hand.files, 1, 1, QC_BUILD_HASHES, &err), QC_OK);
	CHECK_U64(qc_hashes_read(&hand.files, 1, 1, &bytes, &len, &err), QC_OK);
	CHECK_U64(len, 48 + QC_HASHES_CELL);
	free(bytes);
	CHECK_U64(rebuild(NULL, 0, &digest), IN_FILE / 2);
	CHECK(rebuild_reads < reads);
	run_end(&run);
	end();
}

/* Files of before the window are not opened, with or without derived ones. */
static void
test_since(void)
{
	uint64_t	digest;
	QcReadCache *cache = &run.cache;
	uint32_t	damaged;
	uint64_t	opens;

	begin();
	for (uint64_t file = 1; file <= 2; file++)
		CHECK_U64(qc_read_build(&hand.files, 1, file, QC_BUILD_HASHES, &err), QC_OK);

	/* from the third record of file 2 on: its messages 24, 26, ..., then those of file 3 */
	CHECK_U64(rebuild(NULL, hand.clock + 3 + RECORDS + 2, &digest), (2 * IN_FILE - 2 * MESSAGES) / 2);

	/* only the end of file 3: neither .qhsh is opened */
	qc_files_close(&hand.files);
	qc_queue_by_id(run.st, 1)->options.value[QC_OPT_DEDUP_WINDOW] =
		NOW - (hand.clock + 3 + 2 * RECORDS + 1) + 1;
	qc_queue_by_id(run.st, 1)->last_dedup = NOW;
	opens = sim_disk_opens(hand.disk);
	CHECK_U64(qc_dedup_rebuild(run.st, cache, NOW, &damaged, &err), QC_OK);
	opens = sim_disk_opens(hand.disk) - opens;
	CHECK(opens <= 4);
	run_end(&run);
	end();
}

/* ---- reclaim ---- */

static void
no_lock(void *context)
{
	(void) context;
}

/* Everything is purged, but the ids are within the window: what the look says by the .qhsh is what the records say. */
static void
test_look_and_rewrite(void)
{
	const QcStateLock lock = {NULL, no_lock, no_lock, no_lock};
	uint64_t	digest;
	uint64_t	reads[2];
	uint32_t	needed[2];
	QcLook		look;
	QcRewrite	rewrite;
	uint8_t    *made;
	uint8_t    *anew;
	size_t		len[2];

	begin();
	(void) rebuild(NULL, hand.clock + 3 + RECORDS + 2, &digest);
	qc_partition_by_id(run.st, 101)->start = 3 * IN_FILE;
	qc_look_init(&look, run.st, &run.cache, &lock);
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 2, &err), QC_OK);
	for (int i = 0; i < 2; i++)
	{
		if (i == 1)
			CHECK_U64(qc_read_build(&hand.files, 1, 2, QC_BUILD_HASHES, &err), QC_OK);
		reads[i] = sim_disk_count(hand.disk, SIM_OP_READ);
		CHECK_U64(qc_look_at(&look, 1, 2, NOW, &err), QC_OK);
		reads[i] = sim_disk_count(hand.disk, SIM_OP_READ) - reads[i];
		needed[i] = look.live_records;
		CHECK_U64(look.held, QC_LIVE_DEDUP);
	}
	CHECK_U64(needed[0], RECORDS - 2);
	CHECK_U64(needed[1], RECORDS - 2);
	CHECK(reads[1] < reads[0]);

	/* written anew with it: it is what would be made of the new file */
	CHECK_U64(qc_rewrite_copy(&rewrite, &look, NULL, NULL, &err), QC_OK);
	CHECK_U64(qc_rewrite_publish(&rewrite, NULL, NULL, &err), QC_OK);
	CHECK_U64(qc_hashes_read(&hand.files, 1, 2, &made, &len[0], &err), QC_OK);
	CHECK_U64(qc_read_build(&hand.files, 1, 2, QC_BUILD_HASHES, &err), QC_OK);
	CHECK_U64(qc_hashes_read(&hand.files, 1, 2, &anew, &len[1], &err), QC_OK);
	CHECK_BYTES(made, len[0], anew, len[1]);
	CHECK_U64(len[0], 48 + (1 + (RECORDS - 2) * (1 + MESSAGES)) * QC_HASHES_CELL);
	free(made);
	free(anew);
	qc_look_end(&look);
	run_end(&run);
	end();
}

int
main(void)
{
	UNIT_RUN(test_sample);
	UNIT_RUN(test_every_truncation_and_flip);
	UNIT_RUN(test_impossible);
	UNIT_RUN(test_presence);
	UNIT_RUN(test_wrong_ones);
	UNIT_RUN(test_other_content);
	UNIT_RUN(test_none);
	UNIT_RUN(test_since);
	UNIT_RUN(test_look_and_rewrite);
	return unit_end();
}
