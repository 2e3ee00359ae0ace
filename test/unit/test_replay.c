/*
 * test_replay.c
 *		What a server logs is what the next one knows: work of every kind, then recovery from the logs alone, from a checkpoint
 *		in the middle and from one at the end; each gives a state that means the same.
 *
 *	 test_replay [FIRST [LAST]]		these seeds
 *
 * Each entry goes through plan, credit, ring and files.  Joint entries stay open for a while and are decided by effects,
 * as their own commits log it.
 */
#include "fixture.h"
#include "portrait.h"
#include "staging.h"

#include "qc_apply.h"
#include "qc_catalog.h"
#include "qc_cursor.h"
#include "qc_delay.h"
#include "qc_group.h"
#include "qc_lane.h"
#include "qc_lease.h"
#include "qc_purge.h"
#include "qc_rows.h"
#include "sim_random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS		60
#define STEPS		400
#define CLOCK		INT64_C(2000000)	/* as run_recovery has it: nothing is due in between */
#define QUEUES_MAX	12
#define PARTITIONS_MAX 60
#define LEASES		10
#define OPENS_MAX	5

typedef struct Play
{
	uint64_t	random;
	uint64_t	xid;
	uint64_t	lease;			/* id of the newest lease: none is used twice */
	uint64_t	leases[LEASES];
	uint32_t	nopen;
	uint64_t	open[OPENS_MAX];	/* seqs of entries that are not decided */
	uint64_t	purges[OPENS_MAX];	/* queue that they purge, 0 = none */
	uint64_t	purged[OPENS_MAX];	/* ... and partition, 0 = all */
	uint64_t	alters[OPENS_MAX];	/* queue that they define anew */
	uint32_t	nqueues;
	uint64_t	queues[QUEUES_MAX];
	uint32_t	npartitions;
	uint64_t	partitions[PARTITIONS_MAX];
} Play;

static Play play;
static Rows middle;				/* a checkpoint on the way */

static uint64_t
below(uint64_t bound)
{
	return sim_random_below(&play.random, bound);
}

/* ---- logging ---- */

/* Log what is staged; false = it was refused. */
static bool
log_staged(uint64_t xid, bool immediate)
{
	QcStatus	status = build(xid, xid == 0 ? 0 : QC_ENTRY_CARRIED, run.r.segment_size);
	QcLack		lack;
	QcExtend	extend;

	plan.immediate = immediate;
	while (status == QC_OK &&
		   (status = qc_plan_credit(run.st, run.ring, &plan, run.r.segment_size, &lack, &extend,
									&err)) == QC_BUSY)
	{
		if (lack == QC_LACK_LOG)
		{
			status = qc_log_extend_io(run.r.files, &extend, &err);
			qc_log_extended(run.st, &extend, run.r.segment_size);
		}
		else
			status = qc_ring_write(run.st, run.ring, run.r.files, &err);
	}
	stage_done();
	if (status != QC_OK)
	{
		/* The only limit that is reached here. */
		CHECK_U64(status, QC_LIMIT);
		return false;
	}
	qc_plan_reserve(run.st, run.ring, &plan, run.r.segment_size, CLOCK, CLOCK);
	CHECK_U64(qc_plan_fill(run.st, run.ring, &plan, run.r.files, &err), QC_OK);
	CHECK_U64(qc_ring_write(run.st, run.ring, run.r.files, &err), QC_OK);
	return true;
}

static void
log_at_once(void)
{
	(void) log_staged(0, true);
}

