/*
 * wrk_timer.h
 *		The timer worker: what falls due by itself.
 */
#ifndef WRK_TIMER_H
#define WRK_TIMER_H

#include "wrk_worker.h"

/* _PG_init, while preloading. */
extern void qlog_timer_register(void);

/* What became of an attempt to move messages to the dead letters. */
typedef enum QlogMoved
{
	QLOG_MOVED_NOTHING,			/* nothing is left that could be moved now */
	QLOG_MOVED_SOME,			/* there may be more */
	QLOG_MOVED_STUCK			/* try again later: there is not even memory to put it off */
} QlogMoved;

/* wrk_dying.c: move one batch of dying messages. */
extern QlogMoved qlog_move_dying(QlogWorker *worker);

/* wrk_delay.c: move one batch of delayed messages that are due.  true = there may be more. */
extern bool qlog_move_delayed(QlogWorker *worker);

#endif							/* WRK_TIMER_H */
