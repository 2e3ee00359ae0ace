/*
 * qc_rewrite.c
 *		Writing a closed file anew (contract in qc_rewrite.h).
 */
#include "qc_rewrite.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qc_dir.h"
#include "qc_mutant.h"

#define WINDOW			(1024u * 1024)	/* read and written at a time */
#define SYNC_BYTES		(4u * 1024 * 1024)	/* synced at a time, so that no sync of others waits
											 * for more */

/* A copy under way. */
typedef struct Copy
{
	QcRewrite  *rewrite;
	const QcLook *look;
	QcIdxEntry *entries;		/* needed ones, by position in the old file, later in the new one */
	uint32_t	n;
	QcHandle	handle;
	char		path[QC_PATH_MAX + 8];
	uint8_t    *in;				/* window on the old file */
	size_t		in_cap;
	uint64_t	in_at;
	size_t		in_len;
	uint8_t    *out;
	size_t		out_len;
	uint64_t	written;
	uint64_t	synced;
	QcRewritePause pause;
	void	   *pause_context;
} Copy;

static QcStatus
no_memory(QcError *err)
{
	return qc_error_set(err, QC_FULL, "out of memory");
}

static int
compare_positions(const void *a, const void *b)
{
	uint64_t	left = ((const QcIdxEntry *) a)->position;
	uint64_t	right = ((const QcIdxEntry *) b)->position;

	return left < right ? -1 : left > right;
}

/* The needed entries in file order. */
static QcStatus
collect(Copy *copy, QcError *err)
{
	const QcLook *look = copy->look;

	copy->entries = malloc((size_t) (look->live_records + 1) * sizeof(QcIdxEntry));
	if (copy->entries == NULL)
		return no_memory(err);
	for (uint32_t i = 0; i < look->index->count; i++)
	{
		const uint8_t *at = look->index->bytes + QC_IDX_HEADER_SIZE + (size_t) i * QC_IDX_ENTRY_SIZE;

		if (look->answers[i] == QC_LIVE_NOT)
			continue;
		assert(copy->n < look->live_records);
		qc_idx_entry_decode(at, &copy->entries[copy->n++]);
	}
	qsort(copy->entries, copy->n, sizeof(QcIdxEntry), compare_positions);
	return QC_OK;
}

/* Write out what is buffered; sync and ask now and then. */
static QcStatus
flush(Copy *copy, QcError *err)
{
	const QcIo *io = copy->rewrite->files->io;
	QcIoSlice	slice = {copy->out, copy->out_len};
	int			rc = io->write(io->context, copy->handle, &slice, 1, copy->written);

	copy->written += copy->out_len;
	copy->out_len = 0;
	if (rc == 0 && copy->written - copy->synced >= SYNC_BYTES)
	{
		rc = io->sync(io->context, copy->handle);
		copy->synced = copy->written;
		if (rc == 0 && copy->pause != NULL && !copy->pause(copy->pause_context))
			return qc_error_set(err, QC_INTERRUPTED, "rewriting was interrupted");
	}
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, copy->path, "could not write file");
}

static QcStatus
put(Copy *copy, const uint8_t *bytes, size_t len, QcError *err)
{
	while (len > 0)
	{
		size_t		n = WINDOW - copy->out_len < len ? WINDOW - copy->out_len : len;
		QcStatus	status;

		memcpy(copy->out + copy->out_len, bytes, n);
		copy->out_len += n;
		bytes += n;
		len -= n;
		if (copy->out_len == WINDOW && (status = flush(copy, err)) != QC_OK)
			return status;
	}
	return QC_OK;
}

/* Bytes of the old file in place. */
static QcStatus
get(Copy *copy, uint64_t position, size_t len, const uint8_t **bytes, QcError *err)
{
	const QcLook *look = copy->look;
	size_t		want = len > WINDOW ? len : WINDOW;
	QcStatus	status;

	if (want > copy->in_cap)
	{
		free(copy->in);
		copy->in_len = 0;
		copy->in_cap = want;
		copy->in = malloc(want);
		if (copy->in == NULL)
		{
			copy->in_cap = 0;
			return no_memory(err);
		}
	}
	if (position < copy->in_at || position + len > copy->in_at + copy->in_len)
	{
		uint64_t	left = look->size - position;

		copy->in_at = position;
		copy->in_len = left < want ? (size_t) left : want;
		status = qc_files_read(copy->rewrite->files, look->log, look->file, position, copy->in,
							   copy->in_len, err);
		if (status != QC_OK)
			copy->in_len = 0;
		if (status != QC_OK)
			return status;
	}
	*bytes = copy->in + (position - copy->in_at);
	return QC_OK;
}

