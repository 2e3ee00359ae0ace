/*
 * fn_cancel.c
 *		queue_cancel: a delayed message that has not entered its partition yet is not to be delivered.
 *
 * In force at once: whether the message is still waiting can only be said of a moment.  The lane's items are asked for 32
 * bits of the id, in steps, and what seems to be it is read, without any lock.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/uuid.h"

#include "qlog_acl.h"
#include "qlog_commit.h"
#include "qlog_fetch.h"
#include "qlog_lookup.h"
#include "qlog_report.h"
#include "qlog_shmem.h"

#include "../core/qc_dedup.h"
#include "../core/qc_delay.h"
#include "../core/qc_lane.h"

/* Arguments. */
enum
{
	ARG_QUEUE,
	ARG_MESSAGE_ID
};

#define ITEMS_STEP 4096			/* asked per hold of the lock */

PG_FUNCTION_INFO_V1(queue_cancel);

typedef struct Cancel
{
	uint64		queue;
	uint32		hash;
	uint64		lane;			/* id */
	uint64		at;				/* position to go on with */
	QlogSpot	spot;			/* what seems to be it */
	uint64		target;
	uint64		seq;			/* newest entry of then */
} Cancel;

/* Look at a step of items; true = one has the hash.  lane is 0 when the last one has been asked. */
static bool
find_candidate(Cancel *cancel)
{
	QcQueue    *queue;
	QcPartition *lane;
	QcLaneItem *item;
	bool		found = false;
	QcRef		hint = 0;

	qlog_lock_state();
	queue = qc_queue_by_id(qlog_state, cancel->queue);
	lane = queue == NULL ? NULL : qc_delay_lane(qlog_state, queue);
	item = lane == NULL ? NULL : qc_lane_find(qlog_state, lane, cancel->at);
	if (item == NULL && lane != NULL)
		item = qc_lane_seek(qlog_state, lane, cancel->at, 0);
	cancel->lane = 0;
	for (int n = 0; item != NULL && !found; n++, item = QC_AT(qlog_state, QcLaneItem, item->of_lane.next))
	{
		cancel->lane = lane->id;
		cancel->at = item->position;
		if (n == ITEMS_STEP)
			break;
		cancel->at++;
		found = item->state == QC_LANE_ITEM_LIVE && item->hash == cancel->hash;
		if (found)
		{
			cancel->target = item->target;
			qlog_spot_note(lane, item->position, 0, &hint, &cancel->spot);
		}
	}
	cancel->seq = qlog_state->seq;
	qlog_unlock_state();
	return found;
}

/* QlogChoose: it may have been moved or cancelled meanwhile. */
static bool
choose(void *context, QcSmallPlan *small)
{
	Cancel	   *cancel = context;
	QcCancel	effect = {.lane = cancel->lane, .position = cancel->spot.position};
	QcWriter	w;

	if (!qc_delay_waits(qlog_state, cancel->lane, cancel->spot.position))
		return false;
	w = qc_plan_small_writer(small);
	qc_effect_put(&w, QC_EFFECT_CANCEL, &effect, 0);
	qc_plan_small_done(small, &w, 1);
	return true;
}

/* Log the cancellation; false = the message has left the lane. */
static bool
submit(Cancel *cancel)
{
	QcSmallPlan *small = palloc(sizeof(QcSmallPlan));
	QcCancel	effect = {0};
	size_t		size = qc_effect_size(QC_EFFECT_CANCEL, &effect, 0);
	uint64		seq;

	qc_plan_small(small, palloc(QC_SMALL_BUFFER(size)), size);
	small->plan.pid = (uint32) MyProcPid;
	seq = qlog_submit(small, choose, NULL, cancel);
	if (seq == 0)
		return false;
	qlog_flush(seq);
	return true;
}

/* The same dedup id may be pushed again. */
static void
forget_dedup(const QlogQueue *queue, const Cancel *cancel, const uint8 *hash, const uint8 *id)
{
	qlog_lock_state();
	qc_dedup_forget(qlog_state, cancel->target, hash, id, qlog_now(),
					queue->options.value[QC_OPT_DEDUP_WINDOW]);
	qlog_unlock_state();
}

Datum
queue_cancel(PG_FUNCTION_ARGS)
{
	Cancel		cancel = {0};
	QlogQueue	queue;
	pg_uuid_t  *id;

	qlog_enter("queue_cancel()");
	qlog_require(fcinfo, ARG_QUEUE, "queue");
	qlog_require(fcinfo, ARG_MESSAGE_ID, "message_id");
	qlog_queue_get(qlog_queue_name(PG_GETARG_DATUM(ARG_QUEUE)), QLOG_PUSH, &queue);
	id = PG_GETARG_UUID_P(ARG_MESSAGE_ID);
	cancel.queue = queue.id;
	cancel.hash = qc_id_hash(id->data);
	do
	{
		QcMessage	message;
		int64_t		created_at;
		QcError		err;
		bool		lost;
		uint8		hash[QC_HASH_SIZE];

		CHECK_FOR_INTERRUPTS();
		if (!find_candidate(&cancel))
			continue;
		qlog_write(cancel.seq);
		lost = qlog_fetch_try(&cancel.spot, &message, &created_at, &err) != QC_OK;
		if (lost && err.code == QC_NOTFOUND)
			continue;			/* it has left the lane meanwhile */
		if (lost && !qlog_fetch_lost(err.code))
			qlog_report(ERROR, &err, "could not read a message");

		/* Of one that cannot be read its hash is all that is left. */
		if (!lost && memcmp(message.id, id->data, QC_ID_SIZE) != 0)
			continue;
		if (!submit(&cancel))
			break;
		if (!lost)
			qc_frame_hash(&message, hash);
		if (!lost && message.dedup_len > 0)
			forget_dedup(&queue, &cancel, hash, id->data);
		PG_RETURN_BOOL(true);
	} while (cancel.lane != 0);
	PG_RETURN_BOOL(false);
}
