/*
 * qc_group.h
 *		Consumer groups: their life, where they stand in partitions they have not looked at, seeking.
 *
 * Making, dropping or seeking a group over a million partitions costs the same as over one: the group has a start rule
 * (QC_START_*), and a partition that has no cursor for it stands where the rule says.  The cursor is made
 *
 *	 - by the next push to the partition, before it takes positions (qc_groups_follow), so that "what is pushed from
 *	   now on" stays exact;
 *	 - by pops of the group, which look at QC_POP_UNSCANNED_MAX partitions at a time (qc_group_scan);
 *	 - by whatever else names partition and group (qc_group_cursor).
 *
 * It makes no difference to what is delivered when a cursor is made, so none of this is logged.  The exception is a rule
 * that only the messages can answer (QC_START_TIME): a pop searches them without the lock and logs what it found
 * (QC_SEEK_FOUND).
 *
 * A seek of a whole group replaces it by a new group of the same name without leases, and a drop just kills it: in both
 * cases the old one is DEAD, found by nobody, and its cursors are freed little by little (qc_group_sweep).
 *
 * Group catalog changes of a transaction take effect at the seq of its decision, which its own commit logs: pushes,
 * deliveries and seeks have one order, the same at every replay.
 *
 * All functions: state lock.
 */
#ifndef QC_GROUP_H
#define QC_GROUP_H

#include "qc_effect.h"
#include "qc_state.h"

/* ---- life ---- */

/* A group in state CREATING; name NULL: that of the group whose place it will take.  NULL = full. */
extern QcGroup *qc_group_make(QcState *st, QcQueue *queue, uint64_t id, const QcStr *name,
							  uint8_t start, int64_t start_at, bool promised);

/* It is there from now on: its start rule holds as of this moment. */
extern void qc_group_open(QcState *st, QcGroup *group);

/* Nobody finds it any more; its leases are gone. */
extern void qc_group_kill(QcState *st, QcGroup *group);

/* The successor, in state CREATING, takes the place of a live group. */
extern void qc_group_replace(QcState *st, QcGroup *group, QcGroup *successor);

/* Free up to budget rows of dead groups; true = more to do. */
extern bool qc_group_sweep(QcState *st, uint32_t budget);

/* Free the group object: no cursor is left. */
extern void qc_group_free(QcState *st, QcGroup *group);

/* Free the dead groups of a queue whose partitions are gone. */
extern void qc_group_free_dead(QcState *st, const QcQueue *queue);

/* ---- standing ---- */

/* Has the partition no placed cursor for the group? */
extern bool qc_group_lacks(QcState *st, const QcPartition *partition, const QcGroup *group);

/* Where the start rule puts a group that lacks a cursor; false = only the messages can tell. */
extern bool qc_group_start(const QcGroup *group, const QcPartition *partition, uint64_t *position);

/* Cursors that a push to the partition would make now; groups on their way (QcQueue.coming) are not among them. */
extern uint32_t qc_groups_lacking(QcState *st, const QcPartition *partition);

/* A push comes to the partition: cursors for the groups that lack one, where the rule can be answered. */
extern void qc_groups_follow(QcState *st, QcPartition *partition, bool promised);

/*
 * The cursor of a group in a partition, made by the start rule when it lacks one.  NULL: only the messages can tell, or
 * (not promised) state memory is full.  Uses up one promised cursor at most; *used says how many.
 */
extern QcCursor *qc_group_cursor(QcState *st, QcGroup *group, QcPartition *partition, bool promised,
								 uint32_t *used);

/* Place the cursor of a group that lacks one; clamped to the positions that the partition has.  false = full. */
extern bool qc_group_place(QcState *st, QcGroup *group, QcPartition *partition, uint64_t position,
						   bool promised);

/* A cursor that is not placed, unless there is one; false = full. */
extern bool qc_group_prepare(QcState *st, QcGroup *group, QcPartition *partition, bool promised);

/* Set the position of a group in a partition, whose leases of it end; seq: of the entry that does so. */
extern void qc_group_seek(QcState *st, QcGroup *group, QcPartition *partition, uint64_t position,
						  uint64_t seq);

/*
 * Look at the next QC_POP_UNSCANNED_MAX partitions that the group has not looked at.  Makes cursors out of promised ones;
 * returns how many.  Ids of partitions whose messages must be asked are put, *nasked of them: until they are placed
 * (QC_SEEK_FOUND) the scan does not get past them.
 */
extern uint32_t qc_group_scan(QcState *st, QcGroup *group, uint64_t asked[QC_POP_UNSCANNED_MAX],
							  uint32_t *nasked);

/* Is there anything the group has not looked at? */
static inline bool
qc_group_scanning(const QcGroup *group)
{
	return group->state == QC_GROUP_LIVE && group->start != QC_START_NEW;
}

/* Is its lag an upper bound, because partitions that it has not looked at may hold messages that it passes over? */
static inline bool
qc_group_estimates(const QcGroup *group)
{
	return qc_group_scanning(group) && group->start != QC_START_OLDEST;
}

/*
 * A group whose lag is a bound, of a queue behind the one with the id `after` if there is any; false = there is none.
 */
extern bool qc_group_next_estimate(QcState *st, uint64_t after, uint64_t *queue_id, uint64_t *group_id);

/* Messages that the group has not finished. */
static inline uint64_t
qc_group_lag(const QcGroup *group)
{
	return group->nready + group->nleased + group->nwaiting + group->unscanned;
}

#endif							/* QC_GROUP_H */
