/*
 * qc_recover_finish.c
 *		The end of recovery: a new epoch where one is needed, verdicts, releases, all of it durable.
 *
 * A new epoch begins before any seq is used that may have been used before: after a cut, after restoring, with a stash
 * that tells of seqs at or above the end, on a new timeline, in a copy, and at the very first start.  Its WAL record is
 * flushed first (by the hook), so that whoever reads the stash next knows what is void; then comes its entry, at the seq
 * that it names, and only then entries of the new epoch.
 */
#include "qc_recover_int.h"

#include <assert.h>
#include <stdlib.h>

#define ITEMS_MAX	1000		/* verdicts or releases per entry */
#define FILES_MAX	64

/* ---- logging ---- */

/* Make what the plan lacks; it is credited when this returns QC_OK. */
static QcStatus
credit(QcRecovery *rc, QcPlan *plan, QcError *err)
{
	QcRecover  *r = rc->r;
	QcLack		lack;
	QcExtend	extend;
	QcStatus	status;

	while ((status = qc_plan_credit(r->st, r->ring, plan, r->segment_size, &lack, &extend,
									err)) == QC_BUSY)
	{
		if (lack == QC_LACK_LOG)
		{
			status = qc_log_extend_io(r->files, &extend, err);
			if (status == QC_OK)
				qc_log_extended(r->st, &extend, r->segment_size);
		}
		else
			status = qc_ring_write(r->st, r->ring, r->files, err);
		if (status != QC_OK)
			return status;
	}
	return status;
}

/* Encodes effects; returns their number, 0 = nothing to log. */
typedef uint32_t (*EffectsPutter) (QcRecovery *rc, QcWriter *w);

/* Log one entry in the system log, in this epoch; *put = the number of its effects. */
static QcStatus
log_entry(QcRecovery *rc, EffectsPutter putter, size_t effects_max, uint64_t epoch, uint32_t *put,
		  QcError *err)
{
	QcRecover  *r = rc->r;
	QcSmallPlan small;
	QcWriter	w;
	uint8_t    *buffer = malloc(QC_SMALL_BUFFER(effects_max));
	QcStatus	status;

	if (buffer == NULL)
		return qc_error_set(err, QC_FULL, "out of memory");
	qc_plan_small(&small, buffer, effects_max);
	status = credit(rc, &small.plan, err);
	if (status == QC_OK)
	{
		w = qc_plan_small_writer(&small);
		*put = putter(rc, &w);
		assert(!w.full);
		if (*put == 0)
			qc_plan_uncredit(r->st, &small.plan);
		else
		{
			r->changed = true;
			qc_plan_small_done(&small, &w, *put);
			qc_plan_reserve(r->st, r->ring, &small.plan, r->segment_size, r->now, r->monotonic);

			/*
			 * the entry that begins an epoch is the first of that epoch, not the last of the one
			 * before
			 */
			small.plan.epoch = epoch;
			status = qc_plan_fill(r->st, r->ring, &small.plan, r->files, err);
		}
	}
	free(buffer);
	return status;
}

/* Write and sync everything logged. */
static QcStatus
flush(QcRecovery *rc, QcError *err)
{
	QcRecover  *r = rc->r;
	QcDirtyFile files[FILES_MAX];
	uint64_t	seq;
	bool		more = true;
	QcStatus	status = qc_ring_write(r->st, r->ring, r->files, err);

	while (status == QC_OK && more)
	{
		uint32_t	n = qc_ring_take_dirty(r->st, r->ring, files, FILES_MAX, &seq, &more);

		for (uint32_t i = 0; i < n && status == QC_OK; i++)
			status = qc_ring_sync_file(r->files, &files[i], err);
	}
	if (status == QC_OK)
		qc_ring_publish(r->ring, seq);
	return status;
}

/* ---- epoch ---- */

static bool
needs_epoch(const QcRecovery *rc)
{
	const QcRecover *r = rc->r;
	const QcState *st = r->st;

	return rc->cut || r->restored > 0 || r->voided > 0 || rc->live_stash ||
		rc->stash.unknown_epoch || r->copied || r->new_timeline || st->nepochs == 0 ||
		st->epochs[st->nepochs - 1].timeline != r->timeline;
}

static QcStatus
draw_epoch(QcRecovery *rc, QcError *err)
{
	const QcRecoverHooks *hooks = &rc->r->hooks;
	bool		taken = true;

	while (taken)
	{
		QcStatus	status = hooks->random(hooks->context, &rc->new_epoch, err);

		if (status != QC_OK)
			return status;
		taken = rc->new_epoch == 0;
		for (uint32_t i = 0; i < rc->epochs.count; i++)
			taken |= rc->epochs.rows[i].epoch == rc->new_epoch;
	}
	return QC_OK;
}

