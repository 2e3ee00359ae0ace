/*
 * qc_look.h
 *		Looking at a log file: what it holds, and how much of that is still needed.
 *
 * The records are known from the file's index, the state says which of them are needed (qc_live.h).  An answer is of the moment: what
 * was not needed stays so, what was needed may not be any more.
 *
 * The state lock is taken in pieces, through functions of the caller, who holds none.  Allocates (malloc); for workers and views.
 */
#ifndef QC_LOOK_H
#define QC_LOOK_H

#include "qc_live.h"
#include "qc_read.h"

/* How the caller takes the state lock. */
typedef struct QcStateLock
{
	void	   *context;
	void		(*share) (void *context);
	void		(*lock) (void *context);
	void		(*unlock) (void *context);	/* either of them */
} QcStateLock;

typedef struct QcLook
{
	QcState    *st;
	QcReadCache *cache;
	const QcStateLock *lock;
	uint64_t	log;
	uint64_t	file;
	const QcReadIndex *index;	/* in the cache: until that reads something else */
	bool		checked;		/* the index is the .qidx, whose checksum is right; otherwise it
								 * was made from headers that nobody has checked */
	uint64_t	size;			/* of the file */
	uint64_t	length;			/* of its written part */
	uint32_t	records;		/* with messages */
	uint32_t	live_records;	/* of these, needed */
	uint64_t	live_bytes;
	QcLive		held;			/* why the first of these is needed; QC_LIVE_NOT = none is */
	uint8_t    *answers;		/* QcLive of each entry of the index */
	size_t		answers_cap;
} QcLook;

extern void qc_look_init(QcLook *look, QcState *st, QcReadCache *cache, const QcStateLock *lock);
extern void qc_look_end(QcLook *look);

/*
 * Look at a file. now: wall clock, microseconds.  QC_DAMAGED: its records cannot be followed to the end; QC_MISSING: it is gone;
 * QC_FULL: no memory.
 */
extern QcStatus qc_look_at(QcLook *look, uint64_t log, uint64_t file, int64_t now, QcError *err);

/* Name of an answer, for views: "messages", "dedup ids", ...; NULL for QC_LIVE_NOT. */
extern const char *qc_live_name(QcLive live);

#endif							/* QC_LOOK_H */
