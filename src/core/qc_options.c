/*
 * qc_options.c
 *		Table of queue options and their encoding.
 */
#include "qc_options.h"

#include <assert.h>
#include <string.h>

static const QcOptionInfo option_info[QC_OPTION_COUNT_] = {
#define QC_OPTION_ROW(number, NAME, name, type, def, min, max) \
	{name, QC_OPTION_##type, def, min, max},
	QC_OPTION_LIST(QC_OPTION_ROW)
#undef QC_OPTION_ROW
};

const QcOptionInfo *
qc_option_info(QcOption option)
{
	assert((int) option >= 0 && option < QC_OPTION_COUNT_);
	return &option_info[option];
}

QcOption
qc_option_by_name(const char *name)
{
	for (int i = 0; i < QC_OPTION_NAMED; i++)
	{
		if (strcmp(option_info[i].name, name) == 0)
			return (QcOption) i;
	}
	return QC_OPTION_COUNT_;
}

void
qc_options_default(QcOptions *options)
{
	options->set = 0;
	for (int i = 0; i < QC_OPTION_COUNT_; i++)
		options->value[i] = option_info[i].def;
}

void
qc_options_put(QcWriter *w, const QcOptions *options)
{
	for (int i = 0; i < QC_OPTION_COUNT_; i++)
	{
		if ((options->set & (1u << i)) == 0)
			continue;
		qc_put_u8(w, (uint8_t) i);
		qc_put_u64(w, (uint64_t) options->value[i]);
	}
}

QcStatus
qc_options_get(const uint8_t *bytes, size_t len, QcOptions *options, QcError *err)
{
	QcReader	r;

	qc_options_default(options);
	qc_reader_init(&r, bytes, len);
	while (qc_reader_left(&r) > 0)
	{
		uint8_t		number = qc_get_u8(&r);
		uint64_t	value = qc_get_u64(&r);

		if (r.bad)
			return qc_error_set(err, QC_DAMAGED, "queue options are cut short");
		if (number >= QC_OPTION_COUNT_)
			return qc_error_set(err, QC_VERSION, "unknown queue option %u", number);
		options->set |= 1u << number;
		options->value[number] = (int64_t) value;
	}
	return QC_OK;
}
