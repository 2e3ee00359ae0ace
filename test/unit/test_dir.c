/*
 * test_dir.c
 *		The data directory: creation, a creation that is cut short at every step, identity checks, adoption, listing in
 *		both layouts, sweeping.
 */
#include "../sim/sim_disk.h"
#include "qc_dir.h"
#include "qc_log.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYSTEM	7001
#define ID		55
#define NODE	9

static SimDisk *disk;
static const QcIo *io;
static QcError err;
static const QcDirChoice plain = {.layout = QC_LAYOUT_FLAT};

static void
begin(void)
{
	disk = sim_disk_new(1);
	io = sim_disk_io(disk);
	qc_error_clear(&err);
}

static void
end(void)
{
	CHECK_U64(sim_disk_handles(disk), 0);
	sim_disk_free(disk);
}

static QcStatus
open_shared(QcLayout layout, uint32_t shards, QcIdentity *identity)
{
	QcDirChoice choice = {.layout = layout, .shards = shards};

	return qc_dir_open(io, SYSTEM, &choice, ID, NODE, identity, &err);
}

static QcStatus
open_dir(QcLayout layout, QcIdentity *identity)
{
	return open_shared(layout, 0, identity);
}

static void
put_file(const char *path, const char *content)
{
	QcHandle	handle;
	QcIoSlice	slice = {content, strlen(content)};

	if (io->open(io->context, path, QC_OPEN_WRITE | QC_OPEN_CREATE, &handle) != 0 ||
		io->write(io->context, handle, &slice, 1, 0) != 0)
		abort();
	io->close(io->context, handle);
}

static void
replace_file(const char *path, const char *content)
{
	CHECK_U64(io->unlink(io->context, path), 0);
	put_file(path, content);
}

static bool
exists(const char *path)
{
	QcHandle	handle;

	if (io->open(io->context, path, 0, &handle) == 0)
	{
		io->close(io->context, handle);
		return true;
	}
	return false;
}

static void
test_create_and_open(void)
{
	QcIdentity	identity;
	uint64_t	digest;

	begin();
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_OK);
	CHECK(identity.created && !identity.copied);
	CHECK_U64(identity.directory_id, ID);
	CHECK_U64(identity.node_id, NODE);
	CHECK(exists("qlog/q0/r00000001.qlog"));
	digest = sim_disk_digest(disk);

	CHECK_U64(qc_dir_open(io, SYSTEM, &plain, 1, 2, &identity, &err), QC_OK);
	CHECK(!identity.created && !identity.copied);
	CHECK_U64(identity.directory_id, ID);
	CHECK_U64(identity.system_identifier, SYSTEM);
	CHECK_U64(identity.node_id, NODE);
	CHECK_U64(sim_disk_digest(disk), digest);

	/* That of another system is refused, and not touched. */
	CHECK_U64(qc_dir_open(io, SYSTEM + 7, &plain, 1, 2, &identity, &err), QC_FOREIGN);
	CHECK(strcmp(err.file, "IDENTITY") == 0);
	CHECK_U64(sim_disk_digest(disk), digest);
	end();
}

/* Exactly q0 and the shared logs, each with its first file. */
static void
check_logs(QcLayout layout, uint32_t shards)
{
	uint64_t   *ids;
	uint32_t	n;

	CHECK_U64(qc_dir_logs(io, layout, &ids, &n, &err), QC_OK);
	CHECK_U64(n, shards + 1);
	for (uint32_t i = 0; i < n; i++)
	{
		char		path[QC_PATH_MAX];

		CHECK_U64(ids[i], i);
		qc_path_file(path, layout, ids[i], 1, "qlog");
		CHECK(exists(path));
	}
	free(ids);
}

