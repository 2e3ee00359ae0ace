/*
 * fn_peek.c
 *		queue_peek: look at messages without taking them.
 *
 * Without a position or a time it shows what is still to be done by the default group, leased messages included;
 * with one of them it shows every message that is kept from there on.	Partition by partition, in steps: the state lock
 * is held for a bounded number of partitions or messages, and never while a message is read.
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "qlog_commit.h"
#include "qlog_fetch.h"
#include "qlog_lookup.h"
#include "qlog_position.h"
#include "qlog_shmem.h"

#include "../core/qc_cursor.h"
#include "../core/qc_group.h"
#include "../core/qc_purge.h"

/* Arguments. */
enum
{
	ARG_QUEUE,
	ARG_PARTITION,
	ARG_FROM_POSITION,
	ARG_FROM_TIME,
	ARG_BATCH
};

#define PARTITIONS_STEP	256		/* looked at per hold of the lock */
#define MESSAGES_STEP	1024	/* noted per hold of the lock */
#define ATTEMPT_UNKNOWN	UINT32_MAX	/* of a message that is done */

PG_FUNCTION_INFO_V1(queue_peek);

typedef struct Peek
{
	QlogName	name;
	QlogQueue	queue;
	bool		by_partition;
	QlogName	partition;
	bool		all;			/* also what is done */
	bool		by_time;
	uint64		from_position;
	int64		from_time;
	uint64		left;			/* messages still to be shown */

	/* The partition that is looked at, and the one to go on with. */
	uint64		current;		/* id, 0 = none */
	uint64		next;			/* id, 0 = end */
	uint64		at;				/* position */
	uint64		stable;
	char		current_name[QLOG_NAME_MAX];
	uint16		current_name_len;

	uint64		seq;			/* newest entry when messages were noted: written out before they
								 * are read */
	QlogSpot   *spots;			/* MESSAGES_STEP of them */
	uint32		nspots;
} Peek;

/* Check the arguments and find the queue. */
static void
peek_arguments(FunctionCallInfo fcinfo, Peek *peek)
{
	int32		batch = PG_ARGISNULL(ARG_BATCH) ? 10 : PG_GETARG_INT32(ARG_BATCH);

	qlog_require(fcinfo, ARG_QUEUE, "queue");
	if (batch < 1)
		qlog_arg_invalid("batch", "It must be at least 1.");
	peek->left = (uint64) batch;
	peek->name = qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE));
	peek->by_partition = !PG_ARGISNULL(ARG_PARTITION);
	if (peek->by_partition)
		peek->partition = qlog_partition_name(PG_GETARG_DATUM(ARG_PARTITION));
	if (!PG_ARGISNULL(ARG_FROM_POSITION))
	{
		if (PG_GETARG_INT64(ARG_FROM_POSITION) < 0)
			qlog_arg_invalid("from_position", "It must not be negative.");
		if (!peek->by_partition)
			qlog_arg_invalid("from_position",
							 "A position needs a partition; the default one is named ''.");
		peek->from_position = (uint64) PG_GETARG_INT64(ARG_FROM_POSITION);
		peek->all = true;
	}
	if (!PG_ARGISNULL(ARG_FROM_TIME))
	{
		peek->from_time = qlog_position_time(PG_GETARG_TIMESTAMPTZ(ARG_FROM_TIME));
		peek->all = peek->by_time = true;
	}
	qlog_queue_get(peek->name, QLOG_POP, &peek->queue);
}

/* Where the default group stands in a partition. */
typedef struct Standing
{
	const QcCursor *cursor;		/* NULL = nothing in flight */
	bool		stale;			/* of the slots only those leased are there */
	uint64		first;			/* lowest position to be done */
	uint64		fetch;			/* from here on nothing has been delivered */
	bool		by_time;		/* only messages pushed at `time` or later are to be done */
	int64		time;
} Standing;

