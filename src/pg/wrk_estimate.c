/*
 * wrk_estimate.c
 *		The checkpointer worker looks ahead for groups that begin at a time or a position, so that their lag becomes exact.
 *
 * Until a group has looked at a partition everything there counts as lag.  Its pops look at 64 partitions each; what they
 * leave is looked at here, 64 at a time, with the cost and the effects of such a pop and nothing else.  A group that begins
 * with the oldest message has nothing to gain.
 */
#include "wrk_checkpoint.h"

#include "utils/memutils.h"

#include "qlog_group.h"

#include "../core/qc_group.h"

#define PAUSE_US INT64CONST(10000000)	/* after what failed */

/* One step; false = not now, *err says why. */
static bool
look_ahead(uint64 queue, uint64 group, QcError *err)
{
	MemoryContext caller = CurrentMemoryContext;
	volatile bool good = false;

	PG_TRY();
	{
		good = qlog_group_look_ahead(queue, group);
		if (!good)
			(void) qc_error_set(err, QC_FULL, "qlog.state_memory is full");
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		FlushErrorState();
		(void) qc_error_set(err, QC_DAMAGED, "%s%s%s", error->message,
							error->detail == NULL ? "" : ": ",
							error->detail == NULL ? "" : error->detail);
		good = false;
	}
	PG_END_TRY();
	return good;
}

bool
qlog_upkeep_estimates(QlogWorker *worker)
{
	static MemoryContext context = NULL;
	static int64 pause_until = 0;
	static uint64 last = 0;		/* queue whose turn it was */
	MemoryContext caller;
	QcError		err;
	uint64		group;
	bool		found = false;
	bool		good;

	if (qlog_monotonic() < pause_until)
		return false;
	qlog_lock_state();
	found = qc_group_next_estimate(qlog_state, last, &last, &group);
	qlog_unlock_state();
	if (!found)
		return false;
	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "qlog estimates", ALLOCSET_DEFAULT_SIZES);
	qc_error_clear(&err);
	caller = MemoryContextSwitchTo(context);
	good = look_ahead(last, group, &err);
	MemoryContextSwitchTo(caller);
	if (!good)
	{
		/* Lags stay bounds meanwhile; others get their turn. */
		qlog_worker_error(worker, &err, "could not look ahead for a consumer group");
		pause_until = qlog_monotonic() + PAUSE_US;
	}
	MemoryContextReset(context);
	return good;
}
