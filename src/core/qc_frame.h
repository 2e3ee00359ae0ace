/*
 * qc_frame.h
 *		Message frames: the payload of a message record is a row of them.
 *
 *	 u32		frame length: bytes after this field, at least 19
 *	 u8			flags (QC_FRAME_*)
 *	 16			message id, UUIDv7
 *	 16			trace id, only with QC_FRAME_TRACE
 *	 u16 + n	dedup id; length 0 = none given
 *	 u16 + n	producer, only with QC_FRAME_PRODUCER
 *	 u32 + n	headers (JSON text), only with QC_FRAME_HEADERS
 *	 u16 + n	name of the partition that it comes from, only with QC_FRAME_DEAD
 *	 u16 + n	why it died, only with QC_FRAME_DEAD
 *	 rest		data: JSON text in UTF-8, or bytes with QC_FRAME_BINARY
 */
#ifndef QC_FRAME_H
#define QC_FRAME_H

#include "qc_bytes.h"
#include "qc_error.h"

#define QC_FRAME_TRACE		1
#define QC_FRAME_PRODUCER	2
#define QC_FRAME_ENCRYPTED	4
#define QC_FRAME_HEADERS	8
#define QC_FRAME_BINARY		16
#define QC_FRAME_DEAD		32	/* a dead letter */
#define QC_FRAME_FLAGS_ALL	63
#define QC_FRAME_LEN_MIN	19
#define QC_ID_SIZE			16
#define QC_HASH_SIZE		16

/* A message in memory; pointers are borrowed, into the caller's buffers or a decoded record. */
typedef struct QcMessage
{
	uint8_t		flags;
	uint8_t		id[QC_ID_SIZE];
	const uint8_t *trace;		/* 16 bytes with QC_FRAME_TRACE */
	const uint8_t *dedup_id;
	uint16_t	dedup_len;		/* 0 = none given */
	const uint8_t *producer;
	uint16_t	producer_len;
	const uint8_t *headers;
	uint32_t	headers_len;
	const uint8_t *partition;
	uint16_t	partition_len;
	const uint8_t *reason;
	uint16_t	reason_len;
	const uint8_t *data;
	uint32_t	data_len;
} QcMessage;

/* Whole size of the frame on disk, its own length field included; 0 when it exceeds 32 bits. */
extern uint64_t qc_frame_size(const QcMessage *message);

extern void qc_frame_put(QcWriter *w, const QcMessage *message);

/* Next frame of a decompressed payload.  QC_END after the last, QC_DAMAGED when it does not fit. */
extern QcStatus qc_frame_get(QcReader *r, QcMessage *message, QcError *err);

/* When a message id was made (UUIDv7), in microseconds since the Unix epoch, rounded down to milliseconds. */
extern int64_t qc_id_time(const uint8_t id[QC_ID_SIZE]);

/* 32 bits of the message id of an encoded frame, or of an id, to look it up by. */
extern uint32_t qc_frame_id_hash(const uint8_t *frame);
extern uint32_t qc_id_hash(const uint8_t id[QC_ID_SIZE]);

/* XXH3_128bits, canonical (big-endian), of the dedup id, or of the message id when none was given. */
extern void qc_frame_hash(const QcMessage *message, uint8_t hash[QC_HASH_SIZE]);

#endif							/* QC_FRAME_H */
