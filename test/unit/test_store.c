/*
 * test_store.c
 *		The checkpoint store: LMDB and the simulated one, by the same tests where both must agree.
 */
#include "store_home.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the batch ---- */

static void
test_batch_round_trip(void)
{
	uint8_t		buf[100];
	QcWriter	batch;
	QcReader	reader;
	QcError		err;
	QsOp		op;

	qc_writer_init(&batch, buf, sizeof(buf));
	qs_batch_put(&batch, "key", 3, "value", 5);
	qs_batch_delete(&batch, "k", 1);
	qs_batch_put(&batch, "e", 1, NULL, 0);
	CHECK_U64(batch.len, QS_OP_SIZE(3, 5) + 2 * QS_OP_SIZE(1, 0));
	qc_reader_init(&reader, buf, batch.len);
	CHECK_U64(qs_batch_get(&reader, &op, &err), QC_OK);
	CHECK_U64(op.op, QS_OP_PUT);
	CHECK_BYTES(op.key, op.key_len, "key", 3);
	CHECK_BYTES(op.value, op.value_len, "value", 5);
	CHECK_U64(qs_batch_get(&reader, &op, &err), QC_OK);
	CHECK_U64(op.op, QS_OP_DELETE);
	CHECK_BYTES(op.key, op.key_len, "k", 1);
	CHECK_U64(qs_batch_get(&reader, &op, &err), QC_OK);
	CHECK_U64(op.value_len, 0);
	CHECK_U64(qs_batch_get(&reader, &op, &err), QC_END);
}

/* An operation that does not fit leaves a batch that can be applied. */
static void
test_batch_full(void)
{
	uint8_t		buf[24];
	QcWriter	batch;

	qc_writer_init(&batch, buf, sizeof(buf));
	qs_batch_put(&batch, "k", 1, "value", 5);
	CHECK(!batch.full);
	qs_batch_put(&batch, "key", 3, "12", 2);
	CHECK(batch.full);
	CHECK_U64(batch.len, QS_OP_SIZE(1, 5));
	qs_batch_delete(&batch, "k", 1);
	CHECK_U64(batch.len, QS_OP_SIZE(1, 5));
}

static void
test_bad_batches_are_refused(void)
{
	static const uint8_t bad[][16] = {
		{3, 1, 0, 0, 0, 0, 0, 'k'}, /* unknown operation */
		{1, 0, 0, 1, 0, 0, 0, 'v'}, /* no key */
		{2, 1, 0, 1, 0, 0, 0, 'k', 'v'},	/* a deletion with a value */
		{1, 1, 0, 9, 0, 0, 0, 'k', 'v'},	/* cut short */
		{1, 1, 0},
		{1, 1, 0, 1, 0, 0, 0, 0, 'v'},	/* a key that begins with a zero */
	};
	static const size_t lengths[] = {8, 8, 9, 9, 3, 9};
	Home		home;
	QsStore    *store;
	uint8_t		good[64];
	QcWriter	batch;
	QcError		err;

	home_begin(&home, false);
	store = home_must_open(&home, MIB, true, false);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
	{
		qc_writer_init(&batch, good, sizeof(good));
		qs_batch_put(&batch, "good", 4, "x", 1);
		qc_put_bytes(&batch, bad[i], lengths[i]);
		CHECK_U64(qs_apply(store, batch.buf, batch.len, &err), QC_INVALID);
	}
	check_rows(store, "");
	qs_close(store);
	home_end(&home);
}

/* ---- what both stores must do ---- */

static void
share_open(const Home *home)
{
	QsStore    *store;
	QcError		err;

	CHECK_U64(home_open(home, MIB, false, false, &store, &err), QC_MISSING);
	CHECK_U64(home_open(home, MIB, false, true, &store, &err), QC_MISSING);
	store = home_must_open(home, MIB, true, false);
	check_rows(store, "");
	CHECK_U64(apply_row(store, "a", "1"), QC_OK);
	qs_close(store);
	store = home_must_open(home, MIB, true, false);
	check_rows(store, "a=1;");
	qs_close(store);
	store = home_must_open(home, MIB, false, true);
	check_rows(store, "a=1;");
	qs_close(store);
}

static void
share_rows(const Home *home)
{
	QsStore    *store = home_must_open(home, MIB, true, false);
	uint8_t		buf[200];
	QcWriter	batch;

	qc_writer_init(&batch, buf, sizeof(buf));
	qs_batch_put(&batch, "b", 1, "first", 5);
	qs_batch_put(&batch, "ba", 2, "", 0);
	qs_batch_put(&batch, "c", 1, "3", 1);
	qs_batch_put(&batch, "a", 1, "1", 1);
	qs_batch_put(&batch, "b", 1, "second", 6);
	qs_batch_delete(&batch, "c", 1);
	qs_batch_delete(&batch, "never", 5);
	qs_batch_delete(&batch, "d", 1);
	qs_batch_put(&batch, "d", 1, "4", 1);
	CHECK_U64(apply_batch(store, &batch), QC_OK);
	check_rows(store, "a=1;b=second;ba=;d=4;");
	CHECK_U64(apply_row(store, "b", NULL), QC_OK);
	CHECK_U64(apply_row(store, "ba", "5"), QC_OK);
	CHECK_U64(apply_row(store, "A", "6"), QC_OK);
	CHECK_U64(qs_apply(store, NULL, 0, NULL), QC_OK);
	check_rows(store, "A=6;a=1;ba=5;d=4;");
	qs_close(store);
}

