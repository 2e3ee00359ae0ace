/*
 * qc_retain_pass.c
 *		Retention of a whole server: the walk over all partitions.
 */
#include "qc_retain_pass.h"

#include <assert.h>

#include "qc_dedup.h"
#include "qc_purge.h"
#include "qc_volume.h"

/* Before which times finished messages of a queue may go, and any. */
typedef struct Ages
{
	int64_t		done_before;	/* INT64_MAX: at once */
	int64_t		any_before;		/* INT64_MIN: never */
} Ages;

static Ages
ages_of(const QcQueue *queue, int64_t now)
{
	int64_t		done = queue->options.value[QC_OPT_CONSUMED_RETENTION];
	int64_t		any = queue->options.value[QC_OPT_RETENTION];
	Ages		ages = {.done_before = done == 0 ? INT64_MAX : INT64_MIN, .any_before = INT64_MIN};

	if (done > 0 && done < now)
		ages.done_before = now - done;
	if (any < now)
		ages.any_before = now - any;
	if (queue->options.value[QC_OPT_RETENTION_BYTES] != QC_FOREVER &&
		queue->bytes_before > ages.any_before)
		ages.any_before = queue->bytes_before;
	return ages;
}

/*
 * Up to where messages are older than edge->before; UINT64_MAX = all of them, or, when they must be searched, as many as can
 * be.	floor: as in the partition.
 */
static uint64_t
bound_of(const QcPartition *partition, QcRetainEdge *edge, int64_t floor, int64_t now)
{
	edge->search = false;
	if (edge->before == INT64_MIN)
		return 0;
	if (edge->before == INT64_MAX || partition->last_push < edge->before)
		return UINT64_MAX;
	if (floor != 0 && floor + (now - edge->before) / QC_RETAIN_SLACK >= edge->before)
		return 0;
	edge->search = true;
	return UINT64_MAX;
}

/* Is the partition empty, and nothing refers to it? */
static bool
is_empty(const QcState *st, const QcPartition *partition)
{
	const QcQueue *queue = QC_AT(st, QcQueue, partition->queue);

	if (QC_REF(st, partition) == queue->default_partition || partition->start != partition->next ||
		partition->pending.head != 0 || partition->aimed > 0 || queue->pins > 0)
		return false;
	for (const QcCursor *cursor = QC_AT(st, QcCursor, partition->cursors); cursor != NULL;
		 cursor = QC_AT(st, QcCursor, cursor->next))
	{
		if (cursor->slots.head != 0)
			return false;
	}
	return true;
}

/* Has nobody pushed to it for so long that it may go? */
static bool
is_idle(const QcQueue *queue, const QcPartition *partition, int64_t now)
{
	int64_t		idle = queue->options.value[QC_OPT_PARTITION_IDLE];
	int64_t		since = partition->last_push > partition->done_floor ? partition->last_push :
		partition->done_floor;

	return idle < now && since < now - idle &&
		(queue->last_dedup == 0 || since < qc_dedup_since(queue, now));
}

/* Note an empty partition that is to go as a whole. */
static void
look_at_empty(QcState *st, QcRetainStep *step, QcPartition *partition)
{
	const QcQueue *queue = QC_AT(st, QcQueue, partition->queue);
	const QcOpen *oldest = QC_AT(st, QcOpen, st->opens.head);

	/* With a longer time it makes no difference when the next walk is. */
	if (QC_REF(st, partition) != queue->default_partition &&
		queue->options.value[QC_OPT_PARTITION_IDLE] <= QC_HOUR)
		step->aged = true;

	/* Made, and nothing was ever pushed: its time begins now. */
	if (partition->last_push == 0 && partition->done_floor == 0)
		partition->done_floor = step->now;
	if (!is_idle(queue, partition, step->now) || !is_empty(st, partition))
		return;
	if (partition->idle_seq == 0)
		partition->idle_seq = st->seq;
	else if (oldest == NULL || oldest->seq > partition->idle_seq)
	{
		step->notes[step->n].partition = partition->id;
		step->notes[step->n++].drop = true;
	}
}

/* Note the partition when something of it may go. */
static void
look_at(QcState *st, QcRetainStep *step, QcPartition *partition, const Ages *ages)
{
	QcRetainNote *note = &step->notes[step->n];
	QcRetainVerdict *verdict = &step->verdicts[0];
	QcRetainBounds bounds;

	qc_partition_touch(st, partition);
	if (partition->start >= partition->stable)
	{
		look_at_empty(st, step, partition);
		return;
	}
	note->drop = false;
	note->done.before = ages->done_before;
	note->any.before = ages->any_before;
	note->done.found = note->any.found = false;
	bounds.done_to = bound_of(partition, &note->done, partition->done_floor, step->now);
	bounds.any_to = bound_of(partition, &note->any, partition->any_floor, step->now);
	if ((bounds.done_to == 0 && bounds.any_to == 0) ||
		!qc_retain_judge(st, partition, &bounds, verdict))
		return;
	note->partition = partition->id;
	note->low = partition->start;
	note->high = partition->stable;
	step->nranges += verdict->nranges;
	step->n++;
}

