/*
 * staging.h
 *		Operations of a transaction, staged for a plan as the server stages them.
 *
 * Messages tell a number at the beginning of their data, then come dots.
 */
#ifndef STAGING_H
#define STAGING_H

#include "qc_plan.h"

#define STAGED_MAX 16

extern QcOp staged[STAGED_MAX];
extern uint32_t nstaged;
extern QcPlan plan;
extern QcError err;

/* Memory for plans (QcAlloc); NULL after so many pieces, UINT32_MAX = never. */
extern void *stage_alloc(void *context, size_t size);
extern uint32_t allocations_left;

/* Nothing is staged, all memory is given back. */
extern void stage_clear(void);

/* The plan is done with: the next thing staged clears. */
extern void stage_done(void);
extern void stage_undone(void); /* it is not, after all */

/* Pieces of memory given out, and giving back all but the first n. */
extern uint32_t stage_allocated(void);
extern void stage_free(uint32_t n);

/* count frames with `size` bytes of data into op: numbers from `number` on. */
extern void stage_frames(QcOp *op, uint64_t number, uint32_t count, size_t size);

extern void stage_push(uint64_t partition, uint64_t log, uint64_t number, uint32_t count, size_t size);

/* A copy in a lane of the message at this position of partition 101. */
extern void stage_dead(uint64_t lane, uint64_t log, uint64_t position);
extern void stage_effect(QcEffectKind kind, const void *fixed, const void *items, size_t item_size,
						 uint32_t n);

/* An effect that is encoded already, whose bytes stay where they are. */
extern void stage_bytes(const uint8_t *effect, size_t len);

/* Objects that a delivery among the effects needs, for the next plan that is built. */
extern void stage_needs(uint32_t nslots, uint32_t nleases);

/* Build the plan of what is staged. */
extern QcStatus build(uint64_t xid, uint16_t flags, uint64_t segment);

#endif							/* STAGING_H */
