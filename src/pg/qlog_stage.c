/*
 * qlog_stage.c
 *		Lists of staged operations and the stack of subtransaction levels over them.
 *
 * Frames, hashes and effects stand in arenas: rows of chunks that are filled from the front and cut from the back.
 * A push to the same partition as the one before it, in the same subtransaction, only makes that operation longer,
 * so a batch of messages is one operation.  Each arena keeps one chunk between transactions: blocks of this size would
 * otherwise go back to the kernel, and come from it page by page, with every transaction.
 */
#include "qlog_stage.h"

#include "access/xact.h"
#include "utils/memutils.h"

#include "qlog_guc.h"
#include "qlog_hold.h"
#include "qlog_spread.h"

#include "../core/qc_record.h"

#define CONTEXT_SIZE	32768	/* kept between transactions */
#define CHUNK_MIN		4096
#define CHUNK_MAX		(1024 * 1024)
#define CHUNK_KEPT		(256 * 1024)	/* largest one that is kept between transactions */

typedef struct Chunk
{
	struct Chunk *previous;
	size_t		size;
	size_t		used;
	/* bytes follow */
} Chunk;

#define CHUNK_BYTES(chunk) ((uint8 *) ((chunk) + 1))

typedef struct Arena
{
	Chunk	   *top;
	size_t		first_size;		/* of the first chunk; each next one is twice as large */
} Arena;

/* Where a list stood when a subtransaction staged its first thing. */
typedef struct Mark
{
	Chunk	   *chunk;
	size_t		used;
} Mark;

typedef struct Level
{
	int			nest_level;
	uint32		nops;
	uint32		ndone;
	uint32		ntaken;
	uint32		ndedups;
	uint32		nchanges;
	uint32		ngroups;
	uint32		nholds;
	uint32		npartitions;
	uint64		bytes;
	uint64		effect_bytes;
	Mark		frames;
	Mark		hashes;
} Level;

QlogStage	qlog_stage;

static MemoryContext context;
static bool context_used;
static MemoryContext arena_context; /* of all chunks, made with the first one */
static Arena frames = {NULL, CHUNK_MIN};
static Arena hashes = {NULL, CHUNK_MIN / 4};
static Arena plans = {NULL, CHUNK_MIN};
static Level *levels;
static uint32 nlevels;
static uint32 maxlevels;

MemoryContext
qlog_stage_context(void)
{
	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "qlog transaction", 0, CONTEXT_SIZE,
										ALLOCSET_DEFAULT_MAXSIZE);
	context_used = true;
	return context;
}

/* Room for one more element in an array of n; returns the array. */
static void *
grow(void *array, uint32 n, uint32 *max, size_t size, uint32 first)
{
	if (n < *max)
		return array;
	if (array == NULL)
	{
		array = MemoryContextAlloc(qlog_stage_context(), first * size);
		*max = first;
		return array;
	}
	array = repalloc_huge(array, (Size) *max * 2 * size);
	*max *= 2;
	return array;
}

/* Could size bytes be put directly behind `end`? */
static bool
arena_follows(const Arena *arena, const uint8 *end, size_t size)
{
	const Chunk *top = arena->top;

	return top != NULL && end == CHUNK_BYTES(top) + top->used && size <= top->size - top->used;
}

