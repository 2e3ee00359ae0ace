/*
 * handmade.c
 *		Data directories made by hand, record by record.
 */
#include "handmade.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qc_entry.h"
#include "qc_log.h"

static void
must(bool held, const char *what)
{
	if (!held)
	{
		printf("Bail out! handmade directory: %s\n", what);
		abort();
	}
}

void
hand_begin_shared(Hand *h, QcLayout layout, uint32_t shards, uint64_t seed)
{
	QcDirChoice choice = {.layout = layout, .shards = shards};
	QcError		err;

	memset(h, 0, sizeof(*h));
	h->disk = sim_disk_new(seed);
	h->io = sim_disk_io(h->disk);
	qc_files_init(&h->files, h->io, layout);
	must(qc_dir_open(h->io, HAND_SYSTEM, &choice, HAND_DIRECTORY, 1, &h->identity, &err) == QC_OK,
		 "create");
	must(shards < HAND_LOGS, "too many shared logs");
	for (uint64_t log = 0; log <= shards; log++)
		h->logs[h->nlogs++] = (HandLog) {log, 1, QC_FILE_HEADER_SIZE};
	h->clock = 1000000;
}

void
hand_begin(Hand *h, QcLayout layout, uint64_t seed)
{
	hand_begin_shared(h, layout, 0, seed);
}

void
hand_end(Hand *h)
{
	qc_files_close(&h->files);
	must(sim_disk_handles(h->disk) == 0, "handles are left open");
	sim_disk_free(h->disk);
}

HandLog *
hand_log(Hand *h, uint64_t log)
{
	QcError		err;

	for (int i = 0; i < h->nlogs; i++)
		if (h->logs[i].log == log)
			return &h->logs[i];
	must(h->nlogs < HAND_LOGS, "too many logs");
	must(qc_log_create_files(&h->files, log, HAND_ALLOCATED, &err) == QC_OK, "create log");
	h->logs[h->nlogs] = (HandLog)
	{
		log, 1, QC_FILE_HEADER_SIZE
	};
	return &h->logs[h->nlogs++];
}

void
hand_write(Hand *h, uint64_t log, uint64_t file, uint64_t position, const void *bytes, size_t len)
{
	QcIoSlice	slice = {bytes, len};
	QcHandle	handle;

	must(qc_files_get(&h->files, log, file, true, &handle, NULL) == QC_OK, "open log file");
	must(h->io->write(h->io->context, handle, &slice, 1, position) == 0, "write");
}

void
hand_read(Hand *h, uint64_t log, uint64_t file, uint64_t position, void *bytes, size_t len)
{
	must(qc_files_read(&h->files, log, file, position, bytes, len, NULL) == QC_OK, "read");
}

uint64_t
hand_append(Hand *h, uint64_t log, const void *bytes, size_t len)
{
	HandLog    *at = hand_log(h, log);
	uint64_t	position = at->tail;

	hand_write(h, log, at->file, position, bytes, len);
	at->tail += len;
	return position;
}

void
hand_make_file(Hand *h, const char *path, const void *bytes, size_t len)
{
	QcIoSlice	slice = {bytes, len};
	QcHandle	handle;

	must(h->io->open(h->io->context, path, QC_OPEN_WRITE | QC_OPEN_CREATE, &handle) == 0, "create");
	must(h->io->write(h->io->context, handle, &slice, 1, 0) == 0, "write");
	h->io->close(h->io->context, handle);
}

uint64_t
hand_size(Hand *h, const char *path)
{
	QcHandle	handle;
	uint64_t	size = 0;

	if (h->io->open(h->io->context, path, 0, &handle) != 0)
		return UINT64_MAX;
	must(h->io->size(h->io->context, handle, &size) == 0, "size");
	h->io->close(h->io->context, handle);
	return size;
}

