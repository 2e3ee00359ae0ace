/*
 * fn_repair_start.h
 *		qlog_repair(NULL): the way out of a refused start.
 */
#ifndef FN_REPAIR_START_H
#define FN_REPAIR_START_H

#include "postgres.h"

#include "nodes/execnodes.h"

/*
 * While the start of qlog is refused: put what would have to be given up into rows, and, unless it is a dry run, give that up and
 * wait for the start.	XX001 when that would not help, or the start is refused again.
 */
extern void qlog_repair_start(ReturnSetInfo *result, bool dry_run);

#endif							/* FN_REPAIR_START_H */
