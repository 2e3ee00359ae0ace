/*
 * qc_credit.c
 *		The credit of a plan (qc_plan.h): log space and state objects that are promised, used, or given back.
 *
 * Invariant: what qc_plan_credit promised is exactly what the reservation uses or gives back, so that reserving cannot
 * fail: not for log space or state objects, and its effects fit the state because they were checked, and their rows
 * pinned, under the same lock.	Room in the ring is what writing it out makes at any time (qc_ring.h).
 */
#include <assert.h>
#include <string.h>

#include "qc_group.h"
#include "qc_index.h"
#include "qc_plan_int.h"
#include "qc_volume.h"

#define INDEX_EVICT_MIN 1024

/* State objects of a plan. */
static QcWants
wants_of(const QcPlan *plan)
{
	const QcPlanNeeds *needs = &plan->needs;
	QcWants		wants;

	memset(&wants, 0, sizeof(wants));
	wants.n[QC_CLASS_INDEX] = needs->nindex;
	wants.n[QC_CLASS_PENDING] = needs->npending;
	wants.n[QC_CLASS_OPEN] = plan->immediate ? 0 : 1;
	wants.n[QC_CLASS_OPEN_ITEM] = needs->nitems;
	wants.n[QC_CLASS_LANE_ITEM] = needs->nlane_items;
	wants.n[QC_CLASS_QUEUE] = needs->nqueues;
	wants.n[QC_CLASS_LOG] = needs->nqueues;
	wants.n[QC_CLASS_GROUP] = needs->nqueues + needs->ngroups;
	wants.n[QC_CLASS_PARTITION] = needs->nqueues + needs->npartitions;
	wants.n[QC_CLASS_CURSOR] = needs->nqueues + needs->ncursors + needs->nspare + needs->nsought;
	wants.n[QC_CLASS_SLOT] = needs->nslots;
	wants.n[QC_CLASS_LEASE] = needs->nleases;
	wants.n[QC_CLASS_TIMER] = needs->nleases + needs->ntimers;
	wants.n[QC_CLASS_ALTER] = needs->nalters;
	wants.n[QC_CLASS_GRANT] = needs->ngrants;
	for (int i = 0; i < 4; i++)
		wants.n[QC_CLASS_NAME32 + i] = needs->names[i];
	return wants;
}

static void
give_back(QcState *st, const QcWants *wants, int classes)
{
	for (int i = 0; i < classes; i++)
		qc_mem_unreserve(&st->mem, (QcClass) i, wants->n[i]);
}

/* Are all messages of the plan dead letters, each of which takes the place of a message that was in flight? */
static bool
only_buries(const QcPlan *plan)
{
	uint64_t	messages = 0;

	for (uint32_t a = 0; a < plan->nappends; a++)
		messages += plan->appends[a].count;
	return plan->ndeads > 0 && messages == plan->ndeads;
}

/* Does the entry add to the state, hand out what is there, or take away? */
static QcUrgency
urgency_of(const QcPlan *plan)
{
	if (only_buries(plan))
		return QC_URGENCY_DELIVERS;
	if (plan->nappends > 0 || plan->needs.nqueues > 0 || plan->needs.npartitions > 0 ||
		(plan->needs.ngroups > 0 && plan->needs.names[0] + plan->needs.names[1] +
		 plan->needs.names[2] + plan->needs.names[3] > 0))
		return QC_URGENCY_ADDS;
	return plan->needs.nleases > 0 ? QC_URGENCY_DELIVERS : QC_URGENCY_EMPTIES;
}

