/*
 * qc_read_locate.c
 *		Finding the record of a position in files that the memory index does not cover, and walking over files.
 *
 * Directories (qc_dirx.h) say which closed file holds a position, a few for thousands of files.	Where they are lacking the files are
 * asked: positions of a partition ascend over the files of its log, so the file is looked for by halves: each one that is asked
 * tells whether the position lies in it, in an earlier or in a later one, or that it has nothing of the partition, and
 * then its neighbour is asked.	 Asking costs a few short reads where a .qidx is.	What unchecked ones say may be wrong: a
 * record that is found is looked at, and when none is found all files are searched with indexes that are right.
 */
#include "qc_read_int.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "qc_dirx.h"

static QcStatus
no_memory(QcError *err)
{
	return qc_error_set(err, QC_FULL, "out of memory");
}

/* ---- the files of a log ---- */

typedef struct FileList
{
	QcReadCache *cache;
	uint64_t	from;
	size_t		count;
	bool		failed;
} FileList;

/* Visitor: collects the numbers of log files. */
static bool
add_file(void *context, const char *name, bool is_directory)
{
	FileList   *list = context;
	QcReadCache *cache = list->cache;
	uint64_t	id;

	if (is_directory || !qc_name_parse_file(name, "qlog", &id) || id == 0 || id < list->from)
		return true;
	if (list->count == cache->file_ids_cap)
	{
		size_t		cap = cache->file_ids_cap * 2 + 64;
		uint64_t   *more = cache->alloc(cache->alloc_context, cap * sizeof(uint64_t));

		list->failed = more == NULL;
		if (list->failed)
			return false;
		if (cache->file_ids != NULL)
		{
			memcpy(more, cache->file_ids, list->count * sizeof(uint64_t));
			cache->release(cache->alloc_context, cache->file_ids);
		}
		cache->file_ids = more;
		cache->file_ids_cap = cap;
	}
	cache->file_ids[list->count++] = id;
	return true;
}

/* Ascending; heap sort, as a directory lists its names in any order. */
static void
sort_files(FileList *list)
{
	uint64_t   *ids = list->cache->file_ids;
	size_t		end = list->count;

	for (size_t start = end / 2; end > 1;)
	{
		size_t		root;
		uint64_t	moving;

		if (start > 0)
			moving = ids[--start];
		else
		{
			moving = ids[--end];
			ids[end] = ids[0];
		}
		for (root = start; 2 * root + 1 < end;)
		{
			size_t		child = 2 * root + 1;

			if (child + 1 < end && ids[child + 1] > ids[child])
				child++;
			if (ids[child] <= moving)
				break;
			ids[root] = ids[child];
			root = child;
		}
		ids[root] = moving;
	}
}

static QcStatus
list_files(FileList *list, uint64_t log, QcError *err)
{
	const QcIo *io = list->cache->files->io;
	char		path[QC_PATH_MAX];
	int			rc;

	qc_path_log(path, list->cache->files->layout, log);
	rc = io->list(io->context, path, add_file, list);
	if (list->failed)
		return no_memory(err);
	if (rc == ENOENT)
		return qc_error_at(err, QC_MISSING, path, UINT64_MAX, "log directory does not exist");
	if (rc != 0)
		return qc_error_sys(err, rc, path, "could not list log directory");
	sort_files(list);
	return QC_OK;
}

/* ---- looking for the file by halves ---- */

/* What is looked for. */
typedef struct Search
{
	QcReadCache *cache;
	uint64_t	log;
	uint64_t	partition;
	uint64_t	position;
	QcIdxEntry	found;
	uint64_t	file;			/* that holds it */
} Search;

/* What an index in memory says. */
static QcIdxSide
seek(Search *s, const QcReadIndex *index)
{
	if (index->count == 0)
		return QC_IDX_NOWHERE;
	return qc_idx_seek(index->bytes + QC_IDX_HEADER_SIZE, index->count, s->partition, s->position,
					   &s->found);
}

/* Is the index of this file in memory, and does it know the position? */
static bool
known_in(Search *s, uint64_t file)
{
	QcReadIndex *index = qc_read_slot(s->cache, s->log, file);

	if (file == 0 || index->file != file || index->log != s->log || seek(s, index) != QC_IDX_HERE)
		return false;
	index->used = ++s->cache->clock;
	s->file = file;
	return true;
}

