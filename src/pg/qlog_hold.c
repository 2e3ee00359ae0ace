/*
 * qlog_hold.c
 *		Leases of the current transaction and the credit that ends them.
 */
#include "qlog_hold.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "qlog_commit.h"
#include "qlog_stage.h"

#define LEASES_FIRST 4			/* of a subtransaction's first credit */
#define LEASES_MAX	1024		/* of one credit, which is used up under one hold of the state lock */

typedef struct Hold
{
	QcSmallPlan small;
	uint32		max;
	uint32		n;
	uint64	   *leases;			/* max of them */
	uint32	   *messages;		/* held by each of them at the end */
	uint8	   *buffer;
} Hold;

static Hold **holds;
static uint32 nholds;
static uint32 maxholds;

uint32
qlog_hold_count(void)
{
	return nholds;
}

/* Bytes of the effect that ends one lease, whichever it will be. */
static size_t
effect_max(void)
{
	QcRelease	release = {0};

	return qc_effect_size(QC_EFFECT_RELEASE, &release, 0);
}

/* A credit for this many leases, taken. */
static Hold *
make_hold(uint32 max)
{
	MemoryContext context = qlog_stage_context();
	Hold	   *hold = MemoryContextAllocZero(context, sizeof(Hold));
	size_t		room = max * effect_max();

	hold->max = max;
	hold->leases = MemoryContextAlloc(context, max * sizeof(uint64));
	hold->messages = MemoryContextAlloc(context, max * sizeof(uint32));
	hold->buffer = MemoryContextAlloc(context, QC_SMALL_BUFFER(room));
	qc_plan_small(&hold->small, hold->buffer, room);
	qlog_submit_hold(&hold->small);
	return hold;
}

static void
drop_hold(Hold *hold)
{
	pfree(hold->leases);
	pfree(hold->messages);
	pfree(hold->buffer);
	pfree(hold);
}

void
qlog_hold_prepare(void)
{
	uint32		below = qlog_stage_enter();
	uint32		from;
	uint32		n = 0;
	Hold	   *hold;

	if (nholds > below && holds[nholds - 1]->n < holds[nholds - 1]->max)
		return;
	if (holds == NULL)
	{
		holds = MemoryContextAlloc(qlog_stage_context(), LEASES_FIRST * sizeof(Hold *));
		maxholds = LEASES_FIRST;
	}
	if (nholds == maxholds)
	{
		holds = repalloc(holds, maxholds * 2 * sizeof(Hold *));
		maxholds *= 2;
	}

	/* A larger credit takes the place of this subtransaction's last ones, which are used up. */
	for (from = nholds; from > below && n + holds[from - 1]->n <= LEASES_MAX / 2; from--)
		n += holds[from - 1]->n;
	hold = make_hold(Max(n * 2, LEASES_FIRST));
	for (uint32 i = from; i < nholds; i++)
	{
		memcpy(hold->leases + hold->n, holds[i]->leases, holds[i]->n * sizeof(uint64));
		hold->n += holds[i]->n;
		qlog_submit_cancel(&holds[i]->small);
		drop_hold(holds[i]);
	}
	holds[from] = hold;
	nholds = from + 1;
}

void
qlog_hold_add(uint64 lease)
{
	Hold	   *hold = holds[nholds - 1];

	Assert(hold->n < hold->max);
	hold->leases[hold->n++] = lease;
}

/* Keep only leases that exist, and note what they hold: acknowledged ones have ended. */
static void
forget_ended(Hold *hold)
{
	uint32		n = 0;

	qlog_lock_state();
	for (uint32 i = 0; i < hold->n; i++)
	{
		const QcLease *lease = qc_lease_by_id(qlog_state, hold->leases[i]);

		if (lease == NULL)
			continue;
		hold->messages[n] = lease->nslots;
		hold->leases[n++] = hold->leases[i];
	}
	qlog_unlock_state();
	hold->n = n;
}

/* Log the end of the hold's leases: one entry. */
static void
end_hold(Hold *hold, bool commit)
{
	QcWriter	w;

	forget_ended(hold);
	if (hold->n == 0)
	{
		qlog_submit_cancel(&hold->small);
		return;
	}
	w = qc_plan_small_writer(&hold->small);
	for (uint32 i = 0; i < hold->n; i++)
	{
		QcPopCommit pop_commit = {.lease = hold->leases[i]};
		QcRelease	release = {.lease = hold->leases[i], .delay_us = QC_DELAY_RULE,
			.reason = QC_RELEASE_ABORT, .messages = hold->messages[i]};

		if (commit)
			qc_effect_put(&w, QC_EFFECT_POP_COMMIT, &pop_commit, 0);
		else
			qc_effect_put(&w, QC_EFFECT_RELEASE, &release, 0);
	}
	qc_plan_small_done(&hold->small, &w, hold->n);
	(void) qlog_submit_held(&hold->small);
}

/* Nothing can be raised here; an interrupt would leave the rest unreleased. */
void
qlog_hold_abort(uint32 from)
{
	HOLD_INTERRUPTS();
	while (nholds > from)
	{
		end_hold(holds[nholds - 1], false);
		drop_hold(holds[nholds - 1]);
		nholds--;
	}
	RESUME_INTERRUPTS();
}

void
qlog_hold_commit(void)
{
	while (nholds > 0)
	{
		end_hold(holds[nholds - 1], true);
		nholds--;
	}
}

void
qlog_hold_forget(void)
{
	Assert(nholds == 0);
	holds = NULL;
	maxholds = 0;
}
