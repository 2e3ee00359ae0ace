/*
 * fuzz_walrec.c
 *		WAL record bodies and the stash: decoding never reads outside, and what is accepted encodes to
 *		the same bytes.
 *
 * The first byte picks the format; a stash gets its checksums repaired when the bit 0x80 is set.
 */
#include "fuzz.h"

#include "qc_entry.h"
#include "qc_record.h"
#include "qc_walrec.h"
#include "sample.h"

#include <stdlib.h>

#define AS_ENTRY	0
#define AS_BARRIER	1
#define AS_EPOCH	2
#define AS_STASH	3
#define REPAIR		0x80

static void
fuzz_entry(const uint8_t *body, size_t len)
{
	QcWalEntry	entry;
	QcError		err;
	QcWriter	w;
	uint8_t    *out;
	uint64_t	log;
	const uint8_t *record;
	uint32_t	size;

	if (qc_wal_entry_decode(body, len, &entry, &err) != QC_OK)
	{
		FUZZ_CHECK(err.code == QC_DAMAGED || err.code == QC_VERSION);
		return;
	}
	out = malloc(len);
	qc_writer_init(&w, out, len);
	qc_wal_entry_put(&w, &entry);
	for (uint32_t i = 0; i < entry.nparts; i++)
	{
		FUZZ_CHECK(qc_wal_part_get(&entry.parts, &log, &record, &size, &err) == QC_OK);
		qc_wal_part_put_head(&w, log, size);
		qc_put_bytes(&w, record, size);
	}
	if (entry.flags == QC_ENTRY_CARRIED)
		FUZZ_CHECK(qc_wal_part_get(&entry.parts, &log, &record, &size, &err) == QC_END);
	FUZZ_CHECK(!w.full && w.len == len && memcmp(out, body, len) == 0);
	free(out);
}

static void
fuzz_mark(QcWalKind kind, const uint8_t *body, size_t len)
{
	uint8_t		out[QC_WALREC_MARK_MAX];
	QcWalMark	mark;
	QcError		err;
	QcWriter	w;

	if (qc_wal_mark_decode(kind, body, len, &mark, &err) != QC_OK)
	{
		FUZZ_CHECK(err.code == QC_DAMAGED || err.code == QC_VERSION);
		return;
	}
	qc_writer_init(&w, out, sizeof(out));
	qc_wal_mark_put(&w, kind, &mark);
	FUZZ_CHECK(!w.full && w.len == len && memcmp(out, body, len) == 0);
}

/* A digest over two places, as qc_stash_put_head computes it. */
static void
repair_stash(uint8_t *bytes, size_t len)
{
	QcStashRecord record = {.body = bytes + QC_STASH_HEAD_SIZE};

	if (len < QC_STASH_HEAD_SIZE)
		return;
	record.body_len = qc_load_u32(bytes);
	if (record.body_len > len - QC_STASH_HEAD_SIZE)
		record.body_len = (uint32_t) (len - QC_STASH_HEAD_SIZE);
	record.kind = (QcWalKind) (qc_load_u32(bytes + 4) & 0xff);
	record.timeline = qc_load_u32(bytes + 8);
	record.end_lsn = qc_load_u64(bytes + 16);
	qc_stash_put_head(bytes, &record);
}

static void
fuzz_stash(const uint8_t *data, size_t len, bool repaired)
{
	uint8_t    *bytes = malloc(len + (len == 0));
	uint8_t		head[QC_STASH_HEAD_SIZE];
	QcStashRecord record;
	QcError		err;
	size_t		at = 0;
	size_t		size;
	QcStatus	status;

	memcpy(bytes, data, len);
	for (;;)
	{
		if (repaired)
			repair_stash(bytes + at, len - at);
		status = qc_stash_get(bytes + at, len - at, &record, &size, &err);
		if (status != QC_OK)
			break;
		qc_stash_put_head(head, &record);
		FUZZ_CHECK(memcmp(head, bytes + at, QC_STASH_HEAD_SIZE) == 0);
		FUZZ_CHECK(size == QC_STASH_HEAD_SIZE + (size_t) record.body_len && size <= len - at);
		at += size;
	}
	FUZZ_CHECK(status == QC_END || status == QC_SHORT || status == QC_DAMAGED || status == QC_VERSION);
	FUZZ_CHECK((status == QC_END) == (at == len));
	free(bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	switch (data[0] & 3)
	{
		case AS_ENTRY:
			fuzz_entry(data + 1, size - 1);
			break;
		case AS_BARRIER:
			fuzz_mark(QC_WAL_BARRIER, data + 1, size - 1);
			break;
		case AS_EPOCH:
			fuzz_mark(QC_WAL_EPOCH, data + 1, size - 1);
			break;
		default:
			fuzz_stash(data + 1, size - 1, (data[0] & REPAIR) != 0);
			break;
	}
	return 0;
}

#ifndef FUZZ_LIBFUZZER
static void
add_seeds(void)
{
	uint8_t		buf[1 + SAMPLE_MAX];
	size_t		len;

	buf[0] = AS_ENTRY;
	fuzz_seed(buf, 1 + sample_wal_carried(buf + 1));
	fuzz_seed(buf, 1 + sample_wal_referenced(buf + 1));
	buf[0] = AS_BARRIER;
	fuzz_seed(buf, 1 + sample_wal_barrier(buf + 1));
	buf[0] = AS_EPOCH;
	fuzz_seed(buf, 1 + sample_wal_epoch(buf + 1));
	len = sample_stash(buf + 1);
	memmove(buf + 1, buf + 1 + QC_STASH_MAGIC_SIZE, len - QC_STASH_MAGIC_SIZE);
	buf[0] = AS_STASH;
	fuzz_seed(buf, 1 + len - QC_STASH_MAGIC_SIZE);
	buf[0] = AS_STASH | REPAIR;
	fuzz_seed(buf, 1 + len - QC_STASH_MAGIC_SIZE);
}

int
main(int argc, char **argv)
{
	return fuzz_main(argc, argv, "walrec", LLVMFuzzerTestOneInput, add_seeds);
}
#endif
