/*
 * qc_reclaim_seal.c
 *		Closing the active file of a log early, so that what is dead in it can go though nobody writes any more.
 *
 * The next file is made first, so a log has an active file at every moment.  That costs QC_EXTEND_MIN bytes, which the close must bring in and more.
 */
#include "qc_reclaim_int.h"

/* What a new file begins with. */
static uint64_t
next_size(const QcReclaim *r)
{
	return r->segment_size < QC_EXTEND_MIN ? r->segment_size : QC_EXTEND_MIN;
}

/* Make the next file unless there is one. */
static QcStatus
make_next(QcReclaim *r, const QcLogView *view, QcError *err)
{
	QcExtend	extend = {.log = view->log, .file = view->last_file + 1, .create = true};

	if (view->last_file != view->active)
		return QC_OK;
	extend.to = next_size(r);
	return r->hooks.extend(r->hooks.context, &extend, err);
}

static void
tell_step(QcReclaim *r, const char *step)
{
	if (r->hooks.step != NULL)
		r->hooks.step(r->hooks.context, step);
}

/* How much would come free at once, or with a rewrite? */
static QcStatus
gain_of(QcReclaimPass *pass, const QcLogView *view, uint64_t *gain, QcError *err)
{
	uint64_t	kept = next_size(pass->r);
	QcStatus	status = QC_OK;

	/* The system log holds entries only. */
	if (view->log != 0)
	{
		if (!pass->r->hooks.write(pass->r->hooks.context, view->seq))
			return QC_MISSING;
		status = qc_look_at(&pass->look, view->log, view->active, pass->now, err);
		pass->report->looked++;
		if (status == QC_OK)
			kept += pass->look.live_bytes;
	}
	*gain = view->allocated > kept ? view->allocated - kept : 0;
	return status;
}

QcStatus
qc_reclaim_seal(QcReclaimPass *pass, QcLogSeen *seen, const QcLogView *view, QcError *err)
{
	QcReclaim  *r = pass->r;
	QcLog	   *log;
	uint64_t	gain;
	bool		sealed = false;
	QcStatus	status;

	if (r->seal_us == 0 || view->tail == QC_FILE_HEADER_SIZE ||
		view->allocated < next_size(r) + r->gain ||
		qc_reclaim_clock(r) - seen->active_since < r->seal_us ||
		(view->log != 0 && seen->seal_deaths == view->deaths))
		return QC_OK;
	status = gain_of(pass, view, &gain, err);
	if (status != QC_OK)
		return status == QC_MISSING ? QC_OK : status;
	seen->seal_deaths = view->deaths;
	if (gain < r->gain)
		return QC_OK;

	/*
	 * Without room for the next file, or with credits outstanding that need the rest of this one,
	 * it is tried again.
	 */
	status = make_next(r, view, err);
	if (status != QC_OK)
	{
		seen->seal_deaths = view->deaths - 1;
		return status;
	}
	tell_step(r, "seal-next");
	qc_reclaim_lock(r);
	log = qc_log_by_id(r->st, view->log);
	if (log != NULL && log->file == view->active)
		sealed = qc_log_seal(r->st, log, r->segment_size);
	qc_reclaim_unlock(r);
	tell_step(r, "sealed");
	if (!sealed)
		seen->seal_deaths = view->deaths - 1;
	pass->report->sealed += sealed;
	pass->report->more |= sealed;
	return QC_OK;
}
