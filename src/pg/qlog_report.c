/*
 * qlog_report.c
 *		From the core's error record to ereport.
 */
#include "qlog_report.h"

int
qlog_sqlstate(QcStatus code)
{
	switch (code)
	{
		case QC_OK:
		case QC_END:
			return ERRCODE_SUCCESSFUL_COMPLETION;
		case QC_IO:
			return ERRCODE_IO_ERROR;
		case QC_NOSPACE:
			return ERRCODE_DISK_FULL;
		case QC_NOTFOUND:
			return ERRCODE_UNDEFINED_OBJECT;
		case QC_EXISTS:
			return ERRCODE_DUPLICATE_OBJECT;
		case QC_SHORT:
		case QC_DAMAGED:
		case QC_MISSING:
			return ERRCODE_DATA_CORRUPTED;
		case QC_VERSION:
		case QC_FOREIGN:
			return ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
		case QC_INVALID:
			return ERRCODE_INVALID_PARAMETER_VALUE;
		case QC_LIMIT:
			return ERRCODE_PROGRAM_LIMIT_EXCEEDED;
		case QC_FULL:
			return ERRCODE_OUT_OF_MEMORY;
		case QC_CONFLICT:
		case QC_BUSY:
			return ERRCODE_OBJECT_IN_USE;
		case QC_PAUSED:
			return ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
		case QC_OVERFLOW:
			return ERRCODE_CONFIGURATION_LIMIT_EXCEEDED;
		case QC_RETRY:
			return ERRCODE_T_R_SERIALIZATION_FAILURE;
		case QC_INTERRUPTED:
			return ERRCODE_OPERATOR_INTERVENTION;
		case QC_INTERNAL:
		case QC_STATUS_COUNT:
			break;
	}
	return ERRCODE_INTERNAL_ERROR;
}

/* What a DBA can do about it; NULL when there is nothing general to say. */
static const char *
hint_of(QcStatus code)
{
	switch (code)
	{
		case QC_NOSPACE:
			return "Make room on the file system that holds qlog.data_directory.";
		case QC_FULL:
			return "Raise the setting and restart the server, or take messages out of the queues.";
		case QC_OVERFLOW:
			return "Let messages be popped and acknowledged, or raise the queue's option max_bytes.";
		case QC_PAUSED:
			return "It takes messages again after queue_resume().";
		case QC_RETRY:
			return "Retry the transaction.";
		case QC_VERSION:
			return "The directory was written by a newer version of qlog.";
		case QC_FOREIGN:
			return "What qlog.data_directory, qlog.journal_directory or qlog.checkpoint_directory names belongs to another database cluster, or to another copy of this one.";
		case QC_CONFLICT:
			return "The layout is chosen when the data directory is made: set qlog.directory_layout, qlog.shards, qlog.journal_directory and qlog.checkpoint_directory back to what they were.";
		case QC_DAMAGED:
		case QC_MISSING:
			return "Look at the directory with qlog_dump before changing anything in it.";
		default:
			return NULL;
	}
}

static void
report(int level, const QcError *err, const char *what, const char *hint)
{
	char		detail[768];

	/* These name a queue, and are no failure of ours. */
	if (err->code == QC_PAUSED || err->code == QC_OVERFLOW)
		ereport(level,
				(errcode(qlog_sqlstate(err->code)),
				 errmsg_internal("%s", err->text),
				 hint == NULL ? 0 : errhint("%s", hint)));
	qc_error_format(err, detail, sizeof(detail));

	/* A sentence, as PostgreSQL's own details are; names of ours and of settings stay as they are. */
	if (strncmp(detail, "qlog", 4) != 0)
		detail[0] = (char) pg_toupper((unsigned char) detail[0]);
	ereport(level,
			(errcode(qlog_sqlstate(err->code)),
			 errmsg("%s", what),
			 errdetail_internal("%s.", detail),
			 hint == NULL ? 0 : errhint("%s", hint)));
}

void
qlog_report(int level, const QcError *err, const char *what)
{
	report(level, err, what, hint_of(err->code));
}

void
qlog_report_refused(int level, const QcError *err, bool repairable)
{
	report(level, err, "qlog is out of service",
		   repairable ? "SELECT * FROM qlog_repair(NULL) shows what could be given up to start all the same; bring back what is missing instead, if you have it." :
		   hint_of(err->code));
}
