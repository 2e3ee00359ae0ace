/*
 * qc_record.c
 *		Records of a log file: reading, building and sealing them.
 *
 * Works on memory only and never allocates.  Invariant: what qc_record_decode accepted is
 * consistent in itself (checksum, known kind, counts that fit), so that its users need no
 * further bounds checks on hashes and payload.  Compression of payloads is in qc_compress.c.
 * Called by the append path, by readers, by recovery and by tools.
 */
#include "qc_record.h"

#include "qc_compress.h"

#include <assert.h>
#include <xxhash.h>

/* Byte offsets of the header fields. */
#define AT_CHECKSUM		4
#define AT_SEQ			12
#define AT_PARTITION	20
#define AT_FIRST		28
#define AT_COUNT		36
#define AT_CREATED		40
#define AT_KIND			48

uint64_t
qc_digest(const void *bytes, size_t len)
{
	return XXH3_64bits(bytes, len);
}

QcStatus
qc_record_peek(const uint8_t *buf, size_t avail, uint64_t *size, QcError *err)
{
	uint32_t	len;

	if (avail < 4)
		return qc_error_set(err, QC_SHORT, "record length is cut off");
	len = qc_load_u32(buf);
	if (len == 0)
		return QC_END;
	if (len < QC_RECORD_LEN_MIN || len > QC_RECORD_LEN_MAX)
		return qc_error_set(err, QC_DAMAGED, "record has an impossible length of %u bytes", len);
	*size = (uint64_t) len + 4;
	return QC_OK;
}

static bool
is_message_kind(QcKind kind)
{
	return kind == QC_KIND_MESSAGES || kind == QC_KIND_SOLO;
}

/* Fields of a message record, its hashes and payload; r stands behind the header. */
static QcStatus
decode_messages(QcReader *r, QcRecord *record, QcError *err)
{
	if (record->count == 0)
		return qc_error_set(err, QC_DAMAGED, "message record holds no message");
	if (record->first > UINT64_MAX - record->count)
		return qc_error_set(err, QC_DAMAGED, "message record exceeds the range of positions");
	if (record->count > qc_reader_left(r) / QC_HASH_SIZE)
		return qc_error_set(err, QC_DAMAGED, "hashes of %u messages exceed the record",
							record->count);
	record->hashes = qc_get_bytes(r, (size_t) record->count * QC_HASH_SIZE);
	if (record->kind == QC_KIND_SOLO)
		record->durable_seq = qc_get_u64(r);
	if (r->bad)
		return qc_error_set(err, QC_DAMAGED, "record is too short for its kind");
	return QC_OK;
}

/* Fields of an entry or stub record, which stand where a message record has its position. */
static QcStatus
decode_entry(QcReader *r, QcRecord *record, QcError *err)
{
	if (record->partition == 0 || record->partition > UINT32_MAX)
		return qc_error_set(err, QC_DAMAGED, "entry record has an impossible number of copies");
	record->copies = (uint32_t) record->partition;
	record->epoch = record->first;
	record->partition = 0;
	record->first = 0;
	if (record->kind == QC_KIND_STUB && qc_reader_left(r) != QC_STUB_PAYLOAD_SIZE)
		return qc_error_set(err, QC_DAMAGED, "entry stub has a payload of the wrong size");
	return QC_OK;
}

/* Everything behind the checksum. */
static QcStatus
decode_body(QcReader *r, QcRecord *record, QcError *err)
{
	QcStatus	status = QC_OK;
	uint8_t		kind;

	record->seq = qc_get_u64(r);
	record->partition = qc_get_u64(r);
	record->first = qc_get_u64(r);
	record->count = qc_get_u32(r);
	record->created_at = (int64_t) qc_get_u64(r);
	kind = qc_get_u8(r);
	record->compressed = (kind & QC_RECORD_COMPRESSED) != 0;
	kind &= (uint8_t) ~QC_RECORD_COMPRESSED;
	record->kind = (QcKind) kind;
	switch (record->kind)
	{
		case QC_KIND_MESSAGES:
		case QC_KIND_SOLO:
			status = decode_messages(r, record, err);
			break;
		case QC_KIND_ENTRY:
		case QC_KIND_STUB:
			status = decode_entry(r, record, err);
			break;
		case QC_KIND_PAD:
			break;
		default:
			return qc_error_set(err, QC_DAMAGED, "record has the unknown kind %u", kind);
	}
	if (status != QC_OK)
		return status;
	if (!is_message_kind(record->kind) && (record->compressed || record->count != 0))
		return qc_error_set(err, QC_DAMAGED, "record of kind %u has messages or compression", kind);
	record->payload_len = (uint32_t) qc_reader_left(r);
	record->payload = qc_get_bytes(r, record->payload_len);
	return QC_OK;
}

