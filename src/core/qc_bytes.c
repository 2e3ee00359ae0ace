/*
 * qc_bytes.c
 *		Sequential puts and gets of the bounds-checked cursor.
 *
 * The only code that moves a QcWriter or a QcReader forward.  Invariants: a writer never
 * has len > cap, a reader never has at > end, and once `full` or `bad` is set nothing is
 * written or consumed any more.  Called by every encoder and decoder of the core.
 */
#include "qc_bytes.h"

void
qc_writer_init(QcWriter *w, void *buf, size_t cap)
{
	w->buf = buf;
	w->cap = cap;
	w->len = 0;
	w->full = false;
}

/* The next len bytes to fill, or NULL (and full) when there is no room. */
static uint8_t *
take_room(QcWriter *w, size_t len)
{
	uint8_t    *at;

	if (w->full || len > w->cap - w->len)
	{
		w->full = true;
		return NULL;
	}
	at = w->buf + w->len;
	w->len += len;
	return at;
}

void
qc_put_u8(QcWriter *w, uint8_t value)
{
	uint8_t    *at = take_room(w, 1);

	if (at != NULL)
		*at = value;
}

void
qc_put_u16(QcWriter *w, uint16_t value)
{
	uint8_t    *at = take_room(w, 2);

	if (at != NULL)
		qc_store_u16(at, value);
}

void
qc_put_u32(QcWriter *w, uint32_t value)
{
	uint8_t    *at = take_room(w, 4);

	if (at != NULL)
		qc_store_u32(at, value);
}

void
qc_put_u64(QcWriter *w, uint64_t value)
{
	uint8_t    *at = take_room(w, 8);

	if (at != NULL)
		qc_store_u64(at, value);
}

void
qc_put_bytes(QcWriter *w, const void *bytes, size_t len)
{
	uint8_t    *at = take_room(w, len);

	/* an empty string may come as NULL, which memcpy must not see */
	if (at != NULL && len > 0)
		memcpy(at, bytes, len);
}

void
qc_put_str16(QcWriter *w, const void *bytes, size_t len)
{
	if (len > UINT16_MAX)
	{
		w->full = true;
		return;
	}
	qc_put_u16(w, (uint16_t) len);
	qc_put_bytes(w, bytes, len);
}

void
qc_reader_init(QcReader *r, const void *buf, size_t len)
{
	r->at = buf;
	/* NULL + 0 is not defined in C */
	r->end = len > 0 ? r->at + len : r->at;
	r->bad = false;
}

const uint8_t *
qc_get_bytes(QcReader *r, size_t len)
{
	const uint8_t *at = r->at;

	if (r->bad || len > qc_reader_left(r))
	{
		r->bad = true;
		return NULL;
	}
	if (len > 0)
		r->at += len;
	return at;
}

uint8_t
qc_get_u8(QcReader *r)
{
	const uint8_t *at = qc_get_bytes(r, 1);

	return at == NULL ? 0 : *at;
}

uint16_t
qc_get_u16(QcReader *r)
{
	const uint8_t *at = qc_get_bytes(r, 2);

	return at == NULL ? 0 : qc_load_u16(at);
}

uint32_t
qc_get_u32(QcReader *r)
{
	const uint8_t *at = qc_get_bytes(r, 4);

	return at == NULL ? 0 : qc_load_u32(at);
}

uint64_t
qc_get_u64(QcReader *r)
{
	const uint8_t *at = qc_get_bytes(r, 8);

	return at == NULL ? 0 : qc_load_u64(at);
}

const uint8_t *
qc_get_str16(QcReader *r, uint16_t *len)
{
	*len = qc_get_u16(r);
	return qc_get_bytes(r, *len);
}
