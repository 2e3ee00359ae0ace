/*
 * test_frame.c
 *		Message frames: every combination of fields, damage, hashes.
 */
#include "qc_frame.h"
#include "sample.h"
#include "unit.h"

#include <stdlib.h>

/* Encode one message; returns the size. */
static size_t
encode(const QcMessage *message, uint8_t *buf, size_t cap)
{
	QcWriter	w;

	qc_writer_init(&w, buf, cap);
	qc_frame_put(&w, message);
	CHECK(!w.full);
	CHECK_U64(w.len, qc_frame_size(message));
	return w.len;
}

static QcStatus
decode(const uint8_t *buf, size_t len, QcMessage *message)
{
	QcReader	r;
	QcError		err;

	qc_reader_init(&r, buf, len);
	return qc_frame_get(&r, message, &err);
}

static void
check_same(const QcMessage *a, const QcMessage *b)
{
	CHECK_U64(a->flags, b->flags);
	CHECK_BYTES(a->id, QC_ID_SIZE, b->id, QC_ID_SIZE);
	CHECK_BYTES(a->dedup_id, a->dedup_len, b->dedup_id, b->dedup_len);
	CHECK_BYTES(a->data, a->data_len, b->data, b->data_len);
	if (a->flags & QC_FRAME_TRACE)
		CHECK_BYTES(a->trace, QC_ID_SIZE, b->trace, QC_ID_SIZE);
	if (a->flags & QC_FRAME_PRODUCER)
		CHECK_BYTES(a->producer, a->producer_len, b->producer, b->producer_len);
	if (a->flags & QC_FRAME_HEADERS)
		CHECK_BYTES(a->headers, a->headers_len, b->headers, b->headers_len);
	if (a->flags & QC_FRAME_DEAD)
	{
		CHECK_BYTES(a->partition, a->partition_len, b->partition, b->partition_len);
		CHECK_BYTES(a->reason, a->reason_len, b->reason, b->reason_len);
	}
}

static void
test_golden_frame(void)
{
	QcMessage	message = sample_golden_message();
	QcMessage	decoded;
	uint8_t		buf[256];
	size_t		len = encode(&message, buf, sizeof(buf));
	const uint8_t *golden = sample_golden + 97;

	CHECK_BYTES(buf, len, golden, SAMPLE_GOLDEN_SIZE - 97);
	CHECK_U64(decode(golden, SAMPLE_GOLDEN_SIZE - 97, &decoded), QC_OK);
	check_same(&decoded, &message);
}

static void
test_golden_hash(void)
{
	QcMessage	message = sample_golden_message();
	uint8_t		hash[QC_HASH_SIZE];

	qc_frame_hash(&message, hash);
	CHECK_BYTES(hash, QC_HASH_SIZE, sample_golden + 81, QC_HASH_SIZE);
}

static void
test_id_stands_for_a_missing_dedup_id(void)
{
	QcMessage	made_up = sample_golden_message();
	QcMessage	given = sample_golden_message();
	uint8_t		a[QC_HASH_SIZE];
	uint8_t		b[QC_HASH_SIZE];

	made_up.dedup_len = 0;
	given.dedup_id = given.id;
	given.dedup_len = QC_ID_SIZE;
	qc_frame_hash(&made_up, a);
	qc_frame_hash(&given, b);
	CHECK_BYTES(a, QC_HASH_SIZE, b, QC_HASH_SIZE);
}

static void
test_every_combination_of_flags(void)
{
	for (unsigned flags = 0; flags <= QC_FRAME_FLAGS_ALL; flags++)
	{
		QcMessage	message = sample_full_message();
		QcMessage	decoded;
		uint8_t		buf[256];
		size_t		len;

		message.flags = (uint8_t) flags;
		len = encode(&message, buf, sizeof(buf));
		CHECK_U64(decode(buf, len, &decoded), QC_OK);
		check_same(&decoded, &message);
	}
}

static void
test_smallest_frame(void)
{
	QcMessage	message = {.flags = 0};
	QcMessage	decoded;
	uint8_t		buf[64];
	size_t		len = encode(&message, buf, sizeof(buf));

	CHECK_U64(len, 4 + QC_FRAME_LEN_MIN);
	CHECK_U64(decode(buf, len, &decoded), QC_OK);
	CHECK_U64(decoded.data_len, 0);
	CHECK_U64(decoded.dedup_len, 0);
}

