/*
 * sim_wal.c
 *		The simulated PostgreSQL (sim_wal.h).
 */
#include "sim_wal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_LSN	1000
#define FIRST_XID	700
#define HEAD_SIZE	24			/* of a record */

void
sim_wal_init(SimWal *wal)
{
	memset(wal, 0, sizeof(*wal));
	wal->redo = FIRST_LSN;
	wal->next_xid = wal->control_xid = FIRST_XID;
	wal->keep = UINT64_MAX;
}

void
sim_wal_copy(SimWal *to, const SimWal *from)
{
	*to = *from;
	to->cap = from->count;
	to->records = sim_alloc((from->count + 1) * sizeof(SimWalRecord));
	for (size_t i = 0; i < from->count; i++)
	{
		to->records[i] = from->records[i];
		if (to->records[i].body != NULL)
			sim_buffer_share(to->records[i].body);
	}
}

void
sim_wal_free(SimWal *wal)
{
	for (size_t i = 0; i < wal->count; i++)
		sim_buffer_drop(wal->records[i].body);
	free(wal->records);
}

uint64_t
sim_wal_end(const SimWal *wal)
{
	return wal->count == 0 ? FIRST_LSN : wal->records[wal->count - 1].end_lsn;
}

uint64_t
sim_wal_flushed(const SimWal *wal)
{
	return wal->nflushed == 0 ? FIRST_LSN : wal->records[wal->nflushed - 1].end_lsn;
}

uint64_t
sim_wal_insert(SimWal *wal, SimWalType type, uint32_t kind, uint64_t xid, uint32_t txn,
			   const void *body, size_t len)
{
	uint64_t	lsn = sim_wal_end(wal) + HEAD_SIZE + len;

	assert(xid < wal->next_xid);
	if (wal->count == wal->cap)
	{
		wal->cap = wal->cap * 2 + 64;
		wal->records = sim_realloc(wal->records, wal->cap * sizeof(SimWalRecord));
	}
	wal->records[wal->count++] = (SimWalRecord)
	{
		.type = type, .kind = kind, .txn = txn, .xid = xid, .end_lsn = lsn,
		.body = type == SIM_WAL_QLOG ? sim_buffer_new(body, len) : NULL
	};
	return lsn;
}

void
sim_wal_flush(SimWal *wal, uint64_t lsn)
{
	while (wal->nflushed < wal->count && wal->records[wal->nflushed].end_lsn <= lsn)
		wal->nflushed++;
}

void
sim_wal_crash(SimWal *wal, size_t keep)
{
	assert(wal->nflushed + keep <= wal->count);
	while (wal->count > wal->nflushed + keep)
		sim_buffer_drop(wal->records[--wal->count].body);
	wal->nflushed = wal->count;
	wal->next_xid = wal->control_xid;
	for (size_t i = 0; i < wal->count; i++)
	{
		if (wal->records[i].xid >= wal->next_xid)
			wal->next_xid = wal->records[i].xid + 1;
	}
}

void
sim_wal_control(SimWal *wal, uint64_t redo, uint64_t next_xid)
{
	assert(redo >= wal->redo && redo <= sim_wal_flushed(wal));
	wal->redo = redo;
	wal->control_xid = next_xid;
	for (size_t i = 0; i < wal->count && wal->records[i].end_lsn <= redo &&
		 wal->records[i].end_lsn <= wal->keep; i++)
	{
		sim_buffer_drop(wal->records[i].body);
		wal->records[i].body = NULL;
	}
}

bool
sim_wal_committed(const SimWal *wal, uint64_t xid)
{
	for (size_t i = wal->count; i > 0; i--)
	{
		if (wal->records[i - 1].type == SIM_WAL_COMMIT && wal->records[i - 1].xid == xid)
			return true;
	}
	return false;
}

void
sim_wal_rows(const SimWal *wal, uint8_t *rows, uint32_t ntxns)
{
	memset(rows, 0, ntxns);
	for (size_t i = 0; i < wal->count; i++)
	{
		if (wal->records[i].type == SIM_WAL_COMMIT && wal->records[i].txn < ntxns)
			rows[wal->records[i].txn] = 1;
	}
}