/* Next slot that is there, from this one on. */
static const QcSlot *
there(const Standing *standing, QcRef ref)
{
	const QcSlot *slot = QC_AT(qlog_state, QcSlot, ref);

	while (slot != NULL && standing->stale && slot->state != QC_SLOT_LEASED)
		slot = QC_AT(qlog_state, QcSlot, slot->of_cursor.next);
	return slot;
}

/* State lock, at least shared: nothing is brought up to date. */
static Standing
stand(const QcPartition *partition)
{
	QcQueue    *queue = QC_AT(qlog_state, QcQueue, partition->queue);
	QcGroup    *group = qc_group_default(qlog_state, queue);
	QcCursor   *cursor = group == NULL ? NULL : qc_cursor_of(qlog_state, partition, group);
	uint64		start = qc_partition_start(qlog_state, partition);
	Standing	standing = {.stale = qc_partition_stale(qlog_state, partition),
		.first = start, .fetch = start};
	const QcSlot *slot;

	if (cursor != NULL && cursor->fetch != QC_UNSET)
	{
		standing.cursor = cursor;
		standing.first = standing.fetch = Max(cursor->fetch, start);
		slot = there(&standing, cursor->slots.head);
		if (slot != NULL)
			standing.first = slot->position;
	}
	else if (group != NULL && !qc_group_start(group, partition, &standing.fetch))
	{
		standing.by_time = true;
		standing.time = group->start_at;
		standing.fetch = start;
	}
	else if (group != NULL)
		standing.first = standing.fetch = Max(standing.fetch, start);
	return standing;
}

/* Make a partition the current one unless it has nothing to show.	State lock. */
static void
open_partition(Peek *peek, const QcPartition *partition)
{
	Standing	standing;

	if (partition->lane != QC_LANE_NONE)
		return;
	standing = stand(partition);
	peek->at = peek->all ? Max(peek->from_position, qc_partition_start(qlog_state, partition)) :
		standing.first;
	peek->stable = partition->stable;
	if (peek->at >= peek->stable)
		return;
	if (!peek->all)
	{
		peek->by_time = standing.by_time;
		peek->from_time = standing.time;
	}
	peek->current = partition->id;
	memcpy(peek->current_name, qc_name_at(qlog_state, partition->name), partition->name_len);
	peek->current_name_len = partition->name_len;
}

/* Go on to the next partition with something to show, within the step's budget.  State lock. */
static void
find_partition(Peek *peek)
{
	QcQueue    *queue = qc_queue_by_id(qlog_state, peek->queue.id);
	QcPartition *partition = NULL;

	peek->current = 0;
	if (queue == NULL || queue->state == QC_QUEUE_DEAD)
	{
		peek->next = 0;
		return;
	}
	if (peek->by_partition)
	{
		partition = qc_partition_by_name(qlog_state, queue, peek->partition.text,
										 peek->partition.len);
		peek->next = 0;
		if (partition != NULL)
			open_partition(peek, partition);
		return;
	}
	partition = peek->next == 0 ? QC_AT(qlog_state, QcPartition, queue->partitions.head) :
		qc_partition_by_id(qlog_state, peek->next);
	for (int n = 0; partition != NULL && n < PARTITIONS_STEP && peek->current == 0; n++)
	{
		open_partition(peek, partition);
		partition = QC_AT(qlog_state, QcPartition, partition->of_queue.next);
	}
	peek->next = partition == NULL ? 0 : partition->id;
}

