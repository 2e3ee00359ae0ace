/*
 * test_dirx.c
 *		Directories over closed files: what they are made of, how few of them answer, and that they are hints only.
 */
#include "handmade.h"

#include <stdlib.h>
#include <string.h>

#include "qc_dirx.h"
#include "qc_read.h"
#include "sample.h"
#include "unit.h"

#define MANY		5000		/* closed files */
#define MAX_BYTES	(1u << 20)

/* Partitions, and in which files they have a message: the position is the how-manieth file it is. */
#define EVERYWHERE	101
#define THIRDS		102			/* every third file */
#define SPARSE		103			/* six files far apart */
#define EARLY		104			/* files 1 to 9 */
#define NOWHERE		105

static Hand hand;
static QcReadCache cache;
static QcError err;

static const uint64_t sparse[] = {7, 900, 901, 2500, 4095, 4990};

static bool
go_on(void *context)
{
	int		   *left = context;

	return left == NULL || (*left)-- > 0;
}

/*
 * A file with one record of each partition that has a message in it, without zeros behind, and, when it is closed, its index: made by
 * hand, as scanning a log lists its directory.
 */
static void
put_file(uint64_t file, uint64_t next[4], bool closed)
{
	static uint8_t bytes[8192];
	QcIdxEntry	entries[4];
	uint32_t	count = 0;
	QcFileHeader header = {file, file};
	size_t		len = QC_FILE_HEADER_SIZE;
	char		path[QC_PATH_MAX];

	qc_file_header_encode(bytes, &header);
	for (int i = 0; i < 4; i++)
	{
		bool		there = i == 0 || (i == 1 && file % 3 == 0) || (i == 3 && file < 10);

		for (size_t k = 0; i == 2 && k < sizeof(sparse) / sizeof(sparse[0]); k++)
			there |= sparse[k] == file;
		if (there)
		{
			size_t		size = hand_message(&hand, bytes + len, true, file, EVERYWHERE + (uint64_t) i, next[i], 1);

			entries[count++] = (QcIdxEntry)
			{
				EVERYWHERE + (uint64_t) i, next[i], next[i] + 1, hand.clock + (int64_t) file, len, 1, (uint32_t) size - 4
			};
			next[i]++;
			len += size;
		}
	}
	qc_path_file(path, QC_LAYOUT_FLAT, 1, file, "qlog");
	if (file == 1)
		(void) hand.io->unlink(hand.io->context, path);
	hand_make_file(&hand, path, bytes, len);
	if (!closed)
		return;
	qc_idx_encode(bytes, file, len, entries, count);
	qc_path_file(path, QC_LAYOUT_FLAT, 1, file, "qidx");
	hand_make_file(&hand, path, bytes, QC_IDX_HEADER_SIZE + count * QC_IDX_ENTRY_SIZE);
}

static void
begin(uint64_t files)
{
	uint64_t	next[4] = {0};

	hand_begin(&hand, QC_LAYOUT_FLAT, 7);
	(void) hand_log(&hand, 1);
	qc_files_close(&hand.files);
	for (uint64_t file = 1; file <= files; file++)
		put_file(file, next, file < files);
	hand_read_init(&hand, &cache);
}

static void
end(void)
{
	qc_read_end(&cache);
	qc_files_close(&hand.files);
	CHECK_U64((uint64_t) sim_disk_handles(hand.disk), 0);
	hand_end(&hand);
}

static QcStatus
make(uint64_t first, uint64_t active, bool check, size_t max_bytes, int *left)
{
	QcDirxMake	how = {.files = &hand.files, .log = 1, .first_file = first, .active = active,
		.max_bytes = max_bytes, .check = check, .go_on = go_on, .context = left};

	return qc_dirx_make(&how, &err);
}

static bool
there(uint32_t level, uint64_t file)
{
	QcDirx		dirx = qc_dirx_of(level, file);
	char		path[QC_PATH_MAX];

	qc_dirx_path(path, QC_LAYOUT_FLAT, 1, &dirx);
	return hand_size(&hand, path) != UINT64_MAX;
}

/* Visitor. */
static bool
count_dirx(void *context, const char *name, bool is_directory)
{
	QcDirx		dirx;

	(void) is_directory;
	*(int *) context += qc_dirx_parse(name, &dirx);
	return true;
}

