/*
 * qc_volume.c
 *		Bytes of messages per group and queue; pauses and max_bytes.
 */
#include "qc_volume.h"

#include <assert.h>

#include "qc_index.h"

/* The share n / of of bytes, rounded down; all of them when n = of. */
static uint64_t
share(uint64_t bytes, uint64_t n, uint64_t of)
{
	uint64_t	part;

	if (n >= of)
		return bytes;
	part = (uint64_t) ((double) bytes / (double) of * (double) n);
	return part < bytes ? part : bytes;
}

/* Bytes of n messages where `volume` is known of others: a part of these, or these and average ones besides. */
static uint64_t
adjusted(const QcQueue *queue, QcVolume volume, uint64_t n)
{
	if (n <= volume.count)
		return n == 0 ? 0 : share(volume.bytes, n, volume.count);
	if (queue->pushed_count == 0)
		return volume.bytes;
	return volume.bytes + queue->pushed_bytes / queue->pushed_count * (n - volume.count);
}

/* Messages that are visible and not done in the group. */
static uint64_t
left_in(const QcGroup *group)
{
	return group->nready + group->nleased + group->nwaiting + group->unscanned;
}

/* Dead and delayed messages. */
static uint64_t
in_lanes(const QcQueue *queue)
{
	return queue->dead + queue->delayed;
}

uint64_t
qc_volume_queue(const QcState *st, const QcQueue *queue)
{
	uint64_t	most = 0;

	for (const QcGroup *group = QC_AT(st, QcGroup, queue->groups); group != NULL;
		 group = QC_AT(st, QcGroup, group->next))
	{
		uint64_t	bytes = adjusted(queue, group->volume, left_in(group));

		if (group->state == QC_GROUP_LIVE && bytes > most)
			most = bytes;
	}
	return most + adjusted(queue, queue->lanes, in_lanes(queue)) + queue->open_bytes +
		queue->promised_bytes;
}

uint64_t
qc_volume_kept(const QcQueue *queue)
{
	return adjusted(queue, queue->kept, queue->visible);
}

static void
set(QcVolume *volume, const QcQueue *queue, uint64_t n)
{
	volume->bytes = adjusted(queue, *volume, n);
	volume->count = n;
}

/* Before more is added: what has gone by now must not be mixed with it. */
static void
level(QcState *st, QcQueue *queue)
{
	for (QcGroup *group = QC_AT(st, QcGroup, queue->groups); group != NULL;
		 group = QC_AT(st, QcGroup, group->next))
	{
		if (group->volume.count != left_in(group))
		{
			set(&group->volume, queue, left_in(group));
			qc_dirty_group(st, group);
		}
	}
	if (queue->kept.count != queue->visible)
	{
		set(&queue->kept, queue, queue->visible);
		qc_dirty_queue(st, queue);
	}
	if (queue->lanes.count != in_lanes(queue))
	{
		set(&queue->lanes, queue, in_lanes(queue));
		qc_dirty_queue(st, queue);
	}
}

/* Messages that everybody may see. */
static void
count(QcState *st, const QcPartition *partition, uint64_t messages, uint64_t bytes)
{
	QcQueue    *queue = QC_AT(st, QcQueue, partition->queue);

	if (partition->lane != QC_LANE_NONE)
	{
		queue->lanes.count += messages;
		queue->lanes.bytes += bytes;
		qc_dirty_queue(st, queue);
		return;
	}
	queue->kept.count += messages;
	queue->kept.bytes += bytes;
	queue->pushed_count += messages;
	queue->pushed_bytes += bytes;
	for (QcGroup *group = QC_AT(st, QcGroup, queue->groups); group != NULL;
		 group = QC_AT(st, QcGroup, group->next))
	{
		group->volume.count += messages;
		group->volume.bytes += bytes;
		qc_dirty_group(st, group);
	}
	qc_dirty_queue(st, queue);
}

void
qc_volume_add(QcState *st, QcPartition *partition, uint64_t seq, uint64_t bytes)
{
	QcPending  *pending = QC_AT(st, QcPending, partition->pending.tail);

	partition->bytes += bytes;
	if (pending == NULL || pending->seq != seq)
	{
		/* Settled already. */
		count(st, partition, 0, bytes);
		return;
	}
	pending->bytes += bytes;
	QC_AT(st, QcQueue, partition->queue)->open_bytes += bytes;
	qc_dirty_partition(st, partition);
}

void
qc_volume_settled(QcState *st, QcPartition *partition, const QcPending *pending)
{
	QcQueue    *queue = QC_AT(st, QcQueue, partition->queue);

	assert(queue->open_bytes >= pending->bytes);
	queue->open_bytes -= pending->bytes;
	if (pending->settled == 1)
		count(st, partition, pending->count, pending->bytes);
}

