/*
 * qc_rows.c
 *		Dumping the state into checkpoint rows.	 Loading them: qc_rows_load.c.
 *
 * Values are written through one scratch writer, so that a row's length is known before its head is put.
 */
#include "qc_rows.h"

#include <assert.h>
#include <string.h>
#include <stddef.h>

#include "qc_effect.h"

#include "qc_answer.h"
#include "qc_mutant.h"

typedef struct Dump
{
	QcState    *st;
	QcWriter   *batch;
} Dump;

static void
store_be64(uint8_t *at, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		at[i] = (uint8_t) (value >> (56 - 8 * i));
}

/*
 * What came with a version: mark 2: answers; queue 2: flags, altered_seq, ACL; 3: next_group, purges, last_dedup,
 * deduplicated; 4: messages dropped; 5: lanes, pushed_count, pushed_bytes; 6: unread; 7: kept; group 2: state and counters; 3: volume;
 * partition 2: start, purges, bytes, last_push; 3: bytes of what is pending; 4: of ranges, what they are and since when; lease 2: messages taken, acknowledged; 3:
 * delivered; cursor 2: sought; 3: why a message came back; open entry 2: new definitions of queues; 3: delivered and lane
 * of an item.
 */
uint8_t
qc_row_version(uint8_t kind)
{
	switch (kind)
	{
		case QC_ROW_QUEUE:
			return 7;
		case QC_ROW_PARTITION:
			return 4;
		case QC_ROW_GROUP:
		case QC_ROW_LEASE:
		case QC_ROW_CURSOR:
		case QC_ROW_OPEN:
			return 3;
		case QC_ROW_MARK:
			return 2;
		case QC_ROW_LOG:
		case QC_ROW_LANE_ITEM:
			return 1;
		default:
			return 0;
	}
}

/* Which row: its kind and up to two ids. */
typedef struct Key
{
	uint8_t		kind;
	uint8_t		nids;
	uint64_t	id1;
	uint64_t	id2;
} Key;

#define KEY_MAX 17
#define AHEAD_ROW_BYTES 128		/* per row of a slice, on average */

static uint16_t
encode_key(uint8_t out[KEY_MAX], const Key *key)
{
	out[0] = key->kind;
	store_be64(out + 1, key->id1);
	store_be64(out + 9, key->id2);
	return (uint16_t) (1 + 8 * key->nids);
}

/* Begin a put: head and key with the value's length still open; returns where the value begins. */
static size_t
begin_row(Dump *d, const Key *key)
{
	uint8_t		encoded[KEY_MAX];

	assert(qc_row_version(key->kind) > 0);
	qc_batch_put(d->batch, encoded, encode_key(encoded, key), NULL, 0);
	qc_put_u8(d->batch, qc_row_version(key->kind));
	return d->batch->len - 1;
}

static void
end_row(Dump *d, const Key *key, size_t value_at)
{
	size_t		head = value_at - (size_t) (1 + 8 * key->nids) - QC_BATCH_OP_SIZE;

	/* u8 op, u16 key length, u32 value length */
	if (!d->batch->full)
		qc_store_u32(d->batch->buf + head + 3, (uint32_t) (d->batch->len - value_at));
}

static void
put_name(Dump *d, QcRef name, uint16_t len)
{
	qc_put_str16(d->batch, qc_name_at(d->st, name), len);
}

static void
dump_mark(Dump *d)
{
	QcState    *st = d->st;
	QcWriter   *w = d->batch;
	Key			key = {QC_ROW_MARK, 0, 0, 0};
	size_t		at = begin_row(d, &key);

	qc_put_u64(w, st->seq);
	qc_put_u64(w, st->directory_id);
	qc_put_u64(w, st->next_queue_id);
	qc_put_u64(w, st->next_partition_id);
	qc_put_u64(w, st->confirmed_seq);
	qc_put_u64(w, st->commit_lsn);
	qc_put_u64(w, (uint64_t) st->last_created_at);
	qc_put_u32(w, st->nepochs);
	for (uint32_t i = 0; i < st->nepochs; i++)
	{
		qc_put_u64(w, st->epochs[i].epoch);
		qc_put_u64(w, st->epochs[i].first_seq);
		qc_put_u32(w, st->epochs[i].timeline);
	}
	qc_put_u32(w, qc_answers_stored(st));
	for (uint32_t i = 0; i < qc_answers_stored(st); i++)
	{
		const QcAnswer *answer = qc_answer_stored(st, i);

		qc_put_u64(w, answer->lease);
		qc_put_u64(w, answer->queue);
		qc_put_u32(w, answer->count);
	}
	end_row(d, &key, at);
}

