/*
 * sim_push.c
 *		What transactions of a simulated client push to: queues and partitions, made when they are not there, and messages.
 */
#include "sim_work.h"

#include "qc_delay.h"
#include "qc_frame.h"
#include "sim_payload.h"

#include <assert.h>
#include <string.h>

#define BATCH_MAX		20

/* ---- names ---- */

/* Take the name's lock without waiting: who would wait might wait for ever. */
bool
sim_lock_name(SimWork *work, uint32_t name)
{
	SimProc   **lock = &work->server->name_locks[name];

	if (*lock == work->p)
		return work->name == name;
	if (*lock != NULL || work->name != SIM_NONE)
		return false;
	*lock = work->p;
	work->name = name;
	return true;
}

void
sim_unlock_name(SimWork *work)
{
	if (work->name != SIM_NONE)
		work->server->name_locks[work->name] = NULL;
	work->name = SIM_NONE;
}

/* How long queues of this name keep messages, where that is simulated. */
SimKeep
sim_keep(uint32_t name)
{
	SimKeep		keep = {QC_FOREVER, 0};

	if (name % 4 == 1)
		keep.unread_us = 600 * QC_SECOND;
	if (name % 4 == 2)
		keep.read_us = 300 * QC_SECOND;
	return keep;
}

/* Options of a new queue, encoded; work->limit is what it allows. */
QcStr
sim_queue_options(SimWork *work, uint32_t name, bool ordered, int32_t limit)
{
	uint8_t    *encoded = sim_arena_take(&work->p->arena, QC_OPTIONS_ENCODED_MAX);
	QcOptions	options;
	QcWriter	writer;

	qc_options_default(&options);
	options.set = 1u << QC_OPT_ORDERED | 1u << QC_OPT_RETRY_LIMIT | 1u << QC_OPT_RETRY_DELAY;
	options.value[QC_OPT_ORDERED] = ordered;
	options.value[QC_OPT_RETRY_LIMIT] = limit;
	if (work->w->config.ages)
	{
		SimKeep		keep = sim_keep(name);

		options.set |= 1u << QC_OPT_RETENTION | 1u << QC_OPT_CONSUMED_RETENTION;
		options.value[QC_OPT_RETENTION] = keep.unread_us;
		options.value[QC_OPT_CONSUMED_RETENTION] = keep.read_us;
	}
	options.value[QC_OPT_RETRY_DELAY] = sim_chance(work->w, 50) ? 0 : (int64_t) sim_below(work->w, 50000);
	qc_writer_init(&writer, encoded, QC_OPTIONS_ENCODED_MAX);
	qc_options_put(&writer, &options);
	return (QcStr) {encoded, (uint16_t) writer.len};
}

/* Ids, name and options of a new queue. */
QcQueueCreate
sim_new_queue(SimWork *work, uint32_t name, bool ordered)
{
	QcState    *st = work->server->st;
	QcQueueCreate create = {.database = SIM_DATABASE, .owner = 1};

	create.queue = st->next_queue_id++;
	create.default_partition = st->next_partition_id++;
	create.log = qc_log_of_queue(st->shards, create.queue);
	create.name = sim_queue_name(name);
	work->limit = sim_chance(work->w, 40) ? -1 : (int32_t) sim_below(work->w, 4);
	create.options = sim_queue_options(work, name, ordered, work->limit);
	return create;
}

/* A queue that a push makes on its way. */
bool
sim_auto_create(SimWork *work, uint32_t name)
{
	SimServer  *server = work->server;
	SimOracle  *o = work->w->oracle;
	QcQueueCreate create;
	uint32_t	number;
	bool		made;

	if (!sim_lock_name(work, name))
		return false;
	create = sim_new_queue(work, name, false);
	if (!sim_make_log(work->p, create.log))
		return false;
	number = sim_oracle_queue(o, name, create.queue, false, work->limit, SIM_AUTO);
	made = sim_submit_catalog(work->p, QC_EFFECT_QUEUE_CREATE, &create);
	if (made)
		server->queues[name] = number;
	else
	{
		qc_log_abandon(server->st, qc_log_by_id(server->st, create.log));
		o->queues[number].gone = true;
	}
	if (!work->catalog)
		sim_unlock_name(work);
	return made;
}