/* The decision of an open entry, and what its purge means now. */
static void
decide(uint32_t i, bool committed)
{
	QcDecision	decision = {.timeline = 1};
	QcDecisionItem item = {.seq = play.open[i], .lsn = committed ? 1 : 0, .committed = committed};
	QcPurge		purge = {.queue = play.purges[i], .partition = play.purged[i], .entry = play.open[i]};
	QcQueue    *queue = purge.queue == 0 ? NULL : qc_queue_by_id(run.st, purge.queue);

	if (committed && queue != NULL && queue->state != QC_QUEUE_DEAD)
	{
		static uint8_t bytes[4096];
		QcWriter	w;

		qc_writer_init(&w, bytes, sizeof(bytes));
		qc_purge_put(run.st, queue, &purge, &w);
		CHECK(!w.full);
		stage_bytes(bytes, w.len);
	}
	stage_effect(QC_EFFECT_DECISION, &decision, &item, sizeof(item), 1);
	log_at_once();
	CHECK(qc_open_by_seq(run.st, item.seq) == NULL);
	play.nopen--;
	play.open[i] = play.open[play.nopen];
	play.purges[i] = play.purges[play.nopen];
	play.purged[i] = play.purged[play.nopen];
	play.alters[i] = play.alters[play.nopen];
}

static void
decide_one(void)
{
	if (play.nopen > 0)
		decide((uint32_t) below(play.nopen), below(4) > 0);
}

/* Log what is staged as a joint entry. */
static bool
log_joint(void)
{
	bool		logged;

	if (play.nopen == OPENS_MAX)
	{
		QcOp		kept[STAGED_MAX];
		uint32_t	n = nstaged;

		/* deciding stages something itself: do it before */
		memcpy(kept, staged, sizeof(kept));
		nstaged = 0;
		decide_one();
		stage_undone();
		memcpy(staged, kept, sizeof(kept));
		nstaged = n;
	}
	logged = log_staged(++play.xid, false);
	if (!logged)
		return false;
	play.open[play.nopen] = plan.seq;
	play.purges[play.nopen] = play.purged[play.nopen] = play.alters[play.nopen] = 0;
	play.nopen++;
	return true;
}

/* Log it as a transaction of either kind; a queue-only one is committed. */
static void
log_any(void)
{
	if (below(2) == 0)
		(void) log_joint();
	else if (log_staged(0, false))
		qc_open_settle(run.st, QC_AT(run.st, QcOpen, plan.open), true, 0, CLOCK);
}

/* ---- choosing ---- */

static QcQueue *
some_queue(void)
{
	QcQueue    *queue = play.nqueues == 0 ? NULL :
		qc_queue_by_id(run.st, play.queues[below(play.nqueues)]);

	return queue != NULL && queue->state == QC_QUEUE_LIVE ? queue : NULL;
}

static QcGroup *
some_group(const QcQueue *queue)
{
	QcGroup    *group = qc_group_by_id(run.st, queue, below(queue->next_group));

	return group != NULL && group->state == QC_GROUP_LIVE ? group : NULL;
}

/* An ordinary partition of the queue. */
static QcPartition *
some_partition(const QcQueue *queue)
{
	QcPartition *partition = play.npartitions == 0 ? NULL :
		qc_partition_by_id(run.st, play.partitions[below(play.npartitions)]);

	if (partition == NULL || partition->lane != QC_LANE_NONE ||
		QC_AT(run.st, QcQueue, partition->queue) != queue)
		return qc_partition_by_id(run.st, queue->default_partition_id);
	return partition;
}

static QcStr
name_of(const char *kind, uint64_t number)
{
	static char text[4][32];
	static int	turn;
	char	   *out = text[turn++ % 4];
	int			len = snprintf(out, 32, "%s%llu", kind, (unsigned long long) number);

	return (QcStr) {(const uint8_t *) out, (uint16_t) len};
}

/* ---- the catalog ---- */