/* It is made without when that does not work: who needs a message that cannot be read finds the damage. */
static void
note_hashes(QcRewrite *rewrite, uint64_t position, const uint8_t *bytes, const QcRecord *record)
{
	if (qc_hashes_add(&rewrite->hashes, position, bytes, record, NULL) != QC_OK)
	{
		qc_hashes_free(&rewrite->hashes);
		rewrite->has_hashes = false;
	}
}

/* One record, which must be what the index says. */
static QcStatus
copy_record(Copy *copy, QcIdxEntry *entry, QcError *err)
{
	const QcLook *look = copy->look;
	size_t		size = (size_t) entry->len + 4;
	const uint8_t *bytes;
	char		path[QC_PATH_MAX];
	QcRecord	record;
	QcStatus	status;

	qc_path_file(path, copy->rewrite->files->layout, look->log, look->file, "qlog");
	if (entry->position > look->size || size > look->size - entry->position)
		return qc_error_at(err, QC_DAMAGED, path, entry->position, "log file ends within the record");
	status = get(copy, entry->position, size, &bytes, err);
	if (status == QC_OK)
		status = qc_record_decode(bytes, size, &record, err);
	if (status == QC_OK &&
		(record.partition != entry->partition || record.first != entry->first ||
		 record.count != entry->count || record.len != entry->len))
		status = qc_error_set(err, QC_DAMAGED, "another record than the index promised stands here");
	if (status == QC_END || status == QC_SHORT)
		status = qc_error_set(err, QC_DAMAGED, "no record stands here");
	if (status != QC_OK)
	{
		if (err != NULL && status == QC_DAMAGED)
			qc_error_locate(err, path, entry->position);
		return status;
	}
	entry->position = copy->written + copy->out_len;
	if (copy->rewrite->has_hashes)
		note_hashes(copy->rewrite, entry->position, bytes, &record);
	return put(copy, bytes, size, err);
}

/* Header, records, and all of it on disk. */
static QcStatus
write_all(Copy *copy, QcError *err)
{
	const QcIo *io = copy->rewrite->files->io;
	const uint8_t *header;
	QcStatus	status = get(copy, 0, QC_FILE_HEADER_SIZE, &header, err);
	int			rc;

	if (status == QC_OK)
		status = put(copy, header, QC_FILE_HEADER_SIZE, err);
	for (uint32_t i = 0; i < copy->n && status == QC_OK; i++)
		status = copy_record(copy, &copy->entries[i], err);
	if (status == QC_OK && copy->out_len > 0)
		status = flush(copy, err);
	if (status != QC_OK || QC_MUTATED(QC_MUTANT_COPY_UNSYNCED))
		return status;
	rc = io->sync(io->context, copy->handle);
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, copy->path, "could not sync file");
}

static void
tmp_path(char out[QC_PATH_MAX + 8], const QcFiles *files, uint64_t log, uint64_t file)
{
	char		path[QC_PATH_MAX];

	qc_path_file(path, files->layout, log, file, "qlog");
	(void) snprintf(out, QC_PATH_MAX + 8, "%s.tmp", path);
}

static QcStatus
encode_idx(Copy *copy, QcError *err)
{
	QcRewrite  *rewrite = copy->rewrite;

	rewrite->idx_len = QC_IDX_HEADER_SIZE + (size_t) copy->n * QC_IDX_ENTRY_SIZE;
	rewrite->idx = malloc(rewrite->idx_len);
	if (rewrite->idx == NULL)
		return no_memory(err);
	qc_idx_encode(rewrite->idx, rewrite->file, rewrite->new_size, copy->entries, copy->n);
	return QC_OK;
}

