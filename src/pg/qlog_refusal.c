/*
 * qlog_refusal.c
 *		What a refused start could give up (contract in qlog_refusal.h).
 *
 * Written by the checkpointer worker while it starts, with the gate closed; read by others once the gate has said FAILED.
 */
#include "qlog_refusal.h"

#include "qlog_args.h"
#include "qlog_verify.h"

#define LOGGED_MAX	100			/* runs of messages that are told one by one */

void
qlog_refusal_begin(QcRecover *recover)
{
	QlogRefusal *refusal = &qlog_shared->refusal;

	if (pg_atomic_exchange_u32(&qlog_shared->refusal_granted, 0) != 0)
	{
		recover->give_up_seq = refusal->seq;
		recover->give_up_logs = refusal->logs;
	}
	memset(refusal, 0, sizeof(*refusal));
}

void
qlog_refusal_run(void *context, uint64_t partition, uint64_t first, uint64_t end)
{
	QlogRefusal *refusal = &qlog_shared->refusal;

	(void) context;
	refusal->messages += end - first;
	if (refusal->nruns < QLOG_REFUSAL_RUNS)
		refusal->runs[refusal->nruns] = (QlogRun) {partition, first, end};
	refusal->nruns++;
}

bool
qlog_refusal_names(uint64 id, char *queue, uint16 *queue_len, char *name, uint16 *name_len)
{
	const QcPartition *partition;
	bool		known = false;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	partition = qc_partition_by_id(qlog_state, id);
	if (partition != NULL)
	{
		const QcQueue *of = QC_AT(qlog_state, QcQueue, partition->queue);

		known = of->name != 0;
		*queue_len = known ? of->name_len : 0;
		if (known)
			memcpy(queue, qc_name_at(qlog_state, of->name), of->name_len);
	}
	LWLockRelease(&qlog_shared->state_lock);
	*name_len = known ? qlog_verify_partition(id, name) : 0;
	return known;
}

/* Nothing goes silently. */
static void
tell(const QlogRefusal *refusal)
{
	char		queue[QLOG_NAME_MAX];
	char		name[QLOG_NAME_MAX];
	uint16		queue_len;
	uint16		name_len;

	if (refusal->logs > 0)
		ereport(WARNING,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("qlog: %u logs go on in new files, as their old ones were missing", refusal->logs),
				 errhint("Their queues are out of service until qlog_repair(queue) is called.")));
	if (refusal->seq != 0)
		ereport(WARNING,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("qlog: " UINT64_FORMAT " entries from " UINT64_FORMAT " on were given up, with " UINT64_FORMAT " messages",
						refusal->entries, refusal->seq, refusal->messages),
				 errdetail("Their bytes are kept in files *.cut." UINT64_FORMAT " beside the logs; joint work that the WAL holds was restored.",
						   refusal->seq)));
	for (uint32 i = 0; i < Min(refusal->nruns, LOGGED_MAX); i++)
	{
		const QlogRun *run = &refusal->runs[i];

		if (qlog_refusal_names(run->partition, queue, &queue_len, name, &name_len))
			ereport(LOG,
					(errmsg("qlog: given up: queue \"%.*s\", partition \"%.*s\", positions " UINT64_FORMAT " to " UINT64_FORMAT,
							(int) queue_len, queue, (int) name_len, name, run->first, run->end - 1)));
		else
			ereport(LOG,
					(errmsg("qlog: given up: partition number " UINT64_FORMAT ", which was younger, positions " UINT64_FORMAT " to " UINT64_FORMAT,
							run->partition, run->first, run->end - 1)));
	}
}

void
qlog_refusal_end(const QcRecover *recover, QcStatus status)
{
	QlogRefusal *refusal = &qlog_shared->refusal;

	refusal->seq = recover->given_seq;
	refusal->entries = recover->given_entries;
	refusal->logs = recover->given_logs;
	refusal->possible = status != QC_OK && recover->refused;
	if (status == QC_OK)
		tell(refusal);
}

bool
qlog_refusal_stands(void)
{
	return qlog_shared != NULL && pg_atomic_read_u32(&qlog_shared->gate) == QLOG_GATE_FAILED;
}

bool
qlog_refusal_granted(void)
{
	return pg_atomic_read_u32(&qlog_shared->refusal_granted) != 0;
}

void
qlog_refusal_grant(void)
{
	pg_atomic_write_u32(&qlog_shared->refusal_granted, 1);
	qlog_worker_wake(QLOG_WORKER_CHECKPOINTER);
}
