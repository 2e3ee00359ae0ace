/*
 * sim_wait.c
 *		Invariants of waiting (qc_wait.h), looked at after every step of a process, when the state lock is free.
 */
#include "sim_server.h"

#include "qc_wait.h"

#include <string.h>

/* Messages of a cursor that can be taken now, counted one by one. */
static uint64_t
count_messages(const QcState *st, const QcCursor *cursor)
{
	const QcPartition *partition = QC_AT(st, QcPartition, cursor->partition);
	const QcAbortedRange *range = QC_AT(st, QcAbortedRange, partition->aborted.head);
	uint64_t	room = st->max_slots > cursor->nslots ? st->max_slots - cursor->nslots : 0;
	uint64_t	fresh = 0;
	uint64_t	retry = 0;

	for (QcSlot *slot = QC_AT(st, QcSlot, cursor->slots.head); slot != NULL;
		 slot = QC_AT(st, QcSlot, slot->of_cursor.next))
		retry += slot->state == QC_SLOT_RETRY;
	for (uint64_t p = cursor->fetch; p < partition->stable && fresh < room; p++)
	{
		while (range != NULL && range->first + range->count <= p)
			range = QC_AT(st, QcAbortedRange, range->next);
		fresh += range == NULL || p < range->first;
	}
	return retry + fresh;
}

/* What processes wait for in a group, and what they have been woken for. */
typedef struct Waits
{
	uint32_t	listed;
	uint32_t	any;			/* of these, those that wait for any partition */
	uint64_t	claims;
	uint64_t	weight;
} Waits;

static Waits
count_waits(SimServer *server, const QcGroup *group)
{
	Waits		waits = {0};

	for (uint32_t i = 0; i < SIM_PROCS; i++)
	{
		const QcWaiter *waiter = qc_waiter(server->st, i);

		if (waiter->group != QC_REF(server->st, group))
			continue;
		if (waiter->state == QC_WAITER_LISTED)
		{
			waits.listed++;
			waits.any += waiter->partition_hash == 0;
			continue;
		}
		waits.claims++;
		waits.weight += waiter->weight;
	}
	return waits;
}

static bool
check_group(SimServer *server, const QcGroup *group)
{
	QcState    *st = server->st;
	Waits		waits = count_waits(server, group);
	uint64_t	ordered = 0;
	uint64_t	competing = 0;

	if (waits.listed != group->nlisted || waits.claims != group->nclaims ||
		waits.weight != group->claims_weight)
		return sim_world_fail(server->world, "waiters of a group are miscounted");
	if (waits.any == 0)
		return true;
	for (const QcCursor *cursor = QC_AT(st, QcCursor, group->ready.head); cursor != NULL;
		 cursor = QC_AT(st, QcCursor, cursor->ready.next))
	{
		if (qc_partition_ordered(st, QC_AT(st, QcPartition, cursor->partition)))
			ordered++;
		else
			competing += count_messages(st, cursor);
	}
	if (ordered > 0 ? ordered + competing <= waits.claims : competing <= waits.weight)
		return true;
	return sim_world_fail(server->world, "somebody waits, something is deliverable, and nobody was woken for it");
}

bool
sim_wait_check(SimServer *server)
{
	QcState    *st = server->st;
	uint32_t	woken[SIM_PROCS];

	(void) qc_wakes_take(st, server->world->monotonic, woken, SIM_PROCS);
	for (QcQueue *queue = QC_AT(st, QcQueue, st->queues.head); queue != NULL;
		 queue = QC_AT(st, QcQueue, queue->all.next))
	{
		for (QcGroup *group = queue->state == QC_QUEUE_DEAD ? NULL : QC_AT(st, QcGroup, queue->groups);
			 group != NULL; group = QC_AT(st, QcGroup, group->next))
		{
			if (!check_group(server, group))
				return false;
		}
	}
	return true;
}
