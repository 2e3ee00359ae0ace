/*
 * test_read.c
 *		Reading messages by place, finding places in files, and .qidx files.
 */
#include "handmade.h"
#include "qc_read.h"
#include "qc_scan.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Hand hand;
static QcReadCache cache;
static QcError err;
static int	buffers;			/* given out by the allocator and not released */
static int	budget;				/* allocations that succeed from now on; -1 = all */

static void *
take(void *context, size_t size)
{
	(void) context;
	if (budget == 0)
		return NULL;
	if (budget > 0)
		budget--;
	buffers++;
	return malloc(size);
}

static void
release(void *context, void *buffer)
{
	(void) context;
	buffers--;
	free(buffer);
}

static void
begin(void)
{
	budget = -1;
	hand_begin(&hand, QC_LAYOUT_FLAT, 5);
	(void) hand_log(&hand, 1);
	qc_read_init(&cache, &hand.files, take, release, NULL);
	qc_error_clear(&err);
}

static void
end(void)
{
	qc_read_end(&cache);
	CHECK_U64(buffers, 0);
	hand_end(&hand);
}

static QcLocation
location_of(uint64_t file, uint64_t position, uint64_t first, uint32_t count)
{
	uint8_t		len[4];

	hand_read(&hand, 1, file, position, len, sizeof(len));
	return (QcLocation)
	{
		.log = 1, .file = file, .position = position, .size = qc_load_u32(len) + 4, .count = count,
			.first = first
	};
}

/* Read a message, whose text must be "m<position>". */
static void
expect_message(const QcLocation *location, uint64_t partition, uint64_t position)
{
	QcMessage	message;
	int64_t		created_at;
	char		text[32];
	QcStatus	status = qc_read_message(&cache, location, partition, position, &message,
										 &created_at, &err);

	if (!CHECK_U64(status, QC_OK))
		return;
	snprintf(text, sizeof(text), "m%llu", (unsigned long long) position);
	CHECK_BYTES(message.data, message.data_len, text, strlen(text));
	CHECK(created_at > hand.clock);
}

/* Find a message from the file on, and read it. */
static void
expect_found(uint64_t partition, uint64_t position, uint64_t from_file, uint64_t file)
{
	QcLocation	location = {0};

	if (!CHECK_U64(qc_read_locate(&cache, 1, partition, position, from_file, 0, &location, &err),
				   QC_OK))
		return;
	CHECK_U64(location.log, 1);
	CHECK_U64(location.file, file);
	expect_message(&location, partition, position);
}

static void
test_messages_of_a_record(void)
{
	QcLocation	location;
	uint64_t	reads;

	begin();
	location = location_of(1, hand_solo(&hand, 1, 1, 101, 40, 5), 40, 5);
	reads = sim_disk_count(hand.disk, SIM_OP_READ);
	for (uint64_t position = 40; position < 45; position++)
		expect_message(&location, 101, position);
	expect_message(&location, 101, 42);
	expect_message(&location, 101, 40);

	/* one read serves them all */
	CHECK_U64(sim_disk_count(hand.disk, SIM_OP_READ) - reads, 1);
	end();
}

static void
test_two_records_in_turn(void)
{
	QcLocation	a;
	QcLocation	b;

	begin();
	a = location_of(1, hand_solo(&hand, 1, 1, 101, 0, 3), 0, 3);
	b = location_of(1, hand_solo(&hand, 1, 2, 102, 7, 2), 7, 2);
	for (int i = 0; i < 3; i++)
	{
		expect_message(&a, 101, 2);
		expect_message(&b, 102, 7);
		expect_message(&a, 101, 0);
		expect_message(&b, 102, 8);
	}
	end();
}

