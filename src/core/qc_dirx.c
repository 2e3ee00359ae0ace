/*
 * qc_dirx.c
 *		Directories over closed files (contract in qc_dirx.h).
 *
 * The directories of a log are the inner nodes of a tree over its file numbers, of which only the topmost complete ones are there.
 */
#include "qc_dirx.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qc_array.h"
#include "qc_derived.h"
#include "qc_dir.h"
#include "qc_read.h"

#define HEAD_SIZE	(QC_DERIVED_HEAD_SIZE + QC_DIRX_CELL)
#define ASK_CELLS	64			/* read at once when so few are left */

static const QcDerived dirx_kind = {"QQDIR1\0", QC_DIRX_CELL, "directory"};

static QcStatus
no_memory(QcError *err)
{
	return qc_error_set(err, QC_FULL, "out of memory");
}

/* ---- names ---- */

static uint64_t
span(uint32_t level)
{
	return UINT64_C(1) << (2 * level);
}

QcDirx
qc_dirx_of(uint32_t level, uint64_t file)
{
	uint64_t	before = (file - 1) / span(level) * span(level);

	assert(file > 0 && level > 0 && level <= QC_DIRX_LEVELS);
	return (QcDirx) {level, before + 1, before + span(level)};
}

void
qc_dirx_path(char out[QC_PATH_MAX], QcLayout layout, uint64_t log, const QcDirx *dirx)
{
	char		directory[QC_PATH_MAX];

	qc_path_log(directory, layout, log);
	(void) snprintf(out, QC_PATH_MAX, "%.100s/dirx-%08" PRIu64 "-%08" PRIu64 ".qdx", directory,
					dirx->first, dirx->last);
}

/* Decimal digits up to a character; false = there are none, or too many. */
static bool
parse_number(const char **at, uint64_t *number)
{
	int			n = 0;

	*number = 0;
	for (; **at >= '0' && **at <= '9' && n < 18; (*at)++, n++)
		*number = *number * 10 + (uint64_t) (**at - '0');
	return n >= 8;
}

bool
qc_dirx_parse(const char *name, QcDirx *dirx)
{
	const char *at = name + 5;
	uint64_t	first;
	uint64_t	last;
	char		right[64];

	if (strncmp(name, "dirx-", 5) != 0 || !parse_number(&at, &first) || *at++ != '-' ||
		!parse_number(&at, &last) || strcmp(at, ".qdx") != 0 || first == 0)
		return false;
	for (uint32_t level = 1; level <= QC_DIRX_LEVELS; level++)
	{
		*dirx = qc_dirx_of(level, first);
		if (dirx->first == first && dirx->last == last)
		{
			(void) snprintf(right, sizeof(right), "dirx-%08" PRIu64 "-%08" PRIu64 ".qdx", first, last);
			return strcmp(name, right) == 0;
		}
	}
	return false;
}

/* ---- asking ---- */

static bool
read_exactly(const QcIo *io, QcHandle handle, uint64_t position, void *buf, size_t len)
{
	size_t		done = 0;

	return io->read(io->context, handle, buf, len, position, &done) == 0 && done == len;
}

/* Open one whose head and size are right; *count: its cells without the first. */
static bool
open_dirx(const QcFiles *files, uint64_t log, const QcDirx *dirx, QcHandle *handle,
		  uint8_t head[HEAD_SIZE], uint32_t *count)
{
	const QcIo *io = files->io;
	char		path[QC_PATH_MAX];
	uint64_t	size = 0;
	uint32_t	cells;

	qc_dirx_path(path, files->layout, log, dirx);
	if (io->open(io->context, path, 0, handle) != 0)
		return false;
	if (read_exactly(io, *handle, 0, head, HEAD_SIZE) &&
		qc_derived_count(head, &dirx_kind, dirx->first, &cells, NULL) == QC_OK && cells > 0 &&
		qc_derived_length(head) == dirx->last &&
		qc_load_u64(head + QC_DERIVED_HEAD_SIZE) == dirx->last &&
		io->size(io->context, *handle, &size) == 0 &&
		size == QC_DERIVED_HEAD_SIZE + (uint64_t) cells * QC_DIRX_CELL)
	{
		*count = cells - 1;
		return true;
	}
	io->close(io->context, *handle);
	return false;
}

