/*
 * qc_plan.c
 *		Building the plan of a transaction's entry: grouping, cutting into records, encoding.
 */
#include "qc_plan.h"

#include <assert.h>
#include <string.h>

#include "qc_record.h"

/* Everything qc_plan_build carries from step to step. */
typedef struct Builder
{
	QcPlan	   *plan;
	const QcOp *ops;
	size_t		nops;
	uint64_t	segment_size;
	QcAlloc		alloc;
	void	   *alloc_context;
	uint32_t   *next_op;		/* per op: next one of the same append, UINT32_MAX = last */
	uint32_t   *first_op;		/* per append */
	uint32_t   *last_op;
	uint64_t   *raw_len;		/* per append */
	uint32_t   *op_append;		/* per op */
	uint32_t   *op_index;		/* per op: number of messages of its append before it */
	uint32_t   *table;			/* partition -> append, UINT32_MAX = free */
	uint32_t	table_mask;
	size_t		effects_len;	/* of all but PUSH ops */
	uint32_t	nother;			/* their number */
	size_t		npushes;
	uint8_t    *staging;		/* frames of one record that come from several ops */
	size_t		staging_cap;
} Builder;

static QcStatus
no_memory(QcError *err)
{
	return qc_error_set(err, QC_FULL, "out of memory");
}

static void *
take(Builder *b, size_t n, size_t size)
{
	return b->alloc(b->alloc_context, n == 0 ? size : n * size);
}

static QcStatus
allocate(Builder *b, QcError *err)
{
	size_t		slots = 8;

	for (size_t i = 0; i < b->nops; i++)
		b->npushes += b->ops[i].kind != QC_OP_EFFECT;
	while (slots < 2 * b->npushes && slots < 4 * QC_ENTRY_PARTITIONS_MAX)
		slots *= 2;
	b->table_mask = (uint32_t) slots - 1;
	b->table = take(b, slots, sizeof(uint32_t));
	b->next_op = take(b, b->nops, sizeof(uint32_t));
	b->op_append = take(b, b->nops, sizeof(uint32_t));
	b->op_index = take(b, b->nops, sizeof(uint32_t));
	if (b->table == NULL || b->next_op == NULL || b->op_append == NULL || b->op_index == NULL)
		return no_memory(err);
	memset(b->table, 0xff, slots * sizeof(uint32_t));
	slots = b->npushes < QC_ENTRY_PARTITIONS_MAX ? b->npushes : QC_ENTRY_PARTITIONS_MAX;
	b->plan->appends = take(b, slots, sizeof(QcPlanAppend));
	b->first_op = take(b, slots, sizeof(uint32_t));
	b->last_op = take(b, slots, sizeof(uint32_t));
	b->raw_len = take(b, slots, sizeof(uint64_t));
	b->plan->logs = take(b, slots, sizeof(uint64_t));
	b->plan->log_bytes = take(b, slots, sizeof(uint64_t));
	b->plan->log_record = take(b, slots, sizeof(uint64_t));
	b->plan->deads = take(b, b->npushes, sizeof(QcPlanDead));
	if (b->plan->appends == NULL || b->first_op == NULL || b->last_op == NULL ||
		b->raw_len == NULL || b->plan->logs == NULL || b->plan->log_bytes == NULL ||
		b->plan->log_record == NULL || b->plan->deads == NULL)
		return no_memory(err);
	return QC_OK;
}

/* The append of this partition, made when it is new; UINT32_MAX = too many partitions. */
static uint32_t
append_of(Builder *b, const QcOp *op)
{
	QcPlan	   *plan = b->plan;
	uint32_t	at = (uint32_t) qc_hash_id(op->partition) & b->table_mask;

	while (b->table[at] != UINT32_MAX)
	{
		if (plan->appends[b->table[at]].partition == op->partition)
			return b->table[at];
		at = (at + 1) & b->table_mask;
	}
	if (plan->nappends == QC_ENTRY_PARTITIONS_MAX)
		return UINT32_MAX;
	plan->appends[plan->nappends] = (QcPlanAppend)
	{
		.partition = op->partition, .log = op->log, .moved = true
	};
	b->first_op[plan->nappends] = UINT32_MAX;
	b->raw_len[plan->nappends] = 0;
	b->table[at] = plan->nappends;
	return plan->nappends++;
}

