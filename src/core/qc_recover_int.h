/*
 * qc_recover_int.h
 *		Inside recovery: what its files share (qc_recover.h is the contract).
 *
 *	 qc_recover.c			the driver: logs, order of the steps
 *	 qc_recover_merge.c		the logs' tails, merged by seq into bundles, one bundle per entry
 *	 qc_recover_bundle.c		is a bundle the whole entry?
 *	 qc_recover_end.c		pass 1: what is required, where the end is
 *	 qc_recover_give.c		what a refused start could give up
 *	 qc_recover_replay.c	pass 2: applying
 *	 qc_recover_cut.c		everything behind the end goes beside the logs
 *	 qc_recover_sync.c		what the state knows of the files, and syncing them
 *	 qc_recover_stash.c		reading the stash
 *	 qc_recover_restore.c	entries that only the stash has
 *	 qc_recover_decide.c	decisions: which counts, and taking those that are missing
 *	 qc_recover_finish.c	new epoch, verdicts, releases
 *
 * Memory grows with the number of logs, of damaged places and of parts of one entry, and by one bit per entry; never
 * with the bytes or records of the logs.
 */
#ifndef QC_RECOVER_INT_H
#define QC_RECOVER_INT_H

#include "qc_apply.h"
#include "qc_array.h"
#include "qc_cover.h"
#include "qc_log.h"
#include "qc_recover.h"
#include "qc_scan.h"
#include "qc_walrec.h"

#define QC_NO_SEQ UINT64_MAX

/* One log directory. */
typedef struct QcLogTail
{
	uint64_t	log;
	bool		known;			/* the checkpoint knows it */
	bool		gone;			/* renamed away */
	bool		lost;			/* what the checkpoint knows of it is not there */
	uint64_t	start_file;		/* where records above the mark begin */
	uint64_t	start_position;
	QcScan	   *scan;			/* NULL when nothing is left to read */
	uint64_t	last_seq;		/* of the last record taken in this pass, 0 = none */
	uint64_t	tail_file;		/* behind the last record taken */
	uint64_t	tail_position;
	bool		clean;			/* nothing but zeros stands behind the tail */
	uint64_t	written_first;	/* files that restoring wrote to, 0 = none */
	uint64_t	written_last;
} QcLogTail;

/* A place where a record should stand and none does. */
typedef struct QcSpot
{
	uint32_t	log_index;
	uint64_t	file;
	uint64_t	position;
	uint64_t	size;			/* of the record, by its len */
	uint64_t	after;			/* seq of the record before it in its log, 0 = none */
	uint64_t	before;			/* seq of the record behind it, QC_NO_SEQ = none */
	bool		message;		/* len and kind tell that it was one message record: damages its
								 * queue only */
	bool		solo;			/* ... and that it was a whole entry */
	bool		used;			/* ... and it stands for an entry that is missing */
	QcError		fault;
} QcSpot;

/* A message record of a bundle. */
typedef struct QcBundleRecord
{
	uint64_t	partition;
	uint64_t	first;
	uint32_t	count;
	uint32_t	size;
	uint64_t	file;
	uint64_t	position;
} QcBundleRecord;

/* What one log holds of an entry: message records, then the entry, a stub, or nothing. */
typedef struct QcBundlePart
{
	uint64_t	log;
	uint32_t	log_index;
	uint32_t	record;			/* its first message record in the bundle */
	uint32_t	nrecords;
	uint32_t	matched;		/* of these, named by append effects so far */
	uint32_t	ndamaged;		/* message records that are damaged */
	uint32_t	spot;			/* one of these */
	uint8_t		end;			/* QC_KIND_ENTRY, QC_KIND_STUB, QC_KIND_SOLO; QC_KIND_PAD = it has
								 * no end */
	bool		is_void;		/* belongs to an epoch that had ended below its seq */
	uint32_t	copies;
	uint64_t	epoch;
	int64_t		created_at;
	size_t		payload;		/* where the payload of its end stands in the bundle's bytes */
	uint32_t	payload_len;
	uint64_t	end_file;		/* behind its last record */
	uint64_t	end_position;
} QcBundlePart;

/* All records of one seq. */
typedef struct QcBundle
{
	uint64_t	seq;
	uint32_t	nparts;
	uint32_t	cap_parts;
	QcBundlePart *parts;		/* by log */
	uint32_t	nrecords;
	uint32_t	cap_records;
	QcBundleRecord *records;
	uint32_t	nbytes;
	uint32_t	cap_bytes;
	uint8_t    *bytes;			/* payloads of entries and stubs */
} QcBundle;