static Key
log_key(QcState *st, QcRef ref)
{
	return (Key) {QC_ROW_LOG, 1, QC_AT(st, QcLog, ref)->id, 0};
}

static void
put_log(Dump *d, QcRef ref)
{
	const QcLog *log = QC_AT(d->st, QcLog, ref);

	qc_put_u64(d->batch, log->file);
	qc_put_u64(d->batch, log->tail);
}

static Key
queue_key(QcState *st, QcRef ref)
{
	return (Key) {QC_ROW_QUEUE, 1, QC_AT(st, QcQueue, ref)->id, 0};
}

static void
put_volume(QcWriter *w, const QcVolume *volume)
{
	qc_put_u64(w, volume->count);
	qc_put_u64(w, volume->bytes);
}

static void
put_options(Dump *d, const QcOptions *options)
{
	QcWriter	w;
	uint8_t		bytes[QC_OPTIONS_ENCODED_MAX];

	qc_writer_init(&w, bytes, sizeof(bytes));
	qc_options_put(&w, options);
	qc_put_str16(d->batch, bytes, w.len);
}

static void
put_grants(Dump *d, QcRef first, uint32_t ngrants)
{
	qc_put_u32(d->batch, ngrants);
	for (QcRef ref = first; ref != 0; ref = QC_AT(d->st, QcGrant, ref)->next)
	{
		const QcGrant *grant = QC_AT(d->st, QcGrant, ref);

		qc_put_u32(d->batch, grant->grantee);
		qc_put_u32(d->batch, grant->grantor);
		qc_put_u32(d->batch, grant->privileges);
	}
}

static void
put_queue(Dump *d, QcRef ref)
{
	QcQueue    *queue = QC_AT(d->st, QcQueue, ref);
	QcWriter   *w = d->batch;

	qc_put_u32(w, queue->database);
	qc_put_u32(w, queue->owner);
	qc_put_u64(w, queue->log_id);
	qc_put_u64(w, queue->default_partition_id);
	qc_put_u64(w, (uint64_t) queue->created_at);
	qc_put_u8(w, queue->state);
	qc_put_u8(w, queue->damaged);
	qc_put_u64(w, queue->damage_file);
	qc_put_u64(w, queue->damage_position);
	qc_put_u64(w, queue->pushed);
	qc_put_u64(w, queue->popped);
	qc_put_u64(w, queue->acked);
	qc_put_u64(w, queue->nacked);
	qc_put_u64(w, queue->expired);
	qc_put_u64(w, queue->dead);
	qc_put_u64(w, (uint64_t) queue->last_push);
	qc_put_u64(w, (uint64_t) queue->last_pop);
	put_name(d, queue->name, queue->name_len);
	put_options(d, &queue->options);
	qc_put_u8(w, queue->flags);
	qc_put_u64(w, queue->altered_seq);
	put_grants(d, queue->grants, queue->ngrants);
	qc_put_u32(w, queue->next_group);
	qc_put_u32(w, queue->purges);
	qc_put_u64(w, (uint64_t) queue->last_dedup);
	qc_put_u64(w, queue->deduplicated);
	qc_put_u64(w, queue->dropped);
	put_volume(w, &queue->lanes);
	qc_put_u64(w, queue->pushed_count);
	qc_put_u64(w, queue->pushed_bytes);
	qc_put_u64(w, queue->unread);
	put_volume(w, &queue->kept);
}

static Key
group_key(QcState *st, QcRef ref)
{
	const QcGroup *group = QC_AT(st, QcGroup, ref);
	bool		deleted = (group->dirty.flags & QC_DIRTY_DELETED) != 0;

	return (Key)
	{
		QC_ROW_GROUP, 2,
			deleted ? group->deleted_queue_id : QC_AT(st, QcQueue, group->queue)->id, group->id
	};
}

