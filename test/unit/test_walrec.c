/*
 * test_walrec.c
 *		Bodies of WAL records, and records of the stash file.
 */
#include "qc_entry.h"
#include "qc_record.h"
#include "qc_walrec.h"
#include "sample.h"
#include "unit.h"

#include <stdlib.h>

#define DIRECTORY UINT64_C(0xd1d2d3d4d5d6d7d8)

static void
test_carried(void)
{
	uint8_t		body[SAMPLE_MAX];
	size_t		len = sample_wal_carried(body);
	QcWalEntry	entry;
	QcReader	parts;
	QcRecord	record;
	QcError		err;
	uint64_t	log;
	const uint8_t *bytes;
	uint32_t	size;

	CHECK_U64(qc_wal_entry_decode(body, len, &entry, &err), QC_OK);
	CHECK_U64(entry.flags, QC_ENTRY_CARRIED);
	CHECK_U64(entry.directory, DIRECTORY);
	CHECK_U64(entry.epoch, 2);
	CHECK_U64(entry.seq, 11);
	CHECK_U64(entry.xid, UINT64_C(0x100000002));
	CHECK_U64(entry.nparts, 2);
	parts = entry.parts;
	CHECK_U64(qc_wal_part_get(&parts, &log, &bytes, &size, &err), QC_OK);
	CHECK_U64(log, 1);
	CHECK_BYTES(bytes, size, sample_golden + 32, SAMPLE_GOLDEN_SIZE - 32);
	CHECK_U64(qc_wal_part_get(&parts, &log, &bytes, &size, &err), QC_OK);
	CHECK_U64(qc_record_decode(bytes, size, &record, &err), QC_OK);
	CHECK_U64(record.kind, QC_KIND_ENTRY);
	CHECK_U64(qc_wal_part_get(&parts, &log, &bytes, &size, &err), QC_END);
	CHECK(body + QC_WALREC_CARRIED_HEAD == entry.parts.at);
}

static void
test_referenced(void)
{
	uint8_t		body[SAMPLE_MAX];
	uint8_t		payload[SAMPLE_MAX];
	size_t		len = sample_wal_referenced(body);
	size_t		payload_len = sample_entry(payload);
	QcWalEntry	entry;
	QcError		err;

	CHECK_U64(len, QC_WALREC_REFERENCED_SIZE);
	CHECK_U64(qc_wal_entry_decode(body, len, &entry, &err), QC_OK);
	CHECK_U64(entry.flags, QC_ENTRY_REFERENCED);
	CHECK_U64(entry.digest, qc_digest(payload, payload_len));
	CHECK_U64(entry.entry_len, payload_len);
	CHECK_U64(entry.nparts, 0);
}

static void
test_marks(void)
{
	uint8_t		body[SAMPLE_MAX];
	size_t		len = sample_wal_barrier(body);
	QcWalMark	mark;
	QcError		err;

	CHECK_U64(len, 28);
	CHECK_U64(qc_wal_mark_decode(QC_WAL_BARRIER, body, len, &mark, &err), QC_OK);
	CHECK_U64(mark.directory, DIRECTORY);
	CHECK_U64(mark.epoch, 3);
	CHECK_U64(mark.old_epoch, 0);
	CHECK_U64(mark.seq, 12);
	len = sample_wal_epoch(body);
	CHECK_U64(len, QC_WALREC_MARK_MAX);
	CHECK_U64(qc_wal_mark_decode(QC_WAL_EPOCH, body, len, &mark, &err), QC_OK);
	CHECK_U64(mark.epoch, 3);
	CHECK_U64(mark.old_epoch, 2);
	CHECK_U64(mark.seq, 12);
}

static QcStatus
decode_entry(const uint8_t *body, size_t len)
{
	QcWalEntry	entry;

	return qc_wal_entry_decode(body, len, &entry, NULL);
}

static QcStatus
decode_barrier(const uint8_t *body, size_t len)
{
	QcWalMark	mark;

	return qc_wal_mark_decode(QC_WAL_BARRIER, body, len, &mark, NULL);
}

static QcStatus
decode_epoch(const uint8_t *body, size_t len)
{
	QcWalMark	mark;

	return qc_wal_mark_decode(QC_WAL_EPOCH, body, len, &mark, NULL);
}

/* Every prefix and one byte more are damaged; a newer version and unknown flags are told apart. */
static void
check_body(size_t (*make) (uint8_t *), QcStatus (*decode) (const uint8_t *, size_t))
{
	uint8_t		body[SAMPLE_MAX];
	size_t		len = make(body);

	CHECK_U64(decode(body, len), QC_OK);
	for (size_t cut = 0; cut < len; cut++)
	{
		uint8_t    *copy = malloc(cut > 0 ? cut : 1);

		memcpy(copy, body, cut);
		CHECK_U64(decode(copy, cut), QC_DAMAGED);
		free(copy);
	}
	body[len] = 0;
	CHECK_U64(decode(body, len + 1), QC_DAMAGED);
	body[0] = 2;
	CHECK_U64(decode(body, len), QC_VERSION);
	body[0] = 1;
	body[3] = 0x80;
	CHECK_U64(decode(body, len), QC_VERSION);
}

