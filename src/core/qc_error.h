/*
 * qc_error.h
 *		Status codes and the error record of the storage core.
 *
 * Every fallible core function returns a QcStatus and, when it is not QC_OK,
 * has filled the caller's QcError: what went wrong, errno, file and position.
 * The core never prints and never jumps; the shell (src/pg/qlog_report.c)
 * turns an error record into an ereport, qlog_dump prints it.
 */
#ifndef QC_ERROR_H
#define QC_ERROR_H

#include <stdbool.h>
#include <stdint.h>

/* One list: drives the enum, the names and the texts. */
#define QC_STATUS_LIST(X) \
	X(OK, "ok") \
	X(END, "end of the written part") \
	X(SHORT, "more bytes are needed") \
	X(IO, "input/output error") \
	X(NOSPACE, "no space left on the device") \
	X(NOTFOUND, "not found") \
	X(EXISTS, "exists already") \
	X(DAMAGED, "damaged") \
	X(VERSION, "unknown format version") \
	X(FOREIGN, "belongs to somebody else") \
	X(MISSING, "missing") \
	X(INVALID, "invalid argument") \
	X(LIMIT, "limit exceeded") \
	X(FULL, "memory is full") \
	X(CONFLICT, "conflict") \
	X(BUSY, "busy") \
	X(RETRY, "changed meanwhile") \
	X(PAUSED, "paused") \
	X(OVERFLOW, "over its limit") \
	X(INTERRUPTED, "interrupted") \
	X(INTERNAL, "internal error")

typedef enum QcStatus
{
#define QC_STATUS_ENUM(name, text) QC_##name,
	QC_STATUS_LIST(QC_STATUS_ENUM)
#undef QC_STATUS_ENUM
	QC_STATUS_COUNT
} QcStatus;

typedef struct QcError
{
	QcStatus	code;
	int			sys_errno;		/* 0 when no system call failed */
	uint64_t	position;		/* byte in file, UINT64_MAX when it has none */
	char		file[256];		/* path relative to the data directory, or "" */
	char		text[256];		/* one sentence without file and position */
} QcError;

/* Reset to QC_OK. */
extern void qc_error_clear(QcError *err);

/* Fill err (which may be NULL) and return code.  Keeps file and position empty. */
extern QcStatus qc_error_set(QcError *err, QcStatus code, const char *format,...)
			__attribute__((format(printf, 3, 4)));

/* As qc_error_set, naming a file and a byte position in it. */
extern QcStatus qc_error_at(QcError *err, QcStatus code, const char *file, uint64_t position,
							const char *format,...) __attribute__((format(printf, 5, 6)));

/*
 * A failed system call: code is QC_NOSPACE for ENOSPC and EDQUOT, otherwise QC_IO.  what is the text,
 * "could not write log file".
 */
extern QcStatus qc_error_sys(QcError *err, int sys_errno, const char *file, const char *what);

/* Add file and position to an error that has none yet. */
extern void qc_error_locate(QcError *err, const char *file, uint64_t position);

/* "QC_DAMAGED", and the sentence of the list. */
extern const char *qc_status_name(QcStatus code);
extern const char *qc_status_text(QcStatus code);

/* Render "text: file at byte N: strerror" into buf; always terminated. */
extern void qc_error_format(const QcError *err, char *buf, uint32_t size);

#endif							/* QC_ERROR_H */
