/*
 * qc_reclaim.c
 *		The pass of reclaim: which logs and files are looked at, and what is to become of them (contract in qc_reclaim.h).
 */
#include "qc_reclaim_int.h"

#include <stdlib.h>
#include <string.h>

#include "qc_dir.h"
#include "qc_dirx.h"
#include "qc_search.h"

#define LOGS_MAX	64			/* ids taken under one hold of the lock */
#define LOG_AGAIN	10			/* a log in which nothing has died is looked through after so many
								 * times again_us */

/* ---- memory ---- */

static uint32_t
log_index(const QcReclaim *r, uint64_t log)
{
	return QC_LOWER_BOUND(r->logs, r->nlogs, QcLogSeen, log, log);
}

QcLogSeen *
qc_reclaim_log(QcReclaim *r, uint64_t log)
{
	uint32_t	at = log_index(r, log);

	return at < r->nlogs && r->logs[at].log == log ? &r->logs[at] : NULL;
}

static QcStatus
remember_log(QcReclaim *r, uint64_t log, QcLogSeen **made, QcError *err)
{
	uint32_t	at = log_index(r, log);
	QcStatus	status = QC_OK;

	if (at == r->nlogs || r->logs[at].log != log)
	{
		status = qc_array_grow(&r->logs, &r->cap_logs, r->nlogs + 1, sizeof(QcLogSeen), err);
		if (status != QC_OK)
			return status;
		memmove(&r->logs[at + 1], &r->logs[at], (r->nlogs - at) * sizeof(QcLogSeen));
		r->nlogs++;
		r->logs[at] = (QcLogSeen) {.log = log};
	}
	*made = &r->logs[at];
	return status;
}

static void
forget_log(QcReclaim *r, uint64_t log)
{
	uint32_t	at = log_index(r, log);

	if (at == r->nlogs || r->logs[at].log != log)
		return;
	free(r->logs[at].files);
	r->nlogs--;
	memmove(&r->logs[at], &r->logs[at + 1], (r->nlogs - at) * sizeof(QcLogSeen));
}

static uint32_t
file_index(const QcLogSeen *seen, uint64_t file)
{
	return QC_LOWER_BOUND(seen->files, seen->nfiles, QcFileSeen, file, file);
}

QcStatus
qc_reclaim_file(QcLogSeen *seen, uint64_t file, QcFileSeen **made, QcError *err)
{
	uint32_t	at = file_index(seen, file);
	QcStatus	status = QC_OK;

	if (at == seen->nfiles || seen->files[at].file != file)
	{
		status = qc_array_grow(&seen->files, &seen->cap_files, seen->nfiles + 1,
							   sizeof(QcFileSeen), err);
		if (status != QC_OK)
			return status;
		memmove(&seen->files[at + 1], &seen->files[at],
				(seen->nfiles - at) * sizeof(QcFileSeen));
		seen->nfiles++;
		memset(&seen->files[at], 0, sizeof(QcFileSeen));
		seen->files[at].file = file;
	}
	*made = &seen->files[at];
	return status;
}

/* Files that are not there any more. */
static void
forget_files_but(QcLogSeen *seen, const uint64_t *files, uint32_t n)
{
	uint32_t	kept = 0;

	for (uint32_t i = 0, at = 0; i < seen->nfiles; i++)
	{
		while (at < n && files[at] < seen->files[i].file)
			at++;
		if (at < n && files[at] == seen->files[i].file)
			seen->files[kept++] = seen->files[i];
	}
	seen->nfiles = kept;
}

void
qc_reclaim_end(QcReclaim *r)
{
	for (uint32_t i = 0; i < r->nlogs; i++)
		free(r->logs[i].files);
	free(r->logs);
	r->logs = NULL;
	r->nlogs = r->cap_logs = r->at = r->skip = 0;
}

/* ---- looking at one file ---- */

bool
qc_reclaim_goes_on(QcReclaimPass *pass, const char *phase, uint64_t done, uint64_t total)
{
	const QcReclaimHooks *hooks = &pass->r->hooks;

	if (!pass->stopped && !hooks->go_on(hooks->context, phase, done, total))
		pass->stopped = true;
	return !pass->stopped;
}

static bool
budget_left(const QcReclaimPass *pass)
{
	return pass->report->looked < pass->budget->files &&
		qc_reclaim_clock(pass->r) - pass->began < pass->budget->us;
}

