/*
 * qlog_dump_row.c
 *		Output of qlog_dump: rows of named fields, as text or as JSON.
 */
#include "qlog_dump_row.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "qc_bytes.h"
#include "qc_utf8.h"

/* "name=" or ","name":" in front of a value. */
static void
put_name(DumpRow *row, const char *name)
{
	fprintf(row->out, row->json ? ",\"%s\":" : " %s=", name);
}

void
dump_row_begin(DumpRow *row, const char *type)
{
	row->depth = 0;
	fprintf(row->out, row->json ? "{\"type\":\"%s\"" : "%s", type);
}

void
dump_row_end(DumpRow *row)
{
	fputs(row->json ? "}\n" : "\n", row->out);
}

void
dump_row_list_begin(DumpRow *row, const char *name)
{
	row->depth++;
	row->first_item = true;
	if (row->json)
		fprintf(row->out, ",\"%s\":[", name);
}

void
dump_row_list_end(DumpRow *row)
{
	row->depth--;
	row->first_item = false;
	if (row->json)
		fputs("]", row->out);
}

void
dump_row_item_begin(DumpRow *row, const char *type)
{
	if (row->json)
		fprintf(row->out, "%s{\"type\":\"%s\"", row->first_item ? "" : ",", type);
	else
		fprintf(row->out, "\n%*s%s", 2 * row->depth, "", type);
	row->first_item = false;
}

void
dump_row_item_end(DumpRow *row)
{
	if (row->json)
		fputs("}", row->out);
}

void
dump_row_u64(DumpRow *row, const char *name, uint64_t value)
{
	put_name(row, name);
	fprintf(row->out, "%" PRIu64, value);
}

void
dump_row_i64(DumpRow *row, const char *name, int64_t value)
{
	put_name(row, name);
	fprintf(row->out, "%" PRId64, value);
}

void
dump_row_flag(DumpRow *row, const char *name, bool set)
{
	if (!set)
		return;
	put_name(row, name);
	fputs("true", row->out);
}

/* One character, escaped as in JSON where it has to be; malformed bytes become U+FFFD. */
static size_t
put_character(FILE *out, const uint8_t *at, size_t left, bool quoted)
{
	uint32_t	code = 0;
	size_t		len = qc_utf8_char(at, left, &code);

	if (len == 0)
	{
		fputs("\xEF\xBF\xBD", out);
		return 1;
	}
	if (code == '\n')
		fputs("\\n", out);
	else if (code == '\t')
		fputs("\\t", out);
	else if (code < 0x20 || (code >= 0x7F && code < 0xA0))
		fprintf(out, "\\u%04x", (unsigned) code);
	else
	{
		if (quoted && (code == '"' || code == '\\'))
			fputc('\\', out);
		(void) fwrite(at, 1, len, out);
	}
	return len;
}

static void
put_characters(FILE *out, const uint8_t *bytes, size_t len, bool quoted)
{
	if (quoted)
		fputc('"', out);
	for (size_t i = 0; i < len;)
		i += put_character(out, bytes + i, len - i, quoted);
	if (quoted)
		fputc('"', out);
}

/* Can the string stand in a line of text without quotes? */
static bool
is_plain(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
	{
		if (bytes[i] <= ' ' || bytes[i] >= 0x7F || bytes[i] == '"' || bytes[i] == '\\' ||
			bytes[i] == '=')
			return false;
	}
	return len > 0;
}

void
dump_row_string(DumpRow *row, const char *name, const void *bytes, size_t len)
{
	put_name(row, name);
	put_characters(row->out, bytes, len, row->json || !is_plain(bytes, len));
}

void
dump_row_word(DumpRow *row, const char *name, const char *word)
{
	dump_row_string(row, name, word, strlen(word));
}

void
dump_row_text(DumpRow *row, const char *name, const void *bytes, size_t len)
{
	put_name(row, name);
	put_characters(row->out, bytes, len, row->json);
}

void
dump_row_hex(DumpRow *row, const char *name, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	put_name(row, name);
	if (row->json)
		fputc('"', row->out);
	for (size_t i = 0; i < len; i++)
		fprintf(row->out, "%02x", at[i]);
	if (row->json)
		fputc('"', row->out);
}

void
dump_row_uuid(DumpRow *row, const char *name, const uint8_t id[16])
{
	char		text[37];
	char	   *at = text;

	for (int i = 0; i < 16; i++)
	{
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*at++ = '-';
		at += snprintf(at, 3, "%02x", id[i]);
	}
	dump_row_word(row, name, text);
}

void
dump_row_digest(DumpRow *row, const char *name, uint64_t value)
{
	char		text[17];

	(void) snprintf(text, sizeof(text), "%016" PRIx64, value);
	dump_row_word(row, name, text);
}

void
dump_row_lsn(DumpRow *row, const char *name, uint64_t lsn)
{
	char		text[24];

	(void) snprintf(text, sizeof(text), "%X/%X", (unsigned) (lsn >> 32), (unsigned) lsn);
	dump_row_word(row, name, text);
}

void
dump_row_time(DumpRow *row, const char *name, int64_t microseconds)
{
	time_t		seconds = (time_t) (microseconds / 1000000);
	int			fraction = (int) (microseconds % 1000000);
	struct tm  *parts;
	char		text[64];

	if (fraction < 0)
	{
		fraction += 1000000;
		seconds--;
	}
	parts = gmtime(&seconds);
	if (row->json || parts == NULL || strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", parts) == 0)
	{
		dump_row_i64(row, name, microseconds);
		return;
	}
	put_name(row, name);
	fprintf(row->out, "%s.%06dZ", text, fraction);
}

void
dump_row_u64_list(DumpRow *row, const char *name, const uint8_t *values, uint32_t count)
{
	put_name(row, name);
	if (row->json)
		fputc('[', row->out);
	for (uint32_t i = 0; i < count; i++)
		fprintf(row->out, "%s%" PRIu64, i == 0 ? "" : ",", qc_load_u64(values + 8 * (size_t) i));
	if (row->json)
		fputc(']', row->out);
}
