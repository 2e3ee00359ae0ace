/*
 * test_record.c
 *		Records: the golden vector, every kind, truncation, bit flips, compression.
 */
#include "qc_record.h"
#include "sample.h"
#include "sim_random.h"
#include "unit.h"

#include <stdlib.h>

#define GOLDEN (sample_golden + QC_FILE_HEADER_SIZE)
#define GOLDEN_SIZE (SAMPLE_GOLDEN_SIZE - QC_FILE_HEADER_SIZE)

/* Decode a copy of exactly len bytes, so that a read past the end is seen by the sanitizer. */
static QcStatus
decode_exact(const uint8_t *bytes, size_t len)
{
	uint8_t    *copy = malloc(len > 0 ? len : 1);
	QcRecord	record;
	QcStatus	status;

	memcpy(copy, bytes, len);
	status = qc_record_decode(copy, len, &record, NULL);
	free(copy);
	return status;
}

/* Make the checksum right again after a change. */
static void
reseal(uint8_t *record, size_t size)
{
	qc_store_u64(record + 4, qc_digest(record + 12, size - 12));
}

static void
test_golden_encode(void)
{
	QcMessage	message = sample_golden_message();
	uint8_t		buf[SAMPLE_MAX];
	size_t		size = sample_record(buf, sizeof(buf), false, &message, 1, 0);

	CHECK_BYTES(buf, size, GOLDEN, GOLDEN_SIZE);
}

static void
test_golden_decode(void)
{
	QcRecord	record;
	QcError		err;

	CHECK_U64(qc_record_decode(GOLDEN, GOLDEN_SIZE, &record, &err), QC_OK);
	CHECK_U64(record.len, 110);
	CHECK_U64(record.seq, 11);
	CHECK_U64(record.partition, 1);
	CHECK_U64(record.first, 0);
	CHECK_U64(record.count, 1);
	CHECK_U64(record.created_at, UINT64_C(0x00065e9353b9e775));
	CHECK_U64(record.kind, QC_KIND_MESSAGES);
	CHECK(!record.compressed);
	CHECK(record.hashes == GOLDEN + 49);
	CHECK(record.payload == GOLDEN + 65);
	CHECK_U64(record.payload_len, 49);
}

static void
test_solo(void)
{
	uint8_t		buf[SAMPLE_MAX];
	size_t		size = sample_solo_record(buf);
	QcRecord	record;
	QcError		err;

	CHECK_U64(size, GOLDEN_SIZE + 8);
	CHECK_U64(qc_record_decode(buf, size, &record, &err), QC_OK);
	CHECK_U64(record.kind, QC_KIND_SOLO);
	CHECK_U64(record.seq, 11);
	CHECK_U64(record.durable_seq, 9);
	CHECK_BYTES(record.payload, record.payload_len, GOLDEN + 65, 49);
}

static void
test_entry_and_stub(void)
{
	uint8_t		entry_bytes[SAMPLE_MAX];
	uint8_t		stub_bytes[SAMPLE_MAX];
	size_t		entry_size = sample_entry_record(entry_bytes);
	size_t		stub_size = sample_stub_record(stub_bytes);
	QcRecord	entry;
	QcRecord	stub;
	QcError		err;

	CHECK_U64(qc_record_decode(entry_bytes, entry_size, &entry, &err), QC_OK);
	CHECK_U64(entry.kind, QC_KIND_ENTRY);
	CHECK_U64(entry.copies, 3);
	CHECK_U64(entry.epoch, 2);
	CHECK_U64(entry.count, 0);
	CHECK_U64(qc_record_decode(stub_bytes, stub_size, &stub, &err), QC_OK);
	CHECK_U64(stub.kind, QC_KIND_STUB);
	CHECK_U64(stub.copies, 3);
	CHECK_U64(stub.epoch, 2);
	CHECK(qc_record_stub_matches(&stub, entry.payload, entry.payload_len));
	CHECK(!qc_record_stub_matches(&stub, entry.payload, entry.payload_len - 1));
	entry_bytes[QC_RECORD_HEADER_SIZE + 9] ^= 1;
	CHECK(!qc_record_stub_matches(&stub, entry.payload, entry.payload_len));
}

