/*
 * qlog_partition.c
 *		Partitions and lanes: looked up, and made when they are missing.
 *
 * Whoever meets a new one for the first time passes through its lock, and so comes after the WAL record of its creation
 * (qlog_lookup.c).
 */
#include "qlog_partition.h"

#include "miscadmin.h"

#include "qlog_commit.h"
#include "qlog_namelock.h"
#include "qlog_names.h"
#include "qlog_pushing.h"

#include "../core/qc_delay.h"

#define LANE_NAME	"\001dead"	/* no partition can have it: what a dead lane's lock is hashed
								 * from, with its group */
#define DELAY_NAME	"\001delay" /* likewise, of the delay lane */

static uint64
read_partition(uint64 queue_id, QlogName name, uint8 lane)
{
	QcQueue    *queue;
	QcPartition *partition = NULL;
	uint64		id;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	queue = qc_queue_by_id(qlog_state, queue_id);
	if (queue != NULL)
		partition = lane == QC_LANE_DELAY ? qc_delay_lane(qlog_state, queue) :
			qc_partition_by_name(qlog_state, queue, name.text, name.len);
	id = partition == NULL ? 0 : partition->id;
	LWLockRelease(&qlog_shared->state_lock);
	return id;
}

static uint64
take_partition_id(void)
{
	uint64		id;

	qlog_lock_state();
	id = qlog_state->next_partition_id++;
	qlog_unlock_state();
	return id;
}

/* A partition of a committed queue: look, and make it when it is not there. */
static uint64
find_or_make_partition(const QlogQueue *queue, QlogName queue_name, QlogName name, uint8 lane)
{
	LOCKTAG		tag = qlog_tag_partition(MyDatabaseId, queue->id, name);
	uint64		id;

	(void) LockAcquire(&tag, ShareLock, false, false);
	id = read_partition(queue->id, name, lane);
	LockRelease(&tag, ShareLock, false);
	if (id != 0)
		return id;
	qlog_queue_hold(queue, queue_name);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	id = read_partition(queue->id, name, lane);
	if (id == 0)
	{
		QcPartitionCreate create = {.queue = queue->id, .lane = lane};

		id = create.partition = take_partition_id();
		create.name.bytes = (const uint8_t *) name.text;
		create.name.len = lane == QC_LANE_NONE ? name.len : 0;
		qlog_submit_catalog(QC_EFFECT_PARTITION_CREATE, &create);
	}
	LockRelease(&tag, ExclusiveLock, false);
	qlog_queue_release(queue);
	return id;
}

/* A partition of a queue that this transaction creates: made with it. */
static uint64
own_partition(const QlogQueue *queue, QlogName name, uint8 lane)
{
	QcPartitionCreate create = {.queue = queue->id, .lane = lane};
	uint64		id = qlog_stage_find_partition(queue->id, name);

	if (id != 0)
		return id;
	create.partition = take_partition_id();
	create.name.bytes = (const uint8_t *) name.text;
	create.name.len = lane == QC_LANE_NONE ? name.len : 0;
	qlog_stage_effect(queue->id, QC_EFFECT_PARTITION_CREATE, &create);
	qlog_stage_change(QLOG_CHANGE_PARTITION, queue, create.partition, name);
	return create.partition;
}

/* Id of a partition that is pushed to, or of the delay lane. */
static uint64
partition_id(const QlogQueue *queue, QlogName queue_name, QlogName name, uint8 lane)
{
	QlogNamed  *named;

	if (queue->own)
		return own_partition(queue, name, lane);
	qlog_pushing_add(queue->id, name);
	named = qlog_names_find(queue->id, name);
	if (named == NULL)
	{
		uint64		id = find_or_make_partition(queue, queue_name, name, lane);

		named = qlog_names_enter(queue->id, name);
		named->partition = id;
	}
	return named->partition;
}

