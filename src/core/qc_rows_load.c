/*
 * qc_rows_load.c
 *		Loading checkpoint rows into a state just laid out.
 *
 * Rows come in the order of their keys (qc_rows.h), so what a row refers to is there before it.  Everything derived
 * (ready lists, counts, timers) is made by qc_rows_loaded at the end.
 */
#include <assert.h>
#include <stddef.h>

#include "qc_alter.h"
#include "qc_answer.h"
#include "qc_catalog.h"
#include "qc_cursor.h"
#include "qc_delay.h"
#include "qc_group.h"
#include "qc_lane.h"
#include "qc_lease.h"
#include "qc_purge.h"
#include "qc_rows.h"
#include "qc_timer.h"

typedef struct Row
{
	QcState    *st;
	QcReader	value;
	uint8_t		version;
	uint64_t	id1;
	uint64_t	id2;
} Row;

static QcStatus
full(QcError *err)
{
	return qc_error_set(err, QC_FULL, "qlog.state_memory is too small for the checkpoint");
}

static QcStatus
broken(const char *what, QcError *err)
{
	return qc_error_set(err, QC_DAMAGED, "checkpoint row does not fit: %s", what);
}

static uint64_t
load_be64(const uint8_t *at)
{
	uint64_t	value = 0;

	for (int i = 0; i < 8; i++)
		value = value << 8 | at[i];
	return value;
}

static QcStr
get_name(QcReader *r)
{
	QcStr		name;

	name.bytes = qc_get_str16(r, &name.len);
	return name;
}

static QcStatus
load_answers(Row *row, QcError *err)
{
	QcReader   *r = &row->value;
	uint32_t	n = qc_get_u32(r);

	if (r->bad || n > QC_ANSWERS_STORED)
		return broken("answers", err);
	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	lease = qc_get_u64(r);
		uint64_t	queue = qc_get_u64(r);
		uint32_t	count = qc_get_u32(r);

		if (r->bad || lease == 0)
			return broken("answers", err);
		qc_answer_remember(row->st, lease, queue, count);
	}
	return QC_OK;
}

static QcStatus
load_mark(Row *row, QcError *err)
{
	QcState    *st = row->st;
	QcReader   *r = &row->value;

	st->seq = st->checkpoint_seq = qc_get_u64(r);
	st->directory_id = qc_get_u64(r);
	st->next_queue_id = qc_get_u64(r);
	st->next_partition_id = qc_get_u64(r);
	st->confirmed_seq = qc_get_u64(r);
	st->commit_lsn = qc_get_u64(r);
	st->last_created_at = (int64_t) qc_get_u64(r);
	st->nepochs = qc_get_u32(r);
	if (st->nepochs > QC_EPOCHS_MAX)
		return broken("epochs", err);
	for (uint32_t i = 0; i < st->nepochs; i++)
	{
		st->epochs[i].epoch = qc_get_u64(r);
		st->epochs[i].first_seq = qc_get_u64(r);
		st->epochs[i].timeline = qc_get_u32(r);
	}
	return row->version < 2 ? QC_OK : load_answers(row, err);
}

static QcStatus
load_log(Row *row, QcError *err)
{
	uint64_t	file = qc_get_u64(&row->value);
	uint64_t	tail = qc_get_u64(&row->value);

	return qc_log_add(row->st, row->id1, file, tail, tail, false) == NULL ? full(err) : QC_OK;
}

static QcVolume
get_volume(QcReader *r)
{
	QcVolume	volume = {.count = qc_get_u64(r)};

	volume.bytes = qc_get_u64(r);
	return volume;
}

/* An ACL behind its number of elements. */
static QcStatus
get_grants(Row *row, QcRef *first, uint32_t *ngrants, QcError *err)
{
	uint32_t	n = qc_get_u32(&row->value);

	while (n-- > 0 && !row->value.bad)
	{
		QcQueueAlterItem item = {.grantee = qc_get_u32(&row->value)};

		item.grantor = qc_get_u32(&row->value);
		item.privileges = qc_get_u32(&row->value);
		if (!qc_grant_add(row->st, first, ngrants, &item, false))
			return full(err);
	}
	return QC_OK;
}

