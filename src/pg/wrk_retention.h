/*
 * wrk_retention.h
 *		The retention worker: messages that every group has finished, or that are too old or too many, are removed.
 */
#ifndef WRK_RETENTION_H
#define WRK_RETENTION_H

#include "wrk_worker.h"

/* _PG_init, while preloading. */
extern void qlog_retention_register(void);

/*
 * wrk_retention_bytes.c: count what the queue keeps, and say which messages are too many; true = there are some. What cannot be
 * read is the worker's error.
 */
extern bool qlog_retention_bytes(QlogWorker *worker, uint64 queue);

#endif							/* WRK_RETENTION_H */
