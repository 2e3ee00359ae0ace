/*
 * fuzz_dump.c
 *		qlog_dump on a damaged file: it ends, says so with a known exit code, and prints nothing but
 *		well-formed UTF-8 without control characters.
 *
 * The first byte of an input picks the file's name, which decides what it is when its magic is damaged, and
 * the options.  The bits REPAIR make the first record's checksum right, so that mutants come past it.
 */
#define _POSIX_C_SOURCE 200809L

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../src/bin/qlog_dump.h"
#include "qc_record.h"
#include "qc_utf8.h"
#include "sample.h"

#define AS_LOG		0
#define AS_INDEX	1
#define AS_STASH	2
#define AS_CUT		3
#define JSON		4
#define VERIFY		8
#define HEX			16
#define REPAIR		32

static const char *const names[] = {"r00000001.qlog", "r00000001.qidx", "stash",
"r00000001.qlog.cut.5"};

/* The input as a file in the current directory. */
static void
write_input(const char *name, const uint8_t *data, size_t size, bool repaired)
{
	uint8_t    *bytes = malloc(size + 1);
	uint64_t	whole;
	uint8_t    *record = bytes + QC_FILE_HEADER_SIZE;
	FILE	   *file;

	/* file systems write out a file that is truncated and written again, but not one that is new */
	(void) remove(name);
	file = fopen(name, "wb");
	FUZZ_CHECK(bytes != NULL && file != NULL);
	memcpy(bytes, data, size);
	if (repaired && size > QC_FILE_HEADER_SIZE &&
		qc_record_peek(record, size - QC_FILE_HEADER_SIZE, &whole, NULL) == QC_OK &&
		whole <= size - QC_FILE_HEADER_SIZE)
		qc_store_u64(record + 4, qc_digest(record + 12, (size_t) whole - 12));
	FUZZ_CHECK(fwrite(bytes, 1, size, file) == size);
	FUZZ_CHECK(fclose(file) == 0);
	free(bytes);
}

static void
check_output(const char *output, size_t len)
{
	const uint8_t *at = (const uint8_t *) output;
	uint32_t	code;

	for (size_t i = 0; i < len;)
	{
		size_t		step = qc_utf8_char(at + i, len - i, &code);

		FUZZ_CHECK(step > 0);
		FUZZ_CHECK(code == '\n' || (code >= 0x20 && (code < 0x7f || code >= 0xa0)));
		i += step;
	}
	FUZZ_CHECK(len == 0 || output[len - 1] == '\n');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char		program[] = "qlog_dump";
	char		path[32];
	char		options[3][16] = {"--format=text", "--payload=text", "--limit=1000"};
	char	   *argv[] = {program, options[0], options[1], options[2], path, NULL};
	char	   *output = NULL;
	size_t		len;
	FILE	   *out;
	int			code;

	if (size < 1)
		return 0;
	(void) snprintf(path, sizeof(path), "%s", names[data[0] & 3]);
	if (data[0] & JSON)
		memcpy(options[0], "--format=json", 14);
	if (data[0] & HEX)
		memcpy(options[1], "--payload=hex", 14);
	if (data[0] & VERIFY)
		memcpy(options[2], "--verify", 9);
	write_input(path, data + 1, size - 1, (data[0] & REPAIR) != 0);
	out = open_memstream(&output, &len);
	FUZZ_CHECK(out != NULL);
	code = dump_main(5, argv, out, out);
	FUZZ_CHECK(fclose(out) == 0);
	FUZZ_CHECK(code == DUMP_EXIT_CLEAN || code == DUMP_EXIT_DAMAGE);
	check_output(output, len);
	(void) remove(path);
	free(output);
	return 0;
}

#ifndef FUZZ_LIBFUZZER
static void
add_seeds(void)
{
	static uint8_t buf[FUZZ_INPUT_MAX];
	uint8_t    *bytes = buf + 1;
	size_t		len = SAMPLE_GOLDEN_SIZE;

	memcpy(bytes, sample_golden, SAMPLE_GOLDEN_SIZE);
	for (const Sample *s = samples; s->name != NULL; s++)
	{
		if (strncmp(s->name, "record ", 7) == 0)
			len += s->make(bytes + len);
	}
	for (unsigned options = 0; options < 64; options += 4)
	{
		buf[0] = (uint8_t) (AS_LOG | options);
		fuzz_seed(buf, 1 + len + 64);
	}
	buf[0] = AS_CUT;
	memmove(bytes, bytes + QC_FILE_HEADER_SIZE, len - QC_FILE_HEADER_SIZE);
	fuzz_seed(buf, 1 + len - QC_FILE_HEADER_SIZE);
	for (const Sample *s = samples; s->name != NULL; s++)
	{
		if (strncmp(s->name, "record ", 7) != 0)
			continue;
		buf[0] = AS_LOG | REPAIR;
		memcpy(bytes, sample_golden, QC_FILE_HEADER_SIZE);
		fuzz_seed(buf, 1 + QC_FILE_HEADER_SIZE + s->make(bytes + QC_FILE_HEADER_SIZE));
	}
	buf[0] = AS_INDEX;
	fuzz_seed(buf, 1 + sample_index(bytes));
	buf[0] = AS_STASH;
	fuzz_seed(buf, 1 + sample_stash(bytes));
}

int
main(int argc, char **argv)
{
	return fuzz_main(argc, argv, "dump", LLVMFuzzerTestOneInput, add_seeds);
}
#endif
