/*
 * test_plan_log.c
 *		Plans on their way into the logs: what a credit refuses and gives back, where records go, and that recovery finds
 *		the state that the live server had.
 */
#include "fixture.h"
#include "staging.h"

#include "qc_apply.h"
#include "qc_index.h"
#include "qc_record.h"
#include "qc_walrec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CLOCK INT64_C(3000000)

/* ---- a server that works on the fixture's directory ---- */

static uint64_t segment;

static void
begin(void)
{
	fixture_begin();
	CHECK(run_ok(&run, &hand, &server, NULL));
	segment = run.r.segment_size;
}

static void
end(void)
{
	stage_clear();
	fixture_end();
}

/* Take credit, making the room in logs and ring that lacks; returns how often there was none in a log. */
static uint32_t
credit(QcPlan *p)
{
	uint32_t	extended = 0;

	for (;;)
	{
		QcLack		lack;
		QcExtend	extend;
		QcStatus	status = qc_plan_credit(run.st, run.ring, p, segment, &lack, &extend, &err);

		if (status != QC_BUSY)
		{
			if (!CHECK_U64(status, QC_OK))
				(void) CHECK_STR(err.text, "");
			return extended;
		}
		if (lack == QC_LACK_LOG)
		{
			CHECK_U64(qc_log_extend_io(run.r.files, &extend, &err), QC_OK);
			qc_log_extended(run.st, &extend, segment);
			extended++;
		}
		else
			CHECK_U64(qc_ring_write(run.st, run.ring, run.r.files, &err), QC_OK);
	}
}

/* Expect the credit to be refused. */
static void
refused(QcStatus status, const char *text)
{
	QcLack		lack;
	QcExtend	extend;

	CHECK_U64(qc_plan_credit(run.st, run.ring, &plan, segment, &lack, &extend, &err), status);
	CHECK_STR(err.text, text);
	CHECK(!plan.credited);
	CHECK_U64(lack, QC_LACK_NOTHING);
}

/* Nothing is promised to anybody. */
static void
expect_no_promises(void)
{
	for (int i = 0; i < QC_CLASS_COUNT; i++)
		CHECK_U64(run.st->mem.pools[i].nreserved, 0);
	for (QcLog *log = QC_AT(run.st, QcLog, run.st->logs); log != NULL;
		 log = QC_AT(run.st, QcLog, log->next))
		CHECK_U64(log->credit, 0);
	for (QcQueue *queue = QC_AT(run.st, QcQueue, run.st->queues.head); queue != NULL;
		 queue = QC_AT(run.st, QcQueue, queue->all.next))
		CHECK_U64(queue->pins, 0);
	CHECK_U64(run.st->npins, 0);
}

static void
reserve(void)
{
	if (!qc_plan_has_room(run.ring, &plan))
		CHECK_U64(qc_ring_write(run.st, run.ring, run.r.files, &err), QC_OK);
	qc_plan_reserve(run.st, run.ring, &plan, segment, CLOCK, CLOCK);
}

static void
write_out(void)
{
	CHECK_U64(qc_ring_write(run.st, run.ring, run.r.files, &err), QC_OK);
	CHECK_U64(atomic_load(&run.ring->written_seq), run.st->seq);
}

/* What was staged becomes a queue-only entry that is visible. */
static void
commit(void)
{
	CHECK_U64(build(0, 0, segment), QC_OK);
	(void) credit(&plan);
	reserve();
	CHECK_U64(qc_plan_fill(run.st, run.ring, &plan, run.r.files, &err), QC_OK);
	write_out();
	qc_open_settle(run.st, QC_AT(run.st, QcOpen, plan.open), true, 0, CLOCK);
	stage_done();
}

/* A server that starts on the directory now has the same state. */
static void
expect_recovered(void)
{
	uint64_t	digest = state_digest(run.st);
	uint64_t	seq = run.st->seq;
	Run			other;

	if (run_ok(&other, &hand, &server, NULL))
	{
		CHECK_U64(other.st->seq, seq);
		CHECK_U64(state_digest(other.st), digest);
	}
	run_end(&other);
}