static void
test_several_frames_in_a_row(void)
{
	QcMessage	full = sample_full_message();
	QcMessage	golden = sample_golden_message();
	QcMessage	decoded;
	QcError		err;
	uint8_t		buf[512];
	QcReader	r;
	size_t		len = encode(&full, buf, sizeof(buf));

	len += encode(&golden, buf + len, sizeof(buf) - len);
	qc_reader_init(&r, buf, len);
	CHECK_U64(qc_frame_get(&r, &decoded, &err), QC_OK);
	check_same(&decoded, &full);
	CHECK_U64(qc_frame_get(&r, &decoded, &err), QC_OK);
	check_same(&decoded, &golden);
	CHECK_U64(qc_frame_get(&r, &decoded, &err), QC_END);
}

static void
test_every_truncation_is_damage(void)
{
	QcMessage	message = sample_full_message();
	QcMessage	decoded;
	uint8_t		buf[256];
	size_t		len = encode(&message, buf, sizeof(buf));

	CHECK_U64(decode(buf, 0, &decoded), QC_END);
	for (size_t cut = 1; cut < len; cut++)
	{
		/* an exact allocation lets the sanitizer see a read past the end */
		uint8_t    *copy = malloc(cut);

		memcpy(copy, buf, cut);
		CHECK_U64(decode(copy, cut, &decoded), QC_DAMAGED);
		free(copy);
	}
}

static void
test_inner_lengths_that_do_not_fit(void)
{
	QcMessage	message = sample_full_message();
	QcMessage	decoded;
	uint8_t		buf[256];
	size_t		len = encode(&message, buf, sizeof(buf));

	qc_store_u16(buf + 4 + 1 + 32, 0xffff);
	CHECK_U64(decode(buf, len, &decoded), QC_DAMAGED);
	len = encode(&message, buf, sizeof(buf));
	qc_store_u32(buf, QC_FRAME_LEN_MIN - 1);
	CHECK_U64(decode(buf, len, &decoded), QC_DAMAGED);
	len = encode(&message, buf, sizeof(buf));
	qc_store_u32(buf, UINT32_MAX);
	CHECK_U64(decode(buf, len, &decoded), QC_DAMAGED);
}

static void
test_unknown_flags_are_damage(void)
{
	QcMessage	message = sample_golden_message();
	QcMessage	decoded;
	uint8_t		buf[256];
	size_t		len = encode(&message, buf, sizeof(buf));

	for (unsigned bit = QC_FRAME_FLAGS_ALL + 1; bit <= 0x80; bit <<= 1)
	{
		buf[4] = (uint8_t) bit;
		CHECK_U64(decode(buf, len, &decoded), QC_DAMAGED);
	}
}

static void
test_size_beyond_32_bits(void)
{
	QcMessage	message = {.flags = QC_FRAME_HEADERS};
	uint8_t		buf[8];
	QcWriter	w;

	message.headers_len = UINT32_MAX;
	CHECK_U64(qc_frame_size(&message), 0);
	message.flags = 0;
	message.data_len = UINT32_MAX - QC_FRAME_LEN_MIN;
	CHECK_U64(qc_frame_size(&message), (uint64_t) UINT32_MAX + 4);
	message.data_len++;
	CHECK_U64(qc_frame_size(&message), 0);
	qc_writer_init(&w, buf, sizeof(buf));
	qc_frame_put(&w, &message);
	CHECK(w.full);
	CHECK_U64(w.len, 0);
}

int
main(void)
{
	UNIT_RUN(test_golden_frame);
	UNIT_RUN(test_golden_hash);
	UNIT_RUN(test_id_stands_for_a_missing_dedup_id);
	UNIT_RUN(test_every_combination_of_flags);
	UNIT_RUN(test_smallest_frame);
	UNIT_RUN(test_several_frames_in_a_row);
	UNIT_RUN(test_every_truncation_is_damage);
	UNIT_RUN(test_inner_lengths_that_do_not_fit);
	UNIT_RUN(test_unknown_flags_are_damage);
	UNIT_RUN(test_size_beyond_32_bits);
	return unit_end();
}
