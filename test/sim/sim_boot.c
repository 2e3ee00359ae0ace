/*
 * sim_boot.c
 *		Starting a simulated server: PostgreSQL's redo fills the stash, then qlog recovers.
 *
 * Runs outside of fibers, so a crash comes back as an error of the I/O table.  While qlog recovers PostgreSQL is open
 * already: strangers take xids, those of dead transactions among them, and commit.
 */
#include "sim_server.h"

#include "qc_rows.h"
#include "qc_walrec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- redo ---- */

typedef struct StashFile
{
	SimProc    *p;
	QcHandle	handle;
	uint64_t	end;
	bool		open;
} StashFile;

static int
stash_write(StashFile *stash, const QcIoSlice *slices, int n)
{
	int			rc = stash->p->io.write(stash->p, stash->handle, slices, n, stash->end);

	for (int i = 0; i < n; i++)
		stash->end += slices[i].len;
	return rc;
}

/* Bytes of the file that hold intact records. */
static size_t
intact_size(const uint8_t *bytes, size_t size)
{
	size_t		at = QC_STASH_MAGIC_SIZE;
	QcStashRecord record;
	size_t		taken;

	if (size < at || memcmp(bytes, QC_STASH_MAGIC, at) != 0)
		return 0;
	while (at < size && qc_stash_get(bytes + at, size - at, &record, &taken, NULL) == QC_OK)
		at += taken;
	return at;
}

/* Open or make the stash; what an earlier redo left torn is cut off. */
static int
stash_open(StashFile *stash)
{
	const QcIo *io = &stash->p->io;
	QcIoSlice	magic = {QC_STASH_MAGIC, QC_STASH_MAGIC_SIZE};
	uint64_t	size = 0;
	size_t		done = 0;
	uint8_t    *bytes;
	int			rc = io->open(stash->p, QC_STASH_PATH, QC_OPEN_WRITE, &stash->handle);

	if (rc == ENOENT)
		rc = io->open(stash->p, QC_STASH_PATH, QC_OPEN_WRITE | QC_OPEN_CREATE, &stash->handle);
	if (rc == 0)
		rc = io->size(stash->p, stash->handle, &size);
	if (rc != 0)
		return rc;
	stash->open = true;
	bytes = sim_alloc((size_t) size + 1);
	rc = io->read(stash->p, stash->handle, bytes, (size_t) size, 0, &done);
	stash->end = intact_size(bytes, done);
	free(bytes);
	if (rc == 0 && stash->end < size)
		rc = io->truncate(stash->p, stash->handle, stash->end);
	return rc == 0 && stash->end == 0 ? stash_write(stash, &magic, 1) : rc;
}

static int
stash_append(StashFile *stash, const SimWalRecord *record)
{
	QcStashRecord copy = {.kind = (QcWalKind) record->kind, .timeline = SIM_TIMELINE,
		.end_lsn = record->end_lsn, .body = record->body->bytes,
		.body_len = (uint32_t) record->body->len};
	uint8_t		head[QC_STASH_HEAD_SIZE];
	QcIoSlice	slices[2] = {{head, sizeof(head)}, {copy.body, copy.body_len}};
	int			rc = stash->open ? 0 : stash_open(stash);

	if (rc != 0)
		return rc;
	qc_stash_put_head(head, &copy);
	return stash_write(stash, slices, 2);
}

/* The end of redo: the stash is durable before the checkpoint that ends it. */
static int
stash_end(StashFile *stash)
{
	int			rc;

	if (!stash->open)
		return 0;
	rc = stash->p->io.sync(stash->p, stash->handle);
	stash->p->io.close(stash->p, stash->handle);
	return rc == 0 ? stash->p->io.sync_directory(stash->p, "replication") : rc;
}

static bool
redo(SimServer *server)
{
	SimProc    *p = &server->procs[SIM_BOOT_PROC];
	SimWal	   *wal = &p->world->wal;
	StashFile	stash = {.p = p};
	int			rc = 0;

	for (size_t i = 0; i < wal->count && rc == 0; i++)
	{
		const SimWalRecord *record = &wal->records[i];

		if (record->type == SIM_WAL_QLOG && record->end_lsn > wal->redo)
			rc = stash_append(&stash, record);
	}
	if (rc == 0)
		rc = stash_end(&stash);
	if (rc != 0)
	{
		(void) qc_error_sys(&p->err, rc, QC_STASH_PATH, "redo could not write");
		sim_broken(p, "redo");
		return false;
	}
	server->redo_end = sim_wal_end(wal);
	server->next_xid = wal->next_xid;
	if (!sim_wal_step(p))
		return false;
	(void) sim_wal_insert(wal, SIM_WAL_CHECKPOINT, 0, 0, 0, NULL, 0);
	sim_wal_flush(wal, sim_wal_end(wal));
	sim_wal_control(wal, server->redo_end, wal->next_xid);
	return true;
}

/* ---- recovery ---- */

static bool
in_history(void *context, uint32_t timeline, uint64_t lsn)
{
	const SimServer *server = context;

	return timeline == SIM_TIMELINE && lsn <= server->redo_end;
}

