/*
 * qs_lmdb.c
 *		The store in LMDB: data.mdb (and lock.mdb) in a directory of its own.
 *
 * A stored value is u64 checksum, then the value; the checksum is the digest of the 16 bytes
 * digest(key), digest(value).  Guards: a data.mdb that exists is whole (it is made under another
 * name), an empty or damaged one is refused and never taken for a new one, and the map grows only
 * between transactions.  No MDB_WRITEMAP: LMDB's pages are then written by it alone.
 *
 * One row more than the caller's, under a key that no caller may use, holds the number of all others and the sum of
 * their checksums.  Each transaction brings it up to date, and a reader adds up again: a file whose pages are of
 * different moments, as a copy of one that is being written to may be, is found out although each page is right.
 */
#define _GNU_SOURCE
#include "qs_backend.h"
#include "qs_lmdb_check.h"
#include "../core/qc_record.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAP_START		(UINT64_C(64) * 1024 * 1024)
#define CHECKSUM_SIZE	8
#define FREE_DBI		0		/* LMDB's own table of free pages */
#define FILE_MODE		0600

/* What the row of sums holds. */
typedef struct Sums
{
	uint64_t	rows;
	uint64_t	checksums;
} Sums;

#define SUMS_SIZE		16
static const uint8_t sums_key[1] = {0};

typedef struct QsLmdb
{
	QsStore		base;
	MDB_env    *env;
	MDB_dbi		dbi;
	uint64_t	map;			/* current size of the map */
	uint64_t	map_max;
	char		file[64];		/* for errors: "store/data.mdb" */
} QsLmdb;

/* Turn an LMDB return code into a status.  A positive one is an errno value. */
static QcStatus
lmdb_error(const char *file, int rc, const char *what, QcError *err)
{
	QcStatus	code;

	if (rc > 0)
		return qc_error_sys(err, rc, file, what);
	switch (rc)
	{
		case MDB_MAP_FULL:
			code = QC_FULL;
			break;
		case MDB_TXN_FULL:
			code = QC_LIMIT;
			break;
		case MDB_PANIC:
			code = QC_IO;
			break;
		case MDB_VERSION_MISMATCH:
			code = QC_VERSION;
			break;
		case MDB_INVALID:
		case MDB_CORRUPTED:
		case MDB_PAGE_NOTFOUND:
			code = QC_DAMAGED;
			break;
		default:
			code = QC_INTERNAL;
			break;
	}
	return qc_error_at(err, code, file, UINT64_MAX, "%s: %s", what, mdb_strerror(rc));
}

/* The checksum that stands before a value. */
static uint64_t
row_checksum(const void *key, size_t key_len, const void *value, size_t value_len)
{
	uint8_t		both[16];

	qc_store_u64(both, qc_digest(key, key_len));
	qc_store_u64(both + 8, qc_digest(value, value_len));
	return qc_digest(both, sizeof(both));
}

static void
lmdb_close(QsStore *base)
{
	QsLmdb	   *store = (QsLmdb *) base;

	mdb_env_close(store->env);
	free(store);
}

/* Write a row; returns its checksum in *checksum. */
static int
put_row(const QsLmdb *store, MDB_txn *txn, MDB_val *key, const void *value, size_t value_len,
		uint64_t *checksum)
{
	MDB_val		data = {.mv_size = CHECKSUM_SIZE + value_len};
	uint8_t    *to;
	int			rc = mdb_put(txn, store->dbi, key, &data, MDB_RESERVE);

	if (rc != 0)
		return rc;
	to = data.mv_data;
	*checksum = row_checksum(key->mv_data, key->mv_size, value, value_len);
	qc_store_u64(to, *checksum);
	if (value_len > 0)
		memcpy(to + CHECKSUM_SIZE, value, value_len);
	return 0;
}

static bool
is_sums(const MDB_val *key)
{
	return key->mv_size == sizeof(sums_key) && *(const uint8_t *) key->mv_data == sums_key[0];
}

