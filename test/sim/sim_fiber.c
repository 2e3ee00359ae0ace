/*
 * sim_fiber.c
 *		Fibers over ucontext.  Stacks are kept and used again.
 *
 * AddressSanitizer must be told of every change of stacks.
 */
#include "sim_fiber.h"

#include "sim_content.h"

#include <assert.h>
#include <stdlib.h>
#include <ucontext.h>

#ifdef SIM_SANITIZED
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_SIZE ((size_t) 512 * 1024)

struct SimFiber
{
	ucontext_t	context;
	SimFiberMain main;
	void	   *argument;
	bool		ended;
	void	   *stack;
	void	   *fake;			/* AddressSanitizer's, while it does not run */
	SimFiber   *next;			/* of those that are free */
};

static SimFiber *current;
static SimFiber *spare;
static ucontext_t outside;

#ifdef SIM_SANITIZED
static const void *outside_stack;
static size_t outside_size;
static void *outside_fake;
#endif

/* Before control goes into the fiber, and when it has come back. */
static void
enter_begin(SimFiber *fiber)
{
#ifdef SIM_SANITIZED
	__sanitizer_start_switch_fiber(&outside_fake, fiber->stack, STACK_SIZE);
#else
	(void) fiber;
#endif
}

static void
enter_end(void)
{
#ifdef SIM_SANITIZED
	__sanitizer_finish_switch_fiber(outside_fake, NULL, NULL);
#endif
}

/* Before control leaves the fiber, and when it is in it again (or for the first time). */
static void
leave_begin(SimFiber *fiber)
{
#ifdef SIM_SANITIZED
	__sanitizer_start_switch_fiber(fiber->ended ? NULL : &fiber->fake, outside_stack, outside_size);
#else
	(void) fiber;
#endif
}

static void
leave_end(SimFiber *fiber)
{
#ifdef SIM_SANITIZED
	__sanitizer_finish_switch_fiber(fiber->fake, &outside_stack, &outside_size);
#else
	(void) fiber;
#endif
}

static void
run(void)
{
	leave_end(current);
	current->main(current->argument);
	current->ended = true;
	leave_begin(current);
	(void) swapcontext(&current->context, &outside);
	abort();
}

/* A fiber that does not run, with a stack. */
static SimFiber *
take_spare(void)
{
	SimFiber   *fiber = spare;

	if (fiber != NULL)
	{
		spare = fiber->next;
		return fiber;
	}
	fiber = sim_alloc(sizeof(SimFiber));
	fiber->stack = malloc(STACK_SIZE);
	if (fiber->stack == NULL)
		abort();
	return fiber;
}

/* Have its context begin in run(). */
static void
prepare(SimFiber *fiber)
{
	if (getcontext(&fiber->context) != 0)
		abort();
	fiber->context.uc_stack.ss_sp = fiber->stack;
	fiber->context.uc_stack.ss_size = STACK_SIZE;
	makecontext(&fiber->context, run, 0);
}

SimFiber *
sim_fiber_new(SimFiberMain main, void *argument)
{
	SimFiber   *fiber = take_spare();

	fiber->main = main;
	fiber->argument = argument;
	fiber->ended = false;
	fiber->fake = NULL;
	prepare(fiber);
	return fiber;
}

void
sim_fiber_free(SimFiber *fiber)
{
	assert(fiber != current);
#ifdef SIM_SANITIZED
	ASAN_UNPOISON_MEMORY_REGION(fiber->stack, STACK_SIZE);
#endif
	fiber->next = spare;
	spare = fiber;
}

bool
sim_fiber_resume(SimFiber *fiber)
{
	assert(current == NULL && !fiber->ended);
	current = fiber;
	enter_begin(fiber);
	(void) swapcontext(&outside, &fiber->context);
	enter_end();
	current = NULL;
	return !fiber->ended;
}

void
sim_fiber_yield(void)
{
	SimFiber   *fiber = current;

	if (fiber == NULL)
		return;
	leave_begin(fiber);
	(void) swapcontext(&fiber->context, &outside);
	leave_end(fiber);
}

bool
sim_fiber_inside(void)
{
	return current != NULL;
}

void
sim_fiber_cleanup(void)
{
	while (spare != NULL)
	{
		SimFiber   *fiber = spare;

		spare = fiber->next;
		free(fiber->stack);
		free(fiber);
	}
}