static void
create_queue(void)
{
	QcQueueCreate create = {.queue = run.st->next_queue_id, .database = 5, .owner = 10};
	QcOptions	options;
	uint8_t		bytes[QC_OPTIONS_ENCODED_MAX];
	QcWriter	w;

	if (play.nqueues == QUEUES_MAX)
		return;
	create.log = create.queue;
	create.default_partition = run.st->next_partition_id;
	create.name = name_of("q", create.queue);
	qc_options_default(&options);
	options.set = 1u << QC_OPT_ORDERED;
	options.value[QC_OPT_ORDERED] = below(3) == 0;
	qc_writer_init(&w, bytes, sizeof(bytes));
	qc_options_put(&w, &options);
	create.options = (QcStr)
	{
		bytes, (uint16_t) w.len
	};
	CHECK_U64(qc_log_create_files(run.r.files, create.log, 65536, &err), QC_OK);
	CHECK(qc_log_add(run.st, create.log, 1, QC_FILE_HEADER_SIZE, 65536, false) != NULL);
	stage_effect(QC_EFFECT_QUEUE_CREATE, &create, NULL, 0, 0);
	if (below(3) == 0)
		(void) log_joint();
	else
		log_at_once();
	play.queues[play.nqueues++] = create.queue;
}

static void
create_partition(void)
{
	QcQueue    *queue = some_queue();
	QcGroup    *group = queue == NULL ? NULL : some_group(queue);
	QcPartitionCreate create = {.partition = run.st->next_partition_id};

	if (group == NULL || play.npartitions == PARTITIONS_MAX)
		return;
	create.queue = queue->id;
	create.name = name_of("p", create.partition);
	if (qc_delay_lane(run.st, queue) == NULL && below(3) == 0)
	{
		create.lane = QC_LANE_DELAY;
		create.name = (QcStr)
		{
			(const uint8_t *) "\001delay", 6
		};
	}
	else if (group->dead_partition == 0 && below(2) == 0)
	{
		create.lane = QC_LANE_DEAD;
		create.group = group->id;
		create.name = (QcStr)
		{
			(const uint8_t *) "*", 1
		};
	}
	stage_effect(QC_EFFECT_PARTITION_CREATE, &create, NULL, 0, 0);
	log_at_once();
	play.partitions[play.npartitions++] = create.partition;
}

static void
drop_queue(void)
{
	QcQueue    *queue = some_queue();
	QcQueueDrop drop;

	if (queue == NULL || below(4) > 0)
		return;
	drop.queue = queue->id;
	stage_effect(QC_EFFECT_QUEUE_DROP, &drop, NULL, 0, 0);
	(void) log_joint();
}

static void
alter_queue(void)
{
	QcQueue    *queue = some_queue();
	QcQueueAlter alter = {.owner = 10 + (uint32_t) below(3)};
	QcQueueAlterItem grants[2] = {{11, 10, 3, 0}, {0, 10, 1, 0}};
	QcOptions	options;
	uint8_t		bytes[QC_OPTIONS_ENCODED_MAX];
	QcWriter	w;

	for (uint32_t i = 0; i < play.nopen && queue != NULL; i++)
	{
		/* its row is locked until the other one has ended */
		if (play.alters[i] == queue->id)
			return;
	}
	if (queue == NULL)
		return;
	alter.queue = queue->id;
	alter.flags = below(4) == 0 ? QC_QUEUE_HAS_ACL : 0;
	alter.name = below(3) == 0 ? name_of("r", run.st->seq) : name_of("q", queue->id);
	options = queue->options;
	options.set |= 1u << QC_OPT_LEASE | 1u << QC_OPT_ORDERED;
	options.value[QC_OPT_LEASE] = 1000 + (int64_t) below(1000);
	options.value[QC_OPT_ORDERED] = below(2) == 0;
	qc_writer_init(&w, bytes, sizeof(bytes));
	qc_options_put(&w, &options);
	alter.options = (QcStr)
	{
		bytes, (uint16_t) w.len
	};
	stage_effect(QC_EFFECT_QUEUE_ALTER, &alter, grants, sizeof(grants[0]), (uint32_t) below(3));
	if (log_joint())
		play.alters[play.nopen - 1] = queue->id;
}

/* ---- groups ---- */

