/*
 * group_model.c
 *		What consumer groups mean, without any cleverness.
 */
#include "group_model.h"

#include <assert.h>
#include <string.h>

#include "qc_effect.h"

uint64_t
model_stable(const Model *m, int partition)
{
	const ModelPartition *p = &m->partitions[partition];
	uint64_t	stable = 0;

	while (stable < p->next && p->messages[stable].status != MODEL_PENDING)
		stable++;
	return stable;
}

uint64_t
model_skip(const Model *m, int partition, uint64_t p)
{
	uint64_t	stable = model_stable(m, partition);

	while (p < stable && m->partitions[partition].messages[p].status == MODEL_ABORTED)
		p++;
	return p;
}

uint64_t
model_visible(const Model *m, int partition, uint64_t from)
{
	const ModelPartition *p = &m->partitions[partition];
	uint64_t	stable = model_stable(m, partition);
	uint64_t	n = 0;

	for (uint64_t i = from < p->start ? p->start : from; i < stable; i++)
		n += p->messages[i].status == MODEL_VISIBLE;
	return n;
}

uint64_t
model_place(const Model *m, int partition, uint8_t start, int64_t start_at)
{
	const ModelPartition *p = &m->partitions[partition];
	uint64_t	position = p->start;

	if (start == QC_START_NEW)
		position = p->next;
	else if (start == QC_START_POSITION)
		position = (uint64_t) start_at;
	else if (start == QC_START_TIME)
	{
		while (position < p->next && p->messages[position].at < start_at)
			position++;
	}
	if (position < p->start)
		return p->start;
	return position > p->next ? p->next : position;
}

void
model_push(Model *m, int partition, uint32_t count, uint32_t entry, int64_t at)
{
	ModelPartition *p = &m->partitions[partition];

	for (uint32_t i = 0; i < count; i++)
	{
		assert(p->next < MODEL_MESSAGES);
		p->messages[p->next++] = (ModelMessage)
		{
			entry, MODEL_PENDING, at
		};
	}
}

void
model_settle(Model *m, uint32_t entry, bool committed)
{
	for (int k = 0; k < MODEL_PARTITIONS; k++)
	{
		ModelPartition *p = &m->partitions[k];

		for (uint64_t i = 0; i < p->next; i++)
		{
			if (p->messages[i].entry == entry && p->messages[i].status == MODEL_PENDING)
				p->messages[i].status = committed ? MODEL_VISIBLE : MODEL_ABORTED;
		}
	}
}

void
model_begin(Model *m, int group, uint64_t id, uint8_t start, int64_t start_at)
{
	ModelGroup *g = &m->groups[group];

	memset(g, 0, sizeof(*g));
	g->alive = true;
	g->id = id;
	for (int k = 0; k < MODEL_PARTITIONS; k++)
		g->fetch[k] = model_place(m, k, start, start_at);
}

void
model_drop(Model *m, int group)
{
	m->groups[group].alive = false;
}

void
model_seek(Model *m, int group, int partition, uint64_t position)
{
	ModelGroup *g = &m->groups[group];

	memset(g->deliveries[partition], 0, sizeof(g->deliveries[partition]));
	g->fetch[partition] = model_place(m, partition, QC_START_POSITION, (int64_t) position);
}

static bool
is_kept(uint32_t entry, const uint32_t *kept, uint32_t nkept)
{
	for (uint32_t i = 0; i < nkept; i++)
	{
		if (kept[i] == entry)
			return true;
	}
	return false;
}

static void
purge(Model *m, int partition, const uint32_t *kept, uint32_t nkept)
{
	ModelPartition *p = &m->partitions[partition];
	uint64_t	bound = 0;

	while (bound < p->next && !is_kept(p->messages[bound].entry, kept, nkept))
		bound++;
	if (p->start < bound)
		p->start = bound;
	for (int g = 0; g < MODEL_GROUPS; g++)
	{
		ModelGroup *group = &m->groups[g];

		for (uint64_t i = 0; i < p->next; i++)
		{
			if (group->deliveries[partition][i].flight >= MODEL_RETRY)
				group->deliveries[partition][i].flight = MODEL_NOT_IN_FLIGHT;
		}
		if (group->fetch[partition] < p->start)
			group->fetch[partition] = p->start;
	}
}

