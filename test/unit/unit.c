/*
 * unit.c
 *		The TAP harness of test programs in C.
 */
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int	tests;
static int	failed_tests;
static bool failing;

static void
report(const char *name)
{
	tests++;
	if (failing)
		failed_tests++;
	printf("%s %d - %s\n", failing ? "not ok" : "ok", tests, name);
	fflush(stdout);
}

void
unit_run(const char *name, void (*test) (void))
{
	failing = false;
	test();
	report(name);
}

void
unit_run_with(const char *name, void (*test) (const void *), const void *argument)
{
	failing = false;
	test(argument);
	report(name);
}

int
unit_end(void)
{
	printf("1..%d\n", tests);
	return failed_tests == 0 && tests > 0 ? 0 : 1;
}

bool
unit_check(bool held, const char *file, int line, const char *what)
{
	if (!held)
	{
		failing = true;
		printf("# %s:%d: %s does not hold\n", file, line, what);
	}
	return held;
}

bool
unit_check_u64(uint64_t actual, uint64_t expected, const char *file, int line, const char *what)
{
	if (actual != expected)
	{
		failing = true;
		printf("# %s:%d: %s is %" PRIu64 " (0x%" PRIx64 ") instead of %" PRIu64 " (0x%" PRIx64 ")\n",
			   file, line, what, actual, actual, expected, expected);
	}
	return actual == expected;
}

bool
unit_check_str(const char *actual, const char *expected, const char *file, int line,
			   const char *what)
{
	bool		same = actual != NULL && strcmp(actual, expected) == 0;

	if (!same)
	{
		failing = true;
		printf("# %s:%d: %s is \"%s\" instead of \"%s\"\n", file, line, what,
			   actual == NULL ? "(null)" : actual, expected);
	}
	return same;
}

static void
print_bytes(const char *label, const uint8_t *bytes, size_t len)
{
	printf("#   %s, %zu bytes:", label, len);
	for (size_t i = 0; i < len && i < 256; i++)
		printf("%s%02x", i % 4 == 0 ? " " : "", bytes[i]);
	printf("\n");
}

bool
unit_check_bytes(const void *actual, size_t actual_len, const void *expected, size_t expected_len,
				 const char *file, int line, const char *what)
{
	bool		same = actual_len == expected_len &&
		(actual_len == 0 || memcmp(actual, expected, actual_len) == 0);

	if (!same)
	{
		failing = true;
		printf("# %s:%d: %s differs\n", file, line, what);
		print_bytes("is", actual, actual_len);
		print_bytes("instead of", expected, expected_len);
	}
	return same;
}

const char *
unit_input_path(const char *relative)
{
	static char path[4096];
	const char *inputs = getenv("TEST_INPUTS");

	(void) snprintf(path, sizeof(path), "%s/%s", inputs == NULL ? "." : inputs, relative);
	return path;
}
