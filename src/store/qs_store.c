/*
 * qs_store.c
 *		What all stores share: the batch format, and the way to the implementation.
 *
 * Guards that only a whole, valid batch reaches an implementation, which therefore may assert.
 */
#include "qs_backend.h"

#include <assert.h>

void
qs_close(QsStore *store)
{
	store->backend->close(store);
}

/* Start an operation, or only set `full` when it does not fit as a whole. */
static bool
begin_op(QcWriter *batch, uint8_t op, uint16_t key_len, uint32_t value_len)
{
	assert(key_len > 0 && key_len <= QS_KEY_MAX);
	if (batch->full || QS_OP_SIZE(key_len, value_len) > batch->cap - batch->len)
	{
		batch->full = true;
		return false;
	}
	qc_put_u8(batch, op);
	qc_put_u16(batch, key_len);
	qc_put_u32(batch, value_len);
	return true;
}

void
qs_batch_put(QcWriter *batch, const void *key, uint16_t key_len, const void *value,
			 uint32_t value_len)
{
	if (!begin_op(batch, QS_OP_PUT, key_len, value_len))
		return;
	qc_put_bytes(batch, key, key_len);
	if (value_len > 0)
		qc_put_bytes(batch, value, value_len);
}

void
qs_batch_delete(QcWriter *batch, const void *key, uint16_t key_len)
{
	if (begin_op(batch, QS_OP_DELETE, key_len, 0))
		qc_put_bytes(batch, key, key_len);
}

QcStatus
qs_batch_get(QcReader *batch, QsOp *op, QcError *err)
{
	if (qc_reader_left(batch) == 0)
		return QC_END;
	op->op = qc_get_u8(batch);
	op->key_len = qc_get_u16(batch);
	op->value_len = qc_get_u32(batch);
	op->key = qc_get_bytes(batch, op->key_len);
	op->value = qc_get_bytes(batch, op->value_len);
	if (batch->bad)
		return qc_error_set(err, QC_INVALID, "a batch for the store is cut short");
	if (op->op != QS_OP_PUT && op->op != QS_OP_DELETE)
		return qc_error_set(err, QC_INVALID, "unknown operation %d in a batch for the store",
							op->op);
	if (op->key_len == 0 || op->key_len > QS_KEY_MAX || op->key[0] == 0 ||
		(op->op == QS_OP_DELETE && op->value_len > 0))
		return qc_error_set(err, QC_INVALID, "wrong key of %d bytes or value of %u in a batch for the store",
							op->key_len, op->value_len);
	return QC_OK;
}

/* Is every operation of the batch well formed? */
static QcStatus
check_batch(const void *batch, size_t len, QcError *err)
{
	QcReader	reader;
	QsOp		op;
	QcStatus	status;

	qc_reader_init(&reader, batch, len);
	do
		status = qs_batch_get(&reader, &op, err);
	while (status == QC_OK);
	return status == QC_END ? QC_OK : status;
}

QcStatus
qs_apply(QsStore *store, const void *batch, size_t len, QcError *err)
{
	QcStatus	status = check_batch(batch, len, err);

	if (status != QC_OK || len == 0)
		return status;
	return store->backend->apply(store, batch, len, err);
}

QcStatus
qs_read(QsStore *store, QsVisitor visit, void *context, QcError *err)
{
	return store->backend->read(store, visit, context, err);
}

void
qs_size(QsStore *store, uint64_t *used, uint64_t *limit)
{
	store->backend->size(store, used, limit);
}
