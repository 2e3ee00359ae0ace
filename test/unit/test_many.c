/*
 * test_many.c
 *		What many idle partitions take of the state memory.
 */
#include "machine.h"

#include <stdio.h>

#ifdef __SANITIZE_ADDRESS__
#define PARTITIONS		10000
#else
#define PARTITIONS		100000
#endif
#define BYTES_EACH		350		/* with one group and a name of 20 bytes */
#define CHECKPOINT		1000	/* partitions between two */
#define FIRST			1000	/* id of the first one */

static Machine m;

static uint64_t
used(void)
{
	uint64_t	bytes;
	uint64_t	limit;

	qc_mem_usage(&m.st->mem, QC_BUDGET_STATE, &bytes, &limit);
	return bytes;
}

/* The tables that are searched for partitions; their size follows the state memory, which here is as large as it must be. */
static uint64_t
tables(void)
{
	return ((uint64_t) m.st->partition_names.nbuckets + m.st->partition_ids.nbuckets) * sizeof(QcRef);
}

/* What has been freed is free when its row has been deleted. */
static void
checkpoint(void)
{
	static uint8_t bytes[4u << 20];
	QcWriter	w;
	QcRowsMark	mark;

	qc_writer_init(&w, bytes, sizeof(bytes));
	CHECK_U64(qc_rows_dump(m.st, &w, &mark, &m.err), QC_OK);
	qc_rows_stored(m.st, &mark);
}

/* Each had a message, which the default group has finished. */
static void
test_idle_partitions(void)
{
	uint64_t	before;

	machine_begin_small(&m, (uint64_t) PARTITIONS * BYTES_EACH + (4u << 20));
	machine_queue(&m, 1, NULL);
	before = used();
	for (uint64_t i = 0; i < PARTITIONS; i++)
	{
		char		name[32];

		snprintf(name, sizeof(name), "partition %010llu", (unsigned long long) i);
		machine_partition(&m, 1, FIRST + i, name, QC_LANE_NONE);
		machine_push(&m, 1, FIRST + i, 1);
		if (!CHECK_U64(machine_pop(&m, 1, FIRST + i, i + 1, 1, true), 1))
			break;
		machine_ack(&m, i + 1, FIRST + i, 0, 1);
		if (i % CHECKPOINT == CHECKPOINT - 1)
			checkpoint();
	}
	CHECK_U64(qc_queue_by_id(m.st, 1)->npartitions, PARTITIONS + 1);
	CHECK_U64(qc_queue_by_id(m.st, 1)->acked, PARTITIONS);
	printf("# %.1f bytes for each of %d idle partitions, and %.1f of the tables\n",
		   (double) (used() - before) / PARTITIONS, PARTITIONS, (double) tables() / PARTITIONS);
	CHECK(used() - before + tables() <= (uint64_t) PARTITIONS * BYTES_EACH);
	machine_end(&m);
}

int
main(void)
{
	UNIT_RUN(test_idle_partitions);
	return unit_end();
}
