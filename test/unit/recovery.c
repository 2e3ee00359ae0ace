/*
 * recovery.c
 *		Running recovery over a directory made by hand.
 */
#include "recovery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "qc_cursor.h"
#include "qc_rows.h"

#define STATE_BYTES		(4u * 1024 * 1024)
#define INDEX_BYTES		(1u * 1024 * 1024)
#define RING_BYTES		65536
#define SEGMENT			65536

/* ---- the server ---- */

void
server_begin(Server *server)
{
	memset(server, 0, sizeof(*server));
	server->timeline = 1;
	server->redo_end = 10000;
	server->random = 900;
}

void
server_commits(Server *server, uint64_t xid)
{
	server->committed[server->ncommitted++] = xid;
}

static bool
in_history(void *context, uint32_t timeline, uint64_t lsn)
{
	const Server *server = context;

	return timeline == server->timeline ? lsn <= server->redo_end :
		timeline < server->timeline && lsn <= server->fork_lsn;
}

static QcStatus
xid_committed(void *context, uint64_t xid, bool *committed, QcError *err)
{
	Server	   *server = context;

	if (server->fail == FAIL_XID)
		return qc_error_set(err, QC_IO, "no commit log");
	if (server->nasked < RUN_XIDS)
		server->asked[server->nasked++] = xid;
	*committed = false;
	for (int i = 0; i < server->ncommitted; i++)
		*committed |= server->committed[i] == xid;
	return QC_OK;
}

static QcStatus
new_epoch(void *context, uint64_t old_epoch, uint64_t epoch, uint64_t first_seq, QcError *err)
{
	Server	   *server = context;
	QcWalMark	mark = {HAND_DIRECTORY, epoch, old_epoch, first_seq};
	uint8_t		body[QC_WALREC_MARK_MAX];
	QcWriter	w;

	if (server->fail == FAIL_EPOCH)
		return qc_error_set(err, QC_IO, "no WAL");
	if (server->wal != NULL)
	{
		qc_writer_init(&w, body, sizeof(body));
		qc_wal_mark_put(&w, QC_WAL_EPOCH, &mark);
		hand_stash_add(server->wal, QC_WAL_EPOCH, server->timeline, ++server->redo_end, body, w.len);
	}
	server->nepochs++;
	server->old_epoch = old_epoch;
	server->new_epoch = epoch;
	server->first_seq = first_seq;
	return QC_OK;
}

static QcStatus
draw(void *context, uint64_t *value, QcError *err)
{
	Server	   *server = context;

	if (server->fail == FAIL_RANDOM)
		return qc_error_set(err, QC_INTERNAL, "no random numbers");
	*value = server->random++;
	return QC_OK;
}

static bool
progress(void *context, const char *phase, uint64_t done, uint64_t total)
{
	Server	   *server = context;

	(void) phase;
	(void) done;
	(void) total;
	return server->stop_after == 0 || --server->stop_after > 0;
}

/* ---- rows ---- */

static int
compare_keys(const Row *a, const uint8_t *key, size_t key_len)
{
	size_t		len = a->key_len < key_len ? a->key_len : key_len;
	int			order = memcmp(a->key, key, len);

	return order != 0 ? order : a->key_len < key_len ? -1 : a->key_len > key_len;
}

/* Remove the row of this key; returns where it stood or would stand. */
static size_t
remove_row(Rows *rows, const uint8_t *key, size_t key_len)
{
	size_t		at = 0;

	while (at < rows->count && compare_keys(&rows->rows[at], key, key_len) < 0)
		at++;
	if (at < rows->count && compare_keys(&rows->rows[at], key, key_len) == 0)
	{
		free(rows->rows[at].key);
		rows->count--;
		memmove(&rows->rows[at], &rows->rows[at + 1], (rows->count - at) * sizeof(Row));
	}
	return at;
}

static void
put_row(Rows *rows, const uint8_t *key, size_t key_len, const uint8_t *value, size_t value_len)
{
	size_t		at = remove_row(rows, key, key_len);

	if (rows->count == rows->cap)
	{
		rows->cap = rows->cap * 2 + 64;
		rows->rows = realloc(rows->rows, rows->cap * sizeof(Row));
	}
	memmove(&rows->rows[at + 1], &rows->rows[at], (rows->count - at) * sizeof(Row));
	rows->rows[at] = (Row)
	{
		key_len, value_len, malloc(key_len + value_len)
	};
	memcpy(rows->rows[at].key, key, key_len);
	memcpy(rows->rows[at].key + key_len, value, value_len);
	rows->count++;
}

void
rows_take(Rows *rows, QcState *st)
{
	size_t		cap = 1u << 20;
	uint8_t    *batch = malloc(cap);
	QcWriter	w;
	QcRowsMark	mark;
	QcError		err;

	qc_writer_init(&w, batch, cap);
	CHECK_U64(qc_rows_dump(st, &w, &mark, &err), QC_OK);
	rows_apply(rows, &w);
	free(batch);
}

