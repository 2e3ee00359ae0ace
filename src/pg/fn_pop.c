/*
 * fn_pop.c
 *		queue_pop: take a lease on a batch of messages and return them.
 *
 * The lease is an entry of its own, in force at once; it is written out (not synced) before any row is returned, so that
 * a message that brings its consumer down has been counted.	The rows are read from the log files without any lock.  An
 * error, a rollback or a rolled back savepoint releases the lease (qlog_hold.h).
 *
 * A pop that finds nothing and may wait is listed in the same hold of the state lock (qlog_wait.h), so that no message can
 * come in between unnoticed.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "qlog_commit.h"
#include "qlog_fetch.h"
#include "qlog_group.h"
#include "qlog_guc.h"
#include "qlog_hold.h"
#include "qlog_lease.h"
#include "qlog_lookup.h"
#include "qlog_report.h"
#include "qlog_unread.h"
#include "qlog_uuid.h"
#include "qlog_wait.h"

#include "../core/qc_cursor.h"
#include "../core/qc_group.h"
#include "../core/qc_purge.h"

/* Arguments. */
enum
{
	ARG_QUEUE,
	ARG_BATCH,
	ARG_CONSUMER_GROUP,
	ARG_PARTITION,
	ARG_WAIT,
	ARG_LEASE,
	ARG_AUTO_ACK,
	ARG_MAX_PARTITIONS,
	ARG_MAX_BYTES
};

enum
{
	COLUMN_LEASE_ID = QLOG_COLUMN_COUNT,
	COLUMN_LEASED_UNTIL,
	COLUMN_COUNT
};

#define RUNS_MAX 4096			/* of one delivery: it may be smaller than asked for */
#define MEASURE_TRIES 10		/* at messages that others take meanwhile */

PG_FUNCTION_INFO_V1(queue_pop);

typedef struct PopName
{
	uint64		partition;
	uint16		len;
	char text[	QLOG_NAME_MAX];
} PopName;

typedef struct Pop
{
	/* What is asked for. */
	QlogName	name;
	QlogQueue	queue;
	QlogName	group;
	bool		by_partition;
	QlogName	partition;
	uint32		batch;
	uint32		max_partitions;
	uint64		max_bytes;		/* of payloads and headers; 0 = no limit */
	int64		lease_us;
	bool		auto_ack;
	int64		wait_us;		/* 0 = look once */
	bool		may_wait;		/* when nothing is found */

	/* What was found, under the state lock. */
	uint64		lease;
	bool		again;			/* the lease id was taken, or others took what was measured */
	bool		no_group;		/* there is no such group: it must be made */
	bool		unscanned;		/* the group must look at partitions first */
	bool		looked;			/* ... and has done so once */
	uint64		group_id;
	bool		dropped;
	bool		damaged;
	uint64		damage_file;
	uint64		damage_position;
	int64		created_at;
	QcRun	   *runs;
	uint32		max_runs;
	uint32		nruns;
	QlogSpot   *spots;			/* batch of them */
	uint32		nspots;
	PopName    *names;			/* of the partitions, in the order of the spots; max_partitions of
								 * them */
	uint32		nnames;

	/* Memory for it. */
	QcSmallPlan *small;
	uint8	   *buffer;
	size_t		effect_max;

	/* Under a limit of bytes: what was measured, and must be what is taken. */
	bool		look;
	uint64		look_seq;		/* newest entry of then: written out before messages are read */
	uint32		nmeasured;		/* 0 = take whatever is there */
} Pop;

/* max_partitions and max_bytes. */
static void
pop_limits(FunctionCallInfo fcinfo, Pop *pop)
{
	int32		partitions = PG_ARGISNULL(ARG_MAX_PARTITIONS) ? 1 : PG_GETARG_INT32(ARG_MAX_PARTITIONS);

	if (partitions < 1)
		qlog_arg_invalid("max_partitions", "It must be at least 1.");
	pop->max_partitions = Min((uint32) partitions, Min(pop->batch, RUNS_MAX));
	if (PG_ARGISNULL(ARG_MAX_BYTES))
		return;
	if (PG_GETARG_INT64(ARG_MAX_BYTES) < 1)
		qlog_arg_invalid("max_bytes", "It must be at least 1.");
	pop->max_bytes = (uint64) PG_GETARG_INT64(ARG_MAX_BYTES);
}

