/*
 * wrk_timer.h
 *		The timer worker: what falls due by itself.
 */
#ifndef WRK_TIMER_H
#define WRK_TIMER_H

/* _PG_init, while preloading. */
extern void qlog_timer_register(void);

#endif							/* WRK_TIMER_H */