/* Layout and number of shared logs are chosen once; asking for others is refused and changes nothing. */
static void
test_layout_is_fixed(void)
{
	QcIdentity	identity;
	uint64_t	digest;

	begin();
	CHECK_U64(open_shared(QC_LAYOUT_HIERARCHICAL, 4, &identity), QC_OK);
	CHECK_U64(identity.shards, 4);
	check_logs(QC_LAYOUT_HIERARCHICAL, 4);
	CHECK(exists("qlog/00/0000/q4/r00000001.qlog"));
	sim_disk_reboot(disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
	digest = sim_disk_digest(disk);
	CHECK_U64(open_shared(QC_LAYOUT_HIERARCHICAL, 0, &identity), QC_CONFLICT);
	CHECK_STR(err.file, "qlog/SHARDS");
	CHECK_STR(err.text, "directory has 4 shared logs, 0 were asked for");
	CHECK_U64(open_shared(QC_LAYOUT_HIERARCHICAL, 5, &identity), QC_CONFLICT);
	CHECK_U64(open_shared(QC_LAYOUT_FLAT, 4, &identity), QC_CONFLICT);
	CHECK_STR(err.file, "qlog/LANES");
	CHECK_U64(sim_disk_digest(disk), digest);
	CHECK_U64(open_shared(QC_LAYOUT_HIERARCHICAL, 4, &identity), QC_OK);
	CHECK_U64(identity.shards, 4);

	replace_file("qlog/SHARDS", "format_version = 1\nshards = 0\n");
	CHECK_U64(open_shared(QC_LAYOUT_HIERARCHICAL, 0, &identity), QC_DAMAGED);
	CHECK_STR(err.file, "qlog/SHARDS");
	replace_file("qlog/SHARDS", "format_version = 1\nshards = 1025\n");
	CHECK_U64(open_shared(QC_LAYOUT_HIERARCHICAL, 4, &identity), QC_DAMAGED);
	replace_file("qlog/SHARDS", "format_version = 2\nshards = many\n");
	CHECK_U64(open_shared(QC_LAYOUT_HIERARCHICAL, 4, &identity), QC_VERSION);
	end();

	begin();
	CHECK_U64(open_shared(QC_LAYOUT_FLAT, 0, &identity), QC_OK);
	CHECK_U64(open_shared(QC_LAYOUT_FLAT, 1, &identity), QC_CONFLICT);
	CHECK_STR(err.text, "directory has 0 shared logs, 1 were asked for");
	end();
}

/* Creation is durable when it returns: a power failure takes nothing of it away. */
static void
test_created_survives(void)
{
	QcIdentity	identity;

	begin();
	CHECK_U64(open_dir(QC_LAYOUT_HIERARCHICAL, &identity), QC_OK);
	sim_disk_reboot(disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
	CHECK_U64(open_dir(QC_LAYOUT_HIERARCHICAL, &identity), QC_OK);
	CHECK(!identity.created && !identity.copied);
	CHECK(exists("qlog/00/0000/q0/r00000001.qlog"));
	end();
}

/* Cut short at every step, in every way: opening again, with whatever settings, always gives a complete directory. */
static void
create_cut_short(QcLayout layout, uint32_t shards, QcLayout other_layout, uint32_t other_shards)
{
	static const SimPoint points[] = {SIM_BEFORE, SIM_MIDDLE, SIM_AFTER};
	static const SimLoss losses[] = {SIM_KEEP_ALL, SIM_LOSE_ALL, SIM_RANDOM};
	QcIdentity	identity;
	uint64_t	steps;

	begin();
	CHECK_U64(open_shared(layout, shards, &identity), QC_OK);
	steps = sim_disk_steps(disk);
	end();
	CHECK(steps > 10);
	for (uint64_t step = 1; step <= steps; step++)
	{
		for (int i = 0; i < 9; i++)
		{
			QcLayout	again_layout = other_layout;
			uint32_t	again_shards = other_shards;

			begin();
			sim_disk_reseed(disk, step * 16 + (uint64_t) i);
			sim_disk_crash_at(disk, step, points[i % 3]);
			CHECK(open_shared(layout, shards, &identity) != QC_OK);
			sim_disk_reboot(disk, losses[i / 3], losses[i / 3]);

			/* once it is complete, what it was made with counts */
			if (exists("IDENTITY"))
			{
				again_layout = layout;
				again_shards = shards;
			}

			/* and once more in the middle of the second attempt */
			sim_disk_crash_at(disk, sim_disk_steps(disk) + 1 + step % 7, points[i / 3]);
			(void) open_shared(again_layout, again_shards, &identity);
			sim_disk_reboot(disk, losses[i % 3], losses[i % 3]);
			if (!CHECK_U64(open_shared(again_layout, again_shards, &identity), QC_OK))
			{
				char		content[512];

				qc_error_format(&err, content, sizeof(content));
				printf("# step %llu, %d: %s\n", (unsigned long long) step, i, content);
				sim_disk_tree(disk, stdout);
			}
			CHECK_U64(open_shared(again_layout, again_shards, &identity), QC_OK);
			CHECK(!identity.created && !identity.copied);
			check_logs(again_layout, again_shards);
			end();
		}
	}
}

static void
test_create_cut_short(void)
{
	create_cut_short(QC_LAYOUT_FLAT, 0, QC_LAYOUT_FLAT, 0);
	create_cut_short(QC_LAYOUT_FLAT, 3, QC_LAYOUT_FLAT, 3);
	create_cut_short(QC_LAYOUT_HIERARCHICAL, 2, QC_LAYOUT_HIERARCHICAL, 0);
	create_cut_short(QC_LAYOUT_FLAT, 2, QC_LAYOUT_FLAT, 1);
}

/* Open, and adopt when it is a copy. */
static void
open_and_adopt(QcIdentity *identity)
{
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, identity), QC_OK);
	if (identity->copied)
		CHECK_U64(qc_dir_adopt(io, NODE + 9, identity, &err), QC_OK);
}