/* Check the arguments and find the queue. */
static void
pop_arguments(FunctionCallInfo fcinfo, Pop *pop)
{
	int32		batch = PG_ARGISNULL(ARG_BATCH) ? 1 : PG_GETARG_INT32(ARG_BATCH);

	qlog_require(fcinfo, ARG_QUEUE, "queue");
	pop->group = qlog_group_name(fcinfo, ARG_CONSUMER_GROUP);
	if (!PG_ARGISNULL(ARG_WAIT))
		pop->wait_us = Min(qlog_interval_us(PG_GETARG_INTERVAL_P(ARG_WAIT), "wait", 0, 365 * QC_DAY),
						   (int64) qlog_max_pop_wait * 1000);
	if (batch < 1)
		qlog_arg_invalid("batch", "It must be at least 1.");
	pop->batch = (uint32) Min(batch, qlog_max_leases_per_cursor);
	pop_limits(fcinfo, pop);
	pop->name = qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE));
	pop->by_partition = !PG_ARGISNULL(ARG_PARTITION);
	if (pop->by_partition)
		pop->partition = qlog_partition_name(PG_GETARG_DATUM(ARG_PARTITION));
	pop->auto_ack = !PG_ARGISNULL(ARG_AUTO_ACK) && PG_GETARG_BOOL(ARG_AUTO_ACK);
	qlog_queue_get(pop->name, QLOG_POP, &pop->queue);
	pop->lease_us = pop->queue.options.value[QC_OPT_LEASE];
	if (!PG_ARGISNULL(ARG_LEASE))
		pop->lease_us = qlog_lease_us(PG_GETARG_INTERVAL_P(ARG_LEASE));
}

/* What is asked for as the state has it now; false = the queue cannot be popped from.  State lock. */
static bool
make_request(Pop *pop, QcPopRequest *request)
{
	*request = (QcPopRequest)
	{
		.batch = pop->nmeasured > 0 ? pop->nmeasured : pop->batch,
		.max_partitions = pop->max_partitions, .look = pop->look
	};
	request->queue = qc_queue_by_id(qlog_state, pop->queue.id);
	pop->dropped = request->queue == NULL || request->queue->state == QC_QUEUE_DEAD;
	if (pop->dropped)
		return false;
	pop->damaged = request->queue->damaged;
	pop->damage_file = request->queue->damage_file;
	pop->damage_position = request->queue->damage_position;
	request->group = qc_group_by_name(qlog_state, request->queue, pop->group.text,
									  pop->group.len);
	pop->no_group = request->group == NULL;
	if (pop->damaged || pop->no_group)
		return false;
	pop->group_id = request->group->id;
	if (pop->by_partition)
		request->partition = qc_partition_by_name(qlog_state, request->queue, pop->partition.text,
												  pop->partition.len);
	return true;
}

/* Are there partitions among those asked for that the group has not looked at?	State lock. */
static bool
has_unscanned(const Pop *pop, const QcPopRequest *request)
{
	const QcPartition *partition = request->partition;

	if (!qc_group_scanning(request->group))
		return false;
	return !pop->by_partition ||
		(partition != NULL && qc_partition_start(qlog_state, partition) < partition->next &&
		 qc_group_lacks(qlog_state, partition, request->group));
}

/* Nothing was found: wait for something, or be done with waiting.	 State lock. */
static void
found_nothing(const Pop *pop, const QcPopRequest *request)
{
	QcWaitFor	what = {.group = request->group, .partition = request->partition,
		.weight = pop->batch};

	if (!pop->may_wait)
	{
		qc_wait_popped(qlog_state, qlog_process(), request->group, false);
		return;
	}
	if (pop->by_partition)
		what.partition_hash = qc_wait_partition(request->queue, pop->partition.text,
												pop->partition.len);
	qc_wait_list(qlog_state, qlog_process(), &what);
}

/* Choose runs of messages; false = nothing to deliver.	 State lock. */
static bool
choose_runs(Pop *pop)
{
	QcPopRequest request;

	pop->unscanned = false;
	if (!make_request(pop, &request))
		return false;

	/* Every pop looks further, so that old messages are not kept waiting by new ones. */
	if (!pop->looked && has_unscanned(pop, &request))
	{
		pop->unscanned = true;
		return false;
	}
	if ((!pop->by_partition || request.partition != NULL) &&
		qc_pop_choose(qlog_state, &request, pop->runs, pop->max_runs, &pop->nruns) > 0)
		return true;
	pop->unscanned = has_unscanned(pop, &request);
	if (!pop->unscanned)
		found_nothing(pop, &request);
	return false;
}

