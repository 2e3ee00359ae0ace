/*
 * qlog_pushing.c
 *		Filters of the partitions that open transactions have pushed to.
 */
#include "qlog_pushing.h"

#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/proc.h"

#include "qlog_compat.h"

#include "../core/qc_state.h"

#define WORD_BITS	64

typedef struct Filter
{
	pg_atomic_uint64 words[QLOG_PUSHING_WORDS];
} Filter;

static Filter *filters;			/* by number of the process */
static uint64 mine[QLOG_PUSHING_WORDS]; /* what stands in this process's own */
static bool used;

static int
nprocs(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS;
}

Size
qlog_pushing_size(void)
{
	return mul_size((Size) nprocs(), sizeof(Filter));
}

void
qlog_pushing_init(void *block, bool fresh)
{
	filters = block;
	for (int i = 0; fresh && i < nprocs(); i++)
	{
		for (int w = 0; w < QLOG_PUSHING_WORDS; w++)
			pg_atomic_init_u64(&filters[i].words[w], 0);
	}
}

/* Word and bit of a name. */
static int
place(uint64 queue, QlogName name, uint64 *bit)
{
	uint64		hash = qc_hash_name(queue, name.text, name.len);

	*bit = UINT64CONST(1) << (hash % WORD_BITS);
	return (int) (hash / WORD_BITS % QLOG_PUSHING_WORDS);
}

void
qlog_pushing_add(uint64 queue, QlogName name)
{
	uint64		bit;
	int			w = place(queue, name, &bit);

	if (mine[w] & bit)
		return;
	used = true;
	mine[w] |= bit;
	pg_atomic_write_u64(&filters[QLOG_PROC_NUMBER()].words[w], mine[w]);
	pg_memory_barrier();
}

void
qlog_pushing_end(void)
{
	for (int w = 0; used && w < QLOG_PUSHING_WORDS; w++)
	{
		if (mine[w] == 0)
			continue;
		mine[w] = 0;
		pg_atomic_write_u64(&filters[QLOG_PROC_NUMBER()].words[w], 0);
	}
	used = false;
}

void
qlog_pushing_gather(QlogPushing *all)
{
	memset(all, 0, sizeof(*all));
	for (int i = 0; i < nprocs(); i++)
	{
		for (int w = 0; w < QLOG_PUSHING_WORDS; w++)
			all->bits[w] |= pg_atomic_read_u64(&filters[i].words[w]);
	}
}

bool
qlog_pushing_has(const QlogPushing *all, uint64 queue, QlogName name)
{
	uint64		bit;
	int			w = place(queue, name, &bit);

	return (all->bits[w] & bit) != 0;
}
