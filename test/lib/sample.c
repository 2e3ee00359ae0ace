/*
 * sample.c
 *		Fixed examples of everything that qlog writes, effects excepted (sample_effect.c).
 *
 * Compressed payloads are no examples: their bytes depend on the version of zstd.
 */
#include "sample.h"

#include "qc_hashes.h"
#include "qc_snapshot.h"

#include <assert.h>
#include <stdlib.h>

#define CREATED_AT INT64_C(0x00065e9353b9e775)

const uint8_t sample_golden[SAMPLE_GOLDEN_SIZE] = {
	0x51, 0x4e, 0x51, 0x4c, 0x4f, 0x47, 0x31, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x0b, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x6e, 0x00, 0x00, 0x00, 0xda, 0x25, 0xb6, 0xdc, 0x1e, 0xd0, 0x87, 0x8c, 0x0b, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x75, 0xe7, 0xb9, 0x53, 0x93, 0x5e, 0x06, 0x00,
	0x00, 0xb9, 0x7e, 0xb7, 0x7d, 0xcc, 0x2d, 0xb6, 0xdc, 0xbc, 0xff, 0x49, 0x43, 0x54, 0x80, 0xb3,
	0xc8, 0x2d, 0x00, 0x00, 0x00, 0x00, 0x01, 0xa1, 0x6d, 0x65, 0x4e, 0x4f, 0x70, 0x01, 0xbf, 0x27,
	0xb5, 0x6a, 0x93, 0x34, 0xd4, 0x45, 0x0a, 0x00, 0x6f, 0x72, 0x64, 0x65, 0x72, 0x2d, 0x38, 0x38,
	0x39, 0x31, 0x7b, 0x22, 0x6f, 0x72, 0x64, 0x65, 0x72, 0x49, 0x64, 0x22, 0x3a, 0x38, 0x38, 0x39,
	0x31, 0x7d
};

static size_t
make_golden(uint8_t out[SAMPLE_MAX])
{
	memcpy(out, sample_golden, SAMPLE_GOLDEN_SIZE);
	return SAMPLE_GOLDEN_SIZE;
}

/* Borrow the bytes of a string literal. */
static const uint8_t *
text(const char *literal)
{
	return (const uint8_t *) literal;
}

QcMessage
sample_golden_message(void)
{
	QcMessage	message = {.id = {0x01, 0xa1, 0x6d, 0x65, 0x4e, 0x4f, 0x70, 0x01,
		0xbf, 0x27, 0xb5, 0x6a, 0x93, 0x34, 0xd4, 0x45}};

	message.dedup_id = text("order-8891");

	message.dedup_len = 10;
	message.data = text("{\"orderId\":8891}");

	message.data_len = 16;
	return message;
}

QcMessage
sample_full_message(void)
{
	QcMessage	message = sample_golden_message();

	message.flags = QC_FRAME_TRACE | QC_FRAME_PRODUCER | QC_FRAME_HEADERS | QC_FRAME_BINARY |
		QC_FRAME_DEAD;
	message.trace = text("0123456789abcdef");
	message.producer = text("clerk");

	message.producer_len = 5;
	message.headers = text("{\"a\":1}");

	message.headers_len = 7;
	message.partition = text("eu");

	message.partition_len = 2;
	message.reason = text("no such order");

	message.reason_len = 13;
	message.data = text("\x00\xff\x01");

	message.data_len = 3;
	return message;
}

/* One frame. */
static size_t
make_frame(uint8_t out[SAMPLE_MAX])
{
	QcMessage	message = sample_full_message();
	QcWriter	w;

	qc_writer_init(&w, out, SAMPLE_MAX);
	qc_frame_put(&w, &message);
	assert(!w.full);
	return w.len;
}

size_t
sample_record(uint8_t *out, size_t cap, bool solo, const QcMessage *message, uint32_t count,
			  int level)
{
	static uint8_t raw[1 << 20];
	static uint8_t hashes[1024 * QC_HASH_SIZE];
	QcWriter	w;
	QcError		err;
	size_t		size = 0;
	QcStatus	status;

	assert(count <= 1024);
	qc_writer_init(&w, raw, sizeof(raw));
	for (uint32_t i = 0; i < count; i++)
	{
		qc_frame_put(&w, message);
		qc_frame_hash(message, hashes + (size_t) i * QC_HASH_SIZE);
	}
	assert(!w.full);
	status = qc_record_build_message(out, cap, solo, 1, count, hashes, raw, w.len, level, &size,
									 &err);
	assert(status == QC_OK);
	(void) status;
	qc_record_seal_message(out, 11, 0, CREATED_AT, 9);
	return size;
}