/* Chain the pushes of each partition in the order in which they were staged. */
static QcStatus
group_pushes(Builder *b, QcError *err)
{
	for (uint32_t i = 0; i < b->nops; i++)
	{
		const QcOp *op = &b->ops[i];
		uint32_t	a;

		b->next_op[i] = UINT32_MAX;
		if (op->kind != QC_OP_PUSH)
		{
			b->nother++;
			b->effects_len += op->kind == QC_OP_EFFECT ? op->effect_len :
				op->kind == QC_OP_DELAY ? qc_effect_size(QC_EFFECT_DELAY, &op->delay, op->count) :
				qc_effect_size(QC_EFFECT_DEAD, &op->dead, 0);
		}
		if (op->kind == QC_OP_EFFECT)
			continue;
		a = append_of(b, op);
		if (a == UINT32_MAX)
			return qc_error_set(err, QC_LIMIT, "a transaction can push to at most %d partitions",
								QC_ENTRY_PARTITIONS_MAX);
		if (b->first_op[a] == UINT32_MAX)
			b->first_op[a] = i;
		else
			b->next_op[b->last_op[a]] = i;
		b->last_op[a] = i;
		b->plan->grows = b->plan->grows || (!op->moved && op->kind != QC_OP_DEAD);
		b->op_append[i] = a;
		b->op_index[i] = b->plan->appends[a].count;
		b->plan->appends[a].count += op->count;
		b->plan->appends[a].moved = b->plan->appends[a].moved && op->moved;
		b->raw_len[a] += op->frames_len;
	}
	return QC_OK;
}

/* Logs in ascending order, q0 when no message goes anywhere. */
static void
collect_logs(QcPlan *plan)
{
	plan->nlogs = 0;
	for (uint32_t a = 0; a < plan->nappends; a++)
	{
		uint64_t	log = plan->appends[a].log;
		uint32_t	low = 0;
		uint32_t	high = plan->nlogs;

		while (low < high)
		{
			uint32_t	middle = (low + high) / 2;

			if (plan->logs[middle] < log)
				low = middle + 1;
			else
				high = middle;
		}
		if (low < plan->nlogs && plan->logs[low] == log)
			continue;
		memmove(&plan->logs[low + 1], &plan->logs[low],
				(plan->nlogs - low) * sizeof(plan->logs[0]));
		plan->logs[low] = log;
		plan->nlogs++;
	}
	if (plan->nlogs == 0)
	{
		plan->logs[0] = 0;
		plan->nlogs = 1;
	}
}

static uint32_t
log_index(const QcPlan *plan, uint64_t log)
{
	uint32_t	low = 0;
	uint32_t	high = plan->nlogs;

	while (high - low > 1)
	{
		uint32_t	middle = (low + high) / 2;

		if (plan->logs[middle] <= log)
			low = middle;
		else
			high = middle;
	}
	assert(plan->logs[low] == log);
	return low;
}

/* Where the cutter stands: op, byte and message in it. */
typedef struct Cutter
{
	uint32_t	op;
	size_t		at;
	uint32_t	message;
} Cutter;

/* Frames of one record: how many, how long, from one op or several. */
typedef struct Cut
{
	uint32_t	count;
	size_t		len;
	bool		several;
} Cut;

/* Take frames until about QC_RECORD_RAW_TARGET bytes are reached. */
static Cut
cut_record(const Builder *b, Cutter *c)
{
	Cut			cut = {0, 0, false};

	while (c->op != UINT32_MAX)
	{
		const QcOp *op = &b->ops[c->op];

		while (c->message < op->count)
		{
			size_t		size = (size_t) qc_load_u32(op->frames + c->at) + 4;

			if (cut.count > 0 && cut.len + size > QC_RECORD_RAW_TARGET)
				return cut;
			cut.len += size;
			cut.count++;
			c->at += size;
			c->message++;
		}
		c->op = b->next_op[c->op];
		c->at = 0;
		c->message = 0;
		cut.several = cut.several || (c->op != UINT32_MAX);
	}
	return cut;
}

