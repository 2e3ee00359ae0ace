/*
 * qc_read_locate.c
 *		Finding the record of a position in files that the memory index does not cover, and writing .qidx files.
 *
 * Each file is asked through an index of its records: its .qidx when that is right, otherwise one made here by hopping
 * from record header to record header.  Header hops believe what they read, as the reader of the record checks it.  An
 * index describes its log file up to `length`; it is complete while no record starts there, which also tells a .qidx
 * that belongs to an older content of the file, and an index of the active file that has grown since.
 *
 * Files are read in ascending order and positions of a partition ascend over files, so the first hit is the only one.
 * A few indexes are kept per process.
 */
#include "qc_read.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "qc_dir.h"
#include "qc_scan.h"

#define HOP_WINDOW	65536
#define NO_BAD_PLACE UINT64_MAX

_Static_assert(sizeof(QcIdxEntry) == QC_IDX_ENTRY_SIZE, "entries are encoded where they were collected");

static QcStatus
no_memory(QcError *err)
{
	return qc_error_set(err, QC_FULL, "out of memory");
}

/* ---- bytes of a log file, read through a window ---- */

typedef struct Hop
{
	QcReadCache *cache;
	uint64_t	log;
	uint64_t	file;
	uint64_t	file_size;
	uint64_t	begin;			/* what the window holds */
	size_t		len;
} Hop;

/* Begin to read a log file. */
static QcStatus
hop_open(Hop *hop, QcReadCache *cache, uint64_t log, uint64_t file, QcError *err)
{
	const QcIo *io = cache->files->io;
	char		path[QC_PATH_MAX];
	QcHandle	handle;
	QcStatus	status;
	int			rc;

	memset(hop, 0, sizeof(*hop));
	hop->cache = cache;
	hop->log = log;
	hop->file = file;
	if (cache->hop == NULL)
		cache->hop = cache->alloc(cache->alloc_context, HOP_WINDOW);
	if (cache->hop == NULL)
		return no_memory(err);
	status = qc_files_get(cache->files, log, file, false, &handle, err);
	if (status != QC_OK)
		return status;
	rc = io->size(io->context, handle, &hop->file_size);
	if (rc == 0)
		return QC_OK;
	qc_path_file(path, cache->files->layout, log, file, "qlog");
	return qc_error_sys(err, rc, path, "could not get the size of log file");
}

/* A few bytes in place; NULL in *bytes when the file ends before. */
static QcStatus
hop_bytes(Hop *hop, uint64_t position, size_t len, const uint8_t **bytes, QcError *err)
{
	uint64_t	left;
	QcStatus	status;

	*bytes = NULL;
	if (position > hop->file_size || len > hop->file_size - position)
		return QC_OK;
	if (position < hop->begin || position - hop->begin > hop->len ||
		len > hop->len - (size_t) (position - hop->begin))
	{
		left = hop->file_size - position;
		hop->begin = position;
		hop->len = 0;
		status = qc_files_read(hop->cache->files, hop->log, hop->file, position, hop->cache->hop,
							   left < HOP_WINDOW ? (size_t) left : HOP_WINDOW, err);
		if (status != QC_OK)
			return status;
		hop->len = left < HOP_WINDOW ? (size_t) left : HOP_WINDOW;
	}
	*bytes = hop->cache->hop + (position - hop->begin);
	return QC_OK;
}

/* Does nothing start at this position: zeros, or the file's end? */
static QcStatus
nothing_at(Hop *hop, uint64_t position, bool *nothing, QcError *err)
{
	const uint8_t *bytes;
	QcStatus	status = hop_bytes(hop, position, 4, &bytes, err);

	*nothing = status == QC_OK && (bytes == NULL || qc_load_u32(bytes) == 0);
	return status;
}

/* ---- making an index from record headers ---- */