/* Epochs in the order in which they began: those of the state, then those that entries and stash tell of. */
typedef struct QcEpochList
{
	uint32_t	count;
	uint32_t	cap;
	QcEpochRow *rows;
} QcEpochList;

/* Decisions seen in pass 1, to find those that a later one overrides. */
typedef struct QcRedecision
{
	uint64_t	seq;
	uint64_t	at;				/* seq of the entry that decides it again */
} QcRedecision;

typedef struct QcDecisions
{
	uint64_t	base;			/* seq of the first bit */
	uint64_t	nbits;
	uint8_t    *bits;			/* decided at least once */
	uint32_t	nagain;
	uint32_t	cap_again;
	QcRedecision *again;
} QcDecisions;

/* An entry record of the stash that counts. */
typedef struct QcStashEntry
{
	uint64_t	seq;
	uint64_t	end_lsn;
	bool		committed;		/* the log's end lies before it: is it to be restored? */
	QcWalEntry	wal;
} QcStashEntry;

typedef struct QcStash
{
	uint32_t	count;
	uint32_t	cap;
	QcStashEntry *entries;		/* by seq, one per seq */
	bool		unknown_epoch;	/* it tells of an epoch that the log does not know */
} QcStash;

/* A recovery under way. */
typedef struct QcRecovery
{
	QcRecover  *r;
	uint32_t	nlogs;
	uint32_t	cap_logs;
	QcLogTail  *logs;			/* by id, those made while restoring at the end */
	uint32_t	nheap;
	uint32_t   *heap;			/* logs with a record to be taken, by its seq */
	uint32_t	nspots;
	uint32_t	cap_spots;
	QcSpot	   *spots;
	QcBundle	bundle;			/* the one being looked at */
	QcEpochList epochs;
	QcDecisions decisions;
	QcStash		stash;
	uint64_t	durable_seq;	/* largest one seen */
	bool		cut;			/* something was cut */
	bool		live_stash;		/* the stash holds a seq at or above the end */
	uint64_t	new_epoch;		/* the one that recovery begins */
	QcCover		given;			/* messages of entries given up */
	uint64_t	given_last;		/* the last of these that was seen */
	uint64_t	confirmed;		/* largest confirmed seq that they tell of */
	uint32_t	nlost;			/* logs that are lost */
	QcError		lost_error;		/* about the first */
	uint64_t	ticks;
	const char *phase;			/* that the caller was told last */
} QcRecovery;

static inline QcLog *
qc_recover_log(QcRecovery *rc, const QcLogTail *tail)
{
	return qc_log_by_id(rc->r->st, tail->log);
}

/* Ask the caller whether to go on, at the beginning of every phase and now and then.  phase: a constant. */
extern QcStatus qc_recover_tick(QcRecovery *rc, const char *phase, uint64_t done, uint64_t total,
								QcError *err);

/* The tail of a log, NULL when there is no such directory. */
extern QcLogTail *qc_recover_tail(QcRecovery *rc, uint64_t log);

/* Add a log directory. */
extern QcStatus qc_recover_add_tail(QcRecovery *rc, uint64_t log, bool known, uint64_t file,
									uint64_t position, QcError *err);

/* ---- merge ---- */

/* Begin a pass over all tails. */
extern QcStatus qc_merge_begin(QcRecovery *rc, QcError *err);

/* The seq that the next bundle has, QC_NO_SEQ when there is none. */
extern uint64_t qc_merge_peek(const QcRecovery *rc);

/* Take the next bundle into rc->bundle; QC_END after the last. */
extern QcStatus qc_merge_next(QcRecovery *rc, QcError *err);

/* Close what is open.  Tails then stand behind the last bundle taken. */
extern void qc_merge_end(QcRecovery *rc);

/* Let a damaged solo record stand for the missing entry; NULL when there is none that can. */
extern QcSpot *qc_merge_excuse(QcRecovery *rc, uint64_t seq);

/* The damaged place that may have held the entry, NULL when there is none. */
extern const QcSpot *qc_merge_suspect(const QcRecovery *rc, uint64_t seq);

/* ---- bundle ---- */

typedef enum QcBundleState
{
	QC_BUNDLE_WHOLE,
	QC_BUNDLE_DAMAGED,			/* whole but for damaged message records */
	QC_BUNDLE_PARTIAL,			/* a part is missing, or parts do not agree */
	QC_BUNDLE_VOID				/* nothing of it counts: an older epoch's */
} QcBundleState;

/* What the whole entry of a bundle is: either solo, or a decoded entry. */
typedef struct QcWhole
{
	const QcBundlePart *part;	/* that holds it */
	bool		solo;
	QcEntry		entry;
} QcWhole;

