/*
 * qlog_floor.h
 *		The floor: up to which entry logs need not be whole any more, and the file FLOOR that says so (core/qc_dir.h).
 *
 * Callers: the checkpointer (logs of dropped queues), the reclaim worker.
 */
#ifndef QLOG_FLOOR_H
#define QLOG_FLOOR_H

#include "postgres.h"

#include "../core/qc_error.h"

/* Entries up to this seq are covered by everything that a start may begin with: the checkpoint. */
extern uint64 qlog_floor(void);

/* Have FLOOR say at least this, durably. */
extern QcStatus qlog_floor_raise(uint64 seq, QcError *err);

#endif							/* QLOG_FLOOR_H */