/* Copy `cut` frames and their hashes from where the cutter stood. */
static void
gather(const Builder *b, Cutter from, const Cut *cut, uint8_t *frames, uint8_t *hashes)
{
	uint32_t	left = cut->count;

	while (left > 0)
	{
		const QcOp *op = &b->ops[from.op];
		uint32_t	n = op->count - from.message < left ? op->count - from.message : left;
		size_t		len = 0;

		for (uint32_t i = 0; i < n; i++)
			len += (size_t) qc_load_u32(op->frames + from.at + len) + 4;
		memcpy(frames, op->frames + from.at, len);
		memcpy(hashes, op->hashes + (size_t) from.message * QC_HASH_SIZE, (size_t) n * QC_HASH_SIZE);
		frames += len;
		hashes += (size_t) n * QC_HASH_SIZE;
		left -= n;
		from.op = b->next_op[from.op];
		from.at = 0;
		from.message = 0;
	}
}

/* Build one record of an append from the frames that were cut. */
static QcStatus
build_record(Builder *b, const QcPlanAppend *append, Cutter from, const Cut *cut,
			 QcPlanRecord *record, QcError *err)
{
	const QcOp *op = &b->ops[from.op];
	const uint8_t *frames = op->frames + from.at;
	const uint8_t *hashes = op->hashes + (size_t) from.message * QC_HASH_SIZE;
	QcKind		kind = b->plan->solo ? QC_KIND_SOLO : QC_KIND_MESSAGES;
	uint64_t	cap = qc_record_size(kind, cut->count, cut->len);
	size_t		size;
	QcStatus	status;

	if (cap > b->segment_size / 2 || cap - 4 > QC_RECORD_LEN_MAX)
		return qc_error_set(err, QC_LIMIT, "message is larger than half a log file");
	if (cut->several)
	{
		size_t		need = cut->len + (size_t) cut->count * QC_HASH_SIZE;

		if (need > b->staging_cap)
		{
			b->staging_cap = need > 2 * QC_RECORD_RAW_TARGET ? need : 2 * QC_RECORD_RAW_TARGET;
			b->staging = take(b, b->staging_cap, 1);
		}
		if (b->staging == NULL)
			return no_memory(err);
		gather(b, from, cut, b->staging, b->staging + cut->len);
		frames = b->staging;
		hashes = b->staging + cut->len;
	}
	record->bytes = take(b, cap, 1);
	if (record->bytes == NULL)
		return no_memory(err);
	status = qc_record_build_message(record->bytes, cap, b->plan->solo, append->partition,
									 cut->count, hashes, frames, cut->len, op->level, &size, err);
	record->size = (uint32_t) size;
	record->count = cut->count;
	return status;
}

static QcStatus
build_records(Builder *b, QcError *err)
{
	QcPlan	   *plan = b->plan;
	size_t		max = 0;

	/* Two neighbouring records together exceed the target, or a record ends the append. */
	for (uint32_t a = 0; a < plan->nappends; a++)
		max += (size_t) (2 * b->raw_len[a] / QC_RECORD_RAW_TARGET) + 1;
	plan->records = take(b, max, sizeof(QcPlanRecord));
	if (plan->records == NULL)
		return no_memory(err);
	for (uint32_t a = 0; a < plan->nappends; a++)
	{
		QcPlanAppend *append = &plan->appends[a];
		Cutter		cutter = {b->first_op[a], 0, 0};

		append->record = plan->nrecords;
		append->log_index = log_index(plan, append->log);
		while (cutter.op != UINT32_MAX)
		{
			Cutter		from = cutter;
			Cut			cut = cut_record(b, &cutter);
			QcStatus	status;

			if (cut.count == 0)
				break;
			assert(plan->nrecords < max);
			status = build_record(b, append, from, &cut, &plan->records[plan->nrecords], err);
			if (status != QC_OK)
				return status;
			plan->nrecords++;
		}
		append->nrecords = plan->nrecords - append->record;
	}
	return QC_OK;
}