static QcStatus
xid_committed(void *context, uint64_t xid, bool *committed, QcError *err)
{
	const SimServer *server = context;

	(void) err;
	*committed = xid < server->next_xid && sim_wal_committed(&server->world->wal, xid);
	return QC_OK;
}

static QcStatus
new_epoch(void *context, uint64_t old_epoch, uint64_t epoch, uint64_t first_seq, QcError *err)
{
	SimServer  *server = context;
	SimProc    *p = &server->procs[SIM_BOOT_PROC];
	QcWalMark	mark = {.directory = server->st->directory_id, .epoch = epoch,
		.old_epoch = old_epoch, .seq = first_seq};
	uint8_t		body[QC_WALREC_MARK_MAX];
	QcWriter	w;

	qc_writer_init(&w, body, sizeof(body));
	qc_wal_mark_put(&w, QC_WAL_EPOCH, &mark);
	sim_wal_flush_to(p, sim_wal_insert(&p->world->wal, SIM_WAL_QLOG, QC_WAL_EPOCH, 0, 0, body, w.len));
	return p->world->crashed ? qc_error_sys(err, SIM_CRASHED, "", "could not flush the WAL") : QC_OK;
}

static QcStatus
draw(void *context, uint64_t *value, QcError *err)
{
	SimServer  *server = context;

	(void) err;
	*value = sim_below(server->world, UINT64_MAX) | 1;
	return QC_OK;
}

static bool
progress(void *context, const char *phase, uint64_t done, uint64_t total)
{
	SimServer  *server = context;

	(void) phase;
	(void) done;
	(void) total;
	if (sim_chance(server->world, server->world->config.stranger / 2))
		sim_stranger(&server->procs[SIM_BOOT_PROC], true);
	return true;
}

void
sim_stranger(SimProc *p, bool wait)
{
	SimWorld   *w = p->world;
	uint64_t	xid = w->wal.next_xid++;
	uint32_t	txn;
	uint64_t	lsn;

	sim_pause(p);
	if (w->crashed || sim_chance(w, w->config.rollback))
		return;
	txn = sim_oracle_begin(w->oracle, true);
	sim_oracle_committing(w->oracle, txn);
	(void) sim_wal_insert(&w->wal, SIM_WAL_ROW, 0, xid, 0, NULL, 0);
	sim_pause(p);
	lsn = sim_wal_insert(&w->wal, SIM_WAL_COMMIT, 0, xid, txn, NULL, 0);
	if (wait)
		sim_wal_flush_to(p, lsn);
	if (w->crashed)
		return;
	sim_oracle_visible(w->oracle, txn);
	sim_oracle_committed(w->oracle, txn, wait, false);
}

static QcStatus
load_row(void *context, const uint8_t *key, size_t key_len, const uint8_t *value, size_t value_len,
		 QcError *err)
{
	SimServer  *server = context;

	return qc_rows_load(server->st, key, key_len, value, value_len, err);
}

/* A copied store may be torn: begin without one. */
static QcStatus
put_store_aside(SimProc *p)
{
	int			rc = sim_disk_step(p) ?
		sim_disk_stepped(p, sim_disk_swap(p->world->disk, SIM_STORE_NAME, "", 0)) : SIM_CRASHED;

	return rc == 0 ? QC_OK : qc_error_sys(&p->err, rc, SIM_STORE_NAME, "could not put aside");
}

static QcStatus
read_store(SimServer *server)
{
	SimProc    *p = &server->procs[SIM_BOOT_PROC];
	QcStatus	status = qs_read(server->store, load_row, server, &p->err);

	return status == QC_OK ? qc_rows_loaded(server->st, p->world->now, p->world->monotonic, &p->err) : status;
}

/* A snapshot becomes the store before its rows are loaded; between the two steps there is a store without a mark. */
static QcStatus
load_snapshot(SimServer *server)
{
	SimProc    *p = &server->procs[SIM_BOOT_PROC];
	QcStatus	status = put_store_aside(p);

	sim_server_clear(server);
	if (status == QC_OK)
		status = sim_snapshot_load(p);
	return status == QC_OK ? read_store(server) : status;
}

static QcStatus
load_store(SimServer *server)
{
	SimProc    *p = &server->procs[SIM_BOOT_PROC];
	SimWorld   *w = p->world;
	size_t		len;
	QcStatus	status;

	if (sim_disk_swapped(w->disk, SIM_STORE_NAME, &len) == NULL && !sim_disk_step(p))
		return QC_IO;
	status = sim_store_open(w->disk, SIM_STORE_NAME, UINT32_MAX, true, false, &server->store, &p->err);
	if (status == QC_OK)
		status = read_store(server);
	if (status == QC_OK && !server->identity.copied && sim_snapshot_needed(p))
		status = load_snapshot(server);
	if (status == QC_IO && p->err.sys_errno == SIM_CRASHED)
		w->crashed = true;
	return status;
}

