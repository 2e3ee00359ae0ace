/*
 * qc_wait.c
 *		Waiters, claims and wake-ups.
 *
 * A node is in its group's waiters or in a bucket (LISTED), or in its group's claims (CLAIMED, TOLD), or nowhere (IDLE).
 * Independently of that it is in QcState.wakes while its latch has not been set.  A claim that is not in there is in
 * QcState.claims, which is in the order of `since`.
 */
#include "qc_wait.h"

#include <assert.h>
#include <stddef.h>

#include "qc_effect.h"
#include "qc_timer.h"

#define OF_GROUP	offsetof(QcWaiter, of_group)
#define OF_ALL		offsetof(QcWaiter, of_all)

QcWaiter *
qc_waiter(QcState *st, uint32_t process)
{
	assert(process < st->nwaiters);
	return (QcWaiter *) ((uintptr_t) st + (uintptr_t) st->waiters) + process;
}

uint64_t
qc_wait_partition(const QcQueue *queue, const char *name, size_t len)
{
	uint64_t	hash = qc_hash_name(queue->id, name, len);

	return hash == 0 ? 1 : hash;
}

static QcList *
bucket(QcState *st, QcRef group, uint64_t hash)
{
	return &st->wait_buckets[qc_hash_id(hash + group) % QC_WAIT_BUCKETS];
}

static bool
is_claim(const QcWaiter *waiter)
{
	return waiter->state == QC_WAITER_CLAIMED || waiter->state == QC_WAITER_TOLD;
}

/* ---- what is deliverable, and what of it is covered ---- */

/* Pops are paused: nothing is deliverable, whatever is ready. */
static bool
is_paused(const QcState *st, const QcGroup *group)
{
	return (QC_AT(st, QcQueue, group->queue)->flags & QC_QUEUE_NO_POP) != 0;
}

/* Would a pop find something, or have to look where the group has not looked? */
static bool
is_deliverable(const QcState *st, const QcGroup *group)
{
	return !is_paused(st, group) && (group->ready.head != 0 || group->unscanned > 0);
}

/* Messages of the competing partition that can be taken now; where transactions have aborted, maybe more. */
static uint64_t
competing_messages(const QcState *st, const QcCursor *cursor)
{
	const QcPartition *partition = QC_AT(st, QcPartition, cursor->partition);
	const QcGroup *group = QC_AT(st, QcGroup, cursor->group);
	uint64_t	retry = cursor->nslots - cursor->nleased - cursor->nwaiting;
	uint64_t	room = st->max_slots > cursor->nslots ? st->max_slots - cursor->nslots : 0;
	uint64_t	fresh = partition->stable > cursor->fetch ? partition->stable - cursor->fetch : 0;
	uint64_t	n = retry + (fresh < room ? fresh : room);

	return n < group->nready ? n : group->nready;
}

/* Invariant (1).  Looks at one ready cursor more than there are claims, at most. */
static bool
covered(QcState *st, const QcGroup *group)
{
	uint64_t	ordered = group->unscanned > 0;
	uint64_t	competing = 0;

	if (is_paused(st, group))
		return true;
	if (ordered > group->nclaims)
		return false;
	for (const QcCursor *cursor = QC_AT(st, QcCursor, group->ready.head); cursor != NULL;
		 cursor = QC_AT(st, QcCursor, cursor->ready.next))
	{
		if (qc_partition_ordered(st, QC_AT(st, QcPartition, cursor->partition)))
			ordered++;
		else
			competing += competing_messages(st, cursor);
		if (ordered > 0 ? ordered + competing > group->nclaims : competing > group->claims_weight)
			return false;
	}
	return true;
}

/* Invariant (2). */
static bool
covered_one(QcState *st, const QcGroup *group, const QcCursor *cursor)
{
	const QcPartition *partition = QC_AT(st, QcPartition, cursor->partition);
	bool		ordered = qc_partition_ordered(st, partition);
	uint64_t	messages = ordered ? 1 : competing_messages(st, cursor);
	uint64_t	taken = 0;

	if (!cursor->is_ready || is_paused(st, group))
		return true;
	for (const QcWaiter *claim = QC_AT(st, QcWaiter, group->claims.head);
		 claim != NULL && taken < messages; claim = QC_AT(st, QcWaiter, claim->of_group.next))
	{
		if (claim->partition == partition->id)
			taken += ordered ? 1 : claim->weight;
	}
	return taken >= messages;
}

/* ---- changes of a node ---- */

static void
unlist(QcState *st, QcWaiter *waiter)
{
	QcGroup    *group = QC_AT(st, QcGroup, waiter->group);

	assert(waiter->state == QC_WAITER_LISTED && group->nlisted > 0);
	if (waiter->partition_hash == 0)
		qc_list_remove(st, &group->waiters, QC_REF(st, waiter), OF_GROUP);
	else
	{
		qc_list_remove(st, bucket(st, waiter->group, waiter->partition_hash), QC_REF(st, waiter),
					   OF_GROUP);
		group->nlisted_one--;
	}
	group->nlisted--;
	waiter->group = 0;
	waiter->state = QC_WAITER_IDLE;
}