/* A chunk on top of the arena that has room for size bytes; NULL = no memory. */
static Chunk *
arena_grow(Arena *arena, size_t size)
{
	Chunk	   *top = arena->top;
	size_t		next = top == NULL ? arena->first_size : Min(top->size * 2, CHUNK_MAX);
	Chunk	   *chunk;

	/* Raises at most for the first operation ever staged, never for a plan. */
	if (arena_context == NULL)
		arena_context = AllocSetContextCreate(TopMemoryContext, "qlog staged", ALLOCSET_SMALL_SIZES);
	next = Max(next, size);
	chunk = MemoryContextAllocExtended(arena_context, sizeof(Chunk) + next,
									   MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (chunk == NULL)
		return NULL;
	chunk->previous = top;
	chunk->size = next;
	chunk->used = 0;
	arena->top = chunk;
	return chunk;
}

/* NULL = no memory. */
static uint8 *
arena_try(Arena *arena, size_t size)
{
	Chunk	   *top = arena->top;
	uint8	   *bytes;

	if (top == NULL || size > top->size - top->used)
		top = arena_grow(arena, size);
	if (top == NULL)
		return NULL;
	bytes = CHUNK_BYTES(top) + top->used;
	top->used += size;
	return bytes;
}

static uint8 *
arena_take(Arena *arena, size_t size)
{
	uint8	   *bytes = arena_try(arena, size);

	if (bytes == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Queue work of the transaction needs %zu bytes more.", size)));
	return bytes;
}

static Mark
arena_mark(const Arena *arena)
{
	Mark		mark = {arena->top, arena->top == NULL ? 0 : arena->top->used};

	return mark;
}

static void
arena_cut(Arena *arena, Mark mark)
{
	while (arena->top != mark.chunk)
	{
		Chunk	   *chunk = arena->top;

		arena->top = chunk->previous;
		pfree(chunk);
	}
	if (mark.chunk != NULL)
		mark.chunk->used = mark.used;
}

/* Empty the arena; its newest chunk that is not too large stays. */
static void
arena_reset(Arena *arena)
{
	while (arena->top != NULL && (arena->top->previous != NULL || arena->top->size > CHUNK_KEPT))
	{
		Chunk	   *chunk = arena->top;
		Chunk	   *previous = chunk->previous;

		if (previous != NULL && chunk->size <= CHUNK_KEPT)
		{
			chunk->previous = previous->previous;
			pfree(previous);
			continue;
		}
		arena->top = previous;
		pfree(chunk);
	}
	if (arena->top != NULL)
		arena->top->used = 0;
}

/* Level of the current subtransaction, opened at its first use. */
static Level *
enter(void)
{
	int			nest_level = GetCurrentTransactionNestLevel();
	Level	   *level;

	if (qlog_stage.closed)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("queue functions cannot be called while the transaction commits")));
	if (nlevels > 0 && levels[nlevels - 1].nest_level == nest_level)
		return &levels[nlevels - 1];
	Assert(nlevels == 0 || levels[nlevels - 1].nest_level < nest_level);
	levels = grow(levels, nlevels, &maxlevels, sizeof(Level), 4);
	level = &levels[nlevels];
	level->nest_level = nest_level;
	level->nops = qlog_stage.nops;
	level->ndone = qlog_stage.ndone;
	level->ntaken = qlog_stage.ntaken;
	level->ndedups = qlog_stage.ndedups;
	level->nchanges = qlog_stage.nchanges;
	level->ngroups = qlog_stage.ngroups;
	level->nholds = qlog_hold_count();
	level->npartitions = qlog_spread_count();
	level->bytes = qlog_stage.bytes;
	level->effect_bytes = qlog_stage.effect_bytes;
	level->frames = arena_mark(&frames);
	level->hashes = arena_mark(&hashes);
	nlevels++;
	return level;
}

uint32
qlog_stage_enter(void)
{
	return enter()->nholds;
}

/*
 * Would the record that holds the transaction's effects still fit into half a log file with this many bytes of them?  Pushes
 * to one partition have one effect together, so those are counted up to the most partitions that there may be.
 */
static void
check_entry(uint64 effect_bytes)
{
	uint64		append = qc_effect_size(QC_EFFECT_APPEND, NULL, 0) + sizeof(uint64);
	uint64		rest = QC_RECORD_HEADER_SIZE + QC_ENTRY_HEAD_SIZE(1) +
		Min(qlog_stage.nops, QC_ENTRY_PARTITIONS_MAX) * append;

	if (rest + qlog_stage.effect_bytes + effect_bytes <= qlog_segment_bytes() / 2)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("transaction has too much queue work"),
			 errdetail("Its log entry would not fit into half a log file of %d MB.", qlog_segment_size),
			 errhint("Commit more often, or raise \"qlog.segment_size\".")));
}

/* Enter the current level with `bytes` more to be staged, some of them effects. */
static Level *
enter_with(uint64 bytes, uint64 effect_bytes)
{
	Level	   *level = enter();
	uint64		limit = (uint64) qlog_max_transaction_bytes * 1024;

	if (qlog_stage.bytes + bytes > limit)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("transaction has too much queue work"),
				 errdetail("It would exceed %d kB.", qlog_max_transaction_bytes),
				 qlog_max_transaction_bytes < QLOG_MAX_TRANSACTION_KB ?
				 errhint("Commit more often, or raise \"qlog.max_transaction_bytes\".") :
				 errhint("Commit more often.")));
	if (effect_bytes > 0)
		check_entry(effect_bytes);
	return level;
}

