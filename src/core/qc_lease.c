/*
 * qc_lease.c
 *		Leases: delivery, answers, expiry.
 *
 * Invariants: nslots is the length of slots; every lease has a timer from its delivery on (so that starting its
 * clock needs no memory), which does nothing while the lease is owned or pinned; a lease is in the id table and in
 * the lists of all leases and of its group until it is freed.
 */
#include "qc_lease.h"

#include <assert.h>
#include <stddef.h>

#include "qc_group.h"
#include "qc_purge.h"
#include "qc_timer.h"

#define OF_LEASE	offsetof(QcSlot, of_lease)
#define ALL			offsetof(QcLease, all)
#define OF_GROUP	offsetof(QcLease, of_group)

static QcLease *
create(QcState *st, uint64_t id, QcQueue *queue, QcGroup *group, bool promised)
{
	QcRef		ref = promised ? qc_mem_alloc_reserved(&st->mem, QC_CLASS_LEASE) :
		qc_mem_alloc(&st->mem, QC_CLASS_LEASE);
	QcLease    *lease = QC_AT(st, QcLease, ref);
	QcRef	   *bucket = qc_table_bucket(st, &st->lease_ids, qc_hash_id(id));

	if (lease == NULL)
		return NULL;
	lease->id = id;
	lease->queue = QC_REF(st, queue);
	lease->group = QC_REF(st, group);
	lease->id_next = *bucket;
	*bucket = ref;
	st->lease_ids.count++;
	qc_list_append(st, &st->leases, ref, ALL);
	qc_list_append(st, &group->leases, ref, OF_GROUP);
	qc_dirty_lease(st, lease);
	return lease;
}

/* Let the lease run for its time from now on; false = no memory, only for a lease that has no timer yet. */
static bool
start_clock(QcState *st, QcLease *lease, int64_t monotonic, bool promised)
{
	int64_t		when = lease->lease_us > INT64_MAX - monotonic ? INT64_MAX :
		monotonic + lease->lease_us;

	return qc_timer_arm_lease(st, lease, when, monotonic, promised);
}

bool
qc_lease_start(QcState *st, QcLease *lease, int64_t monotonic)
{
	return start_clock(st, lease, monotonic, false);
}

QcLease *
qc_lease_load(QcState *st, uint64_t id, QcQueue *queue, QcGroup *group)
{
	return create(st, id, queue, group, false);
}

void
qc_lease_attach(QcState *st, QcLease *lease, QcSlot *slot)
{
	slot->lease = QC_REF(st, lease);
	qc_list_append(st, &lease->slots, QC_REF(st, slot), OF_LEASE);
	lease->nslots++;
}

void
qc_lease_destroy(QcState *st, QcLease *lease)
{
	QcRef		ref = QC_REF(st, lease);
	QcRef	   *at = qc_table_bucket(st, &st->lease_ids, qc_hash_id(lease->id));

	assert(lease->nslots == 0);
	while (*at != ref)
		at = &QC_AT(st, QcLease, *at)->id_next;
	*at = lease->id_next;
	st->lease_ids.count--;
	qc_timer_disarm(st, &lease->timer);
	qc_list_remove(st, &st->leases, ref, ALL);
	qc_list_remove(st, &QC_AT(st, QcGroup, lease->group)->leases, ref, OF_GROUP);
	qc_free_row(st, QC_CLASS_LEASE, ref, &lease->dirty);
}

bool
qc_lease_end_if_empty(QcState *st, QcLease *lease)
{
	if (lease->nslots > 0)
		return false;
	qc_lease_destroy(st, lease);
	return true;
}

/*
 * Would a delivery of this position pass over messages?  Live, none does; a replay does not follow one that came after a
 * seek which is not part of this server's history: what it passes over would never be delivered.
 */
static bool
skips(const QcPartition *partition, const QcCursor *cursor, uint64_t position)
{
	return position > cursor->fetch && cursor->fetch < partition->stable;
}

