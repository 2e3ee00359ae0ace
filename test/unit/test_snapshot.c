/*
 * test_snapshot.c
 *		Snapshots: what is written reads back, anything else is found out, one with the right name is whole whatever
 *		happens while it is made, and the newest ones are kept.
 */
#include "../sim/sim_disk.h"
#include "qc_dir.h"
#include "qc_snapshot.h"
#include "sample.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIRECTORY	55
#define NOW			1700000000000000
#define LARGE		200000		/* more than the writer's buffer */

static SimDisk *disk;
static const QcIo *io;
static QcError err;
static QcSnapshotWriter writer;
static uint8_t large[LARGE];

static void
begin(void)
{
	disk = sim_disk_new(1);
	io = sim_disk_io(disk);
	qc_error_clear(&err);
	CHECK_U64(io->make_directory(io->context, "snapshots"), 0);
	CHECK_U64(io->sync_directory(io->context, ""), 0);
	for (size_t i = 0; i < LARGE; i++)
		large[i] = (uint8_t) (i * 7 + i / 251);
}

static void
end(void)
{
	CHECK_U64(sim_disk_handles(disk), 0);
	sim_disk_free(disk);
}

/* Rows of the snapshot with this mark: a few, one of them large, all telling the mark. */
static QcStatus
write_rows(uint64_t seq)
{
	QcStatus	status = QC_OK;

	for (uint32_t i = 0; i < 40 && status == QC_OK; i++)
	{
		char		key[16];
		char		value[3000];

		(void) snprintf(key, sizeof(key), "k%02u", i);
		memset(value, 'a' + (int) (i % 26), sizeof(value));
		qc_store_u64((uint8_t *) value, seq);
		if (i == 20)
			status = qc_snapshot_row(&writer, (uint8_t *) key, 3, large, LARGE, &err);
		else
			status = qc_snapshot_row(&writer, (uint8_t *) key, 3, (uint8_t *) value, i * 70 + 8, &err);
	}
	return status;
}

static QcStatus
make(uint64_t seq)
{
	QcStatus	status = qc_snapshot_begin(&writer, io, DIRECTORY, seq, NOW, &err);

	if (status == QC_OK)
		status = write_rows(seq);
	if (status == QC_OK)
		status = qc_snapshot_finish(&writer, &err);
	if (status == QC_OK)
		status = qc_snapshot_publish(&writer, &err);
	if (status != QC_OK)
		qc_snapshot_abandon(&writer);
	return status;
}

/* What a reader has seen. */
typedef struct Seen
{
	uint64_t	seq;
	uint32_t	rows;
	uint32_t	wrong;
} Seen;

static QcStatus
see(void *context, const uint8_t *key, size_t key_len, const uint8_t *value, size_t value_len,
	QcError *error)
{
	Seen	   *seen = context;
	char		expected[16];

	(void) error;
	(void) snprintf(expected, sizeof(expected), "k%02u", seen->rows);
	seen->wrong += key_len != 3 || memcmp(key, expected, 3) != 0;
	if (seen->rows == 20)
		seen->wrong += value_len != LARGE || memcmp(value, large, LARGE) != 0;
	else
		seen->wrong += value_len != seen->rows * 70 + 8 || qc_load_u64(value) != seen->seq;
	seen->rows++;
	return QC_OK;
}

static void
check_whole(uint64_t seq)
{
	Seen		seen = {.seq = seq};
	QcSnapshotHead head;

	CHECK_U64(qc_snapshot_read(io, seq, DIRECTORY, see, &seen, &head, &err), QC_OK);
	CHECK_U64(seen.rows, 40);
	CHECK_U64(seen.wrong, 0);
	CHECK_U64(head.seq, seq);
	CHECK_U64(head.rows, 40);
	CHECK_U64((uint64_t) head.created_at, NOW);
}

static void
test_round_trip(void)
{
	begin();
	CHECK_U64(make(7), QC_OK);
	check_whole(7);
	CHECK_U64(make(UINT64_MAX), QC_OK);
	check_whole(UINT64_MAX);
	check_whole(7);

	/* again under the same name: it takes its place */
	CHECK_U64(make(7), QC_OK);
	check_whole(7);
	end();
}