static QcStatus
promise_objects(QcState *st, const QcWants *wants, QcUrgency urgency, QcError *err)
{
	for (int i = 0; i < QC_CLASS_COUNT; i++)
	{
		while (!qc_mem_reserve(&st->mem, (QcClass) i, wants->n[i], urgency))
		{
			uint32_t	evict = wants->n[i] > INDEX_EVICT_MIN ? wants->n[i] : INDEX_EVICT_MIN;

			/* The index is derived: its oldest entries make room for the new ones. */
			if (i == QC_CLASS_INDEX && qc_index_evict(st, evict))
				continue;
			give_back(st, wants, i);
			return qc_error_set(err, QC_FULL, "%s is full",
								i == QC_CLASS_INDEX ? "qlog.index_memory" : "qlog.state_memory");
		}
	}
	return QC_OK;
}

/* The queue that an append goes to, which must be able to take it. */
static QcQueue *
append_queue(QcState *st, const QcPlanAppend *append)
{
	QcPartition *partition = qc_partition_by_id(st, append->partition);

	return partition == NULL ? NULL : QC_AT(st, QcQueue, partition->queue);
}

/* Is the partition made by this very entry? */
static bool
makes_partition(const QcPlan *plan, uint64_t partition)
{
	QcEntry		entry;
	QcEffect	effect;

	if (plan->needs.nqueues + plan->needs.npartitions == 0 ||
		qc_entry_decode(plan->payload, plan->payload_len, &entry, NULL) != QC_OK)
		return false;
	while (qc_effect_get(&entry.effects, &effect, NULL) == QC_OK)
	{
		if ((effect.kind == QC_EFFECT_QUEUE_CREATE &&
			 effect.u.queue_create.default_partition == partition) ||
			(effect.kind == QC_EFFECT_PARTITION_CREATE &&
			 effect.u.partition_create.partition == partition))
			return true;
	}
	return false;
}

/*
 * A queue was dropped after messages for it had been staged; or an idle partition was removed, which the caller may keep from
 * happening.
 */
static QcStatus
removed_meanwhile(QcError *err)
{
	return qc_error_set(err, QC_RETRY, "a partition has been removed since a message was pushed to it");
}

/* Partitions that delayed messages are for. */
static QcStatus
check_targets(QcState *st, const QcPlan *plan, QcError *err)
{
	QcEntry		entry;
	QcEffect	effect;

	if (plan->needs.ntimers == 0 ||
		qc_entry_decode(plan->payload, plan->payload_len, &entry, NULL) != QC_OK)
		return QC_OK;
	while (qc_effect_get(&entry.effects, &effect, NULL) == QC_OK)
	{
		uint64_t	target = effect.u.delay.partition;

		if (effect.kind == QC_EFFECT_DELAY && qc_partition_by_id(st, target) == NULL &&
			!makes_partition(plan, target))
			return removed_meanwhile(err);
	}
	return QC_OK;
}

static QcStatus
check_appends(QcState *st, const QcPlan *plan, QcError *err)
{
	for (uint32_t a = 0; a < plan->nappends; a++)
	{
		QcQueue    *queue = append_queue(st, &plan->appends[a]);

		if (queue == NULL && makes_partition(plan, plan->appends[a].partition))
			continue;
		if (queue == NULL)
			return removed_meanwhile(err);
		if (queue->state == QC_QUEUE_DEAD)
			return qc_error_set(err, QC_NOTFOUND, "queue has been dropped");
		if (queue->damaged)
			return qc_error_set(err, QC_DAMAGED, "queue is out of service");
	}
	return QC_OK;
}

/* Calls visit for every effect of the plan that names a group or a partition; solo plans have none. */
typedef void (*EffectVisitor) (QcState *st, const QcEffect *effect, void *context);

static void
each_catalog_effect(QcState *st, const QcPlan *plan, EffectVisitor visit, void *context)
{
	QcEntry		entry;
	QcEffect	effect;

	if ((plan->needs.npartitions == 0 && plan->needs.ngroups == 0 && !plan->ordered) ||
		qc_entry_decode(plan->payload, plan->payload_len, &entry, NULL) != QC_OK)
		return;
	while (qc_effect_get(&entry.effects, &effect, NULL) == QC_OK)
		visit(st, &effect, context);
}