void
hand_roll(Hand *h, uint64_t log)
{
	static uint8_t bytes[HAND_ALLOCATED];
	HandLog    *at = hand_log(h, log);
	QcFileHeader header = {at->file + 1, QC_FIRST_SEQ_AHEAD};
	char		path[QC_PATH_MAX];

	qc_path_file(path, h->files.layout, log, at->file + 1, "qlog");
	qc_file_header_encode(bytes, &header);
	hand_make_file(h, path, bytes, sizeof(bytes));
	at->file++;
	at->tail = QC_FILE_HEADER_SIZE;
}

static void *
take_buffer(void *context, size_t size)
{
	(void) context;
	return malloc(size);
}

static void
release_buffer(void *context, void *buffer)
{
	(void) context;
	free(buffer);
}

void
hand_read_init(Hand *h, QcReadCache *cache)
{
	qc_read_init(cache, &h->files, take_buffer, release_buffer, NULL);
}

void
hand_sync(Hand *h)
{
	char		path[QC_PATH_MAX];
	uint64_t   *files;
	uint32_t	n;
	QcHandle	handle;

	for (int i = 0; i < h->nlogs; i++)
	{
		must(qc_dir_files(h->io, h->files.layout, h->logs[i].log, &files, &n, NULL) == QC_OK,
			 "list");
		for (uint32_t k = 0; k < n; k++)
		{
			must(qc_files_get(&h->files, h->logs[i].log, files[k], true, &handle, NULL) == QC_OK,
				 "open");
			must(h->io->sync(h->io->context, handle) == 0, "sync");
		}
		free(files);
		qc_path_log(path, h->files.layout, h->logs[i].log);
		must(h->io->sync_directory(h->io->context, path) == 0, "sync directory");
	}
	must(h->io->sync_directory(h->io->context, "qlog") == 0, "sync directory");
}

/* ---- records ---- */

size_t
hand_message(const Hand *h, uint8_t out[HAND_RECORD_MAX], bool solo, uint64_t seq,
			 uint64_t partition, uint64_t first, uint32_t count)
{
	uint8_t		raw[HAND_RECORD_MAX / 2];
	uint8_t		hashes[32 * QC_HASH_SIZE];
	QcWriter	w;
	size_t		size;

	qc_writer_init(&w, raw, sizeof(raw));
	must(count > 0 && count <= 32, "messages in a record");
	for (uint32_t i = 0; i < count; i++)
	{
		char		content[32];
		char		dedup[32];
		QcMessage	message = {.data = (uint8_t *) content};

		message.data_len = (uint32_t) snprintf(content, sizeof(content), "m%llu",
											   (unsigned long long) (first + i));
		qc_store_u64(message.id, partition);
		qc_store_u64(message.id + 8, first + i);
		if (h->dedup && (first + i) % 2 == 0)
		{
			message.dedup_id = (uint8_t *) dedup;
			message.dedup_len = (uint16_t) snprintf(dedup, sizeof(dedup), "d%llu", (unsigned long long) (first + i));
		}
		qc_frame_put(&w, &message);
		qc_frame_hash(&message, hashes + (size_t) i * QC_HASH_SIZE);
	}
	must(!w.full, "frames fit");
	must(qc_record_build_message(out, HAND_RECORD_MAX, solo, partition, count, hashes, raw, w.len,
								 0, &size, NULL) == QC_OK, "record fits");
	qc_record_seal_message(out, seq, first, h->clock + (int64_t) seq, h->durable);
	return size;
}

uint64_t
hand_solo(Hand *h, uint64_t log, uint64_t seq, uint64_t partition, uint64_t first, uint32_t count)
{
	uint8_t		record[HAND_RECORD_MAX];
	size_t		size = hand_message(h, record, true, seq, partition, first, count);

	return hand_append(h, log, record, size);
}

void
hand_entry(HandEntry *e, uint64_t seq, uint64_t xid, uint16_t flags)
{
	memset(e, 0, sizeof(*e));
	e->seq = seq;
	e->xid = xid;
	e->flags = flags;
	qc_writer_init(&e->effects, e->buffer, sizeof(e->buffer));
}

void
hand_effect(HandEntry *e, QcEffectKind kind, const void *fixed, uint32_t nitems)
{
	qc_effect_put(&e->effects, kind, fixed, nitems);
	e->neffects++;
}

