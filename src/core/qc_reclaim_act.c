/*
 * qc_reclaim_act.c
 *		What a pass of reclaim has found is done: copies, the wait for a checkpoint, deletion, replacement (qc_reclaim.h, steps 2 to 4).
 */
#include "qc_reclaim_int.h"

#include <assert.h>
#include <stdlib.h>

#include "qc_dir.h"
#include "qc_mutant.h"
#include "qc_rows.h"
#include "qc_scan.h"

#define EVICT_ENTRIES	500		/* of the memory index, under one hold of the state lock */
#define BATCH_FILES		16		/* removed while base backups are kept out */

static void
tell_step(QcReclaim *r, const char *step)
{
	if (r->hooks.step != NULL)
		r->hooks.step(r->hooks.context, step);
}

/* Something has to wait: the next pass does it. */
static void
postpone(QcReclaimPass *pass, uint64_t log)
{
	QcLogSeen  *seen = qc_reclaim_log(pass->r, log);

	if (seen != NULL)
		seen->complete = false;
	pass->report->more = true;
}

/* What has failed is of no account when the log's directory went with its queue meanwhile. */
static QcStatus
unless_dropped(QcReclaimPass *pass, uint64_t log, QcStatus status)
{
	return status != QC_OK && !qc_reclaim_log_lives(pass->r, log) ? QC_OK : status;
}

/* Have the memory index forget the file. */
static void
evict(QcReclaim *r, uint64_t log_id, uint64_t file)
{
	bool		done = false;

	while (!done)
	{
		QcLog	   *log;

		qc_reclaim_lock(r);
		log = qc_log_by_id(r->st, log_id);
		done = log == NULL || qc_index_evict_file(r->st, log, file, EVICT_ENTRIES);
		qc_reclaim_unlock(r);
	}
}

/* ---- what the floor allows ---- */

/* What all files were judged by: entries up to seq, in the checkpoint of this stamp. */
typedef struct Moment
{
	uint64_t	seq;
	uint64_t	stamp;
	uint64_t	floor;
} Moment;

static Moment
take_moment(QcReclaim *r)
{
	Moment		moment = {0, 0, 0};

	qc_reclaim_share(r);
	moment.seq = r->st->seq;
	moment.stamp = qc_rows_stamp(r->st);
	qc_reclaim_unlock(r);
	return moment;
}

/* Is the first record of the next file at or below the floor?	Then all of this one are. */
static bool
next_is_below(QcReclaim *r, const QcReclaimFile *file, uint64_t floor)
{
	uint64_t   *files;
	uint64_t	next = 0;
	uint32_t	n;
	QcScan		scan;
	bool		below = false;

	if (qc_dir_files(r->cache->files->io, r->cache->files->layout, file->log, &files, &n, NULL) != QC_OK)
		return false;
	for (uint32_t i = 0; i < n && next == 0; i++)
		if (files[i] > file->file)
			next = files[i];
	free(files);
	if (next == 0 ||
		qc_scan_begin(&scan, r->cache->files, file->log, next, QC_FILE_HEADER_SIZE, NULL) != QC_OK)
		return false;
	below = qc_scan_next(&scan, NULL) == QC_OK && scan.record.seq <= floor;
	qc_scan_end(&scan);
	return below;
}

/* Are all entries of a closed file at or below the floor, which may be that of an old snapshot? */
static bool
is_below(QcReclaimPass *pass, const QcReclaimFile *file, const Moment *moment)
{
	QcLogSeen  *seen = qc_reclaim_log(pass->r, file->log);
	QcFileSeen *known;

	if (moment->seq <= moment->floor ||
		(seen != NULL && qc_reclaim_file(seen, file->file, &known, NULL) == QC_OK &&
		 known->closed_by != 0 && known->closed_by <= moment->floor) ||
		next_is_below(pass->r, file, moment->floor))
		return true;
	pass->report->held++;
	return false;
}

/* ---- deleting ---- */

/* The second look: nothing has come to life again since, by whatever mistake. */
static bool
is_dead_still(QcReclaimPass *pass, const QcReclaimFile *file, QcError *err)
{
	QcLogSeen  *seen = qc_reclaim_log(pass->r, file->log);
	QcFileSeen *known;

	if (qc_reclaim_look(pass, file->log, file->file, err) != QC_OK)
		return false;
	if (pass->look.live_records == 0)
		return true;
	if (seen != NULL && qc_reclaim_file(seen, file->file, &known, NULL) == QC_OK)
	{
		known->dead = false;
		known->looked_at = 0;
	}
	return false;
}

