/*
 * qc_apply.c
 *		The state machine: one function per effect, dispatched by qc_apply_effect.
 */
#include "qc_apply.h"

#include <assert.h>
#include <stddef.h>

#include "qc_alter.h"
#include "qc_catalog.h"
#include "qc_delay.h"
#include "qc_group.h"
#include "qc_lane.h"
#include "qc_lease.h"
#include "qc_purge.h"
#include "qc_repair.h"
#include "qc_retain.h"

#define OF_PARTITION offsetof(QcPending, of_partition)

static QcRef
take(QcState *st, const QcApply *apply, QcClass class)
{
	return apply->recovering ? qc_mem_alloc(&st->mem, class) : qc_mem_alloc_reserved(&st->mem, class);
}

static QcStatus
full(QcError *err)
{
	return qc_error_set(err, QC_FULL, "state memory is full");
}

/*
 * Positions [next, next + count) of a partition, settled or not.  They hang on the entry's open object, or are settled
 * at once.
 */
static QcStatus
take_positions(QcState *st, const QcApply *apply, QcPartition *partition, uint32_t count,
			   uint8_t settled, QcError *err)
{
	QcRef		ref = take(st, apply, QC_CLASS_PENDING);
	QcPending  *pending = QC_AT(st, QcPending, ref);

	if (pending == NULL)
		return full(err);
	pending->seq = apply->seq;
	pending->first = partition->next;
	pending->count = count;
	pending->settled = settled;
	pending->partition = QC_REF(st, partition);
	qc_list_append(st, &partition->pending, ref, OF_PARTITION);
	partition->next += count;
	if (settled == 0)
	{
		QcOpen	   *open = QC_AT(st, QcOpen, apply->open);

		pending->of_open = open->pendings;
		open->pendings = ref;
		qc_dirty_partition(st, partition);
	}
	else
		qc_partition_advance(st, partition);
	return QC_OK;
}

/* Recovery: a partition that a later entry dropped, or one that never came to be, is passed over. */
static QcStatus
unknown_partition(const QcState *st, const QcApply *apply, uint64_t id, QcError *err)
{
	if (apply->recovering && id < st->next_partition_id)
		return QC_OK;
	return qc_error_set(err, QC_DAMAGED, "unknown partition %llu", (unsigned long long) id);
}

/* The partition of an item; QC_OK and NULL: pass over it. */
static QcStatus
item_partition(QcState *st, const QcApply *apply, uint64_t id, QcPartition **partition, QcError *err)
{
	*partition = qc_partition_by_id(st, id);
	return *partition != NULL ? QC_OK : unknown_partition(st, apply, id, err);
}

static QcStatus
apply_append(QcState *st, const QcApply *apply, const QcAppend *append, QcError *err)
{
	QcPartition *partition = qc_partition_by_id(st, append->partition);
	QcQueue    *queue;
	QcStatus	status = QC_OK;

	if (partition == NULL)
		return unknown_partition(st, apply, append->partition, err);
	queue = QC_AT(st, QcQueue, partition->queue);
	if (append->first < partition->next ||
		(append->first > partition->next && !apply->recovering) ||
		append->first - partition->next > UINT32_MAX)
		return qc_error_set(err, QC_DAMAGED,
							"partition %llu is at position %llu, the entry appends at %llu",
							(unsigned long long) append->partition,
							(unsigned long long) partition->next,
							(unsigned long long) append->first);

	/*
	 * Recovery: an entry below was lost (a void entry stands for it), its positions hold no
	 * message.
	 */
	if (append->first > partition->next)
		status = take_positions(st, apply, partition,
								(uint32_t) (append->first - partition->next), 2, err);
	if (status != QC_OK)
		return status;
	qc_groups_follow(st, partition, !apply->recovering);
	partition->idle_seq = 0;
	if (partition->visible == 0 && partition->pending.head == 0)
		partition->done_floor = partition->any_floor = apply->created_at;
	queue->last_push = partition->last_push = apply->created_at;
	if (apply->recovering)
		queue->last_dedup = apply->created_at;	/* or may have been: the messages are not read */
	qc_dirty_queue(st, queue);
	return take_positions(st, apply, partition, append->count, apply->immediate ? 1 : 0, err);
}