size_t
sample_solo_record(uint8_t out[SAMPLE_MAX])
{
	QcMessage	message = sample_golden_message();

	return sample_record(out, SAMPLE_MAX, true, &message, 1, 0);
}

/* Two messages that have every field. */
static size_t
make_messages(uint8_t out[SAMPLE_MAX])
{
	QcMessage	message = sample_full_message();

	return sample_record(out, SAMPLE_MAX, false, &message, 2, 0);
}

size_t
sample_entry(uint8_t out[SAMPLE_MAX])
{
	static const uint64_t logs[3] = {1, 7, 300};
	QcAppend	append = {.partition = 1, .log = 1, .first = 0, .count = 1, .records = 1};
	QcPopCommit commit = {.lease = UINT64_C(0x1122334455667788)};
	QcWriter	w;

	qc_writer_init(&w, out, SAMPLE_MAX);
	qc_entry_put_head(&w, QC_ENTRY_CARRIED, 9, UINT64_C(0x100000002), logs, 3, 2);
	qc_effect_put(&w, QC_EFFECT_APPEND, &append, 0);
	qc_effect_put(&w, QC_EFFECT_POP_COMMIT, &commit, 0);
	assert(!w.full);
	return w.len;
}

size_t
sample_entry_record(uint8_t out[SAMPLE_MAX])
{
	uint8_t		payload[SAMPLE_MAX];
	size_t		len = sample_entry(payload);

	assert(len + QC_RECORD_HEADER_SIZE <= SAMPLE_MAX);
	memcpy(out + QC_RECORD_HEADER_SIZE, payload, len);
	qc_record_seal_entry(out, len, 11, 3, 2, CREATED_AT);
	return len + QC_RECORD_HEADER_SIZE;
}

size_t
sample_stub_record(uint8_t out[SAMPLE_MAX])
{
	uint8_t		payload[SAMPLE_MAX];
	size_t		len = sample_entry(payload);

	qc_record_put_stub(out, payload, (uint32_t) len, 11, 3, 2, CREATED_AT);
	return QC_STUB_SIZE;
}

size_t
sample_pad_record(uint8_t out[SAMPLE_MAX])
{
	qc_record_put_pad(out, 64, 11, CREATED_AT);
	return 64;
}

/* A file created ahead. */
static size_t
make_file_header(uint8_t out[SAMPLE_MAX])
{
	QcFileHeader header = {.file_id = 0x12345678, .first_seq = QC_FIRST_SEQ_AHEAD};

	qc_file_header_encode(out, &header);
	return QC_FILE_HEADER_SIZE;
}

size_t
sample_index(uint8_t out[SAMPLE_MAX])
{
	QcIdxEntry	entries[3] = {
		{.partition = 2, .first = 0, .end = 1, .created_at = CREATED_AT, .position = 146, .count = 1, .len = 110},
		{.partition = 1, .first = 1, .end = 3, .created_at = CREATED_AT + 1, .position = 260, .count = 2, .len = 200},
		{.partition = 1, .first = 0, .end = 1, .created_at = CREATED_AT, .position = 32, .count = 1, .len = 110}
	};

	qc_idx_encode(out, 1, 464, entries, 3);
	return QC_IDX_HEADER_SIZE + 3 * QC_IDX_ENTRY_SIZE;
}

