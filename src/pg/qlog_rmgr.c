/*
 * qlog_rmgr.c
 *		qlog's resource manager.
 *
 * Redo decodes nothing and decides nothing: it copies every record into the stash, from where recovery of our own log
 * takes it.  There is no rm_decode, so logical decoding never sees our records.
 */
#include "qlog_rmgr.h"

#include "access/rmgr.h"
#include "access/xlog_internal.h"
#include "access/xloginsert.h"
#include "access/xlogreader.h"
#include "access/xlogrecovery.h"
#include "access/xlogutils.h"

#include "qlog_compat.h"
#include "qlog_stash.h"

static void
redo(XLogReaderState *record)
{
	QcStashRecord stash = {.kind = (QcWalKind) (XLogRecGetInfo(record) & ~XLR_INFO_MASK),
		.end_lsn = record->EndRecPtr, .body = (const uint8 *) XLogRecGetData(record),
		.body_len = XLogRecGetDataLen(record)};
	TimeLineID	timeline;

	(void) GetCurrentReplayRecPtr(&timeline);
	stash.timeline = timeline;
	qlog_stash_append(&stash);

	/*
	 * On a standby a restartpoint may follow: what lies before the barrier must not depend on the
	 * WAL any more.
	 */
	if (stash.kind == QC_WAL_BARRIER && InArchiveRecovery)
		qlog_stash_sync();
}

static void
describe(StringInfo buf, XLogReaderState *record)
{
	QcWalKind	kind = (QcWalKind) (XLogRecGetInfo(record) & ~XLR_INFO_MASK);
	const uint8 *body = (const uint8 *) XLogRecGetData(record);
	size_t		len = XLogRecGetDataLen(record);
	QcWalEntry	entry;
	QcWalMark	mark;
	QcError		err;

	if (kind == QC_WAL_ENTRY && qc_wal_entry_decode(body, len, &entry, &err) == QC_OK)
		appendStringInfo(buf, "seq " UINT64_FORMAT " xid " UINT64_FORMAT " %s", entry.seq,
						 entry.xid, entry.nparts > 0 ? "carried" : "referenced");
	else if (kind != QC_WAL_ENTRY && qc_wal_mark_decode(kind, body, len, &mark, &err) == QC_OK)
		appendStringInfo(buf, "seq " UINT64_FORMAT, mark.seq);
}

static const char *
identify(uint8 info)
{
	switch (info & ~XLR_INFO_MASK)
	{
		case QC_WAL_ENTRY:
			return "ENTRY";
		case QC_WAL_BARRIER:
			return "BARRIER";
		case QC_WAL_EPOCH:
			return "EPOCH";
	}
	return NULL;
}

/* The end of redo, in crash recovery and at promotion: what recovery of our log has to know of it. */
static void
cleanup(void)
{
	qlog_stash_end();
	qlog_shared->end_of_redo = GetXLogReplayRecPtr(NULL);
	qlog_shared->next_xid = QLOG_NEXT_XID();
}

static const RmgrData rmgr = {
	.rm_name = "qlog",
	.rm_redo = redo,
	.rm_desc = describe,
	.rm_identify = identify,
	.rm_cleanup = cleanup
};

void
qlog_rmgr_init(void)
{
	RegisterCustomRmgr(QLOG_RMGR_ID, (RmgrData *) &rmgr);
}

XLogRecPtr
qlog_wal_entry(const uint8 *body, uint32 len)
{
	XLogBeginInsert();
	qlog_xlog_register(body, len);
	return XLogInsert(QLOG_RMGR_ID, QC_WAL_ENTRY);
}

XLogRecPtr
qlog_wal_mark(QcWalKind kind, const QcWalMark *mark)
{
	uint8		body[QC_WALREC_MARK_MAX];
	QcWriter	w;

	qc_writer_init(&w, body, sizeof(body));
	qc_wal_mark_put(&w, kind, mark);
	XLogBeginInsert();
	qlog_xlog_register(body, (uint32) w.len);
	return XLogInsert(QLOG_RMGR_ID, (uint8) kind);
}
