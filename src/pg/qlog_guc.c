/*
 * qlog_guc.c
 *		Settings, prefix qlog., alphabetical within each type.
 *
 * The variables begin with their boot values.	Those that size shared memory or name files can be set only when the
 * server starts, and are defined only then.
 */
#include "qlog_guc.h"

#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/guc.h"

#include "qlog_fault.h"
#include "qlog_io.h"
#include "qlog_stop.h"

#include "../core/qc_dir.h"

#define MB_IN_KB 1024

bool		qlog_allow_gap = false;
bool		qlog_auto_create = true;
int			qlog_buffers = 16 * MB_IN_KB;
int			qlog_checkpoint_bytes = 256;
int			qlog_checkpoint_max_size = 16384;
int			qlog_checkpoint_timeout = 1000;
int			qlog_commit_delay = 0;
int			qlog_commit_siblings = 5;
int			qlog_compression_level = 1;
char	   *qlog_data_directory = "qlog";
static char *checkpoint_directory = "";
static char *journal_directory = "";
int			qlog_dedup_memory = 64 * MB_IN_KB;
int			qlog_directory_layout = QC_LAYOUT_FLAT;
int			qlog_disk_high_pct = 85;
int			qlog_disk_low_pct = 80;
int			qlog_disk_reserve = 32;
bool		qlog_drop_page_cache = false;
int			qlog_index_memory = 64 * MB_IN_KB;
int			qlog_keep_old_files = 0;
int			qlog_log_flush_interval = 100;
int			qlog_max_leases_per_cursor = 10000;
int			qlog_max_message_size = 16 * MB_IN_KB;
int			qlog_max_pop_wait = 5000;
int			qlog_max_transaction_bytes = QLOG_MAX_TRANSACTION_KB;
int			qlog_preallocate = 16 * MB_IN_KB;
int			qlog_reclaim_naptime = 5000;
int			qlog_recovery_wait = 30000;
int			qlog_retention_naptime = 5000;
int			qlog_scrub_interval = 24 * 3600;
int			qlog_scrub_rate = 4 * MB_IN_KB;
int			qlog_seal_age = 600000;
int			qlog_segment_size = 64;
int			qlog_shards = 0;
int			qlog_snapshot_interval = 300;
int			qlog_sweep_naptime = 60;
int			qlog_state_memory = 256 * MB_IN_KB;
int			qlog_sync_method = QLOG_SYNC_AUTO;
bool		qlog_track_timing = true;
int			qlog_wal_carry = QLOG_WAL_CARRY_JOINT;
int			qlog_wal_payload_limit = 8192;

static const struct config_enum_entry layout_options[] = {
	{"flat", QC_LAYOUT_FLAT, false},
	{"hierarchical", QC_LAYOUT_HIERARCHICAL, false},
	{NULL, 0, false}
};

static const struct config_enum_entry sync_method_options[] = {
	{"auto", QLOG_SYNC_AUTO, false},
	{"files", QLOG_SYNC_FILES, false},
	{"syncfs", QLOG_SYNC_SYNCFS, false},
	{NULL, 0, false}
};

static const struct config_enum_entry wal_carry_options[] = {
	{"joint", QLOG_WAL_CARRY_JOINT, false},
	{"all", QLOG_WAL_CARRY_ALL, false},
	{NULL, 0, false}
};

typedef struct BoolSetting
{
	const char *name;
	const char *text;
	bool	   *value;
	GucContext	context;
} BoolSetting;

typedef struct IntSetting
{
	const char *name;
	const char *text;
	int		   *value;
	int			min;
	int			max;
	GucContext	context;
	int			flags;
} IntSetting;

typedef struct EnumSetting
{
	const char *name;
	const char *text;
	int		   *value;
	const struct config_enum_entry *options;
	GucContext	context;
	GucEnumCheckHook check;
} EnumSetting;

