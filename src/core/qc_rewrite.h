/*
 * qc_rewrite.h
 *		Writing a closed file anew with only those of its records that are needed.
 *
 * The new file has the old one's name, number and header, and the needed message records byte for byte in their old order; entries, pads and
 * the zeros at the end are left out.  It is written beside (r*.qlog.tmp) and synced while the old one is read; publishing is a
 * rename.  Before and after a crash in it the one or the other is there whole.  An index of the old content says a greater
 * length than the new file has, and so is known for wrong.
 *
 * Copying takes no lock.	Whoever publishes has dropped the file's entries from the memory index, and no base backup runs.
 */
#ifndef QC_REWRITE_H
#define QC_REWRITE_H

#include "qc_hashes.h"
#include "qc_look.h"
#include "qc_remove.h"

typedef struct QcRewrite
{
	QcFiles    *files;
	uint64_t	log;
	uint64_t	file;			/* 0 = nothing stands ready */
	uint64_t	old_size;
	uint64_t	new_size;
	uint8_t    *idx;			/* the .qidx to come, malloc'ed */
	size_t		idx_len;
	QcHashesBuild hashes;		/* the .qhsh to come, when the old file has one */
	bool		has_hashes;
} QcRewrite;

/* Asked every few megabytes; false = stop. It may sleep. */
typedef bool (*QcRewritePause) (void *context);

/*
 * Write what the look calls needed into the new file.	QC_DAMAGED: a needed record is damaged, nothing stands ready;
 * QC_INTERRUPTED: pause said no.
 */
extern QcStatus qc_rewrite_copy(QcRewrite *rewrite, const QcLook *look, QcRewritePause pause,
								void *pause_context, QcError *err);

/* Put the new file in the old one's place, and what is derived from it. The caller's caches are to forget the file. */
extern QcStatus qc_rewrite_publish(QcRewrite *rewrite, QcStepHook step, void *step_context,
								   QcError *err);

/* Give it up. */
extern void qc_rewrite_drop(QcRewrite *rewrite);

#endif							/* QC_REWRITE_H */
