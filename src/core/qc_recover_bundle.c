/*
 * qc_recover_bundle.c
 *		Is a bundle of records the whole of its entry?  And the epochs, which decide what counts.
 *
 * An entry is whole when exactly the logs that it names have a part that agrees: the log with the lowest id the entry
 * itself, the others stubs with its digest; copies and epoch the same everywhere; and in each log exactly the message
 * records that its append effects name, in their order, without a gap in positions.
 */
#include "qc_recover_int.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "qc_search.h"

/* ---- collecting ---- */

void
qc_bundle_clear(QcBundle *bundle, uint64_t seq)
{
	bundle->seq = seq;
	bundle->nparts = bundle->nrecords = bundle->nbytes = 0;
}

/* The part that this log is in the middle of, or a new one. */
static QcStatus
current_part(QcBundle *bundle, uint32_t log_index, uint64_t log, QcBundlePart **part, QcError *err)
{
	QcBundlePart *last = bundle->nparts == 0 ? NULL : &bundle->parts[bundle->nparts - 1];
	QcStatus	status;

	if (last == NULL || last->log_index != log_index || last->end != QC_KIND_PAD)
	{
		status = qc_array_grow(&bundle->parts, &bundle->cap_parts, bundle->nparts + 1,
							   sizeof(QcBundlePart), err);
		if (status != QC_OK)
			return status;
		last = &bundle->parts[bundle->nparts++];

		memset(last, 0, sizeof(*last));
		last->log = log;
		last->log_index = log_index;
		last->record = bundle->nrecords;
		last->end = QC_KIND_PAD;
	}
	*part = last;

	return QC_OK;
}

static QcStatus
add_message(QcBundle *bundle, QcBundlePart *part, const QcRecord *record, uint64_t file,
			uint64_t position, QcError *err)
{
	QcStatus	status = qc_array_grow(&bundle->records, &bundle->cap_records,
									   bundle->nrecords + 1, sizeof(QcBundleRecord), err);

	if (status != QC_OK)
		return status;
	bundle->records[bundle->nrecords++] = (QcBundleRecord)
	{
		record->partition, record->first, record->count, record->len + 4, file, position
	};
	part->nrecords++;
	return QC_OK;
}

QcStatus
qc_bundle_add(QcBundle *bundle, uint32_t log_index, uint64_t log, const QcRecord *record,
			  uint64_t file, uint64_t position, QcError *err)
{
	QcBundlePart *part;
	QcStatus	status = current_part(bundle, log_index, log, &part, err);

	if (status == QC_OK && record->count > 0)
		status = add_message(bundle, part, record, file, position, err);
	if (status != QC_OK)
		return status;
	part->end_file = file;
	part->end_position = position + record->len + 4;
	if (record->kind == QC_KIND_MESSAGES)
		return QC_OK;
	part->end = (uint8_t) record->kind;
	part->copies = record->copies;
	part->epoch = record->epoch;
	part->created_at = record->created_at;
	if (record->kind == QC_KIND_SOLO)
		return QC_OK;
	status = qc_array_grow(&bundle->bytes, &bundle->cap_bytes, bundle->nbytes + record->payload_len,
						   1, err);
	if (status != QC_OK)
		return status;
	part->payload = bundle->nbytes;
	part->payload_len = record->payload_len;
	memcpy(bundle->bytes + bundle->nbytes, record->payload, record->payload_len);
	bundle->nbytes += record->payload_len;
	return QC_OK;
}

/* By log; parts of one log stay in their order in it. */
static int
compare_parts(const void *a, const void *b)
{
	const QcBundlePart *left = a;
	const QcBundlePart *right = b;

	if (left->log != right->log)
		return left->log < right->log ? -1 : 1;
	if (left->end_file != right->end_file)
		return left->end_file < right->end_file ? -1 : 1;
	return left->end_position < right->end_position ? -1 : 1;
}

void
qc_bundle_sort(QcBundle *bundle)
{
	if (bundle->nparts > 1)
		qsort(bundle->parts, bundle->nparts, sizeof(QcBundlePart), compare_parts);
}

/* ---- epochs ---- */

QcStatus
qc_epochs_reset(QcRecovery *rc, QcError *err)
{
	const QcState *st = rc->r->st;
	QcStatus	status = qc_array_grow(&rc->epochs.rows, &rc->epochs.cap, st->nepochs + 1,
									   sizeof(QcEpochRow), err);

	if (status != QC_OK)
		return status;
	memcpy(rc->epochs.rows, st->epochs, st->nepochs * sizeof(QcEpochRow));
	rc->epochs.count = st->nepochs;
	return QC_OK;
}

