/*
 * test_ring.c
 *		The ring: entries go to the files whole, in order and once; what fails is repeated; every file that was written to is
 *		listed to be synced.
 */
#include "../sim/sim_disk.h"
#include "../sim/sim_random.h"
#include "qc_ring.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RING		4096
#define LOGS_MAX	80
#define ALLOCATED	65536

static SimDisk *disk;
static const QcIo *io;
static QcFiles files;
static void *block;
static QcState *st;
static QcRing *ring;
static QcError err;

/* A ring of this size, and logs 1 .. nlogs with two files each. */
static void
begin(uint64_t size, uint32_t nlogs)
{
	QcStateConfig config = {.state_bytes = 1u << 20, .index_bytes = 1u << 16, .dedup_bytes = 1u << 16};

	disk = sim_disk_new(1);
	io = sim_disk_io(disk);
	qc_files_init(&files, io, QC_LAYOUT_FLAT);
	block = malloc(qc_state_size(&config));
	st = qc_state_init(block, &config);
	ring = qc_ring_init(malloc(qc_ring_block_size(size)), size, 0);
	for (uint32_t log = 1; log <= nlogs; log++)
	{
		QcExtend	extend = {.log = log, .file = 2, .to = ALLOCATED, .create = true};

		CHECK_U64(qc_log_create_files(&files, log, ALLOCATED, &err), QC_OK);
		CHECK(qc_log_add(st, log, 1, QC_FILE_HEADER_SIZE, ALLOCATED, false) != NULL);
		CHECK_U64(qc_log_extend_io(&files, &extend, &err), QC_OK);
		qc_log_extended(st, &extend, ALLOCATED);
	}
}

static void
end(void)
{
	qc_files_close(&files);
	sim_disk_free(disk);
	free(ring);
	free(block);
}

/* Where some bytes of an entry go. */
typedef struct Spot
{
	uint64_t	log;
	uint64_t	file;
	uint64_t	position;
	uint32_t	size;
	uint8_t		byte;			/* what they are */
	bool		written;		/* by their owner */
} Spot;

/* Reserve an entry with these parts; it is complete but for qc_ring_fill. */
static QcRingEntry *
take(uint64_t seq, const Spot *spots, uint32_t n)
{
	uint64_t	bytes = 0;
	uint64_t	need;
	uint32_t	offset = 0;
	QcRingEntry *entry;
	bool		big;

	for (uint32_t i = 0; i < n; i++)
		bytes += spots[i].size;
	need = qc_ring_need(ring, n, bytes, &big);
	CHECK(!big && qc_ring_has_room(ring, need));
	qc_ring_touch(ring, need);
	entry = qc_ring_take(ring, need, seq, n);
	for (uint32_t i = 0; i < n; i++)
	{
		qc_ring_parts(entry)[i] = (QcPart)
		{
			.log = QC_REF(st, qc_log_by_id(st, spots[i].log)), .size = spots[i].size,
			.file = spots[i].file, .position = spots[i].position, .offset = offset,
			.written = spots[i].written
		};
		memset(qc_ring_bytes(entry) + offset, spots[i].byte, spots[i].size);
		offset += spots[i].size;
	}
	return entry;
}

static void
put(uint64_t seq, const Spot *spots, uint32_t n)
{
	qc_ring_fill(take(seq, spots, n));
}

static uint64_t
written_seq(void)
{
	return atomic_load(&ring->written_seq);
}

/* `size` bytes of the file at position are all this one. */
static bool
expect_bytes(uint64_t log, uint64_t file, uint64_t position, uint32_t size, uint8_t byte)
{
	uint8_t    *got = malloc(size);
	bool		good = CHECK_U64(qc_files_read(&files, log, file, position, got, size, &err), QC_OK);

	for (uint32_t i = 0; i < size && good; i++)
		good = CHECK_U64(got[i], byte);
	free(got);
	return good;
}

/* ---- room ---- */

static void
test_need(void)
{
	bool		big;

	begin(RING, 0);

	/* header 32, 32 for each part, bytes in steps of 16 */
	CHECK_U64(qc_ring_need(ring, 1, 1, &big), 32 + 32 + 16);
	CHECK(!big);
	CHECK_U64(qc_ring_need(ring, 3, 48, &big), 32 + 96 + 48);

	/* up to an eighth of the ring the bytes stand in it */
	CHECK_U64(qc_ring_need(ring, 1, RING / 8 - 64, &big), RING / 8);
	CHECK(!big);
	CHECK_U64(qc_ring_need(ring, 1, RING / 8 - 63, &big), 64);
	CHECK(big);
	CHECK_U64(qc_ring_need_max(ring), RING / 4);
	end();
}

