/*
 * wrk_load.c
 *		What a start begins with: the checkpoint store, a snapshot, or nothing (contract in wrk_checkpoint.h).
 *
 * A snapshot becomes the store before its rows are loaded, in one transaction.  Between the moment at which the old store is
 * put aside and that transaction there is no store, or one without a mark: both are "missing" to the next start, which takes
 * the same snapshot again.  A store that is missing is never taken for a new one while anything tells of an older state.
 */
#include "wrk_checkpoint.h"

#include <sys/stat.h>

#include "utils/memutils.h"

#include "qlog_disk.h"
#include "qlog_guc.h"
#include "qlog_io.h"
#include "qlog_report.h"
#include "qlog_stop.h"

#include "../core/qc_rows.h"

void
qlog_store_path(char path[MAXPGPATH])
{
	const char *site = qlog_site(QC_SITE_CHECKPOINT);

	snprintf(path, MAXPGPATH, "%s/store", site[0] == '\0' ? qlog_directory() : site);
}

static bool
store_exists(void)
{
	QcHandle	handle;

	if (qlog_io()->open(qlog_io()->context, "store/data.mdb", 0, &handle) != 0)
		return false;
	qlog_io()->close(qlog_io()->context, handle);
	return true;
}

/* The directory of the store may be missing too: a start died between the two steps of put_store_aside(), or somebody removed it. */
static QcStatus
make_store_directory(const char *path, QcError *err)
{
	const QcIo *io = qlog_io();
	struct stat st;
	int			rc;

	if (stat(path, &st) == 0 || errno != ENOENT)
		return QC_OK;
	rc = io->make_directory(io->context, "store");
	if (rc == 0)
		rc = io->sync_directory(io->context, "");
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, "store", "could not make the directory of the checkpoint");
}

/* Put the checkpoint, if there is one, aside as "store.<why>.<now>". */
static QcStatus
put_store_aside(const char *why, QcError *err)
{
	const QcIo *io = qlog_io();
	char		aside[64];
	int			rc;

	if (!store_exists())
		return QC_OK;
	snprintf(aside, sizeof(aside), "store.%s." UINT64_FORMAT, why, (uint64) qlog_now());
	rc = io->rename(io->context, "store", aside);
	QLOG_STOP("load-while-aside");
	if (rc == 0)
		rc = io->make_directory(io->context, "store");
	if (rc == 0)
		rc = io->sync_directory(io->context, "");
	QLOG_STOP("load-after-aside");
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, "store", "could not put the checkpoint aside");
}

static QcStatus
load_row(void *context, const uint8_t *key, size_t key_len, const uint8_t *value,
		 size_t value_len, QcError *err)
{
	(void) context;
	return qc_rows_load(qlog_state, key, key_len, value, value_len, err);
}

static QcStatus
open_store(QlogLoad *load, QcError *err)
{
	char		path[MAXPGPATH];
	QcStatus	status;

	qlog_store_path(path);
	status = make_store_directory(path, err);
	if (status != QC_OK)
		return status;
	do
		status = qs_open(path, (uint64) qlog_checkpoint_max_size * 1024 * 1024, true, false,
						 &load->store, err);
	while (status == QC_NOSPACE && qlog_disk_give(qlog_disk_device(path)));
	return status;
}

static QcStatus
load_store(QlogLoad *load, QcError *err)
{
	QcStatus	status = load->store != NULL ? QC_OK : open_store(load, err);

	if (status == QC_OK)
		status = qs_read(load->store, load_row, NULL, err);
	if (status == QC_OK)
		status = qc_rows_loaded(qlog_state, qlog_now(), qlog_monotonic(), err);
	return status;
}

/* Begin anew, with an empty state and no store. */
static QcStatus
clear(QlogLoad *load, const char *why, QcError *err)
{
	if (load->store != NULL)
		qs_close(load->store);
	load->store = NULL;
	qlog_shmem_reset();
	qlog_state->directory_id = load->directory_id;
	return put_store_aside(why, err);
}