/* A record of this message alone must fit into half a log file, as none spans two.	 Returns the size of its frame. */
static uint64
check_frame(const QcMessage *message)
{
	uint64		size = qc_frame_size(message);
	uint64		record = qc_record_size(QC_KIND_SOLO, 1, size);

	if (record > qlog_segment_bytes() / 2)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("message is too large"),
				 errdetail("Its record of %llu bytes would not fit into half a log file of %d MB.",
						   (unsigned long long) record, qlog_segment_size),
				 errhint("Consider raising \"qlog.segment_size\".")));
	return size;
}

/* A new operation at the end of the list, zeroed; partition: where its messages go, 0 = it has none. */
static QcOp *
add_op(uint64 queue, QcOpKind kind, uint64 partition)
{
	QlogStaged *staged;

	if (partition != 0)
		qlog_spread_add(partition);

	qlog_stage.ops = grow(qlog_stage.ops, qlog_stage.nops, &qlog_stage.maxops, sizeof(QlogStaged),
						  8);
	staged = &qlog_stage.ops[qlog_stage.nops++];
	memset(staged, 0, sizeof(*staged));
	staged->queue = queue;
	staged->op.kind = kind;
	staged->op.partition = partition;
	return &staged->op;
}

static QcOp *
add_push(const QlogTarget *target)
{
	QcOp	   *op = add_op(target->queue, target->lane == 0 ? QC_OP_PUSH : QC_OP_DELAY,
							target->lane == 0 ? target->partition : target->lane);

	op->delay.partition = target->lane == 0 ? 0 : target->partition;
	op->delay.due = target->due;
	op->log = target->log;
	op->level = target->level;
	return op;
}

static bool
same_target(const QcOp *op, const QlogTarget *target)
{
	if (target->lane == 0)
		return op->kind == QC_OP_PUSH && op->partition == target->partition;
	return op->kind == QC_OP_DELAY && op->partition == target->lane &&
		op->delay.partition == target->partition && op->delay.due == target->due;
}

/* The last operation when this message can simply be put behind it, otherwise NULL. */
static QcOp *
open_push(const Level *level, const QlogTarget *target, bool moved, size_t size)
{
	QcOp	   *op;

	if (qlog_stage.nops == level->nops)
		return NULL;
	op = &qlog_stage.ops[qlog_stage.nops - 1].op;
	if (qlog_stage.ops[qlog_stage.nops - 1].alone || !same_target(op, target) || op->moved != moved ||
		op->level != target->level ||
		!arena_follows(&frames, op->frames + op->frames_len, size) ||
		!arena_follows(&hashes, op->hashes + (size_t) op->count * QC_HASH_SIZE, QC_HASH_SIZE))
		return NULL;
	return op;
}

/* Encode frame and hash behind those of op, or as the first ones of it. */
static void
put_message(QcOp *op, const QcMessage *message, size_t size)
{
	uint8	   *frame = arena_take(&frames, size);
	uint8	   *hash = arena_take(&hashes, QC_HASH_SIZE);
	QcWriter	w;

	qc_writer_init(&w, frame, size);
	qc_frame_put(&w, message);
	Assert(!w.full && w.len == size);
	qc_frame_hash(message, hash);
	if (op->count == 0)
	{
		op->frames = frame;
		op->hashes = hash;
	}
	op->frames_len += size;
	op->count++;
	qlog_stage.bytes += size + QC_HASH_SIZE;
}

static void
stage_message(const QlogTarget *target, const QcMessage *message, bool moved)
{
	uint64		size = check_frame(message);
	uint64		effect = target->lane == 0 ? 0 : qc_effect_size(QC_EFFECT_DELAY, NULL, 1);
	Level	   *level = enter_with(size + QC_HASH_SIZE, effect);
	QcOp	   *op = open_push(level, target, moved, size);

	Assert(size > 0);
	if (op == NULL)
	{
		op = add_push(target);
		op->moved = moved;
	}
	else if (effect > 0)
		effect = qc_effect_size(QC_EFFECT_DELAY, NULL, 1) - qc_effect_size(QC_EFFECT_DELAY, NULL, 0);
	put_message(op, message, size);
	qlog_stage.effect_bytes += effect;
}

void
qlog_stage_message(const QlogTarget *target, const QcMessage *message)
{
	stage_message(target, message, false);
}

void
qlog_stage_moved(const QlogTarget *target, const QcMessage *message)
{
	stage_message(target, message, true);
}

