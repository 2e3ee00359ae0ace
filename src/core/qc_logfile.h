/*
 * qc_logfile.h
 *		Log file header, names of files and directories, and the .qidx index of a closed file.
 *
 * Header of a log file, 32 bytes: magic "QNQLOG1\0", u64 file id (the number in the name), u64 seq
 * of the first record the file was created for (all ones = created ahead, not taken yet), u64 zero.
 *
 * .qidx, 48-byte header: magic "QQIDX1\0\0", u64 file id, u32 count, u32 entry size = 48, u64 length
 * of the log file it describes (its written part), u64 XXH3_64 of the entries, u64 XXH3_64 of the 40
 * header bytes before it; then entries sorted by (partition, first): partition, first, end, created
 * at, position (u64 each), count, len (u32 each; len = as in the record, i.e. size - 4).
 */
#ifndef QC_LOGFILE_H
#define QC_LOGFILE_H

#include "qc_derived.h"

#define QC_FILE_HEADER_SIZE 32
#define QC_FIRST_SEQ_AHEAD	UINT64_MAX
#define QC_PATH_MAX			192 /* relative paths of this layout, terminator included */

typedef struct QcFileHeader
{
	uint64_t	file_id;
	uint64_t	first_seq;
} QcFileHeader;

extern void qc_file_header_encode(uint8_t out[QC_FILE_HEADER_SIZE], const QcFileHeader *header);

/* QC_DAMAGED when magic or reserved bytes are wrong; QC_SHORT when len < 32. */
extern QcStatus qc_file_header_decode(const uint8_t *buf, size_t len, QcFileHeader *header,
									  QcError *err);

/* Layout of log directories, fixed at creation (LANES). */
typedef enum QcLayout
{
	QC_LAYOUT_FLAT,
	QC_LAYOUT_HIERARCHICAL
} QcLayout;

/* "qlog/q7" or "qlog/00/0000/q7": relative to the data directory. */
extern void qc_path_log(char out[QC_PATH_MAX], QcLayout layout, uint64_t log);

/* "qlog/q7/r00000001.qlog"; suffix is "qlog", "qidx" or "qhsh". */
extern void qc_path_file(char out[QC_PATH_MAX], QcLayout layout, uint64_t log, uint64_t file_id,
						 const char *suffix);

/* Exact match of r<8 or more digits>.<suffix>; false for every stray. */
extern bool qc_name_parse_file(const char *name, const char *suffix, uint64_t *file_id);

/* Exact match of q<decimal without leading zero>. */
extern bool qc_name_parse_log(const char *name, uint64_t *log);

/* Queue, partition and group names: 1 to 255 bytes of UTF-8 without control characters. */
typedef enum QcNameFault
{
	QC_NAME_OK,
	QC_NAME_EMPTY,
	QC_NAME_LONG,
	QC_NAME_CONTROL,
	QC_NAME_ENCODING
} QcNameFault;
extern QcNameFault qc_name_check(const char *name, size_t len);

#define QC_IDX_HEADER_SIZE	QC_DERIVED_HEAD_SIZE
#define QC_IDX_ENTRY_SIZE	48

typedef struct QcIdxEntry
{
	uint64_t	partition;
	uint64_t	first;
	uint64_t	end;
	int64_t		created_at;
	uint64_t	position;
	uint32_t	count;
	uint32_t	len;
} QcIdxEntry;

/* Sort by (partition, first) and encode header and entries; out has the exact size. */
extern void qc_idx_encode(uint8_t *out, uint64_t file_id, uint64_t log_length, QcIdxEntry *entries,
						  uint32_t count);

/* Number of entries out of the header alone, for reports; QC_DAMAGED when it is not the header of this file's index. */
extern QcStatus qc_idx_count(const uint8_t header[QC_IDX_HEADER_SIZE], uint64_t file_id,
							 uint32_t *count, QcError *err);

/* Check everything about a whole .qidx against the log file it should describe. QC_DAMAGED = rebuild. */
extern QcStatus qc_idx_check(const uint8_t *buf, size_t len, uint64_t file_id, uint64_t log_length,
							 uint32_t *count, QcError *err);

/* Where a position is as seen from the index of one file; positions of a partition ascend over files. */
typedef enum QcIdxSide
{
	QC_IDX_NOWHERE,				/* the file has no record of the partition */
	QC_IDX_HERE,
	QC_IDX_EARLIER,				/* below all that the file has of the partition */
	QC_IDX_LATER,				/* above it */
	QC_IDX_GAP					/* between, and no record holds it */
} QcIdxSide;

/*
 * Binary search in sorted cells of any size that begin with u64 partition, u64 first, u64 end: how many begin at or before the
 * position of the partition; and where it is as seen from them, *found the one that holds it when it is here.
 */
extern uint32_t qc_cells_begun(const uint8_t *cells, size_t size, uint32_t count,
							   uint64_t partition, uint64_t position);
extern QcIdxSide qc_cells_seek(const uint8_t *cells, size_t size, uint32_t count,
							   uint64_t partition, uint64_t position, uint32_t *found);

/* By binary search over the entries (checked before); *found is set when it is here. */
extern QcIdxSide qc_idx_seek(const uint8_t *entries, uint32_t count, uint64_t partition,
							 uint64_t position, QcIdxEntry *found);

/* The entry that holds the position; false = none. */
extern bool qc_idx_find(const uint8_t *entries, uint32_t count, uint64_t partition,
						uint64_t position, QcIdxEntry *found);
extern void qc_idx_entry_decode(const uint8_t *at, QcIdxEntry *entry);

#endif							/* QC_LOGFILE_H */