static uint32_t
put_epoch(QcRecovery *rc, QcWriter *w)
{
	const QcRecover *r = rc->r;
	QcEpoch		effect = {.epoch = rc->new_epoch, .previous = qc_epoch(r->st),
		.first_seq = r->st->seq + 1, .timeline = r->timeline};

	qc_effect_put(w, QC_EFFECT_EPOCH, &effect, 0);
	return 1;
}

static QcStatus
begin_epoch(QcRecovery *rc, QcError *err)
{
	QcRecover  *r = rc->r;
	uint64_t	first_seq = r->st->seq + 1;
	uint32_t	put;
	QcStatus	status = draw_epoch(rc, err);

	if (status == QC_OK)
		status = r->hooks.new_epoch(r->hooks.context, qc_epoch(r->st), rc->new_epoch, first_seq,
									err);
	if (status == QC_OK)
		status = log_entry(rc, put_epoch, qc_effect_size(QC_EFFECT_EPOCH, NULL, 0), rc->new_epoch,
						   &put, err);
	assert(status != QC_OK || (r->st->seq == first_seq && qc_epoch(r->st) == rc->new_epoch));
	return status;
}

/* ---- verdicts and releases ---- */

/* Items of this size that one entry may have: no record is larger than half a log file. */
static uint32_t
items_max(const QcRecovery *rc, size_t item)
{
	uint64_t	room = rc->r->segment_size / 2 - QC_RECORD_HEADER_SIZE - QC_ENTRY_HEAD_SIZE(1) -
		qc_effect_size(QC_EFFECT_DECISION, NULL, 0);

	return room / item < ITEMS_MAX ? (uint32_t) (room / item) : ITEMS_MAX;
}

static uint32_t
decisions_max(const QcRecovery *rc)
{
	return items_max(rc, qc_effect_item_size(QC_EFFECT_DECISION));
}

static uint32_t
releases_max(const QcRecovery *rc)
{
	return items_max(rc, qc_effect_size(QC_EFFECT_RELEASE, NULL, 0));
}

static uint32_t
put_decisions(QcRecovery *rc, QcWriter *w)
{
	return qc_open_decisions(rc->r->st, rc->r->timeline, UINT64_MAX, decisions_max(rc), w) > 0;
}

/* Leases whose pop never committed. */
static uint32_t
put_releases(QcRecovery *rc, QcWriter *w)
{
	QcState    *st = rc->r->st;
	uint32_t	max = releases_max(rc);
	uint32_t	n = 0;

	for (QcLease *lease = QC_AT(st, QcLease, st->leases.head); lease != NULL && n < max;
		 lease = QC_AT(st, QcLease, lease->all.next))
	{
		QcRelease	release = {.lease = lease->id, .delay_us = QC_DELAY_RULE,
			.reason = QC_RELEASE_LOST, .messages = lease->nslots};

		if (lease->committed || qc_lease_gone(st, lease))
			continue;
		qc_effect_put(w, QC_EFFECT_RELEASE, &release, 0);
		n++;
	}
	return n;
}

/* Log entries until there is nothing left to put. */
static QcStatus
log_all(QcRecovery *rc, EffectsPutter putter, size_t effects_max, QcError *err)
{
	uint32_t	put = 1;
	QcStatus	status = QC_OK;

	while (status == QC_OK && put > 0)
		status = log_entry(rc, putter, effects_max, qc_epoch(rc->r->st), &put, err);
	return status;
}

/* Is there anything to release or to decide?  Without, not even room is made for it. */
static bool
has_lost_lease(const QcState *st)
{
	const QcLease *lease = QC_AT(st, QcLease, st->leases.head);

	while (lease != NULL && (lease->committed || qc_lease_gone(st, lease)))
		lease = QC_AT(st, QcLease, lease->all.next);
	return lease != NULL;
}

QcStatus
qc_recover_finish(QcRecovery *rc, QcError *err)
{
	QcRecover  *r = rc->r;
	QcStatus	status = QC_OK;

	(void) qc_ring_init(r->ring, r->ring->size, r->st->seq);
	if (needs_epoch(rc))
		status = begin_epoch(rc, err);
	if (status == QC_OK && r->st->nopens > 0)
		status = log_all(rc, put_decisions,
						 qc_effect_size(QC_EFFECT_DECISION, NULL, decisions_max(rc)), err);
	if (status == QC_OK && has_lost_lease(r->st))
		status = log_all(rc, put_releases,
						 releases_max(rc) * qc_effect_size(QC_EFFECT_RELEASE, NULL, 0), err);
	return status == QC_OK ? flush(rc, err) : status;
}
