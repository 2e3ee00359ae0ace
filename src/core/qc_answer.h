/*
 * qc_answer.h
 *		Leases that were acknowledged whole, remembered so that an acknowledgement whose answer got lost can be
 *		repeated.
 *
 * A ring of fixed size inside the state block, with a hash table over it: the newest ones replace the oldest.  Filled
 * when the acknowledging entry is settled, so nothing stands here that a crash can still undo.  A checkpoint keeps the
 * newest QC_ANSWERS_STORED; those behind the mark are found again by replay.
 *
 * All functions: state lock.
 */
#ifndef QC_ANSWER_H
#define QC_ANSWER_H

#include "qc_state.h"

#define QC_ANSWERS_STORED 512

typedef struct QcAnswer
{
	uint64_t	lease;			/* id; 0 = not used yet */
	uint64_t	queue;			/* id */
	uint32_t	count;			/* messages acknowledged */
	uint32_t	next;			/* in its bucket, index + 1 */
} QcAnswer;

/* Bytes for a state memory of this size, and laying them out at byte `at` of the block, zeroed. */
extern uint64_t qc_answers_size(uint64_t state_bytes);
extern void qc_answers_init(QcState *st, uint64_t at, uint64_t state_bytes);

/* The lease of this queue has ended with all of its count messages acknowledged. */
extern void qc_answer_remember(QcState *st, uint64_t lease, uint64_t queue, uint32_t count);

/* NULL = never, or too long ago. */
extern const QcAnswer *qc_answer_find(const QcState *st, uint64_t lease);

/* The newest ones, oldest first, for a checkpoint: calls visit for each. */
extern uint32_t qc_answers_stored(const QcState *st);
extern const QcAnswer *qc_answer_stored(const QcState *st, uint32_t n);

#endif							/* QC_ANSWER_H */
