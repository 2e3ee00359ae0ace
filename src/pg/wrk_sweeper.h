/*
 * wrk_sweeper.h
 *		The sweeper worker: queues whose database or roles are gone.
 */
#ifndef WRK_SWEEPER_H
#define WRK_SWEEPER_H

/* _PG_init, while preloading. */
extern void qlog_sweeper_register(void);

#endif							/* WRK_SWEEPER_H */
