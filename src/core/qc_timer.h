/*
 * qc_timer.h
 *		Deadlines of leases and retry times of slots on one timer wheel of 10 ms ticks, and those of claims (qc_wait.h).
 *
 * Derived state: never stored, armed again when rows are loaded.  Monotonic microseconds.	State lock.
 */
#ifndef QC_TIMER_H
#define QC_TIMER_H

#include "qc_state.h"

/*
 * Arm; the target's `timer` field is set.  Rounds up to the next tick.	false = state memory is full (only when
 * no timer was promised: promised = true takes it out of what qc_mem_reserve promised).
 */
extern bool qc_timer_arm_lease(QcState *st, QcLease *lease, int64_t when, int64_t monotonic,
							   bool promised);
extern bool qc_timer_arm_slot(QcState *st, QcSlot *slot, int64_t when, int64_t monotonic,
							  bool promised);

/*
 * Timers of delayed messages (qc_delay.h), which exist as long as these: taken (false = full), put on the wheel, from there
 * into the list of those that are due.
 */
extern bool qc_timer_take(QcState *st, QcLaneItem *item, bool promised);
extern void qc_timer_arm_item(QcState *st, QcLaneItem *item, int64_t when, int64_t monotonic);
extern bool qc_timer_waits(QcState *st, const QcLaneItem *item);
extern void qc_timer_item_due(QcState *st, QcLaneItem *item);

/* Disarm if armed, and free it. */
extern void qc_timer_disarm(QcState *st, QcRef *timer);

/*
 * Fire what is due: waiting slots become deliverable; leases whose time is over are returned (at most max ids)
 * for the caller to log a release for each.  Such a lease is armed again a second later, so that a caller that
 * fails loses nothing.	One that is owned or pinned cannot expire: its clock starts anew when that ends.
 */
extern uint32_t qc_timers_run(QcState *st, int64_t monotonic, uint64_t *expired, uint32_t max);

/* As qc_timers_run, but fires at most `budget` timers; *fired tells how many it were. */
extern uint32_t qc_timers_step(QcState *st, int64_t monotonic, uint32_t budget, uint32_t *fired,
							   uint64_t *expired, uint32_t max);

/*
 * The one who runs the timers goes to sleep, until the time returned (as qc_timers_next).  From now on QcState.alarm is
 * set by whatever has to be looked at earlier; the one who sees it before giving up the state lock clears it and wakes
 * the sleeper.
 */
extern int64_t qc_timers_rest(QcState *st);

/* It has woken up: no alarms any more. */
extern void qc_timers_awake(QcState *st);

/* There is something to be looked at from this time on; INT64_MIN = now. */
static inline void
qc_timers_call(QcState *st, int64_t when)
{
	if (when >= st->rest_until)
		return;
	st->rest_until = INT64_MIN;
	st->alarm = 1;
}

/* When qc_timers_run should be called next, INT64_MAX when no timer is armed; may be early, never late. */
extern int64_t qc_timers_next(const QcState *st);

#endif							/* QC_TIMER_H */
