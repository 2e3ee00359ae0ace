/*
 * qlog_damage.c
 *		Damaged places and queues out of service (contract in qlog_damage.h), and the view qlog_damage.
 */
#include "qlog_damage.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "qlog_args.h"
#include "qlog_row.h"

#include "../core/qc_lane.h"
#include "../core/qc_log.h"
#include "../core/qc_purge.h"
#include "../core/qc_range.h"
#include "../core/qc_repair.h"

PG_FUNCTION_INFO_V1(qlog_damage);

#define STOPPED_MAX	64			/* queues that one place puts out of service by name; more go
								 * silently */

void
qlog_damage_note(const QcFinding *finding, bool needed)
{
	QlogDamageNote *note = NULL;
	QlogShared *shared = qlog_shared;

	LWLockAcquire(&shared->damage_lock, LW_EXCLUSIVE);
	for (uint32 i = 0; i < shared->ndamage && note == NULL; i++)
	{
		QlogDamageNote *old = &shared->damage[i];

		if (old->log == finding->log && old->file == finding->file && old->position == finding->position)
			note = old;
	}
	if (note == NULL && shared->ndamage < QLOG_DAMAGE_MAX)
	{
		note = &shared->damage[shared->ndamage++];
		note->found_at = GetCurrentTimestamp();
	}
	if (note != NULL)
	{
		note->log = finding->log;
		note->file = finding->file;
		note->position = finding->position;
		note->bytes = finding->bytes;
		note->needed = needed;
		strlcpy(note->text, finding->text, sizeof(note->text));
	}
	LWLockRelease(&shared->damage_lock);
}

void
qlog_damage_forget(uint64 log, uint64 file)
{
	QlogShared *shared = qlog_shared;
	uint32		kept = 0;

	LWLockAcquire(&shared->damage_lock, LW_EXCLUSIVE);
	for (uint32 i = 0; i < shared->ndamage; i++)
	{
		const QlogDamageNote *note = &shared->damage[i];

		if (note->log != log || (file != 0 && note->file != file))
			shared->damage[kept++] = *note;
	}
	shared->ndamage = kept;
	LWLockRelease(&shared->damage_lock);
}

bool
qlog_damage_belongs(uint64 log, uint64 id)
{
	const QcPartition *partition;
	bool		belongs;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	partition = qc_partition_by_id(qlog_state, id);
	belongs = partition == NULL || QC_AT(qlog_state, QcQueue, partition->queue)->log_id == log;
	LWLockRelease(&qlog_shared->state_lock);
	return belongs;
}

/* As qlog_damage_needs, under the lock. */
static bool
needs(const QlogLost *lost)
{
	QcPartition *partition = qc_partition_by_id(qlog_state, lost->partition);
	uint64		end = lost->first + lost->count;
	uint64		p = lost->first;

	if (partition == NULL || QC_AT(qlog_state, QcQueue, partition->queue)->state == QC_QUEUE_DEAD)
		return false;
	if (partition->lane != QC_LANE_NONE)
	{
		while (p < end && qc_lane_find(qlog_state, partition, p) == NULL)
			p++;
		return p < end;
	}
	p = Max(p, qc_partition_start(qlog_state, partition));
	return p < end && qc_skip_aborted(qlog_state, partition, p) < end;
}

bool
qlog_damage_needs(const QlogLost *lost)
{
	bool		needed;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	needed = needs(lost);
	LWLockRelease(&qlog_shared->state_lock);
	return needed;
}

/* A queue that was put out of service. */
typedef struct Stopped
{
	char		name[QLOG_NAME_MAX];
	uint16		len;
} Stopped;

static void
stop(QcQueue *queue, const QcFinding *finding, Stopped *stopped, uint32 *n)
{
	if (!qc_queue_damage(qlog_state, queue, finding->file, finding->position))
		return;
	if (*n < STOPPED_MAX && queue->name != 0)
	{
		stopped[*n].len = queue->name_len;
		memcpy(stopped[*n].name, qc_name_at(qlog_state, queue->name), queue->name_len);
	}
	(*n)++;
}

