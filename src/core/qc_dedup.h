/*
 * qc_dedup.h
 *		Dedup ids that were pushed within their queue's dedup_window: who came first.
 *
 * Keyed by (partition, 128-bit hash of the dedup id), in a memory budget of its own (qlog.dedup_memory).  An entry is
 * claimed by a transaction before it commits, belongs to its open entry from the reservation on, and stands in its
 * queue's list, oldest first, once that is settled.  Only ids that an application has given are here.
 *
 * Invariants: at most one claimed or open entry per key, and none beside a settled one that is within the window; a
 * settled entry's message is visible.  Nothing of this is stored: after a start it is made again from the logs
 * (qc_dedup_rebuild.h), when no entry is open any more.
 *
 * All functions: state lock.
 */
#ifndef QC_DEDUP_H
#define QC_DEDUP_H

#include "qc_frame.h"
#include "qc_log.h"

typedef enum QcDedupState
{
	QC_DEDUP_CLAIMED,			/* by a transaction that has not reserved yet */
	QC_DEDUP_OPEN,				/* its entry is not settled */
	QC_DEDUP_SETTLED
} QcDedupState;

typedef struct QcDedup
{
	uint8_t		hash[QC_HASH_SIZE];
	uint8_t		id[QC_ID_SIZE]; /* of the message */
	uint64_t	partition;		/* id */
	int64_t		pushed_at;		/* when the id was made; no later than its entry. Microseconds
								 * since the Unix epoch */
	uint64_t	seq:62;			/* of the entry; 0 = claimed */
	uint64_t	state:2;		/* QcDedupState */
	QcRef		next;			/* in its bucket */
	QcRef		link;			/* OPEN: next of the entry; SETTLED: next younger of the queue */
} QcDedup;

/* The newest entry of a key; NULL when there is none within `window` microseconds before now. */
extern QcDedup *qc_dedup_find(QcState *st, uint64_t partition, const uint8_t *hash, int64_t now,
							  int64_t window);

/* Since when the queue's dedup ids count, seen from now. */
extern int64_t qc_dedup_since(const QcQueue *queue, int64_t now);

/* Claim a key that qc_dedup_find does not find. 0 = qlog.dedup_memory is full. */
extern QcRef qc_dedup_claim(QcState *st, uint64_t partition, const uint8_t *hash,
							const uint8_t *id);
extern void qc_dedup_unclaim(QcState *st, QcRef ref);

/*
 * From when on the window of a message counts: its push, whenever its entry or a copy of it (a delayed message that was
 * delivered, a dead letter that was given another try) was logged.
 */
extern int64_t qc_dedup_time(const uint8_t *id, int64_t created_at);

/* The claiming transaction's entry has been reserved: the claim belongs to it now. */
extern void qc_dedup_reserved(QcState *st, QcOpen *open, QcRef ref, int64_t created_at);

/* The message of a settled entry was cancelled: its id can be pushed again. */
extern void qc_dedup_forget(QcState *st, uint64_t partition, const uint8_t *hash,
							const uint8_t *id, int64_t now, int64_t window);

/* The open entry is settled. */
extern void qc_dedup_settle(QcState *st, QcOpen *open, bool committed);

/*
 * May a start want to know the dedup ids of a file of this log, all of whose records were made by `newest`?
 */
extern bool qc_dedup_wanted(const QcLog *log, int64_t newest);

/* A message with a dedup id was pushed into the queue, or found there after a start. */
extern void qc_dedup_note(QcState *st, QcQueue *queue, int64_t created_at);

/*
 * Free what has left the window of its queue, going on with the queue where the last call stopped; at most `budget`
 * queues and entries are looked at.  true = it freed something.
 */
extern bool qc_dedup_sweep(QcState *st, int64_t now, uint32_t budget);

/* Free everything of a queue that goes away, at most `budget` entries.  true = there is more. */
extern bool qc_dedup_free_all(QcState *st, QcQueue *queue, uint32_t budget);

/* After a start: a message of the logs, decided and visible; to be called in the order of their times. false = full. */
extern bool qc_dedup_load(QcState *st, QcQueue *queue, uint64_t partition, const uint8_t *hash,
						  const uint8_t *id, int64_t created_at);

#endif							/* QC_DEDUP_H */
