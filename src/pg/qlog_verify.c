/*
 * qlog_verify.c
 *		Verifying logs inside the server (contract in qlog_verify.h).
 *
 * Files are read without a lock.  What the log holds up to its tail at that moment is judged; later records are left alone.
 * Messages that no record was seen for are looked up once more, as a reader would: they may have come later, or their
 * file may have been replaced while it was read.
 */
#include "qlog_verify.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "qlog_commit.h"
#include "qlog_damage.h"
#include "qlog_fetch.h"
#include "qlog_logfiles.h"
#include "qlog_report.h"
#include "qlog_snapshot.h"

#include "../core/qc_lane.h"
#include "../core/qc_log.h"
#include "../core/qc_purge.h"
#include "../core/qc_range.h"

#define GAPS_MAX		256		/* found in one hold of the lock */
#define PARTITIONS_MAX	64		/* looked at in one hold */
#define ITEMS_MAX		512		/* of a lane, in one hold */
#define LOOKS_MAX		1000	/* second looks one by one */

void
qlog_verify_begin(QlogVerify *verify, bool deep, const char *what)
{
	memset(verify, 0, sizeof(*verify));
	verify->deep = deep;
	verify->context = CurrentMemoryContext;
	verify->progress = qlog_verifying_begin(what);
}

void
qlog_verify_end(QlogVerify *verify)
{
	qlog_verifying_end(verify->progress);
	verify->progress = NULL;
}

/* ---- what the core calls; nothing in here may raise ---- */

/* Room for one more item in a palloc'ed array. */
static bool
grow(QlogVerify *v, void **array, uint32 n, uint32 *max, Size item)
{
	void	   *more;

	if (n < *max)
		return true;
	more = MemoryContextAllocExtended(v->context, (Size) (*max * 2 + 64) * item,
									  MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (more == NULL)
	{
		v->failed = true;
		return false;
	}
	if (*array != NULL)
	{
		memcpy(more, *array, n * item);
		pfree(*array);
	}
	*array = more;
	*max = *max * 2 + 64;
	return true;
}

static bool
note_finding(void *context, const QcFinding *finding)
{
	QlogVerify *v = context;

	if (!grow(v, (void **) &v->findings, v->nfindings, &v->max_findings, sizeof(QcFinding)))
		return false;
	v->findings[v->nfindings++] = *finding;
	if (v->progress != NULL)
		v->progress->findings++;
	return true;
}

bool
qlog_verify_record(void *context, uint64_t partition, uint64_t first, uint32_t count)
{
	QlogVerify *v = context;
	QcCoverRange *more;
	size_t		cap = v->cover.cap * 2 + 4096;

	if (count == 0 || qc_cover_add(&v->cover, partition, first, first + count))
		return true;
	more = MemoryContextAllocExtended(v->context, cap * sizeof(QcCoverRange),
									  MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (more == NULL)
	{
		v->failed = true;
		return false;
	}
	if (v->cover.ranges != NULL)
	{
		memcpy(more, v->cover.ranges, v->cover.n * sizeof(QcCoverRange));
		pfree(v->cover.ranges);
	}
	v->cover.ranges = more;
	v->cover.cap = cap;
	return qc_cover_add(&v->cover, partition, first, first + count);
}

static bool
belongs(void *context, uint64_t partition)
{
	return qlog_damage_belongs(((const QlogVerify *) context)->log, partition);
}

static bool
note_progress(void *context, uint64_t bytes)
{
	QlogVerify *v = context;

	if (v->progress != NULL)
		v->progress->bytes_done += bytes;
	return !INTERRUPTS_PENDING_CONDITION();
}

/* ---- files of a log ---- */

/* Ids of the files of a log up to the active one, palloc'ed. */
static uint64 *
list_files(uint64 log, uint64 active, uint32 *n)
{
	uint64	   *ids = qlog_log_files(log, n);

	while (*n > 0 && ids[*n - 1] > active)
		(*n)--;
	return ids;
}

/* Where the log ends now, in bytes that are in its files; false = there is no such log. */
static bool
find_tail(QlogVerify *v, uint64 log_id)
{
	const QcLog *log;
	uint64		seq;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	log = qc_log_by_id(qlog_state, log_id);
	v->log = log_id;
	v->file = log == NULL ? 0 : log->file;
	v->tail = log == NULL ? 0 : log->tail;
	seq = qlog_state->seq;
	LWLockRelease(&qlog_shared->state_lock);
	if (v->file != 0)
		qlog_write(seq);
	return v->file != 0;
}

void
qlog_verify_count(QlogVerify *v, uint64 log)
{
	uint64	   *ids;
	uint32		n;

	if (v->progress == NULL || !find_tail(v, log))
		return;
	v->progress->findings = v->nfindings;
	ids = list_files(log, v->file, &n);
	for (uint32 i = 0; i < n; i++)
	{
		uint64_t	size;
		QcError		err;

		if (qc_files_size(qlog_files(), log, ids[i], false, &size, &err) == QC_OK)
			v->progress->bytes_total += size;
		v->progress->files_total++;
	}
}

/* Is the file still the one that the log appends to? */
static bool
is_active(uint64 log_id, uint64 file)
{
	const QcLog *log;
	bool		active;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	log = qc_log_by_id(qlog_state, log_id);
	active = log != NULL && log->file == file;
	LWLockRelease(&qlog_shared->state_lock);
	return active;
}

static void
verify_file(QlogVerify *v, uint64 file)
{
	QcVerify	verify = {.files = qlog_files(), .log = v->log, .file = file,
		.end = file == v->file ? v->tail : 0, .deep = v->deep, .context = v,
		.finding = note_finding, .record = qlog_verify_record, .belongs = belongs,
		.progress = note_progress};
	uint32		before = v->nfindings;
	QcError		err;
	QcStatus	status;

	if (v->progress != NULL)
	{
		v->progress->log = v->log;
		v->progress->file = file;
	}
	qc_error_clear(&err);
	status = qc_verify_file(&verify, &err);

	/* The file may have been cut or replaced while it was read: only what is there twice counts. */
	if (status == QC_SHORT || (status == QC_OK && v->nfindings > before))
	{
		v->nfindings = before;
		if (!is_active(v->log, file))
			verify.end = 0;
		status = qc_verify_file(&verify, &err);
	}
	while (v->nfindings > before && v->findings[v->nfindings - 1].by_index &&
		   !qlog_verify_ends_early(&v->findings[v->nfindings - 1]))
		v->nfindings--;
	CHECK_FOR_INTERRUPTS();
	if (v->failed)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));

	/*
	 * A file that has gone since the directory was read holds nothing that is needed, or its
	 * messages are missing.
	 */
	if (status != QC_OK && status != QC_MISSING)
		qlog_report(ERROR, &err, "could not verify a log file");
	if (v->progress != NULL)
		v->progress->files_done++;
}

