/*
 * qlog_pushing.h
 *		Partitions that open transactions have pushed to: retention keeps them, however long they have been idle.
 *
 * A staged push names a partition by its id, so that partition must be there at the COMMIT.  Each process has a small filter
 * in shared memory with one bit for each name that it has pushed to in its transaction; retention keeps every idle partition
 * whose bit is set in any of them.  Two names may have the same bit: then one more stays, until that transaction has ended.
 *
 * Only its process writes a filter, without a lock.  Whoever pushes sets the bit first and then looks whether names have
 * changed (QlogShared.catalog_generation); retention first says that they have, and then looks at the bits.  So either the
 * push is seen, or it does not believe an id that it remembers and asks the state, behind the hold in which retention acts.
 */
#ifndef QLOG_PUSHING_H
#define QLOG_PUSHING_H

#include "qlog_args.h"

#define QLOG_PUSHING_WORDS	16

/* What all processes have pushed to. */
typedef struct QlogPushing
{
	uint64		bits[QLOG_PUSHING_WORDS];
} QlogPushing;

/* Shared memory: its size, and where it is; fresh = lay it out. */
extern Size qlog_pushing_size(void);
extern void qlog_pushing_init(void *block, bool fresh);

/* Keep this partition until the transaction ends.  Called before its name is looked up. */
extern void qlog_pushing_add(uint64 queue, QlogName name);

/* The transaction has ended.  Never raises. */
extern void qlog_pushing_end(void);

/* Retention, which holds the state lock and has raised the catalog generation before: gather what is pushed to. */
extern void qlog_pushing_gather(QlogPushing *all);

/* May this partition be among them? */
extern bool qlog_pushing_has(const QlogPushing *all, uint64 queue, QlogName name);

#endif							/* QLOG_PUSHING_H */
