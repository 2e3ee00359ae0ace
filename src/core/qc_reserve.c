/*
 * qc_reserve.c
 *		A plan gets its seq, its positions and its places (qc_plan.h), and its effects are applied.
 *
 * Nothing in here can fail: everything was promised by its credit (qc_credit.c).  Under the state lock.
 */
#include <assert.h>

#include "qc_apply.h"
#include "qc_dedup.h"
#include "qc_index.h"
#include "qc_plan_int.h"
#include "qc_record.h"
#include "qc_volume.h"

/* Adds parts to a ring entry while places are taken. */
typedef struct Placer
{
	QcState    *st;
	QcPlan	   *plan;
	uint64_t	segment_size;
	QcPart	   *parts;
	uint32_t	n;
	uint32_t	offset;
} Placer;

static void
add_part(Placer *p, QcLog *log, uint64_t file, uint64_t position, uint32_t size)
{
	assert(p->n < p->plan->nparts);
	p->parts[p->n++] = (QcPart)
	{
		QC_REF(p->st, log), size, file, position, p->offset, 0
	};
	p->offset += size;
}

/* Place one record, behind its file's header when it is the first one there. */
static QcPlace
place_record(Placer *p, uint32_t log_index, uint32_t size)
{
	QcLog	   *log = qc_log_by_id(p->st, p->plan->logs[log_index]);
	QcPlace		place = qc_log_place(p->st, log, size, p->segment_size);

	p->plan->log_bytes[log_index] -= size;
	if (place.rolled)
		add_part(p, log, place.file, 0, QC_FILE_HEADER_SIZE);
	add_part(p, log, place.file, place.position, size);
	return place;
}

static void
place_append(Placer *p, QcPlanAppend *append)
{
	QcPartition *partition = qc_partition_by_id(p->st, append->partition);
	QcLog	   *log = qc_log_by_id(p->st, append->log);
	uint64_t	first = append->first;

	for (uint32_t r = 0; r < append->nrecords; r++)
	{
		QcPlanRecord *record = &p->plan->records[append->record + r];
		QcPlace		place = place_record(p, append->log_index, record->size);

		(void) qc_index_add(p->st, log, partition, first, record->count, place.file,
							place.position, record->size, true);
		qc_volume_add(p->st, partition, p->plan->seq, record->size);
		first += record->count;
	}
}

/* Positions of every append, into the payload too. */
static void
take_firsts(QcState *st, QcPlan *plan)
{
	for (uint32_t a = 0; a < plan->nappends; a++)
	{
		QcPlanAppend *append = &plan->appends[a];
		QcPartition *partition = qc_partition_by_id(st, append->partition);

		append->first = partition == NULL ? 0 : partition->next;
		if (plan->payload != NULL)
			qc_store_u64(plan->payload + append->first_at, append->first);
	}
	for (uint32_t d = 0; d < plan->ndeads; d++)
	{
		QcPlanDead *dead = &plan->deads[d];

		qc_store_u64(plan->payload + dead->position_at,
					 plan->appends[dead->append].first + dead->index);
	}
}

static void
apply_plan(QcState *st, QcPlan *plan, const QcApply *apply)
{
	QcEntry		entry;
	QcEffect	effect;
	QcError		err;
	QcStatus	status;

	if (plan->payload == NULL)
	{
		const QcPlanAppend *append = &plan->appends[0];

		effect.kind = QC_EFFECT_APPEND;
		effect.nitems = 0;
		effect.u.append = (QcAppend)
		{
			append->partition, append->log, append->first, append->count, append->nrecords
		};
		status = qc_apply_effect(st, apply, &effect, &err);
		assert(status == QC_OK);
		return;
	}
	status = qc_entry_decode(plan->payload, plan->payload_len, &entry, &err);
	assert(status == QC_OK);
	while ((status = qc_effect_get(&entry.effects, &effect, &err)) == QC_OK)
	{
		status = qc_apply_effect(st, apply, &effect, &err);
		assert(status == QC_OK);
	}
	assert(status == QC_END);
}

void
qc_plan_reserve(QcState *st, QcRing *ring, QcPlan *plan, uint64_t segment_size, int64_t now,
				int64_t monotonic)
{
	QcApply		apply = {.seq = st->seq + 1, .xid = plan->xid, .monotonic = monotonic,
		.owner = plan->owner, .immediate = plan->immediate, .pid = plan->pid};
	QcWants		before;
	Placer		placer = {.st = st, .plan = plan, .segment_size = segment_size};

	assert(plan->credited);
	if (now > st->last_created_at)
		st->last_created_at = now;
	plan->seq = apply.seq;
	plan->created_at = apply.created_at = st->last_created_at;
	plan->epoch = qc_epoch(st);
	before = qc_credit_use(st, plan);
	take_firsts(st, plan);
	(void) qc_apply_begin(st, &apply);
	plan->open = apply.open;
	if (plan->open != 0)
		QC_AT(st, QcOpen, plan->open)->carried = (plan->flags & QC_ENTRY_CARRIED) != 0;
	apply_plan(st, plan, &apply);
	for (uint32_t i = 0; i < plan->ndedups; i++)
		qc_dedup_reserved(st, QC_AT(st, QcOpen, plan->open), plan->dedups[i], plan->created_at);

	plan->entry = qc_ring_take(ring, plan->ring_need, plan->seq, plan->nparts);
	placer.parts = qc_ring_parts(plan->entry);
	for (uint32_t a = 0; a < plan->nappends; a++)
		place_append(&placer, &plan->appends[a]);
	for (uint32_t l = 0; l < plan->nlogs && !plan->solo; l++)
		(void) place_record(&placer, l, l == 0 ?
							(uint32_t) (QC_RECORD_HEADER_SIZE + plan->payload_len) :
							(uint32_t) QC_STUB_SIZE);
	plan->entry->nparts = placer.n;
	qc_credit_end(st, plan, &before);
	st->counters.entries++;
	st->counters.bytes += placer.offset;
}