/* The partition with this id comes to be while nobody drops its queue. */
bool
sim_make_partition(SimWork *work, uint32_t name, QcPartitionCreate *create)
{
	bool		had = work->name == name;
	bool		made;

	if (!sim_lock_name(work, name))
		return false;
	made = qc_queue_by_id(work->server->st, create->queue) != NULL &&
		qc_queue_by_id(work->server->st, create->queue)->state == QC_QUEUE_LIVE;
	create->partition = work->server->st->next_partition_id++;
	if (made)
	{
		work->server->making[name] = true;
		made = sim_submit_catalog(work->p, QC_EFFECT_PARTITION_CREATE, create);
		work->server->making[name] = false;
	}
	if (!had)
		sim_unlock_name(work);
	return made;
}

/* The queue of this name for others, as the state knows it now; what is being made in it is waited for. */
QcQueue *
sim_find_queue(const SimWork *work, uint32_t name)
{
	uint32_t	number;

	while (work->server->making[name])
		sim_pause(work->p);
	number = work->server->queues[name];
	return number == SIM_NONE ? NULL :
		qc_queue_by_id(work->server->st, work->w->oracle->queues[number].id);
}

/* ---- staging ---- */

bool
sim_find_partition(SimWork *work, uint32_t name, uint32_t partition, SimTarget *target)
{
	QcState    *st = work->server->st;
	const QcQueue *queue = sim_find_queue(work, name);
	QcPartitionCreate create = {.lane = QC_LANE_NONE, .name = sim_partition_name(partition)};
	const QcPartition *found;

	if (queue == NULL || queue->state != QC_QUEUE_LIVE || queue->damaged)
		return false;
	*target = (SimTarget)
	{
		.queue = work->server->queues[name], .partition = partition,
		.id = queue->default_partition_id, .log = queue->log_id
	};
	if (partition == 0)
		return true;
	found = qc_partition_by_name(st, queue, (const char *) create.name.bytes, create.name.len);
	create.queue = queue->id;
	if (found == NULL && !sim_make_partition(work, name, &create))
		return false;
	target->id = found != NULL ? found->id : create.partition;
	return true;
}

/* Somewhere to push to; queue and partition are made when they are not there. */
static bool
choose_target(SimWork *work, SimTarget *target)
{
	SimWorld   *w = work->w;
	uint32_t	name = (uint32_t) sim_below(w, w->config.names);
	uint32_t	partition = (uint32_t) sim_below(w, w->config.partitions);

	/* What this transaction drops is no place to push to any more. */
	if (name == work->name && work->dropped != SIM_NONE)
		return false;
	if (work->created != SIM_NONE && (name == work->name || sim_chance(w, 50)))
	{
		*target = (SimTarget)
		{
			.queue = work->created, .id = work->create.default_partition, .log = work->create.log
		};
		return true;
	}
	if (work->server->queues[name] == SIM_NONE && !sim_auto_create(work, name))
		return false;
	return sim_find_partition(work, name, partition, target);
}

/* Bytes of a message. */
static uint32_t
choose_size(SimWorld *w)
{
	uint64_t	most = w->config.segment / 2 - 400;

	if (most > 40000)
		most = 40000;
	if (sim_chance(w, w->config.large))
		return SIM_PAYLOAD_MIN + (uint32_t) sim_below(w, most);
	return SIM_PAYLOAD_MIN + (uint32_t) sim_below(w, 300);
}

