/*
 * fuzz_frame.c
 *		Message frames: decoding never reads outside, and accepted frames encode to the same bytes.
 */
#include "fuzz.h"

#include "qc_frame.h"
#include "sample.h"

#include <stdlib.h>

/* bytes[0..len) is the frame that message was decoded from. */
static void
encode_again(const uint8_t *bytes, size_t len, const QcMessage *message)
{
	uint8_t    *out = malloc(len);
	uint8_t		hash[QC_HASH_SIZE];
	QcWriter	w;

	FUZZ_CHECK(qc_frame_size(message) == len);
	qc_writer_init(&w, out, len);
	qc_frame_put(&w, message);
	FUZZ_CHECK(!w.full && w.len == len && memcmp(out, bytes, len) == 0);
	qc_writer_init(&w, out, len - 1);
	qc_frame_put(&w, message);
	FUZZ_CHECK(w.full && w.len == 0);
	qc_frame_hash(message, hash);
	free(out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	QcReader	r;
	QcMessage	message;
	QcError		err;
	const uint8_t *before;
	QcStatus	status;

	qc_reader_init(&r, data, size);
	for (before = r.at; (status = qc_frame_get(&r, &message, &err)) == QC_OK; before = r.at)
		encode_again(before, (size_t) (r.at - before), &message);
	FUZZ_CHECK(status == QC_END || status == QC_DAMAGED);
	FUZZ_CHECK(status != QC_END || r.at == data + size);
	return 0;
}

#ifndef FUZZ_LIBFUZZER
static void
add_seeds(void)
{
	uint8_t		buf[SAMPLE_MAX];
	QcMessage	message = sample_full_message();
	QcWriter	w;

	qc_writer_init(&w, buf, sizeof(buf));
	for (unsigned flags = 0; flags <= QC_FRAME_FLAGS_ALL; flags++)
	{
		message.flags = (uint8_t) flags;
		if (qc_frame_size(&message) > w.cap - w.len)
			w.len = 0;
		qc_frame_put(&w, &message);
		fuzz_seed(buf, w.len);
	}
}

int
main(int argc, char **argv)
{
	return fuzz_main(argc, argv, "frame", LLVMFuzzerTestOneInput, add_seeds);
}
#endif