void
qc_volume_done(QcState *st, const QcCursor *cursor, const QcSlot *slot)
{
	QcGroup    *group = QC_AT(st, QcGroup, cursor->group);
	QcVolume   *volume = &group->volume;
	uint64_t	bytes;

	if (volume->count == 0)
		return;
	bytes = qc_index_message_size(st, QC_AT(st, QcPartition, cursor->partition), slot->position,
								  slot->hint);
	if (bytes == 0)
		bytes = volume->bytes / volume->count;
	volume->count--;
	volume->bytes = volume->count == 0 || bytes > volume->bytes ? 0 : volume->bytes - bytes;
	qc_dirty_group(st, group);
}

/* Bytes of an append, all records. */
static uint64_t
append_bytes(const QcPlan *plan, const QcPlanAppend *append)
{
	uint64_t	bytes = 0;

	for (uint32_t r = 0; r < append->nrecords; r++)
		bytes += plan->records[append->record + r].size;
	return bytes;
}

/* The partition's queue; NULL for one that this very entry makes. */
static QcQueue *
queue_of(QcState *st, const QcPlanAppend *append, uint8_t *lane)
{
	QcPartition *partition = qc_partition_by_id(st, append->partition);

	*lane = partition == NULL ? QC_LANE_NONE : partition->lane;
	return partition == NULL ? NULL : QC_AT(st, QcQueue, partition->queue);
}

/*
 * What counts for the queue's messages in this entry: its flags and max_bytes.  Where the entry itself changes them, each
 * message was let in under the old ones or the new ones when it was staged: the more generous count.  Effects on the
 * catalog stand first.
 */
static void
limits_of(const QcPlan *plan, const QcQueue *queue, uint8_t *flags, uint64_t *max_bytes)
{
	QcEntry		entry;
	QcEffect	effect;
	QcOptions	options;

	*flags = queue->flags;
	*max_bytes = (uint64_t) queue->options.value[QC_OPT_MAX_BYTES];
	if (plan->needs.nalters == 0 ||
		qc_entry_decode(plan->payload, plan->payload_len, &entry, NULL) != QC_OK)
		return;
	while (qc_effect_get(&entry.effects, &effect, NULL) == QC_OK &&
		   effect.kind != QC_EFFECT_APPEND)
	{
		const QcQueueAlter *alter = &effect.u.queue_alter;

		if (effect.kind != QC_EFFECT_QUEUE_ALTER || alter->queue != queue->id ||
			qc_options_get(alter->options.bytes, alter->options.len, &options, NULL) != QC_OK)
			continue;
		*flags &= alter->flags;
		if ((uint64_t) options.value[QC_OPT_MAX_BYTES] > *max_bytes)
			*max_bytes = (uint64_t) options.value[QC_OPT_MAX_BYTES];
	}
}

/* May so many bytes enter the queue from outside? */
static QcStatus
admit(QcState *st, const QcPlan *plan, const QcQueue *queue, uint64_t bytes, QcError *err)
{
	int			name_len = queue->name_len;
	const char *name = qc_name_at(st, queue->name);
	uint8_t		flags;
	uint64_t	max_bytes;

	limits_of(plan, queue, &flags, &max_bytes);
	if (flags & QC_QUEUE_NO_PUSH)
		return qc_error_set(err, QC_PAUSED, "queue \"%.*s\" is paused", name_len, name);
	if (qc_volume_queue(st, queue) + bytes > max_bytes)
		return qc_error_set(err, QC_OVERFLOW,
							"queue \"%.*s\" would hold more than its max_bytes, %llu",
							name_len, name, (unsigned long long) max_bytes);
	return QC_OK;
}

/* Take back the promises for the plan's first n appends. */
static void
unpromise(QcState *st, const QcPlan *plan, uint32_t n)
{
	for (uint32_t a = 0; a < n; a++)
	{
		uint64_t	bytes = append_bytes(plan, &plan->appends[a]);
		uint8_t		lane;
		QcQueue    *queue = queue_of(st, &plan->appends[a], &lane);

		if (queue == NULL)
			continue;
		assert(queue->promised_bytes >= bytes);
		queue->promised_bytes -= bytes;
	}
}

QcStatus
qc_volume_promise(QcState *st, const QcPlan *plan, QcError *err)
{
	for (uint32_t a = 0; a < plan->nappends; a++)
	{
		const QcPlanAppend *append = &plan->appends[a];
		uint64_t	bytes = append_bytes(plan, append);
		uint8_t		lane;
		QcQueue    *queue = queue_of(st, append, &lane);
		QcStatus	status = QC_OK;

		if (queue == NULL)
			continue;
		level(st, queue);
		if (!append->moved && lane != QC_LANE_DEAD)
			status = admit(st, plan, queue, bytes, err);
		if (status != QC_OK)
		{
			unpromise(st, plan, a);
			return status;
		}
		queue->promised_bytes += bytes;
	}
	return QC_OK;
}

void
qc_volume_unpromise(QcState *st, const QcPlan *plan)
{
	unpromise(st, plan, plan->nappends);
}
