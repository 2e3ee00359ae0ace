/*
 * handmade.h
 *		Data directories made by hand on the simulated disk, record by record, for tests of what reads them.
 *
 * Nothing here goes through the append path: every record is built with the encoders and put where the test says, so
 * that parts can be left out, damaged or put in the wrong place.  Message n of a test holds the text "m<n>" where n is
 * its position.  A wrong use ends the program.
 */
#ifndef HANDMADE_H
#define HANDMADE_H

#include "../sim/sim_disk.h"
#include "qc_dir.h"
#include "qc_effect.h"
#include "qc_read.h"
#include "qc_record.h"
#include "qc_walrec.h"

#define HAND_LOGS		16
#define HAND_RECORD_MAX 4096
#define HAND_PIECES		32
#define HAND_DIRECTORY	4711
#define HAND_SYSTEM		42
#define HAND_ALLOCATED	65536	/* zero-filled size of a log's files */

typedef struct HandLog
{
	uint64_t	log;
	uint64_t	file;
	uint64_t	tail;
} HandLog;

typedef struct Hand
{
	SimDisk    *disk;
	const QcIo *io;
	QcFiles		files;
	QcIdentity	identity;
	HandLog		logs[HAND_LOGS];
	int			nlogs;
	uint64_t	epoch;			/* of the entries made from now on */
	uint64_t	durable;		/* durable_seq that they state */
	int64_t		clock;
	bool		dedup;			/* messages at even positions have a dedup id, "d<n>" */
} Hand;

/* A record and where it was put. */
typedef struct HandPiece
{
	uint64_t	log;
	uint64_t	file;
	uint64_t	position;
	size_t		size;
	bool		skip;			/* do not write it */
	uint8_t		bytes[HAND_RECORD_MAX];
} HandPiece;

/* An entry under construction, then its records: messages of each log, and behind them the entry or a stub. */
typedef struct HandEntry
{
	uint64_t	seq;
	uint64_t	xid;
	uint16_t	flags;
	uint32_t	neffects;
	QcWriter	effects;
	uint8_t		buffer[HAND_RECORD_MAX];
	int			nlogs;
	uint64_t	logs[HAND_LOGS];
	int			npieces;
	HandPiece	pieces[HAND_PIECES];
} HandEntry;

/* A new directory, durable; in hand_begin_shared with this many shared logs. */
extern void hand_begin(Hand *h, QcLayout layout, uint64_t seed);
extern void hand_begin_shared(Hand *h, QcLayout layout, uint32_t shards, uint64_t seed);
extern void hand_end(Hand *h);

/* The log, whose directory and first file are made when it is new. */
extern HandLog *hand_log(Hand *h, uint64_t log);

/* Put bytes at the log's tail; returns the position. */
extern uint64_t hand_append(Hand *h, uint64_t log, const void *bytes, size_t len);

/* Go on in a new file of the log. */
extern void hand_roll(Hand *h, uint64_t log);

/* Write anywhere in a file; read from it. */
extern void hand_write(Hand *h, uint64_t log, uint64_t file, uint64_t position, const void *bytes,
					   size_t len);
extern void hand_read(Hand *h, uint64_t log, uint64_t file, uint64_t position, void *bytes,
					  size_t len);
extern uint64_t hand_size(Hand *h, const char *path);	/* UINT64_MAX = there is no such file */
extern void hand_make_file(Hand *h, const char *path, const void *bytes, size_t len);

/* Everything written so far is durable. */
extern void hand_sync(Hand *h);

/* A cache for reading these files, with buffers of malloc; end it with qc_read_end. */
extern void hand_read_init(Hand *h, QcReadCache *cache);

/* A message record (or solo record) with messages [first, first + count); returns its size. */
extern size_t hand_message(const Hand *h, uint8_t out[HAND_RECORD_MAX], bool solo, uint64_t seq,
						   uint64_t partition, uint64_t first, uint32_t count);

/* The entry "count messages into one partition" as a solo record at the log's tail; returns its position. */
extern uint64_t hand_solo(Hand *h, uint64_t log, uint64_t seq, uint64_t partition, uint64_t first,
						  uint32_t count);

/* Build an entry: begin, effects, then build; q0 is its log unless it appends. */
extern void hand_entry(HandEntry *e, uint64_t seq, uint64_t xid, uint16_t flags);
extern void hand_effect(HandEntry *e, QcEffectKind kind, const void *fixed, uint32_t nitems);
extern void hand_item(HandEntry *e, QcEffectKind kind, const void *item);
extern void hand_push(HandEntry *e, uint64_t log, uint64_t partition, uint64_t first,
					  uint32_t count);
extern void hand_queue(HandEntry *e, uint64_t queue, const char *name); /* log = id, partition =
																		 * 100 + id */
extern void hand_queue_in(HandEntry *e, uint64_t queue, uint64_t log, const char *name);
extern void hand_build(Hand *h, HandEntry *e);

/* Put its records, those to be skipped left out, at the tails of their logs. */
extern void hand_put(Hand *h, HandEntry *e);

/* hand_build and hand_put. */
extern void hand_write_entry(Hand *h, HandEntry *e);

/* The piece that ends the entry's part in a log, and its first message record there. */
extern HandPiece *hand_end_of(HandEntry *e, uint64_t log);
extern HandPiece *hand_message_of(HandEntry *e, uint64_t log);

/* A stash under construction. */
typedef struct HandStash
{
	size_t		len;
	uint8_t		bytes[65536];
} HandStash;

extern void hand_stash_begin(HandStash *stash);
extern void hand_stash_add(HandStash *stash, QcWalKind kind, uint32_t timeline, uint64_t lsn,
						   const void *body, size_t len);

/* The WAL record of a built entry, as its flags say. */
extern void hand_stash_entry(HandStash *stash, const Hand *h, const HandEntry *e, uint32_t timeline,
							 uint64_t lsn);

#endif							/* HANDMADE_H */
