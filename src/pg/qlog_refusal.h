/*
 * qlog_refusal.h
 *		What a refused start could give up, and the grant to do so.
 *
 * A start that is refused reports what stands in its way (core/qc_recover_give.c); it stays in shared memory while the gate is
 * closed.	qlog_repair(NULL) shows it, and may grant exactly that: the checkpointer starts again, once, with the grant, which is of no
 * use to any other start.	What was given up is told to the server's log.
 *
 * Callers: wrk_recover.c and wrk_checkpoint.c (the only writers), fn_repair_start.c.
 */
#ifndef QLOG_REFUSAL_H
#define QLOG_REFUSAL_H

#include "qlog_shmem.h"

#include "../core/qc_recover.h"

/* A start begins: put what was granted into *recover and take the grant back. */
extern void qlog_refusal_begin(QcRecover *recover);

/* A QcRecoverHooks.given_up. */
extern void qlog_refusal_run(void *context, uint64_t partition, uint64_t first, uint64_t end);

/* It has ended: note what it reports, and tell the server's log what was given up. */
extern void qlog_refusal_end(const QcRecover *recover, QcStatus status);

/* Is the gate closed by a start that could give something up? */
extern bool qlog_refusal_stands(void);

/* Has it been granted, so that a start is due? */
extern bool qlog_refusal_granted(void);

/* Grant what stands there and wake the checkpointer. */
extern void qlog_refusal_grant(void);

/* Copy a partition's queue and name (at most QLOG_NAME_MAX bytes each, which have room); false = the state does not know it. */
extern bool qlog_refusal_names(uint64 partition, char *queue, uint16 *queue_len, char *name, uint16 *name_len);

#endif							/* QLOG_REFUSAL_H */