static const BoolSetting bools[] = {
	{"qlog.allow_gap", "Starts although a committed transaction is missing from the log.",
	&qlog_allow_gap, PGC_SIGHUP},
	{"qlog.auto_create", "Creates a queue when the first message is pushed to it.",
	&qlog_auto_create, PGC_USERSET},
	{"qlog.drop_page_cache", "Log files leave the system's cache when they are closed.",
	&qlog_drop_page_cache, PGC_SIGHUP},
	{"qlog.track_timing", "Measures how long syncs of the log take.",
	&qlog_track_timing, PGC_SUSET}
};

static const IntSetting ints[] = {
	{"qlog.buffers", "Shared memory between reserving an entry and writing it to the log files.",
	&qlog_buffers, 1 * MB_IN_KB, 1024 * MB_IN_KB, PGC_POSTMASTER, GUC_UNIT_KB},
	{"qlog.checkpoint_bytes", "Log bytes after which the state is written to the checkpoint store.",
	&qlog_checkpoint_bytes, 1, 1024 * 1024, PGC_SIGHUP, GUC_UNIT_MB},
	{"qlog.checkpoint_max_size", "Largest size of the checkpoint store; pushes are refused while it is full.",
	&qlog_checkpoint_max_size, 1, 1024 * 1024 * 16, PGC_SIGHUP, GUC_UNIT_MB},
	{"qlog.checkpoint_timeout", "Time between writes of the state to the checkpoint store.",
	&qlog_checkpoint_timeout, 10, 3600 * 1000, PGC_SIGHUP, GUC_UNIT_MS},
	{"qlog.commit_delay", "Microseconds that a commit waits for others before it syncs the log.",
	&qlog_commit_delay, 0, 100000, PGC_SUSET, 0},
	{"qlog.commit_siblings", "Number of other sessions that commit at the same time without which qlog.commit_delay is not used.",
	&qlog_commit_siblings, 0, 1000, PGC_USERSET, 0},
	{"qlog.compression_level", "zstd level for messages of queues that name none; 0 stores them as they are.",
	&qlog_compression_level, 0, 19, PGC_USERSET, 0},
	{"qlog.dedup_memory", "Shared memory for remembering dedup ids.",
	&qlog_dedup_memory, 64, 1024 * 1024 * MB_IN_KB, PGC_POSTMASTER, GUC_UNIT_KB},
	{"qlog.disk_high_pct", "Pushes are refused while the disk is filled to more than this; 100 never refuses.",
	&qlog_disk_high_pct, 1, 100, PGC_SIGHUP, 0},
	{"qlog.disk_low_pct", "Pushes that were refused are accepted again when the disk is filled to at most this.",
	&qlog_disk_low_pct, 1, 100, PGC_SIGHUP, 0},
	{"qlog.disk_reserve", "Room kept on the disk for acknowledgements, checkpoints and recovery.",
	&qlog_disk_reserve, 0, 1024 * 1024, PGC_SIGHUP, GUC_UNIT_MB},
	{"qlog.index_memory", "Shared memory for the positions of recent messages in the log files.",
	&qlog_index_memory, 256, 1024 * 1024 * MB_IN_KB, PGC_POSTMASTER, GUC_UNIT_KB},
	{"qlog.keep_old_files", "Log files of each queue that are kept though nothing in them is needed.",
	&qlog_keep_old_files, 0, 1000 * 1000, PGC_SIGHUP, 0},
	{"qlog.log_flush_interval", "Time by which the log may lag behind the WAL.",
	&qlog_log_flush_interval, 1, 60 * 1000, PGC_SIGHUP, GUC_UNIT_MS},
	{"qlog.max_leases_per_cursor", "Messages of one partition that may be leased or waiting for a retry.",
	&qlog_max_leases_per_cursor, 1, 1000 * 1000, PGC_POSTMASTER, 0},
	{"qlog.max_message_size", "Largest size of a message.",
	&qlog_max_message_size, 1, 64 * MB_IN_KB, PGC_SUSET, GUC_UNIT_KB},
	{"qlog.max_pop_wait", "Longest time that queue_pop() waits, since it holds a snapshot meanwhile.",
	&qlog_max_pop_wait, 0, 3600 * 1000, PGC_SUSET, GUC_UNIT_MS},
	{"qlog.max_transaction_bytes", "Most bytes of messages that one transaction may push.",
	&qlog_max_transaction_bytes, 64, QLOG_MAX_TRANSACTION_KB, PGC_SUSET, GUC_UNIT_KB},
	{"qlog.preallocate", "Room that a log in use is given ahead of need; 0 leaves it to the commits.",
	&qlog_preallocate, 0, 256 * MB_IN_KB, PGC_SIGHUP, GUC_UNIT_KB},
	{"qlog.reclaim_naptime", "Time between two looks for log files that are not needed any more.",
	&qlog_reclaim_naptime, 10, 3600 * 1000, PGC_SIGHUP, GUC_UNIT_MS},
	{"qlog.recovery_wait", "Time that a function waits for queues to be recovered after a start.",
	&qlog_recovery_wait, 0, 3600 * 1000, PGC_USERSET, GUC_UNIT_MS},
	{"qlog.retention_naptime", "Time between two looks for messages that are not kept any longer.",
	&qlog_retention_naptime, 10, 24 * 3600 * 1000, PGC_SIGHUP, GUC_UNIT_MS},
	{"qlog.scrub_interval", "Time between two looks through all closed log files for damage; 0 takes none.",
	&qlog_scrub_interval, 0, 366 * 24 * 3600, PGC_SIGHUP, GUC_UNIT_S},
	{"qlog.scrub_rate", "Bytes of log files that are looked through each second.",
	&qlog_scrub_rate, 64, 1024 * 1024 * MB_IN_KB, PGC_SIGHUP, GUC_UNIT_KB},
	{"qlog.seal_age", "Age at which a log file that mostly holds what is not needed is closed before it is full; 0 = never.",
	&qlog_seal_age, 0, 7 * 24 * 3600 * 1000, PGC_SIGHUP, GUC_UNIT_MS},
	{"qlog.segment_size", "Size at which a log file is closed and the next one begins.",
	&qlog_segment_size, 1, 1024, PGC_POSTMASTER, GUC_UNIT_MB},
	{"qlog.shards", "Number of logs that all queues share, fixed when the data directory is made; 0 gives each queue its own.",
	&qlog_shards, 0, QC_SHARDS_MAX, PGC_POSTMASTER, 0},
	{"qlog.snapshot_interval", "Time between snapshots of the checkpoint; 0 takes none but those that are asked for.",
	&qlog_snapshot_interval, 0, 24 * 3600, PGC_SIGHUP, GUC_UNIT_S},
	{"qlog.sweep_naptime", "Time between two looks for queues whose database or roles are gone.",
	&qlog_sweep_naptime, 1, 24 * 3600, PGC_SIGHUP, GUC_UNIT_S},
	{"qlog.state_memory", "Shared memory for queues, partitions, cursors and leases.",
	&qlog_state_memory, 1 * MB_IN_KB, 1024 * 1024 * 32, PGC_POSTMASTER, GUC_UNIT_KB},
	{"qlog.wal_payload_limit", "Larger transactions put only a reference to the log into the WAL.",
	&qlog_wal_payload_limit, 0, 256 * 1024 * 1024, PGC_SUSET, GUC_UNIT_BYTE}
};

