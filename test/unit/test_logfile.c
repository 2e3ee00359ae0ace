/*
 * test_logfile.c
 *		File header, paths, and the names of files, logs, queues and groups.
 */
#include "qc_logfile.h"
#include "sample.h"
#include "unit.h"

static void
test_golden_header(void)
{
	QcFileHeader header = {.file_id = 1, .first_seq = 11};
	QcFileHeader decoded;
	uint8_t		buf[QC_FILE_HEADER_SIZE];
	QcError		err;

	qc_file_header_encode(buf, &header);
	CHECK_BYTES(buf, sizeof(buf), sample_golden, QC_FILE_HEADER_SIZE);
	CHECK_U64(qc_file_header_decode(sample_golden, QC_FILE_HEADER_SIZE, &decoded, &err), QC_OK);
	CHECK_U64(decoded.file_id, 1);
	CHECK_U64(decoded.first_seq, 11);
}

static void
test_header_damage(void)
{
	QcFileHeader decoded;
	uint8_t		buf[QC_FILE_HEADER_SIZE];

	for (size_t len = 0; len < QC_FILE_HEADER_SIZE; len++)
		CHECK_U64(qc_file_header_decode(sample_golden, len, &decoded, NULL), QC_SHORT);
	for (size_t i = 0; i < QC_FILE_HEADER_SIZE; i++)
	{
		bool		guarded = i < 8 || i >= 24;

		memcpy(buf, sample_golden, sizeof(buf));
		buf[i] ^= 0x10;
		CHECK_U64(qc_file_header_decode(buf, sizeof(buf), &decoded, NULL),
				  guarded ? QC_DAMAGED : QC_OK);
	}
}

static void
check_path(QcLayout layout, uint64_t log, const char *expected)
{
	char		path[QC_PATH_MAX];

	qc_path_log(path, layout, log);
	CHECK_STR(path, expected);
}

static void
test_log_paths(void)
{
	check_path(QC_LAYOUT_FLAT, 0, "qlog/q0");
	check_path(QC_LAYOUT_FLAT, UINT64_MAX, "qlog/q18446744073709551615");
	check_path(QC_LAYOUT_HIERARCHICAL, 0, "qlog/00/0000/q0");
	check_path(QC_LAYOUT_HIERARCHICAL, 1, "qlog/00/0000/q1");
	check_path(QC_LAYOUT_HIERARCHICAL, 9999, "qlog/00/0000/q9999");
	check_path(QC_LAYOUT_HIERARCHICAL, 10000, "qlog/00/0001/q10000");
	check_path(QC_LAYOUT_HIERARCHICAL, 1234567890, "qlog/12/3456/q1234567890");
	check_path(QC_LAYOUT_HIERARCHICAL, UINT64_C(9999999999), "qlog/99/9999/q9999999999");
	check_path(QC_LAYOUT_HIERARCHICAL, UINT64_C(10000000000), "qlog/0000/0000/0100/0000/q10000000000");
	check_path(QC_LAYOUT_HIERARCHICAL, UINT64_MAX, "qlog/1844/6744/0737/0955/q18446744073709551615");
}

static void
test_file_paths(void)
{
	char		path[QC_PATH_MAX];

	qc_path_file(path, QC_LAYOUT_FLAT, 7, 1, "qlog");
	CHECK_STR(path, "qlog/q7/r00000001.qlog");
	qc_path_file(path, QC_LAYOUT_HIERARCHICAL, 7, 123456789, "qidx");
	CHECK_STR(path, "qlog/00/0000/q7/r123456789.qidx");
	qc_path_file(path, QC_LAYOUT_HIERARCHICAL, UINT64_MAX, UINT64_MAX, "qhsh");
	CHECK_STR(path, "qlog/1844/6744/0737/0955/q18446744073709551615/r18446744073709551615.qhsh");
}

