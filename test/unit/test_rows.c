/*
 * test_rows.c
 *		Checkpoint rows of a state that changes: what is stored is what was there.
 */
#include "machine.h"

static Machine m;

static void
release(uint64_t lease)
{
	QcRelease	effect = {.lease = lease, .reason = QC_RELEASE_ABORT};

	machine_op_effect(&m, QC_EFFECT_RELEASE, &effect, NULL, 0, 0);
	(void) machine_log(&m, 0, true, NULL);
}

/* The state that the rows give back is the one that they were taken from. */
static void
expect_reload(void)
{
	uint64_t	digest = state_digest(m.st);

	machine_reload(&m);
	CHECK_U64(state_digest(m.st), digest);
}

/* Something is deleted and made again under the same key between two dumps: the new row is stored. */
static void
test_made_again(void)
{
	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	machine_push(&m, 1, 101, 3);
	CHECK_U64(machine_pop(&m, 1, 101, 77, 1, true), 1);
	rows_take(&m.rows, m.st);
	for (int i = 0; i < 3; i++)
	{
		release(77);
		CHECK(qc_lease_by_id(m.st, 77) == NULL);
		CHECK_U64(machine_pop(&m, 1, 101, 77, 2, true), 2);
	}
	CHECK(qc_lease_by_id(m.st, 77) != NULL);
	expect_reload();
	CHECK(qc_lease_by_id(m.st, 77) != NULL);
	CHECK_U64(qc_lease_by_id(m.st, 77)->nslots, 2);

	/* And the other way round: what is gone in the end has no row. */
	release(77);
	CHECK_U64(machine_pop(&m, 1, 101, 77, 1, true), 1);
	release(77);
	expect_reload();
	CHECK(qc_lease_by_id(m.st, 77) == NULL);
	machine_end(&m);
}

int
main(void)
{
	UNIT_RUN(test_made_again);
	return unit_end();
}
