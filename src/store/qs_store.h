/*
 * qs_store.h
 *		The state checkpoint: rows in LMDB, written by one process only.
 *
 * A row is key -> value; every value is stored with a checksum over key and value.  The mark
 * (applied seq, per log file and position) consists of rows like any other and is therefore
 * always in the same LMDB transaction as the state it belongs to.
 *
 * A batch is a plain buffer of operations, so that it can be filled under a lock without
 * allocation and be applied again when the map has to grow in the middle:
 *	 u8 op (QS_OP_PUT, QS_OP_DELETE), u16 key length, u32 value length, key, value
 *
 * Called by the checkpointer worker, qlog_dump, and unit tests.  Never open an environment before
 * a fork, never from two places of one process.
 */
#ifndef QS_STORE_H
#define QS_STORE_H

#include "../core/qc_bytes.h"
#include "../core/qc_error.h"

#define QS_OP_PUT		1
#define QS_OP_DELETE	2
#define QS_KEY_MAX		400

typedef struct QsStore QsStore;

/*
 * Open (create when create is set and it is absent) the environment in directory, an absolute
 * path that exists.  The map starts small and grows up to map_max bytes.  read_only: for tools;
 * does not write to the directory, takes no lock, and must not meet a running writer: LMDB may
 * write over pages that an unregistered reader stands on.  QC_MISSING when absent and not create.
 */
extern QcStatus qs_open(const char *directory, uint64_t map_max, bool create, bool read_only,
						QsStore **store, QcError *err);
extern void qs_close(QsStore *store);

/*
 * Append an operation to a batch; value_len 0 is allowed.  An operation that does not fit leaves
 * only `full` set: what stands in the batch stays valid and can be applied.
 */
extern void qs_batch_put(QcWriter *batch, const void *key, uint16_t key_len, const void *value,
						 uint32_t value_len);
extern void qs_batch_delete(QcWriter *batch, const void *key, uint16_t key_len);

/* Bytes that an operation takes in a batch. */
#define QS_OP_SIZE(key_len, value_len) (7 + (uint64_t) (key_len) + (uint64_t) (value_len))

/* One operation of a batch; bytes are in place. */
typedef struct QsOp
{
	uint8_t		op;				/* QS_OP_PUT or QS_OP_DELETE */
	uint16_t	key_len;
	uint32_t	value_len;		/* 0 for QS_OP_DELETE */
	const uint8_t *key;
	const uint8_t *value;
} QsOp;

/*
 * Decode the next operation; QC_END after the last.  QC_INVALID for an unknown operation, a key of
 * 0 or more than QS_KEY_MAX bytes or that begins with a zero, a deletion with a value, or bytes that are cut short.
 */
extern QcStatus qs_batch_get(QcReader *batch, QsOp *op, QcError *err);

/*
 * Apply the batch in one synced transaction: all or nothing.  Deleting an absent key is fine.
 * QC_FULL when the map is at map_max (nothing changed), QC_NOSPACE when the disk is full.
 */
extern QcStatus qs_apply(QsStore *store, const void *batch, size_t len, QcError *err);

/* Called for each row in key order; a status other than QC_OK stops and is returned. */
typedef QcStatus (*QsVisitor) (void *context, const uint8_t *key, size_t key_len,
							   const uint8_t *value, size_t value_len, QcError *err);

/*
 * Read every row in one read transaction. QC_DAMAGED when a checksum is wrong, or (after the last row was shown) when the
 * rows are not all those of one moment.
 */
extern QcStatus qs_read(QsStore *store, QsVisitor visit, void *context, QcError *err);

/* Bytes of the map in use, and its limit. */
extern void qs_size(QsStore *store, uint64_t *used, uint64_t *limit);

#endif							/* QS_STORE_H */
