/*
 * wrk_scrub.h
 *		The scrub worker: looks through closed log files for damage, slowly.
 */
#ifndef WRK_SCRUB_H
#define WRK_SCRUB_H

/* _PG_init, while preloading. */
extern void qlog_scrub_register(void);

#endif							/* WRK_SCRUB_H */
