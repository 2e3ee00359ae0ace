/*
 * qc_rows.h
 *		State <-> checkpoint rows.
 *
 * A checkpoint is a consistent copy: qc_rows_dump runs under the state lock and encodes every row that
 * changed since the last one, so that the stored rows are exactly the state at seq `mark`, entries that are
 * applied and not settled included (row kind 'U').  Replay therefore starts at mark + 1 and needs no per-row
 * seq.  The caller commits the batch only after the log is durable through `mark` and PostgreSQL's WAL
 * through `commit_lsn` (a decision in the copy must not be ahead of the commit record it stands for).
 *
 * Keys: one byte of kind, then ids as big-endian u64, so that rows sort by id.
 *	 'M'					the mark and all counters, epochs
 *	 'L' log				tail: file, position, and what is allocated
 *	 'Q' queue	'G' queue group	 'P' partition	 'C' partition group  'E' lease	 'U' seq
 */
#ifndef QC_ROWS_H
#define QC_ROWS_H

#include "qc_batch.h"
#include "qc_log.h"
#include "qc_state.h"

#define QC_ROW_MARK			'M'
#define QC_ROW_LOG			'L'
#define QC_ROW_QUEUE		'Q'
#define QC_ROW_GROUP		'G'
#define QC_ROW_PARTITION	'P'
#define QC_ROW_CURSOR		'C'
#define QC_ROW_LEASE		'E'
#define QC_ROW_OPEN			'U'

typedef struct QcRowsMark
{
	uint64_t	seq;
	uint64_t	commit_lsn;
} QcRowsMark;

/* Bytes that a dump of everything dirty may take now. State lock. */
extern uint64_t qc_rows_size(const QcState *st);

/*
 * Encode dirty rows, tombstones and the mark; clears the dirty lists.  QC_SHORT (nothing changed) when the
 * batch has too little room.  Nothing dirty and the same seq: QC_END and an empty batch.  State lock.
 */
extern QcStatus qc_rows_dump(QcState *st, QcWriter *batch, QcRowsMark *mark, QcError *err);

/*
 * Load one row into a state that is being built; rows may come in key order of their kinds as the store
 * sorts them.  After the last row call qc_rows_loaded, which links what could not be linked before.
 */
extern QcStatus qc_rows_load(QcState *st, const uint8_t *key, size_t key_len, const uint8_t *value,
							 size_t value_len, QcError *err);
extern QcStatus qc_rows_loaded(QcState *st, int64_t monotonic, QcError *err);

#endif							/* QC_ROWS_H */