/* Message at position of the partition begins with this number. */
static bool
expect_number(uint64_t log, uint64_t partition, uint64_t position, uint64_t number)
{
	QcPartition *object = qc_partition_by_id(run.st, partition);
	QcLocation	location;
	QcRef		hint = 0;
	QcMessage	message;
	int64_t		created_at;
	char		text[32];
	QcStatus	status = QC_OK;

	if (!qc_index_find(run.st, object, position, &hint, &location))
		status = qc_read_locate(&run.cache, log, partition, position, 0, 0, &location, &err);
	if (status == QC_OK)
		status = qc_read_message(&run.cache, &location, partition, position, &message, &created_at,
								 &err);
	if (!CHECK_U64(status, QC_OK))
		return false;
	(void) snprintf(text, sizeof(text), "%llu.", (unsigned long long) number);
	return CHECK_BYTES(message.data, strlen(text), text, strlen(text));
}

/* ---- credit ---- */

static void
test_credit_gives_back(void)
{
	QcQueueCreate queue = {.queue = 9, .log = 9, .default_partition = 900,
		.name = {(const uint8_t *) "nine", 4}};

	begin();
	stage_push(101, 1, 0, 3, 500);
	stage_push(102, 2, 3, 1, 500);
	stage_effect(QC_EFFECT_QUEUE_CREATE, &queue, NULL, 0, 0);
	CHECK_U64(build(9, QC_ENTRY_CARRIED, segment), QC_OK);
	(void) credit(&plan);
	CHECK(plan.credited);
	CHECK_U64(qc_log_by_id(run.st, 1)->credit, plan.log_bytes[0]);
	CHECK_U64(qc_log_by_id(run.st, 2)->credit, plan.log_bytes[1]);
	CHECK_U64(run.st->mem.pools[QC_CLASS_PENDING].nreserved, 2);
	CHECK_U64(run.st->mem.pools[QC_CLASS_OPEN].nreserved, 1);
	CHECK_U64(run.st->mem.pools[QC_CLASS_QUEUE].nreserved, 1);
	CHECK_U64(qc_queue_by_id(run.st, 1)->pins, 1);
	qc_plan_uncredit(run.st, &plan);
	CHECK(!plan.credited);
	expect_no_promises();
	end();
}

static void
test_credit_refuses(void)
{
	QcQueue    *queue;

	begin();

	/* a partition that is not there, a log that is not there */
	stage_push(777, 1, 0, 1, 50);
	CHECK_U64(build(0, 0, segment), QC_OK);
	refused(QC_RETRY, "a partition has been removed since a message was pushed to it");
	stage_clear();
	stage_push(101, 1, 0, 1, 50);
	stage_push(102, 77, 0, 1, 50);
	CHECK_U64(build(0, 0, segment), QC_OK);
	refused(QC_NOTFOUND, "log 77 does not exist");
	expect_no_promises();
	stage_clear();

	/* a queue out of service */
	queue = qc_queue_by_id(run.st, 2);
	stage_push(102, 2, 0, 1, 50);
	CHECK_U64(build(0, 0, segment), QC_OK);
	queue->damaged = 1;
	refused(QC_DAMAGED, "queue is out of service");
	queue->damaged = 0;
	queue->state = QC_QUEUE_DEAD;
	refused(QC_NOTFOUND, "queue has been dropped");
	queue->state = QC_QUEUE_LIVE;
	(void) credit(&plan);
	qc_plan_uncredit(run.st, &plan);
	expect_no_promises();
	end();
}

/* An entry of effects alone must fit half a log file, too. */
static void
test_credit_size(void)
{
	static QcAckItem items[3000];
	QcAck		ack = {.lease = 5};

	begin();
	for (uint32_t i = 0; i < 3000; i++)
		items[i] = (QcAckItem)
	{
		101, i, 1, 0
	};
	stage_effect(QC_EFFECT_ACK, &ack, items, sizeof(items[0]), 3000);
	CHECK_U64(build(0, 0, segment), QC_OK);
	refused(QC_LIMIT, "log entry is larger than half a log file");
	expect_no_promises();
	end();
}

