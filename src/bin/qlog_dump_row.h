/*
 * qlog_dump_row.h
 *		Output of qlog_dump: rows of named fields, as text or as one JSON object a line.
 *
 * Text:  "type name=value name=value", items of a list on lines of their own, indented.
 * JSON:  {"type":"type","name":value,"list":[{"type":...},...]}
 *
 * Output is always valid UTF-8 without control characters, whatever the bytes printed.
 */
#ifndef QLOG_DUMP_ROW_H
#define QLOG_DUMP_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct DumpRow
{
	FILE	   *out;
	bool		json;
	bool		first_item;		/* of the list that is open */
	int			depth;			/* lists that are open */
} DumpRow;

extern void dump_row_begin(DumpRow *row, const char *type);
extern void dump_row_end(DumpRow *row);

/* Rows inside the row: begin the list, then each item between begin and end. */
extern void dump_row_list_begin(DumpRow *row, const char *name);
extern void dump_row_list_end(DumpRow *row);
extern void dump_row_item_begin(DumpRow *row, const char *type);
extern void dump_row_item_end(DumpRow *row);

extern void dump_row_u64(DumpRow *row, const char *name, uint64_t value);
extern void dump_row_i64(DumpRow *row, const char *name, int64_t value);
extern void dump_row_word(DumpRow *row, const char *name, const char *word);

/* A flag that is printed only when it is set. */
extern void dump_row_flag(DumpRow *row, const char *name, bool set);

/* A name or an id: in quotes when it holds anything unusual. */
extern void dump_row_string(DumpRow *row, const char *name, const void *bytes, size_t len);

/* A text with spaces, a payload: never in quotes, so it comes last on its line. */
extern void dump_row_text(DumpRow *row, const char *name, const void *bytes, size_t len);
extern void dump_row_hex(DumpRow *row, const char *name, const void *bytes, size_t len);
extern void dump_row_uuid(DumpRow *row, const char *name, const uint8_t id[16]);

/* Digests, as 16 hex digits; WAL positions, as PostgreSQL writes them. */
extern void dump_row_digest(DumpRow *row, const char *name, uint64_t value);
extern void dump_row_lsn(DumpRow *row, const char *name, uint64_t lsn);

/* Microseconds since the Unix epoch: UTC in text, the number in JSON. */
extern void dump_row_time(DumpRow *row, const char *name, int64_t microseconds);

/* Numbers that follow each other in memory as little-endian u64. */
extern void dump_row_u64_list(DumpRow *row, const char *name, const uint8_t *values, uint32_t count);

#endif							/* QLOG_DUMP_ROW_H */
