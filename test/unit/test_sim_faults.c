/*
 * test_sim_faults.c
 *		The simulated disk: errors, failed syncs, killed processes, handles, damage.
 */
#include "disk_use.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

static void
test_no_space(void)
{
	SimDisk    *disk = disk_with_file(1, 1000, 'a');
	char		bytes[500];

	memset(bytes, 'b', sizeof(bytes));
	sim_disk_set_capacity(disk, 1200);
	CHECK_U64(write_at(disk, "f", 600, bytes, 500, true), 0);	/* to 1100 */
	CHECK_U64(write_at(disk, "f", 1000, bytes, 500, true), ENOSPC);
	CHECK_U64(sim_disk_used(disk), 1200);
	CHECK_U64(write_at(disk, "f", 0, bytes, 500, true), 0); /* nothing more is needed */
	CHECK_U64(truncate_file(disk, "f", 1201), ENOSPC);
	CHECK_U64(write_at(disk, "g", 0, bytes, 1, true), ENOSPC);
	CHECK_U64(truncate_file(disk, "f", 1199), 0);
	CHECK_U64(write_at(disk, "g", 0, bytes, 1, true), 0);
	CHECK_U64(sim_disk_io(disk)->unlink(disk, "f"), 0);
	CHECK_U64(sim_disk_used(disk), 1);
	CHECK_U64(write_at(disk, "g", 0, bytes, 500, true), 0);
	sim_disk_free(disk);
}

static void
test_errors_come_when_planned(void)
{
	SimDisk    *disk = disk_with_file(1, 1000, 'a');
	char		byte;

	sim_disk_fail(disk, SIM_OP_WRITE, 2, EIO);
	sim_disk_fail(disk, SIM_OP_READ, 1, EIO);
	CHECK_U64(write_at(disk, "f", 0, "x", 1, true), 0);
	CHECK_U64(write_at(disk, "f", 0, "y", 1, true), EIO);
	CHECK_U64(write_at(disk, "f", 0, "z", 1, true), 0);
	CHECK_U64(sim_disk_io(disk)->list(disk, "", NULL, NULL), EIO);
	CHECK_U64(read_file(disk, "f", &byte, 1), 1000);
	CHECK_U64(byte, 'z');
	sim_disk_fail(disk, SIM_OP_RENAME, 1, EIO);
	CHECK_U64(sim_disk_io(disk)->rename(disk, "f", "g"), EIO);
	CHECK(exists(disk, "f") && !exists(disk, "g"));
	sim_disk_free(disk);
}

/* As on Linux: reads back, later syncs succeed, and it is gone all the same. */
static void
test_failed_sync_drops_the_data(void)
{
	SimDisk    *disk = disk_with_file(1, 1000, 'a');
	SimDisk    *other;
	char		buf[1000];

	CHECK_U64(write_at(disk, "f", 0, "new", 3, false), 0);
	sim_disk_fail(disk, SIM_OP_SYNC, 1, EIO);
	CHECK_U64(sync_file(disk, "f"), EIO);
	CHECK_U64(sync_file(disk, "f"), 0);
	sim_disk_kill(disk);
	CHECK_U64(read_file(disk, "f", buf, sizeof(buf)), 1000);
	CHECK_BYTES(buf, 3, "new", 3);
	CHECK_U64(write_at(disk, "f", 600, "later", 5, true), 0);

	other = sim_disk_copy(disk);
	sim_disk_reboot(disk, SIM_KEEP_ALL, SIM_KEEP_ALL);
	CHECK_U64(read_file(disk, "f", buf, sizeof(buf)), 1000);
	CHECK_BYTES(buf, 3, "aaa", 3);
	CHECK_BYTES(buf + 600, 5, "later", 5);
	sim_disk_evict(other);
	CHECK_U64(sim_disk_digest(other), sim_disk_digest(disk));
	sim_disk_free(other);
	sim_disk_free(disk);
}

static void
test_kill_keeps_the_cache(void)
{
	SimDisk    *disk = disk_with_file(1, 1000, 'a');
	const QcIo *io = sim_disk_io(disk);
	QcHandle	handle;
	QcHandle	second;
	QcIoSlice	slice = {"new", 3};
	char		buf[1000];
	size_t		done;

	CHECK_U64(io->open(disk, "f", QC_OPEN_WRITE, &handle), 0);
	CHECK_U64(io->write(disk, handle, &slice, 1, 0), 0);
	sim_disk_kill(disk);
	CHECK_U64(io->read(disk, handle, buf, 3, 0, &done), EBADF);
	CHECK_U64(io->open(disk, "f", 0, &second), 0);
	CHECK(second != handle);	/* a stale handle never means another file */
	CHECK_U64(io->read(disk, handle, buf, 3, 0, &done), EBADF);
	io->close(disk, second);
	CHECK_U64(read_file(disk, "f", buf, sizeof(buf)), 1000);
	CHECK_BYTES(buf, 3, "new", 3);
	sim_disk_reboot(disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
	CHECK_U64(read_file(disk, "f", buf, sizeof(buf)), 1000);
	CHECK_BYTES(buf, 3, "aaa", 3);
	sim_disk_free(disk);
}

static void
test_handles_are_limited(void)
{
	SimDisk    *disk = disk_with_file(1, 1, 'a');
	const QcIo *io = sim_disk_io(disk);
	QcHandle	handle;

	for (int i = 0; i < SIM_HANDLES_MAX; i++)
		CHECK_U64(io->open(disk, "f", 0, &handle), 0);
	CHECK_U64(io->open(disk, "f", 0, &handle), EMFILE);
	CHECK_U64(io->open(disk, "g", QC_OPEN_WRITE | QC_OPEN_CREATE, &handle), EMFILE);
	sim_disk_kill(disk);
	CHECK_U64(sim_disk_handles(disk), 0);
	CHECK(!exists(disk, "g"));
	sim_disk_free(disk);
}

static void
test_flip(void)
{
	SimDisk    *disk = disk_with_file(1, 1000, 'a');
	char		buf[1000];

	CHECK_U64(sim_disk_flip(disk, "f", 999, 1), 0);
	CHECK_U64(sim_disk_flip(disk, "f", 1000, 1), ERANGE);
	CHECK_U64(sim_disk_flip(disk, "g", 0, 1), ENOENT);
	CHECK_U64(read_file(disk, "f", buf, sizeof(buf)), 1000);
	CHECK_U64(buf[999], 'a' ^ 1);
	CHECK_U64(buf[998], 'a');
	sim_disk_reboot(disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
	CHECK_U64(read_file(disk, "f", buf, sizeof(buf)), 1000);
	CHECK_U64(buf[999], 'a' ^ 1);
	sim_disk_free(disk);
}

int
main(void)
{
	UNIT_RUN(test_no_space);
	UNIT_RUN(test_errors_come_when_planned);
	UNIT_RUN(test_failed_sync_drops_the_data);
	UNIT_RUN(test_kill_keeps_the_cache);
	UNIT_RUN(test_handles_are_limited);
	UNIT_RUN(test_flip);
	return unit_end();
}