/* Room for one entry more; QcIdxEntry and its encoding have the same size. */
static QcStatus
grow_index(QcReadCache *cache, QcReadIndex *index, QcError *err)
{
	size_t		need = QC_IDX_HEADER_SIZE + ((size_t) index->count + 1) * sizeof(QcIdxEntry);
	size_t		cap = index->cap * 2 + 4096;
	uint8_t    *more;

	if (need <= index->cap)
		return QC_OK;
	more = cache->alloc(cache->alloc_context, cap);
	if (more == NULL)
		return no_memory(err);
	if (index->bytes != NULL)
	{
		memcpy(more, index->bytes, index->cap);
		cache->release(cache->alloc_context, index->bytes);
	}
	index->bytes = more;
	index->cap = cap;
	return QC_OK;
}

/* Entry of a record whose header stands at h; false when it is no message record. */
static bool
entry_of(const uint8_t *h, uint64_t position, QcIdxEntry *entry)
{
	uint8_t		kind = h[48] & (uint8_t) ~QC_RECORD_COMPRESSED;

	if (kind != QC_KIND_MESSAGES && kind != QC_KIND_SOLO)
		return false;
	entry->partition = qc_load_u64(h + 20);
	entry->first = qc_load_u64(h + 28);
	entry->count = qc_load_u32(h + 36);
	entry->end = entry->first + entry->count;
	entry->created_at = (int64_t) qc_load_u64(h + 40);
	entry->position = position;
	entry->len = qc_load_u32(h);
	return true;
}

static QcStatus
add_entry(QcReadCache *cache, QcReadIndex *index, const QcIdxEntry *entry, QcError *err)
{
	QcStatus	status = grow_index(cache, index, err);

	if (status == QC_OK)
		memcpy(index->bytes + QC_IDX_HEADER_SIZE + index->count++ * sizeof(QcIdxEntry), entry,
			   sizeof(*entry));
	return status;
}

/* The entries were collected where their encoding goes, as both have the same size. */
static QcStatus
encode_index(QcReadCache *cache, QcReadIndex *index, uint64_t file, QcError *err)
{
	size_t		size = index->count * sizeof(QcIdxEntry);
	QcIdxEntry *entries;

	if (index->count == 0)
		return QC_OK;
	entries = cache->alloc(cache->alloc_context, size);
	if (entries == NULL)
		return no_memory(err);
	memcpy(entries, index->bytes + QC_IDX_HEADER_SIZE, size);
	qc_idx_encode(index->bytes, file, index->length, entries, index->count);
	cache->release(cache->alloc_context, entries);
	return QC_OK;
}

/* Back from the encoding to entries, in place, so that more can be added. */
static void
decode_index(QcReadIndex *index)
{
	for (uint32_t i = 0; i < index->count; i++)
	{
		uint8_t    *at = index->bytes + QC_IDX_HEADER_SIZE + i * sizeof(QcIdxEntry);
		QcIdxEntry	entry;

		qc_idx_entry_decode(at, &entry);
		memcpy(at, &entry, sizeof(entry));
	}
}

/* Hop over the records of the file, from index->length on. */
static QcStatus
extend_index(QcReadCache *cache, Hop *hop, QcReadIndex *index, uint64_t file, QcError *err)
{
	uint64_t	position = index->length;
	uint64_t	size;
	const uint8_t *h;
	QcIdxEntry	entry;
	QcStatus	status = grow_index(cache, index, err);

	if (status != QC_OK)
		return status;
	decode_index(index);
	index->bad_position = NO_BAD_PLACE;
	for (;;)
	{
		bool		nothing;

		status = nothing_at(hop, position, &nothing, err);
		if (status != QC_OK || nothing)
			break;
		status = hop_bytes(hop, position, QC_RECORD_HEADER_SIZE, &h, err);
		if (status != QC_OK)
			break;
		if (h == NULL || qc_record_peek(h, QC_RECORD_HEADER_SIZE, &size, NULL) != QC_OK ||
			size > hop->file_size - position)
		{
			index->bad_position = position;
			break;
		}
		if (entry_of(h, position, &entry))
			status = add_entry(cache, index, &entry, err);
		if (status != QC_OK)
			break;
		position += size;
	}
	index->length = position;
	return status == QC_OK ? encode_index(cache, index, file, err) : status;
}

