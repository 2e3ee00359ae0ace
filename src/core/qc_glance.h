/*
 * qc_glance.h
 *		What views show of consumer groups and partitions, without changing anything.
 *
 * Every function looks at a bounded number of partitions, whatever the queue has.	State lock, shared is enough.
 */
#ifndef QC_GLANCE_H
#define QC_GLANCE_H

#include "qc_state.h"

#define QC_GLANCE_PARTITIONS	64	/* looked at for a message that no list leads to */

/* A message that a group has not finished. */
typedef struct QcGlance
{
	QcPartition *partition;
	uint64_t	position;
	QcRef		hint;			/* where the search for its record begins */
} QcGlance;

/* Messages of the partition that a pop of the group could take now or after those before them. */
extern uint64_t qc_glance_ready(QcState *st, const QcGroup *group, const QcPartition *partition);

/* The message that the group's next pop takes first; false = there is none among what is looked at. */
extern bool qc_glance_next(QcState *st, const QcGroup *group, QcGlance *next);

/*
 * Messages of which one is the oldest that the group has not finished, up to 3.  With QC_GLANCE_PARTITIONS partitions or
 * fewer it is exact.  With more it is the older of what the next pop takes first and of the first one of the oldest lease;
 * where neither tells, or messages wait for a retry, the oldest among the first QC_GLANCE_PARTITIONS partitions as well.
 * Returns how many; 0 = the group has none, or they lie behind these partitions.
 */
extern uint32_t qc_glance_oldest(QcState *st, const QcGroup *group, QcGlance oldest[3]);

/*
 * The entry that is not settled and holds up what was pushed to the partition after it; NULL = nothing is held up.
 */
extern const QcOpen *qc_glance_blocker(QcState *st, const QcPartition *partition);

#endif							/* QC_GLANCE_H */
