/*
 * qlog_message.c
 *		From a checked payload to a staged message.
 */
#include "qlog_message.h"

#include "utils/builtins.h"

#include "qlog_dedup.h"
#include "qlog_disk.h"
#include "qlog_guc.h"
#include "qlog_lookup.h"
#include "qlog_partition.h"
#include "qlog_shmem.h"

#define DEDUP_ID_MAX 1024

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
qlog_payload_dedup(QlogPayload *payload, Datum dedup_id)
{
	text	   *value = DatumGetTextPP(dedup_id);
	Size		len = VARSIZE_ANY_EXHDR(value);

	if (len == 0)
		qlog_arg_invalid("dedup_id", "It must not be empty; NULL means none.");
	if (len > DEDUP_ID_MAX)
		qlog_arg_invalid("dedup_id", "It may have up to 1024 bytes.");
	payload->dedup_id = VARDATA_ANY(value);
	payload->dedup_len = (uint16) len;
}

void
qlog_delay_target(const QlogQueue *queue, QlogName queue_name, const NullableDatum *deliver_at,
				  QlogTarget *target)
{
	int64		delay = queue->options.value[QC_OPT_DELAY];
	int64		now = qlog_now();

	target->lane = 0;
	target->due = now + delay;
	if (!deliver_at->isnull)
	{
		TimestampTz at = DatumGetTimestampTz(deliver_at->value);

		if (TIMESTAMP_IS_NOEND(at))
			qlog_arg_invalid("deliver_at", "It must be finite.");
		target->due = TIMESTAMP_IS_NOBEGIN(at) ? now : qlog_unix_us(at);
	}
	if (target->due > now)
		target->lane = qlog_delay_lane(queue, queue_name);
}

/* Stage a message with a dedup id unless there is one already; id becomes that of the first. */
static void
push_once(const QlogTarget *target, const QcMessage *message, bool strict, uint8 *id)
{
	uint8		hash[QC_HASH_SIZE];

	qc_frame_hash(message, hash);
	if (!qlog_dedup_known(target, hash, id))
	{
		qlog_stage_dedup(target, message, hash, strict);
		memcpy(id, message->id, QLOG_UUID_SIZE);
	}
	else if (strict)
		qlog_dedup_refuse(message);
}

void
qlog_push(const QlogTarget *target, const QlogPayload *payload, uint8 id[QLOG_UUID_SIZE])
{
	QcMessage	message;

	check_size(payload);
	qlog_disk_check_call();
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
	if (payload->dedup_id != NULL)
	{
		message.dedup_id = (const uint8_t *) payload->dedup_id;
		message.dedup_len = payload->dedup_len;
		if (target->dedup_us > 0)
		{
			push_once(target, &message, payload->strict, id);
			return;
		}
	}
	qlog_stage_message(target, &message);
	memcpy(id, message.id, QLOG_UUID_SIZE);
}
