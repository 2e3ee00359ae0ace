/*
 * qc_rows.h
 *		State <-> checkpoint rows.
 *
 * A checkpoint is a consistent copy: the stored rows are exactly the state at seq `mark`, entries that are applied and
 * not settled included (row kind 'H').  Replay therefore starts at mark + 1 and needs no per-row seq.	 qc_rows_dump takes
 * it under one hold of the state lock, in which it encodes every row that has changed since the last one.
 *
 * So that this hold is short when many rows have changed, rows may be dumped ahead, some at a time (qc_rows_ahead),
 * into the same batch.	 What changes again is dirty again, and its row stands once more in the batch, behind the older
 * one; what does not change is the same at `mark`.
 *
 * The caller commits the batch only after the log is durable through `mark` and PostgreSQL's WAL through `commit_lsn` (a
 * decision in the copy must not be ahead of the commit record it stands for).
 *
 * Keys: one byte of kind, then ids as big-endian u64.  The letters are in the order in which rows can be loaded, which
 * is the order in which the store returns them.  Every value begins with u8 version: a row is written in the newest one
 * of its kind, and older ones are read as if what came later had never been used.
 *	 'A'					the mark: seq, counters, epochs
 *	 'B' log				file and position of the first record above the mark
 *	 'C' queue	'D' queue group	 'E' partition	'F' lease  'G' partition group (cursor)	 'H' seq (open entry)
 *	 'I' lane position (message in a lane)
 */
#ifndef QC_ROWS_H
#define QC_ROWS_H

#include "qc_batch.h"
#include "qc_log.h"
#include "qc_state.h"

#define QC_ROW_MARK			'A'
#define QC_ROW_LOG			'B'
#define QC_ROW_QUEUE		'C'
#define QC_ROW_GROUP		'D'
#define QC_ROW_PARTITION	'E'
#define QC_ROW_LEASE		'F'
#define QC_ROW_CURSOR		'G'
#define QC_ROW_OPEN			'H'
#define QC_ROW_LANE_ITEM	'I'

/* The newest version of a kind of row; 0 for an unknown kind. */
extern uint8_t qc_row_version(uint8_t kind);

typedef struct QcRowsMark
{
	uint64_t	seq;
	uint64_t	commit_lsn;
	uint64_t	copy;			/* number of the checkpoint since the start */
} QcRowsMark;

/* About how many bytes a dump of everything dirty takes now. State lock. */
extern uint64_t qc_rows_estimate(const QcState *st);

/*
 * Dump rows ahead of the copy, about max_rows of them or as much as a few rows' bytes allow: a slice of a pass over what is dirty at its
 * beginning.	QC_OK: more of the pass is left; QC_END: it is over, and what is dirty now has changed meanwhile; QC_SHORT: the batch
 * has too little room for the next row, go on with a larger one that begins with the same bytes.  From the first slice on
 * the batch must be finished by qc_rows_dump and stored.	State lock.
 */
extern QcStatus qc_rows_ahead(QcState *st, QcWriter *batch, uint32_t max_rows, QcError *err);

/*
 * Encode dirty rows and the mark, behind what was dumped ahead; clears the dirty lists and frees deleted objects.
 * QC_SHORT (nothing changed) when the batch has too little room.  QC_END and an empty batch when nothing has changed since
 * the last checkpoint.  A batch that could not be stored must be stored before the next dump.	State lock.
 */
extern QcStatus qc_rows_dump(QcState *st, QcWriter *batch, QcRowsMark *mark, QcError *err);

/* The batch has been stored, everything that it relies on being durable.	State lock. */
extern void qc_rows_stored(QcState *st, const QcRowsMark *mark);

/*
 * What the state says now, when is it in a stored checkpoint?  A stamp taken after looking, and whether a checkpoint that was
 * taken later has been stored, or nothing was left to store.	State lock, at least shared.
 */
extern uint64_t qc_rows_stamp(const QcState *st);
extern bool qc_rows_is_stored(const QcState *st, uint64_t stamp);

/* Load one row, in the order in which the store returns them, into a state just laid out. */
extern QcStatus qc_rows_load(QcState *st, const uint8_t *key, size_t key_len, const uint8_t *value,
							 size_t value_len, QcError *err);

/*
 * After the last row: derive what is not stored (ready lists, counts, timers).	 now: wall clock; both in
 * microseconds.
 */
extern QcStatus qc_rows_loaded(QcState *st, int64_t now, int64_t monotonic, QcError *err);

#endif							/* QC_ROWS_H */
