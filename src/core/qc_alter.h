/*
 * qc_alter.h
 *		Changing the definition of a queue: its name, owner, flags, options and ACL.
 *
 * An entry that alters a queue carries the whole new definition.  It waits in a QcAlter of its own until the entry is
 * settled: then it replaces the old one, or is thrown away.  Of several that commit, the one of the newest entry stays
 * whatever the order in which they are settled.  Callers: qc_apply.c, qc_open.c, qc_catalog.c, qc_rows*.c.  State lock.
 */
#ifndef QC_ALTER_H
#define QC_ALTER_H

#include "qc_effect.h"
#include "qc_state.h"

/*
 * Make the definition out of the effect's fields (its ACL is added with qc_alter_grant).  promised: the objects were
 * promised by qc_plan_credit.	QC_FULL, or QC_VERSION for an option that is not known.
 */
extern QcStatus qc_alter_make(QcState *st, const QcQueueAlter *fields, uint64_t seq, bool promised,
							  QcRef *alter, QcError *err);

/* Add an element to an ACL, behind the last one. false = state memory is full. */
extern bool qc_grant_add(QcState *st, QcRef *first, uint32_t *ngrants,
						 const QcQueueAlterItem *item, bool promised);
extern void qc_grants_free(QcState *st, QcRef first);

/* As qc_alter_make with the ACL that the effect lists. */
extern QcStatus qc_alter_from_effect(QcState *st, const QcEffect *effect, uint64_t seq,
									 bool promised, QcRef *alter, QcError *err);

/*
 * The definition comes into force, unless a newer one is, and the QcAlter is freed.	Switching `ordered` costs a step per
 * message in flight in the default partition.
 */
extern void qc_alter_install(QcState *st, QcQueue *queue, QcRef alter);

/* It does not. */
extern void qc_alter_discard(QcState *st, QcRef alter);

/* Does the role own the queue or stand in its ACL? */
extern bool qc_queue_names_role(const QcState *st, const QcQueue *queue, uint32_t role);

#endif							/* QC_ALTER_H */
