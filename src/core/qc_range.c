/*
 * qc_range.c
 *		Positions of a partition without messages.
 */
#include "qc_range.h"

#include <assert.h>

#include "qc_dedup.h"
#include "qc_log.h"

static uint64_t
end_of(const QcAbortedRange *range)
{
	return range->first + range->count;
}

/* Does everything in the list lie below p?	Mostly so: cursors stand at the end of their partition. */
static bool
all_below(const QcState *st, const QcPartition *partition, uint64_t p)
{
	const QcAbortedRange *last = QC_AT(st, QcAbortedRange, partition->aborted.tail);

	return last == NULL || end_of(last) <= p;
}

uint64_t
qc_skip_aborted(const QcState *st, const QcPartition *partition, uint64_t p)
{
	const QcAbortedRange *range = QC_AT(st, QcAbortedRange, partition->aborted.head);

	if (all_below(st, partition, p))
		return p;
	for (; range != NULL && range->first <= p; range = QC_AT(st, QcAbortedRange, range->next))
	{
		if (p < end_of(range))
			p = end_of(range);
	}
	return p;
}

uint64_t
qc_range_next(const QcState *st, const QcPartition *partition, uint64_t p)
{
	const QcAbortedRange *range = QC_AT(st, QcAbortedRange, partition->aborted.head);

	if (all_below(st, partition, p))
		return partition->stable;
	while (range != NULL && range->first < p)
		range = QC_AT(st, QcAbortedRange, range->next);
	if (range != NULL && range->first < partition->stable)
		return range->first;
	return partition->stable;
}

uint64_t
qc_range_covered(const QcState *st, const QcPartition *partition, uint64_t from, uint64_t end)
{
	const QcAbortedRange *range = QC_AT(st, QcAbortedRange, partition->aborted.head);
	uint64_t	covered = 0;

	if (from >= end || all_below(st, partition, from))
		return 0;
	for (; range != NULL && range->first < end; range = QC_AT(st, QcAbortedRange, range->next))
	{
		uint64_t	low = range->first > from ? range->first : from;
		uint64_t	high = end_of(range) < end ? end_of(range) : end;

		covered += low < high ? high - low : 0;
	}
	return covered;
}

bool
qc_range_undone(const QcState *st, const QcPartition *partition, uint64_t p)
{
	const QcAbortedRange *range = QC_AT(st, QcAbortedRange, partition->aborted.head);

	while (range != NULL && end_of(range) <= p)
		range = QC_AT(st, QcAbortedRange, range->next);
	return range != NULL && range->first <= p && !range->gone;
}

/* Need nobody know any more that the range was undone, if it was? */
static bool
is_plain(const QcState *st, const QcPartition *partition, const QcAbortedRange *range)
{
	const QcQueue *queue = QC_AT(st, QcQueue, partition->queue);
	int64_t		since = qc_dedup_since(queue, st->last_created_at);

	return range->gone || queue->last_dedup == 0 || queue->last_dedup < since || range->at < since;
}

/* Can the second range, which follows the first without a hole, become a part of it? */
static bool
mergeable(const QcState *st, const QcPartition *partition, const QcAbortedRange *first,
		  const QcAbortedRange *second)
{
	return end_of(first) == second->first && first->count <= UINT32_MAX - second->count &&
		(first->gone == second->gone ||
		 (is_plain(st, partition, first) && is_plain(st, partition, second)));
}

/* Free the range behind prev (0 = the head). */
static void
remove_next(QcState *st, QcPartition *partition, QcRef prev)
{
	QcRef	   *at = prev == 0 ? &partition->aborted.head : &QC_AT(st, QcAbortedRange, prev)->next;
	QcRef		ref = *at;

	*at = QC_AT(st, QcAbortedRange, ref)->next;
	if (partition->aborted.tail == ref)
		partition->aborted.tail = prev;
	qc_mem_free(&st->mem, QC_CLASS_PENDING, ref);
}

/* Make one of the range and those behind it, as far as that goes. */
static void
merge_from(QcState *st, QcPartition *partition, QcRef ref)
{
	QcAbortedRange *range = QC_AT(st, QcAbortedRange, ref);
	QcAbortedRange *next;

	while ((next = QC_AT(st, QcAbortedRange, range->next)) != NULL &&
		   mergeable(st, partition, range, next))
	{
		range->gone = range->gone || next->gone;
		range->at = range->at > next->at ? range->at : next->at;
		range->count += next->count;
		remove_next(st, partition, ref);
	}
}

/* A new range behind prev (0 = the head), made one with its neighbours; returns what is there now. */
static QcRef
insert_behind(QcState *st, QcPartition *partition, QcRef prev, const QcAbortedRange *model,
			  bool promised)
{
	QcRef		ref = promised && st->mem.pools[QC_CLASS_PENDING].nreserved > 0 ?
		qc_mem_alloc_reserved(&st->mem, QC_CLASS_PENDING) :
		qc_mem_alloc(&st->mem, QC_CLASS_PENDING);
	QcAbortedRange *range = QC_AT(st, QcAbortedRange, ref);
	QcRef	   *at = prev == 0 ? &partition->aborted.head : &QC_AT(st, QcAbortedRange, prev)->next;

	assert(range != NULL);
	*range = *model;
	range->next = *at;
	*at = ref;
	if (partition->aborted.tail == prev)
		partition->aborted.tail = ref;
	merge_from(st, partition, ref);
	if (prev == 0)
		return ref;
	merge_from(st, partition, prev);
	return QC_AT(st, QcAbortedRange, prev)->next == ref ? ref : prev;
}

void
qc_range_add(QcState *st, QcPartition *partition, uint64_t first, uint64_t end, bool gone,
			 bool promised)
{
	QcRef		prev = all_below(st, partition, first) ? partition->aborted.tail : 0;
	QcRef		ref = prev == 0 ? partition->aborted.head : 0;

	while (first < end)
	{
		QcAbortedRange *range = QC_AT(st, QcAbortedRange, ref);
		QcAbortedRange model = {.first = first, .at = st->last_created_at, .gone = gone};
		uint64_t	stop = range != NULL && range->first < end ? range->first : end;

		if (range != NULL && range->first <= first)
		{
			first = end_of(range) > first ? end_of(range) : first;
			prev = ref;
			ref = range->next;
			continue;
		}
		assert(stop - first <= UINT32_MAX);
		model.count = (uint32_t) (stop - first);
		prev = insert_behind(st, partition, prev, &model, promised);
		ref = QC_AT(st, QcAbortedRange, prev)->next;
		first = stop;
	}
	qc_log_died(st, QC_AT(st, QcQueue, partition->queue));
	qc_dirty_partition(st, partition);
}

void
qc_range_trim(QcState *st, QcPartition *partition)
{
	QcRef		prev = 0;
	QcRef		ref;

	while ((ref = prev == 0 ? partition->aborted.head : QC_AT(st, QcAbortedRange, prev)->next) != 0)
	{
		const QcAbortedRange *range = QC_AT(st, QcAbortedRange, ref);

		if (end_of(range) <= partition->start && is_plain(st, partition, range))
		{
			remove_next(st, partition, prev);
			qc_dirty_partition(st, partition);
			continue;
		}
		merge_from(st, partition, ref);
		prev = ref;
	}
}

void
qc_range_free(QcState *st, QcPartition *partition)
{
	while (partition->aborted.head != 0)
		remove_next(st, partition, 0);
}
