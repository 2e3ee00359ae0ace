/*
 * sim_main.c
 *		The simulation: as many seeds of each scenario as the time allows, one test for each scenario.
 *
 *	 sim_main [--seconds N] [--first SEED] [--scenario NAME]
 *	 sim_main --scenario NAME --seed SEED [--step STEP]		the same seed again, telling every step on stderr
 *	 sim_main --list
 *
 * Without --seconds the time is SIM_SECONDS of the environment, or 25.  Seeds are numbers from --first (1) on, so what is
 * run differs from machine to machine in its length only.	A failure tells the command that runs it again, even when it
 * ends the program.
 */
#define _POSIX_C_SOURCE 200809L

#include "sim_scenario.h"

#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef SIM_SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif

#define DEFAULT_SECONDS 25

typedef struct Arguments
{
	double		seconds;
	uint64_t	first;
	uint64_t	seed;
	bool		once;			/* this seed only */
	uint64_t	step;
	const SimScenario *only;	/* NULL = all */
} Arguments;

/* What one test does. */
typedef struct Share
{
	const SimScenario *scenario;
	uint64_t	first;
	double		until;
} Share;

/* ---- dying ---- */

/* What is told when the program dies: which seed it was at. */
static char epitaph[400];

static void
tell_epitaph(void)
{
	ssize_t		done = write(STDOUT_FILENO, epitaph, strlen(epitaph));

	(void) done;
}

static void
die(int number)
{
	tell_epitaph();
	(void) signal(number, SIG_DFL);
	(void) raise(number);
}

static void
prepare_to_die(void)
{
	(void) signal(SIGABRT, die);
	(void) signal(SIGTERM, die);
#ifdef SIM_SANITIZED
	__sanitizer_set_death_callback(tell_epitaph);
#else
	(void) signal(SIGSEGV, die);
	(void) signal(SIGBUS, die);
	(void) signal(SIGFPE, die);
#endif
}

/* The command that runs a seed again. */
static void
write_command(const SimScenario *scenario, uint64_t seed, uint64_t step, char *out, size_t size)
{
	int			n = snprintf(out, size, "%s --scenario %s --seed %llu", sim_program("sim_main"),
							 scenario->name, (unsigned long long) seed);

	if (step > 0 && n > 0 && (size_t) n < size)
		(void) snprintf(out + n, size - (size_t) n, " --step %llu", (unsigned long long) step);
}

static void
write_epitaph(const SimScenario *scenario, uint64_t seed, uint64_t step)
{
	char		command[200];

	write_command(scenario, seed, step, command, sizeof(command));
	(void) snprintf(epitaph, sizeof(epitaph), "not ok - the simulation died; again: %s\n", command);
}

/* ---- running ---- */

static double
now(void)
{
	struct timespec ts;

	(void) clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double) ts.tv_sec + (double) ts.tv_nsec * 1e-9;
}

/* A test: seeds until the time is over, one at least. */
static void
run_share(const void *argument)
{
	const Share *share = argument;
	SimOptions	options = {0};
	SimTotals	totals = {0};
	SimFailure	failure = {0};
	bool		good = true;

	for (uint64_t seed = share->first; good && (seed == share->first || now() < share->until); seed++)
	{
		write_epitaph(share->scenario, seed, 0);
		good = sim_scenario_run(share->scenario, seed, &options, &totals, &failure);
	}
	if (!CHECK(good))
	{
		char		command[200];

		write_command(share->scenario, share->first + totals.seeds - 1, failure.step, command,
					  sizeof(command));
		printf("# %s\n# again: %s\n", failure.text, command);
	}
	CHECK(totals.messages > 0);
	printf("# seeds %llu to %llu: %llu transactions, %llu messages, %llu steps, %llu recoveries\n",
		   (unsigned long long) share->first,
		   (unsigned long long) (share->first + totals.seeds - 1),
		   (unsigned long long) totals.transactions, (unsigned long long) totals.messages,
		   (unsigned long long) totals.steps, (unsigned long long) totals.recoveries);
	printf("# reclaim: %llu files deleted, %llu rewritten; %llu starts with a snapshot\n",
		   (unsigned long long) totals.deleted, (unsigned long long) totals.rewritten,
		   (unsigned long long) totals.snapshots);
	if (totals.refused + totals.panics + totals.bad_starts > 0)
		printf("# the disk failed: %llu transactions refused, %llu servers died, %llu did not start\n",
			   (unsigned long long) totals.refused, (unsigned long long) totals.panics,
			   (unsigned long long) totals.bad_starts);
}

