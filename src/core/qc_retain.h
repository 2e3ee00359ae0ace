/*
 * qc_retain.h
 *		Retention: which messages of a partition may be removed, and removing them.
 *
 * Removed is what the state says is removed: what lies below QcPartition.start, and ranges above it (qc_range.h).  Both are
 * moved by logged effects only, in one hold of the state lock with the judgement that led to them, so nothing that came in
 * between is passed over.
 *
 * A message goes when every live group of its queue has finished it, or, read or not, when it is past an age or behind a
 * number of bytes.  It never goes while its entry is undecided, while a consumer holds it, or while it is on its way to the
 * dead letters; lanes are not touched at all.	A replay may find acknowledgements that are decided only later in the log, and
 * so leases on what is gone: they stay until then.	That holds because what is settled cannot be lost without what follows it in
 * the log: the caller makes joint commits synchronous, so that their commit records are durable before they are settled.
 *
 * State lock.
 */
#ifndef QC_RETAIN_H
#define QC_RETAIN_H

#include "qc_state.h"

#define QC_RETAIN_RANGES	16	/* above the start, of one judgement */

/* Up to where messages of a partition may go. */
typedef struct QcRetainBounds
{
	uint64_t	done_to;		/* below it those that every group has finished */
	uint64_t	any_to;			/* below it all of them */
} QcRetainBounds;

typedef struct QcRetainRange
{
	uint64_t	first;
	uint32_t	count;
	uint32_t	unread;			/* as in the effect */
} QcRetainRange;

/* What may go: everything below `start`, and these ranges above it. */
typedef struct QcRetainVerdict
{
	uint64_t	start;
	uint64_t	unread;
	uint32_t	nranges;
	bool		more;			/* there is more than fits here */
	QcRetainRange ranges[QC_RETAIN_RANGES];
} QcRetainVerdict;

/*
 * Judge a partition of a live queue; changes nothing but that it brings the partition up to date.	false = nothing may go.
 * A run of finished messages between unfinished ones becomes a range only when it is as large as a record (64 KiB): less
 * would give back nothing.
 */
extern bool qc_retain_judge(QcState *st, QcPartition *partition, const QcRetainBounds *bounds,
							QcRetainVerdict *verdict);

/* Messages below start are gone, those of [first, end) are. Leases stay. */
extern void qc_retain_below(QcState *st, QcPartition *partition, uint64_t start);
extern void qc_retain_range(QcState *st, QcPartition *partition, uint64_t first, uint64_t end,
							bool promised);

#endif							/* QC_RETAIN_H */
