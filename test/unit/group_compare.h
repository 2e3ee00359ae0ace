/*
 * group_compare.h
 *		Is the state what the model of consumer groups says?
 *
 * Queue 1 of machine.h; partition 0 of the model is its default one.
 */
#ifndef GROUP_COMPARE_H
#define GROUP_COMPARE_H

#include "group_model.h"
#include "machine.h"

typedef struct GroupFault
{
	const char *what;			/* NULL = it is */
	uint64_t	actual;
	uint64_t	expected;
} GroupFault;

extern uint64_t group_partition_id(int partition);

/* whole: every partition, which brings it up to date; otherwise what is counted, and nothing is changed. */
extern GroupFault group_compare(QcState *st, const Model *model, bool whole);

#endif							/* GROUP_COMPARE_H */