/*
 * Judge rc->bundle against rc->epochs.  whole is set unless partial or void; *why says what is wrong with a partial one.
 * QC_VERSION: the entry is of a newer format.
 */
extern QcStatus qc_bundle_judge(QcRecovery *rc, QcBundleState *state, QcWhole *whole,
								const char **why, QcError *err);

/* The append effect that a solo record stands for. */
extern QcEffect qc_bundle_solo_effect(const QcRecovery *rc, const QcWhole *whole);

/* Add the records of a bundle by hand (restoring). */
extern void qc_bundle_clear(QcBundle *bundle, uint64_t seq);
extern QcStatus qc_bundle_add(QcBundle *bundle, uint32_t log_index, uint64_t log,
							  const QcRecord *record, uint64_t file, uint64_t position,
							  QcError *err);
extern void qc_bundle_sort(QcBundle *bundle);

/* ---- epochs ---- */

/* Those of the state. */
extern QcStatus qc_epochs_reset(QcRecovery *rc, QcError *err);

/* One more, unless it is known; *last = it is the newest of all. */
extern QcStatus qc_epochs_add(QcRecovery *rc, uint64_t epoch, uint64_t first_seq, bool *last,
							  QcError *err);

/* Those that a whole entry begins. */
extern QcStatus qc_epochs_learn(QcRecovery *rc, const QcEntry *entry, QcError *err);

/* Had this epoch ended below seq? */
extern bool qc_epochs_ended(const QcEpochList *list, uint64_t epoch, uint64_t seq);

/* ---- giving up ---- */

/* rc->bundle belongs to what is given up. */
extern QcStatus qc_give_note(QcRecovery *rc, QcError *err);

/* Report it: entries from seq on. */
extern void qc_give_tell(QcRecovery *rc, uint64_t seq);

/* After replay: confirms that were given up still count for what is left. */
extern void qc_give_confirmed(QcRecovery *rc);

/* A log that the checkpoint knows cannot be read from there on.	Nothing is read of it. */
extern void qc_give_log(QcRecovery *rc, QcLogTail *tail, const QcError *why);

/* Are the lost logs those that may be given up? */
extern QcStatus qc_give_judge_logs(QcRecovery *rc, QcError *err);

/* Let a lost log go on in a new file. */
extern QcStatus qc_give_renew_log(QcRecovery *rc, QcLogTail *tail, QcLog *log, QcError *err);

/* ---- steps ---- */

/* Pass 1: fills in required and end of the report; QC_DAMAGED when something required is missing. */
extern QcStatus qc_recover_find_end(QcRecovery *rc, QcError *err);

/* Pass 2: apply everything below the end. */
extern QcStatus qc_recover_replay(QcRecovery *rc, QcError *err);

/* Apply the whole entry of rc->bundle, whose records stand in the logs. */
extern QcStatus qc_recover_apply(QcRecovery *rc, const QcWhole *whole, QcError *err);

extern QcStatus qc_recover_cut(QcRecovery *rc, QcError *err);

/* Files of a log above this one: renamed when they hold anything, otherwise removed. */
extern QcStatus qc_recover_cut_behind(QcRecovery *rc, uint64_t log, uint64_t file, QcError *err);

/* Directories that the state does not know. */
extern QcStatus qc_recover_retire(QcRecovery *rc, QcError *err);

/* Tell the state where each log stands and which files are ready for it; repair headers of empty files. */
extern QcStatus qc_recover_settle_logs(QcRecovery *rc, QcError *err);
extern QcStatus qc_recover_sync(QcRecovery *rc, QcError *err);

extern QcStatus qc_recover_read_stash(QcRecovery *rc, QcError *err);
extern const QcStashEntry *qc_recover_stashed(const QcRecovery *rc, uint64_t seq);
extern QcStatus qc_recover_restore(QcRecovery *rc, QcError *err);

/* Note the decisions of an entry that was seen in pass 1. */
extern QcStatus qc_decisions_note(QcRecovery *rc, uint64_t at, const QcEffect *effect, QcError *err);

/* Replay one decision effect. */
extern void qc_decisions_apply(QcRecovery *rc, uint64_t at, const QcEffect *effect);
extern QcStatus qc_recover_decide(QcRecovery *rc, QcError *err);

/* Epoch, verdicts, releases: everything that is logged in the new epoch, and made durable. */
extern QcStatus qc_recover_finish(QcRecovery *rc, QcError *err);

#endif							/* QC_RECOVER_INT_H */
