/*
 * test_entry.c
 *		Log entries: head, list of logs, validation of the whole payload.
 */
#include "qc_entry.h"
#include "sample.h"
#include "unit.h"

#include <stdlib.h>

static void
test_there_and_back(void)
{
	uint8_t		buf[SAMPLE_MAX];
	size_t		size = sample_entry(buf);
	QcEntry		entry;
	QcEffect	effect;
	QcReader	r;
	QcError		err;

	CHECK_U64(qc_entry_decode(buf, size, &entry, &err), QC_OK);
	CHECK_U64(entry.flags, QC_ENTRY_CARRIED);
	CHECK_U64(entry.durable_seq, 9);
	CHECK_U64(entry.xid, UINT64_C(0x100000002));
	CHECK_U64(entry.nlogs, 3);
	CHECK_U64(qc_entry_log(&entry, 0), 1);
	CHECK_U64(qc_entry_log(&entry, 1), 7);
	CHECK_U64(qc_entry_log(&entry, 2), 300);
	CHECK_U64(entry.neffects, 2);
	r = entry.effects;
	CHECK_U64(qc_effect_get(&r, &effect, &err), QC_OK);
	CHECK_U64(effect.kind, QC_EFFECT_APPEND);
	CHECK_U64(effect.u.append.count, 1);
	CHECK_U64(qc_effect_get(&r, &effect, &err), QC_OK);
	CHECK_U64(effect.kind, QC_EFFECT_POP_COMMIT);
	CHECK_U64(effect.u.pop_commit.lease, UINT64_C(0x1122334455667788));
	CHECK_U64(qc_effect_get(&r, &effect, &err), QC_END);
}

static void
test_all_effects_in_one_entry(void)
{
	static const uint64_t q0[1] = {0};
	uint8_t		buf[8 * SAMPLE_MAX];
	uint8_t		body[SAMPLE_MAX];
	uint32_t	kinds = 0;
	QcWriter	w;
	QcEntry		entry;
	QcEffect	effect;
	QcReader	r;
	QcError		err;

	while (sample_kinds[kinds] != QC_EFFECT_KIND_END)
		kinds++;
	qc_writer_init(&w, buf, sizeof(buf));
	qc_entry_put_head(&w, 0, 0, 0, q0, 1, kinds);
	for (uint32_t i = 0; i < kinds; i++)
		qc_put_bytes(&w, body, sample_effect(sample_kinds[i], body));
	CHECK(!w.full);
	CHECK_U64(qc_entry_decode(buf, w.len, &entry, &err), QC_OK);
	r = entry.effects;
	for (uint32_t i = 0; i < kinds; i++)
	{
		CHECK_U64(qc_effect_get(&r, &effect, &err), QC_OK);
		CHECK(sample_effect_matches(&effect));
	}
}

static void
test_void_entry(void)
{
	static const uint64_t q0[1] = {0};
	uint8_t		buf[64];
	QcWriter	w;
	QcEntry		entry;
	QcError		err;

	qc_writer_init(&w, buf, sizeof(buf));
	qc_entry_put_head(&w, 0, 7, 0, q0, 1, 0);
	CHECK_U64(w.len, QC_ENTRY_HEAD_SIZE(1));
	CHECK_U64(qc_entry_decode(buf, w.len, &entry, &err), QC_OK);
	CHECK_U64(entry.neffects, 0);
}

static void
test_every_truncation_is_damage(void)
{
	uint8_t		buf[SAMPLE_MAX];
	size_t		size = sample_entry(buf);
	QcEntry		entry;

	for (size_t cut = 0; cut < size; cut++)
	{
		uint8_t    *copy = malloc(cut > 0 ? cut : 1);

		memcpy(copy, buf, cut);
		CHECK_U64(qc_entry_decode(copy, cut, &entry, NULL), QC_DAMAGED);
		free(copy);
	}
	buf[size] = 0;
	CHECK_U64(qc_entry_decode(buf, size + 1, &entry, NULL), QC_DAMAGED);
}

static void
test_patch_durable(void)
{
	uint8_t		buf[SAMPLE_MAX];
	size_t		size = sample_entry(buf);
	QcEntry		entry;
	QcError		err;

	qc_entry_patch_durable(buf, UINT64_C(0x8877665544332211));
	CHECK_U64(qc_entry_decode(buf, size, &entry, &err), QC_OK);
	CHECK_U64(entry.durable_seq, UINT64_C(0x8877665544332211));
	CHECK_U64(entry.xid, UINT64_C(0x100000002));
}

/* Change one field of the sample entry and decode. */
static QcStatus
decode_changed(size_t at, size_t width, uint64_t value, QcError *err)
{
	uint8_t		buf[SAMPLE_MAX];
	size_t		size = sample_entry(buf);
	QcEntry		entry;

	for (size_t i = 0; i < width; i++)
		buf[at + i] = (uint8_t) (value >> (8 * i));
	return qc_entry_decode(buf, size, &entry, err);
}

static void
test_newer_formats_are_named(void)
{
	QcError		err;

	CHECK_U64(decode_changed(0, 2, 2, &err), QC_VERSION);
	CHECK_STR(err.text, "entry has version 2, this program knows 1");
	CHECK_U64(decode_changed(2, 2, 4, &err), QC_VERSION);
	CHECK_STR(err.text, "entry has unknown flags 0x0004");
	CHECK_U64(decode_changed(QC_ENTRY_HEAD_SIZE(3), 2, 999, &err), QC_VERSION);
	CHECK_STR(err.text, "effect has the unknown kind 999");
	CHECK_U64(decode_changed(QC_ENTRY_HEAD_SIZE(3) + 2, 2, 2, &err), QC_VERSION);
}

static void
test_impossible_fields(void)
{
	QcError		err;

	CHECK_U64(decode_changed(2, 2, 3, &err), QC_DAMAGED);
	CHECK_U64(decode_changed(4, 4, 0, &err), QC_DAMAGED);
	CHECK_U64(decode_changed(4, 4, UINT32_MAX, &err), QC_DAMAGED);
	CHECK_U64(decode_changed(24, 8, 7, &err), QC_DAMAGED);
	CHECK_STR(err.text, "logs of an entry are not in ascending order");
	CHECK_U64(decode_changed(24, 8, 8, &err), QC_DAMAGED);
	CHECK_U64(decode_changed(QC_ENTRY_HEAD_SIZE(3) - 4, 4, 1, &err), QC_DAMAGED);
	CHECK_U64(decode_changed(QC_ENTRY_HEAD_SIZE(3) - 4, 4, 3, &err), QC_DAMAGED);
	CHECK_STR(err.text, "entry has 2 effects instead of 3");
}

int
main(void)
{
	UNIT_RUN(test_there_and_back);
	UNIT_RUN(test_all_effects_in_one_entry);
	UNIT_RUN(test_void_entry);
	UNIT_RUN(test_every_truncation_is_damage);
	UNIT_RUN(test_patch_durable);
	UNIT_RUN(test_newer_formats_are_named);
	UNIT_RUN(test_impossible_fields);
	return unit_end();
}