static void
test_bodies_that_are_not_whole(void)
{
	check_body(sample_wal_carried, decode_entry);
	check_body(sample_wal_referenced, decode_entry);
	check_body(sample_wal_barrier, decode_barrier);
	check_body(sample_wal_epoch, decode_epoch);
}

static void
test_flags_exclude_each_other(void)
{
	uint8_t		body[SAMPLE_MAX];
	size_t		len = sample_wal_referenced(body);

	body[2] = 0;
	CHECK_U64(decode_entry(body, len), QC_VERSION);
	body[2] = QC_ENTRY_CARRIED | QC_ENTRY_REFERENCED;
	CHECK_U64(decode_entry(body, len), QC_VERSION);
}

static void
test_parts_that_disagree(void)
{
	uint8_t		body[SAMPLE_MAX];
	size_t		len = sample_wal_carried(body);

	/* number of parts */
	qc_store_u32(body + 36, 1);
	CHECK_U64(decode_entry(body, len), QC_DAMAGED);
	qc_store_u32(body + 36, 3);
	CHECK_U64(decode_entry(body, len), QC_DAMAGED);
	qc_store_u32(body + 36, 0);
	CHECK_U64(decode_entry(body, QC_WALREC_CARRIED_HEAD), QC_DAMAGED);
	qc_store_u32(body + 36, 2);
	CHECK_U64(decode_entry(body, len), QC_OK);
	/* the len of the first part's record */
	qc_store_u32(body + QC_WALREC_CARRIED_HEAD + QC_WALREC_PART_HEAD, 109);
	CHECK_U64(decode_entry(body, len), QC_DAMAGED);
}

static void
test_stash(void)
{
	uint8_t		file[SAMPLE_MAX];
	size_t		len = sample_stash(file);
	size_t		at = QC_STASH_MAGIC_SIZE;
	size_t		size = 0;
	QcStashRecord record;
	QcError		err;

	CHECK_BYTES(file, QC_STASH_MAGIC_SIZE, "QNSTASH1", 8);
	CHECK_U64(qc_stash_get(file + at, len - at, &record, &size, &err), QC_OK);
	CHECK_U64(record.kind, QC_WAL_ENTRY);
	CHECK_U64(record.timeline, 1);
	CHECK_U64(record.end_lsn, UINT64_C(0x16b374d8));
	CHECK_U64(decode_entry(record.body, record.body_len), QC_OK);
	at += size;
	CHECK_U64(qc_stash_get(file + at, len - at, &record, &size, &err), QC_OK);
	CHECK_U64(record.kind, QC_WAL_BARRIER);
	at += size;
	CHECK_U64(at, len);
	CHECK_U64(qc_stash_get(file + at, 0, &record, &size, &err), QC_END);
}

static void
test_stash_torn_anywhere(void)
{
	uint8_t		file[SAMPLE_MAX];
	uint8_t    *bytes = file + QC_STASH_MAGIC_SIZE;
	size_t		len;
	size_t		size;
	QcStashRecord record;
	QcStatus	status;

	(void) sample_stash(file);
	CHECK_U64(qc_stash_get(bytes, SAMPLE_MAX - 8, &record, &len, NULL), QC_OK);
	for (size_t cut = 1; cut < len; cut++)
	{
		uint8_t    *copy = malloc(cut);

		memcpy(copy, bytes, cut);
		CHECK_U64(qc_stash_get(copy, cut, &record, &size, NULL), QC_SHORT);
		free(copy);
	}
	for (size_t bit = 0; bit < len * 8; bit++)
	{
		bytes[bit / 8] ^= (uint8_t) (1u << (bit % 8));
		status = qc_stash_get(bytes, len, &record, &size, NULL);
		CHECK(status == QC_DAMAGED || status == QC_SHORT);
		bytes[bit / 8] ^= (uint8_t) (1u << (bit % 8));
	}
	/* blocks that the file system never wrote */
	memset(bytes, 0, len);
	CHECK_U64(qc_stash_get(bytes, len, &record, &size, NULL), QC_DAMAGED);
}

static void
test_stash_of_an_unknown_type(void)
{
	uint8_t		head[QC_STASH_HEAD_SIZE];
	QcStashRecord record = {.kind = (QcWalKind) 0x40};
	size_t		size;
	QcError		err;

	qc_stash_put_head(head, &record);
	CHECK_U64(qc_stash_get(head, sizeof(head), &record, &size, &err), QC_VERSION);
	CHECK_STR(err.text, "stash record has the unknown type 0x40");
}

int
main(void)
{
	UNIT_RUN(test_carried);
	UNIT_RUN(test_referenced);
	UNIT_RUN(test_marks);
	UNIT_RUN(test_bodies_that_are_not_whole);
	UNIT_RUN(test_flags_exclude_each_other);
	UNIT_RUN(test_parts_that_disagree);
	UNIT_RUN(test_stash);
	UNIT_RUN(test_stash_torn_anywhere);
	UNIT_RUN(test_stash_of_an_unknown_type);
	return unit_end();
}
