/*
 * qc_order.h
 *		The decision of an entry that changes groups, seeks or purges, logged with its commit.
 *
 * Settling such an entry does not commute with pushes and deliveries (qc_apply.h).	So the commit of its transaction
 * logs the decision itself, in an entry of its own for which it took the credit before; applying that entry is what
 * settles the first one, in the same hold of the state lock, and every replay does the same at the same seq.  When the
 * server goes down before it is durable, recovery decides as for every joint entry, and settles it at the end, behind what
 * others have committed meanwhile; so nobody is told of the commit before.
 *
 * A purge is told what it spares by a purge effect in that entry, since only now it is known which entries are not
 * decided.
 */
#ifndef QC_ORDER_H
#define QC_ORDER_H

#include "qc_plan.h"

/* Size of the effects that an ordered plan's decision may need; transactions: as many as may be committing at a time. */
extern size_t qc_order_size(const QcPlan *plan, uint32_t transactions);

/*
 * Encode them: the plan's transaction has committed, lsn is the end of its commit record, which is flushed.  Returns their
 * number.  State lock, held until they are applied.
 */
extern uint32_t qc_order_put(QcState *st, const QcPlan *plan, uint32_t timeline, uint64_t lsn,
							 QcWriter *w);

#endif							/* QC_ORDER_H */