/* More logs than the ring can list. */
static void
test_credit_logs(void)
{
	QcOp		one = {.kind = QC_OP_PUSH};
	static QcOp many[200];

	begin();
	stage_frames(&one, 0, 1, 10);
	for (uint32_t i = 0; i < 200; i++)
	{
		many[i] = one;
		many[i].partition = i % 2 == 0 ? 101 : 102;
		many[i].log = 1 + i;
	}

	/* the same partition goes to one log: make these 200 look like partitions of their own */
	for (uint32_t i = 0; i < 200; i++)
		many[i].partition = 10000 + i;
	CHECK_U64(qc_plan_build(&plan, many, 200, 0, 0, segment, stage_alloc, NULL, &err), QC_OK);
	CHECK_U64(plan.nlogs, 200);
	for (uint32_t i = 0; i < 200; i++)
		plan.appends[i].partition = 101;
	refused(QC_LIMIT, "entry touches too many logs for qlog.buffers");
	expect_no_promises();
	end();
}

/* State memory is full: clean refusal, and what empties the state still goes through. */
static void
test_credit_full(void)
{
	RunOptions	small = {.state_bytes = 2560u << 10};
	QcQueueDrop drop = {.queue = 2};
	QcStatus	status = QC_OK;
	uint32_t	made = 0;

	fixture_begin();
	CHECK(run_ok(&run, &hand, &server, &small));
	segment = run.r.segment_size;
	while (status == QC_OK && made < 100000)
	{
		char		name[32];
		QcPartitionCreate create = {.partition = 1000 + made, .queue = 1};
		QcLack		lack;
		QcExtend	extend;

		create.name.bytes = (const uint8_t *) name;
		create.name.len = (uint16_t) snprintf(name, sizeof(name), "p%u", made);
		stage_effect(QC_EFFECT_PARTITION_CREATE, &create, NULL, 0, 0);
		CHECK_U64(build(0, 0, segment), QC_OK);
		plan.immediate = true;
		while ((status = qc_plan_credit(run.st, run.ring, &plan, segment, &lack, &extend, &err)) == QC_BUSY)
		{
			if (lack == QC_LACK_LOG)
			{
				CHECK_U64(qc_log_extend_io(run.r.files, &extend, &err), QC_OK);
				qc_log_extended(run.st, &extend, segment);
			}
			else
				write_out();
		}
		if (status == QC_OK)
		{
			reserve();
			CHECK_U64(qc_plan_fill(run.st, run.ring, &plan, run.r.files, &err), QC_OK);
			made++;
		}
		stage_clear();
	}
	CHECK_U64(status, QC_FULL);
	CHECK_STR(err.text, "qlog.state_memory is full");
	CHECK(made > 1000);
	expect_no_promises();
	stage_effect(QC_EFFECT_QUEUE_DROP, &drop, NULL, 0, 0);
	commit();
	CHECK(qc_queue_by_id(run.st, 2)->state == QC_QUEUE_DEAD);
	expect_no_promises();
	fixture_end();
}

/* Index memory is full: the oldest entries go, the push does not fail, and everything can still be read. */
static void
test_index_full(void)
{
	RunOptions	small = {.index_bytes = 65536};

	fixture_begin();
	CHECK(run_ok(&run, &hand, &server, &small));
	segment = run.r.segment_size;
	for (uint64_t i = 0; i < 3000; i++)
	{
		stage_push(101, 1, i, 1, 20);
		commit();
	}
	CHECK(run.st->mem.pools[QC_CLASS_INDEX].nused <= 65536 / 48);
	for (uint64_t i = 0; i < 3000; i += 499)
		expect_number(1, 101, i, i);
	fixture_end();
}

/* ---- reserving and filling ---- */