/* Every byte of the record is covered: flip each in turn. */
static void
test_damage_everywhere(void)
{
	QcLocation	location;
	QcMessage	message;
	int64_t		created_at;
	uint64_t	position;

	begin();
	position = hand_solo(&hand, 1, 1, 101, 40, 2);
	location = location_of(1, position, 40, 2);
	for (uint64_t at = position; at < position + location.size; at++)
	{
		CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qlog", at, 0x10), 0);
		qc_read_forget(&cache, 1, 0);
		CHECK_U64(qc_read_message(&cache, &location, 101, 41, &message, &created_at, &err),
				  QC_DAMAGED);
		CHECK_STR(err.file, "qlog/q1/r00000001.qlog");
		CHECK_U64(err.position, position);
		CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qlog", at, 0x10), 0);
	}
	expect_message(&location, 101, 41);
	end();
}

/* An intact record that is not the one promised is as bad as a damaged one. */
static void
test_wrong_promise(void)
{
	QcLocation	right;
	QcLocation	wrong;
	QcMessage	message;
	int64_t		created_at;

	begin();
	right = location_of(1, hand_solo(&hand, 1, 1, 101, 40, 2), 40, 2);
	wrong = right;
	wrong.first = 41;
	CHECK_U64(qc_read_message(&cache, &wrong, 101, 41, &message, &created_at, &err), QC_DAMAGED);
	wrong = right;
	wrong.count = 3;
	CHECK_U64(qc_read_message(&cache, &wrong, 101, 41, &message, &created_at, &err), QC_DAMAGED);
	CHECK_U64(qc_read_message(&cache, &right, 102, 41, &message, &created_at, &err), QC_DAMAGED);

	/* a length that reaches into the next record, or stops short of the end */
	(void) hand_solo(&hand, 1, 2, 101, 42, 2);
	for (uint32_t size = right.size - 8; size <= right.size + 8; size += 4)
	{
		wrong = right;
		wrong.size = size;
		CHECK_U64(qc_read_message(&cache, &wrong, 101, 41, &message, &created_at, &err),
				  size == right.size ? QC_OK : QC_DAMAGED);
		qc_read_forget(&cache, 1, 0);
	}

	/* also after the right one is cached */
	expect_message(&right, 101, 41);
	CHECK_U64(qc_read_message(&cache, &right, 102, 41, &message, &created_at, &err), QC_DAMAGED);
	CHECK_U64(qc_read_message(&cache, &right, 101, 42, &message, &created_at, &err), QC_INVALID);

	/* zeros, the end of the file, no file */
	wrong = right;
	wrong.position = 10000;
	CHECK_U64(qc_read_message(&cache, &wrong, 101, 41, &message, &created_at, &err), QC_DAMAGED);
	wrong.position = HAND_ALLOCATED - 10;
	CHECK_U64(qc_read_message(&cache, &wrong, 101, 41, &message, &created_at, &err), QC_DAMAGED);
	wrong = right;
	wrong.file = 2;
	CHECK_U64(qc_read_message(&cache, &wrong, 101, 41, &message, &created_at, &err), QC_MISSING);
	end();
}

/* A record whose checksum is right and whose frames are not. */
static void
test_frames_do_not_fit(void)
{
	uint8_t		record[HAND_RECORD_MAX];
	size_t		size;
	QcLocation	location;
	QcMessage	message;
	int64_t		created_at;

	begin();
	size = hand_message(&hand, record, true, 1, 101, 0, 2);
	record[QC_RECORD_HEADER_SIZE + 2 * QC_HASH_SIZE + 8]++; /* length of the first frame */
	qc_record_seal_message(record, 1, 0, 5, 0);
	location = location_of(1, hand_append(&hand, 1, record, size), 0, 2);
	CHECK_U64(qc_read_message(&cache, &location, 101, 0, &message, &created_at, &err), QC_DAMAGED);
	CHECK_U64(err.position, location.position);
	end();
}

/* Three files with two partitions in turn. */
static void
put_three_files(void)
{
	uint64_t	seq = 1;

	for (int file = 0; file < 3; file++)
	{
		if (file > 0)
			hand_roll(&hand, 1);
		for (int i = 0; i < 10; i++, seq++)
			(void) hand_solo(&hand, 1, seq, 101 + seq % 2, (seq - 1) / 2 * 3, 3);
	}
}