static int
directories(void)
{
	int			n = 0;

	CHECK_U64(hand.io->list(hand.io->context, "qlog/q1", count_dirx, &n), 0);
	return n;
}

/* A new process looks for a position: it is in this file. Returns opens and reads. */
static uint64_t
cost(uint64_t partition, uint64_t position, uint64_t first, uint64_t last, uint64_t file)
{
	QcLocation	location = {0};
	uint64_t	before;
	uint64_t	shown = sim_disk_shown(hand.disk);

	qc_read_end(&cache);
	qc_files_close(&hand.files);
	before = sim_disk_opens(hand.disk) + sim_disk_count(hand.disk, SIM_OP_READ);
	CHECK_U64(qc_read_locate(&cache, 1, partition, position, first, last, &location, &err), QC_OK);
	before = sim_disk_opens(hand.disk) + sim_disk_count(hand.disk, SIM_OP_READ) - before;
	CHECK_U64(location.file, file);
	CHECK_U64(location.first, position);

	/* a listing costs as much as its names */
	return before + sim_disk_shown(hand.disk) - shown;
}

static void
test_names(void)
{
	static const char *const wrong[] = {
		"dirx.qdx", "dirx-00000001-00000004", "dirx-00000001-00000005.qdx", "dirx-00000002-00000005.qdx",
		"dirx-1-4.qdx", "dirx-00000001-00000004.qdx.tmp", "dirx-00000000-00000003.qdx",
		"dirx-000000001-00000004.qdx", "dirx-00000001-00000001.qdx", "Dirx-00000001-00000004.qdx",
		"dirx-99999999999999999999-00000004.qdx", "dirx-", ""
	};
	QcDirx		dirx = qc_dirx_of(2, 17);
	char		path[QC_PATH_MAX];

	CHECK_U64(dirx.first, 17);
	CHECK_U64(dirx.last, 32);
	qc_dirx_path(path, QC_LAYOUT_HIERARCHICAL, 7, &dirx);
	CHECK_STR(path, "qlog/00/0000/q7/dirx-00000017-00000032.qdx");
	CHECK(qc_dirx_parse("dirx-00000017-00000032.qdx", &dirx));
	CHECK_U64(dirx.level, 2);
	CHECK_U64(dirx.first, 17);
	CHECK(qc_dirx_parse("dirx-00000001-1073741824.qdx", &dirx));
	CHECK_U64(dirx.level, 15);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(!qc_dirx_parse(wrong[i], &dirx));
}

/* Four become one; what it says, byte for byte. */
static void
test_made(void)
{
	uint8_t		buf[SAMPLE_MAX];
	uint8_t		made[SAMPLE_MAX];
	size_t		len = sample_directory(buf);
	QcHandle	handle;
	size_t		done;

	begin(6);
	CHECK_U64(make(1, 6, true, MAX_BYTES, NULL), QC_OK);
	CHECK_U64((uint64_t) directories(), 1);
	CHECK(there(1, 1));
	CHECK_U64(hand.io->open(hand.io->context, "qlog/q1/dirx-00000001-00000004.qdx", 0, &handle), 0);
	CHECK_U64(hand.io->read(hand.io->context, handle, made, sizeof(made), 0, &done), 0);
	hand.io->close(hand.io->context, handle);
	CHECK_BYTES(made, done, buf, len);
	end();
}

/*
 * 5000 closed files: every old message, in whatever partition, is found with few opens and reads, without a listing, and with a bounded
 * number of descriptors.	log2 of 5000 is 12.3.
 */
