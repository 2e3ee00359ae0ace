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
	const char *headers;		/* JSON text, checked by the caller; NULL = none */
	uint32		headers_len;
} QlogPayload;

/* Stage it with a new id, which is returned.  54000 when it is larger than qlog.max_message_size. */
extern void qlog_push(const QlogTarget *target, const QlogPayload *payload,
					  uint8 id[QLOG_UUID_SIZE]);

#endif							/* QLOG_MESSAGE_H */
