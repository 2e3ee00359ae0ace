/*
 * test_effect.c
 *		Effects: every kind of the list there and back, damage, unknown kinds and versions.
 */
#include "qc_effect.h"
#include "sample.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

static QcStatus
decode(const uint8_t *bytes, size_t len, QcEffect *effect, QcError *err)
{
	QcReader	r;

	qc_reader_init(&r, bytes, len);
	return qc_effect_get(&r, effect, err);
}

static void
check_kind(const void *argument)
{
	QcEffectKind kind = *(const QcEffectKind *) argument;
	uint8_t		buf[SAMPLE_MAX];
	size_t		size = sample_effect(kind, buf);
	QcEffect	effect;
	QcError		err;

	CHECK_U64(decode(buf, size, &effect, &err), QC_OK);
	CHECK_U64(effect.kind, kind);
	CHECK(sample_effect_matches(&effect));
	CHECK_U64(size, qc_effect_size(kind, &effect.u, effect.nitems));
	CHECK_U64(qc_load_u32(buf + 4), size - QC_EFFECT_HEAD_SIZE);
}

static void
check_kind_truncated(const void *argument)
{
	QcEffectKind kind = *(const QcEffectKind *) argument;
	uint8_t		buf[SAMPLE_MAX];
	size_t		size = sample_effect(kind, buf);
	QcEffect	effect;

	for (size_t cut = 1; cut < size; cut++)
	{
		uint8_t    *copy = malloc(cut);

		memcpy(copy, buf, cut);
		CHECK_U64(decode(copy, cut, &effect, NULL), QC_DAMAGED);

		/* the same with a length that agrees with the bytes there are */
		if (cut >= QC_EFFECT_HEAD_SIZE)
		{
			qc_store_u32(copy + 4, (uint32_t) (cut - QC_EFFECT_HEAD_SIZE));
			CHECK_U64(decode(copy, cut, &effect, NULL), QC_DAMAGED);
		}
		free(copy);
	}
	buf[size] = 0;
	qc_store_u32(buf + 4, (uint32_t) (size + 1 - QC_EFFECT_HEAD_SIZE));
	CHECK_U64(decode(buf, size + 1, &effect, NULL), QC_DAMAGED);
}

static void
test_every_kind(void)
{
	for (const QcEffectKind *kind = sample_kinds; *kind != QC_EFFECT_KIND_END; kind++)
		unit_run_with(qc_effect_name(*kind), check_kind, kind);
	for (const QcEffectKind *kind = sample_kinds; *kind != QC_EFFECT_KIND_END; kind++)
	{
		char		name[64] = "truncated ";

		strncat(name, qc_effect_name(*kind), sizeof(name) - 11);
		unit_run_with(name, check_kind_truncated, kind);
	}
}

static void
test_numbers_are_unique_and_named(void)
{
	for (const QcEffectKind *a = sample_kinds; *a != QC_EFFECT_KIND_END; a++)
	{
		CHECK(*a > 0 && *a <= UINT16_MAX);
		for (const QcEffectKind *b = a + 1; *b != QC_EFFECT_KIND_END; b++)
			CHECK(*a != *b);
	}
	CHECK_STR(qc_effect_name(QC_EFFECT_APPEND), "append");
	CHECK(qc_effect_name((QcEffectKind) 0) == NULL);
	CHECK(qc_effect_name(QC_EFFECT_KIND_END) == NULL);
	CHECK(qc_effect_name((QcEffectKind) 65535) == NULL);
}

static void
test_unknown_kind_and_version(void)
{
	uint8_t		buf[SAMPLE_MAX];
	size_t		size = sample_effect(QC_EFFECT_APPEND, buf);
	QcEffect	effect;
	QcError		err;

	qc_store_u16(buf, 999);
	CHECK_U64(decode(buf, size, &effect, &err), QC_VERSION);
	CHECK_STR(err.text, "effect has the unknown kind 999");
	qc_store_u16(buf, QC_EFFECT_APPEND);
	qc_store_u16(buf + 2, 2);
	CHECK_U64(decode(buf, size, &effect, &err), QC_VERSION);
	CHECK_STR(err.text, "effect append has version 2, this program knows 1");
}

