/*
 * sim_commit.c
 *		Entries of a simulated server on their way: credit, reservation, filling, flushing, settling.
 *
 * Between a reservation and its filling, between writing and syncing, and between any two files others may run.
 */
#include "sim_server.h"

#include "qc_mutant.h"
#include "qc_order.h"
#include "qc_walrec.h"

#include <assert.h>

#define ROOM_TRIES	20000		/* waits for room in the ring before that is called a deadlock */
#define FILES_AT_ONCE 3

/* ---- room ---- */

/* Is the extension still the one that the log needs? */
static bool
still_wanted(const SimServer *server, const QcExtend *extend)
{
	const QcLog *log = qc_log_by_id(server->st, extend->log);

	if (log == NULL)
		return false;
	if (extend->create)
		return log->last_file + 1 == extend->file;
	return log->last_file == extend->file && log->last_allocated == extend->from;
}

QcStatus
sim_extend(SimProc *p, const QcExtend *extend)
{
	SimServer  *server = p->server;
	QcExtend	done = *extend;
	QcStatus	status = QC_OK;

	sim_lock(p, &server->extend_lock);
	if (still_wanted(server, extend))
	{
		status = qc_log_extend_io(&p->files, &done, &p->err);
		if (status == QC_NOSPACE && done.least > 0 && done.least < done.to)
		{
			done.to = done.least;
			status = qc_log_extend_io(&p->files, &done, &p->err);
		}
		if (status == QC_OK)
			qc_log_extended(server->st, &done, p->world->config.segment);
	}
	sim_unlock(p, &server->extend_lock);
	return status;
}

static QcStatus
make_room(SimProc *p, QcLack lack, const QcExtend *extend)
{
	SimServer  *server = p->server;

	if (lack == QC_LACK_LOG)
		return sim_extend(p, extend);
	return sim_write(p, server->st->seq) ? QC_OK : p->err.code;
}

QcStatus
sim_credit(SimProc *p, QcPlan *plan)
{
	for (int i = 0; i < ROOM_TRIES; i++)
	{
		QcLack		lack;
		QcExtend	extend;
		QcStatus	status = qc_plan_credit(p->server->st, p->server->ring, plan,
											p->world->config.segment, &lack, &extend, &p->err);

		if (status != QC_BUSY)
			return status;
		status = make_room(p, lack, &extend);
		if (status != QC_OK)
			return status;
	}
	(void) sim_world_fail(p->world, "no room comes free: deadlock");
	return qc_error_set(&p->err, QC_INTERNAL, "deadlock");
}

/* ---- writing and flushing ---- */

static void
wait_filled(SimProc *p, uint64_t seq)
{
	while (qc_ring_filled_seq(p->server->ring) < seq)
		sim_pause(p);
}

bool
sim_write(SimProc *p, uint64_t seq)
{
	SimServer  *server = p->server;
	QcStatus	status = QC_OK;

	if (atomic_load(&server->ring->written_seq) >= seq)
		return true;
	sim_lock(p, &server->write_lock);
	if (atomic_load(&server->ring->written_seq) < seq)
	{
		wait_filled(p, seq);
		status = qc_ring_write(server->st, server->ring, &p->files, &p->err);
	}
	sim_unlock(p, &server->write_lock);
	return status == QC_OK;
}

/* Write everything out and take some of the files that are to be synced. */
static uint32_t
write_and_take(SimProc *p, uint64_t seq, QcDirtyFile *files, uint64_t *covered, bool *more)
{
	SimServer  *server = p->server;
	uint32_t	n;

	sim_lock(p, &server->write_lock);
	wait_filled(p, seq);
	if (qc_ring_write(server->st, server->ring, &p->files, &p->err) != QC_OK)
		sim_panic(p, "writing the ring");
	n = qc_ring_take_dirty(server->st, server->ring, files, FILES_AT_ONCE, covered, more);
	sim_unlock(p, &server->write_lock);
	return n;
}

/* Sync everything written through seq and say so. */
static void
lead(SimProc *p, uint64_t seq)
{
	QcDirtyFile files[FILES_AT_ONCE];
	uint64_t	covered;
	uint64_t	later;
	bool		more;
	uint32_t	n = write_and_take(p, seq, files, &covered, &more);

	for (;;)
	{
		for (uint32_t i = 0; i < n; i++)
		{
			if (qc_ring_sync_file(&p->files, &files[i], &p->err) != QC_OK)
				sim_panic(p, "syncing the log");
		}
		if (!more)
			break;
		n = write_and_take(p, seq, files, &later, &more);
	}
	qc_ring_publish(p->server->ring, covered);
}

void
sim_flush(SimProc *p, uint64_t seq)
{
	SimServer  *server = p->server;

	while (qc_ring_durable(server->ring) < seq && !sim_world_failed(p->world))
	{
		/* Whoever holds the lock has perhaps done it for us. */
		if (server->sync_lock != NULL)
		{
			sim_pause(p);
			continue;
		}
		sim_lock(p, &server->sync_lock);
		lead(p, seq);
		sim_unlock(p, &server->sync_lock);
	}
}

void
sim_wal_flush_to(SimProc *p, uint64_t lsn)
{
	SimWal	   *wal = &p->world->wal;

	if (sim_wal_flushed(wal) >= lsn || !sim_wal_step(p))
		return;

	/* As XLogFlush does: what others have inserted meanwhile goes with it, all or some of it. */
	sim_wal_flush(wal, sim_chance(p->world, 50) ? sim_wal_end(wal) : lsn);
}

/* ---- entries ---- */

