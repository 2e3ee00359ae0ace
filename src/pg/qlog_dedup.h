/*
 * qlog_dedup.h
 *		Dedup ids of a transaction's pushes: known ones are answered, new ones are claimed before the commit.
 *
 * Callers: qlog_message.c at the push, qlog_xact.c at the end of the transaction.
 */
#ifndef QLOG_DEDUP_H
#define QLOG_DEDUP_H

#include "qlog_stage.h"

#include "../core/qc_plan.h"

/*
 * Has a message with this dedup id been pushed to the partition within the window, by a transaction that has committed,
 * or by this one?  Then id is that message's, which cannot be lost any more (for this transaction's own: not without it).
 */
extern bool qlog_dedup_known(const QlogTarget *target, const uint8 *hash, uint8 id[QC_ID_SIZE]);

/* Refuse a duplicate with 23505. */
extern void qlog_dedup_refuse(const QcMessage *message) pg_attribute_noreturn();

/*
 * PRE_COMMIT, before the plan is built: claim every staged dedup id, so that no twin can come any more.	Waits,
 * interruptibly and holding no claim, while another transaction that commits has one of them.  A push that came second
 * meanwhile is dropped; in queue_transaction it raises 23505.  53400 when qlog.dedup_memory is full.
 */
extern void qlog_dedup_claim(void);

/* The claims are the plan's from its reservation on. */
extern void qlog_dedup_attach(QcPlan *plan);

/* End of the transaction.  reserved: the claims have gone to an entry, which is settled.  Never raises. */
extern void qlog_dedup_end(bool reserved);

/* The memory of qlog_stage_context() is given back. */
extern void qlog_dedup_forget(void);

#endif							/* QLOG_DEDUP_H */