static void
test_end(void)
{
	QcEffect	effect;
	QcError		err;

	CHECK_U64(decode((const uint8_t *) "", 0, &effect, &err), QC_END);
}

static void
test_number_of_items_that_overflows(void)
{
	uint8_t		buf[SAMPLE_MAX];
	size_t		size = sample_effect(QC_EFFECT_ACK, buf);
	QcEffect	effect;
	QcError		err;

	/* 20-byte items: 2^30 of them more would agree with the length in a 32-bit product */
	CHECK_U64(qc_effect_item_size(QC_EFFECT_ACK), 20);
	CHECK_U64(qc_load_u32(buf + QC_EFFECT_HEAD_SIZE + 16), SAMPLE_ITEMS);
	qc_store_u32(buf + QC_EFFECT_HEAD_SIZE + 16, SAMPLE_ITEMS + (1u << 30));
	CHECK_U64(decode(buf, size, &effect, &err), QC_DAMAGED);
}

static void
test_no_items(void)
{
	QcDecision	decision = {.timeline = 1};
	uint8_t		buf[64];
	QcWriter	w;
	QcEffect	effect;
	QcError		err;

	qc_writer_init(&w, buf, sizeof(buf));
	qc_effect_put(&w, QC_EFFECT_DECISION, &decision, 0);
	CHECK_U64(w.len, qc_effect_size(QC_EFFECT_DECISION, &decision, 0));
	CHECK_U64(decode(buf, w.len, &effect, &err), QC_OK);
	CHECK_U64(effect.nitems, 0);
}

/* What a visitor saw of one effect. */
typedef struct Seen
{
	char		text[1024];
} Seen;

static void
note_field(void *context, const QcField *field)
{
	Seen	   *seen = context;
	char		line[128];

	if (field->is_string)
		(void) snprintf(line, sizeof(line), "%s[%d]=%.*s ", field->name, (int) field->item,
						(int) field->str.len, (const char *) field->str.bytes);
	else if (field->is_signed)
		(void) snprintf(line, sizeof(line), "%s[%d]=%lld ", field->name, (int) field->item,
						(long long) (int64_t) field->value);
	else
		(void) snprintf(line, sizeof(line), "%s[%d]=%llu ", field->name, (int) field->item,
						(unsigned long long) field->value);
	strncat(seen->text, line, sizeof(seen->text) - strlen(seen->text) - 1);
}

static void
test_visit(void)
{
	QcGroupCreate group = {.group = 3, .queue = 2, .start = QC_START_TIME, .start_at = -5};
	QcDecision	decision = {.timeline = 4};
	QcDecisionItem item = {.seq = 10, .lsn = 20, .committed = 1};
	uint8_t		buf[256];
	QcWriter	w;
	QcReader	r;
	QcEffect	effect;
	Seen		seen = {""};

	group.name.bytes = (const uint8_t *) "g";
	group.name.len = 1;
	qc_writer_init(&w, buf, sizeof(buf));
	qc_effect_put(&w, QC_EFFECT_GROUP_CREATE, &group, 0);
	qc_effect_put(&w, QC_EFFECT_DECISION, &decision, 2);
	qc_effect_put_item(&w, QC_EFFECT_DECISION, &item);
	item.seq = 11;
	qc_effect_put_item(&w, QC_EFFECT_DECISION, &item);
	qc_reader_init(&r, buf, w.len);
	while (qc_effect_get(&r, &effect, NULL) == QC_OK)
		qc_effect_visit(&effect, note_field, &seen);
	CHECK_STR(seen.text, "group[-1]=3 queue[-1]=2 start[-1]=2 start_at[-1]=-5 name[-1]=g "
			  "timeline[-1]=4 seq[0]=10 lsn[0]=20 committed[0]=1 seq[1]=11 lsn[1]=20 committed[1]=1 ");
}

int
main(void)
{
	test_every_kind();
	UNIT_RUN(test_numbers_are_unique_and_named);
	UNIT_RUN(test_unknown_kind_and_version);
	UNIT_RUN(test_end);
	UNIT_RUN(test_number_of_items_that_overflows);
	UNIT_RUN(test_no_items);
	UNIT_RUN(test_visit);
	return unit_end();
}