static void
test_pad(void)
{
	uint8_t		buf[200];
	QcRecord	record;
	QcError		err;

	for (size_t size = QC_RECORD_HEADER_SIZE; size < sizeof(buf); size += 75)
	{
		qc_record_put_pad(buf, size, 5, 6);
		CHECK_U64(qc_record_decode(buf, size, &record, &err), QC_OK);
		CHECK_U64(record.kind, QC_KIND_PAD);
		CHECK_U64(record.seq, 5);
		CHECK_U64(record.created_at, 6);
		CHECK_U64((uint64_t) record.len + 4, size);
	}
}

static void
test_peek(void)
{
	uint8_t		buf[4];
	uint64_t	size = 0;
	QcError		err;

	qc_store_u32(buf, 0);
	CHECK_U64(qc_record_peek(buf, 4, &size, &err), QC_END);
	CHECK_U64(qc_record_peek(buf, 3, &size, &err), QC_SHORT);
	CHECK_U64(qc_record_peek(buf, 0, &size, &err), QC_SHORT);
	qc_store_u32(buf, QC_RECORD_LEN_MIN - 1);
	CHECK_U64(qc_record_peek(buf, 4, &size, &err), QC_DAMAGED);
	qc_store_u32(buf, QC_RECORD_LEN_MIN);
	CHECK_U64(qc_record_peek(buf, 4, &size, &err), QC_OK);
	CHECK_U64(size, QC_RECORD_HEADER_SIZE);
	qc_store_u32(buf, QC_RECORD_LEN_MAX);
	CHECK_U64(qc_record_peek(buf, 4, &size, &err), QC_OK);
	CHECK_U64(size, (uint64_t) QC_RECORD_LEN_MAX + 4);
	qc_store_u32(buf, QC_RECORD_LEN_MAX + 1);
	CHECK_U64(qc_record_peek(buf, 4, &size, &err), QC_DAMAGED);
}

/* Every sample that is one record. */
static const char *const record_samples[] = {
	"record messages", "record entry", "record stub", "record pad", "record solo", NULL
};

static void
for_each_record(void (*test) (const uint8_t *bytes, size_t size))
{
	uint8_t		buf[SAMPLE_MAX];
	int			seen = 0;

	for (const Sample *s = samples; s->name != NULL; s++)
	{
		for (int i = 0; record_samples[i] != NULL; i++)
		{
			if (strcmp(s->name, record_samples[i]) != 0)
				continue;
			test(buf, s->make(buf));
			seen++;
		}
	}
	CHECK_U64(seen, 5);
}

static void
check_truncations(const uint8_t *bytes, size_t size)
{
	CHECK_U64(decode_exact(bytes, size), QC_OK);
	for (size_t cut = 0; cut < size; cut++)
		CHECK_U64(decode_exact(bytes, cut), QC_SHORT);
}

static void
check_flips(const uint8_t *bytes, size_t size)
{
	uint8_t		copy[SAMPLE_MAX];

	memcpy(copy, bytes, size);
	for (size_t bit = 0; bit < size * 8; bit++)
	{
		copy[bit / 8] ^= (uint8_t) (1u << (bit % 8));
		CHECK(decode_exact(copy, size) != QC_OK);
		copy[bit / 8] ^= (uint8_t) (1u << (bit % 8));
	}
}

static void
test_every_truncation_is_short(void)
{
	for_each_record(check_truncations);
}

static void
test_every_flipped_bit_is_detected(void)
{
	for_each_record(check_flips);
}

