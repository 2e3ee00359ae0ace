/*
 * qlog_hold.h
 *		Leases that pops of the current transaction have taken, and the log credit with which they will end.
 *
 * A lease must be released when its (sub)transaction rolls back, and confirmed when it commits; at both moments nothing
 * may be raised any more.  So the credit is taken before the pop.	Leases of one subtransaction share credits, of which
 * the last is replaced by one of twice the size when it is used up, up to a limit.
 *
 * Callers: fn_pop.c; qlog_stage.c and qlog_xact.c at the end of (sub)transactions.
 */
#ifndef QLOG_HOLD_H
#define QLOG_HOLD_H

#include "postgres.h"

/* Make sure that one more lease of the current subtransaction can be held. May wait, may raise 53100, 53200. */
extern void qlog_hold_prepare(void);

/* Hold this lease: cannot fail, after qlog_hold_prepare. May be called under the state lock. */
extern void qlog_hold_add(uint64 lease);

/* Credits in use: where a subtransaction begins. */
extern uint32 qlog_hold_count(void);

/* Release the leases of all credits from this one on.	Never raises. */
extern void qlog_hold_abort(uint32 from);

/* The transaction has committed: what is still leased now runs for its time.  Never raises. */
extern void qlog_hold_commit(void);

/* Forget the list, whose memory goes away; everything has ended before. */
extern void qlog_hold_forget(void);

#endif							/* QLOG_HOLD_H */
