/*
 * test_rows.c
 *		Checkpoint rows of a state that changes: what is stored is what was there, when all of it is dumped at once and when
 *		rows are dumped ahead of the copy.
 */
#include <stdlib.h>
#include <string.h>

#include "machine.h"
#include "qc_catalog.h"
#include "qc_log.h"
#include "sim_random.h"

#define ROUNDS		60
#define QUEUES_MAX	60
#define LEASES		8
#define OPENS_MAX	6
#define NO_LANE		0

static Machine m;

static void
release(uint64_t lease)
{
	QcRelease	effect = {.lease = lease, .reason = QC_RELEASE_ABORT, .messages = UINT32_MAX};

	machine_op_effect(&m, QC_EFFECT_RELEASE, &effect, NULL, 0, 0);
	(void) machine_log(&m, 0, true, NULL);
}

/* The state that the rows give back is the one that they were taken from. */
static void
expect_reload(void)
{
	uint64_t	digest = state_digest(m.st);

	machine_reload(&m);
	CHECK_U64(state_digest(m.st), digest);
}

/* Something is deleted and made again under the same key between two dumps: the new row is stored. */
static void
test_made_again(void)
{
	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	machine_push(&m, 1, 101, 3);
	CHECK_U64(machine_pop(&m, 1, 101, 77, 1, true), 1);
	rows_take(&m.rows, m.st);
	for (int i = 0; i < 3; i++)
	{
		release(77);
		CHECK(qc_lease_by_id(m.st, 77) == NULL);
		CHECK_U64(machine_pop(&m, 1, 101, 77, 2, true), 2);
	}
	CHECK(qc_lease_by_id(m.st, 77) != NULL);
	expect_reload();
	CHECK(qc_lease_by_id(m.st, 77) != NULL);
	CHECK_U64(qc_lease_by_id(m.st, 77)->nslots, 2);

	/* And the other way round: what is gone in the end has no row. */
	release(77);
	CHECK_U64(machine_pop(&m, 1, 101, 77, 1, true), 1);
	release(77);
	expect_reload();
	CHECK(qc_lease_by_id(m.st, 77) == NULL);
	machine_end(&m);
}

/* ---- a state that changes at random ---- */

/* What the next changes go to. */
typedef struct Play
{
	uint64_t	random;
	uint64_t	queues;			/* made so far; ids 1 .. queues */
	uint64_t	partitions;		/* made so far; ids from 1001 on */
	uint64_t	home[1000];		/* queue of each */
	uint64_t	lanes[QUEUES_MAX + 1];	/* dead lane of a queue */
	QcRef		open[OPENS_MAX];	/* not settled */
	uint64_t	seq[OPENS_MAX];
	uint32_t	nopen;
} Play;

static Play play;

static uint64_t
below(uint64_t bound)
{
	return sim_random_below(&play.random, bound);
}

/* A queue that takes messages, 0 = this one does not. */
static uint64_t
live_queue(void)
{
	uint64_t	id = play.queues == 0 ? 0 : 1 + below(play.queues);
	QcQueue    *queue = id == 0 ? NULL : qc_queue_by_id(m.st, id);

	return queue != NULL && queue->state == QC_QUEUE_LIVE ? id : 0;
}

/* One of its partitions. */
static uint64_t
partition_of(uint64_t queue)
{
	uint64_t	i = play.partitions == 0 ? 0 : below(play.partitions);

	return play.partitions > 0 && play.home[i] == queue ? 1001 + i : 100 + queue;
}

static void
settle_one(bool committed)
{
	uint32_t	i = (uint32_t) below(play.nopen);

	machine_settle(&m, QC_AT(m.st, QcOpen, play.open[i]), committed);
	if (QC_AT(m.st, QcOpen, play.open[i])->seq == play.seq[i])
		qc_open_forget(m.st, QC_AT(m.st, QcOpen, play.open[i]));
	play.open[i] = play.open[--play.nopen];
	play.seq[i] = play.seq[play.nopen];
}

/* Log what was put together; a joint one stays open for a while. */
static void
log_joint(void)
{
	QcOpen	   *open = machine_log(&m, 7, false, NULL);

	play.open[play.nopen] = QC_REF(m.st, open);
	play.seq[play.nopen++] = open->seq;
	if (play.nopen == OPENS_MAX)
		settle_one(below(3) > 0);
}

