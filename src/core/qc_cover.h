/*
 * qc_cover.h
 *		Which positions of which partitions have been seen: ranges, gathered in any order and made few by sorting.
 *
 * qlog_verify notes every message record that it reads, and then asks for what the state says is there and was not seen.	The
 * caller gives memory; nothing is allocated.
 */
#ifndef QC_COVER_H
#define QC_COVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct QcCoverRange
{
	uint64_t	partition;
	uint64_t	first;
	uint64_t	end;
} QcCoverRange;

typedef struct QcCover
{
	QcCoverRange *ranges;
	size_t		n;
	size_t		cap;
} QcCover;

/* Add a range; false = no room, also after making them few: give a larger array and add it again. */
extern bool qc_cover_add(QcCover *cover, uint64_t partition, uint64_t first, uint64_t end);

/* Sort, and make one of those that touch or overlap.  Before the first question. */
extern void qc_cover_sort(QcCover *cover);

/* First position in [first, end) that was not seen, and in *to where that gap ends; end when all were. */
extern uint64_t qc_cover_gap(const QcCover *cover, uint64_t partition, uint64_t first, uint64_t end,
							 uint64_t *to);

#endif							/* QC_COVER_H */