/*
 * What one file says: an index in memory, its .qidx, or, when it has none, an index that is made of it.	Who comes back to
 * a file has its index loaded.
 */
static QcStatus
ask(Search *s, uint64_t file, QcIdxSide *side, QcError *err)
{
	QcReadCache *cache = s->cache;
	QcReadIndex *index = qc_read_slot(cache, s->log, file);
	bool		loaded = index->file == file && index->log == s->log;
	bool		again = cache->asked_file == file && cache->asked_log == s->log;
	QcStatus	status = QC_OK;

	s->file = file;
	if (!loaded && !again &&
		qc_read_ask_qidx(cache, s->log, file, s->partition, s->position, &s->found, side))
	{
		cache->asked_log = s->log;
		cache->asked_file = file;
		if (*side != QC_IDX_HERE || qc_read_entry_right(cache->files, s->log, file, &s->found))
			return QC_OK;
	}
	index->used = ++cache->clock;
	status = qc_read_refresh(cache, index, s->log, file, err);
	*side = status == QC_OK ? seek(s, index) : QC_IDX_NOWHERE;

	/* It was removed after the directory was listed. */
	return status == QC_MISSING ? QC_OK : status;
}

/* Look into files [low, high) of the list; *side = QC_IDX_HERE when it was found. */
static QcStatus
search_files(Search *s, const uint64_t *files, size_t low, size_t high, QcIdxSide *side,
			 QcError *err)
{
	*side = QC_IDX_NOWHERE;
	while (low < high)
	{
		size_t		middle = low + (high - low) / 2;
		size_t		at = middle + 1;

		/* The nearest one at or below the middle that has something of the partition. */
		do
		{
			QcStatus	status = ask(s, files[--at], side, err);

			if (status != QC_OK)
				return status;
		}
		while (*side == QC_IDX_NOWHERE && at > low);
		if (*side == QC_IDX_HERE || *side == QC_IDX_GAP)
			return QC_OK;
		if (*side == QC_IDX_EARLIER)
			high = at;
		else
			low = middle + 1;
	}
	return QC_OK;
}

/* As search_files, but the first two files are the likeliest ones when the caller has named the first. */
static QcStatus
search_list(Search *s, const FileList *list, uint64_t last_file, QcIdxSide *side, QcError *err)
{
	const uint64_t *files = list->cache->file_ids;
	size_t		high = list->count;
	size_t		low = 0;

	while (last_file != 0 && high > 0 && files[high - 1] > last_file)
		high--;
	*side = QC_IDX_LATER;
	while (list->from != 0 && low < 2 && low < high && *side == QC_IDX_LATER)
	{
		QcStatus	status = ask(s, files[low++], side, err);

		if (status != QC_OK || *side == QC_IDX_HERE)
			return status;
	}
	return search_files(s, files, low, high, side, err);
}

/* ---- asking directories ---- */

#define MISSES_MAX	64			/* directories that are not there, before all is listed */
#define SINGLES_MAX	16			/* files without directory */

/* A search through the directories of files [from, last]. */
typedef struct Cover
{
	Search	   *s;
	uint64_t	from;
	uint64_t	last;
	uint32_t	answers;
	uint32_t	misses;
	uint32_t	nsingles;
	uint64_t	singles[SINGLES_MAX];	/* files to be asked themselves */
	bool		scattered;		/* too much is missing */
} Cover;

/* The files of a directory that is not there. */
static void
note_singles(Cover *cover, const QcDirx *dirx)
{
	for (uint64_t file = dirx->first; file <= dirx->last; file++)
	{
		if (file < cover->from || file > cover->last)
			continue;
		if (cover->nsingles == SINGLES_MAX)
			cover->scattered = true;
		else
			cover->singles[cover->nsingles++] = file;
	}
}

