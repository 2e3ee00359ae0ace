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
 * Options out of a JSON object: intervals are strings, counts and bytes are numbers, switches are booleans; null is the
 * default.	 22023 for an unknown name (listing the valid ones), a wrong type or a value out of range; 0A000 for options
 * that have no effect in this version.
 */
extern void qlog_options_parse(Jsonb *json, QcOptions *options);

/* The options that were set, as a jsonb datum. */
extern Datum qlog_options_show(const QcOptions *options);

#endif							/* QLOG_OPTIONS_H */
