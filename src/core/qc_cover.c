/*
 * qc_cover.c
 *		Which positions have been seen (contract in qc_cover.h).
 */
#include "qc_cover.h"

#include <assert.h>
#include <stdlib.h>

static int
compare(const void *a, const void *b)
{
	const QcCoverRange *x = a;
	const QcCoverRange *y = b;

	if (x->partition != y->partition)
		return x->partition < y->partition ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

void
qc_cover_sort(QcCover *cover)
{
	size_t		kept = 0;

	if (cover->n == 0)
		return;
	qsort(cover->ranges, cover->n, sizeof(QcCoverRange), compare);
	for (size_t i = 1; i < cover->n; i++)
	{
		QcCoverRange *last = &cover->ranges[kept];
		const QcCoverRange *next = &cover->ranges[i];

		if (next->partition == last->partition && next->first <= last->end)
			last->end = next->end > last->end ? next->end : last->end;

		else
			cover->ranges[++kept] = *next;
	}
	cover->n = kept + 1;
}

bool
qc_cover_add(QcCover *cover, uint64_t partition, uint64_t first, uint64_t end)
{
	QcCoverRange *last = cover->n > 0 ? &cover->ranges[cover->n - 1] : NULL;

	assert(first < end);
	if (last != NULL && last->partition == partition && last->end == first)
	{
		last->end = end;

		return true;
	}
	if (cover->n == cover->cap)
	{
		qc_cover_sort(cover);

		/* When that does not help much it would soon be done again. */
		if (cover->n >= cover->cap - cover->cap / 4)
			return false;
	}
	cover->ranges[cover->n++] = (QcCoverRange)
	{
		partition, first, end
	};
	return true;
}

/* Index of the first range of the partition that ends above p. */
static size_t
seek(const QcCover *cover, uint64_t partition, uint64_t p)
{
	size_t		low = 0;
	size_t		high = cover->n;

	while (low < high)
	{
		size_t		middle = low + (high - low) / 2;
		const QcCoverRange *range = &cover->ranges[middle];

		if (range->partition < partition || (range->partition == partition && range->end <= p))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t
qc_cover_gap(const QcCover *cover, uint64_t partition, uint64_t first, uint64_t end, uint64_t *to)
{
	size_t		at = seek(cover, partition, first);
	const QcCoverRange *range = at < cover->n && cover->ranges[at].partition == partition ?
		&cover->ranges[at] : NULL;

	*to = end;
	if (first >= end)
		return end;
	if (range != NULL && range->first <= first)
	{
		first = range->end;
		at++;
		range = at < cover->n && cover->ranges[at].partition == partition ? &cover->ranges[at] : NULL;
	}
	if (first >= end)
		return end;
	if (range != NULL && range->first < end)
		*to = range->first;
	return first;
}
