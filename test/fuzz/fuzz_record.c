/*
 * fuzz_record.c
 *		Records: decoding never reads outside, and what is accepted is encoded to the same bytes.
 *
 * The first byte of an input says whether len and checksum are repaired before decoding, without which
 * hardly any mutant would come past the checksum.
 */
#include "fuzz.h"

#include "qc_record.h"
#include "sample.h"

#include <stdlib.h>

#define REPAIR_LEN		1
#define REPAIR_CHECKSUM 2

/* A payload that unpacks is a row of frames or damaged; walking it must end. */
static void
walk_frames(const uint8_t *raw, size_t raw_size)
{
	QcReader	r;
	QcMessage	message;
	QcError		err;
	QcStatus	status;

	qc_reader_init(&r, raw, raw_size);
	while ((status = qc_frame_get(&r, &message, &err)) == QC_OK)
		FUZZ_CHECK(message.data_len <= raw_size);
	FUZZ_CHECK(status == QC_END || status == QC_DAMAGED);
}

static void
unpack(const QcRecord *record)
{
	size_t		raw_size;
	uint8_t    *raw;
	QcError		err;

	if (qc_record_raw_size(record, &raw_size, &err) != QC_OK || raw_size > 1 << 20)
		return;
	raw = malloc(raw_size + 1);
	if (qc_record_unpack(record, raw, raw_size, &err) == QC_OK)
		walk_frames(raw, raw_size);
	else
		FUZZ_CHECK(record->compressed && err.code == QC_DAMAGED);
	free(raw);
}

/* Encode the decoded fields again. */
static void
encode_again(const uint8_t *bytes, const QcRecord *record)
{
	size_t		size = (size_t) record->len + 4;
	size_t		built = size;
	uint8_t    *out = calloc(1, size + 1);
	QcError		err;

	if (record->kind == QC_KIND_ENTRY)
	{
		memcpy(out + QC_RECORD_HEADER_SIZE, record->payload, record->payload_len);
		qc_record_seal_entry(out, record->payload_len, record->seq, record->copies, record->epoch,
							 record->created_at);
	}
	else
	{
		FUZZ_CHECK(qc_record_build_message(out, size, record->kind == QC_KIND_SOLO,
										   record->partition, record->count, record->hashes,
										   record->payload, record->payload_len, 0, &built,
										   &err) == QC_OK);
		qc_record_seal_message(out, record->seq, record->first, record->created_at,
							   record->durable_seq);
	}
	FUZZ_CHECK(built == size && memcmp(out, bytes, size) == 0);
	free(out);
}

static void
check_decoded(const uint8_t *bytes, size_t avail, const QcRecord *record)
{
	bool		messages = record->kind == QC_KIND_MESSAGES || record->kind == QC_KIND_SOLO;

	FUZZ_CHECK((size_t) record->len + 4 <= avail);
	FUZZ_CHECK(record->payload + record->payload_len == bytes + record->len + 4);
	FUZZ_CHECK(qc_record_size(record->kind, record->count, record->payload_len) ==
			   (uint64_t) record->len + 4);
	if (messages)
		unpack(record);
	if (record->kind == QC_KIND_ENTRY || (messages && !record->compressed))
		encode_again(bytes, record);
	if (record->kind == QC_KIND_STUB)
		(void) qc_record_stub_matches(record, bytes, record->len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t    *bytes;
	size_t		len;
	uint64_t	whole;
	QcRecord	record;
	QcError		err;

	if (size < 1)
		return 0;
	len = size - 1;
	bytes = malloc(len + (len == 0));
	memcpy(bytes, data + 1, len);
	if ((data[0] & REPAIR_LEN) && len >= QC_RECORD_HEADER_SIZE)
		qc_store_u32(bytes, (uint32_t) len - 4);
	if ((data[0] & REPAIR_CHECKSUM) && qc_record_peek(bytes, len, &whole, &err) == QC_OK &&
		whole <= len)
		qc_store_u64(bytes + 4, qc_digest(bytes + 12, (size_t) whole - 12));
	if (qc_record_decode(bytes, len, &record, &err) == QC_OK)
		check_decoded(bytes, len, &record);
	free(bytes);
	return 0;
}

#ifndef FUZZ_LIBFUZZER
static void
add_seeds(void)
{
	static uint8_t input[FUZZ_INPUT_MAX];
	static uint8_t data[20000];
	QcMessage	message = {.data = data};

	input[0] = REPAIR_LEN | REPAIR_CHECKSUM;
	for (const Sample *s = samples; s->name != NULL; s++)
	{
		if (strncmp(s->name, "record ", 7) == 0)
			fuzz_seed(input, 1 + s->make(input + 1));
	}
	for (uint32_t len = 500; len < sizeof(data); len *= 3)
	{
		message.data_len = len;
		fuzz_seed(input, 1 + sample_record(input + 1, sizeof(input) - 1, len > 3000, &message, 2, 1));
	}
}

int
main(int argc, char **argv)
{
	return fuzz_main(argc, argv, "record", LLVMFuzzerTestOneInput, add_seeds);
}
#endif
