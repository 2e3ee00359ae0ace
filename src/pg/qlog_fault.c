/*
 * qlog_fault.c
 *		The setting qlog.debug_fault: its text, and what it orders.
 */
#include "qlog_fault.h"

char	   *qlog_debug_fault = NULL;
int			qlog_fault_errno[QLOG_FAULT_COUNT];
int64		qlog_fault_room = 0;

static const char *const places[] = {
#define FAULT_NAME(name, text) text,
	QLOG_FAULT_LIST(FAULT_NAME)
#undef FAULT_NAME
};

typedef struct FaultError
{
	const char *name;
	int			number;
} FaultError;

static const FaultError errors[] = {
	{"EIO", EIO},
	{"EMFILE", EMFILE},
	{"ENOSPC", ENOSPC}
};

/* Are these len bytes this word? */
static bool
is_word(const char *at, size_t len, const char *word)
{
	return strlen(word) == len && strncmp(at, word, len) == 0;
}

/* One item, "place=ERROR"; false when it is not. */
static bool
parse_item(const char *at, size_t len, int out[QLOG_FAULT_COUNT])
{
	const char *equals = memchr(at, '=', len);
	int			number = 0;

	if (equals == NULL)
		return false;
	for (size_t i = 0; i < lengthof(errors); i++)
	{
		if (is_word(equals + 1, len - (size_t) (equals + 1 - at), errors[i].name))
			number = errors[i].number;
	}
	for (size_t i = 0; i < lengthof(places) && number != 0; i++)
	{
		if (is_word(at, (size_t) (equals - at), places[i]))
		{
			out[i] = number;
			return true;
		}
	}
	return false;
}

/* The whole list; false when something in it is none of its items. */
static bool
parse(const char *at, int out[QLOG_FAULT_COUNT])
{
	memset(out, 0, QLOG_FAULT_COUNT * sizeof(int));
	at += strspn(at, ", ");
	while (*at != '\0')
	{
		size_t		len = strcspn(at, ", ");

		if (!parse_item(at, len, out))
			return false;
		at += len;
		at += strspn(at, ", ");
	}
	return true;
}

int
qlog_fault_need(QlogFault place, uint64 bytes)
{
	int			error = qlog_fault(place);

	if (error != ENOSPC || qlog_fault_room < (int64) bytes)
		return error;
	qlog_fault_room -= (int64) bytes;
	return 0;
}

bool
qlog_fault_check(char **value, void **extra, GucSource source)
{
	int			ignored[QLOG_FAULT_COUNT];

	(void) extra;
	(void) source;
	if (*value == NULL || parse(*value, ignored))
		return true;
	GUC_check_errdetail("Items are like \"sync=EIO\", with commas between them.");
	return false;
}

void
qlog_fault_assign(const char *value, void *extra)
{
	(void) extra;
	(void) parse(value == NULL ? "" : value, qlog_fault_errno);
}
