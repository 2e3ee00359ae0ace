/*
 * fn_dead.c
 *		Dead letters: the view over them, queue_redrive, queue_purge_dead.
 *
 * Letters are the items of a group's dead lane, oldest first; where their records are is noted under the shared state lock
 * in steps, the bytes are read without it.	 What takes letters out of a lane takes effect at COMMIT, and holds a
 * heavyweight lock on the lane until then: two of a kind cannot take the same letter, the second one waits and sees what is
 * left.  Rejections and the deaths of messages go on meanwhile.
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/uuid.h"

#include "qlog_acl.h"
#include "qlog_commit.h"
#include "qlog_death.h"
#include "qlog_group.h"
#include "qlog_list.h"
#include "qlog_namelock.h"
#include "qlog_partition.h"
#include "qlog_row.h"
#include "qlog_shmem.h"

#include "../core/qc_lane.h"

/* Arguments. */
enum
{
	ARG_QUEUE,
	ARG_CONSUMER_GROUP,
	ARG_BATCH					/* of queue_redrive */
};

/* Columns of the view. */
enum
{
	COLUMN_QUEUE,
	COLUMN_GROUP,
	COLUMN_PARTITION,
	COLUMN_POSITION,
	COLUMN_MESSAGE_ID,
	COLUMN_ATTEMPTS,
	COLUMN_REASON,
	COLUMN_DIED_AT,
	COLUMN_PAYLOAD,
	COLUMN_PAYLOAD_BYTES,
	COLUMN_HEADERS,
	COLUMN_COUNT
};

#define STEP 256				/* letters noted per hold of the lock */
#define RANGES_FIRST 64

PG_FUNCTION_INFO_V1(qlog_dead_letters);
PG_FUNCTION_INFO_V1(queue_redrive);
PG_FUNCTION_INFO_V1(queue_purge_dead);

/* ---- walking through a lane ---- */

typedef struct Letter
{
	QlogSpot	spot;			/* in the lane; attempt: deliveries */
	uint64		target;			/* partition that it comes from */
	uint64		origin;			/* position there */
	uint8		cause;			/* QC_DEAD_* */
} Letter;

typedef struct Walk
{
	uint64		lane;
	uint64		next;			/* position to go on with */
	QcRef		hint;			/* item before it, may be gone */
	uint32		n;
	Letter		letters[STEP];
} Walk;

static Walk *
begin_walk(uint64 lane)
{
	Walk	   *walk = palloc(sizeof(Walk));

	walk->lane = lane;
	walk->next = 0;
	walk->hint = 0;
	walk->n = 0;
	return walk;
}

/* Look at the next items of the lane; true = there may be more behind them.	 *seq: newest entry of then. */
static bool
look_on(Walk *walk, uint64 *seq)
{
	QcPartition *lane;
	QcLaneItem *item;
	QcRef		hint = 0;

	walk->n = 0;
	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	lane = qc_partition_by_id(qlog_state, walk->lane);
	item = lane == NULL ? NULL : qc_lane_seek(qlog_state, lane, walk->next, walk->hint);
	for (uint32 looked = 0; item != NULL && looked < STEP; looked++)
	{
		walk->hint = QC_REF(qlog_state, item);
		walk->next = item->position + 1;
		if (item->state == QC_LANE_ITEM_LIVE && !qlog_stage_is_taken(walk->lane, item->position))
		{
			Letter	   *letter = &walk->letters[walk->n++];

			qlog_spot_note(lane, item->position, item->attempt, &hint, &letter->spot);
			letter->target = item->target;
			letter->origin = item->origin;
			letter->cause = item->reason;
		}
		item = QC_AT(qlog_state, QcLaneItem, item->of_lane.next);
	}
	*seq = qlog_state->seq;
	LWLockRelease(&qlog_shared->state_lock);
	return item != NULL;
}

/* Note the next letters that this transaction has not taken.  false = there are none. */
static bool
next_letters(Walk *walk)
{
	bool		more;
	uint64		seq;

	do
	{
		CHECK_FOR_INTERRUPTS();
		more = look_on(walk, &seq);
	} while (walk->n == 0 && more);

	/* The youngest ones may still be in memory only. */
	if (walk->n > 0)
		qlog_write(seq);
	return walk->n > 0;
}

/* ---- the view ---- */