/* Put one append effect; its first position is patched by the reservation. */
static void
put_append(QcPlan *plan, QcPlanAppend *append, QcWriter *w)
{
	QcAppend	effect = {append->partition, append->log, 0, append->count, append->nrecords};

	/* body: partition, log, first */
	append->first_at = w->len + QC_EFFECT_HEAD_SIZE + 16;
	qc_effect_put(w, QC_EFFECT_APPEND, &effect, 0);
	plan->neffects++;
}

/* Put a dead effect; the position of its copy is patched by the reservation. */
static void
put_dead(Builder *b, uint32_t op, QcWriter *w)
{
	QcPlan	   *plan = b->plan;
	QcDead		dead = b->ops[op].dead;
	size_t		rest = 1 + 2 + (size_t) dead.reason.len;	/* cause and reason */

	dead.lane = b->ops[op].partition;
	dead.lane_position = 0;
	qc_effect_put(w, QC_EFFECT_DEAD, &dead, 0);
	plan->deads[plan->ndeads++] = (QcPlanDead)
	{
		w->len - rest - 8, b->op_append[op], b->op_index[op]
	};
	plan->neffects++;
}

/* Put a delay effect; the position of its first message is patched by the reservation. */
static void
put_delay(Builder *b, uint32_t n, QcWriter *w)
{
	QcPlan	   *plan = b->plan;
	const QcOp *op = &b->ops[n];
	QcDelay		delay = op->delay;
	size_t		at = 0;

	delay.lane = op->partition;
	delay.first = 0;

	/* body: lane, first */
	plan->deads[plan->ndeads++] = (QcPlanDead)
	{
		w->len + QC_EFFECT_HEAD_SIZE + 8, b->op_append[n], b->op_index[n]
	};
	qc_effect_put(w, QC_EFFECT_DELAY, &delay, op->count);
	for (uint32_t i = 0; i < op->count; i++)
	{
		QcDelayItem item = {.hash = qc_frame_id_hash(op->frames + at)};

		qc_effect_put_item(w, QC_EFFECT_DELAY, &item);
		at += (size_t) qc_load_u32(op->frames + at) + 4;
	}
	plan->neffects++;
}

static QcStatus
build_payload(Builder *b, QcError *err)
{
	QcPlan	   *plan = b->plan;
	size_t		cap = QC_ENTRY_HEAD_SIZE(plan->nlogs) + b->effects_len +
		plan->nappends * qc_effect_size(QC_EFFECT_APPEND, NULL, 0);
	uint8_t    *buffer = take(b, QC_RECORD_HEADER_SIZE + cap, 1);
	QcWriter	w;

	if (buffer == NULL)
		return no_memory(err);
	plan->payload = buffer + QC_RECORD_HEADER_SIZE;
	qc_writer_init(&w, plan->payload, cap);
	qc_entry_put_head(&w, plan->flags, 0, plan->xid, plan->logs, plan->nlogs,
					  plan->nappends + b->nother);

	/* Catalog effects first: what follows may go to what they make. */
	for (uint32_t i = 0; i < b->nops; i++)
	{
		if (b->ops[i].kind == QC_OP_EFFECT)
		{
			qc_put_bytes(&w, b->ops[i].effect, b->ops[i].effect_len);
			plan->neffects++;
		}
	}
	for (uint32_t a = 0; a < plan->nappends; a++)
		put_append(plan, &plan->appends[a], &w);
	for (uint32_t i = 0; i < b->nops; i++)
	{
		if (b->ops[i].kind == QC_OP_DEAD)
			put_dead(b, i, &w);
		else if (b->ops[i].kind == QC_OP_DELAY)
			put_delay(b, i, &w);
	}
	assert(!w.full && w.len == cap && plan->neffects == plan->nappends + b->nother);
	plan->payload_len = w.len;
	return QC_OK;
}

