/*
 * fn_stat.c
 *		What the views show of queues' messages, leases, the log and the workers.
 *
 * Rows are copied out under the shared state lock in steps of a bounded number of objects, and formed without it.
 * Counters make every row O(1).  Queues are shown to those who may use them; the views over the whole server are
 * restricted by their grants.
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"

#include "qlog_acl.h"
#include "qlog_disk.h"
#include "qlog_fetch.h"
#include "qlog_guc.h"
#include "qlog_list.h"
#include "qlog_lookup.h"
#include "qlog_row.h"
#include "qlog_shmem.h"

#include "../core/qc_effect.h"
#include "../core/qc_glance.h"
#include "../core/qc_volume.h"

PG_FUNCTION_INFO_V1(qlog_stat_queues);
PG_FUNCTION_INFO_V1(qlog_leases);
PG_FUNCTION_INFO_V1(qlog_stat_log);
PG_FUNCTION_INFO_V1(qlog_stat_workers);
PG_FUNCTION_INFO_V1(qlog_stat_reset);

#define STEP 256				/* objects copied per hold of the lock */
#define QUEUE_COLUMNS_MAX 20

/* What is copied of a queue. */
typedef struct QueueRow
{
	QcQueue		queue;
	char		name[QLOG_NAME_MAX];
	uint64		ready;
	uint64		leased;
	uint64		waiting;
	uint64		nwaiters;		/* processes that wait for messages */
	uint64		wakeups;
	bool		has_next;
	QlogSpot	next;			/* the message that the next pop takes first */
	uint64		bytes;			/* written into its log */
	uint64		live_bytes;		/* of messages that are not done */
} QueueRow;

/* Note the message that the next pop of the default group takes first.  State lock. */
static void
note_next(const QcQueue *queue, QueueRow *row)
{
	const QcGroup *group = qc_group_default(qlog_state, queue);
	QcGlance	next;

	row->has_next = group != NULL && qc_glance_next(qlog_state, group, &next);
	if (row->has_next)
		qlog_spot_note(next.partition, next.position, 0, &next.hint, &row->next);
}

/* Copy a queue and the sums over its groups.	 State lock. */
static void
copy_queue(const QcQueue *queue, QueueRow *row)
{
	const QcLog *log = QC_AT(qlog_state, QcLog, queue->log);

	row->queue = *queue;
	memcpy(row->name, qc_name_at(qlog_state, queue->name), queue->name_len);
	row->ready = row->leased = row->waiting = row->nwaiters = row->wakeups = 0;
	for (const QcGroup *group = QC_AT(qlog_state, QcGroup, queue->groups); group != NULL;
		 group = QC_AT(qlog_state, QcGroup, group->next))
	{
		row->ready += group->nready + group->unscanned;
		row->leased += group->nleased;
		row->waiting += group->nwaiting;
		row->nwaiters += group->nlisted;
		row->wakeups += group->wakeups;
	}
	row->waiting += queue->delayed;
	note_next(queue, row);
	row->live_bytes = qc_volume_queue(qlog_state, queue);
	row->bytes = log == NULL ? 0 : (log->file - 1) * qlog_segment_bytes() + log->tail;
}

/* Copy those of n (<= STEP) queues that live. */
static uint32
copy_queues(const uint64 *ids, uint32 n, QueueRow *rows)
{
	uint32		copied = 0;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	for (uint32 i = 0; i < n; i++)
	{
		QcQueue    *queue = qc_queue_by_id(qlog_state, ids[i]);

		if (queue != NULL &&
			(queue->state == QC_QUEUE_LIVE || queue->state == QC_QUEUE_DROPPING))
			copy_queue(queue, &rows[copied++]);
	}
	LWLockRelease(&qlog_shared->state_lock);
	return copied;
}

typedef void (*QueueForm) (const QueueRow *row, Datum *values, bool *nulls);

