/*
 * sim_store.c
 *		The checkpoint store in the memory of the simulated disk.
 *
 * The rows are one value of the disk: a batch of QS_OP_PUT operations in ascending order of keys,
 * replaced as a whole.  A store keeps nothing in memory but where to find it.
 */
#include "sim_store.h"

#include "../../src/store/qs_backend.h"
#include "sim_content.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct SimStore
{
	QsStore		base;
	SimDisk    *disk;
	uint64_t	map_max;
	bool		read_only;
	char		name[64];
} SimStore;

static void
store_close(QsStore *base)
{
	free(base);
}

static int
compare_ops(const QsOp *a, const QsOp *b)
{
	size_t		shorter = a->key_len < b->key_len ? a->key_len : b->key_len;
	int			order = memcmp(a->key, b->key, shorter);

	return order != 0 ? order : (a->key_len > b->key_len) - (a->key_len < b->key_len);
}

/* For qsort: by key, and operations on one key in the order of the batch, where they lie. */
static int
compare_in_batch(const void *a, const void *b)
{
	const QsOp *left = a;
	const QsOp *right = b;
	int			order = compare_ops(left, right);

	return order != 0 ? order : (left->key > right->key) - (left->key < right->key);
}

/* The operations of a batch, sorted, of each key only the last; *count is their number. */
static QsOp *
sort_batch(const void *batch, size_t len, size_t *count)
{
	QsOp	   *ops = sim_alloc((len / QS_OP_SIZE(1, 0) + 1) * sizeof(QsOp));
	QcReader	reader;
	size_t		n = 0;
	size_t		kept = 0;

	qc_reader_init(&reader, batch, len);
	while (qs_batch_get(&reader, &ops[n], NULL) == QC_OK)
		n++;
	qsort(ops, n, sizeof(QsOp), compare_in_batch);
	for (size_t i = 0; i < n; i++)
		if (i + 1 == n || compare_ops(&ops[i], &ops[i + 1]) != 0)
			ops[kept++] = ops[i];
	*count = kept;
	return ops;
}

/* Merge the rows there are with the operations, both sorted, into out. */
static void
merge_rows(QcReader *rows, const QsOp *ops, size_t nops, QcWriter *out)
{
	QsOp		row;
	bool		more = qs_batch_get(rows, &row, NULL) == QC_OK;
	size_t		next = 0;

	while (more || next < nops)
	{
		int			order = !more ? 1 : next == nops ? -1 : compare_ops(&row, &ops[next]);
		const QsOp *from = order < 0 ? &row : &ops[next];

		if (from->op == QS_OP_PUT)
			qs_batch_put(out, from->key, from->key_len, from->value, from->value_len);
		if (order >= 0)
			next++;
		if (order <= 0)
			more = qs_batch_get(rows, &row, NULL) == QC_OK;
	}
	assert(!out->full);
}

/* Replace the rows by what is in out. */
static QcStatus
swap_rows(const SimStore *store, const QcWriter *out, QcError *err)
{
	int			error = sim_disk_swap(store->disk, store->name, out->buf, out->len);

	return error == 0 ? QC_OK : qc_error_sys(err, error, store->name, "could not write a checkpoint");
}

static QcStatus
store_apply(QsStore *base, const void *batch, size_t len, QcError *err)
{
	const SimStore *store = (const SimStore *) base;
	size_t		rows_len;
	const uint8_t *rows = sim_disk_swapped(store->disk, store->name, &rows_len);
	uint8_t    *merged = sim_alloc(rows_len + len + 1);
	QcReader	reader;
	QcWriter	out;
	size_t		nops;
	QsOp	   *ops = sort_batch(batch, len, &nops);
	QcStatus	status;

	assert(!store->read_only);
	qc_reader_init(&reader, rows, rows_len);
	qc_writer_init(&out, merged, rows_len + len);
	merge_rows(&reader, ops, nops, &out);
	if (out.len > store->map_max)
		status = qc_error_set(err, QC_FULL, "the store has reached its limit");
	else
		status = swap_rows(store, &out, err);
	free(ops);
	free(merged);
	return status;
}

static QcStatus
store_read(QsStore *base, QsVisitor visit, void *context, QcError *err)
{
	const SimStore *store = (const SimStore *) base;
	size_t		len;
	const uint8_t *rows = sim_disk_swapped(store->disk, store->name, &len);
	QcReader	reader;
	QsOp		row;
	QcStatus	status = QC_OK;

	if (sim_disk_crashed(store->disk))
		return qc_error_sys(err, SIM_CRASHED, store->name, "could not read the store");
	qc_reader_init(&reader, rows, len);
	while (status == QC_OK && qs_batch_get(&reader, &row, NULL) == QC_OK)
		status = visit(context, row.key, row.key_len, row.value, row.value_len, err);
	return status;
}

static void
store_size(QsStore *base, uint64_t *used, uint64_t *limit)
{
	const SimStore *store = (const SimStore *) base;
	size_t		len;

	(void) sim_disk_swapped(store->disk, store->name, &len);
	*used = len;
	*limit = store->map_max;
}

static const QsBackend sim_backend = {
	.close = store_close,
	.apply = store_apply,
	.read = store_read,
	.size = store_size,
};

QcStatus
sim_store_open(SimDisk *disk, const char *name, uint64_t map_max, bool create, bool read_only,
			   QsStore **store, QcError *err)
{
	size_t		len;
	SimStore   *self;
	int			error = 0;

	if (sim_disk_crashed(disk))
		return qc_error_sys(err, SIM_CRASHED, name, "could not open the store");
	if (sim_disk_swapped(disk, name, &len) == NULL)
	{
		if (!create)
			return qc_error_at(err, QC_MISSING, name, UINT64_MAX, "the store is missing");
		error = sim_disk_swap(disk, name, "", 0);
	}
	if (error != 0)
		return qc_error_sys(err, error, name, "could not create the store");
	self = sim_alloc(sizeof(SimStore));
	self->base.backend = &sim_backend;
	self->disk = disk;
	self->map_max = map_max;
	self->read_only = read_only;
	assert(strlen(name) < sizeof(self->name));
	memcpy(self->name, name, strlen(name) + 1);
	*store = &self->base;
	return QC_OK;
}