/* Stage a push of some messages; nothing else of this oracle's transaction may come in between. */
void
sim_stage_push(SimWork *work, const SimTarget *target)
{
	SimWorld   *w = work->w;
	uint32_t	count = 1 + (uint32_t) (sim_chance(w, 70) ? 0 : sim_below(w, BATCH_MAX));
	bool		compressible = !sim_chance(w, w->config.noise);
	uint32_t	size = choose_size(w);
	uint32_t	batch = w->oracle->nmessages;
	uint64_t	room = w->config.segment > 2 * QC_RECORD_RAW_TARGET ? w->config.segment :
		w->config.segment / 2 - 200;
	size_t		cap;
	QcWriter	frames;
	uint8_t    *hashes;
	uint8_t    *data;

	while (count > 1 && (uint64_t) count * (size + 80) > room)
		count--;
	cap = (size_t) count * (size + 64);
	qc_writer_init(&frames, sim_arena_take(&work->p->arena, cap), cap);
	hashes = sim_arena_take(&work->p->arena, (size_t) count * QC_HASH_SIZE);
	data = sim_arena_take(&work->p->arena, size);
	for (uint32_t i = 0; i < count; i++)
	{
		QcMessage	message = {.flags = QC_FRAME_BINARY, .data = data, .data_len = size};

		sim_payload_put(data, size, work->txn, work->nmessages++, compressible);
		memcpy(message.id, data, QC_ID_SIZE);
		qc_frame_put(&frames, &message);
		qc_frame_hash(&message, hashes + (size_t) i * QC_HASH_SIZE);
		sim_oracle_sized(w->oracle, sim_oracle_push(w->oracle, work->txn, target->queue, target->partition, target->due),
						 size, batch, w->now);
	}
	assert(!frames.full);
	work->bytes += frames.len;
	work->ops[work->nops++] = (QcOp)
	{
		.kind = QC_OP_PUSH, .partition = target->id, .log = target->log, .count = count,
		.frames = frames.buf, .frames_len = frames.len, .hashes = hashes,
		.level = sim_chance(w, 50) ? 1 : 0
	};
	if (target->lane == 0)
		return;
	work->ops[work->nops - 1].kind = QC_OP_DELAY;
	work->ops[work->nops - 1].partition = target->lane;
	work->ops[work->nops - 1].delay.partition = target->id;
	work->ops[work->nops - 1].delay.due = target->due;
}

/* Messages for later: into the delay lane of the queue, which is made when it is not there. */
static void
delay_target(SimWork *work, SimTarget *target)
{
	const QcQueue *queue = qc_queue_by_id(work->server->st, work->w->oracle->queues[target->queue].id);
	const QcPartition *lane = queue == NULL ? NULL : qc_delay_lane(work->server->st, queue);
	QcPartitionCreate create = {.lane = QC_LANE_DELAY, .name = {(const uint8_t *) "\001delay", 6}};

	if (queue == NULL || target->queue == work->created)
		return;
	create.queue = queue->id;
	if (lane != NULL)
		target->lane = lane->id;
	else if (sim_make_partition(work, work->w->oracle->queues[target->queue].name, &create))
		target->lane = create.partition;
	if (target->lane != 0)
		target->due = work->w->now + 1 + (int64_t) sim_below(work->w, 1u << sim_below(work->w, 20));
}

/* All pushes of the transaction: first find the targets, during which others run, then stage. */
void
sim_stage_pushes(SimWork *work)
{
	SimWorld   *w = work->w;
	SimTarget	targets[SIM_PUSHES_MAX];
	uint32_t	want = sim_chance(w, w->config.several) ? 2 + (uint32_t) sim_below(w, SIM_PUSHES_MAX - 1) : 1;
	uint32_t	n = 0;

	for (uint32_t i = 0; i < want; i++)
	{
		if (!choose_target(work, &targets[n]))
			continue;
		if (sim_chance(w, w->config.delay))
			delay_target(work, &targets[n]);
		n++;
	}
	for (uint32_t i = 0; i < n; i++)
		sim_stage_push(work, &targets[i]);
}
