/*
 * qc_effect.c
 *		Encoder, decoder and field visitor of effects, all expanded from QC_EFFECT_LIST.
 *
 * Every function here is one switch over the kinds whose cases the list writes, so a new effect
 * is one line in qc_effect.h and nothing here.  Items have fields of fixed size only, which makes
 * item i addressable without a scan; QC_ITEM_STR below turns a string item into a compile error.
 * Called by the append path, apply, recovery and tools.
 */
#include "qc_effect.h"

#include <assert.h>

#define NOTHING(field)

/* Encoded bytes of the fields whose size is fixed; a string counts with its length field. */
#define SIZE_U8(field) + 1
#define SIZE_U16(field) + 2
#define SIZE_U32(field) + 4
#define SIZE_U64(field) + 8
#define SIZE_STR(field) + 2

/* Undeclared on purpose: items are of fixed size. */
#define QC_ITEM_STR(field) + qc_items_cannot_hold_strings

size_t
qc_effect_item_size(QcEffectKind kind)
{
	switch (kind)
	{
#define ITEM_SIZE(number, NAME, name, Struct, fields, items) \
		case QC_EFFECT_##NAME: \
			return 0 items;
			QC_EFFECT_LIST(ITEM_SIZE, SIZE_U8, SIZE_U16, SIZE_U32, SIZE_U64, SIZE_U64, QC_ITEM_STR)
#undef ITEM_SIZE
		case QC_EFFECT_KIND_END:
			break;
	}
	return 0;
}

/* Size of the fixed fields without the bytes of their strings. */
static size_t
fixed_size(QcEffectKind kind)
{
	switch (kind)
	{
#define FIXED_SIZE(number, NAME, name, Struct, fields, items) \
		case QC_EFFECT_##NAME: \
			return 0 fields;
			QC_EFFECT_LIST(FIXED_SIZE, SIZE_U8, SIZE_U16, SIZE_U32, SIZE_U64, SIZE_U64, SIZE_STR)
#undef FIXED_SIZE
		case QC_EFFECT_KIND_END:
			break;
	}
	return 0;
}

/* Bytes of all strings of the fixed fields. */
static size_t
string_size(QcEffectKind kind, const void *fixed)
{
	switch (kind)
	{
#define LEN_STR(field) + f->field.len
#define STRING_SIZE(number, NAME, name, Struct, fields, items) \
		case QC_EFFECT_##NAME: \
			{ \
				const Struct *f = fixed; \
				(void) f; \
				return (size_t) 0 fields; \
			}
			QC_EFFECT_LIST(STRING_SIZE, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, LEN_STR)
#undef STRING_SIZE
#undef LEN_STR
		case QC_EFFECT_KIND_END:
			break;
	}
	return 0;
}

size_t
qc_effect_size(QcEffectKind kind, const void *fixed, uint32_t nitems)
{
	size_t		item = qc_effect_item_size(kind);

	assert(item > 0 || nitems == 0);
	return QC_EFFECT_HEAD_SIZE + fixed_size(kind) + string_size(kind, fixed) +
		(item > 0 ? 4 + item * nitems : 0);
}

#define PUT_U8(field) qc_put_u8(w, f->field);
#define PUT_U16(field) qc_put_u16(w, f->field);
#define PUT_U32(field) qc_put_u32(w, f->field);
#define PUT_U64(field) qc_put_u64(w, f->field);
#define PUT_I64(field) qc_put_u64(w, (uint64_t) f->field);
#define PUT_STR(field) qc_put_str16(w, f->field.bytes, f->field.len);

