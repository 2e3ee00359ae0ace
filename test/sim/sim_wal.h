/*
 * sim_wal.h
 *		The simulated PostgreSQL: its WAL, its commit log, its xids, its control file.
 *
 * Records are in shared memory when they are inserted and durable when they are flushed.  A power failure leaves every
 * flushed record and the first few of the others.	What was lost is forgotten entirely: positions in the WAL and xids that
 * only stood in lost records are used again.  Assigning an xid writes nothing.
 *
 * A transaction's table row is its commit record: the row is there when that record is.
 */
#ifndef SIM_WAL_H
#define SIM_WAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim_content.h"

#define SIM_TIMELINE 1

typedef enum SimWalType
{
	SIM_WAL_QLOG,				/* a record of qlog's resource manager */
	SIM_WAL_ROW,				/* a change of a table: all it does here is to name its xid */
	SIM_WAL_COMMIT,
	SIM_WAL_CHECKPOINT
} SimWalType;

typedef struct SimWalRecord
{
	SimWalType	type;
	uint32_t	kind;			/* QLOG: which of its records */
	uint32_t	txn;			/* COMMIT */
	uint64_t	xid;			/* 0 = none */
	uint64_t	end_lsn;
	SimBuffer  *body;			/* QLOG; dropped when no redo needs it any more */
} SimWalRecord;

typedef struct SimWal
{
	size_t		count;
	size_t		cap;
	SimWalRecord *records;
	size_t		nflushed;		/* of these are durable */
	uint64_t	next_xid;		/* shared memory */
	uint64_t	redo;			/* control file: where redo begins */
	uint64_t	control_xid;	/* control file: next xid at that point */
	uint64_t	keep;			/* records from this LSN on are kept whole for a backup, UINT64_MAX
								 * = no backup */
} SimWal;

extern void sim_wal_init(SimWal *wal);
extern void sim_wal_copy(SimWal *to, const SimWal *from);
extern void sim_wal_free(SimWal *wal);

/* Insert a record; returns the LSN of its end. */
extern uint64_t sim_wal_insert(SimWal *wal, SimWalType type, uint32_t kind, uint64_t xid, uint32_t txn,
							   const void *body, size_t len);

extern uint64_t sim_wal_end(const SimWal *wal); /* of what is inserted */
extern uint64_t sim_wal_flushed(const SimWal *wal); /* of what is durable */

/* Everything up to this LSN is durable. */
extern void sim_wal_flush(SimWal *wal, uint64_t lsn);

/* The server died: `keep` of the records that were not flushed survive; xids are handed out from the right one on. */
extern void sim_wal_crash(SimWal *wal, size_t keep);

/* Write the control file: redo begins at this LSN, with this next xid. */
extern void sim_wal_control(SimWal *wal, uint64_t redo, uint64_t next_xid);

/* The commit log, as a running server sees it: committed, also when that is not flushed. */
extern bool sim_wal_committed(const SimWal *wal, uint64_t xid);

/* Set rows[txn] = 1 for each of ntxns transactions whose row is in the table. */
extern void sim_wal_rows(const SimWal *wal, uint8_t *rows, uint32_t ntxns);

#endif							/* SIM_WAL_H */
