/*
 * sim_guard.c
 *		Guards, joint commits that guard themselves, and PostgreSQL's own checkpointer.
 *
 * The steps of src/pg/wrk_guard.c and qlog_guard.c.
 */
#include "sim_server.h"

#include "qc_walrec.h"

#include <assert.h>
#include <string.h>

#define TERM_PAUSES		30		/* how long a guard stays in office */
#define RELIEF_PAUSES	40

/* ---- confirms ---- */

QcStatus
sim_confirm_credit(SimProc *p)
{
	if (p->confirm.small.plan.credited)
		return QC_OK;
	qc_plan_small(&p->confirm.small, p->confirm.buffer, SIM_CONFIRM_MAX);
	return sim_credit(p, &p->confirm.small.plan);
}

void
sim_confirm_release(SimProc *p)
{
	if (p->confirm.small.plan.credited)
		qc_plan_uncredit(p->server->st, &p->confirm.small.plan);
}

/* Is there a joint entry up to seq whose WAL record is not inserted? */
static bool
insert_pending(QcState *st, uint64_t seq)
{
	for (QcOpen *open = QC_AT(st, QcOpen, st->opens.head); open != NULL && open->seq <= seq;
		 open = QC_AT(st, QcOpen, open->all.next))
	{
		if (open->xid != 0 && open->decided == 0 && !open->inserted)
			return true;
	}
	return false;
}

/* Insert a barrier and flush the WAL through it. */
static uint64_t
barrier(SimProc *p, uint64_t seq)
{
	QcState    *st = p->server->st;
	QcWalMark	mark = {.directory = st->directory_id, .epoch = qc_epoch(st), .seq = seq};
	uint8_t		body[QC_WALREC_MARK_MAX];
	QcWriter	w;
	uint64_t	lsn;

	qc_writer_init(&w, body, sizeof(body));
	qc_wal_mark_put(&w, QC_WAL_BARRIER, &mark);
	lsn = sim_wal_insert(&p->world->wal, SIM_WAL_QLOG, QC_WAL_BARRIER, 0, 0, body, w.len);
	sim_wal_flush_to(p, lsn);
	return lsn;
}

/* Log a confirm of seq, with decisions whose commit records are flushed, and flush our log through it. */
static void
confirm(SimProc *p, uint64_t seq, uint64_t lsn, uint32_t decisions)
{
	SimServer  *server = p->server;
	QcConfirm	fixed = {.seq = seq, .timeline = SIM_TIMELINE, .lsn = lsn};
	QcWriter	w = qc_plan_small_writer(&p->confirm.small);
	uint32_t	n = 0;

	sim_wait_room(p, &p->confirm.small.plan);
	if (decisions > 0)
		n = qc_open_decisions(server->st, SIM_TIMELINE, lsn, decisions, &w);
	qc_effect_put(&w, QC_EFFECT_CONFIRM, &fixed, 0);
	qc_plan_small_done(&p->confirm.small, &w, n > 0 ? 2 : 1);
	sim_append(p, &p->confirm.small.plan);
	sim_flush(p, p->confirm.small.plan.seq);
	if (seq > server->confirmed_durable)
		server->confirmed_durable = seq;
}

/* Everything between the end of the flag's validity and its going away. */
static void
confirm_through(SimProc *p, uint64_t seq, uint32_t decisions)
{
	uint64_t	lsn;

	while (insert_pending(p->server->st, seq))
		sim_pause(p);
	lsn = barrier(p, seq);
	confirm(p, seq, lsn, decisions);
}

/* ---- commits ---- */

bool
sim_guard_reserve(SimProc *p, QcPlan *plan)
{
	SimServer  *server = p->server;
	bool		own;

	assert(p->confirm.small.plan.credited);
	sim_wait_room(p, plan);
	own = server->nguards == 0;
	if (own)
		p->delay = true;
	qc_plan_reserve(server->st, server->ring, plan, p->world->config.segment, p->world->now,
					p->world->monotonic);
	server->joint_seq = plan->seq;
	return own;
}

