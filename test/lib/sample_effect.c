/*
 * sample_effect.c
 *		Examples of effects, filled by rule from QC_EFFECT_LIST.
 *
 * The n-th number of an effect is 0x0102030405060700 + n cut to its width (negated when signed),
 * a string is its own field name; items go on counting.
 */
#include "sample.h"

#include <assert.h>

const QcEffectKind sample_kinds[] = {
#define KIND(number, NAME, name, Struct, fields, items) QC_EFFECT_##NAME,
#define NOTHING(field)
	QC_EFFECT_LIST(KIND, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)
#undef KIND
	QC_EFFECT_KIND_END
};

static uint64_t
next_number(unsigned *n)
{
	return UINT64_C(0x0102030405060700) + ++*n;
}

static QcStr
name_of(const char *field)
{
	QcStr		str = {.bytes = (const uint8_t *) field, .len = (uint16_t) strlen(field)};

	return str;
}

#define FILL_U8(field) f.field = (uint8_t) next_number(&n);
#define FILL_U16(field) f.field = (uint16_t) next_number(&n);
#define FILL_U32(field) f.field = (uint32_t) next_number(&n);
#define FILL_U64(field) f.field = next_number(&n);
#define FILL_I64(field) f.field = -(int64_t) next_number(&n);
#define FILL_STR(field) f.field = name_of(#field);

/* The items behind the fixed fields; n is what was counted so far. */
static void
put_items(QcWriter *w, QcEffectKind kind, unsigned n)
{
	switch (kind)
	{
#define PUT_ITEMS(number, NAME, name, Struct, fields, items) \
		case QC_EFFECT_##NAME: \
			for (int i = 0; i < SAMPLE_ITEMS; i++) \
			{ \
				Struct##Item f = {.unused_ = 0}; \
				items \
				qc_effect_put_item(w, kind, &f); \
			} \
			break;
			QC_EFFECT_LIST(PUT_ITEMS, FILL_U8, FILL_U16, FILL_U32, FILL_U64, FILL_I64, FILL_STR)
		case QC_EFFECT_KIND_END:
			break;
	}
}

size_t
sample_effect(QcEffectKind kind, uint8_t out[SAMPLE_MAX])
{
	uint32_t	nitems = qc_effect_item_size(kind) > 0 ? SAMPLE_ITEMS : 0;
	unsigned	n = 0;
	QcWriter	w;

	qc_writer_init(&w, out, SAMPLE_MAX);
	switch (kind)
	{
#define PUT(number, NAME, name, Struct, fields, items) \
		case QC_EFFECT_##NAME: \
			{ \
				Struct		f; \
				fields \
				qc_effect_put(&w, kind, &f, nitems); \
			} \
			break;
			QC_EFFECT_LIST(PUT, FILL_U8, FILL_U16, FILL_U32, FILL_U64, FILL_I64, FILL_STR)
		case QC_EFFECT_KIND_END:
			break;
	}
	if (nitems > 0)
		put_items(&w, kind, n);
	assert(!w.full);
	return w.len;
}

static bool
same_str(QcStr str, const char *field)
{
	return str.len == strlen(field) && memcmp(str.bytes, field, str.len) == 0;
}

#define SAME_U8(field) same = same && f->field == (uint8_t) next_number(&n);
#define SAME_U16(field) same = same && f->field == (uint16_t) next_number(&n);
#define SAME_U32(field) same = same && f->field == (uint32_t) next_number(&n);
#define SAME_U64(field) same = same && f->field == next_number(&n);
#define SAME_I64(field) same = same && f->field == -(int64_t) next_number(&n);
#define SAME_STR(field) same = same && same_str(f->field, #field);

static bool
items_match(const QcEffect *effect, unsigned n)
{
	bool		same = true;

	switch (effect->kind)
	{
#define SAME_ITEMS(number, NAME, name, Struct, fields, items) \
		case QC_EFFECT_##NAME: \
			for (uint32_t i = 0; i < effect->nitems; i++) \
			{ \
				Struct##Item row; \
				const Struct##Item *f = &row; \
				qc_effect_item(effect, i, &row); \
				(void) f; \
				items \
			} \
			break;
			QC_EFFECT_LIST(SAME_ITEMS, SAME_U8, SAME_U16, SAME_U32, SAME_U64, SAME_I64, SAME_STR)
		case QC_EFFECT_KIND_END:
			return false;
	}
	return same;
}

bool
sample_effect_matches(const QcEffect *effect)
{
	uint32_t	nitems = qc_effect_item_size(effect->kind) > 0 ? SAMPLE_ITEMS : 0;
	unsigned	n = 0;
	bool		same = true;

	switch (effect->kind)
	{
#define SAME(number, NAME, name, Struct, fields, items) \
		case QC_EFFECT_##NAME: \
			{ \
				const Struct *f = &effect->u.name; \
				fields \
			} \
			break;
			QC_EFFECT_LIST(SAME, SAME_U8, SAME_U16, SAME_U32, SAME_U64, SAME_I64, SAME_STR)
		case QC_EFFECT_KIND_END:
			return false;
	}
	return same && effect->nitems == nitems && items_match(effect, n);
}