/* The directory was removed by hand: the next snapshot makes it again, durably. */
static void
test_directory_is_gone(void)
{
	begin();
	CHECK_U64(io->remove_directory(io->context, "snapshots"), 0);
	CHECK_U64(io->sync_directory(io->context, ""), 0);
	CHECK_U64(make(7), QC_OK);
	sim_disk_reboot(disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
	check_whole(7);
	end();
}

static QcStatus
refuse_row(void *context, const uint8_t *key, size_t key_len, const uint8_t *value,
		   size_t value_len, QcError *error)
{
	(void) context;
	(void) key;
	(void) key_len;
	(void) value;
	(void) value_len;
	return qc_error_set(error, QC_CONFLICT, "no");
}

static void
test_who_may_read(void)
{
	QcSnapshotHead head;
	char		from[QC_PATH_MAX];
	char		to[QC_PATH_MAX];

	begin();
	CHECK_U64(qc_snapshot_read(io, 7, DIRECTORY, NULL, NULL, &head, &err), QC_MISSING);
	CHECK_U64(make(7), QC_OK);
	CHECK_U64(qc_snapshot_read(io, 7, DIRECTORY + 1, NULL, NULL, &head, &err), QC_FOREIGN);
	CHECK_U64(qc_snapshot_read(io, 7, 0, NULL, NULL, &head, &err), QC_OK);
	CHECK_U64(qc_snapshot_read(io, 7, 0, refuse_row, NULL, &head, &err), QC_CONFLICT);

	/* under the name of another one */
	qc_path_snapshot(from, 7);
	qc_path_snapshot(to, 8);
	CHECK_U64(io->rename(io->context, from, to), 0);
	CHECK_U64(qc_snapshot_read(io, 8, DIRECTORY, NULL, NULL, &head, &err), QC_DAMAGED);
	CHECK_STR(err.file, "snapshots/s8.qsnap");
	end();
}

/* The sample as a file. */
static void
put_snapshot(const uint8_t *bytes, size_t len)
{
	QcHandle	handle;
	QcIoSlice	slice = {bytes, len};

	(void) io->unlink(io->context, "snapshots/s11.qsnap");
	CHECK_U64(io->open(io->context, "snapshots/s11.qsnap", QC_OPEN_WRITE | QC_OPEN_CREATE, &handle), 0);
	CHECK_U64(io->write(io->context, handle, &slice, 1, 0), 0);
	io->close(io->context, handle);
}

static QcStatus
read_bytes(const uint8_t *bytes, size_t len)
{
	QcSnapshotHead head;

	put_snapshot(bytes, len);
	return qc_snapshot_read(io, 11, 0, NULL, NULL, &head, &err);
}

/* Every bit counts, every length but the right one is wrong. */
static void
test_every_flip_and_truncation(void)
{
	uint8_t		bytes[SAMPLE_MAX];
	size_t		len = sample_snapshot(bytes);

	begin();
	CHECK_U64(read_bytes(bytes, len), QC_OK);
	for (size_t i = 0; i < len * 8; i++)
	{
		QcStatus	status;

		bytes[i / 8] ^= (uint8_t) (1 << i % 8);
		status = read_bytes(bytes, len);
		CHECK(status == QC_DAMAGED || (i / 8 == 6 && status == QC_VERSION));
		bytes[i / 8] ^= (uint8_t) (1 << i % 8);
	}
	for (size_t i = 0; i < len; i++)
		CHECK_U64(read_bytes(bytes, i), QC_DAMAGED);
	bytes[len] = 0;
	CHECK_U64(read_bytes(bytes, len + 1), QC_DAMAGED);
	end();
}

/* Rows that are right in themselves: missing, twice, in another order. */
static void
test_wrong_rows(void)
{
	uint8_t		bytes[SAMPLE_MAX];
	uint8_t		other[SAMPLE_MAX];
	size_t		len = sample_snapshot(bytes);
	size_t		first = QC_SNAPSHOT_ROW_SIZE + 1 + 4;
	size_t		second = QC_SNAPSHOT_ROW_SIZE + 9;
	QcSnapshotHead head;

	begin();
	CHECK_U64(len, QC_SNAPSHOT_HEAD_SIZE + first + second);
	CHECK_U64(qc_snapshot_head_decode(bytes, len, &head, &err), QC_OK);

	/* the other way round */
	memcpy(other, bytes, len);
	memcpy(other + QC_SNAPSHOT_HEAD_SIZE, bytes + QC_SNAPSHOT_HEAD_SIZE + first, second);
	memcpy(other + QC_SNAPSHOT_HEAD_SIZE + second, bytes + QC_SNAPSHOT_HEAD_SIZE, first);
	CHECK_U64(read_bytes(other, len), QC_DAMAGED);

	/* one is missing, and the length says so; then the number, too */
	memcpy(other, bytes, len);
	head.length = len - second;
	qc_snapshot_head_encode(other, &head);
	CHECK_U64(read_bytes(other, len - second), QC_DAMAGED);
	head.rows = 1;
	qc_snapshot_head_encode(other, &head);
	CHECK_U64(read_bytes(other, len - second), QC_DAMAGED);

	/* one stands there twice */
	head.rows = 2;
	head.length = QC_SNAPSHOT_HEAD_SIZE + 2 * first;
	memcpy(other + QC_SNAPSHOT_HEAD_SIZE + first, other + QC_SNAPSHOT_HEAD_SIZE, first);
	qc_snapshot_head_encode(other, &head);
	CHECK_U64(read_bytes(other, head.length), QC_DAMAGED);
	end();
}

static void
check_listed(const uint64_t *expected, uint32_t count)
{
	uint64_t	seqs[QC_SNAPSHOT_LIST_MAX];
	uint32_t	n;

	CHECK_U64(qc_snapshot_list(io, seqs, &n, &err), QC_OK);
	CHECK_BYTES(seqs, n * sizeof(seqs[0]), expected, count * sizeof(expected[0]));
}

static void
test_list_and_trim(void)
{
	uint64_t	oldest;
	uint64_t	newest[QC_SNAPSHOT_LIST_MAX];
	static const uint64_t two[] = {400, 390};

	begin();
	CHECK_U64(qc_snapshot_trim(io, 2, 0, &oldest, &err), QC_OK);
	CHECK_U64(oldest, UINT64_MAX);
	for (uint64_t seq = 1; seq <= 40; seq++)
	{
		CHECK_U64(make(seq * 31 % 41 * 10), QC_OK);
	}
	for (uint32_t i = 0; i < QC_SNAPSHOT_LIST_MAX; i++)
		newest[i] = 400 - i * 10;
	check_listed(newest, QC_SNAPSHOT_LIST_MAX);
	CHECK_U64(qc_snapshot_trim(io, 2, 0, &oldest, &err), QC_OK);
	CHECK_U64(oldest, 390);
	CHECK_U64(qc_snapshot_trim(io, 2, 0, &oldest, &err), QC_OK);	/* more than a list held */
	check_listed(two, 2);

	CHECK_U64(qc_snapshot_oldest(io, 0, &oldest, &err), QC_OK);
	CHECK_U64(oldest, 390);
	CHECK_U64(qc_snapshot_oldest(io, 390, &oldest, &err), QC_OK);
	CHECK_U64(oldest, 390);
	CHECK_U64(qc_snapshot_oldest(io, 391, &oldest, &err), QC_OK);
	CHECK_U64(oldest, 400);
	CHECK_U64(qc_snapshot_oldest(io, 401, &oldest, &err), QC_OK);
	CHECK_U64(oldest, 0);

	/* one below the floor is of no use; strays are not touched */
	CHECK_U64(qc_dir_write_file(io, "snapshots/s007.qsnap", "x", 1, &err), QC_OK);
	CHECK_U64(qc_dir_write_file(io, "snapshots/s99999999999999999999.qsnap", "x", 1, &err), QC_OK);
	CHECK_U64(qc_dir_write_file(io, "snapshots/s5.qsnap.tmp2", "x", 1, &err), QC_OK);
	CHECK_U64(qc_snapshot_trim(io, 2, 391, &oldest, &err), QC_OK);
	CHECK_U64(oldest, 400);
	check_listed(two, 1);
	CHECK_U64(qc_snapshot_trim(io, 2, 401, &oldest, &err), QC_OK);
	CHECK_U64(oldest, UINT64_MAX);
	check_listed(NULL, 0);
	end();
}

/* Those of a history that recovery has cut off. */
static void
test_cut_history(void)
{
	static const uint64_t left[] = {150, 100};

	begin();
	CHECK_U64(qc_snapshot_remove_from(io, 0, &err), QC_OK);
	CHECK_U64(make(100), QC_OK);
	CHECK_U64(make(150), QC_OK);
	CHECK_U64(make(151), QC_OK);
	CHECK_U64(make(200), QC_OK);
	CHECK_U64(qc_snapshot_remove_from(io, 201, &err), QC_OK);
	check_whole(200);
	CHECK_U64(qc_snapshot_remove_from(io, 151, &err), QC_OK);
	check_listed(left, 2);
	sim_disk_reboot(disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
	check_listed(left, 2);
	end();
}

/* Power fails at each step of taking a second snapshot: the first is there, and what has a name is whole. */
static void
test_power_fails(void)
{
	bool		done = false;

	for (uint64_t step = 1; !done; step++)
	{
		uint64_t	seqs[QC_SNAPSHOT_LIST_MAX];
		uint32_t	n;
		uint64_t	before;

		begin();
		CHECK_U64(make(7), QC_OK);
		sim_disk_reseed(disk, step);
		before = sim_disk_steps(disk);
		sim_disk_crash_at(disk, before + step, SIM_MIDDLE);
		done = make(9) == QC_OK;
		sim_disk_reboot(disk, SIM_RANDOM, SIM_RANDOM);
		check_whole(7);
		CHECK_U64(qc_snapshot_list(io, seqs, &n, &err), QC_OK);
		CHECK(n == 1 || (n == 2 && seqs[0] == 9));
		if (n == 2)
			check_whole(9);
		CHECK(!done || n == 2);

		/* and it can be taken again */
		CHECK_U64(make(9), QC_OK);
		check_whole(9);
		end();
	}
}

/* Each call fails once: nothing is left of it, the older one stays. */
static void
test_calls_fail(void)
{
	static const SimOp ops[] = {SIM_OP_CREATE, SIM_OP_WRITE, SIM_OP_SYNC, SIM_OP_RENAME,
		SIM_OP_SYNC_DIRECTORY};
	static const int errors[] = {ENOSPC, EIO};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]) * 2; i++)
	{
		QcStatus	status = QC_IO;

		begin();
		CHECK_U64(make(7), QC_OK);
		for (uint64_t nth = 1; status != QC_OK; nth++)
		{
			QcHandle	handle;

			sim_disk_fail(disk, ops[i / 2], nth, errors[i % 2]);
			status = make(9);
			CHECK(status == QC_OK || status == (errors[i % 2] == ENOSPC ? QC_NOSPACE : QC_IO));
			sim_disk_heal(disk);
			check_whole(7);
			CHECK_U64(io->open(io->context, "snapshots/s9.qsnap.tmp", 0, &handle), ENOENT);
		}
		check_whole(9);
		end();
	}
}

/* No room: the same. */
static void
test_full_disk(void)
{
	static const uint64_t seven = 7;

	begin();
	CHECK_U64(make(7), QC_OK);
	sim_disk_set_capacity(disk, sim_disk_used(disk) + LARGE / 2);
	CHECK_U64(make(9), QC_NOSPACE);
	check_listed(&seven, 1);
	check_whole(7);
	end();
}

int
main(void)
{
	UNIT_RUN(test_round_trip);
	UNIT_RUN(test_directory_is_gone);
	UNIT_RUN(test_who_may_read);
	UNIT_RUN(test_every_flip_and_truncation);
	UNIT_RUN(test_wrong_rows);
	UNIT_RUN(test_list_and_trim);
	UNIT_RUN(test_cut_history);
	UNIT_RUN(test_power_fails);
	UNIT_RUN(test_calls_fail);
	UNIT_RUN(test_full_disk);
	return unit_end();
}
