/*
 * qlog_verifying.h
 *		Verifications that run and how far they have come, for the view qlog_stat_progress_verify.
 *
 * A process takes a slot, changes it as it goes, and gives it back; one that raises gives it back at the end of
 * its transaction, or at its exit.  Numbers are read without a lock: a row may mix two moments.
 */
#ifndef QLOG_VERIFYING_H
#define QLOG_VERIFYING_H

#include "qlog_shmem.h"

/* Take a slot of this process; NULL when all are taken: then the work goes on unseen.	what: "verify". */
extern QlogVerifying *qlog_verifying_begin(const char *what);
extern void qlog_verifying_end(QlogVerifying *progress);

#endif							/* QLOG_VERIFYING_H */
