/*
 * qc_delay.h
 *		Delayed messages: in the delay lane of their queue until they are due, then copied to the end of their partition.
 *
 * Every one is a lane item (qc_lane.h) with a timer of its own: idle while its entry is not settled, on the wheel until it
 * is due, then in the list QcState.due, in the order of the due times, until an entry of the timer worker has moved it.
 * Due times are of the wall clock, the wheel runs on the monotonic one: QcState.wall_offset is the difference that the
 * timers were armed with, and qc_delay_clock arms them anew when the wall clock was set.
 *
 * State lock.
 */
#ifndef QC_DELAY_H
#define QC_DELAY_H

#include "qc_effect.h"
#include "qc_index.h"
#include "qc_state.h"

/* Apply a delay effect: its items appear, open.  promised: items and timers were. */
extern QcStatus qc_delay_add(QcState *st, const QcEffect *effect, bool promised, QcError *err);

/* The entry of messages [first, first + count) of the lane is settled. */
extern void qc_delay_settle(QcState *st, QcPartition *lane, uint64_t first, uint32_t count,
							bool committed, int64_t monotonic);

/* Apply fire and cancel effects: the item leaves its lane.  An item that is not there has left it before. */
extern void qc_delay_remove(QcState *st, uint64_t lane, uint64_t position);

/* The delay lane of a queue; NULL when nothing was ever delayed. */
extern QcPartition *qc_delay_lane(QcState *st, const QcQueue *queue);

/* Rows have been loaded: arm the timers of this lane.  false = state memory is full. */
extern bool qc_delay_loaded(QcState *st, QcPartition *lane, int64_t monotonic);

/* A timer of a delayed message has run out (called by the timer wheel). */
extern void qc_delay_due(QcState *st, QcLaneItem *item, int64_t monotonic);

/* A message that is due, as it was looked at. */
typedef struct QcDelayed
{
	uint64_t	queue;
	uint64_t	lane;
	uint64_t	position;
	uint64_t	target;			/* partition */
	int64_t		due;
	QcLocation	location;		/* of its record in the lane; file 0 = not in memory */
} QcDelayed;

/* The first messages that are due, at most max, in the order in which they are to be delivered. */
extern uint32_t qc_delay_next(QcState *st, QcDelayed *delayed, uint32_t max);

/* Is the message still in its lane, to be moved or cancelled? */
extern bool qc_delay_waits(QcState *st, uint64_t lane, uint64_t position);

/* A message that is due cannot be moved now: it is due again at `when`, monotonic. */
extern void qc_delay_put_off(QcState *st, uint64_t lane, uint64_t position, int64_t when,
							 int64_t monotonic);

/* Is any message waiting to be due?  Then the clocks must be looked at now and then. */
extern bool qc_delay_any(const QcState *st);

/*
 * The clocks now.  When the wall clock has been set, up to `budget` timers are armed anew; true = there are more.
 */
extern bool qc_delay_clock(QcState *st, int64_t now, int64_t monotonic, uint32_t budget);

#endif							/* QC_DELAY_H */