static void
run_all(const Arguments *args)
{
	double		end = now() + args->seconds;
	uint32_t	shares = 0;		/* of those that are left */

	for (const SimScenario *s = sim_scenarios; s->name != NULL; s++)
		shares += args->only == NULL || args->only == s ? s->share : 0;
	for (const SimScenario *s = sim_scenarios; s->name != NULL; s++)
	{
		Share		share = {.scenario = s, .first = args->first};
		char		name[200];

		if (args->only != NULL && args->only != s)
			continue;
		share.until = now() + (end - now()) * s->share / shares;
		shares -= s->share;
		(void) snprintf(name, sizeof(name), "%s: %s", s->name, s->title);
		unit_run_with(name, run_share, &share);
	}
}

/* One seed, with its trace. */
static int
run_again(const Arguments *args)
{
	SimOptions	options = {.step = args->step, .trace = stderr};
	SimTotals	totals = {0};
	SimFailure	failure = {0};

	write_epitaph(args->only, args->seed, args->step);
	if (sim_scenario_run(args->only, args->seed, &options, &totals, &failure))
	{
		printf("%s, seed %llu: nothing wrong in %llu steps\n", args->only->name,
			   (unsigned long long) args->seed, (unsigned long long) totals.steps);
		return 0;
	}
	printf("%s\n", failure.text);
	return 1;
}

/* ---- arguments ---- */

static int
usage(void)
{
	fputs("usage: sim_main [--seconds N] [--first SEED] [--scenario NAME]\n"
		  "       sim_main --scenario NAME --seed SEED [--step STEP]\n"
		  "       sim_main --list\n", stderr);
	return 2;
}

static int
list(void)
{
	for (const SimScenario *s = sim_scenarios; s->name != NULL; s++)
		printf("%-20s %s\n", s->name, s->title);
	return 0;
}

/* A number that is not negative; false = it is none. */
static bool
read_number(const char *text, uint64_t *number)
{
	char	   *end;

	*number = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

static bool
read_option(Arguments *args, const char *option, const char *value)
{
	uint64_t	number = 0;

	if (value == NULL)
		return false;
	if (strcmp(option, "--scenario") == 0)
		return (args->only = sim_scenario_find(value)) != NULL;
	if (!read_number(value, &number))
		return false;
	if (strcmp(option, "--seconds") == 0)
		args->seconds = (double) number;
	else if (strcmp(option, "--first") == 0)
		args->first = number;
	else if (strcmp(option, "--step") == 0)
		args->step = number;
	else if (strcmp(option, "--seed") == 0)
	{
		args->seed = number;
		args->once = true;
	}
	else
		return false;
	return true;
}

int
main(int argc, char **argv)
{
	const char *seconds = getenv("SIM_SECONDS");
	Arguments	args = {.seconds = seconds == NULL ? DEFAULT_SECONDS : atof(seconds), .first = 1};
	int			result;

	if (argc == 2 && strcmp(argv[1], "--list") == 0)
		return list();
	for (int i = 1; i < argc; i += 2)
	{
		if (!read_option(&args, argv[i], i + 1 < argc ? argv[i + 1] : NULL))
			return usage();
	}
	if (args.once ? args.only == NULL : args.step != 0)
		return usage();
	prepare_to_die();
	if (args.once)
		result = run_again(&args);
	else
	{
		run_all(&args);
		result = unit_end();
	}
	sim_server_cleanup();
	return result;
}
