/*
 * qlog_unread.c
 *		Noting and giving back messages that cannot be read.
 */
#include "qlog_unread.h"

#include "miscadmin.h"

#include "qlog_commit.h"
#include "qlog_damage.h"
#include "qlog_report.h"

#include "../core/qc_lease.h"

#define ITEMS_FIRST		16
#define WAIT_US			1000000 /* first wait of what has no limit of retries */
#define DOUBLINGS_MAX	20

/* The effect on its way. */
typedef struct GiveBack
{
	QcNack		nack;
	const QlogUnread *unread;
} GiveBack;

/* Is this the first one of an ordered partition? */
static bool
begins_ordered(const QlogUnread *unread, const QlogQueue *queue, uint64 partition)
{
	return partition != unread->ordered &&
		(partition != queue->default_partition || queue->options.value[QC_OPT_ORDERED] != 0);
}

void
qlog_unread_note(QlogUnread *unread, const QlogQueue *queue, const QlogSpot *spot,
				 const QcError *err)
{
	QlogUnreadItem item = {.partition = spot->partition, .position = spot->position,
		.ordered = begins_ordered(unread, queue, spot->partition)};

	if (!qlog_fetch_lost(err->code))
		qlog_report(ERROR, err, "could not read a message");
	qlog_damage_met(spot->location.log, err);
	if (unread->n == 0)
		unread->err = *err;
	unread->attempt = Max(unread->attempt, spot->attempt);
	if (item.ordered)
	{
		unread->nordered++;
		unread->ordered = spot->partition;
		unread->passed = false;
	}
	if (unread->items == NULL)
	{
		unread->max = ITEMS_FIRST;
		unread->items = palloc(unread->max * sizeof(QlogUnreadItem));
	}
	else if (unread->n == unread->max)
	{
		unread->max *= 2;
		unread->items = repalloc(unread->items, unread->max * sizeof(QlogUnreadItem));
	}
	unread->items[unread->n++] = item;
}

/*
 * How long they wait.  Without a limit of retries and without a delay a message that can never be delivered would
 * be all that small pops ever meet.
 */
static uint64
delay_us(const QlogUnread *unread, const QcOptions *options)
{
	int64		most = Max(options->value[QC_OPT_RETRY_DELAY_MAX], WAIT_US);

	if (options->value[QC_OPT_RETRY_LIMIT] >= 0 || options->value[QC_OPT_RETRY_DELAY] > 0)
		return QC_DELAY_RULE;
	return (uint64) Min(most, (int64) WAIT_US << Min(unread->attempt - 1, DOUBLINGS_MAX));
}

/* QlogChoose: each of them, which is charged, and then what stands behind them in ordered partitions. */
static bool
choose(void *context, QcSmallPlan *small)
{
	const GiveBack *give = context;
	const QlogUnread *unread = give->unread;
	QcWriter	w;

	if (qc_lease_by_id(qlog_state, give->nack.lease) == NULL)
		return false;
	w = qc_plan_small_writer(small);
	qc_effect_put(&w, QC_EFFECT_NACK, &give->nack, unread->n + unread->nordered);
	for (uint32 pass = 0; pass < 2; pass++)
	{
		for (uint32 i = 0; i < unread->n; i++)
		{
			const QlogUnreadItem *item = &unread->items[i];
			QcNackItem	range = {.partition = item->partition, .first = item->position,
				.count = pass == 0 ? 1 : QC_NACK_REST};

			if (pass == 0 || item->ordered)
				qc_effect_put_item(&w, QC_EFFECT_NACK, &range);
		}
	}
	qc_plan_small_done(small, &w, 1);
	return true;
}

void
qlog_unread_give_back(QlogUnread *unread, const QlogQueue *queue, uint64 lease)
{
	GiveBack	give = {.nack = {.lease = lease, .delay_us = delay_us(unread, &queue->options)},
		.unread = unread};
	size_t		size = qc_effect_size(QC_EFFECT_NACK, &give.nack, unread->n + unread->nordered);
	QcSmallPlan *small = palloc(sizeof(QcSmallPlan));
	uint64		seq;

	qc_plan_small(small, palloc(QC_SMALL_BUFFER(size)), size);
	small->plan.pid = (uint32) MyProcPid;
	seq = qlog_submit(small, choose, NULL, &give);
	if (seq != 0)
		qlog_write(seq);
}
