/*
 * qlog_acl.c
 *		Privileges on queues.
 */
#include "qlog_acl.h"

#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/syscache.h"

#include "qlog_compat.h"

Acl *
qlog_acl_make(const QcQueueAlterItem *items, uint32 nitems)
{
	Acl		   *acl = palloc0(ACL_N_SIZE(nitems));

	SET_VARSIZE(acl, ACL_N_SIZE(nitems));
	acl->ndim = 1;
	acl->elemtype = ACLITEMOID;
	ARR_LBOUND(acl)[0] = 1;
	ARR_DIMS(acl)[0] = (int) nitems;
	for (uint32 i = 0; i < nitems; i++)
	{
		AclItem    *item = &ACL_DAT(acl)[i];

		item->ai_grantee = items[i].grantee;
		item->ai_grantor = items[i].grantor;
		ACLITEM_SET_PRIVS_GOPTIONS(*item, items[i].privileges & QLOG_PRIVILEGES, ACL_NO_RIGHTS);
	}
	return acl;
}

QcQueueAlterItem
qlog_acl_item(const Acl *acl, uint32 i)
{
	const AclItem *from = &ACL_DAT(acl)[i];
	QcQueueAlterItem item = {.grantee = from->ai_grantee, .grantor = from->ai_grantor,
		.privileges = (uint32) ACLITEM_GET_PRIVS(*from)};

	return item;
}

Acl *
qlog_acl_default(Oid owner)
{
	QcQueueAlterItem item = {.grantee = owner, .grantor = owner, .privileges = QLOG_PRIVILEGES};

	return qlog_acl_make(&item, 1);
}

bool
qlog_acl_has(const QlogQueue *queue, Oid role, AclMode privileges, AclMaskHow how)
{
	AclMode		held;

	if (queue->acl == NULL)
		return role == queue->owner || has_privs_of_role(role, queue->owner);
	if (superuser_arg(role))
		return true;
	held = aclmask(queue->acl, role, queue->owner, privileges, how);
	return how == ACLMASK_ALL ? held == privileges : held != ACL_NO_RIGHTS;
}

bool
qlog_acl_names(const QlogQueue *queue, Oid role)
{
	if (queue->owner == role)
		return true;
	for (int i = 0; queue->acl != NULL && i < ACL_NUM(queue->acl); i++)
	{
		if (ACL_DAT(queue->acl)[i].ai_grantee == role)
			return true;
	}
	return false;
}

bool
qlog_acl_owns(const QlogQueue *queue)
{
	return GetUserId() == queue->owner || has_privs_of_role(GetUserId(), queue->owner);
}

bool
qlog_acl_monitors(void)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_MONITOR);
}

bool
qlog_acl_sees(const QlogQueue *queue)
{
	return qlog_acl_has(queue, GetUserId(), QLOG_PRIVILEGES, ACLMASK_ANY) ||
		qlog_acl_owns(queue) || qlog_acl_monitors();
}

void
qlog_acl_check(const QlogQueue *queue, AclMode privilege, QlogName name)
{
	if (qlog_acl_has(queue, GetUserId(), privilege, ACLMASK_ANY) ||
		(privilege == QLOG_MANAGE && qlog_acl_owns(queue)))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for queue \"%.*s\"", QLOG_NAME(name))));
}

void
qlog_acl_check_owner(const QlogQueue *queue, QlogName name)
{
	if (!qlog_acl_owns(queue))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of queue \"%.*s\"", QLOG_NAME(name))));
}

void
qlog_acl_check_create(QlogName queue)
{
	if (!qlog_may_create_in_database(MyDatabaseId, GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to create queue \"%.*s\"", QLOG_NAME(queue)),
				 errdetail("Creating a queue needs the CREATE privilege on database \"%s\".",
						   get_database_name(MyDatabaseId))));
}

void
qlog_acl_lock_role(Oid role)
{
	LockSharedObject(AuthIdRelationId, role, 0, AccessShareLock);
	if (!SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(role)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("role with OID %u does not exist", role)));
}
