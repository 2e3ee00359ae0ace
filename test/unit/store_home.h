/*
 * store_home.h
 *		What tests of the checkpoint store share: a place for one, and short ways to use it.
 */
#ifndef STORE_HOME_H
#define STORE_HOME_H

#include "../sim/sim_store.h"
#include "qs_store.h"

#define MIB ((uint64_t) 1024 * 1024)

/* Where a store lives: a directory for LMDB, a disk for the simulated one (disk != NULL). */
typedef struct Home
{
	SimDisk    *disk;
	char		directory[64];
} Home;

extern void home_begin(Home *home, bool simulated);
extern void home_end(Home *home);
extern QcStatus home_open(const Home *home, uint64_t map_max, bool create, bool read_only,
						  QsStore **store, QcError *err);

/* As home_open; a failure ends the program. */
extern QsStore *home_must_open(const Home *home, uint64_t map_max, bool create, bool read_only);

/* Apply a batch that is not full. */
extern QcStatus apply_batch(QsStore *store, const QcWriter *batch);

/* One row of its own batch; value NULL deletes it. */
extern QcStatus apply_row(QsStore *store, const char *key, const char *value);

/* All rows as "key=value;" one after the other, as far as they fit; len counts all of it. */
typedef struct Text
{
	char		bytes[2000];
	size_t		len;
	QcStatus	stop;			/* returned for each row */
} Text;

/* A QsVisitor; its context is a Text. */
extern QcStatus add_text(void *context, const uint8_t *key, size_t key_len, const uint8_t *value,
						 size_t value_len, QcError *err);
extern void check_rows(QsStore *store, const char *expected);

/* A QsVisitor; its context is an int that counts. */
extern QcStatus count_row(void *context, const uint8_t *key, size_t key_len,
						  const uint8_t *value, size_t value_len, QcError *err);
extern int	count_rows(QsStore *store);

#endif							/* STORE_HOME_H */
