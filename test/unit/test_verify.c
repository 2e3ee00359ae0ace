/*
 * test_verify.c
 *		Looking through log files: sound ones have no finding, every changed byte is found, what stands behind damage is seen;
 *		mending keeps the bytes and leaves a file without findings, whatever happens meanwhile.
 */
#include "handmade.h"
#include "qc_read.h"
#include "qc_verify.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FINDINGS 64

static Hand hand;
static QcError err;
static QcFinding findings[FINDINGS];
static uint32_t nfindings;
static uint64_t seen[32];		/* bits of positions of partition 101 */
static uint64_t read_bytes;
static uint64_t foreign;		/* partition that does not belong */

static bool
note_finding(void *context, const QcFinding *finding)
{
	(void) context;
	if (nfindings < FINDINGS)
		findings[nfindings] = *finding;
	nfindings++;
	return true;
}

static bool
note_record(void *context, uint64_t partition, uint64_t first, uint32_t count)
{
	(void) context;
	CHECK_U64(partition, 101);
	for (uint64_t p = first; p < first + count && p < 2048; p++)
		seen[p / 64] |= UINT64_C(1) << p % 64;
	return true;
}

static bool
note_progress(void *context, uint64_t bytes)
{
	(void) context;
	read_bytes += bytes;
	return true;
}

static bool
belongs(void *context, uint64_t partition)
{
	(void) context;
	return partition != foreign;
}

static bool
was_seen(uint64_t p)
{
	return (seen[p / 64] >> p % 64 & 1) != 0;
}

/* Look through a file of log 1; end 0 = it is closed. */
static void
verify(uint64_t file, uint64_t end)
{
	QcVerify	v = {.files = &hand.files, .log = 1, .file = file, .end = end, .deep = true,
		.finding = note_finding, .record = note_record, .belongs = belongs, .progress = note_progress};

	nfindings = 0;
	memset(seen, 0, sizeof(seen));
	read_bytes = 0;
	CHECK_U64(qc_verify_file(&v, &err), QC_OK);
}

/* Positions of solo records: seqs and message positions 1 .. 20 in file 1, 21 .. 30 in file 2. */
static uint64_t places[40];

static void
begin(void)
{
	hand_begin(&hand, QC_LAYOUT_FLAT, 3);
	qc_error_clear(&err);
	foreign = 0;
	(void) hand_log(&hand, 1);
	for (uint64_t seq = 1; seq <= 20; seq++)
		places[seq] = hand_solo(&hand, 1, seq, 101, seq, 1);
	places[21] = hand_log(&hand, 1)->tail;
	hand_roll(&hand, 1);
	for (uint64_t seq = 21; seq <= 30; seq++)
		(void) hand_solo(&hand, 1, seq, 101, seq, 1);
	hand_sync(&hand);
}

static void
end(void)
{
	qc_files_close(&hand.files);
	hand_end(&hand);
}

static void
flip(uint64_t at)
{
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qlog", at, 0x10), 0);
}

static void
test_sound(void)
{
	begin();
	verify(1, 0);
	CHECK_U64(nfindings, 0);
	CHECK_U64(read_bytes, places[21]);
	for (uint64_t p = 1; p <= 20; p++)
		CHECK(was_seen(p));
	verify(2, hand_log(&hand, 1)->tail);
	CHECK_U64(nfindings, 0);

	/* behind the tail anything may stand: it is being written */
	hand_write(&hand, 1, 2, hand_log(&hand, 1)->tail + 100, "x", 1);
	verify(2, hand_log(&hand, 1)->tail);
	CHECK_U64(nfindings, 0);
	end();
}

/* Each byte of the written part, one at a time: one finding at the record that it belongs to, all others are seen. */
static void
test_every_byte(void)
{
	begin();
	for (uint64_t at = 0; at < places[21]; at++)
	{
		uint64_t	victim = 0;

		while (victim < 20 && places[victim + 1] <= at)
			victim++;

		/* seq of the file's first record, and the id and the zero behind it, which nothing repeats */
		if (at >= 16 && at < 24)
			continue;
		flip(at);
		verify(1, 0);
		if (!CHECK_U64(nfindings, 1))
			break;
		CHECK_U64(findings[0].position, victim == 0 ? 0 : places[victim]);
		CHECK_U64(findings[0].bytes, victim == 0 ? QC_FILE_HEADER_SIZE : places[victim + 1] - places[victim]);
		for (uint64_t p = 1; p <= 20; p++)
			CHECK(was_seen(p) == (p != victim));
		flip(at);
	}
	end();
}