QcStatus
qc_epochs_add(QcRecovery *rc, uint64_t epoch, uint64_t first_seq, bool *last, QcError *err)
{
	QcEpochList *list = &rc->epochs;
	uint32_t	at = list->count;
	QcStatus	status;

	*last = false;
	for (uint32_t i = 0; i < list->count; i++)
		if (list->rows[i].epoch == epoch)
			return QC_OK;
	status = qc_array_grow(&list->rows, &list->cap, list->count + 1, sizeof(QcEpochRow), err);
	if (status != QC_OK)
		return status;

	/* One that was to begin where a known one begins never came to be. */
	while (at > 0 && list->rows[at - 1].first_seq >= first_seq)
		at--;
	*last = at == list->count;
	memmove(&list->rows[at + 1], &list->rows[at], (list->count - at) * sizeof(QcEpochRow));
	list->rows[at] = (QcEpochRow)
	{
		epoch, first_seq, 0, 0
	};
	list->count++;
	return QC_OK;
}

bool
qc_epochs_ended(const QcEpochList *list, uint64_t epoch, uint64_t seq)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (list->rows[i].epoch == epoch)
			return i + 1 < list->count && list->rows[i + 1].first_seq <= seq;
	return false;
}

QcStatus
qc_epochs_learn(QcRecovery *rc, const QcEntry *entry, QcError *err)
{
	QcReader	r = entry->effects;
	QcEffect	effect;
	bool		last;
	QcStatus	status;

	while ((status = qc_effect_get(&r, &effect, err)) == QC_OK)
	{
		if (effect.kind != QC_EFFECT_EPOCH)
			continue;
		status = qc_epochs_add(rc, effect.u.epoch.epoch, effect.u.epoch.first_seq, &last, err);
		if (status != QC_OK)
			return status;
	}
	return status == QC_END ? QC_OK : status;
}

/* Does the entry of this part begin the epoch that the part belongs to? */
static bool
begins_epoch(const QcBundle *bundle, const QcBundlePart *part)
{
	QcEntry		entry;
	QcEffect	effect;

	if (part->end != QC_KIND_ENTRY ||
		qc_entry_decode(bundle->bytes + part->payload, part->payload_len, &entry, NULL) != QC_OK)
		return false;
	while (qc_effect_get(&entry.effects, &effect, NULL) == QC_OK)
		if (effect.kind == QC_EFFECT_EPOCH && effect.u.epoch.epoch == part->epoch)
			return true;
	return false;
}

/* Find the parts that do not count; returns the number of those that do. */
static uint32_t
sort_out_void(QcRecovery *rc)
{
	QcBundle   *bundle = &rc->bundle;
	const QcBundlePart *first = NULL;
	bool		several = false;
	uint32_t	live = 0;

	for (uint32_t i = 0; i < bundle->nparts; i++)
	{
		QcBundlePart *part = &bundle->parts[i];

		part->is_void = (part->end == QC_KIND_ENTRY || part->end == QC_KIND_STUB) &&
			qc_epochs_ended(&rc->epochs, part->epoch, bundle->seq);
		if (part->is_void)
			continue;
		several |= first != NULL && first->epoch != part->epoch;
		first = part;
		live++;
	}
	for (uint32_t i = 0; i < bundle->nparts && several; i++)
	{
		if (bundle->parts[i].is_void || !begins_epoch(bundle, &bundle->parts[i]))
			continue;
		for (uint32_t k = 0; k < bundle->nparts; k++)
		{
			QcBundlePart *other = &bundle->parts[k];

			if (other->is_void || other->epoch == bundle->parts[i].epoch)
				continue;
			other->is_void = true;
			live--;
		}
		break;
	}
	return live;
}

/* ---- judging ---- */

/* The next part that counts, from i on. */
static QcBundlePart *
next_live(QcBundle *bundle, uint32_t *i)
{
	while (*i < bundle->nparts && bundle->parts[*i].is_void)
		(*i)++;
	return *i < bundle->nparts ? &bundle->parts[(*i)++] : NULL;
}

static QcBundlePart *
live_part(QcBundle *bundle, uint64_t log)
{
	uint32_t	low = QC_LOWER_BOUND(bundle->parts, bundle->nparts, QcBundlePart, log, log);

	while (low < bundle->nparts && bundle->parts[low].log == log && bundle->parts[low].is_void)
		low++;
	return low < bundle->nparts && bundle->parts[low].log == log ? &bundle->parts[low] : NULL;
}

/* Consume the records that an append names; damaged ones are holes of unknown size. */
static bool
match_append(const QcBundle *bundle, QcBundlePart *part, const QcAppend *append)
{
	uint64_t	position = append->first;
	uint64_t	end = append->first + append->count;
	bool		hole = false;

	if (append->records == 0 || append->count == 0 || end < append->first)
		return false;
	for (uint32_t k = 0; k < append->records; k++)
	{
		const QcBundleRecord *record = part->matched < part->nrecords ?
			&bundle->records[part->record + part->matched] : NULL;

		if (record != NULL && record->partition == append->partition &&
			record->first >= position && record->count <= end - position &&
			record->first <= end - record->count && (hole || record->first == position))
		{
			position = record->first + record->count;
			part->matched++;
			hole = false;
		}
		else if (part->ndamaged > 0)
		{
			part->ndamaged--;
			hole = true;
		}
		else
			return false;
	}
	return hole || position == end;
}