/* Positions follow each other, seq is dense, and the clock of entries never goes back. */
static void
test_reserve(void)
{
	uint64_t	seq;
	int64_t		before;

	begin();
	seq = run.st->seq;
	stage_push(101, 1, 0, 3, 100);
	stage_push(102, 2, 100, 2, 100);
	commit();
	CHECK_U64(plan.seq, seq + 1);
	CHECK_U64(plan.appends[0].first, 0);
	stage_push(101, 1, 3, 2, 100);
	stage_push(102, 2, 102, 1, 100);
	stage_push(101, 1, 5, 1, 100);
	commit();
	CHECK_U64(plan.seq, seq + 2);
	CHECK_U64(plan.appends[0].first, 3);
	CHECK_U64(plan.appends[1].first, 2);
	before = plan.created_at;
	stage_push(101, 1, 6, 1, 100);
	CHECK_U64(build(0, 0, segment), QC_OK);
	(void) credit(&plan);
	qc_plan_reserve(run.st, run.ring, &plan, segment, CLOCK - 1000000, CLOCK);
	CHECK(plan.created_at >= before);
	CHECK_U64(qc_plan_fill(run.st, run.ring, &plan, run.r.files, &err), QC_OK);
	write_out();
	qc_open_settle(run.st, QC_AT(run.st, QcOpen, plan.open), true, 0, CLOCK);
	expect_positions(&run, 1, 7, 7);
	expect_positions(&run, 2, 3, 3);
	for (uint64_t i = 0; i < 7; i++)
		expect_number(1, 101, i, i);
	for (uint64_t i = 0; i < 3; i++)
		expect_number(2, 102, i, 100 + i);
	expect_no_promises();
	expect_recovered();
	end();
}

/* Records of many files: every one begins with its header, which names the first entry in it. */
static void
test_rolls(void)
{
	uint64_t	position = 0;
	uint64_t	first[8] = {0};
	uint64_t	rolls = 0;

	begin();
	while (qc_log_by_id(run.st, 1)->file < 5)
	{
		uint64_t	file = qc_log_by_id(run.st, 1)->file;
		uint32_t	n = 1 + (uint32_t) position % 7;

		stage_push(101, 1, position, n, 2500);
		stage_push(102, 2, position, 1, 10);
		commit();
		position += n;
		if (qc_log_by_id(run.st, 1)->file != file)
		{
			first[qc_log_by_id(run.st, 1)->file] = plan.seq;
			rolls++;
		}
	}
	CHECK_U64(rolls, 4);
	for (uint64_t file = 2; file <= 5; file++)
	{
		uint8_t		bytes[QC_FILE_HEADER_SIZE];
		QcFileHeader header;

		CHECK_U64(qc_files_read(run.r.files, 1, file, 0, bytes, sizeof(bytes), &err), QC_OK);
		CHECK_U64(qc_file_header_decode(bytes, sizeof(bytes), &header, &err), QC_OK);
		CHECK_U64(header.file_id, file);

		/* the last part of the entry may be the first one to go there */
		CHECK(header.first_seq == first[file]);
	}
	for (uint64_t i = 0; i < position; i += 11)
		expect_number(1, 101, i, i);
	expect_no_promises();
	expect_recovered();
	end();
}

/* An entry that is too large for the ring is written by its owner; the ring only lists it. */
static void
test_big(void)
{
	uint64_t	writes;
	uint32_t	nparts;

	begin();
	stage_push(101, 1, 0, 4, 5000);
	stage_push(102, 2, 10, 2, 5000);
	CHECK_U64(build(0, 0, segment), QC_OK);
	for (uint32_t i = 0; i < nstaged; i++)
		CHECK_U64(staged[i].level, 0);
	(void) credit(&plan);
	CHECK(plan.big);
	reserve();
	CHECK_U64(qc_plan_fill(run.st, run.ring, &plan, run.r.files, &err), QC_OK);
	nparts = plan.entry->nparts;
	for (uint32_t i = 0; i < nparts; i++)
		CHECK_U64(qc_ring_parts(plan.entry)[i].written, 1);
	writes = sim_disk_count(hand.disk, SIM_OP_WRITE);
	write_out();
	CHECK_U64(sim_disk_count(hand.disk, SIM_OP_WRITE), writes);
	CHECK(run.ring->dirty_logs != 0);
	qc_open_settle(run.st, QC_AT(run.st, QcOpen, plan.open), true, 0, CLOCK);
	expect_number(1, 101, 3, 3);
	expect_number(2, 102, 1, 11);
	expect_recovered();
	stage_clear();

	stage_push(101, 1, 4, 4, 5000);
	CHECK_U64(build(0, 0, segment), QC_OK);
	(void) credit(&plan);
	reserve();
	sim_disk_fail(hand.disk, SIM_OP_WRITE, 1, EIO);
	CHECK_U64(qc_plan_fill(run.st, run.ring, &plan, run.r.files, &err), QC_IO);
	CHECK_U64(err.sys_errno, EIO);
	end();
}