/* A sync that does not report failed write-back is none. */
static bool
check_sync_method(int *value, void **extra, GucSource source)
{
	(void) extra;
	(void) source;
	if (*value != QLOG_SYNC_SYNCFS || qlog_io_syncfs_reliable())
		return true;
	GUC_check_errdetail("This system cannot sync a whole file system and tell whether that failed, as Linux does since 5.8.");
	GUC_check_errhint("Use \"auto\" or \"files\".");
	return false;
}

static const EnumSetting enums[] = {
	{"qlog.directory_layout", "Layout of the log directories, fixed when the data directory is made.",
	&qlog_directory_layout, layout_options, PGC_POSTMASTER, NULL},
	{"qlog.sync_method", "How log files are synced: one by one, or with the whole file system.",
	&qlog_sync_method, sync_method_options, PGC_SIGHUP, check_sync_method},
	{"qlog.wal_carry", "Transactions whose queue work travels in the WAL.",
	&qlog_wal_carry, wal_carry_options, PGC_SUSET, NULL}
};

/* Settings of the server's start cannot be defined later. */
static bool
definable(GucContext context)
{
	return context != PGC_POSTMASTER || process_shared_preload_libraries_in_progress;
}

static bool
check_absolute(char **value, void **extra, GucSource source)
{
	(void) extra;
	(void) source;
	if ((*value)[0] == '\0')
		return true;
	if (!is_absolute_path(*value))
	{
		GUC_check_errdetail("The path must be absolute.");
		return false;
	}
	if (strlen(*value) >= QC_SITE_PATH || strpbrk(*value, "\n\r") != NULL)
	{
		GUC_check_errdetail("The path is too long or has more than one line.");
		return false;
	}
	return true;
}