/* The message records of all parts are those that the effects name; *holes = some are damaged. */
static const char *
match_records(QcBundle *bundle, const QcEntry *entry, bool *holes)
{
	QcReader	r = entry->effects;
	QcEffect	effect;
	QcBundlePart *part;

	*holes = false;
	for (uint32_t i = 0; (part = next_live(bundle, &i)) != NULL;)
	{
		part->matched = 0;
		*holes |= part->ndamaged > 0;
	}
	while (qc_effect_get(&r, &effect, NULL) == QC_OK)
	{
		if (effect.kind != QC_EFFECT_APPEND)
			continue;
		part = live_part(bundle, effect.u.append.log);
		if (part == NULL)
			return "it appends to a log that it does not name";
		if (!match_append(bundle, part, &effect.u.append))
			return "a message record is missing";
	}
	for (uint32_t i = 0; (part = next_live(bundle, &i)) != NULL;)
		if (part->matched != part->nrecords || part->ndamaged != 0)
			return "a message record belongs to no append";
	return NULL;
}

/* Does this part agree with the entry, which is in the part `whole`? */
static bool
part_agrees(const QcBundle *bundle, const QcBundlePart *part, const QcBundlePart *whole)
{
	QcRecord	stub;

	if (part->copies != whole->copies || part->epoch != whole->epoch)
		return false;
	if (part == whole)
		return true;
	if (part->end != QC_KIND_STUB)
		return false;
	memset(&stub, 0, sizeof(stub));
	stub.kind = QC_KIND_STUB;
	stub.payload = bundle->bytes + part->payload;
	stub.payload_len = part->payload_len;
	return qc_record_stub_matches(&stub, bundle->bytes + whole->payload, whole->payload_len);
}

/* Exactly the logs that the entry names have a part. */
static const char *
match_parts(QcBundle *bundle, const QcWhole *whole, uint32_t live)
{
	uint32_t	i = 0;

	if (whole->part->copies != whole->entry.nlogs)
		return "it counts other logs than it names";
	if (live < whole->entry.nlogs)
		return "a part is missing";
	for (uint32_t k = 0; k < whole->entry.nlogs; k++)
	{
		const QcBundlePart *part = next_live(bundle, &i);

		if (part == NULL || part->log != qc_entry_log(&whole->entry, k))
			return "a part is missing";
		if (part->end == QC_KIND_PAD)
			return "a part has no end";
		if (!part_agrees(bundle, part, whole->part))
			return "a part does not agree with the others";
	}
	return live == whole->entry.nlogs ? NULL : "a log has a part that the entry does not name";
}

QcStatus
qc_bundle_judge(QcRecovery *rc, QcBundleState *state, QcWhole *whole, const char **why, QcError *err)
{
	QcBundle   *bundle = &rc->bundle;
	uint32_t	live = sort_out_void(rc);
	uint32_t	i = 0;
	bool		holes = false;
	QcStatus	status;

	*why = NULL;
	memset(whole, 0, sizeof(*whole));
	whole->part = next_live(bundle, &i);
	*state = whole->part == NULL ? QC_BUNDLE_VOID : QC_BUNDLE_PARTIAL;
	if (whole->part == NULL)
		return QC_OK;
	if (whole->part->end == QC_KIND_SOLO)
	{
		whole->solo = true;
		if (live != 1 || whole->part->nrecords != 1)
			*why = "other records have the seq of a single one";
		else
			*state = QC_BUNDLE_WHOLE;
		return QC_OK;
	}
	if (whole->part->end != QC_KIND_ENTRY)
	{
		*why = "the entry itself is missing";
		return QC_OK;
	}
	status = qc_entry_decode(bundle->bytes + whole->part->payload, whole->part->payload_len,
							 &whole->entry, err);
	if (status == QC_VERSION)
		return status;
	*why = status != QC_OK ? "it is malformed" : match_parts(bundle, whole, live);
	if (*why == NULL)
		*why = match_records(bundle, &whole->entry, &holes);
	if (*why == NULL)
		*state = holes ? QC_BUNDLE_DAMAGED : QC_BUNDLE_WHOLE;
	return QC_OK;
}

QcEffect
qc_bundle_solo_effect(const QcRecovery *rc, const QcWhole *whole)
{
	const QcBundleRecord *record = &rc->bundle.records[whole->part->record];
	QcEffect	effect;

	assert(whole->solo);
	memset(&effect, 0, sizeof(effect));
	effect.kind = QC_EFFECT_APPEND;
	effect.u.append = (QcAppend)
	{
		record->partition, whole->part->log, record->first, record->count, 1
	};
	return effect;
}
