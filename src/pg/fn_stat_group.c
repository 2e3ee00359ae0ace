/*
 * fn_stat_group.c
 *		What the views show of consumer groups and of partitions.
 *
 * Queue by queue, rows are copied out under the shared state lock: all groups of a queue, of which there are 64 at most,
 * or STEP partitions, per hold.  A row of a group costs the same whatever the number of partitions; the oldest message is
 * looked for among a bounded number of them (qc_glance.h) and its time read from the log without the lock.
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"

#include "qlog_acl.h"
#include "qlog_fetch.h"
#include "qlog_list.h"
#include "qlog_lookup.h"
#include "qlog_row.h"
#include "qlog_shmem.h"

#include "../core/qc_effect.h"
#include "../core/qc_glance.h"
#include "../core/qc_group.h"
#include "../core/qc_purge.h"

PG_FUNCTION_INFO_V1(qlog_stat_consumer_groups);
PG_FUNCTION_INFO_V1(qlog_stat_partitions);

#define STEP 64					/* partitions copied per hold of the lock */

/* What is copied of a queue. */
typedef struct QueueName
{
	Oid			owner;
	uint8		flags;
	uint16		name_len;
	char		name[QLOG_NAME_MAX];
} QueueName;

typedef struct GroupRow
{
	uint16		name_len;
	char		name[QLOG_NAME_MAX];
	uint64		lag;
	uint64		leased;
	uint64		acked;
	uint64		redelivered;
	int64		last_pop;
	uint64		full;
	uint32		noldest;
	QlogSpot	oldest[3];		/* one of these is its oldest message */
} GroupRow;

typedef struct PartitionRow
{
	uint64		id;
	uint16		name_len;
	char		name[QLOG_NAME_MAX];
	uint64		first;
	uint64		next;
	uint64		ready;
	uint64		bytes;
	int64		last_push;
	bool		blocked;
	uint32		blocker;		/* its process, 0 = none: prepared, or from before a crash */
	int64		blocked_since;	/* 0 = not known */
} PartitionRow;

/* A queue that lives, and its name; NULL = it is gone.	 State lock. */
static const QcQueue *
copy_name(uint64 id, QueueName *name)
{
	const QcQueue *queue = qc_queue_by_id(qlog_state, id);

	if (queue == NULL || (queue->state != QC_QUEUE_LIVE && queue->state != QC_QUEUE_DROPPING))
		return NULL;
	name->owner = queue->owner;
	name->flags = queue->flags;
	name->name_len = queue->name_len;
	memcpy(name->name, qc_name_at(qlog_state, queue->name), queue->name_len);
	return queue;
}

/* State lock. */
static void
copy_group(const QcGroup *group, GroupRow *row)
{
	QcGlance	oldest[3];

	row->name_len = group->name_len;
	memcpy(row->name, qc_name_at(qlog_state, group->name), group->name_len);
	row->lag = qc_group_lag(group);
	row->leased = group->nleased;
	row->acked = group->acked;
	row->redelivered = group->redelivered;
	row->last_pop = group->last_pop;
	row->full = group->nfull;
	row->noldest = qc_glance_oldest(qlog_state, group, oldest);
	for (uint32 i = 0; i < row->noldest; i++)
		qlog_spot_note(oldest[i].partition, oldest[i].position, 0, &oldest[i].hint,
					   &row->oldest[i]);
}

/* Copy the groups of a queue, QC_GROUPS_MAX at most. */
static uint32
copy_groups(uint64 id, QueueName *name, GroupRow *rows)
{
	const QcQueue *queue;
	uint32		n = 0;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	queue = copy_name(id, name);
	for (const QcGroup *group = queue == NULL ? NULL : QC_AT(qlog_state, QcGroup, queue->groups);
		 group != NULL && n < QC_GROUPS_MAX; group = QC_AT(qlog_state, QcGroup, group->next))
	{
		if (group->state == QC_GROUP_LIVE)
			copy_group(group, &rows[n++]);
	}
	LWLockRelease(&qlog_shared->state_lock);
	return n;
}

/* Age of the oldest message that the group has not finished, as far as it can be told. */
static Datum
oldest_age(const GroupRow *row, int64 now, bool *null)
{
	int64		oldest = PG_INT64_MAX;

	for (uint32 i = 0; i < row->noldest; i++)
	{
		int64		pushed_at;

		if (qlog_fetch_time(&row->oldest[i], &pushed_at))
			oldest = Min(oldest, pushed_at);
	}
	*null = oldest == PG_INT64_MAX;
	return *null ? (Datum) 0 : qlog_age_datum(oldest, now);
}

