/*
 * machine.c
 *		The state machine without files.
 */
#include "machine.h"

#include <stdlib.h>
#include <string.h>

#include "qc_log.h"

#define SEGMENT		(64u << 20)
#define RING_BYTES	(8u << 20)
#define STATE_BYTES (8u << 20)

static void *
take(void *context, size_t size)
{
	Machine    *m = context;

	if (m->nmemory == sizeof(m->memory) / sizeof(m->memory[0]))
		abort();
	return m->memory[m->nmemory++] = malloc(size == 0 ? 1 : size);
}

static void
give_back(Machine *m)
{
	while (m->nmemory > 0)
		free(m->memory[--m->nmemory]);
	m->nops = 0;
}

static void
lay_out(Machine *m)
{
	m->state_block = malloc(qc_state_size(&m->config));
	m->st = qc_state_init(m->state_block, &m->config);
}

void
machine_begin_small(Machine *m, uint64_t state_bytes)
{
	memset(m, 0, sizeof(*m));
	m->config = (QcStateConfig)
	{
		.state_bytes = state_bytes, .index_bytes = 4u << 20,
		.dedup_bytes = 64u << 10
	};
	m->now = 1000000000;
	m->monotonic = 5000000;
	lay_out(m);
	m->ring_block = malloc(qc_ring_block_size(RING_BYTES));
	m->ring = qc_ring_init(m->ring_block, RING_BYTES, 0);
	if (qc_log_add(m->st, 0, 1, QC_FILE_HEADER_SIZE, SEGMENT, false) == NULL)
		abort();
}

void
machine_begin(Machine *m)
{
	machine_begin_small(m, STATE_BYTES);
}

void
machine_end(Machine *m)
{
	give_back(m);
	rows_free(&m->rows);
	free(m->state_block);
	free(m->ring_block);
}

static QcOp *
add_op(Machine *m, QcOpKind kind)
{
	if (m->nops == MACHINE_OPS)
		abort();
	m->ops[m->nops] = (QcOp)
	{
		.kind = kind
	};
	return &m->ops[m->nops++];
}

/* Frames of count messages. */
static void
put_frames(Machine *m, QcOp *op, uint32_t count)
{
	static const uint8_t data[] = "{}";
	static uint8_t counter;
	QcMessage	message = {.data = data, .data_len = sizeof(data) - 1};
	size_t		size = (size_t) qc_frame_size(&message);
	uint8_t    *frames = take(m, size * count);
	uint8_t    *hashes = take(m, (size_t) count * QC_HASH_SIZE);
	QcWriter	w;

	qc_writer_init(&w, frames, size * count);
	for (uint32_t i = 0; i < count; i++)
	{
		message.id[0] = ++counter;
		qc_frame_put(&w, &message);
		qc_frame_hash(&message, hashes + (size_t) i * QC_HASH_SIZE);
	}
	op->count = count;
	op->frames = frames;
	op->frames_len = w.len;
	op->hashes = hashes;
}

void
machine_op_push(Machine *m, uint64_t partition, uint64_t log, uint32_t count)
{
	QcOp	   *op = add_op(m, QC_OP_PUSH);

	op->partition = partition;
	op->log = log;
	put_frames(m, op, count);
}

void
machine_op_delay(Machine *m, uint64_t lane, uint64_t log, uint32_t count, uint64_t target,
				 int64_t due)
{
	QcOp	   *op = add_op(m, QC_OP_DELAY);

	op->partition = lane;
	op->log = log;
	op->delay.partition = target;
	op->delay.due = due;
	put_frames(m, op, count);
}

void
machine_op_dead(Machine *m, const QcDead *dead, uint64_t log)
{
	QcOp	   *op = add_op(m, QC_OP_DEAD);

	op->partition = dead->lane;
	op->log = log;
	op->dead = *dead;
	put_frames(m, op, 1);
}

