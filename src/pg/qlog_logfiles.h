/*
 * qlog_logfiles.h
 *		The files of a log, as its directory has them.
 *
 * Callers: fn_files.c, qlog_verify.c, wrk_scrub.c.
 */
#ifndef QLOG_LOGFILES_H
#define QLOG_LOGFILES_H

#include "postgres.h"

/* Their ids, ascending, palloc'ed; none when the log has gone.	53200; 58030 when the directory cannot be read. */
extern uint64 *qlog_log_files(uint64 log, uint32 *n);

#endif							/* QLOG_LOGFILES_H */
