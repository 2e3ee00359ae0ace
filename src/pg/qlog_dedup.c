/*
 * qlog_dedup.c
 *		Dedup ids: looking up at the push, claiming at PRE_COMMIT (core/qc_dedup.h).
 *
 * A transaction holds its claims from PRE_COMMIT on and waits for nobody's while it holds any, so that two of them cannot
 * wait for each other.
 */
#include "qlog_dedup.h"

#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "qlog_commit.h"
#include "qlog_shmem.h"

#include "../core/qc_dedup.h"

#define CLAIMS_STEP	256			/* per hold of the state lock */
#define SWEEP_BUDGET 1000		/* entries and queues looked at when the memory is full */
#define WAIT_MS		1000		/* for a twin, before looking again */

/* This transaction's own pushes by key; an element whose number does not fit any more was rolled back. */
typedef struct OwnKey
{
	uint64		partition;
	uint8		hash[QC_HASH_SIZE];
} OwnKey;

typedef struct Own
{
	OwnKey		key;
	uint32		number;			/* in qlog_stage.dedups */
} Own;

static HTAB *own = NULL;

/* Claims of the current commit, in qlog_stage_context(). */
static QcRef *claims = NULL;
static uint32 nclaims = 0;

static OwnKey
key_of(uint64 partition, const uint8 *hash)
{
	OwnKey		key;

	memset(&key, 0, sizeof(key));
	key.partition = partition;
	memcpy(key.hash, hash, QC_HASH_SIZE);
	return key;
}

static void
make_own(void)
{
	HASHCTL		ctl = {.keysize = sizeof(OwnKey), .entrysize = sizeof(Own), .hcxt = qlog_stage_context()};

	own = hash_create("qlog dedup ids of the transaction", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* The staged push of this transaction with that key. */
static const QlogDedup *
find_own(const OwnKey *key)
{
	const Own  *found = own == NULL ? NULL : hash_search(own, key, HASH_FIND, NULL);
	const QlogDedup *dedup;

	if (found == NULL || found->number >= qlog_stage.ndedups)
		return NULL;
	dedup = &qlog_stage.dedups[found->number];
	return dedup->partition == key->partition && memcmp(dedup->hash, key->hash, QC_HASH_SIZE) == 0 ?
		dedup : NULL;
}

/* State lock. */
static void
count_duplicate(uint64 queue_id)
{
	QcQueue    *queue = qc_queue_by_id(qlog_state, queue_id);

	if (queue == NULL)
		return;
	queue->deduplicated++;
	qc_dirty_queue(qlog_state, queue);
}

bool
qlog_dedup_known(const QlogTarget *target, const uint8 *hash, uint8 id[QC_ID_SIZE])
{
	OwnKey		key = key_of(target->partition, hash);
	const QlogDedup *mine = find_own(&key);
	uint64		seq = 0;
	bool		known = mine != NULL;

	qlog_lock_state();
	if (known)
		memcpy(id, mine->id, QC_ID_SIZE);
	else
	{
		const QcDedup *dedup = qc_dedup_find(qlog_state, target->partition, hash, qlog_now(),
											 target->dedup_us);

		known = dedup != NULL && dedup->state == QC_DEDUP_SETTLED;
		if (known)
		{
			memcpy(id, dedup->id, QC_ID_SIZE);
			seq = dedup->seq;
		}
	}
	if (known)
		count_duplicate(target->queue);
	qlog_unlock_state();

	/* One that was committed asynchronously could still be lost, and the answer would not be. */
	if (seq != 0)
		qlog_flush(seq);
	if (!known)
	{
		Own		   *entry;

		if (own == NULL)
			make_own();
		entry = hash_search(own, &key, HASH_ENTER, NULL);
		entry->number = qlog_stage.ndedups;
	}
	return known;
}

void
qlog_dedup_refuse(const QcMessage *message)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("duplicate dedup id \"%.*s\"", (int) message->dedup_len,
					(const char *) message->dedup_id),
			 errdetail("A message with this id has been pushed to the same partition within the dedup window; none of the operations was done.")));
}

/* Give all claims back.  State lock. */
static void
unclaim(void)
{
	while (nclaims > 0)
		qc_dedup_unclaim(qlog_state, claims[--nclaims]);
}

typedef enum Claim
{
	CLAIM_DONE,
	CLAIM_BUSY,					/* a twin is committing */
	CLAIM_FULL
} Claim;

