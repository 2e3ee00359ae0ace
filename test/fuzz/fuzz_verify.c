/*
 * fuzz_verify.c
 *		Looking through a log file of any content: findings ascend and lie in the file, every record that is right is seen, and
 *		mended places are found no more.
 *
 * The first byte says whether the file header is repaired (1).
 */
#include "fuzz.h"

#include "../sim/sim_disk.h"
#include "qc_verify.h"
#include "sample.h"

#include <stdlib.h>
#include <string.h>

#define FINDINGS 32

typedef struct Seen
{
	uint32_t	n;
	uint64_t	position;		/* of the last finding */
	uint64_t	records;
	QcFinding	findings[FINDINGS];
} Seen;

static bool
note_finding(void *context, const QcFinding *finding)
{
	Seen	   *seen = context;

	FUZZ_CHECK(seen->n == 0 || finding->position > seen->position || finding->bytes == 0);
	FUZZ_CHECK(finding->text[0] != '\0');
	seen->position = finding->position;
	if (seen->n < FINDINGS)
		seen->findings[seen->n] = *finding;
	seen->n++;
	return true;
}

static bool
note_record(void *context, uint64_t partition, uint64_t first, uint32_t count)
{
	Seen	   *seen = context;

	(void) partition;
	(void) first;
	FUZZ_CHECK(count > 0);
	seen->records++;
	return true;
}

static void
look(QcFiles *files, Seen *seen)
{
	QcVerify	verify = {.files = files, .log = 1, .file = 1, .deep = true, .context = seen,
		.finding = note_finding, .record = note_record};
	QcError		err;

	memset(seen, 0, sizeof(*seen));
	FUZZ_CHECK(qc_verify_file(&verify, &err) == QC_OK);
}

/* Mend what can be mended: none of it is found again, and no record is lost by it. */
static void
mend(QcFiles *files, const Seen *before)
{
	static Seen after;
	uint32_t	mended = 0;
	QcError		err;

	for (uint32_t i = 0; i < before->n && i < FINDINGS; i++)
	{
		const QcFinding *finding = &before->findings[i];
		QcStatus	status = finding->bytes == 0 ? QC_INVALID :
			qc_verify_mend(files, finding, 77, &err);

		FUZZ_CHECK(status == QC_OK || status == QC_INVALID || status == QC_SHORT);
		mended += status == QC_OK;
	}
	if (mended == 0 || before->n > FINDINGS)
		return;
	look(files, &after);
	FUZZ_CHECK(after.records >= before->records);
	FUZZ_CHECK(after.n <= before->n - mended || before->findings[0].position == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static Seen seen;
	SimDisk    *disk = sim_disk_new(1);
	const QcIo *io = sim_disk_io(disk);
	uint8_t    *bytes = malloc(size + 1);
	QcFileHeader header = {.file_id = 1, .first_seq = 11};
	QcIoSlice	slice = {bytes, size - (size > 0)};
	QcFiles		files;
	QcHandle	handle;

	memcpy(bytes, data + (size > 0), slice.len);
	if (size > 0 && (data[0] & 1) && slice.len >= QC_FILE_HEADER_SIZE)
		qc_file_header_encode(bytes, &header);
	FUZZ_CHECK(io->make_directory(io->context, "qlog") == 0);
	FUZZ_CHECK(io->make_directory(io->context, "qlog/q1") == 0);
	FUZZ_CHECK(io->open(io->context, "qlog/q1/r00000001.qlog", QC_OPEN_WRITE | QC_OPEN_CREATE, &handle) == 0);
	if (slice.len > 0)
		FUZZ_CHECK(io->write(io->context, handle, &slice, 1, 0) == 0);
	io->close(io->context, handle);
	qc_files_init(&files, io, QC_LAYOUT_FLAT);
	look(&files, &seen);
	mend(&files, &seen);
	qc_files_close(&files);
	FUZZ_CHECK(sim_disk_handles(disk) == 0);
	sim_disk_free(disk);
	free(bytes);
	return 0;
}

#ifndef FUZZ_LIBFUZZER
static void
add_seeds(void)
{
	uint8_t		buf[1 + QC_FILE_HEADER_SIZE + 5 * SAMPLE_MAX] = {1};
	size_t		len = 1 + QC_FILE_HEADER_SIZE;

	len += sample_solo_record(buf + len);
	fuzz_seed(buf, len);
	len += sample_solo_record(buf + len);
	len += sample_entry_record(buf + len);
	len += sample_stub_record(buf + len);
	len += sample_pad_record(buf + len);
	fuzz_seed(buf, len);
}

int
main(int argc, char **argv)
{
	return fuzz_main(argc, argv, "verify", LLVMFuzzerTestOneInput, add_seeds);
}
#endif