/* One run of a delivery. */
static QcStatus
deliver_run(QcState *st, const QcApply *apply, QcLease *lease, const QcDeliverItem *run,
			QcError *err)
{
	QcPartition *partition = qc_partition_by_id(st, run->partition);
	QcGroup    *group = QC_AT(st, QcGroup, lease->group);
	QcCursor   *cursor;
	uint32_t	used;

	if (partition == NULL)
		return qc_error_set(err, QC_DAMAGED, "delivery from unknown partition %llu",
							(unsigned long long) run->partition);
	cursor = qc_group_cursor(st, group, partition, false, &used);
	if (cursor == NULL)
		return qc_error_set(err, apply->recovering ? QC_FULL : QC_DAMAGED,
							"group %llu does not stand in partition %llu",
							(unsigned long long) group->id, (unsigned long long) run->partition);
	for (uint32_t i = 0; i < run->count; i++)
	{
		uint64_t	position = run->first + i;
		QcSlot	   *slot;

		if (apply->recovering && skips(partition, cursor, position))
			continue;
		slot = qc_cursor_take(st, cursor, position, run->attempt, !apply->recovering);
		if (slot == NULL && apply->recovering)
			continue;
		if (slot == NULL)
			return qc_error_set(err, QC_DAMAGED,
								"delivery of position %llu of partition %llu does not fit the state",
								(unsigned long long) position,
								(unsigned long long) run->partition);
		group->redelivered += run->attempt > 1;
		qc_lease_attach(st, lease, slot);
	}
	qc_cursor_refresh(st, cursor);
	return QC_OK;
}

QcStatus
qc_lease_deliver(QcState *st, const QcDeliver *deliver, const QcEffect *effect,
				 const QcApply *apply, QcError *err)
{
	QcQueue    *queue = qc_queue_by_id(st, deliver->queue);
	QcGroup    *group = queue == NULL ? NULL : qc_group_by_id(st, queue, deliver->group);
	QcLease    *lease;

	if (group == NULL)
		return qc_error_set(err, QC_NOTFOUND, "delivery to unknown queue %llu or group %llu",
							(unsigned long long) deliver->queue,
							(unsigned long long) deliver->group);
	if (qc_lease_listed(st, deliver->lease) != NULL)
		return qc_error_set(err, QC_EXISTS, "lease id is in use");
	lease = create(st, deliver->lease, queue, group, !apply->recovering);
	if (lease == NULL)
		return qc_error_set(err, QC_FULL, "state memory is full");
	lease->owner = apply->owner;
	lease->lease_us = (int64_t) deliver->lease_us;
	lease->leased_at = apply->created_at;
	lease->delivered = apply->seq;
	if (!start_clock(st, lease, apply->monotonic, !apply->recovering))
		return qc_error_set(err, QC_FULL, "state memory is full");
	for (uint32_t i = 0; i < effect->nitems; i++)
	{
		QcDeliverItem run;
		QcStatus	status;

		qc_effect_item(effect, i, &run);
		status = deliver_run(st, apply, lease, &run, err);
		if (status != QC_OK)
			return status;
	}
	lease->taken = lease->nslots;
	queue->popped += lease->nslots;
	queue->last_pop = group->last_pop = apply->created_at;
	qc_dirty_queue(st, queue);
	qc_dirty_group(st, group);
	(void) qc_lease_end_if_empty(st, lease);
	return QC_OK;
}

void
qc_lease_commit(QcState *st, QcLease *lease, int64_t monotonic)
{
	lease->owner = 0;
	lease->committed = 1;
	qc_dirty_lease(st, lease);
	(void) start_clock(st, lease, monotonic, false);
}

void
qc_lease_renew(QcState *st, QcLease *lease, int64_t lease_us, int64_t monotonic)
{
	lease->lease_us = lease_us;
	qc_dirty_lease(st, lease);
	(void) start_clock(st, lease, monotonic, false);
}

