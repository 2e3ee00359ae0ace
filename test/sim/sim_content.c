/*
 * sim_content.c
 *		Sparse bytes of a simulated file, in pages that copies share until one of them writes.
 *
 * Invariant: a page with more than one reference is never written to.
 */
#include "sim_content.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void *
sim_alloc(size_t size)
{
	void	   *memory = calloc(1, size);

	if (memory == NULL)
		exit(99);
	return memory;
}

void *
sim_realloc(void *memory, size_t size)
{
	memory = realloc(memory, size);
	if (memory == NULL)
		exit(99);
	return memory;
}

SimBuffer *
sim_buffer_new(const void *bytes, size_t len)
{
	SimBuffer  *buffer = sim_alloc(sizeof(SimBuffer) + len);

	buffer->refs = 1;
	buffer->len = len;
	if (bytes != NULL)
		memcpy(buffer->bytes, bytes, len);
	return buffer;
}

SimBuffer *
sim_buffer_share(SimBuffer *buffer)
{
	assert(buffer->refs > 0);
	buffer->refs++;
	return buffer;
}

void
sim_buffer_drop(SimBuffer *buffer)
{
	if (buffer == NULL)
		return;
	assert(buffer->refs > 0);
	if (--buffer->refs == 0)
		free(buffer);
}

/* Make the table long enough for this page. */
static void
reach_page(SimContent *content, size_t number)
{
	size_t		npages = number + 1 + number / 2;

	if (number < content->npages)
		return;
	content->pages = sim_realloc(content->pages, npages * sizeof(SimBuffer *));
	memset(content->pages + content->npages, 0, (npages - content->npages) * sizeof(SimBuffer *));
	content->npages = npages;
}

/* The page with this number, alone owned, so that it can be written. */
static SimBuffer *
own_page(SimContent *content, size_t number)
{
	SimBuffer  *page;

	reach_page(content, number);
	page = content->pages[number];
	if (page == NULL)
		page = sim_buffer_new(NULL, SIM_PAGE_SIZE);
	else if (page->refs > 1)
	{
		SimBuffer  *copy = sim_buffer_new(page->bytes, SIM_PAGE_SIZE);

		sim_buffer_drop(page);
		page = copy;
	}
	content->pages[number] = page;
	return page;
}

/* Does this page take no memory, being all zeros? */
static bool
is_hole(const SimContent *content, size_t number)
{
	return number >= content->npages || content->pages[number] == NULL;
}

/* Write zeros over part of one page. */
static void
zero_part(SimContent *content, size_t number, size_t offset, size_t len)
{
	if (is_hole(content, number))
		return;
	if (len == SIM_PAGE_SIZE)
	{
		sim_buffer_drop(content->pages[number]);
		content->pages[number] = NULL;
	}
	else
		memset(own_page(content, number)->bytes + offset, 0, len);
}

void
sim_content_put(SimContent *content, uint64_t position, const uint8_t *bytes, uint64_t len)
{
	/* zeros beyond the last page need no walk: preallocation is large */
	if (bytes == NULL && len > 0)
	{
		uint64_t	held = (uint64_t) content->npages * SIM_PAGE_SIZE;

		if (position >= held)
			return;
		if (len > held - position)
			len = held - position;
	}
	while (len > 0)
	{
		size_t		number = (size_t) (position / SIM_PAGE_SIZE);
		size_t		offset = (size_t) (position % SIM_PAGE_SIZE);
		size_t		part = SIM_PAGE_SIZE - offset < len ? SIM_PAGE_SIZE - offset : (size_t) len;

		if (bytes == NULL)
			zero_part(content, number, offset, part);
		else
		{
			memcpy(own_page(content, number)->bytes + offset, bytes, part);
			bytes += part;
		}
		position += part;
		len -= part;
	}
}

void
sim_content_get(const SimContent *content, uint64_t position, uint8_t *out, size_t len)
{
	while (len > 0)
	{
		size_t		number = (size_t) (position / SIM_PAGE_SIZE);
		size_t		offset = (size_t) (position % SIM_PAGE_SIZE);
		size_t		part = SIM_PAGE_SIZE - offset < len ? SIM_PAGE_SIZE - offset : len;

		if (is_hole(content, number))
			memset(out, 0, part);
		else
			memcpy(out, content->pages[number]->bytes + offset, part);
		out += part;
		position += part;
		len -= part;
	}
}

void
sim_content_resize(SimContent *content, uint64_t size)
{
	sim_content_put(content, size, NULL, UINT64_MAX - size);
	content->size = size;
}

void
sim_content_share(SimContent *to, const SimContent *from, uint64_t position, uint64_t len)
{
	size_t		last;

	if (len == 0)
		return;
	last = (size_t) ((position + len - 1) / SIM_PAGE_SIZE);

	for (size_t i = (size_t) (position / SIM_PAGE_SIZE); i <= last; i++)
	{
		SimBuffer  *page = is_hole(from, i) ? NULL : from->pages[i];

		if (is_hole(to, i) && page == NULL)
			continue;
		reach_page(to, i);
		if (to->pages[i] == page)
			continue;
		sim_buffer_drop(to->pages[i]);
		to->pages[i] = page == NULL ? NULL : sim_buffer_share(page);
	}
}

void
sim_content_copy(SimContent *to, const SimContent *from)
{
	SimContent	copy = {.size = from->size, .npages = from->npages};

	if (from->npages > 0)
	{
		copy.pages = sim_alloc(from->npages * sizeof(SimBuffer *));
		for (size_t i = 0; i < from->npages; i++)
			if (from->pages[i] != NULL)
				copy.pages[i] = sim_buffer_share(from->pages[i]);
	}
	sim_content_clear(to);
	*to = copy;
}

void
sim_content_clear(SimContent *content)
{
	for (size_t i = 0; i < content->npages; i++)
		sim_buffer_drop(content->pages[i]);
	free(content->pages);
	*content = (SimContent) {0};
}
