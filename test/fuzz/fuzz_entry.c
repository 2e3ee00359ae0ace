/*
 * fuzz_entry.c
 *		Entries and effects: decoding never reads outside, and since every field of an accepted entry
 *		is visited and encoded again, the encoding is unique.
 */
#include "fuzz.h"

#include "qc_entry.h"
#include "sample.h"

#include <stdlib.h>

/* What a visitor has seen of one effect. */
typedef struct Seen
{
	const uint8_t *begin;
	const uint8_t *end;
	uint64_t	fields;
	int64_t		last_item;
} Seen;

static void
see_field(void *context, const QcField *field)
{
	Seen	   *seen = context;

	FUZZ_CHECK(field->item == seen->last_item || field->item == seen->last_item + 1);
	FUZZ_CHECK(!field->is_string || field->str.len == 0 ||
			   (field->str.bytes >= seen->begin && field->str.bytes + field->str.len <= seen->end));
	seen->last_item = field->item;
	seen->fields++;
}

static void
put_again(QcWriter *w, const QcEffect *effect)
{
	/* room for the largest item struct of the list */
	union
	{
#define MEMBER(number, NAME, name, Struct, fields, items) Struct##Item name;
#define NOTHING(field)
		QC_EFFECT_LIST(MEMBER, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)
	}			item;

	qc_effect_put(w, effect->kind, &effect->u, effect->nitems);
	for (uint32_t i = 0; i < effect->nitems; i++)
	{
		qc_effect_item(effect, i, &item);
		qc_effect_put_item(w, effect->kind, &item);
	}
}

static void
put_effects_again(QcWriter *w, const QcEntry *entry, const uint8_t *data, size_t size)
{
	QcReader	r = entry->effects;
	QcEffect	effect;
	QcError		err;
	size_t		before;
	Seen		seen = {.begin = data, .end = data + size};

	for (uint32_t i = 0; i < entry->neffects; i++)
	{
		FUZZ_CHECK(qc_effect_get(&r, &effect, &err) == QC_OK);
		before = w->len;
		put_again(w, &effect);
		FUZZ_CHECK(w->len - before == qc_effect_size(effect.kind, &effect.u, effect.nitems));
		seen.last_item = -1;
		qc_effect_visit(&effect, see_field, &seen);
		FUZZ_CHECK(seen.last_item == (int64_t) effect.nitems - 1);
	}
	FUZZ_CHECK(qc_effect_get(&r, &effect, &err) == QC_END);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	QcEntry		entry;
	QcError		err;
	QcWriter	w;
	uint8_t    *out;
	uint64_t   *logs;
	QcStatus	status = qc_entry_decode(data, size, &entry, &err);

	FUZZ_CHECK(status == QC_OK || status == QC_DAMAGED || status == QC_VERSION);
	if (status != QC_OK)
		return 0;
	out = malloc(size);
	logs = malloc(entry.nlogs * sizeof(uint64_t));
	for (uint32_t i = 0; i < entry.nlogs; i++)
		logs[i] = qc_entry_log(&entry, i);
	qc_writer_init(&w, out, size);
	qc_entry_put_head(&w, entry.flags, entry.durable_seq, entry.xid, logs, entry.nlogs, entry.neffects);
	put_effects_again(&w, &entry, data, size);
	FUZZ_CHECK(!w.full && w.len == size && memcmp(out, data, size) == 0);
	free(logs);
	free(out);
	return 0;
}

#ifndef FUZZ_LIBFUZZER
static void
add_seeds(void)
{
	static const uint64_t q0[1] = {0};
	uint8_t		buf[2 * SAMPLE_MAX];
	uint8_t		effect[SAMPLE_MAX];
	QcWriter	w;

	fuzz_seed(buf, sample_entry(buf));
	for (const QcEffectKind *kind = sample_kinds; *kind != QC_EFFECT_KIND_END; kind++)
	{
		qc_writer_init(&w, buf, sizeof(buf));
		qc_entry_put_head(&w, 0, 1, 2, q0, 1, 1);
		qc_put_bytes(&w, effect, sample_effect(*kind, effect));
		fuzz_seed(buf, w.len);
	}
}

int
main(int argc, char **argv)
{
	return fuzz_main(argc, argv, "entry", LLVMFuzzerTestOneInput, add_seeds);
}
#endif
