/*
 * qlog_floor.c
 *		The floor.
 */
#include "qlog_floor.h"

#include "qlog_io.h"
#include "qlog_shmem.h"

#include "../core/qc_dir.h"

uint64
qlog_floor(void)
{
	uint64		seq;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	seq = qlog_state->checkpoint_seq;
	LWLockRelease(&qlog_shared->state_lock);
	return seq;
}

QcStatus
qlog_floor_raise(uint64 seq, QcError *err)
{
	uint64_t	old;
	QcStatus	status;

	LWLockAcquire(&qlog_shared->floor_lock, LW_EXCLUSIVE);
	status = qc_dir_read_floor(qlog_io(), &old, err);
	if (status == QC_OK && seq > old)
		status = qc_dir_write_floor(qlog_io(), seq, err);
	LWLockRelease(&qlog_shared->floor_lock);
	return status;
}