static void
create_group(void)
{
	QcQueue    *queue = some_queue();
	QcGroupCreate create = {.start = (uint8_t) below(4)};

	if (queue == NULL || queue->ngroups > 5)
		return;
	create.queue = queue->id;
	create.group = queue->next_group;
	create.start_at = create.start == QC_START_POSITION ? (int64_t) below(8) : CLOCK;
	create.name = name_of("g", create.group);
	stage_effect(QC_EFFECT_GROUP_CREATE, &create, NULL, 0, 0);
	if (below(2) == 0)
		(void) log_joint();
	else
		log_at_once();
}

static void
drop_group(void)
{
	QcQueue    *queue = some_queue();
	QcGroup    *group = queue == NULL ? NULL : some_group(queue);
	QcGroupDrop drop;

	if (group == NULL || group->name_len == 0)
		return;
	drop = (QcGroupDrop)
	{
		queue->id, group->id
	};
	stage_effect(QC_EFFECT_GROUP_DROP, &drop, NULL, 0, 0);
	(void) log_joint();
}

static void
seek_group(void)
{
	QcQueue    *queue = some_queue();
	QcGroup    *group = queue == NULL ? NULL : some_group(queue);
	QcSeek		seek = {.mode = below(2) == 0 ? QC_SEEK_GROUP : QC_SEEK_SET};
	QcSeekItem	item;

	if (group == NULL)
		return;
	seek.queue = queue->id;
	seek.group = group->id;
	if (seek.mode == QC_SEEK_GROUP)
	{
		seek.successor = queue->next_group;
		seek.start = (uint8_t) below(4);
		seek.start_at = seek.start == QC_START_POSITION ? (int64_t) below(8) : CLOCK;
		stage_effect(QC_EFFECT_SEEK, &seek, NULL, 0, 0);
	}
	else
	{
		QcPartition *partition = some_partition(queue);

		item = (QcSeekItem)
		{
			partition->id, below(partition->next + 1), 0
		};
		stage_effect(QC_EFFECT_SEEK, &seek, &item, sizeof(item), 1);
	}
	(void) log_joint();
}

static void
purge_something(void)
{
	QcQueue    *queue = some_queue();
	QcPurge		purge = {0};

	if (queue == NULL)
		return;
	purge.queue = queue->id;
	purge.partition = below(2) == 0 ? 0 : some_partition(queue)->id;
	stage_effect(QC_EFFECT_PURGE, &purge, NULL, 0, 0);
	if (!log_joint())
		return;
	play.purges[play.nopen - 1] = purge.queue;
	play.purged[play.nopen - 1] = purge.partition;
}

/* ---- messages ---- */

static void
push_something(void)
{
	bool		any = false;

	for (uint64_t n = 1 + below(3); n > 0; n--)
	{
		QcQueue    *queue = some_queue();

		if (queue != NULL)
			stage_push(some_partition(queue)->id, queue->log_id, 0, 1 + (uint32_t) below(3), 20);
		any = any || queue != NULL;
	}
	if (any)
		log_any();
}

/* A message for later. */
static void
delay_something(void)
{
	QcQueue    *queue = some_queue();
	QcPartition *lane = queue == NULL ? NULL : qc_delay_lane(run.st, queue);

	if (lane == NULL)
		return;
	stage_push(lane->id, queue->log_id, 0, 1 + (uint32_t) below(3), 20);
	staged[nstaged - 1].kind = QC_OP_DELAY;
	staged[nstaged - 1].delay.partition = some_partition(queue)->id;
	staged[nstaged - 1].delay.due = CLOCK + 1000000 + (int64_t) below(1000000);
	log_any();
}

/* A message that is in a lane for good; NULL = there is none. */
static QcLaneItem *
some_item(const QcPartition *lane)
{
	QcLaneItem *item = lane == NULL ? NULL : QC_AT(run.st, QcLaneItem, lane->items.head);

	for (uint64_t n = below(3); item != NULL && n > 0 && item->of_lane.next != 0; n--)
		item = QC_AT(run.st, QcLaneItem, item->of_lane.next);
	return item != NULL && item->state == QC_LANE_ITEM_LIVE ? item : NULL;
}