static void
expect_three_files(uint64_t from_file)
{
	for (uint64_t position = from_file == 2 ? 15 : 0; position < 45; position++)
	{
		expect_found(101, position, from_file, 1 + position / 15);
		expect_found(102, position, from_file, 1 + position / 15);
	}
}

static void
test_locate_without_index(void)
{
	QcLocation	location;

	begin();
	put_three_files();
	expect_three_files(0);
	expect_three_files(2);
	CHECK_U64(qc_read_locate(&cache, 1, 101, 45, 0, 0, &location, &err), QC_NOTFOUND);
	CHECK_U64(qc_read_locate(&cache, 1, 103, 0, 0, 0, &location, &err), QC_NOTFOUND);
	CHECK_U64(qc_read_locate(&cache, 1, 101, 14, 2, 0, &location, &err), QC_NOTFOUND);
	CHECK_U64(qc_read_locate(&cache, 9, 101, 14, 0, 0, &location, &err), QC_MISSING);

	/* a file created ahead holds nothing */
	hand_roll(&hand, 1);
	expect_three_files(0);
	end();
}

static void
test_locate_with_index(void)
{
	uint64_t	digest;

	begin();
	put_three_files();
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 1, &err), QC_OK);
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 2, &err), QC_OK);
	CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qidx"),
			  QC_IDX_HEADER_SIZE + 10 * QC_IDX_ENTRY_SIZE);
	digest = sim_disk_digest(hand.disk);
	expect_three_files(0);
	CHECK_U64(sim_disk_digest(hand.disk), digest);
	end();
}

/* Where the written part of a file ends, found by scanning. */
static uint64_t
written_end(uint64_t file)
{
	QcScan		scan;
	uint64_t	position = 0;

	CHECK_U64(qc_scan_begin(&scan, &hand.files, 1, file, QC_FILE_HEADER_SIZE, &err), QC_OK);
	while (qc_scan_next(&scan, &err) == QC_OK && qc_scan_file(&scan) == file)
		position = scan.position + scan.size;
	qc_scan_end(&scan);
	return position;
}

/* A closed file keeps its records and gives its zeros back; one that is damaged stays as it is. */
static void
test_rest_is_given_back(void)
{
	uint64_t	ends[2];

	begin();
	put_three_files();
	ends[0] = written_end(1);
	ends[1] = written_end(2);
	CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qlog"), HAND_ALLOCATED);
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 1, &err), QC_OK);
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 2, &err), QC_OK);
	CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qlog"), ends[0]);
	CHECK_U64(hand_size(&hand, "qlog/q1/r00000002.qlog"), ends[1]);
	CHECK(qc_read_idx_usable(&hand.files, 1, 1));
	expect_three_files(0);
	CHECK_U64(written_end(1), ends[0]);
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 1, &err), QC_OK);
	CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qlog"), ends[0]);

	/* without indexes too */
	CHECK_U64(hand.io->unlink(hand.io->context, "qlog/q1/r00000001.qidx"), 0);
	expect_three_files(0);
	end();

	begin();
	put_three_files();
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qlog", ends[0] - 1, 1), 0);
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 1, &err), QC_DAMAGED);
	CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qlog"), HAND_ALLOCATED);
	end();

	/* what stands behind zeros is not taken for room */
	begin();
	put_three_files();
	hand_write(&hand, 1, 1, HAND_ALLOCATED - 1, "x", 1);
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 1, &err), QC_DAMAGED);
	CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qlog"), HAND_ALLOCATED);
	end();
}