/* Delete files of one log that have passed all tests. */
static QcStatus
delete_batch(QcReclaimPass *pass, const QcReclaimFile *files, uint32_t n, const Moment *moment,
			 QcError *err)
{
	QcReclaim  *r = pass->r;
	uint64_t	ids[BATCH_FILES];
	QcStatus	status;

	for (uint32_t i = 0; i < n; i++)
		ids[i] = files[i].file;
	evict(r, files[0].log, ids[n - 1]);
	if (!r->hooks.keep_out(r->hooks.context))
	{
		postpone(pass, files[0].log);
		return QC_OK;
	}
	status = r->hooks.raise_floor(r->hooks.context, moment->seq < moment->floor ? moment->seq :
								  moment->floor, err);
	tell_step(r, "floor");
	if (status == QC_OK)
		status = qc_remove_files(r->cache->files, files[0].log, ids, n, r->hooks.step,
								 r->hooks.context, err);
	r->hooks.let_in(r->hooks.context);
	for (uint32_t i = 0; i < n; i++)
	{
		qc_read_forget(r->cache, files[0].log, ids[i]);
		r->hooks.changed(r->hooks.context, files[0].log, ids[i]);
	}
	if (status != QC_OK)
		return status;
	for (uint32_t i = 0; i < n; i++)
		pass->report->freed += files[i].size;
	pass->report->deleted += n;
	return QC_OK;
}

static QcStatus
delete_all(QcReclaimPass *pass, const Moment *moment, QcError *err)
{
	QcReclaimFile batch[BATCH_FILES];
	const QcReclaimList *dead = &pass->dead;
	uint32_t	n = 0;
	QcStatus	status = QC_OK;

	for (uint32_t i = 0; i < dead->n && status == QC_OK; i++)
	{
		const QcReclaimFile *file = &dead->files[i];

		if (!qc_reclaim_goes_on(pass, "deleting", i, dead->n))
			break;
		if (is_below(pass, file, moment) && is_dead_still(pass, file, err))
			batch[n++] = *file;
		else
			postpone(pass, file->log);
		if (n > 0 && (n == BATCH_FILES || i + 1 == dead->n || dead->files[i + 1].log != file->log))
		{
			/* What was collected belongs to one log. */
			status = unless_dropped(pass, file->log, delete_batch(pass, batch, n, moment, err));
			n = 0;
		}
	}
	return status;
}

/* ---- rewriting ---- */

static bool
may_copy(void *context)
{
	return qc_reclaim_goes_on(context, "copying", 0, 0);
}

/* It cannot be copied: not at once again. */
static void
no_copy(QcReclaimPass *pass, const QcReclaimFile *file)
{
	QcLogSeen  *seen = qc_reclaim_log(pass->r, file->log);
	QcFileSeen *known;

	if (seen != NULL && qc_reclaim_file(seen, file->file, &known, NULL) == QC_OK)
		known->due = false;
}

/*
 * Look once more and copy what may be replaced; the copies stand in the order of the list, file 0 where there is none.	 A file that the
 * floor holds is not copied for nothing.
 */
static void
copy_all(QcReclaimPass *pass, QcRewrite *copies, const Moment *moment, QcError *err)
{
	QcReclaim  *r = pass->r;

	for (uint32_t i = 0; i < pass->partly.n; i++)
	{
		const QcReclaimFile *file = &pass->partly.files[i];
		QcStatus	status;

		copies[i].file = 0;
		if (!is_below(pass, file, moment))
		{
			postpone(pass, file->log);
			continue;
		}
		if (!qc_reclaim_goes_on(pass, "copying", i, pass->partly.n) ||
			qc_reclaim_look(pass, file->log, file->file, err) != QC_OK)
			continue;

		/* Its last messages have gone meanwhile: it is removed instead. */
		if (pass->look.live_records == 0)
		{
			postpone(pass, file->log);
			continue;
		}
		tell_step(r, "copying");
		status = qc_rewrite_copy(&copies[i], &pass->look, may_copy, pass, err);
		tell_step(r, "copied");
		if (status == QC_OK || status == QC_INTERRUPTED || !qc_reclaim_log_lives(r, file->log))
			continue;
		no_copy(pass, file);
		pass->report->bad++;
		if (err != NULL)
			r->hooks.report(r->hooks.context, err);
	}
}

