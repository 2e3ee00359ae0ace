/*
 * qc_utf8.c
 *		Well-formed UTF-8, character by character.
 *
 * Called for names of queues and groups, and by tools that print payloads.
 */
#include "qc_utf8.h"

/* Bytes of the sequence that begins with this byte, 0 = none does. */
static size_t
sequence_length(uint8_t first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xC0)
		return 0;
	if (first < 0xE0)
		return 2;
	if (first < 0xF0)
		return 3;
	return first < 0xF8 ? 4 : 0;
}

size_t
qc_utf8_char(const uint8_t *s, size_t left, uint32_t *code)
{
	static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
	size_t		len = sequence_length(s[0]);

	if (len == 0 || len > left)
		return 0;
	*code = len == 1 ? s[0] : s[0] & (0x7Fu >> len);
	for (size_t i = 1; i < len; i++)
	{
		if ((s[i] & 0xC0) != 0x80)
			return 0;
		*code = (*code << 6) | (s[i] & 0x3Fu);
	}
	if (*code < smallest[len] || *code > 0x10FFFF || (*code >= 0xD800 && *code <= 0xDFFF))
		return 0;
	return len;
}