/* Whoever finds an index finds no zeros behind the end: also after a power failure, and when the file could not be cut. */
static void
test_rest_goes_before_the_index(void)
{
	begin();
	put_three_files();
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 1, &err), QC_OK);
	qc_files_close(&hand.files);
	sim_disk_reboot(hand.disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
	CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qlog"), written_end(1));
	CHECK(qc_read_idx_usable(&hand.files, 1, 1));
	sim_disk_fail(hand.disk, SIM_OP_TRUNCATE, 1, EIO);
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 2, &err), QC_IO);
	CHECK(!qc_read_idx_usable(&hand.files, 1, 2));
	sim_disk_heal(hand.disk);
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 2, &err), QC_OK);
	CHECK_U64(hand_size(&hand, "qlog/q1/r00000002.qlog"), written_end(2));
	end();
}

/* The directory goes with its queue while an index is written, or somebody else writes the same one: no error of anybody. */
static void
test_index_overtaken(void)
{
	begin();
	put_three_files();
	sim_disk_fail(hand.disk, SIM_OP_RENAME, 1, ENOENT);
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 1, &err), QC_MISSING);
	CHECK_U64(err.code, QC_MISSING);
	sim_disk_fail(hand.disk, SIM_OP_CREATE, 1, ENOENT);
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 2, NULL), QC_MISSING);
	end();
}

/* Right after somebody has asked for its size, file 1 gives its zeros back. */
static uint64_t shrinks_to;

static int
size_then_shrink(void *context, QcHandle handle, uint64_t *size)
{
	const QcIo *io = sim_disk_io(hand.disk);
	QcHandle	other;
	int			rc = io->size(context, handle, size);

	if (rc == 0 && shrinks_to != 0 &&
		io->open(context, "qlog/q1/r00000001.qlog", QC_OPEN_WRITE, &other) == 0)
	{
		CHECK_U64(io->truncate(context, other, shrinks_to), 0);
		io->close(context, other);
		shrinks_to = 0;
	}
	return rc;
}

static void
test_shrinks_while_it_is_read(void)
{
	QcIo		racing;

	for (int scans = 0; scans < 2; scans++)
	{
		uint64_t	end_of_file;

		begin();
		put_three_files();
		end_of_file = written_end(1);
		racing = *hand.io;
		racing.size = size_then_shrink;
		hand.files.io = &racing;
		shrinks_to = end_of_file;
		if (scans == 1)
			CHECK_U64(written_end(1), end_of_file);
		else
			expect_three_files(0);
		CHECK_U64(shrinks_to, 0);
		hand.files.io = hand.io;
		CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qlog"), end_of_file);
		end();
	}
}

/* The .qidx of file 3, made by hand: only its last record, of partition 101, messages 42 to 44. */
static void
put_short_index(void)
{
	uint8_t		bytes[QC_IDX_HEADER_SIZE + QC_IDX_ENTRY_SIZE];
	uint8_t		h[QC_RECORD_HEADER_SIZE];
	QcIdxEntry	entry = {.partition = 101, .first = 42, .end = 45, .count = 3};
	QcLocation	location = {0};

	CHECK_U64(qc_read_locate(&cache, 1, 101, 42, 0, 0, &location, &err), QC_OK);
	hand_read(&hand, 1, 3, location.position, h, sizeof(h));
	entry.position = location.position;
	entry.len = qc_load_u32(h);
	entry.created_at = qc_record_created_at(h);
	qc_idx_encode(bytes, 3, hand_log(&hand, 1)->tail, &entry, 1);
	hand_make_file(&hand, "qlog/q1/r00000003.qidx", bytes, sizeof(bytes));
	qc_read_forget(&cache, 1, 0);
}

/* The index is really used: what a test has left out is not found, until the index is wrong. */
static void
test_index_is_used(void)
{
	QcLocation	location;

	begin();
	put_three_files();
	put_short_index();
	expect_found(101, 44, 0, 3);
	expect_found(101, 43, 0, 3);
	CHECK_U64(qc_read_locate(&cache, 1, 101, 36, 0, 0, &location, &err), QC_NOTFOUND);
	CHECK_U64(qc_read_locate(&cache, 1, 102, 44, 0, 0, &location, &err), QC_NOTFOUND);
	qc_read_forget(&cache, 1, 3);

	/* it describes another length of the log file: wrong, so it is not */
	(void) hand_solo(&hand, 1, 31, 101, 45, 3);
	expect_found(101, 36, 0, 3);
	expect_found(102, 44, 0, 3);
	expect_found(101, 46, 0, 3);
	end();
}