/* The seq that a file begins with, as its header says; 0 = it does not tell. */
static uint64
first_seq(uint64 log, uint64 file)
{
	uint8		bytes[QC_FILE_HEADER_SIZE];
	QcFileHeader header;

	if (qc_files_read(qlog_files(), log, file, 0, bytes, sizeof(bytes), NULL) != QC_OK ||
		qc_file_header_decode(bytes, sizeof(bytes), &header, NULL) != QC_OK ||
		header.first_seq == QC_FIRST_SEQ_AHEAD)
		return 0;
	return header.first_seq;
}

/*
 * Files of the system log are numbered without gaps, and one goes only when a start needs none of its entries: not when the file
 * behind it begins above the floor.
 */
bool
qlog_verify_gap(uint64 log, const uint64 *files, uint32 n, uint32 *at, QcFinding *finding)
{
	uint64		floor = log == 0 && *at < n ? qlog_start_floor() : 0;

	for (; log == 0 && *at + 1 < n; (*at)++)
	{
		uint64		next = files[*at + 1];
		uint64		seq = next == files[*at] + 1 ? 0 : first_seq(log, next);

		if (seq <= floor + 1)
			continue;
		memset(finding, 0, sizeof(*finding));
		finding->file = next - 1;
		finding->next_seq = seq;
		strlcpy(finding->text, "file is missing", sizeof(finding->text));
		(*at)++;
		return true;
	}
	return false;
}

static void
note_gaps(QlogVerify *v, const uint64 *files, uint32 n)
{
	QcFinding	finding;
	uint32		at = 0;

	while (qlog_verify_gap(v->log, files, n, &at, &finding))
		if (!note_finding(v, &finding))
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory")));
}

void
qlog_verify_log(QlogVerify *v, uint64 log)
{
	uint64	   *ids;
	uint32		n;

	v->nfindings = v->nmissing = 0;
	v->cover.n = 0;
	if (!find_tail(v, log))
		return;
	ids = list_files(log, v->file, &n);
	for (uint32 i = 0; i < n; i++)
		verify_file(v, ids[i]);
	note_gaps(v, ids, n);
	qc_cover_sort(&v->cover);
}

/* ---- messages of a queue ---- */

/* A walk over a queue's partitions. */
typedef struct Walk
{
	QlogVerify *v;
	uint64		queue;
	uint64		partition;		/* the last one begun, 0 = none */
	bool		inside;			/* it is not finished: */
	uint64		position;		/* where to go on in it */
	uint32		budget;			/* positions or items left in this hold */
	uint32		n;
	QlogMissing gaps[GAPS_MAX];
} Walk;