/* Its latch will be set by whoever holds the lock. */
static void
wake(QcState *st, QcGroup *group, QcWaiter *waiter)
{
	waiter->woken = 1;
	group->wakeups++;
	if (waiter->in_wakes)
		return;
	waiter->in_wakes = 1;
	qc_list_append(st, &st->wakes, QC_REF(st, waiter), OF_ALL);
}

/* Give an idle node a claim.  partition: of one that waits for it alone, else 0. */
static void
make_claim(QcState *st, QcGroup *group, QcWaiter *waiter, uint64_t partition, QcWaiterState state)
{
	assert(waiter->state == QC_WAITER_IDLE);
	waiter->group = QC_REF(st, group);
	waiter->partition = partition;
	waiter->state = state;
	qc_list_append(st, &group->claims, QC_REF(st, waiter), OF_GROUP);
	group->nclaims++;
	group->claims_weight += waiter->weight;
}

/* The claim's clock runs from now on. */
static void
start_clock(QcState *st, QcWaiter *waiter, int64_t monotonic)
{
	waiter->since = monotonic;
	qc_list_append(st, &st->claims, QC_REF(st, waiter), OF_ALL);
	qc_timers_call(st, monotonic + QC_CLAIM_US);
}

static void
drop_claim(QcState *st, QcWaiter *waiter)
{
	QcGroup    *group = QC_AT(st, QcGroup, waiter->group);

	assert(is_claim(waiter) && group->nclaims > 0);
	qc_list_remove(st, &group->claims, QC_REF(st, waiter), OF_GROUP);
	if (!waiter->in_wakes)
		qc_list_remove(st, &st->claims, QC_REF(st, waiter), OF_ALL);
	group->nclaims--;
	group->claims_weight -= waiter->weight;
	waiter->group = 0;
	waiter->state = QC_WAITER_IDLE;
}

static void
wake_with_claim(QcState *st, QcGroup *group, QcWaiter *waiter, uint64_t partition)
{
	unlist(st, waiter);
	make_claim(st, group, waiter, partition, QC_WAITER_CLAIMED);
	wake(st, group, waiter);
}

/* ---- waking ---- */

/* Those who wait for the cursor's partition alone. */
static void
wake_for_one(QcState *st, QcGroup *group, const QcCursor *cursor)
{
	const QcPartition *partition = QC_AT(st, QcPartition, cursor->partition);
	QcRef		of_group = QC_REF(st, group);
	uint64_t	hash = qc_wait_partition(QC_AT(st, QcQueue, partition->queue),
										 qc_name_at(st, partition->name), partition->name_len);
	QcRef		next;

	for (QcRef ref = bucket(st, of_group, hash)->head; ref != 0; ref = next)
	{
		QcWaiter   *waiter = QC_AT(st, QcWaiter, ref);

		next = waiter->of_group.next;
		if (waiter->group != of_group || waiter->partition_hash != hash)
			continue;
		if (covered_one(st, group, cursor))
			return;
		wake_with_claim(st, group, waiter, partition->id);
	}
}

void
qc_wake(QcState *st, QcGroup *group, QcCursor *cursor)
{
	if (cursor != NULL && group->nlisted_one > 0)
		wake_for_one(st, group, cursor);
	while (group->waiters.head != 0 && !covered(st, group))
		wake_with_claim(st, group, QC_AT(st, QcWaiter, group->waiters.head), 0);
}

/* A claim of the group, for this partition (0 = any), has ended: others may have to come in its place. */
static void
restore(QcState *st, QcGroup *group, uint64_t partition)
{
	QcPartition *one = partition == 0 ? NULL : qc_partition_by_id(st, partition);

	if (group->nlisted > 0)
		qc_wake(st, group, one == NULL ? NULL : qc_cursor_of(st, one, group));
}

/* End a claim and wake who must come in its place. */
static void
end_claim(QcState *st, QcWaiter *waiter)
{
	QcGroup    *group = QC_AT(st, QcGroup, waiter->group);
	uint64_t	partition = waiter->partition;

	drop_claim(st, waiter);
	restore(st, group, partition);
}

/* Wake everybody who is listed, or (one) only those who wait for one partition. */
static void
wake_listed(QcState *st, QcGroup *group, bool one)
{
	QcRef		of_group = QC_REF(st, group);

	for (uint32_t i = 0; i < st->nwaiters && (one ? group->nlisted_one : group->nlisted) > 0; i++)
	{
		QcWaiter   *waiter = qc_waiter(st, i);

		if (waiter->state != QC_WAITER_LISTED || waiter->group != of_group ||
			(one && waiter->partition_hash == 0))
			continue;
		unlist(st, waiter);
		wake(st, group, waiter);
	}
}

