/*
 * qlog_death.c
 *		Noting, reading and encoding messages that die.
 */
#include "qlog_death.h"

#include "utils/memutils.h"

#include "qlog_guc.h"
#include "qlog_shmem.h"

#include "../core/qc_record.h"

#define BYTES_MAX	(1024 * 1024)	/* of frames in one entry, unless one alone is larger */

static const char *const reasons[] = {
	[0] = "came back more often than retry_limit allows",
	[QC_DEAD_REJECTED] = "rejected",
	[QC_DEAD_NACKED] = "given back more often than retry_limit allows",
	[QC_DEAD_ABORTED] = "rolled back more often than retry_limit allows",
	[QC_DEAD_EXPIRED] = "lease expired more often than retry_limit allows",
	[QC_DEAD_LOST] = "lost in crashes more often than retry_limit allows",
	[QC_DEAD_UNREADABLE] = "could not be read"
};

QcStr
qlog_dead_reason(uint8 cause)
{
	const char *text = reasons[cause < lengthof(reasons) ? cause : 0];

	return (QcStr)
	{
		(const uint8_t *) text ,
					(uint16_t) strlen(text)
	};
}

void
qlog_deaths_begin(QlogDeaths *deaths, const QcQueue *queue, const QcGroup *group)
{
	int64		level = queue->options.value[QC_OPT_COMPRESSION_LEVEL];

	deaths->queue = queue->id;
	deaths->group = group->id;
	deaths->log = queue->log_id;
	deaths->database = queue->database;
	deaths->name_len = queue->name_len;
	memcpy(deaths->name, qc_name_at(qlog_state, queue->name), queue->name_len);
	deaths->level = level >= 0 ? (int) level : qlog_compression_level;
	deaths->keep = queue->options.value[QC_OPT_DEAD_LETTERS] != 0;
	deaths->lane = group->dead_partition;
	deaths->reason = (QcStr) {NULL, 0};
	deaths->n = 0;
}

void
qlog_deaths_add(QlogDeaths *deaths, QcPartition *partition, uint64 position, uint32 attempt,
				uint8 cause, QcRef *hint)
{
	QlogDying  *dying = &deaths->dying[deaths->n++];

	Assert(deaths->n <= QLOG_DEATHS_MAX);
	qlog_spot_note(partition, position, attempt, hint, &dying->spot);
	dying->cause = cause;
	dying->partition_len = partition->name_len;
	memcpy(dying->partition, qc_name_at(qlog_state, partition->name), partition->name_len);
}

bool
qlog_deaths_hold(const QlogDeaths *deaths)
{
	const QcQueue *queue = qc_queue_by_id(qlog_state, deaths->queue);
	const QcGroup *group = queue == NULL || queue->state != QC_QUEUE_LIVE || queue->damaged ? NULL :
		qc_group_by_id(qlog_state, queue, deaths->group);

	return group != NULL && group->state == QC_GROUP_LIVE && (queue->options.value[QC_OPT_DEAD_LETTERS] != 0) == deaths->keep &&
		(!deaths->keep || group->dead_partition == deaths->lane);
}

void
qlog_dead_frame(QcMessage *message, QlogName partition, QcStr reason)
{
	QcMessage	letter = *message;
	uint64		size;

	letter.flags |= QC_FRAME_DEAD;
	letter.partition = (const uint8_t *) partition.text;
	letter.partition_len = partition.len;
	letter.reason = reason.bytes;
	letter.reason_len = reason.len;
	size = qc_frame_size(&letter);
	if (size != 0 && qc_record_size(QC_KIND_MESSAGES, 1, size) <= qlog_segment_bytes() / 2)
		*message = letter;
}

