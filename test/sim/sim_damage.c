/*
 * sim_damage.c
 *		Directories that a crash does not leave: bytes flipped, files and directories gone, the checkpoint lost, a copy
 *		taken while the server ran.
 *
 * Everything told before the damage is known to be durable by a later record in another log, so nothing of it may go
 * silently: either the directory is refused as it is, or the damaged log's queue is out of service and all others are
 * whole.
 */
#include "sim_run.h"

#include "sim_random.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WITNESS		(SIM_NAMES_MAX - 1) /* the queue that is never damaged */
#define RESUMES		6000
#define FILES_MAX	512

/* A log file of a queue. */
typedef struct LogFile
{
	uint64_t	log;
	char		path[QC_PATH_MAX];
	uint64_t	used;			/* where its last byte that is not zero ends */
} LogFile;

typedef struct LogFiles
{
	uint32_t	n;
	LogFile		files[FILES_MAX];
} LogFiles;

/* ---- looking at the disk ---- */

static uint8_t *
read_file(SimWorld *w, const char *path, uint64_t *size)
{
	const QcIo *io = sim_disk_io(w->disk);
	QcHandle	handle;
	uint8_t    *bytes;
	size_t		done;

	*size = 0;
	if (io->open(io->context, path, 0, &handle) != 0 || io->size(io->context, handle, size) != 0)
		abort();
	bytes = sim_alloc((size_t) *size + 1);
	if (io->read(io->context, handle, bytes, (size_t) *size, 0, &done) != 0 || done != *size)
		abort();
	io->close(io->context, handle);
	return bytes;
}

/* All log files. */
static void
list_files(SimWorld *w, LogFiles *list)
{
	const QcIo *io = sim_disk_io(w->disk);
	uint64_t   *logs;
	uint32_t	nlogs;

	list->n = 0;
	if (qc_dir_logs(io, QC_LAYOUT_FLAT, &logs, &nlogs, NULL) != QC_OK)
		abort();
	for (uint32_t i = 0; i < nlogs; i++)
	{
		uint64_t   *ids;
		uint32_t	n;

		if (qc_dir_files(io, QC_LAYOUT_FLAT, logs[i], &ids, &n, NULL) != QC_OK)
			abort();
		for (uint32_t k = 0; k < n && list->n < FILES_MAX; k++)
		{
			LogFile    *file = &list->files[list->n++];
			uint8_t    *bytes;

			file->log = logs[i];
			qc_path_file(file->path, QC_LAYOUT_FLAT, logs[i], ids[k], "qlog");
			bytes = read_file(w, file->path, &file->used);
			while (file->used > QC_FILE_HEADER_SIZE && bytes[file->used - 1] == 0)
				file->used--;
			free(bytes);
		}
		free(ids);
	}
	free(logs);
}

/* ---- before the damage ---- */

/* Two commits into the witness's log: the second one knows that the first, and all before it, were durable. */
static void
seal(SimServer *server, uint32_t witness)
{
	SimClient	client = {.p = &server->procs[SIM_BOOT_PROC]};

	server->world->config.large = 0;
	for (int i = 0; i < 2; i++)
	{
		sim_arena_reset(&client.p->arena);
		if (!sim_push(&client, witness))
			sim_broken(client.p, "the witness's push");
	}
	sim_confirm_release(client.p);
}

/* Work, stop, list what is there, seal, stop; then nothing is left for recovery to do. */
static bool
prepare(SimWorld *w, uint32_t witness, LogFiles *list)
{
	SimServer  *server = sim_boot(w, 0);
	bool		good = server != NULL;

	if (good)
	{
		sim_start(server);
		(void) sim_server_run(server, 1 + sim_below(w, RESUMES), NULL, NULL);
		good = sim_stop(server);
		sim_end(server, SIM_CRASH_KEEP);
	}
	for (int i = 0; i < 2 && good; i++)
	{
		server = sim_boot(w, 0);
		good = server != NULL;
		if (!good)
			break;
		if (i == 0)
		{
			list_files(w, list);
			seal(server, witness);
		}
		good = sim_stop(server);
		sim_end(server, SIM_CRASH_KEEP);
	}
	return good && !sim_world_failed(w);
}

