/*
 * qc_dirx.h
 *		Directories over the closed files of a log: which files hold a partition, and which of its positions.
 *
 * Without them a record of a partition that appears in few files is found by asking one .qidx after the other.	 A directory stands
 * for 4, 16, 64, ... files whose numbers begin behind a multiple of that: dirx-00000005-00000008.qdx.  When four that stand side by
 * side are there, they become one, so a log of n files has at most three of each size: some log n questions instead of n.
 *
 * Head as in qc_derived.h, magic "QQDIR1\0\0", with the first file as its id and the last one as its length, then cells of 32 bytes,
 * first {u64 last file, u64 length of its written part, 0 = removed, 16 zero bytes}, then sorted by partition and position:
 * u64 partition, u64 first position in the file, u64 end of the last one, u64 file.
 *
 * Derived, and never more than a hint: a file that it names may have been removed, or rewritten without the record, since; who finds
 * nothing asks the files.  Files are rewritten without changing what it says of what is left in them.
 *
 * Asking works without memory of its own; making them allocates (malloc), in a worker.
 */
#ifndef QC_DIRX_H
#define QC_DIRX_H

#include "qc_files.h"

#define QC_DIRX_CELL	32
#define QC_DIRX_FAN		4		/* parts that become one */
#define QC_DIRX_LEVELS	15		/* 4^15 files */

/* The files of a directory: level 1 has 4, level 2 16, ... */
typedef struct QcDirx
{
	uint32_t	level;
	uint64_t	first;
	uint64_t	last;
} QcDirx;

/* The one of this level that has a place for the file. */
extern QcDirx qc_dirx_of(uint32_t level, uint64_t file);

/* "qlog/q7/dirx-00000005-00000008.qdx" */
extern void qc_dirx_path(char out[QC_PATH_MAX], QcLayout layout, uint64_t log, const QcDirx *dirx);

/* Exact match of such a name; false for every stray. */
extern bool qc_dirx_parse(const char *name, QcDirx *dirx);

typedef enum QcDirxAnswer
{
	QC_DIRX_NONE,				/* there is none, or it cannot be used */
	QC_DIRX_HERE,				/* the file is said to hold the position */
	QC_DIRX_EARLIER,			/* not in these files and not in later ones */
	QC_DIRX_ELSEWHERE			/* not in these files */
} QcDirxAnswer;

/* Ask one directory; cells are not checked, as their checksum covers all of them. */
extern QcDirxAnswer qc_dirx_ask(const QcFiles *files, uint64_t log, const QcDirx *dirx,
								uint64_t partition, uint64_t position, uint64_t *file);

/* What is made, and within which bounds. */
typedef struct QcDirxMake
{
	QcFiles    *files;
	uint64_t	log;
	uint64_t	first_file;		/* the log's oldest file */
	uint64_t	active;			/* files below it are closed, and have their index */
	size_t		max_bytes;		/* a larger one is not made: its parts stay */
	bool		check;			/* once after a start: compare those that are there with their last
								 * file */
	bool		(*go_on) (void *context);	/* asked before each one; false = stop */
	void	   *context;
} QcDirxMake;

/*
 * Make all directories that can be made, and take their parts away.  Files without an index that fits get none, as long as they
 * stand.	 QC_END: go_on said no.
 */
extern QcStatus qc_dirx_make(const QcDirxMake *make, QcError *err);

/* Remove those over files that are all older than the log's oldest one. */
extern QcStatus qc_dirx_trim(QcFiles *files, uint64_t log, uint64_t first_file, QcError *err);

/* Remove all that have a place for this file: its content is not what it was. */
extern QcStatus qc_dirx_forget(QcFiles *files, uint64_t log, uint64_t file, QcError *err);

#endif							/* QC_DIRX_H */
