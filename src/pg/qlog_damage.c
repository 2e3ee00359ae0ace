/*
 * qlog_damage.c
 *		Damaged places and missing messages (contract in qlog_damage.h), and the view qlog_damage.
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

#define QUEUES_MAX	64			/* queues that are named for one place */

/* Note it, unless the same is noted: then what is known of it now.	true = it was not. */
static bool
note(const QlogDamageNote *new)
{
	QlogShared *shared = qlog_shared;
	QlogDamageNote *at = NULL;
	bool		added;

	LWLockAcquire(&shared->damage_lock, LW_EXCLUSIVE);
	for (uint32 i = 0; i < shared->ndamage && at == NULL; i++)
	{
		QlogDamageNote *old = &shared->damage[i];

		if (old->log == new->log && old->file == new->file && old->position == new->position &&
			old->partition == new->partition)
			at = old;
	}
	added = at == NULL;
	if (added && shared->ndamage < QLOG_DAMAGE_MAX)
	{
		at = &shared->damage[shared->ndamage++];
		at->found_at = GetCurrentTimestamp();
	}
	if (at != NULL)
	{
		TimestampTz found_at = at->found_at;

		*at = *new;
		at->found_at = found_at;
	}
	LWLockRelease(&shared->damage_lock);
	return added;
}

bool
qlog_damage_note(const QcFinding *finding, bool needed)
{
	QlogDamageNote new = {.log = finding->log, .file = finding->file, .position = finding->position,
		.bytes = finding->bytes, .needed = needed};

	strlcpy(new.text, finding->text, sizeof(new.text));
	return note(&new);
}

bool
qlog_damage_note_missing(uint64 log, uint64 partition, uint64 first, uint64 end)
{
	QlogDamageNote new = {.log = log, .position = first, .partition = partition, .needed = true};

	snprintf(new.text, sizeof(new.text), UINT64_FORMAT " messages from position " UINT64_FORMAT " on are in no file",
			 end - first, first);
	return note(&new);
}

void
qlog_damage_met(uint64 log, const QcError *err)
{
	QcFinding	finding = {.log = log, .position = err->position};
	const char *name = strrchr(err->file, '/');

	/* Which messages are in no file the scrub worker tells, in runs. */
	if (name == NULL || err->position == UINT64_MAX || !qc_name_parse_file(name + 1, "qlog", &finding.file))
		return;
	strlcpy(finding.text, err->text, sizeof(finding.text));
	(void) qlog_damage_note(&finding, true);
}

void
qlog_damage_forget(uint64 log, uint64 file)
{
	QlogShared *shared = qlog_shared;
	uint32		kept = 0;

	LWLockAcquire(&shared->damage_lock, LW_EXCLUSIVE);
	for (uint32 i = 0; i < shared->ndamage; i++)
	{
		const QlogDamageNote *old = &shared->damage[i];

		if (old->log != log || (file != QLOG_DAMAGE_ALL && old->file != file))
			shared->damage[kept++] = *old;
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

/* Name of a queue, copied. */
typedef struct Named
{
	uint64		queue;
	char text[	QLOG_NAME_MAX];
	uint16		len;
} Named;

static void
take_name(Named *name, const QcQueue *queue)
{
	name->queue = queue->id;
	name->len = queue->name == 0 ? 0 : queue->name_len;
	if (name->len > 0)
		memcpy(name->text, qc_name_at(qlog_state, queue->name), name->len);
}

/* The queues whose needed messages these are, each once; returns their number. */
static uint32
queues_of(const QlogLost *lost, uint32 nlost, Named *names)
{
	uint32		n = 0;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	for (uint32 i = 0; i < nlost && n < QUEUES_MAX; i++)
	{
		const QcPartition *partition = needs(&lost[i]) ? qc_partition_by_id(qlog_state, lost[i].partition) : NULL;
		const QcQueue *queue = partition == NULL ? NULL : QC_AT(qlog_state, QcQueue, partition->queue);
		bool		named = queue == NULL;

		for (uint32 k = 0; k < n && !named; k++)
			named = names[k].queue == queue->id;
		if (!named)
			take_name(&names[n++], queue);
	}
	LWLockRelease(&qlog_shared->state_lock);
	return n;
}

static void
warn(const QcFinding *finding, const char *what)
{
	char		path[QC_PATH_MAX];

	qc_path_file(path, qlog_files()->layout, finding->log, finding->file, "qlog");
	ereport(WARNING,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("qlog: %s", what),
			 errdetail("File \"%s\" is damaged at byte " UINT64_FORMAT ": %s.", path, finding->position, finding->text),
			 errhint("qlog_verify() shows what is lost. Bring back a good copy of the file before consumers come to it, or give it up with qlog_repair().")));
}

void
qlog_damage_tell(const QcFinding *finding, const QlogLost *lost, uint32 nlost)
{
	Named	   *names = palloc(QUEUES_MAX * sizeof(Named));
	uint32		n = lost == NULL ? 0 : queues_of(lost, nlost, names);

	if (lost == NULL)
		warn(finding, "a log file is damaged");
	for (uint32 i = 0; i < n; i++)
		warn(finding, psprintf("messages of queue \"%.*s\" cannot be read", (int) names[i].len, names[i].text));
	pfree(names);
}

/* ---- the view ---- */

/* The queue that alone uses a log, and whether it is out of service. */
static bool
queue_of_log(uint64 log, Named *name, bool *out)
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
		take_name(name, queue);
	}
	LWLockRelease(&qlog_shared->state_lock);
	return n == 1;
}

/* The queue of a partition, and whether it is out of service; false = it has gone. */
static bool
queue_of_partition(uint64 id, Named *name, bool *out)
{
	const QcPartition *partition;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	partition = qc_partition_by_id(qlog_state, id);
	if (partition != NULL)
	{
		const QcQueue *queue = QC_AT(qlog_state, QcQueue, partition->queue);

		*out = queue->damaged != 0;
		take_name(name, queue);
	}
	LWLockRelease(&qlog_shared->state_lock);
	return partition != NULL && name->len > 0;
}

static void
put_note(ReturnSetInfo *result, const QlogDamageNote *note)
{
	Datum		values[8];
	bool		nulls[8] = {false};
	char		path[QC_PATH_MAX];
	Named		name = {0};
	bool		out = false;

	nulls[0] = !(note->partition != 0 ? queue_of_partition(note->partition, &name, &out) :
				 queue_of_log(note->log, &name, &out));
	values[0] = nulls[0] ? (Datum) 0 : qlog_text_datum(name.text, name.len);
	qc_path_file(path, qlog_files()->layout, note->log, note->file, "qlog");
	values[1] = CStringGetTextDatum(path);
	values[2] = Int64GetDatum((int64) note->position);
	values[3] = Int64GetDatum((int64) note->bytes);
	nulls[1] = nulls[2] = note->file == 0;
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