static void
define_strings(void)
{
	if (definable(PGC_POSTMASTER))
		DefineCustomStringVariable("qlog.data_directory",
								   "Directory of the queues, below the data directory unless absolute.",
								   NULL, &qlog_data_directory, "qlog", PGC_POSTMASTER,
								   GUC_SUPERUSER_ONLY, NULL, NULL, NULL);
	if (definable(PGC_POSTMASTER))
	{
		DefineCustomStringVariable("qlog.checkpoint_directory",
								   "Directory of the checkpoint store, on another device perhaps; empty: in qlog.data_directory.",
								   NULL, &checkpoint_directory, "", PGC_POSTMASTER,
								   GUC_SUPERUSER_ONLY, check_absolute, NULL, NULL);
		DefineCustomStringVariable("qlog.journal_directory",
								   "Directory of the system log, on another device perhaps; empty: in qlog.data_directory.",
								   NULL, &journal_directory, "", PGC_POSTMASTER,
								   GUC_SUPERUSER_ONLY, check_absolute, NULL, NULL);
	}
	DefineCustomStringVariable("qlog.debug_fault",
							   "Errors that files shall have, for tests.",
							   NULL, &qlog_debug_fault, "", PGC_SUSET,
							   GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL | GUC_SUPERUSER_ONLY,
							   qlog_fault_check, qlog_fault_assign, NULL);
	DefineCustomStringVariable("qlog.debug_stop",
							   "Point at which a process stops for good, for crash tests.",
							   NULL, &qlog_debug_stop, "", PGC_SUSET,
							   GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL | GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);
}

void
qlog_guc_init(void)
{
	for (size_t i = 0; i < lengthof(bools); i++)
	{
		const BoolSetting *s = &bools[i];

		if (definable(s->context))
			DefineCustomBoolVariable(s->name, s->text, NULL, s->value, *s->value, s->context, 0,
									 NULL, NULL, NULL);
	}
	for (size_t i = 0; i < lengthof(ints); i++)
	{
		const IntSetting *s = &ints[i];

		if (definable(s->context))
			DefineCustomIntVariable(s->name, s->text, NULL, s->value, *s->value, s->min, s->max,
									s->context, s->flags, NULL, NULL, NULL);
	}
	for (size_t i = 0; i < lengthof(enums); i++)
	{
		const EnumSetting *s = &enums[i];

		if (definable(s->context))
			DefineCustomEnumVariable(s->name, s->text, NULL, s->value, *s->value, s->options,
									 s->context, 0, s->check, NULL, NULL);
	}
	define_strings();
	MarkGUCPrefixReserved("qlog");
}

const char *
qlog_directory(void)
{
	static char path[MAXPGPATH];

	if (path[0] == '\0')
	{
		if (is_absolute_path(qlog_data_directory))
			strlcpy(path, qlog_data_directory, sizeof(path));
		else
			snprintf(path, sizeof(path), "%s/%s", DataDir, qlog_data_directory);
		canonicalize_path(path);
	}
	return path;
}

const char *
qlog_site(QcSite site)
{
	static char paths[QC_SITES][MAXPGPATH];
	const char *setting = site == QC_SITE_JOURNAL ? journal_directory : checkpoint_directory;

	if (paths[site][0] == '\0' && setting[0] != '\0')
	{
		strlcpy(paths[site], setting, sizeof(paths[site]));
		canonicalize_path(paths[site]);
	}
	return paths[site];
}