/* A group that has letters. */
typedef struct LetterGroup
{
	uint64		lane;
	uint16		name_len;
	char		name[QLOG_NAME_MAX];
} LetterGroup;

/* Groups of a queue that have letters, palloc'ed. */
static LetterGroup *
letter_groups(uint64 queue_id, uint32 *n)
{
	LetterGroup *groups = palloc(QC_GROUPS_MAX * sizeof(LetterGroup));
	QcQueue    *queue;

	*n = 0;
	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	queue = qc_queue_by_id(qlog_state, queue_id);
	for (QcGroup *group = queue == NULL ? NULL : QC_AT(qlog_state, QcGroup, queue->groups);
		 group != NULL && *n < QC_GROUPS_MAX; group = QC_AT(qlog_state, QcGroup, group->next))
	{
		const QcPartition *lane = group->state != QC_GROUP_LIVE ? NULL :
			qc_partition_by_id(qlog_state, group->dead_partition);

		if (lane == NULL || lane->nitems == 0)
			continue;
		groups[*n].lane = lane->id;
		groups[*n].name_len = group->name_len;
		memcpy(groups[*n].name, qc_name_at(qlog_state, group->name), group->name_len);
		(*n)++;
	}
	LWLockRelease(&qlog_shared->state_lock);
	return groups;
}

/* The partition that a letter comes from, for one whose frame does not tell. */
static Datum
partition_datum(uint64 id, bool *null)
{
	char		name[QLOG_NAME_MAX];
	uint16		len = 0;
	QcPartition *partition;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	partition = qc_partition_by_id(qlog_state, id);
	if (partition != NULL)
	{
		len = partition->name_len;
		memcpy(name, qc_name_at(qlog_state, partition->name), len);
	}
	LWLockRelease(&qlog_shared->state_lock);
	*null = partition == NULL;
	return qlog_text_datum(name, len);
}

/* Columns that the message's frame tells. */
static void
form_message(const Letter *letter, const QcMessage *message, int64 created_at, bool show_payload,
			 Datum *values, bool *nulls)
{
	bool		dead = (message->flags & QC_FRAME_DEAD) != 0;
	bool		binary = (message->flags & QC_FRAME_BINARY) != 0;
	int			payload = binary ? COLUMN_PAYLOAD_BYTES : COLUMN_PAYLOAD;
	QcStr		reason = qlog_dead_reason(letter->cause);
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));

	memcpy(id->data, message->id, UUID_LEN);
	values[COLUMN_MESSAGE_ID] = UUIDPGetDatum(id);
	values[COLUMN_PARTITION] = dead ? qlog_text_datum(message->partition, message->partition_len) :
		partition_datum(letter->target, &nulls[COLUMN_PARTITION]);
	values[COLUMN_REASON] = dead ? qlog_text_datum(message->reason, message->reason_len) :
		qlog_text_datum(reason.bytes, reason.len);
	values[COLUMN_DIED_AT] = TimestampTzGetDatum(qlog_timestamptz(created_at));
	if (letter->cause == QC_DEAD_UNREADABLE)
	{
		nulls[COLUMN_MESSAGE_ID] = true;
		return;
	}
	if (!show_payload)
		return;
	values[payload] = qlog_text_datum(message->data, message->data_len);
	nulls[payload] = false;
	if ((message->flags & QC_FRAME_HEADERS) == 0)
		return;
	values[COLUMN_HEADERS] = qlog_text_datum(message->headers, message->headers_len);
	nulls[COLUMN_HEADERS] = false;
}

/* A row; a letter that cannot be read says so instead of failing the whole view. */
static void
form_letter(const Letter *letter, bool show_payload, Datum *values, bool *nulls)
{
	QcMessage	message;
	int64		created_at;
	QcError		err;
	char text[	sizeof(err.file) + sizeof(err.text) + 64];

	nulls[COLUMN_PAYLOAD] = nulls[COLUMN_PAYLOAD_BYTES] = nulls[COLUMN_HEADERS] = true;
	values[COLUMN_POSITION] = Int64GetDatum((int64) letter->origin);
	values[COLUMN_ATTEMPTS] = Int32GetDatum((int32) letter->spot.attempt);
	if (qlog_fetch_try(&letter->spot, &message, &created_at, &err) == QC_OK)
	{
		form_message(letter, &message, created_at, show_payload, values, nulls);
		return;
	}
	qc_error_format(&err, text, sizeof(text));
	values[COLUMN_PARTITION] = partition_datum(letter->target, &nulls[COLUMN_PARTITION]);
	values[COLUMN_REASON] = CStringGetTextDatum(text);
	nulls[COLUMN_MESSAGE_ID] = nulls[COLUMN_DIED_AT] = true;
}

