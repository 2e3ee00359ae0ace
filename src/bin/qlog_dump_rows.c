/*
 * qlog_dump_rows.c
 *		The checkpoint: rows of the store, or of a snapshot, counted and read as far as qlog_dump needs them.
 *
 * The store is opened without its lock, which must not meet a running server (qs_store.h): whether one runs is asked of the
 * lock file first.  Of the rows only those of marks, logs, queues and partitions are looked into.
 */
#define _POSIX_C_SOURCE 200809L

#include "qlog_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qc_array.h"
#include "qc_rows.h"
#include "qc_site.h"
#include "qc_snapshot.h"
#include "qs_store.h"

#define MAP_MAX (UINT64_C(1) << 40)

static uint64_t
key_id(const uint8_t *key)
{
	uint64_t	id = 0;

	for (int i = 1; i <= 8; i++)
		id = id << 8 | key[i];
	return id;
}

/* Fields of a queue's row as far as its name, in the order of doc/format.md. */
static bool
read_queue(DumpRows *rows, uint64_t id, QcReader *r)
{
	DumpQueue  *queue;
	const uint8_t *name;

	if (qc_array_grow(&rows->queues, &rows->cap_queues, rows->nqueues + 1, sizeof(DumpQueue), NULL) != QC_OK)
		return false;
	queue = &rows->queues[rows->nqueues];
	memset(queue, 0, sizeof(*queue));
	queue->id = id;
	queue->database = qc_get_u32(r);
	(void) qc_get_u32(r);
	queue->log = qc_get_u64(r);
	(void) qc_get_u64(r);
	(void) qc_get_u64(r);
	(void) qc_get_u8(r);
	queue->damaged = qc_get_u8(r) != 0;
	for (int i = 0; i < 10; i++)
		(void) qc_get_u64(r);
	name = qc_get_str16(r, &queue->name_len);
	if (r->bad || queue->name_len > sizeof(queue->name))
		return true;
	memcpy(queue->name, name, queue->name_len);
	rows->nqueues++;
	return true;
}

static bool
read_partition(DumpRows *rows, uint64_t id, QcReader *r)
{
	if (qc_array_grow(&rows->partitions, &rows->cap_partitions, rows->npartitions + 1, sizeof(DumpPartition), NULL) != QC_OK)
		return false;
	rows->partitions[rows->npartitions++] = (DumpPartition)
	{
		.id = id, .queue = qc_get_u64(r)
	};
	return true;
}

/* A QcRowVisitor. */
static QcStatus
take_row(void *context, const uint8_t *key, size_t key_len, const uint8_t *value, size_t value_len,
		 QcError *err)
{
	DumpRows   *rows = context;
	bool		room = true;
	QcReader	r;

	qc_reader_init(&r, value, value_len);
	(void) qc_get_u8(&r);
	rows->rows++;
	rows->bytes += key_len + value_len;
	if (key[0] >= 'A' && key[0] <= 'Z')
		rows->kinds[key[0] - 'A']++;
	if (key[0] == QC_ROW_MARK)
		rows->seq = qc_get_u64(&r);
	else if (key[0] == QC_ROW_QUEUE && key_len == 9)
		room = read_queue(rows, key_id(key), &r);
	else if (key[0] == QC_ROW_PARTITION && key_len == 9)
		room = read_partition(rows, key_id(key), &r);
	return room ? QC_OK : qc_error_set(err, QC_FULL, "out of memory");
}

/* Does a server hold the directory? */
static bool
in_use(const Dump *dump)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char		path[PATH_MAX];
	int			fd;
	bool		held;

	if (snprintf(path, sizeof(path), "%s/LOCK", dump->options.path) >= (int) sizeof(path))
		return false;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	held = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	close(fd);
	return held;
}

QcStatus
dump_rows_store(Dump *dump, DumpRows *rows, QcError *err)
{
	char		path[PATH_MAX];
	QcSitePaths sites;
	QsStore    *store;
	QcStatus	status;

	memset(rows, 0, sizeof(*rows));
	if (in_use(dump))
		return qc_error_at(err, QC_BUSY, "store", UINT64_MAX, "a server uses the checkpoint");
	status = qc_sites_read(dump->io, &sites, err);
	if (status != QC_OK)
		return status;
	if (snprintf(path, sizeof(path), "%s/store", sites.path[QC_SITE_CHECKPOINT][0] != '\0' ?
				 sites.path[QC_SITE_CHECKPOINT] : dump->options.path) >= (int) sizeof(path))
		return qc_error_sys(err, ENAMETOOLONG, "store", "could not open the store");
	status = qs_open(path, MAP_MAX, false, true, &store, err);
	if (status != QC_OK)
		return status;
	status = qs_read(store, take_row, rows, err);
	qs_close(store);
	return status;
}

QcStatus
dump_rows_snapshot(Dump *dump, uint64_t seq, DumpRows *rows, QcSnapshotHead *head, QcError *err)
{
	memset(rows, 0, sizeof(*rows));
	return qc_snapshot_read(dump->io, seq, 0, take_row, rows, head, err);
}

QcStatus
dump_rows_newest(Dump *dump, DumpRows *rows, QcError *err)
{
	uint64_t	seqs[QC_SNAPSHOT_LIST_MAX];
	uint32_t	n = 0;
	QcError		ignored;
	QcSnapshotHead head;
	QcStatus	status = dump_rows_store(dump, rows, err);

	if (status == QC_OK && rows->seq > 0)
		return QC_OK;
	if (qc_snapshot_list(dump->io, seqs, &n, &ignored) != QC_OK)
		n = 0;
	for (uint32_t i = 0; i < n; i++)
	{
		dump_rows_free(rows);
		if (dump_rows_snapshot(dump, seqs[i], rows, &head, &ignored) == QC_OK)
			return QC_OK;
	}
	return status;
}

void
dump_rows_free(DumpRows *rows)
{
	free(rows->queues);
	free(rows->partitions);
	memset(rows, 0, sizeof(*rows));
}
