/*
 * test_dump.c
 *		qlog_dump on directories made by hand: what it prints, what it finds, how it exits.
 *
 * A directory is made on the simulated disk and copied into real files below the current directory, because
 * qlog_dump reads those.  Damage is done to the copy's source.
 */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../src/bin/qlog_dump.h"
#include "handmade.h"
#include "qc_hashes.h"
#include "qc_io_posix.h"
#include "qc_read.h"
#include "qc_snapshot.h"
#include "qs_store.h"
#include "sample.h"
#include "unit.h"

#define ROOT "dump_data"
#define LOG1 ROOT "/qlog/q1/r00000001.qlog"

static Hand hand;
static HandEntry entry;
static HandEntry pop;
static char *output;
static char *errors;

/* Run qlog_dump on arguments[0], unless that is NULL, with the others as options; fills output and errors. */
static int
dump_with(const char *const *arguments)
{
	char	   *argv[12] = {(char *) "qlog_dump"};
	int			argc = 1;
	size_t		out_len;
	size_t		errors_len;
	FILE	   *out;
	FILE	   *err;
	int			code;

	for (const char *const *option = arguments + 1; *option != NULL; option++)
		argv[argc++] = (char *) *option;
	if (arguments[0] != NULL)
		argv[argc++] = (char *) arguments[0];
	free(output);
	free(errors);
	out = open_memstream(&output, &out_len);
	err = open_memstream(&errors, &errors_len);
	code = dump_main(argc, argv, out, err);
	fclose(out);
	fclose(err);
	return code;
}

#define DUMP(...) dump_with((const char *const[]) {__VA_ARGS__, NULL, NULL})

static int
occurrences(const char *what)
{
	int			n = 0;

	for (const char *at = output; (at = strstr(at, what)) != NULL; at += strlen(what))
		n++;
	return n;
}

/* Copy one file of the simulated disk. */
static void
copy_file(const char *path)
{
	static uint8_t bytes[HAND_ALLOCATED];
	char		target[QC_PATH_MAX + 16];
	QcHandle	handle;
	size_t		done = 0;
	FILE	   *to;

	if (hand.io->open(hand.io->context, path, 0, &handle) != 0)
		return;
	CHECK(hand.io->read(hand.io->context, handle, bytes, sizeof(bytes), 0, &done) == 0);
	hand.io->close(hand.io->context, handle);
	(void) snprintf(target, sizeof(target), ROOT "/%s", path);
	to = fopen(target, "wb");
	if (CHECK(to != NULL))
	{
		CHECK_U64(fwrite(bytes, 1, done, to), done);
		fclose(to);
	}
}

static void
make_directories(const char *path)
{
	char		part[QC_PATH_MAX + 16];

	(void) snprintf(part, sizeof(part), ROOT "/%s", path);
	for (char *at = strchr(part, '/'); at != NULL; at = strchr(at + 1, '/'))
	{
		*at = '\0';
		(void) mkdir(part, 0700);
		*at = '/';
	}
	(void) mkdir(part, 0700);
}

/* Copy the logs; what an earlier test copied and this one does not have is removed. */
static void
copy_out(void)
{
	char		path[QC_PATH_MAX];

	CHECK(system("rm -rf " ROOT) == 0);
	for (int i = 0; i < hand.nlogs; i++)
	{
		qc_path_log(path, hand.files.layout, hand.logs[i].log);
		make_directories(path);
		for (uint64_t file = 1; file <= hand.logs[i].file; file++)
		{
			qc_path_file(path, hand.files.layout, hand.logs[i].log, file, "qlog");
			copy_file(path);
			qc_path_file(path, hand.files.layout, hand.logs[i].log, file, "qidx");
			copy_file(path);
			qc_path_file(path, hand.files.layout, hand.logs[i].log, file, "qhsh");
			copy_file(path);
		}
	}
}

/* Two queues; a solo record, an entry over both, an answer with items, one more solo record. */
static void
begin(QcLayout layout)
{
	QcDeliver	deliver = {.lease = 77, .queue = 1, .group = 3, .lease_us = 60000000};
	QcDeliverItem item = {.partition = 101, .first = 0, .count = 2, .attempt = 1};

	hand_begin(&hand, layout, 1);
	hand.epoch = 500;
	hand_entry(&entry, 1, 0, 0);
	hand_queue(&entry, 1, "first");
	hand_queue(&entry, 2, "second queue");
	hand_write_entry(&hand, &entry);
	hand.durable = 1;
	(void) hand_solo(&hand, 1, 2, 101, 0, 2);
	hand_entry(&entry, 3, 900, QC_ENTRY_CARRIED);
	hand_push(&entry, 1, 101, 2, 1);
	hand_push(&entry, 2, 102, 0, 2);
	hand_write_entry(&hand, &entry);
	hand_entry(&pop, 4, 0, 0);
	hand_effect(&pop, QC_EFFECT_DELIVER, &deliver, 1);
	hand_item(&pop, QC_EFFECT_DELIVER, &item);
	hand_write_entry(&hand, &pop);
	hand.durable = 4;
	(void) hand_solo(&hand, 1, 5, 101, 3, 1);
}

