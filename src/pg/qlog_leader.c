/*
 * qlog_leader.c
 *		The list of followers of group commit.
 *
 * One word holds the newest listed process and whether somebody leads.	It is changed by compare and swap only; listed
 * processes are taken off all at once, by the leader, so a process that comes back in between does no harm.  Sleeping and
 * waking use the semaphore of the process as lightweight locks do, so wake-ups meant for these are given back.
 */
#include "qlog_leader.h"

#include "miscadmin.h"
#include "storage/pg_sema.h"
#include "storage/proc.h"

#include "qlog_compat.h"

#include "../core/qc_apply.h"

#define LEADING			UINT32_C(0x80000000)
#define SETTLED_AT_ONCE 32		/* entries settled in one hold of the state lock */
#define GATHER_STEP_US	100
#define GATHER_SHARE	4		/* the fourth part of the time of a sync is what gathering may take */
#define GATHER_SKIP_MAX 63

enum
{
	WAITING,
	DONE,						/* durable and settled */
	LOOK_AGAIN					/* nobody leads: look */
};

/* A process that sleeps, or may. */
typedef struct Follower
{
	uint64		seq;
	QcRef		open;
	uint32		next;			/* process number + 1, 0 = last */
	pg_atomic_uint32 state;
	uint32		unused[3];
} Follower;

typedef struct Followers
{
	pg_atomic_uint32 word;		/* newest listed process + 1, and LEADING */

	/* Who leads: */
	uint32		party;			/* the last leader, its followers, and those it left */
	uint32		skip;			/* leaders that do not gather, since it did not pay */
	uint32		skipped;		/* how many of them it were the last time */
	int64		sync_us;		/* time of a sync, averaged; 0 = not known */
	uint32		unused[10];
	Follower	followers[FLEXIBLE_ARRAY_MEMBER];
} Followers;

static Followers *list;

/* Sleeps of this process that are not counted yet. */
static uint64 waits;

Size
qlog_leader_size(void)
{
	return add_size(offsetof(Followers, followers), mul_size((Size) MaxBackends, sizeof(Follower)));
}

void
qlog_leader_init(void *block, bool fresh)
{
	list = block;
	if (!fresh)
		return;
	pg_atomic_init_u32(&list->word, 0);
	list->party = list->skip = list->skipped = 0;
	list->sync_us = 0;
	for (int i = 0; i < MaxBackends; i++)
		pg_atomic_init_u32(&list->followers[i].state, DONE);
}

static Follower *
follower_of(uint32 number)
{
	return &list->followers[number - 1];
}

/* Sleep until the leader says what to do. */
static uint32
sleep_listed(Follower *me)
{
	int			foreign = 0;
	uint32		state;

	waits++;
	pgstat_report_wait_start(PG_WAIT_LWLOCK | (uint32) qlog_shared->sync_tranche);
	for (;;)
	{
		PGSemaphoreLock(MyProc->sem);
		state = pg_atomic_read_u32(&me->state);
		if (state != WAITING)
			break;
		foreign++;
	}
	pgstat_report_wait_end();
	while (foreign-- > 0)
		PGSemaphoreUnlock(MyProc->sem);
	pg_read_barrier();
	return state;
}

QlogFlushRole
qlog_leader_join(uint64 seq, QcRef open)
{
	uint32		number = (uint32) QLOG_PROC_NUMBER() + 1;
	Follower   *me = follower_of(number);
	uint32		word = pg_atomic_read_u32(&list->word);

	while (qc_ring_durable(qlog_ring) < seq)
	{
		if ((word & LEADING) == 0)
		{
			if (pg_atomic_compare_exchange_u32(&list->word, &word, word | LEADING))
				return QLOG_FLUSH_LEADS;
			continue;
		}
		me->seq = seq;
		me->open = open;
		me->next = word & ~LEADING;
		pg_atomic_write_u32(&me->state, WAITING);
		if (!pg_atomic_compare_exchange_u32(&list->word, &word, number | LEADING))
			continue;
		if (sleep_listed(me) == DONE)
			return QLOG_FLUSH_SETTLED;
		word = pg_atomic_read_u32(&list->word);
	}
	return QLOG_FLUSH_DURABLE;
}

/* Entries reserved and not durable.	The seq may be stale, which only ends a wait too early or too late. */
static uint64
entries_waiting(void)
{
	return *(volatile uint64 *) &qlog_state->seq - qc_ring_durable(qlog_ring);
}

uint32
qlog_leader_others(void)
{
	return list->party > 0 ? list->party - 1 : 0;
}

