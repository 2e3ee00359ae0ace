/*
 * fn_peek_message.c
 *		queue_peek_message: one message by its id.
 *
 * There is no index of ids.  An id tells when it was made (UUIDv7), and a record when it was written, which is later:
 * only records from then on are asked, first by the hashes that stand in front of their messages; a message with a dedup
 * id is hashed by that one, so a second walk looks into the messages themselves.  No lock is held while files are read.
 * A delayed message is found in its lane until it has entered its partition.
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/uuid.h"

#include "qlog_commit.h"
#include "qlog_fetch.h"
#include "qlog_gone.h"
#include "qlog_lookup.h"
#include "qlog_shmem.h"
#include "qlog_uuid.h"

#include "../core/qc_cursor.h"
#include "../core/qc_lane.h"
#include "../core/qc_purge.h"

/* Arguments. */
enum
{
	ARG_QUEUE,
	ARG_MESSAGE_ID
};

/* The clock may have been set back between the making of an id and its commit. */
#define CLOCK_SLACK_US INT64CONST(60000000)

PG_FUNCTION_INFO_V1(queue_peek_message);

typedef struct Search
{
	QlogQueue	queue;
	uint8		id[QC_ID_SIZE];
	uint8		hash[QC_HASH_SIZE];
	uint8	   *hashes;			/* of one record */
	Size		hashes_cap;
	QlogSpot	spot;			/* what was found */
	char		partition[QLOG_NAME_MAX];
	uint16		partition_len;
	bool		done;			/* by the default group: its attempts are not known any more */
	bool		delayed;		/* it has no position yet */
} Search;

/* State lock. */
static void
note_partition_name(Search *search, const QcPartition *partition)
{
	search->partition_len = partition->name_len;
	memcpy(search->partition, qc_name_at(qlog_state, partition->name), partition->name_len);
}

/* Notes the attempts of a message: those of the default group.	State lock. */
static void
note_attempts(Search *search, const QcQueue *queue, const QcPartition *partition, uint64 position)
{
	QcGroup    *group = qc_group_default(qlog_state, queue);
	QcCursor   *cursor = group == NULL ? NULL : qc_cursor_of(qlog_state, partition, group);
	QcSlot	   *slot = cursor == NULL ? NULL : qc_cursor_slot(qlog_state, cursor, position);

	search->spot.attempt = slot == NULL ? 0 : slot->attempt;
	search->done = slot == NULL && cursor != NULL && cursor->fetch != QC_UNSET &&
		position < cursor->fetch;
}

/* Does the message wait in the delay lane, committed?	Notes the partition that it will enter.  State lock. */
static bool
is_delayed(Search *search, const QcPartition *lane, uint64 position)
{
	QcLaneItem *item = qc_lane_find(qlog_state, lane, position);
	QcPartition *target = item == NULL || item->state != QC_LANE_ITEM_LIVE ? NULL :
		qc_partition_by_id(qlog_state, item->target);

	if (target == NULL)
		return false;
	search->delayed = true;
	note_partition_name(search, target);
	return true;
}

/* Is the message there, for everybody to see?	State lock. */
static bool
is_settled(const QcPartition *partition, uint64 position)
{
	return position >= qc_partition_start(qlog_state, partition) && position < partition->stable &&
		qc_skip_aborted(qlog_state, partition, position) == position;
}

/* Is this a message of the queue that everybody may see?  Notes its place and what is known of it. */
static bool
is_visible(Search *search, uint64 partition_id, uint64 position, const QcLocation *location)
{
	QcPartition *partition;
	QcQueue    *queue;
	bool		visible = false;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	partition = qc_partition_by_id(qlog_state, partition_id);
	queue = partition == NULL ? NULL : QC_AT(qlog_state, QcQueue, partition->queue);
	if (queue == NULL || queue->id != search->queue.id)
		visible = false;
	else if (partition->lane == QC_LANE_DELAY)
		visible = is_delayed(search, partition, position);
	else if (partition->lane == QC_LANE_NONE && is_settled(partition, position))
	{
		visible = true;
		note_partition_name(search, partition);
		note_attempts(search, queue, partition, position);
	}
	if (visible)
	{
		search->spot.partition = partition_id;
		search->spot.position = position;
		search->spot.location = *location;
	}
	LWLockRelease(&qlog_shared->state_lock);
	return visible;
}