/* The positions of copies in a lane are known when the entry is reserved. */
static void
test_dead(void)
{
	QcPartitionCreate lane = {.partition = 500, .queue = 1, .lane = QC_LANE_DEAD};
	QcEntry		decoded;
	QcEffect	effect;
	uint32_t	found = 0;

	begin();
	lane.name = (QcStr)
	{
		(const uint8_t *) "*", 1
	};
	stage_effect(QC_EFFECT_PARTITION_CREATE, &lane, NULL, 0, 0);
	commit();
	stage_push(101, 1, 0, 5, 50);
	commit();
	stage_dead(500, 1, 1);
	commit();
	stage_dead(500, 1, 2);
	stage_push(101, 1, 5, 1, 50);
	stage_dead(500, 1, 4);
	CHECK_U64(build(0, 0, segment), QC_OK);
	(void) credit(&plan);
	reserve();
	CHECK_U64(qc_entry_decode(plan.payload, plan.payload_len, &decoded, &err), QC_OK);
	while (qc_effect_get(&decoded.effects, &effect, &err) == QC_OK)
	{
		if (effect.kind != QC_EFFECT_DEAD)
			continue;
		CHECK_U64(effect.u.dead.lane, 500);
		CHECK_U64(effect.u.dead.position, found == 0 ? 2 : 4);
		CHECK_U64(effect.u.dead.lane_position, 1 + found);
		found++;
	}
	CHECK_U64(found, 2);
	CHECK_U64(qc_plan_fill(run.st, run.ring, &plan, run.r.files, &err), QC_OK);
	write_out();
	qc_open_settle(run.st, QC_AT(run.st, QcOpen, plan.open), true, 0, CLOCK);
	CHECK_U64(qc_queue_by_id(run.st, 1)->dead, 3);
	expect_number(1, 500, 2, 4);
	expect_recovered();
	end();
}

/* A small plan promises room for its largest effects and uses what they take. */
static void
test_small(void)
{
	QcRelease	release = {.lease = 3, .reason = QC_RELEASE_ABORT};
	size_t		one = qc_effect_size(QC_EFFECT_RELEASE, &release, 0);
	uint8_t		buffer[QC_SMALL_BUFFER(200)];
	QcSmallPlan small;
	QcWriter	w;
	uint64_t	tail;

	begin();
	CHECK(2 * one < 200);
	qc_plan_small(&small, buffer, 200);
	(void) credit(&small.plan);
	CHECK_U64(qc_log_by_id(run.st, 0)->credit, QC_RECORD_HEADER_SIZE + QC_ENTRY_HEAD_SIZE(1) + 200);
	w = qc_plan_small_writer(&small);
	CHECK_U64(w.cap - w.len, 200);
	qc_effect_put(&w, QC_EFFECT_RELEASE, &release, 0);
	qc_effect_put(&w, QC_EFFECT_RELEASE, &release, 0);
	qc_plan_small_done(&small, &w, 2);
	tail = qc_log_by_id(run.st, 0)->tail;
	qc_plan_reserve(run.st, run.ring, &small.plan, segment, CLOCK, CLOCK);
	CHECK_U64(qc_log_by_id(run.st, 0)->tail - tail,
			  QC_RECORD_HEADER_SIZE + QC_ENTRY_HEAD_SIZE(1) + 2 * one);
	CHECK_U64(small.plan.open, 0);
	CHECK_U64(qc_plan_fill(run.st, run.ring, &small.plan, run.r.files, &err), QC_OK);
	write_out();
	expect_no_promises();
	expect_recovered();
	end();
}

