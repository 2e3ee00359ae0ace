/*
 * qc_log.h
 *		Logs: where the next record of each goes, and the zero-filled room it goes into.
 *
 * A log appends to its active file at `tail`, inside bytes that were zero-filled and synced before
 * (`allocated`), and rolls to the next file, which must exist already, when a record does not fit.
 * After a seq is reserved nothing is created or extended: a transaction takes a credit in each log
 * first, and whoever lacks room extends the log without any lock that appenders need.
 *
 * Invariant: credits outstanding always fit, in whatever order they are used: either all of them into
 * the rest of the active file, or all of them into the files ahead, where each may waste up to the
 * largest outstanding record.
 *
 * State lock: everything except qc_log_create_files and qc_log_extend_io, which do I/O.
 */
#ifndef QC_LOG_H
#define QC_LOG_H

#include "qc_files.h"
#include "qc_state.h"

#define QC_EXTEND_MIN	65536
#define QC_EXTEND_MAX	(16u * 1024 * 1024)

typedef struct QcLog
{
	uint64_t	id;
	QcRef		id_next;
	QcRef		next;			/* of all logs */
	QcRef		previous;
	QcLink		links[QC_LOGS_LISTS];
	uint32_t	lists;			/* in which it stands: bits, by QcLogList */
	uint32_t	unused;
	uint64_t	file;			/* active file */
	uint64_t	tail;			/* where its next record goes */
	uint64_t	allocated;		/* its zero-filled and synced size */
	uint64_t	last_file;		/* newest file that exists; those after `file` are empty */
	uint64_t	last_allocated; /* zero-filled size of last_file; files between are full */
	uint64_t	credit;			/* bytes promised and not used yet */
	uint64_t	record_max;		/* largest record among them */
	uint64_t	index_file;		/* the memory index holds every record of this log from */
	uint64_t	index_position; /* this file and position on */
	uint64_t	nindexed;		/* index entries of this log in memory */
	QcList		index;			/* its entries, oldest first, through QcIndexEntry.of_log */
	uint64_t	dirty_first;	/* write lock: files written and not synced, 0 = none */
	uint64_t	dirty_last;
	QcRef		dirty_next;		/* write lock: list of such logs */
	uint64_t	looked_at;		/* checkpointer: where it stood when it was last looked at ... */
	int64_t		dedup_since;	/* of the last start: since when dedup ids in it counted */
	int64_t		last_dedup;		/* newest push with a dedup id that is known of; 0 = none */
	uint32_t	nqueues;		/* queues whose messages go here; q0: 0 */
	uint32_t	grown;			/* ... and how many looks in a row have found it grown */
	uint64_t	dropped_seq;	/* its last queue went away at this seq: removable once the mark is
								 * there */
	uint64_t	deaths;			/* grows when messages in it are gone: reclaim looks again */
	uint64_t	first_file;		/* no file below it exists, as far as reclaim knows */
	QcDirty		dirty;
} QcLog;

/* Where a record goes. */
typedef struct QcPlace
{
	uint64_t	file;
	uint64_t	position;
	bool		rolled;			/* first record of its file: the header's first_seq must be written */
} QcPlace;

/* What somebody has to zero-fill before a credit can be given. */
typedef struct QcExtend
{
	uint64_t	log;
	uint64_t	file;
	uint64_t	from;			/* 0 with create */
	uint64_t	to;
	uint64_t	least;			/* the smallest `to` that the credit needs, 0 = made ahead of need */
	bool		create;
} QcExtend;

extern QcLog *qc_log_by_id(QcState *st, uint64_t id);

/* Put a log at the end of a list unless it stands there; take it off.  State lock, also for the first one of a list, NULL = none. */
extern void qc_log_list(QcState *st, QcLog *log, QcLogList list);
extern void qc_log_unlist(QcState *st, QcLog *log, QcLogList list);

static inline QcLog *
qc_log_listed(QcState *st, QcLogList list)
{
	return QC_AT(st, QcLog, st->log_lists[list].head);
}

