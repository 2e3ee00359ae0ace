/*
 * json_grammar.c
 *		The grammar of JSON (RFC 8259) as a function per rule.
 *
 * Each takes where it stands and answers where it ends, NULL = the rule does not match.  Slow and recursive, unlike what it
 * is compared with.
 */
#include "json_grammar.h"

#include <stdint.h>
#include <string.h>

typedef struct Text
{
	const uint8_t *end;
	int			depth;
	int			deepest;
} Text;

static const uint8_t *value(Text *t, const uint8_t *at);

static const uint8_t *
ws(const Text *t, const uint8_t *at)
{
	while (at < t->end && (*at == 0x20 || *at == 0x09 || *at == 0x0A || *at == 0x0D))
		at++;
	return at;
}

/* One byte out of a range. */
static const uint8_t *
byte(const Text *t, const uint8_t *at, int low, int high)
{
	return at != NULL && at < t->end && *at >= low && *at <= high ? at + 1 : NULL;
}

static const uint8_t *
literal(const Text *t, const uint8_t *at, const char *word)
{
	for (; at != NULL && *word != '\0'; word++)
		at = byte(t, at, *word, *word);
	return at;
}

/* A structural byte with white space around it. */
static const uint8_t *
structural(const Text *t, const uint8_t *at, char c)
{
	at = at == NULL ? NULL : byte(t, ws(t, at), c, c);
	return at == NULL ? NULL : ws(t, at);
}

static const uint8_t *
hex(const Text *t, const uint8_t *at)
{
	const uint8_t *next = byte(t, at, '0', '9');

	next = next != NULL ? next : byte(t, at, 'a', 'f');
	return next != NULL ? next : byte(t, at, 'A', 'F');
}

static const uint8_t *
character(const Text *t, const uint8_t *at)
{
	const uint8_t *next = byte(t, at, '\\', '\\');

	if (next == NULL)
		return byte(t, at, '"', '"') != NULL ? NULL : byte(t, at, 0x20, 0xFF);
	for (const char *c = "\"\\/bfnrt"; *c != '\0'; c++)
	{
		if (byte(t, next, *c, *c) != NULL)
			return next + 1;
	}
	return hex(t, hex(t, hex(t, hex(t, byte(t, next, 'u', 'u')))));
}

static const uint8_t *
string(const Text *t, const uint8_t *at)
{
	const uint8_t *next;

	at = byte(t, at, '"', '"');
	while (at != NULL && (next = character(t, at)) != NULL)
		at = next;
	return byte(t, at, '"', '"');
}

static const uint8_t *
digits(const Text *t, const uint8_t *at)
{
	const uint8_t *next;

	at = byte(t, at, '0', '9');
	while (at != NULL && (next = byte(t, at, '0', '9')) != NULL)
		at = next;
	return at;
}

static const uint8_t *
number(const Text *t, const uint8_t *at)
{
	const uint8_t *next = byte(t, at, '-', '-');

	at = next != NULL ? next : at;
	next = byte(t, at, '0', '0');
	at = next != NULL ? next : digits(t, at);
	next = byte(t, at, '.', '.');
	at = next != NULL ? digits(t, next) : at;
	next = byte(t, at, 'e', 'e');
	next = next != NULL ? next : byte(t, at, 'E', 'E');
	if (next == NULL)
		return at;
	at = next;
	next = byte(t, at, '+', '+');
	next = next != NULL ? next : byte(t, at, '-', '-');
	return digits(t, next != NULL ? next : at);
}

static const uint8_t *
member(Text *t, const uint8_t *at)
{
	at = structural(t, string(t, at), ':');
	return at == NULL ? NULL : value(t, at);
}

/* A container: members or values between its brackets, separated by commas. */
static const uint8_t *
container(Text *t, const uint8_t *at, char open, char close,
		  const uint8_t *(*item) (Text *t, const uint8_t *at))
{
	const uint8_t *next;

	at = structural(t, at, open);
	if (at == NULL)
		return NULL;
	next = byte(t, at, close, close);
	if (next != NULL)
		return next;
	if (++t->depth > t->deepest)
		t->deepest = t->depth;
	at = item(t, at);
	while ((next = structural(t, at, ',')) != NULL)
		at = item(t, next);
	t->depth--;
	return at == NULL ? NULL : byte(t, ws(t, at), close, close);
}

static const uint8_t *
value(Text *t, const uint8_t *at)
{
	if (at == t->end)
		return NULL;
	switch (*at)
	{
		case '{':
			return container(t, at, '{', '}', member);
		case '[':
			return container(t, at, '[', ']', value);
		case '"':
			return string(t, at);
		case 't':
			return literal(t, at, "true");
		case 'f':
			return literal(t, at, "false");
		case 'n':
			return literal(t, at, "null");
		default:
			return number(t, at);
	}
}

bool
json_grammar(const char *text, size_t len, int *depth)
{
	Text		t = {(const uint8_t *) text + len, 0, 0};
	const uint8_t *at = value(&t, ws(&t, (const uint8_t *) text));

	*depth = t.deepest;
	return at != NULL && ws(&t, at) == t.end;
}
