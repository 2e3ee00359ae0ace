/*
 * fn_repair_start.c
 *		qlog_repair(NULL): what a refused start could give up, and giving it up (contract in fn_repair_start.h).
 *
 * The rows are made of what the start has reported (qlog_refusal.h), with the names that its state knows.	 Nothing is given up here: the
 * checkpointer worker starts once more with the grant.
 */
#include "fn_repair_start.h"

#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/wait_event.h"

#include "qlog_args.h"
#include "qlog_compat.h"
#include "qlog_refusal.h"
#include "qlog_report.h"
#include "qlog_row.h"

#define LOOK_MS		100			/* between two looks at the gate */
#define COLUMNS		8

static void
put(ReturnSetInfo *result, Datum *values, bool *nulls, const char *action)
{
	values[COLUMNS - 1] = CStringGetTextDatum(action);
	nulls[COLUMNS - 1] = false;
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* What stands in the way. */
static void
put_reason(ReturnSetInfo *result, const QcError *err)
{
	Datum		values[COLUMNS];
	bool		nulls[COLUMNS] = {true, true, true, true, true, true, true, false};

	nulls[1] = err->file[0] == '\0';
	values[1] = CStringGetTextDatum(err->file);
	nulls[2] = err->position == UINT64_MAX;
	values[2] = Int64GetDatum((int64) err->position);
	put(result, values, nulls, psprintf("the start is refused: %s", err->text));
}

static void
put_summary(ReturnSetInfo *result, const QlogRefusal *refusal, bool dry_run)
{
	Datum		values[COLUMNS];
	bool		nulls[COLUMNS] = {true, true, true, true, true, true, true, false};

	if (refusal->logs > 0)
		put(result, values, nulls,
			psprintf("%u logs %s in new files, their queues %s out of service until qlog_repair(queue)", refusal->logs,
					 dry_run ? "would go on" : "go on", dry_run ? "would be" : "are"));
	if (refusal->seq == 0)
		return;
	nulls[6] = false;
	values[6] = Int64GetDatum((int64) refusal->messages);
	put(result, values, nulls,
		psprintf(UINT64_FORMAT " entries from number " UINT64_FORMAT " on, in all logs: %s, the bytes kept as *.cut." UINT64_FORMAT,
				 refusal->entries, refusal->seq, dry_run ? "would be given up" : "given up", refusal->seq));
}

static void
put_run(ReturnSetInfo *result, const QlogRun *run, bool dry_run)
{
	Datum		values[COLUMNS];
	bool		nulls[COLUMNS] = {false, true, true, true, false, false, false, false};
	char		queue[QLOG_NAME_MAX];
	char		name[QLOG_NAME_MAX];
	uint16		queue_len = 0;
	uint16		name_len = 0;
	const char *action = dry_run ? "messages would be given up" : "messages given up";
	bool		known = qlog_refusal_names(run->partition, queue, &queue_len, name, &name_len);

	nulls[0] = nulls[4] = !known;
	values[0] = qlog_text_datum(queue, queue_len);
	values[4] = qlog_text_datum(name, name_len);
	values[5] = Int64GetDatum((int64) run->first);
	values[6] = Int64GetDatum((int64) (run->end - run->first));
	put(result, values, nulls,
		known ? action : psprintf("%s, of partition number " UINT64_FORMAT ", which is younger than the checkpoint", action, run->partition));
}

/* The checkpointer starts again: wait until it has come up, or has failed once more. */
static void
wait_for_start(uint32 failed_starts)
{
	ConditionVariablePrepareToSleep(&qlog_shared->gate_cv);
	while (pg_atomic_read_u32(&qlog_shared->gate) != QLOG_GATE_READY &&
		   pg_atomic_read_u32(&qlog_shared->failed_starts) == failed_starts)
		(void) ConditionVariableTimedSleep(&qlog_shared->gate_cv, LOOK_MS, QLOG_WAIT_EVENT("QlogRecovery"));
	ConditionVariableCancelSleep();
	if (pg_atomic_read_u32(&qlog_shared->gate) != QLOG_GATE_READY)
		qlog_report(ERROR, &qlog_shared->gate_error, "the start of qlog was refused again");
}

void
qlog_repair_start(ReturnSetInfo *result, bool dry_run)
{
	const QlogRefusal *refusal = &qlog_shared->refusal;
	uint32		failed_starts = pg_atomic_read_u32(&qlog_shared->failed_starts);

	pg_read_barrier();
	put_reason(result, &qlog_shared->gate_error);
	if (!refusal->possible && !dry_run)
		qlog_report(ERROR, &qlog_shared->gate_error, "nothing can be given up that would let qlog start");
	if (!refusal->possible)
		return;

	/*
	 * The start reports the same once more; its state then knows the names of younger partitions
	 * too.
	 */
	if (!dry_run)
	{
		qlog_refusal_grant();
		wait_for_start(failed_starts);
	}
	put_summary(result, refusal, dry_run);
	for (uint32 i = 0; i < Min(refusal->nruns, QLOG_REFUSAL_RUNS); i++)
		put_run(result, &refusal->runs[i], dry_run);
}