static void
put_group(Dump *d, QcRef ref)
{
	const QcGroup *group = QC_AT(d->st, QcGroup, ref);

	qc_put_u8(d->batch, group->start);
	qc_put_u64(d->batch, (uint64_t) group->start_at);
	qc_put_u64(d->batch, group->dead_partition);
	put_name(d, group->name, group->name_len);
	qc_put_u8(d->batch, group->state);
	qc_put_u64(d->batch, group->acked);
	qc_put_u64(d->batch, group->redelivered);
	qc_put_u64(d->batch, (uint64_t) group->last_pop);
	put_volume(d->batch, &group->volume);
}

static Key
partition_key(QcState *st, QcRef ref)
{
	return (Key) {QC_ROW_PARTITION, 1, QC_AT(st, QcPartition, ref)->id, 0};
}

static void
put_partition(Dump *d, QcRef ref)
{
	QcState    *st = d->st;
	QcPartition *partition = QC_AT(st, QcPartition, ref);
	QcWriter   *w = d->batch;

	qc_put_u64(w, QC_AT(st, QcQueue, partition->queue)->id);
	qc_put_u8(w, partition->lane);
	qc_put_u32(w, partition->group);
	qc_put_u64(w, partition->next);
	qc_put_u64(w, partition->stable);
	put_name(d, partition->name, partition->name_len);
	for (QcRef r = partition->aborted.head; r != 0; r = QC_AT(st, QcAbortedRange, r)->next)
	{
		qc_put_u8(w, 1);
		qc_put_u64(w, QC_AT(st, QcAbortedRange, r)->first);
		qc_put_u32(w, QC_AT(st, QcAbortedRange, r)->count);
		qc_put_u8(w, QC_AT(st, QcAbortedRange, r)->gone);
		qc_put_u64(w, (uint64_t) QC_AT(st, QcAbortedRange, r)->at);
	}
	for (QcRef r = partition->pending.head; r != 0;
		 r = QC_AT(st, QcPending, r)->of_partition.next)
	{
		const QcPending *pending = QC_AT(st, QcPending, r);

		qc_put_u8(w, 2);
		qc_put_u64(w, pending->seq);
		qc_put_u64(w, pending->first);
		qc_put_u32(w, pending->count);
		qc_put_u8(w, pending->settled);
		qc_put_u64(w, pending->bytes);
	}
	qc_put_u8(w, 0);
	qc_put_u64(w, QC_MUTATED(QC_MUTANT_RETAIN_LOST) ? 0 : partition->start);
	qc_put_u32(w, partition->purges);
	qc_put_u64(w, partition->bytes);
	qc_put_u64(w, (uint64_t) partition->last_push);
}

static Key
lease_key(QcState *st, QcRef ref)
{
	return (Key) {QC_ROW_LEASE, 1, QC_AT(st, QcLease, ref)->id, 0};
}

static void
put_lease(Dump *d, QcRef ref)
{
	QcLease    *lease = QC_AT(d->st, QcLease, ref);
	QcWriter   *w = d->batch;

	qc_put_u64(w, QC_AT(d->st, QcQueue, lease->queue)->id);
	qc_put_u64(w, QC_AT(d->st, QcGroup, lease->group)->id);
	qc_put_u64(w, (uint64_t) lease->lease_us);
	qc_put_u64(w, (uint64_t) lease->leased_at);
	qc_put_u64(w, lease->pin_seq);
	qc_put_u8(w, lease->committed != 0);
	qc_put_u32(w, lease->taken);
	qc_put_u32(w, lease->acked);
	qc_put_u64(w, lease->delivered);
}

/* May slot b be written in the same run as the slots before it, the last of which is a? */
static bool
same_run(const QcSlot *a, const QcSlot *b)
{
	return b->position == a->position + 1 && b->lease == a->lease && b->attempt == a->attempt &&
		b->cause == a->cause && b->state == a->state && (b->state != QC_SLOT_WAITING || b->due == a->due);
}

static Key
cursor_key(QcState *st, QcRef ref)
{
	const QcCursor *cursor = QC_AT(st, QcCursor, ref);

	if (cursor->dirty.flags & QC_DIRTY_DELETED)
		return (Key) {QC_ROW_CURSOR, 2, cursor->fetch, cursor->nslots};
	return (Key)
	{
		QC_ROW_CURSOR, 2, QC_AT(st, QcPartition, cursor->partition)->id,
			QC_AT(st, QcGroup, cursor->group)->id
	};
}

