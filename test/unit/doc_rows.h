/*
 * doc_rows.h
 *		One fixed example of every kind of checkpoint row, for doc/format.md.
 *
 * They are the rows of one state, which test_doc_format.c compares with the document.
 */
#ifndef DOC_ROWS_H
#define DOC_ROWS_H

#include "sample.h"

#define DOC_ROWS 10

/* Name of the example's block, and its kind. */
typedef struct DocRow
{
	const char *name;
	uint8_t		kind;
	uint32_t	number;			/* which of its kind, in the order of the keys */
} DocRow;

extern const DocRow doc_rows[DOC_ROWS];

/* Key and value of the example; returns their size, 0 = there is no such row. */
extern size_t doc_row(const DocRow *row, uint8_t out[SAMPLE_MAX]);

#endif							/* DOC_ROWS_H */
