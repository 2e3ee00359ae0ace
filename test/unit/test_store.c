/*
 * test_store.c
 *		The checkpoint store: LMDB and the simulated one, by the same tests where both must agree.
 */
#define _GNU_SOURCE
#include "../sim/sim_random.h"
#include "../sim/sim_store.h"
#include "qs_store.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((uint64_t) 1024 * 1024)

/* Where a store lives: a directory for LMDB, a disk for the simulated one (disk != NULL). */
typedef struct Home
{
	SimDisk    *disk;
	char		directory[64];
} Home;

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void) st;
	(void) flag;
	(void) ftw;
	return remove(path);
}

static void
home_begin(Home *home, bool simulated)
{
	memset(home, 0, sizeof(*home));
	if (simulated)
	{
		home->disk = sim_disk_new(1);
		return;
	}
	strcpy(home->directory, "/tmp/qlog-unit-store-XXXXXX");
	if (mkdtemp(home->directory) == NULL)
		abort();
}

static void
home_end(Home *home)
{
	if (home->disk != NULL)
		sim_disk_free(home->disk);
	else
		(void) nftw(home->directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static QcStatus
home_open(const Home *home, uint64_t map_max, bool create, bool read_only, QsStore **store,
		  QcError *err)
{
	if (home->disk != NULL)
		return sim_store_open(home->disk, "store", map_max, create, read_only, store, err);
	return qs_open(home->directory, map_max, create, read_only, store, err);
}

static QsStore *
must_open(const Home *home, uint64_t map_max, bool create, bool read_only)
{
	QsStore    *store = NULL;
	QcError		err;

	if (home_open(home, map_max, create, read_only, &store, &err) != QC_OK)
	{
		printf("# open: %s\n", err.text);
		abort();
	}
	return store;
}

static QcStatus
apply_batch(QsStore *store, const QcWriter *batch)
{
	QcError		err;

	CHECK(!batch->full);
	return qs_apply(store, batch->buf, batch->len, &err);
}

/* One row of its own batch; value NULL deletes it. */
static QcStatus
apply_row(QsStore *store, const char *key, const char *value)
{
	uint8_t		buf[4096];
	QcWriter	batch;

	qc_writer_init(&batch, buf, sizeof(buf));
	if (value != NULL)
		qs_batch_put(&batch, key, (uint16_t) strlen(key), value, (uint32_t) strlen(value));
	else
		qs_batch_delete(&batch, key, (uint16_t) strlen(key));
	return apply_batch(store, &batch);
}

/* All rows as "key=value;" one after the other. */
typedef struct Text
{
	char		bytes[2000];
	size_t		len;
	QcStatus	stop;			/* returned for each row */
} Text;

static QcStatus
add_text(void *context, const uint8_t *key, size_t key_len, const uint8_t *value,
		 size_t value_len, QcError *err)
{
	Text	   *text = context;

	size_t		at = text->len < sizeof(text->bytes) ? text->len : sizeof(text->bytes) - 1;

	(void) err;
	text->len += (size_t) snprintf(text->bytes + at, sizeof(text->bytes) - at,
								   "%.*s=%.*s;", (int) key_len, (const char *) key,
								   (int) value_len, (const char *) value);
	return text->stop;
}

static void
check_rows(QsStore *store, const char *expected)
{
	Text		text = {.stop = QC_OK};
	QcError		err;

	CHECK_U64(qs_read(store, add_text, &text, &err), QC_OK);
	CHECK_STR(text.bytes, expected);
}

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
		{3, 1, 0, 0, 0, 0, 0, 'k'},	/* unknown operation */
		{1, 0, 0, 1, 0, 0, 0, 'v'},	/* no key */
		{2, 1, 0, 1, 0, 0, 0, 'k', 'v'},	/* a deletion with a value */
		{1, 1, 0, 9, 0, 0, 0, 'k', 'v'},	/* cut short */
		{1, 1, 0},
	};
	static const size_t lengths[] = {8, 8, 9, 9, 3};
	Home		home;
	QsStore    *store;
	uint8_t		good[64];
	QcWriter	batch;
	QcError		err;

	home_begin(&home, false);
	store = must_open(&home, MIB, true, false);
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
	store = must_open(home, MIB, true, false);
	check_rows(store, "");
	CHECK_U64(apply_row(store, "a", "1"), QC_OK);
	qs_close(store);
	store = must_open(home, MIB, true, false);
	check_rows(store, "a=1;");
	qs_close(store);
	store = must_open(home, MIB, false, true);
	check_rows(store, "a=1;");
	qs_close(store);
}

