/*
 * waiting.c
 *		A state with one queue, for the tests of waiting.
 */
#include "waiting.h"

#include "qc_catalog.h"
#include "qc_lease.h"
#include "qc_timer.h"

#include <stdlib.h>
#include <string.h>

#define LEASE_US	INT64_C(60000000)

/* A failure of the tests' own making. */
static void
must(bool held)
{
	if (!held)
		abort();
}

static void
apply(Waiting *w, QcApply *how, const QcEffect *effect)
{
	QcError		err;

	qc_error_clear(&err);
	must(qc_apply_effect(w->st, how, effect, &err) == QC_OK);
}

static QcApply
immediate(Waiting *w)
{
	QcApply		how = {.seq = ++w->seq, .created_at = w->now, .monotonic = w->now,
		.recovering = true, .immediate = true};

	must(qc_apply_begin(w->st, &how));
	return how;
}

static void
add_partition(Waiting *w, uint32_t number)
{
	static const char names[] = "abc";
	QcEffect	effect = {.kind = QC_EFFECT_PARTITION_CREATE};
	QcApply		how = immediate(w);

	effect.u.partition_create = (QcPartitionCreate)
	{
		.queue = WAITING_QUEUE, .partition = WAITING_DEFAULT + number,
		.name =
		{
		(const uint8_t *) names + number - 1, 1
		}
	};
	apply(w, &how, &effect);
}

void
waiting_begin(Waiting *w)
{
	QcStateConfig config = {.state_bytes = 4 << 20, .index_bytes = 1 << 18,
		.max_waiters = WAITING_PROCESSES};
	QcEffect	effect = {.kind = QC_EFFECT_QUEUE_CREATE};
	QcApply		how;

	memset(w, 0, sizeof(*w));
	w->now = 1000000;
	w->block = malloc(qc_state_size(&config));
	must(w->block != NULL);
	w->st = qc_state_init(w->block, &config);
	how = immediate(w);
	effect.u.queue_create = (QcQueueCreate)
	{
		.queue = WAITING_QUEUE, .database = 1, .log = 1,
		.default_partition = WAITING_DEFAULT,.name =
		{
		(const uint8_t *) "q", 1
		}
	};
	apply(w, &how, &effect);
	w->queue = qc_queue_by_id(w->st, WAITING_QUEUE);
	w->group = qc_group_by_id(w->st, w->queue, QC_DEFAULT_GROUP);
	for (uint32_t i = 1; i < WAITING_PARTITIONS; i++)
		add_partition(w, i);
}

void
waiting_end(Waiting *w)
{
	free(w->block);
}

QcPartition *
waiting_partition(Waiting *w, uint32_t number)
{
	return qc_partition_by_id(w->st, WAITING_DEFAULT + number);
}

/* ---- messages ---- */

static void
append(Waiting *w, QcApply *how, uint32_t partition, uint32_t count)
{
	QcEffect	effect = {.kind = QC_EFFECT_APPEND};

	effect.u.append = (QcAppend)
	{
		.partition = WAITING_DEFAULT + partition, .log = 1,
		.first = waiting_partition(w, partition)->next, .count = count, .records = 1
	};
	apply(w, how, &effect);
}

void
waiting_push(Waiting *w, uint32_t partition, uint32_t count)
{
	QcApply		how = immediate(w);

	append(w, &how, partition, count);
}

uint64_t
waiting_push_open(Waiting *w, uint32_t partition, uint32_t count)
{
	QcApply		how = {.seq = ++w->seq, .created_at = w->now, .monotonic = w->now,
		.recovering = true};

	must(qc_apply_begin(w->st, &how));
	append(w, &how, partition, count);
	return w->seq;
}

void
waiting_settle(Waiting *w, uint64_t seq, bool committed)
{
	QcOpen	   *open = qc_open_by_seq(w->st, seq);

	must(open != NULL);
	qc_open_settle(w->st, open, committed, 0, w->now);
}

