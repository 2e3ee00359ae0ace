/*
 * qc_timer.c
 *		Hierarchical timer wheel: four levels of 256 lists; arming, disarming and firing are O(1).
 *
 * Invariant: a timer at level l > 0 stands in bucket (tick >> 8l) & 255 and is moved down when wheel_tick
 * reaches the start of that bucket, so every timer fires in the run that covers its tick.
 */
#include "qc_timer.h"

#include <assert.h>
#include <stddef.h>

#include "qc_cursor.h"
#include "qc_delay.h"
#include "qc_purge.h"
#include "qc_wait.h"

#define LINK offsetof(QcTimer, link)
#define REARM_US INT64_C(1000000)

static void
wheel_put(QcState *st, QcTimer *timer)
{
	uint64_t	tick = timer->tick > st->wheel_tick ? timer->tick : st->wheel_tick;
	uint64_t	distance = tick - st->wheel_tick;
	uint8_t		level = 0;

	while (level < QC_WHEEL_LEVELS - 1 && distance >> (8 * (level + 1)) != 0)
		level++;
	if (distance >> (8 * QC_WHEEL_LEVELS) != 0)
		tick = st->wheel_tick + (UINT64_C(1) << (8 * QC_WHEEL_LEVELS)) - 1;
	timer->level = level;
	timer->bucket = (uint8_t) (tick >> (8 * level));
	qc_list_append(st, &st->wheel[level][timer->bucket], QC_REF(st, timer), LINK);
}

/* The tick at which a timer for this time fires: never early. */
static uint64_t
tick_of(int64_t when)
{
	if (when > INT64_MAX - QC_TICK_US)
		when = INT64_MAX - QC_TICK_US;
	return ((uint64_t) when + QC_TICK_US - 1) / QC_TICK_US;
}

/* Put a timer that is nowhere on the wheel. */
static void
start(QcState *st, QcTimer *timer, int64_t when, int64_t monotonic)
{
	if (when < monotonic)
		when = monotonic;
	if (st->ntimers == 0)
		st->wheel_tick = (uint64_t) monotonic / QC_TICK_US;
	timer->tick = tick_of(when);
	wheel_put(st, timer);
	st->ntimers++;
	qc_timers_call(st, (int64_t) (timer->tick * QC_TICK_US));
}

static QcRef
arm(QcState *st, QcRef target, QcTimerKind kind, int64_t when, int64_t monotonic, bool promised)
{
	QcRef		ref = promised ? qc_mem_alloc_reserved(&st->mem, QC_CLASS_TIMER) :
		qc_mem_alloc(&st->mem, QC_CLASS_TIMER);
	QcTimer    *timer = QC_AT(st, QcTimer, ref);

	if (timer == NULL)
		return 0;
	timer->target = target;
	timer->kind = (uint8_t) kind;
	start(st, timer, when, monotonic);
	return ref;
}

bool
qc_timer_arm_lease(QcState *st, QcLease *lease, int64_t when, int64_t monotonic, bool promised)
{
	qc_timer_disarm(st, &lease->timer);
	lease->timer = arm(st, QC_REF(st, lease), QC_TIMER_LEASE, when, monotonic, promised);
	lease->deadline = when;
	return lease->timer != 0;
}

bool
qc_timer_arm_slot(QcState *st, QcSlot *slot, int64_t when, int64_t monotonic, bool promised)
{
	qc_timer_disarm(st, &slot->timer);
	slot->timer = arm(st, QC_REF(st, slot), QC_TIMER_SLOT, when, monotonic, promised);
	return slot->timer != 0;
}

/* Take a timer from where it stands. */
static void
stop(QcState *st, QcTimer *timer)
{
	QcRef		ref = QC_REF(st, timer);

	if (timer->level == QC_TIMER_DUE)
		qc_list_remove(st, &st->due, ref, LINK);
	else if (timer->level != QC_TIMER_IDLE)
	{
		qc_list_remove(st, &st->wheel[timer->level][timer->bucket], ref, LINK);
		assert(st->ntimers > 0);
		st->ntimers--;
	}
	timer->level = QC_TIMER_IDLE;
}

void
qc_timer_disarm(QcState *st, QcRef *timer)
{
	if (*timer == 0)
		return;
	stop(st, QC_AT(st, QcTimer, *timer));
	qc_mem_free(&st->mem, QC_CLASS_TIMER, *timer);
	*timer = 0;
}

bool
qc_timer_take(QcState *st, QcLaneItem *item, bool promised)
{
	QcTimer    *timer;

	item->timer = promised ? qc_mem_alloc_reserved(&st->mem, QC_CLASS_TIMER) :
		qc_mem_alloc(&st->mem, QC_CLASS_TIMER);
	timer = QC_AT(st, QcTimer, item->timer);
	if (timer == NULL)
		return false;
	timer->target = QC_REF(st, item);
	timer->kind = QC_TIMER_ITEM;
	timer->level = QC_TIMER_IDLE;
	return true;
}

void
qc_timer_arm_item(QcState *st, QcLaneItem *item, int64_t when, int64_t monotonic)
{
	QcTimer    *timer = QC_AT(st, QcTimer, item->timer);

	stop(st, timer);
	start(st, timer, when, monotonic);
}

bool
qc_timer_waits(QcState *st, const QcLaneItem *item)
{
	return QC_AT(st, QcTimer, item->timer)->level < QC_WHEEL_LEVELS;
}

void
qc_timer_item_due(QcState *st, QcLaneItem *item)
{
	QcTimer    *timer = QC_AT(st, QcTimer, item->timer);
	QcRef		after = st->due.tail;

	/* Timers run out by ticks: only those of one tick can come out of order. */
	stop(st, timer);
	while (after != 0 &&
		   QC_AT(st, QcLaneItem, QC_AT(st, QcTimer, after)->target)->origin > item->origin)
		after = QC_AT(st, QcTimer, after)->link.prev;
	qc_list_insert(st, &st->due, after, item->timer, LINK);
	timer->level = QC_TIMER_DUE;
}