static void
show_letters(ReturnSetInfo *result, const QlogListed *queue, const LetterGroup *group,
			 bool show_payload)
{
	MemoryContext row = AllocSetContextCreate(CurrentMemoryContext, "qlog_dead_letters row",
											  ALLOCSET_DEFAULT_SIZES);
	Walk	   *walk = begin_walk(group->lane);

	while (next_letters(walk))
	{
		MemoryContext caller = MemoryContextSwitchTo(row);

		for (uint32 i = 0; i < walk->n; i++)
		{
			Datum		values[COLUMN_COUNT];
			bool		nulls[COLUMN_COUNT] = {false};

			CHECK_FOR_INTERRUPTS();
			values[COLUMN_QUEUE] = qlog_text_datum(queue->name.text, queue->name.len);
			values[COLUMN_GROUP] = qlog_text_datum(group->name, group->name_len);
			form_letter(&walk->letters[i], show_payload, values, nulls);
			tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
			MemoryContextReset(row);
		}
		MemoryContextSwitchTo(caller);
	}
	MemoryContextDelete(row);
	pfree(walk);
}

Datum
qlog_dead_letters(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	uint32		nids;
	uint64	   *ids;

	qlog_enter_read("qlog_dead_letters");
	InitMaterializedSRF(fcinfo, 0);
	ids = qlog_list_visible(&nids);
	for (uint32 i = 0; i < nids; i++)
	{
		QlogListed	queue;
		LetterGroup *groups;
		uint32		n;
		bool		show_payload;

		CHECK_FOR_INTERRUPTS();
		if (!qlog_list_get(ids[i], &queue) || !qlog_acl_sees(&queue.queue))
			continue;
		show_payload = qlog_acl_has(&queue.queue, GetUserId(), QLOG_POP, ACLMASK_ANY);
		groups = letter_groups(ids[i], &n);
		for (uint32 k = 0; k < n; k++)
			show_letters(result, &queue, &groups[k], show_payload);
		pfree(groups);
	}
	return (Datum) 0;
}

/* ---- taking letters out ---- */

/* What a call is about. */
typedef struct Removal
{
	QlogQueue	queue;
	QlogName	name;
	uint64		lane;			/* 0 = there are no letters */
	uint32		nranges;
	uint32		maxranges;
	QcRedriveItem *ranges;
} Removal;

/* The dead lane of the group now; 0 = none. */
static uint64
lane_of(const QlogQueue *queue, QlogName group_name)
{
	uint64		id;
	uint64		lane = 0;
	QlogGroupFound found = qlog_group_find(queue, group_name, &id);
	QcQueue    *object;
	QcGroup    *group;

	if (found == QLOG_GROUP_MISSING)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("consumer group \"%.*s\" does not exist", QLOG_NAME(group_name))));
	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	object = qc_queue_by_id(qlog_state, queue->id);
	group = object == NULL ? NULL : qc_group_by_name(qlog_state, object, group_name.text, group_name.len);
	if (group != NULL)
		lane = group->dead_partition;
	LWLockRelease(&qlog_shared->state_lock);
	return lane;
}

/* Find the lane and lock it to the end of the transaction: 42501 without the privilege, 42704. */
static void
begin_removal(FunctionCallInfo fcinfo, const char *function, Removal *removal)
{
	QlogName	group;
	uint64		before;

	qlog_enter(function);
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	removal->name = qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE));
	group = qlog_group_name(fcinfo, ARG_CONSUMER_GROUP);
	qlog_queue_get(removal->name, QLOG_MANAGE, &removal->queue);
	removal->lane = lane_of(&removal->queue, group);
	removal->nranges = 0;
	removal->maxranges = RANGES_FIRST;
	removal->ranges = palloc(RANGES_FIRST * sizeof(QcRedriveItem));
	do
	{
		before = removal->lane;
		if (before == 0)
			return;
		qlog_lock_lane(before);
		removal->lane = lane_of(&removal->queue, group);
	} while (removal->lane != before);
}