/* An index of an older content of the file, which ended at the same byte. */
static void
test_stale_index(void)
{
	uint64_t	second;

	begin();
	(void) hand_solo(&hand, 1, 1, 101, 0, 3);
	second = hand_solo(&hand, 1, 2, 102, 0, 3);
	(void) hand_solo(&hand, 1, 3, 103, 0, 3);
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 1, &err), QC_OK);
	hand_log(&hand, 1)->tail = second;
	(void) hand_solo(&hand, 1, 2, 103, 0, 3);
	(void) hand_solo(&hand, 1, 3, 102, 0, 3);
	CHECK(qc_read_idx_usable(&hand.files, 1, 1));
	expect_found(103, 1, 0, 1);
	expect_found(102, 1, 0, 1);
	CHECK_U64(cache.lacking_log, 1);
	CHECK_U64(cache.lacking_file, 1);
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 1, &err), QC_OK);
	cache.lacking_file = 0;
	qc_read_forget(&cache, 1, 0);
	expect_found(102, 1, 0, 1);
	CHECK_U64(cache.lacking_file, 0);
	end();
}

/* ---- many files ---- */

#define FILES	40
#define EACH	6				/* records per file, of three messages */

/* Partition 101 in every file, 102 in every fifth, 103 in file 20 only. */
static void
put_many_files(void)
{
	uint64_t	seq = 1;
	uint64_t	next[3] = {0, 0, 0};

	for (uint64_t file = 1; file <= FILES; file++)
	{
		if (file > 1)
			hand_roll(&hand, 1);
		for (int i = 0; i < EACH; i++)
		{
			int			which = i == 3 && file % 5 == 0 ? 1 : i == 4 && file == 20 ? 2 : 0;

			(void) hand_solo(&hand, 1, seq++, 101 + (uint64_t) which, next[which], 3);
			next[which] += 3;
		}
	}
}

/* How many reads the first look of a new process at this message takes. */
static uint64_t
reads_for(uint64_t partition, uint64_t position, uint64_t from_file, uint64_t last_file)
{
	QcLocation	location = {0};
	uint64_t	before;

	qc_files_close(&hand.files);
	qc_read_end(&cache);
	before = sim_disk_count(hand.disk, SIM_OP_READ);
	CHECK_U64(qc_read_locate(&cache, 1, partition, position, from_file, last_file, &location, &err),
			  QC_OK);
	before = sim_disk_count(hand.disk, SIM_OP_READ) - before;
	expect_message(&location, partition, position);
	return before;
}

/* With .qidx files an old message is found without asking every file. */
static void
test_few_files_are_asked(void)
{
	begin();
	put_many_files();
	for (uint64_t file = 1; file < FILES; file++)
		CHECK_U64(qc_read_build_idx(&hand.files, 1, file, &err), QC_OK);
	for (uint64_t position = 0; position < 20; position++)
	{
		/*
		 * the list of files is one read, a file answers in three, the record found is looked at;
		 * 2^6 > 40
		 */
		CHECK(reads_for(101, position * 33, 0, FILES) <= 6 * 3 + 2);
		CHECK(reads_for(102, position, 0, FILES) <= (6 + 4 * 3) * 3 + 2);
	}
	CHECK(reads_for(103, 1, 0, FILES) <= FILES * 3 + 2);
	CHECK_U64(cache.lacking_file, 0);

	/* the caller knows better; as these files have given their zeros back, two reads do */
	CHECK_U64(reads_for(101, 3, 1, FILES), 4);
	CHECK_U64(reads_for(101, 20, 1, FILES), 6);
	CHECK_U64(reads_for(101, 20, 2, FILES), 4);

	/*
	 * the newest file, which has no index, is not looked at when the caller knows that it is of no
	 * use
	 */
	CHECK(reads_for(101, 600, 0, FILES - 1) <= 6 * 3 + 2);
	CHECK_U64(cache.lacking_file, 0);
	end();
}

