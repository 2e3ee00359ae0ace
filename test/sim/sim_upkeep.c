/*
 * sim_upkeep.c
 *		qlog's checkpointer in a simulated server: checkpoints, expired leases, dropped queues, room ahead.
 *
 * The steps of src/pg/wrk_checkpoint.c and wrk_upkeep.c.
 */
#include "sim_server.h"

#include "qc_catalog.h"
#include "qc_group.h"
#include "qc_lease.h"
#include "qc_timer.h"

#include <stdlib.h>

#define EXPIRED_MAX	16
#define SWEEP_ROWS	5

/* ---- checkpoints ---- */

/* More room for the batch, which goes on with what it has. */
static void
grow(SimBatch *batch, QcWriter *w)
{
	size_t		len = w->len;

	batch->cap = batch->cap * 2 + 16384;
	batch->bytes = sim_realloc(batch->bytes, batch->cap);
	qc_writer_init(w, batch->bytes, batch->cap);
	w->len = len;
}

/* Dump rows ahead, a few at a time, while others go on; the last pass may be left half way. */
static void
dump_ahead(SimProc *p, QcWriter *w)
{
	uint64_t	slices = sim_chance(p->world, 50) ? sim_below(p->world, 40) : 0;

	while (slices-- > 0 && !sim_world_failed(p->world))
	{
		uint32_t	rows = 1 + (uint32_t) sim_below(p->world, 6);

		if (qc_rows_ahead(p->server->st, w, rows, &p->err) == QC_SHORT)
			grow(&p->server->batch, w);
		sim_pause(p);
	}
}

/* Dump what has changed; QC_END = nothing has. */
static QcStatus
dump(SimProc *p)
{
	SimServer  *server = p->server;
	SimBatch   *batch = &server->batch;
	QcWriter	w;
	QcStatus	status;

	while (batch->nlogs < SIM_REMOVE_MAX &&
		   (batch->logs[batch->nlogs] = qc_log_remove_next(server->st)) != 0)
		batch->nlogs++;
	qc_writer_init(&w, batch->bytes, batch->cap);
	dump_ahead(p, &w);
	while ((status = qc_rows_dump(server->st, &w, &batch->mark, &p->err)) == QC_SHORT)
		grow(batch, &w);
	batch->len = w.len;
	return status;
}

/* What is left behind is a directory that nobody knows: the next start puts it away. */
static void
remove_logs(SimProc *p)
{
	SimBatch   *batch = &p->server->batch;

	if (qc_log_remove_files(&p->files, batch->logs, batch->nlogs, &p->err) != QC_OK)
		sim_broken(p, "removing a log");
	batch->nlogs = 0;
}

/* Store the batch; it is kept when it cannot be, as its rows are clean in the state. */
static QcStatus
put_batch(SimProc *p)
{
	SimServer  *server = p->server;
	SimBatch   *batch = &server->batch;
	QcStatus	status;

	sim_wal_flush_to(p, batch->mark.commit_lsn);
	sim_flush(p, batch->mark.seq);
	if (!sim_disk_step(p))
		return QC_IO;
	status = qs_apply(server->store, batch->bytes, batch->len, &p->err);
	if (status == QC_IO && p->err.sys_errno == SIM_CRASHED)
		(void) sim_disk_stepped(p, SIM_CRASHED);
	if (status != QC_OK)
		return status;
	batch->len = 0;
	qc_rows_stored(server->st, &batch->mark);
	return QC_OK;
}

void
sim_checkpoint(SimProc *p)
{
	SimServer  *server = p->server;
	QcStatus	status = server->batch.len > 0 ? QC_OK : dump(p);

	if (status == QC_END)
		return;
	if (status == QC_OK)
		status = put_batch(p);
	if (status == QC_OK && server->batch.nlogs > 0)
		status = sim_raise_floor(p, qc_start_floor(server->st));
	if (status == QC_OK)
		remove_logs(p);
	else
		sim_broken(p, "checkpoint");
	server->store_full = status != QC_OK;
}

