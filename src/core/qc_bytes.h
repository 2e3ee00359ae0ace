/*
 * qc_bytes.h
 *		The one bounds-checked cursor through which bytes of disk and wire are
 *		written and read.  All integers are little-endian.
 *
 * A QcWriter that runs out of room sets `full` and writes nothing more; a
 * QcReader that runs out of bytes sets `bad` and returns zeros.  Callers check
 * once at the end, so that no single put or get needs an error path.
 */
#ifndef QC_BYTES_H
#define QC_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct QcWriter
{
	uint8_t    *buf;
	size_t		cap;
	size_t		len;
	bool		full;
} QcWriter;

typedef struct QcReader
{
	const uint8_t *at;
	const uint8_t *end;
	bool		bad;
} QcReader;

/*
 * Loads and stores are spelled out byte by byte: compilers make one instruction of that, on any machine, and none of a loop.
 */
static inline void
qc_store_u16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t) value;
	at[1] = (uint8_t) (value >> 8);
}

static inline void
qc_store_u32(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t) value;
	at[1] = (uint8_t) (value >> 8);
	at[2] = (uint8_t) (value >> 16);
	at[3] = (uint8_t) (value >> 24);
}

static inline void
qc_store_u64(uint8_t *at, uint64_t value)
{
	at[0] = (uint8_t) value;
	at[1] = (uint8_t) (value >> 8);
	at[2] = (uint8_t) (value >> 16);
	at[3] = (uint8_t) (value >> 24);
	at[4] = (uint8_t) (value >> 32);
	at[5] = (uint8_t) (value >> 40);
	at[6] = (uint8_t) (value >> 48);
	at[7] = (uint8_t) (value >> 56);
}

static inline uint16_t
qc_load_u16(const uint8_t *at)
{
	return (uint16_t) (at[0] | (at[1] << 8));
}

static inline uint32_t
qc_load_u32(const uint8_t *at)
{
	return (uint32_t) at[0] | (uint32_t) at[1] << 8 | (uint32_t) at[2] << 16 | (uint32_t) at[3] << 24;
}

static inline uint64_t
qc_load_u64(const uint8_t *at)
{
	return (uint64_t) at[0] | (uint64_t) at[1] << 8 | (uint64_t) at[2] << 16 | (uint64_t) at[3] << 24 |
		(uint64_t) at[4] << 32 | (uint64_t) at[5] << 40 | (uint64_t) at[6] << 48 | (uint64_t) at[7] << 56;
}

extern void qc_writer_init(QcWriter *w, void *buf, size_t cap);
extern void qc_put_u8(QcWriter *w, uint8_t value);
extern void qc_put_u16(QcWriter *w, uint16_t value);
extern void qc_put_u32(QcWriter *w, uint32_t value);
extern void qc_put_u64(QcWriter *w, uint64_t value);
extern void qc_put_bytes(QcWriter *w, const void *bytes, size_t len);

/* u16 length, then the bytes; len must be <= 65535 or the writer becomes full. */
extern void qc_put_str16(QcWriter *w, const void *bytes, size_t len);

extern void qc_reader_init(QcReader *r, const void *buf, size_t len);
extern uint8_t qc_get_u8(QcReader *r);
extern uint16_t qc_get_u16(QcReader *r);
extern uint32_t qc_get_u32(QcReader *r);
extern uint64_t qc_get_u64(QcReader *r);

/* The next len bytes in place, NULL (and bad) when there are fewer. */
extern const uint8_t *qc_get_bytes(QcReader *r, size_t len);

/* Reads a str16 in place; *len is set. */
extern const uint8_t *qc_get_str16(QcReader *r, uint16_t *len);

static inline size_t
qc_reader_left(const QcReader *r)
{
	return (size_t) (r->end - r->at);
}

#endif							/* QC_BYTES_H */
