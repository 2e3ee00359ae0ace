/*
 * wrk_guard.h
 *		The two guard workers (qlog_guard.h).
 */
#ifndef WRK_GUARD_H
#define WRK_GUARD_H

/* _PG_init, while preloading. */
extern void qlog_guards_register(void);

#endif							/* WRK_GUARD_H */