static void
test_trailing_bytes_are_ignored(void)
{
	uint8_t		buf[GOLDEN_SIZE + 8];
	QcRecord	record;
	QcError		err;

	memcpy(buf, GOLDEN, GOLDEN_SIZE);
	memset(buf + GOLDEN_SIZE, 0xff, 8);
	CHECK_U64(qc_record_decode(buf, sizeof(buf), &record, &err), QC_OK);
	CHECK_U64(record.payload_len, 49);
}

static void
test_unknown_kinds(void)
{
	uint8_t		buf[GOLDEN_SIZE];
	QcError		err;
	QcRecord	record;

	for (unsigned kind = 0; kind < 0x80; kind++)
	{
		bool		known = kind == 0 || kind == 5;

		/* as kinds 2, 3 and 4 it has a count it must not have */
		memcpy(buf, GOLDEN, GOLDEN_SIZE);
		buf[48] = (uint8_t) kind;
		reseal(buf, GOLDEN_SIZE);
		CHECK_U64(qc_record_decode(buf, GOLDEN_SIZE, &record, &err), known ? QC_OK : QC_DAMAGED);
	}
}

static void
test_compression_of_entries_is_refused(void)
{
	uint8_t		buf[SAMPLE_MAX];
	size_t		size = sample_entry_record(buf);
	QcRecord	record;
	QcError		err;

	buf[48] |= QC_RECORD_COMPRESSED;
	reseal(buf, size);
	CHECK_U64(qc_record_decode(buf, size, &record, &err), QC_DAMAGED);
	CHECK_STR(err.text, "record of kind 2 has messages or compression");
}

/* A golden record with one field changed and a right checksum. */
static QcStatus
decode_changed(uint8_t kind, uint32_t count, uint64_t partition, uint64_t first, size_t size)
{
	uint8_t		buf[GOLDEN_SIZE];
	QcRecord	record;

	memcpy(buf, GOLDEN, GOLDEN_SIZE);
	qc_store_u32(buf, (uint32_t) (size - 4));
	qc_store_u64(buf + 20, partition);
	qc_store_u64(buf + 28, first);
	qc_store_u32(buf + 36, count);
	buf[48] = kind;
	reseal(buf, size);
	return qc_record_decode(buf, size, &record, NULL);
}

static void
test_impossible_fields(void)
{
	size_t		all = GOLDEN_SIZE;

	CHECK_U64(decode_changed(QC_KIND_MESSAGES, 1, 1, 0, all), QC_OK);
	CHECK_U64(decode_changed(QC_KIND_MESSAGES, 0, 1, 0, all), QC_DAMAGED);
	CHECK_U64(decode_changed(QC_KIND_MESSAGES, 5, 1, 0, all), QC_DAMAGED);
	CHECK_U64(decode_changed(QC_KIND_MESSAGES, UINT32_MAX, 1, 0, all), QC_DAMAGED);
	CHECK_U64(decode_changed(QC_KIND_MESSAGES, 1, 1, UINT64_MAX, all), QC_DAMAGED);
	CHECK_U64(decode_changed(QC_KIND_MESSAGES, 1, 1, UINT64_MAX - 1, all), QC_OK);
	CHECK_U64(decode_changed(QC_KIND_SOLO, 4, 1, 0, all), QC_DAMAGED);
	CHECK_U64(decode_changed(QC_KIND_ENTRY, 0, 1, 0, all), QC_OK);
	CHECK_U64(decode_changed(QC_KIND_ENTRY, 0, 0, 0, all), QC_DAMAGED);
	CHECK_U64(decode_changed(QC_KIND_ENTRY, 0, UINT64_C(1) << 32, 0, all), QC_DAMAGED);
	CHECK_U64(decode_changed(QC_KIND_STUB, 0, 1, 0, all), QC_DAMAGED);
	CHECK_U64(decode_changed(QC_KIND_STUB, 0, 1, 0, QC_STUB_SIZE), QC_OK);
}

