/*
 * qc_frame.c
 *		Message frames: encode, decode, and the hash of a message.
 *
 * Works on memory only.  What a frame contains is governed by its flags alone: a pointer of
 * QcMessage without its flag is ignored.  Called when a push is staged and when a record is read.
 */
#include "qc_frame.h"

#include <assert.h>
#include <xxhash.h>

uint64_t
qc_frame_size(const QcMessage *message)
{
	uint64_t	size = 4 + 1 + QC_ID_SIZE + 2 + (uint64_t) message->dedup_len;

	if (message->flags & QC_FRAME_TRACE)
		size += QC_ID_SIZE;
	if (message->flags & QC_FRAME_PRODUCER)
		size += 2 + (uint64_t) message->producer_len;
	if (message->flags & QC_FRAME_HEADERS)
		size += 4 + (uint64_t) message->headers_len;
	if (message->flags & QC_FRAME_DEAD)
		size += 4 + (uint64_t) message->partition_len + message->reason_len;
	size += message->data_len;
	return size - 4 > UINT32_MAX ? 0 : size;
}

void
qc_frame_put(QcWriter *w, const QcMessage *message)
{
	uint64_t	size = qc_frame_size(message);

	assert((message->flags & ~QC_FRAME_FLAGS_ALL) == 0);
	if (size == 0 || size > w->cap - w->len)
	{
		w->full = true;
		return;
	}
	qc_put_u32(w, (uint32_t) (size - 4));
	qc_put_u8(w, message->flags);
	qc_put_bytes(w, message->id, QC_ID_SIZE);
	if (message->flags & QC_FRAME_TRACE)
		qc_put_bytes(w, message->trace, QC_ID_SIZE);
	qc_put_str16(w, message->dedup_id, message->dedup_len);
	if (message->flags & QC_FRAME_PRODUCER)
		qc_put_str16(w, message->producer, message->producer_len);
	if (message->flags & QC_FRAME_HEADERS)
	{
		qc_put_u32(w, message->headers_len);
		qc_put_bytes(w, message->headers, message->headers_len);
	}
	if (message->flags & QC_FRAME_DEAD)
	{
		qc_put_str16(w, message->partition, message->partition_len);
		qc_put_str16(w, message->reason, message->reason_len);
	}
	qc_put_bytes(w, message->data, message->data_len);
}

/* Decode the body of one frame, which fills the reader exactly. */
static QcStatus
get_body(QcReader *r, QcMessage *message, QcError *err)
{
	const uint8_t *id;

	memset(message, 0, sizeof(*message));
	message->flags = qc_get_u8(r);
	if (message->flags & ~QC_FRAME_FLAGS_ALL)
		return qc_error_set(err, QC_DAMAGED, "message frame has unknown flags 0x%02x",
							message->flags);
	id = qc_get_bytes(r, QC_ID_SIZE);
	if (id != NULL)
		memcpy(message->id, id, QC_ID_SIZE);
	if (message->flags & QC_FRAME_TRACE)
		message->trace = qc_get_bytes(r, QC_ID_SIZE);
	message->dedup_id = qc_get_str16(r, &message->dedup_len);
	if (message->flags & QC_FRAME_PRODUCER)
		message->producer = qc_get_str16(r, &message->producer_len);
	if (message->flags & QC_FRAME_HEADERS)
	{
		message->headers_len = qc_get_u32(r);
		message->headers = qc_get_bytes(r, message->headers_len);
	}
	if (message->flags & QC_FRAME_DEAD)
	{
		message->partition = qc_get_str16(r, &message->partition_len);
		message->reason = qc_get_str16(r, &message->reason_len);
	}
	message->data_len = (uint32_t) qc_reader_left(r);
	message->data = qc_get_bytes(r, message->data_len);
	if (r->bad)
		return qc_error_set(err, QC_DAMAGED, "fields of a message frame exceed the frame");
	return QC_OK;
}

QcStatus
qc_frame_get(QcReader *r, QcMessage *message, QcError *err)
{
	QcReader	body;
	uint32_t	len;
	const uint8_t *bytes;

	if (r->bad)
		return qc_error_set(err, QC_DAMAGED, "message frame exceeds the payload");
	if (qc_reader_left(r) == 0)
		return QC_END;
	len = qc_get_u32(r);
	bytes = qc_get_bytes(r, len);
	if (r->bad)
		return qc_error_set(err, QC_DAMAGED, "message frame exceeds the payload");
	if (len < QC_FRAME_LEN_MIN)
		return qc_error_set(err, QC_DAMAGED, "message frame of %u bytes is too short", len);
	qc_reader_init(&body, bytes, len);
	return get_body(&body, message, err);
}

void
qc_frame_hash(const QcMessage *message, uint8_t hash[QC_HASH_SIZE])
{
	XXH128_canonical_t canonical;
	XXH128_hash_t value;

	if (message->dedup_len > 0)
		value = XXH3_128bits(message->dedup_id, message->dedup_len);
	else
		value = XXH3_128bits(message->id, QC_ID_SIZE);
	XXH128_canonicalFromHash(&canonical, value);
	memcpy(hash, canonical.digest, QC_HASH_SIZE);
}

uint32_t
qc_id_hash(const uint8_t id[QC_ID_SIZE])
{
	/* The end of a UUIDv7 is random. */
	return qc_load_u32(id + QC_ID_SIZE - 4);
}

uint32_t
qc_frame_id_hash(const uint8_t *frame)
{
	/* length, flags, message id */
	return qc_id_hash(frame + 5);
}

int64_t
qc_id_time(const uint8_t id[QC_ID_SIZE])
{
	int64_t		ms = 0;

	for (int i = 0; i < 6; i++)
		ms = ms << 8 | id[i];
	return ms * 1000;
}