static void
end(void)
{
	hand_end(&hand);
}

/* Turn one bit of a written byte over. */
static void
flip(uint64_t log, uint64_t position)
{
	uint8_t		byte;

	hand_read(&hand, log, 1, position, &byte, 1);
	byte ^= 0x40;
	hand_write(&hand, log, 1, position, &byte, 1);
}

static const char golden_text[] =
"file path=qlog/q0/r00000001.qlog size=65536 id=1 state=created-ahead\n"
"record at=32 size=190 seq=1 kind=entry copies=1 epoch=500 "
"created_at=1970-01-01T00:00:01.000001Z flags=none durable_seq=0 xid=0 logs=0\n"
"  queue_create queue=1 database=1 owner=10 log=1 default_partition=101 name=first "
"options=\"\"\n"
"  queue_create queue=2 database=1 owner=10 log=2 default_partition=102 "
"name=\"second queue\" options=\"\"\n"
"record at=222 size=153 seq=4 kind=entry copies=1 epoch=500 "
"created_at=1970-01-01T00:00:01.000004Z flags=none durable_seq=1 xid=0 logs=0\n"
"  deliver lease=77 queue=1 group=3 lease_us=60000000\n"
"    item partition=101 first=0 count=2 attempt=1\n"
"end at=375 state=zeros bytes=65161\n"
"file path=qlog/q1/r00000001.qlog size=65536 id=1 state=created-ahead\n"
"record at=32 size=139 seq=2 kind=solo partition=101 first=0 count=2 durable_seq=1 "
"created_at=1970-01-01T00:00:01.000002Z\n"
"  message position=0 id=65000000-0000-0000-0000-000000000000 bytes=2 data=m0\n"
"  message position=1 id=65000000-0000-0000-0100-000000000000 bytes=2 data=m1\n"
"record at=171 size=90 seq=3 kind=messages partition=101 first=2 count=1 "
"created_at=1970-01-01T00:00:01.000003Z\n"
"  message position=2 id=65000000-0000-0000-0200-000000000000 bytes=2 data=m2\n"
"record at=261 size=173 seq=3 kind=entry copies=2 epoch=500 "
"created_at=1970-01-01T00:00:01.000003Z flags=carried durable_seq=1 xid=900 logs=1,2\n"
"  append partition=101 log=1 first=2 count=1 records=1\n"
"  append partition=102 log=2 first=0 count=2 records=1\n"
"record at=434 size=98 seq=5 kind=solo partition=101 first=3 count=1 durable_seq=4 "
"created_at=1970-01-01T00:00:01.000005Z\n"
"  message position=3 id=65000000-0000-0000-0300-000000000000 bytes=2 data=m3\n"
"end at=532 state=zeros bytes=65004\n"
"file path=qlog/q2/r00000001.qlog size=65536 id=1 state=created-ahead\n"
"record at=32 size=131 seq=3 kind=messages partition=102 first=0 count=2 "
"created_at=1970-01-01T00:00:01.000003Z\n"
"  message position=0 id=66000000-0000-0000-0000-000000000000 bytes=2 data=m0\n"
"  message position=1 id=66000000-0000-0000-0100-000000000000 bytes=2 data=m1\n"
"record at=163 size=61 seq=3 kind=stub copies=2 epoch=500 "
"entry_digest=6fc574d2137c43ad entry_bytes=124 created_at=1970-01-01T00:00:01.000003Z\n"
"end at=224 state=zeros bytes=65312\n";

/* The listing of everything, word by word. */
static void
text_of_a_directory(void)
{
	begin(QC_LAYOUT_FLAT);
	copy_out();
	CHECK_U64(DUMP(ROOT, "--payload=text"), DUMP_EXIT_CLEAN);
	CHECK_STR(output, golden_text);
	CHECK_STR(errors, "");
	end();
}