/* What the cells around the place say. */
static QcDirxAnswer
answer_of(QcIdxSide side, const uint8_t *cell, const QcDirx *dirx, uint64_t *file)
{
	switch (side)
	{
		case QC_IDX_HERE:
			*file = qc_load_u64(cell + 24);
			return *file >= dirx->first && *file <= dirx->last ? QC_DIRX_HERE : QC_DIRX_NONE;
		case QC_IDX_EARLIER:
		case QC_IDX_GAP:
			return QC_DIRX_EARLIER;
		default:
			return QC_DIRX_ELSEWHERE;
	}
}

/* Narrow down by single cells, then read the few that are left, with the ones beside them. */
static QcDirxAnswer
ask_cells(const QcIo *io, QcHandle handle, const QcDirx *dirx, uint32_t count, uint64_t partition,
		  uint64_t position, uint64_t *file)
{
	uint8_t		cells[(ASK_CELLS + 2) * QC_DIRX_CELL];
	uint32_t	low = 0;
	uint32_t	high = count;
	uint32_t	at;
	QcIdxSide	side;

	while (high - low > ASK_CELLS)
	{
		uint32_t	middle = low + (high - low) / 2;

		if (!read_exactly(io, handle, HEAD_SIZE + (uint64_t) middle * QC_DIRX_CELL, cells, QC_DIRX_CELL))
			return QC_DIRX_NONE;
		if (qc_cells_begun(cells, QC_DIRX_CELL, 1, partition, position) == 1)
			low = middle + 1;
		else
			high = middle;
	}
	low -= low > 0;
	high += high < count;
	if (!read_exactly(io, handle, HEAD_SIZE + (uint64_t) low * QC_DIRX_CELL, cells,
					  (size_t) (high - low) * QC_DIRX_CELL))
		return QC_DIRX_NONE;
	side = qc_cells_seek(cells, QC_DIRX_CELL, high - low, partition, position, &at);
	return answer_of(side, cells + (size_t) at * QC_DIRX_CELL, dirx, file);
}

QcDirxAnswer
qc_dirx_ask(const QcFiles *files, uint64_t log, const QcDirx *dirx, uint64_t partition,
			uint64_t position, uint64_t *file)
{
	uint8_t		head[HEAD_SIZE];
	QcHandle	handle;
	uint32_t	count;
	QcDirxAnswer answer = QC_DIRX_NONE;

	if (!open_dirx(files, log, dirx, &handle, head, &count))
		return QC_DIRX_NONE;
	answer = ask_cells(files->io, handle, dirx, count, partition, position, file);
	files->io->close(files->io->context, handle);
	return answer;
}

/* ---- what they are made of ---- */

/* A .qidx or a smaller directory, in memory. */
typedef struct Part
{
	uint8_t    *bytes;			/* malloc'ed */
	const uint8_t *cells;
	size_t		stride;
	uint32_t	count;
	uint32_t	at;
	uint64_t	file;			/* of a .qidx; 0 = the cells say it */
	uint64_t	length;			/* of the written part of the last file */
} Part;

static QcStatus
read_whole(const QcIo *io, const char *path, uint8_t **bytes, size_t *len, size_t max, QcError *err)
{
	QcHandle	handle;
	uint64_t	size = 0;
	QcStatus	status = QC_OK;

	*bytes = NULL;
	if (io->open(io->context, path, 0, &handle) != 0)
		return QC_NOTFOUND;
	if (io->size(io->context, handle, &size) != 0 || size < QC_DERIVED_HEAD_SIZE || size > max)
		status = QC_NOTFOUND;
	else if ((*bytes = malloc((size_t) size)) == NULL)
		status = no_memory(err);
	else if (!read_exactly(io, handle, 0, *bytes, (size_t) size))
		status = QC_NOTFOUND;
	io->close(io->context, handle);
	*len = (size_t) size;
	return status;
}

/* A closed file.  One that is not there holds nothing; QC_NOTFOUND: it has no index that fits. */
static QcStatus
read_file_part(const QcDirxMake *make, uint64_t file, Part *part, QcError *err)
{
	const QcIo *io = make->files->io;
	char		path[QC_PATH_MAX];
	size_t		len;
	uint64_t	size;
	QcStatus	status = qc_files_size(make->files, make->log, file, false, &size, err);

	*part = (Part) {.stride = QC_IDX_ENTRY_SIZE, .file = file};
	if (status == QC_MISSING)
		return QC_OK;
	if (status != QC_OK || !qc_read_idx_usable(make->files, make->log, file))
		return QC_NOTFOUND;
	qc_path_file(path, make->files->layout, make->log, file, "qidx");

	/* its entries may be many for few partitions */
	status = read_whole(io, path, &part->bytes, &len, SIZE_MAX, err);
	if (status != QC_OK)
		return status;
	part->length = qc_derived_length(part->bytes);
	part->cells = part->bytes + QC_DERIVED_HEAD_SIZE;
	return qc_idx_check(part->bytes, len, file, part->length, &part->count, NULL) == QC_OK ?
		QC_OK : QC_NOTFOUND;
}

