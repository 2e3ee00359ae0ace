/*
 * qc_recover_end.c
 *		Pass 1: what is required, and where the log ends (PROTOCOL.md 2.2, 2.3).
 *
 * M = max(mark, largest durable_seq in any checksummed entry) is known only when everything has been read, damaged
 * places and what stands behind them included.  Until then two kinds of trouble are kept apart: `hard`, the first seq
 * that is missing or incomplete, and `soft`, those whose only trouble is a damaged message record.  When M is known, a
 * hard one at or below M is damage and nothing is opened; a soft one at or below M costs its queue and nothing else; the
 * first of either above M is the end.
 *
 * In a copy nothing above the checkpoint is required: files of different moments lie side by side.
 */
#include "qc_recover_int.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Pass 1 under way. */
typedef struct EndSearch
{
	QcRecovery *rc;
	uint64_t	expected;		/* the next seq */
	uint64_t	hard;			/* QC_NO_SEQ = none yet */
	QcError		hard_error;		/* what to say when it was required */
	uint32_t	nsoft;
	uint32_t	cap_soft;
	uint64_t   *soft;			/* ascending */
} EndSearch;

/* Found the first hard trouble: say what, and as well as can be known, where. */
static void
set_hard(EndSearch *search, uint64_t seq, const char *why, const char *path, uint64_t position)
{
	const QcSpot *spot = qc_merge_suspect(search->rc, seq);

	assert(search->hard == QC_NO_SEQ);
	search->hard = seq;
	if (spot != NULL)
		(void) qc_error_at(&search->hard_error, QC_DAMAGED, spot->fault.file,
						   spot->fault.position, "entry %" PRIu64 " was durable and is damaged: %s",
						   seq, spot->fault.text);
	else
		(void) qc_error_at(&search->hard_error, QC_DAMAGED, path, position,
						   "entry %" PRIu64 " was durable and is not whole: %s", seq, why);
}

/* Where the bundle's first record stands. */
static void
place_of(const QcRecovery *rc, char path[QC_PATH_MAX], uint64_t *position)
{
	const QcBundle *bundle = &rc->bundle;
	const QcBundlePart *part = &bundle->parts[0];

	qc_path_file(path, rc->r->files->layout, part->log, part->end_file, "qlog");
	*position = part->end_position;
	if (part->nrecords > 0)
	{
		qc_path_file(path, rc->r->files->layout, part->log, bundle->records[part->record].file,
					 "qlog");
		*position = bundle->records[part->record].position;
	}
}

static QcStatus
add_soft(EndSearch *search, uint64_t seq, QcError *err)
{
	QcStatus	status = qc_array_grow(&search->soft, &search->cap_soft, search->nsoft + 1,
									   sizeof(uint64_t), err);

	if (status == QC_OK)
		search->soft[search->nsoft++] = seq;
	return status;
}

/* Seqs [expected, seq) are nowhere: damaged solo records may have been them. */
static QcStatus
pass_missing(EndSearch *search, uint64_t seq, QcError *err)
{
	QcStatus	status = QC_OK;

	while (search->expected < seq && search->hard == QC_NO_SEQ && status == QC_OK)
	{
		char		path[QC_PATH_MAX];
		uint64_t	position;

		if (qc_merge_excuse(search->rc, search->expected) != NULL)
		{
			status = add_soft(search, search->expected++, err);
			continue;
		}
		place_of(search->rc, path, &position);
		set_hard(search, search->expected, "it is missing before this one", path, position);
	}
	return status;
}

/* Learn what a whole entry tells about those that follow. */
static QcStatus
learn(EndSearch *search, const QcWhole *whole, QcError *err)
{
	QcRecovery *rc = search->rc;
	QcReader	r = whole->entry.effects;
	QcEffect	effect;
	QcStatus	status;

	if (whole->solo)
		return QC_OK;
	status = qc_epochs_learn(rc, &whole->entry, err);
	while (status == QC_OK && (status = qc_effect_get(&r, &effect, err)) == QC_OK)
		if (effect.kind == QC_EFFECT_DECISION)
			status = qc_decisions_note(rc, rc->bundle.seq, &effect, err);
	return status == QC_END ? QC_OK : status;
}

