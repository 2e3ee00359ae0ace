/*
 * sim_dying.c
 *		Messages of a simulated server that have come back too often go to the dead letters.
 *
 * The steps of src/pg/wrk_dying.c and qlog_death.c, one message at a time.
 */
#include "sim_server.h"

#include "qc_cursor.h"
#include "qc_purge.h"
#include "sim_payload.h"

#include <string.h>

#define PUT_OFF_US 20000

/* A dying message, as it was looked at. */
typedef struct Dying
{
	uint64_t	queue;
	uint64_t	group;
	uint32_t	number;			/* of the group */
	uint64_t	lane;			/* 0 = none yet */
	uint64_t	log;
	uint8_t		cause;
	SimPlace	place;
} Dying;

/* Look at the first one; false = there is none that can go now. */
static bool
look(SimProc *p, Dying *dying)
{
	QcState    *st = p->server->st;
	QcRef		ref;

	while ((ref = st->dying.head) != 0)
	{
		QcSlot	   *slot = QC_AT(st, QcSlot, ref);
		const QcCursor *cursor = QC_AT(st, QcCursor, slot->cursor);
		QcPartition *partition = QC_AT(st, QcPartition, cursor->partition);
		const QcQueue *queue = QC_AT(st, QcQueue, partition->queue);
		const QcGroup *group = QC_AT(st, QcGroup, cursor->group);

		if (qc_partition_stale(st, partition))
			qc_partition_touch(st, partition);
		else if (!qc_queue_exhausted(queue, slot->attempt))
			qc_slot_revive(st, slot);
		else if (queue->state != QC_QUEUE_LIVE || queue->damaged || group->state != QC_GROUP_LIVE)
		{
			if (!qc_slot_defer(st, slot, PUT_OFF_US, p->world->monotonic))
				return false;
		}
		else
		{
			dying->queue = queue->id;
			dying->group = group->id;
			dying->number = sim_name_number(qc_name_at(st, group->name), group->name_len);
			dying->lane = group->dead_partition;
			dying->log = queue->log_id;
			dying->cause = slot->cause;
			sim_place(st, partition, slot->position, slot->attempt, &slot->hint, &dying->place);
			return true;
		}
	}
	return false;
}

/* Is it still the first one, and everything as it was? */
static bool
still_dying(SimProc *p, const Dying *dying)
{
	QcState    *st = p->server->st;
	const QcSlot *slot = QC_AT(st, QcSlot, st->dying.head);
	const QcCursor *cursor = slot == NULL ? NULL : QC_AT(st, QcCursor, slot->cursor);
	const QcPartition *partition = cursor == NULL ? NULL : QC_AT(st, QcPartition, cursor->partition);
	const QcQueue *queue = partition == NULL ? NULL : QC_AT(st, QcQueue, partition->queue);
	const QcGroup *group = cursor == NULL ? NULL : QC_AT(st, QcGroup, cursor->group);

	return slot != NULL && slot->position == dying->place.position &&
		slot->attempt == dying->place.attempt && partition->id == dying->place.partition &&
		queue->state == QC_QUEUE_LIVE && !queue->damaged && group->id == dying->group &&
		group->dead_partition == dying->lane && !qc_partition_stale(st, partition);
}

/* Put the first one off, when it is still this one. */
static void
put_off(SimProc *p, const Dying *dying)
{
	if (still_dying(p, dying))
		(void) qc_slot_defer(p->server->st, QC_AT(p->server->st, QcSlot, p->server->st->dying.head),
							 PUT_OFF_US, p->world->monotonic);
}

/* The lane of the group, unless somebody is changing the queue. */
static bool
make_lane(SimProc *p, const Dying *dying)
{
	SimServer  *server = p->server;
	const QcQueue *queue = qc_queue_by_id(server->st, dying->queue);
	uint32_t	name = sim_name_number(qc_name_at(server->st, queue->name), queue->name_len);
	QcPartitionCreate create = {.queue = dying->queue, .lane = QC_LANE_DEAD, .group = dying->group,
		.name = {(const uint8_t *) "*", 1}};
	bool		made;

	if (server->name_locks[name] != NULL || server->group_locks[name][dying->number] != NULL)
		return false;
	server->name_locks[name] = server->group_locks[name][dying->number] = p;
	server->making[name] = true;
	create.partition = server->st->next_partition_id++;
	made = sim_submit_catalog(p, QC_EFFECT_PARTITION_CREATE, &create);
	sim_confirm_release(p);
	server->making[name] = false;
	server->name_locks[name] = server->group_locks[name][dying->number] = NULL;
	return made;
}

/* The letter as an operation; its bytes tell which message it is. */
static void
put_letter(SimProc *p, const Dying *dying, const SimSeen *seen, QcOp *op)
{
	uint32_t	size = SIM_PAYLOAD_MIN + 20;
	uint8_t    *data = sim_arena_take(&p->arena, size);
	uint8_t    *bytes = sim_arena_take(&p->arena, size + 128);
	uint8_t    *hash = sim_arena_take(&p->arena, QC_HASH_SIZE);
	QcMessage	message = {.flags = QC_FRAME_BINARY | QC_FRAME_DEAD, .data = data, .data_len = size};
	QcWriter	frame;

	sim_payload_put(data, size, seen->txn, seen->index, false);
	memcpy(message.id, data, QC_ID_SIZE);
	qc_writer_init(&frame, bytes, size + 128);
	qc_frame_put(&frame, &message);
	qc_frame_hash(&message, hash);
	*op = (QcOp)
	{
		.kind = QC_OP_DEAD, .partition = dying->lane, .log = dying->log, .count = 1,
		.frames = bytes, .frames_len = frame.len, .hashes = hash,
		.dead =
		{
		.group = dying->group, .partition = dying->place.partition,
				.position = dying->place.position, .attempt = dying->place.attempt,
				.cause = dying->cause
		}
	};
}

/* Log the move; false = not now. */
static bool
bury(SimProc *p, const Dying *dying, const SimSeen *seen)
{
	QcPlan	   *plan = sim_arena_take(&p->arena, sizeof(QcPlan));
	QcOp		op;

	put_letter(p, dying, seen, &op);
	if (qc_plan_build(plan, &op, 1, 0, 0, p->world->config.segment, sim_arena_alloc, &p->arena,
					  &p->err) != QC_OK)
		return false;
	plan->immediate = true;
	plan->pid = p->number;
	if (sim_credit(p, plan) != QC_OK)
		return false;
	sim_wait_room(p, plan);
	if (!still_dying(p, dying))
	{
		qc_plan_uncredit(p->server->st, plan);
		return true;
	}
	(void) sim_oracle_died(p->world->oracle, seen);
	sim_append(p, plan);
	return true;
}

bool
sim_move_dying(SimProc *p)
{
	SimWorld   *w = p->world;
	Dying		dying;
	SimSeen		seen;
	bool		moved;

	if (w->crashed || sim_world_failed(w) || !look(p, &dying))
		return false;
	if (dying.lane == 0)
		moved = make_lane(p, &dying);
	else if (sim_read(p, &dying.place, &seen))
	{
		seen.group = dying.number;
		moved = bury(p, &dying, &seen);
	}
	else
	{
		moved = false;
		if (!w->allow_damage && !w->crashed && !sim_disk_failed(p))
			sim_broken(p, "reading a message that dies");
	}
	if (!moved)
		put_off(p, &dying);
	return moved;
}
