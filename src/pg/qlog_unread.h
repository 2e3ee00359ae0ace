/*
 * qlog_unread.h
 *		Messages of a delivery that cannot be read, their records being damaged or gone.
 *
 * They are left out of what the pop returns and given back at once: that delivery counts for them and for no other
 * message, so that each of them ends as a dead letter (qlog_death.h) and holds up nothing meanwhile.	 In an ordered
 * partition everything behind such a message is given back with it, uncharged.
 *
 * Caller: fn_pop.c.
 */
#ifndef QLOG_UNREAD_H
#define QLOG_UNREAD_H

#include "qlog_fetch.h"
#include "qlog_stage.h"

#include "../core/qc_effect.h"

typedef struct QlogUnread
{
	uint32		n;				/* messages that could not be read */
	uint32		attempt;		/* the highest of theirs */
	uint64		ordered;		/* partition of which nothing more is delivered; 0 = none */
	QcNackItem *items;			/* of what is given back */
	uint32		nitems;
	uint32		maxitems;
	QcError		err;			/* about the first one */
} QlogUnread;

/* Does this message stay behind one that could not be read? */
static inline bool
qlog_unread_before(const QlogUnread *unread, const QlogSpot *spot)
{
	return unread->ordered == spot->partition;
}

/* Note a message that qlog_fetch_try could not read; raises when it is only out of reach for the moment. */
extern void qlog_unread_note(QlogUnread *unread, const QlogQueue *queue, const QlogSpot *spot,
							 const QcError *err);

/* Give back what was noted of this lease of the current transaction. */
extern void qlog_unread_give_back(QlogUnread *unread, const QlogQueue *queue, uint64 lease);

#endif							/* QLOG_UNREAD_H */