QcStatus
qc_record_decode(const uint8_t *buf, size_t avail, QcRecord *record, QcError *err)
{
	QcReader	r;
	uint64_t	size;
	QcStatus	status = qc_record_peek(buf, avail, &size, err);

	if (status != QC_OK)
		return status;
	if (size > avail)
		return qc_error_set(err, QC_SHORT, "record is cut off");
	if (qc_digest(buf + AT_SEQ, (size_t) size - AT_SEQ) != qc_load_u64(buf + AT_CHECKSUM))
		return qc_error_set(err, QC_DAMAGED, "record has a wrong checksum");
	memset(record, 0, sizeof(*record));
	record->len = (uint32_t) (size - 4);
	qc_reader_init(&r, buf + AT_SEQ, (size_t) size - AT_SEQ);
	return decode_body(&r, record, err);
}

/* Write len and checksum of a record whose other bytes are complete. */
static void
seal(uint8_t *record, uint64_t size)
{
	assert(size >= QC_RECORD_HEADER_SIZE && size - 4 <= QC_RECORD_LEN_MAX);
	qc_store_u32(record, (uint32_t) (size - 4));
	qc_store_u64(record + AT_CHECKSUM, qc_digest(record + AT_SEQ, (size_t) size - AT_SEQ));
}

QcStatus
qc_record_build_message(uint8_t *out, size_t cap, bool solo, uint64_t partition, uint32_t count,
						const uint8_t *hashes, const uint8_t *raw, size_t raw_len, int level,
						size_t *size, QcError *err)
{
	QcKind		kind = solo ? QC_KIND_SOLO : QC_KIND_MESSAGES;
	uint64_t	whole = qc_record_size(kind, count, raw_len);
	size_t		prefix = (size_t) qc_record_size(kind, count, 0);
	size_t		packed = 0;
	QcStatus	status;

	assert(count > 0);
	/* an unpacked payload must pass the reader's limit too, whatever zstd makes of it */
	if (raw_len > QC_RECORD_LEN_MAX || whole - 4 > QC_RECORD_LEN_MAX)
		return qc_error_set(err, QC_LIMIT, "record would exceed %u bytes", QC_RECORD_LEN_MAX);
	if (whole > cap)
		return qc_error_set(err, QC_FULL, "record does not fit into its buffer");

	memset(out, 0, QC_RECORD_HEADER_SIZE);
	memcpy(out + QC_RECORD_HEADER_SIZE, hashes, (size_t) count * QC_HASH_SIZE);
	if (solo)
		qc_store_u64(out + prefix - 8, 0);
	if (level != 0 && raw_len >= QC_COMPRESS_MIN)
	{
		status = qc_compress(out + prefix, raw, raw_len, level, &packed, err);
		if (status != QC_OK)
			return status;
	}
	if (packed == 0)
		memcpy(out + prefix, raw, raw_len);

	*size = prefix + (packed > 0 ? packed : raw_len);
	qc_store_u32(out, (uint32_t) (*size - 4));
	qc_store_u64(out + AT_PARTITION, partition);
	qc_store_u32(out + AT_COUNT, count);
	out[AT_KIND] = (uint8_t) ((unsigned) kind | (packed > 0 ? QC_RECORD_COMPRESSED : 0u));
	return QC_OK;
}

void
qc_record_seal_message(uint8_t *record, uint64_t seq, uint64_t first, int64_t created_at,
					   uint64_t durable_seq)
{
	uint64_t	size = (uint64_t) qc_load_u32(record) + 4;
	uint64_t	count = qc_load_u32(record + AT_COUNT);
	QcKind		kind = (QcKind) (record[AT_KIND] & ~QC_RECORD_COMPRESSED);

	assert(is_message_kind(kind));
	qc_store_u64(record + AT_SEQ, seq);
	qc_store_u64(record + AT_FIRST, first);
	qc_store_u64(record + AT_CREATED, (uint64_t) created_at);
	if (kind == QC_KIND_SOLO)
		qc_store_u64(record + QC_RECORD_HEADER_SIZE + count * QC_HASH_SIZE, durable_seq);
	seal(record, size);
}