static void
test_few_are_asked(void)
{
	uint64_t	most = 0;
	uint64_t	old;

	begin(MANY + 1);
	old = cost(SPARSE, 3, 0, MANY, 2500);
	CHECK(old > 1000);
	CHECK_U64(make(1, MANY + 1, true, MAX_BYTES, NULL), QC_OK);

	/* 4096 + 3 x 256 + 2 x 64 + 2 x 4 */
	CHECK_U64((uint64_t) directories(), 8);
	for (uint64_t position = 0; position < MANY; position += 499)
	{
		uint64_t	n = cost(EVERYWHERE, position, 0, MANY, position + 1);

		most = n > most ? n : most;
	}
	for (uint64_t position = 0; position < MANY / 3; position += 499)
	{
		uint64_t	n = cost(THIRDS, position, 0, MANY, 3 * position + 3);

		most = n > most ? n : most;
	}
	for (uint64_t i = 0; i < sizeof(sparse) / sizeof(sparse[0]); i++)
	{
		uint64_t	n = cost(SPARSE, i, 0, MANY, sparse[i]);

		most = n > most ? n : most;
	}
	for (uint64_t position = 0; position < 9; position++)
	{
		uint64_t	n = cost(EARLY, position, 0, MANY, position + 1);

		most = n > most ? n : most;
	}
	printf("# opens and reads: %llu at most, %llu without directories\n", (unsigned long long) most, (unsigned long long) old);
	CHECK(most <= 80);
	CHECK(sim_disk_handles(hand.disk) <= QC_FILES_MAX);
	CHECK_U64(cache.lacking_file, 0);

	/* with a beginning that is gone, too */
	for (uint64_t file = 1; file < 3000; file++)
	{
		char		path[QC_PATH_MAX];

		qc_path_file(path, QC_LAYOUT_FLAT, 1, file, "qlog");
		CHECK_U64(hand.io->unlink(hand.io->context, path), 0);
		qc_path_file(path, QC_LAYOUT_FLAT, 1, file, "qidx");
		CHECK_U64(hand.io->unlink(hand.io->context, path), 0);
	}
	CHECK_U64(make(3000, MANY + 1, false, MAX_BYTES, NULL), QC_OK);
	CHECK(cost(SPARSE, 4, 3000, MANY, 4095) <= 80);
	CHECK(cost(EVERYWHERE, 3500, 3000, MANY, 3501) <= 80);
	end();
}

/* One after the other as files are closed, which is the same in the end; each pass makes what has become complete. */
static void
test_growing(void)
{
	begin(70);
	for (uint64_t active = 1; active <= 70; active++)
	{
		uint64_t	closed = active - 1;
		int			expected = (int) (closed / 64 + closed % 64 / 16 + closed % 16 / 4);

		CHECK_U64(make(1, active, false, MAX_BYTES, NULL), QC_OK);
		CHECK_U64((uint64_t) directories(), (uint64_t) expected);
		if (closed > 0)
			CHECK(cost(EVERYWHERE, closed / 2, 0, closed, closed / 2 + 1) < 60);
	}
	end();
}

/* Interrupted after each one, it goes on from there. */
static void
test_interrupted(void)
{
	int			rounds = 0;
	int			left = 1;

	begin(70);
	while (make(1, 70, false, MAX_BYTES, &left) == QC_END)
	{
		left = 1;
		rounds++;
		CHECK(cost(EVERYWHERE, 40, 0, 69, 41) > 0);
	}
	CHECK_U64((uint64_t) rounds, 16 + 1 + 4);
	CHECK_U64((uint64_t) directories(), 2);
	end();
}

/* Those over files that are gone go; one that stands for the oldest file too stays. */
static void
test_trim(void)
{
	begin(30);
	CHECK_U64(make(1, 30, false, MAX_BYTES, NULL), QC_OK);
	CHECK_U64((uint64_t) directories(), 1 + 3);
	CHECK_U64(qc_dirx_trim(&hand.files, 1, 16, &err), QC_OK);
	CHECK_U64((uint64_t) directories(), 4);
	CHECK_U64(qc_dirx_trim(&hand.files, 1, 21, &err), QC_OK);
	CHECK_U64((uint64_t) directories(), 2);
	CHECK(!there(2, 1) && !there(1, 17) && there(1, 21) && there(1, 25));
	CHECK_U64(qc_dirx_trim(&hand.files, 1, 30, &err), QC_OK);
	CHECK_U64((uint64_t) directories(), 0);
	end();
}