/* A wrong word of the caller, .qidx files that are missing, or that lie: what is there is found all the same. */
static void
test_found_all_the_same(void)
{
	begin();
	put_many_files();
	CHECK(reads_for(101, 300, 0, 3) > 0);
	for (uint64_t file = 1; file <= FILES; file += 3)
		CHECK_U64(qc_read_build_idx(&hand.files, 1, file, &err), QC_OK);
	for (uint64_t position = 0; position < 20; position++)
	{
		CHECK(reads_for(101, position * 31, 0, 0) > 0);
		CHECK(reads_for(102, position, 0, 0) > 0);
	}
	CHECK(reads_for(103, 2, 0, 0) > 0);
	for (uint64_t file = 1; file <= FILES; file++)
		CHECK_U64(qc_read_build_idx(&hand.files, 1, file, &err), QC_OK);

	/*
	 * "first" of the first, of a middle and of the last entry of file 20: partitions 101, 102 and
	 * 103
	 */
	for (int i = 0; i < 3; i++)
	{
		uint64_t	at = QC_IDX_HEADER_SIZE + QC_IDX_ENTRY_SIZE * (uint64_t[]) {0, 2, 5}[i] + 8;

		CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000020.qidx", at, 0x41), 0);
		for (uint64_t position = 0; position < 690; position += 7)
			CHECK(reads_for(101, position, 0, 0) > 0);
		CHECK(reads_for(102, 10, 0, 0) > 0);
		CHECK(reads_for(103, 1, 0, 0) > 0);
		CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000020.qidx", at, 0x41), 0);
	}
	end();
}

/* A process that reads on has the index of the file in memory. */
static void
test_reading_on(void)
{
	QcLocation	location = {0};
	uint64_t	before;

	begin();
	put_many_files();
	for (uint64_t file = 1; file <= FILES; file++)
		CHECK_U64(qc_read_build_idx(&hand.files, 1, file, &err), QC_OK);
	for (uint64_t position = 300; position < 302; position++)
		CHECK_U64(qc_read_locate(&cache, 1, 101, position, location.file, 0, &location, &err), QC_OK);
	before = sim_disk_count(hand.disk, SIM_OP_READ);
	for (uint64_t position = 300; position < 304; position++)
		CHECK_U64(qc_read_locate(&cache, 1, 101, position, location.file, 0, &location, &err), QC_OK);
	CHECK_U64(sim_disk_count(hand.disk, SIM_OP_READ), before);
	end();
}

/* An index that is damaged anywhere, cut off or longer is not believed, and never an error. */
static void
test_wrong_index(void)
{
	uint64_t	size;

	begin();
	put_three_files();
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 1, &err), QC_OK);
	size = hand_size(&hand, "qlog/q1/r00000001.qidx");
	for (uint64_t at = 0; at < size; at += 5)
	{
		CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qidx", at, 0xff), 0);
		qc_read_forget(&cache, 1, 0);
		expect_found(101, 14, 0, 1);
		expect_found(102, 3, 0, 1);
		CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qidx", at, 0xff), 0);
	}
	for (uint64_t len = 0; len < size + 48; len += 24)
	{
		QcHandle	handle;

		CHECK_U64(hand.io->open(hand.io->context, "qlog/q1/r00000001.qidx", QC_OPEN_WRITE, &handle),
				  0);
		CHECK_U64(hand.io->truncate(hand.io->context, handle, len), 0);
		hand.io->close(hand.io->context, handle);
		qc_read_forget(&cache, 1, 0);
		expect_found(101, 14, 0, 1);

		/* in a process that has read nothing yet, too */
		qc_read_end(&cache);
		expect_found(101, 14, 0, 1);
	}
	end();
}