/* With no credit outstanding whoever takes one from now on counts every group there is, or will be. */
static void
release_spare(QcState *st)
{
	if (st->npins > 0)
		return;
	qc_mem_unreserve(&st->mem, QC_CLASS_CURSOR, st->spare_cursors);
	st->spare_cursors = 0;
}

static void
pin(QcState *st, QcQueue *queue, bool on)
{
	if (queue == NULL)
		return;
	assert(on || (queue->pins > 0 && st->npins > 0));
	queue->pins += on ? 1 : (uint32_t) -1;
	st->npins += on ? 1 : (uint32_t) -1;
	release_spare(st);
}

/* Pin the queue of a partition that is to be made.	context: bool on */
static void
pin_effect(QcState *st, const QcEffect *effect, void *context)
{
	if (effect->kind == QC_EFFECT_PARTITION_CREATE)
		pin(st, qc_queue_by_id(st, effect->u.partition_create.queue), *(bool *) context);
}

static void
pin_queues(QcState *st, const QcPlan *plan, bool on)
{
	for (uint32_t a = 0; a < plan->nappends; a++)
		pin(st, append_queue(st, &plan->appends[a]), on);
	each_catalog_effect(st, plan, pin_effect, &on);
}

/* Count a group on its way.	context: bool on */
static void
announce_effect(QcState *st, const QcEffect *effect, void *context)
{
	uint32_t	one = *(bool *) context ? 1 : (uint32_t) -1;
	bool		create = effect->kind == QC_EFFECT_GROUP_CREATE;
	QcQueue    *queue;

	if (!create && (effect->kind != QC_EFFECT_SEEK || effect->u.seek.mode != QC_SEEK_GROUP))
		return;
	queue = qc_queue_by_id(st, create ? effect->u.group_create.queue : effect->u.seek.queue);
	if (queue == NULL)
		return;
	queue->coming += one;
	queue->creating += create ? one : 0;
}

/* Until it has come to live whoever takes a credit for a push counts it.  A joint entry's comes when that is settled. */
static void
announce_groups(QcState *st, const QcPlan *plan, bool on)
{
	each_catalog_effect(st, plan, announce_effect, &on);
}

static QcStatus
promise_logs(QcState *st, const QcPlan *plan, uint64_t segment_size, QcExtend *extend, QcError *err)
{
	for (uint32_t l = 0; l < plan->nlogs; l++)
	{
		QcLog	   *log = qc_log_by_id(st, plan->logs[l]);
		QcStatus	status;

		if (log == NULL)
			status = qc_error_set(err, QC_NOTFOUND, "log %llu does not exist",
								  (unsigned long long) plan->logs[l]);
		else
			status = qc_log_credit(st, log, plan->log_bytes[l], plan->log_record[l], segment_size,
								   extend);
		if (status == QC_OK)
			continue;
		while (l-- > 0)
			qc_log_uncredit(st, qc_log_by_id(st, plan->logs[l]), plan->log_bytes[l]);
		return status;
	}
	return QC_OK;
}

static void
release_logs(QcState *st, const QcPlan *plan)
{
	for (uint32_t l = 0; l < plan->nlogs; l++)
		qc_log_uncredit(st, qc_log_by_id(st, plan->logs[l]), plan->log_bytes[l]);
}

/* Cursors that the plan's appends and new partitions make: for groups that are there, and (later) for those on their way. */
typedef struct CursorCount
{
	uint32_t	now;
	uint32_t	later;
} CursorCount;

/* One for each group of a new partition.	context: CursorCount */
static void
count_effect(QcState *st, const QcEffect *effect, void *context)
{
	CursorCount *count = context;
	QcQueue    *queue;

	if (effect->kind != QC_EFFECT_PARTITION_CREATE ||
		effect->u.partition_create.lane != QC_LANE_NONE)
		return;

	/* A queue of this very entry has its default group only. */
	queue = qc_queue_by_id(st, effect->u.partition_create.queue);
	count->now += queue == NULL ? 1 : queue->ngroups;
	count->later += queue == NULL ? 0 : queue->coming;
}

