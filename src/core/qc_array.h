/*
 * qc_array.h
 *		Arrays that grow, for recovery, the workers' own memory and tools.
 *
 * Nothing that serves a session allocates, so nothing of that calls this.
 */
#ifndef QC_ARRAY_H
#define QC_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#include "qc_error.h"

/*
 * Make room for `need` items of `item` bytes in the array to which *array points (NULL = none yet), which has room for *cap.
 * It at least doubles, so that growing one by one costs a constant each.	QC_FULL without memory, and then nothing has changed.
 */
extern QcStatus qc_array_grow(void *array, uint32_t *cap, uint32_t need, size_t item, QcError *err);

#endif							/* QC_ARRAY_H */
