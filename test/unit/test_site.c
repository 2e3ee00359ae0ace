/*
 * test_site.c
 *		Mounts (paths that go to another table, nothing renamed across) and sites: journal and checkpoint in directories of
 *		their own, whose they are, and a creation that is cut short at every step.
 *
 * The data directory and the two sites are sub-directories of one simulated disk, each behind a table of its own that counts
 * what is asked of it.
 */
#include "../sim/sim_disk.h"
#include "qc_dir.h"
#include "qc_log.h"
#include "qc_mount.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYSTEM	7001
#define ID		55
#define NODE	9

static SimDisk *disk;
static QcError err;

/* ---- a table below a directory of the disk ---- */

typedef struct Below
{
	QcIo		io;
	const char *root;
	uint32_t	paths;			/* calls with a path */
	uint32_t	renames;
} Below;

static Below data;
static Below journal;
static Below checkpoint;
static QcMounts mounts;
static const QcIo *io;

static const QcIo *
below(void *context, const char *path, char out[512])
{
	Below	   *self = context;

	self->paths++;
	(void) snprintf(out, 512, path[0] == '\0' ? "%s" : "%s/%s", self->root, path);
	return sim_disk_io(disk);
}

static int
below_open(void *context, const char *path, int flags, QcHandle *handle)
{
	char		full[512];
	const QcIo *to = below(context, path, full);

	return to->open(to->context, full, flags, handle);
}

static int
below_make_directory(void *context, const char *path)
{
	char		full[512];
	const QcIo *to = below(context, path, full);

	return to->make_directory(to->context, full);
}

static int
below_sync_directory(void *context, const char *path)
{
	char		full[512];
	const QcIo *to = below(context, path, full);

	return to->sync_directory(to->context, full);
}

static int
below_list(void *context, const char *path, QcNameVisitor visit, void *visit_context)
{
	char		full[512];
	const QcIo *to = below(context, path, full);

	return to->list(to->context, full, visit, visit_context);
}

static int
below_rename(void *context, const char *from, const char *to_path)
{
	Below	   *self = context;
	char		full_from[512];
	char		full_to[512];
	const QcIo *to = below(context, from, full_from);

	(void) below(context, to_path, full_to);
	self->renames++;
	return to->rename(to->context, full_from, full_to);
}

static int
below_unlink(void *context, const char *path)
{
	char		full[512];
	const QcIo *to = below(context, path, full);

	return to->unlink(to->context, full);
}

static int
below_remove_directory(void *context, const char *path)
{
	char		full[512];
	const QcIo *to = below(context, path, full);

	return to->remove_directory(to->context, full);
}

/* Handles are the disk's, whatever the table. */
static void
below_close(void *context, QcHandle handle)
{
	(void) context;
	sim_disk_io(disk)->close(sim_disk_io(disk)->context, handle);
}

static int
below_read(void *context, QcHandle handle, void *buf, size_t len, uint64_t position, size_t *done)
{
	(void) context;
	return sim_disk_io(disk)->read(sim_disk_io(disk)->context, handle, buf, len, position, done);
}

static int
below_write(void *context, QcHandle handle, const QcIoSlice *slices, int nslices, uint64_t position)
{
	(void) context;
	return sim_disk_io(disk)->write(sim_disk_io(disk)->context, handle, slices, nslices, position);
}

static int
below_sync(void *context, QcHandle handle)
{
	(void) context;
	return sim_disk_io(disk)->sync(sim_disk_io(disk)->context, handle);
}

static int
below_size(void *context, QcHandle handle, uint64_t *size)
{
	(void) context;
	return sim_disk_io(disk)->size(sim_disk_io(disk)->context, handle, size);
}

static int
below_truncate(void *context, QcHandle handle, uint64_t size)
{
	(void) context;
	return sim_disk_io(disk)->truncate(sim_disk_io(disk)->context, handle, size);
}

static void
below_init(Below *self, const char *root)
{
	memset(self, 0, sizeof(*self));
	self->root = root;
	self->io = (QcIo)
	{
		.context = self, .open = below_open, .close = below_close, .read = below_read, .write = below_write,
		.sync = below_sync, .size = below_size, .truncate = below_truncate,
		.make_directory = below_make_directory, .sync_directory = below_sync_directory, .list = below_list,
		.rename = below_rename, .unlink = below_unlink, .remove_directory = below_remove_directory
	};
}

/* ---- the directory and its sites ---- */