/* Remember positions of a lease that end with the transaction. */
static void
add_done(uint64 lease, uint64 partition, uint64 first, uint32 count)
{
	qlog_stage.done = grow(qlog_stage.done, qlog_stage.ndone, &qlog_stage.maxdone,
						   sizeof(QlogDone), 16);
	qlog_stage.done[qlog_stage.ndone++] = (QlogDone)
	{
		lease, partition, first, count
	};
}

void
qlog_stage_dedup(const QlogTarget *target, const QcMessage *message, const uint8 *hash, bool strict)
{
	uint64		size = check_frame(message);
	uint64		effect = target->lane == 0 ? 0 : qc_effect_size(QC_EFFECT_DELAY, NULL, 1);
	QlogDedup  *dedup;

	(void) enter_with(size + QC_HASH_SIZE + sizeof(QlogDedup), effect);
	qlog_stage.dedups = grow(qlog_stage.dedups, qlog_stage.ndedups, &qlog_stage.maxdedups,
							 sizeof(QlogDedup), 8);
	put_message(add_push(target), message, size);
	qlog_stage.ops[qlog_stage.nops - 1].alone = true;
	dedup = &qlog_stage.dedups[qlog_stage.ndedups++];
	dedup->op = qlog_stage.nops - 1;
	dedup->strict = strict;
	dedup->queue = target->queue;
	dedup->partition = target->partition;
	dedup->window_us = target->dedup_us;
	memcpy(dedup->hash, hash, QC_HASH_SIZE);
	memcpy(dedup->id, message->id, QC_ID_SIZE);
	qlog_stage.bytes += sizeof(QlogDedup);
	qlog_stage.effect_bytes += effect;
}

void
qlog_stage_dead(const QcDead *dead, const QlogTarget *lane, const QcMessage *message)
{
	uint64		size = check_frame(message);
	uint64		effect = qc_effect_size(QC_EFFECT_DEAD, dead, 0);
	QcOp	   *op;
	uint8	   *reason;

	(void) enter_with(size + QC_HASH_SIZE + dead->reason.len, effect);
	add_done(dead->lease, dead->partition, dead->position, 1);
	op = add_op(lane->queue, QC_OP_DEAD, lane->partition);
	op->log = lane->log;
	op->level = lane->level;
	op->dead = *dead;
	reason = arena_take(&frames, dead->reason.len);
	if (dead->reason.len > 0)
		memcpy(reason, dead->reason.bytes, dead->reason.len);
	op->dead.reason.bytes = reason;
	qlog_stage.bytes += dead->reason.len;
	qlog_stage.effect_bytes += effect;
	put_message(op, message, size);
}

/* Stage an encoded effect; returns a writer over its bytes. */
static QcWriter
add_effect(uint64 queue, size_t size)
{
	QcOp	   *op;
	QcWriter	w;

	(void) enter_with(size, size);
	op = add_op(queue, QC_OP_EFFECT, 0);
	op->effect_len = size;
	op->effect = arena_take(&frames, size);
	qlog_stage.bytes += size;
	qlog_stage.effect_bytes += size;
	qc_writer_init(&w, unconstify(uint8 *, op->effect), size);
	return w;
}

void
qlog_stage_drop(const QcDead *dead)
{
	QcWriter	w = add_effect(0, qc_effect_size(QC_EFFECT_DEAD, dead, 0));

	Assert(dead->lane == 0);
	qc_effect_put(&w, QC_EFFECT_DEAD, dead, 0);
	add_done(dead->lease, dead->partition, dead->position, 1);
	Assert(!w.full);
}

/* Remember that these letters are taken. */
static void
add_taken(uint64 lane, uint64 first, uint32 count)
{
	qlog_stage.taken = grow(qlog_stage.taken, qlog_stage.ntaken, &qlog_stage.maxtaken,
							sizeof(QlogTaken), 8);
	qlog_stage.taken[qlog_stage.ntaken++] = (QlogTaken)
	{
		lane, first, count
	};
}

void
qlog_stage_redrive(uint64 lane, const QcRedriveItem *ranges, uint32 nranges)
{
	QcRedrive	redrive = {.lane = lane};

	qlog_stage_items(0, QC_EFFECT_REDRIVE, &redrive, ranges, sizeof(*ranges), nranges);
	for (uint32 i = 0; i < nranges; i++)
		add_taken(lane, ranges[i].first, ranges[i].count);
}

void
qlog_stage_purge_dead(uint64 lane, const QcPurgeDeadItem *ranges, uint32 nranges)
{
	QcPurgeDead purge = {.lane = lane};

	qlog_stage_items(0, QC_EFFECT_PURGE_DEAD, &purge, ranges, sizeof(*ranges), nranges);
	for (uint32 i = 0; i < nranges; i++)
		add_taken(lane, ranges[i].first, ranges[i].count);
}

