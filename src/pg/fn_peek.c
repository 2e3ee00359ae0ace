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
#include "qlog_shmem.h"

#include "../core/qc_cursor.h"

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

/* On the core's clock, where the infinities lie outside. */
static int64
unix_time(TimestampTz instant)
{
	if (TIMESTAMP_IS_NOBEGIN(instant))
		return PG_INT64_MIN;
	return TIMESTAMP_IS_NOEND(instant) ? PG_INT64_MAX : qlog_unix_us(instant);
}

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
		peek->from_time = unix_time(PG_GETARG_TIMESTAMPTZ(ARG_FROM_TIME));
		peek->all = peek->by_time = true;
	}
	qlog_queue_get(peek->name, QLOG_POP, &peek->queue);
}

static QcCursor *
default_cursor(const QcPartition *partition)
{
	QcQueue    *queue = QC_AT(qlog_state, QcQueue, partition->queue);

	return qc_cursor_of(qlog_state, partition,
						qc_group_default(qlog_state, queue));
}

/* Make a partition the current one unless it has nothing to show.	State lock. */
static void
open_partition(Peek *peek, const QcPartition *partition)
{
	QcCursor   *cursor = default_cursor(partition);

	if (partition->lane != QC_LANE_NONE || cursor == NULL)
		return;
	peek->at = peek->all ? peek->from_position : qc_cursor_committed(qlog_state, cursor);
	peek->stable = partition->stable;
	if (peek->at >= peek->stable)
		return;
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
	QcCursor   *cursor = partition == NULL ? NULL : default_cursor(partition);
	QcSlot	   *slot = cursor == NULL ? NULL : QC_AT(qlog_state, QcSlot, cursor->slots.head);
	QcRef		hint = 0;

	peek->nspots = 0;
	peek->seq = qlog_state->seq;
	if (cursor == NULL)
		peek->at = peek->stable;
	while (peek->at < peek->stable && peek->nspots < Min(peek->left, MESSAGES_STEP))
	{
		uint64		p = qc_skip_aborted(qlog_state, partition, peek->at);
		uint32		attempt = 0;

		while (slot != NULL && slot->position < p)
			slot = QC_AT(qlog_state, QcSlot, slot->of_cursor.next);
		if (slot != NULL && slot->position == p)
			attempt = slot->attempt;
		else if (p < cursor->fetch)
		{
			attempt = ATTEMPT_UNKNOWN;
			if (!peek->all)
			{
				peek->at = slot == NULL ? cursor->fetch : slot->position;
				continue;
			}
		}
		peek->at = p + 1;
		if (p < peek->stable)
			qlog_spot_note(partition, p, attempt, &hint, &peek->spots[peek->nspots++]);
	}
}

/* When the first message at or above p was pushed; *p is moved to it, to the stable end when there is none. */
static int64
time_at(Peek *peek, uint64 *p)
{
	QcPartition *partition;
	QcRef		hint = 0;
	QlogSpot	spot;
	QcMessage	message;
	int64_t		created_at;
	uint64		seq;
	bool		found = false;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	partition = qc_partition_by_id(qlog_state, peek->current);
	seq = qlog_state->seq;
	if (partition != NULL)
	{
		*p = qc_skip_aborted(qlog_state, partition, *p);
		found = *p < peek->stable;
		if (found)
			qlog_spot_note(partition, *p, 0, &hint, &spot);
	}
	qlog_unlock_state();
	if (!found)
	{
		*p = peek->stable;
		return 0;
	}
	qlog_write(seq);
	qlog_fetch(&spot, &message, &created_at);
	return created_at;
}

/* Move to the first message pushed at from_time or later: times never go back within a partition. */
static void
seek_time(Peek *peek)
{
	uint64		low = peek->at;
	uint64		high = peek->stable;

	/* Below low everything is older; at high and above nothing is. */
	while (low < high)
	{
		uint64		middle = low + (high - low) / 2;
		uint64		p = middle;
		int64		pushed_at;

		CHECK_FOR_INTERRUPTS();
		pushed_at = time_at(peek, &p);
		if (p < peek->stable && pushed_at < peek->from_time)
			low = p + 1;
		else
			high = middle;
	}
	peek->at = low;
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
		qlog_fetch(spot, &message, &created_at);
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
		seek_time(peek);
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
