/*
 * qc_order.c
 *		The decision of an entry that changes groups, seeks or purges, logged with its commit.
 */
#include "qc_order.h"

#include <assert.h>

#include "qc_purge.h"

/* Next purge effect of a plan's entry; false = there is none. */
static bool
next_purge(QcEntry *entry, QcEffect *effect)
{
	while (qc_effect_get(&entry->effects, effect, NULL) == QC_OK)
	{
		if (effect->kind == QC_EFFECT_PURGE)
			return true;
	}
	return false;
}

size_t
qc_order_size(const QcPlan *plan, uint32_t transactions)
{
	QcDecision	decision = {0};
	QcPurge		purge = {0};
	size_t		size = qc_effect_size(QC_EFFECT_DECISION, &decision, 1);
	QcEntry		entry;
	QcEffect	effect;

	if (qc_entry_decode(plan->payload, plan->payload_len, &entry, NULL) != QC_OK)
		return size;
	while (next_purge(&entry, &effect))
		size += qc_effect_size(QC_EFFECT_PURGE, &purge, transactions);
	return size;
}

uint32_t
qc_order_put(QcState *st, const QcPlan *plan, uint32_t timeline, uint64_t lsn, QcWriter *w)
{
	QcDecision	decision = {.timeline = timeline};
	QcDecisionItem item = {.seq = plan->seq, .lsn = lsn, .committed = 1};
	QcEntry		entry;
	QcEffect	effect;
	QcStatus	status = qc_entry_decode(plan->payload, plan->payload_len, &entry, NULL);
	uint32_t	n = 0;

	assert(plan->ordered && plan->xid != 0 && status == QC_OK);
	while (status == QC_OK && next_purge(&entry, &effect))
	{
		QcPurge		purge = effect.u.purge;
		const QcQueue *queue = qc_queue_by_id(st, purge.queue);

		purge.entry = plan->seq;
		if (queue == NULL)
			continue;
		qc_purge_put(st, queue, &purge, w);
		n++;
	}
	qc_effect_put(w, QC_EFFECT_DECISION, &decision, 1);
	qc_effect_put_item(w, QC_EFFECT_DECISION, &item);
	assert(!w->full);
	return n + 1;
}