static void
make_something(void)
{
	uint64_t	queue = live_queue();
	char		name[32];

	if (below(3) == 0 && play.queues < QUEUES_MAX)
		machine_queue(&m, ++play.queues, NULL);
	else if (queue != 0 && play.partitions < 1000)
	{
		bool		lane = play.lanes[queue] == NO_LANE && below(2) == 0;

		(void) snprintf(name, sizeof(name), "p%llu", (unsigned long long) play.partitions);
		machine_partition(&m, queue, 1001 + play.partitions, lane ? "" : name,
						  lane ? QC_LANE_DEAD : QC_LANE_NONE);
		if (lane)
			play.lanes[queue] = 1001 + play.partitions;
		play.home[play.partitions++] = lane ? 0 : queue;
	}
}

static void
drop_something(void)
{
	QcQueueDrop drop = {.queue = live_queue()};

	if (drop.queue != 0 && below(4) == 0)
	{
		machine_op_effect(&m, QC_EFFECT_QUEUE_DROP, &drop, NULL, 0, 0);
		(void) machine_log(&m, 0, true, NULL);
	}
	(void) qc_queue_sweep(m.st, 1 + (uint32_t) below(5));
}

static void
push_something(void)
{
	uint64_t	queue = live_queue();

	if (queue == 0)
		return;
	machine_op_push(&m, partition_of(queue), queue, 1 + (uint32_t) below(3));
	if (below(2) == 0)
		log_joint();
	else
		machine_settle(&m, machine_log(&m, 0, false, NULL), true);
}

/* Take a message, answer a lease, or give one back. */
static void
use_lease(void)
{
	uint64_t	id = 1 + below(LEASES);
	QcLease    *lease = qc_lease_by_id(m.st, id);
	uint64_t	queue = lease == NULL ? live_queue() : QC_AT(m.st, QcQueue, lease->queue)->id;
	QcSlot	   *slot;
	uint64_t	partition;

	if (queue == 0 || (lease != NULL && lease->pin_seq != 0))
		return;
	if (lease == NULL)
	{
		(void) machine_pop(&m, queue, 0, id, 1 + (uint32_t) below(4), below(2) == 0);
		return;
	}
	slot = QC_AT(m.st, QcSlot, lease->slots.head);
	partition = QC_AT(m.st, QcPartition, QC_AT(m.st, QcCursor, slot->cursor)->partition)->id;
	if (below(3) == 0)
		release(id);
	else if (qc_queue_by_id(m.st, queue)->state == QC_QUEUE_LIVE && play.lanes[queue] != NO_LANE &&
			 below(2) == 0)
	{
		QcDead		dead = {.lease = id, .partition = partition, .position = slot->position,
			.attempt = 1, .lane = play.lanes[queue], .cause = QC_DEAD_REJECTED};

		machine_op_dead(&m, &dead, queue);
		log_joint();
	}
	else
		machine_ack(&m, id, partition, slot->position, 1);
}

static void
change_something(void)
{
	uint64_t	what = below(100);

	if (what < 5)
		make_something();
	else if (what < 15)
		drop_something();
	else if (what < 50)
		push_something();
	else if (what < 90)
		use_lease();
	else if (play.nopen > 0)
		settle_one(below(3) > 0);

	/* Nobody writes the ring. */
	atomic_store(&m.ring->written, atomic_load(&m.ring->head));
}

/* Everything that has a row is dirty. */
static void
mark_all(void)
{
	for (QcQueue *queue = QC_AT(m.st, QcQueue, m.st->queues.head); queue != NULL;
		 queue = QC_AT(m.st, QcQueue, queue->all.next))
	{
		qc_dirty_queue(m.st, queue);
		for (QcRef g = queue->groups; g != 0; g = QC_AT(m.st, QcGroup, g)->next)
			qc_dirty_group(m.st, QC_AT(m.st, QcGroup, g));
		for (QcPartition *partition = QC_AT(m.st, QcPartition, queue->partitions.head);
			 partition != NULL; partition = QC_AT(m.st, QcPartition, partition->of_queue.next))
		{
			qc_dirty_partition(m.st, partition);
			for (QcRef c = partition->cursors; c != 0; c = QC_AT(m.st, QcCursor, c)->next)
				qc_dirty_cursor(m.st, QC_AT(m.st, QcCursor, c));
			for (QcRef i = partition->items.head; i != 0;
				 i = QC_AT(m.st, QcLaneItem, i)->of_lane.next)
				qc_dirty_lane_item(m.st, QC_AT(m.st, QcLaneItem, i));
		}
	}
	for (QcRef l = m.st->leases.head; l != 0; l = QC_AT(m.st, QcLease, l)->all.next)
		qc_dirty_lease(m.st, QC_AT(m.st, QcLease, l));
	for (QcRef o = m.st->opens.head; o != 0; o = QC_AT(m.st, QcOpen, o)->all.next)
		qc_dirty_open(m.st, QC_AT(m.st, QcOpen, o));
	for (QcLog *log = QC_AT(m.st, QcLog, m.st->logs); log != NULL;
		 log = QC_AT(m.st, QcLog, log->next))
		qc_dirty_log(m.st, log);
}

