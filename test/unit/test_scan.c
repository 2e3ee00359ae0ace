/*
 * test_scan.c
 *		Reading logs record by record: clean ends, torn ends, holes, damage, rolls, and finding the way back.
 */
#include "handmade.h"
#include "qc_scan.h"
#include "unit.h"

#include <string.h>

static Hand hand;
static QcScan scan;
static QcError err;

static void
begin(void)
{
	hand_begin(&hand, QC_LAYOUT_FLAT, 3);
	(void) hand_log(&hand, 1);
	qc_error_clear(&err);
}

static void
end(void)
{
	qc_scan_end(&scan);
	hand_end(&hand);
}

/* Solo records of seqs [from, to) in log 1; the position of the last one. */
static uint64_t
put_solos(uint64_t from, uint64_t to)
{
	uint64_t	position = 0;

	for (uint64_t seq = from; seq < to; seq++)
		position = hand_solo(&hand, 1, seq, 101, seq, 1);
	return position;
}

static void
open_scan(void)
{
	CHECK_U64(qc_scan_begin(&scan, &hand.files, 1, 0, 0, &err), QC_OK);
}

/* The next records have these seqs. */
static void
expect_seqs(uint64_t from, uint64_t to)
{
	for (uint64_t seq = from; seq < to; seq++)
	{
		if (!CHECK_U64(qc_scan_next(&scan, &err), QC_OK))
			return;
		CHECK_U64(scan.record.seq, seq);
		CHECK_U64(scan.size, (uint64_t) scan.record.len + 4);
		CHECK_U64(qc_load_u64(qc_scan_bytes(&scan) + 12), seq);
	}
}

static void
expect_end(QcScanEnd how, uint64_t file, uint64_t position)
{
	CHECK_U64(qc_scan_next(&scan, &err), QC_END);
	CHECK_U64(scan.end, how);
	CHECK_U64(qc_scan_file(&scan), file);
	CHECK_U64(scan.position, position);
}

static void
test_clean_end(void)
{
	begin();
	open_scan();
	expect_end(QC_SCAN_CLEAN, 1, QC_FILE_HEADER_SIZE);
	qc_scan_end(&scan);

	(void) put_solos(1, 20);
	open_scan();
	expect_seqs(1, 20);
	expect_end(QC_SCAN_CLEAN, 1, hand_log(&hand, 1)->tail);
	end();
}

static void
test_begin_in_the_middle(void)
{
	uint64_t	position;

	begin();
	position = put_solos(1, 5);
	(void) put_solos(5, 9);
	CHECK_U64(qc_scan_begin(&scan, &hand.files, 1, 1, position, &err), QC_OK);
	expect_seqs(4, 9);
	qc_scan_end(&scan);

	CHECK_U64(qc_scan_begin(&scan, &hand.files, 1, 2, 0, &err), QC_MISSING);
	CHECK_STR(err.file, "qlog/q1/r00000002.qlog");
	CHECK_U64(qc_scan_begin(&scan, &hand.files, 9, 0, 0, &err), QC_MISSING);
	CHECK_U64(qc_scan_begin(&scan, &hand.files, 1, 1, HAND_ALLOCATED + 1, &err), QC_DAMAGED);
	CHECK_U64(err.position, HAND_ALLOCATED);
	end();
}

/* A file that ends right behind its last record, or a few bytes later. */
static void
test_full_file(void)
{
	for (uint64_t more = 0; more < 6; more++)
	{
		QcHandle	handle;
		uint64_t	tail;

		begin();
		(void) put_solos(1, 4);
		tail = hand_log(&hand, 1)->tail;
		CHECK_U64(qc_files_get(&hand.files, 1, 1, true, &handle, &err), QC_OK);
		CHECK_U64(hand.io->truncate(hand.io->context, handle, tail + more), 0);
		open_scan();
		expect_seqs(1, 4);
		expect_end(QC_SCAN_CLEAN, 1, tail);
		end();
	}
}

static void
test_roll(void)
{
	uint64_t	first_end;

	begin();
	(void) put_solos(1, 4);
	first_end = hand_log(&hand, 1)->tail;
	hand_roll(&hand, 1);
	(void) put_solos(4, 7);
	hand_roll(&hand, 1);		/* created ahead */
	hand_roll(&hand, 1);
	open_scan();
	expect_seqs(1, 7);
	CHECK_U64(scan.written_end, first_end);
	CHECK_U64(qc_scan_file(&scan), 2);
	expect_end(QC_SCAN_CLEAN, 2, scan.position + scan.size);
	end();
}