static const char golden_json[] =
"{\"type\":\"file\",\"path\":\"dump_data/qlog/q1/r00000001.qlog\",\"size\":65536,"
"\"id\":1,\"state\":\"created-ahead\"}\n"
"{\"type\":\"record\",\"at\":32,\"size\":139,\"seq\":2,\"kind\":\"solo\","
"\"partition\":101,\"first\":0,\"count\":2,\"durable_seq\":1,\"created_at\":1000002,"
"\"messages\":[{\"type\":\"message\",\"position\":0,"
"\"id\":\"65000000-0000-0000-0000-000000000000\",\"bytes\":2,\"data_hex\":\"6d30\"},"
"{\"type\":\"message\",\"position\":1,"
"\"id\":\"65000000-0000-0000-0100-000000000000\",\"bytes\":2,\"data_hex\":\"6d31\"}]}\n"
"{\"type\":\"record\",\"at\":171,\"size\":90,\"seq\":3,\"kind\":\"messages\","
"\"partition\":101,\"first\":2,\"count\":1,\"created_at\":1000003,"
"\"messages\":[{\"type\":\"message\",\"position\":2,"
"\"id\":\"65000000-0000-0000-0200-000000000000\",\"bytes\":2,\"data_hex\":\"6d32\"}]}\n"
"{\"type\":\"record\",\"at\":261,\"size\":173,\"seq\":3,\"kind\":\"entry\","
"\"copies\":2,\"epoch\":500,\"created_at\":1000003,\"flags\":\"carried\","
"\"durable_seq\":1,\"xid\":900,\"logs\":[1,2],\"effects\":[{\"type\":\"append\","
"\"partition\":101,\"log\":1,\"first\":2,\"count\":1,\"records\":1},"
"{\"type\":\"append\",\"partition\":102,\"log\":2,\"first\":0,\"count\":2,"
"\"records\":1}]}\n";

static void
json_of_a_file(void)
{
	begin(QC_LAYOUT_FLAT);
	copy_out();
	CHECK_U64(DUMP(LOG1, "--format=json", "--payload=hex", "-n", "3"), DUMP_EXIT_CLEAN);
	CHECK_STR(output, golden_json);
	end();
}

static void
both_layouts_are_found(void)
{
	begin(QC_LAYOUT_HIERARCHICAL);
	copy_out();
	CHECK_U64(DUMP(ROOT), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("\nfile path=qlog/00/0000/q"), 2);
	CHECK_U64(occurrences("\nrecord"), 8);
	end();
}

