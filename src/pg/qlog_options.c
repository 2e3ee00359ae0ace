/*
 * qlog_options.c
 *		Queue options from and to JSON.
 */
#include "qlog_options.h"

#include "utils/builtins.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "qlog_args.h"

static const char *const type_words[] = {
	[QC_OPTION_INTERVAL] = "an interval, as a string",
	[QC_OPTION_BYTES] = "a number of bytes",
	[QC_OPTION_COUNT] = "a whole number",
	[QC_OPTION_BOOL] = "true or false"
};

static void
unknown_option(const char *name)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < QC_OPTION_COUNT_; i++)
		appendStringInfo(&list, "%s%s", i == 0 ? "" : ", ", qc_option_info((QcOption) i)->name);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unrecognized queue option \"%s\"", name),
			 errhint("Valid options are: %s.", list.data)));
}

static void
wrong_type(const QcOptionInfo *info)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value for queue option \"%s\"", info->name),
			 errdetail("It must be %s.", type_words[info->type])));
}

/* A whole number in the option's range. */
static int64
count_value(const QcOptionInfo *info, Numeric numeric)
{
	char	   *text = DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(numeric)));
	char	   *end;
	long long	value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (*end != '\0' || errno != 0)
		wrong_type(info);
	if (value < info->min || value > info->max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("queue option \"%s\" is out of range", info->name),
				 errdetail("It must be between %lld and %lld.", (long long) info->min,
						   (long long) info->max)));
	return value;
}

static int64
interval_value(const QcOptionInfo *info, const JsonbValue *value)
{
	char	   *text = pnstrdup(value->val.string.val, value->val.string.len);
	Datum		interval = DirectFunctionCall3(interval_in, CStringGetDatum(text),
											   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));

	return qlog_interval_us(DatumGetIntervalP(interval), info->name, info->min, info->max);
}

static int64
option_value(const QcOptionInfo *info, const JsonbValue *value)
{
	if (info->type == QC_OPTION_INTERVAL && value->type == jbvString)
		return interval_value(info, value);
	if (info->type == QC_OPTION_BOOL && value->type == jbvBool)
		return value->val.boolean;
	if ((info->type == QC_OPTION_COUNT || info->type == QC_OPTION_BYTES) &&
		value->type == jbvNumeric)
		return count_value(info, value->val.numeric);
	wrong_type(info);
	pg_unreachable();
}

/* Options that do something. */
static const bool effective[QC_OPTION_COUNT_] = {
	[QC_OPT_LEASE] = true,
	[QC_OPT_RETRY_LIMIT] = true,
	[QC_OPT_RETRY_DELAY] = true,
	[QC_OPT_RETRY_DELAY_MAX] = true,
	[QC_OPT_DEAD_LETTERS] = true,
	[QC_OPT_DEDUP_WINDOW] = true,
	[QC_OPT_ORDERED] = true,
	[QC_OPT_COMPRESSION_LEVEL] = true
};

/* Options that would be stored without doing anything are refused. */
static void
check_effective(QcOption option)
{
	StringInfoData list;
	const char *separator = "Options that have an effect are ";

	if (effective[option])
		return;
	initStringInfo(&list);
	for (int i = 0; i < QC_OPTION_COUNT_; i++)
	{
		if (!effective[i])
			continue;
		appendStringInfo(&list, "%s%s", separator, qc_option_info((QcOption) i)->name);
		separator = ", ";
	}
	appendStringInfoChar(&list, '.');
	qlog_unsupported(psprintf("queue option \"%s\"", qc_option_info(option)->name), list.data);
}

static void
set_option(QcOptions *options, const JsonbValue *key, const JsonbValue *value)
{
	char	   *name = pnstrdup(key->val.string.val, key->val.string.len);
	QcOption	option = qc_option_by_name(name);
	int64		number;

	if (option == QC_OPTION_COUNT_)
		unknown_option(name);
	if (value->type == jbvNull)
		return;
	number = option_value(qc_option_info(option), value);
	check_effective(option);
	options->value[option] = number;
	options->set |= 1u << option;
}

void
qlog_options_parse(Jsonb *json, QcOptions *options)
{
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue	key;
	JsonbValue	value;

	qc_options_default(options);
	if (!JB_ROOT_IS_OBJECT(json))
		qlog_arg_invalid("options", "It must be a JSON object.");
	iterator = JsonbIteratorInit(&json->root);
	while ((token = JsonbIteratorNext(&iterator, &key, true)) != WJB_DONE)
	{
		if (token != WJB_KEY)
			continue;
		(void) JsonbIteratorNext(&iterator, &value, true);
		set_option(options, &key, &value);
	}
}

static void
show_value(StringInfo out, const QcOptionInfo *info, int64 value)
{
	if (info->type == QC_OPTION_BOOL)
		appendStringInfoString(out, value ? "true" : "false");
	else if (info->type == QC_OPTION_INTERVAL)
		appendStringInfo(out, "\"%s\"", qlog_interval_text(value));
	else
		appendStringInfo(out, INT64_FORMAT, value);
}

Datum
qlog_options_show(const QcOptions *options)
{
	StringInfoData out;
	const char *separator = "";

	initStringInfo(&out);
	appendStringInfoChar(&out, '{');
	for (int i = 0; i < QC_OPTION_COUNT_; i++)
	{
		const QcOptionInfo *info = qc_option_info((QcOption) i);

		if ((options->set & (1u << i)) == 0)
			continue;
		appendStringInfo(&out, "%s\"%s\": ", separator, info->name);
		show_value(&out, info, options->value[i]);
		separator = ", ";
	}
	appendStringInfoChar(&out, '}');
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(out.data));
}
