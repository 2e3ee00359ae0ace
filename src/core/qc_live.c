/*
 * qc_live.c
 *		Is a record still needed?  (Rules in qc_live.h.)
 *
 * Records of one partition come one after the other by position, and so do its aborted ranges: both lists are walked once.
 */
#include "qc_live.h"

#include "qc_dedup.h"
#include "qc_effect.h"
#include "qc_lane.h"
#include "qc_logfile.h"
#include "qc_mutant.h"
#include "qc_purge.h"

/* The partition whose records are being judged. */
typedef struct Judge
{
	QcState    *st;
	int64_t		now;
	uint64_t	id;				/* 0 = none yet */
	QcPartition *partition;		/* NULL = the state does not have it */
	const QcQueue *queue;
	const QcAbortedRange *range;	/* the first that does not end below the record before */
	bool		stale;			/* a purge of the queue has not come by yet */
	uint64_t	start;
	uint32_t	steps;
} Judge;

static void
turn_to(Judge *j, uint64_t id)
{
	j->id = id;
	j->steps += 4;
	j->partition = qc_partition_by_id(j->st, id);
	if (j->partition == NULL)
		return;
	j->queue = QC_AT(j->st, QcQueue, j->partition->queue);
	j->range = QC_AT(j->st, QcAbortedRange, j->partition->aborted.head);
	j->stale = qc_partition_stale(j->st, j->partition);
	j->start = qc_partition_start(j->st, j->partition);
}

/* Does a consumer hold, or get back, a message in [first, end), all of it below the start? */
static bool
is_held(Judge *j, uint64_t first, uint64_t end)
{
	QcState    *st = j->st;

	for (const QcCursor *cursor = QC_AT(st, QcCursor, j->partition->cursors); cursor != NULL;
		 cursor = QC_AT(st, QcCursor, cursor->next))
	{
		const QcSlot *slot = QC_AT(st, QcSlot, cursor->slots.head);

		j->steps++;
		for (; slot != NULL && slot->position < end; slot = QC_AT(st, QcSlot, slot->of_cursor.next))
		{
			j->steps++;
			if (slot->position >= first && (slot->state == QC_SLOT_LEASED || !j->stale))
				return true;
		}
	}
	return false;
}

/* The first position at or above p that is in no aborted range. */
static uint64_t
skip_aborted(Judge *j, uint64_t p)
{
	const QcAbortedRange *range = j->range;

	while (range != NULL && range->first <= p)
	{
		if (p < range->first + range->count)
			p = range->first + range->count;
		range = QC_AT(j->st, QcAbortedRange, range->next);
		j->steps++;
	}
	return p;
}

/* Ranges that end below a record end below all that follow. */
static void
pass_ranges(Judge *j, uint64_t first)
{
	while (j->range != NULL && j->range->first + j->range->count <= first)
	{
		j->range = QC_AT(j->st, QcAbortedRange, j->range->next);
		j->steps++;
	}
}

/* May its dedup ids be within the window? */
static bool
may_dedup(const Judge *j, const QcIdxEntry *entry)
{
	int64_t		since = j->now - j->queue->options.value[QC_OPT_DEDUP_WINDOW];

	return since < j->now && j->queue->last_dedup > since && entry->created_at > since;
}

static QcLive
judge_ordinary(Judge *j, const QcIdxEntry *entry)
{
	uint64_t	p = entry->first;

	if (p < j->start)
	{
		uint64_t	end = entry->end < j->start ? entry->end : j->start;

		if (is_held(j, p, end))
			return QC_LIVE_HELD;
		p = end;
	}
	pass_ranges(j, p);
	if (p < entry->end && skip_aborted(j, p) < entry->end)
		return QC_LIVE_MESSAGE;
	return may_dedup(j, entry) ? QC_LIVE_ASK : QC_LIVE_NOT;
}

static QcLive
judge_lane(Judge *j, const QcIdxEntry *entry)
{
	for (uint64_t p = entry->first; p < entry->end; p++)
	{
		j->steps++;
		if (qc_lane_find(j->st, j->partition, p) != NULL)
			return j->partition->lane == QC_LANE_DEAD ? QC_LIVE_DEAD_LETTER : QC_LIVE_DELAYED;
	}
	return QC_LIVE_NOT;
}

static QcLive
judge(Judge *j, const QcIdxEntry *entry)
{
	j->steps++;
	if (entry->partition != j->id || j->id == 0)
		turn_to(j, entry->partition);
	if (QC_MUTATED(QC_MUTANT_NOTHING_GONE))
		return QC_LIVE_MESSAGE;
	if (j->partition == NULL)
		return entry->partition != 0 && entry->partition < j->st->next_partition_id ?
			QC_LIVE_NOT : QC_LIVE_UNKNOWN;
	if (j->queue->state == QC_QUEUE_DEAD)
		return QC_LIVE_NOT;
	if (j->queue->damaged)
		return QC_LIVE_DAMAGED;
	if (entry->end > j->partition->next)
		return QC_LIVE_UNKNOWN;
	return j->partition->lane == QC_LANE_NONE ? judge_ordinary(j, entry) : judge_lane(j, entry);
}

uint32_t
qc_live_judge(QcState *st, const uint8_t *entries, uint32_t n, int64_t now, uint8_t *answers,
			  uint32_t budget)
{
	Judge		j = {.st = st, .now = now};
	uint32_t	done = 0;

	while (done < n && (done == 0 || j.steps < budget))
	{
		QcIdxEntry	entry;

		qc_idx_entry_decode(entries + (size_t) done * QC_IDX_ENTRY_SIZE, &entry);
		answers[done++] = (uint8_t) judge(&j, &entry);
	}
	return done;
}

bool
qc_live_position(QcState *st, uint64_t partition, uint64_t position)
{
	Judge		j = {.st = st};
	QcIdxEntry	entry = {.partition = partition, .first = position, .end = position + 1, .count = 1};

	switch (judge(&j, &entry))
	{
		case QC_LIVE_NOT:
		case QC_LIVE_ASK:
			return false;
		default:
			return true;
	}
}

bool
qc_live_dedup(QcState *st, uint64_t partition, const uint8_t *hashes, size_t stride, uint32_t n,
			  int64_t now)
{
	const QcPartition *p = qc_partition_by_id(st, partition);
	int64_t		window;

	if (p == NULL)
		return false;
	window = QC_AT(st, QcQueue, p->queue)->options.value[QC_OPT_DEDUP_WINDOW];
	for (uint32_t i = 0; i < n; i++)
		if (qc_dedup_find(st, partition, hashes + i * stride, now, window) != NULL)
			return true;
	return false;
}