void
qc_lease_pin(QcState *st, QcLease *lease, uint64_t seq)
{
	assert(lease->pin_seq == 0 || lease->pin_seq == QC_PIN_PROMISED || lease->pin_seq == seq);
	lease->pin_seq = seq;
	qc_dirty_lease(st, lease);
}

void
qc_lease_unpin(QcState *st, QcLease *lease, int64_t monotonic)
{
	lease->pin_seq = 0;
	qc_dirty_lease(st, lease);
	(void) start_clock(st, lease, monotonic, false);
}

/* Take the slot out of its lease. */
static void
detach(QcState *st, QcLease *lease, QcSlot *slot)
{
	assert(slot->lease == QC_REF(st, lease) && lease->nslots > 0);
	qc_list_remove(st, &lease->slots, QC_REF(st, slot), OF_LEASE);
	lease->nslots--;
	slot->lease = 0;
	qc_dirty_lease(st, lease);
}

/* Does an open entry answer for this message of the lease? */
static bool
is_answered(QcState *st, const QcLease *lease, uint64_t partition, uint64_t position)
{
	for (QcOpen *open = QC_AT(st, QcOpen, st->opens.head); open != NULL;
		 open = QC_AT(st, QcOpen, open->all.next))
	{
		for (QcRef ref = open->items; ref != 0; ref = QC_AT(st, QcOpenItem, ref)->next)
		{
			const QcOpenItem *item = QC_AT(st, QcOpenItem, ref);

			if (item->lease == lease->id && item->partition == partition &&
				position >= item->first && position - item->first < item->count)
				return true;
		}
	}
	return false;
}

/* Lowest position that the lease holds of the cursor. */
static uint64_t
lowest_of(QcState *st, const QcLease *lease, const QcCursor *cursor)
{
	QcRef		of_lease = QC_REF(st, lease);
	const QcSlot *slot = QC_AT(st, QcSlot, cursor->slots.head);

	while (slot->lease != of_lease)
		slot = QC_AT(st, QcSlot, slot->of_cursor.next);
	return slot->position;
}

/* Messages of the lease that open entries answer for. */
static uint32_t
count_answered(QcState *st, const QcLease *lease)
{
	uint32_t	n = 0;

	for (const QcSlot *slot = QC_AT(st, QcSlot, lease->slots.head); slot != NULL;
		 slot = QC_AT(st, QcSlot, slot->of_lease.next))
	{
		const QcCursor *cursor = QC_AT(st, QcCursor, slot->cursor);

		n += is_answered(st, lease, QC_AT(st, QcPartition, cursor->partition)->id, slot->position);
	}
	return n;
}

/*
 * What open entries answer for comes back first.  When these are as many as were acknowledged they are the ones: nobody's
 * failure.  Otherwise an answer among them was rolled back before: then they all count, as an attempt must not be
 * forgotten, and what was acknowledged will be done whatever it counts.
 */
static void
release_answered(QcState *st, QcLease *lease, uint32_t messages, const QcReturn *how)
{
	bool		rolled_back = count_answered(st, lease) > lease->nslots - messages;

	for (QcRef ref = lease->slots.head; ref != 0;)
	{
		QcSlot	   *slot = QC_AT(st, QcSlot, ref);
		QcCursor   *cursor = QC_AT(st, QcCursor, slot->cursor);

		ref = slot->of_lease.next;
		if (!is_answered(st, lease, QC_AT(st, QcPartition, cursor->partition)->id, slot->position))
			continue;
		detach(st, lease, slot);
		qc_cursor_put_back(st, cursor, slot, how, rolled_back);
		qc_cursor_refresh(st, cursor);
	}
}