/* Note the next messages of the current partition.	 State lock. */
static void
note_messages(Peek *peek)
{
	QcPartition *partition = qc_partition_by_id(qlog_state, peek->current);
	Standing	standing = {0};
	const QcSlot *slot = NULL;
	QcRef		hint = 0;

	peek->nspots = 0;
	peek->seq = qlog_state->seq;
	if (partition == NULL)
	{
		peek->at = peek->stable;
		return;
	}
	standing = stand(partition);
	if (standing.cursor != NULL)
		slot = there(&standing, standing.cursor->slots.head);
	while (peek->at < peek->stable && peek->nspots < Min(peek->left, MESSAGES_STEP))
	{
		uint64		p = qc_skip_aborted(qlog_state, partition, peek->at);
		uint32		attempt = 0;

		while (slot != NULL && slot->position < p)
			slot = there(&standing, slot->of_cursor.next);
		if (slot != NULL && slot->position == p)
			attempt = slot->attempt;
		else if (p < standing.fetch)
		{
			attempt = ATTEMPT_UNKNOWN;
			if (!peek->all)
			{
				peek->at = slot == NULL ? standing.fetch : slot->position;
				continue;
			}
		}
		peek->at = p + 1;
		if (p < peek->stable)
			qlog_spot_note(partition, p, attempt, &hint, &peek->spots[peek->nspots++]);
	}
}

/* Read the noted messages and put them as rows. */
static void
put_rows(ReturnSetInfo *rsinfo, const Peek *peek, MemoryContext row)
{
	QlogName	partition = {peek->current_name, peek->current_name_len};
	MemoryContext caller = MemoryContextSwitchTo(row);

	for (uint32 i = 0; i < peek->nspots; i++)
	{
		const QlogSpot *spot = &peek->spots[i];
		Datum		values[QLOG_COLUMN_COUNT];
		bool		nulls[QLOG_COLUMN_COUNT];
		QcMessage	message;
		int64_t		created_at;

		CHECK_FOR_INTERRUPTS();
		if (!qlog_fetch_if_there(spot, &message, &created_at))
			continue;			/* purged meanwhile, as if it had been before */
		qlog_message_row(spot, &message, created_at, partition, values, nulls);
		nulls[QLOG_COLUMN_ATTEMPT] = spot->attempt == ATTEMPT_UNKNOWN;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		MemoryContextReset(row);
	}
	MemoryContextSwitchTo(caller);
}

/* Show the current partition. */
static void
peek_partition(ReturnSetInfo *rsinfo, Peek *peek, MemoryContext row)
{
	if (peek->by_time)
		peek->at = qlog_position_at(peek->current, peek->at, peek->stable, peek->from_time);
	while (peek->left > 0 && peek->at < peek->stable)
	{
		LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
		note_messages(peek);
		qlog_unlock_state();
		qlog_write(peek->seq);
		put_rows(rsinfo, peek, row);
		peek->left -= peek->nspots;
	}
}

/* A queue that recovery has put out of service shows nothing: what it would show may have gaps. */
static void
refuse_damaged(const Peek *peek)
{
	QcQueue    *queue;
	bool		damaged;
	uint64		file = 0;
	uint64		position = 0;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	queue = qc_queue_by_id(qlog_state, peek->queue.id);
	damaged = queue != NULL && queue->damaged;
	if (damaged)
	{
		file = queue->damage_file;
		position = queue->damage_position;
	}
	LWLockRelease(&qlog_shared->state_lock);
	if (damaged)
		qlog_refuse_damaged(peek->name, peek->queue.log, file, position);
}

Datum
queue_peek(PG_FUNCTION_ARGS)
{
	Peek	   *peek = palloc0(sizeof(Peek));
	MemoryContext row;

	qlog_enter_read("queue_peek()");
	peek_arguments(fcinfo, peek);
	InitMaterializedSRF(fcinfo, 0);
	if (peek->queue.own)
		PG_RETURN_NULL();
	refuse_damaged(peek);
	peek->spots = palloc(MESSAGES_STEP * sizeof(QlogSpot));
	row = AllocSetContextCreate(CurrentMemoryContext, "queue_peek row", ALLOCSET_DEFAULT_SIZES);
	do
	{
		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
		find_partition(peek);
		qlog_unlock_state();
		if (peek->current != 0)
			peek_partition((ReturnSetInfo *) fcinfo->resultinfo, peek, row);
	} while (peek->next != 0 && peek->left > 0);
	PG_RETURN_NULL();
}