/* ---- the WAL record ---- */

static void
test_carried(void)
{
	uint8_t		body[4096];
	uint64_t	len;
	QcWriter	w;
	QcWalEntry	decoded;
	uint64_t	logs[4];
	QcRecord	records[4];
	uint32_t	n = 0;
	const uint8_t *bytes;
	uint32_t	size;

	begin();
	stage_push(102, 2, 0, 2, 100);
	stage_push(101, 1, 5, 1, 100);
	CHECK_U64(build(99, QC_ENTRY_CARRIED, segment), QC_OK);
	(void) credit(&plan);
	reserve();
	CHECK_U64(qc_plan_fill(run.st, run.ring, &plan, run.r.files, &err), QC_OK);
	len = qc_plan_wal_size(&plan);
	CHECK(len <= sizeof(body));
	qc_writer_init(&w, body, sizeof(body));
	qc_plan_wal_put(run.st, &plan, &w);
	CHECK_U64(w.len, len);
	CHECK_U64(qc_wal_entry_decode(body, len, &decoded, &err), QC_OK);
	CHECK_U64(decoded.flags, QC_ENTRY_CARRIED);
	CHECK_U64(decoded.directory, HAND_DIRECTORY);
	CHECK_U64(decoded.epoch, RUN_EPOCH);
	CHECK_U64(decoded.seq, plan.seq);
	CHECK_U64(decoded.xid, 99);
	CHECK_U64(decoded.nparts, 3);
	while (qc_wal_part_get(&decoded.parts, &logs[n], &bytes, &size, &err) == QC_OK)
	{
		CHECK_U64(qc_record_decode(bytes, size, &records[n], &err), QC_OK);
		CHECK_U64(records[n].seq, plan.seq);
		n++;
	}
	CHECK_U64(n, 3);
	CHECK_U64(logs[0], 2);
	CHECK_U64(logs[1], 1);
	CHECK_U64(logs[2], 1);
	CHECK_U64(records[0].kind, QC_KIND_MESSAGES);
	CHECK_U64(records[2].kind, QC_KIND_ENTRY);
	end();
}

static void
test_referenced(void)
{
	uint8_t		body[QC_WALREC_REFERENCED_SIZE];
	QcWriter	w;
	QcWalEntry	decoded;

	begin();
	stage_push(102, 2, 0, 2, 100);
	CHECK_U64(build(99, QC_ENTRY_REFERENCED, segment), QC_OK);
	(void) credit(&plan);
	reserve();
	CHECK_U64(qc_plan_fill(run.st, run.ring, &plan, run.r.files, &err), QC_OK);
	CHECK_U64(qc_plan_wal_size(&plan), sizeof(body));
	qc_writer_init(&w, body, sizeof(body));
	qc_plan_wal_put(run.st, &plan, &w);
	CHECK(!w.full);
	CHECK_U64(w.len, sizeof(body));
	CHECK_U64(qc_wal_entry_decode(body, w.len, &decoded, &err), QC_OK);
	CHECK_U64(decoded.flags, QC_ENTRY_REFERENCED);
	CHECK_U64(decoded.seq, plan.seq);
	CHECK_U64(decoded.entry_len, plan.payload_len);
	CHECK_U64(decoded.digest, qc_digest(plan.payload, plan.payload_len));
	end();
}

int
main(void)
{
	UNIT_RUN(test_credit_gives_back);
	UNIT_RUN(test_credit_refuses);
	UNIT_RUN(test_credit_size);
	UNIT_RUN(test_credit_logs);
	UNIT_RUN(test_credit_full);
	UNIT_RUN(test_index_full);
	UNIT_RUN(test_reserve);
	UNIT_RUN(test_rolls);
	UNIT_RUN(test_big);
	UNIT_RUN(test_dead);
	UNIT_RUN(test_small);
	UNIT_RUN(test_carried);
	UNIT_RUN(test_referenced);
	return unit_end();
}