/* A delayed message is moved into its partition, or cancelled. */
static void
fire_something(void)
{
	QcQueue    *queue = some_queue();
	QcPartition *lane = queue == NULL ? NULL : qc_delay_lane(run.st, queue);
	const QcLaneItem *item = some_item(lane);
	QcFire		fire = {0};
	QcFireItem	moved = {0};
	QcCancel	cancel = {0};

	if (item == NULL)
		return;
	fire.lane = cancel.lane = lane->id;
	moved.position = cancel.position = item->position;
	if (below(3) == 0)
		stage_effect(QC_EFFECT_CANCEL, &cancel, NULL, 0, 0);
	else
	{
		stage_push(item->target, queue->log_id, 0, 1, 20);
		staged[nstaged - 1].moved = true;
		stage_effect(QC_EFFECT_FIRE, &fire, &moved, sizeof(moved), 1);
	}
	log_at_once();
}

/* A dead letter goes back to where it comes from, or for good. */
static void
use_dead(void)
{
	QcQueue    *queue = some_queue();
	QcGroup    *group = queue == NULL ? NULL : some_group(queue);
	QcPartition *lane = group == NULL ? NULL : qc_partition_by_id(run.st, group->dead_partition);
	const QcLaneItem *item = some_item(lane);
	QcRedrive	redrive = {0};
	QcRedriveItem back = {0};
	QcPurgeDead purge = {0};
	QcPurgeDeadItem gone = {0};

	if (item == NULL)
		return;
	redrive.lane = purge.lane = lane->id;
	back.first = gone.first = item->position;
	back.count = gone.count = 1;
	if (below(2) == 0)
		stage_effect(QC_EFFECT_PURGE_DEAD, &purge, &gone, sizeof(gone), 1);
	else
	{
		stage_push(item->target, queue->log_id, 0, 1, 20);
		stage_effect(QC_EFFECT_REDRIVE, &redrive, &back, sizeof(back), 1);
	}
	if (log_staged(0, false))
		qc_open_settle(run.st, QC_AT(run.st, QcOpen, plan.open), true, 0, CLOCK);
}

/* As pops do: look at partitions that the group has not looked at; a rule that only the messages can answer is logged. */
static void
scan(QcQueue *queue, QcGroup *group)
{
	QcSeek		seek = {.mode = QC_SEEK_FOUND, .queue = queue->id, .group = group->id};
	QcSeekItem	items[QC_POP_UNSCANNED_MAX];
	uint64_t	asked[QC_POP_UNSCANNED_MAX];
	uint32_t	n;
	uint32_t	used;

	CHECK(qc_mem_reserve(&run.st->mem, QC_CLASS_CURSOR, QC_POP_UNSCANNED_MAX, QC_URGENCY_DELIVERS));
	used = qc_group_scan(run.st, group, asked, &n);
	qc_mem_unreserve(&run.st->mem, QC_CLASS_CURSOR, QC_POP_UNSCANNED_MAX - used);
	if (n == 0)
		return;
	for (uint32_t i = 0; i < n; i++)
		items[i] = (QcSeekItem)
	{
		asked[i], qc_partition_by_id(run.st, asked[i])->next / 2, 0
	};
	stage_effect(QC_EFFECT_SEEK, &seek, items, sizeof(items[0]), n);
	log_at_once();
}

