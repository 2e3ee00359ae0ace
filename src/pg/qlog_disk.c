/*
 * qlog_disk.c
 *		Measuring the disk, and the file RESERVE.
 *
 * The length of RESERVE is the truth about what is left of it; it changes under the disk lock only.	Its blocks are given
 * out by the file system and never written where that is possible.
 */
#include "qlog_disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "miscadmin.h"
#include "storage/fd.h"

#include "qlog_fault.h"
#include "qlog_guc.h"
#include "qlog_shmem.h"

#define LOOK_US		1000000		/* between two measurements */
#define PIECE		(1024 * 1024)	/* given up at a time */

static bool entitled_here = false;

/* By the checkpointer worker: what it has logged, and what the reserve was when it was whole. */
static QlogDiskState logged = QLOG_DISK_OPEN;
static int64 whole = -1;

static QlogDiskState
state_now(void)
{
	return (QlogDiskState) pg_atomic_read_u32(&qlog_shared->disk_state);
}

static void
set_state(QlogDiskState state)
{
	if (pg_atomic_exchange_u32(&qlog_shared->disk_state, (uint32) state) != (uint32) state)
		qlog_worker_wake(QLOG_WORKER_CHECKPOINTER);
}

bool
qlog_disk_is_full(int error)
{
	return error == ENOSPC || error == EDQUOT;
}

bool
qlog_disk_entitle(bool entitled)
{
	bool		before = entitled_here;

	entitled_here = entitled;
	return before;
}

/* A measurement; false when the file system does not tell. */
typedef struct Measure
{
	uint64		avail;			/* bytes that may be used */
	uint64		used;
} Measure;

static bool
measure(const char *directory, Measure *m)
{
	struct statvfs fs;

	if (statvfs(directory, &fs) != 0)
		return false;
	m->avail = (uint64) fs.f_bavail * fs.f_frsize;
	m->used = (uint64) (fs.f_blocks - fs.f_bfree) * fs.f_frsize;
	if (qlog_fault(QLOG_FAULT_MEASURE) != 0)
	{
		m->used += m->avail;
		m->avail = 0;
	}
	return true;
}

/* Is more than pct percent in use, as df counts?  100 = never. */
static bool
above(const Measure *m, int pct)
{
	return pct < 100 &&
		(double) m->used * 100.0 > (double) pct * ((double) m->used + (double) m->avail);
}

/* Is more than pct percent in use of any file system that holds a part of the data directory? */
static bool
any_above(int pct)
{
	const char *const directories[] = {qlog_directory(), qlog_site(QC_SITE_JOURNAL),
	qlog_site(QC_SITE_CHECKPOINT)};
	Measure		m;

	for (size_t i = 0; i < lengthof(directories); i++)
	{
		if (directories[i][0] != '\0' && measure(directories[i], &m) && above(&m, pct))
			return true;
	}
	return false;
}

/* Measure, and judge when the reserve is whole.	Disk lock. */
static void
look(void)
{
	QlogDiskState state = state_now();

	pg_atomic_write_u64(&qlog_shared->disk_looked, (uint64) qlog_monotonic());
	if (state == QLOG_DISK_FULL)
		return;
	if (qlog_disk_high_pct == 100)
		set_state(QLOG_DISK_OPEN);
	else if (any_above(qlog_disk_high_pct))
		set_state(QLOG_DISK_HIGH);
	else if (!any_above(Min(qlog_disk_low_pct, qlog_disk_high_pct)))
		set_state(QLOG_DISK_OPEN);
}

/* Measure unless that was done within the last second, or is being done. */
static void
look_if_due(void)
{
	if (qlog_monotonic() < (int64) pg_atomic_read_u64(&qlog_shared->disk_looked) + LOOK_US ||
		!LWLockConditionalAcquire(&qlog_shared->disk_lock, LW_EXCLUSIVE))
		return;
	look();
	LWLockRelease(&qlog_shared->disk_lock);
}

static void
refuse(QlogDiskState state)
{
	ereport(ERROR,
			(errcode(ERRCODE_DISK_FULL),
			 errmsg("could not push to a queue"),
			 state == QLOG_DISK_HIGH ?
			 errdetail("The file system of qlog.data_directory is filled to more than %d %%, or was and is not down to %d %% yet.",
					   qlog_disk_high_pct, Min(qlog_disk_low_pct, qlog_disk_high_pct)) :
			 errdetail("The file system of qlog.data_directory is full; what is left of the reserve is kept for acknowledgements."),
			 errhint("Make room on the file system that holds qlog.data_directory. Messages can be popped and acknowledged meanwhile.")));
}

void
qlog_disk_check_call(void)
{
	QlogDiskState state = state_now();

	if (state == QLOG_DISK_OPEN)
		return;
	look_if_due();
	state = state_now();
	if (state != QLOG_DISK_OPEN)
		refuse(state);
}

void
qlog_disk_check(const QcPlan *plan)
{
	QlogDiskState state;

	if (!plan->grows)
		return;
	look_if_due();
	state = state_now();
	if (state != QLOG_DISK_OPEN)
		refuse(state);
}

/* ---- the reserve ---- */

static const char *
reserve_path(void)
{
	static char path[MAXPGPATH];

	if (path[0] == '\0')
		snprintf(path, sizeof(path), "%s/RESERVE", qlog_directory());
	return path;
}

/* Its length; 0 when there is none. */
static int64
reserve_size(void)
{
	struct stat st;

	return lstat(reserve_path(), &st) == 0 && S_ISREG(st.st_mode) ? (int64) st.st_size : 0;
}