static void
put_cursor(Dump *d, QcRef ref)
{
	QcState    *st = d->st;
	QcCursor   *cursor = QC_AT(st, QcCursor, ref);
	QcWriter   *w = d->batch;
	QcSlot	   *slot;

	qc_put_u64(w, cursor->fetch);
	slot = QC_AT(st, QcSlot, cursor->slots.head);
	while (slot != NULL)
	{
		const QcSlot *first = slot;
		uint32_t	count = 1;
		QcSlot	   *next;

		while ((next = QC_AT(st, QcSlot, slot->of_cursor.next)) != NULL && same_run(slot, next))
		{
			slot = next;
			count++;
		}
		qc_put_u32(w, count);
		qc_put_u64(w, first->position);
		qc_put_u64(w, first->lease == 0 ? 0 : QC_AT(st, QcLease, first->lease)->id);
		qc_put_u32(w, first->attempt);
		qc_put_u64(w, first->state == QC_SLOT_WAITING ? (uint64_t) first->due : 0);
		qc_put_u8(w, first->cause);
		slot = next;
	}
	qc_put_u32(w, 0);
	qc_put_u64(w, cursor->sought);
}

static Key
open_key(QcState *st, QcRef ref)
{
	return (Key) {QC_ROW_OPEN, 1, QC_AT(st, QcOpen, ref)->seq, 0};
}

/* The definition that the entry gives to a queue. */
static void
put_alter(Dump *d, uint64_t queue, const QcAlter *alter)
{
	qc_put_u8(d->batch, 3);
	qc_put_u64(d->batch, queue);
	qc_put_u32(d->batch, alter->owner);
	qc_put_u8(d->batch, alter->flags);
	put_name(d, alter->name, alter->name_len);
	put_options(d, &alter->options);
	put_grants(d, alter->grants, alter->ngrants);
}

static void
put_open(Dump *d, QcRef ref)
{
	QcState    *st = d->st;
	QcOpen	   *open = QC_AT(st, QcOpen, ref);
	QcWriter   *w = d->batch;

	qc_put_u64(w, open->xid);
	qc_put_u64(w, open->lsn);
	qc_put_u8(w, open->decided);
	qc_put_u8(w, open->carried);
	for (QcRef r = open->pendings; r != 0; r = QC_AT(st, QcPending, r)->of_open)
	{
		qc_put_u8(w, 1);
		qc_put_u64(w, QC_AT(st, QcPartition, QC_AT(st, QcPending, r)->partition)->id);
	}
	for (QcRef r = open->items; r != 0; r = QC_AT(st, QcOpenItem, r)->next)
	{
		const QcOpenItem *item = QC_AT(st, QcOpenItem, r);

		if (item->kind == QC_OPEN_QUEUE_ALTER)
		{
			put_alter(d, item->partition, QC_AT(st, QcAlter, item->alter));
			continue;
		}
		qc_put_u8(w, 2);
		qc_put_u8(w, (uint8_t) item->kind);
		qc_put_u64(w, item->lease);
		qc_put_u64(w, item->partition);
		qc_put_u64(w, item->first);
		qc_put_u32(w, item->count);
		qc_put_u32(w, item->group);
		qc_put_u64(w, item->delivered);
		qc_put_u64(w, item->lane_item == 0 ? 0 :
				   QC_AT(st, QcPartition, QC_AT(st, QcLaneItem, item->lane_item)->lane)->id);
	}
	qc_put_u8(w, 0);
}

static Key
lane_item_key(QcState *st, QcRef ref)
{
	const QcLaneItem *item = QC_AT(st, QcLaneItem, ref);
	bool		deleted = (item->dirty.flags & QC_DIRTY_DELETED) != 0;

	return (Key)
	{
		QC_ROW_LANE_ITEM, 2,
			deleted ? item->target : QC_AT(st, QcPartition, item->lane)->id, item->position
	};
}

static void
put_lane_item(Dump *d, QcRef ref)
{
	QcState    *st = d->st;
	QcLaneItem *item = QC_AT(st, QcLaneItem, ref);
	QcWriter   *w = d->batch;

	qc_put_u8(w, item->state);
	qc_put_u8(w, item->reason);
	qc_put_u64(w, item->target);
	qc_put_u64(w, item->origin);
	qc_put_u32(w, item->attempt);
	qc_put_u32(w, item->hash);
}