/* Ask a directory, or what is below it; *file: as qc_dirx_ask. */
static QcDirxAnswer
ask_dirx(Cover *cover, uint32_t level, uint64_t first, uint64_t *file)
{
	QcDirx		dirx = qc_dirx_of(level, first);
	QcDirxAnswer answer;
	uint64_t	each = (dirx.last - dirx.first + 1) / QC_DIRX_FAN;

	if (dirx.last < cover->from || dirx.first > cover->last)
		return QC_DIRX_ELSEWHERE;
	answer = qc_dirx_ask(cover->s->cache->files, cover->s->log, &dirx, cover->s->partition,
						 cover->s->position, file);
	cover->answers += answer != QC_DIRX_NONE;
	if (answer != QC_DIRX_NONE)
		return answer;
	if (level == 1)
		note_singles(cover, &dirx);
	if (++cover->misses > MISSES_MAX)
		cover->scattered = true;
	for (uint64_t at = dirx.first; level > 1 && at <= dirx.last; at += each)
	{
		if (cover->scattered)
			return QC_DIRX_EARLIER;
		answer = ask_dirx(cover, level - 1, at, file);
		if (answer != QC_DIRX_ELSEWHERE)
			return answer;
	}
	return QC_DIRX_ELSEWHERE;
}

/* Files of before are asked first when this process has just been there. */
static bool
was_there(const QcReadCache *cache, uint64_t log, uint64_t file)
{
	if (file == 0)
		return false;
	if (cache->asked_log == log && cache->asked_file == file)
		return true;
	for (int i = 0; i < QC_READ_INDEXES; i++)
		if (cache->indexes[i].file == file && cache->indexes[i].log == log)
			return true;
	return false;
}

/*
 * Look into files [from, last] by their directories, the newest ones, which have none, by themselves.  *side = QC_IDX_HERE when it was
 * found; otherwise it may be there all the same, and *sure says whether a directory is wrong then.
 */
static QcStatus
search_cover(Search *s, uint64_t from, uint64_t last, QcIdxSide *side, bool *sure, QcError *err)
{
	Cover		cover = {.s = s, .from = from == 0 ? 1 : from, .last = last};
	uint32_t	level = 1;
	uint64_t	file = 0;
	QcStatus	status = QC_OK;

	*side = QC_IDX_LATER;
	for (uint64_t near = from; was_there(s->cache, s->log, from) && near < from + 2 && near <= last; near++)
	{
		status = ask(s, near, side, err);
		if (status != QC_OK || *side == QC_IDX_HERE)
			return status;
	}
	*side = QC_IDX_NOWHERE;
	while (level < QC_DIRX_LEVELS && qc_dirx_of(level, 1).last < last)
		level++;
	if (ask_dirx(&cover, level, 1, &file) == QC_DIRX_HERE)
	{
		status = ask(s, file, side, err);
		if (status != QC_OK || *side == QC_IDX_HERE)
			return status;
	}
	*sure = cover.answers > 0 && !cover.scattered;
	*side = QC_IDX_NOWHERE;
	for (uint32_t i = 0; i < cover.nsingles && !cover.scattered; i++)
	{
		status = ask(s, cover.singles[i], side, err);
		if (status != QC_OK || *side == QC_IDX_HERE || *side == QC_IDX_EARLIER)
			return status;
	}
	return QC_OK;
}

/* ---- looking into one file after the other ---- */

/* Every file, each with an index that is right: the answer when a search has found nothing. */
static QcStatus
search_all(Search *s, const FileList *list, QcError *err)
{
	uint64_t	bad_file = 0;
	uint64_t	first_bad = 0;
	char		path[QC_PATH_MAX];

	for (size_t i = 0; i < list->count; i++)
	{
		uint64_t	bad_position;
		bool		hit;
		QcStatus	status;

		s->file = list->cache->file_ids[i];
		status = qc_read_find_in_file(s->cache, s->log, s->file, s->partition, s->position, &s->found, &hit,
									  &bad_position, err);
		if (status == QC_MISSING)
			continue;			/* removed after the directory was listed */
		if (status != QC_OK || hit)
			return status;
		if (bad_file == 0 && bad_position != QC_NO_BAD_PLACE)
		{
			bad_file = s->file;
			first_bad = bad_position;
		}
	}
	if (bad_file == 0)
	{
		qc_path_log(path, s->cache->files->layout, s->log);
		return qc_error_at(err, QC_NOTFOUND, path, UINT64_MAX,
						   "no record in its files holds position %" PRIu64, s->position);
	}
	qc_path_file(path, s->cache->files->layout, s->log, bad_file, "qlog");
	return qc_error_at(err, QC_DAMAGED, path, first_bad, "records cannot be followed from here on");
}