/* Judge the next bundle. */
static QcStatus
judge_bundle(EndSearch *search, QcError *err)
{
	QcRecovery *rc = search->rc;
	uint64_t	seq = rc->bundle.seq;
	QcBundleState state;
	QcWhole		whole;
	const char *why;
	char		path[QC_PATH_MAX];
	uint64_t	position;
	QcStatus	status;

	if (seq < search->expected)
		return QC_OK;
	if (search->expected == rc->r->give_up_seq)
	{
		place_of(rc, path, &position);
		set_hard(search, search->expected, "it is given up", path, position);
		return QC_OK;
	}
	status = qc_bundle_judge(rc, &state, &whole, &why, err);
	if (status == QC_VERSION)
	{
		place_of(rc, path, &position);
		qc_error_locate(err, path, position);
	}
	if (status != QC_OK || state == QC_BUNDLE_VOID)
		return status;
	status = pass_missing(search, seq, err);
	if (status != QC_OK || search->hard != QC_NO_SEQ)
		return status;
	if (state == QC_BUNDLE_PARTIAL)
	{
		place_of(rc, path, &position);
		set_hard(search, seq, why, path, position);
		return QC_OK;
	}
	search->expected = seq + 1;
	if (state == QC_BUNDLE_DAMAGED)
		status = add_soft(search, seq, err);
	return status == QC_OK ? learn(search, &whole, err) : status;
}

/* Judge it unless the end has been found already; what stands behind that may have to be given up. */
static QcStatus
look_at_bundle(EndSearch *search, QcError *err)
{
	QcStatus	status = search->hard == QC_NO_SEQ ? judge_bundle(search, err) : QC_OK;

	if (status == QC_OK && search->hard != QC_NO_SEQ && search->rc->bundle.seq >= search->hard)
		status = qc_give_note(search->rc, err);
	return status;
}

/* Everything was read and nothing is missing in between: what is required must not be above the last entry. */
static QcStatus
pass_end(EndSearch *search, QcError *err)
{
	QcRecovery *rc = search->rc;
	char		path[QC_PATH_MAX];
	const QcLogTail *tail = &rc->logs[0];
	QcStatus	status = QC_OK;

	while (search->hard == QC_NO_SEQ && search->expected <= rc->r->required && status == QC_OK)
	{
		if (qc_merge_excuse(rc, search->expected) != NULL)
		{
			status = add_soft(search, search->expected++, err);
			continue;
		}
		qc_path_file(path, rc->r->files->layout, tail->log, tail->tail_file, "qlog");
		set_hard(search, search->expected, "the logs end before it", path, tail->tail_position);
	}
	return status;
}

static QcStatus
read_everything(EndSearch *search, QcError *err)
{
	QcRecovery *rc = search->rc;
	QcStatus	status = qc_merge_begin(rc, err);

	while (status == QC_OK && (status = qc_merge_next(rc, err)) == QC_OK)
	{
		status = look_at_bundle(search, err);
		if (status == QC_OK)
			status = qc_recover_tick(rc, "end", rc->bundle.seq, rc->durable_seq, err);
	}
	return status == QC_END ? QC_OK : status;
}

/* An entry that was durable is not there: refused, unless that was granted. */
static QcStatus
give_up(EndSearch *search, QcError *err)
{
	QcRecover  *r = search->rc->r;

	qc_give_tell(search->rc, search->hard);
	if (search->hard == r->give_up_seq)
	{
		r->required = search->hard - 1;
		return QC_OK;
	}
	r->refused = true;
	if (err != NULL)
		*err = search->hard_error;
	return QC_DAMAGED;
}

/* Both are reported, and what stands in the logs comes first. */
static QcStatus
lost_logs(QcRecovery *rc, QcStatus status, QcError *err)
{
	QcStatus	judged = qc_give_judge_logs(rc, status == QC_OK ? err : NULL);

	return status == QC_OK ? judged : status;
}

/* Read all logs and draw the conclusion. */
static QcStatus
find_end(EndSearch *search, QcError *err)
{
	QcRecovery *rc = search->rc;
	QcRecover  *r = rc->r;
	QcStatus	status = qc_epochs_reset(rc, err);

	if (status == QC_OK)
		status = read_everything(search, err);
	if (status != QC_OK)
		return status;
	r->required = r->copied || rc->durable_seq < r->mark ? r->mark : rc->durable_seq;
	status = pass_end(search, err);
	if (status == QC_OK && search->hard != QC_NO_SEQ &&
		(search->hard <= r->required || search->hard == r->give_up_seq))
		status = give_up(search, err);
	if (status == QC_OK || status == QC_DAMAGED)
		status = lost_logs(search->rc, status, err);
	if (status != QC_OK)
		return status;
	r->end = search->hard != QC_NO_SEQ ? search->hard : search->expected;
	for (uint32_t i = 0; i < search->nsoft; i++)
		if (search->soft[i] > r->required && search->soft[i] < r->end)
			r->end = search->soft[i];
	return QC_OK;
}

QcStatus
qc_recover_find_end(QcRecovery *rc, QcError *err)
{
	EndSearch	search = {.rc = rc, .expected = rc->r->mark + 1, .hard = QC_NO_SEQ};
	QcStatus	status = find_end(&search, err);

	qc_merge_end(rc);
	free(search.soft);
	return status;
}