void
sim_guard_inserted(SimProc *p, QcPlan *plan, bool own)
{
	if (plan->open != 0)
		QC_AT(p->server->st, QcOpen, plan->open)->inserted = 1;
	if (!own)
		return;
	confirm_through(p, plan->seq, 0);
	p->delay = false;
}

/* ---- guards ---- */

static bool
work_left(const SimServer *server)
{
	QcState    *st = server->st;

	if (server->joint_seq > server->confirmed_durable)
		return true;
	for (QcOpen *open = QC_AT(st, QcOpen, st->opens.head); open != NULL;
		 open = QC_AT(st, QcOpen, open->all.next))
	{
		if (open->xid != 0 && open->decided != 0)
			return true;
	}
	return false;
}

/* The other guard is called; when it does not come commits guard themselves meanwhile. */
static void
call_relief(SimProc *p, uint32_t other)
{
	SimServer  *server = p->server;

	server->guard_called = other;
	for (int i = 0; i < RELIEF_PAUSES && server->guard_called == other; i++)
		sim_pause(p);
	if (server->guard_called == other)
		server->guard_called = 0;
}

static void
serve(SimProc *p, uint32_t other)
{
	SimServer  *server = p->server;
	uint64_t	pauses = sim_below(p->world, TERM_PAUSES);
	uint64_t	seq;

	p->vxid = ++server->next_vxid;
	p->delay = true;
	server->nguards++;
	if (server->guard_called == p->number)
		server->guard_called = 0;
	while (pauses-- > 0 && !server->leaving)
		sim_pause(p);
	if (work_left(server) && !server->leaving)
		call_relief(p, other);
	server->nguards--;
	seq = server->st->seq;
	confirm_through(p, seq, SIM_DECISIONS);
	p->delay = false;
	if (server->guard_office == p->number)
		server->guard_office = 0;
}

void
sim_guard_main(SimProc *p)
{
	SimServer  *server = p->server;
	const SimProc *before = &server->procs[p->number - 1];
	uint32_t	other = before->main == sim_guard_main ? p->number - 1 : p->number + 1;

	while (!server->leaving && !sim_world_failed(p->world))
	{
		if (sim_confirm_credit(p) != QC_OK)
		{
			sim_broken(p, "a guard's credit");
			sim_pause(p);
			continue;
		}
		sim_arena_reset(&p->arena);
		if (server->guard_called == p->number ||
			(server->guard_office == 0 && server->guard_called == 0 && work_left(server)))
		{
			server->guard_office = p->number;
			serve(p, other);
		}
		else
			sim_pause(p);
	}
	sim_confirm_release(p);
}

/* ---- PostgreSQL ---- */

/* A process that held up checkpoints when one looked. */
typedef struct Delayer
{
	const SimProc *p;
	uint64_t	vxid;
} Delayer;

void
sim_pg_checkpoint(SimProc *p)
{
	SimServer  *server = p->server;
	SimWal	   *wal = &p->world->wal;
	uint64_t	redo = sim_wal_end(wal);
	uint64_t	next_xid = wal->next_xid;
	Delayer		delayers[SIM_PROCS];
	uint32_t	n = 0;
	uint64_t	lsn;

	for (uint32_t i = 0; i < server->nprocs; i++)
	{
		if (server->procs[i].delay)
			delayers[n++] = (Delayer) {&server->procs[i], server->procs[i].vxid};
	}
	for (uint32_t i = 0; i < n; i++)
	{
		while (delayers[i].p->delay && delayers[i].p->vxid == delayers[i].vxid)
			sim_pause(p);
	}
	lsn = sim_wal_insert(wal, SIM_WAL_CHECKPOINT, 0, 0, 0, NULL, 0);
	sim_wal_flush_to(p, lsn);
	if (sim_wal_step(p))
		sim_wal_control(wal, redo, next_xid);
}

void
sim_pg_main(SimProc *p)
{
	SimWorld   *w = p->world;

	while (!p->server->leaving && !sim_world_failed(w))
	{
		if (sim_below(w, w->config.pg_checkpoint) == 0)
			sim_pg_checkpoint(p);
		else if (sim_below(w, 40) == 0)
			sim_wal_flush_to(p, sim_wal_end(&w->wal));
		sim_pause(p);
	}
}