static int64
reserve_wanted(void)
{
	return (int64) qlog_disk_reserve * 1024 * 1024;
}

/* Change its length, taking its bytes from the file system when it grows.  0 or an errno value. */
static int
set_length(int fd, int64 from, int64 to)
{
	static const char zeros[65536];

	if (to <= from)
		return ftruncate(fd, (off_t) to) == 0 ? 0 : errno;
#ifdef __linux__
	if (fallocate(fd, 0, (off_t) from, (off_t) (to - from)) == 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return errno;
#endif
	while (from < to)
	{
		ssize_t		n = pg_pwrite(fd, zeros, (size_t) Min(to - from, (int64) sizeof(zeros)), (off_t) from);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : ENOSPC;
		from += n;
	}
	return 0;
}

/* Make it this long, and make it when it is missing.  0 or an errno value.	Disk lock. */
static int
resize(int64 size)
{
	int			fd = BasicOpenFile(reserve_path(), O_RDWR | O_CREAT | O_NOFOLLOW | PG_BINARY);
	int			rc;

	if (fd < 0)
		return errno;
	rc = set_length(fd, reserve_size(), size);
	close(fd);
	return rc;
}

bool
qlog_disk_give(void)
{
	int			saved = errno;
	int64		size;
	bool		given = false;

	if (qlog_shared == NULL || (!entitled_here && CritSectionCount == 0))
		return false;
	LWLockAcquire(&qlog_shared->disk_lock, LW_EXCLUSIVE);
	size = reserve_size();
	if (size > 0)
		given = resize(size > PIECE ? size - PIECE : 0) == 0;
	if (given)
	{
		qlog_fault_room += PIECE;
		set_state(QLOG_DISK_FULL);
	}
	LWLockRelease(&qlog_shared->disk_lock);
	errno = saved;
	return given;
}

/* Make the reserve what the setting says; whoever needs room all the time would have it gone at once, so as much again must be free. */
static int
make_whole(int64 size, int64 want)
{
	Measure		m;

	if (qlog_fault(QLOG_FAULT_RESERVE) != 0)
		return qlog_fault(QLOG_FAULT_RESERVE);
	if (want > size && measure(qlog_directory(), &m) && m.avail < (uint64) (want - size) + (uint64) want)
		return ENOSPC;
	if (want > 0)
		return resize(want);
	return unlink(reserve_path()) == 0 || errno == ENOENT ? 0 : errno;
}

/* Bring the reserve to its size if it is not; what cannot be done now counts as used up. */
static void
keep_reserve(void)
{
	int64		want = reserve_wanted();
	static int	reported = 0;
	int64		size;
	int			rc = 0;

	if (want == whole && state_now() != QLOG_DISK_FULL)
		return;
	LWLockAcquire(&qlog_shared->disk_lock, LW_EXCLUSIVE);
	size = reserve_size();
	if (size != want || want == 0)
		rc = make_whole(size, want);
	whole = rc == 0 ? want : -1;
	if (rc == 0 && state_now() == QLOG_DISK_FULL)
		set_state(QLOG_DISK_HIGH);	/* until it is measured */
	else if (qlog_disk_is_full(rc))
		set_state(QLOG_DISK_FULL);
	LWLockRelease(&qlog_shared->disk_lock);
	if (rc != reported && rc != 0 && !qlog_disk_is_full(rc))
	{
		errno = rc;
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("qlog: could not make the reserve \"%s\": %m", reserve_path()),
				 errdetail("Acknowledgements and checkpoints will lack it when the disk is full.")));
	}
	reported = rc;
}

/* Say what has changed since the last time. */
static void
log_state(void)
{
	QlogDiskState state = state_now();

	if (state == logged)
		return;
	logged = state;
	if (state == QLOG_DISK_OPEN)
		ereport(LOG, (errmsg("qlog: there is room on the disk, pushes are accepted again")));
	else if (state == QLOG_DISK_HIGH)
		ereport(LOG,
				(errmsg("qlog: the disk is filled to more than %d %%, pushes are refused",
						qlog_disk_high_pct),
				 errdetail("They are accepted again at %d %%.", Min(qlog_disk_low_pct, qlog_disk_high_pct)),
				 errhint("Make room on the file system that holds qlog.data_directory.")));
	else
		ereport(LOG,
				(errmsg("qlog: the disk is full, pushes are refused"),
				 errdetail("Of the reserve of %d MB there are %lld bytes left for acknowledgements and checkpoints.",
						   qlog_disk_reserve, (long long) reserve_size()),
				 errhint("Make room on the file system that holds qlog.data_directory.")));
}

void
qlog_disk_upkeep(bool now)
{
	static int64 next = 0;

	if (now || qlog_monotonic() >= next)
	{
		next = qlog_monotonic() + LOOK_US;
		keep_reserve();
		LWLockAcquire(&qlog_shared->disk_lock, LW_EXCLUSIVE);
		look();
		LWLockRelease(&qlog_shared->disk_lock);
	}
	log_state();
}

bool
qlog_disk_short(void)
{
	return state_now() != QLOG_DISK_OPEN;
}

bool
qlog_disk_watch(void)
{
	return state_now() != QLOG_DISK_OPEN || whole != reserve_wanted();
}

void
qlog_disk_figures(int64 *free_bytes, int64 *reserve, bool *refused)
{
	Measure		m;

	look_if_due();
	*free_bytes = measure(qlog_directory(), &m) ? (int64) m.avail : -1;
	*reserve = reserve_size();
	*refused = state_now() != QLOG_DISK_OPEN || pg_atomic_read_u32(&qlog_shared->store_full) != 0;
}