static QcStatus
apply_aborted(QcState *st, const QcApply *apply, const QcAborted *aborted, QcError *err)
{
	QcPartition *partition = qc_partition_by_id(st, aborted->partition);

	if (partition == NULL)
		return unknown_partition(st, apply, aborted->partition, err);
	if (aborted->first != partition->next)
		return qc_error_set(err, QC_DAMAGED, "aborted range does not follow in partition %llu",
							(unsigned long long) aborted->partition);
	return take_positions(st, apply, partition, aborted->count, 2, err);
}

static QcStatus
add_item(QcState *st, const QcApply *apply, const QcOpenItem *model, QcError *err)
{
	QcRef		ref = take(st, apply, QC_CLASS_OPEN_ITEM);
	QcOpenItem *item = QC_AT(st, QcOpenItem, ref);
	QcOpen	   *open = QC_AT(st, QcOpen, apply->open);
	QcLease    *lease;

	if (item == NULL)
		return full(err);
	*item = *model;
	item->next = open->items;
	open->items = ref;
	lease = model->lease == 0 ? NULL : qc_lease_by_id(st, model->lease);
	item->delivered = lease == NULL ? UINT64_MAX : lease->delivered;
	if (lease != NULL && (lease->pin_seq == 0 || lease->pin_seq == QC_PIN_PROMISED ||
						  lease->pin_seq == apply->seq))
		qc_lease_pin(st, lease, apply->seq);
	return QC_OK;
}

/*
 * Recovery: an answer tells of positions whose entry was lost (a void entry stands for it).  They are used up, or new
 * messages would be born acknowledged.
 */
static QcStatus
reach_answered(QcState *st, const QcApply *apply, uint64_t id, uint64_t first, uint32_t count,
			   QcError *err)
{
	QcPartition *partition = qc_partition_by_id(st, id);
	uint64_t	end = first + count;

	if (!apply->recovering || partition == NULL || end <= partition->next)
		return QC_OK;
	if (end < first || end - partition->next > UINT32_MAX)
		return qc_error_set(err, QC_DAMAGED, "impossible positions of partition %llu are answered",
							(unsigned long long) id);
	return take_positions(st, apply, partition, (uint32_t) (end - partition->next), 2, err);
}

static QcStatus
apply_ack(QcState *st, const QcApply *apply, const QcEffect *effect, QcError *err)
{
	for (uint32_t i = 0; i < effect->nitems; i++)
	{
		QcAckItem	range;
		QcOpenItem	item = {.kind = QC_OPEN_ACK};
		QcStatus	status;

		qc_effect_item(effect, i, &range);
		item.lease = effect->u.ack.lease;
		item.group = (uint32_t) effect->u.ack.group;
		item.partition = range.partition;
		item.first = range.first;
		item.count = range.count;
		status = reach_answered(st, apply, range.partition, range.first, range.count, err);
		if (status == QC_OK)
			status = add_item(st, apply, &item, err);
		if (status != QC_OK)
			return status;
	}
	return QC_OK;
}

/* The copy in the dead lane; *ref = 0: the message is dropped, or a later entry has dropped the lane (recovery). */
static QcStatus
add_dead(QcState *st, const QcApply *apply, const QcDead *dead, QcRef *ref, QcError *err)
{
	QcPartition *lane = qc_partition_by_id(st, dead->lane);
	QcLaneItem *item;

	*ref = 0;
	if (dead->lane == 0)
		return QC_OK;
	if (lane == NULL)
		return unknown_partition(st, apply, dead->lane, err);
	if (dead->lane_position >= lane->next ||
		(lane->items.tail != 0 &&
		 QC_AT(st, QcLaneItem, lane->items.tail)->position >= dead->lane_position))
		return qc_error_set(err, QC_DAMAGED, "dead letter at position %llu does not follow in lane %llu",
							(unsigned long long) dead->lane_position,
							(unsigned long long) dead->lane);
	item = qc_lane_add(st, lane, dead->lane_position, !apply->recovering);
	if (item == NULL)
		return full(err);
	qc_lane_aim(st, item, dead->partition);
	item->origin = dead->position;
	item->attempt = dead->attempt;
	item->reason = dead->cause;
	*ref = QC_REF(st, item);
	return QC_OK;
}

