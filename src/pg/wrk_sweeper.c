/*
 * wrk_sweeper.c
 *		The sweeper worker: compares what queues refer to with pg_database and pg_authid.
 *
 * DROP DATABASE drops the queues of the database with it, and DROP ROLE is refused while a queue names the role.  But both
 * can be run while the library is not loaded, or while qlog is out of service.  What is found missing by two scans in a
 * row, with qlog.sweep_naptime between them, is gone for good: queues of such a database are dropped; a queue of such an
 * owner goes to the bootstrap superuser, and such a role loses its privileges, because its OID may come back as somebody
 * else.  Each is an entry of its own, not in the WAL: when it is lost the next scans find the same.
 *
 * A scan is a short transaction of a process that is connected to no database: it holds up no DROP or ALTER.
 */
#include "wrk_sweeper.h"

#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "qlog_alter.h"
#include "qlog_commit.h"
#include "qlog_guc.h"
#include "qlog_list.h"
#include "wrk_worker.h"

#define MISSING_MAX 1024		/* per scan; more are found by the next ones */

PGDLLEXPORT void qlog_sweeper_main(Datum arg);

/* OIDs, sorted. */
typedef struct Oids
{
	Oid		   *oid;
	uint32		n;
} Oids;

/* OIDs that queues refer to and nobody has. */
typedef struct Missing
{
	Oid			databases[MISSING_MAX];
	uint32		ndatabases;
	Oid			roles[MISSING_MAX];
	uint32		nroles;
} Missing;

static int
compare(const void *a, const void *b)
{
	Oid			x = *(const Oid *) a;
	Oid			y = *(const Oid *) b;

	return x < y ? -1 : x > y;
}

static bool
contains(const Oid *sorted, uint32 n, Oid oid)
{
	return bsearch(&oid, sorted, n, sizeof(Oid), compare) != NULL;
}

/* All OIDs of a shared catalog, whose rows begin with them.	Inside a transaction. */
static Oids
read_oids(Oid catalog)
{
	Oids		oids = {palloc(1024 * sizeof(Oid)), 0};
	uint32		max = 1024;
	Relation	relation = table_open(catalog, AccessShareLock);
	TableScanDesc scan = table_beginscan_catalog(relation, 0, NULL);
	HeapTuple	tuple;

	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		if (oids.n == max)
		{
			max *= 2;
			oids.oid = repalloc_huge(oids.oid, max * sizeof(Oid));
		}
		oids.oid[oids.n++] = catalog == DatabaseRelationId ?
			((Form_pg_database) GETSTRUCT(tuple))->oid : ((Form_pg_authid) GETSTRUCT(tuple))->oid;
	}
	table_endscan(scan);
	table_close(relation, AccessShareLock);
	qsort(oids.oid, oids.n, sizeof(Oid), compare);
	return oids;
}

/* Add an OID to a sorted set. */
static void
add(Oid *set, uint32 *n, Oid oid)
{
	uint32		at = *n;

	if (*n == MISSING_MAX || contains(set, *n, oid))
		return;
	while (at > 0 && set[at - 1] > oid)
	{
		set[at] = set[at - 1];
		at--;
	}
	set[at] = oid;
	(*n)++;
}

/* What the queue refers to that is not there.	State lock. */
static void
look_at(const QcQueue *queue, const Oids *databases, const Oids *roles, Missing *missing)
{
	if (queue->state != QC_QUEUE_LIVE)
		return;
	if (!contains(databases->oid, databases->n, queue->database))
		add(missing->databases, &missing->ndatabases, queue->database);
	if (!contains(roles->oid, roles->n, queue->owner))
		add(missing->roles, &missing->nroles, queue->owner);
	for (const QcGrant *grant = QC_AT(qlog_state, QcGrant, queue->grants); grant != NULL;
		 grant = QC_AT(qlog_state, QcGrant, grant->next))
	{
		if (OidIsValid(grant->grantee) && !contains(roles->oid, roles->n, grant->grantee))
			add(missing->roles, &missing->nroles, grant->grantee);
	}
}

/*
 * Queues are looked at before the catalogs, so that what a queue refers to has been committed before: their ids are taken
 * first, then the catalogs are read, then the queues, which can only refer to something newer if they were altered since.
 * Two scans agree only on what is really gone.
 */
static void
scan(Missing *missing)
{
	Oids		databases;
	Oids		roles;
	uint64	   *ids;
	uint32		n;

	missing->ndatabases = missing->nroles = 0;
	StartTransactionCommand();
	ids = qlog_list_queues(InvalidOid, InvalidOid, &n);
	databases = read_oids(DatabaseRelationId);
	roles = read_oids(AuthIdRelationId);
	for (uint32 i = 0; i < n; i++)
	{
		const QcQueue *queue;

		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
		queue = qc_queue_by_id(qlog_state, ids[i]);
		if (queue != NULL)
			look_at(queue, &databases, &roles, missing);
		LWLockRelease(&qlog_shared->state_lock);
	}
	CommitTransactionCommand();
}

