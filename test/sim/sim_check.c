/*
 * sim_check.c
 *		Invariants of the state that no message shows: counts, lists, and promises that nobody has left behind.
 */
#include "sim_server.h"

#include "qc_group.h"
#include "qc_purge.h"

#include <inttypes.h>
#include <string.h>

/* What the walk through the state finds. */
typedef struct Found
{
	SimServer  *server;
	QcState    *st;
	uint32_t	n[QC_CLASS_COUNT];
	uint64_t	dead;			/* letters of the queue that is looked at */
	uint64_t	visible;		/* ... and messages that are kept and visible */
	bool		good;
} Found;

static void
expect(Found *found, const char *what, uint64_t actual, uint64_t expected)
{
	if (actual == expected)
		return;
	found->good = sim_world_fail(found->server->world, "%s is %" PRIu64 " instead of %" PRIu64, what,
								 actual, expected);
}

/* What a cursor counts. */
typedef struct CursorCounts
{
	uint32_t	slots;
	uint32_t	leased;
	uint32_t	waiting;
	uint32_t	retry;
} CursorCounts;

static CursorCounts
count_slots(Found *found, const QcCursor *cursor)
{
	QcState    *st = found->st;
	CursorCounts counts = {0};
	uint64_t	above = 0;

	for (QcSlot *slot = QC_AT(st, QcSlot, cursor->slots.head); slot != NULL;
		 slot = QC_AT(st, QcSlot, slot->of_cursor.next))
	{
		if (slot->position < above || slot->position >= cursor->fetch)
			expect(found, "a slot's position", slot->position, above);
		above = slot->position + 1;
		counts.slots++;
		counts.leased += slot->state == QC_SLOT_LEASED;
		counts.waiting += slot->state == QC_SLOT_WAITING || slot->state == QC_SLOT_DYING;
		counts.retry += slot->state == QC_SLOT_RETRY;
		if ((slot->state == QC_SLOT_LEASED) != (slot->lease != 0))
			expect(found, "the lease of a slot", slot->lease, 0);
	}
	return counts;
}

/* Visible messages from fetch on. */
static uint64_t
count_fresh(const Found *found, const QcPartition *partition, const QcCursor *cursor)
{
	uint64_t	count = 0;
	const QcAbortedRange *range = QC_AT(found->st, QcAbortedRange, partition->aborted.head);

	for (uint64_t p = cursor->fetch; p < partition->stable; p++)
	{
		while (range != NULL && range->first + range->count <= p)
			range = QC_AT(found->st, QcAbortedRange, range->next);
		count += range == NULL || p < range->first;
	}
	return count;
}

static void
check_cursor(Found *found, QcCursor *cursor)
{
	QcState    *st = found->st;
	const QcGroup *group = QC_AT(st, QcGroup, cursor->group);
	CursorCounts counts = count_slots(found, cursor);
	uint32_t	listed = 0;

	expect(found, "slots of a cursor", cursor->nslots, counts.slots);
	expect(found, "leased slots of a cursor", cursor->nleased, counts.leased);
	expect(found, "waiting slots of a cursor", cursor->nwaiting, counts.waiting);
	for (QcRef ref = group->ready.head; ref != 0; ref = QC_AT(st, QcCursor, ref)->ready.next)
		listed += QC_AT(st, QcCursor, ref) == cursor;

	/* Lists of what is gone were emptied at once. */
	if (group->state != QC_GROUP_DEAD && QC_AT(st, QcQueue, group->queue)->state != QC_QUEUE_DEAD)
		expect(found, "a cursor's place in the ready list", listed, cursor->is_ready);
	found->n[QC_CLASS_SLOT] += counts.slots;
	found->n[QC_CLASS_CURSOR]++;
}

/* Messages of a lane, in order of position. */
static void
check_lane(Found *found, const QcPartition *partition)
{
	QcState    *st = found->st;
	uint32_t	live = 0;
	uint64_t	next = 0;

	for (QcRef ref = partition->items.head; ref != 0;)
	{
		const QcLaneItem *item = QC_AT(st, QcLaneItem, ref);

		expect(found, "the lane of a message", item->lane, QC_REF(st, partition));
		if (item->position < next || item->position >= partition->next)
			expect(found, "the position of a message in a lane", item->position, next);
		next = item->position + 1;
		live += item->state == QC_LANE_ITEM_LIVE;
		ref = item->of_lane.next;
	}
	expect(found, "messages of a lane", partition->nitems, live);
	if (partition->lane == QC_LANE_DEAD)
		found->dead += live;
}

static void
check_partition(Found *found, QcPartition *partition)
{
	QcState    *st = found->st;
	uint64_t	end = partition->stable;
	QcCursor	all = {.fetch = partition->start};

	if (partition->lane == QC_LANE_NONE)
	{
		expect(found, "visible messages of a partition", partition->visible,
			   count_fresh(found, partition, &all));
		found->visible += partition->visible;
	}
	for (QcRef ref = partition->pending.head; ref != 0;
		 ref = QC_AT(st, QcPending, ref)->of_partition.next)
	{
		const QcPending *pending = QC_AT(st, QcPending, ref);

		expect(found, "a pending entry's first position", pending->first, end);
		end = pending->first + pending->count;
		found->n[QC_CLASS_PENDING]++;
	}
	expect(found, "a partition's next position", partition->next, end);
	for (QcRef ref = partition->aborted.head; ref != 0; ref = QC_AT(st, QcAbortedRange, ref)->next)
		found->n[QC_CLASS_PENDING]++;
	for (QcRef ref = partition->cursors; ref != 0; ref = QC_AT(st, QcCursor, ref)->next)
		check_cursor(found, QC_AT(st, QcCursor, ref));
	check_lane(found, partition);
}

