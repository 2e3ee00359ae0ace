/*
 * portrait.h
 *		What a state means, as text: two states that mean the same have the same portrait, however they came about.
 *
 * Left out are objects that make no difference to what is delivered: rows of what is gone, cursors of groups that still
 * stand where their start rule puts them, memory, indexes, timers.
 */
#ifndef PORTRAIT_H
#define PORTRAIT_H

#include "qc_state.h"

/* Text in malloc'ed memory.  The state lock of the real world would be exclusive: stale partitions are brought up to date. */
extern char *portrait(QcState *st);

/*
 * Do queues and groups count what their partitions and cursors hold?  Says what does not fit. (Their counts may stand for
 * more than portrait() shows: a group counts all of a partition that it has not looked at.)
 */
extern bool portrait_counts(QcState *st);

/* Are both the same? Says where they differ first; what: in words. */
extern bool portrait_same(const char *got, const char *want, const char *what);

#endif							/* PORTRAIT_H */
