/*
 * qlog_spread.c
 *		The different partitions of a transaction.
 *
 * Few of them are searched one by one.  For more there is a hash table of numbers in the list, with open addressing.  A cut
 * leaves numbers behind that say nothing any more, until the table is made anew; one whose place in the list was taken by
 * another partition names that one, which is right too.
 */
#include "qlog_spread.h"

#include "utils/memutils.h"

#include "qlog_stage.h"

#include "../core/qc_state.h"

#define FEW			16
#define SLOTS		(4 * QC_ENTRY_PARTITIONS_MAX)	/* a power of two */
#define FREE_SLOT	PG_UINT16_MAX

StaticAssertDecl(QC_ENTRY_PARTITIONS_MAX < FREE_SLOT, "numbers of partitions need 16 bits");

static uint64 *partitions;
static uint32 n;
static uint32 max;
static uint16 *table;			/* NULL = not made yet */
static uint32 ntaken;			/* slots of it */

/* The slot with this partition, or the free one where it belongs. */
static uint16 *
slot_of(uint64 partition)
{
	uint32		at = (uint32) qc_hash_id(partition) % SLOTS;

	while (table[at] != FREE_SLOT && (table[at] >= n || partitions[table[at]] != partition))
		at = (at + 1) % SLOTS;
	return &table[at];
}

static void
enter(uint32 i)
{
	uint16	   *slot = slot_of(partitions[i]);

	if (*slot == FREE_SLOT)
	{
		*slot = (uint16) i;
		ntaken++;
	}
}

static void
make_table(void)
{
	if (table == NULL)
		table = MemoryContextAlloc(qlog_stage_context(), SLOTS * sizeof(uint16));
	memset(table, 0xff, SLOTS * sizeof(uint16));
	ntaken = 0;
	for (uint32 i = 0; i < n; i++)
		enter(i);
}

static bool
is_known(uint64 partition)
{
	for (uint32 i = n; i-- > 0 && n <= FEW;)
	{
		if (partitions[i] == partition)
			return true;
	}
	if (n <= FEW)
		return false;
	if (table == NULL)
		make_table();
	return *slot_of(partition) != FREE_SLOT;
}

void
qlog_spread_add(uint64 partition)
{
	if ((n > 0 && partitions[n - 1] == partition) || is_known(partition))
		return;
	if (n == QC_ENTRY_PARTITIONS_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("transaction pushes to too many partitions"),
				 errdetail("A transaction can push to at most %d partitions.", QC_ENTRY_PARTITIONS_MAX),
				 errhint("Commit more often.")));
	if (n == max)
	{
		uint32		more = Max(max * 2, FEW);
		MemoryContext context = qlog_stage_context();

		partitions = partitions == NULL ? MemoryContextAlloc(context, more * sizeof(uint64)) :
			repalloc(partitions, more * sizeof(uint64));
		max = more;
	}
	partitions[n++] = partition;
	if (table != NULL && ntaken > SLOTS / 2)
		make_table();
	else if (table != NULL)
		enter(n - 1);
}

uint32
qlog_spread_count(void)
{
	return n;
}

void
qlog_spread_cut(uint32 to)
{
	Assert(to <= n);
	n = to;
}

void
qlog_spread_reset(void)
{
	partitions = NULL;
	table = NULL;
	n = max = ntaken = 0;
}
