/*
 * sim_snapshot.c
 *		Snapshots of a simulated server: taken by qlog's checkpointer, and what a start makes of them when the checkpoint is lost.
 *
 * The steps of src/pg/wrk_snapshot.c and wrk_load.c.	Everything on the disk is a numbered step, so a crash may come anywhere; rows
 * are copied while others run.
 */
#include "sim_server.h"

#include "qc_dir.h"
#include "qc_mutant.h"
#include "qc_snapshot.h"

#include <stdlib.h>
#include <string.h>

/* ---- the floor ---- */

/* Before there is a snapshot nothing may go, unless none is wanted. */
static void
hold_floor(SimServer *server, uint64_t oldest)
{
	if (oldest == UINT64_MAX && server->world->config.snapshot > 0)
		oldest = 0;
	server->st->snapshot_seq = QC_MUTATED(QC_MUTANT_SNAPSHOT_UNHELD) ? UINT64_MAX : oldest;
}

static QcStatus
trim(SimProc *p, uint32_t kept)
{
	uint64_t	floor;
	uint64_t	oldest;
	QcStatus	status = qc_dir_read_floor(&p->io, &floor, &p->err);

	if (status == QC_OK)
		status = qc_snapshot_trim(&p->io, kept, floor, &oldest, &p->err);
	if (status == QC_OK)
		hold_floor(p->server, oldest);
	return status;
}

QcStatus
sim_snapshot_start(SimProc *p)
{
	uint64_t	seqs[QC_SNAPSHOT_LIST_MAX];
	uint32_t	n;
	QcStatus	status = qc_snapshot_remove_from(&p->io, p->server->recover.end, &p->err);

	if (status == QC_OK)
		status = qc_snapshot_list(&p->io, seqs, &n, &p->err);
	if (status != QC_OK)
		return status;
	hold_floor(p->server, n > 0 ? seqs[n - 1] : UINT64_MAX);
	p->server->snapshot_last = n > 0 ? seqs[0] : 0;
	return QC_OK;
}

/* ---- taking one ---- */

/* QsVisitor: others run now and then. */
static QcStatus
copy_row(void *context, const uint8_t *key, size_t key_len, const uint8_t *value, size_t value_len,
		 QcError *err)
{
	SimProc    *p = context;

	if (sim_below(p->world, 20) == 0)
		sim_pause(p);
	return qc_snapshot_row(p->server->snapshot, key, key_len, value, value_len, err);
}

static QcStatus
take(SimProc *p, uint64_t mark)
{
	SimServer  *server = p->server;
	QcSnapshotWriter *writer = server->snapshot;
	QcStatus	status = qc_snapshot_begin(writer, &p->io, server->st->directory_id, mark, p->world->now, &p->err);

	if (status == QC_OK)
		status = qs_read(server->store, copy_row, p, &p->err);
	if (status == QC_OK)
		status = qc_snapshot_finish(writer, &p->err);
	if (status == QC_OK)
		status = qc_snapshot_publish(writer, &p->err);
	if (status == QC_OK)
		status = trim(p, QC_SNAPSHOTS_KEPT);
	if (status == QC_OK)
		server->snapshot_last = mark;
	else if (!p->world->crashed)
		qc_snapshot_abandon(writer);
	return status;
}

void
sim_snapshot(SimProc *p)
{
	SimServer  *server = p->server;
	uint64_t	mark = server->st->checkpoint_seq;
	QcStatus	status = QC_OK;

	/* What was dumped and not stored yet comes first. */
	if (server->batch.len > 0 || mark == 0)
		return;
	if (server->snapshot == NULL)
		server->snapshot = sim_alloc(sizeof(QcSnapshotWriter));
	if (mark != server->snapshot_last)
		status = take(p, mark);
	else if (server->snapshot_wish)
		status = trim(p, 1);
	server->snapshot_wish = server->snapshot_wish && status != QC_OK;
	if (status != QC_OK)
		sim_broken(p, "a snapshot");
}

/* ---- beginning with one ---- */

/* QcRowVisitor: the row goes into a batch. */
static QcStatus
add_to_batch(void *context, const uint8_t *key, size_t key_len, const uint8_t *value, size_t value_len,
			 QcError *err)
{
	QcWriter   *batch = context;

	qs_batch_put(batch, key, (uint16_t) key_len, value, (uint32_t) value_len);
	return batch->full ? qc_error_set(err, QC_INTERNAL, "a snapshot is larger than its head says") : QC_OK;
}

/* Make the rows of a snapshot the store, in one step. */
static QcStatus
fill_store(SimProc *p, uint64_t seq, const QcSnapshotHead *head)
{
	SimServer  *server = p->server;
	QcSnapshotHead again;
	QcWriter	batch;
	uint8_t    *bytes = sim_alloc((size_t) head->length + 1);
	QcStatus	status;

	qc_writer_init(&batch, bytes, (size_t) head->length);
	status = qc_snapshot_read(&p->io, seq, server->identity.directory_id, add_to_batch, &batch, &again,
							  &p->err);
	if (status == QC_OK && !sim_disk_step(p))
		status = QC_IO;
	if (status == QC_OK)
		status = qs_apply(server->store, bytes, batch.len, &p->err);
	if (status == QC_IO && p->err.sys_errno == SIM_CRASHED)
		(void) sim_disk_stepped(p, SIM_CRASHED);
	free(bytes);
	return status;
}

bool
sim_snapshot_needed(SimProc *p)
{
	const QcState *st = p->server->st;
	uint64_t	seqs[QC_SNAPSHOT_LIST_MAX];
	uint32_t	n = 0;
	uint64_t	floor = 0;

	return qc_snapshot_list(&p->io, seqs, &n, &p->err) == QC_OK && n > 0 &&
		qc_dir_read_floor(&p->io, &floor, &p->err) == QC_OK && (st->seq == 0 || st->seq < floor);
}

QcStatus
sim_snapshot_load(SimProc *p)
{
	SimServer  *server = p->server;
	uint64_t	seqs[QC_SNAPSHOT_LIST_MAX];
	uint32_t	n = 0;
	uint64_t	floor = 0;
	QcSnapshotHead head;
	QcStatus	status = qc_dir_read_floor(&p->io, &floor, &p->err);

	if (status == QC_OK)
		status = qc_snapshot_list(&p->io, seqs, &n, &p->err);
	if (status != QC_OK)
		return status;
	if (n == 0 || seqs[0] < floor)
		return qc_error_set(&p->err, QC_MISSING, "the newest snapshot is below the floor");
	sim_trace(p->world->oracle, "begins with the snapshot at entry %llu", (unsigned long long) seqs[0]);
	p->world->totals.snapshots++;
	status = qc_snapshot_read(&p->io, seqs[0], server->identity.directory_id, NULL, NULL, &head, &p->err);
	return status == QC_OK ? fill_store(p, seqs[0], &head) : status;
}

/* ---- losing the checkpoint ---- */

/* SimVisitor */
static void
find_snapshot(void *found, const char *path, bool is_directory, uint64_t size)
{
	size_t		len = strlen(path);

	if (!is_directory && size > 0 && strncmp(path, "snapshots/s", 11) == 0 && len > 6 &&
		strcmp(path + len - 6, ".qsnap") == 0)
		*(bool *) found = true;
}

void
sim_lose_store(SimWorld *w)
{
	bool		found = false;

	sim_disk_visit(w->disk, find_snapshot, &found);
	if (!found)
		return;
	sim_trace(w->oracle, "---- the checkpoint is lost ----");
	if (sim_disk_swap(w->disk, SIM_STORE_NAME, "", 0) != 0)
		abort();
}