/* A queue to be swept. */
typedef struct Sweep
{
	uint64		queue;
	const Missing *missing;		/* by both scans */
} Sweep;

/* QlogChoose: drop the queue. */
static bool
choose_drop(void *context, QcSmallPlan *small)
{
	const Sweep *sweep = context;
	const QcQueue *queue = qc_queue_by_id(qlog_state, sweep->queue);
	QcQueueDrop drop = {.queue = sweep->queue};
	QcWriter	w;

	if (queue == NULL || queue->state != QC_QUEUE_LIVE ||
		!contains(sweep->missing->databases, sweep->missing->ndatabases, queue->database))
		return false;
	w = qc_plan_small_writer(small);
	qc_effect_put(&w, QC_EFFECT_QUEUE_DROP, &drop, 0);
	qc_plan_small_done(small, &w, 1);
	return true;
}

static bool
is_missing(const Sweep *sweep, Oid role)
{
	return contains(sweep->missing->roles, sweep->missing->nroles, role);
}

/* Elements of the queue's ACL that stay, by a grantor that is there; with w they are put. */
static uint32
put_grants(const Sweep *sweep, const QcQueue *queue, Oid owner, QcWriter *w)
{
	uint32		n = 0;

	for (const QcGrant *grant = QC_AT(qlog_state, QcGrant, queue->grants); grant != NULL;
		 grant = QC_AT(qlog_state, QcGrant, grant->next))
	{
		bool		owners = grant->grantee == queue->owner;
		QcQueueAlterItem item = {.grantee = owners ? owner : grant->grantee, .grantor = owner,
			.privileges = grant->privileges};

		if (!owners && is_missing(sweep, grant->grantee))
			continue;
		if (w != NULL)
			qc_effect_put_item(w, QC_EFFECT_QUEUE_ALTER, &item);
		n++;
	}
	return n;
}

/* QlogChoose: the queue without the roles that are missing.	 A queue that is being altered comes with the next scan. */
static bool
choose_alter(void *context, QcSmallPlan *small)
{
	const Sweep *sweep = context;
	const QcQueue *queue = qc_queue_by_id(qlog_state, sweep->queue);
	uint8		options[QC_OPTIONS_ENCODED_MAX];
	QcQueueAlter alter = {.queue = sweep->queue};
	QcWriter	w;

	if (queue == NULL || queue->state != QC_QUEUE_LIVE || queue->nalters > 0)
		return false;
	alter.owner = is_missing(sweep, queue->owner) ? BOOTSTRAP_SUPERUSERID : queue->owner;
	if (alter.owner == queue->owner && put_grants(sweep, queue, alter.owner, NULL) == queue->ngrants)
		return false;
	alter.flags = queue->flags;
	alter.name.bytes = (const uint8_t *) qc_name_at(qlog_state, queue->name);
	alter.name.len = queue->name_len;
	qc_writer_init(&w, options, sizeof(options));
	qc_options_put(&w, &queue->options);
	alter.options.bytes = options;
	alter.options.len = (uint16) w.len;
	w = qc_plan_small_writer(small);
	qc_effect_put(&w, QC_EFFECT_QUEUE_ALTER, &alter,
				  put_grants(sweep, queue, alter.owner, NULL));
	(void) put_grants(sweep, queue, alter.owner, &w);
	qc_plan_small_done(small, &w, 1);
	return true;
}

/* Log what choose finds to do; false = nothing, or it could not be logged. */
static bool
submit(QlogWorker *worker, Sweep *sweep, QlogChoose choose, size_t room)
{
	static uint8 *buffer = NULL;
	QcSmallPlan small;
	QcError		err;

	if (buffer == NULL)
	{
		QcQueueAlter largest = {.name = {NULL, QLOG_NAME_MAX},
			.options = {NULL, QC_OPTIONS_ENCODED_MAX}};

		buffer = MemoryContextAlloc(TopMemoryContext,
									QC_SMALL_BUFFER(qc_effect_size(QC_EFFECT_QUEUE_ALTER, &largest,
																   QLOG_GRANTS_MAX)));
	}
	qc_error_clear(&err);
	qc_plan_small(&small, buffer, room);
	if (choose == choose_alter)
	{
		small.plan.needs.nalters = 1;
		small.plan.needs.ngrants = QLOG_GRANTS_MAX;
		for (int i = 0; i < 4; i++)
			small.plan.needs.names[i] = 1;
	}
	if (qlog_try_submit(&small, choose, sweep, &err) != QC_OK)
	{
		qlog_worker_error(worker, &err, "could not sweep a queue");
		return false;
	}
	if (small.plan.seq == 0)
		return false;
	pg_atomic_fetch_add_u32(&qlog_shared->catalog_generation, 1);
	return true;
}