/* ---- the small things ---- */

typedef struct Expired
{
	uint64_t	ids[EXPIRED_MAX];
	uint32_t	n;
} Expired;

/* SimChoose: a release for each lease that is still over. */
static bool
put_releases(void *context, SimProc *p, QcSmallPlan *small)
{
	Expired    *expired = context;
	QcWriter	w = qc_plan_small_writer(small);
	uint32_t	n = 0;

	for (uint32_t i = 0; i < expired->n; i++)
	{
		QcRelease	release = {.lease = expired->ids[i], .reason = QC_RELEASE_EXPIRED};
		const QcLease *lease = qc_lease_by_id(p->server->st, expired->ids[i]);

		if (lease == NULL || lease->owner != 0 || lease->pin_seq != 0 ||
			lease->deadline > p->world->monotonic)
			continue;
		release.messages = lease->nslots;
		qc_effect_put(&w, QC_EFFECT_RELEASE, &release, 0);
		n++;
	}
	if (n > 0)
		qc_plan_small_done(small, &w, n);
	return n > 0;
}

static void
expire_leases(SimProc *p)
{
	QcRelease	release = {0};
	size_t		room = EXPIRED_MAX * qc_effect_size(QC_EFFECT_RELEASE, &release, 0);
	Expired		expired;
	QcSmallPlan *small;

	expired.n = qc_timers_run(p->server->st, p->world->monotonic, expired.ids, EXPIRED_MAX);
	if (expired.n == 0)
		return;
	small = sim_arena_take(&p->arena, sizeof(QcSmallPlan));
	qc_plan_small(small, sim_arena_take(&p->arena, QC_SMALL_BUFFER(room)), room);
	(void) sim_submit(p, small, put_releases, NULL, &expired);
}

/* Room ahead for a log that has little left. */
static void
extend_ahead(SimProc *p)
{
	SimServer  *server = p->server;
	uint64_t	segment = p->world->config.segment;
	QcExtend	extend;

	for (QcLog *log = QC_AT(server->st, QcLog, server->st->logs); log != NULL;
		 log = QC_AT(server->st, QcLog, log->next))
	{
		if (log->last_file != log->file || log->allocated - log->tail > segment / 4 ||
			(log->nqueues == 0 && !qc_log_stays(server->st->shards, log->id)))
			continue;
		extend = (QcExtend)
		{
			.log = log->id, .create = log->allocated >= segment
		};
		extend.file = extend.create ? log->last_file + 1 : log->last_file;
		extend.from = extend.create ? 0 : log->last_allocated;
		extend.to = segment;

		/* Whoever needs the room will try again. */
		if (sim_extend(p, &extend) != QC_OK)
			sim_broken(p, "room ahead");
		return;
	}
}

void
sim_upkeep_main(SimProc *p)
{
	SimServer  *server = p->server;
	SimWorld   *w = p->world;

	while (!server->leaving && !sim_world_failed(w))
	{
		sim_arena_reset(&p->arena);
		if (sim_below(w, w->config.checkpoint) == 0)
			sim_checkpoint(p);
		if (w->config.snapshot > 0 && sim_below(w, server->snapshot_wish ? 10 : w->config.snapshot) == 0)
			sim_snapshot(p);
		if (sim_below(w, 10) == 0)
			expire_leases(p);
		if (sim_below(w, 10) == 0)
			(void) sim_move_dying(p);
		if (sim_below(w, 10) == 0)
			(void) sim_move_delayed(p);
		if (sim_below(w, w->config.retain) == 0)
			sim_retain(p);
		if (sim_below(w, 20) == 0)
		{
			(void) qc_queue_sweep(server->st, SWEEP_ROWS);
			(void) qc_group_sweep(server->st, SWEEP_ROWS);
		}
		if (sim_below(w, 200) == 0)
			extend_ahead(p);
		sim_pause(p);
	}
	sim_flush(p, server->st->seq);
}
