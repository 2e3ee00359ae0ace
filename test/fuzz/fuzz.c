/*
 * fuzz.c
 *		The own driver of the fuzzers: a corpus that grows by mutation, blind but fast.
 *
 * It has no coverage feedback; seeds that reach every branch and fuzzers that repair checksums make up
 * for it.  Inputs are handed over in allocations of their exact size, so that the address sanitizer
 * sees the first byte read past the end.
 */
#include "fuzz.h"

#include "sim_random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CORPUS_MAX 256

typedef struct Input
{
	uint8_t    *bytes;
	size_t		len;
} Input;

static Input corpus[CORPUS_MAX];
static int	corpus_size;
static uint64_t chance;
static const char *current_name = "";
static const uint8_t *current;
static size_t current_len;

void
fuzz_seed(const void *bytes, size_t len)
{
	if (corpus_size == CORPUS_MAX || len > FUZZ_INPUT_MAX)
		return;
	corpus[corpus_size].bytes = malloc(len + 1);
	if (corpus[corpus_size].bytes == NULL)
		return;
	if (len > 0)
		memcpy(corpus[corpus_size].bytes, bytes, len);
	corpus[corpus_size++].len = len;
}

void
fuzz_fail(const char *file, int line, const char *what)
{
	printf("# %s:%d: %s does not hold\n# input, %zu bytes:", file, line, what, current_len);
	for (size_t i = 0; i < current_len && i < 2048; i++)
		printf("%s%02x", i % 32 == 0 ? "\n# " : "", current[i]);
	printf("\nnot ok 1 - %s\n1..1\n", current_name);
	fflush(stdout);
	abort();
}

/* Keep the input in a file until the next one, for crashes that no handler sees. */
static void
save_input(const uint8_t *bytes, size_t len)
{
	char		path[256];
	FILE	   *file;

	(void) snprintf(path, sizeof(path), "fuzz-%s.input", current_name);
	file = fopen(path, "w");
	if (file == NULL)
		return;
	(void) fwrite(bytes, 1, len, file);
	fclose(file);
}

static void
run_input(int (*one_input) (const uint8_t *, size_t), const uint8_t *bytes, size_t len)
{
	uint8_t    *exact = malloc(len > 0 ? len : 1);

	if (exact == NULL)
		return;
	if (len > 0)
		memcpy(exact, bytes, len);
	current = exact;
	current_len = len;
	if (getenv("FUZZ_SAVE") != NULL)
		save_input(exact, len);
	(void) one_input(exact, len);
	free(exact);
}

/* Numbers at the edges of their types, which random bytes seldom hit. */
static uint64_t
edge_number(void)
{
	static const uint64_t edges[] = {
		0, 1, 2, 3, 4, 5, 18, 19, 44, 45, 46, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000,
		0x0fffffff, 0x10000000, 0x10000001, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff,
		UINT64_C(0x100000000), UINT64_C(0x7fffffffffffffff), UINT64_MAX - 1, UINT64_MAX
	};

	return edges[sim_random_below(&chance, sizeof(edges) / sizeof(edges[0]))];
}

/* Overwrite 1, 2, 4 or 8 bytes with an edge, or with what stands there plus or minus a little. */
static void
mutate_number(uint8_t *buf, size_t len)
{
	size_t		width = (size_t) 1 << sim_random_below(&chance, 4);
	size_t		at;
	uint64_t	value = 0;

	if (len < width)
		return;
	at = sim_random_below(&chance, len - width + 1);
	for (size_t i = 0; i < width; i++)
		value |= (uint64_t) buf[at + i] << (8 * i);
	value = sim_random_bool(&chance) ? edge_number() : value + sim_random_below(&chance, 9) - 4;
	for (size_t i = 0; i < width; i++)
		buf[at + i] = (uint8_t) (value >> (8 * i));
}

/* Remove, repeat or insert a stretch; returns the new length. */
static size_t
mutate_length(uint8_t *buf, size_t len)
{
	size_t		at = sim_random_below(&chance, len + 1);
	size_t		n = sim_random_below(&chance, 33);

	if (sim_random_bool(&chance))
	{
		n = n > len - at ? len - at : n;
		memmove(buf + at, buf + at + n, len - at - n);
		return len - n;
	}
	if (len + n > FUZZ_INPUT_MAX)
		return len;
	memmove(buf + at + n, buf + at, len - at);
	for (size_t i = 0; i < n; i++)
		buf[at + i] = at >= n ? buf[at - n + i] : (uint8_t) sim_random(&chance);
	return len + n;
}

/* Put a stretch of another input somewhere; returns the new length. */
static size_t
splice(uint8_t *buf, size_t len)
{
	const Input *other = &corpus[sim_random_below(&chance, (uint64_t) corpus_size)];
	size_t		from = sim_random_below(&chance, other->len + 1);
	size_t		n = sim_random_below(&chance, other->len - from + 1);
	size_t		at = sim_random_below(&chance, len + 1);

	if (at + n > FUZZ_INPUT_MAX)
		return len;
	memcpy(buf + at, other->bytes + from, n);
	return at + n > len ? at + n : len;
}

