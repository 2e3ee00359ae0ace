/*
 * qc_json.h
 *		Is a text JSON?  One pass that builds nothing.
 */
#ifndef QC_JSON_H
#define QC_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QC_JSON_DEPTH 64		/* deeper nesting is not judged here */

/*
 * True only when the text is one JSON value (RFC 8259) nested at most QC_JSON_DEPTH deep, with white space around it
 * allowed.  False = it is not, or it is nested deeper: ask a parser that can say what is wrong.  The encoding of strings is
 * not looked at, nor whether \u escapes make characters.
 */
extern bool qc_json_valid(const void *text, size_t len);

#endif							/* QC_JSON_H */
