/*
 * qlog_hooks.h
 *		What happens to queues when databases, the extension and roles are dropped.
 */
#ifndef QLOG_HOOKS_H
#define QLOG_HOOKS_H

/* _PG_init, while preloading. */
extern void qlog_hooks_init(void);

#endif							/* QLOG_HOOKS_H */
