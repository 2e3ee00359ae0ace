/*
 * qlog_acl.c
 *		Privileges on queues.
 */
#include "qlog_acl.h"

#include "catalog/pg_authid.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/syscache.h"

#include "qlog_compat.h"

bool
qlog_acl_allows(Oid owner)
{
	Oid			user = GetUserId();

	return user == owner || has_privs_of_role(user, owner);
}

void
qlog_acl_check_use(Oid owner, QlogName queue)
{
	if (!qlog_acl_allows(owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for queue \"%.*s\"", QLOG_NAME(queue))));
}

void
qlog_acl_check_owner(Oid owner, QlogName queue)
{
	if (!qlog_acl_allows(owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of queue \"%.*s\"", QLOG_NAME(queue))));
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
qlog_acl_lock_owner(Oid owner)
{
	LockSharedObject(AuthIdRelationId, owner, 0, AccessShareLock);
	if (!SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(owner)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("role with OID %u was concurrently dropped", owner)));
}
