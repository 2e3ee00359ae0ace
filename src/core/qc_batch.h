/*
 * qc_batch.h
 *		A batch of checkpoint row operations in a plain buffer.
 *
 * Filled under the state lock without allocation (qc_rows.h), applied to the checkpoint store in one
 * transaction (src/store/qs_store.h):
 *	 u8 op (QC_BATCH_PUT, QC_BATCH_DELETE), u16 key length, u32 value length, key, value
 */
#ifndef QC_BATCH_H
#define QC_BATCH_H

#include "qc_bytes.h"

#define QC_BATCH_PUT		1
#define QC_BATCH_DELETE		2
#define QC_BATCH_OP_SIZE	7	/* before key and value */

static inline void
qc_batch_put(QcWriter *batch, const void *key, uint16_t key_len, const void *value,
			 uint32_t value_len)
{
	qc_put_u8(batch, QC_BATCH_PUT);
	qc_put_u16(batch, key_len);
	qc_put_u32(batch, value_len);
	qc_put_bytes(batch, key, key_len);
	qc_put_bytes(batch, value, value_len);
}

static inline void
qc_batch_delete(QcWriter *batch, const void *key, uint16_t key_len)
{
	qc_put_u8(batch, QC_BATCH_DELETE);
	qc_put_u16(batch, key_len);
	qc_put_u32(batch, 0);
	qc_put_bytes(batch, key, key_len);
}

#endif							/* QC_BATCH_H */
