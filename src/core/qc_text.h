/*
 * qc_text.h
 *		Small text files of "key = value" lines: IDENTITY, LANES, SHARDS, SITES, FLOOR, the node marker.
 *
 * The first line is "format_version = <number>"; then each key stands once, and nothing else does.	They are read whole at
 * start, and written so that after a crash they are old or new.
 */
#ifndef QC_TEXT_H
#define QC_TEXT_H

#include "qc_error.h"
#include "qc_io.h"

#define QC_TEXT_VALUE	1024	/* longest value, terminator included */
#define QC_TEXT_MAX		4096	/* longest file */

typedef struct QcTextField
{
	const char *key;
	bool		seen;
	char		value[QC_TEXT_VALUE];
} QcTextField;

/*
 * Read these fields, whose keys are set and whose rest is zero.  QC_MISSING when there is no such file, QC_DAMAGED when it has
 * another text, QC_VERSION when its version is newer, QC_LIMIT when it is longer than QC_TEXT_MAX.
 */
extern QcStatus qc_text_read(const QcIo *io, const char *path, QcTextField *fields, int nfields, QcError *err);

/* Replace the file: version, then `lines`, each ended by a newline. */
extern QcStatus qc_text_write(const QcIo *io, const char *path, const char *lines, QcError *err);

/* An unsigned decimal number and nothing else. */
extern bool qc_text_number(const char *text, uint64_t *value);

/* The error of a file whose text is not what it should be. */
extern QcStatus qc_text_damaged(const char *path, QcError *err);

/* Forget a QC_MISSING where a missing file has a meaning. */
extern QcStatus qc_text_or_missing(QcStatus status, bool *missing, QcError *err);

#endif							/* QC_TEXT_H */