static void
need_name(QcPlanNeeds *needs, size_t len)
{
	needs->names[qc_mem_name_class(len) - QC_CLASS_NAME32]++;
}

/* Objects that applying an effect makes. */
static void
count_needs(QcPlanNeeds *needs, const QcEffect *effect)
{
	switch (effect->kind)
	{
		case QC_EFFECT_ACK:
		case QC_EFFECT_REDRIVE:
		case QC_EFFECT_PURGE_DEAD:
			needs->nitems += effect->nitems;
			break;
		case QC_EFFECT_DEAD:
			needs->nitems++;
			needs->nlane_items += effect->u.dead.lane != 0;
			break;
		case QC_EFFECT_DELAY:
			needs->nitems++;
			needs->nlane_items += effect->nitems;
			needs->ntimers += effect->nitems;
			break;
		case QC_EFFECT_QUEUE_DROP:
			needs->nitems++;
			break;
		case QC_EFFECT_QUEUE_CREATE:
			needs->nitems++;
			needs->nqueues++;
			need_name(needs, effect->u.queue_create.name.len);
			need_name(needs, 0);
			need_name(needs, 0);
			break;
		case QC_EFFECT_QUEUE_ALTER:
			needs->nitems++;
			needs->nalters++;
			needs->ngrants += effect->nitems;
			need_name(needs, effect->u.queue_alter.name.len);
			break;
		case QC_EFFECT_GROUP_CREATE:
			needs->nitems++;
			needs->ngroups++;
			need_name(needs, effect->u.group_create.name.len);
			break;
		case QC_EFFECT_GROUP_DROP:
			needs->nitems++;
			break;
		case QC_EFFECT_SEEK:
			needs->nitems += effect->u.seek.mode == QC_SEEK_GROUP ? 1 : effect->nitems;
			needs->ngroups += effect->u.seek.mode == QC_SEEK_GROUP;
			needs->nsought += effect->nitems;
			break;
		case QC_EFFECT_PURGE:
			needs->nitems++;
			break;
		case QC_EFFECT_GONE:
		case QC_EFFECT_LOST:
			needs->npending += effect->nitems;
			break;
		case QC_EFFECT_PARTITION_CREATE:
			needs->npartitions++;
			need_name(needs, effect->u.partition_create.name.len);
			break;
		default:
			break;
	}
}

static QcStatus
plan_needs(QcPlan *plan, QcError *err)
{
	QcEntry		entry;
	QcEffect	effect;
	QcStatus	status;

	plan->needs.nindex = plan->nrecords;
	plan->needs.npending = plan->nappends;
	if (plan->payload == NULL)
		return QC_OK;
	status = qc_entry_decode(plan->payload, plan->payload_len, &entry, err);
	while (status == QC_OK && (status = qc_effect_get(&entry.effects, &effect, err)) == QC_OK)
	{
		count_needs(&plan->needs, &effect);
		plan->grows = plan->grows || effect.kind == QC_EFFECT_QUEUE_CREATE ||
			(effect.kind == QC_EFFECT_PARTITION_CREATE && effect.u.partition_create.lane != QC_LANE_DEAD);
		plan->ordered = plan->ordered ||
			(plan->xid != 0 && (effect.kind == QC_EFFECT_QUEUE_ALTER ||
								effect.kind == QC_EFFECT_GROUP_CREATE ||
								effect.kind == QC_EFFECT_GROUP_DROP ||
								effect.kind == QC_EFFECT_SEEK || effect.kind == QC_EFFECT_PURGE));
	}
	return status == QC_END ? QC_OK : status;
}

static void
add_bytes(QcPlan *plan, uint32_t log, uint64_t size)
{
	plan->log_bytes[log] += size;
	if (size > plan->log_record[log])
		plan->log_record[log] = size;
	plan->bytes += size;
	plan->nparts++;
}

