/*
 * test_idx.c
 *		The .qidx index of a closed log file.
 */
#include "qc_logfile.h"
#include "qc_record.h"
#include "sample.h"
#include "sim_random.h"
#include "unit.h"

#include <stdlib.h>

#define SAMPLE_FILE 1
#define SAMPLE_LENGTH 464

static QcStatus
check_exact(const uint8_t *bytes, size_t len, uint64_t file, uint64_t length, QcError *err)
{
	uint8_t    *copy = malloc(len > 0 ? len : 1);
	uint32_t	count;
	QcStatus	status;

	memcpy(copy, bytes, len);
	status = qc_idx_check(copy, len, file, length, &count, err);
	free(copy);
	return status;
}

static void
test_sorted_and_found(void)
{
	uint8_t		buf[SAMPLE_MAX];
	size_t		len = sample_index(buf);
	const uint8_t *entries = buf + QC_IDX_HEADER_SIZE;
	uint32_t	count = 0;
	QcIdxEntry	found;
	QcError		err;

	CHECK_U64(qc_idx_check(buf, len, SAMPLE_FILE, SAMPLE_LENGTH, &count, &err), QC_OK);
	CHECK_U64(count, 3);
	CHECK(qc_idx_find(entries, count, 1, 0, &found));
	CHECK_U64(found.position, 32);
	CHECK(qc_idx_find(entries, count, 1, 2, &found));
	CHECK_U64(found.position, 260);
	CHECK_U64(found.first, 1);
	CHECK_U64(found.end, 3);
	CHECK_U64(found.count, 2);
	CHECK_U64(found.len, 200);
	CHECK_U64(found.created_at, INT64_C(0x00065e9353b9e776));
	CHECK(!qc_idx_find(entries, count, 1, 3, &found));
	CHECK(qc_idx_find(entries, count, 2, 0, &found));
	CHECK(!qc_idx_find(entries, count, 2, 1, &found));
	CHECK(!qc_idx_find(entries, count, 0, 0, &found));
	CHECK(!qc_idx_find(entries, count, 3, 0, &found));
	CHECK(!qc_idx_find(entries, 0, 1, 0, &found));
}

static void
test_empty_index(void)
{
	uint8_t		buf[QC_IDX_HEADER_SIZE];
	uint32_t	count = 9;
	QcError		err;

	qc_idx_encode(buf, 3, 32, NULL, 0);
	CHECK_U64(qc_idx_check(buf, sizeof(buf), 3, 32, &count, &err), QC_OK);
	CHECK_U64(count, 0);
}

static void
test_wrong_log_file(void)
{
	uint8_t		buf[SAMPLE_MAX];
	size_t		len = sample_index(buf);
	QcError		err;

	CHECK_U64(check_exact(buf, len, SAMPLE_FILE + 1, SAMPLE_LENGTH, &err), QC_DAMAGED);
	CHECK_STR(err.text, "index belongs to file 1");
	CHECK_U64(check_exact(buf, len, SAMPLE_FILE, SAMPLE_LENGTH + 1, &err), QC_DAMAGED);
	CHECK_STR(err.text, "index describes a log file of 464 bytes");
}

static void
test_every_truncation_and_flip(void)
{
	uint8_t		buf[SAMPLE_MAX];
	size_t		len = sample_index(buf);

	for (size_t cut = 0; cut < len; cut++)
		CHECK_U64(check_exact(buf, cut, SAMPLE_FILE, SAMPLE_LENGTH, NULL), QC_DAMAGED);
	buf[len] = 0;
	CHECK_U64(check_exact(buf, len + 1, SAMPLE_FILE, SAMPLE_LENGTH, NULL), QC_DAMAGED);
	memset(buf + len, 0, QC_IDX_ENTRY_SIZE);
	CHECK_U64(check_exact(buf, len + QC_IDX_ENTRY_SIZE, SAMPLE_FILE, SAMPLE_LENGTH, NULL), QC_DAMAGED);
	for (size_t bit = 0; bit < len * 8; bit++)
	{
		buf[bit / 8] ^= (uint8_t) (1u << (bit % 8));
		CHECK_U64(check_exact(buf, len, SAMPLE_FILE, SAMPLE_LENGTH, NULL), QC_DAMAGED);
		buf[bit / 8] ^= (uint8_t) (1u << (bit % 8));
	}
}

/* An index of one or two entries with right checksums. */
static QcStatus
check_entries(QcIdxEntry a, const QcIdxEntry *b)
{
	uint8_t		buf[QC_IDX_HEADER_SIZE + 2 * QC_IDX_ENTRY_SIZE];
	QcIdxEntry	entries[2] = {a, a};
	uint32_t	count = b == NULL ? 1 : 2;
	uint32_t	checked;

	if (b != NULL)
		entries[1] = *b;
	qc_idx_encode(buf, 1, 1000, entries, count);
	return qc_idx_check(buf, QC_IDX_HEADER_SIZE + (size_t) count * QC_IDX_ENTRY_SIZE, 1, 1000,
						&checked, NULL);
}

