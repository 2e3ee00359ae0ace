/*
 * fuzz_logfile.c
 *		File header: what is accepted encodes to the same bytes.
 */
#include "fuzz.h"

#include "qc_logfile.h"
#include "sample.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t		out[QC_FILE_HEADER_SIZE];
	QcFileHeader header;
	QcError		err;
	QcStatus	status = qc_file_header_decode(data, size, &header, &err);

	FUZZ_CHECK((status == QC_SHORT) == (size < QC_FILE_HEADER_SIZE));
	if (status == QC_OK)
	{
		qc_file_header_encode(out, &header);
		FUZZ_CHECK(memcmp(out, data, QC_FILE_HEADER_SIZE) == 0);
	}
	else
		FUZZ_CHECK(status == QC_SHORT || status == QC_DAMAGED);
	return 0;
}

#ifndef FUZZ_LIBFUZZER
static void
add_seeds(void)
{
	uint8_t		buf[SAMPLE_MAX];

	for (const Sample *s = samples; s->name != NULL; s++)
	{
		if (strncmp(s->name, "file ", 5) == 0)
			fuzz_seed(buf, s->make(buf));
	}
}

int
main(int argc, char **argv)
{
	return fuzz_main(argc, argv, "logfile", LLVMFuzzerTestOneInput, add_seeds);
}
#endif