void
machine_op_effect(Machine *m, QcEffectKind kind, const void *fixed, const void *items,
				  size_t item_size, uint32_t nitems)
{
	QcOp	   *op = add_op(m, QC_OP_EFFECT);
	size_t		size = qc_effect_size(kind, fixed, nitems);
	uint8_t    *bytes = take(m, size);
	QcWriter	w;

	qc_writer_init(&w, bytes, size);
	qc_effect_put(&w, kind, fixed, nitems);
	for (uint32_t i = 0; i < nitems; i++)
		qc_effect_put_item(&w, kind, (const uint8_t *) items + i * item_size);
	op->effect = bytes;
	op->effect_len = w.len;
}

/* Needs that no effect tells by itself: what a delivery makes. */
static void
add_needs(const Machine *m, QcPlan *plan)
{
	for (uint32_t i = 0; i < m->nops; i++)
	{
		QcReader	r;
		QcEffect	effect;

		if (m->ops[i].kind != QC_OP_EFFECT)
			continue;
		qc_reader_init(&r, m->ops[i].effect, m->ops[i].effect_len);
		if (qc_effect_get(&r, &effect, NULL) != QC_OK || effect.kind != QC_EFFECT_DELIVER)
			continue;
		plan->needs.nleases++;
		for (uint32_t k = 0; k < effect.nitems; k++)
		{
			QcDeliverItem item;

			qc_effect_item(&effect, k, &item);
			plan->needs.nslots += item.count;
		}
	}
}

/* There are no files: a log grows by saying so, the ring is written out by forgetting it. */
static void
make_room(Machine *m, QcLack lack, const QcExtend *extend)
{
	if (lack == QC_LACK_LOG)
		qc_log_extended(m->st, extend, SEGMENT);
	else
		atomic_store(&m->ring->written, atomic_load(&m->ring->head));
}

QcOpen *
machine_log(Machine *m, uint64_t xid, bool immediate, QcStatus *status)
{
	QcPlan		plan;
	QcLack		lack;
	QcExtend	extend;
	QcRef		open = 0;
	QcStatus	result;

	result = qc_plan_build(&plan, m->ops, m->nops, xid, xid == 0 ? 0 : QC_ENTRY_CARRIED, SEGMENT,
						   take, m, &m->err);
	plan.immediate = immediate;
	add_needs(m, &plan);
	while (result == QC_OK &&
		   (result = qc_plan_credit(m->st, m->ring, &plan, SEGMENT, &lack, &extend, &m->err)) == QC_BUSY)
	{
		make_room(m, lack, &extend);
		result = QC_OK;
	}
	if (result == QC_OK)
	{
		qc_plan_reserve(m->st, m->ring, &plan, SEGMENT, m->now, m->monotonic);
		open = plan.open;
	}
	if (status != NULL)
		*status = result;
	else if (!CHECK_U64(result, QC_OK))
		(void) CHECK_STR(m->err.text, "");
	give_back(m);
	return QC_AT(m->st, QcOpen, open);
}

void
machine_settle(Machine *m, QcOpen *open, bool committed)
{
	qc_open_settle(m->st, open, committed, open->xid == 0 ? 0 : m->st->seq, m->monotonic);
}

/* Log what was put together and settle it. */
static void
log_settled(Machine *m)
{
	QcOpen	   *open = machine_log(m, 0, false, NULL);

	if (open != NULL)
		machine_settle(m, open, true);
}

void
machine_queue(Machine *m, uint64_t queue, const QcOptions *options)
{
	uint8_t		bytes[QC_OPTIONS_ENCODED_MAX];
	QcQueueCreate create = {.queue = queue, .database = 5, .owner = 10, .log = queue,
		.default_partition = 100 + queue};
	char		name[32];
	QcWriter	w;

	qc_writer_init(&w, bytes, sizeof(bytes));
	if (options != NULL)
		qc_options_put(&w, options);
	create.options.bytes = bytes;
	create.options.len = (uint16_t) w.len;
	create.name.bytes = (const uint8_t *) name;
	create.name.len = (uint16_t) snprintf(name, sizeof(name), "queue %llu",
										  (unsigned long long) queue);
	if (qc_log_add(m->st, queue, 1, QC_FILE_HEADER_SIZE, SEGMENT, false) == NULL)
		abort();
	machine_op_effect(m, QC_EFFECT_QUEUE_CREATE, &create, NULL, 0, 0);
	log_settled(m);
}