/* ---- order ---- */

static void
test_gap(void)
{
	QcRingEntry *second;

	begin(RING, 1);
	put(1, &(Spot) {1, 1, 32, 10, 'a', false}, 1);
	second = take(2, &(Spot) {1, 1, 42, 10, 'b', false}, 1);
	put(3, &(Spot) {1, 1, 52, 10, 'c', false}, 1);
	CHECK_U64(qc_ring_filled_seq(ring), 1);
	CHECK_U64(qc_ring_write(st, ring, &files, &err), QC_OK);
	CHECK_U64(written_seq(), 1);
	expect_bytes(1, 1, 32, 10, 'a');
	expect_bytes(1, 1, 42, 20, 0);

	qc_ring_fill(second);
	CHECK_U64(qc_ring_filled_seq(ring), 3);
	CHECK_U64(qc_ring_write(st, ring, &files, &err), QC_OK);
	CHECK_U64(written_seq(), 3);
	CHECK_U64(atomic_load(&ring->written), atomic_load(&ring->head));
	expect_bytes(1, 1, 42, 10, 'b');
	expect_bytes(1, 1, 52, 10, 'c');

	/* nothing is left to write */
	CHECK_U64(qc_ring_write(st, ring, &files, &err), QC_OK);
	CHECK_U64(written_seq(), 3);
	end();
}

/* ---- writing ---- */

/* Entries of several logs, interleaved: one write for each log. */
static void
test_one_write_per_log(void)
{
	uint64_t	before;

	begin(RING, 3);
	for (uint32_t i = 0; i < 6; i++)
	{
		Spot		spots[2] = {
			{1 + i % 3, 1, 32 + i / 3 * 40, 40, (uint8_t) ('a' + i), false},
			{1 + (i + 1) % 3, 1, 200 + i / 3 * 8, 8, (uint8_t) ('A' + i), false}
		};

		put(i + 1, spots, 2);
	}
	before = sim_disk_count(disk, SIM_OP_WRITE);
	CHECK_U64(qc_ring_write(st, ring, &files, &err), QC_OK);

	/* the places alternate in each log: no two parts follow each other */
	CHECK_U64(sim_disk_count(disk, SIM_OP_WRITE) - before, 12);
	for (uint32_t i = 0; i < 6; i++)
	{
		expect_bytes(1 + i % 3, 1, 32 + i / 3 * 40, 40, (uint8_t) ('a' + i));
		expect_bytes(1 + (i + 1) % 3, 1, 200 + i / 3 * 8, 8, (uint8_t) ('A' + i));
	}

	/* records that follow each other are one run, across entries and other logs' parts */
	for (uint32_t i = 0; i < 8; i++)
		put(7 + i, &(Spot) {1 + i % 2, 1, 1000 + i / 2 * 50, 50, (uint8_t) ('k' + i), false}, 1);
	before = sim_disk_count(disk, SIM_OP_WRITE);
	CHECK_U64(qc_ring_write(st, ring, &files, &err), QC_OK);
	CHECK_U64(sim_disk_count(disk, SIM_OP_WRITE) - before, 2);
	for (uint32_t i = 0; i < 8; i++)
		expect_bytes(1 + i % 2, 1, 1000 + i / 2 * 50, 50, (uint8_t) ('k' + i));
	end();
}

/* More pieces than one call takes. */
static void
test_many_pieces(void)
{
	enum
	{
		PIECES = 300
	};
	uint64_t	before;

	begin(65536, 1);
	for (uint32_t i = 0; i < PIECES; i++)
		put(i + 1, &(Spot) {1, 1, 32 + i * 3, 3, (uint8_t) (1 + i % 200), false}, 1);
	before = sim_disk_count(disk, SIM_OP_WRITE);
	CHECK_U64(qc_ring_write(st, ring, &files, &err), QC_OK);
	CHECK_U64(sim_disk_count(disk, SIM_OP_WRITE) - before, 2);
	for (uint32_t i = 0; i < PIECES; i++)
		expect_bytes(1, 1, 32 + i * 3, 3, (uint8_t) (1 + i % 200));
	end();
}