void
model_purge(Model *m, int partition, const uint32_t *kept, uint32_t nkept)
{
	for (int k = 0; k < MODEL_PARTITIONS; k++)
	{
		if (partition < 0 || k == partition)
			purge(m, k, kept, nkept);
	}
}

/* Is a message of the partition leased by the group? */
static bool
has_lease(const ModelGroup *g, int partition, uint64_t next, uint64_t but)
{
	for (uint64_t i = 0; i < next; i++)
	{
		if (g->deliveries[partition][i].flight == MODEL_LEASED &&
			g->deliveries[partition][i].lease != but)
			return true;
	}
	return false;
}

/* In order: is there a message below this one that goes first? */
static bool
has_before(const ModelGroup *g, int partition, uint64_t position)
{
	for (uint64_t i = 0; i < position; i++)
	{
		if (g->deliveries[partition][i].flight >= MODEL_RETRY)
			return true;
	}
	return false;
}

bool
model_deliver(Model *m, int group, int partition, uint64_t position, uint32_t attempt, uint64_t lease)
{
	ModelGroup *g = &m->groups[group];
	ModelPartition *p = &m->partitions[partition];
	ModelDelivery *d = &g->deliveries[partition][position];

	if (!g->alive || position >= model_stable(m, partition) ||
		p->messages[position].status != MODEL_VISIBLE ||
		(partition != 0 && (has_lease(g, partition, p->next, lease) || has_before(g, partition, position))))
		return false;
	if (position >= g->fetch[partition])
	{
		/* the next one that was never delivered */
		if (position != model_skip(m, partition, g->fetch[partition]) || attempt != 1)
			return false;
		g->fetch[partition] = position + 1;
	}
	else if (d->flight != MODEL_RETRY || attempt != d->attempt + 1)
		return false;
	*d = (ModelDelivery)
	{
		MODEL_LEASED, attempt, lease
	};
	return true;
}

void
model_done(Model *m, int group, int partition, uint64_t position, uint64_t lease)
{
	ModelDelivery *d = &m->groups[group].deliveries[partition][position];

	if (d->flight == (lease == 0 ? MODEL_DYING : MODEL_LEASED) && d->lease == lease)
		d->flight = MODEL_NOT_IN_FLIGHT;
}

void
model_give_back(Model *m, int group, uint64_t lease)
{
	for (int k = 0; k < MODEL_PARTITIONS; k++)
	{
		bool		lowest = true;

		for (uint64_t i = 0; i < m->partitions[k].next; i++)
		{
			ModelDelivery *d = &m->groups[group].deliveries[k][i];

			if (d->flight != MODEL_LEASED || d->lease != lease)
				continue;
			d->flight = MODEL_RETRY;
			d->lease = 0;
			if (k != 0 && !lowest)
				d->attempt--;
			else if (m->limit != 0 && d->attempt > m->limit)
				d->flight = MODEL_DYING;
			lowest = false;
		}
	}
}

uint64_t
model_lag(const Model *m, int group)
{
	const ModelGroup *g = &m->groups[group];
	uint64_t	n = 0;

	for (int k = 0; k < MODEL_PARTITIONS; k++)
	{
		n += model_visible(m, k, g->fetch[k]);
		for (uint64_t i = 0; i < m->partitions[k].next; i++)
			n += g->deliveries[k][i].flight != MODEL_NOT_IN_FLIGHT;
	}
	return n;
}

bool
model_has_work(const Model *m, int group)
{
	const ModelGroup *g = &m->groups[group];

	for (int k = 0; k < MODEL_PARTITIONS; k++)
	{
		uint64_t	next = m->partitions[k].next;
		uint64_t	waiting = model_visible(m, k, g->fetch[k]);
		bool		dies = false;

		for (uint64_t i = 0; i < next && !dies; i++)
		{
			waiting += g->deliveries[k][i].flight == MODEL_RETRY;
			dies = g->deliveries[k][i].flight == MODEL_DYING && k != 0;
		}
		if (waiting > 0 && (k == 0 || (!has_lease(g, k, next, 0) && !dies)))
			return true;
	}
	return false;
}