static void
share_visitor_stops(const Home *home)
{
	QsStore    *store = home_must_open(home, MIB, true, false);
	Text		text = {.stop = QC_CONFLICT};
	QcError		err;

	CHECK_U64(apply_row(store, "a", "1"), QC_OK);
	CHECK_U64(apply_row(store, "b", "2"), QC_OK);
	CHECK_U64(qs_read(store, add_text, &text, &err), QC_CONFLICT);
	CHECK_STR(text.bytes, "a=1;");
	check_rows(store, "a=1;b=2;");
	qs_close(store);
}

/* The longest key, and a value longer than a page, which a shorter one then replaces. */
static void
share_limits(const Home *home)
{
	QsStore    *store = home_must_open(home, 4 * MIB, true, false);
	static uint8_t buf[100000];
	uint8_t		key[QS_KEY_MAX];
	uint8_t		value[9000];
	QcWriter	batch;
	Text		text = {.stop = QC_OK};
	QcError		err;

	memset(key, 'k', sizeof(key));
	memset(value, 'v', sizeof(value));
	qc_writer_init(&batch, buf, sizeof(buf));
	qs_batch_put(&batch, key, QS_KEY_MAX, value, 9000);
	qs_batch_put(&batch, key, 1, value, 3);
	CHECK_U64(apply_batch(store, &batch), QC_OK);
	CHECK_U64(qs_read(store, add_text, &text, &err), QC_OK);
	CHECK_BYTES(text.bytes, 6, "k=vvv;", 6);
	CHECK_U64(text.len, 6 + QS_KEY_MAX + 1 + 9000 + 1);
	qc_writer_init(&batch, buf, sizeof(buf));
	qs_batch_put(&batch, key, QS_KEY_MAX, value, 4500);
	CHECK_U64(apply_batch(store, &batch), QC_OK);
	qs_close(store);
	store = home_must_open(home, 4 * MIB, false, true);
	text.len = 0;

	CHECK_U64(qs_read(store, add_text, &text, &err), QC_OK);
	CHECK_U64(text.len, 6 + QS_KEY_MAX + 1 + 4500 + 1);
	qs_close(store);
}

/* Fill one row after the other until the store is full; returns how many fitted. */
static int
fill(QsStore *store, QcStatus *status)
{
	static char value[3001];
	char		key[16];
	int			count = 0;

	memset(value, 'x', sizeof(value) - 1);
	do
	{
		snprintf(key, sizeof(key), "row%05d", count++);
		*status = apply_row(store, key, value);
	} while (*status == QC_OK && count < 10000);
	return count - 1;
}

static void
share_full(const Home *home)
{
	QsStore    *store = home_must_open(home, MIB / 4, true, false);
	QcStatus	status;
	uint64_t	used;
	uint64_t	less;
	uint64_t	limit;
	int			rows = fill(store, &status);

	CHECK_U64(status, QC_FULL);
	CHECK(rows > 30);
	CHECK_U64(count_rows(store), rows);
	qs_size(store, &used, &limit);
	CHECK_U64(limit, MIB / 4);
	CHECK(used <= limit && used > limit * 3 / 4);

	/* room comes back by deleting, and by a larger limit */
	for (int i = 0; i < 20; i++)
	{
		char		key[16];

		snprintf(key, sizeof(key), "row%05d", i);
		CHECK_U64(apply_row(store, key, NULL), QC_OK);
	}
	qs_size(store, &less, &limit);
	CHECK(less + 40000 < used);
	CHECK_U64(apply_row(store, "again", "1"), QC_OK);
	CHECK_U64(count_rows(store), rows - 19);
	qs_close(store);
	store = home_must_open(home, MIB / 2, false, false);
	CHECK_U64(count_rows(store), rows - 19);
	CHECK(fill(store, &status) > rows);
	CHECK_U64(status, QC_FULL);
	qs_close(store);
}

typedef struct SharedTest
{
	const char *name;
	void		(*run) (const Home *home);
} SharedTest;

static const SharedTest shared_tests[] = {
	{"open", share_open},
	{"rows", share_rows},
	{"a visitor that stops", share_visitor_stops},
	{"long keys and values", share_limits},
	{"full", share_full},
};

static void
run_shared(const void *argument, bool simulated)
{
	const SharedTest *test = argument;
	Home		home;

	home_begin(&home, simulated);
	test->run(&home);
	home_end(&home);
}

static void
run_on_lmdb(const void *argument)
{
	run_shared(argument, false);
}

static void
run_on_sim(const void *argument)
{
	run_shared(argument, true);
}

/* ---- LMDB only ---- */

