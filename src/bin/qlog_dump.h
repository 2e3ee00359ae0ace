/*
 * qlog_dump.h
 *		What the parts of qlog_dump share: options, counters, and each other's entry points.
 *
 * Main takes the options (qlog_dump_options.c) and picks what to read (qlog_dump_main.c); a directory is walked log by log
 * (qlog_dump_dir.c), a log file record by record (qlog_dump_file.c), each record is checked and printed
 * (qlog_dump_record.c), and what several logs say about one entry is compared at the end
 * (qlog_dump_parts.c).  Other files are printed by qlog_dump_other.c.
 *
 * What a directory holds in short is said by qlog_dump_summary.c, which reads the checkpoint through qlog_dump_rows.c;
 * records are shown as they come by qlog_dump_follow.c.
 *
 * Read-only: of the I/O table only open, close, read, size and list are called.
 */
#ifndef QLOG_DUMP_H
#define QLOG_DUMP_H

#include "qc_effect.h"
#include "qc_error.h"
#include "qc_io_posix.h"
#include "qc_mount.h"
#include "qc_site.h"
#include "qc_logfile.h"
#include "qc_record.h"
#include "qc_snapshot.h"
#include "qlog_dump_row.h"

/* exit codes */
#define DUMP_EXIT_CLEAN		0
#define DUMP_EXIT_FAILED	1	/* wrong usage, or a file could not be read */
#define DUMP_EXIT_DAMAGE	2

typedef enum DumpPayload
{
	DUMP_PAYLOAD_NONE,
	DUMP_PAYLOAD_TEXT,
	DUMP_PAYLOAD_HEX
} DumpPayload;

#define DUMP_ANY (-1)

typedef struct DumpOptions
{
	const char *path;
	uint64_t	start;			/* seq, inclusive */
	uint64_t	end;			/* seq, inclusive */
	uint64_t	limit;			/* records */
	bool		one_log;
	uint64_t	log;
	const char *queue;			/* by its name, looked up in the checkpoint */
	bool		one_partition;
	uint64_t	partition;
	bool		one_queue;		/* of a log with several: */
	uint64_t	queue_id;
	const uint64_t *partitions; /* of the queue, ascending */
	uint32_t	npartitions;
	int			kind;			/* QcKind or DUMP_ANY */
	int			effect;			/* QcEffectKind or DUMP_ANY */
	DumpPayload payload;
	bool		json;
	bool		quiet;
	bool		stats;
	bool		verify;
	bool		summary;
	bool		follow;
} DumpOptions;

/* What came of the command line. */
typedef enum DumpParsed
{
	DUMP_PARSED_RUN,
	DUMP_PARSED_DONE,			/* help or version was printed */
	DUMP_PARSED_WRONG			/* the reason was printed */
} DumpParsed;

#define DUMP_KINDS (QC_KIND_SOLO + 1)

/* What was seen: of one log, and of everything. */
typedef struct DumpStats
{
	uint64_t	files;
	uint64_t	bytes;			/* of records */
	uint64_t	records[DUMP_KINDS];
	uint64_t	messages;
	uint64_t	raw_bytes;		/* of payloads, unpacked */
	uint64_t	stored_bytes;	/* of payloads */
	uint64_t	effects[QC_EFFECT_KIND_END];
	uint64_t	first_seq;		/* 0 = no record */
	uint64_t	last_seq;
	int64_t		first_time;
	int64_t		last_time;
	uint64_t	damages;
	uint64_t	torn;			/* 1 for a log with a torn tail */
} DumpStats;

typedef struct DumpParts DumpParts;

/* A queue of the checkpoint. */
typedef struct DumpQueue
{
	uint64_t	id;
	uint64_t	log;
	uint32_t	database;
	bool		damaged;
	uint16_t	name_len;
	char		name[256];
} DumpQueue;

typedef struct DumpPartition
{
	uint64_t	id;
	uint64_t	queue;
} DumpPartition;

/* What the rows of a checkpoint tell. */
typedef struct DumpRows
{
	uint64_t	seq;			/* the mark */
	uint64_t	rows;
	uint64_t	bytes;
	uint64_t	kinds[26];		/* rows by the letter of their key */
	DumpQueue  *queues;
	uint32_t	nqueues;
	uint32_t	cap_queues;
	DumpPartition *partitions;
	uint32_t	npartitions;
	uint32_t	cap_partitions;
} DumpRows;

typedef struct Dump
{
	DumpOptions options;
	const QcIo *io;
	DumpRow		row;
	FILE	   *errors;
	uint64_t	shown;			/* records that passed the filters */
	DumpStats	total;
	uint64_t	floor;			/* entries up to this seq need not be whole, and files may be gone */
	bool		failed;			/* something could not be read */
	DumpParts  *parts;			/* collected in a directory with --verify, otherwise NULL */
	uint8_t    *raw;			/* buffer for unpacked payloads */
	size_t		raw_cap;
} Dump;

/* Parts of the directory that live elsewhere. */
typedef struct DumpSites
{
	QcMounts	mounts;
	QcIoPosix	roots[QC_SITES];
	bool		open[QC_SITES];
} DumpSites;

/* Read them through the directory's table from now on.	 dump_sites_close ends that. */
extern void dump_sites_open(Dump *dump, DumpSites *sites);
extern void dump_sites_close(DumpSites *sites);

/* The log whose files are being read, in order. */
typedef struct DumpLog
{
	bool		known;			/* false for a single file: id is not meant */
	uint64_t	id;
	uint64_t	last_seq;
	DumpStats	stats;
} DumpLog;