void
qc_wake_resumed(QcState *st, QcGroup *group)
{
	qc_wake(st, group, NULL);
	wake_listed(st, group, true);
}

void
qc_wait_group_gone(QcState *st, QcGroup *group)
{
	QcRef		ref;

	wake_listed(st, group, false);
	while ((ref = group->claims.head) != 0)
		drop_claim(st, QC_AT(st, QcWaiter, ref));
}

/* ---- what processes say ---- */

void
qc_wait_end(QcState *st, uint32_t process)
{
	QcWaiter   *waiter = qc_waiter(st, process);

	waiter->woken = 0;
	if (waiter->state == QC_WAITER_LISTED)
		unlist(st, waiter);
	else if (is_claim(waiter))
		end_claim(st, waiter);
}

void
qc_wait_list(QcState *st, uint32_t process, const QcWaitFor *what)
{
	QcWaiter   *waiter = qc_waiter(st, process);
	QcGroup    *group = what->group;
	QcRef		ref = QC_REF(st, waiter);

	qc_wait_end(st, process);
	waiter->group = QC_REF(st, group);
	waiter->partition_hash = what->partition_hash;
	waiter->weight = what->weight;
	waiter->state = QC_WAITER_LISTED;
	group->nlisted++;
	if (what->partition_hash == 0)
		qc_list_append(st, &group->waiters, ref, OF_GROUP);
	else
	{
		group->nlisted_one++;
		qc_list_append(st, bucket(st, waiter->group, waiter->partition_hash), ref, OF_GROUP);
	}
	qc_wake(st, group,
			what->partition == NULL ? NULL : qc_cursor_of(st, what->partition, group));
}

/* End the claims of clients that were told, the oldest ones first, at most max. */
static void
end_told(QcState *st, QcGroup *group, uint32_t max)
{
	QcRef		next;

	for (QcRef ref = group->claims.head; ref != 0 && max > 0; ref = next)
	{
		QcWaiter   *waiter = QC_AT(st, QcWaiter, ref);

		next = waiter->of_group.next;
		if (waiter->state != QC_WAITER_TOLD)
			continue;
		drop_claim(st, waiter);
		max--;
	}
}

void
qc_wait_popped(QcState *st, uint32_t process, QcGroup *group, bool took)
{
	QcWaiter   *waiter = qc_waiter(st, process);
	bool		mine = waiter->group == QC_REF(st, group);

	if (mine)
		qc_wait_end(st, process);
	if (group->nclaims == 0)
		return;
	if (!is_deliverable(st, group))
		end_told(st, group, UINT32_MAX);
	else if (took && !mine)
		end_told(st, group, 1); /* it stood for no more than what was taken */
}

bool
qc_wait_tell(QcState *st, uint32_t process, QcGroup *group, int64_t monotonic)
{
	QcWaiter   *waiter = qc_waiter(st, process);
	QcWaitFor	what = {.group = group, .weight = 1};

	if (is_claim(waiter) && waiter->group == QC_REF(st, group) && is_deliverable(st, group))
		drop_claim(st, waiter);
	else
	{
		qc_wait_end(st, process);
		if (covered(st, group))
		{
			qc_wait_list(st, process, &what);
			return false;
		}
	}
	waiter->woken = 0;
	waiter->partition_hash = 0;
	waiter->weight = 1;
	make_claim(st, group, waiter, 0, QC_WAITER_TOLD);
	if (!waiter->in_wakes)
		start_clock(st, waiter, monotonic);
	return true;
}

/* ---- claims in time ---- */

uint32_t
qc_wakes_take(QcState *st, int64_t monotonic, uint32_t *processes, uint32_t max)
{
	uint32_t	n = 0;

	while (n < max && st->wakes.head != 0)
	{
		QcWaiter   *waiter = QC_AT(st, QcWaiter, st->wakes.head);

		qc_list_remove(st, &st->wakes, st->wakes.head, OF_ALL);
		waiter->in_wakes = 0;
		if (is_claim(waiter))
			start_clock(st, waiter, monotonic);
		processes[n++] = (uint32_t) (waiter - qc_waiter(st, 0));
	}
	return n;
}

void
qc_claims_run(QcState *st, int64_t monotonic)
{
	while (st->claims.head != 0)
	{
		QcWaiter   *oldest = QC_AT(st, QcWaiter, st->claims.head);

		if (monotonic - oldest->since < QC_CLAIM_US)
			return;
		end_claim(st, oldest);
	}
}

int64_t
qc_claims_next(const QcState *st)
{
	const QcWaiter *oldest = QC_AT(st, QcWaiter, st->claims.head);

	return oldest == NULL ? INT64_MAX : oldest->since + QC_CLAIM_US;
}
