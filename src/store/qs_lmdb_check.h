/*
 * qs_lmdb_check.h
 *		Look through a data.mdb before LMDB maps it.
 *
 * LMDB trusts its file: a damaged page ends in an assertion or a bus error, which would take a
 * server down again at every start.  So every page that LMDB could follow a pointer to is checked
 * with ordinary reads first.  Values are not: each row has a checksum of its own.
 */
#ifndef QS_LMDB_CHECK_H
#define QS_LMDB_CHECK_H

#include "../core/qc_error.h"

/*
 * Check the file at path, which nobody writes to at the moment.  `file` names it in errors, whose
 * position is the byte where the damaged page starts.  QC_DAMAGED, QC_VERSION for another version
 * of LMDB's format, QC_IO.  Reads every page once and allocates a bit per page.
 */
extern QcStatus qs_lmdb_check(const char *path, const char *file, QcError *err);

#endif							/* QS_LMDB_CHECK_H */