/* ---- .qidx files ---- */

/* Room for an index of this size; what was there is lost when it lacked. */
static QcStatus
make_room(QcReadCache *cache, QcReadIndex *index, size_t size, QcError *err)
{
	if (size <= index->cap)
		return QC_OK;
	if (index->bytes != NULL)
		cache->release(cache->alloc_context, index->bytes);
	index->cap = 0;
	index->bytes = cache->alloc(cache->alloc_context, size);
	if (index->bytes == NULL)
		return no_memory(err);
	index->cap = size;
	return QC_OK;
}

/*
 * Read the whole .qidx into the index.  QC_NOTFOUND: there is none, or none that can be read; all that it tells stands in
 * the log file too.
 */
static QcStatus
read_qidx(QcReadCache *cache, QcReadIndex *index, const char *path, uint64_t size_max, size_t *len,
		  QcError *err)
{
	const QcIo *io = cache->files->io;
	QcHandle	handle;
	uint64_t	size = 0;
	QcStatus	status = QC_NOTFOUND;

	*len = 0;
	if (io->open(io->context, path, 0, &handle) != 0)
		return QC_NOTFOUND;
	if (io->size(io->context, handle, &size) == 0 && size >= QC_IDX_HEADER_SIZE &&
		size <= size_max)
		status = make_room(cache, index, (size_t) size, err);
	if (status == QC_OK &&
		io->read(io->context, handle, index->bytes, (size_t) size, 0, len) != 0)
		status = QC_NOTFOUND;
	io->close(io->context, handle);
	return status;
}

/* Take the file's .qidx when it is right in itself and describes the log file up to its end. */
static QcStatus
load_qidx(QcReadCache *cache, Hop *hop, QcReadIndex *index, bool *loaded, QcError *err)
{
	char		path[QC_PATH_MAX];
	size_t		len;
	uint64_t	length;
	QcStatus	status;

	*loaded = false;
	qc_path_file(path, cache->files->layout, hop->log, hop->file, "qidx");

	/* an entry is smaller than the record that it stands for */
	status = read_qidx(cache, index, path, QC_IDX_HEADER_SIZE + hop->file_size, &len, err);
	if (status != QC_OK || len < QC_IDX_HEADER_SIZE)
		return status == QC_NOTFOUND ? QC_OK : status;
	length = qc_load_u64(index->bytes + 24);
	if (length < QC_FILE_HEADER_SIZE || length > hop->file_size ||
		qc_idx_check(index->bytes, len, hop->file, length, &index->count, NULL) != QC_OK)
		return QC_OK;
	index->length = length;
	index->bad_position = NO_BAD_PLACE;
	return nothing_at(hop, length, loaded, err);
}

/* ---- looking up ---- */

/* The slot that holds this file's index, or the one to use for it (its file is another one). */
static QcReadIndex *
index_slot(QcReadCache *cache, uint64_t log, uint64_t file)
{
	QcReadIndex *oldest = &cache->indexes[0];

	for (int i = 0; i < QC_READ_INDEXES; i++)
	{
		QcReadIndex *slot = &cache->indexes[i];

		if (slot->file == file && slot->log == log)
			return slot;
		if (slot->file == 0 ? oldest->file != 0 : slot->used < oldest->used && oldest->file != 0)
			oldest = slot;
	}
	return oldest;
}

