/*
 * qc_scan.h
 *		Reading logs record by record: recovery, index rebuild, verification.
 *
 * Not shared, allocates (malloc): used at start and by tools, never while serving a commit.
 */
#ifndef QC_SCAN_H
#define QC_SCAN_H

#include "qc_files.h"
#include "qc_record.h"

/* What ended a scan at this place. */
typedef enum QcScanEnd
{
	QC_SCAN_RECORD,				/* not ended: a record was read */
	QC_SCAN_CLEAN,				/* zeros up to the end of the newest file */
	QC_SCAN_TORN,				/* bytes that are no record, and no valid record behind them */
	QC_SCAN_DAMAGE				/* bytes that are no record, valid records behind them */
} QcScanEnd;

typedef struct QcScan
{
	QcFiles    *files;
	uint64_t	log;
	uint64_t   *file_ids;		/* ascending, all files of the log */
	uint32_t	nfiles;
	uint32_t	at;				/* index of the current file */
	uint64_t	position;		/* of the record just read, or where the scan ended */
	uint64_t	next;			/* where the next record starts; 0 = the file's header was not
								 * looked at */
	uint64_t	size;			/* whole size of the record just read */
	uint64_t	file_size;
	uint64_t	written_end;	/* where the written part of the file left last ends */
	uint64_t	last_seq;		/* of the record just read, or the one before */
	uint8_t    *buf;			/* holds the current record whole */
	size_t		buf_cap;
	uint64_t	buf_position;
	size_t		buf_len;
	QcRecord	record;
	QcScanEnd	end;
	QcError		fault;			/* why it is not CLEAN */
	bool		found;			/* behind the bad place a record stands here: */
	uint32_t	found_at;
	uint64_t	found_position;
} QcScan;

/* What a bad place says about the record that may have stood there. */
typedef struct QcScanProbe
{
	bool		reaches;		/* its len leads exactly to the next valid record, or to zeros up
								 * to the end */
	uint8_t		kind;			/* its kind byte, without the compression bit */
	uint64_t	size;			/* by its len */
} QcScanProbe;

/*
 * Begin at file and position (a record boundary; 0 = the log's first file, first record).  QC_MISSING: no such
 * file; QC_DAMAGED: the file ends before the position.  After any error nothing is left to free.
 */
extern QcStatus qc_scan_begin(QcScan *scan, QcFiles *files, uint64_t log, uint64_t file,
							  uint64_t position, QcError *err);

/*
 * Read the next record, rolling over to the next file at the end of one.  QC_OK with scan->record; QC_END with
 * scan->end telling how, and position where.  Pads are skipped.  A record whose seq is below its predecessor's is
 * bad.  QC_VERSION: a checksummed record of an unknown kind.  Other codes: I/O, memory.
 */
extern QcStatus qc_scan_next(QcScan *scan, QcError *err);

/* The bytes of the current record, whole (record.len + 4). */
extern const uint8_t *qc_scan_bytes(const QcScan *scan);

/*
 * After QC_SCAN_TORN or QC_SCAN_DAMAGE: search bytewise for the next checksummed record, in this file and
 * the later ones; QC_OK puts the scan on it, QC_END = there is none.
 */
extern QcStatus qc_scan_resync(QcScan *scan, QcError *err);

/* After QC_SCAN_TORN or QC_SCAN_DAMAGE, before a resync: look at the bad place. */
extern QcStatus qc_scan_probe(QcScan *scan, QcScanProbe *probe, QcError *err);

/* Number in the name of the current file. */
static inline uint64_t
qc_scan_file(const QcScan *scan)
{
	return scan->file_ids[scan->at];
}

extern void qc_scan_end(QcScan *scan);

#endif							/* QC_SCAN_H */
