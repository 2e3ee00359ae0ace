/*
 * test_doc_format.c
 *		doc/format.md against the encoder, so that the document cannot drift.
 *
 * Every fenced block "hex NAME" of the document must be the bytes of the example NAME, every example
 * must have its block, and the table of effects must be the list.  Rows of the checkpoint are examples too
 * (doc_rows.h).  With --print the program writes blocks and table as they should be, for pasting.
 */
#include "doc_rows.h"
#include "sample.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#define FENCE "```hex "

static char *document;

static void
read_document(void)
{
	FILE	   *file = fopen(unit_input_path("doc/format.md"), "r");
	size_t		cap = 1 << 20;
	size_t		len;

	document = calloc(1, cap);
	if (file == NULL || document == NULL)
	{
		printf("Bail out! cannot read %s\n", unit_input_path("doc/format.md"));
		exit(1);
	}
	len = fread(document, 1, cap - 1, file);
	document[len] = '\0';
	fclose(file);
}

/* The text behind the fence of block NAME, or NULL. */
static const char *
find_block(const char *name)
{
	const char *at = document;
	size_t		len = strlen(name);

	while ((at = strstr(at, FENCE)) != NULL)
	{
		at += strlen(FENCE);
		if (strncmp(at, name, len) == 0 && at[len] == '\n')
			return at + len + 1;
	}
	return NULL;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Bytes of a block up to its closing fence. */
static size_t
parse_block(const char *at, uint8_t out[SAMPLE_MAX])
{
	size_t		len = 0;
	int			high = -1;

	for (; *at != '`' && *at != '\0' && len < SAMPLE_MAX; at++)
	{
		int			digit = hex_digit(*at);

		if (digit < 0)
			continue;
		if (high < 0)
			high = digit;
		else
		{
			out[len++] = (uint8_t) (high * 16 + digit);
			high = -1;
		}
	}
	return len;
}

static void
compare(const char *name, const uint8_t *expected, size_t expected_len)
{
	uint8_t		bytes[SAMPLE_MAX];
	const char *block = find_block(name);

	if (CHECK(block != NULL))
		CHECK_BYTES(bytes, parse_block(block, bytes), expected, expected_len);
}

static void
check_sample(const void *argument)
{
	const Sample *sample = argument;
	uint8_t		expected[SAMPLE_MAX];

	compare(sample->name, expected, sample->make(expected));
}

static void
check_effect(const void *argument)
{
	QcEffectKind kind = *(const QcEffectKind *) argument;
	uint8_t		expected[SAMPLE_MAX];
	char		name[64];

	(void) snprintf(name, sizeof(name), "effect %s", qc_effect_name(kind));
	compare(name, expected, sample_effect(kind, expected));
}

static void
check_row(const void *argument)
{
	const DocRow *row = argument;
	uint8_t		expected[SAMPLE_MAX];
	size_t		len = doc_row(row, expected);

	CHECK(len > 0);
	compare(row->name, expected, len);
}

static int
count_blocks(void)
{
	int			count = 0;

	for (const char *at = document; (at = strstr(at, FENCE)) != NULL; at++)
		count++;
	return count;
}

static void
test_every_block_has_an_example(void)
{
	int			expected = DOC_ROWS;

	for (const Sample *s = samples; s->name != NULL; s++)
		expected++;
	for (const QcEffectKind *kind = sample_kinds; *kind != QC_EFFECT_KIND_END; kind++)
		expected++;
	CHECK_U64(count_blocks(), expected);
}

/* A row of the table of effects, as the list has it. */
typedef struct Row
{
	char		text[640];
} Row;

static void
finish_row(char *fields)
{
	size_t		len = strlen(fields);

	if (len > 2)
		fields[len - 2] = '\0';
}

static Row
table_row(QcEffectKind kind)
{
	char		fixed[256] = "";
	char		item[256] = "";
	unsigned	version = QC_EFFECT_VERSION;
	Row			row;

	switch (kind)
	{
#define TYPE_U8(field) #field " u8, "
#define TYPE_U16(field) #field " u16, "
#define TYPE_U32(field) #field " u32, "
#define TYPE_U64(field) #field " u64, "
#define TYPE_I64(field) #field " i64, "
#define TYPE_STR(field) #field " str, "
#define FIELDS(number, NAME, name, Struct, fields, items) \
		case QC_EFFECT_##NAME: \
			(void) snprintf(fixed, sizeof(fixed), "%s", "" fields); \
			(void) snprintf(item, sizeof(item), "%s", "" items); \
			break;
			QC_EFFECT_LIST(FIELDS, TYPE_U8, TYPE_U16, TYPE_U32, TYPE_U64, TYPE_I64, TYPE_STR)
		case QC_EFFECT_KIND_END:
			break;
	}
	finish_row(fixed);
	finish_row(item);
	(void) snprintf(row.text, sizeof(row.text), "| %d | %s | %u | %s | %s |", (int) kind,
					qc_effect_name(kind), version, fixed, item[0] != '\0' ? item : "-");
	return row;
}

static void
test_table_of_effects(void)
{
	for (const QcEffectKind *kind = sample_kinds; *kind != QC_EFFECT_KIND_END; kind++)
	{
		Row			row = table_row(*kind);
		const char *at = strstr(document, row.text);

		if (!CHECK(at != NULL && at > document && at[-1] == '\n'))
			printf("# missing: %s\n", row.text);
	}
}

static void
print_block(const char *name, const uint8_t *bytes, size_t len)
{
	printf(FENCE "%s", name);
	for (size_t i = 0; i < len; i++)
		printf("%s%02x", i % 32 == 0 ? "\n" : i % 4 == 0 ? " " : "", bytes[i]);
	printf("\n```\n\n");
}

static void
print_all(void)
{
	uint8_t		bytes[SAMPLE_MAX];
	char		name[64];

	for (const Sample *s = samples; s->name != NULL; s++)
		print_block(s->name, bytes, s->make(bytes));
	for (const QcEffectKind *kind = sample_kinds; *kind != QC_EFFECT_KIND_END; kind++)
		printf("%s\n", table_row(*kind).text);
	for (const QcEffectKind *kind = sample_kinds; *kind != QC_EFFECT_KIND_END; kind++)
	{
		(void) snprintf(name, sizeof(name), "effect %s", qc_effect_name(*kind));
		print_block(name, bytes, sample_effect(*kind, bytes));
	}
	for (int i = 0; i < DOC_ROWS; i++)
		print_block(doc_rows[i].name, bytes, doc_row(&doc_rows[i], bytes));
}

int
main(int argc, char **argv)
{
	char		name[64];

	if (argc > 1 && strcmp(argv[1], "--print") == 0)
	{
		print_all();
		return 0;
	}
	read_document();
	for (const Sample *s = samples; s->name != NULL; s++)
		unit_run_with(s->name, check_sample, s);
	for (const QcEffectKind *kind = sample_kinds; *kind != QC_EFFECT_KIND_END; kind++)
	{
		(void) snprintf(name, sizeof(name), "effect %s", qc_effect_name(*kind));
		unit_run_with(name, check_effect, kind);
	}
	for (int i = 0; i < DOC_ROWS; i++)
		unit_run_with(doc_rows[i].name, check_row, &doc_rows[i]);
	UNIT_RUN(test_every_block_has_an_example);
	UNIT_RUN(test_table_of_effects);
	free(document);
	return unit_end();
}
