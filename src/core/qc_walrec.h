/*
 * qc_walrec.h
 *		Bodies of the WAL records of qlog's resource manager, and the stash: the file into which
 *		redo copies them for recovery.
 *
 *	 entry		u16 version = 1, u16 flags (QC_ENTRY_CARRIED or QC_ENTRY_REFERENCED), u64 directory id,
 *				u64 epoch, u64 seq, u64 full xid (0 = committed by itself), then
 *				carried:	u32 number of parts, and per part: u64 log, u32 size, the record's bytes as
 *							they lie in the log; the whole entry (kind 2) last, stubs are not carried
 *				referenced:	u64 XXH3_64 of the entry payload, u32 its length
 *	 barrier	u16 version, u16 zero, u64 directory id, u64 epoch, u64 S
 *	 epoch		u16 version, u16 zero, u64 directory id, u64 old epoch, u64 new epoch, u64 first seq
 *
 * Stash file: magic "QNSTASH1", then per record: u32 body length, u32 record type, u32 timeline,
 * u32 zero, u64 end LSN, u64 XXH3_64 of the 24 bytes before and the body; body.  A torn tail ends it;
 * the same (type, timeline, LSN) again is a repeated redo and counts once.
 */
#ifndef QC_WALREC_H
#define QC_WALREC_H

#include "qc_bytes.h"
#include "qc_error.h"

#define QC_WALREC_VERSION		1
#define QC_WALREC_CARRIED_HEAD	40	/* bytes before the first part */
#define QC_WALREC_PART_HEAD		12	/* bytes before the record of a part */
#define QC_WALREC_REFERENCED_SIZE 48
#define QC_WALREC_MARK_MAX		36	/* the larger of barrier and epoch */
#define QC_STASH_MAGIC			"QNSTASH1"
#define QC_STASH_MAGIC_SIZE		8
#define QC_STASH_HEAD_SIZE		32

typedef enum QcWalKind
{
	QC_WAL_ENTRY = 0x10,
	QC_WAL_BARRIER = 0x20,
	QC_WAL_EPOCH = 0x30
} QcWalKind;

typedef struct QcWalEntry
{
	uint16_t	flags;
	uint64_t	directory;
	uint64_t	epoch;
	uint64_t	seq;
	uint64_t	xid;
	uint32_t	nparts;			/* carried */
	QcReader	parts;			/* stands before the first part */
	uint64_t	digest;			/* referenced */
	uint32_t	entry_len;		/* referenced */
} QcWalEntry;

typedef struct QcWalMark		/* barrier (seq = S) and epoch (seq = first seq) */
{
	uint64_t	directory;
	uint64_t	epoch;			/* of the barrier; new epoch */
	uint64_t	old_epoch;		/* epoch record only */
	uint64_t	seq;
} QcWalMark;

/*
 * Write a carried entry's head, the number of parts included (40 bytes), or a whole referenced
 * entry (48 bytes).  Of a carried entry the caller then puts exactly nparts parts, each a part head
 * followed by the record's bytes.  entry->flags is exactly one of the two.
 */
extern void qc_wal_entry_put(QcWriter *w, const QcWalEntry *entry);
extern void qc_wal_part_put_head(QcWriter *w, uint64_t log, uint32_t record_size);

extern void qc_wal_mark_put(QcWriter *w, QcWalKind kind, const QcWalMark *mark);

/*
 * Decode and check the structure: exactly one of the flags, parts that fill the body exactly and
 * agree with the len of their records, at least one part.  Checksums of the records are left to
 * qc_record_decode.  QC_VERSION for an unknown version or unknown flags.
 */
extern QcStatus qc_wal_entry_decode(const uint8_t *body, size_t len, QcWalEntry *entry, QcError *err);
extern QcStatus qc_wal_mark_decode(QcWalKind kind, const uint8_t *body, size_t len, QcWalMark *mark,
								   QcError *err);

/* Next part of a carried entry: its log and the record bytes in place. QC_END after the last. */
extern QcStatus qc_wal_part_get(QcReader *parts, uint64_t *log, const uint8_t **record,
								uint32_t *size, QcError *err);

typedef struct QcStashRecord
{
	QcWalKind	kind;
	uint32_t	timeline;
	uint64_t	end_lsn;
	const uint8_t *body;
	uint32_t	body_len;
} QcStashRecord;

extern void qc_stash_put_head(uint8_t head[QC_STASH_HEAD_SIZE], const QcStashRecord *record);

/*
 * Decode at buf: QC_END with no byte left, QC_SHORT or QC_DAMAGED = torn tail from here on,
 * QC_VERSION = intact but of an unknown type; *size = bytes taken.
 */
extern QcStatus qc_stash_get(const uint8_t *buf, size_t avail, QcStashRecord *record, size_t *size,
							 QcError *err);

#endif							/* QC_WALREC_H */