static uint64_t
log_of(const SimWorld *w, uint64_t queue)
{
	return qc_log_of_queue(w->config.shards, queue);
}

/* The log of the witness. */
static uint64_t
witness_log(const SimWorld *w, uint32_t witness)
{
	const SimOracle *o = w->oracle;

	for (uint32_t i = o->nqueues; i > 0; i--)
	{
		if (o->queues[i - 1].name == witness && !o->queues[i - 1].gone)
			return log_of(w, o->queues[i - 1].id);
	}
	return 0;
}

/* Does a queue live in this log, or will one? */
static bool
is_needed(const SimWorld *w, uint64_t log)
{
	bool		needed = qc_log_stays(w->config.shards, log);

	for (uint32_t i = 0; i < w->oracle->nqueues; i++)
		needed |= log_of(w, w->oracle->queues[i].id) == log && !w->oracle->queues[i].gone;
	return needed;
}

/* ---- after the damage ---- */

/* Only queues of the damaged log are out of service. */
static bool
only_damaged(SimWorld *w, uint64_t log)
{
	for (uint32_t i = 0; i < w->oracle->nqueues; i++)
	{
		const SimQueue *queue = &w->oracle->queues[i];

		if (!queue->gone && queue->damaged && log_of(w, queue->id) != log)
			return sim_world_fail(w, "queue %u is out of service, whose log is whole", queue->name);
	}
	return true;
}

/* Start on the damaged directory: refused and unchanged, or all that is not damaged is whole. */
static bool
judge(SimWorld *w, uint64_t log, bool must_refuse)
{
	uint64_t	digest = sim_disk_digest(w->disk);
	SimServer  *server;
	QcStatus	status;
	QcError		err;

	w->allow_damage = true;
	server = sim_server_boot(w, &status, &err);
	if (server != NULL)
	{
		bool		good = !must_refuse && sim_look(server) && only_damaged(w, log);

		sim_server_free(server);
		if (must_refuse)
			(void) sim_world_fail(w, "the damaged directory is opened");
		return good;
	}
	if (sim_world_failed(w))
		return false;
	if (status != QC_DAMAGED && status != QC_MISSING)
		return sim_world_fail(w, "refused with %s: %s", qc_status_name(status), err.text);
	if (err.file[0] == '\0' || err.text[0] == '\0')
		return sim_world_fail(w, "refused without saying where");
	if (sim_disk_digest(w->disk) != digest)
		return sim_world_fail(w, "refused, but the directory has been changed");
	return true;
}

/* ---- kinds of damage ---- */

/* One of the files with records of log `log`, or of the queues' logs but `log`; NULL = there is none. */
static LogFile *
choose_file(SimWorld *w, LogFiles *list, uint64_t log, bool other)
{
	uint32_t	n = 0;

	for (uint32_t i = 0; i < list->n; i++)
	{
		const LogFile *file = &list->files[i];

		if (file->used > QC_FILE_HEADER_SIZE &&
			(other ? file->log != log && file->log != 0 : file->log == log))
			list->files[n++] = *file;
	}
	list->n = n;
	return n == 0 ? NULL : &list->files[sim_below(w, n)];
}

static bool
flip_byte(SimWorld *w, const LogFile *file)
{
	if (sim_disk_flip(w->disk, file->path, sim_below(w, file->used),
					  (uint8_t) (1u << sim_below(w, 8))) != 0)
		abort();
	return judge(w, file->log, false);
}

/* Remove a file, durably. */
static void
remove_file(SimWorld *w, const char *path)
{
	const QcIo *io = sim_disk_io(w->disk);
	char		directory[QC_PATH_MAX];

	(void) snprintf(directory, sizeof(directory), "%s", path);
	*strrchr(directory, '/') = '\0';
	if (io->unlink(io->context, path) != 0 || io->sync_directory(io->context, directory) != 0)
		abort();
}