/* Note where the chosen messages are.	State lock. */
static void
note_runs(Pop *pop)
{
	pop->nspots = 0;
	for (uint32 i = 0; i < pop->nruns; i++)
	{
		QcPartition *partition = qc_partition_by_id(qlog_state, pop->runs[i].partition);
		QcRef		hint = 0;

		for (uint32 k = 0; k < pop->runs[i].count; k++)
			qlog_spot_note(partition, pop->runs[i].first + k, 0, &hint, &pop->spots[pop->nspots++]);
	}
}

/*
 * How many of the messages that a pop would take now stay within max_bytes, one at least; 0 = there is none.  They are
 * read before anything is leased, so that none is charged with an attempt for being too large.  What cannot be read weighs
 * nothing: that it is delivered is what brings it to the dead letters.
 */
static uint32
measure(Pop *pop)
{
	uint64		bytes = 0;
	uint32		n = 0;

	pop->look = true;
	pop->nmeasured = 0;
	qlog_lock_state();
	if (choose_runs(pop))
		note_runs(pop);
	else
		pop->nspots = 0;
	pop->look_seq = qlog_state->seq;
	qlog_unlock_state();
	pop->look = false;
	if (pop->nspots > 0)
		qlog_write(pop->look_seq);
	while (n < pop->nspots)
	{
		QcMessage	message;
		int64_t		created_at;
		QcError		err;
		QcStatus	status;

		CHECK_FOR_INTERRUPTS();
		status = qlog_fetch_try(&pop->spots[n], &message, &created_at, &err);
		if (status == QC_OK)
			bytes += (uint64) message.data_len + message.headers_len;
		else if (status != QC_NOTFOUND && !qlog_fetch_lost(status))
			qlog_report(ERROR, &err, "could not read a message");
		if (n > 0 && bytes > pop->max_bytes)
			break;
		n++;
	}
	return n;
}

/* Are the chosen messages those that were measured? State lock. */
static bool
as_measured(const Pop *pop)
{
	uint32		n = 0;

	if (pop->nmeasured == 0)
		return true;
	for (uint32 i = 0; i < pop->nruns; i++)
	{
		for (uint32 k = 0; k < pop->runs[i].count; k++, n++)
		{
			if (pop->spots[n].partition != pop->runs[i].partition ||
				pop->spots[n].position != pop->runs[i].first + k)
				return false;
		}
	}
	return true;
}

/* QlogChoose: what will be delivered, encoded as an effect. */
static bool
choose(void *context, QcSmallPlan *small)
{
	Pop		   *pop = context;
	QcDeliver	deliver = {.lease = pop->lease, .queue = pop->queue.id, .lease_us = (uint64) pop->lease_us};
	QcWriter	w;

	pop->again = qc_lease_listed(qlog_state, pop->lease) != NULL;
	if (pop->again || !choose_runs(pop))
		return false;
	pop->again = !as_measured(pop);
	if (pop->again)
		return false;
	deliver.group = pop->group_id;
	w = qc_plan_small_writer(small);
	qc_effect_put(&w, QC_EFFECT_DELIVER, &deliver, pop->nruns);
	for (uint32 i = 0; i < pop->nruns; i++)
	{
		QcDeliverItem item = {.partition = pop->runs[i].partition, .first = pop->runs[i].first,
			.count = pop->runs[i].count, .attempt = pop->runs[i].attempt};

		qc_effect_put_item(&w, QC_EFFECT_DELIVER, &item);
	}
	qc_plan_small_done(small, &w, 1);
	return true;
}

/* Remember the name of a partition whose messages follow. State lock. */
static void
note_name(Pop *pop, const QcPartition *partition)
{
	PopName    *name = &pop->names[pop->nnames++];

	Assert(pop->nnames <= pop->max_partitions);
	name->partition = partition->id;
	name->len = partition->name_len;
	memcpy(name->text, qc_name_at(qlog_state, partition->name), partition->name_len);
}