static QcStatus
apply_dead(QcState *st, const QcApply *apply, const QcDead *dead, QcError *err)
{
	QcOpenItem	item = {.kind = dead->lane == 0 ? QC_OPEN_DROP : QC_OPEN_DEAD, .lease = dead->lease,
		.partition = dead->partition, .first = dead->position, .count = 1,
		.group = (uint32_t) dead->group, .delivered = UINT64_MAX};
	QcStatus	status = reach_answered(st, apply, dead->partition, dead->position, 1, err);

	if (status == QC_OK)
		status = add_dead(st, apply, dead, &item.lane_item, err);
	if (status == QC_OK && apply->immediate)
	{
		qc_open_settle_item(st, &item, true, apply->monotonic);
		return QC_OK;
	}
	return status == QC_OK ? add_item(st, apply, &item, err) : status;
}

/* Dead letters leave their lane when the entry is settled; the items of both effects are alike. */
static QcStatus
apply_leave(QcState *st, const QcApply *apply, const QcEffect *effect, uint64_t lane, QcError *err)
{
	for (uint32_t i = 0; i < effect->nitems; i++)
	{
		QcRedriveItem redrive;
		QcPurgeDeadItem purge;
		QcOpenItem	item = {.kind = QC_OPEN_LANE_LEAVE, .partition = lane};
		QcStatus	status;

		if (effect->kind == QC_EFFECT_REDRIVE)
		{
			qc_effect_item(effect, i, &redrive);
			item.first = redrive.first;
			item.count = redrive.count;
		}
		else
		{
			qc_effect_item(effect, i, &purge);
			item.first = purge.first;
			item.count = purge.count;
		}
		status = add_item(st, apply, &item, err);
		if (status != QC_OK)
			return status;
	}
	return QC_OK;
}

static QcStatus
apply_delay(QcState *st, const QcApply *apply, const QcEffect *effect, QcError *err)
{
	const QcDelay *delay = &effect->u.delay;
	QcOpenItem	item = {.kind = QC_OPEN_DELAY, .partition = delay->lane, .first = delay->first,
		.count = effect->nitems};
	QcStatus	status = qc_delay_add(st, effect, !apply->recovering, err);

	return status == QC_OK ? add_item(st, apply, &item, err) : status;
}

static void
apply_fire(QcState *st, const QcApply *apply, const QcEffect *effect)
{
	/* Live, it is settled at once, and nothing is counted. */
	if (apply->open != 0)
		QC_AT(st, QcOpen, apply->open)->moved = 1;
	for (uint32_t i = 0; i < effect->nitems; i++)
	{
		QcFireItem	item;

		qc_effect_item(effect, i, &item);
		qc_delay_remove(st, effect->u.fire.lane, item.position);
	}
}

static QcStatus
apply_deliver(QcState *st, const QcApply *apply, const QcEffect *effect, QcError *err)
{
	QcStatus	status = qc_lease_deliver(st, &effect->u.deliver, effect, apply, err);

	/* Recovery: its queue was dropped by a later entry that the checkpoint holds. */
	if (status == QC_NOTFOUND && apply->recovering)
		return QC_OK;
	return status;
}

static QcStatus
apply_nack(QcState *st, const QcApply *apply, const QcEffect *effect)
{
	QcLease    *lease = qc_lease_by_id(st, effect->u.nack.lease);
	QcReturn	how = {(int64_t) effect->u.nack.delay_us, apply->created_at, apply->monotonic,
		QC_DEAD_NACKED};

	for (uint32_t i = 0; lease != NULL && i < effect->nitems; i++)
	{
		QcNackItem	range;
		QcPartition *partition;

		qc_effect_item(effect, i, &range);
		partition = qc_partition_by_id(st, range.partition);
		if (partition != NULL)
			(void) qc_lease_nack(st, lease, partition, range.first, range.count, &how);
	}
	if (lease != NULL)
		(void) qc_lease_end_if_empty(st, lease);
	return QC_OK;
}

static void
release_lease(QcState *st, const QcApply *apply, QcLease *lease, const QcRelease *release)
{
	QcReturn	how = {(int64_t) release->delay_us, apply->created_at, apply->monotonic, QC_DEAD_ABORTED};

	if (release->reason == QC_RELEASE_EXPIRED)
		how.cause = QC_DEAD_EXPIRED;
	else if (release->reason == QC_RELEASE_LOST)
		how.cause = QC_DEAD_LOST;
	qc_lease_release(st, lease, release->messages, &how);
}

