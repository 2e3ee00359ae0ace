/*
 * qlog_xact.h
 *		What the current transaction has staged, per subtransaction, and its callbacks.
 *
 * Staging touches nothing shared.	PRE_COMMIT builds the plan (qc_plan.h) and runs qlog_commit_pre; COMMIT and
 * ABORT finish it.	 A (sub)transaction that rolls back forgets what it staged and releases its leases.
 */
#ifndef QLOG_XACT_H
#define QLOG_XACT_H

#include "qlog_commit.h"

extern void qlog_xact_init(void);	/* _PG_init while preloading: registers nothing until first use */

/*
 * Stage messages for a partition: frames and hashes are copied.  54000 when qlog.max_transaction_bytes would be
 * exceeded.
 */
extern void qlog_stage_push(uint64 queue, uint64 partition, uint64 log, uint32 count, const void *frames,
							size_t frames_len, const void *hashes, int level);

/* Stage acknowledgement of these positions of a lease; the lease must be held (40001 at COMMIT otherwise). */
extern void qlog_stage_ack(uint64 lease, const QcAckItem *ranges, uint32 nranges);

/* Stage a dead letter: the frame goes to the lane, the position of the lease ends. */
extern void qlog_stage_dead(const QcDead *dead, uint64 lane_log, const void *frame, size_t frame_len,
							const void *hash, int level);

/* Stage an encoded catalog effect (queue_create, queue_drop, partition_create of an uncommitted queue). */
extern void qlog_stage_effect(const void *effect, size_t len);

/* A pop of this transaction took a lease: it is released if this (sub)transaction rolls back. */
extern void qlog_stage_lease(uint64 lease);

/* Positions of this lease that this transaction has acknowledged or rejected already? */
extern bool qlog_staged_done(uint64 lease, uint64 partition, uint64 position);

#endif							/* QLOG_XACT_H */