bool
qc_reclaim_log_lives(QcReclaim *r, uint64_t id)
{
	const QcLog *log;
	bool		lives;

	qc_reclaim_share(r);
	log = qc_log_by_id(r->st, id);
	lives = log != NULL && (log->nqueues > 0 || qc_log_stays(r->st->shards, id));
	qc_reclaim_unlock(r);
	return lives;
}

/*
 * A file that has no right index gets one: what is deleted must have been proven to hold nothing.  So does one that has zeros behind
 * its records, as they go when the index is made.
 */
static QcStatus
look_checked(QcReclaimPass *pass, uint64_t log, uint64_t file, QcError *err)
{
	QcStatus	status = qc_look_at(&pass->look, log, file, pass->now, err);

	/* Its zeros were given back while it was read. */
	if (status == QC_SHORT)
		status = qc_look_at(&pass->look, log, file, pass->now, err);
	if (status != QC_OK || (pass->look.checked && pass->look.size == pass->look.length))
		return status;
	status = qc_read_build_idx(pass->r->cache->files, log, file, err);

	/* Another process may have made it at the same moment; that one does. */
	if (status != QC_OK && qc_read_idx_right(pass->r->cache->files, log, file))
		status = QC_OK;
	if (status == QC_OK)
		status = qc_look_at(&pass->look, log, file, pass->now, err);
	if (status == QC_OK && !pass->look.checked)
		status = qc_error_set(err, QC_DAMAGED, "the index that was just made does not fit its log file");
	return status;
}

QcStatus
qc_reclaim_look(QcReclaimPass *pass, uint64_t log, uint64_t file, QcError *err)
{
	const QcReclaimHooks *hooks = &pass->r->hooks;
	QcLogSeen  *seen = qc_reclaim_log(pass->r, log);
	QcFileSeen *known;
	QcStatus	status = look_checked(pass, log, file, err);

	pass->report->looked++;
	if (status == QC_OK || status == QC_FULL)
		return status;
	if (status == QC_MISSING || !qc_reclaim_log_lives(pass->r, log))
		return QC_NOTFOUND;
	pass->report->bad++;
	if (err != NULL)
		hooks->report(hooks->context, err);
	if (seen != NULL && qc_reclaim_file(seen, file, &known, NULL) == QC_OK)
	{
		known->bad = true;
		known->dead = false;
		known->looked_at = qc_reclaim_clock(pass->r);
	}
	return QC_DAMAGED;
}

/* Note what was seen: sizes, and the needed record that stands last, which most likely dies last. */
static void
note_look(QcReclaimPass *pass, QcFileSeen *known)
{
	const QcLook *look = &pass->look;
	int64_t		now = qc_reclaim_clock(pass->r);
	uint64_t	last = 0;

	if (known->looked_at == 0 || known->live_bytes != look->live_bytes)
		known->died_at = now;
	known->size = look->size;
	known->live_bytes = look->live_bytes;
	known->looked_at = now;
	known->dead = look->live_records == 0;
	known->bad = known->due = false;
	for (uint32_t i = 0; i < look->index->count; i++)
	{
		const uint8_t *at = look->index->bytes + QC_IDX_HEADER_SIZE + (size_t) i * QC_IDX_ENTRY_SIZE;
		QcIdxEntry	entry;

		qc_idx_entry_decode(at, &entry);
		if (look->answers[i] == QC_LIVE_NOT || entry.position < last)
			continue;
		last = entry.position;

		memcpy(known->witness, at, sizeof(known->witness));
	}
}

/* Is the answer about this file known without reading it? */
static bool
is_known(QcReclaimPass *pass, const QcFileSeen *known)
{
	QcReclaim  *r = pass->r;
	uint8_t		answer;

	/* What is dead stays so; it is looked at once more before it goes. */
	if (known->dead)
		return true;
	if (known->looked_at == 0 || qc_reclaim_clock(r) - known->looked_at >= r->again_us)
		return false;
	if (known->bad)
		return true;

	/* It was held by the floor, or others came first. */
	if (known->due && known->closed_by <= r->hooks.floor(r->hooks.context))
		return false;
	qc_reclaim_share(r);
	(void) qc_live_judge(r->st, known->witness, 1, pass->now, &answer, 1);
	qc_reclaim_unlock(r);
	return answer != QC_LIVE_NOT && answer != QC_LIVE_ASK;
}