static QcStatus
read_dirx_part(const QcDirxMake *make, const QcDirx *dirx, Part *part, QcError *err)
{
	char		path[QC_PATH_MAX];
	size_t		len;
	uint32_t	cells;
	QcStatus	status;

	*part = (Part) {.stride = QC_DIRX_CELL};
	qc_dirx_path(path, make->files->layout, make->log, dirx);
	status = read_whole(make->files->io, path, &part->bytes, &len, make->max_bytes, err);
	if (status != QC_OK)
		return status;
	if (qc_derived_check(part->bytes, len, &dirx_kind, dirx->first, dirx->last, &cells, NULL) != QC_OK || cells == 0)
	{
		(void) make->files->io->unlink(make->files->io->context, path);
		return QC_NOTFOUND;
	}
	part->length = qc_load_u64(part->bytes + QC_DERIVED_HEAD_SIZE + 8);
	part->cells = part->bytes + HEAD_SIZE;
	part->count = cells - 1;
	return QC_OK;
}

/* ---- making one ---- */

/* A directory being made. */
typedef struct Merge
{
	Part		parts[QC_DIRX_FAN];
	uint8_t    *bytes;
	uint32_t	count;			/* cells without the first */
	uint32_t	cap;
} Merge;

static void
merge_free(Merge *merge)
{
	for (int i = 0; i < QC_DIRX_FAN; i++)
		free(merge->parts[i].bytes);
	free(merge->bytes);
}

/* The part whose next run comes first; NULL when all have ended. */
static Part *
next_part(Merge *merge)
{
	Part	   *best = NULL;

	for (int i = 0; i < QC_DIRX_FAN; i++)
	{
		Part	   *part = &merge->parts[i];
		const uint8_t *cell = part->cells + part->at * part->stride;

		if (part->at < part->count &&
			(best == NULL ||
			 qc_cells_begun(best->cells + best->at * best->stride, QC_DIRX_CELL, 1, qc_load_u64(cell), qc_load_u64(cell + 8)) == 0))
			best = part;
	}
	return best;
}

/* Take the next run of a part; records of a partition that stand in one file are one run. */
static QcStatus
take(Merge *merge, Part *part, size_t max_bytes, QcError *err)
{
	const uint8_t *cell = part->cells + part->at++ * part->stride;
	uint64_t	file = part->file != 0 ? part->file : qc_load_u64(cell + 24);
	uint8_t    *last = merge->bytes + HEAD_SIZE + ((size_t) merge->count - 1) * QC_DIRX_CELL;

	if (merge->count > 0 && qc_load_u64(last) == qc_load_u64(cell) && qc_load_u64(last + 24) == file)
	{
		qc_store_u64(last + 16, qc_load_u64(cell + 16));
		return QC_OK;
	}
	if (merge->count == merge->cap)
	{
		uint32_t	cap = merge->cap * 2 + 256;
		uint8_t    *bytes;

		if (HEAD_SIZE + (size_t) merge->count * QC_DIRX_CELL >= max_bytes)
			return QC_LIMIT;
		bytes = realloc(merge->bytes, HEAD_SIZE + (size_t) cap * QC_DIRX_CELL);
		if (bytes == NULL)
			return no_memory(err);
		merge->bytes = bytes;
		merge->cap = cap;
	}
	last = merge->bytes + HEAD_SIZE + (size_t) merge->count++ * QC_DIRX_CELL;
	memcpy(last, cell, 24);
	qc_store_u64(last + 24, file);
	return QC_OK;
}

static QcDirx
child_of(const QcDirx *dirx, int i)
{
	uint64_t	each = (dirx->last - dirx->first + 1) / QC_DIRX_FAN;

	return (QcDirx) {dirx->level - 1, dirx->first + (uint64_t) i * each, dirx->first + (uint64_t) (i + 1) * each - 1};
}

