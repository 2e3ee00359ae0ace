/*
 * sim_mutants.c
 *		Would the simulation notice? Sixteen deliberate faults of the core (qc_mutant.h), one test for each: the simulation
 *		finds it within a few seeds, and finds nothing in the same seed without the fault.
 *
 * Linked with copies of those core files that can have the faults, in place of the core's own.
 *
 *	 sim_mutants						all tests
 *	 sim_mutants NUMBER SCENARIO SEED	one seed with that fault, telling every step on stderr
 */
#define _POSIX_C_SOURCE 200809L

#include "sim_scenario.h"

#include "qc_mutant.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#define SEEDS 200				/* tried at most */

QcMutant	qc_mutant;

typedef struct Mutant
{
	const char *name;
	QcMutant	fault;
	const char *scenarios[3];	/* that are about it */
} Mutant;

static const Mutant mutants[] = {
	{"applied before it is durable", QC_MUTANT_APPLY_BEFORE_DURABLE, {"life-queue-only", "sweep-queue-only"}},
	{"the mark passes an undecided entry", QC_MUTANT_MARK_PAST_UNDECIDED, {"life-carried", "life-referenced"}},
	{"the scan stops at damage", QC_MUTANT_STOP_AT_DAMAGE, {"damage-only", "damage-queue"}},
	{"acknowledged per log", QC_MUTANT_ACK_PER_LOG, {"life-several", "sweep-several"}},
	{"a seek is told before its decision is durable", QC_MUTANT_ORDER_NOT_FLUSHED, {"life-groups", "sweep-groups"}},
	{"an answer from before a seek counts after it", QC_MUTANT_ANSWER_AFTER_SEEK, {"life-groups", "sweep-groups"}},
	{"a purge takes what is not decided", QC_MUTANT_PURGE_UNDECIDED, {"life-groups", "sweep-groups"}},
	{"a push does not place the groups that begin with it", QC_MUTANT_GROUP_FOLLOWS_LATE, {"life-groups", "sweep-groups"}},
	{"a directory is removed early", QC_MUTANT_REMOVE_EARLY, {"life-catalog", "life-snapshot"}},
	{"files go before the checkpoint is stored", QC_MUTANT_RECLAIM_EARLY, {"life-reclaim", "life-groups"}},
	{"messages in flight are removed", QC_MUTANT_RETAIN_HELD, {"life-retained"}},
	{"the start is not stored", QC_MUTANT_RETAIN_LOST, {"life-retained"}},
	{"a rewritten file is not synced", QC_MUTANT_COPY_UNSYNCED, {"life-reclaim", "life-snapshot"}},
	{"a snapshot does not hold the floor", QC_MUTANT_SNAPSHOT_UNHELD, {"life-snapshot"}},
	{"nothing is ever gone", QC_MUTANT_NOTHING_GONE, {"churn"}},
	{"what was renamed is left lying about", QC_MUTANT_LEAVE_DEAD, {"churn"}},
};

/* Run a seed with this fault. */
static bool
run_with(QcMutant fault, const char *scenario, uint64_t seed, const SimOptions *options,
		 SimFailure *failure)
{
	SimTotals	totals = {0};
	bool		good;

	qc_mutant = fault;
	good = sim_scenario_run(sim_scenario_find(scenario), seed, options, &totals, failure);
	qc_mutant = QC_MUTANT_NONE;
	return good;
}

static void
test_mutant(const void *argument)
{
	const Mutant *mutant = argument;
	SimOptions	options = {0};
	SimFailure	failure = {0};

	for (uint64_t seed = 1; seed <= SEEDS; seed++)
	{
		for (int i = 0; i < 3 && mutant->scenarios[i] != NULL; i++)
		{
			if (run_with(mutant->fault, mutant->scenarios[i], seed, &options, &failure))
				continue;
			printf("# caught by %s\n# again: %s %d %s %llu\n", failure.text, sim_program("sim_mutants"),
				   (int) mutant->fault, mutant->scenarios[i], (unsigned long long) seed);
			if (!CHECK(run_with(QC_MUTANT_NONE, mutant->scenarios[i], seed, &options, &failure)))
				printf("# and without the fault: %s\n", failure.text);
			return;
		}
	}
	CHECK(!"caught");
}

static int
run_one(char **argv)
{
	SimOptions	options = {.trace = stderr};
	SimFailure	failure = {0};

	if (sim_scenario_find(argv[1]) == NULL)
		return 2;
	if (run_with((QcMutant) atoi(argv[0]), argv[1], strtoull(argv[2], NULL, 10), &options, &failure))
		return 0;
	printf("%s\n", failure.text);
	return 1;
}

int
main(int argc, char **argv)
{
	int			result;

	(void) setenv("SIM_CHURN", "6", 0); /* per cent are enough */
	if (argc == 4)
		result = run_one(argv + 1);
	else
	{
		for (size_t i = 0; i < sizeof(mutants) / sizeof(mutants[0]); i++)
			unit_run_with(mutants[i].name, test_mutant, &mutants[i]);
		result = unit_end();
	}
	sim_server_cleanup();
	return result;
}
