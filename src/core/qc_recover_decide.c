/*
 * qc_recover_decide.c
 *		Decisions on joint entries: which of those logged counts, and taking those that are missing (PROTOCOL.md 2.4).
 *
 * A logged decision counts when its point lies in the server's history; of several for a seq the one logged at the
 * highest seq counts.  As nearly every entry is decided once, pass 1 notes one bit per decided seq and a list of those
 * that are decided again; replay takes the first decision of a seq unless that list has a later one.
 *
 * An entry left undecided is committed when its WAL record was durable (it is in the stash, or at or below the confirmed
 * seq) and the commit log says so.  Otherwise it is aborted without asking: its xid may have been handed out again.
 */
#include "qc_recover_int.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Does this decision effect count here? */
static bool
counts(const QcRecovery *rc, const QcEffect *effect, const QcDecisionItem *item)
{
	const QcRecoverHooks *hooks = &rc->r->hooks;

	return hooks->in_history(hooks->context, effect->u.decision.timeline, item->lsn);
}

/* Make the bitmap reach this seq. */
static QcStatus
reach(QcDecisions *decisions, uint64_t seq, QcError *err)
{
	uint64_t	nbits = decisions->nbits * 2 + 65536;
	uint8_t    *bits;

	if (seq - decisions->base < decisions->nbits)
		return QC_OK;
	while (seq - decisions->base >= nbits)
		nbits *= 2;
	bits = realloc(decisions->bits, (size_t) (nbits / 8));
	if (bits == NULL)
		return qc_error_set(err, QC_FULL, "out of memory");
	memset(bits + decisions->nbits / 8, 0, (size_t) ((nbits - decisions->nbits) / 8));
	decisions->bits = bits;
	decisions->nbits = nbits;
	return QC_OK;
}

static QcStatus
note_item(QcDecisions *decisions, uint64_t seq, uint64_t at, QcError *err)
{
	uint64_t	bit = seq - decisions->base;
	QcStatus	status = reach(decisions, seq, err);

	if (status != QC_OK)
		return status;
	if ((decisions->bits[bit / 8] & (1u << (bit % 8))) == 0)
	{
		decisions->bits[bit / 8] |= (uint8_t) (1u << (bit % 8));
		return QC_OK;
	}
	status = qc_array_grow(&decisions->again, &decisions->cap_again, decisions->nagain + 1,
						   sizeof(QcRedecision), err);
	if (status == QC_OK)
		decisions->again[decisions->nagain++] = (QcRedecision)
	{
		seq, at
	};
	return status;
}

QcStatus
qc_decisions_note(QcRecovery *rc, uint64_t at, const QcEffect *effect, QcError *err)
{
	QcDecisions *decisions = &rc->decisions;
	QcStatus	status = QC_OK;

	for (uint32_t i = 0; i < effect->nitems && status == QC_OK; i++)
	{
		QcDecisionItem item;

		qc_effect_item(effect, i, &item);

		/* What was settled before the mark, or comes later, is not decided here. */
		if (item.seq < decisions->base || item.seq >= at || !counts(rc, effect, &item))
			continue;
		status = note_item(decisions, item.seq, at, err);
	}
	return status;
}

/* Is this seq decided again, behind `at` and below the end? */
static bool
overridden(const QcRecovery *rc, uint64_t seq, uint64_t at)
{
	for (uint32_t i = 0; i < rc->decisions.nagain; i++)
	{
		const QcRedecision *again = &rc->decisions.again[i];

		if (again->seq == seq && again->at > at && again->at < rc->r->end)
			return true;
	}
	return false;
}

void
qc_decisions_apply(QcRecovery *rc, uint64_t at, const QcEffect *effect)
{
	QcState    *st = rc->r->st;

	for (uint32_t i = 0; i < effect->nitems; i++)
	{
		QcDecisionItem item;
		QcOpen	   *open;

		qc_effect_item(effect, i, &item);
		open = qc_open_by_seq(st, item.seq);
		if (open == NULL || open->xid == 0 || !counts(rc, effect, &item) ||
			overridden(rc, item.seq, at))
			continue;
		if (open->decided == 0)
			qc_open_settle(st, open, item.committed != 0, item.lsn, rc->r->monotonic);
		qc_open_forget(st, open);
	}
}

/* Was the WAL record of this entry durable, and does the commit log know its transaction as committed? */
static QcStatus
verdict(const QcRecovery *rc, const QcOpen *open, bool *committed, QcError *err)
{
	const QcRecoverHooks *hooks = &rc->r->hooks;
	const QcStashEntry *stashed = qc_recover_stashed(rc, open->seq);

	*committed = false;
	if ((stashed != NULL && stashed->wal.xid == open->xid) || open->seq <= rc->r->st->confirmed_seq)
		return hooks->xid_committed(hooks->context, open->xid, committed, err);
	return QC_OK;
}

QcStatus
qc_recover_decide(QcRecovery *rc, QcError *err)
{
	QcState    *st = rc->r->st;
	QcRef		next;

	for (QcRef ref = st->opens.head; ref != 0; ref = next)
	{
		QcOpen	   *open = QC_AT(st, QcOpen, ref);
		bool		committed;
		QcStatus	status;

		next = open->all.next;
		if (open->xid == 0 || open->decided != 0)
			continue;
		status = verdict(rc, open, &committed, err);
		if (status != QC_OK)
			return status;
		rc->r->committed += committed;
		rc->r->aborted += !committed;
		qc_open_settle(st, open, committed, rc->r->redo_end, rc->r->monotonic);
	}
	return QC_OK;
}