static void
pop_something(uint64_t lease)
{
	QcQueue    *queue = some_queue();
	QcPopRequest request = {.queue = queue, .batch = 1 + (uint32_t) below(5), .max_partitions = 3};
	QcDeliver	deliver = {.lease = lease, .lease_us = 60000000};
	QcPopCommit commit = {.lease = lease};
	QcRun		runs[8];
	QcDeliverItem items[8];
	uint32_t	nruns;

	request.group = queue == NULL ? NULL : some_group(queue);
	if (request.group == NULL)
		return;
	if (qc_group_scanning(request.group))
		scan(queue, request.group);
	deliver.queue = queue->id;
	deliver.group = request.group->id;
	if (qc_pop_choose(run.st, &request, runs, 8, &nruns) == 0)
		return;
	for (uint32_t i = 0; i < nruns; i++)
		items[i] = (QcDeliverItem)
	{
		runs[i].partition, runs[i].first, runs[i].count, runs[i].attempt, 0
	};
	stage_effect(QC_EFFECT_DELIVER, &deliver, items, sizeof(items[0]), nruns);
	stage_needs(request.batch, 1);
	log_at_once();
	stage_effect(QC_EFFECT_POP_COMMIT, &commit, NULL, 0, 0);
	log_at_once();
}

/* Acknowledge or reject the first message of the lease. */
static void
answer(QcLease *lease)
{
	QcQueue    *queue = QC_AT(run.st, QcQueue, lease->queue);
	QcGroup    *group = QC_AT(run.st, QcGroup, lease->group);
	const QcSlot *slot = QC_AT(run.st, QcSlot, lease->slots.head);
	uint64_t	partition = QC_AT(run.st, QcPartition,
								  QC_AT(run.st, QcCursor, slot->cursor)->partition)->id;
	QcAck		ack = {lease->id, group->id};
	QcAckItem	item = {partition, slot->position, 1, 0};

	if (group->dead_partition != 0 && below(3) == 0)
	{
		stage_dead(group->dead_partition, queue->log_id, slot->position);
		staged[nstaged - 1].dead.lease = lease->id;
		staged[nstaged - 1].dead.group = group->id;
		staged[nstaged - 1].dead.partition = partition;
		staged[nstaged - 1].dead.attempt = slot->attempt;
	}
	else
		stage_effect(QC_EFFECT_ACK, &ack, &item, sizeof(item), 1);
	log_any();
}

static void
give_back(const QcLease *lease)
{
	const QcSlot *slot = QC_AT(run.st, QcSlot, lease->slots.head);
	const QcPartition *partition = QC_AT(run.st, QcPartition,
										 QC_AT(run.st, QcCursor, slot->cursor)->partition);
	QcNack		nack = {.lease = lease->id, .delay_us = below(3) == 0 ? 3600000000u : 0};
	QcNackItem	item = {partition->id, slot->position, 1, 0};
	QcRelease	release = {.lease = lease->id};
	QcRenew		renew = {lease->id, 1000000 + below(5) * 1000000};

	switch (below(3))
	{
		case 0:
			if (qc_partition_ordered(run.st, partition))
				item.count = QC_NACK_REST;
			stage_effect(QC_EFFECT_NACK, &nack, &item, sizeof(item), 1);
			break;
		case 1:
			release.reason = below(2) == 0 ? QC_RELEASE_EXPIRED : QC_RELEASE_ABORT;
			stage_effect(QC_EFFECT_RELEASE, &release, NULL, 0, 0);
			break;
		default:
			stage_effect(QC_EFFECT_RENEW, &renew, NULL, 0, 0);
			break;
	}
	log_at_once();
}

static void
use_lease(void)
{
	uint64_t   *held = &play.leases[below(LEASES)];
	uint64_t	id = *held;
	QcRelease	over = {.lease = id, .reason = QC_RELEASE_EXPIRED};
	QcLease    *lease = qc_lease_by_id(run.st, id);

	if (lease == NULL)
		pop_something(*held = ++play.lease);
	else if (lease->pin_seq != 0 || QC_AT(run.st, QcQueue, lease->queue)->state != QC_QUEUE_LIVE)
		return;
	else if (lease->slots.head == 0)
	{
		/* a seek has taken its messages: its time runs out */
		stage_effect(QC_EFFECT_RELEASE, &over, NULL, 0, 0);
		log_at_once();
	}
	else if (below(3) > 0)
		answer(lease);
	else
		give_back(lease);
}

/* ---- the whole ---- */

