/*
 * wrk_retention.c
 *		The retention worker: every qlog.retention_naptime it walks over all partitions, in steps that hold the state lock
 *		shortly, and logs which messages have gone (qc_retain_pass.h).
 *
 * What it finds out without the lock is judged again in the hold that logs it.	Everything it does is an immediate entry:
 * killed at any point it leaves either the partitions as they were or the entry, and the next pass goes on.	It waits for no
 * sync; files are given back only when the entry is durable, which is reclaim's business.
 */
#include "wrk_retention.h"

#include "utils/memutils.h"

#include "qlog_commit.h"
#include "qlog_fetch.h"
#include "qlog_guc.h"
#include "qlog_lookup.h"
#include "qlog_pushing.h"
#include "qlog_stop.h"

#include "../core/qc_cursor.h"
#include "../core/qc_retain_pass.h"

#define STRIDE_MAX	4096		/* positions between two looks at the age of a message */
#define LOOKS_MAX	512			/* for one edge; what is beyond is for the next pass */
#define QUIET_US	(60 * USECS_PER_SEC)	/* a server without work is looked at so often */
#define REPORT_US	(60 * USECS_PER_SEC)	/* between two lines about the same queue */
#define REPORTS_MAX 64
#define FULL_MAX	64			/* more than these are for the next pass */

PGDLLEXPORT void qlog_retention_main(Datum arg);

/* Messages of a queue that went unread, since they were reported last. */
typedef struct Report
{
	uint64		queue;
	uint64		unread;
	int64		reported_at;	/* monotonic */
} Report;

static Report reports[REPORTS_MAX];
static uint32 nreports = 0;

/* Queues that this pass has found above their retention_bytes. */
static uint64 full[FULL_MAX];
static uint32 nfull = 0;

/* ---- ages ---- */

/* When the first message of [*p, high) was pushed; *p is moved to it, to high when there is none. */
static bool
time_at(uint64 partition_id, uint64 *p, uint64 high, QcRef *hint, int64 *at)
{
	QcPartition *partition;
	QlogSpot	spot;
	bool		found = false;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	partition = qc_partition_by_id(qlog_state, partition_id);
	if (partition != NULL)
	{
		*p = qc_skip_aborted(qlog_state, partition, *p);
		found = *p < high;
		if (found)
			qlog_spot_note(partition, *p, 0, hint, &spot);
	}
	LWLockRelease(&qlog_shared->state_lock);
	if (found)
		return qlog_fetch_time(&spot, at);
	*p = high;
	return true;
}

/* What is known of an edge while it is looked for: below low all messages are older, at high (if it is one) none is. */
typedef struct Search
{
	uint64		partition;
	int64		before;
	uint64		low;
	uint64		high;
	int64		at;				/* time of the message at high; 0 = it is the end */
	QcRef		hint;
} Search;

/* Look at position p; false = its age cannot be told. */
static bool
look(Search *s, uint64 p)
{
	uint64		found = p;
	int64		at;

	if (!time_at(s->partition, &found, s->high, &s->hint, &at))
		return false;
	if (found < s->high && at < s->before)
		s->low = found + 1;
	else
	{
		s->at = found < s->high ? at : s->at;
		s->high = p;
	}
	return true;
}

/* Strides that double, then halves: it costs as much as there is to remove. */
static bool
find_edge(QcRetainEdge *edge, const QcRetainNote *note)
{
	Search		s = {.partition = note->partition, .before = edge->before, .low = note->low,
		.high = note->high};
	uint64		stride = 1;
	uint32		looks = 0;
	bool		beyond = true;

	while (s.low < s.high && looks++ < LOOKS_MAX)
	{
		uint64		low = s.low;
		uint64		p = beyond ? low + Min(stride - 1, s.high - low - 1) : low + (s.high - low) / 2;

		if (!look(&s, p))
			return false;
		beyond = beyond && s.low > low;
		stride = Min(stride * 2, STRIDE_MAX);
	}
	edge->found = true;
	edge->position = s.low;
	edge->at = s.low < s.high ? 0 : s.at == 0 ? edge->before : s.at;
	return true;
}