void
qlog_partition_for_push(const QlogQueue *queue, QlogName queue_name, QlogName name,
						QlogTarget *target)
{
	target->queue = queue->id;
	target->log = queue->log;
	target->level = qlog_queue_level(queue);
	target->dedup_us = queue->options.value[QC_OPT_DEDUP_WINDOW];
	target->partition = name.len == 0 ? queue->default_partition :
		partition_id(queue, queue_name, name, QC_LANE_NONE);
}

uint64
qlog_delay_lane(const QlogQueue *queue, QlogName queue_name)
{
	QlogName	name = {DELAY_NAME, sizeof(DELAY_NAME) - 1};

	return partition_id(queue, queue_name, name, QC_LANE_DELAY);
}

/* A group, as whoever makes its dead lane sees it. */
typedef struct LaneGroup
{
	bool		live;			/* and so is the queue, under its name */
	uint64		lane;			/* 0 = it has none */
	uint16		name_len;
	char		name[QLOG_NAME_MAX];
} LaneGroup;

static void
read_lane_group(uint64 queue_id, QlogName name, uint64 group_id, LaneGroup *found)
{
	QcQueue    *queue;
	QcGroup    *group = NULL;

	found->live = false;
	found->lane = 0;
	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	queue = qc_queue_by_id(qlog_state, queue_id);
	if (queue != NULL && queue->state == QC_QUEUE_LIVE && queue->name_len == name.len &&
		memcmp(qc_name_at(qlog_state, queue->name), name.text, name.len) == 0)
		group = qc_group_by_id(qlog_state, queue, group_id);
	if (group != NULL && group->state == QC_GROUP_LIVE)
	{
		found->live = true;
		found->lane = group->dead_partition;
		found->name_len = group->name_len;
		memcpy(found->name, qc_name_at(qlog_state, group->name), group->name_len);
	}
	LWLockRelease(&qlog_shared->state_lock);
}

/*
 * Under the lane's lock: find the lane, or make it.  Making it locks the group as well: a seek in between would give the
 * group another id, and leave the lane to none.
 */
static bool
find_or_make_lane(Oid database, uint64 queue, QlogName name, uint64 group_id, bool wait, uint64 *lane)
{
	QcPartitionCreate create = {.queue = queue, .lane = QC_LANE_DEAD, .group = group_id};
	LaneGroup	group;
	LOCKTAG		tag;

	read_lane_group(queue, name, group_id, &group);
	*lane = group.lane;
	if (!group.live || group.lane != 0)
		return group.live;
	tag = qlog_tag_group(database, queue, (QlogName) {group.name, group.name_len});
	if (LockAcquire(&tag, ExclusiveLock, false, !wait) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	read_lane_group(queue, name, group_id, &group);
	if (group.live)
	{
		*lane = create.partition = take_partition_id();
		qlog_submit_catalog(QC_EFFECT_PARTITION_CREATE, &create);
	}
	LockRelease(&tag, ExclusiveLock, false);
	return group.live;
}

bool
qlog_dead_lane(Oid database, uint64 queue, QlogName name, uint64 group, bool wait, uint64 *lane)
{
	char		lane_name[sizeof(LANE_NAME) - 1 + sizeof(uint64)];
	LOCKTAG		tags[3] = {qlog_tag_database(database), qlog_tag_queue(database, name)};
	static const LOCKMODE modes[3] = {RowExclusiveLock, RowShareLock, ExclusiveLock};
	int			n = 0;
	bool		found = false;

	memcpy(lane_name, LANE_NAME, sizeof(LANE_NAME) - 1);
	memcpy(lane_name + sizeof(LANE_NAME) - 1, &group, sizeof(uint64));
	tags[2] = qlog_tag_partition(database, queue, (QlogName) {lane_name, sizeof(lane_name)});

	/*
	 * A lane that is there may still have no WAL record: whoever makes it holds its lock until
	 * then.
	 */
	while (n < 3 && LockAcquire(&tags[n], modes[n], false, !wait) != LOCKACQUIRE_NOT_AVAIL)
		n++;
	if (n == 3)
		found = find_or_make_lane(database, queue, name, group, wait, lane);
	while (n-- > 0)
		LockRelease(&tags[n], modes[n], false);
	return found;
}