bool
qlog_stage_is_taken(uint64 lane, uint64 position)
{
	for (uint32 i = qlog_stage.ntaken; i-- > 0;)
	{
		const QlogTaken *taken = &qlog_stage.taken[i];

		if (taken->lane == lane && position >= taken->first &&
			position - taken->first < taken->count)
			return true;
	}
	return false;
}

void
qlog_stage_effect(uint64 queue, QcEffectKind kind, const void *fixed)
{
	QcWriter	w = add_effect(queue, qc_effect_size(kind, fixed, 0));

	qc_effect_put(&w, kind, fixed, 0);
	Assert(!w.full);
	qlog_stage.ops[qlog_stage.nops - 1].effect = kind;
}

void
qlog_stage_items(uint64 queue, QcEffectKind kind, const void *fixed, const void *items,
				 size_t item_size, uint32 nitems)
{
	QcWriter	w = add_effect(queue, qc_effect_size(kind, fixed, nitems));

	qc_effect_put(&w, kind, fixed, nitems);
	for (uint32 i = 0; i < nitems; i++)
		qc_effect_put_item(&w, kind, (const uint8 *) items + i * item_size);
	Assert(!w.full);
}

void
qlog_stage_alter(const QcQueueAlter *alter, const QcQueueAlterItem *items, uint32 nitems)
{
	QcWriter	w = add_effect(alter->queue, qc_effect_size(QC_EFFECT_QUEUE_ALTER, alter, nitems));

	qc_effect_put(&w, QC_EFFECT_QUEUE_ALTER, alter, nitems);
	for (uint32 i = 0; i < nitems; i++)
		qc_effect_put_item(&w, QC_EFFECT_QUEUE_ALTER, &items[i]);
	Assert(!w.full);
	qlog_stage.ops[qlog_stage.nops - 1].effect = QC_EFFECT_QUEUE_ALTER;
}

void
qlog_stage_ack(uint64 lease, uint64 group, const QcAckItem *ranges, uint32 nranges)
{
	QcAck		ack = {.lease = lease, .group = group};
	QcWriter	w = add_effect(0, qc_effect_size(QC_EFFECT_ACK, &ack, nranges));

	qc_effect_put(&w, QC_EFFECT_ACK, &ack, nranges);
	for (uint32 i = 0; i < nranges; i++)
	{
		qc_effect_put_item(&w, QC_EFFECT_ACK, &ranges[i]);
		add_done(lease, ranges[i].partition, ranges[i].first, ranges[i].count);
	}
	Assert(!w.full);
}

void
qlog_stage_repeated(uint64 lease)
{
	(void) enter_with(sizeof(QlogDone), 0);
	add_done(lease, 0, 0, 0);
	qlog_stage.bytes += sizeof(QlogDone);
}

void
qlog_stage_change(QlogChangeKind kind, const QlogQueue *queue, uint64 partition, QlogName name)
{
	QlogChange *change;

	(void) enter_with(sizeof(QlogChange), 0);
	qlog_stage.changes = grow(qlog_stage.changes, qlog_stage.nchanges, &qlog_stage.maxchanges,
							  sizeof(QlogChange), 4);
	change = &qlog_stage.changes[qlog_stage.nchanges++];
	change->kind = kind;
	change->queue = *queue;
	change->partition = partition;
	change->name_len = name.len;
	memcpy(change->name, name.text, name.len);
	qlog_stage.bytes += sizeof(QlogChange);
}

static bool
is_named(const QlogChange *change, QlogName name)
{
	return change->name_len == name.len && memcmp(change->name, name.text, name.len) == 0;
}

void *
qlog_stage_alloc(size_t size)
{
	return arena_try(&plans, MAXALIGN(size));
}

const QlogChange *
qlog_stage_find_queue(QlogName name)
{
	for (uint32 i = qlog_stage.nchanges; i-- > 0;)
	{
		const QlogChange *change = &qlog_stage.changes[i];

		if (change->kind != QLOG_CHANGE_PARTITION && is_named(change, name))
			return change;
	}
	return NULL;
}

const QlogChange *
qlog_stage_find_queue_id(uint64 id)
{
	for (uint32 i = qlog_stage.nchanges; i-- > 0;)
	{
		const QlogChange *change = &qlog_stage.changes[i];

		if (change->kind != QLOG_CHANGE_PARTITION && change->kind != QLOG_CHANGE_RENAMED &&
			change->queue.id == id)
			return change;
	}
	return NULL;
}

