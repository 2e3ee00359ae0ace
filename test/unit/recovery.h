/*
 * recovery.h
 *		Running recovery over a directory made by hand, with a server around it that the test describes.
 */
#ifndef RECOVERY_H
#define RECOVERY_H

#include "handmade.h"
#include "qc_read.h"
#include "qc_recover.h"
#include "unit.h"

#define RUN_XIDS	64

/* A hook that is to fail. */
typedef enum ServerFault
{
	FAIL_NOTHING,
	FAIL_XID,					/* "no commit log" */
	FAIL_EPOCH,					/* "no WAL" */
	FAIL_RANDOM					/* "no random numbers" */
} ServerFault;

/* The server: how far its history goes, and what its commit log says. */
typedef struct Server
{
	uint32_t	timeline;		/* current; history holds lower ones up to fork_lsn */
	uint64_t	fork_lsn;
	uint64_t	redo_end;
	int			ncommitted;
	uint64_t	committed[RUN_XIDS];
	int			nepochs;		/* epoch WAL records inserted */
	uint64_t	old_epoch;		/* of the last one */
	uint64_t	new_epoch;
	uint64_t	first_seq;
	uint64_t	random;
	uint64_t	asked[RUN_XIDS];	/* the commit log was asked for these */
	int			nasked;
	ServerFault fail;
	int			stop_after;		/* progress calls until it says no; 0 = never */
	HandStash  *wal;			/* where redo will find the epoch WAL record, or NULL */
	int			ngiven;			/* runs of messages that were, or would be, given up */
	struct
	{
		uint64_t	partition;
		uint64_t	first;
		uint64_t	end;
	}			given[RUN_XIDS];
} Server;

/* Checkpoint rows, as a store would keep them: by key. */
typedef struct Row
{
	size_t		key_len;
	size_t		value_len;
	uint8_t    *key;			/* the value stands behind it */
} Row;

typedef struct Rows
{
	size_t		count;
	size_t		cap;
	Row		   *rows;
} Rows;

/* A recovery and its result. */
typedef struct Run
{
	Hand	   *hand;
	Server	   *server;
	void	   *block;
	QcState    *st;
	void	   *ring_block;
	QcRing	   *ring;
	QcRecover	r;
	QcError		err;
	QcReadCache cache;
} Run;

extern void server_begin(Server *server);
extern void server_commits(Server *server, uint64_t xid);

/* Run recovery on the directory from these rows (NULL = no checkpoint) and this stash (NULL = none). */
typedef struct RunOptions
{
	const Rows *rows;
	const HandStash *stash;
	bool		copied;
	bool		allow_gap;
	uint64_t	give_up_seq;
	uint32_t	give_up_logs;
	uint64_t	floor;
	uint64_t	snapshot;
	uint64_t	index_bytes;	/* 0 = enough */
	uint64_t	state_bytes;	/* 0 = enough */
} RunOptions;

extern QcStatus run_recovery(Run *run, Hand *hand, Server *server, const RunOptions *options);
extern void run_end(Run *run);

/* As run_recovery, when it must succeed: says why it did not. */
extern bool run_ok(Run *run, Hand *hand, Server *server, const RunOptions *options);

/* As run_recovery, when it must refuse with this code and change no byte. */
extern void run_refused(Hand *hand, Server *server, const RunOptions *options, QcStatus code,
						const char *file, uint64_t position);

/* A checkpoint: what changed in the state goes into the rows.  They begin all zero and end with rows_free. */
extern void rows_take(Rows *rows, QcState *st);

/* The same for a batch made by the test. */
extern void rows_apply(Rows *rows, const QcWriter *batch);
extern void rows_free(Rows *rows);

/* A digest of everything that a checkpoint of the state would hold, but for file positions and counters. */
extern uint64_t state_digest(QcState *st);

/* Partition 100 + queue holds visible messages up to `stable`, and the next gets `next`. */
extern void expect_positions(Run *run, uint64_t queue, uint64_t next, uint64_t stable);

/* Message at position of the queue's partition reads back, through the memory index or the files. */
extern void expect_readable(Run *run, uint64_t queue, uint64_t first, uint64_t end);

/* Positions [first, first + count) of the queue's partition are an aborted range. */
extern void expect_aborted(Run *run, uint64_t queue, uint64_t first, uint32_t count);

#endif							/* RECOVERY_H */
