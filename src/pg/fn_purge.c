/*
 * fn_purge.c
 *		queue_purge: what waits in a partition or a whole queue goes, at COMMIT.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"

#include "qlog_lookup.h"
#include "qlog_shmem.h"

#include "../core/qc_purge.h"

/* Arguments. */
enum
{
	ARG_QUEUE,
	ARG_PARTITION
};

PG_FUNCTION_INFO_V1(queue_purge);

/* What waits now; *partition: id of the one of this name, 0 = there is none. */
static uint64
count_partition(uint64 queue_id, QlogName name, uint64 *partition)
{
	QcQueue    *queue;
	QcPartition *found = NULL;
	uint64		n = 0;

	*partition = 0;
	qlog_lock_state();
	queue = qc_queue_by_id(qlog_state, queue_id);
	if (queue != NULL)
		found = qc_partition_by_name(qlog_state, queue, name.text, name.len);
	if (found != NULL)
	{
		*partition = found->id;
		n = qc_purge_count_partition(qlog_state, found);
	}
	qlog_unlock_state();
	return n;
}

static uint64
count_queue(uint64 queue_id)
{
	QcQueue    *queue;
	uint64		n = 0;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	queue = qc_queue_by_id(qlog_state, queue_id);
	if (queue != NULL)
		n = qc_purge_count_queue(qlog_state, queue);
	LWLockRelease(&qlog_shared->state_lock);
	return n;
}

Datum
queue_purge(PG_FUNCTION_ARGS)
{
	QcPurge		purge = {0};
	QlogName	name;
	QlogQueue	queue;
	uint64		n;

	qlog_enter("queue_purge()");
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	name = qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE));
	qlog_queue_get(name, QLOG_MANAGE, &queue);

	/* Nothing is committed in a queue that only this transaction sees. */
	if (queue.own)
		PG_RETURN_INT64(0);
	qlog_queue_hold(&queue, name);
	if (PG_ARGISNULL(ARG_PARTITION))
		n = count_queue(queue.id);
	else
	{
		n = count_partition(queue.id, qlog_partition_name(PG_GETARG_DATUM(ARG_PARTITION)),
							&purge.partition);
		if (purge.partition == 0)
			PG_RETURN_INT64(0);
	}
	(void) GetCurrentTransactionId();
	purge.queue = queue.id;
	qlog_stage_items(queue.id, QC_EFFECT_PURGE, &purge, NULL, sizeof(QcPurgeItem), 0);
	PG_RETURN_INT64((int64) n);
}