/*
 * A step fails and the machine goes on: what the next opening finds stands in the cache only, perhaps.	Having been found
 * and answered for, it survives a power failure.
 */
static void
test_found_is_durable(void)
{
	for (int adopt = 0; adopt < 2; adopt++)
	{
		bool		failed = true;

		for (uint64_t step = 1; failed; step++)
		{
			QcIdentity	identity;
			QcIdentity	later;

			begin();
			if (adopt)
			{
				CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_OK);
				CHECK_U64(io->unlink(io->context, QC_MARKER_NAME), 0);
				CHECK_U64(io->sync_directory(io->context, ""), 0);
			}
			sim_disk_fail(disk, SIM_OP_COUNT, step, EIO);
			failed = open_dir(QC_LAYOUT_FLAT, &identity) != QC_OK ||
				(adopt && qc_dir_adopt(io, NODE + 8, &identity, &err) != QC_OK);
			sim_disk_kill(disk);
			sim_disk_heal(disk);
			open_and_adopt(&identity);
			sim_disk_reboot(disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
			CHECK_U64(open_dir(QC_LAYOUT_FLAT, &later), QC_OK);
			CHECK(!later.created && !later.copied);
			CHECK_U64(later.directory_id, identity.directory_id);
			if (!CHECK_U64(later.node_id, identity.node_id))
				printf("# step %llu, adopt %d\n", (unsigned long long) step, adopt);
			end();
		}
	}
}

static void
test_identity_is_checked(void)
{
	QcIdentity	identity;

	begin();
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_OK);
	CHECK_U64(qc_dir_open(io, SYSTEM + 1, &plain, ID, NODE, &identity, &err), QC_FOREIGN);
	CHECK_STR(err.file, "IDENTITY");
	CHECK_U64(open_dir(QC_LAYOUT_HIERARCHICAL, &identity), QC_CONFLICT);

	replace_file("IDENTITY", "format_version = 2\nanything else\n");
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_VERSION);
	replace_file("IDENTITY", "format_version = 1\ndirectory_id = 5\nsystem_identifier = 7001\n");
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_DAMAGED);
	replace_file("IDENTITY", "format_version = 1\ndirectory_id = 5\nsystem_identifier = 7001\n"
				 "node_id = 9\nnode_id = 9\n");
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_DAMAGED);
	replace_file("IDENTITY", "format_version = 1\ndirectory_id = 5x\nsystem_identifier = 7001\n"
				 "node_id = 9\n");
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_DAMAGED);
	replace_file("IDENTITY", "");
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_DAMAGED);
	end();
}

