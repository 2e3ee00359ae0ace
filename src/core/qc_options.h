/*
 * qc_options.h
 *		Options of a queue: the one list of names, kinds, defaults and ranges.
 *
 * All values are signed 64-bit numbers: microseconds, bytes, counts or booleans.  Encoded (in
 * queue_create effects and checkpoint rows) only options that were set: u8 number, i64 value.
 */
#ifndef QC_OPTIONS_H
#define QC_OPTIONS_H

#include "qc_bytes.h"
#include "qc_error.h"

#define QC_SECOND	INT64_C(1000000)
#define QC_HOUR		(3600 * QC_SECOND)
#define QC_DAY		(24 * QC_HOUR)
#define QC_FOREVER	INT64_MAX

typedef enum QcOptionType
{
	QC_OPTION_INTERVAL,
	QC_OPTION_BYTES,
	QC_OPTION_COUNT,
	QC_OPTION_BOOL
} QcOptionType;

/* OPTION(number, NAME, "name", type, default, min, max) */
#define QC_OPTION_LIST(OPTION) \
	OPTION(0, LEASE, "lease", INTERVAL, 60 * QC_SECOND, 1000, 365 * QC_DAY) \
	OPTION(1, RETRY_LIMIT, "retry_limit", COUNT, 3, -1, 1000000) \
	OPTION(2, RETRY_DELAY, "retry_delay", INTERVAL, 0, 0, 365 * QC_DAY) \
	OPTION(3, RETRY_DELAY_MAX, "retry_delay_max", INTERVAL, QC_HOUR, 0, 365 * QC_DAY) \
	OPTION(4, DEAD_LETTERS, "dead_letters", BOOL, 1, 0, 1) \
	OPTION(5, DEDUP_WINDOW, "dedup_window", INTERVAL, QC_HOUR, 0, 365 * QC_DAY) \
	OPTION(6, ORDERED, "ordered", BOOL, 0, 0, 1) \
	OPTION(7, RETENTION, "retention", INTERVAL, QC_FOREVER, 0, QC_FOREVER) \
	OPTION(8, RETENTION_BYTES, "retention_bytes", BYTES, QC_FOREVER, 0, QC_FOREVER) \
	OPTION(9, CONSUMED_RETENTION, "consumed_retention", INTERVAL, 0, 0, QC_FOREVER) \
	OPTION(10, MAX_BYTES, "max_bytes", BYTES, QC_FOREVER, 0, QC_FOREVER) \
	OPTION(11, DELAY, "delay", INTERVAL, 0, 0, 365 * QC_DAY) \
	OPTION(12, PARTITION_IDLE, "partition_idle", INTERVAL, 30 * QC_DAY, QC_SECOND, QC_FOREVER) \
	OPTION(13, COMPRESSION_LEVEL, "compression_level", COUNT, -1, -1, 19) \
	OPTION(14, DEDUP_SINCE, "dedup_since", COUNT, 0, 0, INT64_MAX)

typedef enum QcOption
{
#define QC_OPTION_ENUM(number, NAME, name, type, def, min, max) QC_OPT_##NAME = number,
	QC_OPTION_LIST(QC_OPTION_ENUM)
#undef QC_OPTION_ENUM
	QC_OPTION_COUNT_
} QcOption;

/*
 * Options below this number are set by name.  DEDUP_SINCE is not: microseconds since the Unix epoch, dedup ids of before
 * are forgotten, because they had left the window when it was made longer.
 */
#define QC_OPTION_NAMED ((int) QC_OPT_DEDUP_SINCE)

typedef struct QcOptions
{
	uint32_t	set;			/* bit per option: given explicitly */
	int64_t		value[QC_OPTION_COUNT_];
} QcOptions;

typedef struct QcOptionInfo
{
	const char *name;
	QcOptionType type;
	int64_t		def;
	int64_t		min;
	int64_t		max;
} QcOptionInfo;

#define QC_OPTIONS_ENCODED_MAX (9 * QC_OPTION_COUNT_)

extern const QcOptionInfo *qc_option_info(QcOption option);

/* QC_OPTION_COUNT_ when there is no option that is set by this name. */
extern QcOption qc_option_by_name(const char *name);
extern void qc_options_default(QcOptions *options);
extern void qc_options_put(QcWriter *w, const QcOptions *options);

/* Unknown numbers are an error (QC_VERSION): an older library must not forget a newer option. */
extern QcStatus qc_options_get(const uint8_t *bytes, size_t len, QcOptions *options, QcError *err);

#endif							/* QC_OPTIONS_H */
