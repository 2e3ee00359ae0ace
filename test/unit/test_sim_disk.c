/*
 * test_sim_disk.c
 *		The simulated disk: what it loses and keeps, where it stops, and that it does so again.
 */
#include "../sim/sim_random.h"
#include "disk_use.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- data ---- */

static void
test_synced_survives_unsynced_does_not(void)
{
	SimDisk    *disk = disk_with_file(1, 1000, 'a');
	char		buf[4096];

	CHECK_U64(write_at(disk, "f", 500, "new", 3, false), 0);
	CHECK_U64(write_at(disk, "f", 2000, "end", 3, false), 0);
	CHECK_U64(read_file(disk, "f", buf, sizeof(buf)), 2003);
	sim_disk_reboot(disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
	CHECK_U64(read_file(disk, "f", buf, sizeof(buf)), 1000);
	CHECK_U64(buf[500], 'a');
	CHECK_U64(buf[999], 'a');
	CHECK_U64(buf[1000], 0);
	sim_disk_free(disk);
}

static void
test_keep_all_keeps_all(void)
{
	SimDisk    *disk = disk_with_file(1, 1000, 'a');
	const QcIo *io = sim_disk_io(disk);
	uint64_t	digest;

	CHECK_U64(write_at(disk, "f", 500, "new", 3, false), 0);
	CHECK_U64(write_at(disk, "f", 9000, "end", 3, false), 0);
	CHECK_U64(truncate_file(disk, "f", 9001), 0);
	CHECK_U64(io->make_directory(disk, "d"), 0);
	CHECK_U64(write_at(disk, "d/g", 0, "g", 1, false), 0);
	CHECK_U64(io->rename(disk, "f", "h"), 0);
	digest = sim_disk_digest(disk);
	sim_disk_reboot(disk, SIM_KEEP_ALL, SIM_KEEP_ALL);
	CHECK_U64(sim_disk_digest(disk), digest);
	sim_disk_reboot(disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
	CHECK_U64(sim_disk_digest(disk), digest);
	sim_disk_free(disk);
}

/* Every one of 16 outcomes of 4 unsynced sectors must come up, and no sector may be torn. */
static void
test_sectors_survive_on_their_own(void)
{
	int			seen[16] = {0};
	int			outcomes = 0;
	char		new_bytes[2048];

	memset(new_bytes, 'n', sizeof(new_bytes));
	for (uint64_t seed = 0; seed < 400; seed++)
	{
		SimDisk    *disk = disk_with_file(seed, 2048, 'o');
		char		buf[2048];
		int			outcome = 0;

		CHECK_U64(write_at(disk, "f", 0, new_bytes, sizeof(new_bytes), false), 0);
		sim_disk_reboot(disk, SIM_RANDOM, SIM_RANDOM);
		CHECK_U64(read_file(disk, "f", buf, sizeof(buf)), 2048);
		for (int sector = 0; sector < 4; sector++)
		{
			const char *at = buf + sector * SIM_SECTOR_SIZE;

			CHECK(memcmp(at, at + 1, SIM_SECTOR_SIZE - 1) == 0);
			CHECK(*at == 'n' || *at == 'o');
			outcome |= (*at == 'n') << sector;
		}
		outcomes += seen[outcome]++ == 0;
		sim_disk_free(disk);
	}
	CHECK_U64(outcomes, 16);
}

/* A sector written three times may show the stable bytes or any of the three, nothing else. */
static void
test_each_version_of_a_sector_can_survive(void)
{
	int			seen[256] = {0};

	for (uint64_t seed = 0; seed < 300; seed++)
	{
		SimDisk    *disk = disk_with_file(seed, 512, '0');
		char		bytes[512];

		for (char version = '1'; version <= '3'; version++)
		{
			memset(bytes, version, sizeof(bytes));
			CHECK_U64(write_at(disk, "f", 0, bytes, sizeof(bytes), false), 0);
		}
		sim_disk_reboot(disk, SIM_RANDOM, SIM_KEEP_ALL);
		CHECK_U64(read_file(disk, "f", bytes, sizeof(bytes)), 512);
		CHECK(memcmp(bytes, bytes + 1, 511) == 0);
		seen[(uint8_t) bytes[0]]++;
		sim_disk_free(disk);
	}
	CHECK(seen['0'] > 0 && seen['1'] > 0 && seen['2'] > 0 && seen['3'] > 0);
	CHECK_U64(seen['0'] + seen['1'] + seen['2'] + seen['3'], 300);
}

/* Growth and shrinking are lost or kept; bytes above a lost size never show. */
static void
test_sizes_survive_or_not(void)
{
	int			grown[3] = {0};
	int			shrunk[2] = {0};

	for (uint64_t seed = 0; seed < 200; seed++)
	{
		SimDisk    *disk = disk_with_file(seed, 100, 'a');
		char		buf[1200];
		int64_t		size;
		bool		cut;

		CHECK_U64(write_at(disk, "f", 100, "bbb", 3, false), 0);
		CHECK_U64(write_at(disk, "f", 1000, "c", 1, false), 0);
		sim_disk_reboot(disk, SIM_RANDOM, SIM_RANDOM);
		size = read_file(disk, "f", buf, sizeof(buf));
		CHECK(size == 100 || size == 103 || size == 1001);
		grown[size == 100 ? 0 : size == 103 ? 1 : 2]++;
		CHECK_U64(truncate_file(disk, "f", 10), 0);
		sim_disk_reboot(disk, SIM_RANDOM, SIM_RANDOM);
		cut = read_file(disk, "f", buf, sizeof(buf)) == 10;
		CHECK(cut || read_file(disk, "f", buf, sizeof(buf)) == size);
		CHECK_U64(buf[99], cut ? 0 : 'a');
		shrunk[cut]++;
		sim_disk_free(disk);
	}
	CHECK(grown[0] > 0 && grown[1] > 0 && grown[2] > 0);
	CHECK(shrunk[0] > 0 && shrunk[1] > 0);
}

/* Cut, then write again: a lost cut brings the old bytes back, a kept one never does. */
static void
test_truncate_then_write(void)
{
	int			old_tail = 0;
	int			zero_tail = 0;

	for (uint64_t seed = 0; seed < 200; seed++)
	{
		SimDisk    *disk = disk_with_file(seed, 2048, 'o');
		char		buf[2048];

		CHECK_U64(truncate_file(disk, "f", 100), 0);
		CHECK_U64(truncate_file(disk, "f", 2048), 0);
		CHECK_U64(write_at(disk, "f", 100, "new", 3, false), 0);
		sim_disk_reboot(disk, SIM_RANDOM, SIM_RANDOM);
		if (read_file(disk, "f", buf, sizeof(buf)) == 2048)
		{
			CHECK(buf[2047] == 'o' || buf[2047] == 0);
			CHECK(memcmp(buf + 103, buf + 104, 1944) == 0);
			old_tail += buf[2047] == 'o';
			zero_tail += buf[2047] == 0;
		}
		CHECK_U64(buf[99], 'o');
		sim_disk_free(disk);
	}
	CHECK(old_tail > 0 && zero_tail > 0);
}

static void
test_large_zeros_are_cheap_and_real(void)
{
	SimDisk    *disk = sim_disk_new(1);
	const QcIo *io = sim_disk_io(disk);
	size_t		len = 16 * 1024 * 1024;
	uint8_t    *zeros = calloc(1, len);
	uint8_t		buf[16];
	QcIoSlice	slice = {zeros, len};
	QcHandle	handle;
	size_t		done;

	CHECK_U64(io->open(disk, "f", QC_OPEN_WRITE | QC_OPEN_CREATE, &handle), 0);
	CHECK_U64(io->write(disk, handle, &slice, 1, 0), 0);
	CHECK_U64(sim_disk_used(disk), len);
	CHECK_U64(write_at(disk, "f", len - 10, "x", 1, false), 0);
	slice.len = 20;
	CHECK_U64(io->write(disk, handle, &slice, 1, len - 20), 0);
	CHECK_U64(io->read(disk, handle, buf, sizeof(buf), len - 16, &done), 0);
	CHECK_BYTES(buf, done, zeros, 16);
	io->close(disk, handle);
	free(zeros);
	sim_disk_free(disk);
}

/* ---- names ---- */

static void
test_names_need_the_directory_synced(void)
{
	SimDisk    *disk = sim_disk_new(1);
	const QcIo *io = sim_disk_io(disk);

	CHECK_U64(write_at(disk, "a", 0, "x", 1, true), 0);
	CHECK_U64(io->make_directory(disk, "d"), 0);
	CHECK_U64(write_at(disk, "d/b", 0, "x", 1, true), 0);
	CHECK_U64(io->sync_directory(disk, "d"), 0);
	sim_disk_reboot(disk, SIM_KEEP_ALL, SIM_LOSE_ALL);
	CHECK(!exists(disk, "a"));
	CHECK_U64(io->sync_directory(disk, "d"), ENOENT);
	CHECK_U64(sim_disk_used(disk), 0);

	CHECK_U64(write_at(disk, "a", 0, "x", 1, true), 0);
	CHECK_U64(write_at(disk, "b", 0, "y", 1, true), 0);
	CHECK_U64(sync_root(disk), 0);
	CHECK_U64(io->rename(disk, "a", "b"), 0);
	sim_disk_reboot(disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
	CHECK(exists(disk, "a") && exists(disk, "b"));
	CHECK_U64(io->rename(disk, "a", "b"), 0);
	CHECK_U64(sync_root(disk), 0);
	CHECK_U64(io->unlink(disk, "b"), 0);
	sim_disk_reboot(disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
	CHECK(!exists(disk, "a") && exists(disk, "b"));
	CHECK_U64(io->unlink(disk, "b"), 0);
	CHECK_U64(sync_root(disk), 0);
	sim_disk_reboot(disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
	CHECK(!exists(disk, "b"));
	sim_disk_free(disk);
}

/* Two unsynced creates: all four outcomes come up. */
static void
test_names_survive_on_their_own(void)
{
	int			seen[4] = {0};

	for (uint64_t seed = 0; seed < 100; seed++)
	{
		SimDisk    *disk = sim_disk_new(seed);

		CHECK_U64(write_at(disk, "a", 0, "x", 1, true), 0);
		CHECK_U64(write_at(disk, "b", 0, "x", 1, true), 0);
		sim_disk_reboot(disk, SIM_RANDOM, SIM_RANDOM);
		seen[exists(disk, "a") + 2 * exists(disk, "b")]++;
		sim_disk_free(disk);
	}
	CHECK(seen[0] > 0 && seen[1] > 0 && seen[2] > 0 && seen[3] > 0);
}

/* The usual replacement of a small file: the old one or the new one, whole, whatever is lost. */
static void
test_replacement_is_atomic(void)
{
	int			seen[2] = {0};

	for (uint64_t seed = 0; seed < 100; seed++)
	{
		SimDisk    *disk = disk_with_file(seed, 600, 'o');
		char		bytes[700];

		memset(bytes, 'n', sizeof(bytes));
		CHECK_U64(write_at(disk, "f.tmp", 0, bytes, sizeof(bytes), true), 0);
		CHECK_U64(sim_disk_io(disk)->rename(disk, "f.tmp", "f"), 0);
		sim_disk_reboot(disk, SIM_RANDOM, SIM_RANDOM);
		if (read_file(disk, "f", bytes, sizeof(bytes)) == 600)
			CHECK(bytes[0] == 'o' && memcmp(bytes, bytes + 1, 599) == 0);
		else
			CHECK(bytes[0] == 'n' && memcmp(bytes, bytes + 1, 699) == 0);
		seen[bytes[0] == 'n']++;
		sim_disk_free(disk);
	}
	CHECK(seen[0] > 0 && seen[1] > 0);
}

/* Without the sync before the rename the new file may be empty: the classic mistake must show. */
static void
test_replacement_without_sync_is_caught(void)
{
	int			broken = 0;

	for (uint64_t seed = 0; seed < 100; seed++)
	{
		SimDisk    *disk = disk_with_file(seed, 600, 'o');
		char		bytes[600];

		memset(bytes, 'n', sizeof(bytes));
		CHECK_U64(write_at(disk, "f.tmp", 0, bytes, sizeof(bytes), false), 0);
		CHECK_U64(sim_disk_io(disk)->rename(disk, "f.tmp", "f"), 0);
		sim_disk_reboot(disk, SIM_RANDOM, SIM_RANDOM);
		broken += read_file(disk, "f", bytes, sizeof(bytes)) < 600;
		sim_disk_free(disk);
	}
	CHECK(broken > 0);
}

/* ---- stopping at a step ---- */

/* A step of every kind but swap. */
static int
run_script(SimDisk *disk)
{
	const QcIo *io = sim_disk_io(disk);
	char		bytes[1500];
	int			error;

	memset(bytes, 's', sizeof(bytes));
	error = io->make_directory(disk, "d");
	if (error == 0)
		error = sync_root(disk);
	if (error == 0)
		error = write_at(disk, "d/a", 100, bytes, sizeof(bytes), true);
	if (error == 0)
		error = io->sync_directory(disk, "d");
	if (error == 0)
		error = truncate_file(disk, "d/a", 50);
	if (error == 0)
		error = io->rename(disk, "d/a", "d/b");
	if (error == 0)
		error = io->unlink(disk, "d/b");
	if (error == 0)
		error = io->remove_directory(disk, "d");
	return error;
}

#define SCRIPT_STEPS 10

static void
test_steps_are_counted(void)
{
	SimDisk    *disk = sim_disk_new(1);

	CHECK_U64(run_script(disk), 0);
	CHECK_U64(sim_disk_steps(disk), SCRIPT_STEPS);
	CHECK_U64(sim_disk_count(disk, SIM_OP_SYNC), 1);
	CHECK_U64(sim_disk_count(disk, SIM_OP_SYNC_DIRECTORY), 2);
	CHECK_U64(sim_disk_count(disk, SIM_OP_CREATE), 1);
	CHECK_U64(sim_disk_used(disk), 0);
	CHECK_U64(sim_disk_handles(disk), 0);
	sim_disk_free(disk);
}

static void
test_power_fails_at_every_step(void)
{
	uint64_t	before = 0;

	for (uint64_t step = 1; step <= SCRIPT_STEPS; step++)
		for (int point = SIM_BEFORE; point <= SIM_AFTER; point++)
		{
			SimDisk    *disk = sim_disk_new(step);
			uint64_t	digest;
			QcHandle	handle;

			sim_disk_crash_at(disk, step, (SimPoint) point);
			CHECK_U64(run_script(disk), SIM_CRASHED);
			CHECK(sim_disk_crashed(disk));
			CHECK_U64(sim_disk_steps(disk), step);
			CHECK_U64(run_script(disk), SIM_CRASHED);
			CHECK_U64(sim_disk_steps(disk), step);
			CHECK_U64(sim_disk_io(disk)->open(disk, "d/a", 0, &handle), SIM_CRASHED);

			/* what is there after step n is what is there before step n + 1 */
			sim_disk_reboot(disk, SIM_KEEP_ALL, SIM_KEEP_ALL);
			CHECK(!sim_disk_crashed(disk));
			digest = sim_disk_digest(disk);
			if (point == SIM_BEFORE && step > 1)
				CHECK_U64(digest, before);
			if (point == SIM_AFTER)
				before = digest;
			sim_disk_free(disk);
		}
}

/* A write stopped in the middle: prefixes and sets of sectors, of which some are no prefix. */
static void
test_partial_writes(void)
{
	int			prefixes = 0;
	int			holes = 0;
	int			nothing = 0;
	char		bytes[2048];

	memset(bytes, 'n', sizeof(bytes));
	for (uint64_t seed = 0; seed < 200; seed++)
	{
		SimDisk    *disk = disk_with_file(seed, 2048, 'o');
		char		buf[2048];
		size_t		changed = 0;
		size_t		first = 0;

		sim_disk_crash_at(disk, sim_disk_steps(disk) + 1, SIM_MIDDLE);
		CHECK_U64(write_at(disk, "f", 0, bytes, sizeof(bytes), false), SIM_CRASHED);
		sim_disk_reboot(disk, SIM_KEEP_ALL, SIM_KEEP_ALL);
		CHECK_U64(read_file(disk, "f", buf, sizeof(buf)), 2048);
		for (size_t i = 0; i < sizeof(buf); i++)
			changed += buf[i] == 'n';
		while (first < sizeof(buf) && buf[first] == 'n')
			first++;
		prefixes += changed > 0 && first == changed;
		holes += first < changed;
		nothing += changed == 0;
		sim_disk_free(disk);
	}
	CHECK(prefixes > 20);
	CHECK(holes > 20);
	CHECK(nothing > 0);
}

/* ---- copies, repetition, and a check against a simple model ---- */

static void
test_copy_is_apart(void)
{
	SimDisk    *disk = disk_with_file(1, 10000, 'a');
	SimDisk    *copy;
	const uint8_t *value;
	uint64_t	digest;
	size_t		len;
	char		buf[10];

	CHECK_U64(write_at(disk, "f", 0, "one", 3, false), 0);
	CHECK_U64(sim_disk_swap(disk, "v", "old", 3), 0);
	copy = sim_disk_copy(disk);
	digest = sim_disk_digest(disk);
	CHECK_U64(sim_disk_digest(copy), digest);
	CHECK_U64(write_at(copy, "f", 0, "two", 3, true), 0);
	CHECK_U64(sim_disk_swap(copy, "v", "newer", 5), 0);
	CHECK_U64(sim_disk_io(copy)->unlink(copy, "f"), 0);
	CHECK_U64(sim_disk_digest(disk), digest);
	CHECK(sim_disk_digest(copy) != digest);
	value = sim_disk_swapped(disk, "v", &len);
	CHECK_BYTES(value, len, "old", 3);
	sim_disk_reboot(disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
	CHECK_U64(read_file(disk, "f", buf, sizeof(buf)), 10000);
	CHECK_BYTES(buf, 3, "aaa", 3);
	sim_disk_reboot(copy, SIM_LOSE_ALL, SIM_LOSE_ALL);
	CHECK_U64(read_file(copy, "f", buf, sizeof(buf)), 10000);
	CHECK_BYTES(buf, 3, "two", 3);
	sim_disk_free(copy);
	sim_disk_free(disk);
}

/* Random work on two files in one directory; ends at a random power failure. */
static void
random_work(SimDisk *disk, uint64_t seed, int steps)
{
	const QcIo *io = sim_disk_io(disk);
	static const char *const names[] = {"a", "b", "d/a", "d/b"};
	uint64_t	random = seed;
	uint8_t		bytes[3000];

	(void) io->make_directory(disk, "d");
	for (int i = 0; i < steps; i++)
	{
		const char *name = names[sim_random_below(&random, 4)];
		uint64_t	position = sim_random_below(&random, 20000);
		size_t		len = (size_t) sim_random_below(&random, sizeof(bytes));

		memset(bytes, (int) sim_random_below(&random, 256), sizeof(bytes));
		switch (sim_random_below(&random, 9))
		{
			case 0:
				(void) sync_file(disk, name);
				break;
			case 1:
				(void) truncate_file(disk, name, position);
				break;
			case 2:
				(void) io->sync_directory(disk, "d");
				break;
			case 3:
				(void) sync_root(disk);
				break;
			case 4:
				(void) io->rename(disk, "d/a", "d/b");
				break;
			case 5:
				(void) io->unlink(disk, name);
				break;
			default:
				(void) write_at(disk, name, position, bytes, len, false);
				break;
		}
	}
}

static void
test_same_seed_same_outcome(void)
{
	int			different = 0;

	for (uint64_t seed = 0; seed < 100; seed++)
	{
		uint64_t	digest[3];

		for (int run = 0; run < 3; run++)
		{
			SimDisk    *disk = sim_disk_new(run == 2 ? seed + 1000 : seed);

			sim_disk_crash_at(disk, 20 + seed % 20, SIM_MIDDLE);
			random_work(disk, seed, 60);
			sim_disk_reboot(disk, SIM_RANDOM, SIM_RANDOM);
			random_work(disk, seed + 1, 20);
			digest[run] = sim_disk_digest(disk);
			sim_disk_free(disk);
		}
		CHECK_U64(digest[0], digest[1]);
		different += digest[0] != digest[2];
	}
	CHECK(different > 20);
}

/* A plain array with what was written since the last sync, byte by byte. */
typedef struct Model
{
	uint8_t		now[8192];
	uint8_t		stable[8192];
	bool		dirty[8192];
	uint64_t	size;
	uint64_t	stable_size;
} Model;

static void
model_step(Model *model, SimDisk *disk, uint64_t *random)
{
	uint8_t		bytes[2000];
	uint64_t	position = sim_random_below(random, 6000);
	size_t		len = 1 + (size_t) sim_random_below(random, sizeof(bytes) - 1);
	uint8_t		fill = (uint8_t) sim_random_below(random, 4);	/* 0 often: zeros have a path of
																 * their own */

	memset(bytes, fill, sizeof(bytes));
	switch (sim_random_below(random, 5))
	{
		case 0:
			CHECK_U64(sync_file(disk, "f"), 0);
			memcpy(model->stable, model->now, sizeof(model->now));
			memset(model->dirty, 0, sizeof(model->dirty));
			model->stable_size = model->size;
			break;
		case 1:
			CHECK_U64(truncate_file(disk, "f", position), 0);
			memset(model->now + position, 0, sizeof(model->now) - position);
			memset(model->dirty + position, 1, sizeof(model->dirty) - position);
			model->size = position;
			break;
		default:
			CHECK_U64(write_at(disk, "f", position, bytes, len, false), 0);
			memcpy(model->now + position, bytes, len);
			memset(model->dirty + position, 1, len);
			if (model->size < position + len)
				model->size = position + len;
			break;
	}
}

/*
 * Against the model: what reads now is right after every call, losing everything gives exactly the
 * stable bytes, and losing at random never touches a byte that was not written since the sync.
 */
static void
test_against_a_model(void)
{
	for (uint64_t seed = 0; seed < 60; seed++)
	{
		SimDisk    *disk = disk_with_file(seed, 1, 0);
		Model		model = {.size = 1, .stable_size = 1};
		uint64_t	random = seed;
		uint8_t		buf[8192];

		for (int i = 0; i < 40; i++)
		{
			SimDisk    *copy;

			model_step(&model, disk, &random);
			CHECK_U64(read_file(disk, "f", buf, sizeof(buf)), model.size);
			CHECK(memcmp(buf, model.now, sizeof(buf)) == 0);

			copy = sim_disk_copy(disk);
			sim_disk_reboot(copy, SIM_LOSE_ALL, SIM_LOSE_ALL);
			CHECK_U64(read_file(copy, "f", buf, sizeof(buf)), model.stable_size);
			CHECK(memcmp(buf, model.stable, sizeof(buf)) == 0);
			sim_disk_free(copy);

			copy = sim_disk_copy(disk);
			sim_disk_reboot(copy, SIM_KEEP_ALL, SIM_LOSE_ALL);
			CHECK_U64(read_file(copy, "f", buf, sizeof(buf)), model.size);
			CHECK(memcmp(buf, model.now, sizeof(buf)) == 0);
			sim_disk_free(copy);

			copy = sim_disk_copy(disk);
			sim_disk_reboot(copy, SIM_RANDOM, SIM_LOSE_ALL);
			(void) read_file(copy, "f", buf, sizeof(buf));
			for (uint64_t at = 0; at < sizeof(buf); at++)
				if (!model.dirty[at] && buf[at] != model.stable[at])
				{
					CHECK_U64(buf[at], model.stable[at]);
					break;
				}
			sim_disk_free(copy);
		}
		sim_disk_free(disk);
	}
}

int
main(void)
{
	UNIT_RUN(test_synced_survives_unsynced_does_not);
	UNIT_RUN(test_keep_all_keeps_all);
	UNIT_RUN(test_sectors_survive_on_their_own);
	UNIT_RUN(test_each_version_of_a_sector_can_survive);
	UNIT_RUN(test_sizes_survive_or_not);
	UNIT_RUN(test_truncate_then_write);
	UNIT_RUN(test_large_zeros_are_cheap_and_real);
	UNIT_RUN(test_names_need_the_directory_synced);
	UNIT_RUN(test_names_survive_on_their_own);
	UNIT_RUN(test_replacement_is_atomic);
	UNIT_RUN(test_replacement_without_sync_is_caught);
	UNIT_RUN(test_steps_are_counted);
	UNIT_RUN(test_power_fails_at_every_step);
	UNIT_RUN(test_partial_writes);
	UNIT_RUN(test_copy_is_apart);
	UNIT_RUN(test_same_seed_same_outcome);
	UNIT_RUN(test_against_a_model);
	return unit_end();
}