/*
 * QlogReserved: the lease exists; note it, and where its messages are.  The search for a new message
 * begins where the one before it was found; what is delivered again has been found before.
 */
static void
done(void *context, const QcPlan *plan)
{
	Pop		   *pop = context;
	QcLease    *lease = qc_lease_by_id(qlog_state, pop->lease);
	QcPartition *partition = NULL;

	qlog_hold_add(pop->lease);
	pop->created_at = plan->created_at;
	pop->nspots = 0;
	for (QcSlot *slot = QC_AT(qlog_state, QcSlot, lease->slots.head); slot != NULL;
		 slot = QC_AT(qlog_state, QcSlot, slot->of_lease.next))
	{
		QcCursor   *cursor = QC_AT(qlog_state, QcCursor, slot->cursor);

		if (cursor->partition != QC_REF(qlog_state, partition))
		{
			partition = QC_AT(qlog_state, QcPartition, cursor->partition);
			note_name(pop, partition);
		}
		Assert(pop->nspots < pop->batch);
		if (slot->attempt == 1 || slot->hint == 0)
			slot->hint = cursor->hint;
		qlog_spot_note(partition, slot->position, slot->attempt, &slot->hint,
					   &pop->spots[pop->nspots++]);
		cursor->hint = slot->hint;
	}
	qc_wait_popped(qlog_state, qlog_process(), QC_AT(qlog_state, QcGroup, lease->group), true);
}

/* Memory for whatever will be found. */
static void
make_room(Pop *pop)
{
	QcDeliver	nothing = {0};

	pop->max_runs = Min(pop->batch, RUNS_MAX);
	pop->runs = palloc(pop->max_runs * sizeof(QcRun));
	pop->spots = palloc(pop->batch * sizeof(QlogSpot));
	pop->names = palloc(pop->max_partitions * sizeof(PopName));
	pop->effect_max = qc_effect_size(QC_EFFECT_DELIVER, &nothing, pop->max_runs);
	pop->small = palloc(sizeof(QcSmallPlan));
	pop->buffer = palloc(QC_SMALL_BUFFER(pop->effect_max));
}

/* Make the group that was missing, or let it look further; false = there is nothing to prepare. */
static bool
prepare_group(Pop *pop)
{
	if (pop->dropped || pop->damaged || (!pop->no_group && !pop->unscanned))
		return false;
	if (pop->no_group)
		qlog_group_make(&pop->queue, pop->name, pop->group);
	else
		qlog_group_look(&pop->queue, pop->group, pop->by_partition ? &pop->partition : NULL);
	pop->looked = pop->unscanned;
	return true;
}

/* Take the lease.	false = nothing to deliver; then the process is listed when it may wait. */
static bool
take_lease(Pop *pop)
{
	QcSmallPlan *small = pop->small;
	uint32		batch = pop->batch;
	uint64		seq = 0;

	qlog_hold_prepare();
	pop->again = true;
	for (int tries = 0; seq == 0 && (pop->again || prepare_group(pop)); tries += pop->again)
	{
		CHECK_FOR_INTERRUPTS();
		pop->again = false;

		/* A single message may always be taken, whatever its size: when others are too quick. */
		if (pop->max_bytes > 0)
		{
			pop->nmeasured = tries < MEASURE_TRIES ? measure(pop) : 0;
			if (tries == MEASURE_TRIES)
				pop->batch = 1;
			else if (tries < MEASURE_TRIES && pop->nmeasured == 0)
				continue;
		}
		pop->lease = qlog_random();
		qc_plan_small(small, pop->buffer, pop->effect_max);
		small->plan.pid = small->plan.owner = (uint32) MyProcPid;
		small->plan.needs.nslots = pop->batch;
		small->plan.needs.nleases = 1;
		seq = qlog_submit(small, choose, done, pop);
	}
	if (pop->damaged)
		qlog_refuse_damaged(pop->name, pop->queue.log, pop->damage_file, pop->damage_position);
	if (pop->dropped)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("queue \"%.*s\" was dropped", QLOG_NAME(pop->name))));
	if (seq != 0)
		qlog_write(seq);
	pop->batch = batch;
	return seq != 0;
}