static CursorCount
count_cursors(QcState *st, const QcPlan *plan)
{
	CursorCount count = {0, 0};

	for (uint32_t a = 0; a < plan->nappends; a++)
	{
		QcPartition *partition = qc_partition_by_id(st, plan->appends[a].partition);

		if (partition == NULL || partition->lane != QC_LANE_NONE)
			continue;
		count.now += qc_groups_lacking(st, partition);
		count.later += QC_AT(st, QcQueue, partition->queue)->coming;
	}
	each_catalog_effect(st, plan, count_effect, &count);
	return count;
}

/* What the groups that the plan makes ask of their queues. */
typedef struct NewGroups
{
	QcPlan	   *plan;
	QcStatus	status;
	QcError    *err;
	uint64_t	queue;			/* of the effect before */
	uint32_t	made;			/* for it, less those dropped */
} NewGroups;

/* Room for the group, and cursors for those whose credit stands already.  context: NewGroups */
static void
check_group(QcState *st, const QcEffect *effect, void *context)
{
	NewGroups  *new = context;
	bool		create = effect->kind == QC_EFFECT_GROUP_CREATE;
	uint64_t	id = create ? effect->u.group_create.queue :
		effect->kind == QC_EFFECT_GROUP_DROP ? effect->u.group_drop.queue : effect->u.seek.queue;
	QcQueue    *queue;

	if (!create && effect->kind != QC_EFFECT_GROUP_DROP &&
		(effect->kind != QC_EFFECT_SEEK || effect->u.seek.mode != QC_SEEK_GROUP))
		return;
	queue = qc_queue_by_id(st, id);
	if (queue == NULL)
		return;
	if (id != new->queue)
		new->made = 0;
	new->queue = id;
	if (effect->kind == QC_EFFECT_GROUP_DROP)
	{
		new->made--;
		return;
	}
	new->plan->needs.nspare += queue->pins;
	if (!create)
		return;
	new->made++;
	if ((int64_t) queue->ngroups + queue->creating + (int32_t) new->made > QC_GROUPS_MAX)
		new->status = qc_error_set(new->err, QC_LIMIT, "a queue can have %d consumer groups",
								   QC_GROUPS_MAX);
}

static QcStatus
check_groups(QcState *st, QcPlan *plan, QcError *err)
{
	NewGroups	new = {plan, QC_OK, err, 0, 0};

	plan->needs.nspare = 0;
	each_catalog_effect(st, plan, check_group, &new);
	return new.status;
}

/*
 * Groups that have come since the credit need cursors that it does not hold: their own credits promised those.  What this
 * one promised for others stays promised.
 */
static void
settle_cursors(QcState *st, QcPlan *plan)
{
	uint32_t	promised = plan->needs.ncursors;
	uint32_t	needed = count_cursors(st, plan).now;

	if (needed > promised)
	{
		assert(st->spare_cursors >= needed - promised);
		st->spare_cursors -= needed - promised;
		plan->needs.ncursors = needed;
	}
	st->spare_cursors += plan->needs.nspare;
	plan->needs.nspare = 0;
	release_spare(st);
}

void
qc_plan_touch(QcRing *ring, const QcPlan *plan)
{
	bool		big;

	qc_ring_touch(ring, qc_ring_need(ring, plan->nparts, plan->bytes, &big));
}

bool
qc_plan_has_room(const QcRing *ring, const QcPlan *plan)
{
	return qc_ring_has_room(ring, plan->ring_need);
}

