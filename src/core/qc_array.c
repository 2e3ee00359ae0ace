/*
 * qc_array.c
 *		Arrays that grow (contract in qc_array.h).
 */
#include "qc_array.h"

#include <stdlib.h>
#include <string.h>

QcStatus
qc_array_grow(void *array, uint32_t *cap, uint32_t need, size_t item, QcError *err)
{
	uint32_t	more = *cap;
	void	   *old;
	void	   *new;

	if (need <= *cap)
		return QC_OK;
	while (more < need)
		more = more > UINT32_MAX / 2 - 16 ? UINT32_MAX : more * 2 + 16;

	/* The caller's pointer has a type of its own. */
	memcpy(&old, array, sizeof(old));
	new = realloc(old, more * item);
	if (new == NULL)
		return qc_error_set(err, QC_FULL, "out of memory");
	memcpy(array, &new, sizeof(new));
	*cap = more;
	return QC_OK;
}