static void
share_rows(const Home *home)
{
	QsStore    *store = must_open(home, MIB, true, false);
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
	QsStore    *store = must_open(home, MIB, true, false);
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
	QsStore    *store = must_open(home, 4 * MIB, true, false);
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
	store = must_open(home, 4 * MIB, false, true);
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

static QcStatus
count_row(void *context, const uint8_t *key, size_t key_len, const uint8_t *value,
		  size_t value_len, QcError *err)
{
	(void) key;
	(void) key_len;
	(void) value;
	(void) value_len;
	(void) err;
	++*(int *) context;
	return QC_OK;
}

static int
count_rows(QsStore *store)
{
	int			count = 0;
	QcError		err;

	CHECK_U64(qs_read(store, count_row, &count, &err), QC_OK);
	return count;
}

static void
share_full(const Home *home)
{
	QsStore    *store = must_open(home, MIB / 4, true, false);
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
	store = must_open(home, MIB / 2, false, false);
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
	store = must_open(&home, 100 * MIB, true, false);
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
	store = must_open(&home, MIB, false, false);
	CHECK_U64(count_rows(store), 71);
	qs_close(store);
	home_end(&home);
	free(buf);
	free(value);
}

static void
data_path(const Home *home, char path[128], const char *name)
{
	snprintf(path, 128, "%s/%s", home->directory, name);
}

static void
test_files_and_modes(void)
{
	Home		home;
	char		path[128];
	struct stat st;
	struct stat after;

	home_begin(&home, false);
	data_path(&home, path, "data.mdb.tmp");
	CHECK_U64(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);	/* of a creation that was cut off */
	qs_close(must_open(&home, MIB, true, false));
	CHECK(stat(path, &st) != 0);
	data_path(&home, path, "data.mdb");
	CHECK_U64(stat(path, &st), 0);
	CHECK_U64(st.st_mode & 0777, 0600);

	/* opening read only leaves no trace; opening for writing leaves the data alone */
	data_path(&home, path, "lock.mdb");
	CHECK_U64(unlink(path), 0);
	qs_close(must_open(&home, MIB, false, true));
	CHECK(stat(path, &after) != 0);
	qs_close(must_open(&home, MIB, false, false));
	data_path(&home, path, "data.mdb");
	CHECK_U64(stat(path, &after), 0);
	CHECK(st.st_mtim.tv_sec == after.st_mtim.tv_sec && st.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
	home_end(&home);
}

/* An empty, short or foreign file is damage, never a new store. */
static void
test_no_new_store_in_place_of_a_damaged_one(void)
{
	static const char junk[20000] = "no store";
	static const size_t lengths[] = {0, 10, 4096, sizeof(junk)};
	Home		home;
	char		path[128];
	QsStore    *store;
	QcError		err;

	home_begin(&home, false);
	data_path(&home, path, "data.mdb");
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
	{
		int			fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

		CHECK_U64(write(fd, junk, lengths[i]), lengths[i]);
		close(fd);
		CHECK_U64(qs_open(home.directory, MIB, true, false, &store, &err), QC_DAMAGED);
		CHECK_U64(qs_open(home.directory, MIB, false, true, &store, &err), QC_DAMAGED);
	}
	CHECK_U64(unlink(path), 0);
	CHECK_U64(symlink("elsewhere", path), 0);
	CHECK_U64(qs_open(home.directory, MIB, true, false, &store, &err), QC_INVALID);
	home_end(&home);
	CHECK_U64(qs_open(home.directory, MIB, false, false, &store, &err), QC_MISSING);
	CHECK_U64(qs_open(home.directory, MIB, true, false, &store, &err), QC_IO);
}

/* The whole of data.mdb; *len its length. */
static uint8_t *
read_data(const Home *home, size_t *len)
{
	char		path[128];
	struct stat st;
	uint8_t    *bytes;
	int			fd;

	data_path(home, path, "data.mdb");
	fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) != 0)
		abort();
	*len = (size_t) st.st_size;
	bytes = malloc(*len);
	if (bytes == NULL || read(fd, bytes, *len) != (ssize_t) *len)
		abort();
	close(fd);
	return bytes;
}