static QcStatus
publish(QcReclaimPass *pass, QcRewrite *copy, const Moment *moment, QcError *err)
{
	QcReclaim  *r = pass->r;
	uint64_t	log = copy->log;
	uint64_t	file = copy->file;
	uint64_t	freed = copy->old_size - copy->new_size;
	QcLogSeen  *seen = qc_reclaim_log(r, log);
	QcFileSeen *known;
	QcStatus	status;

	evict(r, log, file);
	if (!r->hooks.keep_out(r->hooks.context))
	{
		postpone(pass, log);
		qc_rewrite_drop(copy);
		return QC_OK;
	}
	status = r->hooks.raise_floor(r->hooks.context, moment->seq < moment->floor ? moment->seq :
								  moment->floor, err);
	if (status == QC_OK)
		status = qc_rewrite_publish(copy, r->hooks.step, r->hooks.context, err);
	else
		qc_rewrite_drop(copy);
	r->hooks.let_in(r->hooks.context);
	qc_read_forget(r->cache, log, file);
	r->hooks.changed(r->hooks.context, log, file);
	if (status != QC_OK)
		return status;
	if (seen != NULL && qc_reclaim_file(seen, file, &known, NULL) == QC_OK)
		known->looked_at = 0;
	pass->report->rewritten++;
	pass->report->freed += freed;
	return QC_OK;
}

static QcStatus
publish_all(QcReclaimPass *pass, QcRewrite *copies, const Moment *moment, QcError *err)
{
	QcStatus	status = QC_OK;

	for (uint32_t i = 0; i < pass->partly.n; i++)
	{
		const QcReclaimFile *file = &pass->partly.files[i];

		if (copies[i].file == 0)
			continue;
		if (status == QC_OK && is_below(pass, file, moment))
			status = unless_dropped(pass, file->log, publish(pass, &copies[i], moment, err));
		else
		{
			qc_rewrite_drop(&copies[i]);
			postpone(pass, file->log);
		}
	}
	return status;
}

/* ---- all of it ---- */

static void
give_up(QcReclaimPass *pass, QcRewrite *copies)
{
	for (uint32_t i = 0; i < pass->partly.n; i++)
	{
		if (copies[i].file != 0)
			qc_rewrite_drop(&copies[i]);
		postpone(pass, pass->partly.files[i].log);
	}
	for (uint32_t i = 0; i < pass->dead.n; i++)
		postpone(pass, pass->dead.files[i].log);
}

/* Wait until what was seen so far is stored; false = it cannot be now. */
static bool
wait_stored(QcReclaimPass *pass, Moment *moment)
{
	QcReclaim  *r = pass->r;

	*moment = take_moment(r);
	if (pass->stopped)
		return false;
	if (QC_MUTATED(QC_MUTANT_RECLAIM_EARLY))
		moment->floor = moment->seq;
	else if (!r->hooks.stored(r->hooks.context, moment->stamp))
		return false;
	else
		moment->floor = r->hooks.floor(r->hooks.context);
	tell_step(r, "stored");
	return true;
}

/* Copy, wait once more for what the copies leave out, put them in place. */
static QcStatus
rewrite_all(QcReclaimPass *pass, QcRewrite *copies, Moment *moment, QcError *err)
{
	copy_all(pass, copies, moment, err);
	for (uint32_t i = 0; i < pass->partly.n; i++)
	{
		if (copies[i].file == 0)
			continue;
		if (wait_stored(pass, moment))
			return publish_all(pass, copies, moment, err);
		give_up(pass, copies);
	}
	return QC_OK;
}

QcStatus
qc_reclaim_act(QcReclaimPass *pass, QcError *err)
{
	QcRewrite  *copies;
	Moment		moment;
	QcStatus	status;

	if (pass->dead.n + pass->partly.n == 0)
		return QC_OK;
	copies = calloc(pass->partly.n + 1, sizeof(QcRewrite));
	if (copies == NULL)
		return qc_error_set(err, QC_FULL, "out of memory");
	if (!wait_stored(pass, &moment))
	{
		give_up(pass, copies);
		free(copies);
		return QC_OK;
	}
	status = delete_all(pass, &moment, err);
	if (status == QC_OK)
		status = rewrite_all(pass, copies, &moment, err);
	else
		give_up(pass, copies);
	free(copies);
	return status;
}