/* Missing is never new. */
static void
test_missing_is_refused(void)
{
	QcIdentity	identity;
	uint64_t	digest;

	begin();
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_OK);
	CHECK_U64(io->rename(io->context, "IDENTITY", "IDENTITY.old"), 0);
	digest = sim_disk_digest(disk);
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_MISSING);
	CHECK_STR(err.file, "IDENTITY");
	CHECK_U64(sim_disk_digest(disk), digest);
	CHECK_U64(io->rename(io->context, "IDENTITY.old", "IDENTITY"), 0);

	CHECK_U64(io->rename(io->context, "qlog/LANES", "qlog/LANES.old"), 0);
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_MISSING);
	CHECK_STR(err.file, "qlog/LANES");
	CHECK_U64(io->rename(io->context, "qlog/LANES.old", "qlog/LANES"), 0);

	CHECK_U64(io->rename(io->context, "qlog/q0", "qlog/q0.old"), 0);
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_MISSING);
	CHECK_STR(err.file, "qlog/q0");
	end();
}

/* IDENTITY.tmp of a creation excuses a missing IDENTITY only while no record was written. */
static void
test_leftover_does_not_excuse_records(void)
{
	QcIdentity	identity;
	QcHandle	handle;
	QcIoSlice	slice = {"\100\0\0\0", 4};

	begin();
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_OK);
	CHECK_U64(io->rename(io->context, "IDENTITY", "IDENTITY.tmp"), 0);
	CHECK_U64(io->open(io->context, "qlog/q0/r00000001.qlog", QC_OPEN_WRITE, &handle), 0);
	CHECK_U64(io->write(io->context, handle, &slice, 1, QC_FILE_HEADER_SIZE), 0);
	io->close(io->context, handle);
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_MISSING);

	/* nor when there is another log */
	slice.bytes = "\0\0\0\0";
	CHECK_U64(io->open(io->context, "qlog/q0/r00000001.qlog", QC_OPEN_WRITE, &handle), 0);
	CHECK_U64(io->write(io->context, handle, &slice, 1, QC_FILE_HEADER_SIZE), 0);
	io->close(io->context, handle);
	CHECK_U64(io->make_directory(io->context, "qlog/q1"), 0);
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_MISSING);
	CHECK_U64(io->remove_directory(io->context, "qlog/q1"), 0);
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_OK);
	CHECK(identity.created);
	end();
}

static void
test_copy_and_adopt(void)
{
	QcIdentity	identity;

	begin();
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_OK);
	CHECK_U64(io->unlink(io->context, QC_MARKER_NAME), 0);
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_OK);
	CHECK(identity.copied);
	CHECK_U64(qc_dir_adopt(io, 77, &identity, &err), QC_OK);
	CHECK(!identity.copied);
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_OK);
	CHECK(!identity.copied);
	CHECK_U64(identity.node_id, 77);
	CHECK_U64(identity.directory_id, ID);

	/* a marker of somebody else: as good as none */
	replace_file(QC_MARKER_NAME, "format_version = 1\nnode_id = 78\n");
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_OK);
	CHECK(identity.copied);
	end();
}

/* Adoption cut short at every step: a copy or adopted, never half. */
static void
test_adopt_cut_short(void)
{
	QcIdentity	identity;

	for (uint64_t step = 1; step <= 12; step++)
	{
		begin();
		CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_OK);
		CHECK_U64(io->unlink(io->context, QC_MARKER_NAME), 0);
		CHECK_U64(io->sync_directory(io->context, ""), 0);
		CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_OK);
		sim_disk_crash_at(disk, sim_disk_steps(disk) + step, SIM_MIDDLE);
		(void) qc_dir_adopt(io, 77, &identity, &err);
		sim_disk_reboot(disk, SIM_RANDOM, SIM_RANDOM);
		CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_OK);
		CHECK(identity.copied || identity.node_id == 77);
		end();
	}
}

