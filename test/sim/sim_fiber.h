/*
 * sim_fiber.h
 *		Fibers: processes of the simulated server, one of which runs at a time.
 *
 * A fiber gives up control in sim_fiber_yield only, so everything between two yields is one step.  A fiber that is
 * abandoned in the middle (its server died) is freed without unwinding: between two yields nothing may be held that only
 * it could give back.
 */
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

#include <stdbool.h>

/* Is this built with AddressSanitizer? */
#if defined(__SANITIZE_ADDRESS__)
#define SIM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_SANITIZED 1
#endif
#endif

typedef struct SimFiber SimFiber;
typedef void (*SimFiberMain) (void *argument);

/* A fiber that will run main(argument) when it is resumed first. */
extern SimFiber *sim_fiber_new(SimFiberMain main, void *argument);

/* Free it, wherever it stands; not from inside. */
extern void sim_fiber_free(SimFiber *fiber);

/* Run it until it yields; false = it has returned from its main function.	Not from inside a fiber. */
extern bool sim_fiber_resume(SimFiber *fiber);

/* Back to whoever resumed this fiber; outside of fibers it does nothing. */
extern void sim_fiber_yield(void);

/* Is a fiber running? */
extern bool sim_fiber_inside(void);

/* Give unused stacks back, at the end of the program. */
extern void sim_fiber_cleanup(void);

#endif							/* SIM_FIBER_H */