/* The header fields of a record that holds no message; the payload stands behind it already. */
static void
put_plain_header(uint8_t *record, QcKind kind, uint64_t seq, uint64_t copies, uint64_t epoch,
				 int64_t created_at)
{
	qc_store_u64(record + AT_SEQ, seq);
	qc_store_u64(record + AT_PARTITION, copies);
	qc_store_u64(record + AT_FIRST, epoch);
	qc_store_u32(record + AT_COUNT, 0);
	qc_store_u64(record + AT_CREATED, (uint64_t) created_at);
	record[AT_KIND] = (uint8_t) kind;
}

void
qc_record_seal_entry(uint8_t *record, size_t payload_len, uint64_t seq, uint32_t copies,
					 uint64_t epoch, int64_t created_at)
{
	assert(copies > 0);
	put_plain_header(record, QC_KIND_ENTRY, seq, copies, epoch, created_at);
	seal(record, QC_RECORD_HEADER_SIZE + (uint64_t) payload_len);
}

void
qc_record_put_stub(uint8_t *record, const uint8_t *entry_payload, uint32_t payload_len,
				   uint64_t seq, uint32_t copies, uint64_t epoch, int64_t created_at)
{
	uint8_t    *payload = record + QC_RECORD_HEADER_SIZE;

	assert(copies > 0);
	put_plain_header(record, QC_KIND_STUB, seq, copies, epoch, created_at);
	qc_store_u64(payload, qc_digest(entry_payload, payload_len));
	qc_store_u32(payload + 8, payload_len);
	seal(record, QC_STUB_SIZE);
}

bool
qc_record_stub_matches(const QcRecord *stub, const uint8_t *entry_payload, uint32_t payload_len)
{
	assert(stub->kind == QC_KIND_STUB && stub->payload_len == QC_STUB_PAYLOAD_SIZE);
	return qc_load_u32(stub->payload + 8) == payload_len &&
		qc_load_u64(stub->payload) == qc_digest(entry_payload, payload_len);
}

void
qc_record_put_pad(uint8_t *record, uint64_t size, uint64_t seq, int64_t created_at)
{
	assert(size >= QC_RECORD_HEADER_SIZE);
	memset(record, 0, (size_t) size);
	put_plain_header(record, QC_KIND_PAD, seq, 0, 0, created_at);
	seal(record, size);
}

QcStatus
qc_record_raw_size(const QcRecord *record, size_t *raw_size, QcError *err)
{
	assert(is_message_kind(record->kind));
	if (record->compressed)
		return qc_compressed_raw_size(record->payload, record->payload_len, QC_RECORD_LEN_MAX,
									  raw_size, err);
	*raw_size = record->payload_len;
	return QC_OK;
}

QcStatus
qc_record_unpack(const QcRecord *record, uint8_t *out, size_t raw_size, QcError *err)
{
	assert(is_message_kind(record->kind));
	if (record->compressed)
		return qc_decompress(out, raw_size, record->payload, record->payload_len, err);
	if (raw_size != record->payload_len)
		return qc_error_set(err, QC_INVALID, "buffer does not have the size of the payload");
	if (raw_size > 0)
		memcpy(out, record->payload, raw_size);
	return QC_OK;
}

QcStatus
qc_record_check_frames(const QcRecord *record, QcReader frames, QcError *err)
{
	QcMessage	message;
	uint8_t		hash[QC_HASH_SIZE];
	uint32_t	seen = 0;
	QcStatus	status;

	while ((status = qc_frame_get(&frames, &message, err)) == QC_OK)
	{
		if (seen == record->count)
			return qc_error_set(err, QC_DAMAGED, "record holds more messages than it counts");
		qc_frame_hash(&message, hash);
		if (memcmp(hash, record->hashes + (size_t) seen * QC_HASH_SIZE, QC_HASH_SIZE) != 0)
			return qc_error_set(err, QC_DAMAGED, "message %u of the record has another hash", seen);
		seen++;
	}
	if (status == QC_END && seen != record->count)
		return qc_error_set(err, QC_DAMAGED, "record holds %u messages and counts %u", seen,
							record->count);
	return status == QC_END ? QC_OK : status;
}