static size_t
mutate(uint8_t *buf, size_t len)
{
	for (uint64_t steps = sim_random_below(&chance, 5); steps > 0; steps--)
	{
		switch (sim_random_below(&chance, 6))
		{
			case 0:
				if (len > 0)
					buf[sim_random_below(&chance, len)] ^= (uint8_t) (1u << sim_random_below(&chance, 8));
				break;
			case 1:
				if (len > 0)
					buf[sim_random_below(&chance, len)] = (uint8_t) sim_random(&chance);
				break;
			case 2:
			case 3:
				mutate_number(buf, len);
				break;
			case 4:
				len = mutate_length(buf, len);
				break;
			default:
				len = splice(buf, len);
				break;
		}
	}
	return len;
}

/* Replace one input of the corpus beyond the seeds by a mutant now and then, so that changes add up. */
static void
keep_mutant(const uint8_t *buf, size_t len, int seeds)
{
	int			slot;

	if (corpus_size < CORPUS_MAX)
	{
		fuzz_seed(buf, len);
		return;
	}
	slot = seeds + (int) sim_random_below(&chance, (uint64_t) (CORPUS_MAX - seeds));
	if (slot >= CORPUS_MAX)
		return;
	free(corpus[slot].bytes);
	corpus[slot].bytes = malloc(len + 1);
	corpus[slot].len = corpus[slot].bytes == NULL ? 0 : len;
	if (corpus[slot].bytes != NULL)
		memcpy(corpus[slot].bytes, buf, len);
}

static uint64_t
fuzz_for_a_while(int (*one_input) (const uint8_t *, size_t), double seconds)
{
	static uint8_t buf[FUZZ_INPUT_MAX];
	int			seeds = corpus_size;
	uint64_t	runs = 0;
	struct timespec start;
	struct timespec now;

	for (int i = 0; i < seeds; i++)
		run_input(one_input, corpus[i].bytes, corpus[i].len);
	(void) timespec_get(&start, TIME_UTC);
	do
	{
		for (int i = 0; i < 200; i++, runs++)
		{
			const Input *input = &corpus[sim_random_below(&chance, (uint64_t) corpus_size)];
			size_t		len = input->len;

			memcpy(buf, input->bytes, len);
			len = mutate(buf, len);
			run_input(one_input, buf, len);
			if (sim_random_below(&chance, 64) == 0)
				keep_mutant(buf, len, seeds);
		}
		(void) timespec_get(&now, TIME_UTC);
	} while ((double) (now.tv_sec - start.tv_sec) + (double) (now.tv_nsec - start.tv_nsec) * 1e-9 < seconds);
	return runs;
}

static int
run_files(int argc, char **argv, int (*one_input) (const uint8_t *, size_t))
{
	static uint8_t buf[FUZZ_INPUT_MAX];

	for (int i = 1; i < argc; i++)
	{
		FILE	   *file = fopen(argv[i], "r");

		if (file == NULL)
		{
			printf("Bail out! cannot open %s\n", argv[i]);
			return 1;
		}
		run_input(one_input, buf, fread(buf, 1, sizeof(buf), file));
		fclose(file);
		printf("ok %d - %s\n", i, argv[i]);
	}
	printf("1..%d\n", argc - 1);
	return 0;
}

int
fuzz_with_mode(const uint8_t *data, size_t size,
			   void (*one_input) (unsigned mode, uint8_t *bytes, size_t len))
{
	uint8_t    *bytes;

	if (size < 1)
		return 0;
	bytes = malloc(size > 1 ? size - 1 : 1);
	memcpy(bytes, data + 1, size - 1);
	one_input(data[0], bytes, size - 1);
	free(bytes);
	return 0;
}

void
fuzz_seed_modes(unsigned modes, size_t (*example) (uint8_t *out), size_t example_max)
{
	uint8_t    *buf = malloc(1 + example_max);
	size_t		len = example(buf + 1);

	for (unsigned mode = 0; mode < modes; mode++)
	{
		buf[0] = (uint8_t) mode;
		fuzz_seed(buf, 1 + len);
	}
	free(buf);
}


int
fuzz_main(int argc, char **argv, const char *name, int (*one_input) (const uint8_t *, size_t),
		  void (*add_seeds) (void))
{
	const char *seconds = getenv("FUZZ_SECONDS");
	const char *seed = getenv("FUZZ_SEED");
	struct timespec now;
	uint64_t	runs;

	current_name = name;
	if (argc > 1)
		return run_files(argc, argv, one_input);
	(void) timespec_get(&now, TIME_UTC);
	chance = seed != NULL ? strtoull(seed, NULL, 10) :
		sim_mix((uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec);
	printf("# FUZZ_SEED=%" PRIu64 "\n", chance);
	fflush(stdout);
	add_seeds();
	if (corpus_size == 0)
		fuzz_seed("", 0);
	runs = fuzz_for_a_while(one_input, seconds != NULL ? strtod(seconds, NULL) : 5.0);
	printf("ok 1 - %s, %" PRIu64 " inputs\n1..1\n", name, runs);
	for (int i = 0; i < corpus_size; i++)
		free(corpus[i].bytes);
	return 0;
}