/* What versions 2 to 7 of the row have brought. */
static QcStatus
load_definition(Row *row, QcQueue *queue, QcError *err)
{
	QcStatus	status;

	if (row->version < 2)
		return QC_OK;
	queue->flags = qc_get_u8(&row->value);
	queue->altered_seq = qc_get_u64(&row->value);
	status = get_grants(row, &queue->grants, &queue->ngrants, err);
	if (status != QC_OK || row->version < 3)
		return status;
	queue->next_group = qc_get_u32(&row->value);
	queue->purges = qc_get_u32(&row->value);
	queue->last_dedup = (int64_t) qc_get_u64(&row->value);
	queue->deduplicated = qc_get_u64(&row->value);
	if (row->version >= 4)
		queue->dropped = qc_get_u64(&row->value);
	if (row->version < 5)
		return QC_OK;
	queue->lanes = get_volume(&row->value);
	queue->pushed_count = qc_get_u64(&row->value);
	queue->pushed_bytes = qc_get_u64(&row->value);
	if (row->version >= 6)
		queue->unread = qc_get_u64(&row->value);
	if (row->version >= 7)
		queue->kept = get_volume(&row->value);
	return QC_OK;
}

/* The fields stand in a queue of their own until the name behind them is known, under which the queue is made. */
static QcStatus
load_queue(Row *row, QcError *err)
{
	QcState    *st = row->st;
	QcReader   *r = &row->value;
	QcQueue		fields = {.database = qc_get_u32(r)};
	QcQueue    *queue;
	QcStr		name;
	QcStr		options;
	QcStatus	status;

	fields.owner = qc_get_u32(r);
	fields.log_id = qc_get_u64(r);
	fields.default_partition_id = qc_get_u64(r);
	fields.created_at = (int64_t) qc_get_u64(r);
	fields.state = qc_get_u8(r);
	fields.damaged = qc_get_u8(r);
	fields.damage_file = qc_get_u64(r);
	fields.damage_position = qc_get_u64(r);
	fields.pushed = qc_get_u64(r);
	fields.popped = qc_get_u64(r);
	fields.acked = qc_get_u64(r);
	fields.nacked = qc_get_u64(r);
	fields.expired = qc_get_u64(r);
	fields.dead = qc_get_u64(r);
	fields.last_push = (int64_t) qc_get_u64(r);
	fields.last_pop = (int64_t) qc_get_u64(r);
	name = get_name(r);
	options = get_name(r);
	if (r->bad)
		return broken("queue", err);
	queue = qc_queue_load(st, row->id1, fields.database, &name);
	if (queue == NULL)
		return full(err);
	queue->owner = fields.owner;
	queue->log_id = fields.log_id;
	queue->default_partition_id = fields.default_partition_id;
	queue->created_at = fields.created_at;
	queue->state = fields.state;
	queue->damaged = fields.damaged;
	queue->damage_file = fields.damage_file;
	queue->damage_position = fields.damage_position;
	queue->pushed = fields.pushed;
	queue->popped = fields.popped;
	queue->acked = fields.acked;
	queue->nacked = fields.nacked;
	queue->expired = fields.expired;
	queue->dead = fields.dead;
	queue->last_push = fields.last_push;
	queue->last_pop = fields.last_pop;
	status = qc_options_get(options.bytes, options.len, &queue->options, err);
	return status == QC_OK ? load_definition(row, queue, err) : status;
}

static QcStatus
load_group(Row *row, QcError *err)
{
	QcReader   *r = &row->value;
	QcQueue    *queue = qc_queue_by_id(row->st, row->id1);
	uint8_t		start = qc_get_u8(r);
	int64_t		start_at = (int64_t) qc_get_u64(r);
	uint64_t	dead = qc_get_u64(r);
	QcStr		name = get_name(r);
	QcGroup    *group;

	if (r->bad || queue == NULL)
		return broken("group", err);
	group = qc_group_make(row->st, queue, row->id2, &name, start, start_at, false);
	if (group == NULL)
		return full(err);
	group->dead_partition = dead;
	group->state = QC_GROUP_LIVE;
	if (row->version < 2)
		return QC_OK;

	/* What is dead is found by the rows that still refer to it. */
	group->state = qc_get_u8(r);
	group->acked = qc_get_u64(r);
	group->redelivered = qc_get_u64(r);
	group->last_pop = (int64_t) qc_get_u64(r);
	if (row->version >= 3)
		group->volume = get_volume(r);
	return group->state > QC_GROUP_DEAD ? broken("state of a group", err) : QC_OK;
}