static void
filters(void)
{
	begin(QC_LAYOUT_FLAT);
	copy_out();
	CHECK_U64(DUMP(ROOT, "--type=entry"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("record "), 3);
	CHECK_U64(DUMP(ROOT, "--type=stub"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("kind=stub"), 1);
	CHECK_U64(DUMP(ROOT, "--type=deliver"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("record "), 1);
	CHECK_U64(DUMP(ROOT, "-s", "3", "-e", "4"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("record "), 5);
	CHECK_U64(DUMP(ROOT, "--queue=2"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("record "), 2);
	CHECK_U64(DUMP(ROOT, "--partition=102"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("record "), 2);
	CHECK_U64(DUMP(ROOT, "-n", "2"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("record "), 2);
	CHECK_U64(DUMP(ROOT, "-q"), DUMP_EXIT_CLEAN);
	CHECK_STR(output, "");
	CHECK_U64(DUMP(ROOT, "-z"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("total files=3 records=8 messages=6 "), 1);
	end();
}

/* Half a record at the end is no damage; zeros in front of something are not the end. */
static void
torn_tail(void)
{
	uint8_t		record[HAND_RECORD_MAX];
	size_t		size;

	begin(QC_LAYOUT_FLAT);
	size = hand_message(&hand, record, true, 6, 101, 4, 1);
	hand_append(&hand, 1, record, size - 3);
	copy_out();
	CHECK_U64(DUMP(ROOT), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("state=torn"), 1);
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("damages=0 torn_tails=1\n"), 1);
	CHECK_U64(DUMP(LOG1, "--verify"), DUMP_EXIT_CLEAN);
	end();
}

static void
damage_in_the_middle(void)
{
	HandPiece  *piece;

	begin(QC_LAYOUT_FLAT);
	piece = hand_message_of(&entry, 1);
	flip(1, piece->position + piece->size - 2);
	copy_out();
	CHECK_U64(DUMP(LOG1), DUMP_EXIT_DAMAGE);
	CHECK_U64(occurrences("damage path=" LOG1 " at="), 1);
	CHECK_U64(occurrences("\nrecord "), 3);
	CHECK_U64(occurrences(" seq=5 "), 1);
	CHECK_U64(DUMP(ROOT, "-q"), DUMP_EXIT_DAMAGE);
	CHECK_U64(occurrences("\n"), 1);
	end();
}

/* What is torn at the end of one file is damage when a later file goes on. */
static void
damage_before_a_later_file(void)
{
	begin(QC_LAYOUT_FLAT);
	hand_append(&hand, 1, "no record at all", 16);
	hand_roll(&hand, 1);
	(void) hand_solo(&hand, 1, 6, 101, 4, 1);
	copy_out();
	CHECK_U64(DUMP(ROOT), DUMP_EXIT_DAMAGE);
	CHECK_U64(occurrences("damage path=qlog/q1/r00000001.qlog"), 1);
	CHECK_U64(occurrences("seq=6"), 1);
	CHECK(remove(LOG1) == 0);
	CHECK_U64(DUMP(ROOT "/qlog/q1/r00000002.qlog"), DUMP_EXIT_CLEAN);
	end();
}

static void
write_beside(const char *path, const void *bytes, size_t len)
{
	FILE	   *file = fopen(path, "wb");

	if (CHECK(file != NULL))
	{
		CHECK_U64(fwrite(bytes, 1, len, file), len);
		fclose(file);
	}
}

/* ---- the checkpoint ---- */

#define DIRECTORY	4711

typedef QcStatus (*PutRow) (void *context, const uint8_t *key, size_t key_len, const uint8_t *value,
							size_t value_len, QcError *err);

static void
put_row(PutRow put, void *context, char kind, uint64_t id, const QcWriter *value)
{
	uint8_t		key[9] = {(uint8_t) kind};
	QcError		err;

	for (int i = 0; i < 8; i++)
		key[1 + i] = (uint8_t) (id >> (56 - 8 * i));
	CHECK_U64(put(context, key, kind == 'A' ? 1 : 9, value->buf, value->len, &err), QC_OK);
}

/* Rows as far as qlog_dump reads them: a mark, two queues that share log 1 and one of log 2, and their partitions. */
static void
put_rows(PutRow put, void *context, uint64_t seq)
{
	static const char *const names[] = {"first", "second queue", "third"};
	uint8_t		bytes[256];
	QcWriter	w;

	qc_writer_init(&w, bytes, sizeof(bytes));
	qc_put_u8(&w, 2);
	qc_put_u64(&w, seq);
	put_row(put, context, 'A', 0, &w);
	for (uint64_t id = 1; id <= 3; id++)
	{
		qc_writer_init(&w, bytes, sizeof(bytes));
		qc_put_u8(&w, 1);
		qc_put_u32(&w, 5);
		qc_put_u32(&w, 10);
		qc_put_u64(&w, id == 3 ? 2 : 1);
		qc_put_u64(&w, 100 + id);
		qc_put_u64(&w, 0);
		qc_put_u8(&w, 1);
		qc_put_u8(&w, id == 2);
		for (int i = 0; i < 10; i++)
			qc_put_u64(&w, 0);
		qc_put_str16(&w, names[id - 1], strlen(names[id - 1]));
		qc_put_str16(&w, "", 0);
		put_row(put, context, 'C', id, &w);
	}
	for (uint64_t id = 1; id <= 3; id++)
	{
		qc_writer_init(&w, bytes, sizeof(bytes));
		qc_put_u8(&w, 1);
		qc_put_u64(&w, id);
		put_row(put, context, 'E', 100 + id, &w);
	}
}

static QcStatus
put_into_batch(void *context, const uint8_t *key, size_t key_len, const uint8_t *value,
			   size_t value_len, QcError *err)
{
	(void) err;
	qs_batch_put(context, key, (uint16_t) key_len, value, (uint32_t) value_len);
	return QC_OK;
}

static void
make_store(uint64_t seq)
{
	uint8_t		bytes[4096];
	QcWriter	batch;
	QsStore    *store;
	QcError		err;

	make_directories("store");
	qc_writer_init(&batch, bytes, sizeof(bytes));
	put_rows(put_into_batch, &batch, seq);
	CHECK_U64(qs_open(ROOT "/store", 1 << 20, true, false, &store, &err), QC_OK);
	CHECK_U64(qs_apply(store, bytes, batch.len, &err), QC_OK);
	qs_close(store);
}

static void
make_snapshot(uint64_t seq)
{
	static QcSnapshotWriter writer;
	QcIoPosix	posix;
	QcError		err;

	make_directories("snapshots");
	CHECK_U64(qc_io_posix_open(&posix, ROOT), 0);
	CHECK_U64(qc_snapshot_begin(&writer, &posix.io, DIRECTORY, seq, 1000001, &err), QC_OK);
	put_rows(qc_snapshot_row, &writer, seq);
	CHECK_U64(qc_snapshot_finish(&writer, &err), QC_OK);
	CHECK_U64(qc_snapshot_publish(&writer, &err), QC_OK);
	qc_io_posix_close(&posix);
}

static const char golden_summary[] =
"settings path=FLOOR\n"
"  line text=format_version = 1\n"
"  line text=seq = 1\n"
"checkpoint seq=5 rows=7 bytes=470 logs=0 queues=3 groups=0 partitions=3 leases=0 cursors=0 "
"open_entries=0 lane_messages=0\n"
"snapshot path=snapshots/s4.qsnap seq=4 rows=7 bytes=470 logs=0 queues=3 groups=0 partitions=3 leases=0 "
"cursors=0 open_entries=0 lane_messages=0 created_at=1970-01-01T00:00:01.000001Z\n"
"queue id=1 log=1 database=5 partitions=1 name=first\n"
"queue id=2 log=1 database=5 partitions=1 damaged=true name=\"second queue\"\n"
"queue id=3 log=2 database=5 partitions=1 name=third\n"
"log id=0 path=qlog/q0 files=1 bytes=65536 first_file=1 last_file=1 indexes=0 dedup_ids=0 cut=0 bad=0\n"
"log id=1 path=qlog/q1 files=1 bytes=65536 first_file=1 last_file=1 indexes=0 dedup_ids=0 cut=1 bad=1\n"
"log id=2 path=qlog/q2 files=1 bytes=65536 first_file=1 last_file=1 indexes=0 dedup_ids=0 cut=0 bad=0\n";

static void
make_floor(uint64_t seq)
{
	QcIoPosix	posix;
	QcError		err;

	CHECK_U64(qc_io_posix_open(&posix, ROOT), 0);
	CHECK_U64(qc_dir_write_floor(&posix.io, seq, &err), QC_OK);
	qc_io_posix_close(&posix);
}

static void
summary_of_a_directory(void)
{
	begin(QC_LAYOUT_FLAT);
	copy_out();
	make_floor(1);
	make_store(5);
	make_snapshot(4);
	write_beside(LOG1 ".cut.9", "x", 1);
	write_beside(LOG1 ".bad.64", "x", 1);
	CHECK_U64(DUMP(ROOT, "--summary"), DUMP_EXIT_CLEAN);
	CHECK_STR(output, golden_summary);
	CHECK_STR(errors, "");

	/* as JSON: a line for each */
	CHECK_U64(DUMP(ROOT, "--summary", "--format=json"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("{\"type\":\"queue\","), 3);
	CHECK_U64(occurrences("\n"), 9);

	/* without a store the snapshot tells, a damaged one does not */
	CHECK_U64(remove(ROOT "/store/data.mdb"), 0);
	CHECK_U64(DUMP(ROOT, "--summary"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("checkpoint path=store/data.mdb state=missing"), 1);
	CHECK_U64(occurrences("\nqueue "), 3);
	make_snapshot(4);
	write_beside(ROOT "/snapshots/s6.qsnap", "no snapshot", 11);
	CHECK_U64(DUMP(ROOT, "--summary"), DUMP_EXIT_DAMAGE);
	CHECK_U64(occurrences("damage path=snapshots/s6.qsnap"), 1);
	CHECK_U64(occurrences("\nqueue "), 3);
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_DAMAGE);
	CHECK_U64(occurrences("damage path=snapshots/s6.qsnap"), 1);
	CHECK_U64(DUMP(LOG1, "--summary"), DUMP_EXIT_FAILED);
	end();
}

/* A queue by its name: its log, and of a log with several its partitions. */
static void
one_queue(void)
{
	begin(QC_LAYOUT_FLAT);
	copy_out();
	CHECK_U64(DUMP(ROOT, "--queue=third"), DUMP_EXIT_FAILED);
	make_store(5);
	CHECK_U64(DUMP(ROOT, "--queue=third"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("file path="), 1);
	CHECK_U64(occurrences("file path=qlog/q2/"), 1);
	CHECK_U64(occurrences("record "), 2);
	CHECK_U64(DUMP(ROOT, "--queue=first"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("file path=qlog/q1/"), 1);
	CHECK_U64(occurrences("record "), 4);
	CHECK_U64(DUMP(ROOT, "--queue=second queue"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("record "), 1);	/* the entry that pushes to 102 too */
	CHECK_U64(DUMP(ROOT, "--queue=nobody"), DUMP_EXIT_FAILED);
	CHECK(strstr(errors, "no queue of this name") != NULL);
	CHECK_U64(DUMP(ROOT, "--queue="), DUMP_EXIT_FAILED);
	end();
}

/* What is there, and what comes while it waits: in the same file, and in the next one. */
static void
follow_a_log(void)
{
	uint64_t	tail;
	pid_t		child;
	int			status;

	begin(QC_LAYOUT_FLAT);
	copy_out();
	CHECK_U64(DUMP(ROOT, "--follow", "-n", "7"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("record "), 7);
	tail = hand_log(&hand, 1)->tail;
	(void) hand_solo(&hand, 1, 6, 101, 4, 1);
	hand_roll(&hand, 1);
	(void) hand_solo(&hand, 1, 7, 101, 5, 1);
	CHECK(tail > 0);
	child = fork();
	if (child == 0)
	{
		struct timespec pause = {.tv_nsec = 300000000};

		(void) nanosleep(&pause, NULL);
		copy_file("qlog/q1/r00000001.qlog");
		(void) nanosleep(&pause, NULL);
		copy_file("qlog/q1/r00000002.qlog");
		_exit(0);
	}
	CHECK_U64(DUMP(ROOT, "--follow", "--queue=1", "-n", "6", "--format=json"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("\"seq\":6,"), 1);
	CHECK_U64(occurrences("\"seq\":7,"), 1);
	CHECK_U64(waitpid(child, &status, 0), child);
	CHECK_U64(status, 0);
	CHECK_U64(DUMP(ROOT, "--follow", "--verify"), DUMP_EXIT_FAILED);

	/* bytes that are no record, and a file behind them */
	flip(1, tail + 20);
	copy_file("qlog/q1/r00000001.qlog");
	CHECK_U64(DUMP(ROOT, "-f", "--queue=1", "-n", "5"), DUMP_EXIT_DAMAGE);
	CHECK_U64(occurrences("damage path=qlog/q1/r00000001.qlog"), 1);
	CHECK_U64(occurrences(" seq=7 "), 1);
	end();
}

/* Below the floor files and parts of entries may be gone; above it they may not. */
static void
what_was_reclaimed(void)
{
	begin(QC_LAYOUT_FLAT);
	hand_roll(&hand, 1);
	(void) hand_solo(&hand, 1, 6, 101, 4, 1);
	hand_roll(&hand, 1);
	hand.durable = 7;
	(void) hand_solo(&hand, 1, 7, 101, 5, 1);
	copy_out();
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_CLEAN);
	CHECK_U64(remove(ROOT "/qlog/q1/r00000002.qlog"), 0);
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_DAMAGE);
	make_floor(6);
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_CLEAN);
	CHECK_U64(DUMP(ROOT), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("removed path=qlog/q1/r00000002.qlog files=1"), 1);
	CHECK_U64(remove(ROOT "/qlog/q2/r00000001.qlog"), 0);
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_CLEAN);
	make_floor(2);
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_DAMAGE);
	write_beside(ROOT "/FLOOR", "rubbish", 7);
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_DAMAGE);
	CHECK_U64(occurrences("damage path=FLOOR"), 1);
	end();
}

static void
missing_file(void)
{
	begin(QC_LAYOUT_FLAT);
	hand_roll(&hand, 1);
	(void) hand_solo(&hand, 1, 6, 101, 4, 1);
	hand_roll(&hand, 1);
	(void) hand_solo(&hand, 1, 7, 101, 5, 1);
	copy_out();
	CHECK_U64(DUMP(ROOT), DUMP_EXIT_CLEAN);
	CHECK(remove(ROOT "/qlog/q1/r00000002.qlog") == 0);
	CHECK_U64(DUMP(ROOT), DUMP_EXIT_DAMAGE);
	CHECK_U64(occurrences("r00000002.qlog reason=\"log file is missing\""), 1);
	end();
}

/* The stub of another entry, and the stub that is not there although it was durable. */
static void
stubs_are_compared(void)
{
	HandEntry  *other = calloc(1, sizeof(HandEntry));
	HandPiece  *stub;
	uint8_t		bytes[HAND_RECORD_MAX];

	begin(QC_LAYOUT_FLAT);
	copy_out();
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_CLEAN);
	hand_entry(other, 3, 901, QC_ENTRY_CARRIED);
	hand_push(other, 1, 101, 2, 1);
	hand_push(other, 2, 102, 0, 2);
	hand_build(&hand, other);
	stub = hand_end_of(&entry, 2);
	hand_write(&hand, 2, 1, stub->position, hand_end_of(other, 2)->bytes, stub->size);
	copy_out();
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_DAMAGE);
	CHECK_U64(occurrences("its part here is of another entry"), 1);
	memset(stub->bytes, 0, stub->size);
	hand_write(&hand, 2, 1, stub->position, stub->bytes, stub->size);
	copy_out();
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_DAMAGE);
	CHECK_U64(occurrences("its part was durable and is not there"), 1);
	hand_write(&hand, 2, 1, stub->position, bytes, hand_message(&hand, bytes, true, 6, 102, 2, 1));
	copy_out();
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_DAMAGE);
	CHECK_U64(occurrences("its part was durable and is not there"), 1);
	free(other);
	end();
}

static void
indexes_are_compared(void)
{
	QcIdxEntry	wrong = {.partition = 101, .first = 0, .end = 2, .created_at = 5,
		.position = QC_FILE_HEADER_SIZE, .count = 2, .len = 200};
	uint8_t		bytes[QC_IDX_HEADER_SIZE + QC_IDX_ENTRY_SIZE];

	begin(QC_LAYOUT_FLAT);
	CHECK(qc_read_build_idx(&hand.files, 1, 1, NULL) == QC_OK);
	copy_out();
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("to-be-rebuilt"), 0);
	qc_idx_encode(bytes, 1, hand_log(&hand, 1)->tail, &wrong, 1);
	(void) hand.io->unlink(hand.io->context, "qlog/q1/r00000001.qidx");
	hand_make_file(&hand, "qlog/q1/r00000001.qidx", bytes, sizeof(bytes));
	copy_out();
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_DAMAGE);
	CHECK_U64(occurrences("index names a record that is not there"), 1);
	CHECK_U64(DUMP(LOG1, "--verify"), DUMP_EXIT_DAMAGE);
	end();
}

static void
dedup_ids_are_compared(void)
{
	static const char path[] = "qlog/q1/r00000001.qhsh";
	static const QcDerived kind = {"QQHSH1\0", QC_HASHES_CELL, ""};
	uint8_t		bytes[HAND_RECORD_MAX];
	uint64_t	size;
	QcHandle	handle;
	size_t		done;

	begin(QC_LAYOUT_FLAT);
	hand.dedup = true;
	(void) hand_solo(&hand, 1, 9, 101, 8, 2);
	CHECK(qc_read_build(&hand.files, 1, 1, QC_BUILD_IDX | QC_BUILD_HASHES, NULL) == QC_OK);
	copy_out();
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("to-be-rebuilt"), 0);
	CHECK_U64(DUMP(ROOT "/qlog/q1/r00000001.qhsh"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("dedup_ids path=" ROOT "/qlog/q1/r00000001.qhsh records=1 ids=1\n"), 1);
	CHECK_U64(occurrences("listed partition=101 first=8 count=2 ids=1"), 1);

	/* right in itself, with another message id */
	size = hand_size(&hand, path);
	CHECK_U64(hand.io->open(hand.io->context, path, 0, &handle), 0);
	CHECK_U64(hand.io->read(hand.io->context, handle, bytes, sizeof(bytes), 0, &done), 0);
	hand.io->close(hand.io->context, handle);
	CHECK_U64(done, size);
	bytes[48 + 2 * 32 + 20] ^= 1;
	qc_derived_seal(bytes, &kind, 1, qc_derived_length(bytes), (uint32_t) (size - 48) / 32);
	(void) hand.io->unlink(hand.io->context, path);
	hand_make_file(&hand, path, bytes, size);
	copy_out();
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_DAMAGE);
	CHECK_U64(occurrences("dedup ids are not those of the log file"), 1);
	CHECK_U64(DUMP(LOG1, "--verify"), DUMP_EXIT_DAMAGE);

	/* of another content: nothing is wrong */
	bytes[8] = 2;
	(void) hand.io->unlink(hand.io->context, path);
	hand_make_file(&hand, path, bytes, size);
	copy_out();
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("to-be-rebuilt"), 1);
	end();
}