/* Of files 1 to 4, each with a message of partitions 101 and 104, the third one with one of 102, too. */
size_t
sample_directory(uint8_t out[SAMPLE_MAX])
{
	static const uint64_t cells[9][2] = {{101, 1}, {101, 2}, {101, 3}, {101, 4}, {102, 3}, {104, 1}, {104, 2}, {104, 3}, {104, 4}};
	const QcDerived kind = {"QQDIR1\0", 32, "directory"};
	uint8_t    *at = out + QC_DERIVED_HEAD_SIZE;

	memset(at, 0, 32);
	qc_store_u64(at, 4);
	qc_store_u64(at + 8, 228);
	for (int i = 0; i < 9; i++)
	{
		uint64_t	first = cells[i][0] == 102 ? 0 : cells[i][1] - 1;

		at += 32;
		qc_store_u64(at, cells[i][0]);
		qc_store_u64(at + 8, first);
		qc_store_u64(at + 16, first + 1);
		qc_store_u64(at + 24, cells[i][1]);
	}
	qc_derived_seal(out, &kind, 1, 4, 10);
	return QC_DERIVED_HEAD_SIZE + 10 * 32;
}

/* Of a log file with two records: the golden one, and one with a message that has no id beside one that has. */
size_t
sample_hashes(uint8_t out[SAMPLE_MAX])
{
	QcMessage	pair[2] = {sample_golden_message(), sample_golden_message()};
	QcHashesBuild build = {0};
	uint8_t		bytes[SAMPLE_MAX];
	uint8_t		raw[SAMPLE_MAX];
	uint8_t		hashes[2 * QC_HASH_SIZE];
	size_t		size;
	const uint8_t *sealed;
	QcRecord	record;
	QcWriter	w;

	pair[0].dedup_len = 0;
	qc_writer_init(&w, raw, sizeof(raw));
	for (int i = 0; i < 2; i++)
	{
		qc_frame_put(&w, &pair[i]);
		qc_frame_hash(&pair[i], hashes + i * QC_HASH_SIZE);
	}
	if (qc_record_decode(sample_golden + QC_FILE_HEADER_SIZE, SAMPLE_GOLDEN_SIZE - QC_FILE_HEADER_SIZE, &record, NULL) != QC_OK ||
		qc_hashes_add(&build, QC_FILE_HEADER_SIZE, sample_golden + QC_FILE_HEADER_SIZE, &record, NULL) != QC_OK ||
		qc_record_build_message(bytes, sizeof(bytes), false, 2, 2, hashes, raw, w.len, 0, &size, NULL) != QC_OK)
		abort();
	qc_record_seal_message(bytes, 12, 0, CREATED_AT + 1, 0);
	if (qc_record_decode(bytes, size, &record, NULL) != QC_OK ||
		qc_hashes_add(&build, SAMPLE_GOLDEN_SIZE, bytes, &record, NULL) != QC_OK ||
		qc_hashes_seal(&build, 1, SAMPLE_GOLDEN_SIZE + size, &sealed, &size, NULL) != QC_OK)
		abort();
	memcpy(out, sealed, size);
	qc_hashes_free(&build);
	return size;
}

size_t
sample_wal_carried(uint8_t out[SAMPLE_MAX])
{
	QcWalEntry	entry = {.flags = QC_ENTRY_CARRIED, .directory = UINT64_C(0xd1d2d3d4d5d6d7d8),
		.epoch = 2, .seq = 11, .xid = UINT64_C(0x100000002), .nparts = 2};
	uint8_t		record[SAMPLE_MAX];
	uint32_t	record_size = SAMPLE_GOLDEN_SIZE - QC_FILE_HEADER_SIZE;
	QcWriter	w;

	qc_writer_init(&w, out, SAMPLE_MAX);
	qc_wal_entry_put(&w, &entry);
	qc_wal_part_put_head(&w, 1, record_size);
	qc_put_bytes(&w, sample_golden + QC_FILE_HEADER_SIZE, record_size);
	record_size = (uint32_t) sample_entry_record(record);
	qc_wal_part_put_head(&w, 1, record_size);
	qc_put_bytes(&w, record, record_size);
	assert(!w.full);
	return w.len;
}

size_t
sample_wal_referenced(uint8_t out[SAMPLE_MAX])
{
	QcWalEntry	entry = {.flags = QC_ENTRY_REFERENCED, .directory = UINT64_C(0xd1d2d3d4d5d6d7d8),
		.epoch = 2, .seq = 11, .xid = UINT64_C(0x100000002)};
	uint8_t		payload[SAMPLE_MAX];
	QcWriter	w;

	entry.entry_len = (uint32_t) sample_entry(payload);
	entry.digest = qc_digest(payload, entry.entry_len);
	qc_writer_init(&w, out, SAMPLE_MAX);
	qc_wal_entry_put(&w, &entry);
	assert(!w.full);
	return w.len;
}