/* More logs than are looked at together, in many entries and in one. */
static void
test_many_logs(void)
{
	static Spot spots[LOGS_MAX];

	begin(131072, LOGS_MAX);
	for (uint32_t i = 0; i < LOGS_MAX; i++)
	{
		Spot		pair[2] = {
			{1 + i, 1, 32, 20, (uint8_t) (1 + i), false},
			{1 + (i + 40) % LOGS_MAX, 1, 52, 20, (uint8_t) (101 + i), false}
		};

		put(i + 1, pair, 2);
		spots[i] = (Spot)
		{
			1 + i, 1, 72, 20, (uint8_t) (201 + i % 50), false
		};
	}
	put(LOGS_MAX + 1, spots, LOGS_MAX);
	put(LOGS_MAX + 2, &(Spot) {1, 1, 92, 20, 'z', false}, 1);
	CHECK_U64(qc_ring_write(st, ring, &files, &err), QC_OK);
	CHECK_U64(written_seq(), LOGS_MAX + 2);
	for (uint32_t i = 0; i < LOGS_MAX; i++)
	{
		expect_bytes(1 + i, 1, 32, 20, (uint8_t) (1 + i));
		expect_bytes(1 + (i + 40) % LOGS_MAX, 1, 52, 20, (uint8_t) (101 + i));
		expect_bytes(1 + i, 1, 72, 20, (uint8_t) (201 + i % 50));
	}
	expect_bytes(1, 1, 92, 20, 'z');
	end();
}

/* What its owner has written is not written again, and is synced like everything else. */
static void
test_written_by_owner(void)
{
	QcDirtyFile dirty[4];
	uint64_t	seq;
	bool		more;

	begin(RING, 2);
	put(1, &(Spot) {2, 1, 32, 16, 'x', true}, 1);
	CHECK_U64(qc_ring_write(st, ring, &files, &err), QC_OK);
	expect_bytes(2, 1, 32, 16, 0);
	CHECK_U64(qc_ring_take_dirty(st, ring, dirty, 4, &seq, &more), 1);
	CHECK_U64(dirty[0].log, 2);
	CHECK_U64(seq, 1);
	CHECK(!more);
	end();
}

/* A write fails: nothing counts as written, and the same is written later. */
static void
test_write_fails(void)
{
	for (uint64_t nth = 1; nth <= 3; nth++)
	{
		Spot		spots[3] = {
			{1, 1, 32, 100, 'a', false}, {2, 1, 32, 100, 'b', false}, {3, 1, 32, 100, 'c', false}
		};
		uint64_t	written;

		begin(RING, 3);
		written = atomic_load(&ring->written);
		put(1, spots, 3);
		sim_disk_fail(disk, SIM_OP_WRITE, nth, EIO);
		CHECK_U64(qc_ring_write(st, ring, &files, &err), QC_IO);
		CHECK_U64(err.sys_errno, EIO);
		CHECK(strstr(err.file, "r00000001.qlog") != NULL);
		CHECK_U64(written_seq(), 0);
		CHECK_U64(atomic_load(&ring->written), written);
		put(2, &(Spot) {2, 1, 132, 50, 'd', false}, 1);
		CHECK_U64(qc_ring_write(st, ring, &files, &err), QC_OK);
		CHECK_U64(written_seq(), 2);
		for (uint32_t i = 0; i < 3; i++)
			expect_bytes(1 + i, 1, 32, 100, (uint8_t) ('a' + i));
		expect_bytes(2, 1, 132, 50, 'd');
		end();
	}
}

/* Whatever sizes and the end of the buffer meet: each byte arrives, in order. */
static void
test_around(void)
{
	uint64_t	random = 5;
	uint64_t	position[2] = {QC_FILE_HEADER_SIZE, QC_FILE_HEADER_SIZE};
	uint8_t    *expected[2] = {calloc(1, ALLOCATED), calloc(1, ALLOCATED)};
	uint64_t	seq = 0;
	uint8_t    *got = malloc(ALLOCATED);

	begin(1024, 2);
	for (;;)
	{
		Spot		spots[2];
		uint32_t	n = 1 + (uint32_t) sim_random_below(&random, 2);
		uint64_t	bytes = 0;
		bool		big;

		for (uint32_t i = 0; i < n; i++)
		{
			uint64_t	size = 1 + sim_random_below(&random, n == 2 ? 15 : 60);

			spots[i] = (Spot)
			{
				1 + i, 1, position[i], (uint32_t) size, (uint8_t) (1 + seq % 250), false
			};
			bytes += size;
		}
		if (position[0] + 100 > ALLOCATED)
			break;
		if (!qc_ring_has_room(ring, qc_ring_need(ring, n, bytes, &big)))
			CHECK_U64(qc_ring_write(st, ring, &files, &err), QC_OK);
		for (uint32_t i = 0; i < n; i++)
		{
			memset(expected[i] + position[i], spots[i].byte, spots[i].size);
			position[i] += spots[i].size;
		}
		put(++seq, spots, n);
	}
	CHECK_U64(qc_ring_write(st, ring, &files, &err), QC_OK);
	CHECK_U64(written_seq(), seq);
	CHECK(atomic_load(&ring->head) > 50 * 1024);
	for (uint32_t i = 0; i < 2; i++)
	{
		CHECK_U64(qc_files_read(&files, 1 + i, 1, 0, got, ALLOCATED, &err), QC_OK);
		CHECK(memcmp(got + QC_FILE_HEADER_SIZE, expected[i] + QC_FILE_HEADER_SIZE,
					 ALLOCATED - QC_FILE_HEADER_SIZE) == 0);
		free(expected[i]);
	}
	free(got);
	end();
}

