/*
 * qc_recover.h
 *		Start: from checkpoint rows and logs to the state that may serve (PROTOCOL.md 2).
 *
 *	 1. logs		the checkpoint's logs must exist; others are unfinished creations (-> *.dead)
 *	 2. end			one pass over every log's tail from the mark: M = max(mark, largest durable_seq seen in any
 *					checksummed record, behind damage too); seqs in (mark, M] are required, E = first missing or
 *					incomplete seq above M
 *	 3. replay		complete entries in seq order through qc_apply_effect
 *	 4. cut			every record with seq >= E, bytes kept in <file>.cut.<seq>, files re-zeroed; all files from the mark
 *					on are synced
 *	 5. restore		committed carried entries of the stash with seq >= E are appended again, missing seqs below the
 *					largest become void entries, gaps in positions aborted ranges
 *	 6. epoch		a new one, its WAL record flushed first, when anything was cut, restored or voided, when the
 *					stash holds any seq >= E, on a new timeline, or in a copy
 *	 7. decide		joint entries without a counting decision: in the stash or at or below the confirmed seq ->
 *					the commit log is asked; otherwise aborted.	 The verdicts are logged
 *	 8. release		leases whose pop has no commit marker
 *	 9. sync		everything recovered; only then the caller removes the stash and opens the gate
 *
 * Nothing is written when nothing has to be changed.  Any number of crashes in between changes nothing in the
 * result.  Runs in one process, before anything is served; allocates.
 */
#ifndef QC_RECOVER_H
#define QC_RECOVER_H

#include "qc_dir.h"
#include "qc_plan.h"

/* What recovery has to know of the server.	 None of them jumps: what fails is said in err and ends recovery. */
typedef struct QcRecoverHooks
{
	void	   *context;

	/* Does this point lie in the server's history, at or before the end of redo? */
	bool		(*in_history) (void *context, uint32_t timeline, uint64_t lsn);

	/* Verdict of a full xid whose WAL record was durable; in progress counts as aborted. */
	QcStatus	(*xid_committed) (void *context, uint64_t xid, bool *committed, QcError *err);

	/* Insert and flush the epoch WAL record. */
	QcStatus	(*new_epoch) (void *context, uint64_t old_epoch, uint64_t new_epoch,
							  uint64_t first_seq, QcError *err);
	QcStatus	(*random) (void *context, uint64_t *value, QcError *err);

	/*
	 * Called at the beginning of every step ("end", "replay", "stash", "retire", "cut", "settle",
	 * "sync", "restore", "decide") and often within; returning false ends recovery with
	 * QC_INTERRUPTED.
	 */
	bool		(*progress) (void *context, const char *phase, uint64_t done, uint64_t total);

	/*
	 * Sync everything that the directory's file systems hold, at once; NULL = cannot.  With *done
	 * false it was not to be, and each file is synced by itself.
	 */
	QcStatus	(*sync_all) (void *context, bool *done, QcError *err);

	/*
	 * Messages that are in entries given up, or that would have to be (see refused).	NULL = nobody
	 * wants to know.
	 */
	void		(*given_up) (void *context, uint64_t partition, uint64_t first, uint64_t end);
} QcRecoverHooks;

typedef struct QcRecover
{
	QcState    *st;				/* checkpoint rows are loaded: state at seq = mark, or empty */
	QcRing	   *ring;
	QcFiles    *files;
	uint64_t	segment_size;
	const uint8_t *stash;		/* whole stash file, NULL when there is none */
	size_t		stash_len;
	uint32_t	timeline;
	uint64_t	redo_end;		/* end of redo, not 0: LSN of the verdicts given here, which count
								 * wherever that point is in the history */
	bool		copied;			/* the directory is a copy: durable_seq counts nothing, cut at the
								 * first gap */
	uint64_t	floor;			/* qc_dir_read_floor: refused when the mark is below it; raised
								 * when an old log goes */
	uint64_t	snapshot;		/* qc_snapshot_oldest: the floor is not raised above it; 0 = none */
	bool		allow_gap;		/* a committed referenced entry may be missing */
	uint64_t	give_up_seq;	/* given_seq of a refused start: entries from it on are given up; 0
								 * = none */
	uint32_t	give_up_logs;	/* given_logs of that start: so many logs go on without their files */
	bool		new_timeline;	/* the epoch's timeline is not this one */
	int64_t		now;			/* wall clock, microseconds */
	int64_t		monotonic;
	QcRecoverHooks hooks;

	/* report */
	uint64_t	mark;			/* where replay began */
	uint64_t	required;		/* M */
	uint64_t	end;			/* E */
	uint64_t	replayed;		/* entries */
	uint64_t	cut_bytes;
	uint32_t	restored;
	uint32_t	voided;
	uint32_t	committed;		/* joint entries decided here */
	uint32_t	aborted;
	uint32_t	damaged_queues;
	bool		changed;		/* anything was written */
	bool		refused;		/* it would go on if what follows were given up; otherwise that was
								 * given up */
	uint64_t	given_seq;		/* the first entry; 0 = none */
	uint64_t	given_entries;	/* how many, it and those behind */
	uint32_t	given_logs;		/* logs whose files are gone or too short */
} QcRecover;

/*
 * On QC_OK the state serves, ring and logs stand at the end, and st->seq is the last used seq.	 QC_DAMAGED,
 * QC_MISSING, QC_VERSION: the directory must not be opened; nothing was cut below what is required.
 */
extern QcStatus qc_recover(QcRecover *recover, QcError *err);

#endif							/* QC_RECOVER_H */