/* Put the sites at these directories of the disk. */
static void
mount(QcLayout layout, const char *journal_root, const char *checkpoint_root)
{
	char		prefix[QC_PATH_MAX];

	below_init(&data, "data");
	qc_mounts_init(&mounts, &data.io);
	if (journal_root != NULL)
	{
		below_init(&journal, journal_root);
		qc_site_prefix(layout, QC_SITE_JOURNAL, prefix);
		qc_mounts_add(&mounts, prefix, &journal.io);
	}
	if (checkpoint_root != NULL)
	{
		below_init(&checkpoint, checkpoint_root);
		qc_site_prefix(layout, QC_SITE_CHECKPOINT, prefix);
		qc_mounts_add(&mounts, prefix, &checkpoint.io);
	}
	io = &mounts.io;
}

/* Open with the sites at these directories, NULL = in the data directory. */
static QcStatus
open_with(QcLayout layout, const char *journal_root, const char *checkpoint_root, QcIdentity *identity)
{
	QcDirChoice choice = {.layout = layout};

	mount(layout, journal_root, checkpoint_root);
	if (journal_root != NULL)
		(void) snprintf(choice.sites.path[QC_SITE_JOURNAL], QC_SITE_PATH, "/%s", journal_root);
	if (checkpoint_root != NULL)
		(void) snprintf(choice.sites.path[QC_SITE_CHECKPOINT], QC_SITE_PATH, "/%s", checkpoint_root);
	return qc_dir_open(io, SYSTEM, &choice, ID, NODE, identity, &err);
}

static void
make(const char *directory)
{
	const QcIo *root = sim_disk_io(disk);

	if (root->make_directory(root->context, directory) != 0)
		abort();
}

static void
begin(void)
{
	const QcIo *root;

	disk = sim_disk_new(3);
	root = sim_disk_io(disk);
	make("data");
	make("j");
	make("c");
	if (root->sync_directory(root->context, "") != 0)
		abort();
	qc_error_clear(&err);
}

static void
end(void)
{
	CHECK_U64(sim_disk_handles(disk), 0);
	sim_disk_free(disk);
}

/* Is there such a file or directory on the disk? */
static bool
stands(const char *path)
{
	const QcIo *root = sim_disk_io(disk);
	QcHandle	handle;
	int			rc = root->open(root->context, path, 0, &handle);

	if (rc == 0)
		root->close(root->context, handle);
	return rc == 0 || rc == EISDIR;
}

static void
move(const char *from, const char *to)
{
	const QcIo *root = sim_disk_io(disk);

	if (root->rename(root->context, from, to) != 0 || root->sync_directory(root->context, "") != 0)
		abort();
}

/* ---- mounts ---- */

static bool
note(void *context, const char *name, bool is_directory)
{
	char	   *names = context;

	(void) is_directory;
	(void) strcat(strcat(names, name), " ");
	return true;
}

