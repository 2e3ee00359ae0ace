/*
 * qlog_alter.c
 *		New definitions of queues, from a function to the transaction's entry.
 */
#include "qlog_alter.h"

#include "access/xact.h"
#include "utils/array.h"
#include "utils/memutils.h"

#include "qlog_namelock.h"
#include "qlog_shmem.h"

/* 42501 unless the current role may alter the queue. */
static void
check_right(const QlogQueue *queue, bool by_owner, QlogName name)
{
	if (by_owner)
		qlog_acl_check_owner(queue, name);
	else
		qlog_acl_check(queue, QLOG_MANAGE, name);
}

void
qlog_alter_begin(QlogName name, bool by_owner, LOCKMODE mode, QlogQueue *queue)
{
	/*
	 * Only who may alter it may wait for its lock; after the wait it may be another queue, or
	 * gone.
	 */
	qlog_queue_require(name, queue);
	check_right(queue, by_owner, name);
	qlog_lock_name(name, mode);
	qlog_queue_require(name, queue);
	check_right(queue, by_owner, name);
}

/* Elements of its ACL as the log keeps them, palloc'ed. */
static QcQueueAlterItem *
acl_items(const Acl *acl, uint32 *nitems)
{
	uint32		n = acl == NULL ? 0 : (uint32) ACL_NUM(acl);
	QcQueueAlterItem *items = palloc(Max(n, 1) * sizeof(QcQueueAlterItem));

	if (n > QLOG_GRANTS_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many roles have privileges on the queue"),
				 errdetail("At most %d roles may be granted privileges on one queue.",
						   QLOG_GRANTS_MAX),
				 errhint("Grant the privileges to a role, and the role to its members.")));
	for (uint32 i = 0; i < n; i++)
		items[i] = qlog_acl_item(acl, i);
	*nitems = n;
	return items;
}

/*
 * A longer dedup window does not bring back what had left the shorter one: those ids may be forgotten already, and a start
 * reads all that are known from the logs.
 */
static void
keep_forgotten(uint64 id, QcOptions *options)
{
	const QcQueue *queue;
	int64		since = 0;

	qlog_lock_state();
	queue = qc_queue_by_id(qlog_state, id);
	if (queue != NULL)
	{
		int64		window = queue->options.value[QC_OPT_DEDUP_WINDOW];

		if (options->value[QC_OPT_DEDUP_WINDOW] > window)
			since = qlog_now() - window;
	}
	qlog_unlock_state();
	if (since > options->value[QC_OPT_DEDUP_SINCE])
	{
		options->value[QC_OPT_DEDUP_SINCE] = since;
		options->set |= 1u << QC_OPT_DEDUP_SINCE;
	}
}

/* Stage the definition, and what the name means from now on. */
static void
stage(const QlogQueue *queue, QlogName name)
{
	QlogQueue	changed = *queue;
	QcQueueAlter alter = {.queue = queue->id, .owner = queue->owner};
	uint8		options[QC_OPTIONS_ENCODED_MAX];
	QcWriter	w;
	uint32		nitems;
	QcQueueAlterItem *items = acl_items(queue->acl, &nitems);

	changed.flags &= (uint8) ~QC_QUEUE_HAS_ACL;
	if (queue->acl != NULL)
	{
		changed.flags |= QC_QUEUE_HAS_ACL;
		changed.acl = MemoryContextAlloc(qlog_stage_context(), ACL_SIZE(queue->acl));
		memcpy(changed.acl, queue->acl, ACL_SIZE(queue->acl));
	}
	keep_forgotten(queue->id, &changed.options);
	qc_writer_init(&w, options, sizeof(options));
	qc_options_put(&w, &changed.options);
	alter.flags = changed.flags;
	alter.name.bytes = (const uint8_t *) name.text;
	alter.name.len = name.len;
	alter.options.bytes = options;
	alter.options.len = (uint16) w.len;
	(void) GetCurrentTransactionId();
	qlog_stage_alter(&alter, items, nitems);
	qlog_stage_change(QLOG_CHANGE_ALTERED, &changed, 0, name);
	pfree(items);
}

void
qlog_alter_stage(const QlogQueue *queue, QlogName name)
{
	stage(queue, name);
}

void
qlog_alter_rename(const QlogQueue *queue, QlogName name, QlogName new_name)
{
	qlog_stage_change(QLOG_CHANGE_RENAMED, queue, 0, name);
	stage(queue, new_name);
}

void
qlog_alter_owner(QlogQueue *queue, Oid owner)
{
	qlog_acl_lock_role(owner);
	if (queue->acl != NULL)
		queue->acl = aclnewowner(queue->acl, queue->owner, owner);
	queue->owner = owner;
}

void
qlog_alter_acl(QlogQueue *queue, Oid role, AclMode privileges, bool add)
{
	Acl		   *acl = queue->acl != NULL ? queue->acl : qlog_acl_default(queue->owner);
	AclItem		item = {.ai_grantee = role, .ai_grantor = queue->owner};

	if (add && OidIsValid(role))
		qlog_acl_lock_role(role);
	ACLITEM_SET_PRIVS_GOPTIONS(item, privileges, ACL_NO_RIGHTS);
	queue->acl = aclupdate(acl, &item, add ? ACL_MODECHG_ADD : ACL_MODECHG_DEL, queue->owner,
						   DROP_RESTRICT);
}
