/*
 * qlog_guc.h
 *		Settings, prefix qlog., alphabetical.
 */
#ifndef QLOG_GUC_H
#define QLOG_GUC_H

#include "postgres.h"

#include "../core/qc_site.h"

typedef enum QlogWalCarry
{
	QLOG_WAL_CARRY_JOINT,
	QLOG_WAL_CARRY_ALL
} QlogWalCarry;

typedef enum QlogSyncMethod
{
	QLOG_SYNC_AUTO,				/* each file, or syncfs from 16 dirty logs on where it is reliable */
	QLOG_SYNC_FILES,
	QLOG_SYNC_SYNCFS
} QlogSyncMethod;

extern bool qlog_allow_gap;
extern bool qlog_auto_create;
extern int	qlog_buffers;		/* kB */
extern int	qlog_checkpoint_bytes;	/* MB */
extern int	qlog_checkpoint_max_size;	/* MB */
extern int	qlog_checkpoint_timeout;	/* ms */
extern int	qlog_commit_delay;	/* microseconds */
extern int	qlog_commit_siblings;
extern int	qlog_compression_level;
extern char *qlog_data_directory;
extern int	qlog_dedup_memory;	/* kB */
extern int	qlog_directory_layout;	/* QcLayout */
extern int	qlog_disk_high_pct;
extern int	qlog_disk_low_pct;
extern int	qlog_disk_reserve;	/* MB */
extern bool qlog_drop_page_cache;
extern int	qlog_index_memory;	/* kB */
extern int	qlog_keep_old_files;
extern int	qlog_log_flush_interval;	/* ms */
extern int	qlog_max_leases_per_cursor;
extern int	qlog_max_message_size;	/* kB */
extern int	qlog_max_pop_wait;	/* ms */

/* Also the default. */
#define QLOG_MAX_TRANSACTION_KB (256 * 1024)
extern int	qlog_max_transaction_bytes; /* kB */
extern int	qlog_preallocate;	/* kB */
extern int	qlog_reclaim_naptime;	/* ms */
extern int	qlog_recovery_wait; /* ms */
extern int	qlog_seal_age;		/* ms */
extern int	qlog_scrub_interval;	/* s */
extern int	qlog_scrub_rate;	/* kB per second */
extern int	qlog_segment_size;	/* MB */
extern int	qlog_shards;		/* as asked for; what is, is in the state */
extern int	qlog_snapshot_interval; /* s */
extern int	qlog_sweep_naptime; /* s */
extern int	qlog_state_memory;	/* kB */
extern int	qlog_sync_method;	/* QlogSyncMethod */
extern int	qlog_retention_naptime; /* ms */
extern bool qlog_track_timing;
extern int	qlog_wal_carry;		/* QlogWalCarry */
extern int	qlog_wal_payload_limit; /* bytes */

/* Define them all; postmaster-level ones only while preloading. */
extern void qlog_guc_init(void);

/* qlog.segment_size in bytes. */
static inline uint64
qlog_segment_bytes(void)
{
	return (uint64) qlog_segment_size * 1024 * 1024;
}

/* Absolute path of the data directory, and of what lives elsewhere, "" = it does not. */
extern const char *qlog_directory(void);
extern const char *qlog_site(QcSite site);

#endif							/* QLOG_GUC_H */
