/*
 * qlog_fault.h
 *		Errors of files that a test has ordered.
 *
 * The setting qlog.debug_fault (superusers only, not shown in the sample file) lists places and what fails there, such as
 * "create=ENOSPC, extend=ENOSPC" for a full disk.  A place that is listed fails every time, until the setting is
 * changed.  With the setting empty a place costs one load and a branch.
 *
 * Callers: qlog_io.c, qlog_stash.c, wrk_checkpoint.c, and qlog_guc.c for the setting's hooks.
 */
#ifndef QLOG_FAULT_H
#define QLOG_FAULT_H

#include "postgres.h"

#include "utils/guc.h"

/* Each place and its name in the setting. */
#define QLOG_FAULT_LIST(FAULT) \
	FAULT(CREATE, "create")		/* a new file or directory */ \
	FAULT(EXTEND, "extend")		/* a write beyond the end of a file, of which a part is done */ \
	FAULT(MEASURE, "measure")	/* the disk is measured, and found full */ \
	FAULT(OPEN, "open")			/* a file that exists */ \
	FAULT(READ, "read") \
	FAULT(RENAME, "rename") \
	FAULT(RESERVE, "reserve")	/* the reserve is made whole */ \
	FAULT(STASH, "stash")		/* a write to the stash, during redo */ \
	FAULT(STORE, "store")		/* a write to the checkpoint store */ \
	FAULT(SYNC, "sync")			/* of a file, a directory or the file system */ \
	FAULT(TRUNCATE, "truncate") \
	FAULT(UNLINK, "unlink")		/* of a file or a directory */ \
	FAULT(WRITE, "write")

typedef enum QlogFault
{
#define QLOG_FAULT_ENUM(name, text) QLOG_FAULT_##name,
	QLOG_FAULT_LIST(QLOG_FAULT_ENUM)
#undef QLOG_FAULT_ENUM
	QLOG_FAULT_COUNT
} QlogFault;

extern char *qlog_debug_fault;
extern int	qlog_fault_errno[QLOG_FAULT_COUNT];

/* Bytes that a full disk of a test takes all the same, since this process has given up a piece of the reserve. */
extern int64 qlog_fault_room;

/* The error that was ordered for this place, where `bytes` are needed; 0 = none. */
extern int	qlog_fault_need(QlogFault place, uint64 bytes);

/* The error that was ordered for this place; 0 = none. */
static inline int
qlog_fault(QlogFault place)
{
	return qlog_fault_errno[place];
}

/* Hooks of the setting. */
extern bool qlog_fault_check(char **value, void **extra, GucSource source);
extern void qlog_fault_assign(const char *value, void *extra);

#endif							/* QLOG_FAULT_H */
