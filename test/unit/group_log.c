/*
 * group_log.c
 *		A log of entries in memory that can be replayed.
 */
#include "group_log.h"

#include <stdlib.h>
#include <string.h>

#define SEGMENT		(64u << 20)
#define RING_BYTES	(8u << 20)
#define PIECES		65536

/* An entry as it stands in the log. */
typedef struct GroupRecord
{
	uint64_t	seq;
	uint64_t	xid;
	int64_t		created_at;
	uint64_t	partition;		/* of a solo entry, 0 = it is none */
	uint32_t	count;
	uint64_t	first;
	uint8_t    *payload;
	size_t		len;
} GroupRecord;

static void
check(GroupLog *log, bool held, const char *what)
{
	if (!held && log->fault == NULL)
		log->fault = what;
}

void
group_log_begin(GroupLog *log, Machine *m)
{
	memset(log, 0, sizeof(*log));
	log->m = m;
	log->records = calloc(GROUP_LOG_MAX, sizeof(GroupRecord));
	log->memory = calloc(PIECES, sizeof(void *));
}

void
group_log_end(GroupLog *log)
{
	while (log->nmemory > 0)
		free(log->memory[--log->nmemory]);
	free(log->memory);
	free(log->records);
}

void *
group_log_take(void *context, size_t size)
{
	GroupLog   *log = context;

	if (log->nmemory == PIECES)
		abort();
	return log->memory[log->nmemory++] = malloc(size == 0 ? 1 : size);
}

void
group_log_build(GroupLog *log, QcPlan *plan, uint64_t xid, bool immediate)
{
	Machine    *m = log->m;
	QcStatus	status = qc_plan_build(plan, m->ops, m->nops, xid,
									   xid == 0 ? 0 : QC_ENTRY_CARRIED, SEGMENT, group_log_take,
									   log, &m->err);

	check(log, status == QC_OK, "a plan that cannot be built");
	plan->immediate = immediate;
	m->nops = 0;
}

static void
empty_ring(GroupLog *log)
{
	log->m->ring = qc_ring_init(log->m->ring_block, RING_BYTES, log->m->st->seq);
}

void
group_log_credit(GroupLog *log, QcPlan *plan)
{
	Machine    *m = log->m;
	QcLack		lack;
	QcExtend	extend;
	QcStatus	status = qc_plan_credit(m->st, m->ring, plan, SEGMENT, &lack, &extend, &m->err);

	if (status == QC_BUSY && lack == QC_LACK_RING)
	{
		empty_ring(log);
		status = qc_plan_credit(m->st, m->ring, plan, SEGMENT, &lack, &extend, &m->err);
	}
	check(log, status == QC_OK, "a credit that is refused");
}

static void
record(GroupLog *log, const QcPlan *plan)
{
	GroupRecord *r = &log->records[log->n++];

	*r = (GroupRecord)
	{
		.seq = plan->seq, .xid = plan->xid, .created_at = plan->created_at
	};
	if (plan->payload == NULL)
	{
		r->partition = plan->appends[0].partition;
		r->count = plan->appends[0].count;
		r->first = plan->appends[0].first;
		return;
	}
	r->len = plan->payload_len;
	r->payload = group_log_take(log, r->len);
	memcpy(r->payload, plan->payload, r->len);
}

void
group_log_reserve(GroupLog *log, QcPlan *plan)
{
	Machine    *m = log->m;

	if (log->n == GROUP_LOG_MAX)
		abort();
	if (!qc_plan_has_room(m->ring, plan))
		empty_ring(log);
	m->now += 10;
	qc_plan_reserve(m->st, m->ring, plan, SEGMENT, m->now, m->monotonic);
	record(log, plan);
}

void
group_log_checkpoint(GroupLog *log)
{
	if (log->m->st->seq == log->mark)
		return;
	rows_take(&log->m->rows, log->m->st);
	log->mark = log->m->st->seq;
}

/* Those of the checkpoint that wait for nothing but durability are durable. */
static void
settle_checkpoint(Machine *m)
{
	for (QcRef ref = m->st->opens.head; ref != 0;)
	{
		QcOpen	   *open = QC_AT(m->st, QcOpen, ref);

		ref = open->all.next;
		if (open->xid == 0 && open->decided == 0)
			qc_open_settle(m->st, open, true, 0, m->monotonic);
	}
}

/* Apply what the entry holds. */
static bool
apply(Machine *m, const QcApply *apply, const GroupRecord *r)
{
	QcEntry		entry;
	QcEffect	effect = {.kind = QC_EFFECT_APPEND};

	if (r->payload == NULL)
	{
		effect.u.append = (QcAppend)
		{
			r->partition, 1, r->first, r->count, 1
		};
		return qc_apply_effect(m->st, apply, &effect, &m->err) == QC_OK;
	}
	if (qc_entry_decode(r->payload, r->len, &entry, NULL) != QC_OK)
		return false;
	while (qc_effect_get(&entry.effects, &effect, NULL) == QC_OK)
	{
		if (qc_apply_effect(m->st, apply, &effect, &m->err) != QC_OK)
			return false;
	}
	return true;
}

static void
replay(GroupLog *log, const GroupRecord *r)
{
	Machine    *m = log->m;
	QcApply		context = {.seq = r->seq, .xid = r->xid, .created_at = r->created_at,
		.monotonic = m->monotonic, .recovering = true};

	if (r->created_at > m->st->last_created_at)
		m->st->last_created_at = r->created_at;
	(void) qc_apply_begin(m->st, &context);
	check(log, apply(m, &context, r), "an entry that cannot be replayed");
	if (r->xid == 0)
		qc_open_settle(m->st, QC_AT(m->st, QcOpen, context.open), true, 0, m->monotonic);
}

void
group_log_replay(GroupLog *log)
{
	machine_load(log->m);
	settle_checkpoint(log->m);
	for (uint32_t i = 0; i < log->n; i++)
	{
		if (log->records[i].seq > log->mark)
			replay(log, &log->records[i]);
	}
	empty_ring(log);
}