/* The row of sums; all zero when there is none yet. */
static int
get_sums(const QsLmdb *store, MDB_txn *txn, Sums *sums)
{
	MDB_val		key = {.mv_size = sizeof(sums_key), .mv_data = (void *) (uintptr_t) sums_key};
	MDB_val		data;
	int			rc = mdb_get(txn, store->dbi, &key, &data);

	memset(sums, 0, sizeof(*sums));
	if (rc == MDB_NOTFOUND)
		return 0;
	if (rc == 0 && data.mv_size != CHECKSUM_SIZE + SUMS_SIZE)
		return MDB_CORRUPTED;
	if (rc == 0)
	{
		sums->rows = qc_load_u64((uint8_t *) data.mv_data + CHECKSUM_SIZE);
		sums->checksums = qc_load_u64((uint8_t *) data.mv_data + CHECKSUM_SIZE + 8);
	}
	return rc;
}

static int
put_sums(const QsLmdb *store, MDB_txn *txn, const Sums *sums)
{
	MDB_val		key = {.mv_size = sizeof(sums_key), .mv_data = (void *) (uintptr_t) sums_key};
	uint8_t		value[SUMS_SIZE];
	uint64_t	ignored;

	qc_store_u64(value, sums->rows);
	qc_store_u64(value + 8, sums->checksums);
	return put_row(store, txn, &key, value, sizeof(value), &ignored);
}

/* One operation; the sums follow it. */
static int
apply_op(const QsLmdb *store, MDB_txn *txn, const QsOp *op, Sums *sums)
{
	MDB_val		key = {.mv_size = op->key_len, .mv_data = (void *) (uintptr_t) op->key};
	MDB_val		old;
	uint64_t	checksum = 0;
	int			rc = mdb_get(txn, store->dbi, &key, &old);

	if (rc == 0 && old.mv_size < CHECKSUM_SIZE)
		return MDB_CORRUPTED;
	if (rc == 0)
	{
		sums->rows--;
		sums->checksums -= qc_load_u64(old.mv_data);
	}
	else if (rc != MDB_NOTFOUND)
		return rc;
	if (op->op == QS_OP_DELETE)
		return rc == MDB_NOTFOUND ? 0 : mdb_del(txn, store->dbi, &key, NULL);
	rc = put_row(store, txn, &key, op->value, op->value_len, &checksum);
	sums->rows++;
	sums->checksums += checksum;
	return rc;
}

/* Try the whole batch in one transaction.  Returns LMDB's code; nothing has changed when not 0. */
static int
apply_once(const QsLmdb *store, const void *batch, size_t len)
{
	QcReader	reader;
	QsOp		op;
	Sums		sums;
	MDB_txn    *txn;
	int			rc = mdb_txn_begin(store->env, NULL, 0, &txn);

	if (rc != 0)
		return rc;
	rc = get_sums(store, txn, &sums);
	qc_reader_init(&reader, batch, len);
	while (rc == 0 && qs_batch_get(&reader, &op, NULL) == QC_OK)
		rc = apply_op(store, txn, &op, &sums);
	if (rc == 0)
		rc = put_sums(store, txn, &sums);
	if (rc == 0)
		return mdb_txn_commit(txn);
	mdb_txn_abort(txn);
	return rc;
}

/* Double the map up to its limit; false when it is there already.  No transaction may be open. */
static bool
grow_map(QsLmdb *store, int *rc)
{
	uint64_t	map = store->map > store->map_max / 2 ? store->map_max : store->map * 2;

	if (store->map >= store->map_max)
		return false;
	*rc = mdb_env_set_mapsize(store->env, (size_t) map);
	if (*rc == 0)
		store->map = map;
	return true;
}

static QcStatus
lmdb_apply(QsStore *base, const void *batch, size_t len, QcError *err)
{
	QsLmdb	   *store = (QsLmdb *) base;
	int			rc;

	do
		rc = apply_once(store, batch, len);
	while (rc == MDB_MAP_FULL && grow_map(store, &rc) && rc == 0);
	return rc == 0 ? QC_OK : lmdb_error(store->file, rc, "could not write a checkpoint", err);
}