static void
test_file_names(void)
{
	static const char *const strays[] = {
		"", "r", "r1.qlog", "r0000001.qlog", "r00000001", "r00000001.", "r00000001.qidx",
		"r00000001.qlog.tmp", "r00000001.qlog.cut.5", "r00000001qlog", "R00000001.qlog",
		"r000000001.qlog", "r-0000001.qlog", "r 0000001.qlog", "r00000001.qlog ", "xr00000001.qlog",
		"r18446744073709551616.qlog", "r99999999999999999999999.qlog", "r0000000a.qlog", NULL
	};
	uint64_t	id = 77;

	for (int i = 0; strays[i] != NULL; i++)
	{
		if (!CHECK(!qc_name_parse_file(strays[i], "qlog", &id)))
			CHECK_STR(strays[i], "");
	}
	CHECK_U64(id, 77);
	CHECK(qc_name_parse_file("r00000001.qlog", "qlog", &id));
	CHECK_U64(id, 1);
	CHECK(qc_name_parse_file("r99999999.qidx", "qidx", &id));
	CHECK_U64(id, 99999999);
	CHECK(qc_name_parse_file("r100000000.qlog", "qlog", &id));
	CHECK_U64(id, 100000000);
	CHECK(qc_name_parse_file("r18446744073709551615.qlog", "qlog", &id));
	CHECK_U64(id, UINT64_MAX);
}

static void
test_log_names(void)
{
	static const char *const strays[] = {
		"", "q", "q00", "q01", "q-1", "q+1", "q1 ", "Q1", "q1.dead", "q1/", "qlog",
		"q18446744073709551616", NULL
	};
	uint64_t	log = 77;

	for (int i = 0; strays[i] != NULL; i++)
		CHECK(!qc_name_parse_log(strays[i], &log));
	CHECK_U64(log, 77);
	CHECK(qc_name_parse_log("q0", &log));
	CHECK_U64(log, 0);
	CHECK(qc_name_parse_log("q18446744073709551615", &log));
	CHECK_U64(log, UINT64_MAX);
}

static QcNameFault
fault_of(const char *name)
{
	return qc_name_check(name, strlen(name));
}

static void
test_queue_names(void)
{
	char		longest[256];

	memset(longest, 'x', sizeof(longest));
	CHECK_U64(qc_name_check(longest, 255), QC_NAME_OK);
	CHECK_U64(qc_name_check(longest, 256), QC_NAME_LONG);
	CHECK_U64(qc_name_check("", 0), QC_NAME_EMPTY);
	CHECK_U64(fault_of("orders"), QC_NAME_OK);
	CHECK_U64(fault_of(" with spaces/slashes . and \"quotes\""), QC_NAME_OK);
	CHECK_U64(fault_of("pr\xc3\xbc" "fung \xe2\x82\xac \xf0\x9f\x98\x80"), QC_NAME_OK);
	CHECK_U64(qc_name_check("a\0b", 3), QC_NAME_CONTROL);
	CHECK_U64(fault_of("a\nb"), QC_NAME_CONTROL);
	CHECK_U64(fault_of("a\x1f"), QC_NAME_CONTROL);
	CHECK_U64(fault_of("\x7f"), QC_NAME_CONTROL);
	CHECK_U64(fault_of("\xc2\x80"), QC_NAME_CONTROL);
	CHECK_U64(fault_of("\xc2\x9f"), QC_NAME_CONTROL);
	CHECK_U64(fault_of("\xc2\xa0"), QC_NAME_OK);
}

static void
test_malformed_names(void)
{
	static const char *const malformed[] = {
		"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x80\x80", "\xe0\x9f\xbf",
		"\xe2\x82", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80", "\xff", "a\xfe", NULL
	};

	for (int i = 0; malformed[i] != NULL; i++)
		CHECK_U64(fault_of(malformed[i]), QC_NAME_ENCODING);
	/* a character cut off by the length, not by a terminator */
	CHECK_U64(qc_name_check("\xe2\x82\xac", 2), QC_NAME_ENCODING);
	CHECK_U64(fault_of("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"), QC_NAME_OK);
}

int
main(void)
{
	UNIT_RUN(test_golden_header);
	UNIT_RUN(test_header_damage);
	UNIT_RUN(test_log_paths);
	UNIT_RUN(test_file_paths);
	UNIT_RUN(test_file_names);
	UNIT_RUN(test_log_names);
	UNIT_RUN(test_queue_names);
	UNIT_RUN(test_malformed_names);
	return unit_end();
}