static void
test_list_flat(void)
{
	QcIdentity	identity;
	uint64_t   *ids;
	uint32_t	n;

	begin();
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_OK);
	CHECK_U64(io->make_directory(io->context, "qlog/q12"), 0);
	CHECK_U64(io->make_directory(io->context, "qlog/q3"), 0);
	CHECK_U64(io->make_directory(io->context, "qlog/q03"), 0);
	CHECK_U64(io->make_directory(io->context, "qlog/q5.dead"), 0);
	CHECK_U64(io->make_directory(io->context, "qlog/00"), 0);
	put_file("qlog/q4", "a file is no log");
	CHECK_U64(qc_dir_logs(io, QC_LAYOUT_FLAT, &ids, &n, &err), QC_OK);
	CHECK_U64(n, 3);
	CHECK_U64(ids[0], 0);
	CHECK_U64(ids[1], 3);
	CHECK_U64(ids[2], 12);
	free(ids);

	put_file("qlog/q3/r00000010.qlog", "");
	put_file("qlog/q3/r00000002.qlog", "");
	put_file("qlog/q3/r123456789.qlog", "");
	put_file("qlog/q3/r00000000.qlog", "");
	put_file("qlog/q3/r3.qlog", "");
	put_file("qlog/q3/r00000004.qlog.cut.9", "");
	CHECK_U64(io->make_directory(io->context, "qlog/q3/r00000005.qlog"), 0);
	CHECK_U64(qc_dir_files(io, QC_LAYOUT_FLAT, 3, &ids, &n, &err), QC_OK);
	CHECK_U64(n, 3);
	CHECK_U64(ids[0], 2);
	CHECK_U64(ids[1], 10);
	CHECK_U64(ids[2], 123456789);
	free(ids);
	CHECK_U64(qc_dir_files(io, QC_LAYOUT_FLAT, 99, &ids, &n, &err), QC_MISSING);
	free(ids);
	end();
}

static void
test_list_hierarchical(void)
{
	static const uint64_t logs[] = {0, 1, 123456, 9999999999, 12345678901};
	QcIdentity	identity;
	QcFiles		files;
	uint64_t   *ids;
	uint32_t	n;
	uint32_t	strays;

	begin();
	CHECK_U64(open_dir(QC_LAYOUT_HIERARCHICAL, &identity), QC_OK);
	qc_files_init(&files, io, QC_LAYOUT_HIERARCHICAL);
	for (int i = 1; i < 5; i++)
		CHECK_U64(qc_log_create_files(&files, logs[i], 4096, &err), QC_OK);
	qc_files_close(&files);

	/* not where it belongs */
	CHECK_U64(io->make_directory(io->context, "qlog/q7"), 0);
	CHECK_U64(io->make_directory(io->context, "qlog/00/0000/q10000"), 0);
	CHECK_U64(qc_dir_logs(io, QC_LAYOUT_HIERARCHICAL, &ids, &n, &err), QC_OK);
	CHECK_U64(n, 5);
	for (uint32_t i = 0; i < n && i < 5; i++)
		CHECK_U64(ids[i], logs[i]);
	free(ids);
	CHECK_U64(qc_dir_sweep(io, QC_LAYOUT_HIERARCHICAL, &strays, &err), QC_OK);
	CHECK_U64(strays, 2);
	end();
}

static void
test_sweep(void)
{
	QcIdentity	identity;
	uint32_t	strays;
	uint64_t	digest;

	begin();
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_OK);
	digest = sim_disk_digest(disk);
	CHECK_U64(qc_dir_sweep(io, QC_LAYOUT_FLAT, &strays, &err), QC_OK);
	CHECK_U64(strays, 0);
	CHECK_U64(sim_disk_digest(disk), digest);

	put_file("IDENTITY.tmp", "x");
	put_file("qlog/LANES.tmp", "x");
	put_file("qlog/q0/r00000001.qidx.tmp", "x");
	put_file("replication/stash.tmp", "x");
	CHECK_U64(io->make_directory(io->context, "qlog/q5.dead"), 0);
	CHECK_U64(io->make_directory(io->context, "qlog/q5.dead/sub"), 0);
	put_file("qlog/q5.dead/r00000001.qlog", "x");
	put_file("qlog/q5.dead/sub/y", "x");
	CHECK_U64(qc_dir_sweep(io, QC_LAYOUT_FLAT, &strays, &err), QC_OK);
	CHECK_U64(strays, 0);
	CHECK_U64(sim_disk_digest(disk), digest);

	/* strays stay, what was cut stays and is none */
	put_file("notes.txt", "x");
	put_file("qlog/q0/r1.qlog", "x");
	put_file("qlog/q0/r00000001.qlog.cut.17", "x");
	CHECK_U64(io->make_directory(io->context, "qlog/q9.cut.17"), 0);
	CHECK_U64(io->make_directory(io->context, "store.damaged.17"), 0);
	CHECK_U64(io->make_directory(io->context, "store.copied.17"), 0);
	CHECK_U64(io->make_directory(io->context, "qlog/lost+found"), 0);
	CHECK_U64(io->make_directory(io->context, "qlog/q0/ignored"), 0);
	digest = sim_disk_digest(disk);
	CHECK_U64(qc_dir_sweep(io, QC_LAYOUT_FLAT, &strays, &err), QC_OK);
	CHECK_U64(strays, 3);
	CHECK_U64(sim_disk_digest(disk), digest);
	end();
}

