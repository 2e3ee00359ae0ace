/*
 * qlog_compat.h
 *		Differences between PostgreSQL versions: the only place that tests PG_VERSION_NUM.
 *
 * Written for 15, kept buildable on 17 and 18.
 */
#ifndef QLOG_COMPAT_H
#define QLOG_COMPAT_H

#include "postgres.h"

#include "access/transam.h"
#include "access/xloginsert.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/wait_event.h"

/* The next transaction id, as the startup process left it. */
#if PG_VERSION_NUM >= 170000
#define QLOG_NEXT_XID()		U64FromFullTransactionId(TransamVariables->nextXid)
#define QLOG_OLDEST_CLOG()	(TransamVariables->oldestClogXid)
#else
#define QLOG_NEXT_XID()		U64FromFullTransactionId(ShmemVariableCache->nextXid)
#define QLOG_OLDEST_CLOG()	(ShmemVariableCache->oldestClogXid)
#endif

/* Index of this process in ProcGlobal->allProcs. */
#if PG_VERSION_NUM >= 170000
#define QLOG_PROC_NUMBER()	((int) GetNumberFromPGProc(MyProc))
#else
#define QLOG_PROC_NUMBER()	(MyProc->pgprocno)
#endif

/* No particular backend, for SendProcSignal. */
#if PG_VERSION_NUM >= 170000
#define QLOG_NO_BACKEND		INVALID_PROC_NUMBER
#else
#define QLOG_NO_BACKEND		InvalidBackendId
#endif

/* XLogRegisterData took a plain char pointer before 18. */
static inline void
qlog_xlog_register(const void *data, uint32 len)
{
#if PG_VERSION_NUM >= 180000
	XLogRegisterData(data, len);
#else
	XLogRegisterData((char *) (uintptr_t) data, len);
#endif
}

/* Named wait events exist from 17 on; before, everything is Extension. */
#if PG_VERSION_NUM >= 170000
#define QLOG_WAIT_EVENT(name) \
	({ static uint32 event_ = 0; if (event_ == 0) event_ = WaitEventExtensionNew(name); event_; })
#else
#define QLOG_WAIT_EVENT(name) PG_WAIT_EXTENSION
#endif

/* Has the role the CREATE privilege on the database? */
static inline bool
qlog_may_create_in_database(Oid database, Oid role)
{
#if PG_VERSION_NUM >= 160000
	return object_aclcheck(DatabaseRelationId, database, role, ACL_CREATE) == ACLCHECK_OK;
#else
	return pg_database_aclcheck(database, role, ACL_CREATE) == ACLCHECK_OK;
#endif
}

/* 42501 unless the current role may act for the other one. */
static inline void
qlog_check_may_set_role(Oid role)
{
#if PG_VERSION_NUM >= 160000
	check_can_set_role(GetUserId(), role);
#else
	check_is_member_of_role(GetUserId(), role);
#endif
}

#endif							/* QLOG_COMPAT_H */