static QcStatus
load_aborted(Row *row, QcPartition *partition, QcError *err)
{
	QcState    *st = row->st;
	QcRef		ref = qc_mem_alloc(&st->mem, QC_CLASS_PENDING);
	QcAbortedRange *range = QC_AT(st, QcAbortedRange, ref);

	if (range == NULL)
		return full(err);
	range->first = qc_get_u64(&row->value);
	range->count = qc_get_u32(&row->value);
	range->at = row->st->last_created_at;
	if (row->version >= 4)
	{
		range->gone = qc_get_u8(&row->value);
		range->at = (int64_t) qc_get_u64(&row->value);
	}
	if (partition->aborted.tail != 0)
		QC_AT(st, QcAbortedRange, partition->aborted.tail)->next = ref;
	else
		partition->aborted.head = ref;
	partition->aborted.tail = ref;
	return QC_OK;
}

static QcStatus
load_pending(Row *row, QcPartition *partition, QcError *err)
{
	QcState    *st = row->st;
	QcRef		ref = qc_mem_alloc(&st->mem, QC_CLASS_PENDING);
	QcPending  *pending = QC_AT(st, QcPending, ref);

	if (pending == NULL)
		return full(err);
	pending->seq = qc_get_u64(&row->value);
	pending->first = qc_get_u64(&row->value);
	pending->count = qc_get_u32(&row->value);
	pending->settled = qc_get_u8(&row->value);
	pending->bytes = row->version < 3 ? 0 : qc_get_u64(&row->value);
	QC_AT(st, QcQueue, partition->queue)->open_bytes += pending->bytes;
	pending->partition = QC_REF(st, partition);
	qc_list_append(st, &partition->pending, ref, offsetof(QcPending, of_partition));
	return QC_OK;
}

static QcStatus
load_partition(Row *row, QcError *err)
{
	QcReader   *r = &row->value;
	QcQueue    *queue = qc_queue_by_id(row->st, qc_get_u64(r));
	uint8_t		lane = qc_get_u8(r);
	uint32_t	group = qc_get_u32(r);
	uint64_t	next = qc_get_u64(r);
	uint64_t	stable = qc_get_u64(r);
	QcStr		name = get_name(r);
	QcPartition *partition;
	QcStatus	status = QC_OK;
	uint8_t		kind;

	if (r->bad || queue == NULL)
		return broken("partition", err);
	partition = qc_partition_load(row->st, row->id1, queue, &name, lane);
	if (partition == NULL)
		return full(err);
	partition->group = group;
	partition->next = next;
	partition->stable = stable;
	while (status == QC_OK && (kind = qc_get_u8(r)) != 0)
	{
		if (r->bad || kind > 2)
			return broken("partition ranges", err);
		status = kind == 1 ? load_aborted(row, partition, err) : load_pending(row, partition, err);
	}
	partition->last_push = queue->last_push;
	partition->purges = 0;
	if (status != QC_OK || row->version < 2)
		return status;
	partition->start = qc_get_u64(r);
	partition->purges = qc_get_u32(r);
	partition->bytes = qc_get_u64(r);
	partition->last_push = (int64_t) qc_get_u64(r);
	return QC_OK;
}

