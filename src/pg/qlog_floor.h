/*
 * qlog_floor.h
 *		The file FLOOR: up to which entry logs need not be whole any more (core/qc_dir.h).	What may be written there is qlog_start_floor
 *		(qlog_snapshot.h).
 *
 * Callers: the checkpointer (logs of dropped queues), the reclaim worker.
 */
#ifndef QLOG_FLOOR_H
#define QLOG_FLOOR_H

#include "postgres.h"

#include "../core/qc_error.h"

/* Have FLOOR say at least this, durably. */
extern QcStatus qlog_floor_raise(uint64 seq, QcError *err);

#endif							/* QLOG_FLOOR_H */
