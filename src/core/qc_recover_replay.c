/*
 * qc_recover_replay.c
 *		Pass 2: applying the entries below the end, in seq order.
 *
 * Queue-only entries are settled at once, as being whole below the end makes them durable; joint ones stay open until a
 * decision that counts is met, or to the end (qc_recover_decide.c).  Gaps in the positions of a partition, left by void
 * entries and damaged single ones, become aborted ranges when the next append is applied, the same at every replay.
 *
 * Message records enter the memory index as far as it has room; its oldest entries make room for newer ones.
 */
#include "qc_recover_int.h"

#include <assert.h>
#include <string.h>

#include "qc_index.h"
#include "qc_volume.h"

#define LOST_OWNER	UINT32_MAX	/* owner of leases whose pop has not been seen to commit */
#define EVICT		1024

/* ---- one entry ---- */

/* The state must know the log of a queue that is about to be made; its directory may stand there already. */
static QcStatus
prepare_log(QcRecovery *rc, const QcQueueCreate *create, QcError *err)
{
	QcState    *st = rc->r->st;
	const QcLogTail *tail = qc_recover_tail(rc, create->log);

	if (tail == NULL || tail->gone || tail->start_file == 0 || qc_log_by_id(st, create->log) != NULL)
		return QC_OK;
	if (qc_log_add(st, create->log, tail->start_file, tail->start_position, tail->start_position,
				   false) == NULL)
		return qc_error_set(err, QC_FULL, "qlog.state_memory is full");
	return QC_OK;
}

/* Apply one effect, with what recovery knows better than the state machine. */
static QcStatus
apply_effect(QcRecovery *rc, const QcApply *apply, const QcEffect *effect, QcError *err)
{
	const QcRecoverHooks *hooks = &rc->r->hooks;
	const QcConfirm *confirm = &effect->u.confirm;
	QcStatus	status;

	switch (effect->kind)
	{
		case QC_EFFECT_DECISION:
			qc_decisions_apply(rc, apply->seq, effect);
			return QC_OK;
		case QC_EFFECT_CONFIRM:
			if (!hooks->in_history(hooks->context, confirm->timeline, confirm->lsn))
				return QC_OK;
			break;
		case QC_EFFECT_QUEUE_CREATE:
			status = prepare_log(rc, &effect->u.queue_create, err);
			if (status != QC_OK)
				return status;
			break;
		default:
			break;
	}
	return qc_apply_effect(rc->r->st, apply, effect, err);
}

/* Each log now ends behind this entry. */
static void
move_tails(QcRecovery *rc)
{
	for (uint32_t i = 0; i < rc->bundle.nparts; i++)
	{
		const QcBundlePart *part = &rc->bundle.parts[i];
		QcLog	   *log = qc_log_by_id(rc->r->st, part->log);

		if (log == NULL)
			continue;
		log->file = part->end_file;
		log->tail = part->end_position;
		qc_dirty_log(rc->r->st, log);
	}
}

static void
index_record(QcState *st, uint64_t seq, QcLog *log, const QcBundleRecord *record)
{
	QcPartition *partition = qc_partition_by_id(st, record->partition);
	bool		added;

	if (partition == NULL)
		return;
	qc_volume_add(st, partition, seq, record->size);
	added = qc_index_add(st, log, partition, record->first, record->count, record->file,
						 record->position, record->size, false);
	if (!added && qc_index_evict(st, EVICT))
		added = qc_index_add(st, log, partition, record->first, record->count, record->file,
							 record->position, record->size, false);
	if (!added)
	{
		log->index_file = log->file;
		log->index_position = log->tail;
	}
}

static void
index_bundle(QcRecovery *rc)
{
	const QcBundle *bundle = &rc->bundle;

	for (uint32_t i = 0; i < bundle->nparts; i++)
	{
		const QcBundlePart *part = &bundle->parts[i];
		QcLog	   *log = qc_log_by_id(rc->r->st, part->log);

		for (uint32_t k = 0; log != NULL && !part->is_void && k < part->nrecords; k++)
			index_record(rc->r->st, bundle->seq, log, &bundle->records[part->record + k]);
	}
}

static QcStatus
apply_effects(QcRecovery *rc, const QcApply *apply, const QcWhole *whole, QcError *err)
{
	QcReader	r = whole->entry.effects;
	QcEffect	effect;
	QcStatus	status;

	if (whole->solo)
	{
		effect = qc_bundle_solo_effect(rc, whole);
		return apply_effect(rc, apply, &effect, err);
	}
	while ((status = qc_effect_get(&r, &effect, err)) == QC_OK)
	{
		status = apply_effect(rc, apply, &effect, err);
		if (status != QC_OK)
			return status;
	}
	return status == QC_END ? QC_OK : status;
}

QcStatus
qc_recover_apply(QcRecovery *rc, const QcWhole *whole, QcError *err)
{
	QcState    *st = rc->r->st;
	QcApply		apply = {.seq = rc->bundle.seq, .created_at = whole->part->created_at,
		.monotonic = rc->r->monotonic, .owner = LOST_OWNER, .recovering = true};
	char		path[QC_PATH_MAX];
	QcStatus	status;

	apply.xid = whole->solo ? 0 : whole->entry.xid;
	if (apply.created_at > st->last_created_at)
		st->last_created_at = apply.created_at;
	if (!qc_apply_begin(st, &apply))
		return qc_error_set(err, QC_FULL, "qlog.state_memory is full");
	if (!whole->solo)
		QC_AT(st, QcOpen, apply.open)->carried = (whole->entry.flags & QC_ENTRY_CARRIED) != 0;
	status = apply_effects(rc, &apply, whole, err);
	if (status != QC_OK)
	{
		qc_path_file(path, rc->r->files->layout, whole->part->log, whole->part->end_file, "qlog");
		if (err != NULL)
			qc_error_locate(err, path, whole->part->end_position);
		return status;
	}
	if (apply.xid == 0)
		qc_open_settle(st, QC_AT(st, QcOpen, apply.open), true, 0, apply.monotonic);
	move_tails(rc);
	index_bundle(rc);
	return QC_OK;
}