/* An I/O table that fails for indexes: with fail_open when one is opened, otherwise when it is read. */
static bool fail_open;
static QcHandle index_handle;

static int
open_but_indexes(void *context, const char *path, int flags, QcHandle *handle)
{
	bool		index = strstr(path, ".qidx") != NULL;
	int			rc = index && fail_open ? EIO : hand.io->open(context, path, flags, handle);

	if (index && rc == 0)
		index_handle = *handle;
	return rc;
}

static int
read_but_indexes(void *context, QcHandle handle, void *buf, size_t len, uint64_t position,
				 size_t *done)
{
	*done = 0;
	return handle == index_handle ? EIO :
		hand.io->read(context, handle, buf, len, position, done);
}

/* An index that cannot be read is as good as none: the log file has all that it tells. */
static void
test_unreadable_index(void)
{
	for (int i = 0; i < 2; i++)
	{
		QcIo		failing;

		begin();
		put_three_files();
		CHECK_U64(qc_read_build_idx(&hand.files, 1, 1, &err), QC_OK);
		failing = *hand.io;
		failing.open = open_but_indexes;
		failing.read = read_but_indexes;
		fail_open = i == 0;
		index_handle = -1;
		hand.files.io = &failing;
		expect_three_files(0);
		CHECK((index_handle >= 0) == !fail_open);
		hand.files.io = hand.io;
		end();
	}
}

/* The newest file grows while its index is cached. */
static void
test_growing_file(void)
{
	QcLocation	location;

	begin();
	for (uint64_t seq = 1; seq <= 300; seq++)
	{
		if (seq % 7 == 0)
			CHECK_U64(qc_read_locate(&cache, 1, 101, (seq - 1) * 2, 0, 0, &location, &err),
					  QC_NOTFOUND);
		(void) hand_solo(&hand, 1, seq, 101, (seq - 1) * 2, 2);
		if (seq % 5 == 0)
			expect_found(101, seq * 2 - 1, 0, 1);
		if (seq % 50 == 0)
			expect_found(101, seq, 0, 1);
	}
	end();
}

/* Positions are not confined to 31 bits, nor to 31 bits behind the first one of a file. */
static void
test_large_positions(void)
{
	static const uint64_t positions[] = {5, INT32_MAX - UINT64_C(1), UINT32_MAX - UINT64_C(1),
		UINT64_C(1) << 33, UINT64_C(1) << 50, (UINT64_C(1) << 62) - 3};
	uint32_t	n = sizeof(positions) / sizeof(positions[0]);

	begin();
	for (uint32_t i = 0; i < n; i++)
		(void) hand_solo(&hand, 1, i + 1, 101, positions[i], 3);
	for (int indexed = 0; indexed < 2; indexed++)
	{
		for (uint32_t i = 0; i < n; i++)
		{
			QcLocation	location;

			expect_found(101, positions[i], 0, 1);
			expect_found(101, positions[i] + 2, 0, 1);
			CHECK_U64(qc_read_locate(&cache, 1, 101, positions[i] + 3, 0, 0, &location, &err),
					  QC_NOTFOUND);
			CHECK_U64(qc_read_locate(&cache, 1, 101, positions[i] + (UINT64_C(1) << 32) + 1, 0, 0,
									 &location, &err), QC_NOTFOUND);
		}
		CHECK_U64(qc_read_build_idx(&hand.files, 1, 1, &err), QC_OK);
		qc_read_forget(&cache, 1, 0);
	}
	end();
}

/* More files than indexes are kept. */
static void
test_many_files(void)
{
	begin();
	for (uint64_t file = 1; file <= 9; file++)
	{
		if (file > 1)
			hand_roll(&hand, 1);
		(void) hand_solo(&hand, 1, file, 101, (file - 1) * 4, 4);
	}
	for (int i = 0; i < 60; i++)
	{
		uint64_t	position = (uint64_t) i * 23 % 36;

		expect_found(101, position, 0, 1 + position / 4);
	}
	end();
}