/* Put a row for each queue that the role may use. */
static void
each_queue(FunctionCallInfo fcinfo, QueueForm form)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	QueueRow   *rows = palloc(STEP * sizeof(QueueRow));
	uint32		nids;
	uint64	   *ids = qlog_list_queues(MyDatabaseId, InvalidOid, &nids);

	for (uint32 at = 0; at < nids; at += STEP)
	{
		uint32		n = copy_queues(ids + at, Min(STEP, nids - at), rows);

		for (uint32 i = 0; i < n; i++)
		{
			Datum		values[QUEUE_COLUMNS_MAX];
			bool		nulls[QUEUE_COLUMNS_MAX] = {false};

			CHECK_FOR_INTERRUPTS();
			if (!qlog_queue_seen(rows[i].queue.id, rows[i].queue.owner, rows[i].queue.flags))
				continue;
			form(&rows[i], values, nulls);
			tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
		}
	}
}

/* Age of the message that the next pop takes first, as an interval.  A record still in memory is as new as can be. */
static void
age_of_next(const QueueRow *row, Datum *value, bool *null)
{
	int64		now = qlog_now();
	int64		pushed_at = row->queue.last_push;

	*null = !row->has_next;
	if (*null)
		return;
	(void) qlog_fetch_time(&row->next, &pushed_at);
	if (pushed_at == 0)
		pushed_at = now;
	*value = qlog_age_datum(pushed_at, now);
}

/* A row of qlog_stat_queues. */
static void
form_stat(const QueueRow *row, Datum *values, bool *nulls)
{
	const QcQueue *queue = &row->queue;

	values[0] = qlog_text_datum(row->name, queue->name_len);
	values[1] = Int64GetDatum((int64) row->ready);
	values[2] = Int64GetDatum((int64) row->leased);
	values[3] = Int64GetDatum((int64) row->waiting);
	values[4] = Int64GetDatum((int64) queue->dead);
	values[5] = Int64GetDatum((int64) queue->pushed);
	values[6] = Int64GetDatum((int64) queue->popped);
	values[7] = Int64GetDatum((int64) queue->acked);
	values[8] = Int64GetDatum((int64) queue->nacked);
	values[9] = Int64GetDatum((int64) queue->expired);
	values[10] = Int64GetDatum((int64) queue->deduplicated);
	age_of_next(row, &values[11], &nulls[11]);
	values[12] = Int64GetDatum((int64) row->bytes);
	values[13] = qlog_instant_datum(queue->last_push, &nulls[13]);
	values[14] = qlog_instant_datum(queue->last_pop, &nulls[14]);
	values[15] = Int64GetDatum((int64) row->nwaiters);
	values[16] = Int64GetDatum((int64) row->wakeups);
	values[17] = Int64GetDatum((int64) row->live_bytes);
	values[18] = Int64GetDatum((int64) queue->dropped);
	values[19] = Int64GetDatum((int64) queue->unread);
}

Datum
qlog_stat_queues(PG_FUNCTION_ARGS)
{
	qlog_enter_read("qlog_stat_queues");
	InitMaterializedSRF(fcinfo, 0);
	each_queue(fcinfo, form_stat);
	return (Datum) 0;
}

/* What is copied of a lease. */
typedef struct LeaseRow
{
	QcLease		lease;
	Oid			database;
	uint64		queue_id;
	Oid			owner;
	uint8		flags;
	char		queue[QLOG_NAME_MAX];
	uint16		queue_len;
	char		group[QLOG_NAME_MAX];
	uint16		group_len;
	char		partition[QLOG_NAME_MAX];
	uint16		partition_len;
} LeaseRow;

/* Copy a lease with the names that go with it.	State lock. */
static void
copy_lease(const QcLease *lease, LeaseRow *row)
{
	const QcQueue *queue = QC_AT(qlog_state, QcQueue, lease->queue);
	const QcGroup *group = QC_AT(qlog_state, QcGroup, lease->group);
	const QcSlot *slot = QC_AT(qlog_state, QcSlot, lease->slots.head);

	row->lease = *lease;
	row->database = queue->database;
	row->queue_id = queue->id;
	row->owner = queue->owner;
	row->flags = queue->flags;
	row->queue_len = queue->name_len;
	memcpy(row->queue, qc_name_at(qlog_state, queue->name), queue->name_len);
	row->group_len = group->name_len;
	memcpy(row->group, qc_name_at(qlog_state, group->name), group->name_len);
	row->partition_len = 0;
	if (slot != NULL)
	{
		const QcPartition *partition = QC_AT(qlog_state, QcPartition,
											 QC_AT(qlog_state, QcCursor, slot->cursor)->partition);

		row->partition_len = partition->name_len;
		memcpy(row->partition, qc_name_at(qlog_state, partition->name), partition->name_len);
	}
}

