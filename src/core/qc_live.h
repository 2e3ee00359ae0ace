/*
 * qc_live.h
 *		Is a record still needed?  What the state says about the messages in it.
 *
 * What is gone is in the state, never only on the disk: a position is gone below its partition's start unless somebody holds it,
 * in an aborted range, in a lane when no item is left of it, and with its partition.  The disk may lack only what the state
 * calls gone, in a checkpoint that is stored (qc_rows_stored); so nobody asks for what was taken away.
 *
 * When in doubt a record is needed: positions that the state has not given out, partitions that it does not know and that were
 * not dropped, queues out of service.
 *
 * A dedup id within its queue's window outlives its message, as after a start the ids are read again from the records
 * (qc_dedup_rebuild.h).  An index of a file does not hold them: the answer is then QC_LIVE_ASK.
 *
 * State lock, at least shared.  Callers: qc_look.c.
 */
#ifndef QC_LIVE_H
#define QC_LIVE_H

#include "qc_state.h"

typedef enum QcLive
{
	QC_LIVE_NOT,				/* nobody needs it any more */
	QC_LIVE_ASK,				/* only its dedup ids may be needed: qc_live_dedup */
	QC_LIVE_DEDUP,				/* a dedup id is within the window */
	QC_LIVE_MESSAGE,			/* a message that is not gone, or not settled */
	QC_LIVE_HELD,				/* purged while somebody held it */
	QC_LIVE_DELAYED,
	QC_LIVE_DEAD_LETTER,
	QC_LIVE_DAMAGED,			/* its queue is out of service */
	QC_LIVE_UNKNOWN,			/* the state knows nothing of it */
	QC_LIVE_COUNT
} QcLive;

/*
 * Judge records out of the entries of a .qidx (sorted by partition and position), one answer each, until about `budget`
 * steps were taken; returns how many were judged, at least one.  now: wall clock, microseconds.
 */
extern uint32_t qc_live_judge(QcState *st, const uint8_t *entries, uint32_t n, int64_t now,
							  uint8_t *answers, uint32_t budget);

/* Is the message at this position needed, as far as the state says? */
extern bool qc_live_position(QcState *st, uint64_t partition, uint64_t position);

/* Is one of these dedup hashes, `stride` bytes apart, out of a record of the partition, within the window? */
extern bool qc_live_dedup(QcState *st, uint64_t partition, const uint8_t *hashes, size_t stride,
						  uint32_t n, int64_t now);

#endif							/* QC_LIVE_H */