static bool
lose_file(SimWorld *w, const LogFile *file)
{
	remove_file(w, file->path);
	return judge(w, file->log, false);
}

/* A directory whose names go, indexes and leftovers included. */
typedef struct Losing
{
	SimWorld   *world;
	const char *directory;
} Losing;

/* Visitor. */
static bool
remove_name(void *context, const char *name, bool is_directory)
{
	const Losing *losing = context;
	char		path[QC_PATH_MAX];

	(void) is_directory;
	(void) snprintf(path, sizeof(path), "%s/%s", losing->directory, name);
	remove_file(losing->world, path);
	return true;
}

static bool
lose_directory(SimWorld *w, uint64_t log)
{
	const QcIo *io = sim_disk_io(w->disk);
	char		path[QC_PATH_MAX];
	Losing		losing = {w, path};

	qc_path_log(path, QC_LAYOUT_FLAT, log);
	if (io->list(io->context, path, remove_name, &losing) != 0)
		abort();
	if (io->remove_directory(io->context, path) != 0 || io->sync_directory(io->context, "qlog") != 0)
		abort();
	return judge(w, log, is_needed(w, log));
}

/* Everything is in the logs. */
static bool
lose_checkpoint(SimWorld *w)
{
	SimServer  *server;
	bool		good;

	if (sim_disk_swap(w->disk, SIM_STORE_NAME, "", 0) != 0)
		abort();
	server = sim_boot(w, 0);
	good = server != NULL && sim_drain(server);
	if (server != NULL)
		sim_server_free(server);
	return good;
}

/* ---- a copy of a running server ---- */

/* Put bytes into a file of the copy, durably. */
static void
write_copy(SimWorld *copy, const char *path, const uint8_t *bytes, uint64_t len)
{
	const QcIo *io = sim_disk_io(copy->disk);
	QcIoSlice	slice = {bytes, (size_t) len};
	QcHandle	handle;

	if (io->open(io->context, path, QC_OPEN_WRITE | QC_OPEN_CREATE, &handle) != 0 ||
		io->write(io->context, handle, &slice, 1, 0) != 0)
		abort();
	io->close(io->context, handle);
}

/* The directories of a data directory, and the files that are copied at one moment. */
static void
copy_frame(SimWorld *w, SimWorld *copy)
{
	static const char *const directories[] = {"qlog", "store", "traces", "replication", "snapshots"};
	static const char *const files[] = {"IDENTITY", "qlog/LANES", "qlog/SHARDS"};
	const QcIo *io = sim_disk_io(copy->disk);
	uint64_t	size;

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
	{
		if (io->make_directory(io->context, directories[i]) != 0)
			abort();
	}
	for (size_t i = 0; i < (w->config.shards > 0 ? 3 : 2); i++)
	{
		uint8_t    *bytes = read_file(w, files[i], &size);

		write_copy(copy, files[i], bytes, size);
		free(bytes);
	}
}

/* Copy the logs, one file after the other, the second half of each later than the first, while the server runs. */
static bool
copy_logs(SimServer *server, SimWorld *copy, LogFiles *list)
{
	SimWorld   *w = server->world;
	const QcIo *io = sim_disk_io(copy->disk);
	char		path[QC_PATH_MAX];

	list_files(w, list);
	for (uint32_t i = list->n; i > 0; i--)
	{
		LogFile		file = list->files[i - 1];
		uint32_t	other = (uint32_t) sim_below(w, i);
		uint64_t	size;
		uint64_t	later;
		uint8_t    *first;
		uint8_t    *second;

		file = list->files[other];
		list->files[other] = list->files[i - 1];
		qc_path_log(path, QC_LAYOUT_FLAT, file.log);
		(void) io->make_directory(io->context, path);
		first = read_file(w, file.path, &size);
		if (!sim_server_run(server, sim_below(w, 300), NULL, NULL) && sim_world_failed(w))
		{
			free(first);
			return false;
		}
		second = read_file(w, file.path, &later);
		memcpy(second, first, (size_t) (size / 2));
		write_copy(copy, file.path, second, later);
		free(first);
		free(second);
	}
	return true;
}

