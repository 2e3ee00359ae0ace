/*
 * qlog_owned.h
 *		DROP OWNED and REASSIGN OWNED for queues.
 */
#ifndef QLOG_OWNED_H
#define QLOG_OWNED_H

/* Called by _PG_init while preloading: chains ProcessUtility_hook. */
extern void qlog_owned_init(void);

#endif							/* QLOG_OWNED_H */
