/*
 * wrk_reclaim.h
 *		The reclaim worker: closed log files that nobody needs go, partly needed ones are rewritten.
 */
#ifndef WRK_RECLAIM_H
#define WRK_RECLAIM_H

#include "wrk_worker.h"

/* _PG_init, while preloading. */
extern void qlog_reclaim_register(void);

#endif							/* WRK_RECLAIM_H */