static QcStatus
read_parts(const QcDirxMake *make, const QcDirx *dirx, Merge *merge, QcError *err)
{
	QcStatus	status = QC_OK;

	for (int i = 0; i < QC_DIRX_FAN && status == QC_OK; i++)
	{
		QcDirx		child = child_of(dirx, i);

		/* nothing of it is left */
		if (child.last < make->first_file)
			continue;
		status = dirx->level == 1 ? read_file_part(make, child.first, &merge->parts[i], err) :
			read_dirx_part(make, &child, &merge->parts[i], err);
	}
	return status;
}

/* Merge the four parts into one, durable, and take the parts away. QC_NOTFOUND, QC_LIMIT: it is not made. */
static QcStatus
build(const QcDirxMake *make, const QcDirx *dirx, QcError *err)
{
	const QcIo *io = make->files->io;
	Merge		merge = {0};
	Part	   *part;
	char		path[QC_PATH_MAX];
	QcStatus	status = read_parts(make, dirx, &merge, err);

	if (status == QC_OK && (merge.bytes = malloc(HEAD_SIZE)) == NULL)
		status = no_memory(err);
	while (status == QC_OK && (part = next_part(&merge)) != NULL)
		status = take(&merge, part, make->max_bytes, err);
	if (status == QC_OK)
	{
		memset(merge.bytes + QC_DERIVED_HEAD_SIZE, 0, QC_DIRX_CELL);
		qc_store_u64(merge.bytes + QC_DERIVED_HEAD_SIZE, dirx->last);
		qc_store_u64(merge.bytes + QC_DERIVED_HEAD_SIZE + 8, merge.parts[QC_DIRX_FAN - 1].length);
		qc_derived_seal(merge.bytes, &dirx_kind, dirx->first, dirx->last, merge.count + 1);
		qc_dirx_path(path, make->files->layout, make->log, dirx);
		status = qc_dir_write_file(io, path, merge.bytes, HEAD_SIZE + (size_t) merge.count * QC_DIRX_CELL, err);
	}
	for (int i = 0; i < QC_DIRX_FAN && status == QC_OK && dirx->level > 1; i++)
	{
		QcDirx		child = child_of(dirx, i);

		qc_dirx_path(path, make->files->layout, make->log, &child);
		(void) io->unlink(io->context, path);
	}
	merge_free(&merge);
	return status;
}

/* ---- those that are of no use any more ---- */

typedef struct List
{
	QcDirx	   *dirx;
	uint32_t	n;
	uint32_t	cap;
	QcStatus	status;
} List;

/* Visitor. */
static bool
note_dirx(void *context, const char *name, bool is_directory)
{
	List	   *list = context;
	QcDirx		dirx;

	if (is_directory || !qc_dirx_parse(name, &dirx))
		return true;
	list->status = qc_array_grow(&list->dirx, &list->cap, list->n + 1, sizeof(QcDirx), NULL);
	if (list->status == QC_OK)
		list->dirx[list->n++] = dirx;
	return list->status == QC_OK;
}

/* Is there a larger one with the same files? */
static bool
is_part(const List *list, const QcDirx *dirx)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (list->dirx[i].level > dirx->level && list->dirx[i].first <= dirx->first &&
			list->dirx[i].last >= dirx->last)
			return true;
	return false;
}

/* All that the log has; list->dirx is malloc'ed. */
static QcStatus
list_all(QcFiles *files, uint64_t log, List *list, QcError *err)
{
	char		path[QC_PATH_MAX];
	int			rc;

	*list = (List) {.status = QC_OK};
	qc_path_log(path, files->layout, log);
	rc = files->io->list(files->io->context, path, note_dirx, list);
	if (list->status != QC_OK)
		return no_memory(err);
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, path, "could not list log directory");
}

static QcStatus
remove_one(QcFiles *files, uint64_t log, const QcDirx *dirx, QcError *err)
{
	char		path[QC_PATH_MAX];
	int			rc;

	qc_dirx_path(path, files->layout, log, dirx);
	rc = files->io->unlink(files->io->context, path);
	return rc == 0 || rc == ENOENT ? QC_OK :
		qc_error_sys(err, rc, path, "could not remove directory of files");
}

/* Is it of no use, by what the caller knows? */
typedef bool (*Useless) (const List *list, const QcDirx *dirx, const void *context);

