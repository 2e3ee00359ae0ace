/*
 * qlog_message.c
 *		From a checked payload to a staged message.
 */
#include "qlog_message.h"

#include "qlog_guc.h"

static void
check_size(const QlogPayload *payload)
{
	uint64		size = (uint64) payload->len + payload->headers_len;

	if (size > (uint64) qlog_max_message_size * 1024)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("message is too large"),
				 errdetail("Payload and headers have %llu bytes, the limit is %d kB.",
						   (unsigned long long) size, qlog_max_message_size),
				 errhint("Consider raising \"qlog.max_message_size\".")));
}

void
qlog_push(const QlogTarget *target, const QlogPayload *payload, uint8 id[QLOG_UUID_SIZE])
{
	QcMessage	message;

	check_size(payload);
	memset(&message, 0, sizeof(message));
	if (payload->binary)
		message.flags |= QC_FRAME_BINARY;
	if (payload->headers != NULL)
	{
		message.flags |= QC_FRAME_HEADERS;
		message.headers = (const uint8_t *) payload->headers;
		message.headers_len = payload->headers_len;
	}
	message.data = (const uint8_t *) payload->data;
	message.data_len = payload->len;
	qlog_uuid_make(message.id);
	qlog_stage_message(target, &message);
	memcpy(id, message.id, QLOG_UUID_SIZE);
}