static QcStatus
remove_stash(SimProc *p)
{
	int			rc = p->io.unlink(p, QC_STASH_PATH);

	if (rc == 0)
		rc = p->io.sync_directory(p, "replication");
	return rc == 0 || rc == ENOENT ? QC_OK :
		qc_error_sys(&p->err, rc, QC_STASH_PATH, "could not remove");
}

/* Bytes of the stash, 0 = there is none. */
static size_t
stash_size(SimProc *p)
{
	QcHandle	handle;
	uint64_t	size = 0;

	if (p->io.open(p, QC_STASH_PATH, 0, &handle) != 0)
		return 0;
	(void) p->io.size(p, handle, &size);
	p->io.close(p, handle);
	return (size_t) size;
}

static QcStatus
run_recovery(SimServer *server)
{
	SimProc    *p = &server->procs[SIM_BOOT_PROC];
	SimWorld   *w = p->world;
	size_t		stash_max = stash_size(p);
	uint8_t    *stash = sim_alloc(stash_max + 1);
	size_t		stash_len = 0;
	uint64_t	floor = 0;
	uint64_t	snapshot = 0;
	QcStatus	status = qc_dir_read_floor(&p->io, &floor, &p->err);

	if (status == QC_OK)
		status = qc_snapshot_oldest(&p->io, floor, &snapshot, &p->err);
	if (status == QC_OK)
		status = qc_dir_read_file(&p->io, QC_STASH_PATH, stash, stash_max, &stash_len, &p->err);
	if (status == QC_OK || status == QC_MISSING)
	{
		server->recover = (QcRecover)
		{
			.st = server->st, .ring = server->ring, .files = &p->files,
			.segment_size = w->config.segment, .stash = status == QC_OK ? stash : NULL,
			.stash_len = stash_len, .timeline = SIM_TIMELINE, .redo_end = server->redo_end,
			.copied = server->identity.copied, .floor = floor, .snapshot = snapshot, .now = w->now, .monotonic = w->monotonic,
			.hooks =
			{
			server, in_history, xid_committed, new_epoch, draw, progress, NULL, NULL
			}
		};
		status = qc_recover(&server->recover, &p->err);
	}
	free(stash);
	return status;
}

static QcStatus
recover(SimServer *server)
{
	SimProc    *p = &server->procs[SIM_BOOT_PROC];
	SimWorld   *w = p->world;
	QcDirChoice choice = {.layout = QC_LAYOUT_FLAT, .shards = w->config.shards};
	uint32_t	strays;
	QcStatus	status = qc_dir_open(&p->io, SIM_SYSTEM, &choice, sim_below(w, UINT64_MAX) | 1,
									 sim_below(w, UINT64_MAX) | 1, &server->identity, &p->err);

	if (status == QC_OK)
		status = qc_dir_sweep(&p->io, server->identity.layout, &strays, &p->err);
	if (status == QC_OK && server->identity.copied)
		status = put_store_aside(p);
	if (status == QC_OK)
		status = load_store(server);
	if (status != QC_OK)
		return status;
	p->files.layout = server->identity.layout;
	server->st->directory_id = server->identity.directory_id;
	server->st->shards = server->identity.shards;
	status = run_recovery(server);
	if (status == QC_OK)
		status = sim_snapshot_start(p);
	if (status == QC_OK && server->identity.copied)
		status = qc_dir_adopt(&p->io, sim_below(w, UINT64_MAX) | 1, &server->identity, &p->err);
	return status == QC_OK ? remove_stash(p) : status;
}

/* Which queues of the model have which names now. */
static void
find_queues(SimServer *server)
{
	const SimOracle *o = server->world->oracle;

	for (uint32_t i = 0; i < SIM_NAMES_MAX; i++)
		server->queues[i] = SIM_NONE;
	for (uint32_t i = 0; i < o->nqueues; i++)
	{
		const QcQueue *queue = o->queues[i].gone ? NULL :
			qc_queue_by_id(server->st, o->queues[i].id);

		if (queue != NULL && queue->state == QC_QUEUE_LIVE)
			server->queues[o->queues[i].name] = i;
	}
}

/* The disk has failed.  PostgreSQL did start, unless that was in redo, and goes on for a while without queues. */
static void
fail_to_start(SimProc *p)
{
	SimWorld   *w = p->world;

	w->totals.bad_starts++;
	sim_disk_heal(w->disk);
	if (!p->server->redone)
		return;
	for (int i = 0; i < 3; i++)
		sim_stranger(p, true);
	if (sim_chance(w, 50))
		sim_pg_checkpoint(p);
}

SimServer *
sim_server_boot(SimWorld *world, QcStatus *status, QcError *err)
{
	SimServer  *server = sim_server_new(world);
	SimProc    *p = &server->procs[SIM_BOOT_PROC];

	qc_error_clear(err);
	*status = QC_IO;
	if (redo(server))
	{
		server->redone = true;
		*status = recover(server);
		if (*status == QC_OK && !world->crashed)
		{
			find_queues(server);
			return server;
		}
	}
	*err = p->err;
	if (!world->crashed && sim_disk_failed(p))
		fail_to_start(p);
	else if (!world->crashed && !world->allow_damage)
		sim_broken(p, "recovery");
	sim_server_free(server);
	return NULL;
}