/* Check one row, count it and show it; the row of sums is neither counted nor shown. */
static QcStatus
visit_row(const QsLmdb *store, const MDB_val *key, const MDB_val *data, Sums *sums,
		  QsVisitor visit, void *context, QcError *err)
{
	const uint8_t *stored = data->mv_data;
	const uint8_t *value = stored + CHECKSUM_SIZE;
	size_t		len = data->mv_size - CHECKSUM_SIZE;

	if (data->mv_size < CHECKSUM_SIZE ||
		qc_load_u64(stored) != row_checksum(key->mv_data, key->mv_size, value, len))
		return qc_error_at(err, QC_DAMAGED, store->file, UINT64_MAX,
						   "a row of the store has a wrong checksum");
	if (is_sums(key))
		return QC_OK;
	sums->rows++;
	sums->checksums += qc_load_u64(stored);
	return visit(context, key->mv_data, key->mv_size, value, len, err);
}

static QcStatus
read_rows(const QsLmdb *store, MDB_txn *txn, QsVisitor visit, void *context, QcError *err)
{
	MDB_cursor *cursor;
	MDB_val		key;
	MDB_val		data;
	Sums		expected;
	Sums		sums = {0, 0};
	QcStatus	status = QC_OK;
	int			rc = get_sums(store, txn, &expected);

	if (rc == 0)
		rc = mdb_cursor_open(txn, store->dbi, &cursor);

	if (rc != 0)
		return lmdb_error(store->file, rc, "could not read the store", err);
	while (status == QC_OK && (rc = mdb_cursor_get(cursor, &key, &data, MDB_NEXT)) == 0)
		status = visit_row(store, &key, &data, &sums, visit, context, err);
	mdb_cursor_close(cursor);
	if (status == QC_OK && rc != MDB_NOTFOUND)
		status = lmdb_error(store->file, rc, "could not read the store", err);
	if (status == QC_OK && memcmp(&sums, &expected, sizeof(sums)) != 0)
		status = qc_error_at(err, QC_DAMAGED, store->file, UINT64_MAX,
							 "the rows of the store are of different moments");
	return status;
}

static QcStatus
lmdb_read(QsStore *base, QsVisitor visit, void *context, QcError *err)
{
	const QsLmdb *store = (const QsLmdb *) base;
	MDB_txn    *txn;
	QcStatus	status;
	int			rc = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &txn);

	if (rc != 0)
		return lmdb_error(store->file, rc, "could not read the store", err);
	status = read_rows(store, txn, visit, context, err);
	mdb_txn_abort(txn);
	return status;
}

/* Number of free pages inside the used part of the map; 0 when it cannot be learnt. */
static uint64_t
count_free_pages(const QsLmdb *store)
{
	MDB_txn    *txn;
	MDB_cursor *cursor;
	MDB_val		key;
	MDB_val		data;
	uint64_t	count = 0;

	if (mdb_txn_begin(store->env, NULL, MDB_RDONLY, &txn) != 0)
		return 0;
	if (mdb_cursor_open(txn, FREE_DBI, &cursor) == 0)
	{
		/* a value is a list of page numbers, its length first, all of size_t */
		while (mdb_cursor_get(cursor, &key, &data, MDB_NEXT) == 0)
		{
			size_t		pages;

			memcpy(&pages, data.mv_data, sizeof(pages));
			count += pages;
		}
		mdb_cursor_close(cursor);
	}
	mdb_txn_abort(txn);
	return count;
}

static void
lmdb_size(QsStore *base, uint64_t *used, uint64_t *limit)
{
	const QsLmdb *store = (const QsLmdb *) base;
	MDB_envinfo info;
	MDB_stat	stat;

	(void) mdb_env_info(store->env, &info);
	(void) mdb_env_stat(store->env, &stat);
	*used = (info.me_last_pgno + 1 - count_free_pages(store)) * stat.ms_psize;
	*limit = store->map_max;
}

static const QsBackend lmdb_backend = {
	.close = lmdb_close,
	.apply = lmdb_apply,
	.read = lmdb_read,
	.size = lmdb_size,
};

