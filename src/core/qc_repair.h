/*
 * qc_repair.h
 *		What a repair does to the state: messages that cannot be read any more are gone, and the queue serves again.
 *
 * Both are immediate effects that name what was found on the disk of the server that logged them, so that every replay, and
 * every copy, forgets the same messages, whether or not it could read them.	State lock.
 */
#ifndef QC_REPAIR_H
#define QC_REPAIR_H

#include "qc_apply.h"

/* Apply a lost effect.  QC_DAMAGED: positions that the partition never had. */
extern QcStatus qc_repair_lost(QcState *st, const QcApply *apply, const QcEffect *effect, QcError *err);

extern void qc_repair_done(QcState *st, const QcRepair *repair);

/* Put a queue out of service, unless it is: this place of its log is damaged.  true = it was in service. */
extern bool qc_queue_damage(QcState *st, QcQueue *queue, uint64_t file, uint64_t position);

#endif							/* QC_REPAIR_H */