/* A file of the copy that is no log. */
static void
text_files_are_shown(void)
{
	static const char identity[] = "format_version = 1\nnode_id = 7\n";

	begin(QC_LAYOUT_FLAT);
	copy_out();
	write_beside(ROOT "/IDENTITY", identity, sizeof(identity) - 1);
	write_beside(ROOT "/qlog/LANES", "layout = \x1b[1mflat", 17);
	CHECK_U64(DUMP(ROOT, "-n", "1"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("path=IDENTITY\n  line text=format_version = 1\n  line text=node_id = 7\n"), 1);
	CHECK_U64(occurrences("path=qlog/LANES\n  line text=layout = \\u001b[1mflat\n"), 1);
	CHECK_U64(DUMP(ROOT, "--type=entry"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("IDENTITY"), 0);
	end();
}

static const char golden_stash[] =
"stashed at=8 size=80 kind=entry timeline=1 end_lsn=0/16B374D8 directory=15119379810110330840 "
"epoch=2 seq=11 xid=4294967298 flags=referenced entry_digest=7ffb1a71785b3833 entry_bytes=108\n"
"stashed at=88 size=60 kind=barrier timeline=1 end_lsn=0/16B374D8 "
"directory=15119379810110330840 epoch=3 seq=12\n";

static void
stash_is_shown(void)
{
	uint8_t		stash[SAMPLE_MAX];
	size_t		len = sample_stash(stash);
	QcStashRecord record = {.kind = QC_WAL_BARRIER, .body = stash, .body_len = 5};

	begin(QC_LAYOUT_FLAT);
	copy_out();
	make_directories("replication");
	write_beside(ROOT "/replication/stash", stash, len);
	CHECK_U64(DUMP(ROOT "/replication/stash"), DUMP_EXIT_CLEAN);
	CHECK_STR(output, golden_stash);
	CHECK_U64(DUMP(ROOT), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences(golden_stash), 1);
	write_beside(ROOT "/replication/stash", stash, len - 1);
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("torn path=replication/stash at=88 "), 1);
	write_beside(ROOT "/replication/stash", stash, 3);
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("torn path=replication/stash at=0 "), 1);
	/* a body that no version of ours writes, under a right checksum */
	memmove(stash + QC_STASH_MAGIC_SIZE + QC_STASH_HEAD_SIZE, stash, 5);
	qc_stash_put_head(stash + QC_STASH_MAGIC_SIZE, &record);
	write_beside(ROOT "/replication/stash", stash, QC_STASH_MAGIC_SIZE + QC_STASH_HEAD_SIZE + 5);
	CHECK_U64(DUMP(ROOT, "--verify"), DUMP_EXIT_DAMAGE);
	CHECK_U64(occurrences("damage path=replication/stash at=8 "), 1);
	stash[0] = 'x';
	write_beside(ROOT "/replication/stash", stash, len);
	CHECK_U64(DUMP(ROOT, "--quiet"), DUMP_EXIT_DAMAGE);
	CHECK_U64(occurrences("file does not begin as a stash"), 1);
	end();
}