/* A file without index has none over it until it has one; a removed one holds nothing; too large ones are not made. */
static void
test_not_made(void)
{
	begin(18);
	CHECK_U64(hand.io->unlink(hand.io->context, "qlog/q1/r00000006.qidx"), 0);
	CHECK_U64(make(1, 18, false, MAX_BYTES, NULL), QC_OK);
	CHECK_U64((uint64_t) directories(), 3);
	CHECK(!there(1, 6));
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 6, &err), QC_OK);
	CHECK_U64(make(1, 18, false, 48 + 32 * 10, NULL), QC_OK);
	CHECK_U64((uint64_t) directories(), 4);
	qc_files_close(&hand.files);
	CHECK_U64(hand.io->unlink(hand.io->context, "qlog/q1/r00000006.qlog"), 0);
	CHECK_U64(qc_dirx_forget(&hand.files, 1, 6, &err), QC_OK);
	CHECK_U64((uint64_t) directories(), 3);
	CHECK_U64(make(1, 18, false, MAX_BYTES, NULL), QC_OK);
	CHECK_U64((uint64_t) directories(), 1);
	CHECK(there(2, 1));
	CHECK(cost(EVERYWHERE, 6, 0, 17, 7) < 40);

	/* its beginning goes: what is left of it still answers, and goes when nothing is */
	CHECK_U64(make(10, 18, false, MAX_BYTES, NULL), QC_OK);
	CHECK_U64((uint64_t) directories(), 1);
	CHECK_U64(make(17, 18, false, MAX_BYTES, NULL), QC_OK);
	CHECK_U64((uint64_t) directories(), 0);
	end();
}

/* Flipped bytes, foreign ones, parts left beside the whole: everything is found all the same. */
static void
test_wrong_ones(void)
{
	static const char path[] = "qlog/q1/dirx-00000001-00000016.qdx";
	uint64_t	size;
	int			noticed = 0;

	begin(22);
	CHECK_U64(make(1, 22, false, MAX_BYTES, NULL), QC_OK);
	size = hand_size(&hand, path);
	for (uint64_t at = 0; at < size; at += 3)
	{
		CHECK_U64(sim_disk_flip(hand.disk, path, at, 0x04), 0);
		for (uint64_t position = 0; position < 16; position += 5)
		{
			(void) cost(EVERYWHERE, position, 0, 21, position + 1);
			noticed += cache.lacking_file != 0 && cache.lacking_dirx;
		}
		CHECK_U64(sim_disk_flip(hand.disk, path, at, 0x04), 0);
	}
	CHECK(noticed > 0);

	/* the name of one, the bytes of another */
	CHECK_U64(hand.io->rename(hand.io->context, "qlog/q1/dirx-00000017-00000020.qdx", path), 0);
	CHECK(cost(EVERYWHERE, 3, 0, 21, 4) > 0);
	CHECK_U64(hand.io->unlink(hand.io->context, path), 0);
	CHECK_U64(make(1, 22, false, MAX_BYTES, NULL), QC_OK);
	CHECK_U64((uint64_t) directories(), 2);
	hand_make_file(&hand, "qlog/q1/dirx-00000005-00000008.qdx", "part", 4);
	CHECK_U64(make(1, 22, false, MAX_BYTES, NULL), QC_OK);
	CHECK_U64((uint64_t) directories(), 2);
	end();
}

/* After a start: one over the active file goes, and so does one whose last file has become longer since. */
static void
test_checked(void)
{
	uint8_t		record[HAND_RECORD_MAX];
	size_t		size;

	begin(10);
	CHECK_U64(make(1, 10, false, MAX_BYTES, NULL), QC_OK);
	CHECK(there(1, 1) && there(1, 5));
	CHECK_U64(make(1, 7, true, MAX_BYTES, NULL), QC_OK);
	CHECK(there(1, 1) && !there(1, 5));
	size = hand_message(&hand, record, true, 99, EVERYWHERE, 99, 1);
	hand_write(&hand, 1, 4, hand_size(&hand, "qlog/q1/r00000004.qlog"), record, size);
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 4, &err), QC_OK);
	CHECK_U64(make(1, 7, true, MAX_BYTES, NULL), QC_OK);
	CHECK(there(1, 1));
	CHECK(cost(EVERYWHERE, 99, 0, 4, 4) < 40);
	CHECK(!cache.lacking_dirx);
	end();
}

int
main(void)
{
	UNIT_RUN(test_names);
	UNIT_RUN(test_made);
	UNIT_RUN(test_few_are_asked);
	UNIT_RUN(test_growing);
	UNIT_RUN(test_interrupted);
	UNIT_RUN(test_trim);
	UNIT_RUN(test_not_made);
	UNIT_RUN(test_wrong_ones);
	UNIT_RUN(test_checked);
	return unit_end();
}
