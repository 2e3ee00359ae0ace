/*
 * test_error.c
 *		The error record of the core.
 */
#include "qc_error.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

static void
test_set_leaves_the_place_empty(void)
{
	QcError		err;

	CHECK_U64(qc_error_set(&err, QC_LIMIT, "%d of %s", 3, "four"), QC_LIMIT);
	CHECK_U64(err.code, QC_LIMIT);
	CHECK_STR(err.text, "3 of four");
	CHECK_STR(err.file, "");
	CHECK_U64(err.position, UINT64_MAX);
	CHECK_U64(err.sys_errno, 0);
}

static void
test_locate_keeps_the_first_place(void)
{
	QcError		err;
	char		text[400];

	(void) qc_error_set(&err, QC_DAMAGED, "bad");
	qc_error_locate(&err, "qlog/q1/r00000001.qlog", 32);
	qc_error_locate(&err, "elsewhere", 1);
	qc_error_format(&err, text, sizeof(text));
	CHECK_STR(text, "bad: qlog/q1/r00000001.qlog at byte 32");
}

static void
test_system_errors(void)
{
	QcError		err;
	char		text[400];

	CHECK_U64(qc_error_sys(&err, ENOSPC, "a", "could not write"), QC_NOSPACE);
	CHECK_U64(qc_error_sys(&err, EDQUOT, "a", "could not write"), QC_NOSPACE);
	CHECK_U64(qc_error_sys(&err, EIO, "a", "could not write"), QC_IO);
	CHECK_U64(err.sys_errno, EIO);
	qc_error_format(&err, text, sizeof(text));
	CHECK_STR(text, "could not write: a: Input/output error");
}

static void
test_long_texts_are_cut(void)
{
	char		lengthy[600];
	char		text[16];
	QcError		err;

	memset(lengthy, 'x', sizeof(lengthy) - 1);
	lengthy[sizeof(lengthy) - 1] = '\0';
	(void) qc_error_at(&err, QC_INTERNAL, lengthy, 7, "%s", lengthy);
	CHECK_U64(strlen(err.text), sizeof(err.text) - 1);
	CHECK_U64(strlen(err.file), sizeof(err.file) - 1);
	qc_error_format(&err, text, sizeof(text));
	CHECK_STR(text, "xxxxxxxxxxxxxxx");
}

static void
test_nobody_listens(void)
{
	CHECK_U64(qc_error_set(NULL, QC_BUSY, "x"), QC_BUSY);
	CHECK_U64(qc_error_at(NULL, QC_BUSY, "f", 1, "x"), QC_BUSY);
	CHECK_U64(qc_error_sys(NULL, EIO, "f", "x"), QC_IO);
	qc_error_locate(NULL, "f", 1);
}

static void
test_names(void)
{
	CHECK_STR(qc_status_name(QC_OK), "QC_OK");
	CHECK_STR(qc_status_name(QC_DAMAGED), "QC_DAMAGED");
	CHECK_STR(qc_status_text(QC_VERSION), "unknown format version");
	CHECK_STR(qc_status_name(QC_STATUS_COUNT), "QC_?");
	for (int i = 0; i < QC_STATUS_COUNT; i++)
		CHECK(strcmp(qc_status_name((QcStatus) i), "QC_?") != 0);
}

int
main(void)
{
	UNIT_RUN(test_set_leaves_the_place_empty);
	UNIT_RUN(test_locate_keeps_the_first_place);
	UNIT_RUN(test_system_errors);
	UNIT_RUN(test_long_texts_are_cut);
	UNIT_RUN(test_nobody_listens);
	UNIT_RUN(test_names);
	return unit_end();
}
