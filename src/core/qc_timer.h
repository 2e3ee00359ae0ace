/*
 * qc_timer.h
 *		Deadlines of leases and retry times of slots on one timer wheel of 10 ms ticks.
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

/* Disarm if armed. */
extern void qc_timer_disarm(QcState *st, QcRef *timer);

/*
 * Fire what is due: waiting slots become deliverable; leases whose time is over are returned (at most max ids)
 * for the caller to log a release for each.  Such a lease is armed again a second later, so that a caller that
 * fails loses nothing.
 */
extern uint32_t qc_timers_run(QcState *st, int64_t monotonic, uint64_t *expired, uint32_t max);

/* When qc_timers_run should be called next, INT64_MAX when no timer is armed; may be early, never late. */
extern int64_t qc_timers_next(const QcState *st);

#endif							/* QC_TIMER_H */
