/*
 * qlog_lease.c
 *		Looking at a lease and choosing among its messages.
 */
#include "qlog_lease.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/memutils.h"
#include "utils/uuid.h"

#include "qlog_acl.h"
#include "qlog_lookup.h"
#include "qlog_report.h"
#include "qlog_shmem.h"

#include "../core/qc_answer.h"

#define SPOTS_FIRST		128
#define REMEMBER_MAX	10000

/* Ids of the last delivery of this session. */
typedef struct Remembered
{
	uint64		partition;
	uint64		position;
	uint8		id[QC_ID_SIZE];
} Remembered;

static uint64 remembered_lease;
static Remembered *remembered;
static uint32 nremembered;
static uint32 maxremembered;

/* What a look under the state lock found. */
typedef enum Look
{
	LOOK_NOTHING,
	LOOK_FOREIGN,				/* of an open transaction of somebody else */
	LOOK_ROOM,					/* more messages than there is room for */
	LOOK_OK
} Look;

/* Note every message of the lease; max: room in spots; find: where their records are, too. */
static Look
look(uint64 id, bool find, QlogLease *lease, char *name, uint32 max)
{
	QcLease    *found = qc_lease_by_id(qlog_state, id);
	QcQueue    *queue;

	if (found == NULL || found->nslots == 0)
		return LOOK_NOTHING;
	queue = QC_AT(qlog_state, QcQueue, found->queue);
	if (queue->database != MyDatabaseId || queue->state == QC_QUEUE_DEAD)
		return LOOK_NOTHING;
	lease->queue.id = queue->id;
	memcpy(name, qc_name_at(qlog_state, queue->name), queue->name_len);
	lease->queue_name.len = queue->name_len;
	lease->group = QC_AT(qlog_state, QcGroup, found->group)->id;
	lease->nspots = found->nslots;
	if (!qlog_lease_mine(found, (uint32) MyProcPid))
		return LOOK_FOREIGN;
	if (found->nslots > max)
		return LOOK_ROOM;
	lease->nspots = 0;
	for (QcSlot *slot = QC_AT(qlog_state, QcSlot, found->slots.head); slot != NULL;
		 slot = QC_AT(qlog_state, QcSlot, slot->of_lease.next))
	{
		QcCursor   *cursor = QC_AT(qlog_state, QcCursor, slot->cursor);

		qlog_spot_note(QC_AT(qlog_state, QcPartition, cursor->partition), slot->position,
					   slot->attempt, find ? &slot->hint : NULL, &lease->spots[lease->nspots++]);
	}
	return LOOK_OK;
}

bool
qlog_lease_look(uint64 id, bool read, QlogLease *lease)
{
	char	   *name = palloc(QLOG_NAME_MAX);
	uint32		max = SPOTS_FIRST;
	Look		result;

	memset(lease, 0, sizeof(*lease));
	lease->id = id;
	lease->queue_name.text = name;
	do
	{
		lease->spots = MemoryContextAllocHuge(CurrentMemoryContext, (Size) max * sizeof(QlogSpot));
		qlog_lock_state();
		result = look(id, read, lease, name, max);
		qlog_unlock_state();
		if (result == LOOK_ROOM)
		{
			pfree(lease->spots);
			max = lease->nspots + SPOTS_FIRST;
		}
	} while (result == LOOK_ROOM);
	if (result == LOOK_NOTHING || !qlog_queue_by_id(lease->queue.id, &lease->queue))
		return false;
	qlog_acl_check(&lease->queue, QLOG_POP, lease->queue_name);
	if (result == LOOK_FOREIGN)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("lease " INT64_FORMAT " belongs to a transaction of another session that is still open",
						(int64) id),
				 errhint("Commit the transaction of its queue_pop() first.")));
	return true;
}

void
qlog_lease_remember(uint64 lease, const QlogSpot *spots, const uint8 *ids, uint32 n)
{
	remembered_lease = 0;
	if (n > REMEMBER_MAX)
		return;
	if (n > maxremembered)
	{
		if (remembered != NULL)
			pfree(remembered);
		remembered = NULL;
		maxremembered = 0;
		remembered = MemoryContextAlloc(TopMemoryContext, n * sizeof(Remembered));
		maxremembered = n;
	}
	for (uint32 i = 0; i < n; i++)
	{
		remembered[i].partition = spots[i].partition;
		remembered[i].position = spots[i].position;
		memcpy(remembered[i].id, ids + (size_t) i * QC_ID_SIZE, QC_ID_SIZE);
	}
	nremembered = n;
	remembered_lease = lease;
}

bool
qlog_lease_remembered(uint64 lease)
{
	return lease == remembered_lease;
}

/*
 * Id of a message: remembered, or read; NULL when it cannot be read any more.	*at: where in the memory to look first; both
 * lists are in the order of the delivery, so one walk over them is enough.
 */
static const uint8 *
id_of(uint64 lease, const QlogSpot *spot, uint32 *at, QcMessage *message)
{
	int64_t		created_at;
	QcError		err;

	if (lease == remembered_lease)
	{
		while (*at < nremembered)
		{
			const Remembered *r = &remembered[(*at)++];

			if (r->partition == spot->partition && r->position == spot->position)
				return r->id;
		}
	}
	if (qlog_fetch_try(spot, message, &created_at, &err) == QC_OK)
		return message->id;
	if (err.code != QC_NOTFOUND && !qlog_fetch_lost(err.code))
		qlog_report(ERROR, &err, "could not read a message");
	return NULL;
}