void
rows_apply(Rows *rows, const QcWriter *batch)
{
	QcReader	r;

	qc_reader_init(&r, batch->buf, batch->len);
	while (qc_reader_left(&r) > 0)
	{
		uint8_t		op = qc_get_u8(&r);
		size_t		key_len = qc_get_u16(&r);
		size_t		value_len = qc_get_u32(&r);
		const uint8_t *key = qc_get_bytes(&r, key_len);
		const uint8_t *value = qc_get_bytes(&r, value_len);

		if (op == QC_BATCH_PUT)
			put_row(rows, key, key_len, value, value_len);
		else
			(void) remove_row(rows, key, key_len);
	}
	CHECK(!r.bad);
}

void
rows_free(Rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		free(rows->rows[i].key);
	free(rows->rows);
	memset(rows, 0, sizeof(*rows));
}

/* ---- running ---- */

static QcStatus
load_rows(Run *run, const Rows *rows)
{
	QcStatus	status = QC_OK;

	for (size_t i = 0; i < rows->count && status == QC_OK; i++)
		status = qc_rows_load(run->st, rows->rows[i].key, rows->rows[i].key_len,
							  rows->rows[i].key + rows->rows[i].key_len, rows->rows[i].value_len,
							  &run->err);
	return status == QC_OK ? qc_rows_loaded(run->st, 1, 1, &run->err) : status;
}

static void
given_up(void *context, uint64_t partition, uint64_t first, uint64_t end)
{
	Server	   *server = context;

	if (!CHECK(server->ngiven < RUN_XIDS))
		return;
	server->given[server->ngiven].partition = partition;
	server->given[server->ngiven].first = first;
	server->given[server->ngiven++].end = end;
}

QcStatus
run_recovery(Run *run, Hand *hand, Server *server, const RunOptions *options)
{
	static const RunOptions none;
	QcStateConfig config = {.state_bytes = STATE_BYTES, .index_bytes = INDEX_BYTES, .dedup_bytes = 64u << 10, .max_slots = 100};
	QcStatus	status = QC_OK;

	if (options == NULL)
		options = &none;
	if (options->state_bytes != 0)
		config.state_bytes = options->state_bytes;
	if (options->index_bytes != 0)
		config.index_bytes = options->index_bytes;
	memset(run, 0, sizeof(*run));
	run->hand = hand;
	run->server = server;
	server->nepochs = server->nasked = server->ngiven = 0;
	run->block = malloc(qc_state_size(&config));
	run->st = qc_state_init(run->block, &config);
	run->ring_block = malloc(qc_ring_block_size(RING_BYTES));
	run->ring = qc_ring_init(run->ring_block, RING_BYTES, 0);
	hand_read_init(hand, &run->cache);
	qc_error_clear(&run->err);
	if (options->rows != NULL)
		status = load_rows(run, options->rows);
	run->st->directory_id = hand->identity.directory_id;
	run->st->shards = hand->identity.shards;
	run->r = (QcRecover)
	{
		.st = run->st, .ring = run->ring, .files = &hand->files, .segment_size = SEGMENT,
		.stash = options->stash == NULL ? NULL : options->stash->bytes,
		.stash_len = options->stash == NULL ? 0 : options->stash->len,
		.timeline = server->timeline, .redo_end = server->redo_end, .copied = options->copied,
		.allow_gap = options->allow_gap, .give_up_seq = options->give_up_seq, .give_up_logs = options->give_up_logs, .floor = options->floor, .snapshot = options->snapshot, .now = 2000000, .monotonic = 5000,
		.hooks =
		{
		server, in_history, xid_committed, new_epoch, draw, progress, NULL, given_up
		}
	};
	return status == QC_OK ? qc_recover(&run->r, &run->err) : status;
}

void
run_end(Run *run)
{
	qc_read_end(&run->cache);
	free(run->block);
	free(run->ring_block);
}

static void
say_error(const QcError *err)
{
	char		text[1024];

	qc_error_format(err, text, sizeof(text));
	printf("# %s: %s\n", qc_status_name(err->code), text);
}

bool
run_ok(Run *run, Hand *hand, Server *server, const RunOptions *options)
{
	bool		good = CHECK_U64(run_recovery(run, hand, server, options), QC_OK);

	if (!good)
		say_error(&run->err);
	else
	{
		CHECK_U64(qc_ring_durable(run->ring), run->st->seq);
		CHECK_U64(run->st->nopens, 0);
	}
	return good;
}