/* Make the new file; on failure it is removed again. */
static QcStatus
make_file(Copy *copy, QcError *err)
{
	QcRewrite  *rewrite = copy->rewrite;
	const QcIo *io = rewrite->files->io;
	QcStatus	status;
	int			rc = io->open(io->context, copy->path, QC_OPEN_WRITE | QC_OPEN_CREATE, &copy->handle);

	if (rc == EEXIST)
	{
		/* what an earlier attempt left */
		rc = io->unlink(io->context, copy->path);
		if (rc == 0)
			rc = io->open(io->context, copy->path, QC_OPEN_WRITE | QC_OPEN_CREATE, &copy->handle);
	}
	if (rc != 0)
		return qc_error_sys(err, rc, copy->path, "could not create file");
	status = write_all(copy, err);
	io->close(io->context, copy->handle);
	rewrite->new_size = copy->written;
	if (status == QC_OK)
		status = encode_idx(copy, err);
	if (status != QC_OK)
		(void) io->unlink(io->context, copy->path);
	return status;
}

static void
forget(QcRewrite *rewrite)
{
	free(rewrite->idx);
	qc_hashes_free(&rewrite->hashes);
	rewrite->idx = NULL;
	rewrite->file = 0;
}

QcStatus
qc_rewrite_copy(QcRewrite *rewrite, const QcLook *look, QcRewritePause pause, void *pause_context,
				QcError *err)
{
	Copy		copy = {.rewrite = rewrite, .look = look, .pause = pause, .pause_context = pause_context};
	QcStatus	status;

	memset(rewrite, 0, sizeof(*rewrite));
	rewrite->files = look->cache->files;
	rewrite->log = look->log;
	rewrite->file = look->file;
	rewrite->old_size = look->size;
	rewrite->has_hashes = qc_hashes_usable(rewrite->files, look->log, look->file);
	tmp_path(copy.path, rewrite->files, look->log, look->file);
	copy.out = malloc(WINDOW);
	status = copy.out == NULL ? no_memory(err) : collect(&copy, err);
	if (status == QC_OK)
		status = make_file(&copy, err);
	free(copy.in);
	free(copy.out);
	free(copy.entries);
	if (status != QC_OK)
		forget(rewrite);
	return status;
}

/* Whoever needs one that is missing does without: that they cannot be written is no failure. */
static void
put_derived(QcRewrite *rewrite)
{
	QcFiles    *files = rewrite->files;
	char		path[QC_PATH_MAX];
	const uint8_t *bytes;
	size_t		len;

	qc_path_file(path, files->layout, rewrite->log, rewrite->file, "qidx");
	(void) qc_dir_write_file(files->io, path, rewrite->idx, rewrite->idx_len, NULL);
	if (rewrite->has_hashes && qc_hashes_seal(&rewrite->hashes, rewrite->file, rewrite->new_size, &bytes, &len, NULL) == QC_OK)
		(void) qc_hashes_write(files, rewrite->log, rewrite->file, bytes, len, NULL);
	else
	{
		qc_path_file(path, files->layout, rewrite->log, rewrite->file, "qhsh");
		(void) files->io->unlink(files->io->context, path);
	}
}

QcStatus
qc_rewrite_publish(QcRewrite *rewrite, QcStepHook step, void *step_context, QcError *err)
{
	QcFiles    *files = rewrite->files;
	const QcIo *io = files->io;
	char		tmp[QC_PATH_MAX + 8];
	char		path[QC_PATH_MAX];
	char		directory[QC_PATH_MAX];
	QcStatus	status = QC_OK;
	int			rc;

	assert(rewrite->file != 0);
	tmp_path(tmp, files, rewrite->log, rewrite->file);
	qc_path_file(path, files->layout, rewrite->log, rewrite->file, "qlog");
	qc_path_log(directory, files->layout, rewrite->log);
	qc_files_forget(files, rewrite->log, rewrite->file);
	rc = io->rename(io->context, tmp, path);
	if (rc != 0)
		(void) io->unlink(io->context, tmp);
	if (step != NULL)
		step(step_context, "swapped");
	if (rc == 0)
		rc = io->sync_directory(io->context, directory);
	if (rc != 0)
		status = qc_error_sys(err, rc, path, "could not put the rewritten file in its place");
	if (step != NULL)
		step(step_context, "swap-synced");
	if (status == QC_OK)
		put_derived(rewrite);
	forget(rewrite);
	return status;
}

void
qc_rewrite_drop(QcRewrite *rewrite)
{
	const QcIo *io = rewrite->files->io;
	char		tmp[QC_PATH_MAX + 8];

	if (rewrite->file == 0)
		return;
	tmp_path(tmp, rewrite->files, rewrite->log, rewrite->file);
	(void) io->unlink(io->context, tmp);
	forget(rewrite);
}