/* Effects on one lease; a lease that is gone was answered by a later entry or lost: nothing to do. */
static QcStatus
apply_lease(QcState *st, const QcApply *apply, const QcEffect *effect)
{
	uint64_t	id = effect->kind == QC_EFFECT_POP_COMMIT ? effect->u.pop_commit.lease :
		effect->kind == QC_EFFECT_RENEW ? effect->u.renew.lease : effect->u.release.lease;
	QcLease    *lease = qc_lease_by_id(st, id);

	if (lease == NULL)
		return QC_OK;
	if (effect->kind == QC_EFFECT_POP_COMMIT)
		qc_lease_commit(st, lease, apply->monotonic);
	else if (effect->kind == QC_EFFECT_RENEW)
		qc_lease_renew(st, lease, (int64_t) effect->u.renew.lease_us, apply->monotonic);
	else
		release_lease(st, apply, lease, &effect->u.release);
	return QC_OK;
}

static QcStatus
apply_decision(QcState *st, const QcApply *apply, const QcEffect *effect)
{
	for (uint32_t i = 0; i < effect->nitems; i++)
	{
		QcDecisionItem item;
		QcOpen	   *open;

		qc_effect_item(effect, i, &item);
		open = qc_open_by_seq(st, item.seq);
		if (open == NULL || open->xid == 0)
			continue;
		if (open->decided == 0)
			qc_open_settle(st, open, item.committed != 0, item.lsn, apply->monotonic);
		qc_open_forget(st, open);
	}
	return QC_OK;
}

static QcStatus
apply_epoch(QcState *st, const QcEpoch *epoch)
{
	if (st->nepochs == QC_EPOCHS_MAX)
	{
		/* The oldest boundaries lie below every mark by now. */
		for (uint32_t i = 1; i < QC_EPOCHS_MAX; i++)
			st->epochs[i - 1] = st->epochs[i];
		st->nepochs--;
	}
	st->epochs[st->nepochs++] = (QcEpochRow)
	{
		epoch->epoch, epoch->first_seq, epoch->timeline, 0
	};
	return QC_OK;
}

static QcStatus
apply_queue_create(QcState *st, const QcApply *apply, const QcQueueCreate *create, QcError *err)
{
	QcOpenItem	item = {.kind = QC_OPEN_QUEUE_CREATE, .partition = create->queue};
	QcStatus	status;

	if (qc_queue_by_id(st, create->queue) != NULL)
		return qc_error_set(err, QC_DAMAGED, "queue %llu is created twice",
							(unsigned long long) create->queue);
	status = qc_queue_create(st, create, apply->created_at, apply->immediate, !apply->recovering,
							 err);
	if (status != QC_OK || apply->immediate)
		return status;
	return add_item(st, apply, &item, err);
}

static QcStatus
apply_queue_drop(QcState *st, const QcApply *apply, uint64_t id, QcError *err)
{
	QcOpenItem	item = {.kind = QC_OPEN_QUEUE_DROP, .partition = id};
	QcQueue    *queue = qc_queue_by_id(st, id);

	if (queue == NULL || queue->state == QC_QUEUE_DEAD)
		return QC_OK;
	if (apply->immediate)
	{
		qc_queue_kill(st, queue);
		return QC_OK;
	}
	if (queue->state == QC_QUEUE_LIVE)
		queue->state = QC_QUEUE_DROPPING;
	qc_dirty_queue(st, queue);
	return add_item(st, apply, &item, err);
}

static QcStatus
apply_queue_alter(QcState *st, const QcApply *apply, const QcEffect *effect, QcError *err)
{
	QcOpenItem	item = {.kind = QC_OPEN_QUEUE_ALTER, .partition = effect->u.queue_alter.queue};
	QcQueue    *queue = qc_queue_by_id(st, item.partition);
	QcStatus	status;

	if (queue == NULL || queue->state == QC_QUEUE_DEAD)
		return QC_OK;
	status = qc_alter_from_effect(st, effect, apply->seq, !apply->recovering, &item.alter, err);
	if (status != QC_OK)
		return status;
	if (apply->immediate)
	{
		qc_alter_install(st, queue, item.alter);
		return QC_OK;
	}
	queue->nalters++;
	return add_item(st, apply, &item, err);
}