static size_t
put_mark(uint8_t *out, QcWalKind kind)
{
	QcWalMark	mark = {.directory = UINT64_C(0xd1d2d3d4d5d6d7d8), .epoch = 3, .old_epoch = 2, .seq = 12};
	QcWriter	w;

	qc_writer_init(&w, out, QC_WALREC_MARK_MAX);
	qc_wal_mark_put(&w, kind, &mark);
	assert(!w.full);
	return w.len;
}

size_t
sample_wal_barrier(uint8_t out[SAMPLE_MAX])
{
	return put_mark(out, QC_WAL_BARRIER);
}

size_t
sample_wal_epoch(uint8_t out[SAMPLE_MAX])
{
	return put_mark(out, QC_WAL_EPOCH);
}

/* Append one stash record to a stash file of size bytes; returns the new size. */
static size_t
add_stash_record(uint8_t *out, size_t size, QcWalKind kind, const uint8_t *body, size_t len)
{
	QcStashRecord record = {.kind = kind, .timeline = 1, .end_lsn = UINT64_C(0x16b374d8),
		.body = body, .body_len = (uint32_t) len};

	assert(size + QC_STASH_HEAD_SIZE + len <= SAMPLE_MAX);
	qc_stash_put_head(out + size, &record);
	memcpy(out + size + QC_STASH_HEAD_SIZE, body, len);
	return size + QC_STASH_HEAD_SIZE + len;
}

size_t
sample_stash(uint8_t out[SAMPLE_MAX])
{
	uint8_t		body[SAMPLE_MAX];
	size_t		size = QC_STASH_MAGIC_SIZE;

	memcpy(out, QC_STASH_MAGIC, QC_STASH_MAGIC_SIZE);
	size = add_stash_record(out, size, QC_WAL_ENTRY, body, sample_wal_referenced(body));
	return add_stash_record(out, size, QC_WAL_BARRIER, body, sample_wal_barrier(body));
}

static size_t
add_snapshot_row(uint8_t *out, size_t size, uint64_t *checksums, const void *key, size_t key_len,
				 const void *value, size_t value_len)
{
	QcWriter	w;
	uint8_t		both[16];
	uint64_t	checksum;

	qc_store_u64(both, qc_digest(key, key_len));
	qc_store_u64(both + 8, qc_digest(value, value_len));
	checksum = qc_digest(both, sizeof(both));
	*checksums += checksum;
	qc_writer_init(&w, out + size, SAMPLE_MAX - size);
	qc_put_u16(&w, (uint16_t) key_len);
	qc_put_u32(&w, (uint32_t) value_len);
	qc_put_bytes(&w, key, key_len);
	qc_put_bytes(&w, value, value_len);
	qc_put_u64(&w, checksum);
	assert(!w.full);
	return size + w.len;
}

size_t
sample_snapshot(uint8_t out[SAMPLE_MAX])
{
	QcSnapshotHead head = {.directory_id = UINT64_C(0xd1d2d3d4d5d6d7d8), .seq = 11,
		.created_at = CREATED_AT, .rows = 2};
	size_t		size = QC_SNAPSHOT_HEAD_SIZE;

	size = add_snapshot_row(out, size, &head.checksums, "A", 1, "mark", 4);
	size = add_snapshot_row(out, size, &head.checksums, "B\0\0\0\0\0\0\0\0", 9, "", 0);
	head.length = size;
	qc_snapshot_head_encode(out, &head);
	return size;
}

const Sample samples[] = {
	{"file golden", make_golden},
	{"file header", make_file_header},
	{"frame", make_frame},
	{"record messages", make_messages},
	{"record entry", sample_entry_record},
	{"record stub", sample_stub_record},
	{"record pad", sample_pad_record},
	{"record solo", sample_solo_record},
	{"index", sample_index},
	{"dedup ids", sample_hashes},
	{"directory", sample_directory},
	{"wal carried", sample_wal_carried},
	{"wal referenced", sample_wal_referenced},
	{"wal barrier", sample_wal_barrier},
	{"wal epoch", sample_wal_epoch},
	{"stash", sample_stash},
	{"snapshot", sample_snapshot},
	{NULL, NULL}
};
