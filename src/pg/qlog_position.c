/*
 * qlog_position.c
 *		Finding a position by time: binary search over the records of a partition.
 */
#include "qlog_position.h"

#include "miscadmin.h"

#include "qlog_commit.h"
#include "qlog_fetch.h"
#include "qlog_shmem.h"

#include "../core/qc_cursor.h"

int64
qlog_position_time(TimestampTz instant)
{
	if (TIMESTAMP_IS_NOBEGIN(instant))
		return PG_INT64_MIN;
	return TIMESTAMP_IS_NOEND(instant) ? PG_INT64_MAX : qlog_unix_us(instant);
}

/* When the first message of [*p, high) was pushed; *p is moved to it, to high when there is none. */
static int64
time_at(uint64 partition_id, uint64 *p, uint64 high)
{
	QcPartition *partition;
	QcRef		hint = 0;
	QlogSpot	spot;
	QcMessage	message;
	int64_t		created_at;
	uint64		seq;
	bool		found = false;

	LWLockAcquire(&qlog_shared->state_lock, LW_SHARED);
	partition = qc_partition_by_id(qlog_state, partition_id);
	seq = qlog_state->seq;
	if (partition != NULL)
	{
		*p = qc_skip_aborted(qlog_state, partition, *p);
		found = *p < high;
		if (found)
			qlog_spot_note(partition, *p, 0, &hint, &spot);
	}
	LWLockRelease(&qlog_shared->state_lock);
	if (!found)
	{
		*p = high;
		return 0;
	}
	qlog_write(seq);

	/* One that has gone meanwhile is older than all that are left. */
	return qlog_fetch_if_there(&spot, &message, &created_at) ? created_at : PG_INT64_MIN;
}

uint64
qlog_position_at(uint64 partition, uint64 low, uint64 high, int64 time)
{
	uint64		end = high;

	/* Below low everything is older; at high and above nothing is. */
	while (low < high)
	{
		uint64		middle = low + (high - low) / 2;
		uint64		p = middle;
		int64		pushed_at;

		CHECK_FOR_INTERRUPTS();
		pushed_at = time_at(partition, &p, end);
		if (p < end && pushed_at < time)
			low = p + 1;
		else
			high = middle;
	}
	return low;
}
