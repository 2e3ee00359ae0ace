/*
 * group_log.h
 *		A log of entries in memory, behind the state machine of machine.h, that can be replayed as recovery does it.
 *
 * Plans keep their memory until the log ends; the ring is emptied whenever it is full.
 */
#ifndef GROUP_LOG_H
#define GROUP_LOG_H

#include "machine.h"

#define GROUP_LOG_MAX	4096	/* entries */

typedef struct GroupLog
{
	Machine    *m;
	struct GroupRecord *records;
	uint32_t	n;
	uint64_t	mark;			/* seq of the checkpoint */
	void	  **memory;
	uint32_t	nmemory;
	const char *fault;			/* what went wrong first, NULL = nothing */
} GroupLog;

extern void group_log_begin(GroupLog *log, Machine *m);
extern void group_log_end(GroupLog *log);

/* Memory that lives as long as the log (a QcAlloc, with the log as its context). */
extern void *group_log_take(void *log, size_t size);

/* Build the plan of what was put together with machine_op_*. */
extern void group_log_build(GroupLog *log, QcPlan *plan, uint64_t xid, bool immediate);

/* The two halves of logging a plan. */
extern void group_log_credit(GroupLog *log, QcPlan *plan);
extern void group_log_reserve(GroupLog *log, QcPlan *plan);

/* A checkpoint of the state as it is. */
extern void group_log_checkpoint(GroupLog *log);

/* A new state from the last checkpoint and the entries behind it; joint entries without a decision stay open. */
extern void group_log_replay(GroupLog *log);

#endif							/* GROUP_LOG_H */