/* ---- what is to become of it ---- */

static QcStatus
list_file(QcReclaimList *list, const QcReclaimFile *file, QcError *err)
{
	QcStatus	status = qc_array_grow(&list->files, &list->cap, list->n + 1,
									   sizeof(QcReclaimFile), err);

	if (status == QC_OK)
		list->files[list->n++] = *file;
	return status;
}

/* The file that was just looked at. */
static QcStatus
list_looked(QcReclaimList *list, const QcLook *look, uint64_t gain, QcError *err)
{
	QcReclaimFile file = {look->log, look->file, look->size, look->length, gain};

	return list_file(list, &file, err);
}

/* All dead files of a log but the newest ones that are to stay. */
static QcStatus
list_dead(QcReclaimPass *pass, const QcLogSeen *seen, QcError *err)
{
	uint32_t	ndead = 0;
	QcStatus	status = QC_OK;

	for (uint32_t i = 0; i < seen->nfiles; i++)
		ndead += seen->files[i].dead;
	for (uint32_t i = 0; i < seen->nfiles && ndead > pass->r->keep_old && status == QC_OK; i++)
	{
		QcReclaimFile file = {seen->log, seen->files[i].file, seen->files[i].size, 0,
			seen->files[i].size};

		if (!seen->files[i].dead)
			continue;
		status = list_file(&pass->dead, &file, err);
		ndead--;
	}
	return status;
}

/* Bytes of the log's closed files that nobody needs. */
static uint64_t
waste(const QcLogSeen *seen)
{
	uint64_t	sum = 0;

	for (uint32_t i = 0; i < seen->nfiles; i++)
		if (!seen->files[i].dead && !seen->files[i].bad)
			sum += seen->files[i].size - seen->files[i].live_bytes;
	return sum;
}

/* Does writing this file anew pay now?	 *gain: bytes that it frees. */
static bool
pays(const QcReclaimPass *pass, const QcLogSeen *seen, const QcFileSeen *known, bool shared,
	 uint64_t *gain)
{
	const QcReclaim *r = pass->r;
	const QcLook *look = &pass->look;
	uint64_t	needed = QC_FILE_HEADER_SIZE + look->live_bytes;
	bool		calm;

	*gain = look->length > needed ? look->length - needed : 0;
	if (*gain < r->gain || *gain < look->length / 64)
		return false;
	if (*gain >= look->length / 2)
		return true;
	if (look->live_records == look->records)
		return false;
	calm = qc_reclaim_clock(r) - known->died_at >= r->still_us;
	if (shared)
		return waste(seen) > r->segment_size / 2 && (calm || *gain >= look->length / 8);
	return calm || (waste(seen) > r->segment_size && *gain >= look->length / 8);
}

/* Keep the best ones, as many as the pass may rewrite. */
static QcStatus
offer_rewrite(QcReclaimPass *pass, uint64_t gain, QcError *err)
{
	QcReclaimList *list = &pass->partly;
	QcReclaimFile new;
	uint32_t	at;
	QcStatus	status;

	if (pass->budget->rewrites == 0)
		return QC_OK;
	status = list_looked(list, &pass->look, gain, err);
	if (status != QC_OK)
		return status;
	at = --list->n;
	new = list->files[at];
	while (at > 0 && list->files[at - 1].gain < gain)
		at--;
	if (list->n == pass->budget->rewrites)
	{
		pass->report->more = true;
		if (at == list->n)
			return QC_OK;
		list->n--;
	}
	memmove(&list->files[at + 1], &list->files[at], (list->n - at) * sizeof(QcReclaimFile));
	list->files[at] = new;
	list->n++;
	return QC_OK;
}

/* Look at one closed file and put it on the list that it belongs to. */
static QcStatus
consider_file(QcReclaimPass *pass, QcLogSeen *seen, const QcLogView *view, uint64_t file, QcError *err)
{
	QcFileSeen *known;
	uint64_t	gain;
	QcStatus	status = qc_reclaim_look(pass, view->log, file, err);

	if (status == QC_NOTFOUND || status == QC_DAMAGED)
		return QC_OK;
	if (status == QC_OK)
		status = qc_reclaim_file(seen, file, &known, err);
	if (status != QC_OK)
		return status;
	note_look(pass, known);
	if (known->dead)
		return QC_OK;
	known->due = pays(pass, seen, known, view->shared, &gain);
	return known->due ? offer_rewrite(pass, gain, err) : QC_OK;
}

