/*
 * fuzz_hashes.c
 *		.qhsh: checking never reads outside, and what is accepted holds as many records and ids as it says.
 *
 * The first byte says whether the checksums and sizes are repaired (1), and whether file and length are taken from the head (2).
 */
#include "fuzz.h"

#include "qc_derived.h"
#include "qc_hashes.h"
#include "sample.h"

/* Make the head agree with the bytes there are. */
static void
repair(uint8_t *bytes, size_t len)
{
	const QcDerived kind = {"QQHSH1\0", QC_HASHES_CELL, "dedup ids"};

	qc_derived_seal(bytes, &kind, qc_load_u64(bytes + 8), qc_derived_length(bytes),
					(uint32_t) ((len - QC_DERIVED_HEAD_SIZE) / QC_HASHES_CELL));
}

static void
check_accepted(const uint8_t *bytes, size_t len)
{
	const uint8_t *seal = bytes + QC_DERIVED_HEAD_SIZE;
	QcHashesRecord record;
	size_t		at = 0;
	uint64_t	records = 0;
	uint64_t	ids = 0;

	while (qc_hashes_next(bytes, len, &at, &record))
	{
		records++;
		FUZZ_CHECK(record.ids > 0 && record.ids <= record.count);
		for (uint32_t i = 0; i < record.count; i++)
		{
			const uint8_t *hash;
			const uint8_t *id;

			ids += qc_hashes_id(&record, i, &hash, &id);
			FUZZ_CHECK(hash >= bytes && id + QC_ID_SIZE <= bytes + len);
		}
	}
	FUZZ_CHECK(at == 0 || at == len);
	FUZZ_CHECK(records == qc_load_u64(seal + 16));
	FUZZ_CHECK(ids == qc_load_u64(seal + 24));
}

static void
one_list(unsigned mode, uint8_t *bytes, size_t len)
{
	uint64_t	file = 1;
	uint64_t	length = 464;
	QcError		err;

	if ((mode & 1) && len >= QC_DERIVED_HEAD_SIZE)
		repair(bytes, len);
	if ((mode & 2) && len >= QC_DERIVED_HEAD_SIZE)
	{
		file = qc_load_u64(bytes + 8);
		length = qc_derived_length(bytes);
	}
	if (qc_hashes_check(bytes, len, file, length, &err) == QC_OK)
		check_accepted(bytes, len);
	else
		FUZZ_CHECK(err.code == QC_DAMAGED);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_with_mode(data, size, one_list);
}

#ifndef FUZZ_LIBFUZZER
static void
add_seeds(void)
{
	fuzz_seed_modes(4, sample_hashes, SAMPLE_MAX);
}

int
main(int argc, char **argv)
{
	return fuzz_main(argc, argv, "hashes", LLVMFuzzerTestOneInput, add_seeds);
}
#endif
