/*
 * qc_read_int.h
 *		Inside reading: what its files share (qc_read.h is the contract).
 *
 *	 qc_read.c			from a record's place to a message
 *	 qc_read_index.c	indexes of log files
 *	 qc_read_locate.c	which file holds a record; walking over files
 */
#ifndef QC_READ_INT_H
#define QC_READ_INT_H

#include "qc_read.h"

#define QC_NO_BAD_PLACE UINT64_MAX

/* Entry of the record whose header stands at h; false when it is no message record. */
extern bool qc_read_entry_of(const uint8_t *h, uint64_t position, QcIdxEntry *entry);

/* Is the record that this entry tells of really the one that stands in the file? */
extern bool qc_read_entry_right(QcFiles *files, uint64_t log, uint64_t file, const QcIdxEntry *entry);

/* The slot that holds this file's index, or the one to use for it (its file is another one). */
extern QcReadIndex *qc_read_slot(QcReadCache *cache, uint64_t log, uint64_t file);

/* Make the index cover the whole file as it is now; *index is a slot, of this file or of another one. */
extern QcStatus qc_read_refresh(QcReadCache *cache, QcReadIndex *index, uint64_t log, uint64_t file,
								QcError *err);

/*
 * Look into one file, whose index is loaded or made when it is not there.	Entries stay right when the file grows: only
 * a miss needs the index to be complete.  *bad_position: as QcReadIndex.
 */
extern QcStatus qc_read_find_in_file(QcReadCache *cache, uint64_t log, uint64_t file,
									 uint64_t partition, uint64_t position, QcIdxEntry *found,
									 bool *hit, uint64_t *bad_position, QcError *err);

/*
 * Ask the file's .qidx without loading it: a few short reads.	false = there is none that can be used.	 What it says is
 * not checked, as its checksum covers all of it: what is found must be right in itself (qc_read_entry_right), what is not found
 * may be there.
 */
extern bool qc_read_ask_qidx(QcReadCache *cache, uint64_t log, uint64_t file, uint64_t partition,
							 uint64_t position, QcIdxEntry *found, QcIdxSide *side);

#endif							/* QC_READ_INT_H */