/* Is it the message at this position of the record? */
static bool
is_message(Search *search, uint64 partition, uint64 position, const QcLocation *location)
{
	QlogSpot	spot = {.partition = partition, .position = position, .location = *location};
	QcMessage	message;
	int64_t		created_at;

	return qlog_fetch_if_there(&spot, &message, &created_at) &&
		memcmp(message.id, search->id, QC_ID_SIZE) == 0 &&
		is_visible(search, partition, position, location);
}

/* Does the record hold the message? by_hash: ask only what its hashes point at. */
static bool
is_in_record(Search *search, bool by_hash, uint64 partition, const QcLocation *location)
{
	Size		size = (Size) location->count * QC_HASH_SIZE;

	if (by_hash)
	{
		if (size > search->hashes_cap)
		{
			search->hashes = palloc(size);
			search->hashes_cap = size;
		}
		if (!qlog_fetch_bytes(location, QC_RECORD_HEADER_SIZE, search->hashes, size))
			return false;
	}
	for (uint32 i = 0; i < location->count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (by_hash &&
			memcmp(search->hashes + (Size) i * QC_HASH_SIZE, search->hash, QC_HASH_SIZE) != 0)
			continue;
		if (is_message(search, partition, location->first + i, location))
			return true;
	}
	return false;
}

/* Walk over the records written since the id was made. */
static bool
walk(Search *search, bool by_hash)
{
	QcReadWalk	walk = {.log = search->queue.log};
	QcLocation	location;
	uint64		partition;

	for (int i = 0; i < 6; i++)
		walk.since = walk.since << 8 | search->id[i];
	walk.since = walk.since * 1000 - CLOCK_SLACK_US;
	while (qlog_fetch_walk(&walk, &partition, &location))
	{
		CHECK_FOR_INTERRUPTS();
		if (is_in_record(search, by_hash, partition, &location))
			return true;
	}
	return false;
}

/* Files that are rewritten while they are walked over may be missed: then once more. */
static bool
search_files(Search *search)
{
	uint64		count;

	do
	{
		count = qlog_gone_count();
		if (walk(search, true) || walk(search, false))
			return true;
	} while (count != qlog_gone_count());
	return false;
}

Datum
queue_peek_message(PG_FUNCTION_ARGS)
{
	Search	   *search = palloc0(sizeof(Search));
	QcMessage	message = {0};
	Datum		values[QLOG_COLUMN_COUNT];
	bool		nulls[QLOG_COLUMN_COUNT];
	int64_t		created_at;

	qlog_enter_read("queue_peek_message()");
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	qlog_require(fcinfo, ARG_MESSAGE_ID, "message_id");
	qlog_queue_get(qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE)), QLOG_POP, &search->queue);
	memcpy(search->id, PG_GETARG_UUID_P(ARG_MESSAGE_ID)->data, QC_ID_SIZE);
	memcpy(message.id, search->id, QC_ID_SIZE);
	qc_frame_hash(&message, search->hash);
	InitMaterializedSRF(fcinfo, 0);
	if (search->queue.own)
		PG_RETURN_NULL();

	/* Everything that is visible now is in the files. */
	qlog_write(qlog_newest_seq());
	if (search_files(search))
	{
		ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

		if (!qlog_fetch_if_there(&search->spot, &message, &created_at))
			PG_RETURN_NULL();
		qlog_message_row(&search->spot, &message, created_at,
						 (QlogName) {search->partition, search->partition_len}, values, nulls);
		nulls[QLOG_COLUMN_ATTEMPT] = search->done;
		nulls[QLOG_COLUMN_POSITION] = search->delayed;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	PG_RETURN_NULL();
}
