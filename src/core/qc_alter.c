/*
 * qc_alter.c
 *		Definitions of queues on their way from an entry into force.
 */
#include "qc_alter.h"

#include <assert.h>
#include <string.h>

#include "qc_catalog.h"
#include "qc_cursor.h"
#include "qc_purge.h"
#include "qc_wait.h"

static QcRef
take(QcState *st, QcClass class, bool promised)
{
	return promised ? qc_mem_alloc_reserved(&st->mem, class) : qc_mem_alloc(&st->mem, class);
}

static QcStatus
full(QcError *err)
{
	return qc_error_set(err, QC_FULL, "state memory is full");
}

bool
qc_grant_add(QcState *st, QcRef *first, uint32_t *ngrants, const QcQueueAlterItem *item,
			 bool promised)
{
	QcRef		ref = take(st, QC_CLASS_GRANT, promised);
	QcRef	   *at = first;

	if (ref == 0)
		return false;
	*QC_AT(st, QcGrant, ref) = (QcGrant)
	{
		item->grantee, item->grantor, item->privileges, 0
	};
	while (*at != 0)
		at = &QC_AT(st, QcGrant, *at)->next;
	*at = ref;
	(*ngrants)++;
	return true;
}

void
qc_grants_free(QcState *st, QcRef first)
{
	QcRef		next;

	for (QcRef ref = first; ref != 0; ref = next)
	{
		next = QC_AT(st, QcGrant, ref)->next;
		qc_mem_free(&st->mem, QC_CLASS_GRANT, ref);
	}
}

QcStatus
qc_alter_make(QcState *st, const QcQueueAlter *fields, uint64_t seq, bool promised, QcRef *alter,
			  QcError *err)
{
	QcRef		ref = take(st, QC_CLASS_ALTER, promised);
	QcAlter    *made = QC_AT(st, QcAlter, ref);
	QcStatus	status;

	if (made == NULL)
		return full(err);
	made->seq = seq;
	made->owner = fields->owner;
	made->flags = fields->flags;
	made->name_len = fields->name.len;
	made->name = take(st, qc_mem_name_class(fields->name.len), promised);
	status = made->name == 0 ? full(err) :
		qc_options_get(fields->options.bytes, fields->options.len, &made->options, err);
	if (status != QC_OK)
	{
		qc_alter_discard(st, ref);
		return status;
	}
	if (fields->name.len > 0)
		memcpy(qc_mem_at(&st->mem, made->name), fields->name.bytes, fields->name.len);
	*alter = ref;
	return QC_OK;
}

QcStatus
qc_alter_from_effect(QcState *st, const QcEffect *effect, uint64_t seq, bool promised, QcRef *alter,
					 QcError *err)
{
	QcStatus	status = qc_alter_make(st, &effect->u.queue_alter, seq, promised, alter, err);
	QcAlter    *made;

	if (status != QC_OK)
		return status;
	made = QC_AT(st, QcAlter, *alter);
	for (uint32_t i = 0; i < effect->nitems; i++)
	{
		QcQueueAlterItem item;

		qc_effect_item(effect, i, &item);
		if (!qc_grant_add(st, &made->grants, &made->ngrants, &item, promised))
		{
			qc_alter_discard(st, *alter);
			return full(err);
		}
	}
	return QC_OK;
}

/* Free the QcAlter with what it still owns. */
void
qc_alter_discard(QcState *st, QcRef alter)
{
	QcAlter    *made = QC_AT(st, QcAlter, alter);

	qc_grants_free(st, made->grants);
	qc_mem_free(&st->mem, qc_mem_name_class(made->name_len), made->name);
	qc_mem_free(&st->mem, QC_CLASS_ALTER, alter);
}

/* The default partition is delivered in order from now on, or not any more. */
static void
switch_ordered(QcState *st, QcQueue *queue, int64_t ordered)
{
	QcPartition *partition = QC_AT(st, QcPartition, queue->default_partition);

	if (queue->options.value[QC_OPT_ORDERED] == ordered || partition == NULL)
		return;
	qc_partition_touch(st, partition);
	for (QcCursor *cursor = QC_AT(st, QcCursor, partition->cursors); cursor != NULL;
		 cursor = QC_AT(st, QcCursor, cursor->next))
		qc_cursor_reorder(st, cursor, ordered != 0);
	queue->options.value[QC_OPT_ORDERED] = ordered;
	for (QcCursor *cursor = QC_AT(st, QcCursor, partition->cursors); cursor != NULL;
		 cursor = QC_AT(st, QcCursor, cursor->next))
		qc_cursor_refresh(st, cursor);
}

void
qc_alter_install(QcState *st, QcQueue *queue, QcRef alter)
{
	QcAlter    *made = QC_AT(st, QcAlter, alter);
	QcRef		grants = queue->grants;
	bool		resumed = (queue->flags & ~made->flags & QC_QUEUE_NO_POP) != 0;

	if (made->seq < queue->altered_seq || queue->state == QC_QUEUE_DEAD)
	{
		qc_alter_discard(st, alter);
		return;
	}
	switch_ordered(st, queue, made->options.value[QC_OPT_ORDERED]);
	queue->altered_seq = made->seq;
	queue->owner = made->owner;
	queue->flags = made->flags;
	queue->options = made->options;
	queue->grants = made->grants;
	queue->ngrants = made->ngrants;
	made->grants = grants;
	qc_queue_rename(st, queue, &made->name, &made->name_len);
	qc_dirty_queue(st, queue);
	qc_alter_discard(st, alter);
	for (QcRef ref = resumed ? queue->groups : 0; ref != 0; ref = QC_AT(st, QcGroup, ref)->next)
		qc_wake_resumed(st, QC_AT(st, QcGroup, ref));
}

bool
qc_queue_names_role(const QcState *st, const QcQueue *queue, uint32_t role)
{
	if (queue->owner == role)
		return true;
	for (const QcGrant *grant = QC_AT(st, QcGrant, queue->grants); grant != NULL;
		 grant = QC_AT(st, QcGrant, grant->next))
	{
		if (grant->grantee == role)
			return true;
	}
	return false;
}
