/*
 * qlog_message.h
 *		From a checked payload to a staged message.
 *
 * Callers: fn_push.c, fn_transaction.c.
 */
#ifndef QLOG_MESSAGE_H
#define QLOG_MESSAGE_H

#include "qlog_stage.h"
#include "qlog_uuid.h"

/* Borrowed bytes of one message. */
typedef struct QlogPayload
{
	const char *data;
	uint32		len;
	bool		binary;			/* otherwise JSON text, checked by the caller */
	const char *dedup_id;		/* NULL = none */
	uint16		dedup_len;
	bool		strict;			/* a duplicate is an error */
	const char *headers;		/* JSON text, checked by the caller; NULL = none */
	uint32		headers_len;
} QlogPayload;

/*
 * Stage it with a new id, which is returned; with a dedup id that is known, nothing is staged and the id of the first
 * message is returned (strict: 23505).  54000 when it is larger than qlog.max_message_size.
 */
extern void qlog_push(const QlogTarget *target, const QlogPayload *payload,
					  uint8 id[QLOG_UUID_SIZE]);

/*
 * Let the messages for this target wait until deliver_at, or, when it is NULL, for the option "delay" of the queue.  What
 * is due already does not wait.	22023 for infinity.
 */
extern void qlog_delay_target(const QlogQueue *queue, QlogName queue_name,
							  const NullableDatum *deliver_at, QlogTarget *target);

/* Take a dedup id out of a text datum, detoasted into the current context when it must be.  22023 when empty or too long. */
extern void qlog_payload_dedup(QlogPayload *payload, Datum dedup_id);

#endif							/* QLOG_MESSAGE_H */
