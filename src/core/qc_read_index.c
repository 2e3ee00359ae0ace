/*
 * qc_read_index.c
 *		Indexes of log files: read from .qidx files, made from the files themselves, and written (with .qhsh files).
 *
 * The index of a file is its .qidx when that is right, otherwise one made here by hopping from record header to record
 * header.	Header hops believe what they read, as the reader of the record checks it.	An index describes its log file up
 * to `length`; it is complete while no record starts there, which also tells a .qidx that belongs to an older content of
 * the file, and an index of the active file that has grown since.
 *
 * A few indexes are kept per process.	Which file to ask is decided in qc_read_locate.c.
 */
#include "qc_read_int.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qc_dir.h"
#include "qc_hashes.h"
#include "qc_scan.h"

#define HOP_WINDOW	65536

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
	memset(hop, 0, sizeof(*hop));
	hop->cache = cache;
	hop->log = log;
	hop->file = file;
	if (cache->hop == NULL)
		cache->hop = cache->alloc(cache->alloc_context, HOP_WINDOW);
	if (cache->hop == NULL)
		return no_memory(err);
	return qc_files_size(cache->files, log, file, false, &hop->file_size, err);
}

/* Has the file become shorter, since the zeros at its end were given back?	Its size is right then. */
static bool
hop_shrunk(Hop *hop)
{
	uint64_t	size;

	if (qc_files_size(hop->cache->files, hop->log, hop->file, false, &size, NULL) != QC_OK ||
		size >= hop->file_size)
		return false;
	hop->file_size = size;
	return true;
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
		if (status == QC_SHORT && hop_shrunk(hop))
			return hop_bytes(hop, position, len, bytes, err);
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

bool
qc_read_entry_of(const uint8_t *h, uint64_t position, QcIdxEntry *entry)
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
	index->bad_position = QC_NO_BAD_PLACE;
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
		if (qc_read_entry_of(h, position, &entry))
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

bool
qc_read_entry_right(QcFiles *files, uint64_t log, uint64_t file, const QcIdxEntry *entry)
{
	uint8_t		h[QC_RECORD_HEADER_SIZE];
	QcIdxEntry	there;

	return qc_files_read(files, log, file, entry->position, h, sizeof(h), NULL) == QC_OK &&
		qc_read_entry_of(h, entry->position, &there) && there.partition == entry->partition &&
		there.first == entry->first && there.count == entry->count &&
		there.created_at == entry->created_at && there.len == entry->len;
}

/*
 * A .qidx of an older content of the file may end where the file ends now.	 What was cut off was its end, so the last
 * record tells.
 */
static bool
last_entry_right(const QcReadCache *cache, const Hop *hop, const QcReadIndex *index)
{
	QcIdxEntry	last = {0};

	for (uint32_t i = 0; i < index->count; i++)
	{
		const uint8_t *at = index->bytes + QC_IDX_HEADER_SIZE + (size_t) i * QC_IDX_ENTRY_SIZE;
		QcIdxEntry	entry;

		qc_idx_entry_decode(at, &entry);
		if (entry.position > last.position)
			last = entry;
	}
	return index->count == 0 || qc_read_entry_right(cache->files, hop->log, hop->file, &last);
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
	length = qc_derived_length(index->bytes);
	if (length < QC_FILE_HEADER_SIZE || length > hop->file_size ||
		qc_idx_check(index->bytes, len, hop->file, length, &index->count, NULL) != QC_OK ||
		!last_entry_right(cache, hop, index))
		return QC_OK;
	index->length = length;
	index->bad_position = QC_NO_BAD_PLACE;
	return nothing_at(hop, length, loaded, err);
}

/* ---- asking a .qidx without loading it ---- */

#define ASK_ENTRIES 64			/* read at once when so few are left */

typedef struct Asked
{
	const QcIo *io;
	QcHandle	handle;
	uint32_t	count;
} Asked;

static bool
read_exactly(const Asked *asked, uint64_t position, void *buf, size_t len)
{
	size_t		done = 0;

	return asked->io->read(asked->io->context, asked->handle, buf, len, position, &done) == 0 &&
		done == len;
}

/* Header and size are right, and the log file has not changed since. */
static bool
usable(Asked *asked, QcFiles *files, uint64_t log, uint64_t file)
{
	uint8_t		header[QC_IDX_HEADER_SIZE];
	uint64_t	size = 0;

	return read_exactly(asked, 0, header, sizeof(header)) &&
		qc_idx_count(header, file, &asked->count, NULL) == QC_OK &&
		asked->io->size(asked->io->context, asked->handle, &size) == 0 &&
		size == QC_IDX_HEADER_SIZE + (uint64_t) asked->count * QC_IDX_ENTRY_SIZE &&
		qc_files_ends_at(files, log, file, qc_derived_length(header));
}

/* Narrow down by single entries, then read the few that are left, with the ones beside them. */
static bool
seek_in_file(const Asked *asked, uint64_t partition, uint64_t position, QcIdxEntry *found,
			 QcIdxSide *side)
{
	uint8_t		entries[(ASK_ENTRIES + 2) * QC_IDX_ENTRY_SIZE];
	uint32_t	low = 0;
	uint32_t	high = asked->count;

	while (high - low > ASK_ENTRIES)
	{
		uint32_t	middle = low + (high - low) / 2;
		QcIdxEntry	entry;

		if (!read_exactly(asked, QC_IDX_HEADER_SIZE + (uint64_t) middle * QC_IDX_ENTRY_SIZE, entries,
						  QC_IDX_ENTRY_SIZE))
			return false;
		qc_idx_entry_decode(entries, &entry);
		if (entry.partition < partition || (entry.partition == partition && entry.first <= position))
			low = middle + 1;
		else
			high = middle;
	}
	low -= low > 0;
	high += high < asked->count;
	if (!read_exactly(asked, QC_IDX_HEADER_SIZE + (uint64_t) low * QC_IDX_ENTRY_SIZE, entries,
					  (size_t) (high - low) * QC_IDX_ENTRY_SIZE))
		return false;
	*side = qc_idx_seek(entries, high - low, partition, position, found);
	return true;
}

bool
qc_read_ask_qidx(QcReadCache *cache, uint64_t log, uint64_t file, uint64_t partition,
				 uint64_t position, QcIdxEntry *found, QcIdxSide *side)
{
	Asked		asked = {cache->files->io, 0, 0};
	char		path[QC_PATH_MAX];
	bool		answered;

	qc_path_file(path, cache->files->layout, log, file, "qidx");
	if (asked.io->open(asked.io->context, path, 0, &asked.handle) != 0)
		return false;
	answered = usable(&asked, cache->files, log, file) &&
		seek_in_file(&asked, partition, position, found, side);
	asked.io->close(asked.io->context, asked.handle);
	return answered;
}

bool
qc_read_idx_usable(QcFiles *files, uint64_t log, uint64_t file)
{
	Asked		asked = {files->io, 0, 0};
	char		path[QC_PATH_MAX];
	bool		good;

	qc_path_file(path, files->layout, log, file, "qidx");
	if (asked.io->open(asked.io->context, path, 0, &asked.handle) != 0)
		return false;
	good = usable(&asked, files, log, file);
	asked.io->close(asked.io->context, asked.handle);
	return good;
}

bool
qc_read_begun_at(QcFiles *files, uint64_t log, uint64_t file, int64_t *at)
{
	uint8_t		h[QC_RECORD_HEADER_SIZE];

	if (qc_files_read(files, log, file, QC_FILE_HEADER_SIZE, h, sizeof(h), NULL) != QC_OK ||
		qc_load_u32(h) == 0)
		return false;
	*at = qc_record_created_at(h);
	return true;
}

/* ---- looking up ---- */

QcReadIndex *
qc_read_slot(QcReadCache *cache, uint64_t log, uint64_t file)
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

QcStatus
qc_read_refresh(QcReadCache *cache, QcReadIndex *index, uint64_t log, uint64_t file, QcError *err)
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
		if (!known && !complete && index->bad_position == QC_NO_BAD_PLACE)
		{
			cache->lacking_log = log;
			cache->lacking_file = file;
			cache->lacking_dirx = false;
		}
	}
	return status;
}

