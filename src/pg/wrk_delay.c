/*
 * wrk_delay.c
 *		The timer worker's third duty: delayed messages that are due go to the end of their partition.
 *
 * One entry holds the copies and the effect that takes the originals out of the delay lane, for messages of one queue, in
 * the order of their due times.  They are noted under the state lock and read without it; the entry is reserved only when
 * all of them still wait.  It travels in the WAL, and is seen when it is there: a transaction that consumes the copy may
 * survive in the WAL alone, and would answer for a message that still waits.  What cannot be moved now stays due and holds up only its own queue, a message that is damaged
 * only itself.
 */
#include "wrk_timer.h"

#include "utils/memutils.h"

#include "qlog_commit.h"
#include "qlog_fetch.h"
#include "qlog_guc.h"
#include "qlog_stop.h"

#include "../core/qc_delay.h"

#define DUE_MAX		256			/* messages moved by one entry */
#define BYTES_MAX	(4 * 1024 * 1024)	/* ... and about as many bytes */
#define CLOCK_STEP	1024		/* timers armed anew per hold of the state lock */
#define PUT_OFF_US	10000000	/* until what failed is tried again */
#define LOST_US		600000000	/* ... and what is damaged */

/* Messages of one queue that are moved together. */
typedef struct Moving
{
	uint64		queue;
	uint64		log;
	int			level;
	uint32		n;
	QcDelayed	delayed[DUE_MAX];
} Moving;

/* Note what is due first, of one queue.	State lock. */
static void
collect(Moving *moving)
{
	const QcQueue *queue;
	uint32		n = qc_delay_next(qlog_state, moving->delayed, DUE_MAX);

	moving->n = 0;
	if (n == 0)
		return;
	moving->queue = moving->delayed[0].queue;
	while (moving->n < n && moving->delayed[moving->n].queue == moving->queue)
		moving->n++;
	queue = qc_queue_by_id(qlog_state, moving->queue);
	moving->log = queue->log_id;
	moving->level = (int) queue->options.value[QC_OPT_COMPRESSION_LEVEL];
	if (moving->level < 0)
		moving->level = qlog_compression_level;
}

/* QlogCheck: none of them was moved or cancelled meanwhile, and their queue takes entries. State lock. */
static bool
still_due(void *context)
{
	const Moving *moving = context;

	for (uint32 i = 0; i < moving->n; i++)
	{
		const QcDelayed *delayed = &moving->delayed[i];

		if (!qc_delay_waits(qlog_state, delayed->lane, delayed->position) ||
			qc_partition_by_id(qlog_state, delayed->target) == NULL)
			return false;
	}
	return true;
}

/* Read a message and put the operation that copies it. */
static QcStatus
put_copy(const Moving *moving, uint32 i, QcOp *op, QcError *err)
{
	const QcDelayed *delayed = &moving->delayed[i];
	QlogSpot	spot = {.partition = delayed->lane, .position = delayed->position,
		.location = delayed->location};
	QcMessage	message;
	int64_t		created_at;
	QcStatus	status = qlog_fetch_try(&spot, &message, &created_at, err);
	uint8	   *frame;
	uint8	   *hash;
	QcWriter	w;

	if (status == QC_OK)
		status = qlog_fetch_movable(&message, err);
	if (status != QC_OK)
		return status;
	op->frames_len = qc_frame_size(&message);
	frame = palloc(op->frames_len);
	hash = palloc(QC_HASH_SIZE);
	qc_writer_init(&w, frame, op->frames_len);
	qc_frame_put(&w, &message);
	qc_frame_hash(&message, hash);
	op->kind = QC_OP_PUSH;
	op->moved = true;
	op->partition = delayed->target;
	op->log = moving->log;
	op->level = moving->level;
	op->count = 1;
	op->frames = frame;
	op->hashes = hash;
	return QC_OK;
}