/* Lease the runs as the deliver effect does. */
static void
deliver(Waiting *w, const QcRun *runs, uint32_t nruns)
{
	QcDeliver	head = {.lease = ++w->lease, .queue = WAITING_QUEUE, .group = QC_DEFAULT_GROUP,
		.lease_us = LEASE_US};
	QcApply		how = immediate(w);
	uint8_t		bytes[4096];
	QcWriter	writer;
	QcReader	reader;
	QcEffect	effect;
	QcError		err;

	qc_writer_init(&writer, bytes, sizeof(bytes));
	qc_effect_put(&writer, QC_EFFECT_DELIVER, &head, nruns);
	for (uint32_t i = 0; i < nruns; i++)
	{
		QcDeliverItem item = {.partition = runs[i].partition, .first = runs[i].first,
			.count = runs[i].count, .attempt = runs[i].attempt};

		qc_effect_put_item(&writer, QC_EFFECT_DELIVER, &item);
	}
	must(!writer.full);
	qc_reader_init(&reader, bytes, writer.len);
	qc_error_clear(&err);
	must(qc_effect_get(&reader, &effect, &err) == QC_OK);
	apply(w, &how, &effect);
	qc_lease_commit(w->st, qc_lease_by_id(w->st, w->lease), w->now);
}

uint64_t
waiting_pop(Waiting *w, uint32_t process, uint32_t partition, uint32_t batch, bool list)
{
	QcPopRequest request = {.queue = w->queue, .group = w->group, .batch = batch,
		.max_partitions = 1};
	QcWaitFor	what = {.group = w->group, .weight = batch};
	QcRun		runs[64];
	uint32_t	nruns;

	if (partition != WAITING_NOBODY)
	{
		request.partition = what.partition = waiting_partition(w, partition);
		what.partition_hash = qc_wait_partition(w->queue, qc_name_at(w->st, request.partition->name),
												request.partition->name_len);
	}
	if (qc_pop_choose(w->st, &request, runs, 64, &nruns) > 0)
	{
		deliver(w, runs, nruns);
		qc_wait_popped(w->st, process, w->group, true);
		return w->lease;
	}
	if (list)
		qc_wait_list(w->st, process, &what);
	else
		qc_wait_popped(w->st, process, w->group, false);
	return 0;
}

bool
waiting_tell(Waiting *w, uint32_t process)
{
	return qc_wait_tell(w->st, process, w->group, w->now);
}

void
waiting_ack(Waiting *w, uint64_t id)
{
	QcLease    *lease = qc_lease_by_id(w->st, id);
	QcSlot	   *slot;

	must(lease != NULL);
	while ((slot = QC_AT(w->st, QcSlot, lease->slots.head)) != NULL)
	{
		QcCursor   *cursor = QC_AT(w->st, QcCursor, slot->cursor);

		(void) qc_lease_done(w->st, lease, QC_AT(w->st, QcPartition, cursor->partition),
							 slot->position, 1);
	}
	(void) qc_lease_end_if_empty(w->st, lease);
}

void
waiting_nack(Waiting *w, uint64_t id, int64_t delay_us)
{
	QcReturn	how = {delay_us, w->now, w->now, QC_DEAD_NACKED};

	qc_lease_release(w->st, qc_lease_by_id(w->st, id), UINT32_MAX, &how);
}

void
waiting_drop(Waiting *w)
{
	qc_queue_kill(w->st, w->queue);
}

void
waiting_pass(Waiting *w, int64_t us)
{
	uint64_t	expired[64];
	uint32_t	n;
	QcReturn	how = {.cause = QC_DEAD_EXPIRED};

	w->now += us;
	how.now = how.monotonic = w->now;
	do
	{
		n = qc_timers_run(w->st, w->now, expired, 64);
		for (uint32_t i = 0; i < n; i++)
			qc_lease_release(w->st, qc_lease_by_id(w->st, expired[i]), UINT32_MAX,
							 &how);
	} while (n > 0);
	qc_claims_run(w->st, w->now);
}

uint32_t
waiting_unlock(Waiting *w)
{
	uint32_t	woken[3];
	uint32_t	n;
	uint32_t	total = 0;

	do
	{
		n = qc_wakes_take(w->st, w->now, woken, 3);
		for (uint32_t i = 0; i < n; i++)
			w->latch[woken[i]] = true;
		total += n;
	} while (n == 3);
	return total;
}

/* ---- the invariants, counted anew ---- */

