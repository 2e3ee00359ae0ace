/*
 * qc_snapshot.c
 *		Format, writing and housekeeping of snapshots (contracts in qc_snapshot.h); reading them: qc_snapshot_read.c.
 */
#include "qc_snapshot.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "qc_record.h"

#define SUFFIX ".qsnap"
#define TMP_SIZE (QC_PATH_MAX + 8)

static const uint8_t magic[8] = {'Q', 'Q', 'S', 'N', 'A', 'P', '1', 0};

/* ---- names ---- */

void
qc_path_snapshot(char out[QC_PATH_MAX], uint64_t seq)
{
	(void) snprintf(out, QC_PATH_MAX, QC_SNAPSHOT_DIRECTORY "/s%" PRIu64 SUFFIX, seq);
}

bool
qc_name_parse_snapshot(const char *name, uint64_t *seq)
{
	char		expected[QC_PATH_MAX];
	const char *at = name + 1;
	uint64_t	value = 0;

	if (name[0] != 's')
		return false;
	for (; *at >= '0' && *at <= '9'; at++)
	{
		uint64_t	digit = (uint64_t) (*at - '0');

		if (value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*seq = value;
	qc_path_snapshot(expected, value);
	return strcmp(name, expected + sizeof(QC_SNAPSHOT_DIRECTORY)) == 0;
}

/* ---- head and rows ---- */

void
qc_snapshot_head_encode(uint8_t out[QC_SNAPSHOT_HEAD_SIZE], const QcSnapshotHead *head)
{
	QcWriter	w;

	qc_writer_init(&w, out, QC_SNAPSHOT_HEAD_SIZE);
	qc_put_bytes(&w, magic, sizeof(magic));
	qc_put_u64(&w, head->directory_id);
	qc_put_u64(&w, head->seq);
	qc_put_u64(&w, (uint64_t) head->created_at);
	qc_put_u64(&w, head->rows);
	qc_put_u64(&w, head->checksums);
	qc_put_u64(&w, head->length);
	qc_put_u64(&w, qc_digest(out, w.len));
	assert(!w.full && w.len == QC_SNAPSHOT_HEAD_SIZE);
}

QcStatus
qc_snapshot_head_decode(const uint8_t *buf, size_t len, QcSnapshotHead *head, QcError *err)
{
	QcReader	r;

	if (len < QC_SNAPSHOT_HEAD_SIZE)
		return qc_error_set(err, QC_SHORT, "snapshot ends within its head");
	if (memcmp(buf, magic, sizeof(magic) - 2) == 0 && buf[6] != magic[6])
		return qc_error_set(err, QC_VERSION, "snapshot has an unknown format version");
	qc_reader_init(&r, buf + sizeof(magic), QC_SNAPSHOT_HEAD_SIZE - sizeof(magic));
	head->directory_id = qc_get_u64(&r);
	head->seq = qc_get_u64(&r);
	head->created_at = (int64_t) qc_get_u64(&r);
	head->rows = qc_get_u64(&r);
	head->checksums = qc_get_u64(&r);
	head->length = qc_get_u64(&r);
	if (memcmp(buf, magic, sizeof(magic)) != 0 ||
		qc_get_u64(&r) != qc_digest(buf, QC_SNAPSHOT_HEAD_SIZE - 8))
		return qc_error_set(err, QC_DAMAGED, "snapshot has a damaged head");
	return QC_OK;
}

static uint64_t
row_checksum(const void *key, size_t key_len, const void *value, size_t value_len)
{
	uint8_t		both[16];

	qc_store_u64(both, qc_digest(key, key_len));
	qc_store_u64(both + 8, qc_digest(value, value_len));
	return qc_digest(both, sizeof(both));
}

QcStatus
qc_snapshot_row_get(QcReader *r, QcSnapshotRow *row, uint64_t *need, QcError *err)
{
	const uint8_t *begin = r->at;
	size_t		left = qc_reader_left(r);

	*need = QC_SNAPSHOT_ROW_SIZE;
	if (left < QC_SNAPSHOT_ROW_SIZE)
		return QC_SHORT;
	row->key_len = qc_load_u16(begin);
	row->value_len = qc_load_u32(begin + 2);
	if (row->key_len == 0 || row->key_len > QC_SNAPSHOT_KEY_MAX)
		return qc_error_set(err, QC_DAMAGED, "a row of the snapshot has an impossible key");
	*need += (uint64_t) row->key_len + row->value_len;
	if (left < *need)
		return QC_SHORT;
	row->key = begin + 6;
	row->value = row->key + row->key_len;
	row->checksum = qc_load_u64(begin + (*need - 8));
	if (row->checksum != row_checksum(row->key, row->key_len, row->value, row->value_len))
		return qc_error_set(err, QC_DAMAGED, "a row of the snapshot has a wrong checksum");
	r->at = begin + *need;
	return QC_OK;
}

/* ---- writing ---- */

static void
temporary_path(const QcSnapshotWriter *writer, char tmp[TMP_SIZE])
{
	char		path[QC_PATH_MAX];

	qc_path_snapshot(path, writer->head.seq);
	(void) snprintf(tmp, TMP_SIZE, "%s.tmp", path);
}

static QcStatus
failed(const QcSnapshotWriter *writer, int rc, const char *what, QcError *err)
{
	char		tmp[TMP_SIZE];

	temporary_path(writer, tmp);
	return qc_error_sys(err, rc, tmp, what);
}

/* Write slices behind what the file has. */
static QcStatus
append(QcSnapshotWriter *writer, const QcIoSlice *slices, int nslices, QcError *err)
{
	int			rc = writer->io->write(writer->io->context, writer->handle, slices, nslices,
									   writer->position);

	if (rc != 0)
		return failed(writer, rc, "could not write snapshot", err);
	for (int i = 0; i < nslices; i++)
		writer->position += slices[i].len;
	return QC_OK;
}

static QcStatus
write_buffer(QcSnapshotWriter *writer, QcError *err)
{
	QcIoSlice	slice = {writer->buf, writer->w.len};
	QcStatus	status = writer->w.len == 0 ? QC_OK : append(writer, &slice, 1, err);

	qc_writer_init(&writer->w, writer->buf, sizeof(writer->buf));
	return status;
}

QcStatus
qc_snapshot_begin(QcSnapshotWriter *writer, const QcIo *io, uint64_t directory_id, uint64_t seq,
				  int64_t created_at, QcError *err)
{
	uint8_t		nothing[QC_SNAPSHOT_HEAD_SIZE] = {0};
	char		tmp[TMP_SIZE];
	int			rc;

	writer->io = io;
	writer->handle = -1;
	writer->position = 0;
	writer->head = (QcSnapshotHead)
	{
		.directory_id = directory_id, .seq = seq, .created_at = created_at
	};
	qc_writer_init(&writer->w, writer->buf, sizeof(writer->buf));
	temporary_path(writer, tmp);
	rc = io->unlink(io->context, tmp);
	if (rc == 0 || rc == ENOENT)
		rc = io->open(io->context, tmp, QC_OPEN_WRITE | QC_OPEN_CREATE, &writer->handle);
	if (rc == ENOENT)
	{
		/* Somebody has removed the snapshots with their directory. */
		rc = io->make_directory(io->context, QC_SNAPSHOT_DIRECTORY);
		if (rc == 0)
			rc = io->sync_directory(io->context, "");
		if (rc == 0)
			rc = io->open(io->context, tmp, QC_OPEN_WRITE | QC_OPEN_CREATE, &writer->handle);
	}
	if (rc != 0)
	{
		writer->handle = -1;
		return failed(writer, rc, "could not create snapshot", err);
	}
	qc_put_bytes(&writer->w, nothing, sizeof(nothing));
	return QC_OK;
}

QcStatus
qc_snapshot_row(void *context, const uint8_t *key, size_t key_len, const uint8_t *value,
				size_t value_len, QcError *err)
{
	QcSnapshotWriter *writer = context;
	uint8_t		lengths[6];
	uint8_t		tail[8];
	uint64_t	checksum = row_checksum(key, key_len, value, value_len);
	const QcIoSlice slices[] = {{lengths, sizeof(lengths)}, {key, key_len}, {value, value_len},
		{tail, sizeof(tail)}};
	size_t		size = key_len + value_len + QC_SNAPSHOT_ROW_SIZE;
	QcStatus	status = QC_OK;

	assert(key_len > 0 && key_len <= QC_SNAPSHOT_KEY_MAX && value_len <= UINT32_MAX);
	qc_store_u16(lengths, (uint16_t) key_len);
	qc_store_u32(lengths + 2, (uint32_t) value_len);
	qc_store_u64(tail, checksum);
	writer->head.rows++;
	writer->head.checksums += checksum;
	if (size > sizeof(writer->buf) - writer->w.len)
		status = write_buffer(writer, err);
	if (status == QC_OK && size > sizeof(writer->buf))
		return append(writer, slices, 4, err);
	for (int i = 0; i < 4 && status == QC_OK; i++)
		qc_put_bytes(&writer->w, slices[i].bytes, slices[i].len);
	assert(!writer->w.full);
	return status;
}

QcStatus
qc_snapshot_finish(QcSnapshotWriter *writer, QcError *err)
{
	uint8_t		head[QC_SNAPSHOT_HEAD_SIZE];
	QcIoSlice	slice = {head, sizeof(head)};
	const QcIo *io = writer->io;
	int			rc;
	QcStatus	status = write_buffer(writer, err);

	if (status != QC_OK)
		return status;
	writer->head.length = writer->position;
	qc_snapshot_head_encode(head, &writer->head);
	rc = io->write(io->context, writer->handle, &slice, 1, 0);
	if (rc == 0)
		rc = io->sync(io->context, writer->handle);
	return rc == 0 ? QC_OK : failed(writer, rc, "could not write snapshot", err);
}

QcStatus
qc_snapshot_publish(QcSnapshotWriter *writer, QcError *err)
{
	const QcIo *io = writer->io;
	char		tmp[TMP_SIZE];
	char		path[QC_PATH_MAX];
	int			rc;

	io->close(io->context, writer->handle);
	writer->handle = -1;
	temporary_path(writer, tmp);
	qc_path_snapshot(path, writer->head.seq);
	rc = io->rename(io->context, tmp, path);
	if (rc == 0)
		rc = io->sync_directory(io->context, QC_SNAPSHOT_DIRECTORY);
	return rc == 0 ? QC_OK : failed(writer, rc, "could not rename snapshot", err);
}

void
qc_snapshot_abandon(QcSnapshotWriter *writer)
{
	char		tmp[TMP_SIZE];

	if (writer->handle >= 0)
		writer->io->close(writer->io->context, writer->handle);
	writer->handle = -1;
	temporary_path(writer, tmp);
	(void) writer->io->unlink(writer->io->context, tmp);
}

/* ---- those that exist ---- */

typedef struct Found
{
	uint64_t   *seqs;			/* newest first */
	uint32_t	n;
} Found;

/* Visitor: keep the newest ones, in order. */
static bool
note_snapshot(void *context, const char *name, bool is_directory)
{
	Found	   *found = context;
	uint64_t	seq;
	uint32_t	at;

	if (is_directory || !qc_name_parse_snapshot(name, &seq))
		return true;
	for (at = found->n; at > 0 && found->seqs[at - 1] < seq; at--)
	{
		if (at < QC_SNAPSHOT_LIST_MAX)
			found->seqs[at] = found->seqs[at - 1];
	}
	if (at < QC_SNAPSHOT_LIST_MAX)
		found->seqs[at] = seq;
	if (found->n < QC_SNAPSHOT_LIST_MAX)
		found->n++;
	return true;
}

QcStatus
qc_snapshot_list(const QcIo *io, uint64_t seqs[QC_SNAPSHOT_LIST_MAX], uint32_t *n, QcError *err)
{
	Found		found = {seqs, 0};
	int			rc = io->list(io->context, QC_SNAPSHOT_DIRECTORY, note_snapshot, &found);

	*n = found.n;
	if (rc == 0 || rc == ENOENT)
		return QC_OK;
	*n = 0;
	return qc_error_sys(err, rc, QC_SNAPSHOT_DIRECTORY, "could not list directory");
}

QcStatus
qc_snapshot_oldest(const QcIo *io, uint64_t floor, uint64_t *oldest, QcError *err)
{
	uint64_t	seqs[QC_SNAPSHOT_LIST_MAX];
	uint32_t	n;
	QcStatus	status = qc_snapshot_list(io, seqs, &n, err);

	while (n > 0 && seqs[n - 1] < floor)
		n--;
	*oldest = n == 0 ? 0 : seqs[n - 1];
	return status;
}

/* Make removals durable. */
static QcStatus
sync_names(const QcIo *io, QcError *err)
{
	int			rc = io->sync_directory(io->context, QC_SNAPSHOT_DIRECTORY);

	return rc == 0 ? QC_OK :
		qc_error_sys(err, rc, QC_SNAPSHOT_DIRECTORY, "could not sync directory");
}

static QcStatus
remove_one(const QcIo *io, uint64_t seq, QcError *err)
{
	char		path[QC_PATH_MAX];
	int			rc;

	qc_path_snapshot(path, seq);
	rc = io->unlink(io->context, path);
	return rc == 0 || rc == ENOENT ? QC_OK :
		qc_error_sys(err, rc, path, "could not remove snapshot");
}

QcStatus
qc_snapshot_trim(const QcIo *io, uint32_t kept, uint64_t floor, uint64_t *oldest, QcError *err)
{
	uint64_t	seqs[QC_SNAPSHOT_LIST_MAX];
	uint32_t	n;
	bool		removed = false;
	QcStatus	status = qc_snapshot_list(io, seqs, &n, err);

	*oldest = UINT64_MAX;
	for (uint32_t i = 0; i < n && status == QC_OK; i++)
	{
		if (i < kept && seqs[i] >= floor)
		{
			*oldest = seqs[i];
			continue;
		}
		status = remove_one(io, seqs[i], err);
		removed = true;
	}
	return status == QC_OK && removed ? sync_names(io, err) : status;
}

QcStatus
qc_snapshot_remove_from(const QcIo *io, uint64_t end, QcError *err)
{
	uint64_t	seqs[QC_SNAPSHOT_LIST_MAX];
	uint32_t	n;
	bool		removed = false;
	QcStatus	status = qc_snapshot_list(io, seqs, &n, err);

	for (uint32_t i = 0; i < n && status == QC_OK && seqs[i] >= end; i++)
	{
		status = remove_one(io, seqs[i], err);
		removed = true;
	}
	return status == QC_OK && removed ? sync_names(io, err) : status;
}
