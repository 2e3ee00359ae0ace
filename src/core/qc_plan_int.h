/*
 * qc_plan_int.h
 *		Inside a plan's second half: what its files share (qc_plan.h is the contract).
 *
 *	 qc_credit.c	what is promised: checks, credit, and giving it back
 *	 qc_reserve.c	seq, positions and places
 *	 qc_fill.c		the bytes, in the ring and in the WAL
 */
#ifndef QC_PLAN_INT_H
#define QC_PLAN_INT_H

#include "qc_plan.h"

/* Numbers of state objects, by class. */
typedef struct QcWants
{
	uint32_t	n[QC_CLASS_COUNT];
} QcWants;

/*
 * The reservation begins: what the credit held back from others is let go, and what it promised may be taken.  The
 * promises that stand then, for qc_credit_end.	 State lock.
 */
extern QcWants qc_credit_use(QcState *st, QcPlan *plan);

/*
 * The reservation has taken what it needs: the rest of the credit is given back (a delivery of fewer messages, a name or an
 * item that came to nothing).	State lock, held since qc_credit_use.
 */
extern void qc_credit_end(QcState *st, QcPlan *plan, const QcWants *before);

#endif							/* QC_PLAN_INT_H */
