/*
 * json_grammar.h
 *		The grammar of JSON written down a second time, rule by rule, to compare qc_json_valid with.
 */
#ifndef JSON_GRAMMAR_H
#define JSON_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>

/* Is the text one JSON value with white space around it?  *depth: how deep its containers are nested. */
extern bool json_grammar(const char *text, size_t len, int *depth);

#endif							/* JSON_GRAMMAR_H */
