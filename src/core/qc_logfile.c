/*
 * qc_logfile.c
 *		Log file header, and the names of log files, log directories, queues and groups.
 *
 * Works on memory only.  Names are matched exactly: whatever the path functions would not have
 * produced is a stray.  The .qidx of the same header file is in qc_idx.c.  Called by the log set,
 * recovery, reclaim, the SQL functions (names) and tools.
 */
#include "qc_logfile.h"

#include "qc_utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static const char file_magic[8] = "QNQLOG1";

void
qc_file_header_encode(uint8_t out[QC_FILE_HEADER_SIZE], const QcFileHeader *header)
{
	memcpy(out, file_magic, sizeof(file_magic));
	qc_store_u64(out + 8, header->file_id);
	qc_store_u64(out + 16, header->first_seq);
	qc_store_u64(out + 24, 0);
}

QcStatus
qc_file_header_decode(const uint8_t *buf, size_t len, QcFileHeader *header, QcError *err)
{
	if (len < QC_FILE_HEADER_SIZE)
		return qc_error_set(err, QC_SHORT, "file header is cut off");
	if (memcmp(buf, file_magic, sizeof(file_magic)) != 0)
		return qc_error_set(err, QC_DAMAGED, "file does not begin as a log file");
	if (qc_load_u64(buf + 24) != 0)
		return qc_error_set(err, QC_DAMAGED, "reserved bytes of the file header are not zero");
	header->file_id = qc_load_u64(buf + 8);
	header->first_seq = qc_load_u64(buf + 16);
	return QC_OK;
}

/* The directory above q<id>, with a slash at the end: "qlog/", "qlog/00/0000/" ... */
static int
put_parent(char *out, size_t size, QcLayout layout, uint64_t log)
{
	if (layout == QC_LAYOUT_FLAT)
		return snprintf(out, size, "qlog/");
	if (log < UINT64_C(10000000000))
		return snprintf(out, size, "qlog/%02u/%04u/", (unsigned) (log / 100000000),
						(unsigned) (log / 10000 % 10000));
	return snprintf(out, size, "qlog/%04u/%04u/%04u/%04u/",
					(unsigned) (log / UINT64_C(10000000000000000)),
					(unsigned) (log / UINT64_C(1000000000000) % 10000),
					(unsigned) (log / UINT64_C(100000000) % 10000),
					(unsigned) (log / UINT64_C(10000) % 10000));
}

void
qc_path_log(char out[QC_PATH_MAX], QcLayout layout, uint64_t log)
{
	int			used = put_parent(out, QC_PATH_MAX, layout, log);

	used += snprintf(out + used, QC_PATH_MAX - (size_t) used, "q%" PRIu64, log);
	assert(used < QC_PATH_MAX);
}

void
qc_path_file(char out[QC_PATH_MAX], QcLayout layout, uint64_t log, uint64_t file_id,
			 const char *suffix)
{
	int			used = put_parent(out, QC_PATH_MAX, layout, log);

	used += snprintf(out + used, QC_PATH_MAX - (size_t) used, "q%" PRIu64 "/r%08" PRIu64 ".%s",
					 log, file_id, suffix);
	assert(used < QC_PATH_MAX);
}

/* Digits at *at into *value, moving *at behind them; the number of digits, 0 on overflow. */
static int
parse_digits(const char **at, uint64_t *value)
{
	const char *p = *at;
	uint64_t	sum = 0;

	for (; *p >= '0' && *p <= '9'; p++)
	{
		unsigned	digit = (unsigned) (*p - '0');

		if (sum > (UINT64_MAX - digit) / 10)
			return 0;
		sum = sum * 10 + digit;
	}
	*value = sum;
	sum = (uint64_t) (p - *at);
	*at = p;
	return (int) sum;
}

bool
qc_name_parse_file(const char *name, const char *suffix, uint64_t *file_id)
{
	const char *at = name + 1;
	uint64_t	value;
	int			digits;

	if (name[0] != 'r')
		return false;
	digits = parse_digits(&at, &value);
	/* a ninth digit only when eight do not suffice, so that a file has one name */
	if (digits < 8 || (digits > 8 && name[1] == '0'))
		return false;
	if (*at != '.' || strcmp(at + 1, suffix) != 0)
		return false;
	*file_id = value;
	return true;
}

bool
qc_name_parse_log(const char *name, uint64_t *log)
{
	const char *at = name + 1;
	uint64_t	value;
	int			digits;

	if (name[0] != 'q')
		return false;
	digits = parse_digits(&at, &value);
	if (digits == 0 || (digits > 1 && name[1] == '0') || *at != '\0')
		return false;
	*log = value;
	return true;
}

QcNameFault
qc_name_check(const char *name, size_t len)
{
	const uint8_t *s = (const uint8_t *) name;
	uint32_t	code;

	if (len == 0)
		return QC_NAME_EMPTY;
	if (len > 255)
		return QC_NAME_LONG;
	for (size_t i = 0; i < len;)
	{
		size_t		step = qc_utf8_char(s + i, len - i, &code);

		if (step == 0)
			return QC_NAME_ENCODING;
		if (code < 0x20 || (code >= 0x7F && code < 0xA0))
			return QC_NAME_CONTROL;
		i += step;
	}
	return QC_NAME_OK;
}