/* Make names durable. */
static int
sync_directory(const char *directory)
{
	int			fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int			error = 0;

	if (fd < 0)
		return errno;
	if (fsync(fd) != 0)
		error = errno;
	close(fd);
	return error;
}

/*
 * Make an empty data.mdb under another name, sync it and rename it, so that one with the right
 * name is always whole.
 */
static int
create_data(const char *directory, const char *path)
{
	char		temporary[PATH_MAX];
	MDB_env    *env;
	int			rc;

	if (snprintf(temporary, sizeof(temporary), "%s.tmp", path) >= (int) sizeof(temporary))
		return ENAMETOOLONG;
	if (unlink(temporary) != 0 && errno != ENOENT)
		return errno;
	rc = mdb_env_create(&env);
	if (rc != 0)
		return rc;
	rc = mdb_env_open(env, temporary, MDB_NOSUBDIR | MDB_NOLOCK, FILE_MODE);
	if (rc == 0)
		rc = mdb_env_sync(env, 1);
	mdb_env_close(env);
	if (rc == 0 && rename(temporary, path) != 0)
		rc = errno;
	return rc != 0 ? rc : sync_directory(directory);
}

/* See that data.mdb is there, made when that is wished, and fit to be handed to LMDB. */
static QcStatus
prepare_data(const char *directory, const char *file, bool create, QcError *err)
{
	char		path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/data.mdb", directory) >= (int) sizeof(path))
		return qc_error_sys(err, ENAMETOOLONG, file, "could not open the store");
	if (lstat(path, &st) == 0)
	{
		if (!S_ISREG(st.st_mode))
			return qc_error_at(err, QC_INVALID, file, UINT64_MAX, "the store is no regular file");
		return qs_lmdb_check(path, file, err);
	}
	if (errno != ENOENT)
		return qc_error_sys(err, errno, file, "could not open the store");
	if (create)
	{
		int			rc = create_data(directory, path);

		return rc == 0 ? QC_OK : lmdb_error(file, rc, "could not create the store", err);
	}
	return qc_error_at(err, QC_MISSING, file, UINT64_MAX, "the store is missing");
}

/* Open the environment and its one table.  Returns LMDB's code. */
static int
open_environment(QsLmdb *store, const char *directory, bool read_only)
{
	MDB_envinfo info;
	MDB_txn    *txn;
	int			rc = mdb_env_create(&store->env);

	if (rc != 0)
		return rc;
	/* LMDB takes more by itself when the file is larger */
	rc = mdb_env_set_mapsize(store->env,
							 (size_t) (store->map_max < MAP_START ? store->map_max : MAP_START));
	if (rc == 0)
		rc = mdb_env_open(store->env, directory, read_only ? MDB_RDONLY | MDB_NOLOCK : 0,
						  FILE_MODE);
	if (rc == 0)
		rc = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &txn);
	if (rc == 0)
	{
		rc = mdb_dbi_open(txn, NULL, 0, &store->dbi);
		mdb_txn_abort(txn);
	}
	if (rc == 0)
	{
		(void) mdb_env_info(store->env, &info);
		store->map = info.me_mapsize;
	}
	else
		mdb_env_close(store->env);
	return rc;
}

QcStatus
qs_open(const char *directory, uint64_t map_max, bool create, bool read_only, QsStore **store,
		QcError *err)
{
	const char *slash = strrchr(directory, '/');
	QsLmdb	   *self;
	QcStatus	status;
	int			rc;

	assert(!(create && read_only));
	self = calloc(1, sizeof(QsLmdb));
	if (self == NULL)
		return qc_error_sys(err, ENOMEM, "", "could not open the store");
	self->base.backend = &lmdb_backend;
	self->map_max = map_max;
	(void) snprintf(self->file, sizeof(self->file), "%.40s/data.mdb",
					slash == NULL ? directory : slash + 1);

	status = prepare_data(directory, self->file, create, err);
	if (status == QC_OK)
	{
		rc = open_environment(self, directory, read_only);
		if (rc != 0)
			status = lmdb_error(self->file, rc, "could not open the store", err);
	}
	if (status != QC_OK)
		free(self);
	else
		*store = &self->base;
	return status;
}
