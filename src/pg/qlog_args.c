/*
 * qlog_args.c
 *		Checks at the door of every SQL function.
 */
#include "qlog_args.h"

#include "common/int.h"
#include "common/jsonapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/jsonfuncs.h"

#include "qlog_shmem.h"

#include "../core/qc_json.h"

/* Queue names that begin so are kept for qlog itself. */
#define RESERVED_PREFIX "qlog."

#define REASON_MAX 1024

void
qlog_encoding_check(void)
{
	if (GetDatabaseEncoding() != PG_UTF8)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("queues need a database with encoding UTF8"),
				 errdetail("The encoding of this database is %s.", GetDatabaseEncodingName())));
}

void
qlog_enter_read(const char *function)
{
	if (qlog_shared == NULL)
		qlog_gate_check();
	PreventCommandDuringRecovery(function);
	qlog_encoding_check();
	qlog_gate_check();
}

void
qlog_enter(const char *function)
{
	if (qlog_shared != NULL)
	{
		PreventCommandIfReadOnly(function);

		/* What a parallel worker stages or leases would be nobody's when it ends. */
		PreventCommandIfParallelMode(function);
	}
	qlog_enter_read(function);
}

void
qlog_arg_missing(const char *argument)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("argument \"%s\" must not be null", argument)));
}

void
qlog_arg_invalid(const char *argument, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value for argument \"%s\"", argument),
			 errdetail_internal("%s", detail)));
}

/* Raise what is wrong with a name. */
static void
refuse_name(QcNameFault fault, const char *what)
{
	if (fault == QC_NAME_LONG)
		ereport(ERROR,
				(errcode(ERRCODE_NAME_TOO_LONG),
				 errmsg("name of the %s is too long", what),
				 errdetail("Names may have up to %d bytes.", QLOG_NAME_MAX)));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_NAME),
			 errmsg("invalid name of a %s", what),
			 fault == QC_NAME_EMPTY ? errdetail("The name is empty.") :
			 fault == QC_NAME_CONTROL ? errdetail("The name contains a control character.") :
			 errdetail("The name is not valid UTF-8.")));
}

static QlogName
check_name(Datum datum, const char *what, bool may_be_empty)
{
	text	   *value = DatumGetTextPP(datum);
	size_t		len = VARSIZE_ANY_EXHDR(value);
	QlogName	name = {VARDATA_ANY(value), (uint16) len};

	if (len > 0 || !may_be_empty)
	{
		QcNameFault fault = qc_name_check(name.text, len);

		if (fault != QC_NAME_OK)
			refuse_name(fault, what);
	}
	return name;
}

QlogName
qlog_queue_name(Datum text)
{
	QlogName	name = check_name(text, "queue", false);

	if (name.len >= strlen(RESERVED_PREFIX) &&
		memcmp(name.text, RESERVED_PREFIX, strlen(RESERVED_PREFIX)) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_RESERVED_NAME),
				 errmsg("queue name \"%.*s\" is reserved", QLOG_NAME(name)),
				 errdetail("Names that begin with \"%s\" are reserved for qlog.",
						   RESERVED_PREFIX)));
	return name;
}

QlogName
qlog_partition_name(Datum text)
{
	return check_name(text, "partition", true);
}

QcStr
qlog_reason(Datum value)
{
	text	   *reason = DatumGetTextPP(value);
	QcStr		str = {(const uint8_t *) VARDATA_ANY(reason), 0};

	if (VARSIZE_ANY_EXHDR(reason) > REASON_MAX)
		qlog_arg_invalid("reason", "It may have up to 1024 bytes.");
	str.len = (uint16) VARSIZE_ANY_EXHDR(reason);
	return str;
}

QlogName
qlog_group_name(FunctionCallInfo fcinfo, int n)
{
	QlogName	none = {"", 0};

	return fcinfo->args[n].isnull ? none :
		check_name(fcinfo->args[n].value, "consumer group", true);
}

char *
qlog_interval_text(int64 us)
{
	if (us % USECS_PER_DAY == 0 && us != 0)
		return psprintf(INT64_FORMAT " day%s", us / USECS_PER_DAY, us == USECS_PER_DAY ? "" : "s");
	if (us % USECS_PER_SEC == 0)
		return psprintf(INT64_FORMAT " s", us / USECS_PER_SEC);
	if (us % 1000 == 0)
		return psprintf(INT64_FORMAT " ms", us / 1000);
	return psprintf(INT64_FORMAT " us", us);
}

int64
qlog_interval_us(const Interval *interval, const char *argument, int64 min, int64 max)
{
	int64		days = (int64) interval->month * DAYS_PER_MONTH + interval->day;
	int64		us;

	if (pg_mul_s64_overflow(days, USECS_PER_DAY, &us) ||
		pg_add_s64_overflow(us, interval->time, &us) || us < min || us > max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("interval for \"%s\" is out of range", argument),
				 errdetail("It must be between %s and %s.", qlog_interval_text(min),
						   qlog_interval_text(max))));
	return us;
}

int64
qlog_lease_us(const Interval *lease)
{
	const QcOptionInfo *info = qc_option_info(QC_OPT_LEASE);

	return qlog_interval_us(lease, info->name, info->min, info->max);
}

Interval *
qlog_interval_make(int64 us)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->day = (int32) (us / USECS_PER_DAY > INT_MAX ? INT_MAX : us / USECS_PER_DAY);
	interval->time = us - interval->day * USECS_PER_DAY;
	return interval;
}

void
qlog_json_check(const char *text, int len)
{
	JsonLexContext *lex;

	if (likely(qc_json_valid(text, (size_t) len)))
		return;
	lex = makeJsonLexContextCstringLen(unconstify(char *, text), len, PG_UTF8, false);
	pg_parse_json_or_ereport(lex, &nullSemAction);
	pfree(lex);
}
