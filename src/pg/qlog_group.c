/*
 * qlog_group.c
 *		Consumer groups by name.
 */
#include "qlog_group.h"

#include "miscadmin.h"
#include "storage/lock.h"

#include "qlog_commit.h"
#include "qlog_guc.h"
#include "qlog_namelock.h"
#include "qlog_position.h"
#include "qlog_report.h"

#include "../core/qc_group.h"
#include "../core/qc_purge.h"

/* The group's id in the state; false = there is no such group. */
static bool
read_group(uint64 queue_id, QlogName name, uint64 *id)
{
	QcQueue    *queue;
	QcGroup    *group = NULL;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	queue = qc_queue_by_id(qlog_state, queue_id);
	if (queue != NULL)
		group = qc_group_by_name(qlog_state, queue, name.text, name.len);
	if (group != NULL)
		*id = group->id;
	LWLockRelease(&qlog_shared->state_lock);
	return group != NULL;
}

QlogGroupFound
qlog_group_find(const QlogQueue *queue, QlogName name, uint64 *id)
{
	const QlogGroupChange *change = qlog_stage_find_group(queue->id, name);

	if (change != NULL)
	{
		*id = change->group;
		return change->kind == QLOG_GROUP_DROPPED ? QLOG_GROUP_MISSING :
			change->own ? QLOG_GROUP_OWN : QLOG_GROUP_THERE;
	}
	if (queue->own)
	{
		*id = QC_DEFAULT_GROUP;
		return name.len == 0 ? QLOG_GROUP_OWN : QLOG_GROUP_MISSING;
	}
	return read_group(queue->id, name, id) ? QLOG_GROUP_THERE : QLOG_GROUP_MISSING;
}

void
qlog_group_missing(QlogName name)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("consumer group \"%.*s\" does not exist", QLOG_NAME(name)),
			 errhint("Create it with queue_subscribe().")));
}

bool
qlog_group_may_pop(const QlogQueue *queue, QlogName name)
{
	const QlogGroupChange *change = qlog_stage_find_group(queue->id, name);

	if (change != NULL && change->kind == QLOG_GROUP_DROPPED)
		qlog_group_missing(name);
	return !queue->own && (change == NULL || !change->own);
}

uint64
qlog_group_take_id(const QlogQueue *queue)
{
	QcQueue    *found;
	uint64		id = qlog_stage_next_group(queue->id);

	if (queue->own)
		return id;
	qlog_lock_state();
	found = qc_queue_by_id(qlog_state, queue->id);
	id = found == NULL ? id : found->next_group++;
	qlog_unlock_state();
	return id;
}

void
qlog_group_check_room(const QlogQueue *queue, QlogName queue_name)
{
	QcQueue    *found;
	int64		n = qlog_stage_count_groups(queue->id);

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	found = qc_queue_by_id(qlog_state, queue->id);
	if (found != NULL)
		n += found->ngroups;
	LWLockRelease(&qlog_shared->state_lock);
	if (queue->own)
		n++;					/* its default group */
	if (n >= QC_GROUPS_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("queue \"%.*s\" has too many consumer groups", QLOG_NAME(queue_name)),
				 errdetail("A queue can have %d of them, its default one included.", QC_GROUPS_MAX),
				 errhint("Drop one with queue_unsubscribe().")));
}

void
qlog_group_make(const QlogQueue *queue, QlogName queue_name, QlogName name)
{
	QcGroupCreate create = {.queue = queue->id, .start = QC_START_OLDEST};
	uint64		id;

	if (!qlog_auto_create)
		qlog_group_missing(name);
	qlog_queue_hold(queue, queue_name);
	qlog_group_lock(queue->id, name);
	if (!read_group(queue->id, name, &id))
	{
		qlog_group_check_room(queue, queue_name);
		create.group = qlog_group_take_id(queue);
		create.name.bytes = (const uint8_t *) name.text;
		create.name.len = name.len;
		qlog_submit_catalog(QC_EFFECT_GROUP_CREATE, &create);
	}
	qlog_group_unlock(queue->id, name);
	qlog_queue_release(queue);
}

/* A partition whose messages must be asked where the group begins. */
typedef struct Asked
{
	uint64		id;
	uint64		low;
	uint64		high;
} Asked;

typedef struct Questions
{
	uint64		group;
	int64		time;
	uint32		n;
	Asked		asked[QC_POP_UNSCANNED_MAX];
} Questions;

static void
note_question(Questions *questions, uint64 id)
{
	const QcPartition *partition = qc_partition_by_id(qlog_state, id);

	questions->asked[questions->n++] = (Asked)
	{
		id, partition->start, partition->next
	};
}

/* Look at one partition; returns the cursors made of the one promised. */
static uint32
look_at_one(QcGroup *group, QcPartition *partition, Questions *questions)
{
	uint32		used;

	if (qc_group_cursor(qlog_state, group, partition, true, &used) == NULL)
		note_question(questions, partition->id);
	return used;
}

