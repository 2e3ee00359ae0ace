/*
 * qlog_list.c
 *		Ids and definitions of queues, copied out of the state.
 */
#include "qlog_list.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "qlog_lookup.h"
#include "qlog_shmem.h"

#include "../core/qc_alter.h"

#define STEP 256				/* room for so many more than there were */

/* State lock. */
static bool
is_wanted(const QcQueue *queue, Oid database, Oid role)
{
	return (queue->state == QC_QUEUE_LIVE || queue->state == QC_QUEUE_DROPPING) &&
		(!OidIsValid(database) || queue->database == database) &&
		(!OidIsValid(role) || qc_queue_names_role(qlog_state, queue, role));
}

/* The array grows outside the lock until they fit, with room for `spare` more. */
static uint64 *
list(Oid database, Oid role, uint32 spare, uint32 *n)
{
	uint64	   *ids = NULL;
	uint32		max = 0;
	uint32		found = 0;

	do
	{
		if (ids != NULL)
			pfree(ids);
		max = found + STEP;
		ids = MemoryContextAllocHuge(CurrentMemoryContext,
									 ((Size) max + spare) * sizeof(uint64));
		found = 0;
		LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
		for (QcQueue *queue = QC_AT(qlog_state, QcQueue, qlog_state->queues.head); queue != NULL;
			 queue = QC_AT(qlog_state, QcQueue, queue->all.next))
		{
			if (!is_wanted(queue, database, role))
				continue;
			if (found < max)
				ids[found] = queue->id;
			found++;
		}
		LWLockRelease(&qlog_shared->state_lock);
	} while (found > max);
	*n = found;
	return ids;
}

uint64 *
qlog_list_queues(Oid database, Oid role, uint32 *n)
{
	return list(database, role, 0, n);
}

uint64 *
qlog_list_visible(uint32 *n)
{
	uint64	   *ids = list(MyDatabaseId, InvalidOid, qlog_stage.nchanges, n);

	for (uint32 i = 0; i < qlog_stage.nchanges; i++)
	{
		if (qlog_stage.changes[i].kind == QLOG_CHANGE_CREATED)
			ids[(*n)++] = qlog_stage.changes[i].queue.id;
	}
	return ids;
}

static void
set_name(QlogListed *listed, const char *text, uint16 len)
{
	memcpy(listed->text, text, len);
	listed->name.text = listed->text;
	listed->name.len = len;
}

bool
qlog_list_get(uint64 id, QlogListed *listed)
{
	const QlogChange *change = qlog_stage_find_queue_id(id);
	const QcQueue *queue;

	memset(listed, 0, sizeof(*listed));
	if (!qlog_queue_by_id(id, &listed->queue))
		return false;
	if (listed->queue.own)
		listed->npartitions = 1;
	else
	{
		LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
		queue = qc_queue_by_id(qlog_state, id);
		if (queue != NULL)
		{
			set_name(listed, qc_name_at(qlog_state, queue->name), queue->name_len);
			listed->created_at = queue->created_at;
			listed->npartitions = queue->npartitions;
			listed->damaged = queue->damaged;
			listed->damage_file = queue->damage_file;
			listed->damage_position = queue->damage_position;
		}
		LWLockRelease(&qlog_shared->state_lock);
		if (queue == NULL)
			return false;
	}
	if (change != NULL)
		set_name(listed, change->name, change->name_len);
	return true;
}
