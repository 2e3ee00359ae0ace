/*
 * qlog_report.h
 *		From the core's error record to ereport: the only place that maps core codes to SQLSTATE.
 */
#ifndef QLOG_REPORT_H
#define QLOG_REPORT_H

#include "postgres.h"

#include "../core/qc_error.h"

/* ereport(level) with the SQLSTATE of err->code, file and position in the DETAIL. what: primary message. */
extern void qlog_report(int level, const QcError *err, const char *what);

/* That the start was refused; repairable: qlog_repair(NULL) is a way out. */
extern void qlog_report_refused(int level, const QcError *err, bool repairable);

/* The SQLSTATE (MAKE_SQLSTATE) of a core code: XX001 damaged, 53100 no space, 53200 full, 58030 I/O, ... */
extern int	qlog_sqlstate(QcStatus code);

#endif							/* QLOG_REPORT_H */
