/*
 * qc_lease.h
 *		Leases: messages given to a consumer until they are answered or the time is over.
 *
 * A lease belongs to the transaction that popped it (owner) until its pop commits; then it runs for its time.
 * While an open entry acknowledges from it (pin_seq) it can neither expire nor be answered by anybody else.
 * State lock.
 */
#ifndef QC_LEASE_H
#define QC_LEASE_H

#include "qc_apply.h"
#include "qc_cursor.h"

/* Deliver: new lease over these runs.	QC_FULL, QC_EXISTS, QC_DAMAGED. */
extern QcStatus qc_lease_deliver(QcState *st, const QcDeliver *deliver, const QcEffect *effect,
								 const QcApply *apply, QcError *err);

/* The pop's transaction committed: the lease runs from now on. */
extern void qc_lease_commit(QcState *st, QcLease *lease, int64_t monotonic);
extern void qc_lease_renew(QcState *st, QcLease *lease, int64_t lease_us, int64_t monotonic);

/*
 * End the lease without an answer: its messages come back.  In an ordered partition only the lowest one is charged with
 * the attempt: those behind it were not necessarily looked at.  When there are more than `messages`, those that open
 * entries acknowledge come back uncharged: they are done as soon as these are settled.
 */
extern void qc_lease_release(QcState *st, QcLease *lease, uint32_t messages, const QcReturn *how);

/*
 * nack messages [first, first + count), or with QC_NACK_REST everything from first on, of which only the lowest one is
 * charged: what an answer in an ordered partition says, so that a replay need not know whether it was.  Ends the lease
 * when none is left.	 Returns how many were given back.
 */
extern uint32_t qc_lease_nack(QcState *st, QcLease *lease, QcPartition *partition, uint64_t first,
							  uint32_t count, const QcReturn *how);

/* Messages [first, first + count) of the lease are done; does not end the lease. Returns how many were. */
extern uint32_t qc_lease_done(QcState *st, QcLease *lease, QcPartition *partition, uint64_t first,
							  uint32_t count);

/* Free a lease without slots. */
extern void qc_lease_destroy(QcState *st, QcLease *lease);

/* Free the lease when it holds nothing any more; true = it is gone. */
extern bool qc_lease_end_if_empty(QcState *st, QcLease *lease);

/*
 * An open entry acknowledges from the lease, or that entry was undone.  QC_PIN_PROMISED: a transaction that commits holds
 * it until its entry, which takes the pin over, has a seq; never stored.
 */
#define QC_PIN_PROMISED UINT64_MAX
extern void qc_lease_pin(QcState *st, QcLease *lease, uint64_t seq);
extern void qc_lease_unpin(QcState *st, QcLease *lease, int64_t monotonic);

/* The slot of a position in a lease; NULL when the lease does not hold it. */
extern QcSlot *qc_lease_slot(QcState *st, const QcLease *lease, const QcPartition *partition,
							 uint64_t position);

/*
 * Load from a checkpoint row: an empty lease (NULL = full), slots attached one by one, then its clock started
 * (false = full).
 */
extern QcLease *qc_lease_load(QcState *st, uint64_t id, QcQueue *queue, QcGroup *group);
extern void qc_lease_attach(QcState *st, QcLease *lease, QcSlot *slot);
extern bool qc_lease_start(QcState *st, QcLease *lease, int64_t monotonic);

#endif							/* QC_LEASE_H */