void
sim_wait_room(SimProc *p, const QcPlan *plan)
{
	while (!qc_plan_has_room(p->server->ring, plan) && !sim_world_failed(p->world))
	{
		if (!sim_write(p, p->server->st->seq))
			sim_panic(p, "writing the ring");
	}
}

static void
reserve(SimProc *p, QcPlan *plan)
{
	sim_wait_room(p, plan);
	qc_plan_reserve(p->server->st, p->server->ring, plan, p->world->config.segment, p->world->now,
					p->world->monotonic);
}

static void
fill(SimProc *p, QcPlan *plan)
{
	sim_pause(p);
	if (qc_plan_fill(p->server->st, p->server->ring, plan, &p->files, &p->err) != QC_OK)
		sim_panic(p, "filling an entry");
	sim_pause(p);
}

void
sim_append(SimProc *p, QcPlan *plan)
{
	reserve(p, plan);
	fill(p, plan);
}

void
sim_settle(SimProc *p, QcPlan *plan, bool committed, uint64_t lsn)
{
	qc_open_settle(p->server->st, QC_AT(p->server->st, QcOpen, plan->open), committed, lsn,
				   p->world->monotonic);
}

void
sim_settle_in_order(SimProc *p, const QcPlan *plan, uint64_t lsn, QcSmallPlan *order, SimDone done,
					void *context)
{
	QcWriter	w;

	sim_wait_room(p, &order->plan);
	w = qc_plan_small_writer(order);
	qc_plan_small_done(order, &w,
					   qc_order_put(p->server->st, plan, SIM_TIMELINE, lsn, &w));
	qc_plan_reserve(p->server->st, p->server->ring, &order->plan, p->world->config.segment,
					p->world->now, p->world->monotonic);
	done(context, p);
	fill(p, &order->plan);
	if (!QC_MUTATED(QC_MUTANT_ORDER_NOT_FLUSHED))
		sim_flush(p, order->plan.seq);
}

void
sim_append_in_wal(SimProc *p, QcPlan *plan)
{
	uint64_t	len = qc_plan_wal_size(plan);
	uint8_t    *body = sim_arena_take(&p->arena, (size_t) len);
	bool		own = sim_guard_reserve(p, plan);
	QcWriter	w;

	fill(p, plan);
	if (plan->flags & QC_ENTRY_REFERENCED)
		sim_flush(p, plan->seq);
	qc_writer_init(&w, body, (size_t) len);
	qc_plan_wal_put(p->server->st, plan, &w);
	assert(!w.full && w.len == len);
	(void) sim_wal_insert(&p->world->wal, SIM_WAL_QLOG, QC_WAL_ENTRY, plan->xid, 0, body, w.len);
	sim_pause(p);
	sim_guard_inserted(p, plan, own);
}

/* One try of an immediate entry; *reserved = it has its seq. */
static QcStatus
try_once(SimProc *p, QcSmallPlan *small, SimChoose choose_effects, SimDone done, void *context,
		 QcLack *lack, QcExtend *extend, bool *reserved)
{
	SimServer  *server = p->server;
	QcStatus	status = qc_plan_credit(server->st, server->ring, &small->plan,
										p->world->config.segment, lack, extend, &p->err);

	*reserved = false;
	if (status != QC_OK)
		return status;
	*reserved = choose_effects == NULL || choose_effects(context, p, small);
	if (!*reserved)
	{
		qc_plan_uncredit(server->st, &small->plan);
		return QC_OK;
	}
	reserve(p, &small->plan);
	if (done != NULL)
		done(context, p);
	fill(p, &small->plan);
	return QC_OK;
}

bool
sim_submit(SimProc *p, QcSmallPlan *small, SimChoose choose_effects, SimDone done, void *context)
{
	for (int i = 0; i < ROOM_TRIES; i++)
	{
		QcLack		lack;
		QcExtend	extend;
		bool		reserved;
		QcStatus	status = try_once(p, small, choose_effects, done, context, &lack, &extend,
									  &reserved);

		if (status == QC_BUSY)
			status = make_room(p, lack, &extend);
		else
			return status == QC_OK && reserved;
		if (status != QC_OK)
			return false;
	}
	return sim_world_fail(p->world, "no room comes free: deadlock");
}

bool
sim_submit_catalog(SimProc *p, QcEffectKind kind, const void *fixed)
{
	size_t		size = qc_effect_size(kind, fixed, 0);
	uint8_t    *bytes = sim_arena_take(&p->arena, size);
	QcOp		op = {.kind = QC_OP_EFFECT, .effect = bytes, .effect_len = size};
	QcPlan	   *plan = sim_arena_take(&p->arena, sizeof(QcPlan));
	QcWriter	w;

	qc_writer_init(&w, bytes, size);
	qc_effect_put(&w, kind, fixed, 0);
	if (sim_confirm_credit(p) != QC_OK ||
		qc_plan_build(plan, &op, 1, 0, QC_ENTRY_CARRIED, p->world->config.segment, sim_arena_alloc,
					  &p->arena, &p->err) != QC_OK)
		return false;
	plan->immediate = true;
	plan->pid = p->number;
	if (sim_credit(p, plan) != QC_OK)
		return false;
	sim_append_in_wal(p, plan);
	return true;
}

bool
sim_make_log(SimProc *p, uint64_t log)
{
	uint64_t	segment = p->world->config.segment;
	uint64_t	allocated = segment < QC_EXTEND_MIN ? segment : QC_EXTEND_MIN;

	if (qc_log_stays(p->server->st->shards, log))
		return true;
	if (qc_log_create_files(&p->files, log, allocated, &p->err) != QC_OK)
	{
		sim_broken(p, "creating a log");
		return false;
	}
	return qc_log_add(p->server->st, log, 1, QC_FILE_HEADER_SIZE, allocated, false) != NULL;
}
