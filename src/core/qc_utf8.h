/*
 * qc_utf8.h
 *		Well-formed UTF-8, character by character.
 */
#ifndef QC_UTF8_H
#define QC_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * Length of the well-formed character at s, of which left (>= 1) bytes are there, and its number in
 * *code; 0 when there is none: overlong forms, surrogates and numbers above 0x10FFFF are malformed.
 */
extern size_t qc_utf8_char(const uint8_t *s, size_t left, uint32_t *code);

#endif							/* QC_UTF8_H */
