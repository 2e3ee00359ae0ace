/*
 * qc_error.c
 *		Filling and rendering the error record of the core.
 *
 * Texts longer than the record are cut, never overrun.  Nothing here allocates, prints or
 * jumps.  Called by every fallible core function, by the shell's error mapping and by tools.
 */
#include "qc_error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
qc_error_clear(QcError *err)
{
	err->code = QC_OK;
	err->sys_errno = 0;
	err->position = UINT64_MAX;
	err->file[0] = '\0';
	err->text[0] = '\0';
}

/* Code and text; file, position and errno become empty. */
static void
__attribute__((format(printf, 3, 0)))
fill(QcError *err, QcStatus code, const char *format, va_list args)
{
	qc_error_clear(err);
	err->code = code;
	(void) vsnprintf(err->text, sizeof(err->text), format, args);
}

QcStatus
qc_error_set(QcError *err, QcStatus code, const char *format,...)
{
	va_list		args;

	if (err == NULL)
		return code;
	va_start(args, format);
	fill(err, code, format, args);
	va_end(args);
	return code;
}

QcStatus
qc_error_at(QcError *err, QcStatus code, const char *file, uint64_t position,
			const char *format,...)
{
	va_list		args;

	if (err == NULL)
		return code;
	va_start(args, format);
	fill(err, code, format, args);
	va_end(args);
	qc_error_locate(err, file, position);
	return code;
}

QcStatus
qc_error_sys(QcError *err, int sys_errno, const char *file, const char *what)
{
	bool		no_space = sys_errno == ENOSPC || sys_errno == EDQUOT;
	QcStatus	code = no_space ? QC_NOSPACE : QC_IO;

	(void) qc_error_at(err, code, file, UINT64_MAX, "%s", what);
	if (err != NULL)
		err->sys_errno = sys_errno;
	return code;
}

void
qc_error_locate(QcError *err, const char *file, uint64_t position)
{
	if (err == NULL || err->file[0] != '\0')
		return;
	(void) snprintf(err->file, sizeof(err->file), "%s", file);
	err->position = position;
}

const char *
qc_status_name(QcStatus code)
{
	switch (code)
	{
#define STATUS_NAME(name, text) case QC_##name: return "QC_" #name;
			QC_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
		case QC_STATUS_COUNT:
			break;
	}
	return "QC_?";
}

const char *
qc_status_text(QcStatus code)
{
	switch (code)
	{
#define STATUS_TEXT(name, text) case QC_##name: return text;
			QC_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
		case QC_STATUS_COUNT:
			break;
	}
	return "unknown status";
}

void
qc_error_format(const QcError *err, char *buf, uint32_t size)
{
	char		where[sizeof(err->file) + 40] = "";
	const char *text = err->text[0] != '\0' ? err->text : qc_status_text(err->code);
	bool		sys = err->sys_errno != 0;

	if (size == 0)
		return;
	if (err->file[0] != '\0' && err->position != UINT64_MAX)
		(void) snprintf(where, sizeof(where), ": %s at byte %" PRIu64, err->file, err->position);
	else if (err->file[0] != '\0')
		(void) snprintf(where, sizeof(where), ": %s", err->file);
	else if (err->position != UINT64_MAX)
		(void) snprintf(where, sizeof(where), " at byte %" PRIu64, err->position);
	(void) snprintf(buf, size, "%s%s%s%s", text, where, sys ? ": " : "",
					sys ? strerror(err->sys_errno) : "");
}