static QcStatus
remove_useless(QcFiles *files, uint64_t log, Useless useless, const void *context, QcError *err)
{
	List		list;
	QcStatus	status = list_all(files, log, &list, err);

	for (uint32_t i = 0; i < list.n && status == QC_OK; i++)
		if (useless(&list, &list.dirx[i], context))
			status = remove_one(files, log, &list.dirx[i], err);
	free(list.dirx);
	return status;
}

/*
 * Those of files that are gone, parts of others, which a crash left, and those over files that are not closed: of a later
 * content, out of a copy of the directory.
 */
static bool
is_outdated(const List *list, const QcDirx *dirx, const void *context)
{
	const QcDirxMake *make = context;

	return dirx->last < make->first_file || dirx->last >= make->active || is_part(list, dirx);
}

static bool
ends_before(const List *list, const QcDirx *dirx, const void *context)
{
	(void) list;
	return dirx->last < *(const uint64_t *) context;
}

static bool
has_place_for(const List *list, const QcDirx *dirx, const void *context)
{
	uint64_t	file = *(const uint64_t *) context;

	(void) list;
	return dirx->first <= file && dirx->last >= file;
}

QcStatus
qc_dirx_trim(QcFiles *files, uint64_t log, uint64_t first_file, QcError *err)
{
	return remove_useless(files, log, ends_before, &first_file, err);
}

QcStatus
qc_dirx_forget(QcFiles *files, uint64_t log, uint64_t file, QcError *err)
{
	return remove_useless(files, log, has_place_for, &file, err);
}

/* ---- all of a log ---- */

/* Is there one that fits its last file as that is now? A wrong one goes. */
static bool
is_there(const QcDirxMake *make, const QcDirx *dirx)
{
	const QcIo *io = make->files->io;
	uint8_t		head[HEAD_SIZE];
	char		path[QC_PATH_MAX];
	QcHandle	handle;
	uint32_t	count;
	uint64_t	size;
	bool		good = open_dirx(make->files, make->log, dirx, &handle, head, &count);

	if (good)
		io->close(io->context, handle);
	else
		return false;

	/*
	 * One that was removed or rewritten since holds nothing else than then; one that went on would
	 * be longer.
	 */
	if (!make->check || qc_files_size(make->files, make->log, dirx->last, false, &size, NULL) != QC_OK ||
		size <= qc_load_u64(head + QC_DERIVED_HEAD_SIZE + 8))
		return true;
	qc_dirx_path(path, make->files->layout, make->log, dirx);
	(void) io->unlink(io->context, path);
	return false;
}

static QcStatus make_below(const QcDirxMake *make, const QcDirx *dirx, bool *whole, QcError *err);

/* Make this one when all of its files are closed, otherwise those below it. *whole: it is there. */
static QcStatus
make_at(const QcDirxMake *make, const QcDirx *dirx, bool *whole, QcError *err)
{
	bool		below = true;
	bool		complete = dirx->last < make->active;
	QcStatus	status;

	*whole = dirx->last < make->first_file || (complete && is_there(make, dirx));
	if (*whole || dirx->first >= make->active)
		return QC_OK;
	status = make_below(make, dirx, &below, err);

	/* With most of its files gone it would be for nothing; its parts go with theirs. */
	if (status != QC_OK || !complete || !below ||
		make->first_file > dirx->first + (dirx->last - dirx->first) / 2 + 1)
		return status;
	if (!make->go_on(make->context))
		return QC_END;
	status = build(make, dirx, err);
	*whole = status == QC_OK;
	return status == QC_NOTFOUND || status == QC_LIMIT ? QC_OK : status;
}

static QcStatus
make_below(const QcDirxMake *make, const QcDirx *dirx, bool *whole, QcError *err)
{
	QcStatus	status = QC_OK;

	for (int i = 0; i < QC_DIRX_FAN && dirx->level > 1 && status == QC_OK; i++)
	{
		QcDirx		child = child_of(dirx, i);
		bool		there;

		status = make_at(make, &child, &there, err);
		*whole &= there;
	}
	return status;
}

QcStatus
qc_dirx_make(const QcDirxMake *make, QcError *err)
{
	uint32_t	level = 1;
	bool		whole;
	QcDirx		top;
	QcStatus	status = remove_useless(make->files, make->log, is_outdated, make, err);

	while (level < QC_DIRX_LEVELS && span(level) < make->active)
		level++;
	top = qc_dirx_of(level, 1);

	return status == QC_OK ? make_at(make, &top, &whole, err) : status;
}
