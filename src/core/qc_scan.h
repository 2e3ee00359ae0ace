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
	uint64_t	next;			/* where the next record starts */
	uint64_t	file_size;
	uint8_t    *buf;			/* holds the current record whole */
	size_t		buf_cap;
	uint64_t	buf_position;
	size_t		buf_len;
	QcRecord	record;
	QcScanEnd	end;
	QcError		fault;			/* why it is not CLEAN */
} QcScan;

/* Begin at file and position (a record boundary; 0 = the log's first file, first record). */
extern QcStatus qc_scan_begin(QcScan *scan, QcFiles *files, uint64_t log, uint64_t file,
							  uint64_t position, QcError *err);

/*
 * Read the next record, rolling over to the next file at the end of one.  QC_OK with scan->record; QC_END with
 * scan->end telling how.  Pads are skipped.  Other codes: I/O.
 */
extern QcStatus qc_scan_next(QcScan *scan, QcError *err);

/* The bytes of the current record, whole (record.len + 4). */
extern const uint8_t *qc_scan_bytes(const QcScan *scan);

/*
 * After QC_SCAN_TORN or QC_SCAN_DAMAGE: search bytewise for the next checksummed record, in this file and
 * the later ones; QC_OK puts the scan on it, QC_END = there is none.
 */
extern QcStatus qc_scan_resync(QcScan *scan, QcError *err);
extern void qc_scan_end(QcScan *scan);

#endif							/* QC_SCAN_H */