/* Copy all leases: they are as many as consumers hold.	The array grows outside the lock until they fit. */
static LeaseRow *
copy_leases(uint32 *n)
{
	LeaseRow   *rows = NULL;
	uint32		max = 0;

	for (;;)
	{
		uint32		have = 0;
		uint32		need;

		LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
		need = qlog_state->lease_ids.count;
		for (QcLease *lease = QC_AT(qlog_state, QcLease, qlog_state->leases.head);
			 lease != NULL && need <= max; lease = QC_AT(qlog_state, QcLease, lease->all.next))
		{
			/*
			 * Those of a dropped queue or group, and those that a seek has emptied, are waiting to
			 * be freed.
			 */
			if (QC_AT(qlog_state, QcQueue, lease->queue)->state != QC_QUEUE_DEAD &&
				!qc_lease_gone(qlog_state, lease) && lease->nslots > 0)
				copy_lease(lease, &rows[have++]);
		}
		LWLockRelease(&qlog_shared->state_lock);
		if (need <= max)
		{
			*n = have;
			return rows;
		}
		max = need + STEP;
		if (rows != NULL)
			pfree(rows);
		rows = MemoryContextAllocHuge(CurrentMemoryContext, (Size) max * sizeof(LeaseRow));
	}
}

Datum
qlog_leases(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	TimestampTz now = GetCurrentTimestamp();
	int64		monotonic = qlog_monotonic();
	LeaseRow   *rows;
	uint32		n;

	qlog_enter_read("qlog_leases");
	InitMaterializedSRF(fcinfo, 0);
	rows = copy_leases(&n);
	for (uint32 i = 0; i < n; i++)
	{
		const LeaseRow *row = &rows[i];
		bool		held = row->lease.owner != 0;
		Datum		values[9];
		bool		nulls[9] = {false};

		if (row->database != MyDatabaseId ||
			!qlog_queue_seen(row->queue_id, row->owner, row->flags))
			continue;
		values[0] = Int64GetDatum((int64) row->lease.id);
		values[1] = qlog_text_datum(row->queue, row->queue_len);
		values[2] = qlog_text_datum(row->group, row->group_len);
		values[3] = qlog_text_datum(row->partition, row->partition_len);
		values[4] = Int64GetDatum(row->lease.nslots);
		nulls[5] = !held;
		values[5] = Int32GetDatum((int32) row->lease.owner);
		values[6] = TimestampTzGetDatum(qlog_timestamptz(row->lease.leased_at));
		nulls[7] = held || row->lease.pin_seq != 0;
		values[7] = TimestampTzGetDatum(now + (row->lease.deadline - monotonic));
		values[8] = BoolGetDatum(held || row->lease.pin_seq != 0);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* What the log has counted since qlog_stat_reset().	State lock. */
static QcCounters
counters_now(void)
{
	QcCounters	counters = qlog_state->counters;
	const QcCounters *before = &qlog_shared->counters_reset;

	counters.entries -= before->entries;
	counters.bytes -= before->bytes;
	counters.fsyncs -= before->fsyncs;
	counters.fsync_us -= before->fsync_us;
	counters.groups -= before->groups;
	counters.grouped -= before->grouped;
	counters.waits -= before->waits;
	counters.checkpoints -= before->checkpoints;
	return counters;
}

/* Workers go by what was counted since the start: it is left as it is, but for the largest group. */
Datum
qlog_stat_reset(PG_FUNCTION_ARGS)
{
	TimestampTz now = GetCurrentTimestamp();

	(void) fcinfo;
	qlog_enter_read("qlog_stat_reset()");
	qlog_lock_state();
	qlog_shared->counters_reset = qlog_state->counters;
	qlog_state->counters.group_max = 0;
	qlog_shared->reset_at = now;
	qlog_unlock_state();
	PG_RETURN_VOID();
}

Datum
qlog_stat_log(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	QcCounters	counters;
	uint64		used[QC_BUDGET_COUNT];
	uint64		limit[QC_BUDGET_COUNT];
	uint64		checkpoint_seq;
	int64		space;
	int64		reserve;
	bool		refused;
	TimestampTz reset_at;
	Datum		values[18];
	bool		nulls[18] = {false};

	qlog_enter_read("qlog_stat_log");
	InitMaterializedSRF(fcinfo, 0);
	qlog_disk_figures(&space, &reserve, &refused);
	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	counters = counters_now();
	reset_at = qlog_shared->reset_at;
	checkpoint_seq = qlog_state->checkpoint_seq;
	for (int i = 0; i < QC_BUDGET_COUNT; i++)
		qc_mem_usage(&qlog_state->mem, (QcBudget) i, &used[i], &limit[i]);
	LWLockRelease(&qlog_shared->state_lock);
	values[0] = Int64GetDatum((int64) counters.entries);
	values[1] = Int64GetDatum((int64) counters.bytes);
	values[2] = Int64GetDatum((int64) counters.fsyncs);
	values[3] = Float8GetDatum((double) counters.fsync_us / 1000.0);
	nulls[4] = counters.groups == 0;
	values[4] = Float8GetDatum(counters.groups == 0 ? 0 :
							   (double) counters.grouped / (double) counters.groups);
	values[5] = Int64GetDatum((int64) counters.group_max);
	values[6] = Int64GetDatum((int64) counters.waits);
	values[7] = Int64GetDatum((int64) qc_ring_durable(qlog_ring));
	values[8] = Int64GetDatum((int64) checkpoint_seq);
	values[9] = Int64GetDatum((int64) counters.checkpoints);
	values[10] = Int64GetDatum((int64) used[QC_BUDGET_STATE]);
	values[11] = Int64GetDatum((int64) limit[QC_BUDGET_STATE]);
	values[12] = Int64GetDatum((int64) used[QC_BUDGET_INDEX]);
	values[13] = Int64GetDatum((int64) limit[QC_BUDGET_INDEX]);
	nulls[14] = space < 0;
	values[14] = Int64GetDatum(space);
	values[15] = Int64GetDatum(reserve);
	values[16] = BoolGetDatum(refused);
	nulls[17] = reset_at == 0;
	values[17] = TimestampTzGetDatum(reset_at);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	return (Datum) 0;
}

/* Works while qlog is recovering or out of service: this view says why. */
Datum
qlog_stat_workers(PG_FUNCTION_ARGS)
{
	static const char *const roles[QLOG_WORKER_COUNT] = {"checkpointer", "guard 1", "guard 2",
	"timer", "sweeper", "retention", "reclaim", "scrub"};
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	if (qlog_shared == NULL)
		qlog_gate_check();
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < QLOG_WORKER_COUNT; i++)
	{
		const QlogWorker *worker = &qlog_shared->workers[i];
		Datum		values[8];
		bool		nulls[8] = {false};

		values[0] = CStringGetTextDatum(roles[i]);
		nulls[1] = worker->pid == 0;
		values[1] = Int32GetDatum((int32) worker->pid);
		values[2] = CStringGetTextDatum(worker->state);
		nulls[3] = worker->last_error[0] == '\0';
		values[3] = CStringGetTextDatum(worker->last_error);
		values[4] = Int64GetDatum(worker->restarts);
		values[5] = Int64GetDatum((int64) worker->passes);
		nulls[6] = worker->last_pass_at == 0;
		values[6] = TimestampTzGetDatum(worker->last_pass_at);
		nulls[7] = worker->passes == 0;
		values[7] = Float8GetDatum((double) worker->last_pass_us / 1000.0);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