static QcStatus
load_lease(Row *row, QcError *err)
{
	QcReader   *r = &row->value;
	QcQueue    *queue = qc_queue_by_id(row->st, qc_get_u64(r));
	uint64_t	group_id = qc_get_u64(r);
	QcGroup    *group = queue == NULL ? NULL : qc_group_by_id(row->st, queue, group_id);
	QcLease    *lease;

	if (r->bad || group == NULL)
		return broken("lease", err);
	lease = qc_lease_load(row->st, row->id1, queue, group);
	if (lease == NULL)
		return full(err);
	lease->lease_us = (int64_t) qc_get_u64(r);
	lease->leased_at = (int64_t) qc_get_u64(r);
	lease->pin_seq = qc_get_u64(r);
	if (lease->pin_seq == QC_PIN_PROMISED)
		lease->pin_seq = 0;		/* that transaction did not live to reserve its entry */
	lease->committed = qc_get_u8(r);
	if (row->version >= 2)
	{
		lease->taken = qc_get_u32(r);
		lease->acked = qc_get_u32(r);
	}
	if (row->version >= 3)
		lease->delivered = qc_get_u64(r);
	return QC_OK;
}

/* The lease of a group with this id; also of one that is gone, whose leases wait to be freed. */
static QcLease *
lease_of_group(QcState *st, uint64_t id, QcRef group)
{
	QcRef		ref = *qc_table_bucket(st, &st->lease_ids, qc_hash_id(id));
	QcLease    *lease;

	while ((lease = QC_AT(st, QcLease, ref)) != NULL && (lease->id != id || lease->group != group))
		ref = lease->id_next;
	return lease;
}

/* A run of slots with the same lease, attempt and state. */
static QcStatus
load_slots(Row *row, QcCursor *cursor, uint32_t count, QcError *err)
{
	QcState    *st = row->st;
	QcReader   *r = &row->value;
	uint64_t	position = qc_get_u64(r);
	uint64_t	lease_id = qc_get_u64(r);
	uint32_t	attempt = qc_get_u32(r);
	int64_t		due = (int64_t) qc_get_u64(r);
	uint8_t		cause = row->version >= 3 ? qc_get_u8(r) : 0;
	QcLease    *lease = lease_id == 0 ? NULL : lease_of_group(st, lease_id, cursor->group);
	QcGroup    *group = QC_AT(st, QcGroup, cursor->group);

	if (r->bad || (lease_id != 0 && lease == NULL))
		return broken("slots", err);
	for (uint32_t i = 0; i < count; i++)
	{
		QcRef		ref = qc_mem_alloc(&st->mem, QC_CLASS_SLOT);
		QcSlot	   *slot = QC_AT(st, QcSlot, ref);

		if (slot == NULL)
			return full(err);
		slot->position = position + i;
		slot->cursor = QC_REF(st, cursor);
		slot->attempt = attempt;
		slot->due = due;
		slot->cause = cause;
		qc_list_append(st, &cursor->slots, ref, offsetof(QcSlot, of_cursor));
		qc_cursor_count(st, cursor, 1);
		if (lease != NULL)
		{
			slot->state = QC_SLOT_LEASED;
			qc_lease_attach(st, lease, slot);
			cursor->nleased++;
			group->nleased++;
			continue;
		}
		slot->state = QC_SLOT_WAITING;
		cursor->nwaiting++;
		group->nwaiting++;
	}
	return QC_OK;
}

static QcStatus
load_cursor(Row *row, QcError *err)
{
	QcState    *st = row->st;
	QcPartition *partition = qc_partition_by_id(st, row->id1);
	QcGroup    *group = partition == NULL ? NULL :
		qc_group_by_id(st, QC_AT(st, QcQueue, partition->queue), row->id2);
	QcCursor   *cursor;
	QcStatus	status = QC_OK;
	uint32_t	count;

	if (group == NULL)
		return broken("cursor", err);
	cursor = QC_AT(st, QcCursor, qc_cursor_create(st, partition, group, false));
	if (cursor == NULL)
		return full(err);
	cursor->fetch = qc_get_u64(&row->value);
	while (status == QC_OK && (count = qc_get_u32(&row->value)) != 0)
		status = load_slots(row, cursor, count, err);
	if (status == QC_OK && row->version >= 2)
		cursor->sought = qc_get_u64(&row->value);
	return status;
}