/* The floor is not there at first, then what was written last; old or new after any crash; a damaged one is no 0. */
static void
test_floor(void)
{
	QcIdentity	identity;
	uint64_t	seq = 77;
	uint32_t	strays;

	begin();
	CHECK_U64(open_dir(QC_LAYOUT_FLAT, &identity), QC_OK);
	CHECK_U64(qc_dir_read_floor(io, &seq, &err), QC_OK);
	CHECK_U64(seq, 0);
	CHECK_U64(qc_dir_write_floor(io, 12, &err), QC_OK);
	for (uint64_t step = 1; step <= 6; step++)
	{
		sim_disk_crash_at(disk, sim_disk_steps(disk) + step, SIM_MIDDLE);
		(void) qc_dir_write_floor(io, UINT64_MAX, &err);
		sim_disk_reboot(disk, SIM_RANDOM, SIM_RANDOM);
		CHECK_U64(qc_dir_read_floor(io, &seq, &err), QC_OK);
		CHECK(seq == 12 || seq == UINT64_MAX);
		CHECK_U64(qc_dir_write_floor(io, 12, &err), QC_OK);
	}
	CHECK_U64(qc_dir_sweep(io, QC_LAYOUT_FLAT, &strays, &err), QC_OK);
	CHECK_U64(strays, 0);
	replace_file("FLOOR", "");
	CHECK_U64(qc_dir_read_floor(io, &seq, &err), QC_DAMAGED);
	replace_file("FLOOR", "format_version = 1\nseq = x\n");
	CHECK_U64(qc_dir_read_floor(io, &seq, &err), QC_DAMAGED);
	end();
}

static void
test_small_files(void)
{
	char		buf[16];
	size_t		len;

	begin();
	CHECK_U64(qc_dir_read_file(io, "x", buf, sizeof(buf), &len, &err), QC_MISSING);
	CHECK_U64(qc_dir_write_file(io, "x", "hello", 5, &err), QC_OK);
	CHECK_U64(qc_dir_read_file(io, "x", buf, sizeof(buf), &len, &err), QC_OK);
	CHECK_BYTES(buf, len, "hello", 5);
	CHECK_U64(qc_dir_read_file(io, "x", buf, 4, &len, &err), QC_LIMIT);

	/* old or new after any crash */
	for (uint64_t step = 1; step <= 6; step++)
	{
		sim_disk_crash_at(disk, sim_disk_steps(disk) + step, SIM_MIDDLE);
		(void) qc_dir_write_file(io, "x", "other", 5, &err);
		sim_disk_reboot(disk, SIM_RANDOM, SIM_RANDOM);
		CHECK_U64(qc_dir_read_file(io, "x", buf, sizeof(buf), &len, &err), QC_OK);
		CHECK(len == 5 && (memcmp(buf, "hello", 5) == 0 || memcmp(buf, "other", 5) == 0));
		CHECK_U64(qc_dir_write_file(io, "x", "hello", 5, &err), QC_OK);
	}
	end();
}

int
main(void)
{
	UNIT_RUN(test_create_and_open);
	UNIT_RUN(test_created_survives);
	UNIT_RUN(test_layout_is_fixed);
	UNIT_RUN(test_create_cut_short);
	UNIT_RUN(test_found_is_durable);
	UNIT_RUN(test_identity_is_checked);
	UNIT_RUN(test_missing_is_refused);
	UNIT_RUN(test_leftover_does_not_excuse_records);
	UNIT_RUN(test_copy_and_adopt);
	UNIT_RUN(test_adopt_cut_short);
	UNIT_RUN(test_list_flat);
	UNIT_RUN(test_list_hierarchical);
	UNIT_RUN(test_sweep);
	UNIT_RUN(test_floor);
	UNIT_RUN(test_small_files);
	return unit_end();
}