/* A batch that needs more than the first map: it is applied again from its start until it fits. */
static void
test_map_grows_within_one_batch(void)
{
	Home		home;
	QsStore    *store;
	size_t		cap = 72 * MIB;
	uint8_t    *buf = malloc(cap);
	char	   *value = malloc(MIB);
	QcWriter	batch;
	QcError		err;
	uint64_t	used;
	uint64_t	limit;

	if (buf == NULL || value == NULL)
		abort();
	home_begin(&home, false);
	store = home_must_open(&home, 100 * MIB, true, false);
	memset(value, 'x', MIB);
	qc_writer_init(&batch, buf, cap);
	for (int i = 0; i < 70; i++)
	{
		char		key[16];

		snprintf(key, sizeof(key), "row%05d", i);
		qs_batch_put(&batch, key, 8, value, MIB);
	}
	CHECK_U64(apply_batch(store, &batch), QC_OK);
	CHECK_U64(count_rows(store), 70);
	qs_size(store, &used, &limit);
	CHECK(used > 70 * MIB);
	CHECK_U64(limit, 100 * MIB);

	/* another 70 are beyond the limit: nothing of them may stay */
	for (size_t i = 0; i < batch.len; i += QS_OP_SIZE(8, MIB))
		buf[i + 7] = 's';
	CHECK_U64(qs_apply(store, buf, batch.len, &err), QC_FULL);
	CHECK_U64(count_rows(store), 70);
	CHECK_U64(apply_row(store, "small", "1"), QC_OK);
	qs_close(store);

	/* a file larger than the limit is served all the same */
	store = home_must_open(&home, MIB, false, false);
	CHECK_U64(count_rows(store), 71);
	qs_close(store);
	home_end(&home);
	free(buf);
	free(value);
}

/* ---- the simulated store only ---- */

static void
test_simulated_store_is_atomic(void)
{
	int			seen[3][2] = {{0}};

	for (uint64_t seed = 0; seed < 60; seed++)
	{
		SimPoint	point = (SimPoint) (seed % 3);
		SimDisk    *disk = sim_disk_new(seed);
		SimDisk    *copy;
		Home		home = {.disk = disk};
		QsStore    *store = home_must_open(&home, MIB, true, false);
		Text		text = {.stop = QC_OK};
		QcError		err;

		CHECK_U64(apply_row(store, "a", "old"), QC_OK);
		CHECK_U64(sim_disk_steps(disk), 2);
		sim_disk_crash_at(disk, 3, point);
		CHECK_U64(apply_row(store, "a", "new"), QC_IO);
		CHECK(sim_disk_crashed(disk));
		CHECK_U64(qs_read(store, add_text, &text, &err), QC_IO);
		CHECK_U64(err.sys_errno, SIM_CRASHED);
		qs_close(store);
		CHECK_U64(home_open(&home, MIB, false, false, &store, &err), QC_IO);

		copy = sim_disk_copy(disk);
		sim_disk_free(disk);
		sim_disk_reboot(copy, SIM_LOSE_ALL, SIM_LOSE_ALL);
		home.disk = copy;
		store = home_must_open(&home, MIB, false, false);
		CHECK_U64(qs_read(store, add_text, &text, &err), QC_OK);
		seen[point][strcmp(text.bytes, "a=new;") == 0]++;
		CHECK(strcmp(text.bytes, "a=new;") == 0 || strcmp(text.bytes, "a=old;") == 0);
		qs_close(store);
		sim_disk_free(copy);
	}
	CHECK(seen[SIM_BEFORE][0] == 20 && seen[SIM_AFTER][1] == 20);
	CHECK(seen[SIM_MIDDLE][0] > 0 && seen[SIM_MIDDLE][1] > 0);
}

static void
test_simulated_store_errors(void)
{
	Home		home;
	QsStore    *store;

	home_begin(&home, true);
	store = home_must_open(&home, MIB, true, false);
	CHECK_U64(apply_row(store, "a", "1"), QC_OK);
	sim_disk_fail(home.disk, SIM_OP_SWAP, 1, ENOSPC);
	sim_disk_fail(home.disk, SIM_OP_SWAP, 2, EIO);
	CHECK_U64(apply_row(store, "a", "2"), QC_NOSPACE);
	CHECK_U64(apply_row(store, "a", "3"), QC_IO);
	check_rows(store, "a=1;");
	qs_close(store);
	home_end(&home);
}

int
main(void)
{
	char		name[128];

	UNIT_RUN(test_batch_round_trip);
	UNIT_RUN(test_batch_full);
	UNIT_RUN(test_bad_batches_are_refused);
	for (size_t i = 0; i < sizeof(shared_tests) / sizeof(shared_tests[0]); i++)
	{
		snprintf(name, sizeof(name), "lmdb: %s", shared_tests[i].name);
		unit_run_with(name, run_on_lmdb, &shared_tests[i]);
		snprintf(name, sizeof(name), "simulated: %s", shared_tests[i].name);
		unit_run_with(name, run_on_sim, &shared_tests[i]);
	}
	UNIT_RUN(test_map_grows_within_one_batch);
	UNIT_RUN(test_simulated_store_is_atomic);
	UNIT_RUN(test_simulated_store_errors);
	return unit_end();
}
