/*
 * qlog_gone.h
 *		Log files that were removed or replaced: who has them open, or something of them in memory, lets go.
 *
 * Reclaim notes each such file in a ring in shared memory.	 Every process compares one number before it reads, and at the end of
 * each transaction, and forgets what was noted since it looked last.  A process that sits idle with such a file open would keep its
 * bytes on the disk: reclaim wakes it with the interrupt for processing invalidation messages, which makes an idle backend run an
 * empty transaction.
 *
 * The ring is guarded by the state lock, the number is read without.
 */
#ifndef QLOG_GONE_H
#define QLOG_GONE_H

#include "postgres.h"

/* Shared memory: its size, and where it is; fresh = lay it out. */
extern Size qlog_gone_size(void);
extern void qlog_gone_init(void *block, bool fresh);

/* This file of a log (0 = all of them) was removed or replaced. */
extern void qlog_gone_note(uint64 log, uint64 file);

/* How many were noted so far. */
extern uint64 qlog_gone_count(void);

/* This process opens a file. */
extern void qlog_gone_opened(void);

/* Let go of what was noted since the last call.  Holds no lock of qlog's; never raises. */
extern void qlog_gone_follow(void);

/* Wake the processes that are behind and may have files open. */
extern void qlog_gone_wake(void);

#endif							/* QLOG_GONE_H */
