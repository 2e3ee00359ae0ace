/*
 * qlog_unread.h
 *		Messages of a delivery that cannot be read, their records being damaged or gone.
 *
 * They are left out of what the pop returns and given back at once: that delivery counts for them and for no other
 * message, so that each of them ends as a dead letter (qlog_death.h) and holds up nothing meanwhile.	 In an ordered
 * partition everything behind such a message is given back with it: what cannot be read either (mostly messages of
 * the same record) is charged as well, the rest is not.
 *
 * Caller: fn_pop.c.
 */
#ifndef QLOG_UNREAD_H
#define QLOG_UNREAD_H

#include "qlog_fetch.h"
#include "qlog_stage.h"

typedef struct QlogUnreadItem
{
	uint64		partition;
	uint64		position;
	bool		ordered;		/* the first one of an ordered partition: nothing behind it is
								 * returned */
} QlogUnreadItem;

typedef struct QlogUnread
{
	uint32		n;				/* messages that could not be read */
	uint32		nordered;
	uint32		max;
	QlogUnreadItem *items;
	uint32		attempt;		/* the highest of theirs */
	uint64		ordered;		/* ordered partition in which nothing more is returned; 0 = none */
	bool		passed;			/* ... and something behind could be read */
	QcError		err;			/* about the first one */
} QlogUnread;

/* Is this message given back whatever is in it, so that it need not be read? */
static inline bool
qlog_unread_skips(const QlogUnread *unread, const QlogSpot *spot)
{
	return unread->passed && unread->ordered == spot->partition;
}

/* Is this message, which could be read, given back with one before it? */
static inline bool
qlog_unread_passes(QlogUnread *unread, const QlogSpot *spot)
{
	if (unread->ordered != spot->partition)
		return false;
	unread->passed = true;
	return true;
}

/* Note a message that qlog_fetch_try could not read; raises when it is only out of reach for the moment. */
extern void qlog_unread_note(QlogUnread *unread, const QlogQueue *queue, const QlogSpot *spot,
							 const QcError *err);

/* Give back what was noted of this lease of the current transaction. */
extern void qlog_unread_give_back(QlogUnread *unread, const QlogQueue *queue, uint64 lease);

#endif							/* QLOG_UNREAD_H */
