/*
 * qlog_lease.h
 *		Answering a lease: which of its messages are meant, and where they are.
 *
 * Callers: fn_ack.c, fn_nack.c, fn_reject.c, fn_transaction.c; fn_pop.c remembers the ids of what it returns.
 */
#ifndef QLOG_LEASE_H
#define QLOG_LEASE_H

#include "qlog_fetch.h"
#include "qlog_stage.h"

#include "../core/qc_lease.h"

/* A lease as it stood when it was looked at; palloc'ed in the context of then. */
typedef struct QlogLease
{
	uint64		id;
	uint64		group;
	QlogQueue	queue;
	QlogName	queue_name;
	uint32		nspots;
	QlogSpot   *spots;			/* its messages in the order of their delivery */
} QlogLease;

/*
 * Look at a lease of this database.	false = there is none (any more).	42501 when its queue is not for the current role,
 * 55006 when it belongs to the open transaction of another session.  read: its messages
 * will be read.
 */
extern bool qlog_lease_look(uint64 id, bool read, QlogLease *lease);

/* Is the n-th argument, message_ids, given?	 22004 when it holds a NULL. */
extern bool qlog_ids_given(FunctionCallInfo fcinfo, int n);

/*
 * Keep only the messages with these ids (a uuid[] datum without NULLs) and those that this transaction has not answered already; reads
 * the messages unless they were popped by this session just before.  by_id = false: all of them.
 */
extern void qlog_lease_select(QlogLease *lease, bool by_id, Datum message_ids);

/* The messages as ranges for effects; at most lease->nspots, palloc'ed. */
extern QcAckItem *qlog_lease_ranges(const QlogLease *lease, uint32 *nranges);

/*
 * Stage the acknowledgement of the lease, or of the messages with these ids.	 Returns how many messages are meant; when
 * the lease is gone, the count of its acknowledgement if that is remembered (nothing is staged but the duty of the
 * transaction to have no other work), otherwise 0.
 */
extern int64 qlog_lease_ack(uint64 id, bool by_id, Datum message_ids);

/* Remember the ids of a delivery: an answer that names ids then reads nothing.	 ids: n x 16 bytes. */
extern void qlog_lease_remember(uint64 lease, const QlogSpot *spots, const uint8 *ids, uint32 n);

/* Are the ids of the lease's messages known without reading them? */
extern bool qlog_lease_remembered(uint64 lease);

/* Lease id out of an argument; 0 is none. */
static inline uint64
qlog_lease_id(Datum value)
{
	return (uint64) DatumGetInt64(value);
}

/* May this backend answer the lease?	State lock. */
static inline bool
qlog_lease_mine(const QcLease *lease, uint32 pid)
{
	return lease->owner == 0 || lease->owner == pid;
}

#endif							/* QLOG_LEASE_H */
