/*
 * fuzz_names.c
 *		Names: of files and logs, what is accepted is what the path functions write; of queues, the
 *		verdict is that of a second validator, written from Unicode's table of well-formed sequences.
 */
#include "fuzz.h"

#include "qc_logfile.h"

#include <string.h>

/* Ranges of the first two bytes of a sequence and its length; further bytes are 80 to bf. */
typedef struct Row
{
	uint8_t		first_low;
	uint8_t		first_high;
	uint8_t		second_low;
	uint8_t		second_high;
	uint8_t		len;
} Row;

static const Row rows[] = {
	{0x00, 0x7f, 0, 0, 1},
	{0xc2, 0xdf, 0x80, 0xbf, 2},
	{0xe0, 0xe0, 0xa0, 0xbf, 3},
	{0xe1, 0xec, 0x80, 0xbf, 3},
	{0xed, 0xed, 0x80, 0x9f, 3},
	{0xee, 0xef, 0x80, 0xbf, 3},
	{0xf0, 0xf0, 0x90, 0xbf, 4},
	{0xf1, 0xf3, 0x80, 0xbf, 4},
	{0xf4, 0xf4, 0x80, 0x8f, 4}
};

/* Length of the sequence at s, 0 = malformed. */
static size_t
sequence(const uint8_t *s, size_t left)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		const Row  *row = &rows[i];

		if (s[0] < row->first_low || s[0] > row->first_high)
			continue;
		if (row->len > left || (row->len > 1 && (s[1] < row->second_low || s[1] > row->second_high)))
			return 0;
		for (size_t k = 2; k < row->len; k++)
		{
			if (s[k] < 0x80 || s[k] > 0xbf)
				return 0;
		}
		return row->len;
	}
	return 0;
}

/* The first fault of a name of 1 to 255 bytes. */
static QcNameFault
expected_fault(const uint8_t *s, size_t len)
{
	for (size_t at = 0; at < len;)
	{
		size_t		step = sequence(s + at, len - at);

		if (step == 0)
			return QC_NAME_ENCODING;
		if (s[at] < 0x20 || s[at] == 0x7f || (s[at] == 0xc2 && s[at + 1] < 0xa0))
			return QC_NAME_CONTROL;
		at += step;
	}
	return QC_NAME_OK;
}

static void
check_queue_name(const uint8_t *data, size_t size)
{
	QcNameFault fault = qc_name_check((const char *) data, size);

	if (size == 0)
		FUZZ_CHECK(fault == QC_NAME_EMPTY);
	else if (size > 255)
		FUZZ_CHECK(fault == QC_NAME_LONG);
	else
		FUZZ_CHECK(fault == expected_fault(data, size));
}

static void
check_path_names(const char *name)
{
	static const char *const suffixes[] = {"qlog", "qidx", "qhsh"};
	char		path[QC_PATH_MAX];
	uint64_t	number;

	for (int i = 0; i < 3; i++)
	{
		if (!qc_name_parse_file(name, suffixes[i], &number))
			continue;
		qc_path_file(path, QC_LAYOUT_FLAT, 1, number, suffixes[i]);
		FUZZ_CHECK(strcmp(strrchr(path, '/') + 1, name) == 0);
	}
	if (qc_name_parse_log(name, &number))
	{
		for (int layout = QC_LAYOUT_FLAT; layout <= QC_LAYOUT_HIERARCHICAL; layout++)
		{
			qc_path_log(path, (QcLayout) layout, number);
			FUZZ_CHECK(strcmp(strrchr(path, '/') + 1, name) == 0);
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char		name[512];

	check_queue_name(data, size);
	if (size >= sizeof(name))
		return 0;
	memcpy(name, data, size);
	name[size] = '\0';
	check_path_names(name);
	return 0;
}

#ifndef FUZZ_LIBFUZZER
static void
add_seeds(void)
{
	static const char *const seeds[] = {
		"r00000001.qlog", "r00000001.qidx", "r123456789.qhsh", "r18446744073709551615.qlog",
		"q0", "q1", "q18446744073709551615", "orders", "pr\303\274fung",
		"\xe2\x82\xac\xf0\x9f\x98\x80\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"
	};

	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		fuzz_seed(seeds[i], strlen(seeds[i]));
}

int
main(int argc, char **argv)
{
	return fuzz_main(argc, argv, "names", LLVMFuzzerTestOneInput, add_seeds);
}
#endif