static void
write_data(const Home *home, const uint8_t *bytes, size_t len)
{
	char		path[128];
	int			fd;

	data_path(home, path, "data.mdb");
	fd = open(path, O_WRONLY | O_TRUNC);
	if (fd < 0 || write(fd, bytes, len) != (ssize_t) len)
		abort();
	close(fd);
}

static void
test_damaged_value(void)
{
	Home		home;
	QsStore    *store;
	uint8_t    *bytes;
	uint8_t    *at = NULL;
	size_t		len;
	Text		text = {.stop = QC_OK};
	QcError		err;

	home_begin(&home, false);
	store = must_open(&home, MIB, true, false);
	CHECK_U64(apply_row(store, "a", "before"), QC_OK);
	CHECK_U64(apply_row(store, "b", "precious"), QC_OK);
	qs_close(store);
	bytes = read_data(&home, &len);
	/* old copies of the page may hold the value too */
	for (size_t i = 0; i + 8 <= len; i++)
		if (memcmp(bytes + i, "precious", 8) == 0)
		{
			at = bytes + i;
			at[3] ^= 4;
		}
	CHECK(at != NULL);
	write_data(&home, bytes, len);
	store = must_open(&home, MIB, false, true);
	CHECK_U64(qs_read(store, add_text, &text, &err), QC_DAMAGED);
	CHECK_STR(text.bytes, "a=before;");
	CHECK(strstr(err.file, "/data.mdb") != NULL);
	qs_close(store);
	free(bytes);
	home_end(&home);
}

/* A store with several levels of pages, long values and free pages. */
static void
make_varied_store(const Home *home)
{
	QsStore    *store = must_open(home, 8 * MIB, true, false);
	uint64_t	random = 1;
	static char value[12001];

	for (int round = 0; round < 6; round++)
	{
		static uint8_t buf[600000];
		QcWriter	batch;

		qc_writer_init(&batch, buf, sizeof(buf));
		for (int i = 0; i < 60; i++)
		{
			char		key[300];
			uint64_t	number = sim_random_below(&random, 200);
			uint64_t	len = sim_random_below(&random, 20) == 0 ? 12000 :
				sim_random_below(&random, 900);

			memset(key, 'k', sizeof(key));
			snprintf(key + number % 250, 20, "%05d", (int) number);
			memset(value, 'v', sizeof(value));
			if (sim_random_below(&random, 3) == 0)
				qs_batch_delete(&batch, key, (uint16_t) strlen(key));
			else
				qs_batch_put(&batch, key, (uint16_t) strlen(key), value, (uint32_t) len);
		}
		CHECK_U64(apply_batch(store, &batch), QC_OK);
	}
	qs_close(store);
}

/* Damage the bytes somehow; returns the new length. */
static size_t
damage(uint8_t *bytes, size_t len, uint64_t *random)
{
	uint64_t	page = sim_random_below(random, len / 4096) * 4096;
	uint64_t	other = sim_random_below(random, len / 4096) * 4096;

	switch (sim_random_below(random, 6))
	{
		case 0:					/* a bit */
			bytes[sim_random_below(random, len)] ^= (uint8_t) (1 << sim_random_below(random, 8));
			return len;
		case 1:					/* a bit of a page's head or its first pointers */
			bytes[page + sim_random_below(random, 40)] ^=
				(uint8_t) (1 << sim_random_below(random, 8));
			return len;
		case 2:					/* a byte of a meta page */
			bytes[sim_random_below(random, 2) * 4096 + sim_random_below(random, 152)] =
				(uint8_t) sim_random(random);
			return len;
		case 3:					/* a page of zeros */
			memset(bytes + page, 0, 4096);
			return len;
		case 4:					/* a page in the place of another */
			memmove(bytes + page, bytes + other, 4096);
			return len;
		default:				/* a short file */
			return (size_t) sim_random_below(random, len);
	}
}