static void
test_impossible_entries(void)
{
	const QcIdxEntry good = {.partition = 1, .first = 5, .end = 7, .position = 32, .count = 2, .len = 100};
	QcIdxEntry	e = good;

	CHECK_U64(check_entries(good, NULL), QC_OK);
	e.count = 3;
	CHECK_U64(check_entries(e, NULL), QC_DAMAGED);
	e = good;
	e.count = 0;
	e.end = 5;
	CHECK_U64(check_entries(e, NULL), QC_DAMAGED);
	e = good;
	e.position = 31;
	CHECK_U64(check_entries(e, NULL), QC_DAMAGED);
	e.position = 1000 - 104;
	CHECK_U64(check_entries(e, NULL), QC_OK);
	e.position++;
	CHECK_U64(check_entries(e, NULL), QC_DAMAGED);
	e.position = UINT64_MAX - 50;
	CHECK_U64(check_entries(e, NULL), QC_DAMAGED);
	e = good;
	e.len = QC_RECORD_LEN_MIN - 1;
	CHECK_U64(check_entries(e, NULL), QC_DAMAGED);
}

static void
test_overlapping_entries(void)
{
	const QcIdxEntry good = {.partition = 1, .first = 5, .end = 7, .position = 32, .count = 2, .len = 100};
	QcIdxEntry	e = good;

	e.first = 6;
	e.end = 8;
	CHECK_U64(check_entries(good, &e), QC_DAMAGED);
	e.first = 7;
	e.end = 9;
	CHECK_U64(check_entries(good, &e), QC_OK);
	e = good;
	CHECK_U64(check_entries(good, &e), QC_DAMAGED);
	e.partition = 2;
	CHECK_U64(check_entries(good, &e), QC_OK);
}

#define MANY 5000
#define PARTITIONS 13

/* Entries in order of position with runs of several partitions, as a log file has them. */
static void
fill_entries(QcIdxEntry *entries, uint64_t *state)
{
	uint64_t	next[PARTITIONS] = {0};
	uint64_t	position = QC_FILE_HEADER_SIZE;

	for (uint32_t i = 0; i < MANY; i++)
	{
		QcIdxEntry *e = &entries[i];

		e->partition = sim_random_below(state, PARTITIONS);
		e->count = (uint32_t) sim_random_below(state, 5) + 1;
		e->first = next[e->partition] + sim_random_below(state, 2);
		e->end = e->first + e->count;
		e->created_at = (int64_t) i;
		e->position = position;
		e->len = QC_RECORD_LEN_MIN + (uint32_t) sim_random_below(state, 100);
		next[e->partition] = e->end;
		position += (uint64_t) e->len + 4;
	}
}

static void
test_many_entries_against_a_scan(void)
{
	static QcIdxEntry entries[MANY];
	static QcIdxEntry sorted[MANY];
	static uint8_t buf[QC_IDX_HEADER_SIZE + MANY * QC_IDX_ENTRY_SIZE];
	uint64_t	state = 7;
	uint32_t	count;
	QcError		err;

	fill_entries(entries, &state);
	memcpy(sorted, entries, sizeof(entries));
	qc_idx_encode(buf, 1, UINT64_C(1) << 30, sorted, MANY);
	CHECK_U64(qc_idx_check(buf, sizeof(buf), 1, UINT64_C(1) << 30, &count, &err), QC_OK);
	for (int i = 0; i < 5000; i++)
	{
		uint64_t	partition = sim_random_below(&state, PARTITIONS + 1);
		uint64_t	position = sim_random_below(&state, 1500);
		const QcIdxEntry *expected = NULL;
		QcIdxEntry	found;
		bool		hit = qc_idx_find(buf + QC_IDX_HEADER_SIZE, count, partition, position, &found);

		for (uint32_t k = 0; k < MANY; k++)
		{
			if (entries[k].partition == partition && entries[k].first <= position &&
				position < entries[k].end)
				expected = &entries[k];
		}
		CHECK_U64(hit, expected != NULL);
		if (hit && expected != NULL)
			CHECK_U64(found.position, expected->position);
	}
}

int
main(void)
{
	UNIT_RUN(test_sorted_and_found);
	UNIT_RUN(test_empty_index);
	UNIT_RUN(test_wrong_log_file);
	UNIT_RUN(test_every_truncation_and_flip);
	UNIT_RUN(test_impossible_entries);
	UNIT_RUN(test_overlapping_entries);
	UNIT_RUN(test_many_entries_against_a_scan);
	return unit_end();
}