/* ---- one log ---- */

/* Copy what is needed of the log; false = it is gone, or about to go as a whole. */
static bool
view_log(QcReclaim *r, uint64_t id, QcLogView *view)
{
	const QcLog *log;
	bool		found;

	qc_reclaim_share(r);
	log = qc_log_by_id(r->st, id);
	found = log != NULL && (log->nqueues > 0 || qc_log_stays(r->st->shards, id));
	if (found)
	{
		view->log = id;
		view->active = log->file;
		view->tail = log->tail;
		view->allocated = log->allocated;
		view->last_file = log->last_file;
		view->deaths = log->deaths;
		view->first_file = log->first_file;
		view->seq = r->st->seq;
		view->shared = r->st->shards > 0;
	}
	qc_reclaim_unlock(r);
	return found;
}

/* Tell the state which file is the oldest, so that logs with nothing but their active file cost nothing. */
static void
note_first_file(QcReclaim *r, uint64_t id, uint64_t first)
{
	QcLog	   *log;

	qc_reclaim_lock(r);
	log = qc_log_by_id(r->st, id);
	if (log != NULL)
		log->first_file = first < log->file ? first : log->file;
	qc_reclaim_unlock(r);
}

/* This is the oldest file now: directories over older ones alone are of no use any more. */
static QcStatus
begin_at(QcReclaim *r, QcLogSeen *seen, const QcLogView *view, uint64_t first, QcError *err)
{
	uint64_t	begin = qc_dirx_of(1, first).first;
	QcStatus	status;

	/* None ends between two beginnings of the smallest ones. */
	note_first_file(r, view->log, first);
	if (begin == seen->trimmed)
		return QC_OK;
	status = qc_dirx_trim(r->cache->files, view->log, first, err);
	if (status == QC_OK)
		seen->trimmed = begin;
	return status;
}

/* The oldest files are looked at in every pass, until one is needed: a queue that is read in order frees those. */
static QcStatus
consider_files(QcReclaimPass *pass, QcLogSeen *seen, const QcLogView *view, const uint64_t *files,
			   uint32_t n, QcError *err)
{
	bool		head = true;
	QcStatus	status = QC_OK;

	for (uint32_t i = 0; i < n && files[i] < view->active && status == QC_OK; i++)
	{
		QcFileSeen *known;

		if (!head && files[i] < seen->next)
			continue;
		status = qc_reclaim_file(seen, files[i], &known, err);
		if (status != QC_OK)
			return status;
		if (known->closed_by == 0)
			known->closed_by = view->seq;
		if (!is_known(pass, known))
		{
			if (!budget_left(pass) ||
				!qc_reclaim_goes_on(pass, "looking", pass->report->looked, pass->budget->files))
			{
				seen->next = files[i];
				return QC_END;
			}
			status = consider_file(pass, seen, view, files[i], err);
			(void) qc_reclaim_file(seen, files[i], &known, NULL);
		}
		head = head && (known->dead || known->bad);
	}
	return status;
}

/* Look through the closed files of a log; QC_END = the budget is used up. */
static QcStatus
look_through(QcReclaimPass *pass, QcLogSeen *seen, const QcLogView *view, QcError *err)
{
	QcReclaim  *r = pass->r;
	uint64_t   *files;
	uint32_t	n;
	uint32_t	ndead = pass->dead.n + pass->partly.n;
	QcStatus	status = QC_END;

	if (!r->hooks.write(r->hooks.context, view->seq))
		return status;
	status = qc_dir_files(r->cache->files->io, r->cache->files->layout, view->log,
						  &files, &n, err);

	if (status != QC_OK)
		return status == QC_MISSING ? QC_OK : status;
	forget_files_but(seen, files, n);
	status = begin_at(r, seen, view, n == 0 ? view->active : files[0], err);
	if (seen->next == 0)
		seen->round_deaths = view->deaths;
	if (status == QC_OK)
		status = consider_files(pass, seen, view, files, n, err);
	free(files);
	seen->complete = false;
	if (status == QC_OK || status == QC_END)
	{
		QcStatus	listed = list_dead(pass, seen, err);

		status = listed == QC_OK ? status : listed;
	}
	if (status != QC_OK)
		return status;
	seen->next = 0;
	seen->complete = pass->dead.n + pass->partly.n == ndead;
	seen->deaths = seen->round_deaths;
	seen->looked_at = qc_reclaim_clock(r);
	return QC_OK;
}