static void
usage(void)
{
	CHECK_U64(DUMP(NULL), DUMP_EXIT_FAILED);
	CHECK_U64(DUMP(ROOT, "--bogus"), DUMP_EXIT_FAILED);
	CHECK(strstr(errors, "--bogus") != NULL);
	CHECK_U64(DUMP(ROOT, "-n", "x"), DUMP_EXIT_FAILED);
	CHECK(strstr(errors, "wrong argument of --limit: x\n") != NULL);
	CHECK_U64(DUMP(ROOT, "--type=unknown"), DUMP_EXIT_FAILED);
	CHECK(strstr(errors, "wrong argument of --type: unknown\n") != NULL);
	CHECK_U64(DUMP("does/not/exist"), DUMP_EXIT_FAILED);
	CHECK_U64(DUMP(".", "extra"), DUMP_EXIT_FAILED);
	CHECK_U64(DUMP(NULL, "-?"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("Usage:"), 1);
	CHECK_U64(DUMP(NULL, "--help"), DUMP_EXIT_CLEAN);
	CHECK_U64(occurrences("Usage:"), 1);
	CHECK_U64(DUMP(NULL, "-V"), DUMP_EXIT_CLEAN);
}

int
main(void)
{
	UNIT_RUN(text_of_a_directory);
	UNIT_RUN(json_of_a_file);
	UNIT_RUN(both_layouts_are_found);
	UNIT_RUN(filters);
	UNIT_RUN(torn_tail);
	UNIT_RUN(damage_in_the_middle);
	UNIT_RUN(damage_before_a_later_file);
	UNIT_RUN(missing_file);
	UNIT_RUN(stubs_are_compared);
	UNIT_RUN(indexes_are_compared);
	UNIT_RUN(dedup_ids_are_compared);
	UNIT_RUN(text_files_are_shown);
	UNIT_RUN(stash_is_shown);
	UNIT_RUN(summary_of_a_directory);
	UNIT_RUN(one_queue);
	UNIT_RUN(follow_a_log);
	UNIT_RUN(what_was_reclaimed);
	UNIT_RUN(usage);
	free(output);
	free(errors);
	CHECK(system("rm -rf " ROOT) == 0);
	return unit_end();
}
