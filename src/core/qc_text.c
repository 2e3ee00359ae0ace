/*
 * qc_text.c
 *		Small text files of "key = value" lines.
 */
#include "qc_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "qc_dir.h"

/* Split off one line; false at the end of the text.  Its key and value are terminated in place. */
static bool
next_line(char **at, char **key, char **value)
{
	char	   *line = *at;
	char	   *end = strchr(line, '\n');
	char	   *equals;

	if (*line == '\0')
		return false;
	*at = end == NULL ? line + strlen(line) : end + 1;
	if (end != NULL)
		*end = '\0';
	equals = strstr(line, " = ");
	*key = line;
	*value = NULL;
	if (equals != NULL)
	{
		*equals = '\0';
		*value = equals + 3;
	}
	return true;
}

QcStatus
qc_text_damaged(const char *path, QcError *err)
{
	return qc_error_at(err, QC_DAMAGED, path, UINT64_MAX, "file does not have the expected text");
}

bool
qc_text_number(const char *text, uint64_t *value)
{
	uint64_t	sum = 0;

	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++)
	{
		unsigned	digit = (unsigned) (*text - '0');

		if (digit > 9 || sum > (UINT64_MAX - digit) / 10)
			return false;
		sum = sum * 10 + digit;
	}
	*value = sum;
	return true;
}

/* A newer format may say anything else, so its version is judged before the rest. */
static QcStatus
check_version(const char *path, const char *text, QcError *err)
{
	static const char key[] = "format_version = ";
	char		number[32];
	uint64_t	version;
	size_t		len;

	if (strncmp(text, key, sizeof(key) - 1) != 0)
		return qc_text_damaged(path, err);
	text += sizeof(key) - 1;

	len = strcspn(text, "\n");
	if (len >= sizeof(number))
		return qc_text_damaged(path, err);
	memcpy(number, text, len);
	number[len] = '\0';
	if (!qc_text_number(number, &version) || version == 0)
		return qc_text_damaged(path, err);
	if (version > QC_DIR_VERSION)
		return qc_error_at(err, QC_VERSION, path, UINT64_MAX,
						   "format version is %" PRIu64 ", this program knows %d", version,
						   QC_DIR_VERSION);
	return QC_OK;
}

QcStatus
qc_text_read(const QcIo *io, const char *path, QcTextField *fields, int nfields, QcError *err)
{
	char		text[QC_TEXT_MAX + 1];
	size_t		len;
	char	   *at = text;
	char	   *key;
	char	   *value;
	int			seen = -1;		/* the version's line */
	QcStatus	status = qc_dir_read_file(io, path, text, QC_TEXT_MAX, &len, err);

	if (status != QC_OK)
		return status;
	text[len] = '\0';

	status = check_version(path, text, err);
	while (status == QC_OK && next_line(&at, &key, &value))
	{
		int			i = 0;

		while (i < nfields && strcmp(fields[i].key, key) != 0)
			i++;
		if (seen++ < 0)
			continue;
		if (i == nfields || fields[i].seen || value == NULL || strlen(value) >= QC_TEXT_VALUE)
			return qc_text_damaged(path, err);
		fields[i].seen = true;
		memcpy(fields[i].value, value, strlen(value) + 1);
	}
	if (status == QC_OK && seen != nfields)
		return qc_text_damaged(path, err);
	return status;
}

QcStatus
qc_text_write(const QcIo *io, const char *path, const char *lines, QcError *err)
{
	char		text[QC_TEXT_MAX];
	int			len = snprintf(text, sizeof(text), "format_version = %d\n%s", QC_DIR_VERSION, lines);

	if (len >= (int) sizeof(text))
		return qc_error_at(err, QC_LIMIT, path, UINT64_MAX, "text is longer than %d bytes", QC_TEXT_MAX);
	return qc_dir_write_file(io, path, text, (size_t) len, err);
}

QcStatus
qc_text_or_missing(QcStatus status, bool *missing, QcError *err)
{
	*missing = status == QC_MISSING;
	if (*missing && err != NULL)
		qc_error_clear(err);
	return *missing ? QC_OK : status;
}
