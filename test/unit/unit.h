/*
 * unit.h
 *		A small TAP harness for test programs in C.
 *
 * A program runs its test functions with UNIT_RUN and returns unit_end().  A failed CHECK prints a
 * diagnostic line and fails the current test, which goes on, so that one run shows everything.
 */
#ifndef UNIT_H
#define UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNIT_RUN(function) unit_run(#function, function)

#define CHECK(condition) unit_check((condition), __FILE__, __LINE__, #condition)
#define CHECK_U64(actual, expected) \
	unit_check_u64((uint64_t) (actual), (uint64_t) (expected), __FILE__, __LINE__, #actual)
#define CHECK_STR(actual, expected) \
	unit_check_str((actual), (expected), __FILE__, __LINE__, #actual)
#define CHECK_BYTES(actual, actual_len, expected, expected_len) \
	unit_check_bytes((actual), (actual_len), (expected), (expected_len), __FILE__, __LINE__, #actual)

/* Run one test and print "ok N - name" or "not ok N - name". */
extern void unit_run(const char *name, void (*test) (void));

/* The same for a test whose name is made at run time and that has an argument. */
extern void unit_run_with(const char *name, void (*test) (const void *), const void *argument);

/* Print the plan; the exit status of the program: 0 when everything passed. */
extern int	unit_end(void);

/* Each returns whether the check held. */
extern bool unit_check(bool held, const char *file, int line, const char *what);
extern bool unit_check_u64(uint64_t actual, uint64_t expected, const char *file, int line,
						   const char *what);
extern bool unit_check_str(const char *actual, const char *expected, const char *file, int line,
						   const char *what);
extern bool unit_check_bytes(const void *actual, size_t actual_len, const void *expected,
							 size_t expected_len, const char *file, int line, const char *what);

/*
 * Path of an input file, relative to the top of the source tree; in a static buffer.  test/run names
 * its copy of the inputs in TEST_INPUTS; by hand, programs are run at the top of the tree.
 */
extern const char *unit_input_path(const char *relative);

#endif							/* UNIT_H */