void
qc_effect_put(QcWriter *w, QcEffectKind kind, const void *fixed, uint32_t nitems)
{
	size_t		size = qc_effect_size(kind, fixed, nitems);

	if (size > UINT32_MAX)
	{
		w->full = true;
		return;
	}
	qc_put_u16(w, (uint16_t) kind);
	qc_put_u16(w, QC_EFFECT_VERSION);
	qc_put_u32(w, (uint32_t) (size - QC_EFFECT_HEAD_SIZE));
	switch (kind)
	{
#define PUT_FIXED(number, NAME, name, Struct, fields, items) \
		case QC_EFFECT_##NAME: \
			{ \
				const Struct *f = fixed; \
				fields \
			} \
			break;
			QC_EFFECT_LIST(PUT_FIXED, PUT_U8, PUT_U16, PUT_U32, PUT_U64, PUT_I64, PUT_STR)
#undef PUT_FIXED
		case QC_EFFECT_KIND_END:
			break;
	}
	if (qc_effect_item_size(kind) > 0)
		qc_put_u32(w, nitems);
}

void
qc_effect_put_item(QcWriter *w, QcEffectKind kind, const void *item)
{
	switch (kind)
	{
#define PUT_ITEM(number, NAME, name, Struct, fields, items) \
		case QC_EFFECT_##NAME: \
			{ \
				const Struct##Item *f = item; \
				(void) f; \
				items \
			} \
			break;
			QC_EFFECT_LIST(PUT_ITEM, PUT_U8, PUT_U16, PUT_U32, PUT_U64, PUT_I64, PUT_STR)
#undef PUT_ITEM
		case QC_EFFECT_KIND_END:
			break;
	}
}

/* A string in place. */
static QcStr
get_str(QcReader *r)
{
	QcStr		str;

	str.bytes = qc_get_str16(r, &str.len);
	return str;
}

#define GET_U8(field) f->field = qc_get_u8(r);
#define GET_U16(field) f->field = qc_get_u16(r);
#define GET_U32(field) f->field = qc_get_u32(r);
#define GET_U64(field) f->field = qc_get_u64(r);
#define GET_I64(field) f->field = (int64_t) qc_get_u64(r);
#define GET_STR(field) f->field = get_str(r);

/* Fixed fields of effect->kind into effect->u. */
static void
get_fixed(QcReader *r, QcEffect *effect)
{
	switch (effect->kind)
	{
#define GET_FIXED(number, NAME, name, Struct, fields, items) \
		case QC_EFFECT_##NAME: \
			{ \
				Struct	   *f = &effect->u.name; \
				fields \
			} \
			break;
			QC_EFFECT_LIST(GET_FIXED, GET_U8, GET_U16, GET_U32, GET_U64, GET_I64, GET_STR)
#undef GET_FIXED
		case QC_EFFECT_KIND_END:
			break;
	}
}

/* Fixed fields, number of items and items out of a body, which they must fill exactly. */
static QcStatus
get_body(QcReader *r, QcEffect *effect, QcError *err)
{
	size_t		item_size = qc_effect_item_size(effect->kind);

	get_fixed(r, effect);
	if (item_size > 0)
		effect->nitems = qc_get_u32(r);
	effect->items = r->at;
	if (r->bad || qc_reader_left(r) != (uint64_t) effect->nitems * item_size)
		return qc_error_set(err, QC_DAMAGED, "body of effect %s has the wrong length",
							qc_effect_name(effect->kind));
	return QC_OK;
}

QcStatus
qc_effect_get(QcReader *r, QcEffect *effect, QcError *err)
{
	QcReader	body;
	uint16_t	kind;
	uint16_t	version;
	uint32_t	len;
	const uint8_t *bytes;

	if (!r->bad && qc_reader_left(r) == 0)
		return QC_END;
	kind = qc_get_u16(r);
	version = qc_get_u16(r);
	len = qc_get_u32(r);
	bytes = qc_get_bytes(r, len);
	if (r->bad)
		return qc_error_set(err, QC_DAMAGED, "effect exceeds its entry");
	memset(effect, 0, sizeof(*effect));
	effect->kind = (QcEffectKind) kind;
	if (qc_effect_name(effect->kind) == NULL)
		return qc_error_set(err, QC_VERSION, "effect has the unknown kind %u", kind);
	if (version != QC_EFFECT_VERSION)
		return qc_error_set(err, QC_VERSION, "effect %s has version %u, this program knows %u",
							qc_effect_name(effect->kind), version, QC_EFFECT_VERSION);
	qc_reader_init(&body, bytes, len);
	return get_body(&body, effect, err);
}

