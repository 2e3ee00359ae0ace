/*
 * qc_json.c
 *		Is a text JSON?  One pass that builds nothing.
 *
 * Every payload that arrives as text goes through it, so it works on memory only, without recursion: what encloses the
 * place where it stands is one bit per level.  Called by the shell, which leaves what is refused here to PostgreSQL's
 * parser, for its verdict and its message.
 */
#include "qc_json.h"

#include <string.h>

#include "qc_bytes.h"

typedef struct Scan
{
	const uint8_t *at;
	const uint8_t *end;
	uint64_t	objects;		/* bit 0: the innermost container is an object, bit 1: the one
								 * around it ... */
	int			depth;
} Scan;

#define END (-1)

#define BYTES(b) (UINT64_C(0x0101010101010101) * (b))

/* The top bit of the first of these eight bytes that is a quote, a backslash, or below 0x20; bits above it mean nothing. */
static inline uint64_t
specials(uint64_t word)
{
	uint64_t	quote = word ^ BYTES('"');
	uint64_t	backslash = word ^ BYTES('\\');

	/* Such a byte borrows from its top bit, which bytes below 0x80 do not have set otherwise. */
	return ((word - BYTES(0x20)) | (quote - BYTES(1)) | (backslash - BYTES(1))) & ~word & BYTES(0x80);
}

static bool
is_space(uint8_t c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool
is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static bool
is_hex(uint8_t c)
{
	return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* The next byte that is no white space, which is passed as well; END at the end. */
static inline int
next_token(Scan *s)
{
	while (s->at < s->end && is_space(*s->at))
		s->at++;
	return s->at < s->end ? *s->at++ : END;
}

/* What follows a backslash. */
static bool
skip_escape(Scan *s)
{
	uint8_t		c = s->at < s->end ? *s->at++ : 0;

	if (c != 'u')
		return c != 0 && strchr("\"\\/bfnrt", c) != NULL;
	if (s->end - s->at < 4)
		return false;
	for (int i = 0; i < 4; i++)
	{
		if (!is_hex(*s->at++))
			return false;
	}
	return true;
}

/* The next byte of a string that is a quote, a backslash, or below 0x20; the end when there is none. */
static inline const uint8_t *
find_special(const uint8_t *at, const uint8_t *end)
{
	for (; end - at >= 8; at += 8)
	{
		uint64_t	found = specials(qc_load_u64(at));

		if (found != 0)
			return at + __builtin_ctzll(found) / 8;
	}
	while (at < end && *at >= 0x20 && *at != '"' && *at != '\\')
		at++;
	return at;
}

/* The rest of a string, behind its opening quote. */
static bool
skip_string(Scan *s)
{
	for (;;)
	{
		const uint8_t *special = find_special(s->at, s->end);

		if (special == s->end)
			return false;
		s->at = special + 1;
		if (*special == '"')
			return true;
		if (*special != '\\' || !skip_escape(s))
			return false;
	}
}

/* At least one digit. */
static bool
skip_digits(Scan *s)
{
	const uint8_t *first = s->at;

	while (s->at < s->end && is_digit(*s->at))
		s->at++;
	return s->at > first;
}

/* A number, from its first byte on. */
static bool
skip_number(Scan *s)
{
	if (*s->at == '-')
		s->at++;
	if (s->at < s->end && *s->at == '0')
		s->at++;
	else if (!skip_digits(s))
		return false;
	if (s->at < s->end && *s->at == '.')
	{
		s->at++;
		if (!skip_digits(s))
			return false;
	}
	if (s->at < s->end && (*s->at == 'e' || *s->at == 'E'))
	{
		s->at++;
		if (s->at < s->end && (*s->at == '+' || *s->at == '-'))
			s->at++;
		return skip_digits(s);
	}
	return true;
}

/* A word, from its first byte on. */
static bool
skip_word(Scan *s, const char *word, size_t len)
{
	if ((size_t) (s->end - s->at) < len || memcmp(s->at, word, len) != 0)
		return false;
	s->at += len;
	return true;
}

static bool
skip_scalar(Scan *s, int first)
{
	if (first == '"')
		return skip_string(s);
	s->at--;
	switch (first)
	{
		case 't':
			return skip_word(s, "true", 4);
		case 'f':
			return skip_word(s, "false", 5);
		case 'n':
			return skip_word(s, "null", 4);
		default:
			return (first == '-' || is_digit((uint8_t) first)) && skip_number(s);
	}
}

/* A key and its colon; first: the token that should begin it. */
static bool
skip_key(Scan *s, int first)
{
	return first == '"' && skip_string(s) && next_token(s) == ':';
}

/*
 * Enter a container.  1 = it is closed again at once, 0 = a value follows, -1 = neither.
 */
static int
enter(Scan *s, bool object)
{
	int			token = next_token(s);

	if (token == (object ? '}' : ']'))
		return 1;
	if (s->depth == QC_JSON_DEPTH)
		return -1;
	s->depth++;
	s->objects = s->objects << 1 | (object ? 1 : 0);
	if (object)
		return skip_key(s, token) ? 0 : -1;
	s->at -= token != END;
	return 0;
}

/* A value is complete: pass what may stand behind it.  1 = the text is, 0 = another value follows, -1 = neither. */
static int
leave(Scan *s)
{
	while (s->depth > 0)
	{
		bool		object = (s->objects & 1) != 0;
		int			token = next_token(s);

		if (token == ',')
			return !object || skip_key(s, next_token(s)) ? 0 : -1;
		if (token != (object ? '}' : ']'))
			return -1;
		s->objects >>= 1;
		s->depth--;
	}
	return next_token(s) == END ? 1 : -1;
}

bool
qc_json_valid(const void *text, size_t len)
{
	Scan		s = {text, (const uint8_t *) text + len, 0, 0};
	int			done = 0;

	while (done == 0)
	{
		int			token = next_token(&s);

		if (token == '{' || token == '[')
		{
			done = enter(&s, token == '{');
			if (done <= 0)
				continue;
		}
		else if (token == END || !skip_scalar(&s, token))
			return false;
		done = leave(&s);
	}
	return done > 0;
}
