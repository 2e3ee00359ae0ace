/*
 * sim_reclaim.c
 *		qlog's reclaim worker in a simulated server: files of which nothing is needed go, others are written anew.
 *
 * The hooks are those of src/pg/wrk_reclaim.c.	 Segments are small here, so every byte pays.  Others run wherever the state lock is given
 * up, and between the steps on the disk.
 */
#include "sim_server.h"

#include "qc_live.h"
#include "qc_reclaim.h"

#ifdef SIM_SANITIZED

/* A pass that a crash cuts short does not give back what it has allocated: that is what a process would leave to the system. */
extern const char *__lsan_default_suppressions(void);

const char *
__lsan_default_suppressions(void)
{
	return "leak:sim_reclaim_main\n";
}

#endif

#define PATIENCE	300			/* steps of others that a checkpoint is waited for */

static void
take_lock(void *context)
{
	(void) context;
}

static void
give_lock(void *context)
{
	SimProc    *p = context;

	if (sim_below(p->world, 4) == 0)
		sim_pause(p);
}

static bool
written(void *context, uint64_t seq)
{
	return sim_write(context, seq);
}

static bool
stored(void *context, uint64_t stamp)
{
	SimProc    *p = context;
	SimServer  *server = p->server;

	for (int i = 0; i < PATIENCE && !server->leaving && !sim_world_failed(p->world); i++)
	{
		if (qc_rows_is_stored(server->st, stamp))
			return true;
		sim_pause(p);
	}
	return qc_rows_is_stored(server->st, stamp);
}

static uint64_t
floor_now(void *context)
{
	SimProc    *p = context;

	return qc_start_floor(p->server->st);
}

QcStatus
sim_raise_floor(SimProc *p, uint64_t seq)
{
	uint64_t	old;
	QcStatus	status;

	sim_lock(p, &p->server->floor_lock);
	status = qc_dir_read_floor(&p->io, &old, &p->err);
	if (status == QC_OK && seq > old)
		status = qc_dir_write_floor(&p->io, seq, &p->err);
	sim_unlock(p, &p->server->floor_lock);
	return status;
}

static QcStatus
raise_floor(void *context, uint64_t seq, QcError *err)
{
	SimProc    *p = context;
	QcStatus	status = sim_raise_floor(p, seq);

	*err = p->err;
	return status;
}

/* Nobody copies the directory while the server runs. */
static bool
keep_out(void *context)
{
	(void) context;
	return true;
}

static void
let_in(void *context)
{
	(void) context;
}

static QcStatus
extend(void *context, const QcExtend *what, QcError *err)
{
	SimProc    *p = context;
	QcStatus	status = sim_extend(p, what);

	*err = p->err;
	return status;
}

static void
changed(void *context, uint64_t log, uint64_t file)
{
	SimProc    *p = context;

	sim_trace(p->world->oracle, "file %llu of log %llu is removed or rewritten", (unsigned long long) file,
			  (unsigned long long) log);
	p->server->gone++;
}

/* A fault that the disk was told to have; or damage that a test has made. */
static void
report(void *context, const QcError *err)
{
	SimProc    *p = context;

	p->err = *err;
	if (!p->world->allow_damage)
		sim_broken(p, "reclaiming a file");
}

static bool
go_on(void *context, const char *phase, uint64_t done, uint64_t total)
{
	SimProc    *p = context;

	(void) phase;
	(void) done;
	(void) total;
	return !p->server->leaving && !sim_world_failed(p->world);
}

static int64_t
monotonic(void *context)
{
	SimProc    *p = context;

	return p->world->monotonic;
}

static void
step(void *context, const char *what)
{
	(void) what;
	sim_pause(context);
}

static void
set_up(QcReclaim *r, SimProc *p)
{
	*r = (QcReclaim)
	{
		.st = p->server->st, .cache = &p->cache,.lock =
		{
		p, take_lock, take_lock, give_lock
		},
		.hooks =
		{
		p, written, stored, floor_now, raise_floor, keep_out, let_in, extend, changed, report, go_on, step,
				monotonic
		},
		.segment_size = p->world->config.segment, .gain = 64
	};
}

void
sim_reclaim_main(SimProc *p)
{
	SimServer  *server = p->server;
	SimWorld   *w = p->world;
	QcReclaim  *r = &server->reclaim;

	uint32_t	growth = 1;

	set_up(r, p);
	while (w->config.reclaim > 0 && !server->leaving && !sim_world_failed(w))
	{
		QcReclaimBudget budget = {.files = 1 + (uint32_t) sim_below(w, 20), .us = INT64_MAX, .rewrites = 1};
		QcReclaimReport result;

		/* As src/pg/wrk_reclaim.c: passes grow while work is left. */
		if (w->config.ages)
			budget = (QcReclaimBudget) {.files = 256 * growth, .us = INT64_MAX, .rewrites = growth};
		sim_arena_reset(&p->arena);
		if (sim_below(w, w->config.reclaim) == 0)
		{
			r->seal_us = sim_chance(w, 30);
			if (qc_reclaim_pass(r, &budget, w->now, &result, &p->err) != QC_OK)
				sim_broken(p, "reclaiming");
			growth = !result.more ? 1 : growth < 64 ? growth * 4 : growth;
			server->snapshot_wish |= result.held > 0;
			w->totals.deleted += result.deleted;
			w->totals.rewritten += result.rewritten;
		}
		sim_pause(p);
	}
}

/* ---- those who read meanwhile ---- */

void
sim_follow(SimProc *p)
{
	if (p->gone == p->server->gone)
		return;
	sim_forget(p);
	p->gone = p->server->gone;
}

void
sim_forget(SimProc *p)
{
	qc_files_close(&p->files);
	qc_read_end(&p->cache);
}

bool
sim_is_there(SimProc *p, const SimPlace *place)
{
	return qc_live_position(p->server->st, place->partition, place->position);
}