void
machine_partition(Machine *m, uint64_t queue, uint64_t partition, const char *name, uint8_t lane)
{
	QcPartitionCreate create = {.partition = partition, .queue = queue, .lane = lane};

	create.name.bytes = (const uint8_t *) name;
	create.name.len = (uint16_t) strlen(name);
	machine_op_effect(m, QC_EFFECT_PARTITION_CREATE, &create, NULL, 0, 0);
	(void) machine_log(m, 0, true, NULL);
}

void
machine_push(Machine *m, uint64_t queue, uint64_t partition, uint32_t count)
{
	machine_op_push(m, partition, queue, count);
	log_settled(m);
}

uint32_t
machine_pop(Machine *m, uint64_t queue, uint64_t partition, uint64_t lease, uint32_t batch,
			bool committed)
{
	QcDeliver	deliver = {.lease = lease, .queue = queue, .group = QC_DEFAULT_GROUP,
		.lease_us = 60 * QC_SECOND};
	QcPopCommit commit = {.lease = lease};
	QcPopRequest request = {.batch = batch, .max_partitions = 1};
	QcRun		runs[64];
	QcDeliverItem items[64];
	uint32_t	nruns;
	uint32_t	n;

	request.queue = qc_queue_by_id(m->st, queue);
	request.group = qc_group_by_id(m->st, request.queue, QC_DEFAULT_GROUP);
	request.partition = partition == 0 ? NULL : qc_partition_by_id(m->st, partition);
	n = qc_pop_choose(m->st, &request, runs, 64, &nruns);
	if (n == 0)
		return 0;
	for (uint32_t i = 0; i < nruns; i++)
		items[i] = (QcDeliverItem)
	{
		.partition = runs[i].partition, .first = runs[i].first,
		.count = runs[i].count, .attempt = runs[i].attempt
	};
	machine_op_effect(m, QC_EFFECT_DELIVER, &deliver, items, sizeof(items[0]), nruns);
	(void) machine_log(m, 0, true, NULL);
	if (committed)
	{
		machine_op_effect(m, QC_EFFECT_POP_COMMIT, &commit, NULL, 0, 0);
		(void) machine_log(m, 0, true, NULL);
	}
	return n;
}

void
machine_ack(Machine *m, uint64_t lease, uint64_t partition, uint64_t first, uint32_t count)
{
	QcAck		ack = {.lease = lease, .group = QC_DEFAULT_GROUP};
	QcAckItem	item = {.partition = partition, .first = first, .count = count};

	machine_op_effect(m, QC_EFFECT_ACK, &ack, &item, sizeof(item), 1);
	log_settled(m);
}

QcSlot *
machine_slot(Machine *m, uint64_t partition, uint64_t position)
{
	QcPartition *object = qc_partition_by_id(m->st, partition);
	QcQueue    *queue = QC_AT(m->st, QcQueue, object->queue);
	QcCursor   *cursor = qc_cursor_of(m->st, object,
									  qc_group_by_id(m->st, queue, QC_DEFAULT_GROUP));

	return qc_cursor_slot(m->st, cursor, position);
}

void
machine_load(Machine *m)
{
	free(m->state_block);
	lay_out(m);
	for (size_t i = 0; i < m->rows.count; i++)
	{
		const Row  *row = &m->rows.rows[i];

		if (!CHECK_U64(qc_rows_load(m->st, row->key, row->key_len, row->key + row->key_len,
									row->value_len, &m->err), QC_OK))
			(void) CHECK_STR(m->err.text, "");
	}
	CHECK_U64(qc_rows_loaded(m->st, m->now, m->monotonic, &m->err), QC_OK);

	/* files are as recovery would find them */
	for (QcLog *log = QC_AT(m->st, QcLog, m->st->logs); log != NULL;
		 log = QC_AT(m->st, QcLog, log->next))
		log->allocated = log->last_allocated = SEGMENT;
}

void
machine_reload(Machine *m)
{
	rows_take(&m->rows, m->st);
	machine_load(m);
}