static QcStatus
open_pending(Row *row, QcOpen *open, QcError *err)
{
	QcState    *st = row->st;
	QcPartition *partition = qc_partition_by_id(st, qc_get_u64(&row->value));
	QcRef		ref = partition == NULL ? 0 : partition->pending.head;

	while (ref != 0 && QC_AT(st, QcPending, ref)->seq != open->seq)
		ref = QC_AT(st, QcPending, ref)->of_partition.next;
	if (ref == 0)
		return broken("pending entry", err);
	QC_AT(st, QcPending, ref)->of_open = open->pendings;
	open->pendings = ref;
	return QC_OK;
}

static QcStatus
open_item(Row *row, QcOpen *open, QcError *err)
{
	QcState    *st = row->st;
	QcReader   *r = &row->value;
	QcRef		ref = qc_mem_alloc(&st->mem, QC_CLASS_OPEN_ITEM);
	QcOpenItem *item = QC_AT(st, QcOpenItem, ref);

	if (item == NULL)
		return full(err);
	item->kind = qc_get_u8(r);
	item->lease = qc_get_u64(r);
	item->partition = qc_get_u64(r);
	item->first = qc_get_u64(r);
	item->count = qc_get_u32(r);
	item->group = qc_get_u32(r);
	item->delivered = row->version < 3 ? UINT64_MAX : qc_get_u64(r);

	/* qc_lane_bind makes it the message */
	if (row->version >= 3)
		item->lane_item = QC_REF(st, qc_partition_by_id(st, qc_get_u64(r)));
	item->next = open->items;
	open->items = ref;
	return QC_OK;
}

/* The definition that the entry gives to a queue, which may be gone already. */
static QcStatus
open_alter(Row *row, QcOpen *open, QcError *err)
{
	QcState    *st = row->st;
	QcReader   *r = &row->value;
	QcQueueAlter fields = {.queue = qc_get_u64(r)};
	QcQueue    *queue = qc_queue_by_id(st, fields.queue);
	QcRef		ref = qc_mem_alloc(&st->mem, QC_CLASS_OPEN_ITEM);
	QcOpenItem *item = QC_AT(st, QcOpenItem, ref);
	QcAlter    *alter;
	QcStatus	status;

	if (item == NULL)
		return full(err);
	fields.owner = qc_get_u32(r);
	fields.flags = qc_get_u8(r);
	fields.name = get_name(r);
	fields.options = get_name(r);
	if (r->bad)
		return broken("new definition of a queue", err);
	status = qc_alter_make(st, &fields, open->seq, false, &item->alter, err);
	if (status != QC_OK)
		return status;
	alter = QC_AT(st, QcAlter, item->alter);
	item->kind = QC_OPEN_QUEUE_ALTER;
	item->partition = fields.queue;
	item->next = open->items;
	open->items = ref;
	if (queue != NULL)
		queue->nalters++;
	return get_grants(row, &alter->grants, &alter->ngrants, err);
}

static QcStatus
open_part(Row *row, QcOpen *open, uint8_t kind, QcError *err)
{
	if (row->value.bad || kind > 3)
		return broken("open entry", err);
	if (kind == 3)
		return open_alter(row, open, err);
	return kind == 1 ? open_pending(row, open, err) : open_item(row, open, err);
}

static QcStatus
load_open(Row *row, QcError *err)
{
	QcState    *st = row->st;
	QcReader   *r = &row->value;
	QcRef		ref = qc_mem_alloc(&st->mem, QC_CLASS_OPEN);
	QcOpen	   *open = QC_AT(st, QcOpen, ref);
	QcStatus	status = QC_OK;
	uint8_t		kind;

	if (open == NULL)
		return full(err);
	open->seq = row->id1;
	open->xid = qc_get_u64(r);
	open->lsn = qc_get_u64(r);
	open->decided = qc_get_u8(r);
	open->carried = qc_get_u8(r);
	qc_list_append(st, &st->opens, ref, offsetof(QcOpen, all));
	st->nopens++;
	qc_dirty_open(st, open);
	while (status == QC_OK && (kind = qc_get_u8(r)) != 0)
		status = open_part(row, open, kind, err);
	qc_open_turn(st, open);
	return status;
}