/* A message whose payload compresses well, or not at all. */
static QcMessage
bulky_message(uint8_t *data, uint32_t len, bool random)
{
	QcMessage	message = {.data = data, .data_len = len};
	uint64_t	state = 1;

	for (uint32_t i = 0; i < len; i++)
		data[i] = random ? (uint8_t) sim_random(&state) : (uint8_t) ('a' + i % 7);
	return message;
}

static void
check_unpacked(const QcRecord *record, const QcMessage *message, uint32_t count)
{
	size_t		raw_size = 0;
	uint8_t    *raw;
	QcReader	r;
	QcMessage	decoded;
	QcError		err;

	CHECK_U64(qc_record_raw_size(record, &raw_size, &err), QC_OK);
	CHECK_U64(raw_size, count * qc_frame_size(message));
	raw = malloc(raw_size);
	CHECK_U64(qc_record_unpack(record, raw, raw_size, &err), QC_OK);
	qc_reader_init(&r, raw, raw_size);
	for (uint32_t i = 0; i < count; i++)
	{
		CHECK_U64(qc_frame_get(&r, &decoded, &err), QC_OK);
		CHECK_BYTES(decoded.data, decoded.data_len, message->data, message->data_len);
	}
	CHECK_U64(qc_frame_get(&r, &decoded, &err), QC_END);
	free(raw);
}

static void
check_packing(uint32_t data_len, bool random, bool solo, int level, bool compressed)
{
	/* a second copy of random bytes would compress */
	uint32_t	count = random ? 1 : 2;
	static uint8_t data[100000];
	static uint8_t out[300000];
	QcMessage	message = bulky_message(data, data_len, random);
	size_t		size = sample_record(out, sizeof(out), solo, &message, count, level);
	QcRecord	record;
	QcError		err;

	CHECK_U64(qc_record_decode(out, size, &record, &err), QC_OK);
	CHECK_U64(record.compressed, compressed);
	CHECK_U64(record.count, count);
	CHECK_U64(record.durable_seq, solo ? 9 : 0);
	check_unpacked(&record, &message, count);
	if (compressed)
		CHECK(record.payload_len * 10 <= count * qc_frame_size(&message) * 9);
}

static void
test_compression(void)
{
	check_packing(1000, false, false, 1, true);
	check_packing(1000, false, true, 1, true);
	check_packing(100000, false, false, 3, true);
	check_packing(1000, false, false, 0, false);
	check_packing(1000, true, false, 1, false);
	check_packing(100000, true, true, 1, false);
	/* two frames of 255 bytes stay below the limit, two of 256 reach it */
	check_packing(255 - 23, false, false, 1, false);
	check_packing(256 - 23, false, false, 1, true);
}

/* One message of which only a part at the end compresses. */
static bool
is_compressed(uint32_t random_len, uint32_t zero_len)
{
	static uint8_t data[20000];
	static uint8_t out[30000];
	QcMessage	message = bulky_message(data, random_len, true);
	QcRecord	record;

	memset(data + random_len, 0, zero_len);
	message.data_len = random_len + zero_len;
	CHECK_U64(qc_record_decode(out, sample_record(out, sizeof(out), false, &message, 1, 1), &record,
							   NULL), QC_OK);
	return record.compressed;
}

static void
test_compression_that_saves_too_little(void)
{
	CHECK(!is_compressed(9300, 700));
	CHECK(is_compressed(8700, 1300));
}

static void
test_damaged_compression(void)
{
	static uint8_t data[5000];
	static uint8_t out[20000];
	QcMessage	message = bulky_message(data, sizeof(data), false);
	size_t		size = sample_record(out, sizeof(out), false, &message, 2, 1);
	uint8_t    *raw = malloc(20000);
	size_t		raw_size;
	QcRecord	record;
	QcError		err;

	CHECK_U64(qc_record_decode(out, size, &record, &err), QC_OK);
	CHECK_U64(qc_record_raw_size(&record, &raw_size, &err), QC_OK);
	CHECK_U64(qc_record_unpack(&record, raw, raw_size - 1, &err), QC_DAMAGED);
	CHECK_U64(qc_record_unpack(&record, raw, raw_size + 1, &err), QC_DAMAGED);
	record.payload_len--;
	CHECK_U64(qc_record_unpack(&record, raw, raw_size, &err), QC_DAMAGED);
	record.payload_len = 3;
	CHECK_U64(qc_record_raw_size(&record, &raw_size, &err), QC_DAMAGED);
	free(raw);
}

