/*
 * qc_recover_give.c
 *		What a start that is refused could give up, and giving that up when it was granted (QcRecover.give_up_seq and give_up_logs).
 *
 * Two things refuse a start for which the logs still hold the answer to "what else could be done":
 *
 *	 entries	one that was durable is damaged or missing, or cannot be applied.  Given up is that one and everything behind it, in every
 *				log, as if the server had died before it: what is left is a state that was there at a moment, and no guess.	 The
 *				ordinary cut keeps all bytes beside (qc_recover_cut.c), and joint work that the WAL carries comes back
 *	 logs		a log that the checkpoint knows is gone, or ends before its durable part.  It goes on in a new file; its queues are out of
 *				service until qlog_repair has found out which of their messages are missing
 *
 * Nothing is given up that the refused start before this one has not named: the caller passes on what that one reported.
 */
#include "qc_recover_int.h"

#include <assert.h>
#include <stdlib.h>

#include "qc_repair.h"

/* ---- entries ---- */

static QcStatus
add_run(QcRecovery *rc, const QcBundleRecord *record, QcError *err)
{
	QcCover    *cover = &rc->given;
	uint64_t	end = record->first + record->count;
	size_t		cap = cover->cap * 2 + 1024;
	QcCoverRange *more;

	if (record->count == 0 || qc_cover_add(cover, record->partition, record->first, end))
		return QC_OK;
	more = realloc(cover->ranges, cap * sizeof(QcCoverRange));
	if (more == NULL)
		return qc_error_set(err, QC_FULL, "out of memory");
	cover->ranges = more;
	cover->cap = cap;
	(void) qc_cover_add(cover, record->partition, record->first, end);
	return QC_OK;
}

/* What the server knew of its WAL stays known: it tells the fate of joint entries in front. */
static void
note_confirms(QcRecovery *rc, const QcBundlePart *part)
{
	const QcRecoverHooks *hooks = &rc->r->hooks;
	QcEntry		entry;
	QcEffect	effect;

	if (part->end != QC_KIND_ENTRY ||
		qc_entry_decode(rc->bundle.bytes + part->payload, part->payload_len, &entry, NULL) != QC_OK)
		return;
	while (qc_effect_get(&entry.effects, &effect, NULL) == QC_OK)
	{
		const QcConfirm *confirm = &effect.u.confirm;

		if (effect.kind == QC_EFFECT_CONFIRM && confirm->seq > rc->confirmed &&
			hooks->in_history(hooks->context, confirm->timeline, confirm->lsn))
			rc->confirmed = confirm->seq;
	}
}

QcStatus
qc_give_note(QcRecovery *rc, QcError *err)
{
	const QcBundle *bundle = &rc->bundle;
	QcStatus	status = QC_OK;

	rc->given_last = bundle->seq;
	for (uint32_t i = 0; i < bundle->nparts; i++)
		note_confirms(rc, &bundle->parts[i]);
	for (uint32_t i = 0; i < bundle->nrecords && status == QC_OK; i++)
		status = add_run(rc, &bundle->records[i], err);
	return status;
}

void
qc_give_tell(QcRecovery *rc, uint64_t seq)
{
	QcRecover  *r = rc->r;
	uint64_t	last = rc->given_last > r->required ? rc->given_last : r->required;

	r->given_seq = seq;
	r->given_entries = last >= seq ? last - seq + 1 : 1;
	qc_cover_sort(&rc->given);
	for (size_t i = 0; i < rc->given.n && r->hooks.given_up != NULL; i++)
	{
		const QcCoverRange *range = &rc->given.ranges[i];

		r->hooks.given_up(r->hooks.context, range->partition, range->first, range->end);
	}
}

void
qc_give_confirmed(QcRecovery *rc)
{
	QcState    *st = rc->r->st;
	uint64_t	confirmed = rc->confirmed < rc->r->end ? rc->confirmed : rc->r->end - 1;

	/* Seqs from the end on are used again. */
	if (confirmed > st->confirmed_seq)
		st->confirmed_seq = confirmed;
}

/* ---- logs ---- */

void
qc_give_log(QcRecovery *rc, QcLogTail *tail, const QcError *why)
{
	if (rc->nlost++ == 0)
		rc->lost_error = *why;
	tail->lost = true;
	tail->clean = true;
	tail->start_file = 0;
}

QcStatus
qc_give_judge_logs(QcRecovery *rc, QcError *err)
{
	QcRecover  *r = rc->r;

	r->given_logs = rc->nlost;
	if (rc->nlost == 0 || rc->nlost == r->give_up_logs)
		return QC_OK;
	r->refused = true;
	if (err != NULL)
		*err = rc->lost_error;
	return rc->lost_error.code;
}

/* Its queues are out of service: messages of the past are missing. */
static void
damage_queues(QcRecovery *rc, const QcLog *log)
{
	QcState    *st = rc->r->st;

	for (QcQueue *queue = QC_AT(st, QcQueue, st->queues.head); queue != NULL;
		 queue = QC_AT(st, QcQueue, queue->all.next))
	{
		if (queue->log_id == log->id && qc_queue_damage(st, queue, log->file, log->tail))
			rc->r->damaged_queues++;
	}
}

QcStatus
qc_give_renew_log(QcRecovery *rc, QcLogTail *tail, QcLog *log, QcError *err)
{
	QcExtend	extend = {.log = log->id, .file = log->file + 1, .to = QC_EXTEND_MIN, .create = true};
	bool		existed;
	QcStatus	status = qc_log_make_directory(rc->r->files, log->id, &existed, err);

	if (status == QC_OK)
		status = qc_recover_cut_behind(rc, log->id, log->file, err);
	if (status == QC_OK)
		status = qc_log_extend_io(rc->r->files, &extend, err);
	if (status != QC_OK)
		return status;
	rc->r->changed = true;
	damage_queues(rc, log);
	log->file = log->last_file = log->index_file = extend.file;
	log->tail = log->index_position = QC_FILE_HEADER_SIZE;
	log->allocated = log->last_allocated = extend.to;
	qc_dirty_log(rc->r->st, log);
	tail->start_file = tail->tail_file = extend.file;
	tail->start_position = tail->tail_position = QC_FILE_HEADER_SIZE;
	return QC_OK;
}