/* Several places, neighbours among them; one at the end, one over the header. */
static void
test_places(void)
{
	uint8_t		zeros[QC_FILE_HEADER_SIZE] = {0};

	begin();
	flip(places[3] + 60);
	flip(places[4] + 60);
	flip(places[9] + 1);
	flip(places[20] + 60);
	verify(1, 0);
	CHECK_U64(nfindings, 3);
	CHECK_U64(findings[0].position, places[3]);
	CHECK_U64(findings[0].bytes, places[5] - places[3]);
	CHECK_U64(findings[0].seq, 2);
	CHECK_U64(findings[0].next_seq, 5);
	CHECK_U64(findings[1].position, places[9]);
	CHECK_U64(findings[2].position, places[20]);
	CHECK_U64(findings[2].next_seq, 0);
	hand_write(&hand, 1, 1, 0, zeros, sizeof(zeros));
	verify(1, 0);
	CHECK_U64(nfindings, 4);
	CHECK_U64(findings[0].position, 0);
	CHECK_U64(findings[0].next_seq, 1);
	end();
}

/* Zeros are what a file ends with: only its index, or the tail, tells that more should be there. */
static void
test_ends_early(void)
{
	static uint8_t zeros[HAND_ALLOCATED];
	uint8_t		header[QC_FILE_HEADER_SIZE];

	begin();
	qc_file_header_encode(header, &(QcFileHeader) {.file_id = 1, .first_seq = 3});
	hand_write(&hand, 1, 1, 0, header, sizeof(header));
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 1, &err), QC_OK);
	hand_write(&hand, 1, 1, places[15], zeros, HAND_ALLOCATED - places[15]);
	verify(1, 0);
	CHECK_U64(nfindings, 1);
	CHECK_U64(findings[0].position, places[15]);
	CHECK_U64(findings[0].bytes, places[21] - places[15]);
	verify(1, places[21]);
	CHECK_U64(nfindings, 1);
	CHECK_U64(findings[0].position, places[15]);
	hand_write(&hand, 1, 1, QC_FILE_HEADER_SIZE, zeros, HAND_ALLOCATED - QC_FILE_HEADER_SIZE);
	CHECK_U64(hand.io->unlink(hand.io->context, "qlog/q1/r00000001.qidx"), 0);
	verify(1, 0);
	CHECK_U64(nfindings, 1);
	CHECK_STR(findings[0].text, "closed file holds no record");
	end();
}

/* A file that was created ahead and passed over has nothing in it. */
static void
test_passed_over(void)
{
	QcFileHeader header = {.file_id = 1, .first_seq = QC_FIRST_SEQ_AHEAD};
	static uint8_t bytes[HAND_ALLOCATED];

	begin();
	qc_file_header_encode(bytes, &header);
	hand_write(&hand, 1, 1, 0, bytes, sizeof(bytes));
	verify(1, 0);
	CHECK_U64(nfindings, 0);
	end();
}

/* A file whose records were all mended holds pads only: that is no damage. */
static void
test_only_pads(void)
{
	static uint8_t bytes[HAND_ALLOCATED];

	begin();
	qc_record_put_pad(bytes, 100, 11, 77);
	hand_write(&hand, 1, 1, QC_FILE_HEADER_SIZE, bytes, HAND_ALLOCATED - QC_FILE_HEADER_SIZE);
	verify(1, 0);
	CHECK_U64(nfindings, 0);
	end();
}

typedef struct Lost
{
	uint32_t	n;
	uint64_t	first;
	uint64_t	last;
} Lost;

static void
note_lost(void *context, uint64_t partition, uint64_t first, uint32_t count)
{
	Lost	   *lost = context;

	CHECK_U64(partition, 101);
	CHECK_U64(count, 1);
	lost->first = lost->n == 0 || first < lost->first ? first : lost->first;
	lost->last = first > lost->last ? first : lost->last;
	lost->n++;
}

static void
test_what_was_lost(void)
{
	Lost		lost = {0, 0, 0};

	begin();
	CHECK_U64(qc_verify_lost(&hand.files, 1, 1, places[3], 10, note_lost, &lost, &err), QC_NOTFOUND);
	CHECK_U64(qc_read_build_idx(&hand.files, 1, 1, &err), QC_OK);
	CHECK_U64(qc_verify_lost(&hand.files, 1, 1, places[3], places[6] - places[3], note_lost, &lost, &err), QC_OK);
	CHECK_U64(lost.n, 3);
	CHECK_U64(lost.first, 3);
	CHECK_U64(lost.last, 5);
	lost.n = 0;
	CHECK_U64(qc_verify_lost(&hand.files, 1, 1, places[3] + 1, 1, note_lost, &lost, &err), QC_OK);
	CHECK_U64(lost.n, 0);
	CHECK_U64(sim_disk_flip(hand.disk, "qlog/q1/r00000001.qidx", 60, 1), 0);
	CHECK_U64(qc_verify_lost(&hand.files, 1, 1, places[3], 10, note_lost, &lost, &err), QC_NOTFOUND);
	end();
}