/* How the objects of a class are written, in the order in which their rows can be loaded. */
typedef struct RowType
{
	QcClass		class;
	Key			(*key) (QcState *st, QcRef ref);	/* of deleted ones too */
	void		(*put) (Dump *d, QcRef ref);
} RowType;

static const RowType row_types[] = {
	{QC_CLASS_LOG, log_key, put_log},
	{QC_CLASS_QUEUE, queue_key, put_queue},
	{QC_CLASS_GROUP, group_key, put_group},
	{QC_CLASS_PARTITION, partition_key, put_partition},
	{QC_CLASS_LEASE, lease_key, put_lease},
	{QC_CLASS_CURSOR, cursor_key, put_cursor},
	{QC_CLASS_OPEN, open_key, put_open},
	{QC_CLASS_LANE_ITEM, lane_item_key, put_lane_item},
};

#define ROW_TYPES (sizeof(row_types) / sizeof(row_types[0]))

static bool
is_deleted(QcState *st, const RowType *type, QcRef ref)
{
	return (qc_dirty_of(st, type->class, ref)->flags & QC_DIRTY_DELETED) != 0;
}

/*
 * Has the object a row?	 A log that no queue uses yet has none: a crash makes it an unfinished creation.	 One that no queue uses
 * any more has one as long as it is there, even if no checkpoint has known it: a start with a snapshot may need it.
 */
static bool
has_row(QcState *st, const RowType *type, QcRef ref)
{
	const QcLog *log;

	if (type->class != QC_CLASS_LOG)
		return type->class != QC_CLASS_OPEN || !QC_MUTATED(QC_MUTANT_MARK_PAST_UNDECIDED);
	log = QC_AT(st, QcLog, ref);
	return qc_log_stays(st->shards, log->id) || log->nqueues > 0 ||
		(log->dirty.flags & QC_DIRTY_STORED) != 0 || log->dropped_seq != 0;
}

static void
dump_object(Dump *d, const RowType *type, QcRef ref)
{
	Key			key = type->key(d->st, ref);
	uint8_t		encoded[KEY_MAX];
	size_t		at;

	if (is_deleted(d->st, type, ref))
		qc_batch_delete(d->batch, encoded, encode_key(encoded, &key));
	else if (has_row(d->st, type, ref))
	{
		at = begin_row(d, &key);
		type->put(d, ref);
		end_row(d, &key, at);
	}
}

/* Dump the deleted objects of all lists, or the others. */
static void
dump_lists(Dump *d, bool deleted)
{
	QcState    *st = d->st;

	for (size_t i = 0; i < ROW_TYPES; i++)
	{
		const RowType *type = &row_types[i];

		for (QcRef ref = st->dirty[type->class]; ref != 0 && !d->batch->full;
			 ref = qc_dirty_of(st, type->class, ref)->next)
		{
			if (is_deleted(st, type, ref) == deleted)
				dump_object(d, type, ref);
		}
	}
}

/* The object is in the batch and in no list: it is clean, or free when it was deleted. */
static void
finish(QcState *st, const RowType *type, QcRef ref)
{
	QcDirty    *dirty = qc_dirty_of(st, type->class, ref);

	assert(st->ndirty > 0);
	st->ndirty--;
	if (dirty->flags & QC_DIRTY_DELETED)
	{
		qc_mem_free(&st->mem, type->class, ref);
		return;
	}
	dirty->flags = has_row(st, type, ref) ? QC_DIRTY_STORED : 0;
	dirty->next = 0;
}

/* Everything is in the batch. */
static void
clear_list(QcState *st, const RowType *type)
{
	QcRef		ref = st->dirty[type->class];

	st->dirty[type->class] = 0;
	while (ref != 0)
	{
		QcRef		next = qc_dirty_of(st, type->class, ref)->next;

		finish(st, type, ref);
		ref = next;
	}
}

/* ---- ahead of the copy ---- */

/*
 * Phases of a pass.  What was deleted before the pass began goes first, because something in the same pass may have been
 * made under its key.  What is deleted while its turn has not come goes when it comes: whatever takes its key is dirty
 * for the next pass.
 */
#define PASS_DELETED	1
#define PASS_ALL		2

static void
begin_pass(QcState *st)
{
	memcpy(st->pass.rows, st->dirty, sizeof(st->dirty));
	memset(st->dirty, 0, sizeof(st->dirty));
	st->pass.phase = PASS_DELETED;
	st->pass.type = 0;
	st->pass.before = 0;
}

