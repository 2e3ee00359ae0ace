/*
 * qc_lane.h
 *		Lanes: hidden partitions of messages that are dead, or not due yet.
 *
 * A lane has no cursors.  Each message in it is one QcLaneItem, listed by position from the moment its entry is applied;
 * it counts, and can be seen, from the moment that entry is settled.  Entries settle in any order: an item that a later
 * entry takes out before its own entry is settled (recovery only) waits as QC_LANE_ITEM_GONE for that.
 *
 * Callers: qc_apply.c, qc_open.c, rows, views.  State lock.
 */
#ifndef QC_LANE_H
#define QC_LANE_H

#include "qc_state.h"

/*
 * A new item in state QC_LANE_ITEM_OPEN at the lane's end; positions only grow.  The caller fills in the rest.  NULL =
 * state memory is full (never when it was promised).
 */
extern QcLaneItem *qc_lane_add(QcState *st, QcPartition *lane, uint64_t position, bool promised);

/* The partition that a new item is for, or comes from; it stays as long as the item. */
extern void qc_lane_aim(QcState *st, QcLaneItem *item, uint64_t target);

/* The item at a position of a lane, in whatever state; NULL = there is none. */
extern QcLaneItem *qc_lane_find(QcState *st, const QcPartition *lane, uint64_t position);

/* The item's entry is settled: it counts from now on, or it never was. */
extern void qc_lane_settle(QcState *st, QcLaneItem *item, bool committed);

/* Take a live item out of its lane; one whose entry is open goes when that is settled. */
extern void qc_lane_remove(QcState *st, QcLaneItem *item);

/* Take out every item at these positions. */
extern void qc_lane_remove_range(QcState *st, QcPartition *lane, uint64_t first, uint32_t count);

/*
 * The first item, live or not, at or above a position; NULL = there is none.  hint: an item of the lane at or below the
 * position, found before, may have gone meanwhile: then the search begins at the lane's head.
 */
extern QcLaneItem *qc_lane_seek(QcState *st, QcPartition *lane, uint64_t position, QcRef hint);

/* Free up to *budget items of a lane that goes away; true = none is left. */
extern bool qc_lane_sweep(QcState *st, QcPartition *lane, uint32_t *budget);

/*
 * Rows have been loaded: give each open item of a dead letter the copy that it stands for; until then its lane_item names
 * the lane.
 */
extern void qc_lane_bind(QcState *st, QcOpen *open);

#endif							/* QC_LANE_H */