/* Move every timer of the bucket that begins at wheel_tick down, level by level. */
static void
cascade(QcState *st)
{
	for (int level = 1; level < QC_WHEEL_LEVELS; level++)
	{
		QcList	   *list;
		QcRef		ref;

		if ((st->wheel_tick & ((UINT64_C(1) << (8 * level)) - 1)) != 0)
			return;
		list = &st->wheel[level][(st->wheel_tick >> (8 * level)) & (QC_WHEEL_SIZE - 1)];
		ref = list->head;
		list->head = list->tail = 0;
		while (ref != 0)
		{
			QcTimer    *timer = QC_AT(st, QcTimer, ref);
			QcRef		next = timer->link.next;

			wheel_put(st, timer);
			ref = next;
		}
	}
}

/* Fire one timer; true when it was a lease that is over, whose id is put. */
static bool
fire(QcState *st, QcTimer *timer, int64_t monotonic, uint64_t *expired)
{
	QcLease    *lease;
	bool		held;

	if (timer->kind == QC_TIMER_ITEM)
	{
		qc_delay_due(st, QC_AT(st, QcLaneItem, timer->target), monotonic);
		return false;
	}
	if (timer->kind == QC_TIMER_SLOT)
	{
		QcSlot	   *slot = QC_AT(st, QcSlot, timer->target);
		QcPartition *partition = QC_AT(st, QcPartition, QC_AT(st, QcCursor, slot->cursor)->partition);

		if (qc_partition_stale(st, partition))
		{
			/* A purge has taken the slot, and this timer tells that it is in no list. */
			qc_partition_touch(st, partition);
			return false;
		}
		qc_timer_disarm(st, &slot->timer);
		qc_slot_due(st, slot);
		return false;
	}
	lease = QC_AT(st, QcLease, timer->target);
	held = lease->owner != 0 || lease->pin_seq != 0;
	*expired = lease->id;

	/*
	 * It keeps its timer, which is not armed anew: that could set wheel_tick while the wheel
	 * turns.
	 */
	qc_list_remove(st, &st->wheel[timer->level][timer->bucket], lease->timer, LINK);
	timer->tick = tick_of(held ? INT64_MAX : monotonic + REARM_US);
	wheel_put(st, timer);
	return !held;
}

/* First tick at or above wheel_tick at which a timer fires or a bucket is moved down; UINT64_MAX = never. */
static uint64_t
next_tick(const QcState *st)
{
	uint64_t	best = UINT64_MAX;

	if (st->ntimers == 0)
		return best;
	for (int level = 0; level < QC_WHEEL_LEVELS; level++)
	{
		uint64_t	base = st->wheel_tick >> (8 * level);
		uint64_t	skip = level > 0;	/* the current bucket above level 0 is a rotation away */

		for (uint64_t i = skip; i < QC_WHEEL_SIZE + skip; i++)
		{
			uint64_t	tick = (base + i) << (8 * level);

			if (st->wheel[level][(base + i) & (QC_WHEEL_SIZE - 1)].head == 0)
				continue;
			if (tick < st->wheel_tick)
				tick = st->wheel_tick;
			if (tick < best)
				best = tick;
			break;
		}
	}
	return best;
}

/* On to the next tick; at the end of a rotation over all that are empty, but not beyond the one after `now`. */
static void
move_on(QcState *st, uint64_t now)
{
	st->wheel_tick++;
	if ((st->wheel_tick & (QC_WHEEL_SIZE - 1)) == 0)
	{
		/* What begins here comes down first: empty is only what remains empty then. */
		cascade(st);
		if (st->wheel_tick <= now && st->wheel[0][0].head == 0)
		{
			uint64_t	next = next_tick(st);

			st->wheel_tick = next <= now ? next : now + 1;
			cascade(st);
		}
	}
}

uint32_t
qc_timers_step(QcState *st, int64_t monotonic, uint32_t budget, uint32_t *fired,
			   uint64_t *expired, uint32_t max)
{
	uint64_t	now = (uint64_t) monotonic / QC_TICK_US;
	uint32_t	n = 0;

	*fired = 0;
	qc_claims_run(st, monotonic);
	while (st->ntimers > 0 && st->wheel_tick <= now)
	{
		QcList	   *list = &st->wheel[0][st->wheel_tick & (QC_WHEEL_SIZE - 1)];

		while (list->head != 0)
		{
			if (n == max || *fired == budget)
				return n;
			if (fire(st, QC_AT(st, QcTimer, list->head), monotonic, &expired[n]))
				n++;
			(*fired)++;
		}
		move_on(st, now);
	}
	return n;
}

uint32_t
qc_timers_run(QcState *st, int64_t monotonic, uint64_t *expired, uint32_t max)
{
	uint32_t	fired;

	return qc_timers_step(st, monotonic, UINT32_MAX, &fired, expired, max);
}

int64_t
qc_timers_next(const QcState *st)
{
	uint64_t	next = next_tick(st);
	int64_t		timer = next == UINT64_MAX ? INT64_MAX : (int64_t) (next * QC_TICK_US);
	int64_t		claim = qc_claims_next(st);

	return timer < claim ? timer : claim;
}

int64_t
qc_timers_rest(QcState *st)
{
	st->rest_until = qc_timers_next(st);
	st->alarm = 0;
	return st->rest_until;
}

void
qc_timers_awake(QcState *st)
{
	st->rest_until = INT64_MIN;
	st->alarm = 0;
}