static QcStatus
load_lane_item(Row *row, QcError *err)
{
	QcState    *st = row->st;
	QcReader   *r = &row->value;
	QcPartition *lane = qc_partition_by_id(st, row->id1);
	uint8_t		state = qc_get_u8(r);
	QcLaneItem *item;

	if (r->bad || lane == NULL || lane->lane == QC_LANE_NONE || state < QC_LANE_ITEM_OPEN ||
		state > QC_LANE_ITEM_GONE)
		return broken("message in a lane", err);
	item = qc_lane_add(st, lane, row->id2, false);
	if (item == NULL)
		return full(err);
	item->state = state;
	item->reason = qc_get_u8(r);
	qc_lane_aim(st, item, qc_get_u64(r));
	item->origin = qc_get_u64(r);
	item->attempt = qc_get_u32(r);
	item->hash = qc_get_u32(r);
	lane->nitems += state == QC_LANE_ITEM_LIVE;
	if (state == QC_LANE_ITEM_LIVE && lane->lane == QC_LANE_DELAY)
	{
		st->ndelayed++;
		QC_AT(st, QcQueue, lane->queue)->delayed++;
	}
	return QC_OK;
}

QcStatus
qc_rows_load(QcState *st, const uint8_t *key, size_t key_len, const uint8_t *value,
			 size_t value_len, QcError *err)
{
	static QcStatus (*const loaders[]) (Row *row, QcError *err) = {
		load_mark, load_log, load_queue, load_group, load_partition, load_lease, load_cursor,
		load_open, load_lane_item
	};
	static const size_t key_lens[] = {1, 9, 9, 17, 9, 9, 17, 9, 17};
	Row			row = {.st = st};
	int			kind = key_len == 0 ? -1 : key[0] - QC_ROW_MARK;
	QcStatus	status;

	if (kind < 0 || kind >= (int) (sizeof(loaders) / sizeof(loaders[0])))
		return qc_error_set(err, QC_VERSION, "unknown kind of checkpoint row");
	if (key_len != key_lens[kind] || value_len < 1)
		return broken("key", err);
	row.version = value[0];
	if (row.version == 0 || row.version > qc_row_version(key[0]))
		return qc_error_set(err, QC_VERSION, "checkpoint row has version %u", value[0]);
	row.id1 = key_len > 1 ? load_be64(key + 1) : 0;
	row.id2 = key_len > 9 ? load_be64(key + 9) : 0;
	qc_reader_init(&row.value, value + 1, value_len - 1);
	status = loaders[kind] (&row, err);
	if (status == QC_OK && (row.value.bad || qc_reader_left(&row.value) > 0))
		return broken("length", err);
	return status;
}

/* Slots without a lease wait for their time, can be taken again now, or are dying. */
static bool
wake_slots(QcState *st, const QcQueue *queue, QcCursor *cursor, int64_t now, int64_t monotonic)
{
	for (QcRef ref = cursor->slots.head; ref != 0; ref = QC_AT(st, QcSlot, ref)->of_cursor.next)
	{
		QcSlot	   *slot = QC_AT(st, QcSlot, ref);

		if (slot->state != QC_SLOT_WAITING)
			continue;
		if (qc_queue_exhausted(queue, slot->attempt))
			slot->state = QC_SLOT_DYING;
		if (slot->state == QC_SLOT_DYING || slot->due <= now)
			qc_slot_due(st, slot);
		else if (!qc_timer_arm_slot(st, slot, monotonic + (slot->due - now), monotonic, false))
			return false;
	}
	return true;
}

/* A partition that has not seen a purge of its queue yet: it stays so, and counts for nothing but its leases. */
static void
derive_stale(QcState *st, QcPartition *partition)
{
	for (QcRef c = partition->cursors; c != 0; c = QC_AT(st, QcCursor, c)->next)
	{
		const QcCursor *cursor = QC_AT(st, QcCursor, c);

		QC_AT(st, QcGroup, cursor->group)->nwaiting -= cursor->nwaiting;
	}
}