static void
put_group(ReturnSetInfo *result, const QueueName *queue, const GroupRow *row, int64 now)
{
	Datum		values[9];
	bool		nulls[9] = {false};

	values[0] = qlog_text_datum(queue->name, queue->name_len);
	values[1] = qlog_text_datum(row->name, row->name_len);
	values[2] = Int64GetDatum((int64) row->lag);
	values[3] = Int64GetDatum((int64) row->leased);
	values[4] = oldest_age(row, now, &nulls[4]);
	values[5] = Int64GetDatum((int64) row->acked);
	values[6] = Int64GetDatum((int64) row->redelivered);
	values[7] = qlog_instant_datum(row->last_pop, &nulls[7]);
	values[8] = Int64GetDatum((int64) row->full);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

Datum
qlog_stat_consumer_groups(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GroupRow   *rows = palloc(QC_GROUPS_MAX * sizeof(GroupRow));
	QueueName	name;
	uint64	   *ids;
	uint32		nids;

	qlog_enter_read("qlog_stat_consumer_groups");
	InitMaterializedSRF(fcinfo, 0);
	ids = qlog_list_queues(MyDatabaseId, InvalidOid, &nids);
	for (uint32 i = 0; i < nids; i++)
	{
		uint32		n = copy_groups(ids[i], &name, rows);

		CHECK_FOR_INTERRUPTS();
		if (n == 0 || !qlog_queue_seen(ids[i], name.owner, name.flags))
			continue;
		for (uint32 k = 0; k < n; k++)
			put_group(result, &name, &rows[k], qlog_now());
	}
	return (Datum) 0;
}

/* State lock. */
static void
copy_partition(const QcQueue *queue, const QcPartition *partition, PartitionRow *row)
{
	const QcOpen *blocker = qc_glance_blocker(qlog_state, partition);

	row->id = partition->id;
	row->name_len = partition->name_len;
	memcpy(row->name, qc_name_at(qlog_state, partition->name), partition->name_len);
	row->first = qc_partition_start(qlog_state, partition);
	row->next = partition->next;
	row->ready = 0;
	for (const QcGroup *group = QC_AT(qlog_state, QcGroup, queue->groups); group != NULL;
		 group = QC_AT(qlog_state, QcGroup, group->next))
	{
		if (group->state == QC_GROUP_LIVE)
			row->ready += qc_glance_ready(qlog_state, group, partition);
	}
	row->bytes = partition->bytes;
	row->last_push = partition->last_push;
	row->blocked = blocker != NULL;
	row->blocker = blocker == NULL ? 0 : blocker->pid;
	row->blocked_since = blocker == NULL ? 0 : blocker->since;
}

/*
 * Copy the next partitions of a queue, STEP at most, behind the partition `after` (0 = from the first on); lanes are left
 * out.	 Partitions are in the list as long as their queue lives.
 */
static uint32
copy_partitions(uint64 id, uint64 after, QueueName *name, PartitionRow *rows)
{
	const QcQueue *queue;
	const QcPartition *partition = NULL;
	uint32		n = 0;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	queue = copy_name(id, name);
	if (queue != NULL && after == 0)
		partition = QC_AT(qlog_state, QcPartition, queue->partitions.head);
	else if (queue != NULL && (partition = qc_partition_by_id(qlog_state, after)) != NULL)
		partition = QC_AT(qlog_state, QcPartition, partition->of_queue.next);
	for (; partition != NULL && n < STEP;
		 partition = QC_AT(qlog_state, QcPartition, partition->of_queue.next))
	{
		if (partition->lane == QC_LANE_NONE)
			copy_partition(queue, partition, &rows[n++]);
	}
	LWLockRelease(&qlog_shared->state_lock);
	return n;
}

static void
put_partition(ReturnSetInfo *result, const QueueName *queue, const PartitionRow *row)
{
	Datum		values[9];
	bool		nulls[9] = {false};

	values[0] = qlog_text_datum(queue->name, queue->name_len);
	values[1] = qlog_text_datum(row->name, row->name_len);
	values[2] = Int64GetDatum((int64) row->first);
	values[3] = Int64GetDatum((int64) row->next);
	values[4] = Int64GetDatum((int64) row->ready);
	values[5] = Int64GetDatum((int64) row->bytes);
	values[6] = qlog_instant_datum(row->last_push, &nulls[6]);
	values[7] = Int32GetDatum((int32) row->blocker);
	nulls[7] = !row->blocked || row->blocker == 0;
	values[8] = qlog_instant_datum(row->blocked_since, &nulls[8]);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* All partitions of one queue. */
static void
put_partitions(ReturnSetInfo *result, uint64 id, PartitionRow *rows)
{
	QueueName	name;
	uint64		after = 0;
	uint32		n;

	while ((n = copy_partitions(id, after, &name, rows)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		if (!qlog_queue_seen(id, name.owner, name.flags))
			return;
		for (uint32 i = 0; i < n; i++)
			put_partition(result, &name, &rows[i]);
		after = rows[n - 1].id;
	}
}

Datum
qlog_stat_partitions(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	PartitionRow *rows = palloc(STEP * sizeof(PartitionRow));
	uint64	   *ids;
	uint32		nids;

	qlog_enter_read("qlog_stat_partitions");
	InitMaterializedSRF(fcinfo, 0);
	ids = qlog_list_queues(MyDatabaseId, InvalidOid, &nids);
	for (uint32 i = 0; i < nids; i++)
		put_partitions(result, ids[i], rows);
	return (Datum) 0;
}
