/*
 * qc_range.h
 *		Positions of a partition without messages: ranges of entries that were undone, and of messages that retention has
 *		removed above the partition's start.
 *
 * Listed by position (QcPartition.aborted), disjoint.  Neighbours become one where nobody has to tell them apart any more:
 * a range of an undone entry is told apart as long as a dedup id of it could be within the window of its queue, because
 * whoever reads the dedup ids again after a start must not find it, but must find those of messages that have gone.  Such a
 * range stays even when the start has passed it.	Everything else below the start is forgotten.
 *
 * State lock.
 */
#ifndef QC_RANGE_H
#define QC_RANGE_H

#include "qc_state.h"

/* First position at or above p that is in no range. */
extern uint64_t qc_skip_aborted(const QcState *st, const QcPartition *partition, uint64_t p);

/* First position at or above p where a range begins, or the partition's stable end. */
extern uint64_t qc_range_next(const QcState *st, const QcPartition *partition, uint64_t p);

/* Positions of [from, end) that are in ranges. */
extern uint64_t qc_range_covered(const QcState *st, const QcPartition *partition, uint64_t from,
								 uint64_t end);

/* Was the entry of this position undone?	Below the start only where that still matters. */
extern bool qc_range_undone(const QcState *st, const QcPartition *partition, uint64_t p);

/*
 * [first, end) holds no messages: gone, because retention has removed them, otherwise because their entry was undone.	What
 * is in a range already stays there.  Needs one object when nothing of it is; promised: it was.
 */
extern void qc_range_add(QcState *st, QcPartition *partition, uint64_t first, uint64_t end, bool gone,
						 bool promised);

/* Forget what lies below the start, as far as nobody needs it; make one of neighbours. */
extern void qc_range_trim(QcState *st, QcPartition *partition);

/* Free all of a partition that goes away. */
extern void qc_range_free(QcState *st, QcPartition *partition);

#endif							/* QC_RANGE_H */
