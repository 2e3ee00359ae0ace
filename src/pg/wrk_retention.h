/*
 * wrk_retention.h
 *		The retention worker: messages that every group has finished, or that are too old or too many, are removed.
 */
#ifndef WRK_RETENTION_H
#define WRK_RETENTION_H

/* _PG_init, while preloading. */
extern void qlog_retention_register(void);

#endif							/* WRK_RETENTION_H */