/* What the pass has not come to is dirty like all else. */
static void
give_up_pass(QcState *st)
{
	for (size_t i = 0; i < ROW_TYPES && st->pass.phase != 0; i++)
	{
		QcClass		class = row_types[i].class;
		QcRef		ref = st->pass.rows[class];
		QcDirty    *last;

		if (ref == 0)
			continue;
		while ((last = qc_dirty_of(st, class, ref))->next != 0)
			ref = last->next;
		last->next = st->dirty[class];

		st->dirty[class] = st->pass.rows[class];
		st->pass.rows[class] = 0;
	}
	st->pass.phase = 0;
}

static void
next_type(QcRowsPass *pass)
{
	pass->before = 0;
	if (++pass->type < ROW_TYPES)
		return;
	pass->type = 0;
	pass->phase = pass->phase == PASS_DELETED ? PASS_ALL : 0;
}

/* Look at the next object of the pass; false = the batch has no room for its row. */
static bool
pass_step(Dump *d)
{
	QcState    *st = d->st;
	QcRowsPass *pass = &st->pass;
	const RowType *type = &row_types[pass->type];
	QcRef	   *at = pass->before == 0 ? &pass->rows[type->class] :
		&qc_dirty_of(st, type->class, pass->before)->next;
	QcRef		ref = *at;
	size_t		begin = d->batch->len;

	if (ref == 0)
	{
		next_type(pass);
		return true;
	}
	if (pass->phase == PASS_DELETED && !is_deleted(st, type, ref))
	{
		pass->before = ref;
		return true;
	}
	dump_object(d, type, ref);
	if (d->batch->full)
	{
		d->batch->full = false;
		d->batch->len = begin;
		return false;
	}
	*at = qc_dirty_of(st, type->class, ref)->next;
	finish(st, type, ref);
	return true;
}

QcStatus
qc_rows_ahead(QcState *st, QcWriter *batch, uint32_t max_rows, QcError *err)
{
	Dump		d = {st, batch};
	size_t		enough = batch->len + (size_t) max_rows * AHEAD_ROW_BYTES;

	st->pass.begun = 1;
	if (st->pass.phase == 0)
		begin_pass(st);
	for (uint32_t i = 0; i < max_rows && batch->len < enough && st->pass.phase != 0; i++)
	{
		if (!pass_step(&d))
			return qc_error_set(err, QC_SHORT, "checkpoint batch is too small");
	}
	return st->pass.phase == 0 ? QC_END : QC_OK;
}

/* ---- the copy ---- */

uint64_t
qc_rows_estimate(const QcState *st)
{
	return 16384 + (uint64_t) st->ndirty * 300 + (uint64_t) st->nopens * 300;
}

QcStatus
qc_rows_dump(QcState *st, QcWriter *batch, QcRowsMark *mark, QcError *err)
{
	Dump		d = {st, batch};
	size_t		begin = batch->len;

	mark->seq = st->seq;
	mark->commit_lsn = st->commit_lsn;
	if (st->ndirty == 0 && st->seq == st->checkpoint_seq && begin == 0)
		return QC_END;
	give_up_pass(st);
	dump_mark(&d);

	/* What was deleted comes first: something new may have its key. */
	dump_lists(&d, true);
	dump_lists(&d, false);
	if (batch->full)
	{
		batch->full = false;
		batch->len = begin;
		return qc_error_set(err, QC_SHORT, "checkpoint batch is too small");
	}
	for (size_t i = 0; i < ROW_TYPES; i++)
		clear_list(st, &row_types[i]);
	assert(st->ndirty == 0);
	st->pass.begun = 0;
	mark->copy = ++st->copies;
	return QC_OK;
}

void
qc_rows_stored(QcState *st, const QcRowsMark *mark)
{
	st->checkpoint_seq = mark->seq;
	st->copies_stored = mark->copy;
}

uint64_t
qc_rows_stamp(const QcState *st)
{
	return st->copies + 1;
}

bool
qc_rows_is_stored(const QcState *st, uint64_t stamp)
{
	return st->copies_stored >= stamp ||
		(st->ndirty == 0 && st->pass.begun == 0 && st->copies == st->copies_stored &&
		 st->seq == st->checkpoint_seq);
}