static int
compare_ids(const void *a, const void *b)
{
	return memcmp(a, b, QC_ID_SIZE);
}

bool
qlog_ids_given(FunctionCallInfo fcinfo, int n)
{
	if (PG_ARGISNULL(n))
		return false;
	if (array_contains_nulls(PG_GETARG_ARRAYTYPE_P(n)))
		qlog_arg_missing("message_ids");
	return true;
}

/* The ids of a uuid[] without NULLs, sorted; *n of them. */
static uint8 *
sorted_ids(Datum message_ids, uint32 *n)
{
	ArrayType  *array = DatumGetArrayTypeP(message_ids);
	Datum	   *values;
	int			count;
	uint8	   *ids;

	deconstruct_array(array, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR, &values, NULL, &count);
	ids = MemoryContextAllocHuge(CurrentMemoryContext, (Size) count * QC_ID_SIZE + 1);
	for (int i = 0; i < count; i++)
		memcpy(ids + (size_t) i * QC_ID_SIZE, DatumGetUUIDP(values[i])->data, QC_ID_SIZE);
	qsort(ids, count, QC_ID_SIZE, compare_ids);
	*n = (uint32) count;
	return ids;
}

void
qlog_lease_select(QlogLease *lease, bool by_id, Datum message_ids)
{
	uint32		nids = 0;
	uint8	   *ids = by_id ? sorted_ids(message_ids, &nids) : NULL;
	uint32		at = 0;
	uint32		n = 0;

	for (uint32 i = 0; i < lease->nspots; i++)
	{
		const QlogSpot *spot = &lease->spots[i];
		QcMessage	message;

		if (qlog_stage_is_done(lease->id, spot->partition, spot->position))
			continue;
		if (by_id)
		{
			const uint8 *id;

			CHECK_FOR_INTERRUPTS();
			id = nids == 0 ? NULL : id_of(lease->id, spot, &at, &message);
			if (id == NULL || bsearch(id, ids, nids, QC_ID_SIZE, compare_ids) == NULL)
				continue;
		}
		lease->spots[n++] = *spot;
	}
	lease->nspots = n;
}

QcAckItem *
qlog_lease_ranges(const QlogLease *lease, uint32 *nranges)
{
	QcAckItem  *ranges = MemoryContextAllocHuge(CurrentMemoryContext,
												(Size) lease->nspots * sizeof(QcAckItem) + 1);
	uint32		n = 0;

	for (uint32 i = 0; i < lease->nspots; i++)
	{
		const QlogSpot *spot = &lease->spots[i];

		if (n > 0 && ranges[n - 1].partition == spot->partition &&
			ranges[n - 1].first + ranges[n - 1].count == spot->position)
		{
			ranges[n - 1].count++;
			continue;
		}
		ranges[n].partition = spot->partition;
		ranges[n].first = spot->position;
		ranges[n].count = 1;
		n++;
	}
	*nranges = n;
	return ranges;
}

/*
 * The answer to an acknowledgement of a lease that is gone: when it was acknowledged whole, and is remembered, the count of
 * then (of the ids that are given, at most); otherwise 0.
 */
static int64
repeated_ack(uint64 id, bool by_id, Datum message_ids)
{
	const QcAnswer *answer;
	QcQueue    *queue;
	char		name[QLOG_NAME_MAX];
	QlogName	queue_name = {name, 0};
	QlogQueue	asked;
	uint64		queue_id = 0;
	int64		count = 0;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	answer = qc_answer_find(qlog_state, id);
	queue = answer == NULL ? NULL : qc_queue_by_id(qlog_state, answer->queue);
	if (queue != NULL && queue->database == MyDatabaseId && queue->state != QC_QUEUE_DEAD)
	{
		count = answer->count;
		queue_id = queue->id;
		queue_name.len = queue->name_len;
		memcpy(name, qc_name_at(qlog_state, queue->name), queue->name_len);
	}
	LWLockRelease(&qlog_shared->state_lock);
	if (count == 0 || !qlog_queue_by_id(queue_id, &asked))
		return 0;
	qlog_acl_check(&asked, QLOG_POP, queue_name);
	if (by_id)
	{
		uint32		nids;
		uint8	   *ids = sorted_ids(message_ids, &nids);
		int64		distinct = 0;

		for (uint32 i = 0; i < nids; i++)
			distinct += i == 0 || compare_ids(ids + (size_t) (i - 1) * QC_ID_SIZE,
											  ids + (size_t) i * QC_ID_SIZE) != 0;
		count = Min(count, distinct);
	}
	if (count > 0)
		qlog_stage_repeated(id);
	return count;
}

int64
qlog_lease_ack(uint64 id, bool by_id, Datum message_ids)
{
	QlogLease	lease;
	QcAckItem  *ranges;
	uint32		nranges;

	if (!qlog_lease_look(id, by_id && !qlog_lease_remembered(id), &lease))
		return repeated_ack(id, by_id, message_ids);
	qlog_lease_select(&lease, by_id, message_ids);
	if (lease.nspots == 0)
		return 0;
	ranges = qlog_lease_ranges(&lease, &nranges);
	qlog_stage_ack(id, lease.group, ranges, nranges);
	return lease.nspots;
}