/* A file read whole. */
typedef struct DumpFile
{
	const char *path;
	uint8_t    *bytes;
	size_t		len;
} DumpFile;

/* qlog_dump_options.c */
extern DumpParsed dump_parse(int argc, char **argv, DumpOptions *options, FILE *out, FILE *errors);

/* qlog_dump_main.c: the whole program; returns its exit code. */
extern int	dump_main(int argc, char **argv, FILE *out, FILE *errors);
extern bool dump_limit_reached(const Dump *dump);

/* Print an error record and remember that something could not be read. */
extern void dump_fail(Dump *dump, const QcError *err);

/* Read a file whole; QC_MISSING when there is none.  The caller frees bytes, which have room for one more. */
extern QcStatus dump_read_file(Dump *dump, const char *path, DumpFile *file, QcError *err);

/*
 * Report damage in a file: always printed, decides the exit code.  A position of UINT64_MAX is none, bytes 0
 * are not known.
 */
extern void dump_damage(Dump *dump, DumpStats *stats, const char *path, uint64_t position,
						uint64_t bytes, const char *reason);

/* Are lines printed that are neither damage nor the result?  Not with --quiet, --stats, --verify. */
extern bool dump_shows_lines(const Dump *dump);

/* qlog_dump_dir.c: a data directory, or what is left of one. */
extern void dump_directory(Dump *dump);

/*
 * qlog_dump_file.c: a log file with its header; file_id 0 = any.  later tells whether a later file of the log
 * holds a record (NULL: there is none), which makes bytes that are no record damage instead of a torn tail.
 * Returns the length of the written part.
 */
extern uint64_t dump_log_file(Dump *dump, DumpLog *log, const DumpFile *file, uint64_t file_id,
							  bool (*later) (void *context), void *context);

/* Records of a piece of a log file that recovery cut off: no header. */
extern void dump_cut_file(Dump *dump, DumpLog *log, const DumpFile *file);

/* Does a log file hold any record?  Its header may be damaged. */
extern bool dump_holds_record(const DumpFile *file);

/* qlog_dump_record.c: check one decoded record, count it, print it when the filters let it pass. */
extern void dump_record(Dump *dump, DumpLog *log, const DumpFile *file, uint64_t position,
						const QcRecord *record);
extern const char *dump_kind_name(QcKind kind);

/* Print the effects of an entry as a list of the open row. */
extern void dump_effects(DumpRow *row, QcReader effects, uint32_t count);

/* qlog_dump_parts.c: parts of entries over several logs. */
extern DumpParts *dump_parts_create(void);
extern void dump_parts_free(DumpParts *parts);

/*
 * Records of this log are added from now on, in order; reclaimed: its oldest file is not its first.  Both give up
 * without memory.
 */
extern void dump_parts_log(DumpParts *parts, uint64_t log, bool reclaimed);
extern void dump_parts_add(DumpParts *parts, const QcRecord *record);

/* Compare: prints incomplete entries, and damage where a part is lost that was known durable. */
extern void dump_parts_compare(Dump *dump);

/*
 * qlog_dump_other.c: files that are not logs.  An index is compared with its log file, whose written part is
 * log_length, unless that is NULL.  A text file that is missing is passed over.
 */
extern void dump_index(Dump *dump, const DumpFile *file, uint64_t file_id, const DumpFile *log_file,
					   uint64_t log_length);

/* qlog_dump_hashes.c: the same for a .qhsh. */
extern void dump_hashes(Dump *dump, const DumpFile *file, uint64_t file_id,
						const DumpFile *log_file, uint64_t log_length);

/* What is derived from a log file, by suffix. */
typedef struct DumpDerived
{
	const char *suffix;
	void		(*dump) (Dump *dump, const DumpFile *file, uint64_t file_id,
						 const DumpFile *log_file, uint64_t log_length);
} DumpDerived;
#define DUMP_DERIVED	2
extern const DumpDerived dump_derived[DUMP_DERIVED];
extern void dump_stash(Dump *dump, const DumpFile *file);
extern void dump_text_file(Dump *dump, const char *path);

/* qlog_dump_summary.c: what is in a directory, without reading its logs. */
extern void dump_summary(Dump *dump);

/* Check all snapshots, and show them unless --verify. */
extern void dump_snapshots(Dump *dump);

/* qlog_dump_follow.c: records of a directory as they come, until a signal or the limit. */
extern void dump_follow(Dump *dump);

/*
 * qlog_dump_rows.c: rows of the checkpoint store (QC_BUSY: a server uses it), of a snapshot, or of whichever is newest and can be
 * read.	 To be freed also after an error.
 */
extern QcStatus dump_rows_store(Dump *dump, DumpRows *rows, QcError *err);
extern QcStatus dump_rows_snapshot(Dump *dump, uint64_t seq, DumpRows *rows, QcSnapshotHead *head,
								   QcError *err);
extern QcStatus dump_rows_newest(Dump *dump, DumpRows *rows, QcError *err);
extern void dump_rows_free(DumpRows *rows);

/* qlog_dump_stats.c */
extern void dump_stats_add(DumpStats *to, const DumpStats *from);
extern void dump_stats_record(DumpStats *stats, const QcRecord *record);
extern void dump_stats_print(Dump *dump, const char *type, const DumpLog *log, const DumpStats *stats);

#endif							/* QLOG_DUMP_H */
