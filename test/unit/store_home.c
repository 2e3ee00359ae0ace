/*
 * store_home.c
 *		A place for a checkpoint store under test.
 */
#define _GNU_SOURCE
#include "store_home.h"

#include "unit.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void) st;
	(void) flag;
	(void) ftw;
	return remove(path);
}

void
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

void
home_end(Home *home)
{
	if (home->disk != NULL)
		sim_disk_free(home->disk);
	else
		(void) nftw(home->directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

QcStatus
home_open(const Home *home, uint64_t map_max, bool create, bool read_only, QsStore **store,
		  QcError *err)
{
	if (home->disk != NULL)
		return sim_store_open(home->disk, "store", map_max, create, read_only, store, err);
	return qs_open(home->directory, map_max, create, read_only, store, err);
}

QsStore *
home_must_open(const Home *home, uint64_t map_max, bool create, bool read_only)
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

QcStatus
apply_batch(QsStore *store, const QcWriter *batch)
{
	QcError		err;

	CHECK(!batch->full);
	return qs_apply(store, batch->buf, batch->len, &err);
}

QcStatus
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

QcStatus
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

void
check_rows(QsStore *store, const char *expected)
{
	Text		text = {.stop = QC_OK};
	QcError		err;

	CHECK_U64(qs_read(store, add_text, &text, &err), QC_OK);
	CHECK_STR(text.bytes, expected);
}

QcStatus
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

int
count_rows(QsStore *store)
{
	int			count = 0;
	QcError		err;

	CHECK_U64(qs_read(store, count_row, &count, &err), QC_OK);
	return count;
}
