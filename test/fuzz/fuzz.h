/*
 * fuzz.h
 *		What every fuzzer shares: seeds, and a driver of its own for compilers without libFuzzer.
 *
 * A fuzzer is one file with LLVMFuzzerTestOneInput and, unless FUZZ_LIBFUZZER is defined, a main
 * that calls fuzz_main.  With clang:
 *
 *	 clang -fsanitize=fuzzer,address,undefined -DFUZZ_LIBFUZZER ... fuzz_record.c fuzz.c ...
 *
 * The own driver mutates the seeds for FUZZ_SECONDS (default 5) from the seed FUZZ_SEED (default: the
 * clock), prints TAP, and before each input writes it to fuzz-NAME.input in the current directory when
 * FUZZ_SAVE is set, so that a crash leaves its cause behind.  Files named as arguments are run instead.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

#define FUZZ_INPUT_MAX	65536

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Add a seed to the corpus of the own driver; the bytes are copied. */
extern void fuzz_seed(const void *bytes, size_t len);

/* Run; the exit status of the program.  add_seeds calls fuzz_seed. */
extern int	fuzz_main(int argc, char **argv, const char *name,
					  int (*one_input) (const uint8_t *, size_t), void (*add_seeds) (void));

/*
 * For formats with checksums: the first byte of an input is a mode, whose bits say which of them are repaired, so that mutated
 * bytes get past them.	one_input gets a copy of the rest, of exactly its length.
 */
extern int	fuzz_with_mode(const uint8_t *data, size_t size,
						   void (*one_input) (unsigned mode, uint8_t *bytes, size_t len));

/* Seeds for it: the example in each mode. */
extern void fuzz_seed_modes(unsigned modes, size_t (*example) (uint8_t *out), size_t example_max);

/* A property that must hold whatever the input is: prints and aborts when it does not. */
#define FUZZ_CHECK(condition) \
	((condition) ? (void) 0 : fuzz_fail(__FILE__, __LINE__, #condition))
extern void fuzz_fail(const char *file, int line, const char *what);

#endif							/* FUZZ_H */
