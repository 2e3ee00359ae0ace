/*
 * qc_record.h
 *		Records: what a log file is made of after its 32-byte header.
 *
 *	  0  u32	len: bytes after this field (45 .. 256 MiB)
 *	  4  u64	checksum: XXH3_64bits (seed 0) of bytes 12 .. end
 *	 12  u64	seq of the log entry that wrote the record
 *	 20  u64	partition id; in kinds 2 and 3: copies, the number of logs with a part
 *	 28  u64	first position; in kinds 2 and 3: epoch
 *	 36  u32	count of messages; 0 in kinds 2, 3 and 4
 *	 40  u64	created at, microseconds since the Unix epoch
 *	 48  u8		kind; 0x80 = payload is zstd-compressed (message records only)
 *	 49			count x 16 bytes of hashes; solo: then u64 durable_seq; then the payload
 *
 * A zero len where a record would start is the end of the written part.
 * A record is built before its seq and positions are known; qc_record_seal
 * fills these in and computes the checksum.
 */
#ifndef QC_RECORD_H
#define QC_RECORD_H

#include "qc_bytes.h"
#include "qc_error.h"
#include "qc_frame.h"

#define QC_RECORD_HEADER_SIZE	49
#define QC_RECORD_LEN_MIN		45
#define QC_RECORD_LEN_MAX		(256u * 1024 * 1024)
#define QC_RECORD_COMPRESSED	0x80
#define QC_STUB_PAYLOAD_SIZE	12
#define QC_COMPRESS_MIN			512 /* smaller payloads are stored as they are */

typedef enum QcKind
{
	QC_KIND_MESSAGES = 0,
	QC_KIND_ENTRY = 2,
	QC_KIND_STUB = 3,
	QC_KIND_PAD = 4,
	QC_KIND_SOLO = 5
} QcKind;

typedef struct QcRecord
{
	uint32_t	len;			/* as on disk; whole size is len + 4 */
	uint64_t	seq;
	uint64_t	partition;		/* kinds 0 and 5 */
	uint64_t	first;			/* kinds 0 and 5 */
	uint32_t	copies;			/* kinds 2 and 3 */
	uint64_t	epoch;			/* kinds 2 and 3 */
	uint32_t	count;
	int64_t		created_at;		/* microseconds since the Unix epoch */
	QcKind		kind;
	bool		compressed;
	uint64_t	durable_seq;	/* kind 5 only */
	const uint8_t *hashes;		/* count x 16 bytes, in place */
	const uint8_t *payload;		/* as stored, in place */
	uint32_t	payload_len;
} QcRecord;

/* Whole size on disk (len field included) of a record with this many messages and payload bytes. */
static inline uint64_t
qc_record_size(QcKind kind, uint32_t count, uint64_t payload_len)
{
	return QC_RECORD_HEADER_SIZE + (uint64_t) count * QC_HASH_SIZE +
		(kind == QC_KIND_SOLO ? 8 : 0) + payload_len;
}

/* When the record whose header stands at buf was made. Nothing is checked. */
static inline int64_t
qc_record_created_at(const uint8_t buf[QC_RECORD_HEADER_SIZE])
{
	return (int64_t) qc_load_u64(buf + 40);
}

/* Does this header say that its record holds this position of the partition?	Nothing is checked. */
static inline bool
qc_record_is_of(const uint8_t buf[QC_RECORD_HEADER_SIZE], uint64_t partition, uint64_t position)
{
	uint8_t		kind = buf[48] & (uint8_t) ~QC_RECORD_COMPRESSED;
	uint64_t	first = qc_load_u64(buf + 28);

	return (kind == QC_KIND_MESSAGES || kind == QC_KIND_SOLO) &&
		qc_load_u64(buf + 20) == partition && position >= first &&
		position - first < qc_load_u32(buf + 36);
}

/*
 * Read the len of the record that would start at buf: QC_OK with *size the whole
 * size, QC_END for a zero len, QC_SHORT with fewer than 4 bytes, QC_DAMAGED for an
 * impossible len.
 */
extern QcStatus qc_record_peek(const uint8_t *buf, size_t avail, uint64_t *size, QcError *err);

/*
 * Check and decode the record at buf.  QC_SHORT when avail is less than the record,
 * QC_DAMAGED for a wrong checksum, unknown kind, or counts that do not fit.
 */
extern QcStatus qc_record_decode(const uint8_t *buf, size_t avail, QcRecord *record, QcError *err);

/*
 * Build a message record (kind 0, or 5 when solo) from count frames that are already
 * encoded in raw[0..raw_len), with their hashes.  Compresses with zstd at `level`
 * (0 = never) when raw_len >= QC_COMPRESS_MIN and a tenth is saved.  out must have
 * qc_record_size(kind, count, raw_len) bytes; *size is the size used.  created_at, seq,
 * first and durable_seq are left zero for qc_record_seal_message.
 */
extern QcStatus qc_record_build_message(uint8_t *out, size_t cap, bool solo, uint64_t partition,
										uint32_t count, const uint8_t *hashes,
										const uint8_t *raw, size_t raw_len, int level,
										size_t *size, QcError *err);

/* Fill in what only the reservation knows, and the checksum.  durable_seq is used by kind 5. */
extern void qc_record_seal_message(uint8_t *record, uint64_t seq, uint64_t first,
								   int64_t created_at, uint64_t durable_seq);

/*
 * Write header and checksum of an entry record (kind 2) whose payload already stands at
 * record + QC_RECORD_HEADER_SIZE.
 */
extern void qc_record_seal_entry(uint8_t *record, size_t payload_len, uint64_t seq,
								 uint32_t copies, uint64_t epoch, int64_t created_at);

/* Write a whole stub record (kind 3) for the entry payload given. */
extern void qc_record_put_stub(uint8_t *record, const uint8_t *entry_payload, uint32_t payload_len,
							   uint64_t seq, uint32_t copies, uint64_t epoch, int64_t created_at);

#define QC_STUB_SIZE (QC_RECORD_HEADER_SIZE + QC_STUB_PAYLOAD_SIZE)

/* Does this stub (kind 3, decoded) belong to this entry payload? */
extern bool qc_record_stub_matches(const QcRecord *stub, const uint8_t *entry_payload,
								   uint32_t payload_len);

/* Pad record (kind 4) of exactly size bytes (>= QC_RECORD_HEADER_SIZE). */
extern void qc_record_put_pad(uint8_t *record, uint64_t size, uint64_t seq, int64_t created_at);

/* Raw payload size of a message record: from the zstd frame, or payload_len. Checked against 256 MiB. */
extern QcStatus qc_record_raw_size(const QcRecord *record, size_t *raw_size, QcError *err);

/* Decompress (or copy) the payload into out, which has raw_size bytes. */
extern QcStatus qc_record_unpack(const QcRecord *record, uint8_t *out, size_t raw_size, QcError *err);

/* As many frames stand in the unpacked payload as the record counts, each with the hash that it states; QC_DAMAGED. */
extern QcStatus qc_record_check_frames(const QcRecord *record, QcReader frames, QcError *err);

/* XXH3_64bits with seed 0: the only digest of files other than dedup hashes. */
extern uint64_t qc_digest(const void *bytes, size_t len);

#endif							/* QC_RECORD_H */
