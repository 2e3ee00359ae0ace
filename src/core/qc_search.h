/*
 * qc_search.h
 *		Looking into sorted arrays.
 */
#ifndef QC_SEARCH_H
#define QC_SEARCH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Number of items whose key is below this one: where the first one stands that has the key, or a larger one.  The array has n
 * items of `size` bytes, ascending by the uint64_t at `offset` of each.
 */
static inline uint32_t
qc_lower_bound(const void *items, uint32_t n, size_t size, size_t offset, uint64_t key)
{
	uint32_t	low = 0;
	uint32_t	high = n;

	while (low < high)
	{
		uint32_t	middle = low + (high - low) / 2;
		uint64_t	found;

		memcpy(&found, (const uint8_t *) items + middle * size + offset, sizeof(found));
		if (found < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The same for an array of structures and the name of the field. */
#define QC_LOWER_BOUND(items, n, type, field, key) \
	qc_lower_bound((items), (n), sizeof(type), offsetof(type, field), (key))

#endif							/* QC_SEARCH_H */
