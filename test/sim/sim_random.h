/*
 * sim_random.h
 *		The only source of chance in tests: splitmix64 from a 64-bit seed, the same everywhere.
 */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/* A good mixture of the bits of x: for hashes and for decisions that depend on a position only. */
static inline uint64_t
sim_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static inline uint64_t
sim_random(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	return sim_mix(*state);
}

/* 0 .. bound - 1; bound is at least 1. */
static inline uint64_t
sim_random_below(uint64_t *state, uint64_t bound)
{
	return sim_random(state) % bound;
}

static inline bool
sim_random_bool(uint64_t *state)
{
	return (sim_random(state) >> 63) != 0;
}

#endif							/* SIM_RANDOM_H */
