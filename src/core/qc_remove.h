/*
 * qc_remove.h
 *		Taking closed files of a log away, and what half-done work has left in its directory.
 *
 * A file goes in steps: its derived files, a rename to *.dead, a sync of the directory, then its bytes and its name.  After a crash at
 * any of them it is there whole, or gone, or a *.dead that the next start or pass sweeps.	Its bytes go by truncation, so that the
 * room is free at once, whoever still has it open; such a reader finds a short file, and looks again.
 *
 * No lock; whoever calls has seen to it that nothing is needed (qc_reclaim.h) and that no base backup runs.
 */
#ifndef QC_REMOVE_H
#define QC_REMOVE_H

#include "qc_files.h"

/* Told after each step, for tests that kill the server there; NULL = nobody. */
typedef void (*QcStepHook) (void *context, const char *step);

/* Remove these files, ascending, of one log. Those that are not there any more are fine. */
extern QcStatus qc_remove_files(QcFiles *files, uint64_t log, const uint64_t *ids, uint32_t n,
								QcStepHook step, void *step_context, QcError *err);

/*
 * Remove *.dead files, rewritten files that were never published (r*.qlog.tmp), and indexes below file `below` whose log file is not
 * there.  Only whoever rewrites files may call it while serving.
 */
extern QcStatus qc_remove_leftovers(QcFiles *files, uint64_t log, uint64_t below, QcError *err);

#endif							/* QC_REMOVE_H */