static void
test_stated_size_beyond_the_limit(void)
{
	/* a zstd frame header with an 8-byte content size of 2^40 */
	static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0};
	QcRecord	record = {.kind = QC_KIND_MESSAGES, .compressed = true,
		.payload = frame, .payload_len = sizeof(frame)};
	size_t		raw_size = 0;
	QcError		err;

	CHECK_U64(qc_record_raw_size(&record, &raw_size, &err), QC_DAMAGED);
	CHECK_STR(err.text, "compressed payload states a size of 1099511627776 bytes");
}

static void
test_build_limits(void)
{
	static const uint8_t hash[QC_HASH_SIZE];
	uint8_t		raw[100] = {0};
	uint8_t		out[QC_RECORD_HEADER_SIZE + QC_HASH_SIZE + 100];
	size_t		size = 0;
	QcError		err;

	CHECK_U64(qc_record_build_message(out, sizeof(out), false, 1, 1, hash, raw, 100, 1, &size, &err),
			  QC_OK);
	CHECK_U64(size, sizeof(out));
	CHECK_U64(qc_record_build_message(out, sizeof(out) - 1, false, 1, 1, hash, raw, 100, 1, &size,
									  &err), QC_FULL);
	CHECK_U64(qc_record_build_message(out, SIZE_MAX, false, 1, 1, hash, raw, QC_RECORD_LEN_MAX, 1,
									  &size, &err), QC_LIMIT);
}

static void
test_random_records_come_back(void)
{
	static uint8_t data[4000];
	static uint8_t out[20000];
	uint64_t	state = 42;

	for (int i = 0; i < 500; i++)
	{
		QcMessage	message = bulky_message(data, (uint32_t) sim_random_below(&state, 4000),
											sim_random_bool(&state));
		uint32_t	count = (uint32_t) sim_random_below(&state, 4) + 1;
		bool		solo = sim_random_bool(&state);
		size_t		size = sample_record(out, sizeof(out), solo, &message, count,
										 (int) sim_random_below(&state, 3));
		QcRecord	record;
		QcError		err;

		CHECK_U64(qc_record_decode(out, size, &record, &err), QC_OK);
		CHECK_U64(record.count, count);
		CHECK_U64(record.kind, solo ? QC_KIND_SOLO : QC_KIND_MESSAGES);
		check_unpacked(&record, &message, count);
	}
}

int
main(void)
{
	UNIT_RUN(test_golden_encode);
	UNIT_RUN(test_golden_decode);
	UNIT_RUN(test_solo);
	UNIT_RUN(test_entry_and_stub);
	UNIT_RUN(test_pad);
	UNIT_RUN(test_peek);
	UNIT_RUN(test_every_truncation_is_short);
	UNIT_RUN(test_every_flipped_bit_is_detected);
	UNIT_RUN(test_trailing_bytes_are_ignored);
	UNIT_RUN(test_unknown_kinds);
	UNIT_RUN(test_compression_of_entries_is_refused);
	UNIT_RUN(test_impossible_fields);
	UNIT_RUN(test_compression);
	UNIT_RUN(test_compression_that_saves_too_little);
	UNIT_RUN(test_damaged_compression);
	UNIT_RUN(test_stated_size_beyond_the_limit);
	UNIT_RUN(test_build_limits);
	UNIT_RUN(test_random_records_come_back);
	return unit_end();
}
