/*
 * qc_catalog.h
 *		Queues, partitions and groups: making and removing their objects.
 *
 * Ids come from directory-wide counters that never go back (qc_state.h), so an id is also the incarnation.
 * State lock.	`promised`: the objects were promised by qc_plan_credit.
 */
#ifndef QC_CATALOG_H
#define QC_CATALOG_H

#include "qc_effect.h"
#include "qc_state.h"

/* Make a queue (state CREATING or LIVE) with its default group and default partition. */
extern QcStatus qc_queue_create(QcState *st, const QcQueueCreate *create, int64_t created_at,
								bool live, bool promised, QcError *err);
extern QcStatus qc_partition_create(QcState *st, const QcPartitionCreate *create, bool promised,
									QcError *err);

/* Only the object and its tables, for loading rows: no cursors, no default partition. */
extern QcQueue *qc_queue_load(QcState *st, uint64_t id, uint32_t database, const QcStr *name);
extern QcPartition *qc_partition_load(QcState *st, uint64_t id, QcQueue *queue, const QcStr *name,
									  uint8_t lane);

/* Copy a name into an object of its class; 0 when full. */
extern QcRef qc_name_put(QcState *st, const QcStr *name, bool promised);

/* Free a partition without entries that are not settled, with its cursors, or the items of a lane; false = the budget is used up. */
extern bool qc_partition_free(QcState *st, QcPartition *partition, uint32_t *budget);

/* The queue is dropped: its name is free at once, its rows are freed by qc_queue_sweep. */
extern void qc_queue_kill(QcState *st, QcQueue *queue);

/* Swap the queue's name with *name, a name object; both stay in use.	The new one is known from now on. */
extern void qc_queue_rename(QcState *st, QcQueue *queue, QcRef *name, uint16_t *name_len);

/* Free up to budget rows of dropped queues; true = more to do. */
extern bool qc_queue_sweep(QcState *st, uint32_t budget);

#endif							/* QC_CATALOG_H */