static void
test_foreign(void)
{
	begin();
	foreign = 101;
	verify(1, 0);
	CHECK_U64(nfindings, 1);
	CHECK(findings[0].foreign);
	CHECK_U64(findings[0].position, places[1]);
	end();
}

/* The bytes beside are those that were damaged. */
static void
check_kept(uint64_t position, const uint8_t *want, size_t len)
{
	uint8_t		got[1024];
	size_t		n = 0;
	char		path[QC_PATH_MAX];

	(void) snprintf(path, sizeof(path), "qlog/q1/r00000001.qlog.bad.%llu", (unsigned long long) position);
	CHECK_U64(qc_dir_read_file(hand.io, path, got, sizeof(got), &n, &err), QC_OK);
	CHECK_BYTES(got, n, want, len);
}

static void
test_mend(void)
{
	uint8_t		bytes[1024];
	size_t		len;
	uint32_t	strays = 0;

	begin();
	len = (size_t) (places[4] - places[3]);
	flip(places[3]);
	flip(places[20] + 50);
	hand_read(&hand, 1, 1, places[3], bytes, len);
	verify(1, 0);
	CHECK_U64(nfindings, 2);
	for (uint32_t i = 0; i < 2; i++)
	{
		CHECK(qc_verify_mendable(&findings[i]));
		CHECK_U64(qc_verify_mend(&hand.files, &findings[i], 77, &err), QC_OK);
	}
	check_kept(places[3], bytes, len);
	verify(1, 0);
	CHECK_U64(nfindings, 0);
	for (uint64_t p = 1; p <= 20; p++)
		CHECK(was_seen(p) == (p != 3 && p != 20));
	CHECK_U64(qc_dir_sweep(hand.io, QC_LAYOUT_FLAT, &strays, &err), QC_OK);
	CHECK_U64(strays, 0);
	check_kept(places[3], bytes, len);

	/* the header */
	flip(3);
	verify(1, 0);
	CHECK_U64(qc_verify_mend(&hand.files, &findings[0], 77, &err), QC_OK);
	verify(1, 0);
	CHECK_U64(nfindings, 0);

	/* too short for a pad */
	findings[0].position = places[5];
	findings[0].bytes = QC_RECORD_HEADER_SIZE - 1;
	CHECK(!qc_verify_mendable(&findings[0]));
	CHECK_U64(qc_verify_mend(&hand.files, &findings[0], 77, &err), QC_INVALID);
	end();
}

/* Power fails at each step of mending: repeated, it leaves the same. */
static void
test_mend_cut_short(void)
{
	bool		done = false;

	for (uint64_t step = 1; !done; step++)
	{
		uint8_t		bytes[1024];
		size_t		len;
		QcFinding	finding;

		begin();
		len = (size_t) (places[4] - places[3]);
		flip(places[3] + 70);
		hand_read(&hand, 1, 1, places[3], bytes, len);
		verify(1, 0);
		finding = findings[0];
		sim_disk_reseed(hand.disk, step);
		sim_disk_crash_at(hand.disk, sim_disk_steps(hand.disk) + step, SIM_MIDDLE);
		done = qc_verify_mend(&hand.files, &finding, 77, &err) == QC_OK;
		sim_disk_reboot(hand.disk, SIM_RANDOM, SIM_RANDOM);
		qc_files_init(&hand.files, hand.io, QC_LAYOUT_FLAT);
		verify(1, 0);
		for (uint64_t p = 1; p <= 20; p++)
			CHECK(was_seen(p) == (p != 3));
		CHECK(!done || nfindings == 0);
		if (nfindings > 0)
			CHECK_U64(qc_verify_mend(&hand.files, &findings[0], 77, &err), QC_OK);
		check_kept(places[3], bytes, len);
		verify(1, 0);
		CHECK_U64(nfindings, 0);
		end();
	}
}

/* Reading fails: the error, not a finding. */
static void
test_read_fails(void)
{
	QcVerify	v = {.files = &hand.files, .log = 1, .file = 1, .finding = note_finding};

	begin();
	nfindings = 0;
	sim_disk_fail(hand.disk, SIM_OP_READ, 1, EIO);
	CHECK_U64(qc_verify_file(&v, &err), QC_IO);
	sim_disk_heal(hand.disk);
	v.file = 9;
	CHECK_U64(qc_verify_file(&v, &err), QC_MISSING);
	CHECK_U64(nfindings, 0);
	end();
}

int
main(void)
{
	UNIT_RUN(test_sound);
	UNIT_RUN(test_every_byte);
	UNIT_RUN(test_places);
	UNIT_RUN(test_ends_early);
	UNIT_RUN(test_passed_over);
	UNIT_RUN(test_only_pads);
	UNIT_RUN(test_what_was_lost);
	UNIT_RUN(test_foreign);
	UNIT_RUN(test_mend);
	UNIT_RUN(test_mend_cut_short);
	UNIT_RUN(test_read_fails);
	return unit_end();
}
