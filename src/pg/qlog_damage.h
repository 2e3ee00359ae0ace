/*
 * qlog_damage.h
 *		Damaged places that were found on disk since the server started, and queues that are out of service.
 *
 * A queue's own note of its first damaged place is in its row (QcQueue.damaged) and outlives a restart; the list here is for
 * the view qlog_damage and is made anew by the scrub worker.
 *
 * Callers: wrk_scrub.c, fn_repair.c, fn_verify.c.
 */
#ifndef QLOG_DAMAGE_H
#define QLOG_DAMAGE_H

#include "qlog_shmem.h"

#include "../core/qc_verify.h"

/* Note a place, once. needed: what stood there is still needed. */
extern void qlog_damage_note(const QcFinding *finding, bool needed);

/* Forget what was noted of a log (file 0 = all of its files): it was repaired, or has gone. */
extern void qlog_damage_forget(uint64 log, uint64 file);

/* May messages of this partition stand in this log?	One that is not known any more may. */
extern bool qlog_damage_belongs(uint64 log, uint64 partition);

/* Messages of a partition that stood at a place which cannot be read. */
typedef struct QlogLost
{
	uint64		partition;
	uint64		first;
	uint32		count;
} QlogLost;

/* Does the state still need any of these messages? */
extern bool qlog_damage_needs(const QlogLost *lost);

/*
 * Put those queues out of service whose messages these are, as far as they are needed; lost NULL: it is not known whose they
 * are, so all queues of the log.	Returns how many were put out of service, each with a WARNING in the server's log.
 */
extern uint32 qlog_damage_stop(const QcFinding *finding, const QlogLost *lost, uint32 nlost);

#endif							/* QLOG_DAMAGE_H */
