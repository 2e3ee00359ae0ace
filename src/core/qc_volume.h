/*
 * qc_volume.h
 *		How many bytes of messages a queue holds that are not done, and whether it takes more.
 *
 * Bytes are those of message records in the log.  Each group counts the bytes of what is visible and not done in it; a
 * queue holds what its slowest group has left, what lies in its lanes, and what is not settled yet.  What comes in is
 * counted exactly.  What is done is counted by the size of its record where the index knows it, and by the average of what
 * is left otherwise; where messages come or go in bulk (purge, seek, a new group) the figure follows the number of
 * messages.  So it is an estimate in between and exact again when nothing is left.  It decides nothing but max_bytes.
 *
 * State lock.
 */
#ifndef QC_VOLUME_H
#define QC_VOLUME_H

#include "qc_plan.h"

/* A record of the entry seq, which was just applied, is in the partition. */
extern void qc_volume_add(QcState *st, QcPartition *partition, uint64_t seq, uint64_t bytes);

/* Positions of an entry are settled: its messages are visible, or there are none. */
extern void qc_volume_settled(QcState *st, QcPartition *partition, const QcPending *pending);

/* The message of a slot, which is about to be freed, is done for its cursor's group. */
extern void qc_volume_done(QcState *st, const QcCursor *cursor, const QcSlot *slot);

/* What the queue holds now. Shared lock is enough. */
extern uint64_t qc_volume_queue(const QcState *st, const QcQueue *queue);

/* What it keeps in its partitions, finished or not: what retention_bytes limits.	Shared lock is enough. */
extern uint64_t qc_volume_kept(const QcQueue *queue);

/*
 * Promise room for the plan's messages in their queues, or nothing: QC_PAUSED, QC_OVERFLOW.	 What the entry itself changes
 * of a queue counts, and what it makes is not limited yet.	Messages that a queue only moves within itself always may.
 */
extern QcStatus qc_volume_promise(QcState *st, const QcPlan *plan, QcError *err);
extern void qc_volume_unpromise(QcState *st, const QcPlan *plan);

#endif							/* QC_VOLUME_H */