QcStatus
qc_read_locate(QcReadCache *cache, uint64_t log, uint64_t partition, uint64_t position,
			   uint64_t from_file, uint64_t last_file, QcLocation *location, QcError *err)
{
	Search		s = {.cache = cache, .log = log, .partition = partition, .position = position};
	FileList	list = {cache, from_file, 0, false};
	bool		known = known_in(&s, from_file);
	QcIdxSide	side = known ? QC_IDX_HERE : QC_IDX_NOWHERE;
	bool		sure = false;
	QcStatus	status = QC_OK;

	if (!known && last_file != 0)
		status = search_cover(&s, from_file, last_file, &side, &sure, err);
	if (status == QC_OK && side != QC_IDX_HERE)
	{
		status = list_files(&list, log, err);
		if (status == QC_OK)
			status = search_list(&s, &list, last_file, &side, err);
		if (status == QC_OK && side != QC_IDX_HERE)
			status = search_all(&s, &list, err);

		/* A directory of this file is wrong. */
		if (status == QC_OK && sure && cache->lacking_file == 0)
		{
			cache->lacking_log = log;
			cache->lacking_file = s.file;
			cache->lacking_dirx = true;
		}
	}
	if (status == QC_OK)
		*location = (QcLocation)
	{
		.log = log, .file = s.file, .position = s.found.position, .size = s.found.len + 4,
		.count = s.found.count, .first = s.found.first
	};
	return status;
}

/* ---- walking over records ---- */

/* The next record of the walk in its file; QC_END when there is none. */
static QcStatus
walk_file(QcReadCache *cache, QcReadWalk *walk, uint64_t *partition, QcLocation *location,
		  QcError *err)
{
	QcReadIndex *index = qc_read_slot(cache, walk->log, walk->file);
	QcStatus	status;
	char		path[QC_PATH_MAX];

	index->used = ++cache->clock;

	/* An index that grew would be in another order: the one of the walk's beginning does. */
	if (walk->entry == 0 || index->file != walk->file || index->log != walk->log)
	{
		walk->entry = 0;
		status = qc_read_refresh(cache, index, walk->log, walk->file, err);
		if (status != QC_OK)
			return status;
	}
	while (walk->entry < index->count)
	{
		QcIdxEntry	entry;

		qc_idx_entry_decode(index->bytes + QC_IDX_HEADER_SIZE + walk->entry++ * QC_IDX_ENTRY_SIZE,
							&entry);
		if (entry.created_at < walk->since)
			continue;
		*partition = entry.partition;
		walk->created_at = entry.created_at;
		*location = (QcLocation)
		{
			.log = walk->log, .file = walk->file, .position = entry.position, .size = entry.len + 4,
			.count = entry.count, .first = entry.first
		};
		return QC_OK;
	}
	if (index->bad_position == QC_NO_BAD_PLACE)
		return QC_END;
	qc_path_file(path, cache->files->layout, walk->log, walk->file, "qlog");
	return qc_error_at(err, QC_DAMAGED, path, index->bad_position,
					   "records cannot be followed from here on");
}

QcStatus
qc_read_walk(QcReadCache *cache, QcReadWalk *walk, uint64_t *partition, QcLocation *location,
			 QcError *err)
{
	QcStatus	status = walk->file == 0 ? QC_END :
		walk_file(cache, walk, partition, location, err);

	/* A file that is missing was removed after it was listed. */
	while (status == QC_END || status == QC_MISSING)
	{
		FileList	list = {cache, walk->file + 1, 0, false};

		if (walk->last_file != 0 && walk->file >= walk->last_file)
			return QC_END;
		status = list_files(&list, walk->log, err);
		if (status != QC_OK)
			return status;
		walk->file = list.count == 0 ? 0 : cache->file_ids[0];
		walk->entry = 0;
		if (walk->file == 0)
			return QC_END;
		status = walk_file(cache, walk, partition, location, err);
	}
	return status;
}