static void
note_gap(Walk *w, const QcPartition *partition, uint64 first, uint64 end)
{
	w->gaps[w->n++] = (QlogMissing) {partition->id, first, end};
}

/* true = all of the partition has been looked at. */
static bool
walk_messages(Walk *w, QcPartition *partition)
{
	uint64		p = Max(w->position, qc_partition_start(qlog_state, partition));

	while (p < partition->stable && w->n < GAPS_MAX && w->budget > 0)
	{
		uint64		end;
		uint64_t	to;
		uint64		gap;

		w->budget--;
		p = qc_skip_aborted(qlog_state, partition, p);
		end = Min(qc_range_next(qlog_state, partition, p), partition->stable);
		if (p >= end)
			break;
		gap = qc_cover_gap(&w->v->cover, partition->id, p, end, &to);
		if (gap < end)
			note_gap(w, partition, gap, to);
		p = gap < end ? to : end;
	}
	w->position = p;
	return p >= partition->stable || (w->n < GAPS_MAX && w->budget > 0);
}

static bool
walk_lane(Walk *w, QcPartition *lane)
{
	QcLaneItem *item = qc_lane_seek(qlog_state, lane, w->position, 0);

	while (item != NULL && w->n < GAPS_MAX && w->budget > 0)
	{
		uint64_t	to;

		w->budget--;
		w->position = item->position + 1;
		if (item->state == QC_LANE_ITEM_LIVE &&
			qc_cover_gap(&w->v->cover, lane->id, item->position, item->position + 1, &to) == item->position)
			note_gap(w, lane, item->position, item->position + 1);
		item = QC_AT(qlog_state, QcLaneItem, item->of_lane.next);
	}
	return item == NULL;
}

/* The partition to go on with: the last one, the one behind it, or the first above its id when it has gone. */
static QcPartition *
next_partition(const Walk *w, const QcQueue *queue)
{
	QcPartition *partition = w->partition == 0 ? NULL : qc_partition_by_id(qlog_state, w->partition);

	if (partition != NULL)
		return w->inside ? partition : QC_AT(qlog_state, QcPartition, partition->of_queue.next);
	partition = QC_AT(qlog_state, QcPartition, queue->partitions.head);
	while (partition != NULL && partition->id <= w->partition)
		partition = QC_AT(qlog_state, QcPartition, partition->of_queue.next);
	return partition;
}

/* One hold of the lock; false = that was the last one. */
static bool
step(Walk *w)
{
	QcQueue    *queue;
	QcPartition *partition = NULL;

	w->n = 0;
	w->budget = ITEMS_MAX;
	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	queue = qc_queue_by_id(qlog_state, w->queue);
	for (int i = 0; queue != NULL && i < PARTITIONS_MAX; i++)
	{
		partition = next_partition(w, queue);
		if (partition == NULL)
			break;
		if (partition->id != w->partition)
			w->position = 0;
		w->partition = partition->id;
		w->inside = !(partition->lane == QC_LANE_NONE ? walk_messages(w, partition) : walk_lane(w, partition));
		if (w->inside)
			break;
	}
	LWLockRelease(&qlog_shared->state_lock);
	return partition != NULL;
}

/* What a second look says of a message. */
typedef enum Look
{
	LOOK_MISSING,
	LOOK_THERE,
	LOOK_GONE,					/* it need not be there any more */
	LOOK_NEW					/* it stands behind what was verified */
} Look;

/* v NULL: it is not asked what is new. */
static Look
look(QlogVerify *v, uint64 id, uint64 p)
{
	QcPartition *partition;
	QlogSpot	spot;
	QcMessage	message;
	QcRef		hint = 0;
	int64		created_at;
	bool		needed;
	QcError		err;
	QcStatus	status;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	partition = qc_partition_by_id(qlog_state, id);
	needed = partition != NULL &&
		(partition->lane != QC_LANE_NONE ? qc_lane_find(qlog_state, partition, p) != NULL :
		 p >= qc_partition_start(qlog_state, partition) && qc_skip_aborted(qlog_state, partition, p) == p);
	if (needed)
		qlog_spot_note(partition, p, 0, &hint, &spot);
	LWLockRelease(&qlog_shared->state_lock);
	CHECK_FOR_INTERRUPTS();
	if (!needed)
		return LOOK_GONE;
	if (v != NULL && (spot.location.file > v->file ||
					  (spot.location.file == v->file && spot.location.position >= v->tail)))
		return LOOK_NEW;
	status = qlog_fetch_try(&spot, &message, &created_at, &err);
	if (status == QC_DAMAGED || status == QC_MISSING)
		return LOOK_MISSING;
	if (v != NULL && !v->forgiving && status != QC_OK)
		qlog_report(ERROR, &err, "could not read a message");
	return LOOK_THERE;
}