static void
test_mounts(void)
{
	char		names[256] = "";
	QcHandle	handle;

	begin();
	mount(QC_LAYOUT_FLAT, "j", "c");
	CHECK_U64(io->make_directory(io->context, "qlog"), 0);
	CHECK_U64(io->make_directory(io->context, "qlog/q0"), 0);
	CHECK_U64(io->make_directory(io->context, "qlog/q01"), 0);
	CHECK_U64(io->make_directory(io->context, "qlog/q1"), 0);
	CHECK_U64(io->make_directory(io->context, "store"), 0);
	CHECK(stands("j/q0") && stands("c/store") && stands("data/qlog/q01") && !stands("data/qlog/q0"));
	CHECK_U64(io->open(io->context, "qlog/q0/r", QC_OPEN_WRITE | QC_OPEN_CREATE, &handle), 0);
	io->close(io->context, handle);
	CHECK(stands("j/q0/r"));

	/* a site's other names are not the directory's, covered names of the base are not seen */
	make("j/lost+found");
	make("data/qlog/q0");
	CHECK_U64(io->list(io->context, "qlog", note, names), 0);
	CHECK_U64(strlen(names), strlen("q01 q1 q0 "));
	CHECK(strstr(names, "q0 ") != NULL && strstr(names, "q1 ") != NULL && strstr(names, "q01 ") != NULL);
	names[0] = '\0';
	CHECK_U64(io->list(io->context, "", note, names), 0);
	CHECK_STR(names, "qlog store ");

	/* within a mount, and across its border */
	CHECK_U64(io->rename(io->context, "qlog/q0", "qlog/q0.dead"), 0);
	CHECK(stands("j/q0.dead"));
	CHECK_U64(io->rename(io->context, "qlog/q0.dead", "qlog/q0"), 0);
	CHECK_U64(io->rename(io->context, "store", "store.damaged.7"), 0);
	CHECK(stands("c/store.damaged.7"));
	CHECK_U64(io->rename(io->context, "qlog/q1", "qlog/q0.x"), EXDEV);
	CHECK_U64(io->rename(io->context, "store.damaged.7", "snapshots"), EXDEV);

	/* what stands in the directory above is durable when that is synced */
	CHECK_U64(io->sync_directory(io->context, ""), 0);
	CHECK_U64(io->sync_directory(io->context, "qlog"), 0);
	CHECK_U64(io->sync_directory(io->context, "qlog/q0"), 0);
	sim_disk_reboot(disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
	CHECK(stands("c/store.damaged.7") && stands("j/q0/r"));
	CHECK_U64(io->unlink(io->context, "qlog/q0/r"), 0);
	CHECK_U64(io->remove_directory(io->context, "qlog/q0"), 0);
	CHECK(!stands("j/q0"));
	end();
}

/* ---- sites ---- */

static void
test_create_and_open(void)
{
	for (int layout = 0; layout < 2; layout++)
	{
		QcIdentity	identity;
		uint64_t	digest;
		uint64_t   *logs;
		uint32_t	n;
		uint32_t	strays;

		begin();
		CHECK_U64(open_with((QcLayout) layout, "j", "c", &identity), QC_OK);
		CHECK(identity.created);
		CHECK(stands("j/q0/r00000001.qlog") && stands("j/q0.IDENTITY"));
		CHECK(stands("c/store") && stands("c/store.IDENTITY"));
		CHECK(!stands("data/qlog/q0") && !stands("data/store") && stands("data/SITES"));
		sim_disk_reboot(disk, SIM_LOSE_ALL, SIM_LOSE_ALL);
		digest = sim_disk_digest(disk);
		CHECK_U64(open_with((QcLayout) layout, "j", "c", &identity), QC_OK);
		CHECK(!identity.created && !identity.copied);
		CHECK_U64(qc_dir_logs(io, (QcLayout) layout, &logs, &n, &err), QC_OK);
		CHECK_U64(n, 1);
		free(logs);
		CHECK_U64(qc_dir_sweep(io, (QcLayout) layout, &strays, &err), QC_OK);
		CHECK_U64(strays, 0);
		CHECK_U64(sim_disk_digest(disk), digest);
		end();
	}
}

/* Every rename of a creation stays within the data directory or within one site. */
static void
test_nothing_is_renamed_across(void)
{
	QcIdentity	identity;

	begin();
	CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", "c", &identity), QC_OK);
	CHECK(data.paths > 0 && journal.paths > 0 && checkpoint.paths > 0);
	CHECK_U64(data.renames, 4); /* LANES, SITES, marker, IDENTITY */
	CHECK_U64(journal.renames, 1);
	CHECK_U64(checkpoint.renames, 1);
	end();
}

/* Another choice than the one recorded is refused, naming the path, and changes nothing. */
static void
test_choice_is_fixed(void)
{
	QcIdentity	identity;
	uint64_t	digest;

	begin();
	CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", NULL, &identity), QC_OK);
	digest = sim_disk_digest(disk);
	CHECK_U64(open_with(QC_LAYOUT_FLAT, NULL, NULL, &identity), QC_CONFLICT);
	CHECK_STR(err.file, "/j");
	CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", "c", &identity), QC_CONFLICT);
	CHECK_STR(err.file, "/c");
	CHECK_U64(sim_disk_digest(disk), digest);
	CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", NULL, &identity), QC_OK);
	end();
}

/* Swapped, emptied, of another directory, of another copy: refused, naming the path. */
static void
test_wrong_site(void)
{
	QcIdentity	identity;
	QcIdentity	other;
	uint64_t	digest;

	begin();
	CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", "c", &identity), QC_OK);
	make("empty");
	digest = sim_disk_digest(disk);
	CHECK_U64(open_with(QC_LAYOUT_FLAT, "c", "j", &other), QC_MISSING);
	CHECK_STR(err.file, "/c");
	CHECK_U64(open_with(QC_LAYOUT_FLAT, "empty", "c", &other), QC_MISSING);
	CHECK_STR(err.file, "/empty");
	CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", "empty", &other), QC_MISSING);
	CHECK_STR(err.file, "/empty");
	CHECK_U64(sim_disk_digest(disk), digest);

	/* the file alone makes no journal */
	move("j/q0", "j/away");
	CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", "c", &other), QC_MISSING);
	CHECK_STR(err.file, "qlog/q0");
	move("j/away", "j/q0");

	/* a second data directory: its sites are its own, and used ones are not taken for new */
	move("data", "first");
	make("data");
	CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", NULL, &other), QC_FOREIGN);
	CHECK_STR(err.file, "/j");
	CHECK_U64(open_with(QC_LAYOUT_FLAT, NULL, "c", &other), QC_FOREIGN);
	CHECK_STR(err.file, "/c");
	make("j2");
	mount(QC_LAYOUT_FLAT, "j2", NULL);
	{
		QcDirChoice choice = {.layout = QC_LAYOUT_FLAT,.sites.path = {"/j2"}};

		CHECK_U64(qc_dir_open(io, SYSTEM, &choice, ID + 1, NODE, &other, &err), QC_OK);
	}
	move("data", "second");
	move("first", "data");
	CHECK_U64(open_with(QC_LAYOUT_FLAT, "j2", "c", &other), QC_FOREIGN);
	CHECK_STR(err.file, "/j2");
	CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", "c", &other), QC_OK);
	end();
}

/* A site that was moved, with its file, is found under its new path, and SITES says so from then on. */
static void
test_moved_site(void)
{
	QcIdentity	identity;
	QcSitePaths paths;

	begin();
	CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", "c", &identity), QC_OK);
	move("j", "moved");
	CHECK_U64(open_with(QC_LAYOUT_FLAT, "moved", "c", &identity), QC_OK);
	CHECK_U64(qc_sites_read(io, &paths, &err), QC_OK);
	CHECK_STR(paths.path[QC_SITE_JOURNAL], "/moved");
	CHECK_STR(paths.path[QC_SITE_CHECKPOINT], "/c");
	end();
}

/* A copy adopts its sites with itself; those of the original are not its any more, nor the other way round. */
static void
test_adopt(void)
{
	QcIdentity	identity;

	for (uint64_t step = 0; step < 20; step++)
	{
		begin();
		CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", "c", &identity), QC_OK);
		CHECK_U64(io->unlink(io->context, QC_MARKER_NAME), 0);
		CHECK_U64(io->sync_directory(io->context, ""), 0);
		CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", "c", &identity), QC_OK);
		CHECK(identity.copied);
		if (step > 0)
			sim_disk_crash_at(disk, sim_disk_steps(disk) + step, SIM_MIDDLE);
		(void) qc_dir_adopt(io, 77, &identity, &err);
		sim_disk_reboot(disk, SIM_RANDOM, SIM_RANDOM);
		CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", "c", &identity), QC_OK);
		CHECK(identity.copied || identity.node_id == 77);
		if (identity.copied)
			CHECK_U64(qc_dir_adopt(io, 77, &identity, &err), QC_OK);
		CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", "c", &identity), QC_OK);
		CHECK(!identity.copied);
		end();
	}

	/* the original's identity is gone from the sites */
	begin();
	CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", "c", &identity), QC_OK);
	identity.copied = true;
	CHECK_U64(qc_sites_adopt(io, QC_LAYOUT_FLAT, ID, 78, &err), QC_OK);
	CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", "c", &identity), QC_FOREIGN);
	CHECK_STR(err.file, "/j");
	end();
}

/* Cut short at every step: opening again gives a complete directory with its sites. */
static void
test_create_cut_short(void)
{
	static const SimPoint points[] = {SIM_BEFORE, SIM_MIDDLE, SIM_AFTER};
	static const SimLoss losses[] = {SIM_KEEP_ALL, SIM_LOSE_ALL, SIM_RANDOM};
	QcIdentity	identity;
	uint64_t	first;
	uint64_t	steps;

	begin();
	first = sim_disk_steps(disk);
	CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", "c", &identity), QC_OK);
	steps = sim_disk_steps(disk);
	end();
	for (uint64_t step = first + 1; step <= steps; step++)
	{
		for (int i = 0; i < 9; i++)
		{
			begin();
			sim_disk_reseed(disk, step * 16 + (uint64_t) i);
			sim_disk_crash_at(disk, step, points[i % 3]);
			CHECK(open_with(QC_LAYOUT_FLAT, "j", "c", &identity) != QC_OK);
			sim_disk_reboot(disk, losses[i / 3], losses[i / 3]);
			sim_disk_crash_at(disk, sim_disk_steps(disk) + 1 + step % 7, points[i / 3]);
			(void) open_with(QC_LAYOUT_FLAT, "j", "c", &identity);
			sim_disk_reboot(disk, losses[i % 3], losses[i % 3]);
			if (!CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", "c", &identity), QC_OK))
			{
				char		text[700];

				qc_error_format(&err, text, sizeof(text));
				printf("# step %llu, %d: %s\n", (unsigned long long) step, i, text);
				sim_disk_tree(disk, stdout);
			}
			CHECK_U64(open_with(QC_LAYOUT_FLAT, "j", "c", &identity), QC_OK);
			CHECK(!identity.created && !identity.copied);
			CHECK(stands("j/q0/r00000001.qlog") && stands("c/store"));
			end();
		}
	}
}

int
main(void)
{
	UNIT_RUN(test_mounts);
	UNIT_RUN(test_create_and_open);
	UNIT_RUN(test_nothing_is_renamed_across);
	UNIT_RUN(test_choice_is_fixed);
	UNIT_RUN(test_wrong_site);
	UNIT_RUN(test_moved_site);
	UNIT_RUN(test_adopt);
	UNIT_RUN(test_create_cut_short);
	return unit_end();
}