/* What of a partition can be taken now, counted message by message. */
static uint64_t
count_messages(Waiting *w, const QcPartition *partition)
{
	QcCursor   *cursor = qc_cursor_of(w->st, partition, w->group);
	const QcAbortedRange *range = QC_AT(w->st, QcAbortedRange, partition->aborted.head);
	uint64_t	n = 0;

	for (QcSlot *slot = QC_AT(w->st, QcSlot, cursor->slots.head); slot != NULL;
		 slot = QC_AT(w->st, QcSlot, slot->of_cursor.next))
		n += slot->state == QC_SLOT_RETRY;
	for (uint64_t p = cursor->fetch; p < partition->stable; p++)
	{
		while (range != NULL && range->first + range->count <= p)
			range = QC_AT(w->st, QcAbortedRange, range->next);
		n += range == NULL || p < range->first;
	}
	return n;
}

/* An ordered partition with something to take that nobody holds. */
static bool
is_ready(Waiting *w, const QcPartition *partition)
{
	QcCursor   *cursor = qc_cursor_of(w->st, partition, w->group);
	const QcSlot *first = QC_AT(w->st, QcSlot, cursor->slots.head);

	return count_messages(w, partition) > 0 && cursor->nleased == 0 &&
		(first == NULL || first->state == QC_SLOT_RETRY);
}

typedef struct Claims
{
	uint64_t	n;
	uint64_t	weight;
} Claims;

/* Claims of the group (partition 0), or for one partition. */
static Claims
count_claims(Waiting *w, uint64_t partition)
{
	Claims		claims = {0, 0};

	for (uint32_t i = 0; i < WAITING_PROCESSES; i++)
	{
		const QcWaiter *waiter = qc_waiter(w->st, i);

		if ((waiter->state != QC_WAITER_CLAIMED && waiter->state != QC_WAITER_TOLD) ||
			(partition != 0 && waiter->partition != partition))
			continue;
		claims.n++;
		claims.weight += waiter->weight;
	}
	return claims;
}

static const char *
check_listed(Waiting *w, const QcWaiter *waiter)
{
	QcPartition *competing = waiting_partition(w, 0);
	uint64_t	messages = count_messages(w, competing);
	uint64_t	ordered = 0;
	Claims		claims;

	if (w->queue->flags & QC_QUEUE_NO_POP)
		return NULL;
	for (uint32_t i = 1; i < WAITING_PARTITIONS; i++)
	{
		const QcPartition *partition = waiting_partition(w, i);
		uint64_t	hash = qc_wait_partition(w->queue, qc_name_at(w->st, partition->name), 1);

		if (waiter->partition_hash == hash && is_ready(w, partition) &&
			count_claims(w, partition->id).n == 0)
			return "(2): an ordered partition is ready, one waits for it and nobody comes";
		ordered += is_ready(w, partition);
	}
	if (waiter->partition_hash == qc_wait_partition(w->queue, "", 0))
		return count_claims(w, competing->id).weight < messages ?
			"(2): messages compete, one waits for them and too few come" : NULL;
	if (waiter->partition_hash != 0)
		return NULL;
	claims = count_claims(w, 0);
	if (ordered > 0 ? claims.n < ordered + messages : claims.weight < messages)
		return "(1): something is deliverable, one waits and too few come";
	return NULL;
}

const char *
waiting_check(Waiting *w)
{
	Claims		claims = count_claims(w, 0);
	uint32_t	listed = 0;

	if (w->st->wakes.head != 0)
		return "a latch was not set";
	if (claims.n != w->group->nclaims || claims.weight != w->group->claims_weight)
		return "the group counts other claims";
	for (uint32_t i = 0; i < WAITING_PROCESSES; i++)
	{
		const QcWaiter *waiter = qc_waiter(w->st, i);
		const char *broken;

		if (waiter->state == QC_WAITER_CLAIMED && !waiter->woken)
			return "a claim of a process that was not woken";
		if (waiter->state != QC_WAITER_LISTED)
			continue;
		listed++;
		broken = check_listed(w, waiter);
		if (broken != NULL)
			return broken;
	}
	return listed == w->group->nlisted ? NULL : "the group counts other waiters";
}