/* Find the edges that the notes need; one that cannot be found keeps its messages. */
static void
find_edges(QlogWorker *worker, QcRetainStep *step, uint64 seq)
{
	QcError		err;
	bool		written = false;

	for (uint32 i = 0; i < step->n; i++)
	{
		QcRetainNote *note = &step->notes[i];
		QcRetainEdge *edges[] = {&note->done, &note->any};

		for (int k = 0; k < 2; k++)
		{
			if (note->drop || !edges[k]->search)
				continue;
			qc_error_clear(&err);
			if (!written && !qlog_write_noerror(seq, &err))
			{
				qlog_worker_error(worker, &err, "could not look at the age of messages");
				return;
			}
			written = true;
			if (!find_edge(edges[k], note))
			{
				qc_error_set(&err, QC_DAMAGED, "partition %llu", (unsigned long long) note->partition);
				qlog_worker_error(worker, &err, "could not look at the age of messages");
			}
		}
	}
}

/* ---- what went unread ---- */

static void
write_report(Report *report)
{
	char		name[QLOG_NAME_MAX];
	QcQueue    *queue;
	int			len = -1;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	queue = qc_queue_by_id(qlog_state, report->queue);
	if (queue != NULL && queue->name != 0)
	{
		len = queue->name_len;
		memcpy(name, qc_name_at(qlog_state, queue->name), queue->name_len);
	}
	LWLockRelease(&qlog_shared->state_lock);
	if (len >= 0)
		ereport(LOG,
				(errmsg("qlog: retention has removed %llu messages of queue \"%.*s\" that not every consumer group had finished",
						(unsigned long long) report->unread, len, name),
				 errhint("The options retention and retention_bytes of the queue say how long messages are kept.")));
	report->unread = 0;
	report->reported_at = qlog_monotonic();
}

/* Write the lines that are due, or all of them. */
static void
write_reports(bool all)
{
	int64		now = qlog_monotonic();
	uint32		kept = 0;

	for (uint32 i = 0; i < nreports; i++)
	{
		bool		due = all || reports[i].reported_at == 0 ||
			now - reports[i].reported_at >= REPORT_US;

		if (reports[i].unread > 0 && due)
			write_report(&reports[i]);
		else if (reports[i].unread == 0 && due)
			continue;
		reports[kept++] = reports[i];
	}
	nreports = all ? 0 : kept;
}

static void
note_unread(uint64 queue, uint64 unread)
{
	uint32		i = 0;

	while (i < nreports && reports[i].queue != queue)
		i++;
	if (i == REPORTS_MAX)
	{
		write_reports(true);
		i = 0;
	}
	if (i == nreports)
		reports[nreports++] = (Report) {.queue = queue};
	reports[i].unread += unread;
}

/* ---- steps ---- */

/*
 * An open transaction that has pushed to an idle partition finds it at its COMMIT: forget the note.  Names are said to have changed
 * before the look (qlog_pushing.h); some will have.
 */
static void
keep_pushed_to(QcRetainStep *step)
{
	QlogPushing pushing;
	uint32		i = 0;

	while (i < step->n && !step->notes[i].drop)
		i++;
	if (i == step->n)
		return;
	pg_atomic_fetch_add_u32(&qlog_shared->catalog_generation, 1);
	qlog_pushing_gather(&pushing);
	for (; i < step->n; i++)
	{
		QcRetainNote *note = &step->notes[i];
		const QcPartition *partition = note->drop ? qc_partition_by_id(qlog_state, note->partition) : NULL;

		if (partition != NULL &&
			qlog_pushing_has(&pushing, QC_AT(qlog_state, QcQueue, partition->queue)->id,
							 (QlogName) {qc_name_at(qlog_state, partition->name), partition->name_len}))
			note->partition = 0;
	}
}

/* QlogChoose: what of the notes still goes. */
static bool
put_step(void *context, QcSmallPlan *small)
{
	QcRetainStep *step = context;
	QcWriter	w = qc_plan_small_writer(small);
	uint32		effects;

	keep_pushed_to(step);
	effects = qc_retain_put(qlog_state, step, &w);

	if (effects > 0)
		qc_plan_small_done(small, &w, effects);
	return effects > 0;
}

static QcStatus
log_step(QcRetainStep *step, QcError *err)
{
	static uint8 *buffer = NULL;
	QcSmallPlan small;
	QcStatus	status;

	if (buffer == NULL)
		buffer = MemoryContextAlloc(TopMemoryContext, QC_SMALL_BUFFER(QC_RETAIN_EFFECTS));
	qc_plan_small(&small, buffer, QC_RETAIN_EFFECTS);
	small.plan.needs.npending = step->nranges;
	status = qlog_try_submit(&small, put_step, step, err);
	if (status != QC_FULL || step->nranges == 0)
		return status;

	/* Starts need no memory; they give some back. */
	qc_error_clear(err);
	step->nranges = 0;
	qc_plan_small(&small, buffer, QC_RETAIN_EFFECTS);
	return qlog_try_submit(&small, put_step, step, err);
}