/* The wait paid when the group grew by at least twice the share of a sync that it took; else do without it for a while. */
static void
judge_gathering(uint64 before, uint64 after, int64 us)
{
	if ((int64) (after - before) * list->sync_us >= 2 * (int64) before * us)
		list->skipped = 0;
	else
		list->skip = list->skipped = Min(2 * list->skipped + 1, GATHER_SKIP_MAX);
}

void
qlog_leader_gather(void)
{
	int64		limit = list->sync_us / GATHER_SHARE;
	int64		us = 0;
	uint64		before = entries_waiting();
	uint64		now = before;
	uint64		last = 0;
	int64		start;

	if (list->skip > 0)
		list->skip--;
	else if (now > 0 && now < list->party && limit >= GATHER_STEP_US)
	{
		start = qlog_monotonic();
		while (now < list->party && now > last && us < limit)
		{
			pg_usleep(GATHER_STEP_US);
			last = now;

			now = entries_waiting();
			us = qlog_monotonic() - start;
		}
		judge_gathering(before, now, us);
	}
}

/* Tell a process that is not listed any more; from then on its entry belongs to it again. */
static void
wake(uint32 number, uint32 state)
{
	pg_write_barrier();
	pg_atomic_write_u32(&follower_of(number)->state, state);
	PGSemaphoreUnlock(ProcGlobal->allProcs[number - 1].sem);
}

/* Take everybody off the list and divide them: durable now, or not.	Returns how many there are. */
static uint32
divide(uint64 durable, uint32 *covered, uint32 *others)
{
	uint32		n = 0;
	uint32		number = pg_atomic_exchange_u32(&list->word, LEADING) & ~LEADING;

	while (number != 0)
	{
		Follower   *follower = follower_of(number);
		uint32		next = follower->next;
		uint32	   *half = follower->seq <= durable ? covered : others;

		follower->next = *half;
		*half = number;
		number = next;
		n++;
	}
	return n;
}

/* List them again. */
static void
put_back(uint32 first)
{
	uint32		word = pg_atomic_read_u32(&list->word);
	Follower   *last;

	if (first == 0)
		return;
	for (last = follower_of(first); last->next != 0;)
		last = follower_of(last->next);

	do
	{
		last->next = word & ~LEADING;
	} while (!pg_atomic_compare_exchange_u32(&list->word, &word, first | LEADING));
}

/* Lead no more; returns those whose entries are durable, who are not listed any more. */
static uint32
end_office(const QlogFlushWork *work)
{
	uint32		covered = 0;

	list->party = 1;
	if (work->us > 0)
		list->sync_us = list->sync_us == 0 ? work->us : (3 * list->sync_us + work->us) / 4;
	for (;;)
	{
		uint32		others = 0;
		uint32		expected = LEADING;

		list->party += divide(qc_ring_durable(qlog_ring), &covered, &others);
		if (others != 0)
		{
			/* It must not look before nobody leads, or it would list itself and nobody wake it. */
			put_back(follower_of(others)->next);
			(void) pg_atomic_fetch_and_u32(&list->word, ~LEADING);
			wake(others, LOOK_AGAIN);
			return covered;
		}
		if (pg_atomic_compare_exchange_u32(&list->word, &expected, 0))
			return covered;
	}
}

static void
settle(QcRef open, int64 monotonic)
{
	if (open != 0)
		qc_open_settle(qlog_state, QC_AT(qlog_state, QcOpen, open), true, 0, monotonic);
}

/* State lock. */
static void
count(const QlogFlushWork *work)
{
	QcCounters *counters = &qlog_state->counters;

	counters->fsyncs += work->syncs;
	counters->fsync_us += (uint64) work->us;
	counters->groups += work->entries > 0;
	counters->grouped += work->entries;
	counters->group_max = Max(counters->group_max, work->entries);
	counters->waits += waits;
	waits = 0;
}

void
qlog_leader_end(QcRef open, const QlogFlushWork *work)
{
	uint32		covered = end_office(work);
	bool		first = true;

	while (first || covered != 0)
	{
		int64		monotonic = qlog_monotonic();
		uint32		settled = covered;
		int			n = 0;

		qlog_lock_state();
		if (first)
		{
			settle(open, monotonic);
			count(work);
			first = false;
		}
		for (; covered != 0 && n < SETTLED_AT_ONCE; n++)
		{
			settle(follower_of(covered)->open, monotonic);
			covered = follower_of(covered)->next;
		}
		qlog_unlock_state();
		while (settled != covered)
		{
			uint32		next = follower_of(settled)->next;

			wake(settled, DONE);
			settled = next;
		}
	}
}