/* Look at the next ones; returns the cursors made of those promised. */
static uint32
look_at_next(QcGroup *group, Questions *questions)
{
	uint64		ids[QC_POP_UNSCANNED_MAX];
	uint32		n;
	uint32		used = qc_group_scan(qlog_state, group, ids, &n);

	for (uint32 i = 0; i < n; i++)
		note_question(questions, ids[i]);
	return used;
}

/* Look at one partition, or (NULL) at the next ones; false = state memory is full. */
static bool
look(QcGroup *group, QcPartition *partition, QcUrgency urgency, Questions *questions)
{
	uint32		promised = partition == NULL ? QC_POP_UNSCANNED_MAX : 1;
	uint32		used;

	if (!qc_mem_reserve(&qlog_state->mem, QC_CLASS_CURSOR, promised, urgency))
		return false;
	questions->group = group->id;
	questions->time = group->start_at;
	used = partition != NULL ? look_at_one(group, partition, questions) :
		look_at_next(group, questions);
	qc_mem_unreserve(&qlog_state->mem, QC_CLASS_CURSOR, promised - used);
	return true;
}

/* One step under the state lock; false = state memory is full. */
static bool
look_locked(const QlogQueue *queue, QlogName name, const QlogName *partition_name,
			Questions *questions)
{
	QcQueue    *found = qc_queue_by_id(qlog_state, queue->id);
	QcGroup    *group = found == NULL || found->state == QC_QUEUE_DEAD ? NULL :
		qc_group_by_name(qlog_state, found, name.text, name.len);
	QcPartition *partition = NULL;

	if (group == NULL || !qc_group_scanning(group))
		return true;
	if (partition_name != NULL)
	{
		partition = qc_partition_by_name(qlog_state, found, partition_name->text,
										 partition_name->len);
		if (partition == NULL || !qc_group_lacks(qlog_state, partition, group))
			return true;
	}
	return look(group, partition, QC_URGENCY_DELIVERS, questions);
}

/*
 * Log where the group begins in these partitions.  That is durable before anything is delivered there: an answer may survive a
 * power failure in the WAL alone, and means nothing to a group that does not know where it stands.
 */
static void
log_found(const QcSeek *seek, const QcSeekItem *items, uint32 n)
{
	size_t		size = qc_effect_size(QC_EFFECT_SEEK, seek, n);
	QcSmallPlan small;
	QcWriter	w;

	qc_plan_small(&small, palloc(QC_SMALL_BUFFER(size)), size);
	w = qc_plan_small_writer(&small);
	qc_effect_put(&w, QC_EFFECT_SEEK, seek, n);
	for (uint32 i = 0; i < n; i++)
		qc_effect_put_item(&w, QC_EFFECT_SEEK, &items[i]);
	qc_plan_small_done(&small, &w, 1);
	small.plan.needs.nsought = n;
	small.plan.pid = (uint32) MyProcPid;
	qlog_flush(qlog_submit(&small, NULL, NULL, NULL));
}

/* Read where the group begins in these partitions. */
static void
answer(uint64 queue, const Questions *questions)
{
	QcSeek		seek = {.mode = QC_SEEK_FOUND, .queue = queue, .group = questions->group};
	QcSeekItem	items[QC_POP_UNSCANNED_MAX];

	for (uint32 i = 0; i < questions->n; i++)
	{
		const Asked *asked = &questions->asked[i];

		CHECK_FOR_INTERRUPTS();
		items[i].partition = asked->id;
		items[i].position = qlog_position_at(asked->id, asked->low, asked->high, questions->time);
	}
	log_found(&seek, items, questions->n);
}

void
qlog_group_look(const QlogQueue *queue, QlogName name, const QlogName *partition)
{
	Questions  *questions = palloc(sizeof(Questions));
	bool		room;

	questions->n = 0;
	qlog_lock_state();
	room = look_locked(queue, name, partition, questions);
	qlog_unlock_state();
	if (!room)
	{
		QcError		err;

		(void) qc_error_set(&err, QC_FULL, "qlog.state_memory is full");
		qlog_report(ERROR, &err, "could not look at the partitions of a queue");
	}
	if (questions->n > 0)
		answer(queue->id, questions);
	pfree(questions);
}

bool
qlog_group_look_ahead(uint64 queue_id, uint64 group_id)
{
	Questions  *questions = palloc(sizeof(Questions));
	QcQueue    *queue;
	QcGroup    *group = NULL;
	bool		room = true;

	questions->n = 0;
	qlog_lock_state();
	queue = qc_queue_by_id(qlog_state, queue_id);
	if (queue != NULL && queue->state == QC_QUEUE_LIVE)
		group = qc_group_by_id(qlog_state, queue, group_id);
	if (group != NULL && qc_group_scanning(group))
		room = look(group, NULL, QC_URGENCY_ADDS, questions);
	qlog_unlock_state();
	if (questions->n > 0)
		answer(queue_id, questions);
	return room;
}
