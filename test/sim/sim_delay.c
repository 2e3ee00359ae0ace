/*
 * sim_delay.c
 *		Delayed messages of a simulated server: those that are due enter their partitions; clients take some back before.
 *
 * The steps of src/pg/wrk_delay.c, one message at a time, and fn_cancel.c.
 */
#include "sim_server.h"

#include "qc_delay.h"
#include "qc_frame.h"
#include "qc_lane.h"
#include "sim_payload.h"

#include <string.h>

#define PUT_OFF_US 20000
#define CLOCK_STEP 1000

/* The message of a lane, as it was pushed. */
static bool
read_delayed(SimProc *p, uint64_t lane_id, uint64_t position, SimSeen *seen)
{
	QcPartition *lane = qc_partition_by_id(p->server->st, lane_id);
	QcRef		hint = 0;
	SimPlace	place;

	if (lane == NULL)
		return false;
	sim_place(p->server->st, lane, position, 0, &hint, &place);
	return sim_write(p, p->server->st->seq) && sim_read(p, &place, seen);
}

/* The copy that enters the partition; its bytes tell which message it is. */
static void
put_copy(SimProc *p, const QcDelayed *delayed, uint64_t log, const SimSeen *seen, QcOp *op)
{
	uint32_t	size = SIM_PAYLOAD_MIN + 20;
	uint8_t    *data = sim_arena_take(&p->arena, size);
	uint8_t    *bytes = sim_arena_take(&p->arena, size + 128);
	uint8_t    *hash = sim_arena_take(&p->arena, QC_HASH_SIZE);
	QcMessage	message = {.flags = QC_FRAME_BINARY, .data = data, .data_len = size};
	QcWriter	frame;

	sim_payload_put(data, size, seen->txn, seen->index, false);
	memcpy(message.id, data, QC_ID_SIZE);
	qc_writer_init(&frame, bytes, size + 128);
	qc_frame_put(&frame, &message);
	qc_frame_hash(&message, hash);
	*op = (QcOp)
	{
		.kind = QC_OP_PUSH, .moved = true, .partition = delayed->target, .log = log, .count = 1,
		.frames = bytes, .frames_len = frame.len, .hashes = hash
	};
}

/* The effect that takes it out of its lane. */
static void
put_fire(SimProc *p, const QcDelayed *delayed, QcOp *op)
{
	QcFire		fire = {.lane = delayed->lane};
	QcFireItem	item = {.position = delayed->position};
	size_t		size = qc_effect_size(QC_EFFECT_FIRE, &fire, 1);
	uint8_t    *bytes = sim_arena_take(&p->arena, size);
	QcWriter	w;

	qc_writer_init(&w, bytes, size);
	qc_effect_put(&w, QC_EFFECT_FIRE, &fire, 1);
	qc_effect_put_item(&w, QC_EFFECT_FIRE, &item);
	*op = (QcOp)
	{
		.kind = QC_OP_EFFECT, .effect = bytes, .effect_len = size
	};
}

/* Log the move; false = not now. */
static bool
move(SimProc *p, const QcDelayed *delayed, uint64_t log, const SimSeen *seen)
{
	QcPlan	   *plan = sim_arena_take(&p->arena, sizeof(QcPlan));
	QcOp		ops[2];

	put_copy(p, delayed, log, seen, &ops[0]);
	put_fire(p, delayed, &ops[1]);
	if (qc_plan_build(plan, ops, 2, 0, 0, p->world->config.segment, sim_arena_alloc, &p->arena,
					  &p->err) != QC_OK)
		return false;
	plan->immediate = true;
	plan->pid = p->number;
	if (sim_credit(p, plan) != QC_OK)
		return false;
	sim_wait_room(p, plan);
	if (!qc_delay_waits(p->server->st, delayed->lane, delayed->position) ||
		qc_partition_by_id(p->server->st, delayed->target) == NULL)
	{
		qc_plan_uncredit(p->server->st, plan);
		return true;
	}
	sim_append(p, plan);
	return true;
}

bool
sim_move_delayed(SimProc *p)
{
	SimWorld   *w = p->world;
	QcState    *st = p->server->st;
	QcDelayed	delayed;
	SimSeen		seen;
	const QcQueue *queue;
	uint64_t	log;
	bool		moved = false;

	(void) qc_delay_clock(st, w->now, w->monotonic, CLOCK_STEP);
	if (w->crashed || sim_world_failed(w) || qc_delay_next(st, &delayed, 1) == 0)
		return false;
	log = qc_queue_by_id(st, delayed.queue)->log_id;
	if (read_delayed(p, delayed.lane, delayed.position, &seen))
		moved = move(p, &delayed, log, &seen);
	else
	{
		/* A dropped queue keeps none of its messages. */
		queue = qc_queue_by_id(st, delayed.queue);
		if (!w->allow_damage && !w->crashed && !sim_disk_failed(p) && queue != NULL &&
			queue->state == QC_QUEUE_LIVE && qc_delay_waits(st, delayed.lane, delayed.position))
			sim_broken(p, "reading a delayed message");
	}
	if (!moved)
		qc_delay_put_off(st, delayed.lane, delayed.position, w->monotonic + PUT_OFF_US, w->monotonic);
	return true;
}

/* ---- cancelling ---- */

typedef struct Cancel
{
	uint64_t	lane;
	uint64_t	position;
	uint32_t	message;		/* the oracle's number */
} Cancel;

/* SimChoose. */
static bool
choose_cancel(void *context, SimProc *p, QcSmallPlan *small)
{
	const Cancel *cancel = context;
	QcCancel	effect = {.lane = cancel->lane, .position = cancel->position};
	QcWriter	w;

	if (!qc_delay_waits(p->server->st, cancel->lane, cancel->position))
		return false;
	w = qc_plan_small_writer(small);
	qc_effect_put(&w, QC_EFFECT_CANCEL, &effect, 0);
	qc_plan_small_done(small, &w, 1);
	sim_oracle_cancels(p->world->oracle, cancel->message, false);
	return true;
}

void
sim_cancel(SimProc *p, uint32_t name)
{
	SimServer  *server = p->server;
	QcCancel	effect = {0};
	size_t		room = qc_effect_size(QC_EFFECT_CANCEL, &effect, 0);
	const QcQueue *queue = server->queues[name] == SIM_NONE ? NULL :
		qc_queue_by_id(server->st, p->world->oracle->queues[server->queues[name]].id);
	const QcPartition *lane = queue == NULL || queue->state != QC_QUEUE_LIVE || queue->damaged ? NULL :
		qc_delay_lane(server->st, queue);
	const QcLaneItem *item = lane == NULL ? NULL : QC_AT(server->st, QcLaneItem, lane->items.head);
	QcSmallPlan *small;
	Cancel		cancel;
	SimSeen		seen;

	if (item == NULL || item->state != QC_LANE_ITEM_LIVE)
		return;
	cancel.lane = lane->id;
	cancel.position = item->position;
	if (!read_delayed(p, cancel.lane, cancel.position, &seen))
		return;
	cancel.message = sim_oracle_find(p->world->oracle, seen.txn, seen.index);
	small = sim_arena_take(&p->arena, sizeof(QcSmallPlan));
	qc_plan_small(small, sim_arena_take(&p->arena, QC_SMALL_BUFFER(room)), room);
	if (cancel.message == SIM_NONE || !sim_submit(p, small, choose_cancel, NULL, &cancel))
		return;
	sim_flush(p, small->plan.seq);
	sim_oracle_cancels(p->world->oracle, cancel.message, true);
}