static QcStatus
apply_partition_create(QcState *st, const QcApply *apply, const QcPartitionCreate *create,
					   QcError *err)
{
	QcStatus	status = qc_partition_create(st, create, !apply->recovering, err);

	if (status == QC_NOTFOUND && apply->recovering && create->queue < st->next_queue_id)
		return QC_OK;
	return status;
}

/* The queue of a group's effect; NULL when a later entry has dropped it. */
static QcQueue *
group_queue(QcState *st, uint64_t id)
{
	QcQueue    *queue = qc_queue_by_id(st, id);

	return queue == NULL || queue->state == QC_QUEUE_DEAD ? NULL : queue;
}

/* Nobody decides the entry of an auto-create: it is there. */
static bool
is_decided(const QcApply *apply)
{
	return apply->xid == 0;
}

static QcStatus
apply_group_create(QcState *st, const QcApply *apply, const QcGroupCreate *create, QcError *err)
{
	QcOpenItem	item = {.kind = QC_OPEN_GROUP_CREATE, .partition = create->queue,
		.group = (uint32_t) create->group};
	QcQueue    *queue = group_queue(st, create->queue);
	QcGroup    *group;

	if (queue == NULL)
		return QC_OK;
	if (qc_group_by_id(st, queue, create->group) != NULL)
		return qc_error_set(err, QC_DAMAGED, "group %llu of queue %llu is created twice",
							(unsigned long long) create->group,
							(unsigned long long) create->queue);
	group = qc_group_make(st, queue, create->group, &create->name, create->start,
						  create->start_at, !apply->recovering);
	if (group == NULL)
		return full(err);
	if (!is_decided(apply))
		return add_item(st, apply, &item, err);
	qc_group_open(st, group);
	return QC_OK;
}

static QcStatus
apply_group_drop(QcState *st, const QcApply *apply, const QcGroupDrop *drop, QcError *err)
{
	QcOpenItem	item = {.kind = QC_OPEN_GROUP_DROP, .partition = drop->queue,
		.group = (uint32_t) drop->group};

	assert(!is_decided(apply));
	return group_queue(st, drop->queue) == NULL ? QC_OK : add_item(st, apply, &item, err);
}

/* The group will be replaced by one that begins elsewhere. */
static QcStatus
apply_seek_group(QcState *st, const QcApply *apply, const QcSeek *seek, QcQueue *queue,
				 QcError *err)
{
	QcOpenItem	item = {.kind = QC_OPEN_GROUP_SEEK, .partition = seek->queue,
		.first = seek->successor, .group = (uint32_t) seek->group};

	if (qc_group_by_id(st, queue, seek->successor) != NULL)
		return qc_error_set(err, QC_DAMAGED, "group %llu of queue %llu is created twice",
							(unsigned long long) seek->successor,
							(unsigned long long) seek->queue);
	if (qc_group_make(st, queue, seek->successor, NULL, seek->start, seek->start_at,
					  !apply->recovering) == NULL)
		return full(err);
	return add_item(st, apply, &item, err);
}

/* One partition of a seek: its cursor is made here, where it can be promised. */
static QcStatus
apply_seek_item(QcState *st, const QcApply *apply, const QcSeek *seek, QcGroup *group,
				const QcSeekItem *place, QcError *err)
{
	QcOpenItem	item = {.kind = QC_OPEN_SEEK, .partition = place->partition,
		.first = place->position, .group = (uint32_t) seek->group};
	QcPartition *partition = qc_partition_by_id(st, place->partition);

	/* It may have been removed since it was chosen. */
	if (partition == NULL && place->partition < st->next_partition_id)
		return QC_OK;
	if (partition == NULL)
		return unknown_partition(st, apply, place->partition, err);
	if (seek->mode == QC_SEEK_FOUND)
		return !qc_group_lacks(st, partition, group) ||
			qc_group_place(st, group, partition, place->position, !apply->recovering) ? QC_OK :
			full(err);
	return qc_group_prepare(st, group, partition, !apply->recovering) ?
		add_item(st, apply, &item, err) : full(err);
}

