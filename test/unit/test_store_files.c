/*
 * test_store_files.c
 *		The files of the LMDB store: how they are made, what damage to them does, and kill -9.
 */
#define _GNU_SOURCE
#include "../sim/sim_random.h"
#include "store_home.h"
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

/* Path of a file of the store. */
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
	qs_close(home_must_open(&home, MIB, true, false));
	CHECK(stat(path, &st) != 0);
	data_path(&home, path, "data.mdb");
	CHECK_U64(stat(path, &st), 0);
	CHECK_U64(st.st_mode & 0777, 0600);

	/* opening read only leaves no trace; opening for writing leaves the data alone */
	data_path(&home, path, "lock.mdb");
	CHECK_U64(unlink(path), 0);
	qs_close(home_must_open(&home, MIB, false, true));
	CHECK(stat(path, &after) != 0);
	qs_close(home_must_open(&home, MIB, false, false));
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
	store = home_must_open(&home, MIB, true, false);
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
	store = home_must_open(&home, MIB, false, true);
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
	QsStore    *store = home_must_open(home, 8 * MIB, true, false);
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
	store = home_must_open(&home, 8 * MIB, false, true);
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

/* All rows of a store in a number; 0 = it is refused as damaged. */
static QcStatus
add_digest(void *context, const uint8_t *key, size_t key_len, const uint8_t *value,
		   size_t value_len, QcError *err)
{
	uint64_t   *digest = context;

	(void) err;
	*digest = XXH3_64bits_withSeed(key, key_len, *digest);
	*digest = XXH3_64bits_withSeed(value, value_len, *digest);
	return QC_OK;
}

static uint64_t
digest_of(const Home *home)
{
	uint64_t	digest = 1;
	QsStore    *store;
	QcError		err;
	QcStatus	status = qs_open(home->directory, 8 * MIB, false, true, &store, &err);

	if (status == QC_OK)
	{
		status = qs_read(store, add_digest, &digest, &err);
		qs_close(store);
	}
	CHECK(status == QC_OK || status == QC_DAMAGED);
	return status == QC_OK ? digest : 0;
}

/* Batches that change, remove and add rows. */
static void
work_on(const Home *home, int rounds, uint64_t *random)
{
	QsStore    *store = home_must_open(home, 8 * MIB, true, false);

	for (int round = 0; round < rounds; round++)
	{
		static uint8_t buf[20000];
		QcWriter	batch;

		qc_writer_init(&batch, buf, sizeof(buf));
		for (int i = 0; i < 12; i++)
		{
			char		key[16];
			char		value[400];

			snprintf(key, sizeof(key), "k%03d", (int) sim_random_below(random, 300));
			memset(value, (int) sim_random_below(random, 256), sizeof(value));
			if (sim_random_below(random, 4) == 0)
				qs_batch_delete(&batch, key, 4);
			else
				qs_batch_put(&batch, key, 4, value, sizeof(value));
		}
		CHECK_U64(apply_batch(store, &batch), QC_OK);
	}
	qs_close(store);
}

/*
 * A copy of a file that is being written to: each page of one of two moments.  It holds all that was stored at some moment,
 * or is refused.
 */
static void
test_pages_of_different_moments(void)
{
	enum
	{
		MOMENTS = 8
	};
	Home		home;
	uint64_t	moments[MOMENTS];
	uint8_t    *early = NULL;
	uint8_t    *late;
	uint8_t    *mixed;
	size_t		early_len = 0;
	size_t		late_len;
	uint64_t	random = 3;
	int			refused = 0;

	home_begin(&home, false);
	work_on(&home, 60, &random);
	for (int i = 0; i < MOMENTS; i++)
	{
		work_on(&home, 1, &random);
		moments[i] = digest_of(&home);
		CHECK(moments[i] != 0);
		if (i == MOMENTS / 2)
			early = read_data(&home, &early_len);
	}
	late = read_data(&home, &late_len);
	mixed = malloc(late_len);
	if (mixed == NULL || early_len > late_len)
		abort();
	for (uint64_t seed = 0; seed < 600; seed++)
	{
		uint64_t	cut = sim_random_below(&random, late_len / 4096 + 1) * 4096;
		uint64_t	digest;
		int			moment = 0;

		memcpy(mixed, late, late_len);
		for (size_t at = 0; at < early_len; at += 4096)
			if (seed % 2 == 0 ? at < cut : sim_random_bool(&random))
				memcpy(mixed + at, early + at, 4096);
		write_data(&home, mixed, late_len);
		digest = digest_of(&home);
		while (moment < MOMENTS && digest != moments[moment])
			moment++;
		CHECK(digest == 0 || moment < MOMENTS);
		refused += digest == 0;
	}
	CHECK(refused > 400 && refused < 600);
	free(mixed);
	free(early);
	free(late);
	home_end(&home);
}

/* In a child: batches for ever, each setting ten rows to one number. */
static void
count_for_ever(const Home *home)
{
	QsStore    *store = home_must_open(home, 8 * MIB, true, false);

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

int
main(void)
{
	UNIT_RUN(test_files_and_modes);
	UNIT_RUN(test_no_new_store_in_place_of_a_damaged_one);
	UNIT_RUN(test_damaged_value);
	UNIT_RUN(test_damage_never_kills);
	UNIT_RUN(test_pages_of_different_moments);
	UNIT_RUN(test_killed_process_leaves_whole_batches);
	return unit_end();
}