void
qc_effect_item(const QcEffect *effect, uint32_t i, void *item)
{
	size_t		size = qc_effect_item_size(effect->kind);
	QcReader	reader;
	QcReader   *r = &reader;

	assert(i < effect->nitems);
	qc_reader_init(r, effect->items + size * i, size);
	switch (effect->kind)
	{
#define GET_ITEM(number, NAME, name, Struct, fields, items) \
		case QC_EFFECT_##NAME: \
			{ \
				Struct##Item *f = item; \
				f->unused_ = 0; \
				items \
			} \
			break;
			QC_EFFECT_LIST(GET_ITEM, GET_U8, GET_U16, GET_U32, GET_U64, GET_I64, GET_STR)
#undef GET_ITEM
		case QC_EFFECT_KIND_END:
			break;
	}
}

const char *
qc_effect_name(QcEffectKind kind)
{
	switch (kind)
	{
#define EFFECT_NAME(number, NAME, name, Struct, fields, items) \
		case QC_EFFECT_##NAME: \
			return #name;
			QC_EFFECT_LIST(EFFECT_NAME, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)
#undef EFFECT_NAME
		case QC_EFFECT_KIND_END:
			break;
	}
	return NULL;
}

/* Where the fields of one effect go. */
typedef struct Visit
{
	QcFieldVisitor visit;
	void	   *context;
	int64_t		item;
} Visit;

static void
visit_number(const Visit *v, const char *name, bool is_signed, uint64_t value)
{
	QcField		field = {.name = name, .item = v->item, .is_signed = is_signed, .value = value};

	v->visit(v->context, &field);
}

static void
visit_string(const Visit *v, const char *name, QcStr str)
{
	QcField		field = {.name = name, .item = v->item, .is_string = true, .str = str};

	v->visit(v->context, &field);
}

#define VISIT_UNSIGNED(field) visit_number(v, #field, false, f->field);
#define VISIT_SIGNED(field) visit_number(v, #field, true, (uint64_t) f->field);
#define VISIT_STR(field) visit_string(v, #field, f->field);

static void
visit_fixed(const QcEffect *effect, const Visit *v)
{
	switch (effect->kind)
	{
#define VISIT_FIXED(number, NAME, name, Struct, fields, items) \
		case QC_EFFECT_##NAME: \
			{ \
				const Struct *f = &effect->u.name; \
				fields \
			} \
			break;
			QC_EFFECT_LIST(VISIT_FIXED, VISIT_UNSIGNED, VISIT_UNSIGNED, VISIT_UNSIGNED,
						   VISIT_UNSIGNED, VISIT_SIGNED, VISIT_STR)
#undef VISIT_FIXED
		case QC_EFFECT_KIND_END:
			break;
	}
}

static void
visit_item(const QcEffect *effect, uint32_t i, const Visit *v)
{
	switch (effect->kind)
	{
#define VISIT_ITEM(number, NAME, name, Struct, fields, items) \
		case QC_EFFECT_##NAME: \
			{ \
				Struct##Item row; \
				const Struct##Item *f = &row; \
				qc_effect_item(effect, i, &row); \
				(void) f; \
				items \
			} \
			break;
			QC_EFFECT_LIST(VISIT_ITEM, VISIT_UNSIGNED, VISIT_UNSIGNED, VISIT_UNSIGNED,
						   VISIT_UNSIGNED, VISIT_SIGNED, VISIT_STR)
#undef VISIT_ITEM
		case QC_EFFECT_KIND_END:
			break;
	}
}

void
qc_effect_visit(const QcEffect *effect, QcFieldVisitor visit, void *context)
{
	Visit		v = {.visit = visit, .context = context, .item = -1};

	visit_fixed(effect, &v);
	for (uint32_t i = 0; i < effect->nitems; i++)
	{
		v.item = i;
		visit_item(effect, i, &v);
	}
}