void
qc_retain_begin(QcState *st)
{
	QcQueue    *queue;

	st->retain_queue = st->queues.head;
	queue = QC_AT(st, QcQueue, st->retain_queue);
	st->retain_partition = queue == NULL ? 0 : queue->partitions.head;
}

void
qc_retain_next_queue(QcState *st)
{
	QcQueue    *queue = QC_AT(st, QcQueue, st->retain_queue);

	if (queue == NULL)
		return;
	st->retain_queue = queue->all.next;
	queue = QC_AT(st, QcQueue, st->retain_queue);
	st->retain_partition = queue == NULL ? 0 : queue->partitions.head;
}

/* Is the queue one whose messages may go now? */
static bool
is_open(const QcQueue *queue)
{
	return queue->state == QC_QUEUE_LIVE && !queue->damaged;
}

/* Note a queue above its retention_bytes when the walk comes to it. */
static void
note_full(const QcState *st, QcRetainStep *step, const QcQueue *queue)
{
	int64_t		limit = queue->options.value[QC_OPT_RETENTION_BYTES];

	if (limit != QC_FOREVER && st->retain_partition == queue->partitions.head &&
		step->nfull < QC_RETAIN_FULL && queue->last_push != queue->bytes_counted &&
		qc_volume_kept(queue) > (uint64_t) limit)
		step->full[step->nfull++] = queue->id;
}

void
qc_retain_bytes(QcState *st, QcQueue *queue, uint64_t kept, uint64_t removed, int64_t before)
{
	queue->kept = (QcVolume)
	{
		removed < queue->visible ? queue->visible - removed : 0, kept
	};
	queue->bytes_counted = queue->last_push;
	if (before > queue->bytes_before)
		queue->bytes_before = before;
	qc_dirty_queue(st, queue);
}

/* Go on in one queue. */
static void
look_in(QcState *st, QcRetainStep *step, QcQueue *queue)
{
	Ages		ages = ages_of(queue, step->now);

	note_full(st, step, queue);
	if (ages.done_before != INT64_MAX || ages.any_before != INT64_MIN)
		step->aged = true;
	while (st->retain_partition != 0 && step->looked < QC_RETAIN_LOOK && step->n < QC_RETAIN_STEP)
	{
		QcPartition *partition = QC_AT(st, QcPartition, st->retain_partition);

		step->looked++;
		if (partition->lane == QC_LANE_NONE)
			look_at(st, step, partition, &ages);
		st->retain_partition = partition->of_queue.next;
	}
}

bool
qc_retain_look(QcState *st, QcRetainStep *step)
{
	step->looked = step->n = step->nranges = step->nfull = 0;
	step->aged = false;
	while (st->retain_queue != 0 && step->looked < QC_RETAIN_LOOK && step->n < QC_RETAIN_STEP)
	{
		QcQueue    *queue = QC_AT(st, QcQueue, st->retain_queue);

		step->looked++;
		if (is_open(queue))
			look_in(st, step, queue);
		else
			st->retain_partition = 0;
		if (st->retain_partition == 0)
			qc_retain_next_queue(st);
	}
	return st->retain_queue != 0;
}

/* The bound of an edge now that it was looked for, as far as it needed to be. */
static uint64_t
settled_bound(const QcPartition *partition, QcRetainEdge *edge, int64_t floor, int64_t now)
{
	uint64_t	bound = bound_of(partition, edge, floor, now);

	if (!edge->search)
		return bound;
	return edge->found ? edge->position : 0;
}

/* Judge what was noted; false = nothing goes. */
static bool
judge_again(QcState *st, QcRetainStep *step, uint32_t i)
{
	QcRetainNote *note = &step->notes[i];
	QcRetainVerdict *verdict = &step->verdicts[i];
	QcPartition *partition = qc_partition_by_id(st, note->partition);
	QcRetainBounds bounds;
	bool		goes;

	if (partition == NULL || !is_open(QC_AT(st, QcQueue, partition->queue)))
		return false;
	qc_partition_touch(st, partition);
	if (note->drop)
		return is_idle(QC_AT(st, QcQueue, partition->queue), partition, step->now) &&
			is_empty(st, partition);
	bounds.done_to = settled_bound(partition, &note->done, partition->done_floor, step->now);
	bounds.any_to = settled_bound(partition, &note->any, partition->any_floor, step->now);
	goes = qc_retain_judge(st, partition, &bounds, verdict);

	/* What is left below the edges is in somebody's hands. */
	if (note->done.found && !verdict->more)
		partition->done_floor = note->done.at;
	if (note->any.found && !verdict->more)
		partition->any_floor = note->any.at;
	return goes;
}