/* Make the index cover the whole file as it is now; *index is a slot, of this file or of another one. */
static QcStatus
refresh_index(QcReadCache *cache, QcReadIndex *index, uint64_t log, uint64_t file, QcError *err)
{
	bool		complete = false;
	bool		known = index->file == file && index->log == log;
	Hop			hop;
	QcStatus	status = hop_open(&hop, cache, log, file, err);

	if (status == QC_OK && known)
		status = nothing_at(&hop, index->length, &complete, err);
	if (status != QC_OK || complete)
		return status;
	index->file = 0;
	if (!known)
	{
		status = load_qidx(cache, &hop, index, &complete, err);
		if (!complete)
		{
			index->count = 0;
			index->length = QC_FILE_HEADER_SIZE;
		}
	}
	if (status == QC_OK && !complete)
		status = extend_index(cache, &hop, index, file, err);
	if (status == QC_OK)
	{
		index->log = log;
		index->file = file;
	}
	return status;
}

static bool
find_entry(const QcReadIndex *index, uint64_t partition, uint64_t position, QcIdxEntry *found)
{
	return index->count > 0 && qc_idx_find(index->bytes + QC_IDX_HEADER_SIZE, index->count,
										   partition, position, found);
}

/* Look into one file.  Entries stay right when the file grows: only a miss needs the index to be complete. */
static QcStatus
find_in_file(QcReadCache *cache, uint64_t log, uint64_t file, uint64_t partition,
			 uint64_t position, QcIdxEntry *found, bool *hit, uint64_t *bad_position, QcError *err)
{
	QcReadIndex *index = index_slot(cache, log, file);
	QcStatus	status = QC_OK;

	index->used = ++cache->clock;
	*hit = index->file == file && index->log == log &&
		find_entry(index, partition, position, found);
	if (!*hit)
	{
		status = refresh_index(cache, index, log, file, err);
		*hit = status == QC_OK && find_entry(index, partition, position, found);
	}
	*bad_position = index->bad_position;
	return status;
}

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

/* The next file to look at: the smallest number above the last one.  0 = none. */
static uint64_t
next_file(const FileList *list, uint64_t last)
{
	uint64_t	best = 0;

	for (size_t i = 0; i < list->count; i++)
	{
		uint64_t	id = list->cache->file_ids[i];

		if (id > last && (best == 0 || id < best))
			best = id;
	}
	return best;
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
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, path, "could not list log directory");
}

QcStatus
qc_read_locate(QcReadCache *cache, uint64_t log, uint64_t partition, uint64_t position,
			   uint64_t from_file, QcLocation *location, QcError *err)
{
	FileList	list = {cache, from_file, 0, false};
	QcIdxEntry	found;
	uint64_t	bad_file = 0;
	uint64_t	first_bad = 0;
	char		path[QC_PATH_MAX];
	QcStatus	status = list_files(&list, log, err);

	for (uint64_t file = next_file(&list, 0); status == QC_OK && file != 0;
		 file = next_file(&list, file))
	{
		uint64_t	bad_position;
		bool		hit;

		status = find_in_file(cache, log, file, partition, position, &found, &hit, &bad_position,
							  err);
		if (status == QC_OK && hit)
		{
			*location = (QcLocation)
			{
				.log = log, .file = file, .position = found.position, .size = found.len + 4,
				.count = found.count, .first = found.first
			};
			return QC_OK;
		}
		if (status == QC_OK && bad_file == 0 && bad_position != NO_BAD_PLACE)
		{
			bad_file = file;
			first_bad = bad_position;
		}
	}
	if (status != QC_OK)
		return status;
	if (bad_file == 0)
	{
		qc_path_log(path, cache->files->layout, log);
		return qc_error_at(err, QC_NOTFOUND, path, UINT64_MAX,
						   "no record in its files holds position %" PRIu64, position);
	}
	qc_path_file(path, cache->files->layout, log, bad_file, "qlog");
	return qc_error_at(err, QC_DAMAGED, path, first_bad, "records cannot be followed from here on");
}

/* ---- walking over records ---- */