/* A QcRowVisitor: the row goes into a batch. */
static QcStatus
add_to_batch(void *context, const uint8_t *key, size_t key_len, const uint8_t *value,
			 size_t value_len, QcError *err)
{
	QcWriter   *batch = context;

	qs_batch_put(batch, key, (uint16_t) key_len, value, (uint32_t) value_len);
	return batch->full ? qc_error_set(err, QC_INTERNAL, "snapshot is larger than its head says") :
		QC_OK;
}

/* Make the rows of a snapshot, which was checked, the store. */
static QcStatus
fill_store(QlogLoad *load, uint64 seq, const QcSnapshotHead *head, QcError *err)
{
	QcSnapshotHead again;
	QcWriter	batch;
	uint8	   *bytes = MemoryContextAllocExtended(TopMemoryContext, (Size) head->length,
												   MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	QcStatus	status;

	if (bytes == NULL)
		return qc_error_set(err, QC_FULL, "no memory for a snapshot of " UINT64_FORMAT " bytes",
							head->length);
	qc_writer_init(&batch, bytes, (size_t) head->length);
	status = qc_snapshot_read(qlog_io(), seq, load->directory_id, add_to_batch, &batch, &again, err);
	if (status == QC_OK)
		status = open_store(load, err);
	QLOG_STOP("load-before-fill");
	if (status == QC_OK)
		status = qs_apply(load->store, bytes, batch.len, err);
	pfree(bytes);
	return status;
}

/* Begin with the newest snapshot that can be used; QC_END = there is none. */
static QcStatus
load_snapshot(QlogLoad *load, const char *why, QcError *err)
{
	while (load->tried < load->nsnapshots)
	{
		uint64		seq = load->snapshots[load->tried++];
		QcSnapshotHead head;
		QcStatus	status;

		if (seq < load->floor)
			continue;
		status = qc_snapshot_read(qlog_io(), seq, load->directory_id, NULL, NULL, &head, err);
		if (status == QC_DAMAGED || status == QC_FOREIGN || status == QC_VERSION)
		{
			qlog_report(WARNING, err, "a snapshot of qlog cannot be used");
			continue;
		}
		if (status == QC_OK)
			status = clear(load, why, err);
		if (status == QC_OK)
			status = fill_store(load, seq, &head, err);
		if (status == QC_OK)
			status = load_store(load, err);
		if (status == QC_OK)
			ereport(LOG,
					(errmsg("qlog: begins with the snapshot at entry " UINT64_FORMAT, seq)));
		return status;
	}
	return QC_END;
}

/* Begin with the beginning of the logs. */
static QcStatus
load_nothing(QlogLoad *load, const char *why, QcError *err)
{
	QcStatus	status;

	load->nothing = true;
	status = clear(load, why, err);
	return status == QC_OK ? load_store(load, err) : status;
}

static QcStatus
load_other(QlogLoad *load, const char *why, QcError *err)
{
	QcStatus	status = load_snapshot(load, why, err);

	return status == QC_END ? load_nothing(load, why, err) : status;
}

QcStatus
qlog_load_first(QlogLoad *load, const QcIdentity *identity, QcError *err)
{
	bool		existed = store_exists();
	QcStatus	status = qc_dir_read_floor(qlog_io(), &load->floor, err);

	load->directory_id = identity->directory_id;
	if (status == QC_OK)
		status = qc_snapshot_list(qlog_io(), load->snapshots, &load->nsnapshots, err);
	if (status != QC_OK)
		return status;
	status = load_store(load, err);
	if (status == QC_DAMAGED)
	{
		qlog_report(WARNING, err, "the checkpoint of qlog is damaged, it is put aside and rebuilt from a snapshot and the logs");
		return load_other(load, "damaged", err);
	}
	if (status != QC_OK || load->nsnapshots == 0)
		return status;

	/* One without a mark never was a checkpoint. */
	if (qlog_state->seq > 0 && qlog_state->seq >= load->floor)
		return QC_OK;
	ereport(WARNING,
			(errmsg("the checkpoint of qlog is %s, it is rebuilt from a snapshot and the logs",
					existed && qlog_state->seq > 0 ? "too old" : "missing")));
	return load_other(load, "damaged", err);
}

QcStatus
qlog_load_next(QlogLoad *load, QcError *err)
{
	return load->nothing ? QC_END : load_other(load, "copied", err);
}
