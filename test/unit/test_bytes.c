/*
 * test_bytes.c
 *		The bounds-checked cursor.
 */
#include "qc_bytes.h"
#include "unit.h"

static void
test_numbers_are_little_endian(void)
{
	static const uint8_t expected[] = {0x01, 0x03, 0x02, 0x07, 0x06, 0x05, 0x04,
		0x0f, 0x0e, 0x0d, 0x0c, 0x0b, 0x0a, 0x09, 0x08, 0x02, 0x00, 'a', 'b'};
	uint8_t		buf[32];
	QcWriter	w;

	qc_writer_init(&w, buf, sizeof(buf));
	qc_put_u8(&w, 1);
	qc_put_u16(&w, 0x0203);
	qc_put_u32(&w, 0x04050607);
	qc_put_u64(&w, UINT64_C(0x08090a0b0c0d0e0f));
	qc_put_str16(&w, "ab", 2);
	CHECK(!w.full);
	CHECK_BYTES(buf, w.len, expected, sizeof(expected));
}

static void
test_reads_back(void)
{
	static const uint8_t bytes[] = {0xff, 0xfe, 0xff, 0xfc, 0xfd, 0xfe, 0xff,
		0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff, 0x01, 0x00, 'x'};
	QcReader	r;
	uint16_t	len;
	const uint8_t *str;

	qc_reader_init(&r, bytes, sizeof(bytes));
	CHECK_U64(qc_get_u8(&r), 0xff);
	CHECK_U64(qc_get_u16(&r), 0xfffe);
	CHECK_U64(qc_get_u32(&r), 0xfffefdfc);
	CHECK_U64(qc_get_u64(&r), UINT64_C(0xfffefdfcfbfaf9f8));
	str = qc_get_str16(&r, &len);
	CHECK_BYTES(str, len, "x", 1);
	CHECK(!r.bad);
	CHECK_U64(qc_reader_left(&r), 0);
}

static void
test_full_writer_writes_nothing_more(void)
{
	uint8_t		buf[4] = {0xaa, 0xaa, 0xaa, 0xaa};
	QcWriter	w;

	qc_writer_init(&w, buf, 3);
	qc_put_u16(&w, 0);
	qc_put_u16(&w, 0);
	CHECK(w.full);
	qc_put_u8(&w, 0);
	CHECK(w.full);
	CHECK_U64(w.len, 2);
	CHECK_U64(buf[2], 0xaa);
	CHECK_U64(buf[3], 0xaa);
}

static void
test_bad_reader_consumes_nothing_more(void)
{
	static const uint8_t bytes[] = {1, 2, 3};
	QcReader	r;

	qc_reader_init(&r, bytes, sizeof(bytes));
	CHECK_U64(qc_get_u32(&r), 0);
	CHECK(r.bad);
	CHECK_U64(qc_get_u8(&r), 0);
	CHECK_U64(qc_reader_left(&r), 3);
}

static void
test_string_longer_than_its_length_field(void)
{
	static uint8_t buf[70000];
	static uint8_t text[65536];
	QcWriter	w;

	qc_writer_init(&w, buf, sizeof(buf));
	qc_put_str16(&w, text, 65535);
	CHECK(!w.full);
	qc_writer_init(&w, buf, sizeof(buf));
	qc_put_str16(&w, text, 65536);
	CHECK(w.full);
	CHECK_U64(w.len, 0);
}

static void
test_string_that_exceeds_the_buffer(void)
{
	static const uint8_t bytes[] = {3, 0, 'a', 'b'};
	QcReader	r;
	uint16_t	len;

	qc_reader_init(&r, bytes, sizeof(bytes));
	CHECK(qc_get_str16(&r, &len) == NULL);
	CHECK(r.bad);
}

static void
test_empty_buffer(void)
{
	QcWriter	w;
	QcReader	r;

	qc_writer_init(&w, NULL, 0);
	qc_put_bytes(&w, NULL, 0);
	CHECK(!w.full);
	qc_put_u8(&w, 1);
	CHECK(w.full);
	qc_reader_init(&r, NULL, 0);
	CHECK_U64(qc_reader_left(&r), 0);
	(void) qc_get_bytes(&r, 0);
	CHECK(!r.bad);
	CHECK_U64(qc_get_u8(&r), 0);
	CHECK(r.bad);
}

int
main(void)
{
	UNIT_RUN(test_numbers_are_little_endian);
	UNIT_RUN(test_reads_back);
	UNIT_RUN(test_full_writer_writes_nothing_more);
	UNIT_RUN(test_bad_reader_consumes_nothing_more);
	UNIT_RUN(test_string_longer_than_its_length_field);
	UNIT_RUN(test_string_that_exceeds_the_buffer);
	UNIT_RUN(test_empty_buffer);
	return unit_end();
}