static bool
find_entry(const QcReadIndex *index, uint64_t partition, uint64_t position, QcIdxEntry *found)
{
	return index->count > 0 && qc_idx_find(index->bytes + QC_IDX_HEADER_SIZE, index->count,
										   partition, position, found);
}

QcStatus
qc_read_find_in_file(QcReadCache *cache, uint64_t log, uint64_t file, uint64_t partition,
					 uint64_t position, QcIdxEntry *found, bool *hit, uint64_t *bad_position, QcError *err)
{
	QcReadIndex *index = qc_read_slot(cache, log, file);
	QcStatus	status = QC_OK;

	index->used = ++cache->clock;
	*hit = index->file == file && index->log == log &&
		find_entry(index, partition, position, found);
	if (!*hit)
	{
		status = qc_read_refresh(cache, index, log, file, err);
		*hit = status == QC_OK && find_entry(index, partition, position, found);
	}
	*bad_position = index->bad_position;
	return status;
}

/* ---- writing .qidx and .qhsh files ---- */

static void *
take_memory(void *context, size_t size)
{
	(void) context;
	return malloc(size);
}

static void
free_memory(void *context, void *memory)
{
	(void) context;
	free(memory);
}

bool
qc_read_idx_right(QcFiles *files, uint64_t log, uint64_t file)
{
	QcReadCache cache;
	bool		right;

	qc_read_init(&cache, files, take_memory, free_memory, NULL);
	right = qc_read_refresh(&cache, qc_read_slot(&cache, log, file), log, file, NULL) == QC_OK &&
		cache.lacking_file == 0;
	qc_read_end(&cache);
	return right;
}

