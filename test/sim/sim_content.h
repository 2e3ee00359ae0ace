/*
 * sim_content.h
 *		The bytes of a simulated file: sparse, copied on write, cheap to duplicate.
 *
 * Pages that were never written, or only with zeros, take no memory.  Bytes at and above size are
 * always zero.  A test tool: running out of memory ends the program.
 */
#ifndef SIM_CONTENT_H
#define SIM_CONTENT_H

#include <stddef.h>
#include <stdint.h>

#define SIM_PAGE_SIZE	4096

/* Memory that several owners share and nobody changes while it has more than one. */
typedef struct SimBuffer
{
	uint32_t	refs;
	size_t		len;
	uint8_t		bytes[];
} SimBuffer;

typedef struct SimContent
{
	uint64_t	size;
	size_t		npages;			/* entries of pages; beyond them all is zero */
	SimBuffer **pages;			/* NULL = zeros */
} SimContent;

extern void *sim_alloc(size_t size);	/* zeroed */
extern void *sim_realloc(void *memory, size_t size);

/* A buffer of len bytes with one reference; bytes may be NULL for zeros. */
extern SimBuffer *sim_buffer_new(const void *bytes, size_t len);
extern SimBuffer *sim_buffer_share(SimBuffer *buffer);
extern void sim_buffer_drop(SimBuffer *buffer); /* NULL is allowed */

/* Write without changing the size; bytes NULL writes zeros. */
extern void sim_content_put(SimContent *content, uint64_t position, const uint8_t *bytes,
							uint64_t len);

/* Copy len bytes out, zeros where nothing was written; does not look at the size. */
extern void sim_content_get(const SimContent *content, uint64_t position, uint8_t *out, size_t len);

/* Set the size; what lies above becomes zero. */
extern void sim_content_resize(SimContent *content, uint64_t size);

/* Make the pages of to that hold this range the same as those of from.  Does not look at sizes. */
extern void sim_content_share(SimContent *to, const SimContent *from, uint64_t position,
							  uint64_t len);

/* Make to, whatever it held, the same as from. */
extern void sim_content_copy(SimContent *to, const SimContent *from);
extern void sim_content_clear(SimContent *content);

#endif							/* SIM_CONTENT_H */