static void
step(void)
{
	uint64_t	what = below(100);

	if (what < 4)
		create_queue();
	else if (what < 8)
		create_partition();
	else if (what < 10)
		drop_queue();
	else if (what < 14)
		alter_queue();
	else if (what < 18)
		create_group();
	else if (what < 20)
		drop_group();
	else if (what < 25)
		seek_group();
	else if (what < 29)
		purge_something();
	else if (what < 48)
		push_something();
	else if (what < 52)
		delay_something();
	else if (what < 55)
		fire_something();
	else if (what < 58)
		use_dead();
	else if (what < 88)
		use_lease();
	else
		decide_one();
	if (below(20) == 0)
	{
		(void) qc_queue_sweep(run.st, 1 + (uint32_t) below(8));
		(void) qc_group_sweep(run.st, 1 + (uint32_t) below(8));
	}
}

/* Free what is gone, as the server does in the background. */
static void
sweep(QcState *st)
{
	while (qc_queue_sweep(st, 100) || qc_group_sweep(st, 100))
		;
}

/* A server that starts from these rows (NULL = none) knows the same. */
static bool
expect_same(const char *want, const Rows *rows, const char *what)
{
	RunOptions	options = {.rows = rows};
	Run			other;
	bool		good = run_ok(&other, &hand, &server, &options);

	if (good)
	{
		char	   *got;

		good = CHECK(portrait_counts(other.st));
		sweep(other.st);
		got = portrait(other.st);
		good = CHECK(portrait_same(got, want, what)) && good;
		free(got);
	}
	run_end(&other);
	return good;
}

/* The rows alone give the state that they were taken from. */
static void
expect_rows(const Rows *rows)
{
	QcStateConfig config = {.state_bytes = 4u << 20, .index_bytes = 1u << 20, .max_slots = 8};
	void	   *block = malloc(qc_state_size(&config));
	QcState    *st = qc_state_init(block, &config);
	char	   *want = portrait(run.st);
	char	   *got;

	for (size_t i = 0; i < rows->count; i++)
		CHECK_U64(qc_rows_load(st, rows->rows[i].key, rows->rows[i].key_len,
							   rows->rows[i].key + rows->rows[i].key_len,
							   rows->rows[i].value_len, &err), QC_OK);
	CHECK_U64(qc_rows_loaded(st, CLOCK, CLOCK, &err), QC_OK);
	CHECK(portrait_counts(st));
	got = portrait(st);
	CHECK(portrait_same(got, want, "from rows"));
	free(got);
	free(want);
	free(block);
}

static void
test_seed(const void *argument)
{
	uint64_t	seed = *(const uint64_t *) argument;
	char	   *want;

	memset(&play, 0, sizeof(play));
	play.random = seed;
	fixture_begin();
	CHECK(run_ok(&run, &hand, &server, NULL));
	play.nqueues = 2;
	play.queues[0] = 1;
	play.queues[1] = 2;
	for (int i = 0; i < STEPS; i++)
	{
		step();
		if (i == STEPS / 2)
		{
			rows_take(&middle, run.st);
			expect_rows(&middle);
		}
	}
	while (play.nopen > 0)
		decide_one();
	CHECK(portrait_counts(run.st));
	sweep(run.st);
	want = portrait(run.st);
	(void) expect_same(want, NULL, "from the logs");
	(void) expect_same(want, &middle, "from a checkpoint in the middle");
	rows_take(&middle, run.st);
	(void) expect_same(want, &middle, "from a checkpoint at the end");
	rows_free(&middle);
	free(want);
	stage_clear();
	fixture_end();
}

int
main(int argc, char **argv)
{
	uint64_t	first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	uint64_t	last = argc > 2 ? strtoull(argv[2], NULL, 10) : first + SEEDS - 1;

	for (uint64_t seed = first; seed <= last; seed++)
	{
		char		name[40];

		(void) snprintf(name, sizeof(name), "seed %llu", (unsigned long long) seed);
		unit_run_with(name, test_seed, &seed);
	}
	return unit_end();
}