typedef struct Entries
{
	QcIdxEntry *entries;
	uint32_t	count;
	uint32_t	cap;
	uint64_t	length;
	QcHashesBuild *hashes;		/* to be made of the same records; NULL = not */
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

/* Whose messages cannot be read has an index all the same, and who needs one of them finds the damage. */
static QcStatus
note_hashes(Entries *list, const QcScan *scan, QcError *err)
{
	QcStatus	status = list->hashes == NULL ? QC_OK :
		qc_hashes_add(list->hashes, scan->position, qc_scan_bytes(scan), &scan->record, err);

	if (status != QC_DAMAGED)
		return status;
	list->hashes = NULL;
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
		if (status == QC_OK)
			status = note_hashes(list, &scan, err);
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

/*
 * The zero-filled rest of a closed file goes back to the file system, durably before the file has its index: a file with an index
 * that fits has none.
 */
static QcStatus
give_back_rest(QcFiles *files, uint64_t log, uint64_t file, uint64_t length, QcError *err)
{
	const QcIo *io = files->io;
	char		path[QC_PATH_MAX];
	uint64_t	size;
	QcHandle	handle;
	QcStatus	status = qc_files_size(files, log, file, true, &size, err);
	int			rc;

	if (status != QC_OK || size <= length)
		return status;
	status = qc_files_get(files, log, file, true, &handle, err);
	if (status != QC_OK)
		return status;
	rc = io->truncate(io->context, handle, length);
	if (rc == 0)
		rc = io->sync(io->context, handle);
	qc_path_file(path, files->layout, log, file, "qlog");
	return rc == 0 ? QC_OK : qc_error_sys(err, rc, path, "could not shorten log file");
}

/* Write a derived file.	QC_MISSING: the log goes with its queue meanwhile, or somebody else has just put the same one in place. */
static QcStatus
write_derived(QcFiles *files, uint64_t log, uint64_t file, const char *suffix, const uint8_t *bytes,
			  size_t size, QcError *err)
{
	char		path[QC_PATH_MAX];
	QcError		why;
	QcStatus	status;

	qc_error_clear(&why);
	qc_path_file(path, files->layout, log, file, suffix);
	status = qc_dir_write_file(files->io, path, bytes, size, &why);
	if (status == QC_OK)
		return QC_OK;
	if (why.sys_errno == ENOENT)
		status = why.code = QC_MISSING;
	if (err != NULL)
		*err = why;
	return status;
}

static QcStatus
write_idx(QcFiles *files, uint64_t log, uint64_t file, Entries *list, QcError *err)
{
	size_t		size = QC_IDX_HEADER_SIZE + (size_t) list->count * QC_IDX_ENTRY_SIZE;
	uint8_t    *bytes = malloc(size);
	QcStatus	status;

	if (bytes == NULL)
		return no_memory(err);
	qc_idx_encode(bytes, file, list->length, list->entries, list->count);
	status = write_derived(files, log, file, "qidx", bytes, size, err);
	free(bytes);
	return status;
}

static QcStatus
write_hashes(QcFiles *files, uint64_t log, uint64_t file, Entries *list, QcError *err)
{
	const uint8_t *bytes;
	size_t		len;
	QcStatus	status = qc_hashes_seal(list->hashes, file, list->length, &bytes, &len, err);

	return status == QC_OK ? write_derived(files, log, file, "qhsh", bytes, len, err) : status;
}

QcStatus
qc_read_build(QcFiles *files, uint64_t log, uint64_t file, unsigned what, QcError *err)
{
	QcHashesBuild hashes = {0};
	Entries		list = {.hashes = (what & QC_BUILD_HASHES) != 0 ? &hashes : NULL};
	QcStatus	status = scan_file(files, log, file, &list, err);

	if (status == QC_OK)
		status = give_back_rest(files, log, file, list.length, err);
	if (status == QC_OK && (what & QC_BUILD_IDX) != 0)
		status = write_idx(files, log, file, &list, err);
	if (status == QC_OK && list.hashes != NULL)
		status = write_hashes(files, log, file, &list, err);
	qc_hashes_free(&hashes);
	free(list.entries);
	return status;
}
