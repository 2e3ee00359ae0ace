/*
 * qlog_damage.h
 *		Damaged places and missing messages that were found since the server started.
 *
 * Damage concerns the messages that stood there, and nobody else: their queue goes on, and each of them is given up when a consumer
 * comes to it (qlog_unread.h), or by qlog_repair.	A queue goes out of service (QcQueue.damaged) only where a start cannot tell how
 * far its state is right.	The list here is for the view qlog_damage; the scrub worker makes it anew.
 *
 * Callers: wrk_scrub.c, fn_pop.c, fn_repair.c, fn_verify.c.
 */
#ifndef QLOG_DAMAGE_H
#define QLOG_DAMAGE_H

#include "qlog_shmem.h"

#include "../core/qc_verify.h"

/* Note a place, once.	needed: what stood there is still needed.  true = it was not known. */
extern bool qlog_damage_note(const QcFinding *finding, bool needed);

/* Note that messages [first, end) of a partition are in no file of the log. true = it was not known. */
extern bool qlog_damage_note_missing(uint64 log, uint64 partition, uint64 first, uint64 end);

/* Note the place that a reader of the log met, when it is known. */
extern void qlog_damage_met(uint64 log, const QcError *err);

/* Forget what was noted of a file of a log, or of messages in none of its files: it was repaired, looked at anew, or has gone. */
#define QLOG_DAMAGE_ALL UINT64_MAX	/* of the log */
#define QLOG_DAMAGE_MISSING 0	/* messages in no file */
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
 * Tell the server's log of a place that was not known before: a WARNING for each queue whose needed messages these are; lost NULL: it
 * is not known whose they are.
 */
extern void qlog_damage_tell(const QcFinding *finding, const QlogLost *lost, uint32 nlost);

#endif							/* QLOG_DAMAGE_H */