static void
note_missing(QlogVerify *v, uint64 partition, uint64 first, uint64 end)
{
	if (!grow(v, (void **) &v->missing, v->nmissing, &v->max_missing, sizeof(QlogMissing)))
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	v->missing[v->nmissing++] = (QlogMissing) {partition, first, end};
}

/* A message that is missing is looked at once more: its file may have been replaced meanwhile. */
static Look
look_twice(QlogVerify *v, uint64 partition, uint64 p)
{
	Look		seen = look(v, partition, p);

	return seen == LOOK_MISSING ? look(v, partition, p) : seen;
}

/*
 * The end of what is missing from p on.  As no record was seen that holds any of the gap, all of it is when its last message is;
 * otherwise those behind stand in newer files.
 */
static uint64
missing_end(QlogVerify *v, const QlogMissing *gap, uint64 p)
{
	uint64		high = gap->end - 1;

	if (look(v, gap->partition, high) == LOOK_MISSING)
		return gap->end;
	while (high - p > 1)
	{
		uint64		middle = p + (high - p) / 2;

		if (look(v, gap->partition, middle) == LOOK_MISSING)
			p = middle;
		else
			high = middle;
	}
	return high;
}

/* Which messages of a gap are missing? */
static void
judge_gap(QlogVerify *v, const QlogMissing *gap)
{
	uint64		p = gap->first;
	int			looks = 0;

	while (p < gap->end && looks++ < LOOKS_MAX)
	{
		Look		seen = look_twice(v, gap->partition, p);
		uint64		end = seen == LOOK_MISSING ? missing_end(v, gap, p) : p + 1;

		if (seen == LOOK_NEW)
			return;
		if (seen == LOOK_MISSING)
			note_missing(v, gap->partition, p, end);
		p = end;
	}
}

void
qlog_verify_queue(QlogVerify *v, uint64 queue)
{
	Walk	   *w = palloc0(sizeof(Walk));
	bool		more = true;

	v->nmissing = 0;
	w->v = v;
	w->queue = queue;
	while (more)
	{
		more = step(w);
		for (uint32 i = 0; i < w->n; i++)
			judge_gap(v, &w->gaps[i]);
		CHECK_FOR_INTERRUPTS();
	}
	pfree(w);
}

uint16
qlog_verify_partition(uint64 id, char *name)
{
	static const char *const lanes[] = {"", "(dead letters)", "(delayed messages)"};
	const QcPartition *partition;
	uint16		len = 0;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	partition = qc_partition_by_id(qlog_state, id);
	if (partition != NULL && partition->lane != QC_LANE_NONE)
	{
		len = (uint16) strlen(lanes[partition->lane]);
		memcpy(name, lanes[partition->lane], len);
	}
	else if (partition != NULL && partition->name != 0)
	{
		len = partition->name_len;
		memcpy(name, qc_name_at(qlog_state, partition->name), len);
	}
	LWLockRelease(&qlog_shared->state_lock);
	return len;
}

/* Message records that an index names; filled by the core, so nothing in here may raise. */
typedef struct Named
{
	QlogLost   *lost;
	uint32		n;
	uint32		max;
} Named;

static void
note_named(void *context, uint64_t partition, uint64_t first, uint32_t count)
{
	Named	   *named = context;

	if (named->n == named->max)
	{
		uint32		max = named->max * 2 + 64;
		QlogLost   *more = palloc_extended(max * sizeof(QlogLost), MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);

		if (more == NULL)
			return;
		if (named->lost != NULL)
		{
			memcpy(more, named->lost, named->n * sizeof(QlogLost));
			pfree(named->lost);
		}
		named->lost = more;
		named->max = max;
	}
	named->lost[named->n++] = (QlogLost) {partition, first, count};
}

bool
qlog_verify_ends_early(const QcFinding *finding)
{
	Named		named = {0};
	bool		missing = false;
	QcError		err;

	if (finding->log == 0)
		return true;
	qc_error_clear(&err);
	if (qc_verify_lost(qlog_files(), finding->log, finding->file, finding->position, finding->bytes,
					   note_named, &named, &err) != QC_OK)
		return false;
	for (uint32 i = 0; i < named.n && !missing; i++)
		missing = look(NULL, named.lost[i].partition, named.lost[i].first) == LOOK_MISSING &&
			look(NULL, named.lost[i].partition, named.lost[i].first) == LOOK_MISSING;
	if (named.lost != NULL)
		pfree(named.lost);
	return missing;
}
