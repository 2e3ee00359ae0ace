/*
 * fuzz_idx.c
 *		.qidx: checking never reads outside, what is accepted encodes to the same bytes, and every
 *		position of an accepted index is found.
 *
 * The first byte says whether the checksums and sizes in the header are repaired before the check.
 */
#include "fuzz.h"

#include "qc_logfile.h"
#include "qc_record.h"
#include "sample.h"

#include <stdlib.h>

/* Make header and checksums agree with the bytes there are. */
static void
repair(uint8_t *bytes, size_t len)
{
	size_t		body = len - QC_IDX_HEADER_SIZE;

	memcpy(bytes, "QQIDX1\0\0", 8);
	qc_store_u32(bytes + 16, (uint32_t) (body / QC_IDX_ENTRY_SIZE));
	qc_store_u32(bytes + 20, QC_IDX_ENTRY_SIZE);
	qc_store_u64(bytes + 32, qc_digest(bytes + QC_IDX_HEADER_SIZE, body));
	qc_store_u64(bytes + 40, qc_digest(bytes, 40));
}

/* Decode all, look each one up, and encode them again in reverse order. */
static void
check_accepted(const uint8_t *bytes, size_t len, uint32_t count, uint64_t file, uint64_t length)
{
	const uint8_t *at = bytes + QC_IDX_HEADER_SIZE;
	QcIdxEntry *entries = malloc((count + 1) * sizeof(QcIdxEntry));
	uint8_t    *out = malloc(len);
	QcIdxEntry	found;

	for (uint32_t i = 0; i < count; i++)
	{
		QcIdxEntry *e = &entries[count - 1 - i];

		qc_idx_entry_decode(at + (size_t) i * QC_IDX_ENTRY_SIZE, e);
		FUZZ_CHECK(qc_idx_find(at, count, e->partition, e->first, &found));
		FUZZ_CHECK(found.position == e->position);
		FUZZ_CHECK(qc_idx_find(at, count, e->partition, e->end - 1, &found));
		FUZZ_CHECK(found.position == e->position);
		FUZZ_CHECK(!qc_idx_find(at, count, e->partition, e->end, &found) || found.first == e->end);
	}
	qc_idx_encode(out, file, length, entries, count);
	FUZZ_CHECK(memcmp(out, bytes, len) == 0);
	free(out);
	free(entries);
}

static void
one_index(unsigned mode, uint8_t *bytes, size_t len)
{
	uint64_t	file = 1;
	uint64_t	length = 464;
	uint32_t	count;
	QcError		err;

	if ((mode & 1) && len >= QC_IDX_HEADER_SIZE)
		repair(bytes, len);
	if ((mode & 2) && len >= QC_IDX_HEADER_SIZE)
	{
		file = qc_load_u64(bytes + 8);
		length = qc_load_u64(bytes + 24);
	}
	if (qc_idx_check(bytes, len, file, length, &count, &err) == QC_OK)
		check_accepted(bytes, len, count, file, length);
	else
		FUZZ_CHECK(err.code == QC_DAMAGED);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_with_mode(data, size, one_index);
}

#ifndef FUZZ_LIBFUZZER
static void
add_seeds(void)
{
	fuzz_seed_modes(4, sample_index, SAMPLE_MAX);
}

int
main(int argc, char **argv)
{
	return fuzz_main(argc, argv, "idx", LLVMFuzzerTestOneInput, add_seeds);
}
#endif