void
hand_item(HandEntry *e, QcEffectKind kind, const void *item)
{
	qc_effect_put_item(&e->effects, kind, item);
}

static void
add_log(HandEntry *e, uint64_t log)
{
	int			at = 0;

	while (at < e->nlogs && e->logs[at] < log)
		at++;
	if (at < e->nlogs && e->logs[at] == log)
		return;
	must(e->nlogs < HAND_LOGS, "too many logs in an entry");
	memmove(&e->logs[at + 1], &e->logs[at], (size_t) (e->nlogs - at) * sizeof(uint64_t));
	e->logs[at] = log;
	e->nlogs++;
}

void
hand_push(HandEntry *e, uint64_t log, uint64_t partition, uint64_t first, uint32_t count)
{
	QcAppend	append = {partition, log, first, count, 1};

	add_log(e, log);
	hand_effect(e, QC_EFFECT_APPEND, &append, 0);
}

void
hand_queue(HandEntry *e, uint64_t queue, const char *name)
{
	hand_queue_in(e, queue, queue, name);
}

void
hand_queue_in(HandEntry *e, uint64_t queue, uint64_t log, const char *name)
{
	QcQueueCreate create = {.queue = queue, .database = 1, .owner = 10, .log = log,
		.default_partition = 100 + queue};

	create.name = (QcStr)
	{
		(const uint8_t *) name, (uint16_t) strlen(name)
	};
	hand_effect(e, QC_EFFECT_QUEUE_CREATE, &create, 0);
}

static HandPiece *
new_piece(HandEntry *e, uint64_t log)
{
	HandPiece  *piece = &e->pieces[e->npieces];

	must(e->npieces < HAND_PIECES, "too many records in an entry");
	memset(piece, 0, sizeof(*piece));
	piece->log = log;
	e->npieces++;
	return piece;
}

/* The message records of one log, in the order of the effects. */
static void
build_messages(const Hand *h, HandEntry *e, uint64_t log)
{
	QcReader	r;
	QcEffect	effect;

	qc_reader_init(&r, e->buffer, e->effects.len);
	while (qc_effect_get(&r, &effect, NULL) == QC_OK)
	{
		const QcAppend *append = &effect.u.append;
		HandPiece  *piece;

		if (effect.kind != QC_EFFECT_APPEND || append->log != log)
			continue;
		piece = new_piece(e, log);
		piece->size = hand_message(h, piece->bytes, false, e->seq, append->partition, append->first,
								   append->count);
	}
}

void
hand_build(Hand *h, HandEntry *e)
{
	uint8_t		whole[HAND_RECORD_MAX];
	QcWriter	w;
	int64_t		created_at = h->clock + (int64_t) e->seq;

	must(!e->effects.full, "effects fit");
	if (e->nlogs == 0)
		add_log(e, 0);
	qc_writer_init(&w, whole + QC_RECORD_HEADER_SIZE, sizeof(whole) - QC_RECORD_HEADER_SIZE);
	qc_entry_put_head(&w, e->flags, h->durable, e->xid, e->logs, (uint32_t) e->nlogs, e->neffects);
	qc_put_bytes(&w, e->buffer, e->effects.len);
	must(!w.full, "entry fits");
	qc_record_seal_entry(whole, w.len, e->seq, (uint32_t) e->nlogs, h->epoch, created_at);
	e->npieces = 0;
	for (int i = 0; i < e->nlogs; i++)
	{
		HandPiece  *piece;

		build_messages(h, e, e->logs[i]);
		piece = new_piece(e, e->logs[i]);
		piece->size = i == 0 ? QC_RECORD_HEADER_SIZE + w.len : QC_STUB_SIZE;
		if (i == 0)
			memcpy(piece->bytes, whole, piece->size);
		else
			qc_record_put_stub(piece->bytes, whole + QC_RECORD_HEADER_SIZE, (uint32_t) w.len,
							   e->seq, (uint32_t) e->nlogs, h->epoch, created_at);
	}
}

