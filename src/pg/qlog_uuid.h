/*
 * qlog_uuid.h
 *		Message ids: UUIDs of version 7, ascending within a backend.
 */
#ifndef QLOG_UUID_H
#define QLOG_UUID_H

#include "postgres.h"

#define QLOG_UUID_SIZE 16

/*
 * A new id: 48 bits of milliseconds, 12 bits of their fraction, 62 random bits.	Each id of a backend is greater
 * than the one before, also when the clock stands still or goes back.
 */
extern void qlog_uuid_make(uint8 id[QLOG_UUID_SIZE]);

/* Nonzero random 64 bits from the strong generator. */
extern uint64 qlog_random(void);

#endif							/* QLOG_UUID_H */