/* Where headers cannot be followed, "not found" would be a lie. */
static void
test_locate_behind_damage(void)
{
	uint64_t	position;
	QcLocation	location;

	begin();
	(void) hand_solo(&hand, 1, 1, 101, 0, 2);
	position = hand_solo(&hand, 1, 2, 101, 2, 2);
	(void) hand_solo(&hand, 1, 3, 101, 4, 2);
	hand_roll(&hand, 1);
	(void) hand_solo(&hand, 1, 4, 101, 6, 2);
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qlog", position + 3, 0x70), 0);
	expect_found(101, 1, 0, 1);
	expect_found(101, 6, 0, 2);
	CHECK_U64(qc_read_locate(&cache, 1, 101, 4, 0, 0, &location, &err), QC_DAMAGED);
	CHECK_STR(err.file, "qlog/q1/r00000001.qlog");
	CHECK_U64(err.position, position);
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 1, &err), QC_DAMAGED);
	CHECK_U64(err.position, position);
	CHECK_U64(hand_size(&hand, "qlog/q1/r00000001.qidx"), UINT64_MAX);
	end();
}

/* Building an index that is cut short anywhere leaves none or a whole one. */
static void
test_build_cut_short(void)
{
	begin();
	put_three_files();
	hand_sync(&hand);
	for (uint64_t step = 1; step <= 6; step++)
	{
		sim_disk_crash_at(hand.disk, sim_disk_steps(hand.disk) + step, SIM_MIDDLE);
		(void) qc_read_build_idx(&hand.files, 1, 1, &err);
		sim_disk_reboot(hand.disk, SIM_RANDOM, SIM_RANDOM);
		qc_files_init(&hand.files, hand.io, QC_LAYOUT_FLAT);
		qc_read_forget(&cache, 1, 0);
		expect_found(101, 14, 0, 1);
	}
	end();
}

/* The allocator may fail at any time: an error, and the cache goes on afterwards. */
static void
test_no_memory(void)
{
	QcLocation	location;
	QcMessage	message;
	int64_t		created_at;

	begin();
	put_three_files();
	for (int n = 0; n < 8; n++)
	{
		QcStatus	status;

		qc_read_end(&cache);
		budget = n;
		status = qc_read_locate(&cache, 1, 101, 44, 0, 0, &location, &err);
		if (status == QC_OK)
			status = qc_read_message(&cache, &location, 101, 44, &message, &created_at, &err);
		CHECK(status == QC_FULL || (status == QC_OK && n > 4));
		budget = -1;
		expect_found(101, 44, 0, 3);
	}
	end();
}

int
main(void)
{
	UNIT_RUN(test_messages_of_a_record);
	UNIT_RUN(test_two_records_in_turn);
	UNIT_RUN(test_damage_everywhere);
	UNIT_RUN(test_wrong_promise);
	UNIT_RUN(test_frames_do_not_fit);
	UNIT_RUN(test_locate_without_index);
	UNIT_RUN(test_locate_with_index);
	UNIT_RUN(test_rest_is_given_back);
	UNIT_RUN(test_rest_goes_before_the_index);
	UNIT_RUN(test_index_overtaken);
	UNIT_RUN(test_shrinks_while_it_is_read);
	UNIT_RUN(test_index_is_used);
	UNIT_RUN(test_stale_index);
	UNIT_RUN(test_few_files_are_asked);
	UNIT_RUN(test_found_all_the_same);
	UNIT_RUN(test_reading_on);
	UNIT_RUN(test_wrong_index);
	UNIT_RUN(test_unreadable_index);
	UNIT_RUN(test_growing_file);
	UNIT_RUN(test_large_positions);
	UNIT_RUN(test_many_files);
	UNIT_RUN(test_locate_behind_damage);
	UNIT_RUN(test_build_cut_short);
	UNIT_RUN(test_no_memory);
	return unit_end();
}