/* What the entry needs in the ring, and whether it fits there and into log files at all. */
static QcStatus
check_size(const QcRing *ring, QcPlan *plan, uint64_t segment_size, QcError *err)
{
	plan->ring_need = qc_ring_need(ring, plan->nparts, plan->bytes, &plan->big);
	if (plan->ring_need > qc_ring_need_max(ring))
		return qc_error_set(err, QC_LIMIT, "entry touches too many logs for qlog.buffers");
	for (uint32_t l = 0; l < plan->nlogs; l++)
	{
		if (plan->log_record[l] > segment_size / 2)
			return qc_error_set(err, QC_LIMIT, "log entry is larger than half a log file");
	}
	return QC_OK;
}

QcStatus
qc_plan_credit(QcState *st, QcRing *ring, QcPlan *plan, uint64_t segment_size, QcLack *lack,
			   QcExtend *extend, QcError *err)
{
	QcStatus	status = check_appends(st, plan, err);
	CursorCount cursors;
	QcWants		wants;

	assert(!plan->credited);
	*lack = QC_LACK_NOTHING;
	if (status == QC_OK)
		status = check_targets(st, plan, err);
	if (status != QC_OK)
		return status;
	cursors = count_cursors(st, plan);
	plan->needs.ncursors = cursors.now + cursors.later;
	status = check_groups(st, plan, err);
	if (status != QC_OK)
		return status;
	status = check_size(ring, plan, segment_size, err);
	if (status != QC_OK)
		return status;
	if (!qc_plan_has_room(ring, plan))
	{
		*lack = QC_LACK_RING;
		return QC_BUSY;
	}
	wants = wants_of(plan);
	status = promise_objects(st, &wants, urgency_of(plan), err);
	if (status != QC_OK)
		return status;
	status = promise_logs(st, plan, segment_size, extend, err);
	*lack = status == QC_BUSY ? QC_LACK_LOG : QC_LACK_NOTHING;
	if (status == QC_OK)
	{
		status = qc_volume_promise(st, plan, err);
		if (status != QC_OK)
			release_logs(st, plan);
	}
	if (status != QC_OK)
	{
		give_back(st, &wants, QC_CLASS_COUNT);
		return status;
	}
	pin_queues(st, plan, true);
	announce_groups(st, plan, true);
	plan->credited = true;
	return QC_OK;
}

void
qc_plan_uncredit(QcState *st, QcPlan *plan)
{
	QcWants		wants = wants_of(plan);

	assert(plan->credited && plan->seq == 0);
	pin_queues(st, plan, false);
	qc_volume_unpromise(st, plan);
	announce_groups(st, plan, false);
	release_logs(st, plan);
	give_back(st, &wants, QC_CLASS_COUNT);
	plan->credited = false;
}

/* Promises that stand before the plan uses its own. */
static QcWants
promises(const QcState *st)
{
	QcWants		standing;

	for (int i = 0; i < QC_CLASS_COUNT; i++)
		standing.n[i] = st->mem.pools[i].nreserved;
	return standing;
}

/* Give back what was promised and not needed: a delivery of fewer messages, a name or an item that came to nothing. */
static void
give_back_unused(QcState *st, const QcPlan *plan, const QcWants *before)
{
	QcWants		wants = wants_of(plan);

	for (int i = 0; i < QC_CLASS_COUNT; i++)
	{
		uint32_t	used = before->n[i] - st->mem.pools[i].nreserved;

		assert(used <= wants.n[i]);
		qc_mem_unreserve(&st->mem, (QcClass) i, wants.n[i] - used);
	}
}

QcWants
qc_credit_use(QcState *st, QcPlan *plan)
{
	settle_cursors(st, plan);
	pin_queues(st, plan, false);
	qc_volume_unpromise(st, plan);
	if (plan->xid == 0)
		announce_groups(st, plan, false);
	return promises(st);
}

void
qc_credit_end(QcState *st, QcPlan *plan, const QcWants *before)
{
	give_back_unused(st, plan, before);

	/* A small plan promised room for its largest effect. */
	release_logs(st, plan);
	plan->credited = false;
}
