/*
 * fuzz_snapshot.c
 *		Snapshots: a row that is accepted lies in its bytes and is what it says; a whole file is read without a step outside.
 *
 * The first byte says whether the head is repaired (1) and whether the checksums of rows are (2).
 */
#include "fuzz.h"

#include "../sim/sim_disk.h"
#include "qc_record.h"
#include "qc_snapshot.h"
#include "sample.h"

#include <stdlib.h>
#include <string.h>

typedef struct Count
{
	uint64_t	rows;
	uint64_t	bytes;
} Count;

static QcStatus
count_row(void *context, const uint8_t *key, size_t key_len, const uint8_t *value,
		  size_t value_len, QcError *err)
{
	Count	   *count = context;

	(void) err;
	FUZZ_CHECK(key_len > 0 && key_len <= QC_SNAPSHOT_KEY_MAX);
	count->rows++;
	count->bytes += key_len + value_len + QC_SNAPSHOT_ROW_SIZE;
	(void) qc_digest(key, key_len);
	(void) qc_digest(value, value_len);
	return QC_OK;
}

/* Give each row that has its bytes the right checksum, and add up for the head. */
static void
repair_rows(uint8_t *bytes, size_t len, QcSnapshotHead *head)
{
	size_t		at = QC_SNAPSHOT_HEAD_SIZE;

	while (len - at >= QC_SNAPSHOT_ROW_SIZE)
	{
		uint64_t	key_len = qc_load_u16(bytes + at);
		uint64_t	value_len = qc_load_u32(bytes + at + 2);
		uint64_t	size = key_len + value_len + QC_SNAPSHOT_ROW_SIZE;
		uint8_t		both[16];

		if (size > len - at)
			return;
		qc_store_u64(both, qc_digest(bytes + at + 6, key_len));
		qc_store_u64(both + 8, qc_digest(bytes + at + 6 + key_len, value_len));
		qc_store_u64(bytes + at + size - 8, qc_digest(both, sizeof(both)));
		head->rows++;
		head->checksums += qc_load_u64(bytes + at + size - 8);
		at += size;
	}
}

/* Read the bytes as a file. */
static void
read_file(const uint8_t *bytes, size_t len)
{
	SimDisk    *disk = sim_disk_new(1);
	const QcIo *io = sim_disk_io(disk);
	QcIoSlice	slice = {bytes, len};
	QcHandle	handle;
	QcSnapshotHead head;
	Count		count = {0, 0};
	QcError		err;
	QcStatus	status;

	FUZZ_CHECK(io->make_directory(io->context, "snapshots") == 0);
	FUZZ_CHECK(io->open(io->context, "snapshots/s11.qsnap", QC_OPEN_WRITE | QC_OPEN_CREATE, &handle) == 0);
	FUZZ_CHECK(io->write(io->context, handle, &slice, 1, 0) == 0);
	io->close(io->context, handle);
	status = qc_snapshot_read(io, 11, 0, count_row, &count, &head, &err);
	FUZZ_CHECK(status == QC_OK || status == QC_DAMAGED || status == QC_VERSION);
	if (status == QC_OK)
	{
		FUZZ_CHECK(count.rows == head.rows);
		FUZZ_CHECK(count.bytes + QC_SNAPSHOT_HEAD_SIZE == len);
	}
	FUZZ_CHECK(sim_disk_handles(disk) == 0);
	sim_disk_free(disk);
}

static void
one_snapshot(unsigned mode, uint8_t *bytes, size_t len)
{
	QcSnapshotHead head = {.seq = 11};

	if (len >= QC_SNAPSHOT_HEAD_SIZE && (mode & 2))
		repair_rows(bytes, len, &head);
	head.length = len;
	if (len >= QC_SNAPSHOT_HEAD_SIZE && (mode & 1))
		qc_snapshot_head_encode(bytes, &head);
	read_file(bytes, len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_with_mode(data, size, one_snapshot);
}

#ifndef FUZZ_LIBFUZZER
static void
add_seeds(void)
{
	fuzz_seed_modes(4, sample_snapshot, SAMPLE_MAX);
}

int
main(int argc, char **argv)
{
	return fuzz_main(argc, argv, "snapshot", LLVMFuzzerTestOneInput, add_seeds);
}
#endif