/* Claim one dedup id, or mark its push as a duplicate; *seq: newest entry of a twin.	State lock. */
static Claim
claim_one(QlogDedup *dedup, int64 now, uint64 *seq)
{
	const QcDedup *twin = qc_dedup_find(qlog_state, dedup->partition, dedup->hash, now,
										dedup->window_us);
	QcRef		ref;

	if (twin != NULL && twin->state != QC_DEDUP_SETTLED)
		return CLAIM_BUSY;
	qlog_stage.ops[dedup->op].dropped = twin != NULL;
	if (twin != NULL)
	{
		*seq = Max(*seq, twin->seq);
		count_duplicate(dedup->queue);
		return CLAIM_DONE;
	}
	ref = qc_dedup_claim(qlog_state, dedup->partition, dedup->hash, dedup->id);
	if (ref == 0)
	{
		(void) qc_dedup_sweep(qlog_state, now, SWEEP_BUDGET);
		ref = qc_dedup_claim(qlog_state, dedup->partition, dedup->hash, dedup->id);
	}
	if (ref == 0)
		return CLAIM_FULL;
	claims[nclaims++] = ref;
	return CLAIM_DONE;
}

/* Claim all, or nothing. */
static Claim
claim_all(uint64 *seq)
{
	int64		now = qlog_now();
	Claim		result = CLAIM_DONE;

	for (uint32 i = 0; i < qlog_stage.ndedups && result == CLAIM_DONE;)
	{
		CHECK_FOR_INTERRUPTS();
		qlog_lock_state();
		for (int n = 0; n < CLAIMS_STEP && i < qlog_stage.ndedups && result == CLAIM_DONE; n++)
			result = claim_one(&qlog_stage.dedups[i++], now, seq);
		qlog_unlock_state();
	}
	if (result != CLAIM_DONE)
		qlog_dedup_end(false);
	return result;
}

/* In queue_transaction a duplicate refuses everything. */
static void
refuse_dropped(void)
{
	for (uint32 i = 0; i < qlog_stage.ndedups; i++)
	{
		const QlogDedup *dedup = &qlog_stage.dedups[i];
		const QcOp *op = &qlog_stage.ops[dedup->op].op;
		QcMessage	message;
		QcReader	r;

		if (!dedup->strict || !qlog_stage.ops[dedup->op].dropped)
			continue;
		qc_reader_init(&r, op->frames, op->frames_len);
		if (qc_frame_get(&r, &message, NULL) == QC_OK)
			qlog_dedup_refuse(&message);
	}
}

void
qlog_dedup_claim(void)
{
	uint64		seq = 0;
	Claim		result;

	if (qlog_stage.ndedups == 0)
		return;
	claims = MemoryContextAllocHuge(qlog_stage_context(), (Size) qlog_stage.ndedups * sizeof(QcRef));
	nclaims = 0;
	result = claim_all(&seq);
	if (result == CLAIM_BUSY)
	{
		ConditionVariablePrepareToSleep(&qlog_shared->dedup_cv);
		while ((result = claim_all(&seq)) == CLAIM_BUSY)
			(void) ConditionVariableTimedSleep(&qlog_shared->dedup_cv, WAIT_MS, PG_WAIT_EXTENSION);
		ConditionVariableCancelSleep();
	}
	if (result == CLAIM_FULL)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("dedup memory is full"),
				 errdetail("Every dedup id is remembered for the option \"dedup_window\" of its queue."),
				 errhint("Shorten \"dedup_window\", or raise \"qlog.dedup_memory\".")));
	refuse_dropped();

	/* A push that is dropped is acknowledged by this commit: its twin must not be lost. */
	if (seq != 0)
		qlog_flush(seq);
}

void
qlog_dedup_attach(QcPlan *plan)
{
	plan->dedups = claims;
	plan->ndedups = nclaims;
}

void
qlog_dedup_end(bool reserved)
{
	bool		wake = nclaims > 0;

	if (!reserved && nclaims > 0)
	{
		qlog_lock_state();
		unclaim();
		qlog_unlock_state();
	}
	nclaims = 0;
	if (wake)
		ConditionVariableBroadcast(&qlog_shared->dedup_cv);
}

void
qlog_dedup_forget(void)
{
	own = NULL;
	claims = NULL;
}
