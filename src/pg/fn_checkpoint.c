/*
 * fn_checkpoint.c
 *		qlog_checkpoint: the state is stored now.
 */
#include "postgres.h"

#include "fmgr.h"

#include "qlog_args.h"
#include "qlog_snapshot.h"

PG_FUNCTION_INFO_V1(qlog_checkpoint);

Datum
qlog_checkpoint(PG_FUNCTION_ARGS)
{
	qlog_enter_read("qlog_checkpoint()");
	PG_RETURN_INT64((int64) qlog_checkpoint_now(!PG_ARGISNULL(0) && PG_GETARG_BOOL(0)));
}