/* ---- syncing ---- */

static bool
holds(const QcDirtyFile *dirty, uint32_t n, uint64_t log, uint64_t file)
{
	for (uint32_t i = 0; i < n; i++)
	{
		if (dirty[i].log == log && dirty[i].file == file)
			return true;
	}
	return false;
}

/* Every file that was written to is taken once, in portions; the answer covers what was written before the first. */
static void
test_take_dirty(void)
{
	QcDirtyFile dirty[16];
	Spot		spots[4] = {
		{1, 2, 32, 8, 'a', false}, {1, 1, 32, 8, 'b', false}, {2, 1, 32, 8, 'c', false},
		{3, 2, 32, 8, 'd', false}
	};
	uint64_t	seq;
	uint64_t	later;
	uint32_t	n;
	bool		more;

	begin(RING, 3);
	put(1, spots, 4);
	CHECK_U64(qc_ring_write(st, ring, &files, &err), QC_OK);
	n = qc_ring_take_dirty(st, ring, dirty, 2, &seq, &more);
	CHECK_U64(n, 2);
	CHECK_U64(seq, 1);
	CHECK(more);

	/* what is written meanwhile is taken too; it does not count for the first answer */
	put(2, &(Spot) {2, 2, 32, 8, 'e', false}, 1);
	CHECK_U64(qc_ring_write(st, ring, &files, &err), QC_OK);
	n += qc_ring_take_dirty(st, ring, dirty + n, 16 - n, &later, &more);
	CHECK(!more);
	CHECK_U64(later, 2);
	CHECK(holds(dirty, n, 1, 1) && holds(dirty, n, 1, 2) && holds(dirty, n, 2, 1) &&
		  holds(dirty, n, 2, 2) && holds(dirty, n, 3, 2));
	CHECK(!holds(dirty, n, 3, 1));
	CHECK_U64(qc_ring_take_dirty(st, ring, dirty, 16, &seq, &more), 0);
	CHECK_U64(ring->dirty_logs, 0);
	for (uint32_t i = 0; i < n; i++)
		CHECK_U64(qc_ring_sync_file(&files, &dirty[i], &err), QC_OK);
	sim_disk_reboot(disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
	qc_files_init(&files, io, QC_LAYOUT_FLAT);
	expect_bytes(1, 2, 32, 8, 'a');
	expect_bytes(1, 1, 32, 8, 'b');
	expect_bytes(2, 2, 32, 8, 'e');
	expect_bytes(3, 2, 32, 8, 'd');
	end();
}

static void
test_publish(void)
{
	QcDirtyFile file = {1, 1};

	begin(RING, 1);
	for (uint64_t seq = 1; seq <= 5; seq++)
		put(seq, &(Spot) {1, 1, 32 + seq, 1, 'a', false}, 1);
	CHECK_U64(qc_ring_write(st, ring, &files, &err), QC_OK);
	CHECK_U64(qc_ring_durable(ring), 0);
	qc_ring_publish(ring, 4);
	CHECK_U64(qc_ring_durable(ring), 4);
	qc_ring_publish(ring, 2);
	CHECK_U64(qc_ring_durable(ring), 4);
	sim_disk_fail(disk, SIM_OP_SYNC, 1, EIO);
	CHECK_U64(qc_ring_sync_file(&files, &file, &err), QC_IO);
	CHECK_STR(err.file, "qlog/q1/r00000001.qlog");
	file.file = 9;
	CHECK_U64(qc_ring_sync_file(&files, &file, &err), QC_MISSING);
	end();
}

int
main(void)
{
	UNIT_RUN(test_need);
	UNIT_RUN(test_gap);
	UNIT_RUN(test_one_write_per_log);
	UNIT_RUN(test_many_pieces);
	UNIT_RUN(test_many_logs);
	UNIT_RUN(test_written_by_owner);
	UNIT_RUN(test_write_fails);
	UNIT_RUN(test_around);
	UNIT_RUN(test_take_dirty);
	UNIT_RUN(test_publish);
	return unit_end();
}