/* The log that takes a queue's messages: its own, or one of the shared ones, whose number is fixed (qc_dir.h). */
static inline uint64_t
qc_log_of_queue(uint32_t shards, uint64_t queue)
{
	return shards == 0 ? queue : 1 + queue % shards;
}

/*
 * Logs that were made with the directory and stay as long as it: the system log and shared ones.	Others come and go
 * with their queue.
 */
static inline bool
qc_log_stays(uint32_t shards, uint64_t log)
{
	return log <= shards;
}

QC_MARK_DIRTY(log, QcLog, LOG)

/*
 * Add a log to the state; its files exist (qc_log_create_files).  Done before the entry that creates its queue, so
 * that this entry can take credit in it.	NULL when the state memory is full.
 */
extern QcLog *qc_log_add(QcState *st, uint64_t id, uint64_t file, uint64_t tail, uint64_t allocated,
						 bool promised);

/*
 * Take a log that nothing needs any more out of the state: its queues are gone, no credit stands, and
 * qc_start_floor has passed dropped_seq.  Its row is deleted by the next dump; only after that dump is stored
 * may the directory be removed.  0 = there is none.  Its id is returned.
 */
extern uint64_t qc_log_remove_next(QcState *st);

/* Is there a log whose queues are gone: one that waits for qc_start_floor, and one that does not? */
extern void qc_log_removal(QcState *st, bool *waits, bool *ready);

/* A log whose creation was undone before any queue used it; one that stays does. */
extern void qc_log_abandon(QcState *st, QcLog *log);

/*
 * Rename the directories to *.dead, sync their parents, unlink their files.	 No lock.  What fails is left, an unknown directory,
 * which the next start retires; the first failure is reported.
 */
extern QcStatus qc_log_remove_files(QcFiles *files, const uint64_t *logs, uint32_t n, QcError *err);

/*
 * The active file is closed though it has room, and the next one, which exists and is empty, becomes active.  false = not now:
 * nothing stands in the active one, there is no next one, or credits outstanding would not fit.
 */
extern bool qc_log_seal(QcState *st, QcLog *log, uint64_t segment_size);

/* Ids of logs, at most max of them; *at: where to go on, 0 at first.	Returns their number, 0 = there are no more. */
extern uint32_t qc_log_ids(QcState *st, uint32_t *at, uint64_t *ids, uint32_t max);

/* Messages of the queue are gone. */
static inline void
qc_log_died(QcState *st, const QcQueue *queue)
{
	QcLog	   *log = QC_AT(st, QcLog, queue->log);

	if (log != NULL)
		log->deaths++;
}

/*
 * Promise `bytes` of records, the largest of `record` bytes.  QC_OK, or QC_BUSY with *extend set: do
 * that (qc_log_extend_io), tell (qc_log_extended), and try again.
 */
extern QcStatus qc_log_credit(QcState *st, QcLog *log, uint64_t bytes, uint64_t record,
							  uint64_t segment_size, QcExtend *extend);
extern void qc_log_uncredit(QcState *st, QcLog *log, uint64_t bytes);

/* Take the next place for a record of this size out of the credit: cannot fail. */
extern QcPlace qc_log_place(QcState *st, QcLog *log, uint64_t size, uint64_t segment_size);

/* Zero-fill and sync (and create) as told; no lock held.	What was done of it is undone as far as possible when it fails. */
extern QcStatus qc_log_extend_io(QcFiles *files, const QcExtend *extend, QcError *err);
extern void qc_log_extended(QcState *st, const QcExtend *extend, uint64_t segment_size);

/* Make the directory of a log, and those above it, synced; *existed = it was there. */
extern QcStatus qc_log_make_directory(QcFiles *files, uint64_t log, bool *existed, QcError *err);

/*
 * Make the directory of a new log with its first file (header, `allocated` zero-filled bytes), all of
 * it synced.  What an earlier unfinished attempt left is renamed to *.dead.
 */
extern QcStatus qc_log_create_files(QcFiles *files, uint64_t log, uint64_t allocated, QcError *err);

#endif							/* QC_LOG_H */
