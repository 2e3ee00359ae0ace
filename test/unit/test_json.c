/*
 * test_json.c
 *		qc_json_valid: known texts, every short text over the bytes that matter, strings of every length and alignment,
 *		deep nesting.
 */
#include "json_grammar.h"
#include "qc_json.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
check_text(const char *text, bool valid)
{
	if (!unit_check(qc_json_valid(text, strlen(text)) == valid, __FILE__, __LINE__, text))
		printf("# expected: %s\n", valid ? "valid" : "not valid");
}

static void
test_valid(void)
{
	static const char *const texts[] = {
		"null", "true", "false", "0", "-0", "10", "-1.5e3", "1E+2", "1e-2", "0.00", "\"\"", "\"a\"", "[]", "{}",
		" [ ] ", "\t{\n}\r", "[1,2]", "[[],{},[{}]]", "{\"a\":1}", "{ \"a\" : [ 1 , { \"b\" : null } ] , \"a\" : \"\" }",
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\uD800\"", "\"\xc3\xa4\xe2\x82\xac\"", "\"{[,:]}\"", "\"\x7f\""
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check_text(texts[i], true);
}

static void
test_not_valid(void)
{
	static const char *const texts[] = {
		"", " ", "nul", "nulll", "True", "+1", "-", "01", "1.", ".5", "1e", "1e+", "0x1", "1 2", "\"", "\"a", "a", "'a'",
		"\"\\x\"", "\"\\u12g4\"", "\"\\u123", "\"\\", "\"\t\"", "\"\n\"", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]",
		"{", "}", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{1:1}", "{a:1}", "{\"a\" 1}", "{\"a\":1 \"b\":2}",
		"[}", "{]", "[1}", "{\"a\":1]", "[]]", "{}{}", "1,", ",", ":", "\xc3\xa4", "\xef\xbb\xbf[]", "[1]\f", "NaN"
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check_text(texts[i], false);
}

/* A zero byte is a byte like any other: never white space, never the end. */
static void
test_zero_bytes(void)
{
	CHECK(!qc_json_valid("1\0", 2));
	CHECK(!qc_json_valid("\0" "1", 2));
	CHECK(!qc_json_valid("[\0]", 3));
	CHECK(!qc_json_valid("[1\0]", 4));
	CHECK(!qc_json_valid("{\0}", 3));
	CHECK(!qc_json_valid("\"\0\"", 3));
	CHECK(!qc_json_valid("\"\\\0\"", 4));
	CHECK(!qc_json_valid("\0", 1));
	CHECK(qc_json_valid("1\0", 1));
}

/* Compare with the grammar on every text of up to max symbols out of an alphabet. */
static void
try_all(const char *const *symbols, int nsymbols, int max)
{
	int			at[8] = {0};
	uint64_t	wrong = 0;

	for (int n = 0; n <= max; n++)
	{
		bool		more = true;

		memset(at, 0, sizeof(at));
		while (more)
		{
			char		text[64];
			size_t		len = 0;
			int			depth;

			for (int i = 0; i < n; i++)
			{
				size_t		size = strlen(symbols[at[i]]);

				memcpy(text + len, symbols[at[i]], size);
				len += size;
			}
			if (qc_json_valid(text, len) != json_grammar(text, len, &depth) && wrong++ < 5)
				printf("# judged differently: %.*s\n", (int) len, text);
			more = false;
			for (int i = 0; i < n && !more; i++)
			{
				at[i] = (at[i] + 1) % nsymbols;
				more = at[i] != 0;
			}
		}
	}
	CHECK_U64(wrong, 0);
}

static void
test_every_structure(void)
{
	static const char *const symbols[] = {"{", "}", "[", "]", ",", ":", "\"a\"", "1", " "};

	try_all(symbols, 9, 6);
}

static void
test_every_number(void)
{
	static const char *const symbols[] = {"0", "7", "-", "+", ".", "e", "E", " "};

	try_all(symbols, 8, 6);
}

static void
test_every_string(void)
{
	static const char *const symbols[] = {"\"", "\\", "u", "n", "0f", "A9", "\x1f", "\xff"};

	try_all(symbols, 8, 6);
}

/* Something special at every place of strings of every length, at every alignment. */
static void
test_string_places(void)
{
	static const char specials[] = {'"', '\\', '\n', '\0', '\x1f', ' ', '!', '#', '[', ']', '\x7f', '\x80', '\xa2', '\xdc', '\xff'};
	char		buffer[64];
	uint64_t	wrong = 0;

	for (size_t offset = 0; offset < 8; offset++)
	{
		for (size_t len = 1; len <= 40; len++)
		{
			char	   *text = buffer + offset;

			for (size_t place = 0; place < len * sizeof(specials); place++)
			{
				int			depth;

				text[0] = '"';
				memset(text + 1, 'a', len);
				text[1 + place % len] = specials[place / len];
				text[1 + len] = '"';
				wrong += qc_json_valid(text, len + 2) != json_grammar(text, len + 2, &depth);
			}
		}
	}
	CHECK_U64(wrong, 0);
}

/* Nested n deep, alternately in arrays and objects. */
static char *
nested(int n, size_t *len)
{
	char	   *text = malloc((size_t) n * 6 + 1);
	size_t		at = 0;

	for (int i = 0; i < n; i++)
		at += (size_t) sprintf(text + at, i % 3 == 0 ? "[" : "{\"\":");
	text[at++] = '1';
	for (int i = n; i-- > 0;)
		text[at++] = i % 3 == 0 ? ']' : '}';
	*len = at;
	return text;
}

static void
test_depth(void)
{
	for (int n = 1; n <= QC_JSON_DEPTH + 10; n++)
	{
		size_t		len;
		char	   *text = nested(n, &len);

		CHECK(qc_json_valid(text, len) == (n <= QC_JSON_DEPTH));

		/* A bracket of the wrong kind at every level. */
		for (size_t i = len - (size_t) n; i < len; i++)
		{
			text[i] = text[i] == ']' ? '}' : ']';
			CHECK(!qc_json_valid(text, len));
			text[i] = text[i] == ']' ? '}' : ']';
		}
		free(text);
	}
}

int
main(void)
{
	UNIT_RUN(test_valid);
	UNIT_RUN(test_not_valid);
	UNIT_RUN(test_zero_bytes);
	UNIT_RUN(test_every_structure);
	UNIT_RUN(test_every_number);
	UNIT_RUN(test_every_string);
	UNIT_RUN(test_string_places);
	UNIT_RUN(test_depth);
	return unit_end();
}