/* Take the lease, waiting for something to take.	false = nothing came in time. */
static bool
wait_and_take(Pop *pop)
{
	int64		deadline;
	volatile bool taken = false;

	if (pop->wait_us == 0)
		return take_lease(pop);
	deadline = qlog_wait_begin(pop->wait_us);
	PG_TRY();
	{
		for (;;)
		{
			pop->may_wait = qlog_monotonic() < deadline;
			taken = take_lease(pop);
			if (taken || !pop->may_wait)
				break;
			(void) qlog_wait_sleep(deadline);
		}
	}
	PG_CATCH();
	{
		qlog_wait_stop();
		PG_RE_THROW();
	}
	PG_END_TRY();
	return taken;
}

/*
 * Read the messages and put them as rows.	Those that are returned stay in pop->spots, their ids in ids; the others are
 * noted.
 */
static void
put_rows(FunctionCallInfo fcinfo, Pop *pop, uint8 *ids, QlogUnread *unread)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	const PopName *name = pop->names;
	MemoryContext row = AllocSetContextCreate(CurrentMemoryContext, "queue_pop row",
											  ALLOCSET_DEFAULT_SIZES);
	Datum		values[COLUMN_COUNT];
	bool		nulls[COLUMN_COUNT] = {false};
	uint32		n = 0;

	values[COLUMN_LEASE_ID] = Int64GetDatum((int64) pop->lease);
	values[COLUMN_LEASED_UNTIL] =
		TimestampTzGetDatum(qlog_timestamptz(pop->created_at + pop->lease_us));
	for (uint32 i = 0; i < pop->nspots; i++)
	{
		const QlogSpot spot = pop->spots[i];
		QcMessage	message;
		int64_t		created_at;
		QcError		err;
		MemoryContext caller;

		CHECK_FOR_INTERRUPTS();
		if (name->partition != spot.partition)
			name++;
		if (qlog_unread_skips(unread, &spot))
			continue;
		if (qlog_fetch_try(&spot, &message, &created_at, &err) != QC_OK)
		{
			qlog_unread_note(unread, &pop->queue, &spot, &err);
			continue;
		}
		if (qlog_unread_passes(unread, &spot))
			continue;
		caller = MemoryContextSwitchTo(row);
		memcpy(ids + (size_t) n * QC_ID_SIZE, message.id, QC_ID_SIZE);
		qlog_message_row(&spot, &message, created_at, (QlogName) {name->text, name->len}, values,
						 nulls);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		MemoryContextSwitchTo(caller);
		MemoryContextReset(row);
		pop->spots[n++] = spot;
	}
	MemoryContextDelete(row);
	pop->nspots = n;
}

/* Return what was leased.	Messages that cannot be read are left out: an error only when there is nothing else. */
static void
return_rows(FunctionCallInfo fcinfo, Pop *pop)
{
	uint8	   *ids = palloc(pop->nspots * QC_ID_SIZE);
	QlogUnread	unread = {0};

	put_rows(fcinfo, pop, ids, &unread);
	if (unread.n > 0)
	{
		qlog_unread_give_back(&unread, &pop->queue, pop->lease);
		qlog_report(pop->nspots > 0 ? WARNING : ERROR, &unread.err,
					pop->nspots > 0 ? "left out what could not be read" :
					"could not read a message");
	}
	qlog_lease_remember(pop->lease, pop->spots, ids, pop->nspots);
}

/* Acknowledge with the transaction what is returned. */
static void
ack_at_commit(const Pop *pop)
{
	QlogLease	lease = {.nspots = pop->nspots, .spots = pop->spots};
	QcAckItem  *ranges;
	uint32		nranges;

	ranges = qlog_lease_ranges(&lease, &nranges);
	qlog_stage_ack(pop->lease, pop->group_id, ranges, nranges);
}

Datum
queue_pop(PG_FUNCTION_ARGS)
{
	Pop		   *pop = palloc0(sizeof(Pop));

	qlog_enter("queue_pop()");
	pop_arguments(fcinfo, pop);
	InitMaterializedSRF(fcinfo, 0);

	/* Nobody has committed anything into a queue, or for a group, that only this transaction sees. */
	make_room(pop);
	if (qlog_group_may_pop(&pop->queue, pop->group) && wait_and_take(pop))
	{
		return_rows(fcinfo, pop);
		if (pop->auto_ack)
			ack_at_commit(pop);
	}
	PG_RETURN_NULL();
}