/* Bytes, records and rolls per log. */
static void
plan_space(QcPlan *plan, uint64_t segment_size)
{
	memset(plan->log_bytes, 0, plan->nlogs * sizeof(uint64_t));
	memset(plan->log_record, 0, plan->nlogs * sizeof(uint64_t));
	for (uint32_t a = 0; a < plan->nappends; a++)
	{
		const QcPlanAppend *append = &plan->appends[a];

		for (uint32_t r = 0; r < append->nrecords; r++)
			add_bytes(plan, append->log_index, plan->records[append->record + r].size);
	}
	for (uint32_t l = 0; l < plan->nlogs && !plan->solo; l++)
		add_bytes(plan, l, l == 0 ? QC_RECORD_HEADER_SIZE + plan->payload_len : QC_STUB_SIZE);
	for (uint32_t l = 0; l < plan->nlogs; l++)
	{
		uint32_t	rolls = 2 + (uint32_t) (plan->log_bytes[l] / (segment_size / 2 -
																  QC_FILE_HEADER_SIZE));

		plan->nparts += rolls;
		plan->bytes += (uint64_t) rolls * QC_FILE_HEADER_SIZE;
	}
}

QcStatus
qc_plan_build(QcPlan *plan, const QcOp *ops, size_t nops, uint64_t xid, uint16_t flags,
			  uint64_t segment_size, QcAlloc alloc, void *alloc_context, QcError *err)
{
	Builder		b = {.plan = plan, .ops = ops, .nops = nops, .segment_size = segment_size,
		.alloc = alloc, .alloc_context = alloc_context};
	QcStatus	status;

	memset(plan, 0, sizeof(*plan));
	plan->xid = xid;
	plan->flags = flags;
	if (nops >= UINT32_MAX)
		return qc_error_set(err, QC_LIMIT, "too many queue operations in one transaction");
	status = allocate(&b, err);
	if (status == QC_OK)
		status = group_pushes(&b, err);
	if (status != QC_OK)
		return status;
	collect_logs(plan);
	plan->solo = xid == 0 && plan->nappends == 1 && b.nother == 0 &&
		(b.raw_len[0] <= QC_RECORD_RAW_TARGET || plan->appends[0].count == 1);
	status = build_records(&b, err);
	if (status == QC_OK && !plan->solo)
		status = build_payload(&b, err);
	if (status == QC_OK)
		status = plan_needs(plan, err);
	if (status == QC_OK)
		plan_space(plan, segment_size);
	return status;
}

void
qc_plan_small(QcSmallPlan *small, uint8_t *buffer, size_t effect_max)
{
	QcPlan	   *plan = &small->plan;

	memset(small, 0, sizeof(*small));
	plan->immediate = true;
	plan->nlogs = 1;
	plan->logs = &small->log;
	plan->log_bytes = &small->log_bytes;
	plan->log_record = &small->log_record;
	plan->payload = buffer + QC_RECORD_HEADER_SIZE;
	plan->payload_len = QC_ENTRY_HEAD_SIZE(1) + effect_max;
	small->log_bytes = small->log_record = QC_RECORD_HEADER_SIZE + plan->payload_len;
	plan->bytes = small->log_bytes + 2 * QC_FILE_HEADER_SIZE;
	plan->nparts = 3;
}

QcWriter
qc_plan_small_writer(QcSmallPlan *small)
{
	QcWriter	w;

	qc_writer_init(&w, small->plan.payload, small->plan.payload_len);
	w.len = QC_ENTRY_HEAD_SIZE(1);
	return w;
}

void
qc_plan_small_done(QcSmallPlan *small, const QcWriter *w, uint32_t neffects)
{
	QcPlan	   *plan = &small->plan;
	QcWriter	head;

	assert(!w->full);
	qc_writer_init(&head, plan->payload, QC_ENTRY_HEAD_SIZE(1));
	qc_entry_put_head(&head, plan->flags, 0, plan->xid, plan->logs, 1, neffects);
	assert(!head.full);
	plan->payload_len = w->len;
	plan->neffects = neffects;
}