static QcStatus
apply_seek(QcState *st, const QcApply *apply, const QcEffect *effect, QcError *err)
{
	const QcSeek *seek = &effect->u.seek;
	QcQueue    *queue = group_queue(st, seek->queue);
	QcGroup    *group = queue == NULL ? NULL : qc_group_by_id(st, queue, seek->group);
	QcStatus	status = QC_OK;

	assert(is_decided(apply) == (seek->mode == QC_SEEK_FOUND));
	if (group == NULL)
		return QC_OK;
	if (seek->mode == QC_SEEK_GROUP)
		return apply_seek_group(st, apply, seek, queue, err);
	for (uint32_t i = 0; i < effect->nitems && status == QC_OK; i++)
	{
		QcSeekItem	place;

		qc_effect_item(effect, i, &place);
		status = apply_seek_item(st, apply, seek, group, &place, err);
	}
	return status;
}

/* The purge that an entry has asked for takes place now. */
static void
purge_now(QcState *st, QcQueue *queue, const QcEffect *effect)
{
	const QcPurge *purge = &effect->u.purge;
	QcOpen	   *open = qc_open_by_seq(st, purge->entry);
	QcPartition *partition = qc_partition_by_id(st, purge->partition);

	if (partition != NULL)
		qc_purge_partition(st, partition, effect);
	else if (purge->partition == 0)
		qc_purge_queue(st, queue, effect);
	for (QcRef ref = open == NULL ? 0 : open->items; ref != 0;)
	{
		QcOpenItem *item = QC_AT(st, QcOpenItem, ref);

		if (item->kind == QC_OPEN_PURGE && item->first == purge->queue &&
			item->partition == purge->partition)
			item->kind = QC_OPEN_NOTHING;
		ref = item->next;
	}
	if (open != NULL)
		qc_dirty_open(st, open);
}

static QcStatus
apply_purge(QcState *st, const QcApply *apply, const QcEffect *effect, QcError *err)
{
	const QcPurge *purge = &effect->u.purge;
	QcOpenItem	item = {.kind = QC_OPEN_PURGE, .partition = purge->partition,
		.first = purge->queue};
	QcQueue    *queue = group_queue(st, purge->queue);

	if (queue == NULL)
		return QC_OK;
	if (purge->entry == 0)
		return add_item(st, apply, &item, err);
	purge_now(st, queue, effect);
	return QC_OK;
}

/* Retention has removed what stands below these starts. */
static QcStatus
apply_watermark(QcState *st, const QcApply *apply, const QcEffect *effect, QcError *err)
{
	QcQueue    *queue = group_queue(st, effect->u.watermark.queue);

	for (uint32_t i = 0; queue != NULL && i < effect->nitems; i++)
	{
		QcWatermarkItem item;
		QcPartition *partition;
		QcStatus	status;

		qc_effect_item(effect, i, &item);
		status = item_partition(st, apply, item.partition, &partition, err);
		if (status != QC_OK)
			return status;
		if (partition == NULL)
			continue;
		if (item.start > partition->next)
			return qc_error_set(err, QC_DAMAGED, "partition %llu begins behind its end",
								(unsigned long long) item.partition);
		qc_retain_below(st, partition, item.start);
		queue->unread += item.unread;
	}
	return QC_OK;
}

/* Retention has removed these ranges. */
static QcStatus
apply_gone(QcState *st, const QcApply *apply, const QcEffect *effect, QcError *err)
{
	QcQueue    *queue = group_queue(st, effect->u.gone.queue);

	for (uint32_t i = 0; queue != NULL && i < effect->nitems; i++)
	{
		QcGoneItem	item;
		QcPartition *partition;
		QcStatus	status;

		qc_effect_item(effect, i, &item);
		status = item_partition(st, apply, item.partition, &partition, err);
		if (status != QC_OK)
			return status;
		if (partition == NULL)
			continue;
		if (item.first > partition->next || item.count > partition->next - item.first)
			return qc_error_set(err, QC_DAMAGED, "messages behind the end of partition %llu are removed",
								(unsigned long long) item.partition);
		qc_retain_range(st, partition, item.first, item.first + item.count, !apply->recovering);
		queue->unread += item.unread;
	}
	return QC_OK;
}

