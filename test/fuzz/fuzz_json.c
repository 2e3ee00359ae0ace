/*
 * fuzz_json.c
 *		qc_json_valid says the same as the grammar written down a second time; only what is nested deeper than it looks may
 *		be refused without being wrong.
 */
#include "fuzz.h"
#include "json_grammar.h"
#include "qc_json.h"

#include <string.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int			depth;
	bool		valid = json_grammar((const char *) data, size, &depth);

	FUZZ_CHECK(qc_json_valid(data, size) == (valid && depth <= QC_JSON_DEPTH));
	return 0;
}

#ifndef FUZZ_LIBFUZZER
static void
add_seeds(void)
{
	static const char *const seeds[] = {
		"null", "true", "false", "-1.5e3", "\"a\\u00e4\\n\xc3\xa4\"", "[1,2,[3]]", "{\"a\": {\"b\": [null]}, \"c\": \"\"}",
		" [ { } , 0 ] "
	};

	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		fuzz_seed(seeds[i], strlen(seeds[i]));
}

int
main(int argc, char **argv)
{
	return fuzz_main(argc, argv, "json", LLVMFuzzerTestOneInput, add_seeds);
}
#endif