void
qlog_dead_lost(QcMessage *message, QlogName partition, const QcError *reading)
{
	char	   *text = palloc(sizeof(reading->file) + sizeof(reading->text) + 64);

	qc_error_format(reading, text, sizeof(reading->file) + sizeof(reading->text) + 64);
	memset(message, 0, sizeof(*message));
	message->flags = QC_FRAME_DEAD;
	message->partition = (const uint8_t *) partition.text;
	message->partition_len = partition.len;
	message->reason = (const uint8_t *) text;

	message->reason_len = (uint16_t) strlen(text);
}

/* Read one message and make its letter. */
static QcStatus
read_letter(const QlogDeaths *deaths, QlogDying *dying, QcMessage *message, QcError *err)
{
	QlogName	partition = {dying->partition, dying->partition_len};
	int64		created_at;
	QcStatus	status = qlog_fetch_try(&dying->spot, message, &created_at, err);

	if (status == QC_OK)
		status = qlog_fetch_movable(message, err);
	if (status == QC_OK)
		qlog_dead_frame(message, partition, deaths->reason.bytes != NULL ? deaths->reason :
						qlog_dead_reason(dying->cause));
	if (!qlog_fetch_lost(status))
		return status;
	qlog_dead_lost(message, partition, err);
	dying->cause = QC_DEAD_UNREADABLE;
	return QC_OK;
}

static QcDead
dead_effect(const QlogDeaths *deaths, const QlogDying *dying)
{
	return (QcDead)
	{
		.group = deaths->group, .partition = dying->spot.partition,
			.position = dying->spot.position, .attempt = dying->spot.attempt,
			.lane = deaths->keep ? deaths->lane : 0, .cause = dying->cause,
			.reason = deaths->reason
	};
}

/* The message is dropped: an effect alone. */
static void
put_drop(const QlogDeaths *deaths, const QlogDying *dying, QcOp *op)
{
	QcDead		dead = dead_effect(deaths, dying);
	size_t		size = qc_effect_size(QC_EFFECT_DEAD, &dead, 0);
	uint8	   *bytes = palloc(size);
	QcWriter	w;

	qc_writer_init(&w, bytes, size);
	qc_effect_put(&w, QC_EFFECT_DEAD, &dead, 0);
	*op = (QcOp)
	{
		.kind = QC_OP_EFFECT, .effect = bytes, .effect_len = size
	};
}

/* The letter, into the lane.  Returns its bytes. */
static uint64
put_letter(const QlogDeaths *deaths, const QlogDying *dying, const QcMessage *message, QcOp *op)
{
	uint64		size = qc_frame_size(message);
	uint8	   *bytes = MemoryContextAllocHuge(CurrentMemoryContext, size + QC_HASH_SIZE);
	QcWriter	w;

	qc_writer_init(&w, bytes, size);
	qc_frame_put(&w, message);
	qc_frame_hash(message, bytes + size);
	*op = (QcOp)
	{
		.kind = QC_OP_DEAD, .partition = deaths->lane, .log = deaths->log, .count = 1,
		.frames = bytes, .frames_len = size, .hashes = bytes + size, .level = deaths->level,
		.dead = dead_effect(deaths, dying)
	};
	return size;
}

QcStatus
qlog_deaths_ops(QlogDeaths *deaths, QcOp *ops, QcError *err)
{
	uint64		bytes = 0;

	for (uint32 i = 0; i < deaths->n; i++)
	{
		QcMessage	message;
		QcStatus	status = QC_OK;

		if (!deaths->keep)
		{
			put_drop(deaths, &deaths->dying[i], &ops[i]);
			continue;
		}
		if (bytes < BYTES_MAX)
			status = read_letter(deaths, &deaths->dying[i], &message, err);
		if (status != QC_OK && i == 0)
		{
			/* One that does not fit holds up no other. */
			if (status == QC_LIMIT)
				deaths->n = 1;
			return status;
		}
		if (status != QC_OK || bytes >= BYTES_MAX)
		{
			deaths->n = i;
			break;
		}
		bytes += put_letter(deaths, &deaths->dying[i], &message, &ops[i]);
	}
	return QC_OK;
}
