/*
 * qlog_disk.c
 *		Measuring the disks, and the files RESERVE.
 *
 * Each file system that a part of the data directory lies on has a RESERVE, in the first directory of ours on it.	 Its length is the truth
 * about what is left of it; it changes under the disk lock only.	 Its blocks are given out by the file system and never
 * written where that is possible.
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

/* Where parts of the data directory lie. */
typedef enum Part
{
	PART_DATA,
	PART_JOURNAL,
	PART_CHECKPOINT,
	PARTS
} Part;

static const char *const part_settings[PARTS] = {"qlog.data_directory", "qlog.journal_directory",
"qlog.checkpoint_directory"};

/* By the checkpointer worker: what it has logged, and what all reserves were when they were whole. */
static QlogDiskState logged = QLOG_DISK_OPEN;
static int64 whole = -1;

/* "" = it lies in the data directory. */
static const char *
part_directory(Part part)
{
	return part == PART_DATA ? qlog_directory() :
		qlog_site(part == PART_JOURNAL ? QC_SITE_JOURNAL : QC_SITE_CHECKPOINT);
}

dev_t
qlog_disk_device(const char *path)
{
	char		at[MAXPGPATH];
	struct stat st;

	strlcpy(at, path, sizeof(at));
	while (stat(at, &st) != 0)
	{
		char	   *slash = strrchr(at, '/');

		if (slash == NULL || slash == at)
			return 0;
		*slash = '\0';
	}
	return st.st_dev;
}

/* The part whose directory holds the reserve of this device; PARTS = we have nothing there. */
static Part
holder_of(dev_t device)
{
	Part		part = PART_DATA;

	while (part < PARTS && (part_directory(part)[0] == '\0' || qlog_disk_device(part_directory(part)) != device))
		part++;
	return part;
}

static bool
is_holder(Part part)
{
	const char *directory = part_directory(part);

	return directory[0] != '\0' && holder_of(qlog_disk_device(directory)) == part;
}

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

/* The first part whose file system is filled to more than pct percent; PARTS = none is. */
static Part
first_above(int pct)
{
	Measure		m;

	for (Part part = PART_DATA; part < PARTS; part++)
	{
		const char *directory = part_directory(part);

		if (directory[0] != '\0' && measure(directory, &m) && above(&m, pct))
			return part;
	}
	return PARTS;
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
	else if (first_above(qlog_disk_high_pct) < PARTS)
		set_state(QLOG_DISK_HIGH);
	else if (first_above(Min(qlog_disk_low_pct, qlog_disk_high_pct)) == PARTS)
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

/* ---- the reserve ---- */

static void
reserve_path(Part part, char path[MAXPGPATH])
{
	snprintf(path, MAXPGPATH, "%s/RESERVE", part_directory(part));
}

/* Its length; 0 when there is none. */
static int64
reserve_size(Part part)
{
	char		path[MAXPGPATH];
	struct stat st;

	reserve_path(part, path);
	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) ? (int64) st.st_size : 0;
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
resize(Part part, int64 size)
{
	char		path[MAXPGPATH];
	int			fd;
	int			rc;

	reserve_path(part, path);
	fd = BasicOpenFile(path, O_RDWR | O_CREAT | O_NOFOLLOW | PG_BINARY);
	if (fd < 0)
		return errno;
	rc = set_length(fd, reserve_size(part), size);
	close(fd);
	return rc;
}

bool
qlog_disk_give(dev_t device)
{
	int			saved = errno;
	Part		part;
	int64		size;
	bool		given = false;

	if (qlog_shared == NULL || (!entitled_here && CritSectionCount == 0))
		return false;
	part = holder_of(device);
	if (part == PARTS)
	{
		errno = saved;
		return false;
	}
	LWLockAcquire(&qlog_shared->disk_lock, LW_EXCLUSIVE);
	size = reserve_size(part);
	if (size > 0)
		given = resize(part, size > PIECE ? size - PIECE : 0) == 0;
	if (given)
	{
		qlog_fault_room += PIECE;
		set_state(QLOG_DISK_FULL);
	}
	LWLockRelease(&qlog_shared->disk_lock);
	errno = saved;
	return given;
}

/* Make a reserve what the setting says; whoever needs room all the time would have it gone at once, so as much again must be free. */
static int
make_whole(Part part, int64 want)
{
	int64		size = reserve_size(part);
	char		path[MAXPGPATH];
	Measure		m;

	if (size == want && want != 0)
		return 0;
	if (qlog_fault(QLOG_FAULT_RESERVE) != 0)
		return qlog_fault(QLOG_FAULT_RESERVE);
	if (want > size && measure(part_directory(part), &m) && m.avail < (uint64) (want - size) + (uint64) want)
		return ENOSPC;
	if (want > 0)
		return resize(part, want);
	reserve_path(part, path);
	return unlink(path) == 0 || errno == ENOENT ? 0 : errno;
}

/* Bring the reserves to their size if they are not; what cannot be done now counts as used up. */
static void
keep_reserve(void)
{
	int64		want = reserve_wanted();
	static int	reported = 0;
	Part		failed = PARTS;
	int			rc = 0;

	if (want == whole && state_now() != QLOG_DISK_FULL)
		return;
	LWLockAcquire(&qlog_shared->disk_lock, LW_EXCLUSIVE);
	for (Part part = PART_DATA; part < PARTS; part++)
	{
		int			error = is_holder(part) ? make_whole(part, want) : 0;

		if (error == 0 || (rc != 0 && !qlog_disk_is_full(error)))
			continue;
		rc = error;
		failed = part;
	}
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
				 errmsg("qlog: could not make the reserve \"%s/RESERVE\": %m", part_directory(failed)),
				 errdetail("Acknowledgements and checkpoints will lack it when the disk is full.")));
	}
	reported = rc;
}