/* Retention has removed these partitions, which were empty; nothing has a place in them. */
static QcStatus
apply_partition_drop(QcState *st, const QcApply *apply, const QcEffect *effect, QcError *err)
{
	QcQueue    *queue = group_queue(st, effect->u.partition_drop.queue);

	for (uint32_t i = 0; queue != NULL && i < effect->nitems; i++)
	{
		QcPartitionDropItem item;
		QcPartition *partition;
		QcStatus	status = QC_OK;
		uint32_t	budget = UINT32_MAX;

		qc_effect_item(effect, i, &item);
		partition = qc_partition_by_id(st, item.partition);
		if (partition == NULL)
			status = unknown_partition(st, apply, item.partition, err);
		else if (partition->pending.head != 0 || partition->lane != QC_LANE_NONE ||
				 QC_REF(st, partition) == queue->default_partition)
			status = qc_error_set(err, QC_DAMAGED, "partition %llu is removed, and is not empty",
								  (unsigned long long) item.partition);
		else
			(void) qc_partition_free(st, partition, &budget);
		if (status != QC_OK)
			return status;
	}
	return QC_OK;
}

QcStatus
qc_apply_effect(QcState *st, const QcApply *apply, const QcEffect *effect, QcError *err)
{
	switch (effect->kind)
	{
		case QC_EFFECT_APPEND:
			return apply_append(st, apply, &effect->u.append, err);
		case QC_EFFECT_ABORTED:
			return apply_aborted(st, apply, &effect->u.aborted, err);
		case QC_EFFECT_DELIVER:
			return apply_deliver(st, apply, effect, err);
		case QC_EFFECT_POP_COMMIT:
		case QC_EFFECT_RELEASE:
		case QC_EFFECT_RENEW:
			return apply_lease(st, apply, effect);
		case QC_EFFECT_ACK:
			return apply_ack(st, apply, effect, err);
		case QC_EFFECT_NACK:
			return apply_nack(st, apply, effect);
		case QC_EFFECT_DEAD:
			return apply_dead(st, apply, &effect->u.dead, err);
		case QC_EFFECT_DECISION:
			return apply_decision(st, apply, effect);
		case QC_EFFECT_CONFIRM:
			if (effect->u.confirm.seq > st->confirmed_seq)
				st->confirmed_seq = effect->u.confirm.seq;
			return QC_OK;
		case QC_EFFECT_EPOCH:
			return apply_epoch(st, &effect->u.epoch);
		case QC_EFFECT_QUEUE_CREATE:
			return apply_queue_create(st, apply, &effect->u.queue_create, err);
		case QC_EFFECT_QUEUE_DROP:
			return apply_queue_drop(st, apply, effect->u.queue_drop.queue, err);
		case QC_EFFECT_QUEUE_ALTER:
			return apply_queue_alter(st, apply, effect, err);
		case QC_EFFECT_PARTITION_CREATE:
			return apply_partition_create(st, apply, &effect->u.partition_create, err);
		case QC_EFFECT_GROUP_CREATE:
			return apply_group_create(st, apply, &effect->u.group_create, err);
		case QC_EFFECT_GROUP_DROP:
			return apply_group_drop(st, apply, &effect->u.group_drop, err);
		case QC_EFFECT_SEEK:
			return apply_seek(st, apply, effect, err);
		case QC_EFFECT_REDRIVE:
			return apply_leave(st, apply, effect, effect->u.redrive.lane, err);
		case QC_EFFECT_PURGE_DEAD:
			return apply_leave(st, apply, effect, effect->u.purge_dead.lane, err);
		case QC_EFFECT_PURGE:
			return apply_purge(st, apply, effect, err);
		case QC_EFFECT_DELAY:
			return apply_delay(st, apply, effect, err);
		case QC_EFFECT_FIRE:
			apply_fire(st, apply, effect);
			return QC_OK;
		case QC_EFFECT_CANCEL:
			qc_delay_remove(st, effect->u.cancel.lane, effect->u.cancel.position);
			return QC_OK;
		case QC_EFFECT_WATERMARK:
			return apply_watermark(st, apply, effect, err);
		case QC_EFFECT_GONE:
			return apply_gone(st, apply, effect, err);
		case QC_EFFECT_PARTITION_DROP:
			return apply_partition_drop(st, apply, effect, err);
		case QC_EFFECT_LOST:
			return qc_repair_lost(st, apply, effect, err);
		case QC_EFFECT_REPAIR:
			qc_repair_done(st, &effect->u.repair);
			return QC_OK;
		case QC_EFFECT_KIND_END:
			break;
	}
	return qc_error_set(err, QC_VERSION, "unknown effect %d", (int) effect->kind);
}
