/*
 * sim_scenario.h
 *		What the simulation does with a seed, by name: lives, sweeps and damage, each with the configurations that it is
 *		about.
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "sim_run.h"

typedef struct SimScenario SimScenario;
struct SimScenario
{
	const char *name;
	const char *title;
	uint32_t	share;			/* of the time, relative to the others' */
	void		(*configure) (SimConfig *config);	/* NULL = all configurations */
	bool		(*run) (SimWorld *world, const SimScenario *scenario);
	uint32_t	kind;			/* of damage; or segments that are pushed */
};

/* All of them; the last one has no name. */
extern const SimScenario sim_scenarios[];

/* The one with this name, NULL = there is none. */
extern const SimScenario *sim_scenario_find(const char *name);

/* How a seed is to be run. */
typedef struct SimOptions
{
	uint64_t	step;			/* sweeps look at crashes before this step only, 0 = every */
	FILE	   *trace;			/* tell every step, NULL = do not */
} SimOptions;

/* What is wrong, in which configuration; and the step of a sweep at which that was seen, 0 = any. */
typedef struct SimFailure
{
	char		text[1200];
	uint64_t	step;
} SimFailure;

/* Run a seed; false = something is wrong. */
extern bool sim_scenario_run(const SimScenario *scenario, uint64_t seed, const SimOptions *options,
							 SimTotals *totals, SimFailure *failure);

/* Where the program of this name was built: build/gcc/test/sim/NAME. */
extern const char *sim_program(const char *name);

#endif							/* SIM_SCENARIO_H */