/* Files that were being created when the server died: too short, or without a header. */
static void
test_unfinished_files(void)
{
	static const uint8_t zeros[100];

	for (int i = 0; i < 3; i++)
	{
		begin();
		(void) put_solos(1, 4);
		hand_make_file(&hand, "qlog/q1/r00000002.qlog", "QNQLOG1", i == 0 ? 0 : 7);
		if (i == 2)
			hand_write(&hand, 1, 2, 7, zeros, sizeof(zeros));
		open_scan();
		expect_seqs(1, 4);
		expect_end(QC_SCAN_CLEAN, 1, hand_log(&hand, 1)->tail);
		end();
	}
}

static void
test_torn_tail(void)
{
	uint64_t	position;
	QcScanProbe probe;

	begin();
	position = put_solos(1, 5);
	hand_write(&hand, 1, 1, position + 60, "torn", 4);
	open_scan();
	expect_seqs(1, 4);
	expect_end(QC_SCAN_TORN, 1, position);
	CHECK_U64(scan.fault.code, QC_DAMAGED);
	CHECK_STR(scan.fault.file, "qlog/q1/r00000001.qlog");
	CHECK_U64(scan.fault.position, position);
	CHECK_U64(qc_scan_probe(&scan, &probe, &err), QC_OK);
	CHECK(probe.reaches);		/* its len is right: zeros follow up to the end */
	CHECK_U64(probe.kind, QC_KIND_SOLO);
	CHECK_U64(qc_scan_resync(&scan, &err), QC_END);
	qc_scan_end(&scan);

	/* len lost as well */
	hand_write(&hand, 1, 1, position, "\0\0\0\0", 4);
	open_scan();
	expect_seqs(1, 4);
	expect_end(QC_SCAN_TORN, 1, position);
	CHECK_U64(qc_scan_probe(&scan, &probe, &err), QC_OK);
	CHECK(!probe.reaches);
	qc_scan_end(&scan);

	/* len leads out of the file */
	hand_write(&hand, 1, 1, position, "\0\0\0\1", 4);
	open_scan();
	expect_seqs(1, 4);
	expect_end(QC_SCAN_TORN, 1, position);
	end();
}

/* A record in the middle is damaged in each of its bytes in turn: always found, always passed. */
static void
test_damage_everywhere(void)
{
	uint64_t	position;
	uint64_t	next;

	begin();
	position = put_solos(1, 4);
	next = put_solos(4, 5);
	(void) put_solos(5, 7);
	for (uint64_t at = position; at < next; at++)
	{
		QcScanProbe probe;

		CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qlog", at, 0x41), 0);
		open_scan();
		expect_seqs(1, 3);
		expect_end(QC_SCAN_DAMAGE, 1, position);
		CHECK_U64(qc_scan_probe(&scan, &probe, &err), QC_OK);
		CHECK(probe.reaches == (at >= position + 4));
		CHECK_U64(qc_scan_resync(&scan, &err), QC_OK);
		CHECK_U64(scan.record.seq, 4);
		CHECK_U64(scan.position, next);
		expect_seqs(5, 7);
		expect_end(QC_SCAN_CLEAN, 1, hand_log(&hand, 1)->tail);
		qc_scan_end(&scan);
		CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qlog", at, 0x41), 0);
	}
	end();
}

/* Zeros where records were, valid records behind them: a hole, not the end. */
static void
test_hole(void)
{
	static const uint8_t zeros[2048];
	uint64_t	from;
	uint64_t	to;

	begin();
	from = put_solos(1, 4);
	to = put_solos(4, 9);
	hand_write(&hand, 1, 1, from, zeros, to - from);
	open_scan();
	expect_seqs(1, 3);
	expect_end(QC_SCAN_DAMAGE, 1, from);
	CHECK_U64(qc_scan_resync(&scan, &err), QC_OK);
	CHECK_U64(scan.record.seq, 8);
	CHECK_U64(scan.position, to);
	end();
}

/* Damage in one file, the next valid record in a later one. */
static void
test_damage_over_files(void)
{
	uint64_t	position;
	QcScanProbe probe;

	begin();
	position = put_solos(1, 4);
	hand_roll(&hand, 1);
	hand_roll(&hand, 1);
	(void) put_solos(4, 6);
	hand_write(&hand, 1, 1, position + 50, "xx", 2);
	open_scan();
	expect_seqs(1, 3);
	expect_end(QC_SCAN_DAMAGE, 1, position);
	CHECK_U64(qc_scan_probe(&scan, &probe, &err), QC_OK);
	CHECK(probe.reaches);
	CHECK_U64(qc_scan_resync(&scan, &err), QC_OK);
	CHECK_U64(scan.record.seq, 4);
	CHECK_U64(qc_scan_file(&scan), 3);
	expect_seqs(5, 6);
	expect_end(QC_SCAN_CLEAN, 3, scan.position + scan.size);
	end();
}