/* Start a server on the copy, with all WAL from the beginning of the backup on. */
static bool
start_copy(SimWorld *w, SimWorld *copy, uint64_t redo, uint64_t xid)
{
	SimServer  *server;

	sim_oracle_free(copy->oracle);
	sim_wal_free(&copy->wal);
	copy->oracle = sim_oracle_copy(w->oracle);
	sim_wal_flush(&w->wal, sim_wal_end(&w->wal));
	sim_wal_copy(&copy->wal, &w->wal);
	copy->wal.redo = redo;
	copy->wal.control_xid = xid;
	copy->now = w->now;
	copy->lossy = true;
	sim_disk_reboot(copy->disk, SIM_KEEP_ALL, SIM_KEEP_ALL);
	sim_wal_crash(&copy->wal, 0);
	sim_oracle_crashed(copy->oracle);
	server = sim_boot(copy, 0);
	if (server == NULL)
		return false;
	if (!server->identity.created)
		sim_end(server, sim_any_crash(copy));
	return sim_life(copy, 2);
}

static bool
copy_running(SimWorld *w)
{
	SimServer  *server = sim_boot(w, 0);
	SimWorld   *copy = sim_world_new(sim_mix(w->random));
	LogFiles   *list = sim_alloc(sizeof(LogFiles));
	uint64_t	redo;
	uint64_t	xid;
	bool		good = server != NULL;

	copy->config = w->config;
	if (good)
	{
		sim_start(server);
		(void) sim_server_run(server, sim_below(w, RESUMES), NULL, NULL);
		redo = w->wal.redo;
		xid = w->wal.control_xid;
		w->wal.keep = redo;
		copy_frame(w, copy);
		good = copy_logs(server, copy, list) && start_copy(w, copy, redo, xid);
		sim_server_free(server);
	}
	if (sim_world_failed(copy))
		(void) sim_world_fail(w, "%s", copy->failure);
	sim_world_free(copy);
	free(list);
	return good && !sim_world_failed(w);
}

/* Damage of a kind that needs a file to be damaged, when there is one. */
static bool
damage_file(SimWorld *w, SimDamage kind, uint32_t witness, LogFiles *list)
{
	uint64_t	log = witness_log(w, witness);
	bool		other = kind == SIM_DAMAGE_QUEUE || kind == SIM_DAMAGE_FILE ||
		(kind == SIM_DAMAGE_DIRECTORY && sim_chance(w, 80));
	const LogFile *file;

	if (!other && kind != SIM_DAMAGE_ONLY)
		log = 0;
	file = choose_file(w, list, log, other);
	if (file == NULL)
		return true;
	if (kind == SIM_DAMAGE_DIRECTORY)
		return lose_directory(w, file->log);
	return kind == SIM_DAMAGE_FILE ? lose_file(w, file) : flip_byte(w, file);
}

bool
sim_damage(SimWorld *w, SimDamage kind)
{
	uint32_t	witness = kind == SIM_DAMAGE_ONLY ? 0 : WITNESS;
	LogFiles   *list;
	bool		good;

	if (w->config.names == SIM_NAMES_MAX)
		w->config.names--;
	if (kind == SIM_DAMAGE_CHECKPOINT || kind == SIM_DAMAGE_COPY)
	{
		/*
		 * A log that is gone, and an entry that the WAL only refers to, cannot be had from logs
		 * and WAL alone.
		 */
		w->config.catalog = 0;
		w->config.carry_limit = UINT32_MAX;
	}
	if (kind == SIM_DAMAGE_ONLY)
	{
		w->config.names = 1;
		w->config.catalog = w->config.pop = 0;
	}
	if (kind == SIM_DAMAGE_COPY)
		return copy_running(w);
	list = sim_alloc(sizeof(LogFiles));
	good = prepare(w, witness, list) &&
		(kind == SIM_DAMAGE_CHECKPOINT ? lose_checkpoint(w) : damage_file(w, kind, witness, list));
	free(list);
	return good;
}