uint64
qlog_stage_find_partition(uint64 queue, QlogName name)
{
	for (uint32 i = qlog_stage.nchanges; i-- > 0;)
	{
		const QlogChange *change = &qlog_stage.changes[i];

		if (change->kind == QLOG_CHANGE_PARTITION && change->queue.id == queue &&
			is_named(change, name))
			return change->partition;
	}
	return 0;
}

void
qlog_stage_group(QlogGroupChangeKind kind, uint64 queue, uint64 group, bool own, QlogName name)
{
	QlogGroupChange *change;

	(void) enter_with(sizeof(QlogGroupChange), 0);
	qlog_stage.groups = grow(qlog_stage.groups, qlog_stage.ngroups, &qlog_stage.maxgroups,
							 sizeof(QlogGroupChange), 4);
	change = &qlog_stage.groups[qlog_stage.ngroups++];
	change->kind = kind;
	change->queue = queue;
	change->group = group;
	change->own = own;
	change->name_len = name.len;
	memcpy(change->name, name.text, name.len);
	qlog_stage.bytes += sizeof(QlogGroupChange);
}

const QlogGroupChange *
qlog_stage_find_group(uint64 queue, QlogName name)
{
	for (uint32 i = qlog_stage.ngroups; i-- > 0;)
	{
		const QlogGroupChange *change = &qlog_stage.groups[i];

		if (change->queue == queue && change->name_len == name.len &&
			memcmp(change->name, name.text, name.len) == 0)
			return change;
	}
	return NULL;
}

int64
qlog_stage_count_groups(uint64 queue)
{
	int64		n = 0;

	for (uint32 i = 0; i < qlog_stage.ngroups; i++)
	{
		const QlogGroupChange *change = &qlog_stage.groups[i];

		if (change->queue == queue)
			n += change->kind == QLOG_GROUP_CREATED ? 1 :
				change->kind == QLOG_GROUP_DROPPED ? -1 : 0;
	}
	return n;
}

uint64
qlog_stage_next_group(uint64 queue)
{
	uint64		id = QC_DEFAULT_GROUP + 1;

	for (uint32 i = 0; i < qlog_stage.ngroups; i++)
	{
		if (qlog_stage.groups[i].queue == queue && qlog_stage.groups[i].group >= id)
			id = qlog_stage.groups[i].group + 1;
	}
	return id;
}

bool
qlog_stage_is_done(uint64 lease, uint64 partition, uint64 position)
{
	for (uint32 i = qlog_stage.ndone; i-- > 0;)
	{
		const QlogDone *done = &qlog_stage.done[i];

		if (done->lease == lease && done->partition == partition && position >= done->first &&
			position - done->first < done->count)
			return true;
	}
	return false;
}

void
qlog_stage_subcommit(int nest_level)
{
	if (nlevels == 0 || levels[nlevels - 1].nest_level < nest_level)
		return;
	Assert(levels[nlevels - 1].nest_level == nest_level);
	if (nlevels > 1 && levels[nlevels - 2].nest_level == nest_level - 1)
		nlevels--;
	else
		levels[nlevels - 1].nest_level--;
}

void
qlog_stage_subabort(int nest_level)
{
	Level	   *level;

	if (nlevels == 0 || levels[nlevels - 1].nest_level < nest_level)
		return;
	level = &levels[--nlevels];
	Assert(level->nest_level == nest_level);
	qlog_stage.nops = level->nops;
	qlog_stage.ndone = level->ndone;
	qlog_stage.ntaken = level->ntaken;
	qlog_stage.ndedups = level->ndedups;
	qlog_stage.nchanges = level->nchanges;
	qlog_stage.ngroups = level->ngroups;
	qlog_stage.bytes = level->bytes;
	qlog_stage.effect_bytes = level->effect_bytes;
	arena_cut(&frames, level->frames);
	arena_cut(&hashes, level->hashes);
	qlog_spread_cut(level->npartitions);
	qlog_hold_abort(level->nholds);
}

void
qlog_stage_reset(void)
{
	qlog_hold_forget();
	qlog_spread_reset();
	memset(&qlog_stage, 0, sizeof(qlog_stage));
	arena_reset(&frames);
	arena_reset(&hashes);
	arena_reset(&plans);
	levels = NULL;
	nlevels = maxlevels = 0;
	if (context_used)
		MemoryContextReset(context);
	context_used = false;
}
