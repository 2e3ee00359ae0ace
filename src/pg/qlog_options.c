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
	[QC_OPTION_BYTES] = "a number of bytes, or a size as a string",
	[QC_OPTION_COUNT] = "a whole number",
	[QC_OPTION_BOOL] = "true or false"
};

static void
unknown_option(const char *name)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < QC_OPTION_NAMED; i++)
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

static int64
in_range(const QcOptionInfo *info, int64 value)
{
	if (value < info->min || value > info->max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("queue option \"%s\" is out of range", info->name),
				 errdetail("It must be between %lld and %lld.", (long long) info->min,
						   (long long) info->max)));
	return value;
}

static int64
count_value(const QcOptionInfo *info, const char *text)
{
	char	   *end;
	long long	value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (*text == '\0' || *end != '\0' || errno != 0)
		wrong_type(info);
	return in_range(info, value);
}

static int64
interval_value(const QcOptionInfo *info, const char *text)
{
	Datum		interval = DirectFunctionCall3(interval_in, CStringGetDatum(text),
											   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));

	return qlog_interval_us(DatumGetIntervalP(interval), info->name, info->min, info->max);
}

/* A size with or without a unit. */
static int64
bytes_value(const QcOptionInfo *info, const char *text)
{
	return in_range(info, DatumGetInt64(DirectFunctionCall1(pg_size_bytes,
															CStringGetTextDatum(text))));
}

static int64
bool_value(const QcOptionInfo *info, const char *text)
{
	bool		value;

	if (!parse_bool(text, &value))
		wrong_type(info);
	return value;
}

static int64
text_value(const QcOptionInfo *info, const char *text)
{
	switch (info->type)
	{
		case QC_OPTION_INTERVAL:
			return interval_value(info, text);
		case QC_OPTION_BYTES:
			return bytes_value(info, text);
		case QC_OPTION_COUNT:
			return count_value(info, text);
		case QC_OPTION_BOOL:
			return bool_value(info, text);
	}
	pg_unreachable();
}

/* JSON has types of its own: strings are for what has a unit. */
static int64
json_value(const QcOptionInfo *info, const JsonbValue *value)
{
	if ((info->type == QC_OPTION_INTERVAL || info->type == QC_OPTION_BYTES) &&
		value->type == jbvString)
		return text_value(info, pnstrdup(value->val.string.val, value->val.string.len));
	if (info->type == QC_OPTION_BOOL && value->type == jbvBool)
		return value->val.boolean;
	if ((info->type == QC_OPTION_COUNT || info->type == QC_OPTION_BYTES) &&
		value->type == jbvNumeric)
		return count_value(info, DatumGetCString(DirectFunctionCall1(numeric_out,
																	 NumericGetDatum(value->val.numeric))));
	wrong_type(info);
	pg_unreachable();
}

/* The option of this name; 22023 listing those that there are. */
static QcOption
option_by_name(const char *name)
{
	QcOption	option = qc_option_by_name(name);

	if (option == QC_OPTION_COUNT_)
		unknown_option(name);
	return option;
}

static void
put(QcOptions *options, QcOption option, int64 value)
{
	options->value[option] = value;
	options->set |= 1u << option;
}

void
qlog_options_set(QcOptions *options, const char *name, const char *value)
{
	QcOption	option = option_by_name(name);

	put(options, option, text_value(qc_option_info(option), value));
}

void
qlog_options_reset(QcOptions *options, const char *name)
{
	QcOption	option = option_by_name(name);

	options->value[option] = qc_option_info(option)->def;
	options->set &= ~(1u << option);
}

/* null is the default. */
static void
set_from_json(QcOptions *options, const JsonbValue *key, const JsonbValue *value)
{
	QcOption	option = option_by_name(pnstrdup(key->val.string.val, key->val.string.len));

	if (value->type != jbvNull)
		put(options, option, json_value(qc_option_info(option), value));
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
		set_from_json(options, &key, &value);
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
	for (int i = 0; i < QC_OPTION_NAMED; i++)
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
