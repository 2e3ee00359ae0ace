/*
 * qc_repair.c
 *		What a repair does to the state (contract in qc_repair.h).
 */
#include "qc_repair.h"

#include "qc_cursor.h"
#include "qc_lane.h"
#include "qc_purge.h"
#include "qc_retain.h"

/* The messages are gone, and so is what cursors and leases hold of them. */
static void
lose(QcState *st, QcPartition *partition, const QcLostItem *item, bool promised)
{
	if (partition->lane != QC_LANE_NONE)
	{
		qc_lane_remove_range(st, partition, item->first, item->count);
		return;
	}
	qc_partition_touch(st, partition);
	for (QcCursor *cursor = QC_AT(st, QcCursor, partition->cursors); cursor != NULL;
		 cursor = QC_AT(st, QcCursor, cursor->next))
		qc_cursor_void(st, cursor, item->first, item->count);
	qc_retain_range(st, partition, item->first, item->first + item->count, promised);
	qc_dirty_partition(st, partition);
}

QcStatus
qc_repair_lost(QcState *st, const QcApply *apply, const QcEffect *effect, QcError *err)
{
	for (uint32_t i = 0; i < effect->nitems; i++)
	{
		QcLostItem	item;
		QcPartition *partition;

		/* A queue that is dropped may have gone before. */
		qc_effect_item(effect, i, &item);
		partition = qc_partition_by_id(st, item.partition);
		if (partition == NULL)
			continue;
		if (item.first > partition->next || item.count > partition->next - item.first)
			return qc_error_set(err, QC_DAMAGED, "messages behind the end of partition %llu are lost",
								(unsigned long long) item.partition);
		lose(st, partition, &item, !apply->recovering);
	}
	return QC_OK;
}

void
qc_repair_done(QcState *st, const QcRepair *repair)
{
	QcQueue    *queue = qc_queue_by_id(st, repair->queue);

	if (queue == NULL || !queue->damaged)
		return;
	queue->damaged = 0;
	queue->damage_file = queue->damage_position = 0;
	qc_dirty_queue(st, queue);
}

bool
qc_queue_damage(QcState *st, QcQueue *queue, uint64_t file, uint64_t position)
{
	if (queue->damaged || queue->state == QC_QUEUE_DEAD)
		return false;
	queue->damaged = 1;
	queue->damage_file = file;
	queue->damage_position = position;
	qc_dirty_queue(st, queue);
	return true;
}