/* Find out and log what the next partitions lose; false = they were the last ones. */
static bool
take_step(QlogWorker *worker, QcRetainStep *step, bool *aged)
{
	QcError		err;
	uint64		seq;
	bool		more;

	qlog_lock_state();
	step->now = qlog_now();
	more = qc_retain_look(qlog_state, step);
	seq = qlog_state->seq;
	qlog_unlock_state();
	*aged = *aged || step->aged;
	for (uint32 i = 0; i < step->nfull && nfull < FULL_MAX; i++)
		full[nfull++] = step->full[i];
	if (step->n == 0)
		return more;
	find_edges(worker, step, seq);
	QLOG_STOP("retention-after-look");
	qc_error_clear(&err);
	if (log_step(step, &err) != QC_OK)
	{
		qlog_worker_error(worker, &err, "could not log what retention removes");
		return false;
	}
	QLOG_STOP("retention-after-log");
	for (uint32 i = 0; i < step->nreports; i++)
		note_unread(step->reports[i].queue, step->reports[i].unread);
	return more;
}

/* Once over all partitions. */
static void
walk(QlogWorker *worker, QcRetainStep *step, bool *aged)
{
	nfull = 0;
	qlog_lock_state();
	qc_retain_begin(qlog_state);
	qlog_unlock_state();
	while (!qlog_worker_shutdown() && take_step(worker, step, aged))
		qlog_worker_interrupts();
}

/* *aged is set when there are queues where time alone makes messages go. */
static void
pass(QlogWorker *worker, bool *aged)
{
	static QcRetainStep *step = NULL;
	int64		began = qlog_monotonic();
	bool		again = false;

	if (step == NULL)
		step = MemoryContextAlloc(TopMemoryContext, sizeof(QcRetainStep));
	*aged = false;
	qlog_worker_error(worker, NULL, NULL);
	walk(worker, step, aged);
	for (uint32 i = 0; i < nfull && !qlog_worker_shutdown(); i++)
		again = qlog_retention_bytes(worker, full[i]) || again;
	if (again)
		walk(worker, step, aged);
	write_reports(false);
	worker->passes++;
	worker->last_pass_us = qlog_monotonic() - began;
	worker->last_pass_at = GetCurrentTimestamp();
}

/* Sleep for the whole time, whatever sets the latch; a new setting counts at once. */
static void
nap(void)
{
	int64		began = qlog_monotonic();
	int64		left;

	while (!qlog_worker_shutdown() &&
		   (left = began + (int64) qlog_retention_naptime * 1000 - qlog_monotonic()) > 0)
		qlog_worker_sleep((long) (left / 1000) + 1);
}

void
qlog_retention_main(Datum arg)
{
	QlogWorker *worker = qlog_worker_begin((QlogWorkerKind) DatumGetInt32(arg));
	bool		aged = true;
	uint64		seen = 0;		/* newest entry before the last pass but one that found any */
	int			quiet = 0;		/* passes since then */
	int64		last = 0;

	while (!qlog_worker_shutdown())
	{
		uint64		seq;

		qlog_worker_state(worker, "idle");
		if (pg_atomic_read_u32(&qlog_shared->gate) != QLOG_GATE_READY)
		{
			/* Recovery wakes us when it has finished. */
			qlog_worker_sleep(-1);
			continue;
		}
		nap();

		/* What is reserved may be settled later: one pass more. */
		seq = qlog_newest_seq();
		quiet = seq == seen ? quiet + 1 : 0;
		seen = seq;
		if (qlog_worker_shutdown())
			continue;
		if (quiet > 1 && !aged && qlog_monotonic() - last < QUIET_US)
		{
			worker->passes++;
			continue;
		}
		qlog_worker_state(worker, "retention");
		pass(worker, &aged);
		last = qlog_monotonic();
	}
	qlog_worker_exit(worker);
}

void
qlog_retention_register(void)
{
	qlog_worker_register(QLOG_WORKER_RETENTION, "qlog retention", "qlog_retention_main");
}