/* The queue that the n-th note belongs to; 0 when nothing of it goes. */
static uint64_t
queue_of(QcState *st, const QcRetainStep *step, uint32_t n)
{
	QcPartition *partition = step->notes[n].partition == 0 ? NULL :
		qc_partition_by_id(st, step->notes[n].partition);

	return partition == NULL ? 0 : QC_AT(st, QcQueue, partition->queue)->id;
}

/* Put the starts of notes [first, end), which belong to one queue. */
static uint32_t
put_starts(QcState *st, QcRetainStep *step, uint32_t first, uint32_t end, QcWriter *w)
{
	QcWatermark effect = {.queue = queue_of(st, step, first)};
	uint32_t	n = 0;

	for (uint32_t i = first; i < end; i++)
		n += !step->notes[i].drop &&
			step->verdicts[i].start > qc_partition_by_id(st, step->notes[i].partition)->start;
	if (n == 0)
		return 0;
	qc_effect_put(w, QC_EFFECT_WATERMARK, &effect, n);
	for (uint32_t i = first; i < end; i++)
	{
		const QcRetainVerdict *verdict = &step->verdicts[i];
		QcWatermarkItem item = {step->notes[i].partition, verdict->start, verdict->unread, 0};

		if (!step->notes[i].drop &&
			verdict->start > qc_partition_by_id(st, item.partition)->start)
			qc_effect_put_item(w, QC_EFFECT_WATERMARK, &item);
	}
	return 1;
}

/* ... and their ranges, as many as were promised. */
static uint32_t
put_ranges(QcState *st, QcRetainStep *step, uint32_t first, uint32_t end, QcWriter *w)
{
	QcGone		effect = {.queue = queue_of(st, step, first)};
	uint32_t	n = 0;

	for (uint32_t i = first; i < end; i++)
	{
		QcRetainVerdict *verdict = &step->verdicts[i];

		if (step->notes[i].drop)
			verdict->nranges = 0;
		if (verdict->nranges > step->nranges)
			verdict->nranges = step->nranges;
		step->nranges -= verdict->nranges;
		n += verdict->nranges;
	}
	if (n == 0)
		return 0;
	qc_effect_put(w, QC_EFFECT_GONE, &effect, n);
	for (uint32_t i = first; i < end; i++)
	{
		const QcRetainVerdict *verdict = &step->verdicts[i];

		for (uint32_t r = 0; r < verdict->nranges; r++)
		{
			const QcRetainRange *range = &verdict->ranges[r];
			QcGoneItem	item = {step->notes[i].partition, range->first, range->count,
				range->unread, 0};

			qc_effect_put_item(w, QC_EFFECT_GONE, &item);
		}
	}
	return 1;
}

/* ... and the partitions that go as a whole. */
static uint32_t
put_drops(QcState *st, QcRetainStep *step, uint32_t first, uint32_t end, QcWriter *w)
{
	QcPartitionDrop effect = {.queue = queue_of(st, step, first)};
	uint32_t	n = 0;

	for (uint32_t i = first; i < end; i++)
		n += step->notes[i].drop;
	if (n == 0)
		return 0;
	step->ndropped += n;
	qc_effect_put(w, QC_EFFECT_PARTITION_DROP, &effect, n);
	for (uint32_t i = first; i < end; i++)
	{
		QcPartitionDropItem item = {step->notes[i].partition, 0};

		if (step->notes[i].drop)
			qc_effect_put_item(w, QC_EFFECT_PARTITION_DROP, &item);
	}
	return 1;
}

/* What of notes [first, end) nobody has read. */
static void
sum_up(QcState *st, QcRetainStep *step, uint32_t first, uint32_t end)
{
	uint64_t	unread = 0;

	for (uint32_t i = first; i < end; i++)
	{
		const QcRetainVerdict *verdict = &step->verdicts[i];

		if (step->notes[i].drop)
			continue;
		unread += verdict->unread;
		for (uint32_t r = 0; r < verdict->nranges; r++)
			unread += verdict->ranges[r].unread;
	}
	if (unread == 0)
		return;
	step->reports[step->nreports].queue = queue_of(st, step, first);
	step->reports[step->nreports++].unread = unread;
}

uint32_t
qc_retain_put(QcState *st, QcRetainStep *step, QcWriter *w)
{
	uint32_t	kept = 0;
	uint32_t	effects = 0;
	uint32_t	first = 0;

	/* What nothing goes of leaves the list. */
	for (uint32_t i = 0; i < step->n; i++)
	{
		if (!judge_again(st, step, i))
			continue;
		if (kept != i)
		{
			step->notes[kept] = step->notes[i];
			step->verdicts[kept] = step->verdicts[i];
		}
		kept++;
	}
	step->n = kept;
	step->nreports = step->ndropped = 0;
	for (uint32_t i = 1; i <= step->n; i++)
	{
		if (i < step->n && queue_of(st, step, i) == queue_of(st, step, first))
			continue;
		effects += put_starts(st, step, first, i, w);
		effects += put_ranges(st, step, first, i, w);
		effects += put_drops(st, step, first, i, w);
		sum_up(st, step, first, i);
		first = i;
	}
	return effects;
}