void
qc_lease_release(QcState *st, QcLease *lease, uint32_t messages, const QcReturn *how)
{
	QcQueue    *queue = QC_AT(st, QcQueue, lease->queue);
	QcCursor   *last = NULL;
	uint64_t	lowest = 0;
	QcRef		ref;

	if (messages < lease->nslots)
		release_answered(st, lease, messages, how);
	if (how->cause == QC_DEAD_EXPIRED)
	{
		queue->expired += lease->nslots;
		qc_dirty_queue(st, queue);
	}

	/* Partition by partition, in the order of the delivery, which need not be that of positions. */
	while ((ref = lease->slots.head) != 0)
	{
		QcSlot	   *slot = QC_AT(st, QcSlot, ref);
		QcCursor   *cursor = QC_AT(st, QcCursor, slot->cursor);

		if (cursor != last)
			lowest = lowest_of(st, lease, cursor);
		detach(st, lease, slot);
		qc_cursor_put_back(st, cursor, slot, how, slot->position == lowest ||
						   !qc_partition_ordered(st, QC_AT(st, QcPartition, cursor->partition)));
		qc_cursor_refresh(st, cursor);
		last = cursor;
	}
	lease->pin_seq = 0;
	qc_lease_destroy(st, lease);
}

uint32_t
qc_lease_nack(QcState *st, QcLease *lease, QcPartition *partition, uint64_t first, uint32_t count,
			  const QcReturn *how)
{
	QcQueue    *queue = QC_AT(st, QcQueue, lease->queue);
	bool		rest = count == QC_NACK_REST;
	uint64_t	end = rest ? UINT64_MAX : first + count;
	QcRef		of_partition = QC_REF(st, partition);
	QcCursor   *cursor = NULL;
	uint32_t	n = 0;

	for (QcRef ref = lease->slots.head; ref != 0;)
	{
		QcSlot	   *slot = QC_AT(st, QcSlot, ref);

		ref = slot->of_lease.next;
		if (slot->position < first || slot->position >= end ||
			QC_AT(st, QcCursor, slot->cursor)->partition != of_partition)
			continue;
		cursor = QC_AT(st, QcCursor, slot->cursor);
		detach(st, lease, slot);
		qc_cursor_put_back(st, cursor, slot, how, !rest || slot->position == first);
		n++;
	}
	if (cursor != NULL)
		qc_cursor_refresh(st, cursor);
	queue->nacked += n;
	qc_dirty_queue(st, queue);
	return n;
}

uint32_t
qc_lease_done(QcState *st, QcLease *lease, QcPartition *partition, uint64_t first, uint32_t count)
{
	QcRef		of_partition = QC_REF(st, partition);
	QcCursor   *cursor = NULL;
	uint32_t	n = 0;

	/*
	 * What is acknowledged is nearly always the head of the list: this walks no further than it
	 * must.
	 */
	for (QcRef ref = lease->slots.head; ref != 0 && n < count;)
	{
		QcSlot	   *slot = QC_AT(st, QcSlot, ref);

		ref = slot->of_lease.next;
		if (slot->position < first || slot->position - first >= count ||
			QC_AT(st, QcCursor, slot->cursor)->partition != of_partition)
			continue;
		cursor = QC_AT(st, QcCursor, slot->cursor);
		detach(st, lease, slot);
		qc_cursor_finish(st, cursor, slot);
		n++;
	}
	if (cursor != NULL)
		qc_cursor_refresh(st, cursor);
	return n;
}

QcSlot *
qc_lease_slot(QcState *st, const QcLease *lease, const QcPartition *partition, uint64_t position)
{
	QcRef		of_partition = QC_REF(st, partition);
	QcSlot	   *slot = QC_AT(st, QcSlot, lease->slots.head);

	for (; slot != NULL; slot = QC_AT(st, QcSlot, slot->of_lease.next))
	{
		if (slot->position == position &&
			QC_AT(st, QcCursor, slot->cursor)->partition == of_partition)
			return slot;
	}
	return NULL;
}
