/*
 * qlog_death.h
 *		Messages that have come back once too often: from their partition to the dead letters, outside of any transaction.
 *
 * One entry holds, per message, the copy in the dead lane of its group and the effect that ends it where it was.	The
 * messages are noted under the state lock and read without it; the entry is reserved only when what was noted still
 * holds.  So a crash, or a process that ends, at any moment leaves a message either due or dead, never both, never
 * neither.
 *
 * Callers: wrk_dying.c for whatever is dying; fn_nack.c for what its caller gives back; fn_ack.c makes the same letters.
 */
#ifndef QLOG_DEATH_H
#define QLOG_DEATH_H

#include "qlog_fetch.h"

#include "../core/qc_plan.h"

#define QLOG_DEATHS_MAX 64		/* messages that are moved by one entry */

/* One of them, noted under the state lock. */
typedef struct QlogDying
{
	QlogSpot	spot;			/* attempt: how often it has been delivered */
	uint8		cause;			/* QC_DEAD_* */
	uint16		partition_len;
	char		partition[QLOG_NAME_MAX];
} QlogDying;

/* Messages of one queue and group that die together. */
typedef struct QlogDeaths
{
	uint64		queue;
	uint64		group;
	uint64		log;
	Oid			database;
	uint16		name_len;
	char		name[QLOG_NAME_MAX];
	int			level;			/* zstd */
	bool		keep;			/* option dead_letters; otherwise they are dropped */
	uint64		lane;			/* 0 = the group has none yet */
	QcStr		reason;			/* what the consumer said; bytes NULL = nothing */
	uint32		n;
	QlogDying	dying[QLOG_DEATHS_MAX];
} QlogDeaths;

/* Note queue and group.	State lock, at least shared. */
extern void qlog_deaths_begin(QlogDeaths *deaths, const QcQueue *queue, const QcGroup *group);

/* Note a message.	hint: as qlog_spot_note. */
extern void qlog_deaths_add(QlogDeaths *deaths, QcPartition *partition, uint64 position,
							uint32 attempt, uint8 cause, QcRef *hint);

/*
 * Is what was noted of queue and group still so, and does the queue take entries?	State lock.  The caller knows about
 * the messages.
 */
extern bool qlog_deaths_hold(const QlogDeaths *deaths);

/*
 * Read the messages and put the operations that move them into ops (QLOG_DEATHS_MAX of them), fewer messages (deaths->n)
 * when these are large.	Memory is palloc'ed.  One that is damaged gets a letter that says so; when reading fails for
 * another reason, the ones before it are moved, and if there are none that reason is returned; deaths->n is 1 when it
 * concerns the first message alone (QC_LIMIT).
 */
extern QcStatus qlog_deaths_ops(QlogDeaths *deaths, QcOp *ops, QcError *err);

/*
 * The frame of a dead letter is the message's with the name of its partition and the reason, unless it would then be too
 * large for a log file.
 */
extern void qlog_dead_frame(QcMessage *message, QlogName partition, QcStr reason);

/* The letter of a message that cannot be read: it tells where that is, palloc'ed, and keeps nothing else. */
extern void qlog_dead_lost(QcMessage *message, QlogName partition, const QcError *reading);

/* Why it died, for letters of consumers that said nothing. */
extern QcStr qlog_dead_reason(uint8 cause);

#endif							/* QLOG_DEATH_H */