static QcStatus
sweep(QcReclaimPass *pass, QcLogSeen *seen, const QcLogView *view, QcError *err)
{
	QcReclaim  *r = pass->r;
	QcStatus	status;

	if (seen->swept || !r->hooks.keep_out(r->hooks.context))
		return QC_OK;
	status = qc_remove_leftovers(r->cache->files, view->log, view->active, err);
	r->hooks.let_in(r->hooks.context);
	seen->swept = status == QC_OK;
	return status;
}

/* A log whose directory cannot be read or cleaned up does not keep the others from their turn. */
static QcStatus
consider_log(QcReclaimPass *pass, uint64_t id, QcError *err)
{
	QcReclaim  *r = pass->r;
	QcLogSeen  *seen;
	QcLogView	view;
	int64_t		now = qc_reclaim_clock(r);
	QcStatus	status;

	if (!view_log(r, id, &view))
	{
		forget_log(r, id);
		return QC_OK;
	}
	status = remember_log(r, id, &seen, err);
	if (status != QC_OK)
		return status;
	if (seen->active != view.active || view.tail == QC_FILE_HEADER_SIZE)
	{
		seen->complete = seen->complete && seen->active == view.active;
		seen->active = view.active;
		seen->active_since = now;
	}
	if (view.active > 1)
		status = sweep(pass, seen, &view, err);
	if (status == QC_OK && view.active > view.first_file && view.active > 1 &&
		(!seen->complete || seen->deaths != view.deaths ||
		 now - seen->looked_at >= r->again_us * LOG_AGAIN))
		status = look_through(pass, seen, &view, err);
	if (status == QC_OK)
		status = qc_reclaim_seal(pass, seen, &view, err);
	if (status == QC_OK || status == QC_END || status == QC_FULL)
		return status;
	if (!qc_reclaim_log_lives(r, id))
		return QC_OK;
	pass->report->bad++;
	if (err != NULL)
		r->hooks.report(r->hooks.context, err);
	return QC_OK;
}

/* ---- the pass ---- */

/* Go over the logs until all had their turn (QC_OK) or the budget is used up (QC_END). */
static QcStatus
consider_logs(QcReclaimPass *pass, QcError *err)
{
	QcReclaim  *r = pass->r;
	uint32_t	first = r->at;
	bool		around = false;
	uint64_t	ids[LOGS_MAX];

	for (;;)
	{
		uint32_t	begin = r->at;
		uint32_t	n;

		if (around && begin > first)
			return QC_OK;
		qc_reclaim_share(r);
		n = qc_log_ids(r->st, &r->at, ids, LOGS_MAX);
		qc_reclaim_unlock(r);
		for (uint32_t i = r->skip; i < n; i++)
		{
			QcStatus	status = QC_END;

			if (qc_reclaim_goes_on(pass, "looking", pass->report->looked, pass->budget->files))
				status = consider_log(pass, ids[i], err);
			if (status == QC_OK)
				continue;

			/* The next pass begins with the next log, so that none uses up all passes. */
			r->skip = i + 1 < n ? i + 1 : 0;
			r->at = i + 1 < n ? begin : r->at;
			return status;
		}
		r->skip = 0;
		if (n > 0)
			continue;
		r->at = 0;
		if (around || first == 0)
			return QC_OK;
		around = true;
	}
}

QcStatus
qc_reclaim_pass(QcReclaim *r, const QcReclaimBudget *budget, int64_t now, QcReclaimReport *report,
				QcError *err)
{
	QcReclaimPass pass = {.r = r, .budget = budget, .report = report, .now = now};
	QcStatus	status;

	memset(report, 0, sizeof(*report));
	pass.began = qc_reclaim_clock(r);
	qc_look_init(&pass.look, r->st, r->cache, &r->lock);
	status = consider_logs(&pass, err);
	if (status == QC_END)
	{
		report->more = !pass.stopped;
		status = QC_OK;
	}
	if (status == QC_OK && !pass.stopped)
		status = qc_reclaim_act(&pass, err);
	qc_look_end(&pass.look);
	free(pass.dead.files);
	free(pass.partly.files);
	return status;
}