/* The rows that were stored bit by bit are those of the whole state, byte for byte. */
static void
expect_whole(void)
{
	Rows		whole = {0};

	mark_all();
	rows_take(&whole, m.st);
	if (CHECK_U64(m.rows.count, whole.count))
	{
		for (size_t i = 0; i < whole.count; i++)
		{
			const Row  *got = &m.rows.rows[i];
			const Row  *want = &whole.rows[i];

			if (!CHECK_BYTES(got->key, got->key_len, want->key, want->key_len) ||
				!CHECK_BYTES(got->key + got->key_len, got->value_len, want->key + want->key_len,
							 want->value_len))
				break;
		}
	}
	rows_free(&whole);
}

/* More room for the batch, which goes on with what it has. */
static void
grow(QcWriter *w)
{
	w->cap += 200;
	w->buf = realloc(w->buf, w->cap);
}

/* A checkpoint while the state changes: some slices, of one pass or several, then the copy. */
static void
checkpoint(void)
{
	QcWriter	w;
	QcRowsMark	mark;
	QcStatus	status;

	qc_writer_init(&w, malloc(16), 16);
	for (uint64_t n = below(40); n > 0; n--)
	{
		uint32_t	before = m.st->ndirty;
		size_t		len = w.len;

		status = qc_rows_ahead(m.st, &w, 1 + (uint32_t) below(8), &m.err);
		CHECK(m.st->ndirty <= before && w.len >= len);
		if (status == QC_SHORT)
			grow(&w);
		else
			CHECK(status == QC_OK || status == QC_END);
		for (uint64_t k = below(4); k > 0; k--)
			change_something();
	}
	while ((status = qc_rows_dump(m.st, &w, &mark, &m.err)) == QC_SHORT)
		grow(&w);
	CHECK(status == QC_OK || (status == QC_END && w.len == 0));
	CHECK_U64(mark.seq, m.st->seq);
	CHECK_U64(m.st->ndirty, 0);
	rows_apply(&m.rows, &w);
	free(w.buf);
}

static void
test_ahead(void)
{
	for (uint64_t seed = 1; seed <= 8; seed++)
	{
		memset(&play, 0, sizeof(play));
		play.random = seed;
		machine_begin(&m);
		for (int round = 0; round < ROUNDS; round++)
		{
			for (uint64_t n = below(60); n > 0; n--)
				change_something();
			checkpoint();
			if (m.rows.count > 0)
				expect_whole();
		}
		CHECK(m.rows.count > 20);
		while (play.nopen > 0)
			settle_one(true);
		expect_reload();
		machine_end(&m);
	}
}

/* Nothing dirty: a pass is over at once, and what it began is no checkpoint by itself. */
static void
test_ahead_of_nothing(void)
{
	uint8_t		buffer[256];
	QcWriter	w;
	QcRowsMark	mark;

	machine_begin(&m);
	machine_queue(&m, 1, NULL);
	rows_take(&m.rows, m.st);
	m.st->checkpoint_seq = m.st->seq;
	qc_writer_init(&w, buffer, sizeof(buffer));
	CHECK_U64(qc_rows_ahead(m.st, &w, 1000, &m.err), QC_END);
	CHECK_U64(w.len, 0);
	CHECK_U64(qc_rows_dump(m.st, &w, &mark, &m.err), QC_END);
	CHECK_U64(w.len, 0);
	machine_end(&m);
}

int
main(void)
{
	UNIT_RUN(test_made_again);
	UNIT_RUN(test_ahead);
	UNIT_RUN(test_ahead_of_nothing);
	return unit_end();
}