uint32
qlog_damage_stop(const QcFinding *finding, const QlogLost *lost, uint32 nlost)
{
	Stopped    *stopped = palloc0(STOPPED_MAX * sizeof(Stopped));
	char		path[QC_PATH_MAX];
	uint32		n = 0;

	qlog_lock_state();
	for (uint32 i = 0; i < nlost; i++)
	{
		QcPartition *partition = needs(&lost[i]) ? qc_partition_by_id(qlog_state, lost[i].partition) : NULL;

		if (partition != NULL)
			stop(QC_AT(qlog_state, QcQueue, partition->queue), finding, stopped, &n);
	}
	for (QcQueue *queue = lost != NULL ? NULL : QC_AT(qlog_state, QcQueue, qlog_state->queues.head);
		 queue != NULL; queue = QC_AT(qlog_state, QcQueue, queue->all.next))
	{
		if (queue->log_id == finding->log)
			stop(queue, finding, stopped, &n);
	}
	qlog_unlock_state();
	qc_path_file(path, qlog_files()->layout, finding->log, finding->file, "qlog");
	for (uint32 i = 0; i < Min(n, STOPPED_MAX); i++)
		ereport(WARNING,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("qlog: queue \"%.*s\" is out of service", (int) stopped[i].len, stopped[i].name),
				 errdetail("File \"%s\" is damaged at byte " UINT64_FORMAT ": %s.", path, finding->position,
						   finding->text),
				 errhint("qlog_verify() shows what is lost; qlog_repair() gives it up and brings the queue back.")));
	pfree(stopped);
	return n;
}

/* ---- the view ---- */

/* The queue that alone uses a log, and whether it is out of service. */
static bool
queue_of_log(uint64 log, Stopped *name, bool *out)
{
	uint32		n = 0;

	*out = false;
	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	for (QcQueue *queue = QC_AT(qlog_state, QcQueue, qlog_state->queues.head); queue != NULL;
		 queue = QC_AT(qlog_state, QcQueue, queue->all.next))
	{
		if (queue->log_id != log || queue->state == QC_QUEUE_DEAD || queue->name == 0)
			continue;
		n++;
		*out |= queue->damaged != 0;
		name->len = queue->name_len;
		memcpy(name->name, qc_name_at(qlog_state, queue->name), queue->name_len);
	}
	LWLockRelease(&qlog_shared->state_lock);
	return n == 1;
}

static void
put_note(ReturnSetInfo *result, const QlogDamageNote *note)
{
	Datum		values[8];
	bool		nulls[8] = {false};
	char		path[QC_PATH_MAX];
	Stopped		name;
	bool		out;

	nulls[0] = !queue_of_log(note->log, &name, &out);
	values[0] = nulls[0] ? (Datum) 0 : qlog_text_datum(name.name, name.len);
	qc_path_file(path, qlog_files()->layout, note->log, note->file, "qlog");
	values[1] = CStringGetTextDatum(path);
	values[2] = Int64GetDatum((int64) note->position);
	values[3] = Int64GetDatum((int64) note->bytes);
	nulls[3] = note->bytes == 0;
	values[4] = CStringGetTextDatum(note->text);
	values[5] = BoolGetDatum(note->needed);
	values[6] = BoolGetDatum(out);
	values[7] = TimestampTzGetDatum(note->found_at);
	nulls[7] = note->found_at == 0;
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* Queues that recovery, or a server before this one, put out of service: copied out, in steps by id. */
static uint32
damaged_queues(uint64 *after, QlogDamageNote *notes, uint32 max)
{
	uint32		n = 0;
	QcQueue    *queue;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	for (queue = QC_AT(qlog_state, QcQueue, qlog_state->queues.head); queue != NULL && n < max;
		 queue = QC_AT(qlog_state, QcQueue, queue->all.next))
	{
		if (queue->id <= *after || !queue->damaged || queue->state == QC_QUEUE_DEAD)
			continue;
		*after = queue->id;
		notes[n++] = (QlogDamageNote)
		{
			.log = queue->log_id, .file = queue->damage_file,
			.position = queue->damage_position, .needed = true, .text = "queue is out of service"
		};
	}
	LWLockRelease(&qlog_shared->state_lock);
	return n;
}

static bool
is_noted(const QlogDamageNote *notes, uint32 n, const QlogDamageNote *note)
{
	for (uint32 i = 0; i < n; i++)
	{
		if (notes[i].log == note->log && notes[i].file == note->file && notes[i].position == note->position)
			return true;
	}
	return false;
}

Datum
qlog_damage(PG_FUNCTION_ARGS)
{
	QlogDamageNote *notes = palloc(QLOG_DAMAGE_MAX * sizeof(QlogDamageNote));
	QlogDamageNote more[64];
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	uint64		after = 0;
	uint32		n;
	uint32		nmore;

	qlog_enter_read("qlog_damage");
	InitMaterializedSRF(fcinfo, 0);
	LWLockAcquire(&qlog_shared->damage_lock, LW_SHARED);
	n = qlog_shared->ndamage;
	memcpy(notes, qlog_shared->damage, n * sizeof(QlogDamageNote));
	LWLockRelease(&qlog_shared->damage_lock);
	for (uint32 i = 0; i < n; i++)
		put_note(result, &notes[i]);
	while ((nmore = damaged_queues(&after, more, lengthof(more))) > 0)
	{
		for (uint32 i = 0; i < nmore; i++)
		{
			if (!is_noted(notes, n, &more[i]))
				put_note(result, &more[i]);
		}
	}
	return (Datum) 0;
}
