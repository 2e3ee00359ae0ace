/*
 * qc_snapshot.h
 *		Snapshots: copies of the checkpoint that never change, in snapshots/ of the data directory.
 *
 * A start uses one when the checkpoint store is damaged or gone, or, in a copy of the directory, does not fit the logs.  It then
 * replays what lies behind the snapshot's mark, so nothing that this needs may be taken away while the snapshot is kept
 * (qc_start_floor).
 *
 * File snapshots/s<mark>.qsnap: a head of 64 bytes, then rows in the order of their keys.
 *	 head	magic "QQSNAP1\0", directory id, mark, created at (microseconds since the Unix epoch), number of rows, sum of
 *			their checksums, length of the file (u64 each), checksum of the 56 bytes before
 *	 row	u16 length of the key, u32 length of the value, key, value, u64 checksum (of the digests of key and value)
 * It is written under the name <name>.tmp, synced and renamed, so that one with the right name is whole.
 *
 * Written by the process that owns the checkpoint store, read at start and by tools.  Writing allocates nothing.
 */
#ifndef QC_SNAPSHOT_H
#define QC_SNAPSHOT_H

#include "qc_bytes.h"
#include "qc_error.h"
#include "qc_io.h"
#include "qc_logfile.h"

#define QC_SNAPSHOT_DIRECTORY	"snapshots"
#define QC_SNAPSHOT_HEAD_SIZE	64
#define QC_SNAPSHOT_ROW_SIZE	14	/* of a row beside key and value */
#define QC_SNAPSHOT_KEY_MAX		400
#define QC_SNAPSHOTS_KEPT		2	/* the newest ones */
#define QC_SNAPSHOT_LIST_MAX	32

typedef struct QcSnapshotHead
{
	uint64_t	directory_id;
	uint64_t	seq;			/* the mark: rows are the state after this entry */
	int64_t		created_at;
	uint64_t	rows;
	uint64_t	checksums;
	uint64_t	length;
} QcSnapshotHead;

typedef struct QcSnapshotRow
{
	const uint8_t *key;
	uint16_t	key_len;
	const uint8_t *value;
	uint32_t	value_len;
	uint64_t	checksum;
} QcSnapshotRow;

/* Called for each row in key order; a status other than QC_OK stops and is returned. */
typedef QcStatus (*QcRowVisitor) (void *context, const uint8_t *key, size_t key_len,
								  const uint8_t *value, size_t value_len, QcError *err);

/* ---- format ---- */

extern void qc_path_snapshot(char out[QC_PATH_MAX], uint64_t seq);

/* Exact match of s<decimal without leading zero>.qsnap. */
extern bool qc_name_parse_snapshot(const char *name, uint64_t *seq);

extern void qc_snapshot_head_encode(uint8_t out[QC_SNAPSHOT_HEAD_SIZE], const QcSnapshotHead *head);

/* QC_DAMAGED unless these are the bytes of a head; QC_SHORT when len is less. */
extern QcStatus qc_snapshot_head_decode(const uint8_t *buf, size_t len, QcSnapshotHead *head,
										QcError *err);

/*
 * The row that stands at the reader, which moves behind it; bytes are in place.	QC_SHORT (reader unmoved): *need bytes are
 * needed for it.  QC_DAMAGED: it is none.
 */
extern QcStatus qc_snapshot_row_get(QcReader *r, QcSnapshotRow *row, uint64_t *need, QcError *err);

/* ---- writing ---- */

typedef struct QcSnapshotWriter
{
	const QcIo *io;
	QcHandle	handle;			/* negative = nothing is open */
	QcSnapshotHead head;
	uint64_t	position;		/* of buf in the file */
	QcWriter	w;				/* over buf */
	uint8_t		buf[65536];
} QcSnapshotWriter;

/* Begin the snapshot with this mark; what an earlier attempt left of it is removed. */
extern QcStatus qc_snapshot_begin(QcSnapshotWriter *writer, const QcIo *io, uint64_t directory_id,
								  uint64_t seq, int64_t created_at, QcError *err);

/* Add a row; keys ascend.  A QcRowVisitor, whose context is the writer. */
extern QcStatus qc_snapshot_row(void *writer, const uint8_t *key, size_t key_len,
								const uint8_t *value, size_t value_len, QcError *err);

/* After the last row: write the head and sync.  Then it may be published, or abandoned. */
extern QcStatus qc_snapshot_finish(QcSnapshotWriter *writer, QcError *err);

/* Give it its name, durably. */
extern QcStatus qc_snapshot_publish(QcSnapshotWriter *writer, QcError *err);

/* Close and remove what was written; after an error of any of the above, too. */
extern void qc_snapshot_abandon(QcSnapshotWriter *writer);

/* ---- those that exist ---- */

/* Marks of the snapshots, newest first; *n at most QC_SNAPSHOT_LIST_MAX.  A missing directory holds none. */
extern QcStatus qc_snapshot_list(const QcIo *io, uint64_t seqs[QC_SNAPSHOT_LIST_MAX], uint32_t *n,
								 QcError *err);

/* Mark of the oldest snapshot that is not below the floor, with which a start is possible; 0 = there is none. */
extern QcStatus qc_snapshot_oldest(const QcIo *io, uint64_t floor, uint64_t *oldest, QcError *err);

/*
 * Remove all but the newest `kept`, and those below `floor`, with which no start is possible any more.	*oldest: mark of the
 * oldest one left, UINT64_MAX = there is none.
 */
extern QcStatus qc_snapshot_trim(const QcIo *io, uint32_t kept, uint64_t floor, uint64_t *oldest,
								 QcError *err);

/*
 * Remove those with a mark at or above `end`, where recovery has found the logs to end: they are of a history that is no more, as
 * may be in a copy whose files are of different moments.
 */
extern QcStatus qc_snapshot_remove_from(const QcIo *io, uint64_t end, QcError *err);

/*
 * Read the snapshot with this mark and check all of it; visit (NULL: only check) is shown each row as it is read, so before
 * the rest is checked.	directory_id 0 = any.  QC_DAMAGED, QC_FOREIGN (of another directory), QC_MISSING.  Allocates.
 */
extern QcStatus qc_snapshot_read(const QcIo *io, uint64_t seq, uint64_t directory_id,
								 QcRowVisitor visit, void *context, QcSnapshotHead *head,
								 QcError *err);

#endif							/* QC_SNAPSHOT_H */