/* The next record of the walk in its file; QC_END when there is none. */
static QcStatus
walk_file(QcReadCache *cache, QcReadWalk *walk, uint64_t *partition, QcLocation *location,
		  QcError *err)
{
	QcReadIndex *index = index_slot(cache, walk->log, walk->file);
	QcStatus	status;
	char		path[QC_PATH_MAX];

	index->used = ++cache->clock;

	/* An index that grew would be in another order: the one of the walk's beginning does. */
	if (walk->entry == 0 || index->file != walk->file || index->log != walk->log)
	{
		walk->entry = 0;
		status = refresh_index(cache, index, walk->log, walk->file, err);
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
		*location = (QcLocation)
		{
			.log = walk->log, .file = walk->file, .position = entry.position, .size = entry.len + 4,
			.count = entry.count, .first = entry.first
		};
		return QC_OK;
	}
	if (index->bad_position == NO_BAD_PLACE)
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

	while (status == QC_END)
	{
		FileList	list = {cache, walk->file + 1, 0, false};

		status = list_files(&list, walk->log, err);
		if (status != QC_OK)
			return status;
		walk->file = next_file(&list, walk->file);
		walk->entry = 0;
		if (walk->file == 0)
			return QC_END;
		status = walk_file(cache, walk, partition, location, err);
	}
	return status;
}

/* ---- writing .qidx files ---- */

typedef struct Entries
{
	QcIdxEntry *entries;
	uint32_t	count;
	uint32_t	cap;
	uint64_t	length;
} Entries;

/* The index entry of the scanned record, when it holds messages. */
static QcStatus
note_record(Entries *list, const QcScan *scan, QcError *err)
{
	const QcRecord *record = &scan->record;

	if (record->kind != QC_KIND_MESSAGES && record->kind != QC_KIND_SOLO)
		return QC_OK;
	if (list->count == list->cap)
	{
		uint32_t	cap = list->cap * 2 + 256;
		QcIdxEntry *more = realloc(list->entries, cap * sizeof(QcIdxEntry));

		if (more == NULL)
			return no_memory(err);
		list->entries = more;
		list->cap = cap;
	}
	list->entries[list->count++] = (QcIdxEntry)
	{
		record->partition, record->first, record->first + record->count, record->created_at,
		scan->position, record->count, record->len
	};
	return QC_OK;
}

/* All message records of one file, checked. */
static QcStatus
scan_file(QcFiles *files, uint64_t log, uint64_t file, Entries *list, QcError *err)
{
	QcScan		scan;
	QcStatus	status = qc_scan_begin(&scan, files, log, file, QC_FILE_HEADER_SIZE, err);

	if (status != QC_OK)
		return status;
	for (;;)
	{
		status = qc_scan_next(&scan, err);
		if (status != QC_OK || qc_scan_file(&scan) != file)
			break;
		status = note_record(list, &scan, err);
		if (status != QC_OK)
			break;
	}
	if (status == QC_END && scan.end != QC_SCAN_CLEAN && qc_scan_file(&scan) == file)
	{
		if (err != NULL)
			*err = scan.fault;
		status = QC_DAMAGED;
	}
	else if (status == QC_END)
		status = QC_OK;
	list->length = scan.end == QC_SCAN_CLEAN && qc_scan_file(&scan) == file ? scan.position :
		scan.written_end;
	qc_scan_end(&scan);
	return status;
}

QcStatus
qc_read_build_idx(QcFiles *files, uint64_t log, uint64_t file, QcError *err)
{
	Entries		list = {NULL, 0, 0, 0};
	char		path[QC_PATH_MAX];
	size_t		size;
	uint8_t    *bytes;
	QcStatus	status = scan_file(files, log, file, &list, err);

	if (status == QC_OK)
	{
		size = QC_IDX_HEADER_SIZE + (size_t) list.count * QC_IDX_ENTRY_SIZE;
		bytes = malloc(size);
		if (bytes == NULL)
			status = no_memory(err);
		else
		{
			qc_idx_encode(bytes, file, list.length, list.entries, list.count);
			qc_path_file(path, files->layout, log, file, "qidx");
			status = qc_dir_write_file(files->io, path, bytes, size, err);
			free(bytes);
		}
	}
	free(list.entries);
	return status;
}