/* ---- damage ---- */

/* Put a queue out of service. */
static void
damage_queue(QcRecovery *rc, QcQueue *queue, const QcSpot *spot)
{
	if (queue->damaged || queue->state == QC_QUEUE_DEAD)
		return;
	queue->damaged = 1;
	queue->damage_file = spot->file;
	queue->damage_position = spot->position;
	qc_dirty_queue(rc->r->st, queue);
	rc->r->damaged_queues++;
}

/* All queues of the damaged place's log: it may have held a message of any. */
static void
damage_queues(QcRecovery *rc, const QcSpot *spot)
{
	QcState    *st = rc->r->st;
	uint64_t	log = rc->logs[spot->log_index].log;

	for (QcQueue *queue = QC_AT(st, QcQueue, st->queues.head); queue != NULL;
		 queue = QC_AT(st, QcQueue, queue->all.next))
		if (queue->log_id == log)
			damage_queue(rc, queue, spot);
}

/* The part of the bundle in a log; NULL = none, or one that is void. */
static const QcBundlePart *
part_in(const QcBundle *bundle, uint64_t log)
{
	for (uint32_t i = 0; i < bundle->nparts; i++)
		if (bundle->parts[i].log == log && !bundle->parts[i].is_void)
			return &bundle->parts[i];
	return NULL;
}

/* Does the part hold every message record that this append names? */
static bool
holds_all(const QcBundle *bundle, const QcBundlePart *part, const QcAppend *append)
{
	uint32_t	found = 0;

	for (uint32_t k = 0; k < part->nrecords; k++)
	{
		const QcBundleRecord *record = &bundle->records[part->record + k];

		found += record->partition == append->partition && record->first >= append->first &&
			record->first < append->first + append->count;
	}
	return found == append->records;
}

/*
 * Some message records of the entry just applied are damaged.	The entry tells which they were: a queue that it appended
 * to and that misses one goes out of service, others of the same log do not.
 */
static void
damage_of_bundle(QcRecovery *rc, const QcEntry *entry)
{
	QcReader	r = entry->effects;
	QcEffect	effect;

	while (qc_effect_get(&r, &effect, NULL) == QC_OK)
	{
		const QcAppend *append = &effect.u.append;
		const QcBundlePart *part;
		const QcPartition *partition;

		if (effect.kind != QC_EFFECT_APPEND)
			continue;
		part = part_in(&rc->bundle, append->log);
		partition = qc_partition_by_id(rc->r->st, append->partition);
		if (part != NULL && partition != NULL && !holds_all(&rc->bundle, part, append))
			damage_queue(rc, QC_AT(rc->r->st, QcQueue, partition->queue), &rc->spots[part->spot]);
	}
}

/* Entries [seq + 1 of the state, seq) were damaged solo records, of which nothing is known but their queue. */
static void
pass_damaged(QcRecovery *rc, uint64_t seq)
{
	QcState    *st = rc->r->st;

	while (st->seq + 1 < seq)
	{
		QcSpot	   *spot = qc_merge_excuse(rc, st->seq + 1);

		/* pass 1 has found one for each */
		assert(spot != NULL);
		if (spot == NULL)
			return;
		st->seq++;
		damage_queues(rc, spot);
	}
}

/* ---- the pass ---- */

static QcStatus
replay_bundle(QcRecovery *rc, QcError *err)
{
	QcBundleState state;
	QcWhole		whole;
	const char *why;
	QcStatus	status = qc_bundle_judge(rc, &state, &whole, &why, err);

	if (status != QC_OK || state == QC_BUNDLE_VOID)
		return status;
	assert(state != QC_BUNDLE_PARTIAL);
	pass_damaged(rc, rc->bundle.seq);
	status = qc_recover_apply(rc, &whole, err);
	if (status == QC_OK && !whole.solo)
		status = qc_epochs_learn(rc, &whole.entry, err);
	if (status == QC_OK && state == QC_BUNDLE_DAMAGED)
		damage_of_bundle(rc, &whole.entry);
	rc->r->replayed++;
	return status;
}

static QcStatus
replay(QcRecovery *rc, QcError *err)
{
	QcStatus	status = qc_epochs_reset(rc, err);

	if (status == QC_OK)
		status = qc_merge_begin(rc, err);
	while (status == QC_OK && qc_merge_peek(rc) < rc->r->end)
	{
		status = qc_merge_next(rc, err);
		if (status == QC_OK && rc->bundle.seq > rc->r->mark)
			status = replay_bundle(rc, err);
		if (status == QC_OK)
			status = qc_recover_tick(rc, "replay", rc->bundle.seq, rc->r->end, err);
	}
	if (status == QC_OK)
		pass_damaged(rc, rc->r->end);
	return status;
}

QcStatus
qc_recover_replay(QcRecovery *rc, QcError *err)
{
	QcStatus	status = replay(rc, err);

	qc_merge_end(rc);
	if (status == QC_OK && rc->r->given_seq != 0)
		qc_give_confirmed(rc);
	return status;
}