/* The effect that takes the messages out of their lane. */
static void
put_fire(const Moving *moving, QcOp *op)
{
	QcFire		fire = {.lane = moving->delayed[0].lane};
	uint8	   *bytes;
	QcWriter	w;

	op->kind = QC_OP_EFFECT;
	op->effect_len = qc_effect_size(QC_EFFECT_FIRE, &fire, moving->n);
	bytes = palloc(op->effect_len);
	qc_writer_init(&w, bytes, op->effect_len);
	qc_effect_put(&w, QC_EFFECT_FIRE, &fire, moving->n);
	for (uint32 i = 0; i < moving->n; i++)
	{
		QcFireItem	item = {.position = moving->delayed[i].position};

		qc_effect_put_item(&w, QC_EFFECT_FIRE, &item);
	}
	op->effect = bytes;
}

/* Read the messages; those behind a batch of large ones, or behind one that cannot be read, come next. */
static QcStatus
put_copies(Moving *moving, QcOp *ops, QcError *err)
{
	uint64		bytes = 0;

	for (uint32 i = 0; i < moving->n; i++)
	{
		QcStatus	status = put_copy(moving, i, &ops[i], err);

		if (status != QC_OK && i == 0)
		{
			/* One that is lost, or does not fit, holds up no other. */
			if (qlog_fetch_lost(status) || status == QC_LIMIT)
				moving->n = 1;
			return status;
		}
		bytes += status == QC_OK ? ops[i].frames_len : 0;
		if (status != QC_OK || bytes > BYTES_MAX)
			moving->n = status == QC_OK ? i + 1 : i;
	}
	return QC_OK;
}

static void *
plan_alloc(void *context, size_t size)
{
	return MemoryContextAllocExtended(context, size, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
}

/* Read and log what was noted; the messages stay where they are when that fails. */
static QcStatus
move(Moving *moving, uint64 seq, QcError *err)
{
	QcOp	   *ops = palloc0((DUE_MAX + 1) * sizeof(QcOp));
	QcPlan	   *plan = palloc(sizeof(QcPlan));
	QcStatus	status;

	if (!qlog_write_noerror(seq, err))
		return err->code;
	status = put_copies(moving, ops, err);
	QLOG_STOP("delay-after-read");
	if (status != QC_OK)
		return status;
	put_fire(moving, &ops[moving->n]);
	status = qc_plan_build(plan, ops, moving->n + 1, 0, QC_ENTRY_CARRIED, qlog_segment_bytes(),
						   plan_alloc, CurrentMemoryContext, err);
	if (status != QC_OK)
		return status;
	status = qlog_try_in_wal(plan, still_due, moving, err);
	if (status == QC_OK && plan->seq != 0)
		QLOG_STOP("delay-after-log");
	return status;
}

/* Look at these again after a while. */
static void
put_off(const Moving *moving, int64 delay)
{
	int64		monotonic = qlog_monotonic();

	qlog_lock_state();
	for (uint32 i = 0; i < moving->n; i++)
		qc_delay_put_off(qlog_state, moving->delayed[i].lane, moving->delayed[i].position,
						 monotonic + delay, monotonic);
	qlog_unlock_state();
}

bool
qlog_move_delayed(QlogWorker *worker)
{
	static MemoryContext context = NULL;
	static Moving *moving = NULL;
	MemoryContext caller;
	QcError		err;
	uint64		seq;
	bool		more;

	if (moving == NULL)
	{
		moving = MemoryContextAlloc(TopMemoryContext, sizeof(Moving));
		context = AllocSetContextCreate(TopMemoryContext, "qlog delayed", ALLOCSET_DEFAULT_SIZES);
	}
	qlog_lock_state();
	more = qc_delay_clock(qlog_state, qlog_now(), qlog_monotonic(), CLOCK_STEP);
	collect(moving);
	seq = qlog_state->seq;
	qlog_unlock_state();
	if (moving->n == 0)
		return more;
	qlog_worker_state(worker, "delayed messages");
	qc_error_clear(&err);
	caller = MemoryContextSwitchTo(context);
	if (move(moving, seq, &err) != QC_OK)
	{
		put_off(moving, moving->n == 1 && qlog_fetch_lost(err.code) ? LOST_US : PUT_OFF_US);
		qlog_worker_error(worker, &err, "could not deliver a delayed message");
	}
	else
		qlog_worker_error(worker, NULL, NULL);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(context);
	return true;
}
