/*
 * qlog_options.h
 *		Queue options as SQL sees them: a JSON object of names and values.
 */
#ifndef QLOG_OPTIONS_H
#define QLOG_OPTIONS_H

#include "postgres.h"

#include "utils/jsonb.h"

#include "../core/qc_options.h"

/*
 * Options out of a JSON object: intervals are strings, counts are numbers, bytes numbers or strings with a unit, switches
 * booleans; null is the default.	22023 for an unknown name (listing the valid ones), a wrong type or a value out of range.
 */
extern void qlog_options_parse(Jsonb *json, QcOptions *options);

/* Set an option from the text of its value; or give it its default back.	Errors as qlog_options_parse. */
extern void qlog_options_set(QcOptions *options, const char *name, const char *value);
extern void qlog_options_reset(QcOptions *options, const char *name);

/* The options that were set, as a jsonb datum. */
extern Datum qlog_options_show(const QcOptions *options);

#endif							/* QLOG_OPTIONS_H */