void
run_refused(Hand *hand, Server *server, const RunOptions *options, QcStatus code, const char *file,
			uint64_t position)
{
	uint64_t	digest = sim_disk_digest(hand->disk);
	Run			run;

	if (!CHECK_U64(run_recovery(&run, hand, server, options), code))
		say_error(&run.err);
	if (file != NULL)
	{
		CHECK_STR(run.err.file, file);
		CHECK_U64(run.err.position, position);
	}
	CHECK_U64(sim_disk_digest(hand->disk), digest);
	CHECK(!run.r.changed);
	run_end(&run);
}

/* ---- looking at the state ---- */

typedef struct Digest
{
	uint64_t	sum;
} Digest;

static void
mix(Digest *digest, uint64_t value)
{
	digest->sum = XXH3_64bits_withSeed(&value, sizeof(value), digest->sum);
}

static void
mix_cursor(QcState *st, Digest *digest, const QcCursor *cursor)
{
	mix(digest, QC_AT(st, QcGroup, cursor->group)->id);
	mix(digest, cursor->fetch);
	for (QcRef ref = cursor->slots.head; ref != 0; ref = QC_AT(st, QcSlot, ref)->of_cursor.next)
	{
		const QcSlot *slot = QC_AT(st, QcSlot, ref);

		mix(digest, slot->position);
		mix(digest, slot->attempt);
		mix(digest, slot->lease == 0 ? 0 : QC_AT(st, QcLease, slot->lease)->id);
	}
}

static void
mix_partition(QcState *st, Digest *digest, const QcPartition *partition)
{
	mix(digest, partition->id);
	mix(digest, partition->next);
	mix(digest, partition->stable);
	for (QcRef ref = partition->aborted.head; ref != 0; ref = QC_AT(st, QcAbortedRange, ref)->next)
	{
		mix(digest, QC_AT(st, QcAbortedRange, ref)->first);
		mix(digest, QC_AT(st, QcAbortedRange, ref)->count);
	}
	for (QcRef ref = partition->cursors; ref != 0; ref = QC_AT(st, QcCursor, ref)->next)
		mix_cursor(st, digest, QC_AT(st, QcCursor, ref));
}

uint64_t
state_digest(QcState *st)
{
	Digest		digest = {0};

	for (uint64_t id = 1; id < st->next_queue_id; id++)
	{
		QcQueue    *queue = qc_queue_by_id(st, id);

		if (queue == NULL || queue->state == QC_QUEUE_DEAD)
			continue;
		mix(&digest, id);
		mix(&digest, queue->state);
		mix(&digest, queue->damaged);
		mix(&digest, queue->pushed);
		mix(&digest, queue->acked);
	}
	for (uint64_t id = 1; id < st->next_partition_id; id++)
	{
		const QcPartition *partition = qc_partition_by_id(st, id);

		if (partition != NULL && QC_AT(st, QcQueue, partition->queue)->state != QC_QUEUE_DEAD)
			mix_partition(st, &digest, partition);
	}
	mix(&digest, st->nopens);
	mix(&digest, st->confirmed_seq);
	return digest.sum;
}

void
expect_positions(Run *run, uint64_t queue, uint64_t next, uint64_t stable)
{
	const QcPartition *partition = qc_partition_by_id(run->st, 100 + queue);

	if (!CHECK(partition != NULL))
		return;
	CHECK_U64(partition->next, next);
	CHECK_U64(partition->stable, stable);
}

void
expect_readable(Run *run, uint64_t queue, uint64_t first, uint64_t end)
{
	QcPartition *partition = qc_partition_by_id(run->st, 100 + queue);

	if (!CHECK(partition != NULL))
		return;
	for (uint64_t position = first; position < end; position++)
	{
		QcLocation	location = {0};
		QcRef		hint = 0;
		QcMessage	message;
		int64_t		created_at;
		char		text[32];
		QcStatus	status = QC_OK;

		if (!qc_index_find(run->st, partition, position, &hint, &location))
			status = qc_read_locate(&run->cache, QC_AT(run->st, QcQueue, partition->queue)->log_id,
									partition->id, position, 0, 0, &location,
									&run->err);
		if (status == QC_OK)
			status = qc_read_message(&run->cache, &location, partition->id, position, &message,
									 &created_at, &run->err);
		if (!CHECK_U64(status, QC_OK))
		{
			say_error(&run->err);
			return;
		}
		(void) snprintf(text, sizeof(text), "m%llu", (unsigned long long) position);
		CHECK_BYTES(message.data, message.data_len, text, strlen(text));
	}
}

void
expect_aborted(Run *run, uint64_t queue, uint64_t first, uint32_t count)
{
	const QcPartition *partition = qc_partition_by_id(run->st, 100 + queue);

	if (!CHECK(partition != NULL))
		return;
	for (QcRef ref = partition->aborted.head; ref != 0;
		 ref = QC_AT(run->st, QcAbortedRange, ref)->next)
	{
		const QcAbortedRange *range = QC_AT(run->st, QcAbortedRange, ref);

		if (range->first == first && range->count == count)
			return;
	}
	CHECK(!"the range is aborted");
}
