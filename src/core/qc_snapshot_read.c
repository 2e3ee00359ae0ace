/*
 * qc_snapshot_read.c
 *		Reading a snapshot from its head to its end, and checking all of it.
 *
 * A row is believed for its checksum; that none is missing, twice or of another snapshot follows from the order of the keys,
 * the number of rows, the sum of their checksums and the length, all of which stand in the head.  Runs at start and in
 * tools, allocates.
 */
#include "qc_snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 65536

/* A snapshot that is being read. */
typedef struct Reading
{
	const QcIo *io;
	QcHandle	handle;
	char		path[QC_PATH_MAX];
	uint8_t    *buf;			/* window on the file */
	size_t		cap;
	size_t		len;
	size_t		at;				/* in the window: the next row */
	uint64_t	position;		/* of the window */
	uint8_t		last_key[QC_SNAPSHOT_KEY_MAX];
	uint16_t	last_len;
	uint64_t	rows;
	uint64_t	checksums;
} Reading;

/* Move the window to the next row, with `need` bytes of it, as far as the file has them. */
static QcStatus
refill(Reading *reading, uint64_t need, QcError *err)
{
	size_t		want = need > CHUNK ? (size_t) need : CHUNK;
	int			rc;

	reading->position += reading->at;
	reading->at = reading->len = 0;
	if (want > reading->cap)
	{
		uint8_t    *more = realloc(reading->buf, want);

		if (more == NULL)
			return qc_error_at(err, QC_FULL, reading->path, UINT64_MAX, "out of memory");
		reading->buf = more;
		reading->cap = want;
	}
	rc = reading->io->read(reading->io->context, reading->handle, reading->buf, want,
						   reading->position, &reading->len);
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, reading->path, "could not read snapshot");
}

static QcStatus
damaged(const Reading *reading, const char *what, QcError *err)
{
	return qc_error_at(err, QC_DAMAGED, reading->path, reading->position + reading->at, "%s", what);
}

static QcStatus
read_head(Reading *reading, uint64_t seq, uint64_t directory_id, QcSnapshotHead *head, QcError *err)
{
	uint64_t	size;
	int			rc = reading->io->size(reading->io->context, reading->handle, &size);
	QcStatus	status = rc == 0 ? refill(reading, QC_SNAPSHOT_HEAD_SIZE, err) :
		qc_error_sys(err, rc, reading->path, "could not get the size of snapshot");

	if (status != QC_OK)
		return status;
	status = qc_snapshot_head_decode(reading->buf, reading->len, head, err);
	if (status == QC_VERSION)
	{
		qc_error_locate(err, reading->path, 0);
		return status;
	}
	if (status != QC_OK || head->seq != seq || head->length != size)
		return damaged(reading, status != QC_OK ? "snapshot has a damaged head" :
					   "snapshot is not what its name and length say", err);
	if (directory_id != 0 && head->directory_id != directory_id)
		return qc_error_at(err, QC_FOREIGN, reading->path, 0,
						   "snapshot belongs to another directory");
	reading->at = QC_SNAPSHOT_HEAD_SIZE;
	return QC_OK;
}

/* Keys ascend. */
static bool
follows(const Reading *reading, const QcSnapshotRow *row)
{
	uint16_t	len = row->key_len < reading->last_len ? row->key_len : reading->last_len;
	int			order = len == 0 ? 0 : memcmp(row->key, reading->last_key, len);

	return order > 0 || (order == 0 && row->key_len > reading->last_len);
}

/* The next row; QC_END behind the last. */
static QcStatus
next_row(Reading *reading, uint64_t length, QcSnapshotRow *row, QcError *err)
{
	for (;;)
	{
		uint64_t	left = length - (reading->position + reading->at);
		uint64_t	need;
		QcReader	r;
		QcStatus	status;

		if (left == 0)
			return QC_END;
		qc_reader_init(&r, reading->buf + reading->at, reading->len - reading->at);
		status = qc_snapshot_row_get(&r, row, &need, err);
		if (status == QC_DAMAGED)
			return damaged(reading, "snapshot has a damaged row", err);
		if (need > left)
			return damaged(reading, "snapshot ends within a row", err);
		if (status == QC_OK)
		{
			if (!follows(reading, row))
				return damaged(reading, "rows of the snapshot are not in order", err);
			memcpy(reading->last_key, row->key, row->key_len);
			reading->last_len = row->key_len;
			reading->at += (size_t) need;
			return QC_OK;
		}
		if (reading->at == 0 && reading->len >= need)
			return damaged(reading, "snapshot has a damaged row", err);
		status = refill(reading, need, err);
		if (status != QC_OK)
			return status;
		if (reading->len < need)
			return damaged(reading, "snapshot ends within a row", err);
	}
}

static QcStatus
read_rows(Reading *reading, const QcSnapshotHead *head, QcRowVisitor visit, void *context,
		  QcError *err)
{
	QcSnapshotRow row;
	QcStatus	status;

	while ((status = next_row(reading, head->length, &row, err)) == QC_OK)
	{
		reading->rows++;
		reading->checksums += row.checksum;
		status = visit == NULL ? QC_OK :
			visit(context, row.key, row.key_len, row.value, row.value_len, err);
		if (status != QC_OK)
			return status;
	}
	if (status == QC_END && (reading->rows != head->rows || reading->checksums != head->checksums))
		return damaged(reading, "snapshot does not hold the rows that its head counts", err);
	return status == QC_END ? QC_OK : status;
}

QcStatus
qc_snapshot_read(const QcIo *io, uint64_t seq, uint64_t directory_id, QcRowVisitor visit,
				 void *context, QcSnapshotHead *head, QcError *err)
{
	Reading		reading = {.io = io};
	QcStatus	status;
	int			rc;

	qc_path_snapshot(reading.path, seq);
	rc = io->open(io->context, reading.path, 0, &reading.handle);
	if (rc == ENOENT)
		return qc_error_at(err, QC_MISSING, reading.path, UINT64_MAX, "snapshot does not exist");
	if (rc != 0)
		return qc_error_sys(err, rc, reading.path, "could not open snapshot");
	status = read_head(&reading, seq, directory_id, head, err);
	if (status == QC_OK)
		status = read_rows(&reading, head, visit, context, err);
	io->close(io->context, reading.handle);
	free(reading.buf);
	return status;
}