/* ---- what is said ---- */

/* The setting whose file system lacks room. */
static const char *
culprit(QlogDiskState state)
{
	Part		part = state == QLOG_DISK_HIGH ? first_above(Min(qlog_disk_low_pct, qlog_disk_high_pct)) : PARTS;

	for (Part i = PART_DATA; i < PARTS && part == PARTS; i++)
		if (state == QLOG_DISK_FULL && is_holder(i) && reserve_size(i) < reserve_wanted())
			part = i;
	return part_settings[part == PARTS ? PART_DATA : part];
}

static void
refuse(QlogDiskState state)
{
	const char *setting = culprit(state);

	ereport(ERROR,
			(errcode(ERRCODE_DISK_FULL),
			 errmsg("could not push to a queue"),
			 state == QLOG_DISK_HIGH ?
			 errdetail("The file system of %s is filled to more than %d %%, or was and is not down to %d %% yet.",
					   setting, qlog_disk_high_pct, Min(qlog_disk_low_pct, qlog_disk_high_pct)) :
			 errdetail("The file system of %s is full; what is left of the reserve is kept for acknowledgements.", setting),
			 errhint("Make room on the file system that holds %s. Messages can be popped and acknowledged meanwhile.", setting)));
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

/* What is left of the smallest one. */
static int64
least_reserve(void)
{
	int64		least = reserve_size(PART_DATA);

	for (Part part = PART_JOURNAL; part < PARTS; part++)
		if (is_holder(part))
			least = Min(least, reserve_size(part));
	return least;
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
				 errhint("Make room on the file system that holds %s.", culprit(state))));
	else
		ereport(LOG,
				(errmsg("qlog: the disk is full, pushes are refused"),
				 errdetail("Of the reserve of %d MB there are %lld bytes left for acknowledgements and checkpoints.",
						   qlog_disk_reserve, (long long) least_reserve()),
				 errhint("Make room on the file system that holds %s.", culprit(state))));
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
	*free_bytes = -1;
	for (Part part = PART_DATA; part < PARTS; part++)
	{
		if (part_directory(part)[0] != '\0' && measure(part_directory(part), &m) &&
			(*free_bytes < 0 || (int64) m.avail < *free_bytes))
			*free_bytes = (int64) m.avail;
	}
	*reserve = least_reserve();
	*refused = state_now() != QLOG_DISK_OPEN || pg_atomic_read_u32(&qlog_shared->store_full) != 0;
}
