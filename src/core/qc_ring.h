/*
 * qc_ring.h
 *		The shared buffer between reservation and the files.
 *
 * Entries stand in it in seq order: a header, a table of parts (which record bytes go to which log,
 * file and position), the bytes.  Space is taken under the state lock (qc_ring_take), filled without
 * any lock, and freed by whoever writes it out under the write lock.  `head` and `written` only grow;
 * an entry never wraps around the end.
 *
 * Room in the ring is never promised: bytes stand in it only from the reservation until they are written
 * out, and between the two nobody waits for room.  So whoever finds none writes out what stands there and
 * has an empty ring, however many credits for log space are open.
 *
 * Invariant: written_seq <= last reserved seq, durable_seq <= written_seq; both without gaps.
 */
#ifndef QC_RING_H
#define QC_RING_H

#include <stdatomic.h>

#include "qc_log.h"

typedef struct QcPart
{
	QcRef		log;
	uint32_t	size;
	uint64_t	file;
	uint64_t	position;
	uint32_t	offset;			/* of the bytes, from the entry's first byte after the parts */
	uint32_t	written;		/* 1 = its owner has written it to the file already */
} QcPart;

typedef struct QcRingEntry
{
	uint64_t	seq;			/* 0 = filler up to the end of the buffer */
	uint32_t	size;			/* whole, a multiple of 16 */
	uint32_t	nparts;
	_Atomic uint32_t filled;
	uint32_t	unused[3];
	/* QcPart parts[nparts]; bytes */
} QcRingEntry;

typedef struct QcRing
{
	uint64_t	size;
	_Atomic uint64_t head;		/* state lock to change */
	_Atomic uint64_t written;	/* write lock to change */
	_Atomic uint64_t written_seq;
	_Atomic uint64_t durable_seq;
	QcRef		dirty_logs;		/* write lock: through QcLog.dirty_next */
	uint32_t	unused;
	/* buffer of `size` bytes */
} QcRing;

extern uint64_t qc_ring_block_size(uint64_t size);
extern QcRing *qc_ring_init(void *block, uint64_t size, uint64_t last_seq);

/* Ring bytes of an entry with these parts and record bytes; big ones keep their bytes outside. */
extern uint64_t qc_ring_need(const QcRing *ring, uint32_t nparts, uint64_t bytes, bool *big);

/* The most that one entry may need: an empty ring has room for it wherever its head stands. */
static inline uint64_t
qc_ring_need_max(const QcRing *ring)
{
	return ring->size / 4;
}

/* Is there room now?  If not, qc_ring_write through the last reserved seq makes it.  State lock. */
extern bool qc_ring_has_room(const QcRing *ring, uint64_t need);

/*
 * Look at the pages where the next entry of this size will probably stand.  A process that has not seen them yet takes the
 * page faults here, before it holds the lock under which qc_ring_take writes there, and reading maps several pages at once.
 * No lock.
 */
extern void qc_ring_touch(QcRing *ring, uint64_t need);

/* Take room that is there (qc_ring_has_room under the same lock). parts and bytes follow the header. */
extern QcRingEntry *qc_ring_take(QcRing *ring, uint64_t need, uint64_t seq, uint32_t nparts);
extern void qc_ring_fill(QcRingEntry *entry);	/* bytes and parts are complete */

static inline QcPart *
qc_ring_parts(QcRingEntry *entry)
{
	return (QcPart *) (entry + 1);
}

static inline uint8_t *
qc_ring_bytes(QcRingEntry *entry)
{
	return (uint8_t *) (qc_ring_parts(entry) + entry->nparts);
}

/* Last seq up to which everything is filled, starting from what is written. Write lock. */
extern uint64_t qc_ring_filled_seq(QcRing *ring);

static inline uint64_t
qc_ring_durable(QcRing *ring)
{
	return atomic_load_explicit(&ring->durable_seq, memory_order_acquire);
}

/*
 * Write everything filled to the files (one pwritev per run of a file), note the files as dirty, free
 * the room and publish written_seq.  Write lock.  After an error nothing is published and the same can be
 * tried again.
 */
extern QcStatus qc_ring_write(QcState *st, QcRing *ring, QcFiles *files, QcError *err);

/* A file to sync, taken out of the dirty list. */
typedef struct QcDirtyFile
{
	uint64_t	log;
	uint64_t	file;
} QcDirtyFile;

/*
 * Take up to max dirty files and the seq that is durable once ALL dirty files are synced; *more = some are
 * left (take and sync these too before publishing).  Write lock.
 */
extern uint32_t qc_ring_take_dirty(QcState *st, QcRing *ring, QcDirtyFile *out, uint32_t max,
								   uint64_t *seq, bool *more);

/* Sync one file.  An error is final: the caller must not go on. */
extern QcStatus qc_ring_sync_file(QcFiles *files, const QcDirtyFile *file, QcError *err);

/* Publish durable_seq (never goes back).  The caller has synced every file that was dirty at seq. */
extern void qc_ring_publish(QcRing *ring, uint64_t seq);

#endif							/* QC_RING_H */