/* Drop the queues of a database that is gone. */
static void
sweep_database(QlogWorker *worker, const Missing *missing, Oid database)
{
	QcQueueDrop drop = {0};
	uint32		swept = 0;
	uint32		n;
	uint64	   *ids = qlog_list_queues(database, InvalidOid, &n);

	for (uint32 i = 0; i < n && !qlog_worker_shutdown(); i++)
	{
		Sweep		sweep = {ids[i], missing};

		swept += submit(worker, &sweep, choose_drop, qc_effect_size(QC_EFFECT_QUEUE_DROP, &drop, 0));
	}
	pfree(ids);
	if (swept > 0)
		ereport(LOG,
				(errmsg("qlog: dropped %u queues of the database with OID %u, which does not exist any more",
						swept, database)));
}

/* Let the queues forget a role that is gone. */
static void
sweep_role(QlogWorker *worker, const Missing *missing, Oid role)
{
	QcQueueAlter largest = {.name = {NULL, QLOG_NAME_MAX},
		.options = {NULL, QC_OPTIONS_ENCODED_MAX}};
	uint32		swept = 0;
	uint32		n;
	uint64	   *ids = qlog_list_queues(InvalidOid, role, &n);

	for (uint32 i = 0; i < n && !qlog_worker_shutdown(); i++)
	{
		Sweep		sweep = {ids[i], missing};

		swept += submit(worker, &sweep, choose_alter,
						qc_effect_size(QC_EFFECT_QUEUE_ALTER, &largest, QLOG_GRANTS_MAX));
	}
	pfree(ids);
	if (swept > 0)
		ereport(LOG,
				(errmsg("qlog: took the role with OID %u, which does not exist any more, out of %u queues",
						role, swept)));
}

/* Keep in `found` only what an earlier scan has missed as well. */
static void
confirm(const Missing *earlier, const Missing *now, Missing *found)
{
	found->ndatabases = found->nroles = 0;
	for (uint32 i = 0; i < now->ndatabases; i++)
	{
		if (contains(earlier->databases, earlier->ndatabases, now->databases[i]))
			add(found->databases, &found->ndatabases, now->databases[i]);
	}
	for (uint32 i = 0; i < now->nroles; i++)
	{
		if (contains(earlier->roles, earlier->nroles, now->roles[i]))
			add(found->roles, &found->nroles, now->roles[i]);
	}
}

static void
sweep(QlogWorker *worker)
{
	static Missing missing[2];
	static Missing found;
	static int	last = 0;
	int64		began = qlog_monotonic();

	scan(&missing[1 - last]);
	confirm(&missing[last], &missing[1 - last], &found);
	last = 1 - last;

	for (uint32 i = 0; i < found.ndatabases; i++)
		sweep_database(worker, &found, found.databases[i]);
	for (uint32 i = 0; i < found.nroles; i++)
		sweep_role(worker, &found, found.roles[i]);
	worker->passes++;
	worker->last_pass_us = qlog_monotonic() - began;
	worker->last_pass_at = GetCurrentTimestamp();
}

static bool
any_queue(void)
{
	bool		any;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	any = qlog_state->queues.head != 0;
	LWLockRelease(&qlog_shared->state_lock);
	return any;
}

/* Sleep for the whole time, whatever sets the latch. */
static void
nap(void)
{
	int64		due = qlog_monotonic() + (int64) qlog_sweep_naptime * USECS_PER_SEC;

	while (!qlog_worker_shutdown() && qlog_monotonic() < due)
		qlog_worker_sleep((long) ((due - qlog_monotonic()) / 1000) + 1);
}

void
qlog_sweeper_main(Datum arg)
{
	QlogWorker *worker = qlog_worker_begin((QlogWorkerKind) DatumGetInt32(arg));

	while (!qlog_worker_shutdown())
	{
		qlog_worker_state(worker, "idle");
		if (pg_atomic_read_u32(&qlog_shared->gate) != QLOG_GATE_READY)
		{
			/* Recovery wakes us when it has finished. */
			qlog_worker_sleep(-1);
			continue;
		}
		nap();
		if (qlog_worker_shutdown() || !any_queue())
			continue;
		qlog_worker_state(worker, "scan");
		sweep(worker);
	}
	qlog_worker_exit(worker);
}

void
qlog_sweeper_register(void)
{
	qlog_worker_register(QLOG_WORKER_SWEEPER, "qlog sweeper", "qlog_sweeper_main");
}