/* One letter more. */
static void
add_letter(Removal *removal, const Letter *letter)
{
	QcRedriveItem *last = removal->nranges == 0 ? NULL : &removal->ranges[removal->nranges - 1];

	if (last != NULL && last->first + last->count == letter->spot.position &&
		last->count < PG_UINT32_MAX)
	{
		last->count++;

		return;
	}
	if (removal->nranges == removal->maxranges)
	{
		removal->maxranges *= 2;
		removal->ranges = repalloc_huge(removal->ranges,
										(Size) removal->maxranges * sizeof(QcRedriveItem));
	}
	removal->ranges[removal->nranges++] = (QcRedriveItem)
	{
		.first = letter->spot.position, .count = 1
	};
}

/* Where a letter goes back to: its partition, or one of the same name when that is gone. */
static void
find_target(const Removal *removal, const Letter *letter, const QcMessage *message,
			QlogTarget *target)
{
	QlogName	name = {"", 0};
	QcPartition *partition;
	bool		there;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	partition = qc_partition_by_id(qlog_state, letter->target);
	there = partition != NULL && partition->lane == QC_LANE_NONE;
	LWLockRelease(&qlog_shared->state_lock);
	if (message->flags & QC_FRAME_DEAD)
		name = (QlogName) {(const char *) message->partition, message->partition_len};
	qlog_partition_for_push(&removal->queue, removal->name, there ? (QlogName) {"", 0} : name,
							target);
	if (there)
		target->partition = letter->target;
}

/* Stage the copy of one letter.  false = it holds nothing that could be delivered. */
static bool
redrive_letter(const Removal *removal, const Letter *letter)
{
	QcMessage	message;
	QlogTarget	target = {0};
	int64		created_at;

	if (letter->cause == QC_DEAD_UNREADABLE)
		return false;
	if (!qlog_fetch_if_there(&letter->spot, &message, &created_at))
		return false;
	find_target(removal, letter, &message, &target);
	message.flags &= (uint8) ~QC_FRAME_DEAD;
	qlog_stage_moved(&target, &message);
	return true;
}

Datum
queue_redrive(PG_FUNCTION_ARGS)
{
	int64		batch = PG_ARGISNULL(ARG_BATCH) ? PG_INT64_MAX : PG_GETARG_INT32(ARG_BATCH);
	int64		moved = 0;
	int64		lost = 0;
	Removal		removal;
	Walk	   *walk;

	if (batch < 1)
		qlog_arg_invalid("batch", "It must be at least 1.");
	begin_removal(fcinfo, "queue_redrive()", &removal);
	walk = removal.lane == 0 ? NULL : begin_walk(removal.lane);
	while (walk != NULL && moved < batch && next_letters(walk))
	{
		for (uint32 i = 0; i < walk->n && moved < batch; i++)
		{
			CHECK_FOR_INTERRUPTS();
			if (!redrive_letter(&removal, &walk->letters[i]))
			{
				lost++;
				continue;
			}
			add_letter(&removal, &walk->letters[i]);
			moved++;
		}
	}
	if (moved > 0)
		qlog_stage_redrive(removal.lane, removal.ranges, removal.nranges);
	if (lost > 0)
		ereport(WARNING,
				(errmsg_plural("%lld dead letter of queue \"%.*s\" has no payload and stays",
							   "%lld dead letters of queue \"%.*s\" have no payload and stay",
							   (unsigned long) lost, (long long) lost, QLOG_NAME(removal.name)),
				 errhint("qlog_dead_letters tells where they could not be read; queue_purge_dead() removes them.")));
	PG_RETURN_INT64(moved);
}

Datum
queue_purge_dead(PG_FUNCTION_ARGS)
{
	int64		purged = 0;
	Removal		removal;
	Walk	   *walk;

	StaticAssertStmt(sizeof(QcPurgeDeadItem) == sizeof(QcRedriveItem), "ranges of two kinds");
	begin_removal(fcinfo, "queue_purge_dead()", &removal);
	walk = removal.lane == 0 ? NULL : begin_walk(removal.lane);
	while (walk != NULL && next_letters(walk))
	{
		for (uint32 i = 0; i < walk->n; i++)
			add_letter(&removal, &walk->letters[i]);
		purged += walk->n;
	}
	if (purged > 0)
		qlog_stage_purge_dead(removal.lane, (QcPurgeDeadItem *) removal.ranges, removal.nranges);
	PG_RETURN_INT64(purged);
}