/* A header that is not the file's own, with records behind it. */
static void
test_damaged_header(void)
{
	begin();
	(void) put_solos(1, 4);
	hand_roll(&hand, 1);
	(void) put_solos(4, 6);
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000002.qlog", 9, 1), 0);
	open_scan();
	expect_seqs(1, 4);
	expect_end(QC_SCAN_DAMAGE, 2, 0);
	CHECK_U64(qc_scan_resync(&scan, &err), QC_OK);
	CHECK_U64(scan.record.seq, 4);
	expect_seqs(5, 6);
	end();
}

static void
test_seq_goes_back(void)
{
	uint64_t	position;

	begin();
	(void) put_solos(10, 12);
	position = put_solos(5, 6);
	(void) put_solos(12, 13);
	open_scan();
	expect_seqs(10, 12);
	expect_end(QC_SCAN_DAMAGE, 1, position);
	CHECK_U64(qc_scan_resync(&scan, &err), QC_OK);
	CHECK_U64(scan.record.seq, 12);
	end();
}

/* Pads are passed over, at the end too. */
static void
test_pads(void)
{
	uint8_t		pad[200];

	begin();
	(void) put_solos(1, 3);
	qc_record_put_pad(pad, sizeof(pad), 2, 0);
	(void) hand_append(&hand, 1, pad, sizeof(pad));
	(void) put_solos(3, 5);
	qc_record_put_pad(pad, sizeof(pad), 4, 0);
	(void) hand_append(&hand, 1, pad, sizeof(pad));
	open_scan();
	expect_seqs(1, 5);
	expect_end(QC_SCAN_CLEAN, 1, hand_log(&hand, 1)->tail);
	end();
}

/* An intact record of a kind that we do not know is not damage, and must not be cut. */
static void
test_unknown_kind(void)
{
	uint8_t		record[100];
	uint64_t	position;

	begin();
	(void) put_solos(1, 3);
	qc_record_put_pad(record, sizeof(record), 3, 0);
	record[48] = 6;
	qc_store_u64(record + 4, qc_digest(record + 12, sizeof(record) - 12));
	position = hand_append(&hand, 1, record, sizeof(record));
	open_scan();
	expect_seqs(1, 3);
	CHECK_U64(qc_scan_next(&scan, &err), QC_VERSION);
	CHECK_U64(err.position, position);
	end();
}

/* Records far larger than the scan's window. */
static void
test_large_records(void)
{
	static uint8_t pad[50000];
	uint64_t	position;

	begin();
	(void) put_solos(1, 3);
	qc_record_put_pad(pad, sizeof(pad), 2, 0);
	position = hand_append(&hand, 1, pad, sizeof(pad));
	(void) put_solos(3, 5);
	open_scan();
	expect_seqs(1, 5);
	qc_scan_end(&scan);

	/* damaged: nothing in its bytes is taken for a record */
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qlog", position + 49999, 1), 0);
	open_scan();
	expect_seqs(1, 3);
	expect_end(QC_SCAN_DAMAGE, 1, position);
	CHECK_U64(qc_scan_resync(&scan, &err), QC_OK);
	CHECK_U64(scan.record.seq, 3);
	end();
}

/* Random bytes to the end of the file: found to be no record, and soon. */
static void
test_random_bytes(void)
{
	static uint8_t noise[60000];
	uint64_t	x = 88172645463325252u;
	uint64_t	position;

	begin();
	(void) put_solos(1, 3);
	for (size_t i = 0; i < sizeof(noise); i++)
	{
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		noise[i] = (uint8_t) x;
	}
	position = hand_append(&hand, 1, noise, sizeof(noise));
	open_scan();
	expect_seqs(1, 3);
	expect_end(QC_SCAN_TORN, 1, position);
	end();
}

static void
test_io_errors(void)
{
	begin();
	(void) put_solos(1, 3);
	open_scan();
	sim_disk_fail(hand.disk, SIM_OP_READ, 1, 5);
	CHECK_U64(qc_scan_next(&scan, &err), QC_IO);
	CHECK_STR(err.file, "qlog/q1/r00000001.qlog");
	CHECK_U64(err.sys_errno, 5);
	end();
}

int
main(void)
{
	UNIT_RUN(test_clean_end);
	UNIT_RUN(test_begin_in_the_middle);
	UNIT_RUN(test_full_file);
	UNIT_RUN(test_roll);
	UNIT_RUN(test_unfinished_files);
	UNIT_RUN(test_torn_tail);
	UNIT_RUN(test_damage_everywhere);
	UNIT_RUN(test_hole);
	UNIT_RUN(test_damage_over_files);
	UNIT_RUN(test_damaged_header);
	UNIT_RUN(test_seq_goes_back);
	UNIT_RUN(test_pads);
	UNIT_RUN(test_unknown_kind);
	UNIT_RUN(test_large_records);
	UNIT_RUN(test_random_bytes);
	UNIT_RUN(test_io_errors);
	return unit_end();
}
