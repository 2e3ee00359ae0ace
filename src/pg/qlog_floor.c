/*
 * qlog_floor.c
 *		The file FLOOR.
 */
#include "qlog_floor.h"

#include "qlog_io.h"
#include "qlog_shmem.h"

#include "../core/qc_dir.h"

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