/* What a group counts over all partitions. */
static void
check_group(Found *found, const QcQueue *queue, const QcGroup *group)
{
	QcState    *st = found->st;
	uint64_t	ready = 0;
	uint64_t	leased = 0;
	uint64_t	waiting = 0;
	uint64_t	unscanned = 0;

	for (QcPartition *partition = QC_AT(st, QcPartition, queue->partitions.head); partition != NULL;
		 partition = QC_AT(st, QcPartition, partition->of_queue.next))
	{
		const QcCursor *cursor = qc_cursor_of(st, partition, group);
		CursorCounts counts;

		if (partition->lane != QC_LANE_NONE)
			continue;
		if (qc_group_lacks(st, partition, group))
		{
			unscanned += qc_group_scanning(group) ? partition->visible : 0;
			continue;
		}
		counts = count_slots(found, cursor);
		ready += counts.retry + count_fresh(found, partition, cursor);
		leased += counts.leased;
		waiting += counts.waiting;
	}
	expect(found, "ready messages of a group", group->nready, ready);
	expect(found, "leased messages of a group", group->nleased, leased);
	expect(found, "waiting messages of a group", group->nwaiting, waiting);
	expect(found, "messages that a group has not looked at", group->unscanned, unscanned);
}

static void
check_queue(Found *found, QcQueue *queue)
{
	QcState    *st = found->st;
	uint32_t	n = 0;

	found->dead = found->visible = 0;
	for (QcRef ref = queue->partitions.head; ref != 0; ref = QC_AT(st, QcPartition, ref)->of_queue.next)
	{
		qc_partition_touch(st, QC_AT(st, QcPartition, ref));
		check_partition(found, QC_AT(st, QcPartition, ref));
		n += QC_AT(st, QcPartition, ref)->lane == QC_LANE_NONE;
	}
	expect(found, "partitions of a queue", queue->npartitions, n);
	expect(found, "dead letters of a queue", queue->dead, found->dead);

	/* A dropped queue delivers nothing, so nobody counts there any more. */
	if (queue->state == QC_QUEUE_DEAD)
		return;
	expect(found, "visible messages of a queue", queue->visible, found->visible);
	for (QcRef ref = queue->groups; ref != 0; ref = QC_AT(st, QcGroup, ref)->next)
	{
		if (QC_AT(st, QcGroup, ref)->state == QC_GROUP_LIVE)
			check_group(found, queue, QC_AT(st, QcGroup, ref));
	}
}

static void
check_leases(Found *found)
{
	QcState    *st = found->st;

	for (QcLease *lease = QC_AT(st, QcLease, st->leases.head); lease != NULL;
		 lease = QC_AT(st, QcLease, lease->all.next))
	{
		uint32_t	n = 0;

		for (QcRef ref = lease->slots.head; ref != 0; ref = QC_AT(st, QcSlot, ref)->of_lease.next)
			n++;
		expect(found, "slots of a lease", lease->nslots, n);
		if (lease->timer == 0)
			expect(found, "timers of a lease", 0, 1);
		found->n[QC_CLASS_LEASE]++;
	}
	expect(found, "leases in the table", st->lease_ids.count, found->n[QC_CLASS_LEASE]);
}

static void
check_opens(Found *found)
{
	QcState    *st = found->st;

	for (QcOpen *open = QC_AT(st, QcOpen, st->opens.head); open != NULL;
		 open = QC_AT(st, QcOpen, open->all.next))
	{
		for (QcRef ref = open->items; ref != 0; ref = QC_AT(st, QcOpenItem, ref)->next)
			found->n[QC_CLASS_OPEN_ITEM]++;
		found->n[QC_CLASS_OPEN]++;
	}
	expect(found, "open entries", st->nopens, found->n[QC_CLASS_OPEN]);
}

static const char *const class_names[QC_CLASS_COUNT] = {
#define CLASS_NAME(name, bytes, budget) "promised objects of class " #name,
	QC_CLASS_LIST(CLASS_NAME)
#undef CLASS_NAME
};

/* Nobody is in the middle of anything: no promise stands. */
static void
check_promises(Found *found)
{
	QcState    *st = found->st;

	for (int i = 0; i < QC_CLASS_COUNT; i++)
		expect(found, class_names[i], st->mem.pools[i].nreserved, 0);
	for (QcLog *log = QC_AT(st, QcLog, st->logs); log != NULL; log = QC_AT(st, QcLog, log->next))
		expect(found, "a credit in a log", log->credit, 0);
	for (QcQueue *queue = QC_AT(st, QcQueue, st->queues.head); queue != NULL;
		 queue = QC_AT(st, QcQueue, queue->all.next))
		expect(found, "pins of a queue", queue->pins, 0);
}

bool
sim_check(SimServer *server, bool idle)
{
	/* classes whose objects all hang on something that was walked through */
	static const QcClass counted[] = {QC_CLASS_SLOT, QC_CLASS_PENDING, QC_CLASS_OPEN_ITEM};
	Found		found = {.server = server, .st = server->st, .good = true};
	QcState    *st = server->st;

	for (QcQueue *queue = QC_AT(st, QcQueue, st->queues.head); queue != NULL;
		 queue = QC_AT(st, QcQueue, queue->all.next))
		check_queue(&found, queue);
	check_leases(&found);
	check_opens(&found);
	for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++)
		expect(&found, "objects in use", st->mem.pools[counted[i]].nused, found.n[counted[i]]);
	if (idle)
		check_promises(&found);
	return found.good;
}