/*
 * Whatever is damaged: opening, reading and writing end with a status.  (LMDB by itself would end
 * this program with an assertion or a bus error.)
 */
static void
test_damage_never_kills(void)
{
	Home		home;
	uint8_t    *whole;
	uint8_t    *bytes;
	size_t		len;
	int			refused = 0;
	int			unread = 0;
	int			rows;
	QsStore    *store;

	home_begin(&home, false);
	make_varied_store(&home);
	store = must_open(&home, 8 * MIB, false, true);
	rows = count_rows(store);
	qs_close(store);
	whole = read_data(&home, &len);
	bytes = malloc(len);
	if (bytes == NULL)
		abort();
	CHECK(rows > 50 && len % 4096 == 0);
	for (uint64_t seed = 0; seed < 600; seed++)
	{
		uint64_t	random = seed;
		QcError		err;
		QcStatus	status;
		int			count = 0;

		memcpy(bytes, whole, len);
		write_data(&home, bytes, damage(bytes, len, &random));
		status = qs_open(home.directory, 8 * MIB, false, seed % 4 != 0, &store, &err);
		if (status != QC_OK)
		{
			CHECK(status == QC_DAMAGED || status == QC_VERSION);
			CHECK(strstr(err.file, "/data.mdb") != NULL);
			refused++;
			continue;
		}
		status = qs_read(store, count_row, &count, &err);
		CHECK(status == QC_OK || status == QC_DAMAGED);
		unread += status == QC_DAMAGED;
		if (seed % 4 == 0)
			for (int i = 0; i < 3; i++)
				CHECK_U64(apply_row(store, i == 1 ? "more" : "kkk", "value"), QC_OK);
		qs_close(store);
	}
	CHECK(refused > 200);
	CHECK(unread > 5);
	free(bytes);
	free(whole);
	home_end(&home);
}

/* In a child: batches for ever, each setting ten rows to one number. */
static void
count_for_ever(const Home *home)
{
	QsStore    *store = must_open(home, 8 * MIB, true, false);

	for (int number = 0;; number++)
	{
		uint8_t		buf[1000];
		char		value[300];
		QcWriter	batch;

		qc_writer_init(&batch, buf, sizeof(buf));
		snprintf(value, sizeof(value), "%08d", number);
		for (char row = '0'; row <= '9'; row++)
			qs_batch_put(&batch, &row, 1, value, 8);
		if (apply_batch(store, &batch) != QC_OK)
			_exit(1);
	}
}

static void
test_killed_process_leaves_whole_batches(void)
{
	Home		home;

	home_begin(&home, false);
	for (int round = 0; round < 6; round++)
	{
		pid_t		child = fork();
		QsStore    *store;
		Text		text = {.stop = QC_OK};
		QcError		err;
		int			status;

		if (child == 0)
			count_for_ever(&home);
		usleep(40000 + 7001 * (useconds_t) round);
		CHECK_U64(kill(child, SIGKILL), 0);
		CHECK_U64(waitpid(child, &status, 0), child);
		CHECK(WIFSIGNALED(status));
		if (qs_open(home.directory, 8 * MIB, false, false, &store, &err) != QC_OK)
		{
			CHECK_U64(err.code, QC_MISSING);	/* killed before it was made */
			continue;
		}
		CHECK_U64(qs_read(store, add_text, &text, &err), QC_OK);
		for (size_t i = 0; i + 11 < text.len; i += 11)
			CHECK_BYTES(text.bytes + i + 2, 8, text.bytes + 2, 8);
		qs_close(store);
	}
	home_end(&home);
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
		QsStore    *store = must_open(&home, MIB, true, false);
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
		store = must_open(&home, MIB, false, false);
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
	store = must_open(&home, MIB, true, false);
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
	UNIT_RUN(test_files_and_modes);
	UNIT_RUN(test_no_new_store_in_place_of_a_damaged_one);
	UNIT_RUN(test_damaged_value);
	UNIT_RUN(test_damage_never_kills);
	UNIT_RUN(test_killed_process_leaves_whole_batches);
	UNIT_RUN(test_simulated_store_is_atomic);
	UNIT_RUN(test_simulated_store_errors);
	return unit_end();
}