void
hand_put(Hand *h, HandEntry *e)
{
	for (int i = 0; i < e->npieces; i++)
	{
		HandPiece  *piece = &e->pieces[i];

		if (piece->skip)
			continue;
		piece->file = hand_log(h, piece->log)->file;
		piece->position = hand_append(h, piece->log, piece->bytes, piece->size);
	}
}

void
hand_write_entry(Hand *h, HandEntry *e)
{
	hand_build(h, e);
	hand_put(h, e);
}

HandPiece *
hand_end_of(HandEntry *e, uint64_t log)
{
	HandPiece  *found = NULL;

	for (int i = 0; i < e->npieces; i++)
		if (e->pieces[i].log == log)
			found = &e->pieces[i];
	must(found != NULL, "entry has a part in the log");
	return found;
}

HandPiece *
hand_message_of(HandEntry *e, uint64_t log)
{
	HandPiece  *found = NULL;

	for (int i = 0; i < e->npieces && found == NULL; i++)
		if (e->pieces[i].log == log)
			found = &e->pieces[i];
	must(found != NULL && found != hand_end_of(e, log), "entry has messages in the log");
	return found;
}

/* ---- stash ---- */

void
hand_stash_begin(HandStash *stash)
{
	memcpy(stash->bytes, QC_STASH_MAGIC, QC_STASH_MAGIC_SIZE);
	stash->len = QC_STASH_MAGIC_SIZE;
}

void
hand_stash_add(HandStash *stash, QcWalKind kind, uint32_t timeline, uint64_t lsn, const void *body,
			   size_t len)
{
	QcStashRecord record = {kind, timeline, lsn, body, (uint32_t) len};

	must(stash->len + QC_STASH_HEAD_SIZE + len <= sizeof(stash->bytes), "stash fits");
	qc_stash_put_head(stash->bytes + stash->len, &record);
	memcpy(stash->bytes + stash->len + QC_STASH_HEAD_SIZE, body, len);
	stash->len += QC_STASH_HEAD_SIZE + len;
}

void
hand_stash_entry(HandStash *stash, const Hand *h, const HandEntry *e, uint32_t timeline,
				 uint64_t lsn)
{
	uint8_t		body[32768];
	const HandPiece *whole = NULL;
	QcWalEntry	wal = {.flags = e->flags, .directory = HAND_DIRECTORY, .epoch = h->epoch,
		.seq = e->seq, .xid = e->xid};
	QcWriter	w;

	/* stubs are not carried; the whole entry, which ends the part in its first log, comes last */
	for (int i = 0; i < e->npieces; i++)
	{
		wal.nparts += e->pieces[i].bytes[48] != QC_KIND_STUB;
		if (e->pieces[i].bytes[48] == QC_KIND_ENTRY)
			whole = &e->pieces[i];
	}
	must(whole != NULL, "entry is built");
	wal.digest = qc_digest(whole->bytes + QC_RECORD_HEADER_SIZE,
						   whole->size - QC_RECORD_HEADER_SIZE);
	wal.entry_len = (uint32_t) (whole->size - QC_RECORD_HEADER_SIZE);
	qc_writer_init(&w, body, sizeof(body));
	qc_wal_entry_put(&w, &wal);
	for (int i = 0; i < e->npieces && (e->flags & QC_ENTRY_CARRIED); i++)
	{
		const HandPiece *piece = &e->pieces[i];

		if (piece->bytes[48] != QC_KIND_MESSAGES)
			continue;
		qc_wal_part_put_head(&w, piece->log, (uint32_t) piece->size);
		qc_put_bytes(&w, piece->bytes, piece->size);
	}
	if (e->flags & QC_ENTRY_CARRIED)
	{
		qc_wal_part_put_head(&w, whole->log, (uint32_t) whole->size);
		qc_put_bytes(&w, whole->bytes, whole->size);
	}
	must(!w.full, "WAL record fits");
	hand_stash_add(stash, QC_WAL_ENTRY, timeline, lsn, body, w.len);
}
