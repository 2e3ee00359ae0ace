/*
 * doc_rows.c
 *		One fixed example of every kind of checkpoint row.
 */
#include "doc_rows.h"

#include <string.h>

#include "machine.h"

#define DEAD_LANE	200
#define DELAY_LANE	201
#define NAMED		202

const DocRow doc_rows[DOC_ROWS] = {
	{"row mark", QC_ROW_MARK, 0},
	{"row log", QC_ROW_LOG, 1},
	{"row queue", QC_ROW_QUEUE, 0},
	{"row group", QC_ROW_GROUP, 1},
	{"row partition", QC_ROW_PARTITION, 3},
	{"row lease", QC_ROW_LEASE, 0},
	{"row cursor", QC_ROW_CURSOR, 0},
	{"row open entry", QC_ROW_OPEN, 0},
	{"row dead letter", QC_ROW_LANE_ITEM, 0},
	{"row delayed message", QC_ROW_LANE_ITEM, 1}
};

/* A queue of everything: a group, a lease, a dead letter, a delayed message, an entry that is not settled. */
static void
play(Machine *m)
{
	QcGroupCreate group = {.group = 1, .queue = 1, .start = QC_START_TIME, .start_at = 1700000000000000,
		.name = {(const uint8_t *) "g", 1}};
	QcDead		dead = {.lease = 7, .group = QC_DEFAULT_GROUP, .partition = 101, .position = 1,
		.attempt = 1, .lane = DEAD_LANE, .cause = QC_DEAD_REJECTED};

	machine_queue(m, 1, NULL);
	machine_partition(m, 1, DEAD_LANE, "*", QC_LANE_DEAD);
	machine_partition(m, 1, DELAY_LANE, "\001delay", QC_LANE_DELAY);
	machine_partition(m, 1, NAMED, "p", QC_LANE_NONE);
	machine_op_effect(m, QC_EFFECT_GROUP_CREATE, &group, NULL, 0, 0);
	(void) machine_log(m, 0, true, NULL);
	machine_push(m, 1, 101, 4);
	(void) machine_pop(m, 1, 101, 7, 3, true);
	machine_op_dead(m, &dead, 1);
	machine_settle(m, machine_log(m, 0, false, NULL), true);
	machine_op_delay(m, DELAY_LANE, 1, 1, NAMED, 1700000000000000);
	machine_settle(m, machine_log(m, 0, false, NULL), true);
	machine_op_push(m, NAMED, 1, 2);
	(void) machine_log(m, UINT64_C(0x100000002), false, NULL);
}

size_t
doc_row(const DocRow *row, uint8_t out[SAMPLE_MAX])
{
	static Machine m;
	uint32_t	number = row->number;
	size_t		len = 0;

	machine_begin(&m);
	play(&m);
	rows_take(&m.rows, m.st);
	for (size_t i = 0; i < m.rows.count && len == 0; i++)
	{
		const Row  *found = &m.rows.rows[i];

		if (found->key[0] != row->kind || number-- > 0)
			continue;
		len = found->key_len + found->value_len;
		memcpy(out, found->key, len);
	}
	machine_end(&m);
	return len;
}