static bool
derive_partition(QcState *st, QcQueue *queue, QcPartition *partition, int64_t now, int64_t monotonic)
{
	if (qc_partition_stale(st, partition))
	{
		derive_stale(st, partition);
		return true;
	}
	partition->visible = qc_partition_all(st, partition);
	if (partition->lane == QC_LANE_NONE)
		queue->visible += partition->visible;
	for (QcRef c = partition->cursors; c != 0; c = QC_AT(st, QcCursor, c)->next)
	{
		QcCursor   *cursor = QC_AT(st, QcCursor, c);
		QcGroup    *group = QC_AT(st, QcGroup, cursor->group);

		group->nready += qc_partition_count(st, partition, cursor->fetch);

		/* What stays when it is taken from all of them has no cursor. */
		if (cursor->fetch != QC_UNSET && qc_group_scanning(group))
			group->unscanned -= partition->visible;
		if (!wake_slots(st, queue, cursor, now, monotonic))
			return false;
		qc_cursor_refresh(st, cursor);
	}
	return true;
}

/* Groups of a queue whose partitions have been derived. */
static void
derive_groups(QcState *st, QcQueue *queue)
{
	QcRef		next;

	queue->group_changes++;
	for (QcRef ref = queue->groups; ref != 0; ref = next)
	{
		QcGroup    *group = QC_AT(st, QcGroup, ref);

		next = group->next;
		queue->ngroups += group->state == QC_GROUP_LIVE;
		if (qc_group_scanning(group))
		{
			queue->nscanning++;
			group->unscanned += queue->visible;
			group->scan = queue->partitions.head;
			st->estimates = 1;
		}
		if (group->state == QC_GROUP_DEAD)
		{
			group->state = QC_GROUP_CREATING;
			qc_group_kill(st, group);
		}
	}
}

static QcStatus
derive_queue(QcState *st, QcQueue *queue, int64_t now, int64_t monotonic, QcError *err)
{
	QcLog	   *log = qc_log_by_id(st, queue->log_id);
	QcPartition *partition = qc_partition_by_id(st, queue->default_partition_id);

	if (log == NULL)
		return broken("queue without log", err);
	queue->log = QC_REF(st, log);
	log->nqueues++;
	queue->default_partition = QC_REF(st, partition);
	for (QcRef p = queue->partitions.head; p != 0; p = QC_AT(st, QcPartition, p)->of_queue.next)
	{
		if (!derive_partition(st, queue, QC_AT(st, QcPartition, p), now, monotonic))
			return full(err);
	}
	derive_groups(st, queue);
	if (queue->state == QC_QUEUE_DEAD)
	{
		queue->state = QC_QUEUE_DROPPING;
		qc_queue_kill(st, queue);
	}
	return QC_OK;
}

/* What was loaded is stored, and nothing is dirty. */
static void
loaded_is_clean(QcState *st)
{
	for (int i = 0; i < QC_CLASS_COUNT; i++)
	{
		QcRef		ref = st->dirty[i];

		st->dirty[i] = 0;
		while (ref != 0)
		{
			QcDirty    *dirty = qc_dirty_of(st, (QcClass) i, ref);

			ref = dirty->next;
			dirty->next = 0;
			dirty->flags = QC_DIRTY_STORED;
		}
	}
	st->ndirty = 0;
}

QcStatus
qc_rows_loaded(QcState *st, int64_t now, int64_t monotonic, QcError *err)
{
	st->wall_offset = now - monotonic;
	for (QcRef ref = st->queues.head; ref != 0;)
	{
		QcQueue    *queue = QC_AT(st, QcQueue, ref);
		QcPartition *lane = qc_delay_lane(st, queue);
		QcStatus	status;

		if (lane != NULL && !qc_delay_loaded(st, lane, monotonic))
			return full(err);
		ref = queue->all.next;
		status = derive_queue(st, queue, now, monotonic, err);
		if (status != QC_OK)
			return status;
	}
	for (QcRef ref = st->opens.head; ref != 0; ref = QC_AT(st, QcOpen, ref)->all.next)
		qc_lane_bind(st, QC_AT(st, QcOpen, ref));
	for (QcRef ref = st->leases.head; ref != 0; ref = QC_AT(st, QcLease, ref)->all.next)
	{
		if (!qc_lease_start(st, QC_AT(st, QcLease, ref), monotonic))
			return full(err);
	}
	loaded_is_clean(st);
	return QC_OK;
}
